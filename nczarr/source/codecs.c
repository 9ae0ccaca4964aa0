/* SPDX-License-Identifier: BSD-3-Clause */
/* codecs.c - the codecs of both Zarr versions: parameters from JSON, chains in the arena, and
 * checked parts of documents. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "base/core/utf8.h"
#include "nczarr/json/writer.h"
#include "nczarr/source/array_metadata.h"

#define CONF_TEXT_MAX ((size_t)64 << 10) /* JSON text for a codec of a plugin */

const char *zr_say(struct arena *a, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	bool utf8;
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	utf8 = utf8_ok(text, strlen(text)); /* a character may have been truncated */
	for (char *s = text; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f ||
		    (!utf8 && (unsigned char)*s > 0x7f))
			*s = '?';
	return arena_strdup(a, text);
}

const char *zr_missing(struct arena *a, const char *codec)
{
	const struct codec_spec spec = {.name = codec};
	auto_buf b = buf_of(ERR_TEXT_MAX);

	codec_missing(&spec, &b);
	buf_putc(&b, '\0');
	return zr_say(a, "%s", buf_ok(&b) ? (const char *)b.data : codec);
}

int zr_named_of(const json_t *v, const char *what, struct zr_named *ret, struct err *e)
{
	const json_t *config = json_get(v, "configuration");
	struct ds_text name;

	if (!json_text_of(json_kind(v) == JSON_IS_OBJECT ? json_get(v, "name") : v, &name) ||
	    name.len == 0 || memchr(name.s, '\0', name.len))
		return err_set(e, -EBADMSG, "%s is neither a name nor an object with a name",
			       what);
	if (config && json_kind(config) != JSON_IS_OBJECT && json_kind(config) != JSON_IS_NULL)
		return err_set(e, -EBADMSG, "%s '%.80s': configuration is not an object", what,
			       name.s);
	*ret = (struct zr_named){.name = name.s, .config = config};
	return 0;
}

int zr_lengths(struct arena *a, const json_t *v, const char *what, uint32_t n, uint64_t least,
	       uint64_t **ret, struct err *e)
{
	uint64_t *len;

	if (json_kind(v) != JSON_IS_LIST)
		return err_set(e, -EBADMSG, "%s is not a list", what);
	if (json_array_size(v) != n)
		return err_set(e, -EBADMSG, "%s has %zu numbers, not %" PRIu32, what,
			       json_array_size(v), n);
	len = arena_alloc(a, n, sizeof(*len));
	if (!len)
		return zr_full(a, e);
	for (uint32_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(v, i);
		const char *text = json_number_text(one);

		if (json_u64(one, &len[i]) < 0 || len[i] < least || len[i] > INT64_MAX)
			return err_set(e, -EBADMSG,
				       "%s contains '%.40s' instead of a whole number of at "
				       "least %" PRIu64,
				       what, text ? text : "an invalid number", least);
	}
	*ret = len;
	return 0;
}

/* ---- codec_conf over JSON ---- */

static int codecs_get_integer(void *arg, const char *member, int64_t *ret)
{
	const json_t *v = json_get(arg, member);
	struct ds_text s;
	uint64_t u;
	bool minus;

	if (json_kind(v) == JSON_IS_NULL)
		return -ENOENT;
	if (!json_text_of(v, &s))
		return json_i64(v, ret);
	minus = s.len && s.s[0] == '-';
	if (str_u64(s.s + minus, s.len - minus, INT64_MAX, &u) < 0)
		return -EINVAL;
	*ret = minus ? -(int64_t)u : (int64_t)u;
	return 0;
}

static int codecs_get_real(void *arg, const char *member, double *ret)
{
	const json_t *v = json_get(arg, member);

	return json_kind(v) == JSON_IS_NULL ? -ENOENT : json_double(v, ret);
}

static int codecs_get_text(void *arg, const char *member, const char **ret)
{
	const json_t *v = json_get(arg, member);
	struct ds_text s;

	if (json_kind(v) == JSON_IS_NULL)
		return -ENOENT;
	if (!json_text_of(v, &s) || memchr(s.s, '\0', s.len))
		return -EINVAL;
	*ret = s.s;
	return 0;
}

