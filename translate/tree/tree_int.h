/* SPDX-License-Identifier: BSD-3-Clause */
/* tree_int.h - shared by the parts of the writable tree.
 *
 * Locks, in the order in which they are taken: the tree's (read: to look at names or content;
 * write: to change names, and in a commit while the dataset changes), a work's, the tables' (no
 * system call under it), the stage's own. The commit thread's state has a lock of its own that is
 * never held with another. */
#ifndef TRANSLATE_TREE_TREE_INT_H
#define TRANSLATE_TREE_TREE_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/list.h"
#include "base/core/map.h"
#include "base/os/lock.h"
#include "base/core/str.h"
#include "translate/stage/stage.h"
#include "translate/tree/tree.h"

/* dirty_file - content of a file that is being written, or that has no name any more: in memory, or
 * in an unnamed file. */
struct dirty_file {
	pthread_mutex_t lock;
	bool loaded;        /* lock: it has content; else the stage or the dataset has it */
	bool dirty;         /* lock: written since the last flush */
	bool cut;           /* lock: made or truncated by open, and nothing written yet */
	uint8_t *mem;       /* lock */
	size_t cap;         /* lock; of the tree's budget */
	int fd;             /* lock; -1: in memory */
	uint64_t size;      /* lock */
	uint64_t run;       /* lock: [0, run) was written since the last flush */
	bool elsewhere;     /* lock: other bytes were written as well, or its size was set */
	int64_t changed;    /* lock: ns since 1970 */
	_Atomic uint32_t writers; /* handles that write; it increases only under the tree's lock */
};

/* tree_node - a name that the kernel knows, or that is open. */
struct tree_node {
	struct link by_id, by_key; /* in the tables of those names */
	struct tree *tree;
	uint64_t id;
	char *key; /* tree; owned; "" the root */
	bool is_dir;
	_Atomic bool gone;  /* removed or replaced; in no table by key */
	_Atomic bool fresh; /* created, and not staged yet */
	_Atomic bool opened; /* opened for reading since the kernel knows it */
	uint64_t known;     /* tables: references of the kernel */
	uint32_t users;     /* tables: handles, and requests that run */
	struct dirty_file *_Atomic work; /* set once, until the node goes */
	uint64_t stamp;     /* tables: of the content that the kernel may have cached */
	mode_t mode;        /* tables; 0: the mode of the dataset */
};

struct handle {
	struct list_link link; /* tables: of those that are open */
	struct tree_node *node;
	bool writes, append;
	_Atomic bool wrote;
};

/* pin - a metadata file that is staged as it was shown before a commit. */
struct pin {
	char *key; /* owned */
	struct buf doc;
};

/* held_chunk - a file of the dataset that is shown with the bytes that were written. */
struct held_chunk {
	char *key;             /* owned */
	size_t dir;            /* number of its bytes that are the array's directory */
	struct dirty_file *in; /* of the tree's holds */
	uint64_t at, size;
	int64_t changed;       /* ns since 1970 */
	uint64_t stamp;
	bool cut;              /* the array was shorter meanwhile: the dataset may have less of
			        * it */
};

/* holds - written by the commit thread under the write lock. */
struct holds {
	struct held_chunk *v; /* sorted by key */
	size_t n, cap;
	struct dirty_file *works[64]; /* the bytes that one commit has held; the oldest first */
	size_t n_works;
};

struct tree_listing;
enum { RW_LISTINGS = 8 };

struct tree {
	struct view base;
	struct snapshots *snapshots;
	struct stage *stage;
	struct tree_rw_options o;
	struct store dataset;  /* the latest snapshot as readers see it: resolve.c */
	struct store *content; /* the stage over it: all but works */

	pthread_rwlock_t names; /* "the tree's lock" */
	pthread_mutex_t lock;   /* "the tables'" */
	struct map by_id;       /* tables: all nodes */
	struct map by_key;      /* tables: nodes that have a name and are below the root */
	_Atomic uint64_t n_fresh; /* nodes that are fresh */
	_Atomic uint64_t n_opened; /* nodes that were opened for reading */
	struct holds holds; /* held_chunks.c */
	struct map removed_names, emptied_dirs; /* tree: removed_names.c */
	uint64_t next_id, seed;
	struct tree_node *top;    /* what VIEW_ROOT is: the root, or the directory above it */
	bool removed;             /* tree: the directory above it does not have the root */
	struct list_link handles; /* that are open */
	_Atomic uint64_t buffered; /* bytes of memory in works */
	_Atomic uint64_t stamps;
	struct tree_listing *listings[RW_LISTINGS];
	uint64_t listing_clock;

