/* SPDX-License-Identifier: BSD-3-Clause */
/* A mirrored directory: its entries, the converted views, and changes. */
#include "base/core/clock.h"
#include "fusefs/mirror/slots_int.h"
#include "fusefs/write/writable.h"
#include "tests/unit/fusefs/mirror_fake.h"

static void test_real(void **state)
{
	const struct fixture *f = *state;
	struct view_attr a, b;
	struct buf text;
	struct err e = ERR_INIT;
	int rc;

	put(f, "plain.txt", "hello");
	put_dir(f, "sub");
	put(f, "sub/deep", "");
	assert_int_equal(symlink("../no/where", full(f, "link")), 0);
	assert_int_equal(mkfifo(full(f, "pipe"), 0666), 0);
	assert_int_equal(chmod(full(f, "plain.txt"), 0640), 0);

	assert_int_equal(lookup(f, VIEW_ROOT, "plain.txt", &a), 0);
	assert_true(a.own && a.volatile_attrs && !a.fixed && !a.is_dir && !a.unknown);
	assert_int_equal(a.size, 5);
	assert_int_equal(a.mode, 0640);
	assert_string_equal(read_text(f, a.id, 0, &rc), "hello");
	assert_string_equal(read_text(f, a.id, 3, &rc), "lo");
	assert_string_equal(read_text(f, a.id, 5, &rc), "");
	assert_string_equal(read_text(f, a.id, 500, &rc), "");
	assert_int_equal(lookup(f, VIEW_ROOT, "plain.txt", &b), 0);
	assert_int_equal(a.id, b.id);
	assert_int_equal(getattr(f, a.id, &b), 0);
	assert_int_equal(b.size, 5);

	assert_int_equal(lookup(f, VIEW_ROOT, "sub", &a), 0);
	assert_true(a.is_dir);
	assert_int_equal(f->view->ops->parent(f->view, a.id), VIEW_ROOT);
	assert_int_equal(lookup(f, a.id, "deep", &b), 0);
	assert_int_equal(b.size, 0);
	assert_int_equal(lookup(f, a.id, "plain.txt", &b), -ENOENT);
	assert_int_equal(lookup(f, id_at(f, VIEW_ROOT, "plain.txt"), "x", &b), -ENOTDIR);

	assert_int_equal(lookup(f, VIEW_ROOT, "link", &a), 0);
	assert_true(a.is_link && !a.is_dir);
	assert_int_equal(a.size, 11);
	buf_init(&text, 100);
	assert_int_equal(f->view->ops->readlink(f->view, a.id, &text, &e), 0);
	assert_int_equal(text.len, 11);
	assert_memory_equal(text.data, "../no/where", 11);
	buf_release(&text);
	assert_null(read_text(f, a.id, 0, &rc));

	assert_int_equal(lookup(f, VIEW_ROOT, "pipe", &a), 0);
	assert_true(a.unknown && a.size == 1 && a.mode == 0); /* not an empty file */
	assert_null(read_text(f, a.id, 0, &rc));
	assert_int_equal(rc, -EIO);

	assert_int_equal(lookup(f, VIEW_ROOT, "absent", &a), -ENOENT);
	assert_int_equal(lookup(f, 12345, "x", &a), -ESTALE);
	assert_int_equal(getattr(f, 12345, &a), -ESTALE);
	assert_int_equal(getattr(f, (uint64_t)7 << 36 | 1, &a), -ESTALE);
}

/* The mountpoint is in the directory: an access to it would wait for the mount's own server. */
static void test_mountpoint(void **state)
{
	const struct fixture *f = *state;
	struct view_attr a;

	assert_int_equal(lookup(f, VIEW_ROOT, "mnt", &a), -ENOENT);
	put(f, "mnt/.fake", "FAKE");
	assert_int_equal(lookup(f, VIEW_ROOT, "mnt.nc", &a), -ENOENT);
	put_dir(f, "sub");
	put_dir(f, "sub/mnt");
	assert_int_equal(lookup(f, id_at(f, VIEW_ROOT, "sub"), "mnt", &a), 0);
}

