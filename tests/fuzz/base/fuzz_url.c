/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_url.c - addresses: taken apart, put together, their parts encoded and decoded.
 *
 * Properties: what is refused is refused with a message that does not have its password; what is
 * taken is put together in a form that is taken again, with the same parts, and put together the
 * same; without secrets there is no password in it, nor user; bytes that are encoded are decoded
 * to the same bytes; what is decoded and encoded is decoded to the same.
 *
 *   make fuzz TIME=60 FUZZ=url */
#include "base/os/url.h"
#include "tests/fuzz/fuzz.h"

#define ROOM ((size_t)8 * URL_MAX)

static bool alike(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static char *put(const struct url *u, bool secrets)
{
	struct buf b;
	size_t n;

	buf_init(&b, ROOM);
	url_put(&b, u, secrets);
	buf_putc(&b, '\0');
	require(buf_ok(&b));
	return (char *)buf_take(&b, &n);
}

static void same(const struct url *u, const struct url *v)
{
	require(alike(u->scheme, v->scheme) && alike(u->user, v->user) &&
		alike(u->password, v->password) && alike(u->host, v->host) &&
		u->port == v->port && alike(u->path, v->path) && alike(u->query, v->query));
	require(url_origin_same(u, v) && url_origin_same(v, u));
}

static void parts(const struct url *u)
{
	require(u->scheme && *u->scheme && u->host && u->path);
	require(*u->path == '\0' || *u->path == '/');
	for (const char *c = u->scheme; *c; c++)
		require(*c < 'A' || *c > 'Z');
	for (const char *c = u->host; *c; c++)
		require((uint8_t)*c > ' ' && !strchr("/?#@", *c) && (*c < 'A' || *c > 'Z'));
	for (const char *c = u->path; *c; c++)
		require((uint8_t)*c > ' ' && *c != '?' && *c != '#');
}

static void whole(const char *text)
{
	struct url u = {0}, v = {0};
	struct err e = ERR_INIT;
	int rc = url_parse(text, &u, &e);
	char *once, *twice, *shown;

	if (rc) {
		require(rc == -EINVAL);
		failed_well(rc, &e);
		return;
	}
	require(url_is(text));
	parts(&u);
	once = put(&u, true);
	shown = put(&u, false);
	if (strlen(once) <= URL_MAX) {
		require(url_parse(once, &v, NULL) == 0);
		same(&u, &v);
		twice = put(&v, true);
		require(strcmp(once, twice) == 0);
		free(twice);
		url_release(&v);
	}
	/* what is shown has neither, and is an address itself */
	if (strlen(shown) <= URL_MAX) {
		require(url_parse(shown, &v, NULL) == 0);
		require(!v.user && !v.password && url_origin_same(&u, &v));
		url_release(&v);
	}
	free(once);
	free(shown);
	url_release(&u);
}

static void encoding(const uint8_t *data, size_t n)
{
	struct buf text, bytes, again;
	struct err e = ERR_INIT;

	buf_init(&text, ROOM);
	buf_init(&bytes, ROOM);
	buf_init(&again, ROOM);
	url_encode(&text, (const char *)data, n, n % 2);
	require(buf_ok(&text) && (n == 0 || text.len >= n));
	if (!memchr(data, '\0', n)) {
		require(url_decode(&bytes, (const char *)text.data, text.len, NULL) == 0);
		require(bytes.len == n && (n == 0 || memcmp(bytes.data, data, n) == 0));
	}
	buf_clear(&bytes);
	if (url_decode(&bytes, (const char *)data, n, &e) < 0) {
		failed_well(e.code, &e);
	} else {
		buf_clear(&text);
		url_encode(&text, (const char *)bytes.data, bytes.len, false);
		require(url_decode(&again, (const char *)text.data, text.len, NULL) == 0);
		require(again.len == bytes.len &&
			(again.len == 0 || memcmp(again.data, bytes.data, again.len) == 0));
	}
	buf_release(&text);
	buf_release(&bytes);
	buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);

	whole(text);
	encoding(data, size < URL_MAX ? size : URL_MAX);
	free(text);
	return 0;
}