	/* The commit thread: commit_thread.c. */
	pthread_mutex_t commit_lock;
	pthread_cond_t wake, ended; /* of the thread; of requests that wait for it */
	pthread_t thread;
	bool started, stopping, finishing;
	uint64_t wanted, done;     /* commits that were requested, and that ended */
	int64_t written_ms;        /* the last record */
	bool fresh_records;        /* since the last attempt */
	bool committing;
	uint64_t attempts;         /* that ended */
	bool rootless;             /* the thread's: result of root_check */
	bool held;                 /* the thread's: the last commit left records that only a commit
				    * that a request waits for takes */
	_Atomic bool lost;         /* a commit succeeded, but its result could not be opened */
	bool quiet;                /* the thread's: it holds `names` */
	int last_rc;               /* of the last attempt */
	uint32_t busy_times;       /* attempts in a row that ended with EAGAIN */
	int64_t retry_ms, failed_ms;
	struct err last;           /* its error */
	bool renew;                /* the dataset is to be opened again */
	uint64_t renewed;
	struct pin *pins;          /* the commit thread's, and after its end the closing thread's */
	size_t n_pins, cap_pins;
	_Atomic uint64_t pinned;   /* stage_bytes while nothing but pins is staged; 0: there is
	                            * more */
	_Atomic bool stale;        /* another program changed the dataset */
	_Atomic int64_t polled_ms;
};

static inline struct tree *tree_of(struct view *v)
{
	return CONTAINER_OF(v, struct tree, base);
}

/* tree_is_above - whether a node is the directory above the root. */
static inline bool tree_is_above(const struct tree *t, const struct tree_node *n)
{
	return t->o.name && n == t->top;
}

static inline struct tree *read_lock(struct tree *t)
{
	(void)pthread_rwlock_rdlock(&t->names);
	return t;
}

static inline struct tree *write_lock(struct tree *t)
{
	(void)pthread_rwlock_wrlock(&t->names);
	return t;
}

static inline void tree_unlock(struct tree *t)
{
	(void)pthread_rwlock_unlock(&t->names);
}

static inline void tree_scope_end(struct tree *const *t)
{
	tree_unlock(*t);
}

/* TREE_SCOPE - the tree's lock until the end of the block: TREE_SCOPE(read_lock(t)); */
#define TREE_SCOPE(locked)                                                                     \
	__attribute__((cleanup(tree_scope_end), unused)) struct tree *const tree_scope_ = locked

/* ---- nodes ---- */

enum found_kind { FOUND_NOTHING, FOUND_DIR, FOUND_WORK, FOUND_FILE };

/* found - the result of a look-up. */
struct found {
	enum found_kind kind;
	bool unknown;
	uint64_t size;
	int64_t changed;        /* ns since 1970; 0: when the dataset was */
	uint64_t stamp;         /* FILE: changes with the content */
};

int nodes_init(struct tree *t, struct err *e);
void nodes_free(struct tree *t);
/* node_get - the node of an id, referenced until node_put. -ESTALE. */
int node_get(struct tree *t, uint64_t id, struct tree_node **ret, struct err *e) NZ_MUST_USE;
/* node_dir - the same; -ENOTDIR. */
int node_dir(struct tree *t, uint64_t id, struct tree_node **ret, struct err *e) NZ_MUST_USE;
void node_put(struct tree_node *n); /* takes NULL */
static inline void node_auto_put(struct tree_node **n)
{
	node_put(*n);
}
/* auto_node - a reference, or NULL, that is dropped at the end of its block. */
#define auto_node __attribute__((cleanup(node_auto_put))) struct tree_node
/* node_find - the node of a key, referenced; NULL: there is none. */
struct tree_node *node_find(struct tree *t, const char *key);
/* node_enter - the same, created if there is none. A node of the other kind is replaced. */
struct tree_node *node_enter(struct tree *t, const char *key, bool is_dir);
/* node_show - give the kernel a reference to the node of an entry that was found, with its
 * attributes. node_forget - drop references of the kernel. */
