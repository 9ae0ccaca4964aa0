/* SPDX-License-Identifier: BSD-3-Clause */
/* sink.c - the Zarr sink: changes a directory that is a Zarr store.
 *
 * open() determines the form of new nodes; begin() maps the paths of the models to nodes of the
 * store. Operations on whole directories are here, too. */
#include "nczarr/nczarr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "nczarr/sink/sink_int.h"
#include "nczarr/store/store.h"

#define PATH_BYTES ((size_t)1 << 20)
#define ARENA_MAX ((size_t)4 << 30)
#define LONG 200
#define POLLED 1024 /* documents that one poll certainly checks */

/* ---- names ---- */

const char *zs_path_join(struct zarr_sink *s, const char *dir, const char *name, struct err *e)
{
	char key[STORE_KEY_MAX + 1];
	const char *ret;

	if (!store_key_join(dir, name, strlen(name), key)) {
		(void)err_set(e, -ERANGE, "'%.100s/%.100s': the key is longer than %d bytes",
			      dir, name, STORE_KEY_MAX);
		return NULL;
	}
	ret = arena_strdup(&s->arena, key);
	if (!ret)
		(void)err_nomem(e);
	return ret;
}

const char *zs_say(const struct dataset *ds, uint32_t array, char tmp[200])
{
	auto_buf b = buf_of(200);

	ds_array_path(ds, array, &b);
	(void)snprintf(tmp, 200, "'%.*s'", buf_ok(&b) ? (int)b.len : 0,
		       b.data ? (const char *)b.data : "");
	return tmp;
}

enum zarr_sink_kind { ARRAY, GROUP };

/* zarr_sink_named - the node of real at a path of ds, which is `was` or `now`; DS_NONE: none. */
static int zarr_sink_named(struct zarr_sink *s, const struct dataset *ds,
			   enum zarr_sink_kind kind, uint32_t ord, uint32_t *ret, struct err *e)
{
	const struct sink_names *names = s->opts.names;
	const struct dataset *real = &s->real->ds;
	uint32_t **m = s->match[ds == &s->now->ds];
	int rc = 0;

	if (names) {
		auto_buf b = buf_of(PATH_BYTES);

		if (kind == ARRAY)
			ds_array_path(ds, ord, &b);
		else
			ds_group_path(ds, ord, &b);
		buf_putc(&b, '\0');
		rc = buf_ok(&b) ? 0 : err_nomem(e);
		if (rc == 0)
			*ret = (kind == ARRAY ? names->array
					      : names->group)(names->arg, (const char *)b.data);
	} else {
		if (!m[ARRAY]) {
			m[ARRAY] = alloc_array(ds->n_arrays, sizeof(**m));
			m[GROUP] = alloc_array(ds->n_groups, sizeof(**m));
			rc = m[ARRAY] && m[GROUP]
				     ? ds_match(ds, real, m[GROUP], m[ARRAY], NULL, e)
				     : err_nomem(e);
			if (rc) {
				free(steal(&m[ARRAY]));
				free(steal(&m[GROUP]));
			}
		}
		*ret = rc == 0 ? m[kind][ord] : DS_NONE;
	}
	if (rc == 0 && *ret != DS_NONE &&
	    *ret >= (kind == ARRAY ? real->n_arrays : real->n_groups))
		rc = err_set(e, -EINVAL, "the store has no object %u", *ret);
	return rc;
}

const char *zs_real_key(struct zarr_sink *s, uint32_t group, struct err *e)
{
	auto_buf b = buf_of(STORE_KEY_MAX);
	const char *ret;

	ds_group_path(&s->real->ds, group, &b);
	ret = buf_ok(&b) ? arena_copy(&s->arena, b.data + 1, b.len - 1) : NULL;
	if (!ret)
		(void)err_nomem(e);
	return ret;
}

