/* SPDX-License-Identifier: BSD-3-Clause */
/* one_file.h - the operations of a read-only view that is a root directory with one file.
 *
 * Such a view has its own read and close; all other operations are those below. */
#ifndef HDF5VIEW_VIRTUAL_ONE_FILE_H
#define HDF5VIEW_VIRTUAL_ONE_FILE_H

#include "translate/contract/view.h"

#define ONE_FILE_ID (VIEW_ROOT + 1)

/* one_file - embedded first in such a view. */
struct one_file {
	struct view base;
	const char *name;   /* borrowed */
	struct plan *plans; /* the view's: one for each array */
	/* size - set the file's size; if that fails, mark it as unknown, with the reason in e */
	void (*size)(struct one_file *f, struct view_attr *ret, struct err *e);
	/* ready - whether size costs nothing, so that listings have it; NULL: always */
	bool (*ready)(struct one_file *f);
};

/* one_file_is - the check of read: 0 if id is the file's; -EISDIR, -ESTALE. */
int one_file_is(uint64_t id, struct err *e) NZ_MUST_USE;

/* The operations of struct view_ops. */
int one_file_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
		    struct view_attr *ret, struct err *e);
int one_file_getattr(struct view *v, uint64_t id, struct view_attr *ret, struct err *e);
int one_file_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr, view_emit *emit,
		  void *arg, struct err *e);
uint64_t one_file_parent(struct view *v, uint64_t dir);
const struct plan *one_file_plan(struct view *v, uint32_t array);
int one_file_xattr(struct view *v, uint64_t id, const char *name, struct buf *out, struct err *e);

#endif
