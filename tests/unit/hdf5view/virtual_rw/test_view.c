/* SPDX-License-Identifier: BSD-3-Clause */
/* The writable virtual file: a commit gets the bytes that programs write, and they are there
 * afterwards; open handles keep their content; scratch files take the file's place. */
#include "base/process/child.h"
#include "base/os/cancel.h"
#include "tests/unit/hdf5view/virtual_rw/virtual_rw_fake.h"

#include <glob.h>

static void test_reads(void **state)
{
	struct rwf *f = *state;

	assert_true(rwf_shows(f, "x.nc", "packed", 1));
	assert_true(rwf_shows(f, "x.nc", "plain", 2));
	assert_int_equal(f->commits, 0);
}

/* Opening for writing and closing writes nothing. */
static void test_no_write(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id);

	assert_true(rwf_sees(f, id, fh, "packed", 1));
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_int_equal(f->commits, 0);
	assert_int_equal(rwf_id(f, "x.nc"), id);
}

static void test_edit(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id), size = rwf_size(f, "x.nc");

	f->extra = "more";
	rwf_edit(f, id, fh, "more", 3);
	assert_true(rwf_sees(f, id, fh, "more", 3));
	assert_true(rwf_sees(f, id, fh, "packed", 1));
	assert_true(rwf_size(f, "x.nc") > size);
	assert_int_equal(f->commits, 0);
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_int_equal(f->commits, 1);
	assert_true(f->had_was && f->was_row && f->readable && f->has_extra);
	assert_true(f->changed > 0 && f->changed * RW_PAGE < size);
	assert_int_not_equal(rwf_id(f, "x.nc"), id);
	assert_true(rwf_shows(f, "x.nc", "more", 3));
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
	assert_true(rwf_shows(f, "x.nc", "plain", 2));
}

/* Opening waits for a commit, and is given up when that is requested. */
static void test_given_up(void **state)
{
	struct rwf *f = *state;
	uint64_t id = rwf_id(f, "x.nc");
	struct view_handle h;
	struct cancel cancel;

	(void)pthread_mutex_lock(&nc_rw(f->v)->commit);
	cancel_begin(&cancel);
	cancel_request(&cancel);
	assert_int_equal(f->v->write->open(f->v, id, O_RDONLY, &h, NULL), -EINTR);
	cancel_end(&cancel);
	(void)pthread_mutex_unlock(&nc_rw(f->v)->commit);
	assert_int_equal(rwf_close(f, id, rwf_open(f, "x.nc", O_RDONLY, &id)), 0);
}

/* A reader, a later writer, a reader of the written content. */
static void test_old_readers(void **state)
{
	struct rwf *f = *state;
	uint64_t id[4], fh[4];

	fh[0] = rwf_open(f, "x.nc", O_RDONLY, &id[0]);
	fh[1] = rwf_open(f, "x.nc", O_RDWR, &id[1]);
	assert_int_not_equal(id[0], id[1]);
	rwf_edit(f, id[1], fh[1], "plain", 5);
	fh[2] = rwf_open(f, "x.nc", O_RDONLY, &id[2]); /* sees it being written */
	assert_int_equal(id[1], id[2]);
	assert_true(rwf_sees(f, id[0], fh[0], "plain", 2));
	assert_true(rwf_sees(f, id[2], fh[2], "plain", 5));
	assert_int_equal(rwf_close(f, id[1], fh[1]), 0);
	fh[3] = rwf_open(f, "x.nc", O_RDONLY, &id[3]);
	assert_true(rwf_sees(f, id[0], fh[0], "plain", 2));
	assert_true(rwf_sees(f, id[0], fh[0], "packed", 1));
	assert_true(rwf_sees(f, id[2], fh[2], "plain", 5));
	assert_true(rwf_sees(f, id[3], fh[3], "plain", 5));
	for (unsigned i = 0; i < 4; i++)
		if (i != 1)
			assert_int_equal(rwf_close(f, id[i], fh[i]), 0);
	assert_int_equal(f->commits, 1);
}

