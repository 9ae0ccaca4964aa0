/* SPDX-License-Identifier: BSD-3-Clause */
/* array_metadata.h - shared by the readers of array documents and codecs; private to nczarr/source
 * and dtype.c. */
#ifndef NCZARR_SOURCE_ARRAY_METADATA_H
#define NCZARR_SOURCE_ARRAY_METADATA_H

#include <errno.h>

#include "nczarr/source/source_int.h"

/* zr_named - an extension point: {"name": ..., "configuration": {...}}, or the name alone. */
struct zr_named {
	const char *name;     /* NUL-terminated; borrowed from the document */
	const json_t *config; /* object or NULL */
};

/* zr_named_of - parse an extension point. what: its name for messages. Returns 0; -EBADMSG. */
int zr_named_of(const json_t *v, const char *what, struct zr_named *ret,
		struct err *e) NZ_MUST_USE;

/* zr_lengths - parse a list of n whole numbers, each at least `least`, into the arena. what: its
 * name for messages. Returns 0; -EBADMSG; -ENOMEM. */
int zr_lengths(struct arena *a, const json_t *v, const char *what, uint32_t n, uint64_t least,
	       uint64_t **ret, struct err *e) NZ_MUST_USE;

/* zr_specs - codecs in the order of encoding, while they are collected. */
struct zr_specs {
	struct codec_spec v[CODEC_CHAIN_MAX];
	uint32_t n;
};

/* zr_spec_add - append a codec with the parameters in `conf` (members of the codec's object).
 * *ret_why stays NULL, or is the reason why the codec cannot be decoded: that is no error. of: the
 * context of the codec; its version, elem_size, array and shape are used. */
int zr_spec_add(struct arena *a, struct zr_specs *s, const struct codec_ops *ops,
		const char *name, const json_t *conf, const struct codec_conf *of,
		const char **ret_why, struct err *e) NZ_MUST_USE;

/* zr_codec_array - the array description for a codec. dtype and rank of m are set. chunk: m->rank
 * entries, borrowed. false: elements have no size, or none yet. */
bool zr_codec_array(const struct zr_meta *m, const uint64_t *chunk, struct codec_array *ret);

/* zr_specs_chain - the collected codecs as a chain in the arena. */
int zr_specs_chain(struct arena *a, const struct zr_specs *s, struct codec_chain *ret,
		   struct err *e) NZ_MUST_USE;

/* zr_bytes_meaning - restore the type of elements stored as bytes, from the attribute numpy_dtype:
 * the last axis, which counts the bytes of an element, is removed from the model, or a list of
 * bytes becomes one of elements (build_array.c). The attribute is removed. An inconsistent array
 * is left unchanged. Returns 0; -ENOMEM, -ERANGE. */
int zr_bytes_meaning(struct arena *a, struct zr_meta *m, struct err *e) NZ_MUST_USE;

/* zr_say - format a message in the arena, made printable; NULL: out of memory. */
const char *zr_say(struct arena *a, const char *fmt, ...) NZ_PRINTF(2, 3);
/* zr_missing - the message that no codec of this name is available, with advice. */
const char *zr_missing(struct arena *a, const char *codec);

#endif
