/* SPDX-License-Identifier: BSD-3-Clause */
/* stage_generations.c - freezes the records to commit, and drops them afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/os/io.h"
#include "translate/stage/stage_int.h"

static struct stage_log *newest(const struct stage *s)
{
	struct stage_log *l = s->logs;

	while (l && l->next)
		l = l->next;
	return l;
}

int stage_freeze(struct stage *s, uint64_t *ret, struct err *e)
{
	const struct stage_log *l;
	LOCK_SCOPE(&s->append);

	l = newest(s);
	if (s->frozen || s->read_only)
		return err_set(e, -EBUSY, "a generation is frozen already");
	if (!s->dirty || !l)
		return err_set(e, -ENODATA, "nothing was written");
	*ret = s->frozen = l->generation;
	s->dirty = false;
	LOCK_SCOPE(&s->lock);
	s->current = NULL;
	return 0;
}

void stage_touch(struct stage *s)
{
	LOCK_SCOPE(&s->append);

	s->dirty = true;
}

void stage_thaw(struct stage *s)
{
	struct stage_log *l;
	LOCK_SCOPE(&s->append);

	l = newest(s);
	if (!s->frozen)
		return;
	/* if nothing was appended, the same log continues: otherwise a commit that fails again and
	 * again would make a file each time */
	LOCK_SCOPE(&s->lock);
	if (!s->current && l && l->generation == s->frozen)
		s->current = l;
	s->frozen = 0;
	s->dirty = true;
}

/* stage_generations_belongs - a node with an entry of these generations. */
static bool stage_generations_belongs(const struct stage_node *n, uint64_t generation)
{
	return n->kind != STAGE_NOTHING && n->log->generation <= generation;
}

/* left_node - of a key that goes on being staged: it is one of these generations, and no younger
 * record is about it. Under the append lock. */
static struct stage_node *left_node(struct stage *s, const char *key)
{
	struct stage_node *n =
		index_walk(&s->index, key, NULL); /* no other thread changes it */

	return n && stage_generations_belongs(n, s->frozen) && n->kind != STAGE_GONE ? n : NULL;
}

/* all_left - whether a commit left everything that was frozen, so that nothing needs to be copied.
 * If nothing is left because all written entries were removed, the logs are removed. */
static bool all_left(struct stage *s, const struct buf *left)
{
	uint64_t marked = 0, all = 0;
	LOCK_SCOPE(&s->append);
	LOCK_SCOPE(&s->lock);

	for (struct stage_node *x = s->index.root; x; x = index_next(s->index.root, x))
		x->left = false; /* by the commit before */
	for (const char *key = buf_next(left, NULL); key; key = buf_next(left, key)) {
		struct stage_node *x = left_node(s, key);

		if (x)
			x->left = true;
	}
	for (struct stage_node *x = s->index.root; x; x = index_next(s->index.root, x)) {
		all += stage_generations_belongs(x, s->frozen) ||
		       (x->hides && x->hides_since <= s->frozen);
		marked += stage_generations_belongs(x, s->frozen) && x->left;
	}
	return all > 0 && all == marked;
}

/* stage_generations_drop - entries and logs of the frozen generation and of those before it; the
 * logs are the caller's. Under both locks. */
static struct stage_log *stage_generations_drop(struct stage *s)
{
	struct stage_log *gone = s->logs, **at = &s->logs;

	for (struct stage_node *n = s->index.root; n; n = index_next(s->index.root, n)) {
		if (stage_generations_belongs(n, s->frozen))
			index_set(&s->index, n, STAGE_NOTHING);
		if (n->hides && n->hides_since <= s->frozen)
			n->hides = false;
		if (n->older <= s->frozen)
			n->older = 0;
	}
	index_sweep(&s->index);
	while (*at && (*at)->generation <= s->frozen) {
		stage_count(s, -(int64_t)((*at)->end - LOG_HEAD));
		at = &(*at)->next;
	}
	s->logs = *at;
	*at = NULL;
	return gone == s->logs ? NULL : gone;
}

/* remove_logs - remove the logs of the frozen generation and of those before it, the oldest first.
 * The next mount would commit a log that cannot be removed again, over younger data: then all
 * entries stay staged, and are retired later. Under the append lock. */
static int remove_logs(struct stage *s, struct err *e)
{
	for (const struct stage_log *l = s->logs; l && l->generation <= s->frozen; l = l->next) {
		int rc = log_whole(s->dir_fd, l, e);

		if (rc)
			return rc;
	}
	for (const struct stage_log *l = s->logs; l && l->generation <= s->frozen; l = l->next)
		if (unlinkat(s->dir_fd, l->name, 0) < 0 && errno != ENOENT)
			return err_sys(e, errno, "cannot remove '%s'", l->name);
	return 0;
}

void stage_sweep(struct stage *s)
{
	struct stage_log *l;

	(void)pthread_mutex_lock(&s->lock);
	l = s->retired;
	s->retired = NULL;
	(void)pthread_mutex_unlock(&s->lock);
	if (!l)
		return;
	logs_drop(l);
	if (io_sync(s->dir_fd, true, NULL) < 0)
		return; /* the next that is removed takes them along */
}

/* durable - whether records up to the frozen generation may be on the disk because a caller was
 * promised that. A log of an earlier process was synced when it was opened. */
