/* SPDX-License-Identifier: BSD-3-Clause */
/* child.c - starts and ends the processes of child.h.
 *
 * A hostile file may take a child over, so that it gets as little as possible. (PR_SET_PDEATHSIG
 * does not help to end it: it fires when the thread that forked ends.) */
#include "base/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/process/canary.h"
#include "base/observe/metrics.h"
#include "base/process/sandbox_int.h"

#define RENEW_MS 1000 /* between renewals of a child's processor time */

#define CHILDREN_MAX 1024

/* The descriptors that are sent with a job: these, after its own. */
enum { FD_SOCK, FD_LIFE, FD_REPORT, OUR_FDS };
#define SENT_MAX (CHILD_FDS_MAX + OUR_FDS)

/* child_order - the message to the forker; the job's data follows. */
struct child_order {
	const struct child_kind *kind; /* the same address there */
	uint64_t size;
};

/* The process that forks: written by child_prepare before there are threads. */
static struct {
	int sock;
	pthread_mutex_t lock; /* one request at a time */
} forker = {.sock = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

static void (*forget)(void);

static bool background;

void child_background(void)
{
	struct stat st;

	/* a file has no reader that waits for its end */
	background = fstat(STDERR_FILENO, &st) == 0 && !S_ISREG(st.st_mode);
}

void child_forget(void (*fn)(void))
{
	forget = fn;
}

/* ---- the beginning of a child ---- */

/* child_wipe - in a process whose memory is a copy of one that may hold keys. */
static void child_wipe(void)
{
	if (forget)
		forget();
	sandbox_wipe_environment();
}

static void close_all(int from, int to)
{
	if (from > to || close_range((unsigned)from, (unsigned)to, 0) == 0)
		return;
	to = to < (int)sysconf(_SC_OPEN_MAX) ? to : (int)sysconf(_SC_OPEN_MAX);
	for (int fd = from; fd <= to; fd++)
		(void)close(fd); /* most of them are not open */
}

/* child_keep_only - close every descriptor above stdio except these. Above all the server's
 * /dev/fuse: as long as a process has it open, a dead mount hangs instead of failing. */
static void child_keep_only(const int *keep, size_t n)
{
	int from = STDERR_FILENO + 1;

	for (size_t i = 0; i < n; i++) {
		int next = INT_MAX;

		for (size_t k = 0; k < n; k++)
			if (keep[k] >= from && keep[k] < next)
				next = keep[k];
		if (next == INT_MAX)
			break;
		close_all(from, next - 1);
		from = next + 1;
	}
	close_all(from, INT_MAX);
}

/* keep_files - close all but `keep` and regular files. A library has files open in this process
 * that the server has not, and its users need their descriptors. */
static void keep_files(const int *keep, size_t count)
{
	int n = (int)sysconf(_SC_OPEN_MAX);
	struct stat st;

	for (int fd = STDERR_FILENO + 1; fd < n; fd++) {
		bool ours = false;

		for (size_t i = 0; i < count; i++)
			ours |= keep[i] == fd;
		if (!ours && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
			(void)close(fd);
	}
}

static void null_stdio(bool errors_too)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = STDIN_FILENO; fd >= 0 && i <= STDERR_FILENO; i++)
		if (i != STDERR_FILENO || errors_too)
			(void)dup2(fd, i); /* on failure the server's is kept */
	if (fd > STDERR_FILENO)
		(void)close(fd);
}

