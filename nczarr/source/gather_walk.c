/* SPDX-License-Identifier: BSD-3-Clause */
/* gather_walk.c - collects the documents of a store by a walk.
 *
 * A walk sends as few requests as possible. A group's directory is listed once; the listing has
 * its documents and its child directories. A child is an array if it has an array's document,
 * which is looked up by name: an array's directory is never listed, it may contain millions of
 * chunks. If directories cannot be listed, documents must name the children (see below). */
#include "nczarr/source/gather_int.h"

#include <errno.h>
#include <string.h>

/* see_dir - record the version of a local directory; a remote one is not listed again. */
static int see_dir(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	return l->s->store->remote ? 0 : zr_load_see(l, d->key, d->version, e);
}

bool zr_listing_add(struct zr_listing *s, const char *name, uint64_t version)
{
	char *copy;

	if (s->n + s->l->n_todo >= ZR_ITEMS_MAX) {
		s->l->limit = true;
		s->rc = -ERANGE;
		return false;
	}
	copy = strdup(name);
	if (!copy || grow_array(&s->dirs, &s->c, s->n + 1, sizeof(*s->dirs)) < 0) {
		free(copy);
		s->rc = -ENOMEM;
		return false;
	}
	s->dirs[s->n++] = (struct zr_child){.name = copy, .version = version};
	return true;
}

static bool walk_list_one(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct zr_listing *s = arg;
	const enum gathered_doc d = zr_doc_of(name);

	if (d == DOC_N)
		return is_dir ? zr_listing_add(s, name, st ? st->version : 0) : true;
	s->has[d] = true;
	s->st[d] = st ? *st : (struct store_stat){.is_dir = is_dir};
	return true;
}

void zr_listing_release(struct zr_listing *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->dirs[i].name);
	free(s->dirs);
}

static int walk_list_dir(struct zr_load *l, const char *dir, struct zr_listing *ret,
			 struct err *e)
{
	struct err why = ERR_INIT;
	int rc;

	*ret = (struct zr_listing){.l = l};
	rc = store_list(l->s->store, dir, true, walk_list_one, ret, &why);
	if (rc == -ENOENT)
		rc = 0;
	else if (rc < 0)
		rc = err_set(e, rc, "%s", why.msg);
	if (rc == 0 && ret->rc == -ENOMEM)
		rc = err_nomem(e);
	else if (rc == 0 && ret->rc < 0)
		rc = err_set(e, ret->rc, "'%.200s': more than %d directories", dir,
			     ZR_ITEMS_MAX);
	return rc;
}

static int name_order(const void *pa, const void *pb)
{
	const struct zr_child *a = pa, *b = pb;

	/* in reverse: the queue is processed from its end */
	return strcmp(b->name, a->name);
}

/* push_children - queue the directories of a group. */
static int push_children(struct zr_load *l, const struct zr_todo *d, struct zr_listing *s,
			 bool v3, struct err *e)
{
	int rc = 0;

	if (s->n && d->depth >= ZR_DEPTH_MAX)
		return err_set(e, -ERANGE, "'%.200s': groups are nested deeper than %d", d->key,
			       ZR_DEPTH_MAX);
	if (s->n)
		qsort(s->dirs, s->n, sizeof(*s->dirs), name_order);
	for (size_t i = 0; i < s->n && rc == 0; i++) {
		struct zr_todo x = {
			.depth = d->depth + 1, .v3 = v3, .version = s->dirs[i].version};

		rc = zr_load_key(l, d->key, s->dirs[i].name, &x.key, e);
		if (rc == 0 &&
		    grow_array(&l->todo, &l->c_todo, l->n_todo + 1, sizeof(*l->todo)) < 0)
			rc = err_nomem(e);
		if (rc == 0)
			l->todo[l->n_todo++] = x;
	}
	return rc;
}

/* walk_rest - load the other documents of an item; those that a listing does not have are
 * absent. */
