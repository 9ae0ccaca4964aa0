/* SPDX-License-Identifier: BSD-3-Clause */
/* Codecs of both Zarr versions: chains, byte order, axes, shards, and what cannot be read. */
#include "tests/unit/nczarr/source/nczarr_zr.h"

#include <errno.h>
#include <stdio.h>

/* an array of a 12 x 10 x 8 chunk; documents stay until the arena goes */
struct fixture {
	struct arena a;
	struct zr_meta m;
	struct err e;
	json_t *docs[8];
	size_t n_docs;
};

static const uint64_t chunk[] = {12, 10, 8};

static const json_t *keep(struct fixture *x, const char *text)
{
	assert_true(x->n_docs < ARRAY_LEN(x->docs));
	return text ? x->docs[x->n_docs++] = zr_json(text) : NULL;
}

static void begin(struct fixture *x, int version, const char *dtype)
{
	int rc;

	*x = (struct fixture){
		.m = {.format = version, .rank = 3, .shape = chunk, .chunk = chunk}};
	arena_init(&x->a, 1 << 20);
	if (version == 2)
		rc = zr_dtype_v2(&x->a, keep(x, dtype), false, &x->m.dtype, NULL);
	else
		rc = zr_dtype_v3(&x->a, keep(x, dtype), &x->m.dtype, NULL);
	assert_int_equal(rc, 0);
}

static void end(struct fixture *x)
{
	for (size_t i = 0; i < x->n_docs; i++)
		json_decref(x->docs[i]);
	arena_release(&x->a);
}

static int v2(struct fixture *x, const char *dtype, const char *filters, const char *compressor)
{
	begin(x, 2, dtype);
	return zr_codecs_v2(&x->a, keep(x, filters), keep(x, compressor), &x->m, &x->e);
}

static int v3(struct fixture *x, const char *dtype, const char *codecs)
{
	begin(x, 3, dtype);
	return zr_codecs_v3(&x->a, keep(x, codecs), &x->m, &x->e);
}

