/* SPDX-License-Identifier: BSD-3-Clause */
/* locate.c - locates chunks, with indexes that are read on first use.
 *
 * An index is read under a mutex and published through one atomic pointer; later queries need no
 * lock. Arrays that are the same object share an index. */
#include "hdf5view/hdf5/library.h"
#include "base/os/cancel.h"
#include "translate/model/grid.h"

#include <errno.h>
#include <string.h>

#define WANT_PARTS 64               /* limit of one prefetch */
#define SCOUT_MOST 64               /* arrays at a time */
#define ROOT_BYTES ((uint64_t)4096) /* bytes of an index to prefetch */

/* locate_agree - whether the object header agrees with the library's description of the
 * array. */
static int locate_agree(const struct ds_array *a, const struct h5_array *x,
			const struct h5_layout *l, struct err *e)
{
	bool same = l->rank == x->rank;

	for (uint32_t i = 0; same && i < x->rank; i++)
		same = l->dims[i] == x->extent[i];
	if (same && l->cls == HDF5_LAYOUT_CHUNKED) {
		/* the library states the size in memory for elements of variable length */
		same = dt_is_vlen(&a->type) || l->elem_size == x->elem_bytes;
		for (uint32_t i = 0; same && i < x->rank; i++)
			same = l->chunk[i] == a->chunk[i];
	}
	if (!same)
		return err_set(e, -EBADMSG,
			       "the object header at %llu does not fit its dataset",
			       (unsigned long long)x->addr);
	return 0;
}

static int locate_fill_place(struct h5_source *s, uint32_t array, struct h5_place *p,
			     struct err *e)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	const struct h5_array *x = &s->arrays[array];
	struct err changed = ERR_INIT;
	int check, rc = isolated_check(&s->g.base, e);

	rc = rc ? rc : h5_layout_read(&s->raw, s->raw.base + x->addr, &p->layout, e);
	rc = rc ? rc : locate_agree(a, x, &p->layout, e);
	if (rc == 0 && p->layout.cls == HDF5_LAYOUT_CHUNKED)
		rc = h5_index_load(&s->raw, &p->layout, a->grid, s->g.opts.max_index_bytes,
				   &p->index, e);
	if (rc == -EOPNOTSUPP) {
		p->library = true;
		rc = 0;
	}
	/* data read while the file changed is neither valid nor damaged */
	check = isolated_check(&s->g.base, &changed);
	if (check < 0)
		return err_set(e, check, "%s", changed.msg);
	return rc;
}

static struct h5_place *locate_load(struct h5_source *s, uint32_t array, struct err *e)
{
	struct h5_place *p = alloc_array(1, sizeof(*p));
	struct err why = ERR_INIT;

	if (!p) {
		(void)err_nomem(e);
		return NULL;
	}
	p->rc = locate_fill_place(s, array, p, &why);
	if (p->rc == -EBADMSG && s->g.base.remote) {
		blob_forget(s->g.blob); /* its bytes may have been damaged in transit */
		h5_index_free(p->index);
		p->index = NULL;
		p->rc = locate_fill_place(s, array, p, &why);
	}
	/* damage stays; a lack of memory or an unreadable disk may pass */
	if (p->rc == 0 || p->rc == -EBADMSG || p->rc == -ERANGE) {
		memcpy(p->why, why.msg, sizeof(p->why));
		return p;
	}
	(void)err_set(e, p->rc, "%s", why.msg);
	h5_index_free(p->index);
	free(p);
	return NULL;
}

/* index_prefetch_index_of - the start of an array's index; false if it has none of its own. */
static bool index_prefetch_index_of(struct h5_source *s, uint32_t array, uint64_t *ret)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	const struct h5_array *x = &s->arrays[array];
	struct h5_layout l;

	if (x->file || a->unreadable || a->layout == DS_VIRTUAL || a->layout == DS_EXTERNAL ||
	    atomic_load_explicit(&s->places[x->slot], memory_order_relaxed) ||
	    h5_layout_read(&s->raw, s->raw.base + x->addr, &l, NULL) < 0 ||
	    l.cls != HDF5_LAYOUT_CHUNKED || l.index == HDF5_INDEX_SINGLE ||
	    l.index == HDF5_INDEX_IMPLICIT)
		return false;
	*ret = l.addr;
	return l.addr < s->raw.size;
}

/* index_prefetch - called before the index of an array is read: if chunks of one array after the
 * other are located, as a listing of everything does, prefetch the indexes of the next arrays of a
 * remote file in parallel. Their object headers are cached by then, as the model was made from
 * them. */
