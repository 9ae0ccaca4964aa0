/* SPDX-License-Identifier: BSD-3-Clause */
/* ini_int.h - configuration files as sections of keys, without their meaning. */
#ifndef MOUNTCFG_CONFIG_INI_INT_H
#define MOUNTCFG_CONFIG_INI_INT_H

#include "base/core/err.h"

enum {
	CONF_FILE_MAX = 256 << 10, /* bytes of a file */
	CONF_LINE_MAX = 8192,      /* bytes of a line */
};

struct conf_key {
	char *name, *value; /* owned; value is wiped: it may contain a password */
	uint32_t line;
};

struct conf_section {
	const char *path;   /* of its file; borrowed */
	char *kind, *name;  /* owned: of "[mount archive]"; name "" without one */
	uint32_t line;
	bool user;          /* in the user's file, not in the system's */
	struct conf_key *keys; /* owned, n_keys */
	size_t n_keys;
};

/* conf - the sections of all files, the user's first. */
struct conf {
	char *paths[2];     /* of n_paths files; owned */
	size_t n_paths;
	struct conf_section *sections; /* owned, n */
	size_t n;
};

enum conf_whose { CONF_SYSTEM, CONF_USER, CONF_NAMED };

/* conf_file_read - append the sections of a file to c.
 * whose  CONF_NAMED: it must exist; another kind that is not readable is ignored
 * Returns 0; 1: no file, or one that is not trusted, with the reason in e if it is worth reporting;
 * -EINVAL, -EACCES, -EFBIG with file and line. */
int conf_file_read(const char *path, enum conf_whose whose, struct conf *c,
		   struct err *e) NZ_MUST_USE;

#endif
