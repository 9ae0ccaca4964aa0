/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_rules_int.h - the parsed rules of -o filter= and -o quantize=. */
#ifndef FUSEFS_APP_CODEC_RULES_INT_H
#define FUSEFS_APP_CODEC_RULES_INT_H

#include "codecs/numeric/quant.h"
#include "codecs/spec/spec.h"
#include "mountcfg/options.h"
#include "translate/plan/plan.h"

/* fs_rules - constant while the program runs. Rule i is parsed from string i of cfg. */
struct fs_rules {
	struct arena arena;
	struct codec_rules filters;
	struct codec_quant_rules quants;
	/* layouts of a writable store (write/writer_filters.c); no option sets them */
	struct plan_layouts layouts;
};

/* fs_rules_init - parse cfg's rules. May look for plugins: call codec_plugins_off first. Returns 0;
 * -EINVAL with the option, the error and the syntax; -ENOMEM. *ret is empty on error. */
int fs_rules_init(const struct cfg *cfg, struct fs_rules *ret, struct err *e) NZ_MUST_USE;
void fs_rules_release(struct fs_rules *r);

/* fs_rules_check - check that every filter rule can be followed for some array: a filter without an
 * encoder, or with parameters that its encoder rejects, is an error. Separate from fs_rules_init
 * because it loads plugins, which only the server may do. r may be NULL: no rules. given: the same
 * rules as the user wrote them, for messages. Returns 0;
 * -EOPNOTSUPP or -EINVAL with the option, the error and a remedy; -ENOMEM. */
int fs_rules_check(const struct fs_rules *r, const struct cfg_rules *given,
		   struct err *e) NZ_MUST_USE;

/* fs_rules_count - number of variables of ds that match a rule's `vars`. */
uint32_t fs_rules_count(const char *vars, const struct dataset *ds);

/* fs_rules_warn - log a line for each rule that matches no variable of ds, and each of -o rechunk=
 * with a dimension that ds does not have. among: the path of ds if it is one of several, which may
 * have others: only of a name that is one letter off, and once for a rule, unless it matched
 * another one before; else NULL. */
void fs_rules_warn(const struct fs_rules *r, const struct cfg *cfg, const struct dataset *ds,
		   const char *among);
/* fs_chunks_warn - the same for rules of -o chunks=, by their dimensions: their variables may be
 * new ones. */
void fs_chunks_warn(const struct cfg *cfg, const struct dataset *ds, const char *among);

#endif
