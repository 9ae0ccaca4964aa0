/* SPDX-License-Identifier: BSD-3-Clause */
/* From documents to the model: order, types, chunks, access, added attributes, what NCZarr's
 * versions mean by the same words, and what a wrong .zarray is told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/unit/nczarr/zr_tree.h"

#include <cmocka.h>

#define GROUP "{\"zarr_format\": 2}"

static struct zr_source src;

static const struct dataset *model(const char *const *list, bool keep_going)
{
	struct err e = ERR_INIT;

	tree_source(&src, list, keep_going);
	if (zr_model(&src, &e) < 0)
		fail_msg("%s", e.msg);
	return &src.base.ds;
}

/* zarray - a document with these members instead of the usual ones, ' for ". */
static const char *zarray(const char *const *members)
{
	static const char *const usual[][2] = {{"zarr_format", "2"}, {"shape", "[10, 4]"},
					       {"chunks", "[5, 4]"}, {"dtype", "'<i2'"},
					       {"fill_value", "0"},  {"order", "'C'"},
					       {"filters", "null"},  {"compressor", "null"}};
	static char text[8][1000];
	static unsigned turn;
	char *out = text[turn++ % 8];
	struct buf b;

	buf_init(&b, 1000);
	buf_puts(&b, "{");
	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		const char *v = usual[i][1];

		for (size_t k = 0; members[k]; k += 2)
			if (strcmp(members[k], usual[i][0]) == 0)
				v = members[k + 1];
		if (v[0])
			buf_printf(&b, "%s'%s': %s", b.len > 1 ? ", " : "", usual[i][0], v);
	}
	for (size_t k = 0; members[k]; k += 2)
		if (strcmp(members[k], "more") == 0)
			buf_printf(&b, ", %s", members[k + 1]);
	buf_puts(&b, "}");
	assert_true(buf_ok(&b));
	for (size_t i = 0; i < b.len; i++)
		out[i] = (char)(b.data[i] == '\'' ? '"' : b.data[i]);
	out[b.len] = '\0';
	buf_release(&b);
	return out;
}

#define ZARRAY(...) zarray((const char *const[]){__VA_ARGS__, NULL})
#define USUAL ZARRAY("", "")

/* lone - the array of a tree that has only one, with attributes. */
static const struct ds_array *lone(const char *doc, const char *attrs)
{
	const char *list[] = {".zgroup", GROUP, "v/.zarray", doc, "v/.zattrs", attrs, NULL};

	(void)model(list, false);
	assert_int_equal(src.base.ds.n_arrays, 1);
	return &src.base.ds.arrays[0];
}

static const struct ds_attr *attr(const struct ds_array *a, const char *name)
{
	return ds_attr_find(a->attrs, a->n_attrs, name);
}

static void refused(const char *doc, int code, const char *message)
{
	const char *list[] = {".zgroup", GROUP,       "g/.zgroup", GROUP, "g/v/.zarray",
			      doc,       "w/.zarray", USUAL,       NULL};
	struct err e = ERR_INIT;

	tree_source(&src, list, false);
	assert_int_equal(zr_model(&src, &e), code);
	if (!strstr(e.msg, message) || strncmp(e.msg, "'g/v/.zarray': ", 15) != 0)
		fail_msg("'%s' is not in '%s'", message, e.msg);
	tree_release(&src);
	(void)model(list, true);
	assert_int_equal(src.base.ds.n_arrays, 1);
	assert_int_equal(src.base.ds.n_notes, 1);
	assert_non_null(strstr(src.base.ds.notes[0], "/g/v: is left out: 'g/v/.zarray': "));
	tree_release(&src);
}

