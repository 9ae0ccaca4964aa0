/* SPDX-License-Identifier: BSD-3-Clause */
/* test_stage.c - the stage: keys and their entries, generations, logs that are torn, damaged or
 * made by another program. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "codecs/core/codec.h"
#include "translate/stage/stage_int.h"

struct fx {
	char dir[64];
	int fd;
	struct stage *s;
};

static void reopen(struct fx *f)
{
	struct err e = ERR_INIT;

	stage_close(f->s);
	f->s = NULL;
	if (stage_open(f->fd, false, &f->s, &e))
		fail_msg("%s", e.msg);
}

static int setup(void **state)
{
	struct fx *f = calloc(1, sizeof(*f));

	(void)snprintf(f->dir, sizeof(f->dir), "%s/nczarrfs-stage-XXXXXX",
		       access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	assert_non_null(mkdtemp(f->dir));
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	assert_true(f->fd >= 0);
	reopen(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fx *f = *state;
	char command[100];

	stage_close(f->s);
	(void)close(f->fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static void put(struct fx *f, const char *key, const char *t)
{
	assert_int_equal(stage_put(f->s, key, (const uint8_t *)t, strlen(t), NULL), 0);
}

/* at - a key as text: its content; what else it is. */
static const char *at(struct stage *s, const char *key)
{
	static _Thread_local char out[2][5000];
	static _Thread_local int turn;
	char *o = out[turn = 1 - turn], name[STORE_KEY_MAX + 1];
	struct stage_entry x;
	struct err e = ERR_INIT;
	int rc;

	stage_find(s, key, &x, name);
	switch (x.kind) {
	case STAGE_NOTHING:
		return "nothing";
	case STAGE_GONE:
		return "gone";
	case STAGE_DIR:
		return "/";
	case STAGE_ALIAS:
		(void)snprintf(o, 5000, "=%.4000s", x.base_key);
		return o;
	case STAGE_DATA:
		break;
	}
	assert_true(x.len < 4000);
	rc = stage_read(s, key, &x, 0, (uint8_t *)o, (size_t)x.len, &e);
	o[x.len] = '\0';
	if (rc)
		(void)snprintf(o, 5000, "%d", rc);
	return o;
}

static bool add_key(void *arg, const char *key, const struct stage_entry *x)
{
	static const char kinds[] = "?:/-=";
	char *out = arg;
	size_t n = strlen(out);

	(void)snprintf(out + n, 4000 - n, "%s%s%c%s", n ? " " : "", key, kinds[x->kind],
		       x->kind == STAGE_ALIAS ? x->base_key : "");
	return true;
}

static const char *keys(struct stage *s, uint64_t generation)
{
	static char out[4000];

	out[0] = '\0';
	assert_int_equal(stage_each(s, generation, add_key, out), 0);
	return out;
}

static size_t files(struct fx *f)
{
	char command[120], n[20] = "";
	FILE *p;

	(void)snprintf(command, sizeof(command), "ls %s | wc -l", f->dir);
	p = popen(command, "r");
	assert_non_null(fgets(n, sizeof(n), p));
	(void)pclose(p);
	return strtoul(n, NULL, 10);
}

/* ---- keys ---- */

static void fill(struct fx *f)
{
	put(f, "v/.zarray", "doc");
	put(f, "v/0.0", "a");
	put(f, "v/0.0", "b");
	put(f, "v/tmp", "moved");
	assert_int_equal(stage_mkdir(f->s, "w", NULL), 0);
	assert_int_equal(stage_move(f->s, "v/tmp", "v/0.1", false, NULL), 0);
	assert_int_equal(stage_gone(f->s, "g", false, NULL), 0);
	assert_int_equal(stage_alias(f->s, "w/0", "old/0", NULL), 0);
	assert_int_equal(stage_move(f->s, "w/0", "w/1", false, NULL), 0);
	put(f, "empty", "");
	put(f, "x/y/z", "deep");
	assert_int_equal(stage_gone(f->s, "x", false, NULL), 0);
	put(f, "x/new", "again");
}

