/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses written into structures that libhdf5 made: read back through our own reader, header
 * versions 1 and 2, in first and further blocks; and structures that are damaged. */
#include "tests/unit/hdf5view/virtual/nc_fake.h"

#include "hdf5view/format/hdf5_format.h"

static const uint64_t shape = 100, chunk = 10;

static int patch_one(uint8_t *image, size_t len, uint64_t header, uint64_t addr, struct err *e)
{
	size_t left = len;

	return nc_patch_address(image, len, &left, header, addr, e);
}

static void structure(struct ncf *f, bool latest, bool chunked, unsigned n_attrs)
{
	ncf_init(f, 1, &shape, &chunk);
	ncf_structure(f, latest, chunked, n_attrs);
	/* the library leaves an image with a wrong checksum: this mends it */
	assert_int_equal(nc_patch_eof(f->image.bytes, f->image.len, f->image.len, NULL), 0);
}

/* read_back - through the reader of real files, which checks checksums. */
static void read_back(const struct ncf *f, struct h5_file *ret_file, struct h5_layout *ret)
{
	auto_fd int fd = memfd_create("structure", MFD_CLOEXEC);
	struct blob blob = blob_of_fd(fd, UINT64_MAX);
	struct err e = ERR_INIT;

	assert_int_equal(write(fd, f->image.bytes, f->image.len), f->image.len);
	if (h5_file_read(&blob, ret_file, &e) < 0)
		fail_msg("%s", e.msg);
	ret_file->size = f->image.len;
	if (h5_layout_read(ret_file, f->image.vars[0].header, ret, &e) < 0)
		fail_msg("%s", e.msg);
}

static void test_address(void **state)
{
	struct err e = ERR_INIT;
	struct h5_file file;
	struct h5_layout l;

	(void)state;
	for (unsigned k = 0; k < 4; k++)
		for (unsigned n = 0; n < 60; n += 5) {
			struct ncf f;

			structure(&f, k & 1, k & 2, n);
			read_back(&f, &file, &l);
			assert_int_equal(l.addr, UINT64_MAX);
			if (patch_one(f.image.bytes, f.image.len, f.image.vars[0].header,
				      0x123456789abcdeu, &e) < 0)
				fail_msg("%s", e.msg);
			read_back(&f, &file, &l);
			assert_int_equal(l.cls,
					 k & 2 ? HDF5_LAYOUT_CHUNKED : HDF5_LAYOUT_CONTIGUOUS);
			assert_int_equal(l.addr, 0x123456789abcdeu);
			assert_int_equal(k & 2 ? l.chunk[0] : l.size, k & 2 ? 10 : 400);
			ncf_release(&f);
		}
}

static void test_eof(void **state)
{
	struct err e = ERR_INIT;
	struct h5_file file;
	struct h5_layout l;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct ncf f;

		structure(&f, k, true, 0);
		assert_int_equal(f.image.bytes[8], k ? 2 : 0);
		if (nc_patch_eof(f.image.bytes, f.image.len, 0x123456789au, &e) < 0)
			fail_msg("%s", e.msg);
		read_back(&f, &file, &l);
		assert_int_equal(file.eof, 0x123456789au);
		ncf_release(&f);
	}
}

static void test_superblocks(void **state)
{
	struct ncf f;

	(void)state;
	structure(&f, false, true, 0);
	assert_int_equal(nc_patch_eof(f.image.bytes, 47, 1, NULL), -EBADMSG);
	f.image.bytes[13] = 4;
	assert_int_equal(nc_patch_eof(f.image.bytes, f.image.len, 1, NULL), -EBADMSG);
	f.image.bytes[13] = 8;
	f.image.bytes[8] = 1; /* other numbers of children */
	assert_int_equal(nc_patch_eof(f.image.bytes, f.image.len, 1, NULL), -EBADMSG);
	f.image.bytes[0] = 0;
	assert_int_equal(nc_patch_eof(f.image.bytes, f.image.len, 1, NULL), -EBADMSG);
	ncf_release(&f);
}

/* Nothing is written, or read, outside of the structure, whatever a header says. */
static void test_damage(void **state)
{
	static const uint8_t values[] = {0, 1, 0x10, 0x7f, 0xff};
	struct err e = ERR_INIT;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		uint64_t header;
		uint8_t *copy;
		struct ncf f;

		structure(&f, k, true, 20);
		header = f.image.vars[0].header;
		for (size_t i = 0; i < 700 && header + i < f.image.len; i++)
			for (size_t v = 0; v < ARRAY_LEN(values); v++) {
				int rc;

				copy = malloc(f.image.len); /* its ends are watched */
				assert_non_null(copy);
				memcpy(copy, f.image.bytes, f.image.len);
				copy[header + i] = values[v];
				rc = patch_one(copy, f.image.len, header, 7, &e);
				assert_true(rc == 0 || rc == -EBADMSG);
				free(copy);
			}
		for (size_t len = 0; len < f.image.len; len += len < 1000 ? 1 : 100) {
			copy = malloc(len ? len : 1);
			assert_non_null(copy);
			memcpy(copy, f.image.bytes, len);
			(void)!patch_one(copy, len, header, 7, &e);
			(void)!nc_patch_eof(copy, len, 7, &e);
			free(copy);
		}
		assert_int_equal(patch_one(f.image.bytes, f.image.len, UINT64_MAX, 7, &e),
				 -EBADMSG);
		ncf_release(&f);
	}
}

/* A header whose continuation is itself. */
static void test_circle(void **state)
{
	/* version 1, one message of 16 bytes: a continuation of 24 bytes at 16 */
	uint8_t image[64] = {
		[0] = 1, [2] = 1, [8] = 24, [16] = 0x10, [18] = 16, [24] = 16, [32] = 24};
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(patch_one(image, sizeof(image), 0, 7, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "shares its bytes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address),     cmocka_unit_test(test_eof),
		cmocka_unit_test(test_superblocks), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_circle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
