/* SPDX-License-Identifier: BSD-3-Clause */
/* worker_ops.c - the HDF5 kind of isolated source: the work of its processes, and the source's own
 * data in the model's memory. */
#include <string.h>

#include "codecs/plugin/plugin.h"
#include "hdf5view/hdf5view.h"
#include "hdf5view/hdf5/library.h"

static struct isolated *worker_ops_make(void)
{
	struct h5_source *s = alloc_array(1, sizeof(*s));

	if (!s)
		return NULL;
	s->g.base.ops = &hdf5_source_ops;
	(void)pthread_mutex_init(&s->load, NULL);
	return &s->g;
}

static void worker_ops_release(struct isolated *g)
{
	struct h5_source *s = h5_of_isolated(g);

	for (uint32_t i = 0; s->places && i < s->n_places; i++) {
		struct h5_place *p = atomic_load_explicit(&s->places[i], memory_order_acquire);

		if (p)
			h5_index_free(p->index);
		free(p);
	}
	free(s->places);
	free(s->files);
	(void)pthread_mutex_destroy(&s->load);
	free(s);
}

static int worker_ops_set_up(struct isolated *g, struct err *e)
{
	return h5_file_read(g->blob, &h5_of_isolated(g)->raw, e);
}

/* ---- opening, in a child ---- */

/* worker_ops_read_all - read the whole file into the model. h5_lock is held. */
static int worker_ops_read_all(struct h5_build *b, struct err *e)
{
	int rc = h5_open_file(b->src, 0, true, &b->file, e);

	if (rc < 0)
		return rc;
	b->lapl = h5_lapl();
	if (b->lapl < 0)
		return h5_error(e, -ENOMEM, "the HDF5 library cannot be set up");
	rc = h5_walk(b, e);
	rc = rc ? rc : h5_dims_resolve(b, e);
	return rc == 0 ? h5_freeze(b, e) : rc;
}

static int worker_ops_build(struct isolated *g, const void **ret_own, struct err *e)
{
	struct h5_source *s = h5_of_isolated(g);
	struct h5_build b = {.src = s, .arena = &g->base.ds.arena};
	struct h5_own *own;
	int rc;

	buf_init(&b.path, (size_t)1 << 20);
	h5_enter();
	rc = worker_ops_read_all(&b, e);
	/* objects that it then took for absent or damaged, and left out, may exist */
	if (h5_transient_error(NULL) < 0)
		rc = h5_transient_error(e);
	h5_build_release(&b);
	h5_leave();
	if (rc < 0)
		return rc;
	own = arena_alloc(b.arena, 1, sizeof(*own));
	if (own)
		own->files = arena_copy(b.arena, s->files, s->n_files * sizeof(*s->files));
	if (!own || !own->files)
		return h5_full(&b, e);
	own->arrays = s->arrays;
	own->groups = s->groups;
	own->dims = s->dims;
	own->n_files = s->n_files;
	own->n_places = s->n_places;
	*ret_own = own;
	return 0;
}

/* ---- the model's own part ---- */

static bool worker_ops_sound(const struct isolated_verify *v, const void *p)
{
	const struct dataset *ds = v->ds;
	const struct h5_own *own = p;

	if (!ISOLATED_HAS(v, own, 1) || own->n_files > HDF5_FILES_MAX ||
	    own->n_places > ds->n_arrays || !ISOLATED_HAS(v, own->files, own->n_files) ||
	    !ISOLATED_HAS(v, own->arrays, ds->n_arrays) ||
	    !ISOLATED_HAS(v, own->groups, ds->n_groups) ||
	    !ISOLATED_HAS(v, own->dims, ds->n_dims))
		return false;
	for (uint32_t i = 0; i < own->n_files; i++)
		if (!isolated_text(v, own->files[i].path))
			return false;
	for (uint32_t i = 0; i < ds->n_groups; i++)
		if (own->groups[i].file > own->n_files)
			return false;
	for (uint32_t i = 0; i < ds->n_dims; i++)
		if (own->dims[i].file > own->n_files)
			return false;
	for (uint32_t i = 0; i < ds->n_arrays; i++) {
		const struct h5_array *x = &own->arrays[i];

		if (x->file > own->n_files || x->slot >= own->n_places ||
		    x->rank > ds->arrays[i].rank || !ISOLATED_HAS(v, x->extent, x->rank) ||
		    !isolated_flag(&x->pad_unknown) ||
		    (x->raw_path && !isolated_text(v, x->raw_path)))
			return false;
	}
	return true;
}

