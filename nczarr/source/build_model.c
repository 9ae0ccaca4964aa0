/* SPDX-License-Identifier: BSD-3-Clause */
/* build_model.c - the dataset from the documents: the order of groups and arrays, and the tables
 * of the model.
 *
 * Groups and arrays are in the order of the lists in _nczarr_group; the others follow by name.
 * Groups are numbered parents first, arrays in the order of their groups. */
#include "nczarr/source/open.h"

#include <errno.h>
#include <string.h>

#include "base/core/endings.h"
#include "base/core/utf8.h"

bool zr_model_name_ok(const char *s, size_t n)
{
	return n > 0 && n <= DS_NAME_MAX && !memchr(s, '/', n) && !memchr(s, '\0', n) &&
	       utf8_ok(s, n) && !(n == 1 && s[0] == '.') &&
	       !(n == 2 && s[0] == '.' && s[1] == '.');
}

/* ---- order ---- */

/* The children of an item: adjacent in the list, sorted by name. */
struct model_children {
	uint32_t first, n;
};

struct ordering {
	struct zr_build *b;
	struct model_children *of; /* by item */
	uint32_t *rank;            /* by item: position in NCZarr's list; UINT32_MAX */
	uint32_t *at;              /* scratch: children of one group */
};

static int build_model_by_name(const void *key, const void *item)
{
	return strcmp(key, ((const struct zr_item *)item)->name);
}

/* rank_list - record the positions of names in one of NCZarr's lists. */
static void rank_list(struct ordering *o, const struct model_children *c, const json_t *list)
{
	const struct zr_item *items = o->b->tree.items;
	struct ds_text t;

	for (size_t i = 0; i < json_array_size(list) && i < UINT32_MAX; i++) {
		const struct zr_item *hit = NULL;

		if (c->n && json_text_of(json_array_get(list, i), &t))
			hit = bsearch(t.s, items + c->first, c->n, sizeof(*items),
				      build_model_by_name);
		if (hit && o->rank[hit - items] == UINT32_MAX)
			o->rank[hit - items] = (uint32_t)i;
	}
}

static int by_rank(const void *pa, const void *pb, void *arg)
{
	const uint32_t *rank = arg;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

	if (rank[a] != rank[b])
		return rank[a] < rank[b] ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int push_group(struct zr_build *b, const struct zr_item *it, uint32_t parent,
		      const char *name, struct err *e)
{
	if (grow_array(&b->groups, &b->c_groups, b->n_groups + 1, sizeof(*b->groups)) < 0)
		return err_nomem(e);
	b->groups[b->n_groups++] =
		(struct zr_bgroup){.item = it, .g = {.name = name, .parent = parent}};
	return 0;
}

static int push_array(struct zr_build *b, const struct zr_item *it, uint32_t group,
			    const char *name, struct err *e)
{
	if (grow_array(&b->arrays, &b->c_arrays, b->n_arrays + 1, sizeof(*b->arrays)) < 0)
		return err_nomem(e);
	b->arrays[b->n_arrays++] =
		(struct zr_barray){.item = it, .a = {.name = name, .group = group}};
	return 0;
}

static int push_item(struct zr_build *b, const struct zr_item *it, uint32_t group,
		     struct err *e)
{
	struct err why = ERR_INIT;

	if (!zr_model_name_ok(it->name, strlen(it->name))) {
		(void)err_set(&why, -EBADMSG, "'/%.200s': a file cannot have this name",
			      it->key);
		return zr_leave_out(b->s, &b->tree, it->key, "", &why, e);
	}
	return it->is_array ? push_array(b, it, group, it->name, e)
			    : push_group(b, it, group, it->name, e);
}

/* order_group - sort the children of one group. */
static int order_group(struct ordering *o, uint32_t group, struct err *e)
{
	struct zr_build *b = o->b;
	const struct zr_item *it = b->groups[group].item;
	const struct model_children *c = &o->of[it - b->tree.items];
	const json_t *nc = zr_nc_group(it);
	int rc = 0;

	if (b->nc.on) {
		rank_list(o, c, zr_nc_vars(nc));
		rank_list(o, c, json_get(nc, "groups"));
	} else {
		rank_list(o, c, json_get(nc, "order")); /* a hint: names may be missing */
	}
	for (uint32_t i = 0; i < c->n; i++)
		o->at[i] = c->first + i;
	if (c->n)
		qsort_r(o->at, c->n, sizeof(*o->at), by_rank, o->rank);
	for (uint32_t i = 0; i < c->n && rc == 0; i++)
		rc = push_item(b, &b->tree.items[o->at[i]], group, e);
	return rc;
}

static int order_all(struct zr_build *b, struct err *e)
{
	uint32_t n = b->tree.n_items;
	auto_free struct model_children *of = alloc_array(n, sizeof(*of));
	auto_free uint32_t *rank = alloc_array(n, sizeof(*rank));
	auto_free uint32_t *at = alloc_array(n, sizeof(*at));
	struct ordering o = {.b = b, .of = of, .rank = rank, .at = at};
	int rc;

	if (!of || !rank || !at)
		return err_nomem(e);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t up = b->tree.items[i].parent;

		rank[i] = UINT32_MAX;
		if (up != DS_NONE && of[up].n++ == 0)
			of[up].first = i;
	}
	rc = push_group(b, &b->tree.items[0], DS_NONE, "", e);
	for (uint32_t g = 0; g < b->n_groups && rc == 0; g++)
		rc = order_group(&o, g, e);
	return rc;
}

