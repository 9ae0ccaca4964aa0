/* guest_child.c - children for libraries: what they are sent, and what they make of it. */
#include <string.h>

#include "hdf5view/guest.h"

/* own_job - for a child of this very process, which has the source already. */
struct own_job {
	struct guest *g;
	enum guest_job_kind kind;
};

/* guest_run - what the forker was sent is all that most children know of the source. */
void guest_run(const struct guest_kind *kind, const struct child_self *self)
{
	const struct own_job *own = self->own;
	const struct guest_job *job = self->data;
	struct guest *g = own ? own->g : NULL;
	struct err e = ERR_INIT;
	int rc;

	if (kind->begin)
		kind->begin();
	if (!own) {
		rc = guest_of_job(kind, job, self->fds[GUEST_FD_SOURCE],
				  self->fds[GUEST_FD_REGION], &g, &e);
		if (rc < 0) {
			child_say(self->sock, rc, e.msg, strlen(e.msg));
			_exit(1);
		}
	}
	if ((own ? own->kind : job->kind) == GUEST_OPEN)
		guest_open_job(g, self->sock);
	guest_read_job(g, self->sock);
}

int guest_child_start(struct guest *g, enum guest_job_kind kind, struct child_proc *ret,
		      struct err *e)
{
	const int fds[GUEST_FDS] = {
		[GUEST_FD_SOURCE] = g->fd, [GUEST_FD_REGION] = g->region_fd};
	struct own_job own = {.g = g, .kind = kind};
	auto_free struct guest_job *job = NULL;

	if (child_prepared()) {
		int rc;

		job = alloc_array(1, sizeof(*job));
		if (!job)
			return err_nomem(e);
		rc = guest_job_of(g, kind, job, e);
		if (rc < 0)
			return rc;
	}
	return child_start(&g->kind->child, &own, job, job ? sizeof(*job) : 0, fds, ret, e);
}
