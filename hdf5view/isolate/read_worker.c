/* SPDX-License-Identifier: BSD-3-Clause */
/* read_worker.c - the server's side of the worker process, and the process itself.
 *
 * A request is one fixed struct, an answer a fixed struct and its bytes. The child may have been
 * taken over by a hostile file: what it says is checked like the file itself, and it has nothing
 * but the source's descriptor, its socket and the pipe that tells it when the server is gone.
 * (PR_SET_PDEATHSIG would not do: the thread that forked may end long before the server.) */
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

#include "base/core/clock.h"
#include "hdf5view/isolate/isolated_source.h"
#include "base/os/cancel.h"

enum op { OP_CHUNK = 1, OP_VLEN };

struct read_worker_request {
	uint32_t op, array;
	uint64_t linear;
	uint64_t len;   /* chunk: bytes wanted; vlen: at most */
	uint64_t again; /* a flag: memory was short before, for something large */
};

/* Kept for the next request; more is given back. */
#define KEEP_BYTES ((size_t)32 << 20)

/* ---- the child ---- */

static void read_worker_handle(struct isolated *g, int sock,
			       const struct read_worker_request *q, struct buf *b)
{
	struct err e = ERR_INIT;
	uint8_t *out;
	int rc;

	b->max = (size_t)q->len;
	resource_errors_reset();
	if (q->op == OP_VLEN) {
		rc = g->kind->vlen(g, q->array, q->linear, b, &e);
	} else {
		out = buf_grow(b, (size_t)q->len);
		rc = out ? g->kind->chunk(g, q->array, q->linear, out, (size_t)q->len, &e)
			 : err_nomem(&e);
	}
	rc = isolated_was_short(rc, q->again, &e);
	if (blob_proxy_client_failed(g->blob, NULL) < 0)
		rc = blob_proxy_client_failed(g->blob,
					      &e); /* and the server ends this process */
	if (rc)
		child_say(sock, rc, e.msg, rc < 0 ? strlen(e.msg) : 0);
	else
		child_say(sock, 0, b->data, b->len);
}

void isolated_read_job(struct isolated *g, int sock)
{
	struct read_worker_request q;
	struct buf b;

	buf_init(&b, 0);
	for (;;) {
		ssize_t n = recv(sock, &q, sizeof(q), MSG_WAITALL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n != (ssize_t)sizeof(q))
			_exit(0); /* no exit handlers: they are the server's */
		read_worker_handle(g, sock, &q, &b);
		buf_clear(&b);
		if (b.cap > KEEP_BYTES)
			buf_release(&b);
	}
}

/* ---- the server ---- */

void isolated_worker_init(struct isolated_worker *w, uint64_t timeout_ms)
{
	*w = (struct isolated_worker){.timeout_ms = timeout_ms ? timeout_ms : ISOLATED_MS};
	(void)pthread_mutex_init(&w->lock, NULL);
}

void isolated_worker_release(struct isolated_worker *w)
{
	(void)isolated_child_end(&w->child);
	free(w->fatal);
	(void)pthread_mutex_destroy(&w->lock);
}

/* ready_locked - a child that is alive; one that died while idle is replaced without a word. */
static int ready_locked(struct isolated *g, struct err *e)
{
	struct isolated_worker *w = &g->worker;
	struct pollfd p = {.fd = w->child.p.sock, .events = POLLIN};

	if (w->child.p.pid && poll(&p, 1, 0) != 0)
		(void)isolated_child_end(
			&w->child); /* it has nothing to say before it is asked */
	if (w->child.p.pid)
		return 0;
	w->served = 0;
	return isolated_child_start(g, ISOLATED_READ, &w->child, e);
}

/* talk - the state of one read. */
struct talk {
	struct read_worker_request q;
	uint8_t *out;     /* OP_CHUNK */
	struct buf *vlen; /* OP_VLEN */
	int rc;           /* the child's answer */
	bool slow;        /* it was late because the bytes of a remote file were */
};

