/* SPDX-License-Identifier: BSD-3-Clause */
/* damage_tree.c - documents of JSON, and trees of objects. */
#include "tests/fuzz/damage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- JSON ---- */

#define TOKENS 3000

/* token - a value or a key as it stands in the text. */
struct token {
	size_t at, n;
	bool key;
	bool whole; /* an object or list with all that is in it */
};

/* scan - the tokens of a text, which may be anything. Returns how many. */
static size_t scan(const uint8_t *p, size_t n, struct token *t)
{
	size_t open[64], depth = 0, found = 0, at = 0, from;

	while (at < n && found < TOKENS) {
		from = at;
		if (p[at] == '"') {
			for (at++; at < n && p[at] != '"'; at++)
				at += p[at] == '\\';
			at = at < n ? at + 1 : n;
			t[found] = (struct token){.at = from, .n = at - from};
			while (at < n && p[at] == ' ')
				at++;
			t[found++].key = at < n && p[at] == ':';
		} else if (p[at] == '{' || p[at] == '[') {
			if (depth < 64) {
				open[depth++] = found;
				t[found++] = (struct token){.at = at, .whole = true};
			}
			at++;
		} else if (p[at] == '}' || p[at] == ']') {
			at++;
			if (depth > 0) {
				depth--;
				t[open[depth]].n = at - t[open[depth]].at;
			}
		} else if (memchr(" ,:\t\r\n", p[at], 6)) {
			at++;
		} else {
			while (at < n && !memchr(" ,:]}[{\"\t\r\n", p[at], 10))
				at++;
			at += at == from;
			t[found++] = (struct token){.at = from, .n = at - from};
		}
	}
	while (depth > 0) {
		depth--;
		t[open[depth]].n = n - t[open[depth]].at;
	}
	return found;
}

/* replace - n bytes at `at` by `more` others. from may be in h. */
static void replace(struct hurt *h, size_t at, size_t n, const uint8_t *from, size_t more)
{
	uint8_t *copy;

	if (more > n && more - n > h->cap - h->n)
		return;
	copy = malloc(more ? more : 1);
	if (!copy)
		abort();
	memcpy(copy, from, more);
	memmove(h->p + at + more, h->p + at + n, h->n - at - n);
	memcpy(h->p + at, copy, more);
	h->n = h->n - n + more;
	free(copy);
}

static void replace_text(struct hurt *h, size_t at, size_t n, const char *text)
{
	replace(h, at, n, (const uint8_t *)text, strlen(text));
}

static const char *const odd[] = {
	"0",
	"-1",
	"1",
	"2",
	"3",
	"2.5",
	"1e400",
	"-0",
	"1e2",
	"NaN",
	"Infinity",
	"4294967295",
	"4294967296",
	"2147483648",
	"9223372036854775807",
	"9223372036854775808",
	"18446744073709551615",
	"18446744073709551616",
	"1000000000000",
	"null",
	"true",
	"false",
	"\"\"",
	"\"7\"",
	"\"NaN\"",
	"[]",
	"{}",
	"[0]",
	"[1,1]",
	"[[1]]",
	"\"\\u0000\"",
	"\"\\ud800\"",
	"\"\xff\xfe\"",
	"\"..\"",
	"\"/\"",
	"\"a/b\"",
	"\"<f8\"",
	"\"|O\"",
	"\"<U1\"",
	"\">i2\"",
	"\"|V7\"",
	"\"<M8[ns]\"",
	"\"|S4294967295\"",
	"\"float32\"",
	"\"0x7fc00000\"",
	"\"QUJD\"",
	"\".\"",
	"\"C\"",
	"\"F\"",
	"[[\"a\",\"<i2\"],[\"b\",\">f4\",[2,3]]]",
	"{\"id\":\"zlib\",\"level\":1}",
	"{\"id\":\"vlen-utf8\"}",
	"{\"name\":\"gzip\"}",
	"{\"name\":\"transpose\",\"configuration\":{\"order\":[0]}}",
	"{\"name\":\"crc32c\"}",
};

