/* gather_remote.c - the documents of a tree that is far away: what will be looked at is asked for
 * side by side, so that waiting takes as long as the tree is deep and not as long as it is large.
 *
 * What a store cannot list has to be said by documents. NCZarr's groups name what is in them; so do
 * images (OME-Zarr: multiscales, labels, plates and wells). Names are believed as far as that they
 * are asked for. */
#include <errno.h>
#include <string.h>

#include "nczarr/source/gather_int.h"

#define WANTS 8 /* documents of one directory at most */

/* wants - what is asked for in one call. Keys are its own. */
struct wants {
	struct store *s;
	struct store_range r[ZR_FAR_DIRS * WANTS];
	char *keys[ZR_FAR_DIRS * WANTS];
	size_t n;
};

static void flush(struct wants *w)
{
	if (w->n)
		store_want(w->s, w->r, w->n);
	while (w->n)
		free(w->keys[--w->n]);
}

/* want - one document. Without memory for its name it is asked for later, when it is read. */
static void want(struct wants *w, const char *dir, const char *name)
{
	size_t nd = strlen(dir), nn = strlen(name);
	char *key = malloc(nd + nn + 2);

	if (!key)
		return;
	memcpy(key, dir, nd);
	if (nd)
		key[nd++] = '/';
	memcpy(key + nd, name, nn + 1);
	if (w->n == ARRAY_LEN(w->r))
		flush(w);
	w->keys[w->n] = key;
	w->r[w->n++] = (struct store_range){.key = key, .len = UINT64_MAX};
}

static struct wants *wants_new(struct store *s)
{
	struct wants *w = s->far ? alloc_array(1, sizeof(*w)) : NULL;

	if (w)
		w->s = s;
	return w;
}

static void wants_done(struct wants *w)
{
	flush(w);
	free(w);
}

void zr_far_want_root(struct store *s, bool rest)
{
	struct wants *w = wants_new(s);

	if (!w)
		return;
	if (!rest) {
		want(w, "", zr_doc_names[DOC_ZJSON]);
		want(w, "", ".zmetadata");
	} else {
		want(w, "", zr_doc_names[DOC_ZARRAY]);
		want(w, "", zr_doc_names[DOC_ZGROUP]);
		want(w, "", zr_doc_names[DOC_ZATTRS]);
		want(w, "", zr_doc_names[DOC_NCZARR]);
	}
	wants_done(w);
}

/* groups_too - the documents of what turned out to be no arrays; waits for their own. */
static void groups_too(struct zr_load *l, const struct zr_todo *d, size_t n, struct wants *w)
{
	for (size_t i = 0; i < n; i++) {
		struct store_stat st;
		char key[STORE_KEY_MAX + 1];
		size_t len = strlen(d[i].key);

		if (d[i].v3 || len + 10 > sizeof(key))
			continue;
		memcpy(key, d[i].key, len);
		memcpy(key + len, "/.zarray", 9);
		if (store_stat(l->s->store, key, &st, NULL) != -ENOENT)
			continue;
		want(w, d[i].key, zr_doc_names[DOC_ZGROUP]);
		if (l->v1)
			want(w, d[i].key, zr_doc_names[DOC_NCZGROUP]);
	}
}

void zr_far_want(struct zr_load *l, const struct zr_todo *d, size_t n)
{
	struct wants *w = wants_new(l->s->store);

	if (!w)
		return;
	for (size_t i = 0; i < n; i++) {
		if (d[i].v3) {
			want(w, d[i].key, zr_doc_names[DOC_ZJSON]);
			continue;
		}
		want(w, d[i].key, zr_doc_names[DOC_ZARRAY]);
		want(w, d[i].key, zr_doc_names[DOC_ZATTRS]);
		if (l->v1) {
			want(w, d[i].key, zr_doc_names[DOC_NCZARRAY]);
			want(w, d[i].key, zr_doc_names[DOC_NCZATTRS]);
		}
	}
	flush(w);
	groups_too(l, d, n, w);
	wants_done(w);
}

void zr_far_want_docs(struct zr_load *l, const char *dir, const struct zr_listing *s)
{
	struct wants *w = wants_new(l->s->store);

	for (int i = 0; w && i < DOC_N; i++)
		if (s->has[i] && (i == DOC_ZGROUP || i == DOC_ZATTRS || l->v1))
			want(w, dir, zr_doc_names[i]);
	if (w)
		wants_done(w);
}

/* ---- children that documents name ---- */

/* add - one name, once. What is no name of a directory is left out. */
static int add(struct zr_listing *s, const json_t *name, struct err *e)
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

/* add_all - names in a list, or, with `member`, the member of that name of each of its objects.
 * *ret_said: there is such a list. */
static int add_all(struct zr_listing *s, const json_t *list, const char *member, bool *ret_said,
		   struct err *e)
{
	int rc = 0;

	if (json_kind(list) != JSON_IS_LIST)
		return 0;
	*ret_said = true;
	for (size_t i = 0; i < json_array_size(list) && rc == 0; i++) {
		const json_t *v = json_array_get(list, i);

		rc = add(s, member ? json_get(v, member) : v, e);
	}
	return rc;
}

/* images - the conventions of OME-Zarr. attrs: of a group, or their member "ome". */
static int images(struct zr_listing *s, const json_t *attrs, bool *ret_said, struct err *e)
{
	const json_t *scales = json_get(attrs, "multiscales");
	int rc = add_all(s, json_get(attrs, "labels"), NULL, ret_said, e);

	if (rc == 0)
		rc = add_all(s, json_get(json_get(attrs, "well"), "images"), "path", ret_said,
			     e);
	for (size_t i = 0;
	     json_kind(scales) == JSON_IS_LIST && i < json_array_size(scales) && rc == 0; i++)
		rc = add_all(s, json_get(json_array_get(scales, i), "datasets"), "path",
			     ret_said, e);
	return rc;
}

int zr_far_children(struct zr_load *l, const json_t **docs, struct zr_listing *ret,
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
	rc = add_all(ret, zr_nc_vars(group), NULL, ret_said, e);
	if (rc == 0)
		rc = add_all(ret, zr_nc_groups(group), NULL, ret_said, e);
	if (rc == 0)
		rc = images(ret, it.attrs, ret_said, e);
	if (rc == 0)
		rc = images(ret, json_get(it.attrs, "ome"), ret_said, e);
	return rc;
}

/* ---- bids ---- */

/* has - whether one of the documents is there, or nobody can say. */
static bool has(struct store *s, const char *const *names, size_t n)
{
	struct store_stat st;

	for (size_t i = 0; i < n; i++)
		if (store_stat(s, names[i], &st, NULL) != -ENOENT)
			return true;
	return false;
}

int zr_far_bid(struct store *s)
{
	static const char *const first[] = {"zarr.json", ".zmetadata"};
	static const char *const more[] = {".zarray", ".zgroup", ".nczarr"};

	zr_far_want_root(s, false);
	if (has(s, first, ARRAY_LEN(first)))
		return 10;
	zr_far_want_root(s, true);
	return has(s, more, ARRAY_LEN(more)) ? 10 : 1;
}
