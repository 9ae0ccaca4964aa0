/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_plan.c - what is done with the chunks of any array under any rules.
 *
 * Input: a rule of filters and one of quantisation as text, each with its length; then an array:
 * type, size, order, rank, shape, chunks, access, and its filters with their parameters.
 *
 * Properties: there is a plan for every array, format and policy, with a reason; the same question
 * has the same answer; a plan that passes names filters of the array, or what they can be wrapped
 * as; one that encodes names what can be encoded here; a chunk that was never written can be made
 * under it, or there is a message.
 *
 *   make fuzz TIME=60 FUZZ=plan */
#include "codecs/plugin/plugin.h"
#include "tests/fuzz/fuzz.h"
#include "translate/chunkio/fill_chunk.h"
#include "translate/plan/plan.h"

#define RANK 3
#define FILTERS 4
#define PARAMS 8
#define ROOM ((size_t)8 << 20)
#define CHUNK_MAX ((uint64_t)1 << 20)

static const uint32_t ids[] = {CODEC_DEFLATE,
			       CODEC_SHUFFLE,
			       CODEC_FLETCHER32,
			       CODEC_SZIP,
			       CODEC_NBIT,
			       CODEC_SCALEOFFSET,
			       CODEC_BZIP2,
			       CODEC_LZF,
			       CODEC_BLOSC,
			       CODEC_LZ4_HDF5,
			       CODEC_BITSHUFFLE,
			       CODEC_ZSTD,
			       CODEC_GZIP,
			       CODEC_LZ4,
			       CODEC_CRC32C,
			       CODEC_DELTA,
			       32013,
			       99};

/* world - one array, and what is asked about it. */
struct world {
	struct arena arena;
	struct ds_group root;
	struct ds_array a;
	struct dataset ds;
	uint64_t shape[RANK], chunk[RANK];
	uint32_t dims[RANK], params[FILTERS][PARAMS];
	struct codec_spec specs[FILTERS];
	uint8_t fill[256];
	struct codec_rules rules;
	struct codec_quant_rules quant;
	struct plan_policy policy;
};

static void take_type(struct world *w, struct slice *s)
{
	struct dtype *t = &w->a.type;
	uint8_t size;

	t->kind = (enum dt_kind)(rd_u8(s) % (DT_VSTRING + 1));
	size = rd_u8(s);
	t->big_endian = size & 0x80;
	switch (t->kind) {
	case DT_INT:
	case DT_UINT:
		t->size = 1u << size % 4;
		break;
	case DT_FLOAT:
		t->size = 2u << size % 3;
		break;
	case DT_COMPLEX:
		t->size = 8u << size % 2;
		break;
	case DT_BOOL:
		t->size = 1;
		break;
	case DT_VSTRING:
		t->size = 0;
		break;
	default:
		t->kind = t->kind == DT_COMPOUND ? DT_OPAQUE : t->kind;
		t->size = 1u + size % 100;
	}
}

static bool take_array(struct world *w, struct slice *s)
{
	take_type(w, s);
	w->a.rank = rd_u8(s) % (RANK + 1);
	for (uint32_t i = 0; i < w->a.rank; i++) {
		w->shape[i] = rd_le16(s);
		w->chunk[i] = 1 + rd_u8(s);
	}
	w->a.access =
		dt_is_vlen(&w->a.type) ? DS_VARIABLE : (enum ds_access)(rd_u8(s) % DS_VARIABLE);
	w->a.layout = (enum ds_layout)(rd_u8(s) % (DS_EXTERNAL + 1));
	w->a.fill_defined = rd_u8(s) & 1;
	w->a.uniform = rd_u8(s) & 1;
	w->a.chain.n = rd_u8(s) % (FILTERS + 1);
	for (uint32_t i = 0; i < w->a.chain.n; i++) {
		uint32_t n = 0;

		w->specs[i].h5_id = ids[rd_u8(s) % ARRAY_LEN(ids)];
		for (n = 0; n < PARAMS && n < rd_u8(s) % (PARAMS + 1); n++)
			w->params[i][n] = rd_u8(s);
		w->specs[i].n_params = n;
		w->specs[i].params = w->params[i];
		w->specs[i].name = "";
	}
	return ds_array_finish(&w->ds, &w->a, CHUNK_MAX, NULL) == 0;
}

