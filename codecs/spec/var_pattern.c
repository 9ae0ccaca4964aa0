/* SPDX-License-Identifier: BSD-3-Clause */
/* var_pattern.c - patterns of variables: "*", "t?mp&/g/v". One matcher for every option that names
 * variables, so that they cannot differ. */
#include "codecs/spec/var_pattern.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

/* one_pattern - bytes up to the next '&' or the end. */
static size_t one_pattern(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i] != '&')
		i += s[i] == '\\' && i + 1 < n ? 2 : 1;
	return i;
}

int codec_vars_check(const char *vars, size_t n, struct err *e)
{
	for (size_t at = 0;; at++) {
		const size_t len = one_pattern(vars + at, n - at);

		if (len == 0)
			return err_set(e, -EINVAL, "'%.*s' contains an empty variable name",
				       n < 200 ? (int)n : 200, vars);
		if (len + 2 > CODEC_VARS_PATTERN_MAX)
			return err_set(e, -EINVAL, "a variable name of %zu bytes exceeds %d",
				       len, CODEC_VARS_PATTERN_MAX - 2);
		at += len;
		if (at == n)
			return 0;
	}
}

/* matches - whether one pattern is for this path. */
static bool matches(const char *pattern, size_t n, const char *path)
{
	char text[CODEC_VARS_PATTERN_MAX];

	if (n == 0 || n + 2 > sizeof(text))
		return false;
	text[0] = '/';
	memcpy(text + 1, pattern, n);
	text[1 + n] = '\0';
	return fnmatch(*pattern == '/' ? text + 1 : text, path, FNM_PATHNAME) == 0;
}

bool codec_vars_match(const char *vars, const char *path, bool *ret_exact)
{
	const size_t n = strlen(vars);
	bool every = false, exact = false;

	for (size_t at = 0; at <= n && !exact; at++) {
		const size_t len = one_pattern(vars + at, n - at);

		if (len == 1 && vars[at] == '*')
			every = true;
		else
			exact = matches(vars + at, len, path);
		at += len;
	}
	if (ret_exact)
		*ret_exact = exact;
	return every || exact;
}
