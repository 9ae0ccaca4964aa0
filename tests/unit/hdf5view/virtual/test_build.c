/* SPDX-License-Identifier: BSD-3-Clause */
/* The structure of the netCDF file, opened again with libhdf5: dimension scales, types, storage,
 * filters, strings; and that the same dataset gives the same bytes. */
#include "hdf5view/netcdf4/schema.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/unit/hdf5view/nc_sample.h"

#define NOBODYS 40000 /* a filter id without a plugin */
#define MAX ((uint64_t)64 << 20)

static int setup(void **state)
{
	*state = nf_new();
	return 0;
}

static int teardown(void **state)
{
	nf_free(*state);
	return 0;
}

/* opened - the image as libhdf5 sees it; H5Fclose it. */
static hid_t opened(struct nc_fake *f, enum plan_filter filter)
{
	static int serial;
	struct err e = ERR_INIT;
	char name[20];
	auto_hid hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
	hid_t file;

	if (nf_model(f, filter, false, &e) < 0 || nf_build(f, MAX, &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(H5Pset_fapl_core(fapl, 1 << 16, 0) >= 0);
	assert_true(H5Pset_file_image(fapl, f->image.bytes, f->image.len) >= 0);
	(void)snprintf(name, sizeof(name), "image %d", serial++); /* a failed test leaves one */
	file = H5Fopen(name, H5F_ACC_RDONLY, fapl);
	assert_true(file >= 0);
	return file;
}

static void int_attr(hid_t file, const char *path, const char *name, const int *want, size_t n)
{
	int got[8] = {0};
	auto_hid hid_t at = H5Aopen_by_name(file, path, name, H5P_DEFAULT, H5P_DEFAULT);
	auto_hid hid_t space = H5Aget_space(at);

	assert_true(at >= 0);
	assert_int_equal(H5Sget_simple_extent_npoints(space), n);
	assert_true(H5Aread(at, H5T_NATIVE_INT, got) >= 0);
	assert_memory_equal(got, want, n * sizeof(*want));
}

static bool has(hid_t file, const char *path, const char *name)
{
	return H5Aexists_by_name(file, path, name, H5P_DEFAULT) > 0;
}

/* listed - whether `scale` is the only scale of an axis of `set`, as H5DS would look for it. */
static bool listed(hid_t file, const char *set, const char *scale, unsigned int axis)
{
	auto_hid hid_t at =
		H5Aopen_by_name(file, set, "DIMENSION_LIST", H5P_DEFAULT, H5P_DEFAULT);
	auto_hid hid_t type = H5Aget_type(at), space = H5Aget_space(at);
	hvl_t list[4];
	char name[40] = "";

	assert_true(H5Sget_simple_extent_npoints(space) <= 4);
	assert_true(H5Aread(at, type, list) >= 0);
	if (list[axis].len == 1) {
		auto_hid hid_t id =
			H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, list[axis].p);

		assert_true(H5Iget_name(id, name, sizeof(name)) > 0);
	}
	(void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, list);
	return strcmp(name, scale) == 0;
}

/* refers - whether the scale's list has the axis of `set`; the list has n entries. */
static bool refers(hid_t file, const char *set, const char *scale, unsigned int axis, size_t n)
{
	struct {
		hobj_ref_t set;
		int axis, hole;
	} list[8192];
	auto_hid hid_t at =
		H5Aopen_by_name(file, scale, "REFERENCE_LIST", H5P_DEFAULT, H5P_DEFAULT);
	auto_hid hid_t type = H5Aget_type(at), space = H5Aget_space(at);
	auto_hid hid_t own = H5Oopen(file, set, H5P_DEFAULT);
	uint64_t want = nc_h5_address(own);
	bool found = false;

	assert_int_equal(H5Sget_simple_extent_npoints(space), n);
	assert_int_equal(H5Tget_size(type), sizeof(list[0]));
	assert_true(H5Aread(at, type, list) >= 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(list[i].hole, 0);
		found |= list[i].set == want && list[i].axis == (int)axis;
	}
	return found;
}

/* text_is - an attribute is one string of exactly this text, with its NUL. */
static void text_is(hid_t file, const char *path, const char *name, const char *want)
{
	auto_hid hid_t at = H5Aopen_by_name(file, path, name, H5P_DEFAULT, H5P_DEFAULT);
	auto_hid hid_t type = H5Aget_type(at);
	char got[100];

	assert_int_equal(H5Tget_size(type), strlen(want) + 1);
	assert_true(H5Aread(at, type, got) >= 0);
	assert_string_equal(got, want);
}

#define INTS(...) ((const int[]){__VA_ARGS__}), ARRAY_LEN(((const int[]){__VA_ARGS__}))

static void test_scales(void **state)
{
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 3, false), t = nf_dim(f, 0, "t", 2, true);
	uint32_t y = nf_dim(f, 0, "y", 4, false);
	hid_t file;

	(void)nf_array(f, 0, "v", nf_i4, 1, 3, NF_DIM(t, y, x));
	(void)nf_array(f, 0, "x", nf_f8, 0, 1, NF_DIM(x));
	(void)nf_array(f, 0, "t", nf_f8, 0, 2, NF_DIM(t, x));
	(void)nf_array(f, 0, "s", nf_s5, 0, 1, NF_DIM(x));
	file = opened(f, PLAN_KEEP);
	assert_true(listed(file, "v", "/t", 0) && listed(file, "v", "/y", 1));
	assert_true(listed(file, "v", "/x", 2) && listed(file, "s", "/string5", 1));
	assert_true(refers(file, "/v", "t", 0, 1) && refers(file, "/v", "y", 1, 1));
	assert_true(refers(file, "/v", "x", 2, 2) && refers(file, "/s", "x", 0, 2));
	assert_false(refers(file, "/v", "x", 1, 2));
	text_is(file, "x", "CLASS", "DIMENSION_SCALE");
	text_is(file, "x", "NAME", "x");
	text_is(file, "y", "CLASS", "DIMENSION_SCALE");
	text_is(file, "y", "NAME",
		"This is a netCDF dimension but not a netCDF variable.         4");
	assert_false(has(file, "v", "CLASS"));
	int_attr(file, "x", "_Netcdf4Dimid", INTS(0));
	int_attr(file, "t", "_Netcdf4Dimid", INTS(1));
	int_attr(file, "y", "_Netcdf4Dimid", INTS(2));
	int_attr(file, "string5", "_Netcdf4Dimid", INTS(3));
	int_attr(file, "v", "_Netcdf4Coordinates", INTS(1, 2, 0));
	int_attr(file, "t", "_Netcdf4Coordinates", INTS(1, 0));
	int_attr(file, "s", "_Netcdf4Coordinates", INTS(0, 3));
	assert_false(has(file, "t", "DIMENSION_LIST")); /* a scale has no scales */
	(void)H5Fclose(file);
}

