/* SPDX-License-Identifier: BSD-3-Clause */
/* lzma_filters_int.h - the filters of an LZMA stream in numcodecs' configuration, the only place
 * that states those of a raw stream. */
#ifndef CODECS_COMPRESS_LZMA_FILTERS_INT_H
#define CODECS_COMPRESS_LZMA_FILTERS_INT_H

#include <lzma.h>

#include "codecs/core/codec_impl.h"

/* lzma_chain - filters for liblzma, with pointers into it: it must not be moved. */
struct lzma_chain {
	lzma_filter f[LZMA_FILTERS_MAX + 1];
	union {
		lzma_options_lzma lzma;
		lzma_options_delta delta;
		lzma_options_bcj bcj;
	} options[LZMA_FILTERS_MAX];
};

/* lzma_filters_from - convert the member "filters" of a configuration, a list of Python's filter
 * specifications, to at most LZMA_PARAMS_MAX parameters; *ret_n is 0 when it is missing or null.
 * Returns 0; -EOPNOTSUPP a filter or an option that is not known; -EBADMSG; -ENOMEM. Spec: the lzma
 * module of Python, "Specifying custom filter chains". */
#define LZMA_PARAMS_MAX 20
int lzma_filters_from(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
		      struct err *e) NZ_MUST_USE;

/* lzma_filters_of - the reverse, from parameter `at` of a spec on; false when there are none, or
 * invalid ones. liblzma may still reject options. */
bool lzma_filters_of(const struct codec_spec *spec, uint32_t at, struct lzma_chain *ret);

/* lzma_filters_put - append the list, or null. */
void lzma_filters_put(const struct codec_spec *spec, uint32_t at, struct buf *json);

#endif
