/* SPDX-License-Identifier: BSD-3-Clause */
/* What S3 answers, from a server that says what a test wants: failures in words, of which only a
 * key's own absence is absence, listings that go on, go in circles, or are none, and keys that
 * end while others are in the file. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "nczarr/remote/services.h"
#include "tests/unit/nczarr/http_server.h"

/* page - what a request is answered. */
struct page {
	const char *status, *more, *body;
};

struct service {
	struct ns_server s;
	const struct page *pages; /* one after the other, the last for ever */
	size_t n;
	char path[512]; /* of the last request */
	bool counting;  /* tokens go on for ever */
	struct http_client *net;
	struct object_service *o;
	struct remote_options opts; /* of o */
};

#define HEAD "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\">"
#define MORE "<IsTruncated>true</IsTruncated>"
#define TAIL "</ListBucketResult>"
#define ROW(key) "<Contents><Key>" key "</Key><Size>7</Size></Contents>"
#define DIR(key) "<CommonPrefixes><Prefix>" key "</Prefix></CommonPrefixes>"
#define NEXT(token) MORE "<NextContinuationToken>" token "</NextContinuationToken>" TAIL
#define REASON(code) "<?xml version=\"1.0\"?><Error><Code>" code "</Code></Error>"

static bool answer(void *arg, struct ns_call *c)
{
	struct service *v = arg;
	const struct page *p = &v->pages[c->number < v->n ? c->number : v->n - 1];
	char text[256];

	(void)snprintf(v->path, sizeof(v->path), "%s", c->path);
	if (!v->counting)
		return ns_say(c, p->status, p->more, p->body, strlen(p->body));
	(void)snprintf(text, sizeof(text),
		       HEAD MORE "<NextContinuationToken>%u</NextContinuationToken>" TAIL,
		       c->number);
	return ns_say(c, "200 OK", "", text, strlen(text));
}

static char region[] = "here-1";

static void service_open(struct service *v, ns_answer *say, void *arg)
{
	const struct http_client_options quick = {.connect_ms = 1000,
						  .stall_ms = 5000,
						  .total_ms = 20000,
						  .tries = 1,
						  .connections = 4,
						  .requests = 16};
	struct remote_target t = {
		.kind = REMOTE_S3, .bucket = "b", .key = "root", .shown = "s3://b/root"};

	ns_begin(&v->s, say, arg);
	t.url = v->s.url;
	assert_int_equal(http_client_new(&quick, &v->net, NULL), 0);
	assert_int_equal(s3_service_open(v->net, &v->opts, &t, &v->o, NULL), 0);
}

static void begin(struct service *v, const struct page *pages, size_t n, bool keys)
{
	static char access[] = "AK", secret[] = "SK";

	memset(v, 0, sizeof(*v));
	v->pages = pages;
	v->n = n;
	v->opts = (struct remote_options){.access_key = keys ? access : NULL,
					  .secret_key = keys ? secret : NULL,
					  .region = region,
					  .anonymous = !keys,
					  .tries = 1};
	service_open(v, answer, v);
}

static void end(struct service *v)
{
	objects_close(v->o);
	http_client_free(v->net);
	ns_end(&v->s);
}

/* ---- failures ---- */

static void fails(const char *status, const char *more, const char *body, bool keys, int code,
		  const char *words)
{
	const struct page page = {status, more, body};
	const struct object_range r = {.key = "k", .what = OBJECT_ALL, .len = 100};
	struct object_got got;
	struct err e = ERR_INIT;
	struct service v;
	int rc;

	begin(&v, &page, 1, keys);
	rc = object_get(v.o, &r, &got, &e);
	if (rc != code || !strstr(e.msg, words) || !strstr(e.msg, "'s3://b/root': 'k'") ||
	    strstr(e.msg, "p4ss"))
		fail_msg("%s: %d '%s' instead of %d '%s'", status, rc, e.msg, code, words);
	free(got.data);
	end(&v);
}

