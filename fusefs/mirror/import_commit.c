/* SPDX-License-Identifier: BSD-3-Clause */
/* import_commit.c - a file that a program wrote becomes a new Zarr store. */
#include "fusefs/write/chunk_set.h"

#include <errno.h>

#define MEMORY ((uint64_t)256 << 20)

int commit_new(const struct app *setup, struct source *now, const char *store, int dir_fd,
	       struct err *e)
{
	struct source_options opts;
	struct source *real = NULL;
	struct diff_job job = {.now = now, .memory = MEMORY};
	const struct zarr_sink_options to =
		rw_zarr_options(&setup->cfg->zarr, NULL, dir_fd, NULL);
	int rc = zarr_create(store, &to, e);

	if (rc < 0)
		return rc;
	fs_source_options(setup->cfg, &opts);
	rc = source_open(setup->formats, setup->n_formats, store, &opts, &real, e);
	rc = rc ? rc : zarr_sink_open(store, real, &to, &job.sink, e);
	if (rc == 0) {
		job.was = real; /* a root without contents */
		rc = commit_push(setup, setup->cfg->zarr.zarr3 ? PLAN_ZARR3 : PLAN_ZARR2, &job, e);
	}
	source_close(real);
	return rc;
}
