/* SPDX-License-Identifier: BSD-3-Clause */
/* build_dims.c - the dimension of each axis of each array.
 *
 * NCZarr states it: groups define dimensions, arrays refer to them by full names. Otherwise arrays
 * have names (_ARRAY_DIMENSIONS, or Zarr v3's dimension_names), and a name is a dimension of the
 * array's own group, unless an enclosing group has one of that name and length, as in xarray's
 * trees and netCDF-C since 4.10. Two lengths under one name in one group are an error, as in both
 * of them. Axes without a name get generated dimensions, one for each length in a group, and never
 * the same twice in one array.
 *
 * With keep_going an array with wrong names gets generated dimensions for those axes. */
#include "base/core/hash.h"
#include "base/core/map.h"
#include "nczarr/source/open.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* An entry of the table: a dimension of a group by its name; a generated one by its length and its
 * number among those of that length in an array; a name that no generated one may have, of an
 * array or of a dimension; a group by its key. */
enum dims_kind { BY_NAME, MADE_UP, ARRAY_NAME, GROUP_KEY };

struct dims_key {
	enum dims_kind kind;
	uint32_t group;
	const char *name;
	uint64_t len;
	uint32_t nth;
};

struct dims_entry {
	struct link link;
	struct dims_key key;
	uint32_t dim;
};

struct dims {
	struct zr_build *b;
	struct map t;    /* of dims_entry; owned */
	uint32_t *first; /* of each dimension, the array that defined it; DS_NONE: NCZarr */
	size_t c_first;
	uint32_t next_made; /* number in the next generated name */
};

/* ---- the table ---- */

static uint64_t dims_hash_of(const struct dims_key *k)
{
	const uint64_t numbers[] = {(uint64_t)k->kind, k->len, (uint64_t)k->group << 32 | k->nth};

	return hash_u64(hash_bytes(hash_text(HASH_SEED, k->name ? k->name : ""), numbers,
				   sizeof(numbers)));
}

static bool lookup(const struct map *t, const struct dims_key *k, uint32_t *ret)
{
	const struct dims_entry *x;

	MAP_EACH(x, t, dims_hash_of(k), link)
		if (x->key.kind == k->kind && x->key.group == k->group &&
		    x->key.len == k->len && x->key.nth == k->nth &&
		    (!k->name || strcmp(x->key.name, k->name) == 0)) {
			*ret = x->dim;
			return true;
		}
	return false;
}

static int insert(struct map *t, const struct dims_key *k, uint32_t dim, struct err *e)
{
	struct dims_entry *x = alloc_array(1, sizeof(*x));

	if (!x)
		return err_nomem(e);
	x->key = *k;
	x->dim = dim;
	if (map_add(t, &x->link, dims_hash_of(k)) == 0)
		return 0;
	free(x);
	return err_nomem(e);
}

/* ---- dimensions ---- */

/* define - add a dimension to a group. array: the one that needs it, or DS_NONE. */
static int define(struct dims *d, const struct dims_key *k, const char *name, uint64_t len,
		  bool unlimited, uint32_t array, uint32_t *ret, struct err *e)
{
	struct zr_build *b = d->b;
	const struct source_options *o = &b->s->opts;
	struct dims_key kept = *k;
	char *copy = arena_strdup(b->arena, name);
	uint32_t dim = (uint32_t)b->n_dims;

	if (!copy || dim == DS_NONE)
		return zr_full(b->arena, e);
	if (grow_array(&b->dims, &b->c_dims, b->n_dims + 1, sizeof(*b->dims)) < 0 ||
	    grow_array(&d->first, &d->c_first, b->n_dims + 1, sizeof(*d->first)) < 0)
		return err_nomem(e);
	for (size_t i = 0; i < o->n_unlimited; i++) /* declared by the user */
		unlimited = unlimited || strcmp(o->unlimited[i], name) == 0;
	b->dims[dim] = (struct ds_dim){.name = copy,
				       .len = len,
				       .unlimited = unlimited,
				       .phony = k->kind == MADE_UP,
				       .group = k->group};
	d->first[dim] = array;
	b->n_dims++;
	*ret = dim;
	if (k->kind == BY_NAME)
		kept.name = copy;
	return insert(&d->t, &kept, dim, e);
}

