/* SPDX-License-Identifier: BSD-3-Clause */
/* hdf4_int.h - declarations shared by the files of the HDF4 source; private to hdf5view.
 *
 * Life of a source: a child (isolate/isolated_source.h) walks the file with libhdf4's SD interface
 * (model.c) and gathers arrays, dimensions and attributes; another child reads elements
 * (library_read.c). The server never uses libhdf4. Without NCZARRFS_HDF4 only source.c has any
 * code. */
#ifndef HDF5VIEW_HDF4_HDF4_INT_H
#define HDF5VIEW_HDF4_HDF4_INT_H

#include <errno.h>

#include "base/core/buf.h"
#include "hdf5view/isolate/isolated_source.h"
#include "translate/model/builder.h"

#define H4_WORKER_NAME "nczarrfs-hdf4"  /* as ps and top show it; 15 bytes at most */
#define H4_RANK_MAX 32         /* H4_MAX_VAR_DIMS */

/* h4_place - stored bytes in the file; len 0: only the library can find them. */
struct h4_place {
	uint32_t off, len;
};

/* h4_array - the source's own data of an array. The flags are bytes, because another process
 * writes them, and a bool that is neither 0 nor 1 has no meaning. */
struct h4_array {
	int32_t index;            /* of the SDS in the file */
	int32_t type;             /* DFNT_*, as in the file */
	uint8_t empty;            /* never written */
	const uint64_t *extent;   /* rank entries: elements that the file stores */
	uint64_t n_places;        /* 0: read elements through the library */
	const struct h4_place *places;  /* one for each chunk; or, in one piece: one for all */
	uint8_t one_piece;
};

struct h4_source {
	struct isolated g;
	const struct h4_array *arrays; /* one for each of the dataset; in the model's memory */
	/* in a child: */
	int32_t sd;               /* the file, open for the rest of the process; 0: not yet */
	char opened[PATH_MAX];    /* the name by which it was opened */
	int32_t sds;              /* the array read last; 0: none yet */
	uint32_t selected;        /* its ordinal */
};

static inline struct h4_source *h4_of(struct isolated *g)
{
	return CONTAINER_OF(g, struct h4_source, g);
}

/* ---- the model while it grows ---- */

/* h4_bdim - SDdiminfo's description of an axis, and its dimension. */
struct h4_bdim {
	struct ds_dim d;
	const char *raw;          /* the name in the file */
	uint64_t key;             /* length of a fixed one; UINT64_MAX: it can grow */
	uint32_t next;            /* in its bucket, plus one */
};

struct h4_barray {
	struct ds_array a;
	struct h4_array x;
	bool coordinate;          /* SDiscoordvar: has the coordinates of the dimension of that
				   * name */
	int32_t ref;              /* reference number: distinguishes arrays of one name */
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
	size_t n_arrays, c_arrays, n_dims, c_dims;
	struct ds_notes notes;
	struct unreadable lost;
	uint32_t buckets[H4_BUCKETS];  /* of dims by raw name, plus one */
	char *text;               /* H4_TEXT_MAX + 1 bytes: for names that the library writes */
};
#define H4_TEXT_MAX 65536      /* lengths of names have 16 bits in the file */

/* h4_mark_unreadable - leave out an array, with a note: why. Unless the array was read and has no
 * presentation (-EOPNOTSUPP), the view will not report its name as absent. name: in the arena;
 * NULL: its name could not be read, and `what` identifies it in the note. Returns 0, or an error
 * that ends the opening. */
int h4_mark_unreadable(struct h4_build *b, const char *name, const char *what,
		       const struct err *why, struct err *e) NZ_MUST_USE;
/* h4_note - add a note for the user: "<what>: <text>". */
int h4_note(struct h4_build *b, const char *what, struct err *e, const char *fmt, ...)
	NZ_PRINTF(4, 5);
/* h4_full - record -ERANGE if the model outgrew its limit, -ENOMEM if memory was short. Returns
 * it. */
int h4_full(const struct h4_build *b, struct err *e);
/* h4_fatal - whether an error ends the opening instead of leaving out one object. */
static inline bool h4_fatal(int rc)
{
	return rc == -ENOMEM || rc == -ERANGE;
}
/* h4_error - record `code` and "<what>: <the library's reason>". Returns code. */
int h4_error(struct err *e, int code, const char *what);

/* h4_type - convert a number type of the file to the model's; false for types that are left
 * out. */
bool h4_type(int32_t nt, struct dtype *ret);

/* h4_name - a name that the model allows, in the arena; NULL when that is full. */
const char *h4_name(struct h4_build *b, const char *raw);
/* h4_names_resolve - make the names of arrays and dimensions unique. */
int h4_names_resolve(struct h4_build *b, struct err *e) NZ_MUST_USE;

/* h4_attrs_read - read attributes [0, n) of the file or an SDS. what: for notes. */
int h4_attrs_read(struct h4_build *b, int32_t id, int32_t n, const char *what, uint32_t *ret_n,
		  const struct ds_attr **ret, struct err *e) NZ_MUST_USE;

/* h4_sds_read - read SDS number `index` of the file into b->arrays. An SDS that cannot be shown
 * leaves a note and counts as success. */
int h4_sds_read(struct h4_build *b, int32_t index, struct err *e) NZ_MUST_USE;

/* h4_chunk_lengths - read the chunk lengths of an SDS, H4_RANK_MAX entries; false if they cannot
 * be read. */
bool h4_chunk_lengths(int32_t sds, int32_t *ret, bool *ret_chunked);

/* h4_pass_read - find out whether an array's stored bytes can be presented unchanged, and locate
 * them. Its shape and chunks are known. */
int h4_pass_read(struct h4_build *b, struct h4_barray *w, struct err *e) NZ_MUST_USE;

/* h4_build_model - isolated_kind.build. */
int h4_build_model(struct isolated *g, const void **ret_own, struct err *e) NZ_MUST_USE;

/* ---- library_read.c ---- */

/* h4_open - in a child, open the source's file with the library for the rest of the process. After
 * that this process can open no other file, whatever the file refers to. */
int h4_open(struct h4_source *s, struct err *e) NZ_MUST_USE;
/* h4_chunk - isolated_kind.chunk. */
int h4_chunk(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
	     struct err *e) NZ_MUST_USE;

/* ---- download.c ---- */

#define H4_DOWNLOAD_MAX ((uint64_t)INT32_MAX) /* HDF4's offsets have 31 bits */

/* h4_fetch - copy a remote file to an unnamed file in TMPDIR or /tmp. *ret: a new descriptor.
 * Returns 0; -EFBIG; -ENOSPC; -ETIMEDOUT; the error of reading. */
int h4_fetch(struct blob *b, uint64_t timeout_ms, int *ret, struct err *e) NZ_MUST_USE;

#endif