static void test_replaced(void **state)
{
	const struct fixture *f = *state;
	uint64_t old, new_id;
	struct view_attr a;
	int rc;

	put(f, "x", "one");
	old = id_at(f, VIEW_ROOT, "x");
	put(f, "x", "second");
	assert_null(read_text(f, old, 0, &rc));
	assert_int_equal(rc, -ESTALE);
	assert_int_equal(getattr(f, old, &a), -ESTALE);
	new_id = id_at(f, VIEW_ROOT, "x");
	assert_int_not_equal(old, new_id);
	assert_string_equal(read_text(f, new_id, 0, &rc), "second");
	assert_int_equal(getattr(f, old, &a), -ESTALE);
	assert_int_equal(unlink(full(f, "x")), 0);
	assert_int_equal(getattr(f, new_id, &a), -ESTALE);
	assert_int_equal(lookup(f, VIEW_ROOT, "x", &a), -ENOENT);
}

static void test_forget(void **state)
{
	const struct fixture *f = *state;
	struct view_attr a;
	uint64_t id;

	put(f, "x", "one");
	id = id_at(f, VIEW_ROOT, "x");
	assert_int_equal(id_at(f, VIEW_ROOT, "x"), id);
	f->view->ops->forget(f->view, id, 1);
	assert_int_equal(getattr(f, id, &a), 0);
	f->view->ops->forget(f->view, id, 1);
	assert_int_equal(getattr(f, id, &a), -ESTALE);
	assert_int_not_equal(id_at(f, VIEW_ROOT, "x"), id);
	f->view->ops->forget(f->view, VIEW_ROOT, 1000);
	assert_int_equal(getattr(f, VIEW_ROOT, &a), 0);
	f->view->ops->forget(f->view, (uint64_t)9 << 36 | 1, 1); /* never referenced: ignored */
}

static void test_counterparts(void **state)
{
	const struct fixture *f = *state;
	struct view_attr a, b;
	uint64_t tree;
	int rc;

	put(f, "a.nc", "FAKE a");
	put(f, "junk.nc", "nothing");
	put(f, "b.zarr.zip", "FAKE b");
	put_dir(f, "c");
	put(f, "c/.fake", "FAKE c");

	/* a Zarr store view: its directory is known without opening it */
	assert_int_equal(chmod(full(f, "a.nc"), 0640), 0);
	assert_int_equal(lookup(f, VIEW_ROOT, "a.zarr", &a), 0);
	assert_true(a.is_dir && a.own && a.volatile_attrs && !a.inner);
	assert_int_equal(a.mode, 0550);
	assert_int_equal(getattr(f, a.id, &b), 0);
	assert_int_equal(atomic_load(&fake_opened), 0);
	assert_int_equal(f->view->ops->parent(f->view, a.id), VIEW_ROOT);
	tree = a.id;
	assert_int_equal(lookup(f, tree, "data", &a), 0);
	assert_int_equal(atomic_load(&fake_opened), 1);
	assert_true(!a.is_dir && a.own && a.volatile_attrs && a.fixed && a.inner);
	assert_int_equal(a.mode, 0440);
	assert_int_equal(a.id >> 36, tree >> 36);
	assert_string_equal(read_text(f, a.id, 0, &rc), "FAKE a");
	assert_string_equal(read_text(f, a.id, 1, &rc), "AKE a");
	assert_int_equal(lookup(f, tree, "other", &a), -ENOENT);

	/* a file: its size needs the dataset */
	assert_int_equal(lookup(f, VIEW_ROOT, "b.nc", &a), 0);
	assert_true(!a.is_dir && !a.unknown && !a.inner);
	assert_int_equal(a.size, 6);
	assert_int_equal(atomic_load(&fake_opened), 2);
	assert_string_equal(read_text(f, a.id, 0, &rc), "FAKE b");
	assert_int_equal(lookup(f, a.id, "x", &b), -ENOTDIR);
	assert_int_equal(lookup(f, VIEW_ROOT, "c.nc", &a), 0);
	assert_string_equal(read_text(f, a.id, 0, &rc), "FAKE c");

	assert_int_equal(lookup(f, VIEW_ROOT, "junk.zarr", &a), -ENOENT);
	assert_int_equal(lookup(f, VIEW_ROOT, "b.zarr", &a), -ENOENT);
	assert_int_equal(lookup(f, VIEW_ROOT, "a.nc.nc", &a), -ENOENT);
}

