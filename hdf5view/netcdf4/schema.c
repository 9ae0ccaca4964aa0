/* SPDX-License-Identifier: BSD-3-Clause */
/* schema.c - decides the contents of the virtual file from the dataset alone; it reads no data and
 * does not call the HDF5 library. Each step needs the ones before: arrays that can be shown,
 * names, coordinate variables, dimensions, types, attributes. */
#include "hdf5view/netcdf4/schema.h"
#include "hdf5view/virtual/structure_process.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NOTES_MAX 1000
#define NOTE_MAX 1000 /* bytes of one */
#define MODEL_MIN ((uint64_t)16 << 20)
#define CHUNK_MAX UINT32_MAX /* bytes of a chunk, and elements along one axis */
#define LENGTH_MAX ((uint64_t)1 << 62)

/* ---- notes ---- */

int nc_note(struct nc_model *m, uint32_t group, uint32_t array, const char *fmt, ...)
{
	struct buf b;
	va_list ap;
	char text[400];
	char *line;

	if (m->root_only && (array != DS_NONE ? m->ds->arrays[array].group : group) != 0)
		return 0;
	if (m->n_notes >= NOTES_MAX) {
		(void)snprintf(m->more, sizeof(m->more), "and %" PRIu64 " more notes",
			       ++m->notes_dropped);
		m->notes[m->n_notes] = m->more; /* there is room for one more */
		return 0;
	}
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a truncated note is still valid */
	va_end(ap);
	buf_init(&b, (size_t)1 << 16);
	if (array != DS_NONE)
		ds_array_path(m->ds, array, &b);
	else
		ds_group_path(m->ds, group, &b);
	if (b.len > NOTE_MAX)
		b.len = 0; /* without the path rather than not at all */
	buf_printf(&b, "%s%s", b.len ? ": " : "", text);
	line = buf_ok(&b) ? arena_copy(&m->arena, b.data, b.len) : NULL;
	buf_release(&b);
	for (char *p = line; p && *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	if (!line ||
	    grow_array(&m->notes, &m->c_notes, (size_t)m->n_notes + 2, sizeof(*m->notes)) < 0)
		return -ENOMEM;
	m->notes[m->n_notes++] = line;
	return 0;
}

int nc_err_path(const struct dataset *ds, uint32_t group, uint32_t array, int rc, struct err *e)
{
	struct buf path;
	size_t n;

	buf_init(&path, (size_t)1 << 16);
	if (array == DS_NONE)
		ds_group_path(ds, group, &path);
	else
		ds_array_path(ds, array, &path);
	n = (size_t)u64_min(path.len, 150);
	if (path.data &&
	    !(e && e->msg[0] == '\'' && strncmp(e->msg + 1, (char *)path.data, n) == 0))
		rc = err_wrap(e, rc, "'%.*s'", (int)n, (const char *)path.data);
	buf_release(&path);
	return rc;
}

int nc_full(const struct nc_model *m, struct err *e)
{
	return m->arena.starved
		       ? err_nomem(e)
		       : err_set(e, -ERANGE, "netCDF file: its metadata exceeds %zu bytes "
				 "(-o memory)",
				 m->arena.max);
}

const char *const *nc_model_notes(const struct nc_model *m, uint32_t *ret_n)
{
	*ret_n = m->n_notes + (m->notes_dropped > 0);
	return m->notes;
}

/* ---- arrays that can be shown ---- */

uint32_t nc_elem(const struct ds_array *a)
{
	return a->type.kind == DT_STRING ? 1 : a->type.size;
}

uint32_t nc_rank(const struct ds_array *a)
{
	return a->rank + (a->type.kind == DT_STRING && a->type.size > 1);
}

uint32_t nc_axis_dim(const struct nc_model *m, uint32_t array, uint32_t axis)
{
	const struct ds_array *a = &m->ds->arrays[array];

	return axis < a->rank ? a->dims[axis] : m->arrays[array].text_dim;
}

/* one_byte - whether all bytes of a fill value are equal, so that characters can express it. */
static bool one_byte(const struct ds_array *a)
{
	for (uint32_t i = 1; i < a->type.size; i++)
		if (a->fill[i] != a->fill[0])
			return false;
	return true;
}

bool nc_fill(const struct ds_array *a)
{
	return a->fill && a->type.size <= NC_MESSAGE_MAX &&
	       (a->type.kind != DT_STRING || one_byte(a));
}

/* lengths_fit - whether the array's lengths fit HDF5 and the array's dimensions. */
static int lengths_fit(const struct nc_model *m, const struct ds_array *a, struct err *e)
{
	for (uint32_t d = 0; d < a->rank; d++) {
		const struct ds_dim *dim = &m->ds->dims[a->dims[d]];

		if (a->chunk[d] > CHUNK_MAX)
			return err_set(
				e, -EOPNOTSUPP,
				"chunks have %" PRIu64
				" elements along an axis, but HDF5 allows at most %" PRIu32,
				a->chunk[d], CHUNK_MAX);
		if (dim->len > LENGTH_MAX)
			return err_set(e, -EOPNOTSUPP, "a dimension is longer than 2^62");
		if (dim->unlimited ? a->shape[d] > dim->len : a->shape[d] != dim->len)
			return err_set(e, -EOPNOTSUPP,
				       "length %" PRIu64 ", but dimension '%s' has %" PRIu64,
				       a->shape[d], dim->name, dim->len);
	}
	return 0;
}

/* strings_fit - whether the minimum size of variable-length elements fits. */
static int strings_fit(const struct nc_model *m, const struct ds_array *a, struct err *e)
{
	uint64_t n = 1;

	for (uint32_t d = 0; d < a->rank; d++)
		if (ckd_mul(&n, n, a->shape[d]))
			n = UINT64_MAX;
	if (n > m->max_bytes / NC_TEXT_ELEM)
		return err_set(e, -EOPNOTSUPP,
			       "%" PRIu64 " elements without a fixed size, more than %" PRIu64,
			       n, m->max_bytes / NC_TEXT_ELEM);
	return 0;
}

/* array_fits - whether HDF5 and netCDF can express the array at all. */
static int array_fits(const struct nc_model *m, const struct ds_array *a, const struct plan *p,
		      struct err *e)
{
	int rc;

	if (p->kind == PLAN_ERROR)
		return err_set(e, -EOPNOTSUPP, "%s", p->reason);
	if (nc_rank(a) > NC_RANK_LIMIT)
		return err_set(e, -EOPNOTSUPP,
			       "%" PRIu32 " dimensions, but HDF5 allows at most %d", nc_rank(a),
			       NC_RANK_LIMIT);
	rc = lengths_fit(m, a, e);
	rc = rc ? rc : nc_type_check(&a->type, e);
	if (rc)
		return rc;
	if (dt_is_vlen(&a->type))
		return strings_fit(m, a, e);
	if (a->type.size == 0)
		return err_set(e, -EOPNOTSUPP, "its elements have 0 bytes");
	if (a->chunk_bytes > CHUNK_MAX)
		return err_set(e, -EOPNOTSUPP,
			       "chunks of %" PRIu64 " bytes, but HDF5 allows at most %" PRIu32,
			       a->chunk_bytes, CHUNK_MAX);
	return 0;
}

/* schema_hide - leave out an array, or fail if that is not wanted. why: e, already set. */
static int schema_hide(struct nc_model *m, struct plan *plans, uint32_t i,
		       const struct err *why, struct err *e)
{
	struct buf path;

	if (m->keep_going) {
		m->arrays[i].name = NULL;
		plans[i] = (struct plan){.kind = PLAN_HIDE};
		(void)snprintf(plans[i].reason, sizeof(plans[i].reason), "%.*s",
			       (int)sizeof(plans[i].reason) - 1, why->msg);
		return nc_note(m, 0, i, "left out: %s", why->msg) < 0 ? err_nomem(e) : 0;
	}
	buf_init(&path, (size_t)1 << 16);
	ds_array_path(m->ds, i, &path);
	(void)err_set(e, -EOPNOTSUPP, "'%.*s' cannot be shown in a netCDF file: %s",
		      (int)u64_min(path.len, 100), path.data ? (char *)path.data : "",
		      why->msg);
	buf_release(&path);
	return -EOPNOTSUPP;
}

static int decide_shown(struct nc_model *m, struct plan *plans,
			const struct plan_policy *policy, struct err *e)
{
	const struct plan_policy plain = {.filter = PLAN_NONE, .quant = policy->quant};
	bool any = policy->rules != NULL;
	int rc = 0;

	policy = m->unlisted ? &plain : policy;
	for (uint32_t i = 0; i < m->ds->n_arrays && !rc; i++) {
		const struct ds_array *a = &m->ds->arrays[i];
		struct err why = ERR_INIT;

		m->arrays[i] = (struct nc_array){
			.type = DS_NONE, .text_dim = DS_NONE, .scale_of = DS_NONE};
		rc = nc_filters_plan(m, i, policy, &plans[i], e);
		if (rc)
			return rc;
		if (array_fits(m, a, &plans[i], &why) < 0) {
			rc = schema_hide(m, plans, i, &why, e);
			continue;
		}
		m->arrays[i].name = nc_escape(&m->arena, a->name, NC_NAME_LIMIT);
		if (!m->arrays[i].name)
			rc = nc_full(m, e);
	}
	/* the sizes of encoded chunks are unknown, but a file states them all, so all chunks are
	 * shown decoded, including those that were never written */
	for (uint32_t i = 0; i < m->ds->n_arrays; i++)
		any |= plans[i].kind == PLAN_DECODE && m->ds->arrays[i].chain.n > 0;
	if (!rc && m->unlisted && any &&
	    nc_note(m, 0, DS_NONE,
		    "the server cannot list chunks, so their sizes are unknown: chunks are "
		    "served uncompressed") < 0)
		rc = err_nomem(e);
	return rc;
}

/* ---- storage ---- */

static void decide_storage(struct nc_model *m, struct plan *plans)
{
	for (uint32_t i = 0; i < m->ds->n_arrays; i++) {
		const struct ds_array *a = &m->ds->arrays[i];
		struct nc_array *x = &m->arrays[i];
		bool unlimited = false;

		if (!x->name)
			continue;
		for (uint32_t d = 0; d < a->rank; d++)
			unlimited |= m->ds->dims[a->dims[d]].unlimited;
		x->chunked = unlimited || (a->rank > 0 && a->n_chunks > 0);
		x->data = a->n_chunks == 0 ? NC_NO_DATA : NC_CHUNKED;
		if (dt_is_vlen(&a->type)) {
			x->chunked = unlimited;
			if (a->n_chunks > 0)
				x->data = NC_VLEN_INLINE;
			continue;
		}
		if (a->rank == 0)
			x->data = NC_CONTIGUOUS;
		x->fill = nc_fill(a);
		plans[i].fill_declared = x->fill && !m->unlisted;
	}
}

/* ---- names of groups and arrays ---- */

/* order_groups - parents before children, siblings in order; a group that is not reachable stays
 * out. */
static int order_groups(struct nc_model *m, struct err *e)
{
	const struct dataset *ds = m->ds;
	uint32_t n = 0;

	m->order[n++] = 0;
	for (uint32_t k = 0; k < n; k++) {
		const struct ds_group *g = &ds->groups[m->order[k]];

		for (uint32_t i = 0; i < g->n_groups; i++) {
			if (n == ds->n_groups || g->groups[i] == 0)
				return err_set(e, -EBADMSG,
					       "the dataset's groups do not form a hierarchy");
			m->order[n++] = g->groups[i];
		}
	}
	return n == ds->n_groups ? 0 : err_set(e, -EBADMSG, "groups without a parent");
}

static int name_groups(struct nc_model *m, struct err *e)
{
	for (uint32_t g = 1; g < m->ds->n_groups; g++) {
		const struct ds_group *x = &m->ds->groups[g];
		const char *want = nc_escape(&m->arena, x->name, NC_NAME_LIMIT);

		if (want)
			want = nc_names_claim(&m->names, &m->arena, x->parent, want, DS_NONE,
					      NC_NAME_LIMIT);
		if (!want)
			return nc_full(m, e);
		m->groups[g].name = want;
		if (strcmp(want, x->name) != 0 &&
		    nc_note(m, g, DS_NONE, "shown as '%s'", want) < 0)
			return err_nomem(e);
	}
	return 0;
}

/* link_of - the dataset's name. netCDF's prefix marks a variable that has the name of a dimension
 * without being its coordinate variable. */
static const char *link_of(struct nc_model *m, uint32_t i)
{
	const struct ds_array *a = &m->ds->arrays[i];
	const char *name = m->arrays[i].name;
	size_t n = strlen(NETCDF_NON_COORD) + strlen(name) + 1;
	char *link;

	if (m->arrays[i].scale_of != DS_NONE ||
	    !nc_names_find(&m->names, NC_SCOPE_DIMS | a->group, a->name))
		return name;
	link = arena_alloc(&m->arena, n, 1);
	if (link)
		(void)snprintf(link, n, "%s%s", NETCDF_NON_COORD, name);
	return link;
}

static int name_arrays(struct nc_model *m, struct err *e)
{
	for (uint32_t i = 0; i < m->ds->n_arrays; i++) {
		const struct ds_array *a = &m->ds->arrays[i];
		struct nc_array *x = &m->arrays[i];
		const char *link = x->name ? link_of(m, i) : NULL;

		if (!x->name)
			continue;
		if (link)
			link = nc_names_claim(&m->names, &m->arena, a->group, link, i,
					      NC_NAME_LIMIT);
		if (!link)
			return nc_full(m, e);
		if (x->scale_of != DS_NONE)
			x->name = link; /* the dimension's name as well */
		x->link = link;
		if (strcmp(x->name, a->name) != 0 &&
		    nc_note(m, 0, i, "shown as '%s'", x->name) < 0)
			return err_nomem(e);
	}
	return 0;
}

/* ---- all of it ---- */

static int decide_attrs(struct nc_model *m, struct err *e)
{
	int rc = 0;

	for (uint32_t g = 0; g < m->ds->n_groups && !rc; g++)
		rc = nc_attrs_decide(m, g, DS_NONE, &m->groups[g].attrs, e);
	for (uint32_t i = 0; i < m->ds->n_arrays && !rc; i++)
		if (m->arrays[i].name)
			rc = nc_attrs_decide(m, m->ds->arrays[i].group, i, &m->arrays[i].attrs,
					     e);
	return rc;
}

static int schema_name_all(struct nc_model *m, struct err *e)
{
	int rc = 0;

	/* to look up whether a group has a dimension of a name */
	for (uint32_t d = 0; d < m->ds->n_dims && !rc; d++)
		if (nc_names_add(&m->names, NC_SCOPE_DIMS | m->ds->dims[d].group,
				 m->ds->dims[d].name, d) == -ENOMEM)
			rc = err_nomem(e);
	rc = rc ? rc : name_groups(m, e);
	nc_dims_scales(m);
	rc = rc ? rc : name_arrays(m, e);
	rc = rc ? rc : nc_dims_names(m, e);
	return rc ? rc : nc_dims_strings(m, e);
}

static int schema_decide(struct nc_model *m, struct plan *plans,
			 const struct plan_policy *policy, struct err *e)
{
	int rc = order_groups(m, e);

	rc = rc ? rc : decide_shown(m, plans, policy, e);
	rc = rc ? rc : schema_name_all(m, e);
	for (uint32_t i = 0; i < m->ds->n_arrays && !rc; i++)
		if (m->arrays[i].name)
			rc = nc_type_need(m, m->ds->arrays[i].group, &m->ds->arrays[i].type,
					  m->arrays[i].name, &m->arrays[i].type, e);
	rc = rc ? rc : decide_attrs(m, e);
	if (rc)
		return rc;
	decide_storage(m, plans);
	return 0;
}

int nc_model_new(struct source *s, const struct nc_view_options *opts, struct plan *plans,
		 struct nc_model **ret, struct err *e)
{
	const struct dataset *ds = &s->ds;
	struct nc_asker asker = {.x.timeout_ms = opts->build_timeout_ms};
	struct nc_model *m = alloc_array(1, sizeof(*m));
	int rc;

	if (!m)
		return err_nomem(e);
	m->asker = &asker;
	m->build_ms = opts->build_timeout_ms;
	m->ds = ds;
	m->plans = plans;
	m->keep_going = opts->keep_going;
	m->root_only = opts->root_only;
	m->unlisted = s->unlisted;
	m->max_bytes = opts->max_image_bytes;
	arena_init(&m->arena, (size_t)u64_min(u64_max(m->max_bytes, MODEL_MIN), SIZE_MAX));
	m->n_dims = ds->n_dims;
	m->c_dims = ds->n_dims;
	m->order = alloc_array(ds->n_groups, sizeof(*m->order));
	m->groups = alloc_array(ds->n_groups, sizeof(*m->groups));
	m->arrays = alloc_array(ds->n_arrays, sizeof(*m->arrays));
	m->dims = alloc_array(ds->n_dims, sizeof(*m->dims));
	if (m->order && m->groups && m->arrays && m->dims)
		rc = schema_decide(m, plans, &opts->policy, e);
	else
		rc = err_nomem(e);
	nc_asker_end(&asker);
	m->asker = NULL;
	if (rc) {
		nc_model_free(m);
		return rc;
	}
	*ret = m;
	return 0;
}

void nc_model_free(struct nc_model *m)
{
	if (!m)
		return;
	nc_names_release(&m->names);
	free(m->notes);
	free(m->types);
	free(m->dims);
	free(m->arrays);
	free(m->groups);
	free(m->order);
	arena_release(&m->arena);
	free(m);
}
