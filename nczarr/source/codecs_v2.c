/* codecs_v2.c - Zarr v2's filters and compressor. Of object dtypes the first filter says what the
 * elements are. A codec that is not known keeps an array's chunks from being read, not its
 * metadata. */
#include <errno.h>
#include <string.h>

#include "nczarr/source/array_v3.h"

/* adding - the state while codecs are added in the order of encoding. */
struct adding {
	struct arena *a;
	struct zr_meta *m;
	struct zr_specs specs;
	size_t elem_size;
	struct err *e;
};

static int unreadable(struct adding *ad, const char *why)
{
	if (!why)
		return zr_no_room(ad->a, ad->e);
	if (!ad->m->unreadable)
		ad->m->unreadable = why;
	return 0;
}

static int id_of(const json_t *v, const char *what, struct ds_text *ret, struct err *e)
{
	if (!json_text_of(json_get(v, "id"), ret) || ret->len == 0 ||
	    memchr(ret->s, '\0', ret->len))
		return err_set(e, -EBADMSG, "%s is not an object with an id", what);
	return 0;
}

static int add(struct adding *ad, const json_t *v, const struct ds_text *id)
{
	const struct zr_meta *m = ad->m;
	struct codec_array array;
	const struct codec_conf of = {.version = 2,
				      .elem_size = ad->elem_size,
				      .array = zr_codec_array(m, m->chunk, &array) ? &array
										   : NULL,
				      .shape = m->shape};
	const struct codec_ops *ops = codec_find_zarr2(id->s, id->len);
	const char *why;
	int rc;

	if (!ops)
		return unreadable(ad, zr_missing(ad->a, id->s));
	rc = zr_spec_add(ad->a, &ad->specs, ops, id->s, v, &of, &why, ad->e);
	if (rc == 0 && why)
		return unreadable(ad, why);
	if (ops->compressor)
		ad->elem_size = 1;
	return rc;
}

/* ---- object dtypes ---- */

static enum zr_vlen vlen_of(const struct ds_text *id)
{
	return (enum zr_vlen)codec_vlen_find(id->s, id->len);
}

/* set_base - elements are lists of this type, of which a copy is made; NULL: bytes. */
static int set_base(struct adding *ad, const struct dtype *base)
{
	static const struct dtype byte = {.kind = DT_UINT, .size = 1};
	struct dtype *copy = arena_copy(ad->a, base ? base : &byte, sizeof(*copy));

	if (!copy)
		return zr_no_room(ad->a, ad->e);
	if (copy->kind == DT_BOOL)
		copy->kind = DT_UINT;
	ad->m->dtype.type = (struct dtype){.kind = DT_VLEN, .base = copy};
	return 0;
}

static int vlen_array(struct adding *ad, const json_t *filter)
{
	struct zr_dtype t;
	int rc = zr_dtype_v2(ad->a, json_get(filter, "dtype"), false, &t, ad->e);

	if (rc == -EOPNOTSUPP)
		return unreadable(
			ad, zr_say(ad->a, "codec 'vlen-array': its dtype is not supported"));
	if (rc < 0)
		return err_wrap(ad->e, rc, "codec 'vlen-array'");
	if (t.type.kind > DT_COMPLEX)
		return unreadable(ad,
				  zr_say(ad->a, "codec 'vlen-array': its dtype is no number"));
	return set_base(ad, &t.type);
}

/* first_of_objects - the filter that makes bytes of objects. */
static int first_of_objects(struct adding *ad, const json_t *filter, const struct ds_text *id)
{
	const json_t *encoding = json_get(filter, "encoding");
	enum zr_vlen vlen = vlen_of(id);

	if (vlen == ZR_VLEN_NONE) {
		ad->m->vlen = ZR_VLEN_UTF8;
		return unreadable(ad, codec_find_zarr2(id->s, id->len)
					      ? zr_say(ad->a,
						       "codec '%.80s' does not make bytes of "
						       "objects",
						       id->s)
					      : zr_missing(ad->a, id->s));
	}
	ad->m->vlen = vlen;
	if (vlen == ZR_VLEN_ARRAY)
		return vlen_array(ad, filter);
	if (vlen == ZR_VLEN_BYTES)
		return set_base(ad, NULL);
	if (vlen == ZR_VLEN_JSON && json_kind(encoding) != JSON_IS_NULL &&
	    !json_is(encoding, "utf-8") && !json_is(encoding, "utf8"))
		return unreadable(ad,
				  zr_say(ad->a, "codec 'json2': its encoding is not utf-8"));
	return 0;
}

static int add_filters(struct adding *ad, const json_t *filters)
{
	bool objects = ad->m->dtype.stored == 0;
	size_t n = json_array_size(filters);
	struct ds_text id;
	int rc = 0;

	if (n > CODEC_CHAIN_MAX)
		return err_set(ad->e, -ERANGE, "there are %zu filters, more than %d", n,
			       CODEC_CHAIN_MAX);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		const json_t *v = json_array_get(filters, i);

		rc = id_of(v, "a filter", &id, ad->e);
		if (rc < 0)
			return rc;
		if (i == 0 && objects)
			rc = first_of_objects(ad, v, &id);
		else if (vlen_of(&id) != ZR_VLEN_NONE)
			rc = err_set(ad->e, -EBADMSG,
				     "filter '%s' does not come first, or dtype is not '|O'",
				     id.s);
		else
			rc = add(ad, v, &id);
	}
	if (rc == 0 && objects && n == 0) {
		ad->m->vlen = ZR_VLEN_UTF8;
		rc = unreadable(ad,
				zr_say(ad->a, "dtype '|O' without a filter that says what its "
					      "elements are"));
	}
	return rc;
}

int zr_codecs_v2(struct arena *a, const json_t *filters, const json_t *compressor,
		 struct zr_meta *m, struct err *e)
{
	struct adding ad = {.a = a, .m = m, .e = e};
	struct ds_text id;
	int rc;

	ad.elem_size = m->dtype.stored ? m->dtype.stored : 1;
	m->vlen = ZR_VLEN_NONE;
	m->unreadable = NULL;
	if (json_kind(filters) != JSON_IS_LIST && json_kind(filters) != JSON_IS_NULL)
		return err_set(e, -EBADMSG, "filters are not a list");
	rc = add_filters(&ad, filters);
	if (rc == 0 && json_kind(compressor) != JSON_IS_NULL) {
		rc = id_of(compressor, "compressor", &id, e);
		if (rc == 0)
			rc = add(&ad, compressor, &id);
	}
	return rc < 0 ? rc : zr_specs_chain(a, &ad.specs, &m->chain, e);
}