/* ---- chains ---- */

static enum codec_class codecs_class_of(const struct dtype *t)
{
	switch (t->kind) {
	case DT_BOOL:
	case DT_UINT:
		return CODEC_UINT;
	case DT_INT:
		return CODEC_INT;
	case DT_FLOAT:
		return CODEC_FLOAT;
	default:
		return CODEC_OTHER;
	}
}

bool zr_codec_array(const struct zr_meta *m, const uint64_t *chunk, struct codec_array *ret)
{
	*ret = (struct codec_array){.class = codecs_class_of(&m->dtype.type),
				    .elem_size = m->dtype.stored,
				    .big_endian = m->dtype.type.big_endian,
				    .rank = m->rank,
				    .chunk = chunk};
	return m->dtype.stored > 0;
}

/* conf_text - a codec in Zarr v2's form, for plugins that parse JSON themselves: version 3 has the
 * name elsewhere. */
static void conf_text(const struct codec_ops *ops, const json_t *conf, struct buf *out)
{
	const char *key;
	json_t *v;
	struct jw j;

	jw_init(&j, out, false);
	buf_printf(out, "{\"id\": \"%s\"", ops->zarr2_id);
	json_object_foreach((json_t *)(uintptr_t)conf, key, v)
	{ /* it only looks */
		if (strcmp(key, "id") == 0)
			continue;
		buf_puts(out, ", ");
		jw_text(&j, key, strlen(key));
		buf_puts(out, ": ");
		json_write_text(v, out);
	}
	buf_puts(out, "}");
	buf_putc(out, '\0');
}

/* ask_codec - get parameters from a document. A failure of a plugin makes the array unreadable. */
static int ask_codec(const struct codec_ops *ops, struct codec_conf *c, const json_t *conf,
		     uint32_t *params, uint32_t *ret_n, struct err *e)
{
	auto_buf text = buf_of(CONF_TEXT_MAX);
	int rc;

	if (!ops->from_zarr)
		return 0;
	if (!ops->origin && ops->h5_id != CODEC_LZMA) /* whose members include a list */
		return ops->from_zarr(c, params, ret_n, e);
	conf_text(ops, conf, &text);
	c->json = (const char *)text.data;
	rc = buf_ok(&text)
		     ? ops->from_zarr(c, params, ret_n, e)
		     : buf_full(&text, e, -EOPNOTSUPP,
				"codec '%.80s': its configuration is too long", ops->zarr2_id);
	return rc < 0 && rc != -ENOMEM && ops->origin ? -EOPNOTSUPP : rc;
}

int zr_spec_add(struct arena *a, struct zr_specs *s, const struct codec_ops *ops,
		const char *name, const json_t *conf, const struct codec_conf *of,
		const char **ret_why, struct err *e)
{
	struct codec_conf c = {.arg = (void *)(uintptr_t)conf, /* the getters only look */
			       .version = of->version,
			       .elem_size = of->elem_size,
			       .array = of->array,
			       .shape = of->shape,
			       .integer = codecs_get_integer,
			       .real = codecs_get_real,
			       .text = codecs_get_text};
	uint32_t params[CODEC_PARAMS_MAX] = {0}, n = 0;
	struct codec_spec *spec = &s->v[s->n];
	struct err inner = ERR_INIT;
	int rc;

	*ret_why = NULL;
	if (s->n == CODEC_CHAIN_MAX)
		return err_set(e, -ERANGE, "there are more than %d codecs", CODEC_CHAIN_MAX);
	rc = ask_codec(ops, &c, conf, params, &n, &inner);
	if (rc == -EOPNOTSUPP || !ops->decode) {
		*ret_why = rc < 0 ? zr_say(a, "%s", inner.msg)
				  : zr_say(a, "codec '%.80s' cannot be read", name);
		return *ret_why ? 0 : zr_full(a, e);
	}
	if (rc < 0)
		return err_set(e, rc, "codec '%.80s': %s", name, inner.msg);
	*spec = (struct codec_spec){.h5_id = ops->h5_id, .n_params = n};
	spec->name = arena_strdup(a, name);
	spec->params = arena_copy(a, params, n * sizeof(*params));
	if (!spec->name || !spec->params)
		return zr_full(a, e);
	s->n++;
	return 0;
}

