/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - `nczarrfs info --json`: the whole report as one document, for programs. */
#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"
#include "codecs/spec/spec.h"
#include "fusefs/app/remote.h"
#include "fusefs/cmd/info/info_int.h"
#include "translate/chunkio/delivery.h"

static void json_text(struct buf *out, const char *s)
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
		json_text(out, attrs[i].name);
	}
	buf_puts(out, "], \"attribute_values\": {");
	for (uint32_t i = 0; i < n && buf_ok(out); i++) {
		buf_puts(out, i ? ", " : "");
		json_text(out, attrs[i].name);
		buf_puts(out, ": ");
		info_attr_value(out, &attrs[i], INFO_JSON);
	}
	buf_putc(out, '}');
}

/* json_filters - a chain as an array, and as ncdump's text. */
static void json_filters(struct buf *out, const char *name, const char *text_name,
			 const struct codec_chain *chain)
{
	auto_buf text = buf_of((size_t)1 << 20);
	char tmp[64];

	buf_printf(out, ", \"%s\": [", name);
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *spec = &chain->specs[i];

		buf_puts(out, i ? ", {" : "{");
		str_put_member(out, "name", codec_name(spec, tmp, sizeof(tmp)));
		buf_printf(out, ", \"id\": %" PRIu32 ", \"params\": [", spec->h5_id);
		for (uint32_t p = 0; p < spec->n_params; p++)
			buf_printf(out, "%s%" PRIu32, p ? ", " : "", spec->params[p]);
		buf_puts(out, "]}");
	}
	codec_spec_print(chain, &text);
	buf_printf(out, "], \"%s\": ", text_name);
	str_put_json(out, text.data ? (const char *)text.data : "", text.len);
}

/* json_path - the path that fn appends, as a JSON string. */
static void json_path(struct buf *out, const struct dataset *ds, uint32_t ordinal,
		      void (*fn)(const struct dataset *, uint32_t, struct buf *))
{
	auto_buf path = buf_of(1 << 20);

	fn(ds, ordinal, &path);
	str_put_json(out, path.data ? (const char *)path.data : "", path.len);
}

static void json_array(struct buf *out, struct view *v, uint32_t ordinal, int version)
{
	const struct dataset *ds = &v->source->ds;
	const struct ds_array *a = &ds->arrays[ordinal];
	const struct plan *plan = info_plan(v, ordinal);
	const struct codec_chain none = {0};
	auto_buf type = buf_of(1 << 20);

	buf_puts(out, "{\"path\": ");
	json_path(out, ds, ordinal, ds_array_path);
	buf_puts(out, ", \"type\": ");
	info_type(&type, &a->type);
	str_put_json(out, type.data ? (const char *)type.data : "", type.len);
	json_lengths(out, "shape", a->shape, a->rank);
	json_lengths(out, "chunks", a->chunk, a->rank);
	buf_puts(out, ", \"dimensions\": [");
	for (uint32_t i = 0; i < a->rank; i++) {
		buf_puts(out, i ? ", " : "");
		json_text(out, ds->dims[a->dims[i]].name);
	}
	buf_printf(out,
		   "], \"chunk_count\": %" PRIu64 ", \"chunk_bytes\": %" PRIu64
		   ", \"storage\": \"%s\"",
		   a->n_chunks, a->chunk_bytes, info_layout_name(a->layout));
	json_filters(out, "filters", "_Filter", &a->chain);
	buf_puts(out, ", \"_Codecs\": ");
	if (a->chain.n > 0)
		codec_spec_json(&a->chain, a->type.size, version, out);
	else
		buf_puts(out, "null");
	buf_printf(out,
		   ", \"fill_defined\": %s, \"fill\": ", a->fill_defined ? "true" : "false");
	info_fill(out, a, INFO_JSON);
	buf_printf(out, ", \"fill_default\": %s",
		   info_fill_kind(a) == INFO_FILL_NETCDF ? "true" : "false");
	str_put_member(out, "plan", plan ? plan_kind_name(plan->kind) : "");
	str_put_member(out, "reason", plan ? plan->reason : "");
	json_filters(out, "shown_filters", "shown_Filter", plan ? &plan->chain : &none);
	str_put_member(out, "problem", a->unreadable);
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

		buf_puts(out, i ? ", {" : "{");
		str_put_member(out, "name", d->name);
		buf_printf(
			out, ", \"length\": %" PRIu64 ", \"unlimited\": %s, \"made_up\": %s}",
			d->len, d->unlimited ? "true" : "false", d->phony ? "true" : "false");
	}
	buf_putc(out, ']');
	json_attrs(out, g->attrs, g->n_attrs);
	buf_putc(out, '}');
}