static void test_zarray(void **state)
{
	(void)state;
	refused(ZARRAY("zarr_format", "3"), -EBADMSG, "zarr_format is 3, not 2");
	refused(ZARRAY("zarr_format", "9"), -EOPNOTSUPP, "zarr_format is 9, not 2");
	refused(ZARRAY("zarr_format", ""), -EBADMSG, "zarr_format is missing");
	refused(ZARRAY("shape", ""), -EBADMSG, "shape is missing or not a list");
	refused(ZARRAY("shape", "5"), -EBADMSG, "shape is missing or not a list");
	refused(ZARRAY("shape", "[10, -4]"), -EBADMSG, "shape: dimension 1 is not a length");
	refused(ZARRAY("shape", "[10, 4.5]"), -EBADMSG, "shape: dimension 1 is not a length");
	refused(ZARRAY("shape", "['10', 4]"), -EBADMSG, "shape: dimension 0 is not a length");
	refused(ZARRAY("shape", "[10, 18446744073709551615]"), -EBADMSG, "shape: dimension 1");
	refused(ZARRAY("shape", "[10]"), -EBADMSG, "chunks has 2 dimensions, shape has 1");
	refused(ZARRAY("chunks", "[5, 0]"), -EBADMSG, "chunks: dimension 1 is 0");
	refused(ZARRAY("chunks", "true"), -EBADMSG, "chunks is missing or not a list");
	refused(ZARRAY("chunks", "[9000000000000000000, 9000000000000000000]"), -ERANGE,
		"chunks: a chunk has more than 2^62 bytes");
	refused(ZARRAY("shape", "[9000000000000000000, 2]"), -ERANGE, "shape: the array has");
	refused(ZARRAY("chunks", "[1000000, 4]"), -ERANGE,
		"a chunk has more than max_chunk=1048576 bytes");
	refused(ZARRAY("order", "'A'"), -EBADMSG, "order is neither");
	refused(ZARRAY("more", "'dimension_separator': '-'"), -EBADMSG, "dimension_separator");
	refused(ZARRAY("dtype", ""), -EBADMSG, "dtype is missing");
	refused(ZARRAY("filters", "{}"), -EBADMSG, "filters is neither");
	refused(ZARRAY("compressor", "'zlib'"), -EBADMSG, "compressor is neither");
	refused(ZARRAY("compressor", "{'id': 'nobody'}"), -EOPNOTSUPP, "nobody");
	refused(ZARRAY("fill_value", "'x'"), -EBADMSG, "fill_value");
	refused("[]", -EBADMSG, "not a JSON object");
}

static void test_array(void **state)
{
	const struct ds_array *a = lone(USUAL, "{}");
	const struct zr_meta *m = src.arrays[0].meta;

	(void)state;
	assert_string_equal(a->name, "v");
	assert_int_equal(a->rank, 2);
	assert_int_equal(a->shape[0], 10);
	assert_int_equal(a->chunk[0], 5);
	assert_int_equal(a->n_chunks, 2);
	assert_int_equal(a->chunk_bytes, 40);
	assert_int_equal(a->access, DS_STORED);
	assert_true(a->uniform);
	assert_null(a->convert);
	assert_int_equal(a->key, 1);
	assert_true(a->fill_defined);
	assert_string_equal(m->key, "v");
	assert_int_equal(m->separator, '.');
	assert_null(m->order);
	assert_null(m->fill);
	assert_false(src.arrays[0].clipped);
	assert_ptr_equal(src.arrays[0].stored, m->chunk);
	assert_string_equal(src.base.ds.format, "Zarr v2");
	tree_release(&src);

	/* what may be missing */
	a = lone(ZARRAY("order", "", "filters", "", "compressor", "", "fill_value", ""), "{}");
	assert_false(a->fill_defined);
	assert_int_equal(a->access, DS_STORED);
	tree_release(&src);

	a = lone(ZARRAY("shape", "[0, 4]", "chunks", "[0, 4]"), "{}");
	assert_int_equal(a->n_chunks, 0);
	assert_int_equal(a->chunk[0], 1);
	assert_false(src.arrays[0].clipped);
	tree_release(&src);
}

