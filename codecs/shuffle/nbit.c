/* SPDX-License-Identifier: BSD-3-Clause */
/* nbit.c - HDF5's n-bit: packs only the bits of integers and floats that their types use; the bits
 * of gaps and padding are left out and read as 0. Other types, and whole bytes, are packed
 * unchanged. If all numbers use all bits, nothing is done.
 *
 * Parameters: their number; whether nothing is done; elements of a chunk; the type. A type is a
 * class, a size in bytes, and for atoms byte order (1: big-endian), bits and the number of the
 * lowest one; for arrays the type of their elements; for compounds the number of members, and for
 * each the offset and the type. Spec: H5Pset_nbit in the HDF5 reference manual;
 * H5Z__set_local_nbit. */
#include "codecs/shuffle/bit_pack_int.h"
#include "codecs/numeric/num_convert.h"

#include <errno.h>
#include <inttypes.h>

enum { P_COUNT_ALL, P_NOTHING, P_COUNT, P_CLASS, P_SIZE };
enum { ATOM = 1, ARRAY, COMPOUND, OPAQUE };

#define DEPTH_MAX 32
#define N_ATOM 4 /* parameters of an atom after its class */

/* ---- checks that packing relies on ---- */

/* nbit_reader - a cursor over the parameters of a type. */
struct nbit_reader {
	const uint32_t *p;
	uint32_t n, at;
	/* the last type read ends in an array of arrays or compounds. After one of these HDF5 loses
	 * its position in the parameters, and damages the next members when it writes */
	bool astray;
	struct err *e;
};

static int nbit_wrong(struct nbit_reader *r, const char *what)
{
	return err_set(r->e, -EBADMSG, "nbit: %s at parameter %" PRIu32, what, r->at);
}

/* have - whether there are n more parameters. */
static bool have(const struct nbit_reader *r, uint32_t n)
{
	return r->n - r->at >= n;
}

static int nbit_measure(struct nbit_reader *r, uint32_t class, unsigned int depth,
			uint64_t *ret_bits);

static int measure_atom(struct nbit_reader *r, uint64_t *ret_bits)
{
	const uint32_t *p = r->p + r->at;

	if (!have(r, N_ATOM))
		return nbit_wrong(r, "an atomic type is truncated");
	if (p[0] == 0 || p[1] > 1 || p[2] == 0 || (uint64_t)p[2] + p[3] > 8 * (uint64_t)p[0])
		return nbit_wrong(r, "an atomic type has more bits than its size allows");
	*ret_bits = p[2];
	r->at += N_ATOM;
	return 0;
}

static int measure_array(struct nbit_reader *r, unsigned int depth, uint64_t *ret_bits)
{
	uint32_t total, class, size;
	int rc;

	if (!have(r, 3))
		return nbit_wrong(r, "an array type is truncated");
	total = r->p[r->at++];
	class = r->p[r->at++];
	size = r->p[r->at];
	if (total == 0 || size == 0 || total % size != 0)
		return nbit_wrong(r,
				  "the size of an array is not a multiple of its element size");
	rc = nbit_measure(r, class, depth, ret_bits);
	if (class == ARRAY || class == COMPOUND)
		r->astray = true;
	if (!rc)
		*ret_bits *= total / size; /* at most 8 times as many bits as bytes */
	return rc;
}

static int measure_compound(struct nbit_reader *r, unsigned int depth, uint64_t *ret_bits)
{
	uint32_t left, size, n;
	uint64_t bits, sum = 0;
	int rc;

	if (!have(r, 2))
		return nbit_wrong(r, "a compound type is truncated");
	left = size = r->p[r->at++];
	n = r->p[r->at++];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t offset, class, bytes;

		if (r->astray)
			return err_set(r->e, -EOPNOTSUPP,
				       "nbit: a member after an array of arrays or compounds "
				       "is not supported");
		if (!have(r, 3))
			return nbit_wrong(r, "a member is truncated");
		offset = r->p[r->at++];
		class = r->p[r->at++];
		bytes = r->p[r->at];
		if (bytes == 0 || bytes > left || offset > size - bytes)
			return nbit_wrong(r, "a member lies outside its compound");
		left -= bytes;
		rc = nbit_measure(r, class, depth, &bits);
		if (rc)
			return rc;
		sum += bits;
	}
	*ret_bits = sum;
	return 0;
}

/* nbit_measure - check the type of this class at the cursor, and move past it. *ret_bits: the bits
 * of one value, at most 8 times its size. */
