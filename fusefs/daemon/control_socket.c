/* SPDX-License-Identifier: BSD-3-Clause */
/* control_socket.c - serves OpenMetrics text on a unix socket of mode 0600.
 *
 * One thread serves one connection at a time. Each client has a second for its request: a GET of
 * HTTP/1.0 or later gets an HTTP header and the text; any other request, and silence, gets the text
 * alone. The thread shares nothing with the kernel's requests, so that it answers while those
 * hang. */
#include "fusefs/daemon/control_socket.h"
#include "fusefs/daemon/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/core/clock.h"
#include "base/process/child.h"
#include "base/observe/log.h"
#include "fusefs/app/fusefs.h"

enum {
	ASK_MS = 1000,    /* for a request, once its first byte is there */
	SILENCE_MS = 200, /* after it the text is sent without a request */
	TAKE_MS = 5000,   /* for a client to read the answer */
	HEAD_MAX = 8192,  /* bytes of a request */
	TEXT_MAX = 1 << 20,
	BACKLOG = 16,
};

struct status_socket {
	char *path;
	int fd, dir, wake; /* the listening socket; its directory; an eventfd */
	dev_t dev;
	ino_t ino; /* of the socket's name, so that no other file is removed */
	struct status *status;
	pthread_t thread;
	bool running;
};

/* ---- the name ---- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* control_socket_address_of - address by the directory's descriptor, because a socket's path has
 * 107 bytes at most. */
static int control_socket_address_of(const struct status_socket *k, struct sockaddr_un *ret,
				     struct err *e)
{
	int n;

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	n = snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", k->dir,
		     base_of(k->path));
	if (n < 0 || (size_t)n >= sizeof(ret->sun_path))
		return err_set(e, -ENAMETOOLONG,
			       "-o metrics: '%s' is too long for the path of a socket",
			       base_of(k->path));
	return 0;
}

