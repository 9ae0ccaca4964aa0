/* SPDX-License-Identifier: BSD-3-Clause */
/* The Zarr sink on a remote store: what comes out is, object by object, what the same change makes
 * of a directory; a service that fails at any request leaves a manifest from which the change is
 * ended; what others wrote meanwhile is never written over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/nczarr/sink_store.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>

#include "nczarr/store/store.h"
#include "tests/unit/nczarr/store_mem.h"

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
static const char *const chunks[] = {"t/0",    "aaaabbbb", "t/2",     "ccccdddd", "a/0",
				     "AA",     "b/0",      "BB",      "gone/0",   "GG",
				     "gone/7", "XX",       "again/0", "gg",       "again/junk",
				     "jj",     "g/v/0",    "vv",      NULL};
/* a and b change their names, again becomes another array, n/w is new */
static const char *const now[] = {".zgroup",
				  GROUP2,
				  "t/.zarray",
				  ARRAY2("<i4", "[3]", "[2]", "-9", ""),
				  "again/.zarray",
				  ARRAY2("<i2", "[3]", "[3]", "null", ""),
				  "a/.zarray",
				  U1,
				  "b/.zarray",
				  U1,
				  "n/.zgroup",
				  GROUP2,
				  "n/w/.zarray",
				  ARRAY2("|u1", "[2]", "[2]", "null", ""),
				  "g/.zgroup",
				  GROUP2,
				  "g/v/.zarray",
				  U1_NESTED,
				  NULL};

/* ---- a store in memory that does as it is told ---- */

struct blob_proxy {
	struct zs_box box; /* its state directory, and a store of the same content */
	struct store *s;
	pthread_mutex_t lock;
	long count, fail_from, fail_to; /* of changes: from, to are answered with an error */
	bool late;                      /* they are done all the same */
	const char *meddle;             /* somebody else writes this at that change */
	long meddle_at;
	char log[4096]; /* what was put and removed, in order */
};

static int script(void *arg, enum store_mem_what what, const char *key)
{
	struct blob_proxy *f = arg;
	size_t n = strlen(f->log);

	if (what == STORE_MEM_FRESH)
		return 0;
	f->count++;
	if (n + strlen(key) + 4 < sizeof(f->log))
		(void)snprintf(f->log + n, sizeof(f->log) - n, "%c%s ",
			       what == STORE_MEM_PUT ? '+' : '-', key);
	if (f->meddle && f->count == f->meddle_at)
		assert_int_equal(store_mem_put(f->s, f->meddle, "{}", 2), 0);
	if (f->count >= f->fail_from && f->count < f->fail_to)
		return f->late ? EIO : -EIO;
	return 0;
}

static void far_init(struct blob_proxy *f, bool plain)
{
	*f = (struct blob_proxy){.fail_from = 1, .fail_to = 0};
	zs_box_init(&f->box, store);
	f->s = store_mem_new();
	assert_non_null(f->s);
	f->s->remote = true;
	for (size_t i = 0; store[i]; i += 2)
		assert_int_equal(
			store_mem_put(f->s, store[i], store[i + 1], strlen(store[i + 1])), 0);
	for (size_t i = 0; chunks[i]; i += 2) {
		zs_write(f->box.store, chunks[i], chunks[i + 1], strlen(chunks[i + 1]));
		assert_int_equal(
			store_mem_put(f->s, chunks[i], chunks[i + 1], strlen(chunks[i + 1])),
			0);
	}
	store_mem_set_script(f->s, script, f, plain);
}

static void far_release(struct blob_proxy *f)
{
	store_close(f->s);
	zs_box_release(&f->box);
}

#define ORD(s, name) zs_array_named(s, name)

/* change - of the memory store, or, far NULL, of the directory. between: called before the
 * commit. */
