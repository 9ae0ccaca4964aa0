/* SPDX-License-Identifier: BSD-3-Clause */
/* services.h - the parts of remote access: private to nczarr.
 *
 *   remote.c           remote_new, remote_store: choose the service and the store
 *   resolve_address.c  remote_at: a Zarr store, or an object
 *   nczarr/http/       requests; service.c: a web server
 *   nczarr/s3/         S3; nczarr/aws/ signs requests and finds credentials
 *   store.c            a store over objects, with object_table.c, fetch.c, prefetch.c, eviction.c:
 *                      the cache in memory, shared requests, prefetch, known absence
 *   disk_cache.c       the cache on disk */
#ifndef NCZARR_REMOTE_SERVICES_H
#define NCZARR_REMOTE_SERVICES_H

#include "nczarr/http/http.h"
#include "nczarr/remote/object_service.h"
#include "nczarr/remote/remote.h"
#include "nczarr/store/store.h"

/* remote_keep - a copy of a string that lives until remote_free(), the same for equal strings;
 * NULL: out of memory. */
const char *remote_keep(struct remote *r, const char *text);

/* ---- services ---- */

/* http_service_open - the objects below an address of a web server. net and opts are borrowed, also
 * for its fetches. The service can neither list nor write. */
int http_service_open(struct http_client *net, const struct remote_options *opts,
		      const struct remote_target *t, struct object_service **ret,
		      struct err *e) NZ_MUST_USE;

/* aws - a source of credentials that it renews. net and opts are borrowed. */
struct aws;
int aws_new(struct http_client *net, const struct remote_options *opts, const char *profile,
	    struct aws **ret, struct err *e) NZ_MUST_USE;
void aws_free(struct aws *a);

/* s3_service_open - a bucket, or the objects below a key of it. net and opts are borrowed,
 * also for its fetches. */
int s3_service_open(struct http_client *net, const struct remote_options *opts,
		    const struct remote_target *t, struct object_service **ret,
		    struct err *e) NZ_MUST_USE;

/* ---- the cache ---- */

/* object_cache - fetched data of all stores of a mount under one budget, in memory and on disk. */
struct object_cache;
int object_cache_new(const struct remote_options *opts, struct object_cache **ret,
		     struct err *e) NZ_MUST_USE;
void object_cache_free(struct object_cache *c);

/* store_remote_open - a store over objects, which it takes on success. name: of the root, the key
 * of entries on disk, without secrets ("s3://bucket/store.zarr"). Cached state of the same root is
 * used again.
 * Reads: store_stat() of an unknown object also fetches its beginning, so that a read of it costs
 * no further request. store_read() fetches whole blocks, adjacent parts in one request, and waits
 * for a request that is in flight for the same bytes. If an object changes between two reads, the
 * next read fails once with -ESTALE and its cached data is dropped. */
int store_remote_open(struct object_cache *c, struct object_service *o, const char *name,
		      struct store **ret, struct err *e) NZ_MUST_USE;

/* ---- the cache on disk ---- */

struct disk_cache;
/* disk_cache_open - create dir if it does not exist. Processes may share it if max_bytes is the
 * same for all. -EBUSY: a process with another size uses it; the caller continues without it. */
int disk_cache_open(const char *dir, uint64_t max_bytes, struct disk_cache **ret,
		    struct err *e) NZ_MUST_USE;
void disk_cache_close(struct disk_cache *d);
/* disk_cache_get - read block `block` of an object's version: true with *ret_len bytes in out
 * (room for `cap`). A block with a wrong checksum is dropped. version NULL, also in
 * disk_cache_put(): the object's info at the time it was stored, in our encoding. */
bool disk_cache_get(struct disk_cache *d, const char *name, const char *key,
		    const struct object_info *version, uint64_t block, uint8_t *out, size_t cap,
		    size_t *ret_len);
/* disk_cache_put - store a block; it replaces the one that was used least recently. Failures are
 * silent. */
void disk_cache_put(struct disk_cache *d, const char *name, const char *key,
		    const struct object_info *version, uint64_t block, const uint8_t *data,
		    size_t len);

#endif
