/* SPDX-License-Identifier: BSD-3-Clause */
/* convert.c - `nczarrfs convert`: opens a source as a mount does, in the destination's view, and
 * copies every file of it.
 *
 * It runs in a child (run_in_child). If a mount would show a variable uncompressed, because readers
 * of the other format do not know its filters, the copy is compressed with filters that they know,
 * unless -o filter= chooses others. */
#include "fusefs/cmd/convert/convert.h"

#include <errno.h>
#include <inttypes.h>

#include <string.h>
#include <strings.h>

#include "base/core/clock.h"
#include "base/process/child.h"
#include "base/core/endings.h"
#include "base/observe/log.h"
#include "base/os/lock.h"
#include "base/core/str.h"
#include "base/observe/print.h"
#include "base/os/url.h"
#include "fusefs/cmd/check/check.h"
#include "fusefs/cmd/convert/convert_int.h"
#include "fusefs/mirror/view.h"
#include "fusefs/app/remote.h"
#include "fusefs/app/fingerprint.h"
#include "fusefs/app/workers.h"

#define NOTE_NS ((int64_t)1000000000) /* between two saves of the progress */

#define NOTES_SHOWN 20
#define PLAIN ",shuffle|deflate,1"

struct convert_run {
	const struct app *setup;
	struct convert c;
	struct app with; /* setup, with rules for variables that would be uncompressed */
	struct cfg cfg;
	struct fs_rules rules;
	char **strings;
	size_t n_strings;
	struct progress progress;
	int64_t noted;
};

/* ---- filters ---- */

/* loses - true if an array with filters would have none in the view. */
static bool loses(const struct ds_array *a, const struct plan *p)
{
	return p && p->kind == PLAN_DECODE && a->rank > 0 && a->type.size > 0 &&
	       !dt_is_vlen(&a->type) &&
	       (a->chain.n > 0 || (a->access == DS_CONVERT && a->layout == DS_CHUNKED));
}

/* convert_add_text - append the rule "<path>,shuffle|deflate,1", with the path as a pattern that
 * matches only it. */
static int convert_add_text(struct convert_run *r, uint32_t array, struct err *e)
{
	auto_buf path = buf_of((size_t)1 << 20);
	auto_buf text = buf_of((size_t)1 << 21);
	int rc = -ENOMEM;
	size_t n;

	ds_array_path(&r->c.source->ds, array, &path);
	for (size_t i = 0; i < path.len; i++) {
		if (strchr("\\&*?[],", (char)path.data[i]))
			buf_putc(&text, '\\');
		buf_putc(&text, (char)path.data[i]);
	}
	buf_puts(&text, PLAIN);
	buf_putc(&text, '\0');
	if (buf_ok(&path) && buf_ok(&text)) {
		r->strings[r->n_strings] = (char *)buf_take(&text, &n);
		rc = r->strings[r->n_strings] ? 0 : -ENOMEM;
		r->n_strings += rc == 0;
	}
	return rc ? err_nomem(e) : 0;
}

static int open_both(const struct app *setup, struct convert *c, struct err *e)
{
	int rc = fs_open_quietly(setup, &c->view, e);

	if (rc == 0)
		c->source = c->view->source;
	return rc;
}

static void close_both(struct convert *c)
{
	view_close(c->view);
	c->view = NULL;
	c->source = NULL;
}

/* keep_compressed - reopen the view with filters for the arrays that would have none. */
static int keep_compressed(struct convert_run *r, struct err *e)
{
	const struct dataset *ds = &r->c.source->ds;
	int rc = 0;

	/* a classic file has no filters */
	if (cfg_said(r->setup->cfg, "filter") || !r->c.view->ops->plan ||
	    r->setup->cfg->view == CFG_VIEW_CLASSIC)
		return 0;
	r->strings = alloc_array(ds->n_arrays, sizeof(*r->strings));
	if (!r->strings)
		return err_nomem(e);
	for (uint32_t i = 0; i < ds->n_arrays && rc == 0; i++)
		if (loses(&ds->arrays[i], r->c.view->ops->plan(r->c.view, i)))
			rc = convert_add_text(r, i, e);
	if (rc < 0 || r->n_strings == 0)
		return rc;
	r->cfg = *r->setup->cfg;
	r->cfg.rules.filters = (struct cfg_strings){r->strings, r->n_strings};
	rc = fs_rules_init(&r->cfg, &r->rules, e);
	if (rc < 0)
		return rc;
	r->rules.quants = r->setup->rules->quants;
	r->with = *r->setup;
	r->with.cfg = &r->cfg;
	r->with.rules = &r->rules;
	close_both(&r->c);
	return open_both(&r->with, &r->c, e);
}

