/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading a tree's documents: what is found, in which order, with how many looks at the store, and
 * what is said about what is broken. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/unit/nczarr/zr_tree.h"

#include <cmocka.h>

#define GROUP "{\"zarr_format\": 2}"
#define ARRAY "{\"zarr_format\": 2, \"shape\": [1]}"
#define GROUP3 "{\"zarr_format\": 3, \"node_type\": \"group\"}"
#define ARRAY3 "{\"zarr_format\": 3, \"node_type\": \"array\", \"attributes\": {\"u\": 1}}"

/* ---- a store that counts ---- */

struct counting {
	struct store base;
	struct store *real;
	int stats, lists, gets;
	char listed[400];
};

static struct counting *counting_of(struct store *s)
{
	return CONTAINER_OF(s, struct counting, base);
}

static int count_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	counting_of(s)->stats++;
	return store_stat(counting_of(s)->real, key, ret, e);
}

static int count_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		      void *arg, struct err *e)
{
	struct counting *c = counting_of(s);
	size_t n = strlen(c->listed);

	c->lists++;
	(void)snprintf(c->listed + n, sizeof(c->listed) - n, "[%s]", key);
	return store_list(c->real, key, want_stat, emit, arg, e);
}

static int count_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	counting_of(s)->gets++;
	return store_read_io(counting_of(s)->real, key, io, e);
}

static const struct store_ops counting_ops = {
	.name = "counting", .stat = count_stat, .list = count_list, .read = count_read};

/* ---- helpers ---- */

static struct zr_source src;
static struct zr_tree tree;

static void load(const char *const *list)
{
	struct err e = ERR_INIT;

	tree_source(&src, list, false);
	if (zr_tree_load(&src, &tree, &e) < 0)
		fail_msg("%s", e.msg);
}

static void done(void)
{
	zr_tree_release(&tree);
	tree_release(&src);
}

static void refused(const char *const *list, int code, const char *message)
{
	struct err e = ERR_INIT;
	int rc;

	tree_source(&src, list, false);
	rc = zr_tree_load(&src, &tree, &e);
	if (rc != code || e.code != code || !strstr(e.msg, message) || e.msg[0] != '\'' ||
	    strstr(e.msg, "'zarr.json': 'zarr.json'"))
		fail_msg("%d, '%s', not %d, '%s'", rc, e.msg, code, message);
	tree_release(&src);
}

static void items_are(const char *want)
{
	char got[1000] = "";

	for (uint32_t i = 0; i < tree.n_items; i++) {
		const struct zr_item *it = &tree.items[i];
		size_t n = strlen(got);

		assert_true(i == 0 ? it->parent == DS_NONE : it->parent < i);
		if (i)
			assert_false(tree.items[it->parent].is_array);
		(void)snprintf(got + n, sizeof(got) - n, "%s%s%s%d ", it->key,
			       it->is_array ? "=" : ":", it->attrs ? "a" : "", it->format);
	}
	assert_string_equal(got, want);
}

static uint64_t seen(const char *key)
{
	uint64_t hit = 77;

	for (size_t i = 0; i < src.n_seen; i++)
		if (strcmp(src.seen[i].key, key) == 0) {
			assert_int_equal(hit, 77);
			hit = src.seen[i].version;
		}
	return hit;
}

/* ---- tests ---- */

static void test_walk(void **state)
{
	static const char *const list[] = {".zgroup",
					   GROUP,
					   ".zattrs",
					   "{\"t\": 1}",
					   "b/.zarray",
					   ARRAY,
					   "b/0.0",
					   "x",
					   "b/.zattrs",
					   "{}",
					   "a!/.zarray",
					   ARRAY,
					   "a/.zgroup",
					   GROUP,
					   "a/z/.zarray",
					   ARRAY,
					   "a/y/.zgroup",
					   GROUP,
					   "stray/deep/.zarray",
					   ARRAY,
					   "b/inside/.zarray",
					   ARRAY,
					   "stray2/file",
					   "x",
					   NULL};

	(void)state;
	load(list);
	items_are(":a2 a:2 a!=2 b=a2 a/y:2 a/z=2 ");
	assert_string_equal(tree.items[5].name, "z");
	assert_int_equal(tree.items[5].parent, 1);
	assert_string_equal(tree.items[0].name, "");
	assert_false(tree.consolidated);
	assert_null(tree.superblock);
	assert_int_equal(tree.notes.n, 0);
	done();
}

