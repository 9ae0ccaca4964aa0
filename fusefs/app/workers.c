/* SPDX-License-Identifier: BSD-3-Clause */
/* workers.c - starts threads, waits for them, joins them. */
#include "fusefs/app/workers.h"

#include <errno.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "base/os/thread.h"

#define MOMENT_NS (100 * 1000 * 1000)
#define REMOTE_THREADS 8

struct workers_worker {
	const struct workers *all;
	pthread_t thread;
	uint32_t i;
	uint8_t *room;
};

static void *workers_do_run(void *arg)
{
	struct workers_worker *me = arg;
	const struct workers *w = me->all;

	w->work(w->arg, me->i, me->room);
	LOCK_SCOPE(w->lock);
	(*w->running)--;
	(void)pthread_cond_broadcast(w->tick);
	return NULL;
}

/* workers_start - start as many threads as possible. Call with the lock. Returns their number; if
 * it is 0, e has the error. */
static uint32_t workers_start(const struct workers *w, struct workers_worker *v, struct err *e)
{
	uint32_t n = 0;

	for (; n < w->n; n++) {
		int rc;

		v[n] = (struct workers_worker){.all = w, .i = n, .room = malloc(w->room)};
		rc = v[n].room ? pthread_create(&v[n].thread, NULL, workers_do_run, &v[n])
			       : ENOMEM;
		if (rc) {
			free(v[n].room);
			if (n == 0)
				(void)err_sys(e, rc, "start a thread");
			break;
		}
		(*w->running)++;
	}
	return n;
}

/* wait_a_moment - wait 100 ms, or until no worker is left. Call with the lock. */
static void wait_a_moment(const struct workers *w)
{
	const struct timespec until = clock_after(MOMENT_NS);

	while (*w->running > 0 && pthread_cond_timedwait(w->tick, w->lock, &until) != ETIMEDOUT)
		;
}

uint32_t workers_threads(const struct cfg_limits *limits, bool remote)
{
	uint32_t n = limits->decode_threads ? limits->decode_threads : thread_processors();

	return remote && n < REMOTE_THREADS ? REMOTE_THREADS : n;
}

int workers_run(const struct workers *w, struct err *e)
{
	struct workers_worker *v = alloc_array(w->n, sizeof(*v));
	uint32_t n;

	if (!v)
		return err_nomem(e);
	cancel_cond_init(w->tick);
	(void)pthread_mutex_lock(w->lock);
	n = workers_start(w, v, e);
	while (*w->running > 0) {
		wait_a_moment(w);
		if (*w->running == 0)
			break;
		(void)pthread_mutex_unlock(w->lock);
		w->on_progress(w->arg);
		(void)pthread_mutex_lock(w->lock);
	}
	(void)pthread_mutex_unlock(w->lock);
	w->on_progress(w->arg);
	for (uint32_t i = 0; i < n; i++) {
		(void)pthread_join(v[i].thread, NULL);
		free(v[i].room);
	}
	free(v);
	(void)pthread_cond_destroy(w->tick);
	return n > 0 ? 0 : e ? e->code : -EAGAIN;
}

void room_init(struct room *r, uint64_t max)
{
	*r = (struct room){.max = max};
	(void)pthread_mutex_init(&r->lock, NULL); /* neither can fail without attributes */
	(void)pthread_cond_init(&r->freed, NULL);
}

void room_end(struct room *r)
{
	(void)pthread_cond_destroy(&r->freed);
	(void)pthread_mutex_destroy(&r->lock);
}

void room_hold(struct room *r, uint64_t n)
{
	LOCK_SCOPE(&r->lock);

	while (r->held > 0 && (n > r->max || r->held > r->max - n))
		(void)pthread_cond_wait(&r->freed, &r->lock);
	r->held += n;
}

void room_give(struct room *r, uint64_t n)
{
	LOCK_SCOPE(&r->lock);

	r->held -= n;
	(void)pthread_cond_broadcast(&r->freed);
}
