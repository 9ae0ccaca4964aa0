/* SPDX-License-Identifier: BSD-3-Clause */
/* model_groups.c - groups and links.
 *
 * Each group is listed once, in creation order if the file tracks it; each object is opened once,
 * by address if the link has one. A group's datasets come before the contents of its child groups:
 * the order in which netCDF-C numbers dimensions. Links in a hostile file may lead anywhere: a
 * group that is its own ancestor is not entered, depth and count are bounded. */
#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HEADER_BYTES ((uint64_t)4096) /* of an object header and the data that usually follows
				       * it */

struct groups_link {
	const char *raw;  /* as in the file */
	const char *name; /* as presented; NULL: left out */
	H5L_type_t type;
	haddr_t addr; /* hard links */
};

struct groups_links {
	struct h5_build *b;
	struct groups_link *v;
	size_t n, cap;
	int rc;
	struct err *e;
};

static herr_t collect_one(hid_t group NZ_UNUSED, const char *name, const H5L_info_t *info,
			  void *arg)
{
	struct groups_links *l = arg;
	struct groups_link k = {.type = info->type};

	k.addr = info->type == H5L_TYPE_HARD ? info->u.address : HADDR_UNDEF;
	if (l->n >= HDF5_NODES_MAX)
		l->rc = err_set(l->e, -ERANGE, "a group has more than %d links",
				HDF5_NODES_MAX);
	else if (grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0)
		l->rc = err_nomem(l->e);
	else if (!(k.raw = arena_strdup(l->b->arena, name)))
		l->rc = h5_full(l->b, l->e);
	else
		l->v[l->n++] = k;
	return l->rc < 0 ? -1 : 0;
}

/* groups_present - determine the name by which a link is shown. */
static int groups_present(struct h5_build *b, struct groups_link *k, struct err *e)
{
	bool mapped = false;
	const char *name = h5_name(b, k->raw, &mapped);
	const char *shown = name ? ds_name_escape(b->arena, name) : NULL;
	size_t n;
	int rc = 0;

	if (!shown)
		return h5_full(b, e);
	if (mapped)
		rc = h5_note(b, e, "the name of '%s' is not UTF-8 and is read as Latin-1",
			     name);
	if (rc == 0 && shown != name)
		rc = h5_note(b, e, "'%s' is shown as '%s'", name, shown);
	if (rc < 0)
		return rc;
	n = strlen(shown);
	if (n == 0 || n > DS_NAME_MAX || strchr(name, '/'))
		return h5_note(b, e,
			       "'%.80s%s' is left out: a file name has 1 to %d bytes "
			       "without '/'",
			       name, n > 80 ? "..." : "", DS_NAME_MAX);
	k->name = shown;
	return 0;
}

static int groups_collect(struct h5_build *b, hid_t group, uint32_t at, bool ordered,
			  struct groups_links *l, struct err *e)
{
	herr_t rc = H5Literate(group, ordered ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME, H5_ITER_INC,
			       NULL, collect_one, l);

	if (l->rc < 0)
		return l->rc;
	if (rc < 0) {
		char why[200];

		h5_reason(why, sizeof(why));
		if (h5_note(b, e, "some of its members are left out: %s", why) < 0 ||
		    unreadable_add(&b->lost, at, NULL, e) < 0)
			return e->code;
	}
	for (size_t i = 0; i < l->n; i++) {
		int prc = groups_present(b, &l->v[i], e);

		if (prc < 0)
			return prc;
	}
	return 0;
}

/* ---- opening the targets of links ---- */

static int open_soft(const struct h5_build *b, hid_t group, const char *raw, hid_t *ret,
		     uint64_t *ret_addr, struct err *e)
{
	H5O_info_t info;

	*ret = H5Oopen(group, raw, b->lapl);
	if (*ret < 0)
		return h5_error(e, -EBADMSG, "its link is broken");
	if (H5Oget_info2(*ret, &info, H5O_INFO_BASIC) < 0)
		return h5_error(e, -EBADMSG, "it cannot be read");
	*ret_addr = info.addr;
	return 0;
}

static int open_external(struct h5_build *b, hid_t group, const char *raw, uint32_t *file,
			 hid_t *ret, uint64_t *ret_addr, struct err *e)
{
	auto_free char *val = NULL;
	const char *name, *object;
	H5L_info_t info;
	unsigned flags;
	uint32_t to = 0;
	int rc;

	if (H5Lget_info(group, raw, &info, H5P_DEFAULT) < 0 || !info.u.val_size ||
	    !(val = alloc_array(info.u.val_size + 1, 1)) ||
	    H5Lget_val(group, raw, val, info.u.val_size, H5P_DEFAULT) < 0 ||
	    H5Lunpack_elink_val(val, info.u.val_size, &flags, &name, &object) < 0)
		return h5_error(e, -EBADMSG, "its external link cannot be read");
	rc = h5_link_file(b, *file, name, &to, e);
	if (rc < 0)
		return rc;
	*file = to;
	return open_soft(b, h5_file_id(b, to), object, ret, ret_addr, e);
}

