/* SPDX-License-Identifier: BSD-3-Clause */
/* zarr.json, word for word, from a dataset built by hand and plans made by hand. */
#include "nczarr/view/metadata_values.h"
#include "tests/unit/nczarr/view/nczarr_sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct plan plans[S_N];
static struct zr_grid grids[S_N];
static bool hidden_groups[3], hidden_arrays[S_N];

static struct zr_metadata emit_of(struct source *s, enum zarr_mode mode)
{
	for (uint32_t a = 0; a < S_N; a++) {
		plans[a] = (struct plan){.kind = PLAN_DECODE};
		hidden_arrays[a] = a == S_HUGE;
		zr_grid_chunks(&s->ds.arrays[a], &grids[a]);
		grids[a].keys = (struct zr_keys){.nested = true, .lead = true};
	}
	return (struct zr_metadata){.ds = &s->ds,
				    .plans = plans,
				    .hidden_groups = hidden_groups,
				    .hidden_arrays = hidden_arrays,
				    .grids = grids,
				    .format = zr_format_of(3, true),
				    .strict_json = true,
				    .mode = mode};
}

/* text_of - a document; NUL-terminated, kept until the next. */
static const char *text_of(const struct zr_metadata *em, enum zr_doc doc, uint32_t ord)
{
	static char text[1 << 16];
	struct err e = ERR_INIT;
	struct buf b;

	buf_init(&b, sizeof(text) - 1);
	assert_int_equal(zr_metadata_doc(em, doc, ord, &b, &e), 0);
	memcpy(text, b.data, b.len);
	text[b.len] = '\0';
	buf_release(&b);
	return text;
}

static bool has(const struct zr_metadata *em, uint32_t array, const char *piece)
{
	const char *text = text_of(em, ZR_DOC_ARRAY_JSON, array);
	bool found = strstr(text, piece) != NULL;

	if (!found)
		print_error("'%s' is not in %s\n", piece, text);
	return found;
}

static void test_documents(void **state)
{
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_PURE);

	(void)state;
	assert_string_equal(text_of(&em, ZR_DOC_GROUP_JSON, 1),
			    "{\n"
			    "    \"zarr_format\": 3,\n"
			    "    \"node_type\": \"group\",\n"
			    "    \"attributes\": {}\n"
			    "}\n");
	assert_string_equal(
		text_of(&em, ZR_DOC_ARRAY_JSON, S_I),
		"{\n"
		"    \"zarr_format\": 3,\n"
		"    \"node_type\": \"array\",\n"
		"    \"shape\": [4, 6],\n"
		"    \"data_type\": \"int32\",\n"
		"    \"chunk_grid\": {\"name\": \"regular\", \"configuration\": "
		"{\"chunk_shape\": [2, 3]}},\n"
		"    \"chunk_key_encoding\": {\"name\": \"default\", \"configuration\": "
		"{\"separator\": \"/\"}},\n"
		"    \"fill_value\": -1,\n"
		"    \"codecs\": [{\"name\": \"bytes\", \"configuration\": {\"endian\": "
		"\"little\"}}],\n"
		"    \"attributes\": {\n"
		"        \"_FillValue\": -1,\n"
		"        \"units\": \"\\u00b0C\",\n"
		"        \"scale_factor\": 0.1\n"
		"    },\n"
		"    \"dimension_names\": [\"y\", \"x\"]\n"
		"}\n");
	em = emit_of(s, ZARR_NOXARRAY);
	assert_null(strstr(text_of(&em, ZR_DOC_ARRAY_JSON, S_I), "dimension_names"));
	source_close(s);
}

