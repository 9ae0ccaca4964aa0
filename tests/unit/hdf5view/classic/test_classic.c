/* SPDX-License-Identifier: BSD-3-Clause */
/* The classic netCDF source on files that the test makes byte by byte. */
#include "hdf5view/hdf5view.h"
#include "hdf5view/classic/classic_int.h"

#include "base/core/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { DIMS = 10, VARS = 11, ATTRS = 12 };

struct fixture {
	unsigned version;
	struct buf b; /* the file */
	char path[64];
	struct source_options opts;
	struct source *s;
	struct err e;
	struct chunk_ref ref;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	assert_non_null(f);
	memcpy(f->path, "/dev/shm/nczarrfs-XXXXXX", 25); /* thousands of files */
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	buf_init(&f->b, 1 << 20);
	f->opts = (struct source_options){.cut_bytes = 1 << 12,
					  .max_chunk_bytes = 1 << 20,
					  .max_index_bytes = 1 << 20,
					  .max_meta_bytes = 1 << 20};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	source_close(f->s);
	assert_int_equal(unlink(f->path), 0);
	buf_release(&f->b);
	free(f);
	return 0;
}

/* ---- the grammar, written ---- */

static void put(struct fixture *f, uint64_t v, unsigned bytes)
{
	while (bytes-- > 0)
		buf_putc(&f->b, (char)(v >> 8 * bytes));
}

static void count(struct fixture *f, uint64_t v)
{
	put(f, v, f->version == 5 ? 8 : 4);
}

static void list(struct fixture *f, unsigned tag, uint64_t n)
{
	put(f, tag, 4);
	count(f, n);
}

static void bytes(struct fixture *f, const char *s, size_t n)
{
	buf_put(&f->b, s, n);
	put(f, 0, (unsigned)(-n & 3));
}

static void name(struct fixture *f, const char *s)
{
	count(f, strlen(s));
	bytes(f, s, strlen(s));
}

static void start(struct fixture *f, unsigned version, uint64_t numrecs)
{
	f->version = version;
	buf_clear(&f->b);
	bytes(f, "CDF", 3);
	f->b.data[3] = (uint8_t)version;
	count(f, numrecs);
}

static void dim(struct fixture *f, const char *s, uint64_t len)
{
	name(f, s);
	count(f, len);
}

/* var - up to its attributes. */
static void var(struct fixture *f, const char *s, unsigned rank, uint64_t d0, uint64_t d1)
{
	name(f, s);
	count(f, rank);
	if (rank > 0)
		count(f, d0);
	if (rank > 1)
		count(f, d1);
}

static void place(struct fixture *f, unsigned type, uint64_t begin)
{
	put(f, type, 4);
	count(f, 0xdeadbeef); /* vsize, which is ignored */
	put(f, begin, f->version == 1 ? 4 : 8);
}

/* save - the file, filled up to `size` bytes of which each is the lower part of its offset. Its
 * time is long ago: a file that has just changed is waited for (stat_settled). */
static void save(struct fixture *f, size_t size)
{
	static const struct timespec old[] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
	FILE *out = fopen(f->path, "wb");

	assert_non_null(out);
	while (f->b.len < size)
		buf_putc(&f->b, (char)f->b.len);
	assert_true(buf_ok(&f->b));
	assert_int_equal(fwrite(f->b.data, 1, f->b.len, out), f->b.len);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(utimensat(AT_FDCWD, f->path, old, 0), 0);
}

static int try_open(struct fixture *f)
{
	const struct source_ops *formats[] = {&cdf_source_ops};

	source_close(f->s);
	f->s = NULL;
	f->e = (struct err)ERR_INIT;
	return source_open(formats, 1, f->path, &f->opts, &f->s, &f->e);
}

static const struct dataset *must_open(struct fixture *f)
{
	if (try_open(f) < 0)
		fail_msg("%s", f->e.msg);
	return &f->s->ds;
}

static void refused(struct fixture *f, int code, const char *word)
{
	assert_int_equal(try_open(f), code);
	if (!strstr(f->e.msg, word))
		fail_msg("'%s' is not in '%s'", word, f->e.msg);
}

static const struct chunk_ref *ref(struct fixture *f, uint32_t array, uint64_t linear)
{
	if (source_locate(f->s, array, linear, &f->ref, &f->e) < 0)
		fail_msg("%s", f->e.msg);
	return &f->ref;
}

