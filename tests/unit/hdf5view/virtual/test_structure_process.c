/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that makes virtual files: what one costs that crashes, is killed, hangs, says
 * nonsense or does what it must not; and that the next one makes the same file. */
#include "tests/unit/hdf5view/nc_sample.h"

#include "base/process/sandbox_int.h"
#include "hdf5view/virtual/structure_process.h"
#include "base/core/endian.h"
#include "hdf5view/virtual/file_layout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define MAX ((uint64_t)64 << 20)

/* What a child does instead of obeying `at`; children are forks of this process. */
static enum wrong {
	NOTHING,
	CRASH,
	KILL,
	LEAVE,
	HANG,
	CALL,    /* a system call that ends it */
	OPEN,    /* one that is refused */
	SHORT,   /* ends in the middle of an answer */
	LATER,   /* a code that is none */
	LONG,    /* a text that is too long */
	ODD,     /* an error that it cannot have */
	NUMBER,  /* a number that is too large */
	SMALL,   /* one that is too small */
	OUTSIDE, /* headers that lead outside */
	ZEROES,  /* a structure without content */
	SHARED,  /* one header for all */
	CUT,     /* makes the region shorter */
} wrong;
static enum nc_op at;

static void say(int sock, int64_t rc, uint64_t len)
{
	const struct child_answer a = {.rc = rc, .len = len};

	(void)child_send(sock, &a, sizeof(a), 0);
}

static void end_it(void)
{
	if (wrong == CRASH)
		(void)raise(SIGSEGV);
	if (wrong == KILL)
		(void)raise(SIGKILL);
	if (wrong == LEAVE)
		_exit(255);
	while (wrong == HANG)
		(void)poll(NULL, 0, 1000);
	if (wrong == CALL)
		(void)syscall(SYS_ptrace, 0, 0, 0, 0);
	if (wrong == OPEN && open("/etc/passwd", O_RDONLY) < 0 && errno == EPERM)
		_exit(7);
}

static bool fault(const struct nc_order *q, struct shm *r, int sock)
{
	uint8_t *headers = r->at + nc_apart_headers(q->len);

	if (wrong == NOTHING || q->op != at)
		return false;
	end_it();
	if (wrong == CUT && (ftruncate(r->fd, 0) == 0 || (errno != EPERM && errno != EFBIG)))
		_exit(9);
	if (wrong == CUT)
		return false;
	if (wrong == SHORT) {
		(void)!write(sock, "1234567", 7);
		_exit(0);
	}
	if (wrong == LATER)
		say(sock, 1, 0);
	if (wrong == LONG)
		say(sock, -EIO, ERR_TEXT_MAX);
	if (wrong == ODD)
		say(sock, -EINTR, 0);
	if (wrong == NUMBER)
		say(sock, 0, UINT64_MAX);
	if (wrong == SMALL)
		say(sock, 0, 7);
	if (wrong >= OUTSIDE) {
		memset(r->at, 0, r->size);
		for (int i = 0; i < 3; i++)
			put_le64(headers + (size_t)i * 8,
				 wrong == OUTSIDE ? q->len : 8 * (uint64_t)(unsigned)i);
		say(sock, 0, q->len);
	}
	return true;
}

static int next(struct source *s NZ_UNUSED, uint32_t array NZ_UNUSED, uint64_t from,
		uint64_t *ret, struct err *e NZ_UNUSED)
{
	*ret = from;
	return 0;
}

static const struct source_ops ops = {
	.name = "fake", .locate = nf_locate, .next = next, .read_vlen = nf_read_vlen};

/* sample - three variables, one of them strings. */
static struct nc_fake *sample(void)
{
	struct nc_fake *f = nf_new();
	uint32_t x = nf_dim(f, 0, "x", 100, false), t = nf_dim(f, 0, "t", 40, true);
	uint32_t v = nf_array(f, 0, "v", nf_i4, 10, 1, NF_DIM(x));
	struct err e = ERR_INIT;

	f->base.ops = &ops;
	(void)nf_array(f, 0, "t", nf_f8, 10, 1, NF_DIM(t));
	(void)nf_array(f, 0, "s", nf_str, 10, 1, NF_DIM(x));
	nf_attr(f, 0, v, nf_text(f, "units", "m", DT_STRING));
	if (nf_model(f, PLAN_NONE, false, &e) < 0)
		fail_msg("%s", e.msg);
	return f;
}

