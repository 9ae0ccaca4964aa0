/* SPDX-License-Identifier: BSD-3-Clause */
/* Where requests go, and which secrets with them: redirects, addresses, netrc files. */
#include <fcntl.h>

#include "base/os/cancel.h"
#include "tests/unit/nczarr/http/http_ask.h"

/* Redirects. */

struct hop {
	struct ns_server *other;
	const char *to;  /* "%s": the other server */
	char secret[64]; /* what the other one was told */
};

static bool redirect(void *arg, struct ns_call *c)
{
	struct hop *h = arg;
	char line[512], to[256];

	if (strcmp(c->path, "/good") == 0)
		return hello(NULL, c);
	(void)snprintf(to, sizeof(to), "%s%s", strncmp(h->to, "/other", 6) ? "" : h->other->url,
		       strncmp(h->to, "/other", 6) ? h->to : h->to + 6);
	(void)snprintf(line, sizeof(line), "Location: %s\r\n", to);
	return ns_say(c, "302 Found", line, "", 0);
}

static bool told(void *arg, struct ns_call *c)
{
	struct hop *h = arg;

	if (!ns_header(c, "Authorization", h->secret, sizeof(h->secret)))
		(void)snprintf(h->secret, sizeof(h->secret), "nothing");
	return hello(NULL, c);
}

/* SECURITY S33, S34 */
static void test_redirects(void **state)
{
	static const struct {
		const char *to;
		int rc;
		const char *says;
	} cases[] = {
		{"/good", 0, ""},
		{"good", 0, ""},
		{"?", -EIO, "loop"},
		{"/begin", -EIO, "loop"},
		{"file:///etc/passwd", -EACCES, "does not lead to an http:// or"},
		{"ftp://127.0.0.1/x", -EACCES, "does not lead to an http:// or"},
		{"gopher://127.0.0.1/x", -EACCES, "does not lead to an http:// or"},
		{"http://10.1.2.3/x", -EACCES, "private"},
		{"http://169.254.169.254/x", -EACCES, "private"},
		{"http://[fe80::1]/x", -EACCES, "private"},
		{"http://[::ffff:169.254.169.254]/x", -EACCES, "private"},
		{"http://192.168.0.1/x", -EACCES, "private"},
		{"http://[fd00::1]/x", -EACCES, "private"},
		{"http://:bad:/x", -EIO, "no valid address"},
		{"/other/x", 0, ""},
	};
	struct hop h = {0};
	struct ns_server s, other;

	(void)state;
	h.other = &other;
	ns_begin(&s, redirect, &h);
	ns_begin(&other, told, &h);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char url[100];
		struct http_request w = {.url = url, .bearer = "SECRET"};
		struct http_response a;

		(void)snprintf(url, sizeof(url), "%s/begin", s.url);
		h.to = cases[i].to;
		if (get(&quick, &w, &a) != cases[i].rc)
			fail_msg("%s: %d %s", h.to, a.rc, a.e.msg);
		if (a.rc < 0)
			assert_says(&a, cases[i].says);
		else
			assert_body(&a, "hello");
		assert_null(strstr(a.e.msg, "SECRET"));
		http_response_release(&a);
	}
	assert_string_equal(h.secret, "nothing"); /* another port is another origin */
	ns_end(&s);
	ns_end(&other);
}

/* SECURITY S33: where a redirect of a public server may lead */
static void test_private_redirects(void **state)
{
	static const enum address_class kinds[] = {HTTP_PUBLIC, HTTP_PRIVATE, HTTP_LOOPBACK,
						   HTTP_LINK_LOCAL};
	static struct http_client net;
	struct http_transfer r = {
		.net = &net, .hops = 1, .first_known = true, .first_kind = HTTP_PUBLIC};

	(void)state;
	for (int allowed = 0; allowed < 2; allowed++) {
		net.opts = quick;
		net.opts.private_redirects = allowed;
		for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
			assert_int_equal(http_may_ask(&r, kinds[i]),
					 kinds[i] == HTTP_PUBLIC ||
						 (allowed && kinds[i] != HTTP_LINK_LOCAL));
	}
}

/* Each leads to the next, for ever. */
static bool further(void *arg, struct ns_call *c)
{
	char line[100];

	(void)arg;
	(void)snprintf(line, sizeof(line), "Location: /n%u\r\n", c->number);
	return ns_say(c, "307 Go on", line, "", 0);
}

static int sign_nothing(void *arg, struct http_transfer *r, struct err *e)
{
	(void)arg;
	return http_header(r, "X-Signed: yes", e);
}

