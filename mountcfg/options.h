/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the user's request: the command line and its -o options, as plain data.
 *
 * One table (mountcfg/options/options_table.c) drives parsing, --help and the check that the man
 * page agrees. Options that are not in the table belong to the mount (allow_other, max_threads ...)
 * and are passed to libfuse. */
#ifndef MOUNTCFG_OPTIONS_H
#define MOUNTCFG_OPTIONS_H

#include "base/core/buf.h"
#include "base/core/err.h"

enum cfg_command {
	CFG_MOUNT, CFG_INFO, CFG_FILTERS, CFG_RECOVER, CFG_REFS, CFG_STATUS, CFG_LOG,
	CFG_MOUNT_NAMED, CFG_UMOUNT, CFG_LIST, CFG_PRINT, CFG_CHECK, CFG_CONVERT, CFG_SERVE,
	CFG_HELP, CFG_VERSION
};
enum cfg_mode { CFG_MODE_ZARR, CFG_MODE_NCZARR, CFG_MODE_NOXARRAY };
enum cfg_filter { CFG_FILTER_PORTABLE, CFG_FILTER_KEEP, CFG_FILTER_NONE };
enum cfg_view { CFG_VIEW_AUTO, CFG_VIEW_ZARR, CFG_VIEW_NC, CFG_VIEW_CLASSIC };

enum cfg_forms { CFG_FORMS_BOTH, CFG_FORMS_CONVERTED, CFG_FORMS_ZARR, CFG_FORMS_NC };

enum cfg_help_topic { HELP_PROGRAM, HELP_COMMAND, HELP_OPTIONS, HELP_USAGE };

struct cfg_from; /* the origin of each option's value: mountcfg/config/origin.c */

/* cfg_mount - a section [mount NAME] of a configuration file. */
struct cfg_mount {
	char *name, *source, *target, *where; /* source: without secrets; where: FILE:LINE */
	bool automatic;                       /* mount -a mounts it */
};

/* cfg_strings - n owned strings. */
struct cfg_strings {
	char **v;
	size_t n;
};

/* cfg_zarr - how a Zarr store is presented and written. */
struct cfg_zarr {
	enum cfg_mode mode;      /* -o mode= */
	bool zarr3;              /* -o zarr_format=3, or implied by shards */
	bool v2_keys;            /* -o chunk_key_encoding=v2 */
	bool nested;             /* -o dimension_separator=/ ; default: the format's */
	bool strict_json;        /* -o json_nan=string ; default: the format's */
	uint64_t shard_size;     /* -o shards[=] : bytes of elements in a shard; 0: no shards */
	int consolidated;        /* -o consolidated=auto|always|never : -1, 1, 0 */
};

/* cfg_rules - filters and chunks of variables; each list in the user's order. */
struct cfg_rules {
	enum cfg_filter filter;  /* -o filter=portable|keep|none: for variables without a rule */
	/* -o filter=SPEC, with each "none" that applies to all variables after earlier rules */
	struct cfg_strings filters;
	struct cfg_strings quantize; /* -o quantize=SPEC */
	struct cfg_strings chunks;   /* -o chunks=RULE */
	struct cfg_strings rechunk;  /* -o rechunk=RULE */
};

/* cfg_limits - memory, threads and time. */
struct cfg_limits {
	uint64_t memory;         /* -o memory= : the total of which the sizes below are shares */
	uint64_t meta_size;      /* half: bytes of the dataset's metadata */
	uint64_t index_size;     /* a quarter: bytes of one array's chunk index */
	uint64_t image_size;     /* an eighth: bytes of a virtual file's structure */
	uint64_t write_size;     /* a 32nd: for files that are being written */
	uint64_t cache_size;     /* -o cache_size= : bytes of decoded chunks */
	uint64_t max_chunk;      /* -o max_chunk= : bytes of a decoded chunk */
	uint64_t default_chunk_size; /* -o default_chunk_size= : of variables without chunks */
	uint32_t open_datasets;  /* -o open_datasets= : limit for a mirrored directory */
	uint32_t decode_threads; /* -o decode_threads= : 0 = one less than processors */
	uint32_t open_timeout;   /* -o open_timeout= : seconds until a source must be open */
};

struct cfg_concat {
	/* -o concat= : dimension to concatenate SOURCE's files along; or NULL */
	char *dim;
	bool equal;              /* -o concat_compat=equals */
	/* -o concat_index= : a file, "none", or NULL: a file in the user's cache directory */
	char *index;
};

