/* SPDX-License-Identifier: BSD-3-Clause */
/* model_filters.c - creation properties: the filter pipeline and the fill value. */
#include "hdf5view/hdf5/library.h"

#include <errno.h>
#include <string.h>

/* available - whether the library can run a filter, by itself or with a codec of this program. The
 * answer is cached, because a plugin may have to be loaded. */
static bool available(struct h5_build *b, uint32_t id)
{
	bool yes;

	for (uint32_t i = 0; i < b->n_filters; i++)
		if (b->filters[i].id == id)
			return b->filters[i].avail;
	yes = h5_filter_ready(id);
	if (b->n_filters < ARRAY_LEN(b->filters)) {
		b->filters[b->n_filters].id = id;
		b->filters[b->n_filters++].avail = yes;
	}
	return yes;
}

static int filters_read_one(struct h5_build *b, hid_t dcpl, unsigned i, struct codec_spec *spec,
			    struct err *e)
{
	unsigned few[32], flags, config;
	auto_free unsigned *many = NULL;
	unsigned *params = few;
	size_t n = ARRAY_LEN(few);
	char name[256] = "";
	bool mapped = false;
	uint32_t *copy;
	H5Z_filter_t id = H5Pget_filter2(dcpl, i, &flags, &n, few, sizeof(name), name, &config);

	if (id >= 0 && n > ARRAY_LEN(few)) {
		size_t all = n;

		many = all <= UINT16_MAX ? alloc_array(all, sizeof(*many)) : NULL;
		if (!many)
			return err_set(e, -EOPNOTSUPP, "filter %d has too many parameters", id);
		params = many;
		id = H5Pget_filter2(dcpl, i, &flags, &n, many, sizeof(name), name, &config);
		n = n < all ? n : all;
	}
	if (id < 0)
		return h5_error(e, -EBADMSG, "its filters cannot be read");
	name[sizeof(name) - 1] = '\0';
	copy = arena_alloc(b->arena, n, sizeof(*copy));
	spec->name = h5_name(b, name, &mapped);
	if (!copy || !spec->name)
		return h5_full(b, e);
	for (size_t k = 0; k < n; k++)
		copy[k] = params[k];
	spec->h5_id = (uint32_t)id;
	spec->n_params = (uint32_t)n;
	spec->params = copy;
	return 0;
}

/* filters_judge - whether this program, only the library, or neither can decode the
 * chain. */
static int filters_judge(struct h5_build *b, struct ds_array *a, struct err *e)
{
	struct buf why;

	if (codec_chain_decodable(&a->chain) && a->access == DS_STORED)
		return 0;
	for (uint32_t i = 0; i < a->chain.n; i++) {
		const struct codec_spec *s = &a->chain.specs[i];

		if (available(b, s->h5_id))
			continue;
		buf_init(&why, ERR_TEXT_MAX);
		codec_missing(s, &why);
		a->unreadable = arena_copy(b->arena, why.data, why.len);
		buf_release(&why);
		return a->unreadable ? 0 : h5_full(b, e);
	}
	if (a->access == DS_STORED)
		a->access = DS_CONVERT;
	return 0;
}

int h5_filters_read(struct h5_build *b, hid_t dcpl, struct ds_array *a, struct err *e)
{
	int n = H5Pget_nfilters(dcpl);
	struct codec_spec *specs;

	if (n < 0 || n > CODEC_CHAIN_MAX)
		return h5_error(e, -EBADMSG, "its filters cannot be read");
	if (n == 0)
		return 0;
	specs = arena_alloc(b->arena, (size_t)n, sizeof(*specs));
	if (!specs)
		return h5_full(b, e);
	for (unsigned i = 0; i < (unsigned)n; i++) {
		int rc = filters_read_one(b, dcpl, i, &specs[i], e);

		if (rc < 0)
			return rc;
	}
	a->chain.n = (uint32_t)n;
	a->chain.specs = specs;
	return filters_judge(b, a, e);
}

static int filters_fill_text(struct h5_build *b, hid_t dcpl, hid_t mem, struct ds_array *a,
			     struct err *e)
{
	char *s = NULL;
	const char *text;
	bool mapped = false;

	if (H5Pget_fill_value(dcpl, mem, &s) < 0)
		return h5_error(e, -EBADMSG, "its fill value cannot be read");
	text = h5_name(b, s ? s : "", &mapped);
	(void)H5free_memory(s);
	if (!text)
		return h5_full(b, e);
	a->fill_text = (struct ds_text){.s = text, .len = strlen(text)};
	a->fill_defined = true;
	return 0;
}

int h5_fill_read(struct h5_build *b, hid_t dcpl, hid_t file_type, struct ds_array *a,
		 struct err *e)
{
	auto_hid hid_t mem = -1;
	H5D_fill_value_t state = H5D_FILL_VALUE_UNDEFINED;
	auto_free uint8_t *v = NULL;
	uint8_t *fill;

	a->fill_text = (struct ds_text){.s = arena_strdup(b->arena, ""), .len = 0};
	if (!a->fill_text.s)
		return h5_full(b, e);
	fill = arena_alloc(b->arena, 1, a->type.size);
	a->fill = dt_is_vlen(&a->type) ? NULL : fill;
	if (!fill)
		return h5_full(b, e);
	if (H5Pfill_value_defined(dcpl, &state) < 0 || state != H5D_FILL_VALUE_USER_DEFINED)
		return 0;
	mem = h5_type_mem(file_type, false);
	if (mem < 0)
		return h5_error(e, -EBADMSG, "its type cannot be read");
	if (a->type.kind == DT_VSTRING && H5Tget_class(mem) == H5T_STRING)
		return filters_fill_text(b, dcpl, mem, a, e);
	if (dt_is_vlen(&a->type))
		return 0;
	/* an array type's fill value has all its elements; the model has room for one */
	v = alloc_array(H5Tget_size(mem), 1);
	if (!v)
		return err_nomem(e);
	if (H5Pget_fill_value(dcpl, mem, v) < 0)
		return h5_error(e, -EBADMSG, "its fill value cannot be read");
	for (size_t i = a->type.size; i < H5Tget_size(mem); i++)
		if (v[i] != v[i - a->type.size])
			return 0;
	memcpy(fill, v, a->type.size);
	a->fill_defined = true;
	return 0;
}