int zr_specs_chain(struct arena *a, const struct zr_specs *s, struct codec_chain *ret,
		   struct err *e)
{
	*ret = (struct codec_chain){.n = s->n};
	if (s->n == 0)
		return 0;
	ret->specs = arena_copy(a, s->v, s->n * sizeof(*s->v));
	return ret->specs ? 0 : zr_full(a, e);
}

/* ---- lists ---- */

/* level - one list of codecs, in the order of encoding: the array's, or that of the chunks in a
 * shard. Members after specs are of Zarr v3. */
struct level {
	struct arena *a;
	struct zr_meta *m;
	struct err *e;
	size_t elem_size;
	struct zr_specs specs;
	unsigned int depth;
	const uint64_t *lens;        /* of the input of the codecs */
	uint32_t order[DS_RANK_MAX]; /* axis k, as transposed so far, is the array's order[k] */
	bool bytes;                  /* the codec that converts to bytes was seen */
	bool stop;                   /* the array is unreadable: ignore the rest */
	bool by_place;               /* a filter depends on the order of the elements */
	struct zr_shard *shard;      /* this level's, or NULL */
	const struct zr_shard **link; /* where to link it */
};

static int unreadable(struct level *l, const char *why)
{
	if (!why)
		return zr_full(l->a, l->e);
	if (!l->m->unreadable)
		l->m->unreadable = why;
	l->stop = true;
	return 0;
}

/* unreadable_as - the same with a formatted reason. */
#define unreadable_as(l, ...) unreadable(l, zr_say((l)->a, __VA_ARGS__))

/* codecs_add - append a codec; without a decoder for it, the array becomes unreadable. chunk: the
 * lengths of the axes, as the codec sees them. */
static int codecs_add(struct level *l, const struct codec_ops *ops, const char *name,
		      const json_t *conf, struct codec_conf of, const uint64_t *chunk)
{
	struct codec_array array;
	const char *why;
	int rc;

	of.elem_size = l->elem_size;
	of.array = zr_codec_array(l->m, chunk, &array) ? &array : NULL;
	rc = zr_spec_add(l->a, &l->specs, ops, name, conf, &of, &why, l->e);
	if (rc == 0 && why)
		return unreadable(l, why);
	if (ops->compressor)
		l->elem_size = 1;
	return rc;
}

/* Zarr v2's filters and compressor. With object dtypes the first filter defines the type of
 * elements. An unknown codec makes an array's chunks unreadable, not its metadata. */

static int codecs_id_of(const json_t *v, const char *what, struct ds_text *ret, struct err *e)
{
	if (!json_text_of(json_get(v, "id"), ret) || ret->len == 0 ||
	    memchr(ret->s, '\0', ret->len))
		return err_set(e, -EBADMSG, "%s is not an object with an id", what);
	return 0;
}

static int v2_add(struct level *l, const json_t *v, const struct ds_text *id)
{
	const struct codec_conf of = {.version = 2, .shape = l->m->shape};
	const struct codec_ops *ops = codec_find_zarr2(id->s, id->len);

	if (!ops)
		return unreadable(l, zr_missing(l->a, id->s));
	return codecs_add(l, ops, id->s, v, of, l->m->chunk);
}

/* ---- object dtypes ---- */

static enum zr_vlen vlen_of(const struct ds_text *id)
{
	return (enum zr_vlen)codec_vlen_find(id->s, id->len);
}

