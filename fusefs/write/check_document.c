/* SPDX-License-Identifier: BSD-3-Clause */
/* check_document.c - checks whether a metadata file that was written can be part of a netCDF-4
 * file. It is checked alone, in a store that contains only the groups above it: the rest of its
 * array or group may be written later. */
#include "fusefs/write/chunk_set.h"
#include "fusefs/write/writable_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codecs/spec/spec.h"
#include "hdf5view/hdf5view.h"
#include "translate/plan/plan.h"

#define ARRAY_DOC ".zarray"
#define DEPTH_MAX 64 /* nesting limit of the walk */
#define GROUP_V2 "{\"zarr_format\": 2}"
#define GROUP_V3 "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}}"

/* ---- a store of few metadata files ---- */

struct few {
	struct store base;
	const char *key; /* of the metadata file; its last component is name */
	const char *name;
	const char *group_name; /* file name of group metadata in the directories above */
	const char *group;
	bool own_group; /* its directory has group metadata, too */
	struct buf doc;
	struct buf array; /* attributes: the array's .zarray; empty: they belong to a group */
};

static struct few *doc_store_of(struct store *s)
{
	return CONTAINER_OF(s, struct few, base);
}

static void doc_store_close(struct store *s NZ_UNUSED)
{
}

/* check_document_is_dir - true if a key is the root or a directory above the metadata file. */
static bool check_document_is_dir(const struct few *f, const char *key, size_t len)
{
	return len == 0 || (strncmp(f->key, key, len) == 0 && f->key[len] == '/');
}

/* check_document_object - get the contents of a key. false: it does not exist. */
static bool check_document_object(const struct few *f, const char *key, const void **ret,
				  size_t *ret_len)
{
	const char *name = store_key_name(key);
	size_t dir = store_key_parent_len(key);
	size_t own = f->name > f->key ? (size_t)(f->name - f->key - 1) : 0;

	if (strcmp(key, f->key) == 0) {
		*ret = f->doc.data;
		*ret_len = f->doc.len;
		return true;
	}
	if (f->array.len && dir == own && check_document_is_dir(f, key, dir) &&
	    strcmp(name, ARRAY_DOC) == 0) {
		*ret = f->array.data;
		*ret_len = f->array.len;
		return true;
	}
	if (strcmp(name, f->group_name) != 0 || !check_document_is_dir(f, key, dir) ||
	    (dir == own && !f->own_group))
		return false;
	*ret = f->group;
	*ret_len = strlen(f->group);
	return true;
}

static int doc_store_stat(struct store *s, const char *key, struct store_stat *ret,
			  struct err *e)
{
	const struct few *f = doc_store_of(s);
	const void *p;
	size_t len;

	*ret = (struct store_stat){.version = 1};
	if (check_document_object(f, key, &p, &len))
		ret->size = len;
	else if (check_document_is_dir(f, key, strlen(key)))
		ret->is_dir = true;
	else
		return err_set(e, -ENOENT, "no '%s'", key);
	return 0;
}

static int doc_store_list(struct store *s, const char *key, bool want_stat NZ_UNUSED,
			  store_emit *emit, void *arg, struct err *e)
{
	const struct few *f = doc_store_of(s);
	const char *const names[] = {f->group_name, ARRAY_DOC, f->name};
	const size_t len = strlen(key);
	struct store_stat st = {.version = 1};
	const char *next = len ? f->key + len + 1 : f->key, *end;
	char part[256], path[STORE_KEY_MAX + 16];
	const void *p;
	size_t n;

	if (!check_document_is_dir(f, key, len))
		return err_set(e, -ENOENT, "no '%s'", key);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (i == 2 && (strcmp(f->name, names[0]) == 0 || strcmp(f->name, names[1]) == 0))
			continue; /* it was emitted */
		(void)snprintf(path, sizeof(path), "%s%s%s", key, len ? "/" : "", names[i]);
		if (!check_document_object(f, path, &p, &n))
			continue;
		st.size = n;
		if (!emit(arg, names[i], false, &st))
			return 0;
	}
	end = strchr(next, '/');
	if (!end || end - next >= (ptrdiff_t)sizeof(part))
		return 0;
	memcpy(part, next, (size_t)(end - next));
	part[end - next] = '\0';
	st = (struct store_stat){.is_dir = true, .version = 1};
	(void)emit(arg, part, true, &st); /* the last entry */
	return 0;
}

