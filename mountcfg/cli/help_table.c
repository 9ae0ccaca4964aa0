/* SPDX-License-Identifier: BSD-3-Clause */
/* help_table.c - the text of `COMMAND --help`: a description, the most important options, and two
 * examples. */
#include <stddef.h>

#include "mountcfg/options/option_table.h"

enum { /* of commands that read a dataset and show it as Zarr or netCDF-4 */
	SHOWN = GROUP_DETAILS | GROUP_REMOTE | GROUP_CACHE | GROUP_LIMITS | GROUP_LOG,
	READ = GROUP_REMOTE | GROUP_LIMITS | GROUP_LOG,
};

#define FORMAT_OPTIONS "view show filter zarr_format shards concat rechunk mode unsupported"

static const struct cfg_help_row rows[] = {
	{CFG_MOUNT_NAMED,
	 GROUP_COMMON | SHOWN | GROUP_WRITING | GROUP_FUSE,
	 "",
	 "Mount SOURCE on MOUNTPOINT: a netCDF, HDF5 or HDF4 file as a Zarr store, a Zarr store "
	 "as a netCDF-4 file, any other directory with all its datasets in both formats. "
	 "MOUNTPOINT is created if it is missing. A NAME is a section [mount NAME] of a "
	 "configuration file; -a mounts all of them. The word 'mount' may be left out before "
	 "SOURCE.",
	 {"nczarrfs mount model.nc mnt", "nczarrfs mount --rw store.zarr mnt"}},
	{CFG_UMOUNT,
	 0,
	 "",
	 "Unmount by mountpoint or by name; -a unmounts all your mounts. The command returns when "
	 "all pending writes are in the dataset. It fails if that is not possible, or if the mount "
	 "is in use.",
	 {"nczarrfs umount mnt", "nczarrfs umount -a"}},
	{CFG_LIST,
	 0,
	 "",
	 "List the mounts of nczarrfs and the mounts that configuration files name, each with its "
	 "state.",
	 {"nczarrfs list", "nczarrfs list --json"}},
	{CFG_INFO,
	 SHOWN,
	 FORMAT_OPTIONS,
	 "Print a summary of SOURCE and its header as ncdump -h does: dimensions, variables and "
	 "attributes. With -v, or for one variable, print chunks, filters, fill values and how "
	 "chunks are delivered as well. If the second operand begins with '/' and no such file "
	 "exists, it names a variable.",
	 {"nczarrfs info model.nc", "nczarrfs info model.nc /group/temperature"}},
	{CFG_FILTERS,
	 0,
	 "noplugins",
	 "List the compression filters that are available, by their HDF5 ids and their names in "
	 "Zarr. With -v, list the plugin libraries as well.",
	 {"nczarrfs filters", "nczarrfs filters -v"}},
	{CFG_RECOVER,
	 READ,
	 "state_dir",
	 "Commit to SOURCE what was written into a mount that died, and print what was done. If "
	 "SOURCE is a directory of datasets, recover every dataset below it.",
	 {"nczarrfs recover model.nc", "nczarrfs recover /data"}},
	{CFG_REFS,
	 READ | GROUP_REFS,
	 "filter concat rechunk mode unsupported quantize dimension_separator json_nan "
	 "concat_compat memory cache_size remote_cache_size prefetch_size cache_dir "
	 "disk_cache_size decode_threads open_datasets default_chunk_size concat_index",
	 "Write kerchunk references to the chunks of SOURCE, for programs that read them through "
	 "fsspec without a mount: JSON to OUT or standard output, or a new directory of Parquet "
	 "files if OUT ends in .parq or .parquet. If SOURCE is a directory of datasets, or a "
	 "folder of an object store, each of them is a group of the references. --table writes a "
	 "table of chunks instead, one new Parquet file, for Spark and SQL.",
	 {"nczarrfs refs --address s3://bucket/data /data data.json",
	  "nczarrfs refs --concat time --inline 'year/*.nc' year.parq"}},
	{CFG_CHECK,
	 READ,
	 "concat unsupported memory cache_size decode_threads open_datasets",
	 "Read and decode every chunk of SOURCE and list the chunks that are damaged. Exit status: "
	 "0 if SOURCE is intact, 1 if something is damaged, 2 if SOURCE could not be checked. "
	 "With several sources, the status is the worst.",
	 {"nczarrfs check model.nc", "nczarrfs check --quick /data"}},
	{CFG_CONVERT,
	 SHOWN,
	 "view filter zarr_format shards concat rechunk mode unsupported unlimited "
	 "consolidated",
	 "Copy SOURCE to DEST: a netCDF-4 file if the name of DEST ends in .nc, .nc4, .cdf, .h5, "
	 ".hdf5 or .he5, a Zarr store in a zip archive if it ends in .zip, else a Zarr store, in a "
	 "directory or in S3. If the copy is interrupted, the same command resumes it, except for "
	 "archives and S3.",
	 {"nczarrfs convert model.nc model.zarr",
	  "nczarrfs convert --zarr-format 3 --shards model.nc s3://bucket/model.zarr"}},
	{CFG_SERVE,
	 SHOWN,
	 FORMAT_OPTIONS,
	 "Serve SOURCE over HTTP: a page for browsers, and below /data/ a Zarr store for Zarr "
	 "readers. The command runs until it is interrupted. It needs no FUSE.",
	 {"nczarrfs serve model.nc", "nczarrfs serve -p 9000 --origin '*' store.zarr"}},
	{CFG_STATUS,
	 0,
	 "",
	 "Print the source and the options of a mount, its requests, caches, errors and memory.",
	 {"nczarrfs status mnt", "nczarrfs status --json mnt"}},
	{CFG_LOG,
	 0,
	 "",
	 "Change the log levels of a mount, or print them. A component is fuse, source, codec, "
	 "cache, http, write, isolate or all; a level is error, warn, info or debug.",
	 {"nczarrfs log mnt http=debug", "nczarrfs log mnt"}},
	{CFG_HELP,
	 0,
	 "",
	 "Describe a command, or list all options.",
	 {"nczarrfs help convert", "nczarrfs help options"}},
	{CFG_VERSION,
	 0,
	 "",
	 "Print the versions of nczarrfs and its libraries.",
	 {"nczarrfs version", "nczarrfs --version"}},
};

const struct cfg_help_row *cfg_help_row(enum cfg_command command)
{
	size_t i = 0;

	if (command == CFG_MOUNT)
		command = CFG_MOUNT_NAMED;
	while (i + 1 < ARRAY_LEN(rows) && rows[i].command != command)
		i++;
	return &rows[i];
}
