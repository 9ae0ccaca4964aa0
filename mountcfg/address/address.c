/* SPDX-License-Identifier: BSD-3-Clause */
/* address.c - parses an address into the server, the object and the credentials.
 *
 * An error message quotes an address only after it was parsed: a mistyped part may be a
 * password. */
#include "mountcfg/address/address.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/core/str.h"
#include "base/core/endings.h"
#include "mountcfg/address/address_int.h"

#define USE "use https://, http://, s3://, gs:// or a path"

bool address_is_remote(const char *text)
{
	return url_is(text) && strncasecmp(text, "file://", 7) != 0;
}

void address_release(struct address *a)
{
	char *const all[] = {a->path,   a->url,    a->query,   a->user,   a->password, a->bucket,
			     a->key,    a->profile, a->region, a->shown, a->name};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		str_wipe(all[i]);
	*a = (struct address){0};
}

/* address_take - move a buffer's contents to a new string. */
static int address_take(struct buf *b, char **ret, struct err *e)
{
	size_t n;

	buf_putc(b, '\0');
	if (!buf_ok(b))
		return err_nomem(e);
	*ret = (char *)buf_take(b, &n);
	return 0;
}

int address_decode(const char *text, size_t n, char **ret, struct err *e)
{
	auto_buf b = buf_of(URL_MAX + 1);
	int rc = url_decode(&b, text, n, e);

	return rc == 0 ? address_take(&b, ret, e) : rc;
}

/* last_part - the last non-empty component of a path of n bytes. */
static const char *last_part(const char *path, size_t *ret_n)
{
	size_t n = strlen(path), from;

	while (n > 0 && path[n - 1] == '/')
		n--;
	for (from = n; from > 0 && path[from - 1] != '/';)
		from--;
	*ret_n = n - from;
	return path + from;
}

/* ---- local paths ---- */

static int address_set_path(const char *path, struct address *a, struct err *e)
{
	size_t n;
	const char *last = last_part(path, &n);

	a->kind = ADDRESS_PATH;
	a->path = strdup(path);
	a->shown = strdup(path);
	a->name = strndup(last, n);
	return a->path && a->shown && a->name ? 0 : err_nomem(e);
}

/* file_path - the part between "file://" and '#': a path from the root, or, as in netCDF-C, from
 * the working directory. */
static int file_path(const char *text, struct address *a, struct err *e)
{
	size_t n = strcspn(text, "#");
	auto_free char *path = NULL;
	int rc;

	if (strncmp(text, "localhost/", 10) == 0) {
		text += 9;
		n -= 9;
	}
	if (memchr(text, '?', n))
		return err_set(
			e, -EINVAL,
			"a file:// URL has no query: write %%3F for a '?' in a name, or give the "
			"path itself");
	rc = address_decode(text, n, &path, e);
	if (rc < 0)
		return rc;
	if (!*path)
		return err_set(e, -EINVAL,
			       "file:// without a path: write file:///path/name.zarr");
	return address_set_path(path, a, e);
}

static void set_modes(unsigned mode, struct address *a)
{
	a->mode_zarr = (mode & MODE_ZARR) != 0;
	a->mode_nczarr = (mode & MODE_NCZARR) != 0;
	a->mode_noxarray = (mode & MODE_NOXARRAY) != 0;
}

static int parse_file(const char *text, struct address *a, struct err *e)
{
	const char *hash = strchr(text, '#');
	unsigned mode;
	int rc = fragment_parse(hash ? hash + 1 : NULL, a, &mode, e);

	if (rc < 0)
		return rc;
	if (mode & (MODE_S3 | MODE_GS3 | MODE_BYTES))
		return err_set(e, -EINVAL,
			       "a file:// URL is a local path: leave out s3, gs3 and bytes");
	set_modes(mode, a);
	return file_path(text, a, e);
}

/* ---- remote addresses ---- */

