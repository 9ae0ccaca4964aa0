/* SPDX-License-Identifier: BSD-3-Clause */
/* dimension_lists.c - updates DIMENSION_LIST of variables and REFERENCE_LIST of scales at the end.
 *
 * Both are lists of addresses. While objects are added, removed and recreated, only the lists that
 * name them are recorded; here every recorded list is read, changed and written once. Entries of
 * objects that no model shows are kept.
 *
 * Spec: HDF5 Dimension Scale Specification 1.0. */
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- reading ---- */

/* lists_open - open an attribute with a list, if it is of the right class. */
static bool lists_open(hid_t obj, const char *name, H5T_class_t class,
		       struct hdf5_sink_attr *ret)
{
	return hdf5_sink_attr_open(obj, name, ret) && H5Tget_class(ret->type) == class &&
	       ret->n <= SIZE_MAX / sizeof(struct nc_use);
}

/* uses_of - read a scale's REFERENCE_LIST. New (free); NULL with *ret_n 0: none that can be
 * read. */
static struct nc_use *uses_of(hid_t scale, size_t *ret_n)
{
	auto_attr struct hdf5_sink_attr a = {0};
	auto_hid hid_t type = nc_h5_use_type();
	bool is = lists_open(scale, "REFERENCE_LIST", H5T_COMPOUND, &a);
	struct nc_use *list = is && a.n > 0 ? alloc_array((size_t)a.n, sizeof(*list)) : NULL;

	*ret_n = 0;
	if (!list || type < 0 || H5Aread(a.at, type, list) < 0) {
		free(list);
		return NULL;
	}
	*ret_n = (size_t)a.n;
	return list;
}

/* can_read - whether a scale's REFERENCE_LIST, if it has one, has H5DS's form. */
static bool can_read(hid_t scale)
{
	auto_attr struct hdf5_sink_attr a = {0};
	size_t got;

	if (!lists_open(scale, "REFERENCE_LIST", H5T_COMPOUND, &a))
		return H5Aexists(scale, "REFERENCE_LIST") <= 0;
	free(uses_of(scale, &got));
	return a.n == got;
}

/* lists - a variable's DIMENSION_LIST in the library's memory. */
struct lists {
	hvl_t axis[NC_RANK_LIMIT];
	uint32_t n;
	hid_t type; /* in memory */
	struct hdf5_sink_attr a;
};

static void lists_release(struct lists *x)
{
	if (x->n > 0)
		(void)H5Dvlen_reclaim(x->type, x->a.space, H5P_DEFAULT, x->axis);
	h5_id_close(&x->type);
	hdf5_sink_attr_close(&x->a);
}

/* lists_read - read it. Returns whether there is one. */
static bool lists_read(hid_t set, struct lists *ret)
{
	auto_hid hid_t base = -1;

	*ret = (struct lists){0};
	if (!lists_open(set, "DIMENSION_LIST", H5T_VLEN, &ret->a) || ret->a.n < 1 ||
	    ret->a.n > NC_RANK_LIMIT)
		return false;
	base = H5Tget_super(ret->a.type);
	if (base < 0 || H5Tget_class(base) != H5T_REFERENCE ||
	    H5Tequal(base, H5T_STD_REF_OBJ) <= 0)
		return false;
	ret->type = H5Tvlen_create(H5T_STD_REF_OBJ);
	if (ret->type >= 0 && H5Aread(ret->a.at, ret->type, ret->axis) >= 0)
		ret->n = (uint32_t)ret->a.n;
	return ret->n > 0;
}

int hdf5_sink_note_references(struct h5_sink *s, hid_t obj)
{
	struct lists x;
	size_t n;
	struct nc_use *uses = uses_of(obj, &n);
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++)
		rc = hdf5_sink_list_add(&s->users, uses[i].set);
	free(uses);
	if (lists_read(obj, &x))
		for (uint32_t k = 0; k < x.n && !rc; k++)
			for (size_t i = 0; i < x.axis[k].len && !rc; i++) {
				hobj_ref_t ref;

				memcpy(&ref, (uint8_t *)x.axis[k].p + i * sizeof(ref),
				       sizeof(ref));
				rc = hdf5_sink_list_add(&s->scales, ref);
			}
	lists_release(&x);
	return rc;
}

