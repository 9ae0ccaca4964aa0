/* SPDX-License-Identifier: BSD-3-Clause */
/* writer_filters.c - filters that a writer requested and that the file stores in another form.
 *
 * A writer that has created a variable with Blosc continues to write Blosc, even after a commit. So
 * that it reads what it writes, the view shows such variables with the writer's filters as long as
 * there is a state directory. A list in the state directory has their paths, each with its filters,
 * in the syntax of -o filter=. The same list holds the choices of the first writer of an empty
 * dataset, in lines that begin with an option's name; and, after LAYOUT, the paths of arrays whose
 * chunk keys differ from the mount's, each with its layout: the separator, "c" if keys begin with
 * it, and the lengths of its shards. */
#include "fusefs/write/chunk_set.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/io.h"
#include "base/core/str.h"
#include "codecs/spec/spec.h"

#define LAYOUT '@'
#define FILE_MAX ((size_t)64 << 20)
#define RULES_BYTES ((size_t)128 << 20)
#define TMP COMMIT_CHAINS ".new"

/* ---- the list ---- */

/* writer_filters_load - append the lines "path\tfilters\n" to out; nothing if the file does not
 * exist. */
static int writer_filters_load(int dir_fd, struct buf *out, struct err *e)
{
	auto_fd int fd = openat(dir_fd, COMMIT_CHAINS, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	uint8_t *room;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "'" COMMIT_CHAINS "'");
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "'" COMMIT_CHAINS "'");
	if (st.st_size == 0)
		return 0;
	room = buf_grow(out, (size_t)st.st_size);
	return room ? io_pread(fd, room, (size_t)st.st_size, 0, e) : err_nomem(e);
}

static int writer_filters_store(int dir_fd, const struct buf *text, struct err *e)
{
	int fd = openat(dir_fd, TMP, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);
	int rc;

	if (fd < 0)
		return err_sys(e, errno, "'" TMP "'");
	rc = text->len ? io_pwrite(fd, text->data, text->len, 0, e) : 0;
	rc = rc ? rc : io_sync(fd, true, e);
	(void)close(fd);
	if (rc == 0 && renameat(dir_fd, TMP, dir_fd, COMMIT_CHAINS) < 0)
		rc = err_sys(e, errno, "'" COMMIT_CHAINS "'");
	return rc ? rc : io_sync(dir_fd, true, e);
}

/* writer_filters_next_line - path and filters of the line at *p, which are terminated by NUL.
 * false: no more lines. */
static bool writer_filters_next_line(char **p, char **ret_path, char **ret_chain)
{
	char *end, *tab;

	while (**p) {
		*ret_path = *p;
		end = strchr(*p, '\n');
		*p = end ? end + 1 : *p + strlen(*p);
		if (!end)
			return false;
		*end = '\0';
		tab = strchr(*ret_path, '\t');
		if (!tab)
			continue;
		*tab = '\0';
		*ret_chain = tab + 1;
		return true;
	}
	return false;
}

int commit_chains_note(struct buf *list, const struct dataset *ds, uint32_t array,
		       const struct codec_chain *stored, bool named)
{
	const struct ds_array *a = &ds->arrays[array];
	auto_buf asked = buf_of(FILE_MAX);
	auto_buf has = buf_of(FILE_MAX);

	if (a->rank == 0 || dt_is_vlen(&a->type))
		return 0;
	codec_spec_print(&a->chain, &asked);
	codec_spec_print(stored, &has);
	ds_array_path(ds, array, list);
	buf_putc(list, '\t');
	/* an empty entry means that the array is stored as requested: it replaces an earlier entry.
	 * In Zarr v3 the view would show the filters under another name */
	if ((named && a->chain.n > 0) || asked.len != has.len ||
	    (asked.len > 0 && memcmp(asked.data, has.data, asked.len) != 0)) {
		buf_puts(list, a->chain.n == 0 ? "none" : "");
		buf_put(list, asked.data, asked.len);
	}
	buf_putc(list, '\n');
	list->failed |= !buf_ok(&asked) || !buf_ok(&has);
	return buf_ok(list) ? 0 : -ENOMEM;
}

int commit_chains_keep(int dir_fd, const struct buf *more, struct err *e)
{
	auto_buf text = buf_of(FILE_MAX);
	int rc;

	if (more->len == 0)
		return 0;
	rc = writer_filters_load(dir_fd, &text, e);
	buf_put(&text, more->data, more->len);
	if (rc == 0 && !buf_ok(&text))
		rc = err_nomem(e);
	rc = rc ? rc : writer_filters_store(dir_fd, &text, e);
	return rc;
}