/* good - the file is made, and the same as always. */
static void good(struct nc_fake *f, const struct nc_image *want)
{
	struct err e = ERR_INIT;

	wrong = NOTHING;
	if (nf_build(f, MAX, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(f->image.len, want->len);
	assert_memory_equal(f->image.bytes, want->bytes, want->len);
}

static void bad(struct nc_fake *f, enum nc_op op, enum wrong what, int rc, const char *text)
{
	struct err e = ERR_INIT;
	int got;

	at = op;
	wrong = what;
	got = nf_build(f, MAX, &e);
	if (got != rc || !strstr(e.msg, text))
		fail_msg("%d at %d: %d '%s' and not %d '%s'", (int)what, (int)op, got, e.msg,
			 rc, text);
	assert_null(f->image.bytes);
}

static void test_deaths(void **state NZ_UNUSED)
{
	struct nc_fake *f = sample(), *same = sample();
	struct err e = ERR_INIT;

	assert_int_equal(nf_build(same, MAX, &e), 0);
	for (enum nc_op op = NC_OP_MAKE; op <= NC_OP_IMAGE; op++) {
		bad(f, op, CRASH, -EIO, "crashed (signal 11)");
		bad(f, op, KILL, -EAGAIN, "was killed (signal 9)");
		bad(f, op, LEAVE, -EAGAIN, "ended (status 255)");
		bad(f, op, SHORT, -EAGAIN, "ended (status 0)");
		if (!SANDBOX_OFF) {
			bad(f, op, CALL, -EIO, "made a forbidden system call");
			bad(f, op, OPEN, -EAGAIN, "ended (status 7)");
		}
		good(f, &same->image);
	}
	f->model->build_ms = 300;
	bad(f, NC_OP_MAKE, HANG, -EIO, "did not answer within 1 s");
	f->model->build_ms = 60000;
	good(f, &same->image);
	nf_free(same);
	nf_free(f);
}

static void test_nonsense(void **state NZ_UNUSED)
{
	struct nc_fake *f = sample(), *same = sample();
	struct err e = ERR_INIT;

	assert_int_equal(nf_build(same, MAX, &e), 0);
	for (enum nc_op op = NC_OP_MAKE; op <= NC_OP_IMAGE; op++) {
		bad(f, op, LATER, -EIO, "sent an invalid answer");
		bad(f, op, LONG, -EIO, "sent an invalid answer");
		bad(f, op, ODD, -EIO, "");
	}
	bad(f, NC_OP_FINISH, NUMBER, -ERANGE, "exceeds");
	bad(f, NC_OP_FINISH, SMALL, -EIO, "sent an invalid answer");
	bad(f, NC_OP_IMAGE, NUMBER, -EIO, "sent an invalid answer");
	bad(f, NC_OP_IMAGE, SMALL, -EIO, "sent an invalid answer");
	bad(f, NC_OP_IMAGE, OUTSIDE, -EIO, "sent an invalid answer");
	/* no room is left for strings */
	bad(f, NC_OP_MAKE, NUMBER, -ERANGE, "metadata and strings (an eighth of -o memory)");
	at = NC_OP_IMAGE;
	wrong = CUT;
	assert_int_equal(nf_build(f, MAX, &e), 0);
	good(f, &same->image);
	nf_free(same);
	nf_free(f);
}

/* The structure is not trusted: the addresses of its headers are checked before any write to
 * them. */
static void test_structures(void **state NZ_UNUSED)
{
	for (enum wrong k = ZEROES; k <= SHARED; k++) {
		struct nc_fake *f = sample();
		struct chunkio *io;
		struct nc_layout *l;
		struct err e = ERR_INIT;

		at = NC_OP_IMAGE;
		wrong = k;
		assert_int_equal(nf_build(f, MAX, &e), 0);
		wrong = NOTHING;
		assert_int_equal(
			chunkio_new(&f->base, f->plans, &(struct chunkio_options){0}, &io, &e),
			0);
		assert_int_equal(nc_layout_new(&f->base, f->plans, io, &f->image, MAX, &l, &e),
				 -EBADMSG);
		chunkio_free(io);
		nf_free(f);
	}
}

/* The caller gets one error; an error that is not the dataset's is not remembered. */
static void test_view(void **state NZ_UNUSED)
{
	struct nc_fake *f = sample();
	const struct nc_view_options o = {.name = "v.nc",
					  .policy.filter = PLAN_NONE,
					  .max_image_bytes = MAX,
					  .max_index_bytes = MAX};
	struct view *v;
	struct span s;
	uint8_t room[64];
	struct err e = ERR_INIT;

	assert_int_equal(nc_view_open(&f->base, &o, &v, &e), 0);
	at = NC_OP_STRINGS;
	for (wrong = KILL; wrong <= LEAVE; wrong++) {
		assert_int_equal(v->ops->read(v, VIEW_ROOT + 1, 0, 0, 8, room, &s, &e), -EIO);
		assert_non_null(strstr(e.msg, "possibly out of memory"));
	}
	wrong = NOTHING;
	if (v->ops->read(v, VIEW_ROOT + 1, 0, 0, 8, room, &s, &e) < 0)
		fail_msg("%s", e.msg);
	assert_memory_equal(s.mem + 1, "HDF", 3);
	span_done(&s);
	v->ops->close(v);
	nf_free(f);
}

/* A filter that cannot be asked about is an error, and not another layout of the file. */
static void test_asker(void **state NZ_UNUSED)
{
	static const uint32_t scale[CODEC_PARAMS_MAX] = {2};
	const struct codec_spec spec = {
		.h5_id = CODEC_SCALEOFFSET, .n_params = 20, .params = scale, .name = ""};
	struct nc_fake *f = nf_new();
	uint32_t x = nf_dim(f, 0, "x", 100, false);
	uint32_t v = nf_array(f, 0, "v", nf_i4, 10, 1, NF_DIM(x));
	struct err e = ERR_INIT;

	f->arrays[v].chain = (struct codec_chain){.n = 1, .specs = &spec};
	at = NC_OP_AGREE;
	wrong = CRASH;
	assert_int_equal(nf_model(f, PLAN_KEEP, false, &e), -EIO);
	assert_non_null(strstr(e.msg, "crashed (signal 11)"));
	wrong = NUMBER;
	assert_int_equal(nf_model(f, PLAN_KEEP, false, &e), -EIO);
	wrong = NOTHING;
	assert_int_equal(nf_model(f, PLAN_KEEP, false, &e), 0);
	nf_free(f);
}

/* fsync - the C library's, or a failure: for the process under test, whose files are on a disk that
 * does not fail by itself. */
static int sync_fails;
static const char *sync_moves; /* first, this path gets another file */

int fsync(int fd)
{
	if (!sync_fails)
		return (int)syscall(SYS_fsync, fd);
	if (sync_moves) {
		assert_int_equal(unlink(sync_moves), 0);
		assert_int_equal(close(open(sync_moves, O_WRONLY | O_CREAT | O_EXCL, 0600)), 0);
	}
	errno = sync_fails;
	return -1;
}

/* not_made - hdf5_create fails, and leaves nothing in the directory. */
static void not_made(const char *path, uint64_t ms, int rc, const char *text)
{
	struct err e = ERR_INIT;
	int got = hdf5_create(path, ms, &e);

	if (got != rc || !strstr(e.msg, text))
		fail_msg("%d at %d: %d '%s' and not %d '%s'", (int)wrong, (int)at, got, e.msg,
			 rc, text);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(errno, ENOENT);
}

/* A new, empty file comes from the same process: a failure of that process leaves no file. */
static void test_create(void **state NZ_UNUSED)
{
	static const enum nc_op ops_of[] = {NC_OP_MAKE, NC_OP_FINISH, NC_OP_IMAGE};
	char dir[] = "/tmp/nczarrfs-create-XXXXXX", path[sizeof(dir) + 8];
	struct err e = ERR_INIT;
	struct stat st;

	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/x.nc", dir);
	for (size_t i = 0; i < ARRAY_LEN(ops_of); i++) {
		at = ops_of[i];
		wrong = CRASH;
		not_made(path, 0, -EIO, "crashed (signal 11)");
		wrong = KILL;
		not_made(path, 0, -ENOMEM, "was killed (signal 9): possibly out of memory");
		wrong = LEAVE; /* libhdf5's exit where memory for an id is short */
		not_made(path, 0, -ENOMEM, "ended (status 255): possibly out of memory");
	}
	at = NC_OP_FINISH;
	wrong = NUMBER;
	not_made(path, 0, -ERANGE, "exceeds");
	wrong = HANG;
	not_made(path, 300, -EIO, "did not answer within 1 s");
	wrong = NOTHING;
	sync_fails = ENOSPC;
	not_made(path, 0, -ENOSPC, "");
	sync_moves = path; /* the name leads to another file by now: that one stays */
	assert_int_equal(hdf5_create(path, 0, &e), -ENOSPC);
	sync_fails = 0;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(hdf5_create(path, 0, &e), 0);
	assert_int_equal(hdf5_create(path, 0, &e), -EEXIST);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 100);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deaths),     cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_structures), cmocka_unit_test(test_view),
		cmocka_unit_test(test_asker),      cmocka_unit_test(test_create),
	};

	nc_apart_fault = fault;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
