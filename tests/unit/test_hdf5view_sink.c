/* A netCDF-4 file becomes another dataset: what is new, what changes, what stays. */
#include "tests/unit/sink_h5_util.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
