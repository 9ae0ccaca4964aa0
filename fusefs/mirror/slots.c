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

/* close_written - close a dataset that detach_locked listed if it is writable. It is closed in any
 * case; writes that could not be committed stay in its state directory. */
static int close_written(struct mirror *m, const struct opened *o, struct err *e)
{
	int rc = o->closing && !m->finished ? o->view->write->finish(o->view, o->last, e) : 0;

	if (o->view)
		o->view->ops->close(o->view);
	source_close(o->source);
	if (!o->closing)
		return rc;
	(void)pthread_mutex_lock(&m->lock);
	list_remove(&o->closing->link);
	(void)pthread_cond_broadcast(&m->moved);
	(void)pthread_mutex_unlock(&m->lock);
	free(o->closing);
	return rc;
}

static void slots_close_opened(struct mirror *m, const struct opened *o)
{
	struct err e = ERR_INIT;

	if (close_written(m, o, &e) < 0)
		log_error("%s", e.msg);
}

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

static bool is_parked(const struct slot *s)
{
	return s->state == SLOT_CLOSED && s->source;
}

static void slots_take_out(struct slot **list, size_t *n, const struct slot *s)
{
	size_t i = 0;

	while (list[i] != s)
		i++;
	list[i] = list[--*n];
}

/* detach_locked - remove the open dataset from its slot, for close_opened. */
static struct opened detach_locked(struct mirror *m, struct slot *s)
{
	struct opened o = {
		.source = s->source, .view = s->view, .closing = s->rw, .last = s->stale};

	slots_take_out(m->open, &m->n_open, s);
	if (s->rw)
		list_add(&m->closing, &s->rw->link);
	s->rw = NULL;
	s->source = NULL;
	s->view = NULL;
	s->state = SLOT_CLOSED;
	return o;
}

/* unpark_locked - remove the source from a parked slot. */
static struct source *unpark_locked(struct mirror *m, struct slot *s)
{
	struct source *source = s->source;

	slots_take_out(m->parked, &m->n_parked, s);
	s->source = NULL;
	return source;
}

static void slot_free(struct slot *s)
{
	free(s->path);
	free(s->name);
	free(s->error);
	free(s);
}

/* slots_tidy_locked - release what a slot does not need any more: its open dataset if it is stale,
 * its parked source if the kernel does not reference it any more, and in both cases the slot
 * itself. */
static struct opened slots_tidy_locked(struct mirror *m, struct slot *s)
{
	struct opened o = {0};

	if (s->users)
		return o;
	if (s->stale && s->state == SLOT_OPEN)
		o = detach_locked(m, s);
	else if (is_parked(s) && (s->stale || !s->known))
		o.source = unpark_locked(m, s);
	if (s->stale && !s->known) {
		m->slots[s->number] = NULL;
		slot_free(s);
	}
	return o;
}

/* unlock_tidy - tidy a slot (NULL: none), unlock, and close released datasets. */
static void unlock_tidy(struct mirror *m, struct slot *s)
{
	struct opened o = {0};

	if (s)
		o = slots_tidy_locked(m, s);
	(void)pthread_mutex_unlock(&m->lock);
	slots_close_opened(m, &o);
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
	if (s->known || s->users || s->source || s->state == SLOT_OPENING)
		return false;
	mark_stale_locked(m, s);
	m->slots[s->number] = NULL;
	m->n_shaped -= name_is_shaped(s->kind);
	slot_free(s);
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
	struct opened old = {0};
	struct slot *s;
	int rc = 0;

	(void)pthread_mutex_lock(&m->lock);
	s = slot_of_path(m, kind, path, name);
	if (s && !slot_same(s, st)) {
		mark_stale_locked(m, s);
		old = slots_tidy_locked(m, s);
		s = NULL;
	}
	if (!s)
		rc = slot_new_locked(m, kind, path, name, st, &s, e);
	if (!rc) {
		s->known++;
		*ret = s->number;
	}
	(void)pthread_mutex_unlock(&m->lock);
	slots_close_opened(m, &old);
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
		if (list[i]->state != SLOT_OPENING && !list[i]->users &&
		    (!found || list[i]->used < found->used))
			found = list[i];
	return found;
}

/* retire_locked - close a dataset; for a store that the kernel references, only its view. */
static struct opened retire_locked(struct mirror *m, struct slot *s)
{
	struct opened o = detach_locked(m, s);
	struct slot *parked;

	if (!S_ISDIR(s->st.st_mode) || !s->known || o.closing)
		return o;
	s->source = o.source;
	o.source = NULL;
	if (m->n_parked == m->max_parked) {
		parked = slots_oldest(m->parked, m->n_parked);
		if (!parked) { /* every parked slot is in use: nothing to evict */
			mark_stale_locked(m, s);
			o.source = s->source;
			s->source = NULL;
			return o;
		}
		mark_stale_locked(m, parked);
		o.source = slots_tidy_locked(m, parked).source;
	}
	m->parked[m->n_parked++] = s;
	return o;
}

/* slots_retire - the same, and close the result. Unlocks meanwhile; a source that was parked is not
 * available until the view that reads it, with threads of its own, is closed. */
