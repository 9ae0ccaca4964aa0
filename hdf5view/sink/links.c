/* SPDX-License-Identifier: BSD-3-Clause */
/* links.c - objects by address, the links that lead to them, and their moves.
 *
 * A name in the model may have been changed to be valid in a directory, so a link is identified by
 * its target. Removed objects stay open until the end: their addresses are not reused before all
 * references to them have been handled. */
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <string.h>

hid_t hdf5_sink_object(struct h5_sink *s, uint64_t addr)
{
	return addr == HADDR_UNDEF ? -1 : H5Oopen_by_addr(s->file, addr);
}

/* leads - whether a link of a group leads to the object at an address. */
static bool leads(hid_t group, const char *name, uint64_t addr)
{
	H5L_info_t link;
	H5O_info_t info;

	if (H5Lget_info(group, name, &link, H5P_DEFAULT) < 0)
		return false;
	if (link.type == H5L_TYPE_HARD)
		return link.u.address == addr;
	return link.type == H5L_TYPE_SOFT &&
	       H5Oget_info_by_name2(group, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
	       info.addr == addr;
}

struct search {
	uint64_t addr;
	char *name;
};

static herr_t links_each(hid_t group, const char *name, const H5L_info_t *info NZ_UNUSED,
			 void *arg)
{
	struct search *x = arg;

	if (!leads(group, name, x->addr))
		return 0;
	x->name = strdup(name);
	return x->name ? 1 : -1;
}

int hdf5_sink_link(hid_t group, uint64_t addr, const char *guess, char **ret)
{
	struct search x = {.addr = addr};

	if (H5Lexists(group, guess, H5P_DEFAULT) > 0 && leads(group, guess, addr)) {
		*ret = strdup(guess);
		return *ret ? 0 : -ENOMEM;
	}
	(void)H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, links_each, &x);
	*ret = x.name;
	return x.name ? 0 : -ENOENT;
}

int hdf5_sink_relink(hid_t from, const char *link, hid_t to, const char *name)
{
	auto_hid hid_t obj = H5Oopen(from, link, H5P_DEFAULT);

	/* H5Lmove of libhdf5 1.10 crashes on groups that were opened by address */
	return obj < 0 || H5Olink(obj, to, name, H5P_DEFAULT, H5P_DEFAULT) < 0 ||
			       H5Ldelete(from, link, H5P_DEFAULT) < 0
		       ? -1
		       : 0;
}

bool hdf5_sink_links_one(hid_t obj)
{
	H5O_info_t info;

	return H5Oget_info2(obj, &info, H5O_INFO_BASIC) >= 0 && info.rc == 1;
}

bool hdf5_sink_attr_open(hid_t obj, const char *name, struct hdf5_sink_attr *ret)
{
	hssize_t n;

	*ret = (struct hdf5_sink_attr){.at = -1};
	if (H5Aexists(obj, name) > 0)
		ret->at = H5Aopen(obj, name, H5P_DEFAULT);
	ret->type = ret->at < 0 ? -1 : H5Aget_type(ret->at);
	ret->space = ret->at < 0 ? -1 : H5Aget_space(ret->at);
	n = ret->space < 0 ? -1 : H5Sget_simple_extent_npoints(ret->space);
	ret->n = n < 0 ? 0 : (uint64_t)n;
	return n >= 0 && ret->type >= 0;
}

void hdf5_sink_attr_close(struct hdf5_sink_attr *x)
{
	h5_id_close(&x->space);
	h5_id_close(&x->type);
	h5_id_close(&x->at);
	*x = (struct hdf5_sink_attr){0};
}

int hdf5_sink_list_add(struct hdf5_sink_list *l, uint64_t addr)
{
	if (addr == HADDR_UNDEF || addr == 0)
		return 0;
	if (grow_array(&l->at, &l->cap, l->n + 1, sizeof(*l->at)) < 0)
		return -ENOMEM;
	l->at[l->n++] = addr;
	return 0;
}

/* ---- moves ---- */

int hdf5_sink_moved(struct h5_sink *s, uint64_t from, uint64_t to, hid_t held)
{
	if (grow_array(&s->moves, &s->c_moves, s->n_moves + 1, sizeof(*s->moves)) < 0) {
		h5_id_close(&held);
		return -ENOMEM;
	}
	s->moves[s->n_moves++] = (struct hdf5_sink_move){from, to, held};
	s->sorted = false;
	return 0;
}

void hdf5_sink_redirect(struct h5_sink *s, uint64_t from, uint64_t to)
{
	for (size_t i = s->n_moves; i-- > 0 && from != HADDR_UNDEF;)
		if (s->moves[i].from == from) {
			s->moves[i].to = to;
			return;
		}
}

static int by_from(const void *pa, const void *pb)
{
	const struct hdf5_sink_move *a = pa, *b = pb;

	return a->from < b->from ? -1 : a->from > b->from;
}

uint64_t hdf5_sink_current_address(struct h5_sink *s, uint64_t addr)
{
	if (!s->n_moves)
		return addr;
	if (!s->sorted)
		qsort(s->moves, s->n_moves, sizeof(*s->moves), by_from);
	s->sorted = true;
	/* a recreated object can be recreated again, but never be its own successor */
	for (size_t turns = 0; turns <= s->n_moves && addr != HADDR_UNDEF; turns++) {
		const struct hdf5_sink_move key = {.from = addr};
		const struct hdf5_sink_move *x =
			bsearch(&key, s->moves, s->n_moves, sizeof(key), by_from);

		if (!x)
			break;
		addr = x->to;
	}
	return addr;
}
