/* SPDX-License-Identifier: BSD-3-Clause */
/* Metadata documents, word for word, from a dataset built by hand and plans made by hand. */
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
		plans[a] = (struct plan){.kind = PLAN_DECODE,
					 .fill_declared = mode == ZARR_NCZARR
								  ? s->ds.arrays[a].fill_defined
								  : a == S_I};
		hidden_arrays[a] = a == S_HUGE;
		zr_grid_chunks(&s->ds.arrays[a], &grids[a]);
	}
	plans[S_S].kind = mode == ZARR_NCZARR ? PLAN_FIXED : PLAN_VLEN;
	plans[S_S].fixed_size = 4;
	plans[S_F].kind = PLAN_PASS;
	plans[S_F].chain = s->ds.arrays[S_F].chain;
	return (struct zr_metadata){.ds = &s->ds,
				    .plans = plans,
				    .hidden_groups = hidden_groups,
				    .hidden_arrays = hidden_arrays,
				    .grids = grids,
				    .format = zr_format_of(2, true),
				    .mode = mode};
}

static void doc_is(const struct zr_metadata *em, enum zr_doc doc, uint32_t ord,
		   const char *text)
{
	struct err e = ERR_INIT;
	struct buf b;

	buf_init(&b, 1 << 16);
	assert_int_equal(zr_metadata_doc(em, doc, ord, &b, &e), 0);
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.data, text);
	buf_release(&b);
}

/* has - whether a document contains a piece of text. */
static bool has(const struct zr_metadata *em, enum zr_doc doc, uint32_t ord, const char *piece)
{
	struct err e = ERR_INIT;
	struct buf b;
	bool found;

	buf_init(&b, 1 << 16);
	assert_int_equal(zr_metadata_doc(em, doc, ord, &b, &e), 0);
	buf_putc(&b, '\0');
	found = strstr((const char *)b.data, piece) != NULL;
	if (!found)
		print_error("'%s' is not in %s\n", piece, (const char *)b.data);
	buf_release(&b);
	return found;
}

static void test_pure(void **state)
{
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_PURE);

	(void)state;
	doc_is(&em, ZR_DOC_ZGROUP, 0, "{\n    \"zarr_format\": 2\n}\n");
	doc_is(&em, ZR_DOC_GROUP_ATTRS, 1, "{}\n");
	doc_is(&em, ZR_DOC_GROUP_ATTRS, 0,
	       "{\n"
	       "    \"title\": \"\\\"caf\\u00e9\\\"\\n\",\n"
	       "    \"g_int\": -9223372036854775808,\n"
	       "    \"names\": [\"one\", \"t\\u00f6o\"],\n"
	       "    \"none\": \"\",\n"
	       "    \"flag\": true,\n"
	       "    \"json\": \"17\",\n"
	       "    \"square\": [[1, 2], [3, 4]]\n"
	       "}\n");
	doc_is(&em, ZR_DOC_ZARRAY, S_I,
	       "{\n"
	       "    \"chunks\": [2, 3],\n"
	       "    \"compressor\": null,\n"
	       "    \"dtype\": \"<i4\",\n"
	       "    \"fill_value\": -1,\n"
	       "    \"filters\": null,\n"
	       "    \"order\": \"C\",\n"
	       "    \"shape\": [4, 6],\n"
	       "    \"zarr_format\": 2\n"
	       "}\n");
	doc_is(&em, ZR_DOC_ARRAY_ATTRS, S_I,
	       "{\n"
	       "    \"_FillValue\": -1,\n"
	       "    \"units\": \"\\u00b0C\",\n"
	       "    \"scale_factor\": 0.1,\n"
	       "    \"_ARRAY_DIMENSIONS\": [\"y\", \"x\"]\n"
	       "}\n");
	doc_is(&em, ZR_DOC_ARRAY_ATTRS, S_SC, "{\n    \"_ARRAY_DIMENSIONS\": []\n}\n");
	assert_true(has(&em, ZR_DOC_ZARRAY, S_SC, "\"shape\": [],"));
	assert_true(has(&em, ZR_DOC_ZARRAY, S_F,
			"\"compressor\": {\"id\": \"zlib\", \"level\": 4},"));
	assert_true(has(&em, ZR_DOC_ZARRAY, S_F,
			"\"filters\": [{\"id\": \"shuffle\", \"elementsize\": 4}],"));
	assert_true(has(&em, ZR_DOC_ARRAY_ATTRS, S_F, "\"valid\": [1.0, NaN, -Infinity]"));
	plans[S_F].chain.n = 1; /* shuffle alone is a filter, not a compressor */
	assert_true(has(&em, ZR_DOC_ZARRAY, S_F, "\"compressor\": null,"));
	assert_true(has(&em, ZR_DOC_ZARRAY, S_F, "\"filters\": [{\"id\": \"shuffle\""));
	em.strict_json = true;
	assert_true(has(&em, ZR_DOC_ARRAY_ATTRS, S_F, "[1.0, \"NaN\", \"-Infinity\"]"));
	grids[S_F].keys.nested = true;
	assert_true(has(&em, ZR_DOC_ZARRAY, S_F, "\"dimension_separator\": \"/\","));
	em.mode = ZARR_NOXARRAY;
	doc_is(&em, ZR_DOC_ARRAY_ATTRS, S_SC, "{}\n");
	source_close(s);
}