/* dims_visible - the dimension of this name in the group or the nearest around it. */
static bool dims_visible(const struct dims *d, uint32_t group, const char *name, uint32_t *ret)
{
	for (uint32_t g = group; g != DS_NONE; g = d->b->groups[g].g.parent)
		if (lookup(&d->t, &(struct dims_key){.group = g, .name = name}, ret))
			return true;
	return false;
}

/* made_up - the nth generated dimension of this length in the group. */
static int made_up(struct dims *d, uint32_t array, uint64_t len, uint32_t nth, uint32_t *ret,
		   struct err *e)
{
	uint32_t group = d->b->arrays[array].a.group, other;
	struct dims_key k = {.kind = MADE_UP, .group = group, .len = len, .nth = nth};
	char name[40];
	bool taken;

	if (lookup(&d->t, &k, ret))
		return 0;
	do {
		(void)snprintf(name, sizeof(name), "phony_dim_%" PRIu32, d->next_made++);
		taken = dims_visible(d, group, name, &other) ||
			lookup(&d->t,
			       &(struct dims_key){
				       .kind = ARRAY_NAME, .group = group, .name = name},
			       &other);
	} while (taken);
	return define(d, &k, name, len, false, array, ret, e);
}

/* fill_made_up - generate dimensions for the remaining axes. */
static int fill_made_up(struct dims *d, uint32_t array, uint32_t *dims, struct err *e)
{
	const struct zr_barray *w = &d->b->arrays[array];
	int rc = 0;

	for (uint32_t i = 0; i < w->a.rank && rc == 0; i++) {
		uint32_t nth = 0;

		if (dims[i] != DS_NONE)
			continue;
		for (uint32_t k = 0; k < i; k++)
			nth += d->b->dims[dims[k]].phony && w->a.shape[k] == w->a.shape[i];
		rc = made_up(d, array, w->a.shape[i], nth, &dims[i], e);
	}
	return rc;
}

/* ---- names in documents ---- */

static int two_lengths(const struct dims *d, uint32_t array, uint32_t dim, uint64_t len,
		       struct err *e)
{
	const struct zr_build *b = d->b;
	uint32_t first = d->first[dim];

	return err_set(e, -EBADMSG,
		       "dimension '%.80s' is %" PRIu64 " long in %s%.100s' and %" PRIu64
		       " long in '/%.100s'",
		       b->dims[dim].name, b->dims[dim].len,
		       first == DS_NONE ? "NCZarr's group '/" : "'/",
		       first == DS_NONE ? b->groups[b->dims[dim].group].item->key
					: b->arrays[first].item->key,
		       len, b->arrays[array].item->key);
}

/* dims_longer - while a store is being written, lengths differ until the writer has resized
 * all arrays: such a dimension grows, as unlimited ones do, and some arrays are shorter for a
 * while. */
static bool dims_longer(struct dims *d, uint32_t dim, uint64_t len)
{
	struct ds_dim *x = &d->b->dims[dim];

	if (!d->b->s->borrowed)
		return false;
	x->len = u64_max(x->len, len);
	x->unlimited = true;
	return true;
}

/* dims_fits - whether a dimension has this length. The length of a hint is that of the first
 * array that uses the dimension: another program may have changed the array without the hint. */
static bool dims_fits(struct dims *d, uint32_t dim, uint32_t array, uint64_t len)
{
	if (!d->b->nc.on && d->first[dim] == DS_NONE) {
		d->b->dims[dim].len = len;
		d->first[dim] = array;
	}
	return d->b->dims[dim].len == len;
}

/* dims_named - the dimension for an axis by its name. */
static int dims_named(struct dims *d, uint32_t array, const char *name, uint64_t len,
		      uint32_t *ret, struct err *e)
{
	uint32_t group = d->b->arrays[array].a.group, dim;
	struct dims_key own = {.group = group, .name = name};

	if (lookup(&d->t, &own, &dim)) {
		if (!dims_fits(d, dim, array, len) && !dims_longer(d, dim, len))
			return two_lengths(d, array, dim, len, e);
		*ret = dim;
		return 0;
	}
	if (dims_visible(d, group, name, &dim) && dims_fits(d, dim, array, len)) {
		*ret = dim;
		return 0;
	}
	return define(d, &own, name, len, false, array, ret, e);
}