/* set_base - make elements lists of a copy of this type; NULL: of bytes. */
static int set_base(struct level *l, const struct dtype *base)
{
	static const struct dtype byte = {.kind = DT_UINT, .size = 1};
	struct dtype *copy = arena_copy(l->a, base ? base : &byte, sizeof(*copy));

	if (!copy)
		return zr_full(l->a, l->e);
	if (copy->kind == DT_BOOL)
		copy->kind = DT_UINT;
	l->m->dtype.type = (struct dtype){.kind = DT_VLEN, .base = copy};
	return 0;
}

static int vlen_array(struct level *l, const json_t *filter)
{
	struct zr_dtype t;
	int rc = zr_dtype_v2(l->a, json_get(filter, "dtype"), false, &t, l->e);

	if (rc == -EOPNOTSUPP)
		return unreadable_as(l, "codec 'vlen-array': this dtype is not supported");
	if (rc < 0)
		return err_wrap(l->e, rc, "codec 'vlen-array'");
	if (t.type.kind > DT_COMPLEX)
		return unreadable_as(l, "codec 'vlen-array': dtype is not a number");
	return set_base(l, &t.type);
}

/* first_of_objects - the filter that converts objects to bytes. */
static int first_of_objects(struct level *l, const json_t *filter, const struct ds_text *id)
{
	const json_t *encoding = json_get(filter, "encoding");
	enum zr_vlen vlen = vlen_of(id);

	if (vlen == ZR_VLEN_NONE) {
		l->m->vlen = ZR_VLEN_UTF8;
		return unreadable(
			l, codec_find_zarr2(id->s, id->len)
				   ? zr_say(l->a, "codec '%.80s' cannot encode objects", id->s)
				   : zr_missing(l->a, id->s));
	}
	l->m->vlen = vlen;
	if (vlen == ZR_VLEN_ARRAY)
		return vlen_array(l, filter);
	if (vlen == ZR_VLEN_BYTES)
		return set_base(l, NULL);
	if (vlen == ZR_VLEN_JSON && json_kind(encoding) != JSON_IS_NULL &&
	    !json_is(encoding, "utf-8") && !json_is(encoding, "utf8"))
		return unreadable_as(l, "codec 'json2': encoding is not utf-8");
	return 0;
}

static int add_filters(struct level *l, const json_t *filters)
{
	bool objects = l->m->dtype.stored == 0;
	size_t n = json_array_size(filters);
	struct ds_text id;
	int rc = 0;

	if (n > CODEC_CHAIN_MAX)
		return err_set(l->e, -ERANGE, "there are %zu filters, more than %d", n,
			       CODEC_CHAIN_MAX);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const json_t *v = json_array_get(filters, i);

		rc = codecs_id_of(v, "a filter", &id, l->e);
		if (rc < 0)
			return rc;
		if (i == 0 && objects)
			rc = first_of_objects(l, v, &id);
		else if (vlen_of(&id) != ZR_VLEN_NONE)
			rc = err_set(l->e, -EBADMSG,
				     "filter '%s' must come first and needs dtype '|O'", id.s);
		else
			rc = v2_add(l, v, &id);
	}
	if (rc == 0 && objects && n == 0) {
		l->m->vlen = ZR_VLEN_UTF8;
		rc = unreadable_as(l, "dtype '|O' needs a filter that states "
				      "the type of its elements");
	}
	return rc;
}

int zr_codecs_v2(struct arena *a, const json_t *filters, const json_t *compressor,
		 struct zr_meta *m, struct err *e)
{
	struct level l = {.a = a, .m = m, .e = e};
	struct ds_text id;
	int rc;

	l.elem_size = m->dtype.stored ? m->dtype.stored : 1;
	m->vlen = ZR_VLEN_NONE;
	m->unreadable = NULL;
	if (json_kind(filters) != JSON_IS_LIST && json_kind(filters) != JSON_IS_NULL)
		return err_set(e, -EBADMSG, "filters is not a list");
	rc = add_filters(&l, filters);
	if (rc == 0 && json_kind(compressor) != JSON_IS_NULL) {
		rc = codecs_id_of(compressor, "compressor", &id, e);
		rc = rc ? rc : v2_add(&l, compressor, &id);
	}
	return rc < 0 ? rc : zr_specs_chain(a, &l.specs, &m->chain, e);
}

