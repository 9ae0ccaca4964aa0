/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_rule.c - applies the user's rules to one array: another chain, or quantised elements.
 *
 * If a rule cannot be applied, because a filter is unsuitable for such elements or has no name in
 * the view's format, the array is presented as without the rule, with a note: one variable of
 * strings is no reason to leave the others uncompressed. */
#include "codecs/spec/var_pattern.h"
#include "translate/model/value.h"
#include "translate/plan/plan_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PATH_MAX_BYTES ((size_t)1 << 20)

/* ---- notes ---- */

static int add_note(const struct plan_ask *ask, struct plan *p, const char *text, struct err *e)
{
	char both[2 * ERR_TEXT_MAX];

	(void)snprintf(both, sizeof(both), "%s%s%s", p->note ? p->note : "",
		       p->note ? "; " : "", text); /* a cut note is still one */
	p->note = arena_strdup(ask->arena, both);
	return p->note ? 0 : err_nomem(e);
}

static int note_rule(const struct plan_ask *ask, const struct codec_rule *rule, const char *why,
		     struct plan *p, struct err *e)
{
	char names[80], text[ERR_TEXT_MAX];

	plan_names(&rule->chain, names, sizeof(names));
	(void)snprintf(text, sizeof(text), "is not filtered with %s: %s", names, why);
	return add_note(ask, p, text, e);
}

/* plan_rule_ruled - whether there are rules at all. */
static bool plan_rule_ruled(const struct plan_policy *policy)
{
	return (policy->rules && policy->rules->n > 0) ||
	       (policy->quant && policy->quant->n > 0);
}

/* ---- quantisation ---- */

static const char *quant_name(enum codec_quant_mode mode)
{
	static const char *const names[] = {
		[CODEC_QUANT_NONE] = "none",
		[CODEC_QUANT_BITGROOM] = "bitgroom",
		[CODEC_QUANT_GRANULARBR] = "granularbr",
		[CODEC_QUANT_BITROUND] = "bitround",
	};

	return names[mode];
}

/* plan_rule_number - the one value of an attribute, whatever numeric type it has. */
static bool plan_rule_number(const struct ds_attr *at, double *ret)
{
	if (at->n != 1 || !at->data || !value_is_number(&at->type) || at->type.size > 8 ||
	    (at->type.kind == DT_FLOAT && at->type.size < 4))
		return false;
	*ret = value_attr(at, 0);
	return true;
}

/* quant_fill - the value that stays as it is: `_FillValue` as netCDF sees it, one of the variable's
 * type; else what the array defines. NULL: netCDF's default. */
static int quant_fill(const struct plan_ask *ask, struct plan *p, struct err *e)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	const struct ds_attr *at = ds_attr_find(a->attrs, a->n_attrs, "_FillValue");
	uint8_t *fill;
	double d;
	float f;

	p->quant_fill = a->fill_defined ? a->fill : NULL;
	if (!at || !plan_rule_number(at, &d))
		return 0;
	fill = arena_alloc(ask->arena, 1, sizeof(d));
	if (!fill)
		return err_nomem(e);
	f = (float)d;
	if (a->type.size == sizeof(f))
		memcpy(fill, &f, sizeof(f));
	else
		memcpy(fill, &d, sizeof(d));
	dt_swap_to_host(&a->type, fill, 1); /* the same the other way round */
	p->quant_fill = fill;
	return 0;
}

/* quant_named - whether a rule that names it wants the variable quantised. */
static bool quant_named(const struct codec_quant_rules *rules, const char *path)
{
	for (uint32_t i = 0; i < rules->n; i++)
		if (rules->v[i].quant.mode != CODEC_QUANT_NONE &&
		    codec_vars_names(rules->v[i].vars, path))
			return true;
	return false;
}

/* quantised - p->quant, as the rules say. */
static int quantised(const struct plan_ask *ask, const char *path, struct plan *p,
		     struct err *e)
{
	const struct codec_quant_rules *rules = ask->policy->quant;
	const struct dtype *t = &ask->ds->arrays[ask->array].type;
	struct codec_quant wide;

	if (!rules || rules->n == 0)
		return 0;
	if (t->kind != DT_FLOAT || (t->size != 4 && t->size != 8))
		return quant_named(rules, path)
			       ? add_note(ask, p,
					  "is not quantised: it has no floats of 4 or 8 "
					  "bytes",
					  e)
			       : 0;
	p->quant = codec_quant_for(rules, path, t->size);
	if (p->quant.mode != CODEC_QUANT_NONE)
		return quant_fill(ask, p, e);
	wide = codec_quant_for(rules, path, 8);
	return wide.mode != CODEC_QUANT_NONE
		       ? add_note(ask, p,
				  "is not quantised: floats of 4 bytes have fewer digits", e)
		       : 0;
}