static int nbit_measure(struct nbit_reader *r, uint32_t class, unsigned int depth,
			uint64_t *ret_bits)
{
	if (depth == 0)
		return err_set(r->e, -EOPNOTSUPP,
			       "nbit: types are nested more than %d levels deep", DEPTH_MAX);
	switch (class) {
	case ATOM:
		return measure_atom(r, ret_bits);
	case ARRAY:
		return measure_array(r, depth - 1, ret_bits);
	case COMPOUND:
		return measure_compound(r, depth - 1, ret_bits);
	case OPAQUE:
		if (!have(r, 1) || r->p[r->at] == 0)
			return nbit_wrong(r, "an opaque type has no size");
		*ret_bits = 8 * (uint64_t)r->p[r->at++];
		return 0;
	default:
		return nbit_wrong(r, "unknown type class");
	}
}

/* nbit - the checked parameters. */
struct nbit {
	bool nothing; /* nothing is done */
	uint64_t n;   /* elements */
	uint32_t size;
	uint64_t bits; /* of all elements */
};

static int nbit_of(const struct codec_spec *spec, struct nbit *ret, struct err *e)
{
	const uint32_t *p = spec->params;
	struct nbit_reader r = {.p = p, .n = spec->n_params, .at = P_SIZE, .e = e};
	uint64_t bits;
	int rc;

	if (spec->n_params <= P_NOTHING || p[P_COUNT_ALL] != spec->n_params)
		return err_set(e, -EBADMSG, "nbit: wrong number of parameters %" PRIu32,
			       spec->n_params);
	*ret = (struct nbit){.nothing = p[P_NOTHING] != 0};
	if (ret->nothing)
		return 0;
	if (spec->n_params <= P_SIZE || p[P_SIZE] == 0 || p[P_CLASS] == OPAQUE)
		return err_set(e, -EBADMSG, "nbit: the parameters describe no type to pack");
	rc = nbit_measure(&r, p[P_CLASS], DEPTH_MAX, &bits);
	if (rc)
		return rc;
	ret->n = p[P_COUNT];
	ret->size = p[P_SIZE];
	if (ckd_mul(&ret->bits, ret->n, bits))
		return err_set(e, -EBADMSG, "nbit: %" PRIu64 " elements are too many", ret->n);
	return 0;
}

/* ---- packing and unpacking ---- */

/* nbit_job - the conversion of one chunk: `in` to `to`, or `from` to `out`. */
struct nbit_job {
	const uint32_t *p;
	bool packs;
	const uint8_t *from;
	uint8_t *to;
	struct bit_reader in;
	struct bit_writer out;
};

struct nbit_atom {
	uint32_t size, bits, low; /* low: the number of the lowest bit */
	bool big;
};

static struct nbit_atom atom_of(const uint32_t *p)
{
	return (struct nbit_atom){.size = p[0], .bits = p[2], .low = p[3], .big = p[1] == 1};
}

static uint64_t nbit_ones(uint32_t bits)
{
	return UINT64_MAX >> (64 - bits);
}

/* nbit_words - n atoms of 1, 2, 4 or 8 bytes. */
static void nbit_words(struct nbit_job *j, const struct nbit_atom *a, size_t pos, size_t n)
{
	const struct num_type type = {NUM_UINT, a->size, a->big};
	const uint64_t mask = nbit_ones(a->bits);
	uint64_t v[NUM_BLOCK];

	for (size_t i = 0, m; (m = num_block(n - i)) > 0; i += m, pos += m * a->size) {
		if (j->packs) {
			num_load_bits(type, j->from + pos, m, v);
			for (size_t k = 0; k < m; k++)
				v[k] = v[k] >> a->low & mask;
			bits_put(&j->out, a->bits, v, m);
		} else {
			bits_get(&j->in, a->bits, v, m);
			for (size_t k = 0; k < m; k++)
				v[k] <<= a->low;
			num_store_bits(type, false, v, m, j->to + pos);
		}
	}
}

/* bytewise - one atom of any size: from the highest byte that has used bits to the lowest. */
static void bytewise(struct nbit_job *j, const struct nbit_atom *a, size_t pos)
{
	const uint64_t end = (uint64_t)a->low + a->bits;

	for (uint64_t b = (end + 7) / 8; b-- > a->low / 8;) {
		uint32_t lo = b == a->low / 8 ? a->low % 8 : 0;
		uint32_t hi = end - 8 * b < 8 ? (uint32_t)(end - 8 * b) : 8;
		size_t at = pos + (size_t)(a->big ? a->size - 1 - b : b);
		uint64_t v;

		if (j->packs) {
			v = j->from[at] >> lo & nbit_ones(hi - lo);
			bits_put(&j->out, hi - lo, &v, 1);
		} else {
			bits_get(&j->in, hi - lo, &v, 1);
			j->to[at] = (uint8_t)(v << lo);
		}
	}
}

