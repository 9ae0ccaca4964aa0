/* SPDX-License-Identifier: BSD-3-Clause */
/* policy.c - how a new array is stored: by a rule that names it, else by its writer's choice, else
 * so that remote reading is fast.
 *
 * Default chunks are a few MiB. A reader of one place at all times and a reader of all places at
 * one time should fetch about the same number of chunks: there are as many chunks along the first
 * axis as along all others together (R. Rew, Chunking Data: Choosing Shapes). The last axes are
 * whole where possible. */
#include "translate/diff/diff_int.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codecs/spec/spec.h"
#include "codecs/spec/var_pattern.h"
#include "translate/model/chunk_rule.h"
#include "translate/plan/plan.h"

#define MIB ((uint64_t)1 << 20)
#define TEXT_ELEM 16 /* assumed bytes of an element without a fixed size */
#define DEFLATE_LEVEL 1

/* ---- default chunks ---- */

static uint64_t policy_pieces(uint64_t len, uint64_t chunk)
{
	return (len - 1) / chunk + 1;
}

/* policy_even - a length that makes as many pieces as `chunk` does, all about as long. */
static uint64_t policy_even(uint64_t len, uint64_t chunk)
{
	return (len - 1) / policy_pieces(len, chunk) + 1;
}

/* policy_bytes_of - of a chunk; UINT64_MAX when that is too much for a number. */
static uint64_t policy_bytes_of(const uint64_t *chunk, uint32_t rank, uint64_t elem)
{
	return u64_product(&elem, chunk, rank, UINT64_MAX) ? elem : UINT64_MAX;
}

/* policy_shorten - shorten axes from..rank without a rule, the first of them first, until a chunk
 * has about `target` bytes: half as much again is accepted. */
static void policy_shorten(uint32_t from, uint32_t rank, const bool *said, uint64_t elem,
			   uint64_t target, uint64_t *chunk)
{
	for (uint32_t i = from; i < rank; i++) {
		uint64_t all = policy_bytes_of(chunk, rank, elem), rest;

		if (all <= target + target / 2)
			return;
		if (said[i])
			continue;
		rest = all == UINT64_MAX ? UINT64_MAX : all / chunk[i];
		chunk[i] = policy_even(chunk[i], u64_max(1, u64_min(chunk[i], target / rest)));
	}
}

/* choose - choose the lengths of axes without a rule. */
static void choose(const uint64_t *lens, uint32_t rank, const bool *said, bool unlimited,
		   uint64_t elem, uint64_t target, uint64_t *chunk)
{
	uint64_t all, rest, n;

	for (uint32_t i = 0; i < rank; i++)
		if (!said[i])
			chunk[i] = lens[i];
	all = policy_bytes_of(chunk, rank, elem);
	if (all <= target)
		return;
	if (rank > 1 && !said[0]) {
		rest = u64_max(1, policy_bytes_of(chunk + 1, rank - 1, elem));
		n = (uint64_t)(sqrt((double)all / (double)target) + 0.5);
		n = u64_max(1, u64_min(n, lens[0]));
		/* data that do not grow along it fit as a whole: it stays whole */
		if (unlimited || rest < target / 64)
			n = u64_max(n, policy_pieces(lens[0], u64_max(1, target / rest)));
		chunk[0] = (lens[0] - 1) / n + 1;
		policy_shorten(1, rank, said, elem, target, chunk);
	}
	policy_shorten(0, rank, said, elem, target, chunk);
}

/* own_chunks - whether the writer of the array chose its chunks. */
static bool own_chunks(const struct ds_array *a)
{
	return a->layout == DS_CHUNKED || a->layout == DS_VIRTUAL;
}

static int policy_chunks(struct diff *p, const struct ds_array *a, const char *path,
			 struct sink_new *ret, struct err *e)
{
	const struct diff_policy *policy = p->job->policy;
	bool said[DS_RANK_MAX] = {false}, some = false, own = own_chunks(a);
	uint64_t lens[DS_RANK_MAX], target = policy->chunk_bytes, *chunk;
	uint64_t elem = dt_is_vlen(&a->type) ? TEXT_ELEM : u64_max(a->type.size, 1);

