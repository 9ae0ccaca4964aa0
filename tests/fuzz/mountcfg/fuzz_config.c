/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_config.c - files of settings: .ncrc, AWS's config and credentials, netrc.
 *
 * Input: a byte that says which of them, then its text; of AWS's files two, the length of the first
 * in front of it.
 *
 * Properties: what is refused has a message with the file's name; nothing that a file says about
 * one host is found for another; a user comes with what belongs to it; the same text with other
 * ends of lines says the same.
 *
 *   make fuzz TIME=60 FUZZ=config */
#include "mountcfg/options/option_table.h"
#include "mountcfg/address/address.h"
#include "nczarr/aws/aws.h"
#include "nczarr/http/http_int.h"
#include "tests/fuzz/fuzz.h"

#define HERE "https://host.example:8080/data/tree.zarr"

static bool alike(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* path_of - of a descriptor, for who wants a path. */
static void path_of(int fd, char out[40])
{
	(void)snprintf(out, 40, "/proc/self/fd/%d", fd);
}

static void as_rc(const struct slice *text)
{
	struct cfg cfg = {0};
	struct address a;
	struct err e = ERR_INIT;
	int fd = memory_file(text->p, text->len), rc;
	char path[40];

	path_of(fd, path);
	require(setenv("NCRCENV_RC", path, 1) == 0 && unsetenv("NCRCENV_IGNORE") == 0);
	require(cfg_defaults(&cfg, NULL) == 0 && address_parse(HERE, &a, NULL) == 0);
	cfg.source = strdup(HERE);
	cfg.is_remote = true;
	rc = cfg_rc(&cfg, &a, &e);
	if (rc < 0)
		failed_well(rc, &e);
	else
		require(!cfg.password || cfg.user);
	require(!cfg.user || memmem(text->p, text->len, "[", 1)); /* lines with a URL only */
	require(cfg.remote.timeout >= 1);
	address_release(&a);
	cfg_release(&cfg);
	(void)close(fd);
}

static void profiles(const char *config, const char *credentials, struct aws_profile *ret)
{
	struct err e = ERR_INIT;
	int rc = aws_profile_read(config, credentials, "work", ret, &e);

	if (rc < 0) {
		require(rc == -EINVAL || rc == -ENOMEM);
		failed_well(rc, &e);
		require(!ret->found && !ret->access && !ret->secret);
	}
}

static void as_aws(struct slice *s)
{
	struct slice config = piece_of(s), credentials = rest_of(s);
	int a = memory_file(config.p, config.len);
	int b = memory_file(credentials.p, credentials.len);
	struct aws_profile one, both;
	char path_a[40], path_b[40];

	path_of(a, path_a);
	path_of(b, path_b);
	profiles(path_a, NULL, &one);
	profiles(path_a, path_b, &both);
	/* what only the first says holds in both, unless the second is damaged */
	require(both.role_arn || !one.role_arn || !both.found);
	require(!one.access || *one.access);
	aws_profile_release(&one);
	profiles(NULL, path_b, &one);
	if (one.found && both.found) {
		require(!one.access || alike(one.access, both.access));
		require(!one.secret || alike(one.secret, both.secret));
	}
	aws_profile_release(&one);
	aws_profile_release(&both);
	(void)close(a);
	(void)close(b);
}

static void as_netrc(const struct slice *s)
{
	static const char *const hosts[] = {"host", "127.0.0.1", ""};
	char *text = text_of(s->p, s->len);

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		char *named = http_netrc_find(text, hosts[i], false);
		char *any = http_netrc_find(text, hosts[i], true);

		require(!named || (strchr(named, ':') && named[0] != ':'));
		require(!named || strstr(text, hosts[i]) || strcasestr(text, hosts[i]));
		/* a default entry ends the search, as netrc(5) has it: then only `named` is one */
		require(!any || strchr(any, ':'));
		free(named);
		free(any);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);

	switch (rd_u8(&s) % 3) {
	case 0:
		as_rc(&s);
		break;
	case 1:
		as_aws(&s);
		break;
	default:
		as_netrc(&s);
	}
	return 0;
}
