/* SPDX-License-Identifier: BSD-3-Clause */
/* source.c - the HDF5 source: opens files with libhdf5, and has the table of operations.
 *
 * The library reads the model once, in a process of its own (isolate/isolated_source.c,
 * worker_ops.c). Its file is closed before open returns, because HDF5's lock would keep writers
 * out. Only the caller's plain descriptor stays open. */
#include "hdf5view/hdf5view.h"

#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

/* libhdf5's name of a remote file; it opens nothing by that name. */
#define REMOTE_NAME "/remote" /* absolute: netcdf4/writer.c says why */

/* other_format - whether a remote file begins like one of another kind: a search for a superblock
 * further on would cost requests. */
static bool other_format(struct blob *b)
{
	static const char *const magic[] = {"CDF", "PK\x03\x04", "\x0e\x03\x13\x01"};
	char head[4] = "";

	if (b->fd >= 0 ||
	    blob_read(b, 0, head, (size_t)u64_min(sizeof(head), b->size), NULL) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(magic); i++)
		if (strncmp(head, magic[i], strlen(magic[i])) == 0)
			return true;
	return false;
}

static int hdf5_source_bid(const struct source_at *at, struct err *e)
{
	uint64_t offset;
	int rc;

	if (!at->file || other_format(at->file))
		return 0;
	rc = h5_file_find(at->file, &offset, e);
	return rc == 0 ? 10 : rc == -EBADMSG ? 0 : rc;
}

/* hdf5_source_same_file - whether the library's file is the one that st describes. */
static bool hdf5_source_same_file(hid_t id, dev_t dev, ino_t ino)
{
	struct stat st;
	void *handle = NULL;

	if (H5Fget_vfd_handle(id, H5P_DEFAULT, &handle) < 0 || !handle)
		return false;
	return fstat(*(int *)handle, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

static int hdf5_source_in_use(struct err *e)
{
	return err_set(e, -EAGAIN,
		       "it is open for writing by another program, or was "
		       "never closed; in the latter case 'h5clear -s' repairs it");
}

/* hdf5_source_explain - explain the library's failure to open a file. */
static int hdf5_source_explain(int fd, struct err *e)
{
	char text[200];

	/* the library takes a shared lock on the whole file; try the same to find out */
	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, -EAGAIN, "it is open for writing by another program");
	if (fd >= 0)
		(void)flock(fd, LOCK_UN); /* not held, or taken just before */
	h5_reason(text, sizeof(text));
	if (strstr(text, "already open for write"))
		return hdf5_source_in_use(e);
	/* a system call that failed says nothing about the content */
	return err_set(e, strstr(text, "errno = ") ? -EIO : -EBADMSG,
		       "not readable as HDF5: %s", text);
}

/* Virtual datasets open their sources with this close degree, and find nothing in files that are
 * open with another. */
hid_t h5_fapl(bool lock)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

	return h5_id_unless(fapl < 0 || H5Pset_fapl_sec2(fapl) < 0 ||
				    H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK) < 0 ||
				    H5Pset_file_locking(fapl, lock, true) < 0,
			    fapl);
}

/* source_open_remote - a remote file. That it says of itself that it is being written (superblock
 * version 3, II.A) the library looks at only with its own drivers. */
static int source_open_remote(struct h5_source *s, hid_t fapl, hid_t *ret, struct err *e)
{
	enum { VERSION = 8, FLAGS = 11, WRITING = 1, WRITING_SWMR = 4 };
	uint8_t head[FLAGS + 1];
	int rc = blob_read(s->g.blob, s->raw.base, head, sizeof(head), e);

	if (rc < 0)
		return rc;
	if (head[VERSION] >= 3 && (head[FLAGS] & (WRITING | WRITING_SWMR)))
		return hdf5_source_in_use(e);
	*ret = H5Fopen(REMOTE_NAME, H5F_ACC_RDONLY, fapl);
	return *ret < 0 ? hdf5_source_explain(-1, e) : 0;
}

int h5_open_file(struct h5_source *s, uint32_t file, bool lock, hid_t *ret, struct err *e)
{
	const struct h5_linked *f = file ? &s->files[file - 1] : NULL;
	auto_hid hid_t fapl = isolated_remote(&s->g) ? h5_blob_fapl(s->g.blob) : h5_fapl(lock);
	struct stat st;
	char own[64];
	hid_t id;

	if (fapl < 0)
		return h5_error(e, -ENOMEM, "the HDF5 library cannot be set up");
	if (isolated_remote(&s->g))
		return source_open_remote(s, fapl, ret, e);
	id = H5Fopen(f ? f->path : s->g.path, H5F_ACC_RDONLY, fapl);
	if (id >= 0 && f && !hdf5_source_same_file(id, f->dev, f->ino)) {
		h5_id_close(&id);
		return err_set(e, -ESTALE, "the file '%.200s' was replaced", f->path);
	}
	if (!f && (id < 0 || !hdf5_source_same_file(id, s->g.base.ds.st.st_dev,
						    s->g.base.ds.st.st_ino))) {
		/* the path now names another file; the descriptor does not */
		int rc = id < 0 ? hdf5_source_explain(s->g.fd, e) : 0;

		h5_id_close(&id);
		if (rc == -EAGAIN)
			return rc;
		/* the library needs a name, and resolves the one in /proc */
		if (fstat(s->g.fd, &st) == 0 && st.st_nlink == 0)
			return err_set(e, -ESTALE, "the file was replaced or removed");
		(void)snprintf(own, sizeof(own), "/proc/self/fd/%d", s->g.fd);
		id = H5Fopen(own, H5F_ACC_RDONLY, fapl);
		s->moved |= id >= 0;
	}
	if (id < 0)
		return hdf5_source_explain(f ? -1 : s->g.fd, e);
	*ret = id;
	return 0;
}

static herr_t hdf5_source_refuse(const char *parent NZ_UNUSED, const char *group NZ_UNUSED,
				 const char *child NZ_UNUSED, const char *object NZ_UNUSED,
				 unsigned *flags NZ_UNUSED, hid_t fapl NZ_UNUSED,
				 void *arg NZ_UNUSED)
{
	return -1;
}

hid_t h5_lapl(void)
{
	hid_t lapl = H5Pcreate(H5P_LINK_ACCESS);

	return h5_id_unless(lapl < 0 || H5Pset_elink_cb(lapl, hdf5_source_refuse, NULL) < 0,
			    lapl);
}

static int hdf5_source_open_source(const struct source_at *at,
				   const struct source_options *opts, struct source **ret,
				   struct err *e)
{
	return isolated_open(&h5_library_kind, at, opts, ret, e);
}

const struct source_ops hdf5_source_ops = {
	.name = "hdf5",
	.bid = hdf5_source_bid,
	.open = hdf5_source_open_source,
	.close = isolated_close,
	.locate = h5_locate,
	.next = h5_next,
	.read_chunk = isolated_read_chunk,
	.read_vlen = isolated_read_vlen,
	.read_stored = isolated_read_stored,
	.want = h5_want,
	.forget = isolated_forget,
	.fd = isolated_fd,
	.check = isolated_check,
	.poll = isolated_poll,
	.hold = isolated_hold,
	.model = isolated_model_of,
};

void hdf5_version(char *text, size_t cap)
{
	unsigned major = 0, minor = 0, release_no = 0;

	h5_enter();
	(void)H5get_libversion(&major, &minor, &release_no);
	h5_leave();
	(void)snprintf(text, cap, "%u.%u.%u", major, minor, release_no);
}
