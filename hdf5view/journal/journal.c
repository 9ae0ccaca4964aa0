/* SPDX-License-Identifier: BSD-3-Clause */
/* journal.c - one transaction on an HDF5 file. docs/dev/writing/journal.md has the order of writes
 * and syncs; do not change any of it here without that page. */
#include "hdf5view/journal/journal.h"

#include "hdf5view/journal/journal_int.h"

#include "base/os/io.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define SYNC_BYTES ((uint64_t)8 << 20) /* appended until the disk begins to write them */

static int settle_older(struct h5_journal *j, const char *path, struct err *e)
{
	struct journal_found found;
	int rc = journal_probe(j->fd, j->dir_fd, &found, e);

	if (rc < 0)
		return rc;
	if (found.state == HDF5_JOURNAL_FOREIGN)
		return err_set(e, -EBUSY, "a journal for '%s' already exists: %s", path,
			       found.why);
	if (found.state == HDF5_JOURNAL_REDO && !found.done)
		return err_set(e, -EBUSY,
			       "a commit to '%s' must be completed first: run nczarrfs recover",
			       path);
	return journal_recover_state(j->fd, j->dir_fd, &found, e);
}

static int journal_begin(struct h5_journal *j, const char *path, struct err *e)
{
	struct stat st;
	int rc;

	j->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (j->fd < 0)
		return err_sys(e, errno, "cannot open '%s' for writing", path);
	if (fstat(j->fd, &st) < 0)
		return err_sys(e, errno, "cannot stat '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%s' is not a regular file", path);
	rc = journal_lock(j->fd, path, e);
	rc = rc ? rc : settle_older(j, path, e);
	if (rc < 0)
		return rc;
	if (fstat(j->fd, &st) < 0)
		return err_sys(e, errno, "cannot stat '%s'", path);
	rc = journal_head_of(j->fd, &st, &j->head, e);
	if (rc < 0)
		return err_wrap(e, rc, "'%s'", path);
	j->times[0] = st.st_atim;
	j->times[1] = st.st_mtim;
	j->mine = st;
	j->eof = j->sync_at = j->head.end;
	j->pages.fd = j->fd;
	j->pages.end = j->head.end;
	return 0;
}

int h5_journal_open(const char *path, int dir_fd, struct h5_journal **ret, struct err *e)
{
	struct h5_journal *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return err_nomem(e);
	j->fd = j->pages.log = -1;
	j->dir_fd = dir_fd;
	rc = journal_begin(j, path, e);
	if (rc < 0) {
		h5_journal_close(j);
		return rc;
	}
	*ret = j;
	return 0;
}

int h5_journal_fd(const struct h5_journal *j)
{
	return j->fd;
}

int h5_journal_failure(const struct h5_journal *j, struct err *e)
{
	return j->why.code ? err_set(e, j->why.code, "%s", j->why.msg) : 0;
}

bool h5_journal_changed(const struct h5_journal *j)
{
	return j->phase != JOURNAL_IDLE || j->shorter;
}

bool h5_journal_committed(const struct h5_journal *j)
{
	return j->phase >= JOURNAL_COMMITTED;
}

/* ---- the log ---- */