/* Zarr v3's list of codecs. It has three parts: codecs of elements (transpose, filters), one that
 * converts to bytes, and codecs of bytes. If the middle one is sharding_indexed, the first part
 * applies to the shard, and a nested list of the same form to its chunks.
 *
 * Axes are those of the array, independent of transpositions, as in other implementations. */

#define SHARD_DEPTH_MAX 8
#define LIST_MAX 64 /* codecs in one list */
#define INDEX_ENTRY 16 /* bytes: offset, length. Spec: sharding-indexed, "Binary shard format" */

static int run_list(struct level *l, const json_t *list);

static int keep_order(const struct level *l, const uint32_t **ret)
{
	uint32_t rank = l->m->rank, i = 0;

	*ret = NULL;
	while (i < rank && l->order[i] == i)
		i++;
	if (i == rank)
		return 0;
	*ret = arena_copy(l->a, l->order, rank * sizeof(*l->order));
	return *ret ? 0 : zr_full(l->a, l->e);
}

/* ---- elements ---- */

static int codecs_transpose(struct level *l, const json_t *config)
{
	const json_t *order = json_get(config, "order");
	uint32_t rank = l->m->rank, next[DS_RANK_MAX];
	uint64_t seen = 0;

	if (json_is(order, "C"))
		return 0;
	if (l->by_place)
		return unreadable_as(l, "codec 'transpose' after a filter that depends on the "
					"order of elements is not supported");
	if (!json_is(order, "F") &&
	    (json_kind(order) != JSON_IS_LIST || json_array_size(order) != rank))
		return err_set(l->e, -EBADMSG,
			       "codec 'transpose': order does not have %" PRIu32 " dimensions",
			       rank);
	for (uint32_t k = 0; k < rank; k++) {
		uint64_t axis = rank - 1 - k;

		if (json_kind(order) == JSON_IS_LIST &&
		    json_u64(json_array_get(order, k), &axis) < 0)
			axis = rank;
		if (axis >= rank || seen >> axis & 1)
			return err_set(
				l->e, -EBADMSG,
				"codec 'transpose': order is not a permutation of %" PRIu32
				" dimensions",
				rank);
		seen |= (uint64_t)1 << axis;
		next[k] = l->order[axis];
	}
	memcpy(l->order, next, rank * sizeof(*next));
	return 0;
}

/* filter_kind - kind of an element codec: 0 none, 1 each element by itself, 2 depends on their
 * order. */
static int filter_kind(const struct codec_ops *ops)
{
	switch (ops->h5_id) {
	case CODEC_FIXEDSCALEOFFSET:
	case CODEC_QUANTIZE:
	case CODEC_BITROUND:
	case CODEC_ASTYPE:
		return 1;
	case CODEC_DELTA:
	case CODEC_PACKBITS:
	case CODEC_SHUFFLE:
		return 2;
	default:
		return 0;
	}
}

static int v3_add(struct level *l, const struct zr_named *c)
{
	const struct codec_ops *ops = codec_find_zarr3(c->name, strlen(c->name));
	uint64_t chunk[DS_RANK_MAX];
	int kind;

	if (!ops)
		return unreadable(l, zr_missing(l->a, c->name));
	kind = filter_kind(ops);
	if (!l->bytes && kind == 0)
		return err_set(l->e, -EBADMSG,
			       "codec '%.80s' works on bytes and must come after the codec "
			       "that makes bytes of the elements",
			       c->name);
	if (l->bytes && kind && ops->h5_id != CODEC_SHUFFLE)
		return err_set(l->e, -EBADMSG,
			       "codec '%.80s' works on elements and must come before the codec "
			       "that makes bytes of them",
			       c->name);
	if (!l->bytes && dt_is_vlen(&l->m->dtype.type))
		return unreadable_as(
			l, "codec '%.80s' does not support variable-length elements", c->name);
	for (uint32_t i = 0; i < l->m->rank; i++) /* as transposed so far */
		chunk[i] = l->lens[l->order[i]];
	l->by_place = l->by_place || kind == 2;
	return codecs_add(l, ops, c->name, c->config, (struct codec_conf){.version = 3}, chunk);
}

