/* nc_texts.c - elements without a fixed size live in the file's global heap, which only the library
 * writes: all of them are read and written while the structure is made.
 *
 * One chunk at a time: the source gives lengths and bytes of all its elements, those inside the
 * shape go to the library. h5_lock is not held while the source reads. */
#include "hdf5view/nc_build_int.h"

#include "base/slice.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define CHUNK_ELEMS 32768 /* elements of a chunk of texts: half a megabyte */
#define HEAP_HEAD 16      /* of an object in the global heap */
#define WANTED 32         /* chunks of a source far away that are asked for at a time */

void nc_texts_chunk(const struct ds_array *a, uint64_t *ret)
{
	uint64_t n;
	uint32_t longest = 0;

	for (uint32_t d = 0; d < a->rank; d++)
		ret[d] = u64_max(1, u64_min(a->shape[d], UINT32_MAX));
	do {
		n = 1;
		for (uint32_t d = 0; d < a->rank; d++) {
			if (ckd_mul(&n, n, ret[d]))
				n = UINT64_MAX;
			if (ret[d] > ret[longest])
				longest = d;
		}
		if (n > CHUNK_ELEMS)
			ret[longest] = (ret[longest] + 1) / 2;
	} while (n > CHUNK_ELEMS);
}

/* piece - the part of one chunk that is inside the shape. */
struct piece {
	const struct ds_array *a;
	hsize_t start[NC_RANK_LIMIT], count[NC_RANK_LIMIT];
	uint64_t inside; /* elements */
	struct buf raw;  /* what the source gave */
	void *values;    /* char * or hvl_t for each element inside */
	uint64_t bytes;  /* that they take in the heap */
};

static bool is_text(const struct ds_array *a)
{
	return a->type.kind == DT_VSTRING;
}

static void bounds(struct piece *p, uint64_t linear)
{
	uint64_t at[DS_RANK_MAX];

	ds_chunk_coords(p->a, linear, at);
	p->inside = 1;
	for (uint32_t d = 0; d < p->a->rank; d++) {
		p->start[d] = at[d] * p->a->chunk[d];
		p->count[d] = u64_min(p->a->chunk[d], p->a->shape[d] - p->start[d]);
		p->inside *= p->count[d];
	}
}

/* set_value - element i of those inside. The text's NUL is written later, where the next one's
 * length was. */
static void set_value(struct piece *p, uint64_t i, const uint8_t *bytes, size_t n)
{
	uint64_t room = (n + 1 + 7) / 8 * 8 + HEAP_HEAD;

	/* the library only reads them */
	if (is_text(p->a))
		((char **)p->values)[i] = (char *)(uintptr_t)bytes;
	else
		((hvl_t *)p->values)[i] = (hvl_t){.len = n / p->a->type.base->size,
						  .p = (void *)(uintptr_t)bytes};
	p->bytes += n ? room : 0;
}

/* step - next element of a whole chunk in C order. Returns whether idx is inside the shape. */
static bool step(const struct piece *p, uint64_t *idx)
{
	bool inside = true;

	for (uint32_t d = p->a->rank; d-- > 0;) {
		if (++idx[d] < p->a->chunk[d])
			break;
		idx[d] = 0;
	}
	for (uint32_t d = 0; d < p->a->rank; d++)
		inside = inside && idx[d] < p->count[d];
	return inside;
}

/* parse - find the elements in what the source gave. */
static int parse(struct piece *p, struct err *e)
{
	struct slice s = slice_of(p->raw.data, p->raw.len - 1); /* a byte for the last NUL */
	uint64_t idx[DS_RANK_MAX] = {0}, n = 1, i = 0;
	bool inside = true;

	for (uint32_t d = 0; d < p->a->rank; d++)
		n *= p->a->chunk[d]; /* each takes bytes of p->raw, or the slice ends */
	for (uint64_t k = 0; k < n && slice_ok(&s); k++) {
		uint8_t *mark = p->raw.data + (p->raw.len - 1 - s.len);
		uint32_t len = rd_le32(&s);
		const uint8_t *bytes = rd_bytes(&s, len);

		*mark = 0; /* ends the text before it; its length was read */
		if (!slice_ok(&s) || (!is_text(p->a) && len % p->a->type.base->size != 0))
			break;
		if (inside)
			set_value(p, i++, bytes, len);
		inside = step(p, idx);
	}
	if (!slice_ok(&s) || i != p->inside)
		return err_set(e, -EBADMSG, "elements end before the chunk does");
	p->raw.data[p->raw.len - 1 - s.len] = 0;
	return 0;
}

/* same_values - all elements are the fill value: an absent chunk. */
static int same_values(struct piece *p, struct err *e)
{
	const struct ds_text *t = &p->a->fill_text;

	buf_clear(&p->raw);
	if (is_text(p->a) && t->s)
		buf_put(&p->raw, t->s, t->len);
	buf_putc(&p->raw, '\0');
	if (!buf_ok(&p->raw))
		return err_nomem(e);
	for (uint64_t i = 0; i < p->inside; i++)
		set_value(p, i, p->raw.data, p->raw.len - 1);
	return 0;
}

