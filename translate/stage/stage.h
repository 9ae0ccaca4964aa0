/* SPDX-License-Identifier: BSD-3-Clause */
/* stage.h - pending writes of a tree that are not in the dataset yet.
 *
 * A stage is a directory with logs. A log is a sequence of records, each with checksums: a key was
 * put with these bytes, was removed, was moved, is a directory. A finished append survives the
 * death of the process; after stage_sync it survives the loss of power. Logs are generations: one
 * is being written; an older one is being committed or is pending. The youngest record of a key
 * holds. A log whose end is torn ends before the torn record.
 *
 * Any thread, but for open and close. Spec of the format: docs/dev/writing/stage-log.md. */
#ifndef TRANSLATE_STAGE_STAGE_H
#define TRANSLATE_STAGE_STAGE_H

#include "base/core/buf.h"
#include "translate/contract/store.h"

struct stage;
struct view;
struct view_attr;

/* stage_open - open the stage in an existing directory and read its logs. A log's name has its
 * generation, 1 or more, for every process. read_only: begin and repair no log; for a process that
 * commits. Returns 0 with *ret new; -EBADMSG the logs are damaged elsewhere than at their end. */
int stage_open(int dir_fd, bool read_only, struct stage **ret, struct err *e) NZ_MUST_USE;
void stage_close(struct stage *s);

/* stage_empty - whether nothing is staged. stage_bytes - bytes of all records; stage_left_bytes -
 * bytes of those that the last commit left. */
bool stage_empty(struct stage *s);
uint64_t stage_bytes(struct stage *s);
uint64_t stage_left_bytes(struct stage *s);

/* stage_kind - the stage's information on a key. */
enum stage_kind {
	STAGE_NOTHING,  /* no entry: the dataset has the answer */
	STAGE_DATA,
	STAGE_DIR,
	STAGE_GONE,     /* it and everything below it */
	STAGE_ALIAS,    /* the dataset's entry of another key */
};

struct stage_entry {
	enum stage_kind kind;
	uint64_t generation;
	uint64_t len;           /* DATA: bytes */
	int64_t mtime_ns;
	uint64_t version;       /* another one for every record */
	const char *base_key;   /* ALIAS; in the caller's arena-like buffer, see stage_find */
};

/* stage_find - a key's entry. GONE also if a directory above it was removed. name: room of
 * STORE_KEY_MAX + 1 for base_key; may be NULL. */
void stage_find(struct stage *s, const char *key, struct stage_entry *ret, char *name);
/* stage_read - read exactly len bytes of a DATA entry. -EIO damaged; -ESTALE it was replaced
 * meanwhile. */
int stage_read(struct stage *s, const char *key, const struct stage_entry *x, uint64_t off,
	       uint8_t *out, size_t len, struct err *e) NZ_MUST_USE;

/* stage_put, stage_mkdir, stage_gone, stage_alias - one record each, whole or not at all: on
 * failure (-ENOSPC, -EIO ...) the log is as it was. */
int stage_put(struct stage *s, const char *key, const uint8_t *data, size_t len,
	      struct err *e) NZ_MUST_USE;
/* stage_put_file - the same with len bytes of a descriptor. */
int stage_put_file(struct stage *s, const char *key, int fd, uint64_t len,
		   struct err *e) NZ_MUST_USE;
int stage_mkdir(struct stage *s, const char *key, struct err *e) NZ_MUST_USE;
/* bare: the dataset has no such file, and no record of it is kept unless an earlier generation has
 * it. */
int stage_gone(struct stage *s, const char *key, bool bare, struct err *e) NZ_MUST_USE;
int stage_alias(struct stage *s, const char *key, const char *base_key,
		struct err *e) NZ_MUST_USE;
/* stage_move - one record: the DATA entry `from` becomes `to`, and `from` is removed; bare: as for
 * stage_gone. An ALIAS takes two, so that between them both exist. */
int stage_move(struct stage *s, const char *from, const char *to, bool bare,
	       struct err *e) NZ_MUST_USE;
/* stage_sync - put all appended records on the disk. If a sync of a log failed, the log stays -EIO
 * until it is committed: the system reports a failed write to the disk only once. */
