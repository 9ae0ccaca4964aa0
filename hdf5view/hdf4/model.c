/* SPDX-License-Identifier: BSD-3-Clause */
/* model.c - the model of an HDF4 file: every SDS is an array of the root group. */
#include "hdf5view/hdf4/hdf4_int.h"

#ifdef NCZARRFS_HDF4
#include <errno.h>
#include "hdf5view/hdf4/hdf4_library.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "translate/model/grid.h"

#define SDS_MAX 1000000 /* in one file; the library writes 5000 at most */

/* A compressed SDS without chunks can only be decoded from its start, so it is presented as one
 * chunk up to this size. */
#define WHOLE_BYTES ((uint64_t)64 << 20)

static int model_add_all(struct h4_build *b, struct err *e)
{
	struct ds_group *root = arena_alloc(b->arena, 1, sizeof(*root));
	int32 n_sds = 0, n_attrs = 0;
	int rc;

	if (!root)
		return h4_full(b, e);
	if (SDfileinfo(b->sd, &n_sds, &n_attrs) == FAIL || n_sds < 0 || n_sds > SDS_MAX)
		return h4_error(e, -EBADMSG, "not readable as HDF4");
	root->name = arena_strdup(b->arena, "");
	root->parent = DS_NONE;
	b->s->g.base.ds.groups = root;
	b->s->g.base.ds.n_groups = 1;
	rc = root->name ? h4_attrs_read(b, b->sd, n_attrs, "", &root->n_attrs, &root->attrs, e)
			: h4_full(b, e);
	for (int32 i = 0; i < n_sds && rc == 0; i++)
		rc = h4_sds_read(b, i, e);
	resource_errors_note();
	return rc;
}

/* model_finish - set shape and chunks, once the lengths of dimensions are known. */
static int model_finish(struct h4_build *b, struct h4_barray *w, struct err *e)
{
	const struct source_options *o = &b->s->g.opts;
	uint64_t *shape = arena_alloc(b->arena, w->a.rank, sizeof(*shape));
	uint64_t *chunk = arena_alloc(b->arena, w->a.rank, sizeof(*chunk)),
		 bytes = w->a.type.size;
	bool whole = w->compressed;
	char text[160];
	int rc;

	if (!shape || !chunk)
		return h4_full(b, e);
	for (uint32_t i = 0; i < w->a.rank; i++) {
		shape[i] = b->dims[w->a.dims[i]].d.len;
		whole = whole && !ckd_mul(&bytes, bytes, u64_max(shape[i], 1));
	}
	whole = whole && bytes <= u64_min(WHOLE_BYTES, o->max_chunk_bytes);
	w->a.shape = shape;
	if (!w->chunk)
		ds_split_chunks(shape, w->a.rank, w->a.type.size, whole ? bytes : o->cut_bytes,
				chunk);
	w->a.chunk = w->chunk ? w->chunk : chunk;
	rc = ds_array_finish(&b->s->g.base.ds, &w->a, UINT64_MAX, e);
	if (rc < 0 || w->a.unreadable)
		return rc;
	if (w->a.chunk_bytes <= o->max_chunk_bytes)
		return h4_pass_read(b, w, e);
	(void)snprintf(text, sizeof(text),
		       "a chunk has %" PRIu64 " bytes, more than max_chunk=%" PRIu64,
		       w->a.chunk_bytes, o->max_chunk_bytes);
	w->a.unreadable = arena_strdup(b->arena, text);
	return w->a.unreadable ? 0 : h4_full(b, e);
}

