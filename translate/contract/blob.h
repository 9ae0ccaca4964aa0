/* SPDX-License-Identifier: BSD-3-Clause */
/* blob.h - the bytes of one file: behind a descriptor, or in a remote store.
 *
 * A blob is one version of the file: reading fails after the file was replaced. All functions may
 * be called from any thread, concurrently. */
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

/* blob_of_fd - a blob of the file that is open as fd. The caller owns fd, which outlives the
 * blob. */
static inline struct blob blob_of_fd(int fd, uint64_t size)
{
	return (struct blob){.fd = fd, .size = size};
}

/* blob_close - takes NULL. Leaves the descriptor of a blob_of_fd open. */
static inline void blob_close(struct blob *b)
{
	if (b && b->ops)
		b->ops->close(b);
}

/* blob_read - read exactly bytes [off, off+len). Returns 0; -EIO if the file ends before; -ESTALE
 * if it is not the file that was opened. */
static inline int blob_read(struct blob *b, uint64_t off, void *out, size_t len, struct err *e)
{
	return b->fd >= 0 ? io_pread(b->fd, out, len, off, e) : b->ops->read(b, off, out, len, e);
}

/* blob_want - a hint that these parts will be read soon, in this order. Does nothing where reading
 * costs little. */
static inline void blob_want(struct blob *b, const struct blob_part *parts, size_t n)
{
	if (b->ops && b->ops->want)
		b->ops->want(b, parts, n);
}

/* blob_forget - cached bytes of the blob turned out to be damaged: drop them (store_forget). */
static inline void blob_forget(struct blob *b)
{
	if (b->ops && b->ops->forget)
		b->ops->forget(b);
}

/* blob_check - return 0 while the file is the one that was opened, as far as is known. remote:
 * query the service, unless that was done recently. -ESTALE. For blobs of a descriptor the owner
 * checks: 0. */
static inline int blob_check(struct blob *b, bool remote, struct err *e)
{
	return b->ops && b->ops->check ? b->ops->check(b, remote, e) : 0;
}

struct store;

/* blob_of_store - the present version of a store's object as a blob. The store is borrowed and
 * outlives the blob. Returns 0 with *ret new; -ENOENT; -EISDIR. */
int blob_of_store(struct store *s, const char *key, struct blob **ret, struct err *e) NZ_MUST_USE;
/* blob_take_store - close that store with the blob, which is from blob_of_store(). */
void blob_take_store(struct blob *b);

#endif
