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
#include <unistd.h>

#include "base/os/io.h"
#include "base/os/lock.h"
#include "base/os/open_beneath.h"

#define RECORDS 100000                 /* references in a file */
#define PENDING_MAX ((uint64_t)64 << 20) /* bytes of chunks in one group of rows */
#define EMPTY_MAX                                                                              \
	1000 /* arrays with up to this many files also have those without any reference: listings
	      * look for them */

/* Spec: kerchunk, "References specification", Parquet. */
enum { PATH, OFFSET, SIZE, RAW };
static const struct pq_field columns[] = {
	[PATH] = {"path", PQ_TEXT, true, false},
	[OFFSET] = {"offset", PQ_INT, false, false},
	[SIZE] = {"size", PQ_INT, false, false},
	[RAW] = {"raw", PQ_RAW, true, false},
};

struct parquet_out {
	struct refs_part *part;
	uint64_t records;
	bool sync; /* each file */
	/* the array */
	struct buf key;
	uint64_t n;      /* chunks */
	int array_fd;    /* its directory; -1: not made yet */
	int fd;          /* of the file that is written; -1 */
	uint64_t record; /* its number, or that of the next */
	struct pq_writer *w;
};

static int write_parquet_put_doc(void *arg, const char *key, const struct buf *text,
				 struct err *e)
{
	struct parquet_out *p = arg;

	refs_part_key(p->part, key);
	buf_put(&p->part->text, text->data, text->len);
	return buf_ok(&p->part->text) ? 0 : err_nomem(e);
}

/* open_array - make the directory of the array and its parents. */
static int open_array(struct parquet_out *p, struct err *e)
{
	auto_fd int at = fcntl(p->part->set->dir_fd, F_DUPFD_CLOEXEC, 0);
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

/* put_row - add a row. c: NULL: no reference. */
static int put_row(struct parquet_out *p, const struct refs_chunk *c, struct err *e)
{
	const bool inlined = c && c->data, ranged = c && !c->data && !c->whole;
	const struct pq_cell row[] = {
		[PATH] = {c && !inlined, c && !inlined ? strlen(c->url) : 0, c ? c->url : NULL},
		[OFFSET] = {true, ranged ? c->off : 0, NULL},
		[SIZE] = {true, ranged ? c->len : 0, NULL},
		[RAW] = {inlined, inlined ? c->len : 0, inlined ? c->data : NULL},
	};

	return pq_writer_row(p->w, row, e);
}

static int write_parquet_fill(struct parquet_out *p, uint64_t until, struct err *e)
{
	int rc = 0;

	while (rc == 0 && pq_writer_rows(p->w) < until)
		rc = put_row(p, NULL, e);
	return rc;
}

/* end_record - complete the file with its footer. */
static int end_record(struct parquet_out *p, struct err *e)
{
	int rc = write_parquet_fill(p, u64_min(p->records, p->n - p->record * p->records), e);

	rc = rc ? rc : pq_writer_end(p->w, p->fd, e);
	if (rc == 0 && p->sync)
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
		rc = rc ? rc : end_record(p, e);
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

	rc = rc ? rc : write_parquet_fill(p, linear % p->records, e);
	rc = rc ? rc : put_row(p, c, e);
	if (rc == 0 && pq_writer_pending(p->w) > PENDING_MAX)
		rc = pq_writer_flush(p->w, p->fd, e);
	return rc;
}

static int write_parquet_end_array(void *arg, struct err *e)
{
	struct parquet_out *p = arg;
	int rc = 0;

	if (p->n > 0)
		rc = go_to(p, (p->n - 1) / p->records + 1, false, e);
	close_fd(&p->array_fd); /* it was not written to */
	return rc;
}

/* take_writer, give_writer - a writer keeps its memory from one dataset to the next. */
static int take_writer(struct refs_set *set, struct pq_writer **ret, struct err *e)
{
	LOCK_SCOPE(&set->lock);

	*ret = set->n_idle ? set->idle[--set->n_idle] : NULL;
	return *ret ? 0 : pq_writer_new(columns, ARRAY_LEN(columns), ret, e);
}

static void give_writer(struct refs_set *set, struct pq_writer *w)
{
	LOCK_SCOPE(&set->lock);

	if (set->n_idle < REFS_IDLE_MAX)
		set->idle[set->n_idle++] = w;
	else
		pq_writer_free(w);
}

int refs_set_parquet_add(struct refs_part *part, struct source *s, struct view *v,
			 const struct refs_options *opts, bool *ret_out, struct err *e)
{
	struct parquet_out p = {.part = part,
				.records = part->set->records,
				.key = buf_of((size_t)1 << 20),
				.sync = *part->group == '\0',
				.array_fd = -1,
				.fd = -1};
	const struct refs_out out = {
		.arg = &p,
		.doc = write_parquet_put_doc,
		.begin = write_parquet_begin_array,
		.chunk = write_parquet_put_chunk,
		.end = write_parquet_end_array,
	};
	const struct zr_visible *shown = zr_view_visible(v);
	int rc;

	if (shown && shown->keys.nested)
		return err_set(e, -EINVAL,
			       "Parquet references support dimension_separator=. only");
	rc = take_writer(part->set, &p.w, e);
	rc = rc ? rc : refs_walk(s, v, part->group, opts, &out, ret_out, e);
	if (rc == 0)
		give_writer(part->set, p.w);
	else
		pq_writer_free(p.w); /* it may have rows of a file that is not complete */
	close_fd(&p.array_fd); /* it was not written to */
	close_fd(&p.fd);       /* rc has the result of the writes */
	if (rc < 0 && *part->group) /* else the caller removes the directory */
		remove_beneath(part->set->dir_fd, part->group);
	buf_release(&p.key);
	return rc;
}

/* ---- the set ---- */

int refs_set_parquet(const char *dir, uint64_t records, struct refs_set **ret, struct err *e)
{
	auto_fd int dir_fd = -1;
	auto_fd int fd = -1;
	int rc;

	if (mkdir(dir, 0777) < 0)
		return err_sys(e, errno, "'%.200s'", dir);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir_fd >= 0)
		fd = openat(dir_fd, ".zmetadata", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			    0666);
	if (fd < 0)
		return err_sys(e, errno, "'%.200s'", dir);
	rc = refs_set_new(fd, REFS_SET_PARQUET,
			  "{\"zarr_consolidated_format\": 1, \"metadata\": {", ret, e);
	if (rc < 0)
		return rc;
	(*ret)->dir_fd = dir_fd;
	(*ret)->records = records ? records : RECORDS;
	fd = dir_fd = -1; /* taken */
	return 0;
}

/* refs_set_parquet_sync - the files of one dataset were synced one by one. Of thousands of small
 * files each would wait for the disk: the whole file system is synced once. */
int refs_set_parquet_sync(struct refs_set *set, struct err *e)
{
	int rc = io_sync(set->fd, true, e);

	if (rc == 0 && set->last.len > 1 && syncfs(set->dir_fd) < 0)
		rc = err_sys(e, errno, "cannot write the references");
	return rc ? rc : io_sync(set->dir_fd, true, e);
}

void refs_set_parquet_release(struct refs_set *set)
{
	close_fd(&set->fd); /* it was synced */
	close_fd(&set->dir_fd);
	while (set->n_idle)
		pq_writer_free(set->idle[--set->n_idle]);
}
