/* SPDX-License-Identifier: BSD-3-Clause */
/* vlen_feed.c - reads variable-length elements for the process that writes them into the structure
 * (netcdf4/writer_vlen.c), many small chunks at a time. */
#include "hdf5view/virtual/structure_process.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define WANTED 32                 /* chunks of a remote source in one prefetch */
#define BATCH ((size_t)256 << 10) /* bytes that are worth a request */

/* vlen_feed_fetch - read the elements of a chunk. *ret_absent: the chunk is not stored. left:
 * bytes by which the file may still grow. */
static int vlen_feed_fetch(struct nc_strings *t, uint32_t array, uint64_t linear, uint64_t left,
			   bool *ret_absent, struct err *e)
{
	struct chunk_ref ref;
	int rc = source_locate(t->source, array, linear, &ref, e);

	buf_clear(&t->raw);
	t->raw.max = (size_t)u64_min(left, SIZE_MAX);
	*ret_absent = rc == 0 && ref.where == CHUNK_ABSENT;
	if (rc == 0 && !*ret_absent)
		rc = source_read_vlen(t->source, array, linear, &t->raw, e);
	return rc;
}

/* vlen_feed_add - append the fetched elements to the pending pieces. */
static void vlen_feed_add(struct nc_strings *t, uint64_t linear, bool absent)
{
	static const uint8_t zeroes[8];
	const struct nc_piece head = {.linear = linear,
				      .len = absent ? NC_PIECE_ABSENT : t->raw.len};

	buf_put(&t->pieces, &head, sizeof(head));
	if (absent)
		return;
	if (t->raw.len)
		buf_put(&t->pieces, t->raw.data, t->raw.len);
	buf_put(&t->pieces, zeroes, 8 - t->raw.len % 8);
}

/* break_array - mark an array as broken: its error is for readers of its data. An error that says
 * nothing about the data is returned instead. */
static int break_array(char **ret, int rc, const struct err *why, struct err *e)
{
	if (err_is_transient(rc) || rc == -ERANGE || rc == -ESTALE || rc == -ETIMEDOUT ||
	    rc == -ECANCELED)
		return err_set(e, rc, "%s", why->msg);
	*ret = strdup(why->msg);
	return *ret ? 0 : err_nomem(e);
}

/* vlen_feed_flush - send the pending pieces. */
static int vlen_feed_flush(struct nc_strings *t, uint32_t array, char **ret_broken,
			   struct err *e)
{
	struct err why = ERR_INIT;
	int rc = t->pieces.len ? t->write(t, array, &why) : 0;

	buf_clear(&t->pieces);
	if (rc == -EBADMSG)
		return break_array(ret_broken, rc, &why, e);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

/* vlen_feed_one_chunk - read a chunk, and send the pending pieces if they are large enough. */
static int vlen_feed_one_chunk(struct nc_strings *t, uint32_t array, uint64_t linear,
			       char **ret_broken, struct err *e)
{
	const uint64_t taken = t->bytes + t->pieces.len;
	const uint64_t left = taken < t->max_bytes ? t->max_bytes - taken : 0;
	struct err why = ERR_INIT;
	bool absent;
	int rc = vlen_feed_fetch(t, array, linear, left, &absent, &why);

	if (rc == -EIO) /* a failure marks the whole array as broken, so retry once */
		rc = vlen_feed_fetch(t, array, linear, left, &absent, &why);
	if (rc < 0)
		return break_array(ret_broken, rc, &why, e);
	vlen_feed_add(t, linear, absent);
	if (!buf_ok(&t->pieces))
		return err_nomem(e);
	return t->pieces.len >= BATCH ? vlen_feed_flush(t, array, ret_broken, e) : 0;
}

int nc_strings_read(struct nc_strings *t, uint32_t array, char **ret_broken, struct err *e)
{
	struct source *s = t->source;
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t at;
	int rc = 0;

	/* one listing saves reading absent chunks; its errors are reported when chunks are read */
	if (s->remote && !s->unlisted && source_next(s, array, 0, &at, NULL) == -ENOMEM)
		return err_nomem(e);
	buf_clear(&t->pieces);
	for (uint64_t c = 0; c < a->n_chunks && rc == 0 && !*ret_broken; c++) {
		if (c % WANTED == 0)
			chunkio_want_run(s, array, c, 2 * WANTED);
		rc = vlen_feed_one_chunk(t, array, c, ret_broken, e);
	}
	if (rc == 0 && !*ret_broken)
		rc = vlen_feed_flush(t, array, ret_broken, e);
	return rc && rc != -EIO ? err_wrap(e, rc, "'%s'", a->name) : rc;
}