/* ---- chains ---- */

/* plan_rule_parameter - number i of a spec, or what it is when it is missing. */
static uint32_t plan_rule_parameter(const struct codec_spec *s, uint32_t i, uint32_t missing)
{
	return i < s->n_params ? s->params[i] : missing;
}

static bool same_params(const struct codec_spec *a, const struct codec_spec *b)
{
	return a->n_params == b->n_params &&
	       (a->n_params == 0 ||
		memcmp(a->params, b->params, a->n_params * sizeof(*a->params)) == 0);
}

/* plan_rule_alike - whether what one filter makes is what another would have made, but for how hard
 * it tried. Levels and sizes of blocks are in the stream, or tell a reader nothing. */
static bool plan_rule_alike(const struct codec_spec *s, const struct codec_spec *want,
			    uint32_t elem_size)
{
	uint32_t size = plan_rule_parameter(s, 0, 0);

	switch (want->h5_id) {
	case CODEC_DEFLATE:
	case CODEC_FLETCHER32:
	case CODEC_BZIP2:
	case CODEC_LZ4_HDF5:
	case CODEC_ZSTD:
	case CODEC_GZIP:
	case CODEC_LZ4:
	case CODEC_LZMA:
		return true;
	case CODEC_SHUFFLE: /* none, or 0: whole elements */
		return (size ? size : elem_size) == plan_rule_parameter(want, 0, elem_size);
	case CODEC_BLOSC: /* shuffle, compressor */
		return plan_rule_parameter(s, 5, 1) == plan_rule_parameter(want, 5, 1) &&
		       plan_rule_parameter(s, 6, 0) == plan_rule_parameter(want, 6, 0);
	default:
		return same_params(s, want);
	}
}

bool plan_chain_alike(const struct codec_chain *stored, const struct codec_chain *want,
		      uint32_t elem_size)
{
	if (stored->n != want->n)
		return false;
	for (uint32_t i = 0; i < stored->n; i++)
		if (stored->specs[i].h5_id != want->specs[i].h5_id ||
		    !plan_rule_alike(&stored->specs[i], &want->specs[i], elem_size))
			return false;
	return true;
}

/* spoils - whether a filter that rounds would get bytes that another has moved or packed. Shuffled
 * integers lose nothing in scale-offset. */
static bool spoils(const struct codec_array *as, const struct codec_chain *chain, char *why)
{
	char name[PLAN_NAME_CAP], before[PLAN_NAME_CAP];

	for (uint32_t i = 1; i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);

		if (!ops || !ops->lossy ||
		    (as->class != CODEC_FLOAT && chain->specs[i].h5_id == CODEC_SCALEOFFSET))
			continue;
		(void)snprintf(why, PLAN_WHY_CAP, "%s would round the output of %s",
			       plan_name(&chain->specs[i], name),
			       plan_name(&chain->specs[i - 1], before));
		return true;
	}
	return false;
}

/* plan_rule_cannot - why the view's format cannot name a chain for the array, into why. */
static bool plan_rule_cannot(const struct plan_ask *ask, const struct codec_array *as,
			     const struct codec_chain *chain, char *why)
{
	const char *text;

	if (plan_cannot(ask->format, as, chain, true, why))
		return true;
	text = ask->refuses ? ask->refuses(ask, chain) : NULL;
	if (text)
		(void)snprintf(why, PLAN_WHY_CAP, "%s", text);
	return text != NULL;
}

/* plan_rule_passes - whether stored chunks match the rule: with their whole chain, or with the
 * checksum at its end cut off. For a rule with Blosc they may be wrapped, too. Returns 0 with
 * p->kind PLAN_PASS or unchanged; -ENOMEM. */
