/* SPDX-License-Identifier: BSD-3-Clause */
/* scene_table.c - what the fault loops run. */
#include "tests/faults/inject.h"
#include "tests/faults/scene.h"

#define WRITING (ON_WRITE | ON_SYNC | ON_NAMES) /* nothing to read writes */

static int read_begin(const struct scene *s)
{
	struct err e = ERR_INIT;
	int rc = scene_open(s, NULL, NULL, &e);

	answer(rc, 0, &e, "open");
	return rc;
}

static void read_use(const struct scene *s)
{
	(void)s;
	walk_view(scene_view(), "");
}

static void read_end(const struct scene *s)
{
	struct err e = ERR_INIT;

	(void)s;
	(void)scene_close(&e);
}

#define READ .begin = read_begin, .use = read_use, .end = read_end
#define LOCAL .skip = ON_CURL
#define WRITE                                                                                  \
	.writes = true, .prepare = write_prepare, .begin = write_begin, .use = write_use,      \
	.end = write_end, .after = write_after, .skip = ON_CURL

const struct scene scenes[] = {
	/* each format, as each view */
	{.name = "hdf5-as-v2", .input = "a.nc", READ, LOCAL},
	{.name = "hdf5-as-v3", .input = "a.nc", .options = "zarr_format=3", READ, LOCAL},
	{.name = "hdf5-as-shards", .input = "a.nc", .options = "shards=4K", READ, LOCAL},
	{.name = "hdf5-as-nczarr", .input = "a.nc", .options = "mode=nczarr", READ, LOCAL},
	{.name = "hdf5-as-nc", .input = "a.nc", .options = "view=nc", READ, LOCAL},
	{.name = "hdf5-decoded",
	 .input = "a.nc",
	 .options = "filter=none dimension_separator=/",
	 READ,
	 LOCAL},
	{.name = "hdf5-encoded", .input = "a.nc", .options = "filter=*,zstd,3", READ, LOCAL},
	{.name = "hdf5-filters", .input = "filters.h5", READ, LOCAL},
	{.name = "hdf5-filters-decoded",
	 .input = "filters.h5",
	 .options = "filter=none",
	 READ,
	 LOCAL},
	{.name = "hdf5-indexes", .input = "indexes.h5", READ, LOCAL},
	{.name = "hdf5-indexes-old", .input = "indexes_old.h5", READ, LOCAL},
	{.name = "hdf5-texts", .input = "texts.h5", READ, LOCAL},
	{.name = "classic-as-v2", .input = "classic.nc", READ, LOCAL},
	{.name = "classic-as-nc", .input = "classic.nc", .options = "view=nc", READ, LOCAL},
	{.name = "hdf4-as-v2", .input = "chunks.hdf", READ, LOCAL},
	{.name = "hdf4-as-nc", .input = "chunks.hdf", .options = "view=nc", READ, LOCAL},
	{.name = "v2-as-nc", .input = "v2.zarr", READ, LOCAL},
	{.name = "v2-as-v3",
	 .input = "v2.zarr",
	 .options = "view=zarr zarr_format=3",
	 READ,
	 LOCAL},
	{.name = "v2-as-v2", .input = "v2.zarr", .options = "view=zarr", READ, LOCAL},
	{.name = "v2-consolidated", .input = "consolidated.zarr", READ, LOCAL},
	{.name = "v2-codecs", .input = "codecs.zarr", READ, LOCAL},
	{.name = "v2-codecs-decoded",
	 .input = "codecs.zarr",
	 .options = "view=zarr filter=none",
	 READ,
	 LOCAL},
	{.name = "v2-texts", .input = "texts.zarr", READ, LOCAL},
	{.name = "v3-as-nc", .input = "v3.zarr", READ, LOCAL},
	{.name = "v3-as-v2", .input = "v3.zarr", .options = "view=zarr", READ, LOCAL},
	{.name = "v3-shards", .input = "shards.zarr", READ, LOCAL},
	{.name = "nczarr-as-nc", .input = "nczarr.zarr", READ, LOCAL},
	{.name = "zip-as-nc", .input = "a.zarr.zip", READ, LOCAL},
	{.name = "zip-deflated", .input = "deflated.zarr.zip", READ, LOCAL},
	{.name = "refs-json", .input = "refs.json", READ, LOCAL},
	{.name = "refs-parquet", .input = "refs.parq", READ, LOCAL},
	{.name = "directory", .input = "mirrored", READ, LOCAL},
	{.name = "plugins", .input = "plugin.h5", .options = "filter=none", READ, LOCAL},

	/* beside mounts */
	{.name = "configuration",
	 .input = "a.nc",
	 .options = "filter=v*,zstd,3 filter=w,shuffle|deflate,4 quantize=t,bitround,9 "
		    "cache_size=8M max_threads=3 default_chunk_size=4K external_root=/tmp",
	 .begin = config_begin,
	 LOCAL},
	{.name = "filters", .input = "a.nc", .begin = filters_begin, LOCAL},
	{.name = "info", .input = "a.nc", .begin = info_begin, LOCAL},
	{.name = "info-v2", .input = "v2.zarr", .begin = info_begin, LOCAL},
	{.name = "refs-of", .input = "a.nc", .options = "inline", .begin = refs_begin, LOCAL},

	/* writing */
	{.name = "write-hdf5", .input = "w.nc", .options = "commit_delay=3600000", WRITE},
	{.name = "write-hdf5-often", .input = "w.nc", .options = "commit_delay=1", WRITE},
	{.name = "write-v2", .input = "w.zarr", WRITE},
	{.name = "write-v3", .input = "w3.zarr", WRITE},
	{.name = "create-hdf5", .input = "new.nc", .options = "create", WRITE},
	{.name = "recover-hdf5",
	 .input = "w.nc",
	 .writes = true,
	 .prepare = recover_prepare,
	 .begin = recover_begin,
	 .after = write_after,
	 LOCAL},

	/* other machines */
	{.name = "web-hdf5", .input = "url:a.nc", READ},
	{.name = "web-classic", .input = "url:classic.nc", READ},
	{.name = "web-v2", .input = "url:consolidated.zarr", READ},
	{.name = "web-zip", .input = "url:a.zarr.zip", READ},
	{.name = "s3-v3", .input = "s3:b/v3.zarr", READ},
};
const size_t n_scenes = sizeof(scenes) / sizeof(scenes[0]);
