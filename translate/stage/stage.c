/* SPDX-License-Identifier: BSD-3-Clause */
/* stage.c - turns records into staged entries by key; generations.
 *
 * A thread that changes an entry holds the append lock from its first look until the index matches
 * the log. The index has a lock of its own, so that readers do not wait for the disk. The memory
 * for a record is allocated before the record is written. */
#include "translate/stage/stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/os/io.h"
#include "base/observe/metrics.h"
#include "base/core/str.h"
#include "codecs/core/codec.h"
#include "translate/stage/stage_int.h"

/* ---- a record in the index ---- */

/* stage_nodes - where a record goes; made before it is written. */
struct stage_nodes {
	struct stage_node *at;   /* what it says is about this */
	struct stage_node *from; /* MOVE, LINK: in memory as long as the append lock is held */
	char *alias;
};

static void stage_forget(struct stage *s, struct stage_nodes *n)
{
	free(n->alias);
	if (n->at)
		index_trim(&s->index, n->at);
	if (n->from)
		index_trim(&s->index, n->from);
}

/* stage_prepare - under both locks. has_data: of a MOVE or LINK that is in a log. */
static int stage_prepare(struct stage *s, const struct rec *r, bool has_data,
			 struct stage_nodes *ret, struct err *e)
{
	bool moves = r->type == REC_MOVE || r->type == REC_LINK;
	const char *alias = r->type == REC_ALIAS ? r->second : NULL;

	*ret = (struct stage_nodes){0};
	if (moves) {
		/* content that the record has itself may be all that is left of `from` */
		ret->from = has_data ? index_make(&s->index, r->key)
				     : index_walk(&s->index, r->key, NULL);
		if (!has_data && (!ret->from || ret->from->kind != STAGE_DATA))
			return err_set(e, -ENOENT, "'%.200s' has no pending writes", r->key);
		if (strcmp(r->key, r->second) == 0 || store_key_below(r->key, r->second) ||
		    store_key_below(r->second, r->key))
			return err_set(e, -EINVAL, "'%.150s' cannot be renamed to '%.150s'",
				       r->key, r->second);
	}
	if (alias) {
		ret->alias = strdup(alias);
		if (!ret->alias)
			return err_nomem(e);
	}
	ret->at = index_make(&s->index, moves ? r->second : r->key);
	if (!ret->at || (moves && !ret->from)) {
		stage_forget(s, ret);
		return err_nomem(e);
	}
	return 0;
}

/* is_bare - whether only this log has a file of this name. */
static bool is_bare(const struct stage_node *n, const struct stage_log *l)
{
	return n->kind == STAGE_DATA && n->log == l && !n->older && !n->hides && !n->below;
}

/* note_older - before a node gets an entry of this log. */
static void note_older(struct stage_node *n, const struct stage_log *l)
{
	if (n->log && n->log != l)
		n->older = n->log->generation;
}

static void set_gone(struct stage *s, struct stage_log *l, struct stage_node *n, bool bare)
{
	if (bare) {
		index_set(&s->index, n, STAGE_NOTHING);
		index_trim(&s->index, n);
		return;
	}
	note_older(n, l);
	index_clear_below(&s->index, n);
	index_set(&s->index, n, STAGE_GONE);
	n->hides = true;
	n->hides_since = l->generation;
	n->log = l;
	n->version = ++s->versions;
}

void stage_count(struct stage *s, int64_t delta)
{
	const bool was = s->bytes > 0;

	s->bytes += (uint64_t)delta;
	if (s->read_only)
		return;
	metrics_gauge_add(G_MEM_STAGING, delta);
	metrics_gauge_add(G_PENDING_COMMITS, (s->bytes > 0) - was);
}

/* stage_apply - a record that is in the log. Under both locks. */
static void stage_apply(struct stage *s, struct stage_log *l, const struct rec *r,
			struct stage_nodes *n)
{
	static const enum stage_kind kinds[REC_TYPES] = {
		[REC_PUT] = STAGE_DATA,    [REC_DIR] = STAGE_DIR,   [REC_GONE] = STAGE_GONE,
		[REC_ALIAS] = STAGE_ALIAS, [REC_MOVE] = STAGE_DATA, [REC_LINK] = STAGE_DATA,
	};
	const struct stage_node *same = r->flags & REC_SAME ? n->from : NULL;
	struct stage_node *at = n->at;

