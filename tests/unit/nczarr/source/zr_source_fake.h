/* SPDX-License-Identifier: BSD-3-Clause */
/* zr_source_fake.h - a Zarr source made by hand: arrays without documents, over a store in memory
 * or a directory below /tmp, so that the tests of the data half need nothing of the other half. */
#ifndef TESTS_UNIT_NCZARR_SOURCE_ZR_SOURCE_FAKE_H
#define TESTS_UNIT_NCZARR_SOURCE_ZR_SOURCE_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "nczarr/source/chunks.h"
#include "tests/unit/nczarr/store_mem.h"

#define FAKE_ARRAYS 8

struct fake {
	struct zr_source s;
	struct ds_array a[FAKE_ARRAYS];
	struct zr_array x[FAKE_ARRAYS];
	struct zr_meta m[FAKE_ARRAYS];
	char dir[64]; /* "" with a store in memory */
	struct err e;
};

static inline void *fake_keep(struct fake *f, const void *p, size_t n)
{
	void *kept = arena_copy(&f->s.base.ds.arena, p, n);

	assert_non_null(kept);
	return kept;
}

/* fake_init - no arrays yet. on_disk: a directory of its own instead of memory. */
static inline void fake_init(struct fake *f, bool on_disk)
{
	memset(f, 0, sizeof(*f));
	arena_init(&f->s.base.ds.arena, (size_t)16 << 20);
	f->s.base.ds.arrays = f->a;
	f->s.arrays = f->x;
	f->s.opts.max_index_bytes = (uint64_t)16 << 20;
	f->s.opts.max_chunk_bytes = (uint64_t)1 << 30;
	if (on_disk) {
		int fd;

		strcpy(f->dir, "/tmp/nczarrfs-zr-XXXXXX");
		assert_non_null(mkdtemp(f->dir));
		fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		assert_int_equal(store_dir_open(fd, &f->s.store, &f->e), 0);
	} else {
		f->s.store = store_mem_new();
		assert_non_null(f->s.store);
	}
}

/* fake_array - the next array: 32-bit numbers in C order, keys of Zarr v2; change what is not so
 * before fake_start. Returns its meta. */
static inline struct zr_meta *fake_array(struct fake *f, const char *key, uint32_t rank,
					 const uint64_t *shape, const uint64_t *chunk)
{
	uint32_t i = f->s.base.ds.n_arrays++;
	struct zr_meta *m = &f->m[i];
	const uint32_t zero = 0;

	assert_true(i < FAKE_ARRAYS);
	m->format = 2;
	m->key = fake_keep(f, key, strlen(key) + 1);
	m->rank = rank;
	m->shape = fake_keep(f, shape, rank * sizeof(*shape));
	m->chunk = fake_keep(f, chunk, rank * sizeof(*chunk));
	m->separator = '.';
	m->dtype.type = (struct dtype){.kind = DT_UINT, .size = 4};
	m->dtype.stored = 4;
	f->a[i].name = m->key;
	f->a[i].fill = fake_keep(f, &zero, sizeof(zero));
	f->a[i].access = DS_STORED;
	return m;
}

/* fake_start - finish the arrays and make the data half. */
static inline void fake_start(struct fake *f)
{
	for (uint32_t i = 0; i < f->s.base.ds.n_arrays; i++) {
		struct zr_meta *m = &f->m[i];
		const struct zr_shard *sh = m->shard;
		struct ds_array *a = &f->a[i];
		uint64_t len[DS_RANK_MAX];

		while (sh && sh->next)
			sh = sh->next;
		f->x[i].meta = m;
		f->x[i].stored = sh ? sh->inner : m->chunk;
		for (uint32_t d = 0; d < m->rank; d++)
			len[d] = u64_max(1, u64_min(f->x[i].stored[d], m->shape[d]));
		a->type = m->dtype.type;
		a->rank = m->rank;
		a->shape = m->shape;
		a->chunk = fake_keep(f, len, m->rank * sizeof(*len));
		a->chain = m->chain;
		if (!a->dims)
			a->dims = fake_keep(f, len, 0);
		assert_int_equal(
			ds_array_finish(&f->s.base.ds, a, f->s.opts.max_chunk_bytes, &f->e), 0);
	}
	assert_int_equal(zr_data_new(&f->s, &f->s.data, &f->e), 0);
}

/* fake_forget - what is in memory now is taken for what was there all along. */
static inline void fake_forget(struct fake *f)
{
	if (!f->s.data)
		return;
	zr_versions_release(f->s.data);
	f->s.data->versions = alloc_array(f->s.data->n_places, sizeof(*f->s.data->versions));
	assert_non_null(f->s.data->versions);
}

/* fake_replace - an object is another one from now on; on disk with the directories that it
 * needs. */
static inline void fake_replace(struct fake *f, const char *key, const void *p, size_t n)
{
	char path[512];
	FILE *file;

	if (!f->dir[0]) {
		assert_int_equal(store_mem_put(f->s.store, key, p, n), 0);
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", f->dir, key);
	for (char *c = path + strlen(f->dir) + 1; (c = strchr(c, '/')) != NULL; c++) {
		*c = '\0';
		assert_true(mkdir(path, 0777) == 0 || errno == EEXIST);
		*c = '/';
	}
	file = fopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(p, 1, n, file), n);
	assert_int_equal(fclose(file), 0);
}

/* fake_put - an object, as if it had always been so. */
static inline void fake_put(struct fake *f, const char *key, const void *p, size_t n)
{
	fake_replace(f, key, p, n);
	fake_forget(f);
}

static inline void fake_release(struct fake *f)
{
	char cmd[128];

	zr_data_free(f->s.data);
	store_close(f->s.store);
	free(f->s.seen);
	arena_release(&f->s.base.ds.arena);
	if (f->dir[0]) {
		snprintf(cmd, sizeof(cmd), "rm -rf %s", f->dir);
		assert_int_equal(system(cmd), 0);
	}
}

/* fake_where - what zr_locate says, or a negative error. */
static inline int fake_where(struct fake *f, uint32_t array, uint64_t linear)
{
	struct chunk_ref ref;
	int rc;

	f->e = (struct err)ERR_INIT;
	rc = zr_locate(&f->s.base, array, linear, &ref, &f->e);
	return rc ? rc : (int)ref.where;
}

/* fake_read - a chunk's elements. */
static inline int fake_read(struct fake *f, uint32_t array, uint64_t linear, void *out)
{
	f->e = (struct err)ERR_INIT;
	return zr_read_chunk(&f->s.base, array, linear, out, (size_t)f->a[array].chunk_bytes,
			     &f->e);
}

/* fake_stored - a chunk's stored bytes, in two pieces. Returns their number or an error. */
static inline int fake_stored(struct fake *f, uint32_t array, uint64_t linear, uint8_t *out,
			      size_t cap)
{
	struct chunk_ref ref;
	int rc;
	size_t half;

	f->e = (struct err)ERR_INIT;
	rc = zr_locate(&f->s.base, array, linear, &ref, &f->e);
	if (rc)
		return rc;
	assert_int_equal(ref.where, CHUNK_RANGE);
	assert_true(ref.len <= cap);
	half = (size_t)ref.len / 2;
	rc = zr_read_stored(&f->s.base, array, linear, &ref, 0, out, half, &f->e);
	if (!rc)
		rc = zr_read_stored(&f->s.base, array, linear, &ref, half, out + half,
				    (size_t)ref.len - half, &f->e);
	return rc ? rc : (int)ref.len;
}

#endif
