/* SPDX-License-Identifier: BSD-3-Clause */
/* slots.c - opens datasets when they are used, and closes them when others need the room.
 *
 * A slot is CLOSED until a request needs it; that request opens it without the lock, and others
 * that need it wait. No request holds one dataset while it waits for another, so that waits for
 * room end. Errors are cached: of a damaged file permanently (a changed file gets another slot),
 * others for some seconds.
 *
 * A file is the same when it is opened again if inode, size and time are. For a Zarr store nothing
 * outside of it shows that: as long as the kernel references its ids, only its view is closed, and
 * the source, which recorded what it read, is parked. */
#include <errno.h>
#include <string.h>

#define LOG_COMPONENT LOG_SOURCE
#include "base/core/clock.h"
#include "base/observe/log.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "fusefs/mirror/slots_int.h"

enum {
	POLL_MS = 1000,  /* between two polls of an open dataset */
	RETRY_MS = 5000, /* until a dataset is opened again after an error that may be fixed */
	/* the same after a transient error; not zero, because a file may repeatedly request more
	 * memory than a process may have */
	ACCIDENT_MS = 100,
	/* upper bound on the wait of requests for descriptors or memory, since the shortage began:
	 * programs take a name that gives an error for an absent one, and absent chunks are fill
	 * values */
	PATIENCE_MS = 1000,
};

static uint64_t slot_hash(const struct mirror *m, const char *path, const char *name)
{
	return mirror_hash(m, path, strlen(path)) * 31 + mirror_hash(m, name, strlen(name));
}

