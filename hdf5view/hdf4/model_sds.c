/* SPDX-License-Identifier: BSD-3-Clause */
/* model_sds.c - one Scientific Data Set of an HDF4 file: its type, axes, storage, fill value. */
#include "hdf5view/hdf4/hdf4_int.h"

#ifdef NCZARRFS_HDF4
#include <errno.h>
#include "hdf5view/hdf4/hdf4_library.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/utf8.h"

/* ---- dimensions ---- */

/* find_dim - find the dimension of this name and length; an unlimited one is as long as the
 * longest array that uses it. */
static int find_dim(struct h4_build *b, const char *raw, uint64_t len, bool grows,
		    uint32_t *ret, struct err *e)
{
	uint32_t *bucket = &b->buckets[hash_text(HASH_SEED, raw) % H4_BUCKETS];
	const uint64_t key = grows ? UINT64_MAX : len;
	struct h4_bdim d = {.key = key, .next = *bucket};

	for (uint32_t i = *bucket; i; i = b->dims[i - 1].next) {
		struct h4_bdim *old = &b->dims[i - 1];

		if (old->key != key || strcmp(old->raw, raw) != 0)
			continue;
		old->d.len = u64_max(old->d.len, len);
		*ret = i - 1;
		return 0;
	}
	d.raw = arena_strdup(b->arena, raw);
	d.d = (struct ds_dim){.name = h4_name(b, raw), .len = len, .unlimited = grows};
	if (!d.raw || !d.d.name || b->n_dims >= DS_NONE - 1)
		return h4_full(b, e);
	if (grow_array(&b->dims, &b->c_dims, b->n_dims + 1, sizeof(*b->dims)) < 0)
		return err_nomem(e);
	*ret = (uint32_t)b->n_dims;
	b->dims[b->n_dims++] = d;
	*bucket = *ret + 1;
	return 0;
}

static int read_axes(struct h4_build *b, int32 sds, struct h4_barray *w, struct err *e)
{
	uint32_t *dims = arena_alloc(b->arena, w->a.rank, sizeof(*dims));
	uint64_t *extent = arena_alloc(b->arena, w->a.rank, sizeof(*extent));
	int32 lens[H4_RANK_MAX] = {0}, rank, type, n_attrs;
	bool record = SDisrecord(sds) == TRUE;
	int rc = 0;

	if (!dims || !extent)
		return h4_full(b, e);
	if (w->a.rank && SDgetinfo(sds, NULL, &rank, lens, &type, &n_attrs) == FAIL)
		return h4_error(e, -EBADMSG, "its lengths cannot be read");
	for (uint32_t i = 0; i < w->a.rank && rc == 0; i++) {
		int32 id = SDgetdimid(sds, (intn)i), len = 0, scale = 0, more = 0;

		if (lens[i] < 0 || (lens[i] == 0 && !(record && i == 0)))
			return err_set(e, -EBADMSG,
				       "dimension %" PRIu32 " has the invalid length %d", i,
				       (int)lens[i]);
		if (id == FAIL || SDdiminfo(id, b->text, &len, &scale, &more) == FAIL)
			return h4_error(e, -EBADMSG, "its dimensions cannot be read");
		b->text[H4_TEXT_MAX] = '\0';
		extent[i] = (uint64_t)lens[i];
		rc = find_dim(b, b->text, extent[i], record && i == 0, &dims[i], e);
	}
	w->a.dims = dims;
	w->x.extent = extent;
	return rc;
}

/* ---- storage ---- */

static int model_sds_unreadable(struct h4_build *b, struct h4_barray *w, struct err *e,
				const char *fmt, const char *what)
{
	struct err line = ERR_INIT;

	if (w->a.unreadable)
		return 0;
	(void)err_set(&line, 0, "%s%s", fmt, what);
	w->a.unreadable = arena_strdup(b->arena, line.msg);
	return w->a.unreadable ? 0 : h4_full(b, e);
}

/* read_external - detect values in another file, which are not read: library_read.c opens no other
 * file. */
static int read_external(struct h4_build *b, int32 sds, struct h4_barray *w, struct err *e)
{
	int32 offset = 0, length = 0;
	char name[200] = "";

	if (SDgetexternalinfo(sds, 0, NULL, NULL, NULL) <= 0)
		return 0;
	w->a.layout = DS_EXTERNAL;
	if (SDgetexternalinfo(sds, sizeof(name) - 1, name, &offset, &length) <= 0)
		name[0] = '\0';
	return model_sds_unreadable(
		b, w, e, "its values are in another file, which is not read: ", name);
}

