/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_client.c - the server's side of the children that run plugins.
 *
 * A request and its input are in memory shared with the child (base/process/worker.h), as is the
 * result, which is copied out once and then checked. A child that has loaded the libraries of a
 * call is preferred for it. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/process/worker.h"
#include "codecs/plugin/plugin.h"
#include "codecs/plugin/plugin_table.h"

#define WORKERS_MAX 8

/* client_libs - the libraries that a process has loaded, as paths of the table. It cannot
 * open others. NULL: none. */
struct client_libs {
	const char *filter, *codec;
};

static struct worker_pool pool = WORKER_POOL_INIT(WORKERS_MAX);
static struct client_libs loaded[WORKERS_MAX]; /* for the processes of pool.v */

static uint64_t limit_ms = PLUGIN_MS;

void codec_plugins_time(uint64_t ms)
{
	limit_ms = ms < INT_MAX ? ms : INT_MAX;
}

/* ---- a child ---- */

static bool client_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* has_libs - whether a process has the libraries of a call. Paths are those of the table, so that
 * equal ones mostly have the same address. */
static bool has_libs(const struct worker *w, const void *arg)
{
	const struct client_libs *l = &loaded[w - pool.v];
	const struct plugin_call *c = arg;

	return client_same_text(l->filter, c->filter_lib) &&
	       client_same_text(l->codec, c->codec_lib);
}

/* client_start - start a process for the libraries of a call, which are the only ones that it may
 * load; NULL: for descriptions of any. */
static int client_start(struct worker *w, const struct plugin_call *c, struct err *e)
{
	struct plugin_job job = {.cpu_ms = limit_ms, .any = !c};
	const char *filter = c && c->filter_lib ? c->filter_lib : "";
	const char *codec = c && c->codec_lib ? c->codec_lib : "";

	if (strlen(filter) >= sizeof(job.filter_lib) || strlen(codec) >= sizeof(job.codec_lib))
		return err_set(e, -ENAMETOOLONG, "its path is too long");
	memcpy(job.filter_lib, filter, strlen(filter) + 1);
	memcpy(job.codec_lib, codec, strlen(codec) + 1);
	return worker_start(w, &plugin_child, &job, sizeof(job), e);
}

/* put_request - write the request and its data to the shared memory. */
static int put_request(struct worker *w, const struct plugin_call *c,
		       struct plugin_request *ret, struct err *e)
{
	const size_t params = c->n_params * sizeof(*c->params);
	uint64_t end = 0;
	int rc;

	*ret = (struct plugin_request){.op = (uint32_t)c->op,
				       .h5_id = c->h5_id,
				       .n_params = c->n_params,
				       .in_len = c->in_len,
				       .cap = c->cap};
	ret->params = worker_place(&end, params);
	ret->in = worker_place(&end, c->in_len);
	ret->out = worker_place(&end, c->cap);
	rc = shm_grow(&w->shared, end, e);
	if (rc < 0)
		return rc;
	ret->size = w->shared.size;
	if (params)
		memcpy(w->shared.at + ret->params, c->params, params);
	if (c->in_len)
		memcpy(w->shared.at + ret->in, c->in, c->in_len);
	return 0;
}

static const struct worker_words words = {
	.late = "",
	.invalid = " gave an invalid answer",
	.killed = "s process was killed (signal 9): the system may be short of memory",
	.crashed = "",
	.ended = "s process exited",
	.ended_of = "",
};

/* client_call - call a process that is ready. *ret: the consequence of its loss. */
static int client_call(struct worker *w, struct plugin_call *c, uint64_t ms,
		       enum worker_fate *ret, struct err *e)
{
	struct plugin_request q;
	struct worker_call k = {.request = &q, .size = sizeof(q), .ms = ms};
	enum child_taken got;
	int rc = put_request(w, c, &q, e);

	*ret = WORKER_FAILED;
	if (rc < 0)
		return rc;
	got = worker_call(w, &k, e);
	if (got == CHILD_TAKEN && k.rc == 0 && k.len > c->cap)
		got = CHILD_WRONG;
	if (got != CHILD_TAKEN)
		return worker_lost(w, &words, "it", got, ms, ret, e);
	return k.rc < 0 ? k.rc : plugin_give(c, w->shared.at + q.out, (size_t)k.len, e);
}

/* client_ask - call one process. fresh: one that has run nothing yet. */
static int client_ask(struct worker *w, struct plugin_call *c, bool fresh,
		      enum worker_fate *ret, struct err *e)
{
	int rc = 0;

	*ret = WORKER_FAILED;
	if (!has_libs(w, c) || (fresh && w->served))
		(void)worker_end(w);
	if (!worker_alive(w)) {
		loaded[w - pool.v] = (struct client_libs){c->filter_lib, c->codec_lib};
		rc = client_start(w, c, e);
	}
	return rc < 0 ? rc : client_call(w, c, limit_ms, ret, e);
}

int plugin_ask(struct plugin_call *c, struct err *e)
{
	const char *lib = c->filter_lib ? c->filter_lib : c->codec_lib;
	enum worker_fate fate = WORKER_RETRY;
	struct err inner = ERR_INIT;
	bool fresh = false;
	int rc = 0;

	for (; fate == WORKER_RETRY; fresh = true) {
		struct worker *w = worker_take(&pool, has_libs, c);

		rc = client_ask(w, c, fresh, &fate, &inner);
		worker_give(&pool, w);
	}
	if (rc < 0)
		return err_set(e, rc, "plugin '%s' of '%s': %s", c->name, lib, inner.msg);
	return 0;
}

/* ---- descriptions of libraries ---- */

/* cleaned - check an entry that a child sent, and make its name printable. */
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

/* client_describe - describe one library. Whatever it does, only this library is lost. */
static int client_describe(struct worker *w, struct plugin_lib *l, struct plugin_desc *ret,
			   struct err *e)
{
	const uint64_t ms = u64_min(limit_ms, PLUGIN_LOAD_MS);
	struct plugin_call c = {.op = PLUGIN_DESCRIBE,
				.in = (const uint8_t *)l->path,
				.in_len = strlen(l->path) + 1,
				.cap = sizeof(*ret),
				.out = (uint8_t *)ret};
	struct err why = ERR_INIT;
	enum worker_fate fate;
	bool good;
	int rc = worker_alive(w) ? 0 : client_start(w, NULL, e);

	if (rc < 0)
		return rc;
	rc = client_call(w, &c, ms, &fate, &why);
	good = c.len == sizeof(*ret) && ret->n <= PLUGIN_ENTRIES_MAX;
	for (uint32_t i = 0; rc == 0 && good && i < ret->n; i++)
		good = cleaned(&ret->v[i]);
	if (rc == 0 && !good)
		rc = worker_lost(w, &words, "it", CHILD_WRONG, ms, NULL, &why);
	if (rc == 0)
		return 0;
	*ret = (struct plugin_desc){0};
	l->why = strdup(why.msg);
	return l->why ? 0 : err_nomem(e);
}

int plugin_describe(struct plugin_libs *libs, struct plugin_desc *ret, struct err *e)
{
	struct worker w = {0};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < libs->n; i++)
		if (!libs->v[i].why)
			rc = client_describe(&w, &libs->v[i], &ret[i], e);
	(void)worker_end(&w);
	return rc;
}
