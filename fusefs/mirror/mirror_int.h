/* SPDX-License-Identifier: BSD-3-Clause */
/* mirror_int.h - shared by the parts of the mirror.
 *
 * Ids: slot << 36 | id. Slot 0 holds the real entries: the root, and a node for each entry that the
 * kernel references. Each other slot is one dataset in one state, with the ids of its view: when
 * the dataset changes it gets another slot, and the old one answers ESTALE. A dataset that is
 * closed for lack of room keeps its slot; if it is unchanged when it is opened again, its ids stay
 * valid.
 *
 * Slots, epochs (fusefs/ops/epoch.h) and snapshots (translate/stage/snapshot.h) all hold the view
 * of a dataset in one state, and are three for a reason. A request takes its epoch without a lock,
 * and the next epoch is opened after the last request of the one before. A slot is closed and
 * opened again, with the same ids, so that few of many datasets are open; its requests share the
 * lock of the tables. Snapshots of one dataset are open next to each other, as long as readers hold
 * them.
 *
 * One lock protects all tables. It is held for look-ups in memory only, never during access to a
 * file or a view. */
#ifndef FUSEFS_MIRROR_MIRROR_INT_H
#define FUSEFS_MIRROR_MIRROR_INT_H

#include "base/core/list.h"
#include "base/core/map.h"
#include "fusefs/mirror/view.h"
#include "fusefs/app/dataset_names.h"

#define SLOT_SHIFT 36
#define SLOT_LIMIT ((uint32_t)1 << 18)
#define INNER_LIMIT ((uint64_t)1 << SLOT_SHIFT)
#define SHAPED_LIMIT 32768 /* slots of names with a rule that the kernel knows */
#define UNKNOWN_ID (INNER_LIMIT - 1) /* in a listing: an entry without a reference of the kernel */
#define IMAGE_ID 2                   /* id of the single file of a view by nc_view_open */

/* mirror_node - a real entry that the kernel references, identified by its path and inode: another
 * file at the path is another node. */
struct mirror_node {
	struct link by_id, by_path; /* by_path: while it is the newest node of the path */
	bool listed;                /* in by_path */
	uint64_t id;
	char *path; /* below the base, "" for it; owned */
	dev_t dev;
	ino_t ino;
	mode_t type;     /* S_IFMT bits */
	bool in_dataset; /* a directory that is a Zarr store, or is inside one */
	bool fresh;      /* a file created in this mount: it may become a dataset */
	bool due;        /* it becomes a dataset with the release of its last writer */
	uint32_t writers; /* open files with write access */
	uint32_t opens;   /* open files */
	int fd;           /* while opens > 0: a descriptor of the entry, whatever its name; owned */
	bool reads;       /* fd was opened for reading */
	uint64_t known;  /* references of the kernel */
};

enum slot_state { SLOT_CLOSED, SLOT_OPENING, SLOT_OPEN, SLOT_CLOSING, SLOT_FAILED };

/* slot - one dataset with one converted view. All fields except the constants are under the lock;
 * the view may be used without it between slot_get and slot_put. A writable view validates its
 * dataset itself, and has no source. */
struct slot {
	struct link by_path;
	uint32_t number;
	enum name_kind kind; /* of its converted view */
	char *path;     /* of the dataset, below the base; owned */
	char *name;     /* of its converted view; owned */
	struct stat st; /* when the slot was created */

	enum slot_state state;
	bool stale; /* the dataset changed: the slot is never opened again */
	bool written; /* it was writable once: our commits change size and time of a file */
	uint32_t handles; /* open files among the users */
	struct view *view;     /* OPEN, CLOSING; with its source */
	struct source *source; /* parked: of the view that was closed */
	uint32_t users;           /* requests, including those that wait until it is open */
	uint64_t used;            /* the mirror's clock at the last request */
	uint64_t known;           /* references of the kernel to all of its ids */
	int64_t polled_ms;        /* time of the last source_poll */
	struct err *error;        /* FAILED: the reason; owned */
	int64_t failed_ms;
	bool reported; /* the reason was reported to a request */
};

