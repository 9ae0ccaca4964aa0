/* h5_worker.c - the server's side of the worker process, and the process itself.
 *
 * A request is one fixed struct, an answer a fixed struct and its bytes. The child may have been
 * taken over by a hostile file: what it says is checked like the file itself, and it has nothing
 * but the source's descriptor, its socket and the pipe that tells it when the server is gone.
 * (PR_SET_PDEATHSIG would not do: the thread that forked may end long before the server.) */
#include "hdf5view/h5_worker.h"

#include "hdf5view/src_int.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum op { OP_CHUNK = 1, OP_VLEN };

struct request {
	uint32_t op, array;
	uint64_t linear;
	uint64_t len; /* chunk: bytes wanted; vlen: at most */
};

struct answer {
	int64_t rc;
	uint64_t len; /* bytes that follow: the elements, or the reason */
};

/* Kept for the next request; more is given back. */
#define KEEP_BYTES ((size_t)32 << 20)

/* ---- the child ---- */

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
static void keep_only(int a, int b, int c)
{
	int keep[] = {a, b, c}, from = STDERR_FILENO + 1;

	for (size_t i = 0; i < ARRAY_LEN(keep); i++) {
		int next = INT_MAX;

		for (size_t k = 0; k < ARRAY_LEN(keep); k++)
			if (keep[k] >= from && keep[k] < next)
				next = keep[k];
		if (next == INT_MAX)
			break;
		close_all(from, next - 1);
		from = next + 1;
	}
	close_all(from, INT_MAX);
}

static void null_stdio(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = STDIN_FILENO; fd >= 0 && i <= STDERR_FILENO; i++)
		if (i != STDERR_FILENO || !SANITIZED)
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

static bool send_all(int sock, const void *data, size_t n, int flags)
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

static void answer(int sock, int rc, const void *data, size_t n)
{
	const struct answer a = {.rc = rc, .len = n};

	if (!send_all(sock, &a, sizeof(a), n ? MSG_MORE : 0) || !send_all(sock, data, n, 0))
		_exit(0);
}

static void obey(struct h5_source *s, int sock, const struct request *q, struct buf *b)
{
	struct err e = ERR_INIT;
	uint8_t *out;
	int rc;

	b->max = (size_t)q->len;
	if (q->op == OP_VLEN) {
		rc = h5_library_vlen(s, q->array, q->linear, b, &e);
	} else {
		out = buf_grow(b, (size_t)q->len);
		rc = out ? h5_library_chunk(s, q->array, q->linear, out, (size_t)q->len, &e)
			 : err_nomem(&e);
	}
	if (rc < 0)
		answer(sock, rc, e.msg, strlen(e.msg));
	else
		answer(sock, 0, b->data, b->len);
}

/* keep_files - for when the library has files open in this process, which its users close and
 * the server does not have: their descriptors must stay, or it would find them dead. */
static void keep_files(int a, int b)
{
	int n = (int)sysconf(_SC_OPEN_MAX);
	struct stat st;

	for (int fd = STDERR_FILENO + 1; fd < n; fd++)
		if (fd != a && fd != b && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
			(void)close(fd);
}

static _Noreturn void work(struct h5_source *s, int sock, int life)
{
	const struct rlimit no_core = {0, 0};
	struct request q;
	struct buf b;

	if (H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) > 0)
		keep_files(sock, life);
	else
		keep_only(sock, life, s->fd);
	null_stdio();
	plain_signals();
	die_with_server(life);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	(void)prctl(PR_SET_NAME, H5_WORKER_NAME); /* for people only */
	h5_leave(); /* entered by the thread that forked, which is all there is here */

	buf_init(&b, 0);
	for (;;) {
		ssize_t n = recv(sock, &q, sizeof(q), MSG_WAITALL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(q))
			_exit(0); /* no exit handlers: they are the server's */
		obey(s, sock, &q, &b);
		buf_clear(&b);
		if (b.cap > KEEP_BYTES)
			buf_release(&b);
	}
}

/* ---- the server ---- */

void h5_worker_init(struct h5_worker *w, uint64_t timeout_ms)
{
	*w = (struct h5_worker){.timeout_ms = timeout_ms ? timeout_ms : H5_WORKER_MS};
	(void)pthread_mutex_init(&w->lock, NULL);
}

/* end_locked - returns what waitpid says of it, 0 when that is not known. What has ended, or
 * closed its socket by ending, has its status already: the signal does not change it. */
