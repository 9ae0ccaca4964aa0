/* SPDX-License-Identifier: BSD-3-Clause */
/* page_set_int.h - sets of pages of a file; private to the writable virtual file.
 *
 * Memory follows the contents: a block of bits for each 128 MiB of the file of which some pages
 * are in the set, none if all of them are. */
#ifndef HDF5VIEW_VIRTUAL_RW_PAGE_SET_INT_H
#define HDF5VIEW_VIRTUAL_RW_PAGE_SET_INT_H

#include "base/core/err.h"

#define RW_PAGE 4096

struct rw_leaf;

struct rw_map {
	struct rw_leaf *leaves; /* ascending; owned */
	size_t n, cap;
};

/* rw_map_reserve - allocate memory for pages [page, page + n), so that adding them cannot fail.
 * -ENOMEM. */
int rw_map_reserve(struct rw_map *m, uint64_t page, uint64_t n, struct err *e) NZ_MUST_USE;
/* rw_map_add - add reserved pages. */
void rw_map_add(struct rw_map *m, uint64_t page, uint64_t n);
/* rw_map_any - whether one of the pages is in the set. */
bool rw_map_any(const struct rw_map *m, uint64_t page, uint64_t n);
/* rw_map_run - the length of the run, at most n > 0, of pages from `page` on that are all in the
 * set or all not; *ret_in: in the set. */
uint64_t rw_map_run(const struct rw_map *m, uint64_t page, uint64_t n, bool *ret_in);
/* rw_map_next - the first page at or after `page` that is in the set, and the length of its run.
 * Returns false if there is none. */
bool rw_map_next(const struct rw_map *m, uint64_t page, uint64_t *ret_page, uint64_t *ret_n);
/* rw_map_cut - remove all pages from `page` on. -ENOMEM: nothing changed. */
int rw_map_cut(struct rw_map *m, uint64_t page, struct err *e) NZ_MUST_USE;
/* rw_map_release - empty the set and free its memory. */
void rw_map_release(struct rw_map *m);

/* rw_page - the page of a byte. rw_pages - the number of pages that bytes [off, off + len)
 * touch. */
static inline uint64_t rw_page(uint64_t off)
{
	return off / RW_PAGE;
}

static inline uint64_t rw_pages(uint64_t off, uint64_t len)
{
	return len ? (off + len - 1) / RW_PAGE - off / RW_PAGE + 1 : 0;
}

#endif
