/* SPDX-License-Identifier: BSD-3-Clause */
/* s3_tree.c - the objects of a remote tree, written as files.
 *
 * What programs write is staged, and put under the same keys: nothing is translated. What a
 * document was when it was written over is kept in the file "base" of the state directory, so
 * that what others did to it meanwhile is not lost, whenever and by whichever process it is put. */
#include "fusefs/write/writable_int.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/os/io.h"
#define LOG_COMPONENT LOG_WRITE
#include "base/core/clock.h"
#include "base/core/hash.h"
#include "base/observe/log.h"
#include "base/core/map.h"
#include "mountcfg/address/address.h"
#include "translate/tree/store_view.h"
#include "translate/tree/tree.h"

#define BASE "base"
#define S3_KEY_MAX 1024 /* bytes; Amazon S3, "Object key naming guidelines" */
#define OBJECT_MAX ((size_t)8 << 30)
#define BASE_MAX ((size_t)256 << 20)

/* s3_tree_noted - what a document was. */
struct s3_tree_noted {
	struct link link; /* by key */
	char *key;        /* owned */
	uint64_t version; /* 0: nothing */
	uint64_t *puts;   /* owned: sums of what commits put that were begun since, n_puts */
	size_t n_puts, c_puts;
};

struct rw_keys {
	const struct app *setup;
	const struct rw_state *state;
	struct store *store;
	struct stage *stage;
	struct stat st;
	size_t above; /* bytes of the address's own key, with its '/' */
	pthread_mutex_t lock;
	struct map by_key;    /* lock */
	struct s3_tree_noted **noted; /* lock; owned */
	size_t n, cap;        /* lock */
	char **put;          /* n_put keys that the last commit put; owned */
	size_t n_put;
};

/* ---- what documents were ---- */

static struct s3_tree_noted *s3_tree_find(struct rw_keys *k, const char *key)
{
	struct link *l = map_first(&k->by_key, hash_text(HASH_SEED, key));

	while (l && strcmp(CONTAINER_OF(l, struct s3_tree_noted, link)->key, key) != 0)
		l = map_next(l);
	return l ? CONTAINER_OF(l, struct s3_tree_noted, link) : NULL;
}

static bool has_put(const struct s3_tree_noted *x, uint64_t sum)
{
	bool ret = false;

	for (size_t i = 0; i < x->n_puts; i++)
		ret |= x->puts[i] == sum;
	return ret;
}

static int add_put(struct s3_tree_noted *x, uint64_t sum)
{
	if (has_put(x, sum))
		return 0;
	if (grow_array(&x->puts, &x->c_puts, x->n_puts + 1, sizeof(*x->puts)) < 0)
		return -ENOMEM;
	x->puts[x->n_puts++] = sum;
	return 0;
}

static void free_noted(struct s3_tree_noted *x)
{
	free(x->key);
	free(x->puts);
	free(x);
}

