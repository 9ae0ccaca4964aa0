/* SPDX-License-Identifier: BSD-3-Clause */
/* directory.c - `nczarrfs refs` of a directory: references to all datasets below it, as one
 * hierarchy with a group for each of them.
 *
 * The group of a dataset has the dataset's path below the directory, with its ending, so that the
 * name of a file is the name of its group, and "a.nc" and "a.h5" differ. Threads open the datasets,
 * as most of the time is spent in the processes of their libraries. References that lie in the
 * directory are left out: they only repeat other datasets. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/observe/log.h"
#include "base/os/url.h"
#include "base/process/worker.h"
#include "fusefs/app/dataset_list.h"
#include "fusefs/app/remote.h"
#include "fusefs/app/workers.h"
#include "fusefs/cmd/refs/refs_int.h"
#include "fusefs/write/writable.h"

#define PATH_LONG ((size_t)1 << 20)

struct refs_dir {
	struct refs_job *job;
	struct stat out; /* of an existing output */
	bool has_out;
	char *top;   /* that paths begin with, without '/' at its end; owned */
	size_t skip; /* bytes of a path before its part below the directory */
	bool encode; /* the address is a URL */
	struct dataset_list list;
	struct worker_pool processes; /* of libraries, each for many datasets */
	struct refs_set *set;
	struct progress progress;
	pthread_mutex_t lock; /* of all fields below */
	pthread_cond_t tick;
	uint32_t running;
	size_t next; /* the first dataset that no thread has taken */
	size_t done, failed;
	/* errors of datasets that were not reported yet; owned; an entry is NULL if memory was
	 * short */
	char **failures;
	size_t n_failures, cap_failures;
	struct err stop; /* code 0: none; else the error that ends the command */
};

/* ---- one dataset ---- */

/* put_address - append the address of a dataset. */
static void put_address(const struct refs_dir *d, const char *below, struct buf *out)
{
	const char *top = d->job->address;
	size_t n = strlen(top);

	while (n > 1 && top[n - 1] == '/')
		n--;
	buf_put(out, top, n);
	if (n == 0 || top[n - 1] != '/')
		buf_putc(out, '/');
	if (d->encode)
		url_encode(out, below, strlen(below), true);
	else
		buf_puts(out, below);
	buf_putc(out, '\0');
}

/* open_source - open the source of a dataset. */
static int open_source(const struct refs_dir *d, const char *path,
		       const struct source_options *opts, struct source **ret, struct err *e)
{
	const struct app *setup = d->job->setup;
	int rc;

	if (d->job->folder)
		return fs_source_below(setup, setup->cfg->source, path + d->skip,
				       name_says_dataset(store_key_name(path), false), opts, ret,
				       e);
	rc = fs_rw_repair(setup, path, false, e);
	return rc < 0 ? rc
		      : source_open(setup->formats, setup->n_formats, path, opts, ret, e);
}

/* open_dataset - open the view of a dataset. */
static int open_dataset(struct refs_dir *d, const char *path, struct view **ret, struct err *e)
{
	const struct app *setup = d->job->setup;
	const struct view_request want = {.name = setup->file_name,
					  .id_limit = VIEW_ID_LIMIT,
					  .rules = setup->rules,
					  .shared = setup->shared,
					  .share = FS_MIRROR_SHARE};
	struct source_options opts;
	struct source *source = NULL;
	int rc;

	fs_source_options(setup->cfg, &opts);
	opts.processes = &d->processes;
	rc = open_source(d, path, &opts, &source, e);
	rc = rc ? rc : fs_rechunk(setup, setup->cfg, &opts, FS_MIRROR_SHARE, &source, e);
	if (rc < 0)
		return rc;
	rc = setup->view_open(source, setup->cfg, &want, ret, e);
	return rc < 0 ? err_wrap(e, rc, "'%s'", path) : 0;
}

