/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts.h - the commands for several mounts. */
#ifndef FUSEFS_CMD_MOUNTS_H
#define FUSEFS_CMD_MOUNTS_H

#include "fusefs/app/fusefs.h"

/* The commands `mount` with several names, `umount`, `list`, and --print-config. */
int mounts_mount(const struct app *setup);
int mounts_umount(const struct app *setup);
int mounts_list(const struct app *setup);
int config_print(const struct app *setup);

#endif