static void test_types(void **state)
{
	static const struct {
		uint32_t ord;
		const char *dtype;
	} want[] = {{S_BIG, "\">f8\""},
		    {S_C, "\"|S1\""},
		    {S_S, "\"|O\""},
		    {S_B, "\"|b1\""},
		    {S_H, "\"<f2\""},
		    {S_CX, "\"<c8\""},
		    {S_OP, "\"|V5\""},
		    {S_VL, "\"|O\""},
		    {S_FS, "\"|S5\""},
		    {S_V, "\"|u1\""},
		    {S_CMP, "[[\"a\", \"<i2\"], [\"v\", \"<f4\", [3]]]"}};
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_PURE);
	char piece[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		(void)snprintf(piece, sizeof(piece), "\"dtype\": %s,", want[i].dtype);
		assert_true(has(&em, ZR_DOC_ZARRAY, want[i].ord, piece));
	}
	assert_true(has(&em, ZR_DOC_ZARRAY, S_S, "\"filters\": [{\"id\": \"vlen-utf8\"}],"));
	assert_true(has(&em, ZR_DOC_ZARRAY, S_VL,
			"\"filters\": [{\"id\": \"vlen-array\", \"dtype\": \"<i4\"}],"));
	em = emit_of(s, ZARR_NCZARR);
	assert_true(has(&em, ZR_DOC_ZARRAY, S_B, "\"dtype\": \"|u1\","));
	assert_true(has(&em, ZR_DOC_ZARRAY, S_C, "\"dtype\": \">S1\","));
	assert_true(has(&em, ZR_DOC_ZARRAY, S_C, "\"fill_value\": \"\","));
	assert_true(has(&em, ZR_DOC_ZARRAY, S_S, "\"dtype\": \"|S4\","));
	assert_true(has(&em, ZR_DOC_ZARRAY, S_REC, "\"chunks\": [3],"));
	source_close(s);
}

static void fill_is(uint32_t ord, const void *fill, const char *text)
{
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_PURE);
	uint8_t bytes[32] = {0};
	char piece[128];

	memcpy(bytes, fill, s->ds.arrays[ord].type.size);
	s->ds.arrays[ord].fill = bytes;
	plans[ord].fill_declared = true;
	(void)snprintf(piece, sizeof(piece), "\"fill_value\": %s,", text);
	assert_true(has(&em, ZR_DOC_ZARRAY, ord, piece));
	source_close(s);
}

static void test_fills(void **state)
{
	const float nan32 = NAN, tenth = 0.1f, two[] = {1, -INFINITY};

	(void)state;
	fill_is(S_F, &nan32, "\"NaN\"");
	fill_is(S_F, &tenth, "0.10000000149011612");
	fill_is(S_CX, two, "[1.0, \"-Infinity\"]");
	fill_is(S_BIG, "\xbf\xf8\0\0\0\0\0\0", "-1.5");
	fill_is(S_H, "\x01\x00", "5.9604644775390625e-08");
	fill_is(S_H, "\xff\xfb", "-65504.0");
	fill_is(S_H, "\x00\x7c", "\"Infinity\"");
	fill_is(S_B, "\x01", "true");
	fill_is(S_V, "\xff", "255");
	fill_is(S_DEEP, "\x00\x80", "-32768");
	fill_is(S_FS, "ab\0\0\0", "\"YWIAAAA=\"");
	fill_is(S_OP, "\0\1\2\3\4", "\"AAECAwQ=\"");
	fill_is(S_CMP, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0", "\"AQAAAAAAAAAAAAAAAAA=\"");
}

