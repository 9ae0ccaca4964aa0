/* conf_json.c - JSON of one codec: the object's members, and what a codec asks of them.
 *
 * Values that are arrays or objects are checked and then only known to be there: no codec with an
 * HDF5 filter has any. Numbers stay texts until somebody asks. */
#include "codecs/export/conf_json.h"

#include "base/core/str.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16
#define EXACT_MAX 9007199254740992.0 /* 2^53: above it not every integer is a double */

struct text {
	const char *p, *end;
	struct arena *arena;
	unsigned depth;
	bool starved; /* memory was short: the text may be good */
};

static void blanks(struct text *t)
{
	while (t->p < t->end &&
	       (*t->p == ' ' || *t->p == '\t' || *t->p == '\n' || *t->p == '\r'))
		t->p++;
}

static bool take(struct text *t, char c)
{
	if (t->p >= t->end || *t->p != c)
		return false;
	t->p++;
	return true;
}

static bool word(struct text *t, const char *s)
{
	size_t n = strlen(s);

	if ((size_t)(t->end - t->p) < n || memcmp(t->p, s, n) != 0)
		return false;
	t->p += n;
	return true;
}

/* ---- texts ---- */

static bool hex4(struct text *t, uint32_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 4; i++, t->p++) {
		char c = t->p < t->end ? *t->p : '\0';

		if (c >= '0' && c <= '9')
			*ret = *ret << 4 | (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*ret = *ret << 4 | (uint32_t)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			*ret = *ret << 4 | (uint32_t)(c - 'A' + 10);
		else
			return false;
	}
	return true;
}

static void put_utf8(struct buf *b, uint32_t c)
{
	if (c < 0x80) {
		buf_putc(b, (char)c);
		return;
	}
	if (c < 0x800) {
		buf_putc(b, (char)(0xc0 | c >> 6));
	} else {
		if (c < 0x10000) {
			buf_putc(b, (char)(0xe0 | c >> 12));
		} else {
			buf_putc(b, (char)(0xf0 | c >> 18));
			buf_putc(b, (char)(0x80 | (c >> 12 & 0x3f)));
		}
		buf_putc(b, (char)(0x80 | (c >> 6 & 0x3f)));
	}
	buf_putc(b, (char)(0x80 | (c & 0x3f)));
}

/* unicode - behind "\u"; characters above U+FFFF are two escapes. */
static bool unicode(struct text *t, struct buf *b)
{
	uint32_t c, low;

	if (!hex4(t, &c) || c == 0 || (c >= 0xdc00 && c < 0xe000))
		return false;
	if (c >= 0xd800 && c < 0xdc00) {
		if (!word(t, "\\u") || !hex4(t, &low) || low < 0xdc00 || low >= 0xe000)
			return false;
		c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
	}
	put_utf8(b, c);
	return true;
}

static bool escape(struct text *t, struct buf *b)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;

	if (t->p >= t->end || *t->p == '\0')
		return false;
	if (take(t, 'u'))
		return unicode(t, b);
	at = strchr(from, *t->p);
	if (!at)
		return false;
	t->p++;
	buf_putc(b, to[at - from]);
	return true;
}

/* string - what the text at t->p means, in the arena; NULL when it is none or memory is short. */
static const char *string(struct text *t)
{
	const char *ret = NULL;
	struct buf b;
	bool good = take(t, '"');

	buf_init(&b, CODEC_JSON_MAX);
	while (good && t->p < t->end && *t->p != '"') {
		if ((unsigned char)*t->p < 0x20)
			good = false;
		else if (take(t, '\\'))
			good = escape(t, &b);
		else
			buf_putc(&b, *t->p++);
	}
	if (good && take(t, '"') && buf_ok(&b) && str_utf8_ok(b.data, b.len))
		ret = arena_copy(t->arena, b.data ? (const void *)b.data : "", b.len);
	t->starved |= b.starved;
	buf_release(&b);
	return ret;
}

/* ---- values ---- */

static bool digits(struct text *t)
{
	const char *from = t->p;

	while (t->p < t->end && *t->p >= '0' && *t->p <= '9')
		t->p++;
	return t->p > from;
}

static bool number(struct text *t)
{
	(void)take(t, '-');
	if (!take(t, '0') && !digits(t))
		return false;
	if (take(t, '.') && !digits(t))
		return false;
	if (take(t, 'e') || take(t, 'E')) {
		if (!take(t, '+'))
			(void)take(t, '-');
		return digits(t);
	}
	return true;
}

static bool value(struct text *t, struct codec_json_member *ret);

/* list - the rest of an array, or of an object, of which only the form matters. */
static bool list(struct text *t, char end, bool named)
{
	struct codec_json_member ignored;

	if (++t->depth > DEPTH_MAX)
		return false;
	blanks(t);
	if (!take(t, end)) {
		do {
			blanks(t);
			if (named) {
				if (!string(t))
					return false;
				blanks(t);
				if (!take(t, ':'))
					return false;
			}
			if (!value(t, &ignored))
				return false;
		} while (take(t, ','));
		if (!take(t, end))
			return false;
	}
	t->depth--;
	return true;
}

