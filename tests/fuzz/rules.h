/* SPDX-License-Identifier: BSD-3-Clause */
/* rules.h - a policy with rules, for targets that open views. */
#ifndef TESTS_FUZZ_RULES_H
#define TESTS_FUZZ_RULES_H

#include <stdlib.h>

#include "translate/plan/plan.h"

/* fuzz_rules - every chunk is encoded, every float quantised. Made once, and kept. */
static inline struct plan_policy fuzz_rules(void)
{
	static struct arena arena;
	static struct codec_rules rules;
	static struct codec_quant_rules quants;

	if (rules.n == 0) {
		arena_init(&arena, (size_t)1 << 16);
		if (codec_rule_add(&arena, "shuffle|deflate,1", &rules, NULL) < 0 ||
		    codec_quant_rule_add(&arena, "bitround,5", &quants, NULL) < 0)
			abort();
	}
	return (struct plan_policy){.rules = &rules, .quant = &quants};
}

#endif
