/* SPDX-License-Identifier: BSD-3-Clause */
/* source.c - opening a source by what its bytes look like, and the wrappers around its
 * functions.
 *
 * The wrappers check what callers hand in and what a source gives back, so that neither has to
 * trust the other: an ordinal outside the model, a range that overflows, a chunk that is not
 * behind the place asked for. */
#include "translate/contract/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/core/utf8.h"
#include "base/os/io.h"
#include "base/observe/metrics.h"

#define PATH_SHOWN 160 /* bytes of a path in a message: its end says most */
#define HEAD_BYTES 16
#define NS_PER_S ((int64_t)1000 * 1000 * 1000)
#define SETTLE_TRIES 4 /* looks at a file that changes while it is opened */

/* show_path - path, or "..." and its end, so that a long one does not push out the message. */
static const char *show_path(const char *path, char out[PATH_SHOWN])
{
	size_t len = strlen(path), keep = PATH_SHOWN - 4;

	if (len < PATH_SHOWN)
		return path;
	(void)snprintf(out, PATH_SHOWN, "...%s", path + utf8_tail(path, len, keep)); /* fits */
	return out;
}

/* stat_settled - fstat, of a file once a later change has a later time: the version that size and
 * time tell apart is then the one that is read from now on. A file that is being written changes
 * its time anyway, and is not waited for long. */
static int stat_settled(int fd, struct stat *ret)
{
	int rc = fstat(fd, ret);

	for (int i = 0; rc == 0 && S_ISREG(ret->st_mode) && i < SETTLE_TRIES; i++) {
		int64_t ns, at;

		if (ckd_mul(&at, ret->st_mtim.tv_sec, NS_PER_S) ||
		    ckd_add(&at, at, ret->st_mtim.tv_nsec))
			break;
		ns = io_racy_ns(at);
		if (ns == 0)
			break;
		(void)nanosleep(&(struct timespec){ns / NS_PER_S, ns % NS_PER_S}, NULL);
		rc = fstat(fd, ret);
	}
	return rc;
}

/* open_any - a descriptor of a directory, or of a regular file that is not empty. */
static int open_any(const char *path, const char *shown, struct stat *ret_st, struct err *e)
{
	/* O_NONBLOCK: a pipe without a writer must not hang us; regular files ignore it */
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int r;

	if (fd < 0) {
		int code = errno;

		if (code == ENOENT || code == ENOTDIR)
			return err_set(e, -code,
				       "'%s': no such file or directory: check the path",
				       shown);
		if (code == EACCES || code == EPERM)
			return err_set(
				e, -code,
				"'%s': permission denied: it must be readable for you, and "
				"its directories searchable",
				shown);
		return err_sys(e, code, "'%s'", shown);
	}
	if (stat_settled(fd, ret_st) < 0)
		return err_sys(e, errno, "'%s'", shown);
	if (!S_ISREG(ret_st->st_mode) && !S_ISDIR(ret_st->st_mode))
		return err_set(e, -EINVAL,
			       "'%s' is not a regular file: copy its content into a file first",
			       shown);
	if (S_ISREG(ret_st->st_mode) && ret_st->st_size == 0)
		return err_set(
			e, -EBADMSG,
			"'%s' is empty (0 bytes): was it copied or downloaded completely?",
			shown);
	r = fd;
	fd = -1;
	return r;
}

/* Files that people take for netCDF-4 or HDF5, and what to do with them. */
static const struct {
	const char *magic;
	size_t len;
	const char *what, *todo;
} known[] = {
	{"CDF", 3, "a classic netCDF file of an unknown version",
	 "versions 1, 2 and 5 are defined: is it damaged?"},
	{"\x0e\x03\x13\x01", 4, "an HDF4 file that cannot be read",
	 "is it damaged? a build without libhdf4 cannot read HDF4: h4toh5 old.hdf new.h5"},
	{"GRIB", 4, "a GRIB file", "convert it to netCDF-4"},
	{"\x1f\x8b", 2, "compressed by gzip", "decompress it first: gunzip"},
	{"BZh", 3, "compressed by bzip2", "decompress it first: bunzip2"},
	{"\xfd"
	 "7zXZ",
	 5, "compressed by xz", "decompress it first: unxz"},
	{"\x28\xb5\x2f\xfd", 4, "compressed by zstd", "decompress it first: unzstd"},
	{"PK\x03\x04", 4, "a zip archive without Zarr metadata files, or an incomplete one",
	 "use the archive of a Zarr store, or download it again"},
	{"version https://", 16, "a Git LFS pointer", "get the content: git lfs pull"},
	{"<!DOCTYPE", 9, "a web page", "the download returned an error page: download it again"},
	{"<html", 5, "a web page", "the download returned an error page: download it again"},
};