static void test_redirect_limits(void **state)
{
	struct ns_server s;
	struct http_request w = {.url = s.url};
	struct http_response a;

	(void)state;
	ns_begin(&s, further, NULL);
	assert_int_equal(get(&quick, &w, &a), -EIO);
	assert_says(&a, "too many redirects");
	assert_int_equal(atomic_load(&s.requests), HTTP_HOPS + 1);
	http_response_release(&a);
	w.sign = sign_nothing; /* who signs judges */
	assert_int_equal(get(&quick, &w, &a), 0);
	assert_int_equal(a.status, 307);
	assert_string_equal(a.location, "/n6");
	http_response_release(&a);
	ns_end(&s);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *text;
		enum address_class kind;
	} cases[] = {
		{"127.0.0.1", HTTP_LOOPBACK},
		{"127.255.0.3", HTTP_LOOPBACK},
		{"0.0.0.0", HTTP_LOOPBACK},
		{"::1", HTTP_LOOPBACK},
		{"::", HTTP_LOOPBACK},
		{"::ffff:127.0.0.1", HTTP_LOOPBACK},
		{"64:ff9b::7f00:1", HTTP_LOOPBACK},
		{"2002:7f00:1::", HTTP_LOOPBACK},
		{"10.0.0.1", HTTP_PRIVATE},
		{"172.16.0.1", HTTP_PRIVATE},
		{"172.31.255.255", HTTP_PRIVATE},
		{"172.32.0.0", HTTP_PUBLIC},
		{"192.168.1.1", HTTP_PRIVATE},
		{"100.64.0.1", HTTP_PRIVATE},
		{"fd12::1", HTTP_PRIVATE},
		{"::ffff:10.0.0.1", HTTP_PRIVATE},
		{"169.254.169.254", HTTP_LINK_LOCAL},
		{"fe80::1", HTTP_LINK_LOCAL},
		{"224.0.0.1", HTTP_LINK_LOCAL},
		{"255.255.255.255", HTTP_LINK_LOCAL},
		{"ff02::1", HTTP_LINK_LOCAL},
		{"8.8.8.8", HTTP_PUBLIC},
		{"2606:4700::1111", HTTP_PUBLIC},
		{"11.0.0.1", HTTP_PUBLIC},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (address_class_of_text(cases[i].text) != cases[i].kind)
			fail_msg("%s is not of kind %d", cases[i].text, cases[i].kind);
	assert_true(http_is_here("localhost"));
	assert_true(http_is_here("a.localhost"));
	assert_false(http_is_here("localhost.example"));
}

/* Names that lead to addresses that are not asked. */
static void test_link_local(void **state)
{
	struct http_request w = {.url = "http://169.254.169.254/latest"};
	struct http_response a;

	(void)state;
	assert_int_equal(get(&quick, &w, &a), -EACCES);
	assert_says(&a, "link-local");
}

/* Secrets. */

static void test_secrets(void **state)
{
	struct http_client_options o = quick;
	struct ns_server s;
	struct hop h = {0};
	struct http_request w = {.url = s.url, .user = "Aladdin", .password = "open sesame"};
	struct http_response a;
	char path[] = "netrc.XXXXXX", text[200];
	int fd;

	(void)state;
	ns_begin(&s, told, &h);
	assert_int_equal(get(&o, &w, &a), 0);
	assert_string_equal(h.secret, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
	http_response_release(&a);
	w.bearer = "tok.en";
	assert_int_equal(get(&o, &w, &a), 0);
	assert_string_equal(h.secret, "Bearer tok.en");
	http_response_release(&a);
	w.url = "http://example.com/";
	assert_int_equal(get(&o, &w, &a), -EACCES);
	w.bearer = NULL;
	assert_int_equal(get(&o, &w, &a), -EACCES);
	w.user = w.password = NULL;
	w.url = s.url;
	fd = mkstemp(path);
	(void)snprintf(text, sizeof(text),
		       "machine 127.0.0.1\n login Aladdin password \"open sesame\"");
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
	o.netrc_file = path;
	assert_int_equal(get(&o, &w, &a), 0);
	assert_string_equal(h.secret, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
	http_response_release(&a);
	(void)unlink(path);
	ns_end(&s);
}

static void check_netrc(const char *text, const char *host, bool defaults, const char *want)
{
	char *got = http_netrc_find(text, host, defaults);

	if (!want)
		assert_null(got);
	else
		assert_string_equal(got, want);
	free(got);
}

static void test_netrc(void **state)
{
	static const char text[] = "# all mine\nmachine a.example login u password p\n"
				   "machine b.example\n\tlogin \"x y\"\n\tpassword \"q\\\"r\"\n"
				   "machine c.example macdef init\nmachine d login no\n\n"
				   "machine e login only\n"
				   "default login anonymous password guest\n";

	(void)state;
	check_netrc(text, "a.example", false, "u:p");
	check_netrc(text, "A.Example", false, "u:p");
	check_netrc(text, "b.example", true, "x y:q\"r");
	check_netrc(text, "d", false, NULL);
	check_netrc(text, "e", false, "only:");
	check_netrc(text, "other", false, NULL);
	check_netrc(text, "other", true, "anonymous:guest");
	check_netrc("", "a", true, NULL);
	check_netrc("machine", "a", true, NULL);
	check_netrc("machine a login", "a", true, NULL);
	check_netrc("machine a login \"", "a", true, NULL);
}

/* A proxy that redirects to its own port of another address, which no_proxy excepts. */
static bool to_own_port(void *arg, struct ns_call *c)
{
	char line[100];

	(void)snprintf(line, sizeof(line), "Location: http://localhost:%s/\r\n",
		       strrchr(arg, ':') + 1);
	return ns_say(c, "302 Found", line, "", 0);
}

static void test_proxy_port(void **state)
{
	struct ns_server s;
	struct http_client_options o = quick;
	struct http_request w = {.url = "http://data.invalid/"};
	struct http_response a;

	(void)state;
	ns_begin(&s, to_own_port, s.url);
	(void)setenv("http_proxy", s.url, 1);
	o.tries = 1;
	(void)setenv("no_proxy", "localhost", 1);
	assert_true(get(&o, &w, &a) < 0);
	(void)unsetenv("no_proxy");
	(void)unsetenv("http_proxy");
	assert_says(&a, "leads to this machine or into a private network");
	http_response_release(&a);
	ns_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_redirect_limits),
		cmocka_unit_test(test_private_redirects),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_link_local),
		cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_netrc),
		cmocka_unit_test(test_proxy_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
