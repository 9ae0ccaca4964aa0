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

int plan_zarr3_left(const struct plan_ask *ask, struct codec_chain *left, uint32_t *ret_cut,
		    struct plan *p, struct err *e)
{
	const struct ds_array *a = &ask->ds->arrays[ask->array];
	struct codec_chain bare = a->chain, blosc;
	const uint32_t sum = codec_chain_without_sum(&bare);
	int rc = plan_zarr3_wrap(ask->arena, &bare, a->type.size, a->chunk_bytes, &blosc, e);

	if (rc == 0 && blosc.n > 0)
		plan_zarr3_wrapped(a, &bare, sum, &blosc, p);
	if (sum > 0 && !plan_zarr3_stock(&(struct codec_chain){1, &a->chain.specs[bare.n]})) {
		*left = bare;
		*ret_cut = sum;
	}
	return rc;
}
