/* The writable virtual file: what programs write is what a commit is given and what is there
 * afterwards; who has the file open keeps what he opened; scratch files take its place. */
#include "tests/unit/nc_rw_fake.h"

static void test_reads(void **state)
{
	struct rwf *f = *state;

	assert_true(rwf_shows(f, "x.nc", "packed", 1));
	assert_true(rwf_shows(f, "x.nc", "plain", 2));
	assert_int_equal(f->commits, 0);
}

/* Who opens for writing and closes writes nothing. */
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

/* A reader, a writer that comes later, a reader of what was written. */
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

/* fsync, then more, then close: the second says what is different from the first. */
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

/* What fails is told to who closes, is there still, and is tried again. */
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
	assert_false(f->had_was);
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
}

static int remove_it(struct rwf *f, const char *name)
{
	return f->v->write->unlink(f->v, VIEW_ROOT, name, strlen(name), NULL);
}

static int move_it(struct rwf *f, const char *from, const char *to)
{
	return f->v->write->rename(f->v, VIEW_ROOT, from, strlen(from), VIEW_ROOT, to, strlen(to),
				   0, NULL);
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
	assert_false(f->had_was);
	assert_true(rwf_shows(f, "x.nc", "packed", 1));
}

/* What nobody closed is committed at the end. */
static void test_finish(void **state)
{
	struct rwf *f = *state;
	uint64_t id, fh = rwf_open(f, "x.nc", O_RDWR, &id);

	rwf_edit(f, id, fh, "more", 3);
	assert_int_equal(f->v->write->finish(f->v, NULL), 0);
	assert_int_equal(f->commits, 1);
	assert_true(rwf_shows(f, "x.nc", "more", 3));
	f->v->write->release(f->v, id, fh);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, rwf_setup, rwf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_reads),       TEST(test_no_write), TEST(test_edit),
		TEST(test_old_readers), TEST(test_sync),     TEST(test_failure),
		TEST(test_new_content), TEST(test_scratch),  TEST(test_remove),
		TEST(test_finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