static int change_by(struct zs_box *x, struct blob_proxy *f,
		     void (*between)(struct blob_proxy *f), struct err *e)
{
	static const struct ds_text text = {.s = "new", .len = 3};
	static const struct ds_attr title = {
		.name = "title", .type = {.kind = DT_VSTRING}, .n = 1, .strings = &text};
	static const struct sink_new how = {.chunk = NULL};
	const struct sink_chunk c = {
		.stored = true, .p = (const uint8_t *)"11112222", .len = 8};
	const struct sink_chunk v = {.stored = true, .p = (const uint8_t *)"xy", .len = 2};
	struct zarr_sink_options o = {.format = 2,
				      .mode = ZARR_PURE,
				      .consolidated = -1,
				      .dir_fd = x->state_fd,
				      .store = f ? f->s : NULL};
	const struct sink_ops *ops;
	struct sink *s = NULL;
	uint32_t g = 1;
	int rc;

	if (f)
		assert_int_equal(zarr_store_open(f->s, "far", &zs_options, &x->real, e), 0);
	else
		x->real = zs_open(x);
	x->was = zs_open(x);
	x->now = zs_model(now, &x->now_store);
	rc = zarr_sink_open(x->store, x->real, &o, &s, e);
	x->sink = s;
	if (rc) {
		zs_end(x);
		return rc;
	}
	ops = s->ops;
	while (strcmp(x->now->ds.groups[g].name, "n") != 0)
		g++;
	rc = ops->begin(s, x->was, x->now, e);
	rc = rc ? rc : ops->remove_array(s, ORD(x->was, "gone"), e);
	rc = rc ? rc : ops->remove_array(s, ORD(x->was, "again"), e);
	rc = rc ? rc : ops->add_group(s, g, e);
	rc = rc ? rc : ops->add_array(s, ORD(x->now, "w"), &how, e);
	rc = rc ? rc : ops->add_array(s, ORD(x->now, "again"), &how, e);
	rc = rc ? rc : ops->rename_array(s, ORD(x->was, "a"), ORD(x->now, "b"), e);
	rc = rc ? rc : ops->rename_array(s, ORD(x->was, "b"), ORD(x->now, "a"), e);
	rc = rc ? rc : ops->dims(s, e);
	rc = rc ? rc : ops->resize(s, ORD(x->now, "t"), e);
	rc = rc ? rc : ops->set_attr(s, 0, DS_NONE, &title, e);
	rc = rc ? rc : ops->set_attr(s, 0, ORD(x->now, "b"), &title, e);
	rc = rc ? rc : ops->put(s, ORD(x->now, "t"), 1, &c, e);
	rc = rc ? rc : ops->put(s, ORD(x->now, "v"), 0, &v, e);
	if (rc == 0 && between)
		between(f);
	rc = rc ? rc : ops->commit(s, NULL, NULL, e);
	zs_end(x);
	return rc;
}

static int change(struct blob_proxy *f, struct err *e)
{
	f->count = 0;
	f->log[0] = '\0';
	return change_by(&f->box, f, NULL, e);
}

/* ---- what is there ---- */

struct listing {
	struct store *s;
	const char *dir;
	char *names[64];
	size_t n;
};