static void at(struct fixture *f, uint32_t array, uint64_t linear, uint64_t off, uint64_t len,
	       uint64_t pad)
{
	const struct chunk_ref *r = ref(f, array, linear);

	assert_int_equal(r->where, CHUNK_RANGE);
	assert_int_equal(r->off, off);
	assert_int_equal(r->len, len);
	assert_int_equal(r->pad, pad);
}

/* ---- tests ---- */

static void test_empty(void **state)
{
	static const unsigned versions[] = {1, 2, 5};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		start(f, versions[i], 0);
		list(f, 0, 0);
		list(f, ATTRS, 0); /* a tag without anything is as good as none */
		list(f, 0, 0);
		save(f, 0);
		assert_int_equal(f->b.len, versions[i] == 5 ? 48 : 32);
		must_open(f);
		assert_int_equal(f->s->ds.n_arrays + f->s->ds.n_dims, 0);
		assert_int_equal(f->s->ds.n_groups, 1);
	}
	assert_non_null(strstr(f->s->ds.format, "CDF-5"));
}

/* sample - a scalar, fixed and record variables with attributes. Returns bytes of the header. */
static size_t sample(struct fixture *f, unsigned version, uint64_t numrecs)
{
	start(f, version, numrecs);
	list(f, DIMS, 2);
	dim(f, "t", 0);
	dim(f, "x", 3);
	list(f, ATTRS, 1);
	name(f, "title");
	put(f, CDF_CHAR, 4);
	count(f, 5);
	bytes(f, "hello", 5);
	list(f, VARS, 4);
	var(f, "s", 0, 0, 0);
	list(f, ATTRS, 1);
	name(f, "_FillValue");
	put(f, CDF_SHORT, 4);
	count(f, 1);
	bytes(f, "\x01\x02", 2);
	place(f, CDF_SHORT, 600);
	var(f, "r", 2, 0, 1);
	list(f, 0, 0);
	place(f, CDF_SHORT, 620);
	var(f, "f", 2, 1, 1);
	list(f, 0, 0);
	place(f, CDF_INT, 640);
	var(f, "q", 1, 0, 0);
	list(f, 0, 0);
	place(f, CDF_BYTE, 700);
	return f->b.len;
}

static void test_model(void **state)
{
	static const unsigned versions[] = {1, 2, 5};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		const struct dataset *ds;
		const struct ds_array *a;

		sample(f, versions[i], 4);
		save(f, 800);
		ds = must_open(f);
		assert_int_equal(ds->n_arrays, 4);
		assert_int_equal(ds->n_dims, 2);
		assert_true(ds->dims[0].unlimited && ds->dims[0].len == 4);
		assert_int_equal(ds->groups[0].attrs[0].strings[0].len, 5);
		a = &ds->arrays[0];
		assert_true(a->rank == 0 && a->type.big_endian && a->fill_defined);
		assert_memory_equal(a->fill, "\x01\x02", 2);
		assert_true(ds_fill_declared(a));
		assert_true(*(const int16_t *)(const void *)a->attrs[0].data == 0x102);
		at(f, 0, 0, 600, 2, 0);
		at(f, 2, 0, 640, 36, 0);
		a = &ds->arrays[1]; /* records of 6 + 2 and 1 + 3 bytes: gathered */
		assert_true(a->access == DS_CONVERT && a->convert && a->chunk_bytes == 24);
		assert_memory_equal(a->fill, "\x80\x01", 2);
		assert_false(ds_fill_declared(a));
		assert_int_equal(ref(f, 1, 0)->where, CHUNK_SYNTH);
		assert_false(ds->arrays[3].type.big_endian);
	}
}

static void test_gathered(void **state)
{
	struct fixture *f = *state;
	uint8_t out[24], one[4];

	sample(f, 1, 4);
	save(f, 800);
	must_open(f);
	assert_int_equal(source_read_chunk(f->s, 1, 0, out, sizeof(out), &f->e), 0);
	for (size_t i = 0; i < sizeof(out); i++)
		assert_int_equal(out[i], (uint8_t)(620 + i / 6 * 12 + i % 6));
	assert_int_equal(source_read_chunk(f->s, 3, 0, one, sizeof(one), &f->e), 0);
	for (size_t i = 0; i < sizeof(one); i++)
		assert_int_equal(one[i], (uint8_t)(700 + i * 12));
}

