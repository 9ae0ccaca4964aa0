/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of a sink: one for each difference, in the order of the contract, and no others. */
#include "tests/unit/translate/diff/diff_fake.h"

#include <time.h>

static const uint64_t two[] = {2}, two_three[] = {2, 3};

/* sample - the same every time: /x (t, 6 long), /g/y (t, u), attributes a of /, b of x. */
static struct model *sample(void)
{
	struct model *m = model_new();
	uint32_t g = group(m, 0, "g"), t = dim(m, 0, "t", 6, false), d[2];
	uint32_t x = array(m, 0, "x", 1, &t, two);

	d[0] = t;
	d[1] = dim(m, g, "u", 5, false);
	(void)array(m, g, "y", 2, d, two_three);
	(void)attr(m, 0, DS_NONE, "a", 1);
	(void)attr(m, 0, x, "b", 2);
	return m;
}

/* go - push and say what the sink was told; new. */
static char *go(struct model *was, struct model *now, struct changes *c,
		const struct diff_policy *policy, struct diff_report *report)
{
	struct changes none = {.moved = DS_NONE};
	struct recorder r;
	struct diff_job job = {
		.was = was ? &was->base : NULL,
		.now = &now->base,
		.policy = policy,
		.changed = fake_changed,
		.arg = c ? c : &none,
		.memory = 1 << 20,
	};
	struct err e = ERR_INIT;
	char *ret;

	recorder_init(&r);
	job.sink = &r.base;
	assert_int_equal(push(&job, report, &e), 0);
	ret = strdup(said(&r));
	sink_close(&r.base);
	assert_non_null(ret);
	return ret;
}

/* expect - after change() of a sample the sink has these calls. */
static void expect(struct model *was, struct model *now, struct changes *c, const char *want)
{
	char *got = go(was, now, c, NULL, NULL);

	assert_string_equal(got, want);
	free(got);
	if (was)
		model_free(was);
	model_free(now);
}

static void test_nothing(void **state)
{
	struct model *was = sample(), *now = sample();
	struct diff_report r;
	char *got;

	(void)state;
	now->value[0] = 99; /* not reported as changed */
	got = go(was, now, NULL, NULL, &r);
	assert_string_equal(got, "");
	assert_int_equal(r.groups + r.arrays + r.attrs + r.passed + r.encoded + r.dropped, 0);
	free(got);
	model_free(was);
	model_free(now);
}

static void test_everything(void **state)
{
	(void)state;
	expect(NULL, sample(), NULL,
	       "+group /g\n+array /x\n+array /g/y\ndims\nset / a\n"
	       "put /x 0 4\nput /x 1 4\nput /x 2 4\n"
	       "put /g/y 0 12\nput /g/y 1 12\nput /g/y 2 12\nput /g/y 3 12\nput /g/y 4 12\n"
	       "put /g/y 5 12\ncommit\n");
}

static void test_gone(void **state)
{
	struct model *now = model_new();

	(void)state;
	(void)attr(now, 0, DS_NONE, "a", 1);
	expect(sample(), now, NULL, "-array /x\n-array /g/y\n-group /g\ndims\ncommit\n");
}

static void test_attrs(void **state)
{
	struct model *was = sample(), *now = sample();
	double nan = 0.0 / 0.0;
	struct ds_attr *p, *q;

	(void)state;
	(void)attr(was, 1, DS_NONE, "old", 1);
	(void)attr(now, 0, DS_NONE, "new", 1);
	(void)attr(was, 0, 0, "c", 3); /* another order is no difference */
	(void)attr(was, 0, 0, "d", 4);
	(void)attr(now, 0, 0, "d", 4);
	(void)attr(now, 0, 0, "c", 5);
	p = attr(was, 0, 1, "nan", 0);
	q = attr(now, 0, 1, "nan", 0);
	p->type = q->type = (struct dtype){.kind = DT_FLOAT, .size = 8};
	p->data = keep(was, &nan, sizeof(nan));
	nan = -nan;
	q->data = keep(now, &nan, sizeof(nan));
	expect(was, now, NULL, "set / new\nunset /g old\nset /x c\ncommit\n");
}

