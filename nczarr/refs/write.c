/* SPDX-License-Identifier: BSD-3-Clause */
/* write.c - references to the chunks of a view, in the order of the view.
 *
 * There is no state per chunk, so that memory does not grow with their number. A chunk that is not
 * stored as presented is written inline if that is allowed; otherwise its array is an error. */
#include "nczarr/refs/write_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/core/utf8.h"
#include "base/os/url.h"
#include "nczarr/view/view.h"

#define PATH_LONG ((size_t)1 << 20)
#define PROGRESS_CHUNKS 4096 /* between two reports */

struct refs_write_walk {
	struct source *s;
	struct view *v;
	const struct refs_options *opts;
	const struct refs_out *out;
	const struct zr_visible *visible;
	const char *group;  /* of the dataset */
	bool out_failed;    /* a function of `out` returned an error */
	uint64_t done, all; /* chunks */
	uint64_t next;      /* value of done + at for the next report */
	struct refs_prefetch *prefetch;
	bool encode;     /* the address is a URL: keys are percent-encoded */
	struct buf dir;  /* key of a group or array with '/' at its end, or "" */
	struct buf text; /* of a document, or an inline chunk */
	struct buf key;  /* of an object, relative to the source's address */
	struct buf url;
};

static int put_nul(struct buf *b, struct err *e)
{
	buf_putc(b, '\0');
	if (!buf_ok(b))
		return err_nomem(e);
	b->len--;
	return 0;
}

/* from_out - the result of a function of `out`. */
static int from_out(struct refs_write_walk *w, int rc)
{
	w->out_failed |= rc < 0;
	return rc;
}

/* set_dir - w->dir for a group or an array. */
static int set_dir(struct refs_write_walk *w, bool is_array, uint32_t ord, struct err *e)
{
	const struct dataset *ds = &w->s->ds;

	buf_clear(&w->dir);
	buf_puts(&w->dir, w->group);
	if (is_array)
		ds_array_path(ds, ord, &w->dir);
	else
		ds_group_path(ds, ord, &w->dir);
	/* "/a/b" to "a/b", "/" to "" */
	if (buf_ok(&w->dir) && w->dir.len > 0 && w->dir.data[0] == '/')
		memmove(w->dir.data, w->dir.data + 1, --w->dir.len);
	if (buf_ok(&w->dir) && w->dir.len > 0 && w->dir.data[w->dir.len - 1] != '/')
		buf_putc(&w->dir, '/');
	return put_nul(&w->dir, e);
}

static int put_docs(struct refs_write_walk *w, bool is_array, uint32_t ord, struct err *e)
{
	const struct zr_docs *docs = zr_view_docs(w->v, is_array, ord);
	const size_t keep = w->dir.len;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < docs->n; i++) {
		const struct zr_node n = {.kind = ZR_DOC, .doc = docs->doc[i], .ord = ord};

		if (zr_doc_of_all(n.doc) && !w->out->all)
			continue;
		buf_clear(&w->text);
		rc = zr_view_file(w->v, &n, &w->text, e);
		w->dir.len = keep;
		buf_puts(&w->dir, zr_doc_file(n.doc));
		rc = rc ? rc : put_nul(&w->dir, e);
		if (rc == 0)
			rc = from_out(w, w->out->doc(w->out->arg, (const char *)w->dir.data,
						     &w->text, e));
	}
	w->dir.len = keep;
	return rc ? rc : put_nul(&w->dir, e);
}

/* put_url - set w->url from w->key. full: the key is an address or path of its own. */
static int put_url(struct refs_write_walk *w, bool full, struct err *e)
{
	const char *key = w->key.data ? (const char *)w->key.data : "";
	size_t len = w->key.len;
	const char *folder = w->opts->folder;
	const size_t n = folder ? strlen(folder) : 0;

	buf_clear(&w->url);
	if (full && folder) { /* the key becomes one below the address */
		if (len <= n || strncmp(key, folder, n) != 0 ||
		    (key[n] != '/' && folder[n - 1] != '/'))
			return err_set(e, -EINVAL,
				       "'%.*s' is not below '%s', which -o address "
				       "replaces",
				       (int)u64_min(len, 200), key, folder);
		key += n + (key[n] == '/');
		len = w->key.len - (size_t)(key - (const char *)w->key.data);
		full = false;
	}
	if (!full && len > 0 && w->encode && strpbrk(w->opts->address, "?#"))
		return err_set(e, -EINVAL,
			       "'%.200s' has a query or a fragment, so that it cannot be the "
			       "address of a directory",
			       w->opts->address);
	if (!full)
		buf_puts(&w->url, w->opts->address);
	if (!full && len > 0 && (w->url.len == 0 || w->url.data[w->url.len - 1] != '/'))
		buf_putc(&w->url, '/');
	if (full || !w->encode)
		buf_put(&w->url, key, len);
	else
		url_encode(&w->url, key, len, true);
	if (buf_ok(&w->url) && !utf8_ok(w->url.data, w->url.len))
		return err_set(e, -EILSEQ,
			       "'%.*s' is not UTF-8, which references cannot express: rename it",
			       (int)u64_min(w->url.len, 400), (const char *)w->url.data);
	if (w->out->templates && memmem(w->url.data, w->url.len, "{{", 2))
		return err_set(e, -EOPNOTSUPP,
			       "readers may take '{{' in its address for a template: write "
			       "Parquet, or rename it");
	return 0;
}