/* add_dataset - write the references of dataset i, or pass it. */
static int add_dataset(struct refs_dir *d, size_t i, struct err *e)
{
	const char *path = d->list.paths[i], *group = path + d->skip;
	struct refs_options opts;
	struct view *view = NULL;
	auto_buf address = buf_of(PATH_LONG);
	int rc;

	put_address(d, group, &address);
	opts = refs_options_of(d->job, (const char *)address.data);
	rc = buf_ok(&address) ? open_dataset(d, path, &view, e) : err_nomem(e);
	if (rc < 0) {
		refs_set_pass(d->set, i);
	} else {
		rc = refs_set_add(d->set, i, group, view->source, view, &opts, e);
		rc = refs_unchanged(view->source, rc, e);
		if (rc < 0)
			rc = err_wrap(e, rc, "'%s'", path);
	}
	view_close(view);
	return rc;
}

/* says_of_dataset - whether an error is a property of a dataset, which may be left out. All others
 * may mean that this machine is short of something, that a disk or a network fails, or that the
 * dataset changed: without the dataset, the references would be incomplete, and the next run may
 * have it. -EIO is also the error of a library that crashed, which a shortage may cause. */
static bool says_of_dataset(int code)
{
	static const int of_dataset[] = {EBADMSG, EOPNOTSUPP,	 ERANGE, EINVAL, EFBIG, ENODATA,
					 EACCES,  ENAMETOOLONG, EILSEQ, EPERM,  ELOOP};

	for (size_t i = 0; i < ARRAY_LEN(of_dataset); i++)
		if (code == -of_dataset[i])
			return true;
	return false;
}

/* note_failure - remember why a dataset has no references. d is locked. */
static void note_failure(struct refs_dir *d, int code, const struct err *e)
{
	if (!says_of_dataset(code)) {
		if (d->stop.code)
			return;
		d->stop = *e;
		d->stop.code = code;
		return;
	}
	d->failed++;
	if (grow_array(&d->failures, &d->cap_failures, d->n_failures + 1,
		       sizeof(*d->failures)) == 0)
		d->failures[d->n_failures++] = strdup(e->msg);
}

static void refs_dir_work(void *arg, uint32_t thread NZ_UNUSED, uint8_t *room NZ_UNUSED)
{
	struct refs_dir *d = arg;

	for (;;) {
		struct err e = ERR_INIT;
		bool stop;
		size_t i;
		int rc;

		(void)pthread_mutex_lock(&d->lock);
		i = d->next < d->list.n ? d->next++ : SIZE_MAX;
		stop = d->stop.code != 0;
		(void)pthread_mutex_unlock(&d->lock);
		if (i == SIZE_MAX)
			return;
		if (stop || refs_set_broken(d->set, NULL) < 0) {
			refs_set_pass(d->set, i);
			continue;
		}
		rc = add_dataset(d, i, &e);
		(void)pthread_mutex_lock(&d->lock);
		d->done++;
		if (rc < 0)
			note_failure(d, rc, &e);
		(void)pthread_mutex_unlock(&d->lock);
	}
}

/* ---- all of them ---- */

static void report_failure(struct refs_dir *d, const char *why)
{
	why = why ? why : "not enough memory";
	progress_end(&d->progress);
	if (d->job->setup->cfg->hide_bad)
		log_warn("left out: %s", why);
	else
		log_error("%s", why);
}

static void refs_dir_tick(void *arg)
{
	struct refs_dir *d = arg;
	char **failures;
	size_t n, done;

	(void)pthread_mutex_lock(&d->lock);
	failures = d->failures;
	n = d->n_failures;
	done = d->done;
	d->failures = NULL;
	d->n_failures = d->cap_failures = 0;
	(void)pthread_mutex_unlock(&d->lock);
	/* after an error of the output all others are its consequence */
	for (size_t i = 0; i < n; i++) {
		if (refs_set_broken(d->set, NULL) == 0)
			report_failure(d, failures[i]);
		free(failures[i]);
	}
	free(failures);
	progress_show(&d->progress, (double)done / (double)d->list.n, done, "datasets",
		      refs_set_bytes(d->set));
}

static int refs_dir_run(struct refs_dir *d, struct err *e)
{
	const uint32_t threads = refs_threads(d->job->setup->cfg);
	const struct workers w = {.n = (uint32_t)u64_min(d->list.n, threads),
				  .room = 1,
				  .lock = &d->lock,
				  .tick = &d->tick,
				  .running = &d->running,
				  .work = refs_dir_work,
				  .on_progress = refs_dir_tick,
				  .arg = d};
	int rc;

	progress_begin(&d->progress);
	rc = workers_run(&w, e);
	progress_end(&d->progress);
	if (rc == 0 && d->stop.code) {
		*e = d->stop;
		rc = e->code;
	}
	return rc ? rc : refs_set_broken(d->set, e);
}

