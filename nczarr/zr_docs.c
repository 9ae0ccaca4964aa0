/* zr_docs.c - the metadata documents of a tree: consolidated, or gathered by walking.
 *
 * Both ways give the same: a heap of directories and what is known of each, in any order. Sorting
 * them by depth and path puts parents before children and makes them items.
 *
 * A walk asks for as little as possible. A group's directory is listed once, and the listing says
 * which documents it has and what may be below it. Whether something below is an array is asked
 * by its document's name: an array's directory is never listed, it may hold millions of chunks.
 *
 * Everything that was asked for is remembered with its version from before it was read. */
#include "nczarr/zr_docs_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const zr_doc_names[DOC_N] = {
	".zarray",   ".zgroup",   ".zattrs", "zarr.json", ".nczarr",
	".nczgroup", ".nczarray", ".nczvar", ".nczattrs", ".nczattr",
};

/* ---- notes ---- */

int zr_full(const struct arena *a, struct err *e)
{
	return err_set(e, -ERANGE, "the metadata needs more than the %zu bytes allowed for it",
		       a->max);
}

int zr_note(struct zr_tree *t, const char *key, struct err *e, const char *fmt, ...)
{
	struct err line = ERR_INIT;
	char text[ERR_TEXT_MAX];
	char *copy;
	va_list ap;

	if (t->n_notes >= ZR_NOTES_MAX) {
		t->notes_lost++;
		return 0;
	}
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* err_set makes control characters of names harmless */
	(void)err_set(&line, 0, "/%.200s: %s", key, text);
	copy = strdup(line.msg);
	if (!copy ||
	    grow_array(&t->notes, &t->c_notes, t->n_notes + 1, sizeof(*t->notes)) < 0) {
		free(copy);
		return err_nomem(e);
	}
	t->notes[t->n_notes++] = copy;
	return 0;
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
	size_t nd = strlen(dir), nn = strlen(name);
	char *key;

	if (nd + 1 + nn > STORE_KEY_MAX)
		return err_set(e, -ERANGE, "'%.100s...': a key of more than %d bytes", dir,
			       STORE_KEY_MAX);
	key = arena_alloc(l->arena, nd + nn + 2, 1);
	if (!key)
		return zr_full(l->arena, e);
	memcpy(key, dir, nd);
	if (nd)
		key[nd++] = '/';
	memcpy(key + nd, name, nn);
	*ret = key;
	return 0;
}

static int see(struct zr_load *l, const char *key, uint64_t version, struct err *e)
{
	struct zr_source *s = l->s;

	if (grow_array(&s->seen, &s->c_seen, s->n_seen + 1, sizeof(*s->seen)) < 0)
		return err_nomem(e);
	s->seen[s->n_seen++] = (struct zr_doc_seen){.key = key, .version = version};
	return 0;
}

/* see_dir - what is far away is not listed again. */
static int see_dir(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	return l->s->store->far ? 0 : see(l, d->key, d->version, e);
}

static int own(struct zr_tree *t, json_t *v, struct err *e)
{
	if (!v || grow_array(&t->docs, &t->c_docs, t->n_docs + 1, sizeof(json_t *)) < 0) {
		json_decref(v);
		return err_nomem(e);
	}
	t->docs[t->n_docs++] = v;
	return 0;
}

/* cost_of - memory that a document's values will take, about. */
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

static int parse(struct zr_load *l, const struct buf *b, const json_t **ret, struct err *e)
{
	json_t *v = NULL;
	int rc;

	l->cost += cost_of(b->data, b->len);
	l->limit = l->cost > l->s->opts.max_meta_bytes;
	if (l->limit)
		return err_set(e, -ERANGE,
			       "the documents need more than the %" PRIu64 " bytes allowed for "
			       "metadata",
			       l->s->opts.max_meta_bytes);
	rc = json_read(b->data, b->len, &v, e);
	if (rc == 0)
		rc = own(l->t, v, e);
	if (rc == 0 && json_kind(v) != JSON_IS_OBJECT)
		rc = err_set(e, -EBADMSG, "not a JSON object");
	if (rc == 0)
		*ret = v;
	return rc;
}

/* stranger - what a document is that begins like this; NULL: nothing we know. */
static const char *stranger(const struct buf *b)
{
	size_t i = 0;

	while (i < b->len && (b->data[i] == ' ' || (b->data[i] >= '\t' && b->data[i] <= '\r')))
		i++;
	if (i == b->len)
		return "it is empty";
	return b->data[i] == '<' ? "it is a web page or XML, not JSON: does the server answer "
				   "like this whatever it is asked for?"
				 : NULL;
}

