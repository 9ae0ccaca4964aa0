/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sandbox.c - what children may do, by trying it: one child for each attempt. With
 * sanitizers there is no sandbox, and here is nothing to be tested. */
#include "base/process/sandbox_int.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/core/clock.h"
#include "base/process/child.h"
#include "base/os/io.h"

#define WAIT_MS 20000

static char g_dir[64], g_inside[80], g_outside[80], g_own[80], g_link[80];
static int g_none = -1;

/* An attempt gives 0 when it succeeded, else its errno. */
typedef int attempt(const struct child_self *self);

static int result(long rc)
{
	return rc < 0 ? errno : 0;
}

static int opened(int fd)
{
	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

static int open_passwd(const struct child_self *self NZ_UNUSED)
{
	return opened(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int open_inside(const struct child_self *self NZ_UNUSED)
{
	return opened(open(g_inside, O_RDONLY | O_CLOEXEC));
}

static int open_by_link(const struct child_self *self NZ_UNUSED)
{
	return opened(open(g_link, O_RDONLY | O_CLOEXEC)); /* a link inside, its target outside */
}

static int open_outside(const struct child_self *self NZ_UNUSED)
{
	return opened(open(g_outside, O_RDONLY | O_CLOEXEC));
}

static int write_inside(const struct child_self *self NZ_UNUSED)
{
	return opened(open(g_inside, O_WRONLY | O_CLOEXEC));
}

static int write_outside(const struct child_self *self NZ_UNUSED)
{
	return opened(open(g_outside, O_RDWR | O_CLOEXEC));
}

/* openat2 has its flags in memory, where a filter does not look: Landlock refuses. */
static int write_openat2(const struct child_self *self NZ_UNUSED)
{
	struct {
		uint64_t flags, mode, resolve;
	} how = {.flags = O_WRONLY};

	return opened((int)syscall(SYS_openat2, AT_FDCWD, g_inside, &how, sizeof(how)));
}

static int create(const struct child_self *self NZ_UNUSED)
{
	char path[100];

	(void)snprintf(path, sizeof(path), "%s/new", g_dir);
	return opened(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int remove_inside(const struct child_self *self NZ_UNUSED)
{
	return result(unlink(g_inside));
}

static int rename_outside(const struct child_self *self NZ_UNUSED)
{
	return result(rename(g_outside, g_inside));
}

static int read_fd(const struct child_self *self)
{
	char b[4];

	return pread(self->fds[0], b, sizeof(b), 0) == (ssize_t)sizeof(b) ? 0 : EIO;
}

static int reopen_fd(const struct child_self *self)
{
	char name[40];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", self->fds[0]);
	return opened(open(name, O_RDWR | O_CLOEXEC));
}

static int write_fd(const struct child_self *self)
{
	return result(pwrite(self->fds[0], "x", 1, 0));
}

static int truncate_fd(const struct child_self *self)
{
	return result(ftruncate(self->fds[0], 0));
}

static int make_socket(const struct child_self *self NZ_UNUSED)
{
	return opened(socket(AF_INET, SOCK_STREAM, 0));
}

static int connect_local(const struct child_self *self)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "/run/nothing"};

	return result(connect(self->sock, (struct sockaddr *)&a, sizeof(a)));
}

static int execute(const struct child_self *self NZ_UNUSED)
{
	char *const argv[] = {(char *)(uintptr_t) "true", NULL};

	return result(execve("/bin/true", argv, NULL));
}

static int trace(const struct child_self *self NZ_UNUSED)
{
	return result(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int ring(const struct child_self *self NZ_UNUSED)
{
	return result(syscall(425 /* io_uring_setup */, 1, NULL));
}

static int kill_parent(const struct child_self *self NZ_UNUSED)
{
	return result(kill(getppid(), 0));
}

static int kill_all(const struct child_self *self NZ_UNUSED)
{
	return result(kill(-1, 0));
}

static int kill_self(const struct child_self *self NZ_UNUSED)
{
	return result(kill(getpid(), 0));
}

static int abort_self(const struct child_self *self NZ_UNUSED)
{
	abort();
}

static int ignore_time(const struct child_self *self NZ_UNUSED)
{
	return signal(SIGXCPU, SIG_IGN) == SIG_ERR ? errno : 0;
}

static int more_time(const struct child_self *self NZ_UNUSED)
{
	const struct rlimit r = {RLIM_INFINITY, RLIM_INFINITY};

	return result(setrlimit(RLIMIT_CPU, &r));
}

static int own_signal(const struct child_self *self)
{
	return result(fcntl(self->sock, F_SETOWN, getppid()));
}

static int make_process(const struct child_self *self NZ_UNUSED)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return errno;
	(void)waitpid(pid, NULL, 0);
	return 0;
}

static int map_code(const struct child_self *self NZ_UNUSED)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int code_of_memory(const struct child_self *self NZ_UNUSED)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? ENOMEM : result(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int load(const struct child_self *self NZ_UNUSED)
{
	return dlopen("libbz2.so.1.0", RTLD_NOW | RTLD_LOCAL) ? 0 : ENOENT;
}

static int memory(const struct child_self *self NZ_UNUSED)
{
	void *p = mmap(NULL, (size_t)2 << 30, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? errno : 0;
}

static int some_memory(const struct child_self *self NZ_UNUSED)
{
	void *p = malloc((size_t)100 << 20);

	free(p);
	return p ? 0 : ENOMEM;
}

/* in_status - whether a line of /proc/self/status has this value; opened before the sandbox. */
static int g_status = -1;

static int shown(const char *line)
{
	char text[8192];
	ssize_t n = pread(g_status, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return strstr(text, line) ? 0 : ENODATA;
}

static int filtered(const struct child_self *self NZ_UNUSED)
{
	return shown("Seccomp:\t2\n") || shown("NoNewPrivs:\t1\n");
}

/* An attempt, the kinds that may make it, and its result: an errno, or minus a signal. */
enum { NOBODY = 0, FDS = 1, OPENS = 2, LOADS = 4, WRITES = 8, READERS = 7, ALL = 15 };

static const struct {
	const char *name;
	attempt *fn;
	unsigned ok;   /* kinds that succeed */
	int otherwise; /* of the others; 0: any errno */
} attempts[] = {
	{"seccomp is on", filtered, ALL, 0},
	{"reads its descriptor", read_fd, ALL, 0},
	{"some memory", some_memory, ALL, 0},
	{"kill of itself", kill_self, ALL, 0},
	{"/etc/passwd", open_passwd, NOBODY, 0},
	{"a file of its list", open_inside, OPENS | LOADS | WRITES, EPERM},
	{"a link that leads away", open_by_link, NOBODY, 0},
	{"another file", open_outside, NOBODY, 0},
	{"writing to a file", write_inside, WRITES, EPERM},
	{"writing by openat2", write_openat2, WRITES, 0},
	{"writing to another file", write_outside, NOBODY, 0},
	{"a new file", create, WRITES, EPERM},
	{"removing a file", remove_inside, WRITES, EPERM},
	{"renaming another file", rename_outside, NOBODY, 0},
	{"its descriptor for writing", reopen_fd, NOBODY, 0},
	{"pwrite", write_fd, NOBODY, 0},
	{"ftruncate", truncate_fd, NOBODY, 0},
	{"a socket", make_socket, NOBODY, EPERM},
	{"connect", connect_local, NOBODY, EPERM},
	{"execve", execute, NOBODY, -SIGSYS},
	{"ptrace", trace, NOBODY, -SIGSYS},
	{"io_uring", ring, NOBODY, -SIGSYS},
	{"kill of its parent", kill_parent, NOBODY, EPERM},
	/* Landlock refuses one by one, and the kernel then says that nothing went wrong */
	{"kill of everybody", kill_all, WRITES, EPERM},
	{"abort", abort_self, NOBODY, -SIGABRT},
	{"ignoring SIGXCPU", ignore_time, WRITES, EPERM},
	{"more time", more_time, WRITES, EPERM},
	{"signals by fcntl", own_signal, WRITES, EPERM},
	{"fork", make_process, WRITES, EPERM},
	{"mapping code", map_code, LOADS | WRITES, EPERM},
	{"memory becomes code", code_of_memory, LOADS | WRITES, EPERM},
	{"dlopen", load, LOADS | WRITES, ENOENT},
	{"two GiB", memory, NOBODY, ENOMEM},
};

static const unsigned kinds[] = {0, SANDBOX_OPENS, SANDBOX_OPENS | SANDBOX_LOADS,
				 SANDBOX_OPENS | SANDBOX_LOADS | SANDBOX_WRITES};

static void run(const struct child_self *self)
{
	const size_t *job = self->own;
	const struct sandbox_limits limits = {.memory = (uint64_t)1 << 30, .cpu_ms = 60000};
	const unsigned may = kinds[job[1]];
	const struct sandbox_path paths[] = {
		{.path = g_dir, .fd = -1, .writable = may & SANDBOX_WRITES},
		{.fd = self->fds[0]}};
	struct err e = ERR_INIT;
	int rc;

	g_status = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (job[1] == 0)
		(void)dlerror(); /* what dlopen needs is loaded with the first call */
	rc = sandbox_enter(may, paths, ARRAY_LEN(paths), &limits, &e);
	if (rc < 0) {
		child_say(self->sock, rc, e.msg, strlen(e.msg));
		return;
	}
	child_say(self->sock, attempts[job[0]].fn(self), NULL, 0);
}

static const struct child_kind g_kinds[] = {
	{.name = "sandbox-test", .who = "a test", .n_fds = 1, .may = 0, .run = run},
	{.name = "sandbox-test", .who = "a test", .n_fds = 1, .may = 1, .run = run},
	{.name = "sandbox-test", .who = "a test", .n_fds = 1, .may = 3, .run = run},
	{.name = "sandbox-test", .who = "a test", .n_fds = 1, .may = 7, .run = run},
};

/* one - what came of attempt i for kind k: 0, an errno, or minus a signal. */
static int one(size_t i, size_t k)
{
	size_t job[] = {i, k};
	auto_fd int fd = open(g_own, O_RDONLY | O_CLOEXEC);
	struct err e = ERR_INIT;
	struct child_answer a = {0};
	struct child_proc c;
	enum child_taken got;
	int status;

	assert_int_equal(child_start(&g_kinds[k], job, NULL, 0, &fd, &c, &e), 0);
	got = child_take(c.sock, &a, sizeof(a), clock_ms() + WAIT_MS);
	assert_int_not_equal(got, CHILD_LATE);
	status = child_end(&c);
	if (got == CHILD_TAKEN && a.rc < 0)
		fail_msg("%s, kind %zu: the sandbox refused to begin", attempts[i].name, k);
	return got == CHILD_TAKEN ? (int)a.rc : -child_died_of(status);
}

static void put(const char *path)
{
	auto_fd int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "text", 4), 4);
}

static void test_attempts(void **state)
{
	unsigned wrong = 0;

	(void)state;
	if (SANDBOX_OFF)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
		for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
			const bool may = attempts[i].ok & 1U << k;
			int want = attempts[i].otherwise, got;
			bool good;

			put(g_inside);
			put(g_outside);
			put(g_own);
			got = one(i, k);
			/* Landlock says EACCES to what opens at all */
			good = may ? got == 0
				   : got != 0 && (want == 0 || got == want ||
						  (want == EPERM && got == EACCES));
			if (!good)
				print_error("%s, kind %zu: %d\n", attempts[i].name, k, got);
			wrong += !good;
		}
	assert_int_equal(wrong, 0);
}

/* Processor time: a child that burns it is ended, one whose time is renewed is not. */
static void burn(const struct child_self *self)
{
	const struct sandbox_limits limits = {.cpu_ms = 1};
	volatile uint64_t n = 0;

	if (sandbox_enter(0, NULL, 0, &limits, NULL) < 0)
		return;
	child_say(self->sock, 0, NULL, 0);
	for (;;)
		n = n + 1;
}

static void test_time(void **state)
{
	static const struct child_kind kind = {
		.name = "sandbox-test", .who = "a test", .run = burn};
	struct child_answer a;
	struct err e = ERR_INIT;
	struct child_proc c;
	struct rlimit r;
	int fd = -1;

	(void)state;
	assert_int_equal(child_start(&kind, &fd, NULL, 0, &fd, &c, &e), 0);
	assert_int_equal(child_take(c.sock, &a, sizeof(a), clock_ms() + WAIT_MS), CHILD_TAKEN);
	assert_int_equal(prlimit(c.pid, RLIMIT_CPU, NULL, &r), 0);
	assert_true(r.rlim_cur < 10);
	child_renew(&c, 1000000);
	assert_int_equal(prlimit(c.pid, RLIMIT_CPU, NULL, &r), 0);
	assert_true(r.rlim_cur >= 1000);
	r.rlim_cur = 1;
	assert_int_equal(prlimit(c.pid, RLIMIT_CPU, &r, NULL), 0);
	assert_int_equal(child_take(c.sock, &a, sizeof(a), clock_ms() + WAIT_MS), CHILD_GONE);
	assert_int_equal(child_died_of(child_end(&c)), SIGXCPU);
}

/* Send the environment of a child. */
static void tell_env(const struct child_self *self)
{
	const char *key = getenv("AWS_SECRET_ACCESS_KEY"), *kept = getenv("HDF5_TEST_KEPT");

	child_say(self->sock, (key ? 1 : 0) + (kept ? 2 : 0), NULL, 0);
}

static int g_forgotten;

static void forget(void)
{
	g_forgotten++;
}

static void tell_forgotten(const struct child_self *self)
{
	child_say(self->sock, g_forgotten, NULL, 0);
}

static int64_t ask(const struct child_kind *kind)
{
	struct child_answer a = {0};
	struct child_proc c;
	struct err e = ERR_INIT;

	assert_int_equal(child_start(kind, &g_none, NULL, 0, &g_none, &c, &e), 0);
	assert_int_equal(child_take(c.sock, &a, sizeof(a), clock_ms() + WAIT_MS), CHILD_TAKEN);
	(void)child_end(&c);
	return a.rc;
}

static void test_secrets(void **state)
{
	static const struct child_kind env = {
		.name = "sandbox-test", .who = "a test", .run = tell_env};
	static const struct child_kind told = {
		.name = "sandbox-test", .who = "a test", .run = tell_forgotten};

	(void)state;
	assert_int_equal(setenv("AWS_SECRET_ACCESS_KEY", "s3cret", 1), 0);
	assert_int_equal(setenv("HDF5_TEST_KEPT", "1", 1), 0);
	assert_int_equal(ask(&env), 2);
	child_forget(forget);
	assert_int_equal(ask(&told), 1);
	assert_int_equal(g_forgotten, 0);
	assert_string_equal(getenv("AWS_SECRET_ACCESS_KEY"), "s3cret");
}

static void test_report(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	sandbox_report(&b);
	assert_true(buf_ok(&b) && b.len > 0);
	buf_release(&b);
	assert_true(!SANDBOX_OFF || sandbox_missing());
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(g_dir, sizeof(g_dir), "/tmp/nczarrfs-sandbox-XXXXXX");
	if (!mkdtemp(g_dir))
		return -1;
	(void)snprintf(g_inside, sizeof(g_inside), "%s/in", g_dir);
	(void)snprintf(g_outside, sizeof(g_outside), "%s.out", g_dir);
	(void)snprintf(g_own, sizeof(g_own), "%s.own", g_dir);
	(void)snprintf(g_link, sizeof(g_link), "%s/link", g_dir);
	return symlink(g_outside, g_link);
}

static int tear_down(void **state)
{
	char path[100];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/new", g_dir);
	(void)unlink(path);
	(void)unlink(g_inside);
	(void)unlink(g_outside);
	(void)unlink(g_own);
	(void)unlink(g_link);
	return rmdir(g_dir);
}

/* libseccomp's, which fails as long as this is set. */
static bool no_filters;

scmp_filter_ctx seccomp_init(uint32_t action)
{
	void *real = dlsym(RTLD_NEXT, "seccomp_init");
	scmp_filter_ctx (*init)(uint32_t);

	assert_non_null(real);
	memcpy(&init, &real, sizeof(init));
	return no_filters ? NULL : init(action);
}

/* SEMANTICS E27
 * A filter that cannot be made: the process does not go on without one, and the next one that finds
 * memory has its filter. */
static void test_no_filter(void **state)
{
	const unsigned may = SANDBOX_LOADS | SANDBOX_OPENS;
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	sandbox_report(&b);
	if (!memmem(b.data, b.len, "seccomp", 7) || memmem(b.data, b.len, "no seccomp", 10)) {
		buf_release(&b);
		skip();
	}
	buf_release(&b);
	for (int fails = 1; fails >= 0; fails--) {
		const struct sandbox_limits limits = {.memory = (uint64_t)1 << 40, .cpu_ms = 1000};
		int status, rc;
		pid_t pid;

		no_filters = fails;
		sandbox_prepare(may);
		pid = fork();
		if (pid == 0) {
			rc = sandbox_enter(may, NULL, 0, &limits, NULL);
			if (rc == 0) /* a call that no filter of ours allows */
				rc = prctl(PR_GET_SECCOMP) < 0 && errno == EPERM ? 0 : 1;
			_exit(rc == -ENOMEM ? 10 : rc);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), fails ? 10 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_filter),
		cmocka_unit_test(test_attempts),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_report),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
