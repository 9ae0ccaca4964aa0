/* SPDX-License-Identifier: BSD-3-Clause */
/* sink_int.h - the Zarr sink; private to nczarr.
 *
 * A change is collected outside the store: new objects as files of a transaction, documents as
 * JSON in memory. These are the store's documents with changed members or, for new nodes, those of
 * our own view. journal.c then commits all of it. docs/dev/writing/zarr-sink.md. */
#ifndef NCZARR_SINK_SINK_INT_H
#define NCZARR_SINK_SINK_INT_H

#include "nczarr/view/metadata_values.h"
#include "nczarr/json/reader.h"
#include "nczarr/source/chunks.h"

/* ---- the transaction (journal.c) ---- */

/* zs_op - a step of a commit, in the order of phases. */
enum zs_op {
	ZS_AWAY = 'A', /* move the directory (or object) `key` into the transaction as n */
	ZS_INTO = 'I', /* move it from there to `key` */
	ZS_PUT = 'P',  /* file n becomes the object `key`: a chunk */
	ZS_DOC = 'D',  /* the same for a document */
	ZS_ROOT = 'R', /* the same for consolidated metadata */
	ZS_DROP = 'X', /* remove the object `key` */
	/* only in the manifest of a remote store, which has no AWAY and INTO */
	ZS_IF_VERSION =
		'V', /* condition of the next step: its document has version n */
	ZS_REMOVE_FIRST = 'Y', /* as DROP, but before any put */
	ZS_END = 'E',
};

/* zs_step - a step of a commit or of its manifest. */
struct zs_step {
	enum zs_op op;
	bool conditional;
	uint64_t n, version; /* version: of the document, if conditional; 0: absent */
	const char *key;     /* in the transaction's arena, or in the manifest */
};

/* zs_expected - the required version of a document. */
struct zs_expected {
	const char *key;  /* in the transaction's arena */
	uint64_t version; /* 0: absent */
};

#define ZS_KEPT_MAX 1024

struct zs_txn {
	struct store *store; /* borrowed */
	int dir;            /* the state directory, borrowed */
	int txn;            /* the directory of new objects, owned; -1: not started */
	int sub;            /* its current subdirectory, owned; -1 */
	uint64_t n_files, n_aways;
	uint64_t bytes;     /* of the new objects */
	int kept[ZS_KEPT_MAX]; /* descriptors of large objects that the disk began to write */
	size_t n_kept, most_kept;
	struct arena arena; /* keys of steps */
	struct zs_step *steps;
	size_t n_steps, c_steps;
	struct buf manifest; /* during the commit: n_ops steps */
	uint64_t n_ops;
	struct zs_expected *seen;
	size_t n_seen, c_seen;
	json_t *known; /* key -> number in seen; NULL: not made yet */
};

/* zs_txn_open - start a transaction. -EBUSY: a commit is incomplete; -EXDEV the state directory is
 * on another filesystem. */
int zs_txn_open(struct zs_txn *t, struct store *store, int dir, struct err *e) NZ_MUST_USE;
/* zs_txn_close - discard uncommitted data. Takes a zeroed transaction with descriptors -1. */
void zs_txn_close(struct zs_txn *t);
/* zs_txn_new - make an empty file for a new object, for the caller to write: *ret_fd is new. */
int zs_txn_new(struct zs_txn *t, uint64_t *ret, int *ret_fd, struct err *e) NZ_MUST_USE;
/* zs_txn_wrote - call when a new object has its n bytes: the disk begins to write a large one. */
int zs_txn_wrote(struct zs_txn *t, int fd, uint64_t n, struct err *e) NZ_MUST_USE;
/* zs_txn_step - add a step. key: a valid key of a store. */
int zs_txn_step(struct zs_txn *t, enum zs_op op, uint64_t n, const char *key,
		struct err *e) NZ_MUST_USE;
/* zs_txn_put - add a file and its step. */
int zs_txn_put(struct zs_txn *t, enum zs_op op, const char *key, const uint8_t *p, size_t n,
	       struct err *e) NZ_MUST_USE;
/* zs_txn_commit - make the transaction durable, and carry it out. If it fails while
 * zs_txn_pending() is not 0, the change is committed, and zs_txn_recover() completes it. */
int zs_txn_commit(struct zs_txn *t, int (*gate)(void *arg, struct err *e), void *arg,
		  struct err *e) NZ_MUST_USE;
