/* SPDX-License-Identifier: BSD-3-Clause */
/* release.c - frees a configuration, and wipes its secrets. */
#include <string.h>

#include "mountcfg/options/option_table.h"

int cfg_strings_add(char ***list, size_t *n, const char *text, struct err *e)
{
	char **grown = realloc(*list, (*n + 1) * sizeof(*grown));

	if (!grown)
		return err_nomem(e);
	*list = grown;
	grown[*n] = strdup(text);
	if (!grown[*n])
		return err_nomem(e);
	(*n)++;
	return 0;
}

void cfg_strings_free(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void cfg_strings_drop(char ***list, size_t *n)
{
	cfg_strings_free(*list, *n);
	*list = NULL;
	*n = 0;
}

static void wipe_text(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
}

void cfg_forget(struct cfg *cfg)
{
	char *const strings[] = {cfg->user, cfg->password, cfg->access_key, cfg->secret_key,
				 cfg->refs.address};

	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		wipe_text(strings[i]);
	if (cfg->remote)
		wipe_text(cfg->source); /* tokens in its query */
	for (size_t i = 0; i < cfg->n_more; i++)
		wipe_text(cfg->more[i]);
}

/* release_field - free an owned string, which two flags may share. */
static void release_field(struct cfg *cfg, size_t field)
{
	char **text = (char **)(void *)((char *)cfg + field);

	free(*text);
	*text = NULL;
}

void cfg_release(struct cfg *cfg)
{
	char *const strings[] = {cfg->source,     cfg->shown,      cfg->user,
				 cfg->password,   cfg->out,        cfg->mountpoint,
				 cfg->access_key, cfg->secret_key, cfg->aws_config,
				 cfg->note};

	cfg_forget(cfg); /* secrets must not remain in freed memory */
	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		free(strings[i]);
	for (size_t i = 0; i < cfg_n_options; i++)
		if (cfg_options[i].kind == OPT_TEXT)
			release_field(cfg, cfg_options[i].field);
	for (size_t i = 0; i < cfg_n_flags; i++)
		if (cfg_flags[i].value)
			release_field(cfg, cfg_flags[i].field);
	cfg_strings_free(cfg->more, cfg->n_more);
	cfg_strings_free(cfg->fuse_opts, cfg->n_fuse_opts);
	cfg_strings_free(cfg->filter_rules, cfg->n_filter_rules);
	cfg_strings_free(cfg->quantize_rules, cfg->n_quantize_rules);
	cfg_strings_free(cfg->chunk_rules, cfg->n_chunk_rules);
	cfg_strings_free(cfg->rechunk_rules, cfg->n_rechunk_rules);
	cfg_strings_free(cfg->unlimited, cfg->n_unlimited);
	cfg_strings_free(cfg->files, cfg->n_files);
	for (size_t i = 0; i < cfg->n_passed; i++)
		wipe_text(cfg->passed[i]);
	cfg_strings_free(cfg->passed, cfg->n_passed);
	for (size_t i = 0; i < cfg->n_mounts; i++) {
		free(cfg->mounts[i].name);
		free(cfg->mounts[i].source);
		free(cfg->mounts[i].target);
		free(cfg->mounts[i].where);
	}
	free(cfg->mounts);
	cfg_from_free(cfg->from);
	*cfg = (struct cfg){.command = cfg->command};
}
