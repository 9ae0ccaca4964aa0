/* SPDX-License-Identifier: BSD-3-Clause */
/* packbits_zarr3.c - Zarr v3's packbits: serialises elements to bytes. Of each element, the bits
 * from the first to the last stored one are kept, lowest first, from the lowest bit of a byte on.
 * Bits that are not stored read as 0, or as the sign. A byte before or after the data may have the
 * number of unused bits in the last byte.
 *
 * (numcodecs' packbits differs: highest bits first.)
 *
 * Parameters: the position of the number of unused bits, the first bit, the number of bits, bytes
 * of an element, whether it has a sign, whether it is a boolean. Spec:
 * https://github.com/zarr-developers/zarr-extensions codecs/packbits; the order of bits is that of
 * zarrs. */
#include "codecs/numeric/num_convert.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { P_PADDING, P_FIRST, P_BITS, P_SIZE, P_SIGNED, P_TRUTH, P_N };
enum { NONE, FIRST_BYTE, LAST_BYTE };

/* packbits_zarr3_pack - the decoded parameters. */
struct packbits_zarr3_pack {
	uint32_t padding, first, bits, size;
	bool is_signed, truth;
};

static bool pack_of(const struct codec_spec *spec, struct packbits_zarr3_pack *ret)
{
	const uint32_t *p = spec->params;

	if (spec->n_params != P_N)
		return false;
	*ret = (struct packbits_zarr3_pack){.padding = p[P_PADDING],
					    .first = p[P_FIRST],
					    .bits = p[P_BITS],
					    .size = p[P_SIZE],
					    .is_signed = p[P_SIGNED] != 0,
					    .truth = p[P_TRUTH] != 0};
	return ret->padding <= LAST_BYTE && ret->bits > 0 &&
	       (ret->size == 1 || ret->size == 2 || ret->size == 4 || ret->size == 8) &&
	       (uint64_t)ret->first + ret->bits <= 8 * (uint64_t)ret->size;
}

/* bit_from - a member that is a bit number; `missing` when there is none. */
static int bit_from(const struct codec_conf *conf, const char *member, uint32_t missing,
		    uint32_t all, uint32_t *ret, struct err *e)
{
	int64_t v;
	int rc = codec_conf_int(conf, member, missing, &v, e);

	if (rc)
		return rc;
	if (v < 0 || v >= all)
		return err_set(e, -EBADMSG,
			       "packbits: '%s' is %" PRId64
			       ", which is not a bit of the %" PRIu32 " of an element",
			       member, v, all);
	*ret = (uint32_t)v;
	return 0;
}

/* packbits_zarr3_from_zarr - the class of booleans is CODEC_OTHER. */
static int packbits_zarr3_from_zarr(const struct codec_conf *conf, uint32_t *params,
				    uint32_t *ret_n, struct err *e)
{
	static const char *const places[] = {"none", "first_byte", "last_byte"};
	const struct codec_array *a = conf->array;
	const char *padding;
	uint32_t all, last = 0;
	int rc = codec_conf_text(conf, "padding_encoding", places[NONE], &padding, e);

	if (rc)
		return rc;
	if (!a || a->big_endian ||
	    (a->elem_size != 1 && a->elem_size != 2 && a->elem_size != 4 && a->elem_size != 8))
		return err_set(e, -EOPNOTSUPP,
			       "packbits: elements of this type are not supported");
	params[P_TRUTH] = a->class == CODEC_OTHER;
	params[P_SIGNED] = a->class == CODEC_INT;
	params[P_SIZE] = a->elem_size;
	for (params[P_PADDING] = NONE; strcmp(places[params[P_PADDING]], padding) != 0;)
		if (++params[P_PADDING] > LAST_BYTE)
			return err_set(e, -EBADMSG,
				       "packbits: unknown padding_encoding '%.40s'", padding);
	all = params[P_TRUTH] ? 1 : 8 * a->elem_size;
	rc = bit_from(conf, "first_bit", 0, all, &params[P_FIRST], e);
	rc = rc ? rc : bit_from(conf, "last_bit", all - 1, all, &last, e);
	if (!rc && last < params[P_FIRST])
		rc = err_set(e, -EBADMSG,
			     "packbits: last_bit %" PRIu32 " comes before first_bit %" PRIu32,
			     last, params[P_FIRST]);
	params[P_BITS] = last - params[P_FIRST] + 1;
	*ret_n = P_N;
	return rc;
}

static uint64_t packbits_zarr3_stored_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	return codec_plus(n, 1);
}

/* packbits_zarr3_body - the bytes that hold bits, and their number. *ret_unused: unused bits among
 * them; 8: not known. */
static int packbits_zarr3_body(const struct packbits_zarr3_pack *p, const uint8_t **in,
			       size_t *len, unsigned int *ret_unused, struct err *e)
{
	*ret_unused = 8;
	if (p->padding == NONE)
		return 0;
	if (*len == 0)
		return err_set(e, -EBADMSG, "packbits: the chunk is empty");
	*len -= 1;
	*ret_unused = p->padding == FIRST_BYTE ? *(*in)++ : (*in)[*len];
	if (*ret_unused > 7 || (*ret_unused > 0 && *len == 0))
		return err_set(e, -EBADMSG, "packbits: %u padding bits do not fit %zu bytes",
			       *ret_unused, *len);
	return 0;
}

