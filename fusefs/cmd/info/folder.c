/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.c - `nczarrfs info` of a mirrored directory: its datasets, and those without a converted
 * view. None of them is opened. */
#include <stdlib.h>
#include <string.h>

#include "base/core/str.h"
#include "fusefs/cmd/info/info_int.h"
#include "fusefs/mirror/view.h"

struct folder_pair {
	char *source, *name; /* owned */
	char *why;           /* owned; NULL: it is shown */
};

struct folder_pairs {
	struct folder_pair *v;
	size_t n, cap, shown; /* shown: the first of v */
	bool short_of_memory;
};

static bool take_pair(void *arg, const char *source, const char *name, const char *why)
{
	struct folder_pairs *p = arg;
	struct folder_pair *at;

	p->short_of_memory = grow_array(&p->v, &p->cap, p->n + 1, sizeof(*p->v)) < 0;
	if (p->short_of_memory)
		return false;
	at = &p->v[p->n++];
	*at = (struct folder_pair){.source = strdup(source),
				   .name = strdup(name),
				   .why = why ? strdup(why) : NULL};
	p->shown += !why;
	p->short_of_memory = !at->source || !at->name || (why && !at->why);
	return !p->short_of_memory;
}

/* folder_order - entries that are shown come first. */
static int folder_order(const void *a, const void *b)
{
	const struct folder_pair *x = a, *y = b;
	int r = (x->why != NULL) - (y->why != NULL);

	r = r ? r : strcmp(x->source, y->source);
	return r ? r : strcmp(x->name, y->name);
}

/* folder_datasets - number of datasets among n entries: some have two names. */
static uint64_t folder_datasets(const struct folder_pair *v, size_t n)
{
	uint64_t datasets = 0;

	for (size_t i = 0; i < n; i++)
		datasets += i == 0 || strcmp(v[i].source, v[i - 1].source) != 0;
	return datasets;
}

static void folder_text(struct buf *out, const struct cfg *cfg, const struct folder_pairs *p)
{
	info_label(out, "source");
	str_put_plain(out, cfg->shown);
	buf_putc(out, '\n');
	info_label(out, "format");
	buf_puts(out, "directory\n");
	info_label(out, "view");
	buf_puts(out, "mirror, ");
	info_count(out, folder_datasets(p->v, p->shown), "dataset", "datasets");
	buf_puts(out, " in the other format (subdirectories are not counted)\n");
	if (p->n > p->shown) {
		info_label(out, "warnings");
		info_count(out, p->n - p->shown, "name is taken, listed at the end\n",
			   "names are taken, listed at the end\n");
	}
	for (size_t i = 0; i < p->n; i++) {
		const struct folder_pair *at = &p->v[i];

		if (i == 0 && !at->why)
			buf_puts(out, "\nshown\n");
		if (at->why && (i == 0 || !p->v[i - 1].why))
			buf_puts(out, "\nskipped\n");
		buf_puts(out, "    ");
		str_put_plain(out, at->source);
		buf_puts(out, at->why ? " is not shown as " : " as ");
		str_put_plain(out, at->name);
		buf_puts(out, at->why ? ": " : "");
		str_put_plain(out, at->why ? at->why : "");
		buf_putc(out, '\n');
	}
}

static void folder_json_pairs(struct buf *out, const struct folder_pair *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? ",\n  {" : "\n  {");
		str_put_member(out, "source", v[i].source);
		str_put_member(out, "name", v[i].name);
		if (v[i].why)
			str_put_member(out, "reason", v[i].why);
		buf_putc(out, '}');
	}
}

static void folder_json(struct buf *out, const struct cfg *cfg, const struct folder_pairs *p)
{
	buf_putc(out, '{');
	str_put_member(out, "source", cfg->shown);
	buf_puts(out, ", \"format\": \"directory\", \"view\": \"mirror\",\n \"datasets\": [");
	folder_json_pairs(out, p->v, p->shown);
	buf_puts(out, "],\n \"skipped\": [");
	folder_json_pairs(out, p->v + p->shown, p->n - p->shown);
	buf_puts(out, "]}\n");
}

int info_folder(struct buf *out, const struct cfg *cfg, struct view *v, struct err *e)
{
	struct folder_pairs p = {0};
	int rc = mirror_each(v, take_pair, &p, e);

	if (!rc && p.short_of_memory)
		rc = err_nomem(e);
	if (!rc && p.n)
		qsort(p.v, p.n, sizeof(*p.v), folder_order);
	if (!rc && cfg->json)
		folder_json(out, cfg, &p);
	else if (!rc)
		folder_text(out, cfg, &p);
	for (size_t i = 0; i < p.n; i++) {
		free(p.v[i].source);
		free(p.v[i].name);
		free(p.v[i].why);
	}
	free(p.v);
	return rc;
}
