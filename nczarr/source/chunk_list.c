/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_list.c - finds the existing objects of an array.
 *
 * Flat names need one listing. Nested names need a listing for each directory, level by level:
 * directories that are found are appended to the list of directories to visit, which is then the
 * list to poll. A few objects are looked up by name, which is cheaper than a listing. The version
 * of a directory is read before its listing, so that concurrent changes are detected later. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/observe/metrics.h"
#include "base/os/io.h"

#define FEW 4    /* objects that are looked up one by one */
#define LONG 200 /* bytes of a key that a message shows */

/* lister - state of the callback of one directory. */
struct lister {
	struct zr_table *table;    /* NULL if only `count` is wanted */
	const struct zr_place *is; /* the place to compare with */
	struct zr_dir *dirs;       /* found so far; owned */
	size_t n_dirs, c_dirs;
	uint64_t max_dirs;
	struct zr_dir at;        /* the directory that is listed */
	char key[ZR_OBJECT_KEY]; /* its key */
	bool differs;
	int rc;
	struct err *e;
};

static int chunks_unreadable(const char *key, const char *name, struct err *e)
{
	return err_set(e, -EIO, "'%.*s%s%s' exists but cannot be read", LONG, key,
		       key[0] && name[0] ? "/" : "", name);
}

static int push_dir(struct lister *l, const struct zr_dir *d, struct err *e)
{
	if (grow_array(&l->dirs, &l->c_dirs, l->n_dirs + 1, sizeof(*l->dirs)) < 0)
		return err_nomem(e);
	l->dirs[l->n_dirs++] = *d;
	return 0;
}

/* chunks_add_dir - queue a directory. */
static int chunks_add_dir(struct lister *l, uint64_t prefix, const struct store_stat *st)
{
	const struct zr_dir d = {.prefix = prefix,
				 .array = l->at.array,
				 .level = (uint8_t)(l->at.level + 1),
				 .version = st->version,
				 .young = io_racy_ns(st->changed) > 0};

	if (l->n_dirs >= l->max_dirs)
		return err_set(
			l->e, -ERANGE,
			"more than %zu directories of chunks exceed a quarter of -o memory",
			l->n_dirs);
	return push_dir(l, &d, l->e);
}

/* chunks_linear_of - number of the object `name` in the listed directory, or of the directory
 * among those of the next level. */
static bool chunks_linear_of(const struct lister *l, const char *name, uint64_t *ret)
{
	const struct zr_place *p = l->is;
	uint64_t v;

	if (zr_name_parse(p->meta, p->grid, l->at.level, name, &v))
		return false;
	*ret = zr_is_nested(p->meta) ? l->at.prefix * p->grid[l->at.level] + v : v;
	return true;
}

/* is_leaf - whether entries of the listed directory are objects. */
static bool is_leaf(const struct lister *l)
{
	return !zr_is_nested(l->is->meta) || l->at.level + 1u >= l->is->meta->rank;
}

static bool chunks_emit(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct lister *l = arg;
	uint64_t linear, size;

	if (!chunks_linear_of(l, name, &linear))
		return true;
	if (is_leaf(l)) {
		size = is_dir || (st && st->odd) ? ZR_UNREADABLE : st ? st->size : 0;
		l->rc = zr_table_add(l->table, linear, size, l->e);
		l->at.count++;
		return l->rc == 0;
	}
	if (is_dir) {
		l->at.count++;
		l->rc = chunks_add_dir(l, linear, st);
		return l->rc == 0;
	}
	if (!st->odd)
		return true; /* a file has no chunks below it */
	/* a dangling link: chunks may have been below it */
	l->rc = chunks_unreadable(l->key, name, l->e);
	return false;
}

/* chunks_list_one - list dirs[i], whose version is known. */
static int chunks_list_one(struct lister *l, size_t i, struct err *e)
{
	const struct zr_place *p = l->is;
	uint64_t coords[DS_RANK_MAX];
	int rc;

	l->at = l->dirs[i];
	grid_coords(l->at.level, p->grid, l->at.prefix, coords);
	rc = zr_level_key(p->meta, coords, l->at.level, l->key, e);
	if (rc)
		return rc;
	rc = store_list(p->s->store, l->key, l->table->sized || !is_leaf(l), chunks_emit, l, e);
	if (l->rc)
		return l->rc;
	if (rc && rc != -ENOENT)
		return rc;
	l->dirs[i].count = l->at.count; /* dirs may have moved */
	return 0;
}