static void index_prefetch(struct h5_source *s, uint32_t array)
{
	struct index_prefetch *c = &s->scout;
	struct blob_part parts[SCOUT_MOST];
	uint32_t n = s->g.base.ds.n_arrays;
	size_t some = 0;
	uint64_t at;

	if (!isolated_remote(&s->g))
		return;
	if (array != c->last + 1) {
		c->last = c->end = array;
		c->step = 1;
		return;
	}
	c->last = array;
	if (array + c->step / 2 < c->end)
		return;
	c->step = c->step < SCOUT_MOST ? 2 * c->step : SCOUT_MOST;
	c->end = c->end > array ? c->end : array + 1;
	for (uint32_t i = 0; i < c->step && c->end < n; i++, c->end++)
		if (index_prefetch_index_of(s, c->end, &at))
			parts[some++] =
				(struct blob_part){at, u64_min(ROOT_BYTES, s->raw.size - at)};
	if (some)
		blob_want(s->g.blob, parts, some);
}

/* locate_place_of - the locations of an array's object, loaded on first use; NULL with e
 * set. */
static const struct h5_place *locate_place_of(struct h5_source *s, uint32_t array,
					      struct err *e)
{
	_Atomic(struct h5_place *) *slot = &s->places[s->arrays[array].slot];
	struct h5_place *p = atomic_load_explicit(slot, memory_order_acquire);

	if (!p) {
		int rc = cancel_lock(&s->load);

		if (rc < 0) {
			(void)err_set(e, rc, "cancelled while another index was read");
			return NULL;
		}
		p = atomic_load_explicit(slot, memory_order_acquire);
		if (!p) {
			index_prefetch(s, array);
			p = locate_load(s, array, e);
			if (p)
				atomic_store_explicit(slot, p, memory_order_release);
		}
		(void)pthread_mutex_unlock(&s->load);
	}
	if (p && p->rc < 0) {
		(void)err_set(e, p->rc, "%s", p->why);
		return NULL;
	}
	return p;
}

/* library_only - elements that only the library can find. */
static bool library_only(const struct ds_array *a, const struct h5_array *x)
{
	return x->file || a->layout == DS_VIRTUAL || a->layout == DS_EXTERNAL;
}

enum reach { INSIDE, PARTLY, BEYOND };

/* reach_of - compare a chunk with the stored extent; the array may be longer. */
static enum reach reach_of(const struct ds_array *a, const struct h5_array *x,
			   const uint64_t *at)
{
	enum reach r = INSIDE;

	for (uint32_t i = 0; i < x->rank; i++) {
		uint64_t from = at[i] * a->chunk[i];

		if (from >= x->extent[i])
			return BEYOND;
		if (u64_min(from + a->chunk[i], a->shape[i]) > x->extent[i])
			r = PARTLY;
	}
	return r;
}

static bool cut_short(const struct ds_array *a, const struct h5_array *x)
{
	for (uint32_t i = 0; i < x->rank; i++)
		if (a->shape[i] != x->extent[i])
			return true;
	return false;
}

static int locate_range(const struct h5_source *s, uint64_t off, uint64_t len,
			struct chunk_ref *ret, struct err *e)
{
	if (off > s->raw.size || len > s->raw.size - off)
		return err_set(e, -EBADMSG,
			       "a chunk at %llu of %llu bytes exceeds the file's "
			       "%llu",
			       (unsigned long long)off, (unsigned long long)len,
			       (unsigned long long)s->raw.size);
	ret->where = CHUNK_RANGE;
	ret->off = off;
	ret->len = len;
	return 0;
}

static int locate_chunk(const struct h5_source *s, uint32_t array, const struct h5_place *p,
			uint64_t linear, enum reach reach, struct chunk_ref *ret, struct err *e)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	struct h5_chunk c = h5_index_get(p->index, linear);

	if (c.addr == UINT64_MAX)
		return 0;
	ret->where = CHUNK_SYNTH;
	if (a->access != DS_STORED || (reach == PARTLY && s->arrays[array].pad_unknown))
		return 0;
	if (a->chain.n == 0 && c.size != a->chunk_bytes)
		return err_set(e, -EBADMSG, "an unfiltered chunk has %llu bytes, not %llu",
			       (unsigned long long)c.size, (unsigned long long)a->chunk_bytes);
	ret->filter_mask = c.mask;
	return locate_range(s, c.addr, c.size, ret, e);
}

/* locate_piece - locate a chunk of an array stored in one piece. */
static int locate_piece(const struct h5_source *s, uint32_t array, const struct h5_place *p,
			const uint64_t *at, struct chunk_ref *ret, struct err *e)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	uint64_t first, all, bytes, end;
	int rc;

	if (p->layout.addr == UINT64_MAX && !p->layout.external)
		return 0;
	ret->where = CHUNK_SYNTH;
	if (a->access != DS_STORED || p->layout.external || cut_short(a, &s->arrays[array]))
		return 0;
	all = ds_split_range(a, 0, at, &first, &bytes);
	if ((p->layout.size && all > p->layout.size) || ckd_add(&end, first, bytes) ||
	    end > all || ckd_add(&end, first, p->layout.addr))
		return err_set(e, -EBADMSG,
			       "the file has %llu bytes for the array, which needs %llu",
			       (unsigned long long)p->layout.size, (unsigned long long)all);
	rc = locate_range(s, end, bytes, ret, e);
	ret->pad = a->chunk_bytes - bytes;
	return rc;
}

