/* fuzz_source.c - a file of any bytes, opened as a source and walked through the views, without a
 * mount: every directory is listed, every name looked up, every file read to its end.
 *
 * Properties: nothing crashes; what is listed can be looked up and is the same node; a file that
 * can be read has exactly as many bytes as its attributes say; a range of the source lies inside
 * it; errors are errnos. libhdf5 and libhdf4 crash on damaged files, in processes of their own.
 *
 *   make SANITIZE=1 build-asan/fuzz/fuzz_source && tests/fuzz/mutate.py -n 2000 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "hdf5view/hdf5view.h"
#include "nczarr/nczarr.h"
#include "tests/fuzz/rules.h"

#define ENTRIES_MAX 3000 /* of one walk */
#define BYTES_MAX ((uint64_t)32 << 20)
#define PIECE 50000 /* odd on purpose */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
	struct view *v;
	uint64_t file_size;
	uint64_t bytes;
	uint32_t entries;
	uint32_t depth;
	uint64_t parent; /* whose entries are being listed */
	uint8_t sum;     /* of everything read, so that it is read */
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static bool full(const struct walk *w)
{
	return w->entries >= ENTRIES_MAX || w->bytes >= BYTES_MAX;
}

/* take - touch what a read gave. */
static void take(struct walk *w, struct span *s)
{
	static uint8_t piece[PIECE];

	if (s->mem) {
		for (size_t i = 0; i < s->len; i++)
			w->sum ^= s->mem[i];
	} else if (s->len) {
		require(s->fd >= 0 && s->off <= w->file_size &&
			s->len <= w->file_size - s->off);
		require(s->len <= PIECE &&
			pread(s->fd, piece, s->len, (off_t)s->off) == (ssize_t)s->len);
	}
	span_done(s);
}

static uint8_t room[PIECE]; /* one thread */

static void read_file(struct walk *w, const struct view_attr *attr)
{
	struct err e = ERR_INIT;
	uint64_t at = 0;

	while (at < attr->size && !full(w)) {
		struct span s = {0};
		size_t n;
		int rc = w->v->ops->read(w->v, attr->id, at, PIECE, room, &s, &e);

		require(rc <= 0 && rc > -4096);
		if (rc < 0) {
			require(e.msg[0] != '\0');
			return;
		}
		n = s.len + s.zeros;
		require(n > 0 && n <= PIECE && n <= attr->size - at);
		take(w, &s);
		at += n;
		w->bytes += n;
	}
	if (at == attr->size) {
		struct span s = {0};

		if (w->v->ops->read(w->v, attr->id, at, PIECE, room, &s, &e) == 0) {
			require(s.len + s.zeros == 0);
			span_done(&s);
		}
	}
}

static void list_all(struct walk *w, uint64_t dir);

static bool entry(void *arg, const char *name, uint64_t id, bool is_dir,
		  const struct view_attr *attr, uint64_t next)
{
	struct walk *w = arg;
	struct view_attr by_name, by_id;
	struct err e = ERR_INIT;
	uint64_t parent = w->parent;
	int rc;

	(void)next;
	w->entries++;
	require(id > VIEW_ROOT && id < VIEW_ID_LIMIT);
	require(name[0] && !strchr(name, '/'));
	rc = w->v->ops->lookup(w->v, parent, name, strlen(name), &by_name, &e);
	require(rc <= 0 && rc != -ENOENT && rc != -ENOTDIR);
	if (rc == 0) {
		require(by_name.id == id && by_name.is_dir == is_dir);
		require(!attr || (attr->id == id && attr->size == by_name.size));
		rc = w->v->ops->getattr(w->v, id, &by_id, &e);
		require(rc < 0 || (by_id.size == by_name.size && by_id.is_dir == is_dir));
		if (rc == 0 && !is_dir)
			read_file(w, &by_id);
	}
	if (is_dir && w->depth < 64) {
		require(w->v->ops->parent(w->v, id) == parent);
		list_all(w, id);
	}
	w->parent = parent;
	return !full(w);
}

static void list_all(struct walk *w, uint64_t dir)
{
	struct err e = ERR_INIT;

	w->parent = dir;
	w->depth++;
	require(w->v->ops->list(w->v, dir, 0, w->depth % 2, entry, w, &e) <= 0);
	w->depth--;
}

/* open_file - with any format; NULL: refused, with a message. */
static struct source *open_file(const char *path)
{
	static const struct source_ops *const formats[] = {&hdf5_source_ops, &cdf_source_ops,
							   &hdf4_source_ops};
	const struct source_options source_opts = {.cut_bytes = 4096,
						   .max_chunk_bytes = (uint64_t)16 << 20,
						   .max_index_bytes = (uint64_t)4 << 20,
						   .max_meta_bytes = (uint64_t)16 << 20,
						   .read_timeout_ms = 1000,
						   .open_timeout_ms = 1000};
	struct source *s = NULL;
	struct err e = ERR_INIT;

	if (source_open(formats, 3, path, &source_opts, &s, &e) == 0)
		return s;
	require(e.msg[0] != '\0');
	return NULL;
}

/* walk_as - as a Zarr tree; opts NULL: as a netCDF-4 file. */
static void walk_as(const char *path, uint64_t size, const struct zarr_view_options *opts)
{
	const struct nc_view_options nc = {.name = "x.nc",
					   .policy.filter = PLAN_PORTABLE,
					   .io = {.cache_bytes = 1 << 20},
					   .max_image_bytes = (uint64_t)8 << 20,
					   .max_index_bytes = (uint64_t)4 << 20,
					   .keep_going = true};
	struct source *s = open_file(path);
	struct walk w = {.file_size = size};
	struct err e = ERR_INIT;

	if (!s)
		return;
	if ((opts ? zarr_view_open(s, opts, &w.v, &e) : nc_view_open(s, &nc, &w.v, &e)) == 0) {
		list_all(&w, VIEW_ROOT);
		w.v->ops->close(w.v);
	} else {
		require(e.msg[0] != '\0');
	}
	source_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct zarr_view_options stored = {.mode = ZARR_PURE,
						 .policy.filter = PLAN_PORTABLE,
						 .io = {.cache_bytes = 1 << 20},
						 .max_meta_bytes = (uint64_t)16 << 20};
	const struct zarr_view_options decoded = {
		.mode = ZARR_NCZARR,
		.policy.filter = PLAN_NONE,
		.nested = true,
		.strict_json = true,
		.io = {.cache_bytes = 1 << 16, .threads = 1, .ahead = 2},
		.max_meta_bytes = (uint64_t)16 << 20};
	const struct zarr_view_options shards = {.format = 3,
						 .mode = ZARR_PURE,
						 .policy.filter = PLAN_PORTABLE,
						 .nested = true,
						 .shard_bytes = 16384,
						 .strict_json = true,
						 .io = {.cache_bytes = 1 << 20},
						 .max_meta_bytes = (uint64_t)16 << 20};
	struct zarr_view_options encoded = decoded;
	char path[] = "/dev/shm/nczarrfs-fuzz-XXXXXX";
	int fd = mkstemp(path); /* libhdf5 wants a file with a name */

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
	log_init(LOG_ERROR, false);
	walk_as(path, size, &stored);
	walk_as(path, size, &decoded);
	encoded.policy = fuzz_rules();
	walk_as(path, size, &encoded);
	walk_as(path, size, &shards);
	walk_as(path, size, NULL);
	require(unlink(path) == 0);
	return 0;
}
