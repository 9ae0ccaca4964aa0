/* SPDX-License-Identifier: BSD-3-Clause */
/* How chunks go: as they are, decoded, or put together for another grid; and how new arrays are
 * stored. */
#include "tests/unit/translate/diff/diff_fake.h"

#include "codecs/spec/spec.h"
#include "translate/model/chunk_rule.h"

static const struct codec_spec specs[] = {
	{.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = (const uint32_t[]){2}, .name = ""},
	{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = (const uint32_t[]){5}, .name = ""},
	{.h5_id = CODEC_FLETCHER32, .name = ""},
};
static const struct codec_spec other_level[] = {
	{.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = (const uint32_t[]){2}, .name = ""},
	{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = (const uint32_t[]){1}, .name = ""},
};

/* one - an array x of 100 by 70, in chunks of 32 by 20; that of `now` has another attribute, so
 * that there is something to compare. */
static struct model *one(void)
{
	static const uint64_t chunk[] = {32, 20};
	struct model *m = model_new();
	uint32_t d[2];

	d[0] = dim(m, 0, "t", 100, false);
	d[1] = dim(m, 0, "u", 70, false);
	(void)array(m, 0, "x", 2, d, chunk);
	return m;
}

struct pair {
	struct model *was, *now;
	struct recorder r;
	struct changes c;
	struct diff_policy policy;
	struct diff_job job;
};

static void setup(struct pair *p)
{
	*p = (struct pair){.was = one(),
			   .now = one(),
			   .c = {.linear = {5}, .n = 1},
			   .policy = {.format = PLAN_HDF5}};
	p->job = (struct diff_job){
		.was = &p->was->base,
		.now = &p->now->base,
		.policy = &p->policy,
		.changed = fake_changed,
		.arg = &p->c,
		.memory = 1 << 16,
	};
	recorder_init(&p->r);
	p->job.sink = &p->r.base;
}

static void chain(struct pair *p, const struct codec_spec *v, uint32_t n)
{
	p->was->arrays[0].chain = (struct codec_chain){n, v};
	p->now->arrays[0].chain = (struct codec_chain){n, v};
}

static void done(struct pair *p, const char *want)
{
	struct err e = ERR_INIT;
	int rc = push(&p->job, NULL, &e);

	assert_string_equal(e.msg, "");
	assert_int_equal(rc, 0);
	if (want)
		assert_string_equal(said(&p->r), want);
	sink_close(&p->r.base);
	model_free(p->was);
	model_free(p->now);
}

static void test_as_they_are(void **state)
{
	struct pair p;

	(void)state;
	setup(&p); /* filters that are the same but for a level */
	chain(&p, specs, 2);
	p.r.chain = (struct codec_chain){2, other_level};
	p.r.takes_stored = true;
	done(&p, "put /x 5 stored 1280\ncommit\n");

	setup(&p); /* no filters at all */
	p.r.takes_stored = true;
	done(&p, "put /x 5 stored 1280\ncommit\n");

	setup(&p); /* the checksum behind it is not in the target */
	chain(&p, specs, 3);
	p.r.chain = (struct codec_chain){2, specs};
	p.r.takes_stored = true;
	done(&p, "put /x 5 stored 1276\ncommit\n");

	setup(&p); /* not all filters, and the target knows that */
	chain(&p, specs, 2);
	p.r.chain = (struct codec_chain){2, specs};
	p.r.takes_stored = true;
	p.now->mask = 1;
	done(&p, "put /x 5 stored masked 1280\ncommit\n");
}