/* A file of an older format has a netCDF-4 file in addition to its Zarr store view; a netCDF-4 file
 * has not. */
static void test_older(void **state)
{
	const struct fixture *f = *state;
	struct view_attr a, b;
	int rc;

	put(f, "o.nc", "FAKE old");
	put(f, "n.nc", "FAKE new");
	put(f, "p.h5", "FAKE old");
	assert_int_equal(lookup(f, VIEW_ROOT, "o.zarr", &a), 0);
	assert_int_equal(lookup(f, VIEW_ROOT, "o.nc4", &b), 0);
	assert_true(a.is_dir && !b.is_dir);
	assert_int_not_equal(a.id >> 36, b.id >> 36);
	assert_int_equal(b.size, 8);
	assert_string_equal(read_text(f, b.id, 0, &rc), "FAKE old");
	assert_string_equal(read_text(f, id_at(f, a.id, "data"), 0, &rc), "FAKE old");
	assert_int_equal(lookup(f, VIEW_ROOT, "n.nc4", &a), -ENOENT);
	assert_int_equal(lookup(f, VIEW_ROOT, "p.nc4", &a), -ENOENT);

	/* both follow the file */
	put(f, "o.nc", "FAKE older");
	assert_int_equal(getattr(f, b.id, &a), -ESTALE);
	assert_int_equal(lookup(f, VIEW_ROOT, "o.nc4", &b), 0);
	assert_int_equal(b.size, 10);
	put(f, "o.nc", "FAKE new one");
	assert_int_equal(lookup(f, VIEW_ROOT, "o.nc4", &b), -ENOENT);
	assert_int_equal(lookup(f, VIEW_ROOT, "o.zarr", &a), 0);
	put(f, "o.nc4", "in the way");
	assert_int_equal(lookup(f, VIEW_ROOT, "o.nc4", &b), 0);
	assert_string_equal(read_text(f, b.id, 0, &rc), "in the way");
}

static void test_names(void **state)
{
	const struct fixture *f = *state;
	struct view_attr a;
	uint64_t c;
	int rc;

	/* the lowest rank of several applies; an existing name has precedence */
	put(f, "a.h5", "FAKE h5");
	put(f, "a.nc", "FAKE nc");
	assert_string_equal(
		read_text(f, id_at(f, id_at(f, VIEW_ROOT, "a.zarr"), "data"), 0, &rc),
		"FAKE nc");
	assert_int_equal(unlink(full(f, "a.nc")), 0);
	assert_string_equal(
		read_text(f, id_at(f, id_at(f, VIEW_ROOT, "a.zarr"), "data"), 0, &rc),
		"FAKE h5");
	put(f, "a.zarr", "real");
	assert_string_equal(read_text(f, id_at(f, VIEW_ROOT, "a.zarr"), 0, &rc), "real");

	/* links have no converted views, and neither have files inside a dataset */
	assert_int_equal(symlink("a.h5", full(f, "l.nc")), 0);
	assert_int_equal(lookup(f, VIEW_ROOT, "l.zarr", &a), -ENOENT);
	put_dir(f, "c");
	put_dir(f, "c/d");
	put(f, "c/x.nc", "FAKE x");
	put(f, "c/d/y.nc", "FAKE y");
	c = id_at(f, VIEW_ROOT, "c");
	assert_int_equal(lookup(f, c, "x.zarr", &a), 0);
	put(f, "c/.fake", "FAKE c");
	c = id_at(f, VIEW_ROOT, "c");
	assert_int_equal(lookup(f, c, "x.zarr", &a), -ENOENT);
	assert_int_equal(lookup(f, id_at(f, c, "d"), "y.zarr", &a), -ENOENT);
}

