/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_int.h - what the files of the journal share; private to hdf5view.
 *
 * The log, a file `journal` in the state directory, little-endian:
 *
 *	block 0        head: a transaction on this file began, its end was there
 *	blocks 1, 2    the commit record, twice; zeros until there is one
 *	blocks 3 ...   slots: pages of the file as they are to be
 *	then           table: one entry for each page, in the order of the file
 *
 * docs/dev/writing/journal.md has the fields. */
#ifndef HDF5VIEW_JOURNAL_JOURNAL_INT_H
#define HDF5VIEW_JOURNAL_JOURNAL_INT_H

#include "hdf5view/journal/journal.h"
#include "hdf5view/hdf5view.h"

#include <sys/stat.h>

#define JOURNAL_NAME "journal"
#define JOURNAL_PAGE ((size_t)4096)
#define JOURNAL_SECTOR ((size_t)512)  /* is on a disk as a whole or not at all */
#define JOURNAL_SECTORS (JOURNAL_PAGE / JOURNAL_SECTOR)
#define JOURNAL_COPIES 2              /* of the commit record */
#define JOURNAL_SLOTS ((1 + JOURNAL_COPIES) * JOURNAL_PAGE)  /* where slots begin */
#define JOURNAL_SLOTS_MAX (UINT32_MAX - 1)
#define JOURNAL_ENTRY ((size_t)56)    /* bytes of an entry of the table */
#define JOURNAL_RECORD ((size_t)128)  /* bytes of head and commit record */
#define JOURNAL_SUPER ((size_t)96)    /* bytes of a superblock that are looked at, at most */
#define JOURNAL_NOWHERE UINT64_MAX

/* ---- log_format.c: the format, and what a commit does with it ---- */

/* journal_head - which file a transaction began on. */
struct journal_head {
	uint8_t id[16];       /* random: head and commit record belong together */
	uint64_t ino, dev;    /* dev is for people: it may be another after a reboot */
	uint64_t end;         /* bytes of the file */
	int64_t mtime_s, mtime_ns;
	uint64_t super;       /* where its superblock is, or JOURNAL_NOWHERE */
	uint32_t super_crc;
};

struct journal_commit {
	uint8_t id[16];
	uint64_t end;         /* as in the head */
	uint64_t new_end;
	uint64_t size;        /* of the file when the record was written: the greater of both */
	uint64_t n_slots;
	uint64_t n_pages;     /* entries of the table, which begins behind the slots */
	uint32_t table_crc;
};

/* journal_entry - a page of the file. */
struct journal_entry {
	uint64_t page;        /* number: its place is page * JOURNAL_PAGE */
	uint64_t slot;
	uint32_t crc;         /* of its new bytes, journal_page_len of them */
	uint32_t old[JOURNAL_SECTORS];  /* CRCs of its old sectors; 0 behind the old end */
};

/* journal_page_len - bytes of a page that lie before the end of the file; 0: none. */
static inline size_t journal_page_len(uint64_t page, uint64_t end)
{
	uint64_t at = page * JOURNAL_PAGE;

	return at >= end ? 0 : (size_t)u64_min(end - at, JOURNAL_PAGE);
}

/* journal_head_of - describe an open file. id is made. */
int journal_head_of(int fd, const struct stat *st, struct journal_head *ret,
		    struct err *e) NZ_MUST_USE;
/* journal_super_is - whether the superblock is still the one that the head describes: 1, 0, or
 * -errno when it could not be read. */
int journal_super_is(int fd, const struct journal_head *h, struct err *e) NZ_MUST_USE;

void journal_head_put(const struct journal_head *h, uint8_t out[JOURNAL_RECORD]);
bool journal_head_get(const uint8_t in[JOURNAL_RECORD], struct journal_head *ret);
void journal_commit_put(const struct journal_commit *c, uint8_t out[JOURNAL_RECORD]);
bool journal_commit_get(const uint8_t in[JOURNAL_RECORD], struct journal_commit *ret);
void journal_entry_put(const struct journal_entry *x, uint8_t out[JOURNAL_ENTRY]);

/* journal_each - the entries of a log in the order of the file, checked: that pages ascend and lie
 * before the end, that slots are there, that the table's checksum holds (asked for at its end).
 * fn returns 0 or what each is to return. -EBADMSG the log is damaged. */
