/* SPDX-License-Identifier: BSD-3-Clause */
/* spec_json.c - chains as codecs in Zarr metadata, including filters that are not available. */
#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"
#include "codecs/core/codec_impl.h"
#include "codecs/spec/spec.h"

#define NAME_CAP 80
#define CONFIG_MAX 4096

static void spec_json_put_text(struct buf *out, const char *member, const char *text)
{
	buf_printf(out, "\"%s\": ", member);
	str_put_json(out, text, strlen(text));
}

/* put_unknown - append a filter without a name in Zarr v2. */
static void put_unknown(const struct codec_spec *spec, struct buf *out)
{
	const bool hdf5 = spec->h5_id < CODEC_PRIVATE;
	char tmp[32];
	const char *name = codec_name(spec, tmp, sizeof(tmp));

	buf_puts(out, "{\"id\": \"unknown\"");
	if (name != tmp) {
		buf_puts(out, ", ");
		spec_json_put_text(out, "name", name);
	}
	if (hdf5)
		buf_printf(out, ", \"hdf5\": %" PRIu32, spec->h5_id);
	buf_puts(out, hdf5 ? ", \"parameters\": [" : "");
	for (uint32_t i = 0; hdf5 && i < spec->n_params; i++)
		buf_printf(out, "%s%" PRIu32, i ? ", " : "", spec->params[i]);
	buf_puts(out, hdf5 ? "]}" : "}");
}

static void spec_json_put_one(const struct codec_spec *spec, size_t elem_size, struct buf *out)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);

	if (ops && codec_has_zarr2(spec, elem_size)) {
		buf_putc(out, '{');
		spec_json_put_text(out, "id", ops->zarr2_id);
		if (ops->zarr2_params)
			ops->zarr2_params(spec, elem_size, out);
		buf_putc(out, '}');
	} else if (ops && ops->zarr3_name) {
		buf_putc(out, '{');
		spec_json_put_text(out, "name", ops->zarr3_name);
		buf_putc(out, '}');
	} else {
		put_unknown(spec, out);
	}
}

bool codec_spec_json3(const struct codec_spec *spec, size_t elem_size, struct buf *out)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);
	char tmp[NAME_CAP];
	const char *name = ops ? codec_zarr3_name(ops, tmp, sizeof(tmp)) : NULL;
	auto_buf params = buf_of(CONFIG_MAX);

	if (!name)
		return false;
	if (ops->zarr3_params)
		ops->zarr3_params(spec, elem_size, &params);
	else if (ops->zarr2_params)
		ops->zarr2_params(spec, elem_size, &params);
	buf_putc(out, '{');
	spec_json_put_text(out, "name", name);
	/* zarr-python requires a configuration for numcodecs' codecs even if it is empty */
	buf_puts(out, ", \"configuration\": {");
	if (params.len > 2) /* each parameter begins with ", " */
		buf_put(out, params.data + 2, params.len - 2);
	buf_puts(out, "}}");
	if (!buf_ok(&params))
		buf_fail(out, &params);
	return true;
}

void codec_spec_json(const struct codec_chain *chain, size_t elem_size, int version,
		     struct buf *out)
{
	buf_putc(out, '[');
	for (uint32_t i = 0; i < chain->n; i++) {
		buf_puts(out, i ? ", " : "");
		if (version != 3)
			spec_json_put_one(&chain->specs[i], elem_size, out);
		else if (!codec_spec_json3(&chain->specs[i], elem_size, out))
			put_unknown(&chain->specs[i], out);
	}
	buf_putc(out, ']');
}