static void test_changed(void **state)
{
	const struct fixture *f = *state;
	uint64_t tree, data, file;
	struct view_attr a;
	FILE *out;
	int rc;

	put(f, "a.nc", "FAKE 1");
	tree = id_at(f, VIEW_ROOT, "a.zarr");
	data = id_at(f, tree, "data");
	put(f, "a.nc", "FAKE two");
	assert_int_equal(getattr(f, tree, &a), -ESTALE);
	assert_null(read_text(f, data, 0, &rc));
	assert_int_equal(rc, -ESTALE);
	assert_int_not_equal(id_at(f, VIEW_ROOT, "a.zarr"), tree);
	tree = id_at(f, VIEW_ROOT, "a.zarr");
	assert_string_equal(read_text(f, id_at(f, tree, "data"), 0, &rc), "FAKE two");
	out = fopen(full(f, "a.nc"), "a"); /* in place */
	assert_true(out && fputs("!", out) >= 0 && fclose(out) == 0);
	assert_int_equal(getattr(f, tree, &a), -ESTALE);
	assert_int_not_equal(id_at(f, VIEW_ROOT, "a.zarr"), tree);
	tree = id_at(f, VIEW_ROOT, "a.zarr");
	assert_int_equal(unlink(full(f, "a.nc")), 0);
	assert_int_equal(lookup(f, VIEW_ROOT, "a.zarr", &a), -ENOENT);
	assert_int_equal(getattr(f, tree, &a), -ESTALE);

	/* the dataset of a file that was closed, and then changed */
	put(f, "b.nc", "FAKE b");
	data = id_at(f, id_at(f, VIEW_ROOT, "b.zarr"), "data");
	for (int i = 0; i < 3; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "z%d.zip", i);
		put(f, name, "FAKE z");
		(void)snprintf(name, sizeof(name), "z%d.nc", i);
		(void)id_at(f, VIEW_ROOT, name);
	}
	assert_string_equal(read_text(f, data, 0, &rc), "FAKE b"); /* opened again */
	file = id_at(f, VIEW_ROOT, "z0.nc");
	(void)id_at(f, VIEW_ROOT, "z1.nc");
	put(f, "b.nc", "FAKE B");
	assert_null(read_text(f, data, 0, &rc));
	assert_int_equal(rc, -ESTALE);
	assert_string_equal(read_text(f, file, 0, &rc), "FAKE z");
}

/* A Zarr store whose root directory looks unchanged: its contents count. */
static void test_closed_tree(void **state)
{
	const struct fixture *f = *state;
	uint64_t id;
	int rc;

	put_dir(f, "t.zarr");
	put(f, "t.zarr/.fake", "FAKE t");
	for (int i = 0; i < 3; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "z%d.zip", i);
		put(f, name, "FAKE z");
	}
	id = id_at(f, VIEW_ROOT, "t.nc");
	for (int round = 0; round < 2; round++) {
		(void)id_at(f, VIEW_ROOT, "z0.nc");
		(void)id_at(f, VIEW_ROOT, "z1.nc"); /* this closes t */
		if (round == 0)
			assert_string_equal(read_text(f, id, 0, &rc), "FAKE t");
		else
			put(f, "t.zarr/.fake", "FAKE T");
	}
	assert_null(read_text(f, id, 0, &rc));
	assert_int_equal(rc, -ESTALE);
	assert_string_equal(read_text(f, id_at(f, VIEW_ROOT, "t.nc"), 0, &rc), "FAKE T");
	assert_true(atomic_load(&fake_most_views) <= 2);
}

