/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_state.c - what lies in the state directory of a dataset besides logs: the list of filters
 * that writers wanted, the map of a virtual file's written pages. They may be damaged, or of
 * somebody else.
 *
 * Input: a byte that says which, then its bytes; MAP: numbers that are put together with a right
 * sum, or, RAW, all of it.
 *
 * Properties: what is refused has a message; a list that is added to says what was added; pages of
 * a map lie in its file.
 *
 *   make fuzz TIME=60 FUZZ=state */
#include "fusefs/write/chunk_set.h"
#include "hdf5view/virtual/file_layout.h"
#include "tests/fuzz/fuzz.h"

/* Functions that only this file has; what it defines besides takes the place of the library's. */
#include "base/core/hash.h"
#include "hdf5view/virtual_rw/recovery.c"

#undef MAGIC

static void as_chains(const struct slice *s)
{
	int dir = open(fuzz_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct cfg cfg = {.command = CFG_MOUNT};
	struct cfg_zarr got;
	struct err e = ERR_INIT;
	int rc;

	require(dir >= 0);
	put_file(dir, COMMIT_CHAINS, s->p, s->len);
	rc = commit_form(&cfg, dir, &got, &e);
	if (rc)
		failed_well(rc, &e);
	require(commit_form_note(dir, 3, NULL) == 0);
	rc = commit_form(&cfg, dir, &got, &e);
	if (s->len == 0 || s->p[s->len - 1] == '\n')
		require(rc == 0 && (memchr(s->p, '\0', s->len) || got.zarr3));
	require(unlinkat(dir, COMMIT_CHAINS, 0) == 0);
	(void)close(dir);
}

static void in_file(const struct rw_map *m, uint64_t size)
{
	uint64_t page = 0, n = 0;

	for (; rw_map_next(m, page, &page, &n); page += n)
		require(n > 0 && page + n <= rw_pages(0, size));
}

static void as_map(struct slice *s, bool raw)
{
	struct rw_copy copy = {.fd = -1};
	uint64_t identity;
	struct err e = ERR_INIT;
	struct buf b;
	int rc;

	buf_init(&b, (size_t)1 << 20);
	if (!raw) {
		buf_puts(&b, "NCRWMAP1");
		for (int i = 0; i < 5; i++)
			buf_put_le(&b, rd_le32(s), 8);
		buf_put_le(&b, rd_u8(s), 8);
		buf_put_le(&b, rd_u8(s), 8);
		while (more_of(s)) {
			buf_put_le(&b, rd_le16(s), 8);
			buf_put_le(&b, rd_le16(s), 8);
		}
		buf_put_le(&b, hash_bytes(HASH_SEED, b.data, b.len), 8);
	} else {
		buf_put(&b, s->p, s->len);
		buf_putc(&b, '\0');
	}
	require(buf_ok(&b));
	rc = take_map(b.data, b.len - raw, &copy, &identity, &e);
	if (rc) {
		failed_well(rc, &e);
	} else {
		in_file(&copy.in, copy.size);
		in_file(&copy.written, copy.size);
	}
	rw_map_release(&copy.in);
	rw_map_release(&copy.written);
	buf_release(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice s = slice_of(data, size);
	uint8_t which = rd_u8(&s) % 3;

	if (!slice_ok(&s))
		return 0;
	if (which == 0)
		as_chains(&s);
	else
		as_map(&s, which == 2);
	return 0;
}