static void test_access(void **state)
{
	const struct ds_array *a = lone(ZARRAY("order", "'F'"), "{}");

	(void)state;
	assert_int_equal(a->access, DS_CONVERT);
	assert_string_equal(a->convert, "chunks are not in C order");
	assert_int_equal(src.arrays[0].meta->order[0], 1);
	assert_int_equal(src.arrays[0].meta->order[1], 0);
	tree_release(&src);
	a = lone(ZARRAY("order", "'F'", "shape", "[3]", "chunks", "[3]"), "{}");
	assert_int_equal(a->access, DS_STORED);
	tree_release(&src);
	a = lone(ZARRAY("chunks", "[20, 3]", "more", "'dimension_separator': '/'"), "{}");
	assert_int_equal(a->access, DS_CONVERT);
	assert_string_equal(a->convert, "chunks are longer than the array");
	assert_int_equal(a->chunk[0], 10);
	assert_int_equal(a->chunk[1], 3);
	assert_int_equal(src.arrays[0].stored[0], 20);
	assert_true(src.arrays[0].clipped);
	assert_int_equal(src.arrays[0].meta->separator, '/');
	tree_release(&src);
	a = lone(ZARRAY("shape", "[0, 3]", "chunks", "[7, 5]"), "{}");
	assert_int_equal(a->chunk[0], 1);
	assert_int_equal(a->chunk[1], 3);
	assert_true(src.arrays[0].clipped);
	tree_release(&src);
	a = lone(ZARRAY("dtype", "'<U3'", "fill_value", "null"), "{}");
	assert_int_equal(a->access, DS_CONVERT);
	assert_string_equal(a->convert, "strings are stored as UTF-32");
	tree_release(&src);
	a = lone(
		ZARRAY("dtype", "'|O'", "filters", "[{'id': 'vlen-utf8'}]", "fill_value", "''"),
		"{}");
	assert_int_equal(a->access, DS_VARIABLE);
	assert_int_equal(a->type.kind, DT_VSTRING);
	tree_release(&src);
}

static void test_order(void **state)
{
	static const char *const refs = "'_nczarr_array': {'dimrefs': ['/y', '/x']}";
	const char *const list[] = {
		".zgroup",
		"{\"zarr_format\": 2, \"_NCZARR_SUPERBLOCK\": {}, \"_NCZARR_GROUP\": "
		"{\"dims\": "
		"{\"y\": 10, \"x\": 4}, \"vars\": [\"z\", \"gone\", \"b\", \"z\"], \"groups\": "
		"[\"h\", \"g\"]}}",
		"a/.zarray",
		ZARRAY("more", refs),
		"b/.zarray",
		ZARRAY("more", refs),
		"z/.zarray",
		ZARRAY("more", refs),
		"e/.zgroup",
		GROUP,
		"g/.zgroup",
		GROUP,
		"h/.zgroup",
		GROUP,
		"h/v/.zarray",
		ZARRAY("more", refs),
		"g/u/.zarray",
		ZARRAY("more", refs),
		NULL};
	const struct dataset *ds = model(list, false);
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	for (uint32_t i = 0; i < ds->n_groups; i++)
		buf_printf(&b, "%s ", ds->groups[i].name);
	for (uint32_t i = 0; i < ds->n_arrays; i++)
		buf_printf(&b, "%s ", ds->arrays[i].name);
	buf_putc(&b, '\0');
	assert_string_equal((const char *)b.data, " h g e z b a v u ");
	buf_release(&b);
	assert_int_equal(ds->groups[0].n_groups, 3);
	assert_int_equal(ds->groups[0].groups[0], 1);
	assert_int_equal(ds->groups[0].n_arrays, 3);
	assert_int_equal(ds->groups[0].n_dims, 2);
	assert_int_equal(ds->groups[1].n_arrays, 1);
	assert_int_equal(ds->groups[1].arrays[0], 3);
	assert_string_equal(ds->format, "NCZarr");
	tree_release(&src);
}