static void test_decoded(void **state)
{
	struct pair p;

	(void)state;
	setup(&p); /* the target has a checksum more */
	chain(&p, specs, 2);
	p.r.chain = (struct codec_chain){3, specs};
	p.r.takes_stored = true;
	done(&p, "put /x 5 1280\ncommit\n");

	setup(&p); /* the target takes none that are stored */
	done(&p, "put /x 5 1280\ncommit\n");

	setup(&p); /* only the source can make the elements */
	p.now->arrays[0].access = DS_CONVERT;
	p.r.takes_stored = true;
	done(&p, "put /x 5 1280\ncommit\n");

	setup(&p); /* a chunk that is shorter than all */
	p.now->pad = 4;
	p.r.takes_stored = true;
	done(&p, "put /x 5 1280\ncommit\n");

	setup(&p); /* Zarr has no masks */
	chain(&p, specs, 2);
	p.r.chain = (struct codec_chain){2, specs};
	p.r.takes_stored = true;
	p.now->mask = 1;
	p.policy.format = PLAN_ZARR2;
	done(&p, "put /x 5 1280\ncommit\n");
}

/* ---- another grid ---- */

/* checked - a sink that knows what every element of the target has to be. */
static uint64_t n_checked;
static uint64_t check_chunk_lens[2];
static bool check_absent[64]; /* chunks of now that are not there */

static int checking_put(struct sink *s, uint32_t a, uint64_t linear, const struct sink_chunk *c,
			struct err *e)
{
	const struct ds_array *x = &rec_of(s)->now->ds.arrays[a];
	uint64_t t0 = check_chunk_lens[0], t1 = check_chunk_lens[1];
	uint64_t across = (x->shape[1] - 1) / t1 + 1;
	const uint8_t *p = c->p;

	assert_false(c->stored);
	if (!dt_is_vlen(&x->type))
		assert_int_equal(c->len, t0 * t1 * 2);
	for (uint64_t i = 0; i < t0 * t1; i++) {
		uint64_t r = linear / across * t0 + i / t1, q = linear % across * t1 + i % t1;
		bool in = r < x->shape[0] && q < x->shape[1];
		uint64_t src = in ? r / 32 * x->grid[1] + q / 20 : 0;
		int16_t want = -7, got;
		char text[24];

		if (in && !check_absent[src])
			want = (int16_t)(r * x->shape[1] + q);
		if (!dt_is_vlen(&x->type)) {
			memcpy(&got, p + 2 * i, 2);
			assert_int_equal(got, want);
			continue;
		}
		(void)snprintf(text, sizeof(text), "t%d", want);
		if (!in || check_absent[src])
			(void)snprintf(text, sizeof(text), "fill");
		assert_int_equal(p[0], strlen(text));
		assert_memory_equal(p + 4, text, strlen(text));
		p += 4 + p[0];
	}
	n_checked++;
	return rec_put(s, a, linear, c, e);
}

static void regrid(uint64_t t0, uint64_t t1, bool vlen, size_t n_changed, uint64_t puts)
{
	struct sink_ops ops = recorder_ops;
	struct pair p;

	setup(&p);
	ops.put = checking_put;
	p.r.base.ops = &ops;
	check_chunk_lens[0] = t0;
	check_chunk_lens[1] = t1;
	p.r.chunk = check_chunk_lens;
	p.c.n = n_changed;
	if (n_changed == 2) {
		p.c.linear[0] = 0;
		p.c.linear[1] = 15;
	}
	if (n_changed == 0)
		p.job.changed = NULL; /* all */
	if (vlen)
		for (int i = 0; i < 2; i++) {
			struct model *m = i ? p.now : p.was;

			m->arrays[0].type = (struct dtype){.kind = DT_VSTRING};
			m->arrays[0].access = DS_VARIABLE;
			m->arrays[0].fill_text = (struct ds_text){"fill", 4};
			finish(m, 0);
		}
	p.now->absent[0][6] = check_absent[6] = true;
	n_checked = 0;
	done(&p, NULL);
	assert_int_equal(n_checked, puts);
}

static void test_regrid(void **state)
{
	(void)state;
	for (int vlen = 0; vlen < 2; vlen++) {
		regrid(100, 70, vlen, 0, 1);
		regrid(100, 70, vlen, 1, 1);
		regrid(7, 11, vlen, 0,
		       105 - 4); /* chunks without any existing element are not put */
		regrid(50, 1, vlen, 0, 140);
		regrid(1, 70, vlen, 0, 100);
		regrid(1, 70, vlen, 2, 36); /* rows 0 to 31 and 96 to 99 */
		regrid(16, 10, vlen, 2, 5);
	}
}

