/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of web servers that know more, or less, than they should: every way to ask, of every kind
 * of server, gives the right bytes or an error, and absence only where it was said. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/os/cancel.h"
#include "base/core/str.h"
#include "nczarr/remote/services.h"
#include "tests/unit/nczarr/http_server.h"

enum { SIZE = 1000 };

static uint8_t content[SIZE];

enum kind {
	GOOD,
	EMPTY,
	NO_RANGES,
	NO_HEAD,
	HEAD_DENIED,
	NO_TAILS,
	TAIL_WHOLE,
	WEAK,
	NO_ETAG,
	NO_LENGTH,
	ABSENT,
	DENIED,
	GZIP,
	SHIFTED,
	OTHER_END,
	OTHER_SIZE,
	NO_CONTENT_RANGE,
	SHORT,
	LONG,
	LESS,
	NO_CONDITIONS,
	FALSE_416,
	ALWAYS_206,
	MULTIPART,
	BUSY,
	RESET,
	CHUNKED,
	KINDS,
};

static const char *const names[KINDS] = {
	"good",
	"empty",
	"does not support range requests",
	"no HEAD",
	"HEAD denied",
	"no tails",
	"whole for tail",
	"weak",
	"no ETag",
	"no length",
	"absent",
	"denied",
	"gzip",
	"shifted",
	"other end",
	"other size",
	"no Content-Range",
	"short",
	"long",
	"less",
	"no conditions",
	"false 416",
	"always 206",
	"multipart",
	"busy",
	"reset",
	"chunked",
};

static pthread_mutex_t site_lock = PTHREAD_MUTEX_INITIALIZER; /* of all texts of all sites */

struct site {
	struct ns_server s;
	enum kind kind;
	char etag[32], path[512], auth[100];
	unsigned int heads;
};

/* span - what a Range header asks for: false: nothing that we understand. */
static bool span(const struct ns_call *c, uint64_t size, uint64_t *first, uint64_t *end,
		 bool *tail)
{
	char text[100];
	const char *dash;
	uint64_t a = 0, b = 0;

	if (!ns_header(c, "Range", text, sizeof(text)) || strncmp(text, "bytes=", 6) != 0)
		return false;
	dash = strchr(text, '-');
	*tail = dash == text + 6;
	if (!*tail && str_u64(text + 6, (size_t)(dash - text - 6), UINT64_MAX, &a) < 0)
		return false;
	if (str_u64(dash + 1, strlen(dash + 1), UINT64_MAX, &b) < 0)
		return false;
	if (*tail) {
		*first = b < size ? size - b : 0;
		*end = size;
	} else {
		*first = a;
		*end = b < size ? b + 1 : size;
	}
	return true;
}

static bool say(struct ns_call *c, const char *status, const char *more, uint64_t first,
		uint64_t end)
{
	return ns_say(c, status, more, content + first, (size_t)(end - first));
}

/* say_oddly - what is wrong with the whole answer. Returns false when nothing is. */
static bool say_oddly(struct site *t, struct ns_call *c, const char *status, const char *more,
		      uint64_t first, uint64_t end)
{
	bool head = strcmp(c->method, "HEAD") == 0;
	char text[2000];

	switch (t->kind) {
	case SHORT: /* the connection ends before the body does */
		(void)snprintf(text, sizeof(text),
			       "HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n", status,
			       (int)(end - first), more);
		(void)ns_puts(c->fd, text);
		if (!head)
			(void)ns_write(c->fd, content + first, (size_t)(end - first) / 2);
		return true;
	case NO_LENGTH: /* the end of the connection is that of the body */
		(void)snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%s\r\n", status, more);
		(void)ns_puts(c->fd, text);
		if (!head)
			(void)ns_write(c->fd, content + first, (size_t)(end - first) / 2);
		return true;
	case CHUNKED:
		(void)snprintf(text, sizeof(text),
			       "HTTP/1.1 %s\r\nTransfer-Encoding: chunked\r\n%s\r\n", status,
			       more);
		(void)ns_puts(c->fd, text);
		if (!head && end > first) {
			(void)snprintf(text, sizeof(text), "%x\r\n",
				       (unsigned int)(end - first));
			(void)ns_puts(c->fd, text);
			(void)ns_write(c->fd, content + first, (size_t)(end - first));
			(void)ns_puts(c->fd, "\r\n");
		}
		if (!head)
			(void)ns_puts(c->fd, "0\r\n\r\n");
		return true;
	default:
		return false;
	}
}

