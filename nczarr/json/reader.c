/* SPDX-License-Identifier: BSD-3-Clause */
/* reader.c - JSON by jansson, after a pass that hides numbers from it.
 *
 * jansson would round numbers and reject NaN. The pass rewrites each number and each string to a
 * string with a mark as its first character, so that no string of a document can look like a
 * number. Keys are unchanged. The pass also limits depth and memory, which jansson does not. */
#include "nczarr/json/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define IS_NUMBER '#'
#define IS_TEXT '='

/* Estimated memory of values, and the limit of a document. A list of empty objects takes a hundred
 * times more memory than in the file. */
enum { COST_VALUE = 80, COST_LIST = 150, COST_OBJECT = 350 };
#define COST_MAX ((uint64_t)1 << 30)

struct json_reader_pass {
	const char *in;
	size_t n, at;
	size_t token; /* where the last token begins */
	struct buf out;
	size_t stop;      /* stop after this many bytes of output: to find the position of an
			   * error */
	uint64_t in_list; /* bit d: the container at depth d is a list */
	uint32_t depth;
	bool key_next; /* the next string is a key */
	uint64_t cost;
	const char *why; /* the error at `token` */
};

static bool json_reader_digit(const struct json_reader_pass *p, size_t at)
{
	return at < p->n && p->in[at] >= '0' && p->in[at] <= '9';
}

static bool json_reader_word(const struct json_reader_pass *p, size_t at, const char *text)
{
	size_t len = strlen(text);

	return p->n - at >= len && memcmp(p->in + at, text, len) == 0;
}

/* json_reader_number - length of the number at `at`; 0: there is none. */
static size_t json_reader_number(const struct json_reader_pass *p)
{
	size_t i = p->at, mantissa;

	if (p->in[i] == '-')
		i++;
	if (json_reader_word(p, i, "Infinity"))
		return i + 8 - p->at;
	if (json_reader_word(p, i, "NaN"))
		return i == p->at ? 3 : 0;
	mantissa = i;
	if (json_reader_digit(p, i) && p->in[i] == '0' && json_reader_digit(p, i + 1))
		return 0;
	while (json_reader_digit(p, i))
		i++;
	if (i < p->n && p->in[i] == '.') {
		if (i == mantissa && !json_reader_digit(p, i + 1))
			return 0;
		i++;
	}
	while (json_reader_digit(p, i))
		i++;
	if (i == mantissa)
		return 0;
	if (i < p->n && (p->in[i] == 'e' || p->in[i] == 'E')) {
		i++;
		if (i < p->n && (p->in[i] == '+' || p->in[i] == '-'))
			i++;
		if (!json_reader_digit(p, i))
			return 0;
		while (json_reader_digit(p, i))
			i++;
	}
	return i - p->at;
}

static bool json_reader_take_number(struct json_reader_pass *p)
{
	size_t len = json_reader_number(p);

	if (len == 0 || p->key_next) {
		p->why = len ? "a key is not a string" : "not a number";
		return false;
	}
	buf_putc(&p->out, '"');
	buf_putc(&p->out, IS_NUMBER);
	buf_put(&p->out, p->in + p->at, len);
	buf_putc(&p->out, '"');
	p->at += len;
	p->cost += COST_VALUE + len;
	return true;
}

static bool json_reader_take_text(struct json_reader_pass *p)
{
	size_t i = p->at + 1;

	while (i < p->n && p->in[i] != '"')
		i += p->in[i] == '\\' ? 2 : 1;
	if (i >= p->n) {
		p->why = "unterminated string";
		return false;
	}
	buf_putc(&p->out, '"');
	if (!p->key_next)
		buf_putc(&p->out, IS_TEXT);
	p->key_next = false;
	buf_put(&p->out, p->in + p->at + 1, i - p->at);
	p->cost += COST_VALUE + (i - p->at);
	p->at = i + 1;
	return true;
}

