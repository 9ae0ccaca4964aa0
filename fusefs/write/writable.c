/* SPDX-License-Identifier: BSD-3-Clause */
/* writable.c - opens writable views and starts their commits. */
#include "fusefs/write/writable.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/core/clock.h"
#include "base/core/endings.h"
#include "base/observe/log.h"
#include "fusefs/app/remote.h"
#include "fusefs/write/writable_int.h"
#include "hdf5view/hdf5view.h"
#include "mountcfg/address/address.h"

static void rw_free(void *arg)
{
	struct rw *rw = arg;

	store_close(rw->remote);
	rw_state_close(&rw->state);
	free(rw);
}

/* ---- writable datasets ---- */

static int other_format(const char *path, struct err *e)
{
	return err_set(e, -EROFS,
		       "'%s': can be written only in the other format (-o view=auto): leave out "
		       "rw, or write it directly",
		       path);
}

/* writable_allowed - check that a dataset can be written, through this view. */
static int writable_allowed(const struct rw *rw, const struct source *s, struct err *e)
{
	const struct app *setup = rw->setup;
	const char *path = rw->state.shown;

	if (rw->state.remote && !S_ISDIR(s->ds.st.st_mode))
		return err_set(e, -EROFS,
			       "'%s': only Zarr stores can be written remotely: leave out rw",
			       path);
	if (s->ops == setup->hdf5 && !rw->want.nc)
		return 0;
	if (s->ops == setup->zarr && rw->want.nc && rw->state.is_dir)
		return 0;
	if (s->ops == setup->zarr && !rw->state.is_dir)
		return err_set(e, -EROFS,
			       "'%s': archives cannot be written: unpack it, or leave out rw",
			       path);
	if (s->ops == setup->zarr || s->ops == setup->hdf5)
		return other_format(path, e);
	return err_set(
		e, -EROFS,
		"'%s': only netCDF-4 files, HDF5 files and Zarr stores can be written: convert "
		"it (nccopy -4), or leave out rw",
		path);
}

static int read_only(const char *path, struct err *e)
{
	return err_set(e, -EROFS,
		       "'%s': a web server cannot be written to (object stores with s3:// can): "
		       "leave out rw",
		       path);
}

/* writable_reach - open the store of a remote dataset. */
static int writable_reach(struct rw *rw, struct err *e)
{
	const struct app *setup = rw->setup;
	int rc = fs_store(setup, rw->state.path, &rw->remote, e);

	if (rc == 0 &&
	    (rw->remote->unlisted || !rw->remote->ops->put || !rw->remote->ops->remove))
		rc = read_only(rw->state.shown, e);
	return rc;
}

/* permitted - check permissions at mount time rather than at the first commit. */
static int permitted(struct rw *rw, struct err *e)
{
	if (rw->state.remote)
		return writable_reach(rw, e);
	if (faccessat(AT_FDCWD, rw->state.path, rw->state.is_dir ? W_OK | X_OK : W_OK,
		      AT_EACCESS) < 0)
		return err_sys(e, errno, "'%s' cannot be written", rw->state.path);
	return 0;
}

/* writable_settle - finish the recovery of a failed commit of this mount, which may have left the
 * file in neither of its two states. The file must not be read before that: a later recovery would
 * look like another program's change. */
static int writable_settle(struct rw *rw, struct err *e)
{
	bool done = false;
	int rc = rw->state.is_dir ? 0 : rw_repair(rw->setup, &rw->state, &done, e);

	return rc == 0 && done ? rw_state_base(&rw->state, e) : rc;
}

/* open_snapshot - open the read-only view of the dataset in its present state. */
static int open_snapshot(void *arg, struct view **ret, struct err *e)
{
	struct rw *rw = arg;
	const struct app *setup = rw->setup;
	struct source_options opts;
	struct source *source = NULL;
	int rc;

	fs_source_options(setup->cfg, &opts);
	rc = writable_settle(rw, e);
	rc = rc ? rc : fs_source(setup, rw->state.path, &opts, &source, e);
	if (rc < 0)
		return rc;
	rc = writable_allowed(rw, source, e);
	if (rc < 0) {
		source_close(source);
		return rc;
	}
	return source->ops == setup->hdf5
		       ? commit_tree_view(setup, source, &rw->want, rw->state.dir_fd, ret, e)
		       : setup->view_open(source, setup->cfg, &rw->want, ret, e);
}

