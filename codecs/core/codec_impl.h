/* SPDX-License-Identifier: BSD-3-Clause */
/* codec_impl.h - private to codecs/: the built-in codecs, the working memory of a thread, and how
 * parameters are read from a Zarr document. */
#ifndef CODECS_CORE_CODEC_IMPL_H
#define CODECS_CORE_CODEC_IMPL_H

#include "base/core/endian.h"
#include "codecs/core/codec.h"

/* The built-in codecs. If several have the same name, codec_find_name returns the first. */
#define CODEC_BUILTINS(X)                                                                      \
	X(codec_deflate) X(codec_shuffle) X(codec_fletcher32) X(codec_gzip) X(codec_zstd)      \
	X(codec_blosc) X(codec_bzip2) X(codec_lz4) X(codec_lz4_hdf5) X(codec_lzma)             \
	X(codec_crc32c) X(codec_crc32c_zarr2) X(codec_crc32) X(codec_adler32) X(codec_delta)   \
	X(codec_fixedscaleoffset) X(codec_quantize_zarr2) X(codec_bitround) X(codec_astype)    \
	X(codec_packbits) X(codec_bitgroom) X(codec_granularbr) X(codec_bitround_hdf5)         \
	X(codec_nbit) X(codec_scaleoffset) X(codec_szip) X(codec_lzf) X(codec_bitshuffle)      \
	X(codec_packbits_zarr3)

#define CODEC_DECLARE(codec) extern const struct codec_ops codec;
CODEC_BUILTINS(CODEC_DECLARE)
#undef CODEC_DECLARE

#define CODEC_NUMCODECS "numcodecs." /* before a numcodecs id in Zarr v3 */

/* codec_chain_check - `code` with a message when there are more filters than CODEC_CHAIN_MAX. */
int codec_chain_check(const struct codec_chain *chain, int code, struct err *e) NZ_MUST_USE;

/* codec_known_name - the name of a filter that may not be built in; NULL: not known. */
const char *codec_known_name(uint32_t h5_id);

/* codec_known_id - the id of the registered filter with this name, ignoring case, available or not;
 * 0: none. */
uint32_t codec_known_id(const char *name, size_t n);

struct libdeflate_decompressor;
struct libdeflate_compressor;
struct ZSTD_DCtx_s;
struct ZSTD_CCtx_s;

/* codec_kept - working memory of one library, made at first use, with the function that frees it:
 * only the codec's own file names the library. */
struct codec_kept {
	void *p;
	void (*free)(void *p);
};

/* codec_kept_free - free it; k is then empty. */
void codec_kept_free(struct codec_kept *k);

struct codec_scratch {
	struct codec_kept inflate;
	struct codec_kept deflate; /* of level deflate_level */
	int deflate_level;
	struct codec_kept zstd, zstd_encoder;
	uint8_t *mem[3]; /* owned; intermediate results, used in turn, and memory for one codec */
	size_t cap[3];
	struct buf turn[2]; /* intermediate results of encoding */
};

#define CODEC_SCRATCH_OWN 2 /* for one call of a codec */

/* codec_scratch_get - memory `which` (0, 1, or CODEC_SCRATCH_OWN) with room for at least cap bytes,
 * content undefined. Borrowed until the next call for the same one. NULL when memory is short. */
uint8_t *codec_scratch_get(struct codec_scratch *s, unsigned int which, size_t cap);

/* codec_decode_apart - NULL, or the function that runs ops->decode in another process, for a filter
 * that is not our own (isolate/decoder.c). */
extern int (*codec_decode_apart)(const struct codec_ops *ops, const struct codec_call *c);

/* codec_inflater - this thread's decompressor; borrowed. NULL when memory is short. */
struct libdeflate_decompressor *codec_inflater(struct codec_scratch *s);

/* codec_deflater - this thread's compressor of a level; borrowed until a call for another level.
 * NULL when memory is short. */
struct libdeflate_compressor *codec_deflater(struct codec_scratch *s, int level);

