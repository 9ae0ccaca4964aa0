/* commit_check.c - may a document that was written be part of a netCDF-4 file? It is looked at alone,
 * in a tree that has nothing but groups on the way to it: what belongs to it may come later. */
#include "fusefs/commit_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GROUP_V2 "{\"zarr_format\": 2}"
#define GROUP_V3 "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {}}"

/* ---- a tree of few documents ---- */

struct few {
	struct store base;
	const char *key; /* of the document, whose last component is name */
	const char *name;
	const char *group_name; /* of the documents that directories above have */
	const char *group;
	bool own_group; /* its directory has one, too */
	struct buf doc;
};

static struct few *few_of(struct store *s)
{
	return CONTAINER_OF(s, struct few, base);
}

static void few_close(struct store *s NZ_UNUSED)
{
}

/* is_dir - whether a key is the root or a directory above the document. */
static bool is_dir(const struct few *f, const char *key, size_t len)
{
	return len == 0 || (strncmp(f->key, key, len) == 0 && f->key[len] == '/');
}

/* object - what a key has. false: nothing. */
static bool object(const struct few *f, const char *key, const void **ret, size_t *ret_len)
{
	const char *slash = strrchr(key, '/'), *name = slash ? slash + 1 : key;
	size_t dir = slash ? (size_t)(slash - key) : 0;
	size_t own = f->name > f->key ? (size_t)(f->name - f->key - 1) : 0;

	if (strcmp(key, f->key) == 0) {
		*ret = f->doc.data;
		*ret_len = f->doc.len;
		return true;
	}
	if (strcmp(name, f->group_name) != 0 || !is_dir(f, key, dir) ||
	    (dir == own && !f->own_group))
		return false;
	*ret = f->group;
	*ret_len = strlen(f->group);
	return true;
}

static int few_stat(struct store *s, const char *key, struct store_stat *ret, struct err *e)
{
	const struct few *f = few_of(s);
	const void *p;
	size_t len;

	*ret = (struct store_stat){.version = 1};
	if (object(f, key, &p, &len))
		ret->size = len;
	else if (is_dir(f, key, strlen(key)))
		ret->is_dir = true;
	else
		return err_set(e, -ENOENT, "no '%s'", key);
	return 0;
}

static int few_list(struct store *s, const char *key, bool want_stat NZ_UNUSED,
		    store_emit *emit, void *arg, struct err *e)
{
	const struct few *f = few_of(s);
	size_t len = strlen(key), own = f->name > f->key ? (size_t)(f->name - f->key - 1) : 0;
	struct store_stat st = {.version = 1};
	const char *next = len ? f->key + len + 1 : f->key, *end;
	char part[256];

	if (!is_dir(f, key, len))
		return err_set(e, -ENOENT, "no '%s'", key);
	st.size = strlen(f->group);
	if ((len != own || f->own_group) && !emit(arg, f->group_name, false, &st))
		return 0;
	if (len == own) {
		st.size = f->doc.len;
		(void)emit(arg, f->name, false, &st); /* the last */
		return 0;
	}
	end = strchr(next, '/');
	if (!end || end - next >= (ptrdiff_t)sizeof(part))
		return 0;
	memcpy(part, next, (size_t)(end - next));
	part[end - next] = '\0';
	st = (struct store_stat){.is_dir = true, .version = 1};
	(void)emit(arg, part, true, &st); /* the last */
	return 0;
}

static int few_read(struct store *s, const char *key, uint64_t off, uint8_t *out, size_t len,
		    uint64_t *ret_version, struct err *e)
{
	const void *p;
	size_t n;

	if (!object(few_of(s), key, &p, &n))
		return err_set(e, -ENOENT, "no '%s'", key);
	if (off > n || len > n - off)
		return err_set(e, -EIO, "'%s' ends before", key);
	if (len > 0)
		memcpy(out, (const uint8_t *)p + off, len);
	if (ret_version)
		*ret_version = 1;
	return 0;
}

static int few_get(struct store *s, const char *key, struct buf *out, struct err *e)
{
	const void *p;
	size_t n;

	if (!object(few_of(s), key, &p, &n))
		return err_set(e, -ENOENT, "no '%s'", key);
	buf_put(out, p, n);
	return buf_ok(out) ? 0 : err_set(e, -ERANGE, "'%s' is too large", key);
}

static int few_check(struct store *s NZ_UNUSED, struct err *e NZ_UNUSED)
{
	return 0;
}

static const struct store_ops few_ops = {
	.name = "document",
	.close = few_close,
	.stat = few_stat,
	.list = few_list,
	.read = few_read,
	.get = few_get,
	.check = few_check,
};

/* ---- what an array's document says ---- */

