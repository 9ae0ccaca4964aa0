/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_sign.c - requests signed with any key, name, query and header.
 *
 * Input: a byte of flags, then texts, each with its length: method, host, path, query, region, two
 * keys, a token, and header lines.
 *
 * Properties: what is signed is one line each, and has neither the secret key nor anything that
 * would end a header; the same input gives the same signature, a longer secret key or another day
 * another one; the order of a query's parts does not matter; what cannot be signed has a message.
 *
 *   make fuzz TIME=60 FUZZ=sign */
#include "nczarr/aws/sigv4.h"
#include "tests/fuzz/fuzz.h"

#define TEXTS 8
#define HEADERS (S3_HEADERS_MAX + 4)

/* authorization - the line with the signature. */
static const char *authorization(const struct buf *lines)
{
	const char *line = buf_next(lines, NULL);

	while (line && strncmp(line, "Authorization: ", 15) != 0)
		line = buf_next(lines, line);
	require(line != NULL);
	return line;
}

static const char *signature_of(const struct buf *lines)
{
	const char *text = authorization(lines);
	size_t n = strlen(text), head = strlen("Signature=");

	require(n >= 64 + head && memcmp(text + n - 64 - head, "Signature=", head) == 0);
	return text + n - 64;
}

static size_t count_lines(const struct buf *lines)
{
	size_t n = 0;

	require(lines->len > 0 && lines->data[lines->len - 1] == '\0');
	for (const char *line = NULL; (line = buf_next(lines, line));)
		n++;
	return n;
}

static void differs(const struct s3_signing *in, const struct buf *was)
{
	auto_buf other = buf_of(S3_SIGNED_MAX);

	require(s3_sign(in, &other, NULL) == 0);
	require(strcmp(signature_of(was), signature_of(&other)) != 0);
}

/* again - the same input, and ones that differ in what must count. */
static void again(const struct s3_signing *in, const struct buf *was)
{
	struct s3_signing x = *in;
	auto_buf same = buf_of(S3_SIGNED_MAX);
	char *longer = NULL;

	require(s3_sign(in, &same, NULL) == 0);
	require(strcmp(authorization(&same), authorization(was)) == 0);
	x.now = in->now + 86400;
	differs(&x, was);
	x = *in;
	require(asprintf(&longer, "%sx", in->secret_key) > 0);
	x.secret_key = longer;
	differs(&x, was);
	free(longer);
}

static void queries(const char *a, const char *b)
{
	struct s3_signing x = {.method = "GET",
			       .host = "h",
			       .path = "/",
			       .payload = S3_UNSIGNED,
			       .region = "r",
			       .service = "s3",
			       .access_key = "a",
			       .secret_key = "s"};
	struct buf one, two, canon_one, canon_two;

	buf_init(&one, 1 << 20);
	buf_init(&two, 1 << 20);
	buf_init(&canon_one, 1 << 20);
	buf_init(&canon_two, 1 << 20);
	s3_query_put(&one, a, "1");
	s3_query_put(&one, b, "2");
	s3_query_put(&two, b, "2");
	s3_query_put(&two, a, "1");
	buf_putc(&one, '\0');
	buf_putc(&two, '\0');
	require(buf_ok(&one) && buf_ok(&two));
	x.query = (const char *)one.data;
	require(s3_canonical(&x, &canon_one, NULL) == 0);
	x.query = (const char *)two.data;
	require(s3_canonical(&x, &canon_two, NULL) == 0);
	require(canon_one.len == canon_two.len &&
		memcmp(canon_one.data, canon_two.data, canon_one.len) == 0);
	buf_release(&one);
	buf_release(&two);
	buf_release(&canon_one);
	buf_release(&canon_two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	uint8_t flags = rd_u8(&s);
	int64_t now = rd_le32(&s);
	char *t[TEXTS], *h[HEADERS + 1] = {NULL};
	const char *headers[HEADERS + 1] = {NULL};
	struct err e = ERR_INIT;
	auto_buf out = buf_of(S3_SIGNED_MAX);
	struct s3_signing in;
	int rc;

	for (size_t i = 0; i < TEXTS; i++)
		t[i] = piece_text(&s);
	for (size_t i = 0; i < HEADERS && more_of(&s); i++)
		headers[i] = h[i] = piece_text(&s);
	in = (struct s3_signing){.method = t[0],
				 .host = t[1],
				 .path = t[2],
				 .query = flags & 1 ? t[3] : NULL,
				 .headers = flags & 2 ? headers : NULL,
				 .payload = S3_UNSIGNED,
				 .say_payload = flags & 4,
				 .region = t[4],
				 .service = "s3",
				 .access_key = t[5],
				 .secret_key = t[6],
				 .token = flags & 8 ? t[7] : NULL,
				 .now = now};
	rc = s3_sign(&in, &out, &e);
	if (rc < 0) {
		require(rc == -EINVAL || rc == -ENOMEM || rc == -EIO);
		failed_well(rc, &e);
	} else {
		require(count_lines(&out) == 2u + in.say_payload + (in.token != NULL));
		again(&in, &out);
	}
	queries(t[3], t[7]);
	for (size_t i = 0; i < TEXTS; i++)
		free(t[i]);
	for (size_t i = 0; i < HEADERS; i++)
		free(h[i]);
	return 0;
}
