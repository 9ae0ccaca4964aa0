/* SPDX-License-Identifier: BSD-3-Clause */
/* build_array.c - one array of the model: type, shape, chunks, fill value, attributes. Dimensions
 * are added when all arrays are known.
 *
 * Attributes are added where the model would lose information: units and calendar of times, the
 * name of the dtype, that bytes are characters, and `_FillValue` where xarray uses fill_value for
 * it. */
#include "nczarr/source/open.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/endian.h"
#include "nczarr/source/array_metadata.h"
#include "translate/model/value.h"

#define EXTRA_ATTRS 5 /* _FillValue, units, calendar, numpy_dtype, _Encoding */

/* ---- attributes ---- */

/* one_attr - convert an attribute. *ret_kept false: it is bookkeeping, or was left out. */
static int one_attr(struct zr_build *b, const struct zr_item *it, const char *name,
		    const json_t *v, const struct dtype *like, struct ds_attr *ret,
		    bool *ret_kept, struct err *e)
{
	bool fill = strcmp(name, "_FillValue") == 0;
	struct err why = ERR_INIT;
	int rc;

	*ret_kept = false;
	if (zr_nc_hidden(name))
		return 0;
	rc = zr_attr_make(b->arena, name, v, zr_nc_type(it, name), fill ? like : NULL,
			  it->format == 3, ret, &why);
	*ret_kept = rc == 0;
	if (rc == 0)
		return 0;
	(void)err_wrap(&why, rc, "attribute '%.80s'", name);
	(void)zr_wrap_key(&b->tree, it, zr_attrs_name(it), rc, &why);
	return zr_leave_out(b->s, &b->tree, it->key, "an attribute ", &why, e);
}

int zr_attrs_make(struct zr_build *b, const struct zr_item *it, const struct dtype *like,
		  uint32_t more, struct ds_attr **ret, uint32_t *ret_n, struct err *e)
{
	json_t *o = zr_mutable(it->attrs);
	size_t n = json_object_size(o), room;
	uint32_t k = 0;
	struct ds_attr *v;
	int rc = 0;

	if (ckd_add(&room, n, (size_t)more) || room > UINT32_MAX)
		return zr_full(b->arena, e);
	v = arena_alloc(b->arena, room, sizeof(*v));
	if (!v)
		return zr_full(b->arena, e);
	for (void *at = json_object_iter(o); at && rc == 0; at = json_object_iter_next(o, at)) {
		bool kept;

		rc = one_attr(b, it, json_object_iter_key(at), json_object_iter_value(at), like,
			      &v[k], &kept, e);
		k += rc == 0 && kept;
	}
	*ret = v;
	*ret_n = k;
	return rc;
}

/* fill_wanted - whether fill_value is presented as `_FillValue`: xarray interprets Zarr v2's so.
 * NCZarr writes both. NaT is missing for every reader in nanoseconds only. */
static bool fill_wanted(const struct zr_build *b, const struct zr_barray *w)
{
	const struct zr_meta *m = w->meta;

	if (b->nc.on || !w->a.fill_defined || !value_is_number(&w->a.type))
		return false;
	/* xarray masks no other time */
	if (m->dtype.units || m->dtype.numpy)
		return m->dtype.units && !m->dtype.is_ns && w->a.type.kind == DT_INT &&
		       w->a.type.size == 8 && w->a.fill &&
		       get_uint(w->a.fill, 8, w->a.type.big_endian) == (uint64_t)INT64_MIN;
	return m->format != 3 && json_get(w->item->attrs, "_ARRAY_DIMENSIONS");
}

static int array_attributes(struct zr_build *b, struct zr_barray *w, struct err *e)
{
	const struct zr_dtype *t = &w->meta->dtype;
	const struct {
		const char *name, *text;
	} strings[] = {{"units", t->units},
		       {"calendar", t->units && t->is_date ? "proleptic_gregorian" : NULL},
		       {"numpy_dtype", t->numpy},
		       {"_Encoding", t->conv == ZR_UTF32 ? "utf-8" : NULL}}; /* as in xarray */
	struct ds_attr *v;
	uint32_t n;
	int rc = zr_attrs_make(b, w->item, &w->a.type, EXTRA_ATTRS, &v, &n, e);

	if (rc == 0 && fill_wanted(b, w) && !ds_attr_find(v, n, "_FillValue")) {
		uint8_t *data = arena_copy(b->arena, w->a.fill, w->a.type.size);

		if (!data)
			return zr_full(b->arena, e);
		dt_swap_to_host(&w->a.type, data, 1);
		v[n] = (struct ds_attr){
			.name = "_FillValue", .type = w->a.type, .n = 1, .data = data};
		v[n++].type.big_endian = false;
	}
	for (size_t i = 0; i < ARRAY_LEN(strings) && rc == 0; i++) {
		if (!strings[i].text || ds_attr_find(v, n, strings[i].name))
			continue;
		rc = zr_attr_text(b->arena, strings[i].name, strings[i].text, &v[n], e);
		n += rc == 0;
	}
	w->a.attrs = v;
	w->a.n_attrs = n;
	return rc;
}

