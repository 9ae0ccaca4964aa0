/* SPDX-License-Identifier: BSD-3-Clause */
/* http_server.h - a web server for unit tests: a thread for each connection, and a function that
 * answers as it likes, down to the bytes. */
#ifndef TESTS_UNIT_NCZARR_HTTP_SERVER_H
#define TESTS_UNIT_NCZARR_HTTP_SERVER_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/util.h"

struct ns_server;

/* ns_call - one request, as it came. */
struct ns_call {
	struct ns_server *s;
	int fd;
	unsigned int number; /* of this server, from 0 */
	char method[16], path[512];
	char head[8192]; /* all lines */
	char *body;
	size_t body_len;
};

/* ns_answer - false: the connection is closed after it. */
typedef bool ns_answer(void *arg, struct ns_call *c);

enum { NS_CONNECTIONS = 256 };

struct ns_server {
	int fd;
	uint16_t port;
	char url[64];
	ns_answer *answer;
	void *arg;
	pthread_t thread;
	_Atomic unsigned int requests, connections;
	_Atomic bool ending;
	bool late; /* "100 Continue" comes when half of the body has come */
	int stop[2];
	pthread_t threads[NS_CONNECTIONS];
	unsigned int n_threads;
};

struct ns_connection {
	struct ns_server *s;
	int fd;
};

