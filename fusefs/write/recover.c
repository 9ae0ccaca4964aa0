/* SPDX-License-Identifier: BSD-3-Clause */
/* recover.c - finds and recovers what a mount that died left behind, and reports it. */
#include "fusefs/write/writable_int.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"
#include "base/core/str.h"
#include "base/observe/print.h"
#include "fusefs/mirror/view.h"
#include "fusefs/app/remote.h"
#include "hdf5view/hdf5view.h"
#include "mountcfg/address/address.h"

int rw_pending(const struct rw_state *s, struct err *e)
{
	enum hdf5_journal_state state;
	int rc;

	if (s->is_dir)
		return zarr_sink_pending(s->dir_fd, e);
	rc = hdf5_journal_status(s->path, s->dir_fd, &state, e);
	if (rc < 0)
		return rc;
	if (state == HDF5_JOURNAL_FOREIGN)
		return err_set(
			e, -ESTALE,
			"'%s' is not the file of the interrupted commit, or was changed since: "
			"that commit is lost",
			s->path);
	return state != HDF5_JOURNAL_NONE;
}

int rw_repair(const struct app *setup, const struct rw_state *state, bool *ret_done,
	      struct err *e)
{
	struct store *s = NULL;
	int rc = rw_pending(state, e);

	*ret_done = rc > 0;
	/* files that an ended commit could not remove */
	if (rc == 0 && state->is_dir &&
	    zarr_sink_recover(state->path, NULL, state->dir_fd, NULL) < 0)
		log_debug("'%s': files of a commit could not be removed", state->shown);
	if (rc <= 0)
		return rc;
	if (!state->is_dir)
		return hdf5_journal_recover(state->path, state->dir_fd, e);
	rc = state->remote ? fs_store(setup, state->path, &s, e) : 0;
	rc = rc ? rc : zarr_sink_recover(state->path, s, state->dir_fd, e);
	store_close(s);
	return rc;
}

/* write_recover_left_behind - open the state of a dataset that no process writes. 1: opened; 0:
 * there is none, or another process has it. */
static int write_recover_left_behind(const struct app *setup, const char *path,
				     struct rw_state *ret, struct err *e)
{
	struct err other = ERR_INIT;
	int rc;

	rc = rw_state_open(setup->cfg, path, false, ret, &other);
	if (rc == -ENOENT || rc == -EBUSY)
		return 0;
	if (rc < 0)
		return err_set(e, rc, "%s", other.msg);
	return 1;
}

int fs_rw_pending(const struct app *setup, const char *path, struct err *e)
{
	struct rw_state s = RW_STATE_INIT;
	int rc = write_recover_left_behind(setup, path, &s, e);

	if (rc <= 0)
		return rc;
	rc = rw_pending(&s, e);
	if (rc == 0 && !rw_state_bare(&s))
		rc = FS_RW_WAITS;
	rw_state_close(&s);
	return rc;
}

/* recover_rest - commit confirmed writes that are not in the dataset, by opening a writable view of
 * it: the file's (nc) or the Zarr store's. */
static int recover_rest(const struct app *setup, const char *path, bool nc, struct err *e)
{
	char name[NAME_BYTES];
	struct view_request want = {.nc = nc,
				    .name = name,
				    .id_limit = VIEW_ID_LIMIT,
				    .rules = setup->rules,
				    .shared = setup->shared,
				    .share = 1};
	struct view *view;
	int rc;

	name_of_file(path, name);
	rc = fs_rw_open(setup, path, &want, &view, e);
	if (rc < 0)
		return rc;
	if (view->write->finish)
		rc = view->write->finish(view, true, e);
	view_close(view);
	return rc;
}

/* write_recover_is_empty - true if no log of a state contains confirmed writes. */
static bool write_recover_is_empty(const struct rw_state *s)
{
	struct stage *stage;
	bool empty;

	if (stage_open(s->dir_fd, true, &stage, NULL) < 0)
		return false;
	empty = stage_empty(stage);
	stage_close(stage);
	return empty;
}

/* logs_left - true if there are pending writes. Files that a failed commit prepared in the state
 * directory do not count: the next commit removes them. */
static bool logs_left(const struct app *setup, const char *path)
{
	struct rw_state s = RW_STATE_INIT;
	bool left;

	if (write_recover_left_behind(setup, path, &s, NULL) <= 0)
		return false;
	left = s.is_dir ? rw_state_holds_file(&s)
			: !rw_state_bare(&s) && !write_recover_is_empty(&s);
	rw_state_close(&s);
	return left;
}

/* recover_dataset - recover a dataset, and commit all confirmed writes. lines: a report for people,
 * appended. */
static int recover_dataset(const struct app *setup, const char *path, struct buf *lines,
			   struct err *e)
{
	struct rw_state s = RW_STATE_INIT;
	auto_free char *shown = fs_shown(path);
	bool done, bare, nc;
	int rc = shown ? rw_state_open(setup->cfg, path, false, &s, e) : err_nomem(e);

	if (rc == -ENOENT && (address_is_remote(path) || access(path, F_OK) == 0)) {
		buf_printf(lines, "'%s': nothing to recover\n", shown);
		return 0;
	}
	if (rc < 0)
		return rc;
	rc = rw_repair(setup, &s, &done, e);
	if (rc == 0 && done)
		buf_printf(lines, "'%s': an interrupted commit was completed or undone\n",
			   shown);
	bare = rw_state_bare(&s);
	nc = s.is_dir;
	if (rc == 0 && !done && bare)
		buf_printf(lines, "'%s': nothing to recover\n", shown);
	rw_state_close(&s);
	if (rc < 0 || bare)
		return rc;
	rc = recover_rest(setup, path, nc, e);
	if (rc == 0 && logs_left(setup, path))
		rc = err_set(e, -EIO, "'%s': some writes could not be committed", shown);
	if (rc == 0)
		buf_printf(lines, "'%s': pending writes are committed\n", shown);
	return rc;
}

