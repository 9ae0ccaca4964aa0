/* SPDX-License-Identifier: BSD-3-Clause */
/* test_tree.c - writing into a tree: the view of readers, committed files, files that are left. */
#include "tests/unit/translate/tree_fx.h"

#include <signal.h>
#include <sys/resource.h>

#include "translate/tree/tree_int.h"

/* ---- tests ---- */

static void test_read(void **state)
{
	struct fx *f = *state;
	struct view_attr a;

	assert_string_equal(text(f, "v/0.0"), "chunk");
	assert_string_equal(text(f, "v/0.1"), "zero");
	assert_string_equal(text(f, "v/0.2"), "-2");
	assert_string_equal(text(f, "v/damaged"), "-5");
	assert_string_equal(list(f, "", 100), ".zgroup v/");
	assert_string_equal(list(f, "v", 1), ".zarray 0.0 0.1");
	assert_int_equal(lookup(f, "v", &a), 0);
	assert_int_equal(a.mode, 0755);
	assert_true(a.own && a.volatile_attrs && !a.fixed);
	assert_int_equal(lookup(f, "v/0.0", &a), 0);
	assert_int_equal(a.mode, 0644);
	assert_int_equal(a.size, 5);
}

static void test_simple(void **state)
{
	struct fx *f = *state;
	struct err e = ERR_INIT;

	assert_int_equal(write_text(f, "v/0.2", "new"), 0);
	assert_int_equal(write_text(f, "v/0.0", "changed"), 0);
	assert_int_equal(write_text(f, "v/tmp1", "moved"), 0);
	assert_int_equal(move(f, "v/tmp1", "v/0.3", 0), 0);
	assert_int_equal(mkdir_at(f, "w"), 0);
	assert_int_equal(mkdir_at(f, "empty"), 0);
	assert_int_equal(write_text(f, "w/.zarray", "two"), 0);
	assert_int_equal(unlink_at(f, "v/0.1"), 0);
	assert_int_equal(write_text(f, "w/tmp", "left"), 0);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(text(f, "v/0.2"), "new");
		assert_string_equal(text(f, "v/0.0"), "changed");
		assert_string_equal(text(f, "v/0.3"), "moved");
		assert_string_equal(text(f, "v/tmp1"), "-2");
		assert_string_equal(text(f, "v/0.1"), "-2");
		assert_string_equal(text(f, "w/.zarray"), "two");
		assert_string_equal(text(f, "w/tmp"), "left");
		assert_string_equal(list(f, "", 2), ".zgroup empty/ v/ w/");
		assert_string_equal(list(f, "v", 2), ".zarray 0.0 0.2 0.3");
		assert_string_equal(list(f, "w", 2), ".zarray tmp");
		assert_int_equal(sync_dir(f), 0);
		assert_int_equal(atomic_load(&f->d.commits), 1);
	}
	is(f, "v/0.0", "changed");
	is(f, "v/0.1", NULL);
	is(f, "v/0.3", "moved");
	is(f, "w/.zarray", "two");
	is(f, "w/tmp", NULL);
	assert_int_equal(write_text(f, "w/0", "last"), 0);
	is(f, "w/0", NULL);
	/* files that are left are reported and kept */
	assert_int_equal(f->v->write->finish(f->v, true, &e), -EIO);
	assert_non_null(strstr(e.msg, "w/tmp"));
	is(f, "w/0", "last");
	stop(f);
	start(f);
	assert_string_equal(text(f, "w/tmp"), "left");
	assert_string_equal(text(f, "empty"), "/");
}

/* ---- files ---- */

static int open_at(struct fx *f, const char *path, int flags, uint64_t *ret_id,
		   struct view_handle *h)
{
	struct view_attr a;
	struct err e = ERR_INIT;
	int rc = lookup(f, path, &a);

	if (rc)
		return rc;
	*ret_id = a.id;
	return f->v->write->open(f->v, a.id, flags, h, &e);
}

static int write_at(struct fx *f, uint64_t id, const struct view_handle *h, uint64_t off,
		    const char *t)
{
	struct err e = ERR_INIT;

	return f->v->write->write(f->v, id, h->fh, off, (const uint8_t *)t, strlen(t), &e);
}

static int flush(struct fx *f, uint64_t id, const struct view_handle *h)
{
	struct err e = ERR_INIT;

	return f->v->write->flush(f->v, id, h->fh, &e);
}

static void release(struct fx *f, uint64_t id, const struct view_handle *h)
{
	f->v->write->release(f->v, id, h->fh);
}

/* through - what a handle reads. */
static const char *through(struct fx *f, uint64_t id, const struct view_handle *h)
{
	static char out[300];
	uint8_t room[256];
	struct err e = ERR_INIT;
	struct span s = {0};
	int rc = f->v->ops->read(f->v, id, h->fh, 0, sizeof(room), room, &s, &e);

	if (rc)
		(void)snprintf(out, sizeof(out), "%d", rc);
	else
		(void)snprintf(out, sizeof(out), "%.*s", (int)s.len, (const char *)s.mem);
	span_done(&s);
	return out;
}

