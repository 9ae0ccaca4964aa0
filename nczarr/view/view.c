/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - a dataset as a Zarr v2 or v3 store of files.
 *
 * Directories, documents and chunks are computed from their ids; documents are made on demand, and
 * only consolidated metadata and a few large ones are cached. Only the width of NCZarr's padded
 * strings is determined late, because it needs a read of the whole array: once for each array,
 * before its first document or chunk, so that all of them agree. The lock is not held during reads
 * and callbacks. */
#include "nczarr/view/view.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/cancel.h"
#include "codecs/spec/spec.h"
#include "nczarr/chunk_key.h"
#include "nczarr/nczarr.h"
#include "nczarr/view/metadata.h"
#include "nczarr/view/shard_files_int.h"
#include "nczarr/view/visible.h"
#include "translate/chunkio/provenance.h"

#define INDEX_SHARE 8 /* share of the memory for chunks for indexes of shards */

enum { TEXT_KNOWN, TEXT_UNKNOWN, TEXT_BUSY };

#define RECENT 4                    /* cached documents for the next piece of a read */
#define RECENT_MIN ((size_t)1 << 16) /* bytes: smaller ones are read at once */

/* doc - a finished document. */
struct doc {
	size_t len;
	uint8_t *data;
	enum zr_doc kind;
	uint32_t ord;
	_Atomic uint32_t refs; /* of zarr_view.docs, and of readers */
};

struct zarr_view {
	struct view base;
	struct zarr_view_options opts;
	struct zr_visible shown;
	struct chunkio *io;
	struct zr_shards *shards; /* NULL without them */
	struct zr_metadata emit;
	bool bare; /* the view is empty (opts.bare) */

	atomic_uchar *text_state;   /* n_arrays; written under lock */

	pthread_mutex_t lock;       /* of the following members; not held during reads */
	pthread_cond_t made;        /* all_busy or a text_state has changed */
	bool all_busy;              /* a thread is making consolidated metadata */
	struct doc *docs[1 + RECENT]; /* consolidated metadata, which stays, and others */
	uint32_t next_recent;       /* of the others: replaced next */
};

static struct zarr_view *zarr(struct view *v)
{
	return CONTAINER_OF(v, struct zarr_view, base);
}

static const struct dataset *zarr_model(const struct zarr_view *z)
{
	return &z->base.source->ds;
}

static const struct ds_array *zarr_array_of(const struct zarr_view *z, uint32_t ord)
{
	return &zarr_model(z)->arrays[ord];
}

static const struct zr_grid *grid_of(const struct zarr_view *z, uint32_t ord)
{
	return &z->shown.named[ord];
}

/* zarr_levels - directories between an array and its files. */
static uint32_t zarr_levels(const struct zarr_view *z, uint32_t ord)
{
	return zr_key_levels(grid_of(z, ord));
}

/* zarr_level_of - number of key parts in the path of an array's directory or one below
 * it. */
static uint32_t zarr_level_of(const struct zr_node *dir)
{
	return dir->kind == ZR_PREFIX ? dir->level : 0;
}

/* zarr_parts - number of possible names in such a directory. */
static uint64_t zarr_parts(const struct zarr_view *z, const struct zr_node *dir)
{
	return zr_key_parts(grid_of(z, dir->ord), zarr_level_of(dir));
}

/* zarr_find_node - the visible node of an id. */
static int zarr_find_node(const struct zarr_view *z, uint64_t id, struct zr_node *ret,
			  struct err *e)
{
	int rc = zr_inodes_find(&z->shown.ids, id, ret);
	bool of_group =
		ret->kind == ZR_GROUP || (ret->kind == ZR_DOC && zr_doc_of_group(ret->doc));

	if (!rc &&
	    (of_group ? z->shown.hidden_groups[ret->ord] : z->shown.hidden_arrays[ret->ord]))
		rc = -ESTALE;
	return rc ? err_set(e, rc, "no file has the id %" PRIu64, id) : 0;
}

/* measure_strings - fix the width of a padded string array. If its strings cannot be decoded, the
 * array keeps its metadata, and its chunks are errors. */