static bool give(struct site *t, struct ns_call *c)
{
	uint64_t size = t->kind == EMPTY ? 0 : SIZE, first = 0, end = size, said, shown;
	bool tail = false, part = span(c, size, &first, &end, &tail);
	char more[600], range[100] = "", match[100];

	if (t->kind != NO_CONDITIONS && ns_header(c, "If-Match", match, sizeof(match)) &&
	    strcmp(match, t->etag) != 0)
		return ns_say(c, "412 Changed", "", "", 0);
	if (t->kind != NO_CONDITIONS && ns_header(c, "If-None-Match", match, sizeof(match)) &&
	    strcmp(match, t->etag) == 0)
		return ns_puts(c->fd, "HTTP/1.1 304 Same\r\n\r\n");
	if (t->kind == NO_RANGES || (t->kind == TAIL_WHOLE && tail) || t->kind == CHUNKED) {
		part = false;
		first = 0;
		end = size;
	}
	if (part && (first >= size || (t->kind == NO_TAILS && tail) || t->kind == FALSE_416)) {
		(void)snprintf(range, sizeof(range), "Content-Range: bytes */%d\r\n",
			       (int)size);
		return ns_say(c, "416 No", range, "", 0);
	}
	said = first + (part && t->kind == SHIFTED);
	shown = t->kind == OTHER_SIZE ? size + 1 : size;
	if (t->kind == LESS && part)
		end -= (end - first) / 2;
	if (t->kind == LONG && part && end < size)
		end++;
	if (part || t->kind == ALWAYS_206)
		(void)snprintf(range, sizeof(range), "Content-Range: bytes %d-%d/%d\r\n",
			       (int)said, (int)(end - (t->kind != OTHER_END)), (int)shown);
	if (t->kind == NO_CONTENT_RANGE)
		range[0] = '\0';
	if (t->kind == MULTIPART && part)
		(void)snprintf(range, sizeof(range),
			       "Content-Type: multipart/byteranges; boundary=x\r\n");
	(void)snprintf(more, sizeof(more), "%s%s%s%s%s%s", range,
		       t->kind == NO_ETAG ? "" : "ETag: ", t->kind == WEAK ? "W/" : "",
		       t->kind == NO_ETAG ? "" : t->etag, t->kind == NO_ETAG ? "" : "\r\n",
		       t->kind == GZIP ? "Content-Encoding: gzip\r\n" : "");
	if (say_oddly(t, c, part ? "206 Part" : "200 OK", more, first, end))
		return t->kind == CHUNKED;
	return say(c, part || t->kind == ALWAYS_206 ? "206 Part" : "200 OK", more, first, end);
}

static bool site(void *arg, struct ns_call *c)
{
	struct site *t = arg;
	bool head = strcmp(c->method, "HEAD") == 0;

	(void)pthread_mutex_lock(&site_lock);
	(void)snprintf(t->path, sizeof(t->path), "%s", c->path);
	t->heads += head;
	if (!ns_header(c, "Authorization", t->auth, sizeof(t->auth)))
		t->auth[0] = '\0';
	(void)pthread_mutex_unlock(&site_lock);
	switch (t->kind) {
	case ABSENT:
		return ns_say(c, "404 No", "", "none", 4);
	case DENIED:
		return ns_say(c, "403 No", "", "none", 4);
	case BUSY:
		return ns_say(c, "503 Busy", "", "none", 4);
	case RESET:
		ns_reset(c);
		return false;
	case NO_HEAD:
	case HEAD_DENIED:
		if (head)
			return ns_say(c, t->kind == NO_HEAD ? "405 No" : "403 No", "", "", 0);
		break;
	default:
		break;
	}
	return give(t, c);
}

static void site_begin(struct site *t, enum kind kind)
{
	memset(t, 0, sizeof(*t));
	t->kind = kind;
	(void)snprintf(t->etag, sizeof(t->etag), "\"one\"");
	ns_begin(&t->s, site, t);
}

static struct http_client *http_quick(void)
{
	const struct http_client_options o = {.connect_ms = 1000,
					      .stall_ms = 500,
					      .total_ms = 3000,
					      .tries = 1,
					      .connections = 4,
					      .requests = 16};
	struct http_client *n = NULL;

	assert_int_equal(http_client_new(&o, &n, NULL), 0);
	return n;
}

static struct object_service *open_at(struct http_client *n, const char *url, const char *query)
{
	static const struct remote_options opts = {0};
	const struct remote_target t = {
		.kind = REMOTE_HTTP, .url = url, .query = query, .shown = "http://there"};
	struct object_service *o = NULL;

	assert_int_equal(http_service_open(n, &opts, &t, &o, NULL), 0);
	return o;
}