static int plan_rule_passes(const struct plan_ask *ask, const struct codec_array *as,
			    const struct codec_chain *want, bool exact, struct plan *p,
			    struct err *e)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	struct codec_chain left = a->chain, blosc = {.n = 0};
	uint32_t trailer = 0;
	char why[PLAN_WHY_CAP];
	bool same;

	if (a->access != DS_STORED || a->chain.n == 0 || a->chain.n > CODEC_CHAIN_MAX ||
	    plan_bytes(as) != a->chunk_bytes)
		return 0;
	same = plan_chain_alike(&left, want, a->type.size);
	if (ask->format != PLAN_HDF5 && !same) {
		trailer = codec_chain_without_sum(&left);
		same = plan_chain_alike(&left, want, a->type.size);
	}
	if (ask->format == PLAN_ZARR3 && !exact &&
	    plan_zarr3_wrap(ask->arena, &left, a->type.size, a->chunk_bytes, &blosc, e) < 0)
		return -ENOMEM;
	if (blosc.n > 0 && (same || plan_chain_alike(&blosc, want, a->type.size)) &&
	    !plan_rule_cannot(ask, as, &blosc, why))
		plan_zarr3_wrapped(a, &left, trailer, &blosc, p);
	else if (same && !plan_rule_cannot(ask, as, &left, why) && plan_framable(a, &left, p))
		plan_pass(a, &left, trailer, p);
	return 0;
}

/* plan_rule_describe - "encoded with shuffle, zstd; quantised to 3 digits (granularbr)". */
static void plan_rule_describe(struct plan *p)
{
	const char *unit = p->quant.mode == CODEC_QUANT_BITROUND ? "bits" : "digits";
	char names[100], digits[60] = "";

	plan_names(&p->chain, names, sizeof(names));
	if (p->quant.mode != CODEC_QUANT_NONE)
		(void)snprintf(digits, sizeof(digits), "quantised to %" PRIu32 " %s (%s)",
			       p->quant.digits, unit, quant_name(p->quant.mode));
	if (p->kind == PLAN_ENCODE)
		plan_say(p, "encoded with %s%s%s", names, digits[0] ? "; " : "", digits);
	else if (digits[0])
		plan_say(p, "%s", digits);
}

struct codec_chain plan_in_order(const struct codec_chain *rule, const struct codec_chain *want,
				 struct codec_spec *specs)
{
	struct codec_chain ret = {.specs = specs};

	for (uint32_t i = 0; i < rule->n; i++)
		for (uint32_t k = 0; k < want->n && ret.n < CODEC_CHAIN_MAX; k++)
			if (want->specs[k].h5_id == rule->specs[i].h5_id)
				specs[ret.n++] = want->specs[k];
	return ret;
}

/* zarr_szip - szip as netCDF-C writes it in Zarr, which is not how HDF5's writers do. */
static int zarr_szip(const struct plan_ask *ask, const struct codec_array *as,
		     struct codec_chain *chain, struct err *e)
{
	const uint64_t *shape = ask->ds->arrays[ask->array].shape;
	struct codec_spec *specs =
		arena_copy(ask->arena, chain->specs, chain->n * sizeof(*chain->specs));

	if (!specs && chain->n > 0)
		return err_nomem(e);
	for (uint32_t i = 0; i < chain->n; i++) {
		uint32_t *params;
		int rc;

		if (specs[i].h5_id != CODEC_SZIP)
			continue;
		params = arena_alloc(ask->arena, 4, sizeof(*params));
		if (!params)
			return err_nomem(e);
		rc = codec_szip_in_zarr(&specs[i], as, shape, params, e);
		if (rc < 0)
			return rc;
		specs[i].params = params;
	}
	chain->specs = specs;
	return 0;
}

/* plan_rule_prepared - the chain of a rule as this format frames it and a writer would store it. */
static int plan_rule_prepared(const struct plan_ask *ask, const struct codec_array *as,
			      const struct codec_rule *rule, struct codec_chain *ret_rule,
			      struct codec_chain *ret, struct err *e)
{
	enum codec_format format =
		ask->format == PLAN_HDF5 ? CODEC_FORMAT_HDF5 : CODEC_FORMAT_ZARR;
	int rc = codec_chain_for(ask->arena, format, &rule->chain, ret_rule, e);

	rc = rc ? rc : codec_chain_prepare(ask->arena, ret_rule, as, ret, e);
	if (rc == 0 && ask->format == PLAN_ZARR2)
		rc = zarr_szip(ask, as, ret, e);
	return rc;
}

/* encoded - with the chain of a rule, or what says the same to more readers. */
static int encoded(const struct plan_ask *ask, const struct codec_array *as,
		   const struct codec_chain *want, bool exact, struct plan *p, struct err *e)
{
	struct codec_chain blosc = {.n = 0};
	int rc = 0;

	if (ask->format == PLAN_ZARR3 && !exact)
		rc = plan_zarr3_wrap(ask->arena, want, as->elem_size, plan_bytes(as), &blosc,
				     e);
	p->kind = PLAN_ENCODE;
	p->chain = blosc.n > 0 ? blosc : *want;
	p->elem_size = as->elem_size;
	p->bytes = plan_bytes(as);
	return rc;
}

