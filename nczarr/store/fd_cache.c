/* SPDX-License-Identifier: BSD-3-Clause */
/* fd_cache.c - a slot for each hash of a key; a thread takes a file by an atomic exchange with
 * NULL. */
#include "base/core/clock.h"
#include "base/core/hash.h"
#include "nczarr/store/fd_cache_int.h"

#include <string.h>
#include <time.h>

struct cached_fd {
	int fd;         /* owned */
	int64_t since;  /* ms */
	char key[];
};

static void fd_cache_drop(struct cached_fd *x)
{
	if (x)
		(void)close(x->fd); /* it was only read from */
	free(x);
}

static _Atomic(struct cached_fd *) *slot_of(struct fd_cache *k, const char *key)
{
	return &k->slots[hash_text(HASH_SEED, key) % KEPT_FILES];
}

int fd_cache_take(struct fd_cache *k, const char *key, int64_t *ret_since)
{
	_Atomic(struct cached_fd *) *slot = slot_of(k, key);
	struct cached_fd *x, *none = NULL;
	int fd;

	if (!atomic_load_explicit(slot, memory_order_relaxed))
		return -1;
	x = atomic_exchange_explicit(slot, NULL, memory_order_acq_rel);
	if (!x)
		return -1;
	if (strcmp(x->key, key) != 0) { /* of another key */
		if (!atomic_compare_exchange_strong_explicit(slot, &none, x, memory_order_acq_rel,
							     memory_order_relaxed))
			fd_cache_drop(x);
		return -1;
	}
	if (clock_ms() - x->since > KEPT_MS) {
		fd_cache_drop(x);
		return -1;
	}
	fd = x->fd;
	*ret_since = x->since;
	free(x);
	return fd;
}

void fd_cache_give(struct fd_cache *k, const char *key, int fd, int64_t since)
{
	size_t n = strlen(key) + 1;
	struct cached_fd *x = malloc(sizeof(*x) + n);

	if (!x) {
		(void)close(fd); /* it is opened again then */
		return;
	}
	x->fd = fd;
	x->since = since ? since : clock_ms();
	memcpy(x->key, key, n);
	fd_cache_drop(atomic_exchange_explicit(slot_of(k, key), x, memory_order_acq_rel));
}

void fd_cache_release(struct fd_cache *k)
{
	for (size_t i = 0; i < KEPT_FILES; i++)
		fd_cache_drop(atomic_exchange(&k->slots[i], NULL));
}
