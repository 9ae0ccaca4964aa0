/* SPDX-License-Identifier: BSD-3-Clause */
/* mirror_int.h - shared by the parts of the mirror.
 *
 * Ids: slot << 36 | id. Slot 0 is the real entries: the root, and a node for each that the kernel
 * knows. A slot above it is one dataset in one state, with the ids of its view: when the dataset
 * changes it gets another slot, and the old one answers ESTALE. A dataset that is closed for want
 * of room keeps its slot; opened again and found the same, its ids mean what they meant.
 *
 * One lock for all tables. It is held for look-ups in memory only: never while a file is touched
 * or a view is asked. */
#ifndef FUSEFS_MIRROR_MIRROR_INT_H
#define FUSEFS_MIRROR_MIRROR_INT_H

#include "base/core/list.h"
#include "base/core/map.h"
#include "fusefs/mirror/view.h"
#include "fusefs/app/dataset_names.h"

#define SLOT_SHIFT 36
#define SLOT_LIMIT ((uint32_t)1 << 18)
#define INNER_LIMIT ((uint64_t)1 << SLOT_SHIFT)
#define UNKNOWN_ID (INNER_LIMIT - 1) /* in a listing: an entry that the kernel does not know */
#define IMAGE_ID 2                   /* of the one file of a view by nc_view_open */

/* mirror_node - a real entry that the kernel knows. It is its path and its inode: when another file
 * takes the path, that is another node. */
struct mirror_node {
	struct link by_id, by_path; /* by_path: while it is the path's latest */
	bool listed;                /* in by_path */
	uint64_t id;
	char *path; /* below the base, "" for it; owned */
	dev_t dev;
	ino_t ino;
	mode_t type;     /* S_IFMT bits */
	bool in_dataset; /* a directory that is a Zarr tree, or lies in one */
	bool fresh;      /* a file that was made in this mount: it may become a dataset */
	bool due;        /* with the release of its last writer */
	uint32_t writers; /* open files that write to it */
	uint32_t opens;   /* open files */
	int fd;           /* while there are any: what they have open, whatever its name; owned */
	bool reads;       /* fd was opened to read */
	uint64_t known;  /* the kernel was told so many times */
};

enum slot_state { SLOT_CLOSED, SLOT_OPENING, SLOT_OPEN, SLOT_FAILED };

/* slot - one dataset with one counterpart. Everything but the constants is under the lock; source
 * and view may be used without it between slot_get and slot_put. */
struct slot {
	struct link by_path;
	uint32_t number;
	enum name_kind kind; /* of its counterpart */
	char *path;     /* of the dataset, below the base; owned */
	char *name;     /* of its counterpart; owned */
	struct stat st; /* when the slot was made */

	enum slot_state state;
	bool stale; /* it changed: nothing is known of it any more */
	struct closing *rw; /* OPEN: not NULL: the view is a writable one, and its own judge of what
	                     * it stands on: source is NULL; owned */
	bool written; /* it was so once: commits of ours change size and time of a file */
	uint32_t handles; /* of the users: open files */
	struct source *source; /* OPEN; CLOSED: parked */
	struct view *view;
	uint32_t users;           /* requests, also those that wait for it to be open */
	uint64_t used;            /* the mirror's clock at the last of them */
	uint64_t known;           /* as of nodes, over all of its ids */
	int64_t polled_ms;        /* when source_poll was last called */
	struct err *error;        /* FAILED: why; owned */
	int64_t failed_ms;
	bool told; /* the reason has been given to somebody */
};

struct mirror_listing;
struct mirror_walk;
enum { LISTINGS = 8, WALKS = 32 };

struct mirror {
	struct view base;
	const struct app *setup;
	int fd; /* of the directory */
	uint64_t seed;

	dev_t mount_dev; /* directory of the mountpoint, where that lies in the directory */
	ino_t mount_ino;
	char *mount_name; /* NULL: there is none */

