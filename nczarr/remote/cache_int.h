/* SPDX-License-Identifier: BSD-3-Clause */
/* cache_int.h - what store_remote*.c share; private to them.
 *
 * What is known of a key is an entry (cached_object) of a hash table in shards; what was fetched of
 * an object are its extents: pieces of one version that do not overlap, each in the memory that the
 * service delivered it in. An extent that is being fetched stands in its place already: whoever
 * wants those bytes waits for it. Threads that copy from an extent hold a reference, not a lock.
 *
 * Locks: shard, then queues (object_cache.lock). No lock is held while a service is called, while
 * anything is waited for but a condition of that lock, and while bytes are copied. */
#ifndef NCZARR_REMOTE_CACHE_INT_H
#define NCZARR_REMOTE_CACHE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/os/cancel.h"
#include "nczarr/remote/services.h"

#define RC_BLOCK ((uint64_t)64 << 10)     /* fetched ranges begin and end at multiples of it */
#define RC_PIECE ((uint64_t)8 << 20)      /* most bytes of one request */
#define RC_HEAD ((uint64_t)4 << 20)       /* of an object that is not known, in its first request */
#define RC_SHARDS 64
#define RC_JOBS 8                         /* requests that one step of a read starts */

struct links {
	struct links *prev, *next;
};

enum ext_state { EXT_FETCHING, EXT_READY, EXT_FAILED };
enum ext_queue { Q_NONE, Q_PREFETCH, Q_NEW, Q_MAIN, Q_N };

/* ext - bytes [off, off + len) of one version of an object; or, while it is fetched, what those who
 * want to know wait for. */
struct ext {
	struct links in;           /* lock: queues */
	enum ext_queue queue;      /* lock: queues */
	uint64_t charged, prefetch_charged; /* lock: queues */
	uint64_t flying;           /* lock: queues; bytes under way that nobody asked for */
	uint64_t marked;           /* lock: queues; handed, when the queue was looked at last */
	int64_t since;             /* lock: queues; when it came, of those fetched early */
	struct object_cache *cache;
	struct cache_shard *shard;
	struct cached_object *obj; /* valid while attached, or fetching */
	_Atomic uint32_t refs;     /* the table's, the fetch's, readers' */
	_Atomic bool ahead;        /* fetched early, and not read yet */
	_Atomic uint64_t handed;   /* bytes given to readers */
	enum ext_state state;      /* lock: shard */
	bool attached;             /* lock: shard; it is among obj's */
	uint64_t off, len;         /* lock: shard while fetching; of asking extents a guess */
	uint8_t *data;             /* len bytes; owned */
	int code;                  /* FAILED; -EAGAIN: look again */
	struct err *why;           /* FAILED; NULL */
};

enum obj_state { OBJ_UNKNOWN, OBJ_THERE, OBJ_ABSENT };
enum folder_state { FOLDER_UNKNOWN, FOLDER_IS, FOLDER_IS_NOT };

/* cached_object - what is known of a key. lock: shard */
struct cached_object {
	struct cached_object *chain;
	struct cache_root *root;
	uint64_t hash;
	uint32_t refs;             /* fetches and threads that wait */
	enum obj_state state;
	enum folder_state folder;
	bool recent, weak;
	uint64_t size, version;
	int64_t changed;
	char *etag;                /* owned; NULL: none */
	int64_t known_at, folder_at; /* clock_ns() when that was asked */
	uint64_t gen;              /* another one, another version */
	struct ext *asking;        /* under way: it will say what this is */
	struct ext **xs;           /* n_xs extents by offset; owned */
	size_t n_xs, c_xs;
	uint64_t next_off;         /* where who reads in order goes on; how far he has read, */
	uint64_t run, run_end;     /* and how far is fetched early */
	bool listed;               /* all names directly below it are in the table ... */
	int64_t listed_at;
	uint64_t listed_drops;     /* ... if none was dropped since */
	size_t cost;               /* bytes it is counted with */
	size_t key_len;
	char key[];
};

struct cache_shard {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct cached_object **buckets;
	size_t n_buckets, n, hand;
	uint64_t bytes, peak;      /* of entries */
};

/* cache_root - all that is known of a root, while the cache lives. */
struct cache_root {
	struct cache_root *next;
	_Atomic uint64_t gens;     /* the last cached_object.gen */
	_Atomic uint64_t drops;    /* entries that had to go for room */
	_Atomic uint64_t usual[256]; /* by hash of a folder: how large its objects are, rather the
				      * large ones (fetch.c) */
	uint64_t seed;
	char name[];
};

