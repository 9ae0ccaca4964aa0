/* SPDX-License-Identifier: BSD-3-Clause */
/* builder.c - notes and lists of members of a dataset model. */
#include "translate/model/builder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int builder_full(const struct arena *a, struct err *e)
{
	return arena_full(a, e, "the metadata");
}

static int notes_keep(struct ds_notes *n, struct arena *a, const char *text, struct err *e)
{
	const char *copy = arena_strdup(a, text);

	if (!copy)
		return builder_full(a, e);
	if (grow_array(&n->v, &n->cap, n->n + 1, sizeof(*n->v)) < 0)
		return err_nomem(e);
	n->v[n->n++] = copy;
	return 0;
}

int ds_notes_add(struct ds_notes *n, struct arena *a, const char *where, size_t len,
		 const char *fmt, va_list ap, struct err *e)
{
	struct err line = ERR_INIT;
	char text[ERR_TEXT_MAX];

	if (n->n >= DS_NOTES_MAX) {
		n->dropped++;
		return 0;
	}
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	/* err_set makes control characters of names harmless */
	(void)err_set(&line, 0, "%.*s: %s", (int)u64_min(len, 300), where, text);
	return notes_keep(n, a, line.msg, e);
}

int ds_notes_freeze(struct ds_notes *n, struct arena *a, struct dataset *ds, struct err *e)
{
	char more[80];
	int rc = 0;

	(void)snprintf(more, sizeof(more), "%" PRIu64 " more notes of this kind", n->dropped);
	if (n->dropped)
		rc = notes_keep(n, a, more, e);
	if (rc < 0)
		return rc;
	ds->notes = arena_copy(a, n->v, n->n * sizeof(*n->v));
	ds->n_notes = (uint32_t)n->n;
	return ds->notes ? 0 : builder_full(a, e);
}

void ds_notes_release(struct ds_notes *n)
{
	free(n->v);
	*n = (struct ds_notes){0};
}
