/* SPDX-License-Identifier: BSD-3-Clause */
/* A commit of the Zarr sink that is interrupted anywhere: after recovery the store is what it was,
 * or what it was to be, and recovery may be interrupted as well. System calls that change
 * something are counted; at the chosen one the process ends, or it fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/nczarr/sink_store.h"

#include <dirent.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DIED 42

static long g_count, g_die = -1, g_fail = -1;
static size_t g_puts = 1; /* how often a chunk is put: many steps are synced in another way */

/* step - true: this call is to fail. */
static bool step(void)
{
	g_count++;
	if (g_count == g_die)
		_exit(DIED);
	if (g_count != g_fail)
		return false;
	errno = ENOSPC;
	return true;
}

/* They take the place of the library's. Nothing is synced: what is written is seen at once. */
int renameat(int a, const char *from, int b, const char *to)
{
	return step() ? -1 : (int)syscall(SYS_renameat2, a, from, b, to, 0);
}

int mkdirat(int a, const char *path, mode_t mode)
{
	return step() ? -1 : (int)syscall(SYS_mkdirat, a, path, mode);
}

int unlinkat(int a, const char *path, int flags)
{
	return step() ? -1 : (int)syscall(SYS_unlinkat, a, path, flags);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	return step() ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, p, n, at);
}

int fsync(int fd)
{
	(void)fd;
	return step() ? -1 : 0;
}

int syncfs(int fd)
{
	(void)fd;
	return step() ? -1 : 0;
}

/* ---- a change with every kind of step ---- */

#define T ARRAY2("<i4", "[5]", "[2]", "-9", "")
#define T_ATTRS "{\"_ARRAY_DIMENSIONS\": [\"x\"]}"
#define U1 ARRAY2("|u1", "[2]", "[2]", "0", "")
#define U1_NESTED ARRAY2("|u1", "[2]", "[2]", "0", ", \"dimension_separator\": \"/\"")
#define IN_ALL(key, doc) ", \"" key "\": " doc

static const char *const store[] = {
	".zgroup",
	GROUP2,
	".zattrs",
	"{\"title\": \"old\"}",
	"t/.zarray",
	T,
	"t/.zattrs",
	T_ATTRS,
	"gone/.zarray",
	U1,
	"again/.zarray",
	U1,
	"a/.zarray",
	U1,
	"b/.zarray",
	U1,
	"g/.zgroup",
	GROUP2,
	"g/v/.zarray",
	U1_NESTED,
	".zmetadata",
	"{\"zarr_consolidated_format\": 1, \"metadata\": {\".zgroup\": " GROUP2 IN_ALL(
		".zattrs", "{\"title\": \"old\"}") IN_ALL("t/.zarray", T)
		IN_ALL("t/.zattrs", T_ATTRS) IN_ALL("gone/.zarray", U1)
			IN_ALL("again/.zarray", U1) IN_ALL("a/.zarray", U1)
				IN_ALL("b/.zarray", U1) IN_ALL("g/.zgroup", GROUP2)
					IN_ALL("g/v/.zarray", U1_NESTED) "}}",
	NULL};
/* a and b change their names, again becomes another array, n/w is new */
static const char *const now[] = {
	".zgroup",
	GROUP2,
	"t/.zarray",
	ARRAY2("<i4", "[3]", "[2]", "-9", ""),
	"again/.zarray",
	ARRAY2("<i2", "[3]", "[3]", "null", ""),
	"a/.zarray",
	ARRAY2("|u1", "[2]", "[2]", "0", ""),
	"b/.zarray",
	ARRAY2("|u1", "[2]", "[2]", "0", ""),
	"n/.zgroup",
	GROUP2,
	"n/w/.zarray",
	ARRAY2("|u1", "[2]", "[2]", "null", ""),
	"g/.zgroup",
	GROUP2,
	"g/v/.zarray",
	ARRAY2("|u1", "[2]", "[2]", "0", ", \"dimension_separator\": \"/\""),
	NULL};

static void set_up(struct zs_box *x)
{
	zs_box_init(x, store);
	zs_write(x->store, "t/0", "aaaabbbb", 8);
	zs_write(x->store, "t/2", "ccccdddd", 8);
	zs_write(x->store, "a/0", "AA", 2);
	zs_write(x->store, "b/0", "BB", 2);
	zs_write(x->store, "gone/0", "GG", 2);
	zs_write(x->store, "again/0", "gg", 2);
	zs_write(x->store, "g/v/0", "vv", 2);
}

#define ORD(s, name) zs_array_named(s, name)

