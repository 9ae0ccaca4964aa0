/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_json.c - parser of one codec's JSON: the object's members, and getters for codecs.
 *
 * Other values than strings and numbers are checked, but only their presence is recorded: no codec
 * with an HDF5 filter has any. Numbers stay strings until a getter converts them. */
#include "codecs/export/conf_json.h"

#include "base/core/utf8.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16
#define EXACT_MAX 9007199254740992.0 /* 2^53: above it not every integer is a double */

struct conf_json_text {
	const char *p, *end;
	struct arena *arena;
	unsigned depth;
	bool starved; /* memory was short: the text may be valid */
};

static void conf_json_blanks(struct conf_json_text *t)
{
	while (t->p < t->end &&
	       (*t->p == ' ' || *t->p == '\t' || *t->p == '\n' || *t->p == '\r'))
		t->p++;
}

static bool conf_json_take(struct conf_json_text *t, char c)
{
	if (t->p >= t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

static bool conf_json_word(struct conf_json_text *t, const char *s)
{
	size_t n = strlen(s);

	if ((size_t)(t->end - t->p) < n || memcmp(t->p, s, n) != 0)
		return false;
	t->p += n;
	return true;
}

/* ---- strings ---- */

static bool conf_json_escape(struct conf_json_text *t, struct buf *b)
{
	const uint8_t *p = (const uint8_t *)t->p;
	uint32_t c;

	if (utf8_unescape(&p, (const uint8_t *)t->end, &c) || c == 0)
		return false;
	t->p = (const char *)p;
	utf8_put(b, c);
	return true;
}

/* string - decode the string at t->p into the arena; NULL when it is invalid or memory is short. */
static const char *string(struct conf_json_text *t)
{
	const char *ret = NULL;
	auto_buf b = buf_of(CODEC_JSON_MAX);
	bool good = conf_json_take(t, '"');

	while (good && t->p < t->end && *t->p != '"') {
		if ((unsigned char)*t->p < 0x20)
			good = false;
		else if (conf_json_take(t, '\\'))
			good = conf_json_escape(t, &b);
		else
			buf_putc(&b, *t->p++);
	}
	if (good && conf_json_take(t, '"') && buf_ok(&b) && utf8_ok(b.data, b.len))
		ret = arena_copy(t->arena, b.data ? (const void *)b.data : "", b.len);
	t->starved |= b.starved;
	return ret;
}

/* ---- values ---- */

static bool conf_json_digits(struct conf_json_text *t)
{
	const char *from = t->p;

	while (t->p < t->end && *t->p >= '0' && *t->p <= '9')
		t->p++;
	return t->p > from;
}

static bool conf_json_number(struct conf_json_text *t)
{
	(void)conf_json_take(t, '-');
	if (!conf_json_take(t, '0') && !conf_json_digits(t))
		return false;
	if (conf_json_take(t, '.') && !conf_json_digits(t))
		return false;
	if (conf_json_take(t, 'e') || conf_json_take(t, 'E')) {
		if (!conf_json_take(t, '+'))
			(void)conf_json_take(t, '-');
		return conf_json_digits(t);
	}
	return true;
}

static const struct codec_json_member *conf_json_find(const struct codec_json *j,
						      const char *name)
{
	for (size_t i = 0; i < j->n; i++)
		if (strcmp(j->v[i].name, name) == 0)
			return &j->v[i];
	return NULL;
}

static bool conf_json_value(struct conf_json_text *t, struct codec_json_member *ret);

/* conf_json_list - parse the rest of an array, or of an object, whose members `keep` gets; NULL:
 * they are only checked. */
static bool conf_json_list(struct conf_json_text *t, char end, struct codec_json *keep)
{
	if (++t->depth > DEPTH_MAX)
		return false;
	conf_json_blanks(t);
	if (!conf_json_take(t, end)) {
		do {
			struct codec_json_member m = {0};

			conf_json_blanks(t);
			if (end == '}') {
				m.name = string(t);
				conf_json_blanks(t);
				if (!m.name || !conf_json_take(t, ':'))
					return false;
			}
			if (!conf_json_value(t, &m))
				return false;
			if (!keep)
				continue;
			if (keep->n == ARRAY_LEN(keep->v) || conf_json_find(keep, m.name))
				return false;
			keep->v[keep->n++] = m;
		} while (conf_json_take(t, ','));
		if (!conf_json_take(t, end))
			return false;
	}
	t->depth--;
	return true;
}

/* conf_json_value - parse a value with the blanks around it. */
static bool conf_json_value(struct conf_json_text *t, struct codec_json_member *ret)
{
	const char *from;
	bool good = true;

	conf_json_blanks(t);
	from = t->p;
	ret->kind = CODEC_JSON_OTHER;
	if (t->p < t->end && *t->p == '"') {
		ret->kind = CODEC_JSON_TEXT;
		ret->value = string(t);
		good = ret->value != NULL;
	} else if (conf_json_word(t, "null")) {
		ret->kind = CODEC_JSON_NULL;
	} else if (conf_json_take(t, '[')) {
		good = conf_json_list(t, ']', NULL);
	} else if (conf_json_take(t, '{')) {
		good = conf_json_list(t, '}', NULL);
	} else if (!conf_json_word(t, "true") && !conf_json_word(t, "false")) {
		ret->kind = CODEC_JSON_NUMBER;
		good = conf_json_number(t);
		ret->value = good ? arena_copy(t->arena, from, (size_t)(t->p - from)) : NULL;
	}
	conf_json_blanks(t);
	return good;
}

/* ---- getters ---- */

/* conf_json_present - the member, unless it is missing or null. */
static const struct codec_json_member *conf_json_present(const void *arg, const char *member)
{
	const struct codec_json_member *m = conf_json_find(arg, member);

	return m && m->kind != CODEC_JSON_NULL ? m : NULL;
}

/* to_double - convert the text of a number, independent of the program's locale. */
static int to_double(const char *s, double *ret)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	struct conf_json_text t = {.p = s, .end = s + strlen(s)};

	if (c == (locale_t)0)
		return -ENOMEM;
	*ret = strtod_l(s, NULL, c);
	freelocale(c);
	return conf_json_number(&t) && t.p == t.end ? 0 : -EINVAL;
}

static int conf_json_get_real(void *arg, const char *member, double *ret)
{
	const struct codec_json_member *m = conf_json_present(arg, member);

	if (!m)
		return -ENOENT;
	return m->kind == CODEC_JSON_NUMBER ? to_double(m->value, ret) : -EINVAL;
}

static int conf_json_get_integer(void *arg, const char *member, int64_t *ret)
{
	const struct codec_json_member *m = conf_json_present(arg, member);
	double v = 0;
	int rc;

	if (!m)
		return -ENOENT;
	rc = m->kind == CODEC_JSON_NUMBER || m->kind == CODEC_JSON_TEXT
		     ? to_double(m->value, &v)
		     : -EINVAL;
	if (rc == 0 && (!(v >= -EXACT_MAX && v <= EXACT_MAX) || v != (double)(int64_t)v))
		rc = -EINVAL;
	if (rc < 0)
		return rc;
	*ret = (int64_t)v;
	return 0;
}

static int conf_json_get_text(void *arg, const char *member, const char **ret)
{
	const struct codec_json_member *m = conf_json_present(arg, member);

	if (!m)
		return -ENOENT;
	*ret = m->value;
	return m->kind == CODEC_JSON_TEXT ? 0 : -EINVAL;
}

int codec_json_open(const char *text, size_t n, size_t elem_size, struct codec_json *ret)
{
	struct conf_json_text t = {.p = text, .end = text + n, .arena = &ret->arena};
	bool good;

	ret->n = 0;
	/* at most as long as the text, plus the arena's overhead for each allocation */
	arena_init(&ret->arena, 64 * (size_t)CODEC_JSON_MAX);
	ret->conf = (struct codec_conf){.arg = ret,
					.version = 2,
					.json = text,
					.elem_size = elem_size,
					.integer = conf_json_get_integer,
					.real = conf_json_get_real,
					.text = conf_json_get_text};
	if (n > CODEC_JSON_MAX)
		return -ERANGE;
	conf_json_blanks(&t);
	good = conf_json_take(&t, '{') && conf_json_list(&t, '}', ret);
	if (t.starved || ret->arena.starved)
		return -ENOMEM;
	conf_json_blanks(&t);
	return good && t.p == t.end ? 0 : -EBADMSG;
}

void codec_json_close(struct codec_json *j)
{
	arena_release(&j->arena);
}