static void is_filled(struct stage *s)
{
	assert_string_equal(at(s, "v/.zarray"), "doc");
	assert_string_equal(at(s, "v/0.0"), "b");
	assert_string_equal(at(s, "v/0.1"), "moved");
	assert_string_equal(at(s, "v/tmp"), "gone");
	assert_string_equal(at(s, "v/0.2"), "nothing");
	assert_string_equal(at(s, "v"), "/");
	assert_string_equal(at(s, "w"), "/");
	assert_string_equal(at(s, "w/0"), "gone");
	assert_string_equal(at(s, "w/1"), "=old/0");
	assert_string_equal(at(s, "g"), "gone");
	assert_string_equal(at(s, "g/h/i"), "gone");
	assert_string_equal(at(s, "gg"), "nothing");
	assert_string_equal(at(s, "empty"), "");
	assert_string_equal(at(s, "x"), "/");
	assert_string_equal(at(s, "x/y/z"), "gone");
	assert_string_equal(at(s, "x/new"), "again");
	assert_string_equal(at(s, ""), "/");
	assert_string_equal(keys(s, UINT64_MAX),
			    "empty: g- v/.zarray: v/0.0: v/0.1: v/tmp- w/ w/0- w/1=old/0 "
			    "x- x/new:");
}

static void test_keys(void **state)
{
	struct fx *f = *state;
	struct stage *ro;
	struct stage_entry x, y;
	uint8_t b[10];
	uint64_t bytes;

	assert_true(stage_empty(f->s));
	assert_int_equal(files(f), 0);
	fill(f);
	bytes = stage_bytes(f->s);
	assert_true(bytes > 0);
	for (int i = 0; i < 2; i++) {
		assert_false(stage_empty(f->s));
		is_filled(f->s);
		assert_int_equal(stage_bytes(f->s), bytes);
		assert_int_equal(stage_open(f->fd, true, &ro, NULL), 0);
		is_filled(ro);
		assert_int_equal(stage_mkdir(ro, "no", NULL), -EROFS);
		stage_close(ro);
		reopen(f);
	}
	/* versions */
	stage_find(f->s, "v/0.0", &x, NULL);
	assert_int_equal(stage_read(f->s, "v/0.0", &x, 0, b, 2, NULL), -EIO);
	put(f, "v/0.0", "c");
	stage_find(f->s, "v/0.0", &y, NULL);
	assert_true(x.version != y.version);
	assert_true(y.generation > x.generation);
	assert_int_equal(stage_read(f->s, "v/0.0", &x, 0, b, 1, NULL), -ESTALE);
	assert_int_equal(stage_read(f->s, "v/0.0", &y, 0, b, 1, NULL), 0);
	/* what cannot be */
	assert_int_equal(stage_put(f->s, "", b, 1, NULL), -EINVAL);
	assert_int_equal(stage_put(f->s, "a//b", b, 1, NULL), -EINVAL);
	assert_int_equal(stage_put(f->s, "../b", b, 1, NULL), -EINVAL);
	assert_int_equal(stage_move(f->s, "none", "b", false, NULL), -ENOENT);
	assert_int_equal(stage_move(f->s, "v/0.0", "v/0.0", false, NULL), -EINVAL);
	assert_int_equal(stage_move(f->s, "v/0.0", "v/0.0/x", false, NULL), -EINVAL);
	assert_int_equal(stage_move(f->s, "v/0.0", "v", false, NULL), -EINVAL);
	assert_int_equal(stage_alias(f->s, "a", "/b", NULL), -EINVAL);
	assert_string_equal(at(f->s, "a"), "nothing");
	assert_int_equal(stage_sync(f->s, NULL), 0);
	assert_int_equal(stage_sync(f->s, NULL), 0);
}

