/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - decides once for each array whether its stored chunks can be presented as they are. */
#ifndef TRANSLATE_PLAN_PLAN_H
#define TRANSLATE_PLAN_PLAN_H

#include "codecs/numeric/quant.h"
#include "codecs/spec/spec.h"
#include "translate/model/dataset.h"

enum plan_kind {
	PLAN_PASS,    /* a chunk file is the stored bytes, less a trailer */
	PLAN_DECODE,  /* a chunk file is the uncompressed elements: its size is arithmetic */
	PLAN_ENCODE,  /* a chunk file is the elements, encoded in a chain that the array does not
	               * have: its size is known once it was made */
	PLAN_VLEN,    /* elements without a fixed size: framed as numcodecs' vlen-* filters do */
	PLAN_FIXED,   /* DT_VSTRING presented as strings of fixed_size bytes, NUL padded */
	PLAN_HIDE,    /* the view cannot express the array: it does not appear; see reason */
	PLAN_ERROR,   /* metadata is served, every chunk is EIO; see reason */
};

/* plan_format - the format that programs read the view's files as. */
enum plan_format {
	PLAN_ZARR2,  /* numcodecs reads chunks: codecs are its own, a trailing checksum is cut off,
	              * odd chunks are framed */
	PLAN_ZARR3,  /* readers of Zarr v3: few codecs are known to all of them; deflate or zstd
	              * with shuffle or without, become Blosc by a head in front of the chunk
	              * (codecs/compress/blosc_wrap.h) */
	PLAN_HDF5,   /* libhdf5 reads chunks: codecs are HDF5 filters */
};

/* plan_filter - how to present arrays that no rule is for. */
enum plan_filter {
	PLAN_PORTABLE,  /* pass chains that stock readers decode, decode the rest */
	PLAN_KEEP,      /* pass every chain that the format can name, decode the rest */
	PLAN_NONE,      /* decode everything */
};

/* plan_layout - how the writer of an array laid out its files. */
struct plan_layout {
	const char *path;      /* of the array */
	bool nested;           /* the separator in names of chunks is '/' */
	bool lead;             /* names begin with "c": Zarr v3's default encoding */
	uint32_t rank;         /* of shard; 0: each chunk is a file */
	const uint64_t *shard; /* elements along each axis in one file; borrowed */
	const char *strange;   /* the feature of its shards that this program does not write; NULL:
			        * none */
};

/* plan_layouts - sorted by path, each path once. */
struct plan_layouts {
	uint32_t n;
	const struct plan_layout *v;
};

/* plan_policy - the user's choices. A rule for an array takes precedence over `filter`. */
struct plan_policy {
	enum plan_filter filter;
	const struct codec_rules *rules;       /* borrowed for the view's life; NULL: none */
	const struct codec_quant_rules *quant; /* the same */
	const struct plan_layouts *layouts;    /* the same: of arrays with a layout of their own */
};

struct plan {
	enum plan_kind kind;
	struct codec_chain chain;  /* PASS, ENCODE: the chain that the view names (ENCODE: with the
	                            * parameters that codec_chain_prepare gave); empty otherwise */
	uint32_t trailer;          /* PASS: bytes to cut from the end of a stored chunk whose
	                            * trailing filter was not skipped */
	uint32_t trailer_bit;      /* PASS with trailer: that filter's bit in the filter mask */
	bool wrap;                 /* PASS: a head (codec_wrap_head) in front of a chunk's stored
	                            * bytes makes a Blosc buffer of them, which is what `chain`
	                            * names */
	uint32_t elem_size;        /* ENCODE: bytes of an element, as the format has them */
	uint64_t bytes;            /* ENCODE: of a chunk's elements so many are encoded, from the
	                            * first on: all of them, or those of a chunk that is cut */
	struct codec_quant quant;  /* DECODE, ENCODE: quantisation that is applied to elements
				    * first */
	const uint8_t *quant_fill; /* with it: the value that stays, as an element; NULL: netCDF's
	                            * default. Borrowed from the dataset or the arena */
	uint32_t fixed_size;       /* PLAN_FIXED: bytes of an element, >= 1 */
	bool fill_declared;        /* the view states the fill value: ABSENT is "no such file".
	                            * Otherwise absent chunks appear, filled. */
	const char *note;          /* human-readable reason why a rule was not applied; in the
				    * arena. NULL: none */
	char reason[200];          /* human-readable: why it passes, or why not */
};