/* chunk_key - the first chunk's, as the mount shows arrays. */
static void chunk_key(const struct cfg *cfg, const struct few *f, uint32_t rank,
		      struct buf *out)
{
	bool v3 = strcmp(f->name, "zarr.json") == 0, lead = v3 && !cfg->v2_keys;
	bool nested = cfg->nested;

	buf_put(out, f->key, (size_t)(f->name - f->key));
	buf_puts(out, lead ? "c" : "");
	for (uint32_t i = 0; i < rank; i++)
		buf_puts(out, i == 0 ? (lead ? (nested ? "/0" : ".0") : "0")
				     : (nested ? "/0" : ".0"));
	buf_puts(out, rank == 0 && !lead ? "0" : "");
	buf_putc(out, '\0');
}

static bool count(void *arg, uint32_t array NZ_UNUSED, uint64_t linear NZ_UNUSED)
{
	return ++*(int *)arg < 2;
}

/* same_files - whether the mount, once the array is in the file, shows it in the same files. A writer
 * goes on writing those that it knows. */
static int same_files(const struct fs_setup *setup, struct source *s, const struct few *f,
		      struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[0];
	const struct cfg *cfg = setup->cfg;
	struct buf key;
	enum fs_key what;
	int n = 0, rc = 0;

	if (a->convert && strstr(a->convert, "C order") && a->rank > 1)
		return err_set(
			e, -EOPNOTSUPP,
			"'%.200s': netCDF has no other order of elements than 'C': write "
			"it with order 'C'",
			f->key);
	if (a->n_chunks == 0)
		return 0;
	buf_init(&key, STORE_KEY_MAX + 256);
	chunk_key(cfg, f, a->rank, &key);
	what = buf_ok(&key) ? setup->rw->source_key(s, (const char *)key.data, count, &n)
			    : FS_KEY_CHUNK;
	if (what != FS_KEY_CHUNK)
		rc = err_set(e, -EOPNOTSUPP,
			     "'%.200s': its chunks have other names than those of this mount "
			     "(%.80s): mount with -o dimension_separator=%s",
			     f->key, (const char *)key.data + (f->name - f->key),
			     cfg->nested ? "." : "/");
	else if (n > 1 && cfg->shard_size == 0)
		rc = err_set(e, -EOPNOTSUPP,
			     "'%.200s': netCDF has no shards: mount with -o shards, or write "
			     "without",
			     f->key);
	buf_release(&key);
	return rc;
}

static int check_source(const struct fs_setup *setup, struct source *s, const struct few *f,
			struct err *e)
{
	const struct dataset *ds = &s->ds;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < ds->n_arrays; i++) {
		if (ds->arrays[i].unreadable)
			rc = err_set(e, -EOPNOTSUPP, "'%.200s': %s", f->key,
				     ds->arrays[i].unreadable);
		else
			rc = same_files(setup, s, f, e);
	}
	if (rc == 0 && setup->rw->hdf5_holds)
		rc = setup->rw->hdf5_holds(ds, e);
	return rc;
}

/* ---- */

/* looked_at - whether a document is looked at, and in which surroundings. */
static bool looked_at(struct few *f)
{
	bool v3 = strcmp(f->name, "zarr.json") == 0;

	f->group_name = v3 ? "zarr.json" : ".zgroup";
	f->group = v3 ? GROUP_V3 : GROUP_V2;
	f->own_group = strcmp(f->name, ".zattrs") == 0;
	return v3 || f->own_group || strcmp(f->name, ".zarray") == 0 ||
	       strcmp(f->name, ".zgroup") == 0;
}

int commit_tree_check(const struct fs_setup *setup, struct store *tree, const char *key,
		      struct err *e)
{
	const char *slash = strrchr(key, '/');
	struct few f = {.base.ops = &few_ops, .key = key, .name = slash ? slash + 1 : key};
	struct source_options opts;
	struct source *s = NULL;
	int rc;

	if (!looked_at(&f))
		return 0;
	if ((strcmp(f.name, "zarr.json") == 0) != setup->cfg->zarr3)
		return err_set(
			e, -EOPNOTSUPP,
			"'%.200s': this mount shows Zarr v%d: mount with -o zarr_format=%d "
			"to write the other",
			key, setup->cfg->zarr3 ? 3 : 2, setup->cfg->zarr3 ? 2 : 3);
	fs_source_options(setup->cfg, &opts);
	opts.keep_going = false;
	buf_init(&f.doc, setup->cfg->meta_size);
	rc = store_get(tree, key, &f.doc, e);
	if (rc == 0) {
		rc = setup->rw->store_source(&f.base, "a document", &opts, &s, e);
		if (rc == -EBADMSG)
			rc = -EINVAL; /* what was written is wrong, not what is there */
	}
	if (rc == 0)
		rc = check_source(setup, s, &f, e);
	source_close(s);
	buf_release(&f.doc);
	if (e && rc < 0)
		e->code = rc;
	return rc;
}
