/* SPDX-License-Identifier: BSD-3-Clause */
/* The Zarr sink makes stores and what is new in them, in all formats; consolidated metadata and
 * NCZarr's dictionaries stay right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/nczarr/sink_store.h"

#define A2(dtype, shape, chunks, fill) ARRAY2(dtype, shape, chunks, fill, "")

static const char *const now[] = {
	".zgroup",     GROUP2,
	".zattrs",     "{\"title\": \"t\", \"n\": 3}",
	"t/.zarray",   A2("<i4", "[5]", "[2]", "-9"),
	"t/.zattrs",   "{\"_ARRAY_DIMENSIONS\": [\"x\"], \"_FillValue\": -9, \"units\": \"K\"}",
	"f/.zarray",   A2("<f8", "[5]", "[2]", "null"),
	"f/.zattrs",   "{\"_ARRAY_DIMENSIONS\": [\"x\"], \"_FillValue\": 1.5}",
	"s/.zarray",   A2("<f4", "[]", "[]", "null"),
	"g/.zgroup",   GROUP2,
	"g/.zattrs",   "{\"deep\": true}",
	"g/c/.zarray", A2("|S1", "[3]", "[3]", "null"),
	"g/c/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"ch\"]}",
	NULL};

static struct zarr_sink_options options_of(uint32_t format, enum zarr_mode mode)
{
	return (struct zarr_sink_options){.format = format,
					  .mode = mode,
					  .nested = format == 3,
					  .consolidated = -1};
}

/* empty_store - as zarr_create makes it, in the place of the one of the box. */
static void empty_store(struct zs_box *x, const struct zarr_sink_options *opts)
{
	static const char *const nothing[] = {NULL};

	zs_box_init(x, nothing);
	assert_int_equal(zarr_create(x->store, opts, NULL), -EEXIST);
	assert_int_equal(rmdir(x->store), 0);
	zs_ok(zarr_create(x->store, opts, &e));
}

static void put(struct zs_box *x, const char *array, uint64_t linear, const void *p, size_t n)
{
	const struct sink_chunk c = {.p = p, .len = n};

	zs_ok(x->sink->ops->put(x->sink, zs_array_named(x->now, array), linear, &c, &e));
}

static void add_attrs(struct zs_box *x, uint32_t group)
{
	const struct ds_group *g = &x->now->ds.groups[group];

	for (uint32_t i = 0; i < g->n_attrs; i++)
		zs_ok(x->sink->ops->set_attr(x->sink, group, DS_NONE, &g->attrs[i], &e));
}

/* add_all - everything of `now`, as push does it with an empty dataset. */
static void add_all(struct zs_box *x)
{
	static const uint32_t level[] = {3};
	static const struct codec_spec spec = {
		.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""};
	const struct sink_ops *ops = x->sink->ops;
	static const int32_t t[] = {1, 2};
	static const double f[] = {1.5, 2.5};
	static const float s = 4.5F;

	zs_ok(ops->add_group(x->sink, 1, &e));
	for (uint32_t i = 0; i < x->now->ds.n_arrays; i++) {
		struct sink_new how = {
			.chain = {.n = x->now->ds.arrays[i].rank ? 1 : 0, .specs = &spec}};

		zs_ok(ops->add_array(x->sink, i, &how, &e));
	}
	zs_ok(ops->dims(x->sink, &e));
	add_attrs(x, 0);
	put(x, "t", 1, t, sizeof(t));
	put(x, "f", 0, f, sizeof(f));
	put(x, "s", 0, &s, sizeof(s));
	put(x, "c", 0, "abc", 3);
}

