/* SPDX-License-Identifier: BSD-3-Clause */
/* The Zarr view over a dataset built by hand: every file that is listed can be found, has the
 * size it says and is what it should be; nothing else can be found.
 * With NCZARRFS_DUMP=DIR set the trees are also written to DIR, for a look with other readers. */
#include "base/core/clock.h"
#include "base/os/cancel.h"
#include "nczarr/nczarr.h"
#include "tests/unit/nczarr/view/nczarr_sample.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint8_t room[1000]; /* a reader's memory */

static struct view *open_with(struct source *s, struct zarr_view_options opts)
{
	struct err e = ERR_INIT;
	struct view *v = NULL;

	opts.policy.filter = PLAN_PORTABLE;
	opts.io.cache_bytes = 1 << 20;
	opts.max_meta_bytes = 1 << 20;
	assert_int_equal(zarr_view_open(s, &opts, &v, &e), 0);
	assert_non_null(v);
	return v;
}

static struct view *open_view(struct source *s, enum zarr_mode mode, bool nested)
{
	return open_with(s, (struct zarr_view_options){.mode = mode, .nested = nested});
}

/* slurp - all bytes of a file, asked for in pieces. */
static size_t slurp(struct view *v, uint64_t id, uint8_t *out, size_t cap)
{
	struct span span;
	struct err e = ERR_INIT;
	size_t at = 0, got;

	do {
		if (v->ops->read(v, id, 0, at, 1000, room, &span, &e))
			fail_msg("%s", e.msg);
		got = span.len + span.zeros;
		assert_true(got <= 1000 && at + got <= cap);
		if (span.mem)
			memcpy(out + at, span.mem, span.len);
		else if (span.len)
			assert_int_equal(pread(span.fd, out + at, span.len, (off_t)span.off),
					 span.len);
		memset(out + at + span.len, 0, span.zeros);
		span_done(&span);
		at += got;
	} while (got > 0);
	return at;
}