static int doc_store_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	const void *p;
	size_t n;
	int rc;

	if (!check_document_object(doc_store_of(s), key, &p, &n))
		return err_set(e, -ENOENT, "no '%s'", key);
	rc = store_io_size(io, key, n, e);
	if (rc == 0 && io->len > 0)
		memcpy(io->to, (const uint8_t *)p + io->off, io->len);
	io->version = 1;
	return rc;
}

static int doc_store_check(struct store *s NZ_UNUSED, struct err *e NZ_UNUSED)
{
	return 0;
}

static const struct store_ops doc_store_ops = {
	.name = "document",
	.close = doc_store_close,
	.stat = doc_store_stat,
	.list = doc_store_list,
	.read = doc_store_read,
	.check = doc_store_check,
};

/* document_check - the check of one metadata file. */
struct document_check {
	const struct app *setup;
	const struct tree_change *change;
	int dir_fd;
	struct cfg_zarr zarr; /* of commit_form */
	struct few few;
};

/* ---- an array's metadata ---- */

/* same_files - check that the mount, once the array is committed, shows it with the same chunk
 * keys. The writer continues to use its own. */
static int same_files(const struct document_check *c, struct source *s, struct err *e)
{
	const struct few *f = &c->few;
	const struct ds_array *a = &s->ds.arrays[0];
	struct plan_layout layout;

	if (a->convert && strstr(a->convert, "C order") && a->rank > 1)
		return err_set(
			e, -EOPNOTSUPP,
			"'%.200s': netCDF has only the element order 'C': write it with order "
			"'C'",
			f->key);
	zarr_source_layout(s, 0, &layout);
	if (layout.strange)
		return err_set(e, -EOPNOTSUPP,
			       "'%.200s': a netCDF-4 file cannot keep %s: write it without",
			       f->key, layout.strange);
	return 0;
}

/* no_equivalent - the error of an array with filters that HDF5 does not have; names them. */
static int no_equivalent(const struct few *f, const struct codec_chain *chain, struct err *e)
{
	char tmp[64], names[200] = "";
	size_t n = 0;

	for (uint32_t i = 0; i < chain->n && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%.60s", i ? ", " : "",
				      codec_name(&chain->specs[i], tmp, sizeof(tmp)));
	return err_set(e, -EOPNOTSUPP,
		       "'%.200s': HDF5 has no equivalent of its filters (%s): write it without "
		       "them",
		       f->key, names);
}

/* same_chain - check that the mount can show the array with the writer's filters even if the file
 * stores it with others, because the writer continues to use its own. */
static int same_chain(const struct few *f, const struct ds_array *a, struct err *e)
{
	struct codec_chain back = {0};
	struct codec_array as;
	struct arena arena;
	auto_buf text = buf_of(1 << 16);
	bool same;
	int rc = 0;

	if (a->chain.n == 0 || a->rank == 0 || dt_is_vlen(&a->type))
		return 0;
	arena_init(&arena, 1 << 16);
	codec_spec_print(&a->chain, &text);
	plan_elements(a, &as);
	same = buf_ok(&text) &&
	       codec_spec_parse(&arena, (const char *)text.data, text.len, &back, NULL) == 0 &&
	       codec_chain_prepare(&arena, &back, &as, &back, NULL) == 0;
	if (!same && (text.starved || arena.starved))
		rc = err_nomem(e);
	else if (!same)
		rc = no_equivalent(f, &a->chain, e);
	arena_release(&arena);
	return rc;
}

