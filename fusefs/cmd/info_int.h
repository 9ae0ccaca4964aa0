/* info_int.h - shared by the parts of `nczarrfs info`. */
#ifndef FUSEFS_CMD_INFO_INT_H
#define FUSEFS_CMD_INFO_INT_H

#include "base/core/buf.h"
#include "fusefs/app/fusefs.h"

/* info_report - append what setup's cfg asks for, text or JSON. Fails for a directory that cannot
 * be listed. */
int info_report(struct buf *out, const struct app *setup, struct view *v,
		struct err *e) NZ_MUST_USE;

/* info_type - append a type's name: "int16", "float64 big-endian", "compound {a: int32}". */
void info_type(struct buf *out, const struct dtype *t);

/* info_fill - append what absent elements of an array read as; json: as a JSON value (numbers
 * that JSON has, everything else as text). */
void info_fill(struct buf *out, const struct ds_array *a, bool json);

#endif