/* plan_elements - an array's elements and chunks for codec_chain_prepare, as the model has them;
 * a view whose format has others changes them. The fill value is there when the array defines
 * one. The array must have elements of a fixed size. */
void plan_elements(const struct ds_array *a, struct codec_array *ret);

/* plan_ask - one array of a view. */
struct plan_ask {
	const struct dataset *ds;
	uint32_t array;                    /* ordinal */
	enum plan_format format;
	const struct plan_policy *policy;
	bool fill_declared;                /* copied */
	const struct codec_array *as;      /* elements and chunks as the format has them, maybe
	                                    * cut along the first axis. NULL: plan_elements */
	/* refuses - why the format cannot name this chain for the array, beyond what plan_make
	 * knows; NULL: it can. Borrowed until the next call. May be NULL: nothing more. */
	const char *(*refuses)(const struct plan_ask *ask, const struct codec_chain *chain);
	struct arena *arena;               /* for parameters and notes; lives as long as the plan */
};

/* plan_make - decide how the chunks of one array are presented.
 *
 * With a rule: if its chain is the stored one, chunks pass, whatever readers need for it; another
 * chain is encoded (ENCODE); "none" is decoded. Filters that differ in their level only are the
 * same. In ZARR3, chunks that can be wrapped pass wrapped, and are encoded as Blosc. If a chain
 * cannot be encoded here, is unsuitable for the array, or has no name in the format, the array is
 * presented as without the rule, and ret->note has the reason. So are arrays without dimensions and
 * those whose elements have no fixed size, as in nccopy.
 * Without a rule: passing needs access DS_STORED, and
 *   ZARR2  every filter known to Zarr v2's readers (PORTABLE: the stock ones), fletcher32 only
 *          as the last filter, and a framed form for chunks with a filter mask or of another
 *          length, unless the source has none
 *   ZARR3  the same with Zarr v3's names (PORTABLE: zarr3_stock), or a chain that can be wrapped
 *   HDF5   every filter one of libhdf5's own (PORTABLE), or with a registered filter id (KEEP),
 *          in an order that its writers can have meant; the chain is passed whole, trailer 0
 * Quantised arrays never pass: they are decoded, or encoded where a rule gives a chain. Returns 0;
 * -ENOMEM. */
int plan_make(const struct plan_ask *ask, struct plan *ret, struct err *e) NZ_MUST_USE;

/* plan_layout_of - the layout of an array that has its own; NULL: it has none. */
const struct plan_layout *plan_layout_of(const struct plan_policy *p, const struct dataset *ds,
					 uint32_t array);

/* plan_same - whether both plans present chunks of one object in the same way. */
bool plan_same(const struct plan *p, const struct plan *q);

#define PLAN_WHY_CAP 160 /* of the reason why a chain is impossible */

/* plan_chain_alike - whether the stored chunks of one chain are those that the other would make,
 * apart from levels, which are in the stream or do not matter to a reader. plan_chain_equal -
 * whether filters and parameters are the same. */
bool plan_chain_alike(const struct codec_chain *stored, const struct codec_chain *want,
		      uint32_t elem_size);
bool plan_chain_equal(const struct codec_chain *a, const struct codec_chain *b);

/* plan_in_order - the prepared filters in the order of the rule, into specs (CODEC_CHAIN_MAX):
 * netCDF writes them in another order, but a file that has them in the user's order matches the
 * rule, too. */
struct codec_chain plan_in_order(const struct codec_chain *rule, const struct codec_chain *want,
				 struct codec_spec *specs);

/* plan_cannot - whether a format cannot have the chain for such chunks so that its readers undo it
 * (zarr-python, libhdf5), or, unless keep, so that stock readers of Zarr v3 and libhdf5 without
 * plugins do; the reason goes into why. false: it can. */
bool plan_cannot(enum plan_format format, const struct codec_array *as,
		 const struct codec_chain *chain, bool keep, char why[PLAN_WHY_CAP]);

#endif