/* load_doc - read and parse what st tells of; *ret stays NULL when it is gone by now. */
static int load_doc(struct zr_load *l, const char *key, const struct store_stat *st,
		    const json_t **ret, struct err *e)
{
	struct err why = ERR_INIT;
	struct buf b;
	int rc;

	if (st->is_dir)
		return err_set(e, -EBADMSG, "'%.200s': a directory, not a document", key);
	if (st->size > ZR_DOC_MAX)
		return err_set(e, -ERANGE, "'%.200s': %" PRIu64 " bytes exceed %zu", key,
			       st->size, ZR_DOC_MAX);
	buf_init(&b, ZR_DOC_MAX);
	rc = store_get(l->s->store, key, &b, &why);
	if (rc == 0 && !buf_ok(&b)) {
		rc = err_nomem(&why);
	} else if (rc == 0) {
		rc = parse(l, &b, ret, &why);
		if (rc == -EBADMSG && l->s->store->far && stranger(&b))
			(void)err_set(&why, rc, "%s", stranger(&b));
		if (rc < 0)
			(void)err_wrap(&why, rc, "'%.200s'", key);
	}
	buf_release(&b);
	if (rc == -ENOENT) /* removed meanwhile: s->seen will tell */
		return 0;
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

/* doc - a document of a directory; *ret NULL: there is none. st: its stat where a listing gave
 * it, or NULL. */
static int doc(struct zr_load *l, const char *dir, const char *name,
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
			return see(l, key, 0, e);
		if (rc < 0)
			return err_set(e, rc, "%s", why.msg);
		st = &own_st;
	}
	if (rc == 0)
		rc = see(l, key, st->version, e);
	return rc < 0 ? rc : load_doc(l, key, st, ret, e);
}

/* format_is - whether a document's zarr_format is this number. */
static int format_is(const json_t *v, uint64_t want, struct err *e)
{
	uint64_t got;

	if (json_u64(json_get(v, "zarr_format"), &got) < 0)
		return err_set(e, -EBADMSG, "zarr_format is missing or no number");
	if (got != want)
		return err_set(e, got > 3 ? -EOPNOTSUPP : -EBADMSG,
			       "zarr_format is %" PRIu64 ", not %" PRIu64, got, want);
	return 0;
}

/* ---- directories to items ---- */

/* merge_v1 - the types that NCZarr's own object has, as later versions have them in the
 * attributes. */
static int merge_v1(struct zr_load *l, const json_t *attrs, const json_t *types,
		    const json_t **ret, struct err *e)
{
	json_t *v = attrs ? json_copy(zr_mutable(attrs)) : json_object();
	int rc = own(l->t, v, e);

	if (rc == 0 && json_object_set(v, "_NCZARR_ATTR", zr_mutable(types)) < 0)
		rc = err_nomem(e);
	*ret = v;
	return rc;
}

static int item_v3(const json_t *v, struct zr_item *it, struct err *e)
{
	const json_t *type = json_get(v, "node_type"), *attrs = json_get(v, "attributes");
	int rc = format_is(v, 3, e);

	if (rc < 0)
		return rc;
	it->is_array = json_is(type, "array");
	if (!it->is_array && !json_is(type, "group"))
		return err_set(e, -EBADMSG, "node_type is neither 'array' nor 'group'");
	if (json_kind(attrs) != JSON_IS_NULL && json_kind(attrs) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "attributes is no object");
	it->format = 3;
	it->meta = v;
	it->attrs = json_kind(attrs) == JSON_IS_OBJECT ? attrs : NULL;
	return 0;
}

int zr_load_item(struct zr_load *l, const json_t **d, struct zr_item *it, bool *ret,
		 struct err *e)
{
	const json_t *types = d[DOC_NCZATTRS] ? d[DOC_NCZATTRS] : d[DOC_NCZATTR];
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
		rc = it->meta ? format_is(it->meta, 2, e) : 0;
	}
	if (rc == 0 && l->v1 && types)
		rc = merge_v1(l, it->attrs, types, &it->attrs, e);
	return rc;
}

