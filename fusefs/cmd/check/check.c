/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - `nczarrfs check`: opens a source as a mount does, reads all of it, and reports damage.
 *
 * It runs in a child (run_in_child), so that a crash of a library on a damaged file becomes one
 * line. Filters are decoded by the same code as for a mount, with plans that request elements;
 * those of libhdf4, of plugins and (-o sandbox_codecs) all others run in confined processes. */
#include "fusefs/cmd/check/check.h"

#include <errno.h>
#include <inttypes.h>

#include <string.h>
#include <sys/mman.h>

#include "base/core/clock.h"
#include "base/process/child.h"
#include "base/observe/log.h"
#include "base/observe/print.h"
#include "base/os/lock.h"
#include "fusefs/cmd/check/check_int.h"
#include "fusefs/cmd/commands.h"
#include "fusefs/mirror/view.h"
#include "fusefs/daemon/stderr_capture.h"
#include "fusefs/app/remote.h"
#include "fusefs/write/writable.h"
#include "fusefs/app/fingerprint.h"

#define SAVE_NS ((int64_t)1000000000) /* between two saves of the state */
#define REPORT_MAX ((size_t)1 << 30)

/* check_provenance - shared with the waiting parent process. */
struct check_provenance {
	int status; /* CHECK_FAILED until the result is known */
	struct check_reported known;
};

/* check_run_s - one check, in its process. */
struct check_run_s {
	const struct app *setup;
	struct check_provenance *reported;
	bool several; /* one of several datasets of a directory */
	struct check c;
	uint64_t same;
	struct progress progress;
	int64_t saved;
	int64_t polled;
	bool resumed;
};

/* ---- opening ---- */

static int open_rest(struct check_run_s *r, bool hide_bad, struct err *e)
{
	struct source_options opts;

	fs_source_options(r->setup->cfg, &opts);
	opts.keep_going = hide_bad;
	return fs_source(r->setup, r->setup->cfg->source, &opts, &r->c.source, e);
}

/* check_open_source - open the dataset; if that fails, its readable part, with the reason in
 * *rest. */
static int check_open_source(struct check_run_s *r, struct err *rest, struct err *e)
{
	const struct cfg *cfg = r->setup->cfg;
	const bool quietly = fs_quiet(cfg);
	struct err other = ERR_INIT;
	struct stderr_capture q;
	char text[4096];
	int rc;

	if (quietly)
		stderr_capture_begin(&q);
	rc = open_rest(r, cfg->hide_bad, e);
	if ((rc == -EOPNOTSUPP || rc == -EBADMSG || rc == -ERANGE) && !cfg->hide_bad &&
	    open_rest(r, true, &other) == 0) {
		*rest = *e;
		r->c.rest = rest->msg;
		rc = 0;
	}
	if (quietly)
		stderr_capture_end(&q, text, sizeof(text));
	return rc;
}

/* work_of - bytes of elements of an array, for the progress. */
static double work_of(const struct check *c, uint32_t array)
{
	const struct ds_array *a = &c->source->ds.arrays[array];

	return (double)a->n_chunks * (double)u64_max(a->chunk_bytes, 1);
}

/* open_chunks - plan to read every array as elements, and open c->io. */
static int open_chunks(struct check *c, struct err *e)
{
	const struct chunkio_options io = {.cache_bytes = c->setup->cfg->limits.cache_size,
					   .shared = c->setup->shared};
	const struct dataset *ds = &c->source->ds;

	c->plans = alloc_array(ds->n_arrays, sizeof(*c->plans));
	if (!c->plans)
		return err_nomem(e);
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const struct ds_array *a = &ds->arrays[i];

		c->plans[i] = (struct plan){
			.kind = dt_is_vlen(&a->type) ? PLAN_VLEN : PLAN_DECODE,
			.fill_declared = true, /* chunks that were never written are not read */
		};
		c->all += work_of(c, i);
	}
	return chunkio_new(c->source, c->plans, &io, &c->io, e);
}

