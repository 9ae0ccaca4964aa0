/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.h - memory that a process shares with a child of its own (child.h).
 *
 * The child may do with it whatever it likes at any time, so that nothing in it is looked at twice.
 * It cannot make it shorter (a seal), which would kill who reads it. */
#ifndef BASE_PROCESS_SHM_H
#define BASE_PROCESS_SHM_H

#include "base/core/err.h"

struct shm {
	int fd;        /* for the child */
	uint8_t *at;   /* NULL: there is none */
	uint64_t size;
};

/* shm_new - of `size` bytes, zero, and not there before it is used. name: for people. Returns 0
 * with *ret filled, -errno with *ret empty. */
int shm_new(const char *name, uint64_t size, struct shm *ret, struct err *e) NZ_MUST_USE;
/* shm_grow - at least `size` bytes, at another address perhaps; the content stays. On failure it
 * is as it was. */
int shm_grow(struct shm *r, uint64_t size, struct err *e) NZ_MUST_USE;
/* shm_keep - give back what is beyond `size` bytes: the pages, not the room. */
void shm_keep(struct shm *r, uint64_t size);
/* shm_release - in the process that made it. */
void shm_release(struct shm *r);

/* shm_map - in the child, whose fd it is: as large as the other side says that it is. Returns
 * false when that cannot be. */
bool shm_map(struct shm *r, uint64_t size) NZ_MUST_USE;

#endif