int zr_load_name(const char *dir, const json_t **docs, int rc, struct err *e)
{
	enum zr_doc d = docs[DOC_ZARRAY]  ? DOC_ZARRAY
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

int zr_load_order(uint32_t da, const char *a, uint32_t db, const char *b)
{
	if (da != db)
		return da < db ? -1 : 1;
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (*a == *b)
		return 0;
	/* a name's end is before everything that continues it */
	if (*a == '\0' || *b == '\0')
		return *a == '\0' ? -1 : 1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (uint8_t)*a < (uint8_t)*b ? -1 : 1;
}

static int found_order(const void *pa, const void *pb)
{
	const struct zr_found *a = pa, *b = pb;

	return zr_load_order(a->depth, a->key, b->depth, b->key);
}

/* parent_of - position among the sorted of the directory above; SIZE_MAX: it is not there. */
static size_t parent_of(const struct zr_load *l, const struct zr_found *f, char *tmp)
{
	const char *slash = strrchr(f->key, '/');
	size_t len = slash ? (size_t)(slash - f->key) : 0;
	struct zr_found want = {.key = tmp, .depth = f->depth - 1};
	const struct zr_found *hit;

	memcpy(tmp, f->key, len);
	tmp[len] = '\0';
	hit = bsearch(&want, l->found, l->n_found, sizeof(want), found_order);
	return hit ? (size_t)(hit - l->found) : SIZE_MAX;
}

/* link_items - the heap to items. What is below an array, or below what was left out, is no
 * item. */
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
		const struct zr_found *f = &l->found[i];
		const char *slash = strrchr(f->key, '/');
		size_t up = f->depth ? parent_of(l, f, tmp) : SIZE_MAX;
		bool placed = f->depth == 0 || (up != SIZE_MAX && at[up] != DS_NONE &&
						!t->items[at[up]].is_array);

		at[i] = DS_NONE;
		if (!placed) {
			rc = zr_note(t, f->key, e, "is left out: it is not in a group");
			continue;
		}
		at[i] = t->n_items;
		t->items[t->n_items] = f->item;
		t->items[t->n_items].name = slash ? slash + 1 : f->key;
		t->items[t->n_items++].parent = f->depth ? at[up] : DS_NONE;
	}
	return rc;
}

/* ---- walking ---- */

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

static bool list_one(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct zr_listing *s = arg;

	for (int i = 0; i < DOC_N; i++) {
		if (strcmp(name, zr_doc_names[i]) == 0) {
			s->has[i] = true;
			s->st[i] = st ? *st : (struct store_stat){.is_dir = is_dir};
			return true;
		}
	}
	return is_dir ? zr_listing_add(s, name, st ? st->version : 0) : true;
}

void zr_listing_release(struct zr_listing *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->dirs[i].name);
	free(s->dirs);
}

static int list_dir(struct zr_load *l, const char *dir, struct zr_listing *ret, struct err *e)
{
	struct err why = ERR_INIT;
	int rc;

	*ret = (struct zr_listing){.l = l};
	rc = store_list(l->s->store, dir, true, list_one, ret, &why);
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

	/* last first: the list of what is to be done is taken from its end */
	return strcmp(b->name, a->name);
}

/* push_children - the directories of a group are to be looked at. */
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

/* rest - the documents beside the one that says what an item is; those that a listing did not
 * have are not there. */
static int rest(struct zr_load *l, const char *dir, const struct zr_listing *s,
		const json_t **d, bool array, struct err *e)
{
	static const enum zr_doc of_array[] = {DOC_ZATTRS, DOC_NCZARRAY, DOC_NCZVAR,
					       DOC_NCZATTRS, DOC_NCZATTR};
	static const enum zr_doc of_group[] = {DOC_ZGROUP, DOC_ZATTRS, DOC_NCZGROUP,
					       DOC_NCZATTRS, DOC_NCZATTR};
	const enum zr_doc *want = array ? of_array : of_group;
	int rc = 0;

	for (size_t i = 0; i < 5 && rc == 0; i++) {
		enum zr_doc w = want[i];
		const char *key;

		if (w != DOC_ZATTRS && w != DOC_ZGROUP && !l->v1)
			continue;
		if ((w == DOC_NCZVAR && d[DOC_NCZARRAY]) ||
		    (w == DOC_NCZATTR && d[DOC_NCZATTRS]))
			continue; /* the newer name is there */
		if (!s || s->has[w]) {
			rc = doc(l, dir, zr_doc_names[w], s ? &s->st[w] : NULL, &d[w], e);
		} else {
			rc = zr_load_key(l, dir, zr_doc_names[w], &key, e);
			rc = rc < 0 ? rc : see(l, key, 0, e);
		}
	}
	return rc;
}

