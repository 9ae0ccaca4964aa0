/* SPDX-License-Identifier: BSD-3-Clause */
/* inject.c - see inject.h. Each function of libc here is the one that programs and libraries get;
 * it counts, fails, or calls the next one of its name. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/faults/inject.h"

#include "tests/faults/inject_int.h"

struct inject *inject;
static __thread bool inside __attribute__((tls_model("initial-exec")));

uint32_t inject_callers(uintptr_t *out, uint32_t cap)
{
	void *frames[INJECT_DEPTH + 4];
	int n = backtrace(frames, INJECT_DEPTH + 4);
	uint32_t k = 0;

	for (int i = 2; i < n && k < cap; i++)
		out[k++] = (uintptr_t)frames[i];
	return k;
}

static uint64_t hash_of(const uintptr_t *p, uint32_t n)
{
	uint64_t h = 1469598103934665603u;

	for (uint32_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h ^ h >> 29;
}

static void remember(uint32_t n)
{
	uintptr_t frames[14];
	uint32_t depth = inject_callers(frames, 14);

	if (n <= INJECT_CALLS)
		inject->hashes[n - 1] = hash_of(frames, depth);
}

/* hit - whether this call fails; errno is set. */
bool hit(enum inject_class class)
{
	struct inject *x = inject;
	uint32_t n;
	int keep = errno;

	if (!x || !x->armed || !(x->mask & class) || inside)
		return false;
	if (x->who != IN_ANY &&
	    (x->who == IN_SERVER) != ((uint32_t)syscall(SYS_getpid) == x->self))
		return false;
	inside = true;
	n = ++x->count;
	if (x->record)
		remember(n);
	if (!x->at || n < x->at || n - x->at > x->more) {
		errno = keep;
		inside = false;
		return false;
	}
	if (x->fired++ == 0) {
		x->hit_class = class;
		x->hit_pid = (uint32_t)syscall(SYS_getpid);
		x->depth = inject_callers(x->stack, INJECT_DEPTH);
	}
	errno = (int)x->code;
	inside = false;
	return true;
}

/* place - where the code of a library is. */
static struct place {
	const char *name;
	uintptr_t from, to;
} hdf5 = {.name = "libhdf5"}, curl = {.name = "libcurl"};

static int find_it(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct place *x = arg;

	(void)size;
	if (!strstr(info->dlpi_name, x->name) || strstr(info->dlpi_name, "_hl"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		x->from = info->dlpi_addr + p->p_vaddr;
		x->to = x->from + p->p_memsz;
	}
	return 0;
}

static bool inside_of(const struct place *x, const void *who)
{
	return (uintptr_t)who >= x->from && (uintptr_t)who < x->to;
}

bool from_curl(const void *who)
{
	return inside_of(&curl, who);
}

/* memory_of - which class an allocation is that `who` asks for. */
__attribute__((unused)) static enum inject_class memory_of(const void *who)
{
	if (inside_of(&hdf5, who) && inject && (uint32_t)syscall(SYS_getpid) == inject->self)
		return ON_HDF5;
	return ON_ALLOC;
}

__attribute__((constructor)) static void start(void)
{
	void *frames[4];
	const char *file = getenv("INJECT_STATE");
	int fd;

	(void)dl_iterate_phdr(find_it, &hdf5);
	(void)dl_iterate_phdr(find_it, &curl);
	(void)backtrace(frames, 4); /* what it loads at its first use is loaded now */
	if (!file || inject)
		return;
	fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC, 0);
	if (fd >= 0) {
		void *p = (void *)syscall(SYS_mmap, NULL, sizeof(*inject),
					  PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);

		(void)close(fd);
		if (p != MAP_FAILED)
			inject = p;
	}
}

/* ---- memory ---- */

#ifndef __SANITIZE_ADDRESS__

#define EPOCHS_CAP ((size_t)1 << 17)

static struct inject_live *live;
static size_t n_live;
static bool track, deep;
static atomic_flag live_lock = ATOMIC_FLAG_INIT;
static uint32_t track_pid;

