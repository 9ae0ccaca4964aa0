/* concat.c - opening and closing what is joined, and the table of operations. */
#define LOG_COMPONENT LOG_SOURCE
#include "translate/concat/concat.h"

#include <errno.h>
#include <string.h>

#include "base/observe/log.h"
#include "translate/concat/concat_int.h"

static int init(struct join *j, const char *pattern, const struct join_options *opts,
		struct err *e)
{
	(void)pthread_mutex_init(&j->lock, NULL); /* cannot fail without attributes */
	(void)pthread_cond_init(&j->moved, NULL);
	j->base.ops = &join_source_ops;
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
	return join_forms_init(&j->forms, opts->source->max_meta_bytes, e);
}

/* set_stat - the time of what was changed last, and the size of all files. */
static void set_stat(struct join *j)
{
	struct stat *st = &j->base.ds.st;

	*st = j->first->ds.st;
	st->st_size = 0;
	for (size_t i = 0; i < j->n_members; i++) {
		const struct join_id *id = &j->members[i].id;

		if (ckd_add(&st->st_size, st->st_size, (off_t)id->size))
			st->st_size = INT64_MAX;
		if (id->mtime_s > st->st_mtim.tv_sec ||
		    (id->mtime_s == st->st_mtim.tv_sec && id->mtime_ns > st->st_mtim.tv_nsec))
			st->st_mtim = (struct timespec){.tv_sec = id->mtime_s,
							.tv_nsec = id->mtime_ns};
	}
}

/* open_first - the first member stays open: its model is the join's. */
static int open_first(struct join *j, struct err *e)
{
	const struct join_member *m = &j->members[0];
	struct join_id id;
	int rc = source_open(j->formats, j->n_formats, m->path, &j->source_opts, &j->first, e);

	if (rc < 0)
		return rc;
	join_id_of(&j->first->ds.st, &id);
	j->format = j->first->ops;
	if (!join_id_same(&id, &m->id))
		return err_set(e, -ESTALE, "'%s' changed while it was joined",
			       join_name(m->path));
	return join_verify(j, m, j->first, e);
}

static int open_all(struct join *j, struct err *e)
{
	uint64_t total = 0;
	int rc = join_list(j, &j->members, &j->n_members, e);

	if (rc < 0)
		return rc;
	if (j->n_members >= JOIN_NONE)
		return err_set(e, -ERANGE, "'%s': too many files", join_name(j->pattern));
	j->slots = alloc_array(j->n_members, sizeof(*j->slots));
	if (!j->slots)
		return err_nomem(e);
	join_index_load(j);
	rc = join_scan(j, e);
	join_index_save(j); /* also of those that could be read when one could not */
	if (rc == 0)
		rc = join_order(j, &total, e);
	if (rc == 0)
		rc = join_others_check(j, e);
	if (rc == 0)
		rc = open_first(j, e);
	if (rc == 0)
		rc = join_model(j, total, e);
	if (rc < 0)
		return rc;
	set_stat(j);
	j->base.unlisted = j->n_members > JOIN_LISTED;
	j->seen_set = j->poll_set = join_set_digest(j->members, j->n_members);
	return 0;
}

void join_free(struct join *j)
{
	if (!j)
		return;
	join_close_members(j);
	source_close(j->first);
	for (uint32_t i = 0; j->arrays && i < j->base.ds.n_arrays; i++) {
		free(j->arrays[i].parts);
		free(j->arrays[i].values);
	}
	free(j->arrays);
	join_members_free(j->members, j->n_members);
	free(j->slots);
	join_forms_release(&j->forms);
	arena_release(&j->base.ds.arena);
	chunkio_shared_free(j->shared);
	(void)pthread_cond_destroy(&j->moved);
	(void)pthread_mutex_destroy(&j->lock);
	free(j->pattern);
	free(j->dim);
	free(j->index_file);
	free(j);
}

int join_new(const struct source_ops *const *formats, size_t n, const char *pattern,
	     const struct join_options *opts, struct join **ret, struct err *e)
{
	struct join *j = alloc_array(1, sizeof(*j));
	int rc;

	if (!j)
		return err_nomem(e);
	j->formats = formats;
	j->n_formats = n;
	rc = init(j, pattern, opts, e);
	if (rc == 0)
		rc = open_all(j, e);
	if (rc < 0) {
		join_free(j);
		return rc;
	}
	*ret = j;
	return 0;
}

int join_open(const struct source_ops *const *formats, size_t n, const char *pattern,
	      const struct join_options *opts, struct source **ret, struct err *e)
{
	struct join *j = NULL;
	int rc = join_new(formats, n, pattern, opts, &j, e);

	if (rc == -ESTALE) /* it changed meanwhile, or the index was not true: it is gone */
		rc = join_new(formats, n, pattern, opts, &j, e);
	if (rc < 0)
		return rc;
	source_opened(&j->base, pattern);
	*ret = &j->base;
	return 0;
}

const struct source_ops *join_format(const struct source *s)
{
	return s->ops == &join_source_ops
		       ? ((const struct join *)(const void *)((const char *)s -
							       offsetof(struct join, base)))
				 ->format
		       : s->ops;
}

static void close_source(struct source *s)
{
	join_free(join_of(s));
}

/* descriptor - only the first member's: others may be closed at any time. */
static int descriptor(struct source *s, uint32_t blob)
{
	return blob & JOIN_BLOB_MEMBER ? -1 : source_fd(join_of(s)->first, blob);
}

static int check(struct source *s, struct err *e)
{
	struct join *j = join_of(s);

	if (atomic_load(&j->stale))
		return err_set(e, -ESTALE, "one of the joined files changed");
	return source_check(j->first, e);
}

const struct source_ops join_source_ops = {
	.name = "concat",
	.close = close_source,
	.locate = join_locate,
	.next = join_next,
	.read_chunk = join_read_chunk,
	.read_vlen = join_read_vlen,
	.read_stored = join_read_stored,
	.place = join_place,
	.fd = descriptor,
	.check = check,
	.poll = join_poll,
};