/* address_what_of - kind of dataset, by the fragment, then by the name. */
static enum address_what address_what_of(unsigned mode, const char *path, const char *name)
{
	const enum ending ending = ending_of(name);

	if (mode & (MODE_BYTES | MODE_ZIP | MODE_NETCDF))
		return ADDRESS_FILE;
	if (mode & (MODE_NCZARR | MODE_ZARR | MODE_CONSOLIDATED))
		return ADDRESS_TREE;
	if (ending == ENDING_TREE || ending == ENDING_PARQUET)
		return ADDRESS_TREE;
	if (*path && path[strlen(path) - 1] == '/')
		return ADDRESS_TREE;
	return ending == ENDING_NONE ? ADDRESS_ANY : ADDRESS_FILE;
}

/* address_set_name - reject a name that no path can have, because it could mean another object. */
static int address_set_name(const char *path, const char *else_name, struct address *a,
			    struct err *e)
{
	size_t n;
	const char *last = last_part(path, &n);
	int rc = n ? address_decode(last, n, &a->name, e) : 0;

	if (n == 0)
		a->name = strdup(else_name);
	if (rc < 0 || !a->name)
		return rc < 0 ? rc : err_nomem(e);
	if (strchr(a->name, '/') || strcmp(a->name, ".") == 0 || strcmp(a->name, "..") == 0)
		return err_set(e, -EINVAL, "the last component of the path is not a valid name");
	return 0;
}

/* set_shown - the address without secrets, otherwise as the user wrote it: url_parse writes hosts
 * in lower case, but a bucket is no host. */
static int set_shown(const struct url *u, struct address *a, struct err *e)
{
	struct url as = *u;
	auto_buf b = buf_of(4 * URL_MAX);

	if (a->bucket && strcasecmp(a->bucket, u->host) == 0)
		as.host = a->bucket;
	url_put(&b, &as, false);
	return address_take(&b, &a->shown, e);
}

