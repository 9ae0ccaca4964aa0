/* SPDX-License-Identifier: BSD-3-Clause */
/* shard_files.c - shards: files of several chunks. The content of a shard is determined once, from
 * the sizes of its chunks, and cached as a table of existing chunks: offset and slot of each. The
 * size, the chunk of a read, and the bytes of the index are computed from the table.
 *
 * Tables have a cache of their own with one load per shard; its lock is not held during calls of
 * chunkio. The content of chunks does not matter here. */
#include "nczarr/view/shard_files_int.h"

#include "base/core/endian.h"
#include "base/os/io.h"
#include "codecs/core/codec.h"
#include "translate/cache/cache.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define ENTRY 16      /* bytes of a slot in the index: offset, length */
#define SUM 4         /* bytes of the checksum after them */
#define PIECE 64      /* slots of the index per step of the checksum */
#define CHEAP_MAX 256 /* chunks to stat during a listing */
#define SIZE_MAX_FILE ((uint64_t)INT64_MAX)

struct zr_shards {
	struct source *source;
	struct chunkio *io;
	const struct zr_grid *grids;
	struct cache *tables; /* of (array, file): struct shard_table */
};

/* shard_table - the content of a shard, in the cache. */
struct shard_table {
	uint64_t size;    /* bytes of the shard; 0: it has no chunk, and does not exist */
	uint64_t end;     /* end of the chunks and start of the index */
	uint32_t n;       /* chunks that exist */
	uint32_t sum;     /* of the index */
	uint64_t start[]; /* n entries, ascending, and `end`; then n slots, 32 bits each */
};

/* shard_file - a shard in use. */
struct shard_file {
	uint32_t array;
	const struct ds_array *a;
	const struct zr_grid *g;
	uint64_t file;
	uint64_t slots;            /* of the index */
	struct cache_entry *entry; /* a reference; NULL: none yet */
	const struct shard_table *t;
	const uint32_t *slot; /* t->n entries */
};

/* ---- the index ---- */

/* shard_slot_at - the first chunk in the table whose slot is not before `slot`. */
static uint32_t shard_slot_at(const struct shard_file *x, uint64_t slot)
{
	uint32_t at = 0;

	BISECT(at, x->t->n, mid, x->slot[mid] < slot);
	return at;
}

/* put_entries - n entries of the index from slot `slot` on. */
static void put_entries(const struct shard_file *x, uint64_t slot, size_t n, uint8_t *out)
{
	uint32_t i = shard_slot_at(x, slot);

	for (; n > 0; n--, slot++, out += ENTRY) {
		if (i == x->t->n || x->slot[i] != slot) {
			memset(out, 0xff, ENTRY);
			continue;
		}
		put_le64(out, x->t->start[i]);
		put_le64(out + 8, x->t->start[i + 1] - x->t->start[i]);
		i++;
	}
}

static uint32_t shard_sum_of(const struct shard_file *x)
{
	uint8_t piece[PIECE * ENTRY];
	uint32_t sum = 0;
	size_t n;

	for (uint64_t slot = 0; slot < x->slots; slot += n) {
		n = (size_t)u64_min(x->slots - slot, PIECE);
		put_entries(x, slot, n, piece);
		sum = codec_crc32c_sum(sum, piece, n * ENTRY);
	}
	return sum;
}

/* put_index - bytes [off, off+n) of the index and its checksum. */
static void put_index(const struct shard_file *x, uint64_t off, size_t n, uint8_t *out)
{
	uint8_t one[ENTRY];
	uint64_t slot;
	size_t skip, part;

	for (; n > 0; off += part, out += part, n -= part) {
		slot = off / ENTRY;
		skip = (size_t)(off % ENTRY);
		if (slot < x->slots && skip == 0 && n >= ENTRY) {
			part = (size_t)u64_min(n / ENTRY, x->slots - slot);
			put_entries(x, slot, part, out);
			part *= ENTRY;
			continue;
		}
		if (slot < x->slots)
			put_entries(x, slot, 1, one);
		else
			put_le64(one, x->t->sum);
		part = (size_t)u64_min(n, (slot < x->slots ? ENTRY : SUM) - skip);
		memcpy(out, one + skip, part);
	}
}

