/* SPDX-License-Identifier: BSD-3-Clause */
/* release.c - frees a configuration, and wipes its secrets. */
#include <string.h>

#include "mountcfg/options/option_table.h"

int cfg_strings_add(struct cfg_strings *list, const char *text, struct err *e)
{
	char **grown = realloc(list->v, (list->n + 1) * sizeof(*grown));

	if (!grown)
		return err_nomem(e);
	list->v = grown;
	grown[list->n] = strdup(text);
	if (!grown[list->n])
		return err_nomem(e);
	list->n++;
	return 0;
}

void cfg_strings_drop(struct cfg_strings *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
	*list = (struct cfg_strings){0};
}

static void wipe_text(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
}

void cfg_forget(struct cfg *cfg)
{
	char *const strings[] = {cfg->user, cfg->password, cfg->remote.access_key,
				 cfg->remote.secret_key, cfg->refs.address};

	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		wipe_text(strings[i]);
	if (cfg->is_remote)
		wipe_text(cfg->source); /* tokens in its query */
	for (size_t i = 0; i < cfg->more.n; i++)
		wipe_text(cfg->more.v[i]);
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
	char *const strings[] = {
		cfg->source,     cfg->shown,       cfg->user,
		cfg->password,   cfg->out,         cfg->mountpoint,
		cfg->config.note, cfg->remote.access_key, cfg->remote.secret_key,
		cfg->remote.aws_config};

	cfg_forget(cfg); /* secrets must not remain in freed memory */
	for (size_t i = 0; i < ARRAY_LEN(strings); i++)
		free(strings[i]);
	for (size_t i = 0; i < cfg_n_options; i++) {
		const struct cfg_option *o = &cfg_options[i];

		if (o->kind == OPT_TEXT)
			release_field(cfg, o->field);
		else if (o->kind == OPT_RULE || o->kind == OPT_LIST)
			cfg_strings_drop((void *)((char *)cfg + o->field));
	}
	for (size_t i = 0; i < cfg_n_flags; i++)
		if (cfg_flags[i].value)
			release_field(cfg, cfg_flags[i].field);
	cfg_strings_drop(&cfg->more);
	cfg_strings_drop(&cfg->fuse_opts);
	cfg_strings_drop(&cfg->config.read);
	for (size_t i = 0; i < cfg->passed.n; i++)
		wipe_text(cfg->passed.v[i]);
	cfg_strings_drop(&cfg->passed);
	for (size_t i = 0; i < cfg->config.n_mounts; i++) {
		free(cfg->config.mounts[i].name);
		free(cfg->config.mounts[i].source);
		free(cfg->config.mounts[i].target);
		free(cfg->config.mounts[i].where);
	}
	free(cfg->config.mounts);
	cfg_from_free(cfg->from);
	*cfg = (struct cfg){.command = cfg->command};
}