struct cfg_write {
	bool rw;                 /* -o rw */
	bool create;             /* -o create: create SOURCE, empty; implies rw */
	/* -o root= : the directory of a writable Zarr store view; or NULL */
	char *root;
	char *state_dir;         /* -o state_dir= : parent of state directories; or NULL */
	/* -o new_files=keep: new files of a mirrored directory stay as they are; otherwise they
	 * become datasets of the other format */
	bool new_as_is;
	uint64_t stage_size;     /* -o stage_size= : bytes of pending writes for an HDF5 file */
	uint32_t commit_delay;   /* -o commit_delay= : ms without a write until a commit begins */
};

/* cfg_remote - access to remote sources (docs/dev/remote.md). */
struct cfg_remote {
	char *endpoint;          /* -o endpoint= : an address of an S3 service; or NULL */
	char *profile, *region;  /* -o profile=, region= : of AWS; or NULL */
	char *access_key, *secret_key; /* of .ncrc; or NULL */
	char *aws_config;        /* of .ncrc; or NULL */
	bool anonymous;          /* -o anonymous : requests are not signed */
	bool requester_pays;     /* -o requester_pays */
	bool virtual_hosts;      /* -o s3_addressing=path|host */
	char *ca_file;           /* -o ca_file= : certificates to trust; or NULL */
	char *bearer_file;       /* -o bearer_file= : its first line is a token; or NULL */
	char *netrc_file;        /* -o netrc_file= : or NULL, ~/.netrc */
	/* -o insecure : certificates are not verified, and passwords may go over http:// */
	bool insecure;
	bool unverified;         /* an rc file: certificates are not verified */
	/* -o private_redirects : redirects and references may lead to private addresses */
	bool private_redirects;
	uint32_t timeout;        /* -o timeout= : seconds of a request with all its attempts */
	uint32_t max_attempts;   /* -o max_attempts= : of one request */
	uint32_t max_connections; /* -o max_connections= : to one host */
	uint64_t cache_size;     /* -o remote_cache_size= : memory for fetched bytes */
	uint64_t prefetch_size;  /* -o prefetch_size= : limit of prefetched bytes */
	char *cache_dir;         /* -o cache_dir= : directory of fetched bytes; or NULL */
	uint64_t disk_cache_size; /* -o disk_cache_size= : limit of that directory */
	/* -o revalidate= : seconds until the service is asked for changes again; 0: never */
	uint32_t revalidate;
};

/* cfg_config - the configuration files, and what they contain. */
struct cfg_config {
	char *file;              /* -o config= : read in place of the default files; or NULL */
	bool none;               /* --no-config : no file is read */
	bool print;              /* --print-config : the command was CFG_MOUNT */
	struct cfg_mount *mounts; /* n_mounts of the files; filled for mount, umount, list */
	size_t n_mounts;
	struct cfg_strings read; /* paths of files that were read, for --print-config */
	char *note;              /* why a file was not read; NULL */
};

struct cfg {
	/* The command and its arguments. */
	enum cfg_command command;
	enum cfg_help_topic help; /* CFG_HELP: the topic */
	enum cfg_command help_of; /* HELP_COMMAND: the command */
	/* absolute path after cfg_parse, or an address as typed, but without user and password;
	 * owned */
	char *source;
	bool is_remote;          /* source is a remote address */
	char *shown;             /* source for messages, fsname, /proc; owned */
	char *user, *password;   /* of the address, NULL; wiped from the command line */
	char *out;               /* refs: output, "-": standard output; log: levels; owned */
	char *mountpoint;        /* owned */
	/* the other sources of recover, as source; the names of mount and umount; all sources of
	 * info and check, as typed, if there are several */
	struct cfg_strings more;
	bool foreground;         /* -f */
	bool verbose;            /* -v */
	bool debug;              /* -d */
	bool json;               /* --json of info and filters */
	bool all;                /* -a of mount and umount */
	/* Flags and options that one command reads; NULL: not given. */
	struct {
		char *variable;  /* --variable NAME */
	} info;
	struct {
		char *resume;    /* --resume STATE */
		bool quick;      /* --quick */
	} check;
	struct {
		bool force;      /* --force */
		bool verify;     /* --verify */
	} convert;
	struct {
		char *address;   /* -o address= : SOURCE as readers reach it; NULL: unchanged */
		bool inlined;    /* -o inline : chunks that cannot be referenced are embedded */
		bool table;      /* -o table : a table of chunks in place of references */
	} refs;
	struct {
		char *port;      /* -p PORT */
		char *bind;      /* --bind ADDR: the listening address */
		char *origin;    /* --origin ORIGIN: pages that may read it */
	} serve;
	/* flags of some commands that were given: options/option_table.h */
	unsigned command_flags;
	/* flags and options as typed, without -a, for the processes of mount NAME NAME */
	struct cfg_strings passed;