/* ---- new uses ---- */

struct tie {
	uint64_t scale;
	struct nc_use use;
};

struct tying {
	struct h5_sink *s;
	struct tie *dim_lists; /* new uses, by scale */
	size_t n_dim_lists, c_dim_lists;
	size_t next;                  /* the first new use of the next scale */
	struct hdf5_sink_list retied; /* addresses of arrays, sorted: drop their old uses */
	const struct hdf5_sink_move **predecessors; /* moves, sorted by their targets */
	size_t n_predecessors;
	bool *wanted; /* of real's dimensions: `now` has them */
};

static int lists_by_addr(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

static int by_use(const void *pa, const void *pb)
{
	const struct nc_use *a = pa, *b = pb;

	if (a->set != b->set)
		return a->set < b->set ? -1 : 1;
	return a->axis < b->axis ? -1 : a->axis > b->axis;
}

static int by_scale(const void *pa, const void *pb)
{
	const struct tie *a = pa, *b = pb;

	if (a->scale != b->scale)
		return a->scale < b->scale ? -1 : 1;
	return by_use(&a->use, &b->use);
}

static int by_heir(const void *pa, const void *pb)
{
	uint64_t a = (*(const struct hdf5_sink_move *const *)pa)->to,
		 b = (*(const struct hdf5_sink_move *const *)pb)->to;

	return a < b ? -1 : a > b;
}

static void sort_list(struct hdf5_sink_list *l)
{
	size_t n = 0;

	if (l->n > 0)
		qsort(l->at, l->n, sizeof(*l->at), lists_by_addr);
	for (size_t i = 0; i < l->n; i++)
		if (n == 0 || l->at[n - 1] != l->at[i])
			l->at[n++] = l->at[i];
	l->n = n;
}

static bool lists_in_list(const struct hdf5_sink_list *l, uint64_t addr)
{
	return l->n > 0 && bsearch(&addr, l->at, l->n, sizeof(*l->at), lists_by_addr) != NULL;
}

/* lists_axes_of - the number of axes of an array's dataset. */
static uint32_t lists_axes_of(const struct h5_sink *s, uint32_t array)
{
	const struct hdf5_sink_array *x = &s->arrays[array];

	if (x->real == DS_NONE)
		return nc_rank(&s->view.ds.arrays[array]);
	return s->real->arrays[x->real].rank;
}

static const struct hdf5_sink_dim *dim_of(const struct h5_sink *s, uint32_t array,
					  uint32_t axis)
{
	uint32_t d = nc_axis_dim(s->m, array, axis);

	return d == DS_NONE ? NULL : &s->dims[d];
}

/* is_own_scale - whether an array is the scale of its first axis. */
static bool is_own_scale(const struct h5_sink *s, uint32_t array)
{
	const struct hdf5_sink_dim *d = lists_axes_of(s, array) ? dim_of(s, array, 0) : NULL;

	return d && d->addr == s->arrays[array].addr;
}

static int add_tie(struct tying *t, uint64_t scale, uint64_t set, uint32_t axis)
{
	if (grow_array(&t->dim_lists, &t->c_dim_lists, t->n_dim_lists + 1,
		       sizeof(*t->dim_lists)) < 0 ||
	    hdf5_sink_list_add(&t->s->scales, scale) < 0)
		return -1;
	t->dim_lists[t->n_dim_lists++] =
		(struct tie){.scale = scale, .use = {.set = set, .axis = (int32_t)axis}};
	return 0;
}

static int lists_gather(struct tying *t)
{
	struct h5_sink *s = t->s;

	for (uint32_t i = 0; i < s->view.ds.n_arrays; i++) {
		const struct hdf5_sink_array *x = &s->arrays[i];

		if (!x->retie || x->addr == HADDR_UNDEF)
			continue;
		if (hdf5_sink_list_add(&t->retied, x->addr) < 0)
			return -1;
		for (uint32_t k = 0; k < lists_axes_of(s, i) && !is_own_scale(s, i); k++) {
			const struct hdf5_sink_dim *d = dim_of(s, i, k);

			if (d && d->addr != HADDR_UNDEF && add_tie(t, d->addr, x->addr, k) < 0)
				return -1;
		}
	}
	sort_list(&t->retied);
	if (t->n_dim_lists > 0)
		qsort(t->dim_lists, t->n_dim_lists, sizeof(*t->dim_lists), by_scale);
	return 0;
}

/* ---- scales ---- */

struct growing {
	struct nc_use *list;
	size_t n, cap;
};

static int keep_use(struct growing *g, const struct nc_use *use)
{
	if (grow_array(&g->list, &g->cap, g->n + 1, sizeof(*g->list)) < 0)
		return -1;
	g->list[g->n++] = (struct nc_use){.set = use->set, .axis = use->axis};
	return 0;
}

/* lists_keep_old - keep the valid uses of a scale, or of one that it replaced. */
static int lists_keep_old(struct tying *t, hid_t scale, struct growing *g)
{
	size_t n;
	auto_free struct nc_use *old = uses_of(scale, &n);
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		struct nc_use use = old[i];

		use.set = hdf5_sink_current_address(t->s, use.set);
		if (use.set != HADDR_UNDEF && use.set != 0 &&
		    !lists_in_list(&t->retied, use.set))
			rc = keep_use(g, &use);
	}
	return rc;
}