static void test_nczarr(void **state)
{
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_NCZARR);

	(void)state;
	doc_is(&em, ZR_DOC_ZGROUP, 1,
	       "{\n"
	       "    \"zarr_format\": 2,\n"
	       "    \"_nczarr_group\": {\n"
	       "        \"dims\": {\"z\": 2},\n"
	       "        \"dimensions\": {\"z\": 2},\n"
	       "        \"vars\": [\"v\"],\n"
	       "        \"arrays\": [\"v\"],\n"
	       "        \"groups\": [\"g2\"]\n"
	       "    }\n"
	       "}\n");
	assert_true(
		has(&em, ZR_DOC_ZGROUP, 0, "\"_nczarr_superblock\": {\"version\": \"2.0.0\"}"));
	assert_true(has(&em, ZR_DOC_ZGROUP, 0, "\"dims\": {\"t\": 3, \"y\": 4,"));
	assert_true(has(&em, ZR_DOC_ZGROUP, 0,
			"\"dimensions\": {\"t\": {\"size\": 3, \"unlimited\": 1}, \"y\": 4,"));
	/* 4.9.2 reads the old spelling, and no dataset with a length of 0 */
	assert_true(has(&em, ZR_DOC_ZGROUP, 0,
			"\"dims\": {\"t\": 3, \"y\": 4, \"x\": 6, \"huge\""));
	assert_true(has(&em, ZR_DOC_ZGROUP, 0, "\"bad\", \"rec\"],\n        \"arrays\""));
	assert_true(has(&em, ZR_DOC_ZGROUP, 0,
			"\"empty\", \"bad\", \"rec\"],\n        \"groups\""));
	/* names and texts as they are: netCDF-C does not know \u */
	assert_true(has(&em, ZR_DOC_ZGROUP, 2, "\"vars\": [\"" S_DEEP_NAME "\"]"));
	doc_is(&em, ZR_DOC_ARRAY_ATTRS, S_I,
	       "{\n"
	       "    \"_FillValue\": -1,\n"
	       "    \"units\": \"\xc2\xb0"
	       "C\",\n"
	       "    \"scale_factor\": 0.1,\n"
	       "    \"_ARRAY_DIMENSIONS\": [\"y\", \"x\"],\n"
	       "    \"_nczarr_attr\": {\n"
	       "        \"types\": {\"_FillValue\": \"<i4\", \"units\": \">S1\", "
	       "\"scale_factor\": \"<f8\"}\n"
	       "    }\n"
	       "}\n");
	doc_is(&em, ZR_DOC_ZARRAY, S_SC,
	       "{\n"
	       "    \"chunks\": [1],\n"
	       "    \"compressor\": null,\n"
	       "    \"dtype\": \"<i4\",\n"
	       "    \"fill_value\": null,\n"
	       "    \"filters\": null,\n"
	       "    \"order\": \"C\",\n"
	       "    \"shape\": [1],\n"
	       "    \"zarr_format\": 2,\n"
	       "    \"_nczarr_array\": {\n"
	       "        \"dimrefs\": [],\n"
	       "        \"dimension_references\": [],\n"
	       "        \"storage\": \"scalar\",\n"
	       "        \"scalar\": 1\n"
	       "    }\n"
	       "}\n");
	assert_true(
		has(&em, ZR_DOC_ARRAY_ATTRS, S_SC, "\"_ARRAY_DIMENSIONS\": [\"_scalar_\"]"));
	assert_true(
		has(&em, ZR_DOC_ZARRAY, S_V, "\"dimension_references\": [\"/g1/z\", \"/y\"]"));
	assert_true(has(&em, ZR_DOC_GROUP_ATTRS, 0, "\"square\": [1, 2, 3, 4]"));
	assert_true(has(&em, ZR_DOC_GROUP_ATTRS, 0,
			"{\"title\": \">S1\", \"g_int\": \"<i8\", \"names\": \"|S4\", "
			"\"none\": \">S1\", \"flag\": \"<u1\", \"json\": \">S1\", "
			"\"square\": \"<i4\"}"));
	source_close(s);
}

static void attr_is(const struct ds_attr *at, bool flat, const char *text)
{
	struct buf b;
	struct jw j;

	buf_init(&b, 4096);
	jw_init(&j, &b, true);
	jw_array(&j, true);
	zr_put_attr(&j, at, flat, false);
	jw_end(&j);
	assert_true(buf_ok(&b));
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.data, text);
	buf_release(&b);
}

