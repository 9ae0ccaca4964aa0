/* SPDX-License-Identifier: BSD-3-Clause */
/* header_parse.c - the header's grammar:
 *
 *   header   = "CDF" version  numrecs  list(dim)  list(attr)  list(var)
 *   list(x)  = tag  nelems  x...          ABSENT is a tag and a count of zero
 *   dim      = name  length
 *   attr     = name  type  nelems  values padded to four bytes
 *   var      = name  rank  dimid...  list(attr)  type  vsize  begin
 *
 * Tags and types have four bytes; counts, lengths, dimids and vsize four, or eight in CDF-5;
 * begin has four bytes in CDF-1, else eight. vsize says what the dimensions say, or is wrong, and
 * is ignored. A count is believed only where so many of the smallest elements fit into the rest
 * of the file. */
#include "hdf5view/classic/classic_int.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct parse {
	struct cdf_reader in;
	struct arena *arena;
	struct cdf_header *h;
	size_t number; /* bytes of a count */
	size_t offset; /* bytes of a begin */
};

uint32_t cdf_type_bytes(uint32_t type)
{
	static const uint32_t bytes[] = {
		[CDF_BYTE] = 1,  [CDF_CHAR] = 1,   [CDF_SHORT] = 2,  [CDF_INT] = 4,
		[CDF_FLOAT] = 4, [CDF_DOUBLE] = 8, [CDF_UBYTE] = 1,  [CDF_USHORT] = 2,
		[CDF_UINT] = 4,  [CDF_INT64] = 8,  [CDF_UINT64] = 8,
	};

	return type < ARRAY_LEN(bytes) ? bytes[type] : 0;
}

unsigned cdf_version(const uint8_t magic[4])
{
	if (memcmp(magic, "CDF", 3) != 0)
		return 0;
	return magic[3] == 1 || magic[3] == 2 || magic[3] == 5 ? magic[3] : 0;
}

/* header_parse_room - allocate n elements; NULL with the failure recorded. */
static void *header_parse_room(struct parse *p, uint64_t n, size_t size)
{
	void *v = p->in.rc == 0 ? arena_alloc(p->arena, (size_t)n, size) : NULL;

	if (!v && p->arena->starved)
		(void)cdf_reader_fail(&p->in, -ENOMEM, "out of memory");
	else if (!v)
		(void)cdf_reader_fail(&p->in, -ERANGE,
				      "the metadata needs more than %zu bytes (half of -o "
				      "memory): use a larger -o memory",
				      p->arena->max);
	return v;
}

/* header_parse_count - read the number of elements that take at least `least` bytes each. */
static uint64_t header_parse_count(struct parse *p, uint64_t least, const char *what)
{
	uint64_t at = cdf_reader_at(&p->in), n = cdf_reader_uint(&p->in, p->number, what);

	if (p->in.rc == 0 && n > cdf_reader_left(&p->in) / least)
		(void)cdf_reader_fail(&p->in, -EBADMSG,
				      "%s at byte %" PRIu64 " of the header is %" PRIu64
				      ", more than the file's %" PRIu64
				      " bytes can hold: the header is damaged",
				      what, at, n, p->in.blob->size);
	return p->in.rc == 0 ? n : 0;
}

/* header_parse_list - read tag and count of one of the three lists. */
static uint32_t header_parse_list(struct parse *p, uint32_t tag, uint64_t least,
				  const char *what)
{
	uint64_t at = cdf_reader_at(&p->in), got = cdf_reader_uint(&p->in, 4, what);
	uint64_t n = header_parse_count(p, least, what);

	if (n > 0 && got != tag)
		(void)cdf_reader_fail(&p->in, -EBADMSG,
				      "%s at byte %" PRIu64
				      " of the header has the tag %" PRIu64 ", not %" PRIu32
				      ": the header is damaged",
				      what, at, got, tag);
	if (n > UINT32_MAX - 1)
		(void)cdf_reader_fail(&p->in, -ERANGE, "%s is too large: %" PRIu64, what, n);
	return p->in.rc == 0 ? (uint32_t)n : 0;
}

