/* SPDX-License-Identifier: BSD-3-Clause */
/* handles_int.h - shared by the parts of the mirror that change files. */
#ifndef FUSEFS_MIRROR_HANDLES_INT_H
#define FUSEFS_MIRROR_HANDLES_INT_H

#include "fusefs/mirror/mirror_int.h"

/* ---- names.c ---- */

/* target - meaning of a name in a directory: something in a slot; a real entry; a converted view;
 * nothing. */
enum target { AT_SLOT, AT_REAL, AT_COUNTERPART, AT_NOTHING };

/* write_target - find the meaning of a name. *ret_dir: the real directory, except for AT_SLOT; it
 * is written in any case, for auto_where; *ret_attr: of a converted view, which the kernel does not
 * get. -EPERM: a name that the mount reserves. */
int write_target(struct mirror *m, uint64_t dir, const char *name, struct where *ret_dir,
		 enum target *ret, struct view_attr *ret_attr, struct err *e);
/* write_slot_named - the slot of the dataset whose file has this name, with one more reference of
 * the kernel, also if the file was removed from its view. 0: none. */
uint32_t write_slot_named(struct mirror *m, const struct where *dir, const char *name);
int write_read_only(const struct slot *s, struct err *e);
/* write_slot_get - slot_get of a dataset that can be written; -EROFS. */
int write_slot_get(struct mirror *m, uint32_t number, struct slot **ret, struct err *e);

/* write_dir_again - recreate a removed directory that walk_gone still shows to a program which now
 * writes to it. *dir: its new id; *ret_again: the same, with one more reference of the kernel, or
 * 0. */
int write_dir_again(struct mirror *m, uint64_t *dir, uint64_t *ret_again, struct err *e);
int write_mkdir(struct view *v, uint64_t dir, const char *name, mode_t mode,
		struct view_attr *ret, struct err *e);
int write_unlink(struct view *v, uint64_t dir, const char *name, struct err *e);
int write_rmdir(struct view *v, uint64_t dir, const char *name, struct err *e);
int write_rename(struct view *v, uint64_t dir, const char *name, uint64_t to_dir, const char *to,
		 unsigned flags, struct err *e);
int write_symlink(struct view *v, uint64_t dir, const char *name, const char *text,
		  struct view_attr *ret, struct err *e);
int write_link(struct view *v, uint64_t id, uint64_t dir, const char *name,
	       struct view_attr *ret, struct err *e);

/* ---- import.c ---- */

/* become_feed - replace the content of a dataset's file by that of fd. */
int become_feed(struct mirror *m, uint32_t number, int fd, struct err *e);
/* become_dataset - turn a real file without writers into a dataset, if its content and name are
 * those of one. */
int become_dataset(struct mirror *m, const struct where *dir, const char *name, struct err *e);
/* become_flushed - the same for a file that was created in this mount, and closed: id's, open as
 * fd. */
int become_flushed(struct mirror *m, uint64_t id, int fd, struct err *e);

#endif
