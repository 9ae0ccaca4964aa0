/* serve_page.c - the page itself: files that are part of the program. */
#include "fusefs/serve_int.h"

#include <errno.h>
#include <string.h>

int serve_page(struct ask *a, struct err *e)
{
	(void)a;
	return err_set(e, -ENOENT, "there is nothing of this name");
}
