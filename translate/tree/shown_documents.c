/* SPDX-License-Identifier: BSD-3-Clause */
/* shown_documents.c - documents that stay as they were shown when a commit makes other arrays
 * longer.
 *
 * In netCDF a dimension has one length: once a commit has made one variable longer, all that have
 * the dimension are longer in the file, filled up. A program that appends to arrays one after
 * another, with a commit between two of them, would find the next one as long as it is to become
 * already, and append behind that. So an array's document stays staged as it was shown, until the
 * array is written, or the mount ends. To put such a document into the file changes nothing: the
 * array has that many elements of its own, or fewer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "translate/tree/tree_int.h"

#define DOC_MAX ((size_t)16 << 20) /* a document of an array */

static const char *const docs[] = {"/.zarray", "/zarr.json"};

static void pin_free(struct pin *p)
{
	free(p->key);
	free(p->data);
}

void pins_free(struct tree *t)
{
	for (size_t i = 0; i < t->n_pins; i++)
		pin_free(&t->pins[i]);
	free(t->pins);
	t->pins = NULL;
	t->n_pins = t->cap_pins = 0;
}

int tree_content(struct tree *t, const struct snapshot *g, const char *key,
		 const struct found *f, uint8_t **ret, struct err *e)
{
	auto_free uint8_t *data = NULL;
	size_t n;
	int rc;

	if (f->size > DOC_MAX)
		return err_set(e, -EFBIG, "'%.200s' is too large", key);
	data = alloc_array((size_t)f->size, 1);
	if (!data)
		return err_nomem(e);
	rc = tree_read(t, g, key, f, 0, data, (size_t)f->size, &n, e);
	if (!rc && n != f->size)
		rc = err_set(e, -EIO, "'%.200s' is truncated", key);
	if (!rc)
		*ret = steal(&data);
	return rc;
}

/* shown_documents_has - 1: that is what the pin has; 0: it is something else; -errno: it cannot be
 * read. */
static int shown_documents_has(struct tree *t, const struct snapshot *g, const struct pin *p,
			       const struct found *f)
{
	auto_free uint8_t *data = NULL;
	int rc = f->size == p->len ? tree_content(t, g, p->key, f, &data, NULL) : 1;

	if (rc < 0)
		return rc;
	return rc == 0 && memcmp(data, p->data, p->len) == 0;
}

/* is_staged - has of the stage: 1: nobody has written the array since. */
static int is_staged(struct tree *t, const struct pin *p)
{
	struct found f = {.kind = FOUND_STAGED};

	stage_find(t->stage, p->key, &f.x, NULL);
	f.size = f.x.len;
	return f.x.kind == STAGE_DATA ? shown_documents_has(t, NULL, p, &f) : 0;
}

bool pins_have(struct tree *t, const char *key)
{
	for (size_t i = 0; i < t->n_pins; i++)
		if (strcmp(t->pins[i].key, key) == 0)
			return is_staged(t, &t->pins[i]) == 1;
	return false;
}

/* shown_documents_keep_old - pins of earlier commits, which go on unless they say what the dataset
 * says. One that cannot be read just now goes on as well: to forget it would make the array
 * longer. */
static int shown_documents_keep_old(struct left *l, struct err *e)
{
	struct tree *t = l->t;
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < t->n_pins; i++) {
		struct pin *p = &t->pins[i];
		struct found f = {.kind = FOUND_NOTHING};
		bool keep = is_staged(t, p) != 0;

		if (keep && !rc)
			rc = tree_base(t, l->g, p->key, &f, e);
		if (keep && !rc && f.kind == FOUND_BASE &&
		    shown_documents_has(t, l->g, p, &f) == 1)
			keep = false;
		if (keep && !rc)
			rc = left_add(l, p->key, e);
		if (keep)
			t->pins[n++] = *p;
		else
			pin_free(p);
	}
	t->n_pins = n;
	return rc;
}

/* shown_documents_pin - a key, as `old` has it. What is staged is not of the dataset's making. */
static int shown_documents_pin(struct tree *t, const struct snapshot *old, const char *key,
			       struct err *e)
{
	struct pin p = {.key = NULL};
	struct stage_entry x;
	struct found f;
	int rc;

