/* SPDX-License-Identifier: BSD-3-Clause */
/* log_format.c - the journal's format: head, commit record, table; and the copying of a commit.
 * Transactions and recoveries use it; both validate what they read. */
#include "hdf5view/journal/journal_int.h"

#include "base/os/io.h"
#include "base/core/cursor.h"
#include "base/core/endian.h"
#include "codecs/core/codec.h"
#include "hdf5view/format/hdf5_format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

#define VERSION 1
#define RUN ((size_t)256 * JOURNAL_PAGE) /* most bytes that are copied at once */
#define AT_ONCE ((size_t)256)            /* entries that are read at once */

static const char head_magic[] = "NZJOURN\n";
static const char commit_magic[] = "NZCOMMT\n";

/* log_field - a number of a record, little-endian. */
struct log_field {
	size_t at, len; /* in the structure */
};

#define FIELD(type, x)                                                                         \
	{                                                                                      \
		offsetof(struct type, x), sizeof(((struct type *)NULL)->x)                     \
	}

/* The fields of both records, after 16 bytes of magic and version and 16 of the id. */
static const struct log_field head_fields[] = {
	FIELD(journal_head, ino),      FIELD(journal_head, dev),
	FIELD(journal_head, end),      FIELD(journal_head, mtime_s),
	FIELD(journal_head, mtime_ns), FIELD(journal_head, super),
	FIELD(journal_head, super_crc)};
static const struct log_field commit_fields[] = {
	FIELD(journal_commit, end),     FIELD(journal_commit, new_end),
	FIELD(journal_commit, size),    FIELD(journal_commit, n_slots),
	FIELD(journal_commit, n_pages), FIELD(journal_commit, table_crc)};

static void log_format_put(uint8_t **p, uint64_t v, size_t n)
{
	put_le(*p, v, n);
	*p += n;
}

/* record_put - write a record; v begins with its id. The last four bytes are the checksum of those
 * before. */
static void record_put(const char magic[8], const void *v, const struct log_field *f, size_t n,
		       uint8_t out[JOURNAL_RECORD])
{
	uint8_t *p = out + 32;

	memset(out, 0, JOURNAL_RECORD);
	memcpy(out, magic, 8);
	out[8] = VERSION;
	memcpy(out + 16, v, 16);
	for (size_t i = 0; i < n; i++)
		log_format_put(
			&p, get_uint((const uint8_t *)v + f[i].at, f[i].len, HOST_BIG_ENDIAN),
			f[i].len);
	put_le32(out + JOURNAL_RECORD - 4, codec_crc32c_sum(0, out, JOURNAL_RECORD - 4));
}

static bool record_get(const uint8_t in[JOURNAL_RECORD], const char magic[8], void *ret,
		       const struct log_field *f, size_t n)
{
	const uint8_t *p = in + 32;

	if (memcmp(in, magic, 8) != 0 || get_le32(in + 8) != VERSION ||
	    get_le32(in + JOURNAL_RECORD - 4) != codec_crc32c_sum(0, in, JOURNAL_RECORD - 4))
		return false;
	memcpy(ret, in + 16, 16);
	for (size_t i = 0; i < n; p += f[i++].len)
		put_uint((uint8_t *)ret + f[i].at, get_le(p, f[i].len), f[i].len,
			 HOST_BIG_ENDIAN);
	return true;
}

void journal_head_put(const struct journal_head *h, uint8_t out[JOURNAL_RECORD])
{
	record_put(head_magic, h, head_fields, ARRAY_LEN(head_fields), out);
}

bool journal_head_get(const uint8_t in[JOURNAL_RECORD], struct journal_head *ret)
{
	return record_get(in, head_magic, ret, head_fields, ARRAY_LEN(head_fields)) &&
	       ret->end <= INT64_MAX;
}

void journal_commit_put(const struct journal_commit *c, uint8_t out[JOURNAL_RECORD])
{
	record_put(commit_magic, c, commit_fields, ARRAY_LEN(commit_fields), out);
}

