/* SPDX-License-Identifier: BSD-3-Clause */
/* blob_proxy_client.c - in a library's process: a remote file as a blob that requests its bytes
 * from the server.
 *
 * Libraries read metadata in pieces of a few bytes, so blocks of it are cached and most of these
 * reads cost nothing. Elements are read once and in large pieces, so they are not cached. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/process/worker.h"
#include "hdf5view/isolate/blob_proxy.h"

#define BLOCK ((uint64_t)32 << 10)
#define BLOCKS 256        /* 8 MiB in total */
#define LARGE (4 * BLOCK) /* reads of this size or more are not cached */

struct blob_proxy_client {
	struct blob base;
	struct worker server; /* a socket to the server, nothing else */
	struct err failed;
	uint8_t *data[BLOCKS];  /* NULL: empty */
	uint64_t block[BLOCKS]; /* its number */
};

static struct blob_proxy_client *client_of(struct blob *b)
{
	return CONTAINER_OF(b, struct blob_proxy_client, base);
}

/* client_ask - request at most BLOB_PROXY_READ_MAX bytes. The errno of a failure does
 * not matter: the server, where the read failed, has its own. */
static int client_ask(struct blob_proxy_client *c, uint64_t off, void *out, size_t n,
		      struct err *e)
{
	const struct blob_proxy_request q = {.op = BLOB_PROXY_READ, .off = off, .len = n};
	struct worker_call k = {.request = &q, .size = sizeof(q), .out = out, .len = n};
	struct err why = ERR_INIT;

	if (worker_call(&c->server, &k, &why) != CHILD_TAKEN)
		k.rc = err_set(&why, -EIO, "the server does not answer");
	if (k.rc < 0 && c->failed.code == 0)
		c->failed = why;
	return k.rc < 0 ? err_set(e, k.rc, "%s", why.msg) : 0;
}

/* block_of - a block of the file, from the cache or the server; NULL with e set. */
static const uint8_t *block_of(struct blob_proxy_client *c, uint64_t i, struct err *e)
{
	size_t slot = (size_t)(i % BLOCKS);
	uint64_t off = i * BLOCK;

	if (c->data[slot] && c->block[slot] == i)
		return c->data[slot];
	if (!c->data[slot])
		c->data[slot] = alloc_array((size_t)BLOCK, 1);
	if (!c->data[slot]) {
		(void)err_nomem(&c->failed);
		(void)err_nomem(e);
		return NULL;
	}
	c->block[slot] = UINT64_MAX;
	if (client_ask(c, off, c->data[slot], (size_t)u64_min(BLOCK, c->base.size - off), e) <
	    0)
		return NULL;
	c->block[slot] = i;
	return c->data[slot];
}

static void client_want(struct blob *b, const struct blob_part *parts, size_t n)
{
	struct blob_proxy_client *c = client_of(b);

	while (n > 0) {
		size_t some = n < BLOB_PROXY_PARTS_MAX ? n : BLOB_PROXY_PARTS_MAX;
		const struct blob_proxy_request q = {.op = BLOB_PROXY_WANT,
						     .n = (uint32_t)some};

		if (!child_send(c->server.child.sock, &q, sizeof(q), 0) ||
		    !child_send(c->server.child.sock, parts, some * sizeof(*parts), 0))
			return; /* later reads fail */
		parts += some;
		n -= some;
	}
}

static int client_read(struct blob *b, uint64_t off, uint8_t *out, size_t len, struct err *e)
{
	struct blob_proxy_client *c = client_of(b);
	uint64_t end;
	int rc;

	if (ckd_add(&end, off, (uint64_t)len) || end > b->size)
		return err_set(e, -EIO, "the file ends at %" PRIu64 ", before offset %" PRIu64,
			       b->size, end);
	if (len > BLOB_PROXY_READ_MAX) {
		struct blob_part all = {off, len};

		client_want(b, &all, 1);
	}
	while (len > 0) {
		size_t in = (size_t)(off % BLOCK), n = (size_t)u64_min(len, BLOCK - in);

		if (len >= LARGE) {
			n = (size_t)u64_min(len, BLOB_PROXY_READ_MAX);
			rc = client_ask(c, off, out, n, e);
			if (rc < 0)
				return rc;
		} else {
			const uint8_t *p = block_of(c, off / BLOCK, e);

			if (!p)
				return c->failed.code ? c->failed.code : -EIO;
			memcpy(out, p + in, n);
		}
		off += n;
		out += n;
		len -= n;
	}
	return 0;
}

/* The server's process checks the file; this one cannot. */
static const struct blob_ops client_ops = {.read = client_read, .want = client_want};

struct blob *blob_proxy_client_new(int sock, uint64_t size)
{
	struct blob_proxy_client *c = alloc_array(1, sizeof(*c));

	if (!c)
		return NULL;
	c->base = (struct blob){.ops = &client_ops, .fd = -1, .size = size};
	c->server.child.sock = sock;
	return &c->base;
}

int blob_proxy_client_failed(const struct blob *b, struct err *e)
{
	const struct blob_proxy_client *c = (const struct blob_proxy_client *)(const void *)b;

	if (!b || b->ops != &client_ops || c->failed.code == 0)
		return 0;
	return err_set(e, c->failed.code, "%s", c->failed.msg);
}