	pthread_mutex_t lock;
	pthread_cond_t moved; /* a slot's state changed, or it lost its last user */
	struct map nodes_by_id, nodes_by_path, slots_by_path;
	uint64_t next_id;
	struct slot **slots; /* by number; NULL: it is gone */
	size_t n_slots, cap_slots;
	uint32_t next_free;  /* where to look for a number when all have been given */
	struct slot **open;  /* OPENING and OPEN; at most cfg->open_datasets, but for those with
	                      * open files */
	struct slot **parked;
	size_t n_open, cap_open, n_parked, max_parked;
	uint64_t clock;
	int64_t short_ms, short_last_ms; /* when opening began to fail for want of something, and
					  * did so last */

	uint32_t n_skips_told;      /* lock */
	uint64_t skips_told[256];   /* lock: hashes of what mirror_log_skip has logged */

	struct mirror_listing *listings[LISTINGS];
	uint64_t listing_clock;
	struct mirror_walk *walks[WALKS];
	struct list_link handles; /* of files that are open for programs that may write */
	struct list_link closing; /* of writable views that are being closed: they have their
				   * lock still */
	bool finished;      /* they have been told that this is the end */
};

/* where - a directory: what is needed to look at its entries. */
struct where {
	char *path; /* owned */
	uint64_t id;
	dev_t dev;
	ino_t ino;
	bool in_dataset;
};

static inline struct mirror *mirror_of(struct view *v)
{
	return CONTAINER_OF(v, struct mirror, base);
}

uint64_t mirror_hash(const struct mirror *m, const char *text, size_t len);

/* mirror_has - whether what is at path, below the base, is a dataset with such a counterpart;
 * NAME_PLAIN: whether it is a dataset. */
bool mirror_has(const struct mirror *m, const char *path, enum name_kind kind);
/* mirror_looks - the same for a listing: 1, 0, or -errno where something was short, for then a
 * name may be in it that is not there the next time. */
int mirror_looks(const struct mirror *m, const char *path, enum name_kind kind);

/* mirror_look_up - an entry of a real directory, known once more: itself, or a counterpart. */
int mirror_look_up(struct mirror *m, uint64_t id, const char *name, struct view_attr *ret,
		   struct err *e);

/* Real entries: passthrough.c. */

/* real_stat - lstat of path. -ENOENT: proven absence. */
int real_stat(const struct mirror *m, const char *path, struct stat *ret, struct err *e);
/* real_probe - the same for an entry of a directory; the mountpoint is -ENOENT, and so is a name
 * that is too long. *ret_path: new. */
int real_probe(const struct mirror *m, const struct where *dir, const char *name, char **ret_path,
	       struct stat *ret, struct err *e);
/* real_is_mountpoint - whether this entry must not be touched. */
bool real_is_mountpoint(const struct mirror *m, dev_t dev, ino_t ino, const char *name);
/* real_attr - how an entry is shown. id is left to the caller. */
void real_attr(const struct stat *st, struct view_attr *ret);

/* real_root, real_free - the root's node, and all nodes. */
int real_root(struct mirror *m, const struct stat *st, struct err *e);
void real_free(struct mirror *m);
/* real_where - what a directory's id stands for; finish with free(ret->path). -ESTALE; -ENOTDIR. */
int real_where(struct mirror *m, uint64_t id, struct where *ret, struct err *e);
/* real_known_id - id of the node of this path, UNKNOWN_ID when it has none. */
uint64_t real_known_id(struct mirror *m, const char *path);
/* real_enter - the node of an entry that was found, known once more. path is taken. */
int real_enter(struct mirror *m, const struct where *dir, char *path, const struct stat *st,
	       struct view_attr *ret, struct err *e);
int real_getattr(struct mirror *m, uint64_t id, struct view_attr *ret, struct err *e);
/* real_open - view_ops.open of a real file: reads need not open it again until real_closed. */
int real_open(struct mirror *m, uint64_t id, struct err *e);
int real_read(struct mirror *m, uint64_t id, uint64_t off, size_t len, uint8_t *room,
	      struct span *ret, struct err *e);
int real_readlink(struct mirror *m, uint64_t id, struct buf *out, struct err *e);
/* real_xattr - view_ops.xattr of a real entry: what the file system has, "user.*" without those
 * names that are the mount's own. */
int real_xattr(struct mirror *m, uint64_t id, const char *name, struct buf *out, struct err *e);
int real_setxattr(struct mirror *m, uint64_t id, const char *name, const uint8_t *value,
		  size_t len, int flags, struct err *e);
void real_forget(struct mirror *m, uint64_t id, uint64_t count);

