/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.c - decides once for each array whether stored chunks may be handed out as they are.
 *
 * A stored chunk passes when stock readers undo its filters exactly as HDF5 does. That excludes
 * more than unknown codecs: numcodecs' shuffle refuses lengths that are no multiple of the
 * element size, which a checksum in front of it makes, and netCDF-C shuffles by the type's size
 * whatever the metadata says. */
#include "translate/plan/plan.h"

#include "translate/plan/plan_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES ((size_t)1 << 20)

const char *plan_name(const struct codec_spec *spec, char out[PLAN_NAME_CAP])
{
	char tmp[32];

	(void)snprintf(out, PLAN_NAME_CAP, "%s",
		       codec_name(spec, tmp, sizeof(tmp))); /* cut is fine */
	return out;
}

void plan_names(const struct codec_chain *chain, char *out, size_t cap)
{
	char name[PLAN_NAME_CAP];
	size_t len = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < chain->n && len < cap; i++) {
		int n = snprintf(out + len, cap - len, "%s%s", i > 0 ? ", " : "",
				 plan_name(&chain->specs[i], name));

		len += n > 0 ? (size_t)n : 0;
	}
}

void plan_say(struct plan *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(p->reason, sizeof(p->reason), fmt, ap) < 0)
		p->reason[0] = '\0';
	va_end(ap);
}

void plan_elements(const struct ds_array *a, struct codec_array *ret)
{
	static const enum codec_class classes[] = {
		[DT_BOOL] = CODEC_UINT,   [DT_INT] = CODEC_INT,    [DT_UINT] = CODEC_UINT,
		[DT_FLOAT] = CODEC_FLOAT, [DT_VLEN] = CODEC_OTHER,
	};

	*ret = (struct codec_array){
		.class = classes[a->type.kind],
		.elem_size = a->type.size,
		.big_endian = a->type.big_endian,
		.rank = a->rank,
		.chunk = a->chunk,
		.fill = a->fill_defined ? a->fill : NULL,
	};
}

uint64_t plan_bytes(const struct codec_array *as)
{
	uint64_t n = as->elem_size;

	return u64_product(&n, as->chunk, as->rank, UINT64_MAX) ? n : UINT64_MAX;
}

/* shuffle_size_fits - whether the filter's element size is that of the array. */
static bool shuffle_size_fits(const struct codec_spec *spec, const struct ds_array *a,
			      struct plan *p)
{
	uint32_t size =
		spec->n_params > 0 && spec->params[0] > 0 ? spec->params[0] : a->type.size;

	if (size != a->type.size)
		plan_say(p,
			 "shuffle works on elements of %" PRIu32
			 " bytes, but the array's have %" PRIu32,
			 size, a->type.size);
	return size == a->type.size;
}

/* shuffle_fits - numcodecs and netCDF-C undo this shuffle as HDF5 does. */
static bool shuffle_fits(const struct codec_spec *spec, const struct ds_array *a,
			 struct plan *p)
{
	const uint32_t size = a->type.size;

	if (!shuffle_size_fits(spec, a, p))
		return false;
	if (size == 0 || a->chunk_bytes % size != 0) {
		plan_say(p,
			 "shuffle: a chunk of %" PRIu64 " bytes is not a multiple of %" PRIu32,
			 a->chunk_bytes, size);
		return false;
	}
	return true;
}

/* szip_fits - netCDF-C finds out the parameters that the chunks were made with. */
static bool szip_fits(const struct codec_spec *spec, const struct ds_array *a, struct plan *p)
{
	struct codec_array as;
	uint32_t params[4];

	plan_elements(a, &as);
	if (spec->n_params == ARRAY_LEN(params) &&
	    codec_szip_in_zarr(spec, &as, a->shape, params, NULL) == 0 &&
	    memcmp(params, spec->params, sizeof(params)) == 0)
		return true;
	plan_say(p, "szip: readers would assume other scanlines");
	return false;
}

/* filter_passes - whether filter i of n, the last ones cut off, is one that readers undo.
 * Says why not in p->reason. */