int node_show(struct tree *t, const char *key, const struct found *f, struct view_attr *ret,
	      struct err *e) NZ_MUST_USE;
void node_forget(struct tree *t, uint64_t id, uint64_t count);
/* node_detach - remove a node from the table by key. Under the write lock, as the following
 * functions. */
void node_detach(struct tree *t, struct tree_node *n);
/* node_rename - give a node another key. */
int node_rename(struct tree *t, struct tree_node *n, const char *key,
		struct err *e) NZ_MUST_USE;
/* nodes_below - the nodes whose key is below dir, referenced, in a new array of *ret_n. */
int nodes_below(struct tree *t, const char *dir, struct tree_node ***ret, size_t *ret_n,
		struct err *e) NZ_MUST_USE;
/* node_work - a node's work, created if there is none. */
int node_work(struct tree *t, struct tree_node *n, struct dirty_file **ret,
	      struct err *e) NZ_MUST_USE;
/* node_fresh - set whether a node is created and not staged yet. */
void node_fresh(struct tree *t, struct tree_node *n, bool is);
/* node_has_work - whether a node has content of its own: *ret is that. */
bool node_has_work(struct tree *t, struct tree_node *n, struct found *ret);

/* ---- works; all under the work's lock ---- */

struct dirty_file *work_new(void);
void work_free(struct tree *t, struct dirty_file *w);
void work_drop(struct tree *t, struct dirty_file *w); /* without content again */
int work_write(struct tree *t, struct dirty_file *w, uint64_t off, const uint8_t *data,
	       size_t len, struct err *e) NZ_MUST_USE;
int work_resize(struct tree *t, struct dirty_file *w, uint64_t size, struct err *e) NZ_MUST_USE;
/* work_read - *ret: the number of bytes, fewer at the end. */
int work_read(const struct dirty_file *w, uint64_t off, uint8_t *out, size_t len, size_t *ret,
	      struct err *e) NZ_MUST_USE;
/* work_stage - stage a work's content as that of key. */
int work_stage(struct tree *t, const struct dirty_file *w, const char *key,
	       struct err *e) NZ_MUST_USE;

/* ---- look-ups ---- */

/* tree_layers - make t->dataset and t->content, which is to be closed. Their callers hold the
 * tree's lock, so that they have one snapshot. */
int tree_layers(struct tree *t, struct err *e) NZ_MUST_USE;
/* tree_find - look up a key, under the tree's lock. A missing key is no error: FOUND_NOTHING.
 * Errors of the dataset are returned. e is also set if the result is unsure. */
int tree_find(struct tree *t, const char *key, struct found *ret, struct err *e) NZ_MUST_USE;
/* tree_find_below - the same without works: the content that a work is loaded from. */
int tree_find_below(struct tree *t, const char *key, struct found *ret,
		    struct err *e) NZ_MUST_USE;
/* tree_base - look up a key in a snapshot only. */
int tree_base(const struct snapshot *g, const char *key, struct found *ret,
	      struct err *e) NZ_MUST_USE;
void tree_attr(struct tree *t, const struct tree_node *n, const struct found *f,
	       struct view_attr *ret);
/* tree_read - read content that is not in a work. *ret: the number of bytes, fewer at the end.
 * -ENOENT. */
int tree_read(struct tree *t, const char *key, uint64_t off, uint8_t *out, size_t len,
	      size_t *ret, struct err *e) NZ_MUST_USE;
/* tree_copy - write the bytes of a key, which are not in a work, to a work at `at`. -ENOENT; if the
 * size of the file cannot be determined, the reason. */
int tree_copy(struct tree *t, const char *key, struct dirty_file *w, uint64_t at,
	      struct err *e) NZ_MUST_USE;
/* tree_load - load the content of a node into its work, unless that has content. Under the work's
 * lock. */
int tree_load(struct tree *t, struct tree_node *n, struct dirty_file *w,
	      struct err *e) NZ_MUST_USE;