/* ---- the table of a shard ---- */

/* shard_found - chunks of a shard during counting: x->slots entries at most. */
struct shard_found {
	uint64_t *start;
	uint32_t *slot;
	uint32_t n;
	uint64_t end;
};

static int shard_take(const struct shard_file *x, struct shard_found *f, uint64_t slot,
		      uint64_t size, struct err *e)
{
	uint64_t end;

	if (ckd_add(&end, f->end, size) || end > SIZE_MAX_FILE - ENTRY * x->slots - SUM)
		return err_set(e, -ERANGE, "a shard has more than %" PRIu64 " bytes",
			       SIZE_MAX_FILE);
	f->start[f->n] = f->end;
	f->slot[f->n++] = (uint32_t)slot;
	f->end = end;
	return 0;
}

/* shard_count - get the size of each chunk of a run; after an absent one skip to the next
 * existing one. */
static int shard_count(struct zr_shards *s, const struct shard_file *x, uint64_t i,
		       struct shard_found *f, struct err *e)
{
	uint64_t first, slot, n, at, end, size;
	struct err why = ERR_INIT;
	int rc = 0;

	zr_grid_run(x->a, x->g, x->file, i, &first, &slot, &n);
	end = first + n;
	at = first;
	if (n > 0) {
		chunkio_want_run(s->source, x->array, first, n);
		chunkio_measure(s->io, x->array, first, n);
	}
	while (at < end) {
		rc = chunkio_stat(s->io, x->array, at, &size, &why);
		if (rc == 0) {
			rc = shard_take(x, f, slot + (at - first), size, &why);
			at++;
		} else if (rc == -ENOENT) {
			why.code = 0;
			rc = chunkio_next(s->io, x->array, at + 1, &at, &why);
		}
		if (rc < 0)
			break;
	}
	if (rc == -ENOENT)
		rc = 0; /* there are no more */
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

static void point(struct shard_file *x, const uint8_t *data)
{
	x->t = (const struct shard_table *)(const void *)data; /* allocated, so aligned */
	x->slot = (const uint32_t *)(const void *)(x->t->start + x->t->n + 1);
}

/* shard_keep - copy the result into the memory of the cache. */
static int shard_keep(struct shard_file *x, const struct shard_found *f, struct err *e)
{
	uint8_t *data = cache_alloc(x->entry, sizeof(struct shard_table) +
						      (f->n + (size_t)1) * sizeof(uint64_t) +
						      f->n * sizeof(uint32_t));
	struct shard_table *t;

	if (!data)
		return err_nomem(e);
	t = (struct shard_table *)(void *)data; /* allocated, so aligned */
	*t = (struct shard_table){.n = f->n, .end = f->end};
	t->start[f->n] = f->end;
	point(x, data);
	if (f->n > 0) {
		memcpy(t->start, f->start, f->n * sizeof(*f->start));
		memcpy(t->start + f->n + 1, f->slot, f->n * sizeof(*f->slot));
		t->size = f->end + ENTRY * x->slots + SUM;
		t->sum = shard_sum_of(x);
	}
	return 0;
}

/* shard_any - 1: a shard has a chunk; 0: none. */
static int shard_any(struct zr_shards *s, uint32_t array, uint64_t file, struct err *e)
{
	const struct ds_array *a = &s->source->ds.arrays[array];
	const struct zr_grid *g = &s->grids[array];
	uint64_t runs = zr_grid_runs(a, g), first, slot, n, next = 0;

	for (uint64_t i = 0; i < runs; i++) {
		int rc = 0;

		zr_grid_run(a, g, file, i, &first, &slot, &n);
		if (n > 0 && next < first)
			rc = chunkio_next(s->io, array, first, &next, e);
		if (rc < 0)
			return rc == -ENOENT ? 0 : rc;
		if (n > 0 && next < first + n)
			return 1;
	}
	return 0;
}

static int shard_load(struct zr_shards *s, struct shard_file *x, struct err *e)
{
	struct shard_found f = {0};
	uint64_t runs = zr_grid_runs(x->a, x->g);
	int rc = shard_any(s, x->array, x->file, e);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return shard_keep(x, &f, e);
	f.start = alloc_array((size_t)x->slots, sizeof(*f.start));
	f.slot = alloc_array((size_t)x->slots, sizeof(*f.slot));
	rc = f.start && f.slot ? 0 : err_nomem(e);
	for (uint64_t i = 0; rc == 0 && i < runs; i++)
		rc = shard_count(s, x, i, &f, e);
	rc = rc ? rc : shard_keep(x, &f, e);
	free(f.start);
	free(f.slot);
	return rc;
}

static int shard_known(const struct zr_shards *s, uint32_t array, uint64_t file, struct err *e)
{
	if (array >= s->source->ds.n_arrays || !s->grids[array].per)
		return err_set(e, -EINVAL, "array %" PRIu32 " has no shards", array);
	if (file >= s->grids[array].n)
		return err_set(e, -ENOENT, "no such shard");
	return 0;
}

/* open_shard - get a shard with its table; finish with cache_put(x->entry). -ENOENT: it has no
 * chunk, and needs no cache_put(). */
static int open_shard(struct zr_shards *s, uint32_t array, uint64_t file, struct shard_file *x,
		      struct err *e)
{
	struct err why = ERR_INIT;
	size_t len;
	int rc = shard_known(s, array, file, e);

