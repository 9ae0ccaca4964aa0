/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_journal.c - the remains of an interrupted commit into an HDF5 file: a journal, and a file
 * that may be anything.
 *
 * Input: flags, how many pages had been written, the new end of the file, the file; then pages,
 * each a number, a slot and some of its new bytes. HOSTILE: numbers and slots are used unchecked.
 * RAW: the rest is the journal. DAMAGE: the last piece is written over the journal.
 *
 * Properties: a journal that was made for the file is carried out after an interruption anywhere,
 * and the file then has every byte that the commit wanted; a journal that is rejected, or belongs
 * to another file, changes nothing; every error has a message.
 *
 *   make fuzz TIME=60 FUZZ=journal
 * max_len: 40000 */
#include <sys/stat.h>

#include "codecs/core/codec.h"
#include "hdf5view/journal/journal_int.h"
#include "tests/fuzz/fuzz.h"

#define FILE_MAX 30000
#define PAGES 12
#define JOURNAL_MAX (JOURNAL_SLOTS + PAGES * JOURNAL_PAGE + PAGES * JOURNAL_ENTRY)

enum { HOSTILE = 1, RAW = 2, DAMAGE = 4, OTHER_FILE = 8 };

static uint8_t file[FILE_MAX + 1], was[FILE_MAX + 1], want[FILE_MAX + 1];
static uint8_t journal[JOURNAL_MAX];
static size_t file_len, want_len, journal_len;

/* page_at - the new bytes of a page: the old ones with a piece of the input over them. */
static size_t page_at(const struct journal_commit *c, uint64_t page, struct slice piece,
		      uint8_t out[JOURNAL_PAGE])
{
	size_t len = page < FILE_MAX ? journal_page_len(page, c->end) : 0;

	memset(out, 0, JOURNAL_PAGE);
	if (len > 0 && page * JOURNAL_PAGE + len <= FILE_MAX)
		memcpy(out, was + page * JOURNAL_PAGE, len);
	if (piece.len > JOURNAL_PAGE)
		piece.len = JOURNAL_PAGE;
	if (piece.len > 0)
		memcpy(out, piece.p, piece.len);
	return len;
}

static void old_sums(const struct journal_commit *c, struct journal_entry *x)
{
	for (size_t i = 0; i < JOURNAL_SECTORS; i++) {
		uint64_t at = x->page * JOURNAL_PAGE + i * JOURNAL_SECTOR;
		size_t n = at < c->end ? (size_t)u64_min(c->end - at, JOURNAL_SECTOR) : 0;

		x->old[i] = n > 0 && at + n <= FILE_MAX ? codec_crc32c_sum(0, was + at, n) : 0;
	}
}

/* make - journal, want and a file in which `done` pages have been written. */
static void make(struct slice *s, uint8_t flags, size_t done, struct journal_commit *c)
{
	struct journal_entry entries[PAGES];
	uint64_t page = 0;
	size_t n = 0, limit = flags & DAMAGE ? 3 : PAGES;
	uint8_t *table;

	while (n < limit && more_of(s)) {
		struct journal_entry *x = &entries[n];
		uint8_t *slot = journal + JOURNAL_SLOTS + n * JOURNAL_PAGE;
		struct slice piece;
		size_t len;

		if (flags & HOSTILE) {
			*x = (struct journal_entry){.page = rd_le64(s), .slot = rd_le64(s)};
		} else {
			page += rd_u8(s) % 3u + (n > 0 ? 1u : 0u);
			*x = (struct journal_entry){.page = page, .slot = n};
			if (journal_page_len(page, c->end) == 0)
				break;
		}
		piece = piece_of(s);
		len = page_at(c, x->page, piece, slot);
		x->crc = codec_crc32c_sum(0, slot, len);
		old_sums(c, x);
		if (!(flags & HOSTILE)) {
			memcpy(want + page * JOURNAL_PAGE, slot, len);
			if (n < done)
				memcpy(file + page * JOURNAL_PAGE, slot, len);
		}
		n++;
	}
	c->n_slots = c->n_pages = n;
	table = journal + JOURNAL_SLOTS + n * JOURNAL_PAGE;
	for (size_t i = 0; i < n; i++)
		journal_entry_put(&entries[i], table + i * JOURNAL_ENTRY);
	c->table_crc = codec_crc32c_sum(0, table, n * JOURNAL_ENTRY);
	for (size_t i = 1; i <= JOURNAL_COPIES; i++)
		journal_commit_put(c, journal + i * JOURNAL_PAGE);
	journal_len = JOURNAL_SLOTS + n * (JOURNAL_PAGE + JOURNAL_ENTRY);
}

