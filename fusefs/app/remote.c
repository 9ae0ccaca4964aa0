/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.c - sources that are addresses: one `remote` for all sources of a process.
 *
 * It has a thread and connections, and is created in the process that needs it, at its first use. A
 * forked child creates its own. */
#include "fusefs/app/remote.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/os/cancel.h"
#include "base/os/url.h"
#include "fusefs/app/concat.h"
#include "mountcfg/address/address.h"

static struct {
	pthread_mutex_t lock;
	const struct fs_remote *ops; /* lock */
	void *remote;                /* lock; NULL: no remote source was opened here */
	pid_t owner;                 /* lock */
} the = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int app_remote_get(const struct app *setup, void **ret, struct err *e)
{
	int rc = 0;

	if (!setup->remote)
		return err_set(e, -EOPNOTSUPP, "'%s': remote sources are not available here",
			       setup->cfg->shown);
	(void)pthread_mutex_lock(&the.lock);
	if (the.owner != getpid())
		the.remote = NULL; /* created by a parent process: its thread does not exist here */
	if (!the.remote)
		rc = setup->remote->open(setup->cfg, &the.remote, e);
	the.ops = setup->remote;
	the.owner = getpid();
	*ret = the.remote;
	(void)pthread_mutex_unlock(&the.lock);
	return rc;
}

int fs_source(const struct app *setup, const char *path, const struct source_options *opts,
	      struct source **ret, struct err *e)
{
	struct source_at at;
	void *remote;
	int rc;

	if (setup->cfg->concat)
		return fs_concat(setup, opts, ret, e);
	if (!url_is(path)) {
		rc = source_open(setup->formats, setup->n_formats, path, opts, ret, e);
		return rc < 0 ? fs_concat_hint(path, rc, e) : 0;
	}
	rc = app_remote_get(setup, &remote, e);
	if (rc == 0)
		rc = setup->remote->at(remote, path, &at, e);
	if (rc < 0)
		return rc;
	rc = source_open_at(setup->formats, setup->n_formats, &at, opts, ret, e);
	if (rc < 0)
		setup->remote->release(&at);
	return rc;
}

int fs_store(const struct app *setup, const char *address, struct store **ret, struct err *e)
{
	void *remote;
	int rc = app_remote_get(setup, &remote, e);

	return rc < 0 ? rc : setup->remote->store(remote, address, ret, e);
}

int fs_blob(const struct app *setup, const char *from, const char *address, struct blob **ret,
	    struct err *e)
{
	void *remote;
	int rc = app_remote_get(setup, &remote, e);

	return rc < 0 ? rc : setup->remote->blob(remote, from, address, ret, e);
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
	uint64_t n = 0;

	(void)pthread_mutex_lock(&the.lock);
	if (the.remote && the.owner == getpid())
		n = the.ops->requests(the.remote);
	(void)pthread_mutex_unlock(&the.lock);
	return n;
}

void fs_remote_stop(void)
{
	cancel_everything();
	(void)pthread_mutex_lock(&the.lock);
	if (the.remote && the.owner == getpid())
		the.ops->stop(the.remote);
	(void)pthread_mutex_unlock(&the.lock);
}

void fs_remote_end(void)
{
	(void)pthread_mutex_lock(&the.lock);
	if (the.remote && the.owner == getpid())
		the.ops->close(the.remote);
	the.remote = NULL;
	(void)pthread_mutex_unlock(&the.lock);
}
