/* src_hdf5.c - the HDF5 source: open, close, and the table of operations.
 *
 * The library reads the model once, in a process of its own (h5_open.c); its file is closed before
 * open returns, because HDF5's lock would keep writers out. One plain descriptor stays, the one
 * that the caller opened. */
#include "hdf5view/hdf5view.h"

#include "hdf5view/src_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

static int bid(const char *path NZ_UNUSED, int fd, const struct stat *st)
{
	uint64_t offset;

	return S_ISREG(st->st_mode) && h5_file_find(fd, (uint64_t)st->st_size, &offset, NULL) == 0
		       ? 10
		       : 0;
}

/* same_file - whether the library's file is the one that st tells of. */
static bool same_file(hid_t id, dev_t dev, ino_t ino)
{
	struct stat st;
	void *handle = NULL;

	if (H5Fget_vfd_handle(id, H5P_DEFAULT, &handle) < 0 || !handle)
		return false;
	return fstat(*(int *)handle, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

/* explain - why the library did not open a file. */
static int explain(int fd, struct err *e)
{
	char text[200];

	/* the library takes a shared lock on the whole file; so can we, and know at once */
	if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, -EAGAIN, "it is open for writing by another program");
	if (fd >= 0)
		(void)flock(fd, LOCK_UN); /* there was none, or we just took it */
	h5_reason(text, sizeof(text));
	if (strstr(text, "already open for write"))
		return err_set(e, -EAGAIN,
			       "it is open for writing by another program, or was "
			       "never closed; in the latter case 'h5clear -s' repairs it");
	return err_set(e, -EBADMSG, "not readable as HDF5: %s", text);
}

/* Virtual datasets open their sources with this close degree, and find nothing in files that are
 * open with another. */
hid_t h5_fapl(bool lock)
{
	hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);

	if (fapl >= 0 &&
	    (H5Pset_fapl_sec2(fapl) < 0 || H5Pset_fclose_degree(fapl, H5F_CLOSE_WEAK) < 0 ||
	     H5Pset_file_locking(fapl, lock, true) < 0)) {
		(void)H5Pclose(fapl);
		return -1;
	}
	return fapl;
}

int h5_open_file(struct h5_source *s, uint32_t file, bool lock, hid_t *ret, struct err *e)
{
	const struct h5_linked *f = file ? &s->files[file - 1] : NULL;
	auto_hid hid_t fapl = h5_fapl(lock);
	struct stat st;
	char own[64];
	hid_t id;

	if (fapl < 0)
		return h5_error(e, -ENOMEM, "the HDF5 library cannot be set up");
	id = H5Fopen(f ? f->path : s->path, H5F_ACC_RDONLY, fapl);
	if (id >= 0 && f && !same_file(id, f->dev, f->ino)) {
		h5_id_close(&id);
		return err_set(e, -ESTALE, "the file '%.200s' was replaced", f->path);
	}
	if (!f && (id < 0 || !same_file(id, s->base.ds.st.st_dev, s->base.ds.st.st_ino))) {
		/* the path leads elsewhere by now; our descriptor does not */
		int rc = id < 0 ? explain(s->fd, e) : 0;

		h5_id_close(&id);
		if (rc == -EAGAIN)
			return rc;
		/* the library wants a name, and resolves the one in /proc */
		if (fstat(s->fd, &st) == 0 && st.st_nlink == 0)
			return err_set(e, -ESTALE, "the file was replaced or removed");
		(void)snprintf(own, sizeof(own), "/proc/self/fd/%d", s->fd);
		id = H5Fopen(own, H5F_ACC_RDONLY, fapl);
		s->moved |= id >= 0;
	}
	if (id < 0)
		return explain(f ? -1 : s->fd, e);
	*ret = id;
	return 0;
}

static herr_t refuse(const char *parent, const char *group, const char *child,
		     const char *object, unsigned *flags, hid_t fapl, void *arg)
{
	(void)parent;
	(void)group;
	(void)child;
	(void)object;
	(void)flags;
	(void)fapl;
	(void)arg;
	return -1;
}

