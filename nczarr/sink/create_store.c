/* SPDX-License-Identifier: BSD-3-Clause */
/* create_store.c - creates an empty store: the root's documents. It is made under a temporary name
 * and then renamed, so that it is never visible half-made. */
#include "nczarr/nczarr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/str.h"
#include "base/os/open_beneath.h"
#include "nczarr/sink/sink_int.h"

#define LONG 200

/* create_put_new - put a document of a remote store, if it is absent. */
static int create_put_new(struct store *s, const char *key, const struct buf *b, struct err *e)
{
	struct store_put what = {.data = b->data, .fd = -1, .len = b->len, .absent = true};
	int rc = store_put(s, key, &what, NULL, e);
	struct store_stat st;

	if (rc != -EOPNOTSUPP)
		return rc;
	rc = store_fresh(s, key, &st, e);
	if (rc == 0)
		return err_set(e, -EEXIST, "'%s' already exists", key);
	if (rc != -ENOENT)
		return rc;
	what.absent = false;
	return store_put(s, key, &what, NULL, e);
}

static int create_root_doc(int dir, struct store *store, const struct zr_metadata *em,
			   enum zr_doc doc, struct err *e)
{
	auto_buf b = buf_of(ZR_DOC_MAX);
	int rc = zr_metadata_doc(em, doc, 0, &b, e);

	if (rc)
		return rc;
	return store ? create_put_new(store, zr_doc_file(doc), &b, e)
		     : zs_write_file(dir, zr_doc_file(doc), b.data, b.len, e);
}

/* create_fill - write the documents; the one that makes it a store comes last. */
static int create_fill(int dir, struct store *store, const struct zarr_sink_options *opts,
		       struct err *e)
{
	struct ds_group root = {.name = "", .parent = DS_NONE};
	struct dataset ds = {.n_groups = 1, .groups = &root};
	const bool hidden = false;
	struct zr_metadata em = {.ds = &ds,
				 .hidden_groups = &hidden,
				 .format = zr_format_of(opts->format, true),
				 .mode = opts->mode,
				 .strict_json = opts->strict_json};
	int rc;

	if (opts->format == 3)
		return create_root_doc(dir, store, &em, ZR_DOC_GROUP_JSON, e);
	rc = create_root_doc(dir, store, &em, ZR_DOC_GROUP_ATTRS, e);
	return rc ? rc : create_root_doc(dir, store, &em, ZR_DOC_ZGROUP, e);
}

static bool found_one(void *arg, const char *name NZ_UNUSED, bool is_dir NZ_UNUSED,
		      const struct store_stat *st NZ_UNUSED)
{
	*(bool *)arg = true;
	return false;
}

static int create_create_remote(const char *path, const struct zarr_sink_options *opts,
				struct err *e)
{
	bool any = false;
	int rc = store_list(opts->store, "", false, found_one, &any, e);

	if (rc && rc != -ENOENT)
		return err_wrap(e, rc, "'%.*s'", LONG, path);
	if (any)
		return err_set(e, -EEXIST, "'%.*s' already exists", LONG, path);
	rc = create_fill(-1, opts->store, opts, e);
	return rc ? err_wrap(e, rc, "'%.*s'", LONG, path) : 0;
}

/* create_place - rename the temporary directory to `name`, and sync. */
static int create_place(int parent, int dir, const char *tmp, const char *name, struct err *e)
{
	if (syncfs(dir) < 0)
		return err_sys(e, errno, "cannot sync '%.*s'", LONG, name);
	if (renameat2(parent, tmp, parent, name, RENAME_NOREPLACE) < 0)
		return err_sys(e, errno, "'%.*s'", LONG, name);
	return fsync(parent) < 0 ? err_sys(e, errno, "cannot sync '%.*s'", LONG, name) : 0;
}

int zarr_create(const char *path, const struct zarr_sink_options *opts, struct err *e)
{
	auto_free char *copy = strdup(path), *tmp = NULL;
	auto_fd int parent = -1, dir = -1;
	const char *name;
	struct stat st;
	char *slash;
	int rc;

	if (!copy)
		return err_nomem(e);
	if (opts->store)
		return create_create_remote(path, opts, e);
	for (size_t n = strlen(copy); n > 1 && copy[n - 1] == '/'; n--)
		copy[n - 1] = '\0';
	slash = strrchr(copy, '/');
	name = slash ? slash + 1 : copy;
	if (slash)
		*slash = '\0';
	parent = open(!slash ? "." : *copy ? copy : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return err_sys(e, errno, "cannot open the directory of '%.*s'", LONG, path);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(e, -EEXIST, "'%.*s' already exists", LONG, path);
	tmp = str_printf(".%s.%ld.nczarrfs", name, (long)getpid());
	if (!tmp)
		return err_nomem(e);
	if (mkdirat(parent, tmp, 0777) < 0)
		return err_sys(e, errno, "'%.*s'", LONG, path);
	dir = openat(parent, tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0 || fstat(dir, &st) < 0)
		rc = err_sys(e, errno, "'%.*s'", LONG, path);
	else if (st.st_uid != geteuid()) /* other users may write to its parent */
		rc = err_set(e, -EACCES, "'%.*s' was replaced by another program", LONG, tmp);
	else
		rc = create_fill(dir, NULL, opts, e);
	rc = rc ? rc : create_place(parent, dir, tmp, name, e);
	if (rc && remove_beneath_err(parent, tmp, NULL) < 0)
		return err_wrap(e, rc, "the temporary directory '%.*s' cannot be removed", LONG,
				tmp);
	return rc;
}
