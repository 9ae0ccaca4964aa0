/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_names.c - makes names valid for netCDF, and unique.
 *
 * A valid name stays. In others, %XX replaces each byte that is not allowed, and '%' itself. If
 * the result would begin with '%', which netCDF does not allow, '_' is put in front. Names that
 * look like a result are escaped as well, so two names never become equal. A result that is too
 * long is truncated and ends in a hash of the name. */
#include "base/core/hash.h"
#include "hdf5view/netcdf4/schema.h"

#include <stdio.h>
#include <string.h>

#define CUT_TAIL 9 /* "~" and eight digits */

/* ---- escaping ---- */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F');
}

/* may_begin - letters, digits, '_', and everything beyond ASCII. */
static bool may_begin(unsigned char c)
{
	return c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z');
}

static bool control(unsigned char c)
{
	return c < 0x20 || c == 0x7f || c == '/';
}

/* starts_special - a prefix with a meaning in netCDF or in this escaping. */
static bool starts_special(const char *name)
{
	return strncmp(name, NETCDF_NON_COORD, sizeof(NETCDF_NON_COORD) - 1) == 0 ||
	       strncmp(name, "_%", 2) == 0;
}

static bool names_allowed(const char *name, size_t n)
{
	if (n == 0 || !may_begin((unsigned char)name[0]) || name[n - 1] == ' ' ||
	    starts_special(name))
		return false;
	for (size_t i = 0; i < n; i++)
		if (control((unsigned char)name[i]) ||
		    (name[i] == '%' && is_hex(name[i + 1]) && is_hex(name[i + 2])))
			return false;
	return true;
}

/* names_cut - truncate a name to `limit` bytes that end in a hash of it. */
static const char *names_cut(struct arena *a, const char *name, size_t limit)
{
	uint32_t sum = 2166136261U;
	size_t n = limit - CUT_TAIL;
	char *out = arena_alloc(a, limit + 1, 1);

	if (!out)
		return NULL;
	for (const char *p = name; *p; p++)
		sum = (sum ^ (unsigned char)*p) * 16777619U;
	while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
		n--; /* not inside a character */
	(void)snprintf(out, limit + 1, "%.*s~%08x", (int)n, name, sum);
	return out;
}

const char *nc_escape(struct arena *a, const char *name, size_t limit)
{
	size_t n = strlen(name), len = 0;
	bool first = n > 0 && (!may_begin((unsigned char)name[0]) || starts_special(name));
	char *out;

	if (names_allowed(name, n))
		return n <= limit ? name : names_cut(a, name, limit);
	if (n == 0)
		return arena_strdup(a, "_%00"); /* no name has a NUL */
	out = arena_alloc(a, n + 1, 3);
	if (!out)
		return NULL;
	if (first)
		out[len++] = '_';
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];

		if (control(c) || c == '%' || (i == 0 && first) || (i + 1 == n && c == ' ')) {
			(void)snprintf(out + len, 4, "%%%02X", c);
			len += 3;
		} else {
			out[len++] = (char)c;
		}
	}
	return len <= limit ? out : names_cut(a, out, limit);
}

/* ---- the table ---- */

void nc_names_release(struct nc_names *t)
{
	free(t->slots);
	*t = (struct nc_names){0};
}

static uint32_t names_hash_of(uint32_t scope, const char *name)
{
	const uint64_t h = hash_text(HASH_SEED ^ scope, name);

	return (uint32_t)(h ^ h >> 32);
}

/* names_slot_of - the slot of a name, or the free slot for it. The table has a free
 * slot. */
static struct nc_name *names_slot_of(const struct nc_names *t, uint32_t scope, const char *name,
				     uint32_t hash)
{
	size_t i = hash & (t->cap - 1);

	while (t->slots[i].name && (t->slots[i].hash != hash || t->slots[i].scope != scope ||
				    strcmp(t->slots[i].name, name) != 0))
		i = (i + 1) & (t->cap - 1);
	return &t->slots[i];
}

struct nc_name *nc_names_find(const struct nc_names *t, uint32_t scope, const char *name)
{
	struct nc_name *s =
		t->cap ? names_slot_of(t, scope, name, names_hash_of(scope, name)) : NULL;

	return s && s->name ? s : NULL;
}

static int names_grow(struct nc_names *t)
{
	struct nc_names big = {.n = t->n, .cap = t->cap ? 2 * t->cap : 64};

	big.slots = alloc_array(big.cap, sizeof(*big.slots));
	if (!big.slots)
		return -ENOMEM;
	for (size_t i = 0; i < t->cap; i++)
		if (t->slots[i].name)
			*names_slot_of(&big, t->slots[i].scope, t->slots[i].name,
				       t->slots[i].hash) = t->slots[i];
	free(t->slots);
	*t = big;
	return 0;
}

int nc_names_add(struct nc_names *t, uint32_t scope, const char *name, uint32_t value)
{
	uint32_t hash = names_hash_of(scope, name);
	struct nc_name *s;

	if (t->n + 1 > t->cap / 2 && names_grow(t) < 0)
		return -ENOMEM;
	s = names_slot_of(t, scope, name, hash);
	if (s->name)
		return -EEXIST;
	*s = (struct nc_name){
		.scope = scope, .value = value, .next = 1, .hash = hash, .name = name};
	t->n++;
	return 0;
}

const char *nc_names_claim(struct nc_names *t, struct arena *a, uint32_t scope,
			   const char *want, uint32_t value, size_t limit)
{
	size_t n = strlen(want), cap = limit + 1;
	const char *name = n > limit ? names_cut(a, want, limit) : want;
	char *out = NULL, tail[12];
	int rc = name ? nc_names_add(t, scope, name, value) : -ENOMEM;

	a->starved |= rc == -ENOMEM; /* no memory for the table: mark the arena, which callers
				      * query for the reason */
	if (rc != -EEXIST)
		return rc ? NULL : name;
	out = arena_alloc(a, cap, 1);
	while (out && rc == -EEXIST) {
		struct nc_name *s = nc_names_find(t, scope, name);

		(void)snprintf(tail, sizeof(tail), "_%u", s->next++);
		n = u64_min(strlen(name), limit - strlen(tail));
		while (n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
			n--;
		(void)snprintf(out, cap, "%.*s%s", (int)n, name, tail);
		rc = nc_names_add(t, scope, out, value);
	}
	a->starved |= rc == -ENOMEM;
	return rc ? NULL : out;
}
