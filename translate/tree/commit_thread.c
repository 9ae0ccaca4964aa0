/* SPDX-License-Identifier: BSD-3-Clause */
/* commit_thread.c - the thread that puts pending writes into the dataset.
 *
 * While the dataset's own bytes change, and until it is open again, the thread holds the tree's
 * lock: requests wait meanwhile, and then see the new snapshot and a stage without the committed
 * records. */
#include <errno.h>
#include <string.h>
#include <time.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/core/clock.h"
#include "base/observe/log.h"
#include "base/observe/metrics.h"
#include "translate/tree/tree_int.h"

enum {
	POLL_MS = 1000,      /* between two checks whether another program wrote the dataset */
	BUSY_FIRST_MS = 100, /* pause after a commit that found the dataset locked; doubled */
	BUSY_MOST_MS = 5000,
	FAILED_MS = 1000, /* after one that failed: sooner only if a request waits for it */
	WAIT_MS = 10000,  /* longest time that a request waits while the dataset is locked */
};

static void commit_thread_lock(struct tree *t)
{
	(void)pthread_mutex_lock(&t->commit_lock);
}

static void unlock(struct tree *t)
{
	(void)pthread_mutex_unlock(&t->commit_lock);
}

static int commit_thread_stale(const struct tree *t, struct err *e)
{
	return err_set(e, -ESTALE,
		       "the dataset was changed by another program: pending writes are kept in "
		       "'%s'",
		       t->o.dir);
}

/* fresh_bytes - bytes that are staged and were not left by a commit. */
static uint64_t fresh_bytes(const struct tree *t, uint64_t *ret_left)
{
	uint64_t all = stage_bytes(t->stage);

	*ret_left = stage_left_bytes(t->stage);
	return all - u64_min(all, *ret_left);
}

/* enough - whether to begin a commit. The next commit carries over the records that this one
 * leaves, so new data must outweigh those. */
static bool enough(const struct tree *t)
{
	uint64_t left, fresh = fresh_bytes(t, &left);

	return fresh >= u64_max(t->o.max_staged / 2, left);
}

static bool too_much(const struct tree *t)
{
	uint64_t left, fresh = fresh_bytes(t, &left);

	return fresh > u64_max(t->o.max_staged, 2 * left);
}

/* ---- one commit ---- */

static void quiesce(void *arg)
{
	struct tree *t = arg;

	if (!t->quiet)
		write_lock(t);
	t->quiet = true;
}

static void resume(struct tree *t)
{
	if (t->quiet)
		tree_unlock(t);
	t->quiet = false;
}

int left_add(struct left *l, const char *key, struct err *e)
{
	buf_put(&l->keys, key, strlen(key) + 1);
	return buf_ok(&l->keys) ? 0 : err_nomem(e);
}

/* keep_dirs - keep directories that the dataset does not have, because they hold nothing that it
 * knows. */
static int keep_dirs(struct left *l, uint64_t generation, struct err *e)
{
	auto_buf dirs = buf_of(SIZE_MAX / 2);
	int rc = stage_old_keys(l->t->stage, generation, STAGE_DIR, &dirs, e);

	for (const char *key = buf_next(&dirs, NULL); !rc && key; key = buf_next(&dirs, key)) {
		struct found f;

		rc = tree_base(l->g, key, &f, e);
		if (!rc && f.kind == FOUND_NOTHING)
			rc = left_add(l, key, e);
	}
	return rc;
}

/* left_key - the length of the key in "key TAB reason", unless a key has the TAB. */
static size_t left_key(struct tree *t, const char *text)
{
	const char *tab = strchr(text, '\t');
	struct stage_entry x = {.kind = STAGE_NOTHING};

	if (!tab)
		return strlen(text);
	if (strlen(text) <= STORE_KEY_MAX)
		stage_find(t->stage, text, &x, NULL);
	if (x.kind != STAGE_NOTHING && x.kind != STAGE_GONE)
		return strlen(text);
	log_info("'%.*s' is still pending: %s", (int)(tab - text), text, tab + 1);
	return (size_t)(tab - text);
}

/* commit_thread_forget - drop the committed records after the dataset was opened again. */
static int commit_thread_forget(struct tree *t, const struct snapshot *old, uint64_t generation,
				struct left *l, struct err *e)
{
	int rc;

