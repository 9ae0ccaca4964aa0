/* SPDX-License-Identifier: BSD-3-Clause */
/* removed_names.c - removals that a commit does only in part, or too well.
 *
 * HDF5 cannot remove some of the files that its Zarr view has, such as the chunk of a contiguous
 * dataset or attributes that the view derives. A commit between the removal of a directory's files
 * and that of the directory makes them part of the new snapshot. Listings omit them, so that the
 * directory is empty for the program that emptied it. Look-ups find them.
 *
 * Other directories vanish with such a commit: an array without its metadata file. They stay,
 * empty, until the program removes them, too. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "translate/tree/tree_int.h"

struct removed_name {
	struct link link; /* in tree.removed_names or tree.emptied_dirs */
	char key[];
};

static uint64_t removed_hash(const struct tree *t, const char *key)
{
	return hash_u64(hash_text(t->seed, key));
}

static struct removed_name *names_find(const struct tree *t, const struct map *m,
					 const char *key)
{
	struct removed_name *r;

	if (m->n == 0)
		return NULL;
	MAP_EACH(r, m, removed_hash(t, key), link)
		if (strcmp(r->key, key) == 0)
			return r;
	return NULL;
}

bool names_have(const struct tree *t, const struct map *m, const char *key)
{
	return names_find(t, m, key) != NULL;
}

void emptied_each(const struct tree *t, const char *dir, store_emit *fn, void *arg)
{
	for (struct link *l = map_walk(&t->emptied_dirs, NULL); l;
	     l = map_walk(&t->emptied_dirs, l)) {
		const char *key = CONTAINER_OF(l, struct removed_name, link)->key;
		const char *name = store_key_below(dir, key);

		if (name && !strchr(name, '/') && !fn(arg, name, true, NULL))
			return;
	}
}

static void removed_drop(struct map *m, struct removed_name *r)
{
	if (r)
		map_remove(m, &r->link);
	free(r);
}

void names_drop(const struct tree *t, struct map *m, const char *key)
{
	removed_drop(m, names_find(t, m, key));
}

static void removed_free_map(struct map *m)
{
	for (struct link *l = map_walk(m, NULL), *next; l; l = next) {
		next = map_walk(m, l);
		removed_drop(m, CONTAINER_OF(l, struct removed_name, link));
	}
	map_free(m);
}

void removed_free(struct tree *t)
{
	removed_free_map(&t->removed_names);
	removed_free_map(&t->emptied_dirs);
}

static int removed_add(struct tree *t, struct map *m, const char *key, size_t len,
		       struct err *e)
{
	struct removed_name *r = alloc_array(1, sizeof(*r) + len + 1);

	if (!r)
		return err_nomem(e);
	memcpy(r->key, key, len);
	if (names_find(t, m, r->key)) {
		free(r);
		return 0;
	}
	if (map_add(m, &r->link, removed_hash(t, r->key)) == 0)
		return 0;
	free(r);
	return err_nomem(e);
}

/* removed_stays - whether the dataset has a key. It may have one whose look-up fails. */
static bool removed_stays(const struct snapshot *now, const char *key)
{
	struct found f;

	return tree_base(now, key, &f, NULL) < 0 || f.kind != FOUND_NOTHING;
}

/* names_review - drop the removed names that the dataset does not have any more, or that exist in
 * the stage again; and the emptied directories that it has again, or that a program removed. */
static void names_review(struct tree *t, struct map *m, const struct snapshot *now)
{
	bool emptied = m == &t->emptied_dirs;
	struct stage_entry x;

	for (struct link *l = map_walk(m, NULL), *next; l; l = next) {
		struct removed_name *r = CONTAINER_OF(l, struct removed_name, link);

		next = map_walk(m, l);
		stage_find(t->stage, r->key, &x, NULL);
		if ((emptied ? x.kind == STAGE_GONE : stage_alive(t->stage, r->key)) ||
		    removed_stays(now, r->key) == emptied)
			removed_drop(m, r);
	}
}

/* emptied_add - keep the directories above a removed key that the commit has removed with it. */
static int emptied_add(struct tree *t, const struct snapshot *old, const struct snapshot *now,
		       const char *key, struct err *e)
{
	char dir[STORE_KEY_MAX + 1];
	struct stage_entry x;
	struct found f;
	int rc = 0;

	memcpy(dir, key, strlen(key) + 1);
	for (char *slash = strrchr(dir, '/'); !rc && slash; slash = strrchr(dir, '/')) {
		*slash = '\0';
		stage_find(t->stage, dir, &x, NULL);
		if (x.kind != STAGE_NOTHING || removed_stays(now, dir))
			return 0;
		if (tree_base(old, dir, &f, NULL) == 0 && f.kind == FOUND_DIR)
			rc = removed_add(t, &t->emptied_dirs, dir, strlen(dir), e);
	}
	return rc;
}

int removed_keep(struct tree *t, const struct snapshot *old, const struct snapshot *now,
		 uint64_t generation, struct err *e)
{
	auto_buf gone = buf_of(SIZE_MAX / 2);
	int rc;

	names_review(t, &t->removed_names, now);
	names_review(t, &t->emptied_dirs, now);
	rc = stage_old_keys(t->stage, generation, STAGE_GONE, &gone, e);
	for (const char *key = buf_next(&gone, NULL); !rc && key; key = buf_next(&gone, key))
		rc = removed_stays(now, key)
			     ? removed_add(t, &t->removed_names, key, strlen(key), e)
			     : emptied_add(t, old, now, key, e);
	return rc;
}