static bool filter_passes(const struct ds_array *a, uint32_t i, uint32_t n, bool keep,
			  struct plan *p)
{
	const struct codec_spec *spec = &a->chain.specs[i];
	const struct codec_ops *ops = codec_find(spec->h5_id);
	char name[PLAN_NAME_CAP], next[PLAN_NAME_CAP];

	plan_name(spec, name);
	if (!ops || !codec_has_zarr2(spec, a->type.size)) {
		plan_say(p, "%s: no Zarr codec", name);
		return false;
	}
	if ((!ops->portable && !keep) || ops->trailer > 0) {
		if (ops->trailer > 0 && i == 0)
			plan_say(p, "%s comes first: standard readers cannot decode it", name);
		else if (ops->trailer > 0 && i + 1 < n)
			plan_say(p, "%s comes before %s: standard readers cannot decode it",
				 name, plan_name(&a->chain.specs[i + 1], next));
		else
			plan_say(p, "%s: standard readers cannot decode it", name);
		return false;
	}
	for (uint32_t k = 0; k < i; k++)
		if (a->chain.specs[k].h5_id == spec->h5_id) {
			plan_say(p, "%s is applied twice", name);
			return false;
		}
	if (spec->h5_id == CODEC_DEFLATE && i + 1 < n) {
		plan_say(p, "deflate comes before %s", plan_name(&a->chain.specs[i + 1], next));
		return false;
	}
	if (spec->h5_id == CODEC_SZIP)
		return szip_fits(spec, a, p);
	return spec->h5_id != CODEC_SHUFFLE || shuffle_fits(spec, a, p);
}

void plan_pass(const struct ds_array *a, const struct codec_chain *left, uint32_t trailer,
	       struct plan *p)
{
	char text[sizeof(p->reason)], name[PLAN_NAME_CAP];
	const char *verb = left->n == 1 ? "passes through" : "pass through";

	p->kind = PLAN_PASS;
	p->chain = *left;
	p->trailer = trailer;
	p->trailer_bit = trailer > 0 ? (uint32_t)1 << left->n : 0;
	plan_names(left, text, sizeof(text));
	if (trailer > 0)
		plan_say(p, "%.120s %s; %s is removed", left->n ? text : "uncompressed bytes",
			 verb, plan_name(&a->chain.specs[left->n], name));
	else
		plan_say(p, "%.120s %s", left->n ? text : "uncompressed bytes", verb);
}

bool plan_framable(const struct ds_array *a, const struct codec_chain *chain, struct plan *p)
{
	if (a->uniform || chain->n == 0 || codec_chain_framed_size(chain, a->chunk_bytes) > 0)
		return true;
	plan_say(p, "chunks of %" PRIu64 " bytes cannot be framed", a->chunk_bytes);
	return false;
}

/* format_refuses - whether readers of the format cannot undo a chain, or do not know it; sets the
 * reason. */
static bool format_refuses(const struct plan_ask *ask, const struct codec_chain *left,
			   bool keep, struct plan *p)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	struct codec_array as;
	char why[PLAN_WHY_CAP];

	plan_elements(a, &as);
	if (ask->format != PLAN_ZARR2 && plan_cannot(ask->format, &as, left, keep, why)) {
		plan_say(p, "%s", why);
		return true;
	}
	for (uint32_t i = 0; ask->format != PLAN_ZARR3 && i < left->n; i++)
		if (ask->format == PLAN_ZARR2
			    ? !filter_passes(a, i, left->n, keep, p)
			    : left->specs[i].h5_id == CODEC_SHUFFLE &&
				      !shuffle_size_fits(&left->specs[i], a, p))
			return true;
	return false;
}

/* chunks_pass - PASS for an array without a rule, or p->reason has the reason why not.
 * Returns 0; -ENOMEM. */
static int chunks_pass(const struct plan_ask *ask, bool keep, struct plan *p, struct err *e)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	struct codec_chain left = a->chain;
	uint32_t cut = 0;
	int rc = 0;

	if (ask->format == PLAN_ZARR2)
		cut = codec_chain_without_sum(&left);
	else if (ask->format == PLAN_ZARR3)
		rc = plan_zarr3_left(ask, &left, &cut, p, e);
	if (rc < 0 || p->kind == PLAN_PASS || format_refuses(ask, &left, keep, p))
		return rc;
	if (plan_framable(a, &left, p))
		plan_pass(a, &left, cut, p);
	return 0;
}