/* a dataset's dimensions are numbered group by group, as groups list them. */
static void test_numbers(void **state)
{
	struct nc_fake *f = *state;
	uint32_t g = nf_group(f, 0, "g"), y = nf_dim(f, g, "y", 4, false);
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	hid_t file;

	(void)nf_array(f, g, "v", nf_i4, 1, 2, NF_DIM(y, x));
	(void)nf_array(f, g, "s", nf_s5, 0, 1, NF_DIM(x));
	file = opened(f, PLAN_KEEP);
	int_attr(file, "x", "_Netcdf4Dimid", INTS(0));
	int_attr(file, "g/y", "_Netcdf4Dimid", INTS(1));
	int_attr(file, "string5", "_Netcdf4Dimid", INTS(2));
	int_attr(file, "g/v", "_Netcdf4Coordinates", INTS(1, 0));
	(void)H5Fclose(file);
}

static void test_order(void **state)
{
	static const char *const want[] = {"g", "b", "a", "_complex64", "dim", "z", "v", "c"};
	struct nc_fake *f = *state;
	uint32_t g = nf_group(f, 0, "g"), d;
	char name[40];
	hid_t file;

	(void)nf_group(f, 0, "b");
	(void)nf_group(f, 0, "a");
	d = nf_dim(f, 0, "dim", 3, false);
	(void)nf_array(f, 0, "z", nf_i4, 0, 1, NF_DIM(d));
	(void)nf_array(f, 0, "v", nf_c8, 0, 1, NF_DIM(d));
	(void)nf_array(f, 0, "c", nf_i4, 0, 1, NF_DIM(d));
	(void)nf_array(f, g, "inner", nf_i4, 0, 1, NF_DIM(d));
	file = opened(f, PLAN_KEEP);
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_true(H5Lget_name_by_idx(file, "/", H5_INDEX_CRT_ORDER, H5_ITER_INC, i,
					       name, sizeof(name), H5P_DEFAULT) > 0);
		assert_string_equal(name, want[i]);
	}
	assert_true(H5Lexists(file, "/g/inner", H5P_DEFAULT) > 0);
	(void)H5Fclose(file);
}

