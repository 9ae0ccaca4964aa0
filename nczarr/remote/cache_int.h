/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_int.h - the cache of remote objects: private to nczarr/remote.
 *
 * A key's state is an entry (cached_object) of a hash table in shards. The fetched bytes of an
 * object are its extents: non-overlapping pieces of one version, each in the buffer that the
 * service delivered. An extent in flight is attached already, so that all readers of its bytes
 * wait for the same request. Threads that copy from an extent hold a reference, not a lock.
 *
 * Lock order: shard, then queues (object_cache.lock). No lock is held during a call of a service,
 * during a copy, or during a wait except on a condition of that lock. */
#ifndef NCZARR_REMOTE_CACHE_INT_H
#define NCZARR_REMOTE_CACHE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/list.h"
#include "base/core/map.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "nczarr/remote/services.h"

#define RC_BLOCK ((uint64_t)64 << 10)     /* fetched ranges are aligned to it */
#define RC_PIECE ((uint64_t)8 << 20)      /* most bytes of one request */
#define RC_HEAD ((uint64_t)4 << 20)       /* first request of an unknown object */
#define RC_SHARDS 64
#define RC_JOBS 8                         /* requests that one step of a read starts */

enum ext_state { EXT_FETCHING, EXT_READY, EXT_FAILED };
enum ext_queue { Q_NONE, Q_PREFETCH, Q_NEW, Q_MAIN, Q_N };

/* ext - bytes [off, off + len) of one version of an object; or the wait object of a request for an
 * object's info. */
struct ext {
	struct list_link in;       /* lock: queues */
	enum ext_queue queue;      /* lock: queues */
	uint64_t charged, prefetch_charged; /* lock: queues */
	uint64_t in_flight;        /* lock: queues; prefetched bytes in flight */
	uint64_t marked;           /* lock: queues; `handed` at the last scan of its queue */
	int64_t since;             /* lock: queues; arrival time, of prefetched ones */
	struct object_cache *cache;
	struct cache_shard *shard;
	struct cached_object *obj; /* valid while attached or in flight */
	_Atomic uint32_t refs;     /* of the table, the request and readers */
	_Atomic bool prefetched;   /* ... and not read yet */
	_Atomic uint64_t handed;   /* bytes copied to readers */
	enum ext_state state;      /* lock: shard */
	bool attached;             /* lock: shard; in obj->xs */
	uint64_t off, len;         /* lock: shard while in flight; an estimate for obj->asking */
	uint8_t *data;             /* len bytes; owned */
	int code;                  /* FAILED; -EAGAIN: look it up again */
	struct err *why;           /* FAILED; NULL */
};

enum obj_state { OBJ_UNKNOWN, OBJ_THERE, OBJ_ABSENT };
enum folder_state { FOLDER_UNKNOWN, FOLDER_IS, FOLDER_IS_NOT };

/* cached_object - the cached state of a key. lock: shard */
struct cached_object {
	struct link link; /* cache_shard.objects */
	struct cache_root *root;
	uint32_t refs;             /* requests and waiting threads */
	enum obj_state state;
	enum folder_state folder;
	bool recent, weak;
	uint64_t size, version;
	int64_t changed;
	char *etag;                /* owned; NULL: none */
	int64_t known_at, folder_at; /* clock_ns() of the request */
	uint64_t gen;              /* changes with each new version */
	struct ext *asking;        /* the request in flight for its info */
	struct ext **xs;           /* n_xs extents by offset; owned */
	size_t n_xs, c_xs;
	uint64_t next_off;         /* sequential reads: next expected offset, */
	uint64_t run, run_end;     /* length of the run, end of its prefetched part */
	bool listed;               /* the table has all names directly below it ... */
	int64_t listed_at;
	uint64_t listed_drops;     /* ... unless entries were dropped since */
	size_t cost;               /* bytes charged to the shard */
	size_t key_len;
	char key[];
};

struct cache_shard {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct map objects;        /* struct cached_object, by cache_lookup.hash */
	size_t hand;
	uint64_t bytes, peak;      /* of entries */
};

/* cache_root - state of a root, kept until the cache is freed. */
struct cache_root {
	struct cache_root *next;
	_Atomic uint64_t gens;     /* last cached_object.gen */
	_Atomic uint64_t drops;    /* entries dropped for room */
	_Atomic uint64_t usual[256]; /* by hash of a folder: an upper estimate of its objects' size
				      * (fetch.c) */
	uint64_t seed;
	char name[];
};