static int leave_out(void *arg, uint32_t a, uint64_t linear, const struct err *why)
{
	(void)arg;
	(void)a;
	assert_int_equal(linear, 5);
	assert_string_equal(why->msg, "damaged");
	return 0;
}

static void test_regrid_refused(void **state)
{
	static const uint64_t chunk[] = {50, 70};
	struct err e = ERR_INIT;
	struct pair p;

	(void)state;
	setup(&p);
	p.r.chunk = chunk;
	p.now->bad[0][5] = true;
	assert_int_equal(push(&p.job, NULL, &e), -EBADMSG);
	assert_string_equal(e.msg, "damaged");
	sink_close(&p.r.base);

	/* left out: nothing is put where half of it is not known */
	recorder_init(&p.r);
	p.r.chunk = chunk;
	p.job.refused = leave_out;
	done(&p, "");
}

static void test_regrid_drop(void **state)
{
	static const uint64_t chunk[] = {16, 20};
	struct pair p;

	(void)state;
	setup(&p);
	p.r.chunk = chunk;
	p.now->absent[0][5] = true;
	done(&p, "drop /x 9\ndrop /x 13\ncommit\n");
}

/* ---- new arrays ---- */

struct asked {
	uint64_t shape[4];
	uint32_t rank, size;
	bool chunked, unlimited;
	uint64_t own[4];
	const char *chunks[4], *filter;
	int zarr; /* 0: HDF5 */
	enum plan_filter keep;
	uint64_t bytes;
	struct codec_chain chain;
};

/* how - a new array is stored; names of filters and lengths as text. */
static const char *how(const struct asked *q, char *out, size_t cap)
{
	static const char *const names[] = {"time", "lat", "lon", "z"};
	struct model *m = model_new();
	struct codec_rules rules = {0};
	struct diff_policy policy = {.format = q->zarr == 0   ? PLAN_HDF5
					       : q->zarr == 2 ? PLAN_ZARR2
							      : PLAN_ZARR3,
				     .keep = q->keep,
				     .chunk_bytes = q->bytes,
				     .chunks = q->chunks,
				     .filters = &rules};
	struct diff_job job = {.now = &m->base, .policy = &policy};
	struct err e = ERR_INIT;
	struct recorder r;
	uint64_t own[4];
	uint32_t d[4];
	struct ds_array *a;
	size_t len = 0;

	while (policy.n_chunks < 4 && q->chunks[policy.n_chunks])
		policy.n_chunks++;
	if (q->filter)
		assert_int_equal(codec_rule_add(&m->arena, q->filter, &rules, &e), 0);
	for (uint32_t i = 0; i < q->rank; i++)
		own[i] = q->chunked ? q->own[i] : u64_max(q->shape[i], 1);
	for (uint32_t i = 0; i < q->rank; i++)
		d[i] = dim(m, 0, names[i], q->shape[i], i == 0 && q->unlimited);
	a = &m->arrays[array(m, 0, "x", q->rank, d, own)];
	a->type.size = q->size;
	a->layout = q->chunked ? DS_CHUNKED : DS_CONTIGUOUS;
	a->chain = q->chain;
	finish(m, 0);
	a->n_chunks = 0; /* not what this is about */
	recorder_init(&r);
	job.sink = &r.base;
	assert_int_equal(push(&job, NULL, &e), 0);
	out[0] = '\0';
	if (r.how.contiguous)
		len += (size_t)snprintf(out, cap, "contiguous");
	for (uint32_t i = 0; r.how.chunk && i < q->rank; i++)
		len += (size_t)snprintf(out + len, cap - len, "%s%llu", i ? "," : "",
					(unsigned long long)r.how_chunk[i]);
	for (uint32_t i = 0; i < r.how.chain.n; i++)
		len += (size_t)snprintf(out + len, cap - len, " %s",
					codec_name(&r.how_specs[i], (char[32]){0}, 32));
	sink_close(&r.base);
	model_free(m);
	return out;
}

