/* SPDX-License-Identifier: BSD-3-Clause */
/* chunks.h - the data half of the Zarr source: from an array and a chunk of the model to bytes in
 * the store.
 *
 * Terms: an object is the value of one key of the store: a chunk, or a shard that contains chunks
 * (or shards). Objects have a grid of their own and are numbered in C order over it. A place
 * (zr_place) describes the objects of one array; it is made at the first access to the array and
 * is immutable. */
#ifndef NCZARR_SOURCE_CHUNKS_H
#define NCZARR_SOURCE_CHUNKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "nczarr/source/source_int.h"
#include "translate/cache/cache.h"
#include "translate/model/grid.h"

#define ZR_LEVELS_MAX 8      /* shards within shards */
#define ZR_OBJECT_KEY (STORE_KEY_MAX + 1)
#define ZR_SLACK ((uint64_t)64 << 10)      /* headers and checksums of a stored chunk */
#define ZR_FRAME_MAX ((uint64_t)1 << 30)   /* decoded bytes if no document states their number */
#define ZR_WHOLE_KEPT ((uint64_t)128 << 20) /* bytes of decoded shards in the cache */

/* ---- keys (keys.c) ---- */

/* zr_level_key - the key at `level` coordinates: of the object if level == rank, of a directory of
 * nested keys if fewer, and of the directory of the objects (or first coordinates) at 0. grid and
 * coords: rank of the array as stored. Returns 0; -ERANGE longer than a key may be. */
int zr_level_key(const struct zr_meta *m, const uint64_t *coords, uint32_t level,
		 char out[ZR_OBJECT_KEY], struct err *e) NZ_MUST_USE;
int zr_object_key(const struct zr_meta *m, const uint64_t *coords, char out[ZR_OBJECT_KEY],
		  struct err *e) NZ_MUST_USE;

/* zr_name_parse - parse a listed name: the number of an object or, if coordinates are path
 * components, coordinate `level`. Only the canonical name inside the grid is accepted: -EINVAL for
 * any other. The array's rank is not 0. */
int zr_name_parse(const struct zr_meta *m, const uint64_t *grid, uint32_t level, const char *name,
		  uint64_t *ret) NZ_MUST_USE;

/* zr_objects_grid - the grid of objects, and the innermost chunks in one along each axis: m->rank
 * entries. false: a shard has too many chunks. */
bool zr_objects_grid(const struct zr_meta *m, uint64_t *grid, uint64_t *per);

/* zr_is_nested - whether coordinates are directories. */
static inline bool zr_is_nested(const struct zr_meta *m)
{
	return m->separator == '/';
}

/* zr_coords_parse - parse the part of an object's key after the array's directory ("c/3/0",
 * "3.0"). grid: objects. false: no object's key, or outside the grid. */
bool zr_coords_parse(const struct zr_meta *m, const char *name, const uint64_t *grid,
		     uint64_t *ret);

/* ---- which objects there are (chunk_list.c) ---- */

#define ZR_UNREADABLE UINT64_MAX /* as a size: the object exists but reading it is an error */

struct chunk_size_entry {
	uint64_t linear, size;
};

/* zr_table - presence, and if wanted sizes, of the objects of a grid: a bitmap or an array while
 * the grid is small or dense enough, a sorted list otherwise. */
struct zr_table {
	uint64_t total, n;     /* objects of the grid; existing ones */
	uint64_t max_bytes;
	bool sized, sorted;
	uint64_t *bits;        /* one form of these four is in use; none while n is 0 */
	uint32_t *small;
	uint64_t *large;
	struct chunk_size_entry *list;
	size_t cap;            /* of list */
	uint64_t counted;      /* bytes reported as used */
};