static void atoms(struct nbit_job *j, const struct nbit_atom *a, size_t pos, size_t n)
{
	if (a->size == 1 || a->size == 2 || a->size == 4 || a->size == 8) {
		nbit_words(j, a, pos, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		bytewise(j, a, pos + i * a->size);
}

/* nbit_run - n consecutive values of a type of this class, its parameters at `at`, their bytes at
 * pos. Returns the position of the next type's parameters. */
static uint32_t nbit_run(struct nbit_job *j, uint32_t class, uint32_t at, size_t pos, size_t n)
{
	const uint32_t *p = j->p + at;
	const uint32_t size = p[0]; /* of a value */
	const struct nbit_atom bytes = {.size = 1, .bits = 8};
	struct nbit_atom a;
	uint32_t end = at;

	switch (class) {
	case ATOM:
		a = atom_of(p);
		atoms(j, &a, pos, n);
		return at + N_ATOM;
	case ARRAY:
		for (size_t i = 0; i < n; i++)
			end = nbit_run(j, p[1], at + 2, pos + i * size, size / p[2]);
		return end;
	case COMPOUND:
		for (size_t i = 0; i < n; i++) {
			end = at + 2;
			for (uint32_t k = 0; k < p[1]; k++)
				end = nbit_run(j, j->p[end + 1], end + 2,
					       pos + i * size + j->p[end], 1);
		}
		return end;
	default:
		nbit_words(j, &bytes, pos, n * size);
		return at + 1;
	}
}

static int nbit_decode(const struct codec_call *c)
{
	struct nbit_job j = {.p = c->spec->params, .to = c->out, .in = {c->in, c->in_len, 0}};
	struct nbit nb;
	int rc = nbit_of(c->spec, &nb, c->e);

	if (rc)
		return rc;
	if (nb.nothing)
		return codec_copy(c, c->in_len, "nbit");
	if (nb.n > c->cap / nb.size)
		return err_set(c->e, -ERANGE,
			       "nbit: %" PRIu64 " elements of %" PRIu32 " bytes exceed %zu",
			       nb.n, nb.size, c->cap);
	if (nb.bits / 8 + (nb.bits % 8 != 0) > c->in_len)
		return err_set(c->e, -EBADMSG, "nbit: %" PRIu64 " bits do not fit in %zu bytes",
			       nb.bits, c->in_len);
	*c->ret_len = (size_t)nb.n * nb.size;
	if (*c->ret_len > 0)
		memset(c->out, 0, *c->ret_len);
	(void)nbit_run(&j, j.p[P_CLASS], P_SIZE, 0, (size_t)nb.n);
	return 0;
}

static int nbit_encode(const struct codec_call *c)
{
	struct nbit_job j = {.p = c->spec->params, .packs = true, .from = c->in};
	struct nbit nb;
	uint64_t packed;
	uint8_t *p;

	if (nbit_of(c->spec, &nb, NULL))
		return err_set(c->e, -EOPNOTSUPP, "nbit: the parameters are not valid");
	if (nb.nothing)
		return codec_append(c);
	if (c->in_len % nb.size != 0 || c->in_len / nb.size != nb.n)
		return err_set(c->e, -EOPNOTSUPP,
			       "nbit: %zu bytes are not %" PRIu64 " elements of %" PRIu32,
			       c->in_len, nb.n, nb.size);
	packed = nb.bits / 8 + 1;
	p = packed <= SIZE_MAX ? buf_grow(c->to, (size_t)packed) : NULL;
	if (!p)
		return err_nomem(c->e);
	p[packed - 1] = 0; /* the last byte may have no bits */
	j.out.p = p;
	(void)nbit_run(&j, j.p[P_CLASS], P_SIZE, 0, (size_t)nb.n);
	(void)bits_end(&j.out);
	return 0;
}

static uint64_t nbit_stored_max(const struct codec_spec *spec NZ_UNUSED, uint64_t n)
{
	return codec_plus(n, 1);
}

/* nbit_prepare - types of arrays use all their bits here, so that nothing is done. */
static int nbit_prepare(const struct codec_spec *spec NZ_UNUSED, const struct codec_array *a,
			uint32_t *params, uint32_t *ret_n, struct err *e)
{
	bool number = a->class != CODEC_OTHER;
	uint32_t n;

	if (!codec_elements(a, &n))
		return err_set(e, -EOPNOTSUPP, "nbit: a chunk has more than 2^32 elements");
	*ret_n = number ? P_SIZE + N_ATOM : P_CLASS;
	params[P_COUNT_ALL] = *ret_n;
	params[P_NOTHING] = 1;
	params[P_COUNT] = n;
	if (!number)
		return 0;
	params[P_CLASS] = ATOM;
	params[P_SIZE] = a->elem_size;
	params[P_SIZE + 1] = a->big_endian && a->elem_size > 1;
	params[P_SIZE + 2] = 8 * a->elem_size;
	params[P_SIZE + 3] = 0;
	return 0;
}

const struct codec_ops codec_nbit = {
	.name = "nbit",
	.h5_id = CODEC_NBIT,
	.h5_stock = true,
	.prepare = nbit_prepare,
	.stored_max = nbit_stored_max,
	.decode = nbit_decode,
	.encode = nbit_encode,
};
