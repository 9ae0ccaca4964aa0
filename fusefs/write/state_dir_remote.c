/* SPDX-License-Identifier: BSD-3-Clause */
/* state_dir_remote.c - the state directory of a remote dataset, in the user's local state
 * directory. Different spellings of one address share a state directory; the service of an S3
 * address is part of its identity. */
#include "fusefs/write/writable_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/str.h"
#include "base/core/hash.h"
#include "mountcfg/address/address.h"

enum { NAME_BYTES_SHOWN = 80 };

/* service - the S3 service, as far as the user named it. */
static const char *service(const struct cfg_remote *cfg, const struct address *a)
{
	const char *env;

	if (a->url)
		return a->url;
	if (cfg->endpoint)
		return cfg->endpoint;
	env = getenv("AWS_ENDPOINT_URL_S3");
	if (!env || !*env)
		env = getenv("AWS_ENDPOINT_URL");
	return env ? env : "";
}

static size_t trimmed(const char *s)
{
	size_t n = strlen(s);

	while (n > 0 && s[n - 1] == '/')
		n--;
	return n;
}

static uint64_t state_dir_remote_add_text(uint64_t h, const char *s, size_t n)
{
	return hash_bytes(hash_bytes(h, s, n), "", 1);
}

/* identity - FNV-1a hash of the parts of the address. */
static uint64_t identity(const struct cfg_remote *cfg, const struct address *a)
{
	const char *where = service(cfg, a), *bucket = a->bucket ? a->bucket : "";
	const char *key = a->key ? a->key : "", *query = a->query ? a->query : "";
	const char *kind = a->kind == ADDRESS_GS3 ? "gs3" : a->bucket ? "s3" : "http";
	uint64_t h = state_dir_remote_add_text(HASH_SEED, kind, strlen(kind));

	h = state_dir_remote_add_text(h, where, trimmed(where));
	h = state_dir_remote_add_text(h, bucket, strlen(bucket));
	h = state_dir_remote_add_text(h, key, trimmed(key));
	return state_dir_remote_add_text(h, query, strlen(query));
}

/* state_dir_remote_place - parent of such directories. NULL: none, or memory is short. */
static char *state_dir_remote_place(const struct cfg *cfg)
{
	auto_free char *dir = NULL;

	if (cfg->write.state_dir)
		return strdup(cfg->write.state_dir);
	dir = cfg_xdg_dir("XDG_STATE_HOME", ".local/state");
	return dir ? str_printf("%s/nczarrfs", dir) : NULL;
}

/* make_all - create a directory and those above it, with the mode of the XDG base directories. */
static int make_all(char *path, struct err *e)
{
	for (char *slash = path + 1;; slash++) {
		char *end = strchr(slash, '/');

		if (end)
			*end = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return err_sys(e, errno,
				       "'%s', the state directory (to use another place: -o "
				       "state_dir=DIR)",
				       path);
		if (!end)
			return 0;
		*end = '/';
		slash = end;
	}
}

/* state_dir_remote_readable - the part of the name that is legible. */
static void state_dir_remote_readable(const struct address *a, char out[NAME_BYTES_SHOWN + 1])
{
	size_t n = a->name ? strlen(a->name) : 0;
	const char *p = n > NAME_BYTES_SHOWN ? a->name + n - NAME_BYTES_SHOWN : a->name;

	for (n = 0; p && *p; p++) {
		bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
			     (*p >= '0' && *p <= '9') || *p == '_' || *p == '-' ||
			     (*p == '.' && n > 0);

		out[n++] = plain ? *p : '_';
	}
	out[n] = '\0';
}

int rw_state_remote(const struct cfg *cfg, const char *address, bool make, char **ret,
		    struct err *e)
{
	auto_free char *parent = state_dir_remote_place(cfg);
	char name[NAME_BYTES_SHOWN + 1];
	struct address a;
	uint64_t h;
	int rc;

	if (!parent)
		return err_set(e, -ENOENT,
			       "there is no place for the state directory: set HOME, or use -o "
			       "state_dir=DIR");
	rc = address_parse(address, &a, e);
	if (rc < 0)
		return rc;
	state_dir_remote_readable(&a, name);
	h = identity(&cfg->remote, &a);
	address_release(&a);
	if (make && !cfg->write.state_dir)
		rc = make_all(parent, e);
	if (rc < 0)
		return rc;
	return asprintf(ret, "%s/%s-%016llx", parent, name, (unsigned long long)h) < 0
		       ? err_nomem(e)
		       : 0;
}
