/* SPDX-License-Identifier: BSD-3-Clause */
/* test_child.c - children by way of a forker and without one: what they are given, what they
 * have, and how they end. */
#include "base/core/clock.h"
#include "base/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#define WAIT_MS 20000

/* order - what a child is to do. */
struct order {
	enum { ECHO, CRASH, LEAVE, HANG, STATE } what;
	char text[32];
};

static bool g_ready, g_keep;

static bool keeps(void)
{
	return g_keep;
}

/* state - of the process, where the test can see it. */
struct state {
	bool ready, own, fd_kept, other_closed, no_core;
	char read[8];
};

static void say_state(const struct child_self *self)
{
	struct rlimit core = {2, 2};
	struct state st = {.ready = g_ready, .own = self->own != NULL};
	ssize_t n = pread(self->fds[0], st.read, sizeof(st.read) - 1, 0);

	st.fd_kept = n > 0;
	st.other_closed = fcntl(100, F_GETFD) < 0; /* dup2 of the test's */
	st.no_core = getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur <= 1;
	child_say(self->sock, 0, &st, sizeof(st));
}

static void run(const struct child_self *self)
{
	const struct order *o = self->own ? self->own : self->data;

	switch (o->what) {
	case ECHO:
		child_say(self->sock, -EILSEQ, o->text, strlen(o->text));
		break;
	case CRASH:
		(void)raise(SIGKILL);
		break;
	case LEAVE:
		_exit(7);
	case HANG:
		for (;;)
			(void)pause();
	case STATE:
		say_state(self);
		break;
	}
}

static const struct child_kind g_kind = {
	.name = "nczarrfs-test", .who = "a test", .n_fds = 1, .run = run, .keeps_files = keeps};

static void start(const struct order *o, struct child_proc *c)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	struct err e = ERR_INIT;

	assert_true(fd >= 0);
	assert_int_equal(child_start(&g_kind, (void *)(uintptr_t)o, o, sizeof(*o), &fd, c, &e),
			 0);
	assert_int_equal(close(fd), 0);
}

static void take(struct child_proc *c, void *out, size_t n)
{
	assert_int_equal(child_take(c->sock, out, n, clock_ms() + WAIT_MS), CHILD_TAKEN);
}

static void test_echo(void **state)
{
	const struct order o = {.what = ECHO, .text = "what was sent"};
	struct child_answer a;
	struct child_proc c;
	char text[32] = "";

	(void)state;
	start(&o, &c);
	take(&c, &a, sizeof(a));
	assert_int_equal(a.rc, -EILSEQ);
	assert_int_equal(a.len, strlen(o.text));
	take(&c, text, (size_t)a.len);
	assert_string_equal(text, o.text);
	assert_int_equal(child_take(c.sock, text, 1, clock_ms() + WAIT_MS), CHILD_GONE);
	(void)child_end(&c);
	assert_int_equal(c.pid, 0);
	assert_int_equal(child_end(&c), 0);
}

static void test_ends(void **state)
{
	const struct order crash = {.what = CRASH}, leave = {.what = LEAVE},
			   hang = {.what = HANG};
	struct child_proc c;
	int status;
	char byte;

	(void)state;
	start(&crash, &c);
	assert_int_equal(child_take(c.sock, &byte, 1, clock_ms() + WAIT_MS), CHILD_GONE);
	assert_int_equal(child_died_of(child_end(&c)), SIGKILL);
	start(&leave, &c);
	assert_int_equal(child_take(c.sock, &byte, 1, clock_ms() + WAIT_MS), CHILD_GONE);
	status = child_end(&c);
	assert_int_equal(child_died_of(status), 0);
	assert_int_equal(WEXITSTATUS(status), 7);
	start(&hang, &c);
	assert_int_equal(child_take(c.sock, &byte, 1, clock_ms() + 10), CHILD_LATE);
	assert_int_equal(child_died_of(child_end(&c)), SIGKILL);
}

/* A child ends when the other end of its pipe is closed, even while it hangs. */
static void test_life(void **state)
{
	const struct order hang = {.what = HANG};
	struct child_proc c;
	char byte;

	(void)state;
	start(&hang, &c);
	assert_int_equal(close(c.life), 0);
	assert_int_equal(child_take(c.sock, &byte, 1, clock_ms() + WAIT_MS), CHILD_GONE);
	c.life = open("/dev/null", O_RDONLY | O_CLOEXEC);
	(void)child_end(&c);
}

static void look(struct state *st)
{
	const struct order o = {.what = STATE};
	struct child_answer a;
	struct child_proc c;
	int pipe_end[2];

	assert_int_equal(pipe2(pipe_end, 0), 0);
	assert_int_equal(dup2(pipe_end[0], 100), 100);
	start(&o, &c);
	take(&c, &a, sizeof(a));
	assert_int_equal(a.len, sizeof(*st));
	take(&c, st, sizeof(*st));
	(void)child_end(&c);
	(void)close(100);
	(void)close(pipe_end[0]);
	(void)close(pipe_end[1]);
}

static void test_state(void **state)
{
	struct state st;

	look(&st);
	assert_true(st.fd_kept);
	assert_true(st.other_closed);
	assert_true(st.no_core);
	assert_int_equal(st.ready, *state != NULL);
	assert_int_equal(st.own, *state == NULL);
	g_keep = *state == NULL; /* the forker has its own */
	look(&st);
	assert_true(st.fd_kept);
	assert_true(st.other_closed); /* it is no file */
	g_keep = false;
}

static void test_refused(void **state)
{
	struct child_proc c = {.pid = 1};
	struct err e = ERR_INIT;
	int fd = 0;

	assert_int_equal(child_start(&g_kind, NULL, &e, CHILD_DATA_MAX + 1, &fd, &c, &e),
			 -ERANGE);
	assert_int_equal(c.pid, 0);
	if (*state) { /* the descriptor cannot be sent */
		fd = -1;
		assert_int_equal(child_start(&g_kind, NULL, &e, sizeof(e), &fd, &c, &e),
				 -EBADF);
		assert_int_equal(c.pid, 0);
	}
}

static void set_ready(void)
{
	g_ready = true;
}

static int prepare(void **state)
{
	static int forked;
	struct err e = ERR_INIT;

	if (!child_prepared() && child_prepare(set_ready, &e) < 0)
		return -1;
	*state = &forked;
	return child_prepared() ? 0 : -1;
}

/* A child reports errors of its own work only, never a state of the source. */
static void test_errno(void **state NZ_UNUSED)
{
	assert_int_equal(child_errno(-EBADMSG), -EBADMSG);
	assert_int_equal(child_errno(-EOPNOTSUPP), -EOPNOTSUPP);
	assert_int_equal(child_errno(-ENOMEM), -ENOMEM);
	assert_int_equal(child_errno(-ENOENT), -EIO);
	assert_int_equal(child_errno(-ESTALE), -EIO);
	assert_int_equal(child_errno(-EINTR), -EIO);
	assert_int_equal(child_errno(-EAGAIN), -EIO);
	assert_int_equal(child_errno(0), -EIO);
	assert_int_equal(child_errno(-5000), -EIO);
}

#define FORKED(fn)                                                                             \
	{                                                                                      \
#fn ", by the forker", fn, prepare, NULL, NULL                                 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_echo),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_refused),
		FORKED(test_echo),
		FORKED(test_ends),
		FORKED(test_life),
		FORKED(test_state),
		FORKED(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
