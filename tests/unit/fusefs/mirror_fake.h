/* SPDX-License-Identifier: BSD-3-Clause */
/* mirror_fake.h - a directory for tests of the mirror, with fake formats and views: a file that
 * begins with "FAKE" and a directory that contains a file ".fake" are datasets. Their content is
 * the text after it; "FAKE bad" cannot be opened. A file that begins with "FAKE old" has an older
 * format, with one more converted view. */
#ifndef TESTS_UNIT_FUSEFS_MIRROR_FAKE_H
#define TESTS_UNIT_FUSEFS_MIRROR_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "fusefs/mirror/view.h"

enum { FAKE_TEXT = 64, FAKE_FILE = 3 };

/* sources open now, and opened in total; views open now, and at most */
static atomic_int fake_open_now, fake_opened, fake_views, fake_most_views;
static atomic_int fake_short; /* number of openings that will fail for lack of descriptors */

struct fake_source {
	struct source base;
	int fd;
	char text[FAKE_TEXT];
};

struct fake_view {
	struct view base;
	struct source *source;
	bool nc;
	char name[NAME_BYTES];
};

/* fake_text - the content of a dataset: 0, or -1 if it is none. */
static inline int fake_text(int fd, char out[FAKE_TEXT])
{
	struct stat st;
	int file = fd;
	ssize_t n;

	if (fstat(fd, &st) < 0)
		return -1;
	if (S_ISDIR(st.st_mode))
		file = openat(fd, ".fake", O_RDONLY | O_CLOEXEC);
	memset(out, 0, FAKE_TEXT);
	n = file >= 0 ? pread(file, out, FAKE_TEXT - 1, 0) : -1;
	if (file != fd && file >= 0)
		(void)close(file);
	return n >= 4 && memcmp(out, "FAKE", 4) == 0 ? 0 : -1;
}

static inline int fake_bid(const struct source_at *at, struct err *e)
{
	char text[FAKE_TEXT];

	(void)e;
	return fake_text(at->fd, text) == 0;
}

static inline int fake_old_bid(const struct source_at *at, struct err *e)
{
	char text[FAKE_TEXT];

	(void)e;
	return fake_text(at->fd, text) == 0 && strncmp(text, "FAKE old", 8) == 0 ? 2 : 0;
}

static const struct source_ops fake_format;

static inline int fake_open(const struct source_at *at, const struct source_options *opts,
			    struct source **ret, struct err *e)
{
	struct fake_source *s = calloc(1, sizeof(*s));

	(void)opts;
	assert_non_null(s);
	if (atomic_load(&fake_short) > 0 && atomic_fetch_sub(&fake_short, 1) > 0) {
		free(s);
		return err_set(e, -EMFILE, "it has no descriptors");
	}
	if (fake_text(at->fd, s->text) < 0 || strncmp(s->text, "FAKE bad", 8) == 0) {
		free(s);
		return err_set(e, -EBADMSG, "it is bad");
	}
	s->base.ops = &fake_format;
	s->base.ds.st = at->st;
	s->fd = at->fd;
	atomic_fetch_add(&fake_open_now, 1);
	atomic_fetch_add(&fake_opened, 1);
	*ret = &s->base;
	return 0;
}

static inline void fake_close(struct source *s)
{
	struct fake_source *f = CONTAINER_OF(s, struct fake_source, base);

	(void)close(f->fd);
	free(f);
	atomic_fetch_sub(&fake_open_now, 1);
}

static inline int fake_poll(struct source *s, struct err *e)
{
	struct fake_source *f = CONTAINER_OF(s, struct fake_source, base);
	char text[FAKE_TEXT];

	if (fake_text(f->fd, text) == 0 && strcmp(text, f->text) == 0)
		return 0;
	return err_set(e, -ESTALE, "the text changed");
}

static const struct source_ops fake_format = {
	.name = "fake",
	.bid = fake_bid,
	.open = fake_open,
	.close = fake_close,
	.poll = fake_poll,
};

