/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_services.c - keys that services give out: a container's, an instance's, STS's; times.
 *
 * Input: a byte that says which service, then its answers, each a status, a length and that many
 * bytes. http_do is here, and answers so.
 *
 * Properties: keys that come have both parts, and nothing is kept of those that do not; what fails
 * has a message without the token; what is asked with is one line; a time that is taken is written
 * and read as the same.
 *
 *   make fuzz TIME=60 FUZZ=services */
#include <time.h>

#include "base/os/url.h"
#include "nczarr/aws/aws.h"
#include "tests/fuzz/fuzz.h"

static struct slice script;
static unsigned asked;

int http_do(struct http_client *n, const struct http_request *w, struct http_response *ret,
	    struct err *e)
{
	struct slice piece;

	(void)n;
	require(asked++ < 8 && url_is(w->url) && !strpbrk(w->url, " \r\n"));
	for (const char *const *h = w->headers; h && *h; h++)
		require(strchr(*h, ':') && !strpbrk(*h, "\r\n"));
	*ret = (struct http_response){.status = rd_le16(&script) % 600};
	piece = piece_of(&script);
	buf_init(&ret->body, w->max_body);
	if (ret->status >= 400 || ret->status < 200 || piece.len > w->max_body) {
		ret->rc = ret->status == 404 ? -ENOENT : -EIO;
		return err_set(e, ret->rc, "the service answers %u", ret->status);
	}
	buf_put(&ret->body, piece.p ? piece.p : (const uint8_t *)"", piece.len);
	require(buf_ok(&ret->body));
	return 0;
}

void http_response_release(struct http_response *a)
{
	buf_release(&a->body);
}

int http_header(struct http_transfer *r, const char *line, struct err *e)
{
	(void)r;
	(void)e;
	require(strchr(line, ':') && !strpbrk(line, "\r\n"));
	return 0;
}

static void check(int rc, const struct err *e, struct aws_keys *keys)
{
	if (rc < 0) {
		failed_well(rc, e);
		require(keys == NULL);
	}
	if (keys)
		require(keys->access && keys->secret && keys->expires >= 0 && keys->from[0]);
	aws_keys_release(keys);
}

static void as_time(const uint8_t *p, size_t n)
{
	char *text = text_of(p, n);
	char again[64];
	int64_t s, ns;
	struct tm tm;
	time_t t;

	if (aws_time(text, &s, &ns) == 0) {
		t = (time_t)s;
		require(s >= 0 && ns / 1000000000 == s && gmtime_r(&t, &tm));
		require(strftime(again, sizeof(again), "%Y-%m-%dT%H:%M:%SZ", &tm) > 0);
		require(aws_time(again, &ns, NULL) == 0 && ns == s);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct aws_keys mine = {.access = NULL};
	static char access[] = "AKID", secret[] = "SECRET";
	struct aws_role role = {.arn = "arn:aws:iam::1:role/r", .session = "s"};
	struct aws_keys *keys = NULL;
	struct err e = ERR_INIT;
	uint8_t which;
	int rc;

	script = slice_of(data, size);
	asked = 0;
	which = rd_u8(&script) % 5;
	mine.access = access;
	mine.secret = secret;
	require(setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/c", 1) == 0);
	switch (which) {
	case 0:
		rc = aws_from_container(NULL, &keys, &e);
		break;
	case 1:
		rc = aws_from_instance(NULL, &keys, &e);
		break;
	case 2:
	case 3:
		role.keys = which == 2 ? &mine : NULL;
		role.region = which == 2 ? "eu-west-1" : NULL;
		rc = aws_from_sts(NULL, &role, &keys, &e);
		break;
	default:
		as_time(script.p, script.len);
		return 0;
	}
	check(rc, &e, keys);
	return 0;
}
