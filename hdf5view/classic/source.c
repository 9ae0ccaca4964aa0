/* SPDX-License-Identifier: BSD-3-Clause */
/* source.c - the classic netCDF source: bid, open, close, and the table of operations. */
#include "hdf5view/hdf5view.h"

#include "hdf5view/classic/classic_int.h"

#include <errno.h>

static int classic_source_bid(const struct source_at *at, struct err *e)
{
	uint8_t magic[4];
	int rc;

	if (!at->file || at->file->size < sizeof(magic))
		return 0;
	rc = blob_read(at->file, 0, magic, sizeof(magic), e);
	return rc < 0 ? rc : cdf_version(magic) ? 10 : 0;
}

static int classic_source_open_source(const struct source_at *at,
				      const struct source_options *opts, struct source **ret,
				      struct err *e)
{
	struct cdf_source *s = alloc_array(1, sizeof(*s));
	struct cdf_header h;
	int rc;

	if (!s)
		return err_nomem(e);
	s->base.ops = &cdf_source_ops;
	s->base.ds.st = at->st;
	s->fd = at->fd;
	s->local = blob_of_fd(at->fd, at->file->size);
	s->blob = at->fd < 0 ? at->file : &s->local;
	s->base.remote = cdf_remote(s);
	s->cut_bytes = opts->cut_bytes;
	s->alone = opts->whole_chunks;
	s->max_chunk_bytes = opts->max_chunk_bytes;
	arena_init(&s->base.ds.arena, (size_t)u64_min(opts->max_meta_bytes, SIZE_MAX));
	rc = cdf_header_read(s->blob, &s->base.ds.arena, &h, e);
	rc = rc ? rc : cdf_model(s, &h, e);
	if (rc < 0) {
		arena_release(&s->base.ds.arena);
		free(s);
		return rc;
	}
	*ret = &s->base;
	return 0;
}

static void classic_source_close_source(struct source *src)
{
	struct cdf_source *s = cdf_of(src);

	arena_release(&s->base.ds.arena);
	if (cdf_remote(s))
		blob_close(s->blob);
	else
		(void)close(s->fd); /* it was only read */
	free(s);
}

static int source_descriptor(struct source *src, uint32_t blob)
{
	return blob == 0 ? cdf_of(src)->fd : -1;
}

const struct source_ops cdf_source_ops = {
	.name = "cdf",
	.bid = classic_source_bid,
	.open = classic_source_open_source,
	.close = classic_source_close_source,
	.locate = cdf_locate,
	.next = cdf_next,
	.read_chunk = cdf_read_chunk,
	.read_stored = cdf_read_stored,
	.want = cdf_want,
	.fd = source_descriptor,
	.check = cdf_check,
	.poll = cdf_poll,
};
