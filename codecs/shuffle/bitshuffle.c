/* SPDX-License-Identifier: BSD-3-Clause */
/* bitshuffle.c - planes of bits in blocks, compressed with LZ4 or Zstandard or uncompressed.
 *
 * Uncompressed blocks are concatenated. Compressed ones follow a header of 12 bytes (the length of
 * all elements in 8, that of a block in 4), and each has its stored length in 4 bytes before it;
 * all numbers are big-endian. The last block may be shorter; up to seven elements after it are
 * copied unchanged.
 *
 * Parameters are those of the HDF5 filter: its version in two, bytes of an element, elements of a
 * block (0: the default), compressor, level of Zstandard.
 *
 * Spec: https://github.com/kiyo-masui/bitshuffle (README, src/bshuf_h5filter.c). */
#include "codecs/shuffle/bitplanes_int.h"
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <lz4.h>
#include <string.h>
#include <zstd.h>

#define HEAD ((size_t)12)
#define SIZE_BYTES ((size_t)4)
#define MULTIPLE 8u       /* elements */
#define BLOCK_BYTES 8192u /* of a default block */
#define BLOCK_MIN 128u    /* elements of one */
#define ZSTD_MAGIC 0xfd2fb528u
#define VERSION_MAJOR 0 /* the first with Zstandard */
#define VERSION_MINOR 4
#define USER_MAX 8 /* parameters */

enum { P_MAJOR, P_MINOR, P_SIZE, P_BLOCK, P_COMPRESSOR, P_LEVEL };
enum compressor { NONE = 0, LZ4 = 2, ZSTD = 3 };

/* bitshuffle_form - the decoded parameters. */
struct bitshuffle_form {
	size_t size;  /* bytes of an element */
	size_t block; /* elements, a multiple of 8 */
	uint32_t compressor;
	int level;
};

static uint32_t bitshuffle_parameter(const struct codec_spec *spec, uint32_t i)
{
	return spec->n_params > i ? spec->params[i] : 0;
}

/* bitshuffle_form_of - decode the parameters. Returns 0, or `code` when they are invalid. */
static int bitshuffle_form_of(const struct codec_spec *spec, struct bitshuffle_form *ret,
			      int code, struct err *e)
{
	*ret = (struct bitshuffle_form){
		.size = bitshuffle_parameter(spec, P_SIZE),
		.block = bitshuffle_parameter(spec, P_BLOCK),
		.compressor = bitshuffle_parameter(spec, P_COMPRESSOR),
		.level =
			(int)codec_level(spec, P_LEVEL, ZSTD_minCLevel(), ZSTD_maxCLevel(), 0)};
	if (ret->size == 0)
		return err_set(e, code, "bitshuffle: the element size is 0");
	if (ret->block == 0) {
		ret->block = BLOCK_BYTES / ret->size / MULTIPLE * MULTIPLE;
		if (ret->block < BLOCK_MIN)
			ret->block = BLOCK_MIN;
	}
	if (ret->block % MULTIPLE)
		return err_set(e, code, "bitshuffle: a block size of %zu elements is not valid",
			       ret->block);
	if (ret->compressor != NONE && ret->compressor != LZ4 && ret->compressor != ZSTD)
		return err_set(e, code, "bitshuffle: unknown compressor %" PRIu32,
			       ret->compressor);
	return 0;
}

/* bitshuffle_at_most - elements of the largest block of n elements. */
static size_t bitshuffle_at_most(const struct bitshuffle_form *f, size_t n)
{
	return f->block < n ? f->block : n / MULTIPLE * MULTIPLE;
}

/* ---- decoding ---- */

/* bitshuffle_unpack - decode one stored block to exactly n bytes. */
static int bitshuffle_unpack(const struct codec_call *c, const struct bitshuffle_form *f,
			     const uint8_t *in, size_t stored, uint8_t *out, size_t n)
{
	if (f->compressor == LZ4 && stored <= INT_MAX && n <= INT_MAX) {
		int got =
			LZ4_decompress_safe((const char *)in, (char *)out, (int)stored, (int)n);

		if (got >= 0 && (size_t)got == n)
			return 0;
	}
	if (f->compressor == ZSTD && stored >= SIZE_BYTES && get_le32(in) == ZSTD_MAGIC) {
		struct ZSTD_DCtx_s *zstd = codec_zstd_decoder(c->scratch);

		if (!zstd)
			return err_nomem(c->e);
		if (ZSTD_decompressDCtx(zstd, out, n, in, stored) == n)
			return 0;
	}
	return err_set(c->e, -EBADMSG,
		       "bitshuffle: a block of %zu bytes does not decode to %zu", stored, n);
}

