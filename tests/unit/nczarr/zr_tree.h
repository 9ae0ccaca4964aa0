/* SPDX-License-Identifier: BSD-3-Clause */
/* zr_tree.h - a Zarr tree in a store in memory, for unit tests. */
#ifndef TESTS_UNIT_NCZARR_ZR_TREE_H
#define TESTS_UNIT_NCZARR_ZR_TREE_H

#include <string.h>

#include "nczarr/source/open.h"
#include "tests/unit/nczarr/store_mem.h"

/* tree_store - a store with the documents of a list: key, text, key, text, NULL. */
static inline struct store *tree_store(const char *const *list)
{
	struct store *st = store_mem_new();

	for (size_t i = 0; st && list[i]; i += 2)
		if (store_mem_put(st, list[i], list[i + 1], strlen(list[i + 1])) < 0)
			abort();
	return st;
}

/* tree_source - a source that has nothing but its store, options and arena. */
static inline void tree_source(struct zr_source *s, const char *const *list, bool keep_going)
{
	*s = (struct zr_source){.store = tree_store(list)};
	s->path = strdup("/data/name.zarr");
	s->opts = (struct source_options){.max_chunk_bytes = 1 << 20,
					  .max_meta_bytes = 1 << 22,
					  .keep_going = keep_going};
	arena_init(&s->base.ds.arena, 1 << 22);
}

static inline void tree_release(struct zr_source *s)
{
	store_close(s->store);
	free(s->path);
	free(s->nodes);
	free(s->seen);
	arena_release(&s->base.ds.arena);
	*s = (struct zr_source){0};
}

/* tree_json - parse a text, with ' for ". NULL: it is no JSON. */
static inline json_t *tree_json(const char *text)
{
	char *copy = strdup(text);
	json_t *v = NULL;
	int rc;

	for (char *c = copy; c && *c; c++)
		if (*c == '\'')
			*c = '"';
	rc = copy ? json_read(copy, strlen(copy), &v, NULL) : -1;
	free(copy);
	return rc < 0 ? NULL : v;
}

/* tree_describe - "v(x=5,y=6) " of every array with its dimensions: of which group, and '~' for one
 * that is made up, '*' for an unlimited one. */
static inline void tree_describe(const struct dataset *ds, struct buf *b)
{
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const struct ds_array *a = &ds->arrays[i];

		ds_array_path(ds, i, b);
		buf_putc(b, '(');
		for (uint32_t d = 0; d < a->rank; d++) {
			const struct ds_dim *dim = &ds->dims[a->dims[d]];

			buf_puts(b, d ? "," : "");
			buf_puts(b, dim->phony ? "~" : dim->unlimited ? "*" : "");
			if (dim->group) {
				ds_group_path(ds, dim->group, b);
				buf_putc(b, '/');
			}
			buf_printf(b, "%s=%llu", dim->name, (unsigned long long)dim->len);
		}
		buf_puts(b, ") ");
	}
	buf_putc(b, '\0');
}

#endif