/* layout_of - chunk lengths, or rank 0 for contiguous; and the limits of the dataspace. */
static int layout_of(hid_t file, const char *name, hsize_t *chunk, hsize_t *max)
{
	auto_hid hid_t set = H5Dopen2(file, name, H5P_DEFAULT);
	auto_hid hid_t dcpl = H5Dget_create_plist(set), space = H5Dget_space(set);

	assert_true(set >= 0);
	(void)H5Sget_simple_extent_dims(space, NULL, max);
	return H5Pget_layout(dcpl) == H5D_CHUNKED ? H5Pget_chunk(dcpl, 4, chunk) : 0;
}

static void test_storage(void **state)
{
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 3, false), t = nf_dim(f, 0, "t", 2, true);
	uint32_t z = nf_dim(f, 0, "z", 0, false);
	uint32_t a = nf_array(f, 0, "a", nf_i2, 10, 1, NF_DIM(x));
	uint32_t b = nf_array(f, 0, "b", nf_s5, 7, 2, NF_DIM(t, x));
	uint32_t c = nf_array(f, 0, "c", nf_i4, 0, 1, NF_DIM(z));
	uint32_t d = nf_array(f, 0, "d", nf_i4, 0, 0, NULL);
	uint32_t e = nf_array(f, 0, "e", nf_i4, 2, 2, NF_DIM(t, z));
	hsize_t chunk[4] = {0}, max[4] = {0};
	hid_t file = opened(f, PLAN_KEEP);
	const struct nc_var *v;

	assert_int_equal(layout_of(file, "a", chunk, max), 1);
	assert_true(chunk[0] == 10 && max[0] == 10); /* HDF5 wants room for a whole chunk */
	assert_int_equal(layout_of(file, "b", chunk, max), 3);
	assert_true(chunk[0] == 7 && chunk[1] == 3 && chunk[2] == 5);
	assert_true(max[0] == H5S_UNLIMITED && max[1] == 3 && max[2] == 5);
	assert_int_equal(layout_of(file, "c", chunk, max), 0);
	assert_int_equal(layout_of(file, "d", chunk, max), 0);
	assert_int_equal(layout_of(file, "e", chunk, max), 2);
	v = nf_var(f, b);
	assert_true(v->rank == 3 && v->elem == 1 && v->chunk[0] == 7 && v->chunk[2] == 5);
	assert_int_equal(v->data, NC_CHUNKED);
	assert_int_equal(nf_var(f, a)->data, NC_CHUNKED);
	assert_int_equal(nf_var(f, c)->data, NC_NO_DATA);
	assert_int_equal(nf_var(f, d)->data, NC_CONTIGUOUS);
	assert_int_equal(nf_var(f, e)->data, NC_NO_DATA);
	for (uint32_t i = 0; i < f->image.n_vars; i++) {
		auto_hid hid_t set = H5Oopen_by_addr(file, f->image.vars[i].header);

		assert_int_equal(H5Iget_type(set), H5I_DATASET);
		assert_true(H5Dget_offset(set) == HADDR_UNDEF);
		assert_int_equal(H5Dget_storage_size(set), 0);
	}
	(void)H5Fclose(file);
}