	if (rc < 0)
		return rc;
	*x = (struct shard_file){.array = array,
				 .a = &s->source->ds.arrays[array],
				 .g = &s->grids[array],
				 .file = file,
				 .slots = s->grids[array].slots};
	rc = cache_get(s->tables, array, file, &x->entry, e);
	if (rc == CACHE_LOAD) {
		rc = shard_load(s, x, &why);
		if (rc < 0) {
			why.code = rc;
			cache_fail(x->entry, &why);
			return err_set(e, rc, "%s", why.msg);
		}
		cache_publish(x->entry);
	}
	if (rc < 0)
		return rc;
	point(x, cache_data(x->entry, &len));
	if (x->t->n > 0)
		return 0;
	cache_put(x->entry);
	return err_set(e, -ENOENT, "no chunk of the shard was ever written");
}

/* ---- reading ---- */

/* chunk_in - the chunk of an entry of its table. */
static uint64_t chunk_in(const struct shard_file *x, uint32_t i)
{
	uint64_t chunk = 0;

	(void)zr_grid_slot(x->a, x->g, x->file, x->slot[i], &chunk); /* it has this slot */
	return chunk;
}

/* shard_piece_of - bytes [off, off+n) of a chunk, which must exist. */
static int shard_piece_of(struct zr_shards *s, uint32_t array, uint64_t chunk, uint64_t off,
			  size_t n, uint8_t *room, struct span *ret, struct err *e)
{
	int rc = chunkio_read(s->io, array, chunk, off, n, room, ret, e);

	if (rc == -ENOENT)
		return err_set(e, -ESTALE, "a chunk of the shard was removed");
	if (rc < 0 || ret->len + ret->zeros == n)
		return rc;
	span_done(ret);
	return err_set(e, -ESTALE, "the size of a chunk of the shard was changed");
}

/* chunk_at - the chunk that contains byte `off` of the shard, off < t->end. */
static uint32_t chunk_at(const struct shard_table *t, uint64_t off)
{
	uint32_t after = 1;

	BISECT(after, t->n, mid, t->start[mid] <= off);
	return after - 1;
}

/* gather - a read of several parts. A part of a descriptor is deferred until the next part is
 * known: chunks that were written consecutively are often consecutive in the file, too, and are
 * read at once, or passed without a read. */
struct gather {
	uint8_t *room;
	size_t n;         /* bytes so far, with the deferred ones */
	struct span wait; /* deferred part of a descriptor: the last wait.len of the n */
	bool read;        /* a descriptor was read */
};

static int shard_settle(struct gather *g, struct err *e)
{
	size_t len = g->wait.len;
	int rc;

	if (len == 0)
		return 0;
	rc = io_pread(g->wait.fd, g->room + g->n - len, len, g->wait.off, e);
	g->wait.len = 0;
	g->read = true;
	return rc;
}

/* shard_add - add a part, which is released here. */
static int shard_add(struct gather *g, struct span *s, struct err *e)
{
	bool in_file = !s->mem && s->len > 0;
	int rc = 0;

	if (in_file && g->wait.len > 0 && g->wait.fd == s->fd &&
	    g->wait.off + g->wait.len == s->off) {
		g->wait.len += s->len;
	} else {
		rc = shard_settle(g, e);
		if (in_file)
			g->wait = *s;
	}
	if (!in_file && s->len > 0 && s->mem != g->room + g->n)
		memcpy(g->room + g->n, s->mem, s->len);
	g->n += s->len;
	if (rc == 0 && s->zeros > 0) {
		rc = shard_settle(g, e);
		memset(g->room + g->n, 0, s->zeros);
		g->n += s->zeros;
	}
	g->wait.done = NULL;
	span_done(s);
	return rc;
}

/* shard_collect - bytes [off, off+n) of a shard, from as many chunks as it takes, and of the
 * index. */
static int shard_collect(struct zr_shards *s, const struct shard_file *x, uint64_t off,
			 size_t n, uint8_t *room, struct span *ret, struct err *e)
{
	struct gather g = {.room = room};
	const struct shard_table *t = x->t;
	int rc = 0;

	for (uint32_t i = chunk_at(t, off); rc == 0 && g.n < n && off + g.n < t->end; i++) {
		uint64_t from = off + g.n - t->start[i];
		size_t part = (size_t)u64_min(n - g.n, t->start[i + 1] - t->start[i] - from);
		struct span one;

		if (part == 0)
			continue; /* a chunk without bytes */
		rc = shard_piece_of(s, x->array, chunk_in(x, i), from, part, room + g.n, &one,
				    e);
		rc = rc ? rc : shard_add(&g, &one, e);
	}
	if (rc == 0 && g.n == n && g.wait.len == n) {
		*ret = g.wait;
		return 0;
	}
	rc = rc ? rc : shard_settle(&g, e);
	if (rc == 0 && g.read)
		rc = source_check(s->source, e);
	if (rc < 0)
		return rc;
	if (g.n < n)
		put_index(x, off + g.n - t->end, n - g.n, room + g.n);
	*ret = (struct span){.mem = room, .fd = -1, .len = n};
	return 0;
}

int zr_shards_read(struct zr_shards *s, uint32_t array, uint64_t file, uint64_t off, size_t len,
		   uint8_t *room, struct span *ret, struct err *e)
{
	struct shard_file x;
	uint32_t i;
	size_t n;
	int rc = open_shard(s, array, file, &x, e);

	if (rc < 0)
		return rc;
	n = off < x.t->size ? (size_t)u64_min(len, x.t->size - off) : 0;
	i = n > 0 && off < x.t->end ? chunk_at(x.t, off) : x.t->n;
	if (n == 0) {
		*ret = (struct span){.fd = -1};
	} else if (i < x.t->n && n <= x.t->start[i + 1] - off) {
		uint64_t chunk = chunk_in(&x, i), from = off - x.t->start[i];

		cache_put(x.entry);
		return shard_piece_of(s, array, chunk, from, n, room, ret, e);
	} else {
		rc = shard_collect(s, &x, off, n, room, ret, e);
	}
	cache_put(x.entry);
	return rc;
}

/* ---- the object, and looking at shards ---- */

int zr_shards_new(struct source *source, struct chunkio *io, const struct zr_grid *grids,
		  uint64_t budget, struct zr_shards **ret, struct err *e)
{
	struct zr_shards *s = alloc_array(1, sizeof(*s));

	if (!s)
		return err_nomem(e);
	*s = (struct zr_shards){.source = source, .io = io, .grids = grids};
	s->tables = cache_new(budget);
	if (!s->tables) {
		free(s);
		return err_nomem(e);
	}
	*ret = s;
	return 0;
}

void zr_shards_free(struct zr_shards *s)
{
	if (s)
		cache_free(s->tables);
	free(s);
}

int zr_shards_stat(struct zr_shards *s, uint32_t array, uint64_t file, uint64_t *ret_size,
		   struct err *e)
{
	struct shard_file x;
	int rc = open_shard(s, array, file, &x, e);

