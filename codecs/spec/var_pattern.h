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

/* codec_vars_match - whether one of the patterns is for the variable with this path ("/v",
 * "/g/v"). "*" is for every variable; a pattern without '/' at its start is for variables of the
 * root group (fnmatch(3): '*' and '?' do not match '/').
 * ret_exact  true: another pattern than "*" matched, so that the rule wins over those for every
 *            variable. Written in either case; NULL: nobody asks. */
bool codec_vars_match(const char *vars, const char *path, bool *ret_exact);

#endif
