/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - makes a dataset of the header: one group with its dimensions and variables.
 *
 * Records: the record dimension is the first of a record variable. One record of a variable is a
 * slab, padded to four bytes; the slabs of all record variables, one after the other, are a record
 * of the file. If there is only one record variable its slabs are not padded. */
#include "hdf5view/classic/classic_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct model {
	struct cdf_source *s;
	const struct cdf_header *h;
	struct arena *arena;
	struct cdf_notes notes;
	uint64_t *slabs;    /* h->n_vars: bytes of a record, or of all values */
	uint32_t *dims;     /* h->n_dims: ordinals in the dataset, DS_NONE: not shown */
	const char **names; /* room for names of dimensions, then of variables */
	bool *twice;        /* the same */
	uint64_t numrecs, recsize;
	uint32_t n_records; /* record variables */
};

/* classic_model_measure - slabs and the length of a record. */
static int classic_model_measure(struct model *m, struct err *e)
{
	for (uint32_t i = 0; i < m->h->n_vars; i++) {
		const struct cdf_var *v = &m->h->vars[i];

		if (!cdf_slab_bytes(m->h, v, &m->slabs[i]))
			return err_set(e, -EBADMSG,
				       "'%.80s' has more values than a file can hold (byte %" PRIu64
				       " of the header): the header is damaged",
				       v->name.s, v->at);
		if (!cdf_is_record(m->h, v))
			continue;
		m->n_records++;
		if (ckd_add(&m->recsize, m->recsize, m->slabs[i] + cdf_padding(m->slabs[i])))
			return err_set(e, -EBADMSG,
				       "a record has more bytes than a file can hold: the "
				       "header is damaged");
	}
	for (uint32_t i = 0; m->n_records == 1 && i < m->h->n_vars; i++)
		if (cdf_is_record(m->h, &m->h->vars[i]))
			m->recsize = m->slabs[i];
	return 0;
}

/* count_records - whole records between the first one and the end of the file; the padding of the
 * very last slab may be missing. */
static uint64_t count_records(const struct model *m)
{
	uint64_t size = (uint64_t)m->s->base.ds.st.st_size, first = UINT64_MAX, last = 0;
	uint64_t missing = 0;

	for (uint32_t i = 0; i < m->h->n_vars; i++) {
		const struct cdf_var *v = &m->h->vars[i];

		if (!cdf_is_record(m->h, v))
			continue;
		first = u64_min(first, v->begin);
		if (v->begin >= last && m->n_records > 1)
			missing = cdf_padding(m->slabs[i]);
		last = u64_max(last, v->begin);
	}
	return first < size ? (size - first + missing) / m->recsize : 0;
}

static int classic_model_dims(struct model *m, struct err *e)
{
	struct dataset *ds = &m->s->base.ds;
	uint32_t n = m->h->n_dims, *all = arena_alloc(m->arena, n, sizeof(*all));
	int rc = 0;

	ds->dims = arena_alloc(m->arena, n, sizeof(*ds->dims));
	if (!ds->dims || !all)
		return cdf_full(m->arena, e);
	for (uint32_t i = 0; i < n && rc == 0; i++)
		rc = cdf_name(&m->notes, "dimension", &m->h->dims[i].name, &m->names[i], e);
	rc = rc ? rc : cdf_find_duplicates(m->names, n, m->twice, e);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		uint64_t len = m->h->dims[i].len;

		m->dims[i] = DS_NONE;
		if (m->twice[i])
			rc = cdf_note(&m->notes, e,
				      "a second dimension '%.80s' is left out, with the "
				      "variables that use it",
				      m->names[i]);
		if (!m->names[i] || m->twice[i])
			continue;
		m->dims[i] = ds->n_dims;
		all[ds->n_dims] = ds->n_dims;
		ds->dims[ds->n_dims++] = (struct ds_dim){.name = m->names[i],
							 .len = len ? len : m->numrecs,
							 .unlimited = len == 0};
	}
	ds->groups[0].dims = all;
	ds->groups[0].n_dims = ds->n_dims;
	return rc;
}