static void read_back(const char *path, size_t *ret_len, uint8_t *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	require(fd >= 0 && fstat(fd, &st) == 0);
	*ret_len = (size_t)st.st_size;
	if (*ret_len <= FILE_MAX)
		require(io_pread(fd, out, *ret_len, 0, NULL) == 0);
	(void)close(fd); /* in memory */
}

static void check(const char *path, int dir, bool ours)
{
	static uint8_t is[FILE_MAX + 1];
	enum hdf5_journal_state state = HDF5_JOURNAL_NONE;
	struct err e = ERR_INIT;
	size_t len;
	int rc = hdf5_journal_status(path, dir, &state, &e);

	if (rc)
		failed_well(rc, &e);
	if (ours)
		require(rc == 0 && state == HDF5_JOURNAL_REDO);
	rc = hdf5_journal_recover(path, dir, &e);
	read_back(path, &len, is);
	if (rc) {
		require(!ours);
		failed_well(rc, &e);
	}
	if (state == HDF5_JOURNAL_FOREIGN)
		require(rc == -ESTALE);
	if (ours)
		require(len == want_len && memcmp(is, want, len) == 0);
	/* nothing else has changed */
	if (rc == -ESTALE || rc == -EBADMSG)
		require(len == file_len && memcmp(is, file, len) == 0);
	if (rc == 0)
		require(faccessat(dir, JOURNAL_NAME, F_OK, 0) < 0);
}

static void damage(struct slice *s)
{
	size_t off = rd_le16(s) % JOURNAL_MAX;
	struct slice piece = rest_of(s);

	if (piece.len > JOURNAL_MAX - off)
		piece.len = JOURNAL_MAX - off;
	if (piece.len > 0)
		memcpy(journal + off, piece.p, piece.len);
	else
		journal_len = off;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size), old;
	uint8_t flags = rd_u8(&s);
	size_t done = rd_u8(&s);
	struct journal_commit c = {.id = {1}};
	int dir = open(fuzz_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char path[128];

	require(dir >= 0);
	c.new_end = rd_le16(&s) % FILE_MAX;
	old = piece_of(&s);
	memset(was, 0, sizeof(was));
	memset(journal, 0, sizeof(journal));
	c.end = old.len < FILE_MAX ? old.len : FILE_MAX;
	if (c.end > 0)
		memcpy(was, old.p, c.end);
	memcpy(want, was, sizeof(was));
	memcpy(file, was, sizeof(was));
	c.size = file_len = u64_max(c.end, c.new_end);
	want_len = c.new_end;
	for (size_t i = c.end; i < c.new_end; i++) /* written before the record was */
		file[i] = want[i] = (uint8_t)(i * 3);
	if (flags & RAW) {
		journal_len = s.len < sizeof(journal) ? s.len : sizeof(journal);
		if (journal_len > 0)
			memcpy(journal, s.p, journal_len);
	} else {
		make(&s, flags, done, &c);
	}
	if (flags & DAMAGE)
		damage(&s);
	if (flags & OTHER_FILE)
		file_len = file_len / 2;
	put_file(dir, "file", file, file_len);
	put_file(dir, JOURNAL_NAME, journal, journal_len);
	(void)snprintf(path, sizeof(path), "%s/file", fuzz_dir());
	check(path, dir, (flags & (HOSTILE | RAW | DAMAGE | OTHER_FILE)) == 0);
	(void)unlinkat(dir, JOURNAL_NAME, 0); /* where it stayed */
	require(unlinkat(dir, "file", 0) == 0);
	(void)close(dir);
	return 0;
}
