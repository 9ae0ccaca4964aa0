/* SPDX-License-Identifier: BSD-3-Clause */
/* sink_int.h - what the files of the Zarr sink share; private to nczarr.
 *
 * A change is gathered beside the store: new objects as files of a transaction, documents as JSON
 * in memory, which is what the store has with some members changed, or, for what is new, what our
 * own view would show. journal.c then puts everything in place. docs/dev/writing/zarr-sink.md. */
#ifndef NCZARR_SINK_SINK_INT_H
#define NCZARR_SINK_SINK_INT_H

#include "nczarr/view/metadata_values.h"
#include "nczarr/json/reader.h"
#include "nczarr/source/chunks.h"

/* ---- the transaction (journal.c) ---- */

/* zs_op - a step of a commit, in the order of the phases in which they are done. */
enum zs_op {
	ZS_AWAY = 'A', /* the directory (or object) `key` is moved into the transaction as n */
	ZS_INTO = 'I', /* what was moved there as n becomes `key` */
	ZS_PUT = 'P',  /* file n becomes the object `key`: a chunk */
	ZS_DOC = 'D',  /* the same, a document */
	ZS_ROOT = 'R', /* the same, a document of all */
	ZS_DROP = 'X', /* the object `key` is removed */
	/* in the manifest of a remote store only, which has no AWAY and INTO */
	ZS_IF_VERSION =
		'V', /* the document `key`, which comes next, is put where it is version n */
	ZS_REMOVE_FIRST = 'Y', /* as DROP, but before anything is put */
	ZS_END = 'E',
};

struct zs_remote;

struct zs_txn {
	int dir;            /* the state directory, borrowed */
	int root;           /* the store, owned; -1 */
	int txn;            /* the directory of new objects, owned; -1: not begun */
	int sub;            /* the folder of it that is being filled, owned; -1 */
	int manifest;       /* being written, owned; -1 */
	uint64_t n_files, n_aways, n_ops;
	struct buf out;     /* of the manifest, not written yet */
	uint64_t out_at;
	uint32_t sum;
	struct zs_remote *remote; /* of a remote store; NULL: root is the store */
};

/* zs_txn_open - root is taken on success only; or, root -1, store is what is written to, borrowed.
 * -EBUSY: a commit was begun and not ended; -EXDEV the state directory is on another filesystem. */
int zs_txn_open(struct zs_txn *t, int root, struct store *store, int dir,
		struct err *e) NZ_MUST_USE;
/* zs_txn_close - what was not committed is forgotten. Takes what is zeroed with descriptors -1. */
void zs_txn_close(struct zs_txn *t);
/* zs_txn_new - an empty one, to be written by the caller: *ret_fd is new. */
int zs_txn_new(struct zs_txn *t, uint64_t *ret, int *ret_fd, struct err *e) NZ_MUST_USE;
/* zs_check_writable - whether something can be put into a directory of the store, as far as that
 * can be known before; one that is not there can be made. */
int zs_check_writable(const struct zs_txn *t, const char *dir, struct err *e) NZ_MUST_USE;
/* zs_txn_step - note one step. key: valid as a store's. */
int zs_txn_step(struct zs_txn *t, enum zs_op op, uint64_t n, const char *key,
		struct err *e) NZ_MUST_USE;
/* zs_txn_put - both. */
int zs_txn_put(struct zs_txn *t, enum zs_op op, const char *key, const uint8_t *p, size_t n,
	       struct err *e) NZ_MUST_USE;
/* zs_txn_commit - everything becomes durable, then the store. After an error with
 * zs_txn_pending != 0 the commit happened, and has to be ended by zs_txn_recover. */
int zs_txn_commit(struct zs_txn *t, int (*gate)(void *arg, struct err *e), void *arg,
		  struct err *e) NZ_MUST_USE;
int zs_txn_pending(int dir, struct err *e) NZ_MUST_USE;
int zs_txn_recover(int root, int dir, struct err *e) NZ_MUST_USE;
/* zs_txn_note - one record of the manifest, as it is. */
int zs_txn_note(struct zs_txn *t, enum zs_op op, uint64_t n, const char *key,
		struct err *e) NZ_MUST_USE;
/* zs_txn_path - of new object n, from the state directory. */
void zs_txn_path(char out[64], uint64_t n);
/* zs_txn_forget - all has been done: the manifest goes, then what it was about. */
int zs_txn_forget(int dir, struct err *e) NZ_MUST_USE;

