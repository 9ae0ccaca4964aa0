/* SPDX-License-Identifier: BSD-3-Clause */
/* zip_end.c - the end of an archive (4.3.16), and its 64-bit form (4.3.14, 4.3.15).
 *
 * The end record is followed only by a comment of up to 64 KiB, which may contain anything, even
 * end records. A record is accepted if its comment ends with the file and a directory is at its
 * offset; the last acceptable one is used. */
#include "nczarr/store/zip_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/cursor.h"

#define END_SIG 0x06054b50u
#define END_BYTES 22
#define LOCATOR_SIG 0x07064b50u
#define LOCATOR_BYTES 20
#define END64_SIG 0x06064b50u
#define END64_BYTES 56
#define ENTRY_LEAST 46 /* bytes of a directory entry without a name */
#define COMMENT_MAX 65535
#define TAIL_BYTES ((uint64_t)128 << 10) /* of a remote archive that are fetched at once */

/* end_fields - as written. */
struct end_fields {
	uint64_t disk, dir_disk, n_here, n, dir_len, dir;
};

/* has_sig - 1, 0, or the error of the read. */
static int has_sig(struct blob *file, uint64_t at, uint32_t sig, struct err *e)
{
	uint8_t b[4];
	struct slice s = slice_of(b, sizeof(b));
	int rc;

	if (at > file->size || file->size - at < sizeof(b))
		return 0;
	rc = blob_read(file, at, b, sizeof(b), e);
	return rc < 0 ? rc : rd_le32(&s) == sig;
}

/* read_end64 - the 64-bit record at `at`: 1, 0 there is none, or the error of the read. */
static int read_end64(struct blob *file, uint64_t at, uint64_t limit, struct end_fields *ret,
		      struct err *e)
{
	uint8_t b[END64_BYTES];
	struct slice s = slice_of(b, sizeof(b));
	int rc;

	if (limit < END64_BYTES || at > limit - END64_BYTES)
		return 0;
	rc = blob_read(file, at, b, sizeof(b), e);
	if (rc < 0 || rd_le32(&s) != END64_SIG)
		return rc;
	rd_skip(&s, 8 + 2 + 2); /* its size, versions */
	ret->disk = rd_le32(&s);
	ret->dir_disk = rd_le32(&s);
	ret->n_here = rd_le64(&s);
	ret->n = rd_le64(&s);
	ret->dir_len = rd_le64(&s);
	ret->dir = rd_le64(&s);
	return 1;
}

/* zip_end_agree - whether a field of the old record equals the new one, or is a placeholder. */
static bool zip_end_agree(uint64_t old, uint64_t max, uint64_t new)
{
	return old == max || old == new;
}

/* zip_end_widen - replace f by the 64-bit record, if there is one. pos: of the end record;
 * ret_limit: upper limit of the end of the directory. */
static int zip_end_widen(struct blob *file, uint64_t pos, struct end_fields *f, bool *ret_is_64,
			 uint64_t *ret_limit, struct err *e)
{
	uint8_t b[LOCATOR_BYTES];
	struct slice s = slice_of(b, sizeof(b));
	struct end_fields wide;
	uint64_t at;
	int rc;

	*ret_is_64 = false;
	*ret_limit = pos;
	if (pos < LOCATOR_BYTES)
		return 0;
	rc = blob_read(file, pos - LOCATOR_BYTES, b, sizeof(b), e);
	if (rc < 0 || rd_le32(&s) != LOCATOR_SIG)
		return rc;
	rd_skip(&s, 4); /* disk of the record */
	at = rd_le64(&s);
	/* if there are bytes before the archive, it is not at its stated offset, but before the
	 * locator */
	rc = read_end64(file, at, pos - LOCATOR_BYTES, &wide, e);
	if (rc == 0 && pos >= LOCATOR_BYTES + END64_BYTES) {
		at = pos - LOCATOR_BYTES - END64_BYTES;
		rc = read_end64(file, at, pos - LOCATOR_BYTES, &wide, e);
	}
	if (rc <= 0)
		return rc;
	if (!zip_end_agree(f->disk, UINT16_MAX, wide.disk) ||
	    !zip_end_agree(f->dir_disk, UINT16_MAX, wide.dir_disk) ||
	    !zip_end_agree(f->n_here, UINT16_MAX, wide.n_here) ||
	    !zip_end_agree(f->n, UINT16_MAX, wide.n) ||
	    !zip_end_agree(f->dir_len, UINT32_MAX, wide.dir_len) ||
	    !zip_end_agree(f->dir, UINT32_MAX, wide.dir))
		return err_set(e, -EBADMSG,
			       "the zip archive's two end records contradict each other");
	*f = wide;
	*ret_is_64 = true;
	*ret_limit = at;
	return 0;
}

