/* SPDX-License-Identifier: BSD-3-Clause */
/* new_nodes.c - new groups and arrays: their documents are those of our own view of `now`.
 * Properties of chunks are read back from these documents by the functions of the source, so that
 * written chunks match them. */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <string.h>

#include "codecs/spec/spec.h"

#define LONG 200

int zs_has_root(struct zarr_sink *s, struct err *e)
{
	const struct zr_source *z = zr_of(s->real);

	if (z->base.ds.n_arrays != 1 || z->arrays[0].meta->key[0])
		return 0;
	return err_set(e, -EOPNOTSUPP,
		       "the store consists of one array: it cannot have other arrays, groups "
		       "or attributes of its own");
}

const char *zs_new_key(struct zarr_sink *s, uint32_t group, const char *name, struct err *e)
{
	const char *dir = zs_group_key(s, group, e), *as, *key;

	if (!dir || zs_has_root(s, e) < 0)
		return NULL;
	as = ds_name_escape(&s->arena, name);
	if (!as) {
		(void)err_nomem(e);
		return NULL;
	}
	if (zr_name_reserved(s->em.format, as) ||
	    (s->mode == ZARR_NCZARR && !zr_netcdf_name(as))) {
		(void)err_set(e, -EOPNOTSUPP, "'%.*s' is not a valid name in a Zarr store",
			      LONG, name);
		return NULL;
	}
	key = zs_path_join(s, dir, as, e);
	if (key && grow_array(&s->fresh, &s->c_fresh, s->n_fresh + 1, sizeof(*s->fresh)) < 0) {
		(void)err_nomem(e);
		return NULL;
	}
	if (key)
		s->fresh[s->n_fresh++] = key;
	return key;
}

int zs_check_fresh(struct zarr_sink *s, struct err *e)
{
	struct store_stat st;
	int rc;

	for (size_t i = 0; i < s->n_fresh; i++) {
		if (zs_is_gone(s, s->fresh[i]))
			continue;
		rc = store_stat(zr_of(s->real)->store, s->fresh[i], &st, e);
		if (rc == 0)
			return err_set(e, -EEXIST,
				       "'%.*s' cannot be created: the store already contains "
				       "an object of this name that is not shown",
				       LONG, s->fresh[i]);
		if (rc != -ENOENT)
			return rc;
	}
	return 0;
}

/* new_emit - make a document of a new node. */
static int new_emit(struct zarr_sink *s, const char *key, enum zr_doc doc, uint32_t ord,
		    struct err *e)
{
	const char *at = zs_path_join(s, key, zr_doc_file(doc), e);
	auto_buf b = buf_of(ZR_DOC_MAX);
	json_t *v;
	int rc;

	if (!at)
		return -ENOMEM;
	rc = zr_metadata_doc(&s->em, doc, ord, &b, e);
	rc = rc ? rc : json_read(b.data, b.len, &v, e);
	return rc ? rc : zs_doc_set(s, at, v, e);
}

int zs_add_group(struct sink *sink, uint32_t group, struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	const struct ds_group *g = &s->now->ds.groups[group];
	struct zs_group *zg = &s->groups[group];
	const char *parent;
	int rc;

	if (g->parent == DS_NONE)
		return 0; /* the root exists */
	parent = zs_group_key(s, g->parent, e);
	zg->key = parent ? zs_new_key(s, g->parent, g->name, e) : NULL;
	if (!zg->key)
		return e && e->code ? e->code : -EIO;
	zg->is_new = true;
	if (s->format == 3)
		return new_emit(s, zg->key, ZR_DOC_GROUP_JSON, group, e);
	rc = new_emit(s, zg->key, ZR_DOC_ZGROUP, group, e);
	rc = rc ? rc : new_emit(s, zg->key, ZR_DOC_GROUP_ATTRS, group, e);
	return rc ? rc : zs_nc_list(s, parent, false, g->name, true, e);
}

/* ---- arrays ---- */

/* new_nameable - whether the format can express a filter of an array: 1, 0, or -errno. */
static int new_nameable(const struct zarr_sink *s, const struct codec_spec *spec, size_t size,
			struct err *e)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);
	auto_buf b = buf_of(8192);
	int rc;

	if (!ops)
		return 0;
	if (s->format == 2)
		return codec_has_zarr2(spec, size);
	rc = codec_spec_json3(spec, size, &b);
	if (rc && !buf_ok(&b))
		rc = b.starved ? err_nomem(e) : 0;
	return rc;
}

