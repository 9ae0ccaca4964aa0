/* info.c - `nczarrfs info`: what a mount would show of a source, and why.
 *
 * The report is made in a child (run_in_child), in memory, and written at the end, so that a
 * crash on a damaged file leaves one line and nothing else. Texts of values are in
 * print_value.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/observe/log.h"
#include "base/core/str.h"
#include "codecs/spec/spec.h"
#include "fusefs/cmd/info_int.h"
#include "fusefs/mirror/view.h"
#include "fusefs/cmd/progress.h"
#include "fusefs/app/remote.h"
#include "translate/chunkio/delivery.h"

static const char *layout_name(enum ds_layout layout)
{
	static const char *const names[] = {
		[DS_CHUNKED] = "chunked",   [DS_CONTIGUOUS] = "contiguous",
		[DS_COMPACT] = "compact",   [DS_VIRTUAL] = "virtual",
		[DS_EXTERNAL] = "external",
	};

	return (size_t)layout < ARRAY_LEN(names) ? names[layout] : "?";
}

static const char *filter_name(enum cfg_filter filter)
{
	static const char *const names[] = {
		[CFG_FILTER_PORTABLE] = "portable",
		[CFG_FILTER_KEEP] = "keep",
		[CFG_FILTER_NONE] = "none",
	};

	return names[filter];
}

static const struct plan *plan_of(struct view *v, uint32_t array)
{
	return v->ops->plan ? v->ops->plan(v, array) : NULL;
}

/* For people. */

static void info_put_lengths(struct buf *out, const uint64_t *v, uint32_t rank)
{
	for (uint32_t i = 0; i < rank; i++)
		buf_printf(out, "%s%" PRIu64, i ? " x " : "", v[i]);
	if (!rank)
		buf_puts(out, "scalar");
}

static void text_filters(struct buf *out, const struct codec_chain *chain)
{
	char tmp[64];

	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *spec = &chain->specs[i];

		buf_puts(out, i ? ", " : "");
		str_put_plain(out, codec_name(spec, tmp, sizeof(tmp)));
		for (uint32_t p = 0; p < spec->n_params; p++)
			buf_printf(out, "%s%" PRIu32, p ? "," : "(", spec->params[p]);
		buf_puts(out, spec->n_params ? ")" : "");
	}
	if (!chain->n)
		buf_puts(out, "none");
}

#define INDENT 4 /* columns before the name of a variable */

/* zarr_version - of Zarr in whose words codecs are shown. */
static int zarr_version(const struct cfg *cfg, const struct view *v)
{
	return cfg->zarr3 && strcmp(v->ops->name, "zarr") == 0 ? 3 : 2;
}

static void text_array(struct buf *out, struct view *v, uint32_t ordinal, int version)
{
	const struct dataset *ds = &v->source->ds;
	const struct ds_array *a = &ds->arrays[ordinal];
	const struct plan *plan = plan_of(v, ordinal);

	buf_printf(out, "%*s", INDENT, "");
	str_put_plain(out, a->name);
	buf_printf(out, "\n%*stype     ", INDENT + 4, "");
	info_type(out, &a->type);
	buf_printf(out, "\n%*sshape    ", INDENT + 4, "");
	info_put_lengths(out, a->shape, a->rank);
	for (uint32_t i = 0; i < a->rank; i++) {
		buf_puts(out, i ? ", " : "  (");
		str_put_plain(out, ds->dims[a->dims[i]].name);
	}
	buf_printf(out, "%s\n%*schunks   ", a->rank ? ")" : "", INDENT + 4, "");
	info_put_lengths(out, a->chunk, a->rank);
	buf_printf(out, ", %" PRIu64 " in all", a->n_chunks);
	if (a->chunk_bytes) {
		buf_puts(out, ", each ");
		progress_bytes(out, a->chunk_bytes);
	}
	buf_printf(out, "\n%*sfilters  ", INDENT + 4, "");
	text_filters(out, &a->chain);
	if (a->chain.n > 0) {
		buf_printf(out, "\n%*s_Filter  ", INDENT + 4, "");
		codec_spec_print(&a->chain, out);
		buf_printf(out, "\n%*s_Codecs  ", INDENT + 4, "");
		codec_spec_json(&a->chain, a->type.size, version, out);
	}
	buf_printf(out, "\n%*sstorage  %s\n%*sfill     ", INDENT + 4, "",
		   layout_name(a->layout), INDENT + 4, "");
	info_fill(out, a, false);
	if (a->fill_defined)
		buf_puts(out, " (set by the file)");
	if (plan)
		buf_printf(out, "\n%*splan     %s%s", INDENT + 4, "",
			   plan_kind_name(plan->kind), plan->reason[0] ? ": " : "");
	if (plan)
		str_put_plain(out, plan->reason);
	if (plan && plan->kind != PLAN_PASS && plan->chain.n > 0) {
		buf_printf(out, "\n%*sshown    ", INDENT + 4, "");
		text_filters(out, &plan->chain);
	}
	if (a->unreadable) {
		buf_printf(out, "\n%*sproblem  ", INDENT + 4, "");
		str_put_plain(out, a->unreadable);
	}
	if (a->n_attrs)
		buf_printf(out, "\n%*sattributes %" PRIu32, INDENT + 4, "", a->n_attrs);
	buf_putc(out, '\n');
}

