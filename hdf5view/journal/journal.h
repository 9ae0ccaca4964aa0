/* SPDX-License-Identifier: BSD-3-Clause */
/* journal.h - lets libhdf5 change an existing HDF5 file, completely or not at all; private to
 * hdf5view.
 *
 * The journal is a file driver for libhdf5. Writes after the old end of the file go to the file at
 * once, as nothing refers to those bytes yet. Writes below the old end go, in pages, to a log in
 * the state directory, and are read back from there. Until the commit, other programs see the old
 * file, except for bytes after its end. h5_journal_commit makes log and tail durable, writes a
 * commit record, and then copies the pages to their places. After an interruption
 * hdf5_journal_recover (hdf5view.h) redoes the copying if there is a commit record, and else
 * undoes the transaction.
 *
 * One thread, in a process of its own; between h5_enter and h5_leave like all uses of libhdf5. How
 * to use it:
 *
 *	h5_journal_open(path, dir_fd, &j, e);         locks the file
 *	fapl = h5_journal_fapl(j);                    and other access properties
 *	file = H5Fopen(path, H5F_ACC_RDWR, fapl);     ... H5Fclose(file); repeatedly
 *	h5_journal_commit(j, gate, arg, e);           when every id of the file is closed
 *	h5_journal_close(j);                          without a commit nothing has changed
 *
 * Format and protocol: docs/dev/writing/journal.md. */
#ifndef HDF5VIEW_JOURNAL_JOURNAL_H
#define HDF5VIEW_JOURNAL_JOURNAL_H

#include "base/core/err.h"

#include <hdf5.h>

struct h5_journal;

/* h5_journal_open - open a transaction on a file. path: a regular file, opened for reading and
 * writing and, until close, locked with flock in the way of libhdf5 (HDF5_USE_FILE_LOCKING is
 * obeyed). dir_fd: the state directory, for the log; borrowed until close. The remains of an
 * earlier transaction without a commit are removed.
 * Returns 0 with *ret new; -EAGAIN another program has locked it; -EBUSY an unfinished commit has
 * to be completed first (hdf5_journal_recover); -EINVAL not a regular file; -EACCES ... */
int h5_journal_open(const char *path, int dir_fd, struct h5_journal **ret,
		    struct err *e) NZ_MUST_USE;

/* h5_journal_close - close the transaction. Without a commit, the tail of the file is cut off and
 * its times are restored. Every id of the file must be closed. Takes NULL. */
void h5_journal_close(struct h5_journal *j);

/* h5_journal_fapl - make a property list whose driver is the journal; the caller closes it.
 * Returns a negative id if libhdf5 fails. A file opened with it is the journal's file, whatever
 * the name. Open one at a time, and close it before commit and close. */
hid_t h5_journal_fapl(struct h5_journal *j);

/* h5_journal_fd - the descriptor of the file on the disk, for fstat and for reading the old state.
 * Borrowed. */
int h5_journal_fd(const struct h5_journal *j);

/* h5_journal_failure - the reason why the driver could not read or write (-ENOSPC ...), which
 * libhdf5 does not pass on. After a failure no commit is possible. Returns 0, with e untouched, if
 * there was none. */
int h5_journal_failure(const struct h5_journal *j, struct err *e);

/* h5_journal_changed - whether anything was written; otherwise a commit does nothing. */
bool h5_journal_changed(const struct h5_journal *j);

/* h5_journal_commit - commit all writes to the file, durably. gate, if not NULL, is called when
 * everything is prepared, right before the commit record: after it returns, bytes of the old state
 * may change. Afterwards only h5_journal_close may follow.
 * Returns 0. On an error nothing has changed: gate's error, -ENOSPC, -EIO ..., -ESTALE (another
 * program changed the file), -EBUSY (an id of the file is open). If h5_journal_committed is true,
 * the commit has happened in spite of the error: the file may be in neither state until
 * hdf5_journal_recover has completed it. */
int h5_journal_commit(struct h5_journal *j, int (*gate)(void *arg, struct err *e), void *arg,
		      struct err *e) NZ_MUST_USE;

/* h5_journal_committed - whether the commit record is durable, or may be. */
bool h5_journal_committed(const struct h5_journal *j);

#endif