static int measure_strings(struct zarr_view *z, uint32_t ord, struct err *e)
{
	struct plan *plan = &z->shown.plans[ord];
	size_t fill =
		zarr_array_of(z, ord)->fill_text.s ? zarr_array_of(z, ord)->fill_text.len : 0;
	struct err why = ERR_INIT;
	uint32_t longest = 0;
	int rc = chunkio_max_text(z->base.source, ord, &longest, &why);

	if (rc == -EBADMSG || rc == -EOPNOTSUPP || rc == -ERANGE ||
	    (!rc && fill > UINT32_MAX)) {
		plan->kind = PLAN_ERROR;
		(void)snprintf(plan->reason, sizeof(plan->reason), "%.*s",
			       (int)sizeof(plan->reason) - 1, why.msg);
		return 0;
	}
	if (rc)
		return err_set(e, rc, "%s", why.msg);
	plan->fixed_size = (uint32_t)u64_max(1, u64_max(longest, fill));
	return 0;
}

/* know_strings - must be called before any use of plans[ord].fixed_size. */
static int know_strings(struct zarr_view *z, uint32_t ord, struct err *e)
{
	atomic_uchar *state = &z->text_state[ord];
	int rc = 0;

	if (atomic_load_explicit(state, memory_order_acquire) == TEXT_KNOWN)
		return 0;
	(void)pthread_mutex_lock(&z->lock);
	while (rc == 0 && atomic_load(state) == TEXT_BUSY)
		rc = cancel_wait(&z->made, &z->lock);
	if (rc || atomic_load(state) == TEXT_KNOWN) {
		(void)pthread_mutex_unlock(&z->lock);
		return rc ? err_set(e, rc, "cancelled while measuring strings") : 0;
	}
	atomic_store(state, TEXT_BUSY);
	(void)pthread_mutex_unlock(&z->lock);

	rc = measure_strings(z, ord, e);

	(void)pthread_mutex_lock(&z->lock);
	atomic_store(state, rc ? TEXT_UNKNOWN : TEXT_KNOWN);
	(void)pthread_cond_broadcast(&z->made);
	(void)pthread_mutex_unlock(&z->lock);
	return rc;
}

static void doc_drop(void *arg)
{
	struct doc *d = arg;

	if (!d || atomic_fetch_sub(&d->refs, 1) > 1)
		return;
	free(d->data);
	free(d);
}

static int doc_make(struct zarr_view *z, enum zr_doc kind, uint32_t ord, struct doc **ret,
		    struct err *e)
{
	struct buf b;
	struct doc *d;
	int rc = 0;

	if (!zr_doc_of_group(kind))
		rc = know_strings(z, ord, e);
	for (uint32_t a = 0; zr_doc_of_all(kind) && !rc && a < zarr_model(z)->n_arrays; a++)
		rc = know_strings(z, a, e);
	if (rc)
		return rc;
	d = alloc_array(1, sizeof(*d));
	if (!d)
		return err_nomem(e);
	buf_init(&b, (size_t)u64_min(z->opts.max_meta_bytes, SIZE_MAX));
	rc = zr_metadata_doc(&z->emit, kind, ord, &b, e);
	if (rc) {
		buf_release(&b);
		free(d);
		return rc;
	}
	d->data = buf_take(&b, &d->len);
	d->kind = kind;
	d->ord = ord;
	atomic_init(&d->refs, 1);
	*ret = d;
	return 0;
}

/* doc_cached - a cached document, or NULL; the lock is held. */
static struct doc *doc_cached(const struct zarr_view *z, enum zr_doc kind, uint32_t ord)
{
	for (size_t i = 0; i < ARRAY_LEN(z->docs); i++)
		if (z->docs[i] && z->docs[i]->kind == kind && z->docs[i]->ord == ord)
			return z->docs[i];
	return NULL;
}

/* doc_keep - cache a new document, if it is read in pieces. Returns the one that it replaces. The
 * lock is held. */
static struct doc *doc_keep(struct zarr_view *z, struct doc *d)
{
	struct doc *old, **slot = &z->docs[0];

