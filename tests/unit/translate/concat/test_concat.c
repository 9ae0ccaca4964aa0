/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of concatenation: names, forms, types of variables, pieces, and an index file that is
 * not trusted. tests/cases/concat/test_concat.py has the reads through a mount. */
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define T(k, s) {.kind = (k), .size = (s)}

/* one - a dataset of one array, v(time, x), and what it may have. */
struct one {
	struct dataset ds;
	struct ds_group group;
	struct ds_array a;
	struct ds_dim dims[2];
	uint64_t shape[2], chunk[2];
	uint32_t axes[2], arrays[1];
	uint8_t fill[8];
	struct ds_attr attrs[4];
	struct ds_text strings[4];
	double numbers[4];
};

static void begin(struct one *o, enum dt_kind kind, uint32_t size)
{
	*o = (struct one){.shape = {6, 4}, .chunk = {2, 4}, .axes = {0, 1}};
	o->dims[0] = (struct ds_dim){.name = "time", .len = 6};
	o->dims[1] = (struct ds_dim){.name = "x", .len = 4};
	o->a = (struct ds_array){.name = "v",
				 .type = T(kind, size),
				 .rank = 2,
				 .shape = o->shape,
				 .chunk = o->chunk,
				 .dims = o->axes,
				 .attrs = o->attrs,
				 .fill = o->fill,
				 .uniform = true};
	o->group = (struct ds_group){
		.name = "", .parent = DS_NONE, .n_arrays = 1, .arrays = o->arrays};
	o->ds = (struct dataset){.n_groups = 1,
				 .n_arrays = 1,
				 .n_dims = 2,
				 .groups = &o->group,
				 .arrays = &o->a,
				 .dims = o->dims};
}

static void text(struct one *o, const char *name, const char *value)
{
	uint32_t i = o->a.n_attrs++;

	o->strings[i] = (struct ds_text){.s = value, .len = strlen(value)};
	o->attrs[i] = (struct ds_attr){.name = name,
				       .type = T(DT_STRING, (uint32_t)strlen(value)),
				       .n = 1,
				       .strings = &o->strings[i]};
}

static void number(struct one *o, const char *name, double value)
{
	uint32_t i = o->a.n_attrs++;

	o->numbers[i] = value;
	o->attrs[i] = (struct ds_attr){.name = name,
				       .type = T(DT_FLOAT, 8),
				       .n = 1,
				       .data = (const uint8_t *)&o->numbers[i]};
}

static uint32_t form_of(struct concat_forms *f, const struct one *o)
{
	struct buf b;
	bool twice;
	uint32_t ret = CONCAT_NONE;

	buf_init(&b, 1 << 20);
	assert_int_equal(concat_describe(&o->ds, 0, "time", &b, &twice), 0);
	assert_false(twice);
	assert_true(buf_ok(&b));
	assert_int_equal(concat_intern(f, b.data, b.len, &ret, NULL), 0);
	buf_release(&b);
	return ret;
}

/* What cannot be read in the first member is unreadable in the joined dataset, and not absent. */
static void test_unreadable(void **state)
{
	static const struct ds_unreadable lost[] = {{.group = 0, .name = "damaged"}};
	struct concat j = {.n_members = 2};
	struct source first = {0};
	struct one o;

	(void)state;
	begin(&o, DT_FLOAT, 4);
	o.ds.format = "netCDF-4";
	o.ds.lost = lost;
	o.ds.n_unreadable = 1;
	first.ds = o.ds;
	j.first = &first;
	arena_init(&j.base.ds.arena, 1 << 20);
	assert_int_equal(concat_copy_model(&j, NULL), 0);
	assert_int_equal(ds_absent(&j.base.ds, 0, "damaged", 7, NULL), -EIO);
	assert_int_equal(ds_absent(&j.base.ds, 0, "nothing", 7, NULL), -ENOENT);
	arena_release(&j.base.ds.arena);
}

static void test_names(void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} pairs[] = {{"f2", "f10", -1},   {"f10", "f2", 1},   {"f02", "f2", -1},
		     {"f2", "f2", 0},     {"a", "b", -1},     {"a1b2", "a1b10", -1},
		     {"f", "f1", -1},     {"1999", "2000", -1}, {"x0010", "x9", 1},
		     {"99999999999999999999998", "99999999999999999999999", -1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		int c = concat_natural(pairs[i].a, pairs[i].b);

		assert_int_equal((c > 0) - (c < 0), pairs[i].order);
	}
	assert_true(concat_is_pattern("a/*.nc") && concat_is_pattern("a?") &&
		    concat_is_pattern("[ab]"));
	assert_false(concat_is_pattern("a/b.nc"));
}

