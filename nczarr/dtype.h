/* SPDX-License-Identifier: BSD-3-Clause */
/* dtype.h - the names of types: numpy's (Zarr v2) and data_types (Zarr v3). */
#ifndef NCZARR_DTYPE_H
#define NCZARR_DTYPE_H

#include "translate/model/dataset.h"

/* zr_dtype_parts - the parts of numpy's text: "<f4", "|S12", ">M8[10ms]". */
struct zr_dtype_parts {
	char order; /* as written; '\0': none */
	bool big;
	char kind;
	bool has_n;
	uint64_t n;       /* the number after the kind */
	const char *unit; /* text in brackets, len bytes; NULL */
	size_t len;
};

/* zr_dtype_split - parse numpy's text. false: it has another form; order and kind are set. */
bool zr_dtype_split(const char *s, struct zr_dtype_parts *ret);
/* zr_dtype_number - the type of a number or boolean, in the sizes of the model. */
bool zr_dtype_number(const struct zr_dtype_parts *t, struct dtype *ret);
/* zr_dtype_letter - numpy's letter of a kind of elements with a fixed size. */
char zr_dtype_letter(enum dt_kind kind);

/* zr_dtype_name3 - the data_type of a simple type, as all readers of Zarr v3 know it; NULL: none.
 * An unknown type breaks more than its array: zarr-python opens no group with it in consolidated
 * metadata. */
const char *zr_dtype_name3(const struct dtype *t);

#endif
