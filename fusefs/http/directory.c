/* SPDX-License-Identifier: BSD-3-Clause */
/* directory.c - the page of a directory, generated in parts while it is sent, for any length. */
#include "fusefs/http/http_int.h"

#include <errno.h>
#include <string.h>

#include "base/core/str.h"
#include "base/os/url.h"

enum {
	ROOM = 64 << 10,     /* bytes of a page that are generated at a time */
	ROOM_MAX = ROOM + (16 << 10), /* with the entry that exceeds ROOM */
};

static bool put_entry(void *arg, const char *name, uint64_t id NZ_UNUSED, bool is_dir,
		      const struct view_attr *attr NZ_UNUSED, uint64_t next)
{
	struct serve_body *b = arg;
	const char *slash = is_dir ? "/" : "";

	if (b->data.len >= ROOM) {
		b->len = UINT64_MAX;
		return false;
	}
	buf_puts(&b->data, "<li><a href=\"");
	url_encode(&b->data, name, strlen(name), false);
	buf_printf(&b->data, "%s\">", slash);
	str_put_xml(&b->data, name, strlen(name));
	buf_printf(&b->data, "%s</a>\n", slash);
	b->where = next;
	return buf_ok(&b->data);
}

/* listing_fill - generate the next part of the page. */
static int listing_fill(struct serve_body *b, struct epoch *ep, struct err *e)
{
	struct view *v = ep->view;
	int rc;

	b->len = 0; /* until put_entry finds no room */
	rc = v->ops->list(v, live_id(b->ino), b->where, false, put_entry, b, e);
	if (rc == 0 && b->len == 0) {
		buf_puts(&b->data, "</ul>\n</html>\n");
		b->len = b->at + b->data.len;
	}
	if (rc == 0 && !buf_ok(&b->data))
		rc = buf_full(&b->data, e, -ERANGE, "a name is too long to be listed");
	return rc;
}

static void put_head(struct buf *out, const char *path)
{
	buf_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	str_put_xml(out, path, strlen(path));
	buf_puts(out, "</title>\n<h1>");
	str_put_xml(out, path, strlen(path));
	buf_puts(out, "</h1>\n<ul>\n");
}

int serve_listing(struct ask *a, struct epoch *ep, const struct view_attr *dir, bool *held,
		  struct err *e)
{
	struct serve_body *b = serve_body_new(a, ep, dir->id, ROOM_MAX + HTTP_PATH_MAX * 12);
	struct MHD_Response *r;
	int rc;

	if (!b)
		return err_nomem(e);
	b->fill = listing_fill;
	put_head(&b->data, a->rest);
	rc = b->fill(b, ep, e);
	r = serve_body_response(b, rc, MHD_SIZE_UNKNOWN, ROOM, held);
	if (!r)
		return rc ? rc : err_nomem(e);
	return serve_queue(a, MHD_HTTP_OK,
			   serve_header(r, "Content-Type", "text/html; charset=utf-8"), e);
}