static void chain_is(const struct codec_chain *c, uint32_t n, const uint32_t *ids)
{
	assert_int_equal(c->n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(c->specs[i].h5_id, ids[i]);
}

#define CHAIN(c, ...)                                                                          \
	chain_is(&(c), sizeof((uint32_t[]){__VA_ARGS__}) / 4, (uint32_t[]){__VA_ARGS__})

static void lens_are(const uint64_t *v, uint64_t x, uint64_t y, uint64_t z)
{
	assert_int_equal(v[0], x);
	assert_int_equal(v[1], y);
	assert_int_equal(v[2], z);
}

static void order_is(const uint32_t *v, uint32_t x, uint32_t y, uint32_t z)
{
	assert_non_null(v);
	assert_int_equal(v[0], x);
	assert_int_equal(v[1], y);
	assert_int_equal(v[2], z);
}

static void unreadable(struct fixture *x, int rc, const char *why)
{
	if (rc < 0)
		fail_msg("%s, not: %s", x->e.msg, why);
	assert_non_null(x->m.unreadable);
	/* what can be done about it may follow */
	if (strncmp(x->m.unreadable, why, strlen(why)) != 0)
		fail_msg("%s, not: %s", x->m.unreadable, why);
	end(x);
}

static void fails(struct fixture *x, int rc, int wanted, const char *words)
{
	if (rc != wanted || !strstr(x->e.msg, words))
		fail_msg("%d %s, not %d %s", rc, x->e.msg, wanted, words);
	end(x);
}

/* ---- v2 ---- */

static void test_v2_chain(void **state)
{
	struct fixture x;

	(void)state;
	assert_int_equal(v2(&x, "'<i4'", NULL, NULL), 0);
	assert_int_equal(x.m.chain.n, 0);
	assert_null(x.m.unreadable);
	end(&x);
	assert_int_equal(v2(&x, "'<i4'", "[]", "null"), 0);
	assert_int_equal(x.m.chain.n, 0);
	end(&x);
	assert_int_equal(v2(&x, "'<i4'", "null", "{'id': 'zlib', 'level': 1}"), 0);
	CHAIN(x.m.chain, CODEC_DEFLATE);
	assert_string_equal(x.m.chain.specs[0].name, "zlib");
	end(&x);
	/* filters come first; a quoted number is one */
	assert_int_equal(v2(&x, "'<i8'", "[{'id': 'shuffle', 'elementsize': '2'}]",
			    "{'id': 'zstd', 'level': '3'}"),
			 0);
	CHAIN(x.m.chain, CODEC_SHUFFLE, CODEC_ZSTD);
	assert_int_equal(x.m.chain.specs[0].n_params, 1);
	assert_int_equal(x.m.chain.specs[0].params[0], 2);
	end(&x);
	/* netCDF-C: the size of an element, and a checksum as the compressor */
	assert_int_equal(v2(&x, "'<i8'", "[{'id': 'shuffle', 'elementsize': 0}]",
			    "{'id': 'fletcher32'}"),
			 0);
	CHAIN(x.m.chain, CODEC_SHUFFLE, CODEC_FLETCHER32);
	assert_int_equal(x.m.chain.specs[0].params[0], 8);
	end(&x);
	/* netCDF-C's szip: the shape of the array says what a scanline is */
	assert_int_equal(v2(&x, "'>f4'", NULL,
			    "{'id': 'szip', 'mask': '32', 'pixels-per-block': 8}"),
			 0);
	CHAIN(x.m.chain, CODEC_SZIP);
	assert_memory_equal(x.m.chain.specs[0].params, ((uint32_t[]){177, 8, 32, 8}), 16);
	end(&x);
	unreadable(&x,
		   v2(&x, "'<c16'", NULL, "{'id': 'szip', 'mask': 32, 'pixels-per-block': 8}"),
		   "szip: elements are not numbers");
	/* behind a compressor there are bytes */
	assert_int_equal(
		v2(&x, "'<i8'", "[{'id': 'zlib'}, {'id': 'shuffle', 'elementsize': 0}]", NULL),
		0);
	assert_int_equal(x.m.chain.specs[1].params[0], 1);
	end(&x);
}

static void test_v2_objects(void **state)
{
	struct fixture x;

	(void)state;
	assert_int_equal(v2(&x, "'|O'", "[{'id': 'vlen-utf8'}]", "{'id': 'zlib'}"), 0);
	assert_int_equal(x.m.vlen, ZR_VLEN_UTF8);
	assert_int_equal(x.m.dtype.type.kind, DT_VSTRING);
	assert_int_equal(x.m.dtype.stored, 0);
	CHAIN(x.m.chain, CODEC_DEFLATE);
	end(&x);
	assert_int_equal(v2(&x, "'|O'", "[{'id': 'vlen-bytes'}]", NULL), 0);
	assert_int_equal(x.m.vlen, ZR_VLEN_BYTES);
	assert_int_equal(x.m.dtype.type.kind, DT_VLEN);
	assert_int_equal(x.m.dtype.type.base->kind, DT_UINT);
	assert_int_equal(x.m.dtype.type.base->size, 1);
	assert_int_equal(x.m.chain.n, 0);
	end(&x);
	assert_int_equal(v2(&x, "'|O'", "[{'id': 'vlen-array', 'dtype': '>i2'}]", NULL), 0);
	assert_int_equal(x.m.vlen, ZR_VLEN_ARRAY);
	assert_int_equal(x.m.dtype.type.base->kind, DT_INT);
	assert_int_equal(x.m.dtype.type.base->size, 2);
	assert_true(x.m.dtype.type.base->big_endian);
	end(&x);
	assert_int_equal(v2(&x, "'|O'", "[{'id': 'vlen-array', 'dtype': '|b1'}]", NULL), 0);
	assert_int_equal(x.m.dtype.type.base->kind, DT_UINT);
	end(&x);
	assert_int_equal(v2(&x, "'|O'", "[{'id': 'json2', 'encoding': 'utf-8'}]", NULL), 0);
	assert_int_equal(x.m.vlen, ZR_VLEN_JSON);
	assert_int_equal(x.m.dtype.type.kind, DT_VSTRING);
	end(&x);
}

static void test_v2_unreadable(void **state)
{
	struct fixture x;

	(void)state;
	unreadable(&x, v2(&x, "'<i4'", NULL, "{'id': 'pcodec', 'level': 8}"),
		   "codec 'pcodec' is not supported: copy the array with zarr-python and "
		   "numcodecs[pcodec] to another codec, or add the directory of an NCZarr "
		   "plugin for it to HDF5_PLUGIN_PATH");
	unreadable(&x, v2(&x, "'<i4'", "[{'id': 'a\\u0007\\u00e9b'}, {'id': 'c'}]", NULL),
		   "codec 'a?\xc3\xa9"
		   "b' is not supported");
	unreadable(&x, v2(&x, "'|O'", "[{'id': 'pickle'}]", NULL),
		   "codec 'pickle' is not supported");
	unreadable(&x, v2(&x, "'|O'", NULL, "{'id': 'zlib'}"),
		   "dtype '|O' needs a filter that states the type of its elements");
	unreadable(&x, v2(&x, "'|O'", "[{'id': 'zlib'}]", NULL),
		   "codec 'zlib' cannot encode objects");
	unreadable(&x, v2(&x, "'|O'", "[{'id': 'vlen-array', 'dtype': '<f16'}]", NULL),
		   "codec 'vlen-array': this dtype is not supported");
	unreadable(&x, v2(&x, "'|O'", "[{'id': 'vlen-array', 'dtype': '|S3'}]", NULL),
		   "codec 'vlen-array': dtype is not a number");
	unreadable(&x, v2(&x, "'|O'", "[{'id': 'json2', 'encoding': 'utf-16'}]", NULL),
		   "codec 'json2': encoding is not utf-8");
	unreadable(&x, v2(&x, "'<i4'", NULL, "{'id': 'blosc', 'cname': 'lzo'}"),
		   "blosc: compressor 'lzo' is not supported");
}

static void test_v2_bad(void **state)
{
	struct fixture x;
	char many[2048] = "[{'id': 'zlib'}";

	(void)state;
	fails(&x, v2(&x, "'<i4'", "5", NULL), -EBADMSG, "filters");
	fails(&x, v2(&x, "'<i4'", "{'id': 'zlib'}", NULL), -EBADMSG, "filters");
	fails(&x, v2(&x, "'<i4'", "['zlib']", NULL), -EBADMSG, "a filter");
	fails(&x, v2(&x, "'<i4'", NULL, "'zlib'"), -EBADMSG, "compressor");
	fails(&x, v2(&x, "'<i4'", NULL, "{'id': 5}"), -EBADMSG, "compressor");
	fails(&x, v2(&x, "'<i4'", NULL, "{'id': ''}"), -EBADMSG, "compressor");
	fails(&x, v2(&x, "'<i4'", NULL, "{'id': 'zlib\\u0000'}"), -EBADMSG, "compressor");
	fails(&x, v2(&x, "'<i4'", "[{'id': 'vlen-utf8'}]", NULL), -EBADMSG, "'|O'");
	fails(&x, v2(&x, "'|O'", "[{'id': 'vlen-utf8'}, {'id': 'vlen-utf8'}]", NULL), -EBADMSG,
	      "first");
	fails(&x, v2(&x, "'|O'", "[{'id': 'vlen-array'}]", NULL), -EBADMSG, "vlen-array");
	fails(&x, v2(&x, "'<i4'", "[{'id': 'shuffle', 'elementsize': 'x'}]", NULL), -EBADMSG,
	      "shuffle");
	fails(&x, v2(&x, "'<i4'", "[{'id': 'shuffle', 'elementsize': 1.5}]", NULL), -EBADMSG,
	      "shuffle");
	for (int i = 0; i < CODEC_CHAIN_MAX; i++)
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many),
			       ", {'id': 'zlib'}");
	(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "]");
	fails(&x, v2(&x, "'<i4'", many, NULL), -ERANGE, "33 filters");
	memcpy(many, "[          ", 11); /* one fewer, and the compressor */
	memset(many + 11, ' ', strcspn(many + 11, "{"));
	fails(&x, v2(&x, "'<i4'", many, "{'id': 'zlib'}"), -ERANGE, "more than 32");
}

