/* SPDX-License-Identifier: BSD-3-Clause */
/* model.h - what translate/model/dataset.h and translate/contract/source.h promise of every source,
 * looked at: names, products, ordinals, and that each chunk that is looked for is there, absent, or
 * an error with a message. An abort where it does not hold. */
#ifndef TESTS_FUZZ_MODEL_H
#define TESTS_FUZZ_MODEL_H

#include "base/core/utf8.h"
#include "tests/fuzz/look.h"

#define MODEL_CHUNKS 20 /* of each array, from its beginning and from its end */
#define MODEL_ARRAYS 200
#define MODEL_CHUNK_BYTES ((size_t)4 << 20)

static inline void model_name(const char *name)
{
	look_require(*name && strlen(name) <= DS_NAME_MAX && !strchr(name, '/') &&
		     strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		     utf8_ok(name, strlen(name)));
}

static inline void model_attrs(const struct ds_attr *attrs, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		look_require(ds_attr_find(attrs, n, attrs[i].name) == &attrs[i]);
		for (uint64_t k = 0; attrs[i].strings && k < attrs[i].n; k++)
			for (size_t b = 0; b < attrs[i].strings[k].len; b++)
				sum += (uint8_t)attrs[i].strings[k].s[b];
		for (uint64_t k = 0; attrs[i].data && k < attrs[i].n * attrs[i].type.size; k++)
			sum += attrs[i].data[k];
	}
	look_require(sum < UINT64_MAX); /* they were read */
}

static inline int model_by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static inline void model_group(const struct dataset *ds, uint32_t i)
{
	const struct ds_group *g = &ds->groups[i];
	size_t n = 0, all = (size_t)g->n_groups + g->n_arrays;
	const char **names = calloc(all + 1, sizeof(*names));

	look_require(names != NULL);
	model_attrs(g->attrs, g->n_attrs);
	for (uint32_t k = 0; k < g->n_groups; k++) {
		look_require(g->groups[k] < ds->n_groups && g->groups[k] > 0);
		look_require(ds->groups[g->groups[k]].parent == i);
		names[n++] = ds->groups[g->groups[k]].name;
	}
	for (uint32_t k = 0; k < g->n_arrays; k++) {
		look_require(g->arrays[k] < ds->n_arrays &&
			     ds->arrays[g->arrays[k]].group == i);
		names[n++] = ds->arrays[g->arrays[k]].name;
	}
	qsort(names, n, sizeof(*names), model_by_name);
	for (size_t k = 0; k < n; k++) {
		model_name(names[k]);
		look_require(k == 0 || strcmp(names[k], names[k - 1]) != 0);
	}
	free(names);
}

static inline void model_array(const struct dataset *ds, const struct ds_array *a)
{
	uint64_t n = 1, bytes = a->type.size, sum = 0;
	bool vlen = dt_is_vlen(&a->type);

	look_require(a->group < ds->n_groups && a->rank <= DS_RANK_MAX);
	model_attrs(a->attrs, a->n_attrs);
	(void)ds_fill_declared(a);
	for (uint32_t d = 0; d < a->rank; d++) {
		look_require(a->chunk[d] > 0 && a->dims[d] < ds->n_dims);
		look_require(a->grid[d] ==
			     a->shape[d] / a->chunk[d] + (a->shape[d] % a->chunk[d] != 0));
		look_require(!ckd_mul(&n, n, a->grid[d]) &&
			     !ckd_mul(&bytes, bytes, a->chunk[d]));
	}
	look_require(n == a->n_chunks && a->chunk_bytes == (vlen ? 0 : bytes));
	look_require(vlen || a->fill != NULL);
	for (size_t i = 0; !vlen && i < a->type.size; i++)
		sum += a->fill[i];
	look_require(sum < UINT64_MAX);
}

static inline void model_chunk(struct source *s, uint32_t array, uint64_t linear)
{
	static uint8_t out[MODEL_CHUNK_BYTES];
	const struct ds_array *a = &s->ds.arrays[array];
	struct chunk_ref ref;
	struct err e = ERR_INIT;
	int rc = source_locate(s, array, linear, &ref, &e);
	struct buf b;

	look_require(rc <= 0 && (rc == 0 || e.msg[0]));
	if (rc == 0 && ref.where == CHUNK_RANGE && ref.len > 0) {
		e = (struct err)ERR_INIT;
		rc = source_read_stored(s, array, linear, &ref, ref.len - 1, out, 1, &e);
		look_require(rc <= 0 && (rc == 0 || e.msg[0]));
	}
	e = (struct err)ERR_INIT;
	if (dt_is_vlen(&a->type)) {
		buf_init(&b, MODEL_CHUNK_BYTES);
		rc = source_read_vlen(s, array, linear, &b, &e);
		buf_release(&b);
	} else if (a->chunk_bytes <= sizeof(out)) {
		rc = source_read_chunk(s, array, linear, out, (size_t)a->chunk_bytes, &e);
	}
	look_require(rc <= 0 && (rc == 0 || e.msg[0]));
}

/* model_look - chunks: also those are looked for and read. */
static inline void model_look(struct source *s, bool chunks)
{
	const struct dataset *ds = &s->ds;

	look_require(ds->n_groups > 0 && ds->groups[0].parent == DS_NONE);
	for (uint32_t i = 0; i < ds->n_groups; i++)
		model_group(ds, i);
	for (uint32_t i = 0; i < ds->n_dims; i++)
		look_require(ds->dims[i].name[0] && ds->dims[i].group < ds->n_groups);
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const struct ds_array *a = &ds->arrays[i];
		struct err e = ERR_INIT;
		uint64_t next;

		model_array(ds, a);
		if (!chunks || i >= MODEL_ARRAYS || a->n_chunks == 0)
			continue;
		if (source_next(s, i, 0, &next, &e) == 0)
			look_require(next < a->n_chunks);
		for (uint64_t k = 0; k < a->n_chunks && k < MODEL_CHUNKS; k++) {
			model_chunk(s, i, k);
			model_chunk(s, i, a->n_chunks - 1 - k);
		}
	}
}

#endif
