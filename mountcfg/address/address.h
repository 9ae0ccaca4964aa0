/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - what a user may write for a dataset on another machine: NCZarr's URL syntax.
 *
 * protocol://[user:password@]host[:port]/path?query#fragment, where protocol is file, http, https,
 * s3, gs3 or gs (the same as gs3), and the fragment has mode=LIST and keys (aws.profile=,
 * aws.region=), as netCDF-C reads them. docs/dev/remote.md states the rules. */
#ifndef MOUNTCFG_ADDRESS_ADDRESS_H
#define MOUNTCFG_ADDRESS_ADDRESS_H

#include "mountcfg/options.h"

enum address_kind { ADDRESS_PATH, ADDRESS_HTTP, ADDRESS_S3, ADDRESS_GS3 };
enum address_what { ADDRESS_ANY, ADDRESS_TREE, ADDRESS_FILE };

/* address - one that was understood; texts owned. */
struct address {
	enum address_kind kind;
	enum address_what what;   /* what the fragment, or the name's ending, says that it is */
	char *path;               /* PATH (also file://): absolute or as it was */
	char *url;                /* HTTP: without user, query and fragment; S3: the endpoint where
	                           * the address names one ("http://127.0.0.1:7480"), else NULL */
	char *query;              /* HTTP; NULL */
	char *user, *password;    /* NULL */
	char *bucket, *key;       /* S3, GS3 */
	char *profile, *region;   /* NULL: the address says nothing */
	char *shown;              /* without secrets and fragment: for messages, fsname, /proc */
	char *name;               /* last component, decoded: what the dataset is called */
	bool mode_zarr, mode_nczarr, mode_noxarray; /* of the fragment, inference applied */
};

/* address_parse - text as the user typed it. Anything that does not begin like an address is a
 * path.
 * Returns 0 with *ret filled (address_release); -EINVAL with what to type instead; -EOPNOTSUPP a
 * mode that is another program's (dap2, dap4). Errors never show passwords. */
int address_parse(const char *text, struct address *ret, struct err *e) NZ_MUST_USE;
void address_release(struct address *a);

/* address_is_remote - whether a source as the user typed it is on another machine. */
bool address_is_remote(const char *text);

/* s3_bucket_ok, s3_region_ok - whether a text may be one: both become parts of host names. */
bool s3_bucket_ok(const char *text);
bool s3_region_ok(const char *text);

#endif