const char *zs_group_key(struct zarr_sink *s, uint32_t group, struct err *e)
{
	struct zs_group *g = &s->groups[group];
	uint32_t real;

	if (g->key)
		return g->key;
	if (group == 0) {
		g->key = "";
	} else if (zarr_sink_named(s, &s->now->ds, GROUP, group, &real, e) < 0) {
		return NULL;
	} else if (real == DS_NONE) {
		(void)err_set(e, -EINVAL, "group '%.*s' is not in the store", LONG,
			      s->now->ds.groups[group].name);
	} else {
		g->key = zs_real_key(s, real, e);
	}
	return g->key;
}

/* old_array - za is array `real` of the store. */
static void old_array(struct zarr_sink *s, struct zs_array *za, uint32_t real)
{
	const struct zr_array *x = &zr_of(s->real)->arrays[real];

	za->state = ZS_OLD;
	za->real = real;
	za->meta = x->meta;
	za->stored = x->stored;
	za->key = za->was_key = x->meta->key;
	za->stated = x->meta->format == 3 || s->real->ds.arrays[real].fill_defined;
}

int zs_array_of(struct zarr_sink *s, uint32_t array, struct zs_array **ret, struct err *e)
{
	char tmp[200];
	uint32_t real;
	int rc;

	*ret = &s->arrays[array];
	if ((*ret)->state != ZS_UNSEEN)
		return 0;
	rc = zarr_sink_named(s, &s->now->ds, ARRAY, array, &real, e);
	if (rc)
		return rc;
	if (real == DS_NONE)
		return err_set(e, -EINVAL, "array %s is not in the store",
			       zs_say(&s->now->ds, array, tmp));
	old_array(s, *ret, real);
	return 0;
}

bool zs_is_gone(const struct zarr_sink *s, const char *key)
{
	for (size_t i = 0; i < s->n_gone; i++)
		if (strcmp(s->gone[i], key) == 0 || store_key_below(s->gone[i], key))
			return true;
	return false;
}

int zs_above(json_t *set, const char *key, struct err *e)
{
	char dir[STORE_KEY_MAX + 1];

	memcpy(dir, key, strlen(key) + 1);
	do {
		store_key_parent(dir, dir);
		if (json_object_set_new(set, dir, json_true()) < 0)
			return err_nomem(e);
	} while (*dir);
	return 0;
}

/* ---- open ---- */

/* zarr_sink_learn - determine the conventions of the store. */
static void zarr_sink_learn(struct zarr_sink *s)
{
	const struct zr_source *z = zr_of(s->real);
	const struct dataset *ds = &s->real->ds;
	const bool nczarr = strcmp(ds->format, "NCZarr") == 0;

	s->format = strcmp(ds->format, "Zarr v3") == 0 ? 3 : 2;
	s->empty = ds->n_arrays == 0 && ds->n_groups <= 1;
	s->mode = nczarr ? ZARR_NCZARR : s->opts.mode == ZARR_NCZARR ? ZARR_PURE : s->opts.mode;
	s->keys = (struct zr_keys){.nested = s->opts.nested,
				   .lead = s->format == 3 && !s->opts.v2_keys};
	if (ds->n_arrays > 0) {
		s->keys.nested = zr_is_nested(z->arrays[0].meta);
		s->keys.lead = s->format == 3 && z->arrays[0].meta->prefixed;
	}
}

