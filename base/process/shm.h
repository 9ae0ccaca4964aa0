/* shm.h - memory that a process shares with a child of its own (child.h).
 *
 * The child may do with it whatever it likes at any time, so that nothing in it is looked at twice.
 * It cannot make it shorter (a seal), which would kill who reads it. */
#ifndef BASE_PROCESS_SHM_H
#define BASE_PROCESS_SHM_H

#include "base/core/err.h"

struct region {
	int fd;        /* for the child */
	uint8_t *at;   /* NULL: there is none */
	uint64_t size;
};

/* region_new - of `size` bytes, zero, and not there before it is used. name: for people. Returns 0
 * with *ret filled, -errno with *ret empty. */
int region_new(const char *name, uint64_t size, struct region *ret, struct err *e) NZ_MUST_USE;
/* region_grow - at least `size` bytes, at another address perhaps; the content stays. On failure it
 * is as it was. */
int region_grow(struct region *r, uint64_t size, struct err *e) NZ_MUST_USE;
/* region_keep - give back what is beyond `size` bytes: the pages, not the room. */
void region_keep(struct region *r, uint64_t size);
/* region_release - in the process that made it. */
void region_release(struct region *r);

/* region_map - in the child, whose fd it is: as large as the other side says that it is. Returns
 * false when that cannot be. */
bool region_map(struct region *r, uint64_t size) NZ_MUST_USE;

#endif
