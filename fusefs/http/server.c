/* SPDX-License-Identifier: BSD-3-Clause */
/* server.c - life cycle of the server: open the source, listen, answer until a signal.
 *
 * One process, and the children that opening a source needs, which are forked before there is a
 * socket. Signals are blocked in all threads, and the first thread waits for them. */
#include "fusefs/http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/core/str.h"
#include "base/observe/log.h"
#include "base/process/sandbox.h"
#include "base/observe/print.h"
#include "fusefs/app/remote.h"
#include "fusefs/http/http_int.h"

enum {
	PORT = 8080,
	PORTS = 100,          /* number of ports to try, unless the user chose one */
	THREADS_MIN = 8,      /* most of the time they wait for a disk or a network */
	THREADS_MAX = 32,
	CONNECTIONS = 512,
	CONNECTION_MEMORY = 64 << 10, /* bytes for a request's headers and for pieces */
	IDLE_SECONDS = 60,
	ARENAS = 4, /* of the allocator: as in daemon/server.c */
};

/* http_server_forget_names - clients have no cached names: their next request sees another tag. */
static void http_server_forget_names(void *arg NZ_UNUSED, const struct buf *names NZ_UNUSED)
{
}

/* The socket. */

/* http_server_place - the address to listen at. */
struct http_server_place {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} at;
	socklen_t len;
};

/* parse_place - cfg_parse() has checked the address. */
static void parse_place(const char *text, struct http_server_place *ret)
{
	if (strcmp(text, "localhost") == 0)
		text = "127.0.0.1";
	*ret = (struct http_server_place){.at.v4 = {.sin_family = AF_INET},
					  .len = sizeof(ret->at.v4)};
	if (inet_pton(AF_INET, text, &ret->at.v4.sin_addr) == 1)
		return;
	*ret = (struct http_server_place){.at.v6 = {.sin6_family = AF_INET6},
					  .len = sizeof(ret->at.v6)};
	(void)inet_pton(AF_INET6, text, &ret->at.v6.sin6_addr);
}

/* The port is at the same place in both. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	       "start_listening sets either");

/* listen_at - open a listening socket; a negative errno. */
static int listen_at(const struct http_server_place *p)
{
	auto_fd int fd =
		socket(p->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, ret;

	if (fd < 0)
		return -errno;
	/* without it, bind fails for some time after the last run */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &p->at.any, p->len) < 0 || listen(fd, 128) < 0)
		return -errno;
	ret = fd;
	fd = -1;
	return ret;
}

/* note_place - store the listening address, with the port that was assigned. */
static int note_place(struct serve *s, struct http_server_place *p, struct err *e)
{
	const bool v6 = p->at.any.sa_family == AF_INET6;

	if (getsockname(s->fd, &p->at.any, &p->len) < 0)
		return err_sys(e, errno, "socket");
	s->port = ntohs(p->at.v4.sin_port);
	s->loopback = v6 ? IN6_IS_ADDR_LOOPBACK(&p->at.v6.sin6_addr)
			 : ntohl(p->at.v4.sin_addr.s_addr) >> 24 == 127;
	if (!inet_ntop(p->at.any.sa_family,
		       v6 ? (const void *)&p->at.v6.sin6_addr : &p->at.v4.sin_addr, s->address,
		       sizeof(s->address)))
		return err_sys(e, errno, "socket");
	return 0;
}

static int start_listening(struct serve *s, struct err *e)
{
	const struct cfg *cfg = s->setup->cfg;
	const char *text = cfg->serve.port, *more = text ? "" : " and the ports after it";
	const char *host = cfg->serve.bind ? cfg->serve.bind : "127.0.0.1";
	uint64_t port = PORT;
	struct http_server_place p;

	parse_place(host, &p);
	if (text && str_u64(text, strlen(text), UINT16_MAX, &port) < 0)
		return err_set(e, -EINVAL, "-p '%s': not a port", text);
	for (int i = 0; i < (text ? 1 : PORTS); i++) {
		p.at.v4.sin_port = htons((uint16_t)(port + (uint64_t)i));
		s->fd = listen_at(&p);
		if (s->fd != -EADDRINUSE)
			break;
	}
	if (s->fd == -EADDRINUSE)
		return err_set(e, s->fd,
			       "'%s' port %" PRIu64 "%s: in use: choose another port with -p "
						    "PORT, or use -p 0 for a free port",
			       host, port, more);
	if (s->fd < 0)
		return err_sys(e, -s->fd, "'%s' port %" PRIu64 "%s",
			       host, port, more);
	return note_place(s, &p, e);
}

/* Requests. */