	if (rc < 0)
		return rc;
	*ret_size = x.t->size;
	cache_put(x.entry);
	return 0;
}

bool zr_shards_stat_cheap(struct zr_shards *s, uint32_t array, uint64_t file)
{
	const struct zr_grid *g = &s->grids[array];
	uint64_t chunk;

	if (shard_known(s, array, file, NULL) < 0)
		return false;
	if (cache_has(s->tables, array, file))
		return true;
	if (g->slots > CHEAP_MAX)
		return false;
	for (uint64_t i = 0; i < g->slots; i++)
		if (zr_grid_slot(&s->source->ds.arrays[array], g, file, i, &chunk) &&
		    !chunkio_stat_cheap(s->io, array, chunk))
			return false;
	return true;
}

int zr_shards_next(struct zr_shards *s, uint32_t array, uint64_t from, uint64_t *ret,
		   struct err *e)
{
	const struct zr_grid *g;
	const struct ds_array *a;
	uint64_t first, slot, n;
	int rc = shard_known(s, array, from, e);

	if (rc < 0)
		return rc;
	a = &s->source->ds.arrays[array];
	g = &s->grids[array];
	for (uint64_t file = from; file < g->n;) {
		zr_grid_run(a, g, file, 0, &first, &slot, &n);
		rc = chunkio_next(s->io, array, first, &first, e);
		if (rc < 0)
			return rc;
		*ret = zr_grid_file(a, g, first);
		if (zr_grid_runs(a, g) == 1)
			return 0;
		rc = shard_any(s, array, file, e);
		if (rc < 0)
			return rc;
		*ret = file;
		if (rc == 1)
			return 0;
		/* files before the row of that chunk have none either */
		n = first / (a->n_chunks / a->grid[0]) / g->per[0] * (g->n / g->len[0]);
		file = u64_max(file + 1, n);
	}
	return err_set(e, -ENOENT, "no more shards");
}

/* ---- provenance ---- */

#define PIECES_BYTES 60000 /* the kernel's limit of a value is 65536 */

/* tell_pieces - a line for each chunk. */
static int tell_pieces(struct zr_shards *s, const struct shard_file *x, struct buf *out,
		       struct err *e)
{
	const struct shard_table *t = x->t;
	int rc = 0;

