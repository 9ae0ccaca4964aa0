/* SPDX-License-Identifier: BSD-3-Clause */
/* epoch.c - epochs of a source and the thread that watches its file or directory.
 *
 * Only the watcher changes the current epoch. It checks the path when inotify reports an event,
 * when a request found that the source changed, and once a second, because network filesystems
 * report no events. If the source is a directory, the source itself is polled, because only it
 * knows which of its files matter; while it cannot be opened, the watcher tries to open it every
 * few seconds. The watcher never waits for a request that may wait for it: a request waits only in
 * the states CHANGED and OPENING, and holds no epoch then.
 *
 * A request in the current epoch takes no lock: it counts itself, and then checks that the epoch is
 * still the current one. The watcher withdraws the epoch first and reads the counts then. So either
 * the request sees the withdrawal, or the watcher sees the request. */
#include "fusefs/ops/epoch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>

#define LOG_COMPONENT LOG_SOURCE
#include "base/core/clock.h"
#include "base/observe/log.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "base/os/thread.h"

enum {
	POLL_MS = 1000,     /* between two checks of the file */
	SETTLE_MS = 50,     /* a file is opened after it did not change for this time */
	SETTLE_ROUNDS = 40, /* checks before it is opened even if it still changes */
	TREE_POLL_MS = 200, /* shortest time between two polls of a directory */
	RETRY_MS = 1000,  /* until a failure that may be transient is tried again */
	RETRY_TIMES = 10, /* or the time that opening took, times this, if that is more */
	COUNTS = 16,      /* threads with a counter of their own; others share them */
	OPEN_ROUNDS = 3,  /* fewest further attempts at a file that changes meanwhile ... */
	/* ... and the time for them; longest wait of a request for a new epoch */
	WAIT_SECONDS = 10,
};

enum epoch_state {
	CURRENT, /* `now` is served */
	CHANGED, /* the file changed; `now` ends with its last request */
	OPENING, /* no epoch; the file is being opened */
	BROKEN,  /* no epoch; the file cannot be opened in its present state */
};

/* epoch_count - requests that hold an epoch, on one of the two sides. Only the sum of all counts
 * means something, since a request may end in another thread. */
struct epoch_count {
	_Alignas(64) _Atomic int64_t n[2];
};

struct epochs {
	const char *path;
	view_open_fn *open;
	void *open_arg;
	epochs_changed_fn *changed;
	void *changed_arg;

	struct epoch_count counts[COUNTS];
	/* `now`, with its side in the lowest bit, in the state CURRENT; else 0 */
	_Alignas(64) _Atomic uintptr_t current;

	pthread_mutex_t lock;
	pthread_cond_t moved;    /* state changed, or a request of an epoch that ends has ended */
	enum epoch_state state;  /* lock */
	struct epoch *now;       /* lock; NULL in OPENING and BROKEN */
	struct epoch *past;      /* lock; the previous epoch, until a new one is opened */
	bool telling;            /* lock: the kernel is being notified; no request may wait */
	bool stopping;           /* lock: the watcher ends, and no source is opened any more */
	struct stat last;        /* lock: stat of the source when last opened */
	_Atomic bool used;       /* a request came since the last check */

	/* References that the kernel holds to inodes of epochs whose low 10 bits are the index. */
	_Atomic int64_t reported[EPOCHS_EPOCHS];

	/* Set before the watcher starts. Away from `used`, because compilers access neighbours
	 * together. */
	int64_t remote_ms; /* between two checks of a remote source; 0: never */
	bool remote;
	bool polled;

	pthread_mutex_t stop_lock; /* taken before lock */
	bool started;              /* stop_lock */
	pthread_t thread;          /* stop_lock */
	int quit_fd, poke_fd, watch_fd;

	/* The watcher's own. */
	struct stat seen; /* stat of the file at the last attempt to open it */
	bool seen_ok;     /* false: that stat failed */
	bool retry;       /* a writer closed the file: BROKEN may have ended */
	bool no_fault;    /* BROKEN by an error that says nothing about the file */
	int dir_wd, file_wd;
	/* time of the last poll of a directory, or of the last failure to open it */
	int64_t tree_ms;
	int64_t retry_ms; /* delay before it is opened again */
	uint64_t next_number;
	struct buf old;             /* names below the root in the last good epoch: buf_next */
	char failure[ERR_TEXT_MAX]; /* the last error that was logged, "" if there is none */
};