/* full_name - the dimension with full name "/g1/g2/name". */
static bool full_name(const struct dims *d, const char *path, uint32_t *ret)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash > path ? (size_t)(slash - path) - 1 : 0; /* keys have no leading '/' */
	char key[STORE_KEY_MAX + 1];
	uint32_t group;

	if (len > STORE_KEY_MAX)
		return false;
	memcpy(key, path + 1, len);
	key[len] = '\0';
	return lookup(&d->t, &(struct dims_key){.kind = GROUP_KEY, .name = key}, &group) &&
	       lookup(&d->t, &(struct dims_key){.group = group, .name = slash + 1}, ret);
}

/* referred - resolve a reference of NCZarr: a full name, or a name to look up. */
static int referred(struct dims *d, uint32_t array, const json_t *v, uint64_t len,
		    uint32_t *ret, struct err *e)
{
	const struct zr_barray *w = &d->b->arrays[array];
	struct ds_text t;
	uint32_t dim;
	bool hit;

	if (!json_text_of(v, &t) || strlen(t.s) != t.len)
		return err_set(e, -EBADMSG, "a reference to a dimension is not a string");
	hit = t.s[0] == '/' ? full_name(d, t.s, &dim) : dims_visible(d, w->a.group, t.s, &dim);
	if (!hit)
		return err_set(e, -EBADMSG, "dimension '%.100s' is not defined", t.s);
	if (d->b->dims[dim].len != len && !dims_longer(d, dim, len))
		return err_set(e, -EBADMSG,
			       "dimension '%.100s' is %" PRIu64 " long, the shape has %" PRIu64,
			       t.s, d->b->dims[dim].len, len);
	*ret = dim;
	return 0;
}

/* dims_axis - the dimension of one axis; *ret is unchanged if it has no name. */
static int dims_axis(struct dims *d, uint32_t array, uint32_t i, uint32_t *ret, struct err *e)
{
	const struct zr_barray *w = &d->b->arrays[array];
	uint64_t len = w->a.shape[i];
	struct ds_text t;
	const char *name;

	if (w->refs && d->b->nc.on)
		return referred(d, array, json_array_get(w->refs, i), len, ret, e);
	if (!w->names) {
		/* NCZarr's group below its root: the names are right, the paths are not */
		if (!w->refs || !json_text_of(json_array_get(w->refs, i), &t))
			return 0;
		name = store_key_name(t.s);
		return zr_model_name_ok(name, strlen(name))
			       ? dims_named(d, array, name, len, ret, e)
			       : 0;
	}
	if (json_kind(json_array_get(w->names, i)) == JSON_IS_NULL)
		return 0;
	if (!json_text_of(json_array_get(w->names, i), &t) ||
	    (t.len && !zr_model_name_ok(t.s, t.len)))
		return err_set(e, -EBADMSG, "the name of dimension %" PRIu32 " is not valid",
			       i);
	return t.len ? dims_named(d, array, t.s, len, ret, e) : 0;
}

/* check_number - check that an array has as many names as axes. */
static int check_number(const struct dims *d, const struct zr_barray *w, struct err *e)
{
	const json_t *list = w->refs && d->b->nc.on ? w->refs : w->names ? w->names : w->refs;

	if (!list || json_array_size(list) == w->a.rank + (size_t)w->meta->tail)
		return 0;
	return err_set(e, -EBADMSG, "%zu dimension names are given for %" PRIu32 " dimensions",
		       json_array_size(list), w->a.rank);
}

/* trouble - report an error; with keep_going add a note and a generated dimension. */
static int trouble(struct dims *d, const struct zr_barray *w, struct err *why, struct err *e)
{
	struct zr_build *b = d->b;
	const char *doc = w->refs && b->nc.on ? zr_doc_name(w->item) : zr_attrs_name(w->item);

	if (why->code != -EBADMSG || !b->s->opts.keep_going) {
		(void)zr_wrap_key(&b->tree, w->item, doc, why->code, why);
		return err_set(e, why->code, "%s", why->msg);
	}
	return zr_note(&b->tree, w->item->key, e, "has a made-up dimension: %s", why->msg);
}