/* json_rules - append n rules (strings) as members of an object. */
static void json_rules(struct buf *out, const char *name, char *const *strings, size_t n)
{
	buf_printf(out, ", \"%s\": [", name);
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? ", " : "");
		json_text(out, strings[i]);
	}
	buf_putc(out, ']');
}

/* json_tally - append the number of variables for each kind of delivery. */
static void json_tally(struct buf *out, struct view *v)
{
	struct info_tally t;

	info_tally_of(v, &t);
	if (t.known)
		buf_printf(out,
			   ", \"delivery\": {\"pass\": %" PRIu32 ", \"decode\": %" PRIu32
			   ", \"encode\": %" PRIu32 ", \"strings\": %" PRIu32
			   ", \"lists\": %" PRIu32 ", \"errors\": %" PRIu32
			   ", \"omitted\": %" PRIu32 "}",
			   t.pass, t.decode, t.encode, t.strings, t.lists, t.errors, t.omitted);
}

void info_json(struct buf *out, const struct app *setup, struct view *v, uint32_t only)
{
	const struct cfg *cfg = setup->cfg;
	const struct dataset *ds = &v->source->ds;
	bool any = false;

	buf_putc(out, '{');
	str_put_member(out, "source", cfg->shown);
	str_put_member(out, "format", ds->format);
	if (S_ISDIR(ds->st.st_mode))
		buf_puts(out, ", \"size\": null");
	else
		buf_printf(out, ", \"size\": %" PRIu64, (uint64_t)ds->st.st_size);
	str_put_member(out, "view", v->ops->name);
	if (v->format)
		str_put_member(out, "view_format", v->format);
	if (cfg->is_remote)
		buf_printf(out, ", \"requests\": %" PRIu64, fs_remote_requests());
	str_put_member(out, "filter", info_filter_name(cfg->rules.filter));
	json_rules(out, "filter_rules", cfg->rules.filters.v, cfg->rules.filters.n);
	json_rules(out, "quantize_rules", cfg->rules.quantize.v, cfg->rules.quantize.n);
	json_tally(out, v);
	buf_puts(out, ",\n \"groups\": [");
	for (uint32_t i = 0; i < ds->n_groups && buf_ok(out); i++) {
		buf_puts(out, i ? ",\n  " : "\n  ");
		json_group(out, ds, i);
	}
	buf_puts(out, "],\n \"variables\": [");
	for (uint32_t i = 0; i < ds->n_arrays && buf_ok(out); i++) {
		if (only != DS_NONE && i != only)
			continue;
		buf_puts(out, any ? ",\n  " : "\n  ");
		any = true;
		json_array(out, v, i, info_zarr_version(cfg, v));
	}
	buf_puts(out, "],\n \"notes\": [");
	for (uint32_t i = 0; i < ds->n_notes + v->n_notes; i++) {
		buf_puts(out, i ? ",\n  " : "\n  ");
		json_text(out, i < ds->n_notes ? ds->notes[i] : v->notes[i - ds->n_notes]);
	}
	buf_puts(out, "]}\n");
}