void zr_table_init(struct zr_table *t, uint64_t total, bool sized, uint64_t max_bytes);
void zr_table_release(struct zr_table *t); /* it is empty then */
/* zr_table_add - add an existing object. -ERANGE: more memory than max_bytes. */
int zr_table_add(struct zr_table *t, uint64_t linear, uint64_t size, struct err *e) NZ_MUST_USE;
/* zr_table_end - end of zr_table_add() calls; look-ups are allowed from now on, from any thread. */
void zr_table_end(struct zr_table *t);
/* zr_table_get - whether an object exists. ret_size may be NULL; 0 if sizes were not wanted. */
bool zr_table_get(const struct zr_table *t, uint64_t linear, uint64_t *ret_size);
/* zr_table_next - the first existing object at or after `from`. */
bool zr_table_next(const struct zr_table *t, uint64_t from, uint64_t *ret);

/* ---- changes (changes.c) ---- */

/* zr_dir - a directory that was listed for an array, or an object that was looked up by name. */
struct zr_dir {
	uint64_t prefix;     /* number of its coordinates in the grid of as many axes */
	uint64_t version;    /* version before the listing; 0: absent */
	uint64_t count;      /* number of objects or directories of the array in it */
	uint32_t array;
	uint8_t level;       /* coordinates in its path */
	bool is_object;
	bool young;          /* changed so recently that the next change may not alter its
			      * version */
};

#define ZR_RECENT 128  /* objects read lately whose versions are known */

/* zr_recent - one of them. The writer that increments seq from even to odd owns it; read as a
 * seqlock. */
struct zr_recent {
	_Atomic uint32_t seq, array;
	_Atomic uint64_t object, version;
};

struct zr_watch {
	pthread_mutex_t lock;      /* of dirs and cursor; not held during a request to the store */
	struct zr_dir *dirs;       /* owned */
	size_t n_dirs, c_dirs;
	size_t cursor;             /* start of the next poll */
	struct zr_recent recent[ZR_RECENT];
	pthread_mutex_t confirming; /* not held with others */
	_Atomic uint64_t confirmed; /* absences of the store that were followed by a check that the
				     * store exists */
};

/* zr_absent - confirm an absence, after a look-up or a listing: 0 if the store is still the one
 * that was opened, so that the object is proven absent. -ESTALE: the store was removed or
 * replaced, and with it all its objects; or the error of the check. In a remote store one check
 * confirms all absences before it. */
int zr_absent(struct zr_source *s, struct err *e) NZ_MUST_USE;
/* zr_watch_add - include these in polls; copied. */
int zr_watch_add(struct zr_watch *w, const struct zr_dir *dirs, size_t n,
		 struct err *e) NZ_MUST_USE;
/* zr_recent_version - the version of an object at its last recent read; 0: not known. */
uint64_t zr_recent_version(const struct zr_watch *w, uint32_t array, uint64_t object);
void zr_recent_note(struct zr_watch *w, uint32_t array, uint64_t object, uint64_t version);

struct chunk_location;

/* ---- places (chunk_lookup.c, chunk_list.c) ---- */

struct zr_place {
	struct zr_source *s;
	uint32_t id;               /* of the array */
	const struct ds_array *a;
	const struct zr_meta *meta;
	const struct zr_array *array;
	int rc;                    /* permanent error, or 0 */
	char *why;
	bool direct;               /* objects are the model's chunks, with the same numbers */
	bool as_is;                /* stored elements are in the model's order and form */
	uint64_t n_objects;
	uint64_t n_elems;          /* of a stored innermost chunk */
	uint64_t stored_bytes;     /* that many elements; 0 with frames */
	bool remote;               /* objects are requested one by one, and listed when all are
				    * wanted */
	_Atomic bool listed;       /* table is complete */
	pthread_mutex_t listing;   /* one thread fills table */
	struct zr_table table;
	uint64_t *grid;            /* rank entries: objects */
	uint64_t *per;             /* rank entries: the model's chunks in one object */
	uint64_t mem[];
};

/* zr_place_of - the place of an array; the first call makes it. zr_place_listed - the same with a
 * complete table: the first call of a remote store, which must be able to list, lists it. */