static void dump(const char *path, bool is_dir, const uint8_t *data, size_t len)
{
	const char *dir = getenv("NCZARRFS_DUMP");
	char full[1024];
	FILE *f;

	if (!dir)
		return;
	(void)snprintf(full, sizeof(full), "%s/%s", dir, path);
	if (is_dir) {
		assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
		return;
	}
	f = fopen(full, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

/* one - catches a single entry of a listing. */
struct one {
	char name[256];
	uint64_t id, next;
	bool is_dir, found, has_attr;
	struct view_attr attr;
};

static bool take_one(void *arg, const char *name, uint64_t id, bool is_dir,
		     const struct view_attr *attr, uint64_t next)
{
	struct one *o = arg;

	*o = (struct one){.id = id,
			  .next = next,
			  .is_dir = is_dir,
			  .found = true,
			  .has_attr = attr != NULL};
	if (attr)
		o->attr = *attr;
	(void)snprintf(o->name, sizeof(o->name), "%s", name);
	return false;
}

static void same_attr(const struct view_attr *a, const struct view_attr *b)
{
	assert_int_equal(a->id, b->id);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->nlink, b->nlink);
	assert_int_equal(a->is_dir, b->is_dir);
}

/* walk - everything below dir; returns the number of files. */
static size_t walk(struct view *v, uint64_t dir, const char *path)
{
	size_t files = 0;
	uint64_t cookie = 0;
	struct err e = ERR_INIT;

	dump(path, true, NULL, 0);
	for (;;) {
		static uint8_t data[1 << 16];
		struct one o = {.found = false};
		struct view_attr at, by_name;
		char below[512];

		assert_int_equal(v->ops->list(v, dir, cookie, cookie % 2, take_one, &o, &e), 0);
		if (!o.found)
			return files;
		cookie = o.next;
		(void)snprintf(below, sizeof(below), "%s/%s", path, o.name);
		if (strstr(below, "bad/") && !strstr(below, "/.z") && !o.is_dir &&
		    !strstr(below, ".json")) {
			struct span none;

			/* shown, so that nobody takes it for absent; reading it is the error */
			assert_int_equal(v->ops->getattr(v, o.id, &at, &e), 0);
			assert_true(at.unknown && at.size > 0);
			assert_int_equal(v->ops->read(v, o.id, 0, 0, 10, room, &none, &e),
					 -EOPNOTSUPP);
			continue;
		}
		assert_int_equal(v->ops->getattr(v, o.id, &at, &e), 0);
		assert_int_equal(at.id, o.id);
		assert_int_equal(at.is_dir, o.is_dir);
		assert_int_equal(v->ops->lookup(v, dir, o.name, strlen(o.name), &by_name, &e),
				 0);
		same_attr(&by_name, &at);
		if (o.has_attr)
			same_attr(&o.attr, &at);
		assert_true(o.id > VIEW_ROOT && o.id < VIEW_ID_LIMIT);
		if (o.is_dir) {
			assert_int_equal(v->ops->parent(v, o.id), dir);
			files += walk(v, o.id, below);
			continue;
		}
		assert_int_equal(slurp(v, o.id, data, sizeof(data)), at.size);
		dump(below, false, data, at.size);
		files++;
	}
}

static struct view_attr find(struct view *v, const char *path)
{
	struct view_attr at = {.id = VIEW_ROOT};
	struct err e = ERR_INIT;

	while (*path) {
		size_t n = strcspn(path, "/");

		assert_int_equal(v->ops->lookup(v, at.id, path, n, &at, &e), 0);
		path += n + (path[n] == '/');
	}
	return at;
}

static int look(struct view *v, const char *dir, const char *name)
{
	struct view_attr at;
	struct err e = ERR_INIT;

	return v->ops->lookup(v, find(v, dir).id, name, strlen(name), &at, &e);
}

static void test_walk(void **state)
{
	static const struct {
		const char *name;
		enum zarr_mode mode;
		bool nested;
		size_t files;
	} trees[] = {{"zarr", ZARR_PURE, false, 75},
		     {"nczarr", ZARR_NCZARR, false, 55},
		     {"noxarray", ZARR_NOXARRAY, false, 75},
		     {"nested", ZARR_PURE, true, 75},
		     {"nczarr-nested", ZARR_NCZARR, true, 55}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
		struct source *s = sample_new();
		struct view *v = open_view(s, trees[i].mode, trees[i].nested);

		assert_int_equal(walk(v, VIEW_ROOT, trees[i].name), trees[i].files);
		v->ops->close(v);
		source_close(s);
	}
}

static void test_names(void **state)
{
	struct source *s = sample_new();
	struct view *v = open_view(s, ZARR_PURE, false);
	static const char *const not_keys[] = {
		"0.00", "00.0", "0.0.0", "0",   "0.",    ".0",      "0.2",        "2.0", "+0.0",
		"-1.0", "0.0 ", " 0.0",  "0/0", "0x0.0", ".zgroup", ".zmetadata", ""};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(not_keys); i++)
		assert_int_equal(look(v, "i", not_keys[i]), -ENOENT);
	assert_int_equal(look(v, "i", "0.0"), 0);
	assert_int_equal(look(v, "i", "1.1"), -ENOENT); /* never written, fill value declared */
	assert_int_equal(look(v, "big", "1"), 0);       /* never written, but presented */
	assert_int_equal(look(v, "sc", "0"), 0);
	assert_int_equal(look(v, "sc", "0.0"), -ENOENT);
	assert_int_equal(look(v, "empty", "0.0"), -ENOENT);
	assert_int_equal(look(v, "bad", "0"), 0); /* reading it is the error */
	assert_int_equal(look(v, "bad", "2"), -ENOENT);
	assert_int_equal(look(v, "bad", ".zarray"), 0);
	assert_int_equal(look(v, "", "huge"), -ENOENT);
	assert_int_equal(look(v, "", "ii"), -ENOENT);
	assert_int_equal(look(v, "", "I"), -ENOENT);
	assert_int_equal(look(v, "", "g2"), -ENOENT);
	assert_int_equal(look(v, "g1", ".zmetadata"), -ENOENT);
	assert_int_equal(look(v, "g1/g2", S_DEEP_NAME), 0);
	assert_int_equal(v->ops->plan(v, S_HUGE)->kind, PLAN_HIDE);
	assert_true(strlen(v->ops->plan(v, S_HUGE)->reason) > 0);
	v->ops->close(v);
	source_close(s);
}

