/* SPDX-License-Identifier: BSD-3-Clause */
/* codec.h - codecs, each with all its names, and chains of them.
 *
 * A chain is kept in HDF5's order, the order in which filters are applied when a chunk is written;
 * decoding runs it backwards. This module knows no file format, no view and no FUSE, and does not
 * use the HDF5 library's pipeline.
 *
 * A new codec is one file with one `const struct codec_ops`, one name in CODEC_BUILTINS
 * (codecs/core/codec_impl.h), one unit test and one paragraph in docs/dev/codecs.md. */
#ifndef CODECS_CORE_CODEC_H
#define CODECS_CORE_CODEC_H

#include "base/core/buf.h"
#include "base/core/err.h"

#define CODEC_CHAIN_MAX 32  /* filters in one pipeline; HDF5's own limit */
#define CODEC_ALL_SKIPPED UINT32_MAX

/* HDF5 filter ids that other modules name. Spec: HDF5 File Format 3.0, IV.A.2.l. */
enum { CODEC_DEFLATE = 1, CODEC_SHUFFLE = 2, CODEC_FLETCHER32 = 3, CODEC_SZIP = 4,
       CODEC_NBIT = 5, CODEC_SCALEOFFSET = 6, CODEC_BZIP2 = 307, CODEC_LZF = 32000,
       CODEC_BLOSC = 32001, CODEC_LZ4_HDF5 = 32004, CODEC_BITSHUFFLE = 32008,
       CODEC_ZSTD = 32015, CODEC_BITGROOM = 32022, CODEC_GRANULARBR = 32023 };

/* Codecs without a registered HDF5 id have a private one in the same field. */
#define CODEC_PRIVATE 0x10000
enum { CODEC_GZIP = CODEC_PRIVATE, CODEC_LZ4, CODEC_LZMA, CODEC_CRC32C, CODEC_CRC32,
       CODEC_ADLER32, CODEC_DELTA, CODEC_FIXEDSCALEOFFSET, CODEC_QUANTIZE, CODEC_BITROUND,
       CODEC_ASTYPE, CODEC_PACKBITS, CODEC_CRC32C_ZARR2, CODEC_PACKBITS_ZARR3 };

#define CODEC_PARAMS_MAX 32  /* of one codec in a Zarr document or a user's option */

struct codec_array;

/* codec_conf - the configuration of one codec in a Zarr document, independent of its parser. The
 * getters return 0; -ENOENT: no such member, or null, and *ret is unchanged; -EINVAL: of another
 * type. `integer` also accepts whole numbers written as "5" or 5.0. Strings are borrowed for the
 * call. */
struct codec_conf {
	void *arg;
	int version;          /* 2: a numcodecs object with "id"; 3: a "configuration" */
	const char *json;     /* the same as the text of a version 2 object, with "id": for codecs
			       * of plugins, and those with lists; may be NULL */
	size_t elem_size;     /* bytes of an element of the array; 1 after a compressor */
	int (*integer)(void *arg, const char *member, int64_t *ret);
	int (*real)(void *arg, const char *member, double *ret);
	int (*text)(void *arg, const char *member, const char **ret);
	const struct codec_array *array; /* the array that is stored; NULL: not known */
	const uint64_t *shape;           /* of the array, rank entries; NULL: not known */
};

/* codec_spec - a filter as a dataset states it. */
struct codec_spec {
	uint32_t h5_id;          /* HDF5 filter id */
	uint32_t n_params;
	const uint32_t *params;  /* HDF5 client data, n_params entries; borrowed from the dataset */
	const char *name;        /* the name stored in the file, or ""; borrowed */
};

/* codec_array - the properties of an array that its filters depend on. */
enum codec_class { CODEC_OTHER, CODEC_INT, CODEC_UINT, CODEC_FLOAT };
struct codec_array {
	enum codec_class class;
	uint32_t elem_size;      /* bytes of an element, >= 1 */
	bool big_endian;
	uint32_t rank;
	const uint64_t *chunk;   /* rank entries: elements, each >= 1 */
	const uint8_t *fill;     /* elem_size bytes in the array's byte order; NULL: none */
};

