/* SPDX-License-Identifier: BSD-3-Clause */
/* http_int.h - shared by the parts of serve only.
 *
 * Addresses: "/" is the page, "/page/..." what it consists of, "/data/..." the files of the view,
 * "/api/..." what only the server knows, as JSON. */
#ifndef FUSEFS_HTTP_HTTP_INT_H
#define FUSEFS_HTTP_HTTP_INT_H

#include <microhttpd.h>

#include "fusefs/app/fusefs.h"
#include "fusefs/http/parse_int.h"

/* serve - the server while it lives. What is not said otherwise is constant once it answers. */
struct serve {
	const struct app *setup;
	struct fs fs;          /* live and log only; they have locks of their own */
	char address[64];      /* that it listens on, without brackets */
	uint16_t port;
	bool loopback;         /* only this machine reaches it */
	const char *origin;    /* of pages that may read what is served; "*": all; NULL: none */
	uint64_t stamp;        /* of this run: part of all entity tags */
	int fd;                /* listens */
	struct MHD_Daemon *daemon;
};

/* ask - one request. */
struct ask {
	struct serve *s;
	struct MHD_Connection *conn;
	const char *rest; /* of the path, behind "/data" and the like: "" or with a leading '/' */
	bool head;
	const char *policy; /* Content-Security-Policy; NULL: that of all but the page's worker */
};

/* answer_fn - answer a request: queue a response, or return a negative errno with *e, which becomes
 * a status: -ENOENT is 404, -EINVAL 400. Called again after -ESTALE. */
typedef int answer_fn(struct ask *a, struct err *e);

answer_fn serve_data, serve_about, serve_chunks, serve_page;

/* serve_request - MHD's access handler; arg: a struct serve. */
enum MHD_Result serve_request(void *arg, struct MHD_Connection *conn, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *size, void **state);

/* serve_queue - send a response, which is taken, with what all of them have: NULL is -ENOMEM. */
int serve_queue(struct ask *a, unsigned int status, struct MHD_Response *r,
		struct err *e) NZ_MUST_USE;
/* serve_header - one more header; a failure is kept for serve_queue, which then sends none of it:
 * returns NULL. r may be NULL. Returns r. */
struct MHD_Response *serve_header(struct MHD_Response *r, const char *name, const char *value);
/* serve_text - send a text, which is released. */
int serve_text(struct ask *a, unsigned int status, const char *type, struct buf *text,
	       struct err *e) NZ_MUST_USE;

/* serve_find - id and attributes of a path in the view of ep. Held until serve_drop. Returns 0;
 * -ENOENT proven absence; -EISDIR ends in '/' but is a file; errors of lookup. */
int serve_find(struct epoch *ep, const struct http_path *p, struct view_attr *ret,
	       struct err *e) NZ_MUST_USE;
void serve_drop(struct epoch *ep, uint64_t id);
/* serve_let_go - serve_drop for an answer that is sent without its epoch: ino is dropped if the
 * epoch of that number is still current. */
void serve_let_go(struct serve *s, uint64_t ino, uint64_t epoch);
/* serve_unchanged - 0, or -ESTALE when the source is not what ep opened. */
int serve_unchanged(struct epoch *ep, struct err *e) NZ_MUST_USE;

/* serve_listing - the page of a directory, for people and for programs that look for links. *held
 * becomes false when the response has taken dir over and drops it when the page is sent. */
int serve_listing(struct ask *a, struct epoch *ep, const struct view_attr *dir, bool *held,
		  struct err *e) NZ_MUST_USE;

#endif