	l->g = snapshots_get(t->snapshots);
	l->generation = generation;
	rc = buf_ok(&l->keys) ? keep_dirs(l, generation, e) : err_nomem(e);
	rc = rc ? rc : removed_keep(t, old, l->g, generation, e);
	rc = rc ? rc : pins_keep(l, old, e);
	if (!rc)
		held_keep(t, old, l->g);
	snapshot_put(t->snapshots, l->g);
	rc = rc ? rc : stage_retire(t->stage, &l->keys, e);
	if (!rc)
		pins_settle(t);
	return rc;
}

/* conclude - the dataset has a new state: open it, and drop the records that are in it. Never
 * -ESTALE, since no other program changed it. */
static int conclude(struct tree *t, const struct snapshot *old, uint64_t generation,
		    struct left *l, struct err *e)
{
	int rc = snapshots_reopen(t->snapshots, e);

	atomic_store(&t->lost, rc != 0);
	if (rc)
		return err_wrap(e, rc == -ESTALE ? -EIO : rc,
				"committed, but the dataset cannot be reopened");
	rc = commit_thread_forget(t, old, generation, l, e);
	if (rc)
		return err_wrap(e, rc == -ESTALE ? -EIO : rc,
				"committed, but the written data stays in '%s'", t->o.dir);
	return 0;
}

/* start_over - a commit failed. Bytes that it appended and removed again, or could not remove, must
 * not count as another program's change: the dataset is opened again, which also repairs it. If
 * that fails too, the state is unknown, and the dataset is opened before anything else is done. */
static void start_over(struct tree *t, struct snapshot *g)
{
	struct err e = ERR_INIT;

	quiesce(t);
	source_hold(g->view->source, false);
	if (snapshots_reopen(t->snapshots, &e) == 0)
		return;
	atomic_store(&t->lost, true);
	log_warn("the dataset cannot be reopened: %s", e.msg);
}

/* commit_frozen - *ret_done: the dataset has the frozen records, whatever failed afterwards. */
static int commit_frozen(struct tree *t, uint64_t generation, bool all, bool *ret_done,
			 struct err *e)
{
	struct snapshot *g = snapshots_get(t->snapshots);
	struct left l = {.t = t, .keys = buf_of(SIZE_MAX / 2)};
	auto_buf texts = buf_of(SIZE_MAX / 2);
	int rc = snapshots_check(t->snapshots, e);

	if (!rc) {
		if (g->view->source)
			source_hold(g->view->source, true);
		rc = t->o.commit(t->o.arg, g, generation, all, quiesce, t, &texts, e);
		*ret_done = !rc;
		if (!rc) {
			quiesce(t);
			for (const char *x = buf_next(&texts, NULL); x; x = buf_next(&texts, x)) {
				buf_put(&l.keys, x, left_key(t, x));
				buf_putc(&l.keys, '\0');
			}
			t->held = !all && texts.len > 0;
			rc = conclude(t, g, generation, &l, e);
		} else if (rc != -EAGAIN && rc != -ESTALE && g->view->source) {
			start_over(t, g);
		}
		if (g->view->source)
			source_hold(g->view->source, false);
	}
	buf_release(&l.keys);
	snapshot_put(t->snapshots, g);
	return rc;
}

/* commit_thread_commit - all: as for tree_rw_options.commit. */
static int commit_thread_commit(struct tree *t, bool all, struct err *e)
{
	uint64_t generation;
	bool done = false;
	int rc;

	if (atomic_load(&t->stale))
		return commit_thread_stale(t, e);
	if (atomic_load(&t->lost)) {
		quiesce(t);
		rc = snapshots_reopen(t->snapshots, e);
		atomic_store(&t->lost, rc != 0);
		resume(t);
		if (rc)
			return rc;
	}
	if (all && t->held)
		stage_touch(t->stage);
	write_lock(t); /* nothing is removed between the two */
	rc = stage_empty(t->stage) ? 0 : root_check(t, e);
	if (rc) {
		tree_unlock(t);
		return rc;
	}
	rc = stage_freeze(t->stage, &generation, e);
	tree_unlock(t);
	if (rc)
		return rc == -ENODATA ? 0 : rc;
	rc = commit_frozen(t, generation, all, &done, e);
	if (rc)
		stage_thaw(t->stage);
	resume(t);
	if (rc == -ESTALE) {
		atomic_store(&t->stale, true);
		(void)err_wrap(e, rc,
			       "commits have stopped, and all pending writes are kept in '%s'",
			       t->o.dir);
	} else if (rc && rc != -EAGAIN && !done) {
		(void)err_wrap(e, rc,
			       "not committed, pending writes are kept in '%s' for the next "
			       "commit or nczarrfs recover",
			       t->o.dir);
	}
	return rc;
}

