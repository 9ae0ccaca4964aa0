/* SPDX-License-Identifier: BSD-3-Clause */
/* write_parquet.c - references as kerchunk's directory of Parquet files: .zmetadata with the
 * documents and the number of references per file, and for each array files of that many rows, one
 * for each chunk of its grid in C order. Only the rows of one file are in memory. */
#include "nczarr/refs/write_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/io.h"
#include "base/core/str.h"
#include "nczarr/parquet/parquet.h"

#define RECORDS 100000                 /* references in a file */
#define WAITS_MAX ((uint64_t)64 << 20) /* bytes of chunks in one group of rows */
#define EMPTY_MAX                                                                              \
	1000 /* arrays with up to this many files also have those without any reference: listings
	      * look for them */

struct parquet_out {
	const char *dir;
	int dir_fd;
	int meta_fd;
	struct buf meta; /* of .zmetadata, not written yet */
	bool any;        /* document was written */
	uint64_t records;
	/* the array */
	struct buf key;
	uint64_t n;      /* chunks */
	int array_fd;    /* its directory; -1: not made yet */
	int fd;          /* of the file that is written; -1 */
	uint64_t record; /* its number, or that of the next */
	struct pq_writer *w;
};

static int flush_meta(struct parquet_out *p, size_t above, struct err *e)
{
	struct stat st;
	int rc;

	if (!buf_ok(&p->meta))
		return err_nomem(e);
	if (p->meta.len <= above)
		return 0;
	if (fstat(p->meta_fd, &st) < 0)
		return err_sys(e, errno, "cannot write the references");
	rc = io_pwrite(p->meta_fd, p->meta.data, p->meta.len, (uint64_t)st.st_size, e);
	buf_clear(&p->meta);
	return rc;
}

static int write_parquet_put_doc(void *arg, const char *key, const struct buf *text, bool all,
				 struct err *e)
{
	struct parquet_out *p = arg;

	if (all)
		return 0;
	buf_puts(&p->meta, p->any ? ",\n" : "\n");
	p->any = true;
	str_put_json(&p->meta, key, strlen(key));
	buf_puts(&p->meta, ": ");
	buf_put(&p->meta, text->data, text->len);
	return flush_meta(p, (size_t)256 << 10, e);
}