	if (!zr_doc_of_all(d->kind)) {
		if (d->len < RECENT_MIN)
			return NULL;
		slot = &z->docs[1 + z->next_recent++ % RECENT];
	}
	old = *slot;
	*slot = d;
	atomic_fetch_add(&d->refs, 1);
	return old;
}

/* doc_get - get a document, for doc_drop(). Consolidated metadata is made once, by one thread. */
static int doc_get(struct zarr_view *z, enum zr_doc kind, uint32_t ord, struct doc **ret,
		   struct err *e)
{
	const bool all = zr_doc_of_all(kind);
	struct doc *d, *old = NULL;
	int rc = 0;

	(void)pthread_mutex_lock(&z->lock);
	while (!(d = doc_cached(z, kind, ord)) && rc == 0 && all && z->all_busy)
		rc = cancel_wait(&z->made, &z->lock);
	if (d)
		atomic_fetch_add(&d->refs, 1);
	z->all_busy = z->all_busy || (all && rc == 0 && !d);
	(void)pthread_mutex_unlock(&z->lock);
	*ret = d;
	if (d)
		return 0;
	if (rc)
		return err_set(e, rc, "cancelled while collecting the metadata");
	rc = doc_make(z, kind, ord, ret, e);
	(void)pthread_mutex_lock(&z->lock);
	if (rc == 0)
		old = doc_keep(z, *ret);
	z->all_busy = z->all_busy && !all;
	(void)pthread_cond_broadcast(&z->made);
	(void)pthread_mutex_unlock(&z->lock);
	doc_drop(old);
	return rc;
}

static int doc_size(struct zarr_view *z, const struct zr_node *n, uint64_t *ret, struct err *e)
{
	struct doc *d;
	int rc = doc_get(z, n->doc, n->ord, &d, e);

	if (rc)
		return rc;
	*ret = d->len;
	doc_drop(d);
	return 0;
}

/* The files of an array's chunks: shards if its grid has several chunks per file. */

static bool is_sharded(const struct zarr_view *z, uint32_t ord)
{
	return z->shown.files[ord].per != NULL;
}

/* chunk_size - exact size of a chunk file. */
static int chunk_size(struct zarr_view *z, const struct zr_node *n, uint64_t *ret,
		      struct err *e)
{
	const struct ds_array *a = zarr_array_of(z, n->ord);
	uint64_t size, rows;
	int rc = know_strings(z, n->ord, e);

	if (!rc)
		rc = is_sharded(z, n->ord)
			     ? zr_shards_stat(z->shards, n->ord, n->index, &size, e)
			     : chunkio_stat(z->io, n->ord, n->index, &size, e);
	if (rc)
		return rc;
	rows = a->rank ? zr_chunk_rows(z->opts.mode, a) : 0;
	if (a->rank && rows < a->chunk[0] && z->shown.plans[n->ord].kind != PLAN_ENCODE)
		size = size / a->chunk[0] * rows;
	*ret = size;
	return 0;
}

/* node_attr - -ENOENT is the only error: a file of unknown state is visible, see
 * translate/contract/view.h. */
static int node_attr(struct zarr_view *z, const struct zr_node *n, struct view_attr *ret,
		     struct err *e)
{
	struct view_attr at = {.id = zr_inodes_of(&z->shown.ids, n), .nlink = 1};
	uint64_t dirs = 0;
	int rc = 0;

	switch (n->kind) {
	case ZR_GROUP:
	case ZR_ARRAY:
	case ZR_PREFIX:
		at.is_dir = true;
		if (n->kind == ZR_GROUP)
			dirs = z->shown.n_dirs[n->ord];
		else if (zarr_level_of(n) < zarr_levels(z, n->ord))
			dirs = zarr_parts(z, n);
		at.nlink = (uint32_t)u64_min(dirs, UINT32_MAX - 2) + 2;
		break;
	case ZR_DOC:
		rc = doc_size(z, n, &at.size, e);
		break;
	case ZR_CHUNK:
		rc = chunk_size(z, n, &at.size, e);
		break;
	}
	if (rc == -ENOENT)
		return rc;
	if (rc) {
		at.unknown = true;
		at.size = n->kind == ZR_CHUNK ? zarr_array_of(z, n->ord)->chunk_bytes : 0;
		at.size = at.size ? at.size
				  : 1; /* an empty file would be read without an error */
	}
	*ret = at;
	return 0;
}