static void test_types(void **state)
{
	static const struct {
		uint32_t ord;
		const char *type, *fill;
	} want[] = {
		{S_F, "float32", "9.969209968386869e+36"},
		{S_BIG, "float64", "0.0"},
		{S_B, "bool", "false"},
		{S_H, "float16", "0.0"},
		{S_CX, "complex64", "[0.0, 0.0]"},
		{S_S, "string", "\"\""},
		{S_VL, "bytes", "\"\""},
		{S_C, "uint8", "0"},
		{S_FS, "uint8", "0"},
		{S_OP, "uint8", "0"},
		{S_CMP, "uint8", "0"},
	};
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_PURE);
	char piece[80];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		(void)snprintf(piece, sizeof(piece), "\"data_type\": \"%s\",", want[i].type);
		assert_true(has(&em, want[i].ord, piece));
		(void)snprintf(piece, sizeof(piece), "\"fill_value\": %s,", want[i].fill);
		assert_true(has(&em, want[i].ord, piece));
	}
	assert_true(has(&em, S_BIG, "{\"endian\": \"big\"}"));
	assert_true(has(&em, S_S, "\"codecs\": [{\"name\": \"vlen-utf8\"}],"));
	assert_true(has(&em, S_VL, "\"codecs\": [{\"name\": \"vlen-bytes\"}],"));
	assert_true(has(&em, S_VL, "\"numpy_dtype\": \"<i4\""));
	/* a char is a byte, a text of five bytes is five */
	assert_true(has(&em, S_C, "\"shape\": [4, 6],"));
	assert_true(has(&em, S_C, "\"codecs\": [{\"name\": \"bytes\"}],"));
	assert_true(has(&em, S_C, "\"numpy_dtype\": \"|S1\""));
	assert_true(has(&em, S_FS, "\"shape\": [4, 5],"));
	assert_true(has(&em, S_FS, "{\"chunk_shape\": [2, 5]}"));
	assert_true(has(&em, S_FS, "\"dimension_names\": [\"y\", \"string5\"]"));
	assert_true(has(&em, S_FS, "\"numpy_dtype\": \"|S5\""));
	assert_true(has(&em, S_OP, "\"dimension_names\": [\"y\", \"bytes5\"]"));
	assert_true(has(&em, S_OP, "\"numpy_dtype\": \"|V5\""));
	assert_true(
		has(&em, S_CMP,
		    "\"numpy_dtype\": \"[[\\\"a\\\", \\\"<i2\\\"], [\\\"v\\\", \\\"<f4\\\", "
		    "[3]]]\""));
	assert_true(has(&em, S_F, "[1.0, \"NaN\", \"-Infinity\"]"));
	source_close(s);
}

static void test_codecs(void **state)
{
	static const uint32_t level[] = {4};
	static const struct codec_spec specs[] = {
		{.h5_id = CODEC_ZSTD, .n_params = 1, .params = level, .name = "zstd"},
		{.h5_id = CODEC_CRC32C, .name = ""}};
	static const uint64_t per[] = {2, 2};
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_PURE);

	(void)state;
	plans[S_I].chain = (struct codec_chain){2, specs};
	assert_true(has(&em, S_I,
			"\"codecs\": [{\"name\": \"bytes\", \"configuration\": {\"endian\": "
			"\"little\"}}, {\"name\": \"zstd\", \"configuration\": {\"level\": 4"));
	assert_true(has(&em, S_I, "{\"name\": \"crc32c\", \"configuration\": {}}],"));
	grids[S_I].per = per;
	assert_true(has(&em, S_I, "{\"chunk_shape\": [4, 6]}},"));
	assert_true(has(&em, S_I,
			"\"codecs\": [{\"name\": \"sharding_indexed\", \"configuration\": "
			"{\"chunk_shape\": [2, 3], \"codecs\": [{\"name\": \"bytes\", "));
	assert_true(
		has(&em, S_I,
		    "\"index_codecs\": [{\"name\": \"bytes\", \"configuration\": "
		    "{\"endian\": \"little\"}}, {\"name\": \"crc32c\"}], \"index_location\": "
		    "\"end\"}}],"));
	grids[S_I].keys = (struct zr_keys){.nested = false};
	assert_true(has(&em, S_I,
			"{\"name\": \"v2\", \"configuration\": {\"separator\": \".\"}},"));
	source_close(s);
}

/* fill_is - how _FillValue of an array is written; NULL: not at all. */
static void fill_is(struct source *s, uint32_t array, struct ds_attr at, enum zarr_mode mode,
		    const char *want)
{
	struct ds_array *a = &s->ds.arrays[array];
	const struct ds_attr *attrs = a->attrs;
	uint32_t n = a->n_attrs;
	struct zr_metadata em = emit_of(s, mode);
	char piece[80];

	at.name = "_FillValue";
	a->attrs = &at;
	a->n_attrs = 1;
	(void)snprintf(piece, sizeof(piece), "\"_FillValue\": %s", want ? want : "");
	if (want)
		assert_true(has(&em, array, piece));
	else
		assert_null(strstr(text_of(&em, ZR_DOC_ARRAY_JSON, array), "_FillValue"));
	a->attrs = attrs;
	a->n_attrs = n;
}