static void slots_retire(struct mirror *m, struct slot *s)
{
	bool was_rw = s->rw;
	struct opened o = retire_locked(m, s);
	bool parked = is_parked(s) || was_rw;

	if (parked) {
		s->users++;
		s->state = SLOT_OPENING;
	}
	(void)pthread_mutex_unlock(&m->lock);
	slots_close_opened(m, &o);
	(void)pthread_mutex_lock(&m->lock);
	if (!parked)
		return;
	s->users--;
	s->state = SLOT_CLOSED;
	if (was_rw) /* its ids change when it is opened again */
		mark_stale_locked(m, s);
	(void)pthread_cond_broadcast(&m->moved);
	unlock_tidy(m, s);
	(void)pthread_mutex_lock(&m->lock);
}

/* slots_all_held - true if every open dataset has open files. */
static bool slots_all_held(const struct mirror *m)
{
	for (size_t i = 0; i < m->n_open; i++)
		if (m->open[i]->state == SLOT_OPENING || m->open[i]->handles == 0)
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

/* not_open_locked - end a failed attempt. again: it was open before, and whether it has changed
 * since is unknown. */
static int not_open_locked(struct mirror *m, struct slot *s, int rc, bool again,
			   const struct err *why, struct err *e)
{
	(void)detach_locked(m, s);
	if (rc == -ESTALE || again) {
		mark_stale_locked(m, s);
		return slot_stale(s->path, e);
	}
	slots_remember_locked(s, why);
	return rc;
}

/* list_closing - list it as detach_locked does. */
static void list_closing(struct mirror *m, const struct opened *o)
{
	LOCK_SCOPE(&m->lock);

	if (o->closing)
		list_add(&m->closing, &o->closing->link);
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
	struct opened o = {.source = is_parked(s) ? unpark_locked(m, s) : NULL};
	bool again = o.source != NULL;
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
	rc = open_dataset(m, s, &o, &why);
	(void)cancel_swap(waits);
	if (rc) {
		list_closing(m, &o);
		slots_close_opened(m, &o);
	}
	(void)pthread_mutex_lock(&m->lock);
	note_short_locked(m, is_accident(rc));
	if (rc) {
		rc = not_open_locked(m, s, rc, again, &why, e);
	} else {
		s->source = o.source;
		s->view = o.view;
		s->rw = o.closing;
		s->written |= o.closing != NULL;
		s->polled_ms = clock_ms();
		s->state = SLOT_OPEN;
	}
	(void)pthread_cond_broadcast(&m->moved);
	return rc;
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
	if (poll_it && s->source && source_poll(s->source, NULL) == -ESTALE)
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
	if (s->rw)
		return rc; /* the view validates its ids itself */
	if (rc == -ESTALE || source_check(s->source, NULL) == -ESTALE)
		return make_stale(m, s, e);
	/* the line in the log names the file */
	if (e && (e->code == -EOPNOTSUPP || e->code == -EIO || e->code == -EBADMSG ||
		  e->code == -ERANGE))
		(void)err_wrap(e, e->code, "'%s'", s->path);
	return rc;
}

int slot_check(struct mirror *m, struct slot *s, struct err *e)
{
	int rc = s->rw ? 0 : source_check(s->source, e);

	return rc == -ESTALE ? make_stale(m, s, e) : rc;
}

int slot_lookup(struct mirror *m, uint32_t number, enum name_kind *ret_kind, char **ret_path,
		struct stat *ret_st, struct err *e)
{
	LOCK_SCOPE(&m->lock);
	const struct slot *s = slot_by_number(m, number);

	if (!s || s->stale)
		return err_set(e, -ESTALE, "no dataset has the number %u", number);
	*ret_kind = s->kind;
	*ret_st = s->st;
	*ret_path = strdup(s->path);
	return *ret_path ? 0 : err_nomem(e);
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

		if ((s->rw || s->state == SLOT_OPENING) && !s->stale && is_below(s->path, path))
			return s;
	}
	return NULL;
}

int slots_flush_below(struct mirror *m, const char *path, struct err *e)
{
	const int64_t until = clock_ms() + PATIENCE_MS;
	struct opened o;
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
			o = slots_tidy_locked(m, s);
			(void)pthread_mutex_unlock(&m->lock);
			rc = close_written(m, &o, e);
			(void)pthread_mutex_lock(&m->lock);
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

		if (s->state == SLOT_OPEN && s->rw && s->number >= number &&
		    (!next || s->number < next->number) && is_below(s->path, path))
			next = s;
	}
	if (next)
		next->users++;
	return next;
}

/* is_closing_locked - true if a dataset at path or below it is being closed. */
static bool is_closing_locked(struct mirror *m, const char *path)
{
	for (struct list_link *l = m->closing.next; l != &m->closing; l = l->next)
		if (is_below(CONTAINER_OF(l, struct closing, link)->path, path))
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
	while (is_closing_locked(m, path))
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
		int r = s->rw ? s->view->write->finish(s->view, true, &one) : 0;

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
		struct opened o;

		if (!s)
			continue;
		o = (struct opened){.source = s->source, .view = s->view, .closing = s->rw};
		list_closing(m, &o);
		slots_close_opened(m, &o);
		slot_free(s);
	}
	map_free(&m->slots_by_path);
	free(m->slots);
	free(m->open);
	free(m->parked);
}
