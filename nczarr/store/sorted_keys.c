/* SPDX-License-Identifier: BSD-3-Clause */
/* sorted_keys.c - sorted names as a hierarchy. */
#include "nczarr/store/sorted_keys.h"

#include <string.h>

/* sorted_keys_rank - '/' comes before every other byte. */
static int sorted_keys_rank(char c)
{
	return c == '/' ? 0 : (unsigned char)c;
}

int sorted_keys_cmp(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = a_len < b_len ? a_len : b_len, i = 0;

	for (; i + 8 <= n && memcmp(a + i, b + i, 8) == 0; i += 8)
		;
	for (; i < n; i++)
		if (a[i] != b[i])
			return sorted_keys_rank(a[i]) - sorted_keys_rank(b[i]);
	return (a_len > b_len) - (a_len < b_len);
}

size_t sorted_keys_find(const struct sorted_keys *t, const char *key, size_t len)
{
	const char *name;
	size_t lo = 0, n;

	BISECT(lo, t->n, mid,
	       (name = t->name(t->arg, mid, &n), sorted_keys_cmp(name, n, key, len) < 0));
	return lo;
}

bool sorted_keys_is(const struct sorted_keys *t, size_t i, const char *key, size_t len)
{
	size_t n;
	const char *name;

	if (i >= t->n)
		return false;
	name = t->name(t->arg, i, &n);
	return n == len && memcmp(name, key, n) == 0;
}

bool sorted_keys_below(const struct sorted_keys *t, size_t i, const char *key, size_t len)
{
	size_t n;
	const char *name;

	if (i >= t->n)
		return false;
	if (len == 0)
		return true;
	name = t->name(t->arg, i, &n);
	return n > len && name[len] == '/' && memcmp(name, key, len) == 0;
}

/* past - the first name after i that is not below key, while i is. Exponential search: small
 * folders cost little. */
static size_t past(const struct sorted_keys *t, size_t i, const char *key, size_t len)
{
	size_t step = 1, lo = i, hi;

	while (sorted_keys_below(t, lo + step, key, len)) {
		lo += step;
		step *= 2;
	}
	hi = lo + step < t->n ? lo + step : t->n;
	BISECT(lo, hi, mid, sorted_keys_below(t, mid, key, len));
	return lo;
}

bool sorted_keys_list(const struct sorted_keys *t, const char *key, size_t len,
		      sorted_keys_emit *emit, void *arg)
{
	size_t i = sorted_keys_find(t, key, len), skip = len ? len + 1 : 0;
	bool any;

	if (len && sorted_keys_is(t, i, key, len))
		i++;
	any = sorted_keys_below(t, i, key, len);
	while (sorted_keys_below(t, i, key, len)) {
		size_t n, exact = SORTED_KEYS_NONE;
		const char *name = t->name(t->arg, i, &n);
		const char *slash = memchr(name + skip, '/', n - skip);
		size_t whole = slash ? (size_t)(slash - name) : n;
		bool has_below;

		if (!slash)
			exact = i++;
		has_below = sorted_keys_below(t, i, name, whole);
		if (has_below)
			i = past(t, i, name, whole);
		if (!emit(arg, name + skip, whole - skip, exact, has_below))
			break;
	}
	return any;
}
