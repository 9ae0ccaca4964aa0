/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - ListObjectsV2, page by page. */
#include "nczarr/s3/s3_int.h"

#include <errno.h>
#include <string.h>

#define EMPTY_MAX 200     /* consecutive empty pages */
#define PAGES_MAX 1000000 /* of 1000 keys: limit of a bucket */

/* s3_list_listing - a listing in progress. */
struct s3_list_listing {
	object_emit *emit;
	void *arg;
	const char *root; /* prefix of all keys, not emitted */
	size_t prefix;    /* bytes of it */
	bool short_of_memory;
};

static bool on_entry(void *arg, const char *key, bool is_prefix, const struct object_info *info)
{
	struct s3_list_listing *l = arg;
	auto_free char *name = NULL;
	size_t n = strlen(key);

	if (n <= l->prefix || strncmp(key, l->root, l->prefix) != 0)
		return true; /* the marker of the folder itself; a key outside the prefix */
	if (!is_prefix)
		return key[n - 1] == '/' || l->emit(l->arg, key + l->prefix, false, info);
	name = strndup(key + l->prefix, n - l->prefix - (key[n - 1] == '/'));
	if (!name)
		l->short_of_memory = true; /* a key that is not emitted would be taken for absent */
	return name && (!*name || l->emit(l->arg, name, true, NULL));
}

static int s3_list_put_query(struct buf *q, const char *prefix, bool deep, const char *token,
			     struct err *e)
{
	buf_clear(q);
	if (*token)
		s3_query_put(q, "continuation-token", token);
	if (!deep)
		s3_query_put(q, "delimiter", "/");
	s3_query_put(q, "encoding-type", "url");
	s3_query_put(q, "list-type", "2");
	s3_query_put(q, "prefix", prefix);
	buf_putc(q, '\0');
	return buf_ok(q) ? 0 : err_nomem(e);
}

/* s3_list_one_page - request a page and emit its entries. */
static int s3_list_one_page(struct s3 *s, const char *query, struct s3_list_listing *l,
			    struct s3_page *ret, struct err *e)
{
	struct s3_request c = {
		.s = s, .query = query, .http = {.method = "GET", .max_body = S3_PAGE_MAX}};
	struct http_response a;
	int rc = s3_do(&c, &a, e);

	if (rc == -ENOENT)
		rc = err_set(e, -EIO, "'%s': the bucket cannot be listed", s->shown);
	rc = rc ? rc : s3_xml_list(a.body.data, a.body.len, on_entry, l, ret, e);
	if (rc == -EBADMSG)
		rc = err_wrap(e, rc, "'%s'", s->shown);
	http_response_release(&a);
	s3_request_release(&c);
	return rc;
}

static int all_pages(struct s3 *s, const char *prefix, bool deep, struct s3_list_listing *l,
		     struct err *e)
{
	auto_free struct s3_page *page = calloc(1, sizeof(*page));
	auto_free char *token = calloc(1, sizeof(page->token));
	auto_free char *seen = calloc(1, sizeof(page->token));
	auto_buf q = buf_of(1u << 16);
	int rc = page && token && seen ? 0 : err_nomem(e);
	bool more = true;

	for (size_t n = 0, mark = 1, empty = 0; rc == 0 && more; n++) {
		rc = s3_list_put_query(&q, prefix, deep, token, e);
		rc = rc ? rc : s3_list_one_page(s, (const char *)q.data, l, page, e);
		if (rc == 0 && l->short_of_memory)
			rc = err_nomem(e);
		if (rc < 0)
			break;
		more = page->truncated && !page->stopped;
		empty = page->entries ? 0 : empty + 1;
		if (more && (!*page->token || strcmp(page->token, seen) == 0))
			rc = err_set(e, -EBADMSG,
				     "'%s': a listing does not state how to continue",
				     s->shown);
		if (more && (empty == EMPTY_MAX || n == PAGES_MAX))
			rc = err_set(e, -EBADMSG, "'%s': a listing does not end", s->shown);
		memcpy(token, page->token, sizeof(page->token));
		if (n + 1 == mark) { /* a loop of any length returns to a mark */
			memcpy(seen, token, sizeof(page->token));
			mark *= 2;
		}
	}
	return rc;
}

int s3_list(struct object_service *o, const char *key, bool deep, object_emit *emit, void *arg,
	    struct err *e)
{
	struct s3 *s = CONTAINER_OF(o, struct s3, base);
	struct s3_list_listing l = {.emit = emit, .arg = arg};
	char prefix[S3_KEY_MAX + 2];
	int rc = s3_key_check(s, key, e);

	if (rc < 0)
		return rc;
	snprintf(prefix, sizeof(prefix), "%s%s%s", s->key, *s->key && *key ? "/" : "", key);
	if (*prefix)
		memcpy(prefix + strlen(prefix), "/", 2);
	l.root = prefix;
	l.prefix = strlen(prefix);
	return all_pages(s, prefix, deep, &l, e);
}
