/* SPDX-License-Identifier: BSD-3-Clause */
/* builder.c - notes and lists of members of a dataset model. */
#include "translate/model/builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int builder_full(const struct arena *a, struct err *e)
{
	return arena_full(a, e, "the metadata");
}

static int notes_keep(struct ds_notes *n, struct arena *a, const char *text, struct err *e)
{
	const char *copy = arena_strdup(a, text);

	if (!copy)
		return builder_full(a, e);
	if (grow_array(&n->v, &n->cap, n->n + 1, sizeof(*n->v)) < 0)
		return err_nomem(e);
	n->v[n->n++] = copy;
	return 0;
}

int ds_notes_add(struct ds_notes *n, struct arena *a, const char *where, size_t len,
		 const char *fmt, va_list ap, struct err *e)
{
	struct err line = ERR_INIT;
	char text[ERR_TEXT_MAX];

	if (n->n >= DS_NOTES_MAX) {
		n->dropped++;
		return 0;
	}
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	/* err_set makes control characters of names harmless */
	(void)err_set(&line, 0, "%.*s: %s", (int)u64_min(len, 300), where, text);
	return notes_keep(n, a, line.msg, e);
}

int ds_notes_freeze(struct ds_notes *n, struct arena *a, struct dataset *ds, struct err *e)
{
	char more[80];
	int rc = 0;

	(void)snprintf(more, sizeof(more), "%" PRIu64 " more notes of this kind", n->dropped);
	if (n->dropped)
		rc = notes_keep(n, a, more, e);
	if (rc < 0)
		return rc;
	ds->notes = arena_copy(a, n->v, n->n * sizeof(*n->v));
	ds->n_notes = (uint32_t)n->n;
	return ds->notes ? 0 : builder_full(a, e);
}

void ds_notes_release(struct ds_notes *n)
{
	free(n->v);
	*n = (struct ds_notes){0};
}

/* ---- members ---- */

int ds_members(struct dataset *ds, struct arena *a, struct err *e)
{
	uint32_t *groups = arena_alloc(a, ds->n_groups, sizeof(*groups)), *next_group = groups;
	uint32_t *arrays = arena_alloc(a, ds->n_arrays, sizeof(*arrays)), *next_array = arrays;
	uint32_t *dims = arena_alloc(a, ds->n_dims, sizeof(*dims)), *next_dim = dims;

	if (!groups || !arrays || !dims)
		return builder_full(a, e);
	for (uint32_t i = 0; i < ds->n_groups; i++)
		ds->groups[i].n_groups = ds->groups[i].n_arrays = ds->groups[i].n_dims = 0;
	for (uint32_t i = 0; i < ds->n_groups; i++)
		if (ds->groups[i].parent != DS_NONE)
			ds->groups[ds->groups[i].parent].n_groups++;
	for (uint32_t i = 0; i < ds->n_arrays; i++)
		ds->groups[ds->arrays[i].group].n_arrays++;
	for (uint32_t i = 0; i < ds->n_dims; i++)
		ds->groups[ds->dims[i].group].n_dims++;
	for (uint32_t i = 0; i < ds->n_groups; i++) {
		struct ds_group *g = &ds->groups[i];

		g->groups = next_group;
		g->arrays = next_array;
		g->dims = next_dim;
		next_group += g->n_groups;
		next_array += g->n_arrays;
		next_dim += g->n_dims;
		g->n_groups = g->n_arrays = g->n_dims = 0;
	}
	for (uint32_t i = 0; i < ds->n_groups; i++) {
		struct ds_group *g = ds->groups[i].parent == DS_NONE
					     ? NULL
					     : &ds->groups[ds->groups[i].parent];

		if (g)
			groups[(g->groups - groups) + g->n_groups++] = i;
	}
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		struct ds_group *g = &ds->groups[ds->arrays[i].group];

		arrays[(g->arrays - arrays) + g->n_arrays++] = i;
	}
	for (uint32_t i = 0; i < ds->n_dims; i++) {
		struct ds_group *g = &ds->groups[ds->dims[i].group];

		dims[(g->dims - dims) + g->n_dims++] = i;
	}
	return 0;
}