/* codec_zstd_decoder, codec_zstd_encoder - this thread's; borrowed. NULL when memory is short.
 * codec_zstd_encoded - call after each chunk: contexts of the higher levels take hundreds of
 * megabytes, and are freed. */
struct ZSTD_DCtx_s *codec_zstd_decoder(struct codec_scratch *s);
struct ZSTD_CCtx_s *codec_zstd_encoder(struct codec_scratch *s);
void codec_zstd_encoded(struct codec_scratch *s);

/* codec_blocks_size, codec_put_blocks - n bytes in blocks of at most `block` bytes, at least one,
 * each after a head of `head` bytes. The size is 0 on overflow. codec_put_blocks returns the end of
 * its output. */
uint64_t codec_blocks_size(uint64_t n, uint32_t block, uint32_t head);
uint8_t *codec_put_blocks(const uint8_t *in, size_t n, size_t block, size_t head,
			  void (*put_head)(uint8_t *out, size_t len, bool last), uint8_t *out);

/* codec_stored_size, codec_stored_blocks - n bytes as stored blocks of deflate, the content of a
 * zlib stream and a gzip member between header and trailer. The size is 0 on overflow;
 * codec_stored_blocks returns the end of its output. */
uint64_t codec_stored_size(uint64_t n);

/* codec_deflate_as - encode with one of libdeflate's two pairs of functions. name: for messages. */
int codec_deflate_as(const struct codec_call *c, const char *name, int level,
		     size_t (*bound_of)(struct libdeflate_compressor *z, size_t n),
		     size_t (*compress)(struct libdeflate_compressor *z, const void *in, size_t n,
					void *out, size_t cap));
uint8_t *codec_stored_blocks(const uint8_t *in, size_t n, uint8_t *out);

/* codec_shuffle_bytes, codec_unshuffle_bytes - len bytes as shuffle stores them, and back: elements
 * of `size` bytes, >= 1, to planes of bytes. Bytes after the last whole element are copied. in and
 * out do not overlap. */
void codec_shuffle_bytes(size_t size, const uint8_t *in, size_t len, uint8_t *out);
void codec_unshuffle_bytes(size_t size, const uint8_t *in, size_t len, uint8_t *out);

/* codec_times - n * factor, or SIZE_MAX on overflow: for guesses of a decoded length. */
static inline size_t codec_times(size_t n, size_t factor)
{
	size_t r;

	return ckd_mul(&r, n, factor) ? SIZE_MAX : r;
}

/* codec_packed_max - stored_max of compressors: an upper bound for the output of any encoder from
 * incompressible bytes, or from the same bytes in many small blocks. */
uint64_t codec_packed_max(const struct codec_spec *spec, uint64_t n);

/* codec_elements - the number of elements of a chunk; false when it exceeds 32 bits. */
static inline bool codec_elements(const struct codec_array *a, uint32_t *ret)
{
	uint64_t n = 1;

	if (!u64_product(&n, a->chunk, a->rank, UINT32_MAX))
		return false;
	*ret = (uint32_t)n;
	return true;
}

/* codec_conf_int, codec_conf_real, codec_conf_text - a member of a codec's configuration, or the
 * default when it is missing or null. Returns 0; -EBADMSG another type. */
int codec_conf_int(const struct codec_conf *conf, const char *member, int64_t missing,
		   int64_t *ret, struct err *e) NZ_MUST_USE;
int codec_conf_real(const struct codec_conf *conf, const char *member, double missing,
		    double *ret, struct err *e) NZ_MUST_USE;
int codec_conf_text(const struct codec_conf *conf, const char *member, const char *missing,
		    const char **ret, struct err *e) NZ_MUST_USE;

/* codec_conf_level - an integer clamped to lo .. hi, as params hold it. For numbers that only an
 * encoder uses: one out of range must not keep a chunk from being decoded. */