static inline bool ns_write(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t k = send(fd, p, n, MSG_NOSIGNAL);

		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

static inline bool ns_puts(int fd, const char *text)
{
	return ns_write(fd, text, strlen(text));
}

/* ns_hang - until the client goes away or the server ends. */
static inline void ns_hang(struct ns_call *c)
{
	struct pollfd p[2] = {{.fd = c->fd, .events = POLLIN},
			      {.fd = c->s->stop[0], .events = POLLIN}};

	(void)poll(p, 2, 60000);
}

/* ns_wait - so long, unless the server ends. */
static inline bool ns_wait(struct ns_call *c, int ms)
{
	struct pollfd p = {.fd = c->s->stop[0], .events = POLLIN};

	return poll(&p, 1, ms) == 0;
}

/* ns_reset - the connection breaks. */
static inline void ns_reset(struct ns_call *c)
{
	struct linger l = {.l_onoff = 1, .l_linger = 0};

	(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

/* ns_say - a whole answer; more: header lines, each with its end. */
static inline bool ns_say(struct ns_call *c, const char *status, const char *more,
			  const void *body, size_t n)
{
	char head[4096];
	int k = snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n",
			 status, n, more);

	return ns_write(c->fd, head, (size_t)k) &&
	       (strcmp(c->method, "HEAD") == 0 || ns_write(c->fd, body, n));
}

/* ns_header - the value of a header line of the request; false: there is none. */
static inline bool ns_header(const struct ns_call *c, const char *name, char *out, size_t cap)
{
	size_t n = strlen(name);

	for (const char *p = strstr(c->head, "\r\n"); p && p[2]; p = strstr(p + 2, "\r\n"))
		if (strncasecmp(p + 2, name, n) == 0 && p[2 + n] == ':') {
			p += 3 + n;
			p += strspn(p, " ");
			(void)snprintf(out, cap, "%.*s", (int)strcspn(p, "\r"), p);
			return true;
		}
	return false;
}

/* ns_take - one request; what came behind it stays in buf. */
static inline bool ns_take(struct ns_call *c, char *buf, size_t *have)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	char *end, text[32];
	size_t head, want = 0;
	bool expected;

	for (;;) {
		ssize_t k;

		buf[*have] = '\0';
		end = strstr(buf, "\r\n\r\n");
		if (end || *have + 1 >= sizeof(c->head))
			break;
		k = recv(c->fd, buf + *have, sizeof(c->head) - 1 - *have, 0);
		if (k <= 0)
			return false;
		*have += (size_t)k;
	}
	if (!end)
		return false;
	head = (size_t)(end + 4 - buf);
	memcpy(c->head, buf, head);
	c->head[head] = '\0';
	(void)snprintf(c->method, sizeof(c->method), "%.*s", (int)strcspn(c->head, " "),
		       c->head);
	end = c->head + strlen(c->method) + 1;
	(void)snprintf(c->path, sizeof(c->path), "%.*s", (int)strcspn(end, " "), end);
	if (ns_header(c, "Content-Length", text, sizeof(text)))
		for (const char *p = text; *p >= '0' && *p <= '9'; p++)
			want = want * 10 + (size_t)(*p - '0');
	expected = ns_header(c, "Expect", text, sizeof(text));
	if (expected && !c->s->late)
		(void)ns_puts(c->fd, go_on);
	c->body = alloc_array(want + 1, 1);
	c->body_len = 0;
	*have -= head;
	memmove(buf, buf + head, *have);
	while (c->body_len < want) {
		size_t k = *have < want - c->body_len ? *have : want - c->body_len;
		ssize_t got;

		memcpy(c->body + c->body_len, buf, k);
		c->body_len += k;
		*have -= k;
		memmove(buf, buf + k, *have);
		if (c->body_len == want)
			break;
		got = recv(c->fd, c->body + c->body_len, want - c->body_len, 0);
		if (got <= 0)
			return false;
		c->body_len += (size_t)got;
		if (expected && c->s->late && c->body_len > want / 2) {
			expected = false;
			(void)ns_puts(c->fd, go_on);
		}
	}
	return true;
}

static inline void *ns_serve(void *arg)
{
	struct ns_connection *k = arg;
	struct ns_call *c = calloc(1, sizeof(*c));
	char *buf = malloc(sizeof(c->head));
	size_t have = 0;
	bool more = true;

	c->s = k->s;
	c->fd = k->fd;
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	while (more) {
		if (!have) {
			struct pollfd p[2] = {{.fd = c->fd, .events = POLLIN},
					      {.fd = c->s->stop[0], .events = POLLIN}};

			(void)poll(p, 2, -1);
			if (p[1].revents)
				break;
		}
		more = ns_take(c, buf, &have);
		if (more) {
			c->number = atomic_fetch_add(&k->s->requests, 1);
			more = k->s->answer(k->s->arg, c);
		}
		free(c->body);
		c->body = NULL;
	}
	(void)close(c->fd);
	free(buf);
	free(c);
	free(k);
	return NULL;
}

static inline void *ns_accept(void *arg)
{
	struct ns_server *s = arg;
	struct pollfd p[2] = {{.fd = s->fd, .events = POLLIN},
			      {.fd = s->stop[0], .events = POLLIN}};

	while (poll(p, 2, -1) > 0 && !p[1].revents) {
		struct ns_connection *k = calloc(1, sizeof(*k));

		k->s = s;
		k->fd = accept(s->fd, NULL, NULL);
		if (k->fd < 0 || s->n_threads == NS_CONNECTIONS) {
			if (k->fd >= 0)
				(void)close(k->fd);
			free(k);
			continue;
		}
		atomic_fetch_add(&s->connections, 1);
		if (pthread_create(&s->threads[s->n_threads++], NULL, ns_serve, k))
			abort();
	}
	return NULL;
}

static inline void ns_begin(struct ns_server *s, ns_answer *answer, void *arg)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(in);

	*s = (struct ns_server){.answer = answer, .arg = arg};
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0 || bind(s->fd, (struct sockaddr *)&in, n) < 0 || listen(s->fd, 128) < 0 ||
	    getsockname(s->fd, (struct sockaddr *)&in, &n) < 0 || pipe(s->stop) < 0)
		abort();
	s->port = ntohs(in.sin_port);
	(void)snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", (unsigned int)s->port);
	if (pthread_create(&s->thread, NULL, ns_accept, s))
		abort();
}

static inline void ns_end(struct ns_server *s)
{
	(void)!write(s->stop[1], "x", 1);
	(void)pthread_join(s->thread, NULL);
	for (unsigned int i = 0; i < s->n_threads; i++)
		(void)pthread_join(s->threads[i], NULL);
	(void)close(s->fd);
	(void)close(s->stop[0]);
	(void)close(s->stop[1]);
}

#endif