/* More Zarr stores than are parked for the kernel: open files of the others are stale. */
static void test_many_trees(void **state)
{
	enum { TREES = 40 }; /* 2 are open, 32 parked */
	const struct fixture *f = *state;
	uint64_t ids[TREES];
	int stale = 0, rc;

	for (int i = 0; i < TREES; i++) {
		char name[32], text[16];

		(void)snprintf(name, sizeof(name), "t%d.zarr", i);
		put_dir(f, name);
		(void)snprintf(name, sizeof(name), "t%d.zarr/.fake", i);
		(void)snprintf(text, sizeof(text), "FAKE %d", i);
		put(f, name, text);
		(void)snprintf(name, sizeof(name), "t%d.nc", i);
		ids[i] = id_at(f, VIEW_ROOT, name);
	}
	assert_int_equal(atomic_load(&fake_views), 2);
	assert_int_equal(atomic_load(&fake_open_now), 34);
	for (int i = 0; i < TREES; i++) {
		char want[16];
		const char *got = read_text(f, ids[i], 0, &rc);

		(void)snprintf(want, sizeof(want), "FAKE %d", i);
		if (got)
			assert_string_equal(got, want);
		else
			assert_int_equal(rc, -ESTALE);
		stale += !got;
	}
	assert_int_equal(stale, TREES - 34);
	assert_string_equal(read_text(f, id_at(f, VIEW_ROOT, "t0.nc"), 0, &rc), "FAKE 0");
	f->view->ops->forget(f->view, id_at(f, VIEW_ROOT, "t0.nc"), 2);
	for (int i = 1; i < TREES; i++)
		f->view->ops->forget(f->view, ids[i], 1);
	assert_int_equal(atomic_load(&fake_open_now), 2);
}

static void test_bad(void **state)
{
	const struct fixture *f = *state;
	struct err e = ERR_INIT;
	struct view_attr a;
	uint64_t tree, file;
	int rc;

	put(f, "a.nc", "FAKE bad");
	put(f, "b.zip", "FAKE bad");
	put(f, "good.nc", "FAKE good");
	tree = id_at(f, VIEW_ROOT, "a.zarr");
	assert_int_equal(f->view->ops->lookup(f->view, tree, "data", 4, &a, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "it is bad"));
	e = (struct err)ERR_INIT;
	assert_int_equal(f->view->ops->lookup(f->view, tree, "data", 4, &a, &e), -EBADMSG);
	assert_string_equal(e.msg, ""); /* was reported before */

	assert_int_equal(lookup(f, VIEW_ROOT, "b.nc", &a), 0);
	assert_true(a.unknown && !a.fixed && a.size == 1);
	file = a.id;
	assert_null(read_text(f, file, 0, &rc));
	assert_int_equal(rc, -EBADMSG);
	assert_int_equal(getattr(f, file, &a), 0);
	assert_true(a.unknown);
	assert_string_equal(
		read_text(f, id_at(f, id_at(f, VIEW_ROOT, "good.zarr"), "data"), 0, &rc),
		"FAKE good");

	put(f, "b.zip", "FAKE b");
	assert_int_equal(lookup(f, VIEW_ROOT, "b.nc", &a), 0);
	assert_false(a.unknown);
	assert_int_not_equal(a.id, file);
	put(f, "a.nc", "FAKE a");
	assert_int_equal(lookup(f, id_at(f, VIEW_ROOT, "a.zarr"), "data", &a), 0);
}

/* During a shortage of resources a request waits for its end, and fails only after that. */
static void test_short(void **state)
{
	const struct fixture *f = *state;
	struct err e = ERR_INIT;
	struct view_attr a;
	uint64_t tree;
	int rc;

	put(f, "a.nc", "FAKE a");
	put(f, "b.nc", "FAKE b");
	tree = id_at(f, VIEW_ROOT, "a.zarr");
	atomic_store(&fake_short, 3);
	assert_int_equal(lookup(f, tree, "data", &a), 0);
	assert_int_equal(atomic_load(&fake_short), 0);
	assert_string_equal(read_text(f, a.id, 0, &rc), "FAKE a");

	tree = id_at(f, VIEW_ROOT, "b.zarr");
	atomic_store(&fake_short, 1000000);
	assert_int_equal(f->view->ops->lookup(f->view, tree, "data", 4, &a, &e), -EMFILE);
	assert_non_null(strstr(e.msg, "it has no descriptors"));
	rc = atomic_load(&fake_short);
	assert_int_equal(lookup(f, tree, "data", &a), -EMFILE); /* does not wait that long again */
	assert_in_range(rc - atomic_load(&fake_short), 0, 1);
	atomic_store(&fake_short, 0);
	while (lookup(f, tree, "data", &a) == -EMFILE)
		;
	assert_string_equal(read_text(f, a.id, 0, &rc), "FAKE b");
}

