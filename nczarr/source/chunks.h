/* SPDX-License-Identifier: BSD-3-Clause */
/* chunks.h - what the files of the Zarr source's data half share: from an array and a chunk of
 * the model to bytes in the store.
 *
 * Words: an object is what one key of the store holds: a chunk, or a shard with chunks (or shards)
 * in it. Objects have a grid of their own and are numbered in C order over it. A place is all that
 * is known about the objects of one array; it is made at the first look at the array and then
 * never changes. */
#ifndef NCZARR_SOURCE_CHUNKS_H
#define NCZARR_SOURCE_CHUNKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "nczarr/source/source_int.h"
#include "translate/cache/cache.h"

#define ZR_LEVELS_MAX 8      /* shards within shards */
#define ZR_OBJECT_KEY (STORE_KEY_MAX + 1)
#define ZR_SLACK ((uint64_t)64 << 10)      /* headers and checksums of a stored chunk */
#define ZR_FRAME_MAX ((uint64_t)1 << 30)   /* decoded bytes whose number no document states */
#define ZR_WHOLE_KEPT ((uint64_t)128 << 20) /* decoded shards that are kept */

/* ---- keys (keys.c) ---- */

/* zr_level_key - the key of what `level` coordinates lead to: the object with level == rank, a
 * directory of nested keys with fewer, and the one that lists the objects (or the first
 * coordinate) with 0. grid and coords: rank of the array as stored.
 * Returns 0; -ERANGE longer than a key may be. */
int zr_level_key(const struct zr_meta *m, const uint64_t *coords, uint32_t level,
		 char out[ZR_OBJECT_KEY], struct err *e) NZ_MUST_USE;
int zr_object_key(const struct zr_meta *m, const uint64_t *coords, char out[ZR_OBJECT_KEY],
		  struct err *e) NZ_MUST_USE;

/* zr_name_parse - what a listed name stands for: the number of an object, or, where coordinates
 * are components of their own, coordinate `level`. Only the name that a writer gives counts, inside
 * the grid: -EINVAL for any other. The array's rank is not 0. */
int zr_name_parse(const struct zr_meta *m, const uint64_t *grid, uint32_t level, const char *name,
		  uint64_t *ret) NZ_MUST_USE;

/* zr_is_nested - whether coordinates are directories. */
static inline bool zr_is_nested(const struct zr_meta *m)
{
	return m->separator == '/';
}

/* zr_coords_parse - what is behind an array's directory in an object's key ("c/3/0", "3.0") to its
 * coordinates. grid: objects. false: it is no object's key, or outside the grid. */
bool zr_coords_parse(const struct zr_meta *m, const char *name, const uint64_t *grid,
		     uint64_t *ret);

/* zr_unravel, zr_ravel - number in a grid to coordinates and back. */
void zr_unravel(uint32_t rank, const uint64_t *grid, uint64_t linear, uint64_t *ret);
uint64_t zr_ravel(uint32_t rank, const uint64_t *grid, const uint64_t *coords);

/* ---- which objects there are (chunk_list.c) ---- */

#define ZR_UNREADABLE UINT64_MAX /* as a size: it is there, and reading it is an error */

struct chunk_size_entry {
	uint64_t linear, size;
};

/* zr_table - presence, and sizes where they are wanted, of the objects of a grid: a bitmap or an
 * array while the grid is small or full enough, a sorted list otherwise. */
struct zr_table {
	uint64_t total, n;     /* objects of the grid; those that are there */
	uint64_t max_bytes;
	bool sized, sorted;
	uint64_t *bits;        /* one form of these four is in use; none while n is 0 */
	uint32_t *small;
	uint64_t *large;
	struct chunk_size_entry *list;
	size_t cap;            /* of list */
	uint64_t counted;      /* bytes that it is said to take */
};