/* check_all - what the store says of it. */
static void check_all(struct zs_box *x, uint32_t format, enum zarr_mode mode)
{
	struct source *s = zs_open(x);
	const struct dataset *ds = &s->ds;
	const struct ds_array *a = &ds->arrays[zs_array_named(s, "f")];
	double fill, f[2];
	int32_t t[2];

	assert_string_equal(ds->format, format == 3           ? "Zarr v3"
					: mode == ZARR_NCZARR ? "NCZarr"
							      : "Zarr v2");
	assert_int_equal(ds->n_arrays, 4);
	assert_int_equal(ds->n_groups, 2);
	assert_int_equal(ds->groups[0].n_attrs, 2);
	assert_string_equal(ds->groups[0].attrs[0].name, "title");
	assert_int_equal(ds->groups[1].n_attrs, 1);
	assert_non_null(ds_attr_find(a->attrs, a->n_attrs, "_FillValue"));
	memcpy(&fill, ds_attr_find(a->attrs, a->n_attrs, "_FillValue")->data, sizeof(fill));
	assert_true(fill == 1.5);
	assert_string_equal(ds->dims[a->dims[0]].name, "x");
	assert_int_equal(ds->arrays[zs_array_named(s, "s")].rank, 0);
	zs_ok(source_read_chunk(s, zs_array_named(s, "f"), 0, (uint8_t *)f, sizeof(f), &e));
	assert_true(f[0] == 1.5 && f[1] == 2.5);
	zs_ok(source_read_chunk(s, zs_array_named(s, "f"), 1, (uint8_t *)f, sizeof(f), &e));
	assert_true(f[0] == 0);
	zs_ok(source_read_chunk(s, zs_array_named(s, "t"), 1, (uint8_t *)t, sizeof(t), &e));
	assert_true(t[0] == 1 && t[1] == 2);
	zs_ok(source_read_chunk(s, zs_array_named(s, "t"), 0, (uint8_t *)t, sizeof(t), &e));
	assert_true(t[0] == -9);
	source_close(s);
}

static void test_formats(void **state)
{
	static const struct {
		uint32_t format;
		enum zarr_mode mode;
	} kinds[] = {{2, ZARR_PURE}, {2, ZARR_NCZARR}, {3, ZARR_PURE}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct zarr_sink_options opts =
			options_of(kinds[i].format, kinds[i].mode);
		struct zs_box x;

		print_message("format %u, mode %d\n", kinds[i].format, (int)kinds[i].mode);
		empty_store(&x, &opts);
		zs_begin(&x, NULL, now, opts);
		add_all(&x);
		zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
		zs_end(&x);
		check_all(&x, kinds[i].format, kinds[i].mode);
		if (kinds[i].format == 3) {
			assert_non_null(strstr(zs_read(&x, "zarr.json"), "\"g/c\""));
			assert_non_null(strstr(zs_read(&x, "g/c/zarr.json"), "numpy_dtype"));
		} else
			assert_non_null(strstr(zs_read(&x, ".zmetadata"), "\"g/c/.zattrs\""));
		zs_box_release(&x);
	}
}

/* what changes is in the document of all, and nothing else */
static void test_consolidated(void **state)
{
	const struct zarr_sink_options opts = options_of(2, ZARR_PURE);
	struct zarr_sink_options never = opts;
	struct zs_box x;
	const char *all;

	(void)state;
	empty_store(&x, &opts);
	zs_begin(&x, NULL, now, opts);
	add_all(&x);
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	zs_begin(&x, NULL, now, opts);
	zs_ok(x.sink->ops->remove_array(x.sink, zs_array_named(x.was, "t"), &e));
	zs_ok(x.sink->ops->remove_attr(x.sink, 1, DS_NONE, "deep", &e));
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	all = zs_read(&x, ".zmetadata");
	assert_null(strstr(all, "\"t/.zarray\""));
	assert_non_null(strstr(all, "\"f/.zarray\""));
	assert_null(strstr(all, "deep"));
	never.consolidated = 0;
	zs_begin(&x, NULL, now, never);
	zs_ok(x.sink->ops->remove_array(x.sink, zs_array_named(x.was, "f"), &e));
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	assert_false(zs_exists(&x, ".zmetadata"));
	zs_box_release(&x);
}

