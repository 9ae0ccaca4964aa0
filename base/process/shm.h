/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.h - memory shared with a child process (child.h).
 *
 * The child may change its content at any time, so that nothing in it may be read twice. It cannot
 * shrink the file (a seal), which would kill readers. */
#ifndef BASE_PROCESS_SHM_H
#define BASE_PROCESS_SHM_H

#include "base/core/err.h"

struct shm {
	int fd;        /* to be sent to the child */
	uint8_t *at;   /* NULL: not mapped */
	uint64_t size;
};

/* shm_new - create `size` bytes, zero, allocated on first use. name: for /proc only. Returns 0 with
 * *ret filled, -errno with *ret empty. */
int shm_new(const char *name, uint64_t size, struct shm *ret, struct err *e) NZ_MUST_USE;
/* shm_grow - grow to at least `size` bytes; the address may change, the content stays. On failure
 * nothing has changed. */
int shm_grow(struct shm *r, uint64_t size, struct err *e) NZ_MUST_USE;
/* shm_keep - release the pages beyond `size` bytes, but keep the mapping. */
void shm_keep(struct shm *r, uint64_t size);
/* shm_release - in the process that created it. */
void shm_release(struct shm *r);

/* shm_map - in the child, with fd set: map the size that the other side states. Returns false when
 * that fails. */
bool shm_map(struct shm *r, uint64_t size) NZ_MUST_USE;

#endif