static int end_locked(struct h5_worker *w)
{
	int status = 0;
	pid_t got;

	if (!w->pid)
		return 0;
	got = waitpid(w->pid, &status, WNOHANG);
	if (got == 0) {
		(void)kill(w->pid, SIGKILL); /* it is our child and not waited for */
		do {
			got = waitpid(w->pid, &status, 0);
		} while (got < 0 && errno == EINTR);
	}
	(void)close(w->sock);
	(void)close(w->life);
	w->pid = 0;
	return got > 0 ? status : 0;
}

void h5_worker_release(struct h5_worker *w)
{
	(void)end_locked(w);
	free(w->fatal);
	(void)pthread_mutex_destroy(&w->lock);
}

static int start_locked(struct h5_source *s, struct err *e)
{
	struct h5_worker *w = &s->worker;
	int sock[2], life[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		return err_sys(e, errno, "talk to the HDF5 library's process");
	if (pipe2(life, O_CLOEXEC) < 0) {
		(void)close(sock[0]);
		(void)close(sock[1]);
		return err_sys(e, errno, "talk to the HDF5 library's process");
	}
	h5_enter(); /* so that nobody is inside the library, whose state the child takes over */
	w->pid = fork();
	if (w->pid == 0)
		work(s, sock[1], life[0]);
	h5_leave();
	(void)close(sock[1]);
	(void)close(life[0]);
	if (w->pid < 0) {
		int errnum = errno;

		w->pid = 0;
		(void)close(sock[0]);
		(void)close(life[1]);
		return err_sys(e, errnum, "start a process for the HDF5 library");
	}
	w->sock = sock[0];
	w->life = life[1];
	w->served = 0;
	return 0;
}

/* ready_locked - a child that is alive; one that died while idle is replaced without a word. */
static int ready_locked(struct h5_source *s, struct err *e)
{
	struct h5_worker *w = &s->worker;
	struct pollfd p = {.fd = w->sock, .events = POLLIN};

	if (w->pid && poll(&p, 1, 0) != 0)
		(void)end_locked(w); /* it has nothing to say before it is asked */
	return w->pid ? 0 : start_locked(s, e);
}

static int64_t now_ms(void)
{
	struct timespec ts = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with this clock */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

enum taken { TAKEN, GONE, LATE, WRONG };

static enum taken take(int sock, void *out, size_t n, int64_t end)
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
			return GONE;
		left = end - now_ms();
		if (left <= 0)
			return LATE;
		if (poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX) < 0 && errno != EINTR)
			return GONE;
	}
	return TAKEN;
}

/* talk - the state of one read. */
struct talk {
	struct request q;
	uint8_t *out;     /* OP_CHUNK */
	struct buf *vlen; /* OP_VLEN */
	int rc;           /* the child's answer */
};

/* take_payload - elements, or the reason why there are none, after their sizes were checked. */
static enum taken take_payload(int sock, struct talk *t, const struct answer *a, int64_t end,
			       struct err *e)
{
	char text[ERR_TEXT_MAX];
	uint8_t *out = t->out;
	enum taken got;

	if (a->rc == 0) {
		if (t->q.op == OP_CHUNK ? a->len != t->q.len : a->len > t->q.len)
			return WRONG;
		if (t->vlen && a->len)
			out = buf_grow(t->vlen, (size_t)a->len);
		if (a->len && !out) {
			t->rc = err_nomem(e);
			return GONE;
		}
		return take(sock, out, (size_t)a->len, end);
	}
	if (a->rc > 0 || a->rc < -4095 || a->len >= sizeof(text))
		return WRONG;
	got = take(sock, text, (size_t)a->len, end);
	if (got != TAKEN)
		return got;
	text[a->len] = '\0';
	/* only the index proves absence */
	t->rc = err_set(e, a->rc == -ENOENT ? -EIO : (int)a->rc, "%s", text);
	return TAKEN;
}

static enum taken ask_locked(struct h5_worker *w, struct talk *t, struct err *e)
{
	int64_t end = now_ms() + (int64_t)u64_min(w->timeout_ms, INT_MAX);
	struct answer a;
	enum taken got;

	t->rc = 0;
	if (!send_all(w->sock, &t->q, sizeof(t->q), 0))
		return GONE;
	got = take(w->sock, &a, sizeof(a), end);
	return got == TAKEN ? take_payload(w->sock, t, &a, end, e) : got;
}