	struct cfg_config config;
	struct cfg_from *from;
	uint64_t said;           /* bit i: option i of the table was given, see cfg_said */

	/* SOURCE, and how it is shown. */
	enum cfg_view view;      /* -o view= : AUTO is the view in the source's other format */
	int classic_format;      /* -o classic_format= : 1, 2, 5; 0: auto */
	enum cfg_forms forms;    /* -o show= : names of its datasets that a directory lists */
	bool hide_bad;           /* -o unsupported=skip */
	char *external_root;     /* -o external_root= : links may lead below it; or NULL */
	/* -o unlimited=DIM: dimensions to be created unlimited */
	struct cfg_strings unlimited;
	struct cfg_zarr zarr;
	struct cfg_rules rules;
	struct cfg_concat concat;
	struct cfg_remote remote;
	struct cfg_write write;

	/* The process. */
	struct cfg_limits limits;
	bool noplugins;          /* -o noplugins */
	bool sandbox_codecs;     /* -o sandbox_codecs */
	bool page_cache;         /* -o page_cache=always */
	bool no_xattr;           /* -o noxattr */
	char *metrics;           /* -o metrics= : a socket; or NULL */
	char *log;               /* -o log= : levels of components, see log_configure; or NULL */
	/* options for libfuse, each "name" or "name=value" */
	struct cfg_strings fuse_opts;
};

/* cfg_files - the paths of configuration files; NULL: none. docs/reference/nczarrfs.conf.5. */
struct cfg_files {
	const char *system, *user; /* absolute paths; borrowed */
};

/* cfg_parse - fill cfg from the command line and the configuration files. Relative paths become
 * absolute. Returns 0 (cfg_release it); -EINVAL with the error and a correction; -EACCES: other
 * users may write a configuration file, or read one that contains a password. */
int cfg_parse(int argc, char *const *argv, const struct cfg_files *files, struct cfg *cfg,
	      struct err *e) NZ_MUST_USE;
/* cfg_xdg_dir - the user's directory in an environment variable, or in_home in the home directory.
 * New; NULL: there is none, or memory is short. */
char *cfg_xdg_dir(const char *variable, const char *in_home);
/* cfg_user_file - $XDG_CONFIG_HOME/nczarrfs.conf or ~/.config/nczarrfs.conf; NULL: no home
 * directory. The caller frees it. */
char *cfg_user_file(void);
#define CFG_SYSTEM_FILE "/etc/nczarrfs.conf"

void cfg_release(struct cfg *cfg);
/* cfg_forget - wipe secrets in place: user, password, keys, addresses. For processes that do not
 * open the source; displayed fields stay. Allocates nothing; cfg_release it nevertheless. */
void cfg_forget(struct cfg *cfg);

/* cfg_each - call fn for all effective options of the table and of the mount, with their values as
 * text; said: the user gave it. is_path: the value is free-form, usually a path. */
void cfg_each(const struct cfg *cfg,
	      void (*fn)(void *arg, const char *name, const char *value, bool said, bool is_path),
	      void *arg);

/* cfg_show - a source for messages: an address without its secrets; free it. */
char *cfg_show(const char *arg);

/* cfg_where - origin of an option's value: "command line", "FILE:LINE", "built in". Borrowed from
 * cfg. */
const char *cfg_where(const struct cfg *cfg, const char *name);

/* cfg_place_error - add file and line to an error about an option's value, "-o NAME...", if the
 * value is from a file. Returns e's code. */
int cfg_place_error(const struct cfg *cfg, struct err *e);

/* cfg_said - true if an option was given, false if it has its default. */
bool cfg_said(const struct cfg *cfg, const char *name);

/* cfg_nearest - the most similar of n `words` to `word`; NULL if none is close. A word may end in
 * '=' (not compared). Borrowed. */
const char *cfg_nearest(const char *word, const char *const *words, size_t n);
/* cfg_nearest_within - as cfg_nearest, of words with at most `limit` letters that differ. */
const char *cfg_nearest_within(const char *word, size_t limit, const char *const *words,
			       size_t n);

/* cfg_help - append the output for CFG_HELP. */
void cfg_help(const struct cfg *cfg, struct buf *out);

#endif
