/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c - verify a model that another process wrote, once, before it is trusted.
 *
 * That process read an untrusted file with a library, which an attacker may have taken over. The
 * checks cover everything that the rest of the program relies on: pointers lead into the region
 * and are aligned, strings end, ordinals exist, sizes and products follow the model's own rules.
 * Values are not judged. */
#include <errno.h>
#include <string.h>

#include "base/core/utf8.h"
#include "hdf5view/isolate/isolated_source.h"

#define TYPE_DEPTH 64
#define PART_COST 64 /* cost of a type or an attribute, in bytes of text */

bool verify_charge(const struct isolated_verify *v, uint64_t n)
{
	if (n > *v->left)
		return false;
	*v->left -= n;
	return true;
}

bool isolated_in(const struct isolated_verify *v, const void *p, uint64_t n, size_t size,
		 size_t align)
{
	uintptr_t at = (uintptr_t)p, base = (uintptr_t)v->base;
	uint64_t bytes;

	if (ckd_mul(&bytes, n, (uint64_t)size))
		return false;
	return at >= base && at - base <= v->size && bytes <= v->size - (at - base) &&
	       at % align == 0;
}

#define HAS ISOLATED_HAS

bool isolated_text(const struct isolated_verify *v, const char *s)
{
	const char *end;
	size_t left;

	if (!isolated_in(v, s, 1, 1, 1))
		return false;
	left = v->size - (size_t)((const uint8_t *)s - v->base);
	end = memchr(s, '\0', left);
	return end && verify_charge(v, (uint64_t)(end - s) + 1);
}

bool isolated_flag(const bool *b)
{
	return *(const unsigned char *)b <= 1;
}

static bool verify_name(const struct isolated_verify *v, const char *s)
{
	size_t n;

	if (!isolated_text(v, s))
		return false;
	n = strlen(s);
	return n > 0 && n <= DS_NAME_MAX && strcmp(s, ".") != 0 && strcmp(s, "..") != 0 &&
	       !strchr(s, '/') && utf8_ok(s, n);
}

static bool verify_sized(const struct dtype *t)
{
	switch (t->kind) {
	case DT_BOOL:
		return t->size == 1;
	case DT_INT:
	case DT_UINT:
		return t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8;
	case DT_FLOAT:
		return t->size == 2 || t->size == 4 || t->size == 8;
	case DT_COMPLEX:
		return t->size == 8 || t->size == 16;
	case DT_STRING:
	case DT_OPAQUE:
	case DT_COMPOUND:
		return t->size > 0;
	case DT_VSTRING:
	case DT_VLEN:
		return t->size == 0;
	}
	return false;
}

static bool verify_type(const struct isolated_verify *v, const struct dtype *t, unsigned depth);

static bool fields(const struct isolated_verify *v, const struct dtype *t, unsigned depth)
{
	uint64_t end = 0;

	if (t->n_fields == 0 || !HAS(v, t->fields, t->n_fields))
		return false;
	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct dt_field *f = &t->fields[i];
		uint64_t n = 1;

		if (!isolated_text(v, f->name) || f->rank > DS_RANK_MAX ||
		    !HAS(v, f->dims, f->rank) || !verify_type(v, &f->type, depth) ||
		    dt_is_vlen(&f->type))
			return false;
		for (uint32_t k = 0; k < f->rank; k++)
			if (ckd_mul(&n, n, f->dims[k]))
				return false;
		if (f->offset != end || ckd_mul(&n, n, (uint64_t)f->type.size) ||
		    ckd_add(&end, end, n) || end > t->size)
			return false;
	}
	return end == t->size;
}

static bool verify_type(const struct isolated_verify *v, const struct dtype *t, unsigned depth)
{
	if (depth == 0 || !verify_charge(v, PART_COST) || !isolated_flag(&t->big_endian) ||
	    !verify_sized(t))
		return false;
	/* readers follow these pointers whenever they are set, whatever the kind */
	if ((t->fields && t->kind != DT_COMPOUND) || (t->base && t->kind != DT_VLEN))
		return false;
	if (t->kind == DT_COMPOUND)
		return fields(v, t, depth - 1);
	if (t->kind != DT_VLEN)
		return true;
	return HAS(v, t->base, 1) && !dt_is_vlen(t->base) && verify_type(v, t->base, depth - 1);
}

static bool attr(const struct isolated_verify *v, const struct ds_attr *a)
{
	uint64_t n = 1;

	if (!isolated_text(v, a->name) || !isolated_flag(&a->of_type) ||
	    !verify_type(v, &a->type, TYPE_DEPTH) || a->rank > DS_RANK_MAX ||
	    !HAS(v, a->dims, a->rank))
		return false;
	for (uint32_t i = 0; i < a->rank; i++)
		if (ckd_mul(&n, n, a->dims[i]))
			return false;
	if (a->n != n && a->n != 0)
		return false;
	if (a->type.kind != DT_STRING &&
	    !dt_is_vlen(&a->type)) /* readers check for strings first */
		return !a->strings &&
		       (a->n == 0 || isolated_in(v, a->data, a->n, a->type.size, 1));
	if (a->data || !HAS(v, a->strings, a->n) || !verify_charge(v, a->n))
		return false;
	for (uint64_t i = 0; i < a->n; i++)
		if (!HAS(v, a->strings[i].s, a->strings[i].len))
			return false;
	return true;
}

