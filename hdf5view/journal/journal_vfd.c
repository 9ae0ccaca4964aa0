/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_vfd.c - the journal as a driver of libhdf5.
 *
 * The file that libhdf5 opens is only a window: all state belongs to the transaction, which
 * outlives it, because libhdf5 writes until the very end of H5Fclose, and a flush is not a commit
 * (H5Dflush and H5Gflush flush the driver, too, while the file is not consistent). */
#include "hdf5view/hdf5/library.h"
#include "hdf5view/journal/journal_int.h"

static bool journal_vfd_open(void *arg)
{
	struct h5_journal *j = arg;

	if (j->open > 0 || j->phase >= JOURNAL_COMMITTED)
		return false;
	j->open++;
	return true;
}

static void journal_vfd_close(void *arg)
{
	((struct h5_journal *)arg)->open--;
}

static uint64_t journal_vfd_size(void *arg)
{
	return ((struct h5_journal *)arg)->eof;
}

static void journal_vfd_truncate(void *arg, uint64_t size)
{
	struct h5_journal *j = arg;

	j->eof = size;
	j->shorter = j->eof != j->head.end;
}

hid_t h5_journal_fapl(struct h5_journal *j)
{
	const struct h5_vfd v = {
		.name = "nczarrfs journal",
		.number = 601,
		.arg = j,
		.fd = &j->fd,
		.open = journal_vfd_open,
		.close = journal_vfd_close,
		.size = journal_vfd_size,
		.read = journal_read,
		.write = journal_write,
		.truncate = journal_vfd_truncate,
	};

	return h5_vfd_fapl(&v);
}