/* Datasets: slots.c. */

/* slot_of - the slot of a dataset as it is now, known once more. Texts are copied. A new number is
 * taken when there is none, or when the dataset changed. */
int slot_of(struct mirror *m, enum name_kind kind, const char *path, const char *name,
	    const struct stat *st, uint32_t *ret, struct err *e);
/* slot_is_at - whether there is a slot of this kind for what st says is at path: it need not be bid
 * for. */
bool slot_is_at(struct mirror *m, enum name_kind kind, const char *path, const struct stat *st);
/* slot_get - the slot with its dataset open; finish with slot_put. -ESTALE: it changed, or
 * there is none; else what opening it said. */
int slot_get(struct mirror *m, uint32_t number, struct slot **ret, struct err *e);
/* slot_put - known: ids of it that the kernel is told of now. */
void slot_put(struct mirror *m, struct slot *s, uint64_t known);
/* slot_map_error - the code of an error of its view: -ESTALE when the dataset changed. */
int slot_map_error(struct mirror *m, struct slot *s, int rc, struct err *e);
/* slot_check - after bytes were read: -ESTALE when they may be others. */
int slot_check(struct mirror *m, struct slot *s, struct err *e);
/* slot_lookup - kind, path and stat of a slot that need not be open. *ret_path: new. -ESTALE. */
int slot_lookup(struct mirror *m, uint32_t number, enum name_kind *ret_kind, char **ret_path,
		struct stat *ret_st, struct err *e);
/* slot_revalidate - st is what is at the slot's path now (NULL: nothing is): it may be stale. */
int slot_revalidate(struct mirror *m, uint32_t number, const struct stat *st, struct err *e);
/* slot_forget - the kernel knows ids of it so many times less. */
void slot_forget(struct mirror *m, uint32_t number, uint64_t count);
/* slot_if_open - the same as slot_get of one that is open; NULL: it is not. Opens nothing. */
struct slot *slot_if_open(struct mirror *m, uint32_t number);
/* slot_pin, slot_unpin - an open file of a writable view: the slot, which the caller uses, stays
 * open; its use goes on until slot_unpin. known: as for slot_put. */
void slot_pin(struct mirror *m, struct slot *s, uint64_t known);
void slot_unpin(struct mirror *m, struct slot *s);
/* slot_retire - a dataset is about to be removed or to get another name: what was written to it
 * goes into it, and its slot is stale. -EBUSY: somebody uses it. */
int slot_retire(struct mirror *m, uint32_t number, struct err *e);
/* slots_flush_below - the same of all that were written through this mount at a path or below it,
 * which is about to get another name, or to go. -EBUSY: one of them has open files, still; what its
 * commit said. */
int slots_flush_below(struct mirror *m, const char *path, struct err *e);
/* slots_sync - what was written through this mount to datasets at a path or below it, and was
 * confirmed, goes into them; "": all. An error: of one of them, the others' are in the log. */
int slots_sync(struct mirror *m, const char *path, struct err *e);
/* slots_finish - view_write_ops.finish of all that are open. */
int slots_finish(struct mirror *m, struct err *e);
void slots_free(struct mirror *m);

/* Writing: handles.c, passthrough_write.c, import_new.c. */

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
/* write_handles_free - of files that are open when the mirror is closed: the kernel does not say
 * when it lets go of those that were open when the mount was taken off. */
void write_handles_free(struct mirror *m);

/* mirror_show - an attribute of a dataset's view, as the mirror's. */
void mirror_show(const struct slot *s, struct view_attr *a);
/* mirror_read_slot - through a handle of it, or not (fh 0). The slot is in use; *ret_held: it went
 * with the answer. */
int mirror_read_slot(struct mirror *m, struct slot *s, uint64_t id, uint64_t fh, uint64_t off,
		     size_t len, uint8_t *room, struct span *ret, bool *ret_held, struct err *e);

/* real_copy - a node: its path is new. -ESTALE. */
int real_copy(struct mirror *m, uint64_t id, struct mirror_node *ret, struct err *e);
/* real_writer - one open file more or less (-1) writes to a node; *ret_fresh, *ret_others:
 * whether it was made in this mount, and how many others there are. */
