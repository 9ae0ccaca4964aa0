/* SPDX-License-Identifier: BSD-3-Clause */
/* sigv4.c - AWS Signature Version 4 over libcrypto: canonical request, string to sign, key
 * of the day, signature. */
#include "nczarr/aws/sigv4.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/os/io.h"
#include "base/os/url.h"
#include "nczarr/http/http.h"

#define CANONICAL_MAX (1u << 20)
#define DIGEST_PIECE (1u << 18)

/* sigv4_line - one header that is signed; name and value borrowed, not terminated. */
struct sigv4_line {
	const char *name, *value;
	size_t name_len, value_len;
};

/* lines - all headers, sorted by name; equal names in their original order. */
struct lines {
	struct sigv4_line at[S3_HEADERS_MAX];
	size_t n;
};

static int compare_names(const struct sigv4_line *a, const struct sigv4_line *b)
{
	int d = strncasecmp(a->name, b->name, u64_min(a->name_len, b->name_len));

	return d ? d : (a->name_len > b->name_len) - (a->name_len < b->name_len);
}

static int add_line(struct lines *l, const char *name, size_t name_len, const char *value,
		    struct err *e)
{
	struct sigv4_line new = {.name = name, .value = value, .name_len = name_len};
	size_t i = l->n;

	if (l->n == ARRAY_LEN(l->at))
		return err_set(e, -EINVAL, "more than %d headers to sign", S3_HEADERS_MAX);
	new.value_len = strlen(value);
	for (; i > 0 && compare_names(&new, &l->at[i - 1]) < 0; i--)
		l->at[i] = l->at[i - 1];
	l->at[i] = new;
	l->n++;
	return 0;
}

/* sigv4_collect - collect the headers of a request and of the signature. */
static int sigv4_collect(const struct s3_signing *in, const char *date, struct lines *l,
			 struct err *e)
{
	int rc = add_line(l, "host", 4, in->host, e);

	rc = rc ? rc : add_line(l, "x-amz-date", 10, date, e);
	if (rc == 0 && in->say_payload)
		rc = add_line(l, "x-amz-content-sha256", 20, in->payload, e);
	if (rc == 0 && in->token)
		rc = add_line(l, "x-amz-security-token", 20, in->token, e);
	for (const char *const *h = in->headers; rc == 0 && h && *h; h++) {
		const char *colon = strchr(*h, ':');

		if (!colon || colon == *h)
			return err_set(e, -EINVAL, "a header to sign has no name");
		rc = add_line(l, *h, (size_t)(colon - *h), colon + 1, e);
	}
	return rc;
}

static bool sigv4_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* sigv4_put_value - append a value without surrounding blanks, and with runs of blanks as one. */
static void sigv4_put_value(struct buf *out, const struct sigv4_line *l)
{
	size_t i = 0, n = l->value_len;

	while (i < n && sigv4_blank(l->value[i]))
		i++;
	while (n > i && sigv4_blank(l->value[n - 1]))
		n--;
	for (; i < n; i++)
		if (!sigv4_blank(l->value[i]))
			buf_putc(out, l->value[i]);
		else if (!sigv4_blank(l->value[i - 1]))
			buf_putc(out, ' ');
}

static void sigv4_put_name(struct buf *out, const struct sigv4_line *l)
{
	for (size_t i = 0; i < l->name_len; i++)
		buf_putc(out, (char)tolower((unsigned char)l->name[i]));
}

/* put_headers - "name:value\n" of each name, values of one name joined by commas. */
static void put_headers(struct buf *out, const struct lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		bool same = i > 0 && compare_names(&l->at[i - 1], &l->at[i]) == 0;

		if (same) {
			buf_putc(out, ',');
		} else {
			if (i > 0)
				buf_putc(out, '\n');
			sigv4_put_name(out, &l->at[i]);
			buf_putc(out, ':');
		}
		sigv4_put_value(out, &l->at[i]);
	}
	buf_putc(out, '\n');
}

static void sigv4_put_names(struct buf *out, const struct lines *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (i > 0 && compare_names(&l->at[i - 1], &l->at[i]) == 0)
			continue;
		if (i > 0)
			buf_putc(out, ';');
		sigv4_put_name(out, &l->at[i]);
	}
}

/* param - "name=value" of a query, encoded. */
struct param {
	const char *text;
	size_t len, name_len;
};

static int compare_bytes(const char *a, size_t n_a, const char *b, size_t n_b)
{
	int d = memcmp(a, b, u64_min(n_a, n_b));

	return d ? d : (n_a > n_b) - (n_a < n_b);
}

static int compare_params(const void *x, const void *y)
{
	const struct param *a = x, *b = y;
	int d = compare_bytes(a->text, a->name_len, b->text, b->name_len);

	return d ? d : compare_bytes(a->text, a->len, b->text, b->len);
}

