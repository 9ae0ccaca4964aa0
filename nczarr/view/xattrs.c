/* xattrs.c - extended attributes of an array's directory: how its chunks are stored in the source,
 * in netCDF's words. What the tree's own metadata says is how they are presented. */
#include "nczarr/view/xattrs_int.h"

#include <errno.h>
#include <string.h>

#include "codecs/spec/spec.h"

static void put_filter(const struct ds_array *a, int version, struct buf *out)
{
	(void)version;
	codec_spec_print(&a->chain, out);
}

static void put_codecs(const struct ds_array *a, int version, struct buf *out)
{
	codec_spec_json(&a->chain, a->type.size, version, out);
}

static const struct {
	const char *name;
	void (*put)(const struct ds_array *a, int version, struct buf *out);
} xattrs[] = {
	{"user._Filter", put_filter},
	{"user._Codecs", put_codecs},
};

int zr_xattr(const struct ds_array *a, int version, const char *name, struct buf *out,
	     struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(xattrs) && a && a->chain.n > 0; i++) {
		if (!name) {
			buf_put(out, xattrs[i].name, strlen(xattrs[i].name) + 1);
		} else if (strcmp(name, xattrs[i].name) == 0) {
			xattrs[i].put(a, version, out);
			return buf_ok(out) ? 0
					   : buf_full(out, e, -E2BIG, "'%s' exceeds %zu bytes",
						      name, out->max);
		}
	}
	if (name)
		return err_set(e, -ENODATA, "no attribute '%s'", name);
	return buf_ok(out) ? 0 : err_nomem(e);
}