/* pad - skip to the next multiple of four, whatever the bytes are. */
static void pad(struct parse *p, uint64_t n, const char *what)
{
	uint8_t skipped[4];

	(void)cdf_reader_bytes(&p->in, skipped, (size_t)cdf_padding(n), what);
}

static struct ds_text header_parse_name(struct parse *p, const char *what)
{
	uint64_t n = header_parse_count(p, 1, what);
	struct ds_text t = {.s = "", .len = 0};
	char *s = header_parse_room(p, n + 1, 1);

	if (!s || !cdf_reader_bytes(&p->in, s, (size_t)n, what))
		return t;
	pad(p, n, what);
	t.s = s;
	t.len = strlen(s); /* a NUL follows: memory was zeroed, and one byte more */
	return t;
}

static uint32_t header_parse_type(struct parse *p)
{
	uint64_t at = cdf_reader_at(&p->in);
	uint32_t t = (uint32_t)cdf_reader_uint(&p->in, 4, "a type");

	if (p->in.rc == 0 && cdf_type_bytes(t) == 0)
		(void)cdf_reader_fail(&p->in, -EBADMSG,
				      "the type at byte %" PRIu64 " of the header is %" PRIu32
				      ", which is not a netCDF type: the header is damaged",
				      at, t);
	return t;
}

static void read_attr(struct parse *p, struct cdf_attr *a)
{
	uint64_t bytes;

	a->name = header_parse_name(p, "the name of an attribute");
	a->type = header_parse_type(p);
	a->n = header_parse_count(p, u64_max(cdf_type_bytes(a->type), 1),
				  "the length of an attribute");
	bytes = a->n * cdf_type_bytes(a->type); /* limited by the file's size */
	a->data = header_parse_room(p, bytes, 1);
	if (!a->data || !cdf_reader_bytes(&p->in, a->data, (size_t)bytes, "an attribute"))
		return;
	pad(p, bytes, "an attribute");
}

static uint32_t read_attrs(struct parse *p, struct cdf_attr **ret)
{
	uint32_t n =
		header_parse_list(p, CDF_TAG_ATTR, 2 * p->number + 4, "the list of attributes");

	*ret = header_parse_room(p, n, sizeof(**ret));
	for (uint32_t i = 0; i < n && p->in.rc == 0; i++)
		read_attr(p, &(*ret)[i]);
	return p->in.rc == 0 ? n : 0;
}

static void read_dims(struct parse *p)
{
	uint32_t n = header_parse_list(p, CDF_TAG_DIM, 2 * p->number, "the list of dimensions");

	p->h->dims = header_parse_room(p, n, sizeof(*p->h->dims));
	for (uint32_t i = 0; i < n && p->in.rc == 0; i++) {
		p->h->dims[i].name = header_parse_name(p, "the name of a dimension");
		p->h->dims[i].len =
			cdf_reader_uint(&p->in, p->number, "the length of a dimension");
	}
	p->h->n_dims = p->in.rc == 0 ? n : 0;
}

static void read_dimids(struct parse *p, struct cdf_var *v)
{
	uint64_t n = header_parse_count(p, p->number, "the rank of a variable");
	uint32_t *dims = header_parse_room(p, n, sizeof(*dims));

	for (uint64_t i = 0; i < n && p->in.rc == 0; i++) {
		uint64_t at = cdf_reader_at(&p->in);
		uint64_t id = cdf_reader_uint(&p->in, p->number, "a dimension of a variable");

		if (p->in.rc == 0 && id >= p->h->n_dims)
			(void)cdf_reader_fail(&p->in, -EBADMSG,
					      "'%.80s' has dimension %" PRIu64 " of %" PRIu32
					      " (byte %" PRIu64
					      " of the header): the header is damaged",
					      v->name.s, id, p->h->n_dims, at);
		else if (p->in.rc == 0 && i > 0 && p->h->dims[id].len == 0)
			(void)cdf_reader_fail(
				&p->in, -EBADMSG,
				"'%.80s' has the record dimension, but not as its "
				"first (byte %" PRIu64 " of the header): the header is damaged",
				v->name.s, at);
		else
			dims[i] = (uint32_t)id;
	}
	v->dims = dims;
	v->rank = (uint32_t)u64_min(n, UINT32_MAX);
}