int journal_each(int log, const struct journal_commit *c,
		 int (*fn)(void *arg, const struct journal_entry *x, struct err *e), void *arg,
		 struct err *e) NZ_MUST_USE;

/* journal_apply - pages to their places, the file to its new end, durably. May be interrupted and
 * done again. The log has been checked. */
int journal_apply(int fd, int log, const struct journal_commit *c, struct err *e) NZ_MUST_USE;

/* journal_remove - the log is gone, durably. */
int journal_remove(int dir_fd, struct err *e) NZ_MUST_USE;
/* journal_sync_dir - its entries are on the disk, where the filesystem knows how. */
int journal_sync_dir(int dir_fd, struct err *e) NZ_MUST_USE;

/* journal_lock - flock it as libhdf5 would. -EAGAIN. */
int journal_lock(int fd, const char *path, struct err *e) NZ_MUST_USE;

/* ---- recover.c ---- */

/* journal_found - what there is in a state directory. */
struct journal_found {
	enum hdf5_journal_state state;
	bool done;     /* REDO: all pages are in place, only the log is left over */
	char why[200]; /* FOREIGN */
};

/* journal_probe - hdf5_journal_status with more to say. fd: the file, readable. */
int journal_probe(int fd, int dir_fd, struct journal_found *ret, struct err *e) NZ_MUST_USE;
/* journal_recover_state - do what was found; fd is writable and locked. */
int journal_recover_state(int fd, int dir_fd, const struct journal_found *found,
			  struct err *e) NZ_MUST_USE;

/* ---- page_log.c: pages that are not what they were ---- */

struct journal_map_entry {
	uint64_t page;
	uint32_t slot;     /* UINT32_MAX: an empty place */
	uint32_t old_crc;  /* of the page in the file when it was logged */
};

/* journal_pages - 16 bytes for a place, of which a quarter to two thirds are empty. */
struct journal_pages {
	int fd;            /* the file; borrowed */
	int log;           /* borrowed; -1 until the first page is logged */
	uint64_t end;      /* the file's end: pages are of what is before it */
	struct journal_map_entry *map;
	size_t cap;        /* a power of 2, or 0 */
	size_t n;
	uint32_t n_slots;
	bool sorted;       /* map is the n entries in the order of pages; nothing can be added */
};

void journal_pages_release(struct journal_pages *p);
/* journal_pages_read - n bytes at off, all before the end: logged ones, else the file's. */
int journal_pages_read(const struct journal_pages *p, void *out, size_t n, uint64_t off,
		       struct err *e) NZ_MUST_USE;
int journal_pages_write(struct journal_pages *p, const void *data, size_t n, uint64_t off,
			struct err *e) NZ_MUST_USE;
/* journal_pages_table - write the table of the pages before new_end behind the slots; *c has `end`
 * and `new_end` and gets n_slots, n_pages and table_crc. -ESTALE: a page in the file is not what it
 * was when it was logged. */
int journal_pages_table(struct journal_pages *p, struct journal_commit *c,
			struct err *e) NZ_MUST_USE;

/* ---- journal.c: the transaction ---- */

enum journal_phase {
	JOURNAL_IDLE,       /* nothing has been written */
	JOURNAL_LOGGING,    /* there is a log */
	JOURNAL_BEGUN,      /* its head is durable: the file may grow */
	JOURNAL_COMMITTED,  /* so is the commit record, or it may be */
	JOURNAL_DONE,       /* and everything is in its place */
};

struct h5_journal {
	int fd;               /* the file; owned */
	int dir_fd;
	enum journal_phase phase;
	struct journal_head head;
	struct timespec times[2];  /* of the file, when the transaction began */
	struct stat mine;     /* the file as this transaction left it */
	struct journal_pages pages;  /* pages.log is owned */
	uint64_t eoa, eof;    /* as libhdf5 knows the file */
	bool shorter;         /* it wants another end than the old one */
	bool resized;         /* the file's size is, or may be, not what it was */
	unsigned open;        /* files that libhdf5 has open */
	struct err why;       /* code != 0: the driver failed */
};

/* journal_read, journal_write - for the driver: any place of the file as it is going to be. What
 * fails is remembered. */
int journal_read(struct h5_journal *j, void *out, size_t n, uint64_t off) NZ_MUST_USE;
int journal_write(struct h5_journal *j, const void *data, size_t n, uint64_t off) NZ_MUST_USE;

#endif
