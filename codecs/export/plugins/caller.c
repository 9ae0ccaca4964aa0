/* SPDX-License-Identifier: BSD-3-Clause */
/* caller.c - functions of the calling library, by the dynamic linker. */
#include "codecs/export/plugins/caller_int.h"

#include <dlfcn.h>
#include <string.h>

bool caller_open(const void *address, struct caller *ret)
{
	Dl_info at;

	*ret = (struct caller){0};
	if (!dladdr(address, &at) || !at.dli_fbase)
		return false;
	ret->base = at.dli_fbase;
	/* NULL for the main program: then all libraries are searched */
	ret->handle = at.dli_fname ? dlopen(at.dli_fname, RTLD_NOLOAD | RTLD_LAZY) : NULL;
	return true;
}

void caller_close(struct caller *c)
{
	if (c->handle)
		(void)dlclose(c->handle); /* only our reference to it */
	c->handle = NULL;
}

bool caller_find(const struct caller *c, const char *name, void *ret)
{
	void *p = dlsym(c->handle ? c->handle : RTLD_DEFAULT, name);
	Dl_info at;

	if (!p || !dladdr(p, &at) || at.dli_fbase != c->base)
		return false;
	memcpy(ret, &p, sizeof(p));
	return true;
}