/* remove_stale - remove a socket of ours without a listener. */
static int remove_stale(struct status_socket *k, const struct sockaddr_un *at, struct err *e)
{
	auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (fstatat(k->dir, base_of(k->path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "-o metrics: '%s'", k->path);
	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return err_set(
			e, -EEXIST,
			"-o metrics: '%s' exists and is not a socket of yours: remove it, or use "
			"another path",
			k->path);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 &&
	    errno == ECONNREFUSED) {
		if (unlinkat(k->dir, base_of(k->path), 0) == 0 || errno == ENOENT)
			return 0;
		return err_sys(e, errno, "-o metrics: remove '%s'", k->path);
	}
	return err_set(e, -EADDRINUSE,
		       "-o metrics: '%s' is in use by another process: use another path",
		       k->path);
}

static int bind_it(struct status_socket *k, struct err *e)
{
	struct sockaddr_un at;
	struct stat st;
	int rc = control_socket_address_of(k, &at, e);

	if (rc < 0)
		return rc;
	k->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* the name gets the socket's mode: it never has another mode */
	if (k->fd < 0 || fchmod(k->fd, 0600) < 0)
		return err_sys(e, errno, "-o metrics: socket");
	if (bind(k->fd, (const struct sockaddr *)&at, sizeof(at)) < 0) {
		if (errno != EADDRINUSE)
			return err_sys(e, errno, "-o metrics: '%s'", k->path);
		rc = remove_stale(k, &at, e);
		if (rc < 0)
			return rc;
		if (bind(k->fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
			return err_sys(e, errno, "-o metrics: '%s'", k->path);
	}
	if (fstatat(k->dir, base_of(k->path), &st, AT_SYMLINK_NOFOLLOW) == 0) {
		k->dev = st.st_dev;
		k->ino = st.st_ino;
	}
	if (listen(k->fd, BACKLOG) < 0)
		return err_sys(e, errno, "-o metrics: '%s'", k->path);
	return 0;
}

/* control_socket_open_dir - open the socket's directory; it must not be below the mount, which
 * would hide the socket. */
static int control_socket_open_dir(struct status_socket *k, const char *mountpoint,
				   struct err *e)
{
	auto_free char *dir = strdup(k->path), *real = NULL;
	char *slash = dir ? strrchr(dir, '/') : NULL;

	if (!dir || !slash)
		return err_nomem(e);
	if (!slash[1])
		return err_set(e, -EINVAL, "-o metrics: '%s' is not the path of a file", k->path);
	slash[slash == dir] = '\0';
	real = realpath(dir, NULL);
	if (!real)
		return err_sys(e, errno, "-o metrics: '%s'", dir);
	if (fs_below(real, mountpoint))
		return err_set(e, -EINVAL,
			       "-o metrics: '%s' is below the mountpoint: use another path",
			       k->path);
	k->dir = open(real, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return k->dir < 0 ? err_sys(e, errno, "-o metrics: '%s'", dir) : 0;
}

int status_socket_open(const char *path, const char *mountpoint, struct status_socket **ret,
		       struct err *e)
{
	struct status_socket *k = alloc_array(1, sizeof(*k));
	int rc;

	if (!k)
		return err_nomem(e);
	*k = (struct status_socket){.path = strdup(path), .fd = -1, .dir = -1};
	k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = k->path && k->wake >= 0 ? control_socket_open_dir(k, mountpoint, e) : err_nomem(e);
	rc = rc ? rc : bind_it(k, e);
	if (rc < 0) {
		status_socket_close(k);
		return rc;
	}
	*ret = k;
	return 0;
}

/* ---- requests ---- */

/* control_socket_await - wait until fd is ready, the mount ends, or the time is over. */
static bool control_socket_await(const struct status_socket *k, int fd, short events,
				 int64_t end)
{
	for (;;) {
		struct pollfd p[] = {{.fd = k->wake, .events = POLLIN},
				     {.fd = fd, .events = events}};
		const int64_t left = end - clock_ms();

		if (left <= 0)
			return false;
		if (poll(p, 2, (int)left) < 0 && errno != EINTR)
			return false;
		if (p[0].revents)
			return false;
		if (p[1].revents)
			return true;
	}
}

static bool control_socket_ends(const char *text, size_t n)
{
	return (n >= 4 && memcmp(text + n - 4, "\r\n\r\n", 4) == 0) ||
	       (n >= 2 && memcmp(text + n - 2, "\n\n", 2) == 0);
}

/* control_socket_read_request - read a request. Returns its length; 0: the client sent nothing. */
static size_t control_socket_read_request(const struct status_socket *k, int fd, char *text)
{
	int64_t end = clock_ms() + SILENCE_MS;
	size_t n = 0;

	while (n < HEAD_MAX && !control_socket_ends(text, n) &&
	       control_socket_await(k, fd, POLLIN, end)) {
		const ssize_t got = recv(fd, text + n, HEAD_MAX - n, MSG_DONTWAIT);

		if (got <= 0)
			break;
		if (n == 0)
			end = clock_ms() + ASK_MS;
		n += (size_t)got;
	}
	return n;
}

static void control_socket_tell(const struct status_socket *k, int fd, const uint8_t *data,
				size_t n)
{
	const int64_t end = clock_ms() + TAKE_MS;

	while (n > 0 && control_socket_await(k, fd, POLLOUT, end)) {
		const ssize_t sent = send(fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return;
		if (sent > 0) {
			data += sent;
			n -= (size_t)sent;
		}
	}
}

/* control_socket_put_head - append an HTTP header. asked: the request, n bytes, not empty. Returns
 * true if the text follows. */
static bool control_socket_put_head(const char *asked, size_t n, size_t text_len,
				    struct buf *out)
{
	const bool get = n >= 4 && memcmp(asked, "GET ", 4) == 0;
	const bool head = n >= 5 && memcmp(asked, "HEAD ", 5) == 0;

	if (!get && !head) {
		buf_puts(out, "HTTP/1.0 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n"
			      "Content-Length: 0\r\nConnection: close\r\n\r\n");
		return false;
	}
	buf_printf(
		out,
		"HTTP/1.0 200 OK\r\n"
		"Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
		"Content-Length: %zu\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
		text_len);
	return get;
}

static void control_socket_answer(const struct status_socket *k, int fd)
{
	char asked[HEAD_MAX];
	const size_t n = control_socket_read_request(k, fd, asked);
	auto_buf text = buf_of(TEXT_MAX);
	auto_buf all = buf_of(TEXT_MAX + HEAD_MAX);
	bool body = true;

	status_metrics(k->status, &text);
	if (n > 0)
		body = control_socket_put_head(asked, n, text.len, &all);
	if (body)
		buf_put(&all, text.data, text.len);
	if (buf_ok(&text) && buf_ok(&all))
		control_socket_tell(k, fd, all.data, all.len);
	(void)shutdown(fd, SHUT_RDWR); /* a client that closed the connection gets no answer */
}

static void *control_socket_serve(void *arg)
{
	const struct status_socket *k = arg;

	for (;;) {
		struct pollfd p[] = {{.fd = k->wake, .events = POLLIN},
				     {.fd = k->fd, .events = POLLIN}};
		int fd;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[0].revents)
			return NULL;
		fd = accept4(k->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			(void)poll(p, 1, ASK_MS); /* the process may close a descriptor meanwhile */
		if (fd < 0)
			continue;
		control_socket_answer(k, fd);
		(void)close(fd);
	}
}

int status_socket_serve(struct status_socket *k, struct status *s, struct err *e)
{
	int rc;

	k->status = s;
	rc = pthread_create(&k->thread, NULL, control_socket_serve, k);
	if (rc)
		return err_sys(e, rc, "start a thread");
	k->running = true;
	return 0;
}

void status_socket_close(struct status_socket *k)
{
	const uint64_t one = 1;
	struct stat st;

	if (!k)
		return;
	if (k->running && write(k->wake, &one, sizeof(one)) == (ssize_t)sizeof(one))
		(void)pthread_join(k->thread, NULL);
	if (k->ino && fstatat(k->dir, base_of(k->path), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == k->dev && st.st_ino == k->ino)
		(void)unlinkat(k->dir, base_of(k->path), 0); /* it may not exist any more */
	close_fd(&k->fd);
	close_fd(&k->dir);
	close_fd(&k->wake);
	free(k->path);
	free(k);
}
