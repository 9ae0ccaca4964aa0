/* SPDX-License-Identifier: BSD-3-Clause */
/* filters.c - nczarrfs filters: every filter that this program can run, under all its names, and
 * the plugin libraries that were searched. */
#include "fusefs/app/fusefs.h"

#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"
#include "codecs/core/codec.h"
#include "codecs/plugin/plugin.h"

enum { NAME, HDF5, ZARR2, ZARR3, DOES, PASSES, SOURCE, COLUMNS };

#define CELL_MAX 256

static const char *const titles[COLUMNS] = {
	[NAME] = "name", [HDF5] = "HDF5",        [ZARR2] = "Zarr v2",     [ZARR3] = "Zarr v3",
	[DOES] = "does", [PASSES] = "passes to", [SOURCE] = "comes from",
};

static bool has_hdf5_id(const struct codec_ops *ops)
{
	return ops->h5_id < CODEC_PRIVATE;
}

static void does(const struct codec_ops *ops, struct buf *out)
{
	buf_puts(out, ops->decode ? "decode" : "");
	if (ops->encode)
		buf_printf(out, "%sencode%s", ops->decode ? ", " : "",
			   ops->lossy ? " (lossy)" : "");
}

/* wraps - true if Zarr v3 stores its chunks as Blosc buffers: codecs/compress/blosc_wrap.h. */
static bool wraps(const struct codec_ops *ops)
{
	return ops->h5_id == CODEC_SHUFFLE || ops->h5_id == CODEC_DEFLATE ||
	       ops->h5_id == CODEC_ZSTD;
}

/* filters_passes - append the formats whose readers can decode stored chunks unchanged; '*': only
 * if the user states that the readers have this codec. */
static void filters_passes(const struct codec_ops *ops, struct buf *out)
{
	const bool zarr2 = ops->zarr2_id, stock = ops->zarr3_stock || wraps(ops);
	char tmp[64];
	const bool zarr3 = codec_zarr3_name(ops, tmp, sizeof(tmp)) &&
			   ops->h5_id != CODEC_PACKBITS_ZARR3; /* no bytes-to-bytes codec */
	const size_t from = out->len;

	if (zarr2)
		buf_printf(out, "Zarr v2%s",
			   ops->trailer    ? " (cut off)"
			   : ops->portable ? ""
					   : "*");
	if (zarr3)
		buf_printf(out, "%s%s%s", zarr2 ? ", " : "Zarr ", "v3",
			   stock              ? ""
			   : ops->trailer > 0 ? " (cut off)"
					      : "*");
	if (has_hdf5_id(ops))
		buf_printf(out, "%sHDF5%s", out->len > from ? ", " : "",
			   ops->h5_stock ? "" : "*");
}

static void cell(const struct codec_ops *ops, int column, struct buf *out)
{
	const char *text = NULL;

	switch (column) {
	case NAME:
		text = ops->name;
		break;
	case HDF5:
		if (has_hdf5_id(ops))
			buf_printf(out, "%" PRIu32, ops->h5_id);
		break;
	case ZARR2:
		text = ops->zarr2_id;
		break;
	case ZARR3:
		text = ops->zarr3_name;
		break;
	case DOES:
		does(ops, out);
		break;
	case PASSES:
		filters_passes(ops, out);
		break;
	default:
		text = ops->origin ? ops->origin : "built in";
	}
	if (text)
		buf_puts(out, text);
	if (out->len == 0)
		buf_putc(out, '-');
	/* names of plugins are foreign input */
	for (size_t i = 0; i < out->len; i++)
		if (out->data[i] < 0x20 || out->data[i] == 0x7f)
			out->data[i] = '?';
}

/* width_of - out: fails if memory is short. */
static size_t width_of(int column, struct buf *out)
{
	size_t width = strlen(titles[column]);
	const struct codec_ops *ops;
	auto_buf b = buf_of(CELL_MAX);

	for (size_t i = 0; (ops = codec_at(i)); i++) {
		buf_clear(&b);
		cell(ops, column, &b);
		width = b.len > width ? b.len : width;
		if (!buf_ok(&b))
			buf_fail(out, &b);
	}
	return width;
}

/* filters_row - append the row of a codec; NULL: the titles. */
static void filters_row(const struct codec_ops *ops, const size_t width[COLUMNS],
			struct buf *out)
{
	struct buf b;

	for (int c = 0; c < COLUMNS; c++) {
		buf_init(&b, CELL_MAX);
		if (ops)
			cell(ops, c, &b);
		else
			buf_puts(&b, titles[c]);
		buf_put(out, b.data, b.len);
		if (!buf_ok(&b))
			buf_fail(out, &b);
		for (size_t n = b.len; c + 1 < COLUMNS && n < width[c] + 2; n++)
			buf_putc(out, ' ');
		buf_release(&b);
	}
	buf_putc(out, '\n');
}

static void filters_text_report(const struct cfg *cfg, struct buf *out)
{
	const struct codec_ops *ops;
	size_t width[COLUMNS];

	for (int c = 0; c < COLUMNS; c++)
		width[c] = width_of(c, out);
	filters_row(NULL, width, out);
	for (size_t i = 0; (ops = codec_at(i)); i++)
		filters_row(ops, width, out);
	buf_puts(out, "\n* with -o filter=keep\n");
	if (cfg->verbose) {
		buf_puts(out, "\nlibraries\n");
		codec_plugins_report(out);
	}
}

static void json_bool(struct buf *out, const char *name, bool yes)
{
	buf_printf(out, ", \"%s\": %s", name, yes ? "true" : "false");
}

static void json_row(const struct codec_ops *ops, struct buf *out)
{
	buf_putc(out, '{');
	str_put_member(out, "name", ops->name);
	if (has_hdf5_id(ops))
		buf_printf(out, ", \"hdf5\": %" PRIu32, ops->h5_id);
	else
		buf_puts(out, ", \"hdf5\": null");
	str_put_member(out, "zarr2", ops->zarr2_id);
	str_put_member(out, "zarr3", ops->zarr3_name);
	json_bool(out, "decode", ops->decode);
	json_bool(out, "encode", ops->encode);
	json_bool(out, "lossy", ops->lossy);
	json_bool(out, "zarr_stock", ops->portable);
	json_bool(out, "zarr3_stock", ops->zarr3_stock || wraps(ops));
	json_bool(out, "hdf5_stock", ops->h5_stock);
	str_put_member(out, "plugin", ops->origin);
	buf_putc(out, '}');
}

static void filters_json_report(struct buf *out)
{
	const struct codec_ops *ops;
	auto_buf lines = buf_of((size_t)1 << 24);

	buf_puts(out, "{\"filters\": [");
	for (size_t i = 0; (ops = codec_at(i)); i++) {
		buf_puts(out, i ? ",\n  " : "\n  ");
		json_row(ops, out);
	}
	buf_puts(out, "],\n \"libraries\": [");
	codec_plugins_report(&lines);
	for (size_t at = 0, n; at < lines.len; at += n + 1) {
		const uint8_t *end = memchr(lines.data + at, '\n', lines.len - at);

		n = end ? (size_t)(end - lines.data) - at : lines.len - at;
		buf_puts(out, at ? ",\n  " : "\n  ");
		str_put_json(out, (const char *)lines.data + at, n);
	}
	out->failed |= !buf_ok(&lines);
	buf_puts(out, "]}\n");
}

void fs_filters(const struct cfg *cfg, struct buf *out)
{
	if (cfg->json)
		filters_json_report(out);
	else
		filters_text_report(cfg, out);
}
