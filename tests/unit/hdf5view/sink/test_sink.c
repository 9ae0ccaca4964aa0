/* SPDX-License-Identifier: BSD-3-Clause */
/* A netCDF-4 file becomes another dataset: new, changed and unchanged objects. */
#include "tests/unit/hdf5view/sink/sink_h5_util.h"

static const uint32_t level[1] = {4};

/* first - a file with a bit of everything that is used below. */
static void first(struct sk *k)
{
	static const int32_t times[3] = {10, 11, 12}, lats[2] = {-45, 45};
	static const int32_t temps[6] = {1, 2, 3, 4, 5, 6};
	static const int16_t scale = 7;
	static const struct codec_spec deflate = {
		.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""};
	struct nc_fake *f;
	struct err e = ERR_INIT;
	uint32_t g, time, lat, t, y, v, txt;

	sk_new(k);
	f = sk_begin(k);
	g = nf_group(f, 0, "g");
	time = nf_dim(f, 0, "time", 3, true);
	lat = nf_dim(f, 0, "lat", 2, false);
	t = nf_array(f, 0, "time", nf_i4, 2, 1, NF_DIM(time));
	y = nf_array(f, 0, "lat", nf_i4, 0, 1, NF_DIM(lat));
	v = nf_array(f, g, "v", nf_i4, 1, 2, NF_DIM(time, lat));
	txt = nf_array(f, 0, "note", nf_str, 0, 1, NF_DIM(lat));
	f->arrays[v].chain = (struct codec_chain){1, &deflate};
	nf_attr(f, 0, v, nf_text(f, "units", "K", DT_STRING));
	nf_attr(f, 0, v, nf_values("scale", nf_i2, 1, &scale));
	nf_attr(f, 0, DS_NONE, nf_text(f, "title", "first", DT_STRING));
	nf_attr(f, g, DS_NONE, nf_text(f, "inside", "g", DT_STRING));
	sk_start(k);
	SK_OK(k->sink->ops->add_group(k->sink, g, &e));
	sk_add(k, t);
	sk_add(k, y);
	sk_add(k, v);
	sk_add(k, txt);
	SK_OK(k->sink->ops->dims(k->sink, &e));
	SK_OK(k->sink->ops->set_attr(k->sink, 0, DS_NONE, f->groups[0].attrs, &e));
	sk_put(k, t, 0, times, 8);
	sk_put(k, t, 1, (const int32_t[2]){12, 0}, 8);
	sk_put(k, y, 0, lats, 8);
	for (unsigned i = 0; i < 3; i++)
		sk_put(k, v, i, temps + 2 * i, 8);
	sk_put(k, txt, 0, "\1\0\0\0a\2\0\0\0bc", 11);
	sk_end(k, true);
}