/* fetch - the elements of a chunk into p->values. */
static int fetch(struct piece *p, struct source *s, uint32_t array, uint64_t linear,
		 struct err *e)
{
	struct chunk_ref ref;
	int rc = source_locate(s, array, linear, &ref, e);

	p->bytes = 0;
	if (rc)
		return rc;
	free(p->values);
	p->values = alloc_array(p->inside, sizeof(hvl_t));
	if (!p->values)
		return err_nomem(e);
	if (ref.where == CHUNK_ABSENT)
		return same_values(p, e);
	buf_clear(&p->raw);
	rc = source_read_vlen(s, array, linear, &p->raw, e);
	if (rc)
		return rc;
	buf_putc(&p->raw, '\0');
	return buf_ok(&p->raw) ? parse(p, e) : err_nomem(e);
}

/* write_piece - h5_lock is held. Returns 0 or -1. */
static int write_piece(struct nc_builder *b, hid_t set, const struct piece *p, uint32_t array)
{
	int rank = (int)p->a->rank;
	auto_hid hid_t type = nc_h5_type(b, &p->a->type, b->m->arrays[array].type);
	auto_hid hid_t space = H5Dget_space(set);
	auto_hid hid_t mem =
		rank ? H5Screate_simple(rank, p->count, NULL) : H5Screate(H5S_SCALAR);

	if (type < 0 || space < 0 || mem < 0)
		return -1;
	if (rank &&
	    H5Sselect_hyperslab(space, H5S_SELECT_SET, p->start, NULL, p->count, NULL) < 0)
		return -1;
	return H5Dwrite(set, type, mem, space, H5P_DEFAULT, p->values) < 0 ? -1 : 0;
}

/* room_left - bytes that the file may still grow. h5_lock is held. */
static uint64_t room_left(const struct nc_builder *b)
{
	hsize_t size = 0;

	if (H5Fget_filesize(b->file, &size) < 0 || size > b->max_bytes)
		return 0;
	return b->max_bytes - size;
}

/* break_array - what is wrong with its data is for who reads it. What says nothing about the data
 * is not: it is returned. */
static int break_array(struct nc_builder *b, uint32_t array, int rc, const struct err *why,
		       struct err *e)
{
	if (err_accident(rc) || rc == -ERANGE || rc == -ESTALE || rc == -ETIMEDOUT ||
	    rc == -ECANCELED)
		return err_set(e, rc, "%s", why->msg);
	b->broken[array] = strdup(why->msg);
	return b->broken[array] ? 0 : err_nomem(e);
}

static int one_chunk(struct nc_builder *b, struct source *s, hid_t set, struct piece *p,
		     uint32_t array, uint64_t linear, struct err *e)
{
	struct err why = ERR_INIT;
	uint64_t left;
	int rc;

	h5_enter();
	left = room_left(b);
	h5_leave();
	p->raw.max = (size_t)u64_min(left, SIZE_MAX);
	bounds(p, linear);
	rc = fetch(p, s, array, linear, &why);
	if (rc == -EIO) /* it is remembered of the array: once is not enough */
		rc = fetch(p, s, array, linear, &why);
	if (rc)
		return break_array(b, array, rc, &why, e);
	if (p->bytes > left)
		return err_set(e, -ERANGE,
			       "texts of the netCDF file exceed the %" PRIu64 " bytes allowed",
			       b->max_bytes);
	h5_enter();
	if (write_piece(b, set, p, array) < 0)
		rc = nc_h5_fail(b, 0, array, e);
	h5_leave();
	return rc;
}

int nc_texts_write(struct nc_builder *b, struct source *s, uint32_t array, struct err *e)
{
	const struct ds_array *a = &b->ds->arrays[array];
	struct piece p = {.a = a};
	uint64_t at;
	hid_t set;
	int rc = 0;

	/* listed once, absent ones need not be asked for; errors are said when chunks are read */
	if (s->far && !s->unlisted && source_next(s, array, 0, &at, NULL) == -ENOMEM)
		return err_nomem(e);
	buf_init(&p.raw, SIZE_MAX);
	h5_enter();
	set = H5Oopen_by_addr(b->file, b->arrays[array]);
	if (set < 0)
		rc = nc_h5_fail(b, 0, array, e);
	h5_leave();
	for (uint64_t c = 0; c < a->n_chunks && !rc && !b->broken[array]; c++) {
		if (c % WANTED == 0)
			chunkio_want_run(s, array, c, 2 * WANTED);
		rc = one_chunk(b, s, set, &p, array, c, e);
	}
	h5_enter();
	h5_id_close(&set);
	h5_leave();
	buf_release(&p.raw);
	free(p.values);
	if (rc && rc != -EIO)
		return err_wrap(e, rc, "'%s'", a->name);
	return rc;
}
