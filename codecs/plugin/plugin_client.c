/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_client.c - the server's side of the children that run plugins.
 *
 * Each child has a region of memory that it shares with the server: the server writes a request and
 * its input, the child the result. The child may do with the region whatever it likes at any time,
 * so that nothing in it is looked at twice: a result is copied out once, and then checked. It
 * cannot make the region shorter (a seal), which would kill who reads it.
 *
 * Children are kept, up to a few, and one that has run a library is preferred for the same. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/core/clock.h"
#include "base/process/shm.h"
#include "codecs/plugin/plugin_table.h"

#define WORKERS_MAX 8
#define REGION_MIN ((uint64_t)256 << 10)
#define REGION_KEEP ((uint64_t)64 << 20) /* of an idle child; what is beyond is given back */
#define ALIGN 64

/* plugin_client_worker - a child and its region. */
struct plugin_client_worker {
	struct child_proc child; /* pid 0: none */
	struct shm shared;
	const char *filter_lib,
		*codec_lib; /* that it is for; for comparison only; NULL: none */
	bool any;           /* it is for all of them */
	uint64_t served;    /* calls that this child answered */
	bool busy;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle;
	pid_t owner;                  /* of the children: another process may be forked */
	struct plugin_client_worker v[WORKERS_MAX]; /* a busy one belongs to its thread */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

static uint64_t limit_ms = PLUGIN_MS;

void plugin_set_time(uint64_t ms)
{
	limit_ms = ms < INT_MAX ? ms : INT_MAX;
}

/* ---- one child ---- */

static int worker_end(struct plugin_client_worker *w)
{
	int status = child_end(&w->child);

	shm_release(&w->shared);
	w->served = 0;
	w->filter_lib = w->codec_lib = NULL;
	return status;
}

static bool plugin_client_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* same_libs - the libraries of a call are those that the child has loaded; it cannot open others.
 * Names are those of the table, so that equal texts mostly have one address. */
static bool same_libs(const struct plugin_client_worker *w, const struct plugin_call *c)
{
	return w->any || (plugin_client_same_text(w->filter_lib, c->filter_lib) &&
			  plugin_client_same_text(w->codec_lib, c->codec_lib));
}

static int plugin_client_job_of(const struct plugin_client_worker *w,
				const struct plugin_call *c, struct plugin_job *ret,
				struct err *e)
{
	const char *filter = c->filter_lib && !w->any ? c->filter_lib : "";
	const char *codec = c->codec_lib && !w->any ? c->codec_lib : "";

	*ret = (struct plugin_job){.size = w->shared.size, .cpu_ms = limit_ms, .any = w->any};
	if (strlen(filter) >= sizeof(ret->filter_lib) ||
	    strlen(codec) >= sizeof(ret->codec_lib))
		return err_set(e, -ENAMETOOLONG, "its path is too long");
	memcpy(ret->filter_lib, filter, strlen(filter) + 1);
	memcpy(ret->codec_lib, codec, strlen(codec) + 1);
	return 0;
}

/* worker_ready - a child that is alive; one that died while idle is replaced without a word. */
static int worker_ready(struct plugin_client_worker *w, const struct plugin_call *c,
			struct err *e)
{
	struct pollfd p = {.fd = w->child.sock, .events = POLLIN};
	struct plugin_job job;
	int rc;

	if (w->child.pid && (!same_libs(w, c) || poll(&p, 1, 0) != 0))
		(void)worker_end(w); /* it has nothing to say before it is asked */
	if (w->child.pid)
		return 0;
	shm_release(&w->shared);
	rc = shm_new(PLUGIN_PROCESS, REGION_MIN, &w->shared, e);
	if (rc < 0)
		return rc;
	rc = plugin_client_job_of(w, c, &job, e);
	if (rc == 0)
		rc = child_start(&plugin_child, &job, &job, sizeof(job), &w->shared.fd,
				 &w->child, e);
	if (rc < 0)
		shm_release(&w->shared);
	w->filter_lib = c->filter_lib;
	w->codec_lib = c->codec_lib;
	return rc;
}

/* plugin_client_place - n bytes behind *end, aligned; returns their offset. *end is UINT64_MAX on
 * overflow. */
static uint64_t plugin_client_place(uint64_t *end, uint64_t n)
{
	uint64_t at;

	if (ckd_add(&at, *end, (uint64_t)ALIGN - 1)) {
		*end = UINT64_MAX;
		return 0;
	}
	at = at / ALIGN * ALIGN;
	if (ckd_add(end, at, n))
		*end = UINT64_MAX;
	return at;
}

/* put_request - the request and everything that goes with it, into the region. */
static int put_request(struct plugin_client_worker *w, const struct plugin_call *c,
		       struct plugin_request *ret, struct err *e)
{
	const size_t params = c->n_params * sizeof(*c->params);
	uint64_t end;
	int rc;