/* ---- v3 ---- */

#define LITTLE "{'name': 'bytes', 'configuration': {'endian': 'little'}}"
#define BIG "{'name': 'bytes', 'configuration': {'endian': 'big'}}"
#define TURN(order) "{'name': 'transpose', 'configuration': {'order': " order "}}"
#define SHARD(shape, codecs, index, more)                                                      \
	"{'name': 'sharding_indexed', 'configuration': {'chunk_shape': " shape                 \
	", 'codecs': [" codecs "], 'index_codecs': [" index "]" more "}}"
#define CRC "{'name': 'crc32c'}"

static void test_v3_chain(void **state)
{
	struct fixture x;

	(void)state;
	assert_int_equal(v3(&x, "'int32'", "[" LITTLE "]"), 0);
	assert_int_equal(x.m.chain.n, 0);
	assert_null(x.m.order);
	assert_null(x.m.shard);
	assert_false(x.m.dtype.type.big_endian);
	end(&x);
	assert_int_equal(v3(&x, "'int32'",
			    "['bytes', {'name': 'gzip', 'configuration': "
			    "{'level': 5}}, 'crc32c']"),
			 0);
	CHAIN(x.m.chain, CODEC_GZIP, CODEC_CRC32C);
	end(&x);
	assert_int_equal(v3(&x, "'int32'",
			    "[" LITTLE ", {'name': 'numcodecs.zlib', "
			    "'configuration': {'level': 8}}]"),
			 0);
	CHAIN(x.m.chain, CODEC_DEFLATE);
	end(&x);
	assert_int_equal(v3(&x, "'int16'",
			    "[" LITTLE ", {'name': 'numcodecs.shuffle', "
			    "'configuration': {'elementsize': 2}}, 'zstd']"),
			 0);
	CHAIN(x.m.chain, CODEC_SHUFFLE, CODEC_ZSTD);
	assert_int_equal(x.m.chain.specs[0].params[0], 2);
	end(&x);
	/* written before the specification was final */
	assert_int_equal(v3(&x, "'int32'", NULL), 0);
	assert_int_equal(x.m.chain.n, 0);
	end(&x);
	assert_int_equal(v3(&x, "'int32'",
			    "[{'name': 'endian', 'configuration': {'endian': "
			    "'big'}}]"),
			 0);
	assert_true(x.m.dtype.type.big_endian);
	end(&x);
}

