/* SPDX-License-Identifier: BSD-3-Clause */
/* test_worker.c - calls of processes: what a child may answer, what its death means, and which
 * chunks are not tried again. */
#include "base/process/worker.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/core/clock.h"
#include "base/os/cancel.h"
#include "base/process/sandbox_int.h"

#define WAIT_MS 60000
#define BYTES 100000u

/* What the child does with a request. */
enum op {
	NUMBER,
	REASON,
	PAYLOAD,
	SHORT,
	RETRY,
	RETRY_LONG,
	CRASH,
	KILL,
	LEAVE,
	BLAMELESS,
	HANG,
	WELL
};

struct request {
	uint32_t op;
	int32_t rc;
	uint64_t size; /* of the shared memory */
	uint64_t len;
};

static void answer(int sock, int64_t rc, uint64_t len)
{
	const struct child_answer a = {.rc = rc, .len = len};

	(void)child_send(sock, &a, sizeof(a), 0);
}

static void obey(const struct shm *r, int sock, const struct request *q)
{
	static uint8_t bytes[BYTES];
	struct err e = ERR_INIT;

	switch ((enum op)q->op) {
	case NUMBER:
		r->at[0]++;
		worker_reply(sock, 0, q->len, &e);
		return;
	case REASON:
		(void)err_set(&e, -EIO, "because");
		worker_reply(sock, q->rc, 0, &e);
		return;
	case PAYLOAD:
		memset(bytes, 7, sizeof(bytes));
		child_say(sock, 0, bytes, (size_t)q->len);
		return;
	case SHORT:
		answer(sock, 0, q->len);
		_exit(0);
	case WELL:
		_exit(0);
	case RETRY:
		worker_reply(sock, q->rc, 0, &e);
		return;
	case RETRY_LONG:
		answer(sock, q->rc, q->len);
		return;
	case CRASH:
		(void)raise(SIGSEGV);
		return;
	case KILL:
		(void)raise(SIGKILL);
		return;
	case LEAVE:
		_exit(3);
	case BLAMELESS:
		_exit(75);
	case HANG:
		for (;;)
			(void)poll(NULL, 0, 1000);
	}
}

static void serve(const struct child_self *self)
{
	struct shm r = {.fd = self->fds[0]};
	struct request q;

	while (worker_next(self->sock, &q, sizeof(q)) && shm_map(&r, q.size))
		obey(&r, self->sock, &q);
}

static const struct child_kind kind = {
	.name = "test-worker", .who = "tests", .n_fds = 1, .run = serve};
static const struct worker_words words = {
	.late = ", late",
	.invalid = " lied",
	.killed = " was killed",
	.crashed = ", crashed",
	.ended = " left",
	.ended_of = ", left",
	.blameless = {{" could not begin", 75}, {" ended well", 0}},
};

static void start(struct worker *w)
{
	struct err e = ERR_INIT;
	uint32_t job = 1;

	*w = (struct worker){0};
	if (worker_start(w, &kind, &job, sizeof(job), &e) < 0)
		fail_msg("%s", e.msg);
}

static enum child_taken call(struct worker *w, struct worker_call *c, enum op op, int rc,
			     uint64_t len, struct err *e)
{
	struct request q = {.op = op, .rc = rc, .size = w->shared.size, .len = len};
	enum child_taken got;

	c->request = &q;
	c->size = sizeof(q);
	c->ms = c->ms ? c->ms : WAIT_MS;
	got = worker_call(w, c, e);
	c->request = NULL;
	return got;
}

static void test_number(void **state NZ_UNUSED)
{
	struct worker_call c = {.ms = WAIT_MS};
	struct err e = ERR_INIT;
	struct worker w;

	start(&w);
	for (unsigned i = 1; i < 4; i++) {
		assert_int_equal(call(&w, &c, NUMBER, 0, 5 * i, &e), CHILD_TAKEN);
		assert_int_equal(c.rc, 0);
		assert_int_equal(c.len, 5 * i);
		assert_int_equal(w.shared.at[0], i);
		assert_int_equal(w.served, i);
	}
	assert_true(worker_alive(&w));
	(void)worker_end(&w);
	assert_false(worker_alive(&w));
	assert_null(w.shared.at);
}

