/* SPDX-License-Identifier: BSD-3-Clause */
/* print.h - the output of a command: text for standard output. */
#ifndef BASE_OBSERVE_PRINT_H
#define BASE_OBSERVE_PRINT_H

#include "base/core/buf.h"

/* print_part - print text to standard output and clear it. Returns false after an error, which is
 * logged. */
bool print_part(struct buf *text);
/* print_text - print text to standard output and release it. Returns the exit status. */
int print_text(struct buf *text);

#endif