	ret->contiguous = policy->format == PLAN_HDF5 && a->rank == 0;
	if (a->rank == 0)
		return 0;
	chunk = arena_alloc(&p->arena, a->rank, sizeof(*chunk));
	if (!chunk)
		return err_nomem(e);
	if (!own)
		chunk_rules_apply(policy->chunks, policy->n_chunks, p->now, a, path,
				  CODEC_VARS_EVERY, chunk, said);
	chunk_rules_apply(policy->chunks, policy->n_chunks, p->now, a, path, CODEC_VARS_NAMED,
			  chunk, said);
	for (uint32_t i = 0; i < a->rank; i++) {
		lens[i] = u64_max(a->shape[i], 1);
		some |= said[i];
		if (own && !said[i])
			chunk[i] = a->chunk[i];
		if (said[i] && !p->now->dims[a->dims[i]].unlimited)
			chunk[i] = u64_min(chunk[i], lens[i]);
	}
	if (own && !some)
		return 0;
	ret->chunk = chunk;
	if (own)
		return 0;
	if (target == 0 && !some && policy->format == PLAN_HDF5) {
		ret->chunk = NULL;
		ret->contiguous = true;
		return 0;
	}
	target = target ? u64_max(MIB, u64_min(target, 8 * MIB)) : UINT64_MAX;
	choose(lens, a->rank, said, p->now->dims[a->dims[0]].unlimited, elem, target, chunk);
	return 0;
}

/* ---- filters ---- */

/* policy_nameable - whether the target has a name for a chain, and its readers know it if that
 * matters. */
static bool policy_nameable(const struct diff *p, const struct codec_array *as,
			    const struct codec_chain *chain)
{
	const struct diff_policy *policy = p->job->policy;
	bool keep = policy->keep != PLAN_PORTABLE;
	char why[PLAN_WHY_CAP];

	if (policy->format != PLAN_ZARR3 && !codec_chain_encodable(chain))
		return false;
	if (policy->format != PLAN_ZARR2)
		return !plan_cannot(policy->format, as, chain, keep, why);
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);

		if (!codec_has_zarr2(&chain->specs[i], as->elem_size) ||
		    (!keep && (!ops->portable || ops->trailer > 0)))
			return false;
	}
	return true;
}

/* policy_prepared - a chain as the target frames it and its writers store it. */
static int policy_prepared(struct diff *p, const struct codec_array *as,
			   const struct codec_chain *chain, struct codec_chain *ret,
			   struct err *e)
{
	enum codec_format format =
		p->job->policy->format == PLAN_HDF5 ? CODEC_FORMAT_HDF5 : CODEC_FORMAT_ZARR;
	struct codec_chain own;
	int rc = codec_chain_for(&p->arena, format, chain, &own, e);

	return rc ? rc : codec_chain_prepare(&p->arena, &own, as, ret, e);
}

/* policy_plain - shuffle and deflate, which every reader of any target knows. */
static const struct codec_chain *policy_plain(const struct diff *p)
{
	static const uint32_t level[] = {DEFLATE_LEVEL}, blosc[] = {0, 0, 0, 0, 1, 1, 3};
	static const struct codec_spec specs[] = {
		{.h5_id = CODEC_SHUFFLE, .name = ""},
		{.h5_id = CODEC_DEFLATE, .n_params = 1, .params = level, .name = ""},
	};
	static const struct codec_spec wrapped = {
		.h5_id = CODEC_BLOSC, .n_params = 7, .params = blosc, .name = ""};
	static const struct codec_chain both = {2, specs}, one = {1, &wrapped};

	return p->job->policy->format == PLAN_ZARR3 ? &one : &both;
}

/* writers - the chain of a new array's writer, without checksums, which Zarr's readers do not know:
 * h5py puts them last, netCDF-C first. specs: room for them, CODEC_CHAIN_MAX. */
static struct codec_chain writers(const struct diff *p, const struct ds_array *a,
				  struct codec_spec *specs)
{
	const struct diff_policy *policy = p->job->policy;
	struct codec_chain chain = {.specs = specs};

	if (policy->format == PLAN_HDF5 || policy->keep != PLAN_PORTABLE)
		return a->chain;
	for (uint32_t i = 0; i < a->chain.n; i++) {
		const struct codec_ops *ops = codec_find(a->chain.specs[i].h5_id);

		if (!ops || ops->trailer == 0)
			specs[chain.n++] = a->chain.specs[i];
	}
	return chain;
}