/* epoch_same_file - compare two stats of the path. For a directory only its identity counts: a stat
 * does not show changes of its contents. */
static bool epoch_same_file(const struct stat *a, const struct stat *b)
{
	if (a->st_dev != b->st_dev || a->st_ino != b->st_ino)
		return false;
	return (S_ISDIR(a->st_mode) && S_ISDIR(b->st_mode)) ||
	       (a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
		a->st_mtim.tv_nsec == b->st_mtim.tv_nsec);
}

static bool collect_name(void *arg, const char *name, uint64_t id NZ_UNUSED,
			 bool is_dir NZ_UNUSED, const struct view_attr *attr NZ_UNUSED,
			 uint64_t next NZ_UNUSED)
{
	buf_put(arg, name, strlen(name) + 1);
	return buf_ok(arg);
}

/* epoch_names_of - collect the names in the root directory of an epoch, and those that programs
 * probe for. If memory is short, names are missing and the kernel keeps what it caches; that is
 * logged. */
static void epoch_names_of(const struct epoch *ep, struct buf *ret)
{
	static const char always[] = ".zgroup\0.zattrs\0.zmetadata\0.zarray\0zarr.json";
	int rc;

	buf_clear(ret);
	buf_put(ret, always, sizeof(always));
	rc = ep->view->ops->list(ep->view, VIEW_ROOT, 0, false, collect_name, ret, NULL);
	if (rc < 0 || !buf_ok(ret))
		log_warn("the list of the root directory is incomplete: remount to see the "
			 "changed source");
}

static void close_epoch(struct epoch *ep)
{
	if (!ep)
		return;
	view_close(ep->view);
	free(ep);
}

/* next_number - number of the next epoch, whose inode numbers the kernel does not hold yet. */
static int next_number(const struct epochs *l, uint64_t *ret, struct err *e)
{
	for (uint64_t n = l->next_number; n < l->next_number + EPOCHS_EPOCHS; n++)
		if (atomic_load(&l->reported[n % EPOCHS_EPOCHS]) <= 0) {
			*ret = n;
			return 0;
		}
	return err_set(e, -EMFILE,
		       "files of %d older states of '%s' are still open: close some of them",
		       EPOCHS_EPOCHS, l->path);
}

static int open_epoch(struct epochs *l, struct epoch **ret, struct err *e)
{
	struct epoch *ep = alloc_array(1, sizeof(*ep));
	int rc;

	if (!ep)
		return err_nomem(e);
	rc = next_number(l, &ep->number, e);
	rc = rc ? rc : l->open(l->open_arg, &ep->view, e);
	if (rc < 0) {
		free(ep);
		return rc;
	}
	l->next_number = ep->number + 1;
	*ret = ep;
	return 0;
}

/* Requests. */

/* epoch_wait_locked - wait until there is an epoch, or opening one has failed. */
static void epoch_wait_locked(struct epochs *l)
{
	struct timespec until;

	if (l->state == CURRENT || l->state == BROKEN)
		return;
	until = clock_after(WAIT_SECONDS * (int64_t)1000000000);
	while ((l->state == CHANGED || l->state == OPENING) && !l->telling && !l->stopping)
		if (pthread_cond_timedwait(&l->moved, &l->lock, &until) != 0)
			break;
}

static bool epoch_belongs(const struct epoch *ep, uint64_t ino)
{
	return ino == EPOCHS_ROOT || ino >> 54 == ep->number % EPOCHS_EPOCHS;
}

/* count_of - the counters of this thread. */
static _Atomic int64_t *count_of(struct epochs *l)
{
	static _Atomic unsigned threads;
	static _Thread_local unsigned own; /* 1 + its index */

	if (!own)
		own = 1 + atomic_fetch_add(&threads, 1) % COUNTS;
	return l->counts[own - 1].n;
}

/* epoch_leave - a request that counted itself on a side ends. */
static void epoch_leave(struct epochs *l, unsigned side)
{
	uintptr_t current;

	atomic_fetch_sub(&count_of(l)[side], 1);
	current = atomic_load(&l->current);
	if (current && (current & 1) == side)
		return;
	LOCK_SCOPE(&l->lock); /* the watcher may wait for it */
	(void)pthread_cond_broadcast(&l->moved);
}