/* keep_heritage - keep the uses of all predecessors of a scale, recursively. */
static int keep_heritage(struct tying *t, uint64_t addr, struct growing *g, unsigned depth)
{
	const struct hdf5_sink_move key = {.to = addr}, *kp = &key, **at, **end;
	int rc = 0;

	at = t->n_predecessors ? bsearch(&kp, t->predecessors, t->n_predecessors,
					 sizeof(*t->predecessors), by_heir)
			       : NULL;
	if (!at || depth >= 8)
		return 0;
	while (at > t->predecessors && at[-1]->to == addr)
		at--;
	for (end = t->predecessors + t->n_predecessors; at < end && (*at)->to == addr && !rc;
	     at++) {
		rc = (*at)->held > 0 ? lists_keep_old(t, (*at)->held, g) : 0;
		rc = rc ? rc : keep_heritage(t, (*at)->from, g, depth + 1);
	}
	return rc;
}

static void drop_twins(struct growing *g)
{
	size_t n = 0;

	if (g->n > 0)
		qsort(g->list, g->n, sizeof(*g->list), by_use);
	for (size_t i = 0; i < g->n; i++)
		if (n == 0 || by_use(&g->list[n - 1], &g->list[i]) != 0)
			g->list[n++] = g->list[i];
	g->n = n;
}

/* is_wanted - whether a scale is a dimension of `now`. */
static bool is_wanted(const struct h5_sink *s, uint64_t addr)
{
	for (uint32_t d = 0; d < s->m->n_dims; d++)
		if (s->dims[d].addr == addr)
			return true;
	return false;
}

/* remove_scale - remove a dimension without a variable that has no users. */
static int remove_scale(struct h5_sink *s, uint64_t addr)
{
	const struct dataset *real = &s->real->g.base.ds;

	for (uint32_t d = 0; d < real->n_dims; d++) {
		auto_hid hid_t group = -1;
		auto_free char *link = NULL;

		if (s->real->dims[d].addr != addr || s->real->dims[d].file != 0)
			continue;
		group = hdf5_sink_object(s, s->real->groups[real->dims[d].group].addr);
		if (group < 0 || hdf5_sink_link(group, addr, real->dims[d].name, &link) < 0)
			return 0; /* its group was removed */
		return H5Ldelete(group, link, H5P_DEFAULT) < 0 ? -1 : 0;
	}
	return 0;
}