/* first_dir - queue the top directory. */
static int first_dir(struct lister *l, bool *ret_there, struct err *e)
{
	struct zr_dir d = {.array = l->at.array};
	struct store_stat st;
	int rc = zr_level_key(l->is->meta, NULL, 0, l->key, e);

	if (rc)
		return rc;
	if (l->is->remote) /* the listing has the same answer, and it is not polled */
		st = (struct store_stat){.is_dir = true};
	else
		rc = store_stat(l->is->s->store, l->key, &st, e);
	if (rc && rc != -ENOENT)
		return rc;
	*ret_there = rc == 0 && st.is_dir;
	if (rc == 0 && st.odd)
		return chunks_unreadable(l->key, "", e);
	if (rc == 0) {
		d.version = st.version;
		d.young = io_racy_ns(st.changed) > 0;
	}
	return push_dir(l, &d, e);
}

/* ask_one - look up an object by name. */
static int ask_one(struct lister *l, uint64_t object, struct err *e)
{
	struct zr_dir d = {.array = l->at.array,
			   .prefix = object,
			   .is_object = true,
			   .level = (uint8_t)l->is->meta->rank};
	struct store_stat st;
	int rc = zr_object_name(l->is, object, l->key, e);

	if (rc)
		return rc;
	rc = store_stat(l->is->s->store, l->key, &st, e);
	if (rc && rc != -ENOENT)
		return rc;
	if (rc == 0) {
		d.version = st.version;
		rc = zr_table_add(l->table, object,
				  st.odd || st.is_dir ? ZR_UNREADABLE : st.size, e);
		if (rc)
			return rc;
	}
	return push_dir(l, &d, e);
}

static bool chunks_emit_deep(void *arg, const char *name, bool is_dir,
			     const struct store_stat *st)
{
	struct lister *l = arg;
	const struct zr_place *p = l->is;
	uint64_t coords[DS_RANK_MAX];

	(void)is_dir;
	/* without a prefix the array's documents are in the same directory; their names are no
	 * coordinates */
	if (!zr_coords_parse(p->meta, name, p->grid, coords))
		return true;
	l->rc = zr_table_add(l->table, grid_linear(p->meta->rank, p->grid, coords),
			     st->odd ? ZR_UNREADABLE : st->size, l->e);
	return l->rc == 0;
}

/* list_deep - list all objects at once, if that costs less than each directory. -EOPNOTSUPP. */
static int list_deep(struct lister *l, struct err *e)
{
	struct err why = ERR_INIT;
	int rc = store_list_deep(l->is->s->store, l->is->meta->key, chunks_emit_deep, l, &why);

	if (l->rc)
		return l->rc;
	if (rc == -ENOENT)
		return 0;
	return rc && rc != -EOPNOTSUPP ? err_set(e, rc, "%s", why.msg) : rc;
}

static int list_objects(struct zr_place *p, struct err *e)
{
	struct zr_source *s = p->s;
	struct lister l = {.table = &p->table,
			   .is = p,
			   .e = e,
			   .at.array = p->id,
			   .max_dirs = s->opts.max_index_bytes / sizeof(struct zr_dir)};
	bool there = false;
	int rc = -EOPNOTSUPP;

	if (p->remote && zr_is_nested(p->meta) && p->meta->rank > 1)
		rc = list_deep(&l, e);
	if (rc != -EOPNOTSUPP)
		goto end;
	rc = 0;
	if ((p->n_objects <= FEW && !p->remote) || p->meta->rank == 0)
		for (uint64_t i = 0; !rc && i < p->n_objects; i++)
			rc = ask_one(&l, i, e);
	else
		rc = first_dir(&l, &there, e);
	for (size_t i = 0; !rc && there && i < l.n_dirs; i++)
		rc = chunks_list_one(&l, i, e);
end:
	zr_table_end(&p->table);
	if (!rc && !p->remote)
		rc = zr_absent(s, e);
	if (!rc && !p->remote)
		rc = zr_watch_add(&s->data->watch, l.dirs, l.n_dirs, e);
	free(l.dirs);
	return rc;
}

int zr_list_objects(struct zr_place *p, struct err *e)
{
	int rc = 0;

	(void)pthread_mutex_lock(&p->listing);
	if (!p->listed) {
		rc = list_objects(p, e);
		if (rc)
			zr_table_release(&p->table);
		p->listed = rc == 0;
	}
	(void)pthread_mutex_unlock(&p->listing);
	return rc;
}

static bool emit_again(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct lister *l = arg;
	uint64_t linear;

	(void)st;
	if (!chunks_linear_of(l, name, &linear) || (!is_leaf(l) && !is_dir))
		return true;
	l->at.count++;
	if (is_leaf(l) && !zr_table_get(&l->is->table, linear, NULL))
		l->differs = true;
	return !l->differs;
}

int zr_list_again(const struct zr_place *p, const struct zr_dir *d, bool *ret_young,
		  struct err *e)
{
	struct lister l = {.is = p, .at = *d};
	uint64_t coords[DS_RANK_MAX];
	struct store_stat st;
	int rc;