/* text_group - one group without its sub-groups. */
static void text_group(struct buf *out, struct view *v, uint32_t ordinal, int version)
{
	const struct dataset *ds = &v->source->ds;
	const struct ds_group *g = &ds->groups[ordinal];

	struct buf path;

	buf_init(&path, 1 << 20);
	ds_group_path(ds, ordinal, &path);
	buf_putc(&path, '\0');
	buf_puts(out, "\ngroup ");
	str_put_plain(out, buf_ok(&path) ? (const char *)path.data : g->name);
	if (path.starved)
		buf_fail(out, &path);
	buf_release(&path);
	if (g->n_attrs)
		buf_printf(out, "\n    attributes %" PRIu32, g->n_attrs);
	buf_putc(out, '\n');
	for (uint32_t i = 0; i < g->n_dims; i++) {
		const struct ds_dim *d = &ds->dims[g->dims[i]];

		buf_puts(out, i ? "               " : "    dimensions ");
		str_put_plain(out, d->name);
		buf_printf(out, " = %" PRIu64 "%s%s\n", d->len,
			   d->unlimited ? " (unlimited)" : "",
			   d->phony ? " (made up: the file names none)" : "");
	}
	for (uint32_t i = 0; i < g->n_arrays; i++)
		text_array(out, v, g->arrays[i], version);
}

static void text_notes(struct buf *out, const char *const *notes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		buf_puts(out, "    ");
		str_put_plain(out, notes[i]);
		buf_putc(out, '\n');
	}
}

/* text_rules - what -o filter= and -o quantize= say, and for how many variables. */
static void text_rules(struct buf *out, const struct app *setup, const struct dataset *ds)
{
	const struct cfg *cfg = setup->cfg;

	buf_printf(out, "filter %s\n", filter_name(cfg->filter));
	for (size_t i = 0; i < cfg->n_filter_rules; i++) {
		buf_puts(out, "       ");
		str_put_plain(out, cfg->filter_rules[i]);
		buf_printf(out, "  (variables: %" PRIu32 ")\n",
			   fs_rules_count(setup->rules->filters.v[i].vars, ds));
	}
	for (size_t i = 0; i < cfg->n_quantize_rules; i++) {
		buf_puts(out, i ? "         " : "quantize ");
		str_put_plain(out, cfg->quantize_rules[i]);
		buf_printf(out, "  (variables: %" PRIu32 ")\n",
			   fs_rules_count(setup->rules->quants.v[i].vars, ds));
	}
}

/* text_remote - of a source on another machine, and what it took to know all this. */
static void text_remote(struct buf *out, const struct dataset *ds)
{
	const uint64_t n = fs_remote_requests();

	if (S_ISDIR(ds->st.st_mode))
		buf_puts(out, "a tree on another machine");
	else
		progress_bytes(out, (uint64_t)ds->st.st_size);
	buf_printf(out, "\nasked  %" PRIu64 " request%s so far", n, n == 1 ? "" : "s");
}