/* The errno of an answer is one that a child may have, and its reason is bounded. */
static void test_reason(void **state NZ_UNUSED)
{
	static const struct {
		int said, got;
	} codes[] = {{-EBADMSG, -EBADMSG}, {-ENOMEM, -ENOMEM}, {-ENOENT, -EIO},
		     {-ESTALE, -EIO},      {-EINTR, -EIO},     {-EAGAIN, -EIO},
		     {-5000, -EIO},        {INT32_MIN, -EIO}};
	static const int also[] = {-EACCES, -ESTALE, 0};
	struct worker_call c = {.known = 2};
	struct err e = ERR_INIT;
	struct worker w;

	start(&w);
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		assert_int_equal(call(&w, &c, REASON, codes[i].said, 0, &e), CHILD_TAKEN);
		assert_int_equal(c.rc, codes[i].got);
		assert_int_equal(e.code, codes[i].got);
		assert_string_equal(e.msg, "because");
	}
	c.also = also; /* of one kind of child */
	assert_int_equal(call(&w, &c, REASON, -ESTALE, 0, &e), CHILD_TAKEN);
	assert_int_equal(c.rc, -ESTALE);
	assert_int_equal(call(&w, &c, REASON, -ENOENT, 0, &e), CHILD_TAKEN);
	assert_int_equal(c.rc, -EIO);
	assert_int_equal(call(&w, &c, RETRY, 2, 0, &e), CHILD_TAKEN);
	assert_int_equal(c.rc, 2);
	assert_int_equal(call(&w, &c, RETRY_LONG, 2, 1, &e), CHILD_WRONG);
	assert_int_equal(call(&w, &c, RETRY, 3, 0, &e), CHILD_WRONG);
	assert_int_equal(call(&w, &c, RETRY_LONG, -EIO, ERR_TEXT_MAX, &e), CHILD_WRONG);
	assert_int_equal(worker_lost(&w, &words, "it", CHILD_WRONG, WAIT_MS, NULL, &e), -EIO);
	assert_string_equal(e.msg, "it lied");
	assert_int_equal(w.child.pid, 0);
}

static void test_payload(void **state NZ_UNUSED)
{
	static uint8_t bytes[BYTES];
	struct worker_call c = {.out = bytes, .len = sizeof(bytes)};
	struct err e = ERR_INIT;
	struct worker w;
	struct buf b;

	start(&w);
	assert_int_equal(call(&w, &c, PAYLOAD, 0, sizeof(bytes), &e), CHILD_TAKEN);
	assert_int_equal(bytes[BYTES - 1], 7);
	assert_int_equal(call(&w, &c, REASON, -ERANGE, 0, &e), CHILD_TAKEN);
	assert_int_equal(c.rc, -ERANGE);
	c.len = sizeof(bytes); /* another length is none */
	assert_int_equal(call(&w, &c, PAYLOAD, 0, sizeof(bytes) - 1, &e), CHILD_WRONG);
	(void)worker_end(&w);

	buf_init(&b, 4 * BYTES);
	assert_non_null(buf_grow(&b, 3));
	c = (struct worker_call){.append = &b, .len = 50};
	start(&w);
	assert_int_equal(call(&w, &c, PAYLOAD, 0, 0, &e), CHILD_TAKEN);
	c.len = 50;
	assert_int_equal(call(&w, &c, PAYLOAD, 0, 50, &e), CHILD_TAKEN);
	assert_int_equal(b.len, 53);
	c.len = 50;
	assert_int_equal(call(&w, &c, PAYLOAD, 0, 51, &e), CHILD_WRONG);
	assert_int_equal(b.len, 53);
	(void)worker_end(&w);
	start(&w);
	c.len = 50;
	assert_int_equal(call(&w, &c, SHORT, 0, 9, &e), CHILD_GONE);
	assert_int_equal(b.len, 53);
	assert_int_equal(w.served, 0); /* half an answer is none: the next death is final */
	(void)worker_end(&w);
	b.max = 60;
	start(&w);
	c.len = 50;
	assert_int_equal(call(&w, &c, PAYLOAD, 0, 50, &e), CHILD_GIVEN_UP);
	assert_int_equal(c.rc, -ENOMEM);
	(void)worker_end(&w);
	buf_release(&b);
}