void zr_table_init(struct zr_table *t, uint64_t total, bool sized, uint64_t max_bytes);
void zr_table_release(struct zr_table *t);
/* zr_table_add - an object that is there. -ERANGE: more memory than max_bytes. */
int zr_table_add(struct zr_table *t, uint64_t linear, uint64_t size, struct err *e) NZ_MUST_USE;
/* zr_table_end - all are there; look-ups are allowed from now on, from any thread. */
void zr_table_end(struct zr_table *t);
/* zr_table_get - false: absent. ret_size may be NULL; 0 where sizes were not wanted. */
bool zr_table_get(const struct zr_table *t, uint64_t linear, uint64_t *ret_size);
/* zr_table_next - the first object at or after `from`. */
bool zr_table_next(const struct zr_table *t, uint64_t from, uint64_t *ret);

/* ---- what has to be looked at for changes (changes.c) ---- */

/* zr_dir - a directory that was listed for an array, or an object that was asked for by name. */
struct zr_dir {
	uint64_t prefix;     /* number of its coordinates in the grid of as many axes */
	uint64_t version;    /* before it was listed; 0: it was not there */
	uint64_t count;      /* entries of it that matter */
	uint32_t array;
	uint8_t level;       /* coordinates that lead to it */
	bool is_object;
	bool young;          /* changed so shortly before that the next change may not show */
};

#define ZR_RECENT 128  /* objects read lately whose versions are known */

/* zr_recent - one of them. Written by whoever gets seq from even to odd; read as a seqlock. */
struct zr_recent {
	_Atomic uint32_t seq, array;
	_Atomic uint64_t object, version;
};

struct zr_watch {
	pthread_mutex_t lock;      /* of dirs and cursor; not held while the store is asked */
	struct zr_dir *dirs;       /* owned */
	size_t n_dirs, c_dirs;
	size_t cursor;             /* what the next poll begins with */
	struct zr_recent recent[ZR_RECENT];
	pthread_mutex_t confirming; /* not held with others */
	_Atomic uint64_t confirmed; /* so many of the store's absences are of a tree that was
	                             * there afterwards */
};

/* zr_absent - an object is not there, or was in no listing: 0 when the tree is still the one that
 * was opened, so that the object is proven to be no part of it. -ESTALE: the tree was removed or
 * replaced, and with it all of its objects; errors of asking. Far away one question answers for
 * all absences before it. */
int zr_absent(struct zr_source *s, struct err *e) NZ_MUST_USE;
/* zr_watch_add - look at these from now on; copied. */
int zr_watch_add(struct zr_watch *w, const struct zr_dir *dirs, size_t n,
		 struct err *e) NZ_MUST_USE;
/* zr_recent_version - the version an object had when it was read lately; 0: not known. */
uint64_t zr_recent_version(const struct zr_watch *w, uint32_t array, uint64_t object);
void zr_recent_note(struct zr_watch *w, uint32_t array, uint64_t object, uint64_t version);

struct chunk_location;

/* ---- places (chunk_lookup.c, chunk_list.c) ---- */

/* zr_far - of an array that is far away: its objects are asked for one by one, and listed when
 * somebody wants all of them. */
struct zr_remote {
	pthread_mutex_t lock;              /* one thread lists */
	_Atomic(struct zr_table *) table;  /* what was listed; published once; NULL */
};

struct zr_place {
	const struct zr_meta *meta;
	const struct zr_array *array;
	int rc;                    /* why nothing is known, for good; or 0 */
	char *why;
	bool direct;               /* objects are the model's chunks, with the same numbers */
	bool as_is;                /* stored elements are in the model's order and form */
	uint64_t n_objects;
	uint64_t n_elems;          /* of a stored innermost chunk */
	uint64_t stored_bytes;     /* that many elements; 0 with frames */
	struct zr_table table;     /* empty with far */
	struct zr_remote *remote;  /* owned; NULL: table has all */
	uint64_t *grid;            /* rank entries: objects */
	uint64_t *per;             /* rank entries: the model's chunks in one object */
	uint64_t mem[];
};

/* zr_place_of - the place of an array; made when it is the first look. NULL with e set. */
const struct zr_place *zr_place_of(struct zr_source *s, uint32_t array, struct err *e);

/* zr_list_objects - fill t from the store. Of what is not far away, the directories that were
 * looked at are watched from then on. (chunk_list.c) */
