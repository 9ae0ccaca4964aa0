/* SPDX-License-Identifier: BSD-3-Clause */
/* epoch.h - the source and view that are being served now, and their replacement when the file or
 * directory changes.
 *
 * Every opening of the source is an epoch. A request takes the epoch that its inode number
 * belongs to and holds it until the kernel has its answer; nothing of two epochs is ever mixed:
 *   - as soon as a change is seen, no request starts in the old epoch
 *   - only when its last request has been answered is the file opened again, and only then is
 *     the kernel told to forget names
 *   - the old epoch is closed when there is a new one; until then it answers for names only
 *
 * Inode numbers: epoch (10 bits) << 54 | the view's id; the root is 1 in every epoch. The bits
 * of the epoch that do not fit are the generation of an entry. Requests carry no generation, so an
 * epoch never gets a number whose 10 bits are in an inode number that the kernel still holds: the
 * descriptor of an older epoch stays ESTALE, however often the source is opened. */
#ifndef FUSEFS_OPS_EPOCH_H
#define FUSEFS_OPS_EPOCH_H

#include "translate/contract/view.h"

#define EPOCHS_ROOT 1      /* inode number of the root directory */
#define EPOCHS_EPOCHS 1024 /* that an inode number tells apart */

struct epochs;

/* epoch - one opening of the source. Borrowed between epoch_acquire and epoch_release. */
struct epoch {
	struct source *source; /* NULL where the view has none */
	struct view *view;
	uint64_t number;    /* 0, 1, 2 ... */
	uint32_t requests;  /* lock: live */
};

/* epochs_open_fn - open source and view; what main wired together. */
typedef int epochs_open_fn(void *arg, struct source **ret_source, struct view **ret_view,
			   struct err *e);

/* epochs_changed_fn - the watcher's own thread says, holding no lock, that names below the root
 * (n texts) may mean something else now. */
typedef void epochs_changed_fn(void *arg, char *const *names, size_t n);

/* epochs_new - open the source for the first time. path: absolute, what is watched; borrowed, as
 * is arg. Returns 0 with *ret new (epochs_free); else what open said. */
int epochs_new(const char *path, epochs_open_fn *open, void *arg, struct epochs **ret,
	       struct err *e) NZ_MUST_USE;
/* epochs_watch - start the thread that looks for changes of the source. Once only, and not for a
 * view that follows changes by itself. */
int epochs_watch(struct epochs *l, epochs_changed_fn *changed, void *arg,
		 struct err *e) NZ_MUST_USE;
/* epochs_remote - before epochs_watch: path is an address on another machine. Nothing reports its
 * changes, and looking costs requests: the source is asked when somebody has used it since, and not
 * more often than every so many seconds; 0: never. */
void epochs_remote(struct epochs *l, uint32_t seconds);
/* epochs_polled - before epochs_watch: path is a directory in which things are that the source is
 * made of: only the source itself, asked once a second, says whether that changed. */
void epochs_polled(struct epochs *l);
/* epochs_stop - end that thread; does nothing when there is none. Any thread, any number of
 * times. Requests go on being answered. */
void epochs_stop(struct epochs *l);
/* epochs_free - stop and close everything. No request may be running. Takes NULL. */
void epochs_free(struct epochs *l);

/* epoch_acquire - the epoch of an inode number. For the root it waits, within bounds, while the
 * file is being opened again.
 * Returns 0 with *ret borrowed until epoch_release; -ESTALE the inode belongs to an older epoch;
 * -EIO the file changed and cannot be opened as it is now. */
int epoch_acquire(struct epochs *l, uint64_t ino, struct epoch **ret,
		  struct err *e) NZ_MUST_USE;
/* epoch_acquire_stale - like epoch_acquire, for requests about names and sizes alone. While the
 * source cannot be opened they are still answered from the last epoch (*ret_past is then true:
 * nothing of it may be remembered): to programs a name that gives an error is a name that is
 * absent, and absent chunks are fill values. Reading stays an error. */
int epoch_acquire_stale(struct epochs *l, uint64_t ino, struct epoch **ret, bool *ret_past,
			struct err *e) NZ_MUST_USE;
/* epoch_release - the answer is with the kernel. */
void epoch_release(struct epochs *l, struct epoch *ep);
/* epochs_invalidate - a check of this epoch's source failed: look at once. */
void epochs_invalidate(struct epochs *l, const struct epoch *ep);

/* epochs_reported - the kernel gets n entries of ep (before it has the reply), or did not get them
 * (-n). epochs_forgotten - it gave up n references to an inode. For views that do not follow. */
void epochs_reported(struct epochs *l, const struct epoch *ep, int64_t n);
void epochs_forgotten(struct epochs *l, uint64_t ino, uint64_t n);

/* epochs_first - the epoch that epochs_new opened, for the time before requests. Borrowed. */
const struct epoch *epochs_first(const struct epochs *l);
/* epochs_broken - whether the source cannot be opened as it is now; *ret: its stat when it was
 * last open. */
bool epochs_broken(struct epochs *l, struct stat *ret);

/* live_ino - inode number of a view's id; live_id - the reverse. */
static inline uint64_t live_ino(const struct epoch *ep, uint64_t id)
{
	return id == VIEW_ROOT ? EPOCHS_ROOT : (ep->number % EPOCHS_EPOCHS) << 54 | id;
}

static inline uint64_t live_id(uint64_t ino)
{
	return ino == EPOCHS_ROOT ? VIEW_ROOT : ino & (VIEW_ID_LIMIT - 1);
}

#endif
