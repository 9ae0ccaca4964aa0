/* SPDX-License-Identifier: BSD-3-Clause */
/* targets.c - the targets of references: access checks, and a cache of open files.
 *
 * Reference files are untrusted. A local one may refer to files below its own directory, or below
 * external_root, and to remote files; a remote one to remote files only. A target that was
 * replaced since it was opened first is never read again: -ESTALE. */
#include "nczarr/refs/refs_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/hash.h"
#include "base/core/list.h"
#include "base/core/map.h"
#include "base/core/str.h"
#include "base/os/open_beneath.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "base/os/url.h"

#define OPEN_MAX_TARGETS 64 /* cached open targets, in addition to those in use */
#define SHOWN 160

/* refs_target - a target that was opened once. `seen` is kept until the end, so that another file
 * under its name is detected. */
struct refs_target {
	struct link link;         /* in refs_targets.by_url */
	struct list_link idle;    /* in refs_targets.idle, while it is open and unused */
	struct blob *blob;        /* NULL: closed; owned */
	struct blob local;        /* blob points here for files */
	uint64_t seen;            /* identity at the first open; 0: never opened */
	uint32_t users;
	bool opening;
	char url[];
};

struct refs_targets {
	char *address, *dir, *external_root; /* owned */
	const struct remote_opener *reach;
	pthread_mutex_t lock; /* of all members below */
	pthread_cond_t opened;
	struct map by_url;
	struct list_link idle; /* most recently used first */
	uint32_t n_open;
	_Atomic bool changed;
};

int refs_targets_new(const struct refs_origin *home, struct refs_targets **ret, struct err *e)
{
	struct refs_targets *t = alloc_array(1, sizeof(*t));
	bool failed = false;

	if (!t)
		return err_nomem(e);
	(void)pthread_mutex_init(&t->lock, NULL); /* cannot fail with default attributes */
	cancel_cond_init(&t->opened);
	t->address = str_copy(home->address, &failed);
	/* links are resolved now, so that the check for "below" stays valid */
	t->dir = home->dir ? realpath(home->dir, NULL) : NULL;
	t->external_root = home->external_root ? realpath(home->external_root, NULL) : NULL;
	t->reach = home->reach;
	list_init(&t->idle);
	if (failed || (home->dir && !t->dir)) {
		refs_targets_free(t);
		return err_nomem(e);
	}
	*ret = t;
	return 0;
}

static void close_target(struct refs_target *x)
{
	if (x->blob && x->blob->fd >= 0)
		(void)close(x->blob->fd); /* opened for reading only */
	else
		blob_close(x->blob);
	x->blob = NULL;
}

void refs_targets_free(struct refs_targets *t)
{
	if (!t)
		return;
	for (struct link *l = map_walk(&t->by_url, NULL), *next; l; l = next) {
		struct refs_target *x = CONTAINER_OF(l, struct refs_target, link);

		next = map_walk(&t->by_url, l);
		close_target(x);
		free(x);
	}
	map_free(&t->by_url);
	(void)pthread_mutex_destroy(&t->lock);
	(void)pthread_cond_destroy(&t->opened);
	free(t->address);
	free(t->dir);
	free(t->external_root);
	free(t);
}

bool refs_targets_changed(const struct refs_targets *t)
{
	return atomic_load(&((struct refs_targets *)(uintptr_t)t)->changed);
}

/* ---- access checks ---- */

/* targets_path_of - the path of an address; NULL: it is remote. */
static const char *targets_path_of(const char *url)
{
	if (strncmp(url, "file://", 7) == 0)
		return url + 7;
	if (strncmp(url, "local://", 8) == 0)
		return url + 8;
	return strstr(url, "://") ? NULL : url;
}

