/* gather_consolidated.c - all documents of a tree in one: .zmetadata of Zarr v2, the member
 * consolidated_metadata of a Zarr v3 root.
 *
 * Every entry becomes a pair of directory and document; sorting brings together what a directory
 * has. Groups that have no entry, but something in them, are there all the same. */
#include "nczarr/source/gather_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* pair - one entry: a directory's document; DOC_N: only that the directory is there. */
struct pair {
	const char *dir;
	uint32_t depth;
	enum zr_doc doc;
	const json_t *v;
};

struct pairs {
	struct pair *v;
	size_t n, c;
	const char *last; /* group of the entry before */
	bool v3;
};

static uint32_t depth_of(const char *key)
{
	uint32_t n = key[0] != '\0';

	for (; *key; key++)
		n += *key == '/';
	return n;
}

static int pair_add(struct pairs *p, const struct pair *x, struct err *e)
{
	if (p->n >= (size_t)8 * ZR_ITEMS_MAX)
		return err_set(e, -ERANGE, "more than %d entries", 8 * ZR_ITEMS_MAX);
	if (grow_array(&p->v, &p->c, p->n + 1, sizeof(*p->v)) < 0)
		return err_nomem(e);
	p->v[p->n++] = *x;
	return 0;
}

/* add_ancestors - groups that may have no entry of their own. */
static int add_ancestors(struct zr_load *l, struct pairs *p, const char *dir, struct err *e)
{
	bool first = true;
	int rc = 0;

	while (rc == 0 && dir[0]) {
		const char *slash = strrchr(dir, '/');
		size_t len = slash ? (size_t)(slash - dir) : 0;
		struct pair x = {.doc = DOC_N};

		/* entries of one group mostly follow each other */
		if (first && p->last && strncmp(p->last, dir, len) == 0 && !p->last[len])
			break;
		x.dir = arena_copy(l->arena, dir, len);
		if (!x.dir)
			return zr_full(l->arena, e);
		p->last = first ? x.dir : p->last;
		first = false;
		x.depth = depth_of(x.dir);
		rc = pair_add(p, &x, e);
		dir = x.dir;
	}
	return rc;
}

/* split_v2 - "a/b/.zarray" to directory and document; false: it is no document we know. */
static bool split_v2(struct zr_load *l, const char *key, struct pair *x, struct err *e, int *rc)
{
	const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;

	*rc = 0;
	for (int i = 0; i < DOC_N; i++) {
		if (strcmp(name, zr_doc_names[i]) != 0 || i == DOC_ZJSON)
			continue;
		x->doc = (enum zr_doc)i;
		x->dir = arena_copy(l->arena, key, slash ? (size_t)(slash - key) : 0);
		if (!x->dir)
			*rc = zr_full(l->arena, e);
		return x->dir != NULL;
	}
	return false;
}

/* entry - one member of the consolidated metadata. */
static int entry(struct zr_load *l, struct pairs *p, const char *key, const json_t *v,
		 struct err *e)
{
	struct pair x = {.doc = DOC_ZJSON, .v = v, .dir = key};
	int rc;

	if (!store_key_ok(key) || strlen(key) > STORE_KEY_MAX)
		return err_set(e, -EBADMSG, "'%.200s' is not a key", key);
	if (p->v3)
		x.dir = arena_strdup(l->arena, key);
	else if (!split_v2(l, key, &x, e, &rc))
		return rc;
	if (!x.dir)
		return zr_full(l->arena, e);
	if (json_kind(v) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "'%.200s' is no object", key);
	x.depth = depth_of(x.dir);
	if (x.depth > ZR_DEPTH_MAX)
		return err_set(e, -ERANGE, "'%.200s': groups are nested deeper than %d", key,
			       ZR_DEPTH_MAX);
	rc = pair_add(p, &x, e);
	return rc < 0 ? rc : add_ancestors(l, p, x.dir, e);
}

static int pair_order(const void *pa, const void *pb)
{
	const struct pair *a = pa, *b = pb;

	return zr_load_order(a->depth, a->dir, b->depth, b->dir);
}

/* keep_pairs - the entries of each directory to what was found. A directory with nothing but
 * others below it is a group, too. */
static int keep_pairs(struct zr_load *l, struct pairs *p, struct err *e)
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
			if (!p->v3 || p->v[i].depth) /* the caller names the root's own */
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

/* consolidated - every entry of `metadata`. root_doc: v3: the root's own document. */
int zr_consolidated(struct zr_load *l, const json_t *metadata, const json_t *root_doc,
		    struct err *e)
{
	json_t *m = zr_mutable(metadata);
	struct pair root = {.dir = "", .doc = root_doc ? DOC_ZJSON : DOC_N, .v = root_doc};
	struct pairs p = {.v3 = root_doc != NULL};
	int rc = pair_add(&p, &root, e);

	for (void *it = json_object_iter(m); it && rc == 0; it = json_object_iter_next(m, it))
		rc = entry(l, &p, json_object_iter_key(it), json_object_iter_value(it), e);
	if (rc == 0)
		rc = keep_pairs(l, &p, e);
	free(p.v);
	l->t->consolidated = true;
	return rc;
}

int zr_consolidated_v2(struct zr_load *l, const json_t *v, struct err *e)
{
	const json_t *metadata = json_get(v, "metadata");
	uint64_t format;

	if (json_u64(json_get(v, "zarr_consolidated_format"), &format) < 0)
		return err_set(e, -EBADMSG, "zarr_consolidated_format is missing or no number");
	if (format != 1)
		return err_set(e, -EOPNOTSUPP, "zarr_consolidated_format is %" PRIu64 ", not 1",
			       format);
	if (json_kind(metadata) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "metadata is missing or no object");
	return zr_consolidated(l, metadata, NULL, e);
}

/* inline_metadata - of a v3 root; NULL: it has none that we know. */
int zr_inline_metadata(const json_t *v, const json_t **ret, struct err *e)
{
	const json_t *c = json_get(v, "consolidated_metadata"), *m = json_get(c, "metadata");

	*ret = NULL;
	if (json_kind(c) == JSON_IS_NULL)
		return 0;
	if (json_kind(c) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG, "consolidated_metadata is no object");
	if (!json_is(json_get(c, "kind"), "inline"))
		return json_is_false(json_get(c, "must_understand"))
			       ? 0
			       : err_set(e, -EOPNOTSUPP, "consolidated_metadata is not inline");
	if (json_kind(m) != JSON_IS_OBJECT)
		return err_set(e, -EBADMSG,
			       "the metadata of consolidated_metadata is missing or no object");
	*ret = m;
	return 0;
}
