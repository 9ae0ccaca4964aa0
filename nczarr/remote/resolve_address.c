/* SPDX-License-Identifier: BSD-3-Clause */
/* resolve_address.c - the dataset at an address: a Zarr store, if its root has metadata documents,
 * or one object.
 *
 * The documents are requested in parallel, through the store, which caches them: the Zarr source's
 * next requests for the same ones cost nothing. */
#include "nczarr/remote/remote.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/hash.h"
#include "base/os/url.h"
#include "nczarr/remote/services.h"

enum { NAMES_SHOWN = 5 }; /* names listed of a folder that is no dataset */

/* last_of - split an address into its last component, decoded, which is the name of an object, and
 * the URL or key before, without '/' at its end; both new. -ENOENT: it is a host or a bucket. */
static int last_of(const struct remote_target *t, char **ret_parent, char **ret_name,
		   struct err *e)
{
	const char *whole = t->kind == REMOTE_HTTP ? t->url : t->key;
	const char *from = t->kind == REMOTE_HTTP ? strstr(whole, "://") : NULL;
	const char *slash = strrchr(from ? from + 3 : whole, '/');
	auto_buf b = buf_of(STORE_KEY_MAX + 1);
	size_t n;
	int rc = 0;

	if (from ? !slash || !slash[1] : !*whole)
		return err_set(e, -ENOENT, "'%s' does not name an object", t->shown);
	*ret_parent = strndup(whole, slash ? (size_t)(slash - whole) : 0);
	if (!*ret_parent)
		return err_nomem(e);
	if (from)
		rc = url_decode(&b, slash + 1, strlen(slash + 1), e);
	else
		buf_puts(&b, slash ? slash + 1 : whole);
	buf_putc(&b, '\0');
	if (rc == 0 && !buf_ok(&b))
		rc = err_set(e, -ENAMETOOLONG, "its name is too long");
	if (rc == 0 && from && (strchr((char *)b.data, '/') || !store_key_ok((char *)b.data)))
		rc = err_set(e, -EINVAL, "the last part of its path is not a valid name");
	if (rc == 0)
		*ret_name = (char *)buf_take(&b, &n);
	return rc < 0 ? err_wrap(e, rc, "'%s'", t->shown) : 0;
}

/* source_at.st of a remote object or folder. */

static struct stat stat_of(const char *name, bool is_dir, const struct store_stat *st)
{
	struct stat out = {
		.st_mode = is_dir ? S_IFDIR | 0555 : S_IFREG | 0444,
		.st_nlink = 1,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_ino = (ino_t)(hash_text(HASH_SEED, name) >> 8 | 1),
		.st_dev = (dev_t)(hash_text(HASH_SEED, name) & 0xff) + 0x100,
		.st_size = is_dir ? 0 : (off_t)st->size,
	};

	out.st_mtim = clock_timespec(st->changed);
	out.st_ctim = out.st_atim = out.st_mtim;
	return out;
}

