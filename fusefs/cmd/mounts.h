/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts.h - mounts as the kernel lists them, and the commands about several of them. */
#ifndef FUSEFS_CMD_MOUNTS_H
#define FUSEFS_CMD_MOUNTS_H

#include "fusefs/app/fusefs.h"

/* mounted - a mount of ours. Texts are owned. */
struct mounted {
	uint64_t id;
	char *dir, *source; /* source: as it was shown when it was mounted */
	uint32_t user;      /* who mounted it */
	bool writable;
	bool hidden;        /* something else lies on top of it */
};

enum mounted_state { MOUNTED_LIVE, MOUNTED_DEAD, MOUNTED_SILENT, MOUNTED_FOREIGN };

/* mounted_list - those that this process can see, in the order in which they were made.
 * mounted_free it. Returns 0; -errno. */
int mounted_list(struct mounted **ret, size_t *ret_n, struct err *e) NZ_MUST_USE;
void mounted_free(struct mounted *list, size_t n);
/* mounted_ask - how one is: its server is asked, and may not answer: that is waited for a second in
 * another process. FOREIGN: this user may not use it. */
enum mounted_state mounted_ask(const char *dir);
/* mounted_differs - whether a mount certainly shows something else than source, which is as
 * cfg_show has it. Files are looked at in another process, for a second: they may lie in a mount
 * that does not answer. */
bool mounted_differs(const struct mounted *m, const char *source);
/* mounted_resolve - the place of a mount, whose server may be gone: all but the last name of dir is
 * looked at. NULL: that does not exist. The caller's. */
char *mounted_resolve(const char *dir);

/* The commands `mount` of several names, `umount`, `list`, and --print-config. */
int mounts_mount(const struct app *setup);
int mounts_umount(const struct app *setup);
int mounts_list(const struct app *setup);
int config_print(const struct app *setup);

#endif
