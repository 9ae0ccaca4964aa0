/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_int.h - declarations shared by the files of the journal; private to hdf5view.
 *
 * The log, a file `journal` in the state directory, little-endian:
 *
 *	block 0        head: the file and its end at the beginning of the transaction
 *	blocks 1, 2    the commit record, twice; zeros until there is one
 *	blocks 3 ...   slots: pages of the file with their new contents
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
#define JOURNAL_SECTOR ((size_t)512)  /* a disk writes it completely or not at all */
#define JOURNAL_SECTORS (JOURNAL_PAGE / JOURNAL_SECTOR)
#define JOURNAL_COPIES 2              /* of the commit record */
#define JOURNAL_SLOTS ((1 + JOURNAL_COPIES) * JOURNAL_PAGE)  /* offset of the slots */
#define JOURNAL_SLOTS_MAX (UINT32_MAX - 1)
#define JOURNAL_ENTRY ((size_t)56)    /* bytes of an entry of the table */
#define JOURNAL_RECORD ((size_t)128)  /* bytes of head and commit record */
#define JOURNAL_SUPER ((size_t)96)    /* checked bytes of a superblock, at most */
#define JOURNAL_NOWHERE UINT64_MAX

/* ---- log_format.c: the format, and the copying of a commit ---- */

/* journal_head - the file of a transaction. */
struct journal_head {
	uint8_t id[16];       /* random: head and commit record belong together */
	uint64_t ino, dev;    /* dev is for people only: a reboot may change it */
	uint64_t end;         /* bytes of the file */
	int64_t mtime_s, mtime_ns;
	uint64_t super;       /* offset of its superblock, or JOURNAL_NOWHERE */
	uint32_t super_crc;
};

struct journal_commit {
	uint8_t id[16];
	uint64_t end;         /* as in the head */
	uint64_t new_end;
	uint64_t size;        /* of the file at the commit record: the larger of both */
	uint64_t n_slots;
	uint64_t n_pages;     /* entries of the table, which follows the slots */
	uint32_t table_crc;
};

/* journal_entry - a page of the file. */
struct journal_entry {
	uint64_t page;        /* number: its offset is page * JOURNAL_PAGE */
	uint64_t slot;
	uint32_t crc;         /* of its new bytes, journal_page_len of them */
	uint32_t old[JOURNAL_SECTORS];  /* CRCs of its old sectors; 0 after the old end */
};

/* journal_page_len - the number of bytes of a page before the end of the file; 0: none. */
static inline size_t journal_page_len(uint64_t page, uint64_t end)
{
	uint64_t at = page * JOURNAL_PAGE;

	return at >= end ? 0 : (size_t)u64_min(end - at, JOURNAL_PAGE);
}

/* journal_head_of - describe an open file, with a new random id. */
int journal_head_of(int fd, const struct stat *st, struct journal_head *ret,
		    struct err *e) NZ_MUST_USE;
/* journal_super_is - whether the superblock is still the one in the head: 1, 0, or -errno if it
 * could not be read. */
int journal_super_is(int fd, const struct journal_head *h, struct err *e) NZ_MUST_USE;

void journal_head_put(const struct journal_head *h, uint8_t out[JOURNAL_RECORD]);
bool journal_head_get(const uint8_t in[JOURNAL_RECORD], struct journal_head *ret);
void journal_commit_put(const struct journal_commit *c, uint8_t out[JOURNAL_RECORD]);
bool journal_commit_get(const uint8_t in[JOURNAL_RECORD], struct journal_commit *ret);
void journal_entry_put(const struct journal_entry *x, uint8_t out[JOURNAL_ENTRY]);

/* journal_each - call fn for the entries of a log in the order of the file, and check them: pages
 * ascend and lie before the end, slots exist, the table's checksum is right (checked at its end).
 * A nonzero result of fn ends the iteration and is returned. -EBADMSG the log is damaged. */
int journal_each(int log, const struct journal_commit *c,
		 int (*fn)(void *arg, const struct journal_entry *x, struct err *e), void *arg,
		 struct err *e) NZ_MUST_USE;

/* journal_apply - copy the pages to their places and set the file's new end, durably. It can be
 * interrupted and repeated. The log has been checked. */