static int fetch(struct object_service *o, struct object_range r, struct object_got *got)
{
	struct err e = ERR_INIT;
	int rc;

	r.key = r.key ? r.key : "x";
	rc = object_get(o, &r, got, &e);
	if (rc < 0 && rc != -EALREADY && !e.msg[0])
		fail_msg("rc %d without a word", rc);
	return rc;
}

/* ---- the matrix: each kind of server, each way to ask ---- */

static const struct delivery {
	const char *name;
	struct object_range r;
	uint64_t first, end; /* the right bytes */
} ways[] = {
	{"head", {.what = OBJECT_HEAD}, 0, 0},
	{"all", {.what = OBJECT_ALL, .len = SIZE}, 0, SIZE},
	{"all of less", {.what = OBJECT_ALL, .len = 999}, 0, 0},
	{"beginning", {.what = OBJECT_PART, .off = 0, .len = 100}, 0, 100},
	{"part", {.what = OBJECT_PART, .off = 100, .len = 50}, 100, 150},
	{"over the end", {.what = OBJECT_PART, .off = 900, .len = 500}, 900, SIZE},
	{"behind", {.what = OBJECT_PART, .off = 1000, .len = 5}, SIZE, SIZE},
	{"tail", {.what = OBJECT_TAIL, .len = 30}, 970, SIZE},
	{"tail of all", {.what = OBJECT_TAIL, .len = 5000}, 0, SIZE},
};

/* fine - what must work. */
static bool fine(enum kind k, const struct delivery *w)
{
	switch (k) {
	case GOOD:
	case EMPTY:
	case NO_RANGES:
	case NO_HEAD:
	case HEAD_DENIED:
	case NO_TAILS:
	case TAIL_WHOLE:
	case WEAK:
	case NO_ETAG:
	case NO_CONDITIONS:
		return true;
	case NO_LENGTH:
	case SHORT:
	case OTHER_SIZE:
	case NO_CONTENT_RANGE:
	case SHIFTED:
	case OTHER_END:
	case LESS:
	case LONG:
	case FALSE_416:
	case MULTIPART:
		return w->r.what == OBJECT_HEAD;
	default:
		return false;
	}
}

static void check_bytes(const struct object_got *g, const struct delivery *w, enum kind k)
{
	uint64_t size = k == EMPTY ? 0 : SIZE;
	uint64_t first = u64_min(w->first, size), end = u64_min(w->end, size);

	if (g->info.size != size && g->info.size != UINT64_MAX)
		fail_msg("%s, %s: size %llu", names[k], w->name,
			 (unsigned long long)g->info.size);
	assert_true(g->info.version != 0);
	if (w->r.what == OBJECT_HEAD)
		return;
	if (g->len != end - first)
		fail_msg("%s, %s: %zu bytes", names[k], w->name, g->len);
	if (g->len)
		assert_memory_equal(g->data, content + first, g->len);
	if (g->len && g->off != first)
		fail_msg("%s, %s: at %llu", names[k], w->name, (unsigned long long)g->off);
}

static void check_cell(struct object_service *o, enum kind k, const struct delivery *w)
{
	struct object_got g;
	int rc = fetch(o, w->r, &g);
	bool less = w->r.what == OBJECT_ALL && w->r.len < SIZE && k != EMPTY;

	if ((rc == -ENOENT) != (k == ABSENT))
		fail_msg("%s, %s: %d", names[k], w->name, rc);
	if (k == DENIED)
		assert_int_equal(rc, -EACCES);
	if (less && fine(k, w)) {
		assert_int_equal(rc, -ERANGE);
		assert_int_equal(g.info.size, SIZE);
	} else if (rc < 0 && fine(k, w)) {
		fail_msg("%s, %s: %d %s", names[k], w->name, rc, g.e.msg);
	} else if (rc == 0 && k == GZIP) {
		assert_int_equal(w->r.what, OBJECT_HEAD); /* of those no byte is right */
	} else if (rc == 0 && k != OTHER_SIZE && k != ALWAYS_206) {
		check_bytes(&g, w, k);
	}
	free(g.data);
}

static void test_matrix(void **state)
{
	(void)state;
	for (enum kind k = 0; k < KINDS; k++) {
		struct http_client *n = http_quick();
		struct site t;
		struct object_service *o;

		site_begin(&t, k);
		o = open_at(n, t.s.url, NULL);
		for (size_t i = 0; i < ARRAY_LEN(ways); i++)
			check_cell(o, k, &ways[i]);
		objects_close(o);
		http_client_free(n);
		ns_end(&t.s);
	}
}

