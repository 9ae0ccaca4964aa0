/* SPDX-License-Identifier: BSD-3-Clause */
/* read_worker.c - the server's side of the worker process, and the process itself.
 *
 * The elements follow the reply on the socket. The child has only the source's descriptor, its
 * socket, and the pipe that reports the end of the server. */
#include <errno.h>
#include <string.h>

#include "base/os/cancel.h"
#include "hdf5view/isolate/isolated_source.h"

enum op { OP_CHUNK = 1, OP_VLEN };

struct read_worker_request {
	uint32_t op, array;
	uint64_t linear;
	uint64_t len;   /* chunk: its bytes; vlen: the limit */
	uint64_t again; /* a flag: second attempt, after a large allocation failed */
};

/* Buffer kept for the next request; a larger one is freed. */
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
		rc = g->kind->library->vlen(g, q->array, q->linear, b, &e);
	} else {
		out = buf_grow(b, (size_t)q->len);
		rc = out ? g->kind->library->chunk(g, q->array, q->linear, out, (size_t)q->len, &e)
			 : err_nomem(&e);
	}
	rc = isolated_was_short(rc, q->again, &e);
	if (blob_proxy_client_failed(g->blob, NULL) < 0)
		rc = blob_proxy_client_failed(g->blob,
					      &e); /* then the server ends this process */
	if (rc)
		worker_reply(sock, rc, 0, &e);
	else
		child_say(sock, 0, b->data, b->len);
}

void isolated_read_job(struct isolated *g, int sock)
{
	struct read_worker_request q;
	struct buf b;

	buf_init(&b, 0);
	while (worker_next(sock, &q, sizeof(q))) {
		read_worker_handle(g, sock, &q, &b);
		buf_clear(&b);
		if (b.cap > KEEP_BYTES)
			buf_release(&b);
	}
	_exit(0); /* no exit handlers: they are the server's */
}

/* ---- the server ---- */

void isolated_worker_init(struct isolated_worker *w, uint64_t timeout_ms)
{
	*w = (struct isolated_worker){.timeout_ms = timeout_ms ? timeout_ms : ISOLATED_MS};
	(void)pthread_mutex_init(&w->lock, NULL);
}

void isolated_worker_release(struct isolated_worker *w)
{
	isolated_child_end(&w->child);
	worker_blame_release(&w->blame);
	(void)pthread_mutex_destroy(&w->lock);
}

static const struct worker_words words = {
	.late = ": the file is damaged, or its storage is too slow",
	.invalid = "'s process sent an invalid answer: the file is damaged",
	.killed = "'s process was killed (signal 9) while reading it: possibly out of memory",
	.crashed = " while reading it: the file is damaged",
	.ended = "'s process ended",
	.ended_of = " while reading it: the file is damaged",
	/* A worker under an attacker's control may report that memory ran out, too: then every
	 * read of that file costs a process. */
	.blameless =
		{{"'s process ended and its answer was lost", 0},
		 {" crashed while reading it, after memory ran out, descriptors ran out or a "
		  "read failed",
		  EXIT_NOMEM_CRASH}},
};

/* read_worker_lost_locked - the result of a request whose process was lost. *rc: the error. */
static enum worker_fate read_worker_lost_locked(struct isolated *g, enum child_taken got,
						bool slow, int *rc, struct err *e)
{
	struct isolated_worker *w = &g->worker;
	enum worker_fate fate;

	*rc = worker_lost(&w->child.w, &words, g->kind->child.who, got, w->timeout_ms, &fate,
			  e);
	isolated_child_end(&w->child);
	if (!slow)
		return fate;
	*rc = err_set(e, -ETIMEDOUT,
		      "its bytes did not arrive within %llu s: the network is too slow",
		      (unsigned long long)(w->timeout_ms + 999) / 1000);
	return WORKER_FAILED;
}

static int read_worker_read_locked(struct isolated *g, struct read_worker_request *q,
				   struct worker_call *c, struct err *e)
{
	struct isolated_worker *w = &g->worker;
	int rc = worker_blame_check(&w->blame, q->array, q->linear, g->kind->child.who,
				    " for a minute", e);
	bool once = false, slow;

	while (rc == 0) {
		enum child_taken got;
		enum worker_fate fate;

		if (!worker_alive(&w->child.w)) {
			isolated_child_end(&w->child);
			rc = isolated_child_start(g, ISOLATED_READ, &w->child, e);
		}
		if (rc < 0)
			return rc;
		c->len = q->len;
		got = isolated_call(&w->child, c, &slow, e);
		if (got == CHILD_TAKEN && c->rc > 0 && (c->rc != RETRY_NOMEM || q->again))
			got = CHILD_WRONG;
		if (got == CHILD_TAKEN || got == CHILD_GIVEN_UP) {
			/* a child that could not begin is about to end; after a shortage the
			 * library's state is not reliable */
			if (got == CHILD_GIVEN_UP || c->rc > 0 || c->rc == -EIO ||
			    err_is_transient(c->rc) || blob_proxy_failed(w->child.remote, NULL))
				isolated_child_end(&w->child);
			if (c->rc <= 0)
				return c->rc;
			q->again = 1;
			continue;
		}
		fate = read_worker_lost_locked(g, got, slow, &rc, e);
		if (fate == WORKER_RETRY || (fate == WORKER_LOST && !once))
			rc = 0;
		once |= fate == WORKER_LOST;
		if (fate == WORKER_FATAL)
			worker_blame_add(&w->blame, q->array, q->linear, ISOLATED_REST_MS);
	}
	return rc;
}

static int read_worker_read_one(struct source *s, struct read_worker_request *q,
				struct worker_call *c, struct err *e)
{
	struct isolated *g = isolated_of(s);
	int rc = cancel_lock(&g->worker.lock);

	if (rc < 0)
		return err_set(e, rc, "cancelled while another chunk was read");
	c->request = q;
	c->size = sizeof(*q);
	c->ms = g->worker.timeout_ms;
	c->known = RETRY_NOMEM;
	rc = read_worker_read_locked(g, q, c, e);
	(void)pthread_mutex_unlock(&g->worker.lock);
	return rc == 0 ? isolated_check(s, e) : rc;
}

int isolated_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
			size_t len, struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	struct read_worker_request q = {
		.op = OP_CHUNK, .array = array, .linear = linear, .len = len};
	struct worker_call c = {.out = out};

	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "%s", a->unreadable);
	if (dt_is_vlen(&a->type) || len != a->chunk_bytes)
		return err_set(e, -EINVAL, "a chunk has %llu bytes, not %zu",
			       (unsigned long long)a->chunk_bytes, len);
	return read_worker_read_one(s, &q, &c, e);
}

int isolated_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		       struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	struct read_worker_request q = {
		.op = OP_VLEN, .array = array, .linear = linear, .len = out->max - out->len};
	struct worker_call c = {.append = out};

	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "%s", a->unreadable);
	if (!dt_is_vlen(&a->type) || !isolated_of(s)->kind->library->vlen)
		return err_set(e, -EINVAL, "its elements have a fixed size");
	return read_worker_read_one(s, &q, &c, e);
}
