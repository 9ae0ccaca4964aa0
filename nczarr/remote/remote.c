/* SPDX-License-Identifier: BSD-3-Clause */
/* remote.c - remote access of a process: requests, the cache, and the stores of addresses.
 * resolve_address.c finds the dataset at an address. */
#include "nczarr/remote/remote.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/lock.h"
#include "nczarr/remote/services.h"

enum {
	CONNECT_MS = 15000, /* to establish a connection */
	STALL_MS = 30000,   /* without a byte */
};

/* said - a string that lives until remote_free() */
struct said {
	struct said *next;
	char text[];
};

struct remote {
	struct remote_options opts; /* strings owned */
	struct http_client *net;
	struct object_cache *cache;
	pthread_mutex_t lock;
	struct said *said; /* lock */
};

/* Options. */

static char **text_fields(struct remote_options *o, size_t i)
{
	char **const all[] = {&o->profile,     &o->region,   &o->access_key,  &o->secret_key,
			      &o->config_file, &o->endpoint, &o->bearer_file, &o->netrc_file,
			      &o->ca_file,     &o->cache_dir};

	return i < ARRAY_LEN(all) ? all[i] : NULL;
}

static int start_net(struct remote *r, struct err *e)
{
	const struct remote_options *o = &r->opts;
	const struct http_client_options net = {
		.connect_ms = (uint32_t)u64_min(CONNECT_MS, o->timeout_ms),
		/* time for another try */
		.stall_ms = (uint32_t)u64_min(STALL_MS, o->timeout_ms / 2),
		.total_ms = o->timeout_ms,
		.tries = o->tries,
		.connections = o->connections,
		.requests = o->connections < UINT32_MAX / 4 ? 4 * o->connections : UINT32_MAX,
		.insecure = o->insecure,
		.plain_secrets = o->plain_secrets,
		.private_redirects = o->private_redirects,
		.ca_file = o->ca_file,
		.netrc_file = o->netrc_file,
	};

	return http_client_new(&net, &r->net, e);
}

int remote_new(const struct remote_options *opts, struct remote **ret, struct err *e)
{
	struct remote *r = alloc_array(1, sizeof(*r));
	bool failed = false;
	char **field;
	int rc;

	if (!r)
		return err_nomem(e);
	(void)pthread_mutex_init(&r->lock, NULL);
	r->opts = *opts;
	for (size_t i = 0; (field = text_fields(&r->opts, i)); i++)
		*field = str_copy(*field, &failed);
	rc = failed ? err_nomem(e) : start_net(r, e);
	rc = rc ? rc : object_cache_new(&r->opts, &r->cache, e);
	if (rc < 0) {
		remote_free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void remote_free(struct remote *r)
{
	struct said *next;
	char **field;

	if (!r)
		return;
	http_client_free(r->net);
	if (r->cache)
		object_cache_free(r->cache);
	for (size_t i = 0; (field = text_fields(&r->opts, i)); i++)
		str_wipe(*field);
	for (struct said *s = r->said; s; s = next) {
		next = s->next;
		free(s);
	}
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

void remote_stop(struct remote *r)
{
	http_client_stop(r->net);
}

uint64_t remote_requests(struct remote *r)
{
	struct http_counts c = {0};

	http_get_counts(r->net, &c);
	return c.requests;
}

const char *remote_keep(struct remote *r, const char *text)
{
	size_t n = strlen(text);
	struct said *s;
	LOCK_SCOPE(&r->lock);

	for (s = r->said; s && strcmp(s->text, text) != 0;)
		s = s->next;
	if (!s && (s = malloc(sizeof(*s) + n + 1))) {
		memcpy(s->text, text, n + 1);
		s->next = r->said;
		r->said = s;
	}
	return s ? s->text : NULL;
}

/* Stores. */

/* root_name - name of a root in the cache. Two roots that differ in anything but secrets have
 * different names. */
static void root_name(const struct remote *r, const struct remote_target *t, struct buf *out)
{
	const char *query = strchr(t->shown, '?');

	if (t->kind == REMOTE_HTTP) {
		buf_puts(out, t->url);
		if (t->query && query)
			buf_printf(out, "%.*s", (int)strcspn(query, "#"), query);
		return;
	}
	buf_printf(out, "%s://%s/%s", t->kind == REMOTE_S3 ? "s3" : "gs3", t->bucket, t->key);
	if (t->url || r->opts.endpoint)
		buf_printf(out, "@%s", t->url ? t->url : r->opts.endpoint);
}

int remote_store(struct remote *r, const struct remote_target *t, struct store **ret,
		 struct err *e)
{
	struct object_service *o = NULL;
	auto_buf name = buf_of(1 << 16);
	int rc;

	rc = t->kind == REMOTE_HTTP ? http_service_open(r->net, &r->opts, t, &o, e)
				    : s3_service_open(r->net, &r->opts, t, &o, e);
	if (rc < 0)
		return rc;
	root_name(r, t, &name);
	buf_putc(&name, '\0');
	rc = buf_ok(&name) ? store_remote_open(r->cache, o, (char *)name.data, ret, e)
			   : err_nomem(e);
	if (rc < 0)
		objects_close(o);
	return rc;
}

bool remote_is_private(const char *host)
{
	return http_is_here(host) || address_class_of_text(host) != HTTP_PUBLIC;
}
