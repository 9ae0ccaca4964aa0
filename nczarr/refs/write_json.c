/* SPDX-License-Identifier: BSD-3-Clause */
/* write_json.c - references as kerchunk's JSON, version 1: one object, a line for each key,
 * streamed. Spec: kerchunk, "References specification", Version 1. */
#include "nczarr/refs/write_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/base64.h"
#include "base/core/str.h"

#define HELD ((size_t)256 << 10) /* bytes of one write */

struct json_out {
	struct refs_part *part;
	struct buf dir; /* directory of the current array with '/' at its end, or "" */
};

static int write_json_put_doc(void *arg, const char *key, const struct buf *text, struct err *e)
{
	struct json_out *j = arg;

	refs_part_key(j->part, key);
	str_put_json(&j->part->text, text->data ? (const char *)text->data : "", text->len);
	return refs_part_flush(j->part, HELD, e);
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
	struct buf *out = &j->part->text;
	const size_t dir = j->dir.len;

	buf_puts(&j->dir, name);
	buf_putc(&j->dir, '\0');
	if (!buf_ok(&j->dir))
		return err_nomem(e);
	refs_part_key(j->part, (const char *)j->dir.data);
	j->dir.len = dir;
	if (c->data) {
		buf_puts(out, "\"base64:");
		base64_put(out, c->data, (size_t)c->len);
		buf_putc(out, '"');
	} else {
		buf_putc(out, '[');
		str_put_json(out, c->url, strlen(c->url));
		if (!c->whole)
			buf_printf(out, ", %" PRIu64 ", %" PRIu64, c->off, c->len);
		buf_putc(out, ']');
	}
	return refs_part_flush(j->part, HELD, e);
}

int refs_set_json_add(struct refs_part *p, struct source *s, struct view *v,
		      const struct refs_options *opts, bool *ret_out, struct err *e)
{
	struct json_out j = {.part = p, .dir = buf_of((size_t)1 << 20)};
	const struct refs_out out = {
		.arg = &j,
		/* of all datasets they would have to be known before the first */
		.all = *p->group == '\0',
		.templates = true,
		.doc = write_json_put_doc,
		.begin = write_json_begin_array,
		.chunk = write_json_put_chunk,
	};
	int rc;

	rc = refs_walk(s, v, p->group, opts, &out, ret_out, e);
	buf_release(&j.dir);
	return rc;
}