static void test_large(void **state)
{
	struct fx *f = *state;
	size_t len = (size_t)5 << 20;
	uint8_t *data = malloc(len), *room = malloc(len);
	struct stage_entry x;
	struct err e = ERR_INIT;
	char path[100];
	int fd;

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 11 + i / 253);
	assert_int_equal(stage_put(f->s, "mem", data, len, &e), 0);
	(void)snprintf(path, sizeof(path), "%s/file", f->dir);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	assert_int_equal(stage_put_file(f->s, "file", fd, len, &e), 0);
	assert_true(stage_put_file(f->s, "short", fd, len + 1, &e) < 0);
	assert_string_equal(at(f->s, "short"), "nothing");
	(void)close(fd);
	put(f, "after", "x");
	for (int i = 0; i < 4; i++) {
		const char *key = i % 2 ? "mem" : "file";

		stage_find(f->s, key, &x, NULL);
		assert_int_equal(x.len, len);
		memset(room, 0, len);
		assert_int_equal(stage_read(f->s, key, &x, 0, room, len, &e), 0);
		assert_memory_equal(room, data, len);
		assert_int_equal(stage_read(f->s, key, &x, 1234567, room, 100, &e), 0);
		assert_memory_equal(room, data + 1234567, 100);
		if (i == 1)
			reopen(f);
	}
	assert_string_equal(at(f->s, "after"), "x");
	free(data);
	free(room);
}

/* ---- a key that is written while it is read ---- */

enum { SHORT = 60, LONG = 100, FROM = 50 };

struct rewriting {
	struct stage *s;
	atomic_bool stop;
};

/* rewrite - give a key 60 bytes 's' and 100 bytes 'l' in turn. */
static void *rewrite(void *arg)
{
	struct rewriting *r = arg;
	uint8_t b[LONG];

	for (size_t len = SHORT; !atomic_load(&r->stop); len = SHORT + LONG - len) {
		memset(b, len == SHORT ? 's' : 'l', len);
		assert_int_equal(stage_put(r->s, "k", b, len, NULL), 0);
	}
	return NULL;
}