static void test_attrs(void **state)
{
	static const uint64_t one_one[] = {1, 1}, two_two[] = {2, 2}, two[] = {2};
	static const uint16_t numbers[] = {1, 65535, 3, 4};
	static const struct dt_field fields[] = {
		{.name = "n", .type = {.kind = DT_UINT, .size = 2}},
		{.name = "l",
		 .offset = 2,
		 .rank = 1,
		 .dims = two,
		 .type = {.kind = DT_UINT, .size = 2}}};
	static const struct dtype u2 = {.kind = DT_UINT, .size = 2};
	const struct ds_text lists[] = {{(const char *)numbers, 4}, {"", 0}};
	const double floats[] = {1, 1e300};
	struct ds_attr at = {.name = "a", .type = u2, .n = 1, .data = (const uint8_t *)numbers};

	(void)state;
	attr_is(&at, false, "[1]");
	at.rank = 2;
	at.dims = one_one;
	attr_is(&at, false, "[[[1]]]");
	attr_is(&at, true, "[1]");
	at.dims = two_two;
	at.n = 4;
	attr_is(&at, false, "[[[1, 65535], [3, 4]]]");
	attr_is(&at, true, "[[1, 65535, 3, 4]]");
	at = (struct ds_attr){
		.name = "c",
		.n = 1,
		.data = (const uint8_t *)numbers,
		.type = {.kind = DT_COMPOUND, .size = 6, .n_fields = 2, .fields = fields}};
	attr_is(&at, false, "[{\"n\": 1, \"l\": [65535, 3]}]");
	at = (struct ds_attr){.name = "v",
			      .n = 2,
			      .rank = 1,
			      .dims = two,
			      .strings = lists,
			      .type = {.kind = DT_VLEN, .base = &u2}};
	attr_is(&at, false, "[[[1, 65535], []]]");
	at = (struct ds_attr){.name = "e",
			      .n = 1,
			      .strings = lists + 1,
			      .type = {.kind = DT_VLEN, .base = &u2}};
	attr_is(&at, false, "[\"\"]");
	at = (struct ds_attr){.name = "o",
			      .n = 1,
			      .data = (const uint8_t *)"\x01\xab",
			      .type = {.kind = DT_OPAQUE, .size = 2}};
	attr_is(&at, false, "[\"0x01ab\"]");
	at = (struct ds_attr){.name = "f",
			      .n = 2,
			      .rank = 1,
			      .dims = two,
			      .data = (const uint8_t *)floats,
			      .type = {.kind = DT_FLOAT, .size = 8}};
	attr_is(&at, false, "[[1.0, 1e+300]]");
}

static void test_consolidated(void **state)
{
	struct source *s = sample_new();
	struct zr_metadata em = emit_of(s, ZARR_NCZARR);
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	assert_true(has(&em, ZR_DOC_ZMETADATA, 0,
			"{\n    \"metadata\": {\n        \".zattrs\": {"));
	assert_true(has(&em, ZR_DOC_ZMETADATA, 0, "\n        \".zgroup\": {\n"));
	assert_true(has(&em, ZR_DOC_ZMETADATA, 0, "\n        \"g1/v/.zarray\": {\n"));
	assert_true(has(&em, ZR_DOC_ZMETADATA, 0, "\n        \"g1/g2/.zattrs\": {\n"));
	assert_true(has(&em, ZR_DOC_ZMETADATA, 0,
			"\n        \"g1/g2/na\\u00efve\\ud83d\\ude00/.zattrs\": {\n"));
	assert_true(has(&em, ZR_DOC_ZMETADATA, 0,
			"    },\n    \"zarr_consolidated_format\": 1\n}\n"));
	buf_init(&b, 1 << 16);
	assert_int_equal(zr_metadata_doc(&em, ZR_DOC_ZMETADATA, 0, &b, &e), 0);
	buf_putc(&b, '\0');
	assert_null(strstr((const char *)b.data, "huge/"));
	for (size_t i = 0; i < b.len; i++)
		assert_true(b.data[i] < 0x7f);
	buf_release(&b);
	buf_init(&b, 1000);
	assert_int_equal(zr_metadata_doc(&em, ZR_DOC_ZMETADATA, 0, &b, &e), -ERANGE);
	buf_release(&b);
	source_close(s);
}

static void test_names(void **state)
{
	(void)state;
	assert_true(zr_netcdf_name("a") && zr_netcdf_name("_x-1 y.z") &&
		    zr_netcdf_name("\xc3\xa9"));
	assert_false(zr_netcdf_name("") || zr_netcdf_name(" a") || zr_netcdf_name("a ") ||
		     zr_netcdf_name("-a") || zr_netcdf_name("a\nb") ||
		     zr_netcdf_name("a\x7f") || zr_netcdf_name("a/b"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pure),  cmocka_unit_test(test_types),
		cmocka_unit_test(test_fills), cmocka_unit_test(test_nczarr),
		cmocka_unit_test(test_attrs), cmocka_unit_test(test_consolidated),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
