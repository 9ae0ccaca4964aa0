/* SPDX-License-Identifier: BSD-3-Clause */
/* The Zarr source over a store that is far away: which requests it makes, how often it waits, and
 * what it says of what cannot be had. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include "nczarr/nczarr.h"
#include "tests/unit/nczarr/source/blob_remote_fake.h"

#include <cmocka.h>

#define GROUP "{\"zarr_format\": 2}"
#define ARRAY(shape, chunks)                                                                   \
	"{\"zarr_format\": 2, \"shape\": [" shape "], \"chunks\": [" chunks                    \
	"], \"dtype\": \"|u1\", \"fill_value\": 9, \"order\": \"C\", \"filters\": null, "      \
	"\"compressor\": null}"
#define DIMS(d) "{\"_ARRAY_DIMENSIONS\": [" d "]}"
#define GROUP3 "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}"
#define ARRAY3(shape, chunks, codecs)                                                          \
	"{\"zarr_format\": 3, \"node_type\": \"array\", \"shape\": [" shape                    \
	"], \"data_type\": \"uint8\", \"fill_value\": 9, \"chunk_grid\": {\"name\": "          \
	"\"regular\", \"configuration\": {\"chunk_shape\": [" chunks                           \
	"]}}, \"chunk_key_encoding\": {\"name\": \"default\", \"configuration\": "             \
	"{\"separator\": \"/\"}}, \"codecs\": [" codecs "]}"
#define BYTES "{\"name\": \"bytes\"}"

static const struct source_ops *const formats[] = {&zarr_source_ops};
static const struct source_options options = {
	.max_chunk_bytes = 1 << 20, .max_index_bytes = 1 << 20, .max_meta_bytes = 1 << 20};
static const struct source_options keep_going = {.max_chunk_bytes = 1 << 20,
						 .max_index_bytes = 1 << 20,
						 .max_meta_bytes = 1 << 20,
						 .keep_going = true};

static struct blob_proxy *far;
static struct source *src;

static void begin(bool unlisted)
{
	far = far_new(unlisted);
}

static void text(const char *key, const char *doc)
{
	far_put(far, key, doc, strlen(doc));
}

static int try_open(const struct source_options *opts, struct err *e)
{
	struct source_at at = {.path = "https://host/a.zarr",
			       .fd = -1,
			       .st.st_mode = S_IFDIR | 0755,
			       .store = &far->base};

	return source_open_at(formats, 1, &at, opts, &src, e);
}

static void must_open(const struct source_options *opts)
{
	struct err e = ERR_INIT;

	if (try_open(opts, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(src->remote);
	assert_int_equal(src->unlisted, far->base.unlisted);
}

static void end(void)
{
	source_close(src);
	src = NULL;
}

/* refused - opening fails, and says this. */
static void refused(int code, const char *what)
{
	struct err e = ERR_INIT;
	int rc = try_open(&options, &e);

	if (rc != code || !strstr(e.msg, what))
		fail_msg("%d '%s', not %d '%s'", rc, e.msg, code, what);
	store_close(&far->base);
}

/* costs - what was asked for since. */
static void costs_at(int requests, int rounds, int line)
{
	if (far->requests != requests || far->rounds > rounds)
		fail_msg("line %d: %d requests in %d rounds, not %d in %d: %s", line,
			 far->requests, far->rounds, requests, rounds, far->log);
	far_forget(far);
}
#define costs(requests, rounds) costs_at(requests, rounds, __LINE__)

static uint32_t array(const char *name)
{
	for (uint32_t i = 0; i < src->ds.n_arrays; i++)
		if (strcmp(src->ds.arrays[i].name, name) == 0)
			return i;
	fail_msg("no array '%s'", name);
	return 0;
}

