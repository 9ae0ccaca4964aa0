/* rules.c - from the options' texts to rules. What a rule makes of an array is the plan's business
 * (translate/plan.h); here is said what no array can make sense of. */
#include "fusefs/rules.h"

#include <errno.h>

#define ARENA_MAX ((size_t)16 << 20)

struct rules {
	struct arena arena;
	struct codec_rules filter;
	struct codec_quant_rules quant;
};

/* encodable - whether a writer of some ordinary array could use the chain of a rule. */
static int encodable(struct arena *a, const struct codec_chain *chain, struct err *e)
{
	static const uint64_t chunk[] = {64, 64};
	static const struct codec_array arrays[] = {
		{.class = CODEC_FLOAT, .elem_size = 4, .rank = 2, .chunk = chunk},
		{.class = CODEC_FLOAT, .elem_size = 8, .rank = 2, .chunk = chunk},
		{.class = CODEC_INT, .elem_size = 4, .rank = 2, .chunk = chunk},
		{.class = CODEC_UINT, .elem_size = 1, .rank = 2, .chunk = chunk},
	};
	static const enum codec_format formats[] = {CODEC_FORMAT_HDF5, CODEC_FORMAT_ZARR};
	struct err why = ERR_INIT, first = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(formats) * ARRAY_LEN(arrays); i++) {
		struct codec_chain framed, ready;
		int rc = codec_chain_for(a, formats[i % 2], chain, &framed, &why);

		if (rc == 0)
			rc = codec_chain_prepare(a, &framed, &arrays[i / 2], &ready, &why);
		if (rc == 0 || rc == -ENOMEM)
			return rc == 0 ? 0 : err_nomem(e);
		if (i == 0)
			first = why;
	}
	return err_set(e, first.code, "%s", first.msg);
}

/* known - whether somebody here has every filter of the chain. */
static int known(const struct codec_chain *chain, struct err *e)
{
	for (uint32_t i = 0; i < chain->n; i++) {
		struct buf text;

		if (codec_find(chain->specs[i].h5_id))
			continue;
		buf_init(&text, ERR_TEXT_MAX);
		codec_missing(&chain->specs[i], &text);
		(void)err_set(e, -EOPNOTSUPP, "%.*s", (int)text.len, (const char *)text.data);
		buf_release(&text);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* check - the rule that was read last. */
static int check(struct rules *r, struct err *e)
{
	const struct codec_rule *rule = &r->filter.v[r->filter.n - 1];
	int rc = rule->none ? 0 : known(&rule->chain, e);

	return rc < 0 || rule->none ? rc : encodable(&r->arena, &rule->chain, e);
}

int rules_new(const struct cfg *cfg, struct rules **ret, struct err *e)
{
	struct rules *r = alloc_array(1, sizeof(*r));
	int rc = 0;

	if (!r)
		return err_nomem(e);
	arena_init(&r->arena, ARENA_MAX);
	for (size_t i = 0; rc == 0 && i < cfg->n_filter_rules; i++) {
		rc = codec_rule_add(&r->arena, cfg->filter_rules[i], &r->filter, e);
		if (rc == 0)
			rc = check(r, e);
		if (rc < 0)
			rc = err_wrap(e, rc, "-o filter=%.100s", cfg->filter_rules[i]);
	}
	for (size_t i = 0; rc == 0 && i < cfg->n_quantize_rules; i++) {
		rc = codec_quant_rule_add(&r->arena, cfg->quantize_rules[i], &r->quant, e);
		if (rc < 0)
			rc = err_wrap(e, rc, "-o quantize=%.100s", cfg->quantize_rules[i]);
	}
	if (rc < 0)
		rules_free(r);
	else
		*ret = r;
	return rc;
}

void rules_free(struct rules *r)
{
	if (!r)
		return;
	arena_release(&r->arena);
	free(r);
}

const struct codec_rules *rules_filter(const struct rules *r)
{
	return r && r->filter.n > 0 ? &r->filter : NULL;
}

const struct codec_quant_rules *rules_quant(const struct rules *r)
{
	return r && r->quant.n > 0 ? &r->quant : NULL;
}