int zs_txn_pending(int dir, struct err *e) NZ_MUST_USE;
int zs_txn_recover(struct store *store, int dir, struct err *e) NZ_MUST_USE;
/* zs_txn_note - append a record to the manifest. */
void zs_txn_note(struct zs_txn *t, enum zs_op op, uint64_t n, const char *key);
/* zs_txn_path - path of new object n, relative to the state directory. */
void zs_txn_path(char out[64], uint64_t n);

/* ---- the manifest (replay.c) ---- */

#define ZS_LOCAL "nczarrfs commit 1\n" /* of a store with moves */
#define ZS_REMOTE "nczarrfs remote 1\n" /* of the same length */
#define ZS_FIRST (sizeof(ZS_LOCAL) - 1 + 8) /* offset of the first step, after the store's id */
#define ZS_CONDITIONS "conditions" /* file in the state directory: as long as it exists, conditions
				    * are checked */

/* ---- stores without moves (journal_remote.c) ---- */

/* zs_remote_expect - require a version of a document for the commit; 0: absent. The first call for
 * a document counts. No effect for a store with moves. */
int zs_remote_expect(struct zs_txn *t, const char *key, uint64_t version,
		     struct err *e) NZ_MUST_USE;
/* zs_remote_ready - write the steps to the manifest: expand directories to objects, and check the
 * versions of documents. -ESTALE: another program changed one. */
int zs_remote_ready(struct zs_txn *t, struct err *e) NZ_MUST_USE;
/* zs_each - call fn for each of n numbers; after a failure no further call is started.
 * parallel: in several threads; else in order. */
int zs_each(size_t n, bool parallel, int (*fn)(void *arg, size_t i, struct err *e), void *arg,
	    struct err *e) NZ_MUST_USE;

/* zs_write_file - create a file with this content; not synced. */
int zs_write_file(int dir, const char *name, const uint8_t *p, size_t n,
		  struct err *e) NZ_MUST_USE;
/* zs_sync_path - sync a file or directory of the state directory. */
int zs_sync_path(int dir, const char *path, struct err *e) NZ_MUST_USE;

/* ---- the sink ---- */

/* zs_doc - a document that was read or made. */
struct zs_doc {
	char *key;
	json_t *v;      /* an object; NULL: absent */
	bool dirty;     /* differs from the store */
};

/* zs_array - an array of `now`. */
struct zs_array {
	enum { ZS_UNSEEN, ZS_OLD, ZS_NEW } state;
	uint32_t real;             /* OLD: ordinal in real */
	uint32_t was;              /* renamed: ordinal in was, plus one; else 0 */
	const char *key;           /* of its directory after the commit; in the arena */
	const char *was_key;       /* OLD: of its directory in the store */
	const struct zr_meta *meta;
	const uint64_t *stored;    /* lengths of the innermost chunk: meta->rank entries */
	uint64_t *chunk;           /* chunk lengths of put: rank entries of `now`; NULL: not
				    * requested yet */
	uint64_t *grid;            /* rank entries: number of such chunks */
	uint64_t n_chunks;
	bool spread;               /* `now` has one more axis for the bytes of a string */
	bool takes_stored;
	bool may;                  /* its directory is writable */
	bool stated;               /* the document has a fill value for absent chunks */
	uint64_t *bits;            /* otherwise: chunks that were put */
};

/* zs_group - a group of `now`. */
struct zs_group {
	const char *key;           /* in the arena; NULL: not determined yet */
	bool is_new;
};

/* zs_part - a new chunk inside a shard. */
struct zs_part {
	uint32_t array;            /* of `now` */
	uint64_t object, slot;     /* number of the shard, and of the chunk in it */
	uint64_t off, len;         /* in the spool; len UINT64_MAX: absent */
	uint64_t seq;              /* of several parts of one slot the last is used */
};

struct zarr_sink {
	struct sink base;
	struct source *real, *was, *now;
	struct zarr_sink_options opts;
	struct store *own; /* of a directory; NULL: opts.store is written */
	struct zs_txn txn;
	struct arena arena;
	uint32_t format;
	enum zarr_mode mode;
	struct zr_keys keys;       /* of new arrays */
	bool empty;                /* the store has neither arrays nor groups */
	struct zs_doc *docs;
	size_t n_docs, c_docs;
	json_t *index;             /* key -> number of the document */
	struct zs_array *arrays;   /* of now */
	struct zs_group *groups;
	const char **gone;         /* keys of directories that are moved away; in the arena */
	size_t n_gone, c_gone;
	uint32_t *match[2][2]; /* of was and now: their arrays and groups in real; NULL: not made
				* yet */
	json_t *seen;     /* remote: key -> number of zr_source.seen; NULL: not made yet */
	const char **fresh;        /* keys of new nodes; in the arena */
	size_t n_fresh, c_fresh;
	struct dataset shown;      /* `now` in the form of the view: a copy of its tables */
	struct ds_array *shown_arrays;
	struct zr_grid *grids;
	struct plan *plans;
	bool *hidden;              /* one for each array or group, all false */
	struct zr_metadata em;
	struct codec_scratch *scratch;
	struct buf elems, turned, stored;
	int spool;                 /* parts of shards; -1 */
	uint64_t spool_len;
	struct zs_part *parts;
	size_t n_parts, c_parts;
};

