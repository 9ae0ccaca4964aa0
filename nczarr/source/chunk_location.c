/* chunk_location.c - where others find a chunk's stored bytes: the object's key, or what the store
 * says about it, and where in it. */
#include "nczarr/source/chunks.h"

#include <errno.h>
#include <string.h>

int zr_place_chunk(struct source *src, uint32_t array, uint64_t linear,
		   const struct chunk_ref *ref, struct chunk_place *ret, struct err *e)
{
	struct zr_source *s = zr_of(src);
	struct err own = ERR_INIT;
	struct store_place at = {.key = ret->key};
	char key[ZR_OBJECT_KEY];
	const struct zr_place *p;
	struct zr_spot x;
	int rc;

	e = e ? e : &own;
	p = zr_place_of(s, array, e);
	if (!p)
		return e->code;
	rc = zr_find(s, array, p, linear, &x, e);
	if (rc)
		return rc;
	zr_spot_release(&x);
	if (x.where != ZR_OBJECT && x.where != ZR_PART)
		return err_set(e, -EOPNOTSUPP, "the chunk is not stored as it is shown");
	rc = zr_object_name(p, x.object, key, e);
	if (!rc)
		rc = store_where(s->store, key, &at, e);
	if (rc)
		return rc;
	ret->full = at.full;
	ret->whole = at.whole && x.where == ZR_OBJECT && ref->off == 0 && ref->len == x.size;
	if (ckd_add(&ret->off, at.off, ref->off))
		return err_set(e, -EBADMSG, "'%s' lies beyond 2^64", key);
	return 0;
}