/* chain_of_rule - PASS or ENCODE, or a note. */
static int chain_of_rule(const struct plan_ask *ask, const struct codec_array *as,
			 const struct codec_rule *rule, struct plan *p, struct err *e)
{
	struct codec_spec specs[CODEC_CHAIN_MAX];
	struct codec_chain asked, want, same;
	struct err err = ERR_INIT;
	char why[PLAN_WHY_CAP];
	int rc = plan_rule_prepared(ask, as, rule, &asked, &want, &err);

	if (rc == -ENOMEM)
		return err_nomem(e);
	if (rc < 0)
		return note_rule(ask, rule, err.msg, p, e);
	same = plan_in_order(&asked, &want, specs);
	rc = 0;
	if (p->quant.mode == CODEC_QUANT_NONE)
		rc = plan_rule_passes(ask, as, &want, rule->exact, p, e);
	if (rc == 0 && p->quant.mode == CODEC_QUANT_NONE && p->kind != PLAN_PASS)
		rc = plan_rule_passes(ask, as, &same, rule->exact, p, e);
	if (rc < 0 || p->kind == PLAN_PASS)
		return rc;
	if (spoils(as, &want, why) || plan_rule_cannot(ask, as, &want, why))
		return note_rule(ask, rule, why, p, e);
	return encoded(ask, as, &want, rule->exact, p, e);
}

int plan_unruled(const struct plan_ask *ask, const char *why, struct plan *p, struct err *e)
{
	const struct plan_policy *policy = ask->policy;
	const struct codec_rule *rule = NULL;
	const char *path;
	auto_buf b = buf_of(PATH_MAX_BYTES);
	int rc = 0;

	if (!plan_rule_ruled(policy))
		return 0;
	path = ds_array_path_text(ask->ds, ask->array, &b);
	if (!path)
		return err_nomem(e);
	if (policy->rules)
		rule = codec_rules_for(policy->rules, path);
	if (rule && !rule->none && codec_vars_names(rule->vars, path))
		rc = note_rule(ask, rule, why, p, e);
	if (rc == 0 && policy->quant && quant_named(policy->quant, path))
		rc = add_note(ask, p, "is not quantised: it has no floats of 4 or 8 bytes", e);
	return rc;
}

int plan_ruled(const struct plan_ask *ask, const struct codec_array *as,
	       enum plan_filter *filter, struct plan *p, struct err *e)
{
	const struct plan_policy *policy = ask->policy;
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	const struct codec_rule *rule = NULL;
	const char *path;
	auto_buf b = buf_of(PATH_MAX_BYTES);
	int rc;

	if (!plan_rule_ruled(policy))
		return 0;
	path = ds_array_path_text(ask->ds, ask->array, &b);
	rc = path ? quantised(ask, path, p, e) : err_nomem(e);
	if (rc == 0 && policy->rules)
		rule = codec_rules_for(policy->rules, path);
	if (rc == 0 && rule && (rule->none || rule->chain.n == 0))
		*filter = PLAN_NONE;
	else if (rc == 0 && rule && a->rank > 0 && a->chunk_bytes > 0)
		rc = chain_of_rule(ask, as, rule, p, e);
	else if (rc == 0 && rule && codec_vars_names(rule->vars, path))
		rc = note_rule(ask, rule, "scalars and empty elements cannot have filters", p,
			       e);
	if (rc == 0 && p->kind != PLAN_PASS)
		plan_rule_describe(p);
	return rc;
}

/* ---- plans ---- */

bool plan_chain_equal(const struct codec_chain *a, const struct codec_chain *b)
{
	if (a->n != b->n)
		return false;
	for (uint32_t i = 0; i < a->n; i++) {
		const struct codec_spec *x = &a->specs[i], *y = &b->specs[i];

		if (x->h5_id != y->h5_id || !same_params(x, y))
			return false;
	}
	return true;
}

bool plan_same(const struct plan *p, const struct plan *q)
{
	return p->kind == q->kind && p->wrap == q->wrap && p->trailer == q->trailer &&
	       p->elem_size == q->elem_size && p->bytes == q->bytes &&
	       p->fixed_size == q->fixed_size && p->fill_declared == q->fill_declared &&
	       p->quant.mode == q->quant.mode && p->quant.digits == q->quant.digits &&
	       plan_chain_equal(&p->chain, &q->chain);
}