/* lose - how a process that answered `before` calls ends, and what follows. */
static enum worker_fate lose(enum op op, unsigned before, uint64_t ms, const char *text)
{
	struct worker_call c = {.ms = WAIT_MS};
	enum worker_fate fate = WORKER_FAILED;
	struct err e = ERR_INIT;
	enum child_taken got;
	struct worker w;

	start(&w);
	for (unsigned i = 0; i < before; i++)
		assert_int_equal(call(&w, &c, NUMBER, 0, 0, &e), CHILD_TAKEN);
	c.ms = ms;
	got = call(&w, &c, op, 0, 0, &e);
	assert_int_equal(got, op == HANG ? CHILD_LATE : CHILD_GONE);
	assert_int_equal(worker_lost(&w, &words, "it", got, ms, &fate, &e), -EIO);
	assert_string_equal(e.msg, text);
	assert_int_equal(w.child.pid, 0);
	assert_null(w.shared.at);
	return fate;
}

static void test_deaths(void **state NZ_UNUSED)
{
	int64_t began;

	if (!SANDBOX_OFF) { /* a sanitizer reports, and exits */
		assert_int_equal(lose(CRASH, 0, WAIT_MS, "it crashed (signal 11), crashed"),
				 WORKER_FATAL);
		assert_int_equal(lose(CRASH, 2, WAIT_MS, "it crashed (signal 11), crashed"),
				 WORKER_RETRY);
	}
	assert_int_equal(lose(LEAVE, 0, WAIT_MS, "it left (status 3), left"), WORKER_FATAL);
	assert_int_equal(lose(LEAVE, 1, WAIT_MS, "it left (status 3), left"), WORKER_RETRY);
	/* it was killed from outside: the request is not to blame */
	assert_int_equal(lose(KILL, 0, WAIT_MS, "it was killed"), WORKER_FAILED);
	assert_int_equal(lose(BLAMELESS, 0, WAIT_MS, "it could not begin"), WORKER_FAILED);
	assert_int_equal(lose(WELL, 0, WAIT_MS, "it ended well"), WORKER_LOST);
	assert_int_equal(lose(WELL, 1, WAIT_MS, "it ended well"), WORKER_RETRY);
	began = clock_ms();
	assert_int_equal(lose(HANG, 0, 200, "it did not answer within 1 s, late"),
			 WORKER_FATAL);
	assert_int_equal(lose(HANG, 1, 200, "it did not answer within 1 s, late"),
			 WORKER_FATAL);
	assert_true(clock_ms() - began < WAIT_MS / 2);
}

static void test_idle_death(void **state NZ_UNUSED)
{
	struct worker w;
	struct pollfd p = {.events = POLLIN};

	start(&w);
	(void)kill(w.child.pid, SIGKILL);
	p.fd = w.child.sock;
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_false(worker_alive(&w));
	assert_int_equal(w.child.pid, 0);
}

static void test_cancelled(void **state NZ_UNUSED)
{
	struct worker_call c = {.cancels = true};
	struct err e = ERR_INIT;
	struct cancel stop = {0};
	struct worker w;

	start(&w);
	assert_int_equal(call(&w, &c, NUMBER, 0, 1, &e), CHILD_TAKEN);
	cancel_begin(&stop);
	cancel_request(&stop);
	assert_int_equal(call(&w, &c, HANG, 0, 0, &e), CHILD_GIVEN_UP);
	cancel_end(&stop);
	assert_int_equal(c.rc, -EINTR);
	(void)worker_end(&w);
}