/* A range with wrong words is never taken for the bytes that were asked for. */
static void test_wrong_ranges(void **state)
{
	static const enum kind wrong[] = {SHIFTED, OTHER_END, NO_CONTENT_RANGE, SHORT,
					  LESS,    MULTIPART, FALSE_416,        GZIP};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct http_client *n = http_quick();
		struct object_got g;
		struct site t;
		struct object_service *o;
		int rc;

		site_begin(&t, wrong[i]);
		o = open_at(n, t.s.url, NULL);
		rc = fetch(o, (struct object_range){.what = OBJECT_PART, .off = 100, .len = 50},
			   &g);
		if (rc != -EBADMSG && rc != -EIO)
			fail_msg("%s: %d", names[wrong[i]], rc);
		objects_close(o);
		http_client_free(n);
		ns_end(&t.s);
	}
}

/* Versions. */

static void check_version(struct object_service *o, const char *etag, const char *unless,
			  int want)
{
	struct object_range r = {.etag = etag, .unless = unless};
	struct object_got g;

	r.what = OBJECT_PART;
	r.off = 10;
	r.len = 10;
	assert_int_equal(fetch(o, r, &g), want);
	free(g.data);
	r.what = OBJECT_TAIL;
	assert_int_equal(fetch(o, r, &g), want);
	free(g.data);
	r.what = OBJECT_HEAD;
	assert_int_equal(fetch(o, r, &g), want);
	r.what = OBJECT_ALL;
	r.len = SIZE;
	assert_int_equal(fetch(o, r, &g), want);
	free(g.data);
}

static void test_versions(void **state)
{
	static const enum kind kinds[] = {GOOD, NO_CONDITIONS, NO_RANGES, NO_HEAD, NO_TAILS};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct http_client *n = http_quick();
		struct site t;
		struct object_service *o;

		site_begin(&t, kinds[i]);
		o = open_at(n, t.s.url, NULL);
		check_version(o, "\"one\"", NULL, 0);
		check_version(o, "\"two\"", NULL, -ESTALE);
		check_version(o, "W/\"two\"", NULL, -ESTALE);
		check_version(o, NULL, "\"one\"", -EALREADY);
		check_version(o, NULL, "\"two\"", 0);
		objects_close(o);
		http_client_free(n);
		ns_end(&t.s);
	}
}

static void test_version_numbers(void **state)
{
	struct object_info a = {.size = 5, .etag = "\"x\""}, b = {.size = 6, .etag = "\"x\""};
	struct object_info c = {.size = 5, .changed = 7}, d = {.size = 5, .changed = 8};

	(void)state;
	assert_int_equal(object_version(&a), object_version(&b));
	assert_int_not_equal(object_version(&c), object_version(&d));
	assert_int_not_equal(object_version(&a), object_version(&c));
	d.size = 6;
	d.changed = 7;
	assert_int_not_equal(object_version(&c), object_version(&d));
}

/* Addresses. */

static void test_addresses(void **state)
{
	static const struct {
		const char *root, *query, *key, *path;
	} cases[] = {
		{"/a.zarr", NULL, "v/0.0", "/a.zarr/v/0.0"},
		{"/a.zarr/", NULL, "v/0.0", "/a.zarr/v/0.0"},
		{"/a%20b", NULL, "c d+e%f?g#h", "/a%20b/c%20d%2Be%25f%3Fg%23h"},
		{"/a", "k=v&sig=x%2F", "b", "/a/b?k=v&sig=x%2F"},
		{"/a", "k", "", "/a?k"},
		{"/a", NULL, "\xc3\xa9", "/a/%C3%A9"},
		{"", NULL, "x", "/x"},
		{"/a", NULL, "b//c", "/a/b//c"},
	};
	struct site t;
	struct http_client *n = http_quick();

	(void)state;
	site_begin(&t, GOOD);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char url[200];
		struct object_got g;
		struct object_service *o;
		struct object_range r = {.key = cases[i].key, .what = OBJECT_HEAD};

		(void)snprintf(url, sizeof(url), "%s%s", t.s.url, cases[i].root);
		o = open_at(n, url, cases[i].query);
		assert_int_equal(object_get(o, &r, &g, NULL), 0);
		(void)pthread_mutex_lock(&site_lock);
		assert_string_equal(t.path, cases[i].path);
		(void)pthread_mutex_unlock(&site_lock);
		objects_close(o);
	}
	http_client_free(n);
	ns_end(&t.s);
}

