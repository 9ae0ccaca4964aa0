/* SPDX-License-Identifier: BSD-3-Clause */
/* prefetch_queue.c - one mutex for the queue, held for a few instructions. */
#include "translate/cache/prefetch_queue.h"

#include <pthread.h>

#include "base/os/lock.h"
#include "base/os/thread.h"

#define QUEUE 64 /* requests that wait; more would be stale when they are served */
#define THREADS_MAX 64

struct prefetch_queue_request {
	uint32_t array;
	uint64_t linear;
};

struct prefetch {
	pthread_mutex_t lock; /* of everything below that is not constant */
	pthread_cond_t more;
	prefetch_run *run; /* constant, as arg, threads */
	void *arg;
	uint32_t threads;
	uint32_t n_running;
	bool started, stop;
	uint32_t head, n_queued;
	struct prefetch_queue_request queue[QUEUE];
	pthread_t ids[THREADS_MAX];
};

struct prefetch *prefetch_new(uint32_t threads, prefetch_run *run, void *arg)
{
	struct prefetch *a = alloc_array(1, sizeof(*a));

	if (!a)
		return NULL;
	a->run = run;
	a->arg = arg;
	a->threads = threads < THREADS_MAX ? threads : THREADS_MAX;
	(void)pthread_mutex_init(&a->lock, NULL); /* cannot fail with default attributes */
	(void)pthread_cond_init(&a->more, NULL);
	return a;
}

void prefetch_free(struct prefetch *a)
{
	if (!a)
		return;
	(void)pthread_mutex_lock(&a->lock);
	a->stop = true;
	(void)pthread_cond_broadcast(&a->more);
	(void)pthread_mutex_unlock(&a->lock);
	for (uint32_t i = 0; i < a->n_running; i++)
		(void)pthread_join(a->ids[i], NULL);
	(void)pthread_cond_destroy(&a->more);
	(void)pthread_mutex_destroy(&a->lock);
	free(a);
}

static void *prefetch_queue_worker(void *arg)
{
	struct prefetch *a = arg;

	(void)pthread_mutex_lock(&a->lock);
	for (;;) {
		struct prefetch_queue_request r;

		while (!a->stop && a->n_queued == 0)
			(void)pthread_cond_wait(&a->more, &a->lock);
		if (a->stop)
			break;
		r = a->queue[a->head];
		a->head = (a->head + 1) % QUEUE;
		a->n_queued--;
		(void)pthread_mutex_unlock(&a->lock);
		a->run(a->arg, r.array, r.linear);
		(void)pthread_mutex_lock(&a->lock);
	}
	(void)pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* start_locked - start the threads; with fewer than asked for, or none, readers do the work. */
static void start_locked(struct prefetch *a)
{
	a->started = true;
	while (a->n_running < a->threads &&
	       thread_start(&a->ids[a->n_running], prefetch_queue_worker, a) == 0)
		a->n_running++;
}

/* queued_locked - whether the same request waits already. */
static bool queued_locked(const struct prefetch *a, uint32_t array, uint64_t linear)
{
	for (uint32_t i = 0; i < a->n_queued; i++) {
		const struct prefetch_queue_request *r = &a->queue[(a->head + i) % QUEUE];

		if (r->linear == linear && r->array == array)
			return true;
	}
	return false;
}

void prefetch_push(struct prefetch *a, uint32_t array, uint64_t linear)
{
	struct prefetch_queue_request r = {.array = array, .linear = linear};
	LOCK_SCOPE(&a->lock);

	if (!a->started)
		start_locked(a);
	if (a->n_running > 0 && a->n_queued < QUEUE && !queued_locked(a, array, linear)) {
		a->queue[(a->head + a->n_queued) % QUEUE] = r;
		a->n_queued++;
		(void)pthread_cond_signal(&a->more);
	}
}