/* docs_in - the documents of a directory. */
static const struct zr_docs *docs_in(const struct zarr_view *z, const struct zr_node *dir)
{
	static const struct zr_docs none = {.n = 0};
	const struct zr_format *f = z->shown.format;

	if (dir->kind == ZR_PREFIX || z->bare)
		return &none;
	if (dir->kind == ZR_ARRAY)
		return &f->array;
	return dir->ord ? &f->group : &f->root;
}

/* step_down - the directory or file for part c of a key in an array's directory or one below it. */
static struct zr_node step_down(const struct zarr_view *z, const struct zr_node *dir,
				uint64_t c)
{
	const uint32_t level = zarr_level_of(dir);
	struct zr_node n = {.kind = level < zarr_levels(z, dir->ord) ? ZR_PREFIX : ZR_CHUNK,
			    .ord = dir->ord};

	n.level = n.kind == ZR_PREFIX ? level + 1 : 0;
	n.index = (dir->kind == ZR_PREFIX ? dir->index : 0) * zarr_parts(z, dir) + c;
	return n;
}

/* find_child - -ENOENT depends on the name only; the existence of a chunk is checked later. */
static int find_child(const struct zarr_view *z, const struct zr_node *dir, const char *name,
		      size_t len, struct zr_node *ret)
{
	const struct zr_docs *docs = docs_in(z, dir);
	const struct zr_grid *g;
	const struct visible_node *x;
	uint64_t c;

	for (uint32_t i = 0; i < docs->n; i++) {
		if (str_is(zr_doc_file(docs->doc[i]), name, len)) {
			*ret = (struct zr_node){
				.kind = ZR_DOC, .doc = docs->doc[i], .ord = dir->ord};
			return 0;
		}
	}
	if (dir->kind == ZR_GROUP) {
		x = zr_visible_find(&z->shown, dir->ord, name, len);
		if (x)
			*ret = (struct zr_node){.kind = x->is_array ? ZR_ARRAY : ZR_GROUP,
						.ord = x->ord};
		return x ? 0 : -ENOENT;
	}
	g = grid_of(z, dir->ord);
	if (g->keys.nested) {
		if (zr_key_part(g, zarr_level_of(dir), name, len, &c))
			return -ENOENT;
		*ret = step_down(z, dir, c);
		return 0;
	}
	if (zr_key_parse(g, name, len, &c))
		return -ENOENT;
	*ret = (struct zr_node){.kind = ZR_CHUNK, .ord = dir->ord, .index = c};
	return 0;
}

static bool zarr_is_dir(const struct zr_node *n)
{
	return n->kind == ZR_GROUP || n->kind == ZR_ARRAY || n->kind == ZR_PREFIX;
}

static int zarr_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
		       struct view_attr *ret, struct err *e)
{
	struct zarr_view *z = zarr(v);
	struct zr_node d, n;
	int rc = zarr_find_node(z, dir, &d, e);

	if (rc)
		return rc;
	if (!zarr_is_dir(&d))
		return err_set(e, -ENOTDIR, "not a directory");
	rc = find_child(z, &d, name, len, &n);
	if (rc)
		return d.kind == ZR_GROUP ? ds_absent(zarr_model(z), d.ord, name, len, e)
					  : err_set(e, rc, "no such file");
	return node_attr(z, &n, ret, e);
}

static int zarr_getattr(struct view *v, uint64_t id, struct view_attr *ret, struct err *e)
{
	struct zr_node n;
	int rc = zarr_find_node(zarr(v), id, &n, e);

	return rc ? rc : node_attr(zarr(v), &n, ret, e);
}

/* zarr_listing - one list call. */
struct zarr_listing {
	struct zarr_view *z;
	bool want_attr;
	view_emit *emit;
	void *arg;
};

