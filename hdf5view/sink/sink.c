/* SPDX-License-Identifier: BSD-3-Clause */
/* sink.c - a netCDF-4 file as a sink: opening, the operations' order, the end. Contracts are in
 * translate/contract/sink.h and hdf5view.h; docs/dev/writing/sink-netcdf.md. */
#include "hdf5view/sink/sink_int.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "hdf5view/journal/journal.h"

#define ARENA_MAX ((size_t)1 << 30)

/* ---- shared with other files ---- */

/* why - the library's last error: releasing ids clears it. h5_lock. */
static char why[200];

static herr_t keep_why(hid_t stack NZ_UNUSED, void *arg NZ_UNUSED)
{
	h5_reason(why, sizeof(why));
	return 0;
}

void hdf5_sink_enter(void)
{
	h5_enter();
	why[0] = '\0';
	(void)H5Eset_auto2(H5E_DEFAULT, keep_why, NULL);
}

int hdf5_sink_reason(const struct h5_sink *s, const char *what, struct err *e)
{
	int rc = s->journal ? h5_journal_failure(s->journal, e) : 0;

	if (rc)
		return rc;
	return why[0] ? err_set(e, -EIO, "%s: %s", what, why) : h5_error(e, -EIO, what);
}

int hdf5_sink_fail(struct h5_sink *s, uint32_t group, uint32_t array, struct err *e)
{
	int rc = hdf5_sink_reason(s, "the HDF5 library cannot change the file", e);

	return nc_err_path(&s->view.ds, group, array, rc, e);
}

/* ---- the changed file, and its commit ---- */