static int check_source(const struct document_check *c, struct source *s, struct err *e)
{
	const struct dataset *ds = &s->ds;
	const struct few *f = &c->few;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < ds->n_arrays; i++) {
		if (ds->arrays[i].unreadable)
			rc = err_set(e, -EOPNOTSUPP, "'%.200s': %s", f->key,
				     ds->arrays[i].unreadable);
		else
			rc = same_files(c, s, e);
		rc = rc ? rc : same_chain(f, &ds->arrays[i], e);
	}
	return rc ? rc : hdf5_sink_holds(ds, e);
}

/* ---- the check ---- */

/* looked_at - true if a metadata file has to be checked; sets up the store around it. */
static bool looked_at(struct few *f)
{
	bool v3 = strcmp(f->name, "zarr.json") == 0;

	f->group_name = v3 ? "zarr.json" : ".zgroup";
	f->group = v3 ? GROUP_V3 : GROUP_V2;
	f->own_group = strcmp(f->name, ".zattrs") == 0;
	return v3 || f->own_group || strcmp(f->name, ".zarray") == 0 ||
	       strcmp(f->name, ".zgroup") == 0;
}

/* check_document_walk - searches for metadata files below a directory. */
struct check_document_walk {
	const struct document_check *c;
	const char *dir;
	uint32_t depth;
	int rc; /* 0: none found yet */
};

static int others(const struct document_check *c, const char *dir, uint32_t depth);

/* check_document_changes - true if a key gets or loses its metadata with the change. */
static bool check_document_changes(const struct document_check *c, const char *key)
{
	const char *from = c->change->from;

	return strcmp(key, c->few.key) == 0 || (from && strcmp(key, from) == 0);
}

static bool walk_entry(void *arg, const char *name, bool is_dir,
		       const struct store_stat *st NZ_UNUSED)
{
	struct check_document_walk *w = arg;
	char key[STORE_KEY_MAX + 1];
	int n = snprintf(key, sizeof(key), "%s%s%s", w->dir, *w->dir ? "/" : "", name);

	if (n < 0 || (size_t)n >= sizeof(key))
		return true;
	if (is_dir)
		w->rc = others(w->c, key, w->depth + 1);
	else if (zarr_doc_key(key) && !check_document_changes(w->c, key))
		w->rc = -EEXIST;
	return w->rc == 0;
}

/* others - -EEXIST: there is another metadata file below a directory; 0: there is none. */
static int others(const struct document_check *c, const char *dir, uint32_t depth)
{
	struct check_document_walk w = {.c = c, .dir = dir, .depth = depth};
	int rc = -EEXIST;

	if (depth < DEPTH_MAX)
		rc = store_list(c->change->tree, dir, false, walk_entry, &w, NULL);
	return rc && rc != -ENOENT ? rc : w.rc;
}

/* check_document_same_format - check that a metadata file has the mount's Zarr format. The first
 * metadata file decides that format. */
static int check_document_same_format(struct document_check *c, struct err *e)
{
	bool v3 = strcmp(c->few.name, "zarr.json") == 0;
	const struct cfg *cfg = c->setup->cfg;
	int rc;

	if (v3 == c->zarr.zarr3)
		return 0;
	if (cfg_said(cfg, "zarr_format") || cfg->zarr.shard_size > 0 ||
	    cfg->zarr.mode == CFG_MODE_NCZARR || cfg_said(cfg, "chunk_key_encoding") ||
	    others(c, "", 0) != 0)
		return err_set(
			e, -EOPNOTSUPP,
			"'%.200s': this mount shows Zarr v%d: use -o zarr_format=%d to write "
			"that version",
			c->few.key, c->zarr.zarr3 ? 3 : 2, c->zarr.zarr3 ? 2 : 3);
	rc = commit_form_note(c->dir_fd, v3 ? 3 : 2, e);
	return rc ? rc : commit_form(cfg, c->dir_fd, &c->zarr, e);
}

/* check_document_find_array - attributes are checked together with their array, if its metadata
 * exists already. */
