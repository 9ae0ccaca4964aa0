/* SPDX-License-Identifier: BSD-3-Clause */
/* var_pattern.c - patterns of variables: "*", "t?mp&/g/v". All options that name variables share
 * this matcher. */
#include "codecs/spec/var_pattern.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

size_t codec_vars_piece(const char *s, size_t n, char end)
{
	size_t i = 0;

	while (i < n && s[i] != end)
		i += s[i] == '\\' && i + 1 < n ? 2 : 1;
	return i;
}

int codec_vars_check(const char *vars, size_t n, struct err *e)
{
	for (size_t at = 0;; at++) {
		const size_t len = codec_vars_piece(vars + at, n - at, '&');

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

/* matches - whether one pattern matches this path. */
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

enum codec_vars_match codec_vars_match(const char *vars, size_t n, const char *path)
{
	bool every = false;

	for (size_t at = 0; at <= n; at++) {
		const size_t len = codec_vars_piece(vars + at, n - at, '&');

		if (len == 1 && vars[at] == '*')
			every = true;
		else if (matches(vars + at, len, path))
			return CODEC_VARS_NAMED;
		at += len;
	}
	return every ? CODEC_VARS_EVERY : CODEC_VARS_NONE;
}

bool codec_vars_names(const char *vars, const char *path)
{
	return codec_vars_match(vars, strlen(vars), path) == CODEC_VARS_NAMED;
}

const void *codec_vars_best(const void *v, size_t n, size_t size, const char *path)
{
	const void *every = NULL;

	while (n-- > 0) {
		const void *rule = (const uint8_t *)v + n * size;
		const char *vars = *(const char *const *)rule;
		const enum codec_vars_match m = codec_vars_match(vars, strlen(vars), path);

		if (m == CODEC_VARS_NAMED)
			return rule;
		if (m == CODEC_VARS_EVERY && !every)
			every = rule;
	}
	return every;
}