/* commit - a directory's documents to what was found, if they make it an item. */
static int commit(struct zr_load *l, const struct zr_todo *d, const json_t **docs,
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

/* below - what a group has in it: its directory is listed, or, where nothing can be, its documents
 * say it. */
static int below(struct zr_load *l, const char *dir, const json_t **docs,
		 struct zr_listing *ret, struct err *e)
{
	bool said = false;
	int rc;

	if (!l->s->store->unlisted)
		return list_dir(l, dir, ret, e);
	rc = zr_far_children(l, docs, ret, &said, e);
	if (rc == 0 && !said)
		rc = zr_note(
			l->t, dir, e,
			"what is in this group is not known: the server lists nothing, and "
			"no document says it: consolidate the metadata "
			"(zarr.consolidate_metadata)");
	return rc;
}

/* look_v3 - a directory below a v3 group, or the root. *ret: it has a document. */
static int look_v3(struct zr_load *l, const struct zr_todo *d, const struct store_stat *st,
		   bool *ret, struct err *e)
{
	const json_t *docs[DOC_N] = {NULL}, *metadata = NULL;
	struct zr_listing s;
	bool group;
	int rc = doc(l, d->key, zr_doc_names[DOC_ZJSON], st, &docs[DOC_ZJSON], e);

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
	rc = commit(l, d, docs, &group, e);
	if (rc < 0 || !group)
		return rc;
	rc = see_dir(l, d, e);
	if (rc < 0)
		return rc;
	rc = below(l, d->key, docs, &s, e);
	if (rc == 0)
		rc = push_children(l, d, &s, true, e);
	zr_listing_release(&s);
	return rc;
}

/* look_group - a directory without .zarray: a group, or nothing that we know. */
static int look_group(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	const json_t *docs[DOC_N] = {NULL};
	struct zr_listing s;
	bool group = false, v3 = false;
	int rc = list_dir(l, d->key, &s, e);

	if (rc == 0 && d->depth == 0 && s.has[DOC_NCZARR]) {
		rc = doc(l, "", zr_doc_names[DOC_NCZARR], &s.st[DOC_NCZARR], &docs[DOC_NCZARR],
			 e);
		l->v1 = docs[DOC_NCZARR] != NULL;
		l->t->superblock = docs[DOC_NCZARR];
	}
	if (rc == 0 && d->depth && !s.has[DOC_ZGROUP] && s.has[DOC_ZJSON]) {
		rc = look_v3(l, d, &s.st[DOC_ZJSON], &v3, e);
		zr_listing_release(&s);
		return rc;
	}
	if (rc == 0)
		zr_far_want_docs(l, d->key, &s);
	if (rc == 0)
		rc = rest(l, d->key, &s, docs, false, e);
	if (rc == 0)
		rc = commit(l, d, docs, &group, e);
	if (rc == 0 && d->depth == 0 && !group) {
		/* a root may do without a document, if there is something in it */
		struct zr_item it = {.format = l->v1 ? 1 : 2, .attrs = docs[DOC_ZATTRS]};

		group = true;
		rc = zr_load_keep(l, "", 0, &it, e);
	}
	if (rc == 0 && group)
		rc = see_dir(l, d, e);
	if (rc == 0 && group)
		rc = push_children(l, d, &s, false, e);
	zr_listing_release(&s);
	return rc;
}

/* ask_group - the same where directories cannot be listed. */
static int ask_group(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	const json_t *docs[DOC_N] = {NULL};
	bool group = false, v3 = false;
	struct zr_listing s = {.l = l};
	int rc = 0;

	if (d->depth == 0) {
		rc = doc(l, "", zr_doc_names[DOC_NCZARR], NULL, &docs[DOC_NCZARR], e);
		l->v1 = docs[DOC_NCZARR] != NULL;
		l->t->superblock = docs[DOC_NCZARR];
	}
	if (rc == 0)
		rc = rest(l, d->key, NULL, docs, false, e);
	if (rc == 0)
		rc = commit(l, d, docs, &group, e);
	if (rc == 0 && !group && d->depth) {
		rc = look_v3(l, d, NULL, &v3, e);
		return rc < 0 || v3 ? rc
				    : zr_note(l->t, d->key, e,
					      "is said to be there and has no documents");
	}
	if (rc < 0 || !group)
		return rc;
	rc = below(l, d->key, docs, &s, e);
	if (rc == 0)
		rc = push_children(l, d, &s, false, e);
	zr_listing_release(&s);
	return rc;
}

/* look - at one directory: an array, a group, or neither. */
static int look(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	const json_t *docs[DOC_N] = {NULL};
	bool hit;
	int rc;

	if (d->v3)
		return look_v3(l, d, NULL, &hit, e);
	rc = doc(l, d->key, zr_doc_names[DOC_ZARRAY], NULL, &docs[DOC_ZARRAY], e);
	if (rc < 0)
		return rc;
	if (!docs[DOC_ZARRAY])
		return l->s->store->unlisted ? ask_group(l, d, e) : look_group(l, d, e);
	rc = rest(l, d->key, NULL, docs, true, e);
	return rc < 0 ? rc : commit(l, d, docs, &hit, e);
}

/* visit - look at one directory below the root. What is wrong there is left out with keep_going. */
static int visit(struct zr_load *l, const struct zr_todo *d, struct err *e)
{
	struct err why = ERR_INIT;

	if (look(l, d, &why) == 0)
		return 0;
	return l->limit ? err_set(e, why.code, "%s", why.msg)
			: zr_leave_out(l->s, l->t, d->key, "", &why, e);
}

/* walk_levels - of a tree that is far away: all directories of a level are asked about before the
 * first answer is waited for. */
static int walk_levels(struct zr_load *l, struct err *e)
{
	int rc = 0;

	while (rc == 0 && l->n_todo > 0) {
		auto_free struct zr_todo *level = l->todo;
		size_t n = l->n_todo;

		l->todo = NULL;
		l->n_todo = l->c_todo = 0;
		for (size_t i = 0; i < n && rc == 0; i++) {
			if (i % ZR_FAR_DIRS == 0)
				zr_far_want(l, level + i, u64_min(n - i, ZR_FAR_DIRS));
			rc = visit(l, &level[i], e);
		}
	}
	return rc;
}

/* walk - what is below the root. */
static int walk(struct zr_load *l, struct err *e)
{
	int rc = 0;

	if (l->s->store->far)
		return walk_levels(l, e);
	while (rc == 0 && l->n_todo > 0) {
		struct zr_todo d = l->todo[--l->n_todo];

		rc = visit(l, &d, e);
	}
	return rc;
}

/* root_version - of the root's directory; not of one far away. */
static int root_version(struct zr_load *l, uint64_t *ret, struct err *e)
{
	struct err why = ERR_INIT;
	struct store_stat st;
	int rc;

	*ret = 0;
	if (l->s->store->far)
		return 0;
	rc = store_stat(l->s->store, "", &st, &why);
	if (rc < 0 && rc != -ENOENT)
		return err_set(e, rc, "%s", why.msg);
	*ret = rc == 0 ? st.version : 0;
	return 0;
}

/* load_all - Zarr v3 first, as readers of both do; consolidated documents before a walk. */
static int load_all(struct zr_load *l, struct err *e)
{
	struct zr_todo root = {.key = ""};
	const json_t *v = NULL;
	bool hit = false;
	int rc = root_version(l, &root.version, e);

	if (rc < 0)
		return rc;
	zr_far_want_root(l->s->store, false);
	rc = look_v3(l, &root, NULL, &hit, e);
	if (rc < 0 || hit)
		return rc < 0 ? rc : walk(l, e);
	rc = l->s->borrowed ? 0 : doc(l, "", ".zmetadata", NULL, &v, e);
	if (rc == 0 && v) {
		rc = zr_consolidated_v2(l, v, e);
		return rc < 0 ? err_wrap(e, rc, "'.zmetadata'") : 0;
	}
	zr_far_want_root(l->s->store, true);
	if (rc == 0)
		rc = look(l, &root, e);
	return rc < 0 ? rc : walk(l, e);
}

/* nothing - whether nothing was found at an address that should have a tree: a directory may be
 * empty, and somebody named it; an address may be wrong. */
static bool nothing(const struct zr_load *l)
{
	const struct zr_item *root = l->n_found ? &l->found[0].item : NULL;

	return l->s->store->far && !l->s->borrowed &&
	       (!root || (l->n_found == 1 && !root->meta && !root->extra && !root->attrs));
}

int zr_tree_load(struct zr_source *s, struct zr_tree *ret, struct err *e)
{
	struct zr_tree t = {0};
	struct zr_load l = {.s = s, .t = &t, .arena = &s->base.ds.arena};
	int rc = load_all(&l, e);

	if (rc == 0 && nothing(&l))
		rc = err_set(
			e, -EBADMSG,
			"no Zarr documents there (zarr.json, .zmetadata, .zgroup, .zarray, "
			".nczarr): name the root of the Zarr tree itself");
	if (rc == 0)
		rc = link_items(&l, e);
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
	for (size_t i = 0; i < t->n_notes; i++)
		free(t->notes[i]);
	free(t->docs);
	free(t->notes);
	*t = (struct zr_tree){0};
}
