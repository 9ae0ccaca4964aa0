/* SPDX-License-Identifier: BSD-3-Clause */
/* consolidated.c - consolidated metadata.
 *
 * Entries of changed documents are replaced, those of removed ones deleted; all others are kept
 * verbatim. A group below the root with consolidated metadata of its own is updated too. In Zarr
 * v3 all nodes of one group must be adjacent: otherwise zarr-python 3.0 does not find a group. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <string.h>

#define ALL3 "consolidated_metadata"

/* all_changed - the groups above all changed nodes. NULL with e set. */
static json_t *all_changed(const struct zarr_sink *s, struct err *e)
{
	json_t *set = json_object();
	int rc = set ? 0 : err_nomem(e);

	for (size_t i = 0; rc == 0 && i < s->n_docs; i++)
		if (s->docs[i].dirty && s->docs[i].v)
			rc = zs_above(set, s->docs[i].key, e);
	for (size_t i = 0; rc == 0 && i < s->n_gone; i++)
		rc = zs_above(set, s->gone[i], e);
	for (uint32_t i = 0; rc == 0 && i < s->now->ds.n_arrays; i++)
		if (s->arrays[i].was)
			rc = zs_above(set, s->arrays[i].key, e);
	if (rc == 0)
		return set;
	json_decref(set);
	return NULL;
}

/* ---- entries ---- */

/* zs_all_forget - remove a directory or document, with all entries below it. */
static void zs_all_forget(json_t *all, const char *key)
{
	size_t n = strlen(key);
	json_t *v;
	void *tmp;
	const char *k;

	json_object_foreach_safe(all, tmp, k, v) if (strncmp(k, key, n) == 0 &&
						     (k[n] == '\0' || k[n] == '/'))(void)
		json_object_del(all, k); /* it exists */
}

/* zs_all_enter - add a document; rel: its key relative to the consolidated metadata. */
static int zs_all_enter(uint32_t format, json_t *all, const char *rel, json_t *v, struct err *e)
{
	char name[STORE_KEY_MAX + 1];
	json_t *copy;

	if (format != 3)
		return json_object_set(all, rel, v) < 0 ? err_nomem(e) : 0;
	store_key_parent(rel, name);
	if (!*name)
		return 0; /* the containing document itself */
	copy = json_copy(v);
	if (copy)
		(void)json_object_del(copy, ALL3); /* it may have none */
	return json_object_set_new(all, name, copy) < 0 ? err_nomem(e) : 0;
}

/* enter_node - add the documents of a group or array that is moved, or that was missing. */
static int enter_node(struct zarr_sink *s, json_t *all, const char *dir, const char *key,
		      const char *from, bool array, struct err *e)
{
	int rc = 0;

	for (int attrs = 0; rc == 0 && attrs < (s->format == 3 ? 1 : 2); attrs++) {
		const char *rel;
		struct zs_doc *d;

		rc = zs_doc_in(s, key, from, zs_doc_name(s, array, attrs), false, &d, e);
		rel = rc ? NULL : store_key_below(dir, d->key);
		if (rel && d->v)
			rc = zs_all_enter(s->format, all, rel, d->v, e);
	}
	return rc;
}

/* enter_all - add all documents of the store. */
static int enter_all(struct zarr_sink *s, json_t *all, struct err *e)
{
	const struct dataset *ds = &s->real->ds;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < ds->n_groups + ds->n_arrays; i++) {
		const bool array = i >= ds->n_groups;
		const char *key = array ? zr_of(s->real)->arrays[i - ds->n_groups].meta->key
					: zs_real_key(s, i, e);

		if (!key)
			return -ENOMEM;
		if (!zs_is_gone(s, key))
			rc = enter_node(s, all, "", key, key, array, e);
	}
	return rc;
}

/* all_refresh - update the changed entries below a directory. */
static int all_refresh(struct zarr_sink *s, json_t *all, const char *dir, struct err *e)
{
	const char *rel;
	int rc = 0;

	for (size_t i = 0; i < s->n_gone; i++) {
		rel = store_key_below(dir, s->gone[i]);
		if (rel)
			zs_all_forget(all, rel);
	}
	for (uint32_t i = 0; rc == 0 && i < s->now->ds.n_arrays; i++)
		if (s->arrays[i].was)
			rc = enter_node(s, all, dir, s->arrays[i].key, s->arrays[i].was_key,
					true, e);
	for (size_t i = 0; rc == 0 && i < s->n_docs; i++) {
		const struct zs_doc *d = &s->docs[i];

		rel = d->dirty && d->v && strcmp(store_key_name(d->key), ".zmetadata") != 0
			      ? store_key_below(dir, d->key)
			      : NULL;
		if (rel)
			rc = zs_all_enter(s->format, all, rel, d->v, e);
	}
	return rc;
}

