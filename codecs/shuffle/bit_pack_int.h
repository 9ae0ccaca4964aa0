/* SPDX-License-Identifier: BSD-3-Clause */
/* bit_pack_int.h - arrays of 1 to 64-bit numbers without gaps, each from its highest bit, as HDF5's
 * scale-offset and n-bit filters pack them. No function checks lengths: callers compute from the
 * number of bits that all bytes exist. */
#ifndef CODECS_SHUFFLE_BIT_PACK_INT_H
#define CODECS_SHUFFLE_BIT_PACK_INT_H

#include <string.h>

#include "base/core/endian.h"
#include "base/core/util.h"

/* bit_reader - reads bits; `at` is the next one. */
struct bit_reader {
	const uint8_t *p;
	size_t len; /* bytes */
	uint64_t at;
};

/* bits_word - 64 bits from bit `at`; bits after the end are 0. */
static inline uint64_t bits_word(const struct bit_reader *b, uint64_t at)
{
	size_t byte = (size_t)(at / 8), left = b->len - byte;
	unsigned int skip = (unsigned int)(at % 8);
	uint8_t tail[9] = {0};

	memcpy(tail, b->p + byte, left < sizeof(tail) ? left : sizeof(tail));
	return get_be64(tail) << skip | (uint64_t)tail[8] >> (8 - skip);
}

/* bits_get - the next `count` numbers of n (1 .. 64) bits. */
static inline void bits_get(struct bit_reader *b, unsigned int n, uint64_t *v, size_t count)
{
	const uint64_t safe = b->len > 9 ? 8 * (uint64_t)(b->len - 9) : 0;
	uint64_t at = b->at;
	size_t i = 0;

	for (; i < count && at < safe; i++, at += n) {
		const uint8_t *p = b->p + at / 8;

		v[i] = (get_be64(p) << at % 8 | (uint64_t)p[8] >> (8 - at % 8)) >> (64 - n);
	}
	for (; i < count; i++, at += n)
		v[i] = bits_word(b, at) >> (64 - n);
	b->at = at;
}

/* bit_writer - writes bits; `have` of them are pending in acc, the first one highest. */
struct bit_writer {
	uint8_t *p;
	uint64_t acc;
	unsigned int have; /* < 64 */
};

/* bits_put - write `count` numbers of n (1 .. 64) bits; their higher bits must be 0. */
static inline void bits_put(struct bit_writer *b, unsigned int n, const uint64_t *v,
			    size_t count)
{
	uint64_t acc = b->acc;
	unsigned int have = b->have;

	for (size_t i = 0; i < count; i++) {
		unsigned int room = 64 - have;

		if (n < room) {
			have += n;
			acc |= v[i] << (64 - have);
			continue;
		}
		put_be(b->p, acc | v[i] >> (n - room), 8);
		b->p += 8;
		have = n - room;
		acc = have ? v[i] << (64 - have) : 0;
	}
	b->acc = acc;
	b->have = have;
}

/* bits_end - write pending bits, with zeros in the rest of the last byte. Returns the end. */
static inline uint8_t *bits_end(struct bit_writer *b)
{
	for (; b->have > 0; b->have -= b->have < 8 ? b->have : 8) {
		*b->p++ = (uint8_t)(b->acc >> 56);
		b->acc <<= 8;
	}
	return b->p;
}

#endif