/* ---- choices of the first writer ---- */

#define FORMAT "zarr_format"

int commit_form_note(int dir_fd, int zarr_format, struct err *e)
{
	auto_buf more = buf_of(256);

	buf_printf(&more, FORMAT "\t%d\n", zarr_format);
	return commit_chains_keep(dir_fd, &more, e);
}

/* set_format - set the format, and the defaults that depend on it. */
static void set_format(const struct cfg *cfg, bool v3, struct cfg_zarr *ret)
{
	ret->zarr3 = v3;
	if (!cfg_said(cfg, "dimension_separator"))
		ret->nested = v3 && !ret->v2_keys;
	if (!cfg_said(cfg, "json_nan"))
		ret->strict_json = v3;
}

int commit_form(const struct cfg *cfg, int dir_fd, struct cfg_zarr *ret, struct err *e)
{
	char *at, *name, *value;
	struct buf text;
	int rc;

	*ret = cfg->zarr;
	buf_init(&text, FILE_MAX + 1);
	rc = writer_filters_load(dir_fd, &text, e);
	buf_putc(&text, '\0');
	if (rc == 0 && !buf_ok(&text))
		rc = err_nomem(e);
	at = (char *)text.data;
	while (rc == 0 && writer_filters_next_line(&at, &name, &value))
		if (strcmp(name, FORMAT) == 0)
			set_format(cfg, strcmp(value, "3") == 0, ret);
	buf_release(&text);
	return rc;
}

/* ---- layouts ---- */

/* writer_filters_split - append the lines of layouts in text to ret_layouts, all others to
 * ret_others. */
static void writer_filters_split(const struct buf *text, struct buf *ret_layouts,
				 struct buf *ret_others)
{
	for (size_t at = 0; at < text->len;) {
		const uint8_t *line = text->data + at, *end;
		size_t n = text->len - at;

		end = memchr(line, '\n', n);
		n = end ? (size_t)(end - line) + 1 : n;
		buf_put(line[0] == LAYOUT ? ret_layouts : ret_others, line, n);
		at += n;
	}
}

/* put_layouts - append a line for each array with its own layout. */
static void put_layouts(const struct cfg_zarr *zarr, struct source *now, struct buf *out)
{
	const bool lead = zarr->zarr3 && !zarr->v2_keys;

	for (uint32_t i = 0; i < now->ds.n_arrays; i++) {
		struct plan_layout x;

		zarr_source_layout(now, i, &x);
		if (x.nested == zarr->nested && x.lead == lead && x.rank == 0 &&
		    zarr->shard_size == 0)
			continue;
		buf_putc(out, LAYOUT);
		ds_array_path(&now->ds, i, out);
		buf_printf(out, "\t%c%s", x.nested ? '/' : '.', x.lead ? "c" : "");
		for (uint32_t d = 0; d < x.rank; d++)
			buf_printf(out, " %" PRIu64, x.shard[d]);
		buf_putc(out, '\n');
	}
}

int commit_layouts_keep(const struct cfg *cfg, int dir_fd, struct source *now, struct err *e)
{
	auto_buf text = buf_of(FILE_MAX);
	auto_buf old = buf_of(FILE_MAX);
	auto_buf new = buf_of(FILE_MAX);
	struct cfg_zarr zarr;
	int rc = commit_form(cfg, dir_fd, &zarr, e);

	if (rc < 0)
		return rc;
	put_layouts(&zarr, now, &new);
	rc = writer_filters_load(dir_fd, &text, e);
	if (rc == 0) {
		struct buf all;

		buf_init(&all, FILE_MAX);
		writer_filters_split(&text, &old, &all);
		buf_put(&all, new.data, new.len);
		if (!buf_ok(&old) || !buf_ok(&new) || !buf_ok(&all))
			rc = err_nomem(e);
		else if (old.len != new.len ||
			 (new.len && memcmp(old.data, new.data, new.len) != 0))
			rc = writer_filters_store(dir_fd, &all, e);
		buf_release(&all);
	}
	return rc;
}

static int writer_filters_by_path(const void *a, const void *b)
{
	return strcmp(((const struct plan_layout *)a)->path,
		      ((const struct plan_layout *)b)->path);
}

/* ---- a view with these filters ---- */

/* writer_filters_free - the rules of a view end with it. */
static void writer_filters_free(void *arg)
{
	fs_rules_release(arg);
	free(arg);
}