	*ret = (struct plugin_request){.op = (uint32_t)c->op,
				       .h5_id = c->h5_id,
				       .n_params = c->n_params,
				       .in_len = c->in_len,
				       .cap = c->cap};
	ret->filter_len = c->filter_lib ? (uint32_t)strlen(c->filter_lib) + 1 : 0;
	ret->codec_len = c->codec_lib ? (uint32_t)strlen(c->codec_lib) + 1 : 0;
	end = (uint64_t)ret->filter_len + ret->codec_len;
	ret->params = plugin_client_place(&end, params);
	ret->in = plugin_client_place(&end, c->in_len);
	ret->out = plugin_client_place(&end, c->cap);
	if (end > INT64_MAX / 4 || end > SIZE_MAX / 4)
		return err_set(e, -ERANGE, "a chunk of %zu bytes is too large for a plugin",
			       c->cap);
	rc = shm_grow(&w->shared, end, e);
	if (rc < 0)
		return rc;
	ret->size = w->shared.size;
	if (c->filter_lib)
		memcpy(w->shared.at, c->filter_lib, ret->filter_len);
	if (c->codec_lib)
		memcpy(w->shared.at + ret->filter_len, c->codec_lib, ret->codec_len);
	if (params)
		memcpy(w->shared.at + ret->params, c->params, params);
	if (c->in_len)
		memcpy(w->shared.at + ret->in, c->in, c->in_len);
	return 0;
}

/* plugin_client_take_reason - the text of a failure, after its size was checked. */
static enum child_taken plugin_client_take_reason(struct plugin_client_worker *w,
						  const struct child_answer *a, int64_t end,
						  int *ret_rc, struct err *e)
{
	char text[ERR_TEXT_MAX];
	enum child_taken got;

	if (a->rc > 0 || a->rc < -4095 || a->len >= sizeof(text))
		return CHILD_WRONG;
	got = child_take(w->child.sock, text, (size_t)a->len, end);
	if (got != CHILD_TAKEN)
		return got;
	text[a->len] = '\0';
	*ret_rc = err_set(e, child_errno(a->rc), "%s", text);
	return CHILD_TAKEN;
}

/* plugin_client_talk - one call of a child that is ready. *ret_rc: its answer, or what we failed
 * at. */
static enum child_taken plugin_client_talk(struct plugin_client_worker *w,
					   struct plugin_call *c, uint64_t ms, int *ret_rc,
					   struct err *e)
{
	int64_t end = clock_ms() + (int64_t)ms;
	struct plugin_request q;
	struct child_answer a;
	enum child_taken got;

	*ret_rc = put_request(w, c, &q, e);
	if (*ret_rc < 0)
		return CHILD_TAKEN; /* it was not asked */
	child_renew(&w->child, limit_ms);
	if (!child_send(w->child.sock, &q, sizeof(q), 0))
		return CHILD_GONE;
	got = child_take(w->child.sock, &a, sizeof(a), end);
	if (got != CHILD_TAKEN)
		return got;
	if (a.rc != 0)
		return plugin_client_take_reason(w, &a, end, ret_rc, e);
	if (a.len > c->cap)
		return CHILD_WRONG;
	*ret_rc = plugin_give(c, w->shared.at + q.out, (size_t)a.len, e);
	return CHILD_TAKEN;
}

/* plugin_client_explain - the child ended, or was ended by us, in the middle of a call. */
static int plugin_client_explain(enum child_taken got, uint64_t ms, int status, struct err *e)
{
	int sig = child_died_of(status);
	char why[CHILD_WHY_MAX];

	if (got == CHILD_LATE)
		return err_set(e, -EIO, "it did not answer within %llu s",
			       (unsigned long long)(ms + 999) / 1000);
	if (got == CHILD_WRONG)
		return err_set(e, -EIO, "it gave an invalid answer");
	if (sig == SIGKILL)
		return err_set(
			e, -EIO,
			"its process was killed (signal 9): the system may be short of memory");
	if (sig)
		return err_set(e, -EIO, "it %s", child_why(sig, why));
	return err_set(e, -EIO, "its process exited (status %d)", WEXITSTATUS(status));
}

/* ---- the pool ---- */

/* plugin_client_pick_locked - an idle child: one for these libraries, else a new one, else any,
 * which will be another. NULL: all are busy. */
static struct plugin_client_worker *plugin_client_pick_locked(const struct plugin_call *c)
{
	struct plugin_client_worker *any = NULL, *none = NULL;

	for (size_t i = 0; i < WORKERS_MAX; i++) {
		struct plugin_client_worker *w = &pool.v[i];

		if (w->busy)
			continue;
		if (w->child.pid && same_libs(w, c))
			return w;
		if (!w->child.pid)
			none = none ? none : w;
		else
			any = any ? any : w;
	}
	return none ? none : any;
}

/* own_locked - let go of the children of a process that forked this one. */
static void own_locked(void)
{
	for (size_t i = 0; pool.owner && i < WORKERS_MAX; i++) {
		struct plugin_client_worker *w = &pool.v[i];

		if (w->child.pid) {
			(void)close(w->child.sock);
			(void)close(w->child.life);
			if (w->child.report >= 0)
				(void)close(w->child.report);
			(void)close(w->shared.fd);
		}
		*w = (struct plugin_client_worker){0};
	}
	pool.owner = getpid();
}

static struct plugin_client_worker *acquire(const struct plugin_call *c)
{
	struct plugin_client_worker *w;

