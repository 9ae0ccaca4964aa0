/* SPDX-License-Identifier: BSD-3-Clause */
/* source.c - reference files as sources: bids, and opens a Zarr source over them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/os/open_beneath.h"
#include "nczarr/refs/refs_int.h"

#define HEAD_BYTES 4096
#define TAIL_BYTES 128
#define ZMETADATA ".zmetadata"

static struct remote_opener g_reach; /* set before threads are started */

void refs_set_remote_opener(const struct remote_opener *reach)
{
	g_reach = *reach;
}

/* ---- bids ---- */

/* skip_space - skip white space. */
static const char *skip_space(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* refs_source_member_is - whether a string at the start of a document is the key of a member whose
 * value starts with one of the characters. */
static bool refs_source_member_is(const char *head, const char *end_of_key, const char *values)
{
	const size_t n = strlen(end_of_key);
	const char *p = head, *v;

	while ((p = strstr(p, end_of_key))) {
		p += n;
		v = skip_space(p);
		if (*v != ':')
			continue;
		v = skip_space(v + 1);
		if (*v && strchr(values, *v))
			return true;
	}
	return false;
}

static int bid_json(struct blob *file, struct err *e)
{
	static const char *const keys[] = {".zgroup\"", ".zarray\"", ".zattrs\"", "zarr.json\"",
					   ".zmetadata\""};
	size_t n = (size_t)u64_min(file->size, HEAD_BYTES);
	char head[HEAD_BYTES + 1];
	struct scan s;
	int rc;

	if (n < 2)
		return 0;
	rc = blob_read(file, 0, head, 1, e);
	if (rc < 0 || !strchr("{ \t\r\n", head[0]))
		return rc;
	rc = blob_read(file, 0, head, n, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++)
		if (head[i] == '\0')
			return 0;
	head[n] = '\0';
	if (*skip_space(head) != '{')
		return 0;
	if (refs_source_member_is(head, "\"refs\"", "{"))
		return 10;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (refs_source_member_is(head, keys[i], "\"["))
			return 10;
	/* version 1 with templates or generators that exceed the inspected bytes */
	s = (struct scan){(const uint8_t *)head, (const uint8_t *)head + n,
			  (const uint8_t *)head};
	return scan_is(&s, '{') && refs_source_member_is(head, "\"version\"", "1") &&
			       (refs_source_member_is(head, "\"templates\"", "{") ||
				refs_source_member_is(head, "\"gen\"", "["))
		       ? 10
		       : 0;
}

/* says_records - 1 if the start or end of a .zmetadata has a member of kerchunk; 0; -errno. */
static int says_records(struct blob *doc, struct err *e)
{
	char text[TAIL_BYTES + 1];
	size_t n = (size_t)u64_min(doc->size, TAIL_BYTES);

	for (int end = 0; end < 2; end++) {
		int rc = n ? blob_read(doc, end ? doc->size - n : 0, text, n, e) : 0;

		if (n == 0 || rc < 0)
			return rc;
		text[n] = '\0';
		if (refs_source_member_is(text, "\"record_size\"", "123456789"))
			return 1;
	}
	return 0;
}

static int bid_parquet(const struct source_at *at, struct err *e)
{
	struct blob doc, *b = NULL;
	struct stat st;
	auto_fd int fd = -1;
	int is;

	if (at->store) {
		is = blob_of_store(at->store, ZMETADATA, &b, e);
		if (is < 0)
			return err_is_transient(is) ? is : 0;
		is = says_records(b, e);
		blob_close(b);
		return is > 0 ? 12 : is;
	}
	fd = open_beneath(at->fd, ZMETADATA, O_RDONLY);
	if (fd < 0)
		return fd == -EIO || err_is_transient(fd) ? fd : 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	doc = blob_of_fd(fd, (uint64_t)st.st_size);
	is = says_records(&doc, e);
	return is > 0 ? 12 : is;
}

static int refs_source_bid(const struct source_at *at, struct err *e)
{
	if (at->file)
		return bid_json(at->file, e);
	return at->store || at->fd >= 0 ? bid_parquet(at, e) : 0;
}

/* ---- opening ---- */

static int open_parquet(const struct source_at *at, const struct source_options *opts,
			struct refs_index **ret, struct err *e)
{
	struct store *store = at->store;
	auto_fd int fd = store ? -1 : fcntl(at->fd, F_DUPFD_CLOEXEC, 0);
	int rc = 0;

	if (!store)
		rc = fd < 0 ? err_sys(e, errno, "cannot duplicate a file descriptor")
			    : store_dir_open(fd, &store, e);
	fd = rc ? fd : -1; /* taken */
	rc = rc ? rc : refs_parq_open(store, opts->max_meta_bytes, ret, e);
	if (rc && !at->store)
		store_close(store);
	return rc;
}

static int open_targets(const struct source_at *at, const struct source_options *opts,
			struct refs_targets **ret, struct err *e)
{
	const bool local = at->fd >= 0;
	auto_free char *dir = local ? realpath(at->path, NULL) : NULL;
	const struct refs_origin home = {
		.address = local ? NULL : at->path,
		.dir = dir,
		.external_root = local ? opts->external_root : NULL,
		.reach = &g_reach,
	};
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (local && !dir)
		return err_sys(e, errno, "cannot open the directory of the reference file");
	if (slash)
		slash[slash == dir] = '\0';
	return refs_targets_new(&home, ret, e);
}

static int refs_source_open_source(const struct source_at *at,
				   const struct source_options *opts, struct source **ret,
				   struct err *e)
{
	struct source_at tree = {.path = at->path, .fd = -1, .st = at->st};
	struct refs_targets *targets = NULL;
	struct refs_index *x = NULL;
	int rc = at->file ? refs_table_open(at->file, opts->max_meta_bytes, &x, e)
			  : open_parquet(at, opts, &x, e);

	rc = rc ? rc : open_targets(at, opts, &targets, e);
	rc = rc ? rc : store_refs_open(x, targets, &tree.store, e);
	if (rc == 0) {
		tree.st.st_mode = S_IFDIR | (at->st.st_mode & 0777);
		rc = zarr_source_ops.open(&tree, opts, ret, e);
	}
	if (rc) {
		if (x)
			x->borrows = at->fd < 0;
		if (tree.store) {
			store_close(tree.store);
			return rc;
		}
		refs_targets_free(targets);
		if (x)
			x->ops->close(x);
		return rc;
	}
	if (at->fd >= 0)
		(void)close(at->fd); /* taken; the index of a directory has one of its own */
	return 0;
}

const struct source_ops refs_source_ops = {
	.name = "refs",
	.bid = refs_source_bid,
	.open = refs_source_open_source,
};