/* Every file that ends inside its header is refused, whatever it ends in. */
static void test_cut_headers(void **state)
{
	static const unsigned versions[] = {1, 2, 5};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		for (size_t n = sample(f, versions[i], 4); n-- > 4;) {
			f->b.len = n;
			save(f, 0);
			refused(f, -EBADMSG, n < 8 ? "ends at byte" : "the ");
		}
	}
}

/* Every byte of a header, changed: refused or a model, never more than that. */
static void test_changed_bytes(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct fixture *f = *state;
	size_t n = sample(f, 1, 4);

	for (size_t i = 4; i < n; i++) {
		for (size_t k = 0; k < ARRAY_LEN(values); k++) {
			sample(f, 1, 4);
			f->b.data[i] = values[k];
			save(f, 800);
			if (try_open(f) < 0)
				assert_true(f->e.msg[0]);
		}
	}
}

static void test_counts(void **state)
{
	struct fixture *f = *state;

	start(f, 5, 0);
	list(f, DIMS, (uint64_t)1 << 60);
	save(f, 100);
	refused(f, -EBADMSG, "the list of dimensions at byte 16 of the header");
	start(f, 1, 0);
	list(f, VARS, 1);
	save(f, 100);
	refused(f, -EBADMSG, "has the tag 11, not 10");
	start(f, 1, 0);
	list(f, 0, 0);
	list(f, ATTRS, 1);
	name(f, "a");
	put(f, 12, 4);
	save(f, 100);
	refused(f, -EBADMSG, "is 12");
	start(f, 1, 0);
	list(f, 0, 0);
	list(f, ATTRS, 1);
	name(f, "a");
	put(f, CDF_DOUBLE, 4);
	count(f, 1000);
	save(f, 120);
	refused(f, -EBADMSG, "the length of an attribute");
}

/* A header of many windows, with values that are longer than one. */
static void test_large_header(void **state)
{
	struct fixture *f = *state;
	const struct dataset *ds;
	char text[20000];

	memset(text, 'x', sizeof(text));
	start(f, 2, 0);
	list(f, DIMS, 2000);
	for (unsigned i = 0; i < 2000; i++) {
		char s[16];

		(void)snprintf(s, sizeof(s), "d%u", i);
		dim(f, s, i + 1);
	}
	list(f, ATTRS, 2);
	for (unsigned i = 0; i < 2; i++) {
		name(f, i ? "b" : "a");
		put(f, CDF_CHAR, 4);
		count(f, sizeof(text) - 1 - i);
		bytes(f, text, sizeof(text) - 1 - i);
	}
	list(f, 0, 0);
	save(f, 0);
	ds = must_open(f);
	assert_int_equal(ds->n_dims, 2000);
	assert_string_equal(ds->dims[1999].name, "d1999");
	assert_int_equal(ds->dims[1999].len, 2000);
	assert_int_equal(ds->groups[0].attrs[1].strings[0].len, sizeof(text) - 2);
	f->opts.max_meta_bytes = 1 << 16;
	refused(f, -ERANGE, "65536 bytes (half of -o memory)");
}

/* one - a single record variable of shape (numrecs, 3). */
static void one(struct fixture *f, unsigned version, unsigned type, uint64_t numrecs)
{
	start(f, version, numrecs);
	list(f, DIMS, 2);
	dim(f, "t", 0);
	dim(f, "x", 3);
	list(f, 0, 0);
	list(f, VARS, 1);
	var(f, "v", 2, 0, 1);
	list(f, 0, 0);
	place(f, type, 200);
}

static void test_no_padding(void **state)
{
	static const unsigned types[] = {CDF_BYTE, CDF_CHAR, CDF_SHORT, CDF_UBYTE, CDF_USHORT};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		uint64_t slab = 3 * cdf_type_bytes(types[i]);

		one(f, i < 3 ? 1 : 5, types[i], 100);
		save(f, 200 + 100 * (size_t)slab);
		assert_true(must_open(f)->arrays[0].access == DS_STORED);
		at(f, 0, 0, 200, 100 * slab, 0);
	}
}

static void test_streaming(void **state)
{
	struct fixture *f = *state;

	one(f, 1, CDF_BYTE, UINT32_MAX);
	save(f, 200 + 3 * 7 + 2); /* a part of a record is none */
	assert_int_equal(must_open(f)->dims[0].len, 7);
	one(f, 5, CDF_BYTE, UINT64_MAX);
	save(f, 200);
	assert_int_equal(must_open(f)->dims[0].len, 0);
	/* records of 8 + 4 bytes from 620, of which the last begins at 700 */
	sample(f, 1, UINT32_MAX);
	save(f, 620 + 12 * 9 + 9);
	assert_int_equal(must_open(f)->dims[0].len, 10);
	save(f, 0);
	f->b.len = 620 + 12 * 9 + 8;
	save(f, 0);
	assert_int_equal(must_open(f)->dims[0].len, 9);
}