static void plain_signals(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t none;

	(void)sigemptyset(&none);
	act.sa_mask = none;
	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &act, NULL); /* fails for SIGKILL and SIGSTOP */
	act.sa_handler = SIG_IGN; /* a terminal sends it to the whole group; the server decides */
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		(void)sigaction(ends[i], &act, NULL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* die_with_server - have SIGIO kill this process when the other end of the pipe is closed, even
 * while a library hangs. */
static void die_with_server(int life)
{
	struct pollfd p = {.fd = life};

	if (fcntl(life, F_SETOWN, getpid()) < 0 || fcntl(life, F_SETFL, O_ASYNC) < 0)
		_exit(1);
	if (poll(&p, 1, 0) > 0)
		_exit(0); /* the server has ended meanwhile */
}

/* child_begin - set up a child. fds: the job's, FD_SOCK and FD_LIFE. */
static void child_begin(const struct child_kind *kind, const int *fds)
{
	const struct rlimit no_core = {1, 1}; /* with 0, core(5) still pipes to a program */
	const size_t n = kind->n_fds + FD_LIFE + 1;

	if (kind->keeps_files && kind->keeps_files())
		keep_files(fds, n);
	else
		child_keep_only(fds, n);
	null_stdio(!sandbox_off()); /* sanitizers report on stderr */
	plain_signals();
	die_with_server(fds[kind->n_fds + FD_LIFE]);
	(void)setrlimit(RLIMIT_CORE, &no_core); /* fails if the limit is 0 */
	(void)prctl(PR_SET_NAME, kind->name);   /* for ps and top */
}

static _Noreturn void child_run(const struct child_kind *kind, const struct child_self *self)
{
	canary_sing("child");
	kind->run(self);
	_exit(0);
}

bool child_send(int sock, const void *data, size_t n, int flags)
{
	const uint8_t *p = data;

	while (n > 0) {
		ssize_t put = send(sock, p, n, MSG_NOSIGNAL | flags);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		p += put;
		n -= (size_t)put;
	}
	return true;
}

void child_say(int sock, int rc, const void *data, size_t n)
{
	const struct child_answer a = {.rc = rc, .len = n};

	if (!child_send(sock, &a, sizeof(a), n ? MSG_MORE : 0) || !child_send(sock, data, n, 0))
		_exit(0);
}

/* ---- data with descriptors ---- */

/* sent_fds - the control data of a message. */
union sent_fds {
	struct cmsghdr head;
	char room[CMSG_SPACE(sizeof(int) * SENT_MAX)];
};

/* send_with - send data and descriptors in one message. Returns the bytes that were sent, or
 * -errno. */
static ssize_t send_with(int sock, struct iovec *iov, size_t n_iov, const int *fds,
			 size_t n_fds, int flags)
{
	const size_t bytes = sizeof(int) * n_fds;
	union sent_fds control = {0};
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = n_iov,
			     .msg_control = control.room,
			     .msg_controllen = CMSG_SPACE(bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(c), fds, bytes);
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* recv_with - receive a message of send_with. Returns its bytes, 0 at the other side's end, or
 * -errno. */
static ssize_t recv_with(int sock, struct iovec *iov, size_t n_iov, int fds[SENT_MAX],
			 size_t *ret_fds)
{
	union sent_fds control = {0};
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = n_iov,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control.room)};
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	*ret_fds = 0;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len <= CMSG_LEN(sizeof(int) * SENT_MAX)) {
		*ret_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
	}
	return n < 0 ? -errno : n;
}

bool child_send_job(const struct child_proc *c, const struct child_kind *kind, void *data,
		    size_t size, const int *fds)
{
	struct iovec iov = {data, size};
	ssize_t n = send_with(c->sock, &iov, 1, fds, kind->n_fds, MSG_DONTWAIT);

	return n > 0 && child_send(c->sock, (const uint8_t *)data + n, size - (size_t)n,
				   MSG_DONTWAIT);
}

bool child_next_job(const struct child_self *self, const struct child_kind *kind, void *data,
		    size_t size, int *fds)
{
	struct iovec iov = {data, size};
	int got[SENT_MAX];
	size_t n_fds, rest;
	ssize_t n;

	do {
		n = recv_with(self->sock, &iov, 1, got, &n_fds);
	} while (n == -EINTR);
	if (n <= 0 || n_fds != kind->n_fds)
		return false;
	memcpy(fds, got, n_fds * sizeof(*fds));
	rest = size - (size_t)n;
	return rest == 0 ||
	       recv(self->sock, (uint8_t *)data + n, rest, MSG_WAITALL) == (ssize_t)rest;
}