static int change(struct zs_box *x)
{
	static const struct zarr_sink_options opts = {
		.format = 2, .mode = ZARR_PURE, .consolidated = -1};
	static const struct ds_text text = {.s = "new", .len = 3};
	static const struct ds_attr title = {
		.name = "title", .type = {.kind = DT_VSTRING}, .n = 1, .strings = &text};
	static const struct sink_new how = {.chunk = NULL};
	const struct sink_chunk c = {
		.stored = true, .p = (const uint8_t *)"11112222", .len = 8};
	const struct sink_chunk v = {.stored = true, .p = (const uint8_t *)"xy", .len = 2};
	struct zarr_sink_options o = opts;
	struct err e = ERR_INIT;
	const struct sink_ops *ops;
	struct sink *s = NULL;
	uint32_t g = 1;
	int rc;

	x->real = zs_open(x);
	x->was = zs_open(x);
	x->now = zs_model(now, &x->now_store);
	o.dir_fd = x->state_fd;
	g_count = 0;
	rc = zarr_sink_open(x->store, x->real, &o, &s, &e);
	x->sink = s;
	if (rc) {
		zs_end(x);
		return rc;
	}
	ops = s->ops;
	while (strcmp(x->now->ds.groups[g].name, "n") != 0)
		g++;
	rc = ops->begin(s, x->was, x->now, &e);
	rc = rc ? rc : ops->remove_array(s, ORD(x->was, "gone"), &e);
	rc = rc ? rc : ops->remove_array(s, ORD(x->was, "again"), &e);
	rc = rc ? rc : ops->add_group(s, g, &e);
	rc = rc ? rc : ops->add_array(s, ORD(x->now, "w"), &how, &e);
	rc = rc ? rc : ops->add_array(s, ORD(x->now, "again"), &how, &e);
	rc = rc ? rc : ops->rename_array(s, ORD(x->was, "a"), ORD(x->now, "b"), &e);
	rc = rc ? rc : ops->rename_array(s, ORD(x->was, "b"), ORD(x->now, "a"), &e);
	rc = rc ? rc : ops->dims(s, &e);
	rc = rc ? rc : ops->resize(s, ORD(x->now, "t"), &e);
	rc = rc ? rc : ops->set_attr(s, 0, DS_NONE, &title, &e);
	rc = rc ? rc : ops->set_attr(s, 0, ORD(x->now, "b"), &title, &e);
	for (size_t i = 0; i < g_puts; i++)
		rc = rc ? rc : ops->put(s, ORD(x->now, "t"), 1, &c, &e);
	rc = rc ? rc : ops->put(s, ORD(x->now, "v"), 0, &v, &e);
	rc = rc ? rc : ops->commit(s, NULL, NULL, &e);
	if (rc && g_fail < 0)
		print_message("%s\n", e.msg);
	zs_end(x);
	return rc;
}

