/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.c - sources that are addresses: one `remote` for all sources of a process.
 *
 * It has a thread and connections, and is created in the process that needs it, at its first use. A
 * forked child creates its own. */
#include "fusefs/app/remote.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "base/os/url.h"
#include "fusefs/app/concat.h"
#include "mountcfg/address/address.h"
#include "nczarr/nczarr.h"

static struct {
	pthread_mutex_t lock;
	struct remote *remote; /* lock; NULL: no remote source was opened here */
	pid_t owner;           /* lock */
} the = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int app_remote_get(const struct cfg_remote *cfg, struct remote **ret, struct err *e)
{
	const struct remote_options opts = {
		.profile = cfg->profile,
		.region = cfg->region,
		.access_key = cfg->access_key,
		.secret_key = cfg->secret_key,
		.config_file = cfg->aws_config,
		.endpoint = cfg->endpoint,
		.bearer_file = cfg->bearer_file,
		.netrc_file = cfg->netrc_file,
		.ca_file = cfg->ca_file,
		.anonymous = cfg->anonymous,
		.requester_pays = cfg->requester_pays,
		.virtual_hosts = cfg->virtual_hosts,
		.insecure = cfg->insecure || cfg->unverified,
		.plain_secrets = cfg->insecure,
		.private_redirects = cfg->private_redirects,
		.timeout_ms = cfg->timeout * 1000,
		.tries = cfg->max_attempts,
		.connections = cfg->max_connections,
		.cache_bytes = cfg->cache_size,
		.prefetch_bytes = cfg->prefetch_size,
		.cache_dir = cfg->cache_dir,
		.disk_bytes = cfg->cache_dir ? cfg->disk_cache_size : 0,
		.check_ms = cfg->revalidate * 1000,
	};
	LOCK_SCOPE(&the.lock);
	int rc = 0;

	if (the.owner != getpid())
		the.remote = NULL; /* created by a parent process: its thread does not exist here */
	if (!the.remote)
		rc = remote_new(&opts, &the.remote, e);
	the.owner = getpid();
	*ret = the.remote;
	return rc;
}

/* same_origin - true if two addresses have the same server, which may see the same secrets. */
static bool same_origin(const char *a, const char *b)
{
	struct url u, v;
	bool same;

	if (!a || !b || url_parse(a, &u, NULL) < 0)
		return false;
	if (url_parse(b, &v, NULL) < 0) {
		url_release(&u);
		return false;
	}
	same = url_origin_same(&u, &v);
	url_release(&u);
	url_release(&v);
	return same;
}

/* target_of - the result borrows from a. User, password and token belong to the source's server;
 * its address contains none of them. */
static struct remote_target target_of(const struct cfg *cfg, const char *text,
				      const struct address *a)
{
	const bool source = cfg->is_remote && same_origin(text, cfg->source);

	return (struct remote_target){
		.kind = a->kind == ADDRESS_S3    ? REMOTE_S3
			: a->kind == ADDRESS_GS3 ? REMOTE_GS3
						 : REMOTE_HTTP,
		.url = a->url,
		.query = a->query,
		.user = source && cfg->user ? cfg->user : a->user,
		.password = source && cfg->user ? cfg->password : a->password,
		.bucket = a->bucket,
		.key = a->key,
		.profile = a->profile,
		.region = a->region,
		.shown = a->shown,
		.no_token = !source,
		.what = a->what == ADDRESS_TREE   ? REMOTE_TREE
			: a->what == ADDRESS_FILE ? REMOTE_FILE
						  : REMOTE_ANY,
	};
}

/* reach - a parsed remote address, and what opens it. */
struct reach {
	struct remote *remote;
	struct address a; /* owned */
	struct remote_target t; /* borrows from a */
};

static void reach_end(struct reach *r)
{
	address_release(&r->a);
}

/* auto_reach - released when the variable goes out of scope; initialise it at once. */
#define auto_reach __attribute__((cleanup(reach_end))) struct reach

/* app_remote_parse - parse a remote address, and create remote access. */
static int app_remote_parse(const struct cfg *cfg, const char *text, struct reach *ret,
			    struct err *e)
{
	int rc = app_remote_get(&cfg->remote, &ret->remote, e);

	rc = rc ? rc : address_parse(text, &ret->a, e);
	if (rc < 0)
		return rc;
	if (ret->a.kind == ADDRESS_PATH)
		return err_set(e, -EINVAL, "a local path, where a URL is expected");
	ret->t = target_of(cfg, text, &ret->a);
	return 0;
}

/* open_target - open the source at a parsed address. */
static int open_target(const struct app *setup, const struct reach *r,
		       const struct source_options *opts, struct source **ret, struct err *e)
{
	struct source_at at;
	int rc = remote_at(r->remote, &r->t, &at, e);

	if (rc < 0)
		return rc;
	rc = source_open_at(setup->formats, setup->n_formats, &at, opts, ret, e);
	if (rc < 0)
		remote_at_release(&at);
	return rc;
}

int fs_source(const struct app *setup, const char *path, const struct source_options *opts,
	      struct source **ret, struct err *e)
{
	auto_reach r = {0};
	int rc;

