/* SPDX-License-Identifier: BSD-3-Clause */
/* model_names.c - converts names and strings of a file to the model's; each change leaves a note.
 *
 * netCDF-C accepts any bytes as a name, up to the first NUL, and equal names. Directory entries
 * have stricter rules: those of the HDF5 source (hdf5/model_groups.c). */
#include "hdf5view/classic/classic_int.h"

#include "base/core/utf8.h"

#include <errno.h>
#include <string.h>

int cdf_full(const struct arena *a, struct err *e)
{
	return arena_full(a, e, "the metadata");
}

int cdf_note(struct cdf_notes *notes, struct err *e, const char *fmt, ...)
{
	va_list ap;
	int rc;

	va_start(ap, fmt);
	rc = ds_notes_add(&notes->list, notes->arena, "/", 1, fmt, ap, e);
	va_end(ap);
	return rc;
}

int cdf_text(struct arena *a, const char *s, size_t n, struct ds_text *ret, bool *ret_mapped,
	     struct err *e)
{
	*ret = (struct ds_text){.s = s, .len = n};
	if (utf8_ok(s, n))
		return 0;
	ret->s = utf8_copy(a, s, n, &ret->len, ret_mapped);
	return ret->s ? 0 : cdf_full(a, e);
}

int cdf_name(struct cdf_notes *notes, const char *kind, const struct ds_text *in,
	     const char **ret, struct err *e)
{
	struct ds_text t;
	bool mapped = false;
	const char *shown;
	size_t n;
	int rc = cdf_text(notes->arena, in->s, in->len, &t, &mapped, e);

	*ret = NULL;
	if (rc == 0 && mapped)
		rc = cdf_note(notes, e,
			      "the name of %s '%s' is not UTF-8 and is read as Latin-1", kind,
			      t.s);
	if (rc < 0)
		return rc;
	shown = ds_name_escape(notes->arena, t.s);
	if (!shown)
		return cdf_full(notes->arena, e);
	n = strlen(shown);
	if (n == 0 || n > DS_NAME_MAX)
		return cdf_note(notes, e,
				"%s '%.80s%s' is left out: a file name has 1 to %d bytes", kind,
				t.s, n > 80 ? "..." : "", DS_NAME_MAX);
	*ret = shown;
	return shown == t.s ? 0
			    : cdf_note(notes, e, "%s '%s' is shown as '%s'", kind, t.s, shown);
}

struct named {
	const char *name;
	uint32_t i;
};

static int classic_model_names_by_name(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;
	int c = strcmp(a->name, b->name);

	return c ? c : a->i < b->i ? -1 : a->i > b->i;
}

int cdf_find_duplicates(const char *const *names, uint32_t n, bool *ret_twice, struct err *e)
{
	auto_free struct named *v = alloc_array(n, sizeof(*v));
	uint32_t m = 0;

	if (!v)
		return err_nomem(e);
	for (uint32_t i = 0; i < n; i++)
		if (names[i])
			v[m++] = (struct named){.name = names[i], .i = i};
	qsort(v, m, sizeof(*v), classic_model_names_by_name);
	for (uint32_t i = 1; i < m; i++)
		if (strcmp(v[i].name, v[i - 1].name) == 0)
			ret_twice[v[i].i] = true;
	return 0;
}
