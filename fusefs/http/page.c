/* SPDX-License-Identifier: BSD-3-Clause */
/* page.c - the page itself: files compiled into the program, from fusefs/page and the Zarr reader
 * that scripts/page builds. */
#include "fusefs/http/http_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The files: X(symbol, file, name), the name in the path of a request after its first '/'. */
#define SCRIPT(X, name) X(page_##name, "fusefs/http/page/" #name ".js", "page/" #name ".js")
#define FILES(X)                                                                               \
	X(page_html, "fusefs/http/page/page.html", "")                                         \
	X(page_css, "fusefs/http/page/page.css", "page/page.css")                              \
	SCRIPT(X, page)                                                                        \
	SCRIPT(X, axes) SCRIPT(X, blosc) SCRIPT(X, chunks) SCRIPT(X, colour) SCRIPT(X, data)   \
		SCRIPT(X, details) SCRIPT(X, http) SCRIPT(X, picture) SCRIPT(X, reader)        \
			SCRIPT(X, text) SCRIPT(X, tree) SCRIPT(X, view)                        \
				X(page_zarr, PAGE_ZARR, "page/zarr.js")

/* The bytes of a file between two symbols. */
#define FILE_BYTES(symbol, path, name)                                                         \
	extern const char symbol[], symbol##_end[];                                            \
	__asm__(".pushsection .rodata\n"                                                       \
		".global " #symbol "\n"                                                        \
		".hidden " #symbol "\n" #symbol ":\n"                                          \
		".incbin \"" path "\"\n"                                                       \
		".global " #symbol "_end\n"                                                    \
		".hidden " #symbol "_end\n" #symbol "_end:\n"                                  \
		".byte 0\n"                                                                    \
		".popsection\n");
FILES(FILE_BYTES)

#define WORKER "page/reader.js"

/* The decoders generate code (embind's invokers). They run in a worker that can reach only the
 * store. */
static const char worker_policy[] = "default-src 'none'; connect-src 'self'; "
				    "script-src 'self' 'wasm-unsafe-eval' 'unsafe-eval'";

static const struct http_page_file {
	const char *name, *begin, *end;
} files[] = {
#define ROW(symbol, path, name) {name, symbol, symbol##_end},
	FILES(ROW)};

static const char *type_of(const char *name)
{
	return !*name                               ? "text/html; charset=utf-8"
	       : strcmp(name, "page/page.css") == 0 ? "text/css; charset=utf-8"
						    : "text/javascript; charset=utf-8";
}

static struct MHD_Response *file_response(const struct http_page_file *f)
{
	/* the buffer is not modified */
	struct MHD_Response *r = MHD_create_response_from_buffer(
		(size_t)(f->end - f->begin), (void *)(uintptr_t)f->begin,
		MHD_RESPMEM_PERSISTENT);

	return serve_header(r, "Content-Type", type_of(f->name));
}

int serve_page(struct ask *a, struct err *e)
{
	const char *sent;
	char tag[HTTP_TAG_MAX];

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (strcmp(files[i].name, a->rest) != 0)
			continue;
		if (strcmp(files[i].name, WORKER) == 0)
			a->policy = worker_policy;
		(void)snprintf(tag, sizeof(tag), "\"%" PRIx64 "-page-%zu\"", a->s->stamp, i);
		sent = MHD_lookup_connection_value(a->conn, MHD_HEADER_KIND, "If-None-Match");
		if (!http_tag_listed(sent, tag))
			return serve_queue(a, MHD_HTTP_OK,
					   serve_header(file_response(&files[i]), "ETag", tag),
					   e);
		return serve_queue(a, MHD_HTTP_NOT_MODIFIED,
				   serve_header(serve_empty(), "ETag", tag), e);
	}
	return err_set(e, -ENOENT, "not found");
}