static int check_document_find_array(struct document_check *c, struct err *e)
{
	struct few *f = &c->few;
	auto_buf key = buf_of(STORE_KEY_MAX + sizeof(ARRAY_DOC));
	int rc;

	if (strcmp(f->name, ".zattrs") != 0)
		return 0;
	buf_put(&key, f->key, (size_t)(f->name - f->key));
	buf_puts(&key, ARRAY_DOC);
	buf_putc(&key, '\0');
	rc = buf_ok(&key) && !check_document_changes(c, (const char *)key.data)
		     ? store_get(c->change->tree, (const char *)key.data, &f->array, NULL, e)
		     : -ENOENT;
	f->own_group = rc != 0;
	if (rc)
		buf_clear(&f->array);
	return rc == -ENOENT ? 0 : rc;
}

/* check_with_array - check attributes with their array: the dimension names must fit its axes, and
 * `_FillValue` must be one of its values. The array itself was checked when it was written, or
 * comes from the file, so that nothing else in it is a reason to reject the attributes. */
static int check_with_array(struct source *s, struct err *e)
{
	struct ds_array *a = s->ds.n_arrays == 1 ? &s->ds.arrays[0] : NULL;
	const struct ds_attr *fill =
		a ? ds_attr_find(a->attrs, a->n_attrs, "_FillValue") : NULL;
	struct ds_array one;
	struct dataset ds = s->ds;
	int rc;

	if (!fill)
		return 0;
	one = *a;
	one.attrs = (struct ds_attr *)(uintptr_t)fill;
	one.n_attrs = 1;
	ds.arrays = &one;
	rc = hdf5_sink_holds(&ds, e);
	return rc == -EOPNOTSUPP ? -EINVAL : rc;
}

static int open_doc_store(struct document_check *c, struct source **ret, struct err *e)
{
	struct source_options opts;
	int rc;

	fs_source_options(c->setup->cfg, &opts);
	opts.keep_going = false;
	rc = zarr_store_open(&c->few.base, "a document", &opts, ret, e);
	/* the new attributes are wrong, not the stored array */
	return rc == -EBADMSG ? -EINVAL : rc;
}

static int check_document(struct document_check *c, struct err *e)
{
	struct source *s = NULL;
	int rc = check_document_same_format(c, e);

	rc = rc ? rc : c->change->content(c->change, &c->few.doc, e);
	rc = rc ? rc : check_document_find_array(c, e);
	if (rc == 0 && c->few.array.len) {
		rc = open_doc_store(c, &s, e);
		rc = rc ? rc : check_with_array(s, e);
		source_close(s);
		s = NULL;
		buf_clear(&c->few.array); /* and then as the attributes of a group */
		c->few.own_group = true;
		rc = rc == -EOPNOTSUPP ? 0 : rc;
	}
	rc = rc ? rc : open_doc_store(c, &s, e);
	if (rc == 0 && c->few.key == c->few.name && s->ds.n_arrays > 0)
		rc = err_set(e, -EOPNOTSUPP,
			     "the root of a netCDF-4 file is a group: write the array below a "
			     "name, such as 'data'");
	rc = rc ? rc : check_source(c, s, e);
	source_close(s);
	return rc;
}

int commit_tree_check(void *arg, const struct tree_change *change, struct err *e)
{
	const struct rw *rw = arg;
	const struct cfg *cfg = rw->setup->cfg;
	struct document_check c = {
		.setup = rw->setup, .change = change, .dir_fd = rw->state.dir_fd};
	int rc;

	c.few = (struct few){.base.ops = &doc_store_ops,
			     .key = change->key,
			     .name = store_key_name(change->key)};
	if (!looked_at(&c.few))
		return 0;
	rc = commit_form(cfg, c.dir_fd, &c.zarr, e);
	if (rc < 0)
		return rc;
	buf_init(&c.few.doc, cfg->limits.meta_size);
	buf_init(&c.few.array, cfg->limits.meta_size);
	rc = check_document(&c, e);
	buf_release(&c.few.array);
	buf_release(&c.few.doc);
	if (e && rc < 0)
		e->code = rc;
	return rc;
}

/* ---- an array before and after a commit ---- */

