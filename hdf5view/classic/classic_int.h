/* SPDX-License-Identifier: BSD-3-Clause */
/* classic_int.h - what the files of the classic netCDF source share; private to hdf5view.
 *
 * Life of a source: header_parse.c reads the header's grammar through header_reader.c into lists,
 * model.c makes a dataset of them, locate.c says where chunks are. After opening nothing
 * is written any more, so that every question is answered without a lock.
 *
 * The format: "The NetCDF Classic Format Specification" in netCDF-C's documentation (appendix
 * "File Format Specifications"), which has CDF-1, CDF-2 (64-bit offset) and CDF-5 (64-bit data).
 * What is not checked, and why, is in docs/dev/reading/classic.md. */
#ifndef HDF5VIEW_CLASSIC_CLASSIC_INT_H
#define HDF5VIEW_CLASSIC_CLASSIC_INT_H

#include "translate/contract/source.h"

#define CDF_WINDOW 8192        /* bytes of the header that are read at a time */
#define CDF_NOTES_MAX 1000
#define CDF_STREAMING UINT64_MAX

/* ---- header_reader.c: bytes of the header, in order ---- */

/* cdf_in - a cursor over the start of a file that is not trusted. The first failure is recorded
 * and sticks: everything read after it is 0, so that a parser may read a whole structure and
 * ask once. */
struct cdf_reader {
	struct blob *blob;         /* borrowed; its size is the file's */
	uint64_t at;               /* offset of the window's first byte */
	size_t pos, len;           /* within the window: next byte, bytes read */
	uint64_t wanted, ahead;    /* of a remote file: wanted up to here, so much at a time */
	int rc;                    /* 0 or why reading failed */
	struct err why;
	uint8_t window[CDF_WINDOW];
};

void cdf_reader_init(struct cdf_reader *in, struct blob *b);
/* cdf_reader_at - offset of the next byte. */
static inline uint64_t cdf_reader_at(const struct cdf_reader *in)
{
	return in->at + in->pos;
}
/* cdf_reader_left - bytes between the next one and the end of the file. */
static inline uint64_t cdf_reader_left(const struct cdf_reader *in)
{
	return in->blob->size - cdf_reader_at(in);
}
/* cdf_reader_fail - record a failure at the next byte, unless there is one already. Returns it. */
int cdf_reader_fail(struct cdf_reader *in, int code, const char *fmt, ...) NZ_PRINTF(3, 4);
/* cdf_reader_bytes - the next n bytes into out. what: for a message. False on failure; out may be
 * half written then. */
bool cdf_reader_bytes(struct cdf_reader *in, void *out, size_t n, const char *what);
/* cdf_reader_skip - n bytes that mean nothing. */
void cdf_reader_skip(struct cdf_reader *in, size_t n, const char *what);
/* cdf_reader_uint - a big-endian unsigned number of 4 or 8 bytes. */
uint64_t cdf_reader_uint(struct cdf_reader *in, size_t bytes, const char *what);

/* ---- header_parse.c: the grammar ---- */

enum cdf_type {
	CDF_BYTE = 1, CDF_CHAR, CDF_SHORT, CDF_INT, CDF_FLOAT, CDF_DOUBLE,
	CDF_UBYTE, CDF_USHORT, CDF_UINT, CDF_INT64, CDF_UINT64,  /* CDF-5 */
};

struct cdf_dim {
	struct ds_text name;       /* up to the first NUL, as netCDF-C has it; NUL-terminated */
	uint64_t len;              /* 0: the record dimension */
};

struct cdf_attr {
	struct ds_text name;
	uint32_t type;             /* enum cdf_type */
	uint64_t n;
	uint8_t *data;             /* n values as the file has them */
};

struct cdf_var {
	struct ds_text name;
	uint32_t type;
	uint32_t rank;
	const uint32_t *dims;      /* each < n_dims */
	uint32_t n_attrs;
	struct cdf_attr *attrs;
	uint64_t begin;
	uint64_t at;               /* offset of its entry in the header, for messages */
};

/* cdf_header - all memory is in the arena it was read into. */
struct cdf_header {
	unsigned version;          /* 1, 2, 5 */
	uint64_t numrecs;          /* CDF_STREAMING: to be counted from the file's length */
	uint64_t end;              /* bytes of the header */
	uint32_t n_dims, n_attrs, n_vars;
	struct cdf_dim *dims;
	struct cdf_attr *attrs;
	struct cdf_var *vars;
};

