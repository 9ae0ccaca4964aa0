/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_conf.c - configuration files: sections, keys, patterns, and what comes of them.
 *
 * Input: the text of a file.
 *
 * Properties: what is refused has a message; names and values are texts without control
 * characters, of lines that the file has; what is in force after it was read is within the bounds
 * of the table; a command that takes no source reads no file that another one refuses.
 *
 *   make fuzz TIME=60 FUZZ=conf */
#include <sys/stat.h>

#include "mountcfg/config/ini_int.h"
#include "mountcfg/options/option_table.h"
#include "tests/fuzz/fuzz.h"

static void plain(const char *s)
{
	require(s != NULL);
	for (; *s; s++)
		require((unsigned char)*s >= 0x20 || *s == '\t');
}

/* lines_of - how many there can be. */
static uint32_t lines_of(const uint8_t *data, size_t size)
{
	uint32_t n = 1;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

static int as_sections(const char *path, uint32_t lines)
{
	struct err e = ERR_INIT;
	struct conf *c = calloc(1, sizeof(*c));
	int rc;

	require(c != NULL);
	rc = conf_file_read(path, CONF_NAMED, c, &e);
	if (rc < 0)
		failed_well(rc, &e);
	for (size_t i = 0; rc == 0 && i < c->n; i++) {
		const struct conf_section *s = &c->sections[i];

		require(s->line >= 1 && s->line <= lines);
		plain(s->kind);
		plain(s->name);
		for (size_t k = 0; k < s->n_keys; k++) {
			require(s->keys[k].line >= s->line && s->keys[k].line <= lines);
			require(s->keys[k].name && *s->keys[k].name);
			plain(s->keys[k].name);
			plain(s->keys[k].value);
		}
	}
	conf_free(c);
	return rc;
}

static void bounds(const struct cfg *cfg)
{
	for (size_t i = 0; i < cfg_n_options; i++) {
		const struct cfg_option *o = &cfg_options[i];
		const void *field = (const char *)cfg + o->field;
		uint64_t v = 0;
		uint32_t u = 0;

		if (!(cfg->said >> i & 1) || (o->kind != OPT_SIZE && o->kind != OPT_UINT))
			continue;
		if (o->kind == OPT_SIZE)
			memcpy(&v, field, sizeof(v));
		else
			memcpy(&u, field, sizeof(u));
		v = o->kind == OPT_SIZE ? v : u;
		require(v >= o->min && v <= o->max);
	}
}

static int as_command(char *const *words, int n, char *path)
{
	static const struct cfg_files none;
	char name[] = "nczarrfs", flag[] = "--config";
	char *argv[8] = {name, flag, path};
	struct err e = ERR_INIT;
	struct cfg cfg;
	int rc;

	for (int i = 0; i < n; i++)
		argv[3 + i] = words[i];
	rc = cfg_parse(3 + n, argv, &none, &cfg, &e);
	if (rc < 0) {
		failed_well(rc, &e);
		return rc;
	}
	bounds(&cfg);
	for (size_t i = 0; i < cfg.config.n_mounts; i++)
		plain(cfg.config.mounts[i].name);
	cfg_release(&cfg);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char source[] = "/data/year/model.nc", far[] = "https://host.example/a/b.zarr";
	char mnt[] = "/mnt", list[] = "list";
	int fd = memory_file(data, size), rc;
	char path[40];

	require(setenv("NCRCENV_IGNORE", "1", 1) == 0 && fchmod(fd, 0600) == 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = as_sections(path, lines_of(data, size));
	if (as_command((char *[]){list}, 1, path) == 0)
		require(rc == 0);
	if (as_command((char *[]){source, mnt}, 2, path) == 0)
		require(rc == 0);
	if (as_command((char *[]){far, mnt}, 2, path) == 0)
		require(rc == 0);
	(void)close(fd);
	return 0;
}
