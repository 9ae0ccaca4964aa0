/* SPDX-License-Identifier: BSD-3-Clause */
/* metadata.c - common parts of the documents of both formats: attributes, and the frame of a
 * document. Each document is a function of the frozen model and the plans, without state. */
#include "nczarr/view/metadata.h"

#include <errno.h>
#include <string.h>

#include "nczarr/view/metadata_values.h"

bool zr_attr_skipped(const struct zr_metadata *em, const struct ds_attr *at, bool of_array)
{
	static const char *const ours[] = {"_nczarr_superblock", "_nczarr_group",
					   "_nczarr_array", "_nczarr_attr"};

	if (of_array && strcmp(at->name, "_ARRAY_DIMENSIONS") == 0)
		return true;
	for (size_t i = 0; em->mode == ZARR_NCZARR && i < ARRAY_LEN(ours); i++)
		if (strcmp(at->name, ours[i]) == 0)
			return true;
	return false;
}

void zr_put_attrs(struct jw *j, const struct zr_metadata *em, const struct ds_attr *attrs,
		  uint32_t n, bool of_array, bool fill_declared)
{
	for (uint32_t i = 0; i < n && buf_ok(j->out); i++) {
		const struct ds_attr *at = &attrs[i];
		/* then .zarray has the value, where the specification quotes NaN */
		bool quote = em->strict_json ||
			     (fill_declared && strcmp(at->name, "_FillValue") == 0);

		if (zr_attr_skipped(em, at, of_array))
			continue;
		jw_key(j, at->name);
		zr_put_attr(j, at, em->mode == ZARR_NCZARR, quote);
	}
}

const struct ds_attr *zr_quant_attr(const struct ds_array *a, const struct plan *plan,
				    int32_t *value, struct ds_attr *room)
{
	const char *name = codec_quant_attr(plan->quant.mode);

	if (!name || ds_attr_find(a->attrs, a->n_attrs, name))
		return NULL;
	*value = (int32_t)plan->quant.digits;
	*room = (struct ds_attr){.name = name,
				 .type = {.kind = DT_INT, .size = sizeof(*value)},
				 .n = 1,
				 .data = (const uint8_t *)value};
	return room;
}

static void put_doc(struct jw *j, const struct zr_metadata *em, enum zr_doc doc, uint32_t ord)
{
	(em->format->version == 3 ? zr_put_v3 : zr_put_v2)(j, em, doc, ord);
}

void zr_put_member(struct jw *j, const struct zr_metadata *em, enum zr_doc doc, uint32_t ord)
{
	auto_buf path = buf_of(j->out->max);

	if (zr_doc_of_group(doc))
		ds_group_path(em->ds, ord, &path);
	else
		ds_array_path(em->ds, ord, &path);
	if (em->format->version == 2)
		buf_printf(&path, "%s%s", path.len > 1 ? "/" : "", zr_doc_file(doc));
	buf_putc(&path, '\0');
	if (buf_ok(&path))
		put_doc(jw_key(j, (const char *)path.data + 1), em, doc, ord);
	else
		buf_fail(j->out, &path);
}

int zr_metadata_doc(const struct zr_metadata *em, enum zr_doc doc, uint32_t ord,
		    struct buf *out, struct err *e)
{
	struct jw j;

	jw_init(&j, out, em->mode != ZARR_NCZARR || zr_doc_of_all(doc));
	put_doc(&j, em, doc, ord);
	buf_putc(out, '\n');
	return buf_ok(out) ? 0
			   : buf_full(out, e, -ERANGE,
				      "a metadata file is larger than %zu bytes", out->max);
}
