/* SPDX-License-Identifier: BSD-3-Clause */
/* summary.c - the first lines of `nczarrfs info`: what the source contains, and how it would be
 * shown. */
#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"
#include "fusefs/app/remote.h"
#include "fusefs/cmd/info/info_int.h"
#include "fusefs/cmd/progress.h"

const char *info_filter_name(enum cfg_filter filter)
{
	static const char *const names[] = {
		[CFG_FILTER_PORTABLE] = "portable",
		[CFG_FILTER_KEEP] = "keep",
		[CFG_FILTER_NONE] = "none",
	};

	return names[filter];
}

void info_label(struct buf *out, const char *word)
{
	buf_printf(out, "%-*s", INFO_LABEL, word);
}

void info_count(struct buf *out, uint64_t n, const char *one, const char *many)
{
	buf_printf(out, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

void info_tally_of(struct view *v, struct info_tally *ret)
{
	const struct dataset *ds = &v->source->ds;

	*ret = (struct info_tally){.omitted = ds->n_unreadable, .known = v->ops->plan != NULL};
	for (uint32_t i = 0; i < ds->n_arrays && ret->known; i++) {
		const struct plan *plan = info_plan(v, i);

		switch (plan ? plan->kind : PLAN_HIDE) {
		case PLAN_PASS:
			ret->pass++;
			break;
		case PLAN_DECODE:
			ret->decode++;
			break;
		case PLAN_ENCODE:
			ret->encode++;
			break;
		case PLAN_VLEN:
			ret->strings += ds->arrays[i].type.kind == DT_VSTRING;
			ret->lists += ds->arrays[i].type.kind != DT_VSTRING;
			break;
		case PLAN_FIXED:
			ret->strings++;
			break;
		case PLAN_HIDE:
			ret->omitted++;
			break;
		case PLAN_ERROR:
			ret->errors++;
			break;
		}
	}
}

static void summary_delivery(struct buf *out, struct view *v)
{
	struct info_tally t;
	bool any = false;

	info_tally_of(v, &t);
	const struct {
		uint32_t n;
		const char *one, *many;
	} rows[] = {
		{t.pass, "passes through unchanged", "pass through unchanged"},
		{t.decode, "is decoded", "are decoded"},
		{t.encode, "is encoded again", "are encoded again"},
		{t.strings, "holds strings", "hold strings"},
		{t.lists, "holds variable-length arrays", "hold variable-length arrays"},
		{t.errors, "cannot be read", "cannot be read"},
	};

	if (!t.known)
		return;
	info_label(out, "delivery");
	info_count(out, v->source->ds.n_arrays, "variable: ", "variables: ");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].n == 0)
			continue;
		buf_puts(out, any ? ", " : "");
		info_count(out, rows[i].n, rows[i].one, rows[i].many);
		any = true;
	}
	/* only warnings report what a source has left out because it cannot represent it */
	if (t.omitted || !(v->source->ds.n_notes || v->n_notes))
		buf_printf(out, "%s%" PRIu32 " omitted\n", any ? "; " : "", t.omitted);
	else
		buf_printf(out, "%sthe warnings state what is omitted\n", any ? "; " : "");
}

/* summary_rules - the -o filter= and -o quantize= rules, and how many variables each matches. */
static void summary_rules(struct buf *out, const struct app *setup, const struct dataset *ds)
{
	const struct cfg *cfg = setup->cfg;

	info_label(out, "filter");
	buf_printf(out, "%s\n", info_filter_name(cfg->rules.filter));
	for (size_t i = 0; i < cfg->rules.filters.n; i++) {
		info_label(out, "");
		str_put_plain(out, cfg->rules.filters.v[i]);
		buf_printf(out, "  (variables: %" PRIu32 ")\n",
			   fs_rules_count(setup->rules->filters.v[i].vars, ds));
	}
	for (size_t i = 0; i < cfg->rules.quantize.n; i++) {
		info_label(out, i ? "" : "quantize");
		str_put_plain(out, cfg->rules.quantize.v[i]);
		buf_printf(out, "  (variables: %" PRIu32 ")\n",
			   fs_rules_count(setup->rules->quants.v[i].vars, ds));
	}
}

static void summary_format(struct buf *out, const struct cfg *cfg, const struct dataset *ds)
{
	const bool dir = S_ISDIR(ds->st.st_mode);

	info_label(out, "format");
	buf_printf(out, "%s, ", ds->format);
	if (dir)
		buf_puts(out, cfg->is_remote ? "remote store" : "directory");
	else
		progress_bytes(out, (uint64_t)ds->st.st_size);
	buf_puts(out, cfg->is_remote && !dir ? ", remote file\n" : "\n");
	if (cfg->is_remote) {
		info_label(out, "network");
		info_count(out, fs_remote_requests(), "request", "requests");
		buf_puts(out, " for this report\n");
	}
}

static void summary_view(struct buf *out, const struct app *setup, struct view *v)
{
	info_label(out, "view");
	if (strcmp(v->ops->name, "zarr") == 0) {
		buf_printf(out, "zarr v%d: a mount shows a Zarr store\n",
			   info_zarr_version(setup->cfg, v));
		return;
	}
	buf_printf(out, "%s: a mount shows one %s file, ", v->ops->name,
		   v->format ? v->format : "netCDF-4");
	str_put_plain(out, setup->file_name);
	buf_putc(out, '\n');
}

void info_summary(struct buf *out, const struct app *setup, struct view *v)
{
	const struct dataset *ds = &v->source->ds;
	const uint64_t warnings = (uint64_t)ds->n_notes + v->n_notes;

	info_label(out, "source");
	str_put_plain(out, setup->cfg->shown);
	buf_putc(out, '\n');
	summary_format(out, setup->cfg, ds);
	summary_view(out, setup, v);
	info_label(out, "contents");
	info_count(out, ds->n_groups, "group, ", "groups, ");
	info_count(out, ds->n_dims, "dimension, ", "dimensions, ");
	info_count(out, ds->n_arrays, "variable, ", "variables, ");
	info_count(out, ds->groups[0].n_attrs, "global attribute\n", "global attributes\n");
	summary_delivery(out, v);
	summary_rules(out, setup, ds);
	info_label(out, "warnings");
	if (warnings)
		buf_printf(out, "%" PRIu64 ", listed at the end\n", warnings);
	else
		buf_puts(out, "none\n");
}
