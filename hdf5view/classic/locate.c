/* SPDX-License-Identifier: BSD-3-Clause */
/* locate.c - locates chunks by arithmetic on the header, without an index.
 *
 * Values stored in one piece are divided into chunks that are ranges of the file. For a variable
 * whose records are interleaved with other variables, each record is a chunk if it is large
 * enough; smaller records are gathered, several to a chunk. */
#include "hdf5view/classic/classic_int.h"

#include "translate/model/grid.h"
#include "translate/model/value.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* A record of at least this size is a chunk by itself. */
#define ALONE_BYTES ((uint64_t)64 << 10)
/* Target size of a gathered chunk, bytes. */
#define GATHER_BYTES ((uint64_t)1 << 20)
/* Records with a gap of at most this size between them are read together, then picked. */
#define GAP_BYTES ((uint64_t)4 << 10)
#define WINDOW_BYTES ((size_t)256 << 10)
/* The same for a remote file: a request costs about as much as this many bytes, and requests run
 * in parallel. */
#define REMOTE_GAP_BYTES ((uint64_t)32 << 10)
#define REMOTE_PARTS 64

bool cdf_chunk(const struct ds_array *a, const struct cdf_array *x, uint64_t cut_bytes,
	       bool alone, uint64_t *ret_chunk)
{
	uint64_t gather = u64_min(u64_max(cut_bytes, 1), GATHER_BYTES);

	if (x->stride == 0) {
		ds_split_chunks(a->shape, a->rank, a->type.size, cut_bytes, ret_chunk);
		return true;
	}
	if (alone || x->slab >= u64_min(ALONE_BYTES, gather) || a->shape[0] < 2) {
		ret_chunk[0] = 1;
		ds_split_chunks(a->shape + 1, a->rank - 1, a->type.size, cut_bytes,
				ret_chunk + 1);
		return true;
	}
	ds_split_chunks(a->shape, a->rank, a->type.size, gather, ret_chunk);
	return ret_chunk[0] == 1;
}