static uint64_t size_of(struct fx *f, const char *path)
{
	struct view_attr a;

	assert_int_equal(lookup(f, path, &a), 0);
	return a.size;
}

static void test_in_place(void **state)
{
	struct fx *f = *state;
	struct view_handle h, r;
	uint64_t id, same;

	assert_int_equal(open_at(f, "v/0.0", O_RDONLY, &id, &r), 0);
	assert_int_equal(open_at(f, "v/0.0", O_RDWR, &same, &h), 0);
	assert_int_equal(id, same);
	assert_int_equal(write_at(f, id, &r, 0, "no"), -EBADF);
	assert_int_equal(write_at(f, id, &h, 7, "!"), 0);
	assert_int_equal(write_at(f, id, &h, 0, "C"), 0);
	assert_int_equal(size_of(f, "v/0.0"), 8);
	assert_string_equal(through(f, id, &h), "Chunk");
	assert_int_equal(flush(f, id, &h), 0);
	assert_string_equal(through(f, id, &r), "Chunk");
	release(f, id, &h);
	assert_string_equal(through(f, id, &r), "Chunk");
	release(f, id, &r);
	assert_int_equal(size_of(f, "v/0.0"), 8);
	/* O_APPEND, wherever the kernel thinks that the end is */
	assert_int_equal(open_at(f, "v/0.1", O_WRONLY | O_APPEND, &id, &h), 0);
	assert_true(h.direct_io);
	assert_int_equal(write_at(f, id, &h, 0, "more"), 0);
	assert_int_equal(flush(f, id, &h), 0);
	release(f, id, &h);
	assert_int_equal(size_of(f, "v/0.1"), 9);
	assert_int_equal(sync_dir(f), 0);
	assert_int_equal(size_of(f, "v/0.1"), 9);
}

static void test_trunc(void **state)
{
	struct fx *f = *state;
	struct view_set set = {.size_set = true, .size = 2};
	struct view_attr a;
	struct view_handle h;
	struct err e = ERR_INIT;
	uint64_t id;

	assert_int_equal(lookup(f, "v/0.0", &a), 0);
	assert_int_equal(f->v->write->setattr(f->v, a.id, 0, &set, &a, &e), 0);
	assert_int_equal(a.size, 2);
	assert_string_equal(text(f, "v/0.0"), "ch");
	set.size = 4;
	assert_int_equal(f->v->write->setattr(f->v, a.id, 0, &set, &a, &e), 0);
	assert_int_equal(size_of(f, "v/0.0"), 4);
	/* O_TRUNC: another descriptor of the same open file is closed before anything is written,
	 * as a shell does */
	assert_int_equal(open_at(f, "v/0.0", O_WRONLY | O_TRUNC, &id, &h), 0);
	assert_int_equal(flush(f, id, &h), 0);
	assert_int_equal(size_of(f, "v/0.0"), 0);
	assert_int_equal(write_at(f, id, &h, 0, "shell"), 0);
	assert_int_equal(flush(f, id, &h), 0);
	release(f, id, &h);
	assert_string_equal(text(f, "v/0.0"), "shell");
	/* nothing is written at all */
	assert_int_equal(open_at(f, "v/0.0", O_WRONLY | O_TRUNC, &id, &h), 0);
	assert_int_equal(flush(f, id, &h), 0);
	release(f, id, &h);
	assert_string_equal(text(f, "v/0.0"), "");
	/* through a handle: it is confirmed by that handle's flush */
	assert_int_equal(write_text(f, "v/0.0", "longer"), 0);
	assert_int_equal(open_at(f, "v/0.0", O_WRONLY, &id, &h), 0);
	set.size = 3;
	assert_int_equal(f->v->write->setattr(f->v, id, h.fh, &set, &a, &e), 0);
	assert_int_equal(flush(f, id, &h), 0);
	release(f, id, &h);
	assert_string_equal(text(f, "v/0.0"), "lon");
	set = (struct view_set){.mode_set = true, .mode = 0600, .mtime_set = true};
	assert_int_equal(f->v->write->setattr(f->v, id, 0, &set, &a, &e), 0);
	assert_int_equal(a.mode, 0600);
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.0", "lon");
}

