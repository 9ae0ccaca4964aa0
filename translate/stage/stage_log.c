/* SPDX-License-Identifier: BSD-3-Clause */
/* stage_log.c - the files of a stage: docs/dev/writing/stage-log.md has their format.
 *
 * A record's data is written first and its head last, so that a record without its end is no
 * record. The checksum of a head covers its place and the salt of its log: bytes that a user wrote
 * are never taken for a record, wherever they lie. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/os/io.h"
#include "base/core/cursor.h"
#include "base/core/endian.h"
#include "codecs/core/codec.h"
#include "translate/stage/stage_int.h"

#define MANY_BYTES ((uint64_t)64 << 20) /* of one record, before room is asked for */
#define REC_MAGIC 0x4352535aU           /* "ZSRC" */
#define SMALL 16384                     /* records up to this size are written in one piece */
#define PIECE ((size_t)256 << 10)

static const uint8_t file_magic[8] = {'N', 'Z', 'S', 'T', 'A', 'G', 'E', '1'};

/* boot_id - the identifier of this boot of the machine; zeros if it is not available. */
static void boot_id(uint8_t out[16])
{
	auto_fd int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	char text[64] = "";
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	size_t k = 0;

	memset(out, 0, 16);
	for (ssize_t i = 0; i < n && k < 32; i++) {
		const char *digits = "0123456789abcdef";
		const char *at = text[i] ? strchr(digits, text[i]) : NULL;

		if (at) {
			out[k / 2] = (uint8_t)(out[k / 2] << 4 | (at - digits));
			k++;
		}
	}
}

static struct stage_log *new_log(uint64_t generation)
{
	struct stage_log *l = alloc_array(1, sizeof(*l));

	if (!l)
		return NULL;
	l->fd = -1;
	l->generation = generation;
	l->end = LOG_HEAD;
	atomic_init(&l->holders, 1);
	atomic_init(&l->synced, 0);
	(void)pthread_mutex_init(&l->sync, NULL); /* cannot fail without attributes */
	(void)snprintf(l->name, sizeof(l->name), "log.%" PRIu64, generation);
	return l;
}

void log_hold(struct stage_log *l)
{
	atomic_fetch_add(&l->holders, 1);
}

void log_drop(struct stage_log *l)
{
	if (!l || atomic_fetch_sub(&l->holders, 1) != 1)
		return;
	close_fd(&l->fd);
	(void)pthread_mutex_destroy(&l->sync);
	free(l);
}

struct stage_log **logs_end(struct stage_log **list)
{
	while (*list)
		list = &(*list)->next;
	return list;
}

void logs_drop(struct stage_log *list)
{
	while (list) {
		struct stage_log *next = list->next;

		log_drop(list);
		list = next;
	}
}

int log_create(int dir_fd, uint64_t generation, struct stage_log **ret, struct err *e)
{
	struct stage_log *l = new_log(generation);
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
	uint8_t head[LOG_HEAD] = {0};
	int rc = 0;

	if (!l)
		return err_nomem(e);
	if (getrandom(&l->salt, sizeof(l->salt), 0) != (ssize_t)sizeof(l->salt))
		rc = err_sys(e, errno, "cannot get random numbers");
	else if ((l->fd = openat(dir_fd, l->name, flags, 0600)) < 0)
		rc = err_sys(e, errno, "'%s'", l->name);
	memcpy(head, file_magic, sizeof(file_magic));
	put_le(head + 8, generation, 8);
	put_le(head + 16, l->salt, 8);
	boot_id(head + 24);
	put_le(head + 44, codec_crc32c_sum(0, head, 44), 4);
	rc = rc ? rc : io_pwrite(l->fd, head, sizeof(head), 0, e);
	if (rc) {
		if (l->fd >= 0)
			(void)unlinkat(dir_fd, l->name, 0);
		log_drop(l);
		return rc;
	}
	*ret = l;
	return 0;
}

/* all_zeros - whether a log has no content at all; false also where it cannot be read. */
static bool all_zeros(const struct stage_log *l, uint64_t size)
{
	uint8_t piece[4096];

	for (uint64_t at = 0; at < size; at += sizeof(piece)) {
		size_t n = (size_t)u64_min(sizeof(piece), size - at);

		if (io_pread(l->fd, piece, n, at, NULL))
			return false;
		for (size_t i = 0; i < n; i++)
			if (piece[i])
				return false;
	}
	return true;
}