/* ---- chunks that killed a worker ---- */

/* refuse_locked - what killed a worker is not given to the next one, and an array that does it
 * again and again is left alone: a hostile file costs only so many processes. */
static int refuse_locked(const struct h5_worker *w, const struct request *q, struct err *e)
{
	unsigned n = 0;

	for (size_t i = 0; i < w->n_fatal; i++) {
		if (w->fatal[i].array != q->array)
			continue;
		if (w->fatal[i].linear == q->linear)
			return err_set(e, -EIO,
				       "the HDF5 library crashed or hung on it before: it is "
				       "not tried again");
		n++;
	}
	if (n < H5_WORKER_TRIES)
		return 0;
	return err_set(e, -EIO,
		       "the HDF5 library crashed or hung on %u chunks of the array: no other "
		       "is tried",
		       n);
}

static int died_of(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void remember_locked(struct h5_worker *w, const struct request *q)
{
	if (grow_array(&w->fatal, &w->c_fatal, w->n_fatal + 1, sizeof(*w->fatal)) < 0)
		return; /* then it is tried again */
	w->fatal[w->n_fatal++] =
		(struct h5_fatal_chunk){.array = q->array, .linear = q->linear};
}

/* explain - the child ended, or was ended by us, in the middle of a request. */
static int explain(const struct h5_worker *w, enum taken got, int status, struct err *e)
{
	if (got == LATE)
		return err_set(e, -EIO,
			       "the HDF5 library did not answer within %llu s: the file is "
			       "damaged, or its storage is too slow",
			       (unsigned long long)(w->timeout_ms + 999) / 1000);
	if (got == WRONG)
		return err_set(e, -EIO,
			       "the HDF5 library's process answered nonsense: the file is "
			       "damaged");
	if (died_of(status) == SIGKILL)
		return err_set(e, -EIO,
			       "the HDF5 library's process was killed (signal 9) while "
			       "reading it: memory may be short");
	if (died_of(status))
		return err_set(e, -EIO,
			       "the HDF5 library crashed (signal %d) while reading it: the "
			       "file is damaged",
			       died_of(status));
	return err_set(
		e, -EIO,
		"the HDF5 library's process ended (status %d) while reading it: the file "
		"is damaged",
		WEXITSTATUS(status));
}

static int read_locked(struct h5_source *s, struct talk *t, struct err *e)
{
	struct h5_worker *w = &s->worker;
	size_t head = t->vlen ? t->vlen->len : 0;
	int rc = refuse_locked(w, &t->q, e);

	while (rc == 0) {
		enum taken got;
		bool fresh, killed;
		int status;

		rc = ready_locked(s, e);
		if (rc < 0)
			return rc;
		fresh = w->served == 0;
		got = ask_locked(w, t, e);
		if (got == TAKEN) {
			w->served++;
			return t->rc;
		}
		status = end_locked(w);
		if (t->vlen)
			t->vlen->len = head;
		if (t->rc < 0) /* we gave up, not the child */
			return t->rc;
		/* somebody killed it, perhaps while it had nothing to do: not the file's fault */
		killed = got == GONE && died_of(status) == SIGKILL;
		if (killed && !fresh)
			continue;
		/* An earlier chunk may have damaged its memory: only what a new process dies of
		 * is held against the chunk. */
		if (!killed && (fresh || got != GONE))
			remember_locked(w, &t->q);
		rc = explain(w, got, status, e);
	}
	return rc;
}

static int read_one(struct h5_source *s, struct talk *t, struct err *e)
{
	int rc;

	(void)pthread_mutex_lock(&s->worker.lock);
	rc = read_locked(s, t, e);
	(void)pthread_mutex_unlock(&s->worker.lock);
	return rc;
}

int h5_worker_chunk(struct h5_source *s, uint32_t array, uint64_t linear, uint8_t *out,
		    size_t len, struct err *e)
{
	struct talk t = {
		.q = {.op = OP_CHUNK, .array = array, .linear = linear, .len = len},
		.out = out,
	};

	return read_one(s, &t, e);
}

int h5_worker_vlen(struct h5_source *s, uint32_t array, uint64_t linear, struct buf *out,
		   struct err *e)
{
	struct talk t = {
		.q = {.op = OP_VLEN,
		      .array = array,
		      .linear = linear,
		      .len = out->max - out->len},
		.vlen = out,
	};

	return read_one(s, &t, e);
}
