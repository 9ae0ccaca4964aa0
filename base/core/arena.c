/* SPDX-License-Identifier: BSD-3-Clause */
/* arena.c - blocks of at least 64 KiB; a larger request gets its own block. */
#include "base/core/arena.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 << 10)
#define ALIGN _Alignof(max_align_t)

struct arena_block {
	struct arena_block *next;
	size_t used, cap;
	_Alignas(max_align_t) uint8_t data[];
};

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){.max = max};
}

void arena_init_in(struct arena *a, void *mem, size_t size)
{
	struct arena_block *b = mem;

	*a = (struct arena){.fixed = true};
	if (size < sizeof(*b))
		return;
	*b = (struct arena_block){.cap = size - sizeof(*b)};
	a->head = b;
	a->max = b->cap;
}

void arena_release(struct arena *a)
{
	if (a->fixed)
		a->head = NULL;
	while (a->head) {
		struct arena_block *b = a->head;

		a->head = b->next;
		free(b);
	}
	a->used = 0;
}

static struct arena_block *arena_add_block(struct arena *a, size_t bytes)
{
	size_t cap = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES, total;
	struct arena_block *b;

	if (ckd_add(&total, cap, sizeof(*b)))
		return NULL;
	b = calloc(1, total);
	if (!b) {
		a->starved = true;
		return NULL;
	}
	b->cap = cap;
	if (a->head && bytes > BLOCK_BYTES) {
		/* keep filling the current small block */
		b->next = a->head->next;
		a->head->next = b;
	} else {
		b->next = a->head;
		a->head = b;
	}
	return b;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
	struct arena_block *b = a->head;
	size_t bytes, total;
	void *p;

	if (ckd_mul(&bytes, n, size) || ckd_add(&bytes, bytes, ALIGN - 1))
		return NULL;
	bytes -= bytes % ALIGN;
	if (bytes == 0)
		bytes = ALIGN;
	if (ckd_add(&total, a->used, bytes) || total > a->max)
		return NULL;
	if (!b || b->cap - b->used < bytes)
		b = a->fixed ? NULL : arena_add_block(a, bytes);
	if (!b)
		return NULL;
	p = b->data + b->used;
	b->used += bytes;
	a->used = total;
	return p;
}

int arena_full(const struct arena *a, struct err *e, const char *what)
{
	if (a->starved)
		return err_nomem(e);
	return err_set(e, -ERANGE,
		       "%s needs more than its limit of %zu bytes (half of -o memory)", what,
		       a->max);
}

void *arena_copy(struct arena *a, const void *p, size_t n)
{
	size_t total;
	char *copy;

	if (ckd_add(&total, n, (size_t)1))
		return NULL;
	copy = arena_alloc(a, total, 1);
	if (copy && n)
		memcpy(copy, p, n);
	return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_copy(a, s, strlen(s));
}