static void test_create(void **state)
{
	struct fx *f = *state;
	struct view_handle h;
	struct view_attr a;

	assert_int_equal(create(f, "v/0.0", O_WRONLY | O_EXCL, &a, &h), -EEXIST);
	assert_int_equal(create(f, "v", O_WRONLY, &a, &h), -EISDIR);
	assert_int_equal(create(f, "v/new", O_WRONLY | O_EXCL, &a, &h), 0);
	/* it is there, and in the directory, before anything is confirmed */
	assert_string_equal(text(f, "v/new"), "");
	assert_string_equal(list(f, "v", 1), ".zarray 0.0 0.1 new");
	assert_int_equal(write_at(f, a.id, &h, 0, "x"), 0);
	assert_int_equal(size_of(f, "v/new"), 1);
	assert_true(stage_empty(tree_of(f->v)->stage));
	assert_int_equal(unlink_at(f, "v/new"), 0);
	assert_string_equal(text(f, "v/new"), "-2");
	assert_string_equal(through(f, a.id, &h), "x");
	assert_int_equal(flush(f, a.id, &h), 0);
	release(f, a.id, &h);
	assert_true(stage_empty(tree_of(f->v)->stage));
	/* empty files are confirmed when they are closed */
	assert_int_equal(create(f, "v/empty", O_WRONLY, &a, &h), 0);
	assert_int_equal(flush(f, a.id, &h), 0);
	release(f, a.id, &h);
	assert_int_equal(size_of(f, "v/empty"), 0);
	assert_false(stage_empty(tree_of(f->v)->stage));
	/* directories */
	assert_int_equal(mkdir_at(f, "v"), -EEXIST);
	assert_int_equal(mkdir_at(f, "v/empty"), -EEXIST);
	assert_int_equal(rmdir_at(f, "v"), -ENOTEMPTY);
	assert_int_equal(rmdir_at(f, "v/empty"), -ENOTDIR);
	assert_int_equal(unlink_at(f, "v"), -EISDIR);
	assert_int_equal(unlink_at(f, "v/none"), -ENOENT);
	assert_int_equal(rmdir_at(f, "none"), -ENOENT);
	assert_int_equal(unlink_at(f, "v/damaged"), -EIO);
}

/* a directory that is emptied, removed and made again has nothing of what it had */
static void test_again(void **state)
{
	struct fx *f = *state;

	assert_int_equal(unlink_at(f, "v/0.0"), 0);
	assert_int_equal(unlink_at(f, "v/0.1"), 0);
	assert_int_equal(unlink_at(f, "v/.zarray"), 0);
	assert_string_equal(list(f, "v", 9), "");
	assert_int_equal(rmdir_at(f, "v"), 0);
	assert_string_equal(text(f, "v"), "-2");
	assert_string_equal(list(f, "", 9), ".zgroup");
	assert_int_equal(mkdir_at(f, "v"), 0);
	assert_string_equal(list(f, "v", 9), "");
	assert_int_equal(write_text(f, "v/.zarray", "other"), 0);
	assert_string_equal(text(f, "v/0.0"), "-2");
	assert_string_equal(list(f, "v", 9), ".zarray");
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/.zarray", "other");
	is(f, "v/0.0", NULL);
	assert_string_equal(list(f, "v", 9), ".zarray");
}

