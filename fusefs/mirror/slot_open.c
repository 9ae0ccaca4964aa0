/* SPDX-License-Identifier: BSD-3-Clause */
/* slot_open.c - opens a dataset of a mirrored directory: for writing if possible, otherwise for
 * reading. */
#include <errno.h>
#include <string.h>

#include "base/observe/log.h"
#include "fusefs/mirror/slots_int.h"
#include "fusefs/write/writable.h"
#include "translate/model/chunk_rule.h"

/* For a directory the inode is enough: its contents are checked while it is open. */
bool slot_same(const struct slot *s, const struct stat *st)
{
	const struct stat *own = &s->st;

	if (st->st_dev != own->st_dev || st->st_ino != own->st_ino ||
	    (st->st_mode & S_IFMT) != (own->st_mode & S_IFMT))
		return false;
	return S_ISDIR(st->st_mode) || s->written ||
	       (st->st_size == own->st_size && st->st_mtim.tv_sec == own->st_mtim.tv_sec &&
		st->st_mtim.tv_nsec == own->st_mtim.tv_nsec);
}

int slot_stale(const char *path, struct err *e)
{
	return err_set(e, -ESTALE, "'%s' changed: open the path again", path);
}

/* slot_open_shape - what the name of a view asks for, in place of what all views of the mount have.
 * rules: the one rule, borrowed by cfg. */
static void slot_open_shape(struct cfg *cfg, char **rules)
{
	const bool classic = strcmp(*rules, NAME_CLASSIC) == 0;

	cfg->view = classic ? CFG_VIEW_CLASSIC : cfg->view;
	cfg->rules.rechunk.v = rules;
	cfg->rules.rechunk.n = classic ? 0 : 1;
}

/* slot_open_has_dims - reject a rule about a dimension that there is not: the name is misspelt. */
static int slot_open_has_dims(const struct slot *s, const char *rule, const struct dataset *ds,
			      struct err *e)
{
	size_t len;
	const char *name = chunk_rule_unknown(rule, ds, &len);

	return name ? err_set(e, -EINVAL, "'%s': no dimension '%.*s' in '%s'", s->name,
			      (int)u64_min(len, NAME_BYTES), name, s->path)
		    : 0;
}

/* slot_open_source - call it without the lock; uses constants of the slot. */
static int slot_open_source(const struct mirror *m, const struct slot *s, const struct cfg *cfg,
			    struct source **ret, struct err *e)
{
	const struct app *setup = m->setup;
	struct source_options opts;
	struct source *source;
	auto_free char *path = path_join(cfg->source, s->path);
	int rc;

	if (!path)
		return err_nomem(e);
	fs_source_options(cfg, &opts);
	rc = fs_rw_repair(setup, path, true, e);
	rc = rc ? rc : source_open(setup->formats, setup->n_formats, path, &opts, &source, e);
	rc = rc ? rc : fs_rechunk(setup, cfg, &opts, FS_MIRROR_SHARE, &source, e);
	if (rc)
		return rc;
	if (cfg->rules.rechunk.n && name_is_shaped(s->kind))
		rc = slot_open_has_dims(s, cfg->rules.rechunk.v[0], &source->ds, e);
	else
		fs_rules_warn(setup->rules, setup->cfg, &source->ds, path);
	/* compared by inode, in case the path was replaced by another file meanwhile */
	if (!rc && !slot_same(s, &source->ds.st))
		rc = slot_stale(s->path, e);
	if (rc)
		source_close(source);
	else
		*ret = source;
	return rc;
}

/* slot_open_may_write - true if a slot's converted view can be written, judging by its kind. */
static bool slot_open_may_write(const struct mirror *m, const struct slot *s)
{
	return m->base.write &&
	       (S_ISDIR(s->st.st_mode) ? s->kind == NAME_FILE : s->kind == NAME_TREE);
}

/* slot_open_writable - call it without the lock. Returns 1 if it can only be read. */
static int slot_open_writable(struct mirror *m, const struct slot *s,
			      const struct view_request *want, struct view **ret, struct err *e)
{
	auto_free char *path = path_join(m->setup->cfg->source, s->path);
	const struct source_ops *of;
	struct stat st;
	int rc;

	if (!path)
		return err_nomem(e);
	if (S_ISREG(s->st.st_mode)) {
		rc = source_bidder(m->setup->formats, m->setup->n_formats, path, &of);
		if (rc < 0)
			return err_sys(e, -rc, "'%s'", s->path);
		if (of != m->setup->hdf5)
			return 1;
	}
	/* a previous opening may hold the lock while it is being closed */
	(void)pthread_mutex_lock(&m->lock);
	while (slots_closing(m, s->path, false))
		(void)pthread_cond_wait(&m->moved, &m->lock);
	(void)pthread_mutex_unlock(&m->lock);
	rc = fs_rw_open(m->setup, path, want, ret, e);
	if (rc == -EROFS || rc == -EACCES || rc == -EPERM || rc == -EBUSY) {
		log_warn("%s: it is read-only in this mount", e ? e->msg : s->path);
		return 1;
	}
	if (rc < 0)
		return rc;
	return stat(path, &st) == 0 && slot_same(s, &st) ? 0 : slot_stale(s->path, e);
}

int open_dataset(struct mirror *m, const struct slot *s, struct source *source,
		 struct view **ret, struct err *e)
{
	const struct app *setup = m->setup;
	struct cfg cfg = *setup->cfg; /* borrows its strings */
	char plain[NAME_BYTES], rule[NAME_BYTES], *rules = rule;
	const struct view_request want = {
		.nc = !name_is_tree(s->kind),
		.name = s->name,
		.id_limit = INNER_LIMIT,
		.rules = setup->rules,
		.shared = setup->shared,
		.share = FS_MIRROR_SHARE,
	};
	int rc = slot_open_may_write(m, s) && !source ? slot_open_writable(m, s, &want, ret, e)
						       : 1;

	if (rc <= 0)
		return rc;
	if (name_shaped(s->name, plain, rule) == s->kind)
		slot_open_shape(&cfg, &rules);
	if (source && source_poll(source, NULL) == -ESTALE) {
		source_close(source);
		return slot_stale(s->path, e);
	}
	rc = source ? 0 : slot_open_source(m, s, &cfg, &source, e);
	rc = rc ? rc : setup->view_open(source, &cfg, &want, ret, e);
	if (rc)
		*ret = NULL;
	return rc;
}
