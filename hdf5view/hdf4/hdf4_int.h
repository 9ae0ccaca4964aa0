/* SPDX-License-Identifier: BSD-3-Clause */
/* hdf4_int.h - what the files of the HDF4 source share; private to hdf5view.
 *
 * Life of a source: a child (isolate/isolated_source.h) walks the file with libhdf4's SD interface
 * (model.c) and gathers arrays, dimensions and attributes; another one reads elements
 * (library_read.c). libhdf4 is never used by the server. Only source.c does anything where
 * NCZARRFS_HDF4 is not defined. */
#ifndef HDF5VIEW_HDF4_HDF4_INT_H
#define HDF5VIEW_HDF4_HDF4_INT_H

#include <errno.h>

#include "base/core/buf.h"
#include "hdf5view/isolate/isolated_source.h"
#include "translate/model/unreadable.h"

#define H4_WORKER_NAME "nczarrfs-hdf4"  /* as ps and top show it; 15 bytes at most */
#define H4_RANK_MAX 32         /* H4_MAX_VAR_DIMS */
#define H4_NOTES_MAX 1000

/* h4_place - stored bytes in the file; len 0: only the library knows. */
struct h4_place {
	uint32_t off, len;
};

/* h4_array - what the source keeps for an array besides the model. The flags are bytes: another
 * process writes them, and a bool that is neither 0 nor 1 has no meaning. */
struct h4_array {
	int32_t index;            /* of the SDS in the file */
	int32_t type;             /* DFNT_*, as the file says it */
	uint8_t empty;            /* nothing was ever written to it */
	const uint64_t *extent;   /* rank entries: elements that the file has */
	uint64_t n_places;        /* 0: elements come from the library, else */
	const struct h4_place *places;  /* one for each chunk; or, in one piece: one for all */
	uint8_t one_piece;
};

/* h4_own - what of a source is in the model's memory besides the dataset. */
struct h4_own {
	const struct h4_array *arrays;  /* one for each array of the dataset */
};

struct h4_source {
	struct isolated g;
	const struct h4_array *arrays;
	/* in a child: */
	int32_t sd;               /* the file, open for the rest of the process; 0: not yet */
	char opened[PATH_MAX];    /* the name that it was opened by */
	int32_t sds;              /* the array read last; 0: none */
	uint32_t selected;        /* its ordinal */
};

static inline struct h4_source *h4_of(struct isolated *g)
{
	return CONTAINER_OF(g, struct h4_source, g);
}

/* ---- the model while it grows ---- */

/* h4_axis - what SDdiminfo says of one axis, and the dimension it became. */
struct h4_bdim {
	struct ds_dim d;
	const char *raw;          /* the name in the file */
	uint64_t key;             /* length of a fixed one; UINT64_MAX: it can grow */
	uint32_t next;            /* in its bucket, plus one */
};

struct h4_barray {
	struct ds_array a;
	struct h4_array x;
	bool coordinate;          /* SDiscoordvar: the values of the dimension of its name */
	int32_t ref;              /* reference number, what tells arrays of one name apart */
	const uint64_t *chunk;    /* the file's, or NULL */
	bool compressed;
	uint32_t level;           /* of deflate, plus one; 0: another compression, or none */
};

#define H4_BUCKETS 1024

struct h4_build {
	struct h4_source *s;
	struct arena *arena;      /* the dataset's */
	int32_t sd;
	struct h4_barray *arrays;
	struct h4_bdim *dims;
	const char **notes;
	size_t n_arrays, c_arrays, n_dims, c_dims, n_notes, c_notes;
	uint64_t notes_dropped;
	struct unreadable lost;
	uint32_t buckets[H4_BUCKETS];  /* of dims by raw name, plus one */
	char *text;               /* H4_TEXT_MAX + 1 bytes: for names that the library writes */
};
#define H4_TEXT_MAX 65536      /* lengths of names have 16 bits in the file */