/* rstore - a store over objects. */
struct rstore {
	struct store base;
	struct object_cache *cache; /* borrowed */
	struct cache_root *root;    /* borrowed */
	struct object_service *o;   /* owned */
	int64_t opened_at; /* clock_ns(); older answers are revalidated: a store is reopened
			    * because it changed, and its documents may be newer than the cached
			    * state of its chunks */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	uint32_t in_flight;        /* lock */
};

/* link_estimate - measured round trip and throughput. lock: queues */
struct link_estimate {
	int64_t rtt;               /* ns, recent minimum; 0: not known */
	uint64_t rate;             /* bytes a second, recent maximum */
	int64_t began;             /* start of the measured interval */
	uint64_t bytes;            /* in the interval */
	uint32_t fetches;
};

struct prefetcher;
struct keeper;

#define RC_DISTRUSTED 256

struct object_cache {
	pthread_mutex_t lock;      /* queues, budget, link estimate, roots */
	pthread_cond_t room;
	uint64_t limit, bytes, peak; /* of extents, in flight or ready */
	uint64_t shard_limit;      /* of entries, per shard */
	uint64_t piece, head;      /* RC_PIECE, RC_HEAD where the budget is large enough */
	_Atomic uint64_t grain;    /* smallest size of a request */
	uint64_t prefetch_limit, prefetch_bytes;
	uint64_t in_flight;        /* prefetched bytes in flight ... */
	uint32_t n_in_flight;      /* ... in this many requests */
	uint32_t connections;
	int64_t check_ns;          /* 0: never */
	struct list_link queues[Q_N];
	uint64_t queued[Q_N];      /* bytes */
	uint32_t waiting;          /* threads that wait for room */
	struct link_estimate line;
	struct cache_root *roots;
	struct prefetcher *prefetcher; /* prefetch.c */
	struct keeper *keeper;     /* disk_writer.c */
	struct disk_cache *disk;   /* NULL: none */
	_Atomic uint64_t distrusted[RC_DISTRUSTED]; /* hashes of keys whose blocks on disk may be
						     * damaged; 0: none */
	_Atomic uint32_t n_distrusted; /* keys noted so far; the last ones are kept */
	struct cache_shard shards[RC_SHARDS];
};

/* cache_lookup - a key with its position in the table. */
struct cache_lookup {
	struct rstore *st;
	struct cache_shard *shard;
	const char *key;
	size_t len;
	uint64_t hash;
	struct cached_object *obj;
};

/* ---- eviction.c: the budget ---- */

/* rc_grant - reserve n bytes for an extent, at most c->limit, and evict for it. must: wait for
 * room (-EINTR); else -EAGAIN. */
int rc_grant(struct object_cache *c, uint64_t n, bool must) NZ_MUST_USE;
/* rc_charge - correct the charge of x to n bytes; 0: release it. */
void rc_charge(struct ext *x, uint64_t n);
/* object_cache_peak - peak of all bytes of the cache, with its entries. */
uint64_t object_cache_peak(struct object_cache *c);
/* rc_granted - charge n reserved bytes to x, as a prefetch or not. */
void rc_granted(struct ext *x, uint64_t n, bool prefetch);
/* rc_landed - the request of x has ended, also if it failed. */
void rc_landed(struct ext *x);
/* rc_may_start - whether n bytes may be prefetched now. */
bool rc_may_start(struct object_cache *c, uint64_t n);
/* rc_enqueue - queue x, which is ready and attached. The shard is locked, for rc_unqueue(), too. */
void rc_enqueue(struct ext *x);
void rc_unqueue(struct ext *x);
/* rc_settle - x was read for the first time, or not read for too long: do not count it as
 * prefetched any more. */
void rc_settle(struct ext *x);
void ext_ref(struct ext *x);
/* ext_unref - drop a reference. Any lock but queues may be held. */
void ext_unref(struct ext *x);
void rc_line_note(struct object_cache *c, int64_t took, uint64_t bytes);

/* ---- object_table.c: keys and extents ---- */

struct cache_root *rc_root(struct object_cache *c, const char *name);
void table_init(struct object_cache *c);
void table_release(struct object_cache *c);
struct cache_lookup look_at(struct rstore *st, const char *key, size_t len);
/* look_find - find the entry; make: add it if there is none. NULL: none, or out of memory. The
 * shard is locked. */
