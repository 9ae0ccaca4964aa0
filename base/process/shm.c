/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.c - shared memory without a name. */
#include "base/process/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

/* process_shm_map - not inherited by other children. */
static uint8_t *process_shm_map(int fd, uint64_t size)
{
	void *p = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, (size_t)size, MADV_DONTFORK); /* fails only if it is unknown */
	return p;
}

int shm_new(const char *name, uint64_t size, struct shm *ret, struct err *e)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING), errnum;

	*ret = (struct shm){.fd = -1};
	if (fd < 0)
		return err_sys(e, errno, "cannot allocate memory shared with a child process");
	if (ftruncate(fd, (off_t)size) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
		ret->at = process_shm_map(fd, size);
	errnum = errno;
	if (!ret->at) {
		(void)close(fd);
		return err_sys(e, errnum, "cannot allocate memory shared with a child process");
	}
	ret->fd = fd;
	ret->size = size;
	return 0;
}

int shm_grow(struct shm *r, uint64_t size, struct err *e)
{
	uint64_t to = r->size;
	uint8_t *at;

	if (size <= r->size)
		return 0;
	if (size > INT64_MAX / 4 || size > SIZE_MAX / 4)
		return err_set(e, -ERANGE, "cannot share %llu bytes of memory: too large",
			       (unsigned long long)size);
	while (to < size)
		to *= 2;
	if (ftruncate(r->fd, (off_t)to) < 0)
		return err_sys(e, errno, "cannot allocate memory shared with a child process");
	at = process_shm_map(r->fd, to);
	if (!at)
		return err_nomem(e);
	(void)munmap(r->at, (size_t)r->size);
	r->at = at;
	r->size = to;
	return 0;
}

void shm_keep(struct shm *r, uint64_t size)
{
	if (r->at && r->size > size)
		(void)madvise(r->at + size, (size_t)(r->size - size), MADV_REMOVE);
}

void shm_release(struct shm *r)
{
	if (!r->at)
		return;
	(void)munmap(r->at, (size_t)r->size);
	(void)close(r->fd);
	*r = (struct shm){.fd = -1};
}

bool shm_map(struct shm *r, uint64_t size)
{
	void *p;

	if (r->at && size <= r->size)
		return true;
	if (r->at)
		(void)munmap(r->at, (size_t)r->size);
	r->at = NULL;
	p = size > SIZE_MAX / 4
		    ? MAP_FAILED
		    : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (p == MAP_FAILED)
		return false;
	r->at = p;
	r->size = size;
	return true;
}
