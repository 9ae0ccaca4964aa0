/* SPDX-License-Identifier: BSD-3-Clause */
/* References as they are written: where each chunk is, or its bytes, and what cannot be said; read
 * back, they are the tree that they were made of. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "nczarr/nczarr.h"
#include "nczarr/parquet/parquet.h"
#include "translate/contract/view.h"

static char top[] = "/tmp/refs_write.XXXXXX";

static const char *path_of(const char *name)
{
	static _Thread_local char path[2][200];
	static _Thread_local int i;

	i = !i;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", top, name);
	return path[i];
}

static void put(const char *name, const void *data, size_t n)
{
	FILE *f = fopen(path_of(name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

#define PUT(name, text) put(name, text, sizeof(text) - 1)
#define ARRAY(rank2, order)                                                                    \
	"{\"zarr_format\":2,\"shape\":" rank2 ",\"chunks\":" rank2 ",\"dtype\":\"<i2\","       \
	"\"compressor\":null,\"filters\":null,\"fill_value\":null,\"order\":\"" order "\"}"

/* A tree: v has two chunks of which one is there, w is stored in columns. */
static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(top));
	assert_int_equal(mkdir(path_of("t"), 0700), 0);
	assert_int_equal(mkdir(path_of("t/v"), 0700), 0);
	assert_int_equal(mkdir(path_of("t/w"), 0700), 0);
	PUT("t/.zgroup", "{\"zarr_format\":2}");
	PUT("t/v/.zarray",
	    "{\"zarr_format\":2,\"shape\":[8],\"chunks\":[4],\"dtype\":\"<i2\",\"order\":\"C\","
	    "\"compressor\":null,\"filters\":null,\"fill_value\":-1}");
	PUT("t/v/.zattrs", "{\"_ARRAY_DIMENSIONS\":[\"x\"],\"_FillValue\":-1}");
	PUT("t/v/1", "\1\0\2\0\3\0\4\0");
	PUT("t/w/.zarray", ARRAY("[2,2]", "F"));
	PUT("t/w/0.0", "\1\0\3\0\2\0\4\0");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	return nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const struct source_options usual = {.cut_bytes = 1 << 12,
					    .max_chunk_bytes = 1 << 20,
					    .max_index_bytes = 1 << 20,
					    .max_meta_bytes = 1 << 20};

static struct source *opened(const char *name)
{
	const struct source_ops *const formats[] = {&zarr_source_ops, &refs_source_ops};
	struct err e = ERR_INIT;
	struct source *s;

