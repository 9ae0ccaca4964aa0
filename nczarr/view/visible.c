/* SPDX-License-Identifier: BSD-3-Clause */
/* visible.c - the visible nodes of a view, determined once when it is opened: plans, hidden nodes
 * with reasons, notes, ids, and an index of names. Only the model is read. */
#include "nczarr/view/visible.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "nczarr/view/metadata.h"

#define NOTES_MAX 1000
#define NOTE_MAX 1000 /* bytes of one */
#define ARENA_MAX ((size_t)1 << 30)

/* note_array - "<path>: <text>" as one line of the view's notes; control characters come from
 * names. */
static int note_array(struct zr_visible *s, const struct dataset *ds, uint32_t ord,
		      const char *text)
{
	auto_buf b = buf_of((size_t)1 << 20);
	char *line;

	if (s->n_notes >= NOTES_MAX)
		return 0;
	ds_array_path(ds, ord, &b);
	if (b.len > NOTE_MAX)
		b.len = 0; /* without its path rather than not at all */
	buf_printf(&b, "%s%s", b.len ? ": " : "", text);
	line = buf_ok(&b) ? arena_copy(&s->arena, b.data, b.len) : NULL;
	for (char *p = line; p && *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	if (!line ||
	    grow_array(&s->notes, &s->c_notes, (size_t)s->n_notes + 1, sizeof(*s->notes)) < 0)
		return -ENOMEM;
	s->notes[s->n_notes++] = line;
	return 0;
}

static void visible_hide(struct plan *plan, const char *why)
{
	plan->kind = PLAN_HIDE;
	(void)snprintf(plan->reason, sizeof(plan->reason), "%s", why);
}

bool zr_name_reserved(const struct zr_format *f, const char *name)
{
	for (const char *const *p = f->reserved; *p; p++)
		if (strcmp(*p, name) == 0)
			return true;
	return false;
}

/* hide_groups - hide groups whose name, or a name above, is not allowed. */
static void hide_groups(struct zr_visible *s, const struct dataset *ds, bool nczarr)
{
	for (uint32_t g = 1; g < ds->n_groups; g++) {
		uint32_t at = g;

		/* the limit is for a cyclic model, which is hidden */
		for (uint32_t steps = 0; at != 0 && at < ds->n_groups; steps++) {
			const char *name = ds->groups[at].name;

			if (zr_name_reserved(s->format, name) ||
			    (nczarr && !zr_netcdf_name(name)) || steps > ds->n_groups) {
				s->hidden_groups[g] = true;
				break;
			}
			at = ds->groups[at].parent;
		}
	}
}

bool zr_fill_stated(const struct zr_format *f, const struct ds_array *a, bool nczarr)
{
	/* xarray cannot open a dataset in which a structure or plain bytes have a fill value */
	bool plain = a->type.kind != DT_COMPOUND && a->type.kind != DT_OPAQUE;
	bool declared = nczarr ? a->fill_defined : plain && ds_fill_declared(a);

	if (f->states_fill)
		return zr_type3_fill(a);
	/* a vlen value has no JSON form that readers agree on */
	return declared && a->type.kind != DT_VLEN;
}

/* visible_refuses - whether codecs of elements apply to bytes in the view. */
static const char *visible_refuses(const struct plan_ask *ask, const struct codec_chain *chain)
{
	struct zr_type3 t;

	if (ask->format != PLAN_ZARR3 || zr_type3_of(&ask->ds->arrays[ask->array].type, &t) ||
	    !t.says)
		return NULL;
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_ops *ops = codec_find(chain->specs[i].h5_id);

		if (ops && ops->elements)
			return "elements are shown as bytes in Zarr v3";
	}
	return NULL;
}

/* plan_chunks - the plan of an array, also of a hidden one. */
static int plan_chunks(struct zr_visible *s, const struct dataset *ds, uint32_t ord,
		       const struct zarr_view_options *opts, struct err *e)
{
	const struct ds_array *a = &ds->arrays[ord];
	uint64_t chunk[DS_RANK_MAX];
	struct codec_array as;
	const struct plan_ask ask = {
		.ds = ds,
		.array = ord,
		.format = s->format->plans,
		.policy = &opts->policy,
		.fill_declared = zr_fill_stated(s->format, a, opts->mode == ZARR_NCZARR),
		.as = &as,
		.refuses = visible_refuses,
		.arena = &s->arena};

	plan_elements(a, &as);
	for (uint32_t d = 0; d < a->rank; d++)
		chunk[d] = d == 0 ? zr_chunk_rows(opts->mode, a) : a->chunk[d];
	as.chunk = chunk;
	return plan_make(&ask, &s->plans[ord], e);
}