static void test_filters(void **state)
{
	static const uint32_t four[] = {4}, level[] = {17};
	static const uint32_t params[] = {2, 2, 4, 0, 5, 1, 1};
	static const struct codec_spec specs[] = {
		{.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = four, .name = ""},
		{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""},
		{.h5_id = CODEC_FLETCHER32, .name = ""}};
	static const struct codec_spec plugin[] = {
		{.h5_id = CODEC_BLOSC, .n_params = 7, .params = params, .name = "mine"}};
	static const struct codec_spec nobodys[] = {
		{.h5_id = NOBODYS, .n_params = 1, .params = four, .name = "mine"}};
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	uint32_t a = nf_array(f, 0, "a", nf_i4, 0, 1, NF_DIM(x));
	uint32_t b = nf_array(f, 0, "b", nf_i4, 0, 1, NF_DIM(x));
	uint32_t c = nf_array(f, 0, "c", nf_i4, 0, 1, NF_DIM(x));
	unsigned int flags, got[8], config;
	char name[20];
	size_t n = 8;
	hid_t file;

	f->arrays[a].chain = (struct codec_chain){3, specs};
	f->arrays[b].chain = (struct codec_chain){1, plugin};
	f->arrays[c].chain = (struct codec_chain){1, nobodys};
	file = opened(f, PLAN_KEEP);
	{
		auto_hid hid_t set = H5Dopen2(file, "a", H5P_DEFAULT);
		auto_hid hid_t dcpl = H5Dget_create_plist(set);

		assert_int_equal(H5Pget_nfilters(dcpl), 3);
		assert_int_equal(H5Pget_filter2(dcpl, 0, &flags, &n, got, 20, name, &config),
				 2);
		assert_int_equal(got[0], 4);
		n = 8;
		assert_int_equal(H5Pget_filter2(dcpl, 1, &flags, &n, got, 20, name, &config),
				 1);
		assert_int_equal(got[0], 9); /* a level that exists */
		n = 8;
		assert_int_equal(H5Pget_filter2(dcpl, 2, &flags, &n, got, 20, name, &config),
				 3);
	}
	{
		auto_hid hid_t set = H5Dopen2(file, "b", H5P_DEFAULT);
		auto_hid hid_t dcpl = H5Dget_create_plist(set);

		n = 8;
		assert_int_equal(H5Pget_filter2(dcpl, 0, &flags, &n, got, 20, name, NULL),
				 CODEC_BLOSC);
		assert_int_equal(n, 7);
		assert_int_equal(got[3], f->arrays[b].chunk_bytes);
		got[3] = 0;
		assert_memory_equal(got, params, sizeof(params));
		assert_string_equal(name, "blosc");
	}
	{
		auto_hid hid_t set = H5Dopen2(file, "c", H5P_DEFAULT);
		auto_hid hid_t dcpl = H5Dget_create_plist(set);

		n = 8;
		assert_int_equal(H5Pget_filter2(dcpl, 0, &flags, &n, got, 20, name, NULL),
				 NOBODYS);
		assert_string_equal(name, "mine");
	}
	(void)H5Fclose(file);
	assert_int_equal(H5Zfilter_avail(NOBODYS), 0); /* the built-in class was removed */
}

static void test_fill(void **state)
{
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	uint32_t a = nf_array(f, 0, "a", nf_f8be, 0, 1, NF_DIM(x));
	uint32_t b = nf_array(f, 0, "b", nf_cmp, 0, 1, NF_DIM(x));
	uint32_t c = nf_array(f, 0, "c", nf_s5, 0, 1, NF_DIM(x));
	static const uint8_t be[] = {0x40, 0, 0, 0, 0, 0, 0, 0}; /* 2.0 */
	uint8_t cmp[32];
	double two[3];
	uint8_t got[3 * 32];
	hid_t file;

	for (size_t i = 0; i < sizeof(cmp); i++)
		cmp[i] = (uint8_t)(i + 1);
	f->arrays[a].fill = be;
	f->arrays[b].fill = cmp;
	f->arrays[c].fill = (const uint8_t *)"abc\0";
	file = opened(f, PLAN_KEEP);
	{
		auto_hid hid_t set = H5Dopen2(file, "a", H5P_DEFAULT);

		assert_true(H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
				    two) >= 0);
		assert_true(two[0] == 2 && two[2] == 2);
	}
	{
		auto_hid hid_t set = H5Dopen2(file, "b", H5P_DEFAULT);
		auto_hid hid_t type = H5Dget_type(set);

		assert_int_equal(H5Tget_size(type), 32);
		assert_true(H5Tcommitted(type) > 0);
		assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
		assert_memory_equal(got + 64, cmp, 32);
	}
	{
		auto_hid hid_t set = H5Dopen2(file, "c", H5P_DEFAULT);
		auto_hid hid_t dcpl = H5Dget_create_plist(set);
		H5D_fill_value_t is;

		assert_true(H5Pfill_value_defined(dcpl, &is) >= 0);
		assert_int_equal(is, H5D_FILL_VALUE_DEFAULT);
	}
	(void)H5Fclose(file);
}