int codec_conf_level(const struct codec_conf *conf, const char *member, int32_t lo, int32_t hi,
		     int32_t missing, uint32_t *ret, struct err *e) NZ_MUST_USE;

/* codec_effort - the range and defaults of a compressor's only parameter, its level. */
struct codec_effort {
	const char *name;   /* the codec's */
	const char *member; /* its name in a Zarr document */
	int32_t lo, hi;
	int32_t stored; /* when an HDF5 file states none */
	int32_t zarr;   /* when a Zarr document states none */
	int32_t user;   /* when a user gives none */
};

/* codec_effort_of - the level in a spec. codec_effort_json, codec_effort_conf, codec_effort_prepare
 * - zarr2_params, from_zarr and prepare of such a codec; CODEC_EFFORT defines them for one. */
int32_t codec_effort_of(const struct codec_effort *f, const struct codec_spec *spec);
void codec_effort_json(const struct codec_effort *f, const struct codec_spec *spec,
		       struct buf *json);
int codec_effort_conf(const struct codec_effort *f, const struct codec_conf *conf,
		      uint32_t *params, uint32_t *ret_n, struct err *e) NZ_MUST_USE;
int codec_effort_prepare(const struct codec_effort *f, const struct codec_spec *spec,
			 uint32_t *params, uint32_t *ret_n, struct err *e) NZ_MUST_USE;

#define CODEC_EFFORT(codec, effort)                                                            \
	static void codec##_zarr2_params(const struct codec_spec *spec,                        \
					 size_t elem_size NZ_UNUSED, struct buf *json)         \
	{                                                                                      \
		codec_effort_json(&(effort), spec, json);                                      \
	}                                                                                      \
	static int codec##_from_zarr(const struct codec_conf *conf, uint32_t *params,          \
				     uint32_t *ret_n, struct err *e)                           \
	{                                                                                      \
		return codec_effort_conf(&(effort), conf, params, ret_n, e);                   \
	}                                                                                      \
	static int codec##_prepare(const struct codec_spec *spec,                              \
				   const struct codec_array *a NZ_UNUSED, uint32_t *params,    \
				   uint32_t *ret_n, struct err *e)                             \
	{                                                                                      \
		return codec_effort_prepare(&(effort), spec, params, ret_n, e);                \
	}

/* codec_copy - decode to the first n bytes of the input; -ERANGE with the codec's name if they do
 * not fit. codec_append - encode to the input itself. */
int codec_copy(const struct codec_call *c, size_t n, const char *name) NZ_MUST_USE;
int codec_append(const struct codec_call *c) NZ_MUST_USE;

/* codec_append_frame - encode to the framed form, of `size` bytes; 0: the size overflowed. */
int codec_append_frame(const struct codec_call *c, uint64_t size,
		       void (*frame)(const struct codec_call *c)) NZ_MUST_USE;

/* codec_fletcher32_sum - HDF5's checksum of n bytes. */
uint32_t codec_fletcher32_sum(const uint8_t *p, size_t n);

/* codec_identity_* - check, decode, framed_size and frame of filters that store elements
 * unchanged. */
int codec_identity_check(const struct codec_call *c);
int codec_identity_decode(const struct codec_call *c);
uint64_t codec_identity_framed_size(uint64_t n);
void codec_identity_frame(const struct codec_call *c);
#define CODEC_IDENTITY                                                                         \
	.decode = codec_identity_decode, .check = codec_identity_check,                        \
	.framed_size = codec_identity_framed_size, .frame = codec_identity_frame

/* codec_plus - n + more, or 0 on overflow: for stored_max and framed_size. */
static inline uint64_t codec_plus(uint64_t n, uint64_t more)
{
	uint64_t r;

	return ckd_add(&r, n, more) ? 0 : r;
}

/* codec_level - parameter i of a spec as a signed number clamped to lo .. hi. */
int32_t codec_level(const struct codec_spec *spec, uint32_t i, int32_t lo, int32_t hi,
		    int32_t missing);

#endif
