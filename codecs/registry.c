/* registry.c - the one table of built-in codecs, and names for filters that are not built in.
 */
#include "codecs/codec_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct codec_ops *const codecs[] = {
	&codec_deflate,
	&codec_shuffle,
	&codec_fletcher32,
};

/* Filters that files often have, for messages: the name in a file is optional.
 * https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md */
static const struct {
	uint32_t h5_id;
	const char *name;
} known[] = {
	{CODEC_SZIP, "szip"}, {CODEC_NBIT, "nbit"},  {CODEC_SCALEOFFSET, "scaleoffset"},
	{307, "bzip2"},       {32000, "lzf"},        {32001, "blosc"},
	{32004, "lz4"},       {32008, "bitshuffle"}, {32013, "zfp"},
	{32015, "zstd"},      {32026, "blosc2"},
};

const struct codec_ops *codec_find(uint32_t h5_id)
{
	for (size_t i = 0; i < ARRAY_LEN(codecs); i++)
		if (codecs[i]->h5_id == h5_id)
			return codecs[i];
	return NULL;
}

/* printable - whether a name from a file may be shown as it is. */
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
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].h5_id == spec->h5_id)
			return known[i].name;
	if (spec->name && printable(spec->name))
		return spec->name;
	(void)snprintf(tmp, cap, "filter %" PRIu32, spec->h5_id); /* truncation is harmless */
	return tmp;
}
