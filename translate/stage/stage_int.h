/* SPDX-License-Identifier: BSD-3-Clause */
/* stage_int.h - shared by the parts of the stage: logs on the disk (stage_log.c), their entries by
 * key (stage_index.c), and the stage itself (stage.c). */
#ifndef TRANSLATE_STAGE_STAGE_INT_H
#define TRANSLATE_STAGE_STAGE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/map.h"
#include "base/os/lock.h"
#include "translate/stage/stage.h"

/* ---- logs ---- */

enum rec_type {
	REC_PUT = 1,  /* key; data */
	REC_DIR,      /* key */
	REC_GONE,     /* key */
	REC_ALIAS,    /* key NUL base key */
	REC_MOVE,     /* from NUL to, of a file: `from` is removed. Data: its content, unless
		       * REC_SAME */
	REC_LINK,     /* the same, but `from` stays */
	REC_TYPES,
};

enum {
	REC_SAME = 1, /* flag: content is that of the entry that `from` has in this log */
	REC_BARE = 2, /* flag: the removed file was in this log only */
};

#define REC_KEY_MAX (2 * STORE_KEY_MAX + 1)

/* rec - one record. */
struct rec {
	enum rec_type type;
	uint8_t flags;
	const char *key;   /* key_len bytes, a NUL behind them */
	size_t key_len;
	const char *second; /* after the first key's NUL; NULL: there is none */
	uint64_t len;      /* of the data */
	uint32_t crc;      /* of the data */
	int64_t mtime_ns;
	uint64_t data_off; /* in the file */
	uint64_t bytes;    /* of the whole record */
};

/* stage_log - one file. */
struct stage_log {
	struct stage_log *next;    /* stage's lock: older ones first */
	_Atomic uint32_t holders;
	int fd;
	uint64_t generation;
	uint64_t salt;
	uint64_t end;              /* stage's append lock: where the next record goes */
	_Atomic uint64_t synced;   /* everything before it is on the disk */
	pthread_mutex_t sync;      /* log_sync's: one fdatasync at a time */
	_Atomic bool failed;       /* a sync failed: Linux reports that once, and a later sync that
				    * succeeds does not mean that the bytes are on the disk */
	bool torn;                 /* append lock: bytes of a failed record lie after the end */
	char name[32];
};

#define LOG_HEAD 48   /* bytes of a file before its first record */
#define REC_HEAD 40   /* bytes of a record before its key */

/* log_create - make a log of this generation; log_open - open an existing one: *ret_torn: its head
 * is incomplete. log_hold, log_drop - references of readers without a lock. */
int log_create(int dir_fd, uint64_t generation, struct stage_log **ret, struct err *e) NZ_MUST_USE;
int log_open(int dir_fd, uint64_t generation, bool read_only, struct stage_log **ret,
	     bool *ret_torn, struct err *e) NZ_MUST_USE;
void log_hold(struct stage_log *l);
void log_drop(struct stage_log *l);
/* logs_end - where the next log of a list goes; logs_drop - drop all of a list. */
struct stage_log **logs_end(struct stage_log **list);
void logs_drop(struct stage_log *list);

/* log_source - data of a record: in memory (mem), or `len` bytes of fd from off on. */
struct log_source {
	const uint8_t *mem;
	int fd;
	uint64_t off, len;
};

/* log_append - append r. The caller leaves out data_off, bytes and, for data that are not in
 * memory, crc: these are filled in. On failure the log is unchanged. Under the append lock. */
int log_append(struct stage_log *l, struct rec *r, const struct log_source *data,
	       struct err *e) NZ_MUST_USE;
/* log_sync - put the log on the disk up to `end`. After one failure all later calls fail: the
 * kernel drops pages that it could not write, and reports that once. */
int log_sync(struct stage_log *l, uint64_t end, struct err *e) NZ_MUST_USE;
/* log_whole - 0 if no sync of the log failed, or if the log can be read to its end all the same:
 * pages that the kernel drops do not come back, so the earlier readers had all of it. Under the
 * append lock. */
int log_whole(int dir_fd, const struct stage_log *l, struct err *e) NZ_MUST_USE;

/* log_replay - call fn for every record in order, and set the log's end. verify: check the data's
 * checksums, too. Returns 0; -EBADMSG the log is damaged elsewhere than at its end; the result of
 * fn. */
int log_replay(struct stage_log *l, bool verify,
	       int (*fn)(void *arg, const struct rec *r, struct err *e), void *arg,
	       struct err *e) NZ_MUST_USE;