/* find_url - set w->url for a chunk that is stored as presented. -EOPNOTSUPP: external readers
 * cannot locate it. */
static int find_url(struct refs_write_walk *w, uint32_t array, uint64_t linear,
		    const struct chunk_ref *ref, struct refs_chunk *ret, struct err *e)
{
	struct store_place at = {.key = &w->key};
	int rc;

	buf_clear(&w->key);
	rc = source_place(w->s, array, linear, ref, &at, e);
	if (rc)
		return rc;
	rc = put_url(w, at.full, e);
	if (rc)
		return rc;
	rc = put_nul(&w->url, e);
	*ret = (struct refs_chunk){.url = (const char *)w->url.data,
				   .whole = at.whole,
				   .off = at.off,
				   .len = ref->len};
	return rc;
}

/* refs_write_refuse - the error for an array without references, with advice. */
static int refs_write_refuse(struct refs_write_walk *w, uint32_t array, uint64_t linear,
			     const char *why, int code, struct err *e)
{
	const char *advice = w->opts->inlined ? "it cannot be embedded either"
					      : "add -o inline to embed such chunks";
	auto_buf path = buf_of(PATH_LONG);
	size_t cut;

	ds_array_path(&w->s->ds, array, &path);
	cut = path.len > 120 ? path.len - 120 : 0;
	if (dt_is_vlen(&w->s->ds.arrays[array].type))
		code = err_set(e, code,
			       "'%.*s' holds elements of variable length, such as strings, "
			       "which references cannot point to: %s",
			       (int)(path.len - cut), (const char *)path.data + cut, advice);
	else
		code = err_set(e, code,
			       "'%.*s': references cannot point to chunk %" PRIu64
			       ": %.150s: %s",
			       (int)(path.len - cut), (const char *)path.data + cut, linear,
			       why, advice);
	return code;
}

/* put_inline - append an inline chunk. */
static int put_inline(struct refs_write_walk *w, uint32_t array, uint64_t linear,
		      const char *why, struct refs_chunk *ret, struct err *e)
{
	const struct zr_node n = {.kind = ZR_CHUNK, .ord = array, .index = linear};
	struct err own = ERR_INIT;
	size_t max = w->text.max;
	int rc;

	if (!w->opts->inlined)
		return refs_write_refuse(w, array, linear, why, -EOPNOTSUPP, e);
	buf_clear(&w->text);
	w->text.max = (size_t)u64_min(w->opts->max_inline, SIZE_MAX);
	rc = zr_view_file(w->v, &n, &w->text, &own);
	w->text.max = max;
	if (rc == -ERANGE || rc == -EOPNOTSUPP || rc == -EBADMSG)
		return refs_write_refuse(w, array, linear, own.msg, rc, e);
	if (rc)
		return err_set(e, rc, "%s", own.msg);
	*ret = (struct refs_chunk){.data = w->text.data, .len = w->text.len};
	if (!ret->data)
		ret->data = (const uint8_t *)"";
	return 0;
}

/* why_not - the reason why a chunk is not stored as presented. */
static const char *why_not(const struct plan *plan, const struct chunk_ref *ref)
{
	if (ref->where == CHUNK_ABSENT)
		return "it was never written, and the variable has no _FillValue that readers "
		       "see";
	return plan->kind == PLAN_PASS
		       ? "it is stored in another form than the rest of its array"
		       : plan->reason;
}

/* find_chunk - locate a chunk, or read its bytes. -ENOENT: it was never written. */
static int find_chunk(struct refs_write_walk *w, uint32_t array, uint64_t linear,
		      struct refs_chunk *ret, struct err *e)
{
	const struct plan *plan = &w->visible->plans[array];
	struct chunk_ref ref;
	struct err why = ERR_INIT;
	int rc = zr_view_stored(w->v, array, linear, &ref, e);

	if (rc)
		return rc;
	if (ref.where != CHUNK_RANGE || ref.len == 0)
		return put_inline(w, array, linear, why_not(plan, &ref), ret, e);
	rc = find_url(w, array, linear, &ref, ret, &why);
	if (rc == -EOPNOTSUPP)
		return put_inline(w, array, linear, why.msg, ret, e);
	return rc ? err_set(e, rc, "%s", why.msg) : 0;
}

