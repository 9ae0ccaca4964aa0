/* SPDX-License-Identifier: BSD-3-Clause */
/* zip_directory.c - the central directory (4.3.12): read once, in pieces, into a sorted table.
 *
 * It rejects an archive with invalid entries: names that lead outside, impossible sizes,
 * overlapping entries. One of them makes the rest untrustworthy, so that the whole archive fails,
 * with the name of the entry. */
#include "nczarr/store/zip_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/cursor.h"
#include "base/core/utf8.h"

#define ENTRY_BYTES 46
#define WINDOW ((size_t)256 << 10) /* more than the longest entry */
#define DIGITAL_SIG 0x05054b50u    /* 4.3.13, after the entries */
#define EXTRA_ZIP64 0x0001
#define FLAG_ENCRYPTED 0x0001
#define FLAG_PATCH 0x0020
#define FLAG_HIDDEN 0x2000 /* the directory is encrypted */
#define FLAG_UTF8 0x0800
#define INFLATE_MOST 1032 /* limit of the compression ratio of deflate */
#define MADE_ON_UNIX 3
#define MADE_ON_DARWIN 19

/* zip_directory_record - one entry of the directory. name is borrowed. */
struct zip_directory_record {
	unsigned made_on, flags, method;
	uint32_t crc, disk, attrs;
	uint64_t stored, size, at;
	const char *name;
	size_t name_len;
};

/* zip_directory_reader - a window on the directory. */
struct zip_directory_reader {
	struct blob *blob;
	uint64_t next, stop; /* the unread part */
	uint8_t *buf;        /* WINDOW bytes; owned */
	size_t pos, have;
};

/* zip_directory_fill - read until the window has `want` bytes, or the end. */
static int zip_directory_fill(struct zip_directory_reader *r, size_t want, struct err *e)
{
	size_t n;
	int rc;

	if (r->have - r->pos >= want || r->next == r->stop)
		return 0;
	memmove(r->buf, r->buf + r->pos, r->have - r->pos);
	r->have -= r->pos;
	r->pos = 0;
	n = (size_t)u64_min(WINDOW - r->have, r->stop - r->next);
	rc = blob_read(r->blob, r->next, r->buf + r->have, n, e);
	if (rc < 0)
		return rc;
	r->have += n;
	r->next += n;
	return 0;
}

/* wide_fields - apply the 64-bit extra field (4.5.3), which has the fields that did not fit. */
static bool wide_fields(struct slice extra, struct zip_directory_record *r)
{
	bool size = r->size == UINT32_MAX, stored = r->stored == UINT32_MAX;
	bool at = r->at == UINT32_MAX, disk = r->disk == UINT16_MAX;

	if (!size && !stored && !at && !disk)
		return true;
	while (extra.len >= 4) {
		unsigned id = rd_le16(&extra);
		size_t len = rd_le16(&extra);
		const uint8_t *p = rd_bytes(&extra, len);
		struct slice s;

		if (!p)
			return false;
		if (id != EXTRA_ZIP64)
			continue;
		s = slice_of(p, len);
		if (size)
			r->size = rd_le64(&s);
		if (stored)
			r->stored = rd_le64(&s);
		if (at)
			r->at = rd_le64(&s);
		if (disk)
			r->disk = rd_le32(&s);
		return slice_ok(&s);
	}
	return false;
}

/* next_record - returns 1 with *ret, 0 at the end of the directory. */
static int next_record(struct zip_directory_reader *rd, uint64_t nth,
		       struct zip_directory_record *ret, struct err *e)
{
	struct slice s;
	size_t extra_len, comment_len;
	const uint8_t *extra;
	uint32_t sig;
	int rc = zip_directory_fill(rd, ENTRY_BYTES + 3 * (size_t)UINT16_MAX, e);