/* cdf_version - of the four bytes that a file starts with; 0: not a version that is known. */
unsigned cdf_version(const uint8_t magic[4]);
/* cdf_type_bytes - bytes of a value; 0: no such type. */
uint32_t cdf_type_bytes(uint32_t type);
/* cdf_header_read - the header of a file.
 * Returns 0; -EBADMSG with what is wrong and at which byte; -ERANGE more memory than the arena may
 * hand out; -EIO and others of reading. */
int cdf_header_read(struct blob *b, struct arena *a, struct cdf_header *ret,
		    struct err *e) NZ_MUST_USE;

/* ---- the finished source ---- */

/* cdf_array - where a variable's bytes are. */
struct cdf_array {
	uint64_t begin;            /* of the first value */
	uint64_t slab;             /* bytes of one record; of all of it when it has none */
	uint64_t stride;           /* bytes from a record to the next; 0: one piece, in C order */
};

struct cdf_source {
	struct source base;
	int fd;                    /* owned; -1: it is remote */
	struct blob *blob;         /* &local, or remote and owned */
	struct blob local;
	uint64_t cut_bytes, max_chunk_bytes;
	bool alone;                  /* each record is a chunk, however small */
	struct cdf_array *arrays;  /* base.ds.n_arrays; in the dataset's arena */
};

static inline struct cdf_source *cdf_of(struct source *s)
{
	return CONTAINER_OF(s, struct cdf_source, base);
}

/* cdf_notes - lines for the user, gathered while the model grows. */
struct cdf_notes {
	struct arena *arena;
	const char **v;            /* owned */
	size_t n, cap;
	uint64_t lost;
};

void cdf_notes_release(struct cdf_notes *notes);
/* cdf_note - one line. Returns 0, -ENOMEM, -ERANGE. */
int cdf_note(struct cdf_notes *notes, struct err *e, const char *fmt, ...) NZ_PRINTF(3, 4);
/* cdf_find_duplicates - mark each name that equals an earlier one; NULL names are passed over.
 * ret_twice: n entries, only set to true. Returns 0 or -ENOMEM. */
int cdf_find_duplicates(const char *const *names, uint32_t n, bool *ret_twice,
			struct err *e) NZ_MUST_USE;
/* cdf_full - record that the metadata is larger than allowed. Returns -ERANGE. */
int cdf_full(const struct arena *a, struct err *e);

/* cdf_dtype - a type in the model's terms; host: numbers are in host byte order. */
struct dtype cdf_dtype(uint32_t type, bool host);
/* cdf_default_fill - netCDF's fill value of a type, big-endian, into out[8]. */
void cdf_default_fill(uint32_t type, uint8_t out[8]);

/* cdf_attrs - attributes as the model has them (model_attrs.c). where: what notes begin with. */
int cdf_attrs(struct cdf_notes *notes, const char *where, const struct cdf_attr *in, uint32_t n,
	      const struct ds_attr **ret, uint32_t *ret_n, struct err *e) NZ_MUST_USE;
/* cdf_text - bytes as UTF-8 in the arena: as they are, or read as Latin-1, which sets
 * *ret_mapped (else untouched). Returns 0, -ERANGE. */
int cdf_text(struct arena *a, const char *s, size_t n, struct ds_text *ret, bool *ret_mapped,
	     struct err *e) NZ_MUST_USE;
/* cdf_name - the name of a dimension or variable as it is shown; *ret NULL: it cannot be.
 * kind: "variable", "dimension". Leaves notes. Returns 0, -ENOMEM, -ERANGE. */
int cdf_name(struct cdf_notes *notes, const char *kind, const struct ds_text *in,
	     const char **ret, struct err *e) NZ_MUST_USE;

/* cdf_model - the dataset of a header, into s. Takes nothing from h but memory of the arena.
 * Returns 0; -EBADMSG; -ERANGE; -ENOMEM. */
int cdf_model(struct cdf_source *s, const struct cdf_header *h, struct err *e) NZ_MUST_USE;

/* cdf_chunk - chunk lengths of an array, and whether its chunks are ranges of the file; else they
 * are gathered from several records.
 * a: shape, rank and type are set. ret_chunk: a->rank entries. */
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