static int write_uses(struct tying *t, hid_t set, uint64_t addr, struct growing *g)
{
	auto_hid hid_t type = nc_h5_use_type();
	bool had = H5Aexists(set, "REFERENCE_LIST") > 0;

	if (type < 0 || (had && H5Adelete(set, "REFERENCE_LIST") < 0))
		return -1;
	if (g->n > 0)
		return nc_h5_attr_raw(set, "REFERENCE_LIST", type, g->n, g->list);
	if (hdf5_sink_dim_only(set) && hdf5_sink_links_one(set) && !is_wanted(t->s, addr))
		return remove_scale(t->s, addr);
	return 0;
}

static int fix_scale(struct tying *t, uint64_t addr)
{
	struct growing g = {0};
	auto_hid hid_t set = hdf5_sink_object(t->s, addr);
	int rc;

	if (set < 0 || H5Iget_type(set) != H5I_DATASET || !can_read(set))
		return 0; /* a null reference, or a list in another form: not written by H5DS */
	rc = lists_keep_old(t, set, &g);
	rc = rc ? rc : keep_heritage(t, addr, &g, 0);
	/* both lists are sorted, and scales are visited in order */
	while (t->next < t->n_dim_lists && t->dim_lists[t->next].scale < addr)
		t->next++;
	for (; t->next < t->n_dim_lists && t->dim_lists[t->next].scale == addr && !rc;
	     t->next++)
		rc = keep_use(&g, &t->dim_lists[t->next].use);
	drop_twins(&g);
	rc = rc ? rc : write_uses(t, set, addr, &g);
	free(g.list);
	return rc;
}

/* to_current - replace recorded addresses by the current ones, each once. */
static void to_current(struct h5_sink *s, struct hdf5_sink_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		l->at[i] = hdf5_sink_current_address(s, l->at[i]);
	sort_list(l);
}

static int fix_scales(struct tying *t)
{
	struct hdf5_sink_list *l = &t->s->scales;
	int rc = 0;

	to_current(t->s, l);
	for (size_t i = 0; i < l->n && !rc; i++)
		if (l->at[i] != HADDR_UNDEF)
			rc = fix_scale(t, l->at[i]);
	return rc;
}

/* ---- variables ---- */

/* fix_user - update a variable's references to scales that were replaced or removed. */
static int fix_user(struct h5_sink *s, uint64_t addr)
{
	auto_hid hid_t set = hdf5_sink_object(s, addr);
	struct lists x = {0};
	size_t had[NC_RANK_LIMIT];
	bool changed = false;
	int rc = 0;

	if (set >= 0 && H5Iget_type(set) == H5I_DATASET)
		(void)lists_read(set, &x); /* n = 0: there is none */
	for (uint32_t k = 0; k < x.n; k++) {
		size_t n = 0;

		had[k] = x.axis[k].len;
		for (size_t i = 0; i < had[k]; i++) {
			hobj_ref_t *ref = (hobj_ref_t *)x.axis[k].p + i;
			uint64_t at = *ref ? hdf5_sink_current_address(s, *ref) : 0;

			changed |= at != *ref;
			if (at != HADDR_UNDEF)
				((hobj_ref_t *)x.axis[k].p)[n++] = at;
		}
		x.axis[k].len = n;
	}
	h5_id_close(&x.a.at); /* an open attribute is not deleted */
	x.a.at = -1;
	if (changed)
		rc = H5Adelete(set, "DIMENSION_LIST") < 0 ||
				     nc_h5_attr_raw(set, "DIMENSION_LIST", x.type, x.n,
						    x.axis) < 0
			     ? -1
			     : 0;
	for (uint32_t k = 0; k < x.n; k++)
		x.axis[k].len = had[k]; /* or the library would not free them */
	lists_release(&x);
	return rc;
}