/* codec_chain - filters in the order of encoding. */
struct codec_chain {
	uint32_t n;                     /* <= CODEC_CHAIN_MAX */
	const struct codec_spec *specs; /* borrowed from the dataset */
};

/* codec_scratch - working memory of a thread's codec calls, reused from chunk to chunk. */
struct codec_scratch;
/* codec_scratch_new - new; NULL when memory is short. codec_scratch_free accepts NULL. */
struct codec_scratch *codec_scratch_new(void);
void codec_scratch_free(struct codec_scratch *s);

/* codec_call - the arguments of decode, check, frame and encode. A member is for the functions that
 * its comment names, or for all. All pointers are borrowed for the call. */
struct codec_call {
	struct codec_scratch *scratch; /* decode, encode: of this thread */
	const struct codec_spec *spec; /* decode, frame, encode: with prepare's parameters */
	size_t elem_size;              /* decode, frame, encode: bytes of an element */
	const uint8_t *in;             /* in_len bytes; may be NULL if there are none */
	size_t in_len;
	uint8_t *out;    /* decode: room for cap bytes; frame: for framed_size(in_len) */
	size_t cap;      /* decode: the most bytes that the result may have */
	size_t *ret_len; /* decode, check: set to the bytes of the result, <= cap; undefined after
			  * an error. Must not point into the call itself */
	struct buf *to;  /* encode: the result is appended */
	struct err *e;   /* decode, check, encode: receives the message; may be NULL */
};

/* codec_ops - a codec. A function that is NULL is an operation that the codec does not have. */
struct codec_ops {
	const char *name;      /* our name, which `info` prints */
	uint32_t h5_id;
	const char *zarr2_id;  /* numcodecs id; NULL when numcodecs has none */
	const char *zarr3_name;  /* Zarr v3 name; NULL when v3 has none */
	bool portable;         /* stock Zarr v2 readers (zarr-python with numcodecs 0.11, netCDF-C,
	                        * GDAL) decode it */
	bool h5_stock;         /* libhdf5 decodes it without a plugin, to the same elements */
	bool compressor;       /* numcodecs encodes bytes: it may be a Zarr v2 `compressor` */
	bool zarr3_stock;      /* readers of Zarr v3 (zarr-python 3, GDAL, TensorStore, zarrita.js,
	                        * zarrs) decode it without plugins, under zarr3_name */
	bool elements;         /* numcodecs encodes an array: in Zarr v3 it comes before the codec
			        * that serialises elements to bytes, others come after */
	bool lossy;            /* encoding changes elements on purpose */
	const char *origin;    /* the file of a plugin; NULL: built in */
	uint32_t trailer;      /* bytes that encoding appends and a reader may remove; 0: none */

	/* zarr2_params - append the codec's JSON members after "id", each starting with
	 * ", \"name\": value". elem_size: bytes of an element. NULL = no parameters. */
	void (*zarr2_params)(const struct codec_spec *spec, size_t elem_size, struct buf *json);

	/* zarr3_params - the members of its "configuration" in Zarr v3, in the same form. NULL: as
	 * zarr2_params, which holds for all codecs that v3 names "numcodecs.<id>". */
	void (*zarr3_params)(const struct codec_spec *spec, size_t elem_size, struct buf *json);

	/* from_zarr - read and check the parameters in a Zarr document. params has room for
	 * CODEC_PARAMS_MAX. Returns 0; -EOPNOTSUPP a value that is not supported; -EBADMSG. NULL:
	 * no parameters. */
	int (*from_zarr)(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
			 struct err *e);

	/* prepare - convert the parameters that a user gives (nccopy -F, nc_def_var_filter: the
	 * "visible" ones) to those that an HDF5 writer stores for this array (the "working" ones),
	 * as a filter's set_local does. params has room for CODEC_PARAMS_MAX entries. Returns 0;
	 * -EINVAL parameters that the filter rejects, or too few; -EOPNOTSUPP such an array is not
	 * supported. NULL: the parameters are stored unchanged. */
	int (*prepare)(const struct codec_spec *spec, const struct codec_array *a,
		       uint32_t *params, uint32_t *ret_n, struct err *e);

