/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_options.c - the command line: -o options with their rules, and all the rest.
 *
 * Input: arguments with a newline between them. The first is also taken as the argument of one -o.
 *
 * Properties: what is refused has a message; numbers are within the bounds of the table; rules
 * and names that are kept are texts that are not empty; what options say, written down once more
 * as one option each, says the same.
 *
 *   make fuzz TIME=60 FUZZ=options */
#include "mountcfg/options/option_table.h"
#include "tests/fuzz/fuzz.h"

static const struct cfg_files no_files;

#define ARGS_MAX 24

static void bounds(const struct cfg *cfg)
{
	for (size_t i = 0; i < cfg_n_options; i++) {
		const struct cfg_option *o = &cfg_options[i];
		const void *field = (const char *)cfg + o->field;
		uint64_t v = 0;
		uint32_t u;

		if (!(cfg->said >> i & 1) || (o->kind != OPT_SIZE && o->kind != OPT_UINT))
			continue;
		if (o->kind == OPT_SIZE) {
			memcpy(&v, field, sizeof(v));
		} else {
			memcpy(&u, field, sizeof(u));
			v = u;
		}
		require(v >= o->min && v <= o->max);
	}
}

static void texts(char *const *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		require(v[i] != NULL && *v[i]);
}

static void check(const struct cfg *cfg)
{
	texts(cfg->rules.filters.v, cfg->rules.filters.n);
	texts(cfg->rules.quantize.v, cfg->rules.quantize.n);
	texts(cfg->rules.chunks.v, cfg->rules.chunks.n);
	texts(cfg->rules.rechunk.v, cfg->rules.rechunk.n);
	texts(cfg->unlimited.v, cfg->unlimited.n);
	texts(cfg->fuse_opts.v, cfg->fuse_opts.n);
}

/* escaped - a value as one option takes it: backslashes before commas and backslashes. */
static void escaped(struct buf *b, const char *s)
{
	for (; *s; s++) {
		if (*s == ',' || *s == '\\')
			buf_putc(b, '\\');
		buf_putc(b, *s);
	}
}

/* again - the texts that were kept, each as an option. */
static void again(const struct cfg *cfg)
{
	struct cfg other = {0};
	struct buf b;
	int rc = cfg_defaults(&other, NULL);

	require(rc == 0);
	buf_init(&b, (size_t)1 << 20);
	for (size_t i = 0; rc == 0 && i < cfg->fuse_opts.n; i++) {
		buf_clear(&b);
		escaped(&b, cfg->fuse_opts.v[i]);
		buf_putc(&b, '\0');
		require(buf_ok(&b));
		rc = cfg_set_options(&other, (const char *)b.data, NULL);
		require(rc == 0 && other.fuse_opts.n == i + 1 &&
			strcmp(other.fuse_opts.v[i], cfg->fuse_opts.v[i]) == 0);
	}
	buf_release(&b);
	cfg_release(&other);
}

static void as_options(const char *text)
{
	struct cfg cfg = {0};
	struct err e = ERR_INIT;
	int rc;

	require(cfg_defaults(&cfg, NULL) == 0);
	rc = cfg_set_options(&cfg, text, &e);
	if (rc < 0) {
		failed_well(rc, &e);
	} else {
		bounds(&cfg);
		check(&cfg);
		again(&cfg);
		rc = cfg_settle(&cfg, &e);
		if (rc < 0)
			failed_well(rc, &e);
	}
	cfg_release(&cfg);
}

static void as_command(char *text)
{
	char name[] = "nczarrfs";
	char *argv[ARGS_MAX + 2] = {name};
	struct cfg cfg;
	struct err e = ERR_INIT;
	int argc = 1, rc;

	for (char *next; text && argc <= ARGS_MAX; text = next) {
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		argv[argc++] = text;
	}
	rc = cfg_parse(argc, argv, &no_files, &cfg, &e);
	if (rc < 0) {
		failed_well(rc, &e);
		return;
	}
	bounds(&cfg);
	check(&cfg);
	if (cfg.source && !cfg.is_remote && cfg.command == CFG_MOUNT)
		require(*cfg.source == '/');
	cfg_release(&cfg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);
	char *line;

	require(setenv("NCRCENV_IGNORE", "1", 1) == 0);
	line = text_of(text, strcspn(text, "\n"));
	as_options(line);
	as_command(text);
	free(line);
	free(text);
	return 0;
}