static void test_attr_kinds(void **state)
{
	static const struct ds_text abc = {"abc", 3}, abd = {"abd", 3};
	struct model *was = sample(), *now = sample();
	struct ds_attr *p, *q;
	int64_t wide = 2;

	(void)state;
	p = attr(was, 0, 1, "text", 0);
	q = attr(now, 0, 1, "text", 0);
	p->type = q->type = (struct dtype){.kind = DT_VSTRING};
	p->data = q->data = NULL;
	p->strings = &abc;
	q->strings = &abd;
	now->attrs[1][0].type.size = 8; /* the same number, in another type */
	now->attrs[1][0].data = keep(now, &wide, sizeof(wide));
	expect(was, now, NULL, "set /x b\nset /g/y text\ncommit\n");
}

static void test_another_form(void **state)
{
	static const int16_t fill = 5;
	static const struct codec_spec deflate = {.h5_id = CODEC_DEFLATE};
	const char *want = "-array /x\n+array /x\ndims\nput /x 0 4\nput /x 1 4\nput /x 2 4\n"
			   "commit\n";

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct model *now = sample();
		struct ds_array *a = &now->arrays[0];

		if (i == 0)
			a->type.kind = DT_UINT;
		else if (i == 1)
			a->type.big_endian = true;
		else if (i == 2)
			a->fill = (const uint8_t *)&fill;
		else
			a->chain = (struct codec_chain){1, &deflate};
		expect(sample(), now, NULL, want);
	}
}

static void test_another_chunk(void **state)
{
	struct model *now = sample();

	(void)state;
	now->arrays[0].chunk = keep(now, &(uint64_t){3}, 8);
	finish(now, 0);
	expect(sample(), now, NULL,
	       "-array /x\n+array /x\ndims\nput /x 0 6\nput /x 1 6\ncommit\n");
}

static void test_changed(void **state)
{
	struct changes c = {.linear = {1, 4}, .n = 2};
	struct model *now = sample();

	(void)state;
	now->absent[1][1] = true;
	now->absent[1][4] = true;
	expect(sample(), now, &c, "put /x 1 4\ndrop /g/y 1\ndrop /g/y 4\ncommit\n");
}

static void test_absent_before_and_after(void **state)
{
	struct changes c = {.linear = {1}, .n = 1};
	struct model *was = sample(), *now = sample();

	(void)state;
	was->absent[0][1] = was->absent[1][1] = true;
	now->absent[0][1] = now->absent[1][1] = true;
	expect(was, now, &c, "");
}

static struct model *longer(uint64_t len)
{
	struct model *m = model_new();
	uint32_t t = dim(m, 0, "t", len, true);

	(void)array(m, 0, "x", 1, &t, two);
	return m;
}

static void test_grown(void **state)
{
	struct changes c = {.linear = {2, 3}, .n = 2};
	struct model *now = longer(10);

	(void)state;
	now->absent[0][4] = true; /* was 5 long: chunk 2 was partial, 3 and 4 are new */
	expect(longer(5), now, &c, "dims\nresize /x\nput /x 2 4\nput /x 3 4\ncommit\n");
}

static void test_shrunk(void **state)
{
	(void)state;
	expect(longer(10), longer(4), NULL, "dims\nresize /x\ncommit\n");
}

static void test_grown_sideways(void **state)
{
	struct model *was = model_new(), *now = model_new();
	struct changes c = {.linear = {1}, .n = 1};
	uint32_t d[2];

	(void)state;
	d[0] = dim(was, 0, "t", 4, true);
	d[1] = dim(was, 0, "u", 3, true);
	(void)array(was, 0, "x", 2, d, two_three);
	d[0] = dim(now, 0, "t", 4, true);
	d[1] = dim(now, 0, "u", 6, true);
	(void)array(now, 0, "x", 2, d, two_three);
	expect(was, now, &c, "dims\nresize /x\nput /x 1 12\nput /x 3 12\ncommit\n");
}