static void test_attributes(void **state)
{
	const char *const list[] = {
		".zgroup",
		GROUP,
		".zattrs",
		"{\"title\": \"t\", \"_NCProperties\": \"version=2\", \"_nczarr_attr\": "
		"{\"types\": "
		"{\"n\": \"<i2\"}}, \"n\": 5, \"_nczarr_default_maxstrlen\": 128, "
		"\"_NCZARR_GROUP\": {}}",
		"v/.zarray",
		USUAL,
		"v/.zattrs",
		"{\"_FillValue\": -1, \"_ARRAY_DIMENSIONS\": [\"y\", \"x\"], "
		"\"_nczarr_array\": {}, "
		"\"list\": []}",
		NULL};
	const struct dataset *ds = model(list, false);
	const struct ds_group *g = &ds->groups[0];
	const struct ds_array *a = &ds->arrays[0];

	(void)state;
	assert_int_equal(g->n_attrs, 3);
	assert_string_equal(g->attrs[0].name, "title");
	assert_string_equal(g->attrs[1].name, "n");
	assert_int_equal(g->attrs[1].type.size, 2);
	assert_string_equal(g->attrs[2].name, "_nczarr_default_maxstrlen");
	assert_int_equal(a->n_attrs, 2);
	assert_int_equal(attr(a, "_FillValue")->type.size, 2);
	assert_int_equal(attr(a, "list")->n, 0);
	tree_release(&src);
}

static void test_attribute_errors(void **state)
{
	const char *const list[] = {
		".zgroup",
		GROUP,
		"v/.zarray",
		USUAL,
		"v/.zattrs",
		"{\"a\": 300, \"b\": 1, \"_nczarr_attr\": {\"types\": {\"a\": "
		"\"<i1\"}}}",
		NULL};
	struct err e = ERR_INIT;
	const struct dataset *ds;

	(void)state;
	tree_source(&src, list, false);
	assert_int_equal(zr_model(&src, &e), -EBADMSG);
	assert_string_equal(e.msg,
			    "'v/.zattrs': attribute 'a': a value does not fit the type '<i1'");
	tree_release(&src);
	ds = model(list, true);
	assert_int_equal(ds->arrays[0].n_attrs, 1);
	assert_string_equal(ds->notes[0], "/v: an attribute is left out: 'v/.zattrs': "
					  "attribute 'a': a value does not fit the type '<i1'");
	tree_release(&src);
}

static void test_fill_attribute(void **state)
{
	static const char names[] = "{\"_ARRAY_DIMENSIONS\": [\"y\", \"x\"]}";
	const char *nc[] = {".zgroup",   "{\"zarr_format\": 2, \"_nczarr_superblock\": {}}",
			    "v/.zarray", ZARRAY("fill_value", "-7"),
			    "v/.zattrs", names,
			    NULL};
	const struct ds_array *a = lone(ZARRAY("fill_value", "-7", "dtype", "'>i2'"), names);
	const struct ds_attr *f = attr(a, "_FillValue");
	int16_t v;

	(void)state;
	assert_non_null(f);
	memcpy(&v, f->data, 2);
	assert_int_equal(v, -7);
	assert_false(f->type.big_endian);
	assert_true(a->type.big_endian);
	assert_true(ds_fill_declared(a));
	tree_release(&src);
	/* there is one; the tree is not xarray's; none is defined; NCZarr writes its own */
	a = lone(ZARRAY("fill_value", "-7"), "{\"_ARRAY_DIMENSIONS\": [\"y\", \"x\"], "
					     "\"_FillValue\": 3}");
	memcpy(&v, attr(a, "_FillValue")->data, 2);
	assert_int_equal(v, 3);
	tree_release(&src);
	assert_null(attr(lone(ZARRAY("fill_value", "-7"), "{}"), "_FillValue"));
	tree_release(&src);
	assert_null(attr(lone(ZARRAY("fill_value", "null"), names), "_FillValue"));
	tree_release(&src);
	assert_null(attr(&model(nc, false)->arrays[0], "_FillValue"));
	tree_release(&src);
}

