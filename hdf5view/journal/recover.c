/* SPDX-License-Identifier: BSD-3-Clause */
/* recover.c - recovers from an interrupted transaction.
 *
 * The journal and the file may be anything: another file's, from an attacker, damaged. A commit is
 * redone only if the file is certainly the one that it was made for: its size is that at the
 * commit or after it, and every sector below the journal's pages is either old or new. So it does
 * not matter whether the file was copied since, and a backup in its place, or a change by another
 * program, is noticed. */
#include "hdf5view/journal/journal_int.h"

#include "base/os/io.h"
#include "codecs/core/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the pages of the file, compared with the journal ---- */

struct compare {
	int fd, log;
	const struct journal_commit *c;
	uint64_t size; /* of the file */
	bool has_old;
	uint64_t strange; /* sectors that are neither */
	bool torn;        /* the only unknown sector is at the interruption */
};

static void sector(struct compare *k, const uint8_t *is, const uint8_t *will, size_t n,
		   uint32_t old)
{
	bool new = memcmp(is, will, n) == 0;
	bool was = codec_crc32c_sum(0, is, n) == old;

	if (new &&was)
		return;
	if (!new && !was) {
		/* pages are written in order: new ones before it, old ones after it */
		k->strange++;
		k->torn = !k->has_old;
	} else if (new) {
		k->torn = false;
	} else {
		k->has_old = true;
	}
}

static int compare_page(void *arg, const struct journal_entry *x, struct err *e)
{
	struct compare *k = arg;
	uint8_t is[JOURNAL_PAGE], will[JOURNAL_PAGE];
	size_t len = journal_page_len(x->page, k->c->end);
	int rc = io_pread(k->log, will, len, JOURNAL_SLOTS + x->slot * JOURNAL_PAGE, e);

	if (rc < 0)
		return err_wrap(e, rc, "the journal");
	if (codec_crc32c_sum(0, will, len) != x->crc)
		return err_set(e, -EBADMSG,
			       "the journal is damaged: the checksum of page %" PRIu64
			       " is wrong",
			       x->page);
	len = journal_page_len(x->page, u64_min(k->c->end, k->size));
	rc = io_pread(k->fd, is, len, x->page * JOURNAL_PAGE, e);
	if (rc < 0)
		return rc;
	for (size_t i = 0, at = 0; at < len; i++, at += JOURNAL_SECTOR) {
		size_t whole = journal_page_len(x->page, k->c->end) - at;
		size_t n = len - at < JOURNAL_SECTOR ? len - at : JOURNAL_SECTOR;

		if (n < JOURNAL_SECTOR && n < whole)
			break; /* the rest of the sector was cut off: its checksum says nothing */
		sector(k, is + at, will + at, n, x->old[i]);
	}
	return 0;
}

/* Decide whether the commit belongs to the file; *ret->state REDO or FOREIGN. */
static int recover_compare(int fd, int log, const struct journal_commit *c,
			   struct journal_found *ret, struct err *e)
{
	struct compare k = {.fd = fd, .log = log, .c = c};
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "stat");
	k.size = (uint64_t)st.st_size;
	ret->state = HDF5_JOURNAL_FOREIGN;
	if (k.size != c->size && k.size != c->new_end) {
		(void)snprintf(ret->why, sizeof(ret->why),
			       "the file has %" PRIu64
			       " bytes, but the commit in the journal is for a file of %" PRIu64
			       " bytes",
			       k.size, c->size);
		return 0;
	}
	rc = journal_each(log, c, compare_page, &k, e);
	if (rc < 0)
		return rc;
	if (k.strange > 1 || (k.strange == 1 && !k.torn)) {
		(void)snprintf(ret->why, sizeof(ret->why),
			       "the file was changed or replaced after the commit in the "
			       "journal was made");
		return 0;
	}
	ret->state = HDF5_JOURNAL_REDO;
	ret->done = !k.has_old && k.strange == 0 && k.size == c->new_end;
	return 0;
}

/* ---- the journal ---- */

/* Open the log. Its owner must be root, this user or the file's owner, who can write the file
 * anyway. *ret -1: there is none. */
