/* SPDX-License-Identifier: BSD-3-Clause */
/* journal.h - an existing HDF5 file is changed by libhdf5, as a whole or not at all; private to
 * hdf5view.
 *
 * A file driver for libhdf5. What the library writes behind the old end of the file goes there at
 * once, as nothing refers to it yet; what it writes below goes, in pages, to a log in the state
 * directory, and is read back from there. Until the commit the file is what it was to everybody
 * else, but for bytes behind its end. h5_journal_commit makes log and tail durable, writes a
 * commit record, and then the pages to their places; what was interrupted after the record is done
 * again by hdf5_journal_recover (hdf5view.h), what was interrupted before it is taken back by it.
 *
 * One thread, in a process of its own; between h5_enter and h5_leave like all uses of libhdf5.
 * How to use it:
 *
 *	h5_journal_open(path, dir_fd, &j, e);         locks the file
 *	fapl = h5_journal_fapl(j);                    and what else it is opened with
 *	file = H5Fopen(path, H5F_ACC_RDWR, fapl);     ... H5Fclose(file); again and again
 *	h5_journal_commit(j, gate, arg, e);           when every id of the file is closed
 *	h5_journal_close(j);                          without a commit nothing has happened
 *
 * Format and protocol: docs/dev/writing/journal.md. */
#ifndef HDF5VIEW_JOURNAL_JOURNAL_H
#define HDF5VIEW_JOURNAL_JOURNAL_H

#include "base/core/err.h"

#include <hdf5.h>

struct h5_journal;

/* h5_journal_open - path: a regular file, opened for reading and writing and locked with flock as
 * libhdf5 does it (HDF5_USE_FILE_LOCKING is obeyed) until close. dir_fd: of the state directory,
 * for the log; borrowed until close. What an earlier transaction left
 * without a commit is removed.
 * Returns 0 with *ret new; -EAGAIN another program has locked it; -EBUSY a commit is there that has
 * to be finished first (hdf5_journal_recover); -EINVAL not a regular file; -EACCES ... */
int h5_journal_open(const char *path, int dir_fd, struct h5_journal **ret,
		    struct err *e) NZ_MUST_USE;

/* h5_journal_close - gives up what was not committed: a tail of the file is cut off, its times are
 * what they were. Every id of the file must be closed. Takes NULL. */
void h5_journal_close(struct h5_journal *j);

/* h5_journal_fapl - a new property list whose driver is the journal; a negative id when libhdf5
 * fails. The caller closes it. Files opened with it (whatever the name: it is the journal's file)
 * must be closed before commit and close; one at a time. */
hid_t h5_journal_fapl(struct h5_journal *j);

/* h5_journal_fd - the file, as it is on the disk: fstat it, read the old state. Borrowed. */
int h5_journal_fd(const struct h5_journal *j);

/* h5_journal_failure - libhdf5 has many words for "it failed"; this is why the driver could not
 * read or write (-ENOSPC ...), which no commit follows. 0 when it could, e is then untouched. */
int h5_journal_failure(const struct h5_journal *j, struct err *e);

/* h5_journal_changed - whether anything was written at all; a commit of nothing does nothing. */
bool h5_journal_changed(const struct h5_journal *j);

/* h5_journal_commit - what was written becomes the file, durably. gate, when not NULL, is called
 * when all is prepared, right before the commit record: from its return on bytes of the old state
 * may change. Afterwards only h5_journal_close follows.
 * Returns 0; what gate gave, -ENOSPC, -EIO ..., -ESTALE (somebody else changed the file), -EBUSY
 * (an id of the file is open): nothing has happened. When h5_journal_committed says so the commit
 * has happened nevertheless: the file may be neither old nor new until hdf5_journal_recover has
 * finished it. */
int h5_journal_commit(struct h5_journal *j, int (*gate)(void *arg, struct err *e), void *arg,
		      struct err *e) NZ_MUST_USE;

/* h5_journal_committed - the commit record is durable, or may be. */
bool h5_journal_committed(const struct h5_journal *j);

#endif
