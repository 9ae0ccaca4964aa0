/* SPDX-License-Identifier: BSD-3-Clause */
/* diff.c - calls the sink for every difference, in the order of the contract. */
#include "translate/diff/diff.h"

#include "translate/diff/diff_int.h"

#include <errno.h>
#include <string.h>

#define ARENA_BYTES ((size_t)64 << 20)

int diff_begin(struct diff *p, struct err *e)
{
	const struct diff_job *job = p->job;
	int rc;

	if (p->begun)
		return 0;
	rc = job->sink->ops->begin(job->sink, job->was, job->now, e);
	p->begun = rc == 0;
	return rc;
}

int diff_call(struct diff *p, struct err *e)
{
	p->changed = true;
	return diff_begin(p, e);
}

int diff_call_chunk(struct diff *p, uint32_t array, uint64_t linear, struct err *e)
{
	int rc = diff_call(p, e);

	return rc || !p->observer->put ? rc : p->observer->put(p->job->arg, array, linear, e);
}

/* call_array - the same before a call for an array; observe: that function of the observer. */
static int call_array(struct diff *p, int (*observe)(void *arg, uint32_t array, struct err *e),
		      uint32_t array, struct err *e)
{
	int rc = diff_call(p, e);

	return rc || !observe ? rc : observe(p->job->arg, array, e);
}

/* diff_remove_gone - remove old groups and their members, children before parents. */
static int diff_remove_gone(struct diff *p, struct err *e)
{
	struct sink *s = p->job->sink;
	int rc = 0;

	for (uint32_t i = 0; p->was && rc == 0 && i < p->was->n_arrays; i++) {
		if (p->array_now[i] != DS_NONE)
			continue;
		p->shaped = true;
		p->report->arrays++;
		rc = call_array(p, p->observer->removed, i, e);
		rc = rc ? rc : s->ops->remove_array(s, i, e);
	}
	for (uint32_t i = p->n_was_order; rc == 0 && i-- > 0;) {
		if (p->group_now[p->was_order[i]] != DS_NONE || p->was_order[i] == 0)
			continue;
		p->shaped = true;
		p->report->groups++;
		rc = diff_call(p, e);
		rc = rc ? rc : s->ops->remove_group(s, p->was_order[i], e);
	}
	return rc;
}

static int add_groups(struct diff *p, struct err *e)
{
	struct sink *s = p->job->sink;
	int rc = 0;

	for (uint32_t i = 1; rc == 0 && i < p->n_order; i++) {
		if (p->group_was[p->order[i]] != DS_NONE)
			continue;
		p->shaped = true;
		p->report->groups++;
		rc = diff_call(p, e);
		rc = rc ? rc : s->ops->add_group(s, p->order[i], e);
	}
	return rc;
}

static int rename_moved(struct diff *p, struct err *e)
{
	struct sink *s = p->job->sink;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < p->now->n_arrays; i++) {
		if (p->arrays[i].state != DIFF_MOVED)
			continue;
		p->shaped = true;
		p->report->arrays++;
		rc = call_array(p, p->observer->removed, p->arrays[i].was, e);
		rc = rc ? rc : s->ops->rename_array(s, p->arrays[i].was, i, e);
	}
	return rc;
}

static int add_arrays(struct diff *p, struct err *e)
{
	struct sink *s = p->job->sink;
	struct sink_new how;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < p->now->n_arrays; i++) {
		if (p->arrays[i].state != DIFF_NEW)
			continue;
		p->shaped = true;
		p->report->arrays++;
		arena_init(&p->arena, ARENA_BYTES);
		rc = diff_policy_new(p, i, &how, e);
		rc = rc ? rc : diff_call(p, e);
		if (rc == 0 && p->observer->added)
			rc = p->observer->added(p->job->arg, i, &how, e);
		rc = rc ? rc : s->ops->add_array(s, i, &how, e);
		arena_release(&p->arena);
	}
	return rc;
}

static int diff_resize(struct diff *p, struct err *e)
{
	struct sink *s = p->job->sink;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < p->now->n_arrays; i++) {
		if (p->arrays[i].state != DIFF_RESIZED)
			continue;
		p->report->arrays++;
		rc = call_array(p, p->observer->resized, i, e);
		rc = rc ? rc : s->ops->resize(s, i, e);
	}
	return rc;
}

/* quant_attrs - set the attributes that mark quantised arrays, as netCDF-C does. */
static int quant_attrs(struct diff *p, struct err *e)
{
	struct sink *s = p->job->sink;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < p->now->n_arrays; i++) {
		const struct codec_quant *q = &p->arrays[i].quant;
		int32_t digits = (int32_t)q->digits;
		struct ds_attr a = {
			.name = codec_quant_attr(q->mode),
			.type = {.kind = DT_INT, .size = 4},
			.n = 1,
			.data = (const uint8_t *)&digits,
		};

		if (a.name)
			rc = s->ops->set_attr(s, p->now->arrays[i].group, i, &a, e);
	}
	return rc;
}

static int push_all(struct diff *p, struct err *e)
{
	const struct diff_job *job = p->job;
	int rc = diff_match(p, e);

	rc = rc ? rc : diff_remove_gone(p, e);
	rc = rc ? rc : add_groups(p, e);
	rc = rc ? rc : rename_moved(p, e);
	rc = rc ? rc : add_arrays(p, e);
	if (rc == 0 && diff_dims_differ(p)) {
		rc = diff_call(p, e);
		rc = rc ? rc : job->sink->ops->dims(job->sink, e);
	}
	rc = rc ? rc : diff_resize(p, e);
	rc = rc ? rc : diff_attrs(p, e);
	rc = rc ? rc : quant_attrs(p, e);
	for (uint32_t i = 0; rc == 0 && i < p->now->n_arrays; i++)
		rc = diff_chunks(p, i, e);
	if (rc == 0 && p->changed)
		rc = job->sink->ops->commit(job->sink, job->gate, job->arg, e);
	return rc;
}

int push(const struct diff_job *job, struct diff_report *ret, struct err *e)
{
	static const struct diff_observer none;
	struct diff_report report = {0};
	struct diff p = {
		.job = job,
		.observer = job->observer ? job->observer : &none,
		.was = job->was ? &job->was->ds : NULL,
		.now = &job->now->ds,
		.report = &report,
		.bytes = buf_of(SIZE_MAX / 2),
		.vlen = buf_of(SIZE_MAX / 2),
	};
	int rc = push_all(&p, e);

	buf_release(&p.bytes);
	buf_release(&p.vlen);
	free(p.group_was);
	free(p.group_now);
	free(p.order);
	free(p.was_order);
	free(p.arrays);
	free(p.array_now);
	free(p.dim_was);
	if (ret)
		*ret = report;
	return rc;
}