/* contract_source_put_head - the first bytes for a message: as text when all are printable, else
 * hexadecimal.
 */
static void contract_source_put_head(const uint8_t *head, size_t n, char *out, size_t cap)
{
	bool text = true;
	size_t len = 0;

	n = n < 8 ? n : 8;
	for (size_t i = 0; i < n; i++)
		text = text && head[i] >= 0x20 && head[i] < 0x7f;
	if (text) {
		(void)snprintf(out, cap, "'%.*s'", (int)n, (const char *)head);
		return;
	}
	for (size_t i = 0; i < n && len + 4 < cap; i++) {
		(void)snprintf(out + len, cap - len, "%s%02x", i > 0 ? " " : "", head[i]);
		len = strlen(out);
	}
}

/* contract_source_put_names - "hdf5, cdf" into out. */
static void contract_source_put_names(const struct source_ops *const *formats, size_t n,
				      char *out, size_t cap)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n && len < cap; i++) {
		int r = snprintf(out + len, cap - len, "%s%s", i > 0 ? ", " : "",
				 formats[i]->name);

		len += r > 0 ? (size_t)r : 0;
	}
}

/* no_format - the message for a file or directory that no format bids for. */
static int no_format(const struct source_ops *const *formats, size_t n,
		     const struct source_at *at, const char *shown, struct err *e)
{
	uint64_t size = at->file ? at->file->size : 0;
	uint8_t head[HEAD_BYTES] = {0};
	size_t got = size < HEAD_BYTES ? (size_t)size : HEAD_BYTES;
	char first[40], names[80];
	int rc;

	if (!at->file)
		return err_set(
			e, -EBADMSG,
			"'%s' is a directory without Zarr metadata files (.zgroup, .zarray, "
			"zarr.json): name the directory of the Zarr store itself",
			shown);
	rc = blob_read(at->file, 0, head, got, e);
	if (rc)
		return err_wrap(e, rc, "'%s'", shown);
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (got >= known[i].len && memcmp(head, known[i].magic, known[i].len) == 0)
			return err_set(e, -EBADMSG,
				       "'%s' is %s, not a file format nczarrfs knows: %s",
				       shown, known[i].what, known[i].todo);
	contract_source_put_head(head, got, first, sizeof(first));
	contract_source_put_names(formats, n, names, sizeof(names));
	return err_set(
		e, -EBADMSG,
		"'%s' is not a file format nczarrfs knows: it starts with %s (tried: %s)",
		shown, first, names);
}

/* contract_source_local - describe the file that is open as fd, for formats. file: room. */
static struct source_at contract_source_local(const char *path, int fd, const struct stat *st,
					      struct blob *file)
{
	*file = blob_of_fd(fd, (uint64_t)st->st_size);
	return (struct source_at){
		.path = path, .fd = fd, .st = *st, .file = S_ISREG(st->st_mode) ? file : NULL};
}

/* best_bid - the format that bids most for the file that is open as fd; NULL: none does. *ret_rc:
 * 0, or the error of a format that could not decide. */
static const struct source_ops *best_bid(const struct source_ops *const *formats, size_t n,
					 const struct source_at *at, int *ret_rc,
					 struct err *ret_why)
{
	const struct source_ops *best = NULL;
	int top = 0;

	*ret_rc = 0;
	for (size_t i = 0; i < n; i++) {
		struct err why = ERR_INIT;
		int bid = formats[i]->bid(at, &why);

		if (bid < 0) {
			*ret_rc = bid;
			*ret_why = why;
		}
		if (bid > top) {
			top = bid;
			best = formats[i];
		}
	}
	return best;
}

int source_bidder(const struct source_ops *const *formats, size_t n, const char *path,
		  const struct source_ops **ret)
{
	struct stat st;
	auto_fd int fd = open_any(path, "", &st, NULL);
	struct blob file;
	struct source_at at;
	struct err why;
	int rc;

	*ret = NULL;
	if (fd < 0)
		return fd == -EIO || err_is_transient(fd) ? fd : 0;
	at = contract_source_local(path, fd, &st, &file);
	*ret = best_bid(formats, n, &at, &rc, &why);
	return rc;
}

/* Without memory for its name it has none. */
void source_opened(struct source *s, const char *path)
{
	s->shown = strdup(path);
	s->model_bytes = s->ds.arena.used;
	if (!s->shown)
		return;
	metrics_gauge_add(G_OPEN_DATASETS, 1);
	metrics_gauge_add(G_MEM_MODEL, (int64_t)s->model_bytes);
}

