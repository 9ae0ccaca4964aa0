/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_serve.c - what a request to `nczarrfs serve` says: path, range, tags, host.
 *
 * Input: a byte that says which, and a text.
 * Properties: components of a path are names that a directory can have, and encoded they are the
 * same path again; a range lies within the file; a tag that is the same is listed, too; only names
 * of this machine are hosts of it; text in HTML has no markup.
 *
 *   make fuzz TIME=60 FUZZ=serve */
#include <strings.h>

#include "base/core/str.h"
#include "base/os/url.h"
#include "fusefs/http/parse_int.h"
#include "tests/fuzz/fuzz.h"

#define TAG "\"1f-0-2a-100\""

static void path(const char *text)
{
	struct http_path p, q;
	struct err e = ERR_INIT;
	int rc = http_path_parse(text, &p, &e);
	struct buf again;
	size_t n = 0;

	if (rc < 0) {
		require(rc == -EINVAL || rc == -ENAMETOOLONG);
		failed_well(rc, &e);
		http_path_release(&p);
		return;
	}
	buf_init(&again, (size_t)4 * HTTP_PATH_MAX);
	for (const char *s = NULL; (s = http_path_next(&p, s)); n++) {
		require(*s && strlen(s) <= HTTP_NAME_MAX && !strchr(s, '/'));
		require(strcmp(s, ".") != 0 && strcmp(s, "..") != 0);
		buf_putc(&again, '/');
		url_encode(&again, s, strlen(s), false);
	}
	require(n == p.n);
	buf_putc(&again, '\0');
	require(buf_ok(&again));
	if (again.len <= HTTP_PATH_MAX) {
		require(http_path_parse((char *)again.data, &q, NULL) == 0);
		require(q.n == p.n && q.names.len == p.names.len);
		require(!q.names.len || memcmp(q.names.data, p.names.data, q.names.len) == 0);
		http_path_release(&q);
	}
	buf_release(&again);
	http_path_release(&p);
}

static void range(const char *text, uint64_t size)
{
	uint64_t first, len;

	switch (http_range_parse(text, size, &first, &len)) {
	case HTTP_ALL:
		require(first == 0 && len == size);
		break;
	case HTTP_PART:
		require(len > 0 && first < size && len <= size - first);
		break;
	case HTTP_OUTSIDE:
		break;
	}
}

static void host(const char *text)
{
	if (!http_host_ok(text, "127.0.0.1"))
		return;
	require(strncasecmp(text, "localhost", 9) == 0 || strncmp(text, "127.0.0.1", 9) == 0 ||
		strncmp(text, "[::1]", 5) == 0);
	require(!strpbrk(text, "/@# \t"));
}

static void html(const char *text)
{
	struct buf out;

	buf_init(&out, (size_t)1 << 24);
	str_put_xml(&out, text, strlen(text));
	buf_putc(&out, '\0');
	require(!buf_ok(&out) || !strpbrk((char *)out.data, "<>\"'"));
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data + (size > 0), size - (size > 0));

	switch (size ? data[0] % 5 : 0) {
	case 0:
		path(text);
		break;
	case 1:
		range(text, size > 4 ? UINT64_MAX >> data[1] % 64 : 0);
		break;
	case 2:
		require(!http_tag_same(text, TAG) || http_tag_listed(text, TAG));
		require(!http_tag_same(text, "W/" TAG));
		break;
	case 3:
		host(text);
		break;
	default:
		html(text);
		break;
	}
	free(text);
	return 0;
}
