/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_diskcache.c - the cache on disk, which others may have damaged.
 *
 * Input: a byte that says where, then pieces: an offset, a length and that many bytes, that are
 * written over the files of a cache in which there are blocks.
 *
 * Properties: what is found of a block is that block, all of it, or it is not found; nothing is
 * written behind the room; what is kept afterwards is found.
 *
 *   make fuzz TIME=60 FUZZ=diskcache */
#include "nczarr/remote/services.h"
#include "tests/fuzz/fuzz.h"

#define BYTES ((uint64_t)1 << 21)
#define BLOCKS 6
#define KEEP 20 /* more than there are ways */

static const char *const files[] = {"tags-0", "data-0", "tags-1", "data-1", "format"};

static size_t length_of(uint64_t block)
{
	return block % 2 ? (size_t)9000 + block : 100 * (size_t)block;
}

static void content(uint64_t block, uint8_t *out)
{
	for (size_t i = 0; i < length_of(block); i++)
		out[i] = (uint8_t)(i * 7 + block * 13 + i / 256);
}

static void put(struct disk_cache *d, const struct object_info *v, uint64_t block)
{
	uint8_t data[10000];

	content(block, data);
	disk_cache_put(d, "s3://b/x", "v/c/0", v, block, data, length_of(block));
}

/* get - whether it is there; it is right then. */
static bool get(struct disk_cache *d, const struct object_info *v, uint64_t block)
{
	uint8_t want[10000], *out = malloc(length_of(block) ? length_of(block) : 1);
	size_t len = 0;
	bool found;

	require(out != NULL);
	content(block, want);
	found = disk_cache_get(d, "s3://b/x", "v/c/0", v, block, out, length_of(block), &len);
	if (found)
		require(len == length_of(block) && memcmp(out, want, len) == 0);
	free(out);
	return found;
}

static void damage(int dir, struct slice *s)
{
	while (more_of(s)) {
		const char *name = files[rd_u8(s) % ARRAY_LEN(files)];
		uint64_t off = rd_le32(s) % (BYTES + 4096);
		struct slice piece = piece_of(s);
		int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (piece.len == 0)
			require(ftruncate(fd, (off_t)(off % 20000)) == 0);
		else
			require(io_pwrite(fd, piece.p, piece.len, off, NULL) == 0);
		(void)close(fd); /* in memory */
	}
}

static void empty(int dir)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		(void)unlinkat(dir, files[i], 0); /* those that are there */
	(void)unlinkat(dir, "lock", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct object_info v = {.size = 50000, .etag = "\"one\"", .changed = 7};
	struct slice s = slice_of(data, size);
	bool again = rd_u8(&s) & 1;
	int dir = open(fuzz_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct disk_cache *d = NULL;
	struct err e = ERR_INIT;
	int rc;

	require(dir >= 0);
	empty(dir);
	require(disk_cache_open(fuzz_dir(), BYTES, &d, NULL) == 0);
	for (uint64_t b = 0; b < BLOCKS; b++) {
		put(d, &v, b);
		require(get(d, &v, b));
	}
	if (again) { /* damaged while nobody has it open */
		disk_cache_close(d);
		damage(dir, &s);
		rc = disk_cache_open(fuzz_dir(), BYTES, &d, &e);
		require(rc == 0);
	} else {
		damage(dir, &s);
	}
	for (uint64_t b = 0; b < BLOCKS; b++)
		(void)get(d, &v, b);
	for (uint64_t b = 0; b < KEEP; b++) {
		put(d, NULL, b);
		require(get(d, NULL, b));
	}
	disk_cache_close(d);
	empty(dir);
	(void)close(dir);
	return 0;
}