/* cheap - whether attributes need neither a read of data nor a large document. */
static bool cheap(struct zarr_view *z, const struct zr_node *n)
{
	bool made;

	if (zarr_is_dir(n))
		return true;
	if (n->kind == ZR_DOC && zr_doc_of_all(n->doc)) {
		(void)pthread_mutex_lock(&z->lock);
		made = z->docs[0] != NULL;
		(void)pthread_mutex_unlock(&z->lock);
		return made;
	}
	if (n->kind == ZR_DOC && zr_doc_of_group(n->doc))
		return true;
	if (atomic_load_explicit(&z->text_state[n->ord], memory_order_acquire) != TEXT_KNOWN)
		return false;
	if (n->kind == ZR_DOC)
		return true;
	return is_sharded(z, n->ord) ? zr_shards_stat_cheap(z->shards, n->ord, n->index)
				     : chunkio_stat_cheap(z->io, n->ord, n->index);
}

static bool zarr_give(const struct zarr_listing *l, const char *name, const struct zr_node *n,
		      uint64_t next)
{
	struct view_attr at;
	bool have = l->want_attr && cheap(l->z, n) && node_attr(l->z, n, &at, NULL) == 0;

	return l->emit(l->arg, name, zr_inodes_of(&l->z->shown.ids, n), zarr_is_dir(n),
		       have ? &at : NULL, next);
}

/* list_group - emit arrays, then groups, from position `at` after the documents. */
static void list_group(const struct zarr_listing *l, uint32_t ord, uint64_t at, uint64_t docs)
{
	const struct dataset *ds = zarr_model(l->z);
	const struct ds_group *g = &ds->groups[ord];
	uint64_t n = (uint64_t)g->n_arrays + g->n_groups;

	for (; at < n; at++) {
		bool is_array = at < g->n_arrays;
		uint32_t child = is_array ? g->arrays[at] : g->groups[at - g->n_arrays];
		struct zr_node node = {.kind = is_array ? ZR_ARRAY : ZR_GROUP, .ord = child};
		const char *name = is_array ? ds->arrays[child].name : ds->groups[child].name;

		if (is_array ? l->z->shown.hidden_arrays[child]
			     : l->z->shown.hidden_groups[child])
			continue;
		if (!zarr_give(l, name, &node, docs + at + 1))
			return;
	}
}

/* list_prefixes - emit every directory inside the grid, with or without chunks. */
static void list_prefixes(const struct zarr_listing *l, const struct zr_node *dir, uint64_t at,
			  uint64_t docs)
{
	const uint64_t n = zarr_parts(l->z, dir);
	char name[ZR_KEY_MAX];

	for (; at < n; at++) {
		struct zr_node node = step_down(l->z, dir, at);

		zr_key_part_name(grid_of(l->z, dir->ord), zarr_level_of(dir), at, name,
				 sizeof(name));
		if (!zarr_give(l, name, &node, docs + at + 1))
			return;
	}
}

/* zarr_list_chunks - emit existing files; positions are linear indices from the
 * directory's first. */
static int zarr_list_chunks(const struct zarr_listing *l, const struct zr_node *dir,
			    uint64_t at, uint64_t docs, struct err *e)
{
	const struct zr_grid *g = grid_of(l->z, dir->ord);
	const bool nested = g->keys.nested;
	uint64_t count = nested ? zarr_parts(l->z, dir) : g->n;
	uint64_t first = dir->kind == ZR_PREFIX ? dir->index * count : 0, hit;
	struct zr_node node = {.kind = ZR_CHUNK, .ord = dir->ord};
	char name[ZR_KEY_MAX];
	struct err why = ERR_INIT;
	int rc;

	rc = count > 0 ? know_strings(l->z, dir->ord, e) : 0;
	if (rc)
		return rc;
	for (; at < count; at++) {
		rc = is_sharded(l->z, dir->ord)
			     ? zr_shards_next(l->z->shards, dir->ord, first + at, &hit, &why)
			     : chunkio_next(l->z->io, dir->ord, first + at, &hit, &why);
		if (rc == -ENOENT)
			return 0;
		if (rc)
			return err_set(e, rc, "%s", why.msg);
		if (hit - first >= count)
			return 0;
		at = hit - first;
		node.index = hit;
		if (nested)
			zr_key_part_name(g, zarr_level_of(dir), at, name, sizeof(name));
		else
			zr_key_format(g, hit, name);
		if (!zarr_give(l, name, &node, docs + at + 1))
			return 0;
	}
	return 0;
}

