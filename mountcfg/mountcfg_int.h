/* mountcfg_int.h - shared by the parts of mountcfg only. */
#ifndef MOUNTCFG_MOUNTCFG_INT_H
#define MOUNTCFG_MOUNTCFG_INT_H

#include "mountcfg/mountcfg.h"

/* cfg_defaults - every -o option at its default. Returns 0; -EINVAL never happens with a sane
 * table; -ENOMEM. */
int cfg_defaults(struct cfg *cfg, struct err *e) NZ_MUST_USE;

/* cfg_set_options - take the argument of one -o: options separated by commas, where a backslash
 * takes the next character as it is. Returns 0; -EINVAL with what is wrong; -ENOMEM. */
int cfg_set_options(struct cfg *cfg, const char *list, struct err *e) NZ_MUST_USE;

/* cfg_nearest - the word among `words` that looks most like `word`; NULL when none is close.
 * n words, each of which may end in '=' (not compared). Borrowed. */
const char *cfg_nearest(const char *word, const char *const *words, size_t n);

#endif
