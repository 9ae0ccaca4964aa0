/* SPDX-License-Identifier: BSD-3-Clause */
/* source.h - the source contract: the model of a dataset on disk, and where each chunk's bytes are.
 * Callers use the wrappers below, never the ops themselves.
 *
 * A source is one file or a directory, named by its path, and does not depend on the view it
 * serves. All results are plain data, so that a source can live in another process. After
 * source_open, all functions may be called from any thread, concurrently. */
#ifndef TRANSLATE_CONTRACT_SOURCE_H
#define TRANSLATE_CONTRACT_SOURCE_H

#include "translate/contract/blob.h"
#include "translate/model/dataset.h"
#include "translate/contract/store.h"

/* source_at - where a dataset is. Local: a file or directory that is open as fd. Remote: fd is -1,
 * and store is the store at the address, or, for one object (and for an archive), file is its
 * bytes. */
struct source_at {
	const char *path;     /* as messages name it: a path, or an address without secrets */
	int fd;
	struct stat st;       /* local: fstat. Remote: st_mode and st_size at least: a Zarr store is
			       * S_IFDIR, one object S_IFREG */
	struct store *store;  /* remote trees; else NULL */
	struct blob *file;    /* files: of fd, or remote; NULL for directories and trees */
};

enum chunk_where {
	CHUNK_ABSENT,  /* proven absence: never written; reads as the fill value */
	CHUNK_RANGE,   /* stored bytes: blob, off, len */
	CHUNK_SYNTH,   /* no stored form: source_read_chunk or source_read_vlen */
};

/* chunk_ref - where a chunk is, as sources tell views. */
struct chunk_ref {
	enum chunk_where where;
	uint32_t blob;         /* RANGE: which byte container, for source_fd */
	uint64_t off, len;     /* RANGE: bytes within the blob, checked against its size */
	uint64_t pad;          /* RANGE without filters: bytes missing to a whole chunk, because
	                        * the array ends inside it; they read as zero */
	uint32_t filter_mask;  /* RANGE: bit i set = filter i of the array's chain was skipped;
	                        * CODEC_ALL_SKIPPED = stored unfiltered */
};

/* source_model - the model of an open source in memory that cannot be changed any more: another
 * process of the same program maps it instead of reading the file's metadata again. */
struct source_model {
	int fd;            /* of the memory; the source's */
	bool plugins;      /* the file needs filters of plugins */
	uint64_t at, size; /* address where it has to be mapped; bytes, 0: there is no model */
};

struct worker_pool; /* base/process/worker.h */

struct source_options {
	uint64_t cut_bytes;          /* aim for chunks of this size where a file has none */
	uint64_t max_chunk_bytes;    /* a larger decoded chunk is an error */
	uint64_t max_index_bytes;    /* memory for the chunk index of one array */
	uint64_t max_meta_bytes;     /* memory for the dataset model */
	uint64_t read_timeout_ms;    /* a library's read that takes longer fails; 0: a minute */
	uint64_t open_timeout_ms;    /* opening takes no longer in a library; 0: no limit */
	const char *external_root; /* links of a file may lead to files below it; NULL: see the
	                            * next */
	bool links_beside;           /* without external_root they may lead to files below the
	                              * directory that the file is in; else to none */
	char *const *unlimited;      /* n_unlimited names: dimensions of a Zarr store to treat as
				      * unlimited; only NCZarr stores that itself. Borrowed until
				      * the source is open */
	size_t n_unlimited;
	bool whole_chunks;           /* for callers of source_locate: chunks of a Zarr store that
				      * are longer than their array keep that length, which no
				      * virtual file has; records of classic files are not
				      * gathered */
	bool keep_going;             /* leave out arrays that no view can present, with a note,
				      * instead of failing */
	struct worker_pool
		*processes; /* a library's process of this pool may open this file and, before
			     * and after it, other files of the same directory; borrowed for the
			     * call. NULL: each file has a process of its own */
	const struct source_model
		*model; /* a model of the same file, used if the file is still that one; borrowed
			 * for the call; NULL: none */
};

