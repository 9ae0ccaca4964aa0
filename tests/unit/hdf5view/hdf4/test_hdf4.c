/* SPDX-License-Identifier: BSD-3-Clause */
/* The HDF4 source without a mount: the model, chunks at edges, limits; a model that another process
 * wrote is only used when every pointer of it can be followed. */
#include "hdf5view/hdf4/hdf4_int.h"
#include "hdf5view/hdf5view.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/blob_fake.h"

#ifndef NCZARRFS_HDF4
int main(void)
{
	(void)puts("HDF4 is not built in");
	return 0;
}
#else
#include "hdf5view/hdf4/hdf4_library.h"

static char path[64];

static int make_file(void **state)
{
	int32 lens[2] = {5, 7}, start[2] = {0}, rows[1] = {SD_UNLIMITED}, n[1] = {3}, sd, sds;
	HDF_CHUNK_DEF def;
	int16 v[35], fill = -9;

	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/nczarrfs-h4-%d.hdf", (int)getpid());
	for (int i = 0; i < 35; i++)
		v[i] = (int16)(i * 3);
	memset(&def, 0, sizeof(def));
	def.comp.chunk_lengths[0] = 2;
	def.comp.chunk_lengths[1] = 4;
	def.comp.comp_type = COMP_CODE_DEFLATE;
	def.comp.cinfo.deflate.level = 5;
	sd = SDstart(path, DFACC_CREATE);
	assert_true(sd != FAIL);
	sds = SDcreate(sd, "chunked", DFNT_INT16, 2, lens);
	assert_true(SDsetchunk(sds, def, HDF_CHUNK | HDF_COMP) != FAIL);
	assert_true(SDsetfillvalue(sds, &fill) != FAIL);
	assert_true(SDsetattr(sds, "units", DFNT_CHAR8, 6, "kelvin") != FAIL);
	assert_true(SDwritedata(sds, start, NULL, lens, v) != FAIL);
	assert_true(SDendaccess(sds) != FAIL);
	sds = SDcreate(sd, "rows", DFNT_INT16, 1, rows);
	assert_true(SDsetdimname(SDgetdimid(sds, 0), "time") != FAIL);
	assert_true(SDwritedata(sds, start, NULL, n, v) != FAIL);
	assert_true(SDendaccess(sds) != FAIL);
	n[0] = 8;
	sds = SDcreate(sd, "longer", DFNT_INT16, 1, rows);
	assert_true(SDsetdimname(SDgetdimid(sds, 0), "time") != FAIL);
	assert_true(SDwritedata(sds, start, NULL, n, v) != FAIL);
	assert_true(SDendaccess(sds) != FAIL);
	sds = SDcreate(sd, "never", DFNT_INT32, 2, lens);
	assert_true(SDendaccess(sds) != FAIL);
	return SDend(sd) == FAIL;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static const struct source_options usual = {.cut_bytes = 1 << 20,
					    .max_chunk_bytes = 1 << 20,
					    .max_index_bytes = 1 << 20,
					    .max_meta_bytes = 1 << 20};

static int open_with(const struct source_options *o, struct source **ret, struct err *e)
{
	const struct source_ops *const formats[] = {&hdf4_source_ops};

	return source_open(formats, 1, path, o, ret, e);
}

static struct source *opened(const struct source_options *o)
{
	struct err e = ERR_INIT;
	struct source *s = NULL;

	if (open_with(o, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static void test_model(void **state)
{
	struct source *s = opened(&usual);
	const struct dataset *ds = &s->ds;

	(void)state;
	assert_string_equal(ds->format, "HDF4");
	assert_int_equal(ds->n_arrays, 4);
	assert_int_equal(ds->n_dims, 5);
	assert_string_equal(ds->arrays[0].name, "chunked");
	assert_int_equal(ds->arrays[0].chunk[0], 2);
	assert_int_equal(ds->arrays[0].chunk[1], 4);
	assert_int_equal(ds->arrays[0].n_chunks, 6);
	assert_int_equal(ds->arrays[0].layout, DS_CHUNKED);
	assert_int_equal(ds->arrays[0].access, DS_STORED);
	assert_int_equal(ds->arrays[0].chain.n, 1);
	assert_int_equal(ds->arrays[0].chain.specs[0].h5_id, 1);
	assert_true(ds->arrays[0].type.big_endian && ds->arrays[0].uniform);
	assert_int_equal(ds->arrays[1].access, DS_CONVERT);
	assert_true(ds->arrays[0].fill_defined && ds_fill_declared(&ds->arrays[0]));
	assert_string_equal(ds->arrays[0].attrs[1].name, "units");
	assert_memory_equal(ds->arrays[0].attrs[1].strings[0].s, "kelvin", 7);
	/* one dimension that can grow, and its length for both */
	assert_int_equal(ds->arrays[1].dims[0], ds->arrays[2].dims[0]);
	assert_true(ds->dims[ds->arrays[1].dims[0]].unlimited);
	assert_int_equal(ds->arrays[1].shape[0], 8);
	assert_false(ds->arrays[1].fill_defined);
	source_close(s);
}

static void read_into(struct source *s, uint32_t array, uint64_t i, int16_t *out, size_t n)
{
	struct err e = ERR_INIT;

	if (source_read_chunk(s, array, i, (uint8_t *)out, n * sizeof(*out), &e) < 0)
		fail_msg("%s", e.msg);
	dt_swap_to_host(&s->ds.arrays[array].type, (uint8_t *)out, n);
}

static void test_chunks(void **state)
{
	struct source *s = opened(&usual);
	struct chunk_ref ref;
	int16_t v[8];
	uint64_t i;

	(void)state;
	read_into(s, 0, 0, v, 8);
	assert_int_equal(v[0], 0);
	assert_int_equal(v[7], 3 * 10);
	read_into(s, 0, 5, v, 8); /* one row of three elements is inside */
	for (int k = 0; k < 8; k++)
		assert_int_equal(v[k], k < 3 ? 3 * (32 + k) : -9);
	read_into(s, 1, 0, v, 8); /* shorter than its dimension */
	for (int k = 0; k < 8; k++)
		assert_int_equal(v[k], k < 3 ? 3 * k : -32767);
	assert_int_equal(source_locate(s, 0, 3, &ref, NULL), 0);
	assert_int_equal(ref.where, CHUNK_RANGE);
	assert_true(ref.off > 0 && ref.len > 0);
	assert_int_equal(source_locate(s, 1, 0, &ref, NULL), 0);
	assert_int_equal(ref.where, CHUNK_SYNTH);
	assert_int_equal(source_locate(s, 3, 0, &ref, NULL), 0);
	assert_int_equal(ref.where, CHUNK_ABSENT);
	assert_int_equal(source_next(s, 3, 0, &i, NULL), -ENOENT);
	assert_int_equal(source_next(s, 0, 4, &i, NULL), 0);
	assert_int_equal(i, 4);
	source_close(s);
}

static void test_limits(void **state)
{
	struct source_options o = usual;
	struct err e = ERR_INIT;
	struct source *s = NULL;

	(void)state;
	o.max_meta_bytes = 600;
	assert_int_equal(open_with(&o, &s, &e), -ERANGE);
	o = usual;
	o.max_chunk_bytes = 15;
	s = opened(&o);
	assert_non_null(strstr(s->ds.arrays[0].unreadable, "16 bytes, more than max_chunk=15"));
	source_close(s);
}

static void test_changed(void **state)
{
	struct source *s = opened(&usual);
	struct err e = ERR_INIT;
	int16_t v[8];
	int fd;

	(void)state;
	fd = open(path, O_WRONLY | O_APPEND);
	assert_true(fd >= 0 && write(fd, "", 1) == 1 && close(fd) == 0);
	assert_int_equal(source_read_chunk(s, 0, 0, (uint8_t *)v, sizeof(v), &e), -ESTALE);
	source_close(s);
}

/* ---- a model that another process wrote ---- */

static uint32_t next(uint32_t *x)
{
	*x = *x * 1664525 + 1013904223;
	return *x >> 8;
}

static uint64_t touch(const void *p, uint64_t n)
{
	const uint8_t *at = p;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum += at[i];
	return sum;
}

static uint64_t follow(const struct isolated_model *m)
{
	const struct h4_array *own = m->own;
	uint64_t sum = strlen(m->ds.format);

	for (uint32_t i = 0; i < m->ds.n_arrays; i++) {
		const struct ds_array *a = &m->ds.arrays[i];

		sum += strlen(a->name) + touch(a->fill, a->type.size);
		sum += a->convert ? strlen(a->convert) : 0;
		sum += touch(own[i].extent, a->rank * sizeof(uint64_t));
		sum += touch(own[i].places, own[i].n_places * sizeof(struct h4_place));
	}
	return sum;
}

static void test_every_change(void **state)
{
	struct source *s = opened(&usual);
	struct isolated *g = isolated_of(s);
	unsigned found = 0, harmless = 0;
	struct err e = ERR_INIT;
	uint32_t seed = 1;
	uint64_t sum = 0;
	uint8_t *copy = malloc(g->region_size);

	(void)state;
	assert_non_null(copy);
	memcpy(copy, g->region, g->region_size);
	assert_true(mmap(g->region, g->region_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == g->region);
	for (unsigned i = 0; i < 20000; i++) {
		size_t used = ((struct isolated_model *)(void *)copy)->used;
		uint8_t *at = g->region;

		memcpy(at, copy, g->region_size);
		for (unsigned k = next(&seed) % 3 + 1; k > 0; k--)
			at[next(&seed) % used] = (uint8_t)next(&seed);
		if (isolated_verify(g->kind, g->region, g->region_size, UINT64_MAX, &e) < 0) {
			found++;
		} else {
			harmless++;
			sum += follow(g->region);
		}
	}
	assert_true(found > 1000 && harmless > 1000 && sum > 0);
	memcpy(g->region, copy, g->region_size);
	free(copy);
	source_close(s);
}

/* ---- names, attributes and compressions of all kinds ---- */

static char odd_path[64], beside[64];

static void odd_array(int32 sd, const char *name, comp_coder_t coder, const char *dim, int32 n)
{
	int32 start[1] = {0}, sds = SDcreate(sd, name, DFNT_INT16, 1, &n);
	comp_info how = {0};
	int16 v[9];

	for (int i = 0; i < 9; i++)
		v[i] = (int16)(i * 5);
	how.skphuff.skp_size = 2;
	how.deflate.level = 3;
	assert_true(sds != FAIL);
	assert_true(coder == COMP_CODE_NONE || SDsetcompress(sds, coder, &how) != FAIL);
	assert_true(!dim || SDsetdimname(SDgetdimid(sds, 0), dim) != FAIL);
	assert_true(SDwritedata(sds, start, NULL, &n, v) != FAIL);
	assert_true(SDendaccess(sds) != FAIL);
}

static void odd_attrs(int32 sd)
{
	const float32 f[2] = {1.5f, -2};
	const int8 small = -3;

	assert_true(SDsetattr(sd, "_ARRAY_DIMENSIONS", DFNT_CHAR8, 1, "x") != FAIL);
	assert_true(SDsetattr(sd, "floats", DFNT_LFLOAT32, 2, f) != FAIL);
	assert_true(SDsetattr(sd, "small", DFNT_INT8, 1, &small) != FAIL);
	assert_true(SDsetattr(sd, "text", DFNT_CHAR8, 4, "a\xff\0") != FAIL);
}

static int make_odd(void **state)
{
	int32 n = 4, start[1] = {0}, sd, sds;
	int16 v[4] = {1, 2, 3, 4};

	(void)state;
	(void)snprintf(odd_path, sizeof(odd_path), "/tmp/nczarrfs-h4odd-%d.hdf", (int)getpid());
	(void)snprintf(beside, sizeof(beside), "/tmp/nczarrfs-h4odd-%d.bin", (int)getpid());
	sd = SDstart(odd_path, DFACC_CREATE);
	assert_true(sd != FAIL);
	odd_array(sd, "a/b", COMP_CODE_NONE, "same", 4);
	odd_array(sd, "..", COMP_CODE_NONE, NULL, 5);
	odd_array(sd, "twice", COMP_CODE_NONE, "same", 4);
	odd_array(sd, "twice", COMP_CODE_NONE, NULL, 4);
	odd_array(sd, "rle", COMP_CODE_RLE, NULL, 9);
	odd_array(sd, "huffman", COMP_CODE_SKPHUFF, NULL, 9);
	odd_array(sd, "deflate", COMP_CODE_DEFLATE, NULL, 9);
	sds = SDcreate(sd, "outside", DFNT_INT16, 1, &n);
	assert_true(SDsetexternalfile(sds, beside, 0) != FAIL);
	assert_true(SDwritedata(sds, start, NULL, &n, v) != FAIL);
	assert_true(SDendaccess(sds) != FAIL);
	odd_attrs(sd);
	return SDend(sd) == FAIL;
}

static int remove_odd(void **state)
{
	(void)state;
	return unlink(odd_path) | unlink(beside);
}

static const struct ds_array *array_called(const struct source *s, const char *name)
{
	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		if (strcmp(s->ds.arrays[i].name, name) == 0)
			return &s->ds.arrays[i];
	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		print_error("%s\n", s->ds.arrays[i].name);
	fail_msg("no array '%s'", name);
	return NULL;
}

static void holds(struct source *s, const char *name)
{
	const struct ds_array *a = array_called(s, name);
	struct err e = ERR_INIT;
	int16_t v[9];

	assert_int_equal(a->chunk_bytes, sizeof(v));
	if (source_read_chunk(s, (uint32_t)(a - s->ds.arrays), 0, (uint8_t *)v, sizeof(v), &e) <
	    0)
		fail_msg("%s: %s", name, e.msg);
	for (int i = 0; i < 9; i++) { /* as presented: big-endian, as HDF4 has it */
		const uint8_t *p = (const uint8_t *)&v[i];

		assert_int_equal(a->type.big_endian ? p[0] << 8 | p[1] : p[1] << 8 | p[0],
				 i * 5);
	}
}

static void odd_is_right(struct source *s)
{
	const struct ds_group *root = &s->ds.groups[0];
	const struct ds_attr *text = ds_attr_find(root->attrs, root->n_attrs, "text");
	const struct ds_attr *floats = ds_attr_find(root->attrs, root->n_attrs, "floats");
	bool said = false;

	(void)array_called(s, "a_b");
	(void)array_called(s, "__");
	for (uint32_t i = 0; i < s->ds.n_arrays; i++) {
		assert_true(strlen(s->ds.arrays[i].name) <= DS_NAME_MAX);
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(s->ds.arrays[i].name, s->ds.arrays[k].name);
	}
	for (uint32_t i = 0; i < s->ds.n_dims; i++)
		for (uint32_t k = 0; k < i; k++)
			assert_string_not_equal(s->ds.dims[i].name, s->ds.dims[k].name);
	holds(s, "rle");
	holds(s, "huffman");
	holds(s, "deflate");
	assert_non_null(strstr(array_called(s, "outside")->unreadable,
			       "its values are in another file, which is not read"));
	assert_null(ds_attr_find(root->attrs, root->n_attrs, "_ARRAY_DIMENSIONS"));
	for (uint32_t i = 0; i < s->ds.n_notes; i++)
		said |= strstr(s->ds.notes[i], "'_ARRAY_DIMENSIONS' is left out: its name is "
					       "reserved by netCDF") != NULL;
	assert_true(said && text && floats);
	assert_int_equal(floats->n, 2);
	assert_memory_equal(floats->data, ((float[]){1.5f, -2}), 8);
}

static void test_odd(void **state)
{
	const struct source_ops *const formats[] = {&hdf4_source_ops};
	struct err e = ERR_INIT;
	struct source *s;

	(void)state;
	if (source_open(formats, 1, odd_path, &usual, &s, &e) < 0)
		fail_msg("%s", e.msg);
	odd_is_right(s);
	source_close(s);
}

/* The same from another machine, and one that breaks off. */
static void test_far(void **state)
{
	const struct source_ops *const formats[] = {&hdf4_source_ops};
	struct blob_fake *f = fake_open(odd_path);
	struct source_at at = fake_at(f, "http://there/odd.hdf");
	struct err e = ERR_INIT;
	struct source *s;

	(void)state;
	if (source_open_at(formats, 1, &at, &usual, &s, &e) < 0)
		fail_msg("%s", e.msg);
	odd_is_right(s);
	source_close(s);
	fake_free(f);
	f = fake_open(odd_path);
	at = fake_at(f, "http://there/odd.hdf");
	f->fail_at = 2;
	f->fail_rc = -ETIMEDOUT;
	assert_int_equal(source_open_at(formats, 1, &at, &usual, &s, &e), -ETIMEDOUT);
	fake_free(f);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, make_file, remove_file)
	const struct CMUnitTest tests[] = {
		CASE(test_model),
		CASE(test_chunks),
		CASE(test_limits),
		CASE(test_changed),
		CASE(test_every_change),
		cmocka_unit_test_setup_teardown(test_odd, make_odd, remove_odd),
		cmocka_unit_test_setup_teardown(test_far, make_odd, remove_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
