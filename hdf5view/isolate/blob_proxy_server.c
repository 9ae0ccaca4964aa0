/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_proxy_server.c - a thread for each child that reads a remote file.
 *
 * The store below the blob decides what to fetch and when; this file only gives hints. A small
 * file is prefetched whole, a larger one at its beginning and its end, and sequential reads double
 * the readahead window. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "base/core/clock.h"
#include "base/process/child.h"
#include "base/os/cancel.h"
#include "base/os/thread.h"
#include "hdf5view/isolate/blob_proxy.h"

#define WHOLE_BYTES ((uint64_t)4 << 20)  /* a file of at most this size is prefetched whole */
#define HEAD_BYTES ((uint64_t)1 << 20)   /* of larger files: most metadata is here, ... */
#define TAIL_BYTES ((uint64_t)256 << 10) /* ... and later additions */
#define PREFETCH_LEAST ((uint64_t)256 << 10)
#define PREFETCH_MOST ((uint64_t)8 << 20)

struct blob_proxy_server {
	struct blob *blob;
	int sock;
	bool all;
	pthread_t thread;
	pthread_mutex_t lock; /* guards `over` (no cancellation any more) ... */
	bool over;
	struct err failed; /* ... and `failed` */
	struct cancel stop;
	_Atomic int64_t waited; /* ns */
	uint8_t *room;      /* BLOB_PROXY_READ_MAX bytes */
	uint64_t next;      /* end of the last requested range */
	uint64_t ahead;     /* bytes prefetched after it, ... */
	uint64_t prefetch_end; /* ... and their end */
};

int blob_proxy_pair(int ret[2], struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) < 0)
		return err_sys(e, errno, "cannot create a socket pair for a remote file");
	return 0;
}

/* server_take - read n bytes from the child; false if it has ended. */
static bool server_take(int sock, void *out, size_t n)
{
	return child_take(sock, out, n, INT64_MAX) == CHILD_TAKEN;
}

/* server_want - prefetch n ranges, clipped to the file. */
static void server_want(struct blob_proxy_server *f, struct blob_part *p, size_t n)
{
	const uint64_t size = f->blob->size;
	size_t some = 0;

	for (size_t i = 0; i < n; i++)
		if (p[i].off < size && p[i].len > 0)
			p[some++] = (struct blob_part){p[i].off,
						       u64_min(p[i].len, size - p[i].off)};
	if (some)
		blob_want(f->blob, p, some);
}

/* want_first - prefetch the places that usually hold a file's metadata. */
static void want_first(struct blob_proxy_server *f)
{
	const uint64_t size = f->blob->size;
	struct blob_part p[2] = {{0, size}, {0, 0}};

	if (size > WHOLE_BYTES) {
		p[0].len = HEAD_BYTES;
		p[1] = (struct blob_part){size - TAIL_BYTES, TAIL_BYTES};
	}
	f->prefetch_end = p[0].len;
	server_want(f, p, ARRAY_LEN(p));
}

/* server_want_on - prefetch after a read that continues the last one. */
static void server_want_on(struct blob_proxy_server *f, uint64_t off, uint64_t len)
{
	bool on = off >= f->next && off - f->next <= PREFETCH_LEAST;
	struct blob_part p;

	f->next = off + len;
	if (!on) {
		f->ahead = 0;
		return;
	}
	if (f->next + f->ahead / 2 < f->prefetch_end)
		return;
	f->ahead = u64_min(u64_max(2 * f->ahead, PREFETCH_LEAST), PREFETCH_MOST);
	p = (struct blob_part){u64_max(f->next, f->prefetch_end), f->ahead};
	f->prefetch_end = p.off + p.len;
	server_want(f, &p, 1);
}

static bool server_answer(struct blob_proxy_server *f, int rc, const void *data, size_t n)
{
	const struct child_answer a = {.rc = rc, .len = n};

	return child_send(f->sock, &a, sizeof(a), n ? MSG_MORE : 0) &&
	       child_send(f->sock, data, n, 0);
}

