/* SPDX-License-Identifier: BSD-3-Clause */
/* index.c - the index file: information on members, so that they need not be opened again. It is in
 * a directory of the user's, but is not trusted: a checksum covers all of it, and every length is
 * checked.
 *
 *   8 bytes   "nczjoin" and the version
 *   u32       CRC-32C of all that follows
 *   text      the dimension; u8: others are compared
 *   u64       forms, each: u64 bytes, and the bytes (signature.c)
 *   u64       members, each: text path; u64 dev, ino, size, mtime s, ns, ctime s, ns; u64 length
 *             along the dimension; u64 digest of others; u32 forms, each u32; u32 form of the
 *             coordinate; u64 bytes of it, and they
 * Numbers are little-endian; a text is u64 bytes, its NUL included, and the bytes. */
#define LOG_COMPONENT LOG_SOURCE
#include "base/core/str.h"
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/io.h"
#include "base/observe/log.h"

#define KIND "nczjoin"
#define MAGIC KIND "\2"
#define HEAD 12
#define BYTES_MAX ((uint64_t)1 << 30)

/* ---- writing ---- */

static void index_put_member(struct buf *b, const struct concat_member *m)
{
	concat_put_text(b, m->path);
	for (size_t i = 0; i < ID_PARTS; i++)
		buf_put_le(b, m->id.v[i], 8);
	buf_put_le(b, m->len, 8);
	buf_put_le(b, m->others, 8);
	buf_put_le32(b, m->n_forms);
	for (uint32_t i = 0; i < m->n_forms; i++)
		buf_put_le32(b, m->forms[i]);
	buf_put_le32(b, m->coord_form);
	concat_put_blob(b, m->coord, m->n_coord);
}

/* index_worth - what a directory's identity says is not enough to believe anything of it. */
static bool index_worth(const struct concat_member *m)
{
	return m->known && !m->young && !m->id.dir;
}

static void index_put_all(struct buf *b, const struct concat *j)
{
	uint64_t n = 0;

	concat_put_text(b, j->dim);
	buf_putc(b, j->opts.equal);
	buf_put_le(b, j->forms.n, 8);
	for (size_t i = 0; i < j->forms.n; i++)
		concat_put_blob(b, j->forms.v[i].bytes, j->forms.v[i].n_bytes);
	for (size_t i = 0; i < j->n_members; i++)
		n += index_worth(&j->members[i]);
	buf_put_le(b, n, 8);
	for (size_t i = 0; i < j->n_members; i++)
		if (index_worth(&j->members[i]))
			index_put_member(b, &j->members[i]);
}

bool concat_index_may_be(const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char head[sizeof(KIND) - 1];
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = pread(fd, head, sizeof(head), 0);
	return n == 0 || (n == (ssize_t)sizeof(head) && memcmp(head, KIND, sizeof(head)) == 0);
}

/* write_beside - write the file under another name first, so that readers see the old one
 * meanwhile. */
static int write_beside(const char *path, const struct buf *b, struct err *e)
{
	auto_free char *tmp = NULL;
	int rc, fd;

	if (!concat_index_may_be(path))
		return err_set(e, -EEXIST, "'%s' exists and is not an index file", path);
	tmp = str_printf("%s.XXXXXX", path);
	if (!tmp)
		return err_nomem(e);
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, errno, "'%s'", path);
	rc = io_pwrite(fd, b->data, b->len, 0, e);
	if ((close(fd) < 0 || (rc == 0 && rename(tmp, path) < 0)) && rc == 0)
		rc = err_sys(e, errno, "'%s'", path);
	if (rc < 0)
		(void)unlink(tmp);
	return rc;
}

static bool all_known(const struct concat *j)
{
	for (size_t i = 0; i < j->n_members; i++)
		if (!j->members[i].known && !j->members[i].id.dir)
			return false;
	return true;
}

void concat_index_save(struct concat *j)
{
	struct err e = ERR_INIT;
	auto_buf b = buf_of((size_t)BYTES_MAX);
	uint32_t sum;
	int rc;

	if (!j->opts.index_file || !j->index_dirty)
		return;
	buf_put(&b, MAGIC, 8);
	buf_put_le32(&b, 0);
	index_put_all(&b, j);
	if (buf_ok(&b)) {
		sum = codec_crc32c_sum(0, b.data + HEAD, b.len - HEAD);
		put_le32(b.data + 8, sum);
		rc = write_beside(j->opts.index_file, &b, &e);
	} else {
		rc = buf_full(&b, &e, -EFBIG, "the index would be too large");
	}
	if (rc < 0)
		log_warn("the index of '%s' cannot be saved, so all files are read at each "
			 "start: %s",
			 concat_name(j->pattern), e.msg);
	j->index_dirty = rc == 0 && !all_known(j); /* a failure is logged once, and not tried
						    * again */
}

/* ---- reading ---- */

/* get_forms - numbers of this file's forms are those of the table: it is empty. */
static bool get_forms(struct concat *j, struct slice *s)
{
	uint64_t n = rd_le64(s);

	for (uint64_t i = 0; i < n && slice_ok(s); i++) {
		struct slice form = concat_get_blob(s);
		uint32_t number;

		if (!slice_ok(s) ||
		    concat_intern(&j->forms, form.p, form.len, &number, NULL) < 0 ||
		    number != i)
			return false;
	}
	return slice_ok(s);
}

