/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_table.c - which library is used for a filter, and which codec is paired with it.
 *
 * The first filter with an id is used, and the first codec for a filter; codecs that libraries
 * offer as defaults only if there is no other. Built-in codecs override all. */
#include "codecs/plugin/plugin_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codecs/core/codec_impl.h"

#define REPORT_MAX ((size_t)1 << 20)

/* build - a table under construction. */
struct build {
	const struct plugin_libs *libs;
	const struct plugin_desc *descs;
	struct plugin_table *t;
	size_t cap;
	const char **notes; /* for each entry, why it is not used; NULL: it is used */
};

static const char **note_of(const struct build *b, size_t lib, uint32_t entry)
{
	return &b->notes[lib * PLUGIN_ENTRIES_MAX + entry];
}

static struct plugin *find_id(const struct plugin_table *t, uint32_t h5_id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].ops.h5_id == h5_id)
			return &t->v[i];
	return NULL;
}

/* plugin_table_word - the first word of a filter's own name ("bitshuffle; see https://..."), as
 * users may type it. */
static void plugin_table_word(const char *text, char out[PLUGIN_NAME_MAX])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";

	(void)snprintf(out, PLUGIN_NAME_MAX, "%.*s", (int)strspn(text, letters), text);
}

static int add_filter(struct build *b, size_t lib, uint32_t entry)
{
	const struct plugin_entry *x = &b->descs[lib].v[entry];
	const char *known = codec_known_name(x->h5_id);
	struct plugin_table *t = b->t;
	struct plugin *p;

	if (find_id(t, x->h5_id)) {
		*note_of(b, lib, entry) = "another library has it, too, and comes first";
		return 0;
	}
	if (grow_array(&t->v, &b->cap, t->n + 1, sizeof(*t->v)) < 0)
		return -ENOMEM;
	p = &t->v[t->n++];
	*p = (struct plugin){.can = x->can, .filter_lib = b->libs->v[lib].path};
	p->ops.h5_id = x->h5_id;
	plugin_table_word(known ? known : x->name, p->name);
	if (codec_builtin(x->h5_id))
		*note_of(b, lib, entry) = "nczarrfs has it built in";
	return 0;
}

static bool plugin_table_name_taken(const struct plugin_table *t, const char *name)
{
	if (codec_builtin_zarr2(name, strlen(name)))
		return true;
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->v[i].zarr2, name) == 0)
			return true;
	return false;
}

static void add_codec(struct build *b, size_t lib, uint32_t entry)
{
	const struct plugin_entry *x = &b->descs[lib].v[entry];
	struct plugin *p = find_id(b->t, x->h5_id);
	const char **note = note_of(b, lib, entry);

	if (codec_builtin(x->h5_id))
		*note = "nczarrfs has it built in";
	else if (!p)
		*note = "no library has the filter";
	else if (p->codec_lib)
		*note = "another library has it, too, and comes first";
	else if (!x->name[0] || strpbrk(x->name, "\"\\")) /* would need escapes */
		*note = "its name is not valid";
	if (*note)
		return;
	p->codec_lib = b->libs->v[lib].path;
	p->can |= x->can;
	(void)snprintf(p->codecid, sizeof(p->codecid), "%s", x->name);
	if (plugin_table_name_taken(b->t, x->name))
		*note = "another codec has the same name";
	else
		(void)snprintf(p->zarr2, sizeof(p->zarr2), "%s", x->name);
}

/* plugin_table_add_all - add the entries of one kind, in the order of the libraries. */
static int plugin_table_add_all(struct build *b, enum plugin_what what)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < b->libs->n; i++)
		for (uint32_t k = 0; rc == 0 && k < b->descs[i].n; k++) {
			if (b->descs[i].v[k].what != (uint32_t)what)
				continue;
			if (what == PLUGIN_FILTER)
				rc = add_filter(b, i, k);
			else
				add_codec(b, i, k);
		}
	return rc;
}

/* plugin_table_name_all - name the plugins: HDF5's name for registered filters, else the codec's,
 * else the plugin's own. */
static void plugin_table_name_all(struct plugin_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct plugin *p = &t->v[i];

		if (!codec_known_name(p->ops.h5_id) && p->codecid[0])
			plugin_table_word(p->codecid, p->name);
		if (!p->name[0])
			(void)snprintf(p->name, sizeof(p->name), "filter-%" PRIu32,
				       p->ops.h5_id);
	}
}

/* plugin_table_hide - move plugins that are built in, too, to the end: they are never called. */
static void plugin_table_hide(struct plugin_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!codec_builtin(t->v[i].ops.h5_id)) {
			struct plugin p = t->v[i];

			memmove(&t->v[t->n_shown + 1], &t->v[t->n_shown],
				(i - t->n_shown) * sizeof(p));
			t->v[t->n_shown++] = p;
		}
}

static void report_entry(const struct build *b, size_t lib, uint32_t entry)
{
	const struct plugin_entry *x = &b->descs[lib].v[entry];
	const struct plugin *p = find_id(b->t, x->h5_id);
	const char *note = *note_of(b, lib, entry);
	struct buf *out = &b->t->report;

	buf_puts(out, entry > 0 ? ", " : " ");
	if (x->what == PLUGIN_FILTER)
		buf_printf(out, "%s (%" PRIu32, p ? p->name : x->name, x->h5_id);
	else
		buf_printf(out, "codec '%s' (%" PRIu32, x->name, x->h5_id);
	if (note)
		buf_printf(out, ", not used: %s", note);
	buf_putc(out, ')');
}

static void plugin_table_report(const struct build *b)
{
	struct buf *out = &b->t->report;

	for (size_t i = 0; i < b->libs->n; i++) {
		const struct plugin_lib *l = &b->libs->v[i];

		buf_printf(out, "%s:", l->path);
		if (l->why)
			buf_printf(out, " skipped: %s", l->why);
		for (uint32_t k = 0; !l->why && k < b->descs[i].n; k++)
			report_entry(b, i, k);
		buf_putc(out, '\n');
	}
}

int plugin_table_make(struct plugin_libs *libs, const struct plugin_desc *descs,
		      struct plugin_table **ret, struct err *e)
{
	struct plugin_table *t = alloc_array(1, sizeof(*t));
	struct build b = {.libs = libs, .descs = descs, .t = t};
	int rc;

	b.notes = alloc_array(libs->n * PLUGIN_ENTRIES_MAX, sizeof(*b.notes));
	rc = t && b.notes ? plugin_table_add_all(&b, PLUGIN_FILTER) : -ENOMEM;
	rc = rc ? rc : plugin_table_add_all(&b, PLUGIN_CODEC);
	rc = rc ? rc : plugin_table_add_all(&b, PLUGIN_DEFAULT);
	if (rc < 0) {
		plugin_libs_release(libs);
		free(b.notes);
		if (t)
			free(t->v);
		free(t);
		return err_nomem(e);
	}
	buf_init(&t->report, REPORT_MAX);
	plugin_table_name_all(t);
	plugin_table_hide(t);
	plugin_table_report(&b);
	free(b.notes);
	t->libs = *libs;
	*libs = (struct plugin_libs){0};
	for (size_t i = 0; i < t->n; i++) /* their addresses no longer change */
		plugin_make_ops(&t->v[i]);
	*ret = t;
	return 0;
}