	(void)pthread_mutex_lock(&pool.lock);
	if (pool.owner != getpid())
		own_locked();
	while (!(w = plugin_client_pick_locked(c)))
		(void)pthread_cond_wait(&pool.idle, &pool.lock);
	w->busy = true;
	(void)pthread_mutex_unlock(&pool.lock);
	return w;
}

static void plugin_client_release(struct plugin_client_worker *w)
{
	shm_keep(&w->shared, REGION_KEEP);
	(void)pthread_mutex_lock(&pool.lock);
	w->busy = false;
	(void)pthread_cond_signal(&pool.idle);
	(void)pthread_mutex_unlock(&pool.lock);
}

/* plugin_client_ask - by one child. *ret_again: it died, and may have done so of what it did
 * before. */
static int plugin_client_ask(struct plugin_client_worker *w, struct plugin_call *c,
			     bool *ret_again, struct err *e)
{
	enum child_taken got;
	bool fresh;
	int rc = worker_ready(w, c, e), status;

	*ret_again = false;
	if (rc < 0)
		return rc;
	fresh = w->served == 0;
	got = plugin_client_talk(w, c, limit_ms, &rc, e);
	if (got == CHILD_TAKEN) {
		w->served++;
		return rc;
	}
	status = worker_end(w);
	*ret_again = got == CHILD_GONE && !fresh;
	return plugin_client_explain(got, limit_ms, status, e);
}

int plugin_ask(struct plugin_call *c, struct err *e)
{
	const char *lib = c->filter_lib ? c->filter_lib : c->codec_lib;
	struct err inner = ERR_INIT;
	bool again = true;
	int rc = 0;

	for (size_t i = 0; again && i <= WORKERS_MAX; i++) {
		struct plugin_client_worker *w = acquire(c);

		rc = plugin_client_ask(w, c, &again, &inner);
		plugin_client_release(w);
	}
	if (rc < 0)
		return err_set(e, rc, "plugin '%s' of '%s': %s", c->name, lib, inner.msg);
	return 0;
}

/* ---- what libraries have ---- */

/* cleaned - whether an entry of a child can be used; its name is made printable. */
static bool cleaned(struct plugin_entry *x)
{
	if (x->what < PLUGIN_FILTER || x->what > PLUGIN_DEFAULT || x->h5_id == 0 ||
	    x->h5_id > PLUGIN_ID_MAX || x->can > PLUGIN_CANS)
		return false;
	x->name[sizeof(x->name) - 1] = '\0';
	for (char *s = x->name; *s; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			*s = '?';
	return true;
}

static int set_why(struct plugin_lib *l, const char *why)
{
	l->why = strdup(why);
	return l->why ? 0 : -ENOMEM;
}

/* plugin_client_describe - one library. Whatever it does is its own fault, and costs nothing but
 * itself. */
static int plugin_client_describe(struct plugin_client_worker *w, struct plugin_lib *l,
				  struct plugin_desc *ret, struct err *e)
{
	uint64_t ms = u64_min(limit_ms, PLUGIN_LOAD_MS);
	struct plugin_call c = {.op = PLUGIN_DESCRIBE,
				.filter_lib = l->path,
				.cap = sizeof(*ret),
				.out = (uint8_t *)ret};
	struct err why = ERR_INIT;
	enum child_taken got;
	int rc = worker_ready(w, &c, e);

	if (rc < 0)
		return rc;
	got = plugin_client_talk(w, &c, ms, &rc, &why);
	if (got != CHILD_TAKEN)
		rc = plugin_client_explain(got, ms, worker_end(w), &why);
	else if (rc == 0 && (c.len != sizeof(*ret) || ret->n > PLUGIN_ENTRIES_MAX))
		rc = plugin_client_explain(CHILD_WRONG, ms, 0, &why);
	for (uint32_t i = 0; rc == 0 && i < ret->n; i++)
		if (!cleaned(&ret->v[i]))
			rc = plugin_client_explain(CHILD_WRONG, ms, 0, &why);
	if (rc == 0)
		return 0;
	*ret = (struct plugin_desc){0};
	return set_why(l, why.msg) < 0 ? err_nomem(e) : 0;
}

int plugin_describe(struct plugin_libs *libs, struct plugin_desc *ret, struct err *e)
{
	struct plugin_client_worker w = {.shared = {.fd = -1}, .any = true};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < libs->n; i++)
		if (!libs->v[i].why)
			rc = plugin_client_describe(&w, &libs->v[i], &ret[i], e);
	(void)worker_end(&w);
	return rc;
}