	/* stored_max - the most bytes that encoding n bytes can give; 0 on overflow. NULL: as
	 * framed_size; n if that is NULL, too. */
	uint64_t (*stored_max)(const struct codec_spec *spec, uint64_t n);

	/* decode - undo the filter. Returns 0; -EBADMSG when the input is damaged; -ERANGE when the
	 * result is longer than cap bytes, which the chain reports as damage where the length is
	 * known. */
	int (*decode)(const struct codec_call *c);

	/* check - only for codecs that append `trailer` bytes and change nothing else: verify in
	 * place, without a copy; *ret_len is in_len less the trailer. NULL for all others. Returns
	 * 0; -EBADMSG. */
	int (*check)(const struct codec_call *c);

	/* framed_size / frame - an encoding that every reader of this codec accepts and whose size
	 * is a function of n alone: deflate's stored blocks, shuffle itself. frame writes exactly
	 * framed_size(in_len) bytes and cannot fail. framed_size returns 0 on overflow. */
	uint64_t (*framed_size)(uint64_t n);
	void (*frame)(const struct codec_call *c);

	/* encode - the real encoding. The result depends on the input only. On error `to` is
	 * unchanged. Returns 0; -EOPNOTSUPP this input cannot be encoded; -ERANGE too long;
	 * -ENOMEM. */
	int (*encode)(const struct codec_call *c);
};

/* codec_find - the codec with this HDF5 filter id, built in or of a plugin; NULL when there is
 * none. Static. The first request for a filter that is not built in searches for plugins. Any
 * thread. */
const struct codec_ops *codec_find(uint32_t h5_id);

/* codec_at - all codecs, those of plugins last: 0, 1, ... until NULL. */
const struct codec_ops *codec_at(size_t i);

/* codec_find_name - the codec with one of these names, ignoring case: ours, numcodecs', Zarr v3's.
 * If several codecs match, the first in the table is returned. NULL when there is none. */
const struct codec_ops *codec_find_name(const char *name, size_t n);

/* codec_catalogue_hint - append how a user can get a filter that is not available, as one clause
 * without a full stop: "install the package hdf5-filter-plugin-zfp-serial, or name the directory of
 * its HDF5 plugin in HDF5_PLUGIN_PATH". With the id 0, spec->name is that of a codec in a Zarr
 * document. */
void codec_catalogue_hint(const struct codec_spec *spec, struct buf *out);

/* codec_missing - append a message about an array with such a filter: "filter 32013 (zfp) is not
 * available: install ...", "codec 'pcodec' is not supported: ...". Less than 200 bytes. */
void codec_missing(const struct codec_spec *spec, struct buf *out);

/* codec_find_zarr2, codec_find_zarr3 - the codec with this numcodecs id or Zarr v3 name (n bytes);
 * NULL when there is none. "numcodecs.zstd", as zarr-python 3 writes it, is numcodecs' zstd. */
const struct codec_ops *codec_find_zarr2(const char *id, size_t n);
const struct codec_ops *codec_find_zarr3(const char *name, size_t n);

/* codec_szip_in_zarr - complete the two parameters of szip in a Zarr document to the four that
 * netCDF-C, the only other reader of szip in Zarr, derives: it takes scanlines from the shape of
 * the array where HDF5 takes them from the chunk. spec: szip, two or four parameters. shape:
 * a->rank entries, elements of the array. Returns 0; -EOPNOTSUPP; -EINVAL. */
int codec_szip_in_zarr(const struct codec_spec *spec, const struct codec_array *a,
		       const uint64_t *shape, uint32_t params[4], struct err *e) NZ_MUST_USE;

/* codec_has_zarr2 - whether a Zarr v2 document can state this filter with these parameters: it has
 * an id there, and if a plugin has the codec, the plugin accepts them. */