static void test_fill_attr(void **state)
{
	static const double minus = -999, nan = (double)NAN, two[] = {1, 2};
	static const int32_t five = 5;
	static const uint64_t n2[] = {2};
	struct ds_attr real = s_attr("", DT_FLOAT, 8, 1, &minus, NULL);
	struct ds_attr whole = s_attr("", DT_INT, 4, 1, &five, NULL);
	struct ds_attr none = s_attr("", DT_FLOAT, 8, 1, &nan, NULL);
	struct ds_attr list = s_attr("", DT_FLOAT, 8, 2, two, n2);
	struct source *s = sample_new();
	struct ds_text room;
	struct ds_attr text = s_text_attr("", "x", &room);

	(void)state;
	/* struct.pack('<d', -999.0) and NaN, as xarray writes them */
	fill_is(s, S_F, real, ZARR_PURE, "\"AAAAAAA4j8A=\"");
	fill_is(s, S_F, none, ZARR_PURE, "\"AAAAAAAA+H8=\"");
	fill_is(s, S_H, whole, ZARR_PURE, "\"AAAAAAAAFEA=\"");
	fill_is(s, S_F, real, ZARR_NOXARRAY, "-999.0");
	fill_is(s, S_I, whole, ZARR_PURE, "5");
	fill_is(s, S_I, real, ZARR_PURE, "-999.0");
	fill_is(s, S_B, whole, ZARR_PURE, "5");
	fill_is(s, S_C, text, ZARR_PURE, "120");
	/* no form that xarray can read */
	fill_is(s, S_I, none, ZARR_PURE, NULL);
	fill_is(s, S_I, list, ZARR_PURE, NULL);
	fill_is(s, S_I, text, ZARR_PURE, NULL);
	fill_is(s, S_CX, real, ZARR_PURE, NULL);
	fill_is(s, S_FS, text, ZARR_PURE, NULL);
	fill_is(s, S_S, text, ZARR_PURE, NULL);
	fill_is(s, S_S, text, ZARR_NOXARRAY, "\"x\"");
	source_close(s);
}

/* test_fill_said - whether a document says exactly what absent elements are. */
static void test_fill_said(void **state)
{
	static const struct {
		struct dtype type;
		const char *bytes;
		bool said;
	} want[] = {
		{{.kind = DT_FLOAT, .size = 4}, "\0\0\xc0\x7f", true},
		{{.kind = DT_FLOAT, .size = 4}, "\1\0\xc0\x7f", false},
		{{.kind = DT_FLOAT, .size = 4}, "\0\0\xc0\xff", false},
		{{.kind = DT_FLOAT, .size = 4}, "\0\0\x80\x7f", true}, /* infinite */
		{{.kind = DT_FLOAT, .size = 4, .big_endian = true}, "\x7f\xc0\0\0", true},
		{{.kind = DT_FLOAT, .size = 4, .big_endian = true}, "\x7f\xc0\0\1", false},
		{{.kind = DT_FLOAT, .size = 2}, "\0\x7e", true},
		{{.kind = DT_FLOAT, .size = 2}, "\1\x7e", false},
		{{.kind = DT_FLOAT, .size = 8}, "\0\0\0\0\0\0\xf8\x7f", true},
		{{.kind = DT_FLOAT, .size = 8}, "\0\0\0\0\0\0\xf0\xff", true},
		{{.kind = DT_FLOAT, .size = 8}, "\0\0\0\0\0\0\xf4\x7f", false},
		{{.kind = DT_COMPLEX, .size = 8}, "\0\0\xc0\x7f\0\0\xc0\x7f", true},
		{{.kind = DT_COMPLEX, .size = 8}, "\0\0\xc0\x7f\0\0\xc0\xff", false},
		{{.kind = DT_STRING, .size = 3}, "aaa", true},
		{{.kind = DT_STRING, .size = 3}, "ab\0", false},
		{{.kind = DT_STRING, .size = 1}, "a", true},
		{{.kind = DT_OPAQUE, .size = 2}, "\0\0", true},
		{{.kind = DT_INT, .size = 2}, "\1\2", true},
		{{.kind = DT_VLEN}, "", false},
		{{.kind = DT_VSTRING}, "", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		const struct ds_array a = {.type = want[i].type,
					   .fill = (const uint8_t *)want[i].bytes};

		if (zr_type3_fill(&a) != want[i].said)
			fail_msg("row %zu", i);
	}
}

static void test_consolidated(void **state)
{
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_PURE);
	struct err e = ERR_INIT;
	const char *text;
	struct buf b;

	(void)state;
	text = text_of(&em, ZR_DOC_ROOT_JSON, 0);
	assert_non_null(strstr(text, "    \"consolidated_metadata\": {\n"
				     "        \"kind\": \"inline\",\n"
				     "        \"must_understand\": false,\n"
				     "        \"metadata\": {\n"
				     "            \"g1\": {\n"));
	assert_non_null(strstr(text, "\n            \"g1/g2\": {\n"));
	assert_non_null(strstr(text, "\n            \"g1/v\": {\n"));
	assert_non_null(strstr(text, "\n            \"g1/g2/na\\u00efve\\ud83d\\ude00\": {\n"));
	assert_null(strstr(text, "huge\": {"));
	for (size_t max = 1; max < 20000; max += 500) {
		buf_init(&b, max);
		assert_true(zr_metadata_doc(&em, ZR_DOC_ROOT_JSON, 0, &b, &e) == 0 ||
			    e.code == -ERANGE);
		buf_release(&b);
	}
	source_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documents), cmocka_unit_test(test_types),
		cmocka_unit_test(test_codecs),    cmocka_unit_test(test_fill_attr),
		cmocka_unit_test(test_fill_said), cmocka_unit_test(test_consolidated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