/* large - variables of (t, 200, 300) and (t) doubles. */
static void large(struct fixture *f)
{
	start(f, 2, 3);
	list(f, DIMS, 3);
	dim(f, "t", 0);
	dim(f, "y", 200);
	dim(f, "x", 300);
	list(f, 0, 0);
	list(f, VARS, 2);
	name(f, "v");
	count(f, 3);
	count(f, 0);
	count(f, 1);
	count(f, 2);
	list(f, 0, 0);
	place(f, CDF_DOUBLE, (uint64_t)5 << 30);
	var(f, "t", 1, 0, 0);
	list(f, 0, 0);
	place(f, CDF_DOUBLE, ((uint64_t)5 << 30) + 480000);
	save(f, 0);
	assert_int_equal(truncate(f->path, ((off_t)5 << 30) + 3 * 480008), 0);
}

static void test_records(void **state)
{
	struct fixture *f = *state;
	uint64_t begin = (uint64_t)5 << 30;
	const struct ds_array *a;

	large(f);
	f->opts.cut_bytes = 1 << 20;
	a = must_open(f)->arrays; /* a record is a chunk */
	assert_true(a->chunk[0] == 1 && a->chunk[1] == 200 && a->chunk[2] == 300);
	at(f, 0, 2, begin + (uint64_t)2 * 480008, 480000, 0);
	f->opts.cut_bytes = 100000;
	a = must_open(f)->arrays; /* and is cut */
	assert_true(a->chunk[0] == 1 && a->chunk[1] == 40 && a->chunk[2] == 300);
	at(f, 0, 7, begin + 480008 + (uint64_t)2 * 96000, 96000, 0);
	assert_int_equal(a[1].access, DS_CONVERT);
	assert_int_equal(truncate(f->path, (off_t)begin + 480008), 0);
	must_open(f);
	at(f, 0, 4, begin + (uint64_t)4 * 96000, 96000, 0);
	assert_int_equal(source_locate(f->s, 0, 5, &f->ref, &f->e), -EBADMSG);
	assert_non_null(strstr(f->e.msg, "the file ends at byte 5369189128"));
}

static void test_pieces(void **state)
{
	struct fixture *f = *state;
	uint8_t out[4096];

	start(f, 1, 0);
	list(f, DIMS, 1);
	dim(f, "x", 2039); /* a prime: the last chunk is short */
	list(f, 0, 0);
	list(f, VARS, 1);
	var(f, "v", 1, 0, 0);
	list(f, 0, 0);
	place(f, CDF_DOUBLE, 100);
	save(f, 100 + 8 * 2039);
	assert_int_equal(must_open(f)->arrays[0].chunk[0], 512);
	at(f, 0, 0, 100, 4096, 0);
	at(f, 0, 3, 100 + 3 * 4096, 503 * 8, 72);
	assert_int_equal(source_read_chunk(f->s, 0, 3, out, sizeof(out), &f->e), 0);
	assert_memory_equal(out, f->b.data + 100 + 3 * 4096, 503 * 8);
	assert_memory_equal(out + 4096 - 8, "\x47\x9e\0\0\0\0\0\0", 8);
}

static void test_begins(void **state)
{
	struct fixture *f = *state;
	size_t n = sample(f, 1, 4);

	f->b.data[n - 1] = 16; /* of q: 700 becomes 528 */
	f->b.data[n - 2] = 0;
	save(f, 800);
	refused(f, -EBADMSG, "'q' begins at byte 16, inside the header");
	sample(f, 1, 4);
	f->b.data[n - 4] = 0x80;
	save(f, 800);
	refused(f, -EBADMSG, "negative offset");
	/* CDF-5: an offset so late that it overflows with what follows */
	one(f, 5, CDF_DOUBLE, 1000);
	memset(f->b.data + f->b.len - 8, 0xff, 8);
	f->b.data[f->b.len - 8] = 0x7f;
	save(f, 800);
	must_open(f);
	assert_int_equal(source_locate(f->s, 0, 0, &f->ref, &f->e), -EBADMSG);
	one(f, 5, CDF_BYTE, UINT64_MAX - 1);
	save(f, 800);
	refused(f, -EBADMSG, "'v': it has more records");
}