static int model_freeze(struct h4_build *b, const void **ret_own, struct err *e)
{
	struct dataset *ds = &b->s->g.base.ds;
	struct h4_array *x = arena_alloc(b->arena, b->n_arrays, sizeof(*x));

	ds->arrays = arena_alloc(b->arena, b->n_arrays, sizeof(*ds->arrays));
	ds->dims = arena_alloc(b->arena, b->n_dims, sizeof(*ds->dims));
	if (!x || !ds->arrays || !ds->dims)
		return h4_full(b, e);
	for (size_t i = 0; i < b->n_dims; i++)
		ds->dims[i] = b->dims[i].d;
	for (size_t i = 0; i < b->n_arrays; i++) {
		struct err why = ERR_INIT;
		int rc = model_finish(b, &b->arrays[i], &why);

		if (rc == -ENOMEM)
			return h4_full(b, e);
		if (rc < 0) {
			rc = h4_mark_unreadable(b, b->arrays[i].a.name, NULL, &why, e);
			if (rc < 0)
				return rc;
			continue;
		}
		x[ds->n_arrays] = b->arrays[i].x;
		ds->arrays[ds->n_arrays++] = b->arrays[i].a;
	}
	*ret_own = x;
	ds->n_dims = (uint32_t)b->n_dims;
	return ds_group_members(ds, e);
}

/* counts - the number of objects that users made; the library makes tables and groups of its
 * own. */
struct counts {
	int32 tables, groups, images, strings;
};

static void model_count(int32 file, struct counts *n)
{
	int32 gr, an, images = 0, attrs = 0, v[4] = {0};

	if (Vstart(file) != FAIL) {
		n->tables = VSgetvdatas(file, 0, 0, NULL);
		n->groups = Vgetvgroups(file, 0, 0, NULL);
		(void)Vend(file);
	}
	gr = GRstart(file);
	if (gr != FAIL) {
		if (GRfileinfo(gr, &images, &attrs) != FAIL)
			n->images = images;
		(void)GRend(gr);
	}
	an = ANstart(file);
	if (an != FAIL) {
		if (ANfileinfo(an, &v[0], &v[1], &v[2], &v[3]) != FAIL)
			for (size_t i = 0; i < ARRAY_LEN(v); i++)
				n->strings += v[i] > 0 ? v[i] : 0;
		(void)ANend(an);
	}
}

/* model_say - append ", <n> <what>s" to a line. */
static void model_say(char *line, size_t cap, int32 n, const char *what)
{
	size_t len = strlen(line);

	if (n > 0)
		(void)snprintf(line + len, cap - len, "%s%d %s%s", len ? ", " : "", (int)n,
			       what, n > 1 ? "s" : "");
}

/* add_left_out - add a note about the other objects of the file. */
static int add_left_out(struct h4_build *b, struct err *e)
{
	/* the library has the file open by this name, and can open no other */
	int32 file = Hopen(b->s->opened, DFACC_READ, 0);
	struct counts n = {0};
	char line[160] = "";

	if (file == FAIL)
		return 0;
	model_count(file, &n);
	(void)Hclose(file);
	model_say(line, sizeof(line), n.images, "raster image");
	model_say(line, sizeof(line), n.tables, "Vdata table");
	model_say(line, sizeof(line), n.groups, "Vgroup");
	model_say(line, sizeof(line), n.strings, "annotation");
	if (!line[0])
		return 0;
	return h4_note(b, "", e, "only Scientific Data Sets are shown; left out: %s", line);
}

int h4_build_model(struct isolated *g, const void **ret_own, struct err *e)
{
	struct h4_build b = {.s = h4_of(g), .arena = &g->base.ds.arena};
	int rc = h4_open(b.s, e);

	b.sd = b.s->sd;
	b.text = alloc_array(H4_TEXT_MAX + 1, 1);
	if (rc == 0 && !b.text)
		rc = err_nomem(e);
	rc = rc ? rc : model_add_all(&b, e);
	rc = rc ? rc : h4_names_resolve(&b, e);
	rc = rc ? rc : model_freeze(&b, ret_own, e);
	rc = rc ? rc : add_left_out(&b, e);
	rc = rc ? rc : unreadable_freeze(&b.lost, NULL, b.arena, &g->base.ds, e);
	rc = rc ? rc : ds_notes_freeze(&b.notes, b.arena, &g->base.ds, e);
	g->base.ds.format = rc ? NULL : arena_strdup(b.arena, "HDF4");
	if (rc == 0 && !g->base.ds.format)
		rc = h4_full(&b, e);
	free(b.text);
	free(b.arrays);
	free(b.dims);
	ds_notes_release(&b.notes);
	unreadable_release(&b.lost);
	return rc;
}

#endif