/* ---- the order of Zarr v3's ---- */

struct all_entry {
	const char *key;
	size_t depth, parent, at; /* bytes of the parent's path; original position */
};

static int by_group(const void *pa, const void *pb)
{
	const struct all_entry *a = pa, *b = pb;
	int rc;

	if (a->depth != b->depth)
		return a->depth < b->depth ? -1 : 1;
	rc = memcmp(a->key, b->key, a->parent < b->parent ? a->parent : b->parent);
	if (rc)
		return rc;
	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

static json_t *zs_all_sorted(json_t *all)
{
	size_t n = json_object_size(all), i = 0;
	auto_free struct all_entry *list = alloc_array(n, sizeof(*list));
	json_t *ret = list ? json_object() : NULL, *v;
	const char *k;

	if (!ret)
		return NULL;
	json_object_foreach(all, k, v)
	{
		list[i] = (struct all_entry){
			.key = k, .parent = store_key_parent_len(k), .at = i};
		for (const char *p = k; *p; p++)
			list[i].depth += *p == '/';
		i++;
	}
	qsort(list, n, sizeof(*list), by_group);
	for (i = 0; ret && i < n; i++)
		if (json_object_set(ret, list[i].key, json_object_get(all, list[i].key)) < 0) {
			json_decref(ret);
			ret = NULL;
		}
	return ret;
}

/* ---- one document of all ---- */

/* all_holder - the owner of the member `metadata`: .zmetadata, or a member of zarr.json.
 * NULL: absent and `make` is false. */
static int all_holder(struct zarr_sink *s, const char *dir, bool make, json_t **ret,
		      bool *ret_made, struct zs_doc **ret_doc, struct err *e)
{
	const char *name = s->format == 3 ? "zarr.json" : ".zmetadata";
	const char *empty = s->format == 3
				    ? "{\"kind\": \"inline\", \"must_understand\": false, "
				      "\"metadata\": {}}"
				    : "{\"metadata\": {}, \"zarr_consolidated_format\": 1}";
	struct zs_doc *d;
	json_t *v;
	int rc = zs_doc_in(s, dir, dir, name, false, &d, e);

	if (rc)
		return rc;
	*ret_doc = d;
	*ret_made = false;
	v = s->format == 3 ? json_object_get(d->v, ALL3) : d->v;
	if (json_is_object(json_object_get(v, "metadata")) || !make) {
		*ret = json_is_object(json_object_get(v, "metadata")) ? v : NULL;
		return 0;
	}
	*ret_made = true;
	if (json_read(empty, strlen(empty), ret, NULL) < 0)
		return err_nomem(e);
	if (s->format != 3) {
		json_decref(d->v);
		d->v = *ret;
		return 0;
	}
	return d->v && json_object_set_new(d->v, ALL3, *ret) == 0 ? 0 : err_nomem(e);
}

static int all_one(struct zarr_sink *s, const char *dir, struct err *e)
{
	const int want = s->opts.consolidated;
	bool make = dir[0] == '\0' && (want > 0 || (want < 0 && s->empty)), made;
	struct zs_doc *d;
	json_t *v, *all;
	int rc = all_holder(s, dir, make, &v, &made, &d, e);

	if (rc || !v)
		return rc;
	if (want == 0 && s->format == 3) {         /* it would be out of date */
		(void)json_object_del(d->v, ALL3); /* it existed */
		d->dirty = true;
		return 0;
	}
	if (want == 0) {
		d->dirty = false;
		return zs_txn_step(&s->txn, ZS_DROP, 0, d->key, e);
	}
	all = json_object_get(v, "metadata");
	if (made)
		rc = enter_all(s, all, e);
	rc = rc ? rc : all_refresh(s, all, dir, e);
	if (rc == 0 && s->format == 3) {
		all = zs_all_sorted(all);
		if (!all || json_object_set_new(v, "metadata", all) < 0)
			rc = err_nomem(e);
	}
	/* documents may have moved in memory since */
	rc = rc ? rc : all_holder(s, dir, false, &v, &made, &d, e);
	if (rc == 0)
		d->dirty = true;
	return rc;
}

int zs_consolidate(struct zarr_sink *s, struct err *e)
{
	json_t *set = all_changed(s, e), *v;
	const char *dir;
	int rc = set ? 0 : e && e->code ? e->code : -ENOMEM;

	json_object_foreach(set, dir, v) if (rc == 0 && !zs_is_gone(s, dir)) rc =
		all_one(s, dir, e);
	json_decref(set);
	return rc;
}
