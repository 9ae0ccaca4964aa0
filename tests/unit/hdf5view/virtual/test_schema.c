/* SPDX-License-Identifier: BSD-3-Clause */
/* What the netCDF file will say, before anything is built: names, coordinate variables, types,
 * attributes, filters, and what cannot be shown. */
#include "hdf5view/netcdf4/schema.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/unit/hdf5view/nc_sample.h"

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

static void made(struct nc_fake *f, enum plan_filter filter)
{
	struct err e = ERR_INIT;

	if (nf_model(f, filter, true, &e) < 0)
		fail_msg("%s", e.msg);
}

/* attr - a decided attribute of an array, or of the root group. */
static const struct nc_attr *attr(struct nc_fake *f, uint32_t array, const char *name)
{
	const struct nc_attrs *l =
		array == DS_NONE ? &f->model->groups[0].attrs : &f->model->arrays[array].attrs;

	for (uint32_t i = 0; i < l->n; i++)
		if (strcmp(l->list[i].name, name) == 0)
			return &l->list[i];
	return NULL;
}

static void test_escape(void **state)
{
	static const struct {
		const char *name, *want;
	} t[] = {
		{"temp", "temp"},
		{"a b", "a b"},
		{"2m_temp", "2m_temp"},
		{"100%", "100%"},
		{"na\xc3\xafve", "na\xc3\xafve"},
		{" a", "_%20a"},
		{"a ", "a%20"},
		{"-x", "_%2Dx"},
		{"a%b ", "a%25b%20"},
		{"a%20", "a%2520"},
		{"a%2g", "a%2g"},
		{"_%20a", "_%5F%2520a"},
		{"_%", "_%5F%25"},
		{"%", "_%25"},
		{".", "_%2E"},
		{"a/b\n\x7f", "a%2Fb%0A%7F"},
		{"_nc4_non_coord_x", "_%5Fnc4_non_coord_x"},
		{"", "_%00"},
	};
	struct arena a;
	char longer[301], *other;
	const char *x, *y;

	(void)state;
	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < ARRAY_LEN(t); i++)
		assert_string_equal(nc_escape(&a, t[i].name, NC_NAME_LIMIT), t[i].want);
	memset(longer, ' ', 300);
	longer[300] = '\0';
	longer[0] = '\xc3';
	longer[1] = '\xa9';
	x = nc_escape(&a, longer, 20);
	assert_int_equal(strlen(x), 20);
	other = arena_strdup(&a, longer);
	other[200] = '-';
	y = nc_escape(&a, other, 20);
	assert_string_not_equal(x, y);
	assert_memory_equal(x, y, 11);
	/* not cut inside a character: 2 of 3 bytes would fit */
	x = nc_escape(&a,
		      "123456789\xe2\x82\xac"
		      "890123456",
		      20);
	assert_int_equal(x[9], '~');
	arena_release(&a);
}

static void test_claim(void **state)
{
	struct nc_names t = {0};
	struct arena a;

	(void)state;
	arena_init(&a, 1 << 20);
	assert_string_equal(nc_names_claim(&t, &a, 1, "x", 0, 256), "x");
	assert_string_equal(nc_names_claim(&t, &a, 2, "x", 0, 256), "x");
	assert_string_equal(nc_names_claim(&t, &a, 1, "x_1", 0, 256), "x_1");
	assert_string_equal(nc_names_claim(&t, &a, 1, "x", 0, 256), "x_2");
	assert_string_equal(nc_names_claim(&t, &a, 1, "x", 0, 256), "x_3");
	assert_string_equal(nc_names_claim(&t, &a, 3, "abcd", 0, 4), "abcd");
	assert_string_equal(nc_names_claim(&t, &a, 3, "abcd", 0, 4), "ab_1");
	for (int i = 0; i < 1000; i++)
		assert_non_null(nc_names_claim(&t, &a, 4, "many", 0, 256));
	assert_non_null(nc_names_find(&t, 4, "many_999"));
	assert_null(nc_names_find(&t, 4, "many_1000"));
	nc_names_release(&t);
	arena_release(&a);
}

