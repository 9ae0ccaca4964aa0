/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_set.h - shared by commit_tree.c and commit_file.c: the chunks of a commit, and how they are
 * stored. */
#ifndef FUSEFS_WRITE_CHUNK_SET_H
#define FUSEFS_WRITE_CHUNK_SET_H

#include "fusefs/write/writable.h"

/* commit_chunk - a chunk of an array of `now`. */
struct commit_chunk {
	uint32_t array;
	uint64_t linear;
};

/* commit_chunks - a list that is sorted once before lookups. */
struct commit_chunks {
	struct commit_chunk *v;
	size_t n, cap;
	bool failed;     /* an allocation failed */
	bool *whole;     /* per array: true for all of its chunks; NULL: none */
	uint32_t n_arrays;
};

void commit_chunks_add(struct commit_chunks *c, uint32_t array, uint64_t linear);
/* commit_chunks_all - add every chunk of an array; n_arrays is the dataset's. */
void commit_chunks_all(struct commit_chunks *c, uint32_t array, uint32_t n_arrays);
/* commit_chunks_sort - call it after the last add. Returns 0; -ENOMEM if an earlier add failed. */
int commit_chunks_sort(struct commit_chunks *c, struct err *e) NZ_MUST_USE;
/* commit_chunks_next - get the first chunk of an array at or after from. -ENOENT. */
int commit_chunks_next(const struct commit_chunks *c, uint32_t array, uint64_t from,
		       uint64_t *ret);
void commit_chunks_release(struct commit_chunks *c);

/* commit_paths - keys of groups and arrays, sorted; "" is the root. */
struct commit_path {
	char *key;      /* owned */
	uint32_t array; /* DS_NONE: a group */
};

struct commit_paths {
	struct commit_path *v;
	size_t n, cap;
};

/* commit_paths_add - returns 0; -ENOMEM. commit_paths_sort - call it after the last add. */
int commit_paths_add(struct commit_paths *p, const char *key, uint32_t array) NZ_MUST_USE;
void commit_paths_sort(struct commit_paths *p);
/* commit_paths_of - the sorted paths of a dataset. Returns 0; -ENOMEM, with part of them in p. */
int commit_paths_of(struct commit_paths *p, const struct dataset *ds) NZ_MUST_USE;
/* commit_paths_find - find the first n bytes of key; NULL: no such path. */
const struct commit_path *commit_paths_find(const struct commit_paths *p, const char *key,
					    size_t n);
/* commit_paths_above - the next path above key with at least `*at` bytes; *at is 0 at first. NULL:
 * no more. The root is not returned. */
const struct commit_path *commit_paths_above(const struct commit_paths *p, const char *key,
					     size_t *at);
/* commit_paths_below - index in v of the first path below key; *ret_n: number of such paths. */
size_t commit_paths_below(const struct commit_paths *p, const char *key, size_t *ret_n);
void commit_paths_release(struct commit_paths *p);

/* commit_push - push a job with cfg's policy for new arrays in a target, and close its sink. Errors
 * of push. */
int commit_push(const struct app *setup, enum plan_format format, struct diff_job *job,
		struct err *e) NZ_MUST_USE;

/* commit_deferred - the new arrays of strings, which a commit defers. Returns 0; -ENOMEM, with part
 * of them in *ret. commit_waits - true if a key is one of these commit_paths, or below one. */
int commit_deferred(const struct dataset *was, const struct dataset *now,
		    struct commit_paths *ret) NZ_MUST_USE;
bool commit_waits(const void *deferred, const char *key);

#define COMMIT_CHAINS "chains" /* in the state directory of an HDF5 file */

/* commit_chains_note - append to list the filters that a writer requested for a new array, if the
 * file stores others. named: append them also if they are the same, because the view would show
 * them under another name. Returns 0; -ENOMEM. commit_chains_keep - add such a list durably to the
 * one in the state directory. */
int commit_chains_note(struct buf *list, const struct dataset *ds, uint32_t array,
		       const struct codec_chain *stored, bool named);
/* commit_layouts_keep - list arrays of `now` whose chunk keys differ from cfg's layout in the state
 * directory, durably, replacing the previous list. */
int commit_layouts_keep(const struct cfg *cfg, int dir_fd, struct source *now,
			struct err *e) NZ_MUST_USE;
/* commit_form - cfg->zarr with the Zarr format that the first writer chose. */
int commit_form(const struct cfg *cfg, int dir_fd, struct cfg_zarr *ret,
		struct err *e) NZ_MUST_USE;
/* commit_form_note - record that choice: zarr_format 2 or 3. */
int commit_form_note(int dir_fd, int zarr_format, struct err *e) NZ_MUST_USE;
int commit_chains_keep(int dir_fd, const struct buf *more, struct err *e) NZ_MUST_USE;

#endif