/* stage_log_read_head - *ret_torn: it was never written whole. */
static int stage_log_read_head(struct stage_log *l, bool *ret_torn, struct err *e)
{
	uint8_t head[LOG_HEAD];
	struct slice s = slice_of(head + 8, LOG_HEAD - 8);
	struct stat st;
	int rc;

	if (fstat(l->fd, &st) < 0)
		return err_sys(e, errno, "'%s'", l->name);
	*ret_torn = true;
	if (st.st_size < LOG_HEAD)
		return 0;
	rc = io_pread(l->fd, head, sizeof(head), 0, e);
	if (rc)
		return rc;
	if (codec_crc32c_sum(0, head, 44) != rd_uint(&(struct slice){head + 44, 4, false}, 4)) {
		/* a file that got its size and no content before the power went */
		if (st.st_size == LOG_HEAD || all_zeros(l, (uint64_t)st.st_size))
			return 0;
		return err_set(e, -EBADMSG, "'%s' is damaged at offset 0", l->name);
	}
	if (memcmp(head, file_magic, sizeof(file_magic)) != 0 || rd_le64(&s) != l->generation)
		return err_set(e, -EBADMSG, "'%s' is not a log of this generation", l->name);
	l->salt = rd_le64(&s);
	*ret_torn = false;
	return 0;
}

