/* codecs_v3.c - Zarr v3's list of codecs. It has three parts: codecs of elements (transpose,
 * filters), one that makes bytes of them, and codecs of bytes. Where the one in the middle is
 * sharding_indexed, the first part is about the shard, and a list of the same form begins anew for
 * the chunks in it.
 *
 * Axes are counted here as the array has them, whatever was transposed on the way: that is how
 * everybody else counts. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "nczarr/source/array_v3.h"

#define SHARD_DEPTH_MAX 8
#define LIST_MAX 64 /* codecs in one list */
#define INDEX_ENTRY                                                                            \
	16 /* bytes: offset, length. Spec: sharding-indexed, "Binary shard format" */

/* level - one list of codecs: the array's, or that of the chunks in a shard. */
struct level {
	struct arena *a;
	struct zr_meta *m;
	struct err *e;
	unsigned int depth;
	const uint64_t *lens;        /* of what the codecs get */
	uint32_t order[DS_RANK_MAX]; /* axis k, as transposed so far, is the array's order[k] */
	bool bytes;                  /* the codec that makes bytes has been */
	bool stop;     /* the array is unreadable: what follows is not looked at */
	bool by_place; /* a filter depends on the order of the elements */
	size_t elem_size;
	struct zr_specs specs;
	struct zr_shard *shard;       /* this level's, or NULL */
	const struct zr_shard **link; /* where it belongs */
};

static int run_list(struct level *l, const json_t *list);

static int unreadable(struct level *l, const char *why)
{
	if (!why)
		return zr_no_room(l->a, l->e);
	if (!l->m->unreadable)
		l->m->unreadable = why;
	l->stop = true;
	return 0;
}

static int keep_order(const struct level *l, const uint32_t **ret)
{
	uint32_t rank = l->m->rank, i = 0;

	*ret = NULL;
	while (i < rank && l->order[i] == i)
		i++;
	if (i == rank)
		return 0;
	*ret = arena_copy(l->a, l->order, rank * sizeof(*l->order));
	return *ret ? 0 : zr_no_room(l->a, l->e);
}

/* ---- elements ---- */

static int transpose(struct level *l, const json_t *config)
{
	const json_t *order = json_get(config, "order");
	uint32_t rank = l->m->rank, next[DS_RANK_MAX];
	uint64_t seen = 0;

	if (json_is(order, "C"))
		return 0;
	if (l->by_place)
		return unreadable(l,
				  zr_say(l->a, "codec 'transpose' behind a filter that depends "
					       "on the order of elements is not supported"));
	if (!json_is(order, "F") &&
	    (json_kind(order) != JSON_IS_LIST || json_array_size(order) != rank))
		return err_set(l->e, -EBADMSG,
			       "codec 'transpose': order does not have %" PRIu32 " axes", rank);
	for (uint32_t k = 0; k < rank; k++) {
		uint64_t axis = rank - 1 - k;

		if (json_kind(order) == JSON_IS_LIST &&
		    json_u64(json_array_get(order, k), &axis) < 0)
			axis = rank;
		if (axis >= rank || seen >> axis & 1)
			return err_set(
				l->e, -EBADMSG,
				"codec 'transpose': order is not a permutation of %" PRIu32
				" axes",
				rank);
		seen |= (uint64_t)1 << axis;
		next[k] = l->order[axis];
	}
	memcpy(l->order, next, rank * sizeof(*next));
	return 0;
}

/* filter_kind - codecs of elements: 0 none, 1 each element by itself, 2 by their order too. */
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

static int add(struct level *l, const struct zr_named *c)
{
	const struct codec_ops *ops = codec_find_zarr3(c->name, strlen(c->name));
	struct codec_conf of = {.version = 3, .elem_size = l->elem_size};
	uint64_t chunk[DS_RANK_MAX];
	struct codec_array array;
	const char *why;
	int rc, kind;

	if (!ops)
		return unreadable(l, zr_missing(l->a, c->name));
	kind = filter_kind(ops);
	if (!l->bytes && kind == 0)
		return err_set(l->e, -EBADMSG,
			       "codec '%.80s' works on bytes, and there are none yet", c->name);
	if (l->bytes && kind && ops->h5_id != CODEC_SHUFFLE)
		return err_set(l->e, -EBADMSG,
			       "codec '%.80s' works on elements, and comes behind their bytes",
			       c->name);
	if (!l->bytes && dt_is_vlen(&l->m->dtype.type))
		return unreadable(l, zr_say(l->a,
					    "codec '%.80s' on elements of any length is not "
					    "supported",
					    c->name));
	for (uint32_t i = 0; i < l->m->rank; i++) /* as transposed so far */
		chunk[i] = l->lens[l->order[i]];
	if (zr_codec_array(l->m, chunk, &array))
		of.array = &array;
	rc = zr_spec_add(l->a, &l->specs, ops, c->name, c->config, &of, &why, l->e);
	if (rc == 0 && why)
		return unreadable(l, why);
	l->by_place = l->by_place || kind == 2;
	if (ops->compressor)
		l->elem_size = 1;
	return rc;
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

/* set_big - numbers are big-endian; fields of structures are copied for it. */
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
		return zr_no_room(l->a, l->e);
	for (uint32_t i = 0; rc == 0 && i < t->n_fields; i++)
		rc = set_big(l, &fields[i].type);
	t->fields = fields;
	return rc;
}

