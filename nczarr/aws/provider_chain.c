/* SPDX-License-Identifier: BSD-3-Clause */
/* provider_chain.c - tries the sources of keys in the order of AWS's tools: options, environment,
 * the profile's role, web identity, the profile's keys, the container's, the instance's. */
#include "nczarr/aws/aws.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "base/core/str.h"

#define SOURCES_MAX 5 /* longest chain of source profiles */

/* looking - state of a search. */
struct looking {
	const struct aws_options *o;
	struct aws_resolved *ret;
	char config[PATH_MAX], credentials[PATH_MAX]; /* "": none */
	const char *profile;
	bool chosen; /* an option or the address names the profile */
	bool named;  /* the same, or the environment does */
};

/* chain_note - record a source for the message. */
NZ_PRINTF(2, 3) static void chain_note(struct looking *l, const char *fmt, ...)
{
	size_t n = strlen(l->ret->looked);
	va_list ap;

	if (n && n + 2 < sizeof(l->ret->looked)) {
		memcpy(l->ret->looked + n, ", ", 3);
		n += 2;
	}
	va_start(ap, fmt);
	(void)vsnprintf(l->ret->looked + n, sizeof(l->ret->looked) - n, fmt, ap);
	va_end(ap);
}

static void chain_find_file(char ret[PATH_MAX], const char *variable, const char *name)
{
	const char *path = aws_env(variable), *home = aws_env("HOME");
	int n = 0;

	if (path)
		n = snprintf(ret, PATH_MAX, "%s", path);
	else if (home)
		n = snprintf(ret, PATH_MAX, "%s/.aws/%s", home, name);
	if (n <= 0 || n >= PATH_MAX)
		*ret = '\0';
}

static int chain_keys_of(struct looking *l, const char *access, const char *secret,
			 const char *token, const char *from, struct err *e)
{
	if (!access || !secret)
		return err_set(e, -EACCES, "only one of access key and secret key is set in %s",
			       from);
	l->ret->keys = aws_keys_make(access, secret, token, 0, from);
	return l->ret->keys ? 0 : err_nomem(e);
}

static int from_environment(struct looking *l, struct err *e)
{
	const char *access = aws_env("AWS_ACCESS_KEY_ID"),
		   *secret = aws_env("AWS_SECRET_ACCESS_KEY");

	chain_note(l, "environment");
	if (!access && !secret)
		return 0;
	return chain_keys_of(l, access, secret, aws_env("AWS_SESSION_TOKEN"), "the environment",
			     e);
}

static int read_profile(const struct looking *l, const char *name, struct aws_profile *ret,
			struct err *e)
{
	return aws_profile_read(aws_some(l->config), aws_some(l->credentials), name, ret, e);
}

static int profile_keys(struct looking *l, const struct aws_profile *p, const char *name,
			struct err *e)
{
	char from[96];
	int rc;

	snprintf(from, sizeof(from), "profile '%.60s'", name);
	rc = chain_keys_of(l, p->access, p->secret, p->token, from, e);
	if (rc == 0)
		l->ret->keys->of_file = true;
	return rc;
}

/* web_identity - assume a role with a token in a file. */
static int web_identity(struct looking *l, const char *file, const char *arn,
			const char *session, const char *region, struct err *e)
{
	const struct aws_role role = {.arn = arn,
				      .session = session ? session : "nczarrfs",
				      .token_file = file,
				      .region = region};

	return aws_from_sts(l->o->net, &role, &l->ret->keys, e);
}

static int source_keys(struct looking *l, const struct aws_profile *p, const char *name,
		       unsigned depth, struct err *e);

/* assume - assume the role of a profile, with the keys of its source. */
static int assume(struct looking *l, const struct aws_profile *p, const char *name,
		  unsigned depth, struct err *e)
{
	struct aws_role role = {.arn = p->role_arn,
				.session = p->session_name ? p->session_name : "nczarrfs",
				.external_id = p->external_id,
				.region = p->region ? p->region : l->ret->region};
	struct aws_keys *own;
	int rc;

	if (p->token_file)
		return web_identity(l, p->token_file, p->role_arn, p->session_name, role.region,
				    e);
	rc = source_keys(l, p, name, depth, e);
	if (rc < 0)
		return rc;
	own = steal(&l->ret->keys);
	if (!own)
		return err_set(e, -EACCES,
			       "profile '%.60s' has a role, but no keys to assume it with",
			       name);
	role.keys = own;
	rc = aws_from_sts(l->o->net, &role, &l->ret->keys, e);
	aws_keys_release(own);
	return rc;
}

/* other_profile - the keys of the profile that a role is assumed with. */
static int other_profile(struct looking *l, const char *other, unsigned depth, struct err *e)
{
	struct aws_profile q;
	int rc;

	if (depth >= SOURCES_MAX)
		return err_set(
			e, -EINVAL,
			"profiles refer to each other by source_profile more than %d times",
			SOURCES_MAX);
	rc = read_profile(l, other, &q, e);
	if (rc < 0)
		return rc;
	if (!q.found)
		rc = err_set(e, -EACCES, "profile '%.60s' does not exist", other);
	else if (q.role_arn && !q.access)
		rc = assume(l, &q, other, depth + 1, e);
	else
		rc = profile_keys(l, &q, other, e);
	aws_profile_release(&q);
	return rc;
}