/* Readers of five datasets, with room for two. */
struct reader {
	const struct fixture *f;
	int first;
	atomic_int bad;
};

static void *read_on(void *arg)
{
	struct reader *r = arg;

	for (int i = 0; i < 200; i++) {
		char name[16], want[16];
		struct view_attr a;
		const char *got;
		int n = (r->first + i) % 5, rc;

		(void)snprintf(name, sizeof(name), "%d.nc", n);
		(void)snprintf(want, sizeof(want), "FAKE %d", n);
		if (lookup(r->f, VIEW_ROOT, name, &a) != 0) {
			atomic_fetch_add(&r->bad, 1);
			continue;
		}
		got = read_text(r->f, a.id, (uint64_t)(i % 2), &rc);
		if (!got || strcmp(got, want + i % 2) != 0)
			atomic_fetch_add(&r->bad, 1);
		r->f->view->ops->forget(r->f->view, a.id, 1);
	}
	return NULL;
}

static void test_readers(void **state)
{
	const struct fixture *f = *state;
	struct reader readers[4];
	pthread_t threads[4];

	for (int i = 0; i < 5; i++) {
		char name[16], text[16];

		(void)snprintf(name, sizeof(name), "%d.zip", i);
		(void)snprintf(text, sizeof(text), "FAKE %d", i);
		put(f, name, text);
	}
	for (int i = 0; i < 4; i++) {
		readers[i] = (struct reader){.f = f, .first = i};
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(atomic_load(&readers[i].bad), 0);
	}
	assert_true(atomic_load(&fake_most_views) <= 2);
}

/* Opening a dataset for writing waits while the same dataset is closed, and for no other one. */
static void test_closing(void **state)
{
	const struct fixture *f = *state;
	struct mirror *m = mirror_of(f->view);
	char path[] = "sub/a.zarr";
	struct slot one = {.path = path, .state = SLOT_CLOSING};

	m->open[m->n_open++] = &one;
	assert_true(slots_closing(m, "sub/a.zarr", false));
	assert_false(slots_closing(m, "a.zarr", false));
	assert_false(slots_closing(m, "sub/a.zarr.zip", false));
	assert_false(slots_closing(m, "sub", false));
	assert_true(slots_closing(m, "sub", true));
	one.state = SLOT_OPEN;
	assert_false(slots_closing(m, "sub/a.zarr", false));
	m->n_open--;
}

/* Names with a rule have a limit: a slot that is dropped because its dataset changed does not
 * count. */
static void test_shaped(void **state)
{
	const struct fixture *f = *state;
	struct mirror *m = mirror_of(f->view);
	const struct stat st = {.st_mode = S_IFREG};
	struct err e = ERR_INIT;
	uint32_t number;

	assert_int_equal(slot_of(m, NAME_SHAPED_TREE, "a.nc", "a@x=1.zarr", &st, &number, &e), 0);
	assert_int_equal(m->n_shaped, 1);
	assert_int_equal(slot_revalidate(m, number, NULL, &e), -ESTALE);
	slot_forget(m, number, 1);
	assert_int_equal(m->n_shaped, 0);
}

