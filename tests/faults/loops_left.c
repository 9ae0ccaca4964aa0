/* SPDX-License-Identifier: BSD-3-Clause */
/* loops_left.c - counts what is there: memory that inject.c tracks, descriptors, threads,
 * children. */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/inject.h"
#include "tests/faults/loops_left.h"

uint32_t count_fds(void)
{
	uint32_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
	return n;
}

static size_t slurp(const char *path, char *out, size_t cap)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t n = fd < 0 ? 0 : syscall(SYS_read, fd, out, cap - 1);

	if (fd >= 0)
		(void)close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

uint32_t count_threads(void)
{
	char text[4096], *p;

	(void)slurp("/proc/self/status", text, sizeof(text));
	p = strstr(text, "Threads:");
	return p ? (uint32_t)strtoul(p + 8, NULL, 10) : 0;
}

uint32_t count_children(void)
{
	char path[64], text[4096];
	uint32_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%ld/children", syscall(SYS_getpid));
	(void)slurp(path, text, sizeof(text));
	for (const char *p = text; *p; p++)
		n += *p == ' ';
	return n;
}

struct left look(void)
{
	return (struct left){inject_live_count(), count_fds(), count_threads(),
			     count_children()};
}

bool more_left(const struct left *a, const struct left *b)
{
	return a->memory > b->memory || a->fds > b->fds || a->threads > b->threads ||
	       a->children > b->children;
}

/* look_until - threads that were joined may be seen for a moment. */
struct left look_until(const struct left *base)
{
	struct left now = look();

	for (int i = 0; i < 200 && more_left(&now, base); i++) {
		const struct timespec ms = {.tv_nsec = 1000000};

		if (i > 20 && now.threads <= base->threads && now.children <= base->children)
			break;
		(void)nanosleep(&ms, NULL);
		now = look();
	}
	return now;
}

void say_leaks(void)
{
	const struct inject_live *l;
	size_t at = 0, shown = 0;

	while ((l = inject_live_next(&at)) && shown++ < 4) {
		printf(" leaked %zu bytes of", l->size);
		for (uint32_t i = 0; i < l->depth; i++) {
			Dl_info info;

			if (l->stack[i] < 0x10000000 || !dladdr((void *)l->stack[i], &info))
				printf(" %" PRIxPTR, l->stack[i]);
			else
				printf(" %s", strrchr(info.dli_fname, '/') + 1);
		}
		printf("\n");
	}
}

