/* SPDX-License-Identifier: BSD-3-Clause */
/* rules.c - the rules of -o filter=, and the one that applies to a variable. */
#include "codecs/spec/spec.h"

#include <errno.h>
#include <string.h>

#include "base/core/str.h"
#include "codecs/spec/spec_int.h"
#include "codecs/spec/var_pattern.h"

#define RULES_MAX 1000

/* is_filter - whether a rule begins with a filter, and not with variables. */
static bool is_filter(const char *s, size_t n)
{
	const char *bar = memchr(s, '|', n);

	if (bar)
		n = (size_t)(bar - s);
	s = spec_trim(s, &n);
	return n > 0 && ((s[0] >= '0' && s[0] <= '9') || spec_name(s, n));
}

/* parse_rule - parse "[VARS,]CHAIN" or "[VARS,]none". */
static int parse_rule(struct arena *a, const char *s, size_t n, struct codec_rule *ret,
		      struct err *e)
{
	size_t first = codec_vars_piece(s, n, ','), m = first;
	const char *vars = spec_trim(s, &m);
	int rc;

	*ret = (struct codec_rule){.vars = "*"};
	if (first < n && !is_filter(s, first)) {
		rc = codec_vars_check(vars, m, e);
		if (rc)
			return rc;
		ret->vars = arena_copy(a, vars, m);
		if (!ret->vars)
			return err_nomem(e);
		s += first + 1;
		n -= first + 1;
	}
	s = spec_trim(s, &n);
	if (str_is_nocase("none", s, n)) {
		ret->none = true;
		return 0;
	}
	return codec_spec_parse(a, s, n, &ret->chain, e);
}

int codec_rule_add(struct arena *a, const char *text, struct codec_rules *rules, struct err *e)
{
	struct codec_rule one, *grown;
	size_t n = strlen(text);
	int rc;

	if (rules->n == RULES_MAX)
		return err_set(e, -EINVAL, "more than %d rules given", RULES_MAX);
	text = spec_trim(text, &n);
	rc = parse_rule(a, text, n, &one, e);
	if (rc)
		return rc;
	grown = arena_alloc(a, (size_t)rules->n + 1, sizeof(*grown));
	if (!grown)
		return err_nomem(e);
	if (rules->n > 0)
		memcpy(grown, rules->v, rules->n * sizeof(*grown));
	grown[rules->n] = one;
	rules->v = grown;
	rules->n++;
	return 0;
}

const struct codec_rule *codec_rules_for(const struct codec_rules *rules, const char *path)
{
	return codec_vars_best(rules->v, rules->n, sizeof(*rules->v), path);
}
