/* SPDX-License-Identifier: BSD-3-Clause */
/* source_int.h - the Zarr source; private to nczarr.
 *
 * Life of a source: gather.c collects the metadata documents of the store; array_metadata.c
 * converts those of an array to a zr_meta (dtype.c and codecs.c convert types and codecs);
 * nczarr_keys.c reads NCZarr's additions; attributes.c, fill_value.c and build_dims.c make
 * attributes, fill values and dimensions; build_model.c assembles the dataset. After that JSON is
 * freed, and the data half (chunk_lookup.c and its callees) locates and reads chunks. */
#ifndef NCZARR_SOURCE_SOURCE_INT_H
#define NCZARR_SOURCE_SOURCE_INT_H

#include <stdatomic.h>

#include "codecs/vlen/vlen.h"
#include "nczarr/json/reader.h"
#include "nczarr/store/store.h"
#include "translate/contract/source.h"
#include "translate/model/builder.h"

#define ZR_DOC_MAX ((size_t)64 << 20)  /* bytes of one document */

/* ---- stored elements ---- */

/* zr_conv - conversion from a stored to a presented element. */
enum zr_conv {
	ZR_AS_STORED,  /* none; byte order is part of the presented type */
	ZR_UTF32,      /* numpy's U: 4 bytes a character become UTF-8, NUL padded, same size */
	ZR_FIELDS,     /* a structure with gaps between its fields, or with fields to convert */
};

/* zr_field - a move of ZR_FIELDS: from the stored to the presented structure. */
struct zr_field {
	uint32_t from, to;   /* offsets in the stored and the presented element */
	uint32_t bytes;      /* of all its values, stored and presented alike */
};

/* zr_vlen - how elements without a fixed size are framed in a decoded chunk: numcodecs' filters. */
enum zr_vlen {
	ZR_VLEN_NONE = CODEC_VLEN_NONE,
	ZR_VLEN_UTF8 = CODEC_VLEN_UTF8,   /* also Zarr v3's string */
	ZR_VLEN_BYTES = CODEC_VLEN_BYTES, /* also Zarr v3's variable_length_bytes, as DT_VLEN of
	                                   * uint8 */
	ZR_VLEN_ARRAY = CODEC_VLEN_ARRAY,
	ZR_VLEN_JSON = CODEC_VLEN_JSON2,
	ZR_VLEN_FIXED,  /* no frame: NCZarr's strings, dtype.stored bytes each, NUL padded */
};

struct zr_dtype {
	struct dtype type;      /* the presented type; DT_VSTRING or DT_VLEN with vlen */
	uint32_t stored;        /* bytes of a stored element; 0 with vlen except ZR_VLEN_FIXED */
	enum zr_conv conv;
	bool big;               /* ZR_UTF32: stored characters are big-endian */
	uint32_t n_moves;       /* ZR_FIELDS */
	const struct zr_field *moves;
	const char *units;      /* times: the CF units of the integers, "days since 1970-01-01" or
	                         * "days"; NULL: no time */
	bool is_date;           /* with units: a date, not a span */
	bool is_ns;             /* with units: nanoseconds */
	const char *numpy;      /* the source dtype for the attribute numpy_dtype, if `type` and
				 * units do not express it; NULL */
};

/* zr_shard - chunks within a stored object (Zarr v3, sharding_indexed). Outermost first. */
struct zr_shard {
	const uint32_t *order;      /* as zr_meta.order, of the shard before it is split; NULL */
	const uint64_t *inner;      /* rank entries: chunk lengths inside, in the array's axes */
	const uint64_t *grid;       /* rank entries: chunks of `inner` in one shard, array's axes */
	uint64_t n;                 /* product of grid */
	bool index_first;           /* index_location: start */
	uint64_t index_bytes;       /* of the stored index */
	struct codec_chain index;   /* index_codecs after bytes(little): crc32c, or none */
	bool index_big;             /* index numbers are big-endian */
	struct codec_chain outer;   /* codecs of the whole shard, after sharding; mostly none */
	const struct zr_shard *next; /* each chunk is a shard; NULL: it is a chunk */
};

/* zr_meta - the documents of one array, independent of their version. It is in the dataset's
 * arena, except fill, attrs and dim_names, which are borrowed from the documents during opening. */
struct zr_meta {
	int format;                 /* 1 (NCZarr's own objects), 2, 3 */
	const char *key;            /* of the array's directory; "" if the root is the array */
	uint32_t rank;
	const uint64_t *shape;      /* as stored: rank entries */
	const uint64_t *chunk;      /* lengths of one stored object (chunk or shard) */
	char separator;             /* '.' or '/' between coordinates */
	bool prefixed;              /* keys begin with "c": Zarr v3's default encoding */
	const uint32_t *order;      /* stored axis k is the array's order[k]; NULL: the same order.
				     * Of the innermost chunk. F order is the reverse */
	struct zr_dtype dtype;
	enum zr_vlen vlen;
	struct codec_chain chain;   /* stored bytes of the innermost chunk -> elements (or the frame
	                             * of vlen) */
	const struct zr_shard *shard; /* NULL: an object is a chunk */
	bool as_bytes;              /* elements are stored as uint8, see build_array.c */
	bool tail;                  /* the last axis has one element and is not in the model */
	const char *unreadable;     /* NULL, or the reason why no chunk can be read: "codec
				     * 'pcodec' ..." */

