/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_json.c - JSON as Zarr's writers write it, read and written.
 *
 * Properties: what is refused has a message that says where; what is read is written as text that
 * is read again, as the same values in the same order, and written the same; a number is of one
 * kind, and reads alike as what it may be; no text is a number.
 *
 *   make fuzz TIME=60 FUZZ=json */
#include <math.h>

#include "base/core/buf.h"
#include "nczarr/json/reader.h"
#include "tests/fuzz/fuzz.h"

#define ROOM ((size_t)16 << 20)

static void number(const json_t *v)
{
	const char *text = json_number_text(v);
	uint64_t u = 0;
	int64_t i = 0;
	double d = 0;
	bool is_u, is_i, is_d;

	is_u = json_u64(v, &u) == 0;
	is_i = json_i64(v, &i) == 0;
	is_d = json_double(v, &d) == 0;
	if (json_kind(v) != JSON_IS_NUMBER) {
		require(!text && !is_u && !is_i && !is_d && !json_number_is_int(v));
		return;
	}
	require(text && *text && is_d);
	if (is_u && is_i)
		require(u == (uint64_t)i);
	if (is_i && fabs(d) < 9007199254740992.0)
		require(d == (double)i);
	if (json_number_is_int(v))
		require(!strpbrk(text, ".eEIN"));
}

static void same(const json_t *a, const json_t *b, unsigned depth);

static void same_members(const json_t *a, const json_t *b, unsigned depth)
{
	void *x = json_object_iter((json_t *)(uintptr_t)a);
	void *y = json_object_iter((json_t *)(uintptr_t)b);

	for (; x && y; x = json_object_iter_next((json_t *)(uintptr_t)a, x),
		       y = json_object_iter_next((json_t *)(uintptr_t)b, y)) {
		require(strcmp(json_object_iter_key(x), json_object_iter_key(y)) == 0);
		same(json_object_iter_value(x), json_object_iter_value(y), depth + 1);
	}
	require(!x && !y);
}

static void same(const json_t *a, const json_t *b, unsigned depth)
{
	enum json_kind kind = json_kind(a);
	struct ds_text s, t;

	require(depth <= JSON_DEPTH_MAX && kind == json_kind(b));
	number(a);
	if (kind == JSON_IS_NUMBER)
		require(strcmp(json_number_text(a), json_number_text(b)) == 0);
	if (kind == JSON_IS_BOOL)
		require(json_is_true(a) == json_is_true(b));
	if (kind == JSON_IS_TEXT)
		require(json_text_of(a, &s) && json_text_of(b, &t) && s.len == t.len &&
			memcmp(s.s, t.s, s.len) == 0);
	if (kind == JSON_IS_OBJECT)
		same_members(a, b, depth);
	for (size_t i = 0; kind == JSON_IS_LIST && i < json_array_size(a); i++) {
		require(i < json_array_size(b));
		same(json_array_get(a, i), json_array_get(b, i), depth + 1);
	}
	require(kind != JSON_IS_LIST || json_array_size(a) == json_array_size(b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	json_t *v = NULL, *again = NULL;
	struct buf text, twice;
	int rc = json_read(data, size, &v, &e);

	if (rc) {
		require(rc == -EBADMSG || rc == -ENOMEM);
		failed_well(rc, &e);
		return 0;
	}
	buf_init(&text, ROOM);
	buf_init(&twice, ROOM);
	json_write_text(v, &text);
	require(buf_ok(&text) && json_read(text.data, text.len, &again, NULL) == 0);
	same(v, again, 0);
	json_write_text(again, &twice);
	require(text.len == twice.len && memcmp(text.data, twice.data, text.len) == 0);
	buf_release(&text);
	buf_release(&twice);
	json_decref(v);
	json_decref(again);
	return 0;
}
