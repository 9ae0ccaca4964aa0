/* SPDX-License-Identifier: BSD-3-Clause */
/* option_table.h - shared by the parts of mountcfg only. */
#ifndef MOUNTCFG_OPTIONS_OPTION_TABLE_H
#define MOUNTCFG_OPTIONS_OPTION_TABLE_H

#include "mountcfg/options.h"

/* ---- the table of commands (cli/commands.c) ---- */

enum cfg_place { /* the kind of an argument, and its field */
	PLACE_NONE,
	PLACE_SOURCE,     /* a path or an address: cfg->source, remote, shown, user, password */
	PLACE_MOUNTPOINT, /* a directory: cfg->mountpoint */
	PLACE_TO,         /* a local path, or an address of an object store: cfg->out */
	PLACE_OUT,        /* a local path or "-", which is also the default: cfg->out */
	PLACE_MOUNT,      /* a mountpoint: cfg->source */
	PLACE_TEXT,       /* any string: cfg->out */
	PLACE_NAME,       /* any string: cfg->more.v */
};

enum { /* cfg_command_row.flags */
	CMD_JSON = 1, /* has --json */
	CMD_MORE = 2, /* any number of its first argument: further ones go to cfg->more.v */
	CMD_RESUME = 0x100, /* has --resume; more flags: cfg_flags */
	CMD_QUICK = 0x200,
	CMD_FORCE = 0x400,
	CMD_SERVE = 0x800,
	CMD_VERIFY = 0x1000,
	CMD_VARIABLE = 0x2000,
	/* any number of SOURCE: several go to cfg->more.v as typed, and the program runs once for
	 * each */
	CMD_EACH = 0x10,
	CMD_ALL = 4,  /* has -a, in place of names */
	CMD_FILES = 8, /* needs the configuration files, although it has no SOURCE */
};

struct cfg_command_row {
	enum cfg_command command;
	const char *word;         /* ""; none */
	enum cfg_place places[2];
	size_t required;          /* number of required arguments */
	unsigned flags;
	const char *args;         /* of usage */
	const char *help;
};

#define CFG_USAGE_MAX 200

extern const struct cfg_command_row cfg_commands[];
extern const size_t cfg_n_commands;
/* cfg_command_find - find a command by its word or its alias; NULL: none. */
const struct cfg_command_row *cfg_command_find(const char *word);
const struct cfg_command_row *cfg_command_row(enum cfg_command command);
/* cfg_command_misspelt - -EINVAL if the argument in SOURCE's position does not exist and resembles
 * a command, or if the next argument (NULL: none) is a file, as a source is; 0 otherwise. */
int cfg_command_misspelt(const char *word, const char *next, struct err *e) NZ_MUST_USE;
/* cfg_is_file - true if the path exists and is not a directory: it cannot be a mountpoint. */
bool cfg_is_file(const char *path);
/* cfg_command_usage - write "usage: nczarrfs info [--json] ..."; returns out. */
const char *cfg_command_usage(enum cfg_command command, char out[CFG_USAGE_MAX]);
/* cfg_command_flag - parse a flag of the table. next: the next argument, or NULL. Returns the
 * number of arguments used; 0: not such a flag; -EINVAL; -ENOMEM. */
int cfg_command_flag(struct cfg *cfg, const char *arg, const char *next,
		     struct err *e) NZ_MUST_USE;
/* cfg_flag - a flag. */
struct cfg_flag {
	const char *word;
	unsigned cmd;      /* the commands that have it, as in cfg_command_row.flags; 0: any */
	size_t field;      /* in struct cfg: a bool, or, with a value, an owned string */
	const char *value; /* name of its value; NULL: no value */
	const char *help;
};
extern const struct cfg_flag cfg_flags[];
extern const size_t cfg_n_flags;
/* cfg_command_flags_check - check that the command has the flags that were given. -EINVAL. */
int cfg_command_flags_check(const struct cfg *cfg, struct err *e) NZ_MUST_USE;
/* cfg_place_name - name of an argument for messages: "SOURCE". */
const char *cfg_place_name(enum cfg_place place);

/* ---- further text of `COMMAND --help` (cli/help_table.c) ---- */

struct cfg_help_row {
	enum cfg_command command;
	unsigned groups;      /* of options that matter for the command */
	const char *options;  /* names of other options, separated by blanks */
	const char *about;
	const char *examples[2];
};

