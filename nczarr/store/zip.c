/* SPDX-License-Identifier: BSD-3-Clause */
/* zip.c - a zip archive as a store. It is read in place: the directory once, entries on demand. */
#include "nczarr/store/zip_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static struct zip *zip_of(struct store *s)
{
	return CONTAINER_OF(s, struct zip, base);
}

static const char *entry_name(const void *arg, size_t i, size_t *ret_len)
{
	const struct zip *z = arg;

	*ret_len = z->entries[i].name_len;
	return zip_name(z, &z->entries[i]);
}

static struct sorted_keys zip_names_of(const struct zip *z)
{
	return (struct sorted_keys){.arg = z, .n = z->n, .name = entry_name};
}

static void zip_close(struct store *s)
{
	struct zip *z = zip_of(s);

	cache_free(z->inflated);
	close_fd(&z->fd);
	free(z->entries);
	free(z->names);
	free(z);
}

static uint64_t zip_version_of(const struct zip *z, const struct zip_entry *x)
{
	uint64_t h = store_mix(z->mixed, x->name);

	return store_version(store_mix(store_mix(h, x->stored), x->crc));
}

/* stat_entry - i: an entry, or SORTED_KEYS_NONE for a folder without an entry of its own. */
static void stat_entry(const struct zip *z, size_t i, struct store_stat *ret)
{
	const struct zip_entry *x = i == SORTED_KEYS_NONE ? NULL : &z->entries[i];

	if (!x || x->method == ZIP_FOLDER)
		*ret = (struct store_stat){.is_dir = true, .version = store_version(z->mixed)};
	else if (x->method == ZIP_STORED || x->method == ZIP_DEFLATED)
		*ret = (struct store_stat){.size = x->size, .version = zip_version_of(z, x)};
	else
		*ret = (struct store_stat){.odd = true, .version = zip_version_of(z, x)};
}

static int zip_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	const struct zip *z = zip_of(s);
	const struct sorted_keys t = zip_names_of(z);
	size_t len = strlen(key), i = sorted_keys_find(&t, key, len);

	if (sorted_keys_is(&t, i, key, len))
		stat_entry(z, i, ret);
	else if (len == 0 || sorted_keys_below(&t, i, key, len))
		stat_entry(z, SORTED_KEYS_NONE, ret);
	else
		return err_set(e, -ENOENT, "'%s': not found in the archive", key);
	return 0;
}

struct zip_listing {
	const struct zip *z;
	bool want_stat;
	store_emit *emit;
	void *arg;
};

static bool zip_emit(void *arg, const char *part, size_t len, size_t i,
		     bool has_below NZ_UNUSED)
{
	const struct zip_listing *l = arg;
	struct store_stat st;
	char name[256];

	if (len >= sizeof(name))
		return true;
	memcpy(name, part, len);
	name[len] = '\0';
	stat_entry(l->z, i, &st);
	return l->emit(l->arg, name, st.is_dir, l->want_stat || st.odd ? &st : NULL);
}

static int zip_list(struct store *s, const char *key, bool want_stat, store_emit *emit,
		    void *arg, struct err *e)
{
	const struct zip *z = zip_of(s);
	const struct sorted_keys t = zip_names_of(z);
	struct zip_listing l = {.z = z, .want_stat = want_stat, .emit = emit, .arg = arg};
	size_t len = strlen(key), i;

	if (sorted_keys_list(&t, key, len, zip_emit, &l) || len == 0)
		return 0;
	i = sorted_keys_find(&t, key, len);
	if (sorted_keys_is(&t, i, key, len) && z->entries[i].method == ZIP_FOLDER)
		return 0; /* empty */
	return err_set(e, -ENOENT, "'%s': no such directory in the archive", key);
}

/* zip_find - find a readable entry. */
static int zip_find(const struct zip *z, const char *key, size_t *ret, struct err *e)
{
	const struct sorted_keys t = zip_names_of(z);
	size_t len = strlen(key), i = sorted_keys_find(&t, key, len);
	bool is = sorted_keys_is(&t, i, key, len);
	uint8_t method;

	if (is ? z->entries[i].method == ZIP_FOLDER : sorted_keys_below(&t, i, key, len))
		return err_set(e, -EISDIR, "'%s' is a directory", key);
	if (!is)
		return err_set(e, -ENOENT, "'%s': not found in the archive", key);
	method = z->entries[i].method;
	if (method != ZIP_STORED && method != ZIP_DEFLATED)
		return err_set(e, -EOPNOTSUPP, "zip entry '%s': %s", key,
			       method == ZIP_LINK ? "it is a symbolic link"
						  : "its compression method is not supported");
	*ret = i;
	return 0;
}

