/* xattrs.h - extended attributes in a Zarr tree. */
#ifndef NCZARR_XATTRS_H
#define NCZARR_XATTRS_H

#include "base/buf.h"
#include "base/err.h"
#include "translate/dataset.h"

/* zr_xattr - append the value of an attribute of an array's directory, without a NUL; name NULL:
 * the names of all of them, each with one. a: NULL for everything else in the tree, which has
 * none. version: of Zarr that the tree is in. Returns 0; -ENODATA no such attribute; -E2BIG,
 * -ENOMEM when out has no room. */
int zr_xattr(const struct ds_array *a, int version, const char *name, struct buf *out,
	     struct err *e);

#endif
