/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_proxy.h - give a library's process the bytes of a remote file; private to hdf5view.
 *
 * A child process (isolated_source.h) has no network, no credentials and no cache. In place of the
 * file's descriptor it has one end of a socket, over which it requests ranges. A server thread
 * answers from the file's blob while the child lives. The child is not trusted: lengths are
 * bounded, and it can read only this one file. */
#ifndef HDF5VIEW_ISOLATE_BLOB_PROXY_H
#define HDF5VIEW_ISOLATE_BLOB_PROXY_H

#include "translate/contract/blob.h"

#define BLOB_PROXY_READ_MAX ((uint64_t)1 << 20) /* bytes of one answer */
#define BLOB_PROXY_PARTS_MAX 256                /* ranges of one hint */

enum blob_proxy_op { BLOB_PROXY_READ = 1, BLOB_PROXY_WANT };

/* blob_proxy_request - a request of a child; both ends are the same program. READ: the reply is a
 * child_answer, then exactly len bytes if its rc is 0, else an error string. WANT: n blob_parts
 * follow, and there is no reply. */
struct blob_proxy_request {
	uint32_t op, n;
	uint64_t off, len;
};

/* ---- blob_proxy_server.c: the server's end ---- */

struct blob_proxy_server;

/* blob_proxy_pair - create the socket pair of one child: ret[0] is for blob_proxy_serve, ret[1]
 * for the child. */
int blob_proxy_pair(int ret[2], struct err *e) NZ_MUST_USE;

/* blob_proxy_serve - answer requests on sock until its other end closes or blob_proxy_end is
 * called. b: borrowed until blob_proxy_end. all: the child will read metadata all over the file,
 * so the parts that usually hold metadata are prefetched. sock is taken on success only. Returns 0
 * with *ret new. */
int blob_proxy_serve(struct blob *b, int sock, bool all, struct blob_proxy_server **ret,
		     struct err *e) NZ_MUST_USE;
/* blob_proxy_end - stop answering and join the thread, whose own waits are cancelled. Takes
 * NULL. */
void blob_proxy_end(struct blob_proxy_server *f);
/* blob_proxy_waited - total milliseconds that the child has waited for bytes. */
int64_t blob_proxy_waited(struct blob_proxy_server *f);
/* blob_proxy_failed - report the first failed request of the child in e: its library may have
 * cached a part of the incomplete data. Returns that error, or 0 if none failed. Takes NULL. */
int blob_proxy_failed(struct blob_proxy_server *f, struct err *e);

/* ---- blob_proxy_client.c: in the child ---- */

/* blob_proxy_client_new - make a blob that requests the file's bytes over sock (borrowed) and
 * keeps a small cache. Returns NULL when memory is short. One thread at a time. It lives as long
 * as the process. */
struct blob *blob_proxy_client_new(int sock, uint64_t size);
/* blob_proxy_client_failed - report the first failed read in e; results that a library computed
 * after it are not valid. Returns that error, or 0. b may be any blob. */
int blob_proxy_client_failed(const struct blob *b, struct err *e);

#endif
