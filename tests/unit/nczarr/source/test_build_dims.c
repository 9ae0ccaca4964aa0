/* SPDX-License-Identifier: BSD-3-Clause */
/* Dimensions: by NCZarr's references, by names, made up, and what is wrong with them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include "tests/unit/nczarr/zr_tree.h"

#include <cmocka.h>

#define ZARRAY(shape, more)                                                                    \
	"{\"zarr_format\": 2, \"shape\": " shape ", \"chunks\": " shape                        \
	", \"dtype\": \"<i2\", "                                                               \
	"\"fill_value\": null, \"order\": \"C\", \"filters\": null, \"compressor\": null" more \
	"}"
#define NAMES(list) "{\"_ARRAY_DIMENSIONS\": " list "}"
#define GROUP "{\"zarr_format\": 2}"
#define ARRAY3(shape, more)                                                                    \
	"{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": " shape ", \"data_type\": " \
	"\"int16\", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": "               \
	"{\"chunk_shape\": "                                                                   \
	"" shape "}}, \"chunk_key_encoding\": {\"name\": \"default\"}, \"fill_value\": 0, "    \
	"\"codecs\": [{\"name\": \"bytes\", \"configuration\": {\"endian\": "                  \
	"\"little\"}}]" more "}"

static void dims_are(const char *const *list, const char *want)
{
	struct err e = ERR_INIT;
	struct zr_source s;
	struct buf b;

	tree_source(&s, list, false);
	if (zr_model(&s, &e) < 0)
		fail_msg("%s", e.msg);
	buf_init(&b, 4096);
	tree_describe(&s.base.ds, &b);
	assert_string_equal((const char *)b.data, want);
	buf_release(&b);
	tree_release(&s);
}

/* wrong - refused, and with keep_going as wanted. */
static void wrong(const char *const *list, const char *message, const char *want)
{
	struct err e = ERR_INIT;
	struct zr_source s;
	struct buf b;

	tree_source(&s, list, false);
	assert_int_equal(zr_model(&s, &e), -EBADMSG);
	if (!strstr(e.msg, message))
		fail_msg("%s", e.msg);
	tree_release(&s);
	tree_source(&s, list, true);
	if (zr_model(&s, &e) < 0)
		fail_msg("%s", e.msg);
	buf_init(&b, 4096);
	tree_describe(&s.base.ds, &b);
	assert_string_equal((const char *)b.data, want);
	assert_true(s.base.ds.n_notes > 0);
	buf_release(&b);
	tree_release(&s);
}

static void test_names(void **state)
{
	static const char *const simple[] = {".zgroup",   GROUP,
					     "t/.zarray", ZARRAY("[3]", ""),
					     "t/.zattrs", NAMES("[\"t\"]"),
					     "v/.zarray", ZARRAY("[3,5,5]", ""),
					     "v/.zattrs", NAMES("[\"t\",\"x\",\"x\"]"),
					     NULL};
	static const char *const around[] = {".zgroup",
					     GROUP,
					     "v/.zarray",
					     ZARRAY("[3,4]", ""),
					     "v/.zattrs",
					     NAMES("[\"x\",\"y\"]"),
					     "g/.zgroup",
					     GROUP,
					     "g/a/.zarray",
					     ZARRAY("[3,5]", ""),
					     "g/a/.zattrs",
					     NAMES("[\"x\",\"y\"]"),
					     "g/b/.zarray",
					     ZARRAY("[5,4]", ""),
					     "g/b/.zattrs",
					     NAMES("[\"y\",\"z\"]"),
					     "g/h/.zgroup",
					     GROUP,
					     "g/h/c/.zarray",
					     ZARRAY("[4,3]", ""),
					     "g/h/c/.zattrs",
					     NAMES("[\"y\",\"x\"]"),
					     NULL};
	static const char *const apart[] = {".zgroup",     GROUP,
					    "g/.zgroup",   GROUP,
					    "g/v/.zarray", ZARRAY("[3]", ""),
					    "g/v/.zattrs", NAMES("[\"x\"]"),
					    "h/.zgroup",   GROUP,
					    "h/v/.zarray", ZARRAY("[4]", ""),
					    "h/v/.zattrs", NAMES("[\"x\"]"),
					    NULL};

	(void)state;
	dims_are(simple, "/t(t=3) /v(t=3,x=5,x=5) ");
	dims_are(around, "/v(x=3,y=4) /g/a(x=3,/g/y=5) /g/b(/g/y=5,/g/z=4) "
			 "/g/h/c(/g/h/y=4,x=3) ");
	dims_are(apart, "/g/v(/g/x=3) /h/v(/h/x=4) ");
}

