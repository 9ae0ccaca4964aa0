/* SPDX-License-Identifier: BSD-3-Clause */
/* gather.c - the metadata documents of a store: consolidated, or collected by a walk
 * (gather_walk.c).
 *
 * Both give a list of directories with their documents, in any order. Sorting them by depth and
 * path puts parents before children and makes them items.
 *
 * The version of each document before it was read is recorded for changes.c. */
#include "nczarr/source/gather_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const zr_doc_names[DOC_N] = {
	".zarray",   ".zgroup",   ".zattrs", "zarr.json", ".nczarr",
	".nczgroup", ".nczarray", ".nczvar", ".nczattrs", ".nczattr",
};

enum gathered_doc zr_doc_of(const char *name)
{
	int i = 0;

	while (i < DOC_N && strcmp(name, zr_doc_names[i]) != 0)
		i++;
	return (enum gathered_doc)i;
}

/* ---- notes ---- */

int zr_full(const struct arena *a, struct err *e)
{
	return arena_full(a, e, "the metadata");
}

int zr_note(struct zr_tree *t, const char *key, struct err *e, const char *fmt, ...)
{
	char where[202];
	va_list ap;
	int rc;

	(void)snprintf(where, sizeof(where), "/%s", key); /* a long key is cut */
	va_start(ap, fmt);
	rc = ds_notes_add(&t->notes, t->arena, where, strlen(where), fmt, ap, e);
	va_end(ap);
	return rc;
}

int zr_leave_out(const struct zr_source *s, struct zr_tree *t, const char *key,
		 const char *what, const struct err *why, struct err *e)
{
	bool about_it = why->code != -ENOMEM && why->code != -EIO && why->code != -ESTALE &&
			why->code != -EINTR;

	if (!s->opts.keep_going || !about_it)
		return err_set(e, why->code, "%s", why->msg);
	return zr_note(t, key, e, "%sis left out: %s", what, why->msg);
}

const char *zr_doc_name(const struct zr_item *it)
{
	return zr_doc_names[it->format == 3 ? DOC_ZJSON
			    : it->is_array  ? DOC_ZARRAY
					    : DOC_ZGROUP];
}

const char *zr_attrs_name(const struct zr_item *it)
{
	return zr_doc_names[it->format == 3 ? DOC_ZJSON : DOC_ZATTRS];
}

int zr_wrap_key(const struct zr_tree *t, const struct zr_item *it, const char *doc, int rc,
		struct err *e)
{
	const char *root = it->format == 3 ? "zarr.json" : ".zmetadata";
	bool within = t->consolidated && (it->format != 3 || it->key[0]);

	return err_wrap(e, rc, "%s%s%s'%.200s%s%s'", within ? "'" : "", within ? root : "",
			within ? "': " : "", it->key, it->key[0] ? "/" : "", doc);
}

/* ---- single documents ---- */

int zr_load_key(struct zr_load *l, const char *dir, const char *name, const char **ret,
		struct err *e)
{
	char key[STORE_KEY_MAX + 1];

	if (!store_key_join(dir, name, strlen(name), key))
		return err_set(e, -ERANGE, "'%.100s...': the key is longer than %d bytes", dir,
			       STORE_KEY_MAX);
	*ret = arena_strdup(l->arena, key);
	return *ret ? 0 : zr_full(l->arena, e);
}

int zr_load_see(struct zr_load *l, const char *key, uint64_t version, struct err *e)
{
	struct zr_source *s = l->s;

	if (grow_array(&s->seen, &s->c_seen, s->n_seen + 1, sizeof(*s->seen)) < 0)
		return err_nomem(e);
	s->seen[s->n_seen++] = (struct zr_doc_seen){.key = key, .version = version};
	return 0;
}

static int gather_own(struct zr_tree *t, json_t *v, struct err *e)
{
	if (!v || grow_array(&t->docs, &t->c_docs, t->n_docs + 1, sizeof(json_t *)) < 0) {
		json_decref(v);
		return err_nomem(e);
	}
	t->docs[t->n_docs++] = v;
	return 0;
}

/* cost_of - estimated memory of a document's values. */
static uint64_t cost_of(const uint8_t *p, size_t n)
{
	uint64_t cost = n;

	for (size_t i = 0; i < n; i++)
		cost += p[i] == '{'                  ? 350
			: p[i] == '['                ? 150
			: p[i] == ',' || p[i] == ':' ? 80
						     : 0;
	return cost;
}

