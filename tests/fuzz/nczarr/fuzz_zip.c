/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_zip.c - any bytes, opened as a zip archive, listed and read.
 *
 * Properties: nothing crashes; what is listed can be looked up and is the same; nothing is below
 * itself; an object is exactly as long as its stat says, in pieces and at once; errors are errnos
 * and say something.
 *
 *   make fuzz TIME=60 FUZZ=zip */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nczarr/store/store.h"
#include "tests/fuzz/damage.h"

#define ENTRIES_MAX 2000 /* of one walk */
#define DEPTH_MAX 200
#define BYTES_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

struct walk {
	struct store *s;
	const char *key;
	unsigned *entries;
	unsigned depth;
};

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void failed_well(int rc, const struct err *e)
{
	require(rc < 0 && rc > -4096 && e->code == rc && e->msg[0]);
}

static void read_object(struct store *s, const char *key, const struct store_stat *st)
{
	struct err e = ERR_INIT;
	uint8_t piece[100];
	struct buf b;
	int rc;

	buf_init(&b, BYTES_MAX);
	rc = store_get(s, key, &b, NULL, &e);
	if (rc < 0) {
		failed_well(rc, &e);
		require(b.len == 0);
	} else {
		require(b.len == st->size && !st->odd);
		for (size_t i = 0; i < b.len && i < 1000; i += sizeof(piece)) {
			size_t n = (size_t)u64_min(sizeof(piece), b.len - i);

			require(store_read(s, key, i, piece, n, NULL, &e) == 0);
			require(memcmp(piece, b.data + i, n) == 0);
		}
	}
	require(st->odd || store_read(s, key, st->size, piece, 1, NULL, &e) < 0);
	buf_release(&b);
}

static bool visit(void *arg, const char *name, bool is_dir, const struct store_stat *st)
{
	const struct walk *w = arg;
	struct walk below = {.s = w->s, .entries = w->entries, .depth = w->depth + 1};
	char key[STORE_KEY_MAX + 300];
	struct err e = ERR_INIT;
	struct store_stat own;

	if (++*w->entries > ENTRIES_MAX)
		return false;
	(void)snprintf(key, sizeof(key), "%s%s%s", w->key, *w->key ? "/" : "", name);
	require(st && store_key_ok(key) && store_stat(w->s, key, &own, &e) == 0);
	require(own.is_dir == is_dir && own.is_dir == st->is_dir && own.odd == st->odd &&
		own.size == st->size && own.version == st->version && own.version);
	if (!is_dir) {
		read_object(w->s, key, &own);
		return true;
	}
	below.key = key;
	if (below.depth > DEPTH_MAX)
		return true;
	require(store_list(w->s, key, true, visit, &below, &e) == 0);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("zip", MFD_CLOEXEC);
	struct err e = ERR_INIT;
	unsigned entries = 0;
	struct walk w = {.key = "", .entries = &entries};
	struct blob blob;
	int rc;

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	rc = store_zip_open(fd, (uint64_t)16 << 20, &w.s, &e);
	if (rc < 0) {
		failed_well(rc, &e);
		close(fd);
		return 0;
	}
	blob = blob_of_fd(fd, size);
	require(store_zip_bid(&blob, NULL));
	require(store_list(w.s, "", true, visit, &w, &e) == 0);
	store_close(w.s);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct dice d = dice_of(seed, size);
	struct hurt h = {.p = data, .n = size, .cap = max};

	for (uint64_t i = 1 + dice_below(&d, 3); i > 0; i--)
		damage_zip(&d, &h);
	return h.n;
}