	for (uint32_t i = 0; i < t->n && rc == 0; i++) {
		if (out->len > PIECES_BYTES) {
			buf_printf(out, "and %" PRIu32 " more\n", t->n - i);
			break;
		}
		rc = provenance_piece(s->io, s->source, x->array, chunk_in(x, i), t->start[i],
				      t->start[i + 1] - t->start[i], out, e);
	}
	return rc;
}

int zr_shards_provenance(struct zr_shards *s, uint32_t array, uint64_t file,
			 const struct plan *p, enum provenance what, struct buf *out,
			 struct err *e)
{
	struct shard_file x;
	int rc = shard_known(s, array, file, e);

	if (rc == 0 && (what == PROVENANCE_SOURCE || what == PROVENANCE_CHAIN))
		return provenance_array(s->source, &s->source->ds.arrays[array], p, what, out,
					e);
	if (rc == 0 && what != PROVENANCE_PIECES && what != PROVENANCE_PLAN)
		return err_set(e, -ENODATA, "the bytes of a shard come from several places");
	rc = rc ? rc : open_shard(s, array, file, &x, e);
	if (rc == -ENOENT)
		return err_set(e, -ENODATA, "no such shard");
	if (rc < 0)
		return rc;
	if (what == PROVENANCE_PIECES)
		rc = tell_pieces(s, &x, out, e);
	else
		buf_printf(out, "shard: %" PRIu32 " of %" PRIu64 " chunks", x.t->n, x.slots);
	cache_put(x.entry);
	if (rc == 0 && !buf_ok(out))
		rc = err_nomem(e);
	return rc;
}