	const json_t *fill;         /* NULL: no such member */
	const json_t *attrs;        /* object or NULL */
	const json_t *dim_names;    /* list or NULL: Zarr v3's dimension_names */
};

/* ---- documents ---- */

/* zr_doc_seen - a document or directory that was visited, to detect changes. */
struct zr_doc_seen {
	const char *key;
	uint64_t version;           /* 0: absent */
};

/* zr_item - a group or array of the store. Items are in an array, parents before children, the
 * children of one parent in the order of their names (bytes). */
struct zr_item {
	const char *key;            /* of its directory */
	const char *name;           /* last component; "" for the root */
	uint32_t parent;            /* DS_NONE for the root */
	bool is_array;
	int format;
	const json_t *meta;         /* .zarray, .zgroup, zarr.json, .nczarray, .nczgroup; NULL if a
				     * group has none */
	const json_t *attrs;        /* .zattrs, .nczattr merged in (v1); NULL */
	const json_t *extra;        /* v1: .nczarray, .nczgroup next to the Zarr documents; NULL */
};

/* zr_tree - all documents. */
struct zr_tree {
	struct zr_item *items;
	uint32_t n_items;
	bool consolidated;          /* documents came from .zmetadata or inline metadata */
	const json_t *superblock;   /* NCZarr's, in any location; NULL: not NCZarr */
	json_t **docs;              /* owned */
	size_t n_docs, c_docs;
	struct ds_notes notes;      /* items that were left out, with the reason */
	struct arena *arena;        /* borrowed: the dataset's */
};

struct zr_source;

/* zr_tree_load - read the documents of a store (gather.c). Fills s->seen. Items, keys and names
 * are in the dataset's arena. An invalid document is an error that names its key. Returns 0 with
 * *ret filled (zr_tree_release). */
int zr_tree_load(struct zr_source *s, struct zr_tree *ret, struct err *e) NZ_MUST_USE;
void zr_tree_release(struct zr_tree *t);
/* zr_remote_bid - the bid for a remote store. It also bids if the content is unknown: no other
 * source can report the error. (gather_walk.c) */
int zr_remote_bid(struct store *s);

/* zr_full - the error for a NULL from the arena. */
int zr_full(const struct arena *a, struct err *e);

/* ---- from documents to terms; messages name the error, the caller adds the key ---- */

/* zr_format_is - check that a document's zarr_format is this number. (gather.c) */
int zr_format_is(const json_t *v, uint64_t want, struct err *e) NZ_MUST_USE;

/* zr_v2_meta, zr_v3_meta - convert an array's document to a zr_meta (array_metadata.c). Shapes and
 * products are checked. Unknown codecs set `unreadable` and are no error. old_char: "<U1" is one
 * byte a character (NCZarr up to 4.9.0). Returns 0; -EBADMSG violates the specification;
 * -EOPNOTSUPP; -ERANGE; -ENOMEM. */
int zr_v2_meta(struct arena *a, const json_t *doc, bool old_char, struct zr_meta *ret,
	       struct err *e) NZ_MUST_USE;
int zr_v3_meta(struct arena *a, const json_t *doc, struct zr_meta *ret, struct err *e) NZ_MUST_USE;

/* zr_dtype_v2 - numpy's dtype string or list of fields; object dtypes have stored 0 and need a
 * vlen filter. zr_dtype_v3 - a data_type; the bytes codec adds big-endianness. (dtype.c) */
int zr_dtype_v2(struct arena *a, const json_t *v, bool old_char, struct zr_dtype *ret,
		struct err *e) NZ_MUST_USE;
int zr_dtype_v3(struct arena *a, const json_t *v, struct zr_dtype *ret, struct err *e) NZ_MUST_USE;

/* zr_codecs_v2 - convert filters and compressor to m->chain, m->vlen and, for object dtypes,
 * m->dtype; or set m->unreadable. m->dtype, shape and chunk are set. zr_codecs_v3 - the same for
 * the list of codecs: chain, order, shard, byte order. (codecs.c) */
int zr_codecs_v2(struct arena *a, const json_t *filters, const json_t *compressor,
		 struct zr_meta *m, struct err *e) NZ_MUST_USE;
int zr_codecs_v3(struct arena *a, const json_t *codecs, struct zr_meta *m,
		 struct err *e) NZ_MUST_USE;