static void folder_is(const char *pattern, const char *want)
{
	char *got = concat_folder(pattern);

	assert_string_equal(got, want);
	free(got);
}

static void test_folders(void **state)
{
	(void)state;
	folder_is("/data/y/*.nc", "/data/y");
	folder_is("/data/*/x.nc", "/data");
	folder_is("/*.nc", "/");
	folder_is("*.nc", ".");
	folder_is("/data/y", "/data/y");
}

/* a form has the described properties, and only equals itself */
static void test_forms(void **state)
{
	struct concat_forms f;
	struct one a, b;
	uint32_t x, y;

	(void)state;
	concat_forms_init(&f, 1 << 20);
	begin(&a, DT_INT, 2);
	text(&a, "units", "K");
	number(&a, "scale_factor", 0.5);
	text(&a, "history", "does not matter");
	begin(&b, DT_INT, 2);
	number(&b, "scale_factor", 0.5);
	text(&b, "units", "K");
	x = form_of(&f, &a);
	assert_int_equal(form_of(&f, &b), x); /* another order, and no history */
	b.chunk[0] = 3;
	y = form_of(&f, &b);
	assert_int_not_equal(x, y);
	assert_string_equal(f.v[x].path, "/v");
	assert_string_equal(f.v[x].units, "K");
	assert_int_equal(f.v[x].n_attrs, 2);
	assert_int_equal(f.v[x].rank, 2);
	assert_int_equal(f.v[y].chunk[0], 3);
	for (uint32_t i = 0; i < 500; i++) { /* more than there are heads */
		b.shape[0] = i;
		x = form_of(&f, &b);
		assert_int_equal(form_of(&f, &b), x);
		assert_int_equal(f.v[x].shape[0], i);
	}
	concat_forms_release(&f);
}

/* bytes that are no form are refused, whatever they are; nothing is read beyond them */
static void test_hostile_forms(void **state)
{
	struct concat_forms f;
	struct one a;
	uint32_t x, y;
	size_t n;

	(void)state;
	concat_forms_init(&f, 1 << 26);
	begin(&a, DT_INT, 2);
	text(&a, "units", "days since 2000-01-01");
	number(&a, "_FillValue", 1);
	x = form_of(&f, &a);
	n = f.v[x].n_bytes;
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *some = malloc(cut + 1);

		memcpy(some, f.v[x].bytes, cut);
		assert_true(concat_intern(&f, some, cut, &y, NULL) < 0);
		free(some);
	}
	for (size_t at = 0; at < n; at++) {
		uint8_t *bad = malloc(n);

		memcpy(bad, f.v[x].bytes, n);
		bad[at] ^= 0x81;
		(void)!concat_intern(&f, bad, n, &y, NULL); /* many mean something */
		free(bad);
	}
	concat_forms_release(&f);
}

/* decided - what two forms become; 0 or the error. */
struct decided {
	struct arena arena;
	struct concat_goal goal;
	struct concat_conv convs[2];
	struct err e;
	int rc;
};

static struct decided decided(const struct one *a, const struct one *b)
{
	static struct concat_forms f; /* forms are used as long as the decision */
	struct decided d = {.e = ERR_INIT};
	const struct concat_form *v[2];
	uint32_t x, y;
	size_t at;

	concat_forms_release(&f);
	concat_forms_init(&f, 1 << 20);
	arena_init(&d.arena, 1 << 20);
	x = form_of(&f, a);
	y = form_of(&f, b);
	v[0] = &f.v[x];
	v[1] = &f.v[y];
	d.rc = concat_decide(&d.arena, v, 2, NULL, &d.goal, d.convs, &at, &d.e);
	if (d.rc < 0)
		assert_int_equal(at, 1);
	return d;
}

static void types_give(enum dt_kind ka, uint32_t sa, enum dt_kind kb, uint32_t sb,
		       enum dt_kind kind, uint32_t size)
{
	struct one a, b;
	struct decided d;