	stage_count(s, (int64_t)r->bytes);
	if (r->type == REC_GONE) {
		set_gone(s, l, at, (r->flags & REC_BARE) && is_bare(at, l));
		return;
	}
	if (r->type != REC_DIR)
		index_clear_below(&s->index, at);
	note_older(at, l);
	index_set(&s->index, at, kinds[r->type]);
	at->log = l;
	at->version = ++s->versions;
	at->mtime_ns = r->mtime_ns;
	at->bytes = same ? same->bytes : r->bytes;
	at->alias = n->alias;
	if (at->kind == STAGE_DATA) {
		at->off = same ? same->off : r->data_off;
		at->len = same ? same->len : r->len;
		at->crc = same ? same->crc : r->crc;
	}
	if (r->type == REC_MOVE)
		set_gone(s, l, n->from, (r->flags & REC_BARE) && is_bare(n->from, l));
	else if (n->from)
		index_trim(&s->index, n->from);
}

/* ---- opening ---- */

struct replaying {
	struct stage *s;
	struct stage_log *log;
};

static int replayed(void *arg, const struct rec *r, struct err *e)
{
	struct replaying *p = arg;
	struct stage_nodes n;
	int rc = stage_prepare(p->s, r, !(r->flags & REC_SAME), &n, e);

	if (!rc && n.from && (r->flags & REC_SAME) && n.from->log != p->log) {
		stage_forget(p->s, &n);
		rc = err_set(e, -EBADMSG, "the content of '%.200s' is in another log", r->key);
	}
	if (rc)
		return rc == -ENOMEM ? rc
				     : err_set(e, -EBADMSG, "'%s': %s", p->log->name,
					       "a record contradicts earlier records");
	stage_apply(p->s, p->log, r, &n);
	return 0;
}

/* stage_load - one log. It is taken by the stage, unless nothing is in it. */
static int stage_load(struct stage *s, uint64_t generation, struct err *e)
{
	struct stage_log *l;
	struct replaying p;
	bool torn;
	int rc = log_open(s->dir_fd, generation, s->read_only, &l, &torn, e);

	if (rc)
		return rc;
	p = (struct replaying){.s = s, .log = l};
	if (!torn) {
		*logs_end(&s->logs) = l;
		rc = log_replay(l, !s->read_only, replayed, &p, e);
		if (rc || s->read_only)
			return rc;
		if (ftruncate(l->fd, (off_t)l->end) < 0)
			return err_sys(e, errno, "'%s'", l->name);
		return log_sync(l, l->end, e);
	}
	if (!s->read_only && unlinkat(s->dir_fd, l->name, 0) < 0)
		rc = err_sys(e, errno, "'%s'", l->name);
	log_drop(l);
	return rc;
}

static int stage_by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* find_logs - their generations, sorted. *ret: new. */
static int find_logs(int dir_fd, uint64_t **ret, size_t *ret_n, struct err *e)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *d;
	size_t cap = 0;
	int rc = 0;

	*ret = NULL;
	*ret_n = 0;
	if (!dir) {
		rc = err_sys(e, errno, "the state directory");
		close_fd(&fd);
		return rc;
	}
	while (!rc && (errno = 0, d = readdir(dir))) {
		uint64_t g;

		if (strncmp(d->d_name, "log.", 4) != 0 ||
		    str_u64(d->d_name + 4, strlen(d->d_name + 4), INT64_MAX, &g) < 0 || !g)
			continue;
		if (grow_array(ret, &cap, *ret_n + 1, sizeof(**ret)) < 0)
			rc = err_nomem(e);
		else
			(*ret)[(*ret_n)++] = g;
	}
	if (!rc && errno)
		rc = err_sys(e, errno, "the state directory");
	(void)closedir(dir); /* was only read */
	if (!rc && *ret_n)
		qsort(*ret, *ret_n, sizeof(**ret), stage_by_number);
	return rc;
}

static int stage_load_all(struct stage *s, struct err *e)
{
	auto_free uint64_t *v = NULL;
	size_t n;
	int rc = find_logs(s->dir_fd, &v, &n, e);

	for (size_t i = 0; !rc && i < n; i++) {
		s->next_generation = v[i] + 1;
		if (v[i] <= s->limit)
			rc = stage_load(s, v[i], e);
	}
	s->dirty = s->index.entries > 0;
	return rc;
}

