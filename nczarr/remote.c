/* remote.c - what lies at an address: a tree, by the documents that its root has, or one object.
 *
 * Documents are asked for side by side, and through the store, which keeps what came: the Zarr source
 * asks for the same ones next, and that costs nothing. */
#include "nczarr/remote.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/url.h"
#include "nczarr/remote_int.h"

enum {
	CONNECT_MS = 15000, /* until a connection stands */
	STALL_MS = 30000,   /* without a byte */
	NAMES_SHOWN = 5,    /* of a folder that is no dataset */
};

/* said - a text that outlives what it names; freed with the remote. */
struct said {
	struct said *next;
	char text[];
};

struct remote {
	struct remote_options opts; /* texts owned */
	struct net *net;
	struct rcache *cache;
	pthread_mutex_t lock;
	struct said *said; /* lock */
};

/* Options. */

static char **text_fields(struct remote_options *o, size_t i)
{
	char **const all[] = {&o->profile,     &o->region,   &o->access_key,  &o->secret_key,
			      &o->config_file, &o->endpoint, &o->bearer_file, &o->netrc_file,
			      &o->ca_file,     &o->cache_dir};

	return i < ARRAY_LEN(all) ? all[i] : NULL;
}

static int copy_options(struct remote_options *to, const struct remote_options *from,
			struct err *e)
{
	char **field;
	bool ok = true;

	*to = *from;
	for (size_t i = 0; (field = text_fields(to, i)); i++)
		if (*field) {
			*field = ok ? strdup(*field) : NULL;
			ok = *field != NULL;
		}
	return ok ? 0 : err_nomem(e);
}