bool codec_has_zarr2(const struct codec_spec *spec, size_t elem_size);

/* codec_zarr3_name - the name of a codec in Zarr v3: its own, else "numcodecs.<id>" in tmp. NULL:
 * it has none. Borrowed. */
const char *codec_zarr3_name(const struct codec_ops *ops, char *tmp, size_t cap);

/* codec_versions - append a line "zstd 1.5.4\n" for each library in use, for --version. */
void codec_versions(struct buf *out);

/* codec_name - a printable name for a filter: ours, else the file's, else "filter <id>" in tmp (at
 * least 32 bytes). Borrowed. */
const char *codec_name(const struct codec_spec *spec, char *tmp, size_t cap);

/* codec_chain_decodable - whether a codec is available for every filter of the chain. */
bool codec_chain_decodable(const struct codec_chain *chain);

/* codec_chain_decode - decode one stored chunk to exactly out_len bytes.
 * mask       bit i set: filter i was skipped when the chunk was written (HDF5 filter mask);
 *            CODEC_ALL_SKIPPED: the chunk is stored unfiltered
 * elem_size  bytes of one element, >= 1
 * scratch    this thread's; intermediate results never exceed out_len plus the trailers and the
 *            growth that the filters before can have caused in incompressible bytes
 * Returns 0; -EBADMSG when damaged or of another length than out_len; -EOPNOTSUPP when a codec is
 * not available; -ENOMEM. Spec: HDF5 File Format 3.0, III.A.1 (filter mask). */
int codec_chain_decode(const struct codec_chain *chain, uint32_t mask, size_t elem_size,
		       const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len,
		       struct codec_scratch *scratch, struct err *e) NZ_MUST_USE;

/* codec_chain_decode_any - decode a stored chunk of unknown decoded length (elements without a
 * fixed size), to at most max bytes. Every filter was applied.
 * ret  *ret_len bytes, borrowed from scratch until its next use, or `in` itself
 * Returns 0; -ERANGE when the chunk is longer than max; else as codec_chain_decode. */
int codec_chain_decode_any(const struct codec_chain *chain, size_t elem_size, const uint8_t *in,
			   size_t in_len, size_t max, struct codec_scratch *scratch,
			   const uint8_t **ret, size_t *ret_len, struct err *e) NZ_MUST_USE;

/* codec_chain_framed_size - size in bytes of codec_chain_frame's result for n bytes of input;
 * 0 when a filter has no such form or the size overflows. */
uint64_t codec_chain_framed_size(const struct codec_chain *chain, uint64_t n);

/* codec_chain_frame - encode n bytes without compressing, in a form every reader of the chain
 * decodes to the same bytes. out has room for codec_chain_framed_size(chain, n) bytes. */
int codec_chain_frame(const struct codec_chain *chain, size_t elem_size, const uint8_t *in,
		      size_t n, uint8_t *out, struct err *e) NZ_MUST_USE;

/* codec_chain_without_sum - remove the checksum at the chain's end, if there is one that readers
 * may remove. Returns the bytes of its trailer, or 0. */
uint32_t codec_chain_without_sum(struct codec_chain *chain);

/* codec_chain_encodable - whether every filter of the chain can be encoded. */
bool codec_chain_encodable(const struct codec_chain *chain);

/* codec_chain_encode - encode n bytes with every filter; appends to out. The result depends on the
 * input only. Returns 0; -EOPNOTSUPP; -ERANGE; -ENOMEM. */
int codec_chain_encode(const struct codec_chain *chain, size_t elem_size, const uint8_t *in,
		       size_t n, struct codec_scratch *scratch, struct buf *out,
		       struct err *e) NZ_MUST_USE;

/* codec_crc32c_sum - CRC-32C (Castagnoli) of bytes in pieces: sum is that of the bytes before p, 0
 * for none. Spec: RFC 3720 B.4. */
uint32_t codec_crc32c_sum(uint32_t sum, const uint8_t *p, size_t n);

#endif