/* has_room - whether the documents, with this cost, fit into half of the memory budget. */
static int has_room(struct zr_load *l, uint64_t cost, struct err *e)
{
	const uint64_t max = l->s->opts.max_meta_bytes;

	l->limit = l->cost > max || cost > max - l->cost;
	if (!l->limit)
		return 0;
	return err_set(
		e, -ERANGE,
		"the metadata files need more than %" PRIu64 " bytes (half of -o memory)", max);
}

static int gather_parse(struct zr_load *l, const struct buf *b, const json_t **ret,
			struct err *e)
{
	const uint64_t cost = cost_of(b->data, b->len);
	json_t *v = NULL;
	int rc = has_room(l, cost, e);

	if (rc < 0)
		return rc;
	l->cost += cost;
	rc = json_read(b->data, b->len, &v, e);
	rc = rc ? rc : gather_own(l->t, v, e);
	if (rc == 0 && json_kind(v) != JSON_IS_OBJECT)
		rc = err_set(e, -EBADMSG, "not a JSON object");
	if (rc == 0)
		*ret = v;
	return rc;
}

/* is_web_page - whether a document starts like a web page. */
static bool is_web_page(const struct buf *b)
{
	size_t i = 0;

	while (i < b->len && (b->data[i] == ' ' || (b->data[i] >= '\t' && b->data[i] <= '\r')))
		i++;
	return i < b->len && b->data[i] == '<';
}

