/* SPDX-License-Identifier: BSD-3-Clause */
/* inherited_fds.c - descriptors that were open when the program was started.
 *
 * They belong to the caller: a script's lock, or a pipe whose other end is waiting. Programs that
 * this one starts do not get them, and a mount in the background, which lives longer than the
 * script, closes them. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/str.h"
#include "fusefs/app/fusefs.h"

static int *kept; /* set by main */
static size_t n_kept, cap_kept;

void fs_inherited_note(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t fd;

	/* also descriptors that the code below misses without /proc or memory */
	(void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC); /* fails on kernels before 5.11 */
	for (const struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d))
		if (str_u64(x->d_name, strlen(x->d_name), INT32_MAX, &fd) == 0 && fd > 2 &&
		    (int)fd != dirfd(d) && fcntl((int)fd, F_SETFD, FD_CLOEXEC) == 0 &&
		    grow_array(&kept, &cap_kept, n_kept + 1, sizeof(*kept)) == 0)
			kept[n_kept++] = (int)fd;
	if (d)
		(void)closedir(d);
}

/* inherited_fds_is_named - true if a path names a descriptor, as a shell's <(command) does: it may
 * be opened again. */
static bool inherited_fds_is_named(const char *path)
{
	return path && (strncmp(path, "/dev/fd/", 8) == 0 ||
			(strncmp(path, "/proc/", 6) == 0 && strstr(path, "/fd/")));
}

void fs_inherited_close(const struct cfg *cfg)
{
	const char *const paths[] = {cfg->source, cfg->remote.bearer_file, cfg->remote.netrc_file,
				     cfg->remote.ca_file, cfg->remote.aws_config};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (inherited_fds_is_named(paths[i]))
			return;
	for (size_t i = 0; i < n_kept; i++)
		(void)close(kept[i]); /* it was never written to */
	free(kept);
	kept = NULL;
	n_kept = cap_kept = 0;
}