static void test_v3_big(void **state)
{
	struct fixture x;
	const struct dt_field *f;

	(void)state;
	assert_int_equal(v3(&x, "'complex64'", "[" BIG "]"), 0);
	assert_true(x.m.dtype.type.big_endian);
	end(&x);
	assert_int_equal(v3(&x, "'uint8'", "[" BIG "]"), 0);
	assert_false(x.m.dtype.type.big_endian);
	end(&x);
	assert_int_equal(v3(&x,
			    "{'name': 'fixed_length_utf32', 'configuration': "
			    "{'length_bytes': 8}}",
			    "[" BIG "]"),
			 0);
	assert_true(x.m.dtype.big);
	assert_false(x.m.dtype.type.big_endian);
	end(&x);
	assert_int_equal(v3(&x,
			    "{'name': 'struct', 'configuration': {'fields': [['a', 'int16'], "
			    "['n', {'name': 'struct', 'configuration': {'fields': [['b', "
			    "'float64'], ['c', 'uint8']]}}], ['u', {'name': "
			    "'fixed_length_utf32', 'configuration': {'length_bytes': 8}}]]}}",
			    "[" BIG "]"),
			 0);
	f = x.m.dtype.type.fields;
	assert_true(f[0].type.big_endian);
	assert_true(f[1].type.fields[0].type.big_endian);
	assert_false(f[1].type.fields[1].type.big_endian);
	assert_true(f[2].type.big_endian);
	end(&x);
}