/* epoch_requests - requests that hold an epoch that no further request gets. */
static int64_t epoch_requests(struct epochs *l, const struct epoch *ep)
{
	int64_t sum = 0;

	for (size_t i = 0; i < COUNTS; i++)
		sum += atomic_load(&l->counts[i].n[ep->side]);
	return sum;
}

/* take_current - the current epoch, if the inode belongs to it; else NULL. */
static struct epoch *take_current(struct epochs *l, uint64_t ino)
{
	uintptr_t current = atomic_load(&l->current);
	struct epoch *ep = (struct epoch *)(current & ~(uintptr_t)1);

	if (!atomic_load_explicit(&l->used, memory_order_relaxed))
		atomic_store(&l->used, true);
	if (!current)
		return NULL;
	atomic_fetch_add(&count_of(l)[current & 1], 1);
	if (atomic_load(&l->current) == current && epoch_belongs(ep, ino))
		return ep;
	epoch_leave(l, current & 1);
	return NULL;
}

int epoch_acquire_stale(struct epochs *l, uint64_t ino, struct epoch **ret, bool *past,
			struct err *e)
{
	struct epoch *ep = take_current(l, ino);

	if (past)
		*past = false;
	*ret = ep;
	if (ep)
		return 0;
	LOCK_SCOPE(&l->lock);
	if (ino == EPOCHS_ROOT)
		epoch_wait_locked(l);
	if (l->state == CURRENT && epoch_belongs(l->now, ino))
		ep = l->now;
	else if (past && l->past && l->state != CURRENT && epoch_belongs(l->past, ino) &&
		 (l->state == BROKEN || ino == EPOCHS_ROOT))
		ep = l->past;
	else if (ino != EPOCHS_ROOT && l->state == BROKEN && l->past &&
		 epoch_belongs(l->past, ino))
		return err_set(e, -EIO, "'%s' changed and cannot be opened", l->path);
	else if (ino != EPOCHS_ROOT)
		return err_set(e, -ESTALE, "'%s' changed: open the path again", l->path);
	else if (l->state == CHANGED)
		return err_set(e, -ESTALE, "'%s' changed", l->path);
	else
		return err_set(e, -EIO, "'%s' changed and is not open", l->path);
	atomic_fetch_add(&count_of(l)[ep->side], 1);
	*ret = ep;
	if (past)
		*past = ep == l->past;
	return 0;
}

int epoch_acquire(struct epochs *l, uint64_t ino, struct epoch **ret, struct err *e)
{
	return epoch_acquire_stale(l, ino, ret, NULL, e);
}

void epoch_release(struct epochs *l, struct epoch *ep)
{
	epoch_leave(l, ep->side);
}

/* become_locked - change the state. */
static void become_locked(struct epochs *l, enum epoch_state state)
{
	l->state = state;
	atomic_store(&l->current, state == CURRENT ? (uintptr_t)l->now | l->now->side : 0);
	(void)pthread_cond_broadcast(&l->moved);
}

void epochs_reported(struct epochs *l, const struct epoch *ep, int64_t n)
{
	if (!ep->view->follows)
		atomic_fetch_add(&l->reported[ep->number % EPOCHS_EPOCHS], n);
}

void epochs_forgotten(struct epochs *l, uint64_t ino, uint64_t n)
{
	if (ino != EPOCHS_ROOT)
		atomic_fetch_sub(&l->reported[ino >> 54], (int64_t)n);
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the watcher is signalled already */
}

int epoch_result(struct epochs *l, const struct epoch *ep, int rc, struct err *e)
{
	struct source *s = ep->view->source;
	bool mine;

	if (ep->view->follows || rc == 0 || rc == -EINTR)
		return rc;
	if (rc != -ESTALE && (!s || source_check(s, e) == 0))
		return rc;
	(void)pthread_mutex_lock(&l->lock);
	mine = l->state == CURRENT && l->now == ep;
	if (mine)
		become_locked(l, CHANGED);
	(void)pthread_mutex_unlock(&l->lock);
	if (mine)
		signal_fd(l->poke_fd);
	return -ESTALE;
}

const struct epoch *epochs_first(const struct epochs *l)
{
	return l->now;
}

bool epochs_broken(struct epochs *l, struct stat *ret)
{
	LOCK_SCOPE(&l->lock);

	*ret = l->last;
	return l->state == BROKEN;
}

/* The watcher. */

static void set_state(struct epochs *l, enum epoch_state state)
{
	LOCK_SCOPE(&l->lock);

	become_locked(l, state);
}

