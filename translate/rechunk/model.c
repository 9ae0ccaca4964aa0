/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - the dataset in other chunk lengths. Parts that do not change are the inner dataset's,
 * which stays open as long. */
#include "translate/rechunk/rechunk_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "translate/chunkio/fill_chunk.h"
#include "translate/model/builder.h"
#include "translate/model/chunk_rule.h"

#define REASON_MAX 400
#define MIB ((uint64_t)1 << 20)
#define PATH_MAX_BYTES ((size_t)1 << 20)

/* slowest - the array whose inner chunks are decoded most often by one complete read. */
struct slowest {
	uint32_t array;
	uint64_t passes, band; /* band: bytes */
	uint32_t others;       /* arrays that need several passes, too */
};

static int model_full(struct rechunk *r, struct err *e)
{
	return arena_full(&r->base.ds.arena, e, "the dataset in other chunks");
}

static int copy_model(struct rechunk *r, struct err *e)
{
	const struct dataset *from = &r->inner->ds;
	struct dataset *ds = &r->base.ds;
	const struct arena own = ds->arena;

	*ds = *from;
	ds->arena = own;
	ds->notes_room = 0; /* the list is the other one's */
	ds->arrays = arena_copy(&ds->arena, from->arrays, ds->n_arrays * sizeof(*ds->arrays));
	if (!ds->arrays && ds->n_arrays > 0)
		return model_full(r, e);
	r->arrays = alloc_array(ds->n_arrays, sizeof(*r->arrays));
	return r->arrays ? 0 : err_nomem(e);
}

/* array_lengths - the chunk lengths that rules set for an array. Returns whether they are
 * others. */
static bool array_lengths(const struct dataset *ds, const struct ds_array *a, const char *path,
			  const struct rechunk_options *opts, uint64_t *chunk)
{
	bool said[DS_RANK_MAX] = {false}, others = false;

	memcpy(chunk, a->chunk, a->rank * sizeof(*chunk));
	chunk_rules_apply(opts->rules, opts->n_rules, ds, a, path, CODEC_VARS_EVERY, chunk,
			  said);
	chunk_rules_apply(opts->rules, opts->n_rules, ds, a, path, CODEC_VARS_NAMED, chunk,
			  said);
	for (uint32_t d = 0; d < a->rank; d++) {
		/* HDF5 has no chunk longer than a dimension that cannot grow */
		if (said[d] && !ds->dims[a->dims[d]].unlimited)
			chunk[d] = u64_min(chunk[d], u64_max(a->shape[d], 1));
		others |= chunk[d] != a->chunk[d];
	}
	return others;
}

/* array_reason - why chunks are decoded, for `info`. NULL: memory is short. */
static const char *array_reason(struct rechunk *r, const struct ds_array *in)
{
	auto_buf b = buf_of(REASON_MAX);

	buf_puts(&b, "rechunk: assembled from chunks of ");
	for (uint32_t d = 0; d < in->rank; d++)
		buf_printf(&b, "%s%" PRIu64, d > 0 ? "x" : "", in->chunk[d]);
	buf_putc(&b, '\0');
	return arena_strdup(&r->base.ds.arena,
			    buf_ok(&b) ? (const char *)b.data : "rechunk: assembled");
}