static void test_dims(void **state)
{
	struct model *now = sample();

	(void)state;
	now->dims[0].name = "time";
	expect(sample(), now, NULL, "dims\ncommit\n");
	now = sample();
	now->dims[1].unlimited = true;
	expect(sample(), now, NULL, "dims\ncommit\n");
	now = sample();
	(void)dim(now, 1, "unused", 3, false);
	expect(sample(), now, NULL, "dims\ncommit\n");
}

static uint32_t moved_from(void *arg, uint32_t a)
{
	(void)a;
	return ((const struct changes *)arg)->moved;
}

static void test_moved(void **state)
{
	struct model *was = sample(), *now = sample();
	struct changes c = {.moved = 0};
	struct recorder r;
	struct diff_job job = {.was = &was->base,
			       .now = &now->base,
			       .changed = fake_changed,
			       .moved_from = moved_from,
			       .arg = &c};

	(void)state;
	(void)snprintf(now->names[0], sizeof(now->names[0]), "z");
	now->attrs[1][0].name = "c";
	recorder_init(&r);
	job.sink = &r.base;
	assert_int_equal(push(&job, NULL, NULL), 0);
	assert_string_equal(said(&r), "rename /x\nto /z\ndims\nunset /z b\nset /z c\ncommit\n");
	sink_close(&r.base);

	/* another shape: it cannot be the same */
	now->arrays[0].shape = keep(now, &(uint64_t){2}, 8);
	finish(now, 0);
	recorder_init(&r);
	job.sink = &r.base;
	assert_int_equal(push(&job, NULL, NULL), 0);
	assert_string_equal(said(&r), "-array /x\n+array /z\ndims\nput /z 0 4\ncommit\n");
	sink_close(&r.base);
	model_free(was);
	model_free(now);
}

static void test_group_for_array(void **state)
{
	struct model *was = model_new(), *now = model_new();
	uint32_t t = dim(was, 0, "t", 2, false);

	(void)state;
	(void)array(was, 0, "x", 1, &t, two);
	(void)group(now, group(now, 0, "x"), "in");
	expect(was, now, NULL, "-array /x\n+group /x\n+group /x/in\ndims\ncommit\n");
}

static int refuse(void *arg, uint32_t a, uint64_t linear, const struct err *why)
{
	struct changes *c = arg;

	(void)a;
	(void)linear;
	assert_string_equal(why->msg, "damaged");
	c->refusals++;
	return c->refuse ? 0 : -EBADMSG;
}

static int closed_gate(void *arg, struct err *e)
{
	(void)arg;
	return err_set(e, -ESTALE, "shut");
}

static void test_failures(void **state)
{
	struct model *was = sample(), *now = sample();
	struct changes c = {.linear = {1}, .n = 1, .refuse = true};
	struct recorder r;
	struct diff_job job = {.was = &was->base,
			       .now = &now->base,
			       .changed = fake_changed,
			       .refused = refuse,
			       .arg = &c};
	struct err e = ERR_INIT;

	(void)state;
	now->bad[0][1] = true;
	recorder_init(&r);
	job.sink = &r.base;
	assert_int_equal(push(&job, NULL, &e), 0);
	assert_string_equal(said(&r), "put /g/y 1 12\ncommit\n");
	assert_int_equal(c.refusals, 1);
	sink_close(&r.base);

	c.refuse = false;
	recorder_init(&r);
	assert_int_equal(push(&job, NULL, &e), -EBADMSG);
	assert_string_equal(e.msg, "damaged");
	assert_string_equal(said(&r), "");
	sink_close(&r.base);

	now->bad[0][1] = false;
	job.gate = closed_gate;
	recorder_init(&r);
	assert_int_equal(push(&job, NULL, &e), -ESTALE);
	sink_close(&r.base);

	recorder_init(&r);
	r.fail_put = -ENOSPC;
	assert_int_equal(push(&job, NULL, &e), -ENOSPC);
	assert_null(strstr(said(&r), "commit"));
	sink_close(&r.base);
	model_free(was);
	model_free(now);
}

/* 2,000 variables: were names looked for one by one, this would take seconds. */
/* observing - what an observer was told, after how many bytes of the sink's log. */
struct observing {
	struct recorder r;
	int added, put, removed, resized;
	bool fail;
};