/* sigv4_put_query - sorted by name, then by value; a name without '=' gets one. */
static int sigv4_put_query(struct buf *out, const char *query, struct err *e)
{
	size_t n = 1, i = 0;
	auto_free struct param *p = NULL;

	if (!query || !*query)
		return 0;
	for (const char *c = query; *c; c++)
		n += *c == '&';
	p = alloc_array(n, sizeof(*p));
	if (!p)
		return err_nomem(e);
	for (const char *c = query; i < n; i++) {
		size_t len = strcspn(c, "&");
		const char *eq = memchr(c, '=', len);

		p[i] = (struct param){c, len, eq ? (size_t)(eq - c) : len};
		c += len + (c[len] != '\0');
	}
	qsort(p, n, sizeof(*p), compare_params);
	for (i = 0; i < n; i++) {
		if (i)
			buf_putc(out, '&');
		buf_put(out, p[i].text, p[i].len);
		if (p[i].name_len == p[i].len)
			buf_putc(out, '=');
	}
	return 0;
}

static int format_date(int64_t now, char ret[17], struct err *e)
{
	time_t t = (time_t)now;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || strftime(ret, 17, "%Y%m%dT%H%M%SZ", &tm) != 16)
		return err_set(e, -EINVAL,
			       "cannot sign a request: %" PRId64 " is not a valid time", now);
	return 0;
}

static int sigv4_canonical(const struct s3_signing *in, const struct lines *l, struct buf *out,
			   struct err *e)
{
	int rc;

	buf_puts(out, in->method);
	buf_putc(out, '\n');
	buf_puts(out, *in->path ? in->path : "/");
	buf_putc(out, '\n');
	rc = sigv4_put_query(out, in->query, e);
	if (rc < 0)
		return rc;
	buf_putc(out, '\n');
	put_headers(out, l);
	buf_putc(out, '\n');
	sigv4_put_names(out, l);
	buf_putc(out, '\n');
	buf_puts(out, in->payload);
	return buf_ok(out) ? 0 : err_nomem(e);
}

int s3_canonical(const struct s3_signing *in, struct buf *out, struct err *e)
{
	struct lines l = {.n = 0};
	char date[17];
	int rc = format_date(in->now, date, e);

	rc = rc ? rc : sigv4_collect(in, date, &l, e);
	return rc == 0 ? sigv4_canonical(in, &l, out, e) : rc;
}

static void sigv4_put_hex(char *out, const uint8_t *in, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[in[i] >> 4];
		out[2 * i + 1] = digits[in[i] & 15];
	}
	out[2 * n] = '\0';
}

static int crypto_failed(struct err *e)
{
	return err_set(e, -EIO, "libcrypto cannot compute a digest");
}

int s3_sha256(const void *data, size_t n, char ret[S3_HEX_SHA256], struct err *e)
{
	return s3_digest(n ? data : "", -1, 0, n, ret, NULL, e);
}

/* sigv4_feed - update both digests with all bytes (md5 may be NULL). */
static int sigv4_feed(EVP_MD_CTX *sha, EVP_MD_CTX *md5, const void *data, int fd, uint64_t off,
		      uint64_t len, struct err *e)
{
	auto_free uint8_t *room = data ? NULL : malloc(DIGEST_PIECE);
	const uint8_t *p = data;
	int rc;

	if (!data && !room)
		return err_nomem(e);
	for (uint64_t done = 0; done < len;) {
		size_t n = (size_t)u64_min(len - done, DIGEST_PIECE);

		if (!data) {
			rc = io_pread(fd, room, n, off + done, e);
			if (rc < 0)
				return rc;
		}
		if (EVP_DigestUpdate(sha, data ? p + done : room, n) != 1 ||
		    (md5 && EVP_DigestUpdate(md5, data ? p + done : room, n) != 1))
			return crypto_failed(e);
		done += n;
	}
	return 0;
}

int s3_digest(const void *data, int fd, uint64_t off, uint64_t len, char ret[S3_HEX_SHA256],
	      char *ret_md5, struct err *e)
{
	EVP_MD_CTX *sha = EVP_MD_CTX_new();
	EVP_MD_CTX *md5 = ret_md5 ? EVP_MD_CTX_new() : NULL;
	uint8_t md[EVP_MAX_MD_SIZE];
	int rc = 0;

	if (md5 && EVP_DigestInit_ex(md5, EVP_md5(), NULL) != 1) {
		EVP_MD_CTX_free(md5); /* a policy may forbid it */
		md5 = NULL;
	}
	if (!sha || EVP_DigestInit_ex(sha, EVP_sha256(), NULL) != 1)
		rc = crypto_failed(e);
	rc = rc ? rc : sigv4_feed(sha, md5, data, fd, off, len, e);
	if (rc == 0 && EVP_DigestFinal_ex(sha, md, NULL) != 1)
		rc = crypto_failed(e);
	if (rc == 0)
		sigv4_put_hex(ret, md, 32);
	if (ret_md5)
		ret_md5[0] = '\0';
	if (rc == 0 && md5 && EVP_DigestFinal_ex(md5, md, NULL) == 1)
		sigv4_put_hex(ret_md5, md, 16);
	EVP_MD_CTX_free(sha);
	EVP_MD_CTX_free(md5);
	return rc;
}

