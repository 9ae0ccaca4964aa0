/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_text.c - numbers and texts of base/core/str.h.
 *
 * Properties: a number that is taken is written as it was read; sizes are what their digits and
 * suffix say; what is made UTF-8 is, and what was is as it was; a JSON text ends where it should
 * and holds no control characters; a double reads back to the same bits.
 *
 *   make fuzz TIME=60 FUZZ=text */
#include <inttypes.h>
#include <math.h>

#include "base/core/str.h"
#include "base/core/utf8.h"
#include "tests/fuzz/fuzz.h"

#define ROOM ((size_t)1 << 20)

static void numbers(const char *text)
{
	char again[32];
	uint64_t v, w;
	size_t n = strlen(text);

	if (str_u64(text, n, UINT64_MAX, &v) == 0) {
		(void)snprintf(again, sizeof(again), "%" PRIu64, v);
		require(strcmp(again, text) == 0);
		require(str_size(text, UINT64_MAX, &w) == 0 && v == w);
		require(v == 0 || str_u64(text, n, v - 1, &w) < 0);
	} else if (str_size(text, UINT64_MAX, &v) == 0) {
		unsigned shift = text[n - 1] == 'K' ? 10 : text[n - 1] == 'M' ? 20 : 30;

		require(n > 1 && strchr("KMG", text[n - 1]) && v % (1u << shift) == 0);
		require(str_u64(text, n - 1, UINT64_MAX, &w) == 0 && w == v >> shift);
	}
}

static void texts(const uint8_t *p, size_t n)
{
	struct buf b;
	bool was = utf8_ok(p, n);

	buf_init(&b, ROOM);
	require(utf8_put_text(&b, p, n) == !was);
	require(buf_ok(&b) && utf8_ok(b.data, b.len));
	require(!was || (b.len == n && (n == 0 || memcmp(b.data, p, n) == 0)));
	buf_clear(&b);
	str_put_json(&b, (const char *)p, n);
	require(buf_ok(&b) && b.len >= 2 && b.data[0] == '"' && b.data[b.len - 1] == '"');
	require(utf8_ok(b.data, b.len));
	for (size_t i = 0; i < b.len; i++)
		require(b.data[i] >= ' ');
	buf_release(&b);
}

static void doubles(const uint8_t *p, size_t n)
{
	double v, w;
	struct buf b;
	char *end;

	if (n < sizeof(v))
		return;
	memcpy(&v, p, sizeof(v));
	buf_init(&b, ROOM);
	str_put_double(&b, v);
	buf_putc(&b, '\0');
	require(buf_ok(&b));
	w = strtod((const char *)b.data, &end);
	require(*end == '\0');
	require(isnan(v) ? isnan(w) : memcmp(&v, &w, sizeof(v)) == 0);
	require(!isfinite(v) || strpbrk((const char *)b.data, ".eE"));
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);

	numbers(text);
	texts(data, size);
	doubles(data, size);
	free(text);
	return 0;
}
