/* SPDX-License-Identifier: BSD-3-Clause */
/* scan.c - what has to be known of a member: it is opened, asked and closed. Several threads
 * do that, as most of it is waiting for a library's process. */
#define LOG_COMPONENT LOG_SOURCE
#include "translate/concat/concat_int.h"

#include <errno.h>
#include <inttypes.h>

#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/observe/log.h"
#include "base/os/thread.h"
#include "base/process/worker.h"

#define THREADS_MAX 8
#define ROUND ((size_t)1024)          /* members between two writes of the index */
#define YOUNG_S 1
#define FORM_MAX ((size_t)16 << 20)  /* bytes of one array's form */
#define COORD_MAX ((uint64_t)4 << 20) /* of a member's coordinate: longer ones are not kept */

/* described - one array while a member's are sorted. */
struct described {
	uint32_t form;
	uint32_t array;
};

/* ---- one member ---- */

/* describe_all - forms of all joined arrays, in the file's order. */
static int describe_all(struct concat *j, struct source *s, struct described *d,
			uint32_t *ret_n, pthread_mutex_t *lock, struct err *e)
{
	auto_buf b = buf_of(FORM_MAX);
	uint32_t n = 0;
	int rc = 0;

	for (uint32_t i = 0; i < s->ds.n_arrays && rc == 0; i++) {
		bool twice;

		buf_clear(&b);
		if (concat_describe(&s->ds, i, j->dim, &b, &twice) == CONCAT_NONE)
			continue;
		if (twice)
			return err_set(
				e, -EINVAL,
				"variable '%s' has the dimension '%s' twice: it cannot be "
				"joined along it",
				s->ds.arrays[i].name, j->dim);
		if (!buf_ok(&b))
			return buf_full(&b, e, -ERANGE, "variable '%s' has too much metadata",
					s->ds.arrays[i].name);
		LOCK_SCOPE(lock);
		rc = concat_intern(&j->forms, b.data, b.len, &d[n].form, e);
		d[n++].array = i;
	}
	*ret_n = n;
	return rc;
}

/* dim_len - the dimension's length: that of the longest array along it. */
static int dim_len(const struct concat *j, const struct source *s, uint32_t n, uint64_t *ret,
		   struct err *e)
{
	bool any = false;

	*ret = 0;
	for (uint32_t i = 0; i < s->ds.n_dims; i++) {
		if (strcmp(s->ds.dims[i].name, j->dim) != 0)
			continue;
		if (any && *ret != s->ds.dims[i].len)
			return err_set(e, -EINVAL,
				       "two dimensions have the name '%s', with %" PRIu64
				       " and %" PRIu64 " elements",
				       j->dim, *ret, s->ds.dims[i].len);
		*ret = s->ds.dims[i].len;
		any = true;
	}
	if (!any || n == 0)
		return err_set(e, -EINVAL,
			       "no variable has a dimension '%s': name another with "
			       "-o concat=, or leave the file out of the pattern",
			       j->dim);
	return 0;
}

static bool is_coord(const struct concat *j, const struct concat_member *m,
		     const struct concat_form *f)
{
	const char *name = strrchr(f->path, '/');
	bool number = f->type.kind == DT_INT || f->type.kind == DT_UINT ||
		      (f->type.kind == DT_FLOAT && f->type.size >= 4);

	return f->rank == 1 && name && strcmp(name + 1, j->dim) == 0 && !f->unreadable &&
	       number && f->shape[0] == m->len && m->len <= COORD_MAX / f->type.size;
}

uint32_t concat_coord_of(const struct concat *j, const struct concat_member *m)
{
	uint32_t best = CONCAT_NONE;
	size_t shortest = SIZE_MAX;

	for (uint32_t i = 0; i < m->n_forms; i++) {
		const struct concat_form *f = &j->forms.v[m->forms[i]];

		if (is_coord(j, m, f) && strlen(f->path) < shortest) {
			shortest = strlen(f->path);
			best = m->forms[i];
		}
	}
	return best;
}

/* scan_read_all - all elements of an array of one dimension. */
static int scan_read_all(const struct concat *j, struct source *s, uint32_t array, uint8_t *out,
			 struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	struct chunkio *c = NULL;
	auto_free uint8_t *one = alloc_array((size_t)a->chunk_bytes, 1);
	auto_free struct plan *plans = NULL;
	uint64_t at = 0, all = a->shape[0] * a->type.size;
	int rc = one ? concat_io(j, s, array, 0, &plans, &c, e) : err_nomem(e);

	for (uint64_t k = 0; k < a->n_chunks && rc == 0; k++) {
		rc = chunkio_read_whole(c, array, k, one, e);
		if (rc == 0)
			memcpy(out + at, one, (size_t)u64_min(a->chunk_bytes, all - at));
		at += u64_min(a->chunk_bytes, all - at);
	}
	chunkio_free(c);
	return rc;
}

/* take_coord - the values of the coordinate. d: the forms that m has now. */
static int take_coord(const struct concat *j, struct source *s, const struct described *d,
		      uint32_t size, struct concat_member *m, struct err *e)
{
	uint32_t i = 0;

	if (m->coord_form == CONCAT_NONE)
		return 0;
	while (d[i].form != m->coord_form)
		i++;
	m->n_coord = (size_t)(m->len * size); /* concat_coord_of has looked */
	m->coord = alloc_array(m->n_coord, 1);
	return m->coord ? scan_read_all(j, s, d[i].array, m->coord, e) : err_nomem(e);
}

