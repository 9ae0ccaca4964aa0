/* rules.h - the rules of -o filter= and -o quantize=, read once for all views. */
#ifndef FUSEFS_RULES_H
#define FUSEFS_RULES_H

#include "codecs/quant.h"
#include "codecs/spec.h"
#include "mountcfg/mountcfg.h"

struct rules;

/* rules_new - read cfg's rules. A filter that can be encoded for no array, because nobody here has
 * it or because of its parameters, is a mistake: -EINVAL, or -EOPNOTSUPP with what to install.
 * Filters of plugins are looked for. Returns 0 with *ret new. */
int rules_new(const struct cfg *cfg, struct rules **ret, struct err *e) NZ_MUST_USE;
/* rules_free - takes NULL. */
void rules_free(struct rules *r);

/* rules_filter, rules_quant - borrowed from r; NULL: there are none. */
const struct codec_rules *rules_filter(const struct rules *r);
const struct codec_quant_rules *rules_quant(const struct rules *r);

#endif