static void test_dimensions(void **state)
{
	struct nc_fake *f = *state;
	uint32_t g = nf_group(f, 0, "g");
	uint32_t x = nf_dim(f, 0, "x", 3, false), y = nf_dim(f, 0, "y", 4, false);
	uint32_t z = nf_dim(f, 0, "z", 3, false), two = nf_dim(f, 0, "x", 5, false);
	uint32_t group = nf_dim(f, 0, "g", 2, false), fives = nf_dim(f, 0, "string5", 5, false);
	uint32_t four = nf_dim(f, 0, "string4", 5, false);
	static const struct dtype s4 = {.kind = DT_STRING, .size = 4};
	uint32_t vx = nf_array(f, 0, "x", nf_i4, 0, 1, NF_DIM(x));
	uint32_t vy = nf_array(f, 0, "y", nf_i4, 0, 2, NF_DIM(y, x));
	uint32_t vz = nf_array(f, 0, "z", nf_i4, 0, 2, NF_DIM(x, z));
	uint32_t gx = nf_array(f, g, "x", nf_i4, 0, 1, NF_DIM(x));
	uint32_t t5 = nf_array(f, g, "t5", nf_s5, 0, 1, NF_DIM(x));
	uint32_t t4 = nf_array(f, g, "t4", s4, 0, 1, NF_DIM(x));
	uint32_t u4 = nf_array(f, g, "u4", s4, 0, 0, NULL);
	struct nc_array *v;

	made(f, PLAN_KEEP);
	v = f->model->arrays;
	assert_int_equal(f->model->dims[x].scale, vx);
	assert_int_equal(v[vx].scale_of, x);
	assert_int_equal(f->model->dims[y].scale, vy); /* two-dimensional */
	assert_int_equal(f->model->dims[z].scale, DS_NONE);
	assert_string_equal(v[vz].name, "z");
	assert_string_equal(v[vz].link, "_nc4_non_coord_z");
	assert_string_equal(v[gx].link, "x"); /* no dimension of its group has its name */
	assert_string_equal(f->model->dims[two].name, "x_1");
	assert_true(nf_noted(f, "dimension 'x' is shown as 'x_1'"));
	assert_string_equal(f->model->dims[group].name, "g_1");
	assert_int_equal(v[t5].text_dim, fives);
	assert_string_equal(f->model->dims[four].name, "string4");
	assert_int_equal(v[t4].text_dim, f->base.ds.n_dims);
	assert_int_equal(v[u4].text_dim, v[t4].text_dim);
	assert_string_equal(f->model->dims[v[t4].text_dim].name, "string4_1");
	assert_int_equal(f->model->dims[v[t4].text_dim].len, 4);
	assert_int_equal(f->model->n_dims, f->base.ds.n_dims + 1);
}

static void test_types(void **state)
{
	struct nc_fake *f = *state;
	uint32_t g = nf_group(f, 0, "g"), h = nf_group(f, 0, "h");
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	uint32_t a = nf_array(f, g, "a", nf_cmp, 0, 1, NF_DIM(x));
	uint32_t b = nf_array(f, g, "b", nf_cmp, 0, 1, NF_DIM(x));
	uint32_t c = nf_array(f, h, "c", nf_cmp, 0, 1, NF_DIM(x));
	uint32_t d = nf_array(f, h, "d", nf_c8, 0, 1, NF_DIM(x));
	uint32_t taken = nf_array(f, g, "a_t", nf_i4, 0, 1, NF_DIM(x));
	const struct nc_type *t;
	struct nc_array *v;

	made(f, PLAN_KEEP);
	t = f->model->types;
	v = f->model->arrays;
	assert_int_equal(v[taken].type, DS_NONE);
	assert_string_equal(t[v[a].type].name, "a_t_1");
	assert_int_equal(v[b].type, v[a].type);
	assert_int_not_equal(v[c].type, v[a].type); /* another group */
	assert_int_equal(t[v[c].type].group, h);
	assert_int_equal(t[v[d].type].group, 0);
	assert_string_equal(t[v[d].type].name, "_complex64");
	assert_int_equal(t[v[a].type].fields[3], v[d].type);
	assert_int_equal(t[v[a].type].fields[0], DS_NONE);
	assert_string_equal(t[t[v[a].type].fields[4]].name, "a_in_t");
	assert_true(t[v[a].type].fields[4] < v[a].type); /* made before */
}

static void plan(struct nc_model *m, uint32_t array, enum plan_filter filter, struct plan *ret)
{
	const struct plan_policy policy = {.filter = filter};

	assert_int_equal(nc_filters_plan(m, array, &policy, ret, NULL), 0);
}

