/* SPDX-License-Identifier: BSD-3-Clause */
/* page_log.c - the changed pages of the file, and their slots in the log. A page is logged
 * completely when its first byte is written, and then changed in the log, which is not read by
 * recovery before the commit. */
#include "hdf5view/journal/journal_int.h"

#include "base/os/io.h"
#include "codecs/core/codec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define EMPTY UINT32_MAX

void journal_pages_release(struct journal_pages *p)
{
	free(p->map);
	p->map = NULL;
	p->n = p->cap = 0;
}

static size_t page_log_place_of(const struct journal_pages *p, uint64_t page)
{
	size_t i = (size_t)((page * 0x9e3779b97f4a7c15u) >> 20) & (p->cap - 1);

	while (p->map[i].slot != EMPTY && p->map[i].page != page)
		i = (i + 1) & (p->cap - 1);
	return i;
}

/* NULL: it is not logged. */
static const struct journal_map_entry *page_log_find(const struct journal_pages *p,
						     uint64_t page)
{
	const struct journal_map_entry *x;

	if (p->n == 0)
		return NULL;
	x = &p->map[page_log_place_of(p, page)];
	return x->slot == EMPTY ? NULL : x;
}

static uint64_t page_log_slot_at(uint64_t slot)
{
	return JOURNAL_SLOTS + slot * JOURNAL_PAGE;
}

static int page_log_grow(struct journal_pages *p, struct err *e)
{
	struct journal_pages more = *p;

	if (p->cap / 4 * 3 > p->n)
		return 0;
	more.cap = p->cap ? p->cap * 2 : 64;
	more.map = more.cap > p->cap ? alloc_array(more.cap, sizeof(*more.map)) : NULL;
	if (!more.map)
		return err_nomem(e);
	for (size_t i = 0; i < more.cap; i++)
		more.map[i].slot = EMPTY;
	for (size_t i = 0; i < p->cap; i++)
		if (p->map[i].slot != EMPTY)
			more.map[page_log_place_of(&more, p->map[i].page)] = p->map[i];
	free(p->map);
	*p = more;
	return 0;
}

/* ---- reading ---- */

/* The number of bytes from off on, at most n, that are in one piece; *ret_at their offset, in the
 * log if *ret_log. */
static size_t page_log_piece(const struct journal_pages *p, size_t n, uint64_t off,
			     bool *ret_log, uint64_t *ret_at)
{
	const struct journal_map_entry *x = page_log_find(p, off / JOURNAL_PAGE);
	size_t in = (size_t)(off % JOURNAL_PAGE), got = JOURNAL_PAGE - in;

	*ret_log = x != NULL;
	*ret_at = x ? page_log_slot_at(x->slot) + in : off;
	for (uint64_t k = 1; got < n; k++, got += JOURNAL_PAGE) {
		const struct journal_map_entry *y = page_log_find(p, off / JOURNAL_PAGE + k);

		if (x ? !y || y->slot != x->slot + k : y != NULL)
			break;
	}
	return got < n ? got : n;
}

int journal_pages_read(const struct journal_pages *p, void *out, size_t n, uint64_t off,
		       struct err *e)
{
	uint8_t *to = out;

	if (p->n == 0)
		return io_pread(p->fd, out, n, off, e);
	while (n > 0) {
		bool in_log;
		uint64_t at;
		size_t len = page_log_piece(p, n, off, &in_log, &at);
		int rc = io_pread(in_log ? p->log : p->fd, to, len, at, e);

		if (rc < 0)
			return rc;
		to += len;
		off += len;
		n -= len;
	}
	return 0;
}

/* ---- writing ---- */

/* Log a page with n bytes at `in` of it replaced. */
static int log_page(struct journal_pages *p, uint64_t page, const uint8_t *data, size_t n,
		    size_t in, struct err *e)
{
	size_t len = journal_page_len(page, p->end);
	uint8_t mem[JOURNAL_PAGE];
	uint32_t crc;
	int rc;

	if (p->n_slots >= JOURNAL_SLOTS_MAX)
		return err_set(e, -EFBIG, "the journal exceeds %" PRIu64 " bytes",
			       (uint64_t)JOURNAL_SLOTS_MAX * JOURNAL_PAGE);
	rc = page_log_grow(p, e);
	rc = rc ? rc : io_pread(p->fd, mem, len, page * JOURNAL_PAGE, e);
	if (rc < 0)
		return rc;
	crc = codec_crc32c_sum(0, mem, len);
	memset(mem + len, 0, JOURNAL_PAGE - len);
	memcpy(mem + in, data, n);
	rc = io_pwrite(p->log, mem, JOURNAL_PAGE, page_log_slot_at(p->n_slots), e);
	if (rc < 0)
		return err_wrap(e, rc, "the journal");
	p->map[page_log_place_of(p, page)] = (struct journal_map_entry){
		.page = page,
		.slot = p->n_slots++,
		.old_crc = crc,
	};
	p->n++;
	return 0;
}

