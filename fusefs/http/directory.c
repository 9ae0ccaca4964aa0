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

/* http_listing - a directory page that is being sent. */
struct http_listing {
	struct serve *s;
	uint64_t ino, epoch; /* of the directory, which is held */
	uint64_t cookie;     /* where the listing continues */
	struct buf text;     /* generated, not sent yet */
	size_t taken;        /* bytes of it that were sent */
	bool ended;          /* the text is the last part */
	bool more;           /* the buffer was full before the listing's end */
};

static bool put_entry(void *arg, const char *name, uint64_t id NZ_UNUSED, bool is_dir,
		      const struct view_attr *attr NZ_UNUSED, uint64_t next)
{
	struct http_listing *l = arg;
	const char *slash = is_dir ? "/" : "";

	if (l->text.len >= ROOM) {
		l->more = true;
		return false;
	}
	buf_puts(&l->text, "<li><a href=\"");
	url_encode(&l->text, name, strlen(name), false);
	buf_printf(&l->text, "%s\">", slash);
	str_put_xml(&l->text, name, strlen(name));
	buf_printf(&l->text, "%s</a>\n", slash);
	l->cookie = next;
	return buf_ok(&l->text);
}

/* http_directory_make - generate the next part of the page. */
static int http_directory_make(struct http_listing *l, struct epoch *ep, struct err *e)
{
	struct view *v = ep->view;
	int rc;

	l->more = false;
	rc = v->ops->list(v, live_id(l->ino), l->cookie, false, put_entry, l, e);
	if (rc == 0 && !l->more) {
		buf_puts(&l->text, "</ul>\n</html>\n");
		l->ended = true;
	}
	if (rc == 0 && !buf_ok(&l->text))
		rc = buf_full(&l->text, e, -ERANGE, "a name is too long to be listed");
	return rc;
}

/* make_more - generate a later part of a page. */
static int make_more(struct http_listing *l, struct err *e)
{
	struct epoch *ep;
	int rc = serve_resume(l->s, l->ino, l->epoch, &ep, e);

	if (rc < 0)
		return rc;
	rc = http_directory_make(l, ep, e);
	serve_release(l->s, ep, rc);
	return rc;
}

static ssize_t listing_read(void *arg, uint64_t pos NZ_UNUSED, char *out, size_t max)
{
	struct http_listing *l = arg;
	struct err e = ERR_INIT;
	size_t n;
	int rc;

	if (l->taken == l->text.len && !l->ended) {
		buf_clear(&l->text);
		l->taken = 0;
		rc = make_more(l, &e);
		if (rc < 0)
			return serve_broken(l->s, rc, &e);
	}
	n = l->text.len - l->taken;
	if (n == 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	n = (size_t)u64_min(n, max);
	memcpy(out, l->text.data + l->taken, n);
	l->taken += n;
	return (ssize_t)n;
}

static void listing_release(struct http_listing *l)
{
	buf_release(&l->text);
	free(l);
}

/* http_directory_listing_free - the page was sent, or its client disconnected. */
static void http_directory_listing_free(void *arg)
{
	struct http_listing *l = arg;

	serve_let_go(l->s, l->ino, l->epoch);
	listing_release(l);
}

static void http_directory_put_head(struct http_listing *l, const char *path)
{
	buf_puts(&l->text, "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
			   "<meta name=\"viewport\" content=\"width=device-width\">\n<title>");
	str_put_xml(&l->text, path, strlen(path));
	buf_puts(&l->text, "</title>\n<h1>");
	str_put_xml(&l->text, path, strlen(path));
	buf_puts(&l->text, "</h1>\n<ul>\n");
}

int serve_listing(struct ask *a, struct epoch *ep, const struct view_attr *dir, bool *held,
		  struct err *e)
{
	struct http_listing *l = alloc_array(1, sizeof(*l));
	struct MHD_Response *r = NULL;
	int rc;

	if (!l)
		return err_nomem(e);
	*l = (struct http_listing){
		.s = a->s, .ino = live_ino(ep, dir->id), .epoch = ep->number};
	buf_init(&l->text, ROOM_MAX + HTTP_PATH_MAX * 12);
	http_directory_put_head(l, a->rest);
	rc = http_directory_make(l, ep, e);
	if (rc == 0)
		r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, ROOM, listing_read, l,
						      http_directory_listing_free);
	if (!r) {
		listing_release(l);
		return rc ? rc : err_nomem(e);
	}
	*held = false;
	return serve_queue(a, MHD_HTTP_OK,
			   serve_header(r, "Content-Type", "text/html; charset=utf-8"), e);
}
