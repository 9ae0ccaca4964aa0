/* SPDX-License-Identifier: BSD-3-Clause */
/* api.c - answers what the page cannot read from the view's files. */
#include "fusefs/http/http_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/endings.h"
#include "base/core/str.h"

enum {
	ABOUT_MAX = 1 << 20, /* bytes of an answer */
	DATASETS_MAX = 1000, /* datasets of a directory in one answer */
	CHUNKS_MAX = 16384,  /* chunks in one answer */
	CHUNKS_BYTES = CHUNKS_MAX * 24 + 4096,
};

static const char json[] = "application/json";

/* Describing the source. */

static bool http_api_has(struct epoch *ep, const char *name)
{
	struct view *v = ep->view;
	struct view_attr attr;

	if (v->ops->lookup(v, VIEW_ROOT, name, strlen(name), &attr, NULL) < 0)
		return false;
	serve_drop(ep, attr.id);
	return true;
}

/* zarr_format - format version of a Zarr store; 0: not one. */
static int zarr_format(struct epoch *ep)
{
	if (http_api_has(ep, "zarr.json"))
		return 3;
	return http_api_has(ep, ".zgroup") || http_api_has(ep, ".zarray") ? 2 : 0;
}

struct http_api_names {
	struct buf *out;
	size_t n;
};

/* put_dataset - append a directory whose name is that of a Zarr store. */
static bool put_dataset(void *arg, const char *name, uint64_t id NZ_UNUSED, bool is_dir,
			const struct view_attr *attr NZ_UNUSED, uint64_t next NZ_UNUSED)
{
	struct http_api_names *names = arg;

	if (!is_dir || ending_of(name) != ENDING_TREE)
		return true;
	if (names->n++)
		buf_puts(names->out, ", ");
	str_put_json(names->out, name, strlen(name));
	return names->n < DATASETS_MAX && buf_ok(names->out);
}

static int put_about(struct ask *a, struct epoch *ep, struct buf *out, struct err *e)
{
	struct http_api_names names = {.out = out};
	struct view *v = ep->view;
	const struct source *s = v->source;
	int rc = 0, format = zarr_format(ep);

	buf_putc(out, '{');
	str_put_member(out, "source", a->s->setup->cfg->shown);
	str_put_member(out, "version", NCZARRFS_VERSION);
	str_put_member(out, "format",
		       s && s->ds.format ? s->ds.format : "directory");
	buf_printf(out, ", \"zarr\": %d, \"epoch\": %" PRIu64 ", \"notes\": [", format,
		   ep->number);
	for (uint32_t i = 0; s && i < s->ds.n_notes && i < 20; i++) {
		buf_puts(out, i ? ", " : "");
		str_put_json(out, s->ds.notes[i], strlen(s->ds.notes[i]));
	}
	buf_puts(out, "], \"datasets\": [");
	if (!format)
		rc = v->ops->list(v, VIEW_ROOT, 0, false, put_dataset, &names, e);
	buf_puts(out, "]}\n");
	return rc;
}

/* Chunks. */

/* http_api_find_array - find an array by its path in the hierarchy, as it was sent. -ENOENT: no
 * such array. */
static int http_api_find_array(const struct dataset *ds, const char *raw, uint32_t *ret,
			       struct err *e)
{
	struct http_path p;
	auto_buf want = buf_of(HTTP_PATH_MAX);
	auto_buf path = buf_of(HTTP_PATH_MAX);
	int rc = http_path_parse(raw, &p, e);

	for (const char *name = NULL; rc == 0 && (name = http_path_next(&p, name));)
		buf_printf(&want, "/%s", name);
	buf_putc(&want, '\0');
	rc = rc ? rc : -ENOENT;
	for (uint32_t i = 0; rc == -ENOENT && i < ds->n_arrays && buf_ok(&want); i++) {
		const char *text = ds_array_path_text(ds, i, &path);

		if (text && strcmp(text, (const char *)want.data) == 0) {
			*ret = i;
			rc = 0;
		}
	}
	http_path_release(&p);
	return rc == -ENOENT ? err_set(e, rc, "no such array") : rc;
}