static void test_calls(void **state)
{
	static const char *const list[] = {
		".zgroup",   GROUP, "b/.zarray",   ARRAY, "b/.zattrs", "{}", "b/0", "x",
		"g/.zgroup", GROUP, "g/v/.zarray", ARRAY, "g/v/0",     "x",  NULL};
	struct counting c = {.base.ops = &counting_ops};
	struct err e = ERR_INIT;

	(void)state;
	tree_source(&src, list, false);
	c.real = src.store;
	src.store = &c.base;
	assert_int_equal(zr_tree_load(&src, &tree, &e), 0);
	items_are(":2 b=a2 g:2 g/v=2 ");
	assert_string_equal(c.listed, "[][g]");
	/* the root, zarr.json, .zmetadata, .zarray; b: 2; g/.zarray; g/v: 2 */
	assert_int_equal(c.stats, 4 + 2 + 1 + 2);
	assert_int_equal(c.gets, 5);
	src.store = c.real;
	done();
}

static void test_seen(void **state)
{
	static const char *const list[] = {".zgroup",   GROUP, "b/.zarray", ARRAY, "b/0", "x",
					   "g/.zgroup", GROUP, "stray/x/y", "x",   NULL};
	struct store_stat st;

	(void)state;
	load(list);
	assert_int_equal(store_stat(src.store, "b/.zarray", &st, NULL), 0);
	assert_int_equal(seen("b/.zarray"), st.version);
	assert_int_equal(store_stat(src.store, ".zgroup", &st, NULL), 0);
	assert_int_equal(seen(".zgroup"), st.version);
	assert_int_equal(store_stat(src.store, "g", &st, NULL), 0);
	assert_int_equal(seen("g"), st.version);
	assert_int_equal(store_stat(src.store, "", &st, NULL), 0);
	assert_int_equal(seen(""), st.version);
	assert_int_equal(seen(".zattrs"), 0);
	assert_int_equal(seen("zarr.json"), 0);
	assert_int_equal(seen(".zmetadata"), 0);
	assert_int_equal(seen("b/.zattrs"), 0);
	assert_int_equal(seen("g/.zarray"), 0);
	assert_int_equal(seen("stray/.zgroup"), 0);
	/* chunks come and go in these */
	assert_int_equal(seen("b"), 77);
	assert_int_equal(seen("stray"), 77);
	done();
}

static void test_roots(void **state)
{
	static const char *const no_root[] = {"v/.zarray", ARRAY, "w/zarr.json", ARRAY3, NULL};
	static const char *const array[] = {".zarray", ARRAY, ".zattrs", "{}",
					    "0/1",     "x",   NULL};
	static const char *const array3[] = {"zarr.json", ARRAY3, "c/0", "x", NULL};
	static const char *const both[] = {"zarr.json", ARRAY3, ".zarray", ARRAY, NULL};
	static const char *const nothing[] = {"a/b", "x", NULL};
	static const char *const empty[] = {NULL};

	(void)state;
	load(no_root);
	items_are(":2 v=2 w=a3 ");
	done();
	load(array);
	items_are("=a2 ");
	done();
	load(array3);
	items_are("=a3 ");
	done();
	load(both);
	items_are("=a3 ");
	done();
	load(nothing);
	items_are(":2 ");
	assert_null(tree.items[0].meta);
	done();
	load(empty);
	items_are(":2 ");
	done();
}

static void test_v3(void **state)
{
	static const char *const list[] = {"zarr.json",
					   GROUP3,
					   "g/zarr.json",
					   GROUP3,
					   "g/v/zarr.json",
					   ARRAY3,
					   "g/v/c/0/zarr.json",
					   ARRAY3,
					   "w/.zarray",
					   ARRAY,
					   NULL};
	static const char *const in_v2[] = {".zgroup",       GROUP,  "g/zarr.json", GROUP3,
					    "g/v/zarr.json", ARRAY3, NULL};

	(void)state;
	load(list);
	items_are(":3 g:3 g/v=a3 ");
	assert_int_equal(seen("w/zarr.json"), 0);
	assert_int_equal(seen("w/.zarray"), 77);
	done();
	load(in_v2);
	items_are(":2 g:3 g/v=a3 ");
	done();
}

