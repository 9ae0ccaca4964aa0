/* SPDX-License-Identifier: BSD-3-Clause */
/* structure_process.c - the server's side of the processes in which libhdf5 makes virtual files.
 *
 * A child is started for one file at the file's first use, and ended when its bytes have arrived.
 * Each reply is a number or a message whose size is checked. The bytes of the file are copied once
 * out of the shared memory, into private memory, and patch.c validates them. */
#include "hdf5view/virtual/structure_process.h"
#include "hdf5view/virtual/file_layout.h"

#include "base/os/io.h"
#include "base/core/cursor.h"
#include "hdf5view/hdf5view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOM_BASE ((uint64_t)2 << 30) /* address space of a child */
#define ROOM_MODEL 8                  /* times a packed model */
#define ROOM_FILE 4                   /* times the largest file */
#define HEAD 48                       /* bytes of the least superblock */
#define EMPTY_MAX ((uint64_t)1 << 20) /* bytes of a file without content */
#define WANTED 32                     /* chunks of a remote source in one prefetch */
#define BATCH ((size_t)256 << 10)     /* bytes that are worth a request */

/* ---- requests ---- */

/* process_start - start a child. len, max_bytes: sizes of its input and its output. */
static int process_start(struct structure_process *x, uint64_t len, uint64_t max_bytes,
			 struct err *e)
{
	const uint64_t max = UINT64_MAX / 64;
	struct sandbox_limits job = {.memory = ROOM_BASE + ROOM_MODEL * u64_min(len, max) +
					       ROOM_FILE * u64_min(max_bytes, max),
				     .cpu_ms = x->timeout_ms};

	return worker_start(&x->w, &nc_apart_kind, &job, sizeof(job), e);
}

/* A kill, and its own exit when memory is short, are not the file's fault: -EAGAIN, as the next
 * attempt may succeed. */
static const struct worker_words words = {
	.late = ": a large dataset needs a longer -o open_timeout, or the HDF5 library hangs",
	.invalid = " sent an invalid answer",
	.killed = " was killed (signal 9): possibly out of memory",
	.crashed = ": the HDF5 library cannot build the file",
	.ended = " ended",
	.ended_of = ": possibly out of memory",
	.again = -EAGAIN,
};

static int process_lost(struct structure_process *x, enum child_taken got, struct err *e)
{
	return worker_lost(&x->w, &words, "the process that builds the netCDF file", got,
			   x->timeout_ms, NULL, e);
}

/* process_ask - send a request; what: its data, or NULL. *ret is an unchecked number. A child that
 * does not reply is ended. */
static int process_ask(struct structure_process *x, struct nc_order *q, const struct buf *what,
		       uint64_t *ret, struct err *e)
{
	struct worker_call c = {.request = q, .size = sizeof(*q), .ms = x->timeout_ms};
	enum child_taken got;

	if (what) {
		int rc = shm_grow(&x->w.shared, what->len, e);

		if (rc < 0)
			return rc;
		if (what->len)
			memcpy(x->w.shared.at, what->data, what->len);
		q->len = what->len;
	}
	q->size = x->w.shared.size;
	got = worker_call(&x->w, &c, e);
	if (got != CHILD_TAKEN)
		return process_lost(x, got, e);
	if (c.rc == 0)
		*ret = c.len;
	return c.rc;
}

/* ---- one file ---- */

/* process_make - make everything but variable-length elements. */
static int process_make(struct structure_process *x, const struct nc_model *m,
			uint64_t max_bytes, uint64_t *ret, struct err *e)
{
	struct nc_order q = {.op = NC_OP_MAKE, .max_bytes = max_bytes};
	struct buf packed;
	int rc;

	buf_init(&packed, SIZE_MAX / 4);
	nc_pack_model(m, &packed, &q.moves);
	rc = buf_ok(&packed) ? process_start(x, packed.len, max_bytes, e)
			     : buf_full(&packed, e, -ERANGE,
					"the dataset's metadata is too "
					"large for a netCDF file");
	rc = rc ? rc : process_ask(x, &q, &packed, ret, e);
	buf_release(&packed);
	return rc;
}

/* feed - the state of sending variable-length elements. */
struct feed {
	struct structure_process *x;
	struct source *source;
	uint64_t bytes, max_bytes; /* of the file: so far, limit */
	struct buf raw, pieces; /* of one chunk; struct nc_piece entries, each with its bytes */
};