static void info_text_report(struct buf *out, const struct app *setup, struct view *v)
{
	const struct cfg *cfg = setup->cfg;
	const struct dataset *ds = &v->source->ds;

	buf_puts(out, "source ");
	str_put_plain(out, cfg->shown);
	buf_printf(out, "\nformat %s, ", ds->format);
	if (cfg->remote)
		text_remote(out, ds);
	else if (S_ISDIR(ds->st.st_mode))
		buf_puts(out, "a directory");
	else
		progress_bytes(out, (uint64_t)ds->st.st_size);
	buf_printf(out, "\nview   %s%s, %" PRIu32 " group%s, %" PRIu32 " variable%s\n",
		   v->ops->name, zarr_version(cfg, v) == 3 ? " v3" : "", ds->n_groups,
		   ds->n_groups == 1 ? "" : "s", ds->n_arrays, ds->n_arrays == 1 ? "" : "s");
	text_rules(out, setup, ds);
	for (uint32_t i = 0; i < ds->n_groups && buf_ok(out); i++)
		text_group(out, v, i, zarr_version(cfg, v));
	if (ds->n_notes || v->n_notes)
		buf_puts(out, "\nnotes\n");
	text_notes(out, ds->notes, ds->n_notes);
	text_notes(out, v->notes, v->n_notes);
}

/* For programs. */

static void info_json_text(struct buf *out, const char *s)
{
	str_put_json(out, s, strlen(s));
}

static void json_lengths(struct buf *out, const char *name, const uint64_t *v, uint32_t rank)
{
	buf_printf(out, ", \"%s\": [", name);
	for (uint32_t i = 0; i < rank; i++)
		buf_printf(out, "%s%" PRIu64, i ? ", " : "", v[i]);
	buf_putc(out, ']');
}

static void json_attrs(struct buf *out, const struct ds_attr *attrs, uint32_t n)
{
	buf_puts(out, ", \"attributes\": [");
	for (uint32_t i = 0; i < n; i++) {
		buf_puts(out, i ? ", " : "");
		info_json_text(out, attrs[i].name);
	}
	buf_putc(out, ']');
}

/* json_filters - a chain as an array, and as ncdump's text. */
static void json_filters(struct buf *out, const char *name, const char *text_name,
			 const struct codec_chain *chain)
{
	struct buf text;
	char tmp[64];

	buf_printf(out, ", \"%s\": [", name);
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *spec = &chain->specs[i];

		buf_puts(out, i ? ", {\"name\": " : "{\"name\": ");
		info_json_text(out, codec_name(spec, tmp, sizeof(tmp)));
		buf_printf(out, ", \"id\": %" PRIu32 ", \"params\": [", spec->h5_id);
		for (uint32_t p = 0; p < spec->n_params; p++)
			buf_printf(out, "%s%" PRIu32, p ? ", " : "", spec->params[p]);
		buf_puts(out, "]}");
	}
	buf_init(&text, (size_t)1 << 20);
	codec_spec_print(chain, &text);
	buf_printf(out, "], \"%s\": ", text_name);
	str_put_json(out, text.data ? (const char *)text.data : "", text.len);
	buf_release(&text);
}

/* json_path - the path that fn appends, as a JSON string. */
static void json_path(struct buf *out, const struct dataset *ds, uint32_t ordinal,
		      void (*fn)(const struct dataset *, uint32_t, struct buf *))
{
	struct buf path;

	buf_init(&path, 1 << 20);
	fn(ds, ordinal, &path);
	str_put_json(out, path.data ? (const char *)path.data : "", path.len);
	buf_release(&path);
}

