/* SPDX-License-Identifier: BSD-3-Clause */
/* one_file.c - a directory with one file: names, attributes, and the origin of its data. */
#include "hdf5view/virtual/one_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "translate/chunkio/provenance.h"

static struct one_file *one_file_of(struct view *v)
{
	return CONTAINER_OF(v, struct one_file, base);
}

static int one_file_stale(uint64_t id, struct err *e)
{
	return err_set(e, -ESTALE, "no file has the id %" PRIu64, id);
}

int one_file_is(uint64_t id, struct err *e)
{
	if (id == ONE_FILE_ID)
		return 0;
	return id == VIEW_ROOT ? err_set(e, -EISDIR, "it is a directory")
			       : one_file_stale(id, e);
}

/* one_file_dir - 0 if id is the directory's. */
static int one_file_dir(uint64_t id, struct err *e)
{
	if (id == VIEW_ROOT)
		return 0;
	return id == ONE_FILE_ID ? err_set(e, -ENOTDIR, "not a directory")
				 : one_file_stale(id, e);
}

static void one_file_attr(struct one_file *f, struct view_attr *ret, struct err *e)
{
	*ret = (struct view_attr){.id = ONE_FILE_ID, .nlink = 1, .cached = true};
	f->size(f, ret, e);
}

int one_file_getattr(struct view *v, uint64_t id, struct view_attr *ret, struct err *e)
{
	if (id == VIEW_ROOT)
		*ret = (struct view_attr){.id = VIEW_ROOT, .is_dir = true, .nlink = 2};
	else if (id == ONE_FILE_ID)
		one_file_attr(one_file_of(v), ret, e);
	else
		return one_file_stale(id, e);
	return 0;
}

int one_file_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
		    struct view_attr *ret, struct err *e)
{
	struct one_file *f = one_file_of(v);
	int rc = one_file_dir(dir, e);

	if (rc < 0)
		return rc;
	if (strlen(f->name) != len || memcmp(f->name, name, len) != 0)
		return err_set(e, -ENOENT, "no such file");
	one_file_attr(f, ret, e);
	return 0;
}

int one_file_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr, view_emit *emit,
		  void *arg, struct err *e)
{
	struct one_file *f = one_file_of(v);
	bool have = want_attr && (!f->ready || f->ready(f));
	struct view_attr at;
	int rc = one_file_dir(dir, e);

	if (rc < 0 || cookie > 0)
		return rc;
	if (have)
		one_file_attr(f, &at, NULL);
	(void)emit(arg, f->name, ONE_FILE_ID, false, have ? &at : NULL, 1);
	return 0;
}

uint64_t one_file_parent(struct view *v NZ_UNUSED, uint64_t dir NZ_UNUSED)
{
	return VIEW_ROOT;
}

const struct plan *one_file_plan(struct view *v, uint32_t array)
{
	return &one_file_of(v)->plans[array];
}

int one_file_xattr(struct view *v, uint64_t id, const char *name, struct buf *out, struct err *e)
{
	if (!name)
		return 0; /* none is listed */
	if (id != ONE_FILE_ID || !provenance_of(name))
		return err_set(e, -ENODATA, "no attribute '%s'", name);
	return provenance_view(v->source, one_file_of(v)->plans, provenance_of(name), out, e);
}
