/* SPDX-License-Identifier: BSD-3-Clause */
/* arena.h - memory with one lifetime: a dataset, a parsed document. Not thread-safe. Any thread may
 * read the memory of an arena that is no longer written to. */
#ifndef BASE_CORE_ARENA_H
#define BASE_CORE_ARENA_H

#include "base/core/err.h"

struct arena_block;

struct arena {
	struct arena_block *head;
	size_t used;   /* bytes handed out */
	size_t max;    /* ceiling in bytes */
	bool starved;  /* malloc failed; false: the ceiling was reached */
	bool fixed;    /* the caller's memory, which arena_release does not free */
};

/* arena_init - empty arena that never hands out more than max bytes; allocates nothing. */
void arena_init(struct arena *a, size_t max);
/* arena_init_in - an arena in `size` bytes of zeroed memory at mem, aligned for any type. It never
 * allocates. The arena must not be moved by copying mem to another address. */
void arena_init_in(struct arena *a, void *mem, size_t size);
/* arena_release - free everything that was handed out. */
void arena_release(struct arena *a);

/* arena_alloc - zeroed memory for n elements of `size` bytes, aligned for any type. Borrowed
 * until arena_release. NULL when the product overflows, the ceiling is hit or memory is short. */
void *arena_alloc(struct arena *a, size_t n, size_t size);
/* arena_full - the error of an arena that returned NULL: -ENOMEM, or -ERANGE with "<what> needs
 * more than the ... bytes allowed for it". Returns it. */
int arena_full(const struct arena *a, struct err *e, const char *what);
/* arena_copy - a copy of n bytes, followed by a NUL. */
void *arena_copy(struct arena *a, const void *p, size_t n);
/* arena_strdup - a copy of a NUL-terminated string. */
char *arena_strdup(struct arena *a, const char *s);

#endif