static struct slot *slot_of_path(const struct mirror *m, enum name_kind kind, const char *path,
				 const char *name)
{
	uint64_t hash = slot_hash(m, path, name);

	for (struct link *l = map_first(&m->slots_by_path, hash); l; l = map_next(l)) {
		struct slot *s = CONTAINER_OF(l, struct slot, by_path);

		if (s->kind == kind && strcmp(s->path, path) == 0 &&
		    strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

static struct slot *slot_by_number(const struct mirror *m, uint32_t number)
{
	return number < m->n_slots ? m->slots[number] : NULL;
}

static void slots_take_out(struct slot **list, size_t *n, const struct slot *s)
{
	size_t i = 0;

	while (list[i] != s)
		i++;
	list[i] = list[--*n];
}

/* slot_close_view - write what was confirmed through a writable view to its dataset, and close the
 * view, but not its source. It is closed in any case: writes that could not be committed stay in
 * the state directory. */
static int slot_close_view(const struct mirror *m, struct view *v, bool last, struct err *e)
{
	int rc = v && v->write && !m->finished ? v->write->finish(v, last, e) : 0;

	if (v)
		view_close_only(v);
	return rc;
}

/* slots_shut - close the view of a slot that no request uses, and its source, unless it is parked.
 * Unlocks meanwhile: the slot is CLOSING, and in `open`, until its locks are released. e: NULL: an
 * error is logged. */
static int slots_shut(struct mirror *m, struct slot *s, bool park, struct err *e)
{
	struct source *source = s->view ? s->view->source : NULL;
	struct err why = ERR_INIT;
	const bool last = s->stale;
	int rc;

	if (park) {
		m->parked[m->n_parked++] = s;
		s->source = source;
		source = NULL;
	}
	s->state = SLOT_CLOSING;
	s->users++;
	(void)pthread_mutex_unlock(&m->lock);
	rc = slot_close_view(m, s->view, last, &why);
	source_close(source);
	if (rc < 0 && e)
		*e = why;
	else if (rc < 0)
		log_error("%s", why.msg);
	(void)pthread_mutex_lock(&m->lock);
	slots_take_out(m->open, &m->n_open, s);
	s->users--;
	s->view = NULL;
	s->state = SLOT_CLOSED;
	(void)pthread_cond_broadcast(&m->moved);
	return rc;
}

/* unpark_locked - remove the source from a parked slot. */
static struct source *unpark_locked(struct mirror *m, struct slot *s)
{
	slots_take_out(m->parked, &m->n_parked, s);
	return steal(&s->source);
}

static void slot_free(struct slot *s)
{
	free(s->path);
	free(s->name);
	free(s->error);
	free(s);
}

/* drop_locked - free a slot and its number. */
static void drop_locked(struct mirror *m, struct slot *s)
{
	m->slots[s->number] = NULL;
	m->n_shaped -= name_is_shaped(s->kind);
	slot_free(s);
}

/* slots_tidy_locked - release what a slot does not need any more: its open dataset if it is stale,
 * its parked source if the kernel does not reference it any more, and in both cases the slot
 * itself. Unlocks while it closes. Returns the error of a commit, which is logged if e is NULL. */
static int slots_tidy_locked(struct mirror *m, struct slot *s, struct err *e)
{
	struct source *source;
	int rc = 0;

	if (s->users)
		return 0;
	if (s->stale && s->state == SLOT_OPEN) {
		rc = slots_shut(m, s, false, e);
	} else if (s->source && (s->stale || !s->known)) {
		source = unpark_locked(m, s);
		s->users++;
		(void)pthread_mutex_unlock(&m->lock);
		source_close(source);
		(void)pthread_mutex_lock(&m->lock);
		s->users--;
		(void)pthread_cond_broadcast(&m->moved);
	}
	if (s->stale && !s->known && !s->users)
		drop_locked(m, s);
	return rc;
}

/* unlock_tidy - tidy a slot (NULL: none), and unlock. */
static void unlock_tidy(struct mirror *m, struct slot *s)
{
	if (s)
		(void)slots_tidy_locked(m, s, NULL);
	(void)pthread_mutex_unlock(&m->lock);
}

static void mark_stale_locked(struct mirror *m, struct slot *s)
{
	if (s->stale)
		return;
	s->stale = true;
	map_remove(&m->slots_by_path, &s->by_path);
	log_debug("'%s' changed", s->path);
}

/* Numbers. */

/* reclaim_locked - free a slot that is neither used nor referenced by the kernel. */
static bool reclaim_locked(struct mirror *m, struct slot *s)
{
	if (s->known || s->users || s->source || s->state == SLOT_OPEN)
		return false;
	mark_stale_locked(m, s);
	drop_locked(m, s);
	return true;
}

/* room_for_shape_locked - any number of names with rules can be looked up: at most SHAPED_LIMIT
 * have a slot, so that other datasets always get one. */
static int room_for_shape_locked(struct mirror *m, const char *name, struct err *e)
{
	for (size_t i = 0; m->n_shaped >= SHAPED_LIMIT && i < m->n_slots; i++) {
		const size_t at = (m->next_shaped + i) % m->n_slots;

		if (m->slots[at] && name_is_shaped(m->slots[at]->kind) &&
		    reclaim_locked(m, m->slots[at]))
			m->next_shaped = at + 1;
	}
	return m->n_shaped < SHAPED_LIMIT
		       ? 0
		       : err_set(e, -ENFILE, "'%s': %d names with a rule are in use", name,
				 SHAPED_LIMIT);
}

/* number_locked - an unused number; if all were used, one whose slot can be freed. */
static int number_locked(struct mirror *m, uint32_t *ret, struct err *e)
{
	if (m->n_slots < SLOT_LIMIT) {
		if (grow_array(&m->slots, &m->cap_slots, m->n_slots + 1, sizeof(*m->slots)) < 0)
			return err_nomem(e);
		m->slots[m->n_slots] = NULL;
		*ret = (uint32_t)m->n_slots++;
		return 0;
	}
	for (uint32_t i = 0; i < SLOT_LIMIT; i++) {
		uint32_t number = (m->next_free + i) % SLOT_LIMIT;

		if (number && (!m->slots[number] || reclaim_locked(m, m->slots[number]))) {
			m->next_free = number + 1;
			*ret = number;
			return 0;
		}
	}
	return err_set(e, -ERANGE,
		       "%u datasets were opened in this mount: unmount and mount again",
		       SLOT_LIMIT - 1);
}

static int slot_new_locked(struct mirror *m, enum name_kind kind, const char *path,
			   const char *name, const struct stat *st, struct slot **ret,
			   struct err *e)
{
	struct slot *s = alloc_array(1, sizeof(*s));
	uint32_t number = 0;
	int rc;

	if (!s)
		return err_nomem(e);
	*s = (struct slot){.kind = kind, .st = *st, .path = strdup(path), .name = strdup(name)};
	rc = s->path && s->name ? 0 : err_nomem(e);
	if (!rc && name_is_shaped(kind))
		rc = room_for_shape_locked(m, name, e);
	if (!rc)
		rc = number_locked(m, &number, e);
	if (!rc &&
	    map_add(&m->slots_by_path, &s->by_path, slot_hash(m, path, name)) < 0)
		rc = err_nomem(e); /* the number can be used again: its entry is empty */
	if (rc) {
		slot_free(s);
		return rc;
	}
	s->number = number;
	m->slots[number] = s;
	m->n_shaped += name_is_shaped(kind);
	*ret = s;
	return 0;
}

int slot_of(struct mirror *m, enum name_kind kind, const char *path, const char *name,
	    const struct stat *st, uint32_t *ret, struct err *e)
{
	struct slot *s, *old = NULL;
	int rc = 0;

	(void)pthread_mutex_lock(&m->lock);
	s = slot_of_path(m, kind, path, name);
	if (s && !slot_same(s, st)) {
		mark_stale_locked(m, s);
		s->users++; /* the new slot does not reclaim it */
		old = s;
		s = NULL;
	}
	if (!s)
		rc = slot_new_locked(m, kind, path, name, st, &s, e);
	if (!rc) {
		s->known++;
		*ret = s->number;
	}
	if (old)
		old->users--;
	unlock_tidy(m, old);
	return rc;
}

bool slot_is_at(struct mirror *m, enum name_kind kind, const char *path, const char *name,
		const struct stat *st)
{
	LOCK_SCOPE(&m->lock);
	const struct slot *s = slot_of_path(m, kind, path, name);

	return s && slot_same(s, st);
}

/* Opening. */

/* slots_oldest - the least recently used slot without users; NULL: none. */
static struct slot *slots_oldest(struct slot *const *list, size_t n)
{
	struct slot *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (!list[i]->users && (!found || list[i]->used < found->used))
			found = list[i];
	return found;
}

/* slots_retire - close a dataset; for a store that the kernel references, only its view. Unlocks
 * meanwhile; a source that was parked is not available until the view that reads it, with threads
 * of its own, is closed. */
static void slots_retire(struct mirror *m, struct slot *s)
{
	const bool rw = s->view->write, keep = S_ISDIR(s->st.st_mode) && s->known;
	const bool park = keep && !rw && grow_array(&m->parked, &m->cap_parked, m->n_parked + 1,
						    sizeof(*m->parked)) == 0;

	(void)slots_shut(m, s, park, NULL);
	/* the ids of a writable view change when it is opened again */
	if (rw || keep != park)
		mark_stale_locked(m, s);
	(void)slots_tidy_locked(m, s, NULL);
	s = m->n_parked > m->max_parked ? slots_oldest(m->parked, m->n_parked) : NULL;
	if (!s)
		return;
	mark_stale_locked(m, s);
	(void)slots_tidy_locked(m, s, NULL);
}

/* slots_all_held - true if every open dataset has open files. */
static bool slots_all_held(const struct mirror *m)
{
	for (size_t i = 0; i < m->n_open; i++)
		if (m->open[i]->state != SLOT_OPEN || m->open[i]->handles == 0)
			return false;
	return true;
}

/* slots_make_room_locked - wait until one more dataset may be opened. Unlocks while it closes
 * another. */
static void slots_make_room_locked(struct mirror *m)
{
	while (m->n_open >= m->setup->cfg->limits.open_datasets) {
		struct slot *s = slots_oldest(m->open, m->n_open);

		if (s)
			slots_retire(m, s);
		else if (!slots_all_held(m) || grow_array(&m->open, &m->cap_open, m->n_open + 1,
							  sizeof(*m->open)) < 0)
			(void)pthread_cond_wait(&m->moved, &m->lock);
		else
			return; /* a program with this many open files would wait indefinitely */
	}
}

/* slots_remember_locked - cache the error of opening a slot. */
static void slots_remember_locked(struct slot *s, const struct err *e)
{
	struct err *copy = s->error ? s->error : alloc_array(1, sizeof(*copy));

	if (copy && strcmp(copy->msg, e->msg) != 0)
		s->reported = false;
	if (copy)
		*copy = *e;
	s->error = copy; /* NULL if memory is short: tried again at once */
	s->state = copy ? SLOT_FAILED : SLOT_CLOSED;
	s->failed_ms = clock_ms();
}

/* is_accident - true for a transient error. EAGAIN: another program has the file open for
 * writing. */
static bool is_accident(int code)
{
	return err_is_transient(code) && code != -EAGAIN;
}

/* note_short_locked - record the start of a shortage of resources, judging by failures to open. */
static void note_short_locked(struct mirror *m, bool is_short)
{
	int64_t now = clock_ms();

	if (is_short && now - m->short_last_ms > 10 * PATIENCE_MS)
		m->short_ms = now;
	m->short_last_ms = is_short ? now : -10 * PATIENCE_MS;
}

/* slots_open_locked - open a CLOSED or FAILED slot; unlocks meanwhile. The caller is one of its
 * users. */
static int slots_open_locked(struct mirror *m, struct slot *s, struct err *e)
{
	struct source *parked = s->source ? unpark_locked(m, s) : NULL;
	const bool again = parked; /* whether it has changed since is unknown after an error */
	struct err why = ERR_INIT;
	struct cancel *waits;
	int rc;

	s->state = SLOT_OPENING;
	slots_make_room_locked(m);
	m->open[m->n_open++] = s;
	(void)pthread_mutex_unlock(&m->lock);
	/* waiting requests share the result: the end of the program of one of them is no reason
	 * for an error */
	waits = cancel_swap(NULL);
	rc = open_dataset(m, s, parked, &s->view, &why);
	(void)cancel_swap(waits);
	(void)pthread_mutex_lock(&m->lock);
	note_short_locked(m, is_accident(rc));
	if (!rc) {
		s->written |= s->view->write != NULL;
		s->polled_ms = clock_ms();
		s->state = SLOT_OPEN;
		(void)pthread_cond_broadcast(&m->moved);
		return 0;
	}
	(void)slots_shut(m, s, false, NULL);
	if (rc != -ESTALE && !again) {
		slots_remember_locked(s, &why);
		return rc;
	}
	mark_stale_locked(m, s);
	return slot_stale(s->path, e);
}

/* is_due_locked - true if a FAILED slot should be tried again. */
static bool is_due_locked(const struct slot *s)
{
	int code = s->error->code;
	bool for_good = S_ISREG(s->st.st_mode) &&
			(code == -EBADMSG || code == -EOPNOTSUPP || code == -ERANGE);

	return !for_good &&
	       clock_ms() - s->failed_ms >= (is_accident(code) ? ACCIDENT_MS : RETRY_MS);
}

/* pause_locked - wait for a change, for a short time at most. */
static void pause_locked(struct mirror *m)
{
	const struct timespec until = clock_after(ACCIDENT_MS * 1000000L);

	(void)pthread_cond_timedwait(&m->moved, &m->lock, &until);
}

/* may_pass_locked - wait for a short time if that may help a FAILED slot; false: it would not. */
static bool may_pass_locked(struct mirror *m, const struct slot *s)
{
	if (!is_accident(s->error->code) || clock_ms() - m->short_ms >= PATIENCE_MS)
		return false;
	pause_locked(m);
	return true;
}

/* failed_locked - the cached error; only the first request gets its text, so that it is logged
 * once. */
static int failed_locked(struct slot *s, struct err *e)
{
	int code = s->error->code;

	if (e)
		*e = (struct err){.code = code};
	if (e && !s->reported)
		*e = *s->error;
	s->reported = true;
	return code;
}

/* slots_await_locked - wait until the slot is open. The caller is one of its users. */
static int slots_await_locked(struct mirror *m, struct slot *s, struct err *e)
{
	for (;;) {
		int rc;

		if (s->stale)
			return slot_stale(s->path, e);
		switch (s->state) {
		case SLOT_OPEN:
			return 0;
		case SLOT_OPENING:
		case SLOT_CLOSING:
			(void)pthread_cond_wait(&m->moved, &m->lock);
			break;
		case SLOT_FAILED:
			if (is_due_locked(s))
				(void)slots_open_locked(m, s, e);
			else if (!may_pass_locked(m, s))
				return failed_locked(s, e);
			break;
		case SLOT_CLOSED:
			rc = slots_open_locked(m, s, e);
			if (rc && s->state == SLOT_CLOSED)
				return rc == -ESTALE ? rc : err_nomem(e);
			break;
		}
	}
}

/* poll_due_locked - true if this request has to poll for changes. */
static bool poll_due_locked(struct slot *s)
{
	int64_t now = clock_ms();

	if (now - s->polled_ms < POLL_MS)
		return false;
	s->polled_ms = now;
	return true;
}

static int make_stale(struct mirror *m, struct slot *s, struct err *e)
{
	LOCK_SCOPE(&m->lock);

	mark_stale_locked(m, s);
	return slot_stale(s->path, e);
}

int slot_get(struct mirror *m, uint32_t number, struct slot **ret, struct err *e)
{
	bool poll_it = false;
	struct slot *s;
	int rc;

	(void)pthread_mutex_lock(&m->lock);
	s = slot_by_number(m, number);
	if (!s) {
		(void)pthread_mutex_unlock(&m->lock);
		return err_set(e, -ESTALE, "no dataset has the number %u", number);
	}
	s->users++;
	rc = slots_await_locked(m, s, e);
	if (!rc) {
		s->used = ++m->clock;
		poll_it = poll_due_locked(s);
	}
	(void)pthread_mutex_unlock(&m->lock);
	/* a failure to poll is no evidence of a change */
	if (poll_it && s->view->source && source_poll(s->view->source, NULL) == -ESTALE)
		rc = make_stale(m, s, e);
	if (rc)
		slot_put(m, s, 0);
	else
		*ret = s;
	return rc;
}

void slot_put(struct mirror *m, struct slot *s, uint64_t known)
{
	(void)pthread_mutex_lock(&m->lock);
	s->known += known;
	if (--s->users == 0)
		(void)pthread_cond_broadcast(&m->moved);
	unlock_tidy(m, s);
}

int slot_map_error(struct mirror *m, struct slot *s, int rc, struct err *e)
{
	if (s->view->write)
		return rc; /* the view validates its ids itself */
	if (rc == -ESTALE || source_check(s->view->source, NULL) == -ESTALE)
		return make_stale(m, s, e);
	/* the line in the log names the file */
	if (e && (e->code == -EOPNOTSUPP || e->code == -EIO || e->code == -EBADMSG ||
		  e->code == -ERANGE))
		(void)err_wrap(e, e->code, "'%s'", s->path);
	return rc;
}

int slot_check(struct mirror *m, struct slot *s, struct err *e)
{
	int rc = s->view->write ? 0 : source_check(s->view->source, e);

	return rc == -ESTALE ? make_stale(m, s, e) : rc;
}

int slot_end(struct mirror *m, struct slot *s, int rc, struct view_attr *a, uint64_t known,
	     struct err *e)
{
	if (rc || (a && a->unknown))
		rc = slot_map_error(m, s, rc, e);
	if (!rc && a)
		mirror_show(m, s, a);
	slot_put(m, s, rc ? 0 : known);
	return rc;
}

int slot_lookup(struct mirror *m, uint32_t number, struct slot_at *ret, struct err *e)
{
	LOCK_SCOPE(&m->lock);
	const struct slot *s = slot_by_number(m, number);

	if (!s || s->stale)
		return err_set(e, -ESTALE, "no dataset has the number %u", number);
	*ret = (struct slot_at){.kind = s->kind, .st = s->st, .path = strdup(s->path)};
	return ret->path ? 0 : err_nomem(e);
}

int slot_revalidate(struct mirror *m, uint32_t number, const struct stat *st, struct err *e)
{
	struct slot *s;
	bool changed;

	(void)pthread_mutex_lock(&m->lock);
	s = slot_by_number(m, number);
	changed = !s || s->stale || !st || !slot_same(s, st);
	if (s && changed)
		mark_stale_locked(m, s);
	unlock_tidy(m, changed ? s : NULL);
	return changed ? err_set(e, -ESTALE, "dataset %u changed", number) : 0;
}

void slot_forget(struct mirror *m, uint32_t number, uint64_t count)
{
	struct slot *s;

	(void)pthread_mutex_lock(&m->lock);
	s = slot_by_number(m, number);
	if (s)
		s->known -= u64_min(s->known, count);
	unlock_tidy(m, s);
}

struct slot *slot_if_open(struct mirror *m, uint32_t number)
{
	LOCK_SCOPE(&m->lock);
	struct slot *s = slot_by_number(m, number);

	if (!s || s->state != SLOT_OPEN)
		return NULL;
	s->users++;
	return s;
}

void slot_pin(struct mirror *m, struct slot *s, uint64_t known)
{
	LOCK_SCOPE(&m->lock);

	s->known += known;
	s->handles++;
}

void slot_unpin(struct mirror *m, struct slot *s)
{
	(void)pthread_mutex_lock(&m->lock);
	s->handles--;
	(void)pthread_mutex_unlock(&m->lock);
	slot_put(m, s, 0);
}

int slot_retire(struct mirror *m, uint32_t number, struct err *e)
{
	struct slot *s;
	int rc = 0;

	(void)pthread_mutex_lock(&m->lock);
	s = slot_by_number(m, number);
	if (s && s->users > 0)
		rc = err_set(e, -EBUSY, "'%s' is in use", s->path);
	else if (s)
		mark_stale_locked(m, s);
	unlock_tidy(m, rc ? NULL : s);
	return rc;
}

/* is_below - true if a path is dir or is below it; "": true for all. */
static bool is_below(const char *path, const char *dir)
{
	const size_t len = strlen(dir);

	return strncmp(path, dir, len) == 0 && (!len || !path[len] || path[len] == '/');
}

/* written_below_locked - an open, writable dataset at path or below it. */
static struct slot *written_below_locked(const struct mirror *m, const char *path)
{
	for (size_t i = 0; i < m->n_open; i++) {
		struct slot *s = m->open[i];

		if ((s->state != SLOT_OPEN || s->view->write) && !s->stale &&
		    is_below(s->path, path))
			return s;
	}
	return NULL;
}

int slots_flush_below(struct mirror *m, const char *path, struct err *e)
{
	const int64_t until = clock_ms() + PATIENCE_MS;
	struct err unused = ERR_INIT; /* not logged if the caller has no use for it */
	struct slot *s;
	int rc = 0;

	(void)pthread_mutex_lock(&m->lock);
	while (rc == 0 && (s = written_below_locked(m, path)) != NULL) {
		/* the kernel sends a release after the program's close has returned */
		if (s->handles > 0 && clock_ms() < until) {
			pause_locked(m);
		} else if (s->handles > 0) {
			rc = err_set(e, -EBUSY, "'%s' is open, as '%s'", s->path, s->name);
		} else if (s->users > 0) {
			(void)pthread_cond_wait(&m->moved, &m->lock);
		} else {
			mark_stale_locked(m, s);
			rc = slots_tidy_locked(m, s, e ? e : &unused);
		}
	}
	(void)pthread_mutex_unlock(&m->lock);
	return rc;
}

/* next_written_locked - the open, writable dataset at path or below it with the lowest number from
 * this one on; the caller becomes one of its users. NULL: none. */
static struct slot *next_written_locked(struct mirror *m, const char *path, uint32_t number)
{
	struct slot *next = NULL;

	for (size_t i = 0; i < m->n_open; i++) {
		struct slot *s = m->open[i];

		if (s->state == SLOT_OPEN && s->view->write && s->number >= number &&
		    (!next || s->number < next->number) && is_below(s->path, path))
			next = s;
	}
	if (next)
		next->users++;
	return next;
}

bool slots_closing(const struct mirror *m, const char *path, bool below)
{
	for (size_t i = 0; i < m->n_open; i++)
		if (m->open[i]->state == SLOT_CLOSING &&
		    (below ? is_below(m->open[i]->path, path)
			   : strcmp(m->open[i]->path, path) == 0))
			return true;
	return false;
}

int slots_sync(struct mirror *m, const char *path, struct err *e)
{
	uint32_t number = 0;
	struct slot *s;
	int rc = 0;

	(void)pthread_mutex_lock(&m->lock);
	while ((s = next_written_locked(m, path, number)) != NULL) {
		struct err one = ERR_INIT;
		int r;

		(void)pthread_mutex_unlock(&m->lock);
		number = s->number + 1;
		r = s->view->write->fsyncdir(s->view, VIEW_ROOT, &one);
		if (r < 0 && rc < 0)
			log_error("'%s': %s", s->path, one.msg);
		else if (r < 0)
			rc = err_set(e, r, "'%s': %s", s->path, one.msg);
		slot_put(m, s, 0);
		(void)pthread_mutex_lock(&m->lock);
	}
	while (slots_closing(m, path, true))
		(void)pthread_cond_wait(&m->moved, &m->lock);
	(void)pthread_mutex_unlock(&m->lock);
	return rc;
}

int slots_finish(struct mirror *m, struct err *e)
{
	struct err one = ERR_INIT;
	int rc = 0;

	for (size_t i = 0; i < m->n_open; i++) {
		struct slot *s = m->open[i];
		const bool rw = s->state == SLOT_OPEN && s->view->write;
		int r = rw ? s->view->write->finish(s->view, true, &one) : 0;

		if (r < 0 && rc < 0)
			log_error("%s", e ? e->msg : "");
		if (r < 0)
			rc = err_set(e, r, "%s", one.msg);
	}
	m->finished = true;
	return rc;
}

void slots_free(struct mirror *m)
{
	for (size_t i = 0; i < m->n_slots; i++) {
		struct slot *s = m->slots[i];
		struct err e = ERR_INIT;

		if (!s)
			continue;
		if (s->view)
			s->source = s->view->source;
		if (slot_close_view(m, s->view, false, &e) < 0)
			log_error("%s", e.msg);
		source_close(s->source);
		slot_free(s);
	}
	map_free(&m->slots_by_path);
	free(m->slots);
	free(m->open);
	free(m->parked);
}
