/* SPDX-License-Identifier: BSD-3-Clause */
/* util.h - for the tests of codecs: bytes from hexadecimal text, or reproducible noise; and
 * configurations as a Zarr document would give them. */
#ifndef TESTS_UNIT_CODECS_UTIL_H
#define TESTS_UNIT_CODECS_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codecs/core/codec.h"

#include <cmocka.h>

static inline uint8_t nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* from_hex - bytes of a lower-case hexadecimal text into out; returns their number. */
static inline size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	return n;
}

/* noise - n reproducible bytes. */
static inline void noise(uint8_t *p, size_t n, uint32_t seed)
{
	for (size_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		p[i] = (uint8_t)(seed >> 24);
	}
}

/* chunk20 - twenty little-endian doubles 0, 0.25, 0.5 ... */
static inline void chunk20(uint8_t out[160])
{
	for (unsigned int i = 0; i < 20; i++) {
		double v = 0.25 * i;
		uint64_t bits;

		memcpy(&bits, &v, sizeof(bits));
		for (unsigned int j = 0; j < 8; j++)
			out[8 * i + j] = (uint8_t)(bits >> (8 * j));
	}
}

/* call_decode, call_check, call_frame, call_encode - call a codec with these arguments. */
static inline int call_decode(const struct codec_ops *ops, struct codec_scratch *s,
			      const struct codec_spec *spec, size_t elem_size,
			      const uint8_t *in, size_t in_len, uint8_t *out, size_t cap,
			      size_t *ret_len, struct err *e)
{
	return ops->decode(&(const struct codec_call){.scratch = s,
						      .spec = spec,
						      .elem_size = elem_size,
						      .in = in,
						      .in_len = in_len,
						      .out = out,
						      .cap = cap,
						      .ret_len = ret_len,
						      .e = e});
}

static inline int call_check(const struct codec_ops *ops, const uint8_t *in, size_t in_len,
			     size_t *ret_len, struct err *e)
{
	return ops->check(&(const struct codec_call){
		.in = in, .in_len = in_len, .ret_len = ret_len, .e = e});
}

static inline void call_frame(const struct codec_ops *ops, const struct codec_spec *spec,
			      size_t elem_size, const uint8_t *in, size_t n, uint8_t *out)
{
	ops->frame(&(const struct codec_call){
		.spec = spec, .elem_size = elem_size, .in = in, .in_len = n, .out = out});
}

static inline int call_encode(const struct codec_ops *ops, struct codec_scratch *s,
			      const struct codec_spec *spec, size_t elem_size,
			      const uint8_t *in, size_t n, struct buf *to, struct err *e)
{
	return ops->encode(&(const struct codec_call){.scratch = s,
						      .spec = spec,
						      .elem_size = elem_size,
						      .in = in,
						      .in_len = n,
						      .to = to,
						      .e = e});
}

/* ---- configurations: "level=#5,dtype=<f4,cname=lz4"; '#' is in front of numbers ---- */

struct fake_conf {
	const char *text;
	char value[64]; /* of the member looked at last */
};

/* fake_find - the member's value, '#' included, in c->value; false when there is none. */
static inline bool fake_find(struct fake_conf *c, const char *member)
{
	size_t n = strlen(member);

	for (const char *p = c->text; *p; p += *p == ',') {
		size_t len = strcspn(p, ",");

		if (len > n && strncmp(p, member, n) == 0 && p[n] == '=') {
			assert_true(len - n - 1 < sizeof(c->value));
			memcpy(c->value, p + n + 1, len - n - 1);
			c->value[len - n - 1] = '\0';
			return true;
		}
		p += len;
	}
	return false;
}

static inline int fake_real(void *arg, const char *member, double *ret)
{
	struct fake_conf *c = arg;
	char *end;

	if (!fake_find(c, member))
		return -ENOENT;
	if (c->value[0] != '#')
		return -EINVAL;
	*ret = strtod(c->value + 1, &end);
	return *end ? -EINVAL : 0;
}

static inline int fake_integer(void *arg, const char *member, int64_t *ret)
{
	struct fake_conf *c = arg;
	char *end;

	if (!fake_find(c, member))
		return -ENOENT;
	*ret = strtoll(c->value + (c->value[0] == '#'), &end, 10);
	return *end ? -EINVAL : 0;
}

static inline int fake_text(void *arg, const char *member, const char **ret)
{
	struct fake_conf *c = arg;

	if (!fake_find(c, member))
		return -ENOENT;
	*ret = c->value;
	return c->value[0] == '#' ? -EINVAL : 0;
}

/* made - a filter and its parameters. */
struct made {
	const struct codec_ops *ops;
	struct codec_spec spec;
	uint32_t params[CODEC_PARAMS_MAX];
};

/* from_conf - the filter that a document names; what from_zarr returned. */
static inline int from_conf(struct made *m, int version, const char *codec, const char *text,
			    size_t elem_size, struct err *e)
{
	struct fake_conf c = {.text = text};
	const struct codec_conf conf = {.arg = &c,
					.version = version,
					.elem_size = elem_size,
					.integer = fake_integer,
					.real = fake_real,
					.text = fake_text};

	*m = (struct made){.ops = version == 2 ? codec_find_zarr2(codec, strlen(codec))
					       : codec_find_zarr3(codec, strlen(codec))};
	assert_non_null(m->ops);
	m->spec = (struct codec_spec){
		.h5_id = m->ops->h5_id, .params = m->params, .name = m->ops->name};
	return m->ops->from_zarr ? m->ops->from_zarr(&conf, m->params, &m->spec.n_params, e) : 0;
}

#endif
