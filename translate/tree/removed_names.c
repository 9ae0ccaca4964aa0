/* SPDX-License-Identifier: BSD-3-Clause */
/* removed_names.c - names that programs removed and that the dataset still has after the commit.
 *
 * HDF5 cannot remove some of the files that its Zarr view has, such as the chunk of a contiguous
 * dataset or attributes that the view derives. A commit between the removal of a directory's files
 * and that of the directory makes them part of the new snapshot. Listings omit them, so that the
 * directory is empty for the program that emptied it. Look-ups find them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "translate/tree/tree_int.h"

struct removed_name {
	struct link link; /* in tree.removed_names */
	char key[];
};

static uint64_t removed_hash(const struct tree *t, const char *key)
{
	return hash_u64(hash_text(t->seed, key));
}

static struct removed_name *removed_find(const struct tree *t, const char *key)
{
	struct removed_name *r;

	if (t->removed_names.n == 0)
		return NULL;
	MAP_EACH(r, &t->removed_names, removed_hash(t, key), link)
		if (strcmp(r->key, key) == 0)
			return r;
	return NULL;
}

bool removed_has(const struct tree *t, const char *key)
{
	return removed_find(t, key) != NULL;
}

static void removed_drop(struct tree *t, struct removed_name *r)
{
	if (r)
		map_remove(&t->removed_names, &r->link);
	free(r);
}

void removed_forget(struct tree *t, const char *key)
{
	removed_drop(t, removed_find(t, key));
}

void removed_free(struct tree *t)
{
	for (struct link *l = map_walk(&t->removed_names, NULL), *next; l; l = next) {
		next = map_walk(&t->removed_names, l);
		removed_drop(t, CONTAINER_OF(l, struct removed_name, link));
	}
	map_free(&t->removed_names);
}

static int removed_add(struct tree *t, const char *key, struct err *e)
{
	size_t len = strlen(key) + 1;
	struct removed_name *r;

	if (removed_has(t, key))
		return 0;
	r = alloc_array(1, sizeof(*r) + len);
	if (!r)
		return err_nomem(e);
	memcpy(r->key, key, len);
	if (map_add(&t->removed_names, &r->link, removed_hash(t, key)) == 0)
		return 0;
	free(r);
	return err_nomem(e);
}

/* removed_stays - whether the dataset has a key. It may have one whose look-up fails. */
static bool removed_stays(struct tree *t, const struct snapshot *now, const char *key)
{
	struct found f;

	return tree_base(t, now, key, &f, NULL) < 0 || f.kind != FOUND_NOTHING;
}

int removed_keep(struct tree *t, const struct snapshot *now, uint64_t generation, struct err *e)
{
	struct buf gone;
	int rc;

	for (struct link *l = map_walk(&t->removed_names, NULL), *next; l; l = next) {
		struct removed_name *r = CONTAINER_OF(l, struct removed_name, link);

		next = map_walk(&t->removed_names, l);
		if (stage_alive(t->stage, r->key) || !removed_stays(t, now, r->key))
			removed_drop(t, r);
	}
	buf_init(&gone, SIZE_MAX / 2);
	rc = stage_old_keys(t->stage, generation, STAGE_GONE, &gone, e);
	for (size_t at = 0; !rc && at < gone.len;) {
		const char *key = (const char *)gone.data + at;

		at += strlen(key) + 1;
		if (removed_stays(t, now, key))
			rc = removed_add(t, key, e);
	}
	buf_release(&gone);
	return rc;
}
