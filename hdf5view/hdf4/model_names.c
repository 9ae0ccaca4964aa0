/* SPDX-License-Identifier: BSD-3-Clause */
/* model_names.c - converts names of HDF4 files to the model's, and adds notes.
 *
 * In HDF4 a name is any bytes, and any number of arrays may share it: HDF-EOS files have a
 * 'Latitude' in every swath. HDF-EOS puts the swath or grid of an array in its dimension names
 * ("YDim:Grid1"), so the array's name can include it; otherwise it gets the reference number. */
#include "hdf5view/hdf4/hdf4_int.h"

#ifdef NCZARRFS_HDF4
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/utf8.h"

int h4_full(const struct h4_build *b, struct err *e)
{
	return arena_full(b->arena, e, "the metadata");
}

int h4_note(struct h4_build *b, const char *what, struct err *e, const char *fmt, ...)
{
	char where[202];
	va_list ap;
	int rc;

	(void)snprintf(where, sizeof(where), "/%.200s", what);
	va_start(ap, fmt);
	rc = ds_notes_add(&b->notes, b->arena, where, strlen(where), fmt, ap, e);
	va_end(ap);
	return rc;
}

int h4_mark_unreadable(struct h4_build *b, const char *name, const char *what,
		       const struct err *why, struct err *e)
{
	int rc = h4_note(b, name ? name : what, e, "is left out: %s", why->msg);

	/* a member that was read and has no presentation is proven absent from the view */
	if (rc == 0 && why->code != -EOPNOTSUPP)
		rc = unreadable_add(&b->lost, 0, name, e);
	return rc;
}

