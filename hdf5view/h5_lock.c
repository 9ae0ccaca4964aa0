/* h5_lock.c - the gate to libhdf5.
 *
 * The library may or may not have been built for threads; either way it works under one lock, so
 * one lock of ours costs nothing and makes both builds safe. Error stacks belong to threads,
 * hence printing is turned off by every thread that comes in. */
#include "hdf5view/src_int.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void)
{
	/* Its exit handler would run while other threads of ours may still be inside. */
	(void)H5dont_atexit();
	(void)H5open();
}

void h5_enter(void)
{
	(void)pthread_mutex_lock(&gate);
	(void)pthread_once(&once, start);
	(void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

void h5_leave(void)
{
	(void)H5Eclear2(H5E_DEFAULT);
	(void)pthread_mutex_unlock(&gate);
}

struct reason {
	char *text;
	size_t cap;
};

static herr_t first_text(unsigned n, const H5E_error2_t *d, void *arg)
{
	struct reason *r = arg;

	(void)n;
	if (d->desc && d->desc[0] && !r->text[0])
		(void)snprintf(r->text, r->cap, "%s", d->desc);
	return 0;
}

void h5_reason(char *text, size_t cap)
{
	struct reason r = {.text = text, .cap = cap};

	text[0] = '\0';
	(void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_text, &r);
}

int h5_error(struct err *e, int code, const char *what)
{
	char text[200];

	h5_reason(text, sizeof(text));
	if (!text[0])
		return err_set(e, code, "%s", what);
	return err_set(e, code, "%s: %s", what, text);
}
