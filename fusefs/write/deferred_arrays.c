/* SPDX-License-Identifier: BSD-3-Clause */
/* deferred_arrays.c - new arrays that a commit during the mount leaves staged.
 *
 * netCDF stores strings of a fixed size as characters, with one more dimension, and strings of any
 * length in one chunk. After a commit the view shows such an array in another form than it was
 * written in. A program that has the array open knows the old form, and would take the chunks under
 * the old keys as absent. Therefore such arrays stay staged as they were written until all writes
 * must be in the file: at unmount, when a directory is synced, in a recovery. */
#include <errno.h>
#include <string.h>

#include "fusefs/write/chunk_set.h"

#define PATH_BYTES ((size_t)1 << 20)

/* changes_form - true if the view shows an array of the file in another form than it was written
 * in. */
static bool changes_form(const struct dtype *t)
{
	return dt_is_vlen(t) || (t->kind == DT_STRING && t->size > 1);
}

int commit_deferred(const struct dataset *was, const struct dataset *now,
		    struct commit_paths *ret)
{
	struct commit_paths old = {.n = 0};
	auto_buf b = buf_of(PATH_BYTES);
	int rc = 0;

	for (uint32_t i = 0; i < now->n_arrays && rc == 0; i++) {
		const struct commit_path *x;
		const char *path;

		if (!changes_form(&now->arrays[i].type))
			continue;
		if (!old.v)
			rc = commit_paths_of(&old, was);
		path = ds_array_path_text(now, i, &b);
		if (rc < 0 || !path) {
			rc = -ENOMEM;
			break;
		}
		path++;
		x = commit_paths_find(&old, path, strlen(path));
		if (*path && (!x || x->array == DS_NONE))
			rc = commit_paths_add(ret, path, i);
	}
	commit_paths_sort(ret);
	commit_paths_release(&old);
	return rc;
}

bool commit_waits(const void *deferred, const char *key)
{
	return commit_paths_find(deferred, key, strlen(key)) ||
	       commit_paths_above(deferred, key, &(size_t){0});
}
