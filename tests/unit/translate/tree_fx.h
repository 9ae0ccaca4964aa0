/* SPDX-License-Identifier: BSD-3-Clause */
/* tree_fx.h - a writable tree over the dataset of tree_fake.h, and requests as the kernel makes
 * them. */
#ifndef TESTS_UNIT_TRANSLATE_TREE_FX_H
#define TESTS_UNIT_TRANSLATE_TREE_FX_H

#include "tests/unit/translate/tree_fake.h"

#include "translate/tree/tree_int.h"

struct fx {
	char dir[64];
	int fd;
	struct data d;
	struct tree_rw_options o;
	struct view *v;
	int (*check)(const char *key, const char *text, struct err *e);
	uint64_t max_staged;
	uint32_t idle_ms;
	bool all; /* what the last commit was told */
	unsigned recoded;     /* of every array */
	atomic_int fail_open; /* the code with which opening the dataset fails, once */
};

static inline unsigned fx_recoded(void *arg, const struct snapshot *now NZ_UNUSED,
				  const char *dir NZ_UNUSED, const char *doc NZ_UNUSED,
				  const uint8_t *was NZ_UNUSED, size_t n_was NZ_UNUSED,
				  const uint8_t *is NZ_UNUSED, size_t n_is NZ_UNUSED)
{
	return ((const struct fx *)arg)->recoded;
}

static inline int fx_open(void *arg, struct view **ret, struct err *e)
{
	struct fx *f = arg;
	int rc = atomic_exchange(&f->fail_open, 0);

	return rc ? err_set(e, rc, "made up") : data_open(&f->d, ret, e);
}

static inline int fx_check(void *arg, const struct tree_change *c, struct err *e)
{
	struct fx *f = arg;
	struct buf b;
	int rc;

	if (!f->check)
		return 0;
	buf_init(&b, 1 << 30);
	rc = c->content(c, &b, e);
	buf_putc(&b, '\0');
	if (!rc)
		rc = f->check(c->key, (const char *)b.data, e);
	buf_release(&b);
	return rc;
}

static inline int fx_commit(void *arg, const struct snapshot *was NZ_UNUSED,
			    uint64_t generation, bool all, void (*quiesce)(void *view),
			    void *view, struct buf *left, struct err *e)
{
	struct fx *f = arg;

	f->all = all;
	return data_commit(&f->d, f->fd, generation, quiesce, view, left, e);
}

static inline void start(struct fx *f)
{
	struct err e = ERR_INIT;
	struct snapshots *g;
	struct stage *s;

	f->o = (struct tree_rw_options){
		.recoded = fx_recoded,
		.dir_fd = f->fd,
		.dir = f->dir,
		.max_staged = f->max_staged,
		.max_buffer = 1 << 20,
		.idle_ms = f->idle_ms,
		.id_limit = (uint64_t)1 << 36,
		.check = fx_check,
		.commit = fx_commit,
		.arg = f,
	};
	assert_int_equal(snapshots_new(fx_open, f, &g, &e), 0);
	if (stage_open(f->fd, false, &s, &e))
		fail_msg("%s", e.msg);
	assert_int_equal(tree_rw_open(g, s, &f->o, &f->v, &e), 0);
	assert_true(f->v->follows);
	assert_non_null(f->v->write);
}

static inline void stop(struct fx *f)
{
	f->v->ops->close(f->v);
	f->v = NULL;
	assert_int_equal(atomic_load(&f->d.open_now), 0);
}