int stage_open_at(int dir_fd, bool read_only, uint64_t limit, struct stage **ret, struct err *e)
{
	struct stage *s = alloc_array(1, sizeof(*s));
	int rc;

	if (!s)
		return err_nomem(e);
	s->read_only = read_only;
	s->limit = limit;
	s->next_generation = 1;
	(void)pthread_mutex_init(&s->append, NULL); /* cannot fail without attributes */
	(void)pthread_mutex_init(&s->sync, NULL);
	(void)pthread_mutex_init(&s->lock, NULL);
	s->dir_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = s->dir_fd < 0 ? err_sys(e, errno, "the state directory")
			   : index_init(&s->index, e);
	rc = rc ? rc : stage_load_all(s, e);
	if (rc) {
		stage_close(s);
		return rc;
	}
	*ret = s;
	return 0;
}

int stage_open(int dir_fd, bool read_only, struct stage **ret, struct err *e)
{
	return stage_open_at(dir_fd, read_only, UINT64_MAX, ret, e);
}

void stage_close(struct stage *s)
{
	if (!s)
		return;
	stage_count(s, -(int64_t)s->bytes);
	stage_sweep(s);
	logs_drop(s->logs);
	index_free(&s->index);
	close_fd(&s->dir_fd);
	(void)pthread_mutex_destroy(&s->sync);
	(void)pthread_mutex_destroy(&s->append);
	(void)pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- asking ---- */

bool stage_empty(struct stage *s)
{
	LOCK_SCOPE(&s->lock);

	return !s->index.entries;
}

uint64_t stage_bytes(struct stage *s)
{
	LOCK_SCOPE(&s->lock);

	return s->bytes;
}

uint64_t stage_left_bytes(struct stage *s)
{
	LOCK_SCOPE(&s->lock);

	return s->left_bytes;
}

void stage_fill(const struct stage_node *n, bool hidden, struct stage_entry *ret, char *name)
{
	*ret = (struct stage_entry){.kind = hidden ? STAGE_GONE : STAGE_NOTHING};
	if (!n)
		return;
	if (n->kind != STAGE_NOTHING && n->kind != STAGE_GONE)
		ret->kind = n->kind;
	else if (n->alive)
		ret->kind = STAGE_DIR; /* only because something is below it */
	ret->generation = n->log ? n->log->generation : 0;
	ret->len = n->len;
	ret->mtime_ns = n->mtime_ns;
	ret->version = n->version;
	if (n->kind == STAGE_ALIAS && name) {
		memcpy(name, n->alias, strlen(n->alias) + 1);
		ret->base_key = name;
	}
}

void stage_find(struct stage *s, const char *key, struct stage_entry *ret, char *name)
{
	const struct stage_node *n;
	bool hidden;
	LOCK_SCOPE(&s->lock);

	n = index_walk(&s->index, key, &hidden);
	stage_fill(n, hidden, ret, name);
}

bool stage_hides(struct stage *s, const char *key)
{
	bool hidden;
	LOCK_SCOPE(&s->lock);

	(void)index_walk(&s->index, key, &hidden);
	return hidden;
}

int stage_read(struct stage *s, const char *key, const struct stage_entry *x, uint64_t off,
	       uint8_t *out, size_t len, struct err *e)
{
	const struct stage_node *n;
	struct stage_log *log = NULL;
	uint64_t at = 0;
	uint32_t crc = 0;
	int rc;

	if (off > x->len || len > x->len - off)
		return err_set(e, -EIO, "'%.200s' has only %" PRIu64 " bytes", key, x->len);
	(void)pthread_mutex_lock(&s->lock);
	n = index_walk(&s->index, key, NULL);
	if (n && n->kind == STAGE_DATA && n->version == x->version) {
		log = n->log;
		at = n->off;
		crc = n->crc;
		log_hold(log);
	}
	(void)pthread_mutex_unlock(&s->lock);
	if (!log)
		return err_set(e, -ESTALE, "'%.200s' was written again", key);
	rc = io_pread(log->fd, out, len, at + off, e);
	if (!rc && len == x->len && codec_crc32c_sum(0, out, len) != crc)
		rc = err_set(e, -EIO, "'%.200s' is damaged in '%s' at offset %" PRIu64, key,
			     log->name, at);
	log_drop(log);
	return rc;
}

/* ---- appending ---- */

/* begin_log - the log that is written to. Under the append lock. */
static int begin_log(struct stage *s, struct err *e)
{
	struct stage_log *l;
	int rc;

	if (s->read_only)
		return err_set(e, -EROFS, "the pending writes are open for reading only");
	if (s->current)
		return 0;
	rc = log_create(s->dir_fd, s->next_generation, &l, e);
	if (rc)
		return rc;
	atomic_store(&s->dir_dirty, true);
	s->next_generation++;
	LOCK_SCOPE(&s->lock);
	*logs_end(&s->logs) = l;
	s->current = l;
	return 0;
}

/* append_locked - under the append lock. */
static int append_locked(struct stage *s, struct rec *r, const struct log_source *data,
			 struct err *e)
{
	struct log_source own = data ? *data : (struct log_source){.fd = -1};
	struct stage_nodes n;
	int rc = begin_log(s, e);

	if (rc)
		return rc;
	(void)pthread_mutex_lock(&s->lock);
	rc = stage_prepare(s, r, false, &n, e);
	(void)pthread_mutex_unlock(&s->lock);
	if (rc)
		return rc;
	if ((r->flags & REC_BARE) && !is_bare(n.from ? n.from : n.at, s->current))
		r->flags &= (uint8_t)~REC_BARE;
	if (n.from) {
		r->mtime_ns = n.from->mtime_ns;
		if (n.from->log == s->current)
			r->flags |= REC_SAME;
		else /* its log will be gone before this one is */
			own = (struct log_source){
				.fd = n.from->log->fd, .off = n.from->off, .len = n.from->len};
	}
	rc = log_append(s->current, r, &own, e);
	(void)pthread_mutex_lock(&s->lock);
	if (rc)
		stage_forget(s, &n);
	else
		stage_apply(s, s->current, r, &n);
	(void)pthread_mutex_unlock(&s->lock);
	return rc;
}

static int stage_append(struct stage *s, struct rec *r, const struct log_source *data,
			struct err *e)
{
	const struct timespec now = clock_wall();
	int rc;

	r->mtime_ns = clock_ns_of(&now);
	LOCK_SCOPE(&s->append);
	rc = append_locked(s, r, data, e);
	s->dirty |= rc == 0;
	return rc;
}

static int stage_bad_key(const char *key, struct err *e)
{
	return err_set(e, -EINVAL, "'%.200s' is not a key", key);
}

static int append_one(struct stage *s, enum rec_type type, uint8_t flags, const char *key,
		      const struct log_source *data, uint32_t crc, struct err *e)
{
	struct rec r = {
		.type = type, .flags = flags, .key = key, .key_len = strlen(key), .crc = crc};

	return store_key_ok(key) ? stage_append(s, &r, data, e) : stage_bad_key(key, e);
}

int stage_put(struct stage *s, const char *key, const uint8_t *data, size_t len, struct err *e)
{
	struct log_source d = {.mem = len ? data : (const uint8_t *)"", .fd = -1, .len = len};

	return append_one(s, REC_PUT, 0, key, &d, codec_crc32c_sum(0, d.mem, len), e);
}

int stage_put_file(struct stage *s, const char *key, int fd, uint64_t len, struct err *e)
{
	struct log_source d = {.fd = fd, .len = len};

	return append_one(s, REC_PUT, 0, key, &d, 0, e);
}

int stage_mkdir(struct stage *s, const char *key, struct err *e)
{
	return append_one(s, REC_DIR, 0, key, NULL, 0, e);
}

int stage_gone(struct stage *s, const char *key, bool bare, struct err *e)
{
	return append_one(s, REC_GONE, bare ? REC_BARE : 0, key, NULL, 0, e);
}

/* two_keys - of a record. both: REC_KEY_MAX + 1 bytes. */
static int two_keys(struct rec *r, const char *key, const char *second, char *both,
		    struct err *e)
{
	size_t n;

	if (!store_key_ok(key) || !store_key_ok(second))
		return stage_bad_key(store_key_ok(key) ? second : key, e);
	n = strlen(key) + 1;
	memcpy(both, key, n);
	memcpy(both + n, second, strlen(second) + 1);
	r->key = both;
	r->second = both + n;
	r->key_len = n + strlen(second);
	return 0;
}

int stage_alias(struct stage *s, const char *key, const char *base_key, struct err *e)
{
	char both[REC_KEY_MAX + 1];
	struct rec r = {.type = REC_ALIAS};
	int rc = two_keys(&r, key, base_key, both, e);

	return rc ? rc : stage_append(s, &r, NULL, e);
}

/* stage_do_move - an alias may be in a log that goes before the current one: it is made again. */
static int stage_do_move(struct stage *s, enum rec_type type, uint8_t flags, const char *from,
			 const char *to, struct err *e)
{
	char both[REC_KEY_MAX + 1], name[STORE_KEY_MAX + 1];
	struct rec r = {.type = type, .flags = flags};
	struct stage_entry x;
	int rc = two_keys(&r, from, to, both, e);

	if (rc)
		return rc;
	stage_find(s, from, &x, name);
	if (x.kind != STAGE_ALIAS)
		return stage_append(s, &r, NULL, e);
	rc = stage_alias(s, to, name, e);
	return rc || type == REC_LINK ? rc : stage_gone(s, from, false, e);
}

int stage_move(struct stage *s, const char *from, const char *to, bool bare, struct err *e)
{
	return stage_do_move(s, REC_MOVE, bare ? REC_BARE : 0, from, to, e);
}

int stage_link(struct stage *s, const char *from, const char *to, struct err *e)
{
	return stage_do_move(s, REC_LINK, 0, from, to, e);
}

int stage_again(struct stage *s, const char *key, struct err *e)
{
	char both[REC_KEY_MAX + 1];
	struct rec r = {.type = REC_DIR, .key = both, .key_len = strlen(key)};
	struct stage_node *n = index_walk(&s->index, key, NULL); /* no other thread changes it */
	struct log_source d = {.fd = -1};
	uint64_t version = n->version;
	int rc;

	memcpy(both, key, r.key_len + 1);
	r.mtime_ns = n->mtime_ns;
	if (n->kind == STAGE_DATA) {
		r.type = REC_PUT;
		d = (struct log_source){.fd = n->log->fd, .off = n->off, .len = n->len};
	} else if (n->kind == STAGE_ALIAS) {
		r.type = REC_ALIAS;
		r.second = both + r.key_len + 1;
		memcpy(both + r.key_len + 1, n->alias, strlen(n->alias) + 1);
		r.key_len += 1 + strlen(n->alias);
	}
	rc = append_locked(s, &r, &d, e);
	if (rc)
		return rc;
	(void)pthread_mutex_lock(&s->lock);
	n->left = true;
	n->version = version; /* the content is what it was */
	(void)pthread_mutex_unlock(&s->lock);
	return 0;
}

/* sync_dir - names of logs that were begun. */
static int sync_dir(struct stage *s, struct err *e)
{
	LOCK_SCOPE(&s->sync); /* a second caller waits for the first one's result */
	int rc;

	if (!atomic_exchange(&s->dir_dirty, false))
		return 0;
	rc = io_sync(s->dir_fd, true, e);
	if (rc)
		atomic_store(&s->dir_dirty, true);
	return rc;
}

/* unsynced - a log behind a generation with something that is not on the disk, held; *ret_end: up
 * to where. NULL: none. */
static struct stage_log *unsynced(struct stage *s, uint64_t behind, uint64_t *ret_end)
{
	LOCK_SCOPE(&s->append);

	for (struct stage_log *l = s->logs; l; l = l->next)
		if (l->generation > behind && atomic_load(&l->synced) < l->end) {
			*ret_end = l->end;
			log_hold(l);
			return l;
		}
	return NULL;
}

int stage_sync(struct stage *s, struct err *e)
{
	return stage_sync_behind(s, 0, e);
}

int stage_sync_behind(struct stage *s, uint64_t generation, struct err *e)
{
	struct stage_log *l;
	uint64_t end = 0;
	int rc = 0;

	while (!rc && (l = unsynced(s, generation, &end))) {
		rc = log_sync(l, end, e);
		log_drop(l);
	}
	return rc ? rc : sync_dir(s, e);
}