static int open_root(const char *path, struct source *real, struct store **ret, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	int rc;

	if (fd < 0 && errno == ENOTDIR)
		return err_set(e, -EROFS,
			       "'%.*s' is an archive: only directories can be written", LONG,
			       path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%.*s'", LONG, path);
	if (real && (st.st_dev != real->ds.st.st_dev || st.st_ino != real->ds.st.st_ino))
		return err_set(e, -ESTALE, "'%.*s' is no longer the store that was opened",
			       LONG, path);
	if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_sys(e, errno, "'%.*s' is not writable", LONG, path);
	rc = store_dir_open(fd, ret, e);
	fd = rc ? fd : -1;
	return rc;
}

static void zarr_sink_close(struct sink *sink)
{
	struct zarr_sink *s = zs_of(sink);

	for (size_t i = 0; i < s->n_docs; i++) {
		free(s->docs[i].key);
		json_decref(s->docs[i].v);
	}
	for (uint32_t i = 0; s->arrays && i < s->now->ds.n_arrays; i++)
		free(s->arrays[i].bits);
	zs_txn_close(&s->txn);
	store_close(s->own);
	close_fd(&s->spool); /* its content is in the store */
	json_decref(s->index);
	json_decref(s->seen);
	for (int i = 0; i < 2; i++) {
		free(s->match[i][ARRAY]);
		free(s->match[i][GROUP]);
	}
	free(s->docs);
	free(s->arrays);
	free(s->groups);
	free(s->gone);
	free(s->fresh);
	free(s->shown_arrays);
	free(s->grids);
	free(s->plans);
	free(s->hidden);
	free(s->parts);
	codec_scratch_free(s->scratch);
	buf_release(&s->elems);
	buf_release(&s->turned);
	buf_release(&s->stored);
	arena_release(&s->arena);
	free(s);
}

/* ---- begin ---- */

/* shown_tables - the model for the writers of documents. */
static int shown_tables(struct zarr_sink *s, struct err *e)
{
	const struct dataset *ds = &s->now->ds;
	size_t n = ds->n_arrays > ds->n_groups ? ds->n_arrays : ds->n_groups;

	s->shown_arrays = alloc_array(ds->n_arrays, sizeof(*s->shown_arrays));
	s->grids = alloc_array(ds->n_arrays, sizeof(*s->grids));
	s->plans = alloc_array(ds->n_arrays, sizeof(*s->plans));
	s->hidden = alloc_array(n, sizeof(*s->hidden));
	if (!s->shown_arrays || !s->grids || !s->plans || !s->hidden)
		return err_nomem(e);
	if (ds->n_arrays)
		memcpy(s->shown_arrays, ds->arrays, ds->n_arrays * sizeof(*ds->arrays));
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		zr_grid_chunks(&s->shown_arrays[i], &s->grids[i]);
		s->grids[i].keys = s->keys;
	}
	s->shown = *ds;
	s->shown.arrays = s->shown_arrays;
	s->em = (struct zr_metadata){.ds = &s->shown,
				     .plans = s->plans,
				     .hidden_groups = s->hidden,
				     .hidden_arrays = s->hidden,
				     .grids = s->grids,
				     .format = zr_format_of(s->format, true),
				     .mode = s->mode,
				     .strict_json = s->opts.strict_json};
	return 0;
}

/* zarr_sink_unchanged - whether the store is the one that was opened. One poll checks a part
 * of it. */
static int zarr_sink_unchanged(struct zarr_sink *s, struct err *e)
{
	size_t n = zr_of(s->real)->n_seen;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i <= n / POLLED; i++)
		rc = source_poll(s->real, e);
	return rc;
}

int zs_watch(struct zarr_sink *s, const char *key, struct err *e)
{
	const struct zr_source *z = zr_of(s->real);
	const json_t *i;

	if (store_moves(s->txn.store))
		return 0;
	if (!s->seen) {
		s->seen = json_object();
		for (size_t k = 0; s->seen && k < z->n_seen; k++)
			if (json_object_set_new(s->seen, z->seen[k].key,
						json_integer((json_int_t)k)) < 0)
				return err_nomem(e);
	}
	if (!s->seen)
		return err_nomem(e);
	i = json_object_get(s->seen, key);
	return i ? zs_remote_expect(&s->txn, key, z->seen[json_integer_value(i)].version, e)
		 : 0;
}

int zs_watch_array(struct zarr_sink *s, const char *key, struct err *e)
{
	const char *at = zs_path_join(s, key, s->format == 3 ? "zarr.json" : ".zarray", e);

	return at ? zs_watch(s, at, e) : -ENOMEM;
}