/* where_it_waits - the error of a caller that must not change the dataset. */
static int where_it_waits(const struct app *setup, const char *path, struct err *e)
{
	auto_free char *dir = NULL, *real = NULL;
	struct err other = ERR_INIT;

	if (rw_state_dir(setup->cfg, path, &dir, &real, &other) < 0)
		return err_set(e, -EIO, "%s", other.msg);
	return err_set(e, -EIO, "the rest is pending in '%s': run nczarrfs recover '%s' to "
				"commit it",
		       dir, path);
}

int fs_rw_repair(const struct app *setup, const char *path, bool change, struct err *e)
{
	auto_free char *shown = fs_shown(path);
	struct err other = ERR_INIT;
	struct buf lines;
	int rc = fs_rw_pending(setup, path, &other), pending = rc;

	if (rc == 0 || rc == -ENOENT || rc == -ELOOP || rc == -ENOTDIR || rc == -ENAMETOOLONG)
		return 0; /* there is no such dataset: opening it reports that */
	if (rc > 0 && change) {
		buf_init(&lines, 1 << 16);
		rc = recover_dataset(setup, path, &lines, &other);
		if (rc == 0 && buf_ok(&lines) && lines.len)
			log_note("%.*s", (int)lines.len - 1, (char *)lines.data);
		buf_release(&lines);
	} else if (rc > 0) {
		rc = where_it_waits(setup, path, &other);
	}
	/* it may be in the middle of a commit: then it must not be read */
	if (pending == -EIO || err_is_transient(pending))
		return err_set(e, rc, "%s", other.msg);
	if (rc < 0 && pending == FS_RW_BROKEN)
		return err_set(e, rc,
			       "'%s': a commit was interrupted: run nczarrfs recover: %s",
			       shown ? shown : "", other.msg);
	if (rc < 0)
		log_warn("'%s': some writes could not be committed: %s",
			 shown ? shown : "", other.msg);
	return 0;
}

struct recovering {
	const struct app *setup;
	const char *path;
	bool *said; /* in memory shared with the parent: the result was printed */
};

/* in_json - print the report, a line of text for each step, as one JSON object. */
static void in_json(const char *path, int rc, const struct err *e, struct buf *lines)
{
	auto_free char *shown = fs_shown(path);
	auto_buf out = buf_of(lines->max);
	size_t n;

	buf_putc(&out, '{');
	str_put_member(&out, "source", shown ? shown : "");
	buf_printf(&out, ", \"recovered\": %s, \"done\": [", rc < 0 ? "false" : "true");
	for (size_t at = 0; at < lines->len; at += n + 1) {
		const char *from = (const char *)lines->data + at;
		const char *end = memchr(from, '\n', lines->len - at);

		n = end ? (size_t)(end - from) : lines->len - at;
		buf_puts(&out, at ? ", " : "");
		str_put_json(&out, from, n);
	}
	buf_putc(&out, ']');
	str_put_member(&out, "error", rc < 0 ? e->msg : NULL);
	buf_puts(&out, "}\n");
	buf_clear(lines);
	if (buf_ok(&out))
		buf_put(lines, out.data, out.len);
	else
		buf_fail(lines, &out);
}

/* recover_one - runs in a process of its own. */
static int recover_one(void *arg)
{
	const struct recovering *r = arg;
	struct err e = ERR_INIT;
	auto_buf lines = buf_of(1 << 20);
	bool printed;
	int rc;

	fs_rw_prepare(r->setup);
	rc = r->setup->prepare ? r->setup->prepare(&e) : 0;
	rc = rc ? rc : recover_dataset(r->setup, r->path, &lines, &e);
	if (r->setup->cfg->json)
		in_json(r->path, rc, &e, &lines);
	*r->said = lines.len > 0;
	printed = !lines.len || print_part(&lines);
	if (rc < 0 && !log_said_last(e.msg))
		log_error("%s", e.msg);
	return rc < 0 || !printed;
}

/* recover_guarded - if the process dies, report that in its place. */
static bool recover_guarded(const struct app *setup, const char *path)
{
	auto_free char *shown = fs_shown(path);
	bool *said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct recovering r = {.setup = setup, .path = path, .said = said};
	struct err e = ERR_INIT;
	struct buf line;
	int status;

	if (said == MAP_FAILED) {
		log_error("not enough memory");
		return false;
	}
	status = run_in_child(shown ? shown : "", 0, recover_one, &r);
	if (status && !*said && setup->cfg->json) {
		buf_init(&line, 1 << 16);
		in_json(path, err_set(&e, -EIO, "the recovery did not finish"), &e, &line);
		(void)print_text(&line);
	}
	(void)munmap(said, sizeof(*said));
	return status == 0;
}

/* recover_path - recover a dataset, or the datasets of a directory without pending writes of its
 * own. */
static int recover_path(const struct app *setup, const char *path)
{
	struct cfg cfg = *setup->cfg;
	struct app here = *setup;

	here.cfg = &cfg;
	cfg.source = (char *)(uintptr_t)path;
	cfg.is_remote = address_is_remote(path);
	if (!cfg.is_remote && !rw_state_is_there(&cfg, path) && mirror_only(&here, NULL) > 0)
		return rw_recover_dir(setup, path, recover_guarded);
	return recover_guarded(setup, path) ? 0 : 1;
}

int fs_recover(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;
	int status = recover_path(setup, cfg->source);

	for (size_t i = 0; i < cfg->more.n; i++)
		if (recover_path(setup, cfg->more.v[i]) != 0)
			status = 1;
	return status;
}
