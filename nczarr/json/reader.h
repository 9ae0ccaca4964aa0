/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.h - a JSON reader for Zarr's metadata: strict JSON, and bare NaN, Infinity, -Infinity,
 * and numbers such as "0.", "1.e5" and ".5".
 *
 * jansson parses. Numbers keep their source text, so that the caller decides about their type
 * (int64, uint64, a double that was written as 1.0). Only the functions below distinguish numbers
 * and strings; jansson's own are for objects, lists, booleans and null. Objects keep their order;
 * a duplicate key is an error. */
#ifndef NCZARR_JSON_READER_H
#define NCZARR_JSON_READER_H

#include <jansson.h>

#include "nczarr/json/writer.h"
#include "translate/model/dataset.h"

#define JSON_DEPTH_MAX 64

enum json_kind { JSON_IS_NULL, JSON_IS_BOOL, JSON_IS_NUMBER, JSON_IS_TEXT, JSON_IS_LIST,
		 JSON_IS_OBJECT };

/* json_read - parse n bytes. Invalid UTF-8 in strings, bytes after the value, and documents that
 * would take too much memory (about a GiB) are errors. Returns 0 with *ret new (json_decref);
 * -EBADMSG with line and column; -ENOMEM. */
int json_read(const void *p, size_t n, json_t **ret, struct err *e) NZ_MUST_USE;

/* json_kind - of any value; NULL (an absent member) is JSON_IS_NULL. */
enum json_kind json_kind(const json_t *v);

/* json_get - member of an object; NULL if v is no object or has no such member. Borrowed. */
const json_t *json_get(const json_t *v, const char *member);

/* json_text_of - get a string; it may contain NULs and is NUL-terminated. false: v is no string.
 * Borrowed. */
bool json_text_of(const json_t *v, struct ds_text *ret);
/* json_is - whether v is this string. */
bool json_is(const json_t *v, const char *text);
/* json_number_text - the source text of a number, NUL-terminated; NULL: v is no number. */
const char *json_number_text(const json_t *v);
/* json_number_is_int - a number written without '.', exponent, NaN or Infinity. */
bool json_number_is_int(const json_t *v);

/* The following take numbers only: 0, or -EINVAL (not a number, not whole, out of range).
 * json_i64 and json_u64 also take 5.0 and 5e3. json_double rounds correctly and knows NaN,
 * Infinity, -Infinity. */
int json_i64(const json_t *v, int64_t *ret) NZ_MUST_USE;
int json_u64(const json_t *v, uint64_t *ret) NZ_MUST_USE;
int json_double(const json_t *v, double *ret) NZ_MUST_USE;

/* json_put - write v as the next value. Objects, and lists with an object or a list, take several
 * lines; numbers are as in the source. */
void json_put(struct jw *j, const json_t *v);

/* json_write_text - write v as compact JSON, as NCZarr writes JSON attributes: ", " between
 * members, ": " after keys, "," in lists; numbers as in the source. */
void json_write_text(const json_t *v, struct buf *out);

#endif