hid_t h5_lapl(void)
{
	hid_t lapl = H5Pcreate(H5P_LINK_ACCESS);

	if (lapl >= 0 && H5Pset_elink_cb(lapl, refuse, NULL) < 0) {
		(void)H5Pclose(lapl);
		return -1;
	}
	return lapl;
}

int h5_build_model(struct h5_source *s, struct err *e)
{
	struct h5_build b = {.src = s, .arena = &s->base.ds.arena};
	int rc;

	buf_init(&b.path, (size_t)1 << 20);
	h5_enter();
	rc = h5_open_file(s, 0, true, &b.file, e);
	if (rc == 0) {
		b.lapl = h5_lapl();
		if (b.lapl < 0)
			rc = h5_error(e, -ENOMEM, "the HDF5 library cannot be set up");
	}
	if (rc == 0)
		rc = h5_walk(&b, e);
	if (rc == 0)
		rc = h5_dims_resolve(&b, e);
	if (rc == 0)
		rc = h5_freeze(&b, e);
	h5_build_release(&b);
	h5_leave();
	return rc;
}

/* release - everything but the descriptor. */
static void release(struct h5_source *s)
{
	h5_worker_release(&s->worker);
	for (uint32_t i = 0; s->places && i < s->n_places; i++) {
		struct h5_place *p = atomic_load_explicit(&s->places[i], memory_order_acquire);

		if (p)
			h5_index_free(p->index);
		free(p);
	}
	free(s->places);
	free(s->files);
	free(s->link_root);
	free(s->path);
	h5_region_release(s);
	(void)pthread_mutex_destroy(&s->load);
	free(s);
}

int h5_set_up(struct h5_source *s, const char *path, struct err *e)
{
	const char *root = s->opts.link_root;

	s->path = realpath(path, NULL);
	if (!s->path)
		return err_sys(e, errno, "its canonical path");
	s->opts.link_root = NULL;
	if (root && root[0]) {
		s->link_root = realpath(root, NULL);
		if (!s->link_root)
			return err_sys(e, errno, "link_root '%.200s'", root);
	}
	return h5_file_read(s->fd, (uint64_t)s->base.ds.st.st_size, &s->raw, e);
}

static int open_source(const char *path, int fd, const struct stat *st,
		       const struct source_options *opts, struct source **ret, struct err *e)
{
	struct h5_source *s = alloc_array(1, sizeof(*s));
	struct err why = ERR_INIT;
	int rc;

	if (!s)
		return err_nomem(e);
	s->base.ops = &hdf5_source_ops;
	s->base.ds.st = *st;
	s->fd = fd;
	s->region_fd = -1;
	s->opts = *opts;
	(void)pthread_mutex_init(&s->load, NULL);
	h5_worker_init(&s->worker, opts->read_timeout_ms);
	rc = h5_set_up(s, path, &why);
	if (rc == 0)
		rc = h5_open_model(s, &why);
	if (rc < 0) {
		release(s);
		return err_set(e, rc, "%s", why.msg);
	}
	*ret = &s->base;
	return 0;
}

static void close_source(struct source *src)
{
	struct h5_source *s = h5_of(src);
	int fd = s->fd;

	release(s);
	(void)close(fd); /* it was only read from */
}

static int source_descriptor(struct source *src, uint32_t blob)
{
	return blob == 0 ? h5_of(src)->fd : -1;
}

const struct source_ops hdf5_source_ops = {
	.name = "hdf5",
	.bid = bid,
	.open = open_source,
	.close = close_source,
	.locate = h5_locate,
	.next = h5_next,
	.read_chunk = h5_read_chunk,
	.read_vlen = h5_read_vlen,
	.fd = source_descriptor,
	.check = h5_check,
};

void hdf5_version(char *text, size_t cap)
{
	unsigned major = 0, minor = 0, release_no = 0;

	h5_enter();
	(void)H5get_libversion(&major, &minor, &release_no);
	h5_leave();
	(void)snprintf(text, cap, "%u.%u.%u", major, minor, release_no);
}