static void json_array(struct buf *out, struct view *v, uint32_t ordinal, int version)
{
	const struct dataset *ds = &v->source->ds;
	const struct ds_array *a = &ds->arrays[ordinal];
	const struct plan *plan = plan_of(v, ordinal);
	const struct codec_chain none = {0};
	struct buf type;

	buf_puts(out, "{\"path\": ");
	json_path(out, ds, ordinal, ds_array_path);
	buf_puts(out, ", \"type\": ");
	buf_init(&type, 1 << 20);
	info_type(&type, &a->type);
	str_put_json(out, type.data ? (const char *)type.data : "", type.len);
	buf_release(&type);
	json_lengths(out, "shape", a->shape, a->rank);
	json_lengths(out, "chunks", a->chunk, a->rank);
	buf_puts(out, ", \"dimensions\": [");
	for (uint32_t i = 0; i < a->rank; i++) {
		buf_puts(out, i ? ", " : "");
		info_json_text(out, ds->dims[a->dims[i]].name);
	}
	buf_printf(out,
		   "], \"chunk_count\": %" PRIu64 ", \"chunk_bytes\": %" PRIu64
		   ", \"storage\": \"%s\"",
		   a->n_chunks, a->chunk_bytes, layout_name(a->layout));
	json_filters(out, "filters", "_Filter", &a->chain);
	buf_puts(out, ", \"_Codecs\": ");
	if (a->chain.n > 0)
		codec_spec_json(&a->chain, a->type.size, version, out);
	else
		buf_puts(out, "null");
	buf_printf(out,
		   ", \"fill_defined\": %s, \"fill\": ", a->fill_defined ? "true" : "false");
	info_fill(out, a, true);
	buf_puts(out, ", \"plan\": ");
	info_json_text(out, plan ? plan_kind_name(plan->kind) : "");
	buf_puts(out, ", \"reason\": ");
	info_json_text(out, plan ? plan->reason : "");
	json_filters(out, "shown_filters", "shown_Filter", plan ? &plan->chain : &none);
	buf_puts(out, ", \"problem\": ");
	if (a->unreadable)
		info_json_text(out, a->unreadable);
	else
		buf_puts(out, "null");
	json_attrs(out, a->attrs, a->n_attrs);
	buf_putc(out, '}');
}

static void json_group(struct buf *out, const struct dataset *ds, uint32_t ordinal)
{
	const struct ds_group *g = &ds->groups[ordinal];

	buf_puts(out, "{\"path\": ");
	json_path(out, ds, ordinal, ds_group_path);
	buf_puts(out, ", \"dimensions\": [");
	for (uint32_t i = 0; i < g->n_dims; i++) {
		const struct ds_dim *d = &ds->dims[g->dims[i]];

		buf_puts(out, i ? ", {\"name\": " : "{\"name\": ");
		info_json_text(out, d->name);
		buf_printf(
			out, ", \"length\": %" PRIu64 ", \"unlimited\": %s, \"made_up\": %s}",
			d->len, d->unlimited ? "true" : "false", d->phony ? "true" : "false");
	}
	buf_putc(out, ']');
	json_attrs(out, g->attrs, g->n_attrs);
	buf_putc(out, '}');
}

/* json_rules - n texts of rules as members of an object. */
static void json_rules(struct buf *out, const char *name, char *const *strings, size_t n)
{
	buf_printf(out, ", \"%s\": [", name);
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? ", " : "");
		info_json_text(out, strings[i]);
	}
	buf_putc(out, ']');
}

static void info_json_report(struct buf *out, const struct app *setup, struct view *v)
{
	const struct cfg *cfg = setup->cfg;
	const struct dataset *ds = &v->source->ds;

	buf_puts(out, "{\"source\": ");
	info_json_text(out, cfg->shown);
	buf_puts(out, ", \"format\": ");
	info_json_text(out, ds->format);
	if (S_ISDIR(ds->st.st_mode))
		buf_puts(out, ", \"size\": null, \"view\": ");
	else
		buf_printf(out,
			   ", \"size\": %" PRIu64 ", \"view\": ", (uint64_t)ds->st.st_size);
	info_json_text(out, v->ops->name);
	if (cfg->remote)
		buf_printf(out, ", \"requests\": %" PRIu64, fs_remote_requests());
	buf_puts(out, ", \"filter\": ");
	info_json_text(out, filter_name(cfg->filter));
	json_rules(out, "filter_rules", cfg->filter_rules, cfg->n_filter_rules);
	json_rules(out, "quantize_rules", cfg->quantize_rules, cfg->n_quantize_rules);
	buf_puts(out, ",\n \"groups\": [");
	for (uint32_t i = 0; i < ds->n_groups && buf_ok(out); i++) {
		buf_puts(out, i ? ",\n  " : "\n  ");
		json_group(out, ds, i);
	}
	buf_puts(out, "],\n \"variables\": [");
	for (uint32_t i = 0; i < ds->n_arrays && buf_ok(out); i++) {
		buf_puts(out, i ? ",\n  " : "\n  ");
		json_array(out, v, i, zarr_version(cfg, v));
	}
	buf_puts(out, "],\n \"notes\": [");
	for (uint32_t i = 0; i < ds->n_notes + v->n_notes; i++) {
		buf_puts(out, i ? ",\n  " : "\n  ");
		info_json_text(out, i < ds->n_notes ? ds->notes[i] : v->notes[i - ds->n_notes]);
	}
	buf_puts(out, "]}\n");
}