/* unfit - the reason why a variable cannot be shown; NULL: it can. */
static const char *unfit(const struct model *m, uint32_t i)
{
	const struct cdf_var *v = &m->h->vars[i];

	if (m->twice[i])
		return "another variable has the same name";
	if (v->rank > DS_RANK_MAX)
		return "it has too many dimensions";
	for (uint32_t d = 0; d < v->rank; d++)
		if (m->dims[v->dims[d]] == DS_NONE)
			return "one of its dimensions is left out";
	return NULL;
}

static int classic_model_fill(struct model *m, const struct cdf_var *v, struct ds_array *a,
			      struct err *e)
{
	uint8_t *f = arena_alloc(m->arena, 8, 1);

	if (!f)
		return cdf_full(m->arena, e);
	cdf_default_fill(v->type, f);
	for (uint32_t i = 0; i < v->n_attrs; i++) {
		const struct cdf_attr *x = &v->attrs[i];

		if (strcmp(x->name.s, "_FillValue") != 0)
			continue;
		if (x->type == v->type && x->n == 1)
			memcpy(f, x->data, a->type.size);
		break;
	}
	a->fill = f;
	a->fill_defined = true;
	return 0;
}

static int classic_model_shape(struct model *m, const struct cdf_var *v, struct ds_array *a,
			       struct err *e)
{
	uint64_t *len = arena_alloc(m->arena, v->rank, sizeof(*len));
	uint32_t *ids = arena_alloc(m->arena, v->rank, sizeof(*ids));

	if (!len || !ids)
		return cdf_full(m->arena, e);
	for (uint32_t d = 0; d < v->rank; d++) {
		ids[d] = m->dims[v->dims[d]];
		len[d] = m->s->base.ds.dims[ids[d]].len;
	}
	a->rank = v->rank;
	a->shape = len;
	a->dims = ids;
	return 0;
}

static int classic_model_chunks(struct model *m, struct ds_array *a, const struct cdf_array *x,
				struct err *e)
{
	uint64_t *chunk = arena_alloc(m->arena, a->rank, sizeof(*chunk));

	if (!chunk)
		return cdf_full(m->arena, e);
	a->access = DS_STORED;
	if (!cdf_chunk(a, x, m->s->cut_bytes, m->s->alone, chunk)) {
		a->access = DS_CONVERT;
		a->convert = "its records are small and interleaved with those of other "
			     "variables: each chunk is assembled from several records";
	}
	a->chunk = chunk;
	return ds_array_finish(&m->s->base.ds, a, m->s->max_chunk_bytes, e);
}

static int classic_model_attributes(struct model *m, const struct cdf_var *v,
				    struct ds_array *a, struct err *e)
{
	char where[DS_NAME_MAX + 3];

	(void)snprintf(where, sizeof(where), "%s: ", a->name); /* fits: names are shorter */
	return cdf_attrs(&m->notes, where, v->attrs, v->n_attrs, &a->attrs, &a->n_attrs, e);
}

/* check_end - check that offsets of records cannot overflow. */
static int check_end(const struct model *m, const struct cdf_var *v, const struct cdf_array *x,
		     struct err *e)
{
	uint64_t bytes;

	if (!cdf_is_record(m->h, v) ||
	    (!ckd_mul(&bytes, m->numrecs, x->stride ? x->stride : x->slab) &&
	     bytes <= INT64_MAX))
		return 0;
	return err_set(e, -EBADMSG,
		       "it has more records than a file can hold, %" PRIu64
		       ": the header is damaged",
		       m->numrecs);
}

