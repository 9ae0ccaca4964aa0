/* SPDX-License-Identifier: BSD-3-Clause */
/* push_nc.c - make a netCDF-4 file what a Zarr tree is, as a writable mount does, but from one tree
 * to the next at once:
 *
 *   push_nc FILE.nc WAS NOW      WAS: the tree that the file was read as; "-": there is none, and
 *                                the file is made when it is not there
 *   push_nc -n FILE.nc WAS NOW   the same without the commit
 *   push_nc -q FILE.nc NOW       only say whether netCDF-4 can hold NOW
 *
 * Prints what was done, "groups arrays attrs passed encoded dropped", or the error, with status 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hdf5view/hdf5view.h"
#include "nczarr/nczarr.h"
#include "translate/diff/diff.h"

static int open_any(const struct source_ops *ops, const char *path, struct source **ret,
		    struct err *e)
{
	const struct source_ops *const formats[] = {ops};
	const struct source_options o = {.cut_bytes = (uint64_t)1 << 20,
					 .max_chunk_bytes = (uint64_t)1 << 30,
					 .max_index_bytes = (uint64_t)1 << 30,
					 .max_meta_bytes = (uint64_t)1 << 30};

	return source_open(formats, 1, path, &o, ret, e);
}

static int refuse(void *arg, struct err *e)
{
	(void)arg;
	return err_set(e, -ECANCELED, "not wanted");
}

static int run(const char *path, struct source *was, struct source *now, bool dry,
	       struct err *e)
{
	const struct diff_policy policy = {.keep = PLAN_PORTABLE, .format = PLAN_HDF5};
	auto_fd int dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* for the journal */
	struct diff_job job = {.was = was,
			       .now = now,
			       .policy = &policy,
			       .gate = dry ? refuse : NULL,
			       .memory = (uint64_t)256 << 20};
	struct diff_report r = {0};
	struct source *real = NULL;
	int rc = was ? 0 : hdf5_sink_holds(&now->ds, e); /* who has it holds it */

	if (!rc && !was && access(path, F_OK) < 0)
		rc = hdf5_create(path, 0, e);
	if (!rc)
		rc = open_any(&hdf5_source_ops, path, &real, e);
	if (!rc)
		source_hold(real, true);
	if (!rc)
		rc = hdf5_sink_open(path, real, dir, &job.sink, e);
	if (!rc)
		rc = push(&job, &r, e);
	sink_close(job.sink);
	source_close(real);
	if (!rc)
		(void)printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			     " %" PRIu64 "\n",
			     r.groups, r.arrays, r.attrs, r.passed, r.encoded, r.dropped);
	return rc;
}

int main(int argc, char **argv)
{
	bool dry = argc > 1 && strcmp(argv[1], "-n") == 0;
	bool ask = argc > 1 && strcmp(argv[1], "-q") == 0;
	struct source *was = NULL, *now = NULL;
	struct err e = ERR_INIT;
	int rc = 0, at = 1 + (dry || ask);

	if (argc != (ask ? 4 : dry ? 5 : 4)) {
		(void)fprintf(stderr, "usage: push_nc [-n] FILE.nc WAS|- NOW\n");
		return 2;
	}
	if (!ask && strcmp(argv[at + 1], "-") != 0)
		rc = open_any(&zarr_source_ops, argv[at + 1], &was, &e);
	if (!rc)
		rc = open_any(&zarr_source_ops, argv[argc - 1], &now, &e);
	if (!rc)
		rc = ask ? hdf5_sink_holds(&now->ds, &e) : run(argv[at], was, now, dry, &e);
	if (rc)
		(void)fprintf(stderr, "%s: %s\n", strerror(-rc), e.msg);
	source_close(now);
	source_close(was);
	return rc ? 1 : 0;
}
