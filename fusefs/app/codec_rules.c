/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_rules.c - parse the strings of -o filter= and -o quantize= to rules. An error message names
 * the option as it was typed, and the syntax. */
#include "fusefs/app/codec_rules_int.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/observe/log.h"
#include "codecs/spec/var_pattern.h"
#include "translate/model/chunk_rule.h"

#define RULES_BYTES ((size_t)64 << 20)
#define RULES_MAX 256 /* of an option */
#define NAMES_MAX 128 /* names considered for a suggestion */

#define FILTER_SYNTAX                                                                          \
	"write [VARIABLES,]FILTER[,PARAMETER...][|FILTER...] or [VARIABLES,]none, as in "      \
	"'*,shuffle|deflate,5' (names: nczarrfs filters)"
#define QUANTIZE_SYNTAX                                                                        \
	"write [VARIABLES,]MODE,N with bitgroom, granularbr or bitround, as in '*,bitgroom,3'"

/* guess - suggest a word or filter for a string that is only a name; NULL if the string is not a
 * name or no known name is similar. */
static const char *guess(const char *text)
{
	const char *names[NAMES_MAX] = {"portable", "keep", "none"};
	const struct codec_ops *ops;
	size_t n = 3;

	if (strpbrk(text, ",|&*"))
		return NULL;
	for (size_t i = 0; (ops = codec_at(i)) && n + 2 < NAMES_MAX; i++) {
		names[n++] = ops->name;
		if (ops->zarr2_id)
			names[n++] = ops->zarr2_id;
	}
	return cfg_nearest(text, names, n);
}

/* codec_rules_bad - report a bad rule with its option and syntax. */
static int codec_rules_bad(const char *option, const char *text, const char *syntax, int rc,
			   struct err *e)
{
	char what[ERR_TEXT_MAX];
	const char *near = guess(text);

	if (rc != -EINVAL || !e)
		return rc;
	memcpy(what, e->msg, sizeof(what));
	if (near)
		return err_set(e, rc, "-o %s=%.60s: %.140s: did you mean '%s'?", option, text,
			       what, near);
	return err_set(e, rc, "-o %s=%.60s: %.180s: %s", option, text, what, syntax);
}

int fs_rules_init(const struct cfg *cfg, struct fs_rules *ret, struct err *e)
{
	int rc = 0;

	*ret = (struct fs_rules){0};
	arena_init(&ret->arena, RULES_BYTES);
	for (size_t i = 0; i < cfg->rules.filters.n && rc == 0; i++) {
		const char *text = cfg->rules.filters.v[i];

		rc = codec_rule_add(&ret->arena, text, &ret->filters, e);
		if (rc)
			rc = codec_rules_bad("filter", text, FILTER_SYNTAX, rc, e);
	}
	for (size_t i = 0; i < cfg->rules.quantize.n && rc == 0; i++) {
		const char *text = cfg->rules.quantize.v[i];

		rc = codec_quant_rule_add(&ret->arena, text, &ret->quants, e);
		if (rc)
			rc = codec_rules_bad("quantize", text, QUANTIZE_SYNTAX, rc, e);
	}
	if (rc == 0 && cfg->write.rw && cfg->command == CFG_MOUNT)
		rc = chunk_rules_check("chunks", (const char *const *)cfg->rules.chunks.v,
				       cfg->rules.chunks.n, e);
	if (rc == 0)
		rc = chunk_rules_check("rechunk", (const char *const *)cfg->rules.rechunk.v,
				       cfg->rules.rechunk.n, e);
	if (rc)
		fs_rules_release(ret);
	return rc;
}

void fs_rules_release(struct fs_rules *r)
{
	arena_release(&r->arena);
	*r = (struct fs_rules){0};
}

uint32_t fs_rules_count(const char *vars, const struct dataset *ds)
{
	auto_buf path = buf_of((size_t)1 << 20);
	uint32_t n = 0;

	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const char *text = ds_array_path_text(ds, i, &path);

		n += text && codec_vars_match(vars, strlen(vars), text) != CODEC_VARS_NONE;
	}
	return n;
}

/* rules_warning - what a warning about a rule says, and whether there may be one. */
struct rules_warning {
	enum { OF_FILTER, OF_QUANTIZE, OF_RECHUNK, OF_CHUNKS, OF_ALL } of;
	const struct dataset *ds;
	const char *shown; /* of the source of ds */
	const char *among; /* as fs_rules_warn */
};

static const char *const rules_options[OF_ALL] = {"filter", "quantize", "rechunk", "chunks"};

/* rules_settled - rules that one of several datasets matches, or that were warned of. */
static atomic_bool rules_settled[OF_ALL][RULES_MAX];

static void rules_settle(const struct rules_warning *w, size_t rule)
{
	if (w->among && rule < RULES_MAX)
		atomic_store(&rules_settled[w->of][rule], true);
}

/* rules_may_warn - true if rule number `rule` is to be warned of. near: the name that may be meant,
 * or NULL. */
static bool rules_may_warn(const struct rules_warning *w, size_t rule, const char *near)
{
	return !w->among || (near && rule < RULES_MAX &&
			     !atomic_exchange(&rules_settled[w->of][rule], true));
}

/* rules_near - the one of n names that a name may mean: other datasets have other names, so that
 * among several of them it is at most one letter off. */
static const char *rules_near(const struct rules_warning *w, const char *name,
			      const char *const *names, size_t n)
{
	if (!w->among)
		return cfg_nearest(name, names, n);
	return strlen(name) > 2 ? cfg_nearest_within(name, 1, names, n) : NULL;
}