bool journal_commit_get(const uint8_t in[JOURNAL_RECORD], struct journal_commit *ret)
{
	return record_get(in, commit_magic, ret, commit_fields, ARRAY_LEN(commit_fields)) &&
	       ret->size <= INT64_MAX && ret->size == u64_max(ret->end, ret->new_end) &&
	       ret->n_slots <= JOURNAL_SLOTS_MAX && ret->n_pages <= ret->n_slots;
}

void journal_entry_put(const struct journal_entry *x, uint8_t out[JOURNAL_ENTRY])
{
	uint8_t *p = out;

	log_format_put(&p, x->page, 8);
	log_format_put(&p, x->slot, 8);
	log_format_put(&p, x->crc, 4);
	log_format_put(&p, 0, 4);
	for (size_t i = 0; i < JOURNAL_SECTORS; i++)
		log_format_put(&p, x->old[i], 4);
}

static int log_format_entry_get(struct slice *s, const struct journal_commit *c, uint64_t least,
				struct journal_entry *x, struct err *e)
{
	x->page = rd_le64(s);
	x->slot = rd_le64(s);
	x->crc = rd_le32(s);
	rd_skip(s, 4);
	for (size_t i = 0; i < JOURNAL_SECTORS; i++)
		x->old[i] = rd_le32(s);
	if (!slice_ok(s) || x->page < least || x->page > INT64_MAX / JOURNAL_PAGE ||
	    journal_page_len(x->page, c->end) == 0 || x->slot >= c->n_slots)
		return err_set(e, -EBADMSG,
			       "the journal is damaged: its table names page %" PRIu64
			       " in slot %" PRIu64,
			       x->page, x->slot);
	return 0;
}

int journal_each(int log, const struct journal_commit *c,
		 int (*fn)(void *arg, const struct journal_entry *x, struct err *e), void *arg,
		 struct err *e)
{
	uint8_t in[AT_ONCE * JOURNAL_ENTRY];
	uint64_t at = JOURNAL_SLOTS + c->n_slots * JOURNAL_PAGE;
	uint64_t least = 0, left = c->n_pages;
	uint32_t sum = 0;

	while (left > 0) {
		size_t n = (size_t)u64_min(left, AT_ONCE) * JOURNAL_ENTRY;
		struct slice s = slice_of(in, n);
		int rc = io_pread(log, in, n, at, e);

		if (rc < 0)
			return err_wrap(e, rc, "the journal's table");
		sum = codec_crc32c_sum(sum, in, n);
		for (; s.len > 0; left--) {
			struct journal_entry x;

			rc = log_format_entry_get(&s, c, least, &x, e);
			rc = rc ? rc : fn(arg, &x, e);
			if (rc)
				return rc;
			least = x.page + 1;
		}
		at += n;
	}
	if (sum != c->table_crc)
		return err_set(e, -EBADMSG,
			       "the journal is damaged: the checksum of its table is wrong");
	return 0;
}

/* ---- carrying it out ---- */

/* copy - pages that follow each other, in the file and in the log. */
struct copy {
	int fd, log;
	const struct journal_commit *c;
	uint8_t *mem; /* RUN bytes */
	uint64_t page, slot;
	size_t n; /* pages; 0: none yet */
};

static int copy_flush(struct copy *k, struct err *e)
{
	uint64_t at = k->page * JOURNAL_PAGE;
	size_t len;
	int rc;

	if (k->n == 0)
		return 0;
	len = (size_t)u64_min(k->n * JOURNAL_PAGE, k->c->end - at);
	k->n = 0;
	rc = io_pread(k->log, k->mem, len, JOURNAL_SLOTS + k->slot * JOURNAL_PAGE, e);
	return rc ? rc : io_pwrite(k->fd, k->mem, len, at, e);
}

static int copy_page(void *arg, const struct journal_entry *x, struct err *e)
{
	struct copy *k = arg;

	if (k->n > 0 && (k->page + k->n != x->page || k->slot + k->n != x->slot ||
			 k->n * JOURNAL_PAGE >= RUN)) {
		int rc = copy_flush(k, e);

		if (rc)
			return rc;
	}
	if (k->n++ == 0) {
		k->page = x->page;
		k->slot = x->slot;
	}
	return 0;
}

