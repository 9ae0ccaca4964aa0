/* SPDX-License-Identifier: BSD-3-Clause */
/* source.c - the Zarr source: bids, open, close, and the table of operations.
 *
 * Opening reads the metadata only; chunks are looked up on demand. */
#include "nczarr/nczarr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/core/endings.h"
#include "nczarr/source/source_int.h"

#define ZIP_LOOK_BYTES ((uint64_t)64 << 20) /* for the directory of an archive at a bid */

/* Metadata documents of a root. */
static const char *const docs[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata", ".nczarr"};

/* has_docs - whether a folder of an archive has one. */
static bool has_docs(struct store *s, const char *folder)
{
	char key[STORE_KEY_MAX + 1];
	struct store_stat st;

	for (size_t i = 0; i < ARRAY_LEN(docs); i++)
		if (store_key_join(folder, docs[i], strlen(docs[i]), key) &&
		    store_stat(s, key, &st, NULL) == 0)
			return true;
	return false;
}

struct source_look {
	struct store *s;
	bool found;
};

static bool look_into(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct source_look *l = arg;

	(void)st;
	l->found = is_dir && has_docs(l->s, name);
	return !l->found;
}

/* bid_remote_zip - a remote file is inspected only if its start or its name is that of an archive:
 * its end would cost a request. */
static int bid_remote_zip(const char *path, struct blob *file, struct err *e)
{
	const bool named = ending_of(path) == ENDING_ZIP;
	char head[4] = "";
	int is;

	if (!named &&
	    (file->size < sizeof(head) || blob_read(file, 0, head, sizeof(head), NULL) < 0 ||
	     memcmp(head, "PK\x03\x04", sizeof(head)) != 0))
		return 0;
	is = store_zip_bid(file, e);
	return is > 0 ? 5 : is;
}

/* bid_zip - archives have many uses. A damaged one is reported by this source only if no other one
 * bids. */
static int bid_zip(const char *path, int fd, struct blob *file, struct err *e)
{
	struct source_look l = {NULL, false};
	const struct ending_row *row;
	size_t stem;
	int own, rc;

	if (fd < 0)
		return bid_remote_zip(path, file, e);
	rc = store_zip_bid(file, e);
	if (rc <= 0)
		return rc;
	row = ending_find(path, strlen(path), &stem);
	if (row && strcmp(row->text, ".zarr.zip") == 0)
		return 5;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	rc = store_zip_open(own, ZIP_LOOK_BYTES, &l.s, NULL);
	if (rc < 0) {
		(void)close(own); /* it was only read from */
		return err_is_transient(rc) ? rc : 1;
	}
	l.found = has_docs(l.s, "");
	/* a root without a document is accepted if arrays below it have some */
	rc = l.found ? 0 : store_list(l.s, "", false, look_into, &l, NULL);
	store_close(l.s);
	return err_is_transient(rc) ? rc : l.found ? 5 : 0;
}

static int zarr_source_bid(const struct source_at *at, struct err *e)
{
	struct stat doc;

	if (at->file)
		return bid_zip(at->path, at->fd, at->file, e);
	if (at->store)
		return zr_remote_bid(at->store);
	if (at->fd < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
		if (fstatat(at->fd, docs[i], &doc, 0) == 0) {
			if (S_ISREG(doc.st_mode))
				return 10;
		} else if (errno == EIO || err_is_transient(-errno)) {
			return -errno;
		}
	}
	return ending_of(at->path) == ENDING_TREE ? 2 : 0;
}

/* zarr_source_release - free all but the store, whose descriptor belongs to the caller during
 * opening. */
static void zarr_source_release(struct zr_source *s)
{
	free(s->nodes);
	zr_data_free(s->data);
	free(s->seen);
	free(s->path);
	arena_release(&s->base.ds.arena);
	free(s);
}

/* zarr_source_make - open a store as a source. It is taken on success only. */
static int zarr_source_make(struct store *store, bool borrowed, const char *path,
			    const struct stat *st, const struct source_options *opts,
			    struct zr_source **ret, struct err *e)
{
	struct zr_source *s = alloc_array(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(e);
	s->base.ops = &zarr_source_ops;
	s->base.remote = store->remote;
	s->base.unlisted = store->unlisted;
	s->base.ds.st = *st;
	s->opts = *opts;
	s->opts.external_root = NULL; /* borrowed, and not used by this source */
	s->store = store;
	s->borrowed = borrowed;
	s->path = strdup(path);
	arena_init(&s->base.ds.arena, (size_t)u64_min(opts->max_meta_bytes, SIZE_MAX));
	rc = s->path ? zr_model(s, e) : err_nomem(e);
	s->opts.unlimited = NULL; /* borrowed until now */
	s->opts.n_unlimited = 0;
	rc = rc ? rc : zr_data_new(s, &s->data, e);
	if (rc < 0)
		zarr_source_release(s);
	else
		*ret = s;
	return rc;
}

/* open_local - a directory, or an archive. The store has a descriptor of its own. */
static int open_local(const struct source_at *at, const struct source_options *opts,
		      struct store **ret, struct err *e)
{
	int own = fcntl(at->fd, F_DUPFD_CLOEXEC, 0), rc;

	if (own < 0)
		return err_sys(e, errno, "cannot duplicate a file descriptor");
	rc = S_ISDIR(at->st.st_mode) ? store_dir_open(own, ret, e)
				     : store_zip_open(own, opts->max_meta_bytes, ret, e);
	if (rc < 0)
		(void)close(own); /* it was only read from */
	return rc;
}

static int zarr_source_open_source(const struct source_at *at,
				   const struct source_options *opts, struct source **ret,
				   struct err *e)
{
	const bool zip = at->fd < 0 && at->file, local = !zip && !at->store;
	auto_free char *real = local ? realpath(at->path, NULL) : NULL;
	struct store *store = zip ? NULL : at->store;
	struct zr_source *s = NULL;
	int rc = 0;

	if (zip)
		rc = store_zip_open_blob(at->file, opts->max_meta_bytes, &store, e);
	else if (local)
		rc = open_local(at, opts, &store, e);
	if (rc == 0)
		rc = zarr_source_make(store, false, real ? real : at->path, &at->st, opts, &s,
				      e);
	if (rc < 0) {
		if (zip || local)
			store_close(store);
		return rc;
	}
	s->in_dir = local && S_ISDIR(at->st.st_mode);
	if (zip)
		s->file = at->file;
	if (local)
		(void)close(at->fd); /* taken */
	*ret = &s->base;
	return 0;
}

int zarr_store_open(struct store *store, const char *name, const struct source_options *opts,
		    struct source **ret, struct err *e)
{
	const struct stat st = {.st_mode = S_IFDIR | 0755};
	struct zr_source *s = NULL;
	int rc = zarr_source_make(store, true, name, &st, opts, &s, e);

	if (rc == 0)
		*ret = &s->base;
	return rc;
}

static void zarr_source_close_source(struct source *src)
{
	struct zr_source *s = zr_of(src);
	struct store *store = s->borrowed ? NULL : s->store;
	struct blob *file = s->file;

	zarr_source_release(s);
	store_close(store);
	blob_close(file);
}

const struct source_ops zarr_source_ops = {
	.name = "zarr",
	.bid = zarr_source_bid,
	.open = zarr_source_open_source,
	.close = zarr_source_close_source,
	.locate = zr_locate,
	.place = zr_place_chunk,
	.next = zr_next,
	.read_chunk = zr_read_chunk,
	.read_vlen = zr_read_vlen,
	.read_stored = zr_read_stored,
	.want = zr_want,
	.forget = zr_forget,
	.check = zr_check,
	.poll = zr_poll,
	.hold = zr_hold,
};