	if (source_open(formats, 2, path_of(name), &usual, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static struct view *shown(struct source *s, uint32_t format)
{
	const struct zarr_view_options opts = {.format = format,
					       .policy = {.filter = PLAN_KEEP},
					       .io = {.cache_bytes = 1 << 20},
					       .max_meta_bytes = 1 << 20};
	struct err e = ERR_INIT;
	struct view *v;

	if (zarr_view_open(s, &opts, &v, &e) < 0)
		fail_msg("%s", e.msg);
	return v;
}

static int written(const char *to, uint32_t format, const struct refs_options *o,
		   bool read_only, struct err *e)
{
	struct source *s = opened("t");
	struct view *v = shown(s, format);
	int fd = open(path_of(to), (read_only ? O_RDONLY : O_WRONLY) | O_CREAT | O_TRUNC, 0600);
	struct refs_set *set = NULL;
	int rc = refs_set_json(fd, &set, e);

	if (rc == 0)
		rc = refs_set_add(set, 0, "", s, v, o, e);
	if (rc == 0)
		rc = refs_set_end(set, e);
	refs_set_free(set);
	(void)close(fd);
	v->ops->close(v);
	source_close(s);
	return rc;
}

static void has(const char *name, const char *text)
{
	static char got[1 << 16];
	FILE *f = fopen(path_of(name), "rb");
	size_t n = fread(got, 1, sizeof(got) - 1, f);

	got[n] = '\0';
	assert_int_equal(fclose(f), 0);
	if (!strstr(got, text))
		fail_msg("no '%s' in %s", text, got);
}

/* chunk_is - four numbers of a chunk of the tree of references. */
static void chunk_is(const char *refs, uint32_t array, uint64_t linear, const int16_t want[4])
{
	struct source *s = opened(refs);
	struct view *v = shown(s, 2);
	struct err e = ERR_INIT;
	int16_t got[4];

	if (source_read_chunk(s, array, linear, (uint8_t *)got, sizeof(got), &e) < 0)
		fail_msg("%s", e.msg);
	assert_memory_equal(got, want, sizeof(got));
	v->ops->close(v);
	source_close(s);
}

static void test_json(void **state)
{
	const struct refs_options o = {
		.address = path_of("t"), .inlined = true, .max_inline = 1 << 20};
	char address[200], url[300];
	struct refs_options at = o;
	struct err e = ERR_INIT;

	(void)state;
	(void)snprintf(address, sizeof(address), "%s", path_of("t"));
	at.address = address;
	if (written("a.json", 2, &at, false, &e) < 0)
		fail_msg("%s", e.msg);
	has("a.json", "{\"version\": 1, \"refs\": {");
	(void)snprintf(url, sizeof(url), "\"v/1\": [\"%s/v/1\"]", address);
	has("a.json", url);
	/* rows, as every reader understands them */
	has("a.json", "\"w/0.0\": \"base64:AQACAAMABAA=\"");
	chunk_is("a.json", 0, 1, (const int16_t[]){1, 2, 3, 4});
	chunk_is("a.json", 1, 0, (const int16_t[]){1, 2, 3, 4});
	/* at a web server keys are encoded */
	at.address = "https://example.org/a b";
	assert_int_equal(written("b.json", 2, &at, false, &e), 0);
	has("b.json", "\"v/1\": [\"https://example.org/a b/v/1\"]");
}

static void test_refused(void **state)
{
	struct refs_options o = {.address = "/nowhere"};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(written("c.json", 2, &o, false, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "'/w': references cannot point to chunk 0"));
	assert_non_null(strstr(e.msg, "add -o inline to embed such chunks"));
	o.inlined = true;
	o.max_inline = 7; /* of eight */
	assert_int_equal(written("c.json", 2, &o, false, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "it cannot be embedded either"));
	o.max_inline = 8;
	assert_int_equal(written("c.json", 2, &o, true, &e), -EBADF);
	assert_string_equal(e.msg, "cannot write the references: bad file descriptor");
	assert_int_equal(written("c.json", 3, &o, false, &e), -EINVAL);
	assert_string_equal(e.msg,
			    "references can point to the chunks of a Zarr v2 store only");
}

/* adding - a dataset that is added by a thread. */
struct adding {
	struct refs_set *set;
	uint64_t number;
	const char *group;
	struct refs_options opts;
	struct err e;
	int rc;
};

static void *add(void *arg)
{
	struct adding *a = arg;
	struct source *s = opened("t");
	struct view *v = shown(s, 2);

	a->rc = refs_set_add(a->set, a->number, a->group, s, v, &a->opts, &a->e);
	v->ops->close(v);
	source_close(s);
	return NULL;
}

static const struct refs_options anywhere = {
	.address = "/x", .inlined = true, .max_inline = 1 << 20};

static size_t count_of(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *p = strstr(text, what); p; p = strstr(p + 1, what))
		n++;
	return n;
}

/* Datasets appear in the order of their numbers, below groups that are stated once; one that fails
 * leaves nothing. */
static void test_set(void **state)
{
	struct refs_options alone = anywhere;
	struct adding late = {.number = 3, .group = "b/c/two", .opts = anywhere}, one;
	static char text[1 << 16];
	struct refs_set *set;
	struct err e = ERR_INIT;
	pthread_t thread;
	size_t n;
	FILE *f;
	int fd = open(path_of("set.json"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	(void)state;
	assert_int_equal(refs_set_json(fd, &set, &e), 0);
	late.set = set;
	assert_int_equal(pthread_create(&thread, NULL, add, &late), 0);
	one = (struct adding){.set = set, .number = 0, .group = "b/one", .opts = anywhere};
	(void)add(&one);
	assert_int_equal(one.rc, 0);
	alone.inlined = false;
	one = (struct adding){.set = set, .number = 1, .group = "bad", .opts = alone};
	(void)add(&one);
	assert_int_equal(one.rc, -EOPNOTSUPP);
	refs_set_pass(set, 2);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(late.rc, 0);
	for (size_t i = 0; i < 2; i++) {
		one = (struct adding){.set = set,
				      .number = 4 + i,
				      .group = i ? "b/\xff" : "b/.zarray/x",
				      .opts = anywhere};
		(void)add(&one);
		assert_int_equal(one.rc, i ? -EILSEQ : -EINVAL);
	}
	assert_int_equal(refs_set_broken(set, NULL), 0);
	assert_int_equal(refs_set_end(set, &e), 0);
	refs_set_free(set);
	assert_int_equal(close(fd), 0);
	f = fopen(path_of("set.json"), "rb");
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	assert_int_equal(fclose(f), 0);
	assert_ptr_equal(strstr(text, "{\"version\": 1, \"refs\": {\n\".zgroup\": "), text);
	assert_int_equal(count_of(text, "\n\"b/.zgroup\": "), 1);
	assert_int_equal(count_of(text, "\n\"b/c/.zgroup\": "), 1);
	assert_int_equal(count_of(text, "bad"), 0);
	assert_int_equal(count_of(text, "zmetadata"), 0);
	assert_true(strstr(text, "\"b/one/w/0.0\"") < strstr(text, "\"b/c/two/v/1\""));
	chunk_is("set.json", 1, 0, (const int16_t[]){1, 2, 3, 4});
}

/* A writer that cannot write any more says so to all that follow. */
static void test_broken(void **state)
{
	struct adding one = {.number = 0, .group = "a", .opts = anywhere};
	struct err e = ERR_INIT;
	struct refs_set *set;
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(refs_set_json(fd, &set, &e), -ENOSPC);
	assert_int_equal(refs_set_table(fd, &set, &e), 0);
	one.set = set;
	(void)add(&one); /* its rows wait */
	assert_int_equal(one.rc, 0);
	assert_int_equal(refs_set_end(set, &e), -ENOSPC);
	refs_set_free(set);
	assert_int_equal(close(fd), 0);
}

/* A table: what a row has, and what is null. */
static void test_table(void **state)
{
	static const struct pq_want want[] = {
		{"dataset", false}, {"url", false}, {"offset", true}, {"data", false}};
	struct adding one = {.number = 0, .group = "a/one", .opts = anywhere};
	static uint8_t file[1 << 16];
	struct refs_set *set;
	struct pq_table t;
	struct err e = ERR_INIT;
	size_t n;
	FILE *f;
	int fd = open(path_of("t.parquet"), O_RDWR | O_CREAT | O_TRUNC, 0600);

	(void)state;
	assert_int_equal(refs_set_table(fd, &set, &e), 0);
	one.set = set;
	(void)add(&one);
	assert_int_equal(one.rc, 0);
	assert_int_equal(refs_set_end(set, &e), 0);
	refs_set_free(set);
	assert_int_equal(close(fd), 0);
	f = fopen(path_of("t.parquet"), "rb");
	n = fread(file, 1, sizeof(file), f);
	assert_int_equal(fclose(f), 0);
	if (pq_read(file, n, want, ARRAY_LEN(want), 1 << 20, &t, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(t.n, 2); /* v/1, the whole object; w/0.0, inline */
	assert_string_equal(t.columns[0].bytes.data + t.columns[0].at[1], "a/one");
	assert_string_equal(t.columns[1].bytes.data + t.columns[1].at[0], "/x/v/1");
	assert_true(!t.columns[1].nulls[0] && t.columns[1].nulls[1]);
	assert_true(t.columns[2].nulls[0] && t.columns[2].nulls[1]);
	assert_true(t.columns[3].nulls[0] && !t.columns[3].nulls[1]);
	assert_int_equal(t.columns[3].len[1], 8);
	pq_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_set),   cmocka_unit_test(test_broken),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
