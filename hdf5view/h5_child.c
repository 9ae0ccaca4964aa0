/* h5_child.c - starts and ends the processes of h5_child.h.
 *
 * A child may be taken over by a hostile file, so it gets as little as possible. Its region of
 * memory is shared with the server only until the server has looked at it (h5_open.c).
 * (PR_SET_PDEATHSIG would not do to end it: it fires when the thread that forked ends.) */
#include "hdf5view/h5_child.h"

#include "hdf5view/hdf5view.h"
#include "hdf5view/src_int.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define CHILDREN_MAX 1024

/* The process that forks: written by hdf5_prepare before there are threads. */
static struct {
	pid_t pid;
	int sock;
	pthread_mutex_t lock; /* one request at a time */
} forker = {.sock = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what both kinds of children begin with ---- */

static void close_all(int from, int to)
{
	if (from > to || close_range((unsigned)from, (unsigned)to, 0) == 0)
		return;
	to = to < (int)sysconf(_SC_OPEN_MAX) ? to : (int)sysconf(_SC_OPEN_MAX);
	for (int fd = from; fd <= to; fd++)
		(void)close(fd); /* most are not open */
}

/* keep_only - close every descriptor above stdio but these. The server's /dev/fuse above all: as
 * long as one process has it open, a dead mount hangs instead of failing. */
static void keep_only(const int *keep, size_t n)
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

/* keep_files - for when the library has files open in this process, which its users close and
 * the server does not have: their descriptors must stay, or it would find them dead. */
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
			(void)dup2(fd, i); /* at worst the server's is kept */
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
		(void)sigaction(i, &act, NULL); /* fails for those that cannot be changed */
	act.sa_handler = SIG_IGN; /* the server decides; a terminal tells all of its group */
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		(void)sigaction(ends[i], &act, NULL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* die_with_server - SIGIO, which kills, when the other end of the pipe is closed: also while the
 * library hangs. */
static void die_with_server(int life)
{
	struct pollfd p = {.fd = life};

	if (fcntl(life, F_SETOWN, getpid()) < 0 || fcntl(life, F_SETFL, O_ASYNC) < 0)
		_exit(1);
	if (poll(&p, 1, 0) != 0)
		_exit(0); /* it ended in between */
}

/* begin - of every child. */
static void begin(const int fds[H5_FDS])
{
	const struct rlimit no_core = {0, 0};

	if (H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) > 0)
		keep_files(fds, H5_FDS);
	else
		keep_only(fds, H5_FDS);
	null_stdio(!SANITIZED);
	plain_signals();
	die_with_server(fds[H5_FD_LIFE]);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)prctl(PR_SET_NAME, H5_WORKER_NAME); /* for people only */
}

bool h5_child_send(int sock, const void *data, size_t n, int flags)
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

void h5_child_say(int sock, int rc, const void *data, size_t n)
{
	const struct h5_answer a = {.rc = rc, .len = n};

	if (!h5_child_send(sock, &a, sizeof(a), n ? MSG_MORE : 0) ||
	    !h5_child_send(sock, data, n, 0))
		_exit(0);
}

/* ---- the process that forks ---- */

struct running {
	pid_t pid;
	int report;
};

static struct running running[CHILDREN_MAX];
static size_t n_running;

/* do_job - in a child that knows nothing of the source: what the server sent is all it has. */
static _Noreturn void do_job(struct h5_job *job, const int fds[H5_FDS])
{
	struct h5_source *s;
	struct err e = ERR_INIT;
	int rc;

	begin(fds);
	rc = h5_source_of_job(job, fds[H5_FD_SOURCE], fds[H5_FD_REGION], &s, &e);
	if (rc < 0) {
		h5_child_say(fds[H5_FD_SOCK], rc, e.msg, strlen(e.msg));
		_exit(1);
	}
	if (job->kind == H5_JOB_OPEN)
		h5_open_job(s, fds[H5_FD_SOCK]);
	h5_read_job(s, fds[H5_FD_SOCK]);
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < n_running; i++)
			if (running[i].pid == pid) {
				(void)h5_child_send(running[i].report, &status, sizeof(status), 0);
				(void)close(running[i].report);
				running[i] = running[--n_running];
				break;
			}
}

/* recv_job - a job and its descriptors, the last of which is for the report. Returns false when
 * the server has gone. */
