/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the files and the output of `check` and `convert`: the state file, the line on a
 * terminal, a copy next to its final name. */
#include "fusefs/cmd/check/check_int.h"
#include "fusefs/cmd/convert/convert_int.h"
#include "fusefs/app/fingerprint.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/os/open_beneath.h"

/* ---- the state ---- */

struct sample {
	struct ds_array arrays[3];
	struct source source;
	struct check c;
};

static void sample(struct sample *s)
{
	memset(s, 0, sizeof(*s));
	for (int i = 0; i < 3; i++)
		s->arrays[i].n_chunks = 100;
	s->source.ds.arrays = s->arrays;
	s->source.ds.n_arrays = 3;
	s->c.source = &s->source;
}

static void add(struct check *c, uint32_t array, uint64_t linear, const char *key,
		const char *why)
{
	struct check_bad b = {.array = array,
			      .linear = linear,
			      .placed = true,
			      .key = strdup(key),
			      .off = 7,
			      .len = 9,
			      .why = strdup(why)};

	assert_int_equal(check_bad_add(&c->bad, &b, NULL), 0);
}

/* printed - the state of a check with three damaged chunks, two of them before its position. */
static char *printed(struct buf *out)
{
	struct sample s;

	sample(&s);
	add(&s.c, 0, 5, "a/b\tc", "first");
	add(&s.c, 1, CHECK_ARRAY, "", "all of it");
	add(&s.c, 1, 60, "x", "comes after");
	s.c.bad.more = 4;
	buf_init(out, 1 << 16);
	check_state_print(&s.c, (struct check_at){1, 50}, 150, 99, out);
	buf_putc(out, '\0');
	assert_true(buf_ok(out));
	check_bad_release(&s.c.bad);
	return (char *)out->data;
}

static void test_state(void **state)
{
	struct sample s;
	struct buf out;
	char *text = printed(&out);

	(void)state;
	sample(&s);
	assert_int_equal(check_state_parse(&s.c, text, strlen(text), 99, NULL), 2);
	assert_int_equal(s.c.next.array, 1);
	assert_int_equal(s.c.next.linear, 50);
	assert_int_equal(s.c.taken, 150);
	assert_int_equal(s.c.bad.n, 2);
	assert_int_equal(s.c.bad.more, 4);
	assert_string_equal(s.c.bad.v[0].key, "a/b?c");
	assert_string_equal(s.c.bad.v[0].why, "first");
	assert_int_equal(s.c.bad.v[0].off, 7);
	assert_true(s.c.bad.v[1].linear == CHECK_ARRAY);
	check_bad_release(&s.c.bad);
	buf_release(&out);
}

/* Each prefix of a state file, and each with one byte changed, is rejected, belongs to another
 * source, or can be continued: it never causes an access out of bounds. */
static void test_state_damaged(void **state)
{
	struct buf out;
	char *text = printed(&out), *copy;
	size_t n = strlen(text);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		struct sample s;

		sample(&s);
		copy = strndup(text, i);
		assert_true(check_state_parse(&s.c, copy, i, 99, NULL) == 1);
		check_bad_release(&s.c.bad);
		free(copy);
		for (const char *other = "\n\t 9-x"; *other; other++) {
			int rc;

			sample(&s);
			copy = strdup(text);
			copy[i] = *other;
			rc = check_state_parse(&s.c, copy, n, 99, NULL);
			assert_true(rc >= 0 && rc <= 2);
			assert_true(s.c.next.array <= 3);
			for (size_t j = 0; j < s.c.bad.n; j++)
				assert_true(s.c.bad.v[j].array < 3);
			check_bad_release(&s.c.bad);
			free(copy);
		}
	}
	buf_release(&out);
}

static void test_state_other(void **state)
{
	struct sample s;
	struct buf out;
	char *text = printed(&out);

	(void)state;
	sample(&s);
	assert_int_equal(check_state_parse(&s.c, text, strlen(text), 98, NULL), 0);
	assert_int_equal(s.c.bad.n, 0);
	assert_int_equal(s.c.next.array, 0);
	buf_release(&out);
}

/* chunks beyond the list are counted */
static void test_many(void **state)
{
	struct sample s;

	(void)state;
	sample(&s);
	for (uint32_t i = 0; i < CHECK_LISTED + 3; i++)
		add(&s.c, 0, i % 100, "", "x");
	assert_int_equal(s.c.bad.n, CHECK_LISTED);
	assert_int_equal(s.c.bad.more, 3);
	check_bad_release(&s.c.bad);
}