/* open_array - make the directory of the array and its parents. */
static int open_array(struct parquet_out *p, struct err *e)
{
	auto_fd int at = fcntl(p->dir_fd, F_DUPFD_CLOEXEC, 0);
	char *key = (char *)p->key.data, *slash;

	for (; at >= 0 && *key; key = slash ? slash + 1 : key + strlen(key)) {
		int next;

		slash = strchr(key, '/');
		if (slash)
			*slash = '\0';
		next = mkdirat(at, key, 0777) < 0 && errno != EEXIST
			       ? -1
			       : openat(at, key,
					O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (slash)
			*slash = '/';
		if (next < 0)
			break;
		(void)close(at); /* it was not written to */
		at = next;
	}
	if (at < 0 || *key)
		return err_sys(e, errno, "'%.200s'", (const char *)p->key.data);
	p->array_fd = at;
	at = -1;
	return 0;
}

static int open_record(struct parquet_out *p, struct err *e)
{
	char name[48];
	int rc = p->array_fd < 0 ? open_array(p, e) : 0;

	if (rc || p->fd >= 0)
		return rc;
	(void)snprintf(name, sizeof(name), "refs.%" PRIu64 ".parq", p->record);
	p->fd = openat(p->array_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		       0666);
	return p->fd < 0 ? err_sys(e, errno, "'%.200s/%s'", (const char *)p->key.data, name)
			 : 0;
}

static int write_parquet_fill(struct parquet_out *p, uint64_t until, struct err *e)
{
	int rc = 0;

	while (rc == 0 && pq_writer_rows(p->w) < until)
		rc = pq_writer_row(p->w, NULL, 0, 0, NULL, 0, e);
	return rc;
}

/* end_record - complete the file with its footer. */
static int end_record(struct parquet_out *p, struct err *e)
{
	int rc = write_parquet_fill(p, u64_min(p->records, p->n - p->record * p->records), e);

	if (rc == 0)
		rc = pq_writer_end(p->w, p->fd, e);
	if (rc == 0)
		rc = io_sync(p->fd, true, e);
	if (close(p->fd) < 0 && rc == 0)
		rc = err_sys(e, errno, "cannot write the references");
	p->fd = -1;
	p->record++;
	return rc;
}

/* go_to - complete the files before a record, and open its file. */
static int go_to(struct parquet_out *p, uint64_t record, bool open, struct err *e)
{
	const bool all = (p->n - 1) / p->records < EMPTY_MAX;
	int rc = 0;

	while (rc == 0 && p->record < record) {
		if (p->fd < 0 && !all) {
			p->record = record;
			break;
		}
		rc = open_record(p, e);
		if (rc == 0)
			rc = end_record(p, e);
	}
	return rc == 0 && open ? open_record(p, e) : rc;
}

static int write_parquet_begin_array(void *arg, const char *key, uint64_t n, struct err *e)
{
	struct parquet_out *p = arg;

	buf_clear(&p->key);
	buf_puts(&p->key, key);
	buf_putc(&p->key, '\0');
	p->n = n;
	p->record = 0;
	return buf_ok(&p->key) ? 0 : err_nomem(e);
}

static int write_parquet_put_chunk(void *arg, const char *name NZ_UNUSED, uint64_t linear,
				   const struct refs_chunk *c, struct err *e)
{
	struct parquet_out *p = arg;
	int rc = go_to(p, linear / p->records, true, e);

	if (rc == 0)
		rc = write_parquet_fill(p, linear % p->records, e);
	if (rc == 0)
		rc = pq_writer_row(p->w, c->data ? NULL : c->url, c->whole ? 0 : c->off,
				   c->data || c->whole ? 0 : c->len, c->data, c->len, e);
	if (rc == 0 && pq_writer_waits(p->w) > WAITS_MAX)
		rc = pq_writer_flush(p->w, p->fd, e);
	return rc;
}

static int write_parquet_end_array(void *arg, struct err *e)
{
	struct parquet_out *p = arg;
	int rc = 0;

	if (p->n > 0)
		rc = go_to(p, (p->n - 1) / p->records + 1, false, e);
	if (p->array_fd >= 0)
		(void)close(p->array_fd); /* it was not written to */
	p->array_fd = -1;
	return rc;
}

static int write_all(struct parquet_out *p, struct source *s, struct view *v,
		     const struct refs_options *opts, struct err *e)
{
	const struct refs_out out = {
		.arg = p,
		.doc = write_parquet_put_doc,
		.begin = write_parquet_begin_array,
		.chunk = write_parquet_put_chunk,
		.end = write_parquet_end_array,
	};
	int rc = pq_writer_new(&p->w, e);

	if (rc)
		return rc;
	buf_puts(&p->meta, "{\"zarr_consolidated_format\": 1, \"metadata\": {");
	rc = refs_walk(s, v, opts, &out, e);
	if (rc)
		return rc;
	buf_printf(&p->meta, "\n}, \"record_size\": %" PRIu64 "}\n", p->records);
	rc = flush_meta(p, 0, e);
	if (rc == 0)
		rc = io_sync(p->meta_fd, true, e);
	return rc ? rc : io_sync(p->dir_fd, true, e);
}

int refs_parquet(struct source *s, struct view *v, const struct refs_options *opts,
		 const char *dir, struct err *e)
{
	struct parquet_out p = {
		.dir = dir,
		.dir_fd = -1,
		.meta_fd = -1,
		.array_fd = -1,
		.fd = -1,
		.records = opts->records ? opts->records : RECORDS,
	};
	const struct zr_visible *shown = zr_view_visible(v);
	int rc = 0;

	if (shown && shown->keys.nested)
		return err_set(e, -EINVAL,
			       "Parquet references support dimension_separator=. only");
	if (mkdir(dir, 0777) < 0)
		return err_sys(e, errno, "'%.200s'", dir);
	p.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (p.dir_fd >= 0)
		p.meta_fd = openat(p.dir_fd, ".zmetadata",
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (p.meta_fd < 0)
		rc = err_sys(e, errno, "'%.200s'", dir);
	buf_init(&p.meta, SIZE_MAX / 2);
	buf_init(&p.key, (size_t)1 << 20);
	if (rc == 0)
		rc = write_all(&p, s, v, opts, e);
	pq_writer_free(p.w);
	buf_release(&p.meta);
	buf_release(&p.key);
	for (size_t i = 0; i < 4; i++) {
		int fd = (int[]){p.dir_fd, p.meta_fd, p.array_fd, p.fd}[i];

		if (fd >= 0)
			(void)close(
				fd); /* rc has the result of the writes */
	}
	return rc;
}