static int plan_array(struct zr_visible *s, const struct dataset *ds, uint32_t ord,
		      const struct zarr_view_options *opts, struct err *e)
{
	const struct ds_array *a = &ds->arrays[ord];
	struct plan *plan = &s->plans[ord];
	bool nczarr = opts->mode == ZARR_NCZARR;
	const char *why = NULL;
	struct zr_type3 t;
	int rc = plan_chunks(s, ds, ord, opts, e);

	if (rc)
		return rc;
	if (s->hidden_groups[a->group])
		why = "it is in a group whose name cannot be shown";
	else if (zr_name_reserved(s->format, a->name))
		why = "it has the name of a Zarr metadata file";
	else if (nczarr && !zr_netcdf_name(a->name))
		why = "netCDF does not allow its name";
	else if (!nczarr && s->format->version == 3 && zr_type3_of(&a->type, &t))
		why = "Zarr v3 has no such type";
	else if (!nczarr && s->format->version == 3 && t.bytes && a->rank == DS_RANK_MAX)
		why = "it has too many dimensions";
	for (uint32_t d = 0; nczarr && !why && d < a->rank; d++)
		if (!zr_netcdf_name(ds->dims[a->dims[d]].name))
			why = "netCDF does not allow the name of one of its dimensions";
	if (nczarr && !why) /* netCDF-C would reject the whole dataset */
		why = zr_nczarr_lacks(&a->type);
	if (why) {
		visible_hide(plan, why);
	} else if (nczarr && plan->kind == PLAN_VLEN) {
		plan->kind = PLAN_FIXED;
		/* Valid until the longest string is known; different for each array, so that
		 * chunks of hard links are not taken for equal before that. */
		plan->fixed_size = ord + 1;
		(void)snprintf(plan->reason, sizeof(plan->reason),
			       "strings are padded to the length of the longest");
	}
	s->hidden_arrays[ord] = plan->kind == PLAN_HIDE;
	if (plan->note && !why && note_array(s, ds, ord, plan->note) < 0)
		return err_nomem(e);
	return 0;
}

/* add_axis - a grid with one more axis, of one file. */
static int add_axis(struct zr_visible *s, struct zr_grid *g)
{
	uint64_t *len = arena_alloc(&s->arena, (size_t)g->rank + 1, sizeof(*len));

	if (!len)
		return -ENOMEM;
	for (uint32_t d = 0; d < g->rank; d++)
		len[d] = g->len[d];
	len[g->rank++] = 1;
	g->len = len;
	return 0;
}

static int make_grids(struct zr_visible *s, const struct dataset *ds,
		      const struct zarr_view_options *opts, struct err *e)
{
	const struct plan_layout *own;
	struct zr_type3 t;

	s->files = alloc_array(ds->n_arrays, sizeof(*s->files));
	s->named = alloc_array(ds->n_arrays, sizeof(*s->named));
	if (!s->files || !s->named)
		return err_nomem(e);
	for (uint32_t a = 0; a < ds->n_arrays; a++) {
		int rc = 0;

		own = plan_layout_of(&opts->policy, ds, a);
		if (s->hidden_arrays[a] || s->format->version == 2 ||
		    (own ? own->rank != ds->arrays[a].rank : !opts->shard_bytes))
			zr_grid_chunks(&ds->arrays[a], &s->files[a]);
		else if (own)
			(void)zr_grid_layout(&ds->arrays[a], own->shard, &s->arena, &s->files[a],
					     &rc);
		else
			rc = zr_grid_shards(&ds->arrays[a], opts->shard_bytes, &s->arena,
					    &s->files[a], e);
		if (rc)
			return rc;
		s->files[a].keys = s->keys; /* or those of the array's writer */
		if (own)
			s->files[a].keys =
				(struct zr_keys){.nested = own->nested,
						 .lead = own->lead && s->format->version == 3};
		s->sharded |= s->files[a].per != NULL;
		s->named[a] = s->files[a];
		if (s->format->version == 3 && zr_type3_of(&ds->arrays[a].type, &t) == 0 &&
		    t.bytes && add_axis(s, &s->named[a]) < 0)
			return err_nomem(e);
	}
	return 0;
}