/* take_payload - elements, or the reason why there are none, after their sizes were checked. */
static enum child_taken take_payload(int sock, struct talk *t, const struct child_answer *a,
				     int64_t end, struct err *e)
{
	char text[ERR_TEXT_MAX];
	uint8_t *out = t->out;
	enum child_taken got;

	if (a->rc == 0) {
		if (t->q.op == OP_CHUNK ? a->len != t->q.len : a->len > t->q.len)
			return CHILD_WRONG;
		if (t->vlen && a->len)
			out = buf_grow(t->vlen, (size_t)a->len);
		if (a->len && !out) {
			t->rc = err_nomem(e);
			return CHILD_GONE;
		}
		return child_take(sock, out, (size_t)a->len, end);
	}
	if (a->rc == RETRY_NOMEM && a->len == 0 && !t->q.again) {
		t->rc = RETRY_NOMEM;
		return CHILD_TAKEN;
	}
	if (a->rc > 0 || a->rc < -4095 || a->len >= sizeof(text))
		return CHILD_WRONG;
	got = child_take(sock, text, (size_t)a->len, end);
	if (got != CHILD_TAKEN)
		return got;
	text[a->len] = '\0';
	/* only the index proves absence */
	t->rc = err_set(e, a->rc == -ENOENT ? -EIO : (int)a->rc, "%s", text);
	return CHILD_TAKEN;
}

static enum child_taken ask_locked(struct isolated_worker *w, struct talk *t, struct err *e)
{
	int64_t end = clock_ms() + (int64_t)u64_min(w->timeout_ms, INT_MAX);
	struct child_answer a;
	const int64_t waited = blob_proxy_waited(w->child.remote);
	enum child_taken got;

	t->rc = 0;
	child_renew(&w->child.p, w->timeout_ms);
	/* one that could not even begin has said why, and has ended; one that lives is not waited
	 * for: nothing comes any more, it sees, and ends */
	if (!child_send(w->child.p.sock, &t->q, sizeof(t->q), 0))
		(void)shutdown(w->child.p.sock, SHUT_WR);
	t->rc = isolated_await(&w->child, end, &got, e);
	if (got == CHILD_TAKEN)
		got = child_take(w->child.p.sock, &a, sizeof(a), end);
	if (got == CHILD_TAKEN)
		got = take_payload(w->child.p.sock, t, &a, end, e);
	t->slow = got == CHILD_LATE &&
		  blob_proxy_waited(w->child.remote) - waited > (int64_t)(w->timeout_ms / 2);
	return got;
}

/* ---- chunks that killed a worker ---- */

/* refuse_locked - what killed a worker is not given to the next one, and an array that does it
 * again and again is left alone: a hostile file costs only so many processes. */
static int refuse_locked(const struct isolated *g, const struct read_worker_request *q,
			 struct err *e)
{
	const struct isolated_worker *w = &g->worker;
	const char *who = g->kind->child.who;
	const int64_t now = clock_ms();
	unsigned n = 0;

	for (size_t i = 0; i < w->n_fatal; i++) {
		if (w->fatal[i].array != q->array || w->fatal[i].until <= now)
			continue;
		if (w->fatal[i].linear == q->linear)
			return err_set(e, -EIO,
				       "%s crashed or hung on it before: it is not tried again "
				       "for a minute",
				       who);
		n++;
	}
	if (n < ISOLATED_TRIES)
		return 0;
	return err_set(
		e, -EIO,
		"%s crashed or hung on %u chunks of the array: no further chunk is tried", who,
		n);
}

static void read_worker_remember_locked(struct isolated_worker *w,
					const struct read_worker_request *q)
{
	const int64_t now = clock_ms();
	size_t n = 0;

	for (size_t i = 0; i < w->n_fatal; i++)
		if (w->fatal[i].until > now)
			w->fatal[n++] = w->fatal[i];
	w->n_fatal = n;
	if (grow_array(&w->fatal, &w->c_fatal, n + 1, sizeof(*w->fatal)) < 0)
		return; /* then it is tried again */
	w->fatal[w->n_fatal++] = (struct isolated_fatal){
		.array = q->array, .linear = q->linear, .until = now + ISOLATED_REST_MS};
}

/* unlucky - it says that what it crashed of was no fault of the file. One that a file took over may
 * say so, too: then every read of that file costs a process. */
static bool unlucky(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOMEM_CRASH;
}

/* read_worker_explain - the child ended, or was ended by us, in the middle of a request. */
static int read_worker_explain(const struct isolated *g, enum child_taken got, int status,
			       struct err *e)
{
	const char *who = g->kind->child.who;
	char why[CHILD_WHY_MAX];