static bool durable(struct stage *s)
{
	LOCK_SCOPE(&s->append);

	for (const struct stage_log *l = s->logs; l && l->generation <= s->frozen; l = l->next)
		if (atomic_load(&l->failed) || atomic_load(&l->synced) > 0)
			return true;
	return false;
}

int stage_retire(struct stage *s, const struct buf *left, struct err *e)
{
	static const struct buf none;
	bool all;
	int rc = 0;

	left = left ? left : &none;
	all = all_left(s, left);
	for (const char *key = buf_next(left, NULL); !all && !rc && key;
	     key = buf_next(left, key)) {
		LOCK_SCOPE(&s->append);

		rc = left_node(s, key) ? stage_again(s, key, e) : 0;
	}
	/* What is left now lies in a later log, and the others are about to go. A sync would write
	 * all of that log, most of which the next commit puts into the dataset. A sync that comes
	 * from now on includes it. */
	if (!rc && !all && left->len > 0 && durable(s))
		rc = stage_sync_behind(s, s->frozen, e);
	if (rc)
		return rc; /* everything is staged still */
	LOCK_SCOPE(&s->append);
	rc = all ? 0 : remove_logs(s, e);
	if (rc)
		return rc;
	LOCK_SCOPE(&s->lock);
	if (!all)
		*logs_end(&s->retired) = stage_generations_drop(s); /* open until stage_sweep */
	s->left_bytes = 0;
	for (struct stage_node *n = s->index.root; n; n = index_next(s->index.root, n))
		s->left_bytes += n->left ? n->bytes : 0;
	s->frozen = 0;
	return 0;
}

int stage_drop(struct stage *s, const struct buf *left, struct err *e)
{
	uint64_t generation;
	int rc;

	stage_touch(s);
	rc = stage_freeze(s, &generation, e);
	if (rc)
		return rc;
	rc = stage_retire(s, left, e);
	if (rc)
		stage_thaw(s);
	return rc;
}

int stage_old_keys(struct stage *s, uint64_t generation, enum stage_kind kind, struct buf *out,
		   struct err *e)
{
	char key[STORE_KEY_MAX + 1];
	LOCK_SCOPE(&s->lock);

	for (struct stage_node *n = s->index.root; n; n = index_next(s->index.root, n)) {
		if (n->kind != kind || n->log->generation > generation)
			continue;
		index_key(n, key);
		buf_put(out, key, strlen(key) + 1);
	}
	return buf_ok(out) ? 0 : err_nomem(e);
}

bool stage_alive(struct stage *s, const char *key)
{
	const struct stage_node *n;
	LOCK_SCOPE(&s->lock);

	n = index_walk(&s->index, key, NULL);
	return n && n->alive > 0;
}

/* ---- look-ups ---- */

struct listed {
	const char *key;
	struct stage_entry x;
};

static int stage_generations_by_key(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->key, ((const struct listed *)b)->key);
}

/* stage_generations_entries - all of a stage, sorted, in arena a. */
static int stage_generations_entries(struct stage *s, struct arena *a, struct listed **ret,
				     size_t *ret_n)
{
	char key[STORE_KEY_MAX + 1];
	struct listed *v;
	size_t n = 0;
	LOCK_SCOPE(&s->lock);

	v = arena_alloc(a, (size_t)s->index.entries, sizeof(*v));
	for (struct stage_node *x = s->index.root; v && x; x = index_next(s->index.root, x)) {
		if (x->kind == STAGE_NOTHING)
			continue;
		index_key(x, key);
		stage_fill(x, false, &v[n].x, NULL);
		v[n].key = arena_strdup(a, key);
		v[n].x.base_key = x->alias ? arena_strdup(a, x->alias) : NULL;
		if (!v[n].key || (x->alias && !v[n].x.base_key))
			return -ENOMEM;
		if (x->kind == STAGE_GONE || (x->kind == STAGE_DIR && x->hides))
			v[n].x.kind = STAGE_GONE;
		n++;
	}
	if (v && n)
		qsort(v, n, sizeof(*v), stage_generations_by_key);
	*ret_n = n;
	*ret = v;
	return v ? 0 : -ENOMEM;
}

int stage_up_to(struct stage *s, uint64_t generation, struct stage **ret, struct err *e)
{
	const struct stage_log *l;
	bool whole;

	(void)pthread_mutex_lock(&s->append);
	l = newest(s);
	whole = !l || l->generation <= generation;
	(void)pthread_mutex_unlock(&s->append);
	*ret = NULL;
	return whole ? 0 : stage_open_at(s->dir_fd, true, generation, ret, e);
}

int stage_each(struct stage *s, uint64_t generation,
	       bool (*fn)(void *arg, const char *key, const struct stage_entry *x), void *arg)
{
	struct listed *v = NULL;
	struct stage *older;
	struct arena mem;
	size_t n = 0;
	int rc = stage_up_to(s, generation, &older, NULL);

	if (rc)
		return rc;
	arena_init(&mem, SIZE_MAX);
	rc = stage_generations_entries(older ? older : s, &mem, &v, &n);
	for (size_t i = 0; !rc && i < n; i++)
		if (!fn(arg, v[i].key, &v[i].x))
			break;
	arena_release(&mem);
	stage_close(older);
	return rc;
}