/* fsync, then more, then close: the second commit reports the differences from the first. */
static void test_sync(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id);

	rwf_edit(f, id, fh, "more", 3);
	assert_int_equal(f->v->write->fsync(f->v, id, fh, false, NULL), 0);
	assert_int_equal(f->commits, 1);
	assert_true(rwf_shows(f, "x.nc", "more", 3));
	assert_true(rwf_sees(f, id, fh, "more", 3));
	assert_int_equal(f->v->write->flush(f->v, id, fh, NULL), 0);
	assert_int_equal(f->commits, 1);
	f->extra = "third";
	rwf_edit(f, id, fh, "third", 4);
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_int_equal(f->commits, 2);
	assert_true(f->had_was && f->was_row && f->has_extra);
	assert_true(rwf_shows(f, "x.nc", "third", 4));
	assert_true(rwf_shows(f, "x.nc", "more", 3));
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
}

/* A failed commit is an error of the close, its content stays, and it is retried. */
static void test_failure(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id);

	rwf_edit(f, id, fh, "more", 3);
	f->fail = -ENOSPC;
	assert_int_equal(f->v->write->flush(f->v, id, fh, NULL), -ENOSPC);
	assert_true(rwf_sees(f, id, fh, "more", 3));
	f->fail = 0;
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_int_equal(f->commits, 2);
	assert_true(rwf_shows(f, "x.nc", "more", 3));
}

/* A commit that is decided and not ended is an error for the program that closes the file. The
 * mount shows the written file, ends that commit before the next one, and never makes it twice. */
static void test_decided(void **state)
{
	struct rwf *f = *state;
	struct err e = ERR_INIT;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id);

	rwf_edit(f, id, fh, "more", 3);
	f->fail = -EINPROGRESS;
	assert_int_equal(f->v->write->flush(f->v, id, fh, &e), -EIO);
	assert_int_equal(e.code, -EIO);
	assert_non_null(strstr(e.msg, "made up"));
	assert_int_equal(f->commits, 1);
	assert_int_equal(f->ends, 0);
	assert_true(rwf_sees(f, id, fh, "more", 3));
	assert_true(rwf_shows(f, "x.nc", "more", 3));
	assert_false(rwf_has(f->path, "more", 3));
	f->fail = 0;
	f->end_fail = -ENOSPC; /* no other commit begins before that one is ended */
	rwf_edit(f, id, fh, "third", 4);
	assert_int_equal(f->v->write->flush(f->v, id, fh, NULL), -ENOSPC);
	assert_int_equal(f->ends, 1);
	assert_int_equal(f->commits, 1);
	assert_true(rwf_sees(f, id, fh, "third", 4));
	f->end_fail = 0;
	assert_int_equal(f->v->write->flush(f->v, id, fh, NULL), 0);
	assert_int_equal(f->ends, 2);
	assert_int_equal(f->commits, 2);
	assert_true(rwf_has(f->path, "more", 3));
	assert_true(rwf_has(f->path, "third", 4));
	rwf_edit(f, id, fh, "last", 5);
	f->fail = -EINPROGRESS;
	assert_int_equal(rwf_close(f, id, fh), -EIO);
	assert_int_equal(f->commits, 3);
	f->fail = 0;
	for (int i = 0; i < 2; i++) { /* the second has nothing to end */
		assert_int_equal(f->v->write->finish(f->v, true, &e), 0);
		assert_int_equal(f->ends, 3);
		assert_int_equal(f->commits, 3);
		assert_true(rwf_has(f->path, "last", 5));
	}
	assert_true(rwf_shows(f, "x.nc", "last", 5));
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
}

/* w: cut to nothing, closed by a probe, written. */
static void test_new_content(void **state)
{
	struct rwf *f = *state;
	uint64_t id, probe, fh = rwf_open(f, "x.nc", O_RDWR | O_TRUNC, &id), other;

	assert_int_equal(rwf_size(f, "x.nc"), 0);
	probe = rwf_open(f, "x.nc", O_RDONLY, &other);
	assert_int_equal(rwf_close(f, other, probe), 0);
	assert_int_equal(f->v->write->flush(f->v, id, fh, NULL), 0);
	assert_int_equal(f->commits, 0);
	rwf_make(f->copy);
	rwf_in(f, id, fh);
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_int_equal(f->commits, 1);
	assert_true(f->was_row); /* what the new one does not have is seen to be gone */
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
}