/* ---- manifests, read (replay.c) ---- */

#define ZS_LOCAL "nczarrfs commit 1\n"
#define ZS_REMOTE "nczarrfs remote 1\n" /* as long */

struct zs_step {
	enum zs_op op;
	uint64_t n;
	char key[STORE_KEY_MAX + 1];
};

struct zs_manifest {
	uint8_t *p;      /* owned */
	size_t len;      /* up to its sum */
	uint64_t mark;   /* LOCAL: the store's inode */
	uint64_t n;      /* steps */
};

/* zs_manifest_load - all of it is checked. *ret: free p. zs_manifest_next - the step at *at, which
 * begins with ZS_FIRST and moves on; as long as it is less than len. */
#define ZS_FIRST (sizeof(ZS_LOCAL) - 1 + 8)
int zs_manifest_load(int dir, const char *magic, struct zs_manifest *ret,
		     struct err *e) NZ_MUST_USE;
int zs_manifest_next(const struct zs_manifest *m, size_t *at, struct zs_step *ret,
		     struct err *e) NZ_MUST_USE;

/* ---- remote stores (journal_remote.c, replay_remote.c) ---- */

int zs_remote_new(struct store *store, struct zs_remote **ret, struct err *e) NZ_MUST_USE;
void zs_remote_free(struct zs_remote *f);
/* zs_remote_step - as zs_txn_step. */
int zs_remote_step(struct zs_txn *t, enum zs_op op, uint64_t n, const char *key,
		   struct err *e) NZ_MUST_USE;
/* zs_remote_expect - the commit holds only while the store has this version of a document; 0: none.
 * The first word counts. Does nothing where the store is a directory. */
int zs_remote_expect(struct zs_txn *t, const char *key, uint64_t version,
		     struct err *e) NZ_MUST_USE;
/* zs_remote_ready - before the manifest is ended: what is in directories that go is known, and the
 * documents are those that are expected. -ESTALE: another program changed one. */
int zs_remote_ready(struct zs_txn *t, struct err *e) NZ_MUST_USE;
/* zs_remote_recover - as zs_txn_recover. */
int zs_remote_recover(struct store *store, int dir, struct err *e) NZ_MUST_USE;
struct store *zs_remote_store(struct zs_remote *f);
/* zs_remote_get - a document: its bytes, and the version that they are. -ENOENT. */
int zs_remote_get(struct store *store, const char *key, struct buf *out, uint64_t *ret_version,
		  struct err *e) NZ_MUST_USE;
/* zs_remote_each - fn for each of n numbers, several at a time, in threads of their own; none is
 * begun after the first that fails. */
int zs_remote_each(size_t n, int (*fn)(void *arg, size_t i, struct err *e), void *arg,
		   struct err *e) NZ_MUST_USE;
#define ZS_CONDITIONS "conditions" /* in the state directory: as long as it is there, they hold */

/* zs_write_file - a new file with this content; not synced. */
int zs_write_file(int dir, const char *name, const uint8_t *p, size_t n,
		  struct err *e) NZ_MUST_USE;
/* zs_remove_tree - a directory and all in it; what is not there is fine. */
int zs_remove_tree(int dir, const char *name, struct err *e) NZ_MUST_USE;

/* ---- the sink ---- */

/* zs_doc - a document that was looked at or made. */
struct zs_doc {
	char *key;
	json_t *v;      /* an object; NULL: there is none */
	bool dirty;     /* differs from what the store has */
};

/* zs_array - an array of `now`. */
struct zs_array {
	enum { ZS_UNSEEN, ZS_OLD, ZS_NEW } state;
	uint32_t real;             /* OLD: ordinal in real */
	uint32_t was;              /* renamed: ordinal in was, plus one; else 0 */
	const char *key;           /* of its directory when all is done; in the arena */
	const char *was_key;       /* OLD: of its directory in the store */
	const struct zr_meta *meta;
	const uint64_t *stored;    /* lengths of the innermost chunk: meta->rank entries */
	uint64_t *chunk;           /* those that put takes: rank entries of `now`; NULL: not
	                            * asked yet */
	uint64_t *grid;            /* rank entries: chunks of that kind */
	uint64_t n_chunks;
	bool spread;               /* `now` has the bytes of a text as one more axis */
	bool takes_stored;
	bool may;                  /* its directory can be written to */
	bool stated;               /* the document says what absent chunks are */
	uint64_t *bits;            /* where it does not: chunks that were put */
};