/* cfg_help_row - the row of a command. */
const struct cfg_help_row *cfg_help_row(enum cfg_command command);

/* ---- the table of options (options_table.c) ---- */

enum cfg_kind {
	OPT_WORD,  /* one of `words`, stored as an int */
	OPT_BOOL,  /* one of two words, stored as a bool */
	OPT_SIZE,  /* bytes, with K, M or G, stored as a uint64_t */
	OPT_BARE,  /* the same, unset by default; `initial` is the value of the name alone */
	OPT_UINT,  /* number, stored as a uint32_t */
	OPT_TEXT,  /* any string, stored as an owned string */
	OPT_FLAG,  /* no value: sets a bool */
	OPT_RULE,  /* a rule with variables and commas, stored in a struct cfg_strings, or, of
		    * filter, a word, stored in cfg->rules.filter; may be repeated */
	OPT_LIST,  /* names separated by commas, stored in the same; may be repeated */
};

struct cfg_word {
	const char *text;  /* NULL ends a list */
	int value;
	bool hidden;       /* accepted, but neither listed nor suggested */
};

struct cfg_option {
	const char *name;
	enum cfg_kind kind;
	/* the default as a user would type it; NULL: unset. OPT_TEXT has no default: the name of
	 * its value in --help */
	const char *initial;
	size_t field;        /* offset in struct cfg */
	const struct cfg_word *words;
	uint64_t min, max;   /* OPT_SIZE, OPT_BARE, OPT_UINT */
	unsigned group;      /* of --help: one bit */
	const char *help;
};

enum { /* groups of options, in the order of --help */
	GROUP_COMMON = 1,
	GROUP_DETAILS = 2,
	GROUP_REMOTE = 4,
	GROUP_WRITING = 8,
	GROUP_CACHE = 0x10,
	GROUP_LIMITS = 0x20,
	GROUP_LOG = 0x40,
	GROUP_REFS = 0x80,
	GROUP_FUSE = 0x100, /* cfg_mount_options */
};

#define CFG_OPTIONS_MAX 64 /* a bit of cfg->said for each */

extern const struct cfg_option cfg_options[];
extern const size_t cfg_n_options;
/* Options that are passed to libfuse. '=' at the end: takes a value. */
extern const char *const cfg_mount_options[];
extern const size_t cfg_n_mount_options;
extern const char *const cfg_ignored_options[];
extern const size_t cfg_n_ignored_options;

/* ---- parsing ---- */

/* cfg_option_find - the option whose name has these len bytes; NULL: none. */
const struct cfg_option *cfg_option_find(const char *name, size_t len);
/* cfg_drop_mount_option - remove a mount option that was given. */
void cfg_drop_mount_option(struct cfg *cfg, const char *name, size_t len);

/* cfg_defaults - set every -o option to its default. Returns 0; -EINVAL never occurs with a valid
 * table; -ENOMEM. */
int cfg_defaults(struct cfg *cfg, struct err *e) NZ_MUST_USE;

/* cfg_set_options - parse the argument of one -o: options separated by commas; a backslash quotes
 * the next character. In the rules of -o filter=, quantize=, chunks= and rechunk= and the names of
 * unlimited=, a comma belongs to the value unless the text after it can only be another option, and
 * a backslash is kept except before a comma or a backslash. Returns 0; -EINVAL with the error;
 * -ENOMEM. */
int cfg_set_options(struct cfg *cfg, const char *list, struct err *e) NZ_MUST_USE;

/* cfg_set_long - parse "--name", "--name=VALUE" or, with the next argument (next, NULL: none),
 * "--name VALUE" of an option of the table or of the mount, with - for _ in its name. The value is
 * used as it is. Returns the number of arguments used; 0: no such option; -EINVAL; -ENOMEM. */
int cfg_set_long(struct cfg *cfg, const char *arg, const char *next, struct err *e) NZ_MUST_USE;
/* cfg_unknown_long - -EINVAL for a long option that does not exist. flags: n further words to
 * suggest, without "--" and with _ for -. */
int cfg_unknown_long(const char *arg, const char *const *flags, size_t n, struct err *e);

/* cfg_set_key - apply one key of a configuration file, which may be any option's name: flags have
 * yes or no. home: NULL, or the value of "~" in paths, which must be absolute. Returns 0; -ENOENT:
 * no such option; otherwise as cfg_set_options. */