static void take_rules(struct world *w, struct slice *s)
{
	char *filter = piece_text(s), *quant = piece_text(s);

	/* none, where they are refused */
	require((codec_rule_add(&w->arena, filter, &w->rules, NULL) == 0) == (w->rules.n > 0));
	require((codec_quant_rule_add(&w->arena, quant, &w->quant, NULL) == 0) ==
		(w->quant.n > 0));
	free(filter);
	free(quant);
}

static void check(const struct world *w, const struct plan *p)
{
	const struct ds_array *a = &w->a;

	require(p->kind <= PLAN_ERROR && memchr(p->reason, '\0', sizeof(p->reason)));
	require(p->reason[0]);
	require(p->chain.n <= CODEC_CHAIN_MAX);
	switch (p->kind) {
	case PLAN_PASS:
		require(a->access == DS_STORED);
		require(p->wrap ? p->chain.n == 1 : p->chain.n <= a->chain.n);
		require((p->trailer > 0) == (p->trailer_bit != 0));
		break;
	case PLAN_ENCODE:
		require(codec_chain_encodable(&p->chain) && p->elem_size >= 1 && p->bytes > 0);
		break;
	case PLAN_FIXED:
		require(p->fixed_size >= 1);
		break;
	default:
		require(p->chain.n == 0);
	}
	if (dt_is_vlen(&a->type))
		require(p->kind != PLAN_PASS && p->kind != PLAN_ENCODE &&
			p->kind != PLAN_DECODE);
}

static void fill(const struct world *w, const struct plan *p)
{
	struct fill *f = NULL;
	struct err e = ERR_INIT;
	int rc;

	if (p->kind == PLAN_HIDE || p->kind == PLAN_ERROR || p->fill_declared)
		return;
	rc = frame_fill_make(&w->a, p, &f, &e);
	if (rc)
		failed_well(rc, &e);
	else
		require(f->size <= 4 * CHUNK_MAX + 4096);
	free(f);
}

static void ask(struct world *w, enum plan_format format, enum plan_filter filter,
		bool declared)
{
	struct plan_ask q = {.ds = &w->ds,
			     .format = format,
			     .policy = &w->policy,
			     .fill_declared = declared,
			     .arena = &w->arena};
	struct plan p, again;
	struct err e = ERR_INIT;
	int rc;

	w->policy.filter = filter;
	rc = plan_make(&q, &p, &e);
	require(rc == 0 || rc == -ENOMEM);
	if (rc)
		return;
	check(w, &p);
	require(plan_make(&q, &again, NULL) == 0 && plan_same(&p, &again));
	require(strcmp(p.reason, again.reason) == 0);
	fill(w, &p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	struct slice s = slice_of(data, size);

	codec_plugins_off();
	w = (struct world){.root = {.name = "", .parent = DS_NONE},
			   .a = {.name = "v", .fill_text = {"", 0}}};
	arena_init(&w.arena, ROOM);
	arena_init(&w.ds.arena, ROOM);
	w.a.shape = w.shape;
	w.a.chunk = w.chunk;
	w.a.dims = w.dims;
	w.a.chain.specs = w.specs;
	w.ds.groups = &w.root;
	w.ds.arrays = &w.a;
	w.ds.n_groups = w.ds.n_arrays = 1;
	w.policy = (struct plan_policy){.rules = &w.rules, .quant = &w.quant};
	take_rules(&w, &s);
	if (take_array(&w, &s)) {
		w.a.fill = dt_is_vlen(&w.a.type) ? NULL : w.fill;
		for (int i = 0; i < 18; i++)
			ask(&w, (enum plan_format)(i % 3), (enum plan_filter)(i / 3 % 3),
			    i >= 9);
	}
	arena_release(&w.ds.arena);
	arena_release(&w.arena);
	return 0;
}
