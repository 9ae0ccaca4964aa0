/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - what the user asked for: the command line and its -o options, as plain data.
 *
 * One table (mountcfg/options/options.c) drives parsing, --help and the check that the man page
 * agrees. An option that is not in the table is the mount's own (allow_other, max_threads ...) and
 * is handed on to libfuse. */
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
enum cfg_view { CFG_VIEW_AUTO, CFG_VIEW_ZARR, CFG_VIEW_NC };

enum cfg_forms { CFG_FORMS_BOTH, CFG_FORMS_CONVERTED, CFG_FORMS_ZARR, CFG_FORMS_NC };

enum cfg_help_topic { HELP_PROGRAM, HELP_COMMAND, HELP_OPTIONS, HELP_USAGE };

struct cfg_from; /* where the value of each option is from: mountcfg/config/origin.c */

/* cfg_mount - a section [mount NAME] of a configuration file. */
struct cfg_mount {
	char *name, *source, *target, *where; /* source: as it may be shown; where: FILE:LINE */
	bool automatic;                       /* mount -a mounts it */
};

struct cfg {
	enum cfg_command command;
	enum cfg_help_topic help; /* CFG_HELP: what to print */
	enum cfg_command help_of; /* HELP_COMMAND: the command */
	char *source;            /* absolute path once cfg_parse returns, or an address as it was
				  * typed but without its user and password; owned */
	bool remote;             /* source is an address on another machine */
	char *shown;             /* source for messages, fsname, /proc; owned */
	char *user, *password;   /* of the address, NULL; wiped from the command line */
	char *out;               /* refs: where to; "-": standard output; log: levels; owned */
	char *mountpoint;        /* owned */
	char **more;             /* n_more: the other sources of recover, as source; the names of
				  * mount and umount; all sources of info and check, as typed,
				  * if there are several */
	size_t n_more;
	bool foreground;         /* -f */
	bool verbose;            /* -v */
	bool debug;              /* -d */
	bool json;               /* --json of info and filters */
	char *resume;            /* --resume STATE of check; or NULL */
	char *variable;          /* --variable NAME of info; or NULL */
	bool quick;              /* --quick of check */
	bool force;              /* --force of convert */
	bool verify;             /* --verify of convert */
	char *port;              /* -p PORT of serve; or NULL */
	char *bind;              /* --bind ADDR of serve: what it listens on; or NULL */
	char *origin;            /* --origin ORIGIN of serve: whose pages may read it; or NULL */
	unsigned command_flags;  /* which of these were given: options/option_table.h */
	bool all;                /* -a of mount and umount */
	char *config_file;       /* -o config= : read instead of the files there are; or NULL */
	bool no_config;          /* --no-config : none is read */
	bool print_config;       /* --print-config : the command was CFG_MOUNT */
	struct cfg_mount *mounts; /* n_mounts that the files name; filled for mount, umount, list */
	size_t n_mounts;
	char **files;            /* n_files that were read, for --print-config */
	size_t n_files;
	char *note;              /* a file that was not read, and why; NULL */
	char **passed;           /* n_passed flags and options as they were typed, without -a, for
				  * the processes of mount NAME NAME */
	size_t n_passed;
	struct cfg_from *from;
	enum cfg_mode mode;      /* -o mode= */
	enum cfg_filter filter;  /* -o filter=portable|keep|none: of variables without a rule */
	char **filter_rules;     /* n_filter_rules texts of -o filter=SPEC, in the user's order; a
				  * "none" for all that came after one of them is among them */
	size_t n_filter_rules;
	char **quantize_rules;   /* n_quantize_rules texts of -o quantize=SPEC */
	size_t n_quantize_rules;
	enum cfg_view view;      /* -o view= : AUTO is the other family's view of a source */
	bool hide_bad;           /* -o unsupported=skip */
	bool zarr3;              /* -o zarr_format=3, or implied by shards */
	bool v2_keys;            /* -o chunk_key_encoding=v2 */
	bool nested;             /* -o dimension_separator=/ ; without it as the format has it */
	bool strict_json;        /* -o json_nan=string ; without it as the format wants it */
	uint64_t shard_size;     /* -o shards[=] : bytes of elements in a shard; 0: no shards */
	bool page_cache;         /* -o page_cache=always */
	bool noplugins;          /* -o noplugins */
	bool sandbox_codecs;            /* -o sandbox_codecs */
	uint64_t default_chunk_size; /* -o default_chunk_size= : of variables without chunks */
	uint64_t cache_size;     /* -o cache_size= : bytes of decoded chunks */
	uint64_t max_chunk;    /* -o max_chunk= : bytes of a decoded chunk */
	uint64_t memory;         /* -o memory= : what the sizes below are shares of */
	uint64_t index_size;     /* a quarter: bytes of one array's chunk index */
	uint64_t meta_size;      /* half: bytes of the dataset's metadata */
	uint64_t image_size;     /* an eighth: bytes of a virtual file's structure */
	uint32_t open_datasets;  /* -o open_datasets= : most that a mirrored directory keeps open */
	uint32_t decode_threads; /* -o decode_threads= : 0 = one less than processors */
	uint32_t open_timeout;   /* -o open_timeout= : seconds until a source must be open */
	uint64_t said;           /* bit i: option i of the table was given, see cfg_said */
	bool no_xattr;           /* -o noxattr */
	char *metrics;           /* -o metrics= : a socket; or NULL */
	char *log;               /* -o log= : levels of components, see log_configure; or NULL */
	char *external_root;     /* -o external_root= : links may lead below it; or NULL */
	char *concat;            /* -o concat= : SOURCE is many, joined along it; or NULL */
	bool concat_equal;       /* -o concat_compat=equals */
	char *concat_index;      /* -o concat_index= : a file, "none", or NULL: one in the user's
				  * cache directory */
	bool rw;                 /* -o rw */
	bool create;             /* -o create: SOURCE is made, empty; implies rw */
	char *root;              /* -o root= : the directory in which a writable tree is; or NULL */
	char *state_dir;         /* -o state_dir= : where state directories are made; or NULL */
	char **chunk_rules;      /* n_chunk_rules texts of -o chunks=RULE */
	size_t n_chunk_rules;
	char **unlimited;        /* n_unlimited names of -o unlimited=DIM: dimensions made so */
	size_t n_unlimited;
	int consolidated;        /* -o consolidated=auto|always|never : -1, 1, 0 */
	enum cfg_forms forms;     /* -o show= : which forms of its datasets a directory lists */
	bool new_as_is;          /* -o new_files=keep: new files of a mirrored directory stay what
	                          * they are; else they become datasets of the other family */
	uint64_t stage_size;     /* -o stage_size= : bytes that wait to be put into an HDF5 file */
	uint64_t write_size;     /* a 32nd of memory: for files that are being written */
	uint32_t commit_delay;   /* -o commit_delay= : ms without a write until a commit begins */
	/* Things on other machines (docs/dev/remote.md). */
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
	bool insecure;           /* -o insecure : certificates are not verified, and passwords may
				  * go over http:// */
	bool unverified;         /* an rc file: certificates are not verified */
	bool private_redirects;  /* -o private_redirects : redirects and references may lead to
				  * private addresses */
	uint32_t timeout;        /* -o timeout= : seconds of one request with all its tries */
	uint32_t max_attempts;          /* -o max_attempts= : of one request */
	uint32_t max_connections;    /* -o max_connections= : to one host */
	uint64_t remote_cache_size;    /* -o remote_cache_size= : memory for what was fetched */
	uint64_t
		prefetch_size; /* -o prefetch_size= : fetched before it is asked for, at most */
	char *cache_dir;         /* -o cache_dir= : what was fetched is kept there; or NULL */
	uint64_t disk_cache_size; /* -o disk_cache_size= : bytes of it */
	uint32_t revalidate;    /* -o revalidate= : seconds until the service is asked whether
				  * what is known still holds; 0: never */
	char *address;           /* refs: -o address= : of SOURCE, as readers of the references
				  * reach it; or NULL: as it is here */
	bool inline_refs;        /* refs: -o inline : chunks that do not pass are put into the
				  * document */
	char **fuse_opts;        /* n_fuse_opts options for libfuse, each "name" or "name=value" */
	size_t n_fuse_opts;
};