static void test_v3_texts(void **state)
{
	struct fixture x;

	(void)state;
	assert_int_equal(v3(&x, "'string'", "[" TURN("[1, 0, 2]") ", 'vlen-utf8', 'zstd']"), 0);
	assert_int_equal(x.m.vlen, ZR_VLEN_UTF8);
	order_is(x.m.order, 1, 0, 2);
	CHAIN(x.m.chain, CODEC_ZSTD);
	end(&x);
	assert_int_equal(v3(&x, "'bytes'", "['vlen-bytes']"), 0);
	assert_int_equal(x.m.vlen, ZR_VLEN_BYTES);
	end(&x);
	assert_int_equal(
		v3(&x, "'string'", "[" SHARD("[6, 5, 8]", "'vlen-utf8'", "'bytes'", "") "]"),
		0);
	assert_int_equal(x.m.vlen, ZR_VLEN_UTF8);
	assert_non_null(x.m.shard);
	end(&x);
	fails(&x, v3(&x, "'string'", "['vlen-bytes']"), -EBADMSG,
	      "does not support this data type");
	fails(&x, v3(&x, "'int8'", "['vlen-utf8']"), -EBADMSG,
	      "does not support this data type");
	fails(&x, v3(&x, "'string'", "['bytes']"), -EBADMSG, "variable-length elements");
	fails(&x, v3(&x, "'string'", NULL), -EBADMSG, "not a list");
}

static void test_transpose(void **state)
{
	struct fixture x;

	(void)state;
	assert_int_equal(v3(&x, "'int32'", "[" TURN("[2, 0, 1]") ", " LITTLE "]"), 0);
	order_is(x.m.order, 2, 0, 1);
	end(&x);
	assert_int_equal(v3(&x, "'int32'", "[" TURN("'F'") ", " LITTLE "]"), 0);
	order_is(x.m.order, 2, 1, 0);
	end(&x);
	assert_int_equal(v3(&x, "'int32'", "[" TURN("'C'") ", " LITTLE "]"), 0);
	assert_null(x.m.order);
	end(&x);
	/* numpy: a.transpose(2, 0, 1).transpose(1, 0, 2) has axes 0, 2, 1 of a */
	assert_int_equal(
		v3(&x, "'int32'", "[" TURN("[2, 0, 1]") ", " TURN("[1, 0, 2]") ", " LITTLE "]"),
		0);
	order_is(x.m.order, 0, 2, 1);
	end(&x);
	assert_int_equal(v3(&x, "'int32'", "[" TURN("'F'") ", " TURN("'F'") ", " LITTLE "]"),
			 0);
	assert_null(x.m.order);
	end(&x);
	fails(&x, v3(&x, "'int32'", "[" TURN("[0, 1]") "]"), -EBADMSG, "3 dimensions");
	fails(&x, v3(&x, "'int32'", "[" TURN("[0, 1, 1]") "]"), -EBADMSG, "permutation");
	fails(&x, v3(&x, "'int32'", "[" TURN("[0, 1, 3]") "]"), -EBADMSG, "permutation");
	fails(&x, v3(&x, "'int32'", "[" TURN("[0, 1, -1]") "]"), -EBADMSG, "permutation");
	fails(&x, v3(&x, "'int32'", "[" TURN("[0, 1, 1.5]") "]"), -EBADMSG, "permutation");
	fails(&x, v3(&x, "'int32'", "[" TURN("[0, 1, 18446744073709551615]") "]"), -EBADMSG,
	      "permutation");
	fails(&x, v3(&x, "'int32'", "['transpose']"), -EBADMSG, "3 dimensions");
	fails(&x, v3(&x, "'int32'", "[" LITTLE ", " TURN("[0, 1, 2]") "]"), -EBADMSG,
	      "must come before");
}