static void test_nested(void **state)
{
	struct source *s = sample_new();
	struct view *v = open_view(s, ZARR_PURE, true);

	(void)state;
	assert_int_equal(look(v, "f", "2"), 0);
	assert_int_equal(look(v, "f", "3"), -ENOENT);
	assert_int_equal(look(v, "f", "0.0.0"), -ENOENT);
	assert_int_equal(look(v, "f/2", "1"), 0);
	assert_int_equal(look(v, "f/2", "01"), -ENOENT);
	assert_int_equal(look(v, "f/2", ".zarray"), -ENOENT);
	assert_int_equal(look(v, "f/2/1", "0"), 0);
	assert_int_equal(look(v, "f/2/1", "1"), -ENOENT);
	assert_int_equal(look(v, "f/2/1/0", "0"), -ENOTDIR);
	assert_int_equal(look(v, "i/1", "1"), -ENOENT); /* the directory is there */
	assert_int_equal(look(v, "sc", "0"), 0);
	assert_int_equal(find(v, "f").nlink, 2 + 3);
	assert_int_equal(find(v, "f/2").nlink, 2 + 2);
	assert_int_equal(find(v, "f/2/1").nlink, 2);
	v->ops->close(v);
	source_close(s);
}

/* test_v3 - the whole tree in each form of its keys. Of 18 arrays that are shown 17 are the same in
 * number of chunks as in Zarr v2; the fill value is always stated, so that no chunk that was never
 * written is there. */
static void test_v3(void **state)
{
	static const struct {
		const char *name;
		bool nested, v2_keys;
		uint64_t shard;
	} trees[] = {{"v3", true, false, 0},           {"v3-dots", false, false, 0},
		     {"v3-v2", false, true, 0},        {"v3-v2-nested", true, true, 0},
		     {"v3-shards", true, false, 4096}, {"v3-shards-dots", false, false, 4096}};
	size_t files[ARRAY_LEN(trees)];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(trees); i++) {
		const struct zarr_view_options opts = {.format = 3,
						       .nested = trees[i].nested,
						       .v2_keys = trees[i].v2_keys,
						       .shard_bytes = trees[i].shard,
						       /* huge has 2^48 shards */
						       .id_limit = 1 << 20};
		struct source *s = sample_new();
		struct view *v = open_with(s, opts);

		files[i] = walk(v, VIEW_ROOT, trees[i].name);
		v->ops->close(v);
		source_close(s);
	}
	assert_true(files[0] > files[4]);
	assert_int_equal(files[1], files[0]);
	assert_int_equal(files[2], files[0]);
	assert_int_equal(files[3], files[0]);
	assert_int_equal(files[5], files[4]);
}