/* feed_fetch - read the elements of a chunk. *ret_absent: the chunk is not stored. */
static int feed_fetch(struct feed *t, uint32_t array, uint64_t linear, bool *ret_absent,
		      struct err *e)
{
	struct chunk_ref ref;
	int rc = source_locate(t->source, array, linear, &ref, e);

	buf_clear(&t->raw);
	*ret_absent = rc == 0 && ref.where == CHUNK_ABSENT;
	if (rc == 0 && !*ret_absent)
		rc = source_read_vlen(t->source, array, linear, &t->raw, e);
	return rc;
}

/* feed_add - append the fetched elements to the pending pieces. */
static void feed_add(struct feed *t, uint64_t linear, bool absent)
{
	static const uint8_t zeroes[8];
	const struct nc_piece head = {.linear = linear,
				      .len = absent ? NC_PIECE_ABSENT : t->raw.len};

	buf_put(&t->pieces, &head, sizeof(head));
	if (absent)
		return;
	if (t->raw.len)
		buf_put(&t->pieces, t->raw.data, t->raw.len);
	buf_put(&t->pieces, zeroes, 8 - t->raw.len % 8);
}

/* break_array - mark an array as broken: its error is for readers of its data. An error that says
 * nothing about the data is returned instead. */
static int break_array(char **ret, int rc, const struct err *why, struct err *e)
{
	if (err_is_transient(rc) || rc == -ERANGE || rc == -ESTALE || rc == -ETIMEDOUT ||
	    rc == -ECANCELED)
		return err_set(e, rc, "%s", why->msg);
	*ret = strdup(why->msg);
	return *ret ? 0 : err_nomem(e);
}

/* feed_flush - send the pending pieces. */
static int feed_flush(struct feed *t, uint32_t array, char **ret_broken, struct err *e)
{
	struct nc_order q = {.op = NC_OP_STRINGS, .array = array};
	struct err why = ERR_INIT;
	int rc = t->pieces.len ? process_ask(t->x, &q, &t->pieces, &t->bytes, &why) : 0;

	buf_clear(&t->pieces);
	if (rc == -EBADMSG)
		return break_array(ret_broken, rc, &why, e);
	return rc < 0 ? err_set(e, rc, "%s", why.msg) : 0;
}

/* feed_one_chunk - read a chunk, and send the pending pieces if they are large enough. */
static int feed_one_chunk(struct feed *t, uint32_t array, uint64_t linear, char **ret_broken,
			  struct err *e)
{
	const uint64_t taken = t->bytes + t->pieces.len;
	const uint64_t left = taken < t->max_bytes ? t->max_bytes - taken : 0;
	struct err why = ERR_INIT;
	bool absent;
	int rc = feed_fetch(t, array, linear, &absent, &why);

	if (rc == -EIO) /* a failure marks the whole array as broken, so retry once */
		rc = feed_fetch(t, array, linear, &absent, &why);
	if (rc == 0 ? t->raw.len > left : rc == -ERANGE && !buf_ok(&t->raw))
		rc = err_set(&why, -ERANGE,
			     "the netCDF file needs more than %" PRIu64
			     " bytes for metadata and strings (an eighth of -o memory)",
			     t->max_bytes);
	if (rc < 0)
		return break_array(ret_broken, rc, &why, e);
	feed_add(t, linear, absent);
	if (!buf_ok(&t->pieces))
		return err_nomem(e);
	return t->pieces.len >= BATCH ? feed_flush(t, array, ret_broken, e) : 0;
}

/* feed_array - send the elements of one array, many small chunks at a time. If the source cannot
 * read them, the array is broken, which is not an error: *ret_broken is the reason, owned. */
static int feed_array(struct feed *t, uint32_t array, char **ret_broken, struct err *e)
{
	struct source *s = t->source;
	const struct ds_array *a = &s->ds.arrays[array];
	uint64_t at;
	int rc = 0;

	/* one listing saves reading absent chunks; its errors are reported when chunks are read */
	if (s->remote && !s->unlisted && source_next(s, array, 0, &at, NULL) == -ENOMEM)
		return err_nomem(e);
	buf_clear(&t->pieces);
	for (uint64_t c = 0; c < a->n_chunks && rc == 0 && !*ret_broken; c++) {
		if (c % WANTED == 0)
			chunkio_want_run(s, array, c, 2 * WANTED);
		rc = feed_one_chunk(t, array, c, ret_broken, e);
	}
	if (rc == 0 && !*ret_broken)
		rc = feed_flush(t, array, ret_broken, e);
	return rc && rc != -EIO ? err_wrap(e, rc, "'%s'", a->name) : rc;
}