static void test_shard(void **state)
{
	const struct zr_shard *s;
	struct fixture x;

	(void)state;
	assert_int_equal(v3(&x, "'int32'",
			    "[" SHARD("[6, 5, 4]", LITTLE ", 'zstd'", LITTLE ", " CRC, "") "]"),
			 0);
	s = x.m.shard;
	lens_are(s->inner, 6, 5, 4);
	lens_are(s->grid, 2, 2, 2);
	assert_int_equal(s->n, 8);
	assert_int_equal(s->index_bytes, 8 * 16 + 4);
	assert_false(s->index_first);
	assert_false(s->index_big);
	assert_null(s->order);
	assert_null(s->next);
	CHAIN(s->index, CODEC_CRC32C);
	assert_int_equal(s->outer.n, 0);
	CHAIN(x.m.chain, CODEC_ZSTD);
	assert_null(x.m.order);
	end(&x);

	assert_int_equal(v3(&x, "'int32'",
			    "[" SHARD("[12, 10, 1]", BIG, BIG,
				      ", 'index_location': 'start'") ", 'gzip']"),
			 0);
	s = x.m.shard;
	assert_int_equal(s->n, 8);
	assert_int_equal(s->index_bytes, 8 * 16);
	assert_true(s->index_first);
	assert_true(s->index_big);
	assert_int_equal(s->index.n, 0);
	CHAIN(s->outer, CODEC_GZIP);
	assert_int_equal(x.m.chain.n, 0);
	assert_true(x.m.dtype.type.big_endian);
	end(&x);
}

/* chunk_shape counts the axes as the codec before has left them. */
static void test_shard_axes(void **state)
{
	const struct zr_shard *s;
	struct fixture x;

	(void)state;
	assert_int_equal(
		v3(&x, "'int32'",
		   "[" TURN("[2, 0, 1]") ", " SHARD("[8, 6, 5]", TURN("[1, 0, 2]") ", " LITTLE,
						    LITTLE, "") "]"),
		0);
	s = x.m.shard;
	order_is(s->order, 2, 0, 1);
	lens_are(s->inner, 6, 5, 8);
	lens_are(s->grid, 2, 2, 1);
	order_is(x.m.order, 0, 2, 1);
	end(&x);

	/* a shard in a shard, each turned */
	assert_int_equal(v3(&x, "'int32'",
			    "[" TURN("'F'") ", " SHARD("[4, 10, 6]",
						       TURN("[2, 1, 0]") ", " SHARD(
							       "[3, 5, 4]", LITTLE ", 'zstd'",
							       LITTLE ", " CRC, "") ", 'gzip'",
						       LITTLE, "") "]"),
			 0);
	s = x.m.shard;
	order_is(s->order, 2, 1, 0);
	lens_are(s->inner, 6, 10, 4);
	lens_are(s->grid, 2, 1, 2);
	assert_int_equal(s->index_bytes, 4 * 16);
	assert_int_equal(s->outer.n, 0);
	assert_non_null(s->next);
	s = s->next;
	assert_null(s->order);
	lens_are(s->inner, 3, 5, 4);
	lens_are(s->grid, 2, 2, 1);
	assert_int_equal(s->index_bytes, 4 * 16 + 4);
	CHAIN(s->outer, CODEC_GZIP);
	assert_null(s->next);
	assert_null(x.m.order);
	CHAIN(x.m.chain, CODEC_ZSTD);
	end(&x);
}

static void test_shard_bad(void **state)
{
	struct fixture x;

	(void)state;
	fails(&x, v3(&x, "'int32'", "[" SHARD("[5, 5, 4]", LITTLE, LITTLE, "") "]"), -EBADMSG,
	      "5 does not divide the shard length 12");
	fails(&x, v3(&x, "'int32'", "[" SHARD("[24, 5, 4]", LITTLE, LITTLE, "") "]"), -EBADMSG,
	      "does not divide");
	fails(&x, v3(&x, "'int32'", "[" SHARD("[0, 5, 4]", LITTLE, LITTLE, "") "]"), -EBADMSG,
	      "at least 1");
	fails(&x, v3(&x, "'int32'", "[" SHARD("[6, 5]", LITTLE, LITTLE, "") "]"), -EBADMSG,
	      "2 numbers, not 3");
	fails(&x, v3(&x, "'int32'", "[" SHARD("[6, 5, 4]", "", LITTLE, "") "]"), -EBADMSG,
	      "codecs of a shard: no codec makes bytes");
	fails(&x, v3(&x, "'int32'", "[" SHARD("[6, 5, 4]", LITTLE, "", "") "]"), -EBADMSG,
	      "index_codecs");
	fails(&x,
	      v3(&x, "'int32'",
		 "[" SHARD("[6, 5, 4]", LITTLE, LITTLE, ", 'index_location': 'middle'") "]"),
	      -EBADMSG, "index_location");
	fails(&x, v3(&x, "'int32'", "['sharding_indexed']"), -EBADMSG, "not a list");
	fails(&x, v3(&x, "'int32'", "[" SHARD("[6, 5, 4]", LITTLE, LITTLE, "") ", " LITTLE "]"),
	      -EBADMSG, "must come before");
	unreadable(&x,
		   v3(&x, "'int32'", "[" SHARD("[6, 5, 4]", LITTLE, LITTLE ", 'zstd'", "") "]"),
		   "codec 'zstd' on the index of a shard is not supported");
	unreadable(&x, v3(&x, "'int32'", "[" SHARD("[6, 5, 4]", LITTLE, CRC, "") "]"),
		   "codec 'crc32c' on the index of a shard is not supported");
	unreadable(&x,
		   v3(&x, "'int32'", "[" SHARD("[6, 5, 4]", LITTLE ", 'zfp'", LITTLE, "") "]"),
		   "codec 'zfp' is not supported");
}

