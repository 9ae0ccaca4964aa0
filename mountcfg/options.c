/* options.c - the table of -o options: parsing, defaults and --help all come from it.
 *
 * Options of the mount itself are listed by name, so that a misspelt option is found here, with
 * a guess at what was meant, and not by libfuse after the source was opened. */
#include "mountcfg/mountcfg_int.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TEXTS_MAX 256 /* mount options, rules */

enum kind {
	OPT_WORD, /* one of `words`, stored as an int */
	OPT_BOOL, /* one of two words, stored as a bool */
	OPT_SIZE, /* bytes, with K, M or G, stored as a uint64_t */
	OPT_BARE, /* the same, unset as a default; `initial` is what the name alone means */
	OPT_UINT, /* number, stored as a uint32_t */
	OPT_TEXT, /* any text, stored as an owned string */
	OPT_FLAG, /* no value: sets a bool */
	OPT_RULE, /* a word, or a rule with variables and commas; may be repeated */
	OPT_LIST, /* names with commas between them; may be repeated */
};

struct word {
	const char *text; /* NULL ends a list */
	int value;
	bool hidden; /* accepted, but neither listed nor guessed */
};

struct option {
	const char *name;
	enum kind kind;
	const char *initial; /* the default as a user would type it; NULL: unset */
	size_t field;        /* offset in struct cfg */
	const struct word *words;
	uint64_t min, max; /* OPT_SIZE, OPT_BARE, OPT_UINT */
	const char *help;
};

static const struct word mode_words[] = {
	{"zarr", CFG_MODE_ZARR, false},
	{"nczarr", CFG_MODE_NCZARR, false},
	{"noxarray", CFG_MODE_NOXARRAY, false},
	{"xarray", CFG_MODE_ZARR, true}, /* NCZarr's word for what zarr does here */
	{NULL, 0, false},
};
static const struct word filter_words[] = {
	{"portable", CFG_FILTER_PORTABLE, false},
	{"keep", CFG_FILTER_KEEP, false},
	{"none", CFG_FILTER_NONE, false},
	{NULL, 0, false},
};
static const struct word no_words[] = {{NULL, 0, false}};
static const struct word view_words[] = {
	{"auto", CFG_VIEW_AUTO, false},
	{"zarr", CFG_VIEW_ZARR, false},
	{"nc", CFG_VIEW_NC, false},
	{NULL, 0, false},
};
static const struct word bad_words[] = {
	{"refuse", 0, false}, {"hide", 1, false}, {NULL, 0, false}};
static const struct word separator_words[] = {
	{".", 0, false}, {"/", 1, false}, {NULL, 0, false}};
static const struct word format_words[] = {{"2", 0, false}, {"3", 1, false}, {NULL, 0, false}};
static const struct word keys_words[] = {
	{"default", 0, false}, {"v2", 1, false}, {NULL, 0, false}};
static const struct word page_cache_words[] = {
	{"auto", 0, false}, {"always", 1, false}, {NULL, 0, false}};
static const struct word json_words[] = {
	{"python", 0, false}, {"strict", 1, false}, {NULL, 0, false}};
static const struct word new_words[] = {
	{"other", 0, false}, {"same", 1, false}, {NULL, 0, false}};
static const struct word consolidated_words[] = {
	{"auto", -1, false}, {"always", 1, false}, {"never", 0, false}, {NULL, 0, false}};

#define FIELD(f) offsetof(struct cfg, f)

