/* SPDX-License-Identifier: BSD-3-Clause */
/* validate.c - reports objects that netCDF-4 cannot represent, before anything is changed.
 *
 * The model of the virtual file detects them: there names are changed and attributes left out,
 * with a note; here each of these is an error. */
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* note_on - the model's note about an attribute that it left out. */
static const char *note_on(const struct nc_model *m, const char *name)
{
	static const char left_out[] = "is left out: ";
	char want[160];
	uint32_t n;
	const char *const *notes = nc_model_notes(m, &n);

	(void)snprintf(want, sizeof(want), "attribute '%.120s' ", name);
	for (uint32_t i = 0; i < n; i++) {
		const char *at = strstr(notes[i], want);

		if (at)
			at += strlen(want);
		if (at && strncmp(at, left_out, strlen(left_out)) == 0)
			at += strlen(left_out);
		if (at)
			return at;
	}
	return "netCDF-4 cannot store it";
}

int hdf5_sink_attrs_held(const struct nc_model *m, uint32_t group, uint32_t array,
			 struct err *e)
{
	const struct dataset *ds = m->ds;
	const struct nc_attrs *l =
		array == DS_NONE ? &m->groups[group].attrs : &m->arrays[array].attrs;
	uint32_t n = array == DS_NONE ? ds->groups[group].n_attrs : ds->arrays[array].n_attrs;
	const struct ds_attr *src =
		array == DS_NONE ? ds->groups[group].attrs : ds->arrays[array].attrs;
	uint32_t at = 0;

	/* the model's are in the same order, less those left out */
	for (uint32_t i = 0; i < n; i++) {
		const char *name = at < l->n ? l->list[at].name : NULL;

		if (!name || strcmp(l->list[at].src->name, src[i].name) != 0)
			return nc_err_path(ds, group, array,
					   err_set(e, -EOPNOTSUPP, "attribute '%.100s': %s",
						   src[i].name, note_on(m, src[i].name)),
					   e);
		if (strcmp(name, src[i].name) != 0)
			return nc_err_path(
				ds, group, array,
				err_set(e, -EINVAL,
					"netCDF does not accept the attribute name '%.100s': "
					"use '%.100s'",
					src[i].name, name),
				e);
		at++;
	}
	return 0;
}

static int bad_name(const struct dataset *ds, uint32_t group, uint32_t array, const char *name,
		    struct err *e)
{
	return nc_err_path(
		ds, group, array,
		err_set(e, -EINVAL, "netCDF does not accept this name: use '%.100s'", name), e);
}

static int validate_all_held(const struct nc_model *m, struct err *e)
{
	const struct dataset *ds = m->ds;
	int rc = 0;

	for (uint32_t g = 0; g < ds->n_groups && !rc; g++) {
		if (g && strcmp(m->groups[g].name, ds->groups[g].name) != 0)
			return bad_name(ds, g, DS_NONE, m->groups[g].name, e);
		rc = hdf5_sink_attrs_held(m, g, DS_NONE, e);
	}
	for (uint32_t i = 0; i < ds->n_arrays && !rc; i++) {
		if (strcmp(m->arrays[i].name, ds->arrays[i].name) != 0)
			return bad_name(ds, 0, i, m->arrays[i].name, e);
		rc = hdf5_sink_attrs_held(m, ds->arrays[i].group, i, e);
	}
	for (uint32_t d = 0; d < ds->n_dims && !rc; d++)
		if (!ds->dims[d].phony && strcmp(m->dims[d].name, ds->dims[d].name) != 0)
			rc = nc_err_path(
				ds, ds->dims[d].group, DS_NONE,
				err_set(e, -EINVAL,
					"netCDF does not accept the dimension name '%.100s': "
					"use '%.100s'",
					ds->dims[d].name, m->dims[d].name),
				e);
	return rc;
}

int hdf5_sink_holds(const struct dataset *ds, struct err *e)
{
	const struct nc_view_options o = {
		.name = "", .policy.filter = PLAN_NONE, .max_image_bytes = (uint64_t)1 << 46};
	auto_free struct ds_array *arrays = alloc_array(ds->n_arrays, sizeof(*arrays));
	auto_free struct plan *plans = alloc_array(ds->n_arrays, sizeof(*plans));
	struct source view = {.ds = *ds};
	struct nc_model *m = NULL;
	int rc;

	if (!arrays || !plans)
		return err_nomem(e);
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		arrays[i] = ds->arrays[i];
		arrays[i].unreadable = NULL; /* its chunks are not queried here */
	}
	view.ds.arrays = arrays;
	rc = nc_model_new(&view, &o, plans, &m, e);
	rc = rc ? rc : validate_all_held(m, e);
	nc_model_free(m);
	return rc;
}