/* rstore - a store over objects. */
struct rstore {
	struct store base;
	struct object_cache *cache; /* borrowed */
	struct cache_root *root;    /* borrowed */
	struct object_service *o;   /* owned */
	int64_t opened_at; /* clock_ns(); what was asked before is asked again: a tree is
	                            * opened anew because it changed, and its documents may be
	                            * newer than what is remembered of its chunks */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	uint32_t in_flight;        /* lock */
};

/* link_estimate - what the way to the services is like. lock: queues */
struct link_estimate {
	int64_t rtt;               /* ns, shortest lately; 0: not known */
	uint64_t rate;             /* bytes a second, highest lately */
	int64_t began;             /* of the span that is measured */
	uint64_t bytes;            /* of it */
	uint32_t fetches;
};

struct early;
struct keeper;

#define RC_DISTRUSTED 256

struct object_cache {
	pthread_mutex_t lock;      /* queues, budget, line, roots */
	pthread_cond_t room;
	uint64_t limit, bytes, peak; /* of extents, in flight or not */
	uint64_t shard_limit;      /* of entries, each shard */
	uint64_t piece, head;      /* RC_PIECE, RC_HEAD where the budget is large enough */
	_Atomic uint64_t grain;    /* least that is worth a request */
	uint64_t prefetch_limit, prefetch_bytes;
	uint64_t flying;           /* of these, under way ... */
	uint32_t flights;          /* ... in so many requests */
	uint32_t connections;
	int64_t check_ns;          /* 0: never */
	struct links queues[Q_N];
	uint64_t queued[Q_N];      /* bytes */
	uint32_t waiting;          /* for room */
	struct link_estimate line;
	struct cache_root *roots;
	struct early *early;       /* prefetch.c */
	struct keeper *keeper;     /* disk_writer.c */
	struct disk_cache *disk;   /* NULL: none */
	_Atomic uint64_t distrusted[RC_DISTRUSTED]; /* hashes of keys whose bytes on disk may be
	                            * damaged; 0: none */
	_Atomic uint32_t n_distrusted; /* so many were noted: the latest count */
	struct cache_shard shards[RC_SHARDS];
};

/* cache_lookup - a key, found in the table. */
struct cache_lookup {
	struct rstore *st;
	struct cache_shard *shard;
	const char *key;
	size_t len;
	uint64_t hash;
	struct cached_object *obj;
};

/* ---- eviction.c: the budget, what goes first ---- */

void links_init(struct links *l);
/* rc_grant - room for n bytes of an extent, at most c->limit: what is missed least goes. must: wait
 * for it (-EINTR); else -EAGAIN. */
int rc_grant(struct object_cache *c, uint64_t n, bool must) NZ_MUST_USE;
/* rc_charge - what was granted for x turned out to be another size, 0: none. */
void rc_charge(struct ext *x, uint64_t n);
/* object_cache_peak - most bytes that the cache ever had, with what it knows of keys. */
uint64_t object_cache_peak(struct object_cache *c);
/* rc_granted - x has what was granted; early: nobody asked for it. */
void rc_granted(struct ext *x, uint64_t n, bool early);
/* rc_landed - it came, or not. */
void rc_landed(struct ext *x);
/* rc_may_start - whether n bytes may be fetched early now. */
bool rc_may_start(struct object_cache *c, uint64_t n);
/* rc_enqueue - x is ready, and attached. The shard is locked, for rc_unqueue, too. */
void rc_enqueue(struct ext *x);
void rc_unqueue(struct ext *x);
/* rc_settle - x has been read for the first time, or was not read for too long: it does not count
 * as fetched early any more. */
void rc_settle(struct ext *x);
void ext_ref(struct ext *x);
/* ext_unref - under any lock but queues. */
void ext_unref(struct ext *x);
void rc_line_note(struct object_cache *c, int64_t took, uint64_t bytes);

/* ---- object_table.c: keys and extents ---- */

struct cache_root *rc_root(struct object_cache *c, const char *name);
int table_init(struct object_cache *c);
void table_release(struct object_cache *c);
struct cache_lookup look_at(struct rstore *st, const char *key, size_t len);
/* look_find - the entry, made where there is none and make is true; NULL else, and when memory is
 * short. The shard is locked. */
