/* SPDX-License-Identifier: BSD-3-Clause */
/* mountinfo.h - our mounts, as the kernel lists them. */
#ifndef FUSEFS_DAEMON_MOUNTINFO_H
#define FUSEFS_DAEMON_MOUNTINFO_H

#include "base/core/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* mounted - one of our mounts. Strings are owned. */
struct mounted {
	uint64_t id;
	char *dir, *source; /* source: as it was shown at mount time */
	uint32_t user;      /* the user who mounted it */
	bool writable;
	bool hidden;        /* another mount covers it */
};

enum mounted_state { MOUNTED_LIVE, MOUNTED_DEAD, MOUNTED_SILENT, MOUNTED_FOREIGN };

/* mounted_list - the mounts that this process can see, in the order of their creation. mounted_free
 * it. Returns 0; -errno. */
int mounted_list(struct mounted **ret, size_t *ret_n, struct err *e) NZ_MUST_USE;
void mounted_free(struct mounted *list, size_t n);
/* mounted_ask - the state of a mount. The request to its server, which may not answer, is made in a
 * child process and limited to a second. FOREIGN: this user may not access it. */
enum mounted_state mounted_ask(const char *dir);
/* mounted_differs - true if a mount certainly shows another source than `source`, which is in the
 * form of cfg_show. Files are compared in a child process with a limit of a second, because they
 * may lie in a mount that does not answer. */
bool mounted_differs(const struct mounted *m, const char *source);
/* mounted_resolve - resolve all but the last component of dir, because the server of a mount there
 * may be dead. NULL: the path does not exist. The caller frees it. */
char *mounted_resolve(const char *dir);

/* fs_mount_id - id of our mount on dir (resolved), provided that no other mount covers it; 0: there
 * is none. Reads mountinfo only, never contacts the server, and finds a dead mount as well. */
uint64_t fs_mount_id(const char *dir);
/* fs_is_dead - true if the mount on dir has no server any more. */
bool fs_is_dead(const char *dir);

#endif