#define HOW(want, ...)                                                                         \
	do {                                                                                   \
		const struct asked q = {__VA_ARGS__};                                          \
		char text[200];                                                                \
		assert_string_equal(how(&q, text, sizeof(text)), want);                        \
	} while (0)

#define MAPS .rank = 3, .size = 4, .bytes = 4 << 20

static void test_chunk_policy(void **state)
{
	(void)state;
	/* small things are one chunk; what has chunks keeps them */
	HOW("10,20,30", .shape = {10, 20, 30}, MAPS);
	HOW("", .shape = {100, 721, 1440}, .chunked = true, .own = {1, 100, 100}, MAPS);
	HOW("contiguous", .shape = {1}, .rank = 0, .size = 4);
	HOW("contiguous", .shape = {100, 721, 1440}, .rank = 3, .size = 4, .bytes = 0);
	HOW("100,721,1440", .shape = {100, 721, 1440}, .rank = 3, .size = 4, .bytes = 0,
	    .zarr = 2);
	/* as many along time as the map is in */
	HOW("20,35,1440", .shape = {365, 721, 1440}, MAPS);
	/* what grows: maps whole while they fit */
	HOW("95,73,144", .shape = {1140, 73, 144}, .unlimited = true, MAPS);
	HOW("1,721,1440", .shape = {0, 721, 1440}, .unlimited = true, MAPS);
	/* one axis */
	HOW("1041667", .shape = {100000000}, .rank = 1, .size = 4, .bytes = 4 << 20);
	/* rules: what names the variable wins, others are for what has none */
	HOW("24,73,144", .shape = {1140, 73, 144}, .chunks = {"time=24,lat=all,lon=all"}, MAPS);
	HOW("", .shape = {1140, 73, 144}, .chunked = true, .own = {1, 73, 144},
	    .chunks = {"time=24,lat=all"}, MAPS);
	HOW("24,73,7", .shape = {1140, 73, 144}, .chunked = true, .own = {1, 9, 7},
	    .chunks = {"time=3", "y&x,time=24,lat=all"}, MAPS);
	HOW("1140,5,144", .shape = {1140, 73, 144}, .chunks = {"lat=5"}, MAPS);
	HOW("10,20,30", .shape = {10, 20, 30}, .chunks = {"time=99,y,lat=3"}, MAPS);
	HOW("10,20,30", .shape = {10, 20, 30}, .chunks = {"time=99"}, MAPS);
	HOW("99,20,30", .shape = {10, 20, 30}, .chunks = {"time=99"}, .unlimited = true, MAPS);
}

static void test_filter_policy(void **state)
{
	static const uint32_t blosc_params[] = {2, 2, 4, 0, 5, 1, 1}, four = 4;
	static const struct codec_spec blosc = {
		.h5_id = CODEC_BLOSC, .n_params = 7, .params = blosc_params, .name = ""};
	static const struct codec_spec gzip = {
		.h5_id = CODEC_GZIP, .n_params = 1, .params = &four, .name = ""};
	static const struct codec_spec swapped[] = {
		{.h5_id = CODEC_SHUFFLE, .n_params = 1, .params = &four, .name = ""},
		{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = &four, .name = ""},
		{.h5_id = CODEC_FLETCHER32, .name = ""},
	};

#define CUBE .shape = {10, 20, 30}, .chunked = true, .own = {10, 20, 30}, MAPS
	(void)state;
	HOW("", CUBE);
	HOW(" shuffle deflate fletcher32", CUBE, .chain = {3, swapped});
	HOW(" shuffle deflate", CUBE, .chain = {1, &blosc});
	HOW(" blosc", CUBE, .chain = {1, &blosc}, .keep = PLAN_KEEP);
	HOW(" shuffle deflate", CUBE, .chain = {1, &blosc}, .zarr = 2);
	HOW(" blosc", CUBE, .chain = {1, &blosc}, .zarr = 2, .keep = PLAN_KEEP);
	HOW(" blosc", CUBE, .chain = {1, &blosc}, .zarr = 3);
	HOW(" deflate", CUBE, .chain = {1, &gzip});
	HOW(" shuffle deflate", CUBE, .chain = {3, swapped}, .zarr = 2);
	HOW(" blosc", CUBE, .chain = {2, swapped}, .zarr = 3);
	/* rules */
	HOW(" zstd", CUBE, .filter = "*,zstd,3");
	HOW(" shuffle deflate", CUBE, .filter = "*,zstd,3", .chain = {2, swapped});
	HOW(" zstd", CUBE, .filter = "*,zstd,3", .chain = {1, &blosc});
	HOW("", CUBE, .filter = "*,none", .chain = {1, &blosc});
	HOW(" zstd", CUBE, .filter = "x,zstd,3", .chain = {2, swapped});
	HOW("", CUBE, .filter = "x,none", .chain = {2, swapped});
	HOW(" shuffle deflate", CUBE, .filter = "y,none", .chain = {2, swapped});
}

