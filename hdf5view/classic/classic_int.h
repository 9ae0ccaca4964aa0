/* SPDX-License-Identifier: BSD-3-Clause */
/* classic_int.h - declarations shared by the files of the classic netCDF source; private to
 * hdf5view.
 *
 * Life of a source: header_parse.c parses the header through header_reader.c into lists, model.c
 * makes a dataset of them, locate.c locates chunks. After opening nothing is written any more, so
 * no query takes a lock.
 *
 * The format: "The NetCDF Classic Format Specification" in netCDF-C's documentation (appendix
 * "File Format Specifications"), which covers CDF-1, CDF-2 (64-bit offset) and CDF-5 (64-bit
 * data). docs/dev/reading/classic.md lists the checks that are left out, and why. */
#ifndef HDF5VIEW_CLASSIC_CLASSIC_INT_H
#define HDF5VIEW_CLASSIC_CLASSIC_INT_H

#include "hdf5view/classic/classic.h"
#include "translate/contract/source.h"
#include "translate/model/builder.h"

#define CDF_WINDOW 8192        /* bytes of the header that are read at a time */

/* ---- header_reader.c: bytes of the header, in order ---- */

/* cdf_reader - a cursor over the start of an untrusted file. The first failure is recorded and
 * sticks: later reads return 0, so a parser may read a whole structure and check once. */
struct cdf_reader {
	struct blob *blob;         /* borrowed; its size is the file's */
	uint64_t at;               /* offset of the window's first byte */
	size_t pos, len;           /* within the window: next byte, bytes read */
	uint64_t wanted, ahead;    /* remote file: end of the prefetched range, bytes of a
				    * prefetch */
	int rc;                    /* 0 or why reading failed */
	struct err why;
	uint8_t window[CDF_WINDOW];
};

void cdf_reader_init(struct cdf_reader *in, struct blob *b);
/* cdf_reader_at - the offset of the next byte. */
static inline uint64_t cdf_reader_at(const struct cdf_reader *in)
{
	return in->at + in->pos;
}
/* cdf_reader_left - the number of bytes from the next one to the end of the file. */
static inline uint64_t cdf_reader_left(const struct cdf_reader *in)
{
	return in->blob->size - cdf_reader_at(in);
}
/* cdf_reader_fail - record a failure at the next byte, unless one is recorded. Returns the
 * recorded code. */
int cdf_reader_fail(struct cdf_reader *in, int code, const char *fmt, ...) NZ_PRINTF(3, 4);
/* cdf_reader_bytes - read the next n bytes into out. what: names them in a message. Returns false
 * on failure; then out may be partly written. */
bool cdf_reader_bytes(struct cdf_reader *in, void *out, size_t n, const char *what);
/* cdf_reader_uint - read a big-endian unsigned number of 4 or 8 bytes. */
uint64_t cdf_reader_uint(struct cdf_reader *in, size_t bytes, const char *what);

/* ---- header_parse.c: the grammar ---- */

/* cdf_version - the version of a file that starts with these four bytes; 0: unknown. */
unsigned cdf_version(const uint8_t magic[4]);
/* cdf_header_read - parse the header of a file into the arena.
 * Returns 0; -EBADMSG with the error and its byte offset; -ERANGE the arena's limit is reached;
 * -EIO and other errors of reading. */
int cdf_header_read(struct blob *b, struct arena *a, struct cdf_header *ret,
		    struct err *e) NZ_MUST_USE;

/* ---- the finished source ---- */

/* cdf_array - the location of a variable's bytes. */
struct cdf_array {
	uint64_t begin;            /* of the first value */
	uint64_t slab;             /* bytes of one record; of all values if it has no records */
	uint64_t stride;           /* distance of records; 0: one piece, in C order */
};

struct cdf_source {
	struct source base;
	int fd;                    /* owned; -1: it is remote */
	struct blob *blob;         /* &local, or remote and owned */
	struct blob local;
	uint64_t cut_bytes, max_chunk_bytes;
	bool alone;                  /* each record is a chunk, even a small one */
	struct cdf_array *arrays;  /* base.ds.n_arrays; in the dataset's arena */
};