/* zs_group - a group of `now`. */
struct zs_group {
	const char *key;           /* in the arena; NULL: not asked yet */
	bool is_new;
};

/* zs_part - a chunk that is a part of a shard, as it is to be. */
struct zs_part {
	uint32_t array;            /* of `now` */
	uint64_t object, slot;     /* which shard, which chunk of it */
	uint64_t off, len;         /* in the spool; len UINT64_MAX: none */
	uint64_t seq;              /* the last one counts */
};

/* zs_gone - a directory that is moved away. */
struct zs_gone {
	const char *key;           /* in the arena */
	uint64_t n;
};

struct zarr_sink {
	struct sink base;
	struct source *real, *was, *now;
	struct zarr_sink_options opts;
	struct zs_txn txn;
	struct arena arena;
	uint32_t format;
	enum zarr_mode mode;
	struct zr_keys keys;       /* of new arrays */
	bool empty;                /* the store has no arrays and groups */
	struct zs_doc *docs;
	size_t n_docs, c_docs;
	json_t *index;             /* key -> number of the document */
	struct zs_array *arrays;   /* of now */
	struct zs_group *groups;
	struct zs_gone *gone;
	size_t n_gone, c_gone;
	json_t *by_path[2]; /* of real: arrays, groups; path -> ordinal; NULL: not asked yet */
	json_t *seen;     /* remote: key -> number of zr_source.seen; NULL: not made yet */
	const char **fresh;        /* keys of what is new; in the arena */
	size_t n_fresh, c_fresh;
	struct dataset shown;      /* `now` as new things are shown: a copy of its tables */
	struct ds_array *shown_arrays;
	struct zr_grid *grids;
	struct plan *plans;
	bool *hidden;              /* as many as arrays or groups, all false */
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
/* zs_group_key, zs_array_of - what a group or array of `now` is in the store. NULL with e set. */
const char *zs_group_key(struct zarr_sink *s, uint32_t group, struct err *e);
struct zs_array *zs_array_of(struct zarr_sink *s, uint32_t array, struct err *e);
/* zs_watch - a document of a remote store has to be what it was when the store was opened, if it
 * was looked at then. */
int zs_watch(struct zarr_sink *s, const char *key, struct err *e) NZ_MUST_USE;
/* zs_watch_array - of a remote store: the array whose chunks are going to be written has to be as
 * it was when the store was opened. key: of its directory. */
int zs_watch_array(struct zarr_sink *s, const char *key, struct err *e) NZ_MUST_USE;
/* zs_has_root - -EOPNOTSUPP: the store is one array, which has no group around it. */
int zs_has_root(struct zarr_sink *s, struct err *e) NZ_MUST_USE;
/* zs_new_key - the key of what is new in a group of `now`; in the arena. NULL with e set. */
const char *zs_new_key(struct zarr_sink *s, uint32_t group, const char *name, struct err *e);
/* zs_check_fresh - when all is known: nothing that stays may be where something new comes. */
int zs_check_fresh(struct zarr_sink *s, struct err *e) NZ_MUST_USE;
/* zs_by_path - the arrays or groups of a dataset by their paths: numbers; new. NULL: memory. */
json_t *zs_by_path(const struct dataset *ds, bool arrays);
/* zs_say - "'/path'" of an array of now, for messages, into tmp. */
const char *zs_say(const struct dataset *ds, uint32_t array, char tmp[200]);

/* ---- documents (documents.c) ---- */

/* zs_doc_get - a document under the key that it will have. from: the key that it has in the store,
 * NULL: it is new. make: an empty object where there is none. */
int zs_doc_get(struct zarr_sink *s, const char *key, const char *from, bool make,
	       struct zs_doc **ret, struct err *e) NZ_MUST_USE;
/* zs_doc_set - a new document; v is taken. */
int zs_doc_set(struct zarr_sink *s, const char *key, json_t *v, struct err *e) NZ_MUST_USE;
/* zs_docs_drop - forget those at or below a directory. */
void zs_docs_drop(struct zarr_sink *s, const char *key);
/* zs_node_doc - the document that describes a group or array ("" ends are joined): .zgroup,
 * .zarray, zarr.json; attrs: the one with its attributes. */
int zs_node_doc(struct zarr_sink *s, const char *key, const char *from, bool array, bool attrs,
		struct zs_doc **ret, struct err *e) NZ_MUST_USE;
/* zs_attrs - the object with the attributes of a group or array; the document becomes dirty. */
int zs_attrs(struct zarr_sink *s, const char *key, const char *from, bool array, json_t **ret,
	     struct err *e) NZ_MUST_USE;
/* zs_json_put - v as the documents of the store have it. */
void zs_json_put(struct jw *j, const json_t *v);
/* zs_json_u64, zs_json_text - values as json_read gives them. NULL: memory. */
json_t *zs_json_u64(uint64_t v);
json_t *zs_json_text(const char *s, size_t n);
/* zs_docs_write - dirty documents as files of the transaction; consolidated ones with them. */
int zs_docs_write(struct zarr_sink *s, struct err *e) NZ_MUST_USE;

/* zs_consolidate - bring the documents of all in line (consolidated.c). */
int zs_consolidate(struct zarr_sink *s, struct err *e) NZ_MUST_USE;

/* ---- what is new, attributes (new_nodes.c, attributes.c) ---- */

int zs_add_group(struct sink *s, uint32_t group, struct err *e);
int zs_add_array(struct sink *s, uint32_t array, const struct sink_new *how, struct err *e);
int zs_set_attr(struct sink *s, uint32_t group, uint32_t array, const struct ds_attr *a,
		struct err *e);
int zs_remove_attr(struct sink *s, uint32_t group, uint32_t array, const char *name,
		   struct err *e);
int zs_dims(struct sink *s, struct err *e);

/* zs_nc_list - in an NCZarr store: a group has, or has no more, an array or group (nczarr_lists.c).
 * key: of the group. */
int zs_nc_list(struct zarr_sink *s, const char *key, bool array, const char *name, bool add,
	       struct err *e) NZ_MUST_USE;
/* zs_nc_type - the type of an attribute; at NULL: it is gone. attrs: the open object. */
int zs_nc_type(struct zarr_sink *s, json_t *attrs, const struct ds_attr *at, const char *name,
	       struct err *e) NZ_MUST_USE;
/* zs_nc_dims - the dimensions of a group, and of an array. */
int zs_nc_group_dims(struct zarr_sink *s, uint32_t was, uint32_t now,
		     struct err *e) NZ_MUST_USE;
int zs_nc_array_dims(struct zarr_sink *s, uint32_t array, const struct zs_array *za,
		     struct err *e) NZ_MUST_USE;
/* zs_group_hints - in a store of plain Zarr: the dimensions and the order of a group, where they
 * changed (source/nczarr_keys.c). was: ordinal of the group in was; DS_NONE: it is new. */
int zs_group_hints(struct zarr_sink *s, uint32_t was, uint32_t now, struct err *e) NZ_MUST_USE;

/* ---- chunks (chunks.c, encode.c, shards.c) ---- */

int zs_target(struct sink *s, uint32_t array, struct sink_array *ret, struct err *e);
int zs_put(struct sink *s, uint32_t array, uint64_t linear, const struct sink_chunk *c,
	   struct err *e);
int zs_drop(struct sink *s, uint32_t array, uint64_t linear, struct err *e);
int zs_resize(struct sink *s, uint32_t array, struct err *e);
/* zs_resolve_layout - za->chunk and what follows from it. */
int zs_resolve_layout(struct zarr_sink *s, uint32_t array, struct zs_array *za,
		      struct err *e) NZ_MUST_USE;
/* zs_fill_absent - chunks that are not there and have to be, because the document does not say what
 * they are. */
int zs_fill_absent(struct zarr_sink *s, struct err *e) NZ_MUST_USE;
/* zs_track - from now on note which chunks are put: in the end all have to be there. */
int zs_track(struct zs_array *za, struct err *e) NZ_MUST_USE;

/* zs_mark_stored - those that the store has, too. */
int zs_mark_stored(struct zarr_sink *s, struct zs_array *za, struct err *e) NZ_MUST_USE;

/* zs_encode - elements of `now` to a stored chunk, appended to out. */
int zs_encode(struct zarr_sink *s, uint32_t array, const struct zs_array *za, const uint8_t *p,
	      size_t len, struct buf *out, struct err *e) NZ_MUST_USE;

int zs_shard_put(struct zarr_sink *s, uint32_t array, struct zs_array *za,
		 const uint64_t *coords, const uint8_t *p, size_t len, bool drop,
		 struct err *e) NZ_MUST_USE;
int zs_shards_write(struct zarr_sink *s, struct err *e) NZ_MUST_USE;

#endif
