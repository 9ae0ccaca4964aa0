/* SPDX-License-Identifier: BSD-3-Clause */
/* worker.c - both ends of a call, pools of workers, and the record of chunks that kill them. */
#include "base/process/worker.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/core/clock.h"
#include "base/os/cancel.h"

#define SHARED_MIN ((uint64_t)1 << 20)
#define SHARED_KEEP ((uint64_t)64 << 20) /* shared memory of an idle worker */
#define ALIGN 64
#define LOOK_MS 100 /* between checks for a cancellation */

/* ---- one process ---- */

int worker_start(struct worker *w, const struct child_kind *kind, void *job, size_t size,
		 struct err *e)
{
	int rc = shm_new(kind->name, SHARED_MIN, &w->shared, e);

	rc = rc ? rc : child_start(kind, job, job, size, &w->shared.fd, &w->child, e);
	if (rc < 0)
		shm_release(&w->shared);
	w->served = 0;
	return rc;
}

bool worker_alive(struct worker *w)
{
	struct pollfd p = {.fd = w->child.sock, .events = POLLIN};

	if (w->child.pid && poll(&p, 1, 0) != 0)
		(void)worker_end(w); /* it sends nothing before a request */
	return w->child.pid != 0;
}

int worker_end(struct worker *w)
{
	int status = child_end(&w->child);

	shm_release(&w->shared);
	free(w->only);
	w->only = NULL;
	w->served = 0;
	return status;
}

uint64_t worker_place(uint64_t *end, uint64_t n)
{
	uint64_t at;

	if (ckd_add(&at, *end, (uint64_t)ALIGN - 1) || ckd_add(end, at / ALIGN * ALIGN, n)) {
		*end = UINT64_MAX;
		return 0;
	}
	return at / ALIGN * ALIGN;
}

/* ---- a call ---- */

/* worker_await - wait for input in short steps, so that a cancelled request does not wait for its
 * whole time limit. */
static enum child_taken worker_await(int sock, int64_t until)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	for (;;) {
		int64_t left = until - clock_ms();
		int n = poll(&p, 1, (int)(left < 0 ? 0 : left < LOOK_MS ? left : LOOK_MS));

		if (n > 0 || (n < 0 && errno != EINTR))
			return CHILD_TAKEN;
		if (cancel_requested())
			return CHILD_GIVEN_UP;
		if (left <= 0)
			return CHILD_LATE;
	}
}

/* worker_reason - receive the text of a failure, after its length was checked. */
static enum child_taken worker_reason(struct worker *w, struct worker_call *c,
				      const struct child_answer *a, int64_t until,
				      struct err *e)
{
	char text[ERR_TEXT_MAX];
	enum child_taken got;

	if (a->len >= sizeof(text))
		return CHILD_WRONG;
	got = child_take(w->child.sock, text, (size_t)a->len, until);
	if (got != CHILD_TAKEN)
		return got;
	text[a->len] = '\0';
	c->rc = child_errno(a->rc);
	for (const int *p = c->also; p && *p; p++)
		if (a->rc == *p)
			c->rc = *p;
	(void)err_set(e, c->rc, "%s", text);
	return CHILD_TAKEN;
}

/* worker_success - receive the number, and the bytes that follow it if any. */
static enum child_taken worker_success(struct worker *w, struct worker_call *c, uint64_t len,
				       int64_t until, struct err *e)
{
	const uint64_t most = c->len;
	uint8_t *out = c->out;

	c->len = len;
	if (!c->out && !c->append)
		return CHILD_TAKEN;
	if (c->append ? len > most : len != most)
		return CHILD_WRONG;
	if (c->append && len)
		out = buf_grow(c->append, (size_t)len);
	if (len && !out) {
		c->rc = err_nomem(e);
		return CHILD_GIVEN_UP;
	}
	return child_take(w->child.sock, out, (size_t)len, until);
}

enum child_taken worker_call(struct worker *w, struct worker_call *c, struct err *e)
{
	const int64_t until =
		c->ms && c->ms < INT64_MAX / 2 ? clock_ms() + (int64_t)c->ms : INT64_MAX;
	const size_t head = c->append ? c->append->len : 0;
	enum child_taken got = CHILD_TAKEN;
	struct child_answer a;

	c->rc = 0;
	if (c->ms && c->request)
		child_renew(&w->child, c->ms);
	/* A process that failed to start has sent the reason, and has ended. A live one sees the
	 * end of the socket, and ends. */
	if (c->request && !child_send(w->child.sock, c->request, c->size, 0))
		(void)shutdown(w->child.sock, SHUT_WR);
	if (c->cancels)
		got = worker_await(w->child.sock, until);
	if (got == CHILD_GIVEN_UP)
		c->rc = err_set(e, -EINTR, "cancelled");
	if (got == CHILD_TAKEN)
		got = child_take(w->child.sock, &a, sizeof(a), until);
	if (got != CHILD_TAKEN)
		return got;
	if (a.rc < 0)
		got = worker_reason(w, c, &a, until, e);
	else if (a.rc > c->known || (a.rc > 0 && a.len > 0))
		got = CHILD_WRONG;
	else if (a.rc > 0)
		c->rc = (int)a.rc;
	else
		got = worker_success(w, c, a.len, until, e);
	if (got == CHILD_TAKEN)
		w->served++;
	else if (c->append)
		c->append->len = head;
	return got;
}

