/* SPDX-License-Identifier: BSD-3-Clause */
/* structure_child.c - the process that makes the structure of one virtual file, or answers queries
 * about libhdf5's filters. Its sandbox allows computing only. It never cleans up: the server ends
 * it after the last request. */
#include "hdf5view/virtual/structure_process.h"
#include "hdf5view/virtual/file_layout.h"

#include <errno.h>
#include <inttypes.h>

#include "base/core/endian.h"

#define ROOM ((size_t)8 << 20) /* libhdf5's needs for a small structure, with a margin */

bool (*nc_apart_fault)(const struct nc_order *q, struct shm *r, int sock);

/* maker - the file so far. */
struct maker {
	struct shm shared;
	struct nc_builder b;
	uint64_t max_bytes;
	uint64_t len; /* FINISH: of the file */
	bool made;
};

/* maker_has_room - check for free memory before libhdf5 is called: if memory for an id
 * is short (H5I_register), it ends the process, or is unusable afterwards. */
static bool maker_has_room(void)
{
	void *p = malloc(ROOM);
	bool has = p != NULL;

	free(p);
	return has;
}

/* bytes_so_far - of the file. */
static int bytes_so_far(const struct maker *k, uint64_t *ret, struct err *e)
{
	hsize_t n = 0;

	if (H5Fget_filesize(k->b.file, &n) < 0)
		return nc_h5_fail(&k->b, 0, DS_NONE, e);
	*ret = n;
	return 0;
}

static int maker_make(struct maker *k, const struct nc_order *q, struct err *e)
{
	const struct nc_model *m = nc_unpack(k->shared.at, (size_t)q->len, q->moves);
	int rc = m && maker_has_room() ? nc_builder_init(&k->b, m, q->max_bytes, e)
				       : err_nomem(e);

	rc = rc ? rc : nc_h5_structure(&k->b, e);
	k->made = rc == 0;
	return rc;
}

static int maker_finish(struct maker *k, uint64_t *ret, struct err *e)
{
	ssize_t n = H5Fflush(k->b.file, H5F_SCOPE_GLOBAL) < 0
			    ? -1
			    : H5Fget_file_image(k->b.file, NULL, 0);

	if (n < 0)
		return nc_h5_fail(&k->b, 0, DS_NONE, e);
	k->len = (uint64_t)n;
	*ret = k->len;
	return 0;
}

static int image(struct maker *k, const struct nc_order *q, uint64_t *ret, struct err *e)
{
	const uint32_t n = k->b.ds->n_arrays;
	uint64_t at = nc_apart_headers(k->len);

	if (q->len != k->len || at > k->shared.size || n > (k->shared.size - at) / 8)
		return err_set(e, -EINVAL, "the structure does not fit the shared memory");
	if (H5Fget_file_image(k->b.file, k->shared.at, (size_t)k->len) != (ssize_t)k->len)
		return nc_h5_fail(&k->b, 0, DS_NONE, e);
	for (uint32_t i = 0; i < n; i++)
		put_le64(k->shared.at + at + (uint64_t)i * 8, k->b.arrays[i]);
	*ret = k->len;
	return 0;
}

static int maker_agree(const struct maker *k, const struct nc_order *q, uint64_t *ret,
		       struct err *e)
{
	struct nc_ask *x = nc_unpack(k->shared.at, (size_t)q->len, q->moves);

	if (!x || !maker_has_room())
		return err_nomem(e);
	*ret = nc_filters_agree(&x->a, &x->as, &x->chain);
	free(x);
	return 0;
}

/* maker_handle - h5_lock is held. */
static int maker_handle(struct maker *k, const struct nc_order *q, uint64_t *ret, struct err *e)
{
	int rc;

	if (q->op == NC_OP_AGREE)
		return maker_agree(k, q, ret, e);
	if (q->op != NC_OP_MAKE && !k->made)
		return err_set(e, -EINVAL, "no file has been built");
	if (q->op == NC_OP_FINISH)
		return maker_finish(k, ret, e);
	if (q->op == NC_OP_IMAGE)
		return image(k, q, ret, e);
	rc = q->op == NC_OP_MAKE
		     ? maker_make(k, q, e)
		     : nc_h5_strings(&k->b, q->array, k->shared.at, (size_t)q->len, e);
	return rc == 0 ? bytes_so_far(k, ret, e) : rc;
}

static void maker_answer(struct maker *k, const struct nc_order *q, int sock)
{
	uint64_t number = 0;
	struct err e = ERR_INIT;
	int rc;

	if (nc_apart_fault && nc_apart_fault(q, &k->shared, sock))
		return;
	h5_enter();
	rc = maker_handle(k, q, &number, &e);
	h5_leave();
	if (rc == -EIO && !maker_has_room()) /* the library's code for every failure */
		rc = -ENOMEM;
	worker_reply(sock, rc, number, &e);
}

static void maker_serve(const struct child_self *self)
{
	const struct sandbox_limits *limits = self->own ? self->own : self->data;
	struct maker k = {.shared = {.fd = self->fds[0]}};
	struct nc_order q;
	struct err e = ERR_INIT;

	h5_enter(); /* afterwards it has read its environment */
	(void)H5PLset_loading_state(0);
	h5_leave();
	if (sandbox_enter(nc_apart_kind.may, NULL, 0, limits, &e) < 0)
		_exit(1);
	while (worker_next(self->sock, &q, sizeof(q)) && shm_map(&k.shared, q.size) &&
	       q.len <= q.size)
		maker_answer(&k, &q, self->sock);
}

const struct child_kind nc_apart_kind = {
	.name = NC_PROCESS,
	.who = "the HDF5 library",
	.n_fds = 1,
	.may = 0,
	.run = maker_serve,
	.keeps_files = h5_has_files,
	.enter = h5_gate_close,
	.leave = h5_gate_open,
};