/* ---- a store that is one array ---- */

/* store_name - the store's name without its ending. */
static int store_name(struct zr_build *b, const char **ret, struct err *e)
{
	const char *path = b->s->path ? b->s->path : "", *slash;
	const struct ending_row *row;
	size_t n = strlen(path), stem = 0;

	while (n && path[n - 1] == '/')
		n--;
	slash = n ? memrchr(path, '/', n) : NULL;
	if (slash) {
		n -= (size_t)(slash + 1 - path);
		path = slash + 1;
	}
	for (int i = 0; i < 2; i++) { /* "a.zr3.zip" */
		row = ending_find(path, n, &stem);
		if (row && (row->means == ENDING_TREE || (!i && row->means == ENDING_ZIP)))
			n = stem;
	}
	*ret = zr_model_name_ok(path, n) ? arena_copy(b->arena, path, n)
					 : arena_strdup(b->arena, "array");
	return *ret ? 0 : zr_full(b->arena, e);
}

static int lone_array(struct zr_build *b, struct err *e)
{
	const struct zr_item *it = &b->tree.items[0];
	struct zr_item *root = arena_alloc(b->arena, 1, sizeof(*root));
	const char *name;
	int rc;

	if (!root)
		return zr_full(b->arena, e);
	*root = (struct zr_item){
		.key = "", .name = "", .parent = DS_NONE, .format = it->format};
	rc = store_name(b, &name, e);
	rc = rc ? rc : push_group(b, root, DS_NONE, "", e);
	return rc < 0 ? rc : push_array(b, it, 0, name, e);
}

/* ---- into the dataset ---- */

static int groups_make(struct zr_build *b, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < b->n_groups && rc == 0; i++) {
		struct ds_group *g = &b->groups[i].g;
		struct ds_attr *v;

		rc = zr_attrs_make(b, b->groups[i].item, NULL, 0, &v, &g->n_attrs, e);
		if (rc == 0)
			g->attrs = v;
	}
	return rc;
}

/* arrays_make - make all arrays. With keep_going those that cannot be presented are left out. */
static int arrays_make(struct zr_build *b, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < b->n_arrays && rc == 0; i++) {
		struct zr_barray *w = &b->arrays[i];
		struct err why = ERR_INIT;

		if (zr_array_make(b, w, &why) == 0)
			continue;
		w->dead = true;
		rc = zr_leave_out(b->s, &b->tree, w->item->key, "", &why, e);
	}
	return rc;
}

