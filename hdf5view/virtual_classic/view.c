/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - a dataset as one classic netCDF file in the root directory. Everything is decided when
 * the view is opened; after that nothing is written, and no operation takes a lock. */
#include "hdf5view/virtual_classic/virtual_classic_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hdf5view/virtual/one_file.h"

struct cdf_view {
	struct one_file one;
	struct chunkio *io;
	struct cdf_file file;
};

static struct cdf_view *cdf_view_of(struct view *v)
{
	return CONTAINER_OF(v, struct cdf_view, one.base);
}

static void view_size(struct one_file *f, struct view_attr *ret, struct err *e NZ_UNUSED)
{
	ret->size = cdf_view_of(&f->base)->file.at.size;
}

static int view_read(struct view *v, uint64_t id, uint64_t fh NZ_UNUSED, uint64_t off,
		     size_t len, uint8_t *room, struct span *ret, struct err *e)
{
	const struct cdf_file *f = &cdf_view_of(v)->file;
	size_t n;
	int rc = one_file_is(id, e);

	if (rc < 0)
		return rc;
	n = (size_t)u64_min(len, off < f->at.size ? f->at.size - off : 0);
	*ret = (struct span){.fd = -1};
	rc = cdf_file_read(f, off, n, room, e);
	if (rc < 0 || n == 0)
		return rc;
	ret->mem = room;
	ret->len = n;
	return 0;
}

static void cdf_view_close(struct view *v)
{
	struct cdf_view *c;

	if (!v)
		return;
	c = cdf_view_of(v);
	chunkio_free(c->io);
	buf_release(&c->file.header);
	nc_model_free(c->file.model);
	free(c->one.plans);
	free(c);
}

static const struct view_ops cdf_view_ops = {
	.name = "classic",
	.xattr = one_file_xattr,
	.close = cdf_view_close,
	.lookup = one_file_lookup,
	.getattr = one_file_getattr,
	.list = one_file_list,
	.read = view_read,
	.parent = one_file_parent,
	.plan = one_file_plan,
};

/* view_plan_elements - the view reads elements of all chunks, also of those that were never
 * written. */
static void view_plan_elements(struct plan *p)
{
	p->fill_declared = false;
	if (p->kind != PLAN_PASS)
		return;
	*p = (struct plan){.kind = PLAN_DECODE};
	(void)snprintf(p->reason, sizeof(p->reason), "classic netCDF has no chunks");
}

/* view_decide - the decisions of a netCDF-4 file without filters, then those of a classic one. */
static int view_decide(struct cdf_view *c, const struct cdf_view_options *opts, struct err *e)
{
	const struct nc_view_options nc = {
		.policy = {.filter = PLAN_NONE, .quant = opts->policy.quant},
		.max_image_bytes = opts->max_meta_bytes,
		.keep_going = true,
		.root_only = true,
	};
	int rc = nc_model_new(c->one.base.source, &nc, c->one.plans, &c->file.model, e);

	return rc < 0 ? rc : cdf_contents(&c->file, c->one.plans, opts, e);
}

int cdf_view_open(struct source *s, const struct cdf_view_options *opts, struct view **ret,
		  struct err *e)
{
	struct cdf_view *c = alloc_array(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(e);
	c->one = (struct one_file){.base = {.ops = &cdf_view_ops, .source = s},
				   .name = opts->name,
				   .size = view_size};
	buf_init(&c->file.header, (size_t)u64_min(opts->max_meta_bytes, PTRDIFF_MAX));
	c->one.plans = alloc_array(s->ds.n_arrays, sizeof(*c->one.plans));
	rc = c->one.plans ? view_decide(c, opts, e) : err_nomem(e);
	for (uint32_t i = 0; i < s->ds.n_arrays && rc == 0; i++)
		view_plan_elements(&c->one.plans[i]);
	rc = rc ? rc : chunkio_new(s, c->one.plans, &opts->io, &c->io, e);
	if (rc < 0) {
		cdf_view_close(&c->one.base);
		return rc;
	}
	c->file.io = c->io;
	c->file.source = s;
	c->one.base.format = cdf_format_name(c->file.h.version);
	c->one.base.notes = nc_model_notes(c->file.model, &c->one.base.n_notes);
	*ret = &c->one.base;
	return 0;
}