static int remove_it(struct rwf *f, const char *name)
{
	return f->v->write->unlink(f->v, VIEW_ROOT, name, NULL);
}

static int move_it(struct rwf *f, const char *from, const char *to)
{
	return f->v->write->rename(f->v, VIEW_ROOT, from, VIEW_ROOT, to, 0, NULL);
}

/* NCO's way: a file beside it, renamed over it. */
static void test_scratch(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_create(f, "x.nc.tmp", O_RDWR | O_EXCL, &id), old, old_fh;

	old_fh = rwf_open(f, "x.nc", O_RDONLY, &old);
	rwf_make(f->copy);
	rwf_in(f, id, fh);
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_int_equal(f->commits, 0);
	assert_int_equal(move_it(f, "x.nc.tmp", "y"), 0);
	fh = rwf_open(f, "y", O_RDWR, &id);
	rwf_edit(f, id, fh, "plain", 9);
	assert_int_equal(rwf_close(f, id, fh), 0);
	f->fail = -EIO;
	assert_int_equal(move_it(f, "y", "x.nc"), -EIO);
	assert_true(rwf_shows(f, "y", "plain", 9));
	assert_true(rwf_shows(f, "x.nc", "plain", 2));
	f->fail = 0;
	assert_int_equal(move_it(f, "y", "x.nc"), 0);
	assert_int_equal(rwf_id(f, "y"), 0);
	assert_true(rwf_shows(f, "x.nc", "plain", 9));
	assert_true(rwf_sees(f, old, old_fh, "plain", 2));
	assert_int_equal(rwf_close(f, old, old_fh), 0);
	assert_int_equal(remove_it(f, "y"), -ENOENT);
}

/* rm x.nc; cp new x.nc. */
static void test_remove(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh;

	assert_int_equal(remove_it(f, "x.nc"), 0);
	assert_int_equal(rwf_id(f, "x.nc"), 0);
	assert_int_equal(f->commits, 0);
	fh = rwf_create(f, "x.nc", O_WRONLY | O_EXCL, &id);
	rwf_make(f->copy);
	rwf_in(f, id, fh);
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_int_equal(f->commits, 1);
	assert_true(f->was_row); /* what the new one does not have is seen to be gone */
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
}

/* A file that was not closed is committed at the end. */
static void test_finish(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id);

	rwf_edit(f, id, fh, "more", 3);
	assert_int_equal(f->v->write->finish(f->v, true, NULL), 0);
	assert_int_equal(f->commits, 1);
	assert_true(rwf_shows(f, "x.nc", "more", 3));
	f->v->write->release(f->v, id, fh);
}

/* A backup: the file gets another name, a new one is made, and renamed back when that was wrong. */
static void test_set_aside(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh;

	assert_int_equal(move_it(f, "x.nc", "x.nc~"), 0);
	assert_int_equal(rwf_id(f, "x.nc"), 0);
	assert_true(rwf_shows(f, "x.nc~", "packed", 1));
	assert_int_equal(f->commits, 0);
	fh = rwf_create(f, "x.nc", O_WRONLY, &id);
	assert_int_equal(rwf_close(f, id, fh), 0);
	assert_int_equal(f->commits, 0); /* it is empty */
	assert_int_equal(move_it(f, "x.nc~", "x.nc"), 0);
	assert_int_equal(f->commits, 1);
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
	assert_true(rwf_shows(f, "x.nc", "plain", 2));
}

/* remount - the view is closed and opened again. */
static void remount(struct rwf *f)
{
	f->v->ops->close(f->v);
	rwf_view(f);
}

static unsigned fd_cache(struct rwf *f)
{
	char command[128];
	FILE *p;
	unsigned n = 0;

	(void)snprintf(command, sizeof(command), "find %s -type f | wc -l", f->dir);
	p = popen(command, "r");
	assert_non_null(p);
	assert_int_equal(fscanf(p, "%u", &n), 1);
	assert_int_equal(pclose(p), 0);
	return n;
}