	if (got == CHILD_LATE)
		return err_set(e, -EIO,
			       "%s did not answer within %llu s: the file is damaged, or its "
			       "storage is too slow",
			       who, (unsigned long long)(g->worker.timeout_ms + 999) / 1000);
	if (got == CHILD_WRONG)
		return err_set(e, -EIO,
			       "%s's process sent an invalid answer: the file is damaged", who);
	if (child_died_of(status) == SIGKILL)
		return err_set(e, -EIO,
			       "%s's process was killed (signal 9) while reading it: possibly "
			       "out of memory",
			       who);
	if (child_died_of(status))
		return err_set(e, -EIO, "%s %s while reading it: the file is damaged", who,
			       child_why(child_died_of(status), why));
	if (got == CHILD_GONE && status == 0)
		return err_set(e, -EIO, "%s's process ended and its answer was lost", who);
	if (got == CHILD_GONE && unlucky(status))
		return err_set(e, -EIO,
			       "%s crashed while reading it, after memory ran out, descriptors "
			       "ran out or a read failed",
			       who);
	return err_set(e, -EIO,
		       "%s's process ended (status %d) while reading it: the file is damaged",
		       who, WEXITSTATUS(status));
}

static int too_slow(const struct isolated_worker *w, struct err *e)
{
	return err_set(e, -ETIMEDOUT,
		       "its bytes did not arrive within %llu s: the network is too slow",
		       (unsigned long long)(w->timeout_ms + 999) / 1000);
}

static int read_worker_read_locked(struct isolated *g, struct talk *t, struct err *e)
{
	struct isolated_worker *w = &g->worker;
	size_t head = t->vlen ? t->vlen->len : 0;
	int rc = refuse_locked(g, &t->q, e);
	bool once = false;

	while (rc == 0) {
		enum child_taken got;
		bool fresh, killed, lost;
		int status;

		rc = ready_locked(g, e);
		if (rc < 0)
			return rc;
		fresh = w->served == 0;
		got = ask_locked(w, t, e);
		if (got == CHILD_TAKEN) {
			w->served++;
			/* one that could not begin is about to end; a library that met a
			 * shortage may not be what it was */
			if (blob_proxy_failed(w->child.remote) || t->rc == -EIO ||
			    err_is_transient(t->rc))
				(void)isolated_child_end(&w->child);
			if (t->rc != RETRY_NOMEM)
				return t->rc;
			(void)isolated_child_end(&w->child);
			t->q.again = 1;
			continue;
		}
		status = isolated_child_end(&w->child);
		if (t->vlen)
			t->vlen->len = head;
		if (t->rc < 0) /* we gave up, not the child */
			return t->rc;
		/* what ended, and had answered before, may have been killed by somebody while it
		 * had nothing to do, or an earlier chunk has damaged its memory */
		if (got == CHILD_GONE && !fresh)
			continue;
		killed = got == CHILD_GONE && child_died_of(status) == SIGKILL;
		lost = got == CHILD_GONE && status == 0; /* one that ended well */
		if (lost && !once) {                     /* or whose answer went astray */
			once = true;
			continue;
		}
		/* only what a new process dies of is held against the chunk */
		if (!killed && !lost && !t->slow && !unlucky(status))
			read_worker_remember_locked(w, &t->q);
		rc = t->slow ? too_slow(w, e) : read_worker_explain(g, got, status, e);
	}
	return rc;
}

static int read_worker_read_one(struct isolated *g, struct talk *t, struct err *e)
{
	int rc = cancel_lock(&g->worker.lock);

	if (rc < 0)
		return err_set(e, rc, "cancelled while another chunk was read");
	rc = read_worker_read_locked(g, t, e);
	(void)pthread_mutex_unlock(&g->worker.lock);
	return rc;
}

int isolated_chunk(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out,
		   size_t len, struct err *e)
{
	struct talk t = {
		.q = {.op = OP_CHUNK, .array = array, .linear = linear, .len = len},
		.out = out,
	};

	return read_worker_read_one(g, &t, e);
}

int isolated_vlen(struct isolated *g, uint32_t array, uint64_t linear, struct buf *out,
		  struct err *e)
{
	struct talk t = {
		.q = {.op = OP_VLEN,
		      .array = array,
		      .linear = linear,
		      .len = out->max - out->len},
		.vlen = out,
	};

	return read_worker_read_one(g, &t, e);
}
