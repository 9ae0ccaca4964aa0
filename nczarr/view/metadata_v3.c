/* metadata_v3.c - zarr.json of Zarr v3. Each document is a function of the frozen model and the
 * plans; nothing is kept. */
#include "nczarr/view/metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codecs/spec/spec.h"
#include "nczarr/view/metadata_values.h"

/* begin_named, end_named - {"name": ..., "configuration": {...}}, as extensions are. */
static void begin_named(struct jw *j, const char *name)
{
	jw_object(j, true);
	jw_key(j, "name");
	jw_str(j, name);
	jw_key(j, "configuration");
	jw_object(j, true);
}

static void end_named(struct jw *j)
{
	jw_end(j);
	jw_end(j);
}

/* put_lengths - v times w, if there is one, and the dimension that is added. */
static void put_lengths(struct jw *j, const struct ds_array *a, const uint64_t *v,
			const uint64_t *w, const struct zr_type3 *t)
{
	jw_array(j, true);
	for (uint32_t d = 0; d < a->rank; d++)
		jw_u64(j, v[d] * (w ? w[d] : 1));
	if (t->bytes)
		jw_u64(j, t->bytes);
	jw_end(j);
}

static void put_chunk_grid(struct jw *j, const struct zr_emit *em, uint32_t ord,
			   const struct zr_type3 *t)
{
	const struct ds_array *a = &em->ds->arrays[ord];

	jw_key(j, "chunk_grid");
	begin_named(j, "regular");
	jw_key(j, "chunk_shape");
	put_lengths(j, a, a->chunk, em->grids[ord].per, t);
	end_named(j);
}

static void put_key_encoding(struct jw *j, const struct zr_keys *keys)
{
	jw_key(j, "chunk_key_encoding");
	begin_named(j, keys->lead ? "default" : "v2");
	jw_key(j, "separator");
	jw_str(j, keys->nested ? "/" : ".");
	end_named(j);
}

static void put_fill(struct jw *j, const struct ds_array *a, const struct zr_type3 *t)
{
	jw_key(j, "fill_value");
	if (a->type.kind == DT_VSTRING)
		jw_text(j, a->fill_text.s, a->fill_text.s ? a->fill_text.len : 0);
	else if (a->type.kind == DT_VLEN || !a->fill)
		jw_str(j, "");
	else if (zr_type3_fill(a) || t->type.kind == a->type.kind)
		zr_put_value(j, &t->type, a->fill, false, true);
	else
		jw_u64(j, 0); /* no chunk is absent */
}

/* put_name - {"name": ...}: an extension without a configuration. */
static void put_name(struct jw *j, const char *name)
{
	jw_object(j, true);
	jw_key(j, "name");
	jw_str(j, name);
	jw_end(j);
}

/* put_bytes - the codec "bytes" of numbers. */
static void put_bytes(struct jw *j, bool big)
{
	begin_named(j, "bytes");
	jw_key(j, "endian");
	jw_str(j, big ? "big" : "little");
	end_named(j);
}

/* put_serializer - the codec that makes bytes of elements. */
static void put_serializer(struct jw *j, const struct dtype *t)
{
	if (t->kind == DT_VSTRING)
		put_name(j, "vlen-utf8");
	else if (t->kind == DT_VLEN)
		put_name(j, "vlen-bytes");
	else if (t->size > 1)
		put_bytes(j, t->big_endian);
	else
		put_name(j, "bytes");
}

/* put_codec - one filter by its name and with its parameters in Zarr v3. */
static void put_codec(struct jw *j, const struct codec_spec *spec, size_t elem_size)
{
	struct buf b;

	buf_init(&b, 8192);
	if (codec_spec_json3(spec, elem_size, &b) && buf_ok(&b))
		jw_raw(j, b.data, b.len);
	else
		buf_fail(j->out, &b); /* no plan names such a codec */
	buf_release(&b);
}

/* put_codecs - those of elements, the one that makes bytes of them, those of bytes. */
static void put_codecs(struct jw *j, const struct zr_emit *em, uint32_t ord,
		       const struct zr_type3 *t)
{
	const struct codec_chain *chain = &em->plans[ord].chain;
	size_t elem_size = em->ds->arrays[ord].type.size;
	uint32_t i = 0;

	jw_array(j, true);
	for (; i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);

		if (!ops || !ops->elements)
			break;
		put_codec(j, &chain->specs[i], elem_size);
	}
	put_serializer(j, &t->type);
	for (; i < chain->n; i++)
		put_codec(j, &chain->specs[i], elem_size);
	jw_end(j);
}

/* put_sharded - one codec that has the chunks' own in it. */
static void put_sharded(struct jw *j, const struct zr_emit *em, uint32_t ord,
			const struct zr_type3 *t)
{
	const struct ds_array *a = &em->ds->arrays[ord];

	jw_array(j, true);
	begin_named(j, "sharding_indexed");
	jw_key(j, "chunk_shape");
	put_lengths(j, a, a->chunk, NULL, t);
	jw_key(j, "codecs");
	put_codecs(j, em, ord, t);
	jw_key(j, "index_codecs");
	jw_array(j, true);
	put_bytes(j, false);
	put_name(j, "crc32c");
	jw_end(j);
	jw_key(j, "index_location");
	jw_str(j, "end");
	end_named(j);
	jw_end(j);
}

/* taken - whether a dimension of the dataset is called so. */
static bool taken(const struct dataset *ds, const char *name)
{
	for (uint32_t d = 0; d < ds->n_dims; d++)
		if (strcmp(ds->dims[d].name, name) == 0)
			return true;
	return false;
}