/* NCZarr: lists, dimensions and types */
static void test_nczarr(void **state)
{
	const struct zarr_sink_options opts = options_of(2, ZARR_NCZARR);
	static const char *const later[] = {
		".zgroup",
		"{\"zarr_format\": 2, \"_nczarr_superblock\": {\"version\": \"2.0.0\"}, "
		"\"_nczarr_group\": {\"dims\": {\"x\": 5, \"y\": 2}, \"vars\": [\"f\", \"u\"], "
		"\"groups\": []}}",
		"f/.zarray",
		ARRAY2("<f8", "[5]", "[2]", "1.5",
		       ", \"_nczarr_array\": {\"dimrefs\": [\"/x\"]}"),
		"u/.zarray",
		ARRAY2("<i4", "[5, 2]", "[2, 2]", "0",
		       ", \"_nczarr_array\": {\"dimrefs\": [\"/x\", \"/y\"]}"),
		NULL};
	static const struct sink_new how = {.chunk = NULL};
	const struct ds_attr at = {.name = "n",
				   .type = {.kind = DT_INT, .size = 2},
				   .n = 1,
				   .data = (const uint8_t *)"\7\0"};
	struct source *s;
	const char *doc;
	struct zs_box x;

	(void)state;
	empty_store(&x, &opts);
	zs_begin(&x, NULL, now, opts);
	add_all(&x);
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	zs_begin(&x, NULL, later, opts);
	zs_ok(x.sink->ops->remove_array(x.sink, zs_array_named(x.was, "c"), &e));
	zs_ok(x.sink->ops->remove_group(x.sink, 1, &e));
	zs_ok(x.sink->ops->rename_array(x.sink, zs_array_named(x.was, "f"),
					zs_array_named(x.now, "f"), &e));
	zs_ok(x.sink->ops->add_array(x.sink, zs_array_named(x.now, "u"), &how, &e));
	zs_ok(x.sink->ops->dims(x.sink, &e));
	zs_ok(x.sink->ops->set_attr(x.sink, 0, DS_NONE, &at, &e));
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	s = zs_open(&x);
	assert_int_equal(s->ds.n_groups, 1);
	assert_int_equal(s->ds.n_arrays, 4); /* t and s were not removed */
	assert_int_equal(
		ds_attr_find(s->ds.groups[0].attrs, s->ds.groups[0].n_attrs, "n")->type.size,
		2);
	assert_string_equal(s->ds.dims[s->ds.arrays[zs_array_named(s, "u")].dims[1]].name, "y");
	source_close(s);
	doc = zs_read(&x, ".zgroup");
	assert_non_null(strstr(doc, "\"y\": 2"));
	assert_non_null(strstr(doc, "\"groups\": []"));
	assert_non_null(strstr(doc, "\"u\""));
	zs_box_release(&x);
}

/* an array of another name, with other names for its dimensions, where v3 has them */
static void test_rename3(void **state)
{
	const struct zarr_sink_options opts = options_of(3, ZARR_PURE);
	static const char *const later[] = {".zgroup",
					    GROUP2,
					    "g/.zgroup",
					    GROUP2,
					    "g/f2/.zarray",
					    A2("<f8", "[5]", "[2]", "null"),
					    "g/f2/.zattrs",
					    "{\"_ARRAY_DIMENSIONS\": [\"x2\"]}",
					    NULL};
	const char *all;
	struct zs_box x;

	(void)state;
	empty_store(&x, &opts);
	zs_begin(&x, NULL, now, opts);
	add_all(&x);
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	zs_begin(&x, NULL, later, opts);
	zs_ok(x.sink->ops->rename_array(x.sink, zs_array_named(x.was, "f"),
					zs_array_named(x.now, "f2"), &e));
	zs_ok(x.sink->ops->dims(x.sink, &e));
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	assert_false(zs_exists(&x, "f"));
	assert_true(zs_exists(&x, "g/f2/c/0"));
	assert_non_null(strstr(zs_read(&x, "g/f2/zarr.json"), "\"dimension_names\": [\"x2\"]"));
	all = zs_read(&x, "zarr.json");
	assert_null(strstr(all, "\"f\": {"));
	assert_non_null(strstr(all, "\"g/f2\": {"));
	/* of each group all nodes stand together */
	assert_true(strstr(all, "\"g\": {") < strstr(all, "\"g/c\": {"));
	zs_box_release(&x);
}

