/* SPDX-License-Identifier: BSD-3-Clause */
/* library.c - the gate to libhdf5.
 *
 * The library may or may not have been built for threads. Either way it works under one lock, so
 * one lock here costs nothing and makes both builds safe. Error stacks belong to threads, so every
 * thread that enters turns off their printing. */
#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void library_start(void)
{
	/* The library's exit handler would run while other threads may still be inside it. */
	(void)H5dont_atexit();
	(void)H5open();
}

/* The first transient error since h5_enter; gate. */
static int accident;

/* library_number_in - the number in a file driver's "errno = 5". */
static int library_number_in(const char *text)
{
	const char *p = text ? strstr(text, "errno = ") : NULL;
	int v = 0;

	for (p = p ? p + 8 : ""; *p >= '0' && *p <= '9' && v < 1000; p++)
		v = 10 * v + (*p - '0');
	return v;
}

/* library_tells - whether an errno is a transient error. EAGAIN is another program's lock. */
static bool library_tells(int code)
{
	return code == -EIO || (err_is_transient(code) && code != -EAGAIN);
}

static herr_t note_one(unsigned n NZ_UNUSED, const H5E_error2_t *d, void *arg NZ_UNUSED)
{
	int code = -library_number_in(d->desc);

	if (d->min_num == H5E_NOSPACE || d->min_num == H5E_CANTALLOC)
		code = -ENOMEM;
	if (!accident && library_tells(code))
		accident = code;
	return 0;
}

/* library_note - the library's handler of errors, for each failed call. If memory is short, the
 * library may also fail to record the error: an empty stack counts as -ENOMEM. */
static herr_t library_note(hid_t stack, void *arg)
{
	const int last = errno; /* 0 when the gate was passed */
	void *some = malloc(256);

	if (!accident && library_tells(-last))
		accident = -last;
	if (H5Eget_num(stack) > 0)
		(void)H5Ewalk2(stack, H5E_WALK_UPWARD, note_one, arg);
	else if (!accident)
		accident = -ENOMEM;
	if (!some && !accident)
		accident = -ENOMEM;
	free(some);
	return 0;
}

void h5_gate_close(void)
{
	(void)pthread_mutex_lock(&gate);
}

void h5_gate_open(void)
{
	(void)pthread_mutex_unlock(&gate);
}

void h5_enter(void)
{
	h5_gate_close();
	(void)pthread_once(&once, library_start);
	accident = 0;
	errno = 0;
	(void)H5Eset_auto2(H5E_DEFAULT, library_note, NULL);
}

int h5_transient_error(struct err *e)
{
	/* a file can request any amount, but a confined process has a limit: report -EIO, because
	 * -ENOMEM would tell callers that the file is not at fault */
	if (accident == -ENOMEM)
		return err_set(e, -EIO,
			       "the HDF5 library could not read it: out of memory, or the file "
			       "is damaged and requests too much memory");
	return accident ? err_sys(e, -accident, "the HDF5 library could not read it") : 0;
}

void h5_leave(void)
{
	(void)H5Eclear2(H5E_DEFAULT);
	h5_gate_open();
}

bool h5_has_files(void)
{
	return H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) > 0;
}

struct reason {
	char *text;
	size_t cap;
};

static herr_t library_first_text(unsigned n NZ_UNUSED, const H5E_error2_t *d, void *arg)
{
	struct reason *r = arg;

	if (d->desc && d->desc[0] && !r->text[0])
		(void)snprintf(r->text, r->cap, "%s", d->desc);
	return 0;
}

void h5_reason(char *text, size_t cap)
{
	struct reason r = {.text = text, .cap = cap};

	text[0] = '\0';
	(void)H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, library_first_text, &r);
}

int h5_error(struct err *e, int code, const char *what)
{
	char text[200];

	resource_errors_note();
	h5_reason(text, sizeof(text));
	if (!text[0])
		return err_set(e, code, "%s", what);
	return err_set(e, code, "%s: %s", what, text);
}