	l.at.count = 0;
	grid_coords(d->level, p->grid, d->prefix, coords);
	rc = zr_level_key(p->meta, coords, d->level, l.key, e);
	rc = rc ? rc : store_stat(p->s->store, l.key, &st, e);
	if (!rc) {
		l.differs = st.version != d->version;
		*ret_young = io_racy_ns(st.changed) > 0;
	}
	if (!rc && !l.differs)
		rc = store_list(p->s->store, l.key, false, emit_again, &l, e);
	if (rc && rc != -ENOENT)
		return rc;
	if (rc || l.differs || l.at.count != d->count)
		return err_set(e, -ESTALE, "chunks below '%.*s' were written or removed", LONG,
			       l.key);
	return 0;
}

/* The set of existing objects of a grid.
 *
 * Objects are added in any order. They are collected in a list, which becomes a bitmap or an array
 * over the whole grid as soon as that is no larger; a small grid starts as one. Sizes have 32 bits
 * until one does not fit. A remaining list is sorted at the end. */

#define SMALL_FORM ((uint64_t)64 << 10) /* bytes below which a list saves nothing */
#define NONE32 UINT32_MAX
#define ODD32 (UINT32_MAX - 1)
#define NONE64 (UINT64_MAX - 1) /* ZR_UNREADABLE is the next value */

void zr_table_init(struct zr_table *t, uint64_t total, bool sized, uint64_t max_bytes)
{
	*t = (struct zr_table){
		.total = total, .sized = sized, .sorted = true, .max_bytes = max_bytes};
}

void zr_table_release(struct zr_table *t)
{
	metrics_gauge_add(G_MEM_INDEX, -(int64_t)t->counted);
	free(t->bits);
	free(t->small);
	free(t->large);
	free(t->list);
	zr_table_init(t, t->total, t->sized, t->max_bytes);
}

static int chunks_too_large(const struct zr_table *t, struct err *e)
{
	return err_set(e, -ERANGE,
		       "the table of %" PRIu64 " chunks of %" PRIu64 " would exceed %" PRIu64
		       " bytes (a quarter of -o memory)",
		       t->n + 1, t->total, t->max_bytes);
}

/* full_bytes - bytes of the form that covers the whole grid. */
static uint64_t full_bytes(const struct zr_table *t)
{
	if (!t->sized)
		return t->total / 64 * 8 + 8;
	return t->total > UINT64_MAX / 4 ? UINT64_MAX : t->total * 4;
}

/* full_at - the size in a form that covers the grid; NONE64: there is no such object. */
static uint64_t full_at(const struct zr_table *t, uint64_t linear)
{
	uint32_t v;

	if (t->large)
		return t->large[linear];
	v = t->small[linear];
	return v == NONE32 ? NONE64 : v == ODD32 ? ZR_UNREADABLE : v;
}

/* chunks_widen - switch to sizes of 64 bits. */
static int chunks_widen(struct zr_table *t, struct err *e)
{
	uint64_t *large;

	if (t->total > t->max_bytes / 12) /* both are there for a moment */
		return chunks_too_large(t, e);
	large = alloc_array((size_t)t->total, sizeof(*large));
	if (!large)
		return err_nomem(e);
	for (uint64_t i = 0; i < t->total; i++)
		large[i] = full_at(t, i);
	free(t->small);
	t->small = NULL;
	t->large = large;
	return 0;
}

static int put_full(struct zr_table *t, uint64_t linear, uint64_t size, struct err *e)
{
	if (t->bits) {
		t->bits[linear / 64] |= (uint64_t)1 << linear % 64;
		return 0;
	}
	if (t->small && size >= ODD32 && size != ZR_UNREADABLE) {
		int rc = chunks_widen(t, e);

		if (rc)
			return rc;
	}
	if (t->small)
		t->small[linear] = size == ZR_UNREADABLE ? ODD32 : (uint32_t)size;
	else
		t->large[linear] = size == NONE64 ? ZR_UNREADABLE : size;
	return 0;
}

/* make_full - convert the list to the form that covers the grid. */
static int make_full(struct zr_table *t, struct err *e)
{
	struct chunk_size_entry *list = t->list;
	int rc = 0;

	if (!t->sized) {
		t->bits = alloc_array((size_t)full_bytes(t) / 8, 8);
	} else {
		t->small = malloc(t->total ? (size_t)t->total * 4 : 1);
		if (t->small)
			memset(t->small, 0xff, (size_t)t->total * 4);
	}
	if (!t->bits && !t->small)
		return err_nomem(e);
	t->list = NULL;
	t->cap = 0;
	for (uint64_t i = 0; !rc && i < t->n; i++)
		rc = put_full(t, list[i].linear, list[i].size, e);
	free(list);
	return rc;
}

