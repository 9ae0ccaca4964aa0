/* SPDX-License-Identifier: BSD-3-Clause */
/* fingerprint.h - tells whether a source is unchanged since an earlier command, so that the command
 * can skip completed work. */
#ifndef FUSEFS_APP_FINGERPRINT_H
#define FUSEFS_APP_FINGERPRINT_H

#include "fusefs/app/fusefs.h"

/* source_fingerprint - a number for the state of cfg's source and for the options that decide how
 * it is read: a change of any byte gives another number. It is computed from stat for a file, from
 * all entries for a directory, and from the service's versions for a remote source. s: the opened
 * source. Returns 0; -EOPNOTSUPP if changes cannot be detected (references to other files, web
 * servers without listings); or the error of stat, readdir or the service. */
int source_fingerprint(const struct app *setup, struct source *s, uint64_t *ret,
		       struct err *e) NZ_MUST_USE;

/* fingerprint_mix - combine two numbers into one; the order matters. */
uint64_t fingerprint_mix(uint64_t h, uint64_t v);

#endif
