/* SPDX-License-Identifier: BSD-3-Clause */
/* commit_process.c - a process that commits a generation of a stage to an HDF5 file.
 *
 * libhdf5 writes in that process, and may crash there; the server gets its result as a message.
 * Before the first byte changes that a reader of the old state may see, the process sends a request
 * and waits for the answer. Both the server and the process may die at any time: the journal says
 * how to recover. If the process dies after it was allowed to change the file, recovery runs at
 * once and the commit is repeated, which then finds few or no differences. */
#include "fusefs/write/writable_int.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/process/child.h"
#define LOG_COMPONENT LOG_WRITE
#include "base/core/clock.h"
#include "base/observe/log.h"
#include "codecs/plugin/plugin.h"

enum {
	READY = 1, /* an answer: bytes of the old state are about to change */
	NOTE = 2,  /* an answer: a message for the log */
	GO = 'g',
};
#define COMMIT_MS ((int64_t)60 * 60 * 1000) /* a process that takes longer hangs */
#define MEMORY ((uint64_t)32 << 30)         /* address space: a few chunks of 4 GiB */
#define PATHS_MAX 64
#define NOTE_MAX 512
#define LEFT_MAX ((uint64_t)1 << 28) /* bytes of keys that stay staged */

/* Committing processes are forked from a process that was itself forked before the first job. It
 * inherits the setup, which cannot be sent. */
static const struct app *the_setup;

void fs_rw_prepare(const struct app *setup)
{
	the_setup = setup;
}

struct commit_process_job {
	uint64_t generation;
	bool all;
	struct source_model model; /* its fd is FD_MODEL */
	char path[PATH_MAX];
};

/* The descriptors of a job. If the source has no model, FD_MODEL is a copy of FD_STATE. */
enum { FD_STATE, FD_MODEL, FDS };

/* ---- the committing process ---- */

static const struct child_kind kind;

/* commit_process_ask - the gate: wait until the server permits changes of the file. */
static int commit_process_ask(void *arg, struct err *e)
{
	const int *sock = arg;
	char word;

	child_say(*sock, READY, NULL, 0);
	if (child_take(*sock, &word, 1, INT64_MAX) == CHILD_TAKEN && word == GO)
		return 0;
	return err_set(e, -ECANCELED, "the commit was cancelled");
}

static void commit_process_note(void *arg, const char *text)
{
	const int *sock = arg;

	child_say(*sock, NOTE, text, strlen(text));
}

/* commit_process_confine - it may change only the file and its state directory. Its own children
 * read other files, and have fewer rights. */
static int commit_process_confine(const struct commit_process_job *job, int dir_fd,
				  struct err *e)
{
	const struct sandbox_limits limits = {.memory = MEMORY, .cpu_ms = (uint64_t)COMMIT_MS};
	const char *root = the_setup->cfg->external_root, *slash = strrchr(job->path, '/');
	char beside[PATH_MAX];
	struct sandbox_path paths[PATHS_MAX] = {
		{.path = job->path, .fd = -1, .writable = true},
		{.fd = dir_fd, .writable = true},
		{.path = "/proc", .fd = -1},
		{.path = "/dev/null", .fd = -1, .writable = true},
	};
	size_t n = 4;

	if (fs_links_beside(the_setup->cfg) && slash > job->path) {
		(void)snprintf(beside, sizeof(beside), "%.*s", (int)(slash - job->path),
			       job->path);
		root = beside;
	}
	if (root && root[0])
		paths[n++] = (struct sandbox_path){.path = root, .fd = -1};
	n += codec_plugins_dirs(paths + n, PATHS_MAX - n);
	return sandbox_enter(kind.may, paths, n, &limits, e);
}

static void commit_process_run(const struct child_self *self)
{
	const struct commit_process_job *job = self->own ? self->own : self->data;
	struct source_model model = job->model;
	struct err e = ERR_INIT;
	int sock = self->sock, rc;
	auto_buf left = buf_of(LEFT_MAX);

	child_alone();
	model.fd = self->fds[FD_MODEL];
	rc = commit_process_confine(job, self->fds[FD_STATE], &e);
	if (rc == 0)
		rc = commit_tree(the_setup, job->path, &model, self->fds[FD_STATE],
				 job->generation, job->all, commit_process_ask,
				 commit_process_note, &sock, &left, &e);
	if (rc < 0)
		child_say(sock, rc, e.msg, strlen(e.msg));
	else
		child_say(sock, 0, left.data, left.len);
}

static const struct child_kind kind = {
	.name = "nczarrfs-commit",
	.who = "the HDF5 library that writes",
	.n_fds = FDS,
	.may = SANDBOX_OPENS | SANDBOX_LOADS | SANDBOX_WRITES,
	.run = commit_process_run,
};

/* ---- the server ---- */

int rw_left(const struct buf *left, struct err *e)
{
	return left->len > 0 && left->data[left->len - 1]
		       ? err_set(e, -EBADMSG, "a list of keys is truncated")
		       : 0;
}

/* commit_process_committing - the server's state of one process. */
struct commit_process_committing {
	const struct rw_state *state;
	const struct snapshot *was;
	struct child_proc proc;
	bool all;
	void (*quiesce)(void *view);
	void *view;
	bool let_go; /* it was permitted to change the file */
	bool said;   /* it has sent its result */
	struct buf *left; /* the result */
};

