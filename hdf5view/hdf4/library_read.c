/* SPDX-License-Identifier: BSD-3-Clause */
/* library_read.c - opens the file and reads elements through libhdf4, in a child.
 *
 * A file may name other files whose bytes are part of it ("external elements"), in places that the
 * SD interface does not report. So the process gives up its right to open files: it keeps its
 * descriptors, and may get one more, which the library uses for the source itself. */
#include "hdf5view/hdf4/hdf4_int.h"

#ifdef NCZARRFS_HDF4
#include <errno.h>
#include <fcntl.h>
#include "hdf5view/hdf4/hdf4_library.h"
#include "translate/model/value.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define REASONS_MAX 32

int h4_error(struct err *e, int code, const char *what)
{
	const char *why = NULL;

	resource_errors_note();
	/* the reasons are a stack, and the first failure says most */
	for (int32 i = 1; i <= REASONS_MAX && HEvalue(i) != DFE_NONE; i++)
		why = HEstring((hdf_err_code_t)HEvalue(i));
	return why ? err_set(e, code, "%s: %s", what, why) : err_set(e, code, "%s", what);
}

/* ---- the file ---- */

/* one_file - from now on allow one more descriptor. *ret: its number, the lowest free one. */
static int one_file(int fd, int *ret, struct err *e)
{
	struct rlimit limit;

	*ret = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*ret < 0)
		return err_sys(e, errno,
			       "cannot create a file descriptor for the HDF4 library");
	(void)close(*ret);
	limit = (struct rlimit){.rlim_cur = (rlim_t)*ret + 1, .rlim_max = (rlim_t)*ret + 1};
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return err_sys(e, errno, "the HDF4 library's process cannot be confined");
	return 0;
}

int h4_open(struct h4_source *s, struct err *e)
{
	const struct stat *want = &s->g.base.ds.st;
	struct stat st;
	int at, rc = one_file(s->g.fd, &at, e);
	int32 sd;

	if (rc < 0)
		return rc;
	/* by descriptor: the path may now name another file */
	(void)snprintf(s->opened, sizeof(s->opened), "/proc/self/fd/%d", s->g.fd);
	if (access(s->opened, R_OK) < 0)
		(void)snprintf(s->opened, sizeof(s->opened), "%s", s->g.path);
	errno = 0;
	sd = SDstart(s->opened, DFACC_READ);
	/* one descriptor was free, for the file itself: EMFILE means that the library tried
	 * another file */
	resource_errors_ignore_emfile();
	if (sd == FAIL)
		return h4_error(e, -EBADMSG, "not readable as HDF4");
	if (fstat(at, &st) < 0)
		rc = err_sys(e, errno, "'%s'", s->g.path);
	else if (st.st_dev != want->st_dev || st.st_ino != want->st_ino)
		rc = err_set(e, -ESTALE, "the file was replaced");
	if (rc < 0)
		(void)SDend(sd); /* the one descriptor is for the next try */
	else
		s->sd = sd;
	return rc;
}

/* ---- elements ---- */

static int library_fail(struct err *e)
{
	return h4_error(e, -EBADMSG, "the HDF4 library cannot read it");
}

/* as_opened - whether an SDS still matches the model. */
static bool as_opened(const struct h4_source *s, uint32_t array, int32 sds)
{
	const struct ds_array *a = &s->g.base.ds.arrays[array];
	const struct h4_array *x = &s->arrays[array];
	int32 rank = 0, type = 0, n_attrs = 0, dims[H4_RANK_MAX];

	if (SDgetinfo(sds, NULL, &rank, NULL, &type, &n_attrs) == FAIL || type != x->type ||
	    rank < 0 || (uint32_t)rank != a->rank)
		return false;
	if (SDgetinfo(sds, NULL, &rank, dims, &type, &n_attrs) == FAIL)
		return false;
	for (uint32_t i = 0; i < a->rank; i++)
		if (dims[i] < 0 || (uint64_t)dims[i] != x->extent[i])
			return false;
	return true;
}

/* select_array - keep an array selected, so that the library decodes an array that is compressed
 * in one piece only once for a sequential reader. */
static int select_array(struct h4_source *s, uint32_t array, struct err *e)
{
	int rc = s->sd ? 0 : h4_open(s, e);
	int32 sds;

	if (rc < 0)
		return rc;
	if (s->sds && s->selected == array)
		return 0;
	if (s->sds)
		(void)SDendaccess(s->sds); /* nothing was written */
	s->sds = 0;
	sds = SDselect(s->sd, s->arrays[array].index);
	if (sds == FAIL)
		return library_fail(e);
	if (!as_opened(s, array, sds)) {
		(void)SDendaccess(sds);
		return err_set(e, -ESTALE, "it is not the array that was opened");
	}
	s->sds = sds;
	s->selected = array;
	return 0;
}

/* spread - move rows of a smaller box into the chunk whose corner it is. */
static void spread(const struct ds_array *a, const int32 *count, const uint8_t *box,
		   uint8_t *out)
{
	size_t row = (size_t)count[a->rank - 1] * a->type.size, from = 0;
	int32 at[H4_RANK_MAX] = {0};

	for (;;) {
		size_t to = 0;
		uint32_t d = a->rank - 1;

		for (uint32_t i = 0; i < a->rank; i++)
			to = to * (size_t)a->chunk[i] + (size_t)at[i];
		memcpy(out + to * a->type.size, box + from, row);
		from += row;
		while (d > 0 && ++at[d - 1] == count[d - 1])
			at[--d] = 0;
		if (d == 0)
			return;
	}
}

static int read_box(struct h4_source *s, const struct ds_array *a, int32 *start, int32 *count,
		    uint8_t *out, size_t len, struct err *e)
{
	size_t bytes = a->type.size;
	auto_free uint8_t *box = NULL;

	for (uint32_t i = 0; i < a->rank; i++)
		bytes *= (size_t)count[i]; /* at most a chunk's, which is len */
	if (bytes != len) {
		box = alloc_array(bytes, 1);
		if (!box)
			return err_nomem(e);
	}
	if (SDreaddata(s->sds, start, NULL, count, box ? box : out) == FAIL)
		return library_fail(e);
	/* the library returns numbers in host byte order; swapping works both ways */
	dt_swap_to_host(&a->type, box ? box : out, bytes / a->type.size);
	if (!box)
		return 0;
	value_repeat(out, len, a->fill, a->type.size);
	spread(a, count, box, out);
	return 0;
}

int h4_chunk(struct isolated *g, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
	     struct err *e)
{
	struct h4_source *s = h4_of(g);
	const struct ds_array *a = &g->base.ds.arrays[array];
	const uint64_t *extent = s->arrays[array].extent;
	int32 start[H4_RANK_MAX] = {0}, count[H4_RANK_MAX] = {1};
	uint64_t at[H4_RANK_MAX];
	int rc = select_array(s, array, e);

	if (rc < 0)
		return rc;
	ds_chunk_coords(a, linear, at);
	for (uint32_t i = 0; i < a->rank; i++) {
		uint64_t first = at[i] * a->chunk[i];

		if (first >= extent[i]) {
			value_repeat(out, len, a->fill, a->type.size);
			return 0;
		}
		start[i] = (int32)first; /* extents have 31 bits */
		count[i] = (int32)u64_min(a->chunk[i], extent[i] - first);
	}
	return read_box(s, a, start, count, out, len, e);
}

#endif