/* A file without read permission is EACCES when it is opened, as in a writable mirror. */
static void test_open(void **state)
{
	const struct fixture *f = *state;
	const struct view_ops *ops = f->view->ops;
	const bool root = geteuid() == 0;
	struct err e = ERR_INIT;
	uint64_t id;

	put(f, "x", "one");
	put(f, "a.nc", "FAKE a");
	id = id_at(f, VIEW_ROOT, "x");
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(ops->open(f->view, id, &e), 0);
	assert_int_equal(ops->open(f->view, id_at(f, VIEW_ROOT, "a.zarr"), &e), 0);
	assert_int_equal(chmod(full(f, "x"), 0), 0);
	if (root)
		assert_int_equal(seteuid(65534), 0);
	assert_int_equal(ops->open(f->view, id, &e), -EACCES);
	if (root)
		assert_int_equal(seteuid(0), 0);
}

static ssize_t read_some(const struct fixture *f, uint64_t id, char *ret, struct err *e)
{
	uint8_t room[16];
	struct span s = {.fd = -1};
	int rc = f->view->ops->read(f->view, id, 0, 0, sizeof(room), room, &s, e);

	if (rc)
		return rc;
	memcpy(ret, s.mem, s.len);
	ret[s.len] = '\0';
	rc = (int)s.len;
	span_done(&s);
	return rc;
}

/* An open file is read from one descriptor, even after another file took its name. */
static void test_open_file(void **state)
{
	const struct fixture *f = *state;
	const struct view_ops *ops = f->view->ops;
	struct err e = ERR_INIT;
	char text[17], to[128];
	uint64_t id;

	put(f, "x", "one");
	id = id_at(f, VIEW_ROOT, "x");
	assert_int_equal(read_some(f, id, text, &e), 3);
	assert_int_equal(ops->open(f->view, id, &e), 0);
	assert_int_equal(ops->open(f->view, id, &e), 0);
	put(f, "y", "other");
	(void)snprintf(to, sizeof(to), "%s/x", f->dir);
	assert_int_equal(rename(full(f, "y"), to), 0);
	assert_int_equal(read_some(f, id, text, &e), 3);
	assert_string_equal(text, "one");
	ops->release(f->view, id);
	assert_int_equal(read_some(f, id, text, &e), 3);
	ops->release(f->view, id);
	assert_int_equal(read_some(f, id, text, &e), -ESTALE);
}

/* Waits use a clock that cannot be set. */
static void test_clock(void **state)
{
	const struct fixture *f = *state;
	struct mirror *m = mirror_of(f->view);
	const int64_t end = clock_ms() + 20;
	const struct timespec until = {.tv_sec = end / 1000, .tv_nsec = end % 1000 * 1000000};
	int rc = 0;

	(void)pthread_mutex_lock(&m->lock);
	while (rc == 0)
		rc = pthread_cond_timedwait(&m->moved, &m->lock, &until);
	(void)pthread_mutex_unlock(&m->lock);
	assert_int_equal(rc, ETIMEDOUT);
	assert_true(clock_ms() >= end); /* by the other clock it ended long ago */
}

/* A view that can create files, and nothing else; its dataset changes meanwhile. */
static struct mirror *changing;
static int made, released, finished;

static int fake_create(struct view *v, uint64_t dir, const char *name, int flags,
		       mode_t mode, struct view_attr *attr, struct view_handle *ret,
		       struct err *e)
{
	(void)v;
	(void)dir;
	(void)name;
	(void)flags;
	(void)mode;
	made++;
	*attr = (struct view_attr){.id = 7};
	*ret = (struct view_handle){.fh = 42};
	assert_int_equal(slot_revalidate(changing, changing->open[0]->number, NULL, e),
			 -ESTALE);
	*e = (struct err)ERR_INIT;
	return 0;
}

static void fake_release(struct view *v, uint64_t id, uint64_t fh)
{
	(void)v;
	assert_int_equal(id, 7);
	assert_int_equal(fh, 42);
	released++;
}

static int fake_finish(struct view *v, bool last, struct err *e)
{
	(void)v;
	(void)e;
	assert_true(last); /* it changed: it is never opened again */
	finished++;
	return 0;
}