/* forget - a secret does not stay in memory that is given back. */
static void forget(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void free_options(struct remote_options *o)
{
	char **field;

	for (size_t i = 0; (field = text_fields(o, i)); i++)
		forget(*field);
}

static uint32_t at_most(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int start_net(struct remote *r, struct err *e)
{
	const struct remote_options *o = &r->opts;
	const struct net_options net = {
		.connect_ms = at_most(CONNECT_MS, o->timeout_ms),
		.stall_ms = at_most(STALL_MS, o->timeout_ms),
		.total_ms = o->timeout_ms,
		.tries = o->tries,
		.connections = o->connections,
		.requests = o->connections < UINT32_MAX / 4 ? 4 * o->connections : UINT32_MAX,
		.insecure = o->insecure,
		.plain_secrets = o->insecure,
		.private_redirects = o->private_redirects,
		.ca_file = o->ca_file,
		.netrc_file = o->netrc_file,
	};

	return net_new(&net, &r->net, e);
}

int remote_new(const struct remote_options *opts, struct remote **ret, struct err *e)
{
	struct remote *r = alloc_array(1, sizeof(*r));
	int rc;

	if (!r)
		return err_nomem(e);
	(void)pthread_mutex_init(&r->lock, NULL);
	rc = copy_options(&r->opts, opts, e);
	if (rc == 0)
		rc = start_net(r, e);
	if (rc == 0)
		rc = rcache_new(&r->opts, &r->cache, e);
	if (rc < 0) {
		remote_free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void remote_free(struct remote *r)
{
	struct said *next;

	if (!r)
		return;
	net_free(r->net);
	if (r->cache)
		rcache_free(r->cache);
	for (struct said *s = r->said; s; s = next) {
		next = s->next;
		free(s);
	}
	free_options(&r->opts);
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

void remote_stop(struct remote *r)
{
	net_stop(r->net);
}

uint64_t remote_requests(struct remote *r)
{
	struct net_counts c = {0};

	net_get_counts(r->net, &c);
	return c.requests;
}

/* keep_text - the same text as long as the remote lives; NULL when memory is short. */
static const char *keep_text(struct remote *r, const char *text)
{
	size_t n = strlen(text);
	struct said *s;

	(void)pthread_mutex_lock(&r->lock);
	for (s = r->said; s && strcmp(s->text, text) != 0;)
		s = s->next;
	if (!s && (s = malloc(sizeof(*s) + n + 1))) {
		memcpy(s->text, text, n + 1);
		s->next = r->said;
		r->said = s;
	}
	(void)pthread_mutex_unlock(&r->lock);
	return s ? s->text : NULL;
}

/* Stores. */

/* root_name - what the cache knows a root by: two that differ in anything but secrets differ. */
static void root_name(const struct remote *r, const struct remote_target *t, struct buf *out)
{
	const char *query = strchr(t->shown, '?');

	if (t->kind == REMOTE_HTTP) {
		buf_puts(out, t->url);
		if (t->query && query)
			buf_printf(out, "%.*s", (int)strcspn(query, "#"), query);
		return;
	}
	buf_printf(out, "%s://%s/%s", t->kind == REMOTE_S3 ? "s3" : "gs3", t->bucket, t->key);
	if (t->url || r->opts.endpoint)
		buf_printf(out, "@%s", t->url ? t->url : r->opts.endpoint);
}

int remote_store(struct remote *r, const struct remote_target *t, struct store **ret,
		 struct err *e)
{
	struct objects *o = NULL;
	struct buf name;
	int rc;

	rc = t->kind == REMOTE_HTTP ? objects_http_open(r->net, &r->opts, t, &o, e)
				    : objects_s3_open(r->net, &r->opts, t, &o, e);
	if (rc < 0)
		return rc;
	buf_init(&name, 1 << 16);
	root_name(r, t, &name);
	buf_putc(&name, '\0');
	rc = buf_ok(&name) ? store_remote_open(r->cache, o, (char *)name.data, ret, e)
			   : err_nomem(e);
	buf_release(&name);
	if (rc < 0)
		objects_close(o);
	return rc;
}

/* A file: the root of its store is what it lies in. */

struct owner {
	struct blob base;
	struct blob *inner; /* of the store */
	struct store *store;
};

static void owner_close(struct blob *b)
{
	struct owner *o = CONTAINER_OF(b, struct owner, base);

	blob_close(o->inner);
	store_close(o->store);
	free(o);
}

static int owner_read(struct blob *b, uint64_t off, uint8_t *out, size_t len, struct err *e)
{
	return blob_read(CONTAINER_OF(b, struct owner, base)->inner, off, out, len, e);
}

static void owner_want(struct blob *b, const struct blob_part *parts, size_t n)
{
	blob_want(CONTAINER_OF(b, struct owner, base)->inner, parts, n);
}

static int owner_check(struct blob *b, bool far, struct err *e)
{
	return blob_check(CONTAINER_OF(b, struct owner, base)->inner, far, e);
}

static const struct blob_ops owner_ops = {
	.close = owner_close,
	.read = owner_read,
	.want = owner_want,
	.check = owner_check,
};

/* The end of an address that an object is called by. */
struct last {
	char *parent; /* of URL or key, without a '/' at its end; owned */
	char *name;   /* decoded; owned */
};

static void last_release(struct last *l)
{
	free(l->parent);
	free(l->name);
}

/* decode_name - a component of a URL as a key. */
static int decode_name(const char *text, char **ret, struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, STORE_KEY_MAX + 1);
	rc = url_decode(&b, text, strlen(text), e);
	buf_putc(&b, '\0');
	if (rc == 0 && !buf_ok(&b))
		rc = err_set(e, -ENAMETOOLONG, "its name is too long");
	if (rc == 0 && (strchr((char *)b.data, '/') || !store_key_ok((char *)b.data)))
		rc = err_set(e, -EINVAL, "its last part is no name");
	if (rc == 0) {
		size_t n;

		*ret = (char *)buf_take(&b, &n);
	}
	buf_release(&b);
	return rc;
}

/* last_of - -ENOENT: the address is a host or a bucket, which is no object. */
static int last_of(const struct remote_target *t, struct last *ret, struct err *e)
{
	const char *whole = t->kind == REMOTE_HTTP ? t->url : t->key;
	const char *from = t->kind == REMOTE_HTTP ? strstr(whole, "://") : NULL;
	const char *slash = strrchr(from ? from + 3 : whole, '/');
	int rc = 0;

	*ret = (struct last){0};
	if (from ? !slash || !slash[1] : !*whole)
		return err_set(e, -ENOENT, "'%s' names no object", t->shown);
	ret->parent = strndup(whole, slash ? (size_t)(slash - whole) : 0);
	if (!ret->parent)
		return err_nomem(e);
	if (from) {
		rc = decode_name(slash + 1, &ret->name, e);
	} else {
		ret->name = strdup(slash ? slash + 1 : whole);
		if (!ret->name)
			rc = err_nomem(e);
	}
	return rc < 0 ? err_wrap(e, rc, "'%s'", t->shown) : 0;
}

/* open_beside - the store that an object is in. */
static int open_beside(struct remote *r, const struct remote_target *t, const struct last *last,
		       struct store **ret, struct err *e)
{
	struct remote_target up = *t;

	up.what = REMOTE_TREE;
	if (t->kind == REMOTE_HTTP)
		up.url = last->parent;
	else
		up.key = last->parent;
	return remote_store(r, &up, ret, e);
}

/* What source_at.st says of remote things. */

static uint64_t hash(const char *text)
{
	uint64_t h = 0xcbf29ce484222325; /* FNV-1a, 64 bits */

	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 0x100000001b3;
	return h;
}

static struct stat stat_of(const char *name, bool is_dir, const struct store_stat *st)
{
	struct stat out = {
		.st_mode = is_dir ? S_IFDIR | 0555 : S_IFREG | 0444,
		.st_nlink = 1,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_ino = (ino_t)(hash(name) >> 8 | 1),
		.st_dev = (dev_t)(hash(name) & 0xff) + 0x100,
		.st_size = is_dir ? 0 : (off_t)st->size,
	};

	out.st_mtim.tv_sec = (time_t)(st->changed / 1000000000);
	out.st_mtim.tv_nsec = (long)(st->changed % 1000000000);
	out.st_ctim = out.st_atim = out.st_mtim;
	return out;
}

/* web_page - whether an object is one, or a server's list of a folder. */
static bool web_page(const uint8_t *head, size_t n)
{
	static const char *const begins[] = {"<!doctype", "<html", "<head", "<body", "<?xml"};
	size_t at = 0;

	while (at < n && (head[at] == ' ' || (head[at] >= '\t' && head[at] <= '\r')))
		at++;
	for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
		size_t len = strlen(begins[i]);

		if (n - at >= len && strncasecmp((const char *)head + at, begins[i], len) == 0)
			return true;
	}
	return false;
}

/* is_page - the same of an object of a store. */
static bool is_page(struct store *s, const char *key, uint64_t size)
{
	uint8_t head[32];
	size_t n = size < sizeof(head) ? (size_t)size : sizeof(head);

	return n > 0 && store_read(s, key, 0, head, n, NULL, NULL) == 0 && web_page(head, n);
}

/* file_in - the object as a blob that owns the store: taken on success only. */
static int file_in(struct store *s, const struct remote_target *t, const char *name,
		   struct source_at *ret, struct err *e)
{
	struct owner *o;
	struct store_stat st;
	int rc = store_stat(s, name, &st, e);

	if (rc < 0)
		return rc;
	if (st.is_dir) /* a listing says so; the object of this name would hide it */
		return err_set(e, -ENOENT, "'%s' is a folder", t->shown);
	if (st.size == 0)
		return err_set(e, -EBADMSG,
			       "'%s' is empty (0 bytes): was it uploaded completely?",
			       t->shown);
	if (is_page(s, name, st.size))
		return err_set(e, -EBADMSG,
			       "'%s' is a web page, or a web server's list of files: name the "
			       "dataset itself",
			       t->shown);
	o = alloc_array(1, sizeof(*o));
	if (!o)
		return err_nomem(e);
	rc = blob_of_store(s, name, &o->inner, e);
	if (rc < 0) {
		free(o);
		return rc;
	}
	o->base = (struct blob){.ops = &owner_ops, .fd = -1, .size = o->inner->size};
	o->store = s;
	ret->file = &o->base;
	ret->st = stat_of(ret->path, false, &st);
	return 0;
}

static int at_file(struct remote *r, const struct remote_target *t, struct source_at *ret,
		   struct err *e)
{
	struct store *s = NULL;
	struct last last;
	int rc = last_of(t, &last, e);

	if (rc == 0)
		rc = open_beside(r, t, &last, &s, e);
	if (rc == 0) {
		rc = file_in(s, t, last.name, ret, e);
		if (rc < 0)
			store_close(s);
	}
	last_release(&last);
	return rc;
}

/* A tree. */

/* Documents that a root can have: the first three are asked for at once, which is all that most
 * trees cost. */
static const char *const docs[] = {".zmetadata", "zarr.json", ".zgroup", ".zarray", ".nczarr"};

enum { FIRST_DOCS = 3 };

/* look_for - docs [from, to): 1: one is there, *st is what it is; 0: none is. The first error that
 * is not absence, when none was found. */
static int look_for(struct store *s, size_t from, size_t to, const char *shown,
		    struct store_stat *ret, struct err *e)
{
	struct store_range want[ARRAY_LEN(docs)] = {{0}};
	struct err first = ERR_INIT;
	bool page = false;

	for (size_t i = from; i < to; i++)
		want[i] = (struct store_range){docs[i], 0, UINT64_MAX};
	store_want(s, want + from, to - from);
	for (size_t i = from; i < to; i++) {
		struct err one = ERR_INIT;
		int rc = store_stat(s, docs[i], ret, &one);

		if (rc == 0 && !ret->is_dir && !ret->odd) {
			if (!is_page(s, docs[i], ret->size))
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
			       "'%s': the server answers with a web page whatever it is asked "
			       "for: check the address, and whether one has to log in",
			       shown);
	return 0;
}

struct some {
	struct buf text;
	size_t n;
};

static bool add_name(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	struct some *s = arg;

	(void)st;
	if (s->n == NAMES_SHOWN)
		buf_puts(&s->text, " ...");
	else
		buf_printf(&s->text, "%s'%.40s%s'", s->n ? ", " : "", name, is_dir ? "/" : "");
	return s->n++ < NAMES_SHOWN;
}

/* not_there - nothing at all was found; where names can be listed, what is there instead. */
static int not_there(struct store *s, const struct remote_target *t, struct err *e)
{
	struct some some = {.n = 0};
	int rc = -ENOENT;

	buf_init(&some.text, 300);
	if (!s->unlisted && store_list(s, "", false, add_name, &some, NULL) < 0)
		some.n = 0;
	buf_putc(&some.text, '\0');
	if (some.n)
		err_set(e, rc,
			"'%s' is a folder without Zarr documents (.zgroup, .zarray, "
			"zarr.json): "
			"name the dataset itself; in it: %s",
			t->shown, buf_ok(&some.text) ? (char *)some.text.data : "many");
	else
		err_set(e, rc,
			"'%s': nothing is there: looked for .zmetadata, zarr.json, .zgroup, "
			".zarray and .nczarr below it, and for a file: check the address",
			t->shown);
	buf_release(&some.text);
	return rc;
}

/* try_file - -ENOENT says nothing: the other form is looked for. */
static int try_file(struct remote *r, const struct remote_target *t, struct source_at *ret,
		    struct err *e)
{
	struct err own = ERR_INIT;
	int rc = at_file(r, t, ret, &own);

	return rc < 0 && rc != -ENOENT ? err_set(e, rc, "%s", own.msg) : rc;
}

/* tree_or_file - with the store of a tree: 1: it is one, -ENOENT: there is nothing. */
static int tree_or_file(struct remote *r, const struct remote_target *t, struct store *s,
			struct source_at *ret, struct err *e)
{
	struct store_stat st;
	int rc = look_for(s, 0, FIRST_DOCS, t->shown, &st, e), file = -ENOENT;

	if (rc == 0 && t->what == REMOTE_ANY)
		file = try_file(r, t, ret, e);
	if (rc == 0 && file == -ENOENT)
		rc = look_for(s, FIRST_DOCS, ARRAY_LEN(docs), t->shown, &st, e);
	if (rc == 0 && t->what == REMOTE_TREE)
		file = try_file(r, t, ret, e);
	if (rc > 0)
		ret->st = stat_of(ret->path, true, &st);
	return rc ? rc : file;
}

/* at_any - the documents of a tree first, or the object first. What the name says is only a hint:
 * where there is nothing the other is looked for, too. */
static int at_any(struct remote *r, const struct remote_target *t, struct source_at *ret,
		  struct err *e)
{
	struct store *s = NULL;
	int rc = t->what == REMOTE_FILE ? try_file(r, t, ret, e) : -ENOENT;

	if (rc != -ENOENT)
		return rc;
	rc = remote_store(r, t, &s, e);
	if (rc < 0)
		return rc;
	rc = tree_or_file(r, t, s, ret, e);
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
	struct source_at at = {.fd = -1, .path = keep_text(r, t->shown)};
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