/* tree_key - the key of an entry of a directory. -ENAMETOOLONG, -EINVAL. */
int tree_key(const struct tree_node *dir, const char *name, size_t len,
	     char out[STORE_KEY_MAX + 1], struct err *e) NZ_MUST_USE;

/* ---- operations ---- */

extern const struct view_write_ops tree_write_ops;

int tree_open(struct view *v, uint64_t id, int flags, struct view_handle *ret, struct err *e);
int tree_read_file(struct view *v, uint64_t id, uint64_t fh, uint64_t off, size_t len,
		   uint8_t *room, struct span *ret, struct err *e);
int tree_create(struct view *v, uint64_t dir, const char *name, int flags, mode_t mode,
		struct view_attr *ret_attr, struct view_handle *ret, struct err *e);
int tree_mkdir(struct view *v, uint64_t dir, const char *name, mode_t mode,
	       struct view_attr *ret, struct err *e);
int tree_unlink(struct view *v, uint64_t dir, const char *name, struct err *e);
int tree_rmdir(struct view *v, uint64_t dir, const char *name, struct err *e);
int tree_link(struct view *v, uint64_t id, uint64_t dir, const char *name,
	      struct view_attr *ret, struct err *e);
int tree_rename(struct view *v, uint64_t dir, const char *name, uint64_t to_dir,
		const char *to_name, unsigned flags, struct err *e);
/* tree_settle - check a file for its new name, and for the present one if that stays; then stage
 * data that were written to it before it is closed. Under the write lock. */
int tree_settle(struct tree *t, const char *key, const char *to, bool stays,
		struct err *e) NZ_MUST_USE;
/* rename_dir - rename a directory; `to` is an empty one or does not exist. Under the write lock. */
int rename_dir(struct tree *t, const char *from, const char *to, struct err *e) NZ_MUST_USE;
int tree_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr, view_emit *emit,
	      void *arg, struct err *e);
void tree_listings_free(struct tree *t);
/* tree_each - call fn for the entries of a directory, in no order. Names may be removed meanwhile,
 * and one that is written meanwhile may come twice. Under the tree's lock; under the write lock
 * each name comes once. */
int tree_each(struct tree *t, const char *key, store_emit *fn, void *arg,
	      struct err *e) NZ_MUST_USE;
/* tree_is_empty - 0 if a directory has no entries, else -ENOTEMPTY; errors as tree_each. shown: its
 * name in the message. */
int tree_is_empty(struct tree *t, const char *key, const char *shown,
		  struct err *e) NZ_MUST_USE;
/* handle_make - open a file; references the node once more. */
int handle_make(struct tree *t, struct tree_node *n, int flags, struct view_handle *ret,
		struct err *e) NZ_MUST_USE;
/* handles_free - free the handles that are open when the tree is closed: the kernel does not report
 * the close of files that were open when the mount was unmounted. Data that were not flushed are
 * dropped. */
void handles_free(struct tree *t);
/* keep_open - a file is about to lose its name: keep its content for its open handles. */
int keep_open(struct tree *t, struct tree_node *n, struct err *e) NZ_MUST_USE;
/* keep_undo - the file keeps its name after all: readers get it from the dataset or the stage
 * again. Under the write lock. */
void keep_undo(struct tree *t, struct tree_node *n);

/* check_work, check_moved - call options.check for key with the content of w, or, if w is NULL,
 * with that of `from`; from does not exist then, unless it stays. */
int check_work(struct tree *t, const char *key, const struct dirty_file *w,
	       struct err *e) NZ_MUST_USE;
int check_moved(struct tree *t, const char *key, const char *from, const struct dirty_file *w,
		bool stays, struct err *e) NZ_MUST_USE;

/* ---- the root: root.c ---- */

/* root_check - whether the root has its metadata, if the dataset has them; else -EIO, and
 * t->rootless. Under the tree's lock. root_doc - the index of a metadata file of the root, from 1
 * on; 0: the key is none. */
int root_check(struct tree *t, struct err *e) NZ_MUST_USE;
unsigned root_doc(const char *key);
/* root_drop_removals - drop the pending writes of a rootless tree if they are only removals;
 * otherwise -EIO, and e is unchanged. */
int root_drop_removals(struct tree *t, struct err *e) NZ_MUST_USE;
/* The directory above the root, if there is one: root_only - the error of entries other than the
 * root. root_mkdir, root_rmdir - as the operations. */