/* What could not be committed is kept, and committed by the next mount. */
static void test_kept(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh;

	for (unsigned k = 0; k < 3; k++) {
		fh = rwf_open(f, "x.nc", O_RDWR, &id);
		rwf_edit(f, id, fh, k == 0 ? "more" : k == 1 ? "third" : "plain", 3);
		if (k == 1) { /* a commit before, so that it is based on a state that no longer
			       * exists */
			assert_int_equal(f->v->write->fsync(f->v, id, fh, false, NULL), 0);
			rwf_edit(f, id, fh, "plain", 7);
		}
		f->fail = -EIO;
		assert_int_equal(rwf_close(f, id, fh), -EIO);
		assert_true(rwf_shows(f, "x.nc", "packed", 1));
		assert_int_equal(f->v->write->finish(f->v, true, NULL), -EIO);
		assert_int_equal(fd_cache(f), k == 1 ? 3 : 2);
		f->fail = 0;
		remount(f);
		assert_int_equal(fd_cache(f), 0);
		assert_true(rwf_shows(f, "x.nc", "more", 3));
		assert_true(rwf_shows(f, "x.nc", "packed", 1));
		assert_true(rwf_shows(f, "x.nc", "plain", k == 0 ? 2 : k == 1 ? 7 : 3));
	}
}

/* It does not replace later changes by another program. */
static void test_kept_too_long(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id);

	rwf_edit(f, id, fh, "more", 3);
	f->fail = -EIO;
	assert_int_equal(rwf_close(f, id, fh), -EIO);
	f->fail = 0;
	f->v->ops->close(f->v);
	rwf_add(f->path, "another", 6);
	f->commits = 0;
	rwf_view(f);
	assert_int_equal(f->commits, 0);
	assert_int_equal(fd_cache(f), 2);
	assert_true(rwf_shows(f, "x.nc", "another", 6));
	assert_false(rwf_shows(f, "x.nc", "more", 3));
}

/* Nor does content that was to replace a state which another program has replaced since. */
static void test_kept_new(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh;

	for (unsigned k = 0; k < 2; k++) {
		fh = rwf_open(f, "x.nc", O_RDWR | O_TRUNC, &id);
		rwf_make(f->copy);
		rwf_in(f, id, fh);
		f->fail = -EIO;
		assert_int_equal(rwf_close(f, id, fh), -EIO);
		f->fail = 0;
		f->v->ops->close(f->v);
		if (k == 0)
			rwf_add(f->path, "another", 6);
		f->commits = 0;
		rwf_view(f);
		assert_int_equal(f->commits, k);
		assert_int_equal(rwf_shows(f, "x.nc", "another", 6), k == 0);
		assert_int_equal(fd_cache(f), 2);
	}
}

