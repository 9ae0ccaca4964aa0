/* SPDX-License-Identifier: BSD-3-Clause */
/* caller_int.h - functions of the calling library.
 *
 * A plugin is linked with neither libhdf5 nor libnetcdf: a program may have another build of them
 * than the one this was compiled with, or several, and may hide their symbols, as h5py does. So the
 * calling library's own functions are used. */
#ifndef CODECS_EXPORT_PLUGINS_CALLER_INT_H
#define CODECS_EXPORT_PLUGINS_CALLER_INT_H

#include "base/core/util.h"

struct caller {
	void *handle;     /* owned */
	const void *base; /* where it is loaded */
};

/* caller_open - the library, or the program, with this return address (of the function that was
 * called from outside: __builtin_return_address(0) there). Returns whether it was found. */
bool caller_open(const void *address, struct caller *ret);
void caller_close(struct caller *c);

/* caller_find - set *ret, which is a pointer to a function, to a function of the caller. Returns
 * whether it has one; a function of that name in another library does not count. */
bool caller_find(const struct caller *c, const char *name, void *ret);

#endif