static void test_times(void **state)
{
	static const char nat[] = "-9223372036854775808";
	const struct ds_array *a = lone(ZARRAY("dtype", "'<M8[D]'", "fill_value", nat), "{}");

	(void)state;
	assert_int_equal(a->type.kind, DT_INT);
	assert_non_null(strstr(attr(a, "units")->strings[0].s, "days since"));
	assert_string_equal(attr(a, "calendar")->strings[0].s, "proleptic_gregorian");
	assert_non_null(attr(a, "_FillValue"));
	tree_release(&src);
	a = lone(ZARRAY("dtype", "'>M8[ns]'", "fill_value", nat), "{}");
	assert_null(attr(a, "_FillValue"));
	tree_release(&src);
	a = lone(ZARRAY("dtype", "'<m8[s]'", "fill_value", "0"),
		 "{\"units\": \"mine\", \"calendar\": \"x\"}");
	assert_string_equal(attr(a, "units")->strings[0].s, "mine");
	assert_int_equal(a->n_attrs, 2);
	tree_release(&src);
	a = lone(ZARRAY("dtype", "'<m8[s]'", "fill_value", "0"), "{}");
	assert_string_equal(attr(a, "units")->strings[0].s, "seconds");
	assert_null(attr(a, "calendar"));
	tree_release(&src);
}

static void lone_char(const char *root, const char *doc, bool is_char, bool big)
{
	const char *list[] = {".zgroup", GROUP, ".zattrs", root, "v/.zarray", doc, NULL};
	const struct ds_array *a = &model(list, false)->arrays[0];

	assert_int_equal(dt_is_char(&a->type), is_char);
	assert_int_equal(a->type.big_endian, big);
	tree_release(&src);
}

static void test_versions(void **state)
{
	static const char v490[] =
		"{\"_NCProperties\": \"version=2,netcdf=4.9.0,nczarr=2.0.0\"}";
	static const char v481[] =
		"{\"_NCProperties\": \"version=2,netcdf=4.8.1-development,nczarr=2.0.0\"}";
	static const char v492[] =
		"{\"_NCProperties\": \"version=2,netcdf=4.9.2,nczarr=2.0.0\"}";
	static const char v493[] =
		"{\"_NCProperties\": \"version=2,netcdf=4.9.3-development,nczarr=2.0.0\"}";
	static const char hdf5[] =
		"{\"_NCProperties\": \"version=2,netcdf=4.9.0,hdf5=1.10.8\"}";
	static const char odd[] = "{\"_NCProperties\": \"netcdf=4,nczarr=2.0.0\"}";
	const char *u1 = ZARRAY("dtype", "'<U1'", "fill_value", "''");
	const char *s1 = ZARRAY("dtype", "'>S1'", "fill_value", "''");
	const char *big = ZARRAY("dtype", "'>i4'");
	const char *upper[] = {".zgroup", "{\"zarr_format\": 2, \"_NCZARR_SUPERBLOCK\": {}}",
			       "v/.zarray", ZARRAY("dtype", "'<U1'", "fill_value", "''"), NULL};

	(void)state;
	lone_char(v490, u1, true, false);
	lone_char(v481, u1, true, false);
	lone_char(v492, u1, false, false);
	lone_char(hdf5, u1, false, false);
	lone_char("{}", u1, false, false);
	lone_char(odd, u1, false, false);
	lone_char(v492, s1, true, false);
	lone_char(v490, big, false, false);
	lone_char(v492, big, false, false);
	lone_char(v493, big, false, true);
	lone_char(hdf5, big, false, true);
	lone_char("{}", big, false, true);
	assert_true(dt_is_char(&model(upper, false)->arrays[0].type));
	tree_release(&src);
}