int source_open_at(const struct source_ops *const *formats, size_t n,
		   const struct source_at *at, const struct source_options *opts,
		   struct source **ret, struct err *e)
{
	struct err why = ERR_INIT;
	int rc;
	const struct source_ops *best = best_bid(formats, n, at, &rc, &why);
	char tmp[PATH_SHOWN];
	const char *shown = show_path(at->path, tmp);
	struct source *s = NULL;

	if (rc < 0)
		return why.code == rc
			       ? err_set(e, rc, "'%s': %s", shown, why.msg)
			       : err_sys(e, -rc, "'%s': cannot determine its format", shown);
	if (!best)
		return no_format(formats, n, at, shown, e);
	rc = best->open(at, opts, &s, e);
	if (rc) {
		if (rc != -EINTR && rc != -ESTALE)
			metrics_count(M_FAULT_SOURCE);
		return err_wrap(e, rc, "'%s'", shown);
	}
	source_opened(s, at->path);
	*ret = s;
	return 0;
}

int source_open(const struct source_ops *const *formats, size_t n, const char *path,
		const struct source_options *opts, struct source **ret, struct err *e)
{
	char tmp[PATH_SHOWN];
	struct source_at at;
	struct blob file;
	struct stat st;
	int rc;
	auto_fd int fd = open_any(path, show_path(path, tmp), &st, e);

	if (fd < 0)
		return fd;
	at = contract_source_local(path, fd, &st, &file);
	rc = source_open_at(formats, n, &at, opts, ret, e);
	if (rc == 0)
		fd = -1; /* taken */
	return rc;
}

bool source_forget(struct source *s, uint32_t array, uint64_t linear)
{
	if (!s->remote || !s->ops->forget)
		return false;
	s->ops->forget(s, array, linear);
	return true;
}

void source_want(struct source *s, uint32_t array, const uint64_t *linear, size_t n)
{
	if (s->remote && s->ops->want && array < s->ds.n_arrays)
		s->ops->want(s, array, linear, n);
}

void source_close(struct source *s)
{
	char *shown;

	if (!s)
		return;
	shown = s->shown;
	if (shown) {
		metrics_gauge_add(G_OPEN_DATASETS, -1);
		metrics_gauge_add(G_MEM_MODEL, -(int64_t)s->model_bytes);
	}
	s->ops->close(s);
	free(shown);
}

/* contract_source_array_of - the array, or NULL with an error for an ordinal outside the model. */
static const struct ds_array *contract_source_array_of(struct source *s, uint32_t array,
						       struct err *e)
{
	if (array < s->ds.n_arrays)
		return &s->ds.arrays[array];
	(void)err_set(e, -EINVAL, "there is no array %" PRIu32 ": the dataset has %" PRIu32,
		      array, s->ds.n_arrays);
	return NULL;
}

/* check_chunk - whether the chunk exists in the array's grid. */
static int check_chunk(struct source *s, uint32_t array, uint64_t linear, struct err *e)
{
	const struct ds_array *a = contract_source_array_of(s, array, e);

	if (!a)
		return -EINVAL;
	if (linear >= a->n_chunks)
		return err_set(e, -EINVAL,
			       "'%s': there is no chunk %" PRIu64 ": the array has %" PRIu64,
			       a->name, linear, a->n_chunks);
	return 0;
}

static int contract_source_unsupported(const struct source *s, const char *what, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "format '%s' cannot %s", s->ops->name, what);
}

int source_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		  struct err *e)
{
	struct chunk_ref ref = {.where = CHUNK_ABSENT};
	uint64_t end;
	int rc = check_chunk(s, array, linear, e);

	if (rc)
		return rc;
	if (!s->ops->locate)
		return contract_source_unsupported(s, "locate chunks", e);
	rc = s->ops->locate(s, array, linear, &ref, e);
	if (rc == -EBADMSG && source_forget(s, array, linear)) /* the index of a shard */
		rc = s->ops->locate(s, array, linear, &ref, e);
	if (rc)
		return rc;
	if (ref.where == CHUNK_RANGE &&
	    (ckd_add(&end, ref.off, ref.len) || end > INT64_MAX || ref.pad > INT64_MAX))
		return err_set(e, -EBADMSG,
			       "'%s': chunk %" PRIu64 " has %" PRIu64 " bytes at %" PRIu64,
			       s->ds.arrays[array].name, linear, ref.len, ref.off);
	*ret = ref;
	return 0;
}