/* ---- the forker ---- */

struct running {
	pid_t pid;
	int report;
};

static struct running running[CHILDREN_MAX];
static size_t n_running;

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < n_running; i++)
			if (running[i].pid == pid) {
				(void)child_send(running[i].report, &status, sizeof(status), 0);
				(void)close(running[i].report);
				running[i] = running[--n_running];
				break;
			}
}

/* recv_order - receive an order, its data and its descriptors. Returns false at the server's
 * end. */
static bool recv_order(int sock, struct child_order *o, void *data, int fds[SENT_MAX],
		       bool *ret_ok)
{
	struct iovec iov[] = {{o, sizeof(*o)}, {data, CHILD_DATA_MAX}};
	size_t n_fds;
	ssize_t n = recv_with(sock, iov, ARRAY_LEN(iov), fds, &n_fds);

	*ret_ok = n >= (ssize_t)sizeof(*o) && (size_t)n == sizeof(*o) + o->size &&
		  n_fds == o->kind->n_fds + OUR_FDS;
	return n > 0 || n == -EINTR || n == -EAGAIN;
}

/* fork_job - fork; the report begins with the pid, or minus errno. */
static void fork_job(const struct child_order *o, const void *data, const int *fds)
{
	const uint32_t n = o->kind->n_fds;
	int report = fds[n + FD_REPORT], said;
	pid_t pid;

	sandbox_prepare(o->kind->may);
	if (o->kind->before)
		o->kind->before(NULL, data);
	pid = n_running < CHILDREN_MAX ? fork() : -1;
	said = pid < 0 ? (n_running < CHILDREN_MAX ? -errno : -EAGAIN) : (int)pid;
	if (pid == 0) {
		const struct child_self self = {
			.data = data, .size = o->size, .fds = fds, .sock = fds[n + FD_SOCK]};

		(void)close(report);
		child_begin(o->kind, fds);
		child_run(o->kind, &self);
	}
	for (uint32_t i = 0; i < n + FD_REPORT; i++)
		(void)close(fds[i]);
	if (!child_send(report, &said, sizeof(said), 0) || pid < 0) {
		(void)close(report); /* its own pipe ends it */
		return;
	}
	running[n_running++] = (struct running){.pid = pid, .report = report};
}

static _Noreturn void child_serve(int sock, void (*ready)(void))
{
	static _Alignas(max_align_t) uint8_t data[CHILD_DATA_MAX];
	struct child_order o;
	int fds[SENT_MAX];
	struct signalfd_siginfo info;
	sigset_t chld;
	int sig;

	child_wipe();
	child_keep_only(&sock, 1);
	null_stdio(!SANDBOX_OFF || background); /* its children inherit them */
	plain_signals();
	(void)prctl(PR_SET_NAME, CHILD_FORKER_NAME);
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	sig = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sig < 0)
		_exit(1);
	if (ready)
		ready();
	for (bool ok;;) {
		struct pollfd p[] = {{.fd = sock, .events = POLLIN},
				     {.fd = sig, .events = POLLIN}};

		if (poll(p, ARRAY_LEN(p), -1) < 0)
			continue;
		while (p[1].revents && read(sig, &info, sizeof(info)) > 0)
			;
		reap();
		if (!p[0].revents)
			continue;
		if (!recv_order(sock, &o, data, fds, &ok))
			_exit(0);
		if (ok)
			fork_job(&o, data, fds);
	}
}

