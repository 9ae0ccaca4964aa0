/* SPDX-License-Identifier: BSD-3-Clause */
/* The virtual file, whole: a copy of its bytes is opened and read by libhdf5, and by our own
 * reader; every element is compared. Then what reads of a damaged or changed chunk say. */
#include "tests/unit/hdf5view/virtual/nc_fake.h"

#include "base/process/child.h"
#include "base/os/cancel.h"
#include "hdf5view/format/hdf5_format.h"

/* ---- the file, for libhdf5 ---- */

/* copy_out - the file, read in pieces of odd sizes, which agree with one read of it all. New. */
static uint8_t *copy_out(struct ncf *f)
{
	static const size_t steps[] = {4096, 1, 777, 131072, 64, 65536, 3};
	size_t size = (size_t)nc_layout_size(f->layout), n = 0, k = 0;
	uint8_t *all = malloc(size), *part = malloc(131072);
	struct err e = ERR_INIT;

	assert_true(all && part);
	if (ncf_read(f, 0, size, all, &n, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(n, size);
	for (size_t off = 0; off < size; off += n) {
		size_t want = steps[k++ % ARRAY_LEN(steps)];

		if (ncf_read(f, off, want, part, &n, &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(n, u64_min(want, size - off));
		assert_memory_equal(part, all + off, n);
	}
	assert_int_equal(ncf_read(f, size, 100, part, &n, &e), 0);
	assert_int_equal(n, 0);
	assert_int_equal(ncf_read(f, size - 1, 100, part, &n, &e), 0);
	assert_int_equal(n, 1);
	free(part);
	return all;
}

/* expected - element k of the array as a reader must see it. */
static int32_t expected(const struct ncf *f, uint64_t k)
{
	uint64_t c[DS_RANK_MAX] = {0}, left = k;

	for (size_t d = f->a.rank; d-- > 0;) {
		c[d] = left % f->shape[d] / f->chunk[d];
		left /= f->shape[d];
	}
	return f->refs[ds_chunk_linear(&f->a, c)].where == CHUNK_ABSENT ? FILL : ncf_value(k);
}

/* our_reader - finds every chunk where the layout put it. */
static void our_reader(const struct ncf *f, const uint8_t *all, size_t size, uint64_t header)
{
	auto_fd int fd = memfd_create("copy", MFD_CLOEXEC);
	struct blob blob = blob_of_fd(fd, size);
	struct h5_file raw;
	struct h5_layout l;
	struct h5_index *x = NULL;
	struct err e = ERR_INIT;
	uint64_t exist = 0;

	for (uint64_t i = 0; i < f->a.n_chunks; i++)
		exist += f->refs[i].where != CHUNK_ABSENT;
	assert_int_equal(write(fd, all, size), size);
	if (h5_file_read(&blob, &raw, &e) < 0 || h5_layout_read(&raw, header, &l, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(raw.eof, size);
	if (l.cls != HDF5_LAYOUT_CHUNKED || exist == 0)
		return;
	if (h5_index_load(&raw, &l, f->a.grid, 1 << 24, &x, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(h5_index_count(x), exist);
	h5_index_free(x);
}

static void libhdf5(const struct ncf *f, uint8_t *all, size_t size)
{
	auto_hid hid_t fapl = ncf_core(false), file = -1, set = -1;
	uint64_t n = 1;
	int32_t *got;

	for (size_t d = 0; d < f->a.rank; d++)
		n *= f->shape[d];
	got = malloc((size_t)(n ? n : 1) * 4);
	assert_non_null(got);
	assert_true(H5Pset_file_image(fapl, all, size) >= 0);
	file = H5Fopen("copy", H5F_ACC_RDONLY, fapl);
	assert_true(file >= 0);
	set = H5Dopen2(file, "v", H5P_DEFAULT);
	assert_true(set >= 0);
	assert_true(H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
	for (uint64_t k = 0; k < n; k++)
		if (got[k] != expected(f, k))
			fail_msg("element %llu is %d, not %d", (unsigned long long)k, got[k],
				 expected(f, k));
	free(got);
}

/* variant - how one array is presented. */
struct variant {
	bool filtered, decode, latest, no_fd;
	unsigned n_attrs;
	unsigned absent; /* pattern */
};

static bool exists(unsigned pattern, uint64_t l, uint64_t n)
{
	switch (pattern) {
	case 0: return true;
	case 1: return false;
	case 2: return l > n / 3;      /* absent at the beginning */
	case 3: return l < n - n / 3;  /* at the end */
	case 4: return l < n / 3 || l > n / 2;
	case 5: return l % 2 == 1;
	default: return l == n - 1;
	}
}

static void round_trip(uint32_t rank, const uint64_t *shape, const uint64_t *chunk,
		       struct variant v)
{
	struct err e = ERR_INIT;
	struct ncf f;
	uint64_t header;
	uint8_t *all;
	size_t size;

	ncf_init(&f, rank, shape, chunk);
	if (v.filtered) /* an array in one piece has no filters */
		ncf_deflate(&f, v.decode || rank == 0);
	f.no_fd = v.no_fd;
	for (uint64_t l = 0; l < f.a.n_chunks; l++)
		if (exists(v.absent, l, f.a.n_chunks))
			ncf_store(&f, l);
	ncf_structure(&f, v.latest, rank > 0, v.n_attrs);
	header = f.image.vars[0].header;
	if (ncf_lay_out(&f, &e) < 0)
		fail_msg("%s", e.msg);
	assert_null(f.image.bytes);
	all = copy_out(&f);
	size = (size_t)nc_layout_size(f.layout);
	if (!v.filtered && v.absent == 0 && f.a.n_chunks > 0)
		assert_int_equal((size - f.a.n_chunks * f.a.chunk_bytes) % 4096, 0);
	our_reader(&f, all, size, header);
	libhdf5(&f, all, size);
	free(all);
	ncf_release(&f);
}

static void test_ranks(void **state)
{
	static const uint64_t shape[5] = {11, 7, 5, 6, 4}, chunk[5] = {4, 3, 2, 3, 3};

	(void)state;
	for (uint32_t rank = 0; rank <= 5; rank++)
		for (unsigned absent = 0; absent < 7; absent++)
			for (unsigned k = 0; k < 6; k++)
				round_trip(rank, shape, chunk,
					   (struct variant){.filtered = k % 3 > 0,
							    .decode = k % 3 == 2,
							    .latest = k > 2,
							    .no_fd = absent % 2,
							    .absent = absent});
}

static void test_counts(void **state)
{
	static const uint64_t counts[] = {1, 2, 63, 64, 65, 128, 4095, 4096, 4097, 5000};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		uint64_t shape = counts[i] * 8 - 3, chunk = 8;

		for (unsigned k = 0; k < 4; k++)
			round_trip(1, &shape, &chunk,
				   (struct variant){.filtered = k % 2,
						    .latest = k > 1,
						    .absent = k < 2 ? 0 : (unsigned)i % 7});
	}
}

/* Layout messages in further blocks of the object header, with and without checksums. */
static void test_long_headers(void **state)
{
	static const uint64_t shape[2] = {100, 30}, chunk[2] = {7, 11};

	(void)state;
	for (unsigned n = 0; n < 40; n += 3)
		round_trip(2, shape, chunk,
			   (struct variant){.filtered = true, .latest = n % 2, .n_attrs = n});
}

/* Chunks of a page and more: data begin at a page, reads end inside chunks. */
static void test_large(void **state)
{
	static const uint64_t shape[2] = {300, 200}, chunk[2] = {40, 50};

	(void)state;
	for (unsigned k = 0; k < 4; k++)
		round_trip(2, shape, chunk,
			   (struct variant){.filtered = k % 2, .decode = k > 1, .no_fd = k > 1});
}

static void test_no_elements(void **state)
{
	static const uint64_t shape[2] = {0, 5}, chunk[2] = {4, 5};

	(void)state;
	round_trip(2, shape, chunk, (struct variant){.filtered = true});
	round_trip(2, shape, chunk, (struct variant){.latest = true});
}

/* ---- reading ---- */

/* laid_out - 20 chunks of 100 elements; data are at the end of the file. */
static void laid_out(struct ncf *f, bool filtered)
{
	static const uint64_t shape = 2000, chunk = 100;
	struct err e = ERR_INIT;

	ncf_init(f, 1, &shape, &chunk);
	if (filtered)
		ncf_deflate(f, false);
	for (uint64_t l = 0; l < 20; l++)
		ncf_store(f, l);
	ncf_structure(f, false, true, 0);
	if (ncf_lay_out(f, &e) < 0)
		fail_msg("%s", e.msg);
}

/* A read inside one chunk or inside the structure is handed through. */
static void test_no_copy(void **state)
{
	uint8_t room[4096];
	struct err e = ERR_INIT;
	struct span s;
	uint64_t data;
	struct ncf f;

	(void)state;
	laid_out(&f, false);
	data = nc_layout_size(f.layout) - 20 * 400;
	assert_int_equal(nc_layout_read(f.layout, data + 800, 400, room, &s, &e), 0);
	assert_null(s.mem);
	assert_int_equal(s.off, f.refs[2].off);
	assert_int_equal(s.len, 400);
	assert_int_equal(nc_layout_read(f.layout, data + 799, 400, room, &s, &e), 0);
	assert_ptr_equal(s.mem, room);
	assert_int_equal(nc_layout_read(f.layout, 8, 30, room, &s, &e), 0);
	assert_ptr_not_equal(s.mem, room);
	f.no_fd = true;
	assert_int_equal(nc_layout_read(f.layout, data + 10, 40, room, &s, &e), 0);
	assert_ptr_equal(s.mem, room);
	ncf_release(&f);
}

static void fails(struct ncf *f, uint64_t off, size_t len, int want, const char *text)
{
	struct err e = ERR_INIT;
	uint8_t out[8192];
	size_t n;

	assert_int_equal(ncf_read(f, off, len, out, &n, &e), want);
	assert_int_equal(e.code, want);
	if (!strstr(e.msg, text))
		fail_msg("'%s' is not in '%s'", text, e.msg);
	assert_int_equal(ncf_read(f, off, len, out, &n, NULL), want);
}

static void works(struct ncf *f, uint64_t off, size_t len)
{
	uint8_t out[8192];
	size_t n;

	assert_int_equal(ncf_read(f, off, len, out, &n, NULL), 0);
	assert_int_equal(n, len);
}

/* Stored bytes that end with the array are followed by zeros. */
static void test_zeros(void **state)
{
	static const uint8_t none[200];
	struct err e = ERR_INIT;
	uint8_t out[1000];
	uint64_t data;
	struct ncf f;
	size_t n;

	(void)state;
	laid_out(&f, false);
	data = nc_layout_size(f.layout) - 20 * 400;
	f.refs[4].len = 200;
	f.refs[4].pad = 200;
	memset(out, 0xff, sizeof(out));
	assert_int_equal(ncf_read(&f, data + 1500, 1000, out, &n, &e), 0);
	assert_memory_equal(out + 300, none, 200);
	assert_memory_not_equal(out + 500, none, 200);
	memset(out, 0xff, sizeof(out));
	assert_int_equal(ncf_read(&f, data + 1700, 200, out, &n, &e), 0);
	assert_memory_equal(out + 100, none, 100);
	ncf_release(&f);
}

/* A bad chunk fails the reads that touch it, also those that begin in a good one, and no other. */
static void test_bad_chunk(void **state)
{
	uint64_t data;
	struct ncf f;

	(void)state;
	laid_out(&f, false);
	data = nc_layout_size(f.layout) - 20 * 400;
	f.bad = 3;
	f.bad_rc = -EBADMSG;
	works(&f, data, 1200);
	works(&f, data + 1600, 6000);
	fails(&f, data + 1200, 10, -EBADMSG, "'/v' chunk 3: made up");
	fails(&f, data + 1199, 2, -EBADMSG, "chunk 3");
	fails(&f, data, 8000, -EBADMSG, "chunk 3");
	f.bad_rc = 0;
	f.refs[5].where = CHUNK_ABSENT; /* it was there */
	fails(&f, data + 2000, 10, -ESTALE, "'/v' chunk 5: it was removed");
	fails(&f, data, 8000, -ESTALE, "was removed");
	f.refs[5].where = CHUNK_RANGE;
	works(&f, data + 2000, 10);
	f.check_rc = -ESTALE; /* bytes that were copied have been asked about */
	fails(&f, data + 1999, 10, -ESTALE, "changed");
	ncf_release(&f);
}

static void test_shorter_chunk(void **state)
{
	uint64_t end, size;
	struct ncf f;

	(void)state;
	laid_out(&f, true);
	end = nc_layout_size(f.layout);
	size = f.refs[19].len;
	works(&f, end - size, (size_t)size);
	f.refs[19].len--;
	works(&f, end - size, (size_t)size - 1);
	fails(&f, end - size, (size_t)size, -ESTALE, "shorter than it was");
	fails(&f, end - size - 1, (size_t)size + 1, -ESTALE, "shorter than it was");
	fails(&f, end - 1, 1, -ESTALE, "shorter than it was");
	ncf_release(&f);
}

/* Chunks whose size an index cannot state are in the file, and reading them says why. */
static void test_unknown_size(void **state)
{
	static const uint64_t shape = 400, chunk = 100;
	struct err e = ERR_INIT;
	uint64_t end;
	struct ncf f;

	(void)state;
	ncf_init(&f, 1, &shape, &chunk);
	ncf_deflate(&f, false);
	ncf_store(&f, 0);
	for (uint64_t l = 1; l < 4; l++)
		f.refs[l] = (struct chunk_ref){.where = CHUNK_RANGE};
	f.refs[2].len = (uint64_t)1 << 32;
	f.bad = 3;
	f.bad_rc = -EIO;
	ncf_structure(&f, false, true, 0);
	assert_int_equal(ncf_lay_out(&f, &e), 0);
	end = nc_layout_size(f.layout);
	works(&f, end - 3 - f.refs[0].len, (size_t)f.refs[0].len);
	fails(&f, end - 3, 1, -EBADMSG, "it is empty");
	fails(&f, end - 2, 1, -ERANGE, "4 GiB");
	fails(&f, end - 1, 1, -EIO, "made up");
	f.bad_rc = 0;
	f.refs[3].len = 50; /* now it could be read, but the index is written */
	fails(&f, end - 1, 1, -EIO, "could not be determined");
	f.refs[3].len = 1; /* a chunk of one byte is one */
	works(&f, end - 1, 1);
	ncf_release(&f);
}

/* A layout that cannot be made leaves the structure to the caller. */
static void test_failure(void **state)
{
	static const uint64_t shape = 2000, chunk = 100;
	struct err e = ERR_INIT;
	struct ncf f;

	(void)state;
	ncf_init(&f, 1, &shape, &chunk);
	ncf_deflate(&f, false);
	for (uint64_t l = 0; l < 20; l++)
		ncf_store(&f, l);
	ncf_structure(&f, false, true, 0);
	f.bad = 7;
	f.bad_rc = -ESTALE;
	assert_int_equal(ncf_lay_out(&f, &e), -ESTALE);
	assert_non_null(f.image.bytes);
	f.bad_rc = 0;
	f.image.vars[0].elem = 8; /* chunks that HDF5 would take for larger ones */
	assert_int_equal(ncf_lay_out(&f, &e), -EBADMSG);
	f.image.vars[0].elem = 4;
	f.image.vars[0].chunk[0] = (uint64_t)1 << 31;
	assert_int_equal(ncf_lay_out(&f, &e), -ERANGE);
	f.image.vars[0].chunk[0] = 100;
	f.image.vars[0].header += 8;
	assert_int_equal(ncf_lay_out(&f, &e), -EBADMSG);
	f.image.vars[0].header -= 8;
	assert_int_equal(ncf_lay_out(&f, &e), 0);
	ncf_release(&f);
}

/* ---- the view ---- */

struct opened {
	struct ncf f;
	struct view *v;
};

static void view_open(struct opened *o, bool filtered)
{
	static const uint64_t shape[2] = {50, 40}, chunk[2] = {20, 30};
	static const struct nc_view_options opts = {.name = "store.nc",
						    .io = {.cache_bytes = 1 << 20},
						    .max_image_bytes = 1 << 20,
						    .max_index_bytes = 1 << 20};
	struct err e = ERR_INIT;

	ncf_init(&o->f, 2, shape, chunk);
	if (filtered)
		ncf_deflate(&o->f, false);
	o->f.a.uniform = true;
	for (uint64_t l = 0; l < o->f.a.n_chunks; l++)
		if (l != 2)
			ncf_store(&o->f, l);
	if (nc_view_open(&o->f.base, &opts, &o->v, &e) < 0)
		fail_msg("%s", e.msg);
}

static void opened_close(struct opened *o)
{
	o->v->ops->close(o->v);
	ncf_release(&o->f);
}

static int look(struct opened *o, const char *name, struct view_attr *ret, struct err *e)
{
	return o->v->ops->lookup(o->v, VIEW_ROOT, name, strlen(name), ret, e);
}

struct seen {
	unsigned n;
	bool with_attr;
};

static bool see(void *arg, const char *name, uint64_t id, bool is_dir,
		const struct view_attr *attr, uint64_t next)
{
	struct seen *s = arg;

	assert_string_equal(name, "store.nc");
	assert_int_equal(id, 2);
	assert_int_equal(next, 1);
	assert_false(is_dir);
	s->n++;
	s->with_attr = attr != NULL;
	return true;
}

/* All reads of the view, and what libhdf5 finds in them. */
static void read_view(struct opened *o, uint64_t size)
{
	uint8_t *all = malloc(size), room[1000];
	struct err e = ERR_INIT;
	struct span s;

	assert_non_null(all);
	for (uint64_t off = 0; off < size; off += s.len + s.zeros) {
		if (o->v->ops->read(o->v, 2, 0, off, sizeof(room), room, &s, &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(s.len + s.zeros, u64_min(sizeof(room), size - off));
		if (s.mem)
			memcpy(all + off, s.mem, s.len);
		else if (s.len > 0)
			assert_int_equal(pread(s.fd, all + off, s.len, (off_t)s.off), s.len);
		memset(all + off + s.len, 0, s.zeros);
		span_done(&s);
	}
	libhdf5(&o->f, all, size);
	free(all);
}

static void test_view(void **state)
{
	struct view_attr at, same;
	struct err e = ERR_INIT;
	struct seen seen = {0};
	struct opened o;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		view_open(&o, k);
		assert_int_equal(o.v->ops->list(o.v, VIEW_ROOT, 0, true, see, &seen, &e), 0);
		assert_false(seen.with_attr); /* it would have to be laid out */
		assert_int_equal(o.f.looks, 0);
		assert_int_equal(look(&o, "store", &at, &e), -ENOENT);
		assert_int_equal(look(&o, "store.nc", &at, &e), 0);
		assert_true(at.id == 2 && !at.is_dir && !at.unknown && at.cached);
		assert_int_equal(o.v->ops->getattr(o.v, 2, &same, &e), 0);
		assert_int_equal(same.size, at.size);
		assert_int_equal(o.v->ops->list(o.v, VIEW_ROOT, 0, true, see, &seen, &e), 0);
		assert_true(seen.with_attr);
		seen.n = 0;
		assert_int_equal(o.v->ops->list(o.v, VIEW_ROOT, 1, true, see, &seen, &e), 0);
		assert_int_equal(seen.n, 0);
		assert_int_equal(o.v->ops->plan(o.v, 0)->kind, PLAN_PASS);
		read_view(&o, at.size);
		opened_close(&o);
	}
}

static void test_ids(void **state)
{
	struct view_attr at;
	uint8_t room[16];
	struct span s;
	struct opened o;

	(void)state;
	view_open(&o, false);
	assert_int_equal(o.v->ops->getattr(o.v, VIEW_ROOT, &at, NULL), 0);
	assert_true(at.is_dir);
	assert_int_equal(o.v->ops->getattr(o.v, 3, &at, NULL), -ESTALE);
	assert_int_equal(o.v->ops->lookup(o.v, 2, "x", 1, &at, NULL), -ENOTDIR);
	assert_int_equal(o.v->ops->lookup(o.v, 3, "x", 1, &at, NULL), -ESTALE);
	assert_int_equal(o.v->ops->list(o.v, 2, 0, true, see, NULL, NULL), -ENOTDIR);
	assert_int_equal(o.v->ops->read(o.v, VIEW_ROOT, 0, 0, 16, room, &s, NULL), -EISDIR);
	assert_int_equal(o.v->ops->read(o.v, 3, 0, 0, 16, room, &s, NULL), -ESTALE);
	assert_int_equal(o.v->ops->parent(o.v, VIEW_ROOT), VIEW_ROOT);
	opened_close(&o);
}

/* A file that cannot be laid out is there, and says why; asking again reads nothing again. */
static void test_unsure(void **state)
{
	struct err e = ERR_INIT;
	struct view_attr at;
	uint8_t room[16];
	uint64_t looks;
	struct span s;
	struct opened o;

	(void)state;
	view_open(&o, true);
	o.f.bad = 1;
	o.f.bad_rc = -ESTALE;
	assert_int_equal(look(&o, "store.nc", &at, &e), 0);
	assert_true(at.unknown && at.size == 1 && at.id == 2);
	assert_int_equal(e.code, -ESTALE);
	assert_non_null(strstr(e.msg, "'store.nc': '/v' chunk 0.1: made up"));
	looks = o.f.looks;
	e = (struct err)ERR_INIT;
	assert_int_equal(o.v->ops->read(o.v, 2, 0, 0, 16, room, &s, &e), -ESTALE);
	assert_non_null(strstr(e.msg, "'store.nc': '/v' chunk 0.1: made up"));
	assert_int_equal(o.v->ops->getattr(o.v, 2, &at, NULL), 0);
	assert_true(at.unknown);
	assert_int_equal(o.f.looks, looks);
	opened_close(&o);
}

static void *first_look(void *arg)
{
	struct opened *o = arg;
	struct view_attr at;

	if (look(o, "store.nc", &at, NULL) < 0 || at.unknown)
		return NULL;
	return o;
}

/* However many look first: it is laid out once. */
static void test_first_look(void **state)
{
	pthread_t threads[8];
	struct opened o;
	void *ok;

	(void)state;
	view_open(&o, true);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, first_look, &o), 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &ok), 0);
		assert_non_null(ok);
	}
	assert_int_equal(o.f.looks, o.f.a.n_chunks - 1);
	opened_close(&o);
}

/* A look that waits for the layout is given up when that is requested, and the layout goes on. */
static void test_given_up(void **state)
{
	struct cancel cancel;
	struct err e = ERR_INIT;
	struct view_attr at;
	pthread_t thread;
	uint8_t room[16];
	struct opened o;
	struct span s;
	sem_t inside[2];
	void *ok;

	(void)state;
	view_open(&o, true);
	(void)sem_init(&inside[0], 0, 0);
	(void)sem_init(&inside[1], 0, 0);
	o.f.inside = inside;
	assert_int_equal(pthread_create(&thread, NULL, first_look, &o), 0);
	(void)sem_wait(&inside[0]);
	cancel_begin(&cancel);
	cancel_request(&cancel);
	assert_int_equal(look(&o, "store.nc", &at, &e), 0);
	assert_true(at.unknown);
	assert_int_equal(e.code, -EINTR);
	assert_int_equal(o.v->ops->read(o.v, 2, 0, 0, 16, room, &s, NULL), -EINTR);
	cancel_end(&cancel);
	(void)sem_post(&inside[1]);
	assert_int_equal(pthread_join(thread, &ok), 0);
	assert_non_null(ok);
	assert_int_equal(look(&o, "store.nc", &at, NULL), 0);
	assert_false(at.unknown);
	opened_close(&o);
}

/* Processes are forked by one without threads, as in the server: a thread may hold a lock of the
 * allocator when another one forks. */
static int prepare(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	return child_prepare(NULL, &e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks),         cmocka_unit_test(test_counts),
		cmocka_unit_test(test_long_headers),  cmocka_unit_test(test_large),
		cmocka_unit_test(test_no_elements),   cmocka_unit_test(test_no_copy),
		cmocka_unit_test(test_zeros),         cmocka_unit_test(test_bad_chunk),
		cmocka_unit_test(test_shorter_chunk), cmocka_unit_test(test_unknown_size),
		cmocka_unit_test(test_failure),       cmocka_unit_test(test_view),
		cmocka_unit_test(test_ids),           cmocka_unit_test(test_unsure),
		cmocka_unit_test(test_first_look),    cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, prepare, NULL);
}
