/* SPDX-License-Identifier: BSD-3-Clause */
/* epoch.h - the source and view that are being served, and their replacement when the file or
 * directory changes.
 *
 * Every opening of the source is an epoch. A request takes the epoch that its inode number belongs
 * to and holds it until the kernel has its answer; no answer mixes two epochs:
 *   - as soon as a change is detected, no request starts in the old epoch
 *   - the file is opened again only after the last request of the old epoch has been answered, and
 *     only then is the kernel notified to forget names
 *   - the old epoch is closed when a new one is opened; until then it answers for names only
 *
 * Inode numbers: epoch (10 bits) << 54 | the view's id; the root is 1 in every epoch. The bits of
 * the epoch that do not fit are the generation of an entry. Requests carry no generation, so an
 * epoch never gets a number whose 10 bits are in an inode number that the kernel still holds: the
 * descriptor of an older epoch stays ESTALE, however often the source is opened. */
#ifndef FUSEFS_OPS_EPOCH_H
#define FUSEFS_OPS_EPOCH_H

#include "base/core/buf.h"
#include "translate/contract/view.h"

#define EPOCHS_ROOT 1      /* inode number of the root directory */
#define EPOCHS_EPOCHS 1024 /* epochs that inode numbers distinguish */

struct epochs;

/* epoch - one opening of the source. Borrowed between epoch_acquire and epoch_release. */
struct epoch {
	struct view *view;
	uint64_t number;    /* 0, 1, 2 ... */
	unsigned side;      /* 0 or 1: where its requests are counted; another than that of the
			     * epoch before it, which may still be in use */
};

/* epochs_changed_fn - the meaning of names below the root (buf_next) may have changed. Called by
 * the watcher's thread without a lock. */
typedef void epochs_changed_fn(void *arg, const struct buf *names);

/* epochs_new - open the source for the first time. path: absolute, to be watched; borrowed, as is
 * arg. Returns 0 with *ret new (epochs_free); otherwise the error of open. */
int epochs_new(const char *path, view_open_fn *open, void *arg, struct epochs **ret,
	       struct err *e) NZ_MUST_USE;
/* epochs_watch - start the thread that watches the source for changes. Call it once, and not for a
 * view that follows changes itself. */
int epochs_watch(struct epochs *l, epochs_changed_fn *changed, void *arg,
		 struct err *e) NZ_MUST_USE;
/* epochs_remote - call before epochs_watch: path is a remote address. Nothing reports its changes,
 * and a check costs network requests: the source is polled if a request used it since the last
 * check, at most once in `seconds`; 0: never. */
void epochs_remote(struct epochs *l, uint32_t seconds);
/* epochs_polled - call before epochs_watch: path is a directory that contains parts of the source.
 * Changes are detected only by polling the source itself, once a second. */
void epochs_polled(struct epochs *l);
/* epochs_stop - end that thread; does nothing if there is none. Any thread, any number of times.
 * Requests are still answered. */
void epochs_stop(struct epochs *l);
/* epochs_free - stop and close everything. No request may be running. Takes NULL. */
void epochs_free(struct epochs *l);

/* epoch_acquire - get the epoch of an inode number. For the root it waits, for a limited time,
 * while the file is being opened again. Returns 0 with *ret borrowed until epoch_release; -ESTALE:
 * the inode belongs to an older epoch; -EIO: the file changed and cannot be opened in its present
 * state. */
int epoch_acquire(struct epochs *l, uint64_t ino, struct epoch **ret,
		  struct err *e) NZ_MUST_USE;
/* epoch_acquire_stale - like epoch_acquire, for requests about names and sizes only. While the
 * source cannot be opened, they are answered from the last epoch, and *ret_past is true: the kernel
 * must not cache the answer. Programs take a name that gives an error for an absent one, and absent
 * chunks are fill values. Reading still fails. */
int epoch_acquire_stale(struct epochs *l, uint64_t ino, struct epoch **ret, bool *ret_past,
			struct err *e) NZ_MUST_USE;
/* epoch_release - call after the kernel has the answer. */
void epoch_release(struct epochs *l, struct epoch *ep);
/* epoch_result - what a request in the current epoch answers after rc. If the source changed, that
 * explains every error: -ESTALE, with the message of source_check, and the watcher checks at once.
 * Views that follow have checked themselves, and -EINTR and success are returned as they are. */
int epoch_result(struct epochs *l, const struct epoch *ep, int rc, struct err *e);

/* epochs_reported - count n entries of ep that the kernel gets (before the reply), or did not get
 * (-n). epochs_forgotten - the kernel dropped n references to an inode. For views that do not
 * follow. */
void epochs_reported(struct epochs *l, const struct epoch *ep, int64_t n);
void epochs_forgotten(struct epochs *l, uint64_t ino, uint64_t n);

/* epochs_first - the epoch that epochs_new opened, for use before requests. Borrowed. */
const struct epoch *epochs_first(const struct epochs *l);
/* epochs_broken - true if the source cannot be opened in its present state; *ret: its stat when it
 * was last open. */
bool epochs_broken(struct epochs *l, struct stat *ret);

/* live_ino - inode number of a view's id. live_id - the reverse. */
static inline uint64_t live_ino(const struct epoch *ep, uint64_t id)
{
	return id == VIEW_ROOT ? EPOCHS_ROOT : (ep->number % EPOCHS_EPOCHS) << 54 | id;
}

static inline uint64_t live_id(uint64_t ino)
{
	return ino == EPOCHS_ROOT ? VIEW_ROOT : ino & (VIEW_ID_LIMIT - 1);
}

#endif