/* file_end - file_rw_options.end: apply what a commit left to be done. */
static int file_end(void *arg, struct err *e)
{
	const struct rw *rw = arg;

	return zarr_sink_recover(rw->state.path, rw->remote, rw->state.dir_fd, e);
}

/* ---- opening ---- */

static int writable_open_tree(struct rw *rw, struct snapshots *g, struct view **ret,
			      struct err *e)
{
	const struct cfg *cfg = rw->setup->cfg;
	struct tree_rw_options opts = {
		.dir_fd = rw->state.dir_fd,
		.dir = rw->state.dir,
		.max_staged = cfg->write.stage_size / rw->want.share,
		.max_buffer = cfg->limits.write_size / rw->want.share,
		.idle_ms = cfg->write.commit_delay,
		.id_limit = rw->want.id_limit,
		.name = rw->want.root,
		.st = {.st_mode = S_IFDIR | 0644},
		.check = commit_tree_check,
		.commit = rw_commit_tree,
		.recoded = commit_tree_recoded,
		.arg = rw,
	};
	struct stage *stage;
	int rc;

	opts.st.st_uid = geteuid();
	opts.st.st_gid = getegid();
	opts.st.st_mtim = clock_wall();
	opts.st.st_ctim = opts.st.st_mtim;
	rc = stage_open(rw->state.dir_fd, false, &stage, e);
	if (rc < 0)
		return rc;
	rc = tree_rw_open(g, stage, &opts, ret, e);
	if (rc < 0)
		stage_close(stage);
	return rc;
}

static int writable_open_file(struct rw *rw, struct snapshots *g, struct view **ret,
			      struct err *e)
{
	const struct file_rw_options opts = {
		.dir_fd = rw->state.dir_fd,
		.dir = rw->state.dir,
		.name = rw->name,
		.id_limit = rw->want.id_limit,
		.commit = commit_file,
		.end = file_end,
		.arg = rw,
	};

	return nc_rw_open(g, &opts, ret, e);
}

/* open_either - its threads block all signals, which the server's own threads accept. */
static int open_either(struct rw *rw, bool tree, struct snapshots *g, struct view **ret,
		       struct err *e)
{
	sigset_t all, old;
	int rc;

	(void)sigfillset(&all);
	rc = pthread_sigmask(SIG_SETMASK, &all, &old);
	if (rc)
		return err_sys(e, rc, "block signals");
	rc = tree ? writable_open_tree(rw, g, ret, e) : writable_open_file(rw, g, ret, e);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL); /* the mask was valid a moment ago */
	return rc;
}

static int open_view(struct rw *rw, struct view **ret, struct err *e)
{
	struct snapshots *g;
	const struct source *s;
	struct snapshot *x;
	const char *among;
	bool tree;
	int rc = snapshots_new(open_snapshot, rw, &g, e);

	if (rc < 0)
		return rc;
	x = snapshots_get(g);
	s = x->view->source;
	among = rw->want.share == 1 ? NULL : s->shown;
	tree = s->ops == rw->setup->hdf5;
	if (rw->setup->cfg->command == CFG_MOUNT) {
		fs_chunks_warn(rw->setup->cfg, &s->ds, among);
		/* rules of an empty dataset are for variables that will be written */
		if (s->ds.n_arrays)
			fs_rules_warn(rw->setup->rules, rw->setup->cfg, &s->ds, among);
	}
	snapshot_put(g, x);
	if (!tree && rw->want.root)
		rc = err_set(e, -EINVAL, "-o root: only if the mount shows a Zarr store");
	else
		rc = open_either(rw, tree, g, ret, e);
	if (rc < 0)
		snapshots_free(g);
	return rc;
}

/* writable_prepare - lock the state directory, and recover the dataset to one of its states. */
static int writable_prepare(struct rw *rw, const char *path, struct err *e)
{
	bool done = false;
	int rc = rw_state_open(rw->setup->cfg, path, true, &rw->state, e);

	rc = rc ? rc : permitted(rw, e);
	rc = rc ? rc : rw_repair(rw->setup, &rw->state, &done, e);
	if (rc == 0 && done)
		log_warn("'%s': an interrupted commit was completed or undone",
			 rw->state.shown);
	if (rc == 0 && !done && !rw_state_bare(&rw->state))
		rc = rw_state_same(&rw->state, e);
	return rc == 0 ? rw_state_base(&rw->state, e) : rc;
}

