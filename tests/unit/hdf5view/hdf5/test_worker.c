/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker process, with a filter that does to it what a damaged file does to libhdf5. The
 * first byte of a stored chunk says what happens when it is read. */
#include "hdf5view/hdf5view.h"
#include "hdf5view/hdf5/library.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define FILTER 300 /* of those for testing */
#define CHUNK 64
#define CHUNKS 10
#define SOURCE_MS 60000

static _Atomic pid_t
	*begun;     /* shared: the process that is reading a chunk that hangs or is slow */
static bool spoilt; /* in the worker: an earlier chunk damaged its memory */

static void nap(long ms)
{
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	(void)nanosleep(&ts, NULL);
}

static bool few_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	/* ".", "..", stdio, the listing itself, socket, pipe, the source, the model's memory, the
	 * library's file */
	return n <= 11;
}

/* lie - an answer longer than anything that was asked for. */
static void lie(void)
{
	const uint64_t wrong[2] = {0, (uint64_t)1 << 40};
	struct stat st;

	for (int fd = 3; fd < 1000; fd++)
		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
		    send(fd, wrong, sizeof(wrong), MSG_NOSIGNAL) < 0)
			_exit(9);
}

static void begin(void)
{
	atomic_store(begun, getpid());
}

/* reader_pid - the pid of a reader that has begun, 0 if none does. */
static pid_t reader_pid(void)
{
	for (int i = 0; i < 1000 && atomic_load(begun) == 0; i++)
		nap(10);
	return atomic_load(begun);
}

static size_t misbehave(unsigned flags, size_t n, const unsigned *values, size_t nbytes,
			size_t *size, void **buf)
{
	const char what = *(const char *)*buf;

	(void)n;
	(void)values;
	(void)size;
	if (!(flags & H5Z_FLAG_REVERSE))
		return nbytes;
	if (spoilt || what == 'c')
		(void)raise(SIGSEGV);
	if (what == 'x')
		_exit(3);
	if (what == 'l')
		lie();
	if (what == 'm')
		spoilt = true;
	if (what == 'h' || what == 's')
		begin();
	while (what == 'h' || what == 'l')
		nap(1000);
	if (what == 's')
		nap(700);
	return what == 'e' || (what == 'f' && !few_descriptors()) ? 0 : nbytes;
}

struct fixture {
	char path[64];
	struct source *s;
	struct err e;
};

