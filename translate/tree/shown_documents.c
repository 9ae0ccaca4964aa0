/* SPDX-License-Identifier: BSD-3-Clause */
/* shown_documents.c - metadata files that stay as they were shown if a commit makes other arrays
 * longer.
 *
 * In netCDF a dimension has one length: once a commit has made one variable longer, all that have
 * the dimension are longer in the file, filled up. If a commit comes between two appends, a program
 * that appends to one array after another would find the second array at its final length already,
 * and append after that. So an array's metadata file stays staged as it was shown, until the array
 * is written or the mount ends. Putting such a file into the dataset changes nothing: the array has
 * that many elements of its own, or fewer. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "translate/tree/tree_int.h"

#define DOC_MAX ((size_t)16 << 20) /* a document of an array */

const char *const array_docs[ARRAY_DOCS] = {".zarray", "zarr.json"};

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

int tree_content(struct store *s, const char *key, uint8_t **ret, size_t *ret_n, struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, DOC_MAX);
	rc = store_get(s, key, &b, NULL, e);
	if (rc) {
		buf_release(&b);
		return rc;
	}
	*ret = b.data;
	*ret_n = b.len;
	return 0;
}

/* shown_documents_has - 1: the store's content is that of the pin; 0: it is not; -errno: it cannot
 * be read. */
static int shown_documents_has(struct store *s, const struct pin *p)
{
	struct buf b;
	int rc;

	buf_init(&b, p->len); /* -ERANGE: it is larger */
	rc = store_get(s, p->key, &b, NULL, NULL);
	rc = rc ? rc : b.len == p->len && (!b.len || memcmp(b.data, p->data, b.len) == 0);
	buf_release(&b);
	return rc == -ERANGE ? 0 : rc;
}

/* is_staged - shown_documents_has for the stage: 1: no program has written the array since. */
static int is_staged(struct tree *t, const struct pin *p)
{
	struct stage_entry x;

	stage_find(t->stage, p->key, &x, NULL);
	return x.kind == STAGE_DATA ? shown_documents_has(t->content, p) : 0;
}

bool pins_have(struct tree *t, const char *key)
{
	for (size_t i = 0; i < t->n_pins; i++)
		if (strcmp(t->pins[i].key, key) == 0)
			return is_staged(t, &t->pins[i]) == 1;
	return false;
}

/* shown_documents_keep_old - keep pins of earlier commits, unless the dataset has the same content.
 * A pin that cannot be read at the moment is kept, too: dropping it would make the array longer. */