/* nest - a value becomes lists or objects around itself. */
static void nest(struct dice *d, struct hurt *h, const struct token *t)
{
	size_t deep = 1 + (size_t)dice_below(d, dice_below(d, 4) ? 4 : 600);
	bool object = dice_below(d, 2);
	const char *open = object ? "{\"a\":" : "[";
	uint8_t *text;
	size_t width = strlen(open), n = deep * (width + 1) + t->n;

	text = malloc(n);
	if (!text)
		abort();
	for (size_t i = 0; i < deep; i++)
		memcpy(text + i * width, open, width);
	memcpy(text + deep * width, h->p + t->at, t->n);
	memset(text + deep * width + t->n, object ? '}' : ']', deep);
	replace(h, t->at, t->n, text, n);
	free(text);
}

/* member - the key t and its value, twice: the second time with another value; or gone. */
static void member(struct dice *d, struct hurt *h, const struct token *t, size_t left)
{
	const struct token *v = left > 1 ? t + 1 : NULL;
	char text[600];
	size_t n;

	if (!v || v->key || t->n + v->n + 60 > sizeof(text))
		return;
	n = v->at + v->n - t->at;
	if (dice_below(d, 2)) {
		size_t more = h->p[v->at + v->n - 1] && v->at + v->n < h->n &&
			      h->p[v->at + v->n] == ',';

		replace_text(h, t->at, n + more, "");
		return;
	}
	n = (size_t)snprintf(text, sizeof(text), "%.*s:%s,", (int)t->n,
			     (const char *)h->p + t->at,
			     odd[dice_below(d, sizeof(odd) / sizeof(odd[0]))]);
	replace(h, t->at, 0, (const uint8_t *)text, n);
}

/* digits - a number that is nearly the same. */
static void digits(struct dice *d, struct hurt *h, const struct token *t)
{
	char text[40];
	uint64_t v = 0;

	for (size_t i = 0; i < t->n && i < 18; i++)
		v = h->p[t->at + i] >= '0' && h->p[t->at + i] <= '9'
			    ? v * 10 + (uint64_t)(h->p[t->at + i] - '0')
			    : v;
	v = dice_below(d, 3) ? v + dice_below(d, 5) - 2 : dice_below(d, 2) ? v * 2 : v << 30;
	(void)snprintf(text, sizeof(text), "%lld", (long long)v);
	replace_text(h, t->at, t->n, text);
}

void damage_json(struct dice *d, struct hurt *h)
{
	static struct token t[TOKENS]; /* one thread */
	size_t n = scan(h->p, h->n, t), i, k;

	if (n == 0 || dice_below(d, 12) == 0) {
		damage_bytes(d, h);
		return;
	}
	i = (size_t)dice_below(d, n);
	k = (size_t)dice_below(d, n);
	for (int tries = 0; tries < 8 && (t[k].key != t[i].key || i == k); tries++)
		k = (size_t)dice_below(d, n);
	switch (dice_below(d, 8)) {
	case 0:
	case 1:
		replace(h, t[i].at, t[i].n, h->p + t[k].at, t[k].n);
		return;
	case 2:
		nest(d, h, &t[i]);
		return;
	case 3:
		for (size_t j = 0; j < n && !t[i].key; j++)
			i = (i + 1) % n;
		member(d, h, &t[i], n - i);
		return;
	case 4:
		for (size_t j = 0; j < n && (t[i].key || !strchr("0123456789-", h->p[t[i].at]));
		     j++)
			i = (i + 1) % n;
		digits(d, h, &t[i]);
		return;
	case 5: /* one more in a list */
		if (t[i].whole && h->p[t[i].at] == '[') {
			replace_text(h, t[i].at + 1, 0, t[i].n > 2 ? "0," : "0");
			return;
		}
		/* fall through */
	default:
		replace_text(h, t[i].at, t[i].n,
			     odd[dice_below(d, sizeof(odd) / sizeof(odd[0]))]);
	}
}

/* ---- trees ---- */

#define BODY_MORE ((size_t)20000)

static struct hurt hurt_of(const uint8_t *p, size_t n)
{
	struct hurt h = {.p = malloc(n + BODY_MORE), .n = n, .cap = n + BODY_MORE};

	if (!h.p)
		abort();
	memcpy(h.p, p, n);
	return h;
}