static void test_v3_names(void **state)
{
	struct source *s = sample_new();
	struct view *v = open_with(s, (struct zarr_view_options){.format = 3, .nested = true});
	static const char *const not_here[] = {"0",       "0.0",     "c.0.0",   "C", "c0",
					       ".zarray", ".zattrs", ".zgroup", ""};
	struct span span;
	struct err e = ERR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(not_here); i++)
		assert_int_equal(look(v, "i", not_here[i]), -ENOENT);
	assert_int_equal(look(v, "", ".zmetadata"), -ENOENT);
	assert_int_equal(look(v, "", "zarr.json"), 0);
	assert_int_equal(look(v, "g1", "zarr.json"), 0);
	assert_int_equal(look(v, "i", "zarr.json"), 0);
	assert_true(find(v, "i/c").is_dir);
	assert_int_equal(look(v, "i/c", "c"), -ENOENT);
	assert_int_equal(look(v, "i/c", "zarr.json"), -ENOENT);
	assert_int_equal(look(v, "i/c/1", "0"), 0);
	assert_int_equal(look(v, "i/c/1", "1"), -ENOENT); /* never written */
	assert_int_equal(look(v, "big/c", "1"), -ENOENT); /* neither, and that is stated */
	assert_int_equal(look(v, "empty", "c"), -ENOENT);
	assert_int_equal(find(v, "i/c").nlink, 2 + 2);
	assert_int_equal(find(v, "i").nlink, 2 + 1);
	/* a scalar's chunk is called as others' directory */
	assert_false(find(v, "sc/c").is_dir);
	assert_int_equal(find(v, "sc/c").size, 4);
	/* bytes of an element are one more dimension */
	assert_int_equal(look(v, "fs/c/1", "0"), 0);
	assert_int_equal(look(v, "fs/c/1", "1"), -ENOENT);
	assert_int_equal(find(v, "fs/c/1/0").size, 2 * 5);
	assert_int_equal(look(v, "c/c/0/0", "0"), -ENOTDIR);
	assert_int_equal(v->ops->parent(v, find(v, "f/c").id), find(v, "f").id);
	assert_int_equal(v->ops->parent(v, find(v, "f/c/2").id), find(v, "f/c").id);
	assert_int_equal(v->ops->read(v, find(v, "f/c").id, 0, 0, 1, room, &span, &e), -EISDIR);
	v->ops->close(v);

	v = open_with(s, (struct zarr_view_options){.format = 3});
	assert_int_equal(look(v, "i", "c.1.0"), 0);
	assert_int_equal(look(v, "i", "c.1.1"), -ENOENT);
	assert_int_equal(look(v, "i", "1.0"), -ENOENT);
	assert_int_equal(look(v, "i", "c.1.0.0"), -ENOENT);
	assert_int_equal(look(v, "sc", "c"), 0);
	assert_int_equal(look(v, "sc", "c."), -ENOENT);
	assert_int_equal(look(v, "fs", "c.1.0"), 0);
	v->ops->close(v);

	v = open_with(s, (struct zarr_view_options){.format = 3, .v2_keys = true});
	assert_int_equal(look(v, "i", "1.0"), 0);
	assert_int_equal(look(v, "sc", "0"), 0);
	assert_int_equal(look(v, "sc", "c"), -ENOENT);
	v->ops->close(v);
	source_close(s);
}

/* test_v3_shards - a shard is its chunks and an index of them. */
static void test_v3_shards(void **state)
{
	struct source *s = sample_new();
	struct view *v = open_with(
		s,
		(struct zarr_view_options){.format = 3, .nested = true, .shard_bytes = 4096});
	uint8_t data[512];
	struct view_attr at = find(v, "i/c/0/0");

	(void)state;
	/* four chunks of six int32, one of them never written; the index and its checksum */
	assert_int_equal(at.size, 3 * 24 + 4 * 16 + 4);
	assert_int_equal(slurp(v, at.id, data, sizeof(data)), at.size);
	assert_int_equal(data[3 * 24 + 16], 24); /* offset of the second chunk */
	assert_int_equal(data[3 * 24 + 48], 0xff);
	assert_int_equal(look(v, "i/c/0", "1"), -ENOENT);
	v->ops->close(v);
	source_close(s);
}

static void test_nczarr(void **state)
{
	static const uint32_t hidden[] = {S_H, S_CX, S_CMP, S_OP, S_VL, S_HUGE};
	struct source *s = sample_new();
	struct view *v = open_view(s, ZARR_NCZARR, false);
	uint8_t data[64];
	struct view_attr at;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
		assert_int_equal(look(v, "", s->ds.arrays[hidden[i]].name), -ENOENT);
		assert_int_equal(v->ops->plan(v, hidden[i])->kind, PLAN_HIDE);
	}
	/* texts are as wide as the longest: "four" */
	at = find(v, "s/0");
	assert_int_equal(at.size, 2 * 4);
	at = find(v, "s/1");
	assert_int_equal(slurp(v, at.id, data, sizeof(data)), 8);
	assert_memory_equal(data, "b\xc3\xa9\0four", 8);
	assert_int_equal(v->ops->plan(v, S_S)->fixed_size, 4);
	/* no chunk is longer than the array */
	at = find(v, "rec/0");
	assert_int_equal(at.size, 3 * 2);
	assert_int_equal(slurp(v, at.id, data, sizeof(data)), 6);
	assert_int_equal(data[2], (S_REC * 7 + 1) % 100);
	v->ops->close(v);
	source_close(s);
}