static const char *coder_name(comp_coder_t c)
{
	switch (c) {
	case COMP_CODE_RLE:
		return "run-length encoding";
	case COMP_CODE_NBIT:
		return "n-bit";
	case COMP_CODE_SKPHUFF:
		return "skipping Huffman";
	case COMP_CODE_DEFLATE:
		return "deflate";
	case COMP_CODE_SZIP:
		return "szip";
	case COMP_CODE_JPEG:
		return "JPEG";
	default:
		return "an unknown method";
	}
}

static int read_compression(struct h4_build *b, int32 sds, struct h4_barray *w, struct err *e)
{
	comp_coder_t coder = COMP_CODE_NONE;
	comp_info info = {0};
	uint32 can = 0;

	if (SDgetcomptype(sds, &coder) == FAIL)
		return model_sds_unreadable(b, w, e, "its compression cannot be read", "");
	w->compressed = coder != COMP_CODE_NONE;
	if (!w->compressed)
		return 0;
	if (HCget_config_info(coder, &can) == FAIL || !(can & COMP_DECODER_ENABLED))
		return model_sds_unreadable(
			b, w, e,
			"this HDF4 library was built without the compression of this array, ",
			coder_name(coder));
	if (coder == COMP_CODE_DEFLATE && SDgetcompinfo(sds, &coder, &info) != FAIL &&
	    info.deflate.level >= 0 && info.deflate.level <= 9)
		w->level = (uint32_t)info.deflate.level + 1;
	return 0;
}

bool h4_chunk_lengths(int32_t sds, int32_t *ret, bool *ret_chunked)
{
	struct { /* the library writes as many lengths as the file says */
		HDF_CHUNK_DEF def;
		int32 more[1024];
	} c = {0};
	int32 flags = HDF_NONE;

	if (SDgetchunkinfo(sds, &c.def, &flags) == FAIL)
		return false;
	memcpy(ret, c.def.chunk_lengths, H4_RANK_MAX * sizeof(*ret));
	*ret_chunked = (flags & HDF_CHUNK) != 0;
	return true;
}

static int read_chunks(struct h4_build *b, int32 sds, struct h4_barray *w, struct err *e)
{
	int32 lens[H4_RANK_MAX];
	bool chunked = false;
	uint64_t *chunk;

	if (!h4_chunk_lengths(sds, lens, &chunked))
		return model_sds_unreadable(b, w, e, "its chunks cannot be read", "");
	if (!chunked)
		return 0;
	w->a.layout = DS_CHUNKED;
	chunk = arena_alloc(b->arena, w->a.rank, sizeof(*chunk));
	if (!chunk)
		return h4_full(b, e);
	for (uint32_t i = 0; i < w->a.rank; i++) {
		if (lens[i] <= 0)
			return err_set(e, -EBADMSG, "its chunks have the invalid length %d",
				       (int)lens[i]);
		chunk[i] = (uint64_t)lens[i];
	}
	w->chunk = chunk;
	return 0;
}

static int read_storage(struct h4_build *b, int32 sds, struct h4_barray *w, struct err *e)
{
	intn empty = FALSE;
	int rc;

	w->a.layout = DS_CONTIGUOUS;
	w->x.empty = SDcheckempty(sds, &empty) != FAIL && empty;
	rc = read_external(b, sds, w, e);
	if (rc == 0 && !w->x.empty)
		rc = read_chunks(b, sds, w, e);
	if (rc == 0 && !w->x.empty)
		rc = read_compression(b, sds, w, e);
	return rc;
}

/* ---- the fill value ---- */

/* default_fill - the library's value of elements that were never written: netCDF's value for the
 * type of that size; unsigned numbers have the same bits. */
static void default_fill(const struct dtype *t, uint8_t *out)
{
	static const union {
		uint8_t bytes[1];
		int8_t v;
	} i1 = {.v = -127};
	static const int16_t i2 = -32767;
	static const int32_t i4 = -2147483647;
	static const float f4 = 9.9692099683868690e+36f;
	static const double f8 = 9.9692099683868690e+36;

	if (t->kind == DT_FLOAT)
		memcpy(out, t->size == 4 ? (const void *)&f4 : (const void *)&f8, t->size);
	else if (t->kind != DT_STRING && t->size == 1)
		memcpy(out, i1.bytes, 1);
	else if (t->size == 2)
		memcpy(out, &i2, sizeof(i2));
	else if (t->size == 4)
		memcpy(out, &i4, sizeof(i4));
}

