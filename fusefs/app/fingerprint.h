/* SPDX-License-Identifier: BSD-3-Clause */
/* fingerprint.h - whether a source is the one that a command looked at before, so that what was
 * done then need not be done again. */
#ifndef FUSEFS_APP_FINGERPRINT_H
#define FUSEFS_APP_FINGERPRINT_H

#include "fusefs/app/fusefs.h"

/* source_fingerprint - a number for the state that cfg's source is in, and for the options that
 * decide how it is read: any change of a byte of it gives another one. Of a file that is what stat
 * says of it; of a directory, of everything in it; of what is far away, versions as the service
 * gives them. s: it, open. Returns 0; -EOPNOTSUPP it cannot be seen whether it changed: references
 * to other files, web servers that list nothing; what looking gave. */
int source_fingerprint(const struct app *setup, struct source *s, uint64_t *ret,
		       struct err *e) NZ_MUST_USE;

/* fingerprint_mix - a number made of two: order matters. */
uint64_t fingerprint_mix(uint64_t h, uint64_t v);

#endif
