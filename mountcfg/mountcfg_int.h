/* mountcfg_int.h - shared by the parts of mountcfg only. */
#ifndef MOUNTCFG_MOUNTCFG_INT_H
#define MOUNTCFG_MOUNTCFG_INT_H

#include "mountcfg/mountcfg.h"

/* cfg_defaults - every -o option at its default. Returns 0; -EINVAL never happens with a sane
 * table; -ENOMEM. */
int cfg_defaults(struct cfg *cfg, struct err *e) NZ_MUST_USE;

/* cfg_set_options - take the argument of one -o: options separated by commas, where a backslash
 * takes the next character as it is. In the rules of -o filter=, quantize= and chunks= and the
 * names of unlimited= commas belong to the value up to what can only be another option, and a
 * backslash is kept but for ones before a comma or a backslash. Returns 0; -EINVAL with what is
 * wrong; -ENOMEM. */
int cfg_set_options(struct cfg *cfg, const char *list, struct err *e) NZ_MUST_USE;


/* cfg_settle - defaults that depend on other options, and what does not go together. After all
 * options. Returns 0; -EINVAL with what to type instead. */
int cfg_settle(struct cfg *cfg, struct err *e) NZ_MUST_USE;

#endif