int cfg_set_key(struct cfg *cfg, const char *name, const char *value, const char *home,
		struct err *e) NZ_MUST_USE;
/* cfg_unknown - -EINVAL for a name that is no option. lead: before the name in the message; extra:
 * n further names to suggest. */
int cfg_unknown(const char *lead, const char *name, const char *const *extra, size_t n,
		struct err *e);

/* ---- origins of values (config/origin.c) ---- */

/* Origins in increasing precedence. Each matching section for patterns has a value of its own:
 * CFG_AT_PATTERN is that of the least specific. */
enum {
	CFG_AT_BUILTIN, CFG_AT_SYSTEM, CFG_AT_USER, CFG_AT_PATTERN, CFG_AT_NAMED = 250, CFG_AT_LINE
};

int cfg_from_new(struct cfg *cfg, struct err *e) NZ_MUST_USE; /* without it no origin is recorded */
void cfg_from_free(struct cfg_from *f); /* takes NULL */
/* cfg_from_set - set the origin of the following values. where is borrowed until the next call. */
void cfg_from_set(struct cfg *cfg, int at, const char *where);
/* cfg_from_take - true if an option of the table (by its number), or of the mount, has to be set
 * from the present origin, which is recorded. Only the first origin with an option sets it: origins
 * are read in decreasing precedence. */
bool cfg_from_take(struct cfg *cfg, size_t option);
bool cfg_from_take_mount(struct cfg *cfg, const char *name, size_t len);
/* cfg_from_rule - record that a value of a repeatable option was set from the origin of
 * cfg_from_set. */
void cfg_from_rule(struct cfg *cfg, const char *value);
/* cfg_from_note - record that a command-line flag has set this option of the table. */
void cfg_from_note(struct cfg *cfg, const char *name);
/* cfg_from_at - origin of an option; CFG_AT_BUILTIN if it was not set. */
int cfg_from_at(const struct cfg *cfg, const char *name);

/* ---- configuration files ---- */

struct conf;
struct conf_section;
/* conf_open - read and check the files; none of them need exist. The caller frees *ret. cfg: gets
 * files and note. */
int conf_open(const struct cfg_files *files, struct cfg *cfg, struct conf **ret,
	      struct err *e) NZ_MUST_USE;
void conf_free(struct conf *c); /* takes NULL */
/* conf_named - the section [mount NAME], borrowed; NULL. */
const struct conf_section *conf_named(const struct conf *c, const char *name);
/* conf_place - source= or target= as an absolute path or address; the caller frees *ret. */
int conf_place(const struct conf_section *s, const char *key, char **ret,
	       struct err *e) NZ_MUST_USE;
/* conf_apply - set the values of the files that no origin of higher precedence has set. named:
 * NULL; source: as an absolute path or an address without a user; NULL: none. */
int conf_apply(const struct conf *c, const struct conf_section *named, const char *source,
	       struct cfg *cfg, struct err *e) NZ_MUST_USE;
/* conf_mounts - fill cfg->config.mounts. */
int conf_mounts(const struct conf *c, struct cfg *cfg, struct err *e) NZ_MUST_USE;
/* conf_unknown_mount - -ENOENT with a suggestion. */
int conf_unknown_mount(const struct conf *c, const char *name, struct err *e);

struct address;
/* cfg_rc - apply .ncrc, .daprc and .dodsrc for a remote address; options and the address have
 * precedence. Returns 0; -EINVAL: a file is malformed; -EACCES. */
int cfg_rc(struct cfg *cfg, const struct address *a, struct err *e) NZ_MUST_USE;

/* cfg_settle - set defaults that depend on other options, apply the effects of the command and of
 * mount options, and check for conflicts. Call it after all options. Returns 0; -EINVAL with a
 * correction. */
int cfg_settle(struct cfg *cfg, struct err *e) NZ_MUST_USE;

/* cfg_put_size - append a size as a user would type it. */
void cfg_put_size(uint64_t v, struct buf *out);
/* cfg_strings_add - append a copy of text to a list. Returns 0; -ENOMEM. */
int cfg_strings_add(struct cfg_strings *list, const char *text, struct err *e) NZ_MUST_USE;
/* cfg_strings_drop - free the strings; the list is empty then. */
void cfg_strings_drop(struct cfg_strings *list);

#endif