static const struct source_ops fake_old_format = {
	.name = "old",
	.bid = fake_old_bid,
	.open = fake_open,
	.close = fake_close,
	.poll = fake_poll,
};

/* The views: a directory with the file "data", id FAKE_FILE; or one file, id 2. */

static inline struct fake_view *fake_of(struct view *v)
{
	return CONTAINER_OF(v, struct fake_view, base);
}

static inline const char *fake_content(struct view *v)
{
	return CONTAINER_OF(fake_of(v)->source, struct fake_source, base)->text;
}

static inline int fake_getattr(struct view *v, uint64_t id, struct view_attr *ret,
			       struct err *e)
{
	bool nc = fake_of(v)->nc;

	if (id != VIEW_ROOT && id != (nc ? 2 : FAKE_FILE))
		return err_set(e, -ESTALE, "unknown id");
	*ret = (struct view_attr){.id = id, .nlink = 1, .is_dir = id == VIEW_ROOT};
	if (id != VIEW_ROOT)
		ret->size = strlen(fake_content(v));
	return 0;
}

static inline int fake_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
			      struct view_attr *ret, struct err *e)
{
	const char *own = fake_of(v)->nc ? fake_of(v)->name : "data";

	if (dir != VIEW_ROOT)
		return err_set(e, -ENOTDIR, "not a directory");
	if (strlen(own) != len || memcmp(own, name, len) != 0)
		return err_set(e, -ENOENT, "absent");
	return fake_getattr(v, fake_of(v)->nc ? 2 : FAKE_FILE, ret, e);
}

static inline int fake_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr,
			    view_emit *emit, void *arg, struct err *e)
{
	struct view_attr a;

	(void)e;
	assert_int_equal(dir, VIEW_ROOT);
	assert_int_equal(fake_getattr(v, FAKE_FILE, &a, NULL), 0);
	if (cookie == 0)
		(void)emit(arg, "data", FAKE_FILE, false, want_attr ? &a : NULL, 1);
	return 0;
}

/* fake_read - even offsets from memory, odd ones into room. */
static inline int fake_read(struct view *v, uint64_t id, uint64_t fh NZ_UNUSED, uint64_t off,
			    size_t len, uint8_t *room, struct span *ret, struct err *e)
{
	const char *text = fake_content(v);
	size_t all = strlen(text), n = off < all ? all - (size_t)off : 0;

	(void)id;
	(void)e;
	n = n < len ? n : len;
	if (off % 2)
		memcpy(room, text + off, n);
	*ret = (struct span){
		.mem = off % 2 ? room : (const uint8_t *)text + off, .fd = -1, .len = n};
	return 0;
}

static inline uint64_t fake_parent(struct view *v, uint64_t dir)
{
	(void)v;
	(void)dir;
	return VIEW_ROOT;
}

static inline void fake_view_close(struct view *v)
{
	atomic_fetch_sub(&fake_views, 1);
	free(fake_of(v));
}

static const struct view_ops fake_view_ops = {
	.name = "fake",
	.close = fake_view_close,
	.lookup = fake_lookup,
	.getattr = fake_getattr,
	.list = fake_list,
	.read = fake_read,
	.parent = fake_parent,
};

static inline int fake_view_open(struct source *s, const struct cfg *cfg,
				 const struct view_request *want, struct view **ret,
				 struct err *e)
{
	struct fake_view *v = calloc(1, sizeof(*v));
	int now = atomic_fetch_add(&fake_views, 1) + 1;

	for (int most = atomic_load(&fake_most_views); now > most;)
		if (atomic_compare_exchange_weak(&fake_most_views, &most, now))
			break;
	(void)cfg;
	(void)e;
	assert_non_null(v);
	v->base.ops = &fake_view_ops;
	v->base.source = s;
	v->source = s;
	v->nc = want->nc;
	(void)snprintf(v->name, sizeof(v->name), "%s", want->name);
	*ret = &v->base;
	return 0;
}

