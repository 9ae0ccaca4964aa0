/* SPDX-License-Identifier: BSD-3-Clause */
/* concat.c - opens and closes a concatenation, and has its table of operations. */
#define LOG_COMPONENT LOG_SOURCE
#include "translate/concat/concat.h"

#include <errno.h>
#include <string.h>

#include "base/observe/log.h"
#include "translate/concat/concat_int.h"

static int concat_init(struct concat *j, const char *pattern, const struct concat_options *opts,
		       struct err *e)
{
	(void)pthread_mutex_init(&j->lock, NULL); /* cannot fail without attributes */
	(void)pthread_cond_init(&j->moved, NULL);
	j->base.ops = &concat_source_ops;
	j->opts = *opts;
	j->source_opts = *opts->source;
	j->pattern = strdup(pattern);
	j->dim = strdup(opts->dim);
	j->shared = chunkio_shared_new(opts->cache_bytes);
	arena_init(&j->base.ds.arena,
		   (size_t)u64_min(opts->source->max_meta_bytes, SIZE_MAX));
	j->index_file = opts->index_file ? strdup(opts->index_file) : NULL;
	j->opts.dim = j->dim;
	j->opts.index_file = j->index_file;
	j->opts.source = &j->source_opts;
	if (!j->pattern || !j->dim || !j->shared || (opts->index_file && !j->index_file))
		return err_nomem(e);
	concat_forms_init(&j->forms, opts->source->max_meta_bytes);
	return 0;
}

/* set_stat - the time of the youngest member, and the size of all files. */
static void set_stat(struct concat *j)
{
	struct stat *st = &j->base.ds.st;

	*st = j->first->ds.st;
	st->st_size = 0;
	for (size_t i = 0; i < j->n_members; i++) {
		const struct concat_id *id = &j->members[i].id;
		struct timespec mtime;

		if (ckd_add(&st->st_size, st->st_size, (off_t)id->v[ID_SIZE]))
			st->st_size = INT64_MAX;
		mtime = (struct timespec){.tv_sec = (time_t)id->v[ID_MTIME],
					  .tv_nsec = (long)id->v[ID_MTIME_NS]};
		if (mtime.tv_sec > st->st_mtim.tv_sec ||
		    (mtime.tv_sec == st->st_mtim.tv_sec && mtime.tv_nsec > st->st_mtim.tv_nsec))
			st->st_mtim = mtime;
	}
}

/* open_first - the first member stays open: its model is the join's. */
static int open_first(struct concat *j, struct err *e)
{
	const struct concat_member *m = &j->members[0];
	struct concat_id id;
	int rc = source_open(j->formats, j->n_formats, m->path, &j->source_opts, &j->first, e);

	if (rc < 0)
		return rc;
	concat_id_of(&j->first->ds.st, &id);
	j->format = j->first->ops;
	if (!concat_id_same(&id, &m->id))
		return err_set(e, -ESTALE, "'%s' changed while it was joined",
			       concat_name(m->path));
	return concat_verify(j, m, j->first, NULL, e);
}

static int open_all(struct concat *j, struct err *e)
{
	uint64_t total = 0;
	int rc = concat_list(j, &j->members, &j->n_members, e);

	if (rc < 0)
		return rc;
	if (j->n_members >= CONCAT_NONE)
		return err_set(e, -ERANGE, "'%s': too many files", concat_name(j->pattern));
	j->slots = alloc_array(j->n_members, sizeof(*j->slots));
	if (!j->slots)
		return err_nomem(e);
	concat_index_load(j);
	rc = concat_scan(j, e);
	concat_index_save(j); /* also of those that could be read when one could not */
	rc = rc ? rc : concat_order(j, &total, e);
	rc = rc ? rc : concat_others_check(j, e);
	rc = rc ? rc : open_first(j, e);
	rc = rc ? rc : concat_model(j, total, e);
	if (rc < 0)
		return rc;
	set_stat(j);
	j->base.unlisted = j->n_members > CONCAT_LISTED;
	j->seen_set = j->poll_set = concat_set_digest(j->members, j->n_members);
	return 0;
}

void concat_free(struct concat *j)
{
	if (!j)
		return;
	concat_close_members(j);
	source_close(j->first);
	for (uint32_t i = 0; j->arrays && i < j->base.ds.n_arrays; i++) {
		free(j->arrays[i].parts);
		free(j->arrays[i].values);
	}
	free(j->arrays);
	concat_members_free(j->members, j->n_members);
	free(j->slots);
	concat_forms_release(&j->forms);
	arena_release(&j->base.ds.arena);
	chunkio_shared_free(j->shared);
	(void)pthread_cond_destroy(&j->moved);
	(void)pthread_mutex_destroy(&j->lock);
	free(j->pattern);
	free(j->dim);
	free(j->index_file);
	free(j);
}

int concat_new(const struct source_ops *const *formats, size_t n, const char *pattern,
	       const struct concat_options *opts, struct concat **ret, struct err *e)
{
	struct concat *j = alloc_array(1, sizeof(*j));
	int rc;

	if (!j)
		return err_nomem(e);
	j->formats = formats;
	j->n_formats = n;
	rc = concat_init(j, pattern, opts, e);
	rc = rc ? rc : open_all(j, e);
	if (rc < 0) {
		concat_free(j);
		return rc;
	}
	*ret = j;
	return 0;
}

int concat_open(const struct source_ops *const *formats, size_t n, const char *pattern,
		const struct concat_options *opts, struct source **ret, struct err *e)
{
	struct concat *j = NULL;
	int rc = concat_new(formats, n, pattern, opts, &j, e);

	if (rc == -ESTALE) /* it changed meanwhile, or the index was wrong, and has been dropped */
		rc = concat_new(formats, n, pattern, opts, &j, e);
	if (rc < 0)
		return rc;
	source_opened(&j->base, pattern);
	*ret = &j->base;
	return 0;
}

const struct source_ops *concat_format(const struct source *s)
{
	return s->ops == &concat_source_ops ? concat_of((struct source *)(uintptr_t)s)->format
					    : s->ops;
}

uint32_t concat_files(const struct source *s)
{
	return s->ops == &concat_source_ops
		       ? (uint32_t)u64_min(concat_of((struct source *)(uintptr_t)s)->n_members,
					   UINT32_MAX)
		       : 1;
}

static void concat_close_source(struct source *s)
{
	concat_free(concat_of(s));
}

/* descriptor - only the first member's: others may be closed at any time. */
static int descriptor(struct source *s, uint32_t blob)
{
	return blob & CONCAT_BLOB_MEMBER ? -1 : source_fd(concat_of(s)->first, blob);
}

static int concat_check(struct source *s, struct err *e)
{
	struct concat *j = concat_of(s);

	if (atomic_load(&j->stale))
		return err_set(e, -ESTALE, "one of the joined files changed");
	return source_check(j->first, e);
}

const struct source_ops concat_source_ops = {
	.name = "concat",
	.close = concat_close_source,
	.locate = concat_locate,
	.next = concat_next,
	.read_chunk = concat_read_chunk,
	.read_vlen = concat_read_vlen,
	.read_stored = concat_read_stored,
	.place = concat_place,
	.fd = descriptor,
	.check = concat_check,
	.poll = concat_poll,
};