static void test_types(void **state)
{
	static const struct {
		const struct dtype *type;
		const char *name;
		H5T_class_t class;
		size_t size;
	} t[] = {{&nf_bool, "bool", H5T_INTEGER, 1},
		 {&nf_f2, "f2", H5T_FLOAT, 2},
		 {&nf_c8, "c8", H5T_COMPOUND, 8},
		 {&nf_op3, "op", H5T_OPAQUE, 3},
		 {&nf_list, "list", H5T_VLEN, sizeof(hvl_t)},
		 {&nf_char, "char", H5T_STRING, 1},
		 {&nf_u1, "u1", H5T_INTEGER, 1}};
	static const float want[] = {1, 65504, 0x1p-24f};
	static const uint16_t halves[] = {0x3c00, 0x7bff, 1};
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	float got[3];
	hid_t file;

	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		(void)nf_array(f, 0, t[i].name, *t[i].type, 0, 1, NF_DIM(x));
	file = opened(f, PLAN_KEEP);
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		auto_hid hid_t set = H5Dopen2(file, t[i].name, H5P_DEFAULT);
		auto_hid hid_t type = H5Dget_type(set);
		bool named = t[i].class == H5T_COMPOUND || t[i].class == H5T_OPAQUE ||
			     t[i].class == H5T_VLEN;

		assert_int_equal(H5Tget_class(type), t[i].class);
		assert_int_equal(H5Tget_size(type), t[i].size);
		assert_int_equal(H5Tcommitted(type) > 0, named);
		if (t[i].class != H5T_FLOAT)
			continue;
		memcpy(got, halves, sizeof(halves));
		assert_true(H5Tconvert(type, H5T_NATIVE_FLOAT, 3, got, NULL, H5P_DEFAULT) >= 0);
		assert_memory_equal(got, want, sizeof(want));
	}
	(void)H5Fclose(file);
}

static void test_attributes(void **state)
{
	struct nc_fake *f = *state;
	static const int32_t numbers[] = {1, -2, 3};
	static const struct ds_text list[] = {{"\1\0\0\0\2\0\0\0", 8}, {NULL, 0}};
	struct ds_attr lists = nf_values("lists", nf_list, 2, NULL);
	char *big = nf_alloc(f, 100001, 1), name[20];
	hid_t file;

	memset(big, 'b', 100000);
	lists.strings = list;
	nf_attr(f, 0, DS_NONE, nf_values("numbers", nf_i4, 3, numbers));
	nf_attr(f, 0, DS_NONE, nf_values("none", nf_i4, 0, NULL));
	nf_attr(f, 0, DS_NONE, nf_text(f, "text", "caf\xc3\xa9", DT_STRING));
	nf_attr(f, 0, DS_NONE, nf_text(f, "", "", DT_STRING));
	nf_attr(f, 0, DS_NONE, nf_values("notext", nf_s5, 0, NULL));
	nf_attr(f, 0, DS_NONE, nf_text(f, "vtext", "v", DT_VSTRING));
	nf_attr(f, 0, DS_NONE, nf_text(f, "big", big, DT_STRING));
	nf_attr(f, 0, DS_NONE, lists);
	for (int i = 0; i < 500; i++) {
		char *many = nf_alloc(f, 8, 1);

		(void)snprintf(many, 8, "a%d", i);
		nf_attr(f, 0, DS_NONE, nf_values(many, nf_i4, 1, numbers));
	}
	file = opened(f, PLAN_KEEP);
	int_attr(file, "/", "numbers", INTS(1, -2, 3));
	int_attr(file, "/", "a499", INTS(1));
	assert_true(H5Aget_name_by_idx(file, "/", H5_INDEX_CRT_ORDER, H5_ITER_INC, 1, name,
				       sizeof(name), H5P_DEFAULT) > 0);
	assert_string_equal(name, "numbers"); /* _NCProperties is the first */
	text_is(file, "/", "_%00", "");
	text_is(file, "/", "notext", "");
	{
		auto_hid hid_t at = H5Aopen(file, "none", H5P_DEFAULT), s = H5Aget_space(at);

		assert_int_equal(H5Sget_simple_extent_type(s), H5S_NULL);
	}
	{
		auto_hid hid_t at = H5Aopen(file, "text", H5P_DEFAULT), s = H5Aget_space(at);
		auto_hid hid_t t = H5Aget_type(at);

		assert_int_equal(H5Sget_simple_extent_type(s), H5S_SCALAR);
		assert_int_equal(H5Tget_size(t), 5);
		assert_int_equal(H5Tget_cset(t), H5T_CSET_UTF8);
	}
	{
		auto_hid hid_t at = H5Aopen(file, "vtext", H5P_DEFAULT), t = H5Aget_type(at);

		assert_true(H5Tis_variable_str(t) > 0);
	}
	{
		auto_hid hid_t at = H5Aopen(file, "big", H5P_DEFAULT);

		assert_int_equal(H5Aget_storage_size(at), 100000);
	}
	{
		auto_hid hid_t at = H5Aopen(file, "lists", H5P_DEFAULT);
		auto_hid hid_t t = H5Tvlen_create(H5T_NATIVE_INT), s = H5Aget_space(at);
		hvl_t got[2];

		assert_true(H5Aread(at, t, got) >= 0);
		assert_int_equal(got[0].len, 2);
		assert_int_equal(((int *)got[0].p)[1], 2);
		assert_int_equal(got[1].len, 0);
		(void)H5Dvlen_reclaim(t, s, H5P_DEFAULT, got);
	}
	(void)H5Fclose(file);
}

