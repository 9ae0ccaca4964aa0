/* SPDX-License-Identifier: BSD-3-Clause */
/* source.c - Scientific Data Sets of HDF4 files as a source: the table of operations, and the HDF4
 * kind of isolated source. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hdf5view/hdf4/hdf4_int.h"
#include "hdf5view/hdf5view.h"
#include "translate/model/grid.h"

#ifdef NCZARRFS_HDF4
#include "hdf5view/hdf4/hdf4_library.h"
#endif

static int bid(const struct source_at *at, struct err *e)
{
	static const uint8_t magic[4] = {0x0e, 0x03, 0x13, 0x01};
	uint8_t head[sizeof(magic)];
	int rc;

	if (!at->file || at->file->size < sizeof(head))
		return 0;
	rc = blob_read(at->file, 0, head, sizeof(head), e);
	return rc < 0 ? rc : memcmp(head, magic, sizeof(magic)) == 0 ? 10 : 0;
}

#ifdef NCZARRFS_HDF4

static struct isolated *make(void)
{
	struct h4_source *s = alloc_array(1, sizeof(*s));

	if (!s)
		return NULL;
	s->g.base.ops = &hdf4_source_ops;
	return &s->g;
}

static void release(struct isolated *g)
{
	free(h4_of(g));
}

static bool sound(const struct isolated_verify *v, const void *p)
{
	const struct h4_array *own = p;

	if (!ISOLATED_HAS(v, own, v->ds->n_arrays))
		return false;
	for (uint32_t i = 0; i < v->ds->n_arrays; i++) {
		const struct ds_array *a = &v->ds->arrays[i];
		const struct h4_array *x = &own[i];

		if (a->rank > H4_RANK_MAX || dt_is_vlen(&a->type) ||
		    !ISOLATED_HAS(v, x->extent, a->rank) ||
		    !ISOLATED_HAS(v, x->places, x->n_places))
			return false;
		if (x->n_places != 0 && x->n_places != (x->one_piece ? 1 : a->n_chunks))
			return false;
	}
	return true;
}

static int use(struct isolated *g, const void *p, struct err *e NZ_UNUSED)
{
	h4_of(g)->arrays = p;
	return 0;
}

static void run(const struct child_self *self);

static const struct isolated_library library = {
	.build = h4_build_model,
	.chunk = h4_chunk,
};

static const struct isolated_kind h4_kind = {
	.child =
		{
			.name = H4_WORKER_NAME,
			.who = "the HDF4 library",
			.n_fds = ISOLATED_FDS,
			.may = SANDBOX_OPENS,
			.run = run,
		},
	.library = &library,
	.make = make,
	.release = release,
	.sound = sound,
	.use = use,
};

static void run(const struct child_self *self)
{
	isolated_run(&h4_kind, self);
}

static int open_source(const struct source_at *at, const struct source_options *opts,
		       struct source **ret, struct err *e)
{
	struct source_at copy = *at;
	int rc;

	if (at->fd >= 0)
		return isolated_open(&h4_kind, at, opts, ret, e);
	rc = h4_fetch(at->file, opts->open_timeout_ms, &copy.fd, e);
	if (rc < 0)
		return rc;
	rc = fstat(copy.fd, &copy.st) < 0 ? err_sys(e, errno, "cannot examine its copy") : 0;
	copy.st.st_mode = at->st.st_mode;
	rc = rc ? rc : isolated_open(&h4_kind, &copy, opts, ret, e);
	if (rc < 0)
		(void)close(copy.fd); /* it is never read */
	return rc;
}

static int locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
		  struct err *e)
{
	const struct ds_array *a = &s->ds.arrays[array];
	const struct h4_array *x = &h4_of(isolated_of(s))->arrays[array];
	struct chunk_ref out = {.where = CHUNK_SYNTH};
	uint64_t size = (uint64_t)s->ds.st.st_size, at[DS_RANK_MAX];

	if (a->unreadable)
		return err_set(e, -EOPNOTSUPP, "%s", a->unreadable);
	if (x->empty) {
		out.where = CHUNK_ABSENT;
	} else if (x->n_places && x->one_piece) {
		out.where = CHUNK_RANGE;
		ds_chunk_coords(a, linear, at);
		(void)ds_split_range(a, 0, at, &out.off, &out.len);
		out.off += x->places->off;
		out.pad = a->chunk_bytes - out.len;
	} else if (x->n_places && x->places[linear].len) {
		out.where = CHUNK_RANGE;
		out.off = x->places[linear].off;
		out.len = x->places[linear].len;
	}
	if (out.off > size || out.len > size - out.off)
		return err_set(e, -EBADMSG,
			       "the file ends at byte %llu, but %llu bytes at %llu are needed: "
			       "it is truncated, or still being written",
			       (unsigned long long)size, (unsigned long long)out.len,
			       (unsigned long long)out.off);
	*ret = out;
	return 0;
}

static int next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e)
{
	if (h4_of(isolated_of(s))->arrays[array].empty || from >= s->ds.arrays[array].n_chunks)
		return err_set(e, -ENOENT, "no more chunks");
	*ret = from;
	return 0;
}

void hdf4_version(char *text, size_t cap)
{
	uint32 major = 0, minor = 0, release_no = 0;
	char more[256] = ""; /* the library needs 80 */

	(void)Hgetlibversion(&major, &minor, &release_no, more);
	(void)snprintf(text, cap, "%u.%u.%u", (unsigned)major, (unsigned)minor,
		       (unsigned)release_no);
}

#else

static int open_source(const struct source_at *at NZ_UNUSED,
		       const struct source_options *opts NZ_UNUSED,
		       struct source **ret NZ_UNUSED, struct err *e)
{
	return err_set(
		e, -EOPNOTSUPP,
		"it is an HDF4 file, and HDF4 is not built in: install libhdf4-alt-dev and "
		"build nczarrfs again, or convert it with h4toh5");
}

static int locate(struct source *s NZ_UNUSED, uint32_t array NZ_UNUSED,
		  uint64_t linear NZ_UNUSED, struct chunk_ref *ret NZ_UNUSED, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "HDF4 is not built in");
}

static int next(struct source *s NZ_UNUSED, uint32_t array NZ_UNUSED, uint64_t from NZ_UNUSED,
		uint64_t *ret NZ_UNUSED, struct err *e)
{
	return err_set(e, -EOPNOTSUPP, "HDF4 is not built in");
}

void hdf4_version(char *text, size_t cap)
{
	if (cap)
		text[0] = '\0';
}

#endif

const struct source_ops hdf4_source_ops = {
	.name = "hdf4",
	.bid = bid,
	.open = open_source,
	.close = isolated_close,
	.locate = locate,
	.next = next,
	.read_chunk = isolated_read_chunk,
	.fd = isolated_fd,
	.check = isolated_check,
	.poll = isolated_poll,
	.hold = isolated_hold,
};
