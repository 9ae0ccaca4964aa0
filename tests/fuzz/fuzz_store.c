/* fuzz_store.c - a Zarr store of any bytes, opened as a source and read as a virtual netCDF-4 file,
 * without a mount: the file is laid out, looked up, read to its end and once more in other pieces.
 *
 * Input: 'Z' and a zip archive; or 'D' and objects, each two bytes for the length of its key, four
 * for its own (little-endian), key and bytes, which become files of a directory.
 *
 * Properties: nothing crashes; a file that can be read has exactly as many bytes as its attributes
 * say, and the same ones again; errors are errnos and say what is wrong.
 *
 *   make SANITIZE=1 build-asan/fuzz/fuzz_store && tests/fuzz/mutate_store.py -n 5000 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/slice.h"
#include "hdf5view/hdf5view.h"
#include "nczarr/nczarr.h"
#include "tests/fuzz/rules.h"

#define BYTES_MAX ((uint64_t)16 << 20)
#define PIECE 50000 /* odd on purpose */
#define PATH_BYTES 600

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* put_file - bytes as a new file. What cannot be made (a file where a directory is needed) is left
 * out. */
static void put_file(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	require(write(fd, p, n) == (ssize_t)n && close(fd) == 0);
}

/* put_object - one object of a directory, with the directories above it. */
static void put_object(const char *dir, const char *key, size_t key_len, struct slice bytes)
{
	char path[PATH_BYTES];
	size_t top = strlen(dir);

	if (key_len == 0 || key_len + top + 2 > sizeof(path) || memchr(key, 0, key_len) ||
	    key[0] == '/' || memmem(key, key_len, "..", 2))
		return;
	(void)snprintf(path, sizeof(path), "%s/%.*s", dir, (int)key_len, key);
	for (char *s = path + top + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		(void)mkdir(path, 0700); /* may be there */
		*s = '/';
	}
	put_file(path, bytes.p, bytes.len);
}

static void unpack(const char *dir, struct slice s)
{
	while (slice_ok(&s) && s.len > 0) {
		size_t key_len = rd_le16(&s);
		size_t len = rd_le32(&s);
		const uint8_t *key = rd_bytes(&s, key_len);
		const uint8_t *bytes = rd_bytes(&s, len);

		if (slice_ok(&s))
			put_object(dir, (const char *)key, key_len, slice_of(bytes, len));
	}
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)kind;
	(void)where;
	return remove(path);
}

/* sum_of - what of a span can be told again. */
static uint64_t sum_of(const struct span *s, uint64_t sum)
{
	static uint8_t piece[PIECE];
	const uint8_t *p = s->mem;

	if (!p && s->len) {
		require(s->fd >= 0 && s->len <= PIECE);
		require(pread(s->fd, piece, s->len, (off_t)s->off) == (ssize_t)s->len);
		p = piece;
	}
	for (size_t i = 0; i < s->len; i++)
		sum = (sum ^ p[i]) * 1099511628211u;
	for (size_t i = 0; i < s->zeros; i++)
		sum *= 1099511628211u;
	return sum;
}

/* read_file - all of it, in pieces. Returns a hash of it, 0 when it could not be read. */
static uint64_t read_file(struct view *v, const struct view_attr *attr, size_t piece)
{
	static uint8_t room[PIECE];
	uint64_t at = 0, sum = 14695981039346656037u;
	struct err e = ERR_INIT;

	while (at < attr->size && at < BYTES_MAX) {
		struct span s = {0};
		int rc = v->ops->read(v, attr->id, at, piece, room, &s, &e);
		uint64_t n = s.len + s.zeros;

		require(rc <= 0 && rc > -4096);
		if (rc < 0) {
			require(e.msg[0] != '\0');
			return 0;
		}
		require(n > 0 && n <= piece && n <= attr->size - at);
		sum = sum_of(&s, sum);
		span_done(&s);
		at += n;
	}
	return sum;
}

static void look(struct view *v)
{
	struct view_attr attr = {0}, again = {0};
	struct err e = ERR_INIT;
	int rc = v->ops->lookup(v, VIEW_ROOT, "store.nc", 8, &attr, &e);
	uint64_t whole, other;

	require(rc <= 0 && rc != -ENOENT);
	if (rc < 0)
		return;
	require(!attr.is_dir && attr.id > VIEW_ROOT && attr.id < VIEW_ID_LIMIT);
	require(v->ops->getattr(v, attr.id, &again, &e) < 0 || again.size == attr.size);
	whole = read_file(v, &attr, PIECE);
	if (whole == 0 || attr.size > BYTES_MAX)
		return;
	other = read_file(v, &attr, 4096);
	require(whole == other);
}

static void open_as(const char *path, struct plan_policy policy, bool keep_going)
{
	static const struct source_ops *const formats[] = {&zarr_source_ops};
	const struct source_options source_opts = {.cut_bytes = 4096,
						   .max_chunk_bytes = (uint64_t)16 << 20,
						   .max_index_bytes = (uint64_t)4 << 20,
						   .max_meta_bytes = (uint64_t)16 << 20,
						   .keep_going = keep_going};
	const struct nc_view_options opts = {.name = "store.nc",
					     .policy = policy,
					     .io = {.cache_bytes = 1 << 18,
						    .threads = keep_going,
						    .ahead = 2},
					     .max_image_bytes = (uint64_t)16 << 20,
					     .max_index_bytes = (uint64_t)4 << 20,
					     .keep_going = keep_going};
	struct source *s = NULL;
	struct view *v = NULL;
	struct err e = ERR_INIT;

	if (source_open(formats, 1, path, &source_opts, &s, &e) < 0) {
		require(e.msg[0] != '\0');
		return;
	}
	if (nc_view_open(s, &opts, &v, &e) == 0) {
		look(v);
		v->ops->close(v);
	} else {
		require(e.msg[0] != '\0');
	}
	source_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char dir[] = "/dev/shm/nczarrfs-fuzz-XXXXXX";
	char path[sizeof(dir) + sizeof("/store.zarr")];

	if (size == 0)
		return 0;
	require(mkdtemp(dir) != NULL);
	(void)snprintf(path, sizeof(path), "%s/store.zarr", dir);
	if (data[0] == 'Z') {
		put_file(path, data + 1, size - 1);
	} else {
		require(mkdir(path, 0700) == 0);
		unpack(path, slice_of(data + 1, size - 1));
	}
	log_init(LOG_ERROR, false);
	open_as(path, (struct plan_policy){.filter = PLAN_PORTABLE}, false);
	open_as(path, (struct plan_policy){.filter = PLAN_NONE}, true);
	open_as(path, fuzz_rules(), true);
	require(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
	return 0;
}
