/* SPDX-License-Identifier: BSD-3-Clause */
/* test_commit.c - commits: when they begin, what happens when they fail, and what
 * readers and writers notice of them. */
#include "tests/unit/translate/tree_fx.h"

#include <sched.h>

#include "translate/tree/tree_int.h"

static int put_zeros(struct fx *f, const char *path, size_t len)
{
	uint8_t *p = calloc(1, len);
	int rc = put(f, path, p, len);

	free(p);
	return rc;
}

static void restart(struct fx *f)
{
	stop(f);
	start(f);
}

/* fail_next - so many commits. */
static void fail_next(struct fx *f, int times, int code)
{
	atomic_store(&f->d.fail, code);
	atomic_store(&f->d.fail_times, times);
}

/* foreign - another program changes the dataset; the next reader looks. */
static void foreign(struct fx *f, const char *key, const char *t)
{
	(void)pthread_mutex_lock(&f->d.lock);
	data_text(&f->d, key, t);
	f->d.state++;
	(void)pthread_mutex_unlock(&f->d.lock);
	atomic_store(&tree_of(f->v)->polled_ms, 0);
}

static void wait_commits(struct fx *f, int n)
{
	while (atomic_load(&f->d.commits) < n)
		(void)sched_yield();
}

static void test_begins(void **state)
{
	struct fx *f = *state;

	/* after a while without a write */
	f->idle_ms = 1;
	restart(f);
	assert_int_equal(write_text(f, "v/a", "1"), 0);
	wait_commits(f, 1);
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/a", "1");
	assert_int_equal(atomic_load(&f->d.commits), 1);
	/* when half of what may be staged is */
	f->idle_ms = 3600000;
	restart(f);
	assert_int_equal(put_zeros(f, "v/b", 600000), 0);
	wait_commits(f, 2);
	/* what a mount before left */
	f->max_staged = 100 << 20;
	restart(f);
	assert_int_equal(write_text(f, "v/c", "3"), 0);
	restart(f);
	wait_commits(f, 3);
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/c", "3");
	assert_int_equal(atomic_load(&f->d.commits), 3);
	/* nothing to do */
	assert_int_equal(sync_dir(f), 0);
	assert_int_equal(atomic_load(&f->d.commits), 3);
}

static void test_fails(void **state)
{
	struct fx *f = *state;
	struct err e = ERR_INIT;

	assert_int_equal(write_text(f, "v/0.0", "new"), 0);
	fail_next(f, 1, -EIO);
	assert_int_equal(sync_dir(f), -EIO);
	assert_string_equal(text(f, "v/0.0"), "new");
	is(f, "v/0.0", "chunk");
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.0", "new");
	/* locked for a while */
	assert_int_equal(write_text(f, "v/0.0", "newer"), 0);
	fail_next(f, 2, -EAGAIN);
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.0", "newer");
	/* at the end */
	assert_int_equal(write_text(f, "v/0.0", "last"), 0);
	fail_next(f, 1, -ENOSPC);
	assert_int_equal(f->v->write->finish(f->v, true, &e), -ENOSPC);
	assert_non_null(strstr(e.msg, f->dir));
	restart(f);
	assert_string_equal(text(f, "v/0.0"), "last");
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.0", "last");
}