/* chunks_make_room - make room for one more: in the list, or by conversion. */
static int chunks_make_room(struct zr_table *t, struct err *e)
{
	uint64_t have = t->cap * sizeof(*t->list), full = full_bytes(t);
	uint64_t want = t->cap ? 2 * have : 64 * sizeof(*t->list), most;
	struct chunk_size_entry *grown;

	if ((full <= SMALL_FORM || full <= want) && full <= t->max_bytes &&
	    have <= t->max_bytes - full && full <= SIZE_MAX / 2)
		return make_full(t, e);
	most = have <= t->max_bytes ? t->max_bytes - have : 0; /* both are there for a moment */
	want = u64_min(want, most);
	if (want / sizeof(*t->list) <= t->cap)
		return chunks_too_large(t, e);
	grown = realloc(t->list, (size_t)want);
	if (!grown)
		return err_nomem(e);
	t->list = grown;
	t->cap = (size_t)want / sizeof(*t->list);
	return 0;
}

int zr_table_add(struct zr_table *t, uint64_t linear, uint64_t size, struct err *e)
{
	bool full = t->bits || t->small || t->large;
	int rc;

	if (!full && t->n == t->cap) {
		rc = chunks_make_room(t, e);
		if (rc)
			return rc;
		full = !t->list;
	}
	if (full) {
		rc = put_full(t, linear, size, e);
		if (rc)
			return rc;
	} else {
		t->sorted = t->sorted && (t->n == 0 || t->list[t->n - 1].linear < linear);
		t->list[t->n] = (struct chunk_size_entry){linear, size};
	}
	t->n++;
	return 0;
}

static int chunks_by_linear(const void *a, const void *b)
{
	uint64_t x = ((const struct chunk_size_entry *)a)->linear;
	uint64_t y = ((const struct chunk_size_entry *)b)->linear;

	return x < y ? -1 : x > y;
}

/* fit_list - sort the list and shrink it to size. */
static void fit_list(struct zr_table *t)
{
	struct chunk_size_entry *fit;

	if (!t->sorted)
		qsort(t->list, (size_t)t->n, sizeof(*t->list), chunks_by_linear);
	t->sorted = true;
	fit = realloc(t->list, (size_t)t->n * sizeof(*t->list));
	t->list = fit ? fit : t->list;
	t->cap = (size_t)t->n;
}

void zr_table_end(struct zr_table *t)
{
	if (t->list)
		fit_list(t);
	t->counted = t->list               ? t->cap * sizeof(*t->list)
		     : t->large            ? t->total * sizeof(*t->large)
		     : t->bits || t->small ? full_bytes(t)
					   : 0;
	metrics_gauge_add(G_MEM_INDEX, (int64_t)t->counted);
}

/* chunks_lower - position of the first entry at or after linear; n: none. */
static size_t chunks_lower(const struct zr_table *t, uint64_t linear)
{
	size_t at = 0;

	BISECT(at, (size_t)t->n, mid, t->list[mid].linear < linear);
	return at;
}

bool zr_table_get(const struct zr_table *t, uint64_t linear, uint64_t *ret_size)
{
	uint64_t size = 0;
	size_t at;

	if (t->n == 0 || linear >= t->total)
		return false;
	if (t->bits) {
		if ((t->bits[linear / 64] >> linear % 64 & 1) == 0)
			return false;
	} else if (t->list) {
		at = chunks_lower(t, linear);
		if (at == t->n || t->list[at].linear != linear)
			return false;
		size = t->list[at].size;
	} else {
		size = full_at(t, linear);
		if (size == NONE64)
			return false;
	}
	if (ret_size)
		*ret_size = t->sized ? size : 0;
	return true;
}

static bool next_bit(const struct zr_table *t, uint64_t from, uint64_t *ret)
{
	uint64_t at = from / 64, end = (t->total + 63) / 64;
	uint64_t word = t->bits[at] & ~(uint64_t)0 << from % 64;

	while (word == 0) {
		if (++at >= end)
			return false;
		word = t->bits[at];
	}
	*ret = at * 64 + (uint64_t)__builtin_ctzll(word);
	return true;
}

bool zr_table_next(const struct zr_table *t, uint64_t from, uint64_t *ret)
{
	size_t at;

	if (t->n == 0 || from >= t->total)
		return false;
	if (t->bits)
		return next_bit(t, from, ret);
	if (t->list) {
		at = chunks_lower(t, from);
		if (at == t->n)
			return false;
		*ret = t->list[at].linear;
		return true;
	}
	while (from < t->total && full_at(t, from) == NONE64)
		from++;
	*ret = from;
	return from < t->total;
}
