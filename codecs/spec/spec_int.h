/* SPDX-License-Identifier: BSD-3-Clause */
/* spec_int.h - what the files that read filters as text share. */
#ifndef CODECS_SPEC_SPEC_INT_H
#define CODECS_SPEC_SPEC_INT_H

#include "base/core/err.h"

#define SPEC_CONST_MAX 2  /* parameters that one constant can give */

/* spec_trim - the same text without blanks and tabs at both ends; *n is its length. */
const char *spec_trim(const char *s, size_t *n);

/* spec_show - a length for "%.*s" that keeps a text of the user's from filling a message. */
int spec_show(size_t n);

/* spec_name - the id of a filter by any of its names: of a codec, of a plugin, or of a registered
 * filter that nobody here has; 0: there is none. */
uint32_t spec_name(const char *s, size_t n);

/* spec_const - one typed constant, n bytes without blanks around it, as the parameters that
 * netCDF-C makes of it: "-17b" 239, "25S", "93U", "789f", "1.5d" and "7L" two: the low 32 bits
 * first, on any host. ret has room for SPEC_CONST_MAX.
 * Returns 0; -EINVAL with what is wrong: no number, a tag that does not exist, more than the tag
 * holds, something behind it. */
int spec_const(const char *s, size_t n, uint32_t *ret, uint32_t *ret_n,
	       struct err *e) NZ_MUST_USE;

#endif
