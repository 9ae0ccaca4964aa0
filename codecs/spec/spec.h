/* SPDX-License-Identifier: BSD-3-Clause */
/* spec.h - filters as text in netCDF's syntax, and rules that assign them to variables.
 *
 * One filter is an id or a name, then its parameters: "307,9", "deflate,5", "zstd". Parameters are
 * typed constants: "-17b 23ub -25S 27US 77 93U 12345678.5f 12345678.5d -9223372036854775807L
 * 18446744073709551615UL"; one of eight bytes gives two parameters. Filters of a chain are in the
 * order of encoding, separated by '|'. A rule has variables before a chain: "*,zstd,5",
 * "v1&/g/v2,shuffle|deflate,4", "v3,none". Spec:
 * https://docs.unidata.ucar.edu/netcdf-c/current/filters.html (filter specification syntax;
 * appendix on the encoding of parameters; nccopy -F). */
#ifndef CODECS_SPEC_SPEC_H
#define CODECS_SPEC_SPEC_H

#include "base/core/arena.h"
#include "codecs/core/codec.h"

/* codec_rule - the rule of one -o filter=. */
struct codec_rule {
	const char *vars;           /* as in codecs/spec/var_pattern.h; "*" is every variable */
	bool none;                  /* no filters at all */
	struct codec_chain chain;   /* with the parameters as the user gave them */
	bool exact;               /* shown with these codecs, not as an equivalent Blosc buffer */
};

/* codec_rules - in the order of the options. */
struct codec_rules {
	uint32_t n;
	const struct codec_rule *v;
};

/* codec_spec_parse - parse n bytes of text to a chain in the arena. A filter that is named twice
 * keeps its first position and gets its last parameters, as with nc_def_var_filter. Returns 0;
 * -EINVAL with the reason and the position; -ENOMEM. Unknown ids are no error, nor are names of
 * registered filters that are not available; other unknown names are. */
int codec_spec_parse(struct arena *a, const char *text, size_t n, struct codec_chain *ret,
		     struct err *e) NZ_MUST_USE;

/* codec_spec_print - append a chain in the same syntax, with ids: "2,4|1,5"; codecs without an HDF5
 * id with their names. This is _Filter of ncdump -s -F. */
void codec_spec_print(const struct codec_chain *chain, struct buf *out);

/* codec_spec_json - append a chain as Zarr writes codecs. version 2: in the order of encoding,
 * [{"id": "shuffle", "elementsize": 4}, {"id": "zlib", "level": 5}], netCDF-C's _Codecs. A filter
 * without a numcodecs name is {"id": "unknown", "name": "sz", "hdf5": 32017, "parameters": [3, 0]},
 * with unknown members left out; one of Zarr v3's own codecs {"name": "crc32c"}. version 3:
 * [{"name": "numcodecs.zlib", "configuration": {"level": 5}}]. elem_size: bytes of an element of
 * the array. */
void codec_spec_json(const struct codec_chain *chain, size_t elem_size, int version,
		     struct buf *out);

/* codec_spec_json3 - append one codec as Zarr v3 writes it. Returns false if it has no name there;
 * out is then unchanged. */
bool codec_spec_json3(const struct codec_spec *spec, size_t elem_size, struct buf *out);

/* codec_rule_add - parse one rule, "[VARS,]CHAIN" or "[VARS,]none", and append it to rules->v. A
 * rule that begins with an id or a filter's name applies to all variables ("/lz4,..." applies to
 * one). Returns 0; -EINVAL with rules unchanged; -ENOMEM. */
int codec_rule_add(struct arena *a, const char *text, struct codec_rules *rules,
		   struct err *e) NZ_MUST_USE;

/* codec_rules_for - the rule for the variable with this path ("/v", "/g/v"); NULL: none. A pattern
 * without '/' at its start is for the variables of that name in the root group, "*" for every
 * variable (codecs/spec/var_pattern.h). A rule that names the variable overrides "*", and a later
 * one an earlier one (the table of nccopy -F). */
const struct codec_rule *codec_rules_for(const struct codec_rules *rules, const char *path);

/* codec_chain_for - convert filters to the framing of a format: lz4's blocks and deflate differ
 * between HDF5 and Zarr. A name ("lz4", "gzip") selects the filter, the format selects the framing;
 * parameters that only one of them has are dropped. Filters without a number or name in the format
 * are unchanged. Call it before codec_chain_prepare. Returns 0 with *ret in the arena; -ENOMEM. */
enum codec_format { CODEC_FORMAT_HDF5, CODEC_FORMAT_ZARR };
int codec_chain_for(struct arena *a, enum codec_format format, const struct codec_chain *chain,
		    struct codec_chain *ret, struct err *e) NZ_MUST_USE;

/* codec_chain_prepare - the parameters that an HDF5 writer would store for this array, in the order
 * of nc_def_var_filter: fletcher32 first, then shuffle, then all others as they were named. Missing
 * parameters have defaults (docs/reference/filters.md). Returns 0 with *ret in the arena; -EINVAL;
 * -EOPNOTSUPP a filter cannot be encoded, or not for such an array. */
int codec_chain_prepare(struct arena *a, const struct codec_chain *chain,
			const struct codec_array *array, struct codec_chain *ret,
			struct err *e) NZ_MUST_USE;

#endif