static bool add(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct listing *l = arg;

	(void)st;
	assert_true(l->n < 64);
	assert_true(asprintf(&l->names[l->n++], "%s%s%s%s", l->dir, *l->dir ? "/" : "", name,
			     is_dir ? "/" : "") > 0);
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* dump - all objects, "key: bytes" a line. */
static void dump(struct store *s, const char *dir, struct buf *out)
{
	struct listing l = {.s = s, .dir = dir};

	assert_int_equal(store_list(s, dir, false, add, &l, NULL), 0);
	qsort(l.names, l.n, sizeof(*l.names), by_name);
	for (size_t i = 0; i < l.n; i++) {
		size_t n = strlen(l.names[i]);

		if (l.names[i][n - 1] == '/') {
			l.names[i][n - 1] = '\0';
			dump(s, l.names[i], out);
		} else {
			buf_printf(out, "%s: ", l.names[i]);
			assert_int_equal(store_get(s, l.names[i], out, NULL, NULL), 0);
			buf_putc(out, '\n');
		}
		free(l.names[i]);
	}
}

static char *text_of(struct store *s)
{
	struct buf b;
	size_t n;

	buf_init(&b, 1 << 20);
	dump(s, "", &b);
	for (size_t i = 0; i < b.len; i++)
		if (b.data[i] == 0)
			b.data[i] = '#';
	buf_putc(&b, '\0');
	assert_true(buf_ok(&b));
	return (char *)buf_take(&b, &n);
}

static char *dir_text(const struct zs_box *x)
{
	int fd = open(x->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct store *s;
	char *text;

	zs_ok(store_dir_open(fd, &s, &e));
	text = text_of(s);
	store_close(s);
	return text;
}

static char *g_old, *g_new;

static int learn(void **state)
{
	struct err e = ERR_INIT;
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	g_old = text_of(f.s);
	if (change_by(&f.box, NULL, NULL, &e))
		zs_die("the directory", &e);
	g_new = dir_text(&f.box);
	far_release(&f);
	return 0;
}

static int forget(void **state)
{
	(void)state;
	free(g_old);
	free(g_new);
	return 0;
}

static bool is(const struct blob_proxy *f, const char *want)
{
	char *got = text_of(f->s);
	bool same = strcmp(got, want) == 0;

	if (!same && want == g_new)
		print_message("%s\n---- but\n%s", want, got);
	free(got);
	return same;
}

/* bare - nothing is left in the state directory. */
static bool bare(const struct blob_proxy *f)
{
	DIR *d = opendir(f->box.state);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n == 2;
}

static bool pending(const struct blob_proxy *f)
{
	return zarr_sink_pending(f->box.state_fd, NULL) == 1;
}

/* ---- tests ---- */

static void test_as_a_directory(void **state)
{
	struct err e = ERR_INIT;
	struct blob_proxy f;

	(void)state;
	for (int plain = 0; plain < 2; plain++) {
		far_init(&f, plain);
		if (change(&f, &e))
			zs_die("change", &e);
		assert_true(is(&f, g_new));
		assert_true(bare(&f));
		far_release(&f);
	}
}

/* g_lists - what was listed, of a store that can list all objects below a key at once. */
static struct {
	const struct store_ops *ops;
	char log[1000];
	bool inside; /* a deep listing */
} g_lists;

static void note_list(const char *key, const char *how)
{
	size_t n = strlen(g_lists.log);

	(void)snprintf(g_lists.log + n, sizeof(g_lists.log) - n, "%s%s ", key, how);
}

static int flat(struct store *s, const char *key, bool want_stat, store_emit *emit, void *arg,
		struct err *e)
{
	if (!g_lists.inside)
		note_list(key, "");
	return g_lists.ops->list(s, key, want_stat, emit, arg, e);
}

static void deeper(struct store *s, const char *key, size_t root, store_emit *emit, void *arg)
{
	struct listing l = {.s = s, .dir = key};
	struct store_stat st;

	if (store_list(s, key, false, add, &l, NULL) == -ENOENT)
		return;
	for (size_t i = 0; i < l.n; i++) {
		char *name = l.names[i];
		size_t n = strlen(name);

		if (name[n - 1] == '/') {
			name[n - 1] = '\0';
			deeper(s, name, root, emit, arg);
		} else {
			assert_int_equal(store_stat(s, name, &st, NULL), 0);
			assert_true(emit(arg, name + root, false, &st));
		}
		free(name);
	}
}

static int deep(struct store *s, const char *key, store_emit *emit, void *arg, struct err *e)
{
	(void)e;
	note_list(key, "/**");
	g_lists.inside = true;
	deeper(s, key, strlen(key) + 1, emit, arg);
	g_lists.inside = false;
	return 0;
}

/* A directory that goes costs one listing, however deep its keys are. */
static void test_listings(void **state)
{
	static const char *const more[] = {"gone/1/0", "gone/1/2/0", "gone/2/0",
					   "gone/3/4/5/6"};
	struct store_ops ops;
	struct err e = ERR_INIT;
	struct blob_proxy f;

	(void)state;
	far_init(&f, true);
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		assert_int_equal(store_mem_put(f.s, more[i], "x", 1), 0);
	g_lists.ops = f.s->ops;
	ops = *f.s->ops;
	ops.list = flat;
	ops.list_deep = deep;
	f.s->ops = &ops;
	g_lists.log[0] = '\0';
	if (change(&f, &e))
		zs_die("change", &e);
	/* the root, g and t are listed when the tree is opened */
	assert_string_equal(g_lists.log, " g t gone/** again/** a/** b/** ");
	f.s->ops = g_lists.ops;
	assert_true(is(&f, g_new));
	far_release(&f);
}

/* place - where something was done. */
static size_t place(const struct blob_proxy *f, const char *what)
{
	const char *p = strstr(f->log, what);

	if (!p)
		fail_msg("'%s' was not done: %s", what, f->log);
	return (size_t)(p - f->log);
}

/* Others look at the bucket meanwhile: no document says what is not there yet. */
static void test_order(void **state)
{
	struct err e = ERR_INIT;
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	assert_int_equal(change(&f, &e), 0);
	assert_true(place(&f, "-again/.zarray ") < place(&f, "-again/junk "));
	assert_true(place(&f, "-again/junk ") < place(&f, "+again/0 "));
	assert_true(place(&f, "+again/0 ") < place(&f, "+again/.zarray "));
	assert_true(place(&f, "+g/v/0 ") < place(&f, "+.zmetadata "));
	assert_true(place(&f, "+n/w/0 ") < place(&f, "+n/w/.zarray "));
	assert_true(place(&f, "+n/w/.zarray ") < place(&f, "+.zmetadata "));
	assert_true(place(&f, "+.zmetadata ") < place(&f, "-gone/.zarray "));
	assert_true(place(&f, "-gone/.zarray ") < place(&f, "-gone/0 "));
	assert_true(place(&f, "+t/.zarray ") < place(&f, "-t/2 "));
	assert_null(strstr(f.log, "+gone"));
	far_release(&f);
}

/* The service fails from some request on, with or without having done it; then it is there again:
 * all is put in by recovery, which may fail anywhere as well. */
static void fails_at(long k, bool late, long again, bool plain)
{
	struct err e = ERR_INIT;
	struct blob_proxy f;
	int rc;

	far_init(&f, plain);
	f.fail_from = k;
	f.fail_to = LONG_MAX;
	f.late = late;
	rc = change(&f, &e);
	if (rc == 0) { /* there were not so many */
		assert_true(f.count < k);
		far_release(&f);
		return;
	}
	assert_int_equal(rc, -EIO);
	assert_true(pending(&f));
	if (again) {
		f.count = 0;
		f.fail_from = again;
		if (zarr_sink_recover(NULL, f.s, f.box.state_fd, NULL) == 0)
			assert_true(f.count < again);
	}
	f.fail_to = 0;
	for (int i = 0; i < 2; i++) { /* once more does no harm */
		if (zarr_sink_recover(NULL, f.s, f.box.state_fd, &e))
			fail_msg("request %ld, %ld: %s", k, again, e.msg);
		if (!is(&f, g_new))
			fail_msg("request %ld, %ld: it is not new", k, again);
		assert_true(bare(&f));
	}
	far_release(&f);
}

static long steps(void)
{
	struct err e = ERR_INIT;
	struct blob_proxy f;
	long n;

	far_init(&f, false);
	assert_int_equal(change(&f, &e), 0);
	n = f.count;
	far_release(&f);
	assert_true(n > 15);
	return n;
}

static void test_failing(void **state)
{
	long n = steps();

	(void)state;
	for (long k = 1; k <= n; k++) {
		fails_at(k, false, 0, false);
		fails_at(k, true, 0, false);
		fails_at(k, true, 0, true);
		fails_at(k, k % 2, 1 + k * 7 % n, k % 3 == 0);
	}
}

/* ---- others ---- */

static void others(struct blob_proxy *f)
{
	assert_int_equal(store_mem_put(f->s, f->meddle, "{}", 2), 0);
}

/* Somebody changed a document between opening and commit: nothing is written. */
static void test_stale(void **state)
{
	static const char *const keys[] = {"t/.zarray", ".zattrs", "n/.zgroup", "g/v/.zarray"};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		for (int plain = 0; plain < 2; plain++) {
			struct err e = ERR_INIT;
			struct blob_proxy f;
			char *before;
			int rc;

			far_init(&f, plain);
			if (keys[i][0] == 'g') /* else that is looked at alone */
				assert_int_equal(store_remove(f.s, ".zmetadata", &e), 0);
			f.count = 0;
			f.meddle = keys[i];
			rc = change_by(&f.box, &f, others, &e);
			if (rc != (strstr(keys[i], "n/") ? -EEXIST : -ESTALE))
				fail_msg("%s, %d: %d %s", keys[i], plain, rc, e.msg);
			assert_non_null(strstr(e.msg, keys[i][0] == 'n' ? "'n'" : keys[i]));
			assert_false(pending(&f));
			assert_true(bare(&f));
			before = text_of(f.s);
			assert_non_null(strstr(before, ": {}"));
			assert_int_equal(f.count, 0);
			free(before);
			far_release(&f);
		}
}

/* The same at the last moment, when chunks have been put: theirs stays, ours waits, until somebody
 * says what is to become of it. */
static void test_race(void **state)
{
	(void)state;
	for (int plain = 0; plain < 2; plain++) {
		struct err e = ERR_INIT;
		struct blob_proxy f;
		char *text;

		far_init(&f, plain);
		f.meddle = "t/.zarray";
		f.meddle_at = 3;
		assert_int_equal(change(&f, &e), -ESTALE);
		assert_non_null(strstr(e.msg, "t/.zarray"));
		assert_non_null(strstr(e.msg, "conditions"));
		assert_true(pending(&f));
		f.meddle = NULL;
		assert_int_equal(zarr_sink_recover(NULL, f.s, f.box.state_fd, &e), -ESTALE);
		text = text_of(f.s);
		if (!strstr(text, "t/.zarray: {}"))
			fail_msg("%s", text);
		free(text);
		assert_int_equal(unlinkat(f.box.state_fd, "conditions", 0), 0);
		assert_int_equal(zarr_sink_recover(NULL, f.s, f.box.state_fd, &e), 0);
		assert_true(is(&f, g_new));
		assert_true(bare(&f));
		far_release(&f);
	}
}

static void test_busy(void **state)
{
	struct err e = ERR_INIT;
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	f.fail_from = 4;
	f.fail_to = LONG_MAX;
	assert_int_equal(change(&f, &e), -EIO);
	f.fail_to = 0;
	assert_int_equal(change(&f, &e), -EBUSY);
	assert_int_equal(zarr_sink_recover(NULL, f.s, f.box.state_fd, &e), 0);
	assert_true(is(&f, g_new));
	far_release(&f);
}

static void test_manifests(void **state)
{
	struct err e = ERR_INIT;
	struct blob_proxy f;
	FILE *file;
	char path[256];

	(void)state;
	far_init(&f, false);
	f.fail_from = 1;
	f.fail_to = LONG_MAX;
	assert_int_equal(change(&f, &e), -EIO);
	f.fail_to = 0;
	/* that of a remote store is not done to a directory */
	assert_int_equal(zarr_sink_recover(f.box.store, NULL, f.box.state_fd, &e), -EBADMSG);
	(void)snprintf(path, sizeof(path), "%s/manifest", f.box.state);
	file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, 60, SEEK_SET), 0);
	assert_int_equal(fputc('#', file), '#');
	(void)fclose(file);
	assert_int_equal(zarr_sink_recover(NULL, f.s, f.box.state_fd, &e), -EBADMSG);
	assert_true(is(&f, g_old));
	assert_true(pending(&f));
	far_release(&f);
}