/* ---- the thread ---- */

/* due_locked - whether to commit now; else *ret_ms: how long to wait, 0: until woken. */
static bool due_locked(struct tree *t, int64_t *ret_ms)
{
	int64_t now = clock_ms(), at = 0;

	*ret_ms = 0;
	if (t->renew)
		return true;
	if (t->busy_times)
		at = t->retry_ms;
	else if (t->wanted > t->done)
		return true;
	else if (!t->fresh_records)
		return false;
	else if (enough(t))
		at = t->last_rc ? t->failed_ms + FAILED_MS : now;
	else
		at = t->written_ms + (int64_t)t->o.idle_ms;
	if (at <= now)
		return true;
	*ret_ms = at - now;
	return false;
}

/* tell_locked - log a reason once, until it changes or a commit succeeds. */
static void tell_locked(struct tree *t, int rc, const struct err *e)
{
	if (rc && (rc != t->last_rc || strcmp(e->msg, t->last.msg) != 0)) {
		if (rc == -EAGAIN)
			log_info("%s", e->msg);
		else
			log_error("%s", e->msg);
	}
	t->last_rc = rc;
	t->last = *e;
}

static void attempt_locked(struct tree *t)
{
	struct err e = ERR_INIT;
	uint64_t wanted = t->wanted;
	bool all = wanted > t->done;
	int64_t pause;
	int rc;

	t->fresh_records = false;
	t->committing = true;
	unlock(t);
	rc = commit_thread_commit(t, all, &e);
	commit_thread_lock(t);
	t->committing = false;
	t->attempts++;
	if (rc != -EAGAIN)
		metrics_count(rc < 0 ? M_COMMITS_FAILED : M_COMMITS_DONE);
	tell_locked(t, rc, &e);
	t->busy_times = rc == -EAGAIN ? t->busy_times + 1 : 0;
	if (rc == -EAGAIN) {
		pause = BUSY_FIRST_MS << u64_min(t->busy_times - 1, 6);
		t->retry_ms = clock_ms() + (pause < BUSY_MOST_MS ? pause : BUSY_MOST_MS);
	} else {
		t->failed_ms = clock_ms();
		t->done = wanted;
	}
	(void)pthread_cond_broadcast(&t->ended);
}

/* renew_locked - another program changed the dataset, and nothing is staged: open it again. */
static void renew_locked(struct tree *t)
{
	struct err e = ERR_INIT;
	int rc = 0;

	unlock(t);
	write_lock(t);
	rc = pins_drop(t, &e); /* what they are like now is another's doing */
	if (!rc && !stage_empty(t->stage) && !atomic_load(&t->lost))
		atomic_store(&t->stale, true);
	else if (!rc)
		rc = snapshots_reopen(t->snapshots, &e);
	held_free(t);
	removed_free(t);
	if (!rc)
		atomic_store(&t->lost, false);
	tree_unlock(t);
	if (atomic_load(&t->stale))
		log_error("the dataset was changed by another program: commits have stopped, "
			  "and all pending writes are kept in '%s'",
			  t->o.dir);
	else if (rc)
		log_error("the dataset changed and cannot be reopened: %s", e.msg);
	commit_thread_lock(t);
	t->renew = false;
	t->renewed++;
	(void)pthread_cond_broadcast(&t->ended);
}

static void *commit_thread_run(void *arg)
{
	struct tree *t = arg;

	commit_thread_lock(t);
	while (!t->stopping) {
		int64_t ms;

		if (!due_locked(t, &ms)) {
			struct timespec ts = clock_after(ms * 1000000);

			if (ms)
				(void)pthread_cond_timedwait(&t->wake, &t->commit_lock, &ts);
			else
				(void)pthread_cond_wait(&t->wake, &t->commit_lock);
			continue;
		}
		if (t->renew)
			renew_locked(t);
		else
			attempt_locked(t);
		unlock(t);
		stage_sweep(t->stage); /* no caller waits for it */
		commit_thread_lock(t);
	}
	unlock(t);
	return NULL;
}

