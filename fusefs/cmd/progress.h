/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.h - the progress of a long command, as one line on a terminal, and nothing in a pipe or
 * a file; and whether output may be coloured. */
#ifndef FUSEFS_CMD_PROGRESS_H
#define FUSEFS_CMD_PROGRESS_H

#include "base/core/buf.h"

/* progress - of one command; for one thread. */
struct progress {
	bool on;            /* standard error is a terminal that supports redrawing */
	int64_t began;      /* ns, of clock_ns */
	int64_t shown;      /* time of the last drawing */
	double first;       /* share that was done before this run; < 0: unknown */
};

/* progress_begin - start; draws nothing. */
void progress_begin(struct progress *p);
/* progress_show - draw the line, at most ten times a second.
 * share  part of the work that is done, 0 to 1
 * things, what  "123 chunks"
 * bytes  processed in this run */
void progress_show(struct progress *p, double share, uint64_t things, const char *what,
		   uint64_t bytes);
/* progress_end - erase the line. Also if it was never drawn. */
void progress_end(struct progress *p);

/* progress_line - append the text of the line, at most `width` columns.
 * share, first  done now, and at the start of this run
 * seconds  since then */
void progress_line(struct buf *out, double share, double first, double seconds,
		   uint64_t things, const char *what, uint64_t bytes, unsigned width);

/* progress_bytes - append "12.3 MiB". */
void progress_bytes(struct buf *out, uint64_t n);

/* progress_colours - true if output on a descriptor may be coloured: it is a terminal, TERM is not
 * "dumb", and NO_COLOR is unset or empty (no-color.org). */
bool progress_colours(int fd);

#endif
