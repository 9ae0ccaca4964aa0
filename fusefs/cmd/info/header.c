/* SPDX-License-Identifier: BSD-3-Clause */
/* header.c - the header of a dataset as `ncdump -h` prints it (CDL): dimensions, variables,
 * attributes with their values, groups.
 *
 * The model has no names of user-defined types: a compound is written out at each use, and an
 * enumeration is its integer type with the attributes that name its values. */
#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"
#include "fusefs/cmd/info/info_int.h"

enum { DEPTH_SHOWN = 100 }; /* nested groups */

/* header_line - begin a line in a group at this depth, with this many tabs. */
static void header_line(struct buf *out, unsigned depth, unsigned tabs)
{
	buf_printf(out, "%*s", (int)(2 * depth), "");
	for (unsigned i = 0; i < tabs; i++)
		buf_putc(out, '\t');
}

/* header_attr - variable: "" for an attribute of a group. */
static void header_attr(struct buf *out, const char *variable, const struct ds_attr *a,
			unsigned depth)
{
	const bool strings = a->n > 0 && (a->type.kind == DT_VSTRING ||
					  (a->type.kind == DT_STRING && a->n > 1));

	header_line(out, depth, 2);
	buf_puts(out, strings ? "string " : "");
	info_cdl_name(out, variable);
	buf_putc(out, ':');
	info_cdl_name(out, a->name);
	buf_puts(out, " = ");
	info_attr_value(out, a, INFO_CDL);
	buf_puts(out, a->of_type ? " ; // from the enumeration type\n" : " ;\n");
}

static void header_dims(struct buf *out, const struct dataset *ds, const struct ds_group *g,
			unsigned depth)
{
	if (g->n_dims) {
		header_line(out, depth, 0);
		buf_puts(out, "dimensions:\n");
	}
	for (uint32_t i = 0; i < g->n_dims; i++) {
		const struct ds_dim *d = &ds->dims[g->dims[i]];

		header_line(out, depth, 1);
		info_cdl_name(out, d->name);
		if (d->unlimited)
			buf_printf(out, " = UNLIMITED ; // (%" PRIu64 " currently)\n", d->len);
		else
			buf_printf(out, " = %" PRIu64 " ;%s\n", d->len,
				   d->phony ? " // the file does not name it" : "");
	}
}

/* header_remark - append facts that CDL cannot express as a comment. */
static void header_remark(struct buf *out, struct view *v, uint32_t ordinal)
{
	const struct ds_array *a = &v->source->ds.arrays[ordinal];
	const struct plan *plan = info_plan(v, ordinal);

	if (a->type.kind == DT_STRING && !dt_is_char(&a->type))
		buf_printf(out, " // of %" PRIu32 " bytes", a->type.size);
	if (a->unreadable) {
		buf_puts(out, " // cannot be read: ");
		str_put_plain(out, a->unreadable);
	} else if (plan && plan->kind == PLAN_HIDE) {
		buf_puts(out, " // omitted from the view: ");
		str_put_plain(out, plan->reason);
	}
}

void info_header_array(struct buf *out, struct view *v, uint32_t ordinal, unsigned depth)
{
	const struct dataset *ds = &v->source->ds;
	const struct ds_array *a = &ds->arrays[ordinal];

	header_line(out, depth, 1);
	info_cdl_type(out, &a->type);
	buf_putc(out, ' ');
	info_cdl_name(out, a->name);
	for (uint32_t i = 0; i < a->rank; i++) {
		buf_puts(out, i ? ", " : "(");
		info_cdl_name(out, ds->dims[a->dims[i]].name);
	}
	buf_puts(out, a->rank ? ") ;" : " ;");
	header_remark(out, v, ordinal);
	buf_putc(out, '\n');
	for (uint32_t i = 0; i < a->n_attrs; i++)
		header_attr(out, a->name, &a->attrs[i], depth);
}

/* header_group - append the contents of a group, without its opening line. */
static void header_group(struct buf *out, struct view *v, uint32_t ordinal, unsigned depth)
{
	const struct dataset *ds = &v->source->ds;
	const struct ds_group *g = &ds->groups[ordinal];

	header_dims(out, ds, g, depth);
	if (g->n_arrays) {
		header_line(out, depth, 0);
		buf_puts(out, "variables:\n");
	}
	for (uint32_t i = 0; i < g->n_arrays && buf_ok(out); i++)
		info_header_array(out, v, g->arrays[i], depth);
	if (g->n_attrs) {
		buf_putc(out, '\n');
		header_line(out, depth, 0);
		buf_puts(out, ordinal ? "// group attributes:\n" : "// global attributes:\n");
	}
	for (uint32_t i = 0; i < g->n_attrs; i++)
		header_attr(out, "", &g->attrs[i], depth);
	for (uint32_t i = 0; i < g->n_groups && depth < DEPTH_SHOWN && buf_ok(out); i++) {
		const char *name = ds->groups[g->groups[i]].name;

		buf_putc(out, '\n');
		header_line(out, depth, 0);
		buf_puts(out, "group: ");
		info_cdl_name(out, name);
		buf_puts(out, " {\n");
		header_group(out, v, g->groups[i], depth + 1);
		header_line(out, depth + 1, 0);
		buf_puts(out, "} // group ");
		info_cdl_name(out, name);
		buf_putc(out, '\n');
	}
}

void info_header(struct buf *out, struct view *v, const char *name)
{
	buf_puts(out, "netcdf ");
	info_cdl_name(out, name);
	buf_puts(out, " {\n");
	header_group(out, v, 0, 0);
	buf_puts(out, "}\n");
}
