/* SPDX-License-Identifier: BSD-3-Clause */
/* object_service.h - the operations of a remote service on objects (a bucket, a web server),
 * without any cache.
 *
 * Keys as in translate/contract/store.h, relative to the root; "" is an object only if the address
 * names one. The store over a service (nczarr/remote/services.h) caches, shares and prefetches.
 * Any thread. */
#ifndef NCZARR_REMOTE_OBJECT_SERVICE_H
#define NCZARR_REMOTE_OBJECT_SERVICE_H

#include "base/core/buf.h"
#include "base/core/err.h"

#define OBJECT_ETAG_MAX 256

/* object_info - one version of an object. */
struct object_info {
	uint64_t size;                /* UINT64_MAX: the service did not state it */
	char etag[OBJECT_ETAG_MAX];   /* as the service sends it, with quotes; "": none */
	bool weak;                    /* the ETag is weak: not usable for ranges */
	int64_t changed;              /* Last-Modified, ns since 1970; 0: not stated */
	uint64_t version;             /* of all these, for store_stat.version; never 0 */
};

/* object_version - the version of an info: a hash of etag, or else of size and changed. */
uint64_t object_version(const struct object_info *o);

/* object_range - the bytes to fetch. */
struct object_range {
	const char *key;      /* borrowed for the call */
	enum {
		OBJECT_HEAD,  /* the info only */
		OBJECT_ALL,   /* all of it if it has at most `len` bytes; else -ERANGE and the
			       * info */
		OBJECT_PART,  /* bytes [off, off + len), fewer at its end; off at or after its end:
			       * no bytes, and the info */
		OBJECT_TAIL,  /* the last len bytes, or all of it */
	} what;
	uint64_t off, len;
	const char *etag;     /* If-Match: -ESTALE if it has another version; NULL */
	const char *unless;   /* If-None-Match: -EALREADY and no data if it still has this version;
			       * NULL */
	bool background;      /* of lower priority */
};

/* object_range_line - the header "Range: bytes=0-99" for the bytes of a part or a tail, or for the
 * first byte of an object; "" for the others. */
void object_range_line(int what, uint64_t off, uint64_t len, bool first_byte, char out[80]);

/* object_got - the answer. */
struct object_got {
	int rc; /* 0; -ENOENT proven absence; -ESTALE; -ERANGE; -EALREADY; -EACCES; -EIO;
		 * -EKEYEXPIRED fetch again with renewed keys; -ETIMEDOUT; -ECANCELED; -EBADMSG the
		 * answer contradicts itself */
	struct err e;
	struct object_info info; /* with rc 0, and -ERANGE of ALL */
	uint64_t off;         /* of the first byte of data */
	uint8_t *data;        /* len bytes from malloc, owned by the receiver; NULL: none */
	size_t len;
};

typedef void object_done(void *arg, struct object_got *got);

/* object_emit - one name of a listing, relative to the prefix. is_dir: a common prefix; info is
 * NULL. Returns false to stop. */
typedef bool object_emit(void *arg, const char *name, bool is_dir, const struct object_info *info);

/* put_condition - a condition of a put or removal. */
struct put_condition {
	bool absent;          /* only if no object exists: else -EEXIST */
	const char *etag;     /* only if it has this version: else -ESTALE; NULL */
};

struct object_service;

struct object_service_ops {
	const char *name;     /* "S3" */
	/* close - fetches may still be in flight: they keep a reference to all they need of o. The
	 * HTTP client must outlive them. */
	void (*close)(struct object_service *o);
	/* fetch - done is called once, on another thread than the caller's, and must not block.
	 * Returns 0; if it fails, done is not called. */
	int (*fetch)(struct object_service *o, const struct object_range *r, object_done *done,
		     void *arg, struct err *e);
	/* list - one level below a key ("" is the root), or all names below it (deep: names
	 * contain '/'). Blocks. NULL: not supported. If no name is below it: emits none and
	 * returns 0. */
	int (*list)(struct object_service *o, const char *key, bool deep, object_emit *emit,
		    void *arg, struct err *e);
	/* put - write a whole object, from memory (data) or, if data is NULL, from fd at off. cond
	 * may be NULL. NULL: read-only service. -EOPNOTSUPP: the service does not support the
	 * condition; -EROFS. */
	int (*put)(struct object_service *o, const char *key, const void *data, int fd,
		   uint64_t off, uint64_t len, const struct put_condition *cond,
		   struct object_info *ret, struct err *e);
	/* remove - delete an object; absence is no error. */
	int (*remove)(struct object_service *o, const char *key, struct err *e);
};

struct object_service {
	const struct object_service_ops *ops;
	const char *name;     /* of the root for messages, without secrets; owned by the
			       * implementation */
};

static inline void objects_close(struct object_service *o)
{
	if (o)
		o->ops->close(o);
}

/* object_get - fetch and wait, with a retry when keys have expired. Cancellable
 * (base/os/cancel.h): -EINTR, and a late answer is dropped. ret->data is the caller's. Returns
 * ret->rc. Must not be called from a done function. */
int object_get(struct object_service *o, const struct object_range *r, struct object_got *ret,
	       struct err *e) NZ_MUST_USE;

#endif