/* ---- the progress line ---- */

static void line_is(double share, double first, double seconds, uint64_t bytes, unsigned width,
		    const char *want)
{
	struct buf out;

	buf_init(&out, 1024);
	progress_line(&out, share, first, seconds, 12, "chunks", bytes, width);
	buf_putc(&out, '\0');
	assert_true(buf_ok(&out));
	assert_string_equal((char *)out.data, want);
	buf_release(&out);
}

static void test_line(void **state)
{
	(void)state;
	line_is(0, 0, 0, 0, 80, "[>                       ]   0 %  12 chunks, 0 bytes");
	line_is(0.5, 0, 10, 10 << 20, 100,
		"[============>           ]  50 %  12 chunks, 10.0 MiB, 1.0 MiB/s, 0:10 left");
	/* time is counted from the start of this run */
	line_is(0.75, 0.5, 10, 10 << 20, 100,
		"[==================>     ]  75 %  12 chunks, 10.0 MiB, 1.0 MiB/s, 0:10 left");
	line_is(0.01, 0, 3600, 1024, 120,
		"[>                       ]   1 %  12 chunks, 1.0 KiB, 0 bytes/s, 99:00:00 "
		"left");
	line_is(2, 0, 10, 1 << 20, 80,
		"[========================] 100 %  12 chunks, 1.0 MiB, 102.4 KiB/s, 0:00 left");
	line_is(0.5, 0, 10, 10 << 20, 30, "[============>           ]  50");
}

/* ---- a copy next to its final name ---- */

static char dir[] = "/tmp/nczarrfs-place-XXXXXX";
static int dir_fd = -1;

