/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_manifest.c - manifests of commits into Zarr trees that were begun and not ended, which may
 * say anything, carried out on a directory and on a remote store.
 *
 * Input: flags, then steps: what, a number, a key. RAW: the rest is the manifest.
 *
 * Properties: what is damaged is refused with a message, and nothing is done with it; nothing
 * outside of the store and of the state directory is touched, wherever links in the store lead;
 * what has been carried out leaves no manifest; doing it twice is doing it once.
 *
 *   make fuzz TIME=60 FUZZ=manifest */
#include <dirent.h>
#include <sys/stat.h>

#include "base/os/open_beneath.h"
#include "codecs/core/codec.h"
#include "nczarr/sink/sink_int.h"
#include "nczarr/store/store.h"
#include "tests/unit/nczarr/store_mem.h"
#include "tests/fuzz/fuzz.h"

#define BYTES ((size_t)1 << 20)
#define FILES 6

enum { REMOTE = 1, RAW = 2, CONDITIONS = 4, LINKS = 8 };

struct place {
	int top, root, state;
};

static void manifest(struct buf *b, struct slice *s, uint8_t flags, uint64_t mark)
{
	static const char ops[] = "AIPDRXVY";
	uint64_t n = 0;

	buf_puts(b, flags & REMOTE ? ZS_REMOTE : ZS_LOCAL);
	buf_put_le(b, mark, 8);
	while (more_of(s)) {
		uint8_t op = rd_u8(s);
		uint64_t number = rd_u8(s) % (FILES + 2);
		struct slice key = piece_of(s);

		buf_putc(b, op < 200 ? ops[op % 8] : (char)op);
		buf_put_le(b, number, 8);
		buf_put_le(b, key.len, 2);
		buf_put(b, key.p ? key.p : (const uint8_t *)"", key.len);
		n++;
	}
	buf_putc(b, ZS_END);
	buf_put_le(b, n, 8);
	buf_put_le(b, 0, 2);
	buf_put_le(b, codec_crc32c_sum(0, b->data, b->len), 4);
}

/* furnish - a store with a few things, a state directory with what is to come, and a neighbour. */
static void furnish(struct place *p, uint8_t flags)
{
	require(mkdirat(p->top, "store", 0700) == 0 && mkdirat(p->top, "state", 0700) == 0);
	put_file(p->top, "outside", "out", 3);
	require(mkdirat(p->top, "dir", 0700) == 0);
	p->root = openat(p->top, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->state = openat(p->top, "state", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(p->root >= 0 && p->state >= 0);
	require(mkdirat(p->root, "v", 0700) == 0 && mkdirat(p->root, "g", 0700) == 0);
	put_file(p->root, "v/0", "old", 3);
	put_file(p->root, "g/.zgroup", "{}", 2);
	if (flags & LINKS)
		require(symlinkat("../dir", p->root, "l") == 0 &&
			symlinkat("../outside", p->root, "f") == 0);
	require(mkdirat(p->state, "txn", 0700) == 0 && mkdirat(p->state, "txn/0", 0700) == 0);
	for (int i = 0; i < FILES; i++) {
		char name[32], text[32];

		(void)snprintf(name, sizeof(name), "txn/0/%d", i);
		(void)snprintf(text, sizeof(text), "new %d", i);
		put_file(p->state, name, text, strlen(text));
	}
	if (flags & CONDITIONS)
		put_file(p->state, ZS_CONDITIONS, "", 0);
}

/* untouched - what lies beside the store. */
static void untouched(const struct place *p)
{
	char text[8] = "";
	int fd = openat(p->top, "outside", O_RDONLY | O_CLOEXEC);
	int dir = openat(p->top, "dir", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(dir);
	unsigned n = 0;

	require(fd >= 0 && read(fd, text, sizeof(text)) == 3 && memcmp(text, "out", 3) == 0);
	(void)close(fd); /* in memory */
	require(d != NULL);
	while (readdir(d))
		n++;
	require(n == 2); /* . and .. */
	(void)closedir(d);
}

static struct store *far_store(void)
{
	struct store *s = store_mem_new();

	require(s != NULL);
	s->remote = true;
	require(store_mem_put(s, "v/0", "old", 3) == 0 &&
		store_mem_put(s, "g/.zgroup", "{}", 2) == 0);
	return s;
}

static void carry_out(const struct place *p, uint8_t flags)
{
	struct store *s = flags & REMOTE ? far_store() : NULL;
	struct err e = ERR_INIT;
	int rc = s ? 0 : store_dir_open(dup(p->root), &s, &e);

	require(rc == 0);
	rc = zs_txn_recover(s, p->state, &e);

	if (rc) {
		failed_well(rc, &e);
		if (rc == -EBADMSG) /* nothing was done */
			require(faccessat(p->state, "manifest", F_OK, 0) == 0 &&
				faccessat(p->state, "txn/0/0", F_OK, 0) == 0 &&
				faccessat(p->root, "v/0", F_OK, 0) == 0);
		rc = zs_txn_recover(s, p->state, &e);
	}
	if (rc == 0)
		require(zs_txn_pending(p->state, NULL) == 0 &&
			faccessat(p->state, "txn", F_OK, 0) < 0);
	store_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	uint8_t flags = rd_u8(&s);
	struct place p = {.top = open(fuzz_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	static const char *const all[] = {"store", "state", "outside", "dir"};
	struct stat st;
	struct buf b;

	require(p.top >= 0);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		require(remove_beneath_err(p.top, all[i], NULL) == 0);
	furnish(&p, flags);
	require(fstat(p.root, &st) == 0);
	buf_init(&b, BYTES);
	if (flags & RAW)
		buf_put(&b, s.p, s.len);
	else
		manifest(&b, &s, flags, flags & REMOTE ? 0 : (uint64_t)st.st_ino);
	require(buf_ok(&b));
	put_file(p.state, "manifest", b.data, b.len);
	buf_release(&b);
	carry_out(&p, flags);
	untouched(&p);
	(void)close(p.root);
	(void)close(p.state);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		require(remove_beneath_err(p.top, all[i], NULL) == 0);
	(void)close(p.top);
	return 0;
}
