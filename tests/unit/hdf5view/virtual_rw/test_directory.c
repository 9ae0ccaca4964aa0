/* SPDX-License-Identifier: BSD-3-Clause */
/* Which object of a dataset a path in its virtual file means. */
#include "hdf5view/hdf5view.h"
#include "tests/unit/hdf5view/nc_sample.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_paths(void **state)
{
	const struct nc_view_options o = {.name = "x.nc",
					  .io = {.cache_bytes = 1 << 20},
					  .max_image_bytes = (uint64_t)64 << 20,
					  .keep_going = true};
	struct nc_fake *f = nf_new();
	uint32_t g = nf_group(f, 0, "+plus"), h = nf_group(f, g, "h");
	uint32_t x = nf_dim(f, 0, "x", 4, false), y = nf_dim(f, h, "y", 3, false);
	uint32_t ax = nf_array(f, 0, "x", nf_i4, 0, 1, NF_DIM(x));
	uint32_t deep = nf_array(f, h, "v", nf_i4, 0, 1, NF_DIM(y));
	uint32_t odd = nf_array(f, h, "y", nf_i4, 0, 1, NF_DIM(x)); /* not the dimension's */
	uint32_t slash = nf_array(f, g, "a%41", nf_i4, 0, 1, NF_DIM(x));
	struct err e = ERR_INIT;
	struct view *v;

	(void)state;
	nf_finish(f);
	if (nc_view_open(&f->base, &o, &v, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(nc_view_array(v, "/x"), ax);
	assert_int_equal(nc_view_array(v, "/_%2Bplus/h/v"), deep);
	assert_int_equal(nc_view_array(v, "/_%2Bplus/h/y"), odd);
	assert_int_equal(nc_view_array(v, "/_%2Bplus/a%2541"), slash);
	assert_int_equal(nc_view_array(v, "/+plus/h/v"), DS_NONE);
	assert_int_equal(nc_view_array(v, "/_%2Bplus/h"), DS_NONE);
	assert_int_equal(nc_view_array(v, "/_%2Bplus/h/"), DS_NONE);
	assert_int_equal(nc_view_array(v, "/"), DS_NONE);
	assert_int_equal(nc_view_array(v, ""), DS_NONE);
	assert_int_equal(nc_view_group(v, "/"), 0);
	assert_int_equal(nc_view_group(v, "/_%2Bplus"), g);
	assert_int_equal(nc_view_group(v, "/_%2Bplus/h"), h);
	assert_int_equal(nc_view_group(v, "/_%2Bplus/h/v"), DS_NONE);
	assert_int_equal(nc_view_group(v, "/h"), DS_NONE);
	assert_int_equal(nc_view_dim(v, "/x"), x);
	assert_int_equal(nc_view_dim(v, "/_%2Bplus/h/y"), y);
	assert_int_equal(nc_view_dim(v, "/y"), DS_NONE);
	v->ops->close(v);
	nf_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_paths)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