static inline struct zarr_sink *zs_of(struct sink *s)
{
	return CONTAINER_OF(s, struct zarr_sink, base);
}

/* zs_path_join - "dir/name" in the arena; NULL with e set. */
const char *zs_path_join(struct zarr_sink *s, const char *dir, const char *name, struct err *e);
/* zs_group_key, zs_array_of - a group or array of `now` in the store. NULL with e set. */
const char *zs_group_key(struct zarr_sink *s, uint32_t group, struct err *e);
int zs_array_of(struct zarr_sink *s, uint32_t array, struct zs_array **ret,
		struct err *e) NZ_MUST_USE;
/* zs_real_key - key of a group of the store; in the arena. NULL with e set. */
const char *zs_real_key(struct zarr_sink *s, uint32_t group, struct err *e);
/* zs_is_gone - whether a key, or a directory above it, is moved away. */
bool zs_is_gone(const struct zarr_sink *s, const char *key);
/* zs_above - add the directories above a key, and the root, to a set: keys of a JSON object. */
int zs_above(json_t *set, const char *key, struct err *e) NZ_MUST_USE;
/* zs_watch - require that a document of a remote store is unchanged since it was read by the
 * source. */
int zs_watch(struct zarr_sink *s, const char *key, struct err *e) NZ_MUST_USE;
/* zs_watch_array - the same for all documents of an array, before its chunks are written. key: of
 * its directory. */
int zs_watch_array(struct zarr_sink *s, const char *key, struct err *e) NZ_MUST_USE;
/* zs_has_root - -EOPNOTSUPP: the store is a single array without a group. */
int zs_has_root(struct zarr_sink *s, struct err *e) NZ_MUST_USE;
/* zs_new_key - key of a new node in a group of `now`; in the arena. NULL with e set. */
const char *zs_new_key(struct zarr_sink *s, uint32_t group, const char *name, struct err *e);
/* zs_check_fresh - final check: the key of a new node must not belong to a remaining one. */
int zs_check_fresh(struct zarr_sink *s, struct err *e) NZ_MUST_USE;
/* zs_say - "'/path'" of an array of now, for messages, in tmp. */
const char *zs_say(const struct dataset *ds, uint32_t array, char tmp[200]);

/* ---- documents (documents.c) ---- */

/* zs_doc_get - get a document by its future key. from: its current key in the store, NULL: it is
 * new. make: an empty object if there is none. */
int zs_doc_get(struct zarr_sink *s, const char *key, const char *from, bool make,
	       struct zs_doc **ret, struct err *e) NZ_MUST_USE;
/* zs_doc_in - the same for document `name` of a directory. from: its current key; NULL. */
int zs_doc_in(struct zarr_sink *s, const char *dir, const char *from, const char *name,
	      bool make, struct zs_doc **ret, struct err *e) NZ_MUST_USE;
/* zs_doc_set - set a new document; v is taken. */
int zs_doc_set(struct zarr_sink *s, const char *key, json_t *v, struct err *e) NZ_MUST_USE;
/* zs_docs_drop - drop the documents at or below a directory. */
void zs_docs_drop(struct zarr_sink *s, const char *key);
/* zs_doc_name - the name of that document. */
const char *zs_doc_name(const struct zarr_sink *s, bool array, bool attrs);
/* zs_node_doc - the document that describes a group or array: .zgroup, .zarray, zarr.json; attrs:
 * the one with its attributes. */
int zs_node_doc(struct zarr_sink *s, const char *key, const char *from, bool array, bool attrs,
		struct zs_doc **ret, struct err *e) NZ_MUST_USE;
/* zs_attrs - the object with the attributes of a group or array; marks the document dirty. */
int zs_attrs(struct zarr_sink *s, const char *key, const char *from, bool array, json_t **ret,
	     struct err *e) NZ_MUST_USE;
