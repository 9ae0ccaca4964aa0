/* SPDX-License-Identifier: BSD-3-Clause */
/* var_pattern.h - which variables a rule of -o filter= or -o quantize= is for. */
#ifndef CODECS_SPEC_VAR_PATTERN_H
#define CODECS_SPEC_VAR_PATTERN_H

#include "base/core/err.h"

#define CODEC_VARS_PATTERN_MAX 4096  /* bytes of one pattern, its NUL included */

/* codec_vars_check - whether n bytes are patterns: none empty, none too long. Patterns stand
 * between '&'; a '\' takes the meaning from what follows it, a '&' too.
 * Returns 0; -EINVAL, with the text that is wrong. */
int codec_vars_check(const char *vars, size_t n, struct err *e) NZ_MUST_USE;

/* codec_vars_match - whether one of the patterns (n bytes) is for the variable with this path
 * ("/v", "/g/v"). "*" is for every variable; a pattern without '/' at its start is for variables of
 * the root group (fnmatch(3): '*' and '?' do not match '/'). A rule that names a variable wins over
 * those for every variable. */
enum codec_vars_match { CODEC_VARS_NONE, CODEC_VARS_EVERY, CODEC_VARS_NAMED };
enum codec_vars_match codec_vars_match(const char *vars, size_t n, const char *path);

/* codec_vars_names - whether a text of patterns names the variable; not: it is for every one. */
bool codec_vars_names(const char *vars, const char *path);

/* codec_vars_best - of n rules the one for a variable: the last that names it, else the last for
 * every variable; NULL: none. v: structures of `size` bytes that begin with their patterns, a
 * const char *. */
const void *codec_vars_best(const void *v, size_t n, size_t size, const char *path);

#endif