/* warn_vars - if no variable has a name that the rule selects. Returns true if one has. */
static bool warn_vars(const struct rules_warning *w, size_t rule, const char *text,
		      const char *vars)
{
	const char *names[NAMES_MAX], *near;
	size_t n = 0;

	if (strcmp(vars, "*") == 0 || fs_rules_count(vars, w->ds) > 0)
		return true;
	for (uint32_t i = 0; i < w->ds->n_arrays && n < NAMES_MAX; i++)
		names[n++] = w->ds->arrays[i].name;
	near = rules_near(w, vars, names, n);
	if (rules_may_warn(w, rule, near))
		log_warn("-o %s=%s: there is no variable '%s'%s%s%s%s%s%s",
			 rules_options[w->of], text, vars, w->among ? " in '" : "",
			 w->among ? w->among : "", w->among ? "'" : "",
			 near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
	return false;
}

/* warn_dims - if a rule for chunk lengths names a dimension that there is not. Returns true if
 * there are all. */
static bool warn_dims(const struct rules_warning *w, size_t rule, const char *text)
{
	const char *names[NAMES_MAX], *near;
	size_t n = 0, len;
	const char *at = chunk_rule_unknown(text, w->ds, &len);
	auto_free char *name = at ? strndup(at, len) : NULL;

	if (!name)
		return true;
	for (uint32_t i = 0; i < w->ds->n_dims && n < NAMES_MAX; i++)
		names[n++] = w->ds->dims[i].name;
	near = rules_near(w, name, names, n);
	if (rules_may_warn(w, rule, near))
		log_warn("-o %s: no dimension '%s' in '%s'%s%s%s", rules_options[w->of], name,
			 w->among ? w->among : w->shown, near ? ": did you mean '" : "",
			 near ? near : "", near ? "'?" : "");
	return false;
}

void fs_rules_warn(const struct fs_rules *r, const struct cfg *cfg, const struct dataset *ds,
		   const char *among)
{
	struct rules_warning w = {.ds = ds, .shown = cfg->shown, .among = among};

	w.of = OF_FILTER;
	for (uint32_t i = 0; r && i < r->filters.n; i++)
		if (warn_vars(&w, i, cfg->rules.filters.v[i], r->filters.v[i].vars))
			rules_settle(&w, i);
	w.of = OF_QUANTIZE;
	for (uint32_t i = 0; r && i < r->quants.n; i++)
		if (warn_vars(&w, i, cfg->rules.quantize.v[i], r->quants.v[i].vars))
			rules_settle(&w, i);
	w.of = OF_RECHUNK;
	for (size_t i = 0; i < cfg->rules.rechunk.n; i++) {
		const char *text = cfg->rules.rechunk.v[i];
		size_t len;
		const char *lengths = chunk_rule_vars(text, &len);
		auto_free char *vars = lengths > text ? strndup(text, len) : NULL;

		if ((!vars || warn_vars(&w, i, text, vars)) && warn_dims(&w, i, text))
			rules_settle(&w, i);
	}
}

void fs_chunks_warn(const struct cfg *cfg, const struct dataset *ds, const char *among)
{
	const struct rules_warning w = {
		.of = OF_CHUNKS, .ds = ds, .shown = cfg->shown, .among = among};

	for (size_t i = 0; i < cfg->rules.chunks.n; i++)
		if (warn_dims(&w, i, cfg->rules.chunks.v[i]))
			rules_settle(&w, i);
}

/* Checks whether rules can be followed at all. The effect of a rule on one array is decided by the
 * plan (translate/plan/plan.h); these checks find rules that no array can follow. */

#define BYTES_MAX ((size_t)1 << 20) /* bytes of prepared parameters */

/* codec_rules_known - 0 if a codec is available for every filter of the chain. */
static int codec_rules_known(const struct codec_chain *chain, struct err *e)
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

/* usable - 0 if a writer of some ordinary array could use the chain, in either format. */
static int usable(struct arena *a, const struct codec_chain *chain, struct err *e)
{
	static const uint64_t chunk[] = {64, 64};
	static const struct codec_array arrays[] = {
		{.class = CODEC_FLOAT, .elem_size = 4, .rank = 2, .chunk = chunk},
		{.class = CODEC_FLOAT, .elem_size = 8, .rank = 2, .chunk = chunk},
		{.class = CODEC_INT, .elem_size = 4, .rank = 2, .chunk = chunk},
		{.class = CODEC_UINT, .elem_size = 1, .rank = 2, .chunk = chunk},
	};
	static const enum codec_format formats[] = {CODEC_FORMAT_HDF5, CODEC_FORMAT_ZARR};
	struct err first = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(formats) * ARRAY_LEN(arrays); i++) {
		struct codec_chain framed, ready;
		struct err why = ERR_INIT;
		int rc = codec_chain_for(a, formats[i % 2], chain, &framed, &why);

		rc = rc ? rc : codec_chain_prepare(a, &framed, &arrays[i / 2], &ready, &why);
		if (rc == 0)
			return 0;
		if (i == 0)
			first = why;
	}
	return err_set(e, first.code, "%s", first.msg);
}

int fs_rules_check(const struct fs_rules *r, const struct cfg_rules *given, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; r && i < r->filters.n && rc == 0; i++) {
		const struct codec_rule *rule = &r->filters.v[i];
		struct arena a;

		if (rule->none)
			continue;
		arena_init(&a, BYTES_MAX);
		rc = codec_rules_known(&rule->chain, e);
		rc = rc ? rc : usable(&a, &rule->chain, e);
		if (rc < 0)
			rc = err_wrap(e, rc, "-o filter=%.100s", given->filters.v[i]);
		arena_release(&a);
	}
	return rc;
}