int h5_locate(struct source *src, uint32_t array, uint64_t linear, struct chunk_ref *ret,
	      struct err *e)
{
	struct h5_source *s = h5_of(src);
	const struct ds_array *a = &src->ds.arrays[array];
	const struct h5_array *x = &s->arrays[array];
	struct chunk_ref out = {.where = CHUNK_ABSENT};
	const struct h5_place *p;
	uint64_t at[DS_RANK_MAX];
	enum reach reach;
	int rc = 0;

	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "%s", a->unreadable);
	ds_chunk_coords(a, linear, at);
	reach = reach_of(a, x, at);
	if (reach == BEYOND) {
		*ret = out;
		return 0;
	}
	if (library_only(a, x)) {
		*ret = (struct chunk_ref){.where = CHUNK_SYNTH};
		return 0;
	}
	p = locate_place_of(s, array, e);
	if (!p)
		return e && e->code ? e->code : -EIO;
	if (p->library)
		out.where = CHUNK_SYNTH;
	else if (p->index)
		rc = locate_chunk(s, array, p, linear, reach, &out, e);
	else
		rc = locate_piece(s, array, p, at, &out, e);
	if (rc == 0)
		*ret = out;
	return rc;
}

/* locate_inside - the first chunk at or after `from` that the file may have; false when there
 * is none. */
static bool locate_inside(const struct ds_array *a, const struct h5_array *x, uint64_t from,
			  uint64_t *ret)
{
	uint64_t at[DS_RANK_MAX], have[DS_RANK_MAX];

	if (from >= a->n_chunks)
		return false;
	for (uint32_t i = 0; i < a->rank; i++) {
		uint64_t len = i < x->rank ? x->extent[i] : a->shape[i];

		have[i] = len / a->chunk[i] + (len % a->chunk[i] != 0);
		if (have[i] == 0)
			return false;
	}
	ds_chunk_coords(a, from, at);
	for (uint32_t i = 0; i < a->rank; i++) {
		if (at[i] < have[i])
			continue;
		/* the rest of this row is outside: go to the next row, carrying upwards */
		for (uint32_t k = i; k < a->rank; k++)
			at[k] = 0;
		for (; i > 0 && ++at[i - 1] >= have[i - 1]; i--)
			at[i - 1] = 0;
		if (i == 0)
			return false;
		break;
	}
	*ret = ds_chunk_linear(a, at);
	return true;
}

int h5_next(struct source *src, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	struct h5_source *s = h5_of(src);
	const struct ds_array *a = &src->ds.arrays[array];
	const struct h5_array *x = &s->arrays[array];
	const struct h5_place *p = NULL;
	uint64_t next;

	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "%s", a->unreadable);
	if (!library_only(a, x)) {
		p = locate_place_of(s, array, e);
		if (!p)
			return e && e->code ? e->code : -EIO;
	}
	if (p && !p->library && !p->index && p->layout.addr == UINT64_MAX &&
	    !p->layout.external)
		return err_set(e, -ENOENT, "nothing is stored");
	while (locate_inside(a, x, from, &next)) {
		from = p && p->index ? h5_index_next(p->index, next) : next;
		if (from == next) {
			*ret = next;
			return 0;
		}
		if (from == UINT64_MAX)
			break;
	}
	return err_set(e, -ENOENT, "no more chunks are stored");
}

/* stored_at - the stored bytes of a chunk, as far as they are known without waiting. */
static bool stored_at(struct h5_source *s, uint32_t array, const struct h5_place *p,
		      uint64_t linear, struct blob_part *ret)
{
	struct chunk_ref ref = {.where = CHUNK_ABSENT};
	struct h5_chunk c = {.addr = UINT64_MAX};

	if (linear >= s->g.base.ds.arrays[array].n_chunks)
		return false;
	if (p->index)
		c = h5_index_get(p->index, linear); /* also if only the library can decode it */
	else if (h5_locate(&s->g.base, array, linear, &ref, NULL) < 0)
		return false;
	*ret = c.addr != UINT64_MAX ? (struct blob_part){c.addr, c.size}
				    : (struct blob_part){ref.off, ref.len};
	return c.addr != UINT64_MAX || ref.where == CHUNK_RANGE;
}

void h5_want(struct source *src, uint32_t array, const uint64_t *linear, size_t n)
{
	struct h5_source *s = h5_of(src);
	const struct h5_array *x = &s->arrays[array];
	struct blob_part parts[WANT_PARTS];
	const struct h5_place *p;
	size_t some = 0;

	if (library_only(&src->ds.arrays[array], x))
		return;
	/* A caller that prefetches chunks has located one before, so the index is loaded;
	 * otherwise do nothing. */
	p = atomic_load_explicit(&s->places[x->slot], memory_order_acquire);
	if (!p || p->rc < 0 || p->library)
		return;
	for (size_t i = 0; i < n; i++) {
		some += stored_at(s, array, p, linear[i], &parts[some]);
		if (some == WANT_PARTS || (i + 1 == n && some > 0)) {
			blob_want(s->g.blob, parts, some);
			some = 0;
		}
	}
}
