/* SPDX-License-Identifier: BSD-3-Clause */
/* write_json.c - references as kerchunk's JSON, version 1: one object, a line for each key,
 * streamed. Spec: kerchunk, "References specification", Version 1. */
#include "nczarr/refs/write_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/str.h"
#include "nczarr/json/writer.h"

#define HELD ((size_t)256 << 10) /* bytes of one write */

struct json_out {
	int fd;
	struct buf out;
	struct buf dir; /* directory of the current array with '/' at its end, or "" */
	bool any;       /* output is not empty */
};

static int write_json_flush(struct json_out *j, size_t above, struct err *e)
{
	size_t at = 0;

	if (!buf_ok(&j->out))
		return err_nomem(e);
	if (j->out.len <= above)
		return 0;
	while (at < j->out.len) {
		ssize_t n = write(j->fd, j->out.data + at, j->out.len - at);

		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "cannot write the references");
		at += n > 0 ? (size_t)n : 0;
	}
	buf_clear(&j->out);
	return 0;
}

static void begin_key(struct json_out *j)
{
	buf_puts(&j->out, j->any ? ",\n" : "\n");
	j->any = true;
}

static int write_json_put_doc(void *arg, const char *key, const struct buf *text,
			      bool all NZ_UNUSED, struct err *e)
{
	struct json_out *j = arg;

	begin_key(j);
	str_put_json(&j->out, key, strlen(key));
	buf_puts(&j->out, ": ");
	str_put_json(&j->out, text->data ? (const char *)text->data : "", text->len);
	return write_json_flush(j, HELD, e);
}

static int write_json_begin_array(void *arg, const char *key, uint64_t n NZ_UNUSED,
				  struct err *e)
{
	struct json_out *j = arg;

	buf_clear(&j->dir);
	buf_puts(&j->dir, key);
	buf_puts(&j->dir, *key ? "/" : "");
	return buf_ok(&j->dir) ? 0 : err_nomem(e);
}

static int write_json_put_chunk(void *arg, const char *name, uint64_t linear NZ_UNUSED,
				const struct refs_chunk *c, struct err *e)
{
	struct json_out *j = arg;
	const size_t dir = j->dir.len;
	struct jw w;

	begin_key(j);
	buf_puts(&j->dir, name);
	str_put_json(&j->out, (const char *)j->dir.data, j->dir.len);
	j->dir.len = dir;
	if (!buf_ok(&j->dir))
		return err_nomem(e);
	if (c->data) {
		size_t at;

		buf_puts(&j->out, ": ");
		at = j->out.len;
		jw_init(&w, &j->out, false);
		/* the quote that it begins with goes in front of "base64:" */
		buf_puts(&j->out, "\"base64:");
		jw_base64(&w, c->data, (size_t)c->len);
		if (!buf_ok(&j->out))
			return err_nomem(e);
		memmove(j->out.data + at + 8, j->out.data + at + 9, j->out.len - at - 9);
		j->out.len--;
		return write_json_flush(j, HELD, e);
	}
	buf_puts(&j->out, ": [");
	str_put_json(&j->out, c->url, strlen(c->url));
	if (!c->whole)
		buf_printf(&j->out, ", %" PRIu64 ", %" PRIu64, c->off, c->len);
	buf_putc(&j->out, ']');
	return write_json_flush(j, HELD, e);
}

static int write_json_end_array(void *arg NZ_UNUSED, struct err *e NZ_UNUSED)
{
	return 0;
}

int refs_json(struct source *s, struct view *v, const struct refs_options *opts, int fd,
	      struct err *e)
{
	struct json_out j = {.fd = fd};
	const struct refs_out out = {
		.arg = &j,
		.doc = write_json_put_doc,
		.begin = write_json_begin_array,
		.chunk = write_json_put_chunk,
		.end = write_json_end_array,
	};
	int rc;

	buf_init(&j.out, SIZE_MAX / 2);
	buf_init(&j.dir, (size_t)1 << 20);
	buf_puts(&j.out, "{\"version\": 1, \"refs\": {");
	rc = refs_walk(s, v, opts, &out, e);
	if (rc == 0) {
		buf_puts(&j.out, "\n}}\n");
		rc = write_json_flush(&j, 0, e);
	}
	buf_release(&j.out);
	buf_release(&j.dir);
	return rc;
}