/* texts_are - element k of n is what `want` says. */
static void texts_are(hid_t file, const char *name, const char *const *want, size_t n)
{
	auto_hid hid_t set = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(set);
	auto_hid hid_t space = H5Dget_space(set);
	char *got[16];

	assert_int_equal(H5Sget_simple_extent_npoints(space), n);
	assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
	for (size_t i = 0; i < n; i++) /* the library has no empty text */
		assert_string_equal(got[i] ? got[i] : "", want[i]);
	(void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, got);
}

static void test_texts(void **state)
{
	static const char *const plain[] = {"", "1", "4444", "55555", "88888888", "999999999"};
	static const char *const rows[] = {"", "1", "fill", "fill", "", "1"};
	static const char *const absent[] = {"", "", ""};
	static const char *const one[] = {""};
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 2, false), t = nf_dim(f, 0, "t", 3, true);
	uint32_t z = nf_dim(f, 0, "z", 3, false), u;
	hid_t file;

	u = nf_array(f, 0, "u", nf_str, 3, 2, NF_DIM(z, x));
	/* chunks of 3 by 4: elements outside of the shape are not written */
	f->arrays[u].chunk = (const uint64_t[]){3, 4};
	u = nf_array(f, 0, "rows", nf_str, 1, 2, NF_DIM(t, x));
	f->absent[u] = 2;
	f->arrays[u].fill_text = (struct ds_text){"fill", 4};
	u = nf_array(f, 0, "absent", nf_str, 1, 1, NF_DIM(z));
	f->absent[u] = 7;
	(void)nf_array(f, 0, "one", nf_str, 0, 0, NULL);
	u = nf_array(f, 0, "lists", nf_list, 2, 1, NF_DIM(z));
	f->absent[u] = 2;
	file = opened(f, PLAN_KEEP);
	texts_are(file, "u", plain, 6);
	texts_are(file, "rows", rows, 6);
	texts_are(file, "absent", absent, 3);
	texts_are(file, "one", one, 1);
	{
		auto_hid hid_t set = H5Dopen2(file, "lists", H5P_DEFAULT);
		auto_hid hid_t type = H5Dget_type(set), space = H5Dget_space(set);
		hvl_t got[3];

		assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, got) >= 0);
		assert_int_equal(got[0].len, 0);
		assert_int_equal(got[1].len, 1);
		assert_int_equal(*(int *)got[1].p, 1);
		assert_int_equal(got[2].len, 0);
		(void)H5Dvlen_reclaim(type, space, H5P_DEFAULT, got);
	}
	(void)H5Fclose(file);
}

static void test_limits(void **state)
{
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 100000, false);
	struct err e = ERR_INIT;
	hsize_t chunk[3];
	struct ds_array a = {.rank = 3,
			     .shape = (const uint64_t[]){(uint64_t)1 << 50, 0, 1000}};

	(void)nf_array(f, 0, "u", nf_str, 1000, 1, NF_DIM(x));
	assert_int_equal(nf_model(f, PLAN_KEEP, false, NULL), 0);
	assert_int_equal(nf_build(f, 3 << 20, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "'u'"));
	assert_null(f->image.bytes);
	assert_int_equal(nf_build(f, 1000, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "more than 1000 bytes"));
	assert_int_equal(nf_build(f, MAX, &e), 0);
	nc_strings_chunk(&a, chunk);
	assert_true(chunk[0] * chunk[1] * chunk[2] <= 32768 && chunk[1] == 1);
	assert_true(chunk[0] * chunk[1] * chunk[2] >= 8192);
}