/* put_added_name - of the dimension that is added: the same for all of one length. */
static void put_added_name(struct jw *j, const struct dataset *ds, const struct dtype *t)
{
	const char *what = t->kind == DT_STRING ? "string" : "bytes";
	char name[32];
	int n = snprintf(name, sizeof(name), "%s%" PRIu32, what, t->size);

	while (n > 0 && n + 1 < (int)sizeof(name) && taken(ds, name)) {
		name[n++] = '_';
		name[n] = '\0';
	}
	jw_str(j, name);
}

static void put_dimension_names(struct jw *j, const struct zr_emit *em,
				const struct ds_array *a, const struct zr_type3 *t)
{
	if (em->mode == ZARR_NOXARRAY)
		return;
	jw_key(j, "dimension_names");
	jw_array(j, true);
	for (uint32_t d = 0; d < a->rank; d++)
		jw_str(j, em->ds->dims[a->dims[d]].name);
	if (t->bytes)
		put_added_name(j, em->ds, &a->type);
	jw_end(j);
}

static void put_array_attrs(struct jw *j, const struct zr_emit *em, uint32_t ord,
			    const struct zr_type3 *t)
{
	const struct ds_array *a = &em->ds->arrays[ord];
	struct ds_attr room;
	int32_t value;
	const struct ds_attr *quant = zr_quant_attr(a, &em->plans[ord], &value, &room);

	jw_key(j, "attributes");
	jw_object(j, false);
	zr_put_attrs3(j, em, a, t);
	if (quant)
		zr_put_attrs(j, em, quant, 1, true, false);
	jw_end(j);
}

static void begin_node(struct jw *j, const char *type)
{
	jw_object(j, false);
	jw_key(j, "zarr_format");
	jw_u64(j, 3);
	jw_key(j, "node_type");
	jw_str(j, type);
}

static void put_array(struct jw *j, const struct zr_emit *em, uint32_t ord)
{
	const struct ds_array *a = &em->ds->arrays[ord];
	struct zr_type3 t;

	if (zr_type3_of(&a->type, &t)) {
		j->out->failed = true; /* such an array is hidden */
		return;
	}
	begin_node(j, "array");
	jw_key(j, "shape");
	put_lengths(j, a, a->shape, NULL, &t);
	jw_key(j, "data_type");
	jw_str(j, t.name);
	put_chunk_grid(j, em, ord, &t);
	put_key_encoding(j, &em->grids[ord].keys);
	put_fill(j, a, &t);
	jw_key(j, "codecs");
	if (em->grids[ord].per)
		put_sharded(j, em, ord, &t);
	else
		put_codecs(j, em, ord, &t);
	put_array_attrs(j, em, ord, &t);
	put_dimension_names(j, em, a, &t);
	jw_end(j);
}

/* begin_group - leaves the node open, for consolidated metadata. */
static void begin_group(struct jw *j, const struct zr_emit *em, uint32_t ord)
{
	const struct ds_group *g = &em->ds->groups[ord];

	begin_node(j, "group");
	jw_key(j, "attributes");
	jw_object(j, false);
	zr_put_attrs(j, em, g->attrs, g->n_attrs, false, false);
	jw_end(j);
}

/* put_path - the key of a node in consolidated metadata: its path without the first '/'. */
static bool put_path(struct jw *j, struct buf *path)
{
	buf_putc(path, '\0');
	if (!buf_ok(path)) {
		buf_fail(j->out, path);
		return false;
	}
	jw_key(j, (const char *)path->data + 1);
	return true;
}

/* put_children - the nodes of one group. */
static void put_children(struct jw *j, const struct zr_emit *em, uint32_t group,
			 struct buf *path)
{
	const struct ds_group *g = &em->ds->groups[group];

	for (uint32_t i = 0; i < g->n_groups && buf_ok(j->out); i++) {
		if (em->hidden_groups[g->groups[i]])
			continue;
		buf_clear(path);
		ds_group_path(em->ds, g->groups[i], path);
		if (!put_path(j, path))
			return;
		begin_group(j, em, g->groups[i]);
		jw_end(j);
	}
	for (uint32_t i = 0; i < g->n_arrays && buf_ok(j->out); i++) {
		if (em->hidden_arrays[g->arrays[i]])
			continue;
		buf_clear(path);
		ds_array_path(em->ds, g->arrays[i], path);
		if (!put_path(j, path))
			return;
		put_array(j, em, g->arrays[i]);
	}
}

/* put_consolidated - all nodes below the root, in a form that zarr-python 3 made up. Of each group
 * all nodes stand together: zarr-python 3.0 finds no group where, at one depth, they do not. */
static void put_consolidated(struct jw *j, const struct zr_emit *em)
{
	struct buf path;

	buf_init(&path, j->out->max);
	jw_key(j, "consolidated_metadata");
	jw_object(j, false);
	jw_key(j, "kind");
	jw_str(j, "inline");
	jw_key(j, "must_understand");
	jw_bool(j, false);
	jw_key(j, "metadata");
	jw_object(j, false);
	for (uint32_t g = 0; g < em->ds->n_groups && buf_ok(j->out); g++)
		if (!em->hidden_groups[g])
			put_children(j, em, g, &path);
	jw_end(j);
	jw_end(j);
	buf_release(&path);
}

void zr_put_v3(struct jw *j, const struct zr_emit *em, enum zr_doc doc, uint32_t ord)
{
	switch (doc) {
	case ZR_DOC_ROOT_JSON:
		begin_group(j, em, ord);
		put_consolidated(j, em);
		jw_end(j);
		break;
	case ZR_DOC_GROUP_JSON:
		begin_group(j, em, ord);
		jw_end(j);
		break;
	case ZR_DOC_ARRAY_JSON:
		put_array(j, em, ord);
		break;
	default:
		j->out->failed = true; /* not of this format */
	}
}