/* ---- shape and chunks ---- */

/* array_dim_names - find the names of dimensions. */
static int array_dim_names(struct zr_build *b, struct zr_barray *w, struct err *e)
{
	const json_t *names = w->meta->dim_names;

	if (json_kind(names) == JSON_IS_NULL)
		names = json_get(w->item->attrs, "_ARRAY_DIMENSIONS");
	if (json_kind(names) == JSON_IS_NULL)
		names = NULL;
	if (names && json_kind(names) != JSON_IS_LIST) {
		(void)err_set(e, -EBADMSG, "the names of the dimensions are not a list");
		return zr_wrap_key(&b->tree, w->item, zr_attrs_name(w->item), -EBADMSG, e);
	}
	w->names = names;
	w->refs = zr_nc_refs(zr_nc_array(w->item));
	if (w->refs && json_kind(w->refs) != JSON_IS_LIST) {
		(void)err_set(e, -EBADMSG, "NCZarr's references to dimensions are not a list");
		return zr_wrap_key(&b->tree, w->item, zr_doc_name(w->item), -EBADMSG, e);
	}
	return 0;
}

/* scalar - netCDF-C stores a scalar as one element: NCZarr's keys mark it, and without them its
 * dimension has no name, or a fixed one. */
static void scalar(struct zr_barray *w)
{
	size_t n = json_array_size(w->names);
	bool no_name = w->names &&
		       (n == 0 || (n == 1 && json_is(json_array_get(w->names, 0), "_scalar_")));

	if (w->meta->rank == 1 && w->meta->shape[0] == 1 && w->meta->chunk[0] == 1 &&
	    w->meta->format != 3 && (zr_nc_scalar(zr_nc_array(w->item)) || no_name))
		w->meta->rank = 0;
	if (w->meta->rank == 0 && no_name)
		w->names = NULL;
	if (w->meta->rank == 0 && json_array_size(w->refs) <= 1)
		w->refs = NULL;
}

/* array_chunks - clip the chunk to the array, except in a store that is being written: the
 * array may grow, and the writer continues with full chunks. */
static int array_chunks(struct zr_build *b, struct zr_barray *w, struct err *e)
{
	const struct zr_meta *m = w->meta;
	const uint32_t rank = m->rank - m->tail;
	uint64_t *chunk = arena_alloc(b->arena, rank, sizeof(*chunk));
	uint64_t bytes = m->dtype.stored ? m->dtype.stored : 4;

	if (!chunk)
		return zr_full(b->arena, e);
	w->z.stored = m->chunk;
	for (const struct zr_shard *s = m->shard; s; s = s->next)
		w->z.stored = s->inner; /* of the innermost chunk */
	for (uint32_t i = 0; i < rank; i++) {
		chunk[i] = b->s->borrowed || b->s->opts.whole_chunks
				   ? w->z.stored[i]
				   : u64_min(w->z.stored[i], u64_max(m->shape[i], 1));
		w->z.clipped |= chunk[i] != w->z.stored[i];
		if (ckd_mul(&bytes, bytes, w->z.stored[i]) ||
		    bytes > b->s->opts.max_chunk_bytes)
			return err_set(e, -ERANGE,
				       "a chunk has more than max_chunk=%" PRIu64 " bytes",
				       b->s->opts.max_chunk_bytes);
	}
	w->a.chunk = chunk;
	w->a.shape = m->shape;
	w->a.rank = rank;
	return 0;
}

/* ---- access ---- */