int cdf_check(struct source *src, struct err *e)
{
	const struct stat *was = &src->ds.st;
	struct stat now;

	if (cdf_remote(cdf_of(src)))
		return blob_check(cdf_of(src)->blob, false, e);
	if (fstat(cdf_of(src)->fd, &now) < 0)
		return err_sys(e, errno, "the source file");
	if (now.st_size != was->st_size || now.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	    now.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
		return err_set(e, -ESTALE, "the source file was changed after it was opened");
	return 0;
}

int cdf_poll(struct source *src, struct err *e)
{
	struct cdf_source *s = cdf_of(src);

	return cdf_remote(s) ? blob_check(s->blob, true, e) : cdf_check(src, e);
}

/* classic_locate_inside - whether bytes [off, off + len) lie in the file. */
static int classic_locate_inside(const struct source *src, uint64_t off, uint64_t len,
				 struct err *e)
{
	uint64_t size = (uint64_t)src->ds.st.st_size, end;

	if (!ckd_add(&end, off, len) && end <= size)
		return 0;
	return err_set(e, -EBADMSG,
		       "the file ends at byte %" PRIu64 ", but %" PRIu64 " bytes at %" PRIu64
		       " are needed: it is truncated, or still being written",
		       size, len, off);
}

/* classic_locate_piece - the stored bytes of a chunk that is a range: whole trailing dimensions,
 * divided along one. */
static int classic_locate_piece(struct source *src, uint32_t array, const uint64_t *at,
				uint64_t *ret_off, uint64_t *ret_len, struct err *e)
{
	const struct ds_array *a = &src->ds.arrays[array];
	const struct cdf_array *x = &cdf_of(src)->arrays[array];
	uint64_t first, off = 0;

	/* model.c has checked the end of all records and of all data in one piece */
	(void)ds_split_range(a, x->stride ? 1 : 0, at, &first, ret_len);
	if ((x->stride && ckd_mul(&off, at[0], x->stride)) || ckd_add(&off, off, x->begin) ||
	    ckd_add(&off, off, first))
		off = UINT64_MAX;
	*ret_off = off;
	return classic_locate_inside(src, off, *ret_len, e);
}

int cdf_locate(struct source *src, uint32_t array, uint64_t linear, struct chunk_ref *ret,
	       struct err *e)
{
	const struct ds_array *a = &src->ds.arrays[array];
	struct chunk_ref out = {.where = CHUNK_RANGE};
	uint64_t at[DS_RANK_MAX];
	int rc;

	if (a->access != DS_STORED) {
		*ret = (struct chunk_ref){.where = CHUNK_SYNTH};
		return 0;
	}
	ds_chunk_coords(a, linear, at);
	rc = classic_locate_piece(src, array, at, &out.off, &out.len, e);
	out.pad = a->chunk_bytes - out.len;
	if (rc == 0)
		*ret = out;
	return rc;
}

int cdf_next(struct source *src NZ_UNUSED, uint32_t array NZ_UNUSED, uint64_t from,
	     uint64_t *ret, struct err *e NZ_UNUSED)
{
	*ret = from; /* every chunk exists: netCDF writes fill values itself */
	return 0;
}

/* pick - read n records of x at off into out, through a window that holds several. */
static int pick(struct blob *b, const struct cdf_array *x, uint64_t off, uint64_t n,
		uint8_t *out, struct err *e)
{
	uint64_t fit = u64_max(WINDOW_BYTES / x->stride, 1);
	auto_free uint8_t *window = NULL;

	fit = u64_min(fit, n);
	window = alloc_array((size_t)((fit - 1) * x->stride + x->slab), 1);
	if (!window)
		return err_nomem(e);
	while (n > 0) {
		uint64_t k = u64_min(fit, n);
		int rc = blob_read(b, off, window, (size_t)((k - 1) * x->stride + x->slab), e);

		if (rc < 0)
			return rc;
		for (uint64_t i = 0; i < k; i++, out += x->slab)
			memcpy(out, window + i * x->stride, (size_t)x->slab);
		off += k * x->stride;
		n -= k;
	}
	return 0;
}

static void want_records(struct blob *b, const struct cdf_array *x, uint64_t off, uint64_t n)
{
	struct blob_part parts[REMOTE_PARTS];

	for (uint64_t i = 0; i < n; i++)
		parts[i] = (struct blob_part){off + i * x->stride, x->slab};
	blob_want(b, parts, (size_t)n);
}

static int classic_locate_each(struct blob *b, const struct cdf_array *x, uint64_t off,
			       uint64_t n, uint8_t *out, struct err *e)
{
	for (uint64_t i = 0; i < n; i++, off += x->stride, out += x->slab) {
		int rc;

		if (b->fd < 0 && i % REMOTE_PARTS == 0)
			want_records(b, x, off, u64_min(n - i, REMOTE_PARTS));
		rc = blob_read(b, off, out, (size_t)x->slab, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* classic_locate_gather - read the records of a chunk; *ret_len bytes. */
static int classic_locate_gather(struct source *src, uint32_t array, uint64_t linear,
				 uint8_t *out, uint64_t *ret_len, struct err *e)
{
	const struct cdf_source *s = cdf_of(src);
	const struct ds_array *a = &src->ds.arrays[array];
	const struct cdf_array *x = &s->arrays[array];
	uint64_t from = linear * a->chunk[0], n = u64_min(a->chunk[0], a->shape[0] - from);
	uint64_t off, end;
	int rc;

	*ret_len = n * x->slab;
	if (ckd_mul(&off, from, x->stride) || ckd_add(&off, off, x->begin) ||
	    ckd_mul(&end, n - 1, x->stride) || ckd_add(&end, end, x->slab))
		off = end = UINT64_MAX;
	rc = classic_locate_inside(src, off, end, e);
	if (rc < 0)
		return rc;
	if (x->stride - x->slab <= (cdf_remote(s) ? REMOTE_GAP_BYTES : GAP_BYTES)) {
		struct blob_part all = {off, end};

		blob_want(s->blob, &all, 1);
		return pick(s->blob, x, off, n, out, e);
	}
	return classic_locate_each(s->blob, x, off, n, out, e);
}

int cdf_read_chunk(struct source *src, uint32_t array, uint64_t linear, uint8_t *out,
		   size_t len, struct err *e)
{
	const struct ds_array *a = &src->ds.arrays[array];
	uint64_t at[DS_RANK_MAX], off, n = 0;
	int rc;

	if (a->access != DS_STORED) {
		rc = classic_locate_gather(src, array, linear, out, &n, e);
	} else {
		ds_chunk_coords(a, linear, at);
		rc = classic_locate_piece(src, array, at, &off, &n, e);
		rc = rc ? rc : blob_read(cdf_of(src)->blob, off, out, (size_t)n, e);
	}
	if (rc < 0)
		return rc;
	value_repeat(out + n, len - n, a->fill, a->type.size);
	return 0;
}

int cdf_read_stored(struct source *src, uint32_t array NZ_UNUSED, uint64_t linear NZ_UNUSED,
		    const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		    struct err *e)
{
	return blob_read(cdf_of(src)->blob, ref->off + off, out, len, e);
}

/* want_chunk - prefetch a chunk, with the gaps that are read along. */
static bool want_chunk(struct source *src, uint32_t array, uint64_t linear,
		       struct blob_part *ret)
{
	const struct ds_array *a = &src->ds.arrays[array];
	const struct cdf_array *x = &cdf_of(src)->arrays[array];
	uint64_t at[DS_RANK_MAX], from, n;

	if (linear >= a->n_chunks)
		return false;
	ds_chunk_coords(a, linear, at);
	if (a->access == DS_STORED)
		return classic_locate_piece(src, array, at, &ret->off, &ret->len, NULL) == 0;
	from = linear * a->chunk[0];
	n = u64_min(a->chunk[0], a->shape[0] - from);
	/* below the end of all records, which model.c has checked */
	ret->off = x->begin + from * x->stride;
	ret->len = (n - 1) * x->stride + x->slab;
	return x->stride - x->slab <= REMOTE_GAP_BYTES;
}

void cdf_want(struct source *src, uint32_t array, const uint64_t *linear, size_t n)
{
	struct blob_part parts[REMOTE_PARTS];
	size_t some = 0;

	for (size_t i = 0; i < n; i++) {
		some += want_chunk(src, array, linear[i], &parts[some]);
		if (some == REMOTE_PARTS || (i + 1 == n && some > 0)) {
			blob_want(cdf_of(src)->blob, parts, some);
			some = 0;
		}
	}
}