/* ---- for the other files of the tree ---- */

int commits_start(struct tree *t, struct err *e)
{
	pthread_condattr_t attr;
	int rc;

	t->fresh_records = !stage_empty(t->stage);
	t->written_ms = clock_ms() - (int64_t)t->o.idle_ms;
	(void)pthread_condattr_init(&attr); /* cannot fail, nor can what follows */
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&t->wake, &attr);
	(void)pthread_cond_init(&t->ended, &attr);
	(void)pthread_condattr_destroy(&attr);
	rc = pthread_create(&t->thread, NULL, commit_thread_run, t);
	if (rc)
		return err_sys(e, rc, "cannot start the commit thread");
	t->started = true;
	return 0;
}

/* commit_thread_await_locked - wait until a commit that begins from now on has ended. If another
 * program locks the dataset, wait for a limited time. */
static int commit_thread_await_locked(struct tree *t, struct err *e)
{
	uint64_t mine = ++t->wanted;
	int64_t until = clock_ms() + WAIT_MS;

	t->busy_times = 0;
	(void)pthread_cond_signal(&t->wake);
	while (t->done < mine && !t->stopping) {
		if (t->busy_times && clock_ms() > until)
			break;
		(void)pthread_cond_wait(&t->ended, &t->commit_lock);
	}
	if (t->last_rc && e)
		*e = t->last;
	return t->last_rc;
}

/* await_room_locked - until commits have made room, or one has failed. */
static int await_room_locked(struct tree *t, struct err *e)
{
	int64_t until = clock_ms() + WAIT_MS;

	while (too_much(t) && !t->stopping) {
		uint64_t attempts = t->attempts;

		if (!t->committing)
			t->wanted++;
		(void)pthread_cond_signal(&t->wake);
		while (t->attempts == attempts && !t->stopping)
			(void)pthread_cond_wait(&t->ended, &t->commit_lock);
		if (t->last_rc && (t->last_rc != -EAGAIN || clock_ms() > until)) {
			if (e)
				*e = t->last;
			return t->last_rc;
		}
	}
	return 0;
}

int commits_now(struct tree *t, struct err *e)
{
	LOCK_SCOPE(&t->commit_lock);

	return commit_thread_await_locked(t, e);
}

/* poll_now - without any lock. */
static void poll_now(struct tree *t)
{
	uint64_t mine, attempts;
	bool busy;

	commit_thread_lock(t);
	busy = t->committing;
	attempts = t->attempts;
	unlock(t);
	if (busy || snapshots_check(t->snapshots, NULL) != -ESTALE)
		return;
	LOCK_SCOPE(&t->commit_lock);
	mine = t->renewed + 1;
	/* what the check saw may be the change by a commit since */
	if (!t->committing && t->attempts == attempts && !t->stopping) {
		t->renew = true;
		(void)pthread_cond_signal(&t->wake);
		while (t->renewed < mine && !t->stopping)
			(void)pthread_cond_wait(&t->ended, &t->commit_lock);
	}
}

int commits_room(struct tree *t, struct err *e)
{
	int rc = 0;

	if (atomic_load(&t->stale))
		return commit_thread_stale(t, e);
	/* a change by another program before anything was staged is no reason to reject writes
	 * later */
	if (pins_only(t))
		poll_now(t);
	if (!too_much(t))
		return 0;
	commit_thread_lock(t);
	rc = await_room_locked(t, e);
	unlock(t);
	if (!rc || rc == -ENOSPC || rc == -EDQUOT || rc == -ESTALE)
		return rc;
	return err_wrap(e, -EIO, "too many pending writes");
}

void commits_note(struct tree *t)
{
	bool much = enough(t);

	LOCK_SCOPE(&t->commit_lock);
	/* a thread that already waits for a pause in writing finds the new time when it wakes up */
	if (much || !t->fresh_records)
		(void)pthread_cond_signal(&t->wake);
	t->fresh_records = true;
	t->written_ms = clock_ms();
}