static void test_failures(void **state)
{
	(void)state;
	fails("404 No", "", REASON("NoSuchKey"), true, -ENOENT, "not found");
	fails("404 No", "", REASON("NoSuchBucket"), true, -EIO, "bucket 'b' does not exist");
	fails("404 No", "", "", true, -EIO, "(no reason given): is it an S3 service?");
	fails("404 No", "", REASON("Other"), true, -EIO, "answers 404 (Other)");
	fails("403 No", "", REASON("AccessDenied"), false, -EACCES,
	      "access denied (AccessDenied): the request was not signed");
	fails("401 No", "", "", false, -EACCES, "(no reason given)");
	fails("403 No", "", REASON("SignatureDoesNotMatch"), true, -EACCES,
	      "the service rejects the signature");
	fails("403 No", "", REASON("InvalidAccessKeyId"), true, -EACCES,
	      "does not know the access key");
	fails("403 No", "", REASON("RequestTimeTooSkewed"), true, -EACCES,
	      "the clock of this machine is wrong");
	fails("403 No", "", REASON("AccessDenied"), true, -EACCES,
	      "access denied with the keys from");
	fails("412 No", "", REASON("PreconditionFailed"), true, -ESTALE,
	      "was changed in the meantime");
	fails("501 No", "", REASON("NotImplemented"), true, -EOPNOTSUPP,
	      "does not support this request (501 NotImplemented)");
	fails("400 No", "", REASON("ExpiredToken"), true, -EACCES,
	      "have expired (ExpiredToken)");
	fails("500 No", "", REASON("InternalError"), true, -EIO, "500 InternalError: ");
	fails("500 No", "", "", true, -EIO, "500 ");
}

static void test_elsewhere(void **state)
{
	(void)state;
	fails("307 There", "Location: ftp://other/\r\n", "", true, -EIO,
	      "redirected to 'ftp://other/', which is not followed: set it with -o endpoint=");
	fails("307 There", "", "", true, -EIO, "does not state which: set it with -o region=");
	fails("301 There", "", REASON("PermanentRedirect"), true, -EIO,
	      "in another region (301 PermanentRedirect)");
	fails("308 There", "Location: http://u:p4ss@elsewhere.invalid/x?y=z\r\n", "", true,
	      -EIO, "redirected to 'http://");
}

/* A request that cannot be sent says why. */
static void test_not_sent(void **state)
{
	const struct page page = {"200 OK", "", ""};
	struct err e = ERR_INIT;
	struct service v;

	(void)state;
	begin(&v, &page, 1, true);
	http_client_stop(v.net);
	assert_int_equal(v.o->ops->remove(v.o, "k", &e), -ECANCELED);
	assert_string_equal(e.msg, "'s3://b/root': 'k': no more requests are accepted: the "
				   "dataset is being unmounted");
	assert_int_equal(v.s.requests, 0);
	end(&v);
}

/* ---- listings ---- */

struct seen {
	char text[512];
	size_t n, most;
};

static bool note(void *arg, const char *name, bool is_dir, const struct object_info *info)
{
	struct seen *s = arg;
	size_t n = strlen(s->text);

	assert_true(is_dir == !info);
	(void)snprintf(s->text + n, sizeof(s->text) - n, "%s%s ", name, is_dir ? "*" : "");
	return ++s->n != s->most;
}

static int listed(const struct page *pages, size_t n, const char *key, struct seen *seen,
		  struct err *e)
{
	struct service v;
	int rc;

	*e = (struct err)ERR_INIT;
	seen->text[0] = '\0';
	seen->n = 0;
	begin(&v, pages, n, true);
	rc = v.o->ops->list(v.o, key, false, note, seen, e);
	end(&v);
	return rc;
}

static void test_listing(void **state)
{
	const struct page two[] = {{"200 OK", "",
				    HEAD ROW("root/a/") ROW("root/a/x") ROW("other/a/y")
					    ROW("root/a/z/") DIR("root/a/d/") NEXT("t")},
				   {"200 OK", "", HEAD ROW("root/a/w") TAIL}};
	struct seen seen = {.most = 0};
	struct err e;

	(void)state;
	assert_int_equal(listed(two, 2, "a", &seen, &e), 0);
	/* without the folder's marker, markers of others, and what was not asked for */
	assert_string_equal(seen.text, "x d* w ");
	seen.most = 2;
	assert_int_equal(listed(two, 2, "a", &seen, &e), 0);
	assert_string_equal(seen.text, "x d* ");
}

static void bad(const struct page *pages, size_t n, int code, const char *words)
{
	struct seen seen = {.most = 0};
	struct err e;
	int rc = listed(pages, n, "", &seen, &e);

	if (rc != code || !strstr(e.msg, words) || !strstr(e.msg, "'s3://b/root'"))
		fail_msg("%d '%s' instead of %d '%s'", rc, e.msg, code, words);
}

