/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_proxy_int.h - the requests of a child over its socket; both ends are the same program. */
#ifndef HDF5VIEW_ISOLATE_BLOB_PROXY_INT_H
#define HDF5VIEW_ISOLATE_BLOB_PROXY_INT_H

#include "hdf5view/isolate/blob_proxy.h"

enum blob_proxy_op { BLOB_PROXY_READ = 1, BLOB_PROXY_WANT };

/* blob_proxy_request - READ: the reply is a child_answer, then exactly len bytes if its rc is 0,
 * else an error string. WANT: n blob_parts follow, and there is no reply. */
struct blob_proxy_request {
	uint32_t op, n;
	uint64_t off, len;
};

#endif