	if (rc < 0)
		return rc;
	if (rd->have == rd->pos)
		return 0;
	s = slice_of(rd->buf + rd->pos, rd->have - rd->pos);
	sig = rd_le32(&s);
	if (slice_ok(&s) && sig == DIGITAL_SIG && nth > 0)
		return 0;
	rd_skip(&s, 1);
	*ret = (struct zip_directory_record){.made_on = rd_u8(&s)};
	rd_skip(&s, 2);
	ret->flags = rd_le16(&s);
	ret->method = rd_le16(&s);
	rd_skip(&s, 4);
	ret->crc = rd_le32(&s);
	ret->stored = rd_le32(&s);
	ret->size = rd_le32(&s);
	ret->name_len = rd_le16(&s);
	extra_len = rd_le16(&s);
	comment_len = rd_le16(&s);
	ret->disk = rd_le16(&s);
	rd_skip(&s, 2);
	ret->attrs = rd_le32(&s);
	ret->at = rd_le32(&s);
	ret->name = (const char *)rd_bytes(&s, ret->name_len);
	extra = rd_bytes(&s, extra_len);
	rd_skip(&s, comment_len);
	if (!slice_ok(&s) || sig != ZIP_ENTRY_SIG)
		return err_set(e, -EBADMSG,
			       "the zip archive's directory is damaged at entry %" PRIu64, nth);
	if (!wide_fields(slice_of(extra, extra_len), ret))
		return err_set(e, -EBADMSG, "zip entry '%.*s': its 64-bit sizes are missing",
			       (int)ret->name_len, ret->name);
	rd->pos = rd->have - s.len;
	return 1;
}

/* dotted - whether a name starts with "./", or is ".": some writers prefix all names so. */
static bool dotted(const char *name, size_t n)
{
	return n > 0 && name[0] == '.' && (n == 1 || name[1] == '/');
}

/* zip_directory_check_name - check that r->name is a valid key, with an optional '/' at its end
 * and "./" at its start. */
static int zip_directory_check_name(const struct zip_directory_record *r, struct err *e)
{
	char name[ZIP_NAME_MAX + 1];
	size_t n = r->name_len;

	if (n > 0 && r->name[n - 1] == '/')
		n--;
	if (n > ZIP_NAME_MAX)
		return err_set(e, -ERANGE,
			       "zip entry '%.100s...': its name has %zu bytes, the limit is %d",
			       r->name, r->name_len, ZIP_NAME_MAX);
	if (memchr(r->name, '\0', n))
		return err_set(e, -EBADMSG, "zip entry '%.*s': its name contains a NUL", (int)n,
			       r->name);
	memcpy(name, r->name, n);
	name[n] = '\0';
	if (!(dotted(name, n) && (n == 1 || store_key_ok(name + 2))) && !store_key_ok(name))
		return err_set(e, -EBADMSG,
			       "zip entry '%.200s': its name is absolute or has an empty part, "
			       "'.' or '..'",
			       name);
	if (strchr(name, '\\'))
		return err_set(e, -EBADMSG, "zip entry '%.200s': its name contains a backslash",
			       name);
	/* without the flag the name is in an unknown code page; if it is valid UTF-8 or ASCII, it
	 * is taken as such */
	if (!utf8_ok(name, n)) {
		for (size_t i = 0; i < n; i++)
			if ((unsigned char)name[i] > 0x7f)
				name[i] = '?';
		return err_set(e, -EBADMSG, "zip entry '%.200s': its name is not UTF-8%s", name,
			       r->flags & FLAG_UTF8 ? ", although it is marked as UTF-8" : "");
	}
	return 0;
}

/* method_of - an enum zip_method. A directory or link of Unix is one by its mode. */
static uint8_t method_of(const struct zip_directory_record *r)
{
	const bool has_mode = r->made_on == MADE_ON_UNIX || r->made_on == MADE_ON_DARWIN;
	const mode_t mode = has_mode ? r->attrs >> 16 : 0;

	if (r->name[r->name_len - 1] == '/' || (S_ISDIR(mode) && r->size == 0))
		return ZIP_FOLDER;
	/* entries written from a pipe are marked as one, and are ordinary data */
	if (S_ISLNK(mode))
		return ZIP_LINK;
	if (r->method >= ZIP_LINK || (r->flags & FLAG_PATCH))
		return ZIP_UNKNOWN;
	return (uint8_t)r->method;
}

