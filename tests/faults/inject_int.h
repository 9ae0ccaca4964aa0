/* SPDX-License-Identifier: BSD-3-Clause */
/* inject_int.h - shared by inject.c and inject_calls.c. */
#ifndef FAULTS_INJECT_INT_H
#define FAULTS_INJECT_INT_H

#include <dlfcn.h>
#include <string.h>

#include "tests/faults/inject.h"

#define API __attribute__((visibility("default"), used))

/* NEXT - the function behind ours; ret and args: its type. Looked up once; a race does no harm. */
#define NEXT(ret, name, ...)                                                                   \
	static ret (*_Atomic next)(__VA_ARGS__);                                               \
	if (!next) {                                                                           \
		void *sym_ = dlsym(RTLD_NEXT, #name);                                          \
		ret (*f_)(__VA_ARGS__);                                                        \
		memcpy(&f_, &sym_, sizeof(sym_));                                              \
		next = f_;                                                                     \
	}

/* hit - whether this call fails; errno is set. */
bool hit(enum inject_class class);
/* from_curl - whether a place in code is libcurl's own. */
bool from_curl(const void *who);

/* short_of - how much of n bytes a call that is short moves. */
static inline size_t short_of(size_t n)
{
	return n > 1 ? n / 2 : n;
}

#define PIECE(class, n)                                                                        \
	do {                                                                                   \
		if (hit(class)) {                                                              \
			if (inject->how != BY_HALF)                                            \
				return -1;                                                     \
			(n) = short_of(n);                                                     \
		}                                                                              \
	} while (0)

#define FAIL(class, value)                                                                     \
	do {                                                                                   \
		if (hit(class) && inject->how == BY_FAILING) /* nothing here can be half */    \
			return value;                                                          \
	} while (0)

#endif