static bool letter(const struct json_reader_pass *p, size_t at)
{
	char c = at < p->n ? p->in[at] : '\0';

	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* take_other - copy structure, blanks and literals. */
static bool take_other(struct json_reader_pass *p)
{
	char c = p->in[p->at];

	if (letter(p, p->at)) {
		while (letter(p, p->at))
			buf_putc(&p->out, p->in[p->at++]);
		p->cost += COST_VALUE;
		return true;
	}
	if (c == '[' || c == '{') {
		if (p->depth == JSON_DEPTH_MAX) {
			p->why = "nested too deeply";
			return false;
		}
		p->cost += c == '[' ? COST_LIST : COST_OBJECT;
		if (c == '[')
			p->in_list |= (uint64_t)1 << p->depth;
		else
			p->in_list &= ~((uint64_t)1 << p->depth);
		p->depth++;
		p->key_next = c == '{';
	} else if ((c == ']' || c == '}') && p->depth) {
		p->depth--;
		p->key_next = false;
	} else if (c == ',' && p->depth) {
		p->key_next = !(p->in_list >> (p->depth - 1) & 1);
	}
	buf_putc(&p->out, c);
	p->at++;
	return true;
}

/* json_reader_run - run the pass. false: p->why has the error, or out of memory. */
static bool json_reader_run(struct json_reader_pass *p)
{
	while (p->at < p->n && p->out.len < p->stop) {
		char c = p->in[p->at];
		bool ok;

		if (!strchr(" \t\r\n", c))
			p->token = p->at;
		if (c == '"')
			ok = json_reader_take_text(p);
		else if ((c >= '0' && c <= '9') || c == '-' || c == '.' || c == 'N' || c == 'I')
			ok = json_reader_take_number(p);
		else
			ok = take_other(p);
		if (!ok || !buf_ok(&p->out))
			return false;
		if (p->cost > COST_MAX) {
			p->why = "too many values";
			return false;
		}
	}
	return true;
}

static void json_reader_start(struct json_reader_pass *p, const void *in, size_t n, size_t stop)
{
	*p = (struct json_reader_pass){.in = in, .n = n, .stop = stop};
	/* a number takes three bytes more, and is at least one long */
	buf_init(&p->out, n > SIZE_MAX / 8 ? SIZE_MAX : 4 * n + 16);
}

/* json_reader_blank - whether there is only white space. */
static bool json_reader_blank(const char *p, size_t n)
{
	while (n && strchr(" \t\r\n", *p) && *p)
		p++, n--;
	return n == 0;
}

static int json_reader_wrong(const struct json_reader_pass *p, const char *why, struct err *e)
{
	size_t line = 1, column = 1;

	for (size_t i = 0; i < p->token; i++) {
		column = p->in[i] == '\n' ? 1 : column + 1;
		line += p->in[i] == '\n';
	}
	return err_set(e, -EBADMSG, "not JSON at line %zu, column %zu: %s", line, column, why);
}

/* json_reader_explain - jansson's message with the position in the original document. Its quote of
 * the rewritten text is omitted. */
static int json_reader_explain(const struct json_reader_pass *done, const json_error_t *je,
			       struct err *e)
{
	bool end = strstr(je->text, " near end of file") != NULL;
	const char *near = end ? NULL : strstr(je->text, " near ");
	struct json_reader_pass p;
	char text[JSON_ERROR_TEXT_LENGTH + 1];
	size_t len = near ? (size_t)(near - je->text) : strlen(je->text);

	if (json_error_code(je) == json_error_out_of_memory)
		return err_nomem(e);
	memcpy(text, je->text, len);
	text[len] = '\0';
	/* the error is the last token before this position */
	json_reader_start(&p, done->in, done->n, je->position > 0 ? (size_t)je->position : 0);
	(void)json_reader_run(&p); /* it succeeded the first time */
	buf_release(&p.out);
	return json_reader_wrong(&p, text, e);
}

/* jansson reports some allocation failures as damaged documents; this allocator records them. It
 * is set for the whole process; other users of jansson still get malloc's memory and free it with
 * free(). */
static _Thread_local bool starved;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *json_reader_take_memory(size_t n)
{
	void *p = malloc(n);

	starved |= !p;
	return p;
}

static void json_reader_set_up(void)
{
	json_set_alloc_funcs(json_reader_take_memory, free);
}

int json_read(const void *p, size_t n, json_t **ret, struct err *e)
{
	struct json_reader_pass pass;
	json_error_t je;
	json_t *v = NULL;
	int rc = 0;

	if (json_reader_blank(p, n))
		return err_set(e, -EBADMSG, "empty");
	(void)pthread_once(&once, json_reader_set_up);
	starved = false;
	json_reader_start(&pass, p, n, SIZE_MAX);
	if (!json_reader_run(&pass))
		rc = pass.why ? json_reader_wrong(&pass, pass.why, e) : err_nomem(e);
	if (rc == 0) {
		v = json_loadb((const char *)pass.out.data, pass.out.len,
			       JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &je);
		if (starved) {
			json_decref(v);
			v = NULL;
			rc = err_nomem(e);
		} else if (!v) {
			rc = json_reader_explain(&pass, &je, e);
		}
	}
	buf_release(&pass.out);
	if (rc == 0)
		*ret = v;
	return rc;
}

/* marked - the string after a value's mark, if it has this one. */
static const char *marked(const json_t *v, char mark)
{
	const char *s = v && json_is_string(v) ? json_string_value(v) : NULL;

	return s && s[0] == mark ? s + 1 : NULL;
}

enum json_kind json_kind(const json_t *v)
{
	if (!v || json_is_null(v))
		return JSON_IS_NULL;
	if (json_is_object(v))
		return JSON_IS_OBJECT;
	if (json_is_array(v))
		return JSON_IS_LIST;
	if (json_is_boolean(v))
		return JSON_IS_BOOL;
	return marked(v, IS_NUMBER) ? JSON_IS_NUMBER : JSON_IS_TEXT;
}

const json_t *json_get(const json_t *v, const char *member)
{
	return v && json_is_object(v) ? json_object_get(v, member) : NULL;
}

bool json_text_of(const json_t *v, struct ds_text *ret)
{
	const char *s = marked(v, IS_TEXT);

	if (!s)
		return false;
	*ret = (struct ds_text){.s = s, .len = json_string_length(v) - 1};
	return true;
}

bool json_is(const json_t *v, const char *text)
{
	struct ds_text t;

	return json_text_of(v, &t) && t.len == strlen(text) && memcmp(t.s, text, t.len) == 0;
}

const char *json_number_text(const json_t *v)
{
	return marked(v, IS_NUMBER);
}

bool json_number_is_int(const json_t *v)
{
	const char *s = marked(v, IS_NUMBER);

	return s && s[strspn(s, "-0123456789")] == '\0';
}

/* exponent_of - parse the exponent from its 'e' on; clamped where the value overflows or
 * vanishes. */
static long exponent_of(const char *s)
{
	bool minus = s[1] == '-';
	long v = 0;

	for (s += 1 + (minus || s[1] == '+'); *s && v < 100000000; s++)
		v = v * 10 + (*s - '0');
	return minus ? -v : v;
}

/* magnitude - the absolute value of a whole number in any notation. */
static int magnitude(const char *s, uint64_t *ret)
{
	size_t len = strcspn(s, "eE");
	size_t behind = 0; /* digits after the point */
	bool point = false;
	uint64_t v = 0;
	long exponent = 0;

	if (s[0] == 'I' || s[0] == 'N')
		return -EINVAL;
	if (s[len])
		exponent = exponent_of(s + len);
	if (memchr(s, '.', len))
		while (len && s[len - 1] == '0') /* insignificant zeros */
			len--;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '.') {
			point = true;
			continue;
		}
		behind += point;
		if (ckd_mul(&v, v, (uint64_t)10) || ckd_add(&v, v, (uint64_t)(s[i] - '0')))
			return -EINVAL;
	}
	for (; v && behind && exponent > 0; behind--)
		exponent--;
	for (; v && exponent > 0; exponent--)
		if (ckd_mul(&v, v, (uint64_t)10))
			return -EINVAL;
	for (; v && exponent < 0 && v % 10 == 0 && !behind; exponent++)
		v /= 10;
	if (v && (behind || exponent < 0))
		return -EINVAL;
	*ret = v;
	return 0;
}