int zr_place_of(struct zr_source *s, uint32_t array, const struct zr_place **ret,
		struct err *e) NZ_MUST_USE;
int zr_place_listed(struct zr_source *s, uint32_t array, const struct zr_place **ret,
		    struct err *e) NZ_MUST_USE;

/* zr_list_objects - fill p->table from the store, once. Visited directories of a local store are
 * polled from then on. (chunk_list.c) */
int zr_list_objects(struct zr_place *p, struct err *e) NZ_MUST_USE;
/* zr_list_again - whether a directory still has the same content. Returns 0, -ESTALE, or the error
 * of the listing. ret_young: as in struct zr_dir, for its current state. */
int zr_list_again(const struct zr_place *p, const struct zr_dir *d, bool *ret_young,
		  struct err *e) NZ_MUST_USE;

/* ---- remote stores (chunk_remote.c) ---- */

/* zr_remote_find - whether object x->object exists, and x->size. at: coordinates of the requested
 * chunk. */
int zr_remote_find(const uint64_t *at, struct chunk_location *x, bool *ret_there,
		   struct err *e) NZ_MUST_USE;

/* zr_remote_want_indexes - prefetch the indexes of the shards from `object` on. */
void zr_remote_want_indexes(const struct zr_place *p, uint64_t object);

/* ---- working memory (chunk_read.c) ---- */

/* zr_scratch - buffers of one decoding. */
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
	pthread_mutex_t load;               /* of loading; not held during reads */
	pthread_cond_t loaded;              /* loading of an array has ended */
	bool *loading;                      /* n_places: one thread makes the place of an array */
	struct cache *indexes;              /* of shards: struct zr_index */
	struct cache *wholes;               /* shards that are decoded as a whole */
	pthread_mutex_t lock;               /* of the scratch list */
	struct zr_scratch *scratch;
	uint32_t n_scratch;
	struct zr_watch watch;
};

/* zr_version_agree - whether bytes of an object have the same version as all bytes of it that the
 * source has returned. The first read sets it. Takes no lock. */
bool zr_version_agree(const struct zr_place *p, uint64_t object, uint64_t version);
void zr_versions_release(struct zr_data *d);

struct zr_scratch *zr_scratch_take(struct zr_data *d);
void zr_scratch_give(struct zr_data *d, struct zr_scratch *m); /* takes NULL */
void zr_scratch_free(struct zr_scratch *m);

/* ---- one chunk ---- */

/* chunk_location - location of the stored bytes of a chunk. */
struct chunk_location {
	const struct zr_place *p;
	enum { ZR_NOWHERE, ZR_OBJECT, ZR_PART, ZR_MEMORY } where;
	uint64_t object;           /* its number */
	uint64_t size; /* of the object; 0 where sizes are not known. ZR_UNREADABLE */
	uint64_t off, len;         /* ZR_PART: in the object; ZR_MEMORY: in the decoded shard */
	uint64_t version;          /* ZR_PART: version of the object whose index was read */
	const uint8_t *mem;        /* ZR_MEMORY: the decoded shard */
	struct cache_entry *held;  /* ZR_MEMORY: owned */
};

/* zr_find - locate a chunk. Release the result. linear: of the model. zr_find_in - the same for an
 * array of a source, with its place. (chunk_lookup.c) */
int zr_find(const struct zr_place *p, uint64_t linear, struct chunk_location *ret,
	    struct err *e) NZ_MUST_USE;
int zr_find_in(struct source *s, uint32_t array, uint64_t linear, struct chunk_location *ret,
	       struct err *e) NZ_MUST_USE;
static inline void chunk_location_release(struct chunk_location *x)
{
	if (x->held)
		cache_put(x->held);
	x->held = NULL;
}

/* zr_at - a shard of one level: its identity in the caches, and its properties. */
struct zr_at {
	const struct zr_place *p;
	uint32_t id;               /* array and level */
	uint64_t first;            /* the model's first chunk in it */
	uint64_t n_chunks;         /* innermost chunks in it */
	const struct zr_shard *sh;
};