/* quit_within - wait for ms milliseconds; true if the watcher has to end. */
static bool quit_within(const struct epochs *l, int ms)
{
	struct pollfd p = {.fd = l->quit_fd, .events = POLLIN};

	return poll(&p, 1, ms) > 0;
}

/* watch_file - watch the inode behind the path, which may have changed. */
static void watch_file(struct epochs *l)
{
	if (l->watch_fd < 0 || l->remote)
		return;
	if (l->file_wd >= 0)
		(void)inotify_rm_watch(l->watch_fd,
				       l->file_wd); /* fails if the inode does not exist any more */
	/* a directory reports changes of its own entries only; they are a hint, not a proof */
	l->file_wd = inotify_add_watch(l->watch_fd, l->path,
				       IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_DELETE_SELF |
					       IN_MOVE_SELF | IN_CREATE | IN_DELETE |
					       IN_MOVED_FROM | IN_MOVED_TO);
}

static void watch_dir(struct epochs *l)
{
	auto_free char *dir = strdup(l->path);
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (l->remote || l->watch_fd < 0 || !slash)
		return;
	slash[slash == dir] = '\0';
	l->dir_wd = inotify_add_watch(l->watch_fd, dir,
				      IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
					      IN_CLOSE_WRITE | IN_ONLYDIR);
}