static int walk_rest(struct zr_load *l, const char *dir, const struct zr_listing *s,
		     const json_t **d, bool array, struct err *e)
{
	static const enum gathered_doc of_array[] = {DOC_ZATTRS, DOC_NCZARRAY, DOC_NCZVAR,
						     DOC_NCZATTRS, DOC_NCZATTR};
	static const enum gathered_doc of_group[] = {DOC_ZGROUP, DOC_ZATTRS, DOC_NCZGROUP,
						     DOC_NCZATTRS, DOC_NCZATTR};
	const enum gathered_doc *want = array ? of_array : of_group;
	int rc = 0;

	for (size_t i = 0; i < 5 && rc == 0; i++) {
		enum gathered_doc w = want[i];
		const char *key;

		if (w != DOC_ZATTRS && w != DOC_ZGROUP && !l->v1)
			continue;
		if ((w == DOC_NCZVAR && d[DOC_NCZARRAY]) ||
		    (w == DOC_NCZATTR && d[DOC_NCZATTRS]))
			continue; /* the newer name exists */
		if (!s || s->has[w]) {
			rc = zr_load_doc(l, dir, zr_doc_names[w], s ? &s->st[w] : NULL, &d[w],
					 e);
		} else {
			rc = zr_load_key(l, dir, zr_doc_names[w], &key, e);
			rc = rc < 0 ? rc : zr_load_see(l, key, 0, e);
		}
	}
	return rc;
}

/* walk_commit - record a directory's documents, if they make it an item. */
static int walk_commit(struct zr_load *l, const struct zr_todo *d, const json_t **docs,
		       bool *ret_group, struct err *e)
{
	struct zr_item it = {0};
	bool is_item;
	int rc = zr_load_item(l, docs, &it, &is_item, e);

	if (rc < 0)
		return zr_load_name(d->key, docs, rc, e);
	*ret_group = is_item && !it.is_array;
	return is_item ? zr_load_keep(l, d->key, d->depth, &it, e) : 0;
}

/* walk_unknown - the error for a group whose members cannot be determined. It must not be
 * presented as empty. */
static int walk_unknown(struct zr_load *l, const char *dir, struct err *e)
{
	static const char why[] =
		"the members of this group are unknown: the store has no consolidated "
		"metadata, and the web server cannot list directories: run "
		"zarr.consolidate_metadata(store) where it was written, or use s3://";

	if (l->s->opts.keep_going)
		return zr_note(l->t, dir, e, "%s", why);
	return err_set(e, -EOPNOTSUPP, "'/%.200s': %s", dir, why);
}

/* walk_below - the members of a group: from its listing, or, without listings, from its
 * documents. */
static int walk_below(struct zr_load *l, const char *dir, const json_t **docs,
		      struct zr_listing *ret, struct err *e)
{
	bool said = false;
	int rc;

	if (!l->s->base.unlisted)
		return walk_list_dir(l, dir, ret, e);
	rc = zr_remote_children(l, docs, ret, &said, e);
	return rc < 0 || said ? rc : walk_unknown(l, dir, e);
}

int zr_look_v3(struct zr_load *l, const struct zr_todo *d, const struct store_stat *st,
	       bool *ret, struct err *e)
{
	const json_t *docs[DOC_N] = {NULL}, *metadata = NULL;
	struct zr_listing s;
	bool group;
	int rc = zr_load_doc(l, d->key, zr_doc_names[DOC_ZJSON], st, &docs[DOC_ZJSON], e);

	*ret = rc == 0 && docs[DOC_ZJSON];
	if (!*ret)
		return rc;
	if (d->depth == 0 && !l->s->borrowed) {
		rc = zr_inline_metadata(docs[DOC_ZJSON], &metadata, e);
		if (rc == 0 && metadata)
			rc = zr_consolidated(l, metadata, docs[DOC_ZJSON], e);
		if (rc < 0 || metadata)
			return rc < 0 ? err_wrap(e, rc, "'zarr.json'") : 0;
	}
	rc = walk_commit(l, d, docs, &group, e);
	if (rc < 0 || !group)
		return rc;
	rc = see_dir(l, d, e);
	if (rc < 0)
		return rc;
	rc = walk_below(l, d->key, docs, &s, e);
	rc = rc ? rc : push_children(l, d, &s, true, e);
	zr_listing_release(&s);
	return rc;
}

