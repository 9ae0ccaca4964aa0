/* SPDX-License-Identifier: BSD-3-Clause */
/* nczarr.h - everything of the Zarr family that the program wires together. */
#ifndef NCZARR_NCZARR_H
#define NCZARR_NCZARR_H

#include "nczarr/remote/remote.h"
#include "translate/chunkio/chunkio.h"
#include "translate/contract/sink.h"
#include "translate/contract/store.h"
#include "translate/contract/view.h"

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
	bool bare;          /* a dataset that has nothing, not even attributes, is an empty
	                     * directory: writers like xarray refuse one with documents */
};

/* zarr_source_ops - Zarr v2, NCZarr (all versions) and Zarr v3 trees as a source: a directory or a
 * zip archive. docs/dev/reading/zarr-source.md. */
extern const struct source_ops zarr_source_ops;

/* zarr_store_open - the same of any store, borrowed for the source's life. name: what it is called
 * in messages. A store without a document is an empty dataset. source_check and source_poll of it
 * say 0. */
int zarr_store_open(struct store *store, const char *name, const struct source_options *opts,
		    struct source **ret, struct err *e) NZ_MUST_USE;

/* zarr_key_kind - what a key of the store means to a source of it. */
enum zarr_key_kind {
	ZARR_KEY_OTHER, /* nothing: a temporary file, a chunk outside of the grid */
	ZARR_KEY_DOC,   /* a metadata document of a group or array, or of all */
	ZARR_KEY_CHUNK, /* chunks */
};
/* zarr_source_key - s: by zarr_source_ops or zarr_store_open. emit is called with array and linear
 * index of each chunk that the object of a CHUNK key holds: one, or those of a shard. emit may be
 * NULL. It returns false to stop. */
enum zarr_key_kind zarr_source_key(struct source *s, const char *key,
				   bool (*emit)(void *arg, uint32_t array, uint64_t linear),
				   void *arg);
/* zarr_source_layout - how the files of an array of such a source are laid out; ret->path is not
 * set. */
void zarr_source_layout(struct source *s, uint32_t array, struct plan_layout *ret);
/* zarr_doc_key - whether the last component of a key is the name of a metadata document. */
bool zarr_doc_key(const char *key);

/* zarr_sink_options - how new things are written into a store. */
struct zarr_sink_options {
	int dir_fd;               /* of the state directory, on the store's filesystem; borrowed
	                           * until close */
	const struct sink_names *names; /* borrowed until close; NULL: paths are the store's */
	uint32_t format;          /* 2 or 3; used when the store is empty, else the store's own */
	enum zarr_mode mode;      /* the same */
	bool nested, v2_keys;     /* the same */
	int consolidated;         /* 1: always, 0: never, -1: where it is there, and in new
	                           * stores */
	bool strict_json;
	struct store *store;      /* what is written, where it is no directory: a remote tree.
	                           * Borrowed until close; NULL. path then is its name for
	                           * messages */
};

/* zarr_sink_open - path: a directory that is a Zarr store. real: the same, opened as a source;
 * borrowed until close. A commit writes new objects beside the store, then a manifest of what is to
 * be put in place and removed, then does that: after a crash zarr_sink_recover ends or undoes it.
 * Returns 0 with *ret new; -EROFS an archive; -ESTALE it is not the store that real is. */
int zarr_sink_open(const char *path, struct source *real, const struct zarr_sink_options *opts,
		   struct sink **ret, struct err *e) NZ_MUST_USE;
/* zarr_sink_pending - whether a commit was begun there and not ended: 1, 0 or an error. */
int zarr_sink_pending(const char *path, int dir_fd, struct err *e) NZ_MUST_USE;
/* zarr_sink_recover - end it or undo it; may be interrupted and called again. */
int zarr_sink_recover(const char *path, int dir_fd, struct err *e) NZ_MUST_USE;
/* The same for a remote tree (opts->store): what is new lies in the state directory, with a
 * manifest, until all of it is in the store; so that recovery ends what was begun. A store whose
 * objects were changed by others since real was opened is not written: -ESTALE. */
int zarr_store_recover(struct store *store, int dir_fd, struct err *e) NZ_MUST_USE;

/* zarr_create - a new, empty store: a directory with the root's document; or, opts->store, where
 * nothing is yet at an address. -EEXIST. */
int zarr_create(const char *path, const struct zarr_sink_options *opts, struct err *e) NZ_MUST_USE;

/* zarr_view_open - present a source as a Zarr v2 or v3 tree. The source is borrowed and outlives
 * the view. Costs no more than the plans: documents are made when they are looked at.
 * Returns 0 with *ret new (view->ops->close). */
int zarr_view_open(struct source *s, const struct zarr_view_options *opts, struct view **ret,
		   struct err *e) NZ_MUST_USE;

/* ---- references to chunks (kerchunk's) ---- */

/* refs_options - how a document of references is written. */
struct refs_options {
	const char *address;   /* of the source, as readers of the references reach it */
	bool inlined;          /* chunks that do not pass are put into the document; else an array
	                        * with such chunks is an error that names it */
	uint64_t max_inline;   /* bytes of one chunk that may be */
	uint64_t records;      /* Parquet: references in one file; 0: 100,000 */
};

/* refs_json - references to all chunks of a source, shown as a Zarr v2 tree: kerchunk's JSON,
 * version 1. v: the tree's view (filter=keep). Written to fd as it is made.
 * refs_parquet - the same as a directory of Parquet files, which must not be there yet. */
int refs_json(struct source *s, struct view *v, const struct refs_options *opts, int fd,
	      struct err *e) NZ_MUST_USE;
int refs_parquet(struct source *s, struct view *v, const struct refs_options *opts,
		 const char *dir, struct err *e) NZ_MUST_USE;

/* remote_opener - how documents of references reach what they refer to on other machines; set once
 * by main before sources are opened. */
struct remote_opener {
	void *arg;
	/* blob - the bytes of what an address in a document means: http, https, s3, gs3. from: the
	 * document's own address, whose words reach private addresses only when it is there itself,
	 * or the user allows it; NULL: a local document. *ret new (blob_close). Any thread. */
	int (*blob)(void *arg, const char *from, const char *address, struct blob **ret,
		    struct err *e);
};
void refs_set_remote_opener(const struct remote_opener *reach);

/* refs_source_ops - documents of references as sources: kerchunk's JSON, versions 0 and 1, and its
 * directories of Parquet files. What it opens is a Zarr source. docs/dev/commands.md. */
extern const struct source_ops refs_source_ops;

#endif
