/* SPDX-License-Identifier: BSD-3-Clause */
/* info_int.h - shared by the parts of `nczarrfs info`: info.c opens and decides, summary.c and
 * header.c print what ncdump -h does, details.c chunks and filters, folder.c a directory, json.c
 * all of it for programs, print_value.c types and values. */
#ifndef FUSEFS_CMD_INFO_INFO_INT_H
#define FUSEFS_CMD_INFO_INFO_INT_H

#include "base/core/buf.h"
#include "fusefs/app/fusefs.h"

#define INFO_LABEL 10 /* columns of the labels of a summary */

/* info_report - append the report that setup's cfg selects, text or JSON. Fails for a directory
 * that cannot be listed, and for a variable that does not exist. */
int info_report(struct buf *out, const struct app *setup, struct view *v,
		struct err *e) NZ_MUST_USE;

/* info_label - append a label, and blanks up to the column of its value. */
void info_label(struct buf *out, const char *word);
/* info_count - append "1 variable", "3 variables". */
void info_count(struct buf *out, uint64_t n, const char *one, const char *many);
/* info_plan - the plan of a view for the chunks of an array; NULL: it has no plans. */
const struct plan *info_plan(struct view *v, uint32_t array);
/* info_zarr_version - the Zarr format whose codec names are shown. */
int info_zarr_version(const struct cfg *cfg, const struct view *v);
/* info_path - append the path of a group or an array, for a terminal. */
void info_path(struct buf *out, const struct dataset *ds, uint32_t ordinal,
	       void (*fn)(const struct dataset *, uint32_t, struct buf *));

/* ---- summary.c ---- */

/* info_tally - number of variables for each kind of delivery. */
struct info_tally {
	uint32_t pass, decode, encode, strings, lists, errors, omitted;
	bool known; /* the view has plans */
};
void info_tally_of(struct view *v, struct info_tally *ret);
/* info_summary - append about ten lines. */
void info_summary(struct buf *out, const struct app *setup, struct view *v);
/* info_filter_name - name of a value of -o filter=. */
const char *info_filter_name(enum cfg_filter filter);

/* ---- header.c ---- */

/* info_header - append the header of a dataset as ncdump -h prints it. name: without its ending. */
void info_header(struct buf *out, struct view *v, const char *name);
/* info_header_array - append the lines of one variable. */
void info_header_array(struct buf *out, struct view *v, uint32_t ordinal, unsigned depth);

/* ---- details.c ---- */

/* info_details - append type, chunks, filters, fill value and delivery of a variable. */
void info_details(struct buf *out, struct view *v, uint32_t ordinal, int version);
/* info_layout_name - "chunked", "contiguous", ... */
const char *info_layout_name(enum ds_layout layout);

/* ---- json.c ---- */

/* info_json - append one document. only: the requested variable, or DS_NONE. */
void info_json(struct buf *out, const struct app *setup, struct view *v, uint32_t only);

/* ---- folder.c ---- */

/* info_folder - append the datasets of a mirrored directory, text or JSON. */
int info_folder(struct buf *out, const struct cfg *cfg, struct view *v, struct err *e) NZ_MUST_USE;

/* ---- print_value.c ---- */

enum info_style {
	INFO_TEXT, /* for people: long strings are truncated */
	INFO_JSON, /* a JSON value: JSON's numbers, everything else as a string */
	INFO_CDL,  /* as ncdump writes attributes: 1b, 2.5f, "text" */
};

/* info_type - append a type's name: "int16", "float64 big-endian", "compound {a: int32}". */
void info_type(struct buf *out, const struct dtype *t);
/* info_cdl_type - append its name in CDL: "short", "double", "int(*)". */
void info_cdl_type(struct buf *out, const struct dtype *t);
/* info_cdl_name - append a name with a backslash before characters that are special in CDL. */
void info_cdl_name(struct buf *out, const char *name);

/* info_fill - append the value that absent elements of an array have; INFO_TEXT or INFO_JSON. */
void info_fill(struct buf *out, const struct ds_array *a, enum info_style style);

/* info_fill_kind - origin of an array's fill value. */
enum info_fill_kind {
	INFO_FILL_NONE,    /* none stated: the format's own applies */
	INFO_FILL_NETCDF,  /* stated, and netCDF's default: netCDF-C writes it by itself */
	INFO_FILL_FILE,    /* stated, and another value */
};
enum info_fill_kind info_fill_kind(const struct ds_array *a);

/* info_attr_value - append the values of an attribute, with ", " between them; INFO_JSON: one
 * value, or an array. */
void info_attr_value(struct buf *out, const struct ds_attr *attr, enum info_style style);

#endif