/* explain_convert - why only the source can make the presented bytes. */
static void explain_convert(const struct ds_array *a, struct plan *p)
{
	char name[PLAN_NAME_CAP];

	if (a->convert) {
		plan_say(p, "%s", a->convert);
		return;
	}
	for (uint32_t i = 0; i < a->chain.n; i++)
		if (!codec_find(a->chain.specs[i].h5_id)) {
			plan_say(p, "%s: no Zarr codec", plan_name(&a->chain.specs[i], name));
			return;
		}
	if (a->layout == DS_VIRTUAL)
		plan_say(p, "virtual dataset: assembled from other datasets");
	else if (a->layout == DS_EXTERNAL)
		plan_say(p, "data lies in external files");
	else
		plan_say(p, "type needs conversion");
}

/* plan_refused - whether the view's format cannot name the chain of a plan that passes, or the
 * array's chunks as presented are not the stored ones. */
static const char *plan_refused(const struct plan_ask *ask, const struct codec_array *as,
				const struct plan *p)
{
	if (p->chain.n == 0)
		return NULL;
	if (ask->as && plan_bytes(as) != ask->ds->arrays[ask->array].chunk_bytes)
		return "chunks are cut: they are longer than the array";
	return ask->refuses ? ask->refuses(ask, &p->chain) : NULL;
}

/* own_way - the plan of an array that gets no chain from a rule. */
static int own_way(const struct plan_ask *ask, const struct codec_array *as,
		   enum plan_filter filter, struct plan *p, struct err *e)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	const char *why;
	int rc = 0;

	if (a->access == DS_CONVERT) {
		explain_convert(a, p);
		return 0;
	}
	if (filter == PLAN_NONE && a->chain.n > 0) {
		plan_say(p, "filter=none");
		return 0;
	}
	if (a->chain.n > CODEC_CHAIN_MAX)
		plan_say(p, "%" PRIu32 " filters exceed %d", a->chain.n, CODEC_CHAIN_MAX);
	else
		rc = chunks_pass(ask, filter == PLAN_KEEP, p, e);
	if (rc < 0 || p->kind != PLAN_PASS)
		return rc;
	why = plan_refused(ask, as, p);
	if (why) {
		*p = (struct plan){.kind = PLAN_DECODE,
				   .fill_declared = p->fill_declared,
				   .note = p->note};
		plan_say(p, "%s", why);
	}
	return 0;
}

static int plan_by_path(const void *path, const void *layout)
{
	return strcmp(path, ((const struct plan_layout *)layout)->path);
}

const struct plan_layout *plan_layout_of(const struct plan_policy *p, const struct dataset *ds,
					 uint32_t array)
{
	const char *path;
	auto_buf b = buf_of(PATH_BYTES);

	if (!p->layouts || p->layouts->n == 0)
		return NULL;
	path = ds_array_path_text(ds, array, &b);
	return path ? bsearch(path, p->layouts->v, p->layouts->n, sizeof(*p->layouts->v),
			      plan_by_path)
		    : NULL;
}

int plan_make(const struct plan_ask *ask, struct plan *ret, struct err *e)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	enum plan_filter filter = ask->policy->filter;
	struct codec_array as;
	int rc;

	*ret = (struct plan){.kind = PLAN_DECODE, .fill_declared = ask->fill_declared};
	if (a->unreadable) {
		ret->kind = PLAN_ERROR;
		plan_say(ret, "%s", a->unreadable);
		return 0;
	}
	if (a->access == DS_VARIABLE || dt_is_vlen(&a->type)) {
		ret->kind = PLAN_VLEN;
		plan_say(ret, "elements have no fixed size");
		return plan_unruled(ask, "its elements have no fixed size", ret, e);
	}
	if (ask->as)
		as = *ask->as;
	else
		plan_elements(a, &as);
	rc = plan_ruled(ask, &as, &filter, ret, e);
	if (rc == 0 && ret->kind == PLAN_DECODE && ret->quant.mode == CODEC_QUANT_NONE)
		rc = own_way(ask, &as, filter, ret, e);
	return rc;
}
