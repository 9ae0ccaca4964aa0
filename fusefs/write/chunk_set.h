/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_set.h - shared by commit_tree.c and commit_file.c: which chunks a commit is about, and
 * how it is stored. */
#ifndef FUSEFS_WRITE_CHUNK_SET_H
#define FUSEFS_WRITE_CHUNK_SET_H

#include "fusefs/write/writable.h"

/* commit_chunk - of an array of `now`. */
struct commit_chunk {
	uint32_t array;
	uint64_t linear;
};

/* commit_chunks - a list that is sorted once, then asked. */
struct commit_chunks {
	struct commit_chunk *v;
	size_t n, cap;
	bool failed;     /* memory was short */
	bool *whole;     /* of each array: all of its chunks; NULL: of none */
	uint32_t n_arrays;
};

void commit_chunks_add(struct commit_chunks *c, uint32_t array, uint64_t linear);
/* commit_chunks_all - every chunk of an array of n_arrays. */
void commit_chunks_all(struct commit_chunks *c, uint32_t array, uint32_t n_arrays);
/* commit_chunks_sort - after the last add. Returns 0; -ENOMEM when one could not be added. */
int commit_chunks_sort(struct commit_chunks *c, struct err *e) NZ_MUST_USE;
/* commit_chunks_next - the first of an array, at or after from. -ENOENT. */
int commit_chunks_next(const struct commit_chunks *c, uint32_t array, uint64_t from,
		       uint64_t *ret);
void commit_chunks_release(struct commit_chunks *c);

/* commit_paths - keys of groups and arrays, "" the root's, in order. */
struct commit_path {
	char *key;      /* owned */
	uint32_t array; /* DS_NONE: a group */
};

struct commit_paths {
	struct commit_path *v;
	size_t n, cap;
};

/* commit_paths_add - returns 0; -ENOMEM. commit_paths_sort - after the last of them. */
int commit_paths_add(struct commit_paths *p, const char *key, uint32_t array) NZ_MUST_USE;
void commit_paths_sort(struct commit_paths *p);
/* commit_paths_of - those of a dataset, in order. Returns 0; -ENOMEM, and p has some. */
int commit_paths_of(struct commit_paths *p, const struct dataset *ds) NZ_MUST_USE;
/* commit_paths_find - the one of the first n bytes of key; NULL: there is none. */
const struct commit_path *commit_paths_find(const struct commit_paths *p, const char *key,
					    size_t n);
/* commit_paths_above - the next one that lies above key, from `*at` bytes of it on, which is 0 at
 * first. NULL: there are no more. The root is above nothing. */
const struct commit_path *commit_paths_above(const struct commit_paths *p, const char *key,
					     size_t *at);
/* commit_paths_below - the place in v of the first one below key; *ret_n: how many there are. */
size_t commit_paths_below(const struct commit_paths *p, const char *key, size_t *ret_n);
void commit_paths_release(struct commit_paths *p);

/* commit_policy - what cfg says about new arrays in a target. */
void commit_policy(const struct app *setup, enum plan_format format, struct diff_policy *ret);

/* commit_wait_for - new arrays of texts wait: *ret is `over` (borrowed) without them, new; NULL
 * when there are none. */
int commit_wait_for(const struct dataset *was, const struct dataset *now, struct store *over,
		    struct store **ret, struct err *e) NZ_MUST_USE;
/* commit_waits - whether a key belongs to one of them. seen: of commit_wait_for; NULL: none do. */
bool commit_waits(struct store *seen, const char *key);

#define COMMIT_CHAINS "chains" /* in the state directory of an HDF5 file */

/* commit_chains_note - append to list what a new array was asked to be stored with, and is not.
 * named: or is, since the view would give the same filters another name.
 * Returns 0; -ENOMEM. commit_chains_keep - such a list is added to the one in the state
 * directory, durably. */
int commit_chains_note(struct buf *list, const struct dataset *ds, uint32_t array,
		       const struct codec_chain *stored, bool named);
/* commit_layouts_keep - arrays of `now` whose files are laid out otherwise than cfg has it are
 * listed in the state directory, durably, in place of those that were. */
int commit_layouts_keep(const struct app *setup, int dir_fd, struct source *now,
			struct err *e) NZ_MUST_USE;
/* commit_form - cfg, with what the first writer decided: the Zarr format. */
int commit_form(const struct cfg *cfg, int dir_fd, struct cfg *ret, struct err *e) NZ_MUST_USE;
/* commit_form_note - decide: zarr_format 2 or 3. */
int commit_form_note(int dir_fd, int zarr_format, struct err *e) NZ_MUST_USE;
int commit_chains_keep(int dir_fd, const struct buf *more, struct err *e) NZ_MUST_USE;

/* commit_tap - a sink in front of another that is told what is done. Functions may be NULL. */
struct sink_observer_ops {
	int (*added)(void *arg, uint32_t array, const struct sink_new *how, struct err *e);
	int (*put)(void *arg, uint32_t array, uint64_t linear, struct err *e); /* and drop */
	int (*removed)(void *arg, uint32_t was, struct err *e);
	int (*resized)(void *arg, uint32_t array, struct err *e);
};
/* sink_observer_open - under is taken on success. Returns 0 with *ret new; -ENOMEM. */
int sink_observer_open(struct sink *under, const struct sink_observer_ops *ops, void *arg,
		       struct sink **ret, struct err *e) NZ_MUST_USE;

#endif