static int s3_tree_add(struct rw_keys *k, const char *key, uint64_t version)
{
	struct s3_tree_noted *x = alloc_array(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->key = strdup(key);
	x->version = version;
	if (!x->key || grow_array(&k->noted, &k->cap, k->n + 1, sizeof(*k->noted)) < 0 ||
	    map_add(&k->by_key, &x->link, hash_text(HASH_SEED, key)) < 0) {
		free_noted(x);
		return -ENOMEM;
	}
	k->noted[k->n++] = x;
	return 0;
}

/* A record: a NUL, so that what was torn before it ends; 16 digits, the version; a space, the
 * key, a NUL. With a '#' in front the digits are the sum of what a commit put, or was about to. */
static void put_record(struct buf *b, const char *mark, uint64_t v, const char *key)
{
	buf_putc(b, '\0');
	buf_printf(b, "%s%016llx %s", mark, (unsigned long long)v, key);
	buf_putc(b, '\0');
}

static int s3_tree_append(const struct rw_keys *k, const struct buf *b, bool synced,
			  struct err *e)
{
	auto_fd int fd = openat(k->state->dir_fd, BASE,
				O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_sys(e, errno, "'%s/" BASE "'", k->state->dir);
	if (!buf_ok(b))
		return err_nomem(e);
	errno = EIO;
	if (b->len > 0 && write(fd, b->data, b->len) != (ssize_t)b->len)
		return err_sys(e, errno, "'%s/" BASE "'", k->state->dir);
	return synced ? io_sync(fd, true, e) : 0;
}

/* digits_of - 16 hexadecimal digits. */
static bool digits_of(const char *text, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";

	*ret = 0;
	for (size_t i = 0; i < 16; i++) {
		const char *d = text[i] ? strchr(digits, text[i]) : NULL;

		if (!d)
			return false;
		*ret = *ret << 4 | (uint64_t)(d - digits);
	}
	return true;
}

/* load_record - one that is torn was told to nobody. */
static int load_record(struct rw_keys *k, const char *text)
{
	bool put = *text == '#';
	const char *key;
	struct s3_tree_noted *x;
	uint64_t v;

	text += put;
	if (!digits_of(text, &v) || text[16] != ' ' || !store_key_ok(text + 17))
		return 0;
	key = text + 17;
	x = s3_tree_find(k, key);
	if (put)
		return x ? add_put(x, v) : 0;
	return x ? 0 : s3_tree_add(k, key, v);
}

static int s3_tree_load(struct rw_keys *k, struct err *e)
{
	auto_fd int fd = openat(k->state->dir_fd, BASE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	auto_free char *text = NULL;
	struct stat st;
	int rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "'%s/" BASE "'", k->state->dir);
	if (fstat(fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size > BASE_MAX)
		return err_set(e, -EBADMSG, "'%s/" BASE "' is damaged", k->state->dir);
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return err_nomem(e);
	rc = io_pread(fd, text, (size_t)st.st_size, 0, e);
	if (rc)
		return rc;
	text[st.st_size] = '\0';
	for (size_t at = 0; at < (size_t)st.st_size; at += strlen(text + at) + 1)
		if (load_record(k, text + at) < 0)
			return err_nomem(e);
	return 0;
}

/* s3_tree_keep - what is noted still, in the file. */
static int s3_tree_keep(struct rw_keys *k)
{
	struct buf b;
	int fd, rc = 0;

	if (k->n == 0)
		return unlinkat(k->state->dir_fd, BASE, 0) < 0 && errno != ENOENT ? -errno : 0;
	fd = openat(k->state->dir_fd, BASE ".new",
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	buf_init(&b, BASE_MAX);
	for (size_t i = 0; i < k->n; i++) {
		const struct s3_tree_noted *x = k->noted[i];

		put_record(&b, "", x->version, x->key);
		for (size_t j = 0; j < x->n_puts; j++)
			put_record(&b, "#", x->puts[j], x->key);
	}
	rc = buf_ok(&b) ? io_pwrite(fd, b.data, b.len, 0, NULL) : -ENOMEM;
	buf_release(&b);
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && renameat(k->state->dir_fd, BASE ".new", k->state->dir_fd, BASE) < 0)
		rc = -errno;
	return rc;
}

/* s3_tree_version_of - of what the store has. */
static int s3_tree_version_of(struct rw_keys *k, const char *key, uint64_t *ret, struct err *e)
{
	struct store_stat st = {.version = 0};
	int rc = store_stat(k->store, key, &st, e);

	*ret = rc || st.is_dir ? 0 : st.version;
	return rc == -ENOENT ? 0 : rc;
}

/* s3_tree_note - before a document is staged. */
static int s3_tree_note(struct rw_keys *k, const char *key, struct err *e)
{
	uint64_t version;
	struct buf b;
	int rc = 0;
	bool known;

	(void)pthread_mutex_lock(&k->lock);
	known = s3_tree_find(k, key) != NULL;
	(void)pthread_mutex_unlock(&k->lock);
	if (known)
		return 0;
	rc = s3_tree_version_of(k, key, &version, e);
	if (rc < 0)
		return rc;
	(void)pthread_mutex_lock(&k->lock);
	if (!s3_tree_find(k, key)) {
		buf_init(&b, 2 * (size_t)STORE_KEY_MAX);
		put_record(&b, "", version, key);
		rc = s3_tree_add(k, key, version) < 0 ? err_nomem(e)
						      : s3_tree_append(k, &b, false, e);
		buf_release(&b);
	}
	(void)pthread_mutex_unlock(&k->lock);
	return rc;
}

/* written_since - whether a document was written after a generation. */
static bool written_since(struct rw_keys *k, const struct s3_tree_noted *x, uint64_t generation)
{
	struct stage_entry s;

	stage_find(k->stage, x->key, &s, NULL);
	return s.kind == STAGE_DATA && s.generation > generation;
}

/* s3_tree_forget - what was put is what the store has: only what was written meanwhile is still for
 * something else, and for that it is what was put. The store is asked without the lock, which
 * every close of a document needs; of what it does not say, or was written just now, the sums of
 * what was put are kept. */
static void s3_tree_forget(struct rw_keys *k, uint64_t generation)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&k->lock);
	for (size_t i = 0; i < k->n; i++) {
		struct s3_tree_noted *x = k->noted[i]; /* freed by commits only */
		uint64_t version;
		int rc;

		if (!written_since(k, x, generation))
			continue;
		(void)pthread_mutex_unlock(&k->lock);
		rc = s3_tree_version_of(k, x->key, &version, NULL);
		(void)pthread_mutex_lock(&k->lock);
		if (rc == 0) {
			x->version = version;
			x->n_puts = 0;
		}
	}
	for (size_t i = 0; i < k->n; i++) {
		struct s3_tree_noted *x = k->noted[i];

		if (written_since(k, x, generation)) {
			k->noted[n++] = x;
		} else {
			map_remove(&k->by_key, &x->link);
			free_noted(x);
		}
	}
	k->n = n;
	if (s3_tree_keep(k) < 0)
		log_warn("'%s/" BASE "' could not be written", k->state->dir);
	(void)pthread_mutex_unlock(&k->lock);
}

/* ---- checks ---- */

int rw_keys_check(struct rw_keys *k, struct store *tree, const char *key, struct err *e)
{
	struct buf b;
	int rc;

	if (k->above + strlen(key) > S3_KEY_MAX)
		return err_set(e, -ENAMETOOLONG,
			       "'%.200s...': a key in S3 has at most %d bytes", key,
			       S3_KEY_MAX);
	if (!k->setup->rw->doc_key(key))
		return 0;
	buf_init(&b, k->setup->cfg->meta_size);
	rc = store_get(tree, key, &b, e);
	if (rc == 0)
		rc = k->setup->rw->doc_check(key, b.data, b.len, e);
	buf_release(&b);
	if (rc == -EBADMSG && e)
		e->code = -EINVAL; /* what was written is wrong, not what is there */
	if (rc == -EBADMSG)
		return -EINVAL;
	return rc ? rc : s3_tree_note(k, key, e);
}

/* ---- commits ---- */

struct commit {
	struct rw_keys *k;
	struct store *over;
	struct zarr_keys *to;
	char **gone, **put, **left; /* owned */
	size_t n_gone, n_put, n_left, c_gone, c_put, c_left;
	struct buf sums; /* records of what documents are to be */
	bool failed;
};

static void s3_tree_add_text(struct commit *c, char ***list, size_t *n, size_t *cap,
			     const char *text)
{
	char *copy = c->failed ? NULL : strdup(text);

	if (!copy || grow_array(list, cap, *n + 1, sizeof(char *)) < 0) {
		free(copy);
		c->failed = true;
		return;
	}
	(*list)[(*n)++] = copy;
}

static void free_strings(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static bool s3_tree_look(void *arg, const char *key, const struct stage_entry *x)
{
	struct commit *c = arg;
	char text[STORE_KEY_MAX + 64];

	switch (x->kind) {
	case STAGE_GONE:
		s3_tree_add_text(c, &c->gone, &c->n_gone, &c->c_gone, key);
		break;
	case STAGE_DATA:
	case STAGE_ALIAS:
		if (tree_rw_passing(key)) {
			(void)snprintf(text, sizeof(text),
				       "%s\tit is the name of a temporary file", key);
			s3_tree_add_text(c, &c->left, &c->n_left, &c->c_left, text);
		} else {
			s3_tree_add_text(c, &c->put, &c->n_put, &c->c_put, key);
		}
		break;
	case STAGE_DIR: /* there are none without objects */
	case STAGE_NOTHING:
		break;
	}
	return !c->failed;
}

/* s3_tree_put_doc - what it was, and, from now on, what it is going to be. */
static int s3_tree_put_doc(struct commit *c, const char *key, const struct buf *b,
			   uint64_t *ret, struct err *e)
{
	const uint64_t sum = hash_bytes(HASH_SEED, b->data, b->len);
	struct rw_keys *k = c->k;
	struct s3_tree_noted *x;
	int rc = 0;

	(void)pthread_mutex_lock(&k->lock);
	x = s3_tree_find(k, key);
	if (x) {
		*ret = x->version;
		if (!has_put(x, sum))
			put_record(&c->sums, "#", sum, key);
		rc = add_put(x, sum) < 0 ? err_nomem(e) : 0;
	}
	(void)pthread_mutex_unlock(&k->lock);
	return x ? rc : s3_tree_version_of(k, key, ret, e);
}

static int s3_tree_put_one(struct commit *c, const char *key, struct err *e)
{
	const struct fs_rw *rw = c->k->setup->rw;
	uint64_t version = 0;
	struct buf b;
	int rc;

	buf_init(&b, OBJECT_MAX);
	rc = store_get(c->over, key, &b, e);
	if (rc == 0 && rw->doc_key(key))
		rc = s3_tree_put_doc(c, key, &b, &version, e);
	if (rc == 0)
		rc = rw->keys_put(c->to, key, b.data, b.len, version, e);
	buf_release(&b);
	return rc;
}

/* was_ours - whether a commit that was begun, and of which no end is known, put this. */
static bool was_ours(void *arg, const char *key, const uint8_t *p, size_t n)
{
	struct rw_keys *k = arg;
	uint64_t sum = hash_bytes(HASH_SEED, p, n);
	const struct s3_tree_noted *x;
	bool ours;

	(void)pthread_mutex_lock(&k->lock);
	x = s3_tree_find(k, key);
	ours = x && has_put(x, sum);
	(void)pthread_mutex_unlock(&k->lock);
	return ours;
}

static int s3_tree_carry_out(struct commit *c, struct err *e)
{
	const struct fs_rw *rw = c->k->setup->rw;
	int rc = rw->keys_begin(c->k->setup->cfg, c->k->store, c->k->state->dir_fd, &c->to, e);

	if (rc < 0)
		return rc;
	rw->keys_ours(c->to, was_ours, c->k);
	buf_init(&c->sums, BASE_MAX);
	for (size_t i = 0; rc == 0 && i < c->n_gone; i++)
		rc = rw->keys_gone(c->to, c->gone[i], e);
	for (size_t i = 0; rc == 0 && i < c->n_put; i++)
		rc = s3_tree_put_one(c, c->put[i], e);
	if (rc == 0 && c->sums.len > 0) {
		(void)pthread_mutex_lock(&c->k->lock);
		rc = s3_tree_append(c->k, &c->sums, true, e);
		(void)pthread_mutex_unlock(&c->k->lock);
	}
	if (rc == 0)
		rc = rw->keys_commit(c->to, e);
	buf_release(&c->sums);
	rw->keys_free(c->to);
	return rc;
}

/* succeed - what comes of it. */
static void succeed(struct commit *c, uint64_t generation, char ***ret_left, size_t *ret_n)
{
	struct rw_keys *k = c->k;

	log_debug("commit: %zu objects written, %zu removed, %zu left", c->n_put, c->n_gone,
		  c->n_left);
	s3_tree_forget(k, generation);
	free_strings(k->put, k->n_put);
	k->put = steal(&c->put);
	k->n_put = c->n_put;
	c->n_put = 0;
	*ret_left = steal(&c->left);
	*ret_n = c->n_left;
	c->n_left = 0;
}

int rw_keys_commit(struct rw_keys *k, uint64_t generation, char ***ret_left, size_t *ret_n,
		   struct err *e)
{
	const struct fs_rw *rw = k->setup->rw;
	struct commit c = {.k = k};
	/* one that was begun: its objects are staged still, and are put once more */
	int rc = rw->remote_recover(k->store, k->state->dir_fd, e);

	if (rc < 0)
		return rc;
	rc = stage_store(k->stage, generation, k->store, &c.over, e);
	if (rc < 0)
		return rc;
	rc = stage_each(k->stage, generation, s3_tree_look, &c);
	if (rc < 0 || c.failed)
		rc = err_nomem(e);
	if (rc == 0)
		rc = s3_tree_carry_out(&c, e);
	if (rc == 0)
		succeed(&c, generation, ret_left, ret_n);
	store_close(c.over);
	free_strings(c.gone, c.n_gone);
	free_strings(c.put, c.n_put);
	free_strings(c.left, c.n_left);
	return rc;
}

/* ---- opening ---- */

/* s3_tree_key_of - bytes of an address's key, and of the '/' behind it. */
static size_t s3_tree_key_of(const char *address)
{
	size_t n = 0;
	struct address a;

	if (address_parse(address, &a, NULL) < 0)
		return 0; /* it was opened: that is not so */
	n = a.key ? strlen(a.key) : 0;
	address_release(&a);
	return n ? n + 1 : 0;
}

/* is_tree - whether there is something that may be written into. */
static int is_tree(struct rw_keys *k, struct err *e)
{
	static const char *const docs[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata",
					   ".nczarr"};
	struct store_range want[ARRAY_LEN(docs)];
	struct store_stat st;

	for (size_t i = 0; i < ARRAY_LEN(docs); i++)
		want[i] = (struct store_range){.key = docs[i], .len = UINT64_MAX};
	store_want(k->store, want, ARRAY_LEN(docs));
	for (size_t i = 0; i < ARRAY_LEN(docs); i++) {
		int rc = store_stat(k->store, docs[i], &st, e);

		if (rc != -ENOENT)
			return rc;
	}
	return err_set(e, -ENOENT, "'%s': no Zarr store exists there (-o rw,create creates one)",
		       k->state->shown);
}

int rw_keys_open(const struct app *setup, const struct rw_state *state, struct store *s,
		 bool empty, struct rw_keys **ret, struct err *e)
{
	struct rw_keys *k = alloc_array(1, sizeof(*k));
	int rc;

	if (!k || pthread_mutex_init(&k->lock, NULL) != 0) {
		free(k);
		return err_nomem(e);
	}
	k->setup = setup;
	k->state = state;
	k->store = s;
	k->above = s3_tree_key_of(state->path);
	k->st = (struct stat){
		.st_mode = S_IFDIR | 0644, .st_uid = geteuid(), .st_gid = getegid()};
	k->st.st_mtim = clock_wall();
	rc = s3_tree_load(k, e);
	if (rc == 0 && !empty)
		rc = is_tree(k, e);
	if (rc < 0) {
		rw_keys_close(k);
		return rc;
	}
	*ret = k;
	return 0;
}

void rw_keys_close(struct rw_keys *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->n; i++)
		free_noted(k->noted[i]);
	free(k->noted);
	map_free(&k->by_key);
	free_strings(k->put, k->n_put);
	(void)pthread_mutex_destroy(&k->lock);
	free(k);
}

void rw_keys_stage(struct rw_keys *k, struct stage *s)
{
	k->stage = s;
}

int rw_keys_snapshot(struct rw_keys *k, struct view **ret, struct err *e)
{
	struct view *v;
	/* what a listing says is believed for as long as revalidate: half of that is left then */
	uint32_t ms = k->setup->cfg->revalidate * 500;
	int rc = store_view_open(k->store, &k->st, ms, &v, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < k->n_put; i++)
		rc = store_view_dirs(v, k->put[i], e);
	if (rc < 0) {
		v->ops->close(v);
		return rc;
	}
	*ret = v;
	return 0;
}
