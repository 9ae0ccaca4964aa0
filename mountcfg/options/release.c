/* SPDX-License-Identifier: BSD-3-Clause */
/* release.c - frees a configuration, and wipes its secrets. */
#include <string.h>

#include "mountcfg/options/option_table.h"

void cfg_strings_free(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static void wipe_text(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
}

void cfg_forget(struct cfg *cfg)
{
	char *const strings[] = {cfg->user, cfg->password, cfg->access_key, cfg->secret_key,
				 cfg->address};

	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		wipe_text(strings[i]);
	if (cfg->remote)
		wipe_text(cfg->source); /* tokens in its query */
	for (size_t i = 0; i < cfg->n_more; i++)
		wipe_text(cfg->more[i]);
}

void cfg_release(struct cfg *cfg)
{
	/* secrets must not remain in freed memory */
	char *const strings[] = {
		cfg->source,     cfg->shown,       cfg->user,        cfg->out,
		cfg->mountpoint, cfg->external_root,   cfg->state_dir,   cfg->root,
		cfg->endpoint,   cfg->profile,     cfg->region,      cfg->access_key,
		cfg->aws_config, cfg->ca_file,     cfg->bearer_file, cfg->netrc_file,
		cfg->cache_dir,  cfg->address,     cfg->metrics,     cfg->log,
		cfg->resume,     cfg->config_file, cfg->note,        cfg->port,
		cfg->bind,       cfg->origin,      cfg->concat,      cfg->concat_index,
		cfg->variable};

	cfg_forget(cfg);
	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		free(strings[i]);
	free(cfg->password);
	free(cfg->secret_key);
	cfg_strings_free(cfg->more, cfg->n_more);
	cfg_strings_free(cfg->fuse_opts, cfg->n_fuse_opts);
	cfg_strings_free(cfg->filter_rules, cfg->n_filter_rules);
	cfg_strings_free(cfg->quantize_rules, cfg->n_quantize_rules);
	cfg_strings_free(cfg->chunk_rules, cfg->n_chunk_rules);
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
