/* SPDX-License-Identifier: BSD-3-Clause */
/* schema_names.c - makes names valid for netCDF, and unique.
 *
 * A valid name stays. In others, %XX replaces each byte that is not allowed, and '%' itself. If
 * the result would begin with '%', which netCDF does not allow, '_' is put in front. Names that
 * look like a result are escaped as well, so two names never become equal. A result that is too
 * long is truncated and ends in a hash of the name. */
#include "base/core/hash.h"
#include "base/core/utf8.h"
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
	n = utf8_prefix(name, n); /* not inside a character */
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
	for (struct link *l = map_walk(&t->map, NULL), *next; l; l = next) {
		next = map_walk(&t->map, l);
		free(CONTAINER_OF(l, struct nc_name, link));
	}
	map_free(&t->map);
}

struct nc_name *nc_names_find(const struct nc_names *t, uint32_t scope, const char *name)
{
	struct nc_name *x;

	MAP_EACH(x, &t->map, hash_text(HASH_SEED ^ scope, name), link)
		if (x->scope == scope && strcmp(x->name, name) == 0)
			return x;
	return NULL;
}

int nc_names_add(struct nc_names *t, uint32_t scope, const char *name, uint32_t value)
{
	struct nc_name *x;

	if (nc_names_find(t, scope, name))
		return -EEXIST;
	x = alloc_array(1, sizeof(*x));
	if (!x || map_add(&t->map, &x->link, hash_text(HASH_SEED ^ scope, name)) < 0) {
		free(x);
		return -ENOMEM;
	}
	x->scope = scope;
	x->value = value;
	x->next = 1;
	x->name = name;
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
		n = utf8_prefix(name, limit - strlen(tail));
		(void)snprintf(out, cap, "%.*s%s", (int)n, name, tail);
		rc = nc_names_add(t, scope, out, value);
	}
	a->starved |= rc == -ENOMEM;
	return rc ? NULL : out;
}
