/* options_table.c - the table of -o options, and the lists of those that are the mount's own. */
#include <stddef.h>

#include "mountcfg/options/option_table.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static const struct cfg_word mode_words[] = {
	{"zarr", CFG_MODE_ZARR, false},
	{"nczarr", CFG_MODE_NCZARR, false},
	{"noxarray", CFG_MODE_NOXARRAY, false},
	{"xarray", CFG_MODE_ZARR, true}, /* NCZarr's word for what zarr does here */
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
	{"netcdf", CFG_VIEW_NC, true},
	{NULL, 0, false},
};
static const struct cfg_word bad_words[] = {
	{"fail", 0, false}, {"skip", 1, false}, {NULL, 0, false}};
static const struct cfg_word separator_words[] = {
	{".", 0, false}, {"/", 1, false}, {NULL, 0, false}};
static const struct cfg_word format_words[] = {
	{"2", 0, false}, {"3", 1, false}, {NULL, 0, false}};
static const struct cfg_word keys_words[] = {
	{"default", 0, false}, {"v2", 1, false}, {NULL, 0, false}};
static const struct cfg_word page_cache_words[] = {
	{"auto", 0, false}, {"always", 1, false}, {NULL, 0, false}};
static const struct cfg_word json_words[] = {
	{"literal", 0, false}, {"string", 1, false}, {NULL, 0, false}};
static const struct cfg_word new_words[] = {
	{"convert", 0, false}, {"keep", 1, false}, {NULL, 0, false}};
static const struct cfg_word show_words[] = {
	{"both", CFG_FORMS_BOTH, false},
	{"converted", CFG_FORMS_CONVERTED, false},
	{"zarr", CFG_FORMS_ZARR, false},
	{"nc", CFG_FORMS_NC, false},
	{"netcdf", CFG_FORMS_NC, true},
	{NULL, 0, false},
};
static const struct cfg_word others_words[] = {
	{"override", 0, false}, {"equals", 1, false}, {NULL, 0, false}};
static const struct cfg_word style_words[] = {
	{"path", 0, false}, {"virtual", 1, false}, {NULL, 0, false}};
static const struct cfg_word consolidated_words[] = {
	{"auto", -1, false}, {"always", 1, false}, {"never", 0, false}, {NULL, 0, false}};

#define FIELD(f) offsetof(struct cfg, f)

