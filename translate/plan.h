/* plan.h - made once for each array: do stored chunks already mean what the view promises? */
#ifndef TRANSLATE_PLAN_H
#define TRANSLATE_PLAN_H

#include "translate/dataset.h"

enum plan_kind {
	PLAN_PASS,    /* a chunk file is the stored bytes, less a trailer */
	PLAN_DECODE,  /* a chunk file is the uncompressed elements: its size is arithmetic */
	PLAN_VLEN,    /* elements without a fixed size: framed as numcodecs' vlen-* filters do */
	PLAN_FIXED,   /* DT_VSTRING presented as texts of fixed_size bytes, NUL padded */
	PLAN_HIDE,    /* the view cannot express the array: it does not appear; see reason */
	PLAN_ERROR,   /* metadata is served, every chunk is EIO; see reason */
};

/* plan_format - what the view's files are read as. */
enum plan_format {
	PLAN_ZARR2,  /* numcodecs reads chunks: codecs are its own, a trailing checksum is cut off,
	              * odd chunks are framed */
	PLAN_HDF5,   /* libhdf5 reads chunks: codecs are HDF5 filters */
};

enum plan_filter {
	PLAN_PORTABLE,  /* pass chains that stock readers decode, decode the rest */
	PLAN_KEEP,      /* pass every chain that the format can name, decode the rest */
	PLAN_NONE,      /* decode everything */
};

struct plan {
	enum plan_kind kind;
	struct codec_chain chain;  /* PASS: the chain that the view names; empty otherwise */
	uint32_t trailer;          /* PASS: bytes to cut from the end of a stored chunk whose
	                            * trailing filter was not skipped */
	uint32_t trailer_bit;      /* PASS with trailer: that filter's bit in the filter mask */
	uint32_t fixed_size;       /* PLAN_FIXED: bytes of an element, >= 1 */
	bool fill_declared;        /* the view states the fill value: ABSENT is "no such file".
	                            * Otherwise absent chunks appear, filled. */
	char reason[200];          /* for people: why it passes, why not */
};

/* plan_make - PASS or DECODE (or VLEN, ERROR) for one array under a filter policy.
 * fill_declared is copied. Passing needs access DS_STORED, and
 *   ZARR2  every filter known to Zarr v2's readers (PORTABLE: the stock ones), fletcher32 only
 *          as the last filter, and a framed form for odd chunks unless the source has none
 *   HDF5   every filter one of libhdf5's own (PORTABLE), or with a registered filter id (KEEP),
 *          in an order that its writers can have meant; the chain is passed whole, trailer 0 */
void plan_make(const struct ds_array *a, enum plan_format format, enum plan_filter filter,
	       bool fill_declared, struct plan *ret);

#endif
