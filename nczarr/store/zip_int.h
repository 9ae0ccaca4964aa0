/* SPDX-License-Identifier: BSD-3-Clause */
/* zip_int.h - the zip store; private to its files.
 *
 *   zip_end.c        finds the end of the archive, and so its directory
 *   zip_directory.c  reads the directory into a sorted table and checks it
 *   zip_read.c       locates the bytes of entries and inflates them
 *   zip.c            the store
 *
 * Spec: PKWARE APPNOTE.TXT 6.3.10; its section numbers are cited in the files. */
#ifndef NCZARR_STORE_ZIP_INT_H
#define NCZARR_STORE_ZIP_INT_H

#include <stdatomic.h>

#include "nczarr/store/sorted_keys.h"
#include "translate/cache/cache.h"

#define ZIP_ENTRY_SIG 0x02014b50u
#define ZIP_LOCAL_SIG 0x04034b50u
#define ZIP_LOCAL_BYTES 30 /* of a local header, without name and extra fields */
#define ZIP_NAME_MAX STORE_KEY_MAX

enum zip_method {
	ZIP_STORED = 0,
	ZIP_DEFLATED = 8,
	ZIP_LINK = 253,     /* not a method: a symbolic link */
	ZIP_UNKNOWN = 254,  /* 254 and more */
	ZIP_FOLDER = 255,
};

#define ZIP_AT_DATA ((uint64_t)1 << 63) /* in zip_entry.at: offset of the data, checked */

/* zip_entry - 40 bytes, and the name in zip.names. */
struct zip_entry {
	_Atomic uint64_t at;  /* offset of the local header, or of the data | ZIP_AT_DATA */
	uint64_t stored;      /* bytes in the archive */
	uint64_t size;        /* bytes when inflated */
	uint32_t crc;
	uint32_t name;        /* offset in zip.names */
	uint16_t name_len;
	uint8_t method;
};

/* zip_end - contents of the end record. */
struct zip_end {
	uint64_t n;         /* entries; the writer may have counted modulo 65536 */
	bool n_is_64;       /* n is exact */
	uint64_t dir;       /* offset of the directory in the file */
	uint64_t dir_len;
	uint64_t base;      /* to add to offsets of entries: bytes before the archive */
};

#define ZIP_KEPT_BYTES ((uint64_t)64 << 20) /* limit of cached inflated entries except the newest */

struct zip {
	struct store base;
	int fd;                     /* owned; -1: it is remote */
	struct blob *blob;          /* its bytes: &local, or remote and borrowed */
	struct blob local;
	uint64_t mixed;             /* of fd's stat when it was opened */
	uint64_t dir, offsets_base; /* as in zip_end */
	struct zip_entry *entries;  /* sorted; owned */
	size_t n;
	char *names;                /* owned */
	size_t root;                /* length of the prefix of each entry's name that is not part
				     * of keys: the folder that is the root, and its '/' */
	struct cache *inflated;     /* entries of which parts were read; owned */
};

static inline const char *zip_name(const struct zip *z, const struct zip_entry *x)
{
	return z->names + x->name;
}

/* zip_find_end - find the directory of an archive. Returns 0; -EBADMSG no end record, or an
 * inconsistent one; -EOPNOTSUPP split over files; -EIO. */
int zip_find_end(struct blob *b, struct zip_end *ret, struct err *e) NZ_MUST_USE;

/* zip_read_dir - fill z->entries, n, names and root. Errors as of store_zip_open(). */
int zip_read_dir(struct zip *z, const struct zip_end *end, uint64_t max_meta,
		 struct err *e) NZ_MUST_USE;

/* zip_read - bytes [off, off+len) of a stored or deflated entry, checked to be inside it. */
int zip_read(struct zip *z, size_t entry, uint64_t off, uint8_t *out, size_t len,
	     struct err *e) NZ_MUST_USE;

/* zip_want - prefetch the same bytes. */
void zip_want(struct zip *z, size_t entry, uint64_t off, uint64_t len);
/* zip_place - offset of an entry's stored bytes in the archive. */
int zip_place(struct zip *z, size_t entry, uint64_t *ret, struct err *e) NZ_MUST_USE;

#endif
