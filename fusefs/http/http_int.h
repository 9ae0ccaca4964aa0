/* SPDX-License-Identifier: BSD-3-Clause */
/* http_int.h - private to the HTTP server.
 *
 * Addresses: "/" is the page, "/page/..." its parts, "/data/..." the files of the view, "/api/..."
 * information that only the server has, as JSON. */
#ifndef FUSEFS_HTTP_HTTP_INT_H
#define FUSEFS_HTTP_HTTP_INT_H

#include <microhttpd.h>

#include "fusefs/app/fusefs.h"
#include "fusefs/http/parse_int.h"

/* serve - the running server. Fields without another remark are constant once it answers. */
struct serve {
	const struct app *setup;
	struct fs fs;          /* only live and log, which have their own locks */
	char address[64];      /* the listening address, without brackets */
	uint16_t port;
	bool loopback;         /* only reachable from this machine */
	const char *origin;    /* of pages that may read the served data; "*": all; NULL: none */
	uint64_t stamp;        /* of this run: part of all entity tags */
	int fd;                /* listens */
	struct MHD_Daemon *daemon;
};

/* ask - one request. */
struct ask {
	struct serve *s;
	struct MHD_Connection *conn;
	const char *rest; /* the path after "/data" and the like: "" or with a leading '/' */
	bool head;
	/* Content-Security-Policy; NULL: the common one, for all but the page's worker */
	const char *policy;
};

/* answer_fn - answer a request: queue a response, or return a negative errno with *e, which becomes
 * a status: -ENOENT is 404, -EINVAL 400. Called again after -ESTALE. */
typedef int answer_fn(struct ask *a, struct err *e);

answer_fn serve_data, serve_about, serve_chunks, serve_page;

/* serve_request - MHD's access handler; arg: a struct serve. */
enum MHD_Result serve_request(void *arg, struct MHD_Connection *conn, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *size, void **state);

/* serve_queue - send a response with the common headers. Takes ownership of it; NULL is -ENOMEM. */
int serve_queue(struct ask *a, unsigned int status, struct MHD_Response *r,
		struct err *e) NZ_MUST_USE;
/* serve_header - add a header. After a failure it returns NULL, which serve_queue turns into an
 * error. r may be NULL. Returns r. */
struct MHD_Response *serve_header(struct MHD_Response *r, const char *name, const char *value);
/* serve_empty - a response without a body; NULL: memory is short. */
struct MHD_Response *serve_empty(void);
/* serve_redirect - send the client to another path. */
int serve_redirect(struct ask *a, const char *to, struct err *e) NZ_MUST_USE;
/* serve_text - send text and release its buffer. */
int serve_text(struct ask *a, unsigned int status, const char *type, struct buf *text,
	       struct err *e) NZ_MUST_USE;

/* serve_drop - end the hold of a file that was looked up. */
void serve_drop(struct epoch *ep, uint64_t id);
/* serve_end - release an epoch after an answer with this result. Returns it, or -ESTALE if the
 * source changed. */
int serve_end(struct serve *s, struct epoch *ep, int rc, struct err *e);

/* serve_body - a body that is read or generated while it is sent. Each part acquires the epoch
 * again: a slow client does not delay the reopening of a changed source, and no body mixes two
 * epochs. */
struct serve_body {
	struct serve *s;
	uint64_t ino, epoch; /* of the file or directory, which is held */
	/* fill - append the next part, which begins at `at`, to data, which is empty, and set len
	 * if it is the last one */
	int (*fill)(struct serve_body *b, struct epoch *ep, struct err *e);
	uint64_t at, len;    /* len: of all parts; UINT64_MAX: not known yet */
	uint64_t where;      /* for fill: where the file's bytes begin, or the listing continues */
	struct buf data;
};

/* serve_body_new - a body of a file or directory of ep, with parts of at most max bytes; NULL:
 * memory is short. */
struct serve_body *serve_body_new(struct ask *a, struct epoch *ep, uint64_t id, size_t max);
/* serve_body_response - a response of `size` bytes (or MHD_SIZE_UNKNOWN) that owns b and the hold
 * of its file: *held becomes false. rc: of the first fill. NULL if that failed, or memory is
 * short: b is freed. */
struct MHD_Response *serve_body_response(struct serve_body *b, int rc, uint64_t size,
					 size_t block, bool *held);

/* serve_listing - the page of a directory, for people and for programs that follow links. *held
 * becomes false if the response has taken ownership of dir; it drops dir after the page was
 * sent. */
int serve_listing(struct ask *a, struct epoch *ep, const struct view_attr *dir, bool *held,
		  struct err *e) NZ_MUST_USE;

#endif