/* place_dir - check that a directory is at its offset in f, or shifted by the bytes before the
 * archive (for example a self-extracting program). */
static int place_dir(struct blob *file, const struct end_fields *f, uint64_t limit,
		     struct zip_end *ret, struct err *e)
{
	uint64_t stop;
	int rc;

	if (ckd_add(&stop, f->dir, f->dir_len) || stop > limit)
		return err_set(e, -EBADMSG,
			       "the directory of the zip archive, %" PRIu64
			       " bytes at offset %" PRIu64 ", does not end before %" PRIu64
			       ": truncated or damaged",
			       f->dir_len, f->dir, limit);
	if (f->n > f->dir_len / ENTRY_LEAST)
		return err_set(e, -EBADMSG,
			       "the zip archive's directory of %" PRIu64
			       " bytes cannot hold %" PRIu64 " entries",
			       f->dir_len, f->n);
	ret->dir = f->dir;
	ret->dir_len = f->dir_len;
	ret->n = f->n;
	ret->base = 0;
	if (f->dir_len == 0)
		return 0;
	rc = has_sig(file, f->dir, ZIP_ENTRY_SIG, e);
	if (rc == 0 && limit > stop) {
		ret->base = limit - stop;
		ret->dir += ret->base;
		rc = has_sig(file, ret->dir, ZIP_ENTRY_SIG, e);
	}
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return err_set(e, -EBADMSG, "the zip archive has no directory at %" PRIu64, f->dir);
}

/* believe - check the end record b at pos of the file. */
static int believe(struct blob *file, const uint8_t *b, uint64_t pos, struct zip_end *ret,
		   struct err *e)
{
	struct slice s = slice_of(b, END_BYTES);
	struct end_fields f;
	uint64_t limit;
	int rc;

	rd_skip(&s, 4);
	f.disk = rd_le16(&s);
	f.dir_disk = rd_le16(&s);
	f.n_here = rd_le16(&s);
	f.n = rd_le16(&s);
	f.dir_len = rd_le32(&s);
	f.dir = rd_le32(&s);
	rc = zip_end_widen(file, pos, &f, &ret->n_is_64, &limit, e);
	if (rc < 0)
		return rc;
	if (f.disk != 0 || f.dir_disk != 0 || f.n_here != f.n)
		return err_set(e, -EOPNOTSUPP, "the zip archive is split over several files");
	return place_dir(file, &f, limit, ret, e);
}

/* zip_end_scan - find the last acceptable end record in the file's last len bytes. *found: there
 * was one, acceptable or not. */
static int zip_end_scan(struct blob *file, size_t len, struct zip_end *ret, bool *found,
			struct err *e)
{
	const uint64_t size = file->size;
	auto_free uint8_t *tail = alloc_array(len, 1);
	int rc;

	if (!tail)
		return err_nomem(e);
	rc = blob_read(file, size - len, tail, len, e);
	if (rc < 0)
		return rc;
	*found = false;
	rc = -EBADMSG;
	/* files of other formats are searched as well, when a format bids for them */
	for (const uint8_t *p = tail + (len - END_BYTES + 1);
	     (p = memrchr(tail, 'P', (size_t)(p - tail)));) {
		const size_t i = (size_t)(p - tail);
		struct slice s = slice_of(p, END_BYTES);
		struct err first = ERR_INIT;
		int code;

		if (rd_le32(&s) != END_SIG)
			continue;
		rd_skip(&s, 16);
		if (rd_le16(&s) != len - i - END_BYTES)
			continue;
		code = believe(file, p, size - len + i, ret, &first);
		if (code == 0)
			return 0;
		if (!*found) {
			*found = true;
			rc = err_set(e, code, "%s", first.msg);
		}
	}
	return rc;
}

int zip_find_end(struct blob *b, struct zip_end *ret, struct err *e)
{
	const uint64_t size = b->size;
	struct blob_part tail = {.len = u64_min(size, TAIL_BYTES)};
	bool found = false;
	int rc = -EBADMSG;

	tail.off = size - tail.len;
	blob_want(b, &tail, 1); /* a comment, and the directory of most archives */
	/* nearly every archive has no comment */
	if (size >= END_BYTES)
		rc = zip_end_scan(b, END_BYTES, ret, &found, NULL);
	if ((rc == -EBADMSG || rc == -EOPNOTSUPP) && size >= END_BYTES)
		rc = zip_end_scan(b, (size_t)u64_min(size, END_BYTES + COMMENT_MAX), ret,
				  &found, e);
	if (rc == -EBADMSG && !found)
		return err_set(e, rc, "not a zip archive, or truncated: it has no end record");
	return rc;
}