static const struct option options[] = {
	{"view", OPT_WORD, "auto", FIELD(view), view_words, 0, 0,
	 "auto: netCDF-4 and HDF5 files as Zarr trees, Zarr trees as netCDF-4 files, a "
	 "directory "
	 "of such datasets as itself with their counterparts beside them; zarr or nc: this, "
	 "whatever SOURCE is"},
	{"mode", OPT_WORD, "zarr", FIELD(mode), mode_words, 0, 0,
	 "what a Zarr tree looks like: zarr (v2, for zarr-python, xarray, GDAL), "
	 "nczarr (for netCDF-C), noxarray (without _ARRAY_DIMENSIONS)"},
	{"zarr_format", OPT_BOOL, "2", FIELD(zarr3), format_words, 0, 0,
	 "the version of Zarr that trees are in; 3: with mode=zarr or noxarray (without "
	 "dimension_names)"},
	{"shards", OPT_BARE, "64M", FIELD(shard_size), NULL, 4 * KIB, 1024 * GIB,
	 "Zarr v3, with the chunks of a variable in files of about so many bytes of elements"},
	{"chunk_keys", OPT_BOOL, "default", FIELD(v2_keys), keys_words, 0, 0,
	 "of Zarr v3: chunk files are v/c/0/0, or v/0.0 as in Zarr v2"},
	{"filter", OPT_RULE, "portable", FIELD(filter), filter_words, 0, 0,
	 "portable: pass compressed chunks that stock readers decode, decode the rest; "
	 "keep: pass all whose filters can be named, for readers with plugins; "
	 "none: decode everything; [VARIABLE[&VARIABLE...],]SPEC: show chunks as if they had "
	 "been written with other filters, as nccopy takes them: '*,shuffle|deflate,5', "
	 "'v1&/g/v2,zstd', 'v3,none'. May be repeated: what names a variable wins over '*', "
	 "and "
	 "the later over the earlier. Commas belong to it up to the next option"},
	{"quantize", OPT_RULE, NULL, FIELD(quantize_rules), no_words, 0, 0,
	 "[VARIABLE[&VARIABLE...],]bitgroom,N, granularbr,N or bitround,N: keep N significant "
	 "digits (bitround: bits) of floats, as netCDF-C does when it writes. May be repeated"},
	{"bad_arrays", OPT_BOOL, "refuse", FIELD(hide_bad), bad_words, 0, 0,
	 "what cannot be shown at all: do not mount, and say why; or leave it out, with a "
	 "note"},
	{"dimension_separator", OPT_BOOL, ".", FIELD(nested), separator_words, 0, 0,
	 "chunk files are v/0.0 (.) or v/0/0 (/, the default of Zarr v3)"},
	{"json", OPT_BOOL, "python", FIELD(strict_json), json_words, 0, 0,
	 "numbers that are not finite in attributes: NaN and Infinity as Python writes them, "
	 "or strict JSON, as texts, which is the default of Zarr v3"},
	{"page_cache", OPT_BOOL, "auto", FIELD(page_cache), page_cache_words, 0, 0,
	 "auto: with filter=none, files of 256K or more bypass the page cache, which is the "
	 "quickest way to read them once; always: they do not, which is quicker the second "
	 "time, and lets programs map them"},
	{"chunk_size", OPT_SIZE, "4M", FIELD(chunk_size), NULL, 4 * KIB, GIB,
	 "chunk size to aim for where a variable is not chunked"},
	{"cache_size", OPT_SIZE, "64M", FIELD(cache_size), NULL, 0, 1024 * GIB,
	 "memory for decoded chunks; of a directory, each dataset has a quarter of it"},
	{"index_size", OPT_SIZE, "512M", FIELD(index_size), NULL, 4 * KIB, 1024 * GIB,
	 "most memory that the chunk index of one variable may take"},
	{"meta_size", OPT_SIZE, "1G", FIELD(meta_size), NULL, 64 * KIB, 1024 * GIB,
	 "most memory that names, types and attributes may take"},
	{"image_size", OPT_SIZE, "256M", FIELD(image_size), NULL, 64 * KIB, 1024 * GIB,
	 "most memory that the structure and the texts of a virtual netCDF-4 file may take"},
	{"open_datasets", OPT_UINT, "64", FIELD(open_datasets), NULL, 1, 65536,
	 "datasets of a directory that are open at a time"},
	{"decode_threads", OPT_UINT, "0", FIELD(decode_threads), NULL, 0, 256,
	 "threads that decode chunks ahead of readers; 0: one less than processors"},
	{"open_timeout", OPT_UINT, "120", FIELD(open_timeout), NULL, 0, 86400,
	 "seconds until SOURCE must be open; 0: wait for ever"},
	{"link_root", OPT_TEXT, NULL, FIELD(link_root), NULL, 0, 0,
	 "follow external links of SOURCE to files below this directory"},
	{"noxattr", OPT_FLAG, NULL, FIELD(no_xattr), NULL, 0, 0,
	 "no extended attributes: programs that copy files with those have to ask for them at "
	 "every chunk"},
	{"noplugins", OPT_FLAG, NULL, FIELD(noplugins), NULL, 0, 0,
	 "use no filters from plugins, HDF5's or netCDF-C's"},
	{"debug", OPT_FLAG, NULL, FIELD(debug), NULL, 0, 0, "log every request"},
	{"rw", OPT_FLAG, NULL, FIELD(rw), NULL, 0, 0,
	 "what is written into the mount goes into SOURCE"},
	{"create", OPT_FLAG, NULL, FIELD(create), NULL, 0, 0,
	 "make SOURCE first: an empty Zarr tree where its name ends in .zarr, .zr3 or .zr2, "
	 "else an empty netCDF-4 file; implies rw"},
	{"new", OPT_BOOL, "other", FIELD(new_as_is), new_words, 0, 0,
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
	{"write_size", OPT_SIZE, "64M", FIELD(write_size), NULL, 64 * KIB, 1024 * GIB,
	 "memory for files that are being written; what is more is on the disk"},
	{"commit_delay", OPT_UINT, "500", FIELD(commit_delay), NULL, 0, 3600000,
	 "milliseconds without a write until what was written into a tree is put into its "
	 "netCDF-4 file"},
	{"state_dir", OPT_TEXT, NULL, FIELD(state_dir), NULL, 0, 0,
	 "where the directories are made that hold what is written and not in SOURCE yet; "
	 "else beside SOURCE"},
	{"nojournal", OPT_FLAG, NULL, FIELD(no_journal), NULL, 0, 0,
	 "change netCDF-4 files in place: a crash while that happens may damage them"},
};

/* Options that are handed on. '=' at the end: takes a value. */
static const char *const mount_options[] = {
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
static const char *const ignored_options[] = {
	"defaults", "auto",   "noauto",  "user", "nouser", "users",  "nousers", "owner",
	"group",    "nofail", "_netdev", "dev",  "suid",   "nosuid", "nodev",
};

static bool in_list(const char *name, size_t len, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(list[i], name, len) == 0 &&
		    (list[i][len] == '\0' || list[i][len] == '='))
			return true;
	return false;
}

/* exact - whether n bytes are a name of the list that takes no value. */
static bool exact(const char *name, size_t n, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == n && memcmp(list[i], name, n) == 0)
			return true;
	return false;
}

