/* SPDX-License-Identifier: BSD-3-Clause */
/* parse.c - parses requests of HTTP. */
#include "fusefs/http/parse_int.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/core/endings.h"
#include "base/os/url.h"

/* Paths. */

static int parse_add_name(struct http_path *p, const char *raw, size_t n, struct err *e)
{
	const size_t from = p->names.len;
	const char *name;
	size_t len;

	if (url_decode(&p->names, raw, n, NULL) < 0 && buf_ok(&p->names))
		return err_set(e, -EINVAL, "bad percent encoding in the path");
	buf_putc(&p->names, '\0');
	if (!buf_ok(&p->names))
		return 0; /* http_path_parse looks */
	name = (const char *)p->names.data + from;
	len = p->names.len - from - 1;
	if (len > HTTP_NAME_MAX)
		return err_set(e, -ENAMETOOLONG, "a name is longer than %d bytes",
			       HTTP_NAME_MAX);
	if (strchr(name, '/'))
		return err_set(e, -EINVAL, "a name cannot contain '/'");
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(e, -EINVAL, "'%s' is not allowed in a path", name);
	p->n++;
	return 0;
}

int http_path_parse(const char *raw, struct http_path *ret, struct err *e)
{
	size_t n;
	int rc = 0;

	*ret = (struct http_path){.is_dir = true};
	buf_init(&ret->names, HTTP_PATH_MAX + 1);
	if (strnlen(raw, HTTP_PATH_MAX + 1) > HTTP_PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "the path is longer than %d bytes",
			       HTTP_PATH_MAX);
	for (; *raw && rc == 0; raw += n) {
		n = strcspn(raw, "/");
		ret->is_dir = n == 0;
		if (n)
			rc = parse_add_name(ret, raw, n, e);
		else
			n = 1;
	}
	if (rc == 0 && !buf_ok(&ret->names))
		rc = buf_full(&ret->names, e, -ENAMETOOLONG, "the path is too long");
	return rc;
}

void http_path_release(struct http_path *p)
{
	buf_release(&p->names);
}

const char *http_path_next(const struct http_path *p, const char *name)
{
	const char *begin = (const char *)p->names.data, *next = begin;

	if (name)
		next = name + strlen(name) + 1;
	return next && next < begin + p->names.len ? next : NULL;
}

/* Ranges. */

/* parse_digits - parse a number; numbers that are too large become the largest one. Returns the
 * number of digits. */
static size_t parse_digits(const char *s, uint64_t *ret)
{
	size_t n = 0;

	*ret = 0;
	for (; s[n] >= '0' && s[n] <= '9'; n++)
		if (ckd_mul(ret, *ret, 10) || ckd_add(ret, *ret, (uint64_t)(s[n] - '0')))
			/* no file is that long, and ten times this value fits */
			*ret = UINT64_MAX / 100;
	return n;
}

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

enum http_range http_range_parse(const char *header, uint64_t size, uint64_t *ret_first,
				 uint64_t *ret_len)
{
	uint64_t first, last;
	size_t n, m;

	*ret_first = 0;
	*ret_len = size;
	if (!header || strncasecmp(header, "bytes=", 6) != 0)
		return HTTP_ALL;
	header = skip_blanks(header + 6);
	n = parse_digits(header, &first);
	if (header[n] != '-')
		return HTTP_ALL;
	m = parse_digits(header + n + 1, &last);
	if ((!n && !m) || *skip_blanks(header + n + 1 + m))
		return HTTP_ALL;
	if (!n) { /* the last n bytes */
		*ret_len = last < size ? last : size;
		*ret_first = size - *ret_len;
		return *ret_len ? HTTP_PART : HTTP_OUTSIDE;
	}
	if (m && last < first)
		return HTTP_ALL;
	if (first >= size)
		return HTTP_OUTSIDE;
	*ret_first = first;
	*ret_len = m && last < size ? last - first + 1 : size - first;
	return HTTP_PART;
}

/* Entity tags. */

static const char *parse_opaque(const char *tag)
{
	return strncmp(tag, "W/", 2) == 0 ? tag + 2 : tag;
}

bool http_tag_listed(const char *header, const char *tag)
{
	const char *end;

	tag = parse_opaque(tag);
	while (header && *(header += strspn(header, " \t,"))) {
		if (*header == '*')
			return true;
		header = parse_opaque(header);
		end = *header == '"' ? strchr(header + 1, '"') : NULL;
		if (!end)
			return false;
		end++;
		if ((size_t)(end - header) == strlen(tag) &&
		    strncmp(header, tag, strlen(tag)) == 0)
			return true;
		header = end;
	}
	return false;
}

bool http_tag_same(const char *header, const char *tag)
{
	return header && *tag == '"' && strcmp(skip_blanks(header), tag) == 0;
}

/* Hosts. */

/* is_port - ":80", or empty. */
static bool is_port(const char *s)
{
	uint64_t port;
	size_t n;

	if (*s != ':')
		return !*s;
	n = parse_digits(s + 1, &port);
	return !s[1 + n] && port <= 65535;
}

static bool is_host(const char *header, const char *host)
{
	const size_t n = strlen(host);

	return strncasecmp(header, host, n) == 0 && is_port(header + n);
}

/* is_bracketed - the same for an IPv6 address, which is in brackets. */
static bool is_bracketed(const char *header, const char *host)
{
	const size_t n = strlen(host);

	return header[0] == '[' && strncasecmp(header + 1, host, n) == 0 &&
	       header[1 + n] == ']' && is_port(header + n + 2);
}

bool http_host_ok(const char *header, const char *bound)
{
	if (!header)
		return true;
	return is_host(header, "localhost") || is_host(header, "127.0.0.1") ||
	       is_bracketed(header, "::1") ||
	       (strchr(bound, ':') ? is_bracketed(header, bound) : is_host(header, bound));
}

/* Content. */

const char *http_type(const char *name)
{
	static const char *const documents[] = {".zgroup", ".zarray",   ".zattrs", ".zmetadata",
						".nczarr", ".nczgroup", ".nczattr", ".nczarray"};

	for (size_t i = 0; i < ARRAY_LEN(documents); i++)
		if (strcmp(name, documents[i]) == 0)
			return "application/json";
	switch (ending_of(name)) {
	case ENDING_JSON:
		return "application/json";
	case ENDING_NETCDF:
	case ENDING_NETCDF4:
	case ENDING_CLASSIC:
		return "application/x-netcdf";
	default:
		return "application/octet-stream";
	}
}