/* drain_events - read inotify's events; notes if a writer closed the file. */
static void drain_events(struct epochs *l)
{
	_Alignas(struct inotify_event) char buf[4096];
	const char *base = strrchr(l->path, '/');
	struct inotify_event ev;
	ssize_t n;

	base = base ? base + 1 : l->path;
	while ((n = read(l->watch_fd, buf, sizeof(buf))) > 0) {
		for (size_t at = 0; at + sizeof(ev) <= (size_t)n; at += sizeof(ev) + ev.len) {
			const char *name = buf + at + sizeof(ev);

			memcpy(&ev, buf + at, sizeof(ev));
			if (ev.wd != l->dir_wd || !ev.len || strncmp(name, base, ev.len) == 0)
				l->retry |= (ev.mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0;
		}
	}
}

/* wait_event - returns false if the watcher has to end. */
static bool wait_event(struct epochs *l)
{
	struct pollfd p[] = {{.fd = l->quit_fd, .events = POLLIN},
			     {.fd = l->poke_fd, .events = POLLIN},
			     {.fd = l->watch_fd, .events = POLLIN}};
	uint64_t n;

	if (poll(p, ARRAY_LEN(p), POLL_MS) < 0)
		return errno == EINTR;
	if (p[0].revents)
		return false;
	if (p[1].revents && read(l->poke_fd, &n, sizeof(n)) < 0)
		return true;
	if (p[2].revents)
		drain_events(l);
	return true;
}

/* epoch_look - stat the path; true if the result differs from the last one. A remote source is
 * polled instead. */
static bool epoch_look(const struct epochs *l, struct stat *st, bool *ok)
{
	if (l->remote || l->polled) {
		*st = l->seen;
		*ok = true;
		return false;
	}
	*ok = stat(l->path, st) == 0;
	return *ok != l->seen_ok || (*ok && !epoch_same_file(st, &l->seen));
}

/* epoch_settle - wait until the file seems to have no writer. Leaves the last stat in seen. Returns
 * false if the watcher has to end. */
static bool epoch_settle(struct epochs *l)
{
	struct stat st;
	bool ok;

	l->seen_ok = l->remote || l->polled || stat(l->path, &l->seen) == 0;
	for (int i = 0; i < SETTLE_ROUNDS; i++) {
		if (quit_within(l, SETTLE_MS))
			return false;
		if (!epoch_look(l, &st, &ok))
			return true;
		l->seen = st;
		l->seen_ok = ok;
	}
	return true;
}

/* epoch_retire - withdraw the current epoch from new requests and wait for the running ones. It
 * stays as the past epoch, for names, until a new one is opened. */
static void epoch_retire(struct epochs *l)
{
	struct epoch *ep;

	(void)pthread_mutex_lock(&l->lock);
	ep = l->now;
	if (ep)
		become_locked(l, CHANGED);
	(void)pthread_mutex_unlock(&l->lock);
	if (!ep)
		return;
	epoch_names_of(ep, &l->old);
	(void)pthread_mutex_lock(&l->lock);
	while (epoch_requests(l, ep) > 0)
		(void)pthread_cond_wait(&l->moved, &l->lock);
	l->past = ep;
	l->now = NULL;
	become_locked(l, OPENING);
	(void)pthread_mutex_unlock(&l->lock);
}

/* close_past - close the past epoch after its last request about names was answered. */
static void close_past(struct epochs *l)
{
	struct epoch *ep;

	(void)pthread_mutex_lock(&l->lock);
	ep = l->past;
	while (ep && epoch_requests(l, ep) > 0)
		(void)pthread_cond_wait(&l->moved, &l->lock);
	l->past = NULL;
	(void)pthread_mutex_unlock(&l->lock);
	close_epoch(ep);
}

static void set_telling(struct epochs *l, bool telling)
{
	LOCK_SCOPE(&l->lock);

	l->telling = telling;
	(void)pthread_cond_broadcast(&l->moved);
}

static void epoch_tell(struct epochs *l, const struct buf *names)
{
	set_telling(l, true);
	l->changed(l->changed_arg, names);
	set_telling(l, false);
}

static void epoch_opened(struct epochs *l, struct epoch *ep)
{
	auto_buf new = buf_of(SIZE_MAX);

	l->seen = ep->view->source->ds.st;
	l->seen_ok = true;
	l->failure[0] = '\0';
	epoch_names_of(ep, &new);
	(void)pthread_mutex_lock(&l->lock);
	l->now = ep;
	l->last = l->seen;
	ep->side = l->past ? !l->past->side : 0;
	become_locked(l, CURRENT);
	(void)pthread_mutex_unlock(&l->lock);
	log_warn("'%s' changed: opened again", l->path);
	close_past(l);
	epoch_tell(l, &l->old);
	epoch_tell(l, &new);
}

static void not_opened(struct epochs *l, int rc, const struct err *e)
{
	bool again = strcmp(l->failure, e->msg) == 0;

	l->no_fault = rc != -EBADMSG && rc != -EOPNOTSUPP;

	set_state(l, BROKEN);
	l->tree_ms = clock_ms();
	if (!again)
		log_error("the source changed and cannot be opened: %s", e->msg);
	memcpy(l->failure, e->msg, sizeof(l->failure));
	if (!again)
		epoch_tell(l, &l->old); /* the kernel caches no answer that it gets meanwhile */
}

/* open_settled - open the file in its present state: *ret is new, or NULL with the reason in
 * *ret_rc and *e. If the file changed meanwhile, a failure says nothing about it. Returns false if
 * the watcher has to end. */
static bool open_settled(struct epochs *l, struct epoch **ret, int *ret_rc, struct err *e)
{
	const int64_t end = clock_ms() + WAIT_SECONDS * 1000;
	struct stat st;
	bool ok;

	for (int i = 0;; i++) {
		int64_t start;

		if (!epoch_settle(l))
			return false;
		*e = (struct err)ERR_INIT;
		start = clock_ms();
		*ret_rc = open_epoch(l, ret, e);
		if (*ret_rc == 0)
			return true;
		*ret = NULL;
		l->retry_ms = RETRY_TIMES * (clock_ms() - start);
		if (l->retry_ms < RETRY_MS)
			l->retry_ms = RETRY_MS;
		if ((i >= OPEN_ROUNDS && clock_ms() >= end) || !epoch_look(l, &st, &ok))
			return true;
	}
}

static void reload(struct epochs *l)
{
	struct epoch *ep = NULL;
	struct err e = ERR_INIT;
	int rc = 0;

	epoch_retire(l);
	set_state(l, OPENING);
	l->retry = false;
	if (!open_settled(l, &ep, &rc, &e)) {
		set_state(l, BROKEN);
		return;
	}
	watch_file(l);
	if (ep)
		epoch_opened(l, ep);
	else
		not_opened(l, rc, &e);
}

/* may_ask - true if it is time to poll the source itself: a directory, a remote source, or a file
 * that could not be opened for lack of descriptors, for example, the end of which no event
 * reports. */
static bool may_ask(struct epochs *l, enum epoch_state state, int64_t now)
{
	int64_t every = state == BROKEN ? l->retry_ms : l->remote ? l->remote_ms : TREE_POLL_MS;
	bool dir = l->seen_ok && S_ISDIR(l->seen.st_mode);

	if (now - l->tree_ms < every)
		return false;
	if (l->polled)
		return true;
	if (!l->remote && (dir || state != BROKEN))
		return dir;
	if (l->remote ? !l->remote_ms && state != BROKEN : !l->no_fault)
		return false;
	return atomic_exchange(&l->used, false);
}

/* tree_changed - true if a source has to be opened again: a directory or remote source reports a
 * change, or a failed opening is due for another attempt. Only the watcher replaces `now`, so that
 * it needs no lock here. */
static bool tree_changed(struct epochs *l, enum epoch_state state)
{
	int64_t now = clock_ms();

	if (!may_ask(l, state, now))
		return false;
	l->tree_ms = now;
	return state == BROKEN ||
	       (state == CURRENT && source_poll(l->now->view->source, NULL) == -ESTALE);
}

static bool needs_reload(struct epochs *l)
{
	struct stat st;
	bool ok, changed = epoch_look(l, &st, &ok);
	enum epoch_state state;

	(void)pthread_mutex_lock(&l->lock);
	state = l->state;
	(void)pthread_mutex_unlock(&l->lock);
	changed |=
		state == CHANGED || (state == BROKEN && l->retry && !S_ISDIR(l->seen.st_mode));
	l->retry = false;
	return changed || tree_changed(l, state);
}

static void *epoch_watch(void *arg)
{
	struct epochs *l = arg;

	while (wait_event(l))
		if (needs_reload(l))
			reload(l);
	return NULL;
}

int epochs_watch(struct epochs *l, epochs_changed_fn *changed, void *arg, struct err *e)
{
	LOCK_SCOPE(&l->stop_lock);
	int rc;

	l->changed = changed;
	l->changed_arg = arg;
	/* without inotify: a check every second */
	l->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	watch_dir(l);
	watch_file(l);
	rc = thread_start(&l->thread, epoch_watch, l);
	l->started = rc == 0;
	return rc ? err_sys(e, rc, "start the thread that watches '%s'", l->path) : 0;
}

void epochs_remote(struct epochs *l, uint32_t seconds)
{
	l->remote = true;
	l->remote_ms = (int64_t)seconds * 1000;
	l->tree_ms = clock_ms(); /* it was opened a moment ago */
}

void epochs_polled(struct epochs *l)
{
	l->polled = true;
}

void epochs_stop(struct epochs *l)
{
	LOCK_SCOPE(&l->stop_lock);

	if (!l->started)
		return;
	(void)pthread_mutex_lock(&l->lock);
	l->stopping = true;
	(void)pthread_cond_broadcast(&l->moved); /* waiting requests would delay the end */
	(void)pthread_mutex_unlock(&l->lock);
	signal_fd(l->quit_fd);
	(void)pthread_join(l->thread, NULL);
	l->started = false;
}

/* new_empty - create epochs without a source. */
static struct epochs *new_empty(void)
{
	struct epochs *l = aligned_alloc(_Alignof(struct epochs), sizeof(*l));

	if (!l)
		return NULL;
	memset(l, 0, sizeof(*l));
	buf_init(&l->old, SIZE_MAX);
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_mutex_init(&l->stop_lock, NULL);
	cancel_cond_init(&l->moved);
	l->watch_fd = l->dir_wd = l->file_wd = -1;
	l->quit_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l->poke_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return l;
}

int epochs_new(const char *path, view_open_fn *open, void *arg, struct epochs **ret,
	       struct err *e)
{
	struct epochs *l = new_empty();
	int rc;

	if (!l)
		return err_nomem(e);
	l->path = path;
	l->open = open;
	l->open_arg = arg;
	rc = l->quit_fd < 0 || l->poke_fd < 0 ? err_sys(e, errno, "eventfd")
					      : open_epoch(l, &l->now, e);
	if (rc < 0) {
		epochs_free(l);
		return rc;
	}
	if (l->now->view->source)
		l->seen = l->last = l->now->view->source->ds.st;
	l->seen_ok = true;
	become_locked(l, CURRENT); /* no other thread has it yet */
	*ret = l;
	return 0;
}

void epochs_free(struct epochs *l)
{
	if (!l)
		return;
	epochs_stop(l);
	close_epoch(l->now);
	close_epoch(l->past);
	buf_release(&l->old);
	close_fd(&l->watch_fd);
	close_fd(&l->quit_fd);
	close_fd(&l->poke_fd);
	(void)pthread_cond_destroy(&l->moved);
	(void)pthread_mutex_destroy(&l->lock);
	(void)pthread_mutex_destroy(&l->stop_lock);
	free(l);
}
