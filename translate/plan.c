/* plan.c - decides once for each array whether stored chunks may be handed out as they are.
 *
 * A stored chunk passes when stock readers undo its filters exactly as HDF5 does. That excludes
 * more than unknown codecs: numcodecs' shuffle refuses lengths that are no multiple of the
 * element size, which a checksum in front of it makes, and netCDF-C shuffles by the type's size
 * whatever the metadata says. */
#include "translate/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_CAP 40 /* of a filter in a reason; names come from files */

/* name_of - a filter's name, short enough for a reason. */
static const char *name_of(const struct codec_spec *spec, char out[NAME_CAP])
{
	char tmp[32];

	(void)snprintf(out, NAME_CAP, "%s",
		       codec_name(spec, tmp, sizeof(tmp))); /* cut is fine */
	return out;
}

static void say(struct plan *p, const char *fmt, ...) NZ_PRINTF(2, 3);

static void say(struct plan *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(p->reason, sizeof(p->reason), fmt, ap) < 0)
		p->reason[0] = '\0';
	va_end(ap);
}

/* shuffle_fits - numcodecs and netCDF-C undo this shuffle as HDF5 does. */
static bool shuffle_fits(const struct codec_spec *spec, const struct ds_array *a,
			 struct plan *p)
{
	uint32_t size =
		spec->n_params > 0 && spec->params[0] > 0 ? spec->params[0] : a->type.size;

	if (size != a->type.size) {
		say(p, "shuffle works on %" PRIu32 " bytes, elements have %" PRIu32, size,
		    a->type.size);
		return false;
	}
	if (size == 0 || a->chunk_bytes % size != 0) {
		say(p, "shuffle: a chunk of %" PRIu64 " bytes is no multiple of %" PRIu32,
		    a->chunk_bytes, size);
		return false;
	}
	return true;
}

/* szip_fits - netCDF-C finds out the parameters that the chunks were made with. */
static bool szip_fits(const struct codec_spec *spec, const struct ds_array *a, struct plan *p)
{
	const struct codec_array array = {.elem_size = a->type.size,
					  .big_endian = a->type.big_endian,
					  .rank = a->rank,
					  .chunk = a->chunk};

	if (codec_szip_in_zarr(spec, &array, a->shape))
		return true;
	say(p, "szip: readers would take other scanlines");
	return false;
}

/* filter_passes - whether filter i of n, the last ones cut off, is one that readers undo.
 * Says why not in p->reason. */
static bool filter_passes(const struct ds_array *a, uint32_t i, uint32_t n, bool keep,
			  struct plan *p)
{
	const struct codec_spec *spec = &a->chain.specs[i];
	const struct codec_ops *ops = codec_find(spec->h5_id);
	char name[NAME_CAP], next[NAME_CAP];

	name_of(spec, name);
	if (!ops || !ops->zarr2_id) {
		say(p, "%s: no Zarr codec", name);
		return false;
	}
	if ((!ops->portable && !keep) || ops->trailer > 0) {
		if (ops->trailer > 0 && i == 0)
			say(p, "%s comes first: stock readers cannot undo it", name);
		else if (ops->trailer > 0 && i + 1 < n)
			say(p, "%s comes before %s: stock readers cannot undo it", name,
			    name_of(&a->chain.specs[i + 1], next));
		else
			say(p, "%s: stock readers cannot undo it", name);
		return false;
	}
	for (uint32_t k = 0; k < i; k++)
		if (a->chain.specs[k].h5_id == spec->h5_id) {
			say(p, "%s is applied twice", name);
			return false;
		}
	if (spec->h5_id == CODEC_DEFLATE && i + 1 < n) {
		say(p, "deflate comes before %s", name_of(&a->chain.specs[i + 1], next));
		return false;
	}
	if (spec->h5_id == CODEC_SZIP)
		return szip_fits(spec, a, p);
	return spec->h5_id != CODEC_SHUFFLE || shuffle_fits(spec, a, p);
}

/* describe_pass - "shuffle, deflate pass through; fletcher32 is cut off". */
static void describe_pass(const struct ds_array *a, struct plan *p)
{
	char text[sizeof(p->reason)] = "", name[NAME_CAP];
	size_t len = 0;

	for (uint32_t i = 0; i < p->chain.n && len < sizeof(text); i++) {
		int n = snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? ", " : "",
				 name_of(&p->chain.specs[i], name));

		len += n > 0 ? (size_t)n : 0;
	}
	if (p->trailer > 0)
		say(p, "%.120s %s; %s is cut off", p->chain.n ? text : "uncompressed bytes",
		    p->chain.n == 1 ? "passes through" : "pass through",
		    name_of(&a->chain.specs[p->chain.n], name));
	else
		say(p, "%.120s %s", p->chain.n ? text : "uncompressed bytes",
		    p->chain.n == 1 ? "passes through" : "pass through");
}