static int commit_process_take_text(struct commit_process_committing *c,
				    const struct child_answer *a, int64_t end, struct err *e)
{
	uint8_t *room;

	buf_clear(c->left);
	room = buf_grow(c->left, a->len + 1);
	if (!room)
		return err_nomem(e);
	if (child_take(c->proc.sock, room, a->len, end) != CHILD_TAKEN)
		return -EPIPE;
	room[a->len] = '\0';
	c->left->len = a->len;
	c->said = true;
	return a->rc < 0 ? err_set(e, (int)a->rc, "%s", (const char *)room)
			 : rw_left(c->left, e);
}

/* take_note - log a message of the process. */
static bool take_note(struct commit_process_committing *c, const struct child_answer *a,
		      int64_t end)
{
	char text[NOTE_MAX + 1];

	if (a->len > NOTE_MAX ||
	    child_take(c->proc.sock, text, a->len, end) != CHILD_TAKEN)
		return false;
	text[a->len] = '\0';
	log_warn("'%s': %s", c->state->path, text);
	return true;
}

/* converse - exchange messages until the end. -EPIPE: it ended without a result; -ETIMEDOUT. */
static int converse(struct commit_process_committing *c, struct err *e)
{
	const int64_t end = clock_ms() + COMMIT_MS;
	struct child_answer a;
	char word = GO;

	for (;;) {
		enum child_taken taken = child_take(c->proc.sock, &a, sizeof(a), end);

		if (taken != CHILD_TAKEN)
			return taken == CHILD_LATE ? -ETIMEDOUT : -EPIPE;
		if (a.rc == NOTE && take_note(c, &a, end))
			continue;
		if (a.rc != READY)
			break;
		c->quiesce(c->view);
		c->let_go = true;
		if (!child_send(c->proc.sock, &word, 1, 0))
			return -EPIPE;
	}
	if (a.len > LEFT_MAX || a.rc > 0 || a.rc < -4095)
		return -EPIPE;
	return commit_process_take_text(c, &a, end, e);
}

static int commit_process_died(const struct commit_process_committing *c, int rc, int status,
			       struct err *e)
{
	int sig = child_died_of(status);
	char why[CHILD_WHY_MAX];

	if (rc == -ETIMEDOUT)
		return err_set(e, -EIO, "'%s': the commit did not finish within an hour",
			       c->state->path);
	if (sig)
		return err_set(e, -EIO, "'%s': the writer process %s", c->state->path,
			       child_why(sig, why));
	return err_set(e, -EIO, "'%s': the writer process exited unexpectedly", c->state->path);
}

static int one_process(struct commit_process_committing *c, uint64_t generation, struct err *e)
{
	struct commit_process_job job = {.generation = generation, .all = c->all};
	int fds[FDS] = {c->state->dir_fd, c->state->dir_fd};
	int rc, status;

	if (strlen(c->state->path) >= sizeof(job.path))
		return err_set(e, -ENAMETOOLONG, "'%s': its path is too long", c->state->path);
	memcpy(job.path, c->state->path, strlen(c->state->path) + 1);
	if (c->was->view->source)
		source_model_of(c->was->view->source, &job.model);
	if (job.model.size)
		fds[FD_MODEL] = job.model.fd;
	rc = child_start(&kind, &job, &job, sizeof(job), fds, &c->proc, e);
	if (rc < 0)
		return rc;
	rc = converse(c, e);
	status = child_end(&c->proc);
	return rc < 0 && !c->said && rc != -ENOMEM ? commit_process_died(c, rc, status, e) : rc;
}

/* commit_process_attempt - commit once. If the process failed or died, recover the file: it is in
 * one of the two states afterwards. */
static int commit_process_attempt(const struct app *setup, struct commit_process_committing *c,
				  uint64_t generation, struct err *e)
{
	struct err other = ERR_INIT;
	bool done = false;
	int rc = one_process(c, generation, e);

	if (rc == 0)
		return 0;
	if (rw_repair(setup, c->state, &done, &other) < 0)
		return err_set(e, other.code, "%s", other.msg);
	if (!c->let_go || (!done && c->said))
		return rc;
	c->said = false;
	return one_process(c, generation, e);
}

int rw_commit_tree(void *arg, const struct snapshot *was, uint64_t generation, bool all,
		   void (*quiesce)(void *view), void *view, struct buf *left, struct err *e)
{
	struct rw *rw = arg;
	struct rw_state *state = &rw->state;
	struct commit_process_committing c = {.state = state,
					      .was = was,
					      .all = all,
					      .quiesce = quiesce,
					      .view = view,
					      .left = left};
	int rc = rw_state_changing(state, e);

	if (rc < 0)
		return rc;
	rc = commit_process_attempt(rw->setup, &c, generation, e);
	if (rc < 0 && !c.let_go)
		rw_state_unchanged(state);
	/* recovery may change it when it is next opened: then it is no base for pending writes */
	else if (rw_pending(state, NULL) == 0 && rw_state_base(state, NULL) < 0)
		(void)rw_state_changing(state, NULL);
	return rc;
}
