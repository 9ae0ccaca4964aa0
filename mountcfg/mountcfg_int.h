/* mountcfg_int.h - shared by the parts of mountcfg only. */
#ifndef MOUNTCFG_MOUNTCFG_INT_H
#define MOUNTCFG_MOUNTCFG_INT_H

#include "mountcfg/mountcfg.h"

/* ---- the table of sub-commands (commands.c) ---- */

enum cfg_place { /* what an argument is, and where it goes */
	PLACE_NONE,
	PLACE_SOURCE,     /* a path or an address: cfg->source, remote, shown, user, password */
	PLACE_MOUNTPOINT, /* a directory: cfg->mountpoint */
	PLACE_TO,         /* a local path, or an address of an object store: cfg->out */
	PLACE_OUT,        /* a local path or "-", which is also the default: cfg->out */
	PLACE_MOUNT,      /* where something is mounted: cfg->source */
	PLACE_TEXT,       /* any text: cfg->out */
	PLACE_NAME,       /* any text: cfg->more */
};

enum { /* cfg_command_row.flags */
	CMD_JSON = 1, /* has --json */
	CMD_MORE = 2, /* any number of its first place: the others go to cfg->more */
	CMD_RESUME = 0x100, /* has --resume; and so on: command_flags.c */
	CMD_QUICK = 0x200,
	CMD_FORCE = 0x400,
};

struct cfg_command_row {
	enum cfg_command command;
	const char *word;         /* ""; none */
	enum cfg_place places[2];
	size_t required;          /* so many of them have to be there */
	unsigned flags;
	const char *args;         /* of usage */
	const char *help;
};

#define CFG_USAGE_MAX 200

extern const struct cfg_command_row cfg_commands[];
extern const size_t cfg_n_commands;
/* cfg_command_find - by its word; NULL: none. */
const struct cfg_command_row *cfg_command_find(const char *word);
const struct cfg_command_row *cfg_command_row(enum cfg_command command);
/* cfg_command_usage - "usage: nczarrfs info [--json] ..."; returns out. */
const char *cfg_command_usage(enum cfg_command command, char out[CFG_USAGE_MAX]);
/* cfg_command_flag - take a flag that only some commands have. next: the argument behind it, or
 * NULL. Returns how many arguments it took; 0: it is none of them; -EINVAL; -ENOMEM. */
int cfg_command_flag(struct cfg *cfg, const char *arg, const char *next,
		     struct err *e) NZ_MUST_USE;
/* cfg_command_flag_at - their words; NULL behind the last. */
const char *cfg_command_flag_at(size_t i);
/* cfg_command_flags_check - whether the command has those that were given. -EINVAL. */
int cfg_command_flags_check(const struct cfg *cfg, struct err *e) NZ_MUST_USE;
/* cfg_place_name - for messages: "SOURCE". */
const char *cfg_place_name(enum cfg_place place);

/* ---- the table of options (options_table.c) ---- */

enum cfg_kind {
	OPT_WORD,  /* one of `words`, stored as an int */
	OPT_BOOL,  /* one of two words, stored as a bool */
	OPT_SIZE,  /* bytes, with K, M or G, stored as a uint64_t */
	OPT_BARE,  /* the same, unset as a default; `initial` is what the name alone means */
	OPT_UINT,  /* number, stored as a uint32_t */
	OPT_TEXT,  /* any text, stored as an owned string */
	OPT_FLAG,  /* no value: sets a bool */
	OPT_RULE,  /* a word, or a rule with variables and commas; may be repeated */
	OPT_LIST,  /* names with commas between them; may be repeated */
};

struct cfg_word {
	const char *text;  /* NULL ends a list */
	int value;
	bool hidden;       /* accepted, but neither listed nor guessed */
};

struct cfg_option {
	const char *name;
	enum cfg_kind kind;
	const char *initial; /* the default as a user would type it; NULL: unset. OPT_TEXT has
			      * none: what --help calls its value */
	size_t field;        /* offset in struct cfg */
	const struct cfg_word *words;
	uint64_t min, max;   /* OPT_SIZE, OPT_BARE, OPT_UINT */
	const char *help;
};

#define CFG_OPTIONS_MAX 64 /* a bit of cfg->said for each */

extern const struct cfg_option cfg_options[];
extern const size_t cfg_n_options;
/* Options that are handed on. '=' at the end: takes a value. */
extern const char *const cfg_mount_options[];
extern const size_t cfg_n_mount_options;
extern const char *const cfg_ignored_options[];
extern const size_t cfg_n_ignored_options;

/* ---- parsing ---- */

/* cfg_defaults - every -o option at its default. Returns 0; -EINVAL never happens with a sane
 * table; -ENOMEM. */
int cfg_defaults(struct cfg *cfg, struct err *e) NZ_MUST_USE;

/* cfg_set_options - take the argument of one -o: options separated by commas, where a backslash
 * takes the next character as it is. In the rules of -o filter=, quantize= and chunks= and the
 * names of unlimited= commas belong to the value up to what can only be another option, and a
 * backslash is kept but for ones before a comma or a backslash. Returns 0; -EINVAL with what is
 * wrong; -ENOMEM. */
int cfg_set_options(struct cfg *cfg, const char *list, struct err *e) NZ_MUST_USE;

struct address;
/* cfg_rc - what .ncrc and its kin say about an address on another machine, where neither
 * options nor the address do. docs/remote.md. Returns 0; -EINVAL a file is damaged; -EACCES. */
int cfg_rc(struct cfg *cfg, const struct address *a, struct err *e) NZ_MUST_USE;

/* cfg_settle - defaults that depend on other options, and what does not go together. After all
 * options. Returns 0; -EINVAL with what to type instead. */
int cfg_settle(struct cfg *cfg, struct err *e) NZ_MUST_USE;

#endif