/* undo_blocks - decode the stored blocks, in_len bytes at in, to n elements. */
static int undo_blocks(const struct codec_call *c, const struct bitshuffle_form *f,
		       const uint8_t *in, size_t in_len, size_t n)
{
	const bool packed = f->compressor != NONE;
	uint8_t *out = c->out;
	const size_t most = bitshuffle_at_most(f, n),
		     bytes = packed ? most * f->size : 0; /* at most n * size */
	uint8_t *rows = codec_scratch_get(c->scratch, CODEC_SCRATCH_OWN,
					  bytes + bitplanes_room(f->size, most));

	if (!rows)
		return err_nomem(c->e);
	for (size_t m, stored; n >= MULTIPLE; n -= m) {
		int rc = 0;

		m = bitshuffle_at_most(f, n);
		stored = m * f->size;
		if (packed) {
			stored = in_len >= SIZE_BYTES ? (size_t)get_be(in, SIZE_BYTES) : 0;
			if (in_len < SIZE_BYTES || stored > in_len - SIZE_BYTES)
				return err_set(c->e, -EBADMSG,
					       "bitshuffle: a block of %zu bytes, but only %zu "
					       "are left",
					       stored, in_len);
			in += SIZE_BYTES;
			in_len -= SIZE_BYTES;
			rc = bitshuffle_unpack(c, f, in, stored, rows, m * f->size);
		}
		if (rc)
			return rc;
		bitplanes_join(f->size, m, packed ? rows : in, out, rows + bytes);
		in += stored;
		in_len -= stored;
		out += m * f->size;
	}
	if (in_len < n * f->size)
		return err_set(c->e, -EBADMSG, "bitshuffle: %zu bytes are missing at the end",
			       n * f->size - in_len);
	if (n > 0)
		memcpy(out, in, n * f->size);
	return 0;
}

/* bitshuffle_head - read the header: the length of the elements, and the block size, which
 * overrides that of the parameters. */
static int bitshuffle_head(struct bitshuffle_form *f, const struct codec_call *c, uint64_t *ret)
{
	uint64_t block;

	if (c->in_len < HEAD)
		return err_set(c->e, -EBADMSG, "bitshuffle: length %zu is less than %zu",
			       c->in_len, HEAD);
	*ret = get_be(c->in, 8);
	block = get_be(c->in + 8, 4);
	if (block == 0 || block % (MULTIPLE * (uint64_t)f->size))
		return err_set(c->e, -EBADMSG,
			       "bitshuffle: a block size of %" PRIu64 " bytes is not valid",
			       block);
	f->block = (size_t)block / f->size;
	return 0;
}

static int bitshuffle_decode(const struct codec_call *c)
{
	uint64_t total = c->in_len;
	struct bitshuffle_form f;
	size_t head = 0;
	int rc = bitshuffle_form_of(c->spec, &f, -EBADMSG, c->e);

	if (!rc && f.compressor != NONE) {
		head = HEAD;
		rc = bitshuffle_head(&f, c, &total);
	}
	if (rc)
		return rc;
	if (total > c->cap)
		return err_set(c->e, -ERANGE,
			       "bitshuffle: content of %" PRIu64 " bytes exceeds %zu", total,
			       c->cap);
	if (total % f.size)
		return err_set(c->e, -EBADMSG,
			       "bitshuffle: %" PRIu64
			       " bytes are not a whole number of elements of %zu bytes",
			       total, f.size);
	*c->ret_len = (size_t)total;
	return undo_blocks(c, &f, c->in + head, c->in_len - head, (size_t)total / f.size);
}

/* ---- encoding ---- */

/* bitshuffle_pack - encode one block of n bytes and append it after its length. */
static int bitshuffle_pack(ZSTD_CCtx *zstd, const struct bitshuffle_form *f, const uint8_t *in,
			   size_t n, struct buf *out, struct err *e)
{
	size_t start = out->len, bound, got;
	uint8_t *p;

	if (f->compressor == LZ4 && n > LZ4_MAX_INPUT_SIZE)
		return err_set(e, -ERANGE, "bitshuffle: a block of %zu bytes exceeds %d", n,
			       LZ4_MAX_INPUT_SIZE);
	bound = zstd ? ZSTD_compressBound(n) : (size_t)LZ4_compressBound((int)n);
	p = buf_grow(out, SIZE_BYTES + bound);
	if (!p)
		return err_nomem(e);
	if (zstd) {
		got = ZSTD_compressCCtx(zstd, p + SIZE_BYTES, bound, in, n, f->level);
		got = ZSTD_isError(got) ? 0 : got;
	} else {
		got = (size_t)LZ4_compress_default((const char *)in, (char *)p + SIZE_BYTES,
						   (int)n, (int)bound);
	}
	if (got == 0 || got > UINT32_MAX)
		return err_set(e, -EIO,
			       "bitshuffle: the library cannot encode a block of %zu bytes", n);
	put_be(p, got, SIZE_BYTES);
	out->len = start + SIZE_BYTES + got;
	return 0;
}