/* look_for_rest - report pending writes, which the check does not cover. */
static int look_for_rest(struct check_run_s *r, struct err *e)
{
	const struct app *setup = r->setup;
	struct err other = ERR_INIT;
	int rc = fs_rw_repair(setup, setup->cfg->source, false, e);

	if (rc == 0) {
		rc = fs_rw_pending(setup, setup->cfg->source, &other);
		r->c.unfinished = rc != 0 && rc != -ENOENT;
		rc = 0;
	}
	return rc;
}

static int check_prepare(struct check_run_s *r, struct err *rest, struct err *e)
{
	const struct app *setup = r->setup;
	int rc = mirror_wanted(setup, e);

	rc = rc < 0 ? rc : 0; /* the dataset does not exist any more: opening it reports that */
	/* before threads start: the process that forks others */
	rc = rc ? rc : app_prepare(setup, e);
	rc = rc ? rc : look_for_rest(r, e);
	rc = rc ? rc : check_open_source(r, rest, e);
	rc = rc ? rc : open_chunks(&r->c, e);
	if (rc == 0)
		r->c.n_workers = workers_threads(&setup->cfg->limits, r->c.source->remote);
	return rc;
}

/* ---- while it runs ---- */

/* check_do_end - end with an error, unless there was an earlier one. */
static void check_do_end(struct check *c, const struct err *why)
{
	LOCK_SCOPE(&c->lock);

	if (c->stop.code == 0)
		c->stop = *why;
}

static double share_of(const struct check *c)
{
	double here = c->passed;

	if (c->next.array < c->source->ds.n_arrays)
		here += (double)c->next.linear *
			(double)u64_max(c->source->ds.arrays[c->next.array].chunk_bytes, 1);
	return c->all > 0 ? here / c->all : 1;
}

/* check_show - show the progress. Returns true if the threads continue. */
static bool check_show(struct check *c, struct progress *p)
{
	uint64_t taken, bytes;
	double share;
	bool runs;

	(void)pthread_mutex_lock(&c->lock);
	share = share_of(c);
	taken = c->taken;
	bytes = c->bytes;
	runs = c->running > 0;
	(void)pthread_mutex_unlock(&c->lock);
	progress_show(p, share, taken, "chunks", bytes);
	return runs;
}

static void check_tick(void *arg, struct check_at at, uint64_t taken)
{
	struct check_run_s *r = arg;
	struct check *c = &r->c;
	const struct cfg *cfg = r->setup->cfg;
	int64_t now = clock_ns();
	bool runs = check_show(c, &r->progress);
	struct err e = ERR_INIT;

	if (now - r->polled >= SAVE_NS) {
		r->polled = now;
		if (source_poll(c->source, NULL) == -ESTALE &&
		    err_set(&e, -ESTALE, "'%s' changed while it was read: run the check again",
			    cfg->shown) < 0)
			check_do_end(c, &e);
	}
	if (cfg->check.resume && (now - r->saved >= SAVE_NS || !runs)) {
		r->saved = now;
		if (check_state_save(c, cfg->check.resume, at, taken, r->same, &e) < 0)
			check_do_end(c, &e);
	}
}

/* shown - state of check_chunks' on_progress. */
struct shown {
	struct check c;
	struct progress *progress;
};

static void tick_chunks(void *arg, struct check_at at NZ_UNUSED, uint64_t taken NZ_UNUSED)
{
	struct shown *s = arg;

	(void)check_show(&s->c, s->progress);
}

int check_chunks(const struct app *setup, struct source *s, uint32_t n_workers,
		 struct progress *p, struct err *e)
{
	struct shown x = {.c = {.setup = setup, .source = s, .n_workers = n_workers},
			  .progress = p};
	struct check *c = &x.c;
	uint64_t bad;
	int rc;