int journal_pages_write(struct journal_pages *p, const void *data, size_t n, uint64_t off,
			struct err *e)
{
	const uint8_t *from = data;

	while (n > 0) {
		uint64_t page = off / JOURNAL_PAGE;
		size_t in = (size_t)(off % JOURNAL_PAGE);
		const struct journal_map_entry *x = page_log_find(p, page);
		bool in_log = x != NULL;
		uint64_t at = off;
		size_t len;
		int rc;

		if (in_log) {
			len = page_log_piece(p, n, off, &in_log, &at);
			rc = io_pwrite(p->log, from, len, at, e);
			if (rc < 0)
				(void)err_wrap(e, rc, "the journal");
		} else {
			len = n < JOURNAL_PAGE - in ? n : JOURNAL_PAGE - in;
			rc = log_page(p, page, from, len, in, e);
		}
		if (rc < 0)
			return rc;
		from += len;
		off += len;
		n -= len;
	}
	return 0;
}

/* ---- the table ---- */

static int by_page(const void *a, const void *b)
{
	const struct journal_map_entry *x = a, *y = b;

	return x->page < y->page ? -1 : x->page > y->page;
}

/* Sort the used entries by page, to the front. */
static void page_log_sort(struct journal_pages *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->cap; i++)
		if (p->map[i].slot != EMPTY)
			p->map[n++] = p->map[i];
	if (n > 0)
		qsort(p->map, n, sizeof(*p->map), by_page);
	p->sorted = true;
}

/* Make the table's entry of a page. Its old bytes are read once more, and must be unchanged.
 * *ret_same: the new bytes are equal, and the page is left out of the table. */
static int page_log_describe(const struct journal_pages *p, const struct journal_map_entry *m,
			     struct journal_entry *x, bool *ret_same, struct err *e)
{
	size_t len = journal_page_len(m->page, p->end);
	uint8_t mem[JOURNAL_PAGE], now[JOURNAL_PAGE];
	int rc = io_pread(p->fd, mem, len, m->page * JOURNAL_PAGE, e);

	if (rc < 0)
		return rc;
	if (codec_crc32c_sum(0, mem, len) != m->old_crc)
		return err_set(e, -ESTALE,
			       "another program changed the file at %" PRIu64
			       " while it was being written",
			       m->page * (uint64_t)JOURNAL_PAGE);
	*x = (struct journal_entry){.page = m->page, .slot = m->slot};
	for (size_t i = 0; i * JOURNAL_SECTOR < len; i++) {
		size_t left = len - i * JOURNAL_SECTOR;

		x->old[i] = codec_crc32c_sum(0, mem + i * JOURNAL_SECTOR,
					     left < JOURNAL_SECTOR ? left : JOURNAL_SECTOR);
	}
	rc = io_pread(p->log, now, len, page_log_slot_at(m->slot), e);
	if (rc < 0)
		return err_wrap(e, rc, "the journal");
	x->crc = codec_crc32c_sum(0, now, len);
	*ret_same = memcmp(mem, now, len) == 0;
	return 0;
}

int journal_pages_table(struct journal_pages *p, struct journal_commit *c, struct err *e)
{
	uint8_t out[128 * JOURNAL_ENTRY];
	uint64_t at = page_log_slot_at(p->n_slots);
	size_t n = 0;

	c->n_slots = p->n_slots;
	c->n_pages = 0;
	c->table_crc = 0;
	if (!p->sorted)
		page_log_sort(p);
	for (size_t i = 0; i < p->n; i++) {
		struct journal_entry x;
		bool same = false;
		int rc;

		if (journal_page_len(p->map[i].page, c->new_end) == 0)
			break; /* it is cut off */
		rc = page_log_describe(p, &p->map[i], &x, &same, e);
		if (rc < 0)
			return rc;
		if (same)
			continue;
		journal_entry_put(&x, out + n);
		n += JOURNAL_ENTRY;
		c->n_pages++;
		if (n < sizeof(out))
			continue;
		rc = io_pwrite(p->log, out, n, at, e);
		if (rc < 0)
			return err_wrap(e, rc, "the journal");
		c->table_crc = codec_crc32c_sum(c->table_crc, out, n);
		at += n;
		n = 0;
	}
	c->table_crc = codec_crc32c_sum(c->table_crc, out, n);
	if (n > 0) {
		int rc = io_pwrite(p->log, out, n, at, e);

		if (rc < 0)
			return err_wrap(e, rc, "the journal");
	}
	return 0;
}
