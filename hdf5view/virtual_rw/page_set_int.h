/* SPDX-License-Identifier: BSD-3-Clause */
/* page_set_int.h - sets of pages of a file; private to the writable virtual file.
 *
 * Memory follows what is in the set: a block of bits for each 128 MiB of the file that has some of
 * its pages, nothing for one that has all of them. */
#ifndef HDF5VIEW_VIRTUAL_RW_PAGE_SET_INT_H
#define HDF5VIEW_VIRTUAL_RW_PAGE_SET_INT_H

#include "base/core/err.h"

#define RW_PAGE 4096

struct rw_leaf;

struct rw_map {
	struct rw_leaf *leaves; /* ascending; owned */
	size_t n, cap;
};

/* rw_map_reserve - memory for pages [page, page + n), so that adding them cannot fail. -ENOMEM. */
int rw_map_reserve(struct rw_map *m, uint64_t page, uint64_t n, struct err *e) NZ_MUST_USE;
/* rw_map_add - pages that were reserved. */
void rw_map_add(struct rw_map *m, uint64_t page, uint64_t n);
/* rw_map_any - whether one of the pages is in the set. */
bool rw_map_any(const struct rw_map *m, uint64_t page, uint64_t n);
/* rw_map_run - how many pages from `page` on, at most n > 0, are alike; *ret_in: in the set. */
uint64_t rw_map_run(const struct rw_map *m, uint64_t page, uint64_t n, bool *ret_in);
/* rw_map_next - the first page at or behind `page` that is in the set, and how many follow it.
 * Returns false: there is none. */
bool rw_map_next(const struct rw_map *m, uint64_t page, uint64_t *ret_page, uint64_t *ret_n);
/* rw_map_cut - take all pages from `page` on out. -ENOMEM: nothing was done. */
int rw_map_cut(struct rw_map *m, uint64_t page, struct err *e) NZ_MUST_USE;
/* rw_map_release - the set is empty, and has no memory. */
void rw_map_release(struct rw_map *m);

/* rw_pages - the pages that bytes [off, off + len) touch. */
static inline uint64_t rw_page(uint64_t off)
{
	return off / RW_PAGE;
}

static inline uint64_t rw_pages(uint64_t off, uint64_t len)
{
	return len ? (off + len - 1) / RW_PAGE - off / RW_PAGE + 1 : 0;
}

#endif