int zr_list_objects(struct zr_source *s, uint32_t array, const struct zr_place *p,
		    struct zr_table *t, struct err *e) NZ_MUST_USE;
/* zr_list_again - whether a directory still has what was found in it. Returns 0, -ESTALE, or why
 * it cannot be listed. ret_young: as in struct zr_dir, by what it is now. */
int zr_list_again(struct zr_source *s, const struct zr_place *p, const struct zr_dir *d,
		  bool *ret_young, struct err *e) NZ_MUST_USE;

/* ---- far away (chunk_remote.c) ---- */

int zr_remote_new(struct zr_remote **ret, struct err *e) NZ_MUST_USE;
void zr_remote_free(struct zr_remote *f);

/* zr_remote_table - all objects of an array with their sizes; listed at the first call. Borrowed
 * until the source is closed. Not of a store that cannot list. */
int zr_remote_table(struct zr_source *s, uint32_t array, const struct zr_place *p,
		    const struct zr_table **ret, struct err *e) NZ_MUST_USE;

/* zr_remote_find - x->size of the object x->object, and whether it is there at all. at: coordinates
 * of the chunk that it is wanted for. */
int zr_remote_find(struct zr_source *s, uint32_t array, const struct zr_place *p,
		   const uint64_t *at, struct chunk_location *x, bool *ret_there,
		   struct err *e) NZ_MUST_USE;

/* zr_remote_want_indexes - of the shards from `object` on. */
void zr_remote_want_indexes(struct zr_source *s, uint32_t array, const struct zr_place *p,
			    const struct zr_table *t, uint64_t object);

/* ---- working memory (chunk_read.c) ---- */

/* zr_scratch - what one decoding needs. */
struct zr_scratch {
	struct zr_scratch *next;
	struct codec_scratch *codec;
	struct buf stored;    /* bytes as stored */
	struct buf elems;     /* decoded ones */
	struct buf moved;     /* in the model's order; zr_vlen's elements */
	struct buf strings;   /* zr_vlen: out of a JSON list */
};

struct zr_versions; /* changes.c */

struct zr_data {
	_Atomic(struct zr_place *) *places; /* n_places: arrays of the dataset */
	_Atomic(struct zr_versions *) *versions; /* n_places: of their objects */
	uint32_t n_places;
	pthread_mutex_t load;               /* of loading; held over no reading */
	pthread_cond_t loaded;              /* some array is not loading any more */
	bool *loading;                      /* n_places: one thread makes the place of an array */
	struct cache *indexes;              /* of shards: struct zr_index */
	struct cache *wholes;               /* shards that had to be decoded as a whole */
	pthread_mutex_t lock;               /* of the scratch list */
	struct zr_scratch *scratch;
	uint32_t n_scratch;
	struct zr_watch watch;
};

/* zr_version_agree - whether bytes of an object are of the version that all bytes of it were of
 * that the source has given so far. The first one decides. Takes no lock. */
bool zr_version_agree(struct zr_data *d, uint32_t array, const struct zr_place *p,
		      uint64_t object, uint64_t version);
void zr_versions_release(struct zr_data *d);

struct zr_scratch *zr_scratch_take(struct zr_data *d);
void zr_scratch_give(struct zr_data *d, struct zr_scratch *m);
void zr_scratch_free(struct zr_scratch *m);

/* ---- one chunk ---- */

/* chunk_location - where the stored bytes of a chunk are. */
struct chunk_location {
	enum { ZR_NOWHERE, ZR_OBJECT, ZR_PART, ZR_MEMORY } where;
	uint64_t object;           /* its number */
	uint64_t size; /* of the object; 0 where sizes are not known. ZR_UNREADABLE */
	uint64_t off, len;         /* ZR_PART: in the object; ZR_MEMORY: in the decoded shard */
	uint64_t version;          /* ZR_PART: of the object that says so */
	const uint8_t *mem;        /* ZR_MEMORY: the decoded shard */
	struct cache_entry *held;  /* ZR_MEMORY: owned */
};

/* zr_find - where a chunk is. Release it. linear: of the model. (chunk_lookup.c) */
int zr_find(struct zr_source *s, uint32_t array, const struct zr_place *p, uint64_t linear,
	    struct chunk_location *ret, struct err *e) NZ_MUST_USE;