static bool hmac(const void *key, size_t n, const char *text, uint8_t ret[32])
{
	unsigned len = 32;

	return HMAC(EVP_sha256(), key, (int)n, (const unsigned char *)text, strlen(text), ret,
		    &len) != NULL;
}

/* day_key - the key that signs for one day, region and service. */
static int day_key(const struct s3_signing *in, const char *day, uint8_t ret[32], struct err *e)
{
	enum { SECRET_MAX = 4096 };
	const size_t n = strlen(in->secret_key);
	char first[4 + SECRET_MAX];
	bool ok;

	if (n > SECRET_MAX)
		return err_set(e, -EINVAL, "the secret key has more than 4096 bytes");
	memcpy(first, "AWS4", 4);
	memcpy(first + 4, in->secret_key, n);
	ok = hmac(first, n + 4, day, ret) && hmac(ret, 32, in->region, ret) &&
	     hmac(ret, 32, in->service, ret) && hmac(ret, 32, "aws4_request", ret);
	explicit_bzero(first, n + 4);
	return ok ? 0 : crypto_failed(e);
}

/* signature - of the canonical request, as hexadecimal. */
static int signature(const struct s3_signing *in, const struct buf *request, const char *date,
		     const char *scope, char ret[S3_HEX_SHA256], struct err *e)
{
	char digest[S3_HEX_SHA256], day[9];
	auto_buf text = buf_of(4096);
	uint8_t key[32];
	int rc = s3_sha256(request->data, request->len, digest, e);

	if (rc < 0)
		return rc;
	(void)snprintf(day, sizeof(day), "%.8s", date);
	buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%s\n%s%c", date, scope, digest, '\0');
	rc = buf_ok(&text) ? day_key(in, day, key, e) : err_nomem(e);
	if (rc == 0 && !hmac(key, sizeof(key), (const char *)text.data, key))
		rc = crypto_failed(e);
	if (rc == 0)
		sigv4_put_hex(ret, key, sizeof(key));
	explicit_bzero(key, sizeof(key));
	return rc;
}

static int put_signature(const struct s3_signing *in, const struct lines *l, const char *date,
			 struct buf *out, struct err *e)
{
	char scope[256], hex[S3_HEX_SHA256];
	struct buf request = buf_of(CANONICAL_MAX);
	int rc;

	if (snprintf(scope, sizeof(scope), "%.8s/%s/%s/aws4_request", date, in->region,
		     in->service) >= (int)sizeof(scope))
		return err_set(e, -EINVAL, "the name of the region is too long: %zu bytes",
			       strlen(in->region));
	rc = sigv4_canonical(in, l, &request, e);
	rc = rc ? rc : signature(in, &request, date, scope, hex, e);
	buf_wipe(&request);
	if (rc < 0)
		return rc;
	buf_printf(out, "Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=",
		   in->access_key, scope);
	sigv4_put_names(out, l);
	buf_printf(out, ", Signature=%s%c", hex, '\0');
	return 0;
}

int s3_sign(const struct s3_signing *in, struct buf *out, struct err *e)
{
	struct lines l = {.n = 0};
	char date[17];
	int rc = format_date(in->now, date, e);

	rc = rc ? rc : sigv4_collect(in, date, &l, e);
	if (rc < 0)
		return rc;
	buf_printf(out, "x-amz-date: %s%c", date, '\0');
	if (in->say_payload)
		buf_printf(out, "x-amz-content-sha256: %s%c", in->payload, '\0');
	rc = put_signature(in, &l, date, out, e);
	if (rc == 0 && in->token)
		buf_printf(out, "x-amz-security-token: %s%c", in->token, '\0');
	return rc < 0 || buf_ok(out) ? rc : err_nomem(e);
}

int s3_sign_request(const struct s3_signing *in, struct http_transfer *r, struct err *e)
{
	struct buf lines = buf_of(S3_SIGNED_MAX);
	int rc = s3_sign(in, &lines, e);

	for (const char *line = NULL; rc == 0 && (line = buf_next(&lines, line));)
		rc = http_header(r, line, e);
	buf_wipe(&lines);
	return rc;
}

void s3_query_put(struct buf *query, const char *name, const char *value)
{
	if (query->len)
		buf_putc(query, '&');
	url_encode(query, name, strlen(name), false);
	buf_putc(query, '=');
	url_encode(query, value, strlen(value), false);
}