	stage_find(t->stage, key, &x, NULL);
	if (x.kind != STAGE_NOTHING)
		return 0;
	rc = tree_base(t, old, key, &f, e);
	if (rc || f.kind != FOUND_BASE)
		return rc;
	rc = tree_content(t, old, key, &f, &p.data, e);
	p.len = (size_t)f.size;
	p.key = rc ? NULL : strdup(key);
	if (!rc && (!p.key || grow_array(&t->pins, &t->cap_pins, t->n_pins + 1, sizeof(p)) < 0))
		rc = err_nomem(e);
	if (!rc)
		rc = stage_put(t->stage, key, p.data, p.len, e);
	if (rc)
		pin_free(&p);
	else
		t->pins[t->n_pins++] = p;
	return rc;
}

static bool grown(const struct ds_array *old, const struct ds_array *now)
{
	for (uint32_t x = 0; x < now->rank && old->rank == now->rank; x++)
		if (now->shape[x] > old->shape[x])
			return true;
	return false;
}

/* shown_documents_path_of - with its NUL, in b; NULL: memory was short. */
static const char *shown_documents_path_of(const struct dataset *ds, uint32_t array,
					   struct buf *b)
{
	buf_clear(b);
	ds_array_path(ds, array, b);
	buf_putc(b, '\0');
	return buf_ok(b) ? (const char *)b->data : NULL;
}

/* now_of - the array of that path after the commit, *ret; NULL: there is none. Few come between
 * others, so that it is mostly near the number that it had. */
static int now_of(const struct dataset *now, uint32_t i, const char *path, struct buf *room,
		  const struct ds_array **ret, struct err *e)
{
	*ret = NULL;
	for (uint32_t k = 0; k < now->n_arrays && !*ret; k++) {
		uint32_t at = (i + k) % now->n_arrays;
		const char *p = shown_documents_path_of(now, at, room);

		if (!p)
			return err_nomem(e);
		if (strcmp(p, path) == 0)
			*ret = &now->arrays[at];
	}
	return 0;
}

/* pin_one - array i of the old ones, if it has become longer and nobody wrote it. */
static int pin_one(struct tree *t, const struct snapshot *old, const struct snapshot *now,
		   uint32_t i, struct buf room[2], struct err *e)
{
	const char *path = shown_documents_path_of(&old->source->ds, i, &room[0]);
	const struct ds_array *is = NULL;
	char key[STORE_KEY_MAX + 1];
	int rc = path ? now_of(&now->source->ds, i, path, &room[1], &is, e) : err_nomem(e);

	if (rc || !is || !grown(&old->source->ds.arrays[i], is))
		return rc;
	for (size_t d = 0; !rc && d < ARRAY_LEN(docs); d++)
		if (snprintf(key, sizeof(key), "%s%s", path + 1, docs[d]) < (int)sizeof(key))
			rc = shown_documents_pin(t, old, key, e);
	return rc;
}

int pins_keep(struct left *l, const struct snapshot *old, struct err *e)
{
	const struct snapshot *now = l->g;
	struct buf room[2];
	int rc = shown_documents_keep_old(l, e);

	if (rc || !old->source || !now->source || old == now)
		return rc;
	buf_init(&room[0], (size_t)1 << 20);
	buf_init(&room[1], (size_t)1 << 20);
	for (uint32_t i = 0; !rc && i < old->source->ds.n_arrays; i++)
		rc = pin_one(l->t, old, now, i, room, e);
	buf_release(&room[0]);
	buf_release(&room[1]);
	return rc;
}

static bool is_pin(void *arg, const char *key, const struct stage_entry *x NZ_UNUSED)
{
	struct tree **t = arg;

	if (!pins_have(*t, key))
		*t = NULL;
	return *t != NULL;
}

void pins_settle(struct tree *t)
{
	struct tree *only = t;

	if (t->n_pins > 0 && stage_each(t->stage, UINT64_MAX, is_pin, &only) < 0)
		only = NULL;
	atomic_store(&t->pinned, t->n_pins > 0 && only ? stage_bytes(t->stage) : 0);
}

bool pins_only(const struct tree *t)
{
	uint64_t pinned = atomic_load(&t->pinned);

	return stage_empty(t->stage) || (pinned && stage_bytes(t->stage) == pinned);
}

int pins_drop(struct tree *t, struct err *e)
{
	uint64_t generation;
	int rc;

	if (t->n_pins == 0 || !pins_only(t))
		return 0;
	stage_touch(t->stage);
	rc = stage_freeze(t->stage, &generation, e);
	if (rc)
		return rc == -ENODATA ? 0 : rc;
	rc = stage_retire(t->stage, NULL, 0, e);
	if (rc) {
		stage_thaw(t->stage);
		return rc;
	}
	pins_free(t);
	atomic_store(&t->pinned, 0);
	return 0;
}