static int zip_store_read(struct store *s, const char *key, struct store_io *io, struct err *e)
{
	struct zip *z = zip_of(s);
	size_t i;
	int rc = zip_find(z, key, &i, e);

	if (rc < 0)
		return rc;
	rc = store_io_size(io, key, z->entries[i].size, e);
	io->version = zip_version_of(z, &z->entries[i]);
	return rc ? rc : zip_read(z, i, io->off, io->to, io->len, e);
}

static int zip_check(struct store *s, struct err *e)
{
	const struct zip *z = zip_of(s);
	struct stat st;

	if (z->fd < 0)
		return blob_check(z->blob, false, e);
	if (fstat(z->fd, &st) < 0)
		return err_sys(e, errno, "cannot examine the zip archive");
	if (store_mix_file(&st) != z->mixed)
		return err_set(e, -ESTALE, "the zip archive was changed");
	return 0;
}

static void zip_store_want(struct store *s, const struct store_range *r, size_t n)
{
	struct zip *z = zip_of(s);
	size_t at;

	for (size_t i = 0; i < n; i++)
		if (zip_find(z, r[i].key, &at, NULL) == 0)
			zip_want(z, at, r[i].off, r[i].len);
}

/* zip_forget - drop the cached data of the archive, which is one object. */
static void zip_forget(struct store *s, const char *key NZ_UNUSED)
{
	blob_forget(zip_of(s)->blob);
}

/* zip_fresh - revalidate the archive, which has one version. */
static int zip_fresh(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	struct zip *z = zip_of(s);
	int rc = z->fd < 0 ? blob_check(z->blob, true, e) : 0;

	return rc < 0 ? rc : zip_stat(s, key, ret, e);
}

static int zip_where(struct store *s, const char *key, struct store_place *ret, struct err *e)
{
	struct zip *z = zip_of(s);
	size_t i;
	int rc = zip_find(z, key, &i, e);

	if (rc < 0)
		return rc;
	if (z->entries[i].method != ZIP_STORED)
		return err_set(e, -EOPNOTSUPP, "zip entry '%s' is deflated", key);
	ret->whole = false;
	return zip_place(z, i, &ret->off, e);
}

static const struct store_ops g_ops = {
	.name = "zip",
	.place = zip_where,
	.close = zip_close,
	.stat = zip_stat,
	.list = zip_list,
	.read = zip_store_read,
	.check = zip_check,
	.want = zip_store_want,
	.forget = zip_forget,
	.fresh = zip_fresh,
};

int store_zip_bid(struct blob *b, struct err *e)
{
	struct zip_end end;
	int rc = zip_find_end(b, &end, e);

	return rc == 0 ? 1 : rc == -EIO || err_is_transient(rc) ? rc : 0;
}

/* open_zip - read the directory. z->blob and mixed are set. */
static int open_zip(struct zip *z, uint64_t max_meta, struct store **ret, struct err *e)
{
	struct zip_end end;
	int rc;

	z->base.ops = &g_ops;
	z->inflated = cache_new(ZIP_KEPT_BYTES);
	rc = z->inflated ? zip_find_end(z->blob, &end, e) : err_nomem(e);
	rc = rc ? rc : zip_read_dir(z, &end, max_meta, e);
	if (rc < 0) {
		z->fd = -1; /* the caller's still */
		zip_close(&z->base);
		return rc;
	}
	cache_of_remote(z->inflated); /* waits end when the reader is cancelled */
	*ret = &z->base;
	return 0;
}

int store_zip_open(int fd, uint64_t max_meta, struct store **ret, struct err *e)
{
	struct zip *z;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "cannot examine the zip archive");
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EBADMSG, "not a zip archive: not a regular file");
	z = alloc_array(1, sizeof(*z));
	if (!z)
		return err_nomem(e);
	z->fd = fd;
	z->local = blob_of_fd(fd, (uint64_t)st.st_size);
	z->blob = &z->local;
	z->mixed = store_mix_file(&st);
	return open_zip(z, max_meta, ret, e);
}

int store_zip_open_blob(struct blob *b, uint64_t max_meta, struct store **ret, struct err *e)
{
	struct zip *z = alloc_array(1, sizeof(*z));

	if (!z)
		return err_nomem(e);
	z->fd = -1;
	z->blob = b;
	z->base.remote = true;
	z->mixed = store_mix(0, b->size);
	return open_zip(z, max_meta, ret, e);
}