int source_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	const struct ds_array *a = contract_source_array_of(s, array, e);
	uint64_t found = 0;
	int rc;

	if (!a)
		return -EINVAL;
	if (from >= a->n_chunks)
		return err_set(e, -ENOENT, "'%s': no chunk after %" PRIu64, a->name, from);
	if (!s->ops->next)
		return contract_source_unsupported(s, "list chunks", e);
	rc = s->ops->next(s, array, from, &found, e);
	if (rc)
		return rc;
	if (found < from || found >= a->n_chunks)
		return err_set(e, -EBADMSG,
			       "'%s': chunk %" PRIu64 " is not between %" PRIu64
			       " and %" PRIu64,
			       a->name, found, from, a->n_chunks);
	*ret = found;
	return 0;
}

int source_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out,
		      size_t len, struct err *e)
{
	const struct ds_array *a;
	int rc = check_chunk(s, array, linear, e);

	if (rc)
		return rc;
	a = &s->ds.arrays[array];
	if (dt_is_vlen(&a->type) || len != a->chunk_bytes)
		return err_set(e, -EINVAL,
			       "'%s': a length of %zu was requested, but a chunk has %" PRIu64,
			       a->name, len, a->chunk_bytes);
	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "'%s': %s", a->name, a->unreadable);
	if (!s->ops->read_chunk)
		return contract_source_unsupported(s, "convert chunks", e);
	rc = s->ops->read_chunk(s, array, linear, out, len, e);
	if (rc == -EBADMSG && source_forget(s, array, linear))
		rc = s->ops->read_chunk(s, array, linear, out, len, e);
	return rc;
}

int source_read_vlen(struct source *s, uint32_t array, uint64_t linear, struct buf *out,
		     struct err *e)
{
	const struct ds_array *a;
	size_t before;
	int rc = check_chunk(s, array, linear, e);

	if (rc)
		return rc;
	a = &s->ds.arrays[array];
	if (!dt_is_vlen(&a->type))
		return err_set(e, -EINVAL, "'%s': elements have a fixed size", a->name);
	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "'%s': %s", a->name, a->unreadable);
	if (!s->ops->read_vlen)
		return contract_source_unsupported(s, "read elements without a fixed size", e);
	before = out->len;
	rc = s->ops->read_vlen(s, array, linear, out, e);
	if (rc == -EBADMSG && source_forget(s, array, linear)) {
		out->len = before;
		rc = s->ops->read_vlen(s, array, linear, out, e);
	}
	if (!rc && !buf_ok(out))
		return buf_full(out, e, -ERANGE, "'%s': chunk %" PRIu64 " exceeds %zu bytes",
				a->name, linear, out->max);
	return rc;
}

int source_place(struct source *s, uint32_t array, uint64_t linear, const struct chunk_ref *ref,
		 struct store_place *ret, struct err *e)
{
	int rc = check_chunk(s, array, linear, e);

	if (rc)
		return rc;
	if (ref->where != CHUNK_RANGE)
		return err_set(e, -EOPNOTSUPP, "the chunk is not stored as it is shown");
	ret->full = ret->whole = false;
	ret->off = ref->off;
	if (s->ops->place)
		return s->ops->place(s, array, linear, ref, ret, e);
	if (ref->blob != 0)
		return err_set(e, -EOPNOTSUPP, "the chunk is stored in another file");
	return 0;
}

int source_fd(struct source *s, uint32_t blob)
{
	return s->ops->fd ? s->ops->fd(s, blob) : -1;
}

int source_check(struct source *s, struct err *e)
{
	/* a source without the function has bytes that cannot change */
	return s->ops->check ? s->ops->check(s, e) : 0;
}

int source_read_stored(struct source *s, uint32_t array, uint64_t linear,
		       const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		       struct err *e)
{
	uint64_t end;
	int rc, fd;

	if (ref->where != CHUNK_RANGE || ckd_add(&end, off, (uint64_t)len) || end > ref->len)
		return err_set(e, -EINVAL,
			       "bytes %" PRIu64 " to %" PRIu64
			       " are outside a chunk of %" PRIu64,
			       off, off + len, ref->len);
	if (len == 0)
		return 0;
	fd = source_fd(s, ref->blob);
	if (fd >= 0)
		return io_pread(fd, out, len, ref->off + off, e);
	if (!s->ops->read_stored)
		return err_set(e, -EIO, "the source has no blob %" PRIu32, ref->blob);
	rc = check_chunk(s, array, linear, e);
	return rc ? rc : s->ops->read_stored(s, array, linear, ref, off, out, len, e);
}

void source_hold(struct source *s, bool on)
{
	if (s->ops->hold)
		s->ops->hold(s, on);
}

void source_model_of(const struct source *s, struct source_model *ret)
{
	*ret = (struct source_model){.fd = -1};
	if (s->ops->model)
		s->ops->model(s, ret);
}

int source_poll(struct source *s, struct err *e)
{
	return s->ops->poll ? s->ops->poll(s, e) : source_check(s, e);
}
