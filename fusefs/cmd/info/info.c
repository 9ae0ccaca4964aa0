/* SPDX-License-Identifier: BSD-3-Clause */
/* info.c - `nczarrfs info`: a summary of a source, its header, and the view that a mount would
 * show.
 *
 * The report is composed in memory in a child (run_in_child) and written at its end, so that a
 * crash on a damaged file leaves one line and nothing else. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "base/observe/log.h"
#include "base/observe/print.h"
#include "fusefs/cmd/commands.h"
#include "fusefs/cmd/info/info_int.h"

enum { NAMES_GUESSED = 4096 }; /* variables that are considered for a suggestion */

const struct plan *info_plan(struct view *v, uint32_t array)
{
	return v->ops->plan ? v->ops->plan(v, array) : NULL;
}

int info_zarr_version(const struct cfg *cfg, const struct view *v)
{
	return cfg->zarr.zarr3 && strcmp(v->ops->name, "zarr") == 0 ? 3 : 2;
}

void info_path(struct buf *out, const struct dataset *ds, uint32_t ordinal,
	       void (*fn)(const struct dataset *, uint32_t, struct buf *))
{
	auto_buf path = buf_of(1 << 20);

	fn(ds, ordinal, &path);
	buf_putc(&path, '\0');
	if (buf_ok(&path))
		str_put_plain(out, (const char *)path.data);
	else
		buf_fail(out, &path);
}

/* no_variable - report an unknown name, with a suggestion if there is one. paths: all names, each
 * with its NUL. */
static int no_variable(const struct cfg *cfg, const struct buf *paths, struct err *e)
{
	const char **names = alloc_array(NAMES_GUESSED, sizeof(*names)), *near = NULL;
	const bool file = cfg->info.variable[0] == '/';
	size_t n = 0;

	for (size_t at = 0; names && at < paths->len && n < NAMES_GUESSED; n++) {
		names[n] = (const char *)paths->data + at + !file;
		at += strlen((const char *)paths->data + at) + 1;
	}
	if (n)
		near = cfg_nearest(cfg->info.variable, names, n);
	if (near)
		(void)err_set(e, -ENOENT, "no variable '%s' in '%s': did you mean '%s'?",
			      cfg->info.variable, cfg->shown, near);
	else
		(void)err_set(e, -ENOENT, "no variable '%s' in '%s'%s",
			      cfg->info.variable, cfg->shown,
			      file ? ", and no such file" : "");
	free(names);
	return -ENOENT;
}

/* find_variable - find the array that --variable names, with or without a leading '/'. */
static int find_variable(const struct cfg *cfg, const struct dataset *ds, uint32_t *ret,
			 struct err *e)
{
	const char *want = cfg->info.variable + (cfg->info.variable[0] == '/');
	auto_buf paths = buf_of((size_t)1 << 28);
	int rc = -ENOENT;

	for (uint32_t i = 0; i < ds->n_arrays && rc < 0; i++) {
		const size_t from = paths.len;

		ds_array_path(ds, i, &paths);
		buf_putc(&paths, '\0');
		if (!buf_ok(&paths))
			break;
		if (strcmp((const char *)paths.data + from + 1, want) == 0) {
			*ret = i;
			rc = 0;
		}
	}
	if (rc < 0)
		rc = buf_ok(&paths) ? no_variable(cfg, &paths, e)
				    : buf_full(&paths, e, -ERANGE, "too many variables");
	return rc;
}

static void text_warnings(struct buf *out, struct view *v)
{
	const struct dataset *ds = &v->source->ds;

	if (ds->n_notes || v->n_notes)
		buf_puts(out, "\nwarnings\n");
	for (uint32_t i = 0; i < ds->n_notes + v->n_notes; i++) {
		buf_puts(out, "    ");
		str_put_plain(out, i < ds->n_notes ? ds->notes[i] : v->notes[i - ds->n_notes]);
		buf_putc(out, '\n');
	}
}

static void text_report(struct buf *out, const struct app *setup, struct view *v)
{
	const struct cfg *cfg = setup->cfg;
	const struct dataset *ds = &v->source->ds;
	char name[NAME_BYTES];
	char *end;

	(void)snprintf(name, sizeof(name), "%s", setup->file_name);
	end = strrchr(name, '.');
	if (end)
		*end = '\0';
	info_summary(out, setup, v);
	buf_putc(out, '\n');
	info_header(out, v, name);
	for (uint32_t i = 0; i < ds->n_arrays && cfg->verbose && buf_ok(out); i++) {
		buf_putc(out, '\n');
		info_path(out, ds, i, ds_array_path);
		buf_putc(out, '\n');
		info_details(out, v, i, info_zarr_version(cfg, v));
	}
	text_warnings(out, v);
}

/* text_variable - the report about one variable. */
static void text_variable(struct buf *out, const struct cfg *cfg, struct view *v, uint32_t only)
{
	info_label(out, "source");
	str_put_plain(out, cfg->shown);
	buf_putc(out, '\n');
	info_label(out, "variable");
	info_path(out, &v->source->ds, only, ds_array_path);
	buf_puts(out, "\n\n");
	info_header_array(out, v, only, 0);
	buf_putc(out, '\n');
	info_details(out, v, only, info_zarr_version(cfg, v));
}

int info_report(struct buf *out, const struct app *setup, struct view *v, struct err *e)
{
	const struct cfg *cfg = setup->cfg;
	uint32_t only = DS_NONE;
	int rc = 0;

	if (!v->source && cfg->info.variable)
		return err_set(e, -EISDIR,
			       "'%s' is a directory, not a dataset: name a dataset in it",
			       cfg->shown);
	if (!v->source)
		return info_folder(out, cfg, v, e);
	if (cfg->info.variable)
		rc = find_variable(cfg, &v->source->ds, &only, e);
	if (rc < 0)
		return rc;
	if (cfg->json)
		info_json(out, setup, v, only);
	else if (cfg->info.variable)
		text_variable(out, cfg, v, only);
	else
		text_report(out, setup, v);
	return 0;
}

static int info(void *arg)
{
	const struct app *setup = arg;
	struct view *view = NULL;
	struct err e = ERR_INIT;
	auto_buf out = buf_of((size_t)1 << 30);
	bool ok = false;

	if (fs_open_quietly(setup, &view, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	if (view->source)
		fs_rules_warn(setup->rules, setup->cfg, &view->source->ds, NULL);
	if (info_report(&out, setup, view, &e) < 0)
		log_error("%s", e.msg);
	else if (!buf_ok(&out))
		log_error("info: the report is too long, or there is not enough memory");
	else
		ok = print_part(&out);
	view_close(view);
	return ok ? 0 : 1;
}

int fs_info(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;

	if (cfg->more.n)
		return each_source(setup, "info");
	/* only read by info */
	return run_in_child(cfg->shown, cfg->limits.open_timeout, info, (void *)(uintptr_t)setup);
}