/* as_it_is - leave paths as they are: they are decoded component by component. */
static size_t as_it_is(void *arg NZ_UNUSED, struct MHD_Connection *conn NZ_UNUSED, char *text)
{
	return strlen(text);
}

static NZ_PRINTF(2, 0) void log_http(void *arg NZ_UNUSED, const char *fmt, va_list ap)
{
	char text[512];

	if (!log_enabled(LOG_DEBUG) || vsnprintf(text, sizeof(text), fmt, ap) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	log_debug("HTTP: %s", text); /* mostly errors of clients */
}

static unsigned int n_threads(void)
{
	long n = 4 * sysconf(_SC_NPROCESSORS_ONLN);

	return n < THREADS_MIN ? THREADS_MIN : n > THREADS_MAX ? THREADS_MAX : (unsigned int)n;
}

static int start_daemon(struct serve *s, struct err *e)
{
	s->daemon = MHD_start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL, serve_request, s,
		MHD_OPTION_EXTERNAL_LOGGER, log_http, NULL, MHD_OPTION_LISTEN_SOCKET, s->fd,
		MHD_OPTION_THREAD_POOL_SIZE, n_threads(), MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)IDLE_SECONDS, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_UNESCAPE_CALLBACK, as_it_is, NULL, MHD_OPTION_END);
	if (!s->daemon)
		return err_set(e, -EIO, "the HTTP server could not be started");
	return 0;
}

/* The command. */

static int http_server_prepare(struct serve *s, struct err *e)
{
	sigset_t set;
	int rc;

	(void)mallopt(M_ARENA_MAX, ARENAS); /* on failure there are more arenas */
	if (getrandom(&s->stamp, sizeof(s->stamp), 0) != sizeof(s->stamp))
		return err_sys(e, errno, "random number");
	rc = fs_open_served(&s->fs, s->setup, e);
	if (rc < 0)
		return rc;
	fs_print_notes(epochs_first(s->fs.live));
	fs_end_signals(&set);
	rc = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (rc)
		return err_sys(e, rc, "block signals");
	(void)signal(SIGPIPE, SIG_IGN); /* a valid signal: cannot fail */
	rc = start_listening(s, e);
	rc = rc ? rc : start_daemon(s, e);
	if (rc == 0 && !s->fs.follows)
		rc = epochs_watch(s->fs.live, http_server_forget_names, s, e);
	return rc;
}

/* say_where - print the address for the user. Returns the exit status. */
static int say_where(const struct serve *s)
{
	const bool v6 = strchr(s->address, ':');
	const bool all = strcmp(s->address, "0.0.0.0") == 0 || strcmp(s->address, "::") == 0;
	const char *host = all ? "localhost" : s->address;
	struct buf text = buf_of(1 << 16);

	if (!s->loopback)
		log_warn("every user who can reach '%s' port %u can read '%s'", s->address,
			 s->port, s->setup->cfg->shown);
	/* programs search for "Zarr URL: " */
	for (int i = 0; i < 2; i++)
		buf_printf(&text, "%s http://%s%s%s:%u/%s\n", i ? "Zarr URL:" : "Browser: ",
			   v6 && !all ? "[" : "", host, v6 && !all ? "]" : "", s->port,
			   i ? "data/" : "");
	buf_puts(&text, "Press Ctrl-C to stop.\n");
	return print_text(&text);
}

static void http_server_tear_down(struct serve *s)
{
	fs_remote_stop();
	if (s->fs.live)
		epochs_stop(s->fs.live);
	if (s->daemon)
		MHD_stop_daemon(s->daemon); /* also closes the socket */
	else if (s->fd >= 0)
		(void)close(s->fd);
	epochs_free(s->fs.live);
	fs_remote_end();
	log_flush(true);
	fs_release(&s->fs);
}

static void http_server_await_signal(void)
{
	const struct timespec tick = {.tv_sec = 1};
	sigset_t set;

	fs_end_signals(&set);
	while (sigtimedwait(&set, NULL, &tick) < 0)
		log_flush(false);
}

int fs_serve_http(const struct app *setup)
{
	struct serve s = {.setup = setup, .fd = -1};
	struct err e = ERR_INIT;
	int status;

	if (setup->cfg->serve.origin && strcmp(setup->cfg->serve.origin, "none") != 0)
		s.origin = setup->cfg->serve.origin;
	if (fs_init(&s.fs, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	log_limited();
	if (http_server_prepare(&s, &e) < 0) {
		log_error("%s", e.msg);
		http_server_tear_down(&s);
		return 1;
	}
	if (sandbox_missing())
		log_info("%s", sandbox_missing());
	status = say_where(&s);
	if (status == 0)
		http_server_await_signal();
	http_server_tear_down(&s);
	return status;
}
