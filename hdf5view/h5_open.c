/* h5_open.c - opening: a child builds the model in memory that it shares with us.
 *
 * The memory is mapped at the same address in both, so that the model's pointers hold. When the
 * child has said that it is done it is killed, the memory becomes read only, and only then is the
 * model checked (h5_verify.c) and used. Later children, which read elements, map it as well. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "hdf5view/hdf5view.h"
#include "hdf5view/src_int.h"

#define PLACE_TRIES 3 /* of addresses that the other process may have taken already */

static uint8_t *arena_of(struct h5_model *m)
{
	return (uint8_t *)m + (sizeof(*m) + 63) / 64 * 64;
}

/* ---- the other process ---- */

int h5_job_of_source(const struct h5_source *s, enum h5_job_kind kind, struct h5_job *ret,
		     struct err *e)
{
	const char *root = s->link_root;

	if (strlen(s->path) >= sizeof(ret->path) ||
	    (root && strlen(root) >= sizeof(ret->link_root)))
		return err_set(e, -ENAMETOOLONG, "its path is too long");
	ret->kind = kind;
	ret->at = s->region;
	ret->size = s->region_size;
	ret->st = s->base.ds.st;
	ret->max_meta_bytes = s->opts.max_meta_bytes;
	ret->cut_bytes = s->opts.cut_bytes;
	ret->max_chunk_bytes = s->opts.max_chunk_bytes;
	ret->max_index_bytes = s->opts.max_index_bytes;
	ret->has_root = root != NULL;
	memcpy(ret->path, s->path, strlen(s->path) + 1);
	if (root)
		memcpy(ret->link_root, root, strlen(root) + 1);
	return 0;
}

/* use_model - what a finished model says, for the source that stands on it. */
static int use_model(struct h5_source *s, struct err *e)
{
	const struct h5_model *m = s->region;

	s->base.ds = m->ds;
	s->base.ds.arena = (struct arena){.fixed = true};
	s->arrays = m->arrays;
	s->n_places = m->n_places;
	s->n_files = m->n_files;
	s->places = alloc_array(m->n_places, sizeof(*s->places));
	s->files = alloc_array(m->n_files, sizeof(*s->files));
	if (!s->places || !s->files)
		return err_nomem(e);
	for (uint32_t i = 0; i < m->n_files; i++) {
		s->files[i] = m->files[i];
		s->files[i].id = 0;
	}
	return 0;
}

int h5_source_of_job(const struct h5_job *job, int fd, int region_fd, struct h5_source **ret,
		     struct err *e)
{
	struct h5_source *s = alloc_array(1, sizeof(*s));
	int prot = job->kind == H5_JOB_OPEN ? PROT_READ | PROT_WRITE : PROT_READ, rc;

	if (!s)
		return err_nomem(e);
	s->base.ops = &hdf5_source_ops;
	s->base.ds.st = job->st;
	s->fd = fd;
	s->region_fd = region_fd;
	s->opts = (struct source_options){.max_meta_bytes = job->max_meta_bytes,
					  .cut_bytes = job->cut_bytes,
					  .max_chunk_bytes = job->max_chunk_bytes,
					  .max_index_bytes = job->max_index_bytes};
	if (job->has_root)
		s->opts.link_root = job->link_root;
	(void)pthread_mutex_init(&s->load, NULL);
	s->region_size = job->size;
	s->region = mmap(job->at, job->size, prot, MAP_SHARED | MAP_FIXED_NOREPLACE, region_fd, 0);
	if (s->region != job->at)
		return err_set(e, -EADDRINUSE, "memory for the HDF5 library's process is taken");
	rc = h5_set_up(s, job->path, e);
	if (rc == 0 && job->kind == H5_JOB_READ)
		rc = use_model(s, e);
	*ret = s;
	return rc;
}

void h5_open_job(struct h5_source *s, int sock)
{
	struct h5_model *m = s->region;
	uint8_t *at = arena_of(m);
	struct err e = ERR_INIT;
	int rc;

	arena_init_in(&s->base.ds.arena, at, s->region_size - (size_t)(at - (uint8_t *)m));
	/* what the region has besides is for its own structures */
	s->base.ds.arena.max = (size_t)u64_min(s->base.ds.arena.max, s->opts.max_meta_bytes);
	rc = h5_build_model(s, &e);
	if (rc == 0) {
		m->files = arena_copy(&s->base.ds.arena, s->files,
				      s->n_files * sizeof(*s->files));
		if (!m->files)
			rc = err_set(&e, -ERANGE, "metadata exceeds %" PRIu64 " bytes",
				     s->opts.max_meta_bytes);
	}
	if (rc < 0) {
		child_say(sock, rc, e.msg, strlen(e.msg));
		_exit(0);
	}
	m->ds = s->base.ds;
	m->arrays = s->arrays;
	m->n_files = s->n_files;
	m->n_places = s->n_places;
	m->used = (size_t)(at - (uint8_t *)m) + s->base.ds.arena.used + 4096;
	child_say(sock, 0, NULL, 0);
	_exit(0); /* no exit handlers: they are the server's */
}

/* ---- the server ---- */

