/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - made once for each array: do stored chunks already mean what the view promises? */
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
	PLAN_FIXED,   /* DT_VSTRING presented as texts of fixed_size bytes, NUL padded */
	PLAN_HIDE,    /* the view cannot express the array: it does not appear; see reason */
	PLAN_ERROR,   /* metadata is served, every chunk is EIO; see reason */
};

/* plan_format - what the view's files are read as. */
enum plan_format {
	PLAN_ZARR2,  /* numcodecs reads chunks: codecs are its own, a trailing checksum is cut off,
	              * odd chunks are framed */
	PLAN_ZARR3,  /* readers of Zarr v3: few codecs are known to all of them; deflate or zstd
	              * with shuffle or without, become Blosc by a head in front of the chunk
	              * (codecs/compress/blosc_wrap.h) */
	PLAN_HDF5,   /* libhdf5 reads chunks: codecs are HDF5 filters */
};

/* plan_filter - the own way of arrays that no rule is for. */
enum plan_filter {
	PLAN_PORTABLE,  /* pass chains that stock readers decode, decode the rest */
	PLAN_KEEP,      /* pass every chain that the format can name, decode the rest */
	PLAN_NONE,      /* decode everything */
};

/* plan_layout - how the writer of an array has laid out its files. */
struct plan_layout {
	const char *path;      /* of the array */
	bool nested;           /* the separator in names of chunks is '/' */
	bool lead;             /* names begin with "c": Zarr v3's default encoding */
	uint32_t rank;         /* of shard; 0: each chunk is a file */
	const uint64_t *shard; /* elements along each axis in one file; borrowed */
	const char *strange;   /* what of its shards we do not write; NULL */
};

/* plan_layouts - sorted by path, each path once. */
struct plan_layouts {
	uint32_t n;
	const struct plan_layout *v;
};

/* plan_policy - what the user wants to see. A rule that is for an array wins over `filter`. */
struct plan_policy {
	enum plan_filter filter;
	const struct codec_rules *rules;       /* borrowed for the view's life; NULL: none */
	const struct codec_quant_rules *quant; /* the same */
	const struct plan_layouts *layouts;    /* the same: of arrays that have one of their own */
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
	struct codec_quant quant;  /* DECODE, ENCODE: what is done to elements first */
	const uint8_t *quant_fill; /* with it: the value that stays, as an element; NULL: netCDF's
	                            * default. Borrowed from the dataset or the arena */
	uint32_t fixed_size;       /* PLAN_FIXED: bytes of an element, >= 1 */
	bool fill_declared;        /* the view states the fill value: ABSENT is "no such file".
	                            * Otherwise absent chunks appear, filled. */
	const char *note;          /* what a rule asks for and is not done, and why, for people; in
	                            * the arena. NULL: nothing */
	char reason[200];          /* for people: why it passes, why not */
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

/* plan_make - what is done with the chunks of one array.
 *
 * With a rule: a chain that is the stored one passes, whatever readers need for it; another is
 * encoded (ENCODE); "none" is decoded. Filters that are alike but for how hard they try (levels)
 * are the same. In ZARR3 what can be wrapped passes wrapped, and is encoded as Blosc. What cannot
 * be encoded here, not for such an array, or not be named by the format, leaves the array its own
 * way, and ret->note says why. So do arrays without dimensions and those whose elements have no
 * fixed size, as in nccopy.
 * Without: passing needs access DS_STORED, and
 *   ZARR2  every filter known to Zarr v2's readers (PORTABLE: the stock ones), fletcher32 only
 *          as the last filter, and a framed form for odd chunks unless the source has none
 *   ZARR3  the same with Zarr v3's names (PORTABLE: zarr3_stock), or a chain that can be wrapped
 *   HDF5   every filter one of libhdf5's own (PORTABLE), or with a registered filter id (KEEP),
 *          in an order that its writers can have meant; the chain is passed whole, trailer 0
 * What is quantised is never passed: it is decoded, or encoded where a rule gives a chain.
 * Returns 0; -ENOMEM. */
int plan_make(const struct plan_ask *ask, struct plan *ret, struct err *e) NZ_MUST_USE;

/* plan_layout_of - the layout of an array's own; NULL: it has none. */
const struct plan_layout *plan_layout_of(const struct plan_policy *p, const struct dataset *ds,
					 uint32_t array);

/* plan_same - whether chunks of one object are presented alike under both plans. */
bool plan_same(const struct plan *p, const struct plan *q);

#define PLAN_WHY_CAP 160 /* of why a chain cannot be */

/* plan_chain_alike - whether what one chain has stored is what the other would have made, but for
 * how hard it tried: levels are in the stream, or tell a reader nothing.
 * plan_chain_equal - filters and parameters are the same. */
bool plan_chain_alike(const struct codec_chain *stored, const struct codec_chain *want,
		      uint32_t elem_size);
bool plan_chain_equal(const struct codec_chain *a, const struct codec_chain *b);

/* plan_in_order - the prepared filters in the order of the rule, into specs (CODEC_CHAIN_MAX):
 * netCDF would write them in another, but a file that has them in the user's is what the user
 * means. */
struct codec_chain plan_in_order(const struct codec_chain *rule, const struct codec_chain *want,
				 struct codec_spec *specs);

/* plan_cannot - why a format cannot have the chain for such chunks, so that its readers undo it
 * (zarr-python, libhdf5), or, unless keep, why stock readers of Zarr v3 and libhdf5 without plugins
 * do not; into why. false: it can. */
bool plan_cannot(enum plan_format format, const struct codec_array *as,
		 const struct codec_chain *chain, bool keep, char why[PLAN_WHY_CAP]);

#endif
