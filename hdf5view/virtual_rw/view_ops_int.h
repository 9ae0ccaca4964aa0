/* SPDX-License-Identifier: BSD-3-Clause */
/* view_ops_int.h - the operations of the writable virtual file, for its table (view.c); their
 * contracts are in translate/contract/view.h. */
#ifndef HDF5VIEW_VIRTUAL_RW_VIEW_OPS_INT_H
#define HDF5VIEW_VIRTUAL_RW_VIEW_OPS_INT_H

#include "hdf5view/virtual_rw/virtual_rw_int.h"

/* ---- view.c ---- */

/* rw_attr - the attributes of a file; `unsure` for one that cannot be laid out. */
void rw_attr(struct nc_rw *v, struct rw_file *f, struct view_attr *ret, struct err *e);
/* rw_in_root - check that an id is the directory's. -ENOTDIR, -ESTALE. */
int rw_in_root(struct nc_rw *v, uint64_t dir, struct err *e) NZ_MUST_USE;

/* ---- handles.c: handles and writes through them ---- */

int rw_op_open(struct view *v, uint64_t id, int flags, struct view_handle *ret, struct err *e);
int rw_op_write(struct view *v, uint64_t id, uint64_t fh, uint64_t off, const uint8_t *data,
		size_t len, struct err *e);
int rw_op_flush(struct view *v, uint64_t id, uint64_t fh, struct err *e);
int rw_op_fsync(struct view *v, uint64_t id, uint64_t fh, bool data_only, struct err *e);
int rw_op_fsyncdir(struct view *v, uint64_t dir, struct err *e);
void rw_op_release(struct view *v, uint64_t id, uint64_t fh);
int rw_op_setattr(struct view *v, uint64_t id, uint64_t fh, const struct view_set *set,
		  struct view_attr *ret, struct err *e);
int rw_op_finish(struct view *v, bool last, struct err *e);

/* rw_handle_open - open a handle on a file, with a reference to it. lock is held. */
int rw_handle_open(struct nc_rw *v, struct rw_file *f, int flags, struct view_handle *ret,
		   struct err *e);

/* ---- directory.c: names ---- */

/* rw_scratch_dir - the directory of scratch files, made if it is missing. lock is held. */
int rw_scratch_dir(struct nc_rw *v, struct err *e) NZ_MUST_USE;

int rw_op_create(struct view *v, uint64_t dir, const char *name, size_t len, int flags,
		 mode_t mode, struct view_attr *ret_attr, struct view_handle *ret, struct err *e);
int rw_op_unlink(struct view *v, uint64_t dir, const char *name, size_t len, struct err *e);
int rw_op_rename(struct view *v, uint64_t dir, const char *name, size_t len, uint64_t to_dir,
		 const char *to_name, size_t to_len, unsigned flags, struct err *e);

#endif
