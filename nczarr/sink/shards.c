/* SPDX-License-Identifier: BSD-3-Clause */
/* shards.c - chunks inside shards. They are collected in a file. At the end each shard with a new
 * part is written whole: new parts, and those of the old shard unchanged, in the order of their
 * slots. Spec: Zarr v3, "Sharding codec". */
#include "nczarr/sink/sink_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/core/endian.h"
#include "base/os/io.h"

#define NONE UINT64_MAX /* as a length: the chunk is absent */
#define COPY ((size_t)1 << 20)
#define ENTRY 16u /* bytes of a slot in the index */

/* shards_grid - a grid of objects that contains the old one and the new one of an array. */
static void shards_grid(const struct zs_array *za, uint64_t *ret)
{
	const struct zr_meta *m = za->meta;
	const uint64_t *per = m->shard->grid;

	for (uint32_t d = 0; d < m->rank; d++)
		ret[d] = d + m->tail < m->rank ? (za->grid[d] + per[d]) / per[d] : 1;
}

int zs_shard_put(struct zarr_sink *s, uint32_t array, struct zs_array *za,
		 const uint64_t *coords, const uint8_t *p, size_t len, bool drop, struct err *e)
{
	const struct zr_meta *m = za->meta;
	const struct zr_shard *sh = m->shard;
	struct zs_part part = {.array = array, .off = s->spool_len, .seq = s->n_parts};
	uint64_t at[DS_RANK_MAX + 1], len_of[DS_RANK_MAX + 1];
	int rc = 0;

	part.slot = zr_shard_slot(m, sh, coords);
	shards_grid(za, len_of);
	for (uint32_t d = 0; d < m->rank; d++)
		at[d] = coords[d] / sh->grid[d];
	part.object = grid_linear(m->rank, len_of, at);
	part.len = drop ? NONE : len;
	if (!drop && s->spool < 0)
		s->spool = openat(s->txn.txn, "parts",
				  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (!drop && s->spool < 0)
		rc = err_sys(e, errno, "'parts' in the state directory");
	if (rc == 0 && !drop && len > 0)
		rc = io_pwrite(s->spool, p, len, s->spool_len, e);
	if (rc)
		return rc;
	if (grow_array(&s->parts, &s->c_parts, s->n_parts + 1, sizeof(*s->parts)) < 0)
		return err_nomem(e);
	s->spool_len += drop ? 0 : len;
	s->parts[s->n_parts++] = part;
	return 0;
}

static int shards_by_place(const void *pa, const void *pb)
{
	const struct zs_part *a = pa, *b = pb;

	if (a->array != b->array)
		return a->array < b->array ? -1 : 1;
	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return a->seq < b->seq ? -1 : 1;
}

/* sink_shard - a shard that is being written. */
struct sink_shard {
	struct zarr_sink *s;
	const struct zs_array *za;
	const struct zr_shard *sh;
	uint64_t first[DS_RANK_MAX + 1]; /* coordinates of its first chunk */
	uint8_t *index;                  /* n slots, owned */
	int fd;
	uint64_t at; /* bytes so far */
	bool any;
};

/* from_spool - write a new part. */
static int from_spool(struct sink_shard *x, const struct zs_part *p, struct err *e)
{
	int rc = 0;

	for (uint64_t done = 0; rc == 0 && done < p->len;) {
		size_t n = (size_t)u64_min(p->len - done, COPY);
		uint8_t *to;

		buf_clear(&x->s->stored);
		to = buf_grow(&x->s->stored, n);
		rc = to ? io_pread(x->s->spool, to, n, p->off + done, e) : err_nomem(e);
		rc = rc ? rc : io_pwrite(x->fd, to, n, x->at + done, e);
		done += n;
	}
	return rc;
}

/* from_old - copy the chunk of a slot from the store. *ret_len NONE: absent. */
static int from_old(struct sink_shard *x, const uint64_t *coords, uint64_t *ret_len,
		    struct err *e)
{
	struct zr_source *z = zr_of(x->s->real);
	const uint32_t array = x->za->real;
	const struct ds_array *a = &z->base.ds.arrays[array];
	struct chunk_location location;
	uint8_t *to;
	int rc;

	*ret_len = NONE;
	for (uint32_t d = 0; d < a->rank; d++)
		if (coords[d] >= a->grid[d] || coords[d] >= x->za->grid[d])
			return 0;
	rc = zr_find_in(&z->base, array, ds_chunk_linear(a, coords), &location, e);
	if (rc || location.where != ZR_PART)
		return rc;
	*ret_len = location.len;
	chunk_location_release(&location);
	buf_clear(&x->s->stored);
	to = buf_grow(&x->s->stored, (size_t)location.len);
	if (!to && location.len > 0)
		return err_nomem(e);
	rc = zr_object_read(&location, location.off, to, (size_t)location.len, NULL, e);
	return rc || location.len == 0 ? rc
				       : io_pwrite(x->fd, to, (size_t)location.len, x->at, e);
}

/* slot_coords - coordinates of the chunk in a slot. false: outside the array. */
static bool slot_coords(const struct sink_shard *x, uint64_t slot, uint64_t *ret)
{
	const struct zr_meta *m = x->za->meta;
	bool in = true;

	for (uint32_t k = m->rank; k-- > 0;) {
		uint32_t d = x->sh->order ? x->sh->order[k] : k;

		ret[d] = x->first[d] + slot % x->sh->grid[d];
		slot /= x->sh->grid[d];
		if (d + m->tail < m->rank)
			in = in && ret[d] < x->za->grid[d];
	}
	return in;
}

/* shards_fill - write all slots; parts: new ones by slot, the last of each slot is used. */
static int shards_fill(struct sink_shard *x, const struct zs_part *parts, size_t n,
		       struct err *e)
{
	uint64_t coords[DS_RANK_MAX + 1];
	uint8_t *entry;
	size_t i = 0;
	int rc = 0;

	for (uint64_t slot = 0; rc == 0 && slot < x->sh->n; slot++) {
		const struct zs_part *p = NULL;
		uint64_t len = NONE;

		for (; i < n && parts[i].slot == slot; i++)
			p = &parts[i];
		if (slot_coords(x, slot, coords)) {
			if (p)
				len = p->len;
			if (p && len != NONE)
				rc = from_spool(x, p, e);
			else if (!p && x->za->state == ZS_OLD)
				rc = from_old(x, coords, &len, e);
		}
		entry = x->index + slot * ENTRY;
		put_uint(entry, len == NONE ? NONE : x->at, 8, x->sh->index_big);
		put_uint(entry + 8, len, 8, x->sh->index_big);
		if (len == NONE)
			continue;
		x->any = true;
		x->at += len;
	}
	return rc;
}

static int write_index(struct sink_shard *x, struct err *e)
{
	struct buf *b = &x->s->stored;
	int rc;

	buf_clear(b);
	rc = codec_chain_encode(&x->sh->index, 8, x->index, (size_t)x->sh->n * ENTRY,
				x->s->scratch, b, e);
	if (rc == 0 && b->len != x->sh->index_bytes)
		rc = err_set(e, -EOPNOTSUPP, "'%.200s': the shard index has another length",
			     x->za->key);
	return rc ? rc : io_pwrite(x->fd, b->data, b->len, x->sh->index_first ? 0 : x->at, e);
}

/* write_shard - parts: all of one shard. */
static int write_shard(struct zarr_sink *s, const struct zs_part *parts, size_t n,
		       struct err *e)
{
	const struct zs_array *za = &s->arrays[parts[0].array];
	struct zr_meta m = *za->meta;
	struct sink_shard x = {.s = s, .za = za, .sh = m.shard, .fd = -1};
	uint64_t at[DS_RANK_MAX + 1], len[DS_RANK_MAX + 1], file;
	char key[ZR_OBJECT_KEY];
	int rc;

	shards_grid(za, len);
	grid_coords(m.rank, len, parts[0].object, at);
	for (uint32_t d = 0; d < m.rank; d++)
		x.first[d] = at[d] * x.sh->grid[d];
	if (x.sh->n > PTRDIFF_MAX / ENTRY)
		return err_set(e, -ERANGE, "'%.200s': a shard has too many chunks", za->key);
	x.index = alloc_array((size_t)x.sh->n, ENTRY);
	if (!x.index)
		return err_nomem(e);
	m.key = za->key;
	x.at = x.sh->index_first ? x.sh->index_bytes : 0;
	rc = zr_object_key(&m, at, key, e);
	rc = rc ? rc : zs_txn_new(&s->txn, &file, &x.fd, e);
	rc = rc ? rc : shards_fill(&x, parts, n, e);
	rc = rc ? rc : write_index(&x, e);
	rc = rc ? rc : zs_txn_wrote(&s->txn, x.fd, x.at, e);
	if (rc == 0) /* a shard without chunks does not exist */
		rc = zs_txn_step(&s->txn, x.any ? ZS_PUT : ZS_DROP, file, key, e);
	close_fd(&x.fd); /* synced with the others */
	free(x.index);
	return rc;
}

int zs_shards_write(struct zarr_sink *s, struct err *e)
{
	int rc = 0;

	if (s->n_parts == 0)
		return 0;
	qsort(s->parts, s->n_parts, sizeof(*s->parts), shards_by_place);
	for (size_t i = 0, n; rc == 0 && i < s->n_parts; i += n) {
		for (n = 1; i + n < s->n_parts; n++)
			if (s->parts[i + n].array != s->parts[i].array ||
			    s->parts[i + n].object != s->parts[i].object)
				break;
		rc = write_shard(s, s->parts + i, n, e);
	}
	return rc;
}