static bool do_read(struct blob_proxy_server *f, const struct blob_proxy_request *q)
{
	struct err e = ERR_INIT;
	int64_t start;
	int rc;

	if (q->len == 0 || q->len > BLOB_PROXY_READ_MAX || q->off > f->blob->size ||
	    q->len > f->blob->size - q->off)
		return false;
	if (f->all)
		server_want_on(f, q->off, q->len);
	start = clock_ns();
	rc = blob_read(f->blob, q->off, f->room, (size_t)q->len, &e);
	atomic_fetch_add(&f->waited, clock_ns() - start);
	if (rc == -EBADMSG) /* an error of the remote server says nothing about the file's
			     * contents */
		rc = -EIO;
	if (rc < 0 && !blob_proxy_failed(f, NULL)) {
		(void)pthread_mutex_lock(&f->lock);
		(void)err_set(&f->failed, rc, "%s", e.msg);
		(void)pthread_mutex_unlock(&f->lock);
	}
	return rc == 0 ? server_answer(f, 0, f->room, (size_t)q->len)
		       : server_answer(f, rc, e.msg, strlen(e.msg));
}

static bool do_want(struct blob_proxy_server *f, uint32_t n)
{
	struct blob_part p[BLOB_PROXY_PARTS_MAX];

	if (n == 0 || n > BLOB_PROXY_PARTS_MAX || !server_take(f->sock, p, n * sizeof(*p)))
		return false;
	server_want(f, p, n);
	return true;
}

static void *server_run(void *arg)
{
	struct blob_proxy_server *f = arg;
	struct blob_proxy_request q;
	bool ok = true;

	cancel_begin(&f->stop);
	if (f->all)
		want_first(f);
	while (ok && server_take(f->sock, &q, sizeof(q)))
		ok = q.op == BLOB_PROXY_READ ? do_read(f, &q)
					     : q.op == BLOB_PROXY_WANT && do_want(f, q.n);
	(void)pthread_mutex_lock(&f->lock);
	f->over = true;
	(void)pthread_mutex_unlock(&f->lock);
	cancel_end(&f->stop);
	(void)shutdown(f->sock, SHUT_RDWR); /* end a child that breaks the protocol */
	return NULL;
}

int blob_proxy_serve(struct blob *b, int sock, bool all, struct blob_proxy_server **ret,
		     struct err *e)
{
	struct blob_proxy_server *f = alloc_array(1, sizeof(*f));
	int errnum;

	if (f)
		f->room = alloc_array((size_t)BLOB_PROXY_READ_MAX, 1);
	if (!f || !f->room) {
		free(f);
		return err_nomem(e);
	}
	f->blob = b;
	f->sock = sock;
	f->all = all;
	(void)pthread_mutex_init(&f->lock, NULL);
	errnum = thread_start(&f->thread, server_run, f);
	if (errnum) {
		(void)pthread_mutex_destroy(&f->lock);
		free(f->room);
		free(f);
		return err_sys(e, errnum, "cannot create a thread for a remote file");
	}
	*ret = f;
	return 0;
}

void blob_proxy_end(struct blob_proxy_server *f)
{
	if (!f)
		return;
	(void)pthread_mutex_lock(&f->lock);
	if (!f->over)
		cancel_request(&f->stop);
	(void)pthread_mutex_unlock(&f->lock);
	(void)shutdown(f->sock, SHUT_RDWR); /* it may have ended already */
	(void)pthread_join(f->thread, NULL);
	(void)close(f->sock);
	(void)pthread_mutex_destroy(&f->lock);
	free(f->room);
	free(f);
}

int64_t blob_proxy_waited(struct blob_proxy_server *f)
{
	return f ? atomic_load(&f->waited) / 1000000 : 0;
}

int blob_proxy_failed(struct blob_proxy_server *f, struct err *e)
{
	int rc = 0;

	if (!f)
		return 0;
	(void)pthread_mutex_lock(&f->lock);
	if (f->failed.code)
		rc = err_set(e, f->failed.code, "%s", f->failed.msg);
	(void)pthread_mutex_unlock(&f->lock);
	return rc;
}