/* check_sizes - check that the entry is inside the archive, and that its size is possible. */
static int check_sizes(const struct zip *z, const struct zip_directory_record *r,
		       uint8_t method, struct err *e)
{
	const char *name = r->name;
	int len = (int)r->name_len;
	uint64_t stop, most;

	if (method == ZIP_FOLDER)
		return 0;
	if (ckd_add(&stop, r->at, z->offsets_base) ||
	    ckd_add(&stop, stop, (uint64_t)ZIP_LOCAL_BYTES + r->name_len) ||
	    ckd_add(&stop, stop, r->stored) || stop > z->dir)
		return err_set(e, -EBADMSG,
			       "zip entry '%.*s': its %" PRIu64 " bytes at offset %" PRIu64
			       " overlap the directory at %" PRIu64,
			       len, name, r->stored, r->at, z->dir);
	if (method == ZIP_STORED && r->size != r->stored)
		return err_set(e, -EBADMSG,
			       "zip entry '%.*s' is not compressed, but has %" PRIu64
			       " bytes instead of %" PRIu64,
			       len, name, r->stored, r->size);
	if (method == ZIP_DEFLATED && !ckd_mul(&most, r->stored, (uint64_t)INFLATE_MOST) &&
	    r->size > most)
		return err_set(e, -EBADMSG,
			       "zip entry '%.*s': %" PRIu64 " bytes cannot inflate to %" PRIu64,
			       len, name, r->stored, r->size);
	if (r->size > INT64_MAX)
		return err_set(e, -EBADMSG, "zip entry '%.*s' is too large: %" PRIu64 " bytes",
			       len, name, r->size);
	return 0;
}

static int check_record(const struct zip *z, const struct zip_directory_record *r,
			struct err *e)
{
	int rc = zip_directory_check_name(r, e);

	if (rc < 0)
		return rc;
	if (r->flags & (FLAG_ENCRYPTED | FLAG_HIDDEN))
		return err_set(e, -EOPNOTSUPP, "zip entry '%.*s' is encrypted",
			       (int)r->name_len, r->name);
	if (r->disk != 0)
		return err_set(
			e, -EOPNOTSUPP,
			"zip entry '%.*s' is in another file of a split archive, number %u",
			(int)r->name_len, r->name, (unsigned int)r->disk);
	return check_sizes(z, r, method_of(r), e);
}

static int zip_directory_add(struct zip *z, size_t *cap, struct buf *names,
			     const struct zip_directory_record *r, struct err *e)
{
	size_t len = r->name_len - (r->name[r->name_len - 1] == '/');
	struct zip_entry *x;

	if (grow_array(&z->entries, cap, z->n + 1, sizeof(*z->entries)))
		return err_nomem(e);
	x = &z->entries[z->n++];
	*x = (struct zip_entry){
		.stored = r->stored,
		.size = r->size,
		.crc = r->crc,
		.name = (uint32_t)names->len,
		.name_len = (uint16_t)len,
		.method = method_of(r),
	};
	atomic_init(&x->at, r->at + z->offsets_base);
	buf_put(names, r->name, len);
	return buf_ok(names) ? 0 : err_nomem(e);
}

/* zip_directory_read_all - all entries, in the directory's order. */
static int zip_directory_read_all(struct zip *z, struct zip_directory_reader *rd,
				  const struct zip_end *end, uint64_t max_meta,
				  struct buf *names, struct err *e)
{
	/* memory for the table, its sort, and the check for overlaps */
	const uint64_t each = 2 * sizeof(struct zip_entry) + 2 * sizeof(uint64_t);
	struct zip_directory_record r;
	size_t cap = 0;
	int rc;

