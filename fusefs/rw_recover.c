/* rw_recover.c - what a mount left behind that died: found, carried out, told. */
#include "fusefs/rw_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/log.h"
#include "base/str.h"
#include "fusefs/remote.h"
#include "mountcfg/address.h"

static int pending(const struct fs_setup *setup, const struct rw_state *s, struct err *e)
{
	const struct fs_rw *rw = setup->rw;

	return (s->is_dir ? rw->zarr_pending : rw->hdf5_pending)(s->path, s->dir_fd, e);
}

int rw_repair(const struct fs_setup *setup, const struct rw_state *state, bool *ret_done,
	      struct err *e)
{
	const struct fs_rw *rw = setup->rw;
	int rc = pending(setup, state, e);

	*ret_done = rc > 0;
	if (rc <= 0)
		return rc;
	if (state->remote) {
		struct store *s;

		rc = fs_store(setup, state->path, &s, e);
		if (rc == 0) {
			rc = rw->far_recover(s, state->dir_fd, e);
			store_close(s);
		}
		return rc;
	}
	return (state->is_dir ? rw->zarr_recover : rw->hdf5_recover)(state->path, state->dir_fd,
								     e);
}

/* left_behind - opens the state of a dataset that nobody writes. 1: there is one; 0: there is none,
 * or it is another process's. */
static int left_behind(const struct fs_setup *setup, const char *path, struct rw_state *ret,
		       struct err *e)
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

int fs_rw_pending(const struct fs_setup *setup, const char *path, struct err *e)
{
	struct rw_state s = RW_STATE_INIT;
	int rc = setup->rw ? left_behind(setup, path, &s, e) : 0;

	if (rc <= 0)
		return rc;
	rc = pending(setup, &s, e);
	if (rc == 0 && !rw_state_bare(&s))
		rc = FS_RW_WAITS;
	rw_state_close(&s);
	return rc;
}

int rw_recover_rest(const struct fs_setup *setup, const char *path, bool nc, struct err *e)
{
	char name[NAME_BYTES];
	struct fs_want want = {.nc = nc,
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
	view->ops->close(view);
	return rc;
}

int fs_rw_recover(const struct fs_setup *setup, const char *path, struct buf *lines,
		  struct err *e)
{
	struct rw_state s = RW_STATE_INIT;
	auto_free char *shown = fs_shown(path);
	bool done, bare, nc;
	int rc = shown ? rw_state_open(setup->cfg, path, false, &s, e) : err_nomem(e);

	if (rc == -ENOENT && (address_is_remote(path) || access(path, F_OK) == 0)) {
		buf_printf(lines, "'%s': nothing to be done\n", shown);
		return 0;
	}
	if (rc < 0)
		return rc;
	rc = rw_repair(setup, &s, &done, e);
	if (rc == 0 && done)
		buf_printf(lines, "'%s': a commit that was begun was ended, or undone\n",
			   shown);
	bare = rw_state_bare(&s);
	/* of an address both views may have left something: the tree's comes first */
	nc = s.is_dir && !(s.remote && (rw_state_waits(&s) & RW_WAITS_TREE));
	if (rc == 0 && !done && bare)
		buf_printf(lines, "'%s': nothing to be done\n", shown);
	rw_state_close(&s);
	if (rc < 0 || bare)
		return rc;
	rc = rw_recover_rest(setup, path, nc, e);
	if (rc == 0 && !nc && address_is_remote(path))
		rc = fs_rw_pending(setup, path, e) > 0 ? rw_recover_rest(setup, path, true, e)
						       : 0;
	if (rc == 0 && fs_rw_pending(setup, path, NULL) > 0)
		rc = err_set(e, -EIO, "'%s': not everything that was written is in it", shown);
	if (rc == 0)
		buf_printf(lines, "'%s': what was written is in it\n", shown);
	return rc;
}

int fs_rw_mend(const struct fs_setup *setup, const char *path, bool change, struct err *e)
{
	auto_free char *shown = fs_shown(path);
	struct err other = ERR_INIT;
	struct buf lines;
	int rc = fs_rw_pending(setup, path, &other), pending = rc;

	if (rc == 0 || rc == -ENOENT)
		return 0; /* that there is no such dataset is said by who opens it */
	if (rc > 0 && change) {
		buf_init(&lines, 1 << 16);
		rc = fs_rw_recover(setup, path, &lines, &other);
		if (rc == 0 && buf_ok(&lines) && lines.len)
			log_warn("%.*s", (int)lines.len - 1, (char *)lines.data);
		buf_release(&lines);
	} else if (rc > 0) {
		rc = err_set(&other, -EIO, "a mount that died left something behind");
	}
	/* whether it is in the middle of a commit is not known: then it must not be read */
	if (pending == -EIO || err_accident(pending))
		return err_set(e, rc, "%s", other.msg);
	if (rc < 0 && pending == FS_RW_BROKEN)
		return err_set(e, rc, "'%s': run nczarrfs recover: %s", shown ? shown : "",
			       other.msg);
	if (rc < 0)
		log_warn("'%s': not everything that was written is in it: %s",
			 shown ? shown : "", other.msg);
	return 0;
}

struct recovering {
	const struct fs_setup *setup;
	const char *path;
};

/* in_json - what was done, a text a line, becomes one line for programs. */
static void in_json(const char *path, int rc, const struct err *e, struct buf *lines)
{
	auto_free char *shown = fs_shown(path);
	struct buf out;
	size_t n;

	buf_init(&out, lines->max);
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
	buf_puts(&out, "], ");
	str_put_member(&out, "error", rc < 0 ? e->msg : NULL);
	buf_puts(&out, "}\n");
	buf_clear(lines);
	if (buf_ok(&out))
		buf_put(lines, out.data, out.len);
	else
		buf_fail(lines, &out);
	buf_release(&out);
}

/* recover_one - in a process of its own. */
static int recover_one(void *arg)
{
	const struct recovering *r = arg;
	struct err e = ERR_INIT;
	struct buf lines;
	int rc;

	fs_rw_prepare(r->setup);
	rc = r->setup->prepare ? r->setup->prepare(&e) : 0;
	buf_init(&lines, 1 << 20);
	if (rc == 0)
		rc = fs_rw_recover(r->setup, r->path, &lines, &e);
	if (r->setup->cfg->json)
		in_json(r->path, rc, &e, &lines);
	if (buf_ok(&lines) && lines.len &&
	    (fwrite(lines.data, 1, lines.len, stdout) != lines.len || fflush(stdout) != 0))
		log_error("standard output: could not be written");
	buf_release(&lines);
	if (rc < 0)
		log_error("%s", e.msg);
	return rc < 0;
}

static int recover_guarded(struct recovering *r)
{
	auto_free char *shown = fs_shown(r->path);

	return fs_run_guarded(shown ? shown : "", 0, recover_one, r);
}

int fs_recover(const struct fs_setup *setup)
{
	const struct cfg *cfg = setup->cfg;
	struct recovering r = {.setup = setup, .path = cfg->source};
	int status = recover_guarded(&r);

	for (size_t i = 0; i < cfg->n_more; i++) {
		r.path = cfg->more[i];
		if (recover_guarded(&r) != 0)
			status = 1;
	}
	return status;
}
