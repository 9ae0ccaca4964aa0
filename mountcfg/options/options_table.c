/* SPDX-License-Identifier: BSD-3-Clause */
/* options_table.c - the table of -o options, and the lists of mount options. */
#include <stddef.h>

#include "mountcfg/options/option_table.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* TWO - the words of a bool: false, true. */
#define TWO(no, yes) (const struct cfg_word[]){{no, 0, false}, {yes, 1, false}, {NULL, 0, false}}

static const struct cfg_word mode_words[] = {
	{"zarr", CFG_MODE_ZARR, false},
	{"nczarr", CFG_MODE_NCZARR, false},
	{"noxarray", CFG_MODE_NOXARRAY, false},
	{"xarray", CFG_MODE_ZARR, true}, /* NCZarr's word for the behaviour of zarr */
	{NULL, 0, false},
};
static const struct cfg_word filter_words[] = {
	{"portable", CFG_FILTER_PORTABLE, false},
	{"keep", CFG_FILTER_KEEP, false},
	{"none", CFG_FILTER_NONE, false},
	{NULL, 0, false},
};
static const struct cfg_word no_words[] = {{NULL, 0, false}};
static const struct cfg_word view_words[] = {
	{"auto", CFG_VIEW_AUTO, false},
	{"zarr", CFG_VIEW_ZARR, false},
	{"nc", CFG_VIEW_NC, false},
	{"classic", CFG_VIEW_CLASSIC, false},
	{"netcdf", CFG_VIEW_NC, true},
	{NULL, 0, false},
};
static const struct cfg_word classic_words[] = {
	{"auto", 0, false}, {"cdf1", 1, false}, {"cdf2", 2, false}, {"cdf5", 5, false},
	{NULL, 0, false},
};
static const struct cfg_word show_words[] = {
	{"both", CFG_FORMS_BOTH, false},
	{"converted", CFG_FORMS_CONVERTED, false},
	{"zarr", CFG_FORMS_ZARR, false},
	{"nc", CFG_FORMS_NC, false},
	{"netcdf", CFG_FORMS_NC, true},
	{NULL, 0, false},
};
static const struct cfg_word consolidated_words[] = {
	{"auto", -1, false}, {"always", 1, false}, {"never", 0, false}, {NULL, 0, false}};

#define FIELD(f) offsetof(struct cfg, f)

