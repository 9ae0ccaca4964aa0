/* SPDX-License-Identifier: BSD-3-Clause */
/* stored_ranges.c - finds arrays whose stored bytes readers of Zarr or HDF5 can use: numbers in
 * one of the two byte orders, plain or compressed by deflate, each chunk in one piece.
 *
 * The library reports their locations (its interface for maps of files). A chunk without a
 * reported location is read through the library: it was never written, is in several pieces, or is
 * in another file. */
#include "hdf5view/hdf4/hdf4_int.h"

#ifdef NCZARRFS_HDF4
#define DATAINFO_MASTER
#include "hdf5view/hdf4/hdf4_library.h"
#include <string.h>

#define CHUNKS_MAX ((uint64_t)1 << 20) /* a file has 65535 at most */

/* one_place - the stored bytes of a chunk, or of an array without chunks (at is NULL). */
static bool one_place(int32 sds, int32 *at, struct h4_place *ret)
{
	int32 off[2] = {0}, len[2] = {0};

	/* query the count first: the library writes all that exist, however many are requested */
	if (SDgetdatainfo(sds, at, 0, 0, NULL, NULL) != 1 ||
	    SDgetdatainfo(sds, at, 0, 1, off, len) != 1 || off[0] <= 0 || len[0] <= 0)
		return false;
	*ret = (struct h4_place){.off = (uint32_t)off[0], .len = (uint32_t)len[0]};
	return true;
}

/* find_chunks - locate the chunks. *ret_all: every chunk has a location. Returns how many have
 * one. */
static uint64_t find_chunks(const struct ds_array *a, int32 sds, bool plain,
			    struct h4_place *places, bool *ret_all)
{
	uint64_t at[DS_RANK_MAX], found = 0;
	int32 coords[H4_RANK_MAX];
	bool chunked;

	/* this call keeps the table of chunks open; otherwise the library reads it again for each
	 * chunk */
	if (!h4_chunk_lengths(sds, coords, &chunked) || !chunked)
		return 0;
	for (uint64_t i = 0; i < a->n_chunks; i++) {
		struct h4_place p;

		ds_chunk_coords(a, i, at);
		for (uint32_t d = 0; d < a->rank; d++)
			coords[d] = (int32)
				at[d]; /* fewer than elements, whose number has 31 bits */
		if (!one_place(sds, coords, &p) || (plain && p.len != a->chunk_bytes))
			continue;
		places[i] = p;
		found++;
	}
	*ret_all = found == a->n_chunks;
	return found;
}

/* find_whole - locate an array without chunks; plain: divide it if necessary. */
static bool find_whole(const struct ds_array *a, int32 sds, bool plain, struct h4_place *ret)
{
	uint64_t bytes = a->type.size;

	for (uint32_t i = 0; i < a->rank; i++)
		if (ckd_mul(&bytes, bytes, a->shape[i]))
			return false;
	if (!one_place(sds, NULL, ret))
		return false;
	return plain ? ret->len == bytes : a->n_chunks == 1 && a->chunk_bytes == bytes;
}

static int set_chain(struct h4_build *b, struct h4_barray *w, struct err *e)
{
	struct codec_spec *spec;
	uint32_t *level;

	if (!w->compressed)
		return 0;
	spec = arena_alloc(b->arena, 1, sizeof(*spec));
	level = arena_alloc(b->arena, 1, sizeof(*level));
	if (!spec || !level)
		return h4_full(b, e);
	*level = w->level - 1;
	*spec = (struct codec_spec){.h5_id = CODEC_DEFLATE,
				    .n_params = 1,
				    .params = level,
				    .name = arena_strdup(b->arena, "deflate")};
	w->a.chain = (struct codec_chain){.n = 1, .specs = spec};
	return spec->name ? 0 : h4_full(b, e);
}

/* present_stored - from now on elements are in the file's byte order. */
static int present_stored(struct h4_build *b, struct h4_barray *w, bool big, struct err *e)
{
	uint8_t *fill = arena_copy(b->arena, w->a.fill, w->a.type.size);

	if (!fill)
		return h4_full(b, e);
	w->a.type.big_endian = big;
	dt_swap_to_host(&w->a.type, fill, 1);
	w->a.fill = fill;
	w->a.access = DS_STORED;
	w->a.convert = NULL;
	return set_chain(b, w, e);
}

static int stored_ranges_find(struct h4_build *b, struct h4_barray *w, int32 sds, bool big,
			      struct err *e)
{
	bool chunked = w->chunk != NULL, plain = !w->compressed;
	uint64_t n = chunked ? w->a.n_chunks : 1, bytes;
	struct h4_place *places;

	if (n > CHUNKS_MAX || ckd_mul(&bytes, n, (uint64_t)sizeof(*places)) ||
	    bytes > b->s->g.opts.max_index_bytes ||
	    bytes > (b->arena->max - b->arena->used) / 2)
		return 0; /* then the library reads them */
	places = arena_alloc(b->arena, (size_t)n, sizeof(*places));
	if (!places)
		return h4_full(b, e);
	if (!chunked)
		w->a.uniform = find_whole(&w->a, sds, plain, places);
	if (chunked ? find_chunks(&w->a, sds, plain, places, &w->a.uniform) == 0
		    : !w->a.uniform)
		return 0;
	w->x.one_piece =
		!chunked && plain; /* one that is compressed in one piece is one chunk */
	w->x.places = places;
	w->x.n_places = n;
	return present_stored(b, w, big, e);
}

int h4_pass_read(struct h4_build *b, struct h4_barray *w, struct err *e)
{
	/* native types have the byte order of the machine that wrote them */
	bool known = w->a.type.size == 1 || (w->x.type & DFNT_NATIVE) == 0;
	bool big = w->a.type.size > 1 && (w->x.type & DFNT_LITEND) == 0;
	int32 sds;
	int rc;

	if (w->x.empty || w->a.n_chunks == 0 || w->a.layout == DS_EXTERNAL || !known ||
	    (w->compressed && w->level == 0) ||
	    memcmp(w->x.extent, w->a.shape, w->a.rank * sizeof(*w->a.shape)) != 0)
		return 0;
	sds = SDselect(b->sd, w->x.index);
	if (sds == FAIL)
		return 0;
	rc = stored_ranges_find(b, w, sds, big, e);
	(void)SDendaccess(sds); /* nothing was written */
	return rc;
}

#endif