/* zr_fill_value - fill_value in presented form: sets fill_defined, fill or fill_text of an array
 * whose type is set (fill_value.c). Absent or null: zeros, not defined. v2: base64 for S and V,
 * NaN strings, numbers, booleans, lists for complex; integers modulo the range of the type. v3:
 * hexadecimal bits, lists of bytes. Both: quoted numbers. -EBADMSG no value of the type. */
int zr_fill_value(struct arena *a, const struct zr_meta *m, struct ds_array *ret,
		  struct err *e) NZ_MUST_USE;

/* zr_attr_make - make an attribute from JSON by NCZarr's rules (listed in attributes.c). type:
 * dtype from NCZarr's types, or NULL: inferred. like: type for `_FillValue` without a type of its
 * own; NULL. v3: Zarr v3's encodings (_FillValue as base64). */
int zr_attr_make(struct arena *a, const char *name, const json_t *v, const char *type,
		 const struct dtype *like, bool v3, struct ds_attr *ret,
		 struct err *e) NZ_MUST_USE;

/* zr_model - make the dataset and s->arrays from the documents (build_model.c). */
int zr_model(struct zr_source *s, struct err *e) NZ_MUST_USE;

/* ---- the finished source ---- */

/* zr_array - data of an array that is not in the model. The model's chunk is the innermost stored
 * chunk, clipped to the array if it is longer (access is DS_CONVERT then). */
struct zr_array {
	const struct zr_meta *meta; /* in the dataset's arena; its JSON members are NULL after
				     * opening */
	const uint64_t *stored;     /* rank entries: lengths of the innermost stored chunk */
	bool clipped;
};

/* zr_node_key - a group or array by the key of its directory, which is the arena's. */
struct zr_node_key {
	const char *key;
	uint32_t array; /* DS_NONE: a group */
};

struct zr_data; /* the data half's own (chunk_lookup.c) */

struct zr_source {
	struct source base;
	struct store *store;        /* owned */
	struct blob *file;          /* of a remote archive; owned; NULL */
	char *path;                 /* owned, for messages */
	struct source_options opts;
	struct zr_array *arrays;    /* base.ds.n_arrays; in the dataset's arena */
	struct zr_doc_seen *seen;   /* owned; keys in the arena. Documents and directories of
				     * groups, with their versions before they were read */
	size_t n_seen, c_seen;
	struct zr_data *data;       /* owned */
	bool borrowed;              /* the store belongs to the caller, who reports its changes;
				     * each document is inspected for that, because consolidated
				     * metadata may be older during writing */
	bool in_dir;                /* the store is the directory at path */
	_Atomic bool held;          /* source_hold */
	struct zr_node_key *nodes;  /* owned; groups and arrays, by their keys (keys.c) */
	size_t n_nodes;
};

static inline struct zr_source *zr_of(struct source *s)
{
	return CONTAINER_OF(s, struct zr_source, base);
}

/* zr_data_new - make the data half of an opened source; reads no data. zr_data_free takes NULL. */
int zr_data_new(struct zr_source *s, struct zr_data **ret, struct err *e) NZ_MUST_USE;
void zr_data_free(struct zr_data *d);

/* The source's operations on data; contracts in translate/contract/source.h. The first access to
 * an array lists its keys, the first access to a shard reads its index. */
int zr_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
	      struct err *e);
int zr_place_chunk(struct source *s, uint32_t array, uint64_t linear,
		   const struct chunk_ref *ref, struct store_place *ret, struct err *e);
int zr_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e);
int zr_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
		  struct err *e);
int zr_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		 struct err *e);
int zr_read_stored(struct source *s, uint32_t array, uint64_t linear,
		   const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		   struct err *e);
void zr_want(struct source *s, uint32_t array, const uint64_t *linear, size_t n);
void zr_forget(struct source *s, uint32_t array, uint64_t linear);
int zr_check(struct source *s, struct err *e);
int zr_poll(struct source *s, struct err *e);
void zr_hold(struct source *s, bool on);

/* zr_nodes_sort - sort s->nodes for zarr_source_key(). (keys.c) */
void zr_nodes_sort(struct zr_source *s);

/* ---- prefetch of remote objects (chunk_remote.c) ---- */

/* zr_wants - ranges of one store_want() call, with their keys. */
struct zr_wants {
	struct store *s;
	struct store_range r[512];
	char *keys[512];
	size_t n;
};

/* zr_wants_new - NULL: the store is not remote, or memory is short; then nothing is prefetched. */
struct zr_wants *zr_wants_new(struct store *s);
/* zr_wants_add - add a range, for which earlier ones may be requested first. w may be NULL. */
void zr_wants_add(struct zr_wants *w, const char *key, uint64_t off, uint64_t len);
/* zr_wants_flush - request the ranges. zr_wants_done - the same, and free w, which may be NULL. */
void zr_wants_flush(struct zr_wants *w);
void zr_wants_done(struct zr_wants *w);

#endif
