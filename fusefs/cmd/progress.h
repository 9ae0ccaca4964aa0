/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.h - one line on a terminal that says how far a long command is, and nothing of it in a
 * pipe or a file; and which words may be coloured. */
#ifndef FUSEFS_CMD_PROGRESS_H
#define FUSEFS_CMD_PROGRESS_H

#include "base/core/buf.h"

/* progress - of one command; one thread. */
struct progress {
	bool on;            /* standard error is a terminal that can be written over */
	int64_t began;      /* ns, of clock_ns */
	int64_t shown;      /* when it was last drawn */
	double first;       /* share that was done before this run; < 0: not known yet */
};

/* progress_begin - nothing is drawn yet. */
void progress_begin(struct progress *p);
/* progress_show - draw the line, ten times a second at most.
 * share  how much of all is done, 0 to 1
 * things, what  "123 chunks"
 * bytes  gone through in this run */
void progress_show(struct progress *p, double share, uint64_t things, const char *what,
		   uint64_t bytes);
/* progress_end - the line is gone. Takes one that was never drawn. */
void progress_end(struct progress *p);

/* progress_line - the text of the line, at most `width` columns.
 * share, first  done now, and when this run began
 * seconds  since then */
void progress_line(struct buf *out, double share, double first, double seconds,
		   uint64_t things, const char *what, uint64_t bytes, unsigned width);

/* progress_bytes - append "12.3 MiB". */
void progress_bytes(struct buf *out, uint64_t n);

/* progress_colours - whether words on a descriptor may be coloured: it is a terminal, TERM is not
 * "dumb", and NO_COLOR is not set to something (no-color.org). */
bool progress_colours(int fd);

#endif