static bool attrs(const struct isolated_verify *v, const struct ds_attr *list, uint32_t n)
{
	if (!HAS(v, list, n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!attr(v, &list[i]))
			return false;
	return true;
}

static bool chain(const struct isolated_verify *v, const struct codec_chain *c)
{
	if (c->n > CODEC_CHAIN_MAX || !HAS(v, c->specs, c->n))
		return false;
	for (uint32_t i = 0; i < c->n; i++)
		if (!isolated_text(v, c->specs[i].name) ||
		    !HAS(v, c->specs[i].params, c->specs[i].n_params))
			return false;
	return true;
}

/* grid - check that the products match the shape: every index depends on them. */
static bool grid(const struct isolated_verify *v, const struct ds_array *a)
{
	uint64_t n = 1, bytes = a->type.size;

	if (a->rank > DS_RANK_MAX || !HAS(v, a->shape, a->rank) || !HAS(v, a->chunk, a->rank) ||
	    !HAS(v, a->grid, a->rank) || !HAS(v, a->dims, a->rank))
		return false;
	for (uint32_t i = 0; i < a->rank; i++) {
		if (a->chunk[i] == 0 || a->dims[i] >= v->ds->n_dims ||
		    a->grid[i] !=
			    a->shape[i] / a->chunk[i] + (a->shape[i] % a->chunk[i] != 0) ||
		    ckd_mul(&n, n, a->grid[i]) || ckd_mul(&bytes, bytes, a->chunk[i]))
			return false;
	}
	return n == a->n_chunks && n < (uint64_t)1 << 62 && bytes == a->chunk_bytes &&
	       (a->unreadable || bytes <= v->max_chunk_bytes);
}

static bool verify_array(const struct isolated_verify *v, const struct ds_array *a)
{
	if (!verify_name(v, a->name) || a->group >= v->ds->n_groups ||
	    !verify_type(v, &a->type, TYPE_DEPTH) || !grid(v, a) ||
	    !attrs(v, a->attrs, a->n_attrs) || !chain(v, &a->chain))
		return false;
	if (!isolated_flag(&a->fill_defined) || !isolated_flag(&a->uniform) ||
	    !isolated_flag(&a->checksum) || a->layout > DS_EXTERNAL ||
	    a->access > DS_VARIABLE || (a->convert && !isolated_text(v, a->convert)) ||
	    (a->access == DS_VARIABLE) != dt_is_vlen(&a->type))
		return false;
	if (dt_is_vlen(&a->type) ? a->fill != NULL
				 : !isolated_in(v, a->fill, 1, a->type.size, 1))
		return false;
	if (a->fill_text.s && !HAS(v, a->fill_text.s, a->fill_text.len))
		return false;
	return !a->unreadable || isolated_text(v, a->unreadable);
}

static bool verify_ordinals(const struct isolated_verify *v, const uint32_t *list, uint32_t n,
			    uint32_t limit)
{
	if (!HAS(v, list, n) || !verify_charge(v, n))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (list[i] >= limit)
			return false;
	return true;
}

static bool verify_groups(const struct isolated_verify *v)
{
	const struct dataset *ds = v->ds;

	if (ds->n_groups == 0 || !HAS(v, ds->groups, ds->n_groups))
		return false;
	for (uint32_t i = 0; i < ds->n_groups; i++) {
		const struct ds_group *g = &ds->groups[i];

		/* parents come first, so there is no cycle */
		if (i == 0 ? g->parent != DS_NONE || !isolated_text(v, g->name) || g->name[0]
			   : g->parent >= i || !verify_name(v, g->name))
			return false;
		if (!attrs(v, g->attrs, g->n_attrs) ||
		    !verify_ordinals(v, g->groups, g->n_groups, ds->n_groups) ||
		    !verify_ordinals(v, g->arrays, g->n_arrays, ds->n_arrays) ||
		    !verify_ordinals(v, g->dims, g->n_dims, ds->n_dims))
			return false;
		for (uint32_t k = 0; k < g->n_groups; k++)
			if (g->groups[k] <= i || ds->groups[g->groups[k]].parent != i)
				return false;
	}
	return true;
}

static bool verify_rest(const struct isolated_verify *v)
{
	const struct dataset *ds = v->ds;

	if (!HAS(v, ds->dims, ds->n_dims) || !HAS(v, ds->notes, ds->n_notes) ||
	    !isolated_text(v, ds->format))
		return false;
	for (uint32_t i = 0; i < ds->n_dims; i++)
		if (!isolated_text(v, ds->dims[i].name) || ds->dims[i].group >= ds->n_groups ||
		    !isolated_flag(&ds->dims[i].unlimited) ||
		    !isolated_flag(&ds->dims[i].phony))
			return false;
	for (uint32_t i = 0; i < ds->n_notes; i++)
		if (!isolated_text(v, ds->notes[i]))
			return false;
	if (!HAS(v, ds->lost, ds->n_unreadable) || !verify_charge(v, ds->n_unreadable))
		return false;
	for (uint32_t i = 0; i < ds->n_unreadable; i++)
		if (ds->lost[i].name && !isolated_text(v, ds->lost[i].name))
			return false;
	return true;
}

int isolated_verify(const struct isolated_kind *kind, const struct isolated_model *m,
		    size_t size, uint64_t max_chunk_bytes, struct err *e)
{
	uint64_t left = VERIFY_BUDGET;
	const struct isolated_verify v = {.base = (const uint8_t *)m,
					  .size = size,
					  .ds = &m->ds,
					  .left = &left,
					  .max_chunk_bytes = max_chunk_bytes};
	bool ok = size >= sizeof(*m) && verify_rest(&v) &&
		  HAS(&v, m->ds.arrays, m->ds.n_arrays) && verify_groups(&v);

	for (uint32_t i = 0; ok && i < m->ds.n_arrays; i++)
		ok = verify_array(&v, &m->ds.arrays[i]);
	ok = ok && kind->sound(&v, m->own);
	return ok ? 0
		  : err_set(e, -EBADMSG,
			    "%s's process sent an invalid answer: the file is damaged",
			    kind->child.who);
}
