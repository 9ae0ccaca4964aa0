/* SPDX-License-Identifier: BSD-3-Clause */
/* fletcher32.c - HDF5's checksum: four bytes after the data.
 *
 * The sum runs over big-endian 16-bit words modulo 65535. Swapping the bytes of every word swaps
 * the bytes of both sums (256 * 256 = 1 modulo 65535), so it is computed over little-endian words
 * and swapped at the end. Libraries up to HDF5 1.6.2 wrote the unswapped form on little-endian
 * machines; both are accepted, as in later libraries.
 *
 * Spec: HDF5 File Format 3.0, IV.A.2.l (filter 3); the sum itself is RFC 1146's with 16-bit words,
 * where a last odd byte is the upper half of a word. */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define TRAILER 4
#define LANES 8
/* Rows of LANES words that 32-bit lanes can sum twice: rows * (rows + 1) / 2 * 65535 < 2^32. */
#define ROWS_MAX 360

typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef uint32_t u32x8 __attribute__((vector_size(32)));

static uint32_t fold(uint64_t v)
{
	while (v > 0xffff)
		v = (v & 0xffff) + (v >> 16);
	return (uint32_t)v;
}

static uint32_t swap16(uint32_t v)
{
	return (v >> 8 | v << 8) & 0xffff;
}

/* sum_rows - add n_rows rows of LANES little-endian words to both sums. Lane j of row k counts n -
 * (LANES * k + j) times in sum2: LANES times the lane's own double sum, less j times the lane's
 * sum. */
static void sum_rows(const uint8_t *p, size_t n_rows, uint64_t *sum1, uint64_t *sum2)
{
	u32x8 lane1 = {0}, lane2 = {0};
	uint64_t total = 0, twice = 0, late = 0;

	for (size_t k = 0; k < n_rows; k++, p += LANES * 2) {
		u16x8 w;

		memcpy(&w, p, sizeof(w));
		lane1 += __builtin_convertvector(w, u32x8);
		lane2 += lane1;
	}
	for (unsigned int j = 0; j < LANES; j++) {
		total += lane1[j];
		twice += lane2[j];
		late += (uint64_t)j * lane1[j];
	}

	*sum2 = fold(*sum2 + *sum1 * (n_rows * LANES) + (twice * LANES - late));
	*sum1 = fold(*sum1 + total);
}

/* fletcher32 - HDF5's checksum of n bytes. */
static uint32_t fletcher32(const uint8_t *p, size_t n)
{
	uint64_t sum1 = 0, sum2 = 0;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	while (n >= LANES * 2) {
		size_t rows = n / (LANES * 2) < ROWS_MAX ? n / (LANES * 2) : ROWS_MAX;

		sum_rows(p, rows, &sum1, &sum2);
		p += rows * LANES * 2;
		n -= rows * LANES * 2;
	}
#endif
	for (; n > 0; p += 2, n -= n > 1 ? 2 : 1) {
		uint32_t hi = n > 1 ? p[1] : 0;

		sum1 = fold(sum1 + (p[0] | hi << 8));
		sum2 = fold(sum2 + sum1);
	}
	return swap16((uint32_t)sum2) << 16 | swap16((uint32_t)sum1);
}

/* fletcher32_prepare - drop all parameters: H5Pset_fletcher32 has none. */
static int fletcher32_prepare(const struct codec_spec *spec NZ_UNUSED,
			      const struct codec_array *a NZ_UNUSED, uint32_t *params NZ_UNUSED,
			      uint32_t *ret_n, struct err *e NZ_UNUSED)
{
	*ret_n = 0;
	return 0;
}

static int fletcher32_check(const struct codec_call *c)
{
	uint32_t stored, got;
	size_t n;

	if (c->in_len < TRAILER)
		return err_set(c->e, -EBADMSG, "fletcher32: length %zu is less than 4",
			       c->in_len);
	n = c->in_len - TRAILER;
	stored = get_le32(c->in + n);
	got = fletcher32(c->in, n);
	if (stored != got && stored != (swap16(got >> 16) << 16 | swap16(got & 0xffff)))
		return err_set(c->e, -EBADMSG,
			       "fletcher32: checksum mismatch: computed %08" PRIx32
			       " over %zu bytes, stored %08" PRIx32,
			       got, n, stored);
	*c->ret_len = n;
	return 0;
}

static int fletcher32_decode(const struct codec_call *c)
{
	int rc = fletcher32_check(c);

	return rc ? rc : codec_copy(c, *c->ret_len, "fletcher32");
}

static uint64_t fletcher32_framed_size(uint64_t n)
{
	uint64_t r;

	return ckd_add(&r, n, (uint64_t)TRAILER) ? 0 : r;
}

static uint64_t fletcher32_stored_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	return fletcher32_framed_size(n);
}

static void fletcher32_frame(const struct codec_call *c)
{
	uint32_t sum = fletcher32(c->in, c->in_len);

	if (c->in_len > 0)
		memcpy(c->out, c->in, c->in_len);
	put_le32(c->out + c->in_len, sum);
}

static int fletcher32_encode(const struct codec_call *c)
{
	struct codec_call framed = *c;
	size_t size;

	if (ckd_add(&size, c->in_len, (size_t)TRAILER))
		return err_set(c->e, -ERANGE, "fletcher32: length %zu is too large", c->in_len);
	framed.out = buf_grow(c->to, size);
	if (!framed.out)
		return err_nomem(c->e);
	fletcher32_frame(&framed);
	return 0;
}

const struct codec_ops codec_fletcher32 = {
	.name = "fletcher32",
	.h5_id = CODEC_FLETCHER32,
	.zarr2_id = "fletcher32",
	.portable = false, /* numcodecs has it from 0.12 on */
	.h5_stock = true,
	.trailer = TRAILER,
	.prepare = fletcher32_prepare,
	.stored_max = fletcher32_stored_max,
	.decode = fletcher32_decode,
	.check = fletcher32_check,
	.framed_size = fletcher32_framed_size,
	.frame = fletcher32_frame,
	.encode = fletcher32_encode,
};
