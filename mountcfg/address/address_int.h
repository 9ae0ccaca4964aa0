/* SPDX-License-Identifier: BSD-3-Clause */
/* address_int.h - shared by the parts that read addresses. */
#ifndef MOUNTCFG_ADDRESS_ADDRESS_INT_H
#define MOUNTCFG_ADDRESS_ADDRESS_INT_H

#include "base/os/url.h"
#include "mountcfg/address/address.h"

/* Words of mode=, as netCDF-C has them. */
enum {
	MODE_NCZARR = 1 << 0,
	MODE_ZARR = 1 << 1,
	MODE_XARRAY = 1 << 2,
	MODE_NOXARRAY = 1 << 3,
	MODE_FILE = 1 << 4,
	MODE_ZIP = 1 << 5,
	MODE_S3 = 1 << 6,
	MODE_GS3 = 1 << 7,
	MODE_CONSOLIDATED = 1 << 8,
	MODE_BYTES = 1 << 9,
	MODE_NETCDF = 1 << 10, /* netcdf-3, classic, netcdf-4, enhanced */
	MODE_OTHER = 1 << 11,  /* dap2, dap4, udf0 ...: refused */
};

/* fragment - what comes after '#', understood. */
struct fragment {
	unsigned mode;
	char *profile, *region; /* owned; NULL */
};

/* fragment_parse - text may be NULL. Inference applied. Returns 0 with *ret filled
 * (fragment_release); -EINVAL; -EOPNOTSUPP. */
int fragment_parse(const char *text, struct fragment *ret, struct err *e) NZ_MUST_USE;
void fragment_release(struct fragment *f);

/* s3_host - whether a host is Amazon's or Google's object store. */
enum address_kind s3_host(const char *host);

/* s3_from_url - bucket, key, url and region of an http(s) address that is one of S3. kind: of *a.
 * Returns 0; -EINVAL with what to type instead. */
int s3_from_url(const struct url *u, struct address *a, struct err *e) NZ_MUST_USE;

/* s3_take_path - bucket (when a has none) and key of a path as it was written. */
int s3_take_path(const char *path, struct address *a, struct err *e) NZ_MUST_USE;

#endif