/* index_by_path - the member of that name; NULL: none. Members are in natural order. */
static struct concat_member *index_by_path(const struct concat *j, const char *path)
{
	auto_free char *own = strdup(path);
	const struct concat_member key = {.path = own};

	return own ? bsearch(&key, j->members, j->n_members, sizeof(key), concat_by_name)
		   : NULL;
}

/* index_fits - check that a member's numbers, which may be hostile, are those of one dataset. */
static bool index_fits(const struct concat *j, const struct concat_member *m)
{
	const char *last = "";

	for (uint32_t i = 0; i < m->n_forms; i++) {
		const struct concat_form *f;

		if (m->forms[i] >= j->forms.n)
			return false;
		f = &j->forms.v[m->forms[i]];
		if (strcmp(last, f->path) >= 0 || f->shape[f->axis] > m->len ||
		    strcmp(f->dims[f->axis], j->dim) != 0)
			return false;
		last = f->path;
	}
	if (m->n_forms == 0 || m->len > INT64_MAX || m->coord_form != concat_coord_of(j, m))
		return false;
	return m->coord_form == CONCAT_NONE
		       ? m->n_coord == 0
		       : m->n_coord == m->len * j->forms.v[m->coord_form].type.size;
}

/* get_known - what the file says of one member, into *m. */
static void get_known(struct slice *s, struct concat_member *m)
{
	struct slice coord;

	m->len = rd_le64(s);
	m->others = rd_le64(s);
	m->n_forms = rd_le32(s);
	s->bad = s->bad || m->n_forms > s->len / 4;
	if (!slice_ok(s))
		return;
	m->forms = alloc_array(m->n_forms, sizeof(*m->forms));
	for (uint32_t i = 0; m->forms && i < m->n_forms; i++)
		m->forms[i] = rd_le32(s);
	m->coord_form = rd_le32(s);
	coord = concat_get_blob(s);
	m->coord = alloc_array(coord.len, 1);
	if (!m->forms || !m->coord)
		s->bad = true;
	else if (coord.len > 0)
		memcpy(m->coord, coord.p, coord.len);
	m->n_coord = coord.len;
}

static void get_member(struct concat *j, struct slice *s)
{
	struct concat_member known = {.path = NULL}, *m;
	const char *path = concat_get_text(s);

	for (size_t i = 0; i < ID_PARTS; i++)
		known.id.v[i] = rd_le64(s);
	get_known(s, &known);
	m = slice_ok(s) ? index_by_path(j, path) : NULL;
	if (!m || m->known || !concat_id_same(&m->id, &known.id) || !index_fits(j, &known)) {
		concat_member_forget(&known);
		return;
	}
	known.path = m->path;
	known.rank = m->rank;
	known.known = true;
	*m = known;
}

/* index_read_file - the whole of it; NULL: there is none, or it cannot be read. */
static uint8_t *index_read_file(const char *path, size_t *ret_len)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	auto_free uint8_t *data = NULL;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < HEAD ||
	    (uint64_t)st.st_size > BYTES_MAX)
		return NULL;
	data = alloc_array((size_t)st.st_size, 1);
	if (!data || io_pread(fd, data, (size_t)st.st_size, 0, NULL) < 0)
		return NULL;
	*ret_len = (size_t)st.st_size;
	return steal(&data);
}

bool concat_index_parse(struct concat *j, const uint8_t *data, size_t len)
{
	struct slice s = slice_of(data, len);
	uint64_t n;
	uint32_t sum;

	if (len < HEAD || memcmp(rd_bytes(&s, 8), MAGIC, 8) != 0)
		return false;
	sum = rd_le32(&s);
	if (codec_crc32c_sum(0, s.p, s.len) != sum ||
	    strcmp(concat_get_text(&s), j->dim) != 0 || rd_u8(&s) != j->opts.equal ||
	    !slice_ok(&s) || !get_forms(j, &s))
		return false;
	n = rd_le64(&s);
	for (uint64_t i = 0; i < n && slice_ok(&s); i++)
		get_member(j, &s);
	return slice_ok(&s) && s.len == 0;
}

void concat_index_drop(struct concat *j)
{
	if (j->opts.index_file && concat_index_may_be(j->opts.index_file) &&
	    unlink(j->opts.index_file) == 0)
		log_info("the index of '%s' is wrong: it is rebuilt", concat_name(j->pattern));
}

void concat_index_load(struct concat *j)
{
	auto_free uint8_t *data = NULL;
	size_t len = 0;

	j->index_dirty = true;
	if (!j->opts.index_file)
		return;
	data = index_read_file(j->opts.index_file, &len);
	if (!data)
		return;
	if (!concat_index_parse(j, data, len)) {
		for (size_t i = 0; i < j->n_members; i++)
			concat_member_forget(&j->members[i]);
		log_info("the index of '%s' belongs to another join or is damaged: it is "
			 "rebuilt",
			 concat_name(j->pattern));
		return;
	}
	j->index_dirty = !all_known(j);
}