static void test_token(void **state)
{
	char path[] = "token.XXXXXX";
	struct remote_options opts = {.bearer_file = path};
	struct remote_target at = {.kind = REMOTE_HTTP, .shown = "there"};
	struct http_client *n = http_quick();
	struct object_service *o = NULL;
	struct object_got g;
	struct site t;
	struct err e = ERR_INIT;
	struct object_range r = {.key = "x", .what = OBJECT_HEAD};
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "to.ken\nmore", 11), 11);
	(void)close(fd);
	site_begin(&t, GOOD);
	at.url = t.s.url;
	assert_int_equal(http_service_open(n, &opts, &at, &o, &e), 0);
	assert_int_equal(object_get(o, &r, &g, &e), 0);
	(void)pthread_mutex_lock(&site_lock);
	assert_string_equal(t.auth, "Bearer to.ken");
	(void)pthread_mutex_unlock(&site_lock);
	(void)unlink(path);
	assert_int_equal(object_get(o, &r, &g, &e), -EACCES);
	assert_non_null(strstr(e.msg, "bearer file"));
	objects_close(o);
	http_client_free(n);
	ns_end(&t.s);
}

/* What nobody waits for any more is dropped when it comes. */
static void test_given_up(void **state)
{
	struct http_client *n = http_quick();
	struct site t;
	struct object_service *o;
	struct object_got g;
	struct cancel stop;

	(void)state;
	site_begin(&t, GOOD);
	o = open_at(n, t.s.url, NULL);
	cancel_begin(&stop);
	cancel_request(&stop);
	assert_int_equal(fetch(o, (struct object_range){.what = OBJECT_ALL, .len = SIZE}, &g),
			 -EINTR);
	cancel_end(&stop);
	http_client_free(n); /* and the answer comes into nothing */
	objects_close(o);
	ns_end(&t.s);
}

static bool after_close(void *arg, struct ns_call *c)
{
	const int *closed = arg;
	char byte;

	assert_int_equal(read(closed[0], &byte, 1), 1);
	return ns_say(c, "206 Part", "", "x", 1);
}

struct late {
	int done[2];
	struct object_got got;
};

static void on_late(void *arg, struct object_got *got)
{
	struct late *l = arg;

	l->got = *got;
	assert_int_equal(write(l->done[1], "", 1), 1);
}

/* A fetch that is under way keeps what it needs of a service that was closed. */
static void test_closed_before_the_answer(void **state)
{
	const struct object_range r = {.key = "x", .what = OBJECT_PART, .len = 10};
	struct http_client *n = http_quick();
	struct ns_server s;
	struct object_service *o;
	struct late l;
	int closed[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(closed) + pipe(l.done), 0);
	ns_begin(&s, after_close, closed);
	o = open_at(n, s.url, NULL);
	assert_int_equal(o->ops->fetch(o, &r, on_late, &l, NULL), 0);
	objects_close(o);
	assert_int_equal(write(closed[1], "", 1), 1);
	assert_int_equal(read(l.done[0], &byte, 1), 1);
	assert_int_equal(l.got.rc, -EBADMSG);
	assert_string_equal(
		l.got.e.msg,
		"'http://there': 'x': the server sends a part (206) without stating its range");
	http_client_free(n);
	ns_end(&s);
	for (int i = 0; i < 2; i++) {
		(void)close(closed[i]);
		(void)close(l.done[i]);
	}
}

/* A file that was replaced by one of the same size has another version when it is opened again. */
static void test_version_of_a_file(void **state)
{
	const struct remote_options opts = {
		.cache_bytes = 1 << 20, .timeout_ms = 3000, .tries = 1, .connections = 4};
	struct remote_target at = {
		.kind = REMOTE_HTTP, .shown = "http://there/x", .what = REMOTE_OBJECT};
	struct remote *r = NULL;
	uint64_t version[2];
	char url[100];
	struct site t;

	(void)state;
	site_begin(&t, GOOD);
	(void)snprintf(url, sizeof(url), "%s/x", t.s.url);
	at.url = url;
	assert_int_equal(remote_new(&opts, &r, NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct source_at found;

		assert_int_equal(remote_at(r, &at, &found, NULL), 0);
		assert_int_equal(found.file->size, SIZE);
		version[i] = found.file->version;
		remote_at_release(&found);
		(void)pthread_mutex_lock(&site_lock);
		(void)snprintf(t.etag, sizeof(t.etag), "\"two\"");
		(void)pthread_mutex_unlock(&site_lock);
	}
	assert_int_not_equal(version[0], 0);
	assert_int_not_equal(version[1], 0);
	assert_int_not_equal(version[0], version[1]);
	remote_free(r);
	ns_end(&t.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_wrong_ranges),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_version_numbers),
		cmocka_unit_test(test_version_of_a_file),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_token),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_closed_before_the_answer),
	};

	for (size_t i = 0; i < SIZE; i++)
		content[i] = (uint8_t)(i * 31 + i / 256);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