static void http_api_put_numbers(struct buf *out, const char *name, const uint64_t *v,
				 uint32_t n)
{
	buf_printf(out, "\"%s\": [", name);
	for (uint32_t i = 0; i < n; i++)
		buf_printf(out, "%s%" PRIu64, i ? ", " : "", v[i]);
	buf_puts(out, "], ");
}

/* put_sizes - append stored sizes of chunks from `from` on: -1 absent, -2 present, but without a
 * stored form of its own. */
static int put_sizes(struct source *s, uint32_t array, uint64_t from, struct buf *out,
		     struct err *e)
{
	const uint64_t n = s->ds.arrays[array].n_chunks;
	struct chunk_ref ref;
	int rc = 0;

	buf_puts(out, "\"sizes\": [");
	for (uint64_t i = from; i < n && i - from < CHUNKS_MAX; i++) {
		rc = source_locate(s, array, i, &ref, e);
		if (rc < 0)
			break;
		if (i > from)
			buf_putc(out, ',');
		if (ref.where == CHUNK_RANGE)
			buf_printf(out, "%" PRIu64, ref.len);
		else
			buf_puts(out, ref.where == CHUNK_ABSENT ? "-1" : "-2");
	}
	buf_puts(out, "]}\n");
	return rc;
}

static int http_api_put_chunks(struct ask *a, struct epoch *ep, struct buf *out, struct err *e)
{
	const char *path = MHD_lookup_connection_value(a->conn, MHD_GET_ARGUMENT_KIND, "array");
	const char *text = MHD_lookup_connection_value(a->conn, MHD_GET_ARGUMENT_KIND, "from");
	struct source *s = ep->view->source;
	const struct ds_array *array;
	uint64_t from = 0;
	uint32_t i = 0;
	int rc;

	if (!path || (text && str_u64(text, strlen(text), UINT64_MAX, &from) < 0))
		return err_set(e, -EINVAL, "the query must be ?array=PATH or "
					   "?array=PATH&from=CHUNK");
	if (!s)
		return err_set(e, -ENOENT, "chunks are listed only if a single dataset is served");
	rc = http_api_find_array(&s->ds, path, &i, e);
	if (rc < 0)
		return rc;
	array = &s->ds.arrays[i];
	buf_puts(out, "{");
	http_api_put_numbers(out, "grid", array->grid, array->rank);
	http_api_put_numbers(out, "chunk", array->chunk, array->rank);
	buf_printf(out, "\"count\": %" PRIu64 ", \"from\": %" PRIu64 ", \"unlisted\": %s, ",
		   array->n_chunks, from, s->unlisted ? "true" : "false");
	if (!s->unlisted)
		return put_sizes(s, i, from, out, e);
	buf_puts(out, "\"sizes\": []}\n"); /* each size would cost a request to a remote server */
	return 0;
}

/* Both requests. */

static int serve_json(struct ask *a, size_t max,
		      int (*put)(struct ask *a, struct epoch *ep, struct buf *out,
				 struct err *e),
		      struct err *e)
{
	struct buf out = buf_of(max);
	struct epoch *ep;
	int rc = epoch_acquire(a->s->fs.live, EPOCHS_ROOT, &ep, e);

	if (rc < 0)
		return rc;
	rc = serve_end(a->s, ep, put(a, ep, &out, e), e);
	if (rc == 0)
		return serve_text(a, MHD_HTTP_OK, json, &out, e);
	buf_release(&out);
	return rc;
}

int serve_about(struct ask *a, struct err *e)
{
	return serve_json(a, ABOUT_MAX, put_about, e);
}

int serve_chunks(struct ask *a, struct err *e)
{
	return serve_json(a, CHUNKS_BYTES, http_api_put_chunks, e);
}