int child_prepare(void (*ready)(void), struct err *e)
{
	int sock[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		return err_sys(e, errno,
			       "cannot talk to the process that starts other processes");
	pid = fork();
	if (pid == 0)
		child_serve(sock[1], ready);
	(void)close(sock[1]);
	if (pid < 0) {
		int errnum = errno;

		(void)close(sock[0]);
		return err_sys(e, errnum,
			       "cannot start the process that starts other processes");
	}
	forker.sock = sock[0];
	return 0;
}

void child_alone(void)
{
	forker.sock = -1;
}

bool child_prepared(void)
{
	return forker.sock >= 0;
}

/* ---- the server ---- */

/* start_by_forker - fds stays the caller's; its entry FD_REPORT is not set yet. */
static int start_by_forker(const struct child_order *o, const void *data, int *fds,
			   struct child_proc *ret, struct err *e)
{
	struct iovec iov[] = {{(void *)(uintptr_t)o, sizeof(*o)}, /* sendmsg only reads */
			      {(void *)(uintptr_t)data, (size_t)o->size}};
	int report[2], said = 0, rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report) < 0)
		return err_sys(e, errno, "cannot talk to the process for %s", o->kind->who);
	fds[o->kind->n_fds + FD_REPORT] = report[1];
	(void)pthread_mutex_lock(&forker.lock);
	rc = (int)send_with(forker.sock, iov, ARRAY_LEN(iov), fds, o->kind->n_fds + OUR_FDS, 0);
	(void)pthread_mutex_unlock(&forker.lock);
	(void)close(report[1]);
	rc = rc < 0 ? rc : 0;
	if (rc == 0 && child_take(report[0], &said, sizeof(said), INT64_MAX) != CHILD_TAKEN)
		rc = -EPIPE;
	if (rc == 0 && said <= 0)
		rc = said < 0 ? said : -EIO;
	if (rc < 0) {
		(void)close(report[0]);
		return err_sys(e, -rc, "cannot start the process for %s", o->kind->who);
	}
	ret->pid = said;
	ret->report = report[0];
	return 0;
}

/* start_here - fork here, in a program with one thread. */
static int start_here(const struct child_kind *kind, void *own, const int *fds,
		      struct child_proc *ret, struct err *e)
{
	int errnum;

	sandbox_prepare(kind->may);
	if (kind->before)
		kind->before(own, NULL);
	if (kind->enter)
		kind->enter();
	ret->pid = fork();
	errnum = errno;
	if (ret->pid == 0) {
		const struct child_self self = {
			.own = own, .fds = fds, .sock = fds[kind->n_fds + FD_SOCK]};

		child_wipe();
		child_begin(kind, fds);
		if (kind->leave)
			kind->leave(); /* entered by the forking thread, the only one here */
		child_run(kind, &self);
	}
	if (kind->leave)
		kind->leave();
	ret->report = -1;
	if (ret->pid > 0)
		return 0;
	ret->pid = 0;
	return err_sys(e, errnum, "cannot start the process for %s", kind->who);
}

int child_start(const struct child_kind *kind, void *own, const void *data, size_t size,
		const int *fds, struct child_proc *ret, struct err *e)
{
	const struct child_order o = {.kind = kind, .size = size};
	int sock[2], life[2], all[SENT_MAX], rc = -EPIPE;

	*ret = (struct child_proc){.sock = -1, .life = -1, .report = -1};
	if (size > CHILD_DATA_MAX)
		return err_set(e, -ERANGE,
			       "the job for a child process has %zu bytes, the limit is %zu",
			       size, CHILD_DATA_MAX);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		return err_sys(e, errno, "cannot talk to the process for %s", kind->who);
	if (pipe2(life, O_CLOEXEC) < 0) {
		rc = err_sys(e, errno, "cannot talk to the process for %s", kind->who);
		(void)close(sock[0]);
		(void)close(sock[1]);
		return rc;
	}
	if (kind->n_fds > 0)
		memcpy(all, fds, kind->n_fds * sizeof(*fds));
	all[kind->n_fds + FD_SOCK] = sock[1];
	all[kind->n_fds + FD_LIFE] = life[0];
	if (data && child_prepared())
		rc = start_by_forker(&o, data, all, ret, e);
	/* the forker was killed: a fork from here works in most cases */
	if (rc == -EPIPE)
		rc = start_here(kind, own, all, ret, e);
	(void)close(sock[1]);
	(void)close(life[0]);
	if (rc < 0) {
		(void)close(sock[0]);
		(void)close(life[1]);
		return rc;
	}
	ret->sock = sock[0];
	ret->life = life[1];
	metrics_count(M_WORKERS_STARTED);
	return 0;
}