/* A service that can only be read. */
static void test_read_only(void **state)
{
	struct store_ops ops;
	struct err e = ERR_INIT;
	struct blob_proxy f;

	(void)state;
	far_init(&f, false);
	ops = *f.s->ops;
	ops.put = NULL;
	ops.remove = NULL;
	f.s->ops = &ops;
	assert_int_equal(change(&f, &e), -EROFS);
	assert_false(pending(&f));
	assert_true(is(&f, g_old));
	far_release(&f);
}

static void test_create(void **state)
{
	static const uint32_t formats[] = {2, 3};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct zarr_sink_options o = {.format = formats[i % 2], .mode = ZARR_PURE};
		struct err e = ERR_INIT;
		struct source *s = NULL;
		struct blob_proxy f;

		far_init(&f, false);
		store_close(f.s);
		f.s = o.store = store_mem_new();
		store_mem_set_script(f.s, NULL, NULL, i >= 2);
		if (zarr_create("s3://b/new.zarr", &o, &e))
			zs_die("create", &e);
		assert_int_equal(zarr_store_open(f.s, "new", &zs_options, &s, &e), 0);
		assert_int_equal(s->ds.n_groups, 1);
		assert_string_equal(s->ds.format, o.format == 3 ? "Zarr v3" : "Zarr v2");
		source_close(s);
		assert_int_equal(zarr_create("s3://b/new.zarr", &o, &e), -EEXIST);
		assert_non_null(strstr(e.msg, "s3://b/new.zarr"));
		far_release(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_a_directory), cmocka_unit_test(test_order),
		cmocka_unit_test(test_failing),        cmocka_unit_test(test_stale),
		cmocka_unit_test(test_race),           cmocka_unit_test(test_busy),
		cmocka_unit_test(test_manifests),      cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_create),         cmocka_unit_test(test_listings),
	};

	return cmocka_run_group_tests(tests, learn, forget);
}