static int plain_bytes(struct level *l, const json_t *config)
{
	struct zr_dtype *t = &l->m->dtype;
	bool big;
	int rc = endian_of(l, config, &big);

	if (rc < 0)
		return rc;
	if (dt_is_vlen(&t->type))
		return err_set(l->e, -EBADMSG, "codec 'bytes' with elements of any length");
	l->bytes = true;
	if (!big)
		return 0;
	if (l->specs.n)
		return unreadable(l, zr_say(l->a, "filters before big-endian bytes are not "
						  "supported"));
	t->big = t->conv == ZR_UTF32;
	return set_big(l, &t->type);
}

static int vlen_bytes(struct level *l, const char *name)
{
	bool utf8 = codec_vlen_find(name, strlen(name)) == CODEC_VLEN_UTF8;

	if (l->m->dtype.type.kind != (utf8 ? DT_VSTRING : DT_VLEN))
		return err_set(l->e, -EBADMSG, "codec '%s' does not fit the data type", name);
	l->m->vlen = utf8 ? ZR_VLEN_UTF8 : ZR_VLEN_BYTES;
	l->bytes = true;
	l->elem_size = 1;
	return 0;
}

/* packed_bits - Zarr v3's packbits, which stands where `bytes` does. */
static int packed_bits(struct level *l, const struct zr_named *c)
{
	const struct codec_ops *ops = codec_find(CODEC_PACKBITS_ZARR3);
	const enum dt_kind kind = l->m->dtype.type.kind;
	struct codec_conf of = {.version = 3, .elem_size = l->elem_size};
	struct codec_array array;
	const char *why = NULL;
	int rc;

	if (kind != DT_BOOL && kind != DT_INT && kind != DT_UINT && kind != DT_FLOAT)
		return unreadable(l, zr_say(l->a, "codec 'packbits' of elements that are no "
						  "numbers is not supported"));
	if (l->specs.n)
		return unreadable(l, zr_say(l->a, "filters before 'packbits' are not "
						  "supported"));
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

/* index_codecs - bytes, and at most a checksum: the index must have a size that is known. */
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
				return unreadable(l, zr_say(l->a,
							    "codec '%.80s' on the index of a "
							    "shard is not supported",
							    c.name));
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

/* cut - lengths of the chunks in a shard, and how many there are. */
static int cut(struct level *l, struct zr_shard *s, const json_t *chunk_shape)
{
	uint32_t rank = l->m->rank;
	uint64_t *lens, *inner = arena_alloc(l->a, rank, sizeof(*inner));
	uint64_t *grid = arena_alloc(l->a, rank, sizeof(*grid));
	int rc;

	if (!inner || !grid)
		return zr_no_room(l->a, l->e);
	rc = zr_lengths(l->a, chunk_shape, "chunk_shape of codec 'sharding_indexed'", rank, 1,
			&lens, l->e);
	if (rc < 0)
		return rc;
	s->n = 1;
	for (uint32_t k = 0; k < rank; k++) {
		uint32_t axis = l->order[k];

		if (l->lens[axis] % lens[k])
			return err_set(l->e, -EBADMSG,
				       "chunks of length %" PRIu64
				       " do not fit into a shard of length %" PRIu64,
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
		return zr_no_room(l->a, l->e);
	if (l->depth >= SHARD_DEPTH_MAX)
		return err_set(l->e, -ERANGE, "shards are nested more than %d deep",
			       SHARD_DEPTH_MAX);
	if (l->specs.n)
		return unreadable(l, zr_say(l->a, "filters before 'sharding_indexed' are not "
						  "supported"));
	s->index_first = json_is(location, "start");
	if (!s->index_first && json_kind(location) != JSON_IS_NULL && !json_is(location, "end"))
		return err_set(l->e, -EBADMSG, "index_location is neither 'start' nor 'end'");
	rc = cut(l, s, json_get(config, "chunk_shape"));
	if (rc == 0)
		rc = keep_order(l, &s->order);
	if (rc == 0)
		rc = index_codecs(l, s, json_get(config, "index_codecs"));
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
	return rc < 0 ? err_wrap(l->e, rc, "in a shard") : rc;
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
			       "codec '%s' works on elements, and comes behind their bytes",
			       c->name);
	if (turn)
		return transpose(l, c->config);
	if (plain)
		return plain_bytes(l, c->config);
	if (vlen)
		return vlen_bytes(l, c->name);
	if (bits)
		return packed_bits(l, c);
	return shard ? sharding(l, c->config) : add(l, c);
}

static int run_list(struct level *l, const json_t *list)
{
	size_t n = json_array_size(list);
	struct zr_named c;
	int rc = 0;

	if (json_kind(list) != JSON_IS_LIST)
		return err_set(l->e, -EBADMSG, "codecs are not a list");
	if (n > LIST_MAX)
		return err_set(l->e, -ERANGE, "there are %zu codecs, more than %d", n,
			       LIST_MAX);
	for (size_t i = 0; rc == 0 && !l->stop && i < n; i++) {
		rc = zr_named_of(json_array_get(list, i), "a codec", &c, l->e);
		if (rc == 0)
			rc = one_codec(l, &c);
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
	/* documents from before the specification was final may do without */
	if (!codecs && !dt_is_vlen(&m->dtype.type))
		return 0;
	return run_list(&l, codecs);
}
