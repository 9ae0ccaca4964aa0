/* SPDX-License-Identifier: BSD-3-Clause */
/* match.h - finds the objects of one dataset in another one. */
#ifndef TRANSLATE_MODEL_MATCH_H
#define TRANSLATE_MODEL_MATCH_H

#include "translate/model/dataset.h"

/* ds_match - for each group, array and dimension of `from`, the ordinal of the one in `to` with the
 * same path, or DS_NONE. Each list has as many entries as `from`, or is NULL. Returns 0 or -ENOMEM.
 */
int ds_match(const struct dataset *from, const struct dataset *to, uint32_t *groups,
	     uint32_t *arrays, uint32_t *dims, struct err *e) NZ_MUST_USE;

#endif
