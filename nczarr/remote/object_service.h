/* SPDX-License-Identifier: BSD-3-Clause */
/* object_service.h - what a remote service does with objects, nothing remembered: a bucket, a web
 * server.
 *
 * Keys as in translate/contract/store.h, relative to the root that was opened; "" is an object only
 * where the address names one. What is remembered, shared and fetched early is store_remote's
 * (nczarr/remote/services.h). Any thread. */
#ifndef NCZARR_REMOTE_OBJECT_SERVICE_H
#define NCZARR_REMOTE_OBJECT_SERVICE_H

#include "base/core/buf.h"
#include "base/core/err.h"

#define OBJECT_ETAG_MAX 256

/* object_info - one version of an object. */
struct object_info {
	uint64_t size;                /* UINT64_MAX: the service did not say */
	char etag[OBJECT_ETAG_MAX];   /* as the service gives it, with quotes; "": it has none */
	bool weak;                    /* it is not good for ranges */
	int64_t changed;              /* Last-Modified, ns since 1970; 0: not said */
	uint64_t version;             /* of all these: what store_stat.version is to be; never 0 */
};

/* object_version - the version of an info: of etag, or else of size and changed. */
uint64_t object_version(const struct object_info *o);

/* object_range - what is to be fetched. */
struct object_range {
	const char *key;      /* borrowed for the call */
	enum {
		OBJECT_HEAD,  /* nothing but what it is */
		OBJECT_ALL,   /* all of it, if that is at most `len` bytes; else -ERANGE and the
			       * info */
		OBJECT_PART,  /* bytes [off, off + len), fewer at its end; off at or behind its end:
		               * no bytes, and the info */
		OBJECT_TAIL,  /* the last len bytes, or all of it */
	} what;
	uint64_t off, len;
	const char *etag;     /* only of this version: else -ESTALE; NULL */
	const char *unless;   /* nothing when it still is this version: -EALREADY; NULL */
	bool background;      /* others go first */
};

/* object_got - the answer. */
struct object_got {
	int rc; /* 0; -ENOENT proven absence; -ESTALE; -ERANGE; -EALREADY; -EACCES;
	                       * -EIO; -EKEYEXPIRED fetch again: that looks for other keys;
	                       * -ETIMEDOUT; -ECANCELED; -EBADMSG the answer contradicts itself */
	struct err e;
	struct object_info info; /* with rc 0, and -ERANGE of ALL */
	uint64_t off;         /* of the first byte that came */
	uint8_t *data;        /* len bytes from malloc; the receiver's; NULL: none */
	size_t len;
};

typedef void object_done(void *arg, struct object_got *got);

/* object_emit - one name of a listing: below the prefix, without it. is_dir: others lie below it.
 * info: NULL for those. Returns false to stop. */
typedef bool object_emit(void *arg, const char *name, bool is_dir, const struct object_info *info);

/* put_condition - a condition of a put or removal. */
struct put_condition {
	bool absent;          /* only where nothing is: else -EEXIST */
	const char *etag;     /* only where it is this version: else -ESTALE; NULL */
};

struct object_service;

struct object_service_ops {
	const char *name;     /* "S3" */
	/* close - fetches may still be under way: they keep what they need of o, but the net has
	 * to outlive them. */
	void (*close)(struct object_service *o);
	/* fetch - done is called once, on any thread but the caller's, and must not wait. Returns
	 * 0; on failure done is not called. */
	int (*fetch)(struct object_service *o, const struct object_range *r, object_done *done,
		     void *arg, struct err *e);
	/* list - one level below a key ("" the root), or all that is below it (deep: names have
	 * '/'). Waits. NULL: the service cannot. Nothing below it: emits nothing, 0. */
	int (*list)(struct object_service *o, const char *key, bool deep, object_emit *emit,
		    void *arg, struct err *e);
	/* put - a whole object, from memory (data) or, data NULL, from fd at off. cond may be NULL.
	 * NULL: read only. -EOPNOTSUPP: a condition that the service does not know; -EROFS. */
	int (*put)(struct object_service *o, const char *key, const void *data, int fd,
		   uint64_t off, uint64_t len, const struct put_condition *cond,
		   struct object_info *ret, struct err *e);
	/* remove - what is not there is no error. */
	int (*remove)(struct object_service *o, const char *key, struct err *e);
};

struct object_service {
	const struct object_service_ops *ops;
	const char *name;     /* of the root for messages, without secrets; the implementation's */
};

static inline void objects_close(struct object_service *o)
{
	if (o)
		o->ops->close(o);
}

/* object_get - fetch, and wait (base/os/cancel.h: -EINTR, and what still comes is dropped); again
 * when keys have ended. ret->data is the caller's. Returns ret->rc. Never where a done function
 * runs. */
int object_get(struct object_service *o, const struct object_range *r, struct object_got *ret,
	       struct err *e) NZ_MUST_USE;

#endif
