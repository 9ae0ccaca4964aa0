/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_address.c - what a user may write for a dataset: addresses, their fragments, buckets.
 *
 * Properties: what is refused has a message, and it does not have the password; what is shown has
 * neither user nor password nor fragment; a bucket and a region are what may be part of a host's
 * name; what is shown of an address is understood again, as the same kind of thing in the same
 * place.
 *
 *   make fuzz TIME=60 FUZZ=address */
#include "mountcfg/address/address_int.h"
#include "tests/fuzz/fuzz.h"

static bool alike(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void check(const struct address *a)
{
	require(a->shown && a->name);
	require(a->kind >= ADDRESS_PATH && a->kind <= ADDRESS_GS3);
	require(!a->bucket || !*a->bucket || s3_bucket_ok(a->bucket));
	require(!a->region || s3_region_ok(a->region));
	if (a->kind == ADDRESS_PATH) {
		require(a->path && !a->user && !a->password);
		return;
	}
	require(!strchr(a->name, '\n'));
	if (a->kind == ADDRESS_HTTP)
		require(a->url && url_is(a->url) && !strchr(a->url, '#'));
	else
		require(a->bucket && a->key);
	require(!strchr(a->shown, '#'));
}

/* again - what is shown, which has lost what nobody may see. */
static void again(const struct address *a)
{
	struct address b;

	if (strncmp(a->shown, "s3://", 5) != 0 && strncmp(a->shown, "gs3://", 6) != 0 &&
	    strncmp(a->shown, "gs://", 5) != 0)
		return;
	require(address_parse(a->shown, &b, NULL) == 0);
	require(b.kind == a->kind && alike(a->bucket, b.bucket) && alike(a->key, b.key));
	require(alike(a->name, b.name) && !b.user && !b.password);
	address_release(&b);
}

static void fragments(const char *text)
{
	struct address a = {.kind = ADDRESS_PATH};
	struct err e = ERR_INIT;
	unsigned mode = 0;
	int rc = fragment_parse(text, &a, &mode, &e);

	require(rc == 0 || rc == -EINVAL || rc == -EOPNOTSUPP);
	if (rc)
		failed_well(rc, &e);
	else
		require(!(mode & MODE_OTHER));
	address_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);
	const char *hash = strchr(text, '#');
	struct err e = ERR_INIT;
	struct address a;
	int rc = address_parse(text, &a, &e);

	require(rc == 0 || rc == -EINVAL || rc == -EOPNOTSUPP);
	if (rc == 0) {
		check(&a);
		require(a.kind == ADDRESS_PATH || address_is_remote(text));
		again(&a);
		address_release(&a);
	} else {
		failed_well(rc, &e);
	}
	fragments(hash ? hash + 1 : text);
	(void)s3_bucket_ok(text);
	(void)s3_region_ok(text);
	(void)s3_host(text);
	free(text);
	return 0;
}