/* look_group - a directory without .zarray: a group, or unknown. If directories cannot be listed,
 * its documents are requested by name. */
static int look_group(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	const bool ask = l->s->base.unlisted;
	const json_t *docs[DOC_N] = {NULL};
	struct zr_listing s = {.l = l};
	bool group = false, v3 = false;
	int rc = ask ? 0 : walk_list_dir(l, d->key, &s, e);

	if (rc == 0 && d->depth == 0 && (ask || s.has[DOC_NCZARR])) {
		rc = zr_load_doc(l, "", zr_doc_names[DOC_NCZARR],
				 ask ? NULL : &s.st[DOC_NCZARR], &docs[DOC_NCZARR], e);
		l->v1 = docs[DOC_NCZARR] != NULL;
		l->t->superblock = docs[DOC_NCZARR];
	}
	if (rc == 0 && d->depth && !s.has[DOC_ZGROUP] && s.has[DOC_ZJSON]) {
		rc = zr_look_v3(l, d, &s.st[DOC_ZJSON], &v3, e);
		goto end;
	}
	if (rc == 0 && !ask)
		zr_remote_want_docs(l, d->key, &s);
	if (rc == 0)
		rc = walk_rest(l, d->key, ask ? NULL : &s, docs, false, e);
	rc = rc ? rc : walk_commit(l, d, docs, &group, e);
	if (rc == 0 && !group && !ask && d->depth == 0) {
		/* a root with members may have no document */
		struct zr_item it = {.format = l->v1 ? 1 : 2, .attrs = docs[DOC_ZATTRS]};

		group = true;
		rc = zr_load_keep(l, "", 0, &it, e);
	}
	if (rc == 0 && !group && ask && d->depth) {
		rc = zr_look_v3(l, d, NULL, &v3, e);
		if (rc == 0 && !v3)
			rc = zr_note(l->t, d->key, e,
				     "is listed by its group but has no metadata files");
	}
	if (rc == 0 && group)
		rc = ask ? walk_below(l, d->key, docs, &s, e) : see_dir(l, d, e);
	if (rc == 0 && group)
		rc = push_children(l, d, &s, false, e);
end:
	zr_listing_release(&s);
	return rc;
}

int zr_look(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	const json_t *docs[DOC_N] = {NULL};
	bool hit;
	int rc;

	if (d->v3)
		return zr_look_v3(l, d, NULL, &hit, e);
	rc = zr_load_doc(l, d->key, zr_doc_names[DOC_ZARRAY], NULL, &docs[DOC_ZARRAY], e);
	if (rc < 0)
		return rc;
	if (!docs[DOC_ZARRAY])
		return look_group(l, d, e);
	rc = walk_rest(l, d->key, NULL, docs, true, e);
	return rc < 0 ? rc : walk_commit(l, d, docs, &hit, e);
}

/* walk_visit - visit one directory below the root. With keep_going an invalid one is
 * skipped. */
static int walk_visit(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	struct err why = ERR_INIT;

	if (zr_look(l, d, &why) == 0)
		return 0;
	return l->limit ? err_set(e, why.code, "%s", why.msg)
			: zr_leave_out(l->s, l->t, d->key, "", &why, e);
}

/* walk_levels - for a remote store: request the documents of all directories of a level before
 * waiting for the first. */
