/* SPDX-License-Identifier: BSD-3-Clause */
/* catalogue.c - known filters and codecs that are not built in: their names, and where a user can
 * get them.
 *
 * Ids, names and locations of plugins: the HDF Group's list of registered filters,
 * https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md; packages:
 * Debian 12; https://github.com/silx-kit/hdf5plugin; optional codecs: numcodecs' documentation. */
#include "codecs/core/codec_impl.h"

#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"

/* The source of a filter's plugin. */
enum catalogue_where {
	NOWHERE, /* part of a library, or no source is known */
	PACKAGE, /* a Debian package */
	PYTHON,  /* the Python package hdf5plugin, which HDF5 can use without Python */
	SOURCE,  /* only as source code */
};

#define PLUGINS_OF_HDF "github.com/HDFGroup/hdf5_plugins"

static const struct catalogue_known {
	uint32_t h5_id;
	const char *name;
	enum catalogue_where where;
	const char *what; /* the package, or a URL */
} known[] = {
	{CODEC_SZIP, "szip", NOWHERE, NULL},
	{257, "hzip", NOWHERE, NULL},
	{258, "fpzip", NOWHERE, NULL},
	{305, "lzo", NOWHERE, NULL},
	{307, "bzip2", PACKAGE, "hdf5-filter-plugin"},
	{32000, "lzf", PACKAGE, "hdf5-plugin-lzf"},
	{32001, "blosc", PACKAGE, "hdf5-filter-plugin-blosc-serial"},
	{32002, "mafisc", SOURCE,
	 "wr.informatik.uni-hamburg.de/research/projects/icomex/mafisc"},
	{32003, "snappy", SOURCE, "github.com/lucasvr/snappy-cuda"},
	{32004, "lz4", PACKAGE, "hdf5-filter-plugin"},
	{32005, "apax", NOWHERE, NULL},
	{32006, "cbf", NOWHERE, NULL},
	{32007, "jpeg-xr", NOWHERE, NULL},
	{32008, "bitshuffle", PACKAGE, "bitshuffle"},
	{32009, "spdp", SOURCE, "userweb.cs.txstate.edu/~burtscher/research/SPDP"},
	{32010, "lpc-rice", SOURCE, "sourceforge.net/projects/lpcrice"},
	{32011, "ccsds-123", SOURCE, "sourceforge.net/projects/ccsds123-hdf-filter"},
	{32012, "jpeg-ls", SOURCE, "sourceforge.net/projects/jpegls-hdf-filter"},
	{32013, "zfp", PACKAGE, "hdf5-filter-plugin-zfp-serial"},
	{32014, "fpzip", NOWHERE, NULL},
	{32015, "zstd", PYTHON, NULL},
	{32016, "b3d", NOWHERE, NULL},
	{32017, "sz", PYTHON, NULL},
	{32018, "fcidecomp", PYTHON, NULL},
	{32019, "jpeg", SOURCE, PLUGINS_OF_HDF},
	{32020, "vbz", SOURCE, "github.com/nanoporetech/vbz_compression"},
	{32021, "fapec", SOURCE, "www.dapcom.es/get-fapec"},
	{32022, "bitgroom", SOURCE, "github.com/ccr/ccr"},
	{32023, "granularbr", SOURCE, "github.com/ccr/ccr"},
	{32024, "sz3", PYTHON, NULL},
	{32025, "delta-rice", SOURCE, "gitlab.com/dgma224/deltarice"},
	{32026, "blosc2", PYTHON, NULL},
	{32027, "flac", NOWHERE, NULL},
	{32028, "sperr", PYTHON, NULL},
	{32029, "trpx", NOWHERE, NULL},
	{32030, "ffmpeg", SOURCE,
	 "github.com/Cai-Lab-at-University-of-Michigan/ffmpeg_HDF5_filter"},
	{32031, "jpeg2000", SOURCE, "github.com/hmaarrfk/hdf5_jpeg2000"},
	{32032, "bitround", SOURCE, PLUGINS_OF_HDF},
};