/* nest - a shard of `depth` levels, each with one chunk. */
static int nest(struct fixture *x, int depth)
{
	struct buf b;
	int rc;

	buf_init(&b, 1 << 16);
	buf_putc(&b, '[');
	for (int i = 0; i < depth; i++)
		buf_puts(&b,
			 "{'name': 'sharding_indexed', 'configuration': {'chunk_shape': [12, "
			 "10, 8], 'index_codecs': ['bytes'], 'codecs': [");
	buf_puts(&b, "'bytes'");
	for (int i = 0; i < depth; i++)
		buf_puts(&b, "]}}");
	buf_puts(&b, "]");
	buf_putc(&b, '\0');
	rc = v3(x, "'int32'", (const char *)b.data);
	buf_release(&b);
	return rc;
}

static void test_shard_limits(void **state)
{
	static const uint64_t huge[] = {INT64_MAX, INT64_MAX, 8};
	const struct zr_shard *s;
	struct fixture x;
	int depth = 0;

	(void)state;
	assert_int_equal(nest(&x, 8), 0);
	for (s = x.m.shard; s; s = s->next)
		depth++;
	assert_int_equal(depth, 8);
	end(&x);
	fails(&x, nest(&x, 9), -ERANGE, "8");

	begin(&x, 3, "'int32'");
	x.m.chunk = huge;
	fails(&x,
	      zr_codecs_v3(&x.a, keep(&x, "[" SHARD("[1, 1, 1]", LITTLE, LITTLE, "") "]"), &x.m,
			   &x.e),
	      -ERANGE, "2^64");
	begin(&x, 3, "'int32'");
	x.m.chunk = huge;
	fails(&x,
	      zr_codecs_v3(&x.a,
			   keep(&x, "[" SHARD("[1, 9223372036854775807, 8]", LITTLE, LITTLE,
					      "") "]"),
			   &x.m, &x.e),
	      -ERANGE, "too large");
}

static void test_v3_unreadable(void **state)
{
	struct fixture x;

	(void)state;
	unreadable(&x, v3(&x, "'int32'", "[{'name': 'zfp', 'must_understand': false}]"),
		   "codec 'zfp' is not supported");
	unreadable(&x, v3(&x, "'int32'", "['zstd.2', 'bytes']"),
		   "codec 'zstd.2' is not supported");
	unreadable(&x, v3(&x, "'int32'", "['numcodecs.pcodec']"),
		   "codec 'numcodecs.pcodec' is not supported");
	unreadable(&x, v3(&x, "'int32'", "['numcodecs.shuffle', " TURN("'F'") ", 'bytes']"),
		   "codec 'transpose' after a filter that depends on the order of elements is "
		   "not supported");
	unreadable(&x, v3(&x, "'int32'", "['numcodecs.shuffle', " BIG "]"),
		   "filters before big-endian bytes are not supported");
	unreadable(&x,
		   v3(&x, "'int32'",
		      "['numcodecs.shuffle', " SHARD("[6, 5, 4]", LITTLE, LITTLE, "") "]"),
		   "filters before 'sharding_indexed' are not supported");
	unreadable(&x, v3(&x, "'string'", "['numcodecs.shuffle', 'vlen-utf8']"),
		   "codec 'numcodecs.shuffle' does not support variable-length elements");
}