static bool recv_job(int sock, struct h5_job *job, int fds[H5_FDS + 1], bool *ret_ok)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * (H5_FDS + 1))];
	} control = {0};
	struct iovec iov = {job, sizeof(*job)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control.room)};
	const struct cmsghdr *c;
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

	*ret_ok = false;
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	c = CMSG_FIRSTHDR(&msg);
	if (n != (ssize_t)sizeof(*job) || !c || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(int) * (H5_FDS + 1)))
		return n > 0;
	memcpy(fds, CMSG_DATA(c), sizeof(int) * (H5_FDS + 1));
	*ret_ok = true;
	return true;
}

/* fork_job - the pid, or minus errno, is the first thing that the report says. */
static void fork_job(struct h5_job *job, const int fds[H5_FDS + 1])
{
	int report = fds[H5_FDS];
	pid_t pid = n_running < CHILDREN_MAX ? fork() : -1;
	int said = pid < 0 ? (n_running < CHILDREN_MAX ? -errno : -EAGAIN) : (int)pid;

	if (pid == 0) {
		(void)close(report);
		do_job(job, fds);
	}
	for (size_t i = 0; i < H5_FDS; i++)
		(void)close(fds[i]);
	if (!h5_child_send(report, &said, sizeof(said), 0) || pid < 0) {
		(void)close(report); /* nobody waits for it: its own pipe ends it */
		return;
	}
	running[n_running++] = (struct running){.pid = pid, .report = report};
}

static _Noreturn void serve(int sock)
{
	static struct h5_job job;
	int fds[H5_FDS + 1];
	struct signalfd_siginfo info;
	sigset_t chld;
	int sig;

	keep_only(&sock, 1);
	null_stdio(true);
	plain_signals();
	(void)prctl(PR_SET_NAME, H5_FORKER_NAME);
	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &chld, NULL);
	sig = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sig < 0)
		_exit(1);
	h5_enter(); /* the library is set up once, here */
	h5_leave();
	for (bool ok;;) {
		struct pollfd p[] = {{.fd = sock, .events = POLLIN}, {.fd = sig, .events = POLLIN}};

		if (poll(p, ARRAY_LEN(p), -1) < 0)
			continue;
		while (p[1].revents && read(sig, &info, sizeof(info)) > 0)
			;
		reap();
		if (!p[0].revents)
			continue;
		if (!recv_job(sock, &job, fds, &ok))
			_exit(0);
		if (ok)
			fork_job(&job, fds);
	}
}

int hdf5_prepare(struct err *e)
{
	int sock[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		return err_sys(e, errno, "talk to the HDF5 library's process");
	pid = fork();
	if (pid == 0)
		serve(sock[1]);
	(void)close(sock[1]);
	if (pid < 0) {
		int errnum = errno;

		(void)close(sock[0]);
		return err_sys(e, errnum, "start a process for the HDF5 library");
	}
	forker.pid = pid;
	forker.sock = sock[0];
	return 0;
}

/* ---- the server ---- */

/* send_job - ask the forker. Returns 0, or -errno. */
static int send_job(const struct h5_job *job, const int fds[H5_FDS + 1])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int) * (H5_FDS + 1))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)job, sizeof(*job)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control.room)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int) * (H5_FDS + 1));
	memcpy(CMSG_DATA(c), fds, sizeof(int) * (H5_FDS + 1));
	do {
		n = sendmsg(forker.sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* start_by_forker - takes no descriptor of fds. */
static int start_by_forker(const struct h5_job *job, int fds[H5_FDS + 1],
			   struct h5_child *ret, struct err *e)
{
	int report[2], said = 0, rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report) < 0)
		return err_sys(e, errno, "talk to the HDF5 library's process");
	fds[H5_FDS] = report[1];
	(void)pthread_mutex_lock(&forker.lock);
	rc = send_job(job, fds);
	(void)pthread_mutex_unlock(&forker.lock);
	(void)close(report[1]);
	if (rc == 0 && h5_child_take(report[0], &said, sizeof(said), INT64_MAX) != H5_TAKEN)
		rc = -EPIPE;
	if (rc == 0 && said <= 0)
		rc = said < 0 ? said : -EIO;
	if (rc < 0) {
		(void)close(report[0]);
		return err_sys(e, -rc, "start a process for the HDF5 library");
	}
	ret->pid = said;
	ret->report = report[0];
	return 0;
}

