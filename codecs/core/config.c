/* SPDX-License-Identifier: BSD-3-Clause */
/* config.c - shared by codecs: parameters in Zarr documents, and filters that leave bytes
 * unchanged. */
#include "codecs/core/codec_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* config_found - a getter's result; a member may be missing. */
static int config_found(int rc, const char *member, const char *wanted, struct err *e)
{
	return rc && rc != -ENOENT ? err_set(e, -EBADMSG, "'%s' is not %s", member, wanted) : 0;
}

int codec_conf_int(const struct codec_conf *conf, const char *member, int64_t missing,
		   int64_t *ret, struct err *e)
{
	*ret = missing;
	return config_found(conf->integer(conf->arg, member, ret), member, "a whole number", e);
}

int codec_conf_real(const struct codec_conf *conf, const char *member, double missing,
		    double *ret, struct err *e)
{
	*ret = missing;
	return config_found(conf->real(conf->arg, member, ret), member, "a number", e);
}

int codec_conf_text(const struct codec_conf *conf, const char *member, const char *missing,
		    const char **ret, struct err *e)
{
	*ret = missing;
	return config_found(conf->text(conf->arg, member, ret), member, "a string", e);
}

int codec_conf_level(const struct codec_conf *conf, const char *member, int32_t lo, int32_t hi,
		     int32_t missing, uint32_t *ret, struct err *e)
{
	int64_t v;
	int rc = codec_conf_int(conf, member, missing, &v, e);

	if (rc)
		return rc;
	v = v < lo ? lo : v > hi ? hi : v;
	*ret = (uint32_t)(int32_t)v;
	return 0;
}

int32_t codec_level(const struct codec_spec *spec, uint32_t i, int32_t lo, int32_t hi,
		    int32_t missing)
{
	int64_t v = missing;

	if (spec->n_params > i) /* levels below 0 are stored in two's complement */
		v = lo < 0 ? (int64_t)(int32_t)spec->params[i] : (int64_t)spec->params[i];
	return (int32_t)(v < lo ? lo : v > hi ? hi : v);
}

int32_t codec_effort_of(const struct codec_effort *f, const struct codec_spec *spec)
{
	return codec_level(spec, 0, f->lo, f->hi, f->stored);
}

void codec_effort_json(const struct codec_effort *f, const struct codec_spec *spec,
		       struct buf *json)
{
	buf_printf(json, ", \"%s\": %" PRId32, f->member, codec_effort_of(f, spec));
}

int codec_effort_conf(const struct codec_effort *f, const struct codec_conf *conf,
		      uint32_t *params, uint32_t *ret_n, struct err *e)
{
	*ret_n = 1;
	return codec_conf_level(conf, f->member, f->lo, f->hi, f->zarr, params, e);
}

int codec_effort_prepare(const struct codec_effort *f, const struct codec_spec *spec,
			 uint32_t *params, uint32_t *ret_n, struct err *e)
{
	int32_t v = spec->n_params > 0 ? (int32_t)spec->params[0] : f->user;

	if (spec->n_params > 1)
		return err_set(e, -EINVAL,
			       "%s: %" PRIu32 " parameters given, at most 1 is allowed",
			       f->name, spec->n_params);
	if (v < f->lo || v > f->hi)
		return err_set(e, -EINVAL,
			       "%s: %" PRId32 " is not in the range %" PRId32 " to %" PRId32,
			       f->name, v, f->lo, f->hi);
	params[0] = (uint32_t)v;
	*ret_n = 1;
	return 0;
}

int codec_identity_check(const struct codec_call *c)
{
	*c->ret_len = c->in_len;
	return 0;
}

int codec_copy(const struct codec_call *c, size_t n, const char *name)
{
	if (n > c->cap)
		return err_set(c->e, -ERANGE, "%s: length %zu exceeds %zu", name, n, c->cap);
	if (n > 0)
		memcpy(c->out, c->in, n);
	*c->ret_len = n;
	return 0;
}

int codec_append(const struct codec_call *c)
{
	if (c->in_len > 0)
		buf_put(c->to, c->in, c->in_len);
	return buf_ok(c->to) ? 0 : err_nomem(c->e);
}

int codec_append_frame(const struct codec_call *c, uint64_t size,
		       void (*frame)(const struct codec_call *c))
{
	struct codec_call framed = *c;

	framed.out = size && size <= SIZE_MAX ? buf_grow(c->to, (size_t)size) : NULL;
	if (!framed.out)
		return err_nomem(c->e);
	frame(&framed);
	return 0;
}

uint64_t codec_blocks_size(uint64_t n, uint32_t block, uint32_t head)
{
	uint64_t blocks = n ? n / block + (n % block != 0) : 1, r;

	return ckd_mul(&r, blocks, (uint64_t)head) ? 0 : codec_plus(r, n);
}

uint8_t *codec_put_blocks(const uint8_t *in, size_t n, size_t block, size_t head,
			  void (*put_head)(uint8_t *out, size_t len, bool last), uint8_t *out)
{
	for (bool last = false; !last;) {
		size_t len = n < block ? n : block;

		last = n <= block;
		put_head(out, len, last);
		out += head;
		if (len == 0)
			break;
		memcpy(out, in, len);
		out += len;
		in += len;
		n -= len;
	}
	return out;
}

int codec_identity_decode(const struct codec_call *c)
{
	if (c->in_len > c->cap)
		return err_set(c->e, -ERANGE, "filter %" PRIu32 ": length %zu exceeds %zu",
			       c->spec->h5_id, c->in_len, c->cap);
	return codec_copy(c, c->in_len, "");
}

uint64_t codec_identity_framed_size(uint64_t n)
{
	return n;
}

void codec_identity_frame(const struct codec_call *c)
{
	if (c->in_len > 0)
		memcpy(c->out, c->in, c->in_len);
}

uint64_t codec_packed_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	return codec_plus(n, n / 4 + 4096);
}
