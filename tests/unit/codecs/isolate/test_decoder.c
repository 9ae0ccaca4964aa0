/* SPDX-License-Identifier: BSD-3-Clause */
/* test_decoder.c - chunks that are decoded in processes of their own: the same values, and
 * what a decoder that crashes, hangs or lies costs. */
#include "base/process/sandbox_int.h"
#include "codecs/isolate/decoder_int.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define N 50000u
#define POOL 4

/* What a child does before it decodes a chunk of this element size; in memory that all share. */
enum { CRASH = 101, HANG, LEAVE, CALL, SPOIL, LIE };
static bool spoilt;
static int *g_crashes; /* in memory that all processes share */

/* lie - an answer with an error that only the server may find. */
static void lie(void)
{
	const struct child_answer a = {.rc = -ESTALE, .len = 3};
	struct stat st;

	for (int fd = 3; fd < 64; fd++)
		if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
		    write(fd, &a, sizeof(a)) == (ssize_t)sizeof(a))
			(void)!write(fd, "lie", 3);
	_exit(0);
}

static void fault(const struct decoder_request *q, const uint8_t *in NZ_UNUSED)
{
	if (q->elem_size == LIE)
		lie();
	*g_crashes += q->elem_size == CRASH;
	if (q->elem_size == CRASH || spoilt)
		(void)raise(SIGSEGV);
	while (q->elem_size == HANG)
		(void)poll(NULL, 0, 1000);
	if (q->elem_size == LEAVE)
		_exit(3);
	if (q->elem_size == CALL)
		(void)fork();
	if (q->elem_size == SPOIL)
		spoilt = true;
}

static const uint32_t level[] = {1};
static const struct codec_spec both[] = {
	{.h5_id = CODEC_SHUFFLE, .name = ""},
	{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""}};
static const struct codec_chain chain = {.n = 2, .specs = both};

struct stored {
	uint8_t elems[N];
	struct buf b;
};

static void make(struct stored *s, unsigned seed)
{
	struct codec_scratch *scratch = codec_scratch_new();
	struct err e = ERR_INIT;

	for (size_t i = 0; i < N; i++)
		s->elems[i] = (uint8_t)(i * i / 100 + seed);
	buf_init(&s->b, PTRDIFF_MAX);
	assert_int_equal(codec_chain_encode(&chain, 4, s->elems, N, scratch, &s->b, &e), 0);
	codec_scratch_free(scratch);
}

/* decode - once, with an element size that says what goes wrong. */
static int decode(const struct stored *s, size_t elem_size, uint8_t *out,
		  enum worker_fate *ret_end, struct err *e)
{
	struct decoder *d;
	uint8_t *in;
	int rc = decoder_take(&chain, s->b.len, N, false, &d, &in, e);

	if (rc < 0)
		return rc;
	memcpy(in, s->b.data, s->b.len);
	rc = decoder_run(d, &chain, 0, elem_size, out, ret_end, e);
	decoder_give(d);
	return rc;
}