static int walk_levels(struct zr_load *l, struct err *e)
{
	int rc = 0;

	while (rc == 0 && l->n_todo > 0) {
		auto_free struct zr_todo *level = l->todo;
		size_t n = l->n_todo;

		l->todo = NULL;
		l->n_todo = l->c_todo = 0;
		for (size_t i = 0; i < n && rc == 0; i++) {
			if (i % ZR_REMOTE_DIRS == 0)
				zr_remote_want(l, level + i, u64_min(n - i, ZR_REMOTE_DIRS));
			rc = walk_visit(l, &level[i], e);
		}
	}
	return rc;
}

int zr_walk(struct zr_load *l, struct err *e)
{
	int rc = 0;

	if (l->s->store->remote)
		return walk_levels(l, e);
	while (rc == 0 && l->n_todo > 0) {
		struct zr_todo d = l->todo[--l->n_todo];

		rc = walk_visit(l, &d, e);
	}
	return rc;
}

/* Documents of a remote store are requested in parallel, so that the latency depends on the depth
 * of the store and not on its size.
 *
 * If a store cannot be listed, documents must name the members. NCZarr's groups do; so do images
 * (OME-Zarr: multiscales, labels, plates and wells). The names are only hints for requests. */

/* walk_want - add a document. */
static void walk_want(struct zr_wants *w, const char *dir, const char *name)
{
	char key[STORE_KEY_MAX + 1];

	if (store_key_join(dir, name, strlen(name), key))
		zr_wants_add(w, key, 0, UINT64_MAX);
}

/* walk_want_all - add the documents of a list, which ends with DOC_N. */
static void walk_want_all(struct zr_wants *w, const char *dir, const enum gathered_doc *docs)
{
	for (; *docs != DOC_N; docs++)
		walk_want(w, dir, zr_doc_names[*docs]);
}

void zr_remote_want_root(struct store *s, bool rest)
{
	static const enum gathered_doc others[] = {DOC_ZARRAY, DOC_ZGROUP, DOC_ZATTRS,
						   DOC_NCZARR, DOC_N};
	struct zr_wants *w = zr_wants_new(s);

	if (rest) {
		walk_want_all(w, "", others);
	} else {
		walk_want(w, "", zr_doc_names[DOC_ZJSON]);
		walk_want(w, "", ".zmetadata");
	}
	zr_wants_done(w);
}

/* groups_too - prefetch the group documents of directories that are no arrays; waits for the array
 * documents. */
static void groups_too(struct zr_load *l, const struct zr_todo *d, size_t n, struct zr_wants *w)
{
	for (size_t i = 0; i < n; i++) {
		struct store_stat st;
		char key[STORE_KEY_MAX + 1];

		if (d[i].v3 || !store_key_join(d[i].key, ".zarray", 7, key) ||
		    store_stat(l->s->store, key, &st, NULL) != -ENOENT)
			continue;
		walk_want(w, d[i].key, zr_doc_names[DOC_ZGROUP]);
		if (l->v1)
			walk_want(w, d[i].key, zr_doc_names[DOC_NCZGROUP]);
	}
}

void zr_remote_want(struct zr_load *l, const struct zr_todo *d, size_t n)
{
	static const enum gathered_doc v3[] = {DOC_ZJSON, DOC_N};
	static const enum gathered_doc v2[] = {DOC_ZARRAY, DOC_ZATTRS, DOC_N};
	static const enum gathered_doc v1[] = {DOC_ZARRAY, DOC_ZATTRS, DOC_NCZARRAY,
					       DOC_NCZATTRS, DOC_N};
	struct zr_wants *w = zr_wants_new(l->s->store);

	if (!w)
		return;
	for (size_t i = 0; i < n; i++)
		walk_want_all(w, d[i].key, d[i].v3 ? v3 : l->v1 ? v1 : v2);
	zr_wants_flush(w);
	groups_too(l, d, n, w);
	zr_wants_done(w);
}

void zr_remote_want_docs(struct zr_load *l, const char *dir, const struct zr_listing *s)
{
	struct zr_wants *w = zr_wants_new(l->s->store);

	for (int i = 0; w && i < DOC_N; i++)
		if (s->has[i] && (i == DOC_ZGROUP || i == DOC_ZATTRS || l->v1))
			walk_want(w, dir, zr_doc_names[i]);
	zr_wants_done(w);
}