/* is_page - whether an object is a web page, or a server's listing of a folder. */
static bool is_page(struct store *s, const char *key, uint64_t size)
{
	static const char *const begins[] = {"<!doctype", "<html", "<head", "<body", "<?xml"};
	char head[33] = "";
	size_t n = size < 32 ? (size_t)size : 32, at;

	if (n == 0 || store_read(s, key, 0, (uint8_t *)head, n, NULL, NULL) < 0)
		return false;
	at = strspn(head, " \t\n\v\f\r");
	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (strncasecmp(head + at, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

/* file_in - the object as a blob that owns the store. The store is taken on success only. */
static int file_in(struct store *s, const struct remote_target *t, const char *name,
		   struct source_at *ret, struct err *e)
{
	struct store_stat st;
	int rc = store_stat(s, name, &st, e);

	if (rc < 0)
		return rc;
	if (st.is_dir) /* a listing has it as a folder; the object of this name would hide it */
		return err_set(e, -ENOENT, "'%s' is a directory", t->shown);
	if (st.size == 0 && t->what != REMOTE_OBJECT)
		return err_set(e, -EBADMSG,
			       "'%s' is empty (0 bytes): was it uploaded completely?",
			       t->shown);
	if (t->what != REMOTE_OBJECT && is_page(s, name, st.size))
		return err_set(e, -EBADMSG,
			       "'%s' is a web page, or a web server's directory listing: give "
			       "the address of the dataset itself",
			       t->shown);
	rc = blob_of_store(s, name, &ret->file, e);
	if (rc < 0)
		return rc;
	blob_take_store(ret->file);
	ret->st = stat_of(ret->path, false, &st);
	return 0;
}

/* beside - the store that would contain the object at an address. */
struct beside {
	struct store *s; /* NULL: the address names no object */
	char *name;      /* owned */
};

static void beside_release(struct beside *b)
{
	store_close(b->s);
	free(b->name);
}

/* beside_open - open it, and start the request for the object. */
static int beside_open(struct remote *r, const struct remote_target *t, struct beside *b,
		       struct err *e)
{
	auto_free char *parent = NULL;
	struct err own = ERR_INIT;
	int rc = last_of(t, &parent, &b->name, &own);
	struct remote_target up = *t;

	b->s = NULL;
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return err_set(e, rc, "%s", own.msg);
	up.what = REMOTE_TREE;
	*(t->kind == REMOTE_HTTP ? &up.url : &up.key) = parent;
	rc = remote_store(r, &up, &b->s, e);
	if (rc < 0)
		return rc;
	store_want(b->s, &(struct store_range){b->name, 0, 1}, 1);
	return 0;
}

/* at_file - takes the store on success. -ENOENT is not final: a Zarr store may be there. */
static int at_file(const struct remote_target *t, struct beside *b, struct source_at *ret,
		   struct err *e)
{
	struct err own = ERR_INIT;
	int rc = b->s ? file_in(b->s, t, b->name, ret, &own) : -ENOENT;

	if (rc == 0)
		b->s = NULL;
	return rc < 0 && rc != -ENOENT ? err_set(e, rc, "%s", own.msg) : rc;
}

/* Zarr stores. */

/* Metadata documents of a root. Most stores have only those of the first round, or they contain
 * all others; the Zarr source also requests the rest in parallel. */
static const char *const first_docs[] = {"zarr.json", ".zmetadata"};
static const char *const other_docs[] = {".zgroup", ".zattrs", ".zarray", ".nczarr",
					 ".nczgroup"};

/* want_all - start the requests for documents. */
static void want_all(struct store *s, const char *const *names, size_t n)
{
	struct store_range want[ARRAY_LEN(other_docs)] = {{0}};

	for (size_t i = 0; i < n; i++)
		want[i] = (struct store_range){names[i], 0, UINT64_MAX};
	store_want(s, want, n);
}

/* look_for - look for documents: 1: one exists, *ret is its stat; 0: none. If none exists, the
 * first error except absence. Attributes alone are no Zarr store. */
static int look_for(struct store *s, const char *const *names, size_t n, const char *shown,
		    struct store_stat *ret, struct err *e)
{
	struct err first = ERR_INIT;
	bool page = false;

	for (size_t i = 0; i < n; i++) {
		struct err one = ERR_INIT;
		int rc = store_stat(s, names[i], ret, &one);

		if (rc == 0 && !ret->is_dir && !ret->odd && strcmp(names[i], ".zattrs") != 0) {
			if (!is_page(s, names[i], ret->size))
				return 1;
			page = true;
		}
		if (rc == -EINTR || rc == -ECANCELED)
			return err_set(e, rc, "%s", one.msg);
		if (rc < 0 && rc != -ENOENT && !first.code)
			first = one;
	}
	if (first.code)
		return err_set(e, first.code, "%s", first.msg);
	if (page)
		return err_set(e, -EBADMSG,
			       "'%s': the server answers every request with a web page: check "
			       "the address, and whether it needs a login",
			       shown);
	return 0;
}

struct some {
	struct buf text;
	size_t n;
};

static bool address_add_name(void *arg, const char *name, bool is_dir,
			     const struct store_stat *st NZ_UNUSED)
{
	struct some *s = arg;

	if (s->n == NAMES_SHOWN)
		buf_puts(&s->text, " ...");
	else
		buf_printf(&s->text, "%s'%.40s%s'", s->n ? ", " : "", name, is_dir ? "/" : "");
	return s->n++ < NAMES_SHOWN;
}

/* not_there - the error for an empty address; if names can be listed, with some of them. */
static int not_there(struct store *s, const struct remote_target *t, struct err *e)
{
	struct some some = {.n = 0};
	int rc = -ENOENT;

	buf_init(&some.text, 300);
	if (!s->unlisted && store_list(s, "", false, address_add_name, &some, NULL) < 0)
		some.n = 0;
	buf_putc(&some.text, '\0');
	if (some.n)
		err_set(e, rc,
			"'%s' is a directory without Zarr metadata (.zgroup, .zarray, "
			"zarr.json): give the address of the dataset itself; it contains: %s",
			t->shown, buf_ok(&some.text) ? (char *)some.text.data : "many");
	else
		err_set(e, rc,
			"'%s': not found: neither a file nor a Zarr store (.zmetadata, "
			"zarr.json, .zgroup, .zarray, .nczarr): check the address",
			t->shown);
	buf_release(&some.text);
	return rc;
}

/* at_tree - 1: a Zarr store, 0: no document exists. *ret_file: if the name does not tell the kind,
 * the result of looking for an object, too; -ENOENT before. */
static int at_tree(const struct remote_target *t, struct store *s, struct beside *b,
		   struct source_at *ret, int *ret_file, struct err *e)
{
	struct store_stat st;
	int rc = look_for(s, first_docs, ARRAY_LEN(first_docs), t->shown, &st, e);

	if (rc == 0 && t->what == REMOTE_ANY)
		*ret_file = at_file(t, b, ret, e);
	if (rc == 0 && *ret_file == -ENOENT) {
		want_all(s, other_docs, ARRAY_LEN(other_docs));
		rc = look_for(s, other_docs, ARRAY_LEN(other_docs), t->shown, &st, e);
	}
	if (rc > 0)
		ret->st = stat_of(ret->path, true, &st);
	return rc;
}

/* tree_or_file - 1: a Zarr store, 0: an object, -ENOENT: neither. The name is only a hint: if its
 * kind is not there, the other one is tried. */
static int tree_or_file(struct remote *r, const struct remote_target *t, struct store *s,
			struct beside *b, struct source_at *ret, struct err *e)
{
	int file = t->what == REMOTE_FILE ? at_file(t, b, ret, e) : -ENOENT, rc;

	if (file != -ENOENT)
		return file;
	if (t->what == REMOTE_FILE)
		want_all(s, first_docs, ARRAY_LEN(first_docs));
	rc = at_tree(t, s, b, ret, &file, e);
	if (rc != 0 || t->what != REMOTE_TREE)
		return rc ? rc : file;
	rc = beside_open(r, t, b, e);
	return rc < 0 ? rc : at_file(t, b, ret, e);
}

static int at_any(struct remote *r, const struct remote_target *t, struct source_at *ret,
		  struct err *e)
{
	struct beside b = {0};
	struct store *s = NULL;
	int rc;

	if (t->what == REMOTE_OBJECT) {
		rc = beside_open(r, t, &b, e);
		rc = rc ? rc : at_file(t, &b, ret, e);
		beside_release(&b);
		return rc == -ENOENT ? err_set(e, rc, "'%s': not found", t->shown) : rc;
	}
	rc = remote_store(r, t, &s, e);
	if (rc < 0)
		return rc;
	if (t->what != REMOTE_FILE)
		want_all(s, first_docs, ARRAY_LEN(first_docs));
	if (t->what != REMOTE_TREE)
		rc = beside_open(r, t, &b, e);
	rc = rc ? rc : tree_or_file(r, t, s, &b, ret, e);
	beside_release(&b);
	if (rc > 0) {
		ret->store = s;
		return 0;
	}
	if (rc == -ENOENT)
		rc = not_there(s, t, e);
	store_close(s);
	return rc;
}

int remote_at(struct remote *r, const struct remote_target *t, struct source_at *ret,
	      struct err *e)
{
	struct source_at at = {.fd = -1, .path = remote_keep(r, t->shown)};
	int rc = at.path ? at_any(r, t, &at, e) : err_nomem(e);

	if (rc == 0)
		*ret = at;
	return rc;
}

void remote_at_release(struct source_at *at)
{
	blob_close(at->file);
	store_close(at->store);
	*at = (struct source_at){.fd = -1};
}