static void test_listing_bad(void **state)
{
	const struct page no_token = {"200 OK", "", HEAD ROW("root/x") MORE TAIL};
	const struct page circle = {"200 OK", "", HEAD ROW("root/x") NEXT("t")};
	const struct page none = {"200 OK", "", "<a>b"};
	const struct page absent = {"404 No", "", REASON("NoSuchKey")};
	const struct page denied = {"403 No", "", REASON("AccessDenied")};
	char key[1100];
	struct seen seen = {.most = 0};
	struct err e;

	(void)state;
	bad(&no_token, 1, -EBADMSG, "a listing does not state how to continue");
	bad(&circle, 1, -EBADMSG, "a listing does not state how to continue");
	bad(&none, 1, -EBADMSG, "'s3://b/root'");
	/* a bucket that cannot be listed is not one with nothing in it */
	bad(&absent, 1, -EIO, "the bucket cannot be listed");
	bad(&denied, 1, -EACCES, "access denied with the keys from");
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	assert_int_equal(listed(&none, 1, key, &seen, &e), -ERANGE);
	assert_non_null(strstr(e.msg, "has 1104 bytes, S3 allows 1024"));
}

/* Pages with nothing on them that always name another one. */
static void test_listing_without_end(void **state)
{
	const struct page none = {"200 OK", "", ""};
	struct seen seen = {.most = 0};
	struct err e = ERR_INIT;
	struct service v;

	(void)state;
	begin(&v, &none, 1, true);
	v.counting = true;
	assert_int_equal(v.o->ops->list(v.o, "", false, note, &seen, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "a listing does not end"));
	assert_int_equal(seen.n, 0);
	assert_int_equal(v.s.requests, 200);
	end(&v);
}

/* ---- keys that end while others are in the file ---- */

static char keys_file[] = "/tmp/s3_answers.XXXXXX";

/* g_file - opens of keys_file, by the thread that asks and by others. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	pthread_t asker;
	unsigned opens, elsewhere;
	bool held; /* the asker's next open waits */
} g_file = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

/* open - takes the place of libc's, for what is opened without being made. */
int open(const char *path, int flags, ...)
{
	if (strcmp(path, keys_file) == 0) {
		bool asker;

		pthread_mutex_lock(&g_file.lock);
		asker = pthread_equal(pthread_self(), g_file.asker);
		g_file.opens += asker;
		g_file.elsewhere += !asker;
		pthread_cond_broadcast(&g_file.cond);
		while (asker && g_file.held)
			pthread_cond_wait(&g_file.cond, &g_file.lock);
		pthread_mutex_unlock(&g_file.lock);
	}
	return openat(AT_FDCWD, path, flags & ~O_CREAT, 0);
}

static void write_keys(const char *token)
{
	FILE *f = fopen(keys_file, "wb");

	assert_non_null(f);
	assert_true(fprintf(f,
			    "[default]\naws_access_key_id=AK\naws_secret_access_key=SK\n"
			    "aws_session_token=%s\n",
			    token) > 0);
	assert_int_equal(fclose(f), 0);
}

/* rotating - a service that takes one token only. */
struct rotating {
	struct service v;
	_Atomic bool changed; /* "new", not "old" */
	struct object_got got;
};

static const struct object_range whole = {.key = "k", .what = OBJECT_ALL, .len = 100};

static bool rotate(void *arg, struct ns_call *c)
{
	struct rotating *r = arg;
	char token[64] = "";

	(void)ns_header(c, "x-amz-security-token", token, sizeof(token));
	if (strcmp(token, r->changed ? "new" : "old") == 0)
		return ns_say(c, "200 OK", "ETag: \"v\"\r\n", "hello", 5);
	return ns_say(c, "400 No", "", REASON("ExpiredToken"), strlen(REASON("ExpiredToken")));
}

/* rotating_begin - the keys that hold are known. */
static void rotating_begin(struct rotating *r)
{
	static const char *const none[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
					   "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"};

	memset(r, 0, sizeof(*r));
	(void)close(mkstemp(keys_file));
	write_keys("old");
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_int_equal(unsetenv(none[i]), 0);
	assert_int_equal(setenv("AWS_SHARED_CREDENTIALS_FILE", keys_file, 1), 0);
	assert_int_equal(setenv("AWS_CONFIG_FILE", "/nonexistent", 1), 0);
	r->v.opts = (struct remote_options){.region = region, .tries = 1};
	service_open(&r->v, rotate, r);
	g_file.asker = pthread_self();
	g_file.opens = g_file.elsewhere = 0;
	assert_int_equal(object_get(r->v.o, &whole, &r->got, NULL), 0);
	free(r->got.data);
	assert_int_equal(g_file.opens, 1);
	g_file.opens = 0;
}