/* ---- from elements to bytes ---- */

static int endian_of(const struct level *l, const json_t *config, bool *ret)
{
	const json_t *endian = json_get(config, "endian");

	*ret = json_is(endian, "big");
	if (*ret || json_is(endian, "little") || json_kind(endian) == JSON_IS_NULL)
		return 0;
	return err_set(l->e, -EBADMSG, "codec 'bytes': endian is neither 'little' nor 'big'");
}

/* set_big - make numbers big-endian; fields of structures are copied for it. */
static int set_big(const struct level *l, struct dtype *t)
{
	struct dt_field *fields;
	int rc = 0;

	switch (t->kind) {
	case DT_INT:
	case DT_UINT:
	case DT_FLOAT:
	case DT_COMPLEX:
		t->big_endian = t->size > 1;
		return 0;
	case DT_COMPOUND:
		break;
	default:
		return 0;
	}
	fields = arena_copy(l->a, t->fields, t->n_fields * sizeof(*fields));
	if (!fields)
		return zr_full(l->a, l->e);
	for (uint32_t i = 0; rc == 0 && i < t->n_fields; i++)
		rc = set_big(l, &fields[i].type);
	t->fields = fields;
	return rc;
}

static int codecs_plain_bytes(struct level *l, const json_t *config)
{
	struct zr_dtype *t = &l->m->dtype;
	bool big;
	int rc = endian_of(l, config, &big);

	if (rc < 0)
		return rc;
	if (dt_is_vlen(&t->type))
		return err_set(l->e, -EBADMSG,
			       "codec 'bytes' does not support variable-length elements");
	l->bytes = true;
	if (!big)
		return 0;
	if (l->specs.n)
		return unreadable_as(l, "filters before big-endian bytes are not supported");
	t->big = t->conv == ZR_UTF32;
	return set_big(l, &t->type);
}

static int vlen_bytes(struct level *l, const char *name)
{
	bool utf8 = codec_vlen_find(name, strlen(name)) == CODEC_VLEN_UTF8;

	if (l->m->dtype.type.kind != (utf8 ? DT_VSTRING : DT_VLEN))
		return err_set(l->e, -EBADMSG, "codec '%s' does not support this data type",
			       name);
	l->m->vlen = utf8 ? ZR_VLEN_UTF8 : ZR_VLEN_BYTES;
	l->bytes = true;
	l->elem_size = 1;
	return 0;
}

/* packed_bits - Zarr v3's packbits, in the place of `bytes`. */
static int packed_bits(struct level *l, const struct zr_named *c)
{
	const struct codec_ops *ops = codec_find(CODEC_PACKBITS_ZARR3);
	const enum dt_kind kind = l->m->dtype.type.kind;
	struct codec_conf of = {.version = 3, .elem_size = l->elem_size};
	struct codec_array array;
	const char *why = NULL;
	int rc;

	if (kind != DT_BOOL && kind != DT_INT && kind != DT_UINT && kind != DT_FLOAT)
		return unreadable_as(l, "codec 'packbits' supports only numbers");
	if (l->specs.n)
		return unreadable_as(l, "filters before 'packbits' are not supported");
	l->bytes = true;
	(void)zr_codec_array(l->m, l->lens, &array); /* numbers have a size */
	if (kind == DT_BOOL)
		array.class = CODEC_OTHER;
	of.array = &array;
	rc = zr_spec_add(l->a, &l->specs, ops, c->name, c->config, &of, &why, l->e);
	l->elem_size = 1;
	return rc == 0 && why ? unreadable(l, why) : rc;
}

/* ---- shards ---- */