static int fix_users(struct tying *t)
{
	struct hdf5_sink_list *l = &t->s->users;
	int rc = 0;

	to_current(t->s, l);
	for (size_t i = 0; i < l->n && !rc; i++)
		if (l->at[i] != HADDR_UNDEF && !lists_in_list(&t->retied, l->at[i]))
			rc = fix_user(t->s, l->at[i]);
	return rc;
}

/* tie_axes - write a variable's dimension attributes. */
static int tie_axes(struct h5_sink *s, uint32_t array)
{
	static const char *const own[] = {"DIMENSION_LIST", "_Netcdf4Coordinates"};
	auto_hid hid_t set = hdf5_sink_object(s, s->arrays[array].addr);
	auto_hid hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ);
	hobj_ref_t refs[NC_RANK_LIMIT];
	hvl_t list[NC_RANK_LIMIT];
	int32_t ids[NC_RANK_LIMIT];
	uint32_t rank = lists_axes_of(s, array), tied = 0;
	bool numbered = true;

	if (set < 0 || type < 0 || rank > NC_RANK_LIMIT)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (H5Aexists(set, own[i]) > 0 && H5Adelete(set, own[i]) < 0)
			return -1;
	for (uint32_t k = 0; k < rank; k++) {
		const struct hdf5_sink_dim *d = dim_of(s, array, k);
		bool has = d && d->addr != HADDR_UNDEF;

		refs[k] = has ? d->addr : 0;
		list[k] = (hvl_t){.len = has, .p = &refs[k]};
		ids[k] = has ? d->id : -1;
		numbered &= ids[k] >= 0;
		tied += has;
	}
	if (tied > 0 && !is_own_scale(s, array) &&
	    nc_h5_attr_raw(set, "DIMENSION_LIST", type, rank, list) < 0)
		return -1;
	return rank == 0 || !numbered ? 0
				      : nc_h5_attr_raw(set, "_Netcdf4Coordinates",
						       H5T_NATIVE_INT32, rank, ids);
}

/* old_scales - record the old scales of arrays whose lists are rewritten. */
static int old_scales(struct h5_sink *s)
{
	int rc = 0;

	for (uint32_t i = 0; i < s->view.ds.n_arrays && !rc; i++) {
		auto_hid hid_t set = -1;

		if (!s->arrays[i].retie || s->arrays[i].fresh ||
		    s->arrays[i].addr == HADDR_UNDEF)
			continue;
		set = hdf5_sink_object(s, s->arrays[i].addr);
		rc = set < 0 ? -1 : hdf5_sink_note_references(s, set);
	}
	return rc;
}

int hdf5_sink_dimension_lists(struct h5_sink *s, struct err *e)
{
	struct tying t = {.s = s};
	int rc = old_scales(s);

	/* from here on moves are sorted, and none is added */
	for (uint32_t d = 0; d < s->m->n_dims; d++)
		s->dims[d].addr = hdf5_sink_current_address(s, s->dims[d].addr);
	(void)hdf5_sink_current_address(s, 0);
	rc = rc ? rc : lists_gather(&t);
	t.n_predecessors = s->n_moves;
	t.predecessors = alloc_array(t.n_predecessors, sizeof(*t.predecessors));
	for (size_t i = 0; t.predecessors && i < t.n_predecessors; i++)
		t.predecessors[i] = &s->moves[i];
	if (!t.predecessors)
		rc = -1;
	else
		qsort(t.predecessors, t.n_predecessors, sizeof(*t.predecessors), by_heir);
	rc = rc ? rc : fix_scales(&t);
	rc = rc ? rc : fix_users(&t);
	for (uint32_t i = 0; i < s->view.ds.n_arrays && !rc; i++)
		if (s->arrays[i].retie && s->arrays[i].addr != HADDR_UNDEF)
			rc = tie_axes(s, i);
	free(t.dim_lists);
	free(t.retied.at);
	free(t.predecessors);
	return rc ? hdf5_sink_fail(s, 0, DS_NONE, e) : 0;
}