static int worker_explain(const struct worker_words *t, const char *who, enum child_taken got,
			  uint64_t ms, int status, const char *blameless, struct err *e)
{
	const int sig = child_died_of(status), again = t->again ? t->again : -EIO;
	char why[CHILD_WHY_MAX];

	if (got == CHILD_LATE)
		return err_set(e, -EIO, "%s did not answer within %llu s%s", who,
			       (unsigned long long)(ms + 999) / 1000, t->late);
	if (got == CHILD_WRONG)
		return err_set(e, -EIO, "%s%s", who, t->invalid);
	if (sig == SIGKILL)
		return err_set(e, again, "%s%s", who, t->killed);
	if (sig)
		return err_set(e, -EIO, "%s %s%s", who, child_why(sig, why), t->crashed);
	if (blameless)
		return err_set(e, again, "%s%s", who, blameless);
	return err_set(e, again, "%s%s (status %d)%s", who, t->ended, WEXITSTATUS(status),
		       t->ended_of);
}

int worker_lost(struct worker *w, const struct worker_words *words, const char *who,
		enum child_taken got, uint64_t ms, enum worker_fate *ret, struct err *e)
{
	const bool fresh = w->served == 0;
	const int status = worker_end(w);
	const char *blameless = NULL;
	enum worker_fate fate = WORKER_FATAL;

	for (size_t i = 0; i < ARRAY_LEN(words->blameless); i++)
		if (words->blameless[i].text && !child_died_of(status) &&
		    WEXITSTATUS(status) == words->blameless[i].status)
			blameless = words->blameless[i].text;
	if (got == CHILD_GONE && !fresh)
		fate = WORKER_RETRY;
	else if (got == CHILD_GONE && (blameless || child_died_of(status) == SIGKILL))
		fate = status ? WORKER_FAILED : WORKER_LOST; /* the request did not cause it */
	if (ret)
		*ret = fate;
	return worker_explain(words, who, got, ms, status, blameless, e);
}

/* ---- pools ---- */

/* worker_disown_locked - forget the children of the process that forked this one: it has their
 * descriptors, but not their shared memory. */
static void worker_disown_locked(struct worker_pool *p)
{
	for (uint32_t i = 0; p->owner && i < p->n; i++) {
		struct worker *w = &p->v[i];

		if (w->child.pid) {
			(void)close(w->child.sock);
			(void)close(w->child.life);
			close_fd(&w->child.report);
			(void)close(w->shared.fd);
		}
		*w = (struct worker){0};
	}
	p->owner = getpid();
}

struct worker *worker_take(struct worker_pool *p,
			   bool (*fits)(const struct worker *w, const void *arg),
			   const void *arg)
{
	struct worker *found = NULL;

	(void)pthread_mutex_lock(&p->lock);
	if (p->owner != getpid())
		worker_disown_locked(p);
	while (!found) {
		struct worker *none = NULL, *any = NULL;

		for (uint32_t i = 0; i < p->n && !found; i++) {
			struct worker *w = &p->v[i];

			if (w->busy)
				continue;
			if (!w->child.pid)
				none = none ? none : w;
			else if (!fits || fits(w, arg))
				found = w;
			else
				any = any ? any : w;
		}
		if (!found)
			found = none ? none : any;
		if (!found)
			(void)pthread_cond_wait(&p->idle, &p->lock);
	}
	found->busy = true;
	(void)pthread_mutex_unlock(&p->lock);
	return found;
}

void worker_give(struct worker_pool *p, struct worker *w)
{
	shm_keep(&w->shared, SHARED_KEEP);
	(void)pthread_mutex_lock(&p->lock);
	w->busy = false;
	(void)pthread_cond_signal(&p->idle);
	(void)pthread_mutex_unlock(&p->lock);
}

void worker_pool_end(struct worker_pool *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		(void)worker_end(&p->v[i]);
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_cond_destroy(&p->idle);
}

/* ---- chunks that kill processes ---- */

int worker_blame_check(const struct worker_blame *b, uint32_t array, uint64_t linear,
		       const char *doing, const char *rest, struct err *e)
{
	const int64_t now = b->n ? clock_ms() : 0;
	unsigned n = 0;

	for (size_t i = 0; i < b->n; i++) {
		if (b->v[i].array != array || b->v[i].until <= now)
			continue;
		if (b->v[i].linear == linear)
			return err_set(e, -EIO,
				       "%s crashed or hung on it before: it is not tried "
				       "again%s",
				       doing, rest);
		n++;
	}
	if (n < WORKER_TRIES)
		return 0;
	return err_set(
		e, -EIO,
		"%s crashed or hung on %u chunks of the array: no further chunk is tried",
		doing, n);
}

void worker_blame_add(struct worker_blame *b, uint32_t array, uint64_t linear, int64_t rest_ms)
{
	const int64_t now = clock_ms();
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		if (b->v[i].until > now)
			b->v[n++] = b->v[i];
	b->n = n;
	if (grow_array(&b->v, &b->cap, n + 1, sizeof(*b->v)) < 0)
		return;
	b->v[n].array = array;
	b->v[n].linear = linear;
	b->v[n].until = rest_ms ? now + rest_ms : INT64_MAX;
	b->n++;
}

void worker_blame_release(struct worker_blame *b)
{
	free(b->v);
	*b = (struct worker_blame){0};
}

/* ---- in the child ---- */

bool worker_next(int sock, void *request, size_t size)
{
	ssize_t n;

	do {
		n = recv(sock, request, size, MSG_WAITALL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)size;
}

void worker_reply(int sock, int rc, uint64_t number, const struct err *e)
{
	const struct child_answer a = {.len = number};

	if (rc)
		child_say(sock, rc, e->msg, rc < 0 ? strlen(e->msg) : 0);
	else if (!child_send(sock, &a, sizeof(a), 0))
		_exit(0);
}
