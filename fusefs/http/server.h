/* SPDX-License-Identifier: BSD-3-Clause */
/* server.h - `nczarrfs serve`: the files of a view by HTTP, and a page that shows them.
 * docs/dev/serve.md. */
#ifndef FUSEFS_HTTP_SERVER_H
#define FUSEFS_HTTP_SERVER_H

#include "fusefs/app/fusefs.h"

/* fs_serve_http - serve setup's source until a signal ends it. Prints the address; returns the exit
 * status. */
int fs_serve_http(const struct app *setup);

#endif
