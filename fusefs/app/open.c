/* SPDX-License-Identifier: BSD-3-Clause */
/* open.c - opens the source of a setup, and its view: for a mount, for HTTP and for commands. */
#include "fusefs/app/fusefs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/observe/log.h"
#include "base/process/child.h"
#include "codecs/isolate/decoder.h"
#include "fusefs/app/concat.h"
#include "fusefs/app/remote.h"
#include "fusefs/daemon/stderr_capture.h"
#include "fusefs/mirror/view.h"
#include "fusefs/write/writable.h"
#include "translate/concat/concat.h"
#include "translate/rechunk/rechunk.h"

enum { NOTES_SHOWN = 20 };

bool fs_links_beside(const struct cfg *cfg)
{
	return !cfg->external_root && cfg->command != CFG_SERVE &&
	       !fs_has_option(cfg, "allow_other") && !fs_has_option(cfg, "allow_root");
}

void fs_source_options(const struct cfg *cfg, struct source_options *ret)
{
	*ret = (struct source_options){
		.cut_bytes = cfg->limits.default_chunk_size,
		.max_chunk_bytes = cfg->limits.max_chunk,
		.max_index_bytes = cfg->limits.index_size,
		.max_meta_bytes = cfg->limits.meta_size,
		.open_timeout_ms = (uint64_t)cfg->limits.open_timeout * 1000,
		.external_root = cfg->external_root,
		.links_beside = fs_links_beside(cfg),
		.unlimited = cfg->unlimited.v,
		.n_unlimited = cfg->unlimited.n,
		.keep_going = cfg->hide_bad,
		.whole_chunks = cfg->command == CFG_REFS,
	};
}

int app_prepare(const struct app *setup, struct err *e)
{
	int rc;

	if (!setup->prepare || child_prepared())
		return 0;
	rc = setup->prepare(e);
	if (rc == 0 && setup->cfg->sandbox_codecs)
		codec_isolate(0);
	return rc;
}

static struct view_request want_of(const struct app *setup)
{
	return (struct view_request){.name = setup->file_name,
				     .id_limit = VIEW_ID_LIMIT,
				     .rules = setup->rules,
				     .shared = setup->shared,
				     .share = 1};
}

int fs_rechunk(const struct app *setup, const struct cfg *cfg,
	       const struct source_options *opts, uint32_t share, struct source **s,
	       struct err *e)
{
	const struct rechunk_options other = {
		.rules = (const char *const *)cfg->rules.rechunk.v,
		.n_rules = cfg->rules.rechunk.n,
		.shared = setup->rechunk,
		.threads = setup->decode_threads > share ? setup->decode_threads / share : 1,
		.source = opts,
	};
	int rc;

	if (cfg->rules.rechunk.n == 0)
		return 0;
	rc = setup->rechunk ? rechunk_open(*s, &other, s, e) : err_nomem(e);
	if (rc < 0)
		source_close(steal(s));
	return rc;
}

/* open_once - open the source to be mounted, unless it is a mirror. */
static int open_once(const struct app *setup, const struct cfg *cfg, struct view **ret,
		     struct err *e)
{
	struct view_request want = want_of(setup);
	struct source_options opts;
	struct source *source = NULL;
	int rc;

	fs_source_options(cfg, &opts);
	rc = fs_source(setup, cfg->source, &opts, &source, e);
	rc = rc ? rc : fs_rechunk(setup, cfg, &opts, 1, &source, e);
	if (rc < 0)
		return rc;
	want.nc = cfg->view != CFG_VIEW_ZARR;
	if (cfg->view == CFG_VIEW_AUTO)
		want.nc = concat_format(rechunk_inner(source)) == setup->zarr &&
			  cfg->command != CFG_SERVE;
	return setup->view_open(source, cfg, &want, ret, e);
}

/* open_again - the same, also after the source changed while it is served. If one array cannot be
 * read, explain how to mount the others, provided that they can be opened. */
static int open_again(const struct app *setup, struct view **ret, struct err *e)
{
	struct cfg rest = *setup->cfg;
	struct err other = ERR_INIT;
	char text[ERR_TEXT_MAX];
	int rc = open_once(setup, setup->cfg, ret, e);

	if ((rc != -EOPNOTSUPP && rc != -EBADMSG && rc != -ERANGE) || rest.hide_bad)
		return rc;
	rest.hide_bad = true;
	if (open_once(setup, &rest, ret, &other) < 0)
		return rc;
	view_close(*ret);
	(void)snprintf(text, sizeof(text), "%s", e->msg); /* text is as long as e's message */
	return err_set(e, rc, "%s (-o unsupported=skip mounts the rest)", text);
}

/* open_writable - open a view that opens and closes sources as it needs them. */
static int open_writable(const struct app *setup, struct view **ret, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	struct view_request want = want_of(setup);
	struct stat st;

	want.nc = cfg->view == CFG_VIEW_NC;
	/* the writable view reports that an archive cannot be written */
	if (cfg->view == CFG_VIEW_AUTO)
		want.nc = cfg->is_remote || (stat(cfg->source, &st) == 0 && S_ISDIR(st.st_mode));
	want.root = cfg->write.root;
	return fs_rw_open(setup, cfg->source, &want, ret, e);
}