/* Zarr codecs, and the Python packages that have them. prefix: every name that begins so. */
static const struct {
	const char *name;
	bool prefix;
	const char *package;
} zarr[] = {
	{"pcodec", false, "numcodecs[pcodec]"},  {"zfpy", false, "numcodecs[zfpy]"},
	{"msgpack", true, "numcodecs[msgpack]"}, {"pickle", false, "numcodecs"},
	{"base64", false, "numcodecs"},          {"categorize", false, "numcodecs"},
	{"jenkins_lookup3", false, "numcodecs"}, {"n5_wrapper", false, "numcodecs"},
	{"imagecodecs_", true, "imagecodecs"},
};

static const struct catalogue_known *catalogue_find(uint32_t h5_id)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].h5_id == h5_id)
			return &known[i];
	return NULL;
}

const char *codec_known_name(uint32_t h5_id)
{
	const struct catalogue_known *k = catalogue_find(h5_id);

	return k ? k->name : NULL;
}

uint32_t codec_known_id(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (str_is_nocase(known[i].name, name, n))
			return known[i].h5_id;
	return 0;
}

/* ---- hints ---- */

static void filter_remedy(uint32_t h5_id, struct buf *out)
{
	const struct catalogue_known *k = catalogue_find(h5_id);

	switch (k ? k->where : NOWHERE) {
	case PACKAGE:
		buf_printf(out,
			   "install the package %s, or add the directory of its HDF5 plugin to "
			   "HDF5_PLUGIN_PATH",
			   k->what);
		break;
	case PYTHON:
		buf_puts(out, "install Python's hdf5plugin and add its plugin directory to "
			      "HDF5_PLUGIN_PATH");
		break;
	case SOURCE:
		buf_printf(
			out,
			"build its HDF5 plugin (%s) and add its directory to HDF5_PLUGIN_PATH",
			k->what);
		break;
	default:
		/* the list of registered filters ends at 32767 */
		buf_puts(out,
			 h5_id > INT16_MAX
				 ? "it is a private filter: add the directory of its HDF5 "
				   "plugin to HDF5_PLUGIN_PATH"
				 : "add the directory of its HDF5 plugin to HDF5_PLUGIN_PATH");
	}
}

static void zarr_remedy(const char *name, struct buf *out)
{
	const char *package = NULL;

	if (strncmp(name, CODEC_NUMCODECS, strlen(CODEC_NUMCODECS)) == 0)
		name += strlen(CODEC_NUMCODECS);
	for (size_t i = 0; i < ARRAY_LEN(zarr) && !package; i++)
		if (zarr[i].prefix ? strncmp(name, zarr[i].name, strlen(zarr[i].name)) == 0
				   : strcmp(name, zarr[i].name) == 0)
			package = zarr[i].package;
	if (package)
		buf_printf(out, "copy the array with zarr-python and %s to another codec",
			   package);
	else
		buf_puts(out, "copy the array to another codec with the program that wrote it");
	buf_puts(out, ", or add the directory of an NCZarr plugin for it to HDF5_PLUGIN_PATH");
}

void codec_catalogue_hint(const struct codec_spec *spec, struct buf *out)
{
	if (spec->h5_id == 0)
		zarr_remedy(spec->name, out);
	else
		filter_remedy(spec->h5_id, out);
}

void codec_missing(const struct codec_spec *spec, struct buf *out)
{
	char tmp[32];
	const char *name;

	if (spec->h5_id == 0) {
		buf_printf(out, "codec '%.36s' is not supported: ", spec->name);
	} else {
		name = codec_name(spec, tmp, sizeof(tmp));
		buf_printf(out, "filter %" PRIu32, spec->h5_id);
		if (name != tmp)
			buf_printf(out, " (%.60s)", name);
		buf_puts(out, " is not available: ");
	}
	codec_catalogue_hint(spec, out);
}