/* zr_shard_find - locate a chunk in a shard: x is the object of the shard; at: coordinates of the
 * chunk in the grid of innermost chunks (shard.c). */
int zr_shard_find(const uint64_t *at, struct chunk_location *x, struct err *e) NZ_MUST_USE;

/* zr_shard_slot - number of a chunk in the index: C order over the axes in stored order. coords: of
 * the chunk in the array or in its shard. */
uint64_t zr_shard_slot(const struct zr_meta *m, const struct zr_shard *sh, const uint64_t *coords);

/* zr_shard_at - the outermost shard that contains the chunk at these coordinates, and its slot in
 * the index. zr_shard_known - whether that index is cached: then the position of the chunk in the
 * shard; len UINT64_MAX: it is absent. (shard.c) */
void zr_shard_at(const struct zr_place *p, const uint64_t *chunk, struct zr_at *ret,
		 uint64_t *ret_slot);
bool zr_shard_known(const struct zr_at *at, uint64_t slot, uint64_t *ret_off, uint64_t *ret_len);

/* zr_object_name - the key of an object by its number, for messages and the store. */
int zr_object_name(const struct zr_place *p, uint64_t object, char out[ZR_OBJECT_KEY],
		   struct err *e) NZ_MUST_USE;

/* zr_object_read - read bytes of the object of x. If the object was replaced since it was listed,
 * a failure is -ESTALE. ret_version may be NULL. (chunk_read.c) */
int zr_object_read(const struct chunk_location *x, uint64_t off, uint8_t *out, size_t len,
		   uint64_t *ret_version, struct err *e) NZ_MUST_USE;

/* zr_object_blame - the code for invalid content of x's object: -ESTALE if it was replaced since
 * it was listed, and else e with the key in front. */
int zr_object_blame(const struct chunk_location *x, int code, struct err *e);

/* chunk_location_bytes - the stored bytes of a chunk, at most limit: in scratch memory, or in
 * memory of x. (chunk_read.c) */
int chunk_location_bytes(const struct chunk_location *x, uint64_t limit, struct zr_scratch *m,
			 const uint8_t **ret, size_t *ret_len, struct err *e) NZ_MUST_USE;

/* ---- elements, both ways (elements.c) ---- */

/* zr_rearrange - elements of a stored chunk in the order of the axes, or back. m: the order as
 * stored. stored: lengths of the stored chunk, m->rank entries. chunk: lengths of the other one,
 * rank entries, at most stored: elements outside it are omitted; back: they are equal. size: bytes
 * of an element. */
void zr_rearrange(const struct zr_meta *m, const uint64_t *stored, uint32_t rank,
		  const uint64_t *chunk, size_t size, bool back, const uint8_t *in, uint8_t *out);

/* zr_utf32 - convert n strings of `size` bytes from UTF-32 to UTF-8 in place, padded with NUL.
 * -EBADMSG. */
int zr_utf32(uint8_t *p, uint64_t n, size_t size, bool big, struct err *e) NZ_MUST_USE;
/* zr_to_utf32 - the reverse. -EOPNOTSUPP: not UTF-8, or more characters than fit. */
int zr_to_utf32(const uint8_t *in, uint64_t n, size_t size, bool big, uint8_t *out,
		struct err *e) NZ_MUST_USE;

/* zr_fields - convert n structures from their stored to their presented form, or back. */
void zr_fields(const struct zr_dtype *t, uint64_t n, bool back, const uint8_t *in, uint8_t *out);

/* zr_vlen_item - one element without a fixed size. */
struct zr_vlen_item {
	const uint8_t *p;
	size_t len;
};

/* zr_vlen_items - the n elements of a body of translate/contract/source.h; borrowed. -EINVAL: it
 * has fewer. */
int zr_vlen_items(const uint8_t *body, size_t len, uint64_t n, struct zr_vlen_item *ret,
		  struct err *e) NZ_MUST_USE;

#endif