/* ---- what is there ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void tree(const char *dir, const char *name, struct buf *out)
{
	char path[512], *names[64], bytes[4096];
	size_t n = 0;
	struct dirent *x;
	DIR *d;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	d = opendir(path);
	if (!d) {
		f = fopen(path, "r");
		assert_non_null(f);
		n = fread(bytes, 1, sizeof(bytes), f);
		(void)fclose(f);
		buf_printf(out, "%s: ", name);
		buf_put(out, bytes, n);
		buf_putc(out, '\n');
		return;
	}
	while ((x = readdir(d)) != NULL && n < 64)
		if (strcmp(x->d_name, ".") != 0 && strcmp(x->d_name, "..") != 0)
			names[n++] = strdup(x->d_name);
	(void)closedir(d);
	qsort(names, n, sizeof(*names), by_name);
	buf_printf(out, "%s/\n", name);
	for (size_t i = 0; i < n; i++) {
		tree(path, names[i], out);
		free(names[i]);
	}
}

static char *store_text(const struct zs_box *x)
{
	struct buf b;
	size_t n;

	buf_init(&b, 1 << 20);
	tree(x->top, "x.zarr", &b);
	buf_putc(&b, '\0');
	assert_true(buf_ok(&b));
	return (char *)buf_take(&b, &n);
}

static char *g_old, *g_new;

static int learn(void **state)
{
	struct zs_box x;

	(void)state;
	set_up(&x);
	g_old = store_text(&x);
	assert_int_equal(change(&x), 0);
	g_new = store_text(&x);
	zs_box_release(&x);
	return 0;
}

static int forget(void **state)
{
	(void)state;
	free(g_old);
	free(g_new);
	return 0;
}

/* in_child - run fn with the k-th step deadly; its exit status, DIED when it came to that. */
static int in_child(int (*fn)(struct zs_box *x), struct zs_box *x, long k)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		g_die = k;
		_exit(fn(x) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int recover(struct zs_box *x)
{
	g_count = 0;
	return zarr_sink_recover(x->store, NULL, x->state_fd, NULL);
}

/* settled - recover, with `j` dying recoveries before; whether the store is as it has to be. done:
 * an earlier step was behind the commit. */
static void settled(struct zs_box *x, bool done, long k, long j)
{
	const char *want = done ? g_new : g_old;
	char *got;

	if (j > 0)
		(void)in_child(recover, x, j);
	assert_int_equal(recover(x), 0);
	assert_int_equal(zarr_sink_pending(x->state_fd, NULL), 0);
	assert_int_equal(faccessat(x->state_fd, "txn", F_OK, 0), -1);
	got = store_text(x);
	if (strcmp(got, want) != 0)
		fail_msg("step %ld, %ld: it is not %s:\n%s", k, j, done ? "new" : "old", got);
	free(got);
}

static bool pending(const struct zs_box *x)
{
	return zarr_sink_pending(x->state_fd, NULL) == 1;
}

static void test_whole(void **state)
{
	struct zs_box x;

	(void)state;
	assert_string_not_equal(g_old, g_new);
	assert_non_null(strstr(g_new, "\"a/.zarray\""));
	assert_null(strstr(g_new, "gone"));
	set_up(&x);
	assert_int_equal(change(&x), 0);
	assert_string_equal(zs_read(&x, "a/0"), "BB");
	assert_string_equal(zs_read(&x, "b/0"), "AA");
	assert_non_null(strstr(zs_read(&x, "b/.zattrs"), "new"));
	assert_string_equal(zs_read(&x, "t/1"), "11112222");
	assert_string_equal(zs_read(&x, "g/v/0"), "xy");
	assert_false(zs_exists(&x, "t/2"));
	assert_true(zs_exists(&x, "n/w/0"));
	zs_box_release(&x);
}

static void test_killed(void **state)
{
	int how = DIED;
	long olds = 0, news = 0;
	bool done = false;

	(void)state;
	for (long k = 1; how == DIED; k++) {
		struct zs_box x;

		set_up(&x);
		how = in_child(change, &x, k);
		done = done || pending(&x);
		*(done ? &news : &olds) += 1;
		if (how == DIED)
			settled(&x, done, k, 0);
		zs_box_release(&x);
	}
	assert_int_equal(how, 0);
	assert_true(olds > 10 && news > 10);
}

static void test_killed_many(void **state)
{
	g_puts = 40;
	test_killed(state);
	g_puts = 1;
}

/* the recovery of a commit that died at its first steps dies, too, at each of its steps */
static void test_killed_twice(void **state)
{
	int how = DIED;
	bool done = false;

	(void)state;
	for (long k = 1; how == DIED; k++) {
		struct zs_box x;

		set_up(&x);
		how = in_child(change, &x, k);
		done = done || pending(&x);
		zs_box_release(&x);
		for (long j = 1; how == DIED && done && k % 12 == 0 && j < 60; j++) {
			set_up(&x);
			(void)in_child(change, &x, k);
			settled(&x, done, k, j);
			zs_box_release(&x);
		}
	}
}

/* a call that fails: the change says so, and is then what it is after recovery */
static void test_failing(void **state)
{
	bool done = false;
	int rc = -1;

	(void)state;
	for (long k = 1; rc; k++) {
		struct zs_box x;

		set_up(&x);
		g_fail = k;
		rc = change(&x);
		g_fail = -1;
		done = done || pending(&x);
		if (rc)
			settled(&x, done, k, 0);
		zs_box_release(&x);
		assert_true(k < 1000);
	}
}

/* a manifest with any byte changed is refused, and the store untouched */
static void test_damaged(void **state)
{
	struct zs_box x;
	uint8_t bytes[8192];
	char path[200];
	size_t n;
	FILE *f;
	long k = 1;

	(void)state;
	for (;; k++) { /* up to the first step behind the commit */
		set_up(&x);
		assert_int_equal(in_child(change, &x, k), DIED);
		if (pending(&x))
			break;
		zs_box_release(&x);
	}
	(void)snprintf(path, sizeof(path), "%s/manifest", x.state);
	f = fopen(path, "r");
	n = fread(bytes, 1, sizeof(bytes), f);
	(void)fclose(f);
	assert_true(n > 100 && n < sizeof(bytes));
	for (size_t i = 0; i < n; i++) {
		char *got;

		bytes[i] ^= 0x41;
		f = fopen(path, "w");
		assert_int_equal(fwrite(bytes, 1, n, f), n);
		(void)fclose(f);
		bytes[i] ^= 0x41;
		assert_int_equal(recover(&x), -EBADMSG);
		got = store_text(&x);
		assert_string_equal(got, g_old);
		free(got);
		i += i > 64 ? 7 : 0;
	}
	f = fopen(path, "w");
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	(void)fclose(f);
	settled(&x, true, k, 0);
	zs_box_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),       cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_many), cmocka_unit_test(test_killed_twice),
		cmocka_unit_test(test_failing),     cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, learn, forget);
}