static int in_dir(void **state)
{
	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	if (!mkdtemp(dir))
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static int out_of_dir(void **state)
{
	(void)state;
	(void)close(dir_fd);
	remove_beneath(AT_FDCWD, dir);
	return 0;
}

static const char *in(const char *name, char out[300])
{
	(void)snprintf(out, 300, "%s/%s", dir, name);
	return out;
}

static void make(const char *name)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static bool there(const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_place(void **state)
{
	struct convert_place p = CONVERT_PLACE_INIT, q = CONVERT_PLACE_INIT;
	struct err e = ERR_INIT;
	char path[300];

	(void)state;
	assert_int_equal(convert_place_open(in("new", path), false, &p, NULL), 0);
	assert_int_equal(convert_place_open(path, false, &q, &e), -EBUSY);
	assert_int_equal(convert_place_done(&p, 5), 0);
	make(p.tmp);
	assert_int_equal(convert_place_note(&p, 5, 1234, NULL), 0);
	assert_int_equal(convert_place_note(&p, 5, 12, NULL), 0); /* shorter than before */
	assert_int_equal(convert_place_done(&p, 5), 12);
	assert_int_equal(convert_place_done(&p, 6), 0);
	convert_place_close(&p, true);
	assert_true(there(".new.nczarrfs-copy"));
	assert_int_equal(convert_place_open(path, false, &p, NULL), 0);
	assert_int_equal(convert_place_done(&p, 5), 12);
	assert_false(there("new"));
	assert_int_equal(convert_place_appear(&p, NULL), 0);
	convert_place_close(&p, false);
	assert_true(there("new"));
	assert_false(there(".new.nczarrfs-copy") || there(".new.nczarrfs-copy.state"));
	assert_int_equal(convert_place_open(path, false, &p, &e), -EEXIST);
	assert_non_null(strstr(e.msg, "--force"));
}

/* --force replaces a directory by a file and a file by a directory */
static void test_place_force(void **state)
{
	struct convert_place p = CONVERT_PLACE_INIT;
	struct stat st;
	char path[300];

	(void)state;
	assert_int_equal(mkdirat(dir_fd, "d", 0700), 0);
	make("d/inside");
	assert_int_equal(convert_place_open(in("d/", path), true, &p, NULL), 0);
	make(p.tmp);
	assert_int_equal(convert_place_appear(&p, NULL), 0);
	convert_place_close(&p, false);
	assert_int_equal(fstatat(dir_fd, "d", &st, 0), 0);
	assert_true(S_ISREG(st.st_mode));
	/* a file that appears meanwhile is not replaced without --force */
	assert_int_equal(convert_place_open(in("late", path), false, &p, NULL), 0);
	make(p.tmp);
	make("late");
	assert_int_equal(convert_place_appear(&p, NULL), -EEXIST);
	convert_place_close(&p, false);
	assert_true(there("late"));
}

static void test_apart(void **state)
{
	char a[300], b[300];

	(void)state;
	assert_int_equal(mkdirat(dir_fd, "t", 0700), 0);
	assert_int_equal(mkdirat(dir_fd, "t/in", 0700), 0);
	assert_int_equal(symlinkat("t", dir_fd, "l"), 0);
	assert_int_equal(convert_place_apart(in("t", a), in("t2", b), NULL), 0);
	assert_int_equal(convert_place_apart(in("t", a), in("t", b), NULL), -EINVAL);
	assert_int_equal(convert_place_apart(in("t", a), in("t/", b), NULL), -EINVAL);
	assert_int_equal(convert_place_apart(in("t", a), in("l", b), NULL), -EINVAL);
	assert_int_equal(convert_place_apart(in("t", a), in("l/x", b), NULL), -EINVAL);
	assert_int_equal(convert_place_apart(in("t/in", a), in("t", b), NULL), -EINVAL);
	assert_int_equal(convert_place_apart(in("l/in", a), in("t", b), NULL), -EINVAL);
	assert_int_equal(convert_place_apart(in("t/in", a), in("t/x", b), NULL), 0);
	assert_int_equal(convert_place_apart(in("t", a), in("..", b), NULL), -EINVAL);
	assert_int_equal(convert_place_apart(in("t", a), "/", NULL), -EINVAL);
}

static void test_docs(void **state)
{
	(void)state;
	assert_true(convert_is_doc(".zgroup") && convert_is_doc("a/.zarray") &&
		    convert_is_doc("a/b/zarr.json") && convert_is_doc(".nczarr"));
	assert_false(convert_is_doc("a/0.0") || convert_is_doc("zarr.json/c/0") ||
		     convert_is_doc("a.zarray"));
}

static void test_mix(void **state)
{
	(void)state;
	assert_true(fingerprint_mix(fingerprint_mix(0, 1), 2) !=
		    fingerprint_mix(fingerprint_mix(0, 2), 1));
	assert_true(fingerprint_mix(0, 0) != fingerprint_mix(0, 1));
}

/* ---- slow operations run without the lock that threads share ---- */

static pthread_mutex_t *shared; /* an error-checking mutex */
static atomic_int asked;

static void must_be_free(void)
{
	assert_int_equal(pthread_mutex_lock(shared), 0); /* EDEADLK: this thread holds it */
	(void)pthread_mutex_unlock(shared);
	atomic_fetch_add(&asked, 1);
}

static void share(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	(void)pthread_mutexattr_init(&attr);
	(void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
	assert_int_equal(pthread_mutex_init(lock, &attr), 0);
	(void)pthread_mutexattr_destroy(&attr);
	shared = lock;
	atomic_store(&asked, 0);
}

static int fake_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
		     struct err *e)
{
	(void)s;
	(void)array;
	(void)e;
	must_be_free();
	*ret = from;
	return 0;
}

static int fake_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		       struct err *e)
{
	(void)s;
	(void)array;
	(void)linear;
	(void)e;
	*ret = (struct chunk_ref){.where = CHUNK_RANGE, .len = 1};
	return 0;
}

static void check_tick(void *arg, struct check_at at, uint64_t taken)
{
	uint64_t *ret = arg;

	must_be_free();
	assert_true(at.array <= 3);
	*ret = taken;
}

static void test_check_lock(void **state)
{
	static const struct source_ops ops = {.next = fake_next, .locate = fake_locate};
	struct cfg cfg = {.check.quick = true};
	const struct app setup = {.cfg = &cfg};
	uint64_t taken = 0;
	struct err e = ERR_INIT;
	struct sample s;

	(void)state;
	sample(&s);
	s.source.ops = &ops;
	s.c.setup = &setup;
	s.c.n_workers = 3;
	share(&s.c.lock);
	assert_int_equal(check_run(&s.c, check_tick, &taken, &e), 0);
	assert_int_equal(taken, 300);
	assert_int_equal(s.c.chunks, 300);
	assert_true(atomic_load(&asked) > 300);
	(void)pthread_mutex_destroy(&s.c.lock);
}

enum { TREE_FILES = 150 };

static int tree_list(struct view *v, uint64_t at, uint64_t cookie, bool want_attr,
		     view_emit *emit, void *arg, struct err *e)
{
	char name[16];

	(void)v;
	(void)at;
	(void)want_attr;
	(void)e;
	must_be_free();
	for (uint64_t i = cookie; i < TREE_FILES; i++) {
		(void)snprintf(name, sizeof(name), "%d", (int)i);
		if (!emit(arg, name, 2 + i, false, NULL, i + 1))
			break;
	}
	return 0;
}

static int tree_write(struct convert_out *o, struct convert *c, const struct convert_unit *u,
		      uint8_t *room, uint64_t *ret, struct err *e)
{
	(void)o;
	(void)c;
	(void)room;
	(void)e;
	must_be_free();
	*ret = u->id;
	return 0;
}

static void convert_tick(void *arg, uint64_t done)
{
	must_be_free();
	*(uint64_t *)arg = done;
}

static void test_convert_lock(void **state)
{
	static const struct view_ops view_ops = {.list = tree_list};
	static const struct convert_out_ops out_ops = {.write = tree_write};
	struct convert_out out = {.ops = &out_ops};
	struct view view = {.ops = &view_ops};
	struct convert c = {.view = &view, .out = &out, .n_workers = 3, .skip = 10};
	uint64_t done = 0;
	struct err e = ERR_INIT;

	(void)state;
	share(&c.lock);
	assert_int_equal(convert_copy(&c, convert_tick, &done, &e), 0);
	assert_int_equal(done, TREE_FILES);
	assert_int_equal(c.files, TREE_FILES - 10);
	assert_true(atomic_load(&asked) > TREE_FILES - 10);
	(void)pthread_mutex_destroy(&c.lock);
}

/* ---- an archive: files are held whole, within the limit of memory ---- */

static atomic_int inside;

static int size_attr(struct view *v, uint64_t id, struct view_attr *ret, struct err *e)
{
	(void)v;
	(void)e;
	*ret = (struct view_attr){.id = id, .size = 10};
	return 0;
}

static int one_read(struct view *v, uint64_t id, uint64_t fh NZ_UNUSED, uint64_t off,
		    size_t len, uint8_t *room, struct span *ret, struct err *e)
{
	(void)v;
	(void)id;
	(void)e;
	assert_int_equal(off, 0);
	assert_int_equal(len, 10);
	assert_int_equal(atomic_fetch_add(&inside, 1), 0);
	for (int i = 0; i < 20; i++)
		(void)sched_yield();
	memset(room, 7, len);
	*ret = (struct span){.mem = room, .len = len, .fd = -1};
	atomic_fetch_sub(&inside, 1);
	return 0;
}

static void test_zip_room(void **state)
{
	static const struct view_ops view_ops = {
		.list = tree_list, .getattr = size_attr, .read = one_read};
	char path[100];
	struct cfg cfg = {.out = path, .limits.cache_size = 15};
	const struct app setup = {.cfg = &cfg};
	static const struct source_ops source_ops = {.name = "fake"};
	struct source source = {.ops = &source_ops};
	struct view view = {.ops = &view_ops};
	struct convert c = {.setup = &setup, .source = &source, .view = &view, .n_workers = 4};
	uint64_t done = 0;
	struct err e = ERR_INIT;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/a.zip", dir);
	share(&c.lock);
	assert_int_equal(convert_zip(&c, &c.out, &e), 0);
	assert_int_equal(c.out->ops->begin(c.out, &done, &e), 0);
	assert_int_equal(convert_copy(&c, convert_tick, &done, &e), 0);
	assert_int_equal(c.files, TREE_FILES);
	assert_int_equal(c.bytes, TREE_FILES * 10);
	c.out->ops->close(c.out, false);
	(void)pthread_mutex_destroy(&c.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_state_damaged),
		cmocka_unit_test(test_state_other),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_line),
		cmocka_unit_test_setup_teardown(test_place, in_dir, out_of_dir),
		cmocka_unit_test_setup_teardown(test_place_force, in_dir, out_of_dir),
		cmocka_unit_test_setup_teardown(test_apart, in_dir, out_of_dir),
		cmocka_unit_test(test_docs),
		cmocka_unit_test(test_mix),
		cmocka_unit_test(test_check_lock),
		cmocka_unit_test(test_convert_lock),
		cmocka_unit_test_setup_teardown(test_zip_room, in_dir, out_of_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
