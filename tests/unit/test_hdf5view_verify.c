/* A model that another process wrote is only used when it can be: every change of it is either
 * found, or harmless to whoever follows its pointers. */
#include "hdf5view/hdf5view.h"
#include "hdf5view/src_int.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

static char path[64];

static int make_file(void **state)
{
	const hsize_t dims[2] = {6, 4}, chunk[2] = {2, 4};
	const char *text = "kelvin";
	hid_t file, space, dcpl, set, type, attr, scalar;

	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/nczarrfs-verify-%d.h5", (int)getpid());
	file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	space = H5Screate_simple(2, dims, NULL);
	dcpl = H5Pcreate(H5P_DATASET_CREATE);
	(void)H5Pset_chunk(dcpl, 2, chunk);
	(void)H5Pset_shuffle(dcpl);
	(void)H5Pset_deflate(dcpl, 4);
	set = H5Dcreate2(file, "v", H5T_IEEE_F32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	type = H5Tcopy(H5T_C_S1);
	(void)H5Tset_size(type, 6);
	scalar = H5Screate(H5S_SCALAR);
	attr = H5Acreate2(set, "units", type, scalar, H5P_DEFAULT, H5P_DEFAULT);
	(void)H5Awrite(attr, type, text);
	(void)H5Aclose(attr);
	(void)H5Sclose(scalar);
	(void)H5Tclose(type);
	(void)H5Dclose(set);
	(void)H5Pclose(dcpl);
	(void)H5Sclose(space);
	(void)H5Gclose(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
	return H5Fclose(file) < 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

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

/* follow - every pointer, as far as the model says. */
static uint64_t follow(const struct guest_model *m)
{
	uint64_t sum = strlen(m->ds.format);

	for (uint32_t i = 0; i < m->ds.n_groups; i++)
		sum += strlen(m->ds.groups[i].name) +
		       touch(m->ds.groups[i].arrays, m->ds.groups[i].n_arrays * 4ull);
	for (uint32_t i = 0; i < m->ds.n_arrays; i++) {
		const struct ds_array *a = &m->ds.arrays[i];

		sum += strlen(a->name) + touch(a->shape, a->rank * sizeof(*a->shape));
		sum += a->fill ? touch(a->fill, a->type.size) : 0;
		for (uint32_t k = 0; k < a->n_attrs; k++) {
			sum += strlen(a->attrs[k].name);
			for (uint64_t j = 0; a->attrs[k].texts && j < a->attrs[k].n; j++)
				sum += touch(a->attrs[k].texts[j].s, a->attrs[k].texts[j].len);
		}
		for (uint32_t k = 0; k < a->chain.n; k++)
			sum += touch(a->chain.specs[k].params,
				     a->chain.specs[k].n_params * 4ull);
	}
	return sum;
}

static void test_every_change(void **state)
{
	const struct source_ops *const formats[] = {&hdf5_source_ops};
	const struct source_options opts = {.cut_bytes = 1 << 20,
					    .max_chunk_bytes = 1 << 30,
					    .max_index_bytes = 1 << 24,
					    .max_meta_bytes = 1 << 20};
	unsigned found = 0, harmless = 0;
	struct err e = ERR_INIT;
	struct h5_source *h;
	struct source *s;
	uint32_t seed = 1;
	uint64_t sum = 0;
	uint8_t *copy;

	(void)state;
	assert_int_equal(source_open(formats, 1, path, &opts, &s, &e), 0);
	h = h5_of(s);
	assert_non_null(h->g.region);
	assert_int_equal(guest_verify(&h5_guest_kind, h->g.region, h->g.region_size, &e), 0);
	/* at the same address, or every pointer would lead out of it */
	copy = malloc(h->g.region_size);
	assert_non_null(copy);
	memcpy(copy, h->g.region, h->g.region_size);
	assert_true(mmap(h->g.region, h->g.region_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == h->g.region);
	for (unsigned i = 0; i < 40000; i++) {
		uint8_t *at = h->g.region;
		size_t used = ((struct guest_model *)(void *)copy)->used;

		memcpy(at, copy, h->g.region_size);
		for (unsigned k = next(&seed) % 3 + 1; k > 0; k--)
			at[next(&seed) % used] = (uint8_t)next(&seed);
		if (guest_verify(&h5_guest_kind, h->g.region, h->g.region_size, &e) < 0) {
			found++;
		} else {
			harmless++;
			sum += follow(h->g.region);
		}
	}
	assert_true(found > 1000 && harmless > 1000 && sum > 0);
	memcpy(h->g.region, copy, h->g.region_size);
	/* a truth that is neither */
	*(unsigned char *)&((struct guest_model *)h->g.region)->ds.arrays[0].uniform = 2;
	assert_int_equal(guest_verify(&h5_guest_kind, h->g.region, h->g.region_size, &e),
			 -EBADMSG);
	memcpy(h->g.region, copy, h->g.region_size);
	free(copy);
	source_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_change, make_file, remove_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
