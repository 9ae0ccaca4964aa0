/* SPDX-License-Identifier: BSD-3-Clause */
/* The virtual file with rules: chunks in chains that the source does not have, as libhdf5 reads
 * them; which filters of its own may be named; quantised floats. */
#include "hdf5view/netcdf4/schema.h"
#include "tests/unit/hdf5view/virtual/nc_fake.h"

#include "codecs/spec/spec.h"

struct opened {
	struct ncf f;
	struct arena arena;
	struct codec_rules filters;
	struct codec_quant_rules quants;
	struct view *v;
};

/* view_it - a view of o->f with one rule. */
static void view_it(struct opened *o, const char *filter, uint64_t cache)
{
	struct nc_view_options opts = {.name = "store.nc",
				       .io = {.cache_bytes = cache, .threads = 2, .ahead = 4},
				       .max_image_bytes = 1 << 20,
				       .max_index_bytes = 1 << 20};
	struct err e = ERR_INIT;

	arena_init(&o->arena, 1 << 20);
	o->filters = (struct codec_rules){0};
	o->quants = (struct codec_quant_rules){0};
	if (codec_rule_add(&o->arena, filter, &o->filters, &e) < 0)
		fail_msg("%s", e.msg);
	opts.policy = (struct plan_policy){.rules = &o->filters, .quant = &o->quants};
	if (nc_view_open(&o->f.base, &opts, &o->v, &e) < 0)
		fail_msg("%s", e.msg);
}

/* open_it - 50 x 40 elements in chunks of 20 x 30, chunk 2 absent, with one rule. */
static void open_it(struct opened *o, bool filtered, const char *filter, uint64_t cache)
{
	static const uint64_t shape[2] = {50, 40}, chunk[2] = {20, 30};

	ncf_init(&o->f, 2, shape, chunk);
	if (filtered)
		ncf_deflate(&o->f, false);
	for (uint64_t l = 0; l < o->f.a.n_chunks; l++)
		if (l != 2)
			ncf_store(&o->f, l);
	view_it(o, filter, cache);
}

static void close_it(struct opened *o)
{
	o->v->ops->close(o->v);
	arena_release(&o->arena);
	ncf_release(&o->f);
}

/* take - n bytes of the file at off, fewer at its end. Returns what reading gave. */
static int take(struct opened *o, uint64_t off, size_t n, uint8_t *out, struct err *e)
{
	uint8_t *room = malloc(n);
	struct span s;
	int rc;

	assert_non_null(room);
	rc = o->v->ops->read(o->v, 2, 0, off, n, room, &s, e);
	if (rc == 0) {
		if (s.mem)
			memcpy(out, s.mem, s.len);
		else if (s.len > 0)
			assert_int_equal(pread(s.fd, out, s.len, (off_t)s.off), s.len);
		memset(out + s.len, 0, s.zeros);
		rc = (int)(s.len + s.zeros);
		span_done(&s);
	}
	free(room);
	return rc;
}

/* whole - the file. New. */
static uint8_t *whole(struct opened *o, uint64_t *ret_size)
{
	struct view_attr at;
	struct err e = ERR_INIT;
	uint8_t *all;

	if (o->v->ops->getattr(o->v, 2, &at, &e) < 0 || at.unknown)
		fail_msg("%s", e.msg);
	all = malloc(at.size);
	assert_non_null(all);
	for (uint64_t off = 0; off < at.size; off += 1000)
		if (take(o, off, (size_t)u64_min(1000, at.size - off), all + off, &e) < 0)
			fail_msg("%s", e.msg);
	*ret_size = at.size;
	return all;
}