static int make_log(struct h5_journal *j, struct err *e)
{
	uint8_t blocks[JOURNAL_SLOTS] = {0};
	int rc;

	if (j->phase != JOURNAL_IDLE)
		return 0;
	j->pages.log = openat(j->dir_fd, JOURNAL_NAME,
			      O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (j->pages.log < 0)
		return err_sys(e, errno, "cannot create the journal");
	j->phase = JOURNAL_LOGGING;
	journal_head_put(&j->head, blocks);
	rc = io_pwrite(j->pages.log, blocks, sizeof(blocks), 0, e);
	return rc ? err_wrap(e, rc, "the journal") : 0;
}

/* The head is on the disk before the file's size changes: then a recovery that finds the tail
 * after a crash can identify it. */
static int make_head_durable(struct h5_journal *j, struct err *e)
{
	int rc = make_log(j, e);

	if (rc < 0 || j->phase >= JOURNAL_BEGUN)
		return rc;
	rc = io_sync(j->pages.log, false, e);
	rc = rc ? rc : journal_sync_dir(j->dir_fd, e);
	if (rc < 0)
		return err_wrap(e, rc, "the journal");
	j->phase = JOURNAL_BEGUN;
	return 0;
}

/* ---- reads and writes of libhdf5 ---- */

static int journal_fail(struct h5_journal *j, const struct err *e)
{
	if (j->why.code == 0)
		j->why = *e;
	return e->code;
}

/* Read after the old end; bytes that were never written are zero. */
static int read_tail(struct h5_journal *j, uint8_t *out, size_t n, uint64_t off, struct err *e)
{
	uint64_t size = (uint64_t)j->mine.st_size;
	size_t there = off < size ? (size_t)u64_min(n, size - off) : 0;

	memset(out + there, 0, n - there);
	return there > 0 ? io_pread(j->fd, out, there, off, e) : 0;
}

int journal_read(void *arg, void *out, size_t n, uint64_t off)
{
	struct h5_journal *j = arg;
	struct err e = ERR_INIT;
	size_t below = off < j->head.end ? (size_t)u64_min(n, j->head.end - off) : 0;
	uint8_t *to = out;
	int rc = 0;

	if (below > 0)
		rc = journal_pages_read(&j->pages, to, below, off, &e);
	if (rc == 0 && below < n)
		rc = read_tail(j, to + below, n - below, off + below, &e);
	return rc < 0 ? journal_fail(j, &e) : 0;
}

static int write_tail(struct h5_journal *j, const uint8_t *data, size_t n, uint64_t off,
		      struct err *e)
{
	int rc = make_head_durable(j, e);

	if (rc < 0)
		return rc;
	j->resized = true;
	rc = io_pwrite(j->fd, data, n, off, e);
	if (fstat(j->fd, &j->mine) < 0 && rc == 0)
		rc = err_sys(e, errno, "stat");
	if (rc == 0 && off + n >= j->sync_at + SYNC_BYTES) {
		rc = io_start_sync(j->fd, j->sync_at, off + n - j->sync_at, e);
		j->sync_at = off + n;
	}
	return rc;
}

int journal_write(void *arg, const void *data, size_t n, uint64_t off)
{
	struct h5_journal *j = arg;
	struct err e = ERR_INIT;
	size_t below = off < j->head.end ? (size_t)u64_min(n, j->head.end - off) : 0;
	const uint8_t *from = data;
	int rc = 0;

	if (j->why.code)
		return j->why.code; /* no commit will follow: do not fill the disk */
	if (j->phase >= JOURNAL_COMMITTED)
		rc = err_set(&e, -EROFS, "a write after the commit");
	if (rc == 0 && below > 0) {
		rc = make_log(j, &e);
		rc = rc ? rc : journal_pages_write(&j->pages, from, below, off, &e);
	}
	if (rc == 0 && below < n)
		rc = write_tail(j, from + below, n - below, off + below, &e);
	if (rc < 0)
		return journal_fail(j, &e);
	j->eof = u64_max(j->eof, off + n);
	return 0;
}

/* ---- commit ---- */

static int still_mine(struct h5_journal *j, struct err *e)
{
	struct stat st;

	if (fstat(j->fd, &st) < 0)
		return err_sys(e, errno, "stat");
	if (st.st_size == j->mine.st_size && st.st_mtim.tv_sec == j->mine.st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == j->mine.st_mtim.tv_nsec)
		return 0;
	return err_set(e, -ESTALE,
		       "another program changed the file while it was being written");
}

/* The file has the size that it keeps until the pages are in their places. */
static int journal_set_size(struct h5_journal *j, uint64_t size, struct err *e)
{
	int rc;

	if ((uint64_t)j->mine.st_size == size)
		return 0;
	rc = make_head_durable(j, e);
	if (rc < 0)
		return rc;
	j->resized = true;
	if (ftruncate(j->fd, (off_t)size) < 0)
		rc = err_sys(e, errno, "cannot truncate the file to %" PRIu64 " bytes", size);
	if (fstat(j->fd, &j->mine) < 0 && rc == 0)
		rc = err_sys(e, errno, "stat");
	return rc;
}

/* Everything but the commit record. */
static int journal_prepare(struct h5_journal *j, struct journal_commit *c, struct err *e)
{
	int rc;

	*c = (struct journal_commit){
		.end = j->head.end,
		.new_end = j->eof,
		.size = u64_max(j->head.end, j->eof),
	};
	memcpy(c->id, j->head.id, sizeof(c->id));
	if (c->size > INT64_MAX)
		return err_set(e, -EFBIG, "the file would become too large, %" PRIu64 " bytes",
			       c->size);
	rc = still_mine(j, e);
	rc = rc ? rc : journal_set_size(j, c->size, e);
	rc = rc ? rc : make_log(j, e);
	rc = rc ? rc : journal_pages_table(&j->pages, c, e);
	if (rc < 0)
		return rc;
	rc = make_head_durable(j, e);
	if (rc == 0 && c->size != c->end)
		rc = io_sync(j->fd, false, e);
	return rc ? rc : io_sync(j->pages.log, false, e);
}

static int unmake_record(struct h5_journal *j)
{
	static const uint8_t none[JOURNAL_COPIES * JOURNAL_PAGE];
	int rc = io_pwrite(j->pages.log, none, sizeof(none), JOURNAL_PAGE, NULL);

	return rc ? rc : io_sync(j->pages.log, false, NULL);
}

static int make_record(struct h5_journal *j, const struct journal_commit *c, struct err *e)
{
	uint8_t blocks[JOURNAL_COPIES * JOURNAL_PAGE] = {0};
	int rc;

	for (size_t i = 0; i < JOURNAL_COPIES; i++)
		journal_commit_put(c, blocks + i * JOURNAL_PAGE);
	rc = io_pwrite(j->pages.log, blocks, sizeof(blocks), JOURNAL_PAGE, e);
	rc = rc ? rc : io_sync(j->pages.log, false, e);
	if (rc < 0 && unmake_record(j) < 0) {
		j->phase = JOURNAL_COMMITTED; /* unknown: recovery finds out */
		return err_wrap(
			e, rc,
			"the commit record may or may not be written: run nczarrfs recover");
	}
	if (rc == 0)
		j->phase = JOURNAL_COMMITTED;
	return rc;
}

/* Retry once, because the old state is lost and the new one must be completed. */
static int journal_carry_out(struct h5_journal *j, const struct journal_commit *c,
			     struct err *e)
{
	int rc = journal_apply(j->fd, j->pages.log, c, e);

	if (rc < 0)
		rc = journal_apply(j->fd, j->pages.log, c, e);
	if (rc < 0)
		return err_wrap(e, rc,
				"the commit is in the journal, but not complete in the file: "
				"run nczarrfs recover to complete it");
	j->phase = JOURNAL_DONE;
	return journal_remove(j->dir_fd, e);
}

int h5_journal_commit(struct h5_journal *j, int (*gate)(void *arg, struct err *e), void *arg,
		      struct err *e)
{
	struct journal_commit c;
	int rc = h5_journal_failure(j, e);

	if (rc < 0)
		return rc;
	if (j->open > 0)
		return err_set(e, -EBUSY, "the file is still open in libhdf5");
	if (j->phase >= JOURNAL_COMMITTED)
		return err_set(e, -EINVAL, "it is already committed");
	if (!h5_journal_changed(j))
		return 0;
	rc = journal_prepare(j, &c, e);
	if (rc < 0)
		return rc;
	if (c.n_pages == 0 && c.new_end == c.end && j->mine.st_size == (off_t)c.end)
		return 0; /* the written bytes are equal to the old ones */
	rc = gate ? gate(arg, e) : 0;
	rc = rc ? rc : still_mine(j, e);
	rc = rc ? rc : make_record(j, &c, e);
	return rc ? rc : journal_carry_out(j, &c, e);
}

/* ---- the end ---- */

/* Undo. Do not rely on the last fstat: it may have failed after the file had grown. */
static void take_back(struct h5_journal *j)
{
	/* another program may have written its own data there meanwhile */
	int ours = j->resized ? journal_super_is(j->fd, &j->head, NULL) : 0;

	if (ours < 0 || (ours > 0 && ftruncate(j->fd, (off_t)j->head.end) < 0))
		return; /* the journal stays, with the length to restore */
	if (ours > 0) {
		(void)futimens(j->fd, j->times);
		if (io_sync(j->fd, true, NULL) < 0)
			return;
	}
	if (journal_remove(j->dir_fd, NULL) < 0)
		return; /* the next transaction removes it */
}

void h5_journal_close(struct h5_journal *j)
{
	if (!j)
		return;
	if (j->phase == JOURNAL_LOGGING || j->phase == JOURNAL_BEGUN)
		take_back(j);
	journal_pages_release(&j->pages);
	close_fd(&j->pages.log); /* everything that must be on the disk was synced */
	close_fd(&j->fd);
	free(j);
}