const struct cfg_option cfg_options[] = {
	{"view", OPT_WORD, "auto", FIELD(view), view_words, 0, 0, GROUP_COMMON,
	 "what the mount shows: auto: the other format (netCDF, HDF5 and HDF4 files as "
	 "Zarr, Zarr stores as netCDF-4 files, a directory with its datasets in both "
	 "formats); zarr or nc: this format, whatever SOURCE is; classic: one classic netCDF "
	 "file, for programs without netCDF-4, read-only"},
	{"classic_format", OPT_WORD, "auto", FIELD(classic_format), classic_words, 0, 0,
	 GROUP_DETAILS,
	 "version of the file with view=classic: cdf1, cdf2, cdf5; auto: the first of them that "
	 "holds the data"},
	{"show", OPT_WORD, "both", FIELD(forms), show_words, 0, 0, GROUP_COMMON,
	 "which formats a mounted directory lists: both; converted: only the converted "
	 "view of each dataset; zarr or nc: each dataset in this format. Names that are "
	 "not listed can still be opened"},
	{"rw", OPT_FLAG, NULL, FIELD(write.rw), NULL, 0, 0, GROUP_COMMON,
	 "let programs write into the mount; what they write goes into SOURCE"},
	{"create", OPT_FLAG, NULL, FIELD(write.create), NULL, 0, 0, GROUP_COMMON,
	 "create SOURCE, empty, before mounting it: a Zarr store if its name ends in "
	 ".zarr, .zr2 or .zr3, else a netCDF-4 file; implies rw"},
	{"filter", OPT_RULE, "portable", FIELD(rules.filters), filter_words, 0, 0, GROUP_COMMON,
	 "compression of the chunks that are shown or written: portable: chunks that "
	 "readers of the format can decode pass as they are, others are decoded (all "
	 "with mode=nczarr); keep: chunks whose filters have a name in the format pass "
	 "as they are; none: all are decoded; SPEC: "
	 "[VARIABLE[&VARIABLE...],]FILTER[,N...][|FILTER...], as for nccopy -F: "
	 "'v1&/g/v2,shuffle|deflate,5', '*,zstd', 'v3,none'. May be repeated"},
	{"zarr_format", OPT_BOOL, "2", FIELD(zarr.zarr3), TWO("2", "3"), 0, 0, GROUP_COMMON,
	 "version of the Zarr stores that are shown or written"},
	{"shards", OPT_BARE, "64M", FIELD(zarr.shard_size), NULL, 4 * KIB, 1024 * GIB, GROUP_COMMON,
	 "Zarr v3 with several chunks of a variable in each file: about SIZE bytes of "
	 "uncompressed data"},
	{"concat", OPT_TEXT, "DIM", FIELD(concat.dim), NULL, 0, 0, GROUP_COMMON,
	 "join all datasets of SOURCE, a quoted pattern ('y/*.nc') or a directory, along "
	 "this dimension and show them as one"},
	{"rechunk", OPT_RULE, NULL, FIELD(rules.rechunk), no_words, 0, 0, GROUP_COMMON,
	 "[VARIABLE[&VARIABLE...],]DIM=N[,DIM=N...]: show variables in chunks of other "
	 "lengths, assembled from those of SOURCE; N is a number or 'all': "
	 "'time=all,lat=64,lon=64'. May be repeated"},
	{"mode", OPT_WORD, "zarr", FIELD(zarr.mode), mode_words, 0, 0, GROUP_COMMON,
	 "conventions of Zarr stores: zarr: for zarr-python, xarray and GDAL; nczarr: "
	 "for netCDF-C (Zarr v2 only); noxarray: without dimension names "
	 "(_ARRAY_DIMENSIONS, dimension_names)"},
	{"unsupported", OPT_BOOL, "fail", FIELD(hide_bad), TWO("fail", "skip"), 0, 0, GROUP_COMMON,
	 "what to do about arrays that cannot be shown: fail: do not mount; skip: leave "
	 "them out, with a note"},
	{"endpoint", OPT_TEXT, "URL", FIELD(remote.endpoint), NULL, 0, 0, GROUP_REMOTE,
	 "URL of the S3 service for s3:// addresses, such as 'http://127.0.0.1:7480'; "
	 "the default is Amazon's"},
	{"profile", OPT_TEXT, "NAME", FIELD(remote.profile), NULL, 0, 0, GROUP_REMOTE,
	 "AWS profile in ~/.aws/credentials and ~/.aws/config"},
	{"region", OPT_TEXT, "NAME", FIELD(remote.region), NULL, 0, 0, GROUP_REMOTE,
	 "region of the buckets; the default comes from the environment or the profile"},
	{"anonymous", OPT_FLAG, NULL, FIELD(remote.anonymous), NULL, 0, 0, GROUP_REMOTE,
	 "do not sign S3 requests: for public data"},
	{"requester_pays", OPT_FLAG, NULL, FIELD(remote.requester_pays), NULL, 0, 0, GROUP_REMOTE,
	 "you pay for requests to buckets whose owners require it"},
	{"s3_addressing", OPT_BOOL, "path", FIELD(remote.virtual_hosts),
	 TWO("path", "virtual"), 0, 0, GROUP_REMOTE,
	 "S3 requests go to ENDPOINT/BUCKET/KEY (path) or BUCKET.ENDPOINT/KEY (virtual)"},
	{"ca_file", OPT_TEXT, "FILE", FIELD(remote.ca_file), NULL, 0, 0, GROUP_REMOTE,
	 "certificates to trust, in addition to the system's"},
	{"bearer_file", OPT_TEXT, "FILE", FIELD(remote.bearer_file), NULL, 0, 0, GROUP_REMOTE,
	 "a file whose first line is a bearer token for the web server of SOURCE"},
	{"netrc_file", OPT_TEXT, "FILE", FIELD(remote.netrc_file), NULL, 0, 0, GROUP_REMOTE,
	 "file with user names and passwords for web servers; the default is ~/.netrc"},
	{"insecure", OPT_FLAG, NULL, FIELD(remote.insecure), NULL, 0, 0, GROUP_REMOTE,
	 "do not verify certificates, and allow passwords over http://"},
	{"private_redirects", OPT_FLAG, NULL, FIELD(remote.private_redirects), NULL, 0, 0,
	 GROUP_REMOTE, "follow redirects and references to private addresses"},
	{"timeout", OPT_UINT, "60", FIELD(remote.timeout), NULL, 1, 86400, GROUP_REMOTE,
	 "seconds that a request may take, including all its attempts"},
	{"max_attempts", OPT_UINT, "6", FIELD(remote.max_attempts), NULL, 1, 100, GROUP_REMOTE,
	 "attempts of a request that fails for a temporary reason"},
	{"max_connections", OPT_UINT, "16", FIELD(remote.max_connections), NULL, 1, 256,
	 GROUP_REMOTE,
	 "connections to one host"},
	{"revalidate", OPT_UINT, "60", FIELD(remote.revalidate), NULL, 0, 86400, GROUP_REMOTE,
	 "seconds after which a remote SOURCE is checked for changes; 0: never"},
	{"chunks", OPT_RULE, NULL, FIELD(rules.chunks), no_words, 0, 0, GROUP_WRITING,
	 "[VARIABLE[&VARIABLE...],]DIM=N[,DIM=N...]: chunk lengths of new variables that "
	 "are written without chunks, or of the variables that are named; N is a number "
	 "or 'all': 'time=24,lat=all'. May be repeated"},
	{"unlimited", OPT_LIST, NULL, FIELD(unlimited), NULL, 0, 0, GROUP_WRITING,
	 "unlimited dimensions of a netCDF-4 file that is written, or that shows a Zarr "
	 "store, which does not record them"},
	{"new_files", OPT_BOOL, "convert", FIELD(write.new_as_is),
	 TWO("convert", "keep"), 0, 0, GROUP_WRITING,
	 "what becomes of a new dataset in a mounted directory: convert: a dataset of "
	 "the other format; keep: the file as it is written"},
	{"consolidated", OPT_WORD, "auto", FIELD(zarr.consolidated), consolidated_words, 0, 0,
	 GROUP_WRITING,
	 "whether a Zarr store that is written has consolidated metadata; auto: new "
	 "stores, and stores that have it"},
	{"root", OPT_TEXT, "NAME", FIELD(write.root), NULL, 0, 0, GROUP_WRITING,
	 "show a writable Zarr store as MOUNTPOINT/NAME, a directory that programs can "
	 "remove and create again: for zarr-python and xarray with mode=\"w\""},
	{"state_dir", OPT_TEXT, "DIR", FIELD(write.state_dir), NULL, 0, 0, GROUP_WRITING,
	 "directory for pending writes; the default is next to SOURCE"},
	{"stage_size", OPT_SIZE, "256M", FIELD(write.stage_size), NULL, 64 * KIB, 1024 * GIB,
	 GROUP_WRITING, "maximum size of the pending writes to a netCDF-4 file"},
	{"commit_delay", OPT_UINT, "500", FIELD(write.commit_delay), NULL, 0, 3600000,
	 GROUP_WRITING,
	 "milliseconds without a write after which changes are committed to a netCDF-4 "
	 "file"},
	{"memory", OPT_SIZE, "2G", FIELD(limits.memory), NULL, 128 * KIB, 1024 * GIB, GROUP_CACHE,
	 "memory budget of a mount: half for metadata, a quarter for the chunk index of "
	 "one variable, an eighth for the structure of a virtual netCDF-4 file; the "
	 "defaults of cache_size, remote_cache_size and prefetch_size are shares of it"},
	{"cache_size", OPT_SIZE, "64M", FIELD(limits.cache_size), NULL, 0, 1024 * GIB, GROUP_CACHE,
	 "memory for decoded chunks; in a directory, each dataset gets at most a quarter"},
	{"remote_cache_size", OPT_SIZE, "128M", FIELD(remote.cache_size), NULL, MIB, 1024 * GIB,
	 GROUP_CACHE, "memory for data fetched from remote servers"},
	{"prefetch_size", OPT_SIZE, "32M", FIELD(remote.prefetch_size), NULL, 0, 1024 * GIB,
	 GROUP_CACHE, "maximum amount of remote data that is fetched ahead of readers"},
	{"cache_dir", OPT_TEXT, "DIR", FIELD(remote.cache_dir), NULL, 0, 0, GROUP_CACHE,
	 "directory that caches remote data on disk as well"},
	{"disk_cache_size", OPT_SIZE, "10G", FIELD(remote.disk_cache_size), NULL, MIB, 1024 * GIB,
	 GROUP_CACHE, "maximum size of cache_dir"},
	{"decode_threads", OPT_UINT, "0", FIELD(limits.decode_threads), NULL, 0, 256, GROUP_CACHE,
	 "threads that decode chunks ahead of readers; 0: one less than the number of "
	 "processors"},
	{"open_datasets", OPT_UINT, "64", FIELD(limits.open_datasets), NULL, 1, 65536, GROUP_CACHE,
	 "datasets of a directory, or files of concat, that are open at the same time"},
	{"page_cache", OPT_BOOL, "auto", FIELD(page_cache),
	 TWO("auto", "always"), 0, 0, GROUP_CACHE,
	 "auto: with filter=none, files of 256K or more bypass the page cache, which "
	 "makes the first read fastest; always: they use it, which makes later reads "
	 "faster and allows mmap"},
	{"default_chunk_size", OPT_SIZE, "4M", FIELD(limits.default_chunk_size), NULL, 4 * KIB, GIB,
	 GROUP_CACHE, "chunk size to aim for when a variable is not chunked"},
	{"concat_index", OPT_TEXT, "FILE|none", FIELD(concat.index), NULL, 0, 0, GROUP_CACHE,
	 "with concat: index file of the joined datasets; the default is a file in "
	 "~/.cache/nczarrfs; none: no index"},
	{"noxattr", OPT_FLAG, NULL, FIELD(no_xattr), NULL, 0, 0, GROUP_CACHE,
	 "no extended attributes: makes copying faster with programs that query them"},
	{"max_chunk", OPT_SIZE, "4G", FIELD(limits.max_chunk), NULL, 64 * KIB, 4 * GIB,
	 GROUP_LIMITS,
	 "maximum size of a decoded chunk; arrays with larger chunks cannot be shown"},
	{"open_timeout", OPT_UINT, "120", FIELD(limits.open_timeout), NULL, 0, 86400, GROUP_LIMITS,
	 "seconds after which opening SOURCE fails; 0: no limit"},
	{"external_root", OPT_TEXT, "DIR", FIELD(external_root), NULL, 0, 0, GROUP_LIMITS,
	 "directory below which links of SOURCE (HDF5 external links, references) may "
	 "point; the default is the directory of SOURCE, or none with allow_other"},
	{"noplugins", OPT_FLAG, NULL, FIELD(noplugins), NULL, 0, 0, GROUP_LIMITS,
	 "do not use filter plugins of HDF5 and netCDF-C"},
	{"sandbox_codecs", OPT_FLAG, NULL, FIELD(sandbox_codecs), NULL, 0, 0, GROUP_LIMITS,
	 "decompress chunks in sandboxed processes"},
	{"quantize", OPT_RULE, NULL, FIELD(rules.quantize), no_words, 0, 0, GROUP_DETAILS,
	 "[VARIABLE[&VARIABLE...],]bitgroom,N, granularbr,N or bitround,N: keep N "
	 "significant digits (bitround: bits) of floats, as netCDF-C does when it "
	 "writes. May be repeated"},
	{"chunk_key_encoding", OPT_BOOL, "default", FIELD(zarr.v2_keys), TWO("default", "v2"), 0, 0,
	 GROUP_DETAILS, "chunk files of Zarr v3: v/c/0/0 (default), or v/0.0 as in Zarr v2"},
	{"dimension_separator", OPT_BOOL, ".", FIELD(zarr.nested), TWO(".", "/"), 0, 0,
	 GROUP_DETAILS, "chunk files are v/0.0 (.) or v/0/0 (/, the default of Zarr v3)"},
	{"json_nan", OPT_BOOL, "literal", FIELD(zarr.strict_json),
	 TWO("literal", "string"), 0, 0, GROUP_DETAILS,
	 "NaN and Infinity in attributes: literal: as Python writes them; string: as "
	 "strings, in strict JSON, the default of Zarr v3"},
	{"concat_compat", OPT_BOOL, "override", FIELD(concat.equal),
	 TWO("override", "equals"), 0, 0, GROUP_DETAILS,
	 "with concat: variables without the dimension are taken from the first file "
	 "(override), or must be equal in all files (equals)"},
	{"inline", OPT_FLAG, NULL, FIELD(refs.inlined), NULL, 0, 0, GROUP_REFS,
	 "embed chunks that references cannot point to"},
	{"table", OPT_FLAG, NULL, FIELD(refs.table), NULL, 0, 0, GROUP_REFS,
	 "write a table with a row for each chunk, one Parquet file, for Spark and SQL"},
	{"address", OPT_TEXT, "URL", FIELD(refs.address), NULL, 0, 0, GROUP_REFS,
	 "where readers of the references find SOURCE; the default is where it is now"},
	{"debug", OPT_FLAG, NULL, FIELD(debug), NULL, 0, 0, GROUP_LOG, "log every request"},
	{"log", OPT_TEXT, "COMPONENT=LEVEL", FIELD(log), NULL, 0, 0, GROUP_LOG,
	 "log level of a component: error, warn, info or debug, for fuse, source, codec, "
	 "cache, http, write, isolate or all; write ':' between two of them"},
	{"metrics", OPT_TEXT, "SOCKET", FIELD(metrics), NULL, 0, 0, GROUP_LOG,
	 "Unix socket that serves counters in OpenMetrics format"},
	{"config", OPT_TEXT, "FILE", FIELD(config.file), NULL, 0, 0, GROUP_LOG,
	 "configuration file to read instead of /etc/nczarrfs.conf and "
	 "~/.config/nczarrfs.conf"},
};
const char *const cfg_mount_options[] = {
	"allow_other",
	"allow_root",
	"auto_unmount",
	"default_permissions",
	"max_read=",
	"max_threads=",
	"max_idle_threads=",
	"clone_fd",
	"fsname=",
	"subtype=",
	"ro",
	"nosuid",
	"nodev",
	"noexec",
	"exec",
	"sync",
	"async",
	"dirsync",
	"noatime",
	"context=",
	"fscontext=",
	"defcontext=",
	"rootcontext=",
};

/* Words of fstab without meaning for a mounted filesystem, and those whose opposite is fixed
 * (mount.fuse3 adds dev and suid by itself). */
const char *const cfg_ignored_options[] = {
	"defaults", "auto",   "noauto",  "user", "nouser", "users",  "nousers", "owner",
	"group",    "nofail", "_netdev", "dev",  "suid",   "nosuid", "nodev",
};
const size_t cfg_n_options = ARRAY_LEN(cfg_options);
const size_t cfg_n_mount_options = ARRAY_LEN(cfg_mount_options);
const size_t cfg_n_ignored_options = ARRAY_LEN(cfg_ignored_options);

_Static_assert(ARRAY_LEN(cfg_options) <= CFG_OPTIONS_MAX, "a bit for each option");
_Static_assert(ARRAY_LEN(cfg_mount_options) <= CFG_OPTIONS_MAX, "room for each");