static void test_ids(void **state)
{
	struct source *s = sample_new();
	struct view *v = open_view(s, ZARR_PURE, true);
	struct view_attr at;
	struct span span;
	struct err e = ERR_INIT;
	struct one o;

	(void)state;
	assert_int_equal(v->ops->getattr(v, 0, &at, &e), -ESTALE);
	assert_int_equal(v->ops->getattr(v, VIEW_ID_LIMIT, &at, &e), -ESTALE);
	assert_int_equal(v->ops->getattr(v, UINT64_MAX, &at, &e), -ESTALE);
	assert_int_equal(v->ops->read(v, VIEW_ROOT, 0, 0, 1, room, &span, &e), -EISDIR);
	assert_int_equal(v->ops->list(v, find(v, ".zgroup").id, 0, false, take_one, &o, &e),
			 -ENOTDIR);
	o = (struct one){.found = false};
	assert_int_equal(v->ops->list(v, VIEW_ROOT, UINT64_MAX, false, take_one, &o, &e), 0);
	assert_int_equal(v->ops->list(v, find(v, "f").id, UINT64_MAX, false, take_one, &o, &e),
			 0);
	assert_int_equal(
		v->ops->list(v, find(v, "f/0").id, UINT64_MAX, false, take_one, &o, &e), 0);
	assert_int_equal(
		v->ops->list(v, find(v, "f/0/0").id, UINT64_MAX, true, take_one, &o, &e), 0);
	assert_false(o.found);
	assert_int_equal(v->ops->parent(v, VIEW_ROOT), VIEW_ROOT);
	v->ops->close(v);
	source_close(s);
}

static void test_limits(void **state)
{
	struct source *s = sample_new();
	struct zarr_view_options opts = {.io = {.cache_bytes = 1 << 20}, .max_meta_bytes = 300};
	struct err e = ERR_INIT;
	struct view_attr at;
	struct view *v;

	(void)state;
	assert_int_equal(zarr_view_open(s, &opts, &v, &e), 0);
	assert_int_equal(v->ops->lookup(v, VIEW_ROOT, ".zmetadata", 10, &at, &e), 0);
	assert_true(at.unknown);
	assert_int_equal(v->ops->lookup(v, VIEW_ROOT, ".zgroup", 7, &at, &e), 0);
	v->ops->close(v);
	source_close(s);
}

static void *first_touch(void *arg)
{
	struct view *v = arg;
	struct view_attr at;

	for (int i = 0; i < 50; i++) {
		if (v->ops->lookup(v, VIEW_ROOT, ".zmetadata", 10, &at, NULL) || at.size == 0)
			return v;
		if (v->ops->lookup(v, VIEW_ROOT, "s", 1, &at, NULL) ||
		    v->ops->lookup(v, at.id, "1", 1, &at, NULL) || at.size != 8)
			return v;
	}
	return NULL;
}

/* Late facts (.zmetadata, the width of texts) are found once, whoever asks first. */
static void test_threads(void **state)
{
	struct source *s = sample_new();
	struct view *v = open_view(s, ZARR_NCZARR, false);
	pthread_t threads[4];
	void *failed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, first_touch, v), 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	v->ops->close(v);
	source_close(s);
}

/* g_held - the reading of texts, which waits; not longer than a test that fails should take. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool inside, go;
} g_held = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int held_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		     struct err *e)
{
	int64_t until = clock_ns() + INT64_C(10000000000);

	pthread_mutex_lock(&g_held.lock);
	g_held.inside = true;
	pthread_cond_broadcast(&g_held.cond);
	while (!g_held.go && clock_ns() < until &&
	       cancel_wait(&g_held.cond, &g_held.lock) == 0)
		;
	pthread_mutex_unlock(&g_held.lock);
	return s_read_vlen(s, array, linear, out, e);
}

/* later - a read in another thread. */
struct later {
	struct view *v;
	uint64_t id;
	pthread_t thread;
	uint8_t byte;
	struct span span;
	int rc;
};