/* ---- children that documents name ---- */

/* walk_add - add a name, once. Invalid names are ignored. */
static int walk_add(struct zr_listing *s, const json_t *name, struct err *e)
{
	struct ds_text t;

	if (!json_text_of(name, &t) || t.len == 0 || t.len > 255 || strlen(t.s) != t.len ||
	    strchr(t.s, '/') || !store_key_ok(t.s))
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->dirs[i].name, t.s) == 0)
			return 0;
	if (zr_listing_add(s, t.s, 0))
		return 0;
	return s->rc == -ENOMEM
		       ? err_nomem(e)
		       : err_set(e, s->rc, "more than %d groups and arrays", ZR_ITEMS_MAX);
}

/* walk_add_all - add the names of a list or, with `member`, the member of that name of each
 * of its objects. *ret_said: the list exists. */
static int walk_add_all(struct zr_listing *s, const json_t *list, const char *member,
			bool *ret_said, struct err *e)
{
	int rc = 0;

	if (json_kind(list) != JSON_IS_LIST)
		return 0;
	*ret_said = true;
	for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
		const json_t *v = json_array_get(list, i);

		rc = walk_add(s, member ? json_get(v, member) : v, e);
	}
	return rc;
}

/* images - apply the conventions of OME-Zarr. attrs: of a group, or their member "ome". */
static int images(struct zr_listing *s, const json_t *attrs, bool *ret_said, struct err *e)
{
	const json_t *scales = json_get(attrs, "multiscales");
	int rc = walk_add_all(s, json_get(attrs, "labels"), NULL, ret_said, e);

	rc = rc ? rc : walk_add_all(s, json_get(json_get(attrs, "well"), "images"), "path",
				    ret_said, e);
	for (size_t i = 0;
	     json_kind(scales) == JSON_IS_LIST && i < json_array_size(scales) && rc == 0; i++)
		rc = walk_add_all(s, json_get(json_array_get(scales, i), "datasets"), "path",
				  ret_said, e);
	return rc;
}

int zr_remote_children(struct zr_load *l, const json_t **docs, struct zr_listing *ret,
		       bool *ret_said, struct err *e)
{
	const json_t *v3 = docs[DOC_ZJSON];
	const struct zr_item it = {
		.meta = v3 ? v3 : docs[DOC_ZGROUP],
		.attrs = v3 ? json_get(v3, "attributes") : docs[DOC_ZATTRS],
		.extra = docs[DOC_NCZGROUP],
	};
	const json_t *group = zr_nc_group(&it);
	int rc;

	*ret = (struct zr_listing){.l = l};
	rc = walk_add_all(ret, zr_nc_vars(group), NULL, ret_said, e);
	rc = rc ? rc : walk_add_all(ret, json_get(group, "groups"), NULL, ret_said, e);
	rc = rc ? rc : images(ret, it.attrs, ret_said, e);
	rc = rc ? rc : images(ret, json_get(it.attrs, "ome"), ret_said, e);
	return rc;
}

/* ---- bids ---- */

/* walk_has - whether one of the documents exists, or its absence is not proven. */
static bool walk_has(struct store *s, const char *const *names, size_t n)
{
	struct store_stat st;

	for (size_t i = 0; i < n; i++)
		if (store_stat(s, names[i], &st, NULL) != -ENOENT)
			return true;
	return false;
}

int zr_remote_bid(struct store *s)
{
	static const char *const first[] = {"zarr.json", ".zmetadata"};
	static const char *const more[] = {".zarray", ".zgroup", ".nczarr"};

	zr_remote_want_root(s, false);
	if (walk_has(s, first, ARRAY_LEN(first)))
		return 10;
	zr_remote_want_root(s, true);
	return walk_has(s, more, ARRAY_LEN(more)) ? 10 : 1;
}