/* start_here - a program with one thread. */
static int start_here(struct h5_source *s, enum h5_job_kind kind, const int fds[H5_FDS],
		      struct h5_child *ret, struct err *e)
{
	int errnum;

	h5_enter(); /* so that nobody is inside the library, whose state the child takes over */
	ret->pid = fork();
	errnum = errno;
	if (ret->pid == 0) {
		begin(fds);
		h5_leave(); /* entered by the thread that forked, which is all there is here */
		if (kind == H5_JOB_OPEN)
			h5_open_job(s, fds[H5_FD_SOCK]);
		h5_read_job(s, fds[H5_FD_SOCK]);
	}
	h5_leave();
	ret->report = -1;
	if (ret->pid > 0)
		return 0;
	ret->pid = 0;
	return err_sys(e, errnum, "start a process for the HDF5 library");
}

int h5_child_start(struct h5_source *s, enum h5_job_kind kind, struct h5_child *ret,
		   struct err *e)
{
	int sock[2], life[2], fds[H5_FDS + 1], rc;
	auto_free struct h5_job *job = NULL;

	*ret = (struct h5_child){.sock = -1, .life = -1, .report = -1};
	if (forker.sock >= 0 && !(job = alloc_array(1, sizeof(*job))))
		return err_nomem(e);
	if (job) {
		rc = h5_job_of_source(s, kind, job, e);
		if (rc < 0)
			return rc;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		return err_sys(e, errno, "talk to the HDF5 library's process");
	if (pipe2(life, O_CLOEXEC) < 0) {
		rc = err_sys(e, errno, "talk to the HDF5 library's process");
		(void)close(sock[0]);
		(void)close(sock[1]);
		return rc;
	}
	fds[H5_FD_SOURCE] = s->fd;
	fds[H5_FD_REGION] = s->region_fd;
	fds[H5_FD_SOCK] = sock[1];
	fds[H5_FD_LIFE] = life[0];
	rc = job ? start_by_forker(job, fds, ret, e) : -EPIPE;
	/* somebody killed the forker: our own fork mostly works as well */
	if (rc == -EPIPE)
		rc = start_here(s, kind, fds, ret, e);
	(void)close(sock[1]);
	(void)close(life[0]);
	if (rc < 0) {
		(void)close(sock[0]);
		(void)close(life[1]);
		return rc;
	}
	ret->sock = sock[0];
	ret->life = life[1];
	return 0;
}

/* wait_own - of a child that we forked. */
static int wait_own(struct h5_child *c)
{
	int status = 0;
	pid_t got = waitpid(c->pid, &status, WNOHANG);

	if (got == 0) {
		(void)kill(c->pid, SIGKILL); /* it is our child and not waited for */
		do {
			got = waitpid(c->pid, &status, 0);
		} while (got < 0 && errno == EINTR);
	}
	return got > 0 ? status : 0;
}

/* wait_reported - of one that the forker forked. The forker has not waited for it as long as it
 * reports nothing, so that the number is still its. */
static int wait_reported(struct h5_child *c)
{
	struct pollfd p = {.fd = c->report, .events = POLLIN};
	int status = 0;

	if (poll(&p, 1, 0) == 0)
		(void)kill(c->pid, SIGKILL);
	if (h5_child_take(c->report, &status, sizeof(status), INT64_MAX) != H5_TAKEN)
		status = 0;
	(void)close(c->report);
	return status;
}

int h5_child_end(struct h5_child *c)
{
	int status;

	if (!c->pid)
		return 0;
	status = c->report < 0 ? wait_own(c) : wait_reported(c);
	(void)close(c->sock);
	(void)close(c->life);
	*c = (struct h5_child){.sock = -1, .life = -1, .report = -1};
	return status;
}

int64_t h5_child_now(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with this clock */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

enum h5_taken h5_child_take(int sock, void *out, size_t n, int64_t end)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	uint8_t *at = out;

	while (n > 0) {
		ssize_t got = recv(sock, at, n, MSG_DONTWAIT);
		int64_t left;

		if (got > 0) {
			at += got;
			n -= (size_t)got;
			continue;
		}
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return H5_GONE;
		left = end - h5_child_now();
		if (left <= 0)
			return H5_LATE;
		if (poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX) < 0 && errno != EINTR)
			return H5_GONE;
	}
	return H5_TAKEN;
}

int h5_died_of(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