static void expect_good(const struct stored *s)
{
	uint8_t out[N];
	enum worker_fate end;
	struct err e = ERR_INIT;

	if (decode(s, 4, out, &end, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(end, WORKER_FAILED);
	assert_memory_equal(out, s->elems, N);
}

/* expect_bad - a child that did nothing before dies of it: nothing is to be tried again. */
static void expect_bad(const struct stored *s, size_t elem_size, enum worker_fate want,
		       const char *text)
{
	uint8_t out[N];
	enum worker_fate end = WORKER_RETRY;
	struct err e = ERR_INIT;
	int rc = 0;

	for (int i = 0; i < 10 && end == WORKER_RETRY; i++)
		rc = decode(s, elem_size, out, &end, &e);
	assert_int_equal(rc, -EIO);
	assert_int_equal(end, want);
	if (!strstr(e.msg, text))
		fail_msg("'%s' and not '%s'", e.msg, text);
}

static struct stored g_s;

static void test_values(void **state NZ_UNUSED)
{
	for (int i = 0; i < 5; i++)
		expect_good(&g_s);
}

static void test_apart(void **state NZ_UNUSED)
{
	const struct codec_spec plugin[] = {both[0], {.h5_id = 4242, .name = ""}};
	const struct codec_chain odd = {.n = 2, .specs = plugin}, own = {.n = 1, .specs = both};
	pid_t pid;
	int status;

	assert_true(codec_chain_apart(&chain, 0));
	assert_true(codec_chain_apart(&chain, 1));
	assert_false(codec_chain_apart(&chain, 2)); /* deflate was skipped */
	assert_false(codec_chain_apart(&chain, CODEC_ALL_SKIPPED));
	assert_false(codec_chain_apart(&own, 0));
	assert_false(codec_chain_apart(&odd, 0));
	pid = fork();
	if (pid == 0)
		_exit(codec_chain_apart(&chain, 0));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0); /* a fork decodes by itself */
}

/* codec_chain_decode isolates filters for callers that do not use decoders, too. */
static void test_chain(void **state NZ_UNUSED)
{
	struct codec_scratch *scratch = codec_scratch_new();
	struct err e = ERR_INIT;
	uint8_t out[N];
	const uint8_t *got;
	size_t len;

	assert_int_equal(
		codec_chain_decode(&chain, 0, 4, g_s.b.data, g_s.b.len, out, N, scratch, &e),
		0);
	assert_memory_equal(out, g_s.elems, N);
	assert_int_equal(codec_chain_decode_any(&chain, 4, g_s.b.data, g_s.b.len,
						(size_t)1 << 20, scratch, &got, &len, &e),
			 0);
	assert_int_equal(len, N);
	assert_memory_equal(got, g_s.elems, N);
	assert_int_equal(codec_chain_decode(&chain, 0, 4, g_s.b.data, g_s.b.len - 5, out, N,
					    scratch, &e),
			 -EBADMSG);
	if (decoder_fault)
		assert_int_equal(codec_chain_decode(&chain, 0, CRASH, g_s.b.data, g_s.b.len,
						    out, N, scratch, &e),
				 -EIO);
	codec_scratch_free(scratch);
}

static void test_damaged(void **state NZ_UNUSED)
{
	struct stored s = {.b = {.max = PTRDIFF_MAX}};
	uint8_t out[N];
	enum worker_fate end;
	struct err e = ERR_INIT;

	make(&s, 9);
	memset(s.b.data, 0xff, 20);
	assert_int_equal(decode(&s, 4, out, &end, &e), -EBADMSG);
	assert_int_equal(end, WORKER_FAILED);
	assert_true(e.msg[0]);
	buf_release(&s.b);
}

static void test_deaths(void **state NZ_UNUSED)
{
	uint8_t out[N];
	enum worker_fate end;
	struct err e = ERR_INIT;

	expect_bad(&g_s, CRASH, WORKER_FATAL, "crashed (signal 11)");
	expect_good(&g_s);
	if (!SANDBOX_OFF) /* a process of its own is refused, and the decoder goes on */
		assert_int_equal(decode(&g_s, CALL, out, &end, &e), 0);
	expect_bad(&g_s, LEAVE, WORKER_FATAL, "exited (status 3)");
	expect_good(&g_s);
	decoder_set_time(1000);
	expect_bad(&g_s, HANG, WORKER_FATAL, "did not answer within 1 s");
	decoder_set_time(DECODER_MS);
	expect_good(&g_s);
}

/* Memory that an earlier chunk damaged is not held against a later one. */
static void test_spoilt(void **state NZ_UNUSED)
{
	uint8_t out[N];
	enum worker_fate end;
	struct err e = ERR_INIT;

	assert_int_equal(decode(&g_s, SPOIL, out, &end, &e), 0); /* shuffled otherwise */
	assert_int_equal(decode(&g_s, 4, out, &end, &e), -EIO);
	assert_int_equal(end, WORKER_RETRY);
	expect_good(&g_s);
}

/* A chunk that ends decoders ends one that has worked before, and then a fresh one. */
static void test_bounded(void **state NZ_UNUSED)
{
	struct codec_scratch *scratch = codec_scratch_new();
	struct decoder *d[POOL];
	uint8_t out[N], *in;
	enum worker_fate end;
	struct err e = ERR_INIT;

	for (int i = 0; i < POOL; i++) {
		assert_int_equal(decoder_take(&chain, g_s.b.len, N, false, &d[i], &in, &e), 0);
		memcpy(in, g_s.b.data, g_s.b.len);
		assert_int_equal(decoder_run(d[i], &chain, 0, 4, out, &end, &e), 0);
	}
	for (int i = 0; i < POOL; i++)
		decoder_give(d[i]);
	*g_crashes = 0;
	assert_int_equal(codec_chain_decode(&chain, 0, CRASH, g_s.b.data, g_s.b.len, out, N,
					    scratch, &e),
			 -EIO);
	assert_int_equal(*g_crashes, 2);
	codec_scratch_free(scratch);
}

/* The errno of an answer is one that decoding can have. */
static void test_lie(void **state NZ_UNUSED)
{
	static const int64_t others[] = {-ESTALE, -ENOENT, -EINTR, -EAGAIN, -4096, INT64_MIN, 5};
	uint8_t out[N];
	enum worker_fate end;
	struct err e = ERR_INIT;

	assert_int_equal(decode(&g_s, LIE, out, &end, &e), -EIO);
	assert_string_equal(e.msg, "lie");
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(child_errno(others[i]), -EIO);
	assert_int_equal(child_errno(-EBADMSG), -EBADMSG);
	do /* the one that lied may still be about to end */
		(void)decode(&g_s, 4, out, &end, &e);
	while (end == WORKER_RETRY);
	expect_good(&g_s);
}

static void *decode_many(void *arg)
{
	for (int i = 0; i < 50; i++)
		expect_good(arg);
	return NULL;
}

static void test_threads(void **state NZ_UNUSED)
{
	struct stored s[6];
	pthread_t t[6];

	for (unsigned i = 0; i < 6; i++) {
		make(&s[i], i);
		assert_int_equal(pthread_create(&t[i], NULL, decode_many, &s[i]), 0);
	}
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		buf_release(&s[i].b);
	}
}