static void test_rules_check(void **state)
{
	static const char *const bad[] = {
		"",   "time",   "time=",   "time=0",    "=3",       "time=x",  "time=3,",
		"v,", "v,time", "time=-1", "&v,time=3", "time=3,v", "time=1.5",
		",time=3", "time=all,", "v,time=all,", "v,,time=3", "time=3,,lat=all"};
	static const char *const good[] = {"time=24", "time=24,lat=all", "v&/g/w,time=24",
					   "*,t=1"};
	struct model *m = one();
	const char *unknown;
	struct err e = ERR_INIT;
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(chunk_rules_check("chunks", &bad[i], 1, &e), -EINVAL);
	assert_int_equal(chunk_rules_check("chunks", good, ARRAY_LEN(good), &e), 0);
	assert_null(chunk_rule_unknown("t=3", &m->base.ds, &len));
	unknown = chunk_rule_unknown("t=3,time=24", &m->base.ds, &len);
	assert_non_null(unknown);
	assert_int_equal(len, 4);
	assert_memory_equal(unknown, "time", len);
	model_free(m);
}

/* quantised elements are never passed as they are, and the variable has the attribute for it */
static void test_quantised(void **state)
{
	static const struct codec_quant_rule rule = {
		.vars = "*", .quant = {.mode = CODEC_QUANT_BITROUND, .digits = 3}};
	static const struct codec_quant_rules rules = {1, &rule};
	struct model *m = model_new();
	uint32_t t = dim(m, 0, "t", 4, false);
	const uint64_t chunk[] = {4};
	struct diff_policy policy = {.format = PLAN_HDF5, .quant = &rules};
	struct diff_job job = {.now = &m->base, .policy = &policy};
	struct recorder r;
	struct ds_array *a = &m->arrays[array(m, 0, "x", 1, &t, chunk)];

	(void)state;
	a->type = (struct dtype){.kind = DT_FLOAT, .size = 4};
	a->fill_defined = false;
	finish(m, 0);
	recorder_init(&r);
	r.takes_stored = true;
	job.sink = &r.base;
	assert_int_equal(push(&job, NULL, NULL), 0);
	assert_string_equal(said(&r),
			    "+array /x\ndims\nset /x _QuantizeBitRoundNumberOfSignificantBits\n"
			    "put /x 0 16\ncommit\n");
	sink_close(&r.base);

	(void)attr(m, 0, 0, "_QuantizeBitGroomNumberOfSignificantDigits", 3);
	recorder_init(&r);
	r.takes_stored = true;
	job.sink = &r.base;
	assert_int_equal(push(&job, NULL, NULL), 0);
	assert_string_equal(said(&r), "+array /x\ndims\nput /x 0 stored 16\ncommit\n");
	sink_close(&r.base);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_they_are),   cmocka_unit_test(test_decoded),
		cmocka_unit_test(test_regrid),        cmocka_unit_test(test_regrid_refused),
		cmocka_unit_test(test_regrid_drop),   cmocka_unit_test(test_chunk_policy),
		cmocka_unit_test(test_filter_policy), cmocka_unit_test(test_rules_check),
		cmocka_unit_test(test_quantised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
