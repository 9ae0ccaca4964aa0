/* SPDX-License-Identifier: BSD-3-Clause */
/* address_int.h - shared by the parsers of addresses. */
#ifndef MOUNTCFG_ADDRESS_ADDRESS_INT_H
#define MOUNTCFG_ADDRESS_ADDRESS_INT_H

#include "base/os/url.h"
#include "mountcfg/address/address.h"

/* Words of mode=, as in netCDF-C. */
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
	MODE_OTHER = 1 << 11,  /* dap2, dap4, udf0 ...: rejected */
};

/* fragment_parse - the part after '#'; text may be NULL. *ret_mode: its modes, with those that they
 * imply. a: gets profile and region. Returns 0; -EINVAL; -EOPNOTSUPP. */
int fragment_parse(const char *text, struct address *a, unsigned *ret_mode,
		   struct err *e) NZ_MUST_USE;

/* address_decode - decode n bytes of an address to a new string. */
int address_decode(const char *text, size_t n, char **ret, struct err *e) NZ_MUST_USE;

/* s3_host - ADDRESS_S3 or ADDRESS_GS3 for a host of Amazon's or Google's object store. */
enum address_kind s3_host(const char *host);

/* s3_from_url - bucket, key, url and region of an http(s) address of an S3 service. kind: of *a.
 * Returns 0; -EINVAL with a correct form. */
int s3_from_url(const struct url *u, struct address *a, struct err *e) NZ_MUST_USE;

/* s3_take_path - bucket (if a has none) and key of a path as it was written. */
int s3_take_path(const char *path, struct address *a, struct err *e) NZ_MUST_USE;

#endif