static int zarr_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr,
		     view_emit *emit, void *arg, struct err *e)
{
	struct zarr_listing l = {
		.z = zarr(v), .want_attr = want_attr, .emit = emit, .arg = arg};
	struct zr_node d;
	const struct zr_docs *docs;
	int rc = zarr_find_node(l.z, dir, &d, e);

	if (rc)
		return rc;
	if (!zarr_is_dir(&d))
		return err_set(e, -ENOTDIR, "not a directory");
	docs = docs_in(l.z, &d);
	for (; cookie < docs->n; cookie++) {
		struct zr_node n = {.kind = ZR_DOC, .doc = docs->doc[cookie], .ord = d.ord};

		if (!zarr_give(&l, zr_doc_file(n.doc), &n, cookie + 1))
			return 0;
	}
	if (d.kind == ZR_GROUP)
		list_group(&l, d.ord, cookie - docs->n, docs->n);
	else if (zarr_level_of(&d) < zarr_levels(l.z, d.ord))
		list_prefixes(&l, &d, cookie - docs->n, docs->n);
	else
		return zarr_list_chunks(&l, &d, cookie - docs->n, docs->n, e);
	return 0;
}

static int doc_read(struct zarr_view *z, const struct zr_node *n, uint64_t off, size_t len,
		    struct span *ret, struct err *e)
{
	struct doc *d;
	int rc = doc_get(z, n->doc, n->ord, &d, e);
	size_t from;

	if (rc)
		return rc;
	from = (size_t)u64_min(off, d->len);
	*ret = (struct span){.mem = d->data + from,
			     .fd = -1,
			     .len = (size_t)u64_min(len, d->len - from),
			     .done = doc_drop,
			     .arg = d};
	return 0;
}

static int chunk_read(struct zarr_view *z, const struct zr_node *n, uint64_t off, size_t len,
		      uint8_t *room, struct span *ret, struct err *e)
{
	const struct ds_array *a = zarr_array_of(z, n->ord);
	uint64_t size;
	int rc = know_strings(z, n->ord, e);

	if (!rc && a->rank && zr_chunk_rows(z->opts.mode, a) < a->chunk[0] &&
	    z->shown.plans[n->ord].kind != PLAN_ENCODE) {
		rc = chunk_size(z, n, &size, e);
		if (!rc)
			len = (size_t)u64_min(len, size - u64_min(off, size));
	}
	if (rc)
		return rc;
	return is_sharded(z, n->ord)
		       ? zr_shards_read(z->shards, n->ord, n->index, off, len, room, ret, e)
		       : chunkio_read(z->io, n->ord, n->index, off, len, room, ret, e);
}

static int zarr_read(struct view *v, uint64_t id, uint64_t fh NZ_UNUSED, uint64_t off,
		     size_t len, uint8_t *room, struct span *ret, struct err *e)
{
	struct zarr_view *z = zarr(v);
	struct zr_node n;
	int rc = zarr_find_node(z, id, &n, e);

	if (rc)
		return rc;
	if (zarr_is_dir(&n))
		return err_set(e, -EISDIR, "a directory");
	if (n.kind == ZR_DOC)
		return doc_read(z, &n, off, len, ret, e);
	return chunk_read(z, &n, off, len, room, ret, e);
}

static uint64_t zarr_parent(struct view *v, uint64_t dir)
{
	struct zarr_view *z = zarr(v);
	struct zr_node n, up = {.kind = ZR_GROUP};

	if (zarr_find_node(z, dir, &n, NULL))
		return VIEW_ROOT;
	if (n.kind == ZR_GROUP)
		up.ord = n.ord == 0 ? 0 : zarr_model(z)->groups[n.ord].parent;
	else if (n.kind == ZR_ARRAY)
		up.ord = zarr_array_of(z, n.ord)->group;
	else if (n.kind == ZR_PREFIX && n.level > 1)
		up = (struct zr_node){.kind = ZR_PREFIX,
				      .ord = n.ord,
				      .level = n.level - 1,
				      .index = n.index / zr_key_parts(grid_of(z, n.ord),
								      n.level - 1)};
	else if (n.kind == ZR_PREFIX)
		up = (struct zr_node){.kind = ZR_ARRAY, .ord = n.ord};
	return zr_inodes_of(&z->shown.ids, &up);
}