/* A directory that is mirrored: its datasets, none of which is opened. */

struct info_pair {
	char *source, *name; /* owned */
};

struct info_pairs {
	struct info_pair *v;
	size_t n, cap;
	bool short_of_memory;
};

static bool take_pair(void *arg, const char *source, const char *name)
{
	struct info_pairs *p = arg;
	struct info_pair *at;

	p->short_of_memory = grow_array(&p->v, &p->cap, p->n + 1, sizeof(*p->v)) < 0;
	if (p->short_of_memory)
		return false;
	at = &p->v[p->n++];
	*at = (struct info_pair){.source = strdup(source), .name = strdup(name)};
	p->short_of_memory = !at->source || !at->name;
	return !p->short_of_memory;
}

static int by_source(const void *a, const void *b)
{
	const struct info_pair *x = a, *y = b;

	return strcmp(x->source, y->source);
}

static void text_pairs(struct buf *out, const struct cfg *cfg, const struct info_pairs *p)
{
	buf_puts(out, "source ");
	str_put_plain(out, cfg->shown);
	buf_printf(out, 
		   "\nformat directory\nview   mirror, %zu datasets with a counterpart at its "
		   "top (nczarrfs check: all that are below it)\n",
		   p->n);
	for (size_t i = 0; i < p->n; i++) {
		buf_puts(out, i ? "    " : "\n    ");
		str_put_plain(out, p->v[i].source);
		buf_puts(out, " as ");
		str_put_plain(out, p->v[i].name);
		buf_putc(out, '\n');
	}
}

static void json_pairs(struct buf *out, const struct cfg *cfg, const struct info_pairs *p)
{
	buf_puts(out, "{\"source\": ");
	info_json_text(out, cfg->shown);
	buf_puts(out, ", \"format\": \"directory\", \"view\": \"mirror\",\n \"datasets\": [");
	for (size_t i = 0; i < p->n; i++) {
		buf_puts(out, i ? ",\n  {\"source\": " : "\n  {\"source\": ");
		info_json_text(out, p->v[i].source);
		buf_puts(out, ", \"name\": ");
		info_json_text(out, p->v[i].name);
		buf_putc(out, '}');
	}
	buf_puts(out, "]}\n");
}

static int mirror_report(struct buf *out, const struct cfg *cfg, struct view *v, struct err *e)
{
	struct info_pairs p = {0};
	int rc = mirror_each(v, take_pair, &p, e);

	if (!rc && p.short_of_memory)
		rc = err_nomem(e);
	if (!rc && p.n)
		qsort(p.v, p.n, sizeof(*p.v), by_source);
	if (!rc)
		(cfg->json ? json_pairs : text_pairs)(out, cfg, &p);
	for (size_t i = 0; i < p.n; i++) {
		free(p.v[i].source);
		free(p.v[i].name);
	}
	free(p.v);
	return rc;
}

int info_report(struct buf *out, const struct app *setup, struct view *v, struct err *e)
{
	if (!v->source)
		return mirror_report(out, setup->cfg, v, e);
	if (setup->cfg->json)
		info_json_report(out, setup, v);
	else
		info_text_report(out, setup, v);
	return 0;
}

static int info(void *arg)
{
	const struct app *setup = arg;
	struct source *source = NULL;
	struct view *view = NULL;
	struct err e = ERR_INIT;
	struct buf out;
	bool ok = false;

	if (fs_open_quietly(setup, &source, &view, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	buf_init(&out, (size_t)1 << 30);
	if (info_report(&out, setup, view, &e) < 0)
		log_error("%s", e.msg);
	else if (!buf_ok(&out))
		log_error("info: the report is too long or memory is short");
	else if (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)
		log_error("standard output: could not be written");
	else
		ok = true;
	buf_release(&out);
	view->ops->close(view);
	source_close(source);
	return ok ? 0 : 1;
}

int fs_info(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;

	/* only read by info */
	return run_in_child(cfg->shown, cfg->open_timeout, info, (void *)(uintptr_t)setup);
}
