/* format_int.h - shared by the files that implement hdf5_format.h; nobody else includes it. */
#ifndef HDF5VIEW_FORMAT_FORMAT_INT_H
#define HDF5VIEW_FORMAT_FORMAT_INT_H

#include "base/core/cursor.h"
#include "hdf5view/format/hdf5_format.h"

#define H5_ABSENT UINT64_MAX
#define H5_NOWHERE (UINT64_MAX - 1)  /* a stated address that no file can hold */
#define H5_DEPTH_MAX 64

/* Little-endian numbers whose bytes are known to be there: the inner loops over index entries,
 * where one check for the whole node was made. Everything else reads through a slice. */
static inline uint32_t h5_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t h5_le64(const uint8_t *p)
{
	return (uint64_t)h5_le32(p) | (uint64_t)h5_le32(p + 4) << 32;
}

/* h5_le - n bytes, n <= 8. */
static inline uint64_t h5_le(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	if (n == 8)
		return h5_le64(p);
	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

/* h5_addr - an address field of f->offset_size bytes made absolute; all ones is H5_ABSENT, a sum
 * that overflows is H5_NOWHERE. */
static inline uint64_t h5_addr(const struct h5_file *f, const uint8_t *p)
{
	uint64_t v = h5_le(p, f->offset_size), sum;

	if (v == UINT64_MAX >> (64 - 8 * f->offset_size))
		return H5_ABSENT;
	return ckd_add(&sum, v, f->base) || sum == H5_ABSENT ? H5_NOWHERE : sum;
}

/* h5_rd_addr, h5_rd_length - the same from a slice; a length of all ones is UINT64_MAX. */
uint64_t h5_rd_addr(const struct h5_file *f, struct slice *s);
uint64_t h5_rd_length(const struct h5_file *f, struct slice *s);

/* h5_in_file - whether [addr, addr + n) lies inside the file. */
static inline bool h5_in_file(const struct h5_file *f, uint64_t addr, uint64_t n)
{
	return addr <= f->size && n <= f->size - addr;
}

/* h5_pread - exactly n bytes at an absolute address; -EBADMSG names `what` when they are not
 * all inside the file. */
int h5_pread(const struct h5_file *f, uint64_t addr, void *out, size_t n, const char *what,
	     struct err *e) NZ_MUST_USE;

/* ---- readahead.c ---- */

#define H5_EARLY_PARTS 64

/* h5_early - ranges that are gathered to be wanted together. */
struct h5_early {
	const struct h5_file *f;
	size_t n;
	struct blob_part parts[H5_EARLY_PARTS];
};

/* h5_early_add - one more; nothing where the file is local, or addr is not in it. */
void h5_early_add(struct h5_early *x, uint64_t addr, uint64_t n);
/* h5_early_done - all that were gathered are wanted. */
void h5_early_done(struct h5_early *x);
/* h5_early_nodes - before node i of n is read, in order from 0: want those that come after it, of
 * about so many bytes each. */
void h5_early_nodes(struct h5_early *x, size_t i, size_t n, uint64_t bytes,
		    uint64_t (*addr)(const void *arg, size_t i), const void *arg);

/* h5_sum_ok - whether the last 4 of n bytes are the checksum of those before. */
static inline bool h5_sum_ok(const uint8_t *p, size_t n)
{
	return n >= 4 && h5_lookup3(p, n - 4) == h5_le32(p + n - 4);
}

/* ---- object header messages ---- */

enum { H5_MSG_DATASPACE = 0x01, H5_MSG_EXTERNAL = 0x07, H5_MSG_LAYOUT = 0x08,
       H5_MSG_PIPELINE = 0x0b, H5_MSG_CONTINUATION = 0x10 };

struct h5_message {
	uint32_t type;
	bool shared;         /* the body is a reference to where the message really is */
	uint64_t addr;       /* of the body, absolute */
	struct slice body;
};

/* h5_header_walk - call fn for each message of the object header at `header`. Continuation
 * messages are followed, not shown. Stops at the first error, also fn's. */
int h5_header_walk(const struct h5_file *f, uint64_t header,
		   int (*fn)(void *arg, const struct h5_message *m, struct err *e), void *arg,
		   struct err *e) NZ_MUST_USE;

/* ---- collecting the chunks of an index ---- */

struct h5_entry {
	uint64_t linear;
	struct h5_chunk c;
};

struct h5_build {
	const struct h5_file *f;
	const struct h5_layout *l;
	uint32_t rank;
	uint64_t limit[DS_RANK_MAX];   /* chunks in the grid and in the extent: what the library
					* would not read any more is not stored */
	uint64_t stride[DS_RANK_MAX];  /* linear distance of neighbours, C order */
	uint64_t total;                /* product of the grid */
	uint64_t max_bytes;
	uint32_t chunk_bytes;          /* of a whole unfiltered chunk */
	uint64_t budget;               /* bytes of nodes that may still be read: nodes do not
	                                * overlap, so all of them together fit in the file */
	struct h5_entry *entries;      /* n of them, in the order found */
	size_t n, cap;
	bool sorted;                   /* strictly ascending so far */
};

/* h5_build_spend - account for n bytes of nodes; -EBADMSG when they exceed the file. */
int h5_build_spend(struct h5_build *b, uint64_t n, struct err *e) NZ_MUST_USE;

/* h5_build_read - h5_pread and h5_build_spend. */
int h5_build_read(struct h5_build *b, uint64_t addr, void *out, size_t n, const char *what,
		  struct err *e) NZ_MUST_USE;

/* h5_build_node - n bytes at addr into *buf (capacity *cap, grown when needed, freed by the
 * caller), with the 4-letter signature, version 0 and the trailing checksum checked. */
int h5_build_node(struct h5_build *b, uint64_t addr, uint8_t **buf, size_t *cap, uint64_t n,
		  const char *signature, struct err *e) NZ_MUST_USE;

/* h5_build_add - one stored chunk. coords: rank chunk coordinates; outside the grid or
 * the extent it is ignored. size and mask are used when the dataset is filtered. */
int h5_build_add(struct h5_build *b, const uint64_t *coords, uint64_t addr, uint64_t size,
		 uint32_t mask, struct err *e) NZ_MUST_USE;

/* ---- index families: each adds all chunks of the index at l->addr, which is defined ---- */

int h5_btree1_load(struct h5_build *b, struct err *e) NZ_MUST_USE;
int h5_btree2_load(struct h5_build *b, struct err *e) NZ_MUST_USE;
int h5_farray_load(struct h5_build *b, struct err *e) NZ_MUST_USE;
int h5_earray_load(struct h5_build *b, struct err *e) NZ_MUST_USE;

/* ---- array indexes: element number <-> chunk coordinates ---- */

/* h5_walk - position in an array index. Elements are numbered in C order over the chunks of
 * the *maximum* extent, in an extensible array with the unlimited dimension moved first. */
struct h5_walk {
	uint32_t rank;
	uint32_t dim[DS_RANK_MAX];     /* dimension of each slot, slowest first */
	uint64_t n[DS_RANK_MAX];       /* chunks in each slot; slot 0 of an EA: unlimited */
	uint64_t coords[DS_RANK_MAX];  /* current chunk, by dimension */
	uint64_t count;                /* elements in all (EA: in the grid's part) */
};

/* h5_walk_init - extensible: exactly one dimension is unlimited. -EBADMSG when the extent does
 * not fit the kind of index; -EOPNOTSUPP when element numbers do not fit 64 bits. */
int h5_walk_init(struct h5_walk *w, const struct h5_build *b, bool extensible,
		 struct err *e) NZ_MUST_USE;
/* h5_walk_seek - go to element idx < w->count. */
void h5_walk_seek(struct h5_walk *w, uint64_t idx);
/* h5_walk_step - go to the next element. */
void h5_walk_step(struct h5_walk *w);

/* h5_elems - how elements of an array index are stored. */
struct h5_elems {
	uint8_t size;      /* bytes of an element */
	uint8_t len_size;  /* bytes of the stored size; 0: unfiltered, an address alone */
};

/* h5_elems_init - check client id and element size against the layout. */
int h5_elems_init(struct h5_elems *m, const struct h5_build *b, uint8_t client, uint8_t size,
		  struct err *e) NZ_MUST_USE;
/* h5_elems_add - add elements idx .. idx + n (cut at w->count) from n * m->size bytes at p. */
int h5_elems_add(struct h5_build *b, const struct h5_elems *m, struct h5_walk *w, uint64_t idx,
		 const uint8_t *p, uint64_t n, struct err *e) NZ_MUST_USE;

#endif
