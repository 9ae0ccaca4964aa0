/* SPDX-License-Identifier: BSD-3-Clause */
/* source_same.h - two sources of one dataset say the same: model, places and bytes. */
#ifndef TESTS_UNIT_SOURCE_SAME_H
#define TESTS_UNIT_SOURCE_SAME_H

#include <string.h>

#include "translate/contract/source.h"

#define SAME_CHUNKS 200 /* of an array, spread evenly */
#define SAME_BYTES ((uint64_t)32 << 20)

static inline void same_chunk(struct source *a, struct source *b, uint32_t i, uint64_t linear)
{
	const struct ds_array *x = &a->ds.arrays[i];
	struct chunk_ref p = {.where = CHUNK_ABSENT}, q = {.where = CHUNK_ABSENT};
	struct err e = ERR_INIT, e2 = ERR_INIT;
	int rc = source_locate(a, i, linear, &p, &e),
	    rc2 = source_locate(b, i, linear, &q, &e2);

	if (rc != rc2)
		fail_msg("%s: %s / %s", x->name, e.msg, e2.msg);
	if (rc < 0)
		return;
	assert_int_equal(p.where, q.where);
	assert_true(p.off == q.off && p.len == q.len && p.pad == q.pad &&
		    p.filter_mask == q.filter_mask);
	if (p.where == CHUNK_RANGE && p.len <= SAME_BYTES) {
		uint8_t *m = malloc(p.len + 1), *n = malloc(p.len + 1);

		if (source_read_stored(a, i, linear, &p, 0, m, p.len, &e) < 0 ||
		    source_read_stored(b, i, linear, &q, 0, n, p.len, &e) < 0)
			fail_msg("%s", e.msg);
		assert_memory_equal(m, n, p.len);
		free(m);
		free(n);
	} else if (p.where == CHUNK_SYNTH && x->access == DS_VARIABLE) {
		struct buf m, n;

		buf_init(&m, SAME_BYTES);
		buf_init(&n, SAME_BYTES);
		rc = source_read_vlen(a, i, linear, &m, &e);
		rc2 = source_read_vlen(b, i, linear, &n, &e2);
		if (rc != rc2)
			fail_msg("%s: %s / %s", x->name, e.msg, e2.msg);
		assert_true(m.len == n.len &&
			    (m.len == 0 || memcmp(m.data, n.data, m.len) == 0));
		buf_release(&m);
		buf_release(&n);
	} else if (p.where == CHUNK_SYNTH && x->chunk_bytes <= SAME_BYTES) {
		size_t len = (size_t)x->chunk_bytes;
		uint8_t *m = malloc(len + 1), *n = malloc(len + 1);

		rc = source_read_chunk(a, i, linear, m, len, &e);
		rc2 = source_read_chunk(b, i, linear, n, len, &e2);
		if (rc != rc2)
			fail_msg("%s: %s / %s", x->name, e.msg, e2.msg);
		assert_true(rc < 0 || memcmp(m, n, len) == 0);
		free(m);
		free(n);
	}
}

static inline void same_model(const struct dataset *a, const struct dataset *b)
{
	assert_int_equal(a->n_groups, b->n_groups);
	assert_int_equal(a->n_arrays, b->n_arrays);
	assert_int_equal(a->n_dims, b->n_dims);
	assert_string_equal(a->format, b->format);
	for (uint32_t i = 0; i < a->n_groups; i++) {
		assert_string_equal(a->groups[i].name, b->groups[i].name);
		assert_int_equal(a->groups[i].n_attrs, b->groups[i].n_attrs);
	}
	for (uint32_t i = 0; i < a->n_arrays; i++) {
		const struct ds_array *x = &a->arrays[i], *y = &b->arrays[i];

		assert_string_equal(x->name, y->name);
		assert_int_equal(x->rank, y->rank);
		assert_int_equal(x->n_attrs, y->n_attrs);
		assert_true(x->n_chunks == y->n_chunks && x->chunk_bytes == y->chunk_bytes);
	}
}

/* same_sources - a is the local one. Chunks that only a library reads are few: others suffice. */
static inline void same_sources(struct source *a, struct source *b)
{
	same_model(&a->ds, &b->ds);
	for (uint32_t i = 0; i < a->ds.n_arrays; i++) {
		uint64_t n = a->ds.arrays[i].n_chunks, step = n / SAME_CHUNKS + 1;

		if (a->ds.arrays[i].unreadable)
			continue;
		for (uint64_t k = 0; k < n; k += step)
			same_chunk(a, b, i, k);
		if (n > 0)
			same_chunk(a, b, i, n - 1);
	}
}

#endif