/* has_frame - a chunk with filters of its own is framed, in a size that is a formula. */
static bool has_frame(const struct ds_array *a, const struct codec_chain *chain, struct plan *p)
{
	if (a->uniform || chain->n == 0 || codec_chain_framed_size(chain, a->chunk_bytes) > 0)
		return true;
	say(p, "no framed form for chunks of %" PRIu64 " bytes", a->chunk_bytes);
	return false;
}

/* hdf5_passes - fills p for PASS, or says why libhdf5 cannot be given the chunks as they are. */
static bool hdf5_passes(const struct ds_array *a, bool keep, struct plan *p)
{
	const struct codec_chain *chain = &a->chain;
	char name[NAME_CAP];

	if (chain->n > CODEC_CHAIN_MAX) {
		say(p, "%" PRIu32 " filters exceed %d", chain->n, CODEC_CHAIN_MAX);
		return false;
	}
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *spec = &chain->specs[i];
		const struct codec_ops *ops = codec_find(spec->h5_id);

		name_of(spec, name);
		if (spec->h5_id >= CODEC_PRIVATE) {
			say(p, "%s: no HDF5 filter", name);
			return false;
		}
		if (!keep && !(ops && ops->h5_stock)) {
			say(p, "%s: HDF5 needs a plugin for it", name);
			return false;
		}
		if (spec->h5_id == CODEC_SHUFFLE && spec->n_params > 0 &&
		    spec->params[0] != 0 && spec->params[0] != a->type.size) {
			say(p, "shuffle works on %" PRIu32 " bytes, elements have %" PRIu32,
			    spec->params[0], a->type.size);
			return false;
		}
	}
	if (!has_frame(a, chain, p))
		return false;
	p->chain = *chain;
	describe_pass(a, p);
	return true;
}

/* zarr_passes - fills p for PASS, or says why not. */
static bool zarr_passes(const struct ds_array *a, bool keep, struct plan *p)
{
	const struct codec_chain *chain = &a->chain;
	struct codec_chain left = *chain;
	uint32_t trailer = 0;

	if (chain->n > CODEC_CHAIN_MAX) {
		say(p, "%" PRIu32 " filters exceed %d", chain->n, CODEC_CHAIN_MAX);
		return false;
	}
	if (left.n > 0) {
		const struct codec_ops *last = codec_find(chain->specs[left.n - 1].h5_id);

		trailer = last ? last->trailer : 0;
		left.n -= trailer > 0;
	}
	for (uint32_t i = 0; i < left.n; i++)
		if (!filter_passes(a, i, left.n, keep, p))
			return false;
	if (!has_frame(a, &left, p))
		return false;

	p->chain = left;
	p->trailer = trailer;
	p->trailer_bit = trailer > 0 ? (uint32_t)1 << left.n : 0;
	describe_pass(a, p);
	return true;
}

/* explain_convert - why only the source can make the presented bytes. */
static void explain_convert(const struct ds_array *a, struct plan *p)
{
	char name[NAME_CAP];

	if (a->convert) {
		say(p, "%s", a->convert);
		return;
	}
	for (uint32_t i = 0; i < a->chain.n; i++)
		if (!codec_find(a->chain.specs[i].h5_id)) {
			say(p, "%s: no Zarr codec", name_of(&a->chain.specs[i], name));
			return;
		}
	if (a->layout == DS_VIRTUAL)
		say(p, "virtual dataset: made of parts of others");
	else if (a->layout == DS_EXTERNAL)
		say(p, "data lies in external files");
	else
		say(p, "type needs conversion");
}

void plan_make(const struct ds_array *a, enum plan_format format, enum plan_filter filter,
	       bool fill_declared, struct plan *ret)
{
	bool keep = filter == PLAN_KEEP;

	*ret = (struct plan){.kind = PLAN_DECODE, .fill_declared = fill_declared};
	if (a->unreadable) {
		ret->kind = PLAN_ERROR;
		say(ret, "%s", a->unreadable);
	} else if (a->access == DS_VARIABLE || dt_is_vlen(&a->type)) {
		ret->kind = PLAN_VLEN;
		say(ret, "elements have no fixed size");
	} else if (a->access == DS_CONVERT) {
		explain_convert(a, ret);
	} else if (filter == PLAN_NONE && a->chain.n > 0) {
		say(ret, "filter=none");
	} else if (format == PLAN_HDF5 ? hdf5_passes(a, keep, ret)
				       : zarr_passes(a, keep, ret)) {
		ret->kind = PLAN_PASS;
	}
}