static void *read_later(void *arg)
{
	struct later *l = arg;

	l->rc = l->v->ops->read(l->v, l->id, 0, 0, 1, &l->byte, &l->span, NULL);
	return NULL;
}

/* id_in - of a file in a directory, by its listing, which reads nothing. */
static uint64_t id_in(struct view *v, uint64_t dir, const char *name)
{
	struct one o = {.next = 0};
	struct err e = ERR_INIT;

	do {
		o.found = false;
		assert_int_equal(v->ops->list(v, dir, o.next, false, take_one, &o, &e), 0);
		assert_true(o.found);
	} while (strcmp(o.name, name) != 0);
	return o.id;
}

static void given_up(struct view *v, uint64_t id, const char *words)
{
	struct err e = ERR_INIT;
	struct span span;
	struct cancel stop;

	cancel_begin(&stop);
	cancel_request(&stop);
	assert_int_equal(v->ops->read(v, id, 0, 0, 1, room, &span, &e), -EINTR);
	assert_string_equal(e.msg, words);
	cancel_end(&stop);
}

/* Who waits for another thread that measures texts, or makes the document of all metadata, can
 * give up. */
static void test_waits_end(void **state)
{
	static const struct {
		const char *dir, *name, *words;
	} cases[] = {{"s", ".zarray", "cancelled while measuring strings"},
		     {"", ".zmetadata", "cancelled while collecting the metadata"}};

	(void)state;
	cancel_cond_init(&g_held.cond);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct source *s = sample_new();
		struct source_ops ops = *s->ops;
		struct view *v = open_view(s, ZARR_NCZARR, false);
		struct later l = {.v = v};

		ops.read_vlen = held_vlen;
		s->ops = &ops;
		g_held.inside = g_held.go = false;
		l.id = id_in(v, find(v, cases[i].dir).id, cases[i].name);
		assert_int_equal(pthread_create(&l.thread, NULL, read_later, &l), 0);
		pthread_mutex_lock(&g_held.lock);
		while (!g_held.inside)
			pthread_cond_wait(&g_held.cond, &g_held.lock);
		pthread_mutex_unlock(&g_held.lock);
		given_up(v, l.id, cases[i].words);
		pthread_mutex_lock(&g_held.lock);
		g_held.go = true;
		pthread_cond_broadcast(&g_held.cond);
		pthread_mutex_unlock(&g_held.lock);
		assert_int_equal(pthread_join(l.thread, NULL), 0);
		assert_int_equal(l.rc, 0);
		span_done(&l.span);
		v->ops->close(v);
		source_close(s);
	}
}

/* A large document is made once for the pieces of a read: they are of the same bytes. */
static void test_large_document(void **state)
{
	static char text[100000];
	struct source *s = sample_new();
	struct ds_attr *at = s_alloc(&s->ds, 1, sizeof(*at));
	struct err e = ERR_INIT;
	struct span first, second;
	struct ds_text room_of;
	struct view_attr file;
	struct view *v;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	*at = s_text_attr("long", text, &room_of);
	s->ds.arrays[S_C].attrs = at;
	s->ds.arrays[S_C].n_attrs = 1;
	v = open_with(s, (struct zarr_view_options){.format = 3});
	file = find(v, "c/zarr.json");
	assert_true(file.size > sizeof(text));
	assert_int_equal(v->ops->read(v, file.id, 0, 0, 1000, room, &first, &e), 0);
	assert_int_equal(v->ops->read(v, file.id, 0, 1000, 1000, room, &second, &e), 0);
	assert_ptr_equal(second.mem, first.mem + 1000);
	span_done(&second);
	span_done(&first);
	v->ops->close(v);
	source_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk),      cmocka_unit_test(test_names),
		cmocka_unit_test(test_nested),    cmocka_unit_test(test_nczarr),
		cmocka_unit_test(test_ids),       cmocka_unit_test(test_limits),
		cmocka_unit_test(test_threads),   cmocka_unit_test(test_v3),
		cmocka_unit_test(test_v3_names),  cmocka_unit_test(test_v3_shards),
		cmocka_unit_test(test_waits_end), cmocka_unit_test(test_large_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
