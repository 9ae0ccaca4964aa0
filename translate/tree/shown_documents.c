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

const char *const array_docs[ARRAY_DOCS] = {".zarray", "zarr.json"};

static void pin_free(struct pin *p)
{
	free(p->key);
	buf_release(&p->doc);
}

void pins_free(struct tree *t)
{
	for (size_t i = 0; i < t->n_pins; i++)
		pin_free(&t->pins[i]);
	free(t->pins);
	t->pins = NULL;
	t->n_pins = t->cap_pins = 0;
}

/* shown_documents_has - 1: the store's content is that of the pin; 0: it is not; -errno: it cannot
 * be read. */
static int shown_documents_has(struct store *s, const struct pin *p)
{
	auto_buf b = buf_of(p->doc.len); /* -ERANGE: it is larger */
	int rc = store_get(s, p->key, &b, NULL, NULL);

	if (!rc)
		rc = b.len == p->doc.len && (!b.len || memcmp(b.data, p->doc.data, b.len) == 0);
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

/* grown - whether one of an array's axes is longer than in a JSON document of it. */
static bool grown(const struct buf *doc, const struct ds_array *now)
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

/* pin_doc - pin a metadata file: one that the commit put into the dataset is carried into the next
 * log of the stage; one of the old dataset, if old is not NULL, is staged. */
static int pin_doc(struct left *l, const struct snapshot *old, const struct ds_array *now,
		   const char *key, struct err *e)
{
	struct tree *t = l->t;
	struct pin p = {.doc = buf_of(TREE_DOC_MAX)};
	int rc = store_get(old ? old->files : t->content, key, &p.doc, NULL, e);

	if (rc || !grown(&p.doc, now)) {
		pin_free(&p);
		return old && (rc == -ENOENT || rc == -EISDIR) ? 0 : rc;
	}
	rc = old ? stage_put(t->stage, key, p.doc.data, p.doc.len, e) : left_add(l, key, e);
	p.key = strdup(key);
	if (!rc && (!p.key || grow_array(&t->pins, &t->cap_pins, t->n_pins + 1, sizeof(p)) < 0))
		rc = err_nomem(e);
	if (rc)
		pin_free(&p);
	else
		t->pins[t->n_pins++] = p;
	return rc;
}

/* pin_key - pin a metadata file of an array of the dataset as it is now. One that was staged while
 * the commit ran stays staged. longer: the array is longer than in the old dataset. */
static int pin_key(struct left *l, const struct snapshot *old, const struct ds_array *now,
		   const char *key, bool longer, struct err *e)
{
	struct stage_entry x;

	stage_find(l->t->stage, key, &x, NULL);
	if (x.kind == STAGE_DATA && x.generation <= l->generation && !pins_have(l->t, key))
		return pin_doc(l, NULL, now, key, e);
	return longer && x.kind == STAGE_NOTHING ? pin_doc(l, old, now, key, e) : 0;
}

/* is_longer - whether an array has more elements than it had. */
static bool is_longer(const struct ds_array *now, const struct ds_array *was)
{
	for (uint32_t d = 0; was->rank == now->rank && d < now->rank; d++)
		if (now->shape[d] > was->shape[d])
			return true;
	return false;
}

int pins_keep(struct left *l, const struct snapshot *old, struct err *e)
{
	const struct source *s = l->g->view->source, *old_s = old->view->source;
	const struct dataset *ds = s ? &s->ds : NULL;
	const struct dataset *old_ds = old_s && old != l->g ? &old_s->ds : NULL;
	auto_free uint32_t *was = alloc_array(ds ? ds->n_arrays : 0, sizeof(*was));
	auto_buf room = buf_of((size_t)1 << 20);
	char key[STORE_KEY_MAX + 1];
	int rc = was ? shown_documents_keep_old(l, e) : err_nomem(e);

	if (!rc && ds && old_ds)
		rc = ds_match(ds, old_ds, NULL, was, NULL, e);
	for (uint32_t i = 0; !rc && ds && i < ds->n_arrays; i++) {
		const char *path = ds_array_path_text(ds, i, &room);
		bool longer = old_ds && was[i] != DS_NONE &&
			      is_longer(&ds->arrays[i], &old_ds->arrays[was[i]]);

		rc = path ? 0 : err_nomem(e);
		for (size_t d = 0; !rc && d < ARRAY_DOCS; d++)
			if (store_key_join(path + 1, array_docs[d], strlen(array_docs[d]), key))
				rc = pin_key(l, old, &ds->arrays[i], key, longer, e);
	}
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