/* zs_made - a value that a writer makes: zs_made_begin(), the functions of the writer, and
 * zs_made_end(), which parses and releases it. */
struct zs_made {
	struct jw j;
	struct buf b;
};
struct jw *zs_made_begin(struct zs_made *m);
int zs_made_end(struct zs_made *m, json_t **ret, struct err *e) NZ_MUST_USE;
/* zs_json_u64, zs_json_text - values in the form of json_read(). NULL: out of memory. */
json_t *zs_json_u64(uint64_t v);
json_t *zs_json_text(const char *s, size_t n);
/* zs_docs_write - write dirty documents to the transaction, with consolidated metadata. */
int zs_docs_write(struct zarr_sink *s, struct err *e) NZ_MUST_USE;

/* zs_consolidate - update consolidated metadata (consolidated.c). */
int zs_consolidate(struct zarr_sink *s, struct err *e) NZ_MUST_USE;

/* ---- new nodes, attributes (new_nodes.c, attributes.c) ---- */

int zs_add_group(struct sink *s, uint32_t group, struct err *e);
int zs_add_array(struct sink *s, uint32_t array, const struct sink_new *how, struct err *e);
int zs_set_attr(struct sink *s, uint32_t group, uint32_t array, const struct ds_attr *a,
		struct err *e);
int zs_remove_attr(struct sink *s, uint32_t group, uint32_t array, const char *name,
		   struct err *e);
int zs_dims(struct sink *s, struct err *e);

/* zs_nc_list - in an NCZarr store: add an array or group to the list of its group, or remove it
 * (nczarr_lists.c). key: of the group. */
int zs_nc_list(struct zarr_sink *s, const char *key, bool array, const char *name, bool add,
	       struct err *e) NZ_MUST_USE;
/* zs_nc_type - set the type of an attribute; at NULL: remove it. attrs: the open object. */
int zs_nc_type(struct zarr_sink *s, json_t *attrs, const struct ds_attr *at, const char *name,
	       struct err *e) NZ_MUST_USE;
/* zs_nc_group_dims, zs_nc_dims - set the dimensions of a group, and of an array. */
int zs_nc_group_dims(struct zarr_sink *s, uint32_t was, uint32_t now,
		     struct err *e) NZ_MUST_USE;
int zs_nc_array_dims(struct zarr_sink *s, uint32_t array, const struct zs_array *za,
		     struct err *e) NZ_MUST_USE;
/* zs_group_hints - in a plain Zarr store: update the dimensions and the order of a group
 * (source/nczarr_keys.c). was: ordinal of the group in was; DS_NONE: it is new. */
int zs_group_hints(struct zarr_sink *s, uint32_t was, uint32_t now, struct err *e) NZ_MUST_USE;

/* ---- chunks (chunks.c, encode.c, shards.c) ---- */

int zs_target(struct sink *s, uint32_t array, struct sink_array *ret, struct err *e);
int zs_put(struct sink *s, uint32_t array, uint64_t linear, const struct sink_chunk *c,
	   struct err *e);
int zs_drop(struct sink *s, uint32_t array, uint64_t linear, struct err *e);
int zs_resize(struct sink *s, uint32_t array, struct err *e);
/* zs_resolve_layout - set za->chunk and the members derived from it. */
int zs_resolve_layout(struct zarr_sink *s, uint32_t array, struct zs_array *za,
		      struct err *e) NZ_MUST_USE;
/* zs_fill_absent - write the absent chunks of arrays whose document has no fill value. */
int zs_fill_absent(struct zarr_sink *s, struct err *e) NZ_MUST_USE;
/* zs_track - start recording which chunks are put: finally all must exist. */
int zs_track(struct zs_array *za, struct err *e) NZ_MUST_USE;

/* zs_mark_stored - record the chunks that the store has. */
int zs_mark_stored(struct zarr_sink *s, struct zs_array *za, struct err *e) NZ_MUST_USE;

/* zs_encode - encode elements of `now` as a stored chunk, appended to out. */
int zs_encode(struct zarr_sink *s, uint32_t array, const struct zs_array *za, const uint8_t *p,
	      size_t len, struct buf *out, struct err *e) NZ_MUST_USE;

int zs_shard_put(struct zarr_sink *s, uint32_t array, struct zs_array *za,
		 const uint64_t *coords, const uint8_t *p, size_t len, bool drop,
		 struct err *e) NZ_MUST_USE;
int zs_shards_write(struct zarr_sink *s, struct err *e) NZ_MUST_USE;

#endif