/* note_end - log the end of a child that ended by itself. */
static void note_end(int status)
{
	if (!WIFSIGNALED(status))
		return;
	metrics_count(M_WORKERS_DIED);
	metrics_count(M_FAULT_ISOLATE);
}

/* wait_own - wait for a child that this process forked. */
static int wait_own(struct child_proc *c)
{
	int status = 0;
	pid_t got = waitpid(c->pid, &status, WNOHANG);

	if (got == c->pid)
		note_end(status);
	if (got == 0) {
		(void)kill(c->pid, SIGKILL); /* not waited for: the pid is still its own */
		do {
			got = waitpid(c->pid, &status, 0);
		} while (got < 0 && errno == EINTR);
	}
	return got > 0 ? status : 0;
}

/* wait_reported - wait for a child of the forker. Until it reports, the forker has not waited for
 * the child, so that the pid cannot have been reused. */
static int wait_reported(struct child_proc *c)
{
	struct pollfd p = {.fd = c->report, .events = POLLIN};
	int status = 0;
	const bool runs = poll(&p, 1, 0) == 0;

	if (runs)
		(void)kill(c->pid, SIGKILL);
	if (child_take(c->report, &status, sizeof(status), INT64_MAX) != CHILD_TAKEN)
		status = 0;
	if (!runs)
		note_end(status);
	(void)close(c->report);
	return status;
}

int child_end(struct child_proc *c)
{
	int status;

	if (!c->pid)
		return 0;
	status = c->report < 0 ? wait_own(c) : wait_reported(c);
	(void)close(c->sock);
	(void)close(c->life);
	*c = (struct child_proc){.sock = -1, .life = -1, .report = -1};
	return status;
}

void child_renew(struct child_proc *c, uint64_t cpu_ms)
{
	const int64_t now = clock_ms();

	if (!c->pid || (c->renewed && now - c->renewed < RENEW_MS))
		return;
	c->renewed = now;
	sandbox_renew(c->pid, cpu_ms);
}

enum child_taken child_take(int sock, void *out, size_t n, int64_t end)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint8_t *at = out;
	bool reset = false;

	while (n > 0) {
		ssize_t got = recv(sock, at, n, MSG_DONTWAIT);
		int64_t left;

		if (got > 0) {
			at += got;
			n -= (size_t)got;
			continue;
		}
		if (got < 0 && errno == ECONNRESET && !reset) {
			reset = true; /* ended with unread input: its answer comes next */
			continue;
		}
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return CHILD_GONE;
		left = end - clock_ms();
		if (left <= 0)
			return CHILD_LATE;
		if (poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX) < 0 && errno != EINTR)
			return CHILD_GONE;
	}
	return CHILD_TAKEN;
}

int child_died_of(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

const char *child_why(int sig, char room[CHILD_WHY_MAX])
{
	const char *what = "crashed";

	if (sig == SIGSYS)
		what = "made a forbidden system call";
	else if (sig == SIGXCPU)
		what = "used too much processor time";
	else if (sig == SIGKILL)
		what = "died";
	else if (sig == SIGXFSZ)
		what = "wrote to a forbidden place";
	(void)snprintf(room, CHILD_WHY_MAX, "%s (signal %d)", what, sig);
	return room;
}
