/* SPDX-License-Identifier: BSD-3-Clause */
/* handles_int.h - shared by the parts of the mirror that change something. */
#ifndef FUSEFS_MIRROR_HANDLES_INT_H
#define FUSEFS_MIRROR_HANDLES_INT_H

#include "fusefs/mirror/mirror_int.h"

/* ---- names.c ---- */

/* target - what a name in a directory means: something in a slot; a real entry; a counterpart;
 * nothing. */
enum target { AT_SLOT, AT_REAL, AT_COUNTERPART, AT_NOTHING };

/* write_target - *ret_dir: the real directory (its path is owned), but for AT_SLOT; *ret_attr: of a
 * counterpart, which the kernel is not told of. -EPERM: names that are the mount's own. */
int write_target(struct mirror *m, uint64_t dir, const char *name, struct where *ret_dir,
		 enum target *ret, struct view_attr *ret_attr, struct err *e);
/* write_slot_named - the slot of the dataset whose file has this name, known once more, also when
 * that file has been removed from its view. 0: there is none. */
uint32_t write_slot_named(struct mirror *m, const struct where *dir, const char *name);
int write_read_only(const struct slot *s, struct err *e);

/* write_dir_again - a directory that walk_gone still shows to a program which now writes into it:
 * it is made again. *dir: its id then; *ret_again: the same, known once more, or 0. */
int write_dir_again(struct mirror *m, uint64_t *dir, uint64_t *ret_again, struct err *e);
int write_mkdir(struct view *v, uint64_t dir, const char *name, size_t len, mode_t mode,
		struct view_attr *ret, struct err *e);
int write_unlink(struct view *v, uint64_t dir, const char *name, size_t len, struct err *e);
int write_rmdir(struct view *v, uint64_t dir, const char *name, size_t len, struct err *e);
int write_rename(struct view *v, uint64_t dir, const char *name, size_t len, uint64_t to_dir,
		 const char *to_name, size_t to_len, unsigned flags, struct err *e);
int write_symlink(struct view *v, uint64_t dir, const char *name, size_t len, const char *text,
		  struct view_attr *ret, struct err *e);
int write_link(struct view *v, uint64_t id, uint64_t dir, const char *name, size_t len,
	       struct view_attr *ret, struct err *e);

/* ---- names.c ---- */

/* write_remove_file - a tree that shows a file, and has nothing in it any more: the file goes.
 * -ENOTEMPTY; -EROFS; -EBUSY. */
int write_remove_file(struct mirror *m, uint32_t number, struct err *e);
/* write_remove_store - a file that shows a Zarr tree: the tree goes, with all in it. -EROFS;
 * -EBUSY: somebody has the file open; -EIO some of it is still there, where the mount does not
 * show it. */
int write_remove_store(struct mirror *m, uint32_t number, struct err *e);
/* write_rename_whole - the dataset whose counterpart is in `dir` gets the name that it is shown as
 * `to` with, which is free. -EXDEV: there is no such name; -EROFS; -EBUSY. */
int write_rename_whole(struct mirror *m, uint32_t number, const struct where *dir,
		       const struct where *to_dir, const char *to, struct err *e);

/* ---- import.c ---- */

/* become_feed - what fd has is the content of a dataset's file from now on. */
int become_feed(struct mirror *m, uint32_t number, int fd, struct err *e);
/* become_dataset - a real file that nobody writes to any more is turned into a dataset, when it is
 * one, and its name is one for that. */
int become_dataset(struct mirror *m, const struct where *dir, const char *name, struct err *e);
/* become_flushed - the same of a file that was made in this mount, and closed: id's, open as fd. */
int become_flushed(struct mirror *m, uint64_t id, int fd, struct err *e);
/* become_read - up to len bytes of a descriptor, into room. */
int become_read(int fd, uint64_t off, size_t len, uint8_t *room, struct span *ret,
		struct err *e);

#endif