static int worker_ops_use(struct isolated *g, const void *p, struct err *e)
{
	struct h5_source *s = h5_of_isolated(g);
	const struct h5_own *own = p;

	s->arrays = own->arrays;
	s->groups = own->groups;
	s->dims = own->dims;
	s->n_places = own->n_places;
	s->n_files = own->n_files;
	s->places = alloc_array(own->n_places, sizeof(*s->places));
	s->files = alloc_array(own->n_files, sizeof(*s->files));
	if (!s->places || !s->files)
		return err_nomem(e);
	for (uint32_t i = 0; i < own->n_files; i++) {
		s->files[i] = own->files[i];
		s->files[i].id = 0;
	}
	return 0;
}

/* ---- processes ---- */

static void worker_ops_begin(void)
{
	codec_plugins_local();
	codec_plugins_given();
	h5_enter(); /* before the sandbox: the library reads its surroundings when it starts */
	(void)H5PLset_loading_state(0); /* register_filters.c says which may be used */
	h5_leave();
}

static void worker_ops_run(const struct child_self *self)
{
	isolated_run(&h5_library_kind, self);
}

/* worker_ops_confine - allow the directories of plugins. */
static int worker_ops_confine(struct sandbox_path *paths, size_t n,
			      const struct sandbox_limits *limits, struct err *e)
{
	n += codec_plugins_dirs(paths + n, ISOLATED_PATHS_MAX - n);
	return sandbox_enter(h5_library_kind.child.may, paths, n, limits, e);
}

/* needs - whether reading elements may need plugins: a virtual dataset refers to files that were
 * not inspected. */
static bool needs(const struct isolated *g)
{
	for (uint32_t i = 0; i < g->base.ds.n_arrays; i++) {
		const struct ds_array *a = &g->base.ds.arrays[i];

		if (a->layout == DS_VIRTUAL)
			return true;
		for (uint32_t k = 0; k < a->chain.n; k++) {
			const struct codec_ops *ops = codec_find(a->chain.specs[k].h5_id);

			if (!ops || ops->origin)
				return true;
		}
	}
	return false;
}

/* worker_ops_before - children find the plugins that the forker found; only files that name unknown
 * filters make it look. */
static void worker_ops_before(const void *own, const void *data)
{
	const struct isolated_job *job = own ? own : data;

	if (job->plugins)
		codec_plugins_look();
}

static const struct isolated_library library = {
	.begin = worker_ops_begin,
	.confine = worker_ops_confine,
	.short_of = codec_plugins_short,
	.build = worker_ops_build,
	.chunk = h5_library_chunk,
	.vlen = h5_library_vlen,
};

const struct isolated_kind h5_library_kind = {
	.links = true,
	.child =
		{
			.name = HDF5_WORKER_NAME,
			.who = "the HDF5 library",
			.n_fds = ISOLATED_FDS,
			.may = SANDBOX_OPENS | SANDBOX_LOADS,
			.run = worker_ops_run,
			.before = worker_ops_before,
			.keeps_files = h5_has_files,
			.enter = h5_gate_close,
			.leave = h5_gate_open,
		},
	.library = &library,
	.make = worker_ops_make,
	.release = worker_ops_release,
	.set_up = worker_ops_set_up,
	.needs = needs,
	.sound = worker_ops_sound,
	.use = worker_ops_use,
};

static void set_up_library(void)
{
	h5_enter();
	h5_leave();
}

int hdf5_prepare(struct err *e)
{
	return child_prepare(set_up_library, e);
}
