/* SPDX-License-Identifier: BSD-3-Clause */
/* nczarr.h - the public functions of the Zarr module. */
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
	uint64_t shard_bytes; /* format 3: decoded bytes of one shard; 0: no shards */
	bool strict_json;   /* NaN and infinities in attributes as strings */
	bool separate;      /* no consolidated metadata */
	struct chunkio_options io;
	uint64_t max_meta_bytes;  /* limit of one metadata document */
	uint64_t id_limit;        /* limit of the ids; 0: VIEW_ID_LIMIT */
	bool bare;          /* an empty dataset without attributes is an empty directory: writers
			     * like xarray reject one with documents */
};

/* zarr_source_ops - Zarr v2, NCZarr (all versions) and Zarr v3 stores as a source: a directory, a
 * zip archive or a remote store. docs/dev/reading/zarr-source.md. */
extern const struct source_ops zarr_source_ops;

/* zarr_store_open - open any store as a source; the store is borrowed for the source's life. name:
 * for messages. A store without a document is an empty dataset. source_check() and source_poll()
 * of it return 0. */
int zarr_store_open(struct store *store, const char *name, const struct source_options *opts,
		    struct source **ret, struct err *e) NZ_MUST_USE;

/* zarr_key_kind - meaning of a key of the store to its source. */
enum zarr_key_kind {
	ZARR_KEY_OTHER, /* none: a temporary file, a chunk outside the grid */
	ZARR_KEY_DOC,   /* a metadata document of a group or array, or consolidated metadata */
	ZARR_KEY_CHUNK, /* chunks */
};
/* zarr_source_key - classify a key. s: from zarr_source_ops or zarr_store_open(). For a CHUNK key,
 * emit is called with array and linear index of each chunk in the object: one, or those of a
 * shard. emit may be NULL, and returns false to stop. */
enum zarr_key_kind zarr_source_key(struct source *s, const char *key,
				   bool (*emit)(void *arg, uint32_t array, uint64_t linear),
				   void *arg);
/* zarr_source_layout - the file layout of an array of such a source; ret->path is not set. */
void zarr_source_layout(struct source *s, uint32_t array, struct plan_layout *ret);
/* zarr_doc_key - whether the last component of a key is the name of a metadata document. */
bool zarr_doc_key(const char *key);

/* zarr_sink_options - options for new objects of a store. */
struct zarr_sink_options {
	int dir_fd;               /* the state directory, on the store's filesystem; borrowed until
				   * close */
	const struct sink_names *names; /* borrowed until close; NULL: names are those of the
					 * store */
	uint32_t format;          /* 2 or 3, for an empty store; else the store's own is used */
	enum zarr_mode mode;      /* the same */
	bool nested, v2_keys;     /* the same */
	int consolidated;         /* consolidated metadata: 1 always, 0 never, -1 where it exists,
				   * and in new stores */
	bool strict_json;
	struct store *store;      /* the remote store to write, or NULL: the directory at path.
				   * Borrowed until close. path is its name for messages then */
};

/* zarr_sink_open - open a Zarr store in directory `path` for writing. real: the same store opened
 * as a source; borrowed until close. A commit writes new objects to the state directory, then a
 * manifest of the objects to replace and to remove, then carries it out: after a crash
 * zarr_sink_recover() completes it or rolls it back. If other programs changed objects of a remote
 * store since real was opened, it is not written: -ESTALE. Returns 0 with *ret new; -EROFS an
 * archive; -ESTALE it is another store than real. */
int zarr_sink_open(const char *path, struct source *real, const struct zarr_sink_options *opts,
		   struct sink **ret, struct err *e) NZ_MUST_USE;
/* zarr_sink_pending - whether a commit was started and not completed: 1, 0 or an error. */
int zarr_sink_pending(int dir_fd, struct err *e) NZ_MUST_USE;
/* zarr_sink_recover - complete it or roll it back; may be interrupted and called again. store: the
 * remote store, or NULL: the directory at path. */
int zarr_sink_recover(const char *path, struct store *store, int dir_fd,
		      struct err *e) NZ_MUST_USE;

/* zarr_create - create an empty store: a directory with the root's document; or, with opts->store,
 * at an address without objects. -EEXIST. */
int zarr_create(const char *path, const struct zarr_sink_options *opts, struct err *e) NZ_MUST_USE;