/* observe_call - the sink has not been told yet. */
static int observe_call(struct observing *o, int *n, const char *call, struct err *e)
{
	const char *last = strstr(said(&o->r), call);

	for (int i = 0; i < *n && last; i++)
		last = strstr(last + 1, call);
	assert_null(last);
	++*n;
	return o->fail ? err_set(e, -EIO, "made up") : 0;
}

static int observe_added(void *arg, uint32_t a, const struct sink_new *how, struct err *e)
{
	struct observing *o = arg;

	assert_true(a < 2 && how);
	return observe_call(o, &o->added, "+array", e);
}

static int observe_put(void *arg, uint32_t a, uint64_t linear, struct err *e)
{
	struct observing *o = arg;

	assert_true(a < 2 && linear < 6);
	return observe_call(o, &o->put, "put", e);
}

static int observe_removed(void *arg, uint32_t was, struct err *e)
{
	struct observing *o = arg;

	assert_true(was < 2);
	return observe_call(o, &o->removed, "-array", e);
}

static int observe_resized(void *arg, uint32_t a, struct err *e)
{
	struct observing *o = arg;

	assert_int_equal(a, 0);
	return observe_call(o, &o->resized, "resize", e);
}

/* observe - push with an observer; the error of push. */
static int observe(struct model *was, struct model *now, struct observing *o)
{
	static const struct diff_observer ops = {.added = observe_added,
						 .put = observe_put,
						 .removed = observe_removed,
						 .resized = observe_resized};
	struct diff_job job = {.was = was ? &was->base : NULL,
			       .now = &now->base,
			       .sink = &o->r.base,
			       .observer = &ops,
			       .arg = o,
			       .memory = 1 << 20};
	struct err e = ERR_INIT;
	int rc;

	recorder_init(&o->r);
	rc = push(&job, NULL, &e);
	if (rc)
		assert_string_equal(said(&o->r), "");
	sink_close(&o->r.base);
	if (was)
		model_free(was);
	model_free(now);
	return rc;
}

static void test_observer(void **state)
{
	struct observing o = {.fail = false};

	(void)state;
	assert_int_equal(observe(NULL, sample(), &o), 0);
	assert_int_equal(o.added, 2);
	assert_int_equal(o.put, 9);
	o = (struct observing){.fail = false};
	assert_int_equal(observe(sample(), model_new(), &o), 0);
	assert_int_equal(o.removed, 2);
	o = (struct observing){.fail = false};
	assert_int_equal(observe(longer(5), longer(10), &o), 0);
	assert_int_equal(o.resized, 1);
	assert_int_equal(o.put, 5);
	o = (struct observing){.fail = true};
	assert_int_equal(observe(sample(), model_new(), &o), -EIO);
	assert_int_equal(o.removed, 1);
}

static void test_many(void **state)
{
	struct model *was = model_new(), *now = model_new();
	uint32_t t = dim(was, 0, "t", 2, false);
	char name[24];
	struct timespec a, b;

	(void)state;
	(void)dim(now, 0, "t", 2, false);
	for (int i = 0; i < 2000; i++) {
		(void)snprintf(name, sizeof(name), "variable_%d", i);
		(void)array(was, 0, name, 1, &t, two);
		(void)snprintf(name, sizeof(name), "variable_%d", 1999 - i);
		(void)array(now, 0, name, 1, &t, two);
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	expect(was, now, NULL, "");
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	print_message("2,000 variables compared in %.1f ms\n",
		      (double)(b.tv_sec - a.tv_sec) * 1e3 +
			      (double)(b.tv_nsec - a.tv_nsec) / 1e6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_attrs),
		cmocka_unit_test(test_attr_kinds),
		cmocka_unit_test(test_another_form),
		cmocka_unit_test(test_another_chunk),
		cmocka_unit_test(test_changed),
		cmocka_unit_test(test_absent_before_and_after),
		cmocka_unit_test(test_grown),
		cmocka_unit_test(test_shrunk),
		cmocka_unit_test(test_grown_sideways),
		cmocka_unit_test(test_dims),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_group_for_array),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_observer),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