int root_only(const struct tree *t, struct err *e);
int root_mkdir(struct tree *t, const char *name, struct view_attr *ret, struct err *e);
int root_rmdir(struct tree *t, const char *name, struct err *e);

/* ---- pins: shown_documents.c ---- */

/* array_docs - the names of an array's metadata files. */
#define TREE_DOC_MAX ((size_t)16 << 20) /* bytes of one */
enum { ARRAY_DOCS = 2 };
extern const char *const array_docs[ARRAY_DOCS];

/* left - keys that stay staged after a commit, and those that the tree itself keeps. */
struct left {
	struct tree *t;
	struct snapshot *g; /* as the commit made it */
	uint64_t generation; /* that it has committed */
	struct buf keys; /* each with its NUL */
};

/* left_add - a copy of the key. */
int left_add(struct left *l, const char *key, struct err *e) NZ_MUST_USE;
/* pins_keep - show arrays as before that are longer only because others are: with the metadata file
 * that was committed, or with that of `old`. Under the write lock, while the committed generation
 * is frozen. */
int pins_keep(struct left *l, const struct snapshot *old, struct err *e) NZ_MUST_USE;
/* pins_settle - after a commit: find out whether only pins are staged. */
void pins_settle(struct tree *t);
/* pins_only - whether that is still so, or nothing is staged at all. Any thread. */
bool pins_only(const struct tree *t);
/* pins_drop - drop the pins if nothing else is staged. Under the write lock, by the thread. */
int pins_drop(struct tree *t, struct err *e) NZ_MUST_USE;
/* pins_have - whether a key is staged only because it is pinned. */
bool pins_have(struct tree *t, const char *key);
void pins_free(struct tree *t);

/* ---- chunks that keep their bytes: held_chunks.c ---- */

/* held_find - the held bytes of a key; NULL: none. Borrowed while the tree's lock is held. */
const struct held_chunk *held_find(const struct tree *t, const char *key);
/* held_read - as store_ops.read. */
int held_read(const struct held_chunk *x, const char *key, struct store_io *io,
	      struct err *e) NZ_MUST_USE;
/* held_keep - hold staged files that `now` shows with other bytes; drop those that were written
 * since. Under the write lock, while the committed generation is frozen. */
void held_keep(struct tree *t, const struct snapshot *old, const struct snapshot *now);
void held_free(struct tree *t);

/* ---- removals that a commit does in part, or too well: removed_names.c ---- */

/* names_have - whether a key is in t->removed_names: listings omit that key of the dataset; or in
 * t->emptied_dirs: that directory exists only because no program has removed it. Under the tree's
 * lock. names_drop - list the key again; a program has removed the directory. Under the write
 * lock. */
bool names_have(const struct tree *t, const struct map *m, const char *key);
void names_drop(const struct tree *t, struct map *m, const char *key);
/* emptied_each - call fn for the names of those right below a directory. Under the tree's lock. */
void emptied_each(const struct tree *t, const char *dir, store_emit *fn, void *arg);
/* removed_keep - after a commit, omit the keys that the committed generation removed and `now`
 * still has, and keep the directories above them that `now` has not; list keys again that a program
 * created again. Under the write lock, while the committed generation is frozen. */
int removed_keep(struct tree *t, const struct snapshot *old, const struct snapshot *now,
		 uint64_t generation, struct err *e) NZ_MUST_USE;
void removed_free(struct tree *t);

/* ---- commits ---- */

int commits_start(struct tree *t, struct err *e) NZ_MUST_USE;
/* commits_stop - finish: with a last commit; last: as for view_write_ops.finish. */
int commits_stop(struct tree *t, bool finish, bool last, struct err *e);
/* commits_room - wait while too much is staged, before staging more. The caller holds no lock. */
int commits_room(struct tree *t, struct err *e) NZ_MUST_USE;
/* commits_note - note that something was staged. */
void commits_note(struct tree *t);
/* commits_now - commit everything that is staged now, and wait for it. */
int commits_now(struct tree *t, struct err *e) NZ_MUST_USE;
/* commits_poll - check, once a second, whether another program changed the dataset. No lock. */
void commits_poll(struct tree *t);

#endif