int stage_sync(struct stage *s, struct err *e) NZ_MUST_USE;

/* stage_freeze - end a generation, *ret, after the records so far; further records belong to the
 * next one. At most one generation is frozen. Records that logs held when they were opened, and
 * thawed ones, count as appended; those that a commit left do not. -ENODATA: nothing was
 * appended. */
int stage_freeze(struct stage *s, uint64_t *ret, struct err *e) NZ_MUST_USE;
/* stage_touch - count the records that a commit left as appended again, so that the next commit
 * includes them. */
void stage_touch(struct stage *s);
/* stage_thaw - the commit of the frozen generation failed: commit it again with the next one. */
void stage_thaw(struct stage *s);
/* stage_retire - the dataset has the frozen generation: drop it, except the keys of `left`, which
 * stay staged, in the log that is being written. That log is synced if one of the dropped logs may
 * have been. */
int stage_retire(struct stage *s, const struct buf *left, struct err *e) NZ_MUST_USE;
/* stage_sweep - release the disk space of dropped logs, which takes long for large ones: call it
 * when no request waits. stage_close includes it. */
void stage_sweep(struct stage *s);

/* stage_drop - drop everything that is staged, except the keys of `left`, without a commit.
 * -ENODATA: nothing is staged. No generation may be frozen. */
int stage_drop(struct stage *s, const struct buf *left, struct err *e) NZ_MUST_USE;

/* stage_each - call fn for every key of generations up to `generation` that has an entry of its
 * own, in the order of strcmp. A directory that was removed and made again is reported as GONE: the
 * dataset's entries below it are hidden, and keys that follow exist. fn returns false to stop. No
 * other thread may append to these generations meanwhile. Returns 0; -ENOMEM and others: keys are
 * missing. */
int stage_each(struct stage *s, uint64_t generation,
	       bool (*fn)(void *arg, const char *key, const struct stage_entry *x), void *arg);

/* stage_store - a store of the entries of generations up to `generation` over `base`. Both
 * borrowed; store_close it. While another thread stages, a listing may have a name twice. */
int stage_store(struct stage *s, uint64_t generation, struct store *base, struct store **ret,
		struct err *e) NZ_MUST_USE;

/* stage_store_hide - the store does not have the keys that `hides` is true for, of base and stage.
 * Before other threads use it. arg: borrowed. */
void stage_store_hide(struct store *s, bool (*hides)(const void *arg, const char *key),
		      const void *arg);

/* view_store - the files of a view of a tree as a store. The view is borrowed. */
int view_store(struct view *v, struct store **ret, struct err *e) NZ_MUST_USE;
/* view_find - look up a key in the view of a view_store, as view_ops.lookup does it by name.
 * -ENOENT also if a file is above the key. */
int view_find(struct store *s, const char *key, struct view_attr *ret,
	      struct err *e) NZ_MUST_USE;
/* view_why_unknown - the error of a file that a view shows without knowing its size. why: as the
 * look-up set it. */
int view_why_unknown(const char *key, const struct err *why, struct err *e);
/* view_read - read exactly len bytes of a file of a view. name: of the file, for messages. -EIO it
 * ends before. */
int view_read(struct view *v, uint64_t id, const char *name, uint64_t off, uint8_t *out,
	      size_t len, struct err *e) NZ_MUST_USE;

/* ---- for the writable tree ---- */

/* stage_old_keys - append the keys of one kind whose record is of a generation up to this one,
 * each with its NUL. Returns 0 or -ENOMEM. */
int stage_old_keys(struct stage *s, uint64_t generation, enum stage_kind kind, struct buf *out,
		   struct err *e) NZ_MUST_USE;

/* stage_alive - whether the key, or one below it, exists in the stage. */
bool stage_alive(struct stage *s, const char *key);

/* stage_hides - whether the dataset's own entries at and below key were removed. */
bool stage_hides(struct stage *s, const char *key);

/* stage_link - as stage_move, but `from` stays. */
int stage_link(struct stage *s, const char *from, const char *to, struct err *e) NZ_MUST_USE;

#endif