/* do_blocks - encode all elements to blocks. */
static int do_blocks(const struct codec_call *c, ZSTD_CCtx *zstd,
		     const struct bitshuffle_form *f)
{
	const bool packed = f->compressor != NONE;
	const uint8_t *in = c->in;
	size_t n = c->in_len / f->size;
	const size_t most = bitshuffle_at_most(f, n), bytes = packed ? most * f->size : 0;
	uint8_t *rows = codec_scratch_get(c->scratch, CODEC_SCRATCH_OWN,
					  bytes + bitplanes_room(f->size, most));

	if (!rows)
		return err_nomem(c->e);
	for (size_t m; n >= MULTIPLE; n -= m) {
		uint8_t *to = rows;
		int rc = 0;

		m = bitshuffle_at_most(f, n);
		if (!packed)
			to = buf_grow(c->to, m * f->size);
		if (!to)
			return err_nomem(c->e);
		bitplanes_split(f->size, m, in, to, rows + bytes);
		if (packed)
			rc = bitshuffle_pack(zstd, f, rows, m * f->size, c->to, c->e);
		if (rc)
			return rc;
		in += m * f->size;
	}
	buf_put(c->to, in, n * f->size);
	return buf_ok(c->to) ? 0 : err_nomem(c->e);
}

static int encode_blocks(const struct codec_call *c, const struct bitshuffle_form *f)
{
	ZSTD_CCtx *zstd = NULL;
	size_t block;
	uint8_t *p;
	int rc;

	if (f->compressor == NONE)
		return do_blocks(c, NULL, f);
	if (ckd_mul(&block, f->block, f->size) || block > UINT32_MAX)
		return err_set(c->e, -EOPNOTSUPP, "bitshuffle: blocks are larger than %u bytes",
			       UINT32_MAX);
	p = buf_grow(c->to, HEAD);
	if (p && f->compressor == ZSTD)
		zstd = codec_zstd_encoder(c->scratch);
	if (!p || (f->compressor == ZSTD && !zstd))
		return err_nomem(c->e);
	put_be(p, c->in_len, 8);
	put_be(p + 8, block, 4);
	rc = do_blocks(c, zstd, f);
	if (zstd)
		codec_zstd_encoded(c->scratch);
	return rc;
}

static int bitshuffle_encode(const struct codec_call *c)
{
	size_t start = c->to->len;
	struct bitshuffle_form f;
	int rc = bitshuffle_form_of(c->spec, &f, -EOPNOTSUPP, c->e);

	if (!rc && c->in_len % f.size) /* readers reject it */
		rc = err_set(c->e, -EOPNOTSUPP,
			     "bitshuffle: %zu bytes are not a whole number of elements of %zu "
			     "bytes",
			     c->in_len, f.size);
	rc = rc ? rc : encode_blocks(c, &f);
	if (rc)
		c->to->len = start;
	return rc;
}

/* bitshuffle_stored_max - adds the length field of each block and the growth by its compressor. */
static uint64_t bitshuffle_stored_max(const struct codec_spec *spec, uint64_t n)
{
	struct bitshuffle_form f;
	uint64_t r = codec_packed_max(spec, n), blocks;

	if (bitshuffle_form_of(spec, &f, -EBADMSG, NULL) || f.compressor == NONE)
		return n;
	blocks = n / ((uint64_t)f.block * f.size) + 1;
	return r == 0 || ckd_mul(&blocks, blocks, (uint64_t)100) || ckd_add(&r, r, blocks) ? 0
											   : r;
}

/* bitshuffle_stored - whether the parameters are the result of prepare, as h5repack passes them
 * again: more than a user gives, or three of which the second is no compressor. */
static bool bitshuffle_stored(const struct codec_spec *spec, uint32_t elem_size)
{
	const uint32_t second = bitshuffle_parameter(spec, P_MINOR);

	return spec->n_params >= P_BLOCK && spec->params[P_MAJOR] == 0 &&
	       spec->params[P_SIZE] == elem_size &&
	       (spec->n_params > P_BLOCK ||
		(second != NONE && second != LZ4 && second != ZSTD));
}

/* bitshuffle_prepare - put three parameters before the user's, as the filter's set_local does. */
static int bitshuffle_prepare(const struct codec_spec *spec, const struct codec_array *a,
			      uint32_t *params, uint32_t *ret_n, struct err *e)
{
	const uint32_t skip = bitshuffle_stored(spec, a->elem_size) ? P_BLOCK : 0;
	const uint32_t n = spec->n_params - skip;
	const struct codec_spec made = {
		.h5_id = spec->h5_id, .n_params = P_BLOCK + n, .params = params};
	struct bitshuffle_form f;

	if (n > USER_MAX)
		return err_set(e, -EINVAL, "bitshuffle: more than %d parameters given",
			       USER_MAX);
	params[P_MAJOR] = VERSION_MAJOR;
	params[P_MINOR] = VERSION_MINOR;
	params[P_SIZE] = a->elem_size;
	for (uint32_t i = 0; i < n; i++)
		params[P_BLOCK + i] = spec->params[skip + i];
	*ret_n = made.n_params;
	return bitshuffle_form_of(&made, &f, -EINVAL, e);
}

const struct codec_ops codec_bitshuffle = {
	.name = "bitshuffle",
	.h5_id = CODEC_BITSHUFFLE,
	.prepare = bitshuffle_prepare,
	.stored_max = bitshuffle_stored_max,
	.decode = bitshuffle_decode,
	.encode = bitshuffle_encode,
};