/* zarr_view_open - present a source as a Zarr v2 or v3 store. The source is borrowed and outlives
 * the view. Opening computes the layout only: documents are made on demand. Returns 0 with *ret
 * new (view->ops->close). */
int zarr_view_open(struct source *s, const struct zarr_view_options *opts, struct view **ret,
		   struct err *e) NZ_MUST_USE;

/* ---- references to chunks (kerchunk's) ---- */

/* refs_options - options for the references of one dataset. */
struct refs_options {
	const char *address;   /* address of the source for readers of the references */
	const char *folder;    /* of a source of many files: the local directory that readers find
				* at `address`; NULL: files keep their own paths */
	bool inlined;          /* store chunks inline that cannot be passed unchanged; else an
				* array with such chunks is an error that names it */
	uint64_t max_inline;   /* largest inline chunk, in bytes */
	/* of a source of many files: their number, threads that open them ahead, and how many may
	 * be opened ahead; 0: none */
	uint32_t files, threads, window;
	/* progress - called now and then by the thread that writes: `done` of `all` chunks of the
	 * grids were looked at. NULL: not. */
	void (*progress)(void *arg, uint64_t done, uint64_t all);
	void *progress_arg;
};

/* refs_set - references to the chunks of one dataset, or of several as one hierarchy with a group
 * for each of them: kerchunk's JSON, version 1, the same as Parquet files, or a table.
 *
 * Several threads add datasets at the same time. The output has them in the order of their numbers,
 * so that it does not depend on the threads. A thread holds at most the metadata of its dataset (of
 * JSON, 256 KiB and an inline chunk) until the datasets before it are written. */
struct refs_set;

/* refs_set_json - begin a JSON document on fd, which is borrowed. */
int refs_set_json(int fd, struct refs_set **ret, struct err *e) NZ_MUST_USE;
/* refs_set_parquet - begin a directory of Parquet files, which must not exist. records: references
 * per file; 0: 100,000. */
int refs_set_parquet(const char *dir, uint64_t records, struct refs_set **ret,
		     struct err *e) NZ_MUST_USE;
/* refs_set_table - begin a table of chunks on fd, which is borrowed: one Parquet file with a row
 * for each chunk, of which docs/how-to/dask-and-spark.md describes the columns. */
int refs_set_table(int fd, struct refs_set **ret, struct err *e) NZ_MUST_USE;
/* refs_set_add - add a dataset.
 * number  its position: each number from 0 on is added or passed exactly once, by threads that take
 *         them in ascending order
 * group   path of its group, "a/b.nc"; "": the root, of a set with one dataset
 * v       view of s as a Zarr v2 store, with filter=keep
 * Returns 0, or a negative errno. Then the set has nothing of the dataset and can go on with
 * others, unless refs_set_broken. */
int refs_set_add(struct refs_set *set, uint64_t number, const char *group, struct source *s,
		 struct view *v, const struct refs_options *opts, struct err *e) NZ_MUST_USE;
/* refs_set_pass - go on without the dataset of a number. */
void refs_set_pass(struct refs_set *set, uint64_t number);
/* refs_set_broken - the error after which the output cannot be completed; 0: there is none. */
int refs_set_broken(struct refs_set *set, struct err *e);
/* refs_set_bytes - bytes of the document so far. */
uint64_t refs_set_bytes(struct refs_set *set);
/* refs_set_end - complete the output. All numbers were added or passed. Parquet files are on stable
 * storage then. */
int refs_set_end(struct refs_set *set, struct err *e) NZ_MUST_USE;
/* refs_set_free - also after an error; NULL is allowed. */
void refs_set_free(struct refs_set *set);

/* remote_opener - opens remote files that reference files name; set once by main before sources
 * are opened. */
struct remote_opener {
	void *arg;
	/* blob - open an address in a reference file: http, https, s3, gs3. from: the address of
	 * the reference file. It may name private addresses only if it has a private address
	 * itself, or if the user allows it. NULL: a local reference file. *ret new (blob_close).
	 * Any thread. */
	int (*blob)(void *arg, const char *from, const char *address, struct blob **ret,
		    struct err *e);
};
void refs_set_remote_opener(const struct remote_opener *reach);

/* refs_source_ops - reference files as sources: kerchunk's JSON, versions 0 and 1, and its
 * directories of Parquet files, opened as a Zarr source. docs/dev/commands.md. */
extern const struct source_ops refs_source_ops;

#endif