/* index_codecs - bytes, and at most a checksum: the size of the index must be known. */
static int index_codecs(struct level *l, struct zr_shard *s, const json_t *list)
{
	struct zr_specs specs = {.n = 0};
	size_t n = json_array_size(list);
	const struct codec_conf of = {.version = 3, .elem_size = 1};
	const struct codec_ops *ops;
	const char *why = NULL;
	struct zr_named c;
	int rc;

	if (json_kind(list) != JSON_IS_LIST || n == 0)
		return err_set(l->e, -EBADMSG, "codec 'sharding_indexed' has no index_codecs");
	for (size_t i = 0; i < n; i++) {
		rc = zr_named_of(json_array_get(list, i), "a codec", &c, l->e);
		if (rc < 0)
			return rc;
		if (i == 0 && (strcmp(c.name, "bytes") == 0 || strcmp(c.name, "endian") == 0)) {
			rc = endian_of(l, c.config, &s->index_big);
		} else {
			ops = codec_find_zarr3(c.name, strlen(c.name));
			if (i == 0 || !ops || ops->h5_id != CODEC_CRC32C)
				return unreadable_as(l,
						     "codec '%.80s' on the index of a "
						     "shard is not supported",
						     c.name);
			rc = zr_spec_add(l->a, &specs, ops, c.name, c.config, &of, &why, l->e);
			if (rc == 0 && !why &&
			    ckd_add(&s->index_bytes, s->index_bytes, (uint64_t)ops->trailer))
				rc = err_set(l->e, -ERANGE,
					     "the index of a shard is too large");
		}
		if (rc == 0 && why)
			return unreadable(l, why);
		if (rc < 0)
			return rc;
	}
	return zr_specs_chain(l->a, &specs, &s->index, l->e);
}

/* codecs_cut - lengths of the chunks in a shard, and how many there are. */
static int codecs_cut(struct level *l, struct zr_shard *s, const json_t *chunk_shape)
{
	uint32_t rank = l->m->rank;
	uint64_t *lens, *inner = arena_alloc(l->a, rank, sizeof(*inner));
	uint64_t *grid = arena_alloc(l->a, rank, sizeof(*grid));
	int rc;

	if (!inner || !grid)
		return zr_full(l->a, l->e);
	rc = zr_lengths(l->a, chunk_shape, "chunk_shape of codec 'sharding_indexed'", rank, 1,
			&lens, l->e);
	if (rc < 0)
		return rc;
	s->n = 1;
	for (uint32_t k = 0; k < rank; k++) {
		uint32_t axis = l->order[k];

		if (l->lens[axis] % lens[k])
			return err_set(l->e, -EBADMSG,
				       "chunk length %" PRIu64
				       " does not divide the shard length %" PRIu64,
				       lens[k], l->lens[axis]);
		inner[axis] = lens[k];
		grid[axis] = l->lens[axis] / lens[k];
		if (ckd_mul(&s->n, s->n, grid[axis]))
			return err_set(l->e, -ERANGE, "a shard has more than 2^64 chunks");
	}
	if (ckd_mul(&s->index_bytes, s->n, (uint64_t)INDEX_ENTRY))
		return err_set(l->e, -ERANGE, "the index of %" PRIu64 " chunks is too large",
			       s->n);
	s->inner = inner;
	s->grid = grid;
	return 0;
}

