/* SPDX-License-Identifier: BSD-3-Clause */
/* page.c - the page itself: files compiled into the program, from fusefs/page and the Zarr reader
 * that scripts/page builds. */
#include "fusefs/http/http_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The bytes of a file between two symbols. */
#define FILE_BYTES(symbol, path)                                                                 \
	extern const char symbol[], symbol##_end[];                                              \
	__asm__(".pushsection .rodata\n"                                                         \
		".global " #symbol "\n"                                                          \
		".hidden " #symbol "\n" #symbol ":\n"                                            \
		".incbin \"" path "\"\n"                                                         \
		".global " #symbol "_end\n"                                                      \
		".hidden " #symbol "_end\n" #symbol "_end:\n"                                    \
		".byte 0\n"                                                                      \
		".popsection\n")

FILE_BYTES(page_html, "fusefs/http/page/page.html");
FILE_BYTES(page_css, "fusefs/http/page/page.css");
FILE_BYTES(page_js, "fusefs/http/page/page.js");
FILE_BYTES(page_axes, "fusefs/http/page/axes.js");
FILE_BYTES(page_blosc, "fusefs/http/page/blosc.js");
FILE_BYTES(page_chunks, "fusefs/http/page/chunks.js");
FILE_BYTES(page_colour, "fusefs/http/page/colour.js");
FILE_BYTES(page_data, "fusefs/http/page/data.js");
FILE_BYTES(page_details, "fusefs/http/page/details.js");
FILE_BYTES(page_http, "fusefs/http/page/http.js");
FILE_BYTES(page_picture, "fusefs/http/page/picture.js");
FILE_BYTES(page_reader, "fusefs/http/page/reader.js");
FILE_BYTES(page_text, "fusefs/http/page/text.js");
FILE_BYTES(page_tree, "fusefs/http/page/tree.js");
FILE_BYTES(page_view, "fusefs/http/page/view.js");
FILE_BYTES(page_zarr, PAGE_ZARR);

#define WORKER "page/reader.js"

/* The decoders generate code (embind's invokers). They run in a worker that can reach only the
 * store. */
static const char worker_policy[] = "default-src 'none'; connect-src 'self'; "
				    "script-src 'self' 'wasm-unsafe-eval' 'unsafe-eval'";

static const struct http_page_file {
	const char *name; /* in the path of a request, after its first '/' */
	const char *begin, *end, *type;
} files[] = {
#define JS "text/javascript; charset=utf-8"
	{"", page_html, page_html_end, "text/html; charset=utf-8"},
	{"page/page.css", page_css, page_css_end, "text/css; charset=utf-8"},
	{"page/page.js", page_js, page_js_end, JS},
	{"page/axes.js", page_axes, page_axes_end, JS},
	{"page/blosc.js", page_blosc, page_blosc_end, JS},
	{"page/chunks.js", page_chunks, page_chunks_end, JS},
	{"page/colour.js", page_colour, page_colour_end, JS},
	{"page/data.js", page_data, page_data_end, JS},
	{"page/details.js", page_details, page_details_end, JS},
	{"page/http.js", page_http, page_http_end, JS},
	{"page/picture.js", page_picture, page_picture_end, JS},
	{WORKER, page_reader, page_reader_end, JS},
	{"page/text.js", page_text, page_text_end, JS},
	{"page/tree.js", page_tree, page_tree_end, JS},
	{"page/view.js", page_view, page_view_end, JS},
	{"page/zarr.js", page_zarr, page_zarr_end, JS},
};

static struct MHD_Response *file_response(const struct http_page_file *f)
{
	/* the buffer is not modified */
	struct MHD_Response *r = MHD_create_response_from_buffer(
		(size_t)(f->end - f->begin), (void *)(uintptr_t)f->begin,
		MHD_RESPMEM_PERSISTENT);

	return serve_header(r, "Content-Type", f->type);
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
