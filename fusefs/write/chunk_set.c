/* SPDX-License-Identifier: BSD-3-Clause */
/* chunk_set.c - lists of chunks, and the policy for new arrays, for commits in both directions. */
#include "fusefs/write/chunk_set.h"

#include <errno.h>
#include <string.h>

#define LOG_COMPONENT LOG_WRITE
#include "base/observe/log.h"

#define PATH_BYTES ((size_t)1 << 20)

void commit_chunks_add(struct commit_chunks *c, uint32_t array, uint64_t linear)
{
	if (c->failed || grow_array(&c->v, &c->cap, c->n + 1, sizeof(*c->v)) < 0) {
		c->failed = true;
		return;
	}
	c->v[c->n++] = (struct commit_chunk){array, linear};
}

void commit_chunks_all(struct commit_chunks *c, uint32_t array, uint32_t n_arrays)
{
	if (!c->whole) {
		c->whole = alloc_array(n_arrays, sizeof(*c->whole));
		c->n_arrays = n_arrays;
	}
	c->failed |= !c->whole;
	if (c->whole && array < c->n_arrays)
		c->whole[array] = true;
}

static int chunk_set_by_place(const void *a, const void *b)
{
	const struct commit_chunk *x = a, *y = b;

	if (x->array != y->array)
		return x->array < y->array ? -1 : 1;
	return x->linear < y->linear ? -1 : x->linear > y->linear;
}

int commit_chunks_sort(struct commit_chunks *c, struct err *e)
{
	if (c->failed)
		return err_nomem(e);
	if (c->n > 1)
		qsort(c->v, c->n, sizeof(*c->v), chunk_set_by_place);
	return 0;
}

int commit_chunks_next(const struct commit_chunks *c, uint32_t array, uint64_t from,
		       uint64_t *ret)
{
	const struct commit_chunk want = {array, from};
	size_t lo = 0, hi = c->n;

	if (c->whole && array < c->n_arrays && c->whole[array]) {
		*ret = from;
		return 0;
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (chunk_set_by_place(&c->v[mid], &want) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == c->n || c->v[lo].array != array)
		return -ENOENT;
	*ret = c->v[lo].linear;
	return 0;
}

void commit_chunks_release(struct commit_chunks *c)
{
	free(c->v);
	free(c->whole);
	*c = (struct commit_chunks){0};
}

/* commit_policy - the policy of cfg for new arrays in a target. */
static void commit_policy(const struct app *setup, enum plan_format format,
			  struct diff_policy *ret)
{
	const struct cfg *cfg = setup->cfg;

	*ret = (struct diff_policy){
		.chunk_bytes = cfg->limits.default_chunk_size,
		.filters = setup->rules ? &setup->rules->filters : NULL,
		.quant = setup->rules ? &setup->rules->quants : NULL,
		.keep = cfg->rules.filter == CFG_FILTER_KEEP ? PLAN_KEEP : PLAN_PORTABLE,
		.format = format,
	};
	/* a Zarr writer continues with the chunk lengths of its metadata: those of rules apply to
	 * writers that give none */
	if (format != PLAN_HDF5) {
		ret->chunks = (const char *const *)cfg->rules.chunks.v;
		ret->n_chunks = cfg->rules.chunks.n;
	}
}

int commit_push(const struct app *setup, enum plan_format format, struct diff_job *job,
		struct err *e)
{
	struct diff_report report = {0};
	struct diff_policy policy;
	int rc;

	commit_policy(setup, format, &policy);
	job->policy = &policy;
	rc = push(job, &report, e);
	sink_close(job->sink);
	log_debug("commit: %llu groups, %llu variables, %llu attributes; chunks: %llu copied, "
		  "%llu encoded, %llu removed",
		  (unsigned long long)report.groups, (unsigned long long)report.arrays,
		  (unsigned long long)report.attrs, (unsigned long long)report.passed,
		  (unsigned long long)report.encoded, (unsigned long long)report.dropped);
	return rc;
}

int commit_paths_add(struct commit_paths *p, const char *key, uint32_t array)
{
	char *copy = strdup(key);

	if (!copy || grow_array(&p->v, &p->cap, p->n + 1, sizeof(*p->v)) < 0) {
		free(copy);
		return -ENOMEM;
	}
	p->v[p->n++] = (struct commit_path){copy, array};
	return 0;
}

static int chunk_set_by_key(const void *a, const void *b)
{
	return strcmp(((const struct commit_path *)a)->key, ((const struct commit_path *)b)->key);
}

void commit_paths_sort(struct commit_paths *p)
{
	if (p->n > 1)
		qsort(p->v, p->n, sizeof(*p->v), chunk_set_by_key);
}

int commit_paths_of(struct commit_paths *p, const struct dataset *ds)
{
	auto_buf b = buf_of(PATH_BYTES);
	int rc = 0;

	for (uint64_t i = 0; i < (uint64_t)ds->n_groups + ds->n_arrays && rc == 0; i++) {
		const bool group = i < ds->n_groups;
		const uint32_t array = group ? DS_NONE : (uint32_t)(i - ds->n_groups);

		buf_clear(&b);
		if (group)
			ds_group_path(ds, (uint32_t)i, &b);
		else
			ds_array_path(ds, array, &b);
		buf_putc(&b, '\0');
		rc = buf_ok(&b) ? commit_paths_add(p, (const char *)b.data + 1, array) : -ENOMEM;
	}
	commit_paths_sort(p);
	return rc;
}

/* first_from - index of the first key at or after the n bytes of key followed by `more`, or by
 * NUL. */
static size_t first_from(const struct commit_paths *p, const char *key, size_t n, char more)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		const size_t at = low + (high - low) / 2;
		const char *x = p->v[at].key;
		int order = strncmp(x, key, n);

		if (order == 0)
			order = (unsigned char)x[n] < (unsigned char)more ? -1 : 0;
		if (order < 0)
			low = at + 1;
		else
			high = at;
	}
	return low;
}

const struct commit_path *commit_paths_find(const struct commit_paths *p, const char *key,
					    size_t n)
{
	const size_t at = first_from(p, key, n, '\0');

	if (at == p->n || strncmp(p->v[at].key, key, n) != 0 || p->v[at].key[n])
		return NULL;
	return &p->v[at];
}

const struct commit_path *commit_paths_above(const struct commit_paths *p, const char *key,
					     size_t *at)
{
	const struct commit_path *x = NULL;
	const char *slash;

	while (!x && (slash = strchr(key + *at, '/'))) {
		x = commit_paths_find(p, key, (size_t)(slash - key));
		*at = (size_t)(slash - key) + 1;
	}
	return x;
}

size_t commit_paths_below(const struct commit_paths *p, const char *key, size_t *ret_n)
{
	const size_t n = strlen(key);
	const size_t from = n ? first_from(p, key, n, '/') : first_from(p, "", 0, '\1');

	*ret_n = (n ? first_from(p, key, n, '/' + 1) : p->n) - from;
	return from;
}

void commit_paths_release(struct commit_paths *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].key);
	free(p->v);
	*p = (struct commit_paths){0};
}