static void test_v1(void **state)
{
	static const char *const list[] = {".zgroup",     GROUP,
					   ".nczarr",     "{\"nczarr_version\": \"1.0.0\"}",
					   ".nczgroup",   "{\"dims\": {\"x\": 1}}",
					   "v/.zarray",   ARRAY,
					   "v/.nczvar",   "{\"dimrefs\": [\"/x\"]}",
					   "v/.zattrs",   "{\"a\": 5}",
					   "v/.nczattr",  "{\"types\": {\"a\": \"3\"}}",
					   "w/.zarray",   ARRAY,
					   "w/.nczarray", "{\"dimrefs\": []}",
					   "w/.nczattrs", "{\"types\": {\"a\": \"5\"}}",
					   NULL};

	(void)state;
	load(list);
	items_are(":1 v=a1 w=a1 ");
	assert_non_null(tree.superblock);
	assert_non_null(json_get(tree.items[0].extra, "dims"));
	assert_non_null(json_get(tree.items[1].extra, "dimrefs"));
	assert_string_equal(zr_nc_type(&tree.items[1], "a"), "<i2");
	assert_non_null(json_get(tree.items[1].attrs, "a"));
	assert_string_equal(zr_nc_type(&tree.items[2], "a"), "<f4");
	done();
}

static void test_consolidated(void **state)
{
	static const char *const list[] = {
		".zmetadata",
		"{\"metadata\": {\"v/.zarray\": {\"zarr_format\": 2}, \"a/b/.zarray\": {}, "
		"\"v/.zattrs\": {}, \"v/below/.zarray\": {}, \"a/c/.zgroup\": " GROUP ", "
		"\"other\": 5, \"a/b/.zattrs\": {\"x\": 1}}, \"zarr_consolidated_format\": 1}",
		".zgroup",
		GROUP,
		"w/.zarray",
		ARRAY,
		NULL};
	static const char *const v3[] = {
		"zarr.json",
		"{\"zarr_format\": 3, \"node_type\": \"group\", \"consolidated_metadata\": {"
		"\"kind\": \"inline\", \"must_understand\": false, \"metadata\": {"
		"\"g/v\": " ARRAY3 ", \"h\": " GROUP3 "}}}",
		"w/zarr.json", ARRAY3, NULL};

	(void)state;
	load(list);
	items_are(":2 a:2 v=a2 a/b=a2 a/c:2 ");
	assert_true(tree.consolidated);
	assert_int_equal(tree.notes.n, 1);
	assert_non_null(strstr(tree.notes.v[0], "/v/below: is left out"));
	assert_true(seen(".zmetadata") != 0);
	assert_int_equal(seen("v/.zarray"), 77);
	done();
	load(v3);
	items_are(":3 g:3 h:3 g/v=a3 ");
	assert_true(tree.consolidated);
	done();
}

#define META(text)                                                                             \
	{                                                                                      \
		".zmetadata", text, NULL                                                       \
	}