/* cfg_files - the paths of configuration files; NULL: none. docs/reference/nczarrfs.conf.5. */
struct cfg_files {
	const char *system, *user; /* absolute paths; borrowed */
};

/* cfg_parse - fill cfg from the command line and the configuration files. Relative paths are made
 * absolute. Returns 0 (cfg_release it); -EINVAL with what is wrong and what to type instead;
 * -EACCES a configuration file that others may write, or read though it has a password. */
int cfg_parse(int argc, char *const *argv, const struct cfg_files *files, struct cfg *cfg,
	      struct err *e) NZ_MUST_USE;
/* cfg_user_file - $XDG_CONFIG_HOME/nczarrfs.conf or ~/.config/nczarrfs.conf; NULL: there is no
 * home. The caller's. */
char *cfg_user_file(void);
#define CFG_SYSTEM_FILE "/etc/nczarrfs.conf"

void cfg_release(struct cfg *cfg);
/* cfg_forget - wipe what is secret, in place: user, password, keys, addresses. For processes that
 * do not open the source; what is shown stays. Allocates nothing; cfg_release it all the same. */
void cfg_forget(struct cfg *cfg);

/* cfg_each - all options of the table that are in force, and those of the mount: as text, said when
 * the user gave it. is_path: its value is a text of the user's own, mostly a path. */
void cfg_each(const struct cfg *cfg,
	      void (*fn)(void *arg, const char *name, const char *value, bool said, bool is_path),
	      void *arg);

/* cfg_show - a source for messages: of an address only what has no secrets; free it. */
char *cfg_show(const char *arg);

/* cfg_where - where the value of an option is from: "command line", "FILE:LINE", "built in".
 * Borrowed from cfg. */
const char *cfg_where(const struct cfg *cfg, const char *name);

/* cfg_place_error - an error about the value of an option, "-o NAME...", says the file and line
 * that the value is from, if it is from one. Returns e's code. */
int cfg_place_error(const struct cfg *cfg, struct err *e);

/* cfg_said - whether an option was given, as opposed to its default. */
bool cfg_said(const struct cfg *cfg, const char *name);

/* cfg_nearest - the word among `words` that looks most like `word`; NULL when none is close.
 * n words, each of which may end in '=' (not compared). Borrowed. */
const char *cfg_nearest(const char *word, const char *const *words, size_t n);

/* cfg_help - append what is printed for CFG_HELP. */
void cfg_help(const struct cfg *cfg, struct buf *out);

#endif