static int open_log(int dir_fd, int fd, int *ret, struct err *e)
{
	struct stat log, file;
	auto_fd int got =
		openat(dir_fd, JOURNAL_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	*ret = -1;
	if (got < 0 && errno == ENOENT)
		return 0;
	if (got < 0)
		return err_sys(e, errno, "the journal");
	if (fstat(got, &log) < 0 || fstat(fd, &file) < 0)
		return err_sys(e, errno, "stat");
	if (S_ISREG(log.st_mode) && !(log.st_mode & (S_IWGRP | S_IWOTH)) &&
	    (log.st_uid == geteuid() || log.st_uid == 0 || log.st_uid == file.st_uid)) {
		*ret = got;
		got = -1;
		return 0;
	}
	return err_set(e, -EPERM,
		       "the journal must be a regular file of yours, of root or of the file's "
		       "owner that only its owner can write");
}

/* recover_read_block - read a block. 1: read; 0: the log ends before it; -errno: its
 * contents are unknown. */
static int recover_read_block(int log, uint64_t at, uint8_t in[JOURNAL_RECORD], struct err *e)
{
	struct stat st;
	int rc;

	if (fstat(log, &st) < 0)
		return err_sys(e, errno, "the journal");
	if ((uint64_t)st.st_size < at + JOURNAL_RECORD)
		return 0;
	rc = io_pread(log, in, JOURNAL_RECORD, at, e);
	return rc ? err_wrap(e, rc, "the journal") : 1;
}

/* recover_read_head - read the head. 1: read; 0: there is no valid one. */
static int recover_read_head(int log, struct journal_head *h, struct err *e)
{
	uint8_t in[JOURNAL_RECORD];
	int rc = recover_read_block(log, 0, in, e);

	return rc > 0 ? journal_head_get(in, h) : rc;
}

/* read_commit - read the first valid commit record. 1: read; 0: there is none; -errno: a block
 * that may hold one could not be read. */
static int read_commit(int log, struct journal_commit *c, struct err *e)
{
	uint8_t in[JOURNAL_RECORD];
	int failed = 0;

	for (size_t i = 1; i <= JOURNAL_COPIES; i++) {
		int rc = recover_read_block(log, i * JOURNAL_PAGE, in, e);

		if (rc > 0 && journal_commit_get(in, c))
			return 1;
		failed = rc < 0 ? rc : failed;
	}
	return failed;
}

int journal_probe(int fd, int dir_fd, struct journal_found *ret, struct err *e)
{
	struct journal_commit c;
	auto_fd int log = -1;
	int rc = open_log(dir_fd, fd, &log, e);

	*ret = (struct journal_found){.state = HDF5_JOURNAL_NONE};
	if (rc < 0 || log < 0)
		return rc;
	ret->state = HDF5_JOURNAL_ABANDON;
	rc = read_commit(log, &c, e);
	if (rc > 0)
		rc = recover_compare(fd, log, &c, ret, e);
	return rc;
}

/* ---- carrying it out ---- */

/* Cut off the bytes after the old end, if the file was not changed since: its superblock would
 * differ. Otherwise they may belong to another program. */
static int cut_tail(int fd, int log, struct err *e)
{
	struct journal_head h;
	struct stat st;
	int rc = recover_read_head(log, &h, e);

	if (rc <= 0)
		return rc; /* not durable, so nothing was written after the end */
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "stat");
	if ((uint64_t)st.st_ino != h.ino || (uint64_t)st.st_size <= h.end)
		return 0;
	rc = journal_super_is(fd, &h, e);
	if (rc <= 0)
		return rc;
	if (ftruncate(fd, (off_t)h.end) < 0)
		return err_sys(e, errno, "cannot truncate the file to %" PRIu64 " bytes",
			       h.end);
	(void)futimens(fd, (const struct timespec[2]){
				   {.tv_nsec = UTIME_OMIT},
				   {.tv_sec = (time_t)h.mtime_s, .tv_nsec = (long)h.mtime_ns},
			   }); /* for people only */
	return io_sync(fd, true, e);
}

int journal_recover_state(int fd, int dir_fd, const struct journal_found *found, struct err *e)
{
	struct journal_commit c;
	auto_fd int log = -1;
	int rc;

	if (found->state == HDF5_JOURNAL_NONE)
		return 0;
	if (found->state == HDF5_JOURNAL_FOREIGN)
		return err_set(e, -ESTALE, "%s", found->why);
	rc = open_log(dir_fd, fd, &log, e);
	if (rc < 0 || log < 0)
		return rc;
	if (found->state == HDF5_JOURNAL_ABANDON) {
		rc = cut_tail(fd, log, e);
	} else {
		rc = read_commit(log, &c, e);
		if (rc == 0)
			rc = err_set(e, -ESTALE, "the journal changed while it was being read");
		else if (rc > 0)
			rc = journal_apply(fd, log, &c, e);
	}
	return rc ? rc : journal_remove(dir_fd, e);
}

static int recover_open_file(const char *path, int flags, int *ret, struct err *e)
{
	struct stat st;
	auto_fd int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return err_sys(e, errno, "cannot open '%s'", path);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%s' is not a regular file", path);
	*ret = fd;
	fd = -1;
	return 0;
}

static bool no_journal(int dir_fd)
{
	struct stat st;

	return fstatat(dir_fd, JOURNAL_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

int hdf5_journal_status(const char *path, int dir_fd, enum hdf5_journal_state *ret,
			struct err *e)
{
	struct journal_found found;
	auto_fd int fd = -1;
	int rc;

	*ret = HDF5_JOURNAL_NONE;
	if (no_journal(dir_fd))
		return 0;
	rc = recover_open_file(path, O_RDONLY, &fd, e);
	rc = rc ? rc : journal_probe(fd, dir_fd, &found, e);
	if (rc == 0)
		*ret = found.state;
	return rc;
}

int hdf5_journal_recover(const char *path, int dir_fd, struct err *e)
{
	struct journal_found found;
	auto_fd int fd = -1;
	int rc;

	if (no_journal(dir_fd))
		return 0;
	rc = recover_open_file(path, O_RDWR, &fd, e);
	rc = rc ? rc : journal_lock(fd, path, e);
	rc = rc ? rc : journal_probe(fd, dir_fd, &found, e);
	rc = rc ? rc : journal_recover_state(fd, dir_fd, &found, e);
	return rc ? err_wrap(e, rc, "recovery of '%s'", path) : 0;
}