int journal_apply(int fd, int log, const struct journal_commit *c, struct err *e)
{
	auto_free uint8_t *mem = malloc(RUN);
	struct copy k = {.fd = fd, .log = log, .c = c, .mem = mem};
	struct stat st;
	int rc;

	if (!mem)
		return err_nomem(e);
	rc = journal_each(log, c, copy_page, &k, e);
	rc = rc ? rc : copy_flush(&k, e);
	if (rc)
		return rc;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "stat");
	if ((uint64_t)st.st_size != c->new_end && ftruncate(fd, (off_t)c->new_end) < 0)
		return err_sys(e, errno, "cannot truncate the file to %" PRIu64 " bytes",
			       c->new_end);
	return io_sync(fd, true, e);
}

int journal_sync_dir(int dir_fd, struct err *e)
{
	int rc = io_sync(dir_fd, true, e);

	/* there are filesystems on which directories cannot be synced */
	return rc == -EINVAL ? 0 : rc;
}

int journal_remove(int dir_fd, struct err *e)
{
	int rc;

	if (unlinkat(dir_fd, JOURNAL_NAME, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "cannot remove the journal");
	rc = journal_sync_dir(dir_fd, e);
	return rc ? err_wrap(e, rc, "cannot remove the journal") : 0;
}

/* ---- which file it is ---- */

/* find_super - where the superblock is. */
static uint64_t find_super(int fd, uint64_t end)
{
	struct blob b = blob_of_fd(fd, end);
	uint64_t at;

	return h5_file_find(&b, &at, NULL) == 0 ? at : JOURNAL_NOWHERE;
}

static int super_crc(int fd, uint64_t at, uint64_t end, uint32_t *ret, struct err *e)
{
	uint8_t got[JOURNAL_SUPER];
	size_t n = (size_t)u64_min(end - at, sizeof(got));
	int rc = io_pread(fd, got, n, at, e);

	if (rc == 0)
		*ret = codec_crc32c_sum(0, got, n);
	return rc;
}

int journal_head_of(int fd, const struct stat *st, struct journal_head *ret, struct err *e)
{
	struct journal_head h = {
		.ino = (uint64_t)st->st_ino,
		.dev = (uint64_t)st->st_dev,
		.end = (uint64_t)st->st_size,
		.mtime_s = (int64_t)st->st_mtim.tv_sec,
		.mtime_ns = (int64_t)st->st_mtim.tv_nsec,
	};
	int rc = 0;

	if (getrandom(h.id, sizeof(h.id), 0) != (ssize_t)sizeof(h.id))
		return err_sys(e, errno ? errno : EIO, "getrandom");
	h.super = find_super(fd, h.end);
	if (h.super != JOURNAL_NOWHERE)
		rc = super_crc(fd, h.super, h.end, &h.super_crc, e);
	if (rc == 0)
		*ret = h;
	return rc;
}

int journal_super_is(int fd, const struct journal_head *h, struct err *e)
{
	struct stat st;
	uint32_t crc;
	int rc;

	if (h->super >= h->end)
		return 0;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "stat");
	if ((uint64_t)st.st_size < u64_min(h->end, h->super + JOURNAL_SUPER))
		return 0; /* another program has truncated it */
	rc = super_crc(fd, h->super, h->end, &crc, e);
	return rc ? rc : crc == h->super_crc;
}

int journal_lock(int fd, const char *path, struct err *e)
{
	const char *use = getenv("HDF5_USE_FILE_LOCKING");
	int rc;

	if (use && (strcmp(use, "FALSE") == 0 || strcmp(use, "0") == 0))
		return 0;
	do
		rc = flock(fd, LOCK_EX | LOCK_NB);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(e, -EAGAIN, "'%s' is open in another program, which locked it",
			       path);
	/* if the filesystem has no locks, libhdf5 fails only if HDF5_USE_FILE_LOCKING is TRUE */
	if ((errno == ENOSYS || errno == EOPNOTSUPP) && !(use && strcmp(use, "TRUE") == 0))
		return 0;
	return err_sys(e, errno, "cannot lock '%s'", path);
}