/* ---- opening ---- */

static int open_out(struct convert *c, struct err *e)
{
	const struct cfg *cfg = c->setup->cfg;

	if (url_is(cfg->out))
		return convert_to_s3(c, &c->out, e);
	if (cfg->view != CFG_VIEW_ZARR)
		return convert_local(c, false, &c->out, e);
	return ending_of(cfg->out) == ENDING_ZIP ? convert_zip(c, &c->out, e)
						 : convert_local(c, true, &c->out, e);
}

static void print_notes(const char *const *notes, uint32_t n)
{
	for (uint32_t i = 0; i < n && i < NOTES_SHOWN; i++)
		log_warn("%s", notes[i]);
	if (n > NOTES_SHOWN)
		log_warn("... and %" PRIu32 " more; see nczarrfs info", n - NOTES_SHOWN);
}

static int convert_prepare(struct convert_run *r, struct err *e)
{
	const struct cfg *cfg = r->setup->cfg;
	struct convert *c = &r->c;
	int rc = mirror_only(r->setup, e); /* the copy's name has set the view */

	if (rc > 0)
		rc = err_set(
			e, -EISDIR,
			"'%s' is a directory, not a dataset: convert the datasets in it one by "
			"one (nczarrfs info lists them)",
			cfg->shown);
	rc = rc ? rc : convert_dest_check(r->setup, e);
	/* before threads start: the process that forks others */
	rc = rc ? rc : app_prepare(r->setup, e);
	if (rc == 0)
		rc = open_out(c, e); /* errors of the destination come before any data is read */
	rc = rc ? rc : open_both(r->setup, c, e);
	if (rc == 0)
		fs_rules_warn(r->setup->rules, cfg, &c->source->ds, NULL);
	rc = rc ? rc : convert_dest_unread(cfg, e);
	rc = rc ? rc : keep_compressed(r, e);
	if (rc < 0)
		return rc;
	print_notes(c->source->ds.notes, c->source->ds.n_notes);
	print_notes(c->view->notes, c->view->n_notes);
	if (source_fingerprint(r->setup, c->source, &c->same, NULL) < 0)
		c->same = 0; /* no earlier run to continue */
	for (const char *s = cfg->out; c->same && *s; s++)
		c->same = fingerprint_mix(c->same, (unsigned char)*s);
	for (uint32_t i = 0; i < c->source->ds.n_arrays; i++) /* an estimate of the work */
		c->all += (double)c->source->ds.arrays[i].n_chunks;
	c->n_workers = workers_threads(&cfg->limits, c->source->remote || url_is(cfg->out));
	return 0;
}

/* ---- while it runs ---- */

static void convert_tick(void *arg, uint64_t done)
{
	struct convert_run *r = arg;
	struct convert *c = &r->c;
	const bool parts = c->out->ops->one_file;
	int64_t now = clock_ns();
	struct err e = ERR_INIT;
	uint64_t files, bytes;
	double share;
	bool runs;

	(void)pthread_mutex_lock(&c->lock);
	share = c->all > 0 ? (double)done * (parts ? (double)CONVERT_PIECE : 1) / c->all : 0;
	files = c->files;
	bytes = c->bytes;
	runs = c->running > 0;
	(void)pthread_mutex_unlock(&c->lock);
	progress_show(&r->progress, share, parts ? done : files, parts ? "parts" : "files",
		      bytes);
	if (!c->out->ops->note || (now - r->noted < NOTE_NS && runs))
		return;
	r->noted = now;
	if (c->out->ops->note(c->out, done, &e) == 0)
		return;
	LOCK_SCOPE(&c->lock);
	if (c->stop.code == 0)
		c->stop = e;
}

