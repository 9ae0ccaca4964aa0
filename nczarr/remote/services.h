/* SPDX-License-Identifier: BSD-3-Clause */
/* services.h - the parts of remote access: private to nczarr.
 *
 *   remote.c           remote_new, remote_store: which service, which store
 *   resolve_address.c  remote_at: a tree, or an object
 *   nczarr/http/           requests
 *   objects_http*.c  a web server;  nczarr/s3/  S3, signed by s3/sigv4.c, credentials by aws_*.c
 *   store_remote*.c  a store over objects: the cache in memory, what is fetched once for all who
 *                    wait, what is fetched early, what is known to be absent
 *   disk_cache*.c    the cache on disk */
#ifndef NCZARR_REMOTE_SERVICES_H
#define NCZARR_REMOTE_SERVICES_H

#include "nczarr/http/http.h"
#include "nczarr/remote/object_service.h"
#include "nczarr/remote/remote.h"
#include "nczarr/store/store.h"

/* remote_keep - the same text as long as the remote lives; NULL when memory is short. */
const char *remote_keep(struct remote *r, const char *text);

/* ---- services ---- */

/* http_service_open - what lies below an address on a web server. net is borrowed. Cannot list or
 * change anything. */
int http_service_open(struct http_client *net, const struct remote_options *opts,
		      const struct remote_target *t, struct object_service **ret,
		      struct err *e) NZ_MUST_USE;

/* aws - where credentials come from, shared by all that is opened with them; renews them. */
struct aws;
int aws_new(struct http_client *net, const struct remote_options *opts, const char *profile,
	    struct aws **ret, struct err *e) NZ_MUST_USE;
void aws_free(struct aws *a);

/* s3_service_open - a bucket, or what lies below a key of it. net and opts are borrowed. */
int s3_service_open(struct http_client *net, const struct remote_options *opts,
		    const struct remote_target *t, struct object_service **ret,
		    struct err *e) NZ_MUST_USE;

/* ---- the cache ---- */

/* cache - what was fetched of all stores of a mount, under one budget; and on disk. */
struct object_cache;
int object_cache_new(const struct remote_options *opts, struct object_cache **ret,
		     struct err *e) NZ_MUST_USE;
void object_cache_free(struct object_cache *c);

/* store_remote_open - a store over objects, which it takes on success. name: of the root, what
 * entries on disk are keyed by, without secrets ("s3://bucket/store.zarr"). What was known of the
 * same root before is known still.
 * Reading: store_stat of what is not known fetches the beginning of the object with it, so that
 * reading it costs no further request; store_read fetches whole blocks, parts that lie together in
 * one request; a fetch that is under way is waited for. Of an object that changes between two reads
 * of it -ESTALE is said once, and what was kept of it is dropped. */
int store_remote_open(struct object_cache *c, struct object_service *o, const char *name,
		      struct store **ret, struct err *e) NZ_MUST_USE;

/* ---- on disk ---- */

struct disk_cache;
/* disk_cache_open - dir is made where it is not there. Processes may share it if max_bytes is the
 * same for all. -EBUSY: one that has another size uses it; the caller goes on without. */
int disk_cache_open(const char *dir, uint64_t max_bytes, struct disk_cache **ret,
		    struct err *e) NZ_MUST_USE;
void disk_cache_close(struct disk_cache *d);
/* disk_cache_get - block `block` of an object's version: true with *len bytes in out (room for
 * `cap`). What does not match its checksum is dropped. version NULL, also of put: what the object
 * was when it was kept, as bytes of ours. */
bool disk_cache_get(struct disk_cache *d, const char *name, const char *key,
		    const struct object_info *version, uint64_t block, uint8_t *out, size_t cap,
		    size_t *ret_len);
/* disk_cache_put - keep it, if there is room; the oldest go. Failures are silent. */
void disk_cache_put(struct disk_cache *d, const char *name, const char *key,
		    const struct object_info *version, uint64_t block, const uint8_t *data,
		    size_t len);

#endif