	begin(&a, ka, sa);
	begin(&b, kb, sb);
	d = decided(&a, &b);
	assert_int_equal(d.rc, size ? 0 : -EINVAL);
	if (size) {
		assert_int_equal(d.goal.type.kind, kind);
		assert_int_equal(d.goal.type.size, size);
	}
	arena_release(&d.arena);
}

static void test_types(void **state)
{
	(void)state;
	types_give(DT_INT, 2, DT_INT, 2, DT_INT, 2);
	types_give(DT_INT, 2, DT_INT, 4, DT_INT, 4);
	types_give(DT_INT, 8, DT_INT, 1, DT_INT, 8);
	types_give(DT_UINT, 1, DT_INT, 1, DT_INT, 2);
	types_give(DT_UINT, 2, DT_INT, 8, DT_INT, 8);
	types_give(DT_UINT, 8, DT_INT, 8, DT_INT, 0);
	types_give(DT_INT, 1, DT_UINT, 8, DT_INT, 0);
	types_give(DT_INT, 2, DT_FLOAT, 4, DT_FLOAT, 4);
	types_give(DT_INT, 4, DT_FLOAT, 4, DT_FLOAT, 8);
	types_give(DT_INT, 8, DT_FLOAT, 8, DT_FLOAT, 0);
	types_give(DT_FLOAT, 4, DT_FLOAT, 8, DT_FLOAT, 8);
	types_give(DT_STRING, 1, DT_INT, 1, DT_INT, 0);
	types_give(DT_STRING, 4, DT_STRING, 8, DT_INT, 0);
}

static void test_packed(void **state)
{
	const int16_t in[2] = {10, -1};
	struct one a, b;
	struct decided d;
	float out[2];

	(void)state;
	begin(&a, DT_INT, 2);
	number(&a, "scale_factor", 0.5);
	begin(&b, DT_INT, 2);
	number(&b, "scale_factor", 0.25);
	number(&b, "_FillValue", -1);
	d = decided(&a, &b);
	assert_int_equal(d.rc, 0);
	assert_true(d.goal.unpack);
	assert_int_equal(d.goal.type.kind, DT_FLOAT);
	assert_int_equal(d.goal.type.size, 4);
	assert_int_equal(
		concat_convert(&d.convs[1], (const uint8_t *)in, (uint8_t *)out, 2, NULL), 0);
	assert_true(out[0] == 2.5f && isnan(out[1]));
	assert_true(concat_value_at(&d.convs[0], (const uint8_t *)in, 0) == 5);
	arena_release(&d.arena);
	begin(&b, DT_INT, 2);
	number(&b, "scale_factor", 0.5);
	d = decided(&a, &b);
	assert_true(d.rc == 0 && !d.goal.unpack && d.convs[1].same);
	arena_release(&d.arena);
	b.a.type.big_endian = true;
	d = decided(&a, &b);
	assert_true(d.rc == 0 && !d.convs[1].same && d.convs[1].swap);
	arena_release(&d.arena);
}

static void times(struct one *o, enum dt_kind kind, const char *units, const char *calendar)
{
	begin(o, kind, kind == DT_FLOAT ? 8 : 4);
	text(o, "units", units);
	if (calendar)
		text(o, "calendar", calendar);
}

static void test_times(void **state)
{
	const double real[2] = {12, 36};
	const int32_t whole[1] = {1};
	struct one a, b;
	struct decided d;
	double out[2];
	int64_t n;

	(void)state;
	times(&a, DT_FLOAT, "days since 2000-01-01", NULL);
	times(&b, DT_FLOAT, "hours since 2000-01-02", NULL);
	d = decided(&a, &b);
	assert_int_equal(d.rc, 0);
	assert_true(d.convs[0].same && d.convs[1].shift);
	assert_int_equal(
		concat_convert(&d.convs[1], (const uint8_t *)real, (uint8_t *)out, 2, NULL), 0);
	assert_true(out[0] == 1.5 && out[1] == 2.5);
	assert_true(concat_value_at(&d.convs[1], (const uint8_t *)real, 1) == 2.5L);
	arena_release(&d.arena);
	/* whole numbers stay whole: in hours */
	times(&a, DT_INT, "days since 2000-01-01", NULL);
	times(&b, DT_INT, "hours since 2000-01-02", NULL);
	d = decided(&a, &b);
	assert_true(d.rc == 0 && d.goal.other_units && d.goal.type.kind == DT_INT &&
		    d.goal.type.size == 8);
	assert_string_equal(d.goal.units, "hours since 2000-01-02");
	assert_int_equal(
		concat_convert(&d.convs[0], (const uint8_t *)whole, (uint8_t *)&n, 1, NULL), 0);
	assert_int_equal(n, 0);
	arena_release(&d.arena);
	times(&b, DT_FLOAT, "days since 2000-01-01", "noleap");
	times(&a, DT_FLOAT, "hours since 2000-01-01", NULL);
	d = decided(&a, &b);
	assert_int_equal(d.rc, -EINVAL);
	assert_non_null(strstr(d.e.msg, "noleap"));
	arena_release(&d.arena);
	times(&b, DT_FLOAT, "K", NULL);
	d = decided(&a, &b);
	assert_int_equal(d.rc, -EINVAL);
	arena_release(&d.arena);
	d = decided(&b, &a);
	assert_int_equal(d.rc, -EINVAL);
	assert_non_null(strstr(d.e.msg, "units"));
	arena_release(&d.arena);
}