static void test_names(void **state)
{
	static const char *const names[] = {"a/b", "ok", "ok", ".", "", "l\xe4tin", "b\\c"};
	static const char *const want[] = {"a%2Fb", "ok", "%2E", "l\xc3\xa4tin", "b%5Cc"};
	struct fixture *f = *state;
	const struct dataset *ds;

	start(f, 1, 0);
	list(f, DIMS, 2);
	dim(f, "x", 2);
	dim(f, "x", 2);
	list(f, 0, 0);
	list(f, VARS, ARRAY_LEN(names) + 1);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		var(f, names[i], 1, 0, 0);
		list(f, 0, 0);
		place(f, CDF_INT, 900);
	}
	var(f, "second", 1, 1, 0);
	list(f, 0, 0);
	place(f, CDF_INT, 900);
	save(f, 1000);
	ds = must_open(f);
	assert_int_equal(ds->n_arrays, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_string_equal(ds->arrays[i].name, want[i]);
	assert_int_equal(ds->n_notes, 8);
	assert_int_equal(ds->n_dims, 1);
}

static void test_rank(void **state)
{
	struct fixture *f = *state;

	start(f, 1, 0);
	list(f, DIMS, 1);
	dim(f, "x", 1);
	list(f, 0, 0);
	list(f, VARS, 1);
	name(f, "v");
	count(f, DS_RANK_MAX + 1);
	for (int i = 0; i <= DS_RANK_MAX; i++)
		count(f, 0);
	list(f, 0, 0);
	place(f, CDF_INT, 900);
	save(f, 1000);
	assert_int_equal(must_open(f)->n_arrays, 0);
	assert_non_null(strstr(f->s->ds.notes[0], "too many dimensions"));
	/* the record dimension is the first or none */
	start(f, 1, 0);
	list(f, DIMS, 2);
	dim(f, "t", 0);
	dim(f, "x", 1);
	list(f, 0, 0);
	list(f, VARS, 1);
	var(f, "v", 2, 1, 0);
	save(f, 1000);
	refused(f, -EBADMSG, "not as its first");
}

static void test_fills(void **state)
{
	static const struct {
		unsigned type;
		const char *fill;
	} rows[] = {
		{CDF_BYTE, "\x81"},
		{CDF_CHAR, "\0"},
		{CDF_SHORT, "\x80\x01"},
		{CDF_INT, "\x80\0\0\x01"},
		{CDF_FLOAT, "\x7c\xf0\0\0"},
		{CDF_DOUBLE, "\x47\x9e\0\0\0\0\0\0"},
		{CDF_UBYTE, "\xff"},
		{CDF_USHORT, "\xff\xff"},
		{CDF_UINT, "\xff\xff\xff\xff"},
		{CDF_INT64, "\x80\0\0\0\0\0\0\x02"},
		{CDF_UINT64, "\xff\xff\xff\xff\xff\xff\xff\xfe"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		one(f, 5, rows[i].type, 1);
		save(f, 400);
		assert_memory_equal(must_open(f)->arrays[0].fill, rows[i].fill,
				    cdf_type_bytes(rows[i].type));
		assert_true(f->s->ds.arrays[0].fill_defined);
	}
}

static void test_changed(void **state)
{
	struct fixture *f = *state;

	one(f, 1, CDF_INT, 2);
	save(f, 300);
	must_open(f);
	assert_int_equal(source_check(f->s, &f->e), 0);
	assert_int_equal(truncate(f->path, 400), 0);
	assert_int_equal(source_check(f->s, &f->e), -ESTALE);
}

static void test_bid(void **state)
{
	struct fixture *f = *state;

	for (unsigned v = 0; v < 8; v++) {
		one(f, v, CDF_INT, 2);
		save(f, 300);
		if (v == 1 || v == 2 || v == 5)
			must_open(f);
		else
			refused(f, -EBADMSG, "unknown version");
	}
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_empty),        TEST(test_model),   TEST(test_gathered),
		TEST(test_cut_headers),  TEST(test_counts),  TEST(test_changed_bytes),
		TEST(test_large_header), TEST(test_begins),  TEST(test_no_padding),
		TEST(test_streaming),    TEST(test_records), TEST(test_pieces),
		TEST(test_names),        TEST(test_rank),    TEST(test_fills),
		TEST(test_changed),      TEST(test_bid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