static inline void chunk_location_release(struct chunk_location *x)
{
	if (x->held)
		cache_put(x->held);
	x->held = NULL;
}

/* zr_shard_find - the same, in a shard: x is the shard's object; at: coordinates of the chunk in
 * chunks of the innermost kind (shard.c). */
int zr_shard_find(struct zr_source *s, uint32_t array, const struct zr_place *p,
		  const uint64_t *at, struct chunk_location *x, struct err *e) NZ_MUST_USE;

/* zr_shard_at - the outermost shard that the chunk at these coordinates is in, and the chunk's slot
 * in its index. zr_shard_known - whether that index is at hand: then where the chunk is in the
 * shard; len UINT64_MAX: it is absent. (shard.c) */
struct zr_at;
void zr_shard_at(struct zr_source *s, uint32_t array, const struct zr_place *p,
		 const uint64_t *chunk, struct zr_at *ret, uint64_t *ret_slot);
bool zr_shard_known(struct zr_source *s, const struct zr_at *at, uint64_t slot,
		    uint64_t *ret_off, uint64_t *ret_len);

/* zr_at - a shard of one level: its name in the caches, and what is known about it. */
struct zr_at {
	uint32_t array;            /* of the source */
	uint32_t id;               /* array and level */
	uint64_t first;            /* the model's first chunk in it */
	uint64_t n_chunks;         /* innermost chunks in it */
	const struct zr_shard *sh;
};

/* zr_whole_get - the decoded bytes of a shard with codecs around it; x says where it is stored and
 * then where it is decoded (shard.c). */
int zr_whole_get(struct zr_source *s, const struct zr_place *p, const struct zr_at *at,
		 struct chunk_location *x, struct err *e) NZ_MUST_USE;

/* zr_object_name - the key of an object by its number, for messages and the store. */
int zr_object_name(const struct zr_place *p, uint64_t object, char out[ZR_OBJECT_KEY],
		   struct err *e) NZ_MUST_USE;

/* zr_object_read - bytes of the object that x is in. A failure of an object that is not the one
 * that was listed is -ESTALE. ret_version may be NULL. (chunk_read.c) */
int zr_object_read(struct zr_source *s, uint32_t array, const struct zr_place *p,
		   const struct chunk_location *x, uint64_t off, uint8_t *out, size_t len,
		   uint64_t *ret_version, struct err *e) NZ_MUST_USE;

/* zr_object_blame - the code for something wrong with what was read of x's object: -ESTALE when it
 * is not the one that was listed, and else e with the key in front. */
int zr_object_blame(struct zr_source *s, const struct zr_place *p,
		    const struct chunk_location *x, int code, struct err *e);

/* chunk_location_bytes - the stored bytes of a chunk, at most limit: in scratch memory, or where x
 * has them. (chunk_read.c) */
int chunk_location_bytes(struct zr_source *s, uint32_t array, const struct zr_place *p,
			 const struct chunk_location *x, uint64_t limit, struct zr_scratch *m,
			 const uint8_t **ret, size_t *ret_len, struct err *e) NZ_MUST_USE;

/* ---- elements (elements.c) ---- */

/* zr_rearrange - elements of a stored chunk in the model's order; those beyond the model's chunk
 * are left out. size: bytes of an element. in: the whole chunk; out: p->array's chunk. */
void zr_rearrange(const struct ds_array *a, const struct zr_place *p, size_t size,
		  const uint8_t *in, uint8_t *out);

/* zr_utf32 - n texts of `size` bytes from UTF-32 to UTF-8 in place, padded with NUL. -EBADMSG. */
int zr_utf32(uint8_t *p, uint64_t n, size_t size, bool big, struct err *e) NZ_MUST_USE;

/* zr_fields - n structures from their stored to their presented form. */
void zr_fields(const struct zr_dtype *t, uint64_t n, const uint8_t *in, uint8_t *out);

/* zr_fill_with - one element over and over, len bytes. */
void zr_fill_with(uint8_t *out, size_t len, const uint8_t *elem, size_t size);

#endif
