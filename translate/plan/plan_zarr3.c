/* SPDX-License-Identifier: BSD-3-Clause */
/* plan_zarr3.c - which chains chunks may have in a Zarr v3 view.
 *
 * All readers of Zarr v3 know gzip, zstd, blosc and crc32c. What else numcodecs has, zarr-python
 * alone reads, under names that no specification has. HDF5's own filters are not among the four,
 * but chunks of shuffle and deflate are Blosc buffers without their heads
 * (codecs/compress/blosc_wrap.h), and that is better than a name, whatever the user's readers
 * know. */
#include "translate/plan/plan_int.h"

#include "codecs/compress/blosc_wrap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define BLOSC_PARAMS 7
#define BLOSC_COMPRESSOR 6 /* which of them */
#define BLOSC_SNAPPY 3     /* left out of many builds */

static bool is_stock(const struct codec_spec *spec)
{
	const struct codec_ops *ops = codec_find(spec->h5_id);

	return ops && ops->zarr3_stock &&
	       !(spec->h5_id == CODEC_BLOSC && spec->n_params > BLOSC_COMPRESSOR &&
		 spec->params[BLOSC_COMPRESSOR] == BLOSC_SNAPPY);
}

bool plan_zarr3_stock(const struct codec_chain *chain)
{
	for (uint32_t i = 0; i < chain->n; i++)
		if (!is_stock(&chain->specs[i]))
			return false;
	return true;
}

/* shuffles_whole - numcodecs refuses lengths that are no multiple of the element size. */
static bool shuffles_whole(const struct codec_spec *spec, size_t elem_size, bool known,
			   uint64_t len)
{
	uint64_t size = spec->n_params > 0 && spec->params[0] > 0 ? spec->params[0] : elem_size;

	return size <= 1 || (known && len % size == 0);
}

bool plan_zarr3_cannot(const struct codec_array *as, const struct codec_chain *chain,
		       char why[PLAN_WHY_CAP])
{
	uint64_t len = plan_bytes(as);
	bool known = true, bytes = false; /* how long; whether it is no array any more */
	char name[PLAN_NAME_CAP], tmp[PLAN_NAME_CAP];

	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *s = &chain->specs[i];
		const struct codec_ops *ops = codec_find(s->h5_id);
		const char *text = NULL;

		if (!ops || s->h5_id == CODEC_PACKBITS_ZARR3 ||
		    !codec_zarr3_name(ops, tmp, sizeof(tmp)))
			text = "no Zarr v3 codec";
		else if (ops->elements && bytes)
			text = "Zarr v3 requires it before all other codecs";
		else if (ops->elements && as->big_endian)
			text = "Zarr v3 readers disagree about big-endian elements";
		else if (s->h5_id == CODEC_SHUFFLE &&
			 !shuffles_whole(s, as->elem_size, known, len))
			text = "Zarr readers require whole elements";
		if (text) {
			(void)snprintf(why, PLAN_WHY_CAP, "%s: %s", plan_name(s, name), text);
			return true;
		}
		bytes = bytes || !ops->elements;
		if (ops->trailer > 0)
			len += ops->trailer;
		else
			known = known && s->h5_id == CODEC_SHUFFLE;
	}
	return false;
}

int plan_zarr3_wrap(struct arena *arena, const struct codec_chain *chain, size_t elem_size,
		    uint64_t n, struct codec_chain *ret, struct err *e)
{
	struct codec_spec spec = {.h5_id = CODEC_BLOSC, .n_params = BLOSC_PARAMS, .name = ""};
	uint32_t params[BLOSC_PARAMS];

	*ret = (struct codec_chain){.n = 0};
	if (plan_zarr3_stock(chain) || !codec_wrap_fits(chain, elem_size, n, params))
		return 0;
	spec.params = arena_copy(arena, params, sizeof(params));
	ret->specs = spec.params ? arena_copy(arena, &spec, sizeof(spec)) : NULL;
	if (!ret->specs)
		return err_nomem(e);
	ret->n = 1;
	return 0;
}

void plan_zarr3_wrapped(const struct ds_array *a, const struct codec_chain *left,
			uint32_t trailer, const struct codec_chain *blosc, struct plan *p)
{
	char names[80], name[PLAN_NAME_CAP];

	p->kind = PLAN_PASS;
	p->wrap = true;
	p->chain = *blosc;
	p->trailer = trailer;
	p->trailer_bit = trailer > 0 ? (uint32_t)1 << left->n : 0;
	plan_names(left, names, sizeof(names));
	plan_say(p, "%s %s through as blosc%s%s%s", names, left->n == 1 ? "passes" : "pass",
		 trailer > 0 ? "; " : "",
		 trailer > 0 ? plan_name(&a->chain.specs[left->n], name) : "",
		 trailer > 0 ? " is removed" : "");
}

/* not_stock - why stock readers of Zarr v3 cannot be given the chain. */
static void not_stock(const struct codec_chain *chain, struct plan *p)
{
	char name[PLAN_NAME_CAP];

	for (uint32_t i = 0; i < chain->n; i++)
		if (!is_stock(&chain->specs[i])) {
			plan_say(p, "%s: standard readers cannot decode it",
				 plan_name(&chain->specs[i], name));
			return;
		}
}

/* without_sum - less the checksum at the chain's end, if there is one. Returns its bytes. */
static uint32_t without_sum(struct codec_chain *chain)
{
	const struct codec_ops *last =
		chain->n > 0 ? codec_find(chain->specs[chain->n - 1].h5_id) : NULL;

	if (!last || last->trailer == 0)
		return 0;
	chain->n--;
	return last->trailer;
}

int plan_zarr3_passes(const struct plan_ask *ask, bool keep, struct plan *p, struct err *e)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	struct codec_chain left = a->chain, bare = a->chain, blosc;
	struct codec_array as;
	char why[PLAN_WHY_CAP];
	uint32_t cut = 0, sum;
	int rc;

	if (a->chain.n > CODEC_CHAIN_MAX) {
		plan_say(p, "%" PRIu32 " filters exceed %d", a->chain.n, CODEC_CHAIN_MAX);
		return 0;
	}
	sum = without_sum(&bare);
	rc = plan_zarr3_wrap(ask->arena, &bare, a->type.size, a->chunk_bytes, &blosc, e);
	if (rc == 0 && blosc.n > 0)
		plan_zarr3_wrapped(a, &bare, sum, &blosc, p);
	if (rc < 0 || blosc.n > 0)
		return rc;
	if (sum > 0 && !is_stock(&a->chain.specs[bare.n])) {
		left = bare;
		cut = sum;
	}
	plan_elements(a, &as);
	if (!keep && !plan_zarr3_stock(&left))
		not_stock(&left, p);
	else if (plan_zarr3_cannot(&as, &left, why))
		plan_say(p, "%s", why);
	else if (plan_framable(a, &left, p))
		plan_pass(a, &left, cut, p);
	return 0;
}