/* load_doc - read and parse the document of st; *ret stays NULL if it was removed. */
static int load_doc(struct zr_load *l, const char *key, const struct store_stat *st,
		    const json_t **ret, struct err *e)
{
	auto_buf b = buf_of(ZR_DOC_MAX);
	struct err why = ERR_INIT;
	int rc;

	if (st->is_dir)
		return err_set(e, -EBADMSG,
			       "'%.200s' is a directory instead of a metadata file", key);
	if (st->size > ZR_DOC_MAX)
		return err_set(e, -ERANGE, "'%.200s' has %" PRIu64 " bytes, the limit is %zu",
			       key, st->size, ZR_DOC_MAX);
	rc = has_room(l, st->size, &why);
	if (rc < 0)
		return err_set(e, rc, "'%.200s': %s", key, why.msg);
	rc = store_get(l->s->store, key, &b, NULL, &why);
	if (rc == 0 && !buf_ok(&b)) {
		rc = err_nomem(&why);
	} else if (rc == 0) {
		rc = gather_parse(l, &b, ret, &why);
		if (rc == -EBADMSG && l->s->store->remote && is_web_page(&b))
			(void)err_set(&why, rc,
				      "it is a web page or XML instead of JSON: does the "
				      "server answer every request with it?");
		if (rc < 0)
			(void)err_wrap(&why, rc, "'%.200s'", key);
	}
	if (rc == -ENOENT) /* removed meanwhile: s->seen reveals it */
		return 0;
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

int zr_load_doc(struct zr_load *l, const char *dir, const char *name,
		const struct store_stat *st, const json_t **ret, struct err *e)
{
	struct store_stat own_st = {0};
	struct err why = ERR_INIT;
	const char *key;
	int rc = zr_load_key(l, dir, name, &key, e);

	*ret = NULL;
	if (rc == 0 && !st) {
		rc = store_stat(l->s->store, key, &own_st, &why);
		if (rc == -ENOENT)
			return zr_load_see(l, key, 0, e);
		if (rc < 0)
			return err_set(e, rc, "%s", why.msg);
		st = &own_st;
	}
	rc = rc ? rc : zr_load_see(l, key, st->version, e);
	return rc < 0 ? rc : load_doc(l, key, st, ret, e);
}

int zr_format_is(const json_t *v, uint64_t want, struct err *e)
{
	uint64_t got;

	if (json_u64(json_get(v, "zarr_format"), &got) < 0)
		return err_set(e, -EBADMSG, "zarr_format is missing or not a number");
	if (got != want)
		return err_set(e, got > 3 ? -EOPNOTSUPP : -EBADMSG,
			       "zarr_format is %" PRIu64 ", not %" PRIu64, got, want);
	return 0;
}

/* ---- directories to items ---- */

static int item_v3(const json_t *v, struct zr_item *it, struct err *e)
{
	const json_t *type = json_get(v, "node_type"), *attrs = json_get(v, "attributes");
	int rc = zr_format_is(v, 3, e);

	if (rc < 0)
		return rc;
	it->is_array = json_is(type, "array");
	if (!it->is_array && !json_is(type, "group"))
		return err_set(e, -EBADMSG, "node_type is neither 'array' nor 'group'");
	if (json_kind(attrs) != JSON_IS_NULL && json_kind(attrs) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "attributes is not an object");
	it->format = 3;
	it->meta = v;
	it->attrs = json_kind(attrs) == JSON_IS_OBJECT ? attrs : NULL;
	return 0;
}

int zr_load_item(struct zr_load *l, const json_t **d, struct zr_item *it, bool *ret,
		 struct err *e)
{
	const json_t *types = d[DOC_NCZATTRS] ? d[DOC_NCZATTRS] : d[DOC_NCZATTR];
	json_t *v;
	int rc = 0;

	*ret = d[DOC_ZARRAY] || d[DOC_ZGROUP] || d[DOC_NCZGROUP] || d[DOC_ZJSON];
	it->attrs = d[DOC_ZATTRS];
	it->format = l->v1 ? 1 : 2;
	if (!*ret)
		return 0;
	if (!d[DOC_ZARRAY] && d[DOC_ZJSON])
		return item_v3(d[DOC_ZJSON], it, e);
	it->is_array = d[DOC_ZARRAY] != NULL;
	if (it->is_array) {
		it->meta = d[DOC_ZARRAY];
		it->extra = d[DOC_NCZARRAY] ? d[DOC_NCZARRAY] : d[DOC_NCZVAR];
	} else {
		it->meta = d[DOC_ZGROUP];
		it->extra = d[DOC_NCZGROUP];
		rc = it->meta ? zr_format_is(it->meta, 2, e) : 0;
	}
	if (rc || !l->v1 || !types)
		return rc;
	/* merge the types of NCZarr's object into the attributes, as later versions store them */
	v = it->attrs ? json_copy(zr_mutable(it->attrs)) : json_object();
	it->attrs = v;
	rc = gather_own(l->t, v, e);
	return rc == 0 && json_object_set(v, "_NCZARR_ATTR", zr_mutable(types)) < 0
		       ? err_nomem(e)
		       : rc;
}

int zr_load_name(const char *dir, const json_t **docs, int rc, struct err *e)
{
	enum gathered_doc d = docs[DOC_ZARRAY]  ? DOC_ZARRAY
			      : docs[DOC_ZJSON] ? DOC_ZJSON
						: DOC_ZGROUP;

	return err_wrap(e, rc, "'%.200s%s%s'", dir, dir[0] ? "/" : "", zr_doc_names[d]);
}

int zr_load_keep(struct zr_load *l, const char *key, uint32_t depth, const struct zr_item *it,
		 struct err *e)
{
	struct zr_found *f;

	l->limit |= l->n_found >= ZR_ITEMS_MAX;
	if (l->limit)
		return err_set(e, -ERANGE, "more than %d groups and arrays", ZR_ITEMS_MAX);
	if (grow_array(&l->found, &l->c_found, l->n_found + 1, sizeof(*l->found)) < 0)
		return err_nomem(e);
	f = &l->found[l->n_found++];
	*f = (struct zr_found){.key = key, .depth = depth, .item = *it};
	f->item.key = key;
	return 0;
}

/* char_order - the end of a name sorts before its continuations. */
static int char_order(char c)
{
	return c == '/' ? 1 : c ? (uint8_t)c + 1 : 0;
}

int zr_load_order(uint32_t da, const char *a, uint32_t db, const char *b)
{
	if (da != db)
		return da < db ? -1 : 1;
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return char_order(*a) - char_order(*b);
}

static int found_order(const void *pa, const void *pb)
{
	const struct zr_found *a = pa, *b = pb;

	return zr_load_order(a->depth, a->key, b->depth, b->key);
}

/* link_items - make items of the list. Directories below an array or below a skipped item are
 * none. */
static int link_items(struct zr_load *l, struct err *e)
{
	struct zr_tree *t = l->t;
	auto_free uint32_t *at = alloc_array(l->n_found, sizeof(*at));
	auto_free char *tmp = alloc_array(STORE_KEY_MAX + 1, 1);
	int rc = 0;

	if (!at || !tmp)
		return err_nomem(e);
	qsort(l->found, l->n_found, sizeof(*l->found), found_order);
	t->items = arena_alloc(l->arena, l->n_found, sizeof(*t->items));
	if (!t->items)
		return zr_full(l->arena, e);
	for (size_t i = 0; i < l->n_found && rc == 0; i++) {
		const struct zr_found *f = &l->found[i], *up = NULL;
		uint32_t parent = DS_NONE;

		if (f->depth) {
			store_key_parent(f->key, tmp);
			up = bsearch(&(struct zr_found){.key = tmp, .depth = f->depth - 1},
				     l->found, l->n_found, sizeof(*f), found_order);
		}
		if (up)
			parent = at[up - l->found];

		at[i] = DS_NONE;
		if (f->depth && (parent == DS_NONE || t->items[parent].is_array)) {
			rc = zr_note(t, f->key, e, "is left out: it is not in a group");
			continue;
		}
		at[i] = t->n_items;
		t->items[t->n_items] = f->item;
		t->items[t->n_items].name = store_key_name(f->key);
		t->items[t->n_items++].parent = parent;
	}
	return rc;
}

/* root_version - version of the root's directory; not of a remote one. */
static int root_version(struct zr_load *l, uint64_t *ret, struct err *e)
{
	struct err why = ERR_INIT;
	struct store_stat st;
	int rc;

	*ret = 0;
	if (l->s->store->remote)
		return 0;
	rc = store_stat(l->s->store, "", &st, &why);
	if (rc < 0 && rc != -ENOENT)
		return err_set(e, rc, "%s", why.msg);
	*ret = rc == 0 ? st.version : 0;
	return 0;
}

/* load_v2 - load consolidated metadata, or the root. why: error of zarr.json, if access was
 * denied. */
static int load_v2(struct zr_load *l, const struct zr_todo *root, const struct err *why,
		   struct err *e)
{
	const json_t *v = NULL;
	int rc = l->s->borrowed ? 0 : zr_load_doc(l, "", ".zmetadata", NULL, &v, e);

	if (why->code && rc == 0 && !v)
		return err_set(e, why->code, "%s", why->msg);
	if (rc == 0 && v) {
		rc = zr_consolidated_v2(l, v, e);
		return rc < 0 ? err_wrap(e, rc, "'.zmetadata'") : 0;
	}
	zr_remote_want_root(l->s->store, true);
	rc = rc ? rc : zr_look(l, root, e);
	return rc < 0 ? rc : zr_walk(l, e);
}

/* gather_load_all - Zarr v3 first, as in readers of both; consolidated metadata before a walk. If
 * the service answers -EACCES for absent objects, absence cannot be proven: the source is then one
 * that cannot be listed. */
static int gather_load_all(struct zr_load *l, struct err *e)
{
	struct zr_todo root = {.key = ""};
	struct err why = ERR_INIT;
	struct store *s = l->s->store;
	struct store_stat st;
	bool hit = false;
	int rc = root_version(l, &root.version, e);

	if (rc < 0)
		return rc;
	zr_remote_want_root(s, false);
	rc = zr_look_v3(l, &root, NULL, &hit, &why);
	if (rc == -EACCES && s->remote && !s->unlisted)
		l->s->base.unlisted = true;
	else if (rc < 0)
		return err_set(e, rc, "%s", why.msg);
	if (!hit)
		return load_v2(l, &root, &why, e);
	if (s->remote && !s->unlisted && store_stat(s, ".zmetadata", &st, NULL) == -EACCES)
		l->s->base.unlisted = true;
	return zr_walk(l, e);
}

int zr_tree_load(struct zr_source *s, struct zr_tree *ret, struct err *e)
{
	struct zr_tree t = {.arena = &s->base.ds.arena};
	struct zr_load l = {.s = s, .t = &t, .arena = &s->base.ds.arena};
	int rc = gather_load_all(&l, e);
	const struct zr_item *root = l.n_found ? &l.found[0].item : NULL;

	/* a local directory may be an empty store, but an address may be wrong */
	if (rc == 0 && s->store->remote && !s->borrowed &&
	    (!root || (l.n_found == 1 && !root->meta && !root->extra && !root->attrs)))
		rc = err_set(e, -EBADMSG,
			     "no Zarr metadata found (zarr.json, .zmetadata, .zgroup, .zarray, "
			     ".nczarr): give the root of the Zarr store itself");
	rc = rc ? rc : link_items(&l, e);
	free(l.found);
	free(l.todo);
	if (rc == 0 && !t.superblock && t.n_items)
		t.superblock = zr_nc_superblock(&t.items[0]);
	if (rc < 0)
		zr_tree_release(&t);
	else
		*ret = t;
	return rc;
}

void zr_tree_release(struct zr_tree *t)
{
	for (size_t i = 0; i < t->n_docs; i++)
		json_decref(t->docs[i]);
	free(t->docs);
	ds_notes_release(&t->notes);
	*t = (struct zr_tree){0};
}

/* Consolidated metadata: .zmetadata of Zarr v2, the member consolidated_metadata of a Zarr v3
 * root.
 *
 * Each entry becomes a pair of directory and document; sorting groups them by directory. Groups
 * without an entry exist if they have members. */

/* gather_pair - one entry: a directory's document; DOC_N: only that the directory exists. */
struct gather_pair {
	const char *dir;
	uint32_t depth;
	enum gathered_doc doc;
	const json_t *v;
};

struct gather_pairs {
	struct gather_pair *v;
	size_t n, c;
	const char *last; /* group of the previous entry */
	bool v3;
};

static uint32_t gather_depth_of(const char *key)
{
	uint32_t n = key[0] != '\0';

	for (; *key; key++)
		n += *key == '/';
	return n;
}

static int pair_add(struct gather_pairs *p, const struct gather_pair *x, struct err *e)
{
	if (p->n >= (size_t)8 * ZR_ITEMS_MAX)
		return err_set(e, -ERANGE, "more than %d entries", 8 * ZR_ITEMS_MAX);
	if (grow_array(&p->v, &p->c, p->n + 1, sizeof(*p->v)) < 0)
		return err_nomem(e);
	p->v[p->n++] = *x;
	return 0;
}

/* add_ancestors - add groups that may have no entry of their own. */
static int add_ancestors(struct zr_load *l, struct gather_pairs *p, const char *dir,
			 struct err *e)
{
	bool first = true;
	int rc = 0;

	while (rc == 0 && dir[0]) {
		size_t len = store_key_parent_len(dir);
		struct gather_pair x = {.doc = DOC_N};

		/* entries of one group are usually adjacent */
		if (first && p->last && strncmp(p->last, dir, len) == 0 && !p->last[len])
			break;
		x.dir = arena_copy(l->arena, dir, len);
		if (!x.dir)
			return zr_full(l->arena, e);
		p->last = first ? x.dir : p->last;
		first = false;
		x.depth = gather_depth_of(x.dir);
		rc = pair_add(p, &x, e);
		dir = x.dir;
	}
	return rc;
}

/* gather_split_v2 - split "a/b/.zarray" into directory and document; false: no known document. */
static bool gather_split_v2(struct zr_load *l, const char *key, struct gather_pair *x,
			    struct err *e, int *rc)
{
	const char *name = store_key_name(key);

	*rc = 0;
	x->doc = zr_doc_of(name);
	if (x->doc == DOC_N || x->doc == DOC_ZJSON)
		return false;
	x->dir = arena_copy(l->arena, key, store_key_parent_len(key));
	if (!x->dir)
		*rc = zr_full(l->arena, e);
	return x->dir != NULL;
}

/* gather_entry - one member of the consolidated metadata. */
static int gather_entry(struct zr_load *l, struct gather_pairs *p, const char *key,
			const json_t *v, struct err *e)
{
	struct gather_pair x = {.doc = DOC_ZJSON, .v = v, .dir = key};
	int rc;

	if (!store_key_ok(key) || strlen(key) > STORE_KEY_MAX)
		return err_set(e, -EBADMSG, "'%.200s' is not a valid key", key);
	if (p->v3)
		x.dir = arena_strdup(l->arena, key);
	else if (!gather_split_v2(l, key, &x, e, &rc))
		return rc;
	if (!x.dir)
		return zr_full(l->arena, e);
	if (json_kind(v) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "'%.200s' is not an object", key);
	x.depth = gather_depth_of(x.dir);
	if (x.depth > ZR_DEPTH_MAX)
		return err_set(e, -ERANGE, "'%.200s': groups are nested deeper than %d", key,
			       ZR_DEPTH_MAX);
	rc = pair_add(p, &x, e);
	return rc < 0 ? rc : add_ancestors(l, p, x.dir, e);
}

static int pair_order(const void *pa, const void *pb)
{
	const struct gather_pair *a = pa, *b = pb;

	return zr_load_order(a->depth, a->dir, b->depth, b->dir);
}

/* keep_pairs - record the entries of each directory. A directory that contains only directories is
 * a group, too. */
static int keep_pairs(struct zr_load *l, struct gather_pairs *p, struct err *e)
{
	int rc = 0;

	qsort(p->v, p->n, sizeof(*p->v), pair_order);
	for (size_t i = 0, k; i < p->n && rc == 0; i = k) {
		const json_t *d[DOC_N] = {NULL};
		struct zr_item it = {0};
		struct err why = ERR_INIT;
		bool is_item;

		for (k = i; k < p->n && pair_order(&p->v[k], &p->v[i]) == 0; k++)
			if (p->v[k].doc != DOC_N)
				d[p->v[k].doc] = p->v[k].v;
		rc = zr_load_item(l, d, &it, &is_item, &why);
		if (rc < 0) {
			if (!p->v3 || p->v[i].depth) /* the caller adds the root's name */
				(void)zr_load_name(p->v[i].dir, d, rc, &why);
			rc = zr_leave_out(l->s, l->t, p->v[i].dir, "", &why, e);
			continue;
		}
		if (!is_item)
			it.format = p->v3 ? 3 : 2;
		rc = zr_load_keep(l, p->v[i].dir, p->v[i].depth, &it, e);
	}
	return rc;
}

int zr_consolidated(struct zr_load *l, const json_t *metadata, const json_t *root_doc,
		    struct err *e)
{
	json_t *m = zr_mutable(metadata);
	struct gather_pair root = {
		.dir = "", .doc = root_doc ? DOC_ZJSON : DOC_N, .v = root_doc};
	struct gather_pairs p = {.v3 = root_doc != NULL};
	int rc = pair_add(&p, &root, e);

	for (void *it = json_object_iter(m); it && rc == 0; it = json_object_iter_next(m, it))
		rc = gather_entry(l, &p, json_object_iter_key(it), json_object_iter_value(it),
				  e);
	rc = rc ? rc : keep_pairs(l, &p, e);
	free(p.v);
	l->t->consolidated = true;
	return rc;
}

int zr_consolidated_v2(struct zr_load *l, const json_t *v, struct err *e)
{
	const json_t *metadata = json_get(v, "metadata");
	uint64_t format;

	if (json_u64(json_get(v, "zarr_consolidated_format"), &format) < 0)
		return err_set(e, -EBADMSG,
			       "zarr_consolidated_format is missing or not a number");
	if (format != 1)
		return err_set(e, -EOPNOTSUPP, "zarr_consolidated_format is %" PRIu64 ", not 1",
			       format);
	if (json_kind(metadata) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "metadata is missing or not an object");
	return zr_consolidated(l, metadata, NULL, e);
}

int zr_inline_metadata(const json_t *v, const json_t **ret, struct err *e)
{
	const json_t *c = json_get(v, "consolidated_metadata"), *m = json_get(c, "metadata");

	*ret = NULL;
	if (json_kind(c) == JSON_IS_NULL)
		return 0;
	if (json_kind(c) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "consolidated_metadata is not an object");
	if (!json_is(json_get(c, "kind"), "inline"))
		return json_is_false(json_get(c, "must_understand"))
			       ? 0
			       : err_set(e, -EOPNOTSUPP, "consolidated_metadata is not inline");
	if (json_kind(m) != JSON_IS_OBJECT)
		return err_set(
			e, -EBADMSG,
			"the metadata of consolidated_metadata is missing or not an object");
	*ret = m;
	return 0;
}