static int shown_documents_keep_old(struct left *l, struct err *e)
{
	struct tree *t = l->t;
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < t->n_pins; i++) {
		struct pin *p = &t->pins[i];
		bool keep = is_staged(t, p) != 0;

		if (keep && !rc && shown_documents_has(l->g->files, p) == 1)
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

/* pin_add - key stays staged with these bytes. p->data is taken. */
static int pin_add(struct tree *t, const char *key, struct pin *p, struct err *e)
{
	p->key = strdup(key);
	if (!p->key || grow_array(&t->pins, &t->cap_pins, t->n_pins + 1, sizeof(*p)) < 0) {
		pin_free(p);
		return err_nomem(e);
	}
	t->pins[t->n_pins++] = *p;
	return 0;
}

/* grown - whether one of an array's axes is longer than in a JSON document of it. */
static bool grown(const struct pin *doc, const struct ds_array *now)
{
	json_t *root =
		json_loadb((const char *)doc->data, doc->len, JSON_REJECT_DUPLICATES, NULL);
	json_t *shape = json_object_get(root, "shape");
	bool ret = false;

	for (uint32_t d = 0; d < now->rank && json_array_size(shape) == now->rank; d++)
		ret |= json_integer_value(json_array_get(shape, d)) < (json_int_t)now->shape[d];
	json_decref(root);
	return ret;
}

/* pin_staged - pin a metadata file that the commit put into the dataset. It is carried into the
 * stage's next log. */
static int pin_staged(struct left *l, const struct ds_array *now, const char *key,
		      struct err *e)
{
	struct pin p = {.key = NULL};
	int rc = tree_content(l->t->content, key, &p.data, &p.len, e);

	if (rc || !grown(&p, now)) {
		pin_free(&p);
		return rc;
	}
	rc = left_add(l, key, e);
	if (rc)
		pin_free(&p);
	return rc ? rc : pin_add(l->t, key, &p, e);
}

/* pin_base - pin a metadata file of the old dataset, by staging it. */
static int pin_base(struct left *l, const struct snapshot *old, const struct ds_array *now,
		    const char *key, struct err *e)
{
	struct pin p = {.key = NULL};
	int rc = tree_content(old->files, key, &p.data, &p.len, e);

	if (rc == -ENOENT || rc == -EISDIR)
		return 0;
	if (rc || !grown(&p, now)) {
		pin_free(&p);
		return rc;
	}
	rc = stage_put(l->t->stage, key, p.data, p.len, e);
	if (rc)
		pin_free(&p);
	return rc ? rc : pin_add(l->t, key, &p, e);
}

/* pin_key - pin a metadata file of an array of the dataset as it is now. One that was staged while
 * the commit ran stays staged. longer: the array is longer than in the old dataset. */
static int pin_key(struct left *l, const struct snapshot *old, const struct ds_array *now,
		   const char *key, bool longer, struct err *e)
{
	struct stage_entry x;

	stage_find(l->t->stage, key, &x, NULL);
	if (x.kind == STAGE_DATA && x.generation <= l->generation && !pins_have(l->t, key))
		return pin_staged(l, now, key, e);
	return longer && x.kind == STAGE_NOTHING ? pin_base(l, old, now, key, e) : 0;
}

/* was_shorter - whether array i, of that path, had fewer elements in `old`. Arrays are rarely
 * inserted between others, so that it mostly had nearly the same ordinal there. -ENOMEM. */
static int was_shorter(const struct dataset *old, const struct ds_array *now, uint32_t i,
		       const char *path, struct buf *room)
{
	for (uint32_t k = 0; k < old->n_arrays; k++) {
		const struct ds_array *was = &old->arrays[(i + k) % old->n_arrays];
		const char *p;

		if (was->rank != now->rank || strcmp(was->name, now->name) != 0)
			continue;
		p = ds_array_path_text(old, (i + k) % old->n_arrays, room);
		if (!p)
			return -ENOMEM;
		if (strcmp(p, path) != 0)
			continue;
		for (uint32_t d = 0; d < now->rank; d++)
			if (now->shape[d] > was->shape[d])
				return 1;
		return 0;
	}
	return 0;
}

static int pin_array(struct left *l, const struct snapshot *old, uint32_t i, struct buf room[2],
		     struct err *e)
{
	const struct dataset *ds = &l->g->source->ds;
	const char *path = ds_array_path_text(ds, i, &room[0]);
	char key[STORE_KEY_MAX + 1];
	int rc = path ? 0 : -ENOMEM;

	if (path && old->source && old != l->g)
		rc = was_shorter(&old->source->ds, &ds->arrays[i], i, path, &room[1]);
	if (rc < 0)
		return err_nomem(e);
	for (size_t d = 0, longer = (size_t)rc; rc >= 0 && d < ARRAY_DOCS; d++)
		if (store_key_join(path + 1, array_docs[d], strlen(array_docs[d]), key))
			rc = pin_key(l, old, &ds->arrays[i], key, longer, e);
	return rc < 0 ? rc : 0;
}

int pins_keep(struct left *l, const struct snapshot *old, struct err *e)
{
	struct buf room[2];
	int rc = shown_documents_keep_old(l, e);

	if (rc || !l->g->source)
		return rc;
	buf_init(&room[0], (size_t)1 << 20);
	buf_init(&room[1], (size_t)1 << 20);
	for (uint32_t i = 0; !rc && i < l->g->source->ds.n_arrays; i++)
		rc = pin_array(l, old, i, room, e);
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
	int rc;

	if (t->n_pins == 0 || !pins_only(t))
		return 0;
	rc = stage_drop(t->stage, NULL, e);
	if (rc)
		return rc == -ENODATA ? 0 : rc;
	pins_free(t);
	atomic_store(&t->pinned, 0);
	return 0;
}