static int sharding(struct level *l, const json_t *config)
{
	const json_t *location = json_get(config, "index_location");
	struct zr_shard *s = arena_alloc(l->a, 1, sizeof(*s));
	struct level *in;
	int rc;

	if (!s)
		return zr_full(l->a, l->e);
	if (l->depth >= SHARD_DEPTH_MAX)
		return err_set(l->e, -ERANGE, "shards are nested more than %d deep",
			       SHARD_DEPTH_MAX);
	if (l->specs.n)
		return unreadable_as(l, "filters before 'sharding_indexed' are not supported");
	s->index_first = json_is(location, "start");
	if (!s->index_first && json_kind(location) != JSON_IS_NULL && !json_is(location, "end"))
		return err_set(l->e, -EBADMSG, "index_location is neither 'start' nor 'end'");
	rc = codecs_cut(l, s, json_get(config, "chunk_shape"));
	rc = rc ? rc : keep_order(l, &s->order);
	rc = rc ? rc : index_codecs(l, s, json_get(config, "index_codecs"));
	if (rc < 0)
		return rc;
	*l->link = s;
	l->shard = s;
	l->bytes = true;

	in = alloc_array(1, sizeof(*in));
	if (!in)
		return err_nomem(l->e);
	*in = (struct level){.a = l->a, .m = l->m, .e = l->e, .depth = l->depth + 1};
	in->lens = s->inner;
	in->elem_size = l->elem_size;
	in->link = &s->next;
	memcpy(in->order, l->order, sizeof(in->order));
	rc = run_list(in, json_get(config, "codecs"));
	l->stop = l->stop || in->stop;
	l->elem_size = 1;
	free(in);
	return rc < 0 ? err_wrap(l->e, rc, "codecs of a shard") : rc;
}

/* ---- the list ---- */

static int one_codec(struct level *l, const struct zr_named *c)
{
	bool plain = strcmp(c->name, "bytes") == 0 || strcmp(c->name, "endian") == 0;
	enum codec_vlen v = codec_vlen_find(c->name, strlen(c->name));
	bool vlen = v == CODEC_VLEN_UTF8 || v == CODEC_VLEN_BYTES; /* v3 has no others */
	bool shard = strcmp(c->name, "sharding_indexed") == 0;
	bool turn = strcmp(c->name, "transpose") == 0;
	bool bits = strcmp(c->name, "packbits") == 0;

	if (l->bytes && (plain || vlen || shard || turn || bits))
		return err_set(l->e, -EBADMSG,
			       "codec '%s' works on elements and must come before the codec "
			       "that makes bytes of them",
			       c->name);
	if (turn)
		return codecs_transpose(l, c->config);
	if (plain)
		return codecs_plain_bytes(l, c->config);
	if (vlen)
		return vlen_bytes(l, c->name);
	if (bits)
		return packed_bits(l, c);
	return shard ? sharding(l, c->config) : v3_add(l, c);
}

static int run_list(struct level *l, const json_t *list)
{
	size_t n = json_array_size(list);
	struct zr_named c;
	int rc = 0;

	if (json_kind(list) != JSON_IS_LIST)
		return err_set(l->e, -EBADMSG, "codecs is not a list");
	if (n > LIST_MAX)
		return err_set(l->e, -ERANGE, "there are %zu codecs, more than %d", n,
			       LIST_MAX);
	for (size_t i = 0; rc == 0 && !l->stop && i < n; i++) {
		rc = zr_named_of(json_array_get(list, i), "a codec", &c, l->e);
		rc = rc ? rc : one_codec(l, &c);
	}
	if (rc == 0 && !l->stop && !l->bytes)
		rc = err_set(l->e, -EBADMSG, "no codec makes bytes of the elements");
	if (rc < 0)
		return rc;
	if (l->shard)
		return zr_specs_chain(l->a, &l->specs, &l->shard->outer, l->e);
	rc = keep_order(l, &l->m->order);
	return rc < 0 ? rc : zr_specs_chain(l->a, &l->specs, &l->m->chain, l->e);
}

int zr_codecs_v3(struct arena *a, const json_t *codecs, struct zr_meta *m, struct err *e)
{
	struct level l = {.a = a, .m = m, .e = e, .lens = m->chunk, .link = &m->shard};

	m->vlen = ZR_VLEN_NONE;
	m->unreadable = NULL;
	m->shard = NULL;
	l.elem_size = m->dtype.stored ? m->dtype.stored : 1;
	for (uint32_t i = 0; i < m->rank; i++)
		l.order[i] = i;
	/* documents older than the final specification may omit it */
	if (!codecs && !dt_is_vlen(&m->dtype.type))
		return 0;
	return run_list(&l, codecs);
}