int json_u64(const json_t *v, uint64_t *ret)
{
	const char *s = marked(v, IS_NUMBER);
	uint64_t u;

	if (!s || magnitude(s + (s[0] == '-'), &u) < 0 || (s[0] == '-' && u))
		return -EINVAL;
	*ret = u;
	return 0;
}

int json_i64(const json_t *v, int64_t *ret)
{
	const char *s = marked(v, IS_NUMBER);
	uint64_t u;

	if (!s || magnitude(s + (s[0] == '-'), &u) < 0)
		return -EINVAL;
	if (u > (uint64_t)INT64_MAX + (s[0] == '-'))
		return -EINVAL;
	*ret = s[0] == '-' ? (int64_t)(0 - u) : (int64_t)u;
	return 0;
}

int json_double(const json_t *v, double *ret)
{
	const char *s = marked(v, IS_NUMBER);

	if (!s)
		return -EINVAL;
	/* no program of ours calls setlocale(); strtod() reads all numbers that the pass accepts
	 * to their end */
	*ret = strtod(s, NULL);
	return 0;
}

/* flat - whether a list has only scalars: it is written on one line. */
static bool flat(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++) {
		enum json_kind k = json_kind(json_array_get(v, i));

		if (k == JSON_IS_OBJECT || k == JSON_IS_LIST)
			return false;
	}
	return true;
}

/* The depth of recursion is that of the document, limited by json_read() and by the writer. */
void json_put(struct jw *j, const json_t *v)
{
	json_t *o = (json_t *)(uintptr_t)v; /* jansson's iterators are not const */
	const char *number;
	struct ds_text t;

	switch (json_kind(v)) {
	case JSON_IS_NULL:
		jw_null(j);
		break;
	case JSON_IS_BOOL:
		jw_bool(j, json_is_true(v));
		break;
	case JSON_IS_NUMBER:
		number = json_number_text(v);
		jw_raw(j, number, strlen(number));
		break;
	case JSON_IS_TEXT:
		if (json_text_of(v, &t))
			jw_text(j, t.s, t.len);
		break;
	case JSON_IS_LIST:
		jw_array(j, flat(v));
		for (size_t i = 0; i < json_array_size(v) && buf_ok(j->out); i++)
			json_put(j, json_array_get(v, i));
		jw_end(j);
		break;
	case JSON_IS_OBJECT:
		jw_object(j, json_object_size(v) == 0);
		for (void *it = json_object_iter(o); it && buf_ok(j->out);
		     it = json_object_iter_next(o, it))
			json_put(jw_key(j, json_object_iter_key(it)),
				 json_object_iter_value(it));
		jw_end(j);
		break;
	}
}

void json_write_text(const json_t *v, struct buf *out)
{
	struct jw j;

	jw_init(&j, out, false);
	j.compact = true;
	json_put(&j, v);
}