static int zarr_sink_begin(struct sink *sink, struct source *was, struct source *now,
			   struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	struct store_stat st;
	int rc = zarr_sink_unchanged(s, e);

	if (rc == 0) {
		rc = store_stat(zr_of(s->real)->store, ".nczarr", &st, e);
		rc = rc == -ENOENT ? 0
		     : rc ? rc /* the first layout has separate documents for all nodes */
			  : err_set(e, -EROFS,
				    "the store has the layout of netCDF-C 4.8, which "
				    "is read-only");
	}
	if (rc == 0) /* consolidated metadata */
		rc = zs_watch(s, s->format == 3 ? "zarr.json" : ".zmetadata", e);
	if (rc)
		return rc;
	s->was = was;
	s->now = now;
	s->arrays = alloc_array(now->ds.n_arrays, sizeof(*s->arrays));
	s->groups = alloc_array(now->ds.n_groups, sizeof(*s->groups));
	if (!s->arrays || !s->groups)
		return err_nomem(e);
	return shown_tables(s, e);
}

/* ---- whole directories ---- */

/* move_away - move a directory into the transaction; *ret: its number there. */
static int move_away(struct zarr_sink *s, const char *key, uint64_t *ret, struct err *e)
{
	char parent[STORE_KEY_MAX + 1];
	int rc;

	store_key_parent(key, parent);
	rc = store_movable(s->txn.store, parent, s->txn.dir, e);
	if (rc == 0) /* a directory that moves is changed itself: its ".." */
		rc = store_movable(s->txn.store, key, s->txn.dir, e);
	if (rc)
		return rc;
	if (grow_array(&s->gone, &s->c_gone, s->n_gone + 1, sizeof(*s->gone)) < 0)
		return err_nomem(e);
	*ret = s->txn.n_aways++;
	s->gone[s->n_gone++] = key;
	zs_docs_drop(s, key);
	return zs_txn_step(&s->txn, ZS_AWAY, *ret, key, e);
}

static int zarr_sink_unlist(struct zarr_sink *s, const char *key, bool array, struct err *e)
{
	char parent[STORE_KEY_MAX + 1];

	store_key_parent(key, parent);
	return zs_nc_list(s, parent, array, store_key_name(key), false, e);
}

static int root_array(const char *key, struct err *e)
{
	return key[0] ? 0
		      : err_set(e, -EOPNOTSUPP,
				"the store consists of one array: it can be changed, but not "
				"removed or renamed, and nothing can be added");
}

static int remove_node(struct zarr_sink *s, enum zarr_sink_kind kind, uint32_t ord,
		       struct err *e)
{
	const char *key;
	uint32_t real;
	uint64_t n;
	int rc = zarr_sink_named(s, &s->was->ds, kind, ord, &real, e);

	if (rc || real == DS_NONE || (kind == GROUP && real == 0))
		return rc;
	key = kind == ARRAY ? zr_of(s->real)->arrays[real].meta->key : zs_real_key(s, real, e);
	if (!key)
		return -ENOMEM;
	rc = root_array(key, e);
	rc = rc ? rc : move_away(s, key, &n, e);
	return rc ? rc : zarr_sink_unlist(s, key, kind == ARRAY, e);
}

static int zarr_sink_remove_array(struct sink *sink, uint32_t array, struct err *e)
{
	return remove_node(zs_of(sink), ARRAY, array, e);
}

static int zarr_sink_remove_group(struct sink *sink, uint32_t group, struct err *e)
{
	return remove_node(zs_of(sink), GROUP, group, e);
}