	(void)pthread_mutex_init(&c->lock, NULL); /* cannot fail without attributes */
	rc = open_chunks(c, e);
	if (rc == 0) {
		progress_begin(p);
		rc = check_run(c, tick_chunks, &x, e);
		progress_end(p);
	}
	bad = check_log_bad(c);
	if (rc == 0 && bad)
		rc = err_set(e, -EBADMSG, "'%s': %" PRIu64 " damaged chunk%s: nothing is copied",
			     setup->cfg->shown, bad, bad == 1 ? "" : "s");
	chunkio_free(c->io);
	free(c->plans);
	check_bad_release(&c->bad);
	(void)pthread_mutex_destroy(&c->lock);
	return rc;
}

static int all(struct check_run_s *r, struct err *e)
{
	const struct cfg *cfg = r->setup->cfg;
	int rc = 0;

	if (cfg->check.resume) {
		rc = source_fingerprint(r->setup, r->c.source, &r->same, e);
		rc = rc ? rc : check_state_load(&r->c, cfg->check.resume, r->same, e);
		r->resumed = rc > 0;
	}
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < r->c.next.array; i++) /* it continues after these */
		r->c.passed += work_of(&r->c, i);
	progress_begin(&r->progress);
	r->saved = r->polled = clock_ns();
	rc = check_run(&r->c, check_tick, r, e);
	progress_end(&r->progress);
	/* a chunk that changed during the read is neither good nor bad */
	if (rc == 0 && source_poll(r->c.source, NULL) == -ESTALE)
		rc = err_set(&r->c.stop, -ESTALE,
			     "'%s' changed while it was read: run the check again", cfg->shown);
	if (r->c.stop.code && e)
		*e = r->c.stop;
	if (rc == 0 && cfg->check.resume && !r->several)
		(void)unlink(cfg->check.resume); /* the check is complete */
	return rc;
}

static int check(void *arg)
{
	struct check_run_s *r = arg;
	struct err e = ERR_INIT, rest = ERR_INIT;
	auto_buf out = buf_of(REPORT_MAX);
	bool bad;
	int rc;

	(void)pthread_mutex_init(&r->c.lock, NULL); /* cannot fail without attributes */
	r->c.setup = r->setup;
	rc = check_prepare(r, &rest, &e);
	if (rc == 0) {
		rc = all(r, &e);
		if (rc == 0 || r->c.taken || r->c.bad.n) {
			r->reported->known.printed = true;
			check_report(&r->c, rc == 0, r->resumed, &out);
			rc = print_part(&out) ? rc : -EIO;
		}
	}
	if (rc < 0 && e.code)
		log_error("%s", e.msg);
	bad = r->c.bad.n || r->c.bad.more || r->c.rest;
	r->reported->known.damaged = bad;
	bad = bad || r->c.unfinished;
	r->reported->status = rc < 0 ? CHECK_FAILED : bad ? CHECK_DAMAGED : CHECK_GOOD;
	chunkio_free(r->c.io);
	source_close(r->c.source);
	free(r->c.plans);
	check_bad_release(&r->c.bad);
	return r->reported->status;
}

int check_one(const struct app *setup, bool several, struct check_reported *ret)
{
	struct check_provenance *reported =
		mmap(NULL, sizeof(*reported), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct check_run_s r = {.setup = setup, .reported = reported, .several = several};
	bool interrupted;
	int rc;

	*ret = (struct check_reported){0};
	if (reported == MAP_FAILED) {
		log_error("not enough memory");
		return CHECK_FAILED;
	}
	reported->status = CHECK_FAILED;
	rc = run_in_child_until(setup->cfg->shown, 0, check, &r, &interrupted);
	/* the result of a process that died has no verdict on chunks */
	rc = reported->status == CHECK_FAILED ? CHECK_FAILED : rc;
	*ret = reported->known;
	ret->interrupted = interrupted;
	(void)munmap(reported, sizeof(*reported));
	return rc;
}

int fs_check(const struct app *setup)
{
	struct check_reported reported;

	if (setup->cfg->more.n)
		return each_source(setup, "check");
	if (mirror_wanted(setup, NULL) > 0)
		return check_dir(setup);
	return check_one(setup, false, &reported);
}
