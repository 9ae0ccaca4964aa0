/* SPDX-License-Identifier: BSD-3-Clause */
/* stage_int.h - shared by the parts of the stage: logs on the disk (stage_log.c), what is in
 * them by key (stage_index.c), and the stage itself (stage.c). */
#ifndef TRANSLATE_STAGE_STAGE_INT_H
#define TRANSLATE_STAGE_STAGE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/map.h"
#include "translate/stage/stage.h"

/* ---- logs ---- */

enum rec_type {
	REC_PUT = 1,  /* key; data */
	REC_DIR,      /* key */
	REC_GONE,     /* key */
	REC_ALIAS,    /* key NUL base key */
	REC_MOVE,     /* from NUL to, of a file: `from` is gone. Data: its content, unless
	               * REC_SAME */
	REC_LINK,     /* the same, but `from` stays */
	REC_TYPES,
};

enum {
	REC_SAME = 1, /* flag: content is that of the entry that `from` has in this log */
	REC_BARE = 2, /* flag: what goes was a file that only this log had */
};

#define REC_KEY_MAX (2 * STORE_KEY_MAX + 1)

/* rec - one record. */
struct rec {
	enum rec_type type;
	uint8_t flags;
	const char *key;   /* key_len bytes, a NUL behind them */
	size_t key_len;
	const char *second; /* behind the first key's NUL; NULL: there is none */
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
	_Atomic bool failed;       /* a sync failed: Linux says so once, and a later one that
	                            * succeeds does not mean that the bytes are on the disk */
	bool torn;                 /* append lock: bytes of a failed record lie behind the end */
	char name[32];
};

#define LOG_HEAD 48   /* bytes of a file before its first record */
#define REC_HEAD 40   /* bytes of a record before its key */

/* log_create - a new file of this generation; log_open - one that is there: *ret_torn: not even its
 * head is whole. log_hold, log_drop - whoever reads it without a lock. */
int log_create(int dir_fd, uint64_t generation, struct stage_log **ret, struct err *e) NZ_MUST_USE;
int log_open(int dir_fd, uint64_t generation, bool read_only, struct stage_log **ret,
	     bool *ret_torn, struct err *e) NZ_MUST_USE;
void log_hold(struct stage_log *l);
void log_drop(struct stage_log *l);

/* log_source - data of a record: in memory (mem), or `len` bytes of fd from off on. */
struct log_source {
	const uint8_t *mem;
	int fd;
	uint64_t off, len;
};

/* log_append - r without data_off, bytes and, for what is not in memory, crc: these are filled
 * in. On failure the log is as it was. Under the append lock. */
int log_append(struct stage_log *l, struct rec *r, const struct log_source *data,
	       struct err *e) NZ_MUST_USE;
/* log_sync - up to `end`. Once a sync failed, all later ones fail: the kernel drops pages that it
 * could not write, and reports it once. */
int log_sync(struct stage_log *l, uint64_t end, struct err *e) NZ_MUST_USE;
/* log_whole - 0 when a log whose sync failed can be read to its end all the same, or none failed:
 * pages that the kernel drops do not come back, so what read it before had all of it. Under the
 * append lock. */
int log_whole(int dir_fd, const struct stage_log *l, struct err *e) NZ_MUST_USE;

/* log_replay - every record in order; verify: the data's checksums as well. The log's end is set to
 * where it ends. Returns 0; -EBADMSG it is damaged elsewhere than at its end; what fn returns. */
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
	bool hides;                /* nothing that the dataset has here or below is there */
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
/* index_walk - the node of a key, NULL when there is none; *ret_hidden: the dataset's own
 * content of that key is gone. */
struct stage_node *index_walk(const struct stage_index *x, const char *key, bool *ret_hidden);
/* index_make - the node of a key, made when there is none; NULL: no memory. Names of directories
 * on the way get nodes without an entry; index_trim takes those away that nothing needs. */
struct stage_node *index_make(struct stage_index *x, const char *key);
void index_trim(struct stage_index *x, struct stage_node *n);
/* index_set - what a node is; clears what it was. The caller fills in the rest. */
void index_set(struct stage_index *x, struct stage_node *n, enum stage_kind kind);
/* index_clear_below - nodes below n are gone. */
void index_clear_below(struct stage_index *x, struct stage_node *n);
/* index_sweep - takes every node away that nothing needs. */
void index_sweep(struct stage_index *x);
/* index_next - the nodes of a tree, parents before what is below them; NULL: the end. */
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
	struct stage_log *current; /* append, lock: NULL: the next record begins one */
	uint64_t next_generation;  /* append */
	uint64_t frozen;           /* append: generation, 0: none */
	uint64_t versions;         /* lock */
	uint64_t bytes, left_bytes; /* lock: in records */
	bool dirty;                /* append: something was appended since the last freeze that
	                            * was not retired */
	_Atomic bool dir_dirty;    /* a log was begun and its name may not be on the disk */
};

/* stage_count - its logs have so many bytes more (less), which are also said of the whole mount,
 * unless it is a second look at what another stage has. Under both locks. */
void stage_count(struct stage *s, int64_t delta);
/* stage_sync_behind - as stage_sync, of logs behind a generation. */
int stage_sync_behind(struct stage *s, uint64_t generation, struct err *e) NZ_MUST_USE;
/* stage_again - the record of a key once more, in the log that is written to. Under the append
 * lock. */
int stage_again(struct stage *s, const char *key, struct err *e) NZ_MUST_USE;
/* stage_fill - an entry of a node as callers see it; name as in stage_find. */
void stage_fill(const struct stage_node *n, bool hidden, struct stage_entry *ret, char *name);
/* stage_open_at - read-only, generations up to `limit`. */
int stage_open_at(int dir_fd, uint64_t limit, struct stage **ret, struct err *e) NZ_MUST_USE;

#endif