const struct cfg_option cfg_options[] = {
	{"view", OPT_WORD, "auto", FIELD(view), view_words, 0, 0,
	 "auto: netCDF-4 and HDF5 files as Zarr trees, Zarr trees as netCDF-4 files, a "
	 "directory "
	 "of such datasets as itself with their counterparts beside them; zarr or nc: this, "
	 "whatever SOURCE is"},
	{"show", OPT_WORD, "both", FIELD(forms), show_words, 0, 0,
	 "the forms in which a directory lists its datasets: both; the converted one alone; "
	 "zarr: "
	 "each as a Zarr tree; nc: each as a file. The others can be opened by their names"},
	{"mode", OPT_WORD, "zarr", FIELD(mode), mode_words, 0, 0,
	 "what a Zarr tree looks like: zarr (v2, for zarr-python, xarray, GDAL), "
	 "nczarr (for netCDF-C), noxarray (without _ARRAY_DIMENSIONS)"},
	{"zarr_format", OPT_BOOL, "2", FIELD(zarr3), format_words, 0, 0,
	 "the version of Zarr that trees are in; 3: with mode=zarr or noxarray (without "
	 "dimension_names)"},
	{"shards", OPT_BARE, "64M", FIELD(shard_size), NULL, 4 * KIB, 1024 * GIB,
	 "Zarr v3, with the chunks of a variable in files of about so many bytes of elements"},
	{"chunk_key_encoding", OPT_BOOL, "default", FIELD(v2_keys), keys_words, 0, 0,
	 "of Zarr v3: chunk files are v/c/0/0, or v/0.0 as in Zarr v2"},
	{"filter", OPT_RULE, "portable", FIELD(filter), filter_words, 0, 0,
	 "portable: pass compressed chunks that stock readers decode, decode the rest (with "
	 "mode=nczarr all); "
	 "keep: pass all whose filters can be named, for readers with plugins; "
	 "none: decode everything; [VARIABLE[&VARIABLE...],]SPEC: show chunks as if they had "
	 "been written with other filters, as nccopy takes them: '*,shuffle|deflate,5', "
	 "'v1&/g/v2,zstd', 'v3,none'. May be repeated: what names a variable wins over '*', "
	 "and "
	 "the later over the earlier. Commas belong to it up to the next option"},
	{"quantize", OPT_RULE, NULL, FIELD(quantize_rules), no_words, 0, 0,
	 "[VARIABLE[&VARIABLE...],]bitgroom,N, granularbr,N or bitround,N: keep N significant "
	 "digits (bitround: bits) of floats, as netCDF-C does when it writes. May be repeated"},
	{"unsupported", OPT_BOOL, "fail", FIELD(hide_bad), bad_words, 0, 0,
	 "what cannot be shown at all: do not mount, and say why; or leave it out, with a "
	 "note"},
	{"dimension_separator", OPT_BOOL, ".", FIELD(nested), separator_words, 0, 0,
	 "chunk files are v/0.0 (.) or v/0/0 (/, the default of Zarr v3)"},
	{"json_nan", OPT_BOOL, "literal", FIELD(strict_json), json_words, 0, 0,
	 "numbers that are not finite in attributes: NaN and Infinity as Python writes them, "
	 "or as strings, in strict JSON, which is the default of Zarr v3"},
	{"page_cache", OPT_BOOL, "auto", FIELD(page_cache), page_cache_words, 0, 0,
	 "auto: with filter=none, files of 256K or more bypass the page cache, which is the "
	 "quickest way to read them once; always: they do not, which is quicker the second "
	 "time, and lets programs map them"},
	{"default_chunk_size", OPT_SIZE, "4M", FIELD(default_chunk_size), NULL, 4 * KIB, GIB,
	 "chunk size to aim for where a variable is not chunked"},
	{"max_chunk", OPT_SIZE, "4G", FIELD(max_chunk), NULL, 64 * KIB, 4 * GIB,
	 "most memory that one chunk may take, decoded; an array with larger ones is damaged"},
	{"memory", OPT_SIZE, "2G", FIELD(memory), NULL, 128 * KIB, 1024 * GIB,
	 "most memory that a mount plans with: half for names, types and attributes, a quarter for "
	 "the chunk index of one variable, an eighth for the structure of a virtual netCDF-4 file; "
	 "cache_size, remote_cache_size and prefetch_size are shares of it unless they are given"},
	{"cache_size", OPT_SIZE, "64M", FIELD(cache_size), NULL, 0, 1024 * GIB,
	 "memory for decoded chunks; of a directory, each dataset has at most a quarter"},
	{"open_datasets", OPT_UINT, "64", FIELD(open_datasets), NULL, 1, 65536,
	 "datasets of a directory, or files of concat, that are open at a time"},
	{"decode_threads", OPT_UINT, "0", FIELD(decode_threads), NULL, 0, 256,
	 "threads that decode chunks ahead of readers; 0: one less than processors"},
	{"open_timeout", OPT_UINT, "120", FIELD(open_timeout), NULL, 0, 86400,
	 "seconds until SOURCE must be open; 0: wait for ever"},
	{"external_root", OPT_TEXT, "DIR", FIELD(external_root), NULL, 0, 0,
	 "links of SOURCE (HDF5's, references) may lead to files below this directory; else to "
	 "those below its own, or with allow_other to none"},
	{"concat", OPT_TEXT, "DIM", FIELD(concat), NULL, 0, 0,
	 "SOURCE is a pattern ('y/*.nc', quoted) or a directory: all its datasets as one, "
	 "joined along this dimension"},
	{"concat_compat", OPT_BOOL, "override", FIELD(concat_equal), others_words, 0, 0,
	 "with concat: variables without the dimension are those of the first file, or have "
	 "to be equal in all"},
	{"concat_index", OPT_TEXT, "FILE", FIELD(concat_index), NULL, 0, 0,
	 "with concat: where what is known of the files is kept, or none; else in "
	 "~/.cache/nczarrfs"},
	{"noxattr", OPT_FLAG, NULL, FIELD(no_xattr), NULL, 0, 0,
	 "no extended attributes: programs that copy files with those have to ask for them at "
	 "every chunk"},
	{"metrics", OPT_TEXT, "SOCKET", FIELD(metrics), NULL, 0, 0,
	 "a unix socket on which counters are given as OpenMetrics text: also --metrics "
	 "SOCKET"},
	{"log", OPT_TEXT, "COMPONENT=LEVEL", FIELD(log), NULL, 0, 0,
	 "what the log says: error, warn, info or debug, of fuse, source, codec, cache, http, "
	 "write, isolate or all; ':' between two"},
	{"config", OPT_TEXT, "FILE", FIELD(config_file), NULL, 0, 0,
	 "a configuration file that is read instead of /etc/nczarrfs.conf and "
	 "~/.config/nczarrfs.conf: also --config FILE"},
	{"noplugins", OPT_FLAG, NULL, FIELD(noplugins), NULL, 0, 0,
	 "use no filters from plugins, HDF5's or netCDF-C's"},
	{"sandbox_codecs", OPT_FLAG, NULL, FIELD(sandbox_codecs), NULL, 0, 0,
	 "decompress chunks in processes that can do nothing else"},
	{"debug", OPT_FLAG, NULL, FIELD(debug), NULL, 0, 0, "log every request"},
	{"rw", OPT_FLAG, NULL, FIELD(rw), NULL, 0, 0,
	 "what is written into the mount goes into SOURCE"},
	{"create", OPT_FLAG, NULL, FIELD(create), NULL, 0, 0,
	 "make SOURCE first: an empty Zarr tree where its name ends in .zarr, .zr3 or .zr2, "
	 "else an empty netCDF-4 file; implies rw"},
	{"new_files", OPT_BOOL, "convert", FIELD(new_as_is), new_words, 0, 0,
	 "what becomes of a dataset that is written into a mirrored directory: one of the "
	 "other format, or the same"},
	{"chunks", OPT_RULE, NULL, FIELD(chunk_rules), no_words, 0, 0,
	 "[VARIABLE[&VARIABLE...],]DIM=N[,DIM=N...]: chunks of variables that are written "
	 "without, or of those named; N is a number or all: 'time=24,lat=all'. May be "
	 "repeated. Commas belong to it up to the next option"},
	{"unlimited", OPT_LIST, NULL, FIELD(unlimited), NULL, 0, 0,
	 "dimensions without a limit, that can grow, in a netCDF-4 file that is written or "
	 "that "
	 "shows a Zarr tree, which cannot say so"},
	{"consolidated", OPT_WORD, "auto", FIELD(consolidated), consolidated_words, 0, 0,
	 "whether a Zarr tree that is written has consolidated metadata: auto: where it has, "
	 "and new ones"},
	{"stage_size", OPT_SIZE, "256M", FIELD(stage_size), NULL, 64 * KIB, 1024 * GIB,
	 "most bytes that wait beside a netCDF-4 file to be put into it"},
	{"commit_delay", OPT_UINT, "500", FIELD(commit_delay), NULL, 0, 3600000,
	 "milliseconds without a write until what was written into a tree is put into its "
	 "netCDF-4 file"},
	{"root", OPT_TEXT, "NAME", FIELD(root), NULL, 0, 0,
	 "show a writable tree as MOUNTPOINT/NAME, which programs can remove and make again: "
	 "zarr-python and xarray with mode=\"w\""},
	{"state_dir", OPT_TEXT, "DIR", FIELD(state_dir), NULL, 0, 0,
	 "where the directories are made that hold what is written and not in SOURCE yet; "
	 "else beside SOURCE"},
	{"nojournal", OPT_FLAG, NULL, FIELD(no_journal), NULL, 0, 0,
	 "change netCDF-4 files in place: a crash while that happens may damage them"},
	{"endpoint", OPT_TEXT, "URL", FIELD(endpoint), NULL, 0, 0,
	 "where all buckets of s3:// addresses are: 'http://127.0.0.1:7480'; else Amazon's"},
	{"profile", OPT_TEXT, "NAME", FIELD(profile), NULL, 0, 0,
	 "whose credentials are used, of ~/.aws/credentials and ~/.aws/config"},
	{"region", OPT_TEXT, "NAME", FIELD(region), NULL, 0, 0,
	 "the region of buckets; else what the environment and the profile say"},
	{"anonymous", OPT_FLAG, NULL, FIELD(anonymous), NULL, 0, 0,
	 "requests to S3 are not signed: for what is open to everybody"},
	{"requester_pays", OPT_FLAG, NULL, FIELD(requester_pays), NULL, 0, 0,
	 "you pay for requests to buckets whose owners want that"},
	{"s3_addressing", OPT_BOOL, "path", FIELD(virtual_hosts), style_words, 0, 0,
	 "S3's requests go to ENDPOINT/BUCKET/KEY (path) or BUCKET.ENDPOINT/KEY (virtual)"},
	{"ca_file", OPT_TEXT, "FILE", FIELD(ca_file), NULL, 0, 0,
	 "certificates to trust beside the system's"},
	{"bearer_file", OPT_TEXT, "FILE", FIELD(bearer_file), NULL, 0, 0,
	 "its first line is a token for SOURCE's web server"},
	{"netrc_file", OPT_TEXT, "FILE", FIELD(netrc_file), NULL, 0, 0,
	 "names and passwords for web servers; else ~/.netrc"},
	{"insecure", OPT_FLAG, NULL, FIELD(insecure), NULL, 0, 0,
	 "certificates are not verified, and passwords may go over http://"},
	{"private_redirects", OPT_FLAG, NULL, FIELD(private_redirects), NULL, 0, 0,
	 "redirects and references may lead to private addresses"},
	{"timeout", OPT_UINT, "60", FIELD(timeout), NULL, 1, 86400,
	 "seconds until a request to another machine must have succeeded, with all its tries"},
	{"max_attempts", OPT_UINT, "6", FIELD(max_attempts), NULL, 1, 100,
	 "most tries of a request that failed for a reason that may pass"},
	{"max_connections", OPT_UINT, "16", FIELD(max_connections), NULL, 1, 256,
	 "most connections to one machine"},
	{"remote_cache_size", OPT_SIZE, "128M", FIELD(remote_cache_size), NULL, MIB, 1024 * GIB,
	 "memory for what was fetched from other machines"},
	{"prefetch_size", OPT_SIZE, "32M", FIELD(prefetch_size), NULL, 0, 1024 * GIB,
	 "most bytes that are fetched before somebody asks for them"},
	{"cache_dir", OPT_TEXT, "DIR", FIELD(cache_dir), NULL, 0, 0,
	 "what was fetched from other machines is kept in this directory as well"},
	{"disk_cache_size", OPT_SIZE, "10G", FIELD(disk_cache_size), NULL, MIB, 1024 * GIB,
	 "bytes that cache_dir may hold"},
	{"revalidate", OPT_UINT, "60", FIELD(revalidate), NULL, 0, 86400,
	 "seconds until it is asked whether SOURCE on another machine has changed; 0: never"},
	{"inline", OPT_FLAG, NULL, FIELD(inline_refs), NULL, 0, 0,
	 "refs: chunks that references cannot lead to are put into the document"},
	{"address", OPT_TEXT, "URL", FIELD(address), NULL, 0, 0,
	 "refs: where readers of the references find SOURCE, if not where it is now"},
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

/* Words of fstab that mean nothing to a mounted filesystem, and those that always hold here
 * in the other sense (mount.fuse3 adds dev and suid unasked). */
const char *const cfg_ignored_options[] = {
	"defaults", "auto",   "noauto",  "user", "nouser", "users",  "nousers", "owner",
	"group",    "nofail", "_netdev", "dev",  "suid",   "nosuid", "nodev",
};
const size_t cfg_n_options = ARRAY_LEN(cfg_options);
const size_t cfg_n_mount_options = ARRAY_LEN(cfg_mount_options);
const size_t cfg_n_ignored_options = ARRAY_LEN(cfg_ignored_options);

_Static_assert(ARRAY_LEN(cfg_options) <= CFG_OPTIONS_MAX, "a bit for each option");
_Static_assert(ARRAY_LEN(cfg_mount_options) <= CFG_OPTIONS_MAX, "room for each");
