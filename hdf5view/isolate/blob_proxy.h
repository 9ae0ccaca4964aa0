/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_proxy.h - the bytes of a remote file for a library's process; private to hdf5view.
 *
 * A child process (isolated_source.h) has no network, no credentials and no cache: it has one end
 * of a socket in place of the file's descriptor, and asks over it for ranges. A thread of the
 * server answers from the file's blob, as long as the child lives. What the child says is not
 * trusted: lengths are bounded, and all that it can have is the file that it is there for. */
#ifndef HDF5VIEW_ISOLATE_BLOB_PROXY_H
#define HDF5VIEW_ISOLATE_BLOB_PROXY_H

#include "translate/contract/blob.h"

#define BLOB_PROXY_READ_MAX ((uint64_t)1 << 20) /* bytes of one answer */
#define BLOB_PROXY_PARTS_MAX 256                /* ranges of one hint */

/* ---- blob_proxy_server.c: the server's end ---- */

struct blob_proxy_server;

/* blob_proxy_pair - a socket for one child: ret[0] is for blob_proxy_serve, ret[1] for the
 * child. */
int blob_proxy_pair(int ret[2], struct err *e) NZ_MUST_USE;

/* blob_proxy_serve - answer what comes over sock until its other end is closed or blob_proxy_end.
 * b: borrowed until blob_proxy_end. all: the child will read metadata all over the file, so that
 * what a file probably has most of it in is fetched early. sock is taken on success only. Returns 0
 * with *ret new. */
int blob_proxy_serve(struct blob *b, int sock, bool all, struct blob_proxy_server **ret,
		     struct err *e) NZ_MUST_USE;
/* blob_proxy_end - no answer is given any more; waits for nothing but the thread, which gives up
 * what it waits for. Takes NULL. */
void blob_proxy_end(struct blob_proxy_server *f);
/* blob_proxy_waited - milliseconds that the child waited for bytes so far. */
int64_t blob_proxy_waited(struct blob_proxy_server *f);
/* blob_proxy_failed - why it did not get something that it asked for, the first time: its library
 * may remember a part of that. 0 when it got all, and for NULL. */
int blob_proxy_failed(struct blob_proxy_server *f, struct err *e);

/* ---- blob_proxy_client.c: in the child ---- */

/* blob_proxy_client_new - the file as a blob that asks over sock (borrowed) and remembers a little.
 * NULL when memory is short. One thread at a time. It lives as long as the process. */
struct blob *blob_proxy_client_new(int sock, uint64_t size);
/* blob_proxy_client_failed - why the first read that failed did, 0 when none did: what a library
 * made of the file after that is not to be believed. b may be any blob. */
int blob_proxy_client_failed(const struct blob *b, struct err *e);

#endif