/* A chunk that is larger than any before: memory and address space grow. */
static void test_large(void **state NZ_UNUSED)
{
	const size_t n = (size_t)200 << 20;
	struct codec_scratch *scratch = codec_scratch_new();
	const struct codec_chain one = {.n = 1, .specs = both + 1};
	uint8_t *out = malloc(n), *zeros = calloc(n, 1), *in;
	enum worker_fate end;
	struct decoder *d;
	struct err e = ERR_INIT;
	struct buf b;

	buf_init(&b, PTRDIFF_MAX);
	assert_int_equal(codec_chain_encode(&one, 1, zeros, n, scratch, &b, &e), 0);
	assert_int_equal(decoder_take(&one, b.len, n, false, &d, &in, &e), 0);
	memcpy(in, b.data, b.len);
	if (decoder_run(d, &one, 0, 1, out, &end, &e) < 0)
		fail_msg("%s", e.msg);
	decoder_give(d);
	assert_memory_equal(out, zeros, n);
	buf_release(&b);
	free(out);
	free(zeros);
	codec_scratch_free(scratch);
}

static int set_up(void **state NZ_UNUSED)
{
	struct err e = ERR_INIT;

	decoder_fault = fault;
	g_crashes = mmap(NULL, sizeof(*g_crashes), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (g_crashes == MAP_FAILED)
		return -1;
	make(&g_s, 0);
	if (!child_prepared() && child_prepare(NULL, &e) < 0)
		return -1;
	codec_isolate(POOL);
	return 0;
}

static int tear_down(void **state NZ_UNUSED)
{
	buf_release(&g_s.b);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),  cmocka_unit_test(test_apart),
		cmocka_unit_test(test_chain),   cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_deaths),  cmocka_unit_test(test_spoilt),
		cmocka_unit_test(test_threads), cmocka_unit_test(test_large),
		cmocka_unit_test(test_lie),     cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