/* h4_mark_unreadable - leave an array out, with a note: why. Unless it was read and is nothing that
 * can be shown (-EOPNOTSUPP), the view will not call it absent; name: of the arena; NULL: it has
 * none that could be read, what says which it is. Returns 0 or an error that ends the opening. */
int h4_mark_unreadable(struct h4_build *b, const char *name, const char *what,
		       const struct err *why, struct err *e) NZ_MUST_USE;
/* h4_note - one line for the user: "<what>: <text>". */
int h4_note(struct h4_build *b, const char *what, struct err *e, const char *fmt, ...)
	NZ_PRINTF(4, 5);
/* h4_full - record that the model outgrew its limit, -ERANGE, or that memory was short, -ENOMEM. */
int h4_full(const struct h4_build *b, struct err *e);
/* h4_fatal - whether a failure ends the opening instead of leaving one object out. */
static inline bool h4_fatal(int rc)
{
	return rc == -ENOMEM || rc == -ERANGE;
}
/* h4_error - record `code` and "<what>: <the library's reason>". Returns code. */
int h4_error(struct err *e, int code, const char *what);

/* h4_type - a number type of the file in the model's terms; false for those that are left out. */
bool h4_type(int32_t nt, struct dtype *ret);

/* h4_text - n bytes as UTF-8 in the arena, *ret_len bytes; NULL when that is full. */
const char *h4_text(struct h4_build *b, const char *s, size_t n, size_t *ret_len);
/* h4_name - a name that the model allows, in the arena; NULL when that is full. */
const char *h4_name(struct h4_build *b, const char *raw);
/* h4_names_resolve - make the names of arrays and of dimensions unique. */
int h4_names_resolve(struct h4_build *b, struct err *e) NZ_MUST_USE;

/* h4_attrs_read - attributes [0, n) of the file or an SDS. what: for notes. */
int h4_attrs_read(struct h4_build *b, int32_t id, int32_t n, const char *what, uint32_t *ret_n,
		  const struct ds_attr **ret, struct err *e) NZ_MUST_USE;

/* h4_sds_read - SDS number `index` of the file into b->arrays. One that cannot be shown leaves a
 * note and counts as success. */
int h4_sds_read(struct h4_build *b, int32_t index, struct err *e) NZ_MUST_USE;

/* h4_chunk_lengths - of an SDS, H4_RANK_MAX entries; false when they cannot be read. */
bool h4_chunk_lengths(int32_t sds, int32_t *ret, bool *ret_chunked);

/* h4_pass_read - find out whether an array's stored bytes can be presented as they are, and where
 * they are. Its shape and chunks are known. */
int h4_pass_read(struct h4_build *b, struct h4_barray *w, struct err *e) NZ_MUST_USE;

/* h4_left_out - notes of what else is in the file. */
int h4_left_out(struct h4_build *b, struct err *e) NZ_MUST_USE;

/* h4_build_model - isolated_kind.build. */
int h4_build_model(struct isolated *g, const void **ret_own, struct err *e) NZ_MUST_USE;

/* ---- library_read.c ---- */

/* h4_open - open the source's file with the library, in a child, for the rest of its life. No
 * other file can be opened by this process afterwards, whatever the file says. */
int h4_open(struct h4_source *s, struct err *e) NZ_MUST_USE;
/* h4_chunk - isolated_kind.chunk. */
int h4_chunk(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
	     struct err *e) NZ_MUST_USE;

/* ---- download.c ---- */

#define H4_DOWNLOAD_MAX ((uint64_t)INT32_MAX) /* HDF4's offsets are so long */

/* h4_fetch - a copy of a remote file, in TMPDIR or /tmp, without a name. *ret is new. Returns 0;
 * -EFBIG; -ENOSPC; -ETIMEDOUT; why it could not be read. */
int h4_fetch(struct blob *b, uint64_t timeout_ms, int *ret, struct err *e) NZ_MUST_USE;

#endif