/* check_same - check that the opened file is the one that `real` was made from. */
static int check_same(const struct h5_sink *s, struct err *e)
{
	const struct stat *was = &s->real->g.base.ds.st;
	struct stat st;

	if (fstat(h5_journal_fd(s->journal), &st) < 0)
		return err_sys(e, errno, "'%.200s'", s->path);
	if (st.st_dev != was->st_dev || st.st_ino != was->st_ino)
		return err_set(e, -ESTALE, "'%.200s' is not the file that was opened", s->path);
	if (st.st_size != was->st_size || st.st_mtim.tv_sec != was->st_mtim.tv_sec ||
	    st.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
		return err_set(e, -ESTALE, "'%.200s' was changed after it was opened", s->path);
	return 0;
}

static int file_open(struct h5_sink *s, struct err *e)
{
	auto_hid hid_t fapl = -1; /* the journal's driver, and no cache for chunks */
	int rc = h5_journal_open(s->path, s->dir_fd, &s->journal, e);

	rc = rc ? rc : check_same(s, e);
	if (rc)
		return rc;
	fapl = h5_journal_fapl(s->journal);
	s->file = fapl < 0 || H5Pset_fclose_degree(fapl, H5F_CLOSE_STRONG) < 0 ||
				  H5Pset_cache(fapl, 0, 0, 0, 0) < 0
			  ? -1
			  : H5Fopen(s->path, H5F_ACC_RDWR, fapl);
	if (s->file >= 0)
		return 0;
	return hdf5_sink_reason(s, "the HDF5 library cannot open the file for writing", e);
}

/* file_commit - no id of the file but its own is open. */
static int file_commit(struct h5_sink *s, int (*gate)(void *arg, struct err *e), void *arg,
		       struct err *e)
{
	int rc = 0;

	if (H5Fclose(s->file) < 0)
		rc = hdf5_sink_reason(s, "the HDF5 library cannot write the file", e);
	s->file = 0;
	return rc ? rc : h5_journal_commit(s->journal, gate, arg, e);
}

/* ---- opening and closing ---- */

static void close_objects(struct h5_sink *s)
{
	while (s->n_open > 0) {
		struct hdf5_sink_array *x = &s->arrays[s->open[--s->n_open]];

		h5_id_close(&x->set);
		x->set = 0;
	}
	for (size_t i = 0; i < s->n_moves; i++) {
		h5_id_close(&s->moves[i].held);
		s->moves[i].held = 0;
	}
	for (uint32_t i = 0; s->m && s->b.types && i < s->m->n_types; i++) {
		h5_id_close(&s->b.types[i]);
		s->b.types[i] = 0;
	}
	h5_id_close(&s->b.group);
	s->b.group = 0;
}

static void sink_release(struct h5_sink *s)
{
	for (uint32_t i = 0; s->arrays && i < s->now->ds.n_arrays; i++) {
		free(s->arrays[i].extent);
		free(s->arrays[i].chunk);
	}
	free(s->arrays);
	free(s->group_was);
	free(s->real_array);
	free(s->real_group);
	free(s->shared);
	free(s->dims);
	free(s->moves);
	free(s->scales.at);
	free(s->users.at);
	free(s->b.groups);
	free(s->b.arrays);
	free(s->b.scales);
	free(s->b.types);
	nc_model_free(s->m);
	free(s->plans);
	free(s->shown);
	free(s->shown_dims);
	codec_scratch_free(s->scratch);
	arena_release(&s->arena);
	buf_release(&s->room);
	buf_release(&s->room2);
	free(s->path);
	free(s);
}

static void sink_op_close(struct sink *sink)
{
	struct h5_sink *s = hdf5_sink_of(sink);

	hdf5_sink_enter();
	close_objects(s);
	h5_id_close(&s->file);
	h5_journal_close(s->journal);
	nc_filters_end(&s->filters);
	h5_leave();
	sink_release(s);
}

/* ---- the table: the library is entered here, and nowhere else ---- */

static void sink_leave(const bool *in NZ_UNUSED)
{
	h5_leave();
}

/* IN_LIBRARY - declares that the rest of the scope runs inside the library. */
#define IN_LIBRARY                                                                             \
	__attribute__((cleanup(sink_leave))) const bool in NZ_UNUSED = (hdf5_sink_enter(), true)

static int op_begin(struct sink *sink, struct source *was, struct source *now, struct err *e)
{
	struct h5_sink *s = hdf5_sink_of(sink);

	if (s->now)
		return err_set(e, -EINVAL, "a commit is already in progress");
	s->nothing.ds.groups = &s->root;
	s->nothing.ds.n_groups = 1;
	s->root = (struct ds_group){.name = "", .parent = DS_NONE};
	s->was = was ? was : &s->nothing;
	s->now = now;
	return hdf5_sink_begin(s, e); /* enters the library itself, if necessary */
}

/* OP - an operation that runs inside the library; `s` is its sink. */
#define OP(name, params, ...)                                                                  \
	static int op_##name params                                                            \
	{                                                                                      \
		struct h5_sink *s = hdf5_sink_of(sink);                                        \
		IN_LIBRARY;                                                                    \
                                                                                               \
		return hdf5_sink_##name(__VA_ARGS__);                                          \
	}
OP(remove_array, (struct sink * sink, uint32_t array, struct err *e), s, array, e)
OP(remove_group, (struct sink * sink, uint32_t group, struct err *e), s, group, e)
OP(add_group, (struct sink * sink, uint32_t group, struct err *e), s, group, e)
OP(add_array, (struct sink * sink, uint32_t array, const struct sink_new *how, struct err *e),
   s, array, how, e)
OP(rename_array, (struct sink * sink, uint32_t was, uint32_t now, struct err *e), s, was, now,
   e)
OP(dims, (struct sink * sink, struct err *e), s, e)
OP(resize, (struct sink * sink, uint32_t array, struct err *e), s, array, e)
OP(set_attr,
   (struct sink * sink, uint32_t group, uint32_t array, const struct ds_attr *a, struct err *e),
   s, group, array, a, e)
OP(remove_attr,
   (struct sink * sink, uint32_t group, uint32_t array, const char *name, struct err *e), s,
   group, array, name, e)
OP(target, (struct sink * sink, uint32_t array, struct sink_array *ret, struct err *e), s,
   array, ret, e)
OP(put,
   (struct sink * sink, uint32_t array, uint64_t linear, const struct sink_chunk *c,
    struct err *e),
   s, array, linear, c, e)
OP(drop, (struct sink * sink, uint32_t array, uint64_t linear, struct err *e), s, array, linear,
   e)

static int op_commit(struct sink *sink, int (*gate)(void *arg, struct err *e), void *arg,
		     struct err *e)
{
	struct h5_sink *s = hdf5_sink_of(sink);
	IN_LIBRARY;
	int rc = s->now ? hdf5_sink_dimension_lists(s, e) : 0;

	close_objects(s);
	return rc ? rc : file_commit(s, gate, arg, e);
}

static const struct sink_ops ops = {
	.name = "netCDF-4",
	.close = sink_op_close,
	.begin = op_begin,
	.remove_array = op_remove_array,
	.remove_group = op_remove_group,
	.add_group = op_add_group,
	.add_array = op_add_array,
	.rename_array = op_rename_array,
	.dims = op_dims,
	.resize = op_resize,
	.set_attr = op_set_attr,
	.remove_attr = op_remove_attr,
	.target = op_target,
	.put = op_put,
	.drop = op_drop,
	.commit = op_commit,
};

int hdf5_sink_open(const char *path, struct source *real, int dir_fd, struct sink **ret,
		   struct err *e)
{
	struct h5_sink *s;
	int rc = 0;

	if (real->ops != &hdf5_source_ops)
		return err_set(e, -EINVAL, "'%.200s' is not an HDF5 file", path);
	s = alloc_array(1, sizeof(*s));
	if (!s)
		return err_nomem(e);
	s->base.ops = &ops;
	s->dir_fd = dir_fd;
	s->real = h5_of(real);
	arena_init(&s->arena, ARENA_MAX);
	buf_init(&s->room, SIZE_MAX);
	buf_init(&s->room2, SIZE_MAX);
	s->path = strdup(path);
	s->scratch = codec_scratch_new();
	if (!s->path || !s->scratch)
		rc = err_nomem(e);
	hdf5_sink_enter();
	rc = rc ? rc : file_open(s, e);
	h5_leave();
	if (rc) {
		sink_op_close(&s->base);
		return rc;
	}
	*ret = &s->base;
	return 0;
}