void tree_unpack(const uint8_t *p, size_t n, struct tree *ret)
{
	*ret = (struct tree){.o = calloc(TREE_OBJECTS, sizeof(*ret->o))};
	if (!ret->o)
		abort();
	while (n >= 6 && ret->n < TREE_OBJECTS) {
		size_t key = (size_t)(p[0] | p[1] << 8),
		       len = (size_t)p[2] | (size_t)p[3] << 8 | (size_t)p[4] << 16 |
			     (size_t)p[5] << 24;
		struct object *o = &ret->o[ret->n];

		if (key > n - 6 || len > n - 6 - key)
			return;
		if (key < sizeof(o->key)) {
			memcpy(o->key, p + 6, key);
			o->body = hurt_of(p + 6 + key, len);
			ret->n++;
		}
		p += 6 + key + len;
		n -= 6 + key + len;
	}
}

size_t tree_pack(const struct tree *t, uint8_t *out, size_t cap)
{
	size_t at = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct object *o = &t->o[i];
		size_t key = strlen(o->key), len = o->body.n;

		if (key + 6 > cap - at || len > cap - at - key - 6)
			break;
		out[at] = (uint8_t)key;
		out[at + 1] = (uint8_t)(key >> 8);
		for (int k = 0; k < 4; k++)
			out[at + 2 + (size_t)k] = (uint8_t)(len >> 8 * k);
		memcpy(out + at + 6, o->key, key);
		memcpy(out + at + 6 + key, o->body.p, len);
		at += 6 + key + len;
	}
	return at;
}

void tree_release(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->o[i].body.p);
	free(t->o);
	*t = (struct tree){0};
}

static bool is_document(const char *key)
{
	const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;

	return name[0] == '.' || strstr(name, ".json");
}

static uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t c = UINT32_MAX;

	while (n-- > 0) {
		c ^= *p++;
		for (int i = 0; i < 8; i++)
			c = c >> 1 ^ (c & 1 ? 0x82F63B78u : 0);
	}
	return ~c;
}

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

/* index_of - whether a shard's index is in an object: n entries of 16 bytes and a checksum, at its
 * end or at its beginning. */
static bool index_of(const struct hurt *h, size_t *ret_at, size_t *ret_n)
{
	for (size_t n = 1; n <= 256 && 16 * n + 4 <= h->n; n++)
		for (int end = 0; end < 2; end++) {
			size_t at = end ? h->n - 4 - 16 * n : 0;

			if (crc32c(h->p + at, 16 * n) != le32(h->p + at + 16 * n))
				continue;
			*ret_at = at;
			*ret_n = n;
			return true;
		}
	return false;
}

static void damage_chunk(struct dice *d, struct hurt *h)
{
	size_t at, n, slot;
	uint32_t sum;

	if (dice_below(d, 4) == 0 || !index_of(h, &at, &n)) {
		damage_bytes(d, h);
		return;
	}
	slot = at + 8 * (size_t)dice_below(d, 2 * n);
	switch (dice_below(d, 4)) {
	case 0: /* where another is: they overlap */
		memmove(h->p + slot, h->p + at + 8 * (size_t)dice_below(d, 2 * n), 8);
		break;
	case 1: /* into the index itself, and the end */
		memset(h->p + slot, 0, 8);
		for (int i = 0; i < 4; i++)
			h->p[slot + (size_t)i] =
				(uint8_t)((dice_below(d, 2) ? at : h->n) >> 8 * i);
		break;
	default:
		damage_field(d, h->p + slot, 8, false);
	}
	sum = crc32c(h->p + at, 16 * n);
	for (int i = 0; i < 4 && dice_below(d, 10); i++)
		h->p[at + 16 * n + (size_t)i] = (uint8_t)(sum >> 8 * i);
}

static void remove_object(struct tree *t, size_t i)
{
	free(t->o[i].body.p);
	memmove(&t->o[i], &t->o[i + 1], (t->n - i - 1) * sizeof(*t->o));
	t->n--;
}