/* make_region - memory that is not there before it is written to. */
static int make_region(struct h5_source *s, struct err *e)
{
	uint64_t size;

	if (ckd_add(&size, s->opts.max_meta_bytes, (uint64_t)1 << 20) || size > SIZE_MAX / 4)
		return err_set(e, -ERANGE, "meta_size of %" PRIu64 " bytes is too large",
			       s->opts.max_meta_bytes);
	s->region_fd = memfd_create("nczarrfs-model", MFD_CLOEXEC);
	if (s->region_fd < 0 || ftruncate(s->region_fd, (off_t)size) < 0)
		return err_sys(e, errno, "memory for the dataset's metadata");
	s->region_size = (size_t)size;
	s->region = mmap(NULL, s->region_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 s->region_fd, 0);
	if (s->region != MAP_FAILED)
		return 0;
	s->region = NULL;
	return err_sys(e, errno, "memory for the dataset's metadata");
}

void h5_region_release(struct h5_source *s)
{
	if (s->region)
		(void)munmap(s->region, s->region_size);
	if (s->region_fd >= 0)
		(void)close(s->region_fd);
	s->region = NULL;
	s->region_fd = -1;
}

/* take_reason - the text of a failure. */
static int take_reason(int sock, const struct child_answer *a, int64_t end, struct err *e)
{
	char text[ERR_TEXT_MAX];

	if (a->rc > 0 || a->rc < -4095 || a->len >= sizeof(text) ||
	    child_take(sock, text, (size_t)a->len, end) != CHILD_TAKEN)
		return err_set(e, -EBADMSG, "the HDF5 library's process answered nonsense: the "
					    "file is damaged");
	text[a->len] = '\0';
	return err_set(e, (int)a->rc, "%s", text);
}

static int died(int status, struct err *e)
{
	if (child_died_of(status) == SIGKILL)
		return err_set(e, -EIO, "the HDF5 library's process was killed (signal 9) while "
					"opening it: memory may be short");
	if (child_died_of(status))
		return err_set(e, -EBADMSG,
			       "the HDF5 library crashed (signal %d) while opening it: the file "
			       "is damaged",
			       child_died_of(status));
	return err_set(e, -EBADMSG,
		       "the HDF5 library's process ended (status %d) while opening it: the file "
		       "is damaged",
		       WEXITSTATUS(status));
}

/* ask - one child, one model. */
static int ask(struct h5_source *s, struct err *e)
{
	uint64_t ms = s->opts.open_timeout_ms;
	int64_t end = ms && ms < INT64_MAX / 2 ? child_now() + (int64_t)ms : INT64_MAX;
	struct child_answer a = {0};
	struct child_proc child;
	enum child_taken got;
	int rc = h5_child_start(s, H5_JOB_OPEN, &child, e), status;

	if (rc < 0)
		return rc;
	got = child_take(child.sock, &a, sizeof(a), end);
	if (got == CHILD_TAKEN && a.rc < 0)
		rc = take_reason(child.sock, &a, end, e);
	status = child_end(&child);
	if (got == CHILD_GONE)
		return died(status, e);
	if (got == CHILD_LATE)
		return err_set(e, -EIO,
			       "not open after %" PRIu64 " seconds: the file is damaged, or -o "
			       "open_timeout must be longer for so large a file",
			       (ms + 999) / 1000);
	return rc;
}

/* shrink - only what is used stays mapped, and only for reading. */
static int shrink(struct h5_source *s, struct err *e)
{
	const struct h5_model *m = s->region;
	size_t used = m->used;

	if (mprotect(s->region, s->region_size, PROT_READ) < 0)
		return err_sys(e, errno, "protect the dataset's metadata");
	if (used < sizeof(*m) || used > s->region_size)
		return err_set(e, -EBADMSG,
			       "the HDF5 library's process answered nonsense: the file is "
			       "damaged");
	used = (used + 4095) & ~(size_t)4095;
	if (used < s->region_size) {
		(void)munmap((uint8_t *)s->region + used, s->region_size - used);
		s->region_size = used;
		if (ftruncate(s->region_fd, (off_t)used) < 0)
			return err_sys(e, errno, "memory for the dataset's metadata");
	}
	return h5_verify(s->region, used, e);
}

int h5_open_model(struct h5_source *s, struct err *e)
{
	struct stat st = s->base.ds.st;
	void *taken[PLACE_TRIES] = {NULL};
	size_t sizes[PLACE_TRIES] = {0};
	int rc = -EADDRINUSE;

	for (size_t i = 0; rc == -EADDRINUSE && i < PLACE_TRIES; i++) {
		rc = make_region(s, e);
		if (rc == 0)
			rc = ask(s, e);
		if (rc == -EADDRINUSE) { /* keep the place, so that the next is another one */
			taken[i] = s->region;
			sizes[i] = s->region_size;
			s->region = NULL;
			h5_region_release(s);
		}
	}
	for (size_t i = 0; i < PLACE_TRIES; i++)
		if (taken[i])
			(void)munmap(taken[i], sizes[i]);
	if (rc == 0)
		rc = shrink(s, e);
	if (rc == 0)
		rc = use_model(s, e);
	s->base.ds.st = st;
	return rc;
}