static int model_move_arrays(struct zr_build *b, struct err *e)
{
	struct dataset *ds = &b->s->base.ds;
	uint32_t n = 0;

	for (size_t i = 0; i < b->n_arrays; i++)
		n += !b->arrays[i].dead;
	ds->arrays = arena_alloc(b->arena, n, sizeof(*ds->arrays));
	b->s->arrays = arena_alloc(b->arena, n, sizeof(*b->s->arrays));
	if (!ds->arrays || !b->s->arrays)
		return zr_full(b->arena, e);
	b->s->nodes = alloc_array(b->n_groups + n, sizeof(*b->s->nodes));
	if (!b->s->nodes)
		return err_nomem(e);
	for (size_t i = 0; i < b->n_arrays; i++) {
		struct zr_barray *w = &b->arrays[i];

		if (w->dead)
			continue;
		/* the documents are freed next */
		w->meta->fill = w->meta->attrs = w->meta->dim_names = NULL;
		b->s->arrays[ds->n_arrays] = w->z;
		b->s->nodes[b->s->n_nodes++] =
			(struct zr_node_key){.key = w->item->key, .array = ds->n_arrays};
		ds->arrays[ds->n_arrays] = w->a;
		ds->arrays[ds->n_arrays].key = (uint64_t)ds->n_arrays + 1;
		ds->n_arrays++;
	}
	return 0;
}

static int model_freeze(struct zr_build *b, struct err *e)
{
	struct dataset *ds = &b->s->base.ds;
	const struct zr_item *first =
		&b->tree.items[b->tree.n_items > 1 && !b->tree.items[0].meta];
	int rc = model_move_arrays(b, e);

	ds->format = b->nc.on ? "NCZarr" : first->format == 3 ? "Zarr v3" : "Zarr v2";
	ds->n_dims = (uint32_t)b->n_dims;
	ds->dims = arena_alloc(b->arena, b->n_dims, sizeof(*ds->dims));
	if (rc == 0 && !ds->dims)
		rc = zr_full(b->arena, e);
	if (rc < 0)
		return rc;
	if (b->n_dims)
		memcpy(ds->dims, b->dims, b->n_dims * sizeof(*ds->dims));
	ds->n_groups = (uint32_t)b->n_groups;
	ds->groups = arena_alloc(b->arena, ds->n_groups, sizeof(*ds->groups));
	if (!ds->groups)
		return zr_full(b->arena, e);
	for (uint32_t i = 0; i < ds->n_groups; i++) {
		ds->groups[i] = b->groups[i].g;
		b->s->nodes[b->s->n_nodes++] =
			(struct zr_node_key){.key = b->groups[i].item->key, .array = DS_NONE};
	}
	zr_nodes_sort(b->s);
	rc = ds_group_members(ds, e);
	return rc < 0 ? rc : ds_notes_freeze(&b->tree.notes, b->arena, ds, e);
}

static int model_build(struct zr_build *b, struct err *e)
{
	int rc;

	/* a store that is being written may have no document yet */
	if (!b->s->borrowed && b->tree.n_items <= 1 &&
	    (b->tree.n_items == 0 || !(b->tree.items[0].meta || b->tree.items[0].extra)))
		return err_set(e, -EBADMSG, "the store contains no Zarr metadata");
	zr_nc_store(&b->tree, &b->nc);
	rc = b->tree.items[0].is_array ? lone_array(b, e) : order_all(b, e);
	rc = rc ? rc : groups_make(b, e);
	rc = rc ? rc : arrays_make(b, e);
	rc = rc ? rc : zr_dims(b, e);
	return rc < 0 ? rc : model_freeze(b, e);
}

int zr_model(struct zr_source *s, struct err *e)
{
	struct zr_build b = {.s = s, .arena = &s->base.ds.arena};
	int rc = zr_tree_load(s, &b.tree, e);

	if (rc < 0)
		return rc;
	rc = model_build(&b, e);
	zr_tree_release(&b.tree);
	free(b.groups);
	free(b.arrays);
	free(b.dims);
	return rc;
}