static inline struct cdf_source *cdf_of(struct source *s)
{
	return CONTAINER_OF(s, struct cdf_source, base);
}

/* cdf_notes - notes for the user, gathered while the model is built. */
struct cdf_notes {
	struct arena *arena;
	struct ds_notes list;
};

/* cdf_note - add a note. Returns 0, -ENOMEM, -ERANGE. */
int cdf_note(struct cdf_notes *notes, struct err *e, const char *fmt, ...) NZ_PRINTF(3, 4);
/* cdf_find_duplicates - mark each name that equals an earlier one; NULL names are ignored.
 * ret_twice: n entries, only ever set to true. Returns 0 or -ENOMEM. */
int cdf_find_duplicates(const char *const *names, uint32_t n, bool *ret_twice,
			struct err *e) NZ_MUST_USE;
/* cdf_full - record that the metadata exceeds the limit. Returns -ERANGE. */
int cdf_full(const struct arena *a, struct err *e);

/* cdf_dtype - a type in the model's terms; host: numbers in host byte order. */
struct dtype cdf_dtype(uint32_t type, bool host);

/* cdf_attrs - convert attributes to the model (model_attrs.c). where: prefix of notes. */
int cdf_attrs(struct cdf_notes *notes, const char *where, const struct cdf_attr *in, uint32_t n,
	      const struct ds_attr **ret, uint32_t *ret_n, struct err *e) NZ_MUST_USE;
/* cdf_text - convert bytes to UTF-8 in the arena: unchanged if they are UTF-8, else read as
 * Latin-1, which sets *ret_mapped (else untouched). Returns 0, -ERANGE. */
int cdf_text(struct arena *a, const char *s, size_t n, struct ds_text *ret, bool *ret_mapped,
	     struct err *e) NZ_MUST_USE;
/* cdf_name - the name by which a dimension or variable is shown; *ret NULL: it cannot be shown.
 * kind: "variable", "dimension". Leaves notes. Returns 0, -ENOMEM, -ERANGE. */
int cdf_name(struct cdf_notes *notes, const char *kind, const struct ds_text *in,
	     const char **ret, struct err *e) NZ_MUST_USE;

/* cdf_model - build the dataset of a header in s. It keeps only h's memory in the arena.
 * Returns 0; -EBADMSG; -ERANGE; -ENOMEM. */
int cdf_model(struct cdf_source *s, const struct cdf_header *h, struct err *e) NZ_MUST_USE;

/* cdf_chunk - determine the chunk lengths of an array. a: shape, rank and type are set. ret_chunk:
 * a->rank entries.
 * Returns true if its chunks are ranges of the file, false if each is gathered from several
 * records. */
bool cdf_chunk(const struct ds_array *a, const struct cdf_array *x, uint64_t cut_bytes,
	       bool alone,
	       uint64_t *ret_chunk);

static inline bool cdf_remote(const struct cdf_source *s)
{
	return s->blob != &s->local;
}

/* The source's operations; contracts in translate/contract/source.h. */
int cdf_locate(struct source *s, uint32_t array, uint64_t linear, struct chunk_ref *ret,
	       struct err *e);
int cdf_next(struct source *s, uint32_t array, uint64_t from, uint64_t *ret, struct err *e);
int cdf_read_chunk(struct source *s, uint32_t array, uint64_t linear, uint8_t *out, size_t len,
		   struct err *e);
int cdf_read_stored(struct source *s, uint32_t array, uint64_t linear,
		    const struct chunk_ref *ref, uint64_t off, uint8_t *out, size_t len,
		    struct err *e);
void cdf_want(struct source *s, uint32_t array, const uint64_t *linear, size_t n);
int cdf_check(struct source *s, struct err *e);
int cdf_poll(struct source *s, struct err *e);

#endif
