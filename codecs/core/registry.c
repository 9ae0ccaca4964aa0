/* SPDX-License-Identifier: BSD-3-Clause */
/* registry.c - the table of built-in codecs, searched by any of their names, and names for filters
 * that are not built in. */
#include "codecs/core/codec_impl.h"
#include "codecs/plugin/plugin_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <blosc.h>
#include <bzlib.h>
#include <libdeflate.h>
#include <liblzf/lzf.h>
#include <lz4.h>
#include <lzma.h>
#include <zstd.h>

#include "base/core/str.h"

#define ZARR2_MAX ((size_t)64 << 10) /* bytes of a plugin's parameters in a document */

#define ROW(codec) &codec,
static const struct codec_ops *const codecs[] = {CODEC_BUILTINS(ROW)};

const struct codec_ops *codec_builtin(uint32_t h5_id)
{
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
		if (codecs[i]->h5_id == h5_id)
			return codecs[i];
	return NULL;
}

const struct codec_ops *codec_find(uint32_t h5_id)
{
	const struct codec_ops *ops = codec_builtin(h5_id);

	return ops ? ops : plugin_find(h5_id);
}

const struct codec_ops *codec_builtin_zarr2(const char *id, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
		if (str_is(codecs[i]->zarr2_id, id, n))
			return codecs[i];
	return NULL;
}

const struct codec_ops *codec_find_zarr2(const char *id, size_t n)
{
	const struct codec_ops *ops = codec_builtin_zarr2(id, n);

	return ops ? ops : plugin_find_zarr2(id, n);
}

const struct codec_ops *codec_find_zarr3(const char *name, size_t n)
{
	const size_t prefix = sizeof(CODEC_NUMCODECS) - 1;

	if (n > prefix && memcmp(name, CODEC_NUMCODECS, prefix) == 0)
		return codec_find_zarr2(name + prefix, n - prefix);
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
		if (str_is(codecs[i]->zarr3_name, name, n))
			return codecs[i];
	return NULL;
}

bool codec_has_zarr2(const struct codec_spec *spec, size_t elem_size)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);
	auto_buf json = buf_of(ZARR2_MAX);

	if (!ops || !ops->zarr2_id || !ops->origin || !ops->zarr2_params)
		return ops && ops->zarr2_id;
	ops->zarr2_params(spec, elem_size, &json);
	return buf_ok(&json);
}

/* The ids of netCDF-C and of plugins are not numcodecs', even if the names are equal. */
const char *codec_zarr3_name(const struct codec_ops *ops, char *tmp, size_t cap)
{
	int n;

	if (ops->zarr3_name)
		return ops->zarr3_name;
	if (!ops->zarr2_id || ops->origin || ops->h5_id == CODEC_SZIP)
		return NULL;
	n = snprintf(tmp, cap, CODEC_NUMCODECS "%s", ops->zarr2_id);
	return n > 0 && (size_t)n < cap ? tmp : NULL;
}

const struct codec_ops *codec_at(size_t i)
{
	return i < ARRAY_LEN(codecs) ? codecs[i] : plugin_at(i - ARRAY_LEN(codecs));
}

const struct codec_ops *codec_find_name(const char *name, size_t n)
{
	const struct codec_ops *ops;

	for (size_t i = 0; (ops = codec_at(i)); i++)
		if (str_is_nocase(ops->name, name, n) ||
		    str_is_nocase(ops->zarr2_id, name, n) ||
		    str_is_nocase(ops->zarr3_name, name, n))
			return ops;
	return NULL;
}

/* put_version - append "name 1.2.3"; some libraries add text after a comma. */
static void put_version(struct buf *out, const char *name, const char *version)
{
	buf_printf(out, "%s %.*s\n", name, (int)strcspn(version, ", "), version);
}

void codec_versions(struct buf *out)
{
	put_version(out, "libdeflate", LIBDEFLATE_VERSION_STRING);
	put_version(out, "zstd", ZSTD_versionString());
	put_version(out, "c-blosc", blosc_get_version_string());
	put_version(out, "bzip2", BZ2_bzlibVersion());
	put_version(out, "lz4", LZ4_versionString());
	put_version(out, "liblzma", lzma_version_string());
	buf_printf(out, "liblzf %d.%d\n", LZF_VERSION >> 8, LZF_VERSION & 0xff);
}

/* printable - whether a name from a file may be printed unchanged. */
static bool printable(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || (unsigned char)*s > 0x7e)
			return false;
	return true;
}

const char *codec_name(const struct codec_spec *spec, char *tmp, size_t cap)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);

	if (ops)
		return ops->name;
	if (codec_known_name(spec->h5_id))
		return codec_known_name(spec->h5_id);
	if (spec->name && printable(spec->name))
		return spec->name;
	(void)snprintf(tmp, cap, "filter %" PRIu32, spec->h5_id); /* truncation is harmless */
	return tmp;
}