static void test_v3_bad(void **state)
{
	struct fixture x;
	struct buf b;

	(void)state;
	fails(&x, v3(&x, "'int32'", "null"), -EBADMSG, "not a list");
	fails(&x, v3(&x, "'int32'", "{}"), -EBADMSG, "not a list");
	fails(&x, v3(&x, "'int32'", "[]"), -EBADMSG, "no codec makes bytes");
	fails(&x, v3(&x, "'int32'", "[5]"), -EBADMSG, "a codec");
	fails(&x, v3(&x, "'int32'", "[{'name': 'bytes', 'configuration': 5}]"), -EBADMSG,
	      "configuration");
	fails(&x, v3(&x, "'int32'", "[" TURN("'F'") "]"), -EBADMSG, "no codec makes bytes");
	fails(&x, v3(&x, "'int32'", "['gzip']"), -EBADMSG,
	      "must come after the codec that makes bytes of the elements");
	fails(&x, v3(&x, "'int32'", "['bytes', 'bytes']"), -EBADMSG, "must come before");
	fails(&x, v3(&x, "'int32'", "[{'name': 'bytes', 'configuration': {'endian': 'x'}}]"),
	      -EBADMSG, "endian");
	fails(&x,
	      v3(&x, "'int32'",
		 "[" LITTLE ", {'name': 'blosc', 'configuration': {'cname': 5}}]"),
	      -EBADMSG, "blosc");
	buf_init(&b, 1 << 16);
	buf_puts(&b, "['bytes'");
	for (int i = 0; i < 64; i++)
		buf_puts(&b, ", 'x'");
	buf_puts(&b, "]");
	buf_putc(&b, '\0');
	fails(&x, v3(&x, "'int32'", (const char *)b.data), -ERANGE, "64");
	buf_release(&b);
}

/* Filters of elements, where they are built in. */
static void test_v3_filters(void **state)
{
	static const char delta[] =
		"[{'name': 'numcodecs.delta', 'configuration': {'dtype': '<i4'}}, " LITTLE
		", 'zstd']";
	struct fixture x;

	(void)state;
	if (!codec_find_zarr2("delta", 5) || !codec_find_zarr2("fixedscaleoffset", 16))
		skip();
	assert_int_equal(v3(&x, "'int32'", delta), 0);
	assert_null(x.m.unreadable);
	CHAIN(x.m.chain, CODEC_DELTA, CODEC_ZSTD);
	end(&x);
	fails(&x,
	      v3(&x, "'int32'",
		 "['bytes', {'name': 'numcodecs.delta', 'configuration': "
		 "{'dtype': '<i4'}}]"),
	      -EBADMSG, "must come before");
	/* one value at a time: axes do not matter */
	assert_int_equal(
		v3(&x, "'float64'",
		   "[{'name': 'numcodecs.fixedscaleoffset', 'configuration': {'offset': "
		   "1, 'scale': 10, 'dtype': '<f8', 'astype': '<i2'}}, " TURN("'F'") ", " LITTLE
										     "]"),
		0);
	assert_null(x.m.unreadable);
	order_is(x.m.order, 2, 1, 0);
	end(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v2_chain),      cmocka_unit_test(test_v2_objects),
		cmocka_unit_test(test_v2_unreadable), cmocka_unit_test(test_v2_bad),
		cmocka_unit_test(test_v3_chain),      cmocka_unit_test(test_v3_big),
		cmocka_unit_test(test_v3_texts),      cmocka_unit_test(test_transpose),
		cmocka_unit_test(test_shard),         cmocka_unit_test(test_shard_axes),
		cmocka_unit_test(test_shard_bad),     cmocka_unit_test(test_shard_limits),
		cmocka_unit_test(test_v3_unreadable), cmocka_unit_test(test_v3_bad),
		cmocka_unit_test(test_v3_filters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