struct cached_object *look_find(struct cache_lookup *l, bool make);
/* obj_set - the object exists with this info. Cached data of another version is dropped. */
void obj_set(struct cache_lookup *l, const struct object_info *info, int64_t asked_at);
/* obj_gone - the object does not exist. */
void obj_gone(struct cache_lookup *l, int64_t asked_at);
/* obj_forget - drop the state and the data of the object. l->obj may be NULL. */
void obj_forget(struct cache_lookup *l);
bool obj_is_racy(const struct rstore *st, int64_t at);
/* obj_at - index of the extent with byte off, or of the first one after it; n_xs: none. */
size_t obj_at(const struct cached_object *o, uint64_t off);
int obj_attach(struct cached_object *o, struct ext *x) NZ_MUST_USE;
void obj_detach(struct cached_object *o, struct ext *x);
struct ext *ext_new(struct object_cache *c, struct cache_lookup *l, uint64_t off, uint64_t len);
/* look_absent - whether cached listings prove that a key does not exist. No lock is held. */
bool look_absent(struct rstore *st, const char *key);

/* ---- fetch.c: requests ---- */

/* job - a request to start; x is attached, or obj->asking. */
struct job {
	struct ext *x;             /* a reference */
	int what;                  /* OBJECT_... */
	uint64_t off, len, grant;
	uint64_t gen;
	int64_t asked_at;          /* clock_ns(); 0: not sent yet */
	bool prefetch;             /* a prefetch: no thread waits for it */
	char *etag;                /* owned; NULL */
	bool unless;               /* etag is for If-None-Match */
	struct object_info *kept;  /* owned; the info on disk, valid if the version is unchanged;
				    * NULL */
	bool from_disk;
};

/* fetch_start - start a request. must: wait for room. x leaves EXT_FETCHING in every case. No lock
 * is held. Returns false if there was no room. */
bool fetch_start(struct cache_lookup *l, struct job *j, bool must);
/* fetch_plan - attach extents for the missing parts of [from, to) of a known object, at most max,
 * none that begins at or after `before`. The shard is locked. */
size_t fetch_plan(struct cache_lookup *l, uint64_t from, uint64_t before, uint64_t to,
		  struct job *jobs, size_t max);
/* fetch_ask - prepare the request for an object's info. what: with its start (OBJECT_PART), with
 * all of it if it has at most len bytes (OBJECT_ALL), with its end (OBJECT_TAIL), or alone
 * (OBJECT_HEAD). It becomes obj->asking. The shard is locked. Returns 0 or -ENOMEM. */
int fetch_ask(struct cache_lookup *l, int what, uint64_t off, uint64_t len,
	      struct job *ret) NZ_MUST_USE;
/* rc_beginning - bytes of an unknown object to fetch with its info: usually all, few in a folder
 * of large objects. rc_guess - estimate of the bytes that will arrive. */
uint64_t rc_beginning(struct rstore *st, const char *key);
uint64_t rc_guess(struct rstore *st, const char *key);
/* fetch_wait - wait until x is not in flight. The shard is locked. Returns 0 or -EINTR. */
int fetch_wait(struct ext *x, struct err *e) NZ_MUST_USE;
/* ext_error - result of an extent that is not in flight: 0, -EAGAIN look it up again, or its
 * error. */
int ext_error(const struct ext *x, const char *key, struct err *e) NZ_MUST_USE;

/* ---- prefetch.c ---- */

int remote_prefetch_new(struct object_cache *c) NZ_MUST_USE;
void remote_prefetch_free(struct object_cache *c);
void remote_prefetch_request(struct rstore *st, const struct store_range *r, size_t n);
/* remote_prefetch_wake - data arrived or was read: start more requests. No lock is held. */
void remote_prefetch_wake(struct object_cache *c);
/* remote_prefetch_forget - drop the queued ranges of a store that closes. */
void remote_prefetch_forget(struct rstore *st);

/* ---- disk_writer.c: the cache on disk ---- */

/* distrust - ignore the blocks on disk of a key; fetched ones replace them. */
void distrust(struct cache_lookup *l);
bool distrusted(const struct cache_lookup *l);

/* keep_new - dir NULL: no cache on disk. An unusable directory is logged and ignored. */
int keep_new(struct object_cache *c, const char *dir, uint64_t bytes) NZ_MUST_USE;
void keep_free(struct object_cache *c);
/* keep_info - the info of the object at the time its blocks were stored. */
bool keep_info(struct cache_lookup *l, struct object_info *ret);
/* keep_read - bytes [off, off + len) if all of them are on disk; a new buffer, or NULL. */
uint8_t *keep_read(struct cache_lookup *l, const struct object_info *info, uint64_t off,
		   uint64_t len);
/* keep_write - queue x, which is ready and belongs to the object with this info, for writing. */
void keep_write(struct cache_lookup *l, struct ext *x, const struct object_info *info);

#endif