static void test_broken_consolidated(void **state)
{
	static const char *const no_json[] = META("{\"metadata\": ");
	static const char *const no_format[] = META("{\"metadata\": {}}");
	static const char *const format[] =
		META("{\"metadata\": {}, \"zarr_consolidated_format\": 2}");
	static const char *const no_list[] =
		META("{\"metadata\": [], \"zarr_consolidated_format\": 1}");
	static const char *const key[] =
		META("{\"metadata\": {\"../x/.zarray\": {}}, \"zarr_consolidated_format\": 1}");
	static const char *const text[] =
		META("{\"metadata\": {\"x/.zarray\": 5}, \"zarr_consolidated_format\": 1}");
	static const char *const group[] =
		META("{\"metadata\": {\"x/.zgroup\": {\"zarr_format\": 3}}, "
		     "\"zarr_consolidated_format\": 1}");
	static const char *const root[] = {
		"zarr.json",
		"{\"zarr_format\": 3, \"consolidated_metadata\": {\"kind\": \"inline\", "
		"\"metadata\": {}}}",
		NULL};
	static const char *const kind[] = {
		"zarr.json",
		"{\"zarr_format\": 3, \"node_type\": \"group\", \"consolidated_metadata\": {"
		"\"kind\": \"other\"}}",
		NULL};

	(void)state;
	refused(no_json, -EBADMSG, "'.zmetadata': not JSON");
	refused(no_format, -EBADMSG, "'.zmetadata': zarr_consolidated_format is missing");
	refused(format, -EOPNOTSUPP, "'.zmetadata': zarr_consolidated_format is 2");
	refused(no_list, -EBADMSG, "'.zmetadata': metadata");
	refused(key, -EBADMSG, "'.zmetadata': '../x/.zarray' is not a valid key");
	refused(text, -EBADMSG, "'.zmetadata': 'x/.zarray' is not an object");
	refused(group, -EBADMSG, "'.zmetadata': 'x/.zgroup': zarr_format is 3, not 2");
	refused(root, -EBADMSG, "'zarr.json': node_type is neither");
	refused(kind, -EOPNOTSUPP, "'zarr.json': consolidated_metadata is not inline");
}

static void test_broken(void **state)
{
	static const char *const no_json[] = {".zgroup",   GROUP,         "g/.zgroup",
					      GROUP,       "g/v/.zarray", "{\"shape\": [1,}",
					      "h/.zarray", ARRAY,         NULL};
	static const char *const format[] = {".zgroup", "{\"zarr_format\": 3}", NULL};
	static const char *const no_format[] = {".zgroup", "{}", NULL};
	static const char *const no_object[] = {".zgroup", GROUP, ".zattrs", "[]", NULL};
	static const char *const dir[] = {".zgroup", GROUP, "v/.zarray/x", "", NULL};
	static const char *const node[] = {"zarr.json", "{\"zarr_format\": 3}", NULL};
	struct err e = ERR_INIT;

	(void)state;
	refused(no_json, -EBADMSG, "'g/v/.zarray': not JSON at line 1, column 14");
	refused(format, -EBADMSG, "'.zgroup': zarr_format is 3, not 2");
	refused(no_format, -EBADMSG, "'.zgroup': zarr_format is missing");
	refused(no_object, -EBADMSG, "'.zattrs': not a JSON object");
	refused(dir, -EBADMSG, "'v/.zarray' is a directory");
	refused(node, -EBADMSG, "'zarr.json': node_type");
	tree_source(&src, no_json, true);
	assert_int_equal(zr_tree_load(&src, &tree, &e), 0);
	items_are(":2 g:2 h=2 ");
	assert_int_equal(tree.notes.n, 1);
	assert_non_null(strstr(tree.notes.v[0], "/g/v: is left out: 'g/v/.zarray': not JSON"));
	done();
	/* a root that is wrong is wrong */
	tree_source(&src, format, true);
	assert_int_equal(zr_tree_load(&src, &tree, &e), -EBADMSG);
	tree_release(&src);
}

static void test_limits(void **state)
{
	static const char *const list[] = {".zgroup", GROUP, NULL};
	char key[3 * (ZR_DEPTH_MAX + 2) + 20] = "";
	struct err e = ERR_INIT;

	(void)state;
	tree_source(&src, list, false);
	for (int i = 0; i <= ZR_DEPTH_MAX; i++) {
		strcat(key, "g/");
		strcat(key, ".zgroup");
		assert_int_equal(store_mem_put(src.store, key, GROUP, strlen(GROUP)), 0);
		key[strlen(key) - 7] = '\0';
	}
	assert_int_equal(zr_tree_load(&src, &tree, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "nested deeper than 64"));
	tree_release(&src);

	tree_source(&src, list, true);
	src.opts.max_meta_bytes = 100;
	assert_int_equal(zr_tree_load(&src, &tree, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "100 bytes"));
	tree_release(&src);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),   cmocka_unit_test(test_calls),
		cmocka_unit_test(test_seen),   cmocka_unit_test(test_roots),
		cmocka_unit_test(test_v3),     cmocka_unit_test(test_v1),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_consolidated),
		cmocka_unit_test(test_broken), cmocka_unit_test(test_broken_consolidated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