struct mirror_listing;
struct mirror_walk;
enum { LISTINGS = 8, WALKS = 32 };

struct mirror {
	struct view base;
	const struct app *setup;
	int fd; /* of the directory */
	uint64_t seed;

	dev_t mount_dev; /* directory of the mountpoint, if it lies in the mirrored directory */
	ino_t mount_ino;
	char *mount_name; /* NULL: none */

	pthread_mutex_t lock;
	pthread_cond_t moved; /* a slot's state changed, or its last user ended */
	struct map nodes_by_id, nodes_by_path, slots_by_path;
	uint64_t next_id;
	struct slot **slots; /* by number; NULL: no slot has the number */
	size_t n_slots, cap_slots;
	/* slots of names with a rule, and where to look for one to free */
	size_t n_shaped, next_shaped;
	uint32_t next_free;  /* where the search for a free number begins when all were used */
	/* OPENING, OPEN and CLOSING; at most limits.open_datasets, not counting those with open
	 * files */
	struct slot **open;
	struct slot **parked;
	size_t n_open, cap_open, n_parked, cap_parked, max_parked;
	uint64_t clock;
	/* when openings began to fail for lack of a resource, and when they did so last */
	int64_t short_ms, short_last_ms;

	uint32_t n_skips_reported;    /* lock */
	uint64_t skips_reported[256]; /* lock: hashes of the messages of mirror_log_skip */

	struct mirror_listing *listings[LISTINGS];
	uint64_t listing_clock;
	struct mirror_walk *walks[WALKS];
	struct list_link handles; /* of files that are open for writing */
	bool finished; /* writable views have been finished for good */
};

/* where - a copy of a real entry's node. */
struct where {
	char *path; /* owned */
	uint64_t id;
	dev_t dev;
	ino_t ino;
	mode_t type;     /* S_IFMT bits */
	bool in_dataset; /* as in mirror_node */
};

static inline void where_free(const struct where *w)
{
	free(w->path);
}

/* auto_where - freed when the variable goes out of scope; initialise it at once. */
#define auto_where __attribute__((cleanup(where_free))) struct where

static inline struct mirror *mirror_of(struct view *v)
{
	return CONTAINER_OF(v, struct mirror, base);
}

uint64_t mirror_hash(const struct mirror *m, const char *text, size_t len);

/* mirror_has - true if the entry at path, below the base, is a dataset with a converted view of
 * this kind; NAME_PLAIN: if it is a dataset. */
bool mirror_has(const struct mirror *m, const char *path, enum name_kind kind);
/* mirror_looks - the same for a listing: 1, 0, or -errno for lack of a resource, because the next
 * listing may then differ. */
int mirror_looks(const struct mirror *m, const char *path, enum name_kind kind);

/* mirror_look_up - an entry of a real directory, with one more reference of the kernel: a real
 * entry or a converted view. */
int mirror_look_up(struct mirror *m, uint64_t id, const char *name, struct view_attr *ret,
		   struct err *e);

/* Real entries: passthrough.c. */

/* real_stat - lstat of path. -ENOENT: proven absence. */
int real_stat(const struct mirror *m, const char *path, struct stat *ret, struct err *e);
/* real_probe - the same for an entry of a directory; -ENOENT for the mountpoint and for a name that
 * is too long. *ret_path: new. */
int real_probe(const struct mirror *m, const struct where *dir, const char *name, char **ret_path,
	       struct stat *ret, struct err *e);
/* real_is_mountpoint - true if this entry is the mountpoint, which must not be accessed. */
bool real_is_mountpoint(const struct mirror *m, dev_t dev, ino_t ino, const char *name);
/* real_attr - the attributes of an entry. The caller sets id. */
void real_attr(const struct stat *st, struct view_attr *ret);

/* real_root, real_free - create the root's node; free all nodes. */
int real_root(struct mirror *m, const struct stat *st, struct err *e);
void real_free(struct mirror *m);
/* real_copy - a copy of a node. *ret is written in any case: its path is new, or NULL on failure.
 * -ESTALE. */
