/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_proxy_int.h - what a child says over its socket; both ends are the same program. */
#ifndef HDF5VIEW_ISOLATE_BLOB_PROXY_INT_H
#define HDF5VIEW_ISOLATE_BLOB_PROXY_INT_H

#include "hdf5view/isolate/blob_proxy.h"

enum blob_proxy_op { BLOB_PROXY_READ = 1, BLOB_PROXY_WANT };

/* blob_proxy_request - READ: answered by a child_answer and, rc 0, exactly len bytes, else a text.
 * WANT: n blob_parts follow, and nothing is answered. */
struct blob_proxy_request {
	uint32_t op, n;
	uint64_t off, len;
};

#endif
