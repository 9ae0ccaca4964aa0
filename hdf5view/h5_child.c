/* h5_child.c - children for libhdf5: what they are sent, and what they make of it. */
#include "hdf5view/h5_child.h"

#include <string.h>

#include "codecs/plugin.h"
#include "hdf5view/hdf5view.h"
#include "hdf5view/src_int.h"

/* has_files - a test, or another program with one thread, may have forked this child while it had
 * files open. */
static bool has_files(void)
{
	return H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) > 0;
}

/* own_job - for a child of this very process, which has the source already. */
struct own_job {
	struct h5_source *s;
	enum h5_job_kind kind;
};

/* run - what the forker was sent is all that most children know of the source. */
static void run(const struct child_self *self)
{
	const struct own_job *own = self->own;
	const struct h5_job *job = self->data;
	struct h5_source *s = own ? own->s : NULL;
	struct err e = ERR_INIT;
	int rc;

	codec_plugins_local();
	(void)H5PLset_loading_state(0); /* h5_pipeline.c says which may be used */
	if (!own) {
		rc = h5_source_of_job(job, self->fds[H5_FD_SOURCE], self->fds[H5_FD_REGION], &s,
				      &e);
		if (rc < 0) {
			child_say(self->sock, rc, e.msg, strlen(e.msg));
			_exit(1);
		}
	}
	if ((own ? own->kind : job->kind) == H5_JOB_OPEN)
		h5_open_job(s, self->sock);
	h5_read_job(s, self->sock);
}

static const struct child_kind hdf5_child = {
	.name = H5_WORKER_NAME,
	.who = "the HDF5 library",
	.n_fds = H5_FDS,
	.run = run,
	.keeps_files = has_files,
	.enter = h5_enter,
	.leave = h5_leave,
};

static void set_up_library(void)
{
	h5_enter();
	h5_leave();
}

int hdf5_prepare(struct err *e)
{
	return child_prepare(set_up_library, e);
}

int h5_child_start(struct h5_source *s, enum h5_job_kind kind, struct child_proc *ret,
		   struct err *e)
{
	const int fds[H5_FDS] = {[H5_FD_SOURCE] = s->fd, [H5_FD_REGION] = s->region_fd};
	struct own_job own = {.s = s, .kind = kind};
	auto_free struct h5_job *job = NULL;

	if (child_prepared()) {
		int rc;

		job = alloc_array(1, sizeof(*job));
		if (!job)
			return err_nomem(e);
		rc = h5_job_of_source(s, kind, job, e);
		if (rc < 0)
			return rc;
	}
	return child_start(&hdf5_child, &own, job, job ? sizeof(*job) : 0, fds, ret, e);
}
