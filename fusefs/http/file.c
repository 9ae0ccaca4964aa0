/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - serves files of the view by HTTP.
 *
 * The first piece is read before anything is sent, so that an error becomes a status. Further
 * pieces are read as the client receives them. If the epoch changes, the connection ends before the
 * length in the header is reached. */
#include "fusefs/http/http_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/observe/log.h"
#include "base/observe/metrics.h"

enum {
	PIECE = 1 << 20,     /* bytes per read */
	BLOCK = 256 << 10,   /* bytes per send */
};

/* Finding. */

int serve_end(struct serve *s, struct epoch *ep, int rc, struct err *e)
{
	rc = epoch_result(s->fs.live, ep, rc, e);
	epoch_release(s->fs.live, ep);
	return rc;
}

void serve_drop(struct epoch *ep, uint64_t id)
{
	if (id != VIEW_ROOT && ep->view->ops->forget)
		ep->view->ops->forget(ep->view, id, 1);
}

/* http_file_find - look up a path in the view of ep. The file is held until serve_drop. Returns 0;
 * -ENOENT: proven absence; -ENOTDIR: the path ends in '/' but is a file; errors of lookup. */
static int http_file_find(struct epoch *ep, const struct http_path *p, struct view_attr *ret,
			  struct err *e)
{
	const struct view_ops *ops = ep->view->ops;
	uint64_t at = VIEW_ROOT;
	int rc = p->n ? 0 : ops->getattr(ep->view, VIEW_ROOT, ret, e);

	for (const char *name = NULL; rc == 0 && (name = http_path_next(p, name));) {
		rc = ops->lookup(ep->view, at, name, strlen(name), ret, e);
		serve_drop(ep, at);
		if (rc == 0)
			at = ret->id;
	}
	if (rc == 0 && !ret->is_dir && p->is_dir)
		rc = err_set(e, -ENOTDIR, "this is a file: remove the '/' at the end");
	if (rc == 0 && ret->is_link)
		rc = err_set(e, -EPERM, "this is a symbolic link, which is not followed");
	if (rc < 0)
		serve_drop(ep, at);
	return rc;
}

/* Bodies. */

struct serve_body *serve_body_new(struct ask *a, struct epoch *ep, uint64_t id, size_t max)
{
	struct serve_body *b = alloc_array(1, sizeof(*b));

	if (b)
		*b = (struct serve_body){.s = a->s,
					 .ino = live_ino(ep, id),
					 .epoch = ep->number,
					 .len = UINT64_MAX,
					 .data = buf_of(max)};
	return b;
}

static void body_release(struct serve_body *b)
{
	buf_release(&b->data);
	free(b);
}

/* body_free - the body was sent, or its client disconnected. */
static void body_free(void *arg)
{
	struct serve_body *b = arg;
	struct epoch *ep;

	if (epoch_acquire(b->s->fs.live, b->ino, &ep, NULL) == 0) {
		if (ep->number == b->epoch)
			serve_drop(ep, live_id(b->ino));
		epoch_release(b->s->fs.live, ep);
	}
	body_release(b);
}

/* body_fill - replace the part by the next one. */
static int body_fill(struct serve_body *b, struct err *e)
{
	struct epoch *ep;
	int rc = epoch_acquire(b->s->fs.live, b->ino, &ep, e);

	if (rc < 0)
		return rc;
	b->at += b->data.len;
	buf_clear(&b->data);
	if (ep->number == b->epoch)
		return serve_end(b->s, ep, b->fill(b, ep, e), e);
	epoch_release(b->s->fs.live, ep);
	return err_set(e, -ESTALE, "the source changed while it was sent");
}

/* body_read - MHD's reader, which reads from the start to the end. */
static ssize_t body_read(void *arg, uint64_t pos, char *out, size_t max)
{
	struct serve_body *b = arg;
	struct err e = ERR_INIT;
	size_t n;
	int rc;

	if (pos >= b->len)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (pos >= b->at + b->data.len) {
		rc = body_fill(b, &e);
		if (rc < 0 && rc != -ESTALE)
			reply_log(&b->s->fs, &e);
		if (rc < 0)
			return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	n = (size_t)u64_min(max, b->at + b->data.len - pos);
	memcpy(out, b->data.data + (pos - b->at), n);
	return (ssize_t)n;
}

struct MHD_Response *serve_body_response(struct serve_body *b, int rc, uint64_t size,
					 size_t block, bool *held)
{
	struct MHD_Response *r = NULL;

	if (rc == 0)
		r = MHD_create_response_from_callback(size, block, body_read, b, body_free);
	if (r)
		*held = false;
	else
		body_release(b);
	return r;
}

/* http_file_piece - read exactly len bytes of file id at off. */
static int http_file_piece(struct epoch *ep, uint64_t id, uint64_t off, uint8_t *out,
			   size_t len, struct err *e)
{
	struct span s = {0};
	size_t n = 0;
	bool stored;
	int rc = ep->view->ops->read(ep->view, id, 0, off, len, out, &s, e);

	if (rc < 0)
		return rc;
	stored = !s.mem && s.len;
	rc = span_fetch(&s, out, len, &n, e);
	if (rc == 0 && stored && ep->view->source) /* checked after the bytes were read */
		rc = source_check(ep->view->source, e);
	if (rc == 0 && n != len)
		rc = err_set(e, -EIO, "read %zu bytes instead of %zu", n, len);
	if (rc == 0)
		metrics_add(M_READ_BYTES, len);
	return rc;
}

/* http_file_fill - the piece of the file at b->at. */
static int http_file_fill(struct serve_body *b, struct epoch *ep, struct err *e)
{
	size_t n = (size_t)u64_min(PIECE, b->len - b->at);
	uint8_t *room = buf_grow(&b->data, n);

	return room ? http_file_piece(ep, live_id(b->ino), b->where + b->at, room, n, e)
		    : err_nomem(e);
}

/* Tags. */

/* put_tag - write an entity tag of this run, this opening of the source and this file. If the
 * content may change under one id, the tag includes its times and is weak. */
static void put_tag(const struct serve *s, const struct epoch *ep, const struct view_attr *a,
		    char out[HTTP_TAG_MAX])
{
	const bool weak = ep->view->follows && !a->fixed;
	int n = snprintf(out, HTTP_TAG_MAX, "%s\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64,
			 weak ? "W/" : "", s->stamp, ep->number, a->id, a->size);

	if (weak && n > 0 && n < HTTP_TAG_MAX)
		n += snprintf(out + n, HTTP_TAG_MAX - (size_t)n, "-%" PRIx64 ".%lx",
			      (uint64_t)a->mtime.tv_sec, (unsigned long)a->mtime.tv_nsec);
	if (n > 0 && n < HTTP_TAG_MAX - 1)
		(void)snprintf(out + n, HTTP_TAG_MAX - (size_t)n, "\"");
}

static const char *header_of(const struct ask *a, const char *name)
{
	return MHD_lookup_connection_value(a->conn, MHD_HEADER_KIND, name);
}

/* Answers. */

static int http_file_outside(struct ask *a, uint64_t size, struct err *e)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "bytes */%" PRIu64, size);
	return serve_queue(a, MHD_HTTP_RANGE_NOT_SATISFIABLE,
			   serve_header(serve_empty(), "Content-Range", text), e);
}