int real_copy(struct mirror *m, uint64_t id, struct where *ret, struct err *e);
/* real_where - the same for a directory. -ESTALE; -ENOTDIR, with its path. */
int real_where(struct mirror *m, uint64_t id, struct where *ret, struct err *e);
/* real_known_id - id of the node of this path, UNKNOWN_ID if there is none. */
uint64_t real_known_id(struct mirror *m, const char *path);
/* real_enter - the node of an existing entry, with one more reference of the kernel. Takes path. */
int real_enter(struct mirror *m, const struct where *dir, char *path, const struct stat *st,
	       struct view_attr *ret, struct err *e);
int real_getattr(struct mirror *m, uint64_t id, struct view_attr *ret, struct err *e);
/* real_open - view_ops.open of a real file: reads do not open it again until real_closed. */
int real_open(struct mirror *m, uint64_t id, struct err *e);
int real_read(struct mirror *m, uint64_t id, uint64_t off, size_t len, uint8_t *room,
	      struct span *ret, struct err *e);
int real_readlink(struct mirror *m, uint64_t id, struct buf *out, struct err *e);
/* real_xattr - view_ops.xattr of a real entry: the file system's attributes in "user.*", without
 * the names that the mount reserves. */
int real_xattr(struct mirror *m, uint64_t id, const char *name, struct buf *out, struct err *e);
int real_setxattr(struct mirror *m, uint64_t id, const char *name, const uint8_t *value,
		  size_t len, int flags, struct err *e);
void real_forget(struct mirror *m, uint64_t id, uint64_t count);

/* Datasets: slots.c. */

/* slot_of - the slot of a dataset in its present state, with one more reference of the kernel.
 * Strings are copied. A new number is used if there is no slot, or if the dataset changed. */
int slot_of(struct mirror *m, enum name_kind kind, const char *path, const char *name,
	    const struct stat *st, uint32_t *ret, struct err *e);
/* slot_is_at - true if there is a slot of this kind and name for the file of st at path, so that
 * its format is known. */
bool slot_is_at(struct mirror *m, enum name_kind kind, const char *path, const char *name,
		const struct stat *st);
/* slot_get - get the slot with its dataset open; finish with slot_put. -ESTALE: it changed, or
 * there is none; otherwise the error of opening it. */
int slot_get(struct mirror *m, uint32_t number, struct slot **ret, struct err *e);
/* slot_put - known: references to its ids that the kernel gets with this answer. */
void slot_put(struct mirror *m, struct slot *s, uint64_t known);
/* slot_end - end a request to a slot with its result: an error of its view is mapped, and the
 * attributes of an entry (NULL: none) become the mirror's. known: as for slot_put, on success. */
int slot_end(struct mirror *m, struct slot *s, int rc, struct view_attr *a, uint64_t known,
	     struct err *e);
/* slot_map_error - the code for an error of its view: -ESTALE if the dataset changed. */
int slot_map_error(struct mirror *m, struct slot *s, int rc, struct err *e);
/* slot_check - call it after bytes were read: -ESTALE if the dataset may have changed. */
int slot_check(struct mirror *m, struct slot *s, struct err *e);
/* slot_at - where a slot's dataset is. */
struct slot_at {
	enum name_kind kind; /* of its converted view */
	char *path;          /* owned */
	struct stat st;
};

static inline void slot_at_free(const struct slot_at *at)
{
	free(at->path);
}

/* auto_slot_at - freed when the variable goes out of scope; initialise it at once. */
#define auto_slot_at __attribute__((cleanup(slot_at_free))) struct slot_at

/* slot_lookup - where the dataset of a slot is, open or not. -ESTALE. */
int slot_lookup(struct mirror *m, uint32_t number, struct slot_at *ret, struct err *e);
/* slot_revalidate - st is the present state of the slot's path (NULL: it does not exist): mark the
 * slot stale if it differs. */