/* open_doc - open a source from an array's metadata alone. NULL: it cannot be read. */
static struct source *open_doc(struct document_check *c, const char *key, const uint8_t *p,
			       size_t n)
{
	struct source *s = NULL;

	c->few = (struct few){
		.base.ops = &doc_store_ops, .key = key, .name = store_key_name(key)};
	(void)looked_at(&c->few);
	buf_init(&c->few.doc, n);
	buf_put(&c->few.doc, p, n);
	if (!buf_ok(&c->few.doc) || open_doc_store(c, &s, NULL) < 0)
		s = NULL;
	buf_release(&c->few.doc);
	return s;
}

/* same_bytes - true if the same bytes decode to the same elements of a chunk with both metadata
 * files. */
static bool same_bytes(struct source *s, struct source *r)
{
	const struct ds_array *a = s->ds.arrays, *b = r->ds.arrays;
	struct plan_layout x, y;
	auto_buf p = buf_of(1 << 16);
	auto_buf q = buf_of(1 << 16);
	bool same;

	if (s->ds.n_arrays != 1 || r->ds.n_arrays != 1 || a->rank != b->rank ||
	    dt_is_vlen(&a->type) || dt_is_vlen(&b->type) || a->type.size != b->type.size ||
	    a->type.big_endian != b->type.big_endian)
		return false;
	for (uint32_t d = 0; d < a->rank; d++)
		if (a->chunk[d] != b->chunk[d])
			return false;
	zarr_source_layout(s, 0, &x);
	zarr_source_layout(r, 0, &y); /* the chunk keys may differ */
	codec_spec_print(&a->chain, &p);
	codec_spec_print(&b->chain, &q);
	same = buf_ok(&p) && buf_ok(&q) && p.len == q.len &&
	       (p.len == 0 || memcmp(p.data, q.data, p.len) == 0) &&
	       x.rank == y.rank &&
	       (x.rank == 0 || memcmp(x.shard, y.shard, x.rank * sizeof(*x.shard)) == 0);
	return same;
}

static unsigned check_document_lengths(const struct ds_array *was, const struct ds_array *is)
{
	unsigned ret = 0;

	for (uint32_t d = 0; d < was->rank; d++)
		ret |= is->shape[d] < was->shape[d]   ? TREE_SHORTER
		       : is->shape[d] > was->shape[d] ? TREE_LONGER
						      : 0;
	return ret;
}

/* check_document_passes - true if the view shows the array at that path with the stored bytes;
 * shards are reassembled. */
static bool check_document_passes(const struct snapshot *g, const char *dir, bool sharded)
{
	const struct dataset *ds = &g->view->source->ds;
	const char *name = store_key_name(dir);
	auto_buf b = buf_of(STORE_KEY_MAX + 2);
	bool passes = true;

	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const char *path = strcmp(ds->arrays[i].name, name) == 0
					   ? ds_array_path_text(ds, i, &b)
					   : NULL;

		if (path && strcmp(path + 1, dir) == 0)
			passes = g->view->ops->plan(g->view, i)->kind != PLAN_ENCODE &&
				 !sharded;
	}
	return passes;
}

unsigned commit_tree_recoded(void *arg, const struct snapshot *now, const char *dir,
			     const char *doc, const uint8_t *was, size_t n_was,
			     const uint8_t *is, size_t n_is)
{
	struct document_check c = {.setup = ((const struct rw *)arg)->setup};
	struct source *a, *b;
	unsigned ret = 0;

	struct plan_layout layout = {.rank = 0};

	if (!now->view->source)
		return 0;
	a = open_doc(&c, doc, was, n_was);
	b = open_doc(&c, doc, is, n_is);
	if (b && b->ds.n_arrays == 1)
		zarr_source_layout(b, 0, &layout);
	if (a && b && same_bytes(a, b) &&
	    !check_document_passes(now, dir, layout.rank > 0))
		ret = TREE_RECODED | check_document_lengths(a->ds.arrays, b->ds.arrays);
	source_close(a);
	source_close(b);
	return ret;
}