static int classic_model_array(struct model *m, uint32_t i, struct err *e)
{
	struct dataset *ds = &m->s->base.ds;
	const struct cdf_var *v = &m->h->vars[i];
	struct ds_array *a = &ds->arrays[ds->n_arrays];
	struct cdf_array *x = &m->s->arrays[ds->n_arrays];
	int rc;

	*a = (struct ds_array){.name = m->names[i], .layout = DS_CONTIGUOUS};
	a->type = cdf_dtype(v->type, false);
	a->fill_text = (struct ds_text){.s = "", .len = 0};
	*x = (struct cdf_array){.begin = v->begin, .slab = m->slabs[i]};
	if (cdf_is_record(m->h, v) && m->recsize != m->slabs[i])
		x->stride = m->recsize;
	rc = check_end(m, v, x, e);
	if (rc == 0)
		rc = classic_model_fill(m, v, a, e); /* before attributes are converted to host
						      * order */
	rc = rc ? rc : classic_model_shape(m, v, a, e);
	rc = rc ? rc : classic_model_chunks(m, a, x, e);
	rc = rc ? rc : classic_model_attributes(m, v, a, e);
	ds->n_arrays += rc == 0;
	return rc < 0 ? err_wrap(e, rc, "'%.80s'", a->name) : 0;
}

static int arrays(struct model *m, struct err *e)
{
	struct dataset *ds = &m->s->base.ds;
	uint32_t n = m->h->n_vars, *all = arena_alloc(m->arena, n, sizeof(*all));
	int rc = 0;

	ds->arrays = arena_alloc(m->arena, n, sizeof(*ds->arrays));
	m->s->arrays = arena_alloc(m->arena, n, sizeof(*m->s->arrays));
	if (!ds->arrays || !m->s->arrays || !all)
		return cdf_full(m->arena, e);
	for (uint32_t i = 0; i < n && rc == 0; i++)
		rc = cdf_name(&m->notes, "variable", &m->h->vars[i].name, &m->names[i], e);
	memset(m->twice, 0, m->h->n_dims * sizeof(*m->twice));
	rc = rc ? rc : cdf_find_duplicates(m->names, n, m->twice, e);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const char *why = m->names[i] ? unfit(m, i) : NULL;

		all[i] = i;
		if (why)
			rc = cdf_note(&m->notes, e, "variable '%.80s' is left out: %s",
				      m->names[i], why);
		else if (m->names[i])
			rc = classic_model_array(m, i, e);
	}
	ds->groups[0].arrays = all;
	ds->groups[0].n_arrays = ds->n_arrays;
	return rc;
}

static int classic_model_build(struct model *m, struct err *e)
{
	struct dataset *ds = &m->s->base.ds;
	struct ds_group *root = arena_alloc(m->arena, 1, sizeof(*root));
	int rc;

	if (!root)
		return cdf_full(m->arena, e);
	*root = (struct ds_group){.name = "", .parent = DS_NONE};
	ds->groups = root;
	ds->n_groups = 1;
	rc = classic_model_measure(m, e);
	if (rc < 0)
		return rc;
	m->numrecs = m->h->numrecs;
	if (m->numrecs == CDF_STREAMING)
		m->numrecs = m->n_records ? count_records(m) : 0;
	rc = cdf_attrs(&m->notes, "", m->h->attrs, m->h->n_attrs, &root->attrs, &root->n_attrs,
		       e);
	rc = rc ? rc : classic_model_dims(m, e);
	rc = rc ? rc : arrays(m, e);
	ds->format = cdf_format_name(m->h->version);
	return rc < 0 ? rc : ds_notes_freeze(&m->notes.list, m->arena, ds, e);
}

int cdf_model(struct cdf_source *s, const struct cdf_header *h, struct err *e)
{
	uint32_t most = h->n_dims > h->n_vars ? h->n_dims : h->n_vars;
	auto_free uint64_t *slabs = alloc_array(h->n_vars, sizeof(*slabs));
	auto_free uint32_t *ids = alloc_array(h->n_dims, sizeof(*ids));
	auto_free const char **names = alloc_array(most, sizeof(*names));
	auto_free bool *twice = alloc_array(most, sizeof(*twice));
	struct model m = {.s = s, .h = h, .arena = &s->base.ds.arena};
	int rc;

	if (!slabs || !ids || !names || !twice)
		return err_nomem(e);
	m.slabs = slabs;
	m.dims = ids;
	m.names = names;
	m.twice = twice;
	m.notes.arena = m.arena;
	rc = classic_model_build(&m, e);
	ds_notes_release(&m.notes.list);
	return rc;
}
