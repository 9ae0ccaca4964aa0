/* SPDX-License-Identifier: BSD-3-Clause */
/* A model that another process wrote is only used if it is safe: every change of it is either
 * detected, or harmless to code that follows its pointers. */
#include "hdf5view/hdf5view.h"
#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 30) /* bytes of a chunk */

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
static uint64_t follow(const struct isolated_model *m)
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
			for (uint64_t j = 0; a->attrs[k].strings && j < a->attrs[k].n; j++)
				sum += touch(a->attrs[k].strings[j].s,
					     a->attrs[k].strings[j].len);
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
					    .max_chunk_bytes = LIMIT,
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
	assert_int_equal(
		isolated_verify(&h5_library_kind, h->g.region, h->g.region_size, LIMIT, &e), 0);
	/* at the same address, or every pointer would lead out of it */
	copy = malloc(h->g.region_size);
	assert_non_null(copy);
	memcpy(copy, h->g.region, h->g.region_size);
	assert_true(mmap(h->g.region, h->g.region_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == h->g.region);
	for (unsigned i = 0; i < 40000; i++) {
		uint8_t *at = h->g.region;
		size_t used = ((struct isolated_model *)(void *)copy)->used;

		memcpy(at, copy, h->g.region_size);
		for (unsigned k = next(&seed) % 3 + 1; k > 0; k--)
			at[next(&seed) % used] = (uint8_t)next(&seed);
		if (isolated_verify(&h5_library_kind, h->g.region, h->g.region_size, LIMIT,
				    &e) < 0) {
			found++;
		} else {
			harmless++;
			sum += follow(h->g.region);
		}
	}
	assert_true(found > 1000 && harmless > 1000 && sum > 0);
	memcpy(h->g.region, copy, h->g.region_size);
	/* a truth that is neither */
	*(unsigned char *)&((struct isolated_model *)h->g.region)->ds.arrays[0].uniform = 2;
	assert_int_equal(
		isolated_verify(&h5_library_kind, h->g.region, h->g.region_size, LIMIT, &e),
		-EBADMSG);
	memcpy(h->g.region, copy, h->g.region_size);
	/* a chunk of 32 bytes, and the limit */
	assert_int_equal(
		isolated_verify(&h5_library_kind, h->g.region, h->g.region_size, 32, &e), 0);
	assert_int_equal(
		isolated_verify(&h5_library_kind, h->g.region, h->g.region_size, 31, &e),
		-EBADMSG);
	free(copy);
	source_close(s);
}

/* ---- a model by hand ---- */

static bool sound(const struct isolated_verify *v, const void *own)
{
	return v && !own;
}

static const struct isolated_kind own_kind = {.child.who = "the test", .sound = sound};

/* A root group with an attribute whose type is a compound: a number, and two of a base. */
static struct whole {
	struct isolated_model m;
	char text[16];
	struct ds_group root;
	struct ds_attr attr;
	uint64_t dims[1];
	struct dt_field f[64][3];
	struct dtype base;
	uint8_t data[24];
	struct ds_text strings[1];
} by_hand;

#define TEXT_ROOT 0 /* where by_hand.text has which */
#define TEXT_NAME 1

static struct whole *whole(void)
{
	struct whole *w = &by_hand;
	const struct dtype number = {.kind = DT_INT, .size = 4};

	memset(w, 0, sizeof(*w));
	memcpy(w->text, "\0name", 6);
	w->dims[0] = 2;
	w->f[0][0] = (struct dt_field){.name = w->text + TEXT_NAME, .type = number};
	w->f[0][1] = (struct dt_field){.name = w->text + TEXT_NAME,
				       .offset = 4,
				       .rank = 1,
				       .dims = w->dims,
				       .type = number};
	w->attr.name = w->text + TEXT_NAME;
	w->attr.type = (struct dtype){
		.kind = DT_COMPOUND, .size = 12, .n_fields = 2, .fields = w->f[0]};
	w->attr.rank = 1;
	w->attr.dims = w->dims;
	w->attr.n = 2;
	w->attr.data = w->data;
	w->root = (struct ds_group){
		.name = w->text, .parent = DS_NONE, .n_attrs = 1, .attrs = &w->attr};
	w->m.ds.format = w->text + TEXT_NAME;
	w->m.ds.n_groups = 1;
	w->m.ds.groups = &w->root;
	return w;
}

static int verified(const struct whole *w, struct err *e)
{
	return isolated_verify(&own_kind, &w->m, sizeof(*w), LIMIT, e);
}

static void refused(const struct whole *w)
{
	struct err e = ERR_INIT;

	assert_int_equal(verified(w, &e), -EBADMSG);
	assert_string_equal(e.msg,
			    "the test's process sent an invalid answer: the file is damaged");
}

static void test_compounds(void **state)
{
	struct whole *w = whole();
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(verified(w, &e), 0);
	w->attr.type.n_fields = 0;
	refused(w);
	w = whole();
	w->f[0][0].name = "not in the region";
	refused(w);
	w = whole();
	w->f[0][1].rank = DS_RANK_MAX + 1;
	refused(w);
	w = whole();
	w->f[0][1].offset = 5; /* a gap */
	refused(w);
	w = whole();
	w->attr.type.size = 13; /* and one at the end */
	refused(w);
	w = whole();
	w->f[0][1].type = (struct dtype){.kind = DT_VSTRING};
	refused(w);
	w = whole();
	w->f[0][1].type.kind = (enum dt_kind)77;
	refused(w);
	w = whole();
	w->dims[0] = UINT64_MAX; /* times four */
	refused(w);
	w = whole();
	w->attr.type = (struct dtype){.kind = DT_COMPLEX, .size = 12};
	refused(w);
}