/* as_written - a prepared chain in its writer's order of filters, so that chunks that have been
 * through it can be stored as they are. */
static int as_written(struct diff *p, const struct codec_chain *chain,
		      const struct codec_chain *want, struct sink_new *ret, struct err *e)
{
	struct codec_spec *specs = arena_alloc(&p->arena, CODEC_CHAIN_MAX, sizeof(*specs));
	struct codec_chain same;

	if (!specs)
		return err_nomem(e);
	same = plan_in_order(chain, want, specs);
	ret->chain = same.n == want->n ? same : *want;
	return 0;
}

/* stock - filters for an array whose own ones readers do not know: those of a rule for all arrays,
 * else plain ones; none if it takes neither. */
static int stock(struct diff *p, const struct codec_array *as, const struct codec_rule *every,
		 struct sink_new *ret, struct err *e)
{
	int rc = -EINVAL;

	if (every && every->none)
		return 0;
	if (every)
		rc = policy_prepared(p, as, &every->chain, &ret->chain, e);
	if (rc == -EINVAL || rc == -EOPNOTSUPP)
		rc = policy_prepared(p, as, policy_plain(p), &ret->chain, e);
	if (rc == -EINVAL || rc == -EOPNOTSUPP) {
		ret->chain = (struct codec_chain){0};
		rc = 0;
	}
	return rc;
}

static int policy_filters(struct diff *p, const struct ds_array *a, const char *path,
			  struct sink_new *ret, struct err *e)
{
	const struct diff_policy *policy = p->job->policy;
	const struct codec_rule *rule =
		policy->filters ? codec_rules_for(policy->filters, path) : NULL;
	const struct codec_rule *every = rule;
	struct codec_spec specs[CODEC_CHAIN_MAX];
	struct codec_chain chain = writers(p, a, specs), want;
	struct codec_array as;
	int rc;

	if (a->rank == 0 || dt_is_vlen(&a->type) || a->type.size == 0 || ret->contiguous)
		return 0;
	plan_elements(a, &as);
	as.chunk = ret->chunk ? ret->chunk : a->chunk;
	if (rule && !codec_vars_names(rule->vars, path) && a->chain.n > 0)
		rule = NULL;
	if (rule && rule->none)
		return 0;
	if (rule) {
		rc = policy_prepared(p, &as, &rule->chain, &ret->chain, e);
		if (rc != -EINVAL && rc != -EOPNOTSUPP)
			return rc;
	}
	if (chain.n == 0)
		return 0;
	rc = policy_prepared(p, &as, &chain, &want, e);
	if (rc == 0 && policy_nameable(p, &as, &want))
		return as_written(p, &chain, &want, ret, e);
	if (rc == 0 || rc == -EINVAL || rc == -EOPNOTSUPP)
		rc = stock(p, &as, every, ret, e);
	return rc;
}

/* quant - quantise an array, unless it is quantised already. */
static struct codec_quant quant(const struct diff *p, const struct ds_array *a,
				const char *path)
{
	const struct codec_quant_rules *rules = p->job->policy->quant;
	struct codec_quant q = {.mode = CODEC_QUANT_NONE};

	if (rules && a->type.kind == DT_FLOAT)
		q = codec_quant_for(rules, path, a->type.size);
	for (int mode = CODEC_QUANT_BITGROOM; mode <= CODEC_QUANT_BITROUND; mode++)
		if (q.mode != CODEC_QUANT_NONE &&
		    ds_attr_find(a->attrs, a->n_attrs,
				 codec_quant_attr((enum codec_quant_mode)mode)))
			q.mode = CODEC_QUANT_NONE;
	return q;
}

int diff_policy_new(struct diff *p, uint32_t array, struct sink_new *ret, struct err *e)
{
	const struct ds_array *a = &p->now->arrays[array];
	auto_buf b = buf_of((size_t)1 << 20);
	const char *path;
	int rc;

	*ret = (struct sink_new){0};
	if (!p->job->policy) {
		ret->chain = a->chain;
		return 0;
	}
	path = ds_array_path_text(p->now, array, &b);
	rc = path ? policy_chunks(p, a, path, ret, e) : err_nomem(e);
	rc = rc ? rc : policy_filters(p, a, path, ret, e);
	if (rc == 0)
		p->arrays[array].quant = quant(p, a, path);
	return rc;
}
