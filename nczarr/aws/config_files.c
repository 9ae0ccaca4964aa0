/* SPDX-License-Identifier: BSD-3-Clause */
/* config_files.c - ~/.aws/config and ~/.aws/credentials: sections of "key = value".
 *
 * As in AWS's tools: a section of config is "[profile NAME]" or "[default]", one of credentials
 * "[NAME]"; indented lines after a key without a value are nested settings, without credentials;
 * credentials has precedence. */
#include "nczarr/aws/aws.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/core/str.h"
#include "base/os/io.h"

#define FILE_MAX (1u << 20)

/* reading - one file. */
struct reading {
	const char *path, *profile;
	bool config; /* sections are named as in config */
	bool inside; /* the section is the profile's */
	bool nested; /* indented lines are another level */
	size_t line;
	struct aws_profile *ret;
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int bad(const struct reading *r, const char *what, struct err *e)
{
	return err_set(e, -EINVAL, "'%s' line %zu: %s", r->path, r->line, what);
}

/* section - parse "[name]": whether it is the profile. */
static int section(struct reading *r, char *text, struct err *e)
{
	char *end = strchr(text, ']');
	char *name;

	if (!end)
		return bad(r, "']' is missing after the name of the section", e);
	*end = '\0';
	name = str_trim(text + 1);
	if (strncmp(name, "profile", 7) == 0 && blank(name[7]))
		name = str_trim(name + 7);
	else if (r->config &&
		 (strncmp(name, "sso-session", 11) == 0 || strncmp(name, "services", 8) == 0))
		name = end; /* "": no profile */
	r->inside = strcmp(name, r->profile) == 0;
	r->nested = false;
	r->ret->found |= r->inside;
	return 0;
}

static const struct {
	const char *key;
	size_t at; /* in aws_profile: a char * */
} rows[] = {
	{"aws_access_key_id", offsetof(struct aws_profile, access)},
	{"aws_secret_access_key", offsetof(struct aws_profile, secret)},
	{"aws_session_token", offsetof(struct aws_profile, token)},
	{"region", offsetof(struct aws_profile, region)},
	{"aws_region", offsetof(struct aws_profile, region)}, /* netCDF-C's documentation */
	{"endpoint_url", offsetof(struct aws_profile, endpoint)},
	{"role_arn", offsetof(struct aws_profile, role_arn)},
	{"source_profile", offsetof(struct aws_profile, source_profile)},
	{"credential_source", offsetof(struct aws_profile, credential_source)},
	{"web_identity_token_file", offsetof(struct aws_profile, token_file)},
	{"role_session_name", offsetof(struct aws_profile, session_name)},
	{"external_id", offsetof(struct aws_profile, external_id)},
};

static char **slot(struct aws_profile *p, size_t row)
{
	return (char **)(void *)((char *)p + rows[row].at);
}

static int setting(struct reading *r, char *text, bool indented, struct err *e)
{
	char *eq = strchr(text, '='), *key, *value, **at;

	if (indented && r->nested)
		return 0;
	if (!eq)
		return r->inside ? bad(r, "neither '[section]' nor 'key = value'", e) : 0;
	*eq = '\0';
	key = str_trim(text);
	value = str_trim(eq + 1);
	r->nested = *value == '\0';
	if (!r->inside)
		return 0;
	if (strcasecmp(key, "credential_process") == 0)
		r->ret->process = true;
	if (strcasecmp(key, "sso_session") == 0 || strcasecmp(key, "sso_start_url") == 0)
		r->ret->sso = true;
	for (size_t i = 0; i < ARRAY_LEN(rows) && *value; i++) {
		if (strcasecmp(key, rows[i].key) != 0)
			continue;
		at = slot(r->ret, i);
		str_wipe(*at);
		*at = strdup(value);
		return *at ? 0 : err_nomem(e);
	}
	return 0;
}

static int parse(struct reading *r, char *text, struct err *e)
{
	int rc = 0;

	for (char *line; rc == 0 && (line = strsep(&text, "\n"));) {
		bool indented = blank(*line);

		r->line++;
		line = str_trim(line);
		if (*line == '\0' || *line == '#' || *line == ';')
			continue;
		rc = *line == '[' ? section(r, line, e) : setting(r, line, indented, e);
	}
	return rc;
}

/* read_file - read one file; a missing one is empty. */
static int read_file(const char *path, const char *profile, bool config,
		     struct aws_profile *ret, struct err *e)
{
	struct reading r = {.path = path, .profile = profile, .config = config, .ret = ret};
	struct err why = ERR_INIT;
	char *text = NULL;
	size_t n;
	int rc = io_read_file(path, FILE_MAX, &text, &n, &why);

	if (rc == 0 && memchr(text, '\0', n))
		rc = err_set(&why, -EINVAL, "'%s' contains a NUL byte", path);
	rc = rc ? rc : parse(&r, text, &why);
	if (text)
		explicit_bzero(text, n);
	free(text);
	if (!text && (rc == -ENOENT || rc == -ENOTDIR))
		return 0;
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

int aws_profile_read(const char *config, const char *credentials, const char *profile,
		     struct aws_profile *ret, struct err *e)
{
	int rc = 0;

	*ret = (struct aws_profile){.found = false};
	if (config)
		rc = read_file(config, profile, true, ret, e);
	if (rc == 0 && credentials)
		rc = read_file(credentials, profile, false, ret, e);
	if (rc < 0)
		aws_profile_release(ret);
	return rc;
}

void aws_profile_release(struct aws_profile *p)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		str_wipe(steal(slot(p, i)));
	*p = (struct aws_profile){.found = false};
}