static int model_sds_read_fill(struct h4_build *b, struct ds_array *a, struct err *e)
{
	const struct ds_attr *f = ds_attr_find(a->attrs, a->n_attrs, "_FillValue");
	uint8_t *fill = arena_alloc(b->arena, 1, a->type.size);

	if (!fill)
		return h4_full(b, e);
	a->fill = fill;
	default_fill(&a->type, fill);
	if (!f || f->n != 1 || f->type.kind != a->type.kind || f->type.size != a->type.size)
		return 0;
	a->fill_defined = true;
	if (f->data)
		memcpy(fill, f->data, a->type.size);
	else if (f->strings[0].len == 1)
		memcpy(fill, f->strings[0].s, 1);
	return 0;
}

/* ---- all of it ---- */

static int model_sds_read_all(struct h4_build *b, int32 sds, struct h4_barray *w, int32 n_attrs,
			      struct err *e)
{
	int rc;

	if (!h4_type(w->x.type, &w->a.type) ||
	    DFKNTsize((w->x.type & DFNT_MASK) | DFNT_NATIVE) != (int)w->a.type.size)
		return err_set(e, -EOPNOTSUPP, "its type (%d) is not supported",
			       (int)w->x.type);
	w->a.type.big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && w->a.type.size > 1;
	w->coordinate = SDiscoordvar(sds) == TRUE;
	w->ref = SDidtoref(sds);
	w->a.key = (uint64_t)w->x.index + 1;
	w->a.access = DS_CONVERT;
	w->a.convert = arena_strdup(b->arena, "HDF4: read by its library");
	if (!w->a.convert)
		return h4_full(b, e);
	rc = read_axes(b, sds, w, e);
	rc = rc ? rc : h4_attrs_read(b, sds, n_attrs, w->a.name, &w->a.n_attrs, &w->a.attrs, e);
	rc = rc ? rc : model_sds_read_fill(b, &w->a, e);
	return rc == 0 ? read_storage(b, sds, w, e) : rc;
}

/* read_name - read a name of any length. */
static int read_name(struct h4_build *b, int32 sds, struct h4_barray *w, int32 *ret_attrs,
		     struct err *e)
{
	int32 rank = 0;
	uint16 len = 0;

	if (SDgetnamelen(sds, &len) == FAIL ||
	    SDgetinfo(sds, b->text, &rank, NULL, &w->x.type, ret_attrs) == FAIL)
		return h4_error(e, -EBADMSG, "it cannot be read");
	b->text[H4_TEXT_MAX] = '\0';
	w->a.name = h4_name(b, b->text);
	if (!w->a.name)
		return h4_full(b, e);
	if (utf8_ok(b->text, strlen(b->text)) && strcmp(w->a.name, b->text) != 0 &&
	    h4_note(b, w->a.name, e,
		    "has the name '%.100s' in the file, which is not a valid file name",
		    b->text) < 0)
		return h4_full(b, e);
	if (rank < 0 || rank > H4_RANK_MAX)
		return err_set(e, -EBADMSG, "its number of dimensions is not supported, %d",
			       (int)rank);
	w->a.rank = (uint32_t)rank;
	return 0;
}

int h4_sds_read(struct h4_build *b, int32_t index, struct err *e)
{
	struct h4_barray w = {.x = {.index = index}};
	int32 sds = SDselect(b->sd, index), n_attrs = 0;
	struct err why = ERR_INIT;
	char what[32];
	int rc;

	(void)snprintf(what, sizeof(what), "(number %" PRId32 ")", index + 1);
	if (sds == FAIL) {
		(void)h4_error(&why, -EBADMSG, "it cannot be opened");
		return h4_mark_unreadable(b, NULL, what, &why, e);
	}
	rc = read_name(b, sds, &w, &n_attrs, &why);
	rc = rc ? rc : model_sds_read_all(b, sds, &w, n_attrs, &why);
	(void)SDendaccess(sds); /* nothing was written */
	if (h4_fatal(rc))
		return err_set(e, rc, "'%.200s': %s", w.a.name ? w.a.name : what, why.msg);
	if (rc < 0)
		return h4_mark_unreadable(b, w.a.name, what, &why, e);
	if (grow_array(&b->arrays, &b->c_arrays, b->n_arrays + 1, sizeof(*b->arrays)) < 0)
		return err_nomem(e);
	b->arrays[b->n_arrays++] = w;
	return 0;
}

#endif
