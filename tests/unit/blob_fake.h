/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_fake.h - a file as a remote blob, for tests: counts what is asked for, fails and changes
 * when it is told to. */
#ifndef TESTS_UNIT_BLOB_FAKE_H
#define TESTS_UNIT_BLOB_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/os/cancel.h"
#include "translate/contract/source.h"

#define FAKE_BLOCK ((uint64_t)64 << 10) /* as a cache would fetch */
#define FAKE_BLOCKS 65536

struct blob_fake {
	struct blob base;
	int fd;
	_Atomic unsigned reads, checks, closed;
	_Atomic int fail_at; /* the how manyth read fails from now on; 0: none */
	_Atomic int fail_rc;
	_Atomic bool changed; /* it is another version by now */
	_Atomic bool hang;    /* until it is told to stop */
	pthread_mutex_t lock; /* of what follows */
	unsigned requests;    /* that somebody waited for: blocks that nobody wanted before */
	unsigned wanted;      /* requests that were made early */
	uint64_t bytes;       /* of all requests */
	bool have[FAKE_BLOCKS];
};

static inline struct blob_fake *fake_of(struct blob *b)
{
	return CONTAINER_OF(b, struct blob_fake, base);
}

/* fake_fetch - neighbours that are missing come in one request. */
static inline void fake_fetch(struct blob_fake *f, uint64_t off, uint64_t len, unsigned *count)
{
	bool run = false;

	(void)pthread_mutex_lock(&f->lock);
	for (uint64_t i = off / FAKE_BLOCK; len && i <= (off + len - 1) / FAKE_BLOCK; i++) {
		bool missing = i < FAKE_BLOCKS && !f->have[i];

		*count += missing && !run;
		run = missing;
		if (missing) {
			f->bytes += FAKE_BLOCK;
			f->have[i] = true;
		}
	}
	(void)pthread_mutex_unlock(&f->lock);
}

static inline int fake_read(struct blob *b, uint64_t off, uint8_t *out, size_t len,
			    struct err *e)
{
	struct blob_fake *f = fake_of(b);
	const struct timespec some = {0, 5000000};
	unsigned nth = atomic_fetch_add(&f->reads, 1) + 1;

	while (atomic_load(&f->hang)) {
		if (cancel_requested())
			return err_set(e, -EINTR, "given up");
		(void)nanosleep(&some, NULL);
	}
	if (atomic_load(&f->fail_at) && nth >= (unsigned)atomic_load(&f->fail_at))
		return err_set(e, atomic_load(&f->fail_rc), "the fake network failed");
	if (atomic_load(&f->changed))
		return err_set(e, -ESTALE, "the fake file was changed");
	fake_fetch(f, off, len, &f->requests);
	return io_pread(f->fd, out, len, off, e);
}

static inline void fake_want(struct blob *b, const struct blob_part *p, size_t n)
{
	struct blob_fake *f = fake_of(b);

	for (size_t i = 0; i < n; i++) {
		if (p[i].off > b->size || p[i].len > b->size - p[i].off)
			abort();
		fake_fetch(f, p[i].off, p[i].len, &f->wanted);
	}
}

static inline int fake_check(struct blob *b, bool far, struct err *e)
{
	struct blob_fake *f = fake_of(b);

	atomic_fetch_add(&f->checks, 1);
	if (far && atomic_load(&f->changed))
		return err_set(e, -ESTALE, "the fake file was changed");
	return 0;
}

static inline void fake_close(struct blob *b)
{
	atomic_fetch_add(&fake_of(b)->closed, 1);
}

/* fake_open - NULL when path is not there. fake_free it; sources only count that they close it. */
static inline struct blob_fake *fake_open(const char *path)
{
	static const struct blob_ops ops = {
		.close = fake_close, .read = fake_read, .want = fake_want, .check = fake_check};
	struct blob_fake *f = alloc_array(1, sizeof(*f));
	struct stat st;

	if (!f)
		abort();
	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0 || fstat(f->fd, &st) < 0) {
		free(f);
		return NULL;
	}
	f->base = (struct blob){.ops = &ops, .fd = -1, .size = (uint64_t)st.st_size};
	atomic_init(&f->fail_rc, -EIO);
	(void)pthread_mutex_init(&f->lock, NULL);
	return f;
}

static inline void fake_free(struct blob_fake *f)
{
	(void)close(f->fd);
	(void)pthread_mutex_destroy(&f->lock);
	free(f);
}

/* fake_at - as remote_at gives it. */
static inline struct source_at fake_at(struct blob_fake *f, const char *name)
{
	return (struct source_at){
		.path = name,
		.fd = -1,
		.st = {.st_mode = S_IFREG | 0444, .st_size = (off_t)f->base.size},
		.file = &f->base};
}

#endif