static int process_strings(struct structure_process *x, const struct nc_model *m,
			   struct source *s, uint64_t bytes, uint64_t max_bytes, char **broken,
			   struct err *e)
{
	struct feed t = {.x = x, .source = s, .bytes = bytes, .max_bytes = max_bytes};
	int rc = 0;

	buf_init(&t.raw, (size_t)u64_min(max_bytes, SIZE_MAX));
	buf_init(&t.pieces, SIZE_MAX);
	for (uint32_t i = 0; i < m->ds->n_arrays && rc == 0; i++)
		if (m->arrays[i].name && m->arrays[i].data == NC_VLEN_INLINE)
			rc = feed_array(&t, i, &broken[i], e);
	buf_release(&t.raw);
	buf_release(&t.pieces);
	return rc;
}

/* take_image - copy the bytes of the file into private memory. */
static int take_image(struct structure_process *x, const struct nc_model *m, uint64_t max_bytes,
		      struct nc_image *ret, struct err *e)
{
	struct nc_order q = {.op = NC_OP_FINISH};
	uint64_t n = 0, said = 0;
	int rc = process_ask(x, &q, NULL, &n, e);

	if (rc < 0)
		return rc;
	if (n > max_bytes)
		return err_set(e, -ERANGE,
			       "netCDF file: a structure of %" PRIu64 " bytes exceeds %" PRIu64,
			       n, max_bytes);
	if (n < HEAD || n > SIZE_MAX / 4)
		return process_lost(x, CHILD_WRONG, e);
	q = (struct nc_order){.op = NC_OP_IMAGE, .len = n};
	rc = shm_grow(&x->w.shared, nc_apart_headers(n) + (uint64_t)m->ds->n_arrays * 8, e);
	rc = rc ? rc : process_ask(x, &q, NULL, &said, e);
	if (rc < 0)
		return rc;
	if (said != n)
		return process_lost(x, CHILD_WRONG, e);
	ret->bytes = alloc_array((size_t)n, 1);
	if (!ret->bytes)
		return err_nomem(e);
	memcpy(ret->bytes, x->w.shared.at, (size_t)n);
	ret->len = (size_t)n;
	return 0;
}

/* list_vars - describe the file's datasets for the layout. The only data from the child are the
 * addresses of headers, which have to lie in the image. */
static int list_vars(struct structure_process *x, const struct nc_model *m, char **broken,
		     struct nc_image *ret, struct err *e)
{
	struct slice headers = slice_of(x->w.shared.at + nc_apart_headers(ret->len),
					(size_t)m->ds->n_arrays * 8);

	ret->vars = alloc_array(m->ds->n_arrays, sizeof(*ret->vars));
	if (!ret->vars)
		return err_nomem(e);
	for (uint32_t i = 0; i < m->ds->n_arrays; i++) {
		const struct ds_array *a = &m->ds->arrays[i];
		struct nc_var *v = &ret->vars[ret->n_vars];
		uint64_t header = rd_le64(&headers);
		hsize_t chunk[NC_RANK_LIMIT] = {0};

		if (!m->arrays[i].name)
			continue;
		if (header >= ret->len)
			return process_lost(x, CHILD_WRONG, e);
		*v = (struct nc_var){.array = i,
				     .data = m->arrays[i].data,
				     .header = header,
				     .rank = nc_rank(a),
				     .elem = nc_elem(a)};
		nc_h5_chunk(a, chunk);
		for (uint32_t d = 0; d < v->rank; d++)
			v->chunk[d] = chunk[d];
		if (broken[i]) {
			v->data = NC_BROKEN;
			v->why = steal(&broken[i]);
		}
		ret->n_vars++;
	}
	return 0;
}

int nc_build(const struct nc_model *m, struct source *s, uint64_t max_bytes,
	     struct nc_image *ret, struct err *e)
{
	struct structure_process x = {.timeout_ms = m->build_ms};
	char **broken = alloc_array(m->ds->n_arrays, sizeof(*broken));
	uint64_t bytes = 0;
	int rc = broken ? 0 : err_nomem(e);