static void test_made_up(void **state)
{
	static const char *const none[] = {".zgroup",     GROUP,
					   "a/.zarray",   ZARRAY("[3,5,3]", ""),
					   "b/.zarray",   ZARRAY("[5,3]", ""),
					   "g/.zgroup",   GROUP,
					   "g/c/.zarray", ZARRAY("[3]", ""),
					   NULL};
	static const char *const taken[] = {".zgroup",
					    GROUP,
					    "phony_dim_0/.zarray",
					    ZARRAY("[3]", ""),
					    "a/.zarray",
					    ZARRAY("[7]", ""),
					    "a/.zattrs",
					    NAMES("[\"phony_dim_1\"]"),
					    NULL};
	static const char *const v3[] = {
		"zarr.json",
		"{\"zarr_format\": 3, \"node_type\": \"group\"}",
		"a/zarr.json",
		ARRAY3("[3,5,3]", ", \"dimension_names\": [\"x\", null, \"\"]"),
		"b/zarr.json",
		ARRAY3("[3]", ""),
		"c/zarr.json",
		ARRAY3("[4]", ", \"attributes\": {\"_ARRAY_DIMENSIONS\": [\"y\"]}"),
		NULL};

	(void)state;
	dims_are(none, "/a(~phony_dim_0=3,~phony_dim_1=5,~phony_dim_2=3) "
		       "/b(~phony_dim_1=5,~phony_dim_0=3) /g/c(~/g/phony_dim_3=3) ");
	dims_are(taken, "/a(phony_dim_1=7) /phony_dim_0(~phony_dim_2=3) ");
	dims_are(v3, "/a(x=3,~phony_dim_0=5,~phony_dim_1=3) /b(~phony_dim_1=3) /c(y=4) ");
}

static void test_wrong(void **state)
{
	static const char *const two[] = {".zgroup",   GROUP,
					  "a/.zarray", ZARRAY("[5]", ""),
					  "a/.zattrs", NAMES("[\"x\"]"),
					  "b/.zarray", ZARRAY("[6]", ""),
					  "b/.zattrs", NAMES("[\"x\"]"),
					  NULL};
	static const char *const itself[] = {".zgroup",   GROUP,
					     "a/.zarray", ZARRAY("[5,6]", ""),
					     "a/.zattrs", NAMES("[\"x\",\"x\"]"),
					     NULL};
	static const char *const few[] = {
		".zgroup",        GROUP, "a/.zarray", ZARRAY("[5,6]", ""), "a/.zattrs",
		NAMES("[\"x\"]"), NULL};
	static const char *const number[] = {
		".zgroup",   GROUP,        "a/.zarray", ZARRAY("[5]", ""),
		"a/.zattrs", NAMES("[5]"), NULL};
	static const char *const slash[] = {
		".zgroup",          GROUP, "a/.zarray", ZARRAY("[5]", ""), "a/.zattrs",
		NAMES("[\"x/y\"]"), NULL};
	static const char *const no_list[] = {
		".zgroup",   GROUP,          "a/.zarray", ZARRAY("[5]", ""),
		"a/.zattrs", NAMES("\"x\""), "b/.zarray", ZARRAY("[]", ""),
		NULL};

	(void)state;
	wrong(two, "'b/.zattrs': dimension 'x' is 5 long in '/a' and 6 long in '/b'",
	      "/a(x=5) /b(~phony_dim_0=6) ");
	wrong(itself, "dimension 'x' is 5 long in '/a' and 6 long in '/a'",
	      "/a(x=5,~phony_dim_0=6) ");
	wrong(few, "'a/.zattrs': 1 dimension names are given for 2",
	      "/a(~phony_dim_0=5,~phony_dim_1=6) ");
	wrong(number, "'a/.zattrs': the name of dimension 0 is not valid",
	      "/a(~phony_dim_0=5) ");
	wrong(slash, "'a/.zattrs': the name of dimension 0 is not valid",
	      "/a(~phony_dim_0=5) ");
	wrong(no_list, "'a/.zattrs': the names of the dimensions are not a list", "/b() ");
}