/* keep_chain - a copy of a chain in the arena. */
static int keep_chain(struct zarr_sink *s, const struct codec_chain *c, struct codec_chain *ret,
		      struct err *e)
{
	struct codec_spec *specs = arena_alloc(&s->arena, c->n, sizeof(*specs));

	if (!specs)
		return err_nomem(e);
	for (uint32_t i = 0; i < c->n; i++) {
		specs[i] = c->specs[i];
		specs[i].params = arena_copy(&s->arena, c->specs[i].params,
					     c->specs[i].n_params * sizeof(uint32_t));
		specs[i].name =
			c->specs[i].name ? arena_strdup(&s->arena, c->specs[i].name) : "";
		if (!specs[i].params || !specs[i].name)
			return err_nomem(e);
	}
	*ret = (struct codec_chain){.n = c->n, .specs = specs};
	return 0;
}

static int new_plan(struct zarr_sink *s, uint32_t array, const struct sink_new *how,
		    struct err *e)
{
	struct ds_array *a = &s->shown_arrays[array];
	struct plan *p = &s->plans[array];
	char tmp[200], name[32];
	int rc;

	*p = (struct plan){.kind = dt_is_vlen(&a->type) ? PLAN_VLEN : PLAN_PASS,
			   .fill_declared =
				   zr_fill_stated(s->em.format, a, s->mode == ZARR_NCZARR)};
	rc = keep_chain(s, &how->chain, &p->chain, e);
	for (uint32_t i = 0; rc == 0 && i < p->chain.n; i++) {
		const struct codec_spec *spec = &p->chain.specs[i];

		rc = new_nameable(s, spec, a->type.size, e);
		if (rc == 0)
			rc = err_set(e, -EOPNOTSUPP,
				     "%s: Zarr v%u has no name for its filter '%s'",
				     zs_say(&s->now->ds, array, tmp), s->format,
				     codec_name(spec, name, sizeof(name)));
		rc = rc > 0 ? 0 : rc;
	}
	if (rc == 0 && s->mode == ZARR_NCZARR && p->kind == PLAN_VLEN) {
		p->kind = PLAN_FIXED;
		rc = chunkio_max_text(s->now, array, &p->fixed_size, e); /* all are read */
		p->fixed_size += rc == 0 && p->fixed_size == 0;
	}
	return rc;
}

/* new_shape - requested chunk lengths. */
static int new_shape(struct zarr_sink *s, uint32_t array, const struct sink_new *how,
		     struct err *e)
{
	struct ds_array *a = &s->shown_arrays[array];
	char tmp[200];
	int rc;

	if (how->chunk && a->rank) {
		for (uint32_t d = 0; d < a->rank; d++)
			if (how->chunk[d] == 0)
				return err_set(e, -EINVAL, "%s: a chunk length is 0",
					       zs_say(&s->now->ds, array, tmp));
		a->chunk = arena_copy(&s->arena, how->chunk, a->rank * sizeof(*a->chunk));
		if (!a->chunk)
			return err_nomem(e);
	}
	s->shown.arena = s->arena; /* grids are allocated there */
	rc = ds_array_finish(&s->shown, a, UINT64_MAX / 4, e);
	s->arena = s->shown.arena; /* it may have grown, also on failure */
	if (rc < 0)
		return err_wrap(e, rc, "%s", zs_say(&s->now->ds, array, tmp));
	zr_grid_chunks(a, &s->grids[array]);
	s->grids[array].keys = s->keys;
	return 0;
}