static void test_too_many_lengths(void **state)
{
	struct whole *w = whole();
	const uint64_t huge[2] = {(uint64_t)1 << 33, (uint64_t)1 << 33};
	struct err e = ERR_INIT;

	(void)state;
	memcpy(w->data, huge, sizeof(huge)); /* two lengths, in the region */
	w->f[0][1].rank = 2;
	w->f[0][1].dims = (const uint64_t *)(const void *)w->data;
	refused(w);
	w->f[0][1].rank = 1;
	w->f[0][1].dims = w->dims;
	w->attr.rank = 2;
	w->attr.dims = (const uint64_t *)(const void *)w->data;
	refused(w);
	w->attr.rank = 1;
	w->attr.dims = w->dims;
	assert_int_equal(verified(w, &e), 0);
	w->attr.n = 1; /* of two */
	refused(w);
}

static void test_lists_and_texts(void **state)
{
	struct whole *w = whole();
	struct err e = ERR_INIT;

	(void)state;
	w->base = (struct dtype){.kind = DT_INT, .size = 2};
	w->attr.type = (struct dtype){.kind = DT_VLEN, .base = &w->base};
	w->attr.n = w->dims[0] = 1;
	w->attr.data = NULL;
	w->attr.strings = w->strings;
	w->strings[0] = (struct ds_text){.s = w->text, .len = 4};
	assert_int_equal(verified(w, &e), 0);
	w->strings[0].len = sizeof(*w);
	refused(w);
	w->strings[0].len = 4;
	w->base = (struct dtype){.kind = DT_VSTRING}; /* a list of strings */
	refused(w);
	w->base = (struct dtype){.kind = DT_VLEN, .base = &w->base}; /* of lists of lists ... */
	refused(w);
	w->attr.type = (struct dtype){.kind = DT_STRING, .size = 4};
	assert_int_equal(verified(w, &e), 0);
	w->attr.strings = NULL;
	refused(w);
}

/* Every compound has two of the next, both of no length: 2^LEVELS to follow in a few kilobytes. */
#define LEVELS 60

static void test_shared_fields(void **state)
{
	struct whole *w = whole();
	const struct dtype number = {.kind = DT_INT, .size = 4};

	(void)state;
	w->dims[0] = 0;
	for (size_t i = 0; i <= LEVELS; i++) {
		const struct dtype next = {
			.kind = DT_COMPOUND, .size = 4, .n_fields = 3, .fields = w->f[i + 1]};

		w->f[i][0] = (struct dt_field){.name = w->text + TEXT_NAME, .type = number};
		for (size_t k = 1; k < 3; k++)
			w->f[i][k] = (struct dt_field){.name = w->text + TEXT_NAME,
						       .offset = 4,
						       .rank = 1,
						       .dims = w->dims,
						       .type = i < LEVELS ? next : number};
	}
	w->attr.type.size = 4;
	w->attr.type.n_fields = 3;
	w->attr.n = 0;
	refused(w);
}

/* mmap - the C library's; processes that build a model are refused the first `places->refuse`
 * fixed addresses, as when one of their own libraries lies there. */
static struct places {
	int refuse, n;
	void *at[8];
} * places;

void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	if (places && (flags & MAP_FIXED_NOREPLACE) && places->n < (int)ARRAY_LEN(places->at)) {
		places->at[places->n++] = at;
		if (places->n <= places->refuse) {
			errno = EEXIST;
			return MAP_FAILED;
		}
	}
	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, off);
}

/* A model is built at an address that is free in the server and in the process that builds it:
 * where that process has none of the first two, the third is tried, and no fourth. */
static void test_address_taken(void **state)
{
	const struct source_options opts = {.cut_bytes = 1 << 20,
					    .max_chunk_bytes = LIMIT,
					    .max_index_bytes = 1 << 20,
					    .max_meta_bytes = 1 << 20};
	const struct source_ops *formats[] = {&hdf5_source_ops};
	struct places *p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct err e = ERR_INIT;

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* the sanitizer's own memory lies at the addresses that the kernel offers */
#endif
	assert_ptr_not_equal(p, MAP_FAILED);
	places = p;
	assert_int_equal(hdf5_prepare(&e), 0); /* the forker's children are those that map */
	for (int taken = 0; taken <= 3; taken++) {
		struct source *s = NULL;
		int rc;

		*p = (struct places){.refuse = taken};
		rc = source_open(formats, 1, path, &opts, &s, &e);
		assert_int_equal(rc, taken < 3 ? 0 : -EADDRINUSE);
		assert_int_equal(p->n, taken < 3 ? taken + 1 : 3);
		for (int i = 1; i < p->n; i++)
			for (int k = 0; k < i; k++)
				assert_ptr_not_equal(p->at[i], p->at[k]);
		assert_true(taken == 3 || s->ds.n_arrays == 1);
		source_close(s);
	}
	places = NULL;
	(void)munmap(p, sizeof(*p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_change, make_file, remove_file),
		cmocka_unit_test(test_compounds),
		cmocka_unit_test(test_too_many_lengths),
		cmocka_unit_test(test_lists_and_texts),
		cmocka_unit_test(test_shared_fields),
		/* the last: it starts the forker */
		cmocka_unit_test_setup_teardown(test_address_taken, make_file, remove_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