/* A read that ends with its file has the end of the version that its bytes come from. */
static void test_clipped_while_staged(void **state)
{
	struct fx *f = *state;
	struct rewriting r = {.s = f->s};
	struct store base = {0}, *st;
	pthread_t thread;
	int failed = 0, torn = 0;

	put(f, "k", "");
	assert_int_equal(stage_store(f->s, UINT64_MAX, &base, &st, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, rewrite, &r), 0);
	for (int i = 0; i < 20000; i++) {
		uint8_t b[2 * LONG];
		struct store_io io = {.off = FROM, .len = sizeof(b), .to = b, .clip = true};

		failed += store_read_io(st, "k", &io, NULL) != 0;
		torn += io.len > 0 && io.len != (b[0] == 's' ? SHORT : LONG) - FROM;
	}
	atomic_store(&r.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	store_close(st);
	assert_int_equal(failed, 0);
	assert_int_equal(torn, 0);
}

/* ---- generations ---- */

static int retire(struct fx *f, const char *key)
{
	struct buf left;
	int rc;

	buf_init(&left, 100);
	if (key)
		buf_put(&left, key, strlen(key) + 1);
	rc = stage_retire(f->s, &left, NULL);
	buf_release(&left);
	return rc;
}

/* temporary names leave nothing behind; but what an earlier generation has may come into the
 * dataset with it */
static void test_bare(void **state)
{
	struct fx *f = *state;
	uint64_t g;

	for (int i = 0; i < 3; i++) {
		put(f, "tmp", "x");
		assert_int_equal(stage_move(f->s, "tmp", "a", true, NULL), 0);
		put(f, "tmp2", "x");
		assert_int_equal(stage_gone(f->s, "tmp2", true, NULL), 0);
		assert_string_equal(keys(f->s, UINT64_MAX), "a:");
		assert_string_equal(at(f->s, "tmp"), "nothing");
		if (i)
			reopen(f);
	}
	put(f, "b", "1");
	put(f, "c", "1");
	put(f, "d", "1");
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	put(f, "c", "2");
	assert_int_equal(stage_move(f->s, "b", "e", true, NULL), 0);
	assert_int_equal(stage_gone(f->s, "c", true, NULL), 0);
	assert_int_equal(stage_gone(f->s, "d", true, NULL), 0);
	assert_int_equal(retire(f, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(keys(f->s, UINT64_MAX), "b- c- d- e:");
		assert_string_equal(at(f->s, "e"), "1");
		reopen(f);
	}
	/* and a name that the log removed before is hidden still */
	put(f, "c", "3");
	assert_int_equal(stage_gone(f->s, "c", true, NULL), 0);
	assert_string_equal(keys(f->s, UINT64_MAX), "b- c- d- e:");
	reopen(f);
	assert_string_equal(keys(f->s, UINT64_MAX), "b- c- d- e:");
}

/* entries that were written and removed again leave no log */
static void test_nothing_left(void **state)
{
	struct fx *f = *state;
	uint64_t g;

	put(f, "tmp", "refused");
	assert_int_equal(stage_gone(f->s, "tmp", true, NULL), 0);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	assert_int_equal(retire(f, NULL), 0);
	assert_true(stage_empty(f->s));
	assert_int_equal(faccessat(f->fd, "log.1", F_OK, 0), -1);
	reopen(f);
	assert_int_equal(stage_freeze(f->s, &g, NULL), -ENODATA);
}

static void test_generations(void **state)
{
	struct fx *f = *state;
	struct stage *ro;
	uint64_t g, h;

	assert_int_equal(stage_freeze(f->s, &g, NULL), -ENODATA);
	put(f, "a", "1");
	put(f, "b", "1");
	put(f, "tmp", "left");
	put(f, "tmp2", "moved on");
	assert_int_equal(stage_gone(f->s, "d", false, NULL), 0);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	assert_int_equal(stage_freeze(f->s, &h, NULL), -EBUSY);
	put(f, "a", "2");
	put(f, "c", "2");
	put(f, "d/x", "2");
	assert_int_equal(stage_move(f->s, "tmp2", "e", false, NULL), 0);
	/* who commits sees the old ones, here and elsewhere */
	assert_string_equal(keys(f->s, g), "a: b: d- tmp: tmp2:");
	assert_int_equal(stage_open(f->fd, true, &ro, NULL), 0);
	assert_string_equal(keys(ro, g), "a: b: d- tmp: tmp2:");
	assert_string_equal(keys(ro, UINT64_MAX), "a: b: c: d- d/x: e: tmp: tmp2-");
	stage_close(ro);
	assert_int_equal(retire(f, "tmp"), 0);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(keys(f->s, UINT64_MAX), "a: c: d/x: e: tmp: tmp2-");
		assert_string_equal(at(f->s, "a"), "2");
		assert_string_equal(at(f->s, "b"), "nothing");
		assert_string_equal(at(f->s, "d"), "/");
		assert_string_equal(at(f->s, "d/y"), "nothing");
		assert_string_equal(at(f->s, "e"), "moved on");
		assert_string_equal(at(f->s, "tmp"), "left");
		assert_int_equal(files(f), 1);
		if (!i) {
			assert_true(stage_left_bytes(f->s) > 0);
			reopen(f);
		}
	}
	/* a commit that fails, then one that does not */
	assert_int_equal(stage_freeze(f->s, &h, NULL), 0);
	assert_true(h > g);
	stage_thaw(f->s);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	assert_int_equal(g, h);
	put(f, "tmp", "younger");
	stage_thaw(f->s);
	assert_int_equal(files(f), 2);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	assert_true(g > h);
	assert_int_equal(retire(f, "tmp"), 0);
	assert_string_equal(keys(f->s, UINT64_MAX), "tmp:");
	assert_string_equal(at(f->s, "tmp"), "younger");
	/* only entries that were left: nothing to commit */
	assert_int_equal(stage_freeze(f->s, &g, NULL), -ENODATA);
	reopen(f);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	/* all is left: nothing is copied */
	assert_int_equal(retire(f, "tmp"), 0);
	assert_string_equal(at(f->s, "tmp"), "younger");
	assert_true(stage_left_bytes(f->s) > 0);
	assert_int_equal(stage_freeze(f->s, &g, NULL), -ENODATA);
	/* unless a commit of them is requested */
	stage_touch(f->s);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	assert_int_equal(retire(f, "tmp"), 0);
	assert_string_equal(at(f->s, "tmp"), "younger");
	assert_int_equal(stage_gone(f->s, "tmp", false, NULL), 0);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	assert_int_equal(retire(f, "tmp"), 0);
	assert_true(stage_empty(f->s));
	assert_int_equal(stage_bytes(f->s), 0);
	assert_int_equal(files(f), 0);
}

/* commits that fail while others write do not make a file each: the next one that succeeds removes
 * theirs */
static void test_thaw(void **state)
{
	struct fx *f = *state;
	uint64_t g;

	for (int i = 0; i < 10; i++) {
		char key[20];

		(void)snprintf(key, sizeof(key), "k%d", i);
		put(f, key, key);
		assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
		stage_thaw(f->s);
	}
	assert_int_equal(files(f), 1);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	assert_string_equal(keys(f->s, g), "k0: k1: k2: k3: k4: k5: k6: k7: k8: k9:");
	assert_int_equal(retire(f, NULL), 0);
	assert_int_equal(files(f), 0);
}

/* ---- what goes wrong ---- */

static char *log_path(struct fx *f, unsigned generation)
{
	static char path[100];

	(void)snprintf(path, sizeof(path), "%s/log.%u", f->dir, generation);
	return path;
}

static uint64_t log_size(struct fx *f, unsigned generation)
{
	struct stat st;

	assert_int_equal(stat(log_path(f, generation), &st), 0);
	return (uint64_t)st.st_size;
}

/* a disk that is full in the middle of a record */
static void test_full(void **state)
{
	struct fx *f = *state;
	uint8_t *data = calloc(1, 1 << 20);
	struct rlimit was, now;
	struct err e = ERR_INIT;
	uint64_t size;

	put(f, "a", "1");
	size = log_size(f, 1);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	(void)signal(SIGXFSZ, SIG_IGN);
	for (rlim_t room = 0; room < 400; room += 13) {
		now = was;
		now.rlim_cur = size + room;
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
		assert_int_equal(stage_put(f->s, "large", data, 1 << 20, &e), -EFBIG);
		assert_int_equal(stage_put(f->s, "b", data, 1000, &e), -EFBIG);
		assert_string_equal(at(f->s, "large"), "nothing");
		assert_string_equal(at(f->s, "b"), "nothing");
		assert_int_equal(log_size(f, 1), size);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
		put(f, "c", "after");
		size = log_size(f, 1);
	}
	free(data);
	reopen(f);
	assert_string_equal(keys(f->s, UINT64_MAX), "a: c:");
}

static uint8_t *read_log(struct fx *f, unsigned generation, size_t *ret)
{
	FILE *p = fopen(log_path(f, generation), "rb");
	uint8_t *b;

	*ret = (size_t)log_size(f, generation);
	b = malloc(*ret + 1);
	assert_non_null(p);
	assert_int_equal(fread(b, 1, *ret, p), *ret);
	(void)fclose(p);
	return b;
}

static void write_log(struct fx *f, unsigned generation, const uint8_t *b, size_t n)
{
	FILE *p = fopen(log_path(f, generation), "wb");

	assert_non_null(p);
	assert_int_equal(fwrite(b, 1, n, p), n);
	(void)fclose(p);
}

/* a log that got its length and no content before the power failed holds nothing; one with content
 * after a missing head is damaged */
static void test_never_written(void **state)
{
	struct fx *f = *state;
	uint8_t *b = calloc(1, 9000);

	assert_non_null(b);
	stage_close(f->s);
	f->s = NULL;
	write_log(f, 1, b, 9000);
	reopen(f);
	assert_string_equal(keys(f->s, UINT64_MAX), "");
	stage_close(f->s);
	f->s = NULL;
	b[8999] = 1;
	write_log(f, 1, b, 9000);
	assert_int_equal(stage_open(f->fd, false, &f->s, NULL), -EBADMSG);
	free(b);
}

/* what the disk did not take: each fdatasync fails as long as this is set */
static bool syncs_fail;
static unsigned syncs;
static void (*during_sync)(void); /* called once, before it fails */

int fdatasync(int fd)
{
	void (*then)(void) = during_sync;

	syncs++;
	during_sync = NULL;
	if (then) {
		then();
		errno = EIO;
		return -1;
	}
	if (syncs_fail) {
		errno = EIO;
		return -1;
	}
	return fsync(fd);
}

/* SEMANTICS E26
 * a sync that failed: Linux gives the error once. The log keeps it, so that no later sync confirms
 * what may not be on the disk; what a commit leaves goes to the next log, and is synced there. */
static void test_failed_sync(void **state)
{
	struct fx *f = *state;
	struct err e = ERR_INIT;
	uint64_t g;

	put(f, "a", "one");
	syncs_fail = true;
	assert_int_equal(stage_sync(f->s, &e), -EIO);
	syncs_fail = false;
	assert_int_equal(stage_sync(f->s, &e), -EIO);
	assert_non_null(strstr(e.msg, "an earlier sync failed"));
	put(f, "b", "two");
	assert_int_equal(stage_sync(f->s, &e), -EIO);
	/* it cannot be left in the log that failed */
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	put(f, "c", "three");
	syncs_fail = true;
	assert_int_equal(retire(f, "a"), -EIO);
	assert_int_equal(files(f), 2);
	syncs_fail = false;
	assert_int_equal(retire(f, "a"), -EIO);
	assert_int_equal(files(f), 2);
	stage_thaw(f->s);
	put(f, "d", "four");
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	put(f, "e", "five");
	assert_int_equal(retire(f, "a"), 0);
	assert_int_equal(stage_sync(f->s, NULL), 0);
	reopen(f);
	assert_string_equal(keys(f->s, UINT64_MAX), "a: e:");
}

/* every length to which a log can be cut: whole records are kept, and writing can continue */
static void test_torn(void **state)
{
	struct fx *f = *state;
	char before[12][400];
	uint64_t ends[12];
	size_t n, count = 0;
	uint8_t *b;

	for (int i = 0; i < 10; i++) {
		char key[20];

		(void)snprintf(key, sizeof(key), "key%d", i);
		put(f, key, "some content");
		ends[count] = log_size(f, 1);
		(void)snprintf(before[count++], 400, "%s", keys(f->s, UINT64_MAX));
	}
	stage_close(f->s);
	f->s = NULL;
	b = read_log(f, 1, &n);
	for (size_t cut = 0; cut < n; cut++) {
		const char *want = "";

		write_log(f, 1, b, cut);
		for (size_t i = 0; i < count; i++)
			if (ends[i] <= cut)
				want = before[i];
		reopen(f);
		assert_string_equal(keys(f->s, UINT64_MAX), want);
		if (cut % 7 == 0) {
			put(f, "more", "x");
			reopen(f);
			assert_string_equal(at(f->s, "more"), "x");
		}
		stage_close(f->s);
		f->s = NULL;
		assert_int_equal(system("true"), 0);
		for (unsigned g = 2; g < 5; g++)
			(void)unlink(log_path(f, g));
	}
	/* an end of zeros, as a file has that grew before its content was on the disk */
	memset(b + ends[8], 0, n - ends[8]);
	write_log(f, 1, b, n);
	reopen(f);
	assert_string_equal(keys(f->s, UINT64_MAX), before[8]);
	free(b);
}

/* every byte that can be damaged: in the last record its end, before it an error */
static void test_damaged(void **state)
{
	struct fx *f = *state;
	struct err e;
	uint64_t last;
	uint8_t *b;
	size_t n;

	put(f, "first", "one");
	put(f, "second", "two");
	last = log_size(f, 1);
	put(f, "third", "three");
	stage_close(f->s);
	f->s = NULL;
	b = read_log(f, 1, &n);
	for (size_t i = 0; i < n; i++) {
		struct stage *s = NULL;
		int rc;

		b[i] ^= 0x41;
		write_log(f, 1, b, n);
		b[i] ^= 0x41;
		e = (struct err)ERR_INIT;
		rc = stage_open(f->fd, false, &s, &e);
		if (i < last) {
			if (rc != -EBADMSG)
				fail_msg("damage at %zu: %d", i, rc);
			assert_non_null(strstr(e.msg, "log.1"));
			assert_non_null(strstr(e.msg, "offset"));
		} else {
			assert_int_equal(rc, 0);
			assert_string_equal(keys(s, UINT64_MAX), "first: second:");
		}
		stage_close(s);
	}
	free(b);
}

/* SEMANTICS W3
 * after another start of the machine, records that were never synced may be missing in the middle;
 * those that were synced may not */
static void test_power(void **state)
{
	struct fx *f = *state;
	uint64_t first, synced;
	uint8_t *b;
	size_t n;

	put(f, "first", "one");
	first = log_size(f, 1);
	put(f, "second", "two");
	assert_int_equal(stage_sync(f->s, NULL), 0);
	synced = log_size(f, 1);
	put(f, "third", "three");
	put(f, "fourth", "four");
	stage_close(f->s);
	f->s = NULL;
	b = read_log(f, 1, &n);
	for (int other = 0; other < 2; other++) {
		uint32_t sum = codec_crc32c_sum(0, b, 44);
		struct stage *s = NULL;

		for (int i = 0; i < 4; i++)
			b[44 + i] = (uint8_t)(sum >> 8 * i);
		b[synced + 1] ^= 1;
		write_log(f, 1, b, n);
		assert_int_equal(stage_open(f->fd, true, &s, NULL), other ? 0 : -EBADMSG);
		if (other)
			assert_string_equal(keys(s, UINT64_MAX), "first: second:");
		stage_close(s);
		b[synced + 1] ^= 1;
		b[first + 1] ^= 1;
		write_log(f, 1, b, n);
		assert_int_equal(stage_open(f->fd, true, &s, NULL), -EBADMSG);
		b[first + 1] ^= 1;
		b[24] ^= 1; /* the boot */
	}
	free(b);
}

static uint64_t random_state = 88172645463325252U;

static uint64_t rnd(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

/* logs with damage of all kinds: no crash, and no content that was never written */
static void test_hostile(void **state)
{
	struct fx *f = *state;
	uint8_t *b, *c;
	size_t n;

	fill(f);
	assert_int_equal(stage_sync(f->s, NULL), 0);
	fill(f);
	stage_close(f->s);
	f->s = NULL;
	b = read_log(f, 1, &n);
	c = malloc(2 * n);
	for (int i = 0; i < 3000; i++) {
		size_t len = n, times = 1 + rnd(4);
		struct stage *s = NULL;
		struct err e = ERR_INIT;

		memcpy(c, b, n);
		for (size_t k = 0; k < times; k++) {
			size_t x = rnd(len), y = rnd(len), m = rnd(len - (x > y ? x : y));

			switch (rnd(4)) {
			case 0:
				c[x] = (uint8_t)rnd(256);
				break;
			case 1:
				memmove(c + x, c + y, m);
				break;
			case 2:
				memset(c + x, (int)rnd(2) * 255, m);
				break;
			default:
				len = len - rnd(len / 2);
			}
		}
		write_log(f, 1, c, len);
		if (stage_open(f->fd, rnd(2), &s, &e) == 0) {
			const char *t = at(s, "v/0.0");

			assert_true(!strcmp(t, "a") || !strcmp(t, "b") ||
				    !strcmp(t, "nothing") || !strcmp(t, "-5"));
			(void)keys(s, UINT64_MAX);
		}
		stage_close(s);
		for (unsigned g = 2; g < 4; g++)
			(void)unlink(log_path(f, g));
	}
	free(b);
	free(c);
	(void)unlink(log_path(f, 1));
}

/* bytes of a user that look like a record, behind a record that was torn */
static void test_mimicry(void **state)
{
	struct fx *f = *state;
	struct err e = ERR_INIT;
	uint8_t *b;
	size_t n;

	put(f, "a", "1");
	put(f, "evil", "2");
	b = read_log(f, 1, &n);
	put(f, "tmp", "x");
	assert_int_equal(stage_put(f->s, "copy", b, n, &e), 0);
	stage_close(f->s);
	f->s = NULL;
	/* the record "tmp" and the head of "copy" are damaged: their contents are no log */
	free(b);
	b = read_log(f, 1, &n);
	memset(b + 48 + 2 * 41 + 5 + 1, 0, 90);
	write_log(f, 1, b, n);
	reopen(f);
	assert_string_equal(keys(f->s, UINT64_MAX), "a: evil:");
	free(b);
}

/* SEMANTICS W3
 * What a commit leaves goes to the next log. That log is synced if its caller was promised that the
 * removed one is on the disk, by this process or by an earlier one, and not otherwise: it may have
 * the bytes of many chunks by then. */
static void test_left_durable(void **state)
{
	static const struct {
		bool synced, older;
		unsigned want;
	} cases[] = {{false, false, 0}, {true, false, 1}, {false, true, 1}};
	struct fx *f = *state;
	uint64_t g;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		put(f, "left", "1");
		put(f, "in", "2");
		if (cases[i].synced)
			assert_int_equal(stage_sync(f->s, NULL), 0);
		if (cases[i].older)
			reopen(f);
		assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
		put(f, "next", "3");
		syncs = 0;
		assert_int_equal(retire(f, "left"), 0);
		assert_int_equal(syncs, cases[i].want);
		assert_non_null(f->s->retired); /* its space is not released yet */
		stage_sweep(f->s);
		assert_null(f->s->retired);
		assert_int_equal(stage_drop(f->s, NULL, NULL), 0);
		stage_sweep(f->s);
	}
}

/* SEMANTICS E26
 * A log that lost its end when its sync failed is not removed: the commit did not read all
 * of it. */
static void test_lost_end(void **state)
{
	struct fx *f = *state;
	uint64_t g, first;
	struct err e = ERR_INIT;

	put(f, "first", "1");
	first = log_size(f, 1);
	put(f, "second", "2");
	syncs_fail = true;
	assert_int_equal(stage_sync(f->s, NULL), -EIO);
	syncs_fail = false;
	assert_int_equal(truncate(log_path(f, 1), (off_t)first), 0);
	assert_int_equal(stage_freeze(f->s, &g, NULL), 0);
	assert_int_equal(stage_retire(f->s, NULL, &e), -EIO);
	assert_non_null(strstr(e.msg, "is incomplete"));
	assert_int_equal(files(f), 1);
}

static struct fx *g_fx;
static int g_other;

/* try_other - whether another sync of the log could run beside this one. */
static void try_other(void)
{
	g_other = pthread_mutex_trylock(&g_fx->s->logs->sync);
}

/* SEMANTICS E26
 * No sync of a log runs next to one that fails: it would succeed, and confirm lost data. */
static void test_two_syncs(void **state)
{
	g_fx = *state;
	put(g_fx, "a", "one");
	during_sync = try_other;
	assert_int_equal(stage_sync(g_fx->s, NULL), -EIO);
	assert_int_equal(g_other, EBUSY);
	assert_int_equal(stage_sync(g_fx->s, NULL), -EIO);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_keys),    TEST(test_large),   TEST(test_generations),
		TEST(test_clipped_while_staged),
		TEST(test_thaw),    TEST(test_full),    TEST(test_torn),
		TEST(test_damaged), TEST(test_hostile), TEST(test_mimicry),
		TEST(test_power),   TEST(test_bare),    TEST(test_nothing_left),
		TEST(test_failed_sync), TEST(test_never_written),
		TEST(test_lost_end), TEST(test_two_syncs), TEST(test_left_durable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