/* A file that a program has created is open, and so is the dataset, whatever happens meanwhile. */
static void test_create(void **state)
{
	static const struct view_write_ops writes = {.create = fake_create,
						     .release = fake_release,
						     .finish = fake_finish};
	const struct fixture *f = *state;
	struct mirror *m = mirror_of(f->view);
	struct view_handle h = {0};
	struct view_attr tree, a;
	struct err e = ERR_INIT;
	struct slot *s;

	changing = m;
	put(f, "a.nc", "FAKE a");
	assert_int_equal(lookup(f, VIEW_ROOT, "a.zarr", &tree), 0);
	assert_int_equal(lookup(f, tree.id, "data", &a), 0);
	s = slot_if_open(m, number_of(tree.id));
	assert_non_null(s);
	s->view->write = &writes;
	assert_int_equal(s->known, 2);
	slot_put(m, s, 0);

	assert_int_equal(mirror_write_ops.create(f->view, tree.id, "x", O_WRONLY, 0600, &a, &h, &e),
			 0);
	assert_int_equal(made, 1);
	assert_int_equal(s->known, 3);
	assert_int_equal(s->handles, 1);
	assert_int_equal(s->users, 1);
	mirror_write_ops.release(f->view, a.id, h.fh);
	assert_int_equal(released, 1);
	assert_int_equal(finished, 1);
	f->view->ops->forget(f->view, a.id, 1);
}

/* A new file that is written again while a flush looks whether it is a dataset. */
static struct view *flushed;
static uint64_t flushed_id, flushed_fh;
static int looked;

static int fake_write_bid(const struct source_at *at NZ_UNUSED, struct err *e)
{
	if (looked++ == 0)
		assert_int_equal(mirror_write_ops.write(flushed, flushed_id, flushed_fh, 4,
							(const uint8_t *)" x", 2, e),
				 0);
	return 1;
}

/* Bytes that are written during a flush are looked at by the next one. */
static void test_flush(void **state)
{
	static const struct source_ops format = {.name = "write", .bid = fake_write_bid};
	static const struct source_ops *const formats[] = {&format};
	struct fixture *f = *state;
	struct view_handle h = {0};
	struct err e = ERR_INIT;
	struct view_attr a;

	f->setup.formats = formats;
	f->setup.n_formats = 1;
	f->setup.zarr = &format; /* it is a dataset of the other kind: it stays as it is */
	assert_int_equal(mirror_write_ops.create(f->view, VIEW_ROOT, "new.nc", O_RDWR, 0600,
						 &a, &h, &e),
			 0);
	flushed = f->view;
	flushed_id = a.id;
	flushed_fh = h.fh;
	assert_int_equal(mirror_write_ops.write(f->view, a.id, h.fh, 0, (const uint8_t *)"FAKE",
						4, &e),
			 0);
	assert_int_equal(mirror_write_ops.flush(f->view, a.id, h.fh, &e), 0);
	assert_int_equal(looked, 1);
	assert_int_equal(mirror_write_ops.flush(f->view, a.id, h.fh, &e), 0);
	assert_int_equal(looked, 2);
	assert_int_equal(mirror_write_ops.flush(f->view, a.id, h.fh, &e), 0);
	assert_int_equal(looked, 2); /* nothing was written since */
	mirror_write_ops.release(f->view, a.id, h.fh);
	f->view->ops->forget(f->view, a.id, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_real, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mountpoint, setup, teardown),
		cmocka_unit_test_setup_teardown(test_replaced, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_counterparts, setup_roomy, teardown),
		cmocka_unit_test_setup_teardown(test_older, setup_roomy, teardown),
		cmocka_unit_test_setup_teardown(test_names, setup_roomy, teardown),
		cmocka_unit_test_setup_teardown(test_changed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closed_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_trees, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad, setup, teardown),
		cmocka_unit_test_setup_teardown(test_short, setup, teardown),
		cmocka_unit_test_setup_teardown(test_readers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_closing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shaped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_create, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flush, setup, teardown),
		cmocka_unit_test_setup_teardown(test_clock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open, setup, teardown),
		cmocka_unit_test_setup_teardown(test_open_file, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