static int zarr_sink_rename_array(struct sink *sink, uint32_t was, uint32_t now, struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	const struct ds_array *a = &s->now->ds.arrays[now];
	struct zs_array *za = &s->arrays[now];
	const char *group = zs_group_key(s, a->group, e);
	uint32_t real;
	uint64_t n;
	int rc = group ? zarr_sink_named(s, &s->was->ds, ARRAY, was, &real, e) : -EIO;

	if (rc)
		return rc;
	if (real == DS_NONE)
		return err_set(e, -EINVAL, "array '%.*s' is not in the store", LONG, a->name);
	old_array(s, za, real);
	za->was = was + 1;
	rc = root_array(za->was_key, e);
	if (rc)
		return rc;
	za->key = zs_new_key(s, a->group, a->name, e);
	if (!za->key)
		return -EIO;
	rc = move_away(s, za->was_key, &n, e);
	rc = rc ? rc : zs_txn_step(&s->txn, ZS_INTO, n, za->key, e);
	rc = rc ? rc : zarr_sink_unlist(s, za->was_key, true, e);
	return rc ? rc : zs_nc_list(s, group, true, a->name, true, e);
}

/* ---- commit ---- */

static int zarr_sink_commit(struct sink *sink, int (*gate)(void *arg, struct err *e), void *arg,
			    struct err *e)
{
	struct zarr_sink *s = zs_of(sink);
	int rc = zs_check_fresh(s, e);

	rc = rc ? rc : zs_fill_absent(s, e);
	rc = rc ? rc : zs_shards_write(s, e);
	rc = rc ? rc : zs_docs_write(s, e);
	rc = rc ? rc : zarr_sink_unchanged(s, e);
	return rc ? rc : zs_txn_commit(&s->txn, gate, arg, e);
}

static const struct sink_ops zarr_sink_ops = {
	.name = "Zarr",
	.close = zarr_sink_close,
	.begin = zarr_sink_begin,
	.remove_array = zarr_sink_remove_array,
	.remove_group = zarr_sink_remove_group,
	.add_group = zs_add_group,
	.add_array = zs_add_array,
	.rename_array = zarr_sink_rename_array,
	.dims = zs_dims,
	.resize = zs_resize,
	.set_attr = zs_set_attr,
	.remove_attr = zs_remove_attr,
	.target = zs_target,
	.put = zs_put,
	.drop = zs_drop,
	.commit = zarr_sink_commit,
};

int zarr_sink_open(const char *path, struct source *real, const struct zarr_sink_options *opts,
		   struct sink **ret, struct err *e)
{
	struct store *own = NULL;
	struct zarr_sink *s;
	int rc = 0;

	if (!opts->store)
		rc = open_root(path, real, &own, e);
	else if (!opts->store->ops->put || !opts->store->ops->remove || opts->store->unlisted)
		rc = err_set(e, -EROFS, "'%.*s' is read-only", LONG, path);
	if (rc)
		return rc;
	s = alloc_array(1, sizeof(*s));
	if (!s) {
		store_close(own);
		return err_nomem(e);
	}
	s->base.ops = &zarr_sink_ops;
	s->real = real;
	s->opts = *opts;
	s->own = own;
	s->spool = -1;
	arena_init(&s->arena, ARENA_MAX);
	s->elems = s->turned = s->stored = buf_of(PTRDIFF_MAX);
	s->index = json_object();
	s->scratch = codec_scratch_new();
	zarr_sink_learn(s);
	s->txn = (struct zs_txn){.txn = -1, .sub = -1};
	rc = s->index && s->scratch
		     ? zs_txn_open(&s->txn, own ? own : opts->store, opts->dir_fd, e)
		     : err_nomem(e);
	if (rc) {
		zarr_sink_close(&s->base);
		return rc;
	}
	*ret = &s->base;
	return 0;
}

int zarr_sink_pending(int dir_fd, struct err *e)
{
	return zs_txn_pending(dir_fd, e);
}

int zarr_sink_recover(const char *path, struct store *store, int dir_fd, struct err *e)
{
	struct store *own = NULL;
	int rc = zs_txn_pending(dir_fd, e);

	if (rc > 0) /* else there is nothing to write */
		rc = store ? 0 : open_root(path, NULL, &own, e);
	rc = rc ? rc : zs_txn_recover(store ? store : own, dir_fd, e);
	store_close(own);
	return rc;
}