/* A map that was damaged is no map. */
static void test_kept_damaged(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh;
	char pattern[128];
	glob_t maps;
	uint8_t x;
	off_t size;
	int fd;

	for (int at = 0; at < 90; at += 7) {
		fh = rwf_open(f, "x.nc", O_RDWR, &id);
		rwf_edit(f, id, fh, "more", 3);
		f->fail = -EIO;
		assert_int_equal(rwf_close(f, id, fh), -EIO);
		f->fail = 0;
		f->v->ops->close(f->v);
		(void)snprintf(pattern, sizeof(pattern), "%s/nc-*.map", f->dir);
		assert_int_equal(glob(pattern, 0, NULL, &maps), 0);
		assert_int_equal(maps.gl_pathc, 1);
		fd = open(maps.gl_pathv[0], O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		size = lseek(fd, 0, SEEK_END);
		assert_int_equal(pread(fd, &x, 1, at % size), 1);
		x ^= 0x10;
		assert_int_equal(pwrite(fd, &x, 1, at % size), 1);
		if (at % 2 == 1)
			assert_int_equal(ftruncate(fd, at), 0);
		(void)close(fd);
		f->commits = 0;
		rwf_view(f);
		assert_int_equal(f->commits, 0);
		assert_int_equal(fd_cache(f), 2);
		assert_false(rwf_shows(f, "x.nc", "more", 3));
		assert_int_equal(unlink(maps.gl_pathv[0]), 0);
		globfree(&maps);
		remount(f);
		assert_int_equal(fd_cache(f), 0);
	}
}

/* Scratch files that are left are there again. */
static void test_scratch_left(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_create(f, "left", O_RDWR | O_EXCL, &id);

	rwf_make(f->copy);
	rwf_in(f, id, fh);
	assert_int_equal(rwf_close(f, id, fh), 0);
	remount(f);
	assert_true(rwf_shows(f, "left", "packed", 1));
	assert_int_equal(move_it(f, "left", "x.nc"), 0);
	assert_int_equal(f->commits, 1);
	remount(f);
	assert_int_equal(rwf_id(f, "left"), 0);
	assert_int_equal(fd_cache(f), 0);
}

/* ---- threads ---- */

struct one_thread {
	struct rwf *f;
	atomic_bool *stop;
	unsigned opened, wrong;
};

/* read_part - whether the first bytes are those of an HDF5 file, and the size is not nothing. */
static bool read_part(struct rwf *f, uint64_t id, uint64_t fh)
{
	uint8_t room[6000];
	struct view_attr at;
	struct span s;
	bool ok;

	if (f->v->ops->getattr(f->v, id, &at, NULL) < 0 || at.size < 100 ||
	    f->v->ops->read(f->v, id, fh, 0, sizeof(room), room, &s, NULL) < 0)
		return false;
	ok = s.mem && s.len == sizeof(room) && memcmp(s.mem, "\x89HDF", 4) == 0;
	span_done(&s);
	return ok;
}

static void *look_on(void *arg)
{
	struct one_thread *w = arg;
	const struct view_write_ops *ops = w->f->v->write;

	while (!atomic_load(w->stop)) {
		uint64_t id = rwf_id(w->f, "x.nc");
		struct view_handle h;

		if (ops->open(w->f->v, id, O_RDONLY, &h, NULL) < 0)
			continue; /* another one has the name by now */
		w->opened++;
		for (unsigned i = 0; i < 3; i++)
			w->wrong += !read_part(w->f, id, h.fh);
		w->wrong += rwf_close(w->f, id, h.fh) < 0;
	}
	return NULL;
}

/* Others open, read and close it while it is written and committed again and again. */
static void test_threads(void **state)
{
	struct rwf *f = *state;
	struct one_thread workers[3];
	pthread_t threads[3];
	atomic_bool stop = false;
	uint8_t part[700];
	uint64_t id, fh;

	for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
		workers[i] = (struct one_thread){.f = f, .stop = &stop};
		assert_int_equal(pthread_create(&threads[i], NULL, look_on, &workers[i]), 0);
	}
	for (unsigned k = 0; k < 25; k++) {
		struct view_handle h;
		int rc;

		do {
			id = rwf_id(f, "x.nc");
			rc = f->v->write->open(f->v, id, O_RDWR, &h, NULL);
		} while (rc == -ESTALE);
		assert_int_equal(rc, 0);
		fh = h.fh;
		rwf_read(f, id, fh, 3000 + k * 10, sizeof(part), part);
		assert_int_equal(f->v->write->write(f->v, id, fh, 3000 + k * 10, part,
						    sizeof(part), NULL),
				 0);
		assert_int_equal(rwf_close(f, id, fh), 0);
	}
	atomic_store(&stop, true);
	for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		assert_int_equal(workers[i].wrong, 0);
	}
	assert_int_equal(f->commits, 25);
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, rwf_setup, rwf_teardown)

/* Processes are forked by one without threads, as in the server: a thread may hold a lock of the
 * allocator when another one forks. */
static int prepare(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
#ifdef __SANITIZE_THREAD__
	(void)e;
	return 0; /* its own memory lies at the addresses that such processes need */
#else
	return child_prepare(NULL, &e);
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_reads),    TEST(test_no_write),      TEST(test_edit),
		TEST(test_given_up), TEST(test_old_readers),   TEST(test_sync),
		TEST(test_failure),  TEST(test_new_content),   TEST(test_scratch),
		TEST(test_remove),   TEST(test_finish),        TEST(test_set_aside),
		TEST(test_kept),     TEST(test_kept_too_long), TEST(test_kept_damaged),
		TEST(test_kept_new), TEST(test_scratch_left),  TEST(test_threads),
		TEST(test_decided),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