static void fill(hid_t file, const char *name, const char *what)
{
	const hsize_t len = strlen(what) * CHUNK, chunk = CHUNK;
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space, d;
	uint8_t v[CHUNKS * CHUNK] = {0};

	for (size_t i = 0; what[i]; i++) {
		memset(v + i * CHUNK, (int)i + 1, CHUNK);
		v[i * CHUNK] = (uint8_t)what[i];
	}
	assert_true(H5Pset_chunk(dcpl, 1, &chunk) >= 0);
	assert_true(H5Pset_filter(dcpl, FILTER, 0, 0, NULL) >= 0);
	space = H5Screate_simple(1, &len, NULL);
	d = H5Dcreate2(file, name, H5T_STD_U8LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(d > 0);
	assert_true(H5Dwrite(d, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	h5_id_close(&d);
	h5_id_close(&space);
	h5_id_close(&dcpl);
}

static void fill_text(hid_t file)
{
	const char *v[] = {"one", "", "three"};
	const hsize_t len = 3;
	hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &len, NULL), d;

	assert_true(H5Tset_size(type, H5T_VARIABLE) >= 0);
	d = H5Dcreate2(file, "text", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(d > 0 && H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, v) >= 0);
	h5_id_close(&d);
	h5_id_close(&space);
	h5_id_close(&type);
}

static void open_source(struct fixture *f, uint64_t timeout_ms)
{
	const struct source_ops *formats[] = {&hdf5_source_ops};
	const struct source_options opts = {
		.cut_bytes = 1 << 12,
		.max_chunk_bytes = 1 << 20,
		.max_index_bytes = 1 << 20,
		.max_meta_bytes = 1 << 20,
		.read_timeout_ms = timeout_ms,
	};

	source_close(f->s);
	f->s = NULL;
	if (source_open(formats, 1, f->path, &opts, &f->s, &f->e) < 0)
		fail_msg("%s", f->e.msg);
}

static int setup(void **state)
{
	const H5Z_class2_t cls = {.version = H5Z_CLASS_T_VERS,
				  .id = FILTER,
				  .encoder_present = 1,
				  .decoder_present = 1,
				  .name = "misbehave",
				  .filter = misbehave};
	struct fixture *f = calloc(1, sizeof(*f));
	hid_t file;
	int fd;

	assert_non_null(f);
	assert_true(H5Zregister(&cls) >= 0);
	memcpy(f->path, "/tmp/nczarrfs-XXXXXX", 21);
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	if (!begun)
		begun = mmap(NULL, sizeof(*begun), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(begun != MAP_FAILED);
	atomic_store(begun, 0);
	file = H5Fcreate(f->path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	assert_true(file > 0);
	fill(file, "good", "gggggggggf");
	fill(file, "one", "gcgmgegxgg");
	fill(file, "all", "cccccccccc");
	fill(file, "hang", "ghsgsgl");
	fill_text(file);
	assert_true(H5Fclose(file) >= 0);
	*state = f;
	open_source(f, 0);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	source_close(f->s);
	assert_true(waitpid(-1, NULL, WNOHANG) < 0); /* no child is left, not even a dead one */
	assert_int_equal(unlink(f->path), 0);
	atomic_store(begun, 0);
	free(f);
	return 0;
}

static uint32_t find(const struct source *s, const char *name)
{
	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		if (strcmp(s->ds.arrays[i].name, name) == 0)
			return i;
	fail_msg("no array '%s'", name);
	return 0;
}

static int read_chunk(struct source *s, const char *name, uint64_t i, struct err *e)
{
	uint8_t got[CHUNK] = {0};
	int rc = source_read_chunk(s, find(s, name), i, got, sizeof(got), e);

	for (size_t k = 1; rc == 0 && k < CHUNK; k++)
		if (got[k] != i + 1)
			return 1;
	return rc;
}

static void expect_good(struct fixture *f, const char *name, uint64_t i)
{
	if (read_chunk(f->s, name, i, &f->e) != 0)
		fail_msg("%s/%u: %s", name, (unsigned)i, f->e.msg);
}

static void expect_error(struct fixture *f, const char *name, uint64_t i, int rc,
			 const char *why)
{
	assert_int_equal(read_chunk(f->s, name, i, &f->e), rc);
	if (!strstr(f->e.msg, why))
		fail_msg("'%s' and not '%s'", f->e.msg, why);
}

static pid_t worker(const struct fixture *f)
{
	return isolated_of(f->s)->worker.child.w.child.pid;
}

/* Nothing is started for a source that is only opened; one process for all reads. */
static void test_one_process(void **state)
{
	struct fixture *f = *state;
	int more[2];
	pid_t pid;

	assert_int_equal(worker(f), 0);
	assert_int_equal(pipe(more), 0);
	expect_good(f, "good", 0);
	pid = worker(f);
	assert_true(pid > 0);
	for (uint64_t i = 0; i < CHUNKS; i++)
		expect_good(f, "good", i); /* the last one looks at the open descriptors */
	assert_int_equal(worker(f), pid);
	assert_int_equal(close(more[0]), 0);
	assert_int_equal(close(more[1]), 0);
}

/* Between requests: no request fails. */
static void test_killed_idle(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < 5; i++) {
		expect_good(f, "good", i);
		assert_int_equal(kill(worker(f), SIGKILL), 0);
	}
	for (int sig = 1; sig < 16; sig++) {
		if (sig != SIGINT && sig != SIGTERM && sig != SIGHUP)
			continue;
		expect_good(f, "good", 6);
		assert_int_equal(kill(worker(f), sig), 0);
		nap(20);
		assert_int_equal(waitpid(worker(f), NULL, WNOHANG), 0); /* not its business */
	}
}

struct reader {
	struct source *s;
	const char *name;
	uint64_t chunk;
	int rc;
	struct err e;
};

static void *reader_main(void *arg)
{
	struct reader *r = arg;

	r->rc = read_chunk(r->s, r->name, r->chunk, &r->e);
	return NULL;
}

/* The chunk "hang"/`chunk` is read, and the worker is killed while it is. */
static void kill_reading(struct fixture *f, uint64_t chunk, struct reader *r)
{
	pthread_t t;
	pid_t pid;

	*r = (struct reader){.s = f->s, .name = "hang", .chunk = chunk};
	atomic_store(begun, 0);
	assert_int_equal(pthread_create(&t, NULL, reader_main, r), 0);
	pid = reader_pid();
	assert_true(pid > 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
}

/* During a request: an error when it was the worker's first, else the next worker answers. */
static void test_killed_reading(void **state)
{
	struct fixture *f = *state;
	struct reader r;

	kill_reading(f, 2, &r);
	assert_int_equal(r.rc, -EIO);
	assert_non_null(strstr(r.e.msg, "killed (signal 9)"));
	expect_good(f, "hang", 2); /* not held against the chunk */
	kill_reading(f, 4, &r);
	assert_int_equal(r.rc, 0);
	expect_good(f, "good", 1);
}

static void test_crash(void **state)
{
	struct fixture *f = *state;

	expect_error(f, "one", 1, -EIO, "crashed (signal 11)");
	expect_good(f, "one", 0);
	expect_error(f, "one", 1, -EIO, "not tried again");
	expect_good(f, "one", 2);
	expect_good(f, "one", 3); /* from now on this worker crashes with everything */
	expect_good(f, "one", 4); /* it was not this chunk's fault: a new one gets it */
	assert_int_equal(read_chunk(f->s, "one", 5, &f->e),
			 -EBADMSG); /* an error of the library */
	expect_error(f, "one", 7, -EIO, "status 3");
	expect_good(f, "one", 8);
}

/* An array that kills one worker after another is left alone; others are served. */
static void test_hostile_array(void **state)
{
	struct fixture *f = *state;

	for (uint64_t i = 0; i < WORKER_TRIES; i++)
		expect_error(f, "all", i, -EIO, "crashed (signal 11)");
	expect_good(f, "good", 0);
	expect_error(f, "all", 7, -EIO, "no further chunk is tried");
	expect_good(f, "good", 8);
}

static void test_hang(void **state)
{
	struct fixture *f = *state;

	open_source(f, 2000);
	expect_error(f, "hang", 1, -EIO, "did not answer within 2 s");
	expect_good(f, "hang", 0);
	expect_error(f, "hang", 1, -EIO, "not tried again");
	expect_error(f, "hang", 6, -EIO, "an invalid answer");
	expect_good(f, "good", 0);
}

static void test_vlen(void **state)
{
	static const uint8_t want[] = "before\3\0\0\0one\0\0\0\0\5\0\0\0three";
	struct fixture *f = *state;
	uint32_t text = find(f->s, "text");
	struct buf b;

	buf_init(&b, sizeof(want) - 1);
	for (int i = 0; i < 3; i++) {
		buf_clear(&b);
		buf_puts(&b, "before");
		if (source_read_vlen(f->s, text, 0, &b, &f->e) < 0)
			fail_msg("%s", f->e.msg);
		assert_int_equal(b.len, sizeof(want) - 1);
		assert_memory_equal(b.data, want, b.len);
		assert_int_equal(kill(worker(f), SIGKILL), 0);
	}
	buf_release(&b);
	buf_init(&b, sizeof(want) - 2);
	buf_puts(&b, "before");
	assert_int_equal(source_read_vlen(f->s, text, 0, &b, &f->e), -ERANGE);
	assert_int_equal(b.len, 6);
	buf_release(&b);
}

/* The thread that started the worker ends; others go on with it, together. */
static void test_threads(void **state)
{
	struct fixture *f = *state;
	struct reader r[8];
	pthread_t t[ARRAY_LEN(r)];
	pid_t pid;

	r[0] = (struct reader){.s = f->s, .name = "good", .chunk = 3};
	assert_int_equal(pthread_create(&t[0], NULL, reader_main, &r[0]), 0);
	assert_int_equal(pthread_join(t[0], NULL), 0);
	assert_int_equal(r[0].rc, 0);
	pid = worker(f);
	nap(50);
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		r[i] = (struct reader){.s = f->s, .name = "good", .chunk = i};
		assert_int_equal(pthread_create(&t[i], NULL, reader_main, &r[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		assert_int_equal(r[i].rc, 0);
	}
	assert_int_equal(worker(f), pid);
}

/* A program that has the file open with the library itself. */
static void test_open_elsewhere(void **state)
{
	struct fixture *f = *state;
	hid_t fapl = h5_fapl(false), file = H5Fopen(f->path, H5F_ACC_RDONLY, fapl);

	assert_true(file > 0);
	assert_int_equal(read_chunk(f->s, "text", 0, &f->e), -EINVAL);
	test_vlen(state);
	h5_id_close(&file);
	h5_id_close(&fapl);
}

static void server(struct fixture *f, int tell)
{
	const pid_t none = 0;
	pid_t pid;

	open_source(f, SOURCE_MS);
	if (read_chunk(f->s, "good", 0, NULL) == 0) {
		pid = worker(f);
		if (write(tell, &pid, sizeof(pid)) == (ssize_t)sizeof(pid))
			(void)read_chunk(f->s, "hang", 1, NULL); /* does not return */
	}
	if (write(tell, &none, sizeof(none)) < 0)
		_exit(1);
	_exit(0);
}

/* A server that is killed takes its worker with it, even one that hangs in the library. */
static void test_server_killed(void **state)
{
	struct fixture *f = *state;
	pid_t pid, child = 0, got = 0;
	int tell[2];

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); /* orphans are ours */
	assert_int_equal(pipe2(tell, O_CLOEXEC), 0);
	atomic_store(begun, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		server(f, tell[1]);
	assert_int_equal(read(tell[0], &child, sizeof(child)), sizeof(child));
	assert_true(child > 0);
	assert_int_equal(reader_pid(), child);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 500 && got != child; i++) {
		got = waitpid(child, NULL, WNOHANG);
		nap(10);
	}
	assert_int_equal(got, child);
	assert_int_equal(close(tell[0]), 0);
	assert_int_equal(close(tell[1]), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_one_process),   CASE(test_killed_idle),   CASE(test_killed_reading),
		CASE(test_crash),         CASE(test_hostile_array), CASE(test_hang),
		CASE(test_vlen),          CASE(test_threads),       CASE(test_open_elsewhere),
		CASE(test_server_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