static void array_set_access(struct zr_barray *w)
{
	const struct zr_meta *m = w->meta;
	bool outer = false;

	for (const struct zr_shard *s = m->shard; s; s = s->next)
		outer = outer || s->outer.n;
	w->a.layout = DS_CHUNKED;
	w->a.chain = m->chain;
	w->a.uniform = true;
	if (dt_is_vlen(&w->a.type)) {
		w->a.access = DS_VARIABLE;
		return;
	}
	w->a.checksum = w->a.rank > 0 && json_is_true(json_get(zr_nc_array(w->item), "fletcher32"));
	if (m->dtype.conv == ZR_UTF32)
		w->a.convert = "strings are stored as UTF-32";
	else if (m->dtype.conv == ZR_FIELDS)
		w->a.convert = "fields are stored with gaps between them, or in another form";
	else if (m->order)
		w->a.convert = "chunks are not in C order";
	else if (outer)
		w->a.convert = "whole shards are encoded";
	else if (w->z.clipped)
		w->a.convert = "chunks are longer than the array";
	w->a.access = w->a.convert ? DS_CONVERT : DS_STORED;
}

/* ---- */

/* find_nested - find the separator if a Zarr v2 document omits it while the store is being
 * written: zarr-python 2.13 drops that member when an array is resized, but keeps the separator.
 * If the first coordinate is a directory, it is '/'. */
static int find_nested(struct zr_build *b, struct zr_meta *m, struct err *e)
{
	struct store_stat st;
	char key[STORE_KEY_MAX + 1];
	int rc;

	if (!b->s->borrowed || m->format != 2 || m->rank < 2 || m->separator == '/')
		return 0;
	rc = store_key_join(m->key, "0", 1, key) ? store_stat(b->s->store, key, &st, e) : -ENOENT;
	if (rc == 0 && st.is_dir)
		m->separator = '/';
	return rc == -ENOENT ? 0 : rc;
}

static int array_meta(struct zr_build *b, struct zr_barray *w, struct err *e)
{
	const struct zr_item *it = w->item;
	struct zr_meta *m = arena_alloc(b->arena, 1, sizeof(*m));
	int rc;

	if (!m)
		return zr_full(b->arena, e);
	rc = it->format == 3 ? zr_v3_meta(b->arena, it->meta, m, e)
			     : zr_v2_meta(b->arena, it->meta, b->nc.old_char, m, e);
	if (rc == 0 && m->unreadable)
		rc = err_set(e, -EOPNOTSUPP, "%s", m->unreadable);
	if (rc < 0)
		return rc;
	m->format = it->format;
	m->key = it->key;
	if (json_kind(json_get(it->meta, "dimension_separator")) == JSON_IS_NULL)
		rc = find_nested(b, m, e);
	if (rc < 0)
		return rc;
	if (b->nc.swapped)
		m->dtype.type.big_endian = false;
	if (b->nc.on && m->dtype.type.kind == DT_STRING && m->dtype.type.size > 1 &&
	    m->dtype.conv == ZR_AS_STORED) { /* netCDF's string; its char is one byte */
		m->dtype.type = (struct dtype){.kind = DT_VSTRING};
		m->vlen = ZR_VLEN_FIXED;
	}
	w->meta = m;
	w->z.meta = m;
	w->a.type = m->dtype.type;
	return 0;
}

int zr_array_make(struct zr_build *b, struct zr_barray *w, struct err *e)
{
	int rc = array_meta(b, w, e);

	if (rc == 0) {
		rc = array_dim_names(b, w, e);
		if (rc < 0)
			return rc;
		scalar(w);
		rc = array_chunks(b, w, e);
	}
	if (rc == 0) {
		array_set_access(w);
		rc = zr_fill_value(b->arena, w->meta, &w->a, e);
	}
	rc = rc ? rc : ds_array_finish(&b->s->base.ds, &w->a, b->s->opts.max_chunk_bytes, e);
	if (rc < 0)
		return zr_wrap_key(&b->tree, w->item, zr_doc_name(w->item), rc, e);
	return array_attributes(b, w, e);
}

/* Bytes in place of elements: our own view of Zarr v3 (view/metadata_v3.c) presents types that the
 * readers of Zarr v3 do not agree on as uint8, with one more axis for elements of several bytes,
 * and ragged arrays as lists of bytes. An attribute has the type.
 *
 * The last stored axis becomes one of a single, larger element; all others are unchanged, so that
 * keys, shards and chunks are found as before. */

#define MEANING "numpy_dtype"

/* array_parse - parse the dtype in the attribute. Returns 0; -ENOENT: no usable one. */
static int array_parse(struct arena *a, const struct ds_text *text, struct zr_dtype *ret,
		       struct err *e)
{
	struct err why = ERR_INIT;
	json_t *said = NULL;
	auto_buf b = buf_of(ZR_DOC_MAX);
	int rc;