/* texts of several bytes, which Zarr v3 shows as bytes with one dimension more: as the virtual file
 * has them, characters */
static void test_tail(void **state)
{
	static const char *const one[] = {".zgroup",   GROUP2,
					  "w/.zarray", A2("|S3", "[4]", "[2]", "null"),
					  "w/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"x\"]}",
					  NULL};
	static const char *const was[] = {
		".zgroup",   GROUP2,
		"w/.zarray", A2("|S1", "[4, 3]", "[2, 3]", "null"),
		"w/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"x\", \"n\"]}",
		NULL};
	static const char *const later[] = {
		".zgroup",   GROUP2,
		"w/.zarray", A2("|S1", "[6, 3]", "[2, 3]", "null"),
		"w/.zattrs", "{\"_ARRAY_DIMENSIONS\": [\"y\", \"n\"]}",
		NULL};
	const struct zarr_sink_options opts = options_of(3, ZARR_PURE);
	static const struct sink_new how = {.chunk = NULL};
	struct source *s;
	uint8_t got[6];
	struct zs_box x;

	(void)state;
	empty_store(&x, &opts);
	zs_begin(&x, NULL, one, opts);
	zs_ok(x.sink->ops->add_array(x.sink, 0, &how, &e));
	put(&x, "w", 0, "abcdef", 6);
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	zs_begin(&x, was, later, opts);
	zs_ok(x.sink->ops->dims(x.sink, &e));
	zs_ok(x.sink->ops->resize(x.sink, 0, &e));
	put(&x, "w", 2, "ghijkl", 6);
	zs_ok(x.sink->ops->commit(x.sink, NULL, NULL, &e));
	zs_end(&x);
	assert_non_null(strstr(zs_read(&x, "w/zarr.json"),
			       "\"dimension_names\": [\"y\", \"string3\"]"));
	assert_non_null(strstr(zs_read(&x, "w/zarr.json"), "\"shape\": [6, 3]"));
	s = zs_open(&x);
	assert_int_equal(s->ds.arrays[0].rank, 1);
	zs_ok(source_read_chunk(s, 0, 2, got, 6, &e));
	assert_memory_equal(got, "ghijkl", 6);
	zs_ok(source_read_chunk(s, 0, 0, got, 6, &e));
	assert_memory_equal(got, "abcdef", 6);
	source_close(s);
	zs_box_release(&x);
}

/* what is there and is not shown is not written over */
static void test_in_the_way(void **state)
{
	const struct zarr_sink_options opts = options_of(2, ZARR_PURE);
	static const struct sink_new how = {.chunk = NULL};
	struct zs_box x;

	(void)state;
	empty_store(&x, &opts);
	zs_write(x.store, "t/readme", "mine", 4);
	zs_begin(&x, NULL, now, opts);
	zs_ok(x.sink->ops->add_array(x.sink, zs_array_named(x.now, "t"), &how, &e));
	assert_int_equal(x.sink->ops->commit(x.sink, NULL, NULL, NULL), -EEXIST);
	zs_end(&x);
	assert_string_equal(zs_read(&x, "t/readme"), "mine");
	assert_false(zs_exists(&x, "t/.zarray"));
	zs_box_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formats),    cmocka_unit_test(test_consolidated),
		cmocka_unit_test(test_nczarr),     cmocka_unit_test(test_rename3),
		cmocka_unit_test(test_in_the_way), cmocka_unit_test(test_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