void commits_poll(struct tree *t)
{
	int64_t now = clock_ms(), last = atomic_load(&t->polled_ms);

	if (now - last >= POLL_MS && !atomic_load(&t->stale) &&
	    atomic_compare_exchange_strong(&t->polled_ms, &last, now))
		poll_now(t);
}

/* ---- the end ---- */

bool tree_rw_passing(const char *key)
{
	const char *name = store_key_name(key);
	size_t n = strlen(name);

	return (n > 8 && strcmp(name + n - 8, ".partial") == 0) ||
	       strncmp(name, "__atomic", 8) == 0;
}

/* waiting - pending writes that no commit could put into the dataset. */
struct waiting {
	struct tree *t;
	size_t pins;         /* metadata files that the dataset has, except for lengths */
	struct buf names;
	size_t n;            /* files whose loss a user may notice */
	size_t passing;      /* temporary files that a writer did not rename, or was not allowed
			      * to */
	size_t dirs, others; /* directories; removals without effect */
	struct buf kept;     /* keys of the files and directories, each with a NUL */
};

static bool wait_entry(void *arg, const char *key, const struct stage_entry *x)
{
	struct waiting *w = arg;

	if (x->kind == STAGE_DIR) {
		w->dirs++;
	} else if (x->kind != STAGE_DATA && x->kind != STAGE_ALIAS) {
		w->others++;
		return true;
	} else if (pins_have(w->t, key)) {
		w->pins++;
		return true;
	} else if (tree_rw_passing(key)) {
		w->passing++;
		return true;
	} else if (w->n++ < 5) {
		buf_printf(&w->names, "%s'%.60s'", w->n > 1 ? ", " : "", key);
	}
	buf_put(&w->kept, key, strlen(key) + 1);
	return true;
}

/* commit_thread_let_go - no writer is left: temporary files will never be renamed, and a dataset
 * cannot hold empty directories. Other pending writes stay. */
static int commit_thread_let_go(struct tree *t, const struct waiting *w, struct err *e)
{
	if (!buf_ok(&w->kept))
		return err_nomem(e);
	log_info("%zu temporary files and %zu directories are discarded with the mount",
		 w->passing, w->n > 0 ? 0 : w->dirs);
	return stage_drop(t->stage, w->n > 0 ? &w->kept : NULL, e);
}

/* all_in - whether the dataset has all confirmed data now. */
static int all_in(struct tree *t, bool last, struct err *e)
{
	struct waiting w = {
		.t = t, .names = buf_of(1024), .kept = buf_of(SIZE_MAX / 2)};
	int rc = stage_each(t->stage, UINT64_MAX, wait_entry, &w);

	if (rc)
		rc = err_set(e, rc, "the pending writes in '%s' cannot be listed", t->o.dir);
	last = last || !(w.passing || w.dirs || w.n); /* pins go with this mount of it, too */
	if (!rc && last && !w.others && (w.passing || w.pins || (w.dirs && !w.n)))
		rc = commit_thread_let_go(t, &w, e);
	buf_putc(&w.names, '\0');
	if (!rc && w.n)
		rc = err_set(e, -EIO,
			     "not all written files belong to the dataset: %zu files are kept "
			     "in '%s': %s%s",
			     w.n, t->o.dir, (const char *)w.names.data, w.n > 5 ? " ..." : "");
	buf_release(&w.names);
	buf_release(&w.kept);
	return rc;
}

int commits_stop(struct tree *t, bool finish, bool last, struct err *e)
{
	int rc = 0;

	if (!t->started)
		return 0;
	commit_thread_lock(t);
	if (finish)
		rc = commit_thread_await_locked(t, e);
	if (rc == -EAGAIN)
		rc = err_wrap(e, rc, "not committed, pending writes are kept in '%s'",
			      t->o.dir);
	t->stopping = true;
	(void)pthread_cond_broadcast(&t->wake);
	(void)pthread_cond_broadcast(&t->ended);
	unlock(t);
	(void)pthread_join(t->thread, NULL);
	t->started = false;
	if (finish && last && t->rootless && rc)
		rc = root_drop_removals(t, e);
	if (finish && !rc)
		rc = all_in(t, last, e);
	if (finish && stage_sync(t->stage, NULL) < 0)
		log_warn("pending writes in '%s' may not survive a loss of power", t->o.dir);
	return rc;
}