static int array_dims(struct dims *d, uint32_t array, struct err *e)
{
	struct zr_barray *w = &d->b->arrays[array];
	uint32_t *dims = arena_alloc(d->b->arena, w->a.rank, sizeof(*dims));
	struct err why = ERR_INIT;
	int rc = 0;

	if (!dims)
		return zr_full(d->b->arena, e);
	for (uint32_t i = 0; i < w->a.rank; i++)
		dims[i] = DS_NONE;
	if (check_number(d, w, &why) < 0) {
		rc = trouble(d, w, &why, e);
	} else {
		for (uint32_t i = 0; i < w->a.rank && rc == 0; i++)
			if (dims_axis(d, array, i, &dims[i], &why) < 0)
				rc = trouble(d, w, &why, e);
	}
	w->a.dims = dims;
	return rc < 0 ? rc : fill_made_up(d, array, dims, e);
}

/* group_dims - add the dimensions in the dictionary of a group; without a superblock they are
 * hints, and an invalid entry is ignored. */
static int group_dims(struct dims *d, uint32_t group, struct err *e)
{
	const struct zr_item *it = d->b->groups[group].item;
	json_t *m = zr_mutable(zr_nc_dims(zr_nc_group(it)));
	int rc = 0;

	if (m && json_kind(m) != JSON_IS_OBJECT) {
		if (!d->b->nc.on)
			return 0;
		rc = err_set(e, -EBADMSG, "NCZarr's dimensions are not an object");
		return zr_wrap_key(&d->b->tree, it, zr_doc_name(it), rc, e);
	}
	for (void *at = json_object_iter(m); at && rc == 0; at = json_object_iter_next(m, at)) {
		const char *name = json_object_iter_key(at);
		uint64_t len = 0;
		bool unlimited = false;
		uint32_t dim;

		if (!zr_model_name_ok(name, strlen(name)) ||
		    zr_nc_dim(json_object_iter_value(at), &len, &unlimited) < 0) {
			if (!d->b->nc.on)
				continue;
			rc = err_set(e, -EBADMSG, "NCZarr's dimension '%.100s' is not valid",
				     name);
			return zr_wrap_key(&d->b->tree, it, zr_doc_name(it), rc, e);
		}
		rc = define(d, &(struct dims_key){.group = group, .name = name}, name, len,
			    unlimited, DS_NONE, &dim, e);
	}
	return rc;
}

/* keep_names - reserve an array's name, and dimension names of it that look generated: a store over
 * a netCDF file has them for axes that had no name when they were written. */
static int keep_names(struct dims *d, uint32_t array, struct err *e)
{
	const struct zr_barray *w = &d->b->arrays[array];
	struct dims_key k = {.kind = ARRAY_NAME, .group = w->a.group, .name = w->a.name};
	int rc = insert(&d->t, &k, array, e);
	struct ds_text t;
	uint32_t other;

	for (size_t i = 0; i < json_array_size(w->names) && rc == 0; i++) {
		if (!json_text_of(json_array_get(w->names, i), &t) ||
		    strncmp(t.s, "phony_dim_", 10) != 0)
			continue;
		k.name = t.s;
		if (!lookup(&d->t, &k, &other))
			rc = insert(&d->t, &k, array, e);
	}
	return rc;
}

int zr_dims(struct zr_build *b, struct err *e)
{
	struct dims d = {.b = b};
	int rc = 0;

	for (uint32_t g = 0; g < b->n_groups && rc == 0; g++) {
		rc = insert(
			&d.t,
			&(struct dims_key){.kind = GROUP_KEY, .name = b->groups[g].item->key},
			g, e);
		rc = rc ? rc : group_dims(&d, g, e);
	}
	for (uint32_t i = 0; i < b->n_arrays && rc == 0; i++)
		if (!b->arrays[i].dead)
			rc = keep_names(&d, i, e);
	/* arrays are in the order of their groups: enclosing groups come first */
	for (uint32_t i = 0; i < b->n_arrays && rc == 0; i++)
		if (!b->arrays[i].dead)
			rc = array_dims(&d, i, e);
	for (struct link *l = map_walk(&d.t, NULL), *next; l; l = next) {
		next = map_walk(&d.t, l);
		free(CONTAINER_OF(l, struct dims_entry, link));
	}
	map_free(&d.t);
	free(d.first);
	return rc;
}