static const struct plan *zarr_plan(struct view *v, uint32_t array)
{
	return &zarr(v)->shown.plans[array];
}

/* node_reported - provenance of a node that the view itself knows. */
static int node_reported(struct zarr_view *z, const struct zr_node *n, enum provenance what,
			 struct buf *out, struct err *e)
{
	struct source *s = z->base.source;
	const struct plan *plan;
	int rc = n->kind == ZR_ARRAY || n->kind == ZR_CHUNK ? know_strings(z, n->ord, e) : 0;

	if (rc)
		return rc;
	if (n->kind != ZR_ARRAY && n->kind != ZR_CHUNK)
		return err_set(e, -ENODATA, "it belongs to no variable");
	plan = &z->shown.plans[n->ord];
	if (n->kind == ZR_ARRAY)
		return provenance_array(s, zarr_array_of(z, n->ord), plan, what, out, e);
	if (is_sharded(z, n->ord))
		return zr_shards_provenance(z->shards, n->ord, n->index, plan, what, out, e);
	return provenance_chunk(z->io, s, plan, n->ord, n->index, what, out, e);
}

static int zarr_xattr(struct view *v, uint64_t id, const char *name, struct buf *out,
		      struct err *e)
{
	struct zarr_view *z = zarr(v);
	struct zr_node n;
	int rc = zarr_find_node(z, id, &n, e);

	if (!rc && provenance_of(name))
		return node_reported(z, &n, provenance_of(name), out, e);
	return rc ? rc
		  : zr_xattr(n.kind == ZR_ARRAY ? zarr_array_of(z, n.ord) : NULL,
			     (int)z->shown.format->version, name, out, e);
}

static void zarr_close(struct view *v)
{
	struct zarr_view *z;

	if (!v)
		return;
	z = zarr(v);
	zr_shards_free(z->shards);
	chunkio_free(z->io);
	free(z->text_state);
	zr_visible_release(&z->shown);
	(void)pthread_cond_destroy(&z->made);
	(void)pthread_mutex_destroy(&z->lock);
	for (size_t i = 0; i < ARRAY_LEN(z->docs); i++)
		doc_drop(z->docs[i]);
	free(z);
}

static const struct view_ops zarr_view_ops = {
	.name = "zarr",
	.close = zarr_close,
	.lookup = zarr_lookup,
	.getattr = zarr_getattr,
	.list = zarr_list,
	.read = zarr_read,
	.parent = zarr_parent,
	.plan = zarr_plan,
	.xattr = zarr_xattr,
};

/* ---- access for writers of references ---- */

const struct zr_visible *zr_view_visible(struct view *v)
{
	return v->ops == &zarr_view_ops ? &zarr(v)->shown : NULL;
}

const struct zr_docs *zr_view_docs(struct view *v, bool is_array, uint32_t ord)
{
	const struct zr_node dir = {.kind = is_array ? ZR_ARRAY : ZR_GROUP, .ord = ord};

	return docs_in(zarr(v), &dir);
}

int zr_view_stored(struct view *v, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		   struct err *e)
{
	struct chunk_about x;
	int rc = chunkio_about(zarr(v)->io, array, linear, &x, e);

	if (rc < 0)
		return rc;
	*ret = (struct chunk_ref){.where =
					  x.how == TREATMENT_FILL ? CHUNK_ABSENT : CHUNK_SYNTH};
	if (x.how == TREATMENT_PASS && x.zeros == 0) {
		*ret = x.ref;
		ret->len -= x.cut;
	}
	return 0;
}

int zr_view_next(struct view *v, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	return chunkio_next(zarr(v)->io, array, from, ret, e);
}