static void lone_name(const char *path, const char *want)
{
	const char *list[] = {".zarray", USUAL, ".zattrs", "{\"a\": 1}", NULL};
	struct err e = ERR_INIT;

	tree_source(&src, list, false);
	free(src.path);
	src.path = strdup(path);
	assert_int_equal(zr_model(&src, &e), 0);
	assert_int_equal(src.base.ds.n_groups, 1);
	assert_int_equal(src.base.ds.groups[0].n_attrs, 0);
	assert_int_equal(src.base.ds.arrays[0].n_attrs, 1);
	assert_string_equal(src.base.ds.arrays[0].name, want);
	assert_string_equal(src.arrays[0].meta->key, "");
	tree_release(&src);
}

static void test_lone_array(void **state)
{
	(void)state;
	lone_name("/data/temp.zarr", "temp");
	lone_name("/data/temp.zarr/", "temp");
	lone_name("/data/temp.zarr.zip", "temp");
	lone_name("temp.v2", "temp.v2");
	lone_name("/data/temp.zr3", "temp");
	lone_name("/data/.zarr", ".zarr");
	lone_name("/", "array");
	lone_name("", "array");
	lone_name("/data/\xff.zarr", "array");
}

static void test_names(void **state)
{
	const char *list[] = {".zgroup",
			      GROUP,
			      "a\xff/.zarray",
			      USUAL,
			      "g\xff/.zgroup",
			      GROUP,
			      "g\xff/v/.zarray",
			      USUAL,
			      "b/.zarray",
			      USUAL,
			      NULL};
	struct err e = ERR_INIT;

	(void)state;
	tree_source(&src, list, false);
	assert_int_equal(zr_model(&src, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "a file cannot have this name"));
	tree_release(&src);
	(void)model(list, true);
	assert_int_equal(src.base.ds.n_arrays, 1);
	assert_int_equal(src.base.ds.n_groups, 1);
	assert_int_equal(src.base.ds.n_notes, 2);
	tree_release(&src);
}

static void test_nothing(void **state)
{
	static const char *const empty[] = {NULL};
	static const char *const stray[] = {"a/b", "x", ".zattrs", "{}", NULL};
	struct err e = ERR_INIT;

	(void)state;
	tree_source(&src, empty, true);
	assert_int_equal(zr_model(&src, &e), -EBADMSG);
	assert_string_equal(e.msg, "the store contains no Zarr metadata");
	tree_release(&src);
	tree_source(&src, stray, true);
	assert_int_equal(zr_model(&src, &e), -EBADMSG);
	tree_release(&src);
}

static void test_limit(void **state)
{
	const char *list[] = {".zgroup", GROUP,       "v/.zarray",
			      USUAL,     "v/.zattrs", "{\"a\": \"text\", \"b\": \"text\"}",
			      NULL};
	struct err e = ERR_INIT;

	(void)state;
	/* wherever memory ends, nothing is lost and the message says why */
	for (size_t max = 0; max < 3000; max += 64) {
		int rc;

		tree_source(&src, list, false);
		src.base.ds.arena.max = max;
		rc = zr_model(&src, &e);
		if (rc < 0 && rc != -ERANGE && rc != -ENOMEM)
			fail_msg("%s", e.msg);
		tree_release(&src);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zarray),         cmocka_unit_test(test_array),
		cmocka_unit_test(test_access),         cmocka_unit_test(test_order),
		cmocka_unit_test(test_attributes),     cmocka_unit_test(test_attribute_errors),
		cmocka_unit_test(test_fill_attribute), cmocka_unit_test(test_times),
		cmocka_unit_test(test_versions),       cmocka_unit_test(test_lone_array),
		cmocka_unit_test(test_names),          cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