static void test_plans(void **state)
{
	struct nc_fake *f = *state;
	struct nc_model m = {.ds = &f->base.ds};
	static const uint32_t level[] = {4}, four[] = {4}, eight[] = {8}, zstd[] = {3};
	static const struct codec_spec deflate[] = {
		{.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = four, .name = ""},
		{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""}};
	static const struct codec_spec wide[] = {
		{.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = eight, .name = ""}};
	static const struct codec_spec bare[] = {{.h5_id = CODEC_SHUFFLE, .name = ""}};
	static const struct codec_spec plugin[] = {
		{.h5_id = CODEC_ZSTD, .n_params = 1, .params = zstd, .name = ""}};
	static const struct codec_spec own[] = {{.h5_id = CODEC_SCALEOFFSET, .name = ""}};
	static const struct codec_spec private[] = {{.h5_id = CODEC_GZIP, .name = ""}};
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	uint32_t i = nf_array(f, 0, "a", nf_f4, 0, 1, NF_DIM(x));
	struct ds_array *a = &f->arrays[i];
	struct plan p;

	arena_init(&m.arena, 1 << 20);
	plan(&m, i, PLAN_NONE, &p);
	assert_int_equal(p.kind, PLAN_PASS); /* no filters at all */
	a->chain = (struct codec_chain){2, deflate};
	plan(&m, i, PLAN_PORTABLE, &p);
	assert_int_equal(p.kind, PLAN_PASS);
	assert_int_equal(p.chain.n, 2);
	assert_true(p.fill_declared);
	plan(&m, i, PLAN_NONE, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	a->rank = 0;
	plan(&m, i, PLAN_KEEP, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	assert_int_equal(p.chain.n, 0);
	a->rank = 1;
	a->chain = (struct codec_chain){1, wide};
	plan(&m, i, PLAN_KEEP, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	a->chain = (struct codec_chain){1, plugin};
	plan(&m, i, PLAN_KEEP, &p);
	assert_int_equal(p.kind, PLAN_PASS);
	plan(&m, i, PLAN_PORTABLE, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	a->chain = (struct codec_chain){1, own};
	plan(&m, i, PLAN_KEEP, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	a->chain = (struct codec_chain){1, private};
	plan(&m, i, PLAN_KEEP, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	/* whole strings are shuffled, but the file's elements are characters */
	a->type = nf_s5;
	a->chain = (struct codec_chain){1, bare};
	plan(&m, i, PLAN_KEEP, &p);
	assert_int_equal(p.kind, PLAN_DECODE);
	arena_release(&m.arena);
}

static void test_storage(void **state)
{
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 3, false), t = nf_dim(f, 0, "t", 0, true);
	uint32_t none = nf_dim(f, 0, "none", 0, false);
	uint32_t sc = nf_array(f, 0, "sc", nf_s5, 0, 0, NULL);
	uint32_t a = nf_array(f, 0, "a", nf_s5, 0, 1, NF_DIM(x));
	uint32_t b = nf_array(f, 0, "b", nf_s5, 0, 1, NF_DIM(x));
	uint32_t empty = nf_array(f, 0, "empty", nf_i4, 0, 1, NF_DIM(none));
	uint32_t later = nf_array(f, 0, "later", nf_i4, 5, 1, NF_DIM(t));
	uint32_t text = nf_array(f, 0, "text", nf_str, 0, 1, NF_DIM(x));
	uint32_t texts = nf_array(f, 0, "texts", nf_str, 0, 1, NF_DIM(t));
	struct nc_array *v;

	f->arrays[a].fill = (const uint8_t *)"abcd";
	f->arrays[b].fill = (const uint8_t *)"-----";
	made(f, PLAN_KEEP);
	v = f->model->arrays;
	assert_int_equal(v[sc].data, NC_CONTIGUOUS);
	assert_false(v[sc].chunked);
	assert_true(v[sc].fill && f->plans[sc].fill_declared);
	assert_int_equal(v[a].data, NC_CHUNKED);
	assert_false(v[a].fill || f->plans[a].fill_declared);
	assert_true(v[b].fill && f->plans[b].fill_declared);
	assert_int_equal(v[empty].data, NC_NO_DATA);
	assert_false(v[empty].chunked);
	assert_int_equal(v[later].data, NC_NO_DATA);
	assert_true(v[later].chunked);
	assert_int_equal(v[text].data, NC_VLEN_INLINE);
	assert_int_equal(f->plans[text].kind, PLAN_VLEN);
	assert_false(v[text].chunked || v[text].fill);
	assert_int_equal(v[texts].data, NC_NO_DATA);
	assert_true(v[texts].chunked);
}

static void test_attributes(void **state)
{
	struct nc_fake *f = *state;
	static const int32_t four[] = {1, 2, 3, 4};
	static const uint64_t square[] = {2, 2};
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	uint32_t b = nf_array(f, 0, "b", nf_bool, 0, 1, NF_DIM(x));
	uint32_t c = nf_array(f, 0, "c", nf_bool, 0, 1, NF_DIM(x));
	uint32_t s = nf_array(f, 0, "s", nf_s5, 0, 1, NF_DIM(x));
	struct ds_attr at = nf_values("square", nf_i4, 4, four);

	at.rank = 2;
	at.dims = square;
	nf_attr(f, 0, DS_NONE, at);
	nf_attr(f, 0, DS_NONE, nf_text(f, "CLASS", "x", DT_STRING));
	nf_attr(f, 0, DS_NONE, nf_text(f, "_NCProperties", "x", DT_STRING));
	nf_attr(f, 0, DS_NONE, nf_text(f, "-", "x", DT_STRING));
	nf_attr(f, 0, DS_NONE, nf_text(f, "_FillValue", "x", DT_STRING));
	nf_attr(f, 0, c, nf_text(f, "dtype", "mine", DT_STRING));
	made(f, PLAN_KEEP);
	assert_non_null(attr(f, DS_NONE, "square"));
	assert_true(nf_noted(f, "'square' is shown with one dimension instead"));
	assert_null(attr(f, DS_NONE, "CLASS"));
	assert_null(attr(f, DS_NONE, "_NCProperties"));
	assert_true(nf_noted(f, "attribute 'CLASS' is left out"));
	assert_non_null(attr(f, DS_NONE, "_%2D"));
	assert_non_null(attr(f, DS_NONE, "_FillValue"));
	assert_string_equal(attr(f, b, "dtype")->src->strings[0].s, "bool");
	assert_string_equal(attr(f, c, "dtype")->src->strings[0].s, "mine");
	assert_int_equal(f->model->arrays[c].attrs.n, 1);
	assert_string_equal(attr(f, s, "_Encoding")->src->strings[0].s, "utf-8");
}

/* fill_as - what becomes of a _FillValue of type `from` in an array of type `to`. */
static const struct nc_attr *fill_as(struct nc_fake *f, struct dtype to, struct dtype from,
				     const void *value)
{
	char *name = nf_alloc(f, 16, 1);
	uint32_t i;

	(void)snprintf(name, 16, "v%u", f->base.ds.n_arrays);
	i = nf_array(f, 0, name, to, 0, 1, NF_DIM(0));
	nf_attr(f, 0, i, nf_values("_FillValue", from, 1, value));
	made(f, PLAN_KEEP);
	return attr(f, i, "_FillValue");
}

static void test_fill_numbers(void **state)
{
	struct nc_fake *f = *state;
	static const struct dtype u2 = {.kind = DT_UINT, .size = 2};
	static const struct dtype u8 = {.kind = DT_UINT, .size = 8};
	static const double tenth = 0.1, minus = -9999, half = 0.5, big = 1e30, two63 = 0x1p63;
	static const int64_t least = INT64_MIN, m1 = -1;
	static const uint64_t most = UINT64_MAX;
	static const uint16_t inf2 = 0x7c00, tiny2 = 0x8001;
	const double nan = __builtin_nan("");
	const struct nc_attr *at;
	float got;
	int16_t got2;
	uint64_t got8;

	(void)nf_dim(f, 0, "x", 3, false);
	at = fill_as(f, nf_f4, nf_f8, &tenth);
	assert_int_equal(at->as.size, 4);
	memcpy(&got, at->src->data, 4);
	assert_true(got == 0.1f);
	at = fill_as(f, nf_i2, nf_f8, &minus);
	memcpy(&got2, at->src->data, 2);
	assert_int_equal(got2, -9999);
	assert_null(fill_as(f, u2, nf_f8, &minus));
	assert_true(nf_noted(f, "does not fit"));
	assert_null(fill_as(f, nf_i2, nf_f8, &half));
	assert_null(fill_as(f, nf_i8, nf_f8, &big));
	assert_null(fill_as(f, nf_i8, nf_f8, &two63));
	assert_null(fill_as(f, nf_i8, nf_f8, &nan));
	assert_null(fill_as(f, nf_i8, u8, &most));
	assert_null(fill_as(f, u8, nf_i8, &m1));
	assert_null(fill_as(f, nf_i4, nf_i8, &least));
	at = fill_as(f, u8, nf_f8, &two63);
	memcpy(&got8, at->src->data, 8);
	assert_true(got8 == (uint64_t)1 << 63);
	at = fill_as(f, nf_i8, nf_i8, &least);
	assert_memory_equal(at->src->data, &least, 8);
	at = fill_as(f, nf_f2, nf_f2, &inf2);
	assert_int_equal(at->as.size, 4);
	memcpy(&got, at->src->data, 4);
	assert_true(got == __builtin_inff());
	at = fill_as(f, nf_f4, nf_f2, &tiny2);
	memcpy(&got, at->src->data, 4);
	assert_true(got == -0x1p-24f);
}

static void test_fill_others(void **state)
{
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", 3, false);
	static const uint8_t zero[64];
	static const struct dtype c16 = {.kind = DT_COMPLEX, .size = 16};
	const struct nc_attr *at;
	static const struct {
		const struct dtype *type;
		const char *text, *want;
	} t[] = {{&nf_char, "x", "x"},   {&nf_char, "", ""},    {&nf_s5, "", ""},
		 {&nf_s5, "-----", "-"}, {&nf_s5, "ab", NULL},  {&nf_s5, "----", NULL},
		 {&nf_i4, "1", NULL},    {&nf_list, "1", NULL}, {&nf_str, "none", "none"}};
	uint32_t v[ARRAY_LEN(t)];

	for (uint32_t i = 0; i < ARRAY_LEN(t); i++) {
		char *name = nf_alloc(f, 16, 1);

		(void)snprintf(name, 16, "v%u", i);
		v[i] = nf_array(f, 0, name, *t[i].type, 0, 1, NF_DIM(x));
		nf_attr(f, 0, v[i], nf_text(f, "_FillValue", t[i].text, DT_STRING));
	}
	made(f, PLAN_KEEP);
	for (uint32_t i = 0; i < ARRAY_LEN(t); i++) {
		at = attr(f, v[i], "_FillValue");
		if (!t[i].want) {
			assert_null(at);
			continue;
		}
		assert_int_equal(at->src->strings[0].len, strlen(t[i].want));
		assert_memory_equal(at->src->strings[0].s, t[i].want, strlen(t[i].want));
	}
	/* a structure: the variable's own type, whatever its byte order */
	at = fill_as(f, nf_c16be, c16, zero);
	assert_int_equal(at->type, f->model->arrays[f->base.ds.n_arrays - 1].type);
	assert_int_not_equal(at->type, DS_NONE);
	assert_null(fill_as(f, nf_cmp, nf_op3, zero));
}

static void refused(struct nc_fake *f, const char *text)
{
	struct err e = ERR_INIT;
	uint32_t last = f->base.ds.n_arrays - 1;

	assert_int_equal(nf_model(f, PLAN_KEEP, false, &e), -EOPNOTSUPP);
	if (!strstr(e.msg, text) || !strstr(e.msg, f->arrays[last].name))
		fail_msg("'%s' is not in '%s'", text, e.msg);
	made(f, PLAN_KEEP);
	assert_int_equal(f->plans[last].kind, PLAN_HIDE);
	assert_null(f->model->arrays[last].name);
	assert_true(nf_noted(f, text));
	assert_non_null(strstr(f->plans[last].reason, text));
	f->base.ds.n_arrays--;
}

static void test_refused(void **state)
{
	struct nc_fake *f = *state;
	uint32_t x = nf_dim(f, 0, "x", (uint64_t)1 << 33, false),
		 y = nf_dim(f, 0, "y", 3, false);
	static const struct dt_field none[1];
	static const struct dtype empty = {.kind = DT_COMPOUND, .size = 1, .fields = none};
	static const struct dtype str_list = {.kind = DT_VLEN, .base = &nf_str};
	static const uint32_t many[40];
	uint32_t i;

	i = nf_array(f, 0, "bad", nf_i4, 0, 1, NF_DIM(y));
	f->arrays[i].unreadable = "no decoder";
	refused(f, "no decoder");
	(void)nf_array(f, 0, "long", nf_i1, 0, 1, NF_DIM(x));
	refused(f, "elements along an axis");
	(void)nf_array(f, 0, "wide", nf_i8, (uint64_t)1 << 30, 1, NF_DIM(x));
	refused(f, "bytes, but HDF5 allows at most");
	i = nf_array(f, 0, "short", nf_i8, 0, 1, NF_DIM(y));
	f->arrays[i].shape = (const uint64_t[]){2};
	refused(f, "dimension 'y' has 3");
	(void)nf_array(f, 0, "none", empty, 0, 1, NF_DIM(y));
	refused(f, "a structure has no fields");
	(void)nf_array(f, 0, "lists", str_list, 0, 1, NF_DIM(y));
	refused(f, "variable-length arrays are not numbers");
	(void)nf_array(f, 0, "texts", nf_str, 1 << 20, 1, NF_DIM(x));
	refused(f, "without a fixed size, more than");
	f->dims[0].len = 1;
	/* SEMANTICS X8 */
	(void)nf_array(f, 0, "deep", nf_i1, 0, 33, many);
	refused(f, "33 dimensions");
	(void)nf_array(f, 0, "deeptext", nf_s5, 0, 32, many);
	refused(f, "33 dimensions");
	(void)nf_array(f, 0, "fits", nf_i1, 0, 32, many);
	assert_int_equal(nf_model(f, PLAN_KEEP, false, NULL), 0);
}

/* nested - a structure within a structure, depth times. */
static struct dtype nested(struct nc_fake *f, int depth)
{
	struct dtype t = nf_i4;

	while (depth-- > 0) {
		struct dt_field *in = nf_alloc(f, 1, sizeof(*in));

		*in = (struct dt_field){.name = "in", .type = t};
		t = (struct dtype){.kind = DT_COMPOUND, .size = 4, .n_fields = 1, .fields = in};
	}
	return t;
}

static void test_deep(void **state)
{
	struct nc_fake *f = *state;
	uint32_t y = nf_dim(f, 0, "y", 3, false);
	struct dt_field *fields = nf_alloc(f, 1000, sizeof(*fields));
	struct dtype wide = {.kind = DT_COMPOUND, .size = 1000, .n_fields = 1000};

	for (uint32_t i = 0; i < 1000; i++) {
		char *name = nf_alloc(f, 16, 1);

		(void)snprintf(name, 16, "f%u", i);
		fields[i] = (struct dt_field){.name = name, .offset = i, .type = nf_u1};
	}
	wide.fields = fields;
	(void)nf_array(f, 0, "deep", nested(f, 10), 0, 1, NF_DIM(y));
	assert_int_equal(nf_model(f, PLAN_KEEP, false, NULL), 0);
	(void)nf_array(f, 0, "deeper", nested(f, 100000), 0, 1, NF_DIM(y));
	refused(f, "structures are nested deeper");
	(void)nf_array(f, 0, "wide", wide, 0, 1, NF_DIM(y));
	refused(f, "the description of a structure takes more than");
}

static void test_groups(void **state)
{
	struct nc_fake *f = *state;
	uint32_t a = nf_group(f, 0, "a"), b = nf_group(f, a, "b");
	struct err e = ERR_INIT;
	struct nc_view_options o = {.name = "x", .max_image_bytes = 1 << 20};
	static const uint32_t loop[] = {1, 1};

	f->groups[a].parent = 0;
	assert_int_equal(nf_model(f, PLAN_KEEP, false, NULL), 0);
	f->groups[b].groups = loop;
	f->groups[b].n_groups = 1;
	nc_model_free(f->model);
	f->model = NULL;
	assert_int_equal(nc_model_new(&f->base, &o, f->plans, &f->model, &e), -EBADMSG);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_escape),     TEST(test_claim),        TEST(test_dimensions),
		TEST(test_types),      TEST(test_plans),        TEST(test_storage),
		TEST(test_attributes), TEST(test_fill_numbers), TEST(test_fill_others),
		TEST(test_refused),    TEST(test_deep),         TEST(test_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