int zr_view_file(struct view *v, const struct zr_node *n, struct buf *out, struct err *e)
{
	struct zarr_view *z = zarr(v);
	uint64_t id = zr_inodes_of(&z->shown.ids, n), size = 0;
	struct span s;
	uint8_t *room;
	size_t got = 0;
	int rc = n->kind == ZR_DOC ? doc_size(z, n, &size, e) : chunk_size(z, n, &size, e);

	if (rc || size == 0)
		return rc;
	if (size > out->max - out->len)
		return err_set(e, -ERANGE, "%" PRIu64 " bytes exceed %zu", size,
			       out->max - out->len);
	room = buf_grow(out, (size_t)size);
	if (!room)
		return err_nomem(e);
	for (size_t at = 0; at < size; at += got) {
		rc = zarr_read(v, id, 0, at, (size_t)size - at, room + at, &s, e);
		rc = rc ? rc : span_fetch(&s, room + at, (size_t)size - at, &got, e);
		if (!rc && got == 0)
			rc = err_set(e, -EIO, "the file ends at %zu, before offset %" PRIu64,
				     at, size);
		if (rc)
			return rc;
	}
	return 0;
}

int zarr_view_open(struct source *s, const struct zarr_view_options *opts, struct view **ret,
		   struct err *e)
{
	struct zarr_view *z = alloc_array(1, sizeof(*z));
	int rc;

	if (!z)
		return err_nomem(e);
	z->base = (struct view){.ops = &zarr_view_ops, .source = s};
	z->opts = *opts;
	z->bare = opts->bare && s->ds.n_arrays == 0 && s->ds.n_groups == 1 &&
		  s->ds.groups[0].n_attrs == 0;
	(void)pthread_mutex_init(&z->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&z->made);

	rc = zr_visible_init(&z->shown, &s->ds, opts, e);
	if (rc)
		goto out;
	z->base.notes = z->shown.notes;
	z->base.n_notes = z->shown.n_notes;
	z->text_state = alloc_array(s->ds.n_arrays, sizeof(*z->text_state));
	rc = z->text_state ? 0 : err_nomem(e);
	for (uint32_t a = 0; !rc && a < s->ds.n_arrays; a++)
		atomic_init(&z->text_state[a],
			    z->shown.plans[a].kind == PLAN_FIXED ? TEXT_UNKNOWN : TEXT_KNOWN);
	rc = rc ? rc : chunkio_new(s, z->shown.plans, &opts->io, &z->io, e);
	if (!rc && z->shown.sharded)
		rc = zr_shards_new(s, z->io, z->shown.files, opts->io.cache_bytes / INDEX_SHARE,
				   &z->shards, e);
	z->emit = (struct zr_metadata){.ds = &s->ds,
				       .plans = z->shown.plans,
				       .hidden_groups = z->shown.hidden_groups,
				       .hidden_arrays = z->shown.hidden_arrays,
				       .grids = z->shown.files,
				       .format = z->shown.format,
				       .mode = opts->mode,
				       .strict_json = opts->strict_json};
out:
	if (rc)
		zarr_close(&z->base);
	else
		*ret = &z->base;
	return rc;
}

/* Extended attributes of an array's directory: the storage of its chunks in the source, in terms
 * of netCDF. The metadata documents have the presented form. */

int zr_xattr(const struct ds_array *a, int version, const char *name, struct buf *out,
	     struct err *e)
{
	static const char *const names[] = {"user._Filter", "user._Codecs"};

	for (size_t i = 0; i < ARRAY_LEN(names) && a && a->chain.n > 0; i++) {
		if (!name) {
			buf_put(out, names[i], strlen(names[i]) + 1);
			continue;
		}
		if (strcmp(name, names[i]) != 0)
			continue;
		if (i == 0)
			codec_spec_print(&a->chain, out);
		else
			codec_spec_json(&a->chain, a->type.size, version, out);
		return buf_ok(out) ? 0
				   : buf_full(out, e, -E2BIG, "'%s' is larger than %zu bytes",
					      name, out->max);
	}
	if (name)
		return err_set(e, -ENODATA, "no attribute '%s'", name);
	return buf_ok(out) ? 0 : err_nomem(e);
}