/* array_change - give an array other chunks. */
static int array_change(struct rechunk *r, struct ds_array *a, const uint64_t *chunk,
			const struct rechunk_options *opts, struct err *e)
{
	const struct ds_array *in = &r->inner->ds.arrays[a - r->base.ds.arrays];
	struct dataset *ds = &r->base.ds;
	uint64_t most = opts->source->max_chunk_bytes;
	int rc;

	if (dt_is_vlen(&a->type))
		most = u64_min(most, FRAME_BYTES_MAX);
	a->chunk = arena_copy(&ds->arena, chunk, a->rank * sizeof(*chunk));
	if (!a->chunk)
		return model_full(r, e);
	rc = ds_array_finish(ds, a, most, e);
	if (rc == -ERANGE)
		return err_wrap(e, rc, "-o rechunk: use smaller lengths");
	if (rc < 0)
		return rc;
	if (a->n_chunks / 8 > opts->source->max_index_bytes)
		return err_set(e, -ERANGE,
			       "-o rechunk: use larger lengths: array '%s' would have %" PRIu64
			       " chunks, and the index of a variable holds %" PRIu64
			       " (a quarter of memory=)",
			       a->name, a->n_chunks, opts->source->max_index_bytes * 8);
	a->convert = array_reason(r, in);
	if (!a->convert)
		return model_full(r, e);
	if (!dt_is_vlen(&a->type))
		a->access = DS_CONVERT;
	a->chain = (struct codec_chain){.n = 0};
	a->checksum = false;
	a->layout = DS_CHUNKED;
	a->uniform = true;
	a->key = 0; /* another name of the object may have another rule */
	return 0;
}

/* array_decide - returns 1 if the array changes, 0 if it stays. */
static int array_decide(struct rechunk *r, uint32_t array, const char *path,
			const struct rechunk_options *opts, struct err *e)
{
	struct ds_array *a = &r->base.ds.arrays[array];
	const struct ds_array *in = &r->inner->ds.arrays[array];
	uint64_t chunk[DS_RANK_MAX];
	struct err why = ERR_INIT;
	int rc;

	if (a->rank == 0 || a->unreadable || !array_lengths(&r->base.ds, a, path, opts, chunk))
		return 0;
	rc = array_change(r, a, chunk, opts, &why);
	if (rc == 0)
		return 1;
	*a = *in;
	if (rc == -ERANGE && opts->source->keep_going)
		return ds_note_append(&r->base.ds, e, "'%.160s': it keeps its chunks: %s", path,
				      why.msg);
	*e = why;
	return rc;
}

/* note_slow - say what a complete read costs if memory does not hold a band. */
static int note_slow(struct rechunk *r, const struct slowest *x, struct err *e)
{
	const struct ds_array *a = &r->base.ds.arrays[x->array];
	auto_buf path = buf_of(PATH_MAX_BYTES), others = buf_of(REASON_MAX);
	const char *text;

	if (x->passes < 2)
		return 0;
	text = ds_array_path_text(&r->base.ds, x->array, &path);
	if (x->others > 0)
		buf_printf(&others, " (fewer times for %" PRIu32 " other variables)",
			   x->others);
	return ds_note_append(&r->base.ds, e,
			    "rechunk: a complete read of '%.160s' decodes each chunk of the "
			    "source %" PRIu64 " times%.*s: with memory=%" PRIu64
			    "M it does so once",
			    text ? text : a->name, x->passes, (int)others.len,
			    others.len > 0 ? (const char *)others.data : "",
			    x->band / MIB * RECHUNK_RUN_PART + RECHUNK_RUN_PART);

}

int rechunk_model(struct rechunk *r, const struct rechunk_options *opts, struct err *e)
{
	struct dataset *ds = &r->base.ds;
	struct slowest slow = {.passes = 0};
	auto_buf path = buf_of(PATH_MAX_BYTES);
	int rc = copy_model(r, e), n = 0;

	for (uint32_t i = 0; i < ds->n_arrays && rc >= 0; i++) {
		const char *text = ds_array_path_text(ds, i, &path);
		uint64_t passes, band;

		rc = text ? array_decide(r, i, text, opts, e) : err_nomem(e);
		if (rc <= 0)
			continue;
		r->arrays[i].changed = true;
		n = 1;
		passes = rechunk_passes(&r->inner->ds.arrays[i], &ds->arrays[i],
					r->shared->run_bytes, &band);
		slow.others += passes > 1;
		if (passes > slow.passes)
			slow = (struct slowest){i, passes, band, slow.others};
	}
	slow.others -= slow.passes > 1;
	if (rc >= 0)
		rc = note_slow(r, &slow, e);
	return rc < 0 ? rc : n || ds->n_notes > r->inner->ds.n_notes;
}