	if (end->n > max_meta / each)
		return err_set(e, -ERANGE,
			       "%" PRIu64 " zip entries need more memory than %" PRIu64
			       " bytes (half of -o memory)",
			       end->n, max_meta);
	while ((rc = next_record(rd, z->n, &r, e)) > 0) {
		rc = check_record(z, &r, e);
		if (rc < 0)
			return rc;
		if ((z->n + 1) * each + names->len + r.name_len > max_meta ||
		    names->len + r.name_len > UINT32_MAX)
			return err_set(e, -ERANGE,
				       "a zip directory of more than %zu entries needs more "
				       "memory than %" PRIu64 " bytes (half of -o memory)",
				       z->n, max_meta);
		rc = zip_directory_add(z, &cap, names, &r, e);
		if (rc < 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	if (end->n_is_64 ? z->n != end->n : (z->n & UINT16_MAX) != end->n)
		return err_set(
			e, -EBADMSG,
			"the zip archive has %zu entries, but its end record states %" PRIu64,
			z->n, end->n);
	return 0;
}

/* ---- the sorted table ---- */

/* zip_directory_by_name - sort by name; equal names in the order of the directory. */
static int zip_directory_by_name(const void *a, const void *b, void *arg)
{
	const struct zip_entry *x = a, *y = b;
	const char *names = arg;
	int c = sorted_keys_cmp(names + x->name, x->name_len, names + y->name, y->name_len);

	return c ? c : (x->name > y->name) - (x->name < y->name);
}

/* drop_doubles - of entries with the same name keep the last one. */
static void drop_doubles(struct zip *z)
{
	size_t kept = 0;

	for (size_t i = 0; i < z->n; i++) {
		const struct zip_entry *x = &z->entries[i], *y = x + 1;

		if (i + 1 < z->n && x->name_len == y->name_len &&
		    memcmp(zip_name(z, x), zip_name(z, y), x->name_len) == 0)
			continue;
		if (kept != i)
			memcpy(&z->entries[kept], x, sizeof(*x));
		kept++;
	}
	z->n = kept;
}

/* check_tree - check that no name is below a file. Some writers mark folders by empty files. */
static int check_tree(struct zip *z, struct err *e)
{
	for (size_t i = 0; i + 1 < z->n; i++) {
		struct zip_entry *x = &z->entries[i];
		const struct zip_entry *y = x + 1;

		if (x->method == ZIP_FOLDER || y->name_len <= x->name_len ||
		    zip_name(z, y)[x->name_len] != '/' ||
		    memcmp(zip_name(z, x), zip_name(z, y), x->name_len) != 0)
			continue;
		if (x->size > 0)
			return err_set(
				e, -EBADMSG,
				"zip entry '%.*s' is a file, but other entries lie below it",
				(int)x->name_len, zip_name(z, x));
		x->method = ZIP_FOLDER;
	}
	return 0;
}

/* extent - the bytes that an entry certainly takes. */
struct extent {
	uint64_t at;
	size_t entry;
};

static int by_offset(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* check_overlaps - no two entries share bytes. Folders have none, and some writers do not even
 * give them a place of their own. */
static int check_overlaps(const struct zip *z, struct err *e)
{
	auto_free struct extent *x = alloc_array(z->n, sizeof(*x));
	size_t n = 0;
	bool sorted = true;

	if (!x)
		return err_nomem(e);
	for (size_t i = 0; i < z->n; i++) {
		if (z->entries[i].method == ZIP_FOLDER)
			continue;
		x[n].at = atomic_load_explicit(&z->entries[i].at, memory_order_relaxed);
		x[n].entry = i;
		sorted = sorted && (n == 0 || x[n - 1].at <= x[n].at);
		n++;
	}
	if (!sorted)
		qsort(x, n, sizeof(*x), by_offset);
	for (size_t i = 0; i + 1 < n; i++) {
		const struct zip_entry *a = &z->entries[x[i].entry];
		const struct zip_entry *b = &z->entries[x[i + 1].entry];

		/* does not overflow: it ends before the directory */
		if (x[i].at + ZIP_LOCAL_BYTES + a->name_len + a->stored > x[i + 1].at)
			return err_set(e, -EBADMSG,
				       "zip entries '%.*s' and '%.*s' overlap in the archive",
				       a->name_len < 150 ? a->name_len : 150, zip_name(z, a),
				       b->name_len < 150 ? b->name_len : 150, zip_name(z, b));
	}
	return 0;
}

/* top_of - length of the name of the one folder that everything is in; 0 when there is none. Since
 * entries are sorted, it is enough to look at the first and the last. */
static size_t top_of(const struct zip *z)
{
	const struct zip_entry *first = z->entries, *last;
	const char *name, *slash;
	size_t top;

	if (z->n == 0)
		return 0;
	last = first + z->n - 1;
	name = zip_name(z, first);
	slash = memchr(name, '/', first->name_len);
	top = slash ? (size_t)(slash - name) : first->name_len;
	if (!slash && first->method != ZIP_FOLDER)
		return 0;
	if (last->name_len < top || memcmp(zip_name(z, last), name, top) != 0 ||
	    (last->name_len > top && zip_name(z, last)[top] != '/'))
		return 0;
	return top;
}

/* zip_directory_enter - make the only top-level folder the root: remove its name from all
 * others. */
static void zip_directory_enter(struct zip *z, size_t top)
{
	size_t cut = top + 1;

	if (z->entries[0].name_len == top) {
		z->n--;
		memmove(z->entries, z->entries + 1, z->n * sizeof(*z->entries));
	}
	z->root += cut;
	for (size_t i = 0; i < z->n; i++) {
		z->entries[i].name += (uint32_t)cut;
		z->entries[i].name_len = (uint16_t)(z->entries[i].name_len - cut);
	}
}

/* find_root - the folder that everything is in; within ".", where names begin so. */
static int find_root(struct zip *z, struct err *e)
{
	size_t top = top_of(z);

	if (top == 1 && zip_name(z, z->entries)[0] == '.') {
		zip_directory_enter(z, top);
		top = top_of(z);
	}
	for (size_t i = 0; i < z->n; i++) {
		const struct zip_entry *x = &z->entries[i];

		if (dotted(zip_name(z, x), x->name_len))
			return err_set(e, -EBADMSG,
				       "zip entry '%.*s' begins with './', but not all do",
				       (int)x->name_len, zip_name(z, x));
	}
	if (top > 0)
		zip_directory_enter(z, top);
	return 0;
}

int zip_read_dir(struct zip *z, const struct zip_end *end, uint64_t max_meta, struct err *e)
{
	auto_free uint8_t *window = alloc_array(WINDOW, 1);
	struct zip_directory_reader rd = {.blob = z->blob,
					  .next = end->dir,
					  .stop = end->dir + end->dir_len,
					  .buf = window};
	const struct blob_part dir = {end->dir, u64_min(end->dir_len, max_meta)};
	auto_buf names = buf_of(SIZE_MAX);
	void *fit;
	size_t len;
	int rc;

	if (!window)
		return err_nomem(e);
	blob_want(z->blob, &dir, 1);
	z->dir = end->dir;
	z->offsets_base = end->base;
	rc = zip_directory_read_all(z, &rd, end, max_meta, &names, e);
	z->names = (char *)buf_take(&names, &len);
	if (rc < 0)
		return rc;

	if (z->n > 1)
		qsort_r(z->entries, z->n, sizeof(*z->entries), zip_directory_by_name, z->names);
	drop_doubles(z);
	rc = check_tree(z, e);
	rc = rc ? rc : check_overlaps(z, e);
	rc = rc ? rc : find_root(z, e);
	if (rc < 0)
		return rc;
	/* shrink to size; a failure is harmless */
	fit = z->n ? realloc(z->entries, z->n * sizeof(*z->entries)) : NULL;
	if (fit)
		z->entries = fit;
	fit = len ? realloc(z->names, len) : NULL;
	if (fit)
		z->names = fit;
	return 0;
}