/* The fixture: a directory, mirrored, that is empty at first. */

struct fixture {
	char dir[64], mnt[80];
	struct cfg cfg;
	struct app setup;
	struct view *view;
};

static const struct source_ops *const fake_formats[] = {&fake_format, &fake_old_format};

static inline int setup_with(void **state, uint32_t open_datasets)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct err e = ERR_INIT;

	assert_non_null(f);
	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/nczarrfs-mirror-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->mnt, sizeof(f->mnt), "%s/mnt", f->dir);
	assert_int_equal(mkdir(f->mnt, 0755), 0);
	f->cfg = (struct cfg){
		.source = f->dir, .mountpoint = f->mnt, .limits.open_datasets = open_datasets};
	f->setup = (struct app){
		.cfg = &f->cfg,
		.formats = fake_formats,
		.n_formats = 2,
		.hdf5 = &fake_format,
		.view_open = fake_view_open,
	};
	atomic_store(&fake_opened, 0);
	atomic_store(&fake_most_views, 0);
	assert_int_equal(mirror_wanted(&f->setup, &e), 1);
	assert_int_equal(mirror_open(&f->setup, &f->view, &e), 0);
	assert_true(f->view->follows);
	*state = f;
	return 0;
}

static inline int setup(void **state)
{
	return setup_with(state, 2);
}

static inline int setup_roomy(void **state)
{
	return setup_with(state, 64);
}

static inline int teardown(void **state)
{
	struct fixture *f = *state;
	char command[100];

	f->view->ops->close(f->view);
	assert_int_equal(atomic_load(&fake_open_now), 0);
	assert_int_equal(atomic_load(&fake_views), 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

static inline const char *full(const struct fixture *f, const char *name)
{
	static _Thread_local char path[4][512];
	static _Thread_local int turn;

	turn = (turn + 1) % 4;
	(void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", f->dir, name);
	return path[turn];
}

/* put - replace a file. */
static inline void put(const struct fixture *f, const char *name, const char *text)
{
	char tmp[80];
	FILE *out;

	(void)snprintf(tmp, sizeof(tmp), "%s/mnt/tmp", f->dir);
	out = fopen(tmp, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(rename(tmp, full(f, name)), 0);
}

static inline void put_dir(const struct fixture *f, const char *name)
{
	assert_int_equal(mkdir(full(f, name), 0755), 0);
}

static inline int lookup(const struct fixture *f, uint64_t dir, const char *name,
			 struct view_attr *ret)
{
	struct err e = ERR_INIT;

	return f->view->ops->lookup(f->view, dir, name, strlen(name), ret, &e);
}

/* id_at - id of an existing entry. */
static inline uint64_t id_at(const struct fixture *f, uint64_t dir, const char *name)
{
	struct view_attr a;

	assert_int_equal(lookup(f, dir, name, &a), 0);
	return a.id;
}

static inline int getattr(const struct fixture *f, uint64_t id, struct view_attr *ret)
{
	struct err e = ERR_INIT;

	return f->view->ops->getattr(f->view, id, ret, &e);
}

/* read_text - the result of a read of up to 63 bytes at off; NULL for an error, in *ret_rc. */
static inline const char *read_text(const struct fixture *f, uint64_t id, uint64_t off,
				    int *ret_rc)
{
	static _Thread_local char text[FAKE_TEXT];
	uint8_t room[FAKE_TEXT - 1];
	struct err e = ERR_INIT;
	struct span s;

	*ret_rc = f->view->ops->read(f->view, id, 0, off, sizeof(room), room, &s, &e);
	if (*ret_rc)
		return NULL;
	if (s.len)
		memcpy(text, s.mem, s.len);
	text[s.len] = '\0';
	span_done(&s);
	return text;
}

#endif
