/* SPDX-License-Identifier: BSD-3-Clause */
/* write_prefetch.c - opens the files of a source of many files before the walk needs them, by
 * several threads: each file is opened by a process of its library, for which the walk alone would
 * wait.
 *
 * The threads query the location of one chunk in each stretch of an array, which opens its file.
 * Results and errors are dropped, as the walk gets them again. */
#include "nczarr/refs/write_int.h"

#include "base/os/lock.h"

#define PREFETCH_THREADS 16

struct refs_prefetch {
	struct view *v;
	uint32_t files, window; /* of the source; that may be opened before the walk */
	pthread_t threads[PREFETCH_THREADS];
	uint32_t n_threads;
	pthread_mutex_t lock; /* of the fields below */
	pthread_cond_t changed;
	bool ended;
	uint32_t array;
	uint64_t n;      /* chunks of the array; 0: there is none */
	uint64_t stride; /* chunks of a file, about */
	uint64_t at;     /* the walk's chunk, in strides */
	uint64_t next;   /* the next stretch */
};

/* take_stretch - wait for the next stretch. Returns false at the end. */
static bool take_stretch(struct refs_prefetch *a, uint32_t *ret_array, uint64_t *ret_chunk)
{
	LOCK_SCOPE(&a->lock);

	while (!a->ended && (a->next * a->stride >= a->n || a->next >= a->at + a->window))
		(void)pthread_cond_wait(&a->changed, &a->lock);
	if (a->ended)
		return false;
	*ret_array = a->array;
	*ret_chunk = a->next++ * a->stride;
	return true;
}

static void *prefetch_run(void *arg)
{
	struct refs_prefetch *a = arg;
	struct chunk_ref ref;
	uint32_t array;
	uint64_t chunk;

	while (take_stretch(a, &array, &chunk))
		if (zr_view_stored(a->v, array, chunk, &ref, NULL) < 0)
			continue; /* the walk reports it */
	return NULL;
}

struct refs_prefetch *refs_prefetch_new(struct view *v, const struct refs_options *opts)
{
	struct refs_prefetch *a;

	if (opts->files < 2 || opts->threads < 2 || opts->window < 2)
		return NULL;
	a = alloc_array(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = (struct refs_prefetch){.v = v, .files = opts->files, .window = opts->window};
	(void)pthread_mutex_init(&a->lock, NULL); /* cannot fail without attributes */
	(void)pthread_cond_init(&a->changed, NULL);
	while (a->n_threads < opts->threads && a->n_threads < PREFETCH_THREADS &&
	       pthread_create(&a->threads[a->n_threads], NULL, prefetch_run, a) == 0)
		a->n_threads++;
	return a;
}

void refs_prefetch_array(struct refs_prefetch *a, uint32_t array, uint64_t n)
{
	if (!a)
		return;
	(void)pthread_mutex_lock(&a->lock);
	a->array = array;
	a->stride = n / a->files + (n % a->files != 0);
	a->n = n;
	a->at = a->next = 0;
	(void)pthread_cond_broadcast(&a->changed);
	(void)pthread_mutex_unlock(&a->lock);
}

void refs_prefetch_at(struct refs_prefetch *a, uint64_t chunk)
{
	if (!a || a->n == 0 || chunk / a->stride == a->at)
		return; /* only this thread writes n, stride and at */
	(void)pthread_mutex_lock(&a->lock);
	a->at = chunk / a->stride;
	a->next = u64_max(a->next, a->at);
	(void)pthread_cond_broadcast(&a->changed);
	(void)pthread_mutex_unlock(&a->lock);
}

void refs_prefetch_free(struct refs_prefetch *a)
{
	if (!a)
		return;
	(void)pthread_mutex_lock(&a->lock);
	a->ended = true;
	(void)pthread_cond_broadcast(&a->changed);
	(void)pthread_mutex_unlock(&a->lock);
	for (uint32_t i = 0; i < a->n_threads; i++)
		(void)pthread_join(a->threads[i], NULL);
	(void)pthread_cond_destroy(&a->changed);
	(void)pthread_mutex_destroy(&a->lock);
	free(a);
}
