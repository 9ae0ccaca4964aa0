/* SPDX-License-Identifier: BSD-3-Clause */
/* view.c - a dataset as one classic netCDF file in the root directory. Everything is decided when
 * the view is opened; after that nothing is written, and no operation takes a lock. */
#include "hdf5view/virtual_classic/virtual_classic_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "translate/chunkio/provenance.h"

#define FILE_ID (VIEW_ROOT + 1)

struct cdf_view {
	struct view base;
	const char *name;   /* borrowed */
	struct plan *plans; /* n_arrays */
	struct chunkio *io;
	struct cdf_file file;
};

static struct cdf_view *cdf_view_of(struct view *v)
{
	return CONTAINER_OF(v, struct cdf_view, base);
}

static void view_file_attr(struct view *v, struct view_attr *ret)
{
	*ret = (struct view_attr){.id = FILE_ID,
				  .nlink = 1,
				  .cached = true,
				  .size = cdf_view_of(v)->file.at.size};
}

static int view_getattr(struct view *v, uint64_t id, struct view_attr *ret, struct err *e)
{
	if (id == VIEW_ROOT)
		*ret = (struct view_attr){.id = VIEW_ROOT, .is_dir = true, .nlink = 2};
	else if (id == FILE_ID)
		view_file_attr(v, ret);
	else
		return err_set(e, -ESTALE, "no file has the id %" PRIu64, id);
	return 0;
}

static int view_in_root(uint64_t dir, struct err *e)
{
	if (dir == VIEW_ROOT)
		return 0;
	if (dir == FILE_ID)
		return err_set(e, -ENOTDIR, "not a directory");
	return err_set(e, -ESTALE, "no file has the id %" PRIu64, dir);
}

static int view_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
		       struct view_attr *ret, struct err *e)
{
	const char *own = cdf_view_of(v)->name;
	int rc = view_in_root(dir, e);

	if (rc < 0)
		return rc;
	if (strlen(own) != len || memcmp(own, name, len) != 0)
		return err_set(e, -ENOENT, "no such file");
	view_file_attr(v, ret);
	return 0;
}

static int view_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr,
		     view_emit *emit, void *arg, struct err *e)
{
	struct view_attr at;
	int rc = view_in_root(dir, e);

	if (rc < 0 || cookie > 0)
		return rc;
	view_file_attr(v, &at);
	(void)emit(arg, cdf_view_of(v)->name, FILE_ID, false, want_attr ? &at : NULL, 1);
	return 0;
}

static int view_read(struct view *v, uint64_t id, uint64_t off, size_t len, uint8_t *room,
		     struct span *ret, struct err *e)
{
	const struct cdf_file *f = &cdf_view_of(v)->file;
	size_t n;
	int rc;

	if (id != FILE_ID)
		return id == VIEW_ROOT ? err_set(e, -EISDIR, "it is a directory")
				       : view_in_root(id, e);
	n = (size_t)u64_min(len, off < f->at.size ? f->at.size - off : 0);
	*ret = (struct span){.fd = -1};
	rc = cdf_file_read(f, off, n, room, e);
	if (rc < 0 || n == 0)
		return rc;
	ret->mem = room;
	ret->len = n;
	return 0;
}

static uint64_t view_parent(struct view *v NZ_UNUSED, uint64_t dir NZ_UNUSED)
{
	return VIEW_ROOT;
}

static const struct plan *view_plan(struct view *v, uint32_t array)
{
	return &cdf_view_of(v)->plans[array];
}

static int view_xattr(struct view *v, uint64_t id, const char *name, struct buf *out,
		      struct err *e)
{
	if (!name)
		return 0; /* none is listed */
	if (id != FILE_ID || !provenance_of(name))
		return err_set(e, -ENODATA, "no attribute '%s'", name);
	return provenance_view(v->source, cdf_view_of(v)->plans, provenance_of(name), out, e);
}

static void view_close(struct view *v)
{
	struct cdf_view *c;

	if (!v)
		return;
	c = cdf_view_of(v);
	chunkio_free(c->io);
	buf_release(&c->file.header);
	nc_model_free(c->file.model);
	free(c->plans);
	free(c);
}

static const struct view_ops cdf_view_ops = {
	.name = "classic",
	.xattr = view_xattr,
	.close = view_close,
	.lookup = view_lookup,
	.getattr = view_getattr,
	.list = view_list,
	.read = view_read,
	.parent = view_parent,
	.plan = view_plan,
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
	int rc = nc_model_new(c->base.source, &nc, c->plans, &c->file.model, e);

	return rc < 0 ? rc : cdf_contents(&c->file, c->plans, opts, e);
}

int cdf_view_open(struct source *s, const struct cdf_view_options *opts, struct view **ret,
		  struct err *e)
{
	struct cdf_view *c = alloc_array(1, sizeof(*c));
	int rc;

	if (!c)
		return err_nomem(e);
	c->base = (struct view){.ops = &cdf_view_ops, .source = s};
	c->name = opts->name;
	buf_init(&c->file.header, (size_t)u64_min(opts->max_meta_bytes, PTRDIFF_MAX));
	c->plans = alloc_array(s->ds.n_arrays, sizeof(*c->plans));
	rc = c->plans ? view_decide(c, opts, e) : err_nomem(e);
	for (uint32_t i = 0; i < s->ds.n_arrays && rc == 0; i++)
		view_plan_elements(&c->plans[i]);
	if (rc == 0)
		rc = chunkio_new(s, c->plans, &opts->io, &c->io, e);
	if (rc < 0) {
		view_close(&c->base);
		return rc;
	}
	c->file.io = c->io;
	c->file.source = s;
	c->base.format = cdf_format_name(c->file.h.version);
	c->base.notes = nc_model_notes(c->file.model, &c->base.n_notes);
	*ret = &c->base;
	return 0;
}