struct source;

struct source_ops {
	const char *name;  /* "hdf5" */

	/* bid - 0: not this format; else a score, the highest wins; -errno: it could not be
	 * determined, e says why, and no other format may be chosen. If the result is 0, e means
	 * nothing. A local file or directory is opened for reading. Reads a few kilobytes at most;
	 * of a remote store a few metadata files. */
	int (*bid)(const struct source_at *at, struct err *e);

	/* open - build the model. fd, store and file (unless it is fd's, which is only for the
	 * time of the call) are taken on success only; as for bid.
	 * Returns 0 with *ret new; -EBADMSG not readable as this format; -EOPNOTSUPP; -ERANGE. */
	int (*open)(const struct source_at *at, const struct source_options *opts,
		    struct source **ret, struct err *e);
	void (*close)(struct source *s);

	/* The following get array < n_arrays and linear < n_chunks; the wrappers check. */
	int (*locate)(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		      struct err *e);
	int (*next)(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
		    struct err *e);
	int (*read_chunk)(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
			  size_t len, struct err *e);
	int (*read_vlen)(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
			 struct err *e);
	int (*read_stored)(struct source *s, uint32_t array, uint64_t linear,
			   const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
			   struct err *e);
	int (*place)(struct source *s, uint32_t array, uint64_t linear,
		     const struct chunk_ref *ref, struct store_place *ret, struct err *e);
	int (*fd)(struct source *s, uint32_t blob);
	void (*want)(struct source *s, uint32_t array, const uint64_t *linear, size_t n);
	void (*forget)(struct source *s, uint32_t array, uint64_t linear);
	int (*check)(struct source *s, struct err *e);
	int (*poll)(struct source *s, struct err *e);
	void (*hold)(struct source *s, bool on);
	void (*model)(const struct source *s, struct source_model *ret);
};

/* source - embedded first in every implementation. */
struct source {
	const struct source_ops *ops;
	struct dataset ds;   /* frozen when open returns */
	bool remote; /* bytes come over a slow connection: sequential readers call source_want */
	bool cancels;        /* a read may take long, and returns -EINTR when it is cancelled
			      * (base/os/cancel.h), also if the source is not remote */
	char *shown;         /* source_at.path of the opened dataset; owned; NULL: not opened by
			      * source_open_at */
	uint64_t model_bytes; /* bytes of ds that were counted in the metrics */
	bool unlisted;       /* the set of existing chunks is not known, and finding out costs as
			      * much as reading: source_next returns all chunks but those known to
			      * be absent, source_locate queries the service. Views that would need
			      * the sizes of all chunks show them decoded instead */
};

/* source_bidder - the format that bids most for path, into *ret; NULL: none does, or it cannot be
 * opened. Opens nothing but the path itself, so that it can search directories for datasets.
 * Borrowed from formats. Returns 0; -errno: it could not be determined. */
int source_bidder(const struct source_ops *const *formats, size_t n, const char *path,
		  const struct source_ops **ret) NZ_MUST_USE;

/* source_open - open path with the format that bids most.
 * formats  n rows, borrowed for the source's life
 * Returns 0 with *ret new (source_close it). The error names the path, the problem and the remedy:
 * -ENOENT, -EACCES, -EISDIR, -EBADMSG (no format knows it, or it is truncated), ... */
int source_open(const struct source_ops *const *formats, size_t n, const char *path,
		const struct source_options *opts, struct source **ret, struct err *e) NZ_MUST_USE;
/* source_close - takes NULL. No other call may be running. */
void source_close(struct source *s);

/* source_open_at - the same for an open file or store. The members of `at` are taken on success
 * only. Errors name at->path. */
int source_open_at(const struct source_ops *const *formats, size_t n, const struct source_at *at,
		   const struct source_options *opts, struct source **ret,
		   struct err *e) NZ_MUST_USE;