/* worth_keeping - true if a later run may continue after this error, so that the partial copy
 * stays. */
static bool worth_keeping(int rc)
{
	return rc != -EBADMSG && rc != -EOPNOTSUPP && rc != -ERANGE && rc != -ESTALE &&
	       rc != -EEXIST;
}

static int convert_do_copy(struct convert_run *r, struct err *e)
{
	struct convert *c = &r->c;
	int rc = c->out->ops->begin(c->out, &c->skip, e);

	if (rc == 0 && c->setup->cfg->convert.verify)
		rc = check_chunks(c->setup, c->source, c->n_workers, &r->progress, e);
	if (rc < 0)
		return rc;
	progress_begin(&r->progress);
	r->noted = clock_ns();
	rc = convert_copy(c, convert_tick, r, e);
	progress_end(&r->progress);
	if (rc == 0 && source_poll(c->source, NULL) == -ESTALE)
		rc = -ESTALE;
	if (rc == -ESTALE)
		rc = err_set(e, -ESTALE, "'%s' changed while it was read: run the command again",
			     c->setup->cfg->shown);
	rc = rc ? rc : convert_dest_unread(c->setup->cfg, e);
	if (rc == 0 && c->out->ops->finish)
		rc = c->out->ops->finish(c->out, e);
	return rc;
}

static int convert_print_report(const struct convert_run *r)
{
	const struct convert *c = &r->c;
	const struct cfg *cfg = r->setup->cfg;
	auto_free char *shown = fs_shown(cfg->out); /* an address may contain secrets */
	const char *to = shown ? shown : "the copy";
	struct buf out = buf_of(1 << 20);

	if (cfg->json) {
		buf_putc(&out, '{');
		str_put_member(&out, "source", cfg->shown);
		str_put_member(&out, "destination", to);
		buf_printf(&out,
			   ", \"view\": \"%s\", \"files\": %" PRIu64 ", \"bytes\": %" PRIu64
			   ", \"resumed\": %s, \"recompressed\": %zu}\n",
			   c->view->ops->name, c->out->ops->one_file ? 1 : c->files, c->bytes,
			   c->skip ? "true" : "false", r->n_strings);
	} else {
		buf_printf(&out, "%s: ", to);
		if (!c->out->ops->one_file)
			buf_printf(&out, "%" PRIu64 " files, ", c->files);
		progress_bytes(&out, c->bytes);
		buf_puts(&out, c->skip ? " written in this run\n" : " written\n");
	}
	return print_text(&out);
}

static int convert(void *arg)
{
	struct convert_run *r = arg;
	struct convert *c = &r->c;
	struct err e = ERR_INIT;
	bool keep;
	int rc, status = 1;

	c->setup = r->setup;
	(void)pthread_mutex_init(&c->lock, NULL); /* cannot fail without attributes */
	rc = convert_prepare(r, &e);
	rc = rc ? rc : convert_do_copy(r, &e);
	keep = rc < 0 && c->source && c->same && (c->taken > 0 || c->skip > 0) &&
	       worth_keeping(rc);
	if (rc < 0)
		log_error("%s%s", e.msg,
			  keep && c->out->ops->note ? " (the same command resumes from here)"
						    : "");
	else
		status = convert_print_report(r);
	if (c->out)
		c->out->ops->close(c->out, keep);
	close_both(c);
	fs_rules_release(&r->rules);
	for (size_t i = 0; i < r->n_strings; i++)
		free(r->strings[i]);
	free(r->strings);
	return status;
}

int fs_convert(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;
	struct convert_run r = {.setup = setup};
	bool interrupted = false;
	int status = run_in_child_until(cfg->shown, 0, convert, &r, &interrupted);

	if (interrupted && !url_is(cfg->out))
		log_warn("interrupted: the same command resumes the copy; the partial copy is "
			 "next to '%s', in .NAME.nczarrfs-copy and .NAME.nczarrfs-copy.state",
			 cfg->out);
	return status;
}
