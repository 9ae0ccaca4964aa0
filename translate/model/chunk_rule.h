/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_rule.h - rules for chunk lengths, as strings: "[VARIABLE[&VARIABLE...],]DIM=N[,DIM=N...]",
 * where N is a number or "all". They are the values of -o chunks= and -o rechunk=. */
#ifndef TRANSLATE_MODEL_CHUNK_RULE_H
#define TRANSLATE_MODEL_CHUNK_RULE_H

#include "codecs/spec/var_pattern.h"
#include "translate/model/dataset.h"

/* chunk_rule_vars - the variables of a rule, *ret_len bytes at its beginning; 0: it is for all.
 * Returns where the lengths begin; an empty part belongs to them, and makes them invalid. */
const char *chunk_rule_vars(const char *rule, size_t *ret_len);

/* chunk_rule_unknown - the first dimension of a rule that ds does not have, *ret_len bytes; NULL:
 * it has all of them, or no dimensions. */
const char *chunk_rule_unknown(const char *rule, const struct dataset *ds, size_t *ret_len);

/* chunk_rules_check - whether n strings are rules. option: its name, for messages. Returns 0;
 * -EINVAL with the reason. */
int chunk_rules_check(const char *option, const char *const *rules, size_t n,
		      struct err *e) NZ_MUST_USE;

/* chunk_rules_apply - set the lengths of an array of ds whose rules name it (kind is
 * CODEC_VARS_NAMED), or are for every variable (CODEC_VARS_EVERY); later rules take precedence.
 * path   of the array, as ds_array_path writes it
 * chunk  rank entries, elements: "all" is the whole dimension, at least 1; lengths may exceed it
 * said   rank entries: set to true where a length was set; others are left alone */
void chunk_rules_apply(const char *const *rules, size_t n, const struct dataset *ds,
		       const struct ds_array *a, const char *path, enum codec_vars_match kind,
		       uint64_t *chunk, bool *said);

#endif