static const struct option *find_option(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (strncmp(options[i].name, name, len) == 0 && options[i].name[len] == '\0')
			return &options[i];
	return NULL;
}

/* join_words - "a, b or c" of what may be typed. */
static void join_words(const struct word *words, struct buf *out)
{
	size_t n = 0;

	while (words[n].text && !words[n].hidden)
		n++;
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			buf_puts(out, i + 1 == n ? " or " : ", ");
		buf_puts(out, words[i].text);
	}
	buf_putc(out, '\0');
}

static int bad_word(const struct option *o, const char *value, struct err *e)
{
	const char *list[8], *near;
	struct buf text;
	size_t n = 0;

	for (const struct word *w = o->words; w->text && n < ARRAY_LEN(list); w++)
		if (!w->hidden)
			list[n++] = w->text;
	near = cfg_nearest(value, list, n);
	buf_init(&text, 256);
	join_words(o->words, &text);
	if (near)
		err_set(e, -EINVAL, "-o %s: unknown value '%s': use %s (did you mean %s=%s?)",
			o->name, value, buf_ok(&text) ? (char *)text.data : near, o->name,
			near);
	else
		err_set(e, -EINVAL, "-o %s: unknown value '%s': use %s", o->name, value,
			buf_ok(&text) ? (char *)text.data : "another");
	buf_release(&text);
	return -EINVAL;
}

