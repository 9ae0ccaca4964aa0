/* SPDX-License-Identifier: BSD-3-Clause */
/* visible.h - the visible part of a dataset in a Zarr view, and the plan of each array. */
#ifndef NCZARR_VIEW_VISIBLE_H
#define NCZARR_VIEW_VISIBLE_H

#include "nczarr/view/inode.h"
#include "nczarr/nczarr.h"

/* visible_node - a group or array in its parent group, for lookups by name. */
struct visible_node {
	uint32_t group; /* parent */
	uint32_t ord;
	bool is_array;
	const char *name; /* borrowed from the dataset */
};

struct zr_visible {
	struct arena arena;       /* of data of plans and notes */
	struct plan *plans;       /* n_arrays; PLAN_HIDE: hidden */
	bool *hidden_groups;      /* n_groups */
	bool *hidden_arrays;      /* n_arrays: as in the plans, constant */
	uint32_t *n_dirs;         /* n_groups: visible groups and arrays in each */
	struct visible_node *entries; /* n_entries, visible ones only, by parent and name */
	size_t n_entries;
	const struct zr_format *format;
	struct zr_keys keys;      /* of arrays without a writer's choice */
	bool sharded;             /* at least one array is presented as shards */
	struct zr_grid *files;    /* n_arrays: grids of chunk files */
	struct zr_grid *named;    /* n_arrays: the same, with an additional last dimension of one
				   * file where elements have an additional dimension: for keys */
	struct zr_inodes ids;
	const char **notes;       /* rules that are not applied: one line each */
	uint32_t n_notes;
	size_t c_notes;
};

/* zr_visible_init - make all plans, hide what the mode cannot express, lay out the ids.
 * Returns 0 (zr_visible_release); -ENOMEM; -ERANGE. */
int zr_visible_init(struct zr_visible *s, const struct dataset *ds,
		    const struct zarr_view_options *opts, struct err *e) NZ_MUST_USE;
/* zr_visible_release - takes half-built and zeroed objects. */
void zr_visible_release(struct zr_visible *s);

/* zr_visible_find - entry of a group by name (n bytes); NULL = absent. Borrowed. */
const struct visible_node *zr_visible_find(const struct zr_visible *s, uint32_t group,
					   const char *name, size_t n);

#endif