struct cached_object *look_find(struct cache_lookup *l, bool make);
/* obj_set - it is there, like this; another version than the one known drops that. */
void obj_set(struct cache_lookup *l, const struct object_info *info, int64_t asked_at);
/* obj_gone - it is not there. */
void obj_gone(struct cache_lookup *l, int64_t asked_at);
/* obj_forget - nothing is known of it, and nothing of it kept. l->obj may be NULL. */
void obj_forget(struct cache_lookup *l);
bool obj_is_racy(const struct rstore *st, int64_t at);
/* obj_at - the extent with byte off, or the first one behind it; n_xs: none. */
size_t obj_at(const struct cached_object *o, uint64_t off);
int obj_attach(struct cached_object *o, struct ext *x) NZ_MUST_USE;
void obj_detach(struct cached_object *o, struct ext *x);
struct ext *ext_new(struct object_cache *c, struct cache_lookup *l, uint64_t off, uint64_t len);
/* look_absent - whether listings prove that a key is not there. No lock is held. */
bool look_absent(struct rstore *st, const char *key);

/* ---- fetch.c: requests ---- */

/* job - an extent that is to be fetched; x is attached, or obj's asking. */
struct job {
	struct ext *x;             /* a reference */
	int what;                  /* OBJECT_... */
	uint64_t off, len, grant;
	uint64_t gen;
	int64_t asked_at;          /* clock_ns(); 0: nobody was asked yet */
	bool early;                /* nobody waits for it */
	char *etag;                /* owned; NULL */
	bool unless;               /* etag is what it must not be */
	struct object_info *kept;  /* owned; what it is when it still is as it was kept; NULL */
	bool from_disk;
};

/* fetch_start - no lock is held. must: wait for room. Whatever happens, x is not FETCHING for ever.
 * false: there was no room. */
bool fetch_start(struct cache_lookup *l, struct job *j, bool must);
/* fetch_plan - extents for what is missing of [from, to) of a known object, attached, at most
 * max, none that begins at `before` or behind it. The shard is locked. */
size_t fetch_plan(struct cache_lookup *l, uint64_t from, uint64_t before, uint64_t to,
		  struct job *jobs, size_t max);
/* fetch_ask - the request that finds out what an object is: with its beginning (what OBJECT_PART),
 * all of it when it is at most len (OBJECT_ALL), its end (OBJECT_TAIL), or nothing (OBJECT_HEAD).
 * Becomes obj->asking. The shard is locked. Returns 0 or -ENOMEM. */
int fetch_ask(struct cache_lookup *l, int what, uint64_t off, uint64_t len,
	      struct job *ret) NZ_MUST_USE;
/* rc_beginning - how much of an unknown object is fetched with what it is: all, usually; little
 * in a folder whose objects are too large for that. rc_guess - how much of it may come. */
uint64_t rc_beginning(struct rstore *st, const char *key);
uint64_t rc_guess(struct rstore *st, const char *key);
/* fetch_wait - until x is not being fetched. The shard is locked. -EINTR. */
int fetch_wait(struct ext *x, struct err *e) NZ_MUST_USE;
/* ext_error - what became of an extent that is not being fetched any more: 0, -EAGAIN look again,
 * or why it could not be. */
int ext_error(const struct ext *x, const char *key, struct err *e) NZ_MUST_USE;

/* ---- prefetch.c: fetching early ---- */

int remote_prefetch_new(struct object_cache *c) NZ_MUST_USE;
void remote_prefetch_free(struct object_cache *c);
void remote_prefetch_request(struct rstore *st, const struct store_range *r, size_t n);
/* remote_prefetch_wake - something came or was read. No lock is held. */
void remote_prefetch_wake(struct object_cache *c);
/* remote_prefetch_forget - the store closes. */
void remote_prefetch_forget(struct rstore *st);

/* ---- disk_writer.c: what is kept on disk ---- */

/* distrust - what is kept on disk of a key is not believed any more; what comes takes its place. */
void distrust(struct cache_lookup *l);
bool distrusted(const struct cache_lookup *l);

/* keep_new - dir NULL: nothing is. A directory that cannot be used costs a line in the log. */
int keep_new(struct object_cache *c, const char *dir, uint64_t bytes) NZ_MUST_USE;
void keep_free(struct object_cache *c);
/* keep_info - what the object was when it was kept. */
bool keep_info(struct cache_lookup *l, struct object_info *ret);
/* keep_read - bytes [off, off + len), if all of them are kept; new. */
uint8_t *keep_read(struct cache_lookup *l, const struct object_info *info, uint64_t off,
		   uint64_t len);
/* keep_write - x, which is ready, is of the object that is info: write it soon. */
void keep_write(struct cache_lookup *l, struct ext *x, const struct object_info *info);

/* object_cache_thread - start one that takes no signal: those that end the program are for
 * others. */
bool object_cache_thread(pthread_t *ret, void *(*run)(void *arg), void *arg);

#endif