/* rest_below - the path relative to a directory; NULL: it is not below. */
static const char *rest_below(const char *path, const char *dir)
{
	size_t n = dir ? strlen(dir) : 0;

	if (!dir)
		return NULL;
	if (n == 1)
		return path + 1;
	return strncmp(path, dir, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* open_below - open a file by its path, if the reference file may refer to it. */
static int open_below(const struct refs_targets *t, const char *path, struct err *e)
{
	const char *const roots[] = {t->dir, t->external_root};
	auto_free char *real = NULL, *joined = NULL;

	if (t->address)
		return err_set(e, -EACCES,
			       "a remote reference file refers to the local file '%.*s', which "
			       "is not allowed",
			       SHOWN, path);
	joined = path[0] == '/' ? strdup(path) : str_printf("%s/%s", t->dir, path);
	if (!joined)
		return err_nomem(e);
	real = realpath(joined, NULL);
	if (!real)
		return err_sys(e, errno, "'%.*s'", SHOWN, path);
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		const char *rest = rest_below(real, roots[i]);
		auto_fd int at = rest ? open(roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
		int fd = at < 0 ? -1 : open_beneath(at, rest, O_RDONLY);

		if (rest && at < 0)
			return err_sys(e, errno, "'%.*s'", SHOWN, roots[i]);
		if (rest && fd < 0)
			return err_sys(e, -fd, "'%.*s'", SHOWN, path);
		if (rest)
			return fd;
	}
	return err_set(e, -EACCES,
		       "'%.*s' is outside the directory of the reference file: -o "
		       "external_root= allows references to another directory",
		       SHOWN, path);
}

/* targets_open_file - *ret_seen: its identity. */
static int targets_open_file(const struct refs_targets *t, struct refs_target *x,
			     const char *path, uint64_t *ret_seen, struct err *e)
{
	struct stat st;
	int fd = open_below(t, path, e);

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)close(fd); /* not read yet */
		return err_set(e, -EIO, "'%.*s' is not a regular file", SHOWN, path);
	}
	*ret_seen = store_version(store_mix_file(&st));
	x->local = blob_of_fd(fd, (uint64_t)st.st_size);
	x->blob = &x->local;
	return 0;
}

/* targets_put_escaped - append a URL with spaces and other invalid characters escaped, which
 * writers leave in. */
static void targets_put_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		uint8_t c = (uint8_t)*text;

		if (c <= 0x20 || c >= 0x7f || strchr("\"<>\\^`{|}", c))
			buf_printf(out, "%%%02X", c);
		else
			buf_putc(out, (char)c);
	}
}

/* put_remote - append an address in the form of remote_opener.blob. Keys of object stores are not
 * encoded in references. */
static int put_remote(const char *url, struct buf *out, struct err *e)
{
	static const struct {
		const char *from, *to;
	} schemes[] = {{"http://", "http://"}, {"https://", "https://"}, {"s3://", "s3://"},
		       {"s3a://", "s3://"},    {"gs3://", "gs3://"},     {"gs://", "gs3://"},
		       {"gcs://", "gs3://"}};

	for (size_t i = 0; i < ARRAY_LEN(schemes); i++) {
		size_t n = strlen(schemes[i].from);

		if (strncmp(url, schemes[i].from, n) != 0)
			continue;
		buf_puts(out, schemes[i].to);
		if (schemes[i].to[0] == 'h')
			targets_put_escaped(out, url + n);
		else
			url_encode(out, url + n, strlen(url + n), true);
		return buf_ok(out) ? 0 : err_nomem(e);
	}
	return err_set(e, -EOPNOTSUPP, "'%.*s': this kind of address is not supported", SHOWN,
		       url);
}

/* open_remote - the same. The identity is made of size and version. */
static int open_remote(const struct refs_targets *t, struct refs_target *x, uint64_t *ret_seen,
		       struct err *e)
{
	auto_buf address = buf_of((size_t)1 << 16);
	int rc = put_remote(x->url, &address, e);

	buf_putc(&address, '\0');
	if (rc == 0 && (!t->reach || !t->reach->blob))
		rc = err_set(e, -EOPNOTSUPP,
			     "'%.*s': references to remote files are not supported here", SHOWN,
			     x->url);
	rc = rc ? rc : t->reach->blob(t->reach->arg, t->address, (const char *)address.data,
				      &x->blob, e);
	if (rc == 0)
		*ret_seen = (x->blob->size ^ x->blob->version * UINT64_C(0x9e3779b97f4a7c15)) |
			    (uint64_t)1 << 63;
	return rc;
}

