/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.c - byte order of elements in memory. */
#include "translate/model/dtype.h"

#include <string.h>

#include "base/core/endian.h"

#define DEPTH_MAX 32 /* compounds within compounds; sources refuse deeper ones */

void dt_swap_numbers(uint8_t *p, size_t size, size_t n)
{
	for (size_t i = 0; i < n; i++, p += size) {
		uint16_t v2;
		uint32_t v4;
		uint64_t v8;

		switch (size) {
		case 2:
			memcpy(&v2, p, 2);
			v2 = __builtin_bswap16(v2);
			memcpy(p, &v2, 2);
			break;
		case 4:
			memcpy(&v4, p, 4);
			v4 = __builtin_bswap32(v4);
			memcpy(p, &v4, 4);
			break;
		case 8:
			memcpy(&v8, p, 8);
			v8 = __builtin_bswap64(v8);
			memcpy(p, &v8, 8);
			break;
		default:
			return; /* a single byte */
		}
	}
}

static void swap_elements(const struct dtype *t, uint8_t *p, size_t n, unsigned int depth);

/* swap_fields - the fields of one compound element. */
static void swap_fields(const struct dtype *t, uint8_t *p, unsigned int depth)
{
	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct dt_field *f = &t->fields[i];
		size_t n = 1;

		for (uint32_t d = 0; d < f->rank; d++)
			n *= (size_t)f->dims[d];
		swap_elements(&f->type, p + f->offset, n, depth + 1);
	}
}

static void swap_elements(const struct dtype *t, uint8_t *p, size_t n, unsigned int depth)
{
	switch (t->kind) {
	case DT_INT:
	case DT_UINT:
	case DT_FLOAT:
		if (t->big_endian != HOST_BIG_ENDIAN)
			dt_swap_numbers(p, t->size, n);
		break;
	case DT_COMPLEX:
		if (t->big_endian != HOST_BIG_ENDIAN)
			dt_swap_numbers(p, t->size / 2, 2 * n);
		break;
	case DT_COMPOUND:
		for (size_t i = 0; depth < DEPTH_MAX && i < n; i++)
			swap_fields(t, p + i * t->size, depth);
		break;
	case DT_BOOL:
	case DT_STRING:
	case DT_OPAQUE:
	case DT_VSTRING:
	case DT_VLEN:
		break;
	}
}

void dt_swap_to_host(const struct dtype *t, uint8_t *p, size_t n)
{
	swap_elements(t, p, n, 0);
}