/* source_opened - register a source that was created from other sources in the metrics of open
 * sources, under the name path. */
void source_opened(struct source *s, const char *path);

/* source_forget - the stored bytes of a chunk turned out to be damaged. Drops cached bytes of it.
 * Returns whether the damage may have happened in transit, so that one more read is useful. Returns
 * false if s->remote is false. */
bool source_forget(struct source *s, uint32_t array, uint64_t linear);

/* source_want - a hint that these chunks will be read soon, in this order. Returns at once. Does
 * nothing if s->remote is false. */
void source_want(struct source *s, uint32_t array, const uint64_t *linear, size_t n);

/* source_locate - locate the bytes of one chunk, without reading them.
 * linear  chunk index in C order over the array's grid
 * Returns 0 with *ret written; -EBADMSG the index is corrupt; -ERANGE it is larger than allowed;
 * -ESTALE the file changed; -EIO it could not be read; -EINVAL linear outside the grid. The first
 * call for an array may load its index; later calls take no lock. */
int source_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		  struct err *e) NZ_MUST_USE;

/* source_next - the first chunk at or after `from` that is not ABSENT.
 * Returns 0 with *ret written; -ENOENT when there is none; errors as source_locate. */
int source_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret,
		struct err *e) NZ_MUST_USE;

/* source_read_chunk - the presented, decoded bytes of one chunk: exactly a->chunk_bytes; elements
 * outside the shape or never written are the fill value. May take the library's lock.
 * Returns 0; -EBADMSG damaged; -EOPNOTSUPP no decoder; -EIO; -ESTALE. */
int source_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
		      struct err *e) NZ_MUST_USE;

/* source_read_vlen - append, for each element of a whole chunk in C order, its length in bytes
 * as a little-endian 32-bit number and its bytes (text: valid UTF-8; DT_VLEN: base elements in
 * presented byte order). This is the body of numcodecs' vlen-utf8, vlen-bytes and vlen-array. */
int source_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		     struct err *e) NZ_MUST_USE;

/* source_place - where other programs find the bytes that source_locate gave. The caller has set
 * ret->key. Returns 0; -EOPNOTSUPP if the bytes are not stored as such: inflated from an archive,
 * computed, or in another file. */
int source_place(struct source *s, uint32_t array, uint64_t linear, const struct chunk_ref *ref,
		 struct store_place *ret, struct err *e) NZ_MUST_USE;

/* source_fd - descriptor of a blob, for pread. Borrowed until source_close. -1: the source's blobs
 * have no descriptor; read their bytes with source_read_stored. */
int source_fd(struct source *s, uint32_t blob);

/* source_read_stored - bytes [off, off+len) of a chunk's stored bytes; ref is what source_locate
 * gave, where is CHUNK_RANGE and off + len <= ref->len. Works for every source; the only way
 * for those without descriptors. Exactly len bytes or an error.
 * Returns 0; -ESTALE the chunk is not the one that was located; -EIO. */
int source_read_stored(struct source *s, uint32_t array, uint64_t linear,
		       const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		       struct err *e) NZ_MUST_USE;

/* source_check - 0 while the source's bytes are the ones that were opened; -ESTALE when the file
 * was changed in place. Costs one fstat. Call it after reading bytes, before trusting them. */
int source_check(struct source *s, struct err *e) NZ_MUST_USE;

/* source_hold - on: a commit of this mount is changing the source, and leaves all referenced bytes
 * in place (it appends, or makes new objects): source_check and source_poll return 0 meanwhile.
 * Off: they compare again with the state at the time of opening. */
void source_hold(struct source *s, bool on);

/* source_model_of - the memory that holds a source's model; *ret has size 0 if the model is
 * elsewhere. */
void source_model_of(const struct source *s, struct source_model *ret);

/* source_poll - a thorough source_check: of a Zarr store it checks metadata files and directories.
 * The watching thread calls it about once a second. -ESTALE: open the source again. */
int source_poll(struct source *s, struct err *e) NZ_MUST_USE;

#endif