/* send_range - send bytes of a file; *held: the caller has to drop the file. */
static int send_range(struct ask *a, struct epoch *ep, const struct view_attr *attr,
		      const char *name, const char *tag, bool *held, struct err *e)
{
	const char *range = header_of(a, "Range"), *if_range = header_of(a, "If-Range");
	struct MHD_Response *r;
	uint64_t first, len;
	enum http_range kind;
	struct serve_body *b;
	char text[96];
	int rc = 0;

	if (if_range && !http_tag_same(if_range, tag))
		range = NULL;
	kind = http_range_parse(range, attr->size, &first, &len);
	if (kind == HTTP_OUTSIDE)
		return http_file_outside(a, attr->size, e);
	b = serve_body_new(a, ep, attr->id, PIECE);
	if (!b)
		return err_nomem(e);
	b->fill = http_file_fill;
	b->where = first;
	b->len = len;
	if (!a->head && len)
		rc = b->fill(b, ep, e);
	r = serve_body_response(b, rc, len, BLOCK, held);
	if (!r)
		return rc ? rc : err_nomem(e);
	r = serve_header(r, "ETag", tag);
	r = serve_header(r, "Accept-Ranges", "bytes");
	r = serve_header(r, "Content-Type", http_type(name));
	if (kind == HTTP_PART) {
		(void)snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64,
			       first, first + len - 1, attr->size);
		r = serve_header(r, "Content-Range", text);
	}
	return serve_queue(a, kind == HTTP_PART ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, r, e);
}

static int send_file(struct ask *a, struct epoch *ep, const struct view_attr *attr,
		     const char *name, bool *held, struct err *e)
{
	char tag[HTTP_TAG_MAX];

	if (attr->unknown) /* reading it gives the error; a HEAD request does not read */
		return err_set(e, -EIO, "%s",
			       e->msg[0] ? e->msg : "its type could not be determined");
	put_tag(a->s, ep, attr, tag);
	if (http_tag_listed(header_of(a, "If-None-Match"), tag))
		return serve_queue(a, MHD_HTTP_NOT_MODIFIED,
				   serve_header(serve_empty(), "ETag", tag), e);
	return send_range(a, ep, attr, name, tag, held, e);
}

/* add_slash - links in a directory's page are relative to the directory. */
static int add_slash(struct ask *a, struct err *e)
{
	auto_buf to = buf_of(HTTP_PATH_MAX + 64);

	buf_printf(&to, "/data%s/%c", a->rest, '\0');
	return serve_redirect(a, buf_ok(&to) ? (const char *)to.data : "/data/", e);
}

/* in_epoch - answer a request while ep is held. */
static int in_epoch(struct ask *a, struct epoch *ep, const struct http_path *p, struct err *e)
{
	const char *name = NULL;
	struct view_attr attr;
	bool held = true;
	int rc = http_file_find(ep, p, &attr, e);

	if (rc < 0)
		return rc;
	for (const char *next = NULL; (next = http_path_next(p, next));)
		name = next;
	if (!attr.is_dir)
		rc = send_file(a, ep, &attr, name ? name : "", &held, e);
	else if (!p->is_dir)
		rc = add_slash(a, e);
	else
		rc = serve_listing(a, ep, &attr, &held, e);
	if (held)
		serve_drop(ep, attr.id);
	return rc;
}

int serve_data(struct ask *a, struct err *e)
{
	struct epoch *ep;
	struct http_path p;
	int rc = http_path_parse(a->rest, &p, e);

	rc = rc ? rc : epoch_acquire(a->s->fs.live, EPOCHS_ROOT, &ep, e);
	if (rc == 0) {
		*e = (struct err)ERR_INIT;
		rc = serve_end(a->s, ep, in_epoch(a, ep, &p, e), e);
	}
	http_path_release(&p);
	return rc;
}