void real_writer(struct mirror *m, uint64_t id, int more, bool *ret_fresh,
		 uint32_t *ret_others);
/* real_opened - a node has an open file more, fd, of which a copy is kept; -1: that of a file that
 * cannot be opened. reads: real_read reads from it. real_closed - one less. */
void real_opened(struct mirror *m, uint64_t id, int fd, bool reads);
void real_closed(struct mirror *m, uint64_t id);
void real_set_fresh(struct mirror *m, uint64_t id, bool fresh);
/* real_writer_last - one open file less writes to a node; whether it is the last one, and the file
 * is due to become a dataset. */
bool real_writer_last(struct mirror *m, uint64_t id);
/* real_set_due - a file becomes a dataset with the release of its last writer, or does not. */
void real_set_due(struct mirror *m, uint64_t id, bool due);
/* real_renamed_due - a file got a name that a dataset may have: whether it has writers, and is due
 * with the release of the last one. */
bool real_renamed_due(struct mirror *m, uint64_t id);
/* real_moved - the node of a path, and those below it, have another path now. */
void real_moved(struct mirror *m, const char *from, const char *to);
/* real_open_at - the directory that a path is in, opened; *ret_name: its last component, within
 * path. */
int real_open_at(const struct mirror *m, const char *path, const char **ret_name,
		 struct err *e);

/* real_fail - as err_sys, of a system call on a real entry. EINVAL and EFBIG are answers to what
 * the program asked for: there is no text, and so the log has no line. */
int real_fail(struct err *e, int errnum, const char *fmt, ...) NZ_PRINTF(3, 4);

/* real_w_... - what a writable view can do, of real entries; names are not hidden ones. */
int passthrough_create(struct mirror *m, const struct where *dir, const char *name, int flags,
		       mode_t mode, int *ret_fd, struct view_attr *ret, struct err *e);
int passthrough_open(struct mirror *m, uint64_t id, int flags, int *ret_fd, struct err *e);
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

/* new_wanted - whether a new file (or directory) of this name in a directory is to become a
 * dataset of the other family, and what the dataset is called then. */
bool new_wanted(const struct mirror *m, const struct where *dir, const char *name, bool is_dir,
		char out[NAME_BYTES]);
/* new_store - the file at path becomes the Zarr store at to, when it is a dataset. Returns 1 when
 * it was; 0 it is none, and stays; an error, and it stays. */
int new_store(struct mirror *m, const char *path, const char *to, struct err *e);
/* new_file - an empty netCDF-4 file at path. */
int new_file(struct mirror *m, const char *path, struct err *e);

/* Listing: listing.c. */

int real_list(struct mirror *m, uint64_t id, uint64_t cookie, view_emit *emit, void *arg,
	      struct err *e);
void listings_free(struct mirror *m);

/* Datasets that a directory does not show: skipped.c. */

enum { MIRROR_SKIPS_LOGGED = 20 }; /* most for one directory */

/* mirror_log_skip - log that a dataset in dir is not shown as `name`, unless that was logged. */
void mirror_log_skip(struct mirror *m, const char *dir, const char *source, const char *name,
		     const char *reason);
/* mirror_warn_top - before the mount: warn about datasets that the top directory does not show, and
 * about a directory without any. Reads its names, and opens few files. */
void mirror_warn_top(const struct mirror *m);

/* Walks: programs that list a directory and then remove what they listed; listing.c. */

/* walk_removed - this request removed a name in a directory. */
void walk_removed(struct mirror *m, const struct where *dir, const char *name);
/* walk_touch - it removed something elsewhere, or lists something on the way. */
void walk_touch(struct mirror *m, bool listing);
/* walk_gone - a name that is not there, and that went with its dataset when the process of this
 * request removed another name of it. take: it ends with this. Returns 0 or -ENOENT. */
int walk_gone(struct mirror *m, const struct where *dir, const char *name, bool take,
	      struct view_attr *ret);
/* walk_gone_id - the same of an id that walk_gone gave. ret_name: NULL, or its name and the
 * directory that it was in. */
struct walk_name {
	uint64_t dir;
	char name[NAME_BYTES];
};
bool walk_gone_id(struct mirror *m, uint64_t id, bool take, struct view_attr *ret,
		  struct walk_name *ret_name);

#endif