/* open_link - *ret: an id to be closed, also after an error, or -1. */
static int open_link(struct h5_build *b, hid_t group, const struct groups_link *k,
		     uint32_t *file, hid_t *ret, uint64_t *ret_addr, struct err *e)
{
	switch (k->type) {
	case H5L_TYPE_HARD:
		*ret_addr = k->addr;
		*ret = H5Oopen_by_addr(h5_file_id(b, *file), k->addr);
		return *ret < 0 ? h5_error(e, -EBADMSG, "it cannot be opened") : 0;
	case H5L_TYPE_SOFT:
		return open_soft(b, group, k->raw, ret, ret_addr, e);
	case H5L_TYPE_EXTERNAL:
		return open_external(b, group, k->raw, file, ret, ret_addr, e);
	default:
		return err_set(e, -EOPNOTSUPP, "this kind of link is not supported");
	}
}

static int groups_add_group(struct h5_build *b, uint32_t parent, uint32_t file, uint64_t addr,
			    const char *name, unsigned depth, struct err *e)
{
	struct h5_bgroup g = {
		.g = {.name = name, .parent = parent}, .file = file, .addr = addr};

	for (unsigned i = 0; i <= depth; i++)
		if (b->up[i].addr == addr && b->up[i].file == file)
			return h5_note(b, e, "is not entered: the group is its own ancestor");
	if (depth + 1 >= HDF5_DEPTH_MAX)
		return err_set(e, -ERANGE, "groups are nested deeper than %d", HDF5_DEPTH_MAX);
	if (grow_array(&b->groups, &b->c_groups, b->n_groups + 1, sizeof(*b->groups)) < 0)
		return err_nomem(e);
	if (b->groups[parent].g.n_groups++ == 0)
		b->groups[parent].first_group = (uint32_t)b->n_groups;
	b->groups[b->n_groups++] = g;
	return 0;
}

static int add_link(struct h5_build *b, hid_t id, uint32_t group, struct groups_link *k,
		    unsigned depth, struct err *e)
{
	uint32_t file = b->groups[group].file;
	struct err why = ERR_INIT;
	uint64_t addr = HADDR_UNDEF;
	auto_hid hid_t obj = -1;
	int rc = open_link(b, id, k, &file, &obj, &addr, &why);

	resource_errors_note();
	if (h5_fatal(rc))
		return err_set(e, rc, "%s", why.msg);
	if (rc < 0)
		return h5_mark_unreadable(b, group, k->name, &why, e);
	if (b->n_groups + b->n_arrays + b->n_dims >= HDF5_NODES_MAX)
		return err_set(e, -ERANGE, "the file has more than %d groups and variables",
			       HDF5_NODES_MAX);
	switch (H5Iget_type(obj)) {
	case H5I_GROUP:
		return groups_add_group(b, group, file, addr, k->name, depth, e);
	case H5I_DATASET:
		return h5_dataset_add(b, obj, group, file, addr, k->name, e);
	default:
		return 0; /* a named type: nothing to show */
	}
}

/* ---- equal names: after conversion, or in a damaged file ---- */

struct member {
	const char *name;
	bool *dead;
	size_t at;
};

static int groups_by_name(const void *pa, const void *pb)
{
	const struct member *a = pa, *b = pb;
	int c = strcmp(a->name, b->name);

	return c ? c : a->at < b->at ? -1 : a->at > b->at;
}

static int groups_drop_equal(struct h5_build *b, uint32_t group, struct err *e)
{
	const struct h5_bgroup *g = &b->groups[group];
	size_t n = 0, all = (size_t)g->g.n_groups + g->g.n_arrays;
	auto_free struct member *v = alloc_array(all, sizeof(*v));
	int rc = 0;

	if (all < 2)
		return 0;
	if (!v)
		return err_nomem(e);
	for (uint32_t i = 0; i < g->g.n_arrays; i++, n++)
		v[n] = (struct member){b->arrays[g->first_array + i].a.name,
				       &b->arrays[g->first_array + i].dead, n};
	for (uint32_t i = 0; i < g->g.n_groups; i++, n++)
		v[n] = (struct member){b->groups[g->first_group + i].g.name,
				       &b->groups[g->first_group + i].dead, n};
	qsort(v, n, sizeof(*v), groups_by_name);
	for (size_t i = 1; i < n && rc == 0; i++) {
		if (strcmp(v[i].name, v[i - 1].name) != 0)
			continue;
		*v[i].dead = true;
		rc = h5_note(
			b, e,
			"a second '%s' is left out: another object is shown by the same name",
			v[i].name);
	}
	return rc;
}

/* ---- groups ---- */

/* with_name - append "/name" to the path while one member is read. */
static size_t path_push(struct h5_build *b, const char *name)
{
	size_t len = b->path.len;

	buf_putc(&b->path, '/');
	buf_puts(&b->path, name);
	return len;
}