	if (text->len > 0 && text->s[0] == '[')
		buf_put(&b, text->s, text->len);
	else if (text->len > 0 && !memchr(text->s, '"', text->len))
		buf_printf(&b, "\"%.*s\"", (int)u64_min(text->len, 64), text->s);
	rc = b.len > 0 && buf_ok(&b) ? json_read(b.data, b.len, &said, &why) : -EBADMSG;
	rc = rc ? rc : zr_dtype_v2(a, said, false, ret, &why);
	if (said)
		json_decref(said);
	if (rc == -ENOMEM)
		return err_nomem(e);
	return rc < 0 || ret->conv != ZR_AS_STORED ? -ENOENT : 0;
}

/* rearranged - whether a codec depends on the elements or axes as stored. */
static bool rearranged(const struct zr_meta *m)
{
	bool is = m->order != NULL || m->unreadable;

	for (const struct zr_shard *s = m->shard; s; s = s->next)
		is = is || s->order;
	for (uint32_t i = 0; i < m->chain.n; i++) {
		const struct codec_ops *ops = codec_find(m->chain.specs[i].h5_id);

		is = is || !ops || ops->elements;
	}
	return is;
}

/* one_at_end - a copy of lengths with 1 as the last. */
static const uint64_t *one_at_end(struct arena *a, const uint64_t *v, uint32_t n)
{
	uint64_t *copy = arena_copy(a, v, n * sizeof(*v));

	if (copy)
		copy[n - 1] = 1;
	return copy;
}

/* array_shorten - make the last axis one element. */
static int array_shorten(struct arena *a, struct zr_meta *m, struct err *e)
{
	const struct zr_shard **link = &m->shard;

	m->shape = one_at_end(a, m->shape, m->rank);
	m->chunk = one_at_end(a, m->chunk, m->rank);
	if (!m->shape || !m->chunk)
		return zr_full(a, e);
	for (const struct zr_shard *s = m->shard; s; s = s->next) {
		struct zr_shard *copy = arena_copy(a, s, sizeof(*s));

		if (!copy)
			return zr_full(a, e);
		copy->inner = one_at_end(a, s->inner, m->rank);
		if (!copy->inner)
			return zr_full(a, e);
		*link = copy;
		link = &copy->next;
	}
	m->tail = true;
	return 0;
}

int zr_bytes_meaning(struct arena *a, struct zr_meta *m, struct err *e)
{
	const struct dtype *t = &m->dtype.type;
	const bool vlen = t->kind == DT_VLEN && m->vlen == ZR_VLEN_BYTES;
	struct ds_text text;
	struct dtype *base;
	struct zr_dtype meant;
	bool whole;
	int rc;

	if ((!vlen && (t->kind != DT_UINT || t->size != 1)) || rearranged(m) ||
	    !json_text_of(json_get(m->attrs, MEANING), &text))
		return 0;
	rc = array_parse(a, &text, &meant, e);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	/* the last axis is exactly the bytes of an element, in every chunk */
	whole = m->rank > 0 && m->shape[m->rank - 1] == meant.type.size &&
		m->chunk[m->rank - 1] == meant.type.size;
	for (const struct zr_shard *s = m->shard; s && whole; s = s->next)
		whole = s->inner[m->rank - 1] == meant.type.size && s->grid[m->rank - 1] == 1;
	if (vlen && (value_is_number(&meant.type) || meant.type.kind == DT_BOOL ||
		     meant.type.kind == DT_COMPLEX)) {
		base = arena_copy(a, &meant.type, sizeof(meant.type));
		if (!base)
			return zr_full(a, e);
		m->dtype.type.base = base; /* lists of numbers from lists of bytes */
		m->vlen = ZR_VLEN_ARRAY;
	} else if (!vlen &&
		   (meant.type.kind == DT_STRING || meant.type.kind == DT_OPAQUE ||
		    meant.type.kind == DT_COMPOUND) &&
		   (meant.type.size == 1 || whole)) {
		rc = meant.type.size > 1 ? array_shorten(a, m, e) : 0;
		m->dtype = meant;
		m->as_bytes = true;
	} else {
		return 0;
	}
	(void)json_object_del((json_t *)(uintptr_t)m->attrs, MEANING); /* it exists */
	return rc;
}
