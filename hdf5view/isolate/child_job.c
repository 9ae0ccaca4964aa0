/* SPDX-License-Identifier: BSD-3-Clause */
/* child_job.c - children for libraries: what they are sent, and what they make of it. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hdf5view/isolate/isolated_source.h"

/* child_job_confine - enter the sandbox before reading anything of the source. */
static int child_job_confine(const struct isolated_kind *kind, const struct isolated_job *job,
			     int fd, struct err *e)
{
	struct sandbox_path paths[ISOLATED_PATHS_MAX] = {{.fd = fd}};
	const struct sandbox_limits limits = {.memory = job->memory, .cpu_ms = job->cpu_ms};
	size_t n = job->remote ? 0 : 1;

	if (job->external_root[0])
		paths[n++] = (struct sandbox_path){.path = job->external_root, .fd = -1};
	if (kind->library->confine)
		return kind->library->confine(paths, n, &limits, e);
	return sandbox_enter(kind->child.may, paths, n, &limits, e);
}

/* child_job_next - in a child that opens several files: close g, and return the next source. */
static struct isolated *child_job_next(const struct isolated_kind *kind, struct isolated *g,
				       const struct child_self *self)
{
	static struct isolated_job job; /* read as long as its source is open */
	struct err e = ERR_INIT;
	int fds[ISOLATED_FDS];
	int rc;

	isolated_close(&g->base);
	/* a file that the library still has open could be taken for the next one */
	if ((kind->child.keeps_files && kind->child.keeps_files()) ||
	    !child_next_job(self, &kind->child, &job, sizeof(job), fds))
		_exit(0);
	rc = isolated_of_job(kind, &job, fds[ISOLATED_FD_SOURCE], fds[ISOLATED_FD_REGION], &g,
			     &e);
	if (rc < 0) {
		worker_reply(self->sock, rc, 0, &e);
		_exit(1);
	}
	return g;
}

void isolated_run(const struct isolated_kind *kind, const struct child_self *self)
{
	const struct isolated_job *job = self->own ? self->own : self->data;
	struct isolated *g;
	struct err e = ERR_INIT;
	int rc;

	if (self->own) /* a fork of the process that has the model's region */
		(void)munmap(job->at, job->size);
	if (kind->library->begin)
		kind->library->begin();
	rc = child_job_confine(kind, job, self->fds[ISOLATED_FD_SOURCE], &e);
	rc = rc ? rc
		: isolated_of_job(kind, job, self->fds[ISOLATED_FD_SOURCE],
				  self->fds[ISOLATED_FD_REGION], &g, &e);
	if (rc < 0) {
		worker_reply(self->sock, rc, 0, &e);
		_exit(1);
	}
	isolated_look_at_crashes();
	if (job->kind == ISOLATED_READ)
		isolated_read_job(g, self->sock);
	for (;;) {
		isolated_open_job(g, self->sock);
		if (self->own || !job->more)
			_exit(0); /* no exit handlers: they are the server's */
		g = child_job_next(kind, g, self);
	}
}

/* child_job_start - fd: the source's descriptor, or its replacement. */
static int child_job_start(struct isolated *g, enum isolated_job_kind kind, int fd,
			   struct child_proc *ret, struct err *e)
{
	const int fds[ISOLATED_FDS] = {
		[ISOLATED_FD_SOURCE] = fd, [ISOLATED_FD_REGION] = g->region_fd};
	auto_free struct isolated_job *job = alloc_array(1, sizeof(*job));
	int rc = job ? isolated_job_of(g, kind, job, e) : err_nomem(e);

	return rc < 0 ? rc : child_start(&g->kind->child, job, job, sizeof(*job), fds, ret, e);
}

int isolated_child_start(struct isolated *g, enum isolated_job_kind kind,
			 struct isolated_proc *ret, struct err *e)
{
	int pair[2], rc;

	*ret = (struct isolated_proc){.remote = NULL};
	if (!isolated_remote(g))
		return child_job_start(g, kind, g->fd, &ret->w.child, e);
	rc = blob_proxy_pair(pair, e);
	if (rc < 0)
		return rc;
	/* the thread comes after the child, which may be a fork of this process */
	rc = child_job_start(g, kind, pair[1], &ret->w.child, e);
	(void)close(pair[1]);
	rc = rc ? rc : blob_proxy_serve(g->blob, pair[0], kind == ISOLATED_OPEN, &ret->remote, e);
	if (rc < 0) {
		(void)worker_end(&ret->w);
		(void)close(pair[0]);
	}
	return rc;
}

bool isolated_shares(const struct isolated *g)
{
	return g->opts.processes && g->external_root && !isolated_remote(g) && !g->origin &&
	       !g->plugins && !g->again && !g->alone && child_prepared();
}

bool isolated_shared_fits(const struct worker *w, const void *arg)
{
	const struct isolated *g = arg;

	return w->served < SHARED_FILES && w->only && strcmp(w->only, g->external_root) == 0;
}

int isolated_shared_start(struct isolated *g, struct worker *w, struct err *e)
{
	const int fds[ISOLATED_FDS] = {
		[ISOLATED_FD_SOURCE] = g->fd, [ISOLATED_FD_REGION] = g->region_fd};
	auto_free struct isolated_job *job = NULL;
	int rc;

	if (!worker_alive(w) || !isolated_shared_fits(w, g)) {
		(void)worker_end(w);
		w->only = strdup(g->external_root);
		if (!w->only)
			return err_nomem(e);
		return child_job_start(g, ISOLATED_OPEN, g->fd, &w->child, e);
	}
	job = alloc_array(1, sizeof(*job));
	rc = job ? isolated_job_of(g, ISOLATED_OPEN, job, e) : err_nomem(e);
	if (rc < 0)
		return rc;
	if (g->opts.open_timeout_ms)
		child_renew(&w->child, g->opts.open_timeout_ms);
	return child_send_job(&w->child, &g->kind->child, job, sizeof(*job), fds)
		       ? 0
		       : err_set(e, -EPIPE, "%s's process ended", g->kind->child.who);
}

void isolated_child_end(struct isolated_proc *c)
{
	(void)worker_end(&c->w);
	blob_proxy_end(c->remote);
	c->remote = NULL;
}

enum child_taken isolated_call(struct isolated_proc *p, struct worker_call *c, bool *ret_slow,
			       struct err *e)
{
	/* another file cannot be read; the file is open for writing, or was replaced; the model's
	 * address is in use */
	static const int also[] = {-EACCES, -EAGAIN, -ESTALE, -EADDRINUSE, 0};
	const int64_t waited = blob_proxy_waited(p->remote);
	enum child_taken got;

	c->also = also;
	c->cancels = p->remote != NULL;
	got = worker_call(&p->w, c, e);
	*ret_slow = got == CHILD_LATE &&
		    (uint64_t)(blob_proxy_waited(p->remote) - waited) > c->ms / 2;
	if (got == CHILD_TAKEN && blob_proxy_failed(p->remote, NULL))
		c->rc = blob_proxy_failed(p->remote, e);
	return got;
}