/* wrong - a source that gives less than it should. */
static int wrong(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		 struct err *e)
{
	(void)s;
	(void)array;
	(void)linear;
	(void)e;
	buf_put_le32(out, 5);
	buf_puts(out, "text");
	return 0;
}

static void test_short(void **state)
{
	struct source_ops ops = nf_ops;
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	struct err e = ERR_INIT;

	ops.read_vlen = wrong;
	f->base.ops = &ops;
	(void)nf_array(f, 0, "u", nf_str, 0, 1, NF_DIM(x));
	assert_int_equal(nf_model(f, PLAN_KEEP, false, NULL), 0);
	assert_int_equal(nf_build(f, MAX, &e), 0); /* the rest of the file can be read */
	assert_int_equal(f->image.n_vars, 1);
	assert_int_equal(f->image.vars[0].data, NC_BROKEN);
	assert_non_null(strstr(f->image.vars[0].why, "elements end"));
	f->base.ops = &nf_ops;
}

/* everything - an array of every type, strings, attributes and lists. */
static void everything(struct nc_fake *f)
{
	static const struct dtype *const types[] = {&nf_i1,    &nf_i4, &nf_f8be, &nf_f2,
						    &nf_c16be, &nf_s5, &nf_op3,  &nf_str,
						    &nf_list,  &nf_cmp};
	uint32_t g = nf_group(f, 0, "g"), x = nf_dim(f, 0, "x", 5, false);
	uint32_t t = nf_dim(f, g, "t", 3, true);

	for (size_t i = 0; i < 60; i++) {
		char *name = nf_alloc(f, 16, 1);
		uint32_t v;

		(void)snprintf(name, 16, "v%zu", i);
		v = nf_array(f, i % 2 ? g : 0, name, *types[i % ARRAY_LEN(types)], i % 3,
			     (uint32_t)(i % 3), i % 3 == 2 ? NF_DIM(t, x) : NF_DIM(x));
		for (size_t k = 0; k < i % 12; k++) {
			char *at = nf_alloc(f, 16, 1);

			(void)snprintf(at, 16, "a%zu", k);
			nf_attr(f, 0, v, nf_text(f, at, name, k % 2 ? DT_STRING : DT_VSTRING));
		}
	}
}

static void test_same_bytes(void **state)
{
	struct nc_fake *f = *state, *other = nf_new();
	uint8_t *first;
	size_t len, n;
	hid_t file, busy;

	everything(f);
	everything(other);
	file = opened(f, PLAN_KEEP);
	len = f->image.len;
	first = f->image.bytes;
	/* the library's memory is in use, and what it had before is not zero */
	for (n = 1; n < 100000; n *= 3) {
		uint8_t *p = malloc(n);

		memset(p, 0xa5, n);
		free(p);
	}
	busy = H5Screate(H5S_SCALAR);
	assert_int_equal(nf_model(other, PLAN_KEEP, false, NULL), 0);
	assert_int_equal(nf_build(other, MAX, NULL), 0);
	assert_int_equal(other->image.len, len);
	assert_memory_equal(other->image.bytes, first, len);
	(void)H5Sclose(busy);
	(void)H5Fclose(file);
	nf_free(other);
}

static void test_many(void **state)
{
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 5, false), y = nf_dim(f, 0, "y", 5, false);
	hid_t file;

	for (size_t i = 0; i < 4090; i++) { /* the scale's list has more than 64 KiB */
		char *name = nf_alloc(f, 16, 1);

		(void)snprintf(name, 16, "v%zu", i);
		(void)nf_array(f, 0, name, nf_i4, 0, 2, NF_DIM(x, y));
	}
	file = opened(f, PLAN_KEEP);
	assert_true(refers(file, "/v4089", "y", 1, 4090));
	assert_true(listed(file, "v4089", "/y", 1));
	assert_int_equal(f->image.n_vars, 4090);
	(void)H5Fclose(file);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_scales), TEST(test_order), TEST(test_storage),    TEST(test_filters),
		TEST(test_fill),   TEST(test_types), TEST(test_attributes), TEST(test_texts),
		TEST(test_limits), TEST(test_short), TEST(test_same_bytes), TEST(test_many),
		TEST(test_numbers),
	};

	(void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	(void)H5PLset_loading_state(0); /* whatever plugins there are: one of Debian's leaks */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