/* read_back - parse the documents of a new array. */
static int read_back(struct zarr_sink *s, uint32_t array, struct zs_array *za, struct err *e)
{
	const struct ds_array *a = &s->now->ds.arrays[array];
	struct zr_meta *m = arena_alloc(&s->arena, 1, sizeof(*m));
	struct zs_doc *d;
	char tmp[200];
	json_t *copy;
	int rc = zs_node_doc(s, za->key, NULL, true, false, &d, e);

	if (rc == 0 && !m)
		rc = err_nomem(e);
	if (rc)
		return rc;
	copy = json_deep_copy(d->v); /* the parser removes known members */
	if (!copy)
		return err_nomem(e);
	rc = s->format == 3 ? zr_v3_meta(&s->arena, copy, m, e)
			    : zr_v2_meta(&s->arena, copy, false, m, e);
	za->stated = rc == 0 && (s->format == 3 || json_kind(m->fill) != JSON_IS_NULL);
	json_decref(copy);
	if (rc == 0 && m->unreadable)
		rc = err_set(e, -EOPNOTSUPP, "%s", m->unreadable);
	if (rc)
		return err_wrap(e, rc, "%s", zs_say(&s->now->ds, array, tmp));
	m->format = (int)s->format;
	m->key = za->key;
	m->fill = m->attrs = m->dim_names = NULL;
	if (a->rank == 0 && m->rank == 1)
		m->rank = 0; /* NCZarr's scalars */
	if (s->mode == ZARR_NCZARR && a->type.kind == DT_VSTRING) {
		m->dtype.type = (struct dtype){.kind = DT_VSTRING};
		m->vlen = ZR_VLEN_FIXED;
	}
	za->meta = m;
	za->stored = m->shard ? m->shard->inner : m->chunk;
	return 0;
}

/* has_checksum - whether a chain has fletcher32. */
static bool has_checksum(const struct codec_chain *c)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->specs[i].h5_id == CODEC_FLETCHER32)
			return true;
	return false;
}

/* hint_checksum - Zarr's readers do not support fletcher32: the chunks are written without it, and
 * the document has a hint (source/nczarr_keys.c). */
static int hint_checksum(struct zarr_sink *s, uint32_t array, const struct zs_array *za,
			 struct err *e)
{
	const struct ds_array *a = &s->now->ds.arrays[array];
	struct zs_doc *d;
	json_t *in, *v;
	int rc;

	if (s->mode == ZARR_NCZARR || a->rank == 0 || dt_is_vlen(&a->type) ||
	    !has_checksum(&a->chain) || has_checksum(&s->plans[array].chain))
		return 0;
	rc = zs_node_doc(s, za->key, NULL, true, false, &d, e);
	if (rc)
		return rc;
	in = s->format == 3 ? json_object_get(d->v, "attributes") : d->v;
	v = json_object();
	if (!in || !v || json_object_set_new(v, "fletcher32", json_true()) < 0 ||
	    json_object_set(in, "_nczarr_array", v) < 0) {
		json_decref(v);
		return err_nomem(e);
	}
	json_decref(v);
	return 0;
}

int zs_add_array(struct sink *sink, uint32_t array, const struct sink_new *how, struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	const struct ds_array *a = &s->now->ds.arrays[array];
	struct zs_array *za = &s->arrays[array];
	const char *why = s->mode == ZARR_NCZARR ? zr_nczarr_lacks(&a->type) : NULL;
	struct zr_type3 t;
	char tmp[200];
	int rc;

	if (s->mode != ZARR_NCZARR && s->format == 3 && zr_type3_of(&a->type, &t))
		why = "Zarr v3 has no such type";
	if (why)
		return err_set(e, -EOPNOTSUPP, "%s: %s", zs_say(&s->now->ds, array, tmp), why);
	*za = (struct zs_array){.state = ZS_NEW, .real = DS_NONE};
	za->key = zs_new_key(s, a->group, a->name, e);
	if (!za->key)
		return e && e->code ? e->code : -EIO;
	rc = new_shape(s, array, how, e);
	rc = rc ? rc : new_plan(s, array, how, e);
	if (rc == 0)
		rc = new_emit(s, za->key, s->format == 3 ? ZR_DOC_ARRAY_JSON : ZR_DOC_ZARRAY,
			      array, e);
	if (rc == 0 && s->format != 3)
		rc = new_emit(s, za->key, ZR_DOC_ARRAY_ATTRS, array, e);
	rc = rc ? rc : hint_checksum(s, array, za, e);
	rc = rc ? rc : read_back(s, array, za, e);
	rc = rc ? rc : zs_resolve_layout(s, array, za, e);
	if (rc == 0 && !za->stated)
		rc = zs_track(za, e);
	rc = rc ? rc : zs_nc_list(s, zs_group_key(s, a->group, e), true, a->name, true, e);
	return rc;
}
