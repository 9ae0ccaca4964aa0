/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote files: a source of a blob gives the same results as one of the same file behind a
 * descriptor; failures, changes and hangs below are errors and never wrong models or bytes; and
 * few requests.
 *
 *   test_remote FILE ...   counts requests for the given files */
#include "hdf5view/hdf5view.h"
#include "hdf5view/isolate/blob_proxy.h"
#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "tests/unit/blob_fake.h"
#include "tests/unit/source_same.h"

static const struct source_ops *const formats[] = {&hdf5_source_ops, &cdf_source_ops,
						   &hdf4_source_ops};

static const struct source_options options = {.cut_bytes = 1 << 20,
					      .max_chunk_bytes = 1 << 30,
					      .max_index_bytes = 1 << 28,
					      .max_meta_bytes = 1 << 26,
					      .open_timeout_ms = 30000};

static char path[64];

static struct blob_fake *open_path(void)
{
	struct blob_fake *f = fake_open(path);

	if (!f)
		abort();
	return f;
}

static void put_set(hid_t file, const char *name, hsize_t n, hsize_t chunk, bool deflate)
{
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &n, NULL), d;
	int32_t *data = alloc_array(n, sizeof(*data));

	for (hsize_t i = 0; i < n; i++)
		data[i] = (int32_t)(i * i);
	assert_true(!chunk || H5Pset_chunk(dcpl, 1, &chunk) >= 0);
	assert_true(!deflate || H5Pset_deflate(dcpl, 1) >= 0);
	d = H5Dcreate2(file, name, H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(d >= 0 &&
		    H5Dwrite(d, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	assert_true(H5Dclose(d) >= 0 && H5Sclose(space) >= 0 && H5Pclose(dcpl) >= 0);
	free(data);
}

/* put_texts - only libhdf5 can read it. */
static void put_texts(hid_t file)
{
	static const char *const texts[] = {"one", "", "three", "vier", "five"};
	hsize_t n = ARRAY_LEN(texts), chunk = 2;
	hid_t t = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &n, NULL);
	hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), d;

	assert_true(H5Tset_size(t, H5T_VARIABLE) >= 0 && H5Pset_chunk(dcpl, 1, &chunk) >= 0);
	d = H5Dcreate2(file, "texts", t, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(d >= 0 && H5Dwrite(d, t, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) >= 0);
	assert_true(H5Dclose(d) >= 0 && H5Sclose(space) >= 0 && H5Pclose(dcpl) >= 0 &&
		    H5Tclose(t) >= 0);
}

static int make_file(void **state)
{
	hid_t file;
	int fd;

	(void)state;
	memcpy(path, "/tmp/nczarrfs-far-XXXXXX", 25);
	fd = mkstemp(path);
	assert_true(fd >= 0 && close(fd) == 0);
	h5_enter();
	file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
	put_set(file, "pieces", 3000000, 0, false);
	put_set(file, "chunks", 1000000, 5000, true);
	put_set(file, "later", 100, 7, true);
	put_texts(file);
	assert_true(H5Lcreate_external("/etc/passwd", "/", file, "out", H5P_DEFAULT,
				       H5P_DEFAULT) >= 0);
	assert_true(H5Fclose(file) >= 0);
	h5_leave();
	return 0;
}

static int drop_file(void **state)
{
	(void)state;
	return unlink(path);
}

static struct source *open_far(struct blob_fake *f, const char *name)
{
	const struct source_at at = fake_at(f, name);
	struct source *s = NULL;
	struct err e = ERR_INIT;

	if (source_open_at(formats, ARRAY_LEN(formats), &at, &options, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static void test_same(void **state)
{
	struct blob_fake *f = open_path();
	struct source *a = NULL, *b = open_far(f, "http://host/f.nc");
	struct err e = ERR_INIT;

	(void)state;
	if (source_open(formats, ARRAY_LEN(formats), path, &options, &a, &e) < 0)
		fail_msg("%s", e.msg);
	same_sources(a, b);
	assert_int_equal(source_fd(b, 0), -1);
	assert_int_equal(source_check(b, &e), 0);
	assert_int_equal(source_poll(b, &e), 0);
	source_close(a);
	source_close(b);
	assert_int_equal(f->closed, 1);
	fake_free(f);
}

/* A link to another file is a note, as everywhere without external_root. */
static void test_no_other_file(void **state)
{
	struct blob_fake *f = open_path();
	struct source *s = open_far(f, "http://host/f.nc");
	bool told = false;

	(void)state;
	for (uint32_t i = 0; i < s->ds.n_notes; i++)
		told |= strstr(s->ds.notes[i], "/etc/passwd") &&
			strstr(s->ds.notes[i], "a remote file cannot refer to other files");
	assert_true(told);
	source_close(s);
	fake_free(f);
}

/* Whichever read fails while it is opened: it is not open, and the reason is the network's. */
static void test_open_fails(void **state)
{
	int reads;

	(void)state;
	for (int k = 1;; k++) {
		struct blob_fake *f = open_path();
		const struct source_at at = fake_at(f, "http://host/f.nc");
		struct source *s = NULL;
		struct err e = ERR_INIT;
		int rc;

		f->fail_at = k;
		rc = source_open_at(formats, ARRAY_LEN(formats), &at, &options, &s, &e);
		reads = (int)f->reads;
		if (rc == 0) {
			source_close(s);
			fake_free(f);
			break;
		}
		assert_int_equal(f->closed, 0);
		if (k > 1) /* the bid: its format is unknown */
			assert_non_null(strstr(e.msg, "the fake network failed"));
		fake_free(f);
	}
	assert_true(reads > 3);
}

static uint32_t array_of(const struct source *s, const char *name)
{
	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		if (strcmp(s->ds.arrays[i].name, name) == 0)
			return i;
	fail_msg("no %s", name);
	return 0;
}

/* Elements that a library reads: an error while the network is down, right when it is back. */
static void test_recovers(void **state)
{
	struct blob_fake *f = open_path();
	struct source *s = open_far(f, "http://host/f.nc");
	uint32_t texts = array_of(s, "texts"), chunks = array_of(s, "chunks");
	struct chunk_ref ref;
	struct err e = ERR_INIT;
	uint8_t some[100];
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	f->fail_at = 1;
	assert_int_equal(source_read_vlen(s, texts, 0, &b, &e), -EIO);
	assert_non_null(strstr(e.msg, "the fake network failed"));
	assert_int_equal(source_locate(s, chunks, 3, &ref, &e), -EIO);
	f->fail_rc = -EBADMSG; /* of the server, and not the file's */
	assert_int_equal(source_locate(s, chunks, 3, &ref, &e), -EIO);
	assert_int_equal(source_read_vlen(s, texts, 0, &b, &e), -EIO);
	f->fail_rc = -ETIMEDOUT; /* a child may not say that: it is the server's word */
	assert_int_equal(source_read_vlen(s, texts, 0, &b, &e), -ETIMEDOUT);
	assert_non_null(strstr(e.msg, "the fake network failed"));
	f->fail_at = 0;
	assert_int_equal(source_read_vlen(s, texts, 0, &b, &e), 0);
	assert_int_equal(b.len, 4 + 3 + 4);
	assert_int_equal(source_locate(s, chunks, 3, &ref, &e), 0);
	assert_int_equal(source_read_stored(s, chunks, 3, &ref, 1, some, sizeof(some), &e), 0);

	f->changed = true;
	b.len = 0;
	assert_int_equal(source_read_stored(s, chunks, 3, &ref, 1, some, sizeof(some), &e),
			 -ESTALE);
	assert_int_equal(source_poll(s, &e), -ESTALE);
	buf_release(&b);
	source_close(s);
	fake_free(f);
}

/* A hang below blocks nothing: closing and cancelling end it. */
static void *told_to_stop(void *arg)
{
	struct cancel *_Atomic *p = arg;
	const struct timespec some = {0, 1000000};

	while (!atomic_load(p))
		(void)nanosleep(&some, NULL);
	cancel_request(atomic_load(p));
	return NULL;
}

static void test_hangs(void **state)
{
	struct blob_fake *f = open_path();
	struct source *s = open_far(f, "http://host/f.nc");
	struct cancel *_Atomic told = NULL;
	struct cancel stop;
	struct err e = ERR_INIT;
	pthread_t t;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	f->hang = true;
	assert_int_equal(pthread_create(&t, NULL, told_to_stop, &told), 0);
	cancel_begin(&stop);
	told = &stop;
	assert_int_equal(source_read_vlen(s, array_of(s, "texts"), 0, &b, &e), -EINTR);
	assert_int_equal(pthread_join(t, NULL), 0);
	cancel_end(&stop);
	f->hang = false;
	assert_int_equal(source_read_vlen(s, array_of(s, "texts"), 0, &b, &e), 0);
	f->hang = true; /* the worker's thread may be in it */
	source_close(s);
	buf_release(&b);
	fake_free(f);
}

/* A child that was taken over can have its file, and nothing else; it costs the server nothing. */
static void test_hostile(void **state)
{
	static const struct blob_proxy_request bad[] = {
		{1, 0, 0, 0},
		{1, 0, UINT64_MAX - 1, 10},
		{1, 0, 0, BLOB_PROXY_READ_MAX + 1},
		{1, 0, UINT64_MAX, UINT64_MAX},
		{2, BLOB_PROXY_PARTS_MAX + 1, 0, 0},
		{2, 0, 0, 0},
		{77, 1, 0, 1},
	};
	struct blob_fake *f = open_path();
	uint64_t part[4] = {f->base.size - 1, UINT64_MAX, UINT64_MAX, 3};
	struct blob_proxy_request want = {2, 2, 0, 0}, read = {1, 0, 0, 8};
	struct child_answer a;
	uint8_t got[8];

	(void)state;
	for (size_t i = 0; i <= ARRAY_LEN(bad); i++) {
		struct blob_proxy_server *far = NULL;
		struct err e = ERR_INIT;
		int pair[2];

		assert_int_equal(blob_proxy_pair(pair, &e), 0);
		assert_int_equal(blob_proxy_serve(&f->base, pair[0], i % 2, &far, &e), 0);
		if (i < ARRAY_LEN(bad)) {
			assert_true(child_send(pair[1], &bad[i], sizeof(bad[i]), 0));
			assert_int_equal(child_take(pair[1], &a, 1, INT64_MAX), CHILD_GONE);
		} else { /* prefetched ranges are clipped to the file */
			assert_true(child_send(pair[1], &want, sizeof(want), 0));
			assert_true(child_send(pair[1], part, sizeof(part), 0));
			assert_true(child_send(pair[1], &read, sizeof(read), 0));
			assert_int_equal(child_take(pair[1], &a, sizeof(a), INT64_MAX),
					 CHILD_TAKEN);
			assert_int_equal(a.rc, 0);
			assert_int_equal(child_take(pair[1], got, 8, INT64_MAX), CHILD_TAKEN);
			assert_memory_equal(got, "\x89HDF\r\n\x1a\n", 8);
		}
		blob_proxy_end(far);
		(void)close(pair[1]);
	}
	fake_free(f);
}

/* ---- classic netCDF ---- */

static void be32(struct buf *b, uint32_t v)
{
	for (int i = 24; i >= 0; i -= 8)
		buf_putc(b, (char)(v >> i & 0xff));
}

static void classic_var(struct buf *b, char name, const char *dims, uint32_t type,
			uint32_t size, uint32_t begin)
{
	be32(b, 1);
	buf_putc(b, name);
	buf_put(b, "\0\0\0", 3);
	be32(b, (uint32_t)strlen(dims));
	for (; *dims; dims++)
		be32(b, (uint32_t)(*dims - '0'));
	be32(b, 0);
	be32(b, 0);
	be32(b, type);
	be32(b, size);
	be32(b, begin);
}

/* classic - records of 8 bytes with `gap` bytes between them. */
static void classic(struct buf *b, uint32_t records, uint32_t gap)
{
	uint32_t begin = 0;

	for (int round = 0; round < 2; round++) { /* the first finds how long the header is */
		buf_clear(b);
		buf_put(b, "CDF\1", 4);
		be32(b, records);
		be32(b, 10);
		be32(b, 2);
		be32(b, 1);
		buf_put(b, "t\0\0\0", 4);
		be32(b, 0);
		be32(b, 1);
		buf_put(b, "x\0\0\0", 4);
		be32(b, gap / 4);
		be32(b, 0);
		be32(b, 0);
		be32(b, 11);
		be32(b, 2);
		classic_var(b, 'a', "0", 6, 8, begin);
		classic_var(b, 'b', "01", 5, gap, begin + 8);
		begin = (uint32_t)b->len;
	}
	for (uint32_t i = 0; i < records; i++)
		for (uint32_t k = 0; k < 8 + gap; k++)
			buf_putc(b, (char)(i * 31 + k * 7));
}

static void test_classic(void **state)
{
	static const uint32_t gaps[] = {400, 20000, 100000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(gaps); i++) {
		char name[] = "/tmp/nczarrfs-far-XXXXXX";
		int fd = mkstemp(name);
		struct source *a = NULL, *b;
		struct err e = ERR_INIT;
		struct blob_fake *f;
		uint64_t first = 0;
		struct buf file;
		uint8_t *out;

		buf_init(&file, (size_t)64 << 20);
		classic(&file, 130, gaps[i]);
		assert_true(buf_ok(&file) && fd >= 0);
		assert_int_equal(write(fd, file.data, file.len), file.len);
		(void)close(fd);
		f = fake_open(name);
		assert_non_null(f);
		b = open_far(f, "http://host/f.nc");
		assert_true(b->remote);
		assert_true(f->requests <= 1);
		/* a chunk from many records: they are not read one after the other */
		out = alloc_array((size_t)b->ds.arrays[0].chunk_bytes, 1);
		source_want(b, 0, &first, 1);
		if (source_read_chunk(b, 0, 0, out, (size_t)b->ds.arrays[0].chunk_bytes, &e) <
		    0)
			fail_msg("%s", e.msg);
		assert_true(f->requests <= 1);
		free(out);
		if (source_open(formats, ARRAY_LEN(formats), name, &options, &a, &e) < 0)
			fail_msg("%s", e.msg);
		same_sources(a, b);
		f->changed = true;
		assert_int_equal(source_poll(b, &e), -ESTALE);
		source_close(a);
		source_close(b);
		assert_int_equal(f->closed, 1);
		fake_free(f);
		buf_release(&file);
		assert_int_equal(unlink(name), 0);
	}
}

/* ---- given files ---- */

static unsigned n_files;

static void count(struct blob_fake *f, struct source *s, const char *name)
{
	unsigned waited = f->requests, early = f->wanted, found = 0;
	struct chunk_ref ref;

	for (uint32_t i = 0; i < s->ds.n_arrays; i++)
		found +=
			s->ds.arrays[i].n_chunks > 0 && source_locate(s, i, 0, &ref, NULL) == 0;
	print_message("%4u requests waited for, %3u early; %4u and %3u more for %u indexes; "
		      "%llu of %llu bytes: %s\n",
		      waited, early, f->requests - waited, f->wanted - early, found,
		      (unsigned long long)f->bytes, (unsigned long long)f->base.size, name);
}

static int one_file(const char *name, const struct stat *st, int kind, struct FTW *w)
{
	struct source *a = NULL, *b = NULL;
	struct err e = ERR_INIT, e2 = ERR_INIT;
	struct source_at at;
	struct blob_fake *f;
	int rc, rc2;

	(void)w;
	if (kind != FTW_F || st->st_size == 0)
		return 0;
	f = fake_open(name);
	assert_non_null(f);
	at = fake_at(f, name);
	rc = source_open(formats, ARRAY_LEN(formats), name, &options, &a, &e);
	rc2 = source_open_at(formats, ARRAY_LEN(formats), &at, &options, &b, &e2);
	/* libhdf5's results for damaged files depend on the contents of memory */
	if (rc != rc2 && strstr(name, "/bad/"))
		print_message("%s: %s / %s\n", name, e.msg, e2.msg);
	else if (rc != rc2)
		fail_msg("%s: %s / %s", name, e.msg, e2.msg);
	if (rc == 0 && rc2 == 0) {
		n_files++;
		if (getenv("NCZARRFS_FAR_COUNT"))
			count(f, b, name);
		else
			same_sources(a, b);
	}
	source_close(a);
	source_close(b);
	fake_free(f);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),     cmocka_unit_test(test_no_other_file),
		cmocka_unit_test(test_recovers), cmocka_unit_test(test_hangs),
		cmocka_unit_test(test_hostile),  cmocka_unit_test(test_open_fails),
		cmocka_unit_test(test_classic),
	};
	struct err e = ERR_INIT;
	int failed;

	if (argc > 1) { /* files, or directories with files */
		if (hdf5_prepare(&e) < 0)
			return 1;
		for (int i = 1; i < argc; i++)
			if (nftw(argv[i], one_file, 20, FTW_PHYS) != 0)
				return 1;
		print_message("%u files are the same\n", n_files);
		return 0;
	}
	/* by children of this process, and of the one that forks */
	failed = cmocka_run_group_tests(tests, make_file, drop_file);
	if (hdf5_prepare(&e) < 0)
		return 1;
	return failed + cmocka_run_group_tests(tests, make_file, drop_file);
}