int fs_open(const struct app *setup, struct view **ret, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	const bool writes = cfg->write.rw && cfg->command == CFG_MOUNT;
	int rc = fs_rules_check(setup->rules, &cfg->rules, e);

	if (rc < 0)
		return cfg_place_error(cfg, e);
	if (writes && cfg->write.create)
		rc = fs_rw_create(setup, e);
	if (rc < 0)
		return rc;
	rc = mirror_wanted(setup, e);
	if (rc < 0)
		return rc;
	if (rc == 0 && cfg->view == CFG_VIEW_CLASSIC && mirror_only(setup, e) > 0)
		return err_set(e, -EISDIR,
			       "'%s' is a directory, not a dataset: view=classic shows one dataset",
			       cfg->shown);
	if (rc > 0 && cfg->write.root)
		return err_set(e, -EINVAL,
			       "-o root: only for one dataset, not for a directory of datasets");
	if (rc > 0)
		return mirror_open(setup, ret, e);
	return writes ? open_writable(setup, ret, e) : open_again(setup, ret, e);
}

bool fs_quiet(const struct cfg *cfg)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	(void)cfg;
	return false; /* the user wants the libraries' reports */
#else
	return !cfg->verbose && !cfg->debug;
#endif
}

/* say_ours - print our lines of the log that were captured along with the output of libraries. */
static void say_ours(const char *text)
{
	static const char ours[] = "nczarrfs: ";
	const char *end;

	for (; *text; text = end + (*end == '\n')) {
		end = text + strcspn(text, "\n");
		if (strncmp(text, ours, sizeof(ours) - 1) == 0 &&
		    write(STDERR_FILENO, text, (size_t)(end - text) + (*end == '\n')) < 0)
			return; /* standard error is closed */
	}
}

int fs_open_quietly(const struct app *setup, struct view **ret, struct err *e)
{
	/* the recovery of a mount that died is reported by us, and must not be dropped */
	const bool quietly = fs_quiet(setup->cfg) && !setup->cfg->write.rw;
	struct stderr_capture q;
	char text[4096];
	int rc = setup->cfg->write.rw ? 0
				: fs_rw_repair(setup, setup->cfg->source,
					       setup->cfg->command == CFG_MOUNT, e);

	/* remote access has a thread: the process that forks has to exist before it */
	if (rc == 0 && setup->cfg->is_remote)
		rc = app_prepare(setup, e);
	if (rc < 0)
		return rc;
	if (quietly)
		stderr_capture_begin(&q);
	rc = fs_open(setup, ret, e);
	if (quietly) {
		stderr_capture_end(&q, text, sizeof(text));
		say_ours(text);
	}
	return rc;
}

static void print_some(const char *const *notes, uint32_t n)
{
	uint32_t shown = n < NOTES_SHOWN ? n : NOTES_SHOWN;

	for (uint32_t i = 0; i < shown; i++)
		log_note("%s", notes[i]);
	if (n > shown)
		log_note("... and %u more notes: see nczarrfs info", n - shown);
}

void fs_print_notes(const struct epoch *ep)
{
	const struct source *s = ep->view->source;

	if (s)
		print_some(s->ds.notes, s->ds.n_notes);
	print_some(ep->view->notes, ep->view->n_notes);
}

/* fs_open_epoch - view_open_fn of a struct fs. */
static int fs_open_epoch(void *arg, struct view **ret, struct err *e)
{
	const struct fs *fs = arg;
	int rc;

	/* All threads share standard error: it is not redirected once they run. A Zarr store that
	 * lacks its metadata for a moment is not a directory to be mirrored. */
	if (fs->live)
		return open_again(fs->setup, ret, e);
	rc = fs_open_quietly(fs->setup, ret, e);
	if (rc == 0 && (*ret)->source)
		fs_rules_warn(fs->setup->rules, fs->setup->cfg, &(*ret)->source->ds, NULL);
	return rc;
}

int fs_open_served(struct fs *fs, const struct app *setup, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	int rc;

	fs_rw_prepare(setup);
	rc = app_prepare(setup, e);
	fs->setup = setup;
	if (rc == 0 && cfg->concat.dim && !(fs->folder = concat_folder(cfg->source)))
		rc = err_nomem(e);
	if (rc == 0)
		rc = epochs_new(fs->folder ? fs->folder : cfg->shown, fs_open_epoch, fs, &fs->live,
				e);
	if (rc < 0)
		return rc;
	if (fs->folder)
		epochs_polled(fs->live);
	if (cfg->is_remote)
		epochs_remote(fs->live, cfg->remote.revalidate);
	fs->path = cfg->shown;
	fs->remote = cfg->is_remote;
	fs->follows = epochs_first(fs->live)->view->follows;
	/* each dataset of a mirror can be read in other chunks; a change is never cancelled */
	fs->cancels = cfg->is_remote || cfg->rules.rechunk.n > 0 || (fs->follows && !cfg->write.rw);
	return 0;
}

void fs_end_signals(sigset_t *set)
{
	(void)sigemptyset(set);
	(void)sigaddset(set, SIGTERM);
	(void)sigaddset(set, SIGINT);
	(void)sigaddset(set, SIGHUP);
}