int slot_revalidate(struct mirror *m, uint32_t number, const struct stat *st, struct err *e);
/* slot_forget - the kernel dropped count references to its ids. */
void slot_forget(struct mirror *m, uint32_t number, uint64_t count);
/* slot_if_open - like slot_get for a slot that is open; NULL: it is not. Opens nothing. */
struct slot *slot_if_open(struct mirror *m, uint32_t number);
/* slot_pin, slot_unpin - an open file of a writable view: the slot, which the caller uses, stays
 * open and in use until slot_unpin. known: as for slot_put. */
void slot_pin(struct mirror *m, struct slot *s, uint64_t known);
void slot_unpin(struct mirror *m, struct slot *s);
/* slot_retire - call it before a dataset is removed or renamed: commits its pending writes, and
 * marks its slot stale. -EBUSY: it is in use. */
int slot_retire(struct mirror *m, uint32_t number, struct err *e);
/* slots_flush_below - the same for all datasets that were written through this mount at a path or
 * below it, which is about to be renamed or removed. -EBUSY: one of them still has open files; or
 * the error of a commit. */
int slots_flush_below(struct mirror *m, const char *path, struct err *e);
/* slots_sync - commit confirmed writes of this mount to datasets at a path or below it; "": all.
 * Returns the error of one of them; the others are logged. */
int slots_sync(struct mirror *m, const char *path, struct err *e);
/* slots_finish - view_write_ops.finish of all open datasets. */
int slots_finish(struct mirror *m, struct err *e);
void slots_free(struct mirror *m);

/* Writing: handles.c, passthrough_write.c, import.c. */

/* number_of, inner_of, id_of - the two parts of an id. */
static inline uint32_t number_of(uint64_t id)
{
	return (uint32_t)(id >> SLOT_SHIFT);
}

static inline uint64_t inner_of(uint64_t id)
{
	return id & (INNER_LIMIT - 1);
}

static inline uint64_t id_of(uint32_t number, uint64_t inner)
{
	return (uint64_t)number << SLOT_SHIFT | inner;
}

extern const struct view_write_ops mirror_write_ops;
/* write_handles_free - free the handles of files that are open when the mirror is closed: after an
 * unmount the kernel does not release them. */
void write_handles_free(struct mirror *m);

/* mirror_show - convert an attribute of a dataset's view to the mirror's. */
void mirror_show(const struct mirror *m, const struct slot *s, struct view_attr *a);
/* mirror_read - view_ops.read. */
int mirror_read(struct view *v, uint64_t id, uint64_t fh, uint64_t off, size_t len,
		uint8_t *room, struct span *ret, struct err *e);

/* real_opened - count one open file more: fd, which is duplicated; -1: a file that cannot be
 * opened. reads: real_read uses it; writes: it has write access. real_closed - one less. */
void real_opened(struct mirror *m, uint64_t id, int fd, bool reads, bool writes);
void real_closed(struct mirror *m, uint64_t id);
/* real_set_fresh - the file was created in this mount. */
void real_set_fresh(struct mirror *m, uint64_t id);
/* real_writer_last - count one writer of a node less. Returns whether it was the last one, and the
 * file is due to become a dataset. */
bool real_writer_last(struct mirror *m, uint64_t id);
/* real_flushed - a writer flushed a file: whether it was created in this mount, and has no other
 * writer. If it has one, it is due to become a dataset with the release of the last one. */
bool real_flushed(struct mirror *m, uint64_t id);
/* real_renamed_due - a file got a name that a dataset may have: whether it has writers, and is due
 * with the release of the last one. */
bool real_renamed_due(struct mirror *m, uint64_t id);
/* real_moved - the node of a path, and those below it, have been renamed. */
void real_moved(struct mirror *m, const char *from, const char *to);
/* real_open_at - open the directory of a path; *ret_name: its last component, within path. */
int real_open_at(const struct mirror *m, const char *path, const char **ret_name,
		 struct err *e);
/* real_open_dir - open a directory for reading, if its path still leads to the same inode;
 * -ESTALE. */
