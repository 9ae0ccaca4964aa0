/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_rule.c - the language of rules for chunk lengths, and what they mean for an array. */
#include "translate/model/chunk_rule.h"

#include <errno.h>
#include <string.h>

#include "base/core/str.h"

#define LENGTH_MAX ((uint64_t)1 << 40)
#define SHOWN 60 /* bytes of a rule or name in a message */

const char *chunk_rule_vars(const char *rule, size_t *ret_len)
{
	const char *comma = strchr(rule, ','), *equals = strchr(rule, '=');

	*ret_len = 0;
	if (!comma || comma == rule || !equals || equals < comma)
		return rule;
	*ret_len = (size_t)(comma - rule);
	return comma + 1;
}

/* next_length - the next "dim=n" of a rule: *p moves on. *ret 0: all of it. Returns 1; 0 at the
 * end; -EINVAL, also if nothing follows a comma. */
static int next_length(const char **p, const char **ret_name, size_t *ret_len, uint64_t *ret)
{
	const char *text = *p, *end = strchr(text, ','), *equals;

	if (*text == '\0')
		return 0;
	end = end ? end : text + strlen(text);
	equals = memchr(text, '=', (size_t)(end - text));
	if (!equals || equals == text || (*end && end[1] == '\0'))
		return -EINVAL;
	*ret_name = text;
	*ret_len = (size_t)(equals - text);
	equals++;
	*p = *end ? end + 1 : end;
	if (end - equals == 3 && memcmp(equals, "all", 3) == 0) {
		*ret = 0;
		return 1;
	}
	if (str_u64(equals, (size_t)(end - equals), LENGTH_MAX, ret) < 0 || *ret == 0)
		return -EINVAL;
	return 1;
}

static bool dim_known(const struct dataset *ds, const char *name, size_t len)
{
	for (uint32_t i = 0; i < ds->n_dims; i++)
		if (strlen(ds->dims[i].name) == len && memcmp(ds->dims[i].name, name, len) == 0)
			return true;
	return ds->n_dims == 0;
}

static int rule_check(const char *option, const char *rule, struct err *e)
{
	const char *name, *p;
	size_t len;
	uint64_t v;
	int rc = 0, some = 0;

	p = chunk_rule_vars(rule, &len);
	if (len > 0)
		rc = codec_vars_check(rule, len, e);
	if (rc < 0)
		return err_wrap(e, rc, "-o %s=%.*s", option, SHOWN, rule);
	while ((rc = next_length(&p, &name, &len, &v)) > 0)
		some++;
	if (rc == 0 && some > 0)
		return 0;
	return err_set(e, -EINVAL,
		       "-o %s=%.*s: write [VARIABLES,]DIMENSION=LENGTH[,DIMENSION=LENGTH...] "
		       "with numbers or 'all', as in 'time=24,lat=all'",
		       option, SHOWN, rule);
}

int chunk_rules_check(const char *option, const char *const *rules, size_t n, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = rule_check(option, rules[i], e);
	return rc;
}

const char *chunk_rule_unknown(const char *rule, const struct dataset *ds, size_t *ret_len)
{
	const char *p = chunk_rule_vars(rule, ret_len), *name;
	uint64_t v;

	while (next_length(&p, &name, ret_len, &v) > 0)
		if (!dim_known(ds, name, *ret_len))
			return name;
	return NULL;
}

void chunk_rules_apply(const char *const *rules, size_t n, const struct dataset *ds,
		       const struct ds_array *a, const char *path, enum codec_vars_match kind,
		       uint64_t *chunk, bool *said)
{
	for (size_t i = 0; i < n; i++) {
		const char *name, *rule = rules[i];
		size_t len;
		uint64_t v;
		const char *at = chunk_rule_vars(rule, &len);

		if ((len ? codec_vars_match(rule, len, path) : CODEC_VARS_EVERY) != kind)
			continue;
		while (next_length(&at, &name, &len, &v) > 0)
			for (uint32_t d = 0; d < a->rank; d++) {
				const char *dim = ds->dims[a->dims[d]].name;

				if (strlen(dim) != len || memcmp(dim, name, len) != 0)
					continue;
				chunk[d] = v ? v : u64_max(a->shape[d], 1);
				said[d] = true;
			}
	}
}