const char *h4_name(struct h4_build *b, const char *raw)
{
	char name[DS_NAME_MAX + 1];
	size_t n;
	const char *s = utf8_copy(b->arena, raw, strlen(raw), &n, NULL);

	if (!s)
		return NULL;
	n = utf8_prefix(s, DS_NAME_MAX);
	memcpy(name, s, n);
	name[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (name[i] == '/')
			name[i] = '_';
	if (n == 0)
		memcpy(name, "unnamed", 8);
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		memset(name, '_', n);
	if (strcmp(name, s) != 0)
		s = arena_strdup(b->arena, name);
	s = s ? ds_name_escape(b->arena, s) : NULL;
	if (!s || strlen(s) <= DS_NAME_MAX)
		return s;
	n = utf8_prefix(s, DS_NAME_MAX);
	memcpy(name, s, n);
	name[n] = '\0';
	return arena_strdup(b->arena, name);
}

/* ---- unique names ---- */

/* names_names - a hash table of names: ordinals plus one. */
struct names_names {
	uint32_t *slots;
	size_t mask;
};

typedef const char *name_of(const struct h4_build *b, size_t i);

static const char *array_name(const struct h4_build *b, size_t i)
{
	return b->arrays[i].a.name;
}

static const char *dim_name(const struct h4_build *b, size_t i)
{
	return b->dims[i].d.name;
}

static int names_init(struct names_names *t, size_t n)
{
	size_t size = 16;

	while (size / 2 < n)
		size *= 2;
	t->slots = alloc_array(size, sizeof(*t->slots));
	t->mask = size - 1;
	return t->slots ? 0 : -ENOMEM;
}

/* names_slot - the slot of a name, or the free slot for it. */
static uint32_t *names_slot(const struct h4_build *b, const struct names_names *t, name_of *of,
			    const char *name)
{
	size_t at = (size_t)hash_u64(hash_text(HASH_SEED, name)) & t->mask;

	while (t->slots[at] && strcmp(of(b, t->slots[at] - 1), name) != 0)
		at = (at + 1) & t->mask;
	return &t->slots[at];
}

/* eos_part - the part after a colon that is common to all dimension names of an array, or NULL. */
static const char *eos_part(const struct h4_build *b, const struct ds_array *a)
{
	const char *part = NULL;

	for (uint32_t i = 0; i < a->rank; i++) {
		const char *colon = strrchr(b->dims[a->dims[i]].d.name, ':');

		if (!colon || !colon[1] || (part && strcmp(part, colon + 1) != 0))
			return NULL;
		part = colon + 1;
	}
	return part;
}

/* names_longer - make "<name>_<more>", in the arena, valid for the model. */
static const char *names_longer(struct h4_build *b, const char *name, const char *more)
{
	char text[DS_NAME_MAX + 1];
	size_t tail = utf8_prefix(more, DS_NAME_MAX / 2);
	size_t head = utf8_prefix(name, DS_NAME_MAX - 1 - tail);

	(void)snprintf(text, sizeof(text), "%.*s_%.*s", (int)head, name, (int)tail, more);
	return arena_strdup(b->arena, text);
}

/* names_rename_array - rename an array whose name is in use. first: suffix to try
 * before numbers; may be NULL. */
static int names_rename_array(struct h4_build *b, const struct names_names *t, size_t i,
			      const char *first, struct err *e)
{
	struct h4_barray *w = &b->arrays[i];
	const char *was = w->a.name, *more = first;
	char number[24];

	for (uint32_t k = 0;; k++) {
		const char *name;

		if (!more && k < 2)
			(void)snprintf(number, sizeof(number), "%" PRId32, w->ref);
		else if (!more)
			(void)snprintf(number, sizeof(number), "%" PRId32 "_%" PRIu32, w->ref,
				       k);
		more = more ? more : number;
		name = names_longer(b, was, more);
		if (!name)
			return h4_full(b, e);
		more = NULL;
		if (*names_slot(b, t, array_name, name))
			continue;
		w->a.name = name;
		*names_slot(b, t, array_name, name) = (uint32_t)i + 1;
		return h4_note(b, name, e,
			       "has the name '%s' in the file, as have other arrays", was);
	}
}

/* names_mark - mark the arrays that keep their names: the first one of each name,
 * preferably the coordinate variable. *dup: arrays whose names occur more than once. */
static void names_mark(const struct h4_build *b, const struct names_names *t, bool *dup)
{
	for (size_t i = 0; i < b->n_arrays; i++) {
		uint32_t *at = names_slot(b, t, array_name, b->arrays[i].a.name);

		if (*at) {
			dup[i] = dup[*at - 1] = true;
			if (!b->arrays[i].coordinate || b->arrays[*at - 1].coordinate)
				continue;
		}
		*at = (uint32_t)i + 1;
	}
}

static int arrays_resolve(struct h4_build *b, struct err *e)
{
	auto_free bool *dup = alloc_array(b->n_arrays, sizeof(*dup));
	auto_free uint32_t *kept = NULL;
	struct names_names t;
	int rc = 0;

	if (!dup || names_init(&t, 2 * b->n_arrays) < 0)
		return err_nomem(e);
	kept = t.slots;
	names_mark(b, &t, dup);
	for (size_t i = 0; i < b->n_arrays && rc == 0; i++) {
		const struct h4_barray *w = &b->arrays[i];
		const char *part = dup[i] && !w->coordinate ? eos_part(b, &w->a) : NULL;
		bool keeps = *names_slot(b, &t, array_name, w->a.name) == i + 1;

		/* in HDF-EOS files none keeps the bare name, which would be ambiguous */
		if (dup[i] && (part || !keeps))
			rc = names_rename_array(b, &t, i, part, e);
	}
	return rc;
}

static int dims_resolve(struct h4_build *b, struct err *e)
{
	auto_free uint32_t *kept = NULL;
	struct names_names t;
	int rc = 0;

	if (names_init(&t, b->n_dims) < 0)
		return err_nomem(e);
	kept = t.slots;
	for (size_t i = 0; i < b->n_dims && rc == 0; i++) {
		struct ds_dim *d = &b->dims[i].d;
		const char *was = d->name;
		char more[48];

		for (uint32_t k = 0; *names_slot(b, &t, dim_name, d->name); k++) {
			if (k == 0)
				(void)snprintf(more, sizeof(more), "%" PRIu64, d->len);
			else
				(void)snprintf(more, sizeof(more), "%" PRIu64 "_%" PRIu32,
					       d->len, k);
			d->name = names_longer(b, was, more);
			if (!d->name)
				return h4_full(b, e);
		}
		*names_slot(b, &t, dim_name, d->name) = (uint32_t)i + 1;
		if (d->name != was)
			rc = h4_note(b, d->name, e,
				     "is a dimension with the name '%s' in the file, as is "
				     "another one of another length",
				     was);
	}
	return rc;
}

int h4_names_resolve(struct h4_build *b, struct err *e)
{
	int rc = arrays_resolve(b, e);

	return rc < 0 ? rc : dims_resolve(b, e);
}

#endif