static int visible_by_name(const void *pa, const void *pb)
{
	const struct visible_node *a = pa, *b = pb;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* index_names - must come after all nodes are known to be visible or hidden. */
static int index_names(struct zr_visible *s, const struct dataset *ds, struct err *e)
{
	size_t n = 0;

	s->entries = alloc_array((size_t)ds->n_groups + ds->n_arrays, sizeof(*s->entries));
	if (!s->entries)
		return err_nomem(e);
	for (uint32_t g = 1; g < ds->n_groups; g++) {
		if (s->hidden_groups[g])
			continue;
		s->n_dirs[ds->groups[g].parent]++;
		s->entries[n++] = (struct visible_node){
			.group = ds->groups[g].parent, .ord = g, .name = ds->groups[g].name};
	}
	for (uint32_t a = 0; a < ds->n_arrays; a++) {
		if (s->hidden_arrays[a])
			continue;
		s->n_dirs[ds->arrays[a].group]++;
		s->entries[n++] = (struct visible_node){.group = ds->arrays[a].group,
							.ord = a,
							.is_array = true,
							.name = ds->arrays[a].name};
	}
	s->n_entries = n;
	qsort(s->entries, n, sizeof(*s->entries), visible_by_name);
	return 0;
}

int zr_visible_init(struct zr_visible *s, const struct dataset *ds,
		    const struct zarr_view_options *opts, struct err *e)
{
	int rc;

	*s = (struct zr_visible){
		.format = zr_format_of(opts->format, !opts->separate),
		.keys = {.nested = opts->nested, .lead = opts->format == 3 && !opts->v2_keys},
	};
	arena_init(&s->arena, ARENA_MAX);
	s->plans = alloc_array(ds->n_arrays, sizeof(*s->plans));
	s->hidden_groups = alloc_array(ds->n_groups, sizeof(*s->hidden_groups));
	s->hidden_arrays = alloc_array(ds->n_arrays, sizeof(*s->hidden_arrays));
	s->n_dirs = alloc_array(ds->n_groups, sizeof(*s->n_dirs));
	rc = s->plans && s->hidden_groups && s->hidden_arrays && s->n_dirs ? 0 : err_nomem(e);
	if (rc)
		goto out;

	hide_groups(s, ds, opts->mode == ZARR_NCZARR);
	for (uint32_t a = 0; !rc && a < ds->n_arrays; a++)
		rc = plan_array(s, ds, a, opts, e);
	if (rc)
		goto out;
	rc = make_grids(s, ds, opts, e);
	if (rc)
		goto out;
	s->ids = (struct zr_inodes){.ds = ds, .format = s->format, .grids = s->named};
	rc = zr_inodes_init(&s->ids, opts->id_limit ? opts->id_limit : VIEW_ID_LIMIT,
			    s->hidden_arrays, e);
	if (rc)
		goto out;
	for (uint32_t a = 0; a < ds->n_arrays; a++)
		if (s->hidden_arrays[a] && s->plans[a].kind != PLAN_HIDE)
			visible_hide(&s->plans[a],
				     "it has more chunks than a mount can number");
	rc = index_names(s, ds, e);
out:
	if (rc)
		zr_visible_release(s);
	return rc;
}

void zr_visible_release(struct zr_visible *s)
{
	zr_inodes_release(&s->ids);
	free(s->entries);
	free(s->n_dirs);
	free(s->hidden_arrays);
	free(s->hidden_groups);
	free(s->plans);
	free(s->files);
	free(s->named);
	free(s->notes);
	arena_release(&s->arena);
	*s = (struct zr_visible){0};
}

const struct visible_node *zr_visible_find(const struct zr_visible *s, uint32_t group,
					   const char *name, size_t n)
{
	const struct visible_node *x = s->entries;
	size_t at = 0;

	if (memchr(name, '\0', n))
		return NULL;
	BISECT(at, s->n_entries, mid,
	       x[mid].group < group ||
		       (x[mid].group == group && strncmp(x[mid].name, name, n) < 0));
	return at < s->n_entries && x[at].group == group && str_is(x[at].name, name, n) ? &x[at]
											: NULL;
}