static void commit_meanwhile(void *arg)
{
	struct fx *f = arg;

	assert_int_equal(write_text(f, "v/a", "1"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_int_equal(write_text(f, "v/b", "2"), 0);
}

/* A poll that began before a commit sees the change that the commit made, after its end. */
static void test_polled(void **state)
{
	struct fx *f = *state;

	f->d.polled_arg = f;
	f->d.polled = commit_meanwhile;
	atomic_store(&tree_of(f->v)->polled_ms, 0);
	assert_string_equal(text(f, "v/0.0"), "chunk");
	assert_null(f->d.polled);
	is(f, "v/a", "1");
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/b", "2");
}

/* a commit succeeds, and then the dataset cannot be opened: that is reported, and tried again */
static void test_not_opened(void **state)
{
	static const int codes[] = {-ESTALE, -ENOMEM};
	struct fx *f = *state;
	struct err e = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		const char *t = i ? "newer" : "new";

		assert_int_equal(write_text(f, "v/0.0", t), 0);
		atomic_store(&f->fail_open, codes[i]);
		assert_int_equal(f->v->write->fsyncdir(f->v, VIEW_ROOT, &e),
				 i ? codes[i] : -EIO);
		assert_string_equal(e.msg,
				    "committed, but the dataset cannot be reopened: made up");
		is(f, "v/0.0", t);
		assert_int_equal(write_text(f, "v/0.1", "more"), 0);
		assert_int_equal(sync_dir(f), 0);
		assert_string_equal(text(f, "v/0.0"), t);
		is(f, "v/0.1", "more");
		assert_true(stage_empty(tree_of(f->v)->stage));
	}
}

/* beyond what may be staged */
static void test_room(void **state)
{
	struct fx *f = *state;
	char path[40];

	for (int i = 0; i < 60; i++) {
		(void)snprintf(path, sizeof(path), "v/%d", i);
		assert_int_equal(put_zeros(f, path, 100000), 0);
		assert_true(stage_bytes(tree_of(f->v)->stage) <= f->max_staged + 200000);
	}
	assert_true(atomic_load(&f->d.commits) >= 4);
	assert_int_equal(sync_dir(f), 0);
	assert_int_equal(data_find(&f->d, "v/59")->len, 100000);
	/* no commit succeeds: writers get errors, and confirmed data stay */
	for (int code = 0; code < 2; code++) {
		int rc = 0, n = 0;

		fail_next(f, 1000000, code ? -ENOSPC : -EBADMSG);
		for (; !rc && n < 60; n++) {
			(void)snprintf(path, sizeof(path), "w%d", n);
			rc = put_zeros(f, path, 100000);
		}
		assert_int_equal(rc, code ? -ENOSPC : -EIO);
		assert_string_equal(text(f, path), "-2");
		for (int i = 0; i < n - 1; i++) {
			(void)snprintf(path, sizeof(path), "w%d", i);
			assert_string_equal(text(f, path), "");
		}
		assert_int_equal(unlink_at(f, "w0"), 0);
		fail_next(f, 0, 0);
		assert_int_equal(sync_dir(f), 0);
		assert_int_equal(data_find(&f->d, "w3")->len, 100000);
		assert_int_equal(write_text(f, "w0", "again"), 0);
	}
}

/* what commits leave does not count against writers, nor is it copied each time */
static void test_left(void **state)
{
	struct fx *f = *state;
	char path[40];

	atomic_store(&f->d.refuse_all, true);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(path, sizeof(path), "v/%d", i);
		assert_int_equal(put_zeros(f, path, 100000), 0);
	}
	assert_true(atomic_load(&f->d.commits) < 15);
	assert_int_equal(sync_dir(f), 0);
	assert_true(stage_left_bytes(tree_of(f->v)->stage) >= 10000000);
	is(f, "v/0", NULL);
	atomic_store(&f->d.refuse_all, false);
	assert_int_equal(write_text(f, "v/tmp", "x"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_int_equal(data_find(&f->d, "v/99")->len, 100000);
	assert_true(stage_bytes(tree_of(f->v)->stage) < 1000);
	assert_string_equal(text(f, "v/tmp"), "x");
}

static void test_foreign(void **state)
{
	struct fx *f = *state;

	/* nothing is staged: it is followed */
	foreign(f, "v/0.0", "theirs");
	assert_string_equal(text(f, "v/0.0"), "theirs");
	foreign(f, "v/0.9", "more");
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1 0.9");
	/* just before something is */
	foreign(f, "v/0.0", "again");
	assert_int_equal(write_text(f, "v/0.1", "ours"), 0);
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.0", "again");
	is(f, "v/0.1", "ours");
	/* something is */
	assert_int_equal(write_text(f, "v/0.1", "kept"), 0);
	foreign(f, "v/0.0", "too late");
	assert_int_equal(sync_dir(f), -ESTALE);
	assert_int_equal(write_text(f, "v/0.2", "x"), -ESTALE);
	assert_string_equal(text(f, "v/0.1"), "kept");
	is(f, "v/0.0", "too late");
	is(f, "v/0.1", "ours");
	restart(f);
	assert_string_equal(text(f, "v/0.1"), "kept");
	assert_string_equal(text(f, "v/0.0"), "too late");
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.1", "kept");
}

/* ---- all at once ---- */

enum { FILES = 6, ROUNDS = 60, WRITERS = 3 };

struct crowd {
	struct fx *f;
	int who;
	atomic_int *stop;
};

/* a file's content is its round, repeated: readers see whole ones, and never an older one again */
static void *writer(void *arg)
{
	struct crowd *c = arg;

	for (int round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < FILES; i++) {
			char path[40], tmp[40], t[2000];
			size_t len = 500 + (size_t)(round % 7) * 200;

			(void)snprintf(path, sizeof(path), "w%d/%d", c->who, i);
			(void)snprintf(tmp, sizeof(tmp), "w%d/tmp%d", c->who, i);
			memset(t, round, len);
			if (i % 2) {
				assert_int_equal(put(c->f, path, t, len), 0);
				continue;
			}
			assert_int_equal(put(c->f, tmp, t, len), 0);
			assert_int_equal(move(c->f, tmp, path, 0), 0);
		}
	}
	return NULL;
}

static void *reader(void *arg)
{
	struct crowd *c = arg;
	int last[WRITERS][FILES] = {{0}};

	while (!atomic_load(c->stop)) {
		for (int i = 0; i < WRITERS * FILES; i++) {
			int *was = &last[i / FILES][i % FILES];
			uint8_t room[2500];
			struct view_attr a;
			struct err e = ERR_INIT;
			struct span s = {0};
			char path[40];
			int rc;

			(void)snprintf(path, sizeof(path), "w%d/%d", i / FILES, i % FILES);
			rc = lookup(c->f, path, &a);
			if (!rc)
				rc = c->f->v->ops->read(c->f->v, a.id, 0, 0, sizeof(room), room,
							&s, &e);
			assert_true(rc == 0 || rc == -ENOENT || rc == -ESTALE);
			assert_false(rc == -ENOENT && *was);
			if (!rc && s.len) { /* in place there is a moment without content */
				assert_true(s.mem[0] >= *was);
				for (size_t k = 1; k < s.len; k++)
					assert_int_equal(s.mem[k], s.mem[0]);
				*was = s.mem[0];
			}
			span_done(&s);
			if (!lookup(c->f, path, &a))
				c->f->v->ops->forget(c->f->v, a.id, 2);
		}
	}
	return NULL;
}

static void *committer(void *arg)
{
	struct crowd *c = arg;

	while (!atomic_load(c->stop)) {
		struct err e = ERR_INIT;

		assert_int_equal(c->f->v->write->fsyncdir(c->f->v, VIEW_ROOT, &e), 0);
		(void)sched_yield();
	}
	return NULL;
}

static void test_crowd(void **state)
{
	struct fx *f = *state;
	pthread_t w[WRITERS], r[2];
	struct crowd c[WRITERS];
	atomic_int end = 0;
	char path[40];

	f->max_staged = 50000;
	restart(f);
	for (int i = 0; i < WRITERS; i++) {
		(void)snprintf(path, sizeof(path), "w%d", i);
		assert_int_equal(mkdir_at(f, path), 0);
		c[i] = (struct crowd){.f = f, .who = i, .stop = &end};
		assert_int_equal(pthread_create(&w[i], NULL, writer, &c[i]), 0);
	}
	assert_int_equal(pthread_create(&r[0], NULL, reader, &c[0]), 0);
	assert_int_equal(pthread_create(&r[1], NULL, committer, &c[0]), 0);
	for (int i = 0; i < WRITERS; i++)
		(void)pthread_join(w[i], NULL);
	atomic_store(&end, 1);
	(void)pthread_join(r[0], NULL);
	(void)pthread_join(r[1], NULL);
	assert_int_equal(sync_dir(f), 0);
	for (int i = 0; i < WRITERS * FILES; i++) {
		const struct dfile *x;

		(void)snprintf(path, sizeof(path), "w%d/%d", i / FILES, i % FILES);
		x = data_find(&f->d, path);
		assert_non_null(x);
		assert_int_equal(x->len, 500 + ROUNDS % 7 * 200);
		assert_int_equal(x->data[x->len - 1], ROUNDS);
	}
	assert_true(atomic_load(&f->d.commits) > 3);
}

/* a listing that commits come between */
static void test_listing(void **state)
{
	struct fx *f = *state;
	struct names n = {.left = 0};
	struct view_attr a;
	struct err e = ERR_INIT;
	char path[40];

	for (int i = 0; i < 40; i++) {
		(void)snprintf(path, sizeof(path), "v/%d", i);
		assert_int_equal(write_text(f, path, "x"), 0);
	}
	assert_int_equal(lookup(f, "v", &a), 0);
	for (int i = 0; i < 60; i++) {
		n.left = 1;
		assert_int_equal(f->v->ops->list(f->v, a.id, n.next, false, add_name, &n, &e),
				 0);
		tree_listings_free(tree_of(f->v)); /* as if others had taken its place */
		memset(tree_of(f->v)->listings, 0, sizeof(tree_of(f->v)->listings));
		if (i % 10 == 5)
			assert_int_equal(sync_dir(f), 0);
		(void)snprintf(path, sizeof(path), "v/%d", i % 40);
		assert_int_equal(write_text(f, path, "y"), 0);
	}
	for (int i = 0; i < 40; i++) {
		char name[10];
		const char *at;

		(void)snprintf(name, sizeof(name), " %d ", i);
		at = strstr(n.text, name);
		if (!at && strncmp(n.text, name + 1, strlen(name) - 1) == 0)
			at = n.text;
		assert_non_null(at);
		assert_null(strstr(at + 1, name));
	}
}

/* recode - the dataset has other bytes for a file than were written, and a commit shows them. */
static void recode(struct fx *f, const char *key, const char *t)
{
	static int n;
	char other[32];

	(void)pthread_mutex_lock(&f->d.lock);
	data_text(&f->d, key, t);
	(void)pthread_mutex_unlock(&f->d.lock);
	(void)snprintf(other, sizeof(other), "v/other%d", n++);
	assert_int_equal(write_text(f, other, "x"), 0);
	assert_int_equal(sync_dir(f), 0);
}

/* staged - written, maybe read, and committed. */
static void staged(struct fx *f, const char *key, const char *t, bool read)
{
	assert_int_equal(write_text(f, key, t), 0);
	if (read) {
		struct view_handle h = {0};
		struct err e = ERR_INIT;
		struct view_attr a;

		assert_int_equal(lookup(f, key, &a), 0);
		assert_int_equal(f->v->write->open(f->v, a.id, O_RDONLY, &h, &e), 0);
		f->v->write->release(f->v, a.id, h.fh);
	}
	assert_int_equal(sync_dir(f), 0);
}

/* Files that were read while they were staged keep their bytes. */
static void test_held(void **state)
{
	struct fx *f = *state;

	f->recoded = TREE_RECODED;
	staged(f, "v/.zarray", "{}", false);
	staged(f, "v/0.0", "first", true);
	staged(f, "v/1.0", "second", false);
	recode(f, "v/0.0", "FIRST AGAIN");
	recode(f, "v/1.0", "SECOND");
	assert_string_equal(text(f, "v/0.0"), "first");
	assert_string_equal(text(f, "v/1.0"), "SECOND");
	/* until they are written */
	assert_int_equal(write_text(f, "v/0.0", "third"), 0);
	assert_string_equal(text(f, "v/0.0"), "third");
	assert_int_equal(sync_dir(f), 0);
	recode(f, "v/0.0", "THIRD");
	assert_string_equal(text(f, "v/0.0"), "third");
	/* a document of the array that changes nothing; then one with another form */
	staged(f, "v/.zarray", "{ }", false);
	assert_string_equal(text(f, "v/0.0"), "third");
	f->recoded = 0;
	staged(f, "v/.zarray", "{  }", false);
	assert_string_equal(text(f, "v/0.0"), "THIRD");
	/* shorter, and longer again */
	f->recoded = TREE_RECODED;
	staged(f, "v/0.0", "fourth", true);
	recode(f, "v/0.0", "FOURTH");
	f->recoded = TREE_RECODED | TREE_LONGER;
	staged(f, "v/.zarray", "[]", false);
	f->recoded = TREE_RECODED | TREE_SHORTER;
	staged(f, "v/.zarray", "[ ]", false);
	assert_string_equal(text(f, "v/0.0"), "fourth");
	f->recoded = TREE_RECODED | TREE_LONGER;
	staged(f, "v/.zarray", "[  ]", false);
	assert_string_equal(text(f, "v/0.0"), "FOURTH");
	/* a removed file is not shown again */
	staged(f, "v/0.0", "fifth", true);
	assert_int_equal(unlink_at(f, "v/0.0"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(text(f, "v/0.0"), "-2");
}

/* SEMANTICS W29: the oldest go when there are too many: chunks of 64 commits, or stage_size */
static void test_held_room(void **state)
{
	struct fx *f = *state;
	char key[32];

	f->recoded = TREE_RECODED;
	staged(f, "v/.zarray", "{}", false);
	for (int i = 0; i < 70; i++) {
		(void)snprintf(key, sizeof(key), "v/%d", i);
		staged(f, key, "small", true);
	}
	assert_int_equal(tree_of(f->v)->holds.n_works, 64);
	assert_int_equal(tree_of(f->v)->holds.n, 64);
	for (int i = 0; i < 70; i++) {
		(void)snprintf(key, sizeof(key), "v/%d", i);
		recode(f, key, "OTHER");
		assert_string_equal(text(f, key), i < 6 ? "OTHER" : "small");
	}
}

static void test_held_bytes(void **state)
{
	struct fx *f = *state;
	char big[201];

	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	tree_of(f->v)->o.max_staged = 500;
	f->recoded = TREE_RECODED;
	staged(f, "v/.zarray", "{}", false);
	staged(f, "v/0", big, true);
	staged(f, "v/1", big, true);
	staged(f, "v/2", big, true);
	recode(f, "v/0", "OTHER");
	assert_string_equal(text(f, "v/0"), big); /* 400 bytes are kept after it */
	staged(f, "v/3", big, true);
	assert_string_equal(text(f, "v/0"), "OTHER");
	recode(f, "v/1", "OTHER");
	assert_string_equal(text(f, "v/1"), big);
	/* larger than all that may be kept */
	tree_of(f->v)->o.max_staged = 199;
	staged(f, "v/4", big, true);
	recode(f, "v/4", "OTHER");
	assert_string_equal(text(f, "v/4"), "OTHER");
}

/* SEMANTICS P33: the dataset still has a name after the commit, and the program that removed it
 * finds its directory empty. */
static void test_shown_again(void **state)
{
	struct fx *f = *state;

	f->d.stays = "v/0.1";
	assert_int_equal(unlink_at(f, "v/0.1"), 0);
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.1", "stays");
	assert_string_equal(list(f, "v", 9), ".zarray 0.0");
	assert_string_equal(text(f, "v/0.1"), "stays");
	/* the next commit changes nothing of that */
	assert_int_equal(write_text(f, "v/0.2", "x"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.2");
	/* created again: before and after it is committed */
	assert_int_equal(write_text(f, "v/0.1", "new"), 0);
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1 0.2");
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1 0.2");
	is(f, "v/0.1", "new");
	/* and by a rename */
	assert_int_equal(unlink_at(f, "v/0.1"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.2");
	assert_int_equal(move(f, "v/0.2", "v/0.1", 0), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1");
	/* another program's changes are listed */
	assert_int_equal(unlink_at(f, "v/0.1"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "v", 9), ".zarray 0.0");
	foreign(f, "v/0.1", "theirs");
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1");
	/* a commit in the middle of a removal */
	assert_int_equal(unlink_at(f, "v/0.1"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_int_equal(rmdir_at(f, "v"), -ENOTEMPTY);
	assert_int_equal(unlink_at(f, "v/0.0"), 0);
	assert_int_equal(unlink_at(f, "v/.zarray"), 0);
	assert_int_equal(rmdir_at(f, "v"), 0);
	assert_string_equal(text(f, "v"), "-2");
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "", 9), ".zgroup");
	/* the directory is made again over what stays, then the dataset can remove it */
	assert_int_equal(write_text(f, "v/.zarray", "array"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "", 9), ".zgroup v/");
	assert_string_equal(list(f, "v", 9), ".zarray");
	assert_int_equal(unlink_at(f, "v/0.1"), 0);
	f->d.stays = NULL;
	assert_int_equal(sync_dir(f), 0);
	assert_int_equal(tree_of(f->v)->removed_names.n, 0);
	assert_string_equal(text(f, "v/0.1"), "-2");
}

/* SEMANTICS P34: a directory that vanishes from the dataset with its files stays until a program
 * removes it, too. */
static void test_emptied(void **state)
{
	struct fx *f = *state;

	data_text(&f->d, "g/v/c/0", "deep");
	stop(f);
	start(f);
	assert_int_equal(unlink_at(f, "g/v/c/0"), 0);
	assert_int_equal(sync_dir(f), 0);
	is(f, "g/v/c/0", NULL);
	assert_true(stage_empty(tree_of(f->v)->stage));
	assert_string_equal(list(f, "", 9), ".zgroup g/ v/");
	assert_string_equal(list(f, "g", 9), "v/");
	assert_string_equal(list(f, "g/v", 9), "c/");
	assert_string_equal(list(f, "g/v/c", 9), "");
	assert_int_equal(rmdir_at(f, "g/v"), -ENOTEMPTY);
	assert_int_equal(mkdir_at(f, "g/v/c"), -EEXIST);
	/* it can be used: written to, and emptied again */
	assert_int_equal(write_text(f, "g/v/c/1", "x"), 0);
	assert_string_equal(list(f, "g/v", 9), "c/");
	assert_int_equal(sync_dir(f), 0);
	is(f, "g/v/c/1", "x");
	assert_int_equal(tree_of(f->v)->emptied_dirs.n, 0);
	assert_int_equal(unlink_at(f, "g/v/c/1"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "g/v", 9), "c/");
	/* renamed */
	assert_int_equal(move(f, "g/v", "g/w", 0), 0);
	assert_string_equal(list(f, "g", 9), "w/");
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "g", 9), "w/");
	assert_string_equal(list(f, "g/w", 9), "c/");
	assert_string_equal(text(f, "g/v"), "-2");
	/* removed, before and after a commit */
	assert_int_equal(rmdir_at(f, "g/w/c"), 0);
	assert_int_equal(rmdir_at(f, "g/w"), 0);
	assert_int_equal(rmdir_at(f, "g"), 0);
	assert_string_equal(list(f, "", 9), ".zgroup v/");
	assert_int_equal(write_text(f, "v/0.2", "x"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "", 9), ".zgroup v/");
	assert_int_equal(tree_of(f->v)->emptied_dirs.n, 0);
	assert_true(stage_empty(tree_of(f->v)->stage));
	/* another program's change ends it, and so does the end of the mount */
	data_text(&f->d, "h/0", "x");
	stop(f);
	start(f);
	assert_int_equal(unlink_at(f, "h/0"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(list(f, "", 9), ".zgroup h/ v/");
	foreign(f, "v/0.3", "theirs");
	assert_string_equal(list(f, "", 9), ".zgroup v/");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_begins),     TEST(test_fails),      TEST(test_room),
		TEST(test_polled),
		TEST(test_left),       TEST(test_foreign),    TEST(test_crowd),
		TEST(test_listing),    TEST(test_held),       TEST(test_held_room),
		TEST(test_held_bytes), TEST(test_not_opened), TEST(test_shown_again),
		TEST(test_emptied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
