/* SPDX-License-Identifier: BSD-3-Clause */
/* xattrs_int.h - extended attributes in a Zarr view. */
#ifndef NCZARR_VIEW_XATTRS_INT_H
#define NCZARR_VIEW_XATTRS_INT_H

#include "base/core/buf.h"
#include "base/core/err.h"
#include "translate/model/dataset.h"

/* zr_xattr - append the value of an attribute of an array's directory, without a NUL; name NULL:
 * the names of all, NUL-terminated. a: NULL for all other nodes, which have none. version: of the
 * Zarr format. Returns 0; -ENODATA no such attribute; -E2BIG, -ENOMEM if out has no room. */
int zr_xattr(const struct ds_array *a, int version, const char *name, struct buf *out,
	     struct err *e);

#endif
