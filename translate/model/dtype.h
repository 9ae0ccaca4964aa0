/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.h - element types of the dataset model: as a reader sees them, not as a file encodes
 * them. */
#ifndef TRANSLATE_MODEL_DTYPE_H
#define TRANSLATE_MODEL_DTYPE_H

#include "base/core/util.h"

enum dt_kind {
	DT_BOOL,      /* one byte, 0 or 1 */
	DT_INT,       /* two's complement, size 1, 2, 4, 8 */
	DT_UINT,      /* size 1, 2, 4, 8 */
	DT_FLOAT,     /* IEEE 754, size 2, 4, 8 */
	DT_COMPLEX,   /* real then imaginary, size 8 or 16 */
	DT_STRING,    /* size bytes of text, NUL padded; size 1 is netCDF's char */
	DT_OPAQUE,    /* size bytes without meaning */
	DT_COMPOUND,  /* fields, packed: no gaps, offsets ascending, size = sum of the fields */
	DT_VSTRING,   /* text of any length */
	DT_VLEN,      /* any number of `base` elements */
};

struct dt_field;

/* dtype - plain data; everything it points to is borrowed from the dataset's arena. */
struct dtype {
	enum dt_kind kind;
	bool big_endian;               /* of numbers larger than a byte, as presented */
	uint32_t size;                 /* bytes of one element; 0 for DT_VSTRING and DT_VLEN */
	uint32_t n_fields;             /* DT_COMPOUND */
	const struct dt_field *fields;
	const struct dtype *base;      /* DT_VLEN: a fixed-size numeric type */
};

struct dt_field {
	const char *name;              /* UTF-8, unique in its compound */
	uint32_t offset;               /* bytes from the element's start */
	uint32_t rank;                 /* 0: a single value */
	const uint64_t *dims;          /* rank entries, C order */
	struct dtype type;             /* of one value, fixed-size */
};

/* dt_is_vlen - whether elements have no fixed size. */
static inline bool dt_is_vlen(const struct dtype *t)
{
	return t->kind == DT_VSTRING || t->kind == DT_VLEN;
}

/* dt_is_char - whether it is netCDF's char: a string of one byte. */
static inline bool dt_is_char(const struct dtype *t)
{
	return t->kind == DT_STRING && t->size == 1;
}

/* dt_swap_to_host - convert n elements at p from t's byte order to the host's, in place. Does
 * nothing for strings and opaque bytes. Compound fields are swapped one by one. */
void dt_swap_to_host(const struct dtype *t, uint8_t *p, size_t n);
/* dt_swap_numbers - reverse the bytes of n numbers of 1, 2, 4 or 8 bytes. */
void dt_swap_numbers(uint8_t *p, size_t size, size_t n);

#endif
