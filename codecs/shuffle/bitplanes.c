/* SPDX-License-Identifier: BSD-3-Clause */
/* bitplanes.c - transposes matrices of bits, in both directions.
 *
 * First the bytes of elements are moved to planes of bytes, as by shuffle, in pieces that fit the
 * first-level cache. Then each plane is split into its bits, 128 bytes at a time: eight vectors of
 * every eighth byte are eight columns of 8 x 8 bits each, and three rounds that swap halves,
 * quarters and eighths of such a square transpose all sixteen squares at once. */
#include "codecs/shuffle/bitplanes_int.h"
#include "codecs/core/codec_impl.h"
#include "codecs/shuffle/byte_vectors_int.h"

#define PIECE ((size_t)8192) /* bytes of elements in a piece */
#define STEP (8 * LANES)     /* bytes of a plane, elements */

typedef uint64_t words __attribute__((vector_size(LANES)));

/* SWAP - exchange the upper bits of a with the lower ones of b: shift is half the side of the
 * squares that are swapped, mask has the lower half of each. */
#define SWAP(a, b, shift, mask)                                                                \
	do {                                                                                   \
		words t_ = (((words)(a) >> (shift)) ^ (words)(b)) & (mask);                    \
                                                                                               \
		(b) = (vec)((words)(b) ^ t_);                                                  \
		(a) = (vec)((words)(a) ^ t_ << (shift));                                       \
	} while (0)

/* bitplanes_turn - transpose: bit k of x[m] becomes bit m of x[k]. */
static inline void bitplanes_turn(vec x[8])
{
	const words half = {0x0f0f0f0f0f0f0f0f, 0x0f0f0f0f0f0f0f0f};
	const words quarter = {0x3333333333333333, 0x3333333333333333};
	const words eighth = {0x5555555555555555, 0x5555555555555555};

	SWAP(x[0], x[4], 4, half);
	SWAP(x[1], x[5], 4, half);
	SWAP(x[2], x[6], 4, half);
	SWAP(x[3], x[7], 4, half);
	SWAP(x[0], x[2], 2, quarter);
	SWAP(x[1], x[3], 2, quarter);
	SWAP(x[4], x[6], 2, quarter);
	SWAP(x[5], x[7], 2, quarter);
	SWAP(x[0], x[1], 1, eighth);
	SWAP(x[2], x[3], 1, eighth);
	SWAP(x[4], x[5], 1, eighth);
	SWAP(x[6], x[7], 1, eighth);
}

/* turn_one - the same for one square: eight bytes, `from` apart, to eight bytes, `to` apart. */
static void turn_one(const uint8_t *in, size_t from, uint8_t *out, size_t to)
{
	uint64_t x = 0, t;

	for (unsigned int k = 0; k < 8; k++)
		x |= (uint64_t)in[k * from] << 8 * k;
	t = (x ^ x >> 28) & 0xf0f0f0f0;
	x ^= t ^ t << 28;
	t = (x ^ x >> 14) & 0x0000cccc0000cccc;
	x ^= t ^ t << 14;
	t = (x ^ x >> 7) & 0x00aa00aa00aa00aa;
	x ^= t ^ t << 7;
	for (unsigned int m = 0; m < 8; m++)
		out[m * to] = (uint8_t)(x >> 8 * m);
}

/* split_plane - split n bytes into eight rows, which are `row` bytes apart. */
static void split_plane(const uint8_t *restrict in, size_t n, uint8_t *restrict out, size_t row)
{
	size_t i = 0;

	for (; i + STEP <= n; i += STEP) {
		vec x[8], y[8];

		LOAD_8(x, in + i, (size_t)LANES);
		PART4(y, x);
		PART4(x, y);
		PART4(y, x);
		bitplanes_turn(y);
		STORE_8(out + i / 8, row, y);
	}
	for (; i < n; i += 8)
		turn_one(in + i, 1, out + i / 8, row);
}

static void concat_plane(const uint8_t *restrict in, size_t row, size_t n,
			 uint8_t *restrict out)
{
	size_t i = 0;

	for (; i + STEP <= n; i += STEP) {
		vec x[8], y[8];

		LOAD_8(y, in + i / 8, row);
		bitplanes_turn(y);
		MIX4(x, y);
		MIX4(y, x);
		MIX4(x, y);
		STORE_8(out + i, (size_t)LANES, x);
	}
	for (; i < n; i += 8)
		turn_one(in + i / 8, row, out + i, 1);
}

/* bitplanes_piece_of - the number of elements in a piece. */
static size_t bitplanes_piece_of(size_t size, size_t n)
{
	size_t m = PIECE / size / STEP * STEP;

	m = m > STEP ? m : STEP;
	return m < n ? m : n;
}

size_t bitplanes_room(size_t size, size_t n)
{
	return size > 1 ? bitplanes_piece_of(size, n) * size : 0;
}

void bitplanes_split(size_t size, size_t n, const uint8_t *in, uint8_t *out, uint8_t *room)
{
	const size_t piece = bitplanes_piece_of(size, n), row = n / 8;

	for (size_t i = 0, m; i < n; i += m) {
		const uint8_t *planes = in + i * size;

		m = n - i < piece ? n - i : piece;
		if (size > 1) {
			codec_shuffle_bytes(size, planes, m * size, room);
			planes = room;
		}
		for (size_t j = 0; j < size; j++)
			split_plane(planes + j * m, m, out + 8 * j * row + i / 8, row);
	}
}

void bitplanes_join(size_t size, size_t n, const uint8_t *in, uint8_t *out, uint8_t *room)
{
	const size_t piece = bitplanes_piece_of(size, n), row = n / 8;

	for (size_t i = 0, m; i < n; i += m) {
		uint8_t *to = out + i * size, *planes = size > 1 ? room : to;

		m = n - i < piece ? n - i : piece;
		for (size_t j = 0; j < size; j++)
			concat_plane(in + 8 * j * row + i / 8, row, m, planes + j * m);
		if (size > 1)
			codec_unshuffle_bytes(size, room, m * size, to);
	}
}