static int source_keys(struct looking *l, const struct aws_profile *p, const char *name,
		       unsigned depth, struct err *e)
{
	const char *s = p->credential_source;

	if (p->source_profile && strcmp(p->source_profile, name) == 0 && p->access)
		return profile_keys(l, p, name, e);
	if (p->source_profile)
		return other_profile(l, p->source_profile, depth, e);
	if (s && strcmp(s, "Environment") == 0)
		return from_environment(l, e);
	if (s && strcmp(s, "Ec2InstanceMetadata") == 0)
		return aws_from_instance(l->o->net, &l->ret->keys, e);
	if (s && strcmp(s, "EcsContainer") == 0)
		return aws_from_container(l->o->net, &l->ret->keys, e);
	return 0;
}

/* from_profile - use the keys or the role of a profile. */
static int from_profile(struct looking *l, const struct aws_profile *p, struct err *e)
{
	const char *file = aws_env("AWS_WEB_IDENTITY_TOKEN_FILE"),
		   *arn = aws_env("AWS_ROLE_ARN");

	chain_note(l, "profile '%.40s' in '%.60s' and '%.60s'", l->profile, l->config,
		   l->credentials);
	if (p->role_arn && !l->o->fixed_only)
		return assume(l, p, l->profile, 0, e);
	if (file && !l->o->fixed_only && !l->named) {
		if (!arn)
			return err_set(
				e, -EACCES,
				"AWS_WEB_IDENTITY_TOKEN_FILE is set, but AWS_ROLE_ARN is not");
		return web_identity(l, file, arn, aws_env("AWS_ROLE_SESSION_NAME"),
				    l->ret->region, e);
	}
	if (p->access || p->secret)
		return profile_keys(l, p, l->profile, e);
	if (p->process)
		return err_set(e, -EACCES,
			       "profile '%.60s' has credential_process, but nczarrfs runs no "
			       "programs: set the keys that it prints as environment variables",
			       l->profile);
	if (p->sso)
		return err_set(e, -EACCES,
			       "profile '%.60s' uses SSO: set the output of 'aws configure "
			       "export-credentials --profile %.60s --format env' as "
			       "environment variables",
			       l->profile, l->profile);
	return 0;
}

/* first_of - a copy of the first of n strings that is set; NULL: none. */
static char *first_of(const char *const *list, size_t n, bool *failed)
{
	size_t i = 0;

	while (i < n && !list[i])
		i++;
	return i < n ? str_copy(list[i], failed) : NULL;
}

/* chain_places - set region and endpoint, independent of the keys. */
static int chain_places(struct looking *l, const struct aws_profile *p, struct err *e)
{
	const char *const regions[] = {aws_some(l->o->opts->region), p->region,
				       aws_env("AWS_REGION"), aws_env("AWS_DEFAULT_REGION")};
	const char *const endpoints[] = {aws_env("AWS_ENDPOINT_URL_S3"),
					 aws_env("AWS_ENDPOINT_URL"), p->endpoint};
	const char *ignore = aws_env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
	bool failed = false;

	l->ret->region = first_of(regions, ARRAY_LEN(regions), &failed);
	if (!ignore || strcmp(ignore, "true") != 0)
		l->ret->endpoint = first_of(endpoints, ARRAY_LEN(endpoints), &failed);
	return failed ? err_nomem(e) : 0;
}

static int chain_look(struct looking *l, const struct aws_profile *p, struct err *e)
{
	const struct remote_options *opts = l->o->opts;
	const char *access = aws_some(opts->access_key), *secret = aws_some(opts->secret_key);
	bool no = strcmp(l->profile, "no") == 0 && !p->found;
	int rc;

	if (opts->anonymous || no)
		return 0;
	/* a profile in an address has precedence */
	if (!l->o->profile && (access || secret))
		return chain_keys_of(l, access, secret, NULL, ".ncrc", e);
	rc = l->chosen ? 0 : from_environment(l, e);
	if (rc < 0 || l->ret->keys)
		return rc;
	if (l->named && !p->found)
		return err_set(e, -EACCES,
			       "profile '%.60s' does not exist in '%.100s' or '%.100s'",
			       l->profile, l->config, l->credentials);
	rc = from_profile(l, p, e);
	if (rc < 0 || l->ret->keys)
		return rc;
	if (l->o->fixed_only)
		return 0;
	chain_note(l, "container and instance credentials");
	rc = aws_from_container(l->o->net, &l->ret->keys, e);
	return rc || l->ret->keys ? rc : aws_from_instance(l->o->net, &l->ret->keys, e);
}

int aws_resolve(const struct aws_options *o, struct aws_resolved *ret, struct err *e)
{
	const char *chosen = aws_some(o->profile ? o->profile : o->opts->profile);
	const char *named = chosen ? chosen : aws_env("AWS_PROFILE");
	struct looking l = {.o = o, .ret = ret, .chosen = chosen, .named = named};
	struct aws_profile p;
	int rc;

	*ret = (struct aws_resolved){.keys = NULL};
	l.profile = named ? named : "default";
	chain_find_file(l.config, "AWS_CONFIG_FILE", "config");
	chain_find_file(l.credentials, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
	if (aws_some(o->opts->config_file))
		snprintf(l.config, sizeof(l.config), "%s", o->opts->config_file);
	rc = read_profile(&l, l.profile, &p, e);
	if (rc < 0)
		return rc;
	rc = chain_places(&l, &p, e);
	rc = rc ? rc : chain_look(&l, &p, e);
	aws_profile_release(&p);
	if (rc < 0)
		aws_resolved_release(ret);
	return rc;
}