/* escaped - a path as a pattern that matches only it; in the arena. */
static const char *escaped(struct arena *a, const char *path)
{
	char *out = arena_alloc(a, 2 * strlen(path) + 1, 1);
	size_t n = 0;

	for (; out && *path; path++) {
		if (strchr("\\&*?[]", *path))
			out[n++] = '\\';
		out[n++] = *path;
	}
	return out;
}

static int add_layout(struct fs_rules *own, const char *path, const char *form,
		      struct plan_layout *ret)
{
	uint64_t *shard = arena_alloc(&own->arena, DS_RANK_MAX, sizeof(*shard));
	const char *at = strchr(form, ' ');

	*ret = (struct plan_layout){
		.path = arena_strdup(&own->arena, path),
		.nested = form[0] == '/',
		.lead = form[0] && form[1] == 'c',
		.shard = shard,
	};
	for (; at && shard && ret->rank < DS_RANK_MAX; at = strchr(at, ' ')) {
		size_t n = strcspn(++at, " ");

		if (str_u64(at, n, UINT64_MAX, &shard[ret->rank++]) < 0)
			return -EBADMSG;
	}
	return ret->path && shard ? 0 : -ENOMEM;
}

/* add_rules - append to the existing rules; the later of two for one path applies. */
static int add_rules(struct fs_rules *own, const struct fs_rules *first, char *text,
		     uint32_t lines, struct err *e)
{
	uint32_t n = first ? first->filters.n : 0;
	struct codec_rule *v = arena_alloc(&own->arena, (size_t)n + lines, sizeof(*v));
	struct plan_layout *layouts = arena_alloc(&own->arena, lines, sizeof(*layouts));
	uint32_t n_layouts = 0;
	char *path, *chain;

	if (!v || !layouts)
		return err_nomem(e);
	if (n > 0)
		memcpy(v, first->filters.v, n * sizeof(*v));
	while (writer_filters_next_line(&text, &path, &chain)) {
		struct codec_rule *r = &v[n];

		if (path[0] == LAYOUT) {
			int rc = add_layout(own, path + 1, chain, &layouts[n_layouts]);

			if (rc == -ENOMEM)
				return err_nomem(e);
			n_layouts += rc == 0;
		}
		if (path[0] != '/')
			continue;
		*r = (struct codec_rule){.vars = escaped(&own->arena, path)};
		if (!r->vars)
			return err_nomem(e);
		r->none = strcmp(chain, "none") == 0;
		r->exact = true;
		for (uint32_t i = first ? first->filters.n : 0; i < n; i++)
			if (strcmp(v[i].vars, r->vars) == 0)
				v[i].vars = "/"; /* matches no variable */
		if (chain[0] == '\0' ||
		    (!r->none && codec_spec_parse(&own->arena, chain, strlen(chain),
						  &r->chain, NULL) < 0))
			continue;
		n++;
	}
	own->filters = (struct codec_rules){n, v};
	qsort(layouts, n_layouts, sizeof(*layouts), writer_filters_by_path);
	own->layouts = (struct plan_layouts){n_layouts, layouts};
	return 0;
}

int commit_tree_view(const struct app *setup, struct source *s, const struct view_request *want,
		     int dir_fd, struct view **ret, struct err *e)
{
	struct view_request with = *want;
	struct fs_rules *own;
	struct cfg cfg = *setup->cfg;
	auto_buf text = buf_of(FILE_MAX + 1);
	uint32_t lines = 0;
	int rc = commit_form(setup->cfg, dir_fd, &cfg.zarr, e);

	rc = rc ? rc : writer_filters_load(dir_fd, &text, e);
	for (size_t i = 0; rc == 0 && i < text.len; i++)
		lines += text.data[i] == '\n';
	buf_putc(&text, '\0');
	if (rc == 0 && (lines == 0 || !buf_ok(&text)))
		return setup->view_open(s, &cfg, want, ret, e);
	own = rc == 0 ? alloc_array(1, sizeof(*own)) : NULL;
	if (!own) {
		source_close(s);
		return rc ? rc : err_nomem(e);
	}
	arena_init(&own->arena, RULES_BYTES);
	if (want->rules)
		own->quants = want->rules->quants;
	rc = add_rules(own, want->rules, (char *)text.data, lines, e);
	with.rules = own;
	if (rc < 0)
		source_close(s);
	rc = rc ? rc : setup->view_open(s, &cfg, &with, ret, e);
	if (rc < 0) {
		writer_filters_free(own);
		return rc;
	}
	(*ret)->closed = writer_filters_free;
	(*ret)->owner = own;
	return 0;
}
