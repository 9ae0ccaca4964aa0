/* SPDX-License-Identifier: BSD-3-Clause */
/* Offsets and limits of a classic file, and the bytes of its header, which our parser reads
 * back. */
#include "hdf5view/classic/classic_int.h"
#include "hdf5view/virtual_classic/virtual_classic_int.h"
#include "translate/contract/blob.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define TEXT(s)                                                                                \
	{                                                                                      \
		(s), sizeof(s) - 1                                                             \
	}

enum { T, X, Y }; /* dimensions: records, 3, 5 */

static const uint32_t ids[] = {T, X, Y};

struct fixture {
	struct cdf_dim dims[3];
	struct cdf_var vars[8];
	struct cdf_header h;
	struct cdf_layout l;
	struct buf text;
	struct err e;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->dims[T] = (struct cdf_dim){TEXT("t"), 0};
	f->dims[X] = (struct cdf_dim){TEXT("x"), 3};
	f->dims[Y] = (struct cdf_dim){TEXT("y"), 5};
	f->h = (struct cdf_header){.numrecs = 2, .n_dims = 3, .dims = f->dims, .vars = f->vars};
	buf_init(&f->text, 1 << 16);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	buf_release(&f->text);
	free(f);
	return 0;
}

/* add - a variable with n of the dimensions from `first` on. */
static struct cdf_var *add(struct fixture *f, uint32_t type, uint32_t first, uint32_t n)
{
	struct cdf_var *v = &f->vars[f->h.n_vars++];

	*v = (struct cdf_var){.name = TEXT("v"), .type = type, .rank = n, .dims = ids + first};
	return v;
}

static int make(struct fixture *f, unsigned version)
{
	return cdf_layout_make(&f->h, version, &f->l, &f->text, &f->e);
}

static void made(struct fixture *f, unsigned version)
{
	if (make(f, version) < 0)
		fail_msg("%s", f->e.msg);
	assert_int_equal(f->l.header, f->text.len);
	assert_memory_equal(f->text.data, "CDF", 3);
	assert_int_equal(f->text.data[3], version);
}

static void refused(struct fixture *f, unsigned version, const char *word)
{
	assert_int_equal(make(f, version), -ERANGE);
	if (!strstr(f->e.msg, word))
		fail_msg("'%s' is not in '%s'", word, f->e.msg);
}

static void test_empty(void **state)
{
	struct fixture *f = *state;

	f->h.n_dims = 0;
	f->h.numrecs = 0;
	made(f, 1);
	assert_int_equal(f->l.size, 32);
	made(f, 5);
	assert_int_equal(f->l.size, 4 + 8 + 3 * 12);
}

/* A slab of 3 bytes is padded to 4, a scalar of 2 as well; records follow what has none. */
static void test_offsets(void **state)
{
	struct fixture *f = *state;
	const struct cdf_var *rec = add(f, CDF_BYTE, T, 2), *fixed = add(f, CDF_CHAR, X, 1),
			     *scalar = add(f, CDF_SHORT, 0, 0),
			     *more = add(f, CDF_DOUBLE, T, 1);

	made(f, 2);
	assert_int_equal(fixed->begin, f->l.header);
	assert_int_equal(scalar->begin, f->l.header + 4);
	assert_int_equal(f->l.records, f->l.header + 8);
	assert_int_equal(rec->begin, f->l.records);
	assert_int_equal(more->begin, f->l.records + 4);
	assert_int_equal(f->l.recsize, 12);
	assert_int_equal(f->l.size, f->l.records + 24);
}

/* The only record variable has no padding between its records. */
static void test_one_record_variable(void **state)
{
	struct fixture *f = *state;

	add(f, CDF_BYTE, T, 2);
	made(f, 1);
	assert_int_equal(f->l.recsize, 3);
	assert_int_equal(f->l.size, f->l.records + 6);
	f->h.numrecs = 0;
	made(f, 1);
	assert_int_equal(f->l.size, f->l.records);
}

/* netCDF-C's rules: only the last variable may be larger than the limit of CDF-1 and CDF-2, and
 * none may begin beyond 2 GiB in CDF-1. */
static void test_limits(void **state)
{
	struct fixture *f = *state;

	f->dims[X].len = INT32_MAX - 3;
	add(f, CDF_BYTE, X, 1);
	made(f, 1);
	add(f, CDF_BYTE, Y, 1); /* it begins at the end of the first one */
	refused(f, 1, "would begin");
	made(f, 2);
	f->h.n_vars = 0;
	add(f, CDF_SHORT, X, 1);
	made(f, 1); /* the last one */
	add(f, CDF_SHORT, Y, 1);
	refused(f, 1, "would begin");
	made(f, 2); /* 4 GiB */
	f->h.n_vars = 0;
	add(f, CDF_INT, X, 1);
	made(f, 2);
	add(f, CDF_INT, T, 1);
	refused(f, 2, "before records");
	made(f, 5);
}

