/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_rules_int.h - what -o filter= and -o quantize= say about variables: the texts of cfg,
 * understood. */
#ifndef FUSEFS_APP_CODEC_RULES_INT_H
#define FUSEFS_APP_CODEC_RULES_INT_H

#include "codecs/numeric/quant.h"
#include "codecs/spec/spec.h"
#include "mountcfg/options.h"
#include "translate/plan/plan.h"

/* fs_rules - constant while the program runs. Rule i is the text i of cfg. */
struct fs_rules {
	struct arena arena;
	struct codec_rules filters;
	struct codec_quant_rules quants;
	struct plan_layouts layouts; /* no option's: of a writable tree (write/writer_filters.c) */
};

/* fs_rules_init - understand cfg's rules. May look for plugins: codec_plugins_off comes before it.
 * Returns 0; -EINVAL with the option, what is wrong with it and how it is written; -ENOMEM; *ret
 * is empty then. */
int fs_rules_init(const struct cfg *cfg, struct fs_rules *ret, struct err *e) NZ_MUST_USE;
void fs_rules_release(struct fs_rules *r);

/* fs_rules_check - whether every filter rule can be followed for some array: a filter that nobody
 * here can encode, or with such parameters, is a mistake. Apart from init because it loads
 * plugins, which is the server's business. r may be NULL: no rules.
 * Returns 0; -EOPNOTSUPP, -EINVAL with the option, what is wrong and what to do; -ENOMEM. */
int fs_rules_check(const struct fs_rules *r, const struct cfg *cfg, struct err *e) NZ_MUST_USE;

/* fs_rules_count - how many variables of ds have a name that a rule's `vars` has. */
uint32_t fs_rules_count(const char *vars, const struct dataset *ds);

/* fs_rules_warn - a line in the log for each rule whose names no variable of ds has. */
void fs_rules_warn(const struct fs_rules *r, const struct cfg *cfg, const struct dataset *ds);
/* fs_chunks_warn - the same for each rule of -o chunks= with a dimension that ds does not have. */
void fs_chunks_warn(const struct cfg *cfg, const struct dataset *ds);

#endif
