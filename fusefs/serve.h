/* serve.h - `nczarrfs serve`: the files of a view by HTTP, and a page that shows them.
 * docs/serve.md. */
#ifndef FUSEFS_SERVE_H
#define FUSEFS_SERVE_H

#include "fusefs/fusefs.h"

/* fs_serve_http - serve setup's source until a signal ends it. Prints where; returns the exit
 * status. */
int fs_serve_http(const struct fs_setup *setup);

#endif