static void test_lengths(void **state)
{
	struct fixture *f = *state;

	f->dims[Y].len = INT32_MAX;
	refused(f, 1, "dimension 'y'");
	refused(f, 2, "dimension 'y'");
	made(f, 5);
	f->h.numrecs = (uint64_t)1 << 40;
	f->dims[Y].len = 5;
	refused(f, 2, "records");
	made(f, 5);
}

static void test_overflow(void **state)
{
	struct fixture *f = *state;

	f->dims[X].len = (uint64_t)1 << 40;
	f->dims[Y].len = (uint64_t)1 << 40;
	add(f, CDF_BYTE, X, 2);
	refused(f, 5, "too large");
	f->h.n_vars = 0;
	f->dims[Y].len = (uint64_t)1 << 21; /* 2^61 bytes each */
	for (int i = 0; i < 3; i++)
		add(f, CDF_BYTE, X, 2);
	made(f, 5);
	add(f, CDF_BYTE, X, 2);
	refused(f, 5, "ends beyond");
	f->h.n_vars = 0;
	f->h.numrecs = (uint64_t)1 << 61;
	add(f, CDF_DOUBLE, T, 1);
	refused(f, 5, "records would end");
}

static void test_full(void **state)
{
	struct fixture *f = *state;

	f->text.max = 50;
	refused(f, 1, "exceeds 50 bytes");
}

/* parsed - the header as the source reads it. */
static void parsed(struct fixture *f, struct arena *a, struct cdf_header *ret)
{
	const int fd = memfd_create("header", MFD_CLOEXEC);
	struct blob b;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, f->text.data, f->text.len), (ssize_t)f->text.len);
	assert_int_equal(ftruncate(fd, (off_t)f->l.size), 0);
	b = blob_of_fd(fd, f->l.size);
	if (cdf_header_read(&b, a, ret, &f->e) < 0)
		fail_msg("%s", f->e.msg);
	assert_int_equal(close(fd), 0);
}

static void same_attrs(const struct cdf_attr *a, const struct cdf_attr *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		assert_string_equal(a[i].name.s, b[i].name.s);
		assert_int_equal(a[i].type, b[i].type);
		assert_int_equal(a[i].n, b[i].n);
		assert_memory_equal(a[i].data, b[i].data, a[i].n * cdf_type_bytes(a[i].type));
	}
}

static void test_round_trip(void **state)
{
	static const unsigned versions[] = {1, 2, 5};
	struct fixture *f = *state;
	uint8_t data[] = "abcdefgh";
	struct cdf_attr attrs[] = {{TEXT("text"), CDF_CHAR, 5, data},
				   {TEXT("none"), CDF_CHAR, 0, data},
				   {TEXT("two"), CDF_SHORT, 2, data},
				   {TEXT("double"), CDF_DOUBLE, 1, data}};

	f->h.attrs = attrs;
	f->h.n_attrs = ARRAY_LEN(attrs);
	add(f, CDF_INT, X, 2)->attrs = attrs + 1;
	f->vars[0].n_attrs = 2;
	add(f, CDF_BYTE, T, 3);
	add(f, CDF_FLOAT, T, 1);
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		struct cdf_header got;
		struct arena a;

		arena_init(&a, 1 << 16);
		made(f, versions[i]);
		parsed(f, &a, &got);
		assert_int_equal(got.version, versions[i]);
		assert_int_equal(got.numrecs, 2);
		assert_int_equal(got.end, f->l.header);
		assert_int_equal(got.n_dims, 3);
		assert_int_equal(got.dims[Y].len, 5);
		assert_int_equal(got.n_attrs, ARRAY_LEN(attrs));
		same_attrs(got.attrs, attrs, got.n_attrs);
		assert_int_equal(got.n_vars, 3);
		assert_int_equal(got.vars[0].n_attrs, 2);
		same_attrs(got.vars[0].attrs, attrs + 1, 2);
		for (uint32_t k = 0; k < 3; k++) {
			assert_int_equal(got.vars[k].begin, f->vars[k].begin);
			assert_int_equal(got.vars[k].type, f->vars[k].type);
			assert_int_equal(got.vars[k].rank, f->vars[k].rank);
		}
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_offsets, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_record_variable, setup, teardown),
		cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_overflow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_round_trip, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