#define SUPER "{\"zarr_format\": 2, \"_nczarr_superblock\": {\"version\": \"2.0.0\"}, "
#define REFS(list) ", \"_nczarr_array\": {\"dimrefs\": " list ", \"storage\": \"chunked\"}"

static void test_nczarr(void **state)
{
	static const char *const old[] = {
		".zgroup",
		SUPER "\"_nczarr_group\": {\"dims\": {\"y\": 4, \"x\": 6, \"unused\": 1}, "
		      "\"vars\": [\"v\", \"a\"], \"groups\": [\"g\"]}}",
		"a/.zarray",
		ZARRAY("[4]", REFS("[\"/y\"]")),
		"v/.zarray",
		ZARRAY("[6,4]", REFS("[\"/x\",\"/y\"]")),
		"g/.zgroup",
		"{\"zarr_format\": 2, \"_nczarr_group\": {\"dims\": {\"z\": 2, \"y\": 5}}}",
		"g/w/.zarray",
		ZARRAY("[2,4,5]", REFS("[\"/g/z\",\"/y\",\"/g/y\"]")),
		"g/w/.zattrs",
		NAMES("[\"wrong\"]"),
		"g/s/.zarray",
		ZARRAY("[5]", REFS("[\"y\"]")),
		NULL};
	static const char *const now[] = {
		".zgroup",
		GROUP,
		".zattrs",
		"{\"_nczarr_superblock\": {\"version\": \"2.0.0\"}, \"_nczarr_group\": "
		"{\"dimensions\": {\"t\": {\"size\": 3, \"unlimited\": 1}, \"y\": 4}, "
		"\"dims\": {\"q\": 7}, \"arrays\": [\"v\"], \"groups\": []}}",
		"v/.zarray",
		ZARRAY("[3,4]", ""),
		"v/.zattrs",
		"{\"_nczarr_array\": {\"dimension_references\": [\"/t\", \"/y\"]}}",
		"named/.zarray",
		ZARRAY("[3]", ""),
		"named/.zattrs",
		NAMES("[\"t\"]"),
		NULL};
	static const char *const v1[] = {".zgroup",
					 GROUP,
					 ".nczarr",
					 "{}",
					 ".nczgroup",
					 "{\"dims\": {\"lat\": 8}}",
					 "lat/.zarray",
					 ZARRAY("[8]", ""),
					 "lat/.nczarray",
					 "{\"dimrefs\": [\"/lat\"]}",
					 NULL};
	/* a group of an NCZarr tree on its own */
	static const char *const part[] = {
		".zgroup", "{\"zarr_format\": 2, \"_nczarr_group\": {\"dims\": {\"z\": 2}}}",
		"w/.zarray", ZARRAY("[2,4]", REFS("[\"/g/z\",\"/y\"]")), NULL};

	(void)state;
	dims_are(old, "/v(x=6,y=4) /a(y=4) /g/s(/g/y=5) /g/w(/g/z=2,y=4,/g/y=5) ");
	dims_are(now, "/v(*t=3,y=4) /named(*t=3) ");
	dims_are(v1, "/lat(lat=8) ");
	dims_are(part, "/w(z=2,y=4) ");
}