static void test_new(void **state)
{
	struct sk k;
	struct source *s;
	int32_t got[6];
	uint32_t v;

	(void)state;
	first(&k);
	sk_ints(&k, "/g/v", got, 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(got[i], i + 1);
	sk_ints(&k, "/time", got, 3);
	assert_int_equal(got[2], 12);
	s = sk_source(k.path);
	v = sk_array(s, "/g/v");
	assert_int_not_equal(v, DS_NONE);
	assert_string_equal(s->ds.dims[s->ds.arrays[v].dims[0]].name, "time");
	assert_true(s->ds.dims[s->ds.arrays[v].dims[0]].unlimited);
	assert_string_equal(s->ds.dims[s->ds.arrays[v].dims[1]].name, "lat");
	assert_false(s->ds.dims[s->ds.arrays[v].dims[1]].unlimited);
	assert_int_equal(s->ds.arrays[v].chain.n, 1);
	assert_int_equal(s->ds.n_notes, 0);
	source_close(s);
	sk_remove(&k);
}

/* second - the same dataset as first's, to be changed by the caller; ordinals in its order. */
enum { TIME, LAT, V, NOTE, FIRST_ARRAYS };

static struct nc_fake *second(struct sk *k, uint64_t times)
{
	static const struct codec_spec deflate = {
		.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""};
	static const int16_t scale = 7;
	struct nc_fake *f = sk_begin(k);
	uint32_t g = nf_group(f, 0, "g"), time = nf_dim(f, 0, "time", times, true);
	uint32_t lat = nf_dim(f, 0, "lat", 2, false);

	(void)nf_array(f, 0, "time", nf_i4, 2, 1, NF_DIM(time));
	(void)nf_array(f, 0, "lat", nf_i4, 0, 1, NF_DIM(lat));
	(void)nf_array(f, g, "v", nf_i4, 1, 2, NF_DIM(time, lat));
	(void)nf_array(f, 0, "note", nf_str, 0, 1, NF_DIM(lat));
	f->arrays[V].chain = (struct codec_chain){1, &deflate};
	nf_attr(f, 0, V, nf_text(f, "units", "K", DT_STRING));
	nf_attr(f, 0, V, nf_values("scale", nf_i2, 1, &scale));
	return f;
}

/* ---- nothing has happened ---- */

static uint64_t sum_of(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint64_t h = 0xcbf29ce484222325u;

	assert_non_null(f);
	for (int c; (c = getc(f)) != EOF;)
		h = (h ^ (uint64_t)c) * 0x100000001b3u;
	(void)fclose(f);
	return h;
}

static int refuse(void *arg, struct err *e)
{
	(void)arg;
	return err_set(e, -ECANCELED, "not wanted");
}

static void test_no_commit(void **state)
{
	struct err e = ERR_INIT;
	struct sk k;
	uint64_t before;

	(void)state;
	first(&k);
	before = sum_of(k.path);
	for (int gated = 0; gated < 2; gated++) {
		(void)second(&k, 3);
		sk_start(&k);
		SK_OK(k.sink->ops->remove_array(k.sink, sk_array(k.real, "/lat"), &e));
		sk_put(&k, V, 1, (const int32_t[2]){8, 9}, 8);
		if (gated)
			assert_int_equal(k.sink->ops->commit(k.sink, refuse, NULL, &e),
					 -ECANCELED);
		sk_end(&k, false);
		assert_true(sum_of(k.path) == before);
	}
	sk_remove(&k);
}

/* ---- chunks ---- */

static void test_chunks(void **state)
{
	/* zlib streams of "stored" blocks are as good as any */
	static const uint8_t stored[] = {0x78, 0x01, 0x01, 8, 0, 0xf7, 0xff, 1, 0, 0,
					 0,    2,    0,    0, 0, 0,    0x18, 0, 4};
	struct sink_chunk c = {.stored = true, .p = stored, .len = sizeof(stored)};
	struct sink_array t;
	struct err e = ERR_INIT;
	struct sk k;
	int32_t got[10];

	(void)state;
	first(&k);
	(void)second(&k, 5);
	sk_start(&k);
	SK_OK(k.sink->ops->resize(k.sink, TIME, &e));
	SK_OK(k.sink->ops->target(k.sink, V, &t, &e));
	assert_true(t.takes_stored && t.chain.n == 1 && t.chunk[0] == 1 && t.chunk[1] == 2);
	SK_OK(k.sink->ops->put(k.sink, V, 0, &c, &e));   /* as it is */
	sk_put(&k, V, 4, (const int32_t[2]){50, 51}, 8); /* beyond what the dataset has */
	SK_OK(k.sink->ops->drop(k.sink, V, 1, &e));
	SK_OK(k.sink->ops->drop(k.sink, V, 3, &e)); /* never was */
	c = (struct sink_chunk){.p = stored, .len = 7};
	assert_int_equal(k.sink->ops->put(k.sink, V, 0, &c, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "/g/v"));
	c.len = 8;
	assert_int_equal(k.sink->ops->put(k.sink, V, 5, &c, &e), -EINVAL);
	assert_int_equal(k.sink->ops->put(k.sink, V, UINT64_MAX, &c, &e), -EINVAL);
	c = (struct sink_chunk){.p = (const uint8_t *)"\377\377\377\377x", .len = 5};
	assert_int_equal(k.sink->ops->put(k.sink, NOTE, 0, &c, &e), -EINVAL);
	SK_OK(k.sink->ops->drop(k.sink, NOTE, 0, &e));
	sk_end(&k, true);
	sk_ints(&k, "/g/v", got, 10);
	assert_memory_equal(got, ((int32_t[10]){1, 2, 0, 0, 5, 6, 0, 0, 50, 51}), 40);
	sk_ints(&k, "/time", got, 5);
	assert_memory_equal(got, ((int32_t[5]){10, 11, 12, 0, 0}), 20);
	sk_remove(&k);
}

/* ---- dimensions ---- */

static uint64_t scale_of(struct source *s, const char *dim)
{
	struct h5_source *h = CONTAINER_OF(s, struct h5_source, g.base);

	for (uint32_t d = 0; d < s->ds.n_dims; d++)
		if (strcmp(s->ds.dims[d].name, dim) == 0)
			return h->dims[d].addr;
	return UINT64_MAX;
}

/* uses - entries of a scale's REFERENCE_LIST; -1: there is no such dataset. */
static int uses(const struct sk *k, const char *name)
{
	hid_t f = sk_h5(k);
	auto_hid hid_t set = -1, at = -1, space = -1;
	int n = -1;

	if (H5Lexists(f, name, H5P_DEFAULT) > 0)
		set = H5Dopen2(f, name, H5P_DEFAULT);
	if (set >= 0 && H5Aexists(set, "REFERENCE_LIST") > 0) {
		at = H5Aopen(set, "REFERENCE_LIST", H5P_DEFAULT);
		space = H5Aget_space(at);
		n = (int)H5Sget_simple_extent_npoints(space);
	} else if (set >= 0) {
		n = 0;
	}
	h5_id_close(&space);
	h5_id_close(&at);
	h5_id_close(&set);
	at = set = space = -1;
	assert_true(H5Fclose(f) >= 0);
	return n;
}

/* test_lost_variable - a coordinate variable goes; its dimension stays, under its number. */
static void test_lost_variable(void **state)
{
	struct err e = ERR_INIT;
	struct nc_fake *f;
	struct source *s;
	struct sk k;
	uint32_t lat;

	(void)state;
	first(&k);
	assert_int_equal(uses(&k, "/lat"), 2);
	f = second(&k, 3);
	f->arrays[LAT] = f->arrays[NOTE];
	f->base.ds.n_arrays = NOTE;
	sk_start(&k);
	SK_OK(k.sink->ops->remove_array(k.sink, sk_array(k.real, "/lat"), &e));
	SK_OK(k.sink->ops->dims(k.sink, &e));
	sk_end(&k, true);
	assert_int_equal(uses(&k, "/lat"), 2);
	assert_int_equal(uses(&k, "/time"), 1);
	s = sk_source(k.path);
	assert_int_equal(sk_array(s, "/lat"), DS_NONE);
	lat = s->ds.arrays[sk_array(s, "/g/v")].dims[1];
	assert_string_equal(s->ds.dims[lat].name, "lat");
	assert_true(scale_of(s, "lat") != UINT64_MAX);
	assert_int_equal(CONTAINER_OF(s, struct h5_source, g.base)->dims[lat].dimid, 1);
	assert_int_equal(s->ds.n_notes, 0);
	source_close(s);

	/* and comes back */
	f = second(&k, 3);
	sk_start(&k);
	sk_add(&k, LAT);
	SK_OK(k.sink->ops->dims(k.sink, &e));
	sk_end(&k, true);
	assert_int_equal(uses(&k, "/lat"), 2);
	s = sk_source(k.path);
	lat = s->ds.arrays[sk_array(s, "/g/v")].dims[1];
	assert_int_equal(s->ds.arrays[sk_array(s, "/lat")].dims[0], lat);
	assert_int_equal(CONTAINER_OF(s, struct h5_source, g.base)->dims[lat].dimid, 1);
	source_close(s);
	sk_remove(&k);
}

/* test_fixed_grows - what cannot grow is made again, with what it had. */
static void test_fixed_grows(void **state)
{
	static const uint64_t five[] = {3, 5}, one[] = {5};
	struct err e = ERR_INIT;
	struct nc_fake *f;
	struct source *s;
	struct sk k;
	int32_t got[15];
	uint32_t v;

	(void)state;
	first(&k);
	f = second(&k, 3);
	f->dims[1].len = 5;
	f->arrays[V].shape = five;
	f->arrays[LAT].shape = f->arrays[NOTE].shape = one;
	for (uint32_t i = 0; i < FIRST_ARRAYS; i++)
		SK_OK(ds_array_finish(&f->base.ds, &f->arrays[i], 1 << 20, &e));
	sk_start(&k);
	SK_OK(k.sink->ops->dims(k.sink, &e));
	SK_OK(k.sink->ops->resize(k.sink, LAT, &e));
	SK_OK(k.sink->ops->resize(k.sink, V, &e));
	SK_OK(k.sink->ops->resize(k.sink, NOTE, &e));
	sk_put(&k, V, 1, (const int32_t[2]){33, 34}, 8);
	sk_end(&k, true);
	sk_ints(&k, "/g/v", got, 15);
	assert_memory_equal(got, ((int32_t[15]){1, 2, 33, 34, 0, 3, 4, 0, 0, 0, 5, 6, 0, 0, 0}),
			    60);
	sk_ints(&k, "/lat", got, 5);
	assert_memory_equal(got, ((int32_t[5]){-45, 45, 0, 0, 0}), 20);
	assert_int_equal(uses(&k, "/lat"), 2);
	assert_int_equal(uses(&k, "/time"), 1);
	s = sk_source(k.path);
	v = sk_array(s, "/g/v");
	assert_true(s->ds.dims[s->ds.arrays[v].dims[1]].unlimited);
	assert_int_equal(s->ds.arrays[v].n_attrs, 2);
	assert_int_equal(s->ds.arrays[v].chain.n, 1);
	assert_int_equal(ds_attr_find(s->ds.arrays[v].attrs, 2, "scale")->type.size, 2);
	source_close(s);
	sk_remove(&k);
}

/* test_groups - a group goes, and who it used knows. */
static void test_groups(void **state)
{
	struct err e = ERR_INIT;
	struct nc_fake *f;
	struct sk k;

	(void)state;
	first(&k);
	f = second(&k, 3);
	f->arrays[V] = f->arrays[NOTE];
	f->base.ds.n_arrays = NOTE;
	f->base.ds.n_groups = 1;
	sk_start(&k);
	SK_OK(k.sink->ops->remove_array(k.sink, sk_array(k.real, "/g/v"), &e));
	SK_OK(k.sink->ops->remove_group(k.sink, 1, &e));
	sk_end(&k, true);
	assert_int_equal(uses(&k, "/time"), 0);
	assert_int_equal(uses(&k, "/lat"), 1);
	assert_int_equal(uses(&k, "/g"), -1);
	sk_remove(&k);
}

/* test_rename - a variable of another name is in another group, with what it had. */
static void test_rename(void **state)
{
	struct err e = ERR_INIT;
	struct nc_fake *f;
	struct source *s;
	struct sk k;
	int32_t got[6];
	uint32_t w;

	(void)state;
	first(&k);
	f = second(&k, 3);
	f->arrays[V].name = "w";
	f->arrays[V].group = 0;
	sk_start(&k);
	SK_OK(k.sink->ops->rename_array(k.sink, sk_array(k.real, "/g/v"), V, &e));
	SK_OK(k.sink->ops->dims(k.sink, &e));
	sk_end(&k, true);
	sk_ints(&k, "/w", got, 6);
	assert_int_equal(got[5], 6);
	assert_int_equal(uses(&k, "/time"), 1);
	assert_int_equal(uses(&k, "/lat"), 2);
	s = sk_source(k.path);
	w = sk_array(s, "/w");
	assert_int_equal(sk_array(s, "/g/v"), DS_NONE);
	assert_string_equal(s->ds.dims[s->ds.arrays[w].dims[0]].name, "time");
	assert_int_equal(s->ds.arrays[w].n_attrs, 2);
	source_close(s);
	sk_remove(&k);
}

/* ---- attributes ---- */

static int set(struct sk *k, uint32_t array, struct err *e)
{
	const struct ds_array *a = &k->now->arrays[array];

	return k->sink->ops->set_attr(k->sink, a->group, array, &a->attrs[a->n_attrs - 1], e);
}

static void test_attrs(void **state)
{
	static const int64_t six = 6, large = 1 << 20;
	static const double tenth = .1;
	struct err e = ERR_INIT;
	struct nc_fake *f;
	const struct ds_attr *got;
	struct source *s;
	struct sk k;
	uint32_t v;

	(void)state;
	for (int step = 0; step < 3; step++) {
		if (step == 0)
			first(&k);
		f = second(&k, 3);
		f->arrays[V].n_attrs = 0;
		nf_attr(f, 0, V,
			step < 2 ? nf_values("scale", nf_i8, 1, step ? &large : &six)
				 : nf_values("scale", nf_f8, 1, &tenth));
		sk_start(&k);
		SK_OK(set(&k, V, &e));
		SK_OK(k.sink->ops->remove_attr(k.sink, 1, V, "units", &e));
		sk_end(&k, true);
		s = sk_source(k.path);
		v = sk_array(s, "/g/v");
		got = ds_attr_find(s->ds.arrays[v].attrs, s->ds.arrays[v].n_attrs, "scale");
		assert_int_equal(s->ds.arrays[v].n_attrs, 1);
		/* the type of the file as long as that can say it */
		assert_int_equal(got->type.size, step == 0 ? 2 : 8);
		assert_int_equal(got->type.kind, step == 2 ? DT_FLOAT : DT_INT);
		source_close(s);
	}
	sk_remove(&k);
}

static void test_refused_attrs(void **state)
{
	static const int32_t fill = 5;
	struct err e = ERR_INIT;
	struct nc_fake *f;
	struct sk k;

	(void)state;
	first(&k);
	f = second(&k, 3);
	nf_attr(f, 0, V, nf_text(f, "DIMENSION_LIST", "x", DT_STRING));
	nf_attr(f, 0, LAT, nf_values("_FillValue", nf_i4, 1, &fill));
	f->arrays[LAT].fill = (const uint8_t *)&fill;
	sk_start(&k);
	assert_int_equal(set(&k, V, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "DIMENSION_LIST"));
	assert_int_equal(set(&k, LAT, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "fill value"));
	sk_end(&k, false);
	sk_remove(&k);
}

/* ---- what cannot be ---- */

static void test_holds(void **state)
{
	static const struct dtype deep = {.kind = DT_INT, .size = 4};
	struct err e = ERR_INIT;
	struct nc_fake *f = nf_new();
	uint32_t dims[33], x = nf_dim(f, 0, "x", 1, false), a;

	(void)state;
	a = nf_array(f, 0, "v", nf_i4, 0, 1, NF_DIM(x));
	nf_finish(f);
	SK_OK(hdf5_sink_holds(&f->base.ds, &e));
	f->arrays[a].name = "a/b";
	assert_int_equal(hdf5_sink_holds(&f->base.ds, &e), -EINVAL);
	f->arrays[a].name = " v";
	assert_int_equal(hdf5_sink_holds(&f->base.ds, &e), -EINVAL);
	f->arrays[a].name = "v";
	nf_attr(f, 0, a, nf_text(f, "NAME", "x", DT_STRING));
	assert_int_equal(hdf5_sink_holds(&f->base.ds, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.msg, "'NAME'"));
	f->arrays[a].n_attrs = 0;
	for (int i = 0; i < 33; i++)
		dims[i] = x;
	(void)nf_array(f, 0, "w", deep, 0, 33, dims);
	nf_finish(f);
	assert_int_equal(hdf5_sink_holds(&f->base.ds, &e), -EOPNOTSUPP);
	nf_free(f);
}

static void test_open(void **state)
{
	struct err e = ERR_INIT;
	struct sink *sink = NULL;
	struct source *s;
	char other[512];
	struct sk k;

	(void)state;
	first(&k);
	assert_int_equal(hdf5_create(k.path, 0, &e), -EEXIST);
	s = sk_source(k.path);
	/* another file of the same name */
	(void)snprintf(other, sizeof(other), "cp %s %s.b && mv %s.b %s", k.path, k.path, k.path,
		       k.path);
	assert_int_equal(system(other), 0);
	assert_int_equal(hdf5_sink_open(k.path, s, k.dir_fd, &sink, &e), -ESTALE);
	source_close(s);
	sk_remove(&k);
}

/* test_hold - a source whose file is being changed by us says nothing of it. */
static void test_hold(void **state)
{
	struct err e = ERR_INIT;
	struct source *s;
	struct sk k;
	FILE *f;

	(void)state;
	first(&k);
	s = sk_source(k.path);
	source_hold(s, true);
	f = fopen(k.path, "ab");
	assert_non_null(f);
	assert_int_equal(fputc(0, f), 0);
	assert_int_equal(fclose(f), 0);
	SK_OK(source_check(s, &e));
	source_hold(s, false);
	assert_int_equal(source_check(s, &e), -ESTALE);
	source_close(s);
	sk_remove(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),           cmocka_unit_test(test_no_commit),
		cmocka_unit_test(test_chunks),        cmocka_unit_test(test_lost_variable),
		cmocka_unit_test(test_fixed_grows),   cmocka_unit_test(test_groups),
		cmocka_unit_test(test_rename),        cmocka_unit_test(test_attrs),
		cmocka_unit_test(test_refused_attrs), cmocka_unit_test(test_holds),
		cmocka_unit_test(test_open),          cmocka_unit_test(test_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