	*ret = (struct nc_image){0};
	rc = rc ? rc : process_make(&x, m, max_bytes, &bytes, e);
	rc = rc ? rc : process_strings(&x, m, s, bytes, max_bytes, broken, e);
	rc = rc ? rc : take_image(&x, m, max_bytes, ret, e);
	rc = rc ? rc : list_vars(&x, m, broken, ret, e);
	(void)worker_end(&x.w);
	for (uint32_t i = 0; broken && i < m->ds->n_arrays; i++)
		free(broken[i]);
	free(broken);
	if (rc)
		nc_image_release(ret);
	return rc;
}

void nc_image_release(struct nc_image *i)
{
	for (uint32_t k = 0; k < i->n_vars; k++)
		free(i->vars[k].why);
	free(i->bytes);
	free(i->vars);
	*i = (struct nc_image){0};
}

/* ---- a new, empty file ---- */

/* empty_image - make the bytes of a file with only a root group. */
static int empty_image(uint64_t timeout_ms, struct nc_image *ret, struct err *e)
{
	uint32_t order[1] = {0};
	struct ds_group root = {.name = "", .parent = DS_NONE};
	struct nc_group shown = {.name = ""};
	struct dataset ds = {.n_groups = 1, .groups = &root};
	const struct nc_model m = {.ds = &ds, .v18 = true, .order = order, .groups = &shown};
	struct structure_process x = {.timeout_ms = timeout_ms};
	uint64_t bytes = 0;
	int rc = process_make(&x, &m, EMPTY_MAX, &bytes, e);

	*ret = (struct nc_image){0};
	rc = rc ? rc : take_image(&x, &m, EMPTY_MAX, ret, e);
	(void)worker_end(&x.w);
	/* libhdf5 clears the flag "open for writing" in an image and keeps the old checksum. */
	rc = rc ? rc : nc_patch_eof(ret->bytes, ret->len, ret->len, e);
	if (rc == -EAGAIN) /* the child was ended, as by a shortage of memory */
		rc = err_wrap(e, -ENOMEM, "cannot build a netCDF file");
	return rc;
}

int hdf5_create(const char *path, uint64_t timeout_ms, struct err *e)
{
	struct nc_image image;
	struct stat ours, there;
	int rc = empty_image(timeout_ms, &image, e);
	auto_fd int fd =
		rc < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (rc == 0 && fd < 0)
		rc = err_sys(e, errno, "cannot create the file");
	if (fd >= 0) {
		rc = io_pwrite(fd, image.bytes, image.len, 0, e);
		rc = rc ? rc : io_sync(fd, true, e);
		/* if its path still names it */
		if (rc < 0 && fstat(fd, &ours) == 0 && lstat(path, &there) == 0 &&
		    ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
			(void)unlink(path);
	}
	nc_image_release(&image);
	return rc;
}

/* ---- questions about filters ---- */

static int put_question(struct nc_asker *k, const struct nc_ask *ask_of, uint64_t *ret)
{
	struct nc_order q = {.op = NC_OP_AGREE};
	struct buf packed;
	int rc = 0;

	buf_init(&packed, SIZE_MAX / 4);
	nc_pack_ask(ask_of, &packed, &q.moves);
	if (!buf_ok(&packed))
		rc = buf_full(&packed, &k->why, -ERANGE, "a filter's parameters are too many");
	if (rc == 0 && !k->x.w.child.pid)
		rc = process_start(&k->x, 0, 0, &k->why);
	rc = rc ? rc : process_ask(&k->x, &q, &packed, ret, &k->why);
	buf_release(&packed);
	if (rc == 0 && *ret > NC_AGREE_LAST)
		rc = process_lost(&k->x, CHILD_WRONG, &k->why);
	return rc;
}

const char *nc_asker_agree(struct nc_asker *k, const struct ds_array *a,
			   const struct codec_array *as, const struct codec_chain *chain)
{
	const struct nc_ask q = {.a = *a, .as = *as, .chain = *chain};
	uint64_t said = 0;

	if (as->rank == 0 || as->rank > NC_RANK_LIMIT)
		return nc_disagrees(NC_AGREE_NO_CHUNKS);
	if (a->type.kind > DT_FLOAT && a->type.kind != DT_STRING)
		return nc_disagrees(NC_AGREE_NO_NUMBERS);
	if (k->rc == 0)
		k->rc = put_question(k, &q, &said);
	return k->rc < 0 ? NULL : nc_disagrees((enum nc_agreed)said);
}

void nc_asker_end(struct nc_asker *k)
{
	(void)worker_end(&k->x.w);
}
