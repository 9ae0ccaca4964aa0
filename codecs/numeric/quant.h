/* SPDX-License-Identifier: BSD-3-Clause */
/* quant.h - lossy quantisation of floats, as netCDF-C does it on writing: insignificant bits are
 * made equal, so that compressors find more repetition.
 *
 * Spec: nc_def_var_quantize in netCDF-C 4.9; BitGroom: https://doi.org/10.5194/gmd-9-3199-2016,
 * Granular BitRound: https://doi.org/10.5194/gmd-12-4099-2019. Results are equal to netCDF-C's, bit
 * for bit. */
#ifndef CODECS_NUMERIC_QUANT_H
#define CODECS_NUMERIC_QUANT_H

#include "base/core/arena.h"
#include "codecs/core/codec.h"

enum codec_quant_mode { CODEC_QUANT_NONE, CODEC_QUANT_BITGROOM, CODEC_QUANT_GRANULARBR,
			CODEC_QUANT_BITROUND };

struct codec_quant {
	enum codec_quant_mode mode;
	uint32_t digits;  /* significant decimal digits: 1 .. 7 of floats, 1 .. 15 of doubles; for
			   * BITROUND bits: 1 .. 23, 1 .. 52 */
};

struct codec_quant_rule {
	const char *vars;  /* as in codecs/spec/spec.h */
	struct codec_quant quant;
};

struct codec_quant_rules {
	uint32_t n;
	const struct codec_quant_rule *v;
};

/* codec_quant_rule_add - parse the value of one -o quantize=:
 * "[VARS,]bitgroom|granularbr|bitround,N" or "[VARS,]none", ignoring case. N is checked against the
 * digits of doubles. Returns 0; -EINVAL; -ENOMEM. */
int codec_quant_rule_add(struct arena *a, const char *text, struct codec_quant_rules *rules,
			 struct err *e) NZ_MUST_USE;

/* codec_quant_for - the quantisation of a variable, by the rules of codec_rules_for; mode NONE:
 * none, also for elements of other sizes than 4 and 8, and for more digits than the type has, which
 * netCDF-C rejects. */
struct codec_quant codec_quant_for(const struct codec_quant_rules *rules, const char *path,
				   size_t elem_size);

/* codec_quantize - quantise n floats of elem_size 4 or 8 in place. Values equal to the fill value
 * (elem_size bytes in the same byte order; NULL: netCDF's default of that type), zeros and NaN stay
 * unchanged. BitGroom counts elements from the first one here, as netCDF-C does when it writes a
 * chunk by itself. For other sizes nothing is done. */
void codec_quantize(const struct codec_quant *q, size_t elem_size, bool big_endian,
		    const uint8_t *fill, uint8_t *data, uint64_t n);

/* codec_quant_attr - the name of the attribute in which netCDF-C states the quantisation; its value
 * is `digits`, an int. NULL for mode NONE. */
const char *codec_quant_attr(enum codec_quant_mode mode);

#endif
