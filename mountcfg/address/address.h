/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - addresses of remote datasets: NCZarr's URL syntax.
 *
 * protocol://[user:password@]host[:port]/path?query#fragment, where protocol is file, http, https,
 * s3, gs3 or gs (the same as gs3), and the fragment has mode=LIST and keys (aws.profile=,
 * aws.region=), as netCDF-C reads them. docs/dev/remote.md states the rules. */
#ifndef MOUNTCFG_ADDRESS_ADDRESS_H
#define MOUNTCFG_ADDRESS_ADDRESS_H

#include "mountcfg/options.h"

enum address_kind { ADDRESS_PATH, ADDRESS_HTTP, ADDRESS_S3, ADDRESS_GS3 };
enum address_what { ADDRESS_ANY, ADDRESS_TREE, ADDRESS_FILE };

/* address - a parsed address; strings are owned. */
struct address {
	enum address_kind kind;
	enum address_what what;   /* kind of dataset, by the fragment or the name's ending */
	char *path;               /* PATH (also file://): absolute, or as it was typed */
	/* HTTP: without user, query and fragment; S3: the endpoint if the address names one
	 * ("http://127.0.0.1:7480"), otherwise NULL */
	char *url;
	char *query;              /* HTTP; otherwise NULL */
	char *user, *password;    /* may be NULL */
	char *bucket, *key;       /* S3, GS3 */
	char *profile, *region;   /* NULL: not in the address */
	char *shown;              /* without secrets and fragment: for messages, fsname, /proc */
	char *name;               /* last component, decoded: the dataset's name */
	bool mode_zarr, mode_nczarr, mode_noxarray; /* of the fragment, including implied modes */
};

/* address_parse - parse text as the user typed it. A text without an address's prefix is a path.
 * Returns 0 with *ret filled (address_release); -EINVAL with a correct form; -EOPNOTSUPP: a mode of
 * another protocol (dap2, dap4). Errors never contain passwords. */
int address_parse(const char *text, struct address *ret, struct err *e) NZ_MUST_USE;
void address_release(struct address *a);

/* address_is_remote - true if a source as the user typed it is a remote address. */
bool address_is_remote(const char *text);

/* s3_bucket_ok, s3_region_ok - true if a string is valid: both become parts of host names. */
bool s3_bucket_ok(const char *text);
bool s3_region_ok(const char *text);

#endif