static void test_shapes(void **state)
{
	struct one a, b;
	struct decided d;

	(void)state;
	begin(&a, DT_INT, 4);
	begin(&b, DT_INT, 4);
	b.shape[0] = 99; /* the joined one may be as long as it likes */
	d = decided(&a, &b);
	assert_int_equal(d.rc, 0);
	arena_release(&d.arena);
	b.shape[1] = 5;
	d = decided(&a, &b);
	assert_int_equal(d.rc, -EINVAL);
	assert_non_null(strstr(d.e.msg, "'x'"));
	arena_release(&d.arena);
	b.shape[1] = 4;
	b.dims[1].name = "y";
	d = decided(&a, &b);
	assert_int_equal(d.rc, -EINVAL);
	arena_release(&d.arena);
	b.a.rank = 1;
	d = decided(&a, &b);
	assert_int_equal(d.rc, -EINVAL);
	arena_release(&d.arena);
}

/* ---- the index file ---- */

static char path_a[] = "/nowhere/a.nc", path_b[] = "/nowhere/b.nc", dim_time[] = "time";

struct fx {
	struct concat j;
	struct concat_member members[2];
	char file[64];
};

static void fx_begin(struct fx *x)
{
	*x = (struct fx){.file = "/tmp/test_join.XXXXXX"};
	x->members[0] = (struct concat_member){
		.path = path_a, .id.v = {[ID_INO] = 1, [ID_SIZE] = 5}, .coord_form = CONCAT_NONE};
	x->members[1] = (struct concat_member){
		.path = path_b, .id.v = {[ID_INO] = 2, [ID_SIZE] = 6}, .coord_form = CONCAT_NONE};
	x->j.members = x->members;
	x->j.n_members = 2;
	x->j.dim = dim_time;
	x->j.pattern = path_a;
	concat_forms_init(&x->j.forms, 1 << 24);
}

static void fx_end(struct fx *x)
{
	for (int i = 0; i < 2; i++) {
		free(x->members[i].forms);
		free(x->members[i].coord);
	}
	concat_forms_release(&x->j.forms);
}