/* sort - by path: files need not have the same order. */
static void sort_forms(const struct concat *j, struct described *d, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) { /* they are few, and mostly in order */
		struct described x = d[i];
		uint32_t k = i;

		for (; k > 0 && strcmp(j->forms.v[d[k - 1].form].path,
				       j->forms.v[x.form].path) > 0;
		     k--)
			d[k] = d[k - 1];
		d[k] = x;
	}
}

static int scan_source(struct concat *j, struct source *s, struct concat_member *m,
		       pthread_mutex_t *lock, struct err *e)
{
	auto_free struct described *d = alloc_array(s->ds.n_arrays, sizeof(*d));
	uint32_t n = 0, size = 0;
	int rc = d ? describe_all(j, s, d, &n, lock, e) : err_nomem(e);

	rc = rc ? rc : dim_len(j, s, n, &m->len, e);
	if (rc < 0)
		return rc;
	m->forms = alloc_array(n, sizeof(*m->forms));
	if (!m->forms)
		return err_nomem(e);
	m->n_forms = n;
	(void)pthread_mutex_lock(lock); /* the table may move */
	sort_forms(j, d, n);
	for (uint32_t i = 0; i < n; i++)
		m->forms[i] = d[i].form;
	m->coord_form = concat_coord_of(j, m);
	if (m->coord_form != CONCAT_NONE)
		size = j->forms.v[m->coord_form].type.size;
	(void)pthread_mutex_unlock(lock);
	rc = take_coord(j, s, d, size, m, e);
	if (rc == 0 && j->opts.equal)
		rc = concat_others_of(j, s, &m->others, e);
	return rc;
}

/* is_young - a file that was written a moment ago may be written again in the same tick of the
 * clock without a change of its id: information on it is not kept. */
static bool is_young(const struct concat_id *id)
{
	return (int64_t)id->v[ID_MTIME] + YOUNG_S >= clock_wall().tv_sec;
}

static int scan_member(struct concat *j, const struct source_options *opts,
		       struct concat_member *m, pthread_mutex_t *lock, struct err *e)
{
	struct source *s = NULL;
	struct concat_id id;
	int rc = source_open(j->formats, j->n_formats, m->path, opts, &s, e);

	if (rc < 0)
		return rc;
	concat_id_of(&s->ds.st, &id);
	m->id = id;
	m->young = is_young(&id);
	rc = scan_source(j, s, m, lock, e);
	rc = rc ? rc : source_check(s, e);
	source_close(s);
	if (rc < 0) {
		concat_member_forget(m);
		return err_wrap(e, rc, "'%s'", concat_name(m->path));
	}
	m->known = true;
	return 0;
}

/* ---- all of them ---- */

/* scan_work - shared by the threads. */
struct scan_work {
	struct concat *j;
	struct source_options opts;
	pthread_mutex_t lock;  /* of the forms */
	atomic_size_t next;
	size_t end;            /* members before it are looked at */
	pthread_mutex_t fail;
	size_t failed;         /* fail: the first member, by name, that could not be scanned */
	struct err why;        /* fail */
};

static void *scan_some(void *arg)
{
	struct scan_work *w = arg;
	struct concat *j = w->j;

	for (;;) {
		size_t i = atomic_fetch_add(&w->next, 1);
		struct err e = ERR_INIT;

		if (i >= w->end)
			return NULL;
		if (j->members[i].known ||
		    scan_member(j, &w->opts, &j->members[i], &w->lock, &e) == 0)
			continue;
		(void)pthread_mutex_lock(&w->fail);
		if (w->why.code == 0 || i < w->failed) {
			w->failed = i;
			w->why = e;
		}
		(void)pthread_mutex_unlock(&w->fail);
		atomic_store(&w->next, w->end); /* the others need not begin */
	}
}

/* scan_round - members up to w->end, by several threads. */
static void scan_round(struct scan_work *w, size_t unknown)
{
	pthread_t threads[THREADS_MAX];
	size_t n = 0,
	       want = (size_t)u64_min(u64_min(unknown, THREADS_MAX), thread_processors());

	while (n + 1 < want && pthread_create(&threads[n], NULL, scan_some, w) == 0)
		n++;
	(void)scan_some(w);
	while (n > 0)
		(void)pthread_join(threads[--n], NULL);
}

int concat_scan(struct concat *j, struct err *e)
{
	struct worker_pool processes = WORKER_POOL_INIT(THREADS_MAX);
	struct scan_work w = {.j = j, .opts = j->source_opts, .why = ERR_INIT};
	size_t unknown = 0;

	for (size_t i = 0; i < j->n_members; i++)
		unknown += !j->members[i].known;
	if (unknown == 0)
		return 0;
	log_debug("'%s': %zu of %zu members are read", j->pattern, unknown, j->n_members);
	(void)pthread_mutex_init(&w.lock, NULL);
	(void)pthread_mutex_init(&w.fail, NULL);
	w.opts.processes = &processes;
	/* save the information from time to time: a scan that starts over continues from there */
	while (w.why.code == 0 && w.end < j->n_members) {
		atomic_store(&w.next, w.end);
		w.end += ROUND < j->n_members - w.end ? ROUND : j->n_members - w.end;
		scan_round(&w, unknown);
		if (w.end < j->n_members)
			concat_index_save(j);
	}
	(void)pthread_mutex_destroy(&w.lock);
	(void)pthread_mutex_destroy(&w.fail);
	worker_pool_end(&processes);
	if (w.why.code == 0)
		return 0;
	return err_set(e, w.why.code, "%s", w.why.msg);
}