/* value - with the blanks around it. */
static bool value(struct text *t, struct codec_json_member *ret)
{
	const char *from;
	bool good = true;

	blanks(t);
	from = t->p;
	if (t->p < t->end && *t->p == '"') {
		ret->kind = CODEC_JSON_TEXT;
		ret->value = string(t);
		blanks(t);
		return ret->value != NULL;
	}
	if (word(t, "null")) {
		ret->kind = CODEC_JSON_NULL;
	} else if (word(t, "true") || word(t, "false")) {
		ret->kind = CODEC_JSON_BOOL;
	} else if (take(t, '[')) {
		ret->kind = CODEC_JSON_OTHER;
		good = list(t, ']', false);
	} else if (take(t, '{')) {
		ret->kind = CODEC_JSON_OTHER;
		good = list(t, '}', true);
	} else {
		ret->kind = CODEC_JSON_NUMBER;
		good = number(t);
	}
	if (!good)
		return false;
	ret->value = arena_copy(t->arena, from, (size_t)(t->p - from));
	blanks(t);
	return ret->value != NULL;
}

static const struct codec_json_member *find(const struct codec_json *j, const char *name)
{
	for (size_t i = 0; i < j->n; i++)
		if (strcmp(j->v[i].name, name) == 0)
			return &j->v[i];
	return NULL;
}

static bool members(struct text *t, struct codec_json *j)
{
	blanks(t);
	if (!take(t, '{'))
		return false;
	blanks(t);
	if (take(t, '}'))
		return true;
	do {
		struct codec_json_member m = {0};

		blanks(t);
		m.name = string(t);
		blanks(t);
		if (!m.name || !take(t, ':') || !value(t, &m))
			return false;
		if (j->n == ARRAY_LEN(j->v) || find(j, m.name))
			return false;
		j->v[j->n++] = m;
	} while (take(t, ','));
	return take(t, '}');
}

/* ---- what codecs ask ---- */

/* present - the member, unless it is missing or null. */
static const struct codec_json_member *present(const void *arg, const char *member)
{
	const struct codec_json_member *m = find(arg, member);

	return m && m->kind != CODEC_JSON_NULL ? m : NULL;
}

/* to_double - the text of a number, whatever the program's locale. */
static int to_double(const char *s, double *ret)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	struct text t = {.p = s, .end = s + strlen(s)};

	if (c == (locale_t)0)
		return -ENOMEM;
	*ret = strtod_l(s, NULL, c);
	freelocale(c);
	return number(&t) && t.p == t.end ? 0 : -EINVAL;
}

static int get_real(void *arg, const char *member, double *ret)
{
	const struct codec_json_member *m = present(arg, member);

	if (!m)
		return -ENOENT;
	return m->kind == CODEC_JSON_NUMBER ? to_double(m->value, ret) : -EINVAL;
}

static int get_integer(void *arg, const char *member, int64_t *ret)
{
	const struct codec_json_member *m = present(arg, member);
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

static int get_text(void *arg, const char *member, const char **ret)
{
	const struct codec_json_member *m = present(arg, member);

	if (!m)
		return -ENOENT;
	*ret = m->value;
	return m->kind == CODEC_JSON_TEXT ? 0 : -EINVAL;
}

static int get_boolean(void *arg, const char *member, bool *ret)
{
	const struct codec_json_member *m = present(arg, member);

	if (!m)
		return -ENOENT;
	*ret = m->value[0] == 't';
	return m->kind == CODEC_JSON_BOOL ? 0 : -EINVAL;
}

int codec_json_open(const char *text, size_t n, int version, size_t elem_size,
		    struct codec_json *ret, struct err *e)
{
	struct text t = {.p = text, .end = text + n, .arena = &ret->arena};
	bool good;

	ret->n = 0;
	/* as long as the text at most, but for what the arena adds to each piece */
	arena_init(&ret->arena, 64 * (size_t)CODEC_JSON_MAX);
	ret->conf = (struct codec_conf){.arg = ret,
					.version = version,
					.json = text,
					.elem_size = elem_size,
					.integer = get_integer,
					.real = get_real,
					.text = get_text,
					.boolean = get_boolean};
	if (n > CODEC_JSON_MAX)
		return err_set(e, -ERANGE, "JSON of %zu bytes exceeds %d", n, CODEC_JSON_MAX);
	good = members(&t, ret);
	if (t.starved || ret->arena.starved)
		return err_nomem(e);
	if (!good)
		return err_set(e, -EBADMSG, "not a JSON object: at byte %zu",
			       (size_t)(t.p - text));
	blanks(&t);
	if (t.p < t.end)
		return err_set(e, -EBADMSG, "more than a JSON object: at byte %zu",
			       (size_t)(t.p - text));
	return 0;
}

void codec_json_close(struct codec_json *j)
{
	arena_release(&j->arena);
}