static void test_index(void **state)
{
	struct fx x, y;
	struct one o;
	uint8_t data[4096];
	size_t n;
	int fd;

	(void)state;
	fx_begin(&x);
	fd = mkstemp(x.file);
	assert_true(fd >= 0);
	begin(&o, DT_INT, 4);
	for (int i = 0; i < 2; i++) {
		x.members[i].forms = alloc_array(1, sizeof(uint32_t));
		x.members[i].forms[0] = form_of(&x.j.forms, &o);
		x.members[i].n_forms = 1;
		x.members[i].len = 6;
		x.members[i].known = true;
	}
	begin(&o, DT_FLOAT, 8);
	o.a.name = "time";
	o.a.rank = 1;
	free(x.members[1].forms);
	x.members[1].forms = alloc_array(2, sizeof(uint32_t));
	x.members[1].forms[0] = form_of(&x.j.forms, &o);
	x.members[1].forms[1] = x.members[0].forms[0];
	x.members[1].n_forms = 2;
	x.members[1].coord_form = x.members[1].forms[0];
	x.members[1].coord = alloc_array(6, 8);
	x.members[1].n_coord = 48;
	x.j.opts.index_file = x.file;
	x.j.index_dirty = true;
	concat_index_save(&x.j);
	assert_false(x.j.index_dirty);
	n = (size_t)pread(fd, data, sizeof(data), 0);
	assert_int_equal(n, 0); /* it is another file by now: it was written beside */
	(void)close(fd);
	fx_begin(&y);
	y.j.opts.index_file = x.file;
	y.members[0].id.v[ID_SIZE] = 7; /* was changed */
	concat_index_load(&y.j);
	assert_true(!y.members[0].known && y.members[1].known && y.j.index_dirty);
	assert_int_equal(y.members[1].n_coord, 48);
	assert_int_equal(y.members[1].len, 6);
	assert_int_equal(y.j.forms.n, 2);
	assert_int_equal(y.members[1].coord_form, 1);
	fx_end(&y);
	fd = open(x.file, O_RDONLY);
	n = (size_t)read(fd, data, sizeof(data));
	assert_true(n > 12 && n < sizeof(data));
	(void)close(fd);
	for (size_t cut = 0; cut < n; cut++) { /* each length, each byte */
		fx_begin(&y);
		assert_false(concat_index_parse(&y.j, data, cut));
		fx_end(&y);
		data[cut] ^= 0x40;
		fx_begin(&y);
		assert_false(concat_index_parse(&y.j, data, n));
		fx_end(&y);
		data[cut] ^= 0x40;
	}
	for (size_t at = 12; at < n; at++) { /* and with a checksum that is right */
		uint32_t sum;

		data[at] ^= 0xff;
		sum = codec_crc32c_sum(0, data + 12, n - 12);
		for (int i = 0; i < 4; i++)
			data[8 + i] = (uint8_t)(sum >> 8 * i);
		fx_begin(&y);
		(void)concat_index_parse(&y.j, data, n);
		for (int i = 0; i < 2; i++)
			for (uint32_t k = 0; k < y.members[i].n_forms; k++)
				assert_true(y.members[i].forms[k] < y.j.forms.n);
		fx_end(&y);
		data[at] ^= 0xff;
	}
	(void)unlink(x.file);
	fx_end(&x);
}

static int no_next(struct source *s NZ_UNUSED, uint32_t array NZ_UNUSED,
		   uint64_t from NZ_UNUSED, uint64_t *ret NZ_UNUSED, struct err *e)
{
	return err_set(e, -ENOENT, "no chunk");
}

static int changed(struct source *s NZ_UNUSED, struct err *e)
{
	return err_set(e, -ESTALE, "it was changed");
}

/* SEMANTICS C1
 * A member that changed does not say that chunks are absent, and the join is stale. */
static void test_changed(void **state)
{
	static const struct source_ops ops = {.name = "fake", .next = no_next, .check = changed};
	struct concat_part part = {.form = 7, .absent = true};
	struct concat_array joined = {
		.joined = true, .aligned = true, .n_parts = 1, .parts = &part};
	uint32_t form = 7, array = 0;
	uint64_t grid[2] = {3, 1}, next;
	struct source member = {.ops = &ops};
	struct concat_slot slot = {.state = CONCAT_OPEN,
				   .at = {.source = &member, .arrays = &array}};
	struct err e = ERR_INIT;
	struct fx x;
	struct one o;

	(void)state;
	fx_begin(&x);
	begin(&o, DT_INT, 2);
	o.a.grid = grid;
	o.a.n_chunks = 3;
	member.ds = x.j.base.ds = o.ds;
	x.members[0].len = 6;
	x.members[0].forms = &form;
	x.j.n_members = 1;
	x.j.arrays = &joined;
	x.j.slots = &slot;
	(void)pthread_mutex_init(&x.j.lock, NULL);
	assert_int_equal(concat_next(&x.j.base, 0, 0, &next, &e), -ESTALE);
	assert_true(atomic_load(&x.j.stale));
	assert_int_equal(slot.users, 0);
	x.members[0].forms = NULL;
	(void)pthread_mutex_destroy(&x.j.lock);
	fx_end(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unreadable), cmocka_unit_test(test_changed),
		cmocka_unit_test(test_names),      cmocka_unit_test(test_folders),
		cmocka_unit_test(test_forms),      cmocka_unit_test(test_hostile_forms),
		cmocka_unit_test(test_types),      cmocka_unit_test(test_packed),
		cmocka_unit_test(test_times),      cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