static void test_rename(void **state)
{
	struct fx *f = *state;
	struct view_handle h, r;
	struct view_attr a;
	uint64_t id;

	assert_int_equal(move(f, "v/none", "v/x", 0), -ENOENT);
	assert_int_equal(move(f, "v/0.0", "v/0.1", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(move(f, "v/0.0", "v/0.0", 0), 0);
	assert_int_equal(move(f, "v/0.0", "v/0.1", 2), -EINVAL);
	assert_int_equal(move(f, "v/0.0", "v", 0), -EISDIR);
	assert_int_equal(move(f, "v", "v/0.0", 0), -ENOTDIR);
	assert_int_equal(move(f, "v", "v/w", 0), -EINVAL);
	/* over a file that a program reads, by one that is still open */
	assert_int_equal(open_at(f, "v/0.0", O_RDONLY, &id, &r), 0);
	assert_int_equal(create(f, "v/tmp", O_WRONLY, &a, &h), 0);
	assert_int_equal(write_at(f, a.id, &h, 0, "fresh"), 0);
	assert_int_equal(move(f, "v/tmp", "v/0.0", 0), 0);
	assert_string_equal(text(f, "v/0.0"), "fresh");
	assert_string_equal(through(f, id, &r), "chunk");
	assert_int_equal(write_at(f, a.id, &h, 5, "er"), 0);
	assert_int_equal(flush(f, a.id, &h), 0);
	release(f, a.id, &h);
	assert_string_equal(text(f, "v/0.0"), "fresher");
	assert_string_equal(through(f, id, &r), "chunk");
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(through(f, id, &r), "chunk");
	release(f, id, &r);
	/* one that a program reads, and that is removed */
	assert_int_equal(open_at(f, "v/0.1", O_RDONLY, &id, &r), 0);
	assert_int_equal(unlink_at(f, "v/0.1"), 0);
	assert_int_equal(sync_dir(f), 0);
	assert_string_equal(through(f, id, &r), "zero");
	release(f, id, &r);
	assert_int_equal(write_text(f, "v/0.1", "one"), 0);
	/* a file of the dataset, to a name that is left */
	assert_int_equal(move(f, "v/0.0", "v/tmp", 0), 0);
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.0", NULL);
	assert_string_equal(text(f, "v/tmp"), "fresher");
	assert_string_equal(text(f, "v/0.0"), "-2");
	assert_int_equal(move(f, "v/tmp", "v/0.0", 0), 0);
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.0", "fresher");
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1");
}

/* Another process has looked a file up when it is replaced: its requests are for the old file,
 * whose content was not kept, and that is not the same as an empty file. */
static void test_replaced(void **state)
{
	struct fx *f = *state;
	struct err e = ERR_INIT;
	struct view_handle h;
	struct view_attr a, b;

	assert_int_equal(write_text(f, "v/0.0", "one"), 0);
	assert_int_equal(lookup(f, "v/0.0", &a), 0);
	assert_int_equal(write_text(f, "v/tmp", "two"), 0);
	assert_int_equal(move(f, "v/tmp", "v/0.0", 0), 0);
	assert_int_equal(f->v->ops->getattr(f->v, a.id, &b, &e), -ESTALE);
	assert_int_equal(f->v->write->open(f->v, a.id, O_RDONLY, &h, &e), -ESTALE);
	assert_int_equal(f->v->write->open(f->v, a.id, O_WRONLY, &h, &e), -ESTALE);
	assert_string_equal(text(f, "v/0.0"), "two");
}

/* room - how long files may get; RLIM_INFINITY: as long as before. */
static void room(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static bool in_memory(struct fx *f, const char *key)
{
	struct tree *t = tree_of(f->v);
	struct tree_node *n = node_find(t, key);
	struct found work;
	bool has;

	assert_non_null(n);
	has = node_has_work(t, n, &work);
	node_put(n);
	return has;
}

/* SEMANTICS W10: when the disk is full a rename or an unlink fails, and the file of that name is
 * what it was, for those who write it and read it too */
static void test_full(void **state)
{
	struct fx *f = *state;
	struct view_handle h, r;
	uint64_t id, other;
	int rc[4];

	assert_int_equal(write_text(f, "v/tmp", "two"), 0);
	assert_int_equal(open_at(f, "v/0.0", O_WRONLY, &id, &h), 0);
	assert_int_equal(open_at(f, "v/0.1", O_RDONLY, &other, &r), 0);
	assert_int_equal(write_at(f, id, &h, 0, "open"), 0);
	room(0);
	rc[0] = move(f, "v/tmp", "v/0.0", 0);
	rc[1] = move(f, "v/.zarray", "v/0.0", 0);
	rc[2] = move(f, "v/tmp", "v/0.1", 0);
	rc[3] = unlink_at(f, "v/0.1");
	room(RLIM_INFINITY);
	for (int i = 0; i < 4; i++)
		assert_int_equal(rc[i], -EFBIG);
	/* it is read from the dataset again */
	assert_false(in_memory(f, "v/0.1"));
	assert_int_equal(flush(f, id, &h), 0);
	release(f, id, &h);
	release(f, other, &r);
	assert_string_equal(text(f, "v/0.0"), "openk");
	assert_string_equal(text(f, "v/0.1"), "zero");
	assert_string_equal(text(f, "v/tmp"), "two");
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/0.0", "openk");
}

/* SEMANTICS W10: whatever record of a rename finds no room, the rename does nothing */
static void test_full_halfway(void **state)
{
	struct fx *f = *state;
	struct stat st;
	char log[100];
	int rc = -1;

	assert_int_equal(write_text(f, "v/0.1", "old"), 0);
	(void)snprintf(log, sizeof(log), "%s/log.1", f->dir);
	for (int i = 0; rc && i < 1000; i++) {
		assert_int_equal(stat(log, &st), 0);
		room((rlim_t)st.st_size + (rlim_t)i);
		rc = move(f, "v/0.0", "v/0.1", 0);
		room(RLIM_INFINITY);
		assert_true(rc == 0 || rc == -EFBIG);
		assert_string_equal(text(f, "v/0.0"), rc ? "chunk" : "-2");
		assert_string_equal(text(f, "v/0.1"), rc ? "old" : "chunk");
	}
	assert_int_equal(rc, 0);
}

static void confirmed_now(void *arg)
{
	struct fx *f = arg;
	struct err e = ERR_INIT;

	assert_int_equal(stage_put(tree_of(f->v)->stage, "v/0.1", (const uint8_t *)"x", 1, &e),
			 0);
}

/* A file of the dataset is written while its directory is being listed: it was there all along. */
static void test_listed(void **state)
{
	struct fx *f = *state;

	f->d.listed_arg = f;
	f->d.listed = confirmed_now;
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1");
	assert_null(f->d.listed);
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1");
	assert_string_equal(text(f, "v/0.1"), "x");
}

static void test_rename_dir(void **state)
{
	struct fx *f = *state;
	struct view_handle h;
	struct view_attr a, b;

	assert_int_equal(write_text(f, "v/0.0", "staged"), 0);
	assert_int_equal(mkdir_at(f, "v/sub"), 0);
	assert_int_equal(write_text(f, "v/sub/x", "deep"), 0);
	assert_int_equal(create(f, "v/sub/y", O_WRONLY, &a, &h), 0);
	assert_int_equal(write_at(f, a.id, &h, 0, "open"), 0);
	assert_int_equal(lookup(f, "v/0.0", &b), 0);
	assert_int_equal(mkdir_at(f, "w"), 0);
	assert_int_equal(write_text(f, "w/x", "x"), 0);
	assert_int_equal(move(f, "v", "w", 0), -ENOTEMPTY);
	assert_int_equal(unlink_at(f, "w/x"), 0);
	assert_int_equal(move(f, "v", "w", 0), 0);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(text(f, "v"), "-2");
		assert_string_equal(list(f, "", 1), ".zgroup w/");
		assert_string_equal(list(f, "w", 1), ".zarray 0.0 0.1 sub/");
		assert_string_equal(list(f, "w/sub", 1), "x y");
		assert_string_equal(text(f, "w/0.0"), "staged");
		assert_string_equal(text(f, "w/0.1"), "zero");
		assert_string_equal(text(f, "w/.zarray"), "array");
		assert_string_equal(text(f, "w/sub/x"), "deep");
		assert_string_equal(text(f, "w/sub/y"), i ? "opened" : "open");
		if (!i) {
			assert_int_equal(write_at(f, a.id, &h, 4, "ed"), 0);
			assert_int_equal(flush(f, a.id, &h), 0);
			release(f, a.id, &h);
		}
		assert_int_equal(move(f, "w", "u", 0), 0);
		assert_int_equal(move(f, "u", "w", 0), 0);
		assert_int_equal(sync_dir(f), 0);
	}
	is(f, "w/0.0", "staged");
	is(f, "w/sub/y", "opened");
	is(f, "v/.zarray", NULL);
	/* the node that the kernel had of a file went with it */
	assert_int_equal(lookup(f, "w/0.0", &a), 0);
	assert_int_equal(a.id, b.id);
}

static int link_at(struct fx *f, const char *from, const char *to, struct view_attr *a)
{
	const char *name;
	uint64_t dir = dir_of(f, to, &name);
	struct err e = ERR_INIT;

	assert_int_equal(lookup(f, from, a), 0);
	return f->v->write->link(f->v, a->id, dir, name, a, &e);
}

/* unknown_size - the next `times` look-ups of a file do not find out its size. */
static void unknown_size(struct fx *f, const char *key, int times)
{
	f->d.unsure_key = key;
	f->d.unsure_times = times;
}

static int overwrite(struct fx *f, const char *path, const char *t)
{
	struct view_handle h;
	uint64_t id;
	int rc;

	assert_int_equal(open_at(f, path, O_WRONLY, &id, &h), 0);
	rc = write_at(f, id, &h, 1, t);
	if (!rc)
		rc = flush(f, id, &h);
	release(f, id, &h);
	return rc;
}

static int cut_at(struct fx *f, const char *path, uint64_t size)
{
	struct view_set set = {.size_set = true, .size = size};
	struct view_attr a;
	struct err e = ERR_INIT;

	assert_int_equal(lookup(f, path, &a), 0);
	return f->v->write->setattr(f->v, a.id, 0, &set, &a, &e);
}

/* A file whose size cannot be determined is shown with one byte. Its bytes are copied as a whole or
 * not at all, however soon the dataset recovers. SEMANTICS W32 */
static void test_unknown_size(void **state)
{
	struct fx *f = *state;
	struct view_attr a;

	for (int times = 0; times < 6; times++) {
		int rc;

		unknown_size(f, "v/0.0", times);
		rc = move(f, "v/0.0", "v/0.2", 0);
		unknown_size(f, NULL, 0);
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		assert_string_equal(text(f, rc ? "v/0.0" : "v/0.2"), "chunk");
		if (!rc)
			assert_int_equal(move(f, "v/0.2", "v/0.0", 0), 0);
		assert_int_equal(sync_dir(f), 0);
		unknown_size(f, "v/0.0", times);
		rc = link_at(f, "v/0.0", "v/0.3", &a);
		unknown_size(f, NULL, 0);
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		assert_string_equal(text(f, "v/0.3"), rc ? "-2" : "chunk");
		if (!rc)
			assert_int_equal(unlink_at(f, "v/0.3"), 0);
		assert_int_equal(sync_dir(f), 0);
		unknown_size(f, "v/0.0", times);
		rc = overwrite(f, "v/0.0", "HU");
		unknown_size(f, NULL, 0);
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		assert_string_equal(text(f, "v/0.0"), rc ? "chunk" : "cHUnk");
		assert_int_equal(write_text(f, "v/0.0", "chunk"), 0);
		assert_int_equal(sync_dir(f), 0);
		unknown_size(f, "v/0.0", times);
		rc = cut_at(f, "v/0.0", 4);
		unknown_size(f, NULL, 0);
		assert_true(rc == 0 || rc == -ETIMEDOUT);
		assert_string_equal(text(f, "v/0.0"), rc ? "chunk" : "chun");
		assert_int_equal(write_text(f, "v/0.0", "chunk"), 0);
		assert_int_equal(sync_dir(f), 0);
	}
	/* a store that does not recover */
	unknown_size(f, "v/0.0", 1000);
	assert_int_equal(move(f, "v/0.0", "v/0.2", 0), -ETIMEDOUT);
	assert_int_equal(link_at(f, "v/0.0", "v/0.2", &a), -ETIMEDOUT);
	assert_int_equal(overwrite(f, "v/0.0", "HU"), -ETIMEDOUT);
	assert_int_equal(cut_at(f, "v/0.0", 4), -ETIMEDOUT);
	/* what does not need its bytes works */
	assert_int_equal(write_text(f, "v/0.0", "new"), 0);
	assert_string_equal(text(f, "v/0.0"), "new");
}

/* zarr-python 3 makes a document that must not be there by link and unlink */
static void test_link(void **state)
{
	struct fx *f = *state;
	struct view_attr a;

	assert_int_equal(write_text(f, "v/tmp", "doc"), 0);
	assert_int_equal(link_at(f, "v/tmp", "v/0.0", &a), -EEXIST);
	assert_int_equal(link_at(f, "v", "w", &a), -EPERM);
	assert_int_equal(link_at(f, "v/tmp", "v/zarr.json", &a), 0);
	assert_int_equal(a.size, 3);
	assert_int_equal(unlink_at(f, "v/tmp"), 0);
	assert_string_equal(text(f, "v/zarr.json"), "doc");
	assert_int_equal(link_at(f, "v/0.1", "v/0.2", &a), 0);
	assert_int_equal(write_text(f, "v/0.2", "other"), 0);
	assert_string_equal(text(f, "v/0.1"), "zero");
	assert_int_equal(sync_dir(f), 0);
	is(f, "v/zarr.json", "doc");
	is(f, "v/0.2", "other");
	is(f, "v/tmp", NULL);
}

static int is_json(const char *key, const char *t, struct err *e)
{
	size_t n = strlen(t);

	(void)key;
	return n > 1 && *t == '{' && strchr(t, '}') == t + n - 1 ? 0
								 : err_set(e, -EINVAL, "bad");
}

/* netCDF-C writes documents over older ones without truncating them */
static void test_tail(void **state)
{
	struct fx *f = *state;
	struct view_handle h;
	uint64_t id;

	assert_int_equal(write_text(f, "v/.zattrs", "{a long old one}"), 0);
	f->check = is_json;
	assert_int_equal(open_at(f, "v/.zattrs", O_RDWR, &id, &h), 0);
	assert_int_equal(flush(f, id, &h), 0);
	assert_int_equal(write_at(f, id, &h, 0, "{sh"), 0);
	assert_int_equal(write_at(f, id, &h, 3, "ort}"), 0);
	assert_int_equal(flush(f, id, &h), 0);
	assert_string_equal(through(f, id, &h), "{short}");
	assert_int_equal(size_of(f, "v/.zattrs"), 7);
	/* but only the written bytes count */
	assert_int_equal(write_at(f, id, &h, 0, "{x"), 0);
	assert_int_equal(flush(f, id, &h), 0);
	assert_string_equal(through(f, id, &h), "{xhort}");
	assert_int_equal(write_at(f, id, &h, 0, "{y}"), 0);
	assert_int_equal(write_at(f, id, &h, 5, "z"), 0);
	assert_int_equal(flush(f, id, &h), -EINVAL);
	release(f, id, &h);
	assert_string_equal(text(f, "v/.zattrs"), "{xhort}");
}

static int no_bad(const char *key, const char *t, struct err *e)
{
	if (strcmp(t, "bad") == 0 && strncmp(key, "v/tmp", 5) != 0)
		return err_set(e, -EINVAL, "'%s' is bad", key);
	return 0;
}

static void test_refused(void **state)
{
	struct fx *f = *state;
	struct view_handle h;
	uint64_t id;

	f->check = no_bad;
	assert_int_equal(write_text(f, "v/0.0", "bad"), -EINVAL);
	assert_string_equal(text(f, "v/0.0"), "chunk");
	assert_int_equal(write_text(f, "v/new", "bad"), -EINVAL);
	assert_string_equal(text(f, "v/new"), "-2");
	assert_string_equal(list(f, "v", 9), ".zarray 0.0 0.1");
	assert_int_equal(write_text(f, "v/tmp", "bad"), 0);
	assert_int_equal(move(f, "v/tmp", "v/0.0", 0), -EINVAL);
	assert_string_equal(text(f, "v/tmp"), "bad");
	assert_string_equal(text(f, "v/0.0"), "chunk");
	/* content that was confirmed before stays, and a handle continues with it */
	assert_int_equal(open_at(f, "v/0.0", O_RDWR | O_TRUNC, &id, &h), 0);
	assert_int_equal(write_at(f, id, &h, 0, "good"), 0);
	assert_int_equal(flush(f, id, &h), 0);
	assert_int_equal(write_at(f, id, &h, 0, "bad"), 0);
	assert_int_equal(f->v->write->setattr(f->v, id, h.fh,
					      &(struct view_set){.size_set = true, .size = 3},
					      &(struct view_attr){0}, &(struct err)ERR_INIT),
			 0);
	assert_int_equal(flush(f, id, &h), -EINVAL);
	assert_string_equal(through(f, id, &h), "good");
	assert_int_equal(write_at(f, id, &h, 4, "!"), 0);
	assert_int_equal(flush(f, id, &h), 0);
	release(f, id, &h);
	assert_string_equal(text(f, "v/0.0"), "good!");
}

/* SEMANTICS W10: a rename or link that is refused confirms nothing under the old name either */
static void test_refused_open(void **state)
{
	struct fx *f = *state;
	struct view_handle h;
	struct view_attr a, b;
	struct err e = ERR_INIT;
	uint64_t id;

	f->check = no_bad;
	assert_int_equal(open_at(f, "v/0.0", O_WRONLY | O_TRUNC, &id, &h), 0);
	assert_int_equal(write_at(f, id, &h, 0, "bad"), 0);
	assert_int_equal(move(f, "v/0.0", "v/new", 0), -EINVAL);
	assert_int_equal(lookup(f, "v", &a), 0);
	assert_int_equal(f->v->write->link(f->v, id, a.id, "tmp", &b, &e), -EINVAL);
	assert_true(stage_empty(tree_of(f->v)->stage));
	assert_int_equal(flush(f, id, &h), -EINVAL);
	release(f, id, &h);
	assert_string_equal(text(f, "v/0.0"), "chunk");
	assert_string_equal(text(f, "v/new"), "-2");
	assert_string_equal(text(f, "v/tmp"), "-2");
}

/* a release that the kernel sends after the next open of the file: the writer that went does not
 * judge, and does not drop, what the next one has written so far */
static int no_halves(const char *key NZ_UNUSED, const char *text, struct err *e)
{
	size_t n = strlen(text);

	return n && text[n - 1] == '.' ? 0 : err_set(e, -EINVAL, "half");
}

struct gone {
	struct fx *f;
	uint64_t id;
	struct view_handle h;
};

static void *release_late(void *arg)
{
	struct gone *g = arg;

	release(g->f, g->id, &g->h);
	return NULL;
}

/* SEMANTICS W1 */
static void test_late_release(void **state)
{
	struct fx *f = *state;
	struct tree *t = tree_of(f->v);
	struct gone old = {.f = f};
	struct view_handle h;
	struct tree_node *n;
	pthread_t thread;
	uint64_t id;

	f->check = no_halves;
	assert_int_equal(open_at(f, "v/0.0", O_WRONLY | O_TRUNC, &old.id, &old.h), 0);
	assert_int_equal(write_at(f, old.id, &old.h, 0, "one."), 0);
	assert_int_equal(flush(f, old.id, &old.h), 0);
	assert_int_equal(open_at(f, "v/0.0", O_WRONLY, &id, &h), 0);
	assert_int_equal(node_get(t, id, &n, NULL), 0);
	/* as if it was opened in the middle of the release, and half of it was written by then */
	atomic_fetch_sub(&n->work->writers, 1);
	write_lock(t);
	assert_int_equal(pthread_create(&thread, NULL, release_late, &old), 0);
	while (atomic_load(&n->work->writers))
		(void)sched_yield();
	atomic_fetch_add(&n->work->writers, 1);
	(void)pthread_mutex_lock(&n->work->lock);
	n->work->loaded = n->work->dirty = true;
	assert_int_equal(work_resize(t, n->work, 0, NULL), 0);
	assert_int_equal(work_write(t, n->work, 0, (const uint8_t *)"tw", 2, NULL), 0);
	(void)pthread_mutex_unlock(&n->work->lock);
	tree_unlock(t);
	assert_int_equal(pthread_join(thread, NULL), 0);
	node_put(n);
	assert_int_equal(write_at(f, id, &h, 2, "o."), 0);
	assert_int_equal(flush(f, id, &h), 0);
	release(f, id, &h);
	assert_string_equal(text(f, "v/0.0"), "two.");
}

/* files larger than the memory that they may take */
static void test_spill(void **state)
{
	struct fx *f = *state;
	size_t len = (size_t)3 << 20, chunk = 100000;
	uint8_t *data = malloc(len), *room = malloc(len);
	struct view_handle h;
	struct view_attr a;
	struct err e = ERR_INIT;
	struct span s = {0};

	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 7 + i / 251 + 1);
	assert_int_equal(create(f, "v/big", O_RDWR, &a, &h), 0);
	for (size_t at = 0; at < len; at += chunk) {
		size_t n = at + chunk < len ? chunk : len - at;

		assert_int_equal(f->v->write->write(f->v, a.id, h.fh, at, data + at, n, &e), 0);
		assert_true(atomic_load(&tree_of(f->v)->buffered) <= f->o.max_buffer);
	}
	assert_int_equal(atomic_load(&tree_of(f->v)->buffered), 0);
	assert_int_equal(f->v->write->fsync(f->v, a.id, h.fh, false, &e), 0);
	release(f, a.id, &h);
	assert_int_equal(f->v->ops->read(f->v, a.id, 0, 0, len, room, &s, &e), 0);
	assert_int_equal(s.len, len);
	assert_memory_equal(s.mem, data, len);
	assert_int_equal(sync_dir(f), 0);
	assert_memory_equal(data_find(&f->d, "v/big")->data, data, len);
	free(data);
	free(room);
}

/* memory is what the kernel knows */
static void test_forget(void **state)
{
	struct fx *f = *state;
	struct tree *t = tree_of(f->v);
	struct view_attr a, b;

	for (int i = 0; i < 1000; i++) {
		char path[40];

		(void)snprintf(path, sizeof(path), "v/%d", i);
		assert_int_equal(write_text(f, path, "x"), 0);
		assert_int_equal(lookup(f, path, &a), 0);
		f->v->ops->forget(f->v, a.id, 2);
	}
	assert_int_equal(t->by_id.n, 2); /* "v" was looked up all the time */
	assert_int_equal(lookup(f, "v/7", &a), 0);
	assert_int_equal(lookup(f, "v/7", &b), 0);
	assert_int_equal(a.id, b.id);
	f->v->ops->forget(f->v, a.id, 1);
	assert_int_equal(f->v->ops->getattr(f->v, a.id, &b, NULL), 0);
	f->v->ops->forget(f->v, a.id, 1);
	assert_int_equal(f->v->ops->getattr(f->v, a.id, &b, NULL), -ESTALE);
	assert_int_equal(f->v->ops->getattr(f->v, VIEW_ROOT, &b, NULL), 0);
	assert_int_equal(f->v->ops->parent(f->v, VIEW_ROOT), VIEW_ROOT);
}

/* the kernel keeps a file that it knows, whatever fails when a program opens it again */
static void test_known(void **state)
{
	struct fx *f = *state;
	struct view_handle h;
	struct view_attr a, b;
	int rc;

	assert_int_equal(lookup(f, "v/0.0", &a), 0);
	f->d.fail_key = "v/0.0";
	for (int skip = 0; skip < 2; skip++) {
		f->d.fail_skip = skip;
		rc = create(f, "v/0.0", O_WRONLY, &b, &h);
		assert_int_equal(rc, -EIO);
		assert_int_equal(f->d.fail_skip, -1);
		assert_int_equal(f->v->ops->getattr(f->v, a.id, &b, NULL), 0);
	}
	assert_int_equal(create(f, "v/0.0", O_WRONLY, &b, &h), 0);
	assert_int_equal(b.id, a.id);
	release(f, a.id, &h);
	f->v->ops->forget(f->v, a.id, 1);
	assert_int_equal(f->v->ops->getattr(f->v, a.id, &b, NULL), 0);
	f->v->ops->forget(f->v, a.id, 1);
	assert_int_equal(f->v->ops->getattr(f->v, a.id, &b, NULL), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_read),   TEST(test_simple),     TEST(test_in_place),
		TEST(test_trunc),  TEST(test_create),     TEST(test_again),
		TEST(test_rename), TEST(test_rename_dir), TEST(test_refused),
		TEST(test_spill),  TEST(test_forget),     TEST(test_link),
		TEST(test_unknown_size),
		TEST(test_tail),   TEST(test_replaced),   TEST(test_listed),
		TEST(test_full),   TEST(test_full_halfway), TEST(test_known),
		TEST(test_refused_open), TEST(test_late_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