static void read_var(struct parse *p, struct cdf_var *v)
{
	v->at = cdf_reader_at(&p->in);
	v->name = header_parse_name(p, "the name of a variable");
	read_dimids(p, v);
	v->n_attrs = read_attrs(p, &v->attrs);
	v->type = header_parse_type(p);
	(void)cdf_reader_uint(&p->in, p->number, "the size of a variable");
	v->begin = cdf_reader_uint(&p->in, p->offset, "the offset of a variable");
	if (p->in.rc == 0 && v->begin > (p->offset == 4 ? INT32_MAX : INT64_MAX))
		(void)cdf_reader_fail(&p->in, -EBADMSG,
				      "'%.80s' begins at a negative offset (byte %" PRIu64
				      " of the header): the header is damaged",
				      v->name.s, cdf_reader_at(&p->in) - p->offset);
}

static void read_vars(struct parse *p)
{
	uint64_t least = 3 * p->number + 2 * 4 + p->number + p->offset;
	uint32_t n = header_parse_list(p, CDF_TAG_VAR, least, "the list of variables");

	p->h->vars = header_parse_room(p, n, sizeof(*p->h->vars));
	for (uint32_t i = 0; i < n && p->in.rc == 0; i++)
		read_var(p, &p->h->vars[i]);
	p->h->n_vars = p->in.rc == 0 ? n : 0;
}

/* check_begins - reject data that starts inside the header. */
static void check_begins(struct parse *p)
{
	for (uint32_t i = 0; i < p->h->n_vars; i++) {
		const struct cdf_var *v = &p->h->vars[i];

		if (v->begin < p->h->end)
			(void)cdf_reader_fail(&p->in, -EBADMSG,
					      "'%.80s' begins at byte %" PRIu64
					      ", inside the header of %" PRIu64
					      " bytes: the header is damaged",
					      v->name.s, v->begin, p->h->end);
	}
}

static int header_parse_parse(struct parse *p)
{
	uint8_t magic[4] = {0};

	(void)cdf_reader_bytes(&p->in, magic, sizeof(magic), "the format");
	p->h->version = cdf_version(magic);
	if (p->in.rc == 0 && p->h->version == 0)
		return cdf_reader_fail(&p->in, -EBADMSG, "it is not a classic netCDF file");
	p->number = cdf_number_bytes(p->h->version);
	p->offset = cdf_offset_bytes(p->h->version);
	p->h->numrecs = cdf_reader_uint(&p->in, p->number, "the number of records");
	if (p->number == 4 && p->h->numrecs == UINT32_MAX)
		p->h->numrecs = CDF_STREAMING;
	read_dims(p);
	p->h->n_attrs = read_attrs(p, &p->h->attrs);
	read_vars(p);
	p->h->end = cdf_reader_at(&p->in);
	check_begins(p);
	return p->in.rc;
}

int cdf_header_read(struct blob *b, struct arena *a, struct cdf_header *ret, struct err *e)
{
	auto_free struct parse *p = alloc_array(1, sizeof(*p));
	int rc;

	if (!p)
		return err_nomem(e);
	*ret = (struct cdf_header){0};
	p->arena = a;
	p->h = ret;
	cdf_reader_init(&p->in, b);
	rc = header_parse_parse(p);
	return rc < 0 ? err_set(e, rc, "%s", p->in.why.msg) : 0;
}