	if (setup->cfg->concat.dim)
		return fs_concat(setup, opts, ret, e);
	if (!url_is(path)) {
		rc = source_open(setup->formats, setup->n_formats, path, opts, ret, e);
		return rc < 0 ? fs_concat_hint(path, rc, e) : 0;
	}
	rc = app_remote_parse(setup->cfg, path, &r, e);
	return rc ? rc : open_target(setup, &r, opts, ret, e);
}

static bool not_empty(void *arg, const char *name NZ_UNUSED, bool is_dir NZ_UNUSED,
		      const struct store_stat *st NZ_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

int fs_remote_folder(const struct app *setup, const char *address, struct store **ret,
		     struct err *e)
{
	struct store *store = NULL;
	struct err why = ERR_INIT; /* absence is no error of a folder */
	struct source_at at;
	auto_reach r = {0};
	bool any = false;
	int rc = app_remote_parse(setup->cfg, address, &r, e);

	if (rc < 0)
		return rc;
	rc = remote_at(r.remote, &r.t, &at, &why);
	if (rc == 0)
		remote_at_release(&at);
	else if (rc == -ENOENT && remote_store(r.remote, &r.t, &store, NULL) == 0 &&
		 !store->unlisted) {
		struct err list = ERR_INIT;
		int listed = store_list(store, "", false, not_empty, &any, &list);

		if (any)
			rc = 1;
		else if (listed < 0) { /* no proof of absence */
			rc = listed;
			why = list;
		}
	}
	if (rc > 0)
		*ret = store;
	else
		store_close(store);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : rc;
}

int fs_source_below(const struct app *setup, const char *folder, const char *key, bool is_file,
		    const struct source_options *opts, struct source **ret, struct err *e)
{
	auto_reach r = {0};
	int rc = app_remote_parse(setup->cfg, folder, &r, e);

	if (rc < 0)
		return rc;
	auto_free char *whole = *r.t.key ? str_printf("%s/%s", r.t.key, key) : strdup(key);
	size_t n = strlen(r.t.shown);

	while (n > 0 && r.t.shown[n - 1] == '/')
		n--;
	auto_free char *shown = str_printf("%.*s/%s", (int)n, r.t.shown, key);

	r.t.key = whole;
	r.t.shown = shown;
	r.t.what = is_file ? REMOTE_FILE : REMOTE_TREE;
	return whole && shown ? open_target(setup, &r, opts, ret, e) : err_nomem(e);
}

int fs_store(const struct app *setup, const char *address, struct store **ret, struct err *e)
{
	auto_reach r = {0};
	int rc = app_remote_parse(setup->cfg, address, &r, e);

	return rc ? rc : remote_store(r.remote, &r.t, ret, e);
}

/* may_be_private - true if an object that the metadata at `from` names may be in a private network:
 * the metadata is local, or is itself in a private network. */
static bool may_be_private(const char *from, const char *to)
{
	struct url u;
	bool may;

	if (!from || same_origin(from, to))
		return true;
	if (url_parse(from, &u, NULL) < 0)
		return false;
	may = remote_is_private(u.host);
	url_release(&u);
	return may;
}

/* app_remote_blob - remote_opener.blob. */
static int app_remote_blob(void *setup, const char *from, const char *text, struct blob **ret,
			   struct err *e)
{
	const struct cfg *cfg = ((const struct app *)setup)->cfg;
	struct source_at at;
	auto_reach r = {0};
	int rc;

	if (strchr(text, '#')) /* a fragment could send the user's credentials to any host */
		return err_set(
			e, -EINVAL,
			"a reference cannot contain '#': write %%23 for a '#' in a name");
	rc = app_remote_parse(cfg, text, &r, e);
	if (rc < 0)
		return rc;
	r.t.what = REMOTE_OBJECT;
	r.t.public_only = !cfg->remote.private_redirects && !may_be_private(from, text);
	rc = remote_at(r.remote, &r.t, &at, e);
	if (rc == 0)
		*ret = at.file;
	return rc;
}

void fs_remote_begin(struct app *setup)
{
	static struct remote_opener reach;

	reach = (struct remote_opener){.arg = setup, .blob = app_remote_blob};
	refs_set_remote_opener(&reach);
}

char *fs_shown(const char *source)
{
	struct address a;
	char *text;

	if (!address_is_remote(source))
		return strdup(source);
	if (address_parse(source, &a, NULL) < 0)
		return strdup("an address");
	text = steal(&a.shown);
	address_release(&a);
	return text;
}

uint64_t fs_remote_requests(void)
{
	LOCK_SCOPE(&the.lock);

	return the.remote && the.owner == getpid() ? remote_requests(the.remote) : 0;
}

void fs_remote_stop(void)
{
	cancel_everything();
	LOCK_SCOPE(&the.lock);
	if (the.remote && the.owner == getpid())
		remote_stop(the.remote);
}

void fs_remote_end(void)
{
	LOCK_SCOPE(&the.lock);

	if (the.remote && the.owner == getpid())
		remote_free(the.remote);
	the.remote = NULL;
}
