/* SPDX-License-Identifier: BSD-3-Clause */
/* var_pattern.h - the variables that a rule of -o filter= or -o quantize= applies to. */
#ifndef CODECS_SPEC_VAR_PATTERN_H
#define CODECS_SPEC_VAR_PATTERN_H

#include "base/core/err.h"

#define CODEC_VARS_PATTERN_MAX 4096  /* bytes of one pattern, its NUL included */

/* codec_vars_piece - the bytes before the first `end` that is not escaped by a backslash, or n. */
size_t codec_vars_piece(const char *s, size_t n, char end);

/* codec_vars_check - whether n bytes are valid patterns: none empty, none too long. Patterns are
 * separated by '&'; a '\' escapes the next character, also '&'. Returns 0; -EINVAL, with the
 * invalid text. */
int codec_vars_check(const char *vars, size_t n, struct err *e) NZ_MUST_USE;

/* codec_vars_match - whether one of the patterns (n bytes) matches the variable with this path
 * ("/v", "/g/v"). "*" matches every variable; a pattern without '/' at its start matches variables
 * of the root group (fnmatch(3): '*' and '?' do not match '/'). A rule that names a variable
 * overrides those for every variable. */
enum codec_vars_match { CODEC_VARS_NONE, CODEC_VARS_EVERY, CODEC_VARS_NAMED };
enum codec_vars_match codec_vars_match(const char *vars, size_t n, const char *path);

/* codec_vars_names - whether patterns name the variable, other than by matching every one. */
bool codec_vars_names(const char *vars, const char *path);

/* codec_vars_best - of n rules the one for a variable: the last that names it, else the last for
 * every variable; NULL: none. v: structures of `size` bytes that begin with their patterns, a const
 * char *. */
const void *codec_vars_best(const void *v, size_t n, size_t size, const char *path);

#endif