int log_open(int dir_fd, uint64_t generation, bool read_only, struct stage_log **ret,
	     bool *ret_torn, struct err *e)
{
	struct stage_log *l = new_log(generation);
	int rc;

	if (!l)
		return err_nomem(e);
	l->fd = openat(dir_fd, l->name,
		       (read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOFOLLOW);
	rc = l->fd < 0 ? err_sys(e, errno, "'%s'", l->name)
		       : stage_log_read_head(l, ret_torn, e);
	if (rc) {
		log_drop(l);
		return rc;
	}
	*ret = l;
	return 0;
}

/* ---- records ---- */

/* head_sum - of a record's head and key at this place of this log. */
static uint32_t head_sum(const struct stage_log *l, uint64_t off, const uint8_t *head,
			 const char *key, size_t key_len)
{
	uint8_t place[16];
	uint32_t sum;

	put_le(place, l->salt, 8);
	put_le(place + 8, off, 8);
	sum = codec_crc32c_sum(0, place, sizeof(place));
	sum = codec_crc32c_sum(sum, head, REC_HEAD - 4);
	return codec_crc32c_sum(sum, (const uint8_t *)key, key_len);
}

static void make_head(const struct stage_log *l, uint64_t off, const struct rec *r,
		      uint8_t out[REC_HEAD])
{
	put_le(out, REC_MAGIC, 4);
	out[4] = (uint8_t)r->type;
	out[5] = r->flags;
	put_le(out + 6, r->key_len, 2);
	put_le(out + 8, r->len, 8);
	put_le(out + 16, (uint64_t)r->mtime_ns, 8);
	put_le(out + 24, atomic_load(&l->synced), 8);
	put_le(out + 32, r->crc, 4);
	put_le(out + 36, head_sum(l, off, out, r->key, r->key_len), 4);
}

/* stage_log_copy - bytes of a descriptor to where the data goes, and their sum. */
static int stage_log_copy(struct stage_log *l, struct rec *r, const struct log_source *d,
			  struct err *e)
{
	auto_free uint8_t *piece = alloc_array(1, PIECE);
	uint64_t done = 0;
	int rc = piece ? 0 : err_nomem(e);

	r->crc = 0;
	while (!rc && done < d->len) {
		size_t n = (size_t)u64_min(PIECE, d->len - done);

		rc = io_pread(d->fd, piece, n, d->off + done, e);
		rc = rc ? rc : io_pwrite(l->fd, piece, n, r->data_off + done, e);
		if (!rc)
			r->crc = codec_crc32c_sum(r->crc, piece, n);
		done += n;
	}
	return rc;
}

static int write_record(struct stage_log *l, struct rec *r, const struct log_source *d,
			struct err *e)
{
	uint8_t small[REC_HEAD + SMALL];
	int rc = 0;

	if (d->mem && r->key_len + d->len <= SMALL) {
		make_head(l, l->end, r, small);
		memcpy(small + REC_HEAD, r->key, r->key_len);
		memcpy(small + REC_HEAD + r->key_len, d->mem, d->len);
		return io_pwrite(l->fd, small, (size_t)r->bytes, l->end, e);
	}
	if (d->mem)
		rc = io_pwrite(l->fd, d->mem, (size_t)d->len, r->data_off, e);
	else if (d->len)
		rc = stage_log_copy(l, r, d, e);
	if (rc)
		return rc;
	make_head(l, l->end, r, small);
	memcpy(small + REC_HEAD, r->key, r->key_len);
	return io_pwrite(l->fd, small, REC_HEAD + r->key_len, l->end, e);
}

/* stage_log_has_room - whether the disk has so much space at all. A sparse file, of which a program
 * wrote only the last byte, would be written until the disk is full, and all writers would wait for
 * that. */
static int stage_log_has_room(const struct stage_log *l, uint64_t len, struct err *e)
{
	struct statvfs st;

	if (len < MANY_BYTES || fstatvfs(l->fd, &st) < 0 || st.f_blocks == 0 ||
	    len / st.f_frsize <= st.f_bfree)
		return 0;
	return err_set(e, -ENOSPC, "'%s': there is no space for %" PRIu64 " bytes", l->name,
		       len);
}

int log_append(struct stage_log *l, struct rec *r, const struct log_source *d, struct err *e)
{
	uint64_t end;
	int rc;

	r->len = d->len;
	r->data_off = l->end + REC_HEAD + r->key_len;
	r->bytes = REC_HEAD + r->key_len + d->len;
	if (r->key_len > REC_KEY_MAX || d->len > INT64_MAX ||
	    ckd_add(&end, r->data_off, d->len) || end > INT64_MAX)
		return err_set(e, -EFBIG, "'%s': %" PRIu64 " bytes are too many", l->name,
			       d->len);
	rc = stage_log_has_room(l, d->len, e);
	if (rc)
		return rc;
	/* what a failed record left must not lie behind a shorter one */
	if (l->torn && ftruncate(l->fd, (off_t)l->end) < 0)
		return err_sys(e, errno, "'%s'", l->name);
	l->torn = false;
	rc = write_record(l, r, d, e);
	if (rc) {
		l->torn = ftruncate(l->fd, (off_t)l->end) < 0;
		return err_wrap(e, rc, "'%s'", l->name);
	}
	l->end = end;
	return 0;
}

int log_sync(struct stage_log *l, uint64_t end, struct err *e)
{
	int rc = 0;

	if (atomic_load(&l->synced) >= end)
		return 0;
	/* the kernel reports a failed write-back to one call: the others must not run beside it */
	(void)pthread_mutex_lock(&l->sync);
	if (atomic_load(&l->synced) < end) {
		if (atomic_load(&l->failed))
			rc = err_set(e, -EIO,
				     "an earlier sync failed, and data written since the last "
				     "successful sync may not be on the disk: a commit to the "
				     "dataset resolves this");
		else
			rc = io_sync(l->fd, false, e);
		if (rc)
			atomic_store(&l->failed, true);
		else
			atomic_store(&l->synced, end);
	}
	(void)pthread_mutex_unlock(&l->sync);
	return rc ? err_wrap(e, rc, "'%s'", l->name) : 0;
}

static int pass_over(void *arg NZ_UNUSED, const struct rec *r NZ_UNUSED,
		     struct err *e NZ_UNUSED)
{
	return 0;
}

int log_whole(int dir_fd, const struct stage_log *l, struct err *e)
{
	struct stage_log *again;
	bool torn;
	int rc;

	if (!atomic_load(&l->failed))
		return 0;
	rc = log_open(dir_fd, l->generation, true, &again, &torn, e);
	if (rc) /* an earlier removal of several logs may have got as far as this one */
		return rc == -ENOENT ? 0 : rc;
	rc = torn ? 0 : log_replay(again, true, pass_over, NULL, e);
	if (!rc && (torn || again->salt != l->salt || again->end < l->end))
		rc = err_set(
			e, -EIO,
			"'%s' is incomplete: a sync failed, and its end can no longer be read",
			l->name);
	log_drop(again);
	return rc;
}

/* ---- reading them again ---- */

/* replay - one pass over a log. */
struct replay {
	struct stage_log *log;
	uint64_t size; /* of the file */
	bool verify;
	uint8_t head[REC_HEAD];
	char key[REC_KEY_MAX + 1];
	uint64_t synced; /* the last record's: so much was on the disk when it was written */
	uint8_t *piece;  /* PIECE bytes */
};

/* right_keys - whether a record's keys are what its type has. */
static bool right_keys(struct rec *r)
{
	bool two = r->type == REC_ALIAS || r->type == REC_MOVE || r->type == REC_LINK;
	size_t first = strlen(r->key);

	r->second = two && first < r->key_len ? r->key + first + 1 : NULL;
	if (two != (r->second != NULL) || (!two && first != r->key_len))
		return false;
	if (two && (strlen(r->second) != r->key_len - first - 1 || !store_key_ok(r->second)))
		return false;
	return store_key_ok(r->key);
}

/* head_at - the record at off: 1, or 0 when there is none. */
static int head_at(struct replay *p, uint64_t off, struct rec *ret, struct err *e)
{
	struct slice s = slice_of(p->head, REC_HEAD);
	uint64_t end;
	uint32_t sum;
	int rc;

	if (p->size - off < REC_HEAD)
		return 0;
	rc = io_pread(p->log->fd, p->head, REC_HEAD, off, e);
	if (rc)
		return rc;
	*ret = (struct rec){.key = p->key};
	if (rd_le32(&s) != REC_MAGIC)
		return 0;
	ret->type = rd_u8(&s);
	ret->flags = rd_u8(&s);
	ret->key_len = rd_le16(&s);
	ret->len = rd_le64(&s);
	ret->mtime_ns = (int64_t)rd_le64(&s);
	p->synced = rd_le64(&s);
	ret->crc = rd_le32(&s);
	sum = rd_le32(&s);
	if (ret->key_len > REC_KEY_MAX || ret->key_len > p->size - off - REC_HEAD)
		return 0;
	rc = io_pread(p->log->fd, p->key, ret->key_len, off + REC_HEAD, e);
	if (rc)
		return rc;
	p->key[ret->key_len] = '\0';
	ret->data_off = off + REC_HEAD + ret->key_len;
	if (sum != head_sum(p->log, off, p->head, p->key, ret->key_len) ||
	    ckd_add(&end, ret->data_off, ret->len) || end > INT64_MAX)
		return 0;
	ret->bytes = end - off;
	return 1;
}

/* data_right - 1; 0 a record whose data is missing or another. */
static int data_right(struct replay *p, const struct rec *r, struct err *e)
{
	uint32_t sum = 0;

	if (r->len > p->size - r->data_off)
		return 0;
	for (uint64_t done = 0; p->verify && done < r->len;) {
		size_t n = (size_t)u64_min(PIECE, r->len - done);
		int rc = io_pread(p->log->fd, p->piece, n, r->data_off + done, e);

		if (rc)
			return rc;
		sum = codec_crc32c_sum(sum, p->piece, n);
		done += n;
	}
	return !p->verify || sum == r->crc;
}

/* same_boot - whether the machine has not been off since the log was begun: then nothing that was
 * written is missing. */
static bool same_boot(const struct stage_log *l)
{
	uint8_t now[16], then[16];
	static const uint8_t none[16];

	boot_id(now);
	return io_pread(l->fd, then, sizeof(then), 24, NULL) == 0 &&
	       memcmp(now, none, 16) != 0 && memcmp(now, then, 16) == 0;
}

/* after_torn - there is no record at off. That is the torn end of the log, unless a record follows
 * that cannot have been written after that end: in the same boot any record; otherwise one that
 * states that off was on the disk. */
static int after_torn(struct replay *p, uint64_t off, struct err *e)
{
	bool any = same_boot(p->log);
	uint64_t at = off + 1;

	while (p->size > at && p->size - at >= REC_HEAD) {
		size_t n = (size_t)u64_min(PIECE, p->size - at);
		int rc = io_pread(p->log->fd, p->piece, n, at, e);

		if (rc)
			return rc;
		for (size_t i = 0; i + 4 <= n; i++) {
			struct rec r;

			if (p->piece[i] != (uint8_t)REC_MAGIC ||
			    rd_le32(&(struct slice){p->piece + i, 4, false}) != REC_MAGIC)
				continue;
			rc = head_at(p, at + i, &r, e);
			if (rc < 0)
				return rc;
			if (rc && (any || p->synced > off))
				return err_set(
					e, -EBADMSG,
					"'%s' is damaged at offset %" PRIu64
					": move it away to continue without its contents",
					p->log->name, off);
		}
		at += n - 3;
	}
	return 0;
}

int log_replay(struct stage_log *l, bool verify,
	       int (*fn)(void *arg, const struct rec *r, struct err *e), void *arg,
	       struct err *e)
{
	auto_free struct replay *p = alloc_array(1, sizeof(*p));
	auto_free uint8_t *piece = alloc_array(1, PIECE);
	uint64_t off = LOG_HEAD;
	struct stat st;
	struct rec r;
	int rc = 0;

	if (!p || !piece)
		return err_nomem(e);
	if (fstat(l->fd, &st) < 0)
		return err_sys(e, errno, "'%s'", l->name);
	p->log = l;
	p->size = (uint64_t)st.st_size;
	p->verify = verify;
	p->piece = piece;
	while (off < p->size) {
		rc = head_at(p, off, &r, e);
		if (rc > 0)
			rc = data_right(p, &r, e);
		if (rc <= 0)
			break;
		if (r.type < REC_PUT || r.type >= REC_TYPES || !right_keys(&r))
			return err_set(e, -EBADMSG,
				       "'%s' has an unknown record at offset %" PRIu64, l->name,
				       off);
		rc = fn(arg, &r, e);
		if (rc)
			return rc;
		off += r.bytes;
	}
	if (rc < 0)
		return rc;
	l->end = off;
	return off < p->size ? after_torn(p, off, e) : 0;
}