/* want_members - prefetch the members' object headers, which are spread over a remote file, in
 * parallel. */
static void want_members(const struct h5_build *b, uint32_t file, const struct groups_links *l)
{
	struct blob *blob = b->src->g.blob;
	struct blob_part parts[64];
	size_t n = 0;

	if (!isolated_remote(&b->src->g) || file)
		return;
	for (size_t i = 0; i < l->n; i++) {
		uint64_t at;

		if (l->v[i].type == H5L_TYPE_HARD &&
		    !ckd_add(&at, l->v[i].addr, b->src->raw.base) && at < blob->size)
			parts[n++] =
				(struct blob_part){at, u64_min(HEADER_BYTES, blob->size - at)};
		if (n == ARRAY_LEN(parts) || (i + 1 == l->n && n > 0)) {
			blob_want(blob, parts, n);
			n = 0;
		}
	}
}

static int walk_group(struct h5_build *b, uint32_t group, unsigned depth, struct err *e);

static int walk_members(struct h5_build *b, hid_t id, uint32_t group, bool ordered,
			unsigned depth, struct err *e)
{
	struct groups_links l = {.b = b, .e = e};
	int rc = groups_collect(b, id, group, ordered, &l, e);

	if (rc == 0)
		want_members(b, b->groups[group].file, &l);
	b->groups[group].first_array = (uint32_t)b->n_arrays;
	for (size_t i = 0; i < l.n && rc == 0; i++) {
		size_t len;

		if (!l.v[i].name)
			continue;
		len = path_push(b, l.v[i].name);
		rc = add_link(b, id, group, &l.v[i], depth, e);
		b->path.len = len;
	}
	rc = rc ? rc : groups_drop_equal(b, group, e);
	free(l.v);
	return rc;
}

static int walk_children(struct h5_build *b, uint32_t group, unsigned depth, struct err *e)
{
	uint32_t first = b->groups[group].first_group, n = b->groups[group].g.n_groups;
	int rc = 0;

	for (uint32_t i = 0; i < n && rc == 0; i++) {
		size_t len = path_push(b, b->groups[first + i].g.name);

		if (!b->groups[first + i].dead)
			rc = walk_group(b, first + i, depth + 1, e);
		b->path.len = len;
	}
	return rc;
}

/* read_group - attributes and members. */
static int read_group(struct h5_build *b, hid_t id, uint32_t group, unsigned depth,
		      struct err *e)
{
	auto_hid hid_t gcpl = H5Gget_create_plist(id);
	struct netcdf_hints facts = {0};
	const struct ds_attr *attrs = NULL;
	unsigned links = 0, order = 0;
	uint32_t n = 0;
	int rc;

	if (gcpl < 0 || H5Pget_link_creation_order(gcpl, &links) < 0 ||
	    H5Pget_attr_creation_order(gcpl, &order) < 0)
		links = order = 0;
	rc = h5_attrs_read(b, id, (order & H5P_CRT_ORDER_TRACKED) != 0, &n, &attrs, &facts, e);
	if (rc < 0)
		return rc;
	b->groups[group].g.attrs = attrs;
	b->groups[group].g.n_attrs = n;
	return walk_members(b, id, group, (links & H5P_CRT_ORDER_TRACKED) != 0, depth, e);
}

static int walk_group(struct h5_build *b, uint32_t group, unsigned depth, struct err *e)
{
	uint32_t file = b->groups[group].file;
	auto_hid hid_t id = H5Oopen_by_addr(h5_file_id(b, file), b->groups[group].addr);
	int rc;

	if (id < 0 || H5Iget_type(id) != H5I_GROUP) {
		char why[200];

		h5_reason(why, sizeof(why));
		rc = h5_note(b, e, "cannot be opened: %s", why);
		return rc < 0 ? rc : unreadable_add(&b->lost, group, NULL, e);
	}
	b->up[depth].file = file;
	b->up[depth].addr = b->groups[group].addr;
	rc = read_group(b, id, group, depth, e);
	h5_id_close(&id);
	id = -1;
	return rc < 0 ? rc : walk_children(b, group, depth, e);
}

int h5_walk(struct h5_build *b, struct err *e)
{
	auto_hid hid_t root = H5Gopen2(b->file, "/", H5P_DEFAULT);
	H5O_info_t info;

	if (root < 0 || H5Oget_info2(root, &info, H5O_INFO_BASIC) < 0)
		return h5_error(e, -EBADMSG, "its root group cannot be read");
	if (grow_array(&b->groups, &b->c_groups, 1, sizeof(*b->groups)) < 0)
		return err_nomem(e);
	b->groups[0] =
		(struct h5_bgroup){.g = {.name = arena_strdup(b->arena, ""), .parent = DS_NONE},
				   .addr = info.addr};
	if (!b->groups[0].g.name)
		return h5_full(b, e);
	b->n_groups = 1;
	return walk_group(b, 0, 0, e);
}