/* ---- the index ---- */

struct stage_node;

struct stage_node {
	struct stage_node *parent, *below, *next, *prev; /* first child; brothers */
	struct link link;                                /* in the index's table */
	uint64_t alive;            /* DATA, DIR and ALIAS from here down */
	enum stage_kind kind;
	bool hides;                /* the dataset's entries here and below were removed */
	bool left;                 /* a commit left it */
	uint64_t hides_since;      /* generation */
	uint64_t older;            /* the last generation before its own that has it, or 0 */
	uint64_t version;
	struct stage_log *log;     /* whose generation it has; DATA: where it is. Not held */
	uint64_t off, len, bytes;
	uint32_t crc;
	int64_t mtime_ns;
	char *alias;               /* owned */
	size_t name_len;
	char name[];
};

struct stage_index {
	struct stage_node *root;   /* "" */
	struct map table;          /* of all others, by parent and name */
	uint64_t entries;          /* nodes with a kind */
	uint64_t seed;
};

int index_init(struct stage_index *x, struct err *e) NZ_MUST_USE;
void index_free(struct stage_index *x);
/* index_walk - the node of a key; NULL: there is none. *ret_hidden: the dataset's own content of
 * that key was removed. */
struct stage_node *index_walk(const struct stage_index *x, const char *key, bool *ret_hidden);
/* index_make - the node of a key, created if there is none; NULL: no memory. Directories above it
 * get nodes without an entry; index_trim removes those that are not needed. */
struct stage_node *index_make(struct stage_index *x, const char *key);
void index_trim(struct stage_index *x, struct stage_node *n);
/* index_set - set the kind of a node and clear its entry. The caller fills in the rest. */
void index_set(struct stage_index *x, struct stage_node *n, enum stage_kind kind);
/* index_clear_below - remove all nodes below n. */
void index_clear_below(struct stage_index *x, struct stage_node *n);
/* index_sweep - remove all nodes that are not needed. */
void index_sweep(struct stage_index *x);
/* index_next - the next node of a tree, parents before their children; NULL: the end. */
struct stage_node *index_next(const struct stage_node *root, const struct stage_node *n);
/* index_key - a node's key into out, STORE_KEY_MAX + 1 bytes. */
void index_key(const struct stage_node *n, char *out);

/* ---- the stage ---- */

struct stage {
	int dir_fd;                /* our own */
	bool read_only;
	uint64_t limit;            /* generations above it are not read */
	pthread_mutex_t append;    /* one record at a time; taken before lock */
	pthread_mutex_t lock;      /* index and list of logs; no system call under it */
	struct stage_index index;  /* lock; changed under append, too */
	struct stage_log *logs;    /* lock; oldest first */
	struct stage_log *retired; /* lock: removed logs that are still open */
	struct stage_log *current; /* append, lock: NULL: the next record begins one */
	uint64_t next_generation;  /* append */
	uint64_t frozen;           /* append: generation, 0: none */
	uint64_t versions;         /* lock */
	uint64_t bytes, left_bytes; /* lock: in records */
	bool dirty;                /* append: records were appended since the last freeze that was
				    * not retired */
	pthread_mutex_t sync;      /* sync_dir's; no other lock is taken under it */
	_Atomic bool dir_dirty;    /* a log was begun, and its name may not be on the disk */
};

/* stage_count - add to the bytes of the stage's logs, and to the mount's metric unless it is a
 * second view of another stage's logs. Under both locks. */
void stage_count(struct stage *s, int64_t delta);
/* stage_sync_behind - as stage_sync, for logs after a generation. */
int stage_sync_behind(struct stage *s, uint64_t generation, struct err *e) NZ_MUST_USE;
/* stage_again - append the record of a key again, to the log that is being written. Under the
 * append lock. */
int stage_again(struct stage *s, const char *key, struct err *e) NZ_MUST_USE;
/* stage_fill - a node's entry for callers; name as in stage_find. */
void stage_fill(const struct stage_node *n, bool hidden, struct stage_entry *ret, char *name);
/* stage_open_at - as stage_open, of generations up to `limit`. */
int stage_open_at(int dir_fd, bool read_only, uint64_t limit, struct stage **ret,
		  struct err *e) NZ_MUST_USE;
/* stage_up_to - generations up to this one as a stage of their own; *ret NULL: s has no others. */
int stage_up_to(struct stage *s, uint64_t generation, struct stage **ret,
		struct err *e) NZ_MUST_USE;

#endif