static int set_word(const struct option *o, const char *value, void *field, struct err *e)
{
	for (const struct word *w = o->words; w->text; w++) {
		if (strcmp(w->text, value) != 0)
			continue;
		if (o->kind == OPT_BOOL)
			*(bool *)field = w->value != 0;
		else if (o->field == FIELD(mode))
			*(enum cfg_mode *)field = (enum cfg_mode)w->value;
		else if (o->field == FIELD(view))
			*(enum cfg_view *)field = (enum cfg_view)w->value;
		else if (o->field == FIELD(consolidated))
			*(int *)field = w->value;
		else
			*(enum cfg_filter *)field = (enum cfg_filter)w->value;
		return 0;
	}
	return bad_word(o, value, e);
}

/* put_size - bytes as a user would type them. */
static void put_size(uint64_t v, struct buf *out)
{
	static const char suffix[] = "KMG";
	int i = -1;

	while (i < 2 && v >= KIB && v % KIB == 0) {
		v /= KIB;
		i++;
	}
	buf_printf(out, "%llu", (unsigned long long)v);
	if (i >= 0)
		buf_putc(out, suffix[i]);
}

static int bad_size(const struct option *o, const char *value, struct err *e)
{
	struct buf text;

	buf_init(&text, 256);
	put_size(o->min, &text);
	buf_puts(&text, " to ");
	put_size(o->max, &text);
	buf_putc(&text, '\0');
	err_set(e, -EINVAL, "-o %s: bad size '%s': use %s, in bytes or with K, M or G", o->name,
		value, buf_ok(&text) ? (char *)text.data : "a number");
	buf_release(&text);
	return -EINVAL;
}

/* add_text - a copy behind a list of texts. opt: the option, for messages. */
static int add_text(char ***list, size_t *n, const char *opt, const char *text, struct err *e)
{
	char **grown, *copy;

	if (*n >= TEXTS_MAX)
		return err_set(e, -EINVAL, "-o %s: too many of them", opt);
	grown = realloc(*list, (*n + 1) * sizeof(*grown));
	if (!grown)
		return err_nomem(e);
	*list = grown;
	copy = strdup(text);
	if (!copy)
		return err_nomem(e);
	grown[(*n)++] = copy;
	return 0;
}

static bool is_word(const struct option *o, const char *value, size_t n)
{
	for (const struct word *w = o->words; w->text; w++)
		if (strlen(w->text) == n && memcmp(w->text, value, n) == 0)
			return true;
	return false;
}

/* for_all - whether a rule is "none" or "*,none". */
static bool for_all(const char *value)
{
	if (strncmp(value, "*,", 2) == 0)
		value += 2;
	return strcasecmp(value, "none") == 0;
}

/* texts_of - the list that an option which may be repeated adds to. */
static char ***texts_of(struct cfg *cfg, const struct option *o, size_t **ret_n)
{
	if (o->field == FIELD(filter)) {
		*ret_n = &cfg->n_filter_rules;
		return &cfg->filter_rules;
	}
	if (o->field == FIELD(quantize_rules)) {
		*ret_n = &cfg->n_quantize_rules;
		return &cfg->quantize_rules;
	}
	if (o->field == FIELD(chunk_rules)) {
		*ret_n = &cfg->n_chunk_rules;
		return &cfg->chunk_rules;
	}
	*ret_n = &cfg->n_unlimited;
	return &cfg->unlimited;
}