void damage_tree(struct dice *d, struct tree *t)
{
	struct object *o;
	size_t i, k;

	if (t->n == 0)
		return;
	i = (size_t)dice_below(d, t->n);
	k = (size_t)dice_below(d, t->n);
	for (int tries = 0; tries < 6 && !is_document(t->o[i].key); tries++)
		i = dice_below(d, 2) ? i : (size_t)dice_below(d, t->n);
	o = &t->o[i];
	switch (dice_below(d, 16)) {
	case 0:
		if (t->n > 1)
			remove_object(t, i);
		return;
	case 1:
		o->body.n = (size_t)dice_below(d, o->body.n + 1);
		return;
	case 2: /* another's bytes */
		free(o->body.p);
		o->body = i == k ? hurt_of((const uint8_t *)"", 0)
				 : hurt_of(t->o[k].body.p, t->o[k].body.n);
		return;
	case 3: /* another's name: two of them, in an archive; below an array, as a folder */
		memcpy(o->key, t->o[k].key, sizeof(o->key));
		if (dice_below(d, 3) == 0 && strlen(o->key) + 3 < sizeof(o->key))
			memcpy(o->key + strlen(o->key), "/0", 3);
		return;
	default:
		if (is_document(o->key))
			damage_json(d, &o->body);
		else
			damage_chunk(d, &o->body);
	}
}

/* ---- archives ---- */

static void put_bytes(struct hurt *h, const void *p, size_t n)
{
	if (n > h->cap - h->n) {
		h->cap = 2 * h->cap + n;
		h->p = realloc(h->p, h->cap);
		if (!h->p)
			abort();
	}
	memcpy(h->p + h->n, p, n);
	h->n += n;
}

static void put_number(struct hurt *h, uint64_t v, size_t width)
{
	uint8_t b[8];

	for (size_t i = 0; i < width; i++)
		b[i] = (uint8_t)(v >> 8 * i);
	put_bytes(h, b, width);
}

/* packed - a body as it stands in the archive. Returns its method. */
static unsigned packed(const struct hurt *body, bool deflate_it, struct hurt *ret)
{
	z_stream z = {0};
	uLong room = compressBound((uLong)body->n) + 32;

	*ret = hurt_of(body->p, body->n);
	if (!deflate_it || deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	free(ret->p);
	ret->p = malloc(room);
	if (!ret->p)
		abort();
	z.next_in = body->p;
	z.avail_in = (uInt)body->n;
	z.next_out = ret->p;
	z.avail_out = (uInt)room;
	if (deflate(&z, Z_FINISH) != Z_STREAM_END)
		abort();
	ret->n = z.total_out;
	(void)deflateEnd(&z);
	return 8;
}

void tree_zip(const struct tree *t, bool deflate_it, struct hurt *ret)
{
	struct hurt dir = hurt_of((const uint8_t *)"", 0);
	size_t at;

	*ret = hurt_of((const uint8_t *)"", 0);
	for (size_t i = 0; i < t->n; i++) {
		const struct object *o = &t->o[i];
		size_t key = strlen(o->key), off = ret->n;
		struct hurt body;
		unsigned method = packed(&o->body, deflate_it, &body);
		uint64_t crc = crc32(0, o->body.p, (uInt)o->body.n);

		for (int central = 0; central < 2; central++) {
			struct hurt *h = central ? &dir : ret;

			put_number(h, central ? 0x02014b50 : 0x04034b50, 4);
			put_number(h, 20, central ? 4 : 2);
			put_number(h, 0, 2);
			put_number(h, method, 2);
			put_number(h, 0x58210000, 4);
			put_number(h, crc, 4);
			put_number(h, body.n, 4);
			put_number(h, o->body.n, 4);
			put_number(h, key, 2);
			put_number(h, 0, 2);
			if (central) {
				put_number(h, 0, 8);
				put_number(h, 0, 2);
				put_number(h, off, 4);
			}
			put_bytes(h, o->key, key);
		}
		put_bytes(ret, body.p, body.n);
		free(body.p);
	}
	at = ret->n;
	put_bytes(ret, dir.p, dir.n);
	put_number(ret, 0x06054b50, 4);
	put_number(ret, 0, 4);
	put_number(ret, t->n, 2);
	put_number(ret, t->n, 2);
	put_number(ret, dir.n, 4);
	put_number(ret, at, 4);
	put_number(ret, 0, 2);
	free(dir.p);
}
