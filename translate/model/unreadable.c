/* SPDX-License-Identifier: BSD-3-Clause */
/* unreadable.c - members of a source that cannot be read. */
#include "translate/model/unreadable.h"

#include <errno.h>
#include <string.h>

int unreadable_add(struct unreadable *l, uint32_t group, const char *name, struct err *e)
{
	if (l->n >= UNREADABLE_MAX)
		name = NULL;
	if (!name && l->n && !l->v[l->n - 1].name && l->v[l->n - 1].group == group)
		return 0;
	if (grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0)
		return err_nomem(e);
	l->v[l->n++] = (struct ds_unreadable){.group = group, .name = name};
	return 0;
}

int unreadable_freeze(const struct unreadable *l, const uint32_t *map, struct arena *a,
		      struct dataset *ds, struct err *e)
{
	struct ds_unreadable *v = arena_alloc(a, l->n, sizeof(*v));
	uint32_t n = 0;

	if (!v)
		return arena_full(a, e, "the metadata");
	for (size_t i = 0; i < l->n; i++) {
		uint32_t group = map ? map[l->v[i].group] : l->v[i].group;

		if (group != DS_NONE)
			v[n++] = (struct ds_unreadable){.group = group, .name = l->v[i].name};
	}
	ds->lost = v;
	ds->n_unreadable = n;
	return 0;
}

void unreadable_release(struct unreadable *l)
{
	free(l->v);
	*l = (struct unreadable){0};
}

int ds_absent(const struct dataset *ds, uint32_t group, const char *name, size_t len,
	      struct err *e)
{
	for (uint32_t i = 0; i < ds->n_unreadable; i++) {
		const struct ds_unreadable *x = &ds->lost[i];

		if (x->group == group && (!x->name || (strlen(x->name) == len &&
						       memcmp(x->name, name, len) == 0)))
			return err_set(e, -EIO,
				       "'%.*s' cannot be looked up, because something there is "
				       "damaged: run nczarrfs info for details",
				       (int)len, name);
	}
	return err_set(e, -ENOENT, "no such file");
}