/* set_http - set url without a final '/', because keys begin with one. */
static int set_http(const struct url *u, struct address *a, struct err *e)
{
	auto_free char *path = strdup(u->path);
	struct url plain = {.scheme = u->scheme, .host = u->host, .port = u->port, .path = path};
	auto_buf b = buf_of(2 * URL_MAX);
	bool failed = false;
	int rc;

	if (!path)
		return err_nomem(e);
	for (size_t n = strlen(path); n > 0 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	url_put(&b, &plain, true);
	rc = address_take(&b, &a->url, e);
	a->query = str_copy(u->query, &failed);
	a->user = str_copy(u->user, &failed);
	a->password = str_copy(u->password, &failed);
	return rc == 0 && failed ? err_nomem(e) : rc;
}

static int no_secrets(const struct url *u, struct err *e)
{
	if (u->user || u->password)
		return err_set(
			e, -EINVAL,
			"an S3 URL has no user and password: put the credentials into the "
			"environment or into ~/.aws/credentials (-o profile=)");
	if (u->query)
		return err_set(
			e, -EINVAL,
			"an S3 URL has no query: write %%3F for a '?' in a key");
	return 0;
}

/* is_s3 - true if an http(s) address denotes a bucket: the fragment says so, or the host is known.
 * An address with a signature in its query is requested as it is. */
static bool is_s3(const struct url *u, unsigned mode)
{
	return mode & (MODE_S3 | MODE_GS3) ||
	       (!u->query && !u->user && s3_host(u->host) != ADDRESS_HTTP);
}

static int parse_http(const struct url *u, unsigned mode, struct address *a, struct err *e)
{
	int rc;

	if (mode & MODE_FILE && !(mode & MODE_BYTES))
		return err_set(e, -EINVAL, "mode=file is for local paths: leave it out");
	if (!is_s3(u, mode)) {
		a->kind = ADDRESS_HTTP;
		rc = set_http(u, a, e);
		return rc < 0 ? rc : address_set_name(u->path, u->host, a, e);
	}
	a->kind = mode & MODE_GS3 || s3_host(u->host) == ADDRESS_GS3 ? ADDRESS_GS3
									: ADDRESS_S3;
	rc = no_secrets(u, e);
	rc = rc ? rc : s3_from_url(u, a, e);
	return rc < 0 ? rc : address_set_name(a->key, a->bucket, a, e);
}

/* bucket_in_host - s3://BUCKET/KEY. The first part is a host if it has a port, or is a known
 * service: netCDF-C also writes s3://HOST/BUCKET/KEY. */
static bool bucket_in_host(const struct url *u)
{
	return !u->port && s3_host(u->host) == ADDRESS_HTTP &&
	       strcmp(u->host, "localhost") != 0;
}

static int parse_s3(const struct url *u, const char *authority, size_t n, struct address *a,
		    struct err *e)
{
	struct url https = *u;
	char scheme[] = "https";
	int rc = no_secrets(u, e);

	a->kind = u->scheme[0] == 'g' ? ADDRESS_GS3 : ADDRESS_S3;
	if (rc < 0)
		return rc;
	if (bucket_in_host(u)) {
		a->bucket =
			strndup(authority, n); /* as it was written: hosts are in lower case */
		rc = a->bucket ? s3_take_path(u->path, a, e) : err_nomem(e);
	} else {
		https.scheme = scheme;
		rc = s3_from_url(&https, a, e);
	}
	return rc < 0 ? rc : address_set_name(a->key, a->bucket, a, e);
}

static int other_scheme(const char *scheme, struct err *e)
{
	if (strcmp(scheme, "dods") == 0 || strcmp(scheme, "dap4") == 0)
		return err_set(
			e, -EOPNOTSUPP,
			"%s:// is OPeNDAP, a protocol that nczarrfs does not speak: ask the "
			"server for the file itself",
			scheme);
	if (strcmp(scheme, "s3a") == 0 || strcmp(scheme, "s3n") == 0)
		return err_set(e, -EINVAL, "%s://: write s3://", scheme);
	return err_set(e, -EINVAL, "%.20s://: unknown protocol: " USE, scheme);
}

static int parse_remote(const char *text, const struct url *u, struct address *a, struct err *e)
{
	const char *authority = strstr(text, "://") + 3;
	unsigned mode;
	int rc = fragment_parse(u->fragment, a, &mode, e);

	if (rc < 0)
		return rc;
	set_modes(mode, a);
	if (strcmp(u->scheme, "http") == 0 || strcmp(u->scheme, "https") == 0)
		rc = parse_http(u, mode, a, e);
	else if (strcmp(u->scheme, "s3") == 0 || strcmp(u->scheme, "gs3") == 0 ||
		 strcmp(u->scheme, "gs") == 0)
		rc = parse_s3(u, authority, strcspn(authority, "/?#"), a, e);
	else
		rc = other_scheme(u->scheme, e);
	rc = rc ? rc : set_shown(u, a, e);
	if (rc == 0)
		a->what = address_what_of(mode, u->path, a->name);
	if (rc == 0 && a->what == ADDRESS_FILE && a->kind != ADDRESS_HTTP && !*a->key)
		rc = err_set(e, -EINVAL, "a bucket is not a file: name an object in it");
	return rc;
}

int address_parse(const char *text, struct address *ret, struct err *e)
{
	struct address a = {0};
	struct url u = {0};
	int rc;

	if (!url_is(text)) {
		rc = address_set_path(text, &a, e);
	} else if (!address_is_remote(text)) {
		rc = parse_file(text + 7, &a, e);
	} else {
		rc = url_parse(text, &u, e);
		rc = rc ? rc : parse_remote(text, &u, &a, e);
		url_release(&u);
	}
	if (rc < 0)
		address_release(&a);
	else
		*ret = a;
	return rc;
}