int journal_apply(int fd, int log, const struct journal_commit *c, struct err *e) NZ_MUST_USE;

/* journal_remove - remove the log, durably. */
int journal_remove(int dir_fd, struct err *e) NZ_MUST_USE;
/* journal_sync_dir - sync the directory's entries, if the filesystem supports that. */
int journal_sync_dir(int dir_fd, struct err *e) NZ_MUST_USE;

/* journal_lock - flock the file in the way of libhdf5. -EAGAIN. */
int journal_lock(int fd, const char *path, struct err *e) NZ_MUST_USE;

/* ---- recover.c ---- */

/* journal_found - the state of a journal in a state directory. */
struct journal_found {
	enum hdf5_journal_state state;
	bool done;     /* REDO: all pages are in place, only the log remains */
	char why[200]; /* FOREIGN */
};

/* journal_probe - hdf5_journal_status with details. fd: the file, readable. */
int journal_probe(int fd, int dir_fd, struct journal_found *ret, struct err *e) NZ_MUST_USE;
/* journal_recover_state - carry out the recovery that was found; fd is writable and locked. */
int journal_recover_state(int fd, int dir_fd, const struct journal_found *found,
			  struct err *e) NZ_MUST_USE;

/* ---- page_log.c: changed pages ---- */

struct journal_map_entry {
	uint64_t page;
	uint32_t slot;     /* UINT32_MAX: an empty entry */
	uint32_t old_crc;  /* of the page in the file at its logging */
};

/* journal_pages - a hash table with entries of 16 bytes, of which a quarter to two thirds are
 * empty. */
struct journal_pages {
	int fd;            /* the file; borrowed */
	int log;           /* borrowed; -1 until the first page is logged */
	uint64_t end;      /* the file's old end: only bytes before it are logged */
	struct journal_map_entry *map;
	size_t cap;        /* a power of 2, or 0 */
	size_t n;
	uint32_t n_slots;
	bool sorted;       /* map has the n entries in the order of pages; no more can be added */
};

void journal_pages_release(struct journal_pages *p);
/* journal_pages_read - read n bytes at off, all before the end: from logged pages, else from the
 * file. */
int journal_pages_read(const struct journal_pages *p, void *out, size_t n, uint64_t off,
		       struct err *e) NZ_MUST_USE;
int journal_pages_write(struct journal_pages *p, const void *data, size_t n, uint64_t off,
			struct err *e) NZ_MUST_USE;
/* journal_pages_table - write the table of the pages before new_end after the slots. *c has `end`
 * and `new_end`, and gets n_slots, n_pages and table_crc. -ESTALE: a page of the file changed
 * since it was logged. */
int journal_pages_table(struct journal_pages *p, struct journal_commit *c,
			struct err *e) NZ_MUST_USE;

/* ---- journal.c: the transaction ---- */

enum journal_phase {
	JOURNAL_IDLE,       /* nothing has been written */
	JOURNAL_LOGGING,    /* the log exists */
	JOURNAL_BEGUN,      /* its head is durable: the file may grow */
	JOURNAL_COMMITTED,  /* the commit record is durable, or may be */
	JOURNAL_DONE,       /* all pages are in their places */
};

struct h5_journal {
	int fd;               /* the file; owned */
	int dir_fd;
	enum journal_phase phase;
	struct journal_head head;
	struct timespec times[2];  /* of the file, at the beginning of the transaction */
	struct stat mine;     /* the file after this transaction's last write */
	struct journal_pages pages;  /* pages.log is owned */
	uint64_t eof;         /* of the new file, as libhdf5 has written it */
	uint64_t sync_at;     /* the disk began to write appended bytes before this offset */
	bool shorter;         /* the new end is before the old one */
	bool resized;         /* the file's size has changed, or may have */
	unsigned open;        /* libhdf5's open files */
	struct err why;       /* code != 0: the driver failed */
};

/* journal_read, journal_write - for the driver (struct h5_vfd): read and write any place of the new
 * file of the h5_journal at arg. A failure is recorded. */
int journal_read(void *arg, void *out, size_t n, uint64_t off) NZ_MUST_USE;
int journal_write(void *arg, const void *data, size_t n, uint64_t off) NZ_MUST_USE;

#endif
