/* nczarr.h - everything of the Zarr family that the program wires together. */
#ifndef NCZARR_NCZARR_H
#define NCZARR_NCZARR_H

#include "translate/chunkio.h"
#include "translate/view.h"

enum zarr_mode {
	ZARR_PURE,      /* Zarr v2 with _ARRAY_DIMENSIONS everywhere, scalars with shape [] */
	ZARR_NCZARR,    /* adds the NCZarr keys (layout that netCDF-C 4.9.2 and later read),
	                 * scalars with shape [1] */
	ZARR_NOXARRAY,  /* Zarr v2 without _ARRAY_DIMENSIONS */
};

struct zarr_view_options {
	uint32_t format;    /* 2 or 3; with 3 the mode is not ZARR_NCZARR */
	enum zarr_mode mode;
	struct plan_policy policy;
	bool nested;        /* separator "/": chunk keys are paths */
	bool v2_keys;       /* format 3: chunk_key_encoding "v2", 0/0; else "default", c/0/0 */
	uint64_t shard_bytes; /* format 3: bytes of elements in one shard; 0: no shards */
	bool strict_json;   /* NaN and infinities in attributes as strings */
	struct chunkio_options io;
	uint64_t max_meta_bytes;  /* ceiling of one metadata document */
	uint64_t id_limit;        /* ids stay below it; 0: VIEW_ID_LIMIT */
};

/* zarr_source_ops - Zarr v2, NCZarr (all versions) and Zarr v3 trees as a source: a directory or a
 * zip archive. docs/zarr-source.md. */
extern const struct source_ops zarr_source_ops;

/* zarr_view_open - present a source as a Zarr v2 or v3 tree. The source is borrowed and outlives
 * the view. Costs no more than the plans: documents are made when they are looked at.
 * Returns 0 with *ret new (view->ops->close). */
int zarr_view_open(struct source *s, const struct zarr_view_options *opts, struct view **ret,
		   struct err *e) NZ_MUST_USE;

#endif