static void test_place(void **state NZ_UNUSED)
{
	uint64_t end = 3;

	assert_int_equal(worker_place(&end, 10), 64);
	assert_int_equal(end, 74);
	assert_int_equal(worker_place(&end, 0), 128);
	assert_int_equal(end, 128);
	assert_int_equal(worker_place(&end, UINT64_MAX - 100), 0);
	assert_true(end == UINT64_MAX);
	(void)worker_place(&end, 1);
	assert_true(end == UINT64_MAX);
}

static bool is_second(const struct worker *w, const void *arg)
{
	return w == arg;
}

static void test_pool(void **state NZ_UNUSED)
{
	static struct worker_pool pool = WORKER_POOL_INIT(2);
	struct worker *a, *b;
	pid_t pid;
	int status;

	a = worker_take(&pool, NULL, NULL);
	start(a);
	a->busy = true;
	b = worker_take(&pool, NULL, NULL);
	assert_ptr_not_equal(a, b);
	start(b);
	b->busy = true;
	worker_give(&pool, a);
	assert_ptr_equal(worker_take(&pool, is_second, b), a); /* b is busy */
	worker_give(&pool, a);
	worker_give(&pool, b);
	assert_ptr_equal(worker_take(&pool, is_second, b), b);
	worker_give(&pool, b);
	(void)worker_end(a);
	assert_ptr_equal(worker_take(&pool, NULL, NULL), b); /* one that has a process */
	worker_give(&pool, b);
	assert_ptr_equal(worker_take(&pool, is_second, NULL),
			 a); /* a new one before another's */
	worker_give(&pool, a);
	pid = fork();
	if (pid == 0)
		_exit(worker_take(&pool, NULL, NULL)->child.pid != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0); /* a fork has no children of ours */
	assert_true(worker_alive(b));
	(void)worker_end(b);
}

static void test_blame(void **state NZ_UNUSED)
{
	struct worker_blame b = {0};
	struct err e = ERR_INIT;
	int64_t end;

	assert_int_equal(worker_blame_check(&b, 1, 1, "x", "", &e), 0);
	worker_blame_add(&b, 1, 1, 0);
	assert_int_equal(worker_blame_check(&b, 1, 1, "x", " now", &e), -EIO);
	assert_string_equal(e.msg, "x crashed or hung on it before: it is not tried again now");
	assert_int_equal(worker_blame_check(&b, 1, 2, "x", "", &e), 0);
	assert_int_equal(worker_blame_check(&b, 2, 1, "x", "", &e), 0);
	worker_blame_add(&b, 1, 2, 0);
	worker_blame_add(&b, 1, 3, 50);
	end = clock_ms() + 50;
	if (worker_blame_check(&b, 1, 9, "x", "", &e) == 0)
		assert_true(clock_ms() >= end - 50);
	else
		assert_string_equal(e.msg, "x crashed or hung on 3 chunks of the array: no "
					   "further chunk is tried");
	while (clock_ms() <= end)
		(void)poll(NULL, 0, 10);
	assert_int_equal(worker_blame_check(&b, 1, 9, "x", "", &e),
			 0); /* one has had its rest */
	assert_int_equal(worker_blame_check(&b, 1, 3, "x", "", &e), 0);
	assert_int_equal(worker_blame_check(&b, 1, 2, "x", "", &e), -EIO);
	worker_blame_add(&b, 7, 7, 0);
	assert_int_equal(b.n, 3); /* what has had its rest is forgotten */
	worker_blame_release(&b);
}

static int set_up(void **state NZ_UNUSED)
{
	struct err e = ERR_INIT;

	return child_prepare(NULL, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_number),     cmocka_unit_test(test_reason),
		cmocka_unit_test(test_payload),    cmocka_unit_test(test_deaths),
		cmocka_unit_test(test_idle_death), cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_place),      cmocka_unit_test(test_pool),
		cmocka_unit_test(test_blame),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