int real_open_dir(const struct mirror *m, const struct where *dir, struct err *e);
/* real_open_file - the same for a regular file, with these flags of open(2). */
int real_open_file(const struct mirror *m, const struct where *n, int flags, struct err *e);
/* real_read_up_to - read len bytes at off, fewer only at the end of the file. Returns 0, or a
 * negative errno: -EINVAL beyond the maximum size of a file. */
int real_read_up_to(int fd, uint8_t *out, size_t len, uint64_t off, size_t *ret);

/* real_fail - as err_sys, for a system call on a real entry. EINVAL and EFBIG are normal answers to
 * the program: they have no text, and are not logged. */
int real_fail(struct err *e, int errnum, const char *fmt, ...) NZ_PRINTF(3, 4);

/* passthrough_... - the operations of a writable view on real entries; names are not hidden
 * ones. */
int passthrough_create(struct mirror *m, const struct where *dir, const char *name, int flags,
		       mode_t mode, int *ret_fd, struct view_attr *ret, struct err *e);
int passthrough_open(struct mirror *m, uint64_t id, int flags, struct err *e);
int passthrough_setattr(struct mirror *m, uint64_t id, int fd, const struct view_set *set,
			struct view_attr *ret, struct err *e);
int passthrough_symlink(struct mirror *m, const struct where *dir, const char *name,
			const char *text, struct view_attr *ret, struct err *e);
int passthrough_mkdir(struct mirror *m, const struct where *dir, const char *name, mode_t mode,
		      struct view_attr *ret, struct err *e);
int passthrough_remove(struct mirror *m, const struct where *dir, const char *name, bool is_dir,
		       struct err *e);
int passthrough_rename(struct mirror *m, const struct where *dir, const char *name,
		       const struct where *to_dir, const char *to_name, unsigned flags,
		       struct err *e);
int passthrough_link(struct mirror *m, uint64_t id, const struct where *dir, const char *name,
		     struct view_attr *ret, struct err *e);

/* new_wanted - true if a new file (or directory) of this name in a directory is to become a dataset
 * of the other format; gives the dataset's name. */
bool new_wanted(const struct mirror *m, const struct where *dir, const char *name, bool is_dir,
		char out[NAME_BYTES]);
/* new_file - create an empty netCDF-4 file at path. */
int new_file(struct mirror *m, const char *path, struct err *e);

/* Listing: listing.c. */

int real_list(struct mirror *m, uint64_t id, uint64_t cookie, view_emit *emit, void *arg,
	      struct err *e);
void listings_free(struct mirror *m);

/* Datasets that a directory does not show: skipped.c. */

enum { MIRROR_SKIPS_LOGGED = 20 }; /* limit for one directory */

/* mirror_log_skip - log that a dataset in dir is not shown as `name`, once in a mount's life. */
void mirror_log_skip(struct mirror *m, const char *dir, const char *source, const char *name,
		     const char *reason);
/* mirror_warn_top - call it before mounting: warn about datasets that the top directory does not
 * show, and about a directory without datasets. Reads its names, and opens few files. */
void mirror_warn_top(const struct mirror *m);

/* Walks: programs that list a directory and then remove the entries; listing.c. */

/* walk_removed - this request removed a name in a directory. */
void walk_removed(struct mirror *m, const struct where *dir, const char *name);
/* walk_touch - this request removed a name elsewhere, or lists a directory of the walk. */
void walk_touch(struct mirror *m, bool listing);
/* walk_gone - find a name that disappeared with its dataset when the process of this request
 * removed another name of it. take: it disappears for the process as well. Returns 0 or -ENOENT. */
int walk_gone(struct mirror *m, const struct where *dir, const char *name, bool take,
	      struct view_attr *ret);
/* walk_gone_id - the same for an id from walk_gone. ret_name: NULL, or gets its name and its
 * directory. */
struct walk_name {
	uint64_t dir;
	char name[NAME_BYTES];
};
bool walk_gone_id(struct mirror *m, uint64_t id, bool take, struct view_attr *ret,
		  struct walk_name *ret_name);

#endif