static void rotating_end(struct rotating *r)
{
	assert_int_equal(r->got.rc, 0);
	assert_int_equal(r->got.len, 5);
	assert_memory_equal(r->got.data, "hello", 5);
	assert_int_equal(g_file.elsewhere, 0);
	free(r->got.data);
	end(&r->v);
	assert_int_equal(unlink(keys_file), 0);
	memset(strrchr(keys_file, '.') + 1, 'X', 6);
}

static void *ask(void *arg)
{
	struct rotating *r = arg;
	int rc = object_get(r->v.o, &whole, &r->got, NULL);

	return (void *)(intptr_t)rc;
}

static bool hello(void *arg, struct ns_call *c)
{
	(void)arg;
	return ns_say(c, "200 OK", "", "hello", 5);
}

/* The thread that asked reads the file. While it waits for it, other hosts are asked. */
static void test_keys_of_file(void **state)
{
	struct ns_server other;
	struct http_request w = {
		.method = "GET", .url = other.url, .max_body = 10, .body_fd = -1};
	struct http_response a;
	struct rotating r;
	pthread_t thread;

	(void)state;
	rotating_begin(&r);
	ns_begin(&other, hello, NULL);
	r.changed = true;
	write_keys("new");
	pthread_mutex_lock(&g_file.lock);
	g_file.held = true;
	assert_int_equal(pthread_create(&thread, NULL, ask, &r), 0);
	g_file.asker = thread;
	while (g_file.opens + g_file.elsewhere == 0)
		pthread_cond_wait(&g_file.cond, &g_file.lock);
	pthread_mutex_unlock(&g_file.lock);
	assert_int_equal(http_do(r.v.net, &w, &a, NULL), 0);
	assert_int_equal(a.status, 200);
	http_response_release(&a);
	pthread_mutex_lock(&g_file.lock);
	g_file.held = false;
	pthread_cond_broadcast(&g_file.cond);
	pthread_mutex_unlock(&g_file.lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(g_file.opens, 1);
	assert_int_equal(r.v.s.requests, 3); /* with the old keys twice */
	ns_end(&other);
	rotating_end(&r);
}

static void on_early(void *arg, struct object_got *got)
{
	int *fd = arg;

	assert_int_equal(write(fd[1], &got->rc, sizeof(got->rc)), sizeof(got->rc));
	free(got->data);
}

/* The file has no others: that is an error, not a loop. It is read again for each request, which
 * finds them once they are there. */
static void test_keys_that_stay(void **state)
{
	struct err e = ERR_INIT;
	struct rotating r;

	(void)state;
	rotating_begin(&r);
	r.changed = true;
	assert_int_equal(object_get(r.v.o, &whole, &r.got, &e), -EACCES);
	assert_non_null(strstr(e.msg, "have expired (ExpiredToken)"));
	assert_int_equal(g_file.opens, 1);
	assert_int_equal(r.v.s.requests, 3);
	assert_int_equal(unlink(keys_file), 0);
	assert_int_equal(object_get(r.v.o, &whole, &r.got, NULL), -EACCES);
	assert_int_equal(g_file.opens, 2);
	assert_int_equal(r.v.s.requests, 4);
	write_keys("new");
	assert_int_equal(object_get(r.v.o, &whole, &r.got, NULL), 0);
	assert_int_equal(g_file.opens, 3);
	assert_int_equal(r.v.s.requests, 5);
	rotating_end(&r);
}

/* A prefetch with keys that have ended reads no file. The read after it does. */
static void test_keys_of_prefetch(void **state)
{
	struct object_range early = whole;
	struct rotating r;
	int fd[2], rc = 0;

	(void)state;
	rotating_begin(&r);
	r.changed = true;
	write_keys("new");
	early.background = true;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(r.v.o->ops->fetch(r.v.o, &early, on_early, fd, NULL), 0);
	assert_int_equal(read(fd[0], &rc, sizeof(rc)), sizeof(rc));
	assert_int_equal(rc, -EKEYEXPIRED);
	assert_int_equal(g_file.opens + g_file.elsewhere, 0);
	assert_int_equal(object_get(r.v.o, &whole, &r.got, NULL), 0);
	assert_int_equal(g_file.opens, 1);
	assert_int_equal(r.v.s.requests, 3);
	(void)close(fd[0]);
	(void)close(fd[1]);
	rotating_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_not_sent),
		cmocka_unit_test(test_listing),
		cmocka_unit_test(test_listing_bad),
		cmocka_unit_test(test_listing_without_end),
		cmocka_unit_test(test_keys_of_file),
		cmocka_unit_test(test_keys_that_stay),
		cmocka_unit_test(test_keys_of_prefetch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