int fs_rw_open(const struct app *setup, const char *path, const struct view_request *want,
	       struct view **ret, struct err *e)
{
	struct rw *rw = alloc_array(1, sizeof(*rw));
	size_t n = strlen(want->name);
	int rc;

	if (!rw)
		return err_nomem(e);
	rw->setup = setup;
	rw->want = *want;
	rw->state = (struct rw_state)RW_STATE_INIT;
	memcpy(rw->name, want->name, n < sizeof(rw->name) ? n : sizeof(rw->name) - 1);
	rw->want.name = rw->name;
	rw->want.writable = true;
	rc = writable_prepare(rw, path, e);
	rc = rc ? rc : open_view(rw, ret, e);
	if (rc < 0) {
		rw_free(rw);
		return rc;
	}
	(*ret)->closed = rw_free;
	(*ret)->owner = rw;
	return 0;
}

/* ---- new stores ---- */

_Static_assert((int)CFG_MODE_ZARR == (int)ZARR_PURE && (int)CFG_MODE_NCZARR == (int)ZARR_NCZARR &&
		       (int)CFG_MODE_NOXARRAY == (int)ZARR_NOXARRAY,
	       "cfg's modes are nczarr's");

struct zarr_sink_options rw_zarr_options(const struct cfg_zarr *zarr, struct store *remote,
					 int dir_fd, const struct sink_names *names)
{
	return (struct zarr_sink_options){
		.store = remote,
		.dir_fd = dir_fd,
		.names = names,
		.format = zarr->zarr3 ? 3 : 2,
		.mode = (enum zarr_mode)zarr->mode,
		.nested = zarr->nested,
		.v2_keys = zarr->v2_keys,
		.consolidated = zarr->consolidated,
		.strict_json = zarr->strict_json,
	};
}

/* writable_create_remote - create a Zarr store at an address. */
static int writable_create_remote(const struct app *setup, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	const char *path = cfg->source, *shown = cfg->shown;
	struct zarr_sink_options opts = rw_zarr_options(&cfg->zarr, NULL, -1, NULL);
	struct address a;
	int rc = address_parse(path, &a, e);

	if (rc < 0)
		return rc;
	if (a.what == ADDRESS_FILE || ending_of(a.name) == ENDING_PARQUET)
		rc = err_set(e, -EROFS,
			     "'%s': only Zarr stores can be created remotely: use a name that "
			     "ends in .zarr, .zr3 or .zr2, or has no ending",
			     shown);
	address_release(&a);
	if (rc < 0)
		return rc;
	rc = fs_store(setup, path, &opts.store, e);
	if (rc < 0)
		return rc;
	if (opts.store->unlisted)
		rc = read_only(shown, e);
	else if (cfg->view == CFG_VIEW_ZARR)
		rc = other_format(shown, e);
	else
		rc = zarr_create(shown, &opts, e);
	store_close(opts.store);
	return rc == -EEXIST
		       ? err_set(e, rc, "'%s' already exists: leave out create, or use another "
					"name",
				 path)
		       : rc;
}

int fs_rw_create(const struct app *setup, struct err *e)
{
	const char *path = setup->cfg->source;
	const struct zarr_sink_options opts = rw_zarr_options(&setup->cfg->zarr, NULL, -1, NULL);
	const enum ending ending = ending_of(path);
	struct stat st;
	int rc;

	if (setup->cfg->is_remote)
		return writable_create_remote(setup, e);
	if (lstat(path, &st) == 0)
		return err_set(e, -EEXIST,
			       "'%s' already exists: leave out create, or use another name", path);
	if (ending != ENDING_NONE && ending != ENDING_TREE && !ending_is_netcdf4(ending))
		return err_set(e, -EINVAL,
			       "'%s': cannot create a dataset with this ending: use .zarr, .zr3 "
			       "or .zr2 for a Zarr store; .nc, .nc4, .cdf, .h5, .hdf5, .he5 or "
			       "no ending for a netCDF-4 file",
			       path);
	if (ending == ENDING_TREE)
		return zarr_create(path, &opts, e);
	rc = hdf5_create(path, (uint64_t)setup->cfg->limits.open_timeout * 1000, e);
	return rc < 0 ? err_wrap(e, rc, "'%s'", path) : rc;
}
