/* SPDX-License-Identifier: BSD-3-Clause */
/* spec_int.h - private to codecs/spec. */
#ifndef CODECS_SPEC_SPEC_INT_H
#define CODECS_SPEC_SPEC_INT_H

#include "base/core/err.h"

#define SPEC_CONST_MAX 2  /* parameters that one constant can give */

/* spec_trim - skip blanks and tabs at both ends; *n becomes the length of the rest. */
const char *spec_trim(const char *s, size_t *n);

/* spec_show - a precision for "%.*s" that limits a user's text in a message. */
int spec_show(size_t n);

/* spec_name - the id of a filter by any of its names: of a codec, a plugin, or a registered filter,
 * available or not; 0: there is none. */
uint32_t spec_name(const char *s, size_t n);

/* spec_const - convert one typed constant, n bytes without surrounding blanks, to netCDF-C's
 * parameters: "-17b" 239, "25S", "93U", "789f", "1.5d" and "7L" two: the low 32 bits first, on any
 * host. ret has room for SPEC_CONST_MAX. Returns 0; -EINVAL with the reason: no number, an unknown
 * tag, a number beyond the tag's range, text after it. */
int spec_const(const char *s, size_t n, uint32_t *ret, uint32_t *ret_n,
	       struct err *e) NZ_MUST_USE;

#endif