static int targets_open(const struct refs_targets *t, struct refs_target *x, struct err *e)
{
	const char *path = targets_path_of(x->url);
	uint64_t seen = 0;
	int rc = path ? targets_open_file(t, x, path, &seen, e) : open_remote(t, x, &seen, e);

	if (rc == 0 && x->seen && x->seen != seen) {
		close_target(x);
		return err_set(e, -ESTALE, "'%.*s' was changed", SHOWN, path ? path : x->url);
	}
	x->seen = rc ? x->seen : seen;
	return rc;
}

/* ---- the few that are open ---- */

/* targets_find - lock: find the target of an address; make: add it. */
static struct refs_target *targets_find(struct refs_targets *t, const char *url, bool make)
{
	const uint64_t hash = hash_u64(hash_text(HASH_SEED, url));
	size_t n = strlen(url) + 1;
	struct refs_target *x;

	MAP_EACH(x, &t->by_url, hash, link)
		if (strcmp(x->url, url) == 0)
			return x;
	x = make ? alloc_array(1, sizeof(*x) + n) : NULL;
	if (!x)
		return NULL;
	memcpy(x->url, url, n);
	list_init(&x->idle);
	if (map_add(&t->by_url, &x->link, hash) < 0) {
		free(x);
		return NULL;
	}
	return x;
}

/* targets_trim - lock: close the least recently used targets if too many are open. */
static void targets_trim(struct refs_targets *t)
{
	while (t->n_open > OPEN_MAX_TARGETS && t->idle.prev != &t->idle) {
		struct refs_target *x = CONTAINER_OF(t->idle.prev, struct refs_target, idle);

		list_remove(&x->idle);
		close_target(x);
		t->n_open--;
	}
}

/* targets_use - lock: add a user to an open target. */
static void targets_use(struct refs_target *x)
{
	if (x->users++ == 0)
		list_remove(&x->idle);
}

int refs_target_take(struct refs_targets *t, const char *url, struct refs_target **ret,
		     struct blob **ret_blob, struct err *e)
{
	struct refs_target *x;
	int rc = 0;

	(void)pthread_mutex_lock(&t->lock);
	x = targets_find(t, url, true);
	while (rc == 0 && x && x->opening)
		rc = cancel_wait(&t->opened, &t->lock);
	if (rc) {
		(void)pthread_mutex_unlock(&t->lock);
		return err_set(e, rc, "'%.*s': cancelled", SHOWN, url);
	}
	if (x && !x->blob) {
		x->opening = true;
		(void)pthread_mutex_unlock(&t->lock);
		rc = targets_open(t, x, e);
		(void)pthread_mutex_lock(&t->lock);
		x->opening = false;
		t->n_open += rc == 0;
		(void)pthread_cond_broadcast(&t->opened);
	}
	if (x && rc == 0)
		targets_use(x);
	(void)pthread_mutex_unlock(&t->lock);
	if (!x)
		return err_nomem(e);
	if (rc == -ESTALE)
		atomic_store(&t->changed, true);
	if (rc == -ENOENT || rc == -ENOTDIR) {
		if (e)
			e->code = -EIO; /* its message says that it does not exist */
		return -EIO;
	}
	*ret = x;
	*ret_blob = x->blob;
	return rc;
}

bool refs_target_if_open(struct refs_targets *t, const char *url, struct refs_target **ret,
			 struct blob **ret_blob)
{
	LOCK_SCOPE(&t->lock);
	struct refs_target *x = targets_find(t, url, false);

	if (!x || x->opening || !x->blob)
		return false;
	targets_use(x);
	*ret = x;
	*ret_blob = x->blob;
	return true;
}

void refs_target_give(struct refs_targets *t, struct refs_target *x)
{
	LOCK_SCOPE(&t->lock);

	if (--x->users == 0)
		list_add(&t->idle, &x->idle);
	targets_trim(t);
}

int refs_target_place(const struct refs_targets *t, const char *url, struct buf *out,
		      struct err *e)
{
	const char *path = targets_path_of(url);

	if (path && path[0] != '/' && t->dir)
		buf_printf(out, "%s/", t->dir);
	buf_puts(out, path ? path : url);
	return buf_ok(out) ? 0 : err_nomem(e);
}