/* try_array - check an array's first chunk for errors before any output. */
static int try_array(struct refs_write_walk *w, uint32_t array, struct err *e)
{
	struct refs_chunk c;
	uint64_t at = 0;
	int rc;

	if (w->visible->plans[array].kind == PLAN_ERROR)
		return refs_write_refuse(w, array, 0, w->visible->plans[array].reason,
					 -EOPNOTSUPP, e);
	rc = zr_view_next(w->v, array, 0, &at, e);
	if (rc == 0 && !w->opts->inlined)
		rc = find_chunk(w, array, at, &c, e);
	return rc == -ENOENT ? 0 : rc;
}

/* report - before chunk `at` of an array. */
static void report(struct refs_write_walk *w, uint64_t at)
{
	if (!w->opts->progress || w->done + at < w->next)
		return;
	w->next = w->done + at + PROGRESS_CHUNKS;
	w->opts->progress(w->opts->progress_arg, w->done + at, w->all);
}

static int refs_write_put_chunks(struct refs_write_walk *w, uint32_t array, struct err *e)
{
	const struct zr_grid *g = &w->visible->named[array];
	const struct ds_array *a = &w->s->ds.arrays[array];
	char name[ZR_KEY_MAX];
	struct refs_chunk c;
	int rc;

	/* along another dimension than the first, chunks do not follow the order of the files */
	refs_prefetch_array(w->prefetch, array, a->rank && a->grid[0] >= w->opts->files ? g->n : 0);
	for (uint64_t at = 0; at < g->n; at++) {
		report(w, at);
		refs_prefetch_at(w->prefetch, at);
		rc = zr_view_next(w->v, array, at, &at, e);
		if (rc == -ENOENT)
			return 0;
		rc = rc ? rc : find_chunk(w, array, at, &c, e);
		if (rc == -ENOENT)
			continue;
		zr_key_format(g, at, name);
		rc = rc ? rc : from_out(w, w->out->chunk(w->out->arg, name, at, &c, e));
		if (rc)
			return rc;
	}
	return 0;
}

static int refs_write_put_array(struct refs_write_walk *w, uint32_t array, struct err *e)
{
	int rc = set_dir(w, true, array, e);

	rc = rc ? rc : put_docs(w, true, array, e);
	if (rc)
		return rc;
	if (w->dir.len > 0)
		w->dir.data[w->dir.len - 1] = '\0';
	rc = from_out(w, w->out->begin(w->out->arg, (const char *)w->dir.data,
				       w->visible->named[array].n, e));
	rc = rc ? rc : refs_write_put_chunks(w, array, e);
	w->done += w->visible->named[array].n;
	return rc || !w->out->end ? rc : from_out(w, w->out->end(w->out->arg, e));
}

static int refs_write_put_all(struct refs_write_walk *w, struct err *e)
{
	const struct dataset *ds = &w->s->ds;
	int rc = 0;

	for (uint32_t a = 0; rc == 0 && a < ds->n_arrays; a++)
		if (!w->visible->hidden_arrays[a]) {
			rc = try_array(w, a, e);
			w->all += w->visible->named[a].n;
		}
	for (uint32_t g = 0; rc == 0 && g < ds->n_groups; g++) {
		const struct ds_group *group = &ds->groups[g];

		if (w->visible->hidden_groups[g])
			continue;
		rc = set_dir(w, false, g, e);
		rc = rc ? rc : put_docs(w, false, g, e);
		for (uint32_t i = 0; rc == 0 && i < group->n_arrays; i++)
			if (!w->visible->hidden_arrays[group->arrays[i]])
				rc = refs_write_put_array(w, group->arrays[i], e);
	}
	return rc;
}

int refs_walk(struct source *s, struct view *v, const char *group,
	      const struct refs_options *opts, const struct refs_out *out, bool *ret_out,
	      struct err *e)
{
	struct refs_write_walk w = {.s = s,
				    .v = v,
				    .group = group,
				    .opts = opts,
				    .out = out,
				    .dir = buf_of(PATH_LONG),
				    .text = buf_of(SIZE_MAX / 2),
				    .key = buf_of(PATH_LONG),
				    .url = buf_of(PATH_LONG)};
	int rc;

	*ret_out = false;
	w.visible = zr_view_visible(v);
	if (!w.visible || w.visible->format->version != 2)
		return err_set(e, -EINVAL,
			       "references can point to the chunks of a Zarr v2 store only");
	w.encode = strncmp(opts->address, "http://", 7) == 0 ||
		   strncmp(opts->address, "https://", 8) == 0;
	w.prefetch = refs_prefetch_new(v, opts);
	rc = refs_write_put_all(&w, e);
	refs_prefetch_free(w.prefetch);
	*ret_out = w.out_failed;
	buf_release(&w.dir);
	buf_release(&w.text);
	buf_release(&w.key);
	buf_release(&w.url);
	return rc;
}