/* reads - a chunk of two bytes. */
static void reads(const char *name, uint64_t linear, int a, int b)
{
	struct err e = ERR_INIT;
	uint8_t got[2];

	if (source_read_chunk(src, array(name), linear, got, 2, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(got[0], a);
	assert_int_equal(got[1], b);
}

static const char *note(size_t i)
{
	return i < src->ds.n_notes ? src->ds.notes[i] : "";
}

/* chunks - of an array of 2n elements, two bytes each: 10 k, 10 k + 1. */
static void chunks(const char *prefix, int n)
{
	for (int k = 0; k < n; k++) {
		uint8_t v[2] = {(uint8_t)(10 * k), (uint8_t)(10 * k + 1)};
		char key[60];

		(void)snprintf(key, sizeof(key), "%s%d", prefix, k);
		far_put(far, key, v, 2);
	}
}

/* ---- opening ---- */

#define CONSOLIDATED                                                                           \
	"{\"zarr_consolidated_format\": 1, \"metadata\": {\".zgroup\": " GROUP                 \
	", \"x/.zarray\": " ARRAY("8", "2") ", \"x/.zattrs\": " DIMS(                          \
		"\"x\"") ", \"g/.zgroup\": " GROUP ", \"g/y/.zarray\": " ARRAY("8", "2") "}}"

static void test_consolidated(void **state)
{
	(void)state;
	for (int unlisted = 0; unlisted < 2; unlisted++) {
		begin(unlisted);
		text(".zmetadata", CONSOLIDATED);
		chunks("x/", 3);
		must_open(&options);
		costs(2, 1);
		assert_int_equal(src->ds.n_arrays, 2);
		reads("x", 2, 20, 21);
		costs(1, 1);
		reads("x", 2, 20, 21); /* known */
		costs(0, 0);
		reads("x", 3, 9, 9); /* proven absence */
		costs(1, 1);
		assert_int_equal(source_poll(src, NULL), 0);
		assert_int_equal(far->fresh, 1);
		costs(1, 1);
		end();
	}
}

static void test_consolidated_v3(void **state)
{
	(void)state;
	for (int unlisted = 0; unlisted < 2; unlisted++) {
		begin(unlisted);
		text("zarr.json", GROUP3
		     ", \"consolidated_metadata\": {\"kind\": \"inline\", "
		     "\"must_understand\": false, \"metadata\": {\"x\": " ARRAY3("8", "2",
										 BYTES) "}}}");
		chunks("x/c/", 3);
		must_open(&options);
		costs(2, 1);
		reads("x", 1, 10, 11);
		costs(1, 1);
		end();
	}
}

/* put_wide - a v2 tree with 40 arrays, half of them in a group. */
static void put_wide(void)
{
	text(".zgroup", GROUP);
	text(".zattrs", "{}");
	text("g/.zgroup", GROUP);
	for (int i = 0; i < 40; i++) {
		char key[60];

		(void)snprintf(key, sizeof(key), "%sa%d/.zarray", i % 2 ? "g/" : "", i);
		text(key, ARRAY("8", "2"));
		(void)snprintf(key, sizeof(key), "%sa%d/.zattrs", i % 2 ? "g/" : "", i);
		text(key, DIMS("\"x\""));
		(void)snprintf(key, sizeof(key), "%sa%d/0", i % 2 ? "g/" : "", i);
		text(key, "ab");
	}
}

static void test_listed_v2(void **state)
{
	(void)state;
	begin(false);
	put_wide();
	must_open(&options);
	assert_int_equal(src->ds.n_arrays, 40);
	/* the root: zarr.json .zmetadata | .zarray .zgroup .zattrs .nczarr | list. 20 arrays and g:
	 * 42 documents | g's .zgroup | list of g | 40 documents */
	assert_int_equal(far->lists, 2);
	costs(2 + 4 + 1 + 42 + 1 + 1 + 40, 8);
	end();
}

static void test_listed_v3(void **state)
{
	(void)state;
	begin(false);
	text("zarr.json", GROUP3 "}");
	text("g/zarr.json", GROUP3 "}");
	for (int i = 0; i < 30; i++) {
		char key[60];

		(void)snprintf(key, sizeof(key), "%sa%d/zarr.json", i % 2 ? "g/" : "", i);
		text(key, ARRAY3("8", "2", BYTES));
	}
	chunks("a0/c/", 4);
	must_open(&options);
	assert_int_equal(src->ds.n_arrays, 30);
	costs(2 + 1 + 16 + 1 + 15, 5);
	/* no array's directory was listed; reading does not list either */
	reads("a0", 3, 30, 31);
	costs(1, 1);
	end();
}

/* ---- what cannot be listed ---- */

#define NC_GROUP(members)                                                                      \
	"{\"zarr_format\": 2, \"_nczarr_group\": {\"dims\": {\"x\": 8}, " members "}"

static void put_nczarr(void)
{
	text(".zgroup", NC_GROUP("\"vars\": [\"v\", \"w\"], \"groups\": [\"g\"]}"
				 ", \"_nczarr_superblock\": {\"version\": \"2.0.0\"}"));
	text(".zattrs", "{}");
	text("v/.zarray", ARRAY("8", "2"));
	text("w/.zarray", ARRAY("8", "2"));
	text("g/.zgroup", NC_GROUP("\"vars\": [\"u\"], \"groups\": []}"));
	text("g/u/.zarray", ARRAY("8", "2"));
}

static void test_nczarr(void **state)
{
	(void)state;
	begin(true);
	put_nczarr();
	must_open(&options);
	assert_int_equal(src->ds.n_arrays, 3);
	assert_int_equal(src->ds.n_groups, 2);
	assert_int_equal(src->ds.n_notes, 0);
	/* root 2, 4; v, w, g: 6, g's .zgroup; u: 2 */
	costs(2 + 4 + 6 + 1 + 2, 5);
	end();
}

static void test_nczarr_v1(void **state)
{
	(void)state;
	begin(true);
	text(".nczarr", "{\"zarr_format\": 2, \"nczarr_version\": \"1.0.0\"}");
	text(".nczgroup", "{\"dims\": {\"x\": 8}, \"vars\": [\"v\"], \"groups\": [\"g\"]}");
	text(".zgroup", GROUP);
	text("v/.zarray", ARRAY("8", "2"));
	text("v/.nczarray", "{\"dimrefs\": [\"/x\"], \"storage\": \"chunked\"}");
	text("g/.zgroup", GROUP);
	text("g/.nczgroup", "{\"dims\": {}, \"vars\": [], \"groups\": []}");
	must_open(&options);
	assert_int_equal(src->ds.n_arrays, 1);
	assert_int_equal(src->ds.n_groups, 2);
	assert_string_equal(src->ds.dims[src->ds.arrays[0].dims[0]].name, "x");
	end();
}

static void test_images(void **state)
{
	(void)state;
	begin(true);
	text(".zgroup", GROUP);
	text(".zattrs", "{\"multiscales\": [{\"datasets\": [{\"path\": \"0\"}, {\"path\": "
			"\"1\"}, {\"path\": \"../1\"}, {\"path\": \"0\"}, {}]}]}");
	text("0/.zarray", ARRAY("8", "2"));
	text("1/.zarray", ARRAY("4", "2"));
	must_open(&options);
	assert_int_equal(src->ds.n_arrays, 2);
	end();
	begin(true);
	text("zarr.json",
	     "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {\"ome\": "
	     "{\"multiscales\": [{\"datasets\": [{\"path\": \"s0\"}]}]}}}");
	text("s0/zarr.json", ARRAY3("8", "2", BYTES));
	must_open(&options);
	assert_int_equal(src->ds.n_arrays, 1);
	end();
}

static void test_unknown_children(void **state)
{
	(void)state;
	begin(true);
	text(".zgroup", GROUP);
	text("x/.zarray", ARRAY("8", "2"));
	refused(-EOPNOTSUPP, "consolidate");
	begin(true);
	text(".zgroup", GROUP);
	text("x/.zarray", ARRAY("8", "2"));
	must_open(&keep_going);
	assert_int_equal(src->ds.n_arrays, 0);
	assert_non_null(strstr(note(0), "consolidate"));
	end();
	begin(true);
	text("zarr.json", GROUP3 "}");
	refused(-EOPNOTSUPP, "consolidate");
	begin(true);
	text("zarr.json", GROUP3 "}");
	must_open(&keep_going);
	assert_non_null(strstr(note(0), "consolidate"));
	end();
	begin(true); /* a member that is said to be there */
	put_nczarr();
	text("v/.zarray", "");
	must_open(&keep_going);
	assert_int_equal(src->ds.n_arrays, 2);
	assert_non_null(strstr(note(0), "empty"));
	end();
}

static void test_root_array(void **state)
{
	(void)state;
	begin(true);
	text("zarr.json", ARRAY3("8", "2", BYTES));
	chunks("c/", 4);
	must_open(&options);
	costs(2, 1);
	reads(src->ds.arrays[0].name, 3, 30, 31);
	costs(1, 1);
	end();
	begin(false); /* a million chunks beside the document are not listed */
	text(".zarray", ARRAY("8", "2"));
	chunks("", 4);
	must_open(&options);
	assert_int_equal(far->lists, 0);
	costs(2 + 4, 2);
	end();
}

/* ---- what is no document ---- */

static void test_strangers(void **state)
{
	(void)state;
	begin(true);
	text("zarr.json", "<!DOCTYPE html><html><body>404</body></html>");
	refused(-EBADMSG, "web page");
	begin(true);
	text(".zmetadata", " \n<?xml version='1.0'?>");
	refused(-EBADMSG, "web page or XML");
	begin(true);
	text(".zgroup", "");
	refused(-EBADMSG, "empty");
	for (int unlisted = 0; unlisted < 2; unlisted++) {
		begin(unlisted);
		text("readme.txt", "nothing to see");
		refused(-EBADMSG, "no Zarr metadata");
	}
	begin(true); /* a server that does not let us in has not said that nothing is there */
	text(".zgroup", GROUP);
	far->broken = "zarr.json";
	far->broken_rc = -EACCES;
	refused(-EACCES, "says no");
	begin(true);
	text(".zgroup", NC_GROUP("\"vars\": [\"v\"], \"groups\": []}"));
	text("v/.zarray", ARRAY("8", "2"));
	far->broken = "v/.zarray";
	far->broken_rc = -EIO;
	refused(-EIO, "says no");
}

/* ---- chunks ---- */

/* What must not be listed does not say that something is not there either. */
static void test_denied(void **state)
{
	uint64_t at = 0;

	(void)state;
	begin(false);
	text(".zmetadata", CONSOLIDATED);
	chunks("x/", 3);
	far->broken = "zarr.json";
	far->broken_rc = -EACCES;
	{
		struct err e = ERR_INIT;

		if (try_open(&options, &e) < 0)
			fail_msg("%s", e.msg);
	}
	assert_true(src->unlisted);
	reads("x", 2, 20, 21);
	assert_int_equal(source_next(src, array("x"), 1, &at, NULL), 0);
	assert_int_equal(at, 1);
	assert_int_equal(far->lists, 0);
	end();
	begin(false);
	text("zarr.json", ARRAY3("8", "2", BYTES));
	far->broken = ".zmetadata";
	far->broken_rc = -EACCES;
	assert_int_equal(try_open(&options, NULL), 0);
	assert_true(src->unlisted);
	end();
	begin(false);
	text(".zgroup", GROUP);
	far->broken = "zarr.json";
	far->broken_rc = -EACCES;
	refused(-EACCES, "says no");
}

static void test_errors(void **state)
{
	struct err e = ERR_INIT;
	struct chunk_ref ref;
	uint8_t got[2];

	(void)state;
	begin(true);
	text(".zmetadata", CONSOLIDATED);
	chunks("x/", 3);
	must_open(&options);
	far->broken = "x/1";
	far->broken_rc = -EACCES;
	assert_int_equal(source_locate(src, array("x"), 1, &ref, &e), -EIO);
	assert_non_null(strstr(e.msg, "says no"));
	far->broken_rc = -ETIMEDOUT;
	assert_int_equal(source_read_chunk(src, array("x"), 1, got, 2, &e), -ETIMEDOUT);
	far->broken = NULL;
	reads("x", 1, 10, 11);
	assert_int_equal(source_locate(src, array("x"), 3, &ref, &e), 0);
	assert_int_equal(ref.where, CHUNK_ABSENT);
	assert_int_equal(source_locate(src, array("x"), 2, &ref, &e), 0);
	assert_int_equal(ref.where, CHUNK_RANGE);
	assert_int_equal(ref.len, 2);
	/* located, and gone by the time it is read */
	far->broken = "x/2";
	far->broken_rc = -ENOENT;
	assert_int_equal(source_read_stored(src, array("x"), 2, &ref, 0, got, 2, &e), -ESTALE);
	end();
}

static void test_next(void **state)
{
	uint64_t at = 0;

	(void)state;
	begin(false);
	text(".zmetadata", CONSOLIDATED);
	far_put(far, "x/1", "ab", 2);
	far_put(far, "x/3", "ab", 2);
	must_open(&options);
	far_forget(far);
	reads("x", 0, 9, 9);
	assert_int_equal(far->lists, 0);
	assert_int_equal(source_next(src, array("x"), 0, &at, NULL), 0);
	assert_int_equal(at, 1);
	assert_int_equal(source_next(src, array("x"), 2, &at, NULL), 0);
	assert_int_equal(at, 3);
	costs(2, 2);         /* a chunk, a listing */
	reads("x", 2, 9, 9); /* listed: known to be absent */
	costs(0, 0);
	end();
	begin(true);
	text(".zmetadata", CONSOLIDATED);
	must_open(&options);
	far_forget(far);
	assert_int_equal(source_next(src, array("x"), 2, &at, NULL), 0);
	assert_int_equal(at, 2);
	costs(0, 0);
	end();
}

static void test_want(void **state)
{
	static const uint64_t next[] = {0, 1, 2, 3, 77};

	(void)state;
	begin(true);
	text(".zmetadata", CONSOLIDATED);
	chunks("x/", 4);
	must_open(&options);
	far_forget(far);
	source_want(src, array("x"), next, 5);
	assert_int_equal(far->rounds, 0);
	for (int k = 0; k < 4; k++)
		reads("x", (uint64_t)k, 10 * k, 10 * k + 1);
	source_want(src, array("x"), next, 5);
	costs(4, 1);
	end();
}

#define SHARDING(where)                                                                        \
	"{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": [2], "          \
	"\"codecs\": [" BYTES "], \"index_codecs\": [{\"name\": \"bytes\", "                   \
	"\"configuration\": {\"endian\": \"little\"}}], \"index_location\": \"" where "\"}}"

/* put_shard - 4 chunks of 2 bytes, the second absent, `gap` bytes in front of each. */
static void put_shard(const char *key, int first, bool at_start, size_t gap)
{
	uint8_t *v = calloc(1, 4 * (gap + 2) + 64), *index;
	size_t at = at_start ? 64 : 0, n = 4 * (gap + 2) + 64;

	assert_non_null(v);
	index = v + (at_start ? 0 : n - 64);
	for (size_t k = 0; k < 4; k++) {
		uint64_t off = at + gap, len = 2;

		v[off] = (uint8_t)(first + 10 * (int)k);
		v[off + 1] = (uint8_t)(first + 10 * (int)k + 1);
		at += gap + 2;
		if (k == 1)
			off = len = UINT64_MAX;
		for (size_t i = 0; i < 8; i++) {
			index[16 * k + i] = (uint8_t)(off >> 8 * i);
			index[16 * k + 8 + i] = (uint8_t)(len >> 8 * i);
		}
	}
	far_put(far, key, v, n);
	free(v);
}

static void test_shards(void **state)
{
	static const uint64_t next[] = {0, 1, 2, 3, 4, 5};
	uint64_t at;

	(void)state;
	for (int unlisted = 0; unlisted < 2; unlisted++) {
		begin(unlisted);
		text("zarr.json", ARRAY3("24", "8", SHARDING("end")));
		put_shard("c/0", 0, false, 100000);
		put_shard("c/2", 100, false, 100000);
		must_open(&options);
		costs(2, 1);
		reads(src->ds.arrays[0].name, 0, 0, 1);
		assert_string_equal(far->log, "c/0[-1+16384] c/0[100000+2] ");
		costs(2, 2);
		reads(src->ds.arrays[0].name, 1, 9, 9); /* the index says so */
		costs(0, 0);
		reads(src->ds.arrays[0].name, 4, 9, 9); /* no such shard */
		costs(1, 1);
		source_want(src, 0, next, 6);
		/* chunk 2; the last came with the index; nothing of an absent one */
		assert_int_equal(far->requests, 1);
		reads(src->ds.arrays[0].name, 3, 30, 31);
		reads(src->ds.arrays[0].name, 2, 20, 21);
		costs(1, 1);
		if (!unlisted) {
			assert_int_equal(source_next(src, 0, 1, &at, NULL), 0);
			assert_int_equal(at, 2);
			costs(1, 1); /* listed */
			assert_int_equal(source_next(src, 0, 4, &at, NULL), 0);
			assert_int_equal(at, 8);
			costs(1, 1); /* the index of c/2, and of those behind it */
		}
		end();
	}
	begin(true);
	text("zarr.json", ARRAY3("24", "8", SHARDING("start")));
	put_shard("c/0", 0, true, 10);
	must_open(&options);
	far_forget(far);
	reads(src->ds.arrays[0].name, 0, 0, 1);
	costs(1, 1);
	end();
}

static void test_poll(void **state)
{
	struct err e = ERR_INIT;
	int rc = 0, polls;

	(void)state;
	begin(false);
	put_wide();
	must_open(&options);
	far_forget(far);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(source_poll(src, &e), 0);
		assert_true(far->requests <= 3);
		assert_int_equal(far->lists, 0);
		far_forget(far);
	}
	far->broken = ".zgroup"; /* trouble is no change */
	far->broken_rc = -ETIMEDOUT;
	assert_int_equal(source_poll(src, &e), -ETIMEDOUT);
	far->broken = NULL;
	text("a2/.zarray", ARRAY("8", "4"));
	for (polls = 0; rc == 0 && polls < 200; polls++)
		rc = source_poll(src, &e);
	assert_int_equal(rc, -ESTALE);
	assert_non_null(strstr(e.msg, "a2/.zarray"));
	assert_true(polls > 1 && polls <= 100);
	end();
	begin(true);
	text(".zmetadata", CONSOLIDATED);
	must_open(&options);
	text(".zmetadata", CONSOLIDATED);
	assert_int_equal(source_poll(src, &e), -ESTALE);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_consolidated), cmocka_unit_test(test_consolidated_v3),
		cmocka_unit_test(test_listed_v2),    cmocka_unit_test(test_listed_v3),
		cmocka_unit_test(test_nczarr),       cmocka_unit_test(test_nczarr_v1),
		cmocka_unit_test(test_images),       cmocka_unit_test(test_unknown_children),
		cmocka_unit_test(test_root_array),   cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_errors),       cmocka_unit_test(test_next),
		cmocka_unit_test(test_want),         cmocka_unit_test(test_shards),
		cmocka_unit_test(test_poll),         cmocka_unit_test(test_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