/* leave_out - references, and the output of an earlier run. */
static bool leave_out(void *arg, const char *path NZ_UNUSED, const struct stat *st,
		      const struct source_ops *of)
{
	const struct refs_dir *d = arg;

	return of == &refs_source_ops ||
	       (d->has_out && d->out.st_dev == st->st_dev && d->out.st_ino == st->st_ino);
}

/* refs_dir_list - list the datasets. */
static int refs_dir_list(struct refs_dir *d, struct err *e)
{
	const struct app *setup = d->job->setup;
	size_t n = strlen(d->top);

	while (n > 0 && d->top[n - 1] == '/')
		d->top[--n] = '\0';
	d->skip = n + 1;
	if (d->job->folder)
		return dataset_list_of_store(d->job->folder, d->top, &d->list, e);
	return dataset_list_find(setup, setup->cfg->source, leave_out, d, &d->list, e);
}

/* refs_dir_find - prepare the process, and list the datasets. */
static int refs_dir_find(struct refs_dir *d, struct err *e)
{
	const struct app *setup = d->job->setup;
	const struct cfg *cfg = setup->cfg;
	int rc = fs_rules_check(setup->rules, &cfg->rules, e);

	if (rc < 0)
		return cfg_place_error(cfg, e);
	d->has_out = d->job->out && stat(d->job->out, &d->out) == 0;
	d->top = strdup(d->job->folder ? cfg->shown : cfg->source);
	if (!d->top)
		return err_nomem(e);
	d->encode = strncmp(d->job->address, "http://", 7) == 0 ||
		    strncmp(d->job->address, "https://", 8) == 0;
	/* threads open the datasets: the process that forks has to exist before them */
	rc = app_prepare(setup, e);
	rc = rc ? rc : refs_dir_list(d, e);
	if (rc == 0 && d->list.missed && !cfg->hide_bad)
		rc = err_set(e, -EIO,
			     "'%s': no references are written, because %" PRIu64
			     " files or directories cannot be read: -o unsupported=skip leaves "
			     "them out",
			     cfg->shown, d->list.missed);
	if (rc == 0 && d->list.n == 0)
		rc = err_set(e, -ENOENT, "'%s': no datasets found in this directory",
			     cfg->shown);
	return rc;
}

/* refs_dir_verdict - whether the output may appear. */
static int refs_dir_verdict(const struct refs_dir *d, struct err *e)
{
	const struct cfg *cfg = d->job->setup->cfg;

	if (d->failed == 0)
		return 0;
	if (!cfg->hide_bad)
		return err_set(e, -EBADMSG,
			       "'%s': no references are written, because %zu of %zu datasets "
			       "cannot have any: -o unsupported=skip leaves them out",
			       cfg->shown, d->failed, d->list.n);
	if (d->failed == d->list.n)
		return err_set(e, -EBADMSG, "'%s': no dataset is left", cfg->shown);
	return 0;
}

int refs_directory(struct refs_job *j, struct err *e)
{
	struct refs_dir d = {.job = j, .processes = WORKER_POOL_INIT(WORKER_POOL_MAX)};
	int fd = -1, rc;

	(void)pthread_mutex_init(&d.lock, NULL); /* cannot fail without attributes */
	rc = refs_dir_find(&d, e);
	rc = rc ? rc : refs_open_output(j, &d.set, &fd, e);
	rc = rc ? rc : refs_dir_run(&d, e);
	rc = rc ? rc : refs_dir_verdict(&d, e);
	rc = rc ? rc : refs_close_output(j, d.set, fd, e);
	j->datasets = d.list.n - d.failed;
	j->left_out = d.failed;
	j->unreadable = d.list.missed;
	refs_set_free(d.set);
	close_fd(&fd); /* it was synced */
	worker_pool_end(&d.processes);
	dataset_list_release(&d.list);
	free(d.top);
	(void)pthread_mutex_destroy(&d.lock);
	return rc;
}