/* set_list - each name of "time,lat". */
static int set_list(struct cfg *cfg, const struct option *o, const char *value, struct err *e)
{
	size_t *n;
	char ***list = texts_of(cfg, o, &n);

	for (size_t len; *value; value += len + (value[len] == ',')) {
		auto_free char *name = NULL;
		int rc;

		len = strcspn(value, ",");
		name = strndup(value, len);
		rc = !name  ? err_nomem(e)
		     : !len ? err_set(e, -EINVAL, "-o %s: a name is empty", o->name)
			    : add_text(list, n, o->name, name, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* set_rule - a word says what happens to variables without a rule. "none" is a rule as well when
 * there are others: the last that is for all variables holds for them. */
static int set_rule(struct cfg *cfg, const struct option *o, const char *value, struct err *e)
{
	const bool filter = o->field == FIELD(filter);
	size_t *n;
	char ***list = texts_of(cfg, o, &n);

	if (!*value)
		return err_set(e, -EINVAL, "-o %s: needs a value: write %s=...", o->name,
			       o->name);
	if (filter && for_all(value)) {
		cfg->filter = CFG_FILTER_NONE;
		return *n ? add_text(list, n, o->name, value, e) : 0;
	}
	if (is_word(o, value, strlen(value)))
		return set_word(o, value, (char *)cfg + o->field, e);
	return add_text(list, n, o->name, value, e);
}

static int set_value(struct cfg *cfg, const struct option *o, const char *value, struct err *e)
{
	void *field = (char *)cfg + o->field;
	uint64_t v;
	char *copy;

	switch (o->kind) {
	case OPT_WORD:
	case OPT_BOOL:
		return set_word(o, value, field, e);
	case OPT_SIZE:
	case OPT_BARE:
		if (str_size(value, o->max, &v) < 0 || v < o->min)
			return bad_size(o, value, e);
		*(uint64_t *)field = v;
		return 0;
	case OPT_UINT:
		if (str_u64(value, strlen(value), o->max, &v) < 0 || v < o->min)
			return err_set(e, -EINVAL, "-o %s: bad number '%s': use %llu to %llu",
				       o->name, value, (unsigned long long)o->min,
				       (unsigned long long)o->max);
		*(uint32_t *)field = (uint32_t)v;
		return 0;
	case OPT_TEXT:
		if (!*value)
			return err_set(e, -EINVAL, "-o %s: needs a value: write %s=...",
				       o->name, o->name);
		copy = strdup(value);
		if (!copy)
			return err_nomem(e);
		free(*(char **)field);
		*(char **)field = copy;
		return 0;
	case OPT_FLAG:
		*(bool *)field = true;
		return 0;
	case OPT_RULE:
		return set_rule(cfg, o, value, e);
	case OPT_LIST:
		if (!*value)
			return err_set(e, -EINVAL, "-o %s: needs a value: write %s=...",
				       o->name, o->name);
		return set_list(cfg, o, value, e);
	}
	return -EINVAL;
}

int cfg_defaults(struct cfg *cfg, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(options) && rc == 0; i++)
		if (options[i].initial && options[i].kind != OPT_BARE)
			rc = set_value(cfg, &options[i], options[i].initial, e);
	return rc;
}

static int unknown_option(const char *opt, size_t len, struct err *e)
{
	auto_free char *name = strndup(opt, len);
	const char *all[ARRAY_LEN(options) + ARRAY_LEN(mount_options)], *near;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		all[n++] = options[i].name;
	for (size_t i = 0; i < ARRAY_LEN(mount_options); i++)
		all[n++] = mount_options[i];
	near = name ? cfg_nearest(name, all, n) : NULL;
	if (near)
		return err_set(e, -EINVAL,
			       "-o %s: unknown option: did you mean '%s'? (all are in nczarrfs "
			       "--help)",
			       opt, near);
	return err_set(e, -EINVAL, "-o %s: unknown option: see nczarrfs --help", opt);
}

/* check_mount_value - the numbers among the mount's options that libfuse would take on trust. */
static int check_mount_value(const char *opt, size_t len, struct err *e)
{
	static const char *const with_value[] = {
		"max_read=", "max_threads=", "max_idle_threads=", "fsname=",     "subtype=",
		"context=",  "fscontext=",   "defcontext=",       "rootcontext="};
	const char *value = opt[len] == '=' ? opt + len + 1 : NULL;
	bool wants = in_list(opt, len, with_value, ARRAY_LEN(with_value));
	uint64_t v, min = strncmp(opt, "max_threads", len) == 0 ? 1 : 0;

	if (wants && (!value || !*value))
		return err_set(e, -EINVAL, "-o %.*s: needs a value: write %.*s=...", (int)len,
			       opt, (int)len, opt);
	if (!wants && value)
		return err_set(e, -EINVAL, "-o %s: takes no value: write %.*s", opt, (int)len,
			       opt);
	if (wants && strncmp(opt, "max_", 4) == 0 &&
	    (str_u64(value, strlen(value), INT32_MAX, &v) < 0 || v < min))
		return err_set(e, -EINVAL, "-o %.*s: bad number '%s': use %d to %d", (int)len,
			       opt, value, (int)min, (int)INT32_MAX);
	return 0;
}

static int set_mount_option(struct cfg *cfg, const char *opt, size_t len, struct err *e)
{
	int rc;

	if (strncmp(opt, "x-", 2) == 0 || strncmp(opt, "comment=", 8) == 0 ||
	    (!opt[len] && in_list(opt, len, ignored_options, ARRAY_LEN(ignored_options))))
		return 0;
	if (!in_list(opt, len, mount_options, ARRAY_LEN(mount_options)))
		return unknown_option(opt, len, e);
	rc = check_mount_value(opt, len, e);
	return rc < 0 ? rc : add_text(&cfg->fuse_opts, &cfg->n_fuse_opts, opt, opt, e);
}

/* set_option - one "name" or "name=value". */
static int set_option(struct cfg *cfg, const char *opt, struct err *e)
{
	size_t len = strcspn(opt, "=");
	const struct option *o = len ? find_option(opt, len) : NULL;
	const char *value = opt[len] ? opt + len + 1 : "";

	if (!len)
		return err_set(e, -EINVAL, "-o %s: option without a name: see nczarrfs --help",
			       opt);
	if (!o)
		return set_mount_option(cfg, opt, len, e);
	if (o->kind == OPT_FLAG && opt[len])
		return err_set(e, -EINVAL, "-o %s: takes no value: write %s", opt, o->name);
	if (o->kind != OPT_FLAG && o->kind != OPT_BARE && !opt[len])
		return err_set(e, -EINVAL, "-o %s: needs a value: write %s=%s", opt, o->name,
			       o->initial ? o->initial : "...");
	if (o->kind == OPT_BARE && !opt[len])
		value = o->initial;
	cfg->said |= (uint64_t)1 << (o - options);
	return set_value(cfg, o, value, e);
}

/* rule_value - the value of a rule's option in n bytes "filter=..."; NULL: another option. */
static const char *rule_value(const char *one, size_t n, const struct option **ret)
{
	const char *is = n ? memchr(one, '=', n) : NULL;

	*ret = is ? find_option(one, (size_t)(is - one)) : NULL;
	return *ret && ((*ret)->kind == OPT_RULE || (*ret)->kind == OPT_LIST) ? is + 1 : NULL;
}

/* is_length - whether the n bytes behind a comma of a rule of chunks= go on with it: "lat=24" or
 * "lat=all", unless lat is the name of an option. */
static bool is_length(const char *next, size_t n)
{
	const char *is = memchr(next, '=', n);
	const size_t len = is ? (size_t)(is - next) : 0;
	const char *value = is ? is + 1 : next;
	const size_t n_value = n - (size_t)(value - next);

	if (!len || !n_value || find_option(next, len) ||
	    in_list(next, len, mount_options, ARRAY_LEN(mount_options)) ||
	    strncmp(next, "x-", 2) == 0 || (len == 7 && memcmp(next, "comment", 7) == 0))
		return false;
	return strspn(value, "0123456789") >= n_value ||
	       (n_value == 3 && memcmp(value, "all", 3) == 0);
}

/* is_option - whether the text behind a comma begins an option, and does not belong to the rule
 * before it: no other rule has a '=' or an empty piece there, or the name of a flag. */
static bool is_option(const char *next)
{
	const size_t n = strcspn(next, ",\\");
	const struct option *o = find_option(next, n);

	if (memchr(next, '=', n))
		return true;
	if (next[n] == '\\')
		return false;
	return n == 0 || (o && (o->kind == OPT_FLAG || o->kind == OPT_BARE)) ||
	       strncmp(next, "x-", 2) == 0 ||
	       exact(next, n, mount_options, ARRAY_LEN(mount_options)) ||
	       exact(next, n, ignored_options, ARRAY_LEN(ignored_options));
}

/* ends - whether the comma before `next` ends the n bytes of option at `one`. */
static bool ends(const char *one, size_t n, const char *next)
{
	const struct option *o;
	const char *value = rule_value(one, n, &o);

	if (!value)
		return true;
	if (o->field == FIELD(chunk_rules) && is_length(next, strcspn(next, ",\\")))
		return false;
	return (o->words && is_word(o, value, n - (size_t)(value - one))) || is_option(next);
}

int cfg_set_options(struct cfg *cfg, const char *list, struct err *e)
{
	auto_free char *one = malloc(strlen(list) + 1);
	const struct option *o;
	size_t n = 0;
	int rc = 0;

	if (!one)
		return err_nomem(e);
	for (const char *p = list; rc == 0; p++) {
		if (*p == '\\' && p[1]) {
			if (p[1] != ',' && p[1] != '\\' && rule_value(one, n, &o))
				one[n++] = *p; /* names of variables have their own */
			one[n++] = *++p;
			continue;
		}
		if (*p && (*p != ',' || !ends(one, n, p + 1))) {
			one[n++] = *p;
			continue;
		}
		one[n] = '\0';
		if (n)
			rc = set_option(cfg, one, e);
		n = 0;
		if (!*p)
			break;
	}
	return rc;
}

_Static_assert(ARRAY_LEN(options) <= 64, "a bit for each option");

bool cfg_said(const struct cfg *cfg, const char *name)
{
	const struct option *o = find_option(name, strlen(name));

	return o && cfg->said >> (o - options) & 1;
}

/* settle_writing - what only writable mounts have. */
static int settle_writing(struct cfg *cfg, struct err *e)
{
	static const char *const only_rw[] = {"new",        "chunks",     "consolidated",
					      "stage_size", "write_size", "commit_delay",
					      "nojournal"};

	cfg->rw = cfg->rw || cfg->create;
	for (size_t i = 0; i < cfg->n_fuse_opts; i++)
		if (cfg->rw && strcmp(cfg->fuse_opts[i], "ro") == 0)
			return err_set(e, -EINVAL, "-o ro: does not go with %s: leave out one",
				       cfg->create ? "create" : "rw");
	for (size_t i = 0; i < ARRAY_LEN(only_rw); i++)
		if (!cfg->rw && cfg->command == CFG_MOUNT && cfg_said(cfg, only_rw[i]))
			return err_set(e, -EINVAL, "-o %s: only with rw", only_rw[i]);
	return 0;
}

int cfg_settle(struct cfg *cfg, struct err *e)
{
	int rc = settle_writing(cfg, e);

	if (rc < 0)
		return rc;
	if (cfg->shard_size && cfg_said(cfg, "zarr_format") && !cfg->zarr3)
		return err_set(e, -EINVAL,
			       "-o shards: Zarr v2 has none: leave out zarr_format=2");
	cfg->zarr3 = cfg->zarr3 || cfg->shard_size > 0;
	if (!cfg->zarr3 && cfg_said(cfg, "chunk_keys"))
		return err_set(e, -EINVAL, "-o chunk_keys: only with zarr_format=3");
	if (cfg->zarr3 && cfg->mode == CFG_MODE_NCZARR)
		return err_set(e, -EINVAL,
			       "-o mode=nczarr: only with zarr_format=2: use mode=zarr with "
			       "Zarr v3");
	if (!cfg_said(cfg, "dimension_separator"))
		cfg->nested = cfg->zarr3 && !cfg->v2_keys;
	/* only Python reads a zarr.json with a bare NaN in it, and attributes are in it */
	if (!cfg_said(cfg, "json"))
		cfg->strict_json = cfg->zarr3;
	return 0;
}

/* put_wrapped - words of text on lines of at most 78 columns, each starting in column `indent`;
 * the first line is already at `column`. */
static void put_wrapped(struct buf *out, const char *text, size_t column, size_t indent)
{
	while (*text) {
		size_t n = strcspn(text, " ");

		if (column + n + 1 > 78 && column > indent) {
			buf_putc(out, '\n');
			column = 0;
		}
		while (column < indent) {
			buf_putc(out, ' ');
			column++;
		}
		if (column > indent) {
			buf_putc(out, ' ');
			column++;
		}
		buf_put(out, text, n);
		column += n;
		text += n + (text[n] == ' ');
	}
	buf_putc(out, '\n');
}

static void help_option(const struct option *o, struct buf *out)
{
	size_t start = out->len;

	buf_printf(out, "    %s", o->name);
	switch (o->kind) {
	case OPT_WORD:
	case OPT_BOOL:
		for (const struct word *w = o->words; w->text && !w->hidden; w++)
			buf_printf(out, "%s%s", w == o->words ? "=" : "|", w->text);
		break;
	case OPT_SIZE:
	case OPT_UINT:
		buf_printf(out, "=%s", o->initial);
		break;
	case OPT_BARE:
		buf_printf(out, "[=%s]", o->initial);
		break;
	case OPT_TEXT:
		buf_puts(out, "=DIR");
		break;
	case OPT_RULE:
		for (const struct word *w = o->words; w->text; w++)
			buf_printf(out, "%s%s", w == o->words ? "=" : "|", w->text);
		buf_puts(out, o->words->text ? "|SPEC" : "=SPEC");
		break;
	case OPT_LIST:
		buf_puts(out, "=NAME[,NAME...]");
		break;
	case OPT_FLAG:
		break;
	}
	if (out->len - start > 27)
		buf_putc(out, '\n');
	put_wrapped(out, o->help, out->len - start > 27 ? 0 : out->len - start, 28);
}

void cfg_help(struct buf *out)
{
	buf_puts(out,
		 "usage: nczarrfs [options] SOURCE MOUNTPOINT   mount SOURCE in the other "
		 "format\n"
		 "       nczarrfs info [--json] [-o ...] SOURCE  say what would be mounted\n"
		 "       nczarrfs filters [-v] [--json] [-o ...] list the filters that are "
		 "there\n"
		 "       nczarrfs recover [-o ...] SOURCE...     end what a mount that died "
		 "began\n"
		 "\n"
		 "SOURCE is a netCDF-4 or HDF5 file, which becomes a Zarr tree; a Zarr tree, "
		 "which\n"
		 "becomes a netCDF-4 file; or a directory that holds some of them.\n"
		 "Unmount with: fusermount3 -u MOUNTPOINT\n"
		 "\n"
		 "    -f                      stay in the foreground\n"
		 "    -d, --debug             stay in the foreground and log every request\n"
		 "    -v, --verbose           say more\n"
		 "    -h, --help              print this and exit\n"
		 "    -V, --version           print versions and exit\n"
		 "    -o OPTION[,OPTION...]   one or more of the following\n"
		 "\nOptions (the first word, or the number shown, is the default):\n");
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		help_option(&options[i], out);
	buf_puts(out, "\nOptions of the mount, see mount.fuse3(8) (nosuid and nodev always "
		      "hold):\n");
	buf_puts(out, "    ");
	for (size_t i = 0, column = 4; i < ARRAY_LEN(mount_options); i++) {
		size_t n = strlen(mount_options[i]) + 1;

		if (column + n > 78) {
			buf_puts(out, "\n    ");
			column = 4;
		}
		buf_printf(out, "%s%s", column > 4 ? " " : "", mount_options[i]);
		column += n;
	}
	buf_putc(out, '\n');
}
