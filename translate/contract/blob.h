/* SPDX-License-Identifier: BSD-3-Clause */
/* blob.h - the bytes of one file, wherever it is: behind a descriptor, or in a remote store.
 *
 * A blob is one version of the file: when the file is another one by now, reading fails. All
 * functions may be called from any thread, concurrently. */
#ifndef TRANSLATE_CONTRACT_BLOB_H
#define TRANSLATE_CONTRACT_BLOB_H

#include "base/os/io.h"

struct blob;

/* blob_part - a range of a blob. */
struct blob_part {
	uint64_t off, len;
};

struct blob_ops {
	void (*close)(struct blob *b);
	int (*read)(struct blob *b, uint64_t off, uint8_t *out, size_t len, struct err *e);
	void (*want)(struct blob *b, const struct blob_part *parts, size_t n);
	int (*check)(struct blob *b, bool remote, struct err *e);
	void (*forget)(struct blob *b);
};

/* blob - embedded first in an implementation; or, of a descriptor, just this (blob_of_fd). */
struct blob {
	const struct blob_ops *ops;  /* NULL: fd is all there is */
	int fd;                      /* -1: read through ops; else borrowed, for pread */
	uint64_t size;               /* bytes of the file when it was opened */
	uint64_t version;            /* of a store's object (store.h); 0: not known */
};

/* blob_of_fd - what is open as fd, which is the caller's and outlives the blob. */
static inline struct blob blob_of_fd(int fd, uint64_t size)
{
	return (struct blob){.fd = fd, .size = size};
}

/* blob_close - takes NULL, and blobs of a descriptor, which it leaves open. */
static inline void blob_close(struct blob *b)
{
	if (b && b->ops)
		b->ops->close(b);
}

/* blob_read - exactly bytes [off, off+len). Returns 0; -EIO when the file ends before; -ESTALE it
 * is not the file that was opened. */
static inline int blob_read(struct blob *b, uint64_t off, void *out, size_t len, struct err *e)
{
	return b->fd >= 0 ? io_pread(b->fd, out, len, off, e) : b->ops->read(b, off, out, len, e);
}

/* blob_want - a hint: these parts will be read soon, in this order. Costs nothing where reading
 * costs little. */
static inline void blob_want(struct blob *b, const struct blob_part *parts, size_t n)
{
	if (b->ops && b->ops->want)
		b->ops->want(b, parts, n);
}

/* blob_forget - what is remembered of its bytes turned out to be damaged (store_forget). */
static inline void blob_forget(struct blob *b)
{
	if (b->ops && b->ops->forget)
		b->ops->forget(b);
}

/* blob_check - 0 while the file is the one that was opened, as far as that is known; far: ask, if
 * that was not done lately. -ESTALE. For blobs of a descriptor the owner of it looks: 0. */
static inline int blob_check(struct blob *b, bool remote, struct err *e)
{
	return b->ops && b->ops->check ? b->ops->check(b, remote, e) : 0;
}

struct store;

/* blob_of_store - an object of a store as a blob: the version that it has now. The store is
 * borrowed and outlives the blob. Returns 0 with *ret new; -ENOENT; -EISDIR. */
int blob_of_store(struct store *s, const char *key, struct blob **ret, struct err *e) NZ_MUST_USE;

#endif