static size_t place_of(const void *p)
{
	return ((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 47;
}

static void lock_live(void)
{
	while (atomic_flag_test_and_set_explicit(&live_lock, memory_order_acquire))
		(void)syscall(SYS_sched_yield);
}

static void unlock_live(void)
{
	atomic_flag_clear_explicit(&live_lock, memory_order_release);
}

static bool tracks(void)
{
	return track && (uint32_t)syscall(SYS_getpid) == track_pid;
}

static void live_add(void *p, size_t size)
{
	uintptr_t frames[12];
	uint32_t depth = 0;
	size_t i;

	if (!p || !track || inside || !tracks())
		return;
	if (deep) {
		inside = true;
		depth = inject_callers(frames, 12);
		inside = false;
	}
	lock_live();
	for (i = place_of(p); live[i].p && n_live < EPOCHS_CAP - 1; i = (i + 1) % EPOCHS_CAP)
		;
	if (!live[i].p) {
		live[i].p = p;
		live[i].size = size;
		live[i].depth = depth;
		memcpy(live[i].stack, frames, depth * sizeof(*frames));
		n_live++;
	}
	unlock_live();
}

static void live_drop(const void *p)
{
	size_t i, hole, k;

	if (!p || !track || !tracks())
		return;
	lock_live();
	for (i = place_of(p); live[i].p && live[i].p != p; i = (i + 1) % EPOCHS_CAP)
		;
	if (live[i].p) {
		n_live--;
		for (hole = i;;) { /* those behind it move up */
			live[hole].p = NULL;
			for (k = (hole + 1) % EPOCHS_CAP; live[k].p; k = (k + 1) % EPOCHS_CAP) {
				size_t home = place_of(live[k].p);

				if ((k - home) % EPOCHS_CAP >= (k - hole) % EPOCHS_CAP)
					break;
			}
			if (!live[k].p)
				break;
			live[hole] = live[k];
			hole = k;
		}
	}
	unlock_live();
}

void inject_track(bool on, bool with_callers)
{
	if (!live) {
		live = (void *)syscall(SYS_mmap, NULL, EPOCHS_CAP * sizeof(*live),
				       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				       0L);
		if (live == MAP_FAILED)
			_exit(99);
	}
	lock_live();
	if (on) {
		for (size_t i = 0; n_live && i < EPOCHS_CAP; i++)
			live[i].p = NULL;
		n_live = 0;
	}
	track = on;
	deep = with_callers;
	track_pid = (uint32_t)syscall(SYS_getpid);
	unlock_live();
}

const struct inject_live *inject_live_next(size_t *at)
{
	while (*at < EPOCHS_CAP) {
		const struct inject_live *x = &live[(*at)++];

		if (x->p)
			return x;
	}
	return NULL;
}

size_t inject_live_count(void)
{
	return n_live;
}

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

API void *malloc(size_t n)
{
	void *p;

	FAIL(memory_of(__builtin_return_address(0)), NULL);
	p = __libc_malloc(n);
	live_add(p, n);
	return p;
}

API void *calloc(size_t n, size_t size)
{
	void *p;

	FAIL(memory_of(__builtin_return_address(0)), NULL);
	p = __libc_calloc(n, size);
	live_add(p, n * size);
	return p;
}

API void *realloc(void *old, size_t n)
{
	void *p;

	FAIL(memory_of(__builtin_return_address(0)), NULL);
	live_drop(old); /* before it: another thread may get its place */
	p = __libc_realloc(old, n);
	if (p)
		live_add(p, n);
	else if (n)
		live_add(old, 1);
	return p;
}

API void *memalign(size_t align, size_t n);
API void *memalign(size_t align, size_t n)
{
	void *p;

	FAIL(memory_of(__builtin_return_address(0)), NULL);
	p = __libc_memalign(align, n);
	live_add(p, n);
	return p;
}

API void *aligned_alloc(size_t align, size_t n)
{
	return memalign(align, n);
}

API int posix_memalign(void **ret, size_t align, size_t n)
{
	int keep = errno;
	void *p = memalign(align, n);

	errno = keep;
	if (!p)
		return ENOMEM;
	*ret = p;
	return 0;
}

static char *copy_of(const char *s, size_t n, const void *who)
{
	char *p;

	FAIL(memory_of(who), NULL);
	p = __libc_malloc(n + 1);
	live_add(p, n + 1);
	if (p) {
		memcpy(p, s, n);
		p[n] = '\0';
	}
	return p;
}

API char *strdup(const char *s)
{
	return copy_of(s, strlen(s), __builtin_return_address(0));
}

API char *strndup(const char *s, size_t n)
{
	return copy_of(s, strnlen(s, n), __builtin_return_address(0));
}

API void free(void *p)
{
	live_drop(p);
	__libc_free(p);
}

#else /* the sanitizer has the allocator: -Wl,--wrap, of the program's own objects */

void inject_track(bool on, bool with_callers)
{
	(void)on;
	(void)with_callers;
}

const struct inject_live *inject_live_next(size_t *at)
{
	(void)at;
	return NULL;
}

size_t inject_live_count(void)
{
	return 0;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);

void *__wrap_malloc(size_t n)
{
	return hit(ON_ALLOC) ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return hit(ON_ALLOC) ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return hit(ON_ALLOC) ? NULL : __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
	return hit(ON_ALLOC) ? NULL : __real_aligned_alloc(align, n);
}

char *__wrap_strdup(const char *s)
{
	return hit(ON_ALLOC) ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
	return hit(ON_ALLOC) ? NULL : __real_strndup(s, n);
}

#endif