/* is_right - libhdf5 reads the elements through these filters (0 ends them). */
static void is_right(struct opened *o, int a, int b)
{
	auto_hid hid_t fapl = ncf_core(false), file = -1, set = -1, dcpl = -1;
	const int want[] = {a, b};
	int32_t got[50 * 40];
	uint64_t size;
	uint8_t *all = whole(o, &size);

	assert_true(H5Pset_file_image(fapl, all, size) >= 0);
	file = H5Fopen("copy", H5F_ACC_RDONLY, fapl);
	set = H5Dopen2(file, "v", H5P_DEFAULT);
	dcpl = H5Dget_create_plist(set);
	assert_int_equal(H5Pget_nfilters(dcpl), (a != 0) + (b != 0));
	for (unsigned i = 0; i < 2 && want[i]; i++) {
		unsigned flags, config;
		size_t n = 0;

		assert_int_equal(H5Pget_filter2(dcpl, i, &flags, &n, NULL, 0, NULL, &config),
				 want[i]);
	}
	assert_true(H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
	for (uint64_t k = 0; k < 50 * 40; k++) {
		bool absent = k / 40 / 20 == 1 && k % 40 < 30;

		assert_int_equal(got[k], absent ? FILL : ncf_value(k));
	}
	free(all);
}

static void test_chains(void **state)
{
	struct opened o;

	(void)state;
	for (int k = 0; k < 4; k++) {
		open_it(&o, k % 2, "shuffle|deflate,9", k < 2 ? 1 << 20 : 0);
		assert_int_equal(o.v->ops->plan(o.v, 0)->kind, k % 2 ? PLAN_PASS : PLAN_ENCODE);
		is_right(&o, CODEC_SHUFFLE, CODEC_DEFLATE);
		close_it(&o);
		open_it(&o, k % 2, "deflate,2", k < 2 ? 1 << 20 : 0);
		assert_int_equal(o.v->ops->plan(o.v, 0)->kind, PLAN_ENCODE);
		is_right(&o, CODEC_DEFLATE, 0);
		close_it(&o);
		open_it(&o, k % 2, "fletcher32|shuffle", 1 << 20);
		is_right(&o, CODEC_FLETCHER32, CODEC_SHUFFLE);
		close_it(&o);
	}
	open_it(&o, true, "v,none", 1 << 20);
	is_right(&o, 0, 0);
	close_it(&o);
}

static void test_note(void **state)
{
	struct opened o;

	(void)state;
	open_it(&o, true, "v,lzma", 1 << 20);
	assert_int_equal(o.v->n_notes, 1);
	assert_string_equal(o.v->notes[0],
			    "/v: is not filtered with lzma: lzma: no HDF5 filter");
	assert_int_equal(o.v->ops->plan(o.v, 0)->kind, PLAN_PASS);
	is_right(&o, CODEC_SHUFFLE, CODEC_DEFLATE);
	close_it(&o);
}

/* A chunk that is damaged is an error, and the others are there; one whose encoding is not as long
 * as when the file was laid out is an error as well. */
static void test_errors(void **state)
{
	struct opened o;
	struct err e = ERR_INIT;
	struct view_attr at;
	uint8_t out[8192];
	int32_t v[600];

	(void)state;
	open_it(&o, true, "deflate", 0);
	o.f.refs[5].len = 3; /* the last one */
	assert_int_equal(o.v->ops->getattr(o.v, 2, &at, &e), 0);
	assert_true(!at.unknown);
	assert_int_equal(take(&o, at.size - 1, 1, out, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "'/v' chunk 2.1: "));
	assert_int_equal(take(&o, at.size - 2, 1, out, &e), 1);
	close_it(&o);

	open_it(&o, false, "deflate", 0);
	assert_int_equal(o.v->ops->getattr(o.v, 2, &at, &e), 0);
	assert_true(take(&o, at.size - 5000, 5000, out, &e) > 0);
	memset(v, 0, sizeof(v));
	assert_int_equal(pwrite(o.f.fd, v, sizeof(v), (off_t)o.f.refs[5].off), 600 * 4);
	assert_int_equal(take(&o, at.size - 1000, 1, out, &e), 1); /* pushes the last one out */
	assert_int_equal(take(&o, at.size - 1, 1, out, &e), -EIO);
	assert_non_null(strstr(e.msg, "'/v' chunk 2.1: encoding produced "));
	close_it(&o);
}

/* The same for a chunk whose size only the index has. */
static void test_forgotten(void **state)
{
	static const uint64_t shape = 1280000, chunk = 64;
	static const int32_t zeros[64];
	struct opened o;
	struct err e = ERR_INIT;
	struct view_attr at;
	uint64_t first;
	uint8_t out[1];

	(void)state;
	ncf_init(&o.f, 1, &shape, &chunk);
	for (uint64_t l = 0; l < o.f.a.n_chunks; l++)
		ncf_store(&o.f, l);
	view_it(&o, "deflate", 0);
	assert_int_equal(o.v->ops->getattr(o.v, 2, &at, &e), 0);
	if (take(&o, at.size - 1, 1, out, &e) != 1)
		fail_msg("%s", e.msg);
	assert_int_equal(pwrite(o.f.fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	/* the first page that cannot be read is where the data begin */
	for (first = 4096; first < at.size; first += 4096) {
		int rc = take(&o, first, 1, out, &e);

		if (rc < 0)
			break;
	}
	assert_true(first < at.size);
	assert_non_null(strstr(e.msg, "'/v' chunk 0: its encoded length differs from before"));
	close_it(&o);
}

/* stored_by_library - the parameters of a filter of its own in a dataset like a. */
static size_t stored_by_library(const struct ds_array *a, int id, unsigned n, const unsigned *v,
				unsigned *ret)
{
	auto_hid hid_t fapl = ncf_core(false);
	auto_hid hid_t file = H5Fcreate("asked", H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
	auto_hid hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), space = -1, set = -1, made = -1;
	hsize_t len[] = {100, 80}, chunk[] = {a->chunk[0], a->chunk[1]};
	unsigned flags, config;
	size_t room = 32;

	space = H5Screate_simple(2, len, NULL);
	assert_true(H5Pset_chunk(dcpl, 2, chunk) >= 0);
	assert_true(H5Pset_fill_value(dcpl, H5T_NATIVE_INT32, a->fill) >= 0);
	assert_true(H5Pset_filter(dcpl, id, H5Z_FLAG_MANDATORY, n, v) >= 0);
	set = H5Dcreate2(file, "v", H5T_STD_I32LE, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	assert_true(set >= 0);
	made = H5Dget_create_plist(set);
	assert_true(H5Pget_filter_by_id2(made, id, &flags, &room, ret, 0, NULL, &config) >= 0);
	return room;
}

static enum nc_agreed agree(const struct ds_array *a, const struct codec_array *as,
			    const struct codec_chain *chain)
{
	enum nc_agreed said;

	h5_enter();
	said = nc_filters_agree(a, as, chain);
	h5_leave();
	return said;
}

static void test_agree(void **state)
{
	static const uint64_t shape[2] = {50, 40}, chunk[2] = {20, 30};
	static const unsigned szip[] = {H5_SZIP_NN_OPTION_MASK, 16};
	static const unsigned scale[] = {H5Z_SO_INT, 0};
	const struct {
		int id;
		unsigned n;
		const unsigned *v;
	} rows[] = {
		{CODEC_SZIP, 2, szip}, {CODEC_SCALEOFFSET, 2, scale}, {CODEC_NBIT, 0, NULL}};
	struct codec_spec specs[2] = {{.h5_id = CODEC_SHUFFLE, .name = ""}, {.name = ""}};
	const struct codec_chain two = {2, specs}, one = {1, specs + 1};
	struct codec_array as;
	struct ncf f;

	(void)state;
	ncf_init(&f, 2, shape, chunk);
	plan_elements(&f.a, &as);
	as.fill = f.a.fill;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned v[32];

		if (H5Zfilter_avail(rows[i].id) <= 0)
			continue;
		specs[1].h5_id = (uint32_t)rows[i].id;
		specs[1].params = v;
		specs[1].n_params =
			(uint32_t)stored_by_library(&f.a, rows[i].id, rows[i].n, rows[i].v, v);
		assert_int_equal(agree(&f.a, &as, &one), NC_AGREES);
		assert_int_equal(agree(&f.a, &as, &two), NC_AGREES);
		v[specs[1].n_params - 1] ^= 4;
		assert_int_not_equal(agree(&f.a, &as, &one), NC_AGREES);
		v[specs[1].n_params - 1] ^= 4;
		specs[1].n_params--;
		assert_int_not_equal(agree(&f.a, &as, &one), NC_AGREES);
	}
	f.a.type = (struct dtype){.kind = DT_OPAQUE, .size = 4};
	assert_int_not_equal(agree(&f.a, &as, &one), NC_AGREES);
	as.rank = 0;
	assert_int_not_equal(agree(&f.a, &as, &one), NC_AGREES);
	ncf_release(&f);
}

/* A file with szip whose parameters the library would store itself passes. */
static void test_own_filters_pass(void **state)
{
	static const uint64_t shape[2] = {50, 40}, chunk[2] = {20, 30};
	static const unsigned szip[] = {H5_SZIP_NN_OPTION_MASK, 16};
	const struct plan_policy keep = {.filter = PLAN_KEEP};
	struct codec_spec spec = {.h5_id = CODEC_SZIP, .name = ""};
	struct nc_model m = {0};
	struct plan p;
	unsigned v[32];
	struct ncf f;

	(void)state;
	if (H5Zfilter_avail(CODEC_SZIP) <= 0)
		skip();
	ncf_init(&f, 2, shape, chunk);
	f.a.uniform = true;
	spec.params = v;
	spec.n_params = (uint32_t)stored_by_library(&f.a, CODEC_SZIP, 2, szip, v);
	f.a.chain = (struct codec_chain){1, &spec};
	m.ds = &f.base.ds;
	arena_init(&m.arena, 1 << 20);
	assert_int_equal(nc_filters_plan(&m, 0, &keep, &p, NULL), 0);
	assert_int_equal(p.kind, PLAN_PASS);
	v[1] = 8;
	assert_int_equal(nc_filters_plan(&m, 0, &keep, &p, NULL), 0);
	assert_string_equal(p.reason,
			    "szip passes through"); /* set_local keeps what it is given */
	v[2] = 9;
	assert_int_equal(nc_filters_plan(&m, 0, &keep, &p, NULL), 0);
	assert_string_equal(p.reason,
			    "the HDF5 library would set different parameters for a filter");
	assert_int_equal(p.kind, PLAN_DECODE);
	arena_release(&m.arena);
	ncf_release(&f);
}

static void test_quantised(void **state)
{
	const struct codec_quant q = {.mode = CODEC_QUANT_BITROUND, .digits = 4};
	auto_hid hid_t fapl = ncf_core(false), file = -1, set = -1, at = -1;
	struct opened o;
	struct err e = ERR_INIT;
	float got[50 * 40], want;
	uint64_t size;
	uint8_t *all;
	int bits = 0;

	(void)state;
	open_it(&o, true, "deflate", 1 << 20);
	o.v->ops->close(o.v);
	o.f.a.type.kind = DT_FLOAT;
	o.f.a.fill_defined = true;
	assert_int_equal(codec_quant_rule_add(&o.arena, "bitround,4", &o.quants, &e), 0);
	const struct nc_view_options opts = {
		.name = "store.nc",
		.policy = {.rules = &o.filters, .quant = &o.quants},
		.max_image_bytes = 1 << 20,
		.max_index_bytes = 1 << 20};

	assert_int_equal(nc_view_open(&o.f.base, &opts, &o.v, &e), 0);
	all = whole(&o, &size);
	assert_true(H5Pset_file_image(fapl, all, size) >= 0);
	file = H5Fopen("copy", H5F_ACC_RDONLY, fapl);
	set = H5Dopen2(file, "v", H5P_DEFAULT);
	at = H5Aopen(set, "_QuantizeBitRoundNumberOfSignificantBits", H5P_DEFAULT);
	assert_true(at >= 0 && H5Aread(at, H5T_NATIVE_INT, &bits) >= 0);
	assert_int_equal(bits, 4);
	assert_true(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
	for (uint64_t k = 0; k < 50 * 40; k++) {
		bool absent = k / 40 / 20 == 1 && k % 40 < 30;
		int32_t plain = absent ? FILL : ncf_value(k);

		memcpy(&want, &plain, 4);
		codec_quantize(&q, 4, false, o.f.a.fill, (uint8_t *)&want, 1);
		assert_memory_equal(&want, &got[k], 4);
	}
	free(all);
	close_it(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_note),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_forgotten),
		cmocka_unit_test(test_agree),
		cmocka_unit_test(test_quantised),
		cmocka_unit_test(test_own_filters_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
