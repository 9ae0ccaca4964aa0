/* SPDX-License-Identifier: BSD-3-Clause */
/* print.c - the output of a command. */
#include "base/observe/print.h"

#include <stdio.h>

#include "base/observe/log.h"

bool print_part(struct buf *text)
{
	bool ok = buf_ok(text) &&
		  (text->len == 0 ||
		   fwrite(text->data, 1, text->len, stdout) == text->len) &&
		  fflush(stdout) == 0;

	buf_clear(text);
	if (!ok)
		log_error("standard output: could not be written");
	return ok;
}

int print_text(struct buf *text)
{
	bool ok = print_part(text);

	buf_release(text);
	return ok ? 0 : 1;
}
