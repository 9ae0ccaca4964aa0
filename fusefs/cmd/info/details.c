/* SPDX-License-Identifier: BSD-3-Clause */
/* details.c - one variable as `nczarrfs info -v` describes it: chunks, filters, storage, the origin
 * of its fill value, and how its chunks are delivered. */
#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"
#include "codecs/spec/spec.h"
#include "fusefs/cmd/info/info_int.h"
#include "fusefs/cmd/progress.h"
#include "translate/chunkio/delivery.h"

const char *info_layout_name(enum ds_layout layout)
{
	static const char *const names[] = {
		[DS_CHUNKED] = "chunked",   [DS_CONTIGUOUS] = "contiguous",
		[DS_COMPACT] = "compact",   [DS_VIRTUAL] = "virtual",
		[DS_EXTERNAL] = "external",
	};

	return (size_t)layout < ARRAY_LEN(names) ? names[layout] : "?";
}

static void details_lengths(struct buf *out, const uint64_t *v, uint32_t rank)
{
	for (uint32_t i = 0; i < rank; i++)
		buf_printf(out, "%s%" PRIu64, i ? " x " : "", v[i]);
	if (!rank)
		buf_puts(out, "scalar");
}

static void details_filters(struct buf *out, const struct codec_chain *chain)
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

static void details_label(struct buf *out, const char *word)
{
	buf_printf(out, "    %-*s", INFO_LABEL, word);
}

static void details_shape(struct buf *out, const struct dataset *ds, const struct ds_array *a)
{
	details_label(out, "shape");
	details_lengths(out, a->shape, a->rank);
	for (uint32_t i = 0; i < a->rank; i++) {
		buf_puts(out, i ? ", " : "  (");
		str_put_plain(out, ds->dims[a->dims[i]].name);
	}
	buf_puts(out, a->rank ? ")\n" : "\n");
	details_label(out, "chunks");
	details_lengths(out, a->chunk, a->rank);
	buf_printf(out, ", %" PRIu64 " in all", a->n_chunks);
	if (a->chunk_bytes) {
		buf_puts(out, ", each ");
		progress_bytes(out, a->chunk_bytes);
	}
	buf_putc(out, '\n');
}

static void details_chain(struct buf *out, const struct ds_array *a, int version)
{
	details_label(out, "filters");
	details_filters(out, &a->chain);
	buf_putc(out, '\n');
	if (a->chain.n == 0)
		return;
	details_label(out, "_Filter");
	codec_spec_print(&a->chain, out);
	buf_putc(out, '\n');
	details_label(out, "_Codecs");
	codec_spec_json(&a->chain, a->type.size, version, out);
	buf_putc(out, '\n');
}

static void details_plan(struct buf *out, const struct plan *plan)
{
	details_label(out, "plan");
	buf_printf(out, "%s%s", plan_kind_name(plan->kind), plan->reason[0] ? ": " : "");
	str_put_plain(out, plan->reason);
	buf_putc(out, '\n');
	if (plan->kind == PLAN_PASS || plan->chain.n == 0)
		return;
	details_label(out, "shown");
	details_filters(out, &plan->chain);
	buf_putc(out, '\n');
}

void info_details(struct buf *out, struct view *v, uint32_t ordinal, int version)
{
	static const char *const kinds[] = {
		[INFO_FILL_NONE] = "",
		[INFO_FILL_NETCDF] = " (netCDF's default)",
		[INFO_FILL_FILE] = " (set by the file)",
	};
	const struct dataset *ds = &v->source->ds;
	const struct ds_array *a = &ds->arrays[ordinal];
	const struct plan *plan = info_plan(v, ordinal);

	details_label(out, "type");
	info_type(out, &a->type);
	buf_putc(out, '\n');
	details_shape(out, ds, a);
	details_chain(out, a, version);
	details_label(out, "storage");
	buf_printf(out, "%s\n", info_layout_name(a->layout));
	details_label(out, "fill");
	info_fill(out, a, INFO_TEXT);
	buf_printf(out, "%s\n", kinds[info_fill_kind(a)]);
	if (plan)
		details_plan(out, plan);
	if (a->unreadable) {
		details_label(out, "problem");
		str_put_plain(out, a->unreadable);
		buf_putc(out, '\n');
	}
}