static inline int setup(void **state)
{
	struct fx *f = calloc(1, sizeof(*f));

	(void)snprintf(f->dir, sizeof(f->dir), "%s/nczarrfs-tree-XXXXXX",
		       access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	assert_non_null(mkdtemp(f->dir));
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	assert_true(f->fd >= 0);
	(void)pthread_mutex_init(&f->d.lock, NULL);
	f->max_staged = 1 << 20;
	f->idle_ms = 3600000; /* commits are asked for */
	data_text(&f->d, ".zgroup", "{}");
	data_text(&f->d, "v/.zarray", "array");
	data_text(&f->d, "v/0.0", "chunk");
	data_put(&f->d, "v/0.1", "zero\0", 5);
	start(f);
	*state = f;
	return 0;
}

static inline int teardown(void **state)
{
	struct fx *f = *state;
	char command[100];

	if (f->v)
		stop(f);
	data_free(&f->d);
	(void)close(f->fd);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

/* ---- as the kernel asks ---- */

static inline int lookup(struct fx *f, const char *path, struct view_attr *ret)
{
	uint64_t dir = VIEW_ROOT;
	struct err e = ERR_INIT;
	int rc;

	*ret = (struct view_attr){.id = VIEW_ROOT, .is_dir = true};
	while (*path) {
		size_t n = strcspn(path, "/");

		rc = f->v->ops->lookup(f->v, dir, path, n, ret, &e);
		if (rc)
			return rc;
		dir = ret->id;
		path += n + (path[n] == '/');
	}
	return 0;
}

static inline uint64_t dir_of(struct fx *f, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char dir[300];
	struct view_attr a;

	(void)snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 0, path);
	assert_int_equal(lookup(f, dir, &a), 0);
	*ret_name = slash ? slash + 1 : path;
	return a.id;
}

/* text - what a path has; "-2" and so on for an error, "/" for a directory. */
static inline const char *text(struct fx *f, const char *path)
{
	static _Thread_local char out[4][300];
	static _Thread_local int turn;
	char *t = out[turn = (turn + 1) % 4];
	uint8_t room[256];
	struct view_attr a;
	struct err e = ERR_INIT;
	struct span s = {0};
	int rc = lookup(f, path, &a);

	if (!rc && a.is_dir)
		return "/";
	if (!rc)
		rc = f->v->ops->read(f->v, a.id, 0, 0, sizeof(room), room, &s, &e);
	if (rc) {
		(void)snprintf(t, 300, "%d", rc);
		return t;
	}
	assert_int_equal(s.len + s.zeros, a.size < sizeof(room) ? a.size : sizeof(room));
	if (s.len)
		memcpy(t, s.mem, s.len);
	t[s.len] = '\0';
	span_done(&s);
	return t;
}

static inline int create(struct fx *f, const char *path, int flags, struct view_attr *a,
			 struct view_handle *h)
{
	const char *name;
	uint64_t dir = dir_of(f, path, &name);
	struct err e = ERR_INIT;

	return f->v->write->create(f->v, dir, name, flags, 0644, a, h, &e);
}

static inline int put(struct fx *f, const char *path, const void *p, size_t len)
{
	struct view_handle h;
	struct view_attr a;
	struct err e = ERR_INIT;
	int rc = create(f, path, O_WRONLY | O_TRUNC, &a, &h);

	if (rc)
		return rc;
	rc = f->v->write->write(f->v, a.id, h.fh, 0, p, len, &e);
	if (!rc)
		rc = f->v->write->flush(f->v, a.id, h.fh, &e);
	f->v->write->release(f->v, a.id, h.fh);
	return rc;
}

static inline int write_text(struct fx *f, const char *path, const char *t)
{
	return put(f, path, t, strlen(t));
}

static inline int move(struct fx *f, const char *from, const char *to, unsigned flags)
{
	const char *a, *b;
	uint64_t x = dir_of(f, from, &a), y = dir_of(f, to, &b);
	struct err e = ERR_INIT;

	return f->v->write->rename(f->v, x, a, y, b, flags, &e);
}

static inline int mkdir_at(struct fx *f, const char *path)
{
	const char *name;
	uint64_t dir = dir_of(f, path, &name);
	struct view_attr a;
	struct err e = ERR_INIT;

	return f->v->write->mkdir(f->v, dir, name, 0755, &a, &e);
}

static inline int unlink_at(struct fx *f, const char *path)
{
	const char *name;
	uint64_t dir = dir_of(f, path, &name);
	struct err e = ERR_INIT;

	return f->v->write->unlink(f->v, dir, name, &e);
}

static inline int rmdir_at(struct fx *f, const char *path)
{
	const char *name;
	uint64_t dir = dir_of(f, path, &name);
	struct err e = ERR_INIT;

	return f->v->write->rmdir(f->v, dir, name, &e);
}

static inline int sync_dir(struct fx *f)
{
	struct err e = ERR_INIT;
	int rc = f->v->write->fsyncdir(f->v, VIEW_ROOT, &e);

	assert_int_equal(rc, e.code);
	return rc;
}

struct names {
	char text[4096];
	uint64_t next;
	int left;
};

static inline bool add_name(void *arg, const char *name, uint64_t id, bool is_dir,
			    const struct view_attr *attr, uint64_t next)
{
	struct names *n = arg;
	size_t at = strlen(n->text);

	(void)id;
	(void)attr;
	if (n->left-- == 0)
		return false;
	assert_true(next > n->next);
	n->next = next;
	(void)snprintf(n->text + at, sizeof(n->text) - at, "%s%s ", name, is_dir ? "/" : "");
	return true;
}

static inline int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* list - sorted names, asked for `step` at a time. */
static inline const char *list(struct fx *f, const char *path, int step)
{
	static char out[4096];
	struct names n = {.left = step};
	char *v[256], *save = NULL;
	struct view_attr a;
	struct err e = ERR_INIT;
	size_t count = 0, at = 0, was;

	assert_int_equal(lookup(f, path, &a), 0);
	do {
		was = strlen(n.text);
		n.left = step;
		assert_int_equal(f->v->ops->list(f->v, a.id, n.next, false, add_name, &n, &e),
				 0);
	} while (strlen(n.text) > was);
	for (char *t = strtok_r(n.text, " ", &save); t; t = strtok_r(NULL, " ", &save))
		v[count++] = t;
	qsort(v, count, sizeof(*v), by_text);
	out[0] = '\0';
	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%s", i ? " " : "", v[i]);
	return out;
}

/* is - a file of the dataset itself; NULL: there is none. */
static inline void is(struct fx *f, const char *key, const char *want)
{
	const struct dfile *x;

	(void)pthread_mutex_lock(&f->d.lock);
	x = data_find(&f->d, key);
	if (!want && x)
		fail_msg("'%s' is there", key);
	if (want && (!x || x->len != strlen(want) || memcmp(x->data, want, x->len) != 0))
		fail_msg("'%s' is not '%s'", key, want);
	(void)pthread_mutex_unlock(&f->d.lock);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

#endif