/* packbits_zarr3_count - the elements in len bytes; if their number is not stored, as many as
 * fit. */
static int packbits_zarr3_count(const struct packbits_zarr3_pack *p, size_t len,
				unsigned int unused, size_t room, size_t *ret, struct err *e)
{
	uint64_t bits;

	if (ckd_mul(&bits, (uint64_t)len, (uint64_t)8))
		return err_set(e, -ERANGE, "packbits: length %zu is too large", len);
	if (unused < 8) {
		bits -= unused;
		if (bits % p->bits != 0)
			return err_set(e, -EBADMSG,
				       "packbits: %" PRIu64
				       " bits are not a multiple of %" PRIu32,
				       bits, p->bits);
	}
	*ret = (size_t)(bits / p->bits);
	if (unused == 8 && *ret > room && (uint64_t)room * p->bits + 8 > bits)
		*ret = room;
	if (*ret > room)
		return err_set(e, -ERANGE, "packbits: %zu elements exceed %zu", *ret, room);
	return 0;
}

/* packbits_zarr3_bits_at - read n (1 .. 64) bits from bit `at` on. */
static uint64_t packbits_zarr3_bits_at(const uint8_t *in, uint64_t at, uint32_t n)
{
	uint64_t v = 0;

	for (uint32_t got = 0, take; got < n; got += take, at += take) {
		take = 8 - (uint32_t)(at % 8);
		take = take < n - got ? take : n - got;
		v |= ((uint64_t)in[at / 8] >> at % 8 & ((1u << take) - 1)) << got;
	}
	return v;
}

static int packbits_zarr3_decode(const struct codec_call *c)
{
	const uint8_t *in = c->in;
	size_t in_len = c->in_len;
	uint8_t *out = c->out;
	uint64_t v[NUM_BLOCK];
	struct num_type to;
	struct packbits_zarr3_pack p;
	unsigned int unused;
	size_t n = 0;
	int rc;

	if (!pack_of(c->spec, &p))
		return err_set(c->e, -EBADMSG, "packbits: the parameters are not valid");
	to = (struct num_type){NUM_UINT, p.size, false};
	rc = packbits_zarr3_body(&p, &in, &in_len, &unused, c->e);
	rc = rc ? rc : packbits_zarr3_count(&p, in_len, unused, c->cap / p.size, &n, c->e);
	if (rc)
		return rc;
	for (size_t i = 0, m; (m = num_block(n - i)) > 0; i += m, out += m * p.size) {
		for (size_t k = 0; k < m; k++) {
			uint64_t bits =
				packbits_zarr3_bits_at(in, (i + k) * (uint64_t)p.bits, p.bits);

			if (p.is_signed && bits >> (p.bits - 1) != 0)
				bits |= UINT64_MAX << (p.bits - 1);
			v[k] = bits << p.first;
		}
		num_store_bits(to, false, v, m, out);
	}
	*c->ret_len = n * p.size;
	return 0;
}

static void packbits_zarr3_put_bits(uint8_t *out, uint64_t at, uint64_t v, uint32_t n)
{
	for (uint32_t put = 0, take; put < n; put += take, at += take) {
		take = 8 - (uint32_t)(at % 8);
		take = take < n - put ? take : n - put;
		out[at / 8] |= (uint8_t)((v >> put & ((1u << take) - 1)) << at % 8);
	}
}

static int packbits_zarr3_encode(const struct codec_call *c)
{
	const uint8_t *in = c->in;
	size_t n = c->in_len;
	uint64_t v[NUM_BLOCK], bits;
	size_t bytes;
	struct packbits_zarr3_pack p;
	uint8_t *to;

	if (!pack_of(c->spec, &p) || n % p.size != 0)
		return err_set(c->e, -EOPNOTSUPP, "packbits: %zu bytes cannot be encoded", n);
	n /= p.size;
	bits = (uint64_t)n * p.bits; /* at most 8 bits per byte */
	bytes = (size_t)(bits / 8 + (bits % 8 != 0));
	if (bytes == 0 && p.padding == NONE)
		return 0;
	to = buf_grow(c->to, bytes + (p.padding != NONE));
	if (!to)
		return err_nomem(c->e);
	memset(to, 0, bytes + (p.padding != NONE));
	if (p.padding != NONE)
		to[p.padding == FIRST_BYTE ? 0 : bytes] = (uint8_t)(8 * (uint64_t)bytes - bits);
	to += p.padding == FIRST_BYTE;
	for (size_t i = 0, m; (m = num_block(n - i)) > 0; i += m, in += m * p.size) {
		num_load_bits((struct num_type){NUM_UINT, p.size, false}, in, m, v);
		for (size_t k = 0; k < m; k++)
			packbits_zarr3_put_bits(to, (i + k) * (uint64_t)p.bits,
						p.truth ? v[k] != 0 : v[k] >> p.first, p.bits);
	}
	return 0;
}

const struct codec_ops codec_packbits_zarr3 = {
	.name = "packbits-v3",
	.h5_id = CODEC_PACKBITS_ZARR3,
	.zarr3_name = "packbits",
	.from_zarr = packbits_zarr3_from_zarr,
	.stored_max = packbits_zarr3_stored_max,
	.decode = packbits_zarr3_decode,
	.encode = packbits_zarr3_encode,
};