static void test_nczarr_wrong(void **state)
{
	static const char *const undefined[] = {".zgroup", SUPER "\"_nczarr_group\": {}}",
						"v/.zarray", ZARRAY("[4]", REFS("[\"/y\"]")),
						NULL};
	static const char *const length[] = {
		".zgroup", SUPER "\"_nczarr_group\": {\"dims\": {\"y\": 5}}}", "v/.zarray",
		ZARRAY("[4]", REFS("[\"/y\"]")), NULL};
	static const char *const named[] = {
		".zgroup",   SUPER "\"_nczarr_group\": {\"dims\": {\"y\": 5}}}",
		"v/.zarray", ZARRAY("[4]", ""),
		"v/.zattrs", NAMES("[\"y\"]"),
		NULL};
	static const char *const path[] = {
		".zgroup", SUPER "\"_nczarr_group\": {\"dims\": {\"y\": 4}}}", "v/.zarray",
		ZARRAY("[4]", REFS("[\"/q/y\"]")), NULL};
	static const char *const dim[] = {
		".zgroup", SUPER "\"_nczarr_group\": {\"dims\": {\"y\": \"4\"}}}", NULL};
	struct err e = ERR_INIT;
	struct zr_source s;

	(void)state;
	wrong(undefined, "'v/.zarray': dimension '/y' is not defined", "/v(~phony_dim_0=4) ");
	wrong(length, "'v/.zarray': dimension '/y' is 5 long, the shape has 4",
	      "/v(~phony_dim_0=4) ");
	wrong(named, "dimension 'y' is 5 long in NCZarr's group '/' and 4 long in '/v'",
	      "/v(~phony_dim_0=4) ");
	wrong(path, "dimension '/q/y' is not defined", "/v(~phony_dim_0=4) ");
	tree_source(&s, dim, true);
	assert_int_equal(zr_model(&s, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "NCZarr's dimension 'y' is not valid"));
	tree_release(&s);
}

static void test_scalars(void **state)
{
	static const char *const list[] = {
		".zgroup",
		SUPER "\"_nczarr_group\": {}}",
		"a/.zarray",
		ZARRAY("[1]",
		       ", \"_NCZARR_ARRAY\": {\"dimrefs\": [], \"storage\": \"scalar\"}"),
		"a/.zattrs",
		NAMES("[]"),
		"b/.zarray",
		ZARRAY("[1]", ""),
		"b/.zattrs",
		"{\"_ARRAY_DIMENSIONS\": [\"_scalar_\"], \"_nczarr_array\": "
		"{\"dimension_references\": [], \"scalar\": 1}}",
		"c/.zarray",
		ZARRAY("[]", ""),
		"c/.zattrs",
		NAMES("[\"_scalar_\"]"),
		"d/.zarray",
		ZARRAY("[]", ""),
		"d/.zattrs",
		NAMES("[]"),
		"e/.zarray",
		ZARRAY("[1]", ""),
		"e/.zattrs",
		NAMES("[\"_scalar_\"]"),
		"f/.zarray",
		ZARRAY("[1]", ""),
		"f/.zattrs",
		NAMES("[\"one\"]"),
		NULL};

	(void)state;
	dims_are(list, "/a() /b() /c() /d() /e() /f(one=1) ");
}

/* test_many - dimensions are found in no time however many there are. */
static void test_many(void **state)
{
	struct err e = ERR_INIT;
	struct zr_source s;
	char key[40], names[60];

	(void)state;
	tree_source(&s, (const char *const[]){".zgroup", GROUP, NULL}, false);
	for (int i = 0; i < 700; i++) {
		(void)snprintf(key, sizeof(key), "v%d/.zarray", i);
		assert_int_equal(store_mem_put(s.store, key, ZARRAY("[3]", ""),
					       strlen(ZARRAY("[3]", ""))),
				 0);
		(void)snprintf(key, sizeof(key), "v%d/.zattrs", i);
		(void)snprintf(names, sizeof(names), NAMES("[\"d%d\"]"), i);
		assert_int_equal(store_mem_put(s.store, key, names, strlen(names)), 0);
	}
	if (zr_model(&s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(s.base.ds.n_dims, 700);
	for (uint32_t i = 0; i < 700; i++)
		assert_int_equal(s.base.ds.arrays[i].dims[0], i);
	tree_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),   cmocka_unit_test(test_made_up),
		cmocka_unit_test(test_wrong),   cmocka_unit_test(test_nczarr),
		cmocka_unit_test(test_scalars), cmocka_unit_test(test_nczarr_wrong),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
