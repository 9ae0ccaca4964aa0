/* SPDX-License-Identifier: BSD-3-Clause */
/* array_metadata.h - what the readers of Zarr v3's documents and of both versions' codecs share;
 * private to build_array.c, dtype.c, fill_value.c, codecs.c, codecs.c, codecs.c and
 * array_metadata.c. */
#ifndef NCZARR_SOURCE_ARRAY_METADATA_H
#define NCZARR_SOURCE_ARRAY_METADATA_H

#include <errno.h>

#include "nczarr/source/source_int.h"

/* zr_named - an extension point: {"name": ..., "configuration": {...}}, or the name alone. */
struct zr_named {
	const char *name;     /* NUL-terminated; borrowed from the document */
	const json_t *config; /* object or NULL */
};

/* zr_named_of - what: for the message. Returns 0; -EBADMSG. */
int zr_named_of(const json_t *v, const char *what, struct zr_named *ret,
		struct err *e) NZ_MUST_USE;

/* zr_lengths - a list of whole numbers, n of them, each at least `least`, into the arena.
 * what: for the message. Returns 0; -EBADMSG; -ENOMEM. */
int zr_lengths(struct arena *a, const json_t *v, const char *what, uint32_t n, uint64_t least,
	       uint64_t **ret, struct err *e) NZ_MUST_USE;

/* zr_no_room - the arena gave NULL: mostly because the metadata is larger than allowed. */
static inline int zr_no_room(const struct arena *a, struct err *e)
{
	return err_set(e, -ERANGE, "the metadata needs more than %zu bytes", a->max);
}

/* zr_specs - codecs in the order of encoding, while they are gathered. */
struct zr_specs {
	struct codec_spec v[CODEC_CHAIN_MAX];
	uint32_t n;
};

/* zr_spec_add - append a codec with the parameters that `conf` (members of the codec's object)
 * gives. *ret_why stays NULL, or says why the codec cannot be decoded: that is no error.
 * of: what the codec stands in; version, elem_size, array and shape are looked at. */
int zr_spec_add(struct arena *a, struct zr_specs *s, const struct codec_ops *ops,
		const char *name, const json_t *conf, const struct codec_conf *of,
		const char **ret_why, struct err *e) NZ_MUST_USE;

/* zr_codec_array - what a codec may have to know of an array whose dtype and rank are set. chunk:
 * m->rank entries, borrowed. false: its elements have no size, or none yet. */
bool zr_codec_array(const struct zr_meta *m, const uint64_t *chunk, struct codec_array *ret);

/* zr_specs_chain - as a chain in the arena. */
int zr_specs_chain(struct arena *a, const struct zr_specs *s, struct codec_chain *ret,
		   struct err *e) NZ_MUST_USE;

/* zr_bytes_meaning - where the attribute numpy_dtype says that bytes stand for elements of another
 * type, that type: the last axis, which counts the bytes of an element, is gone from the model,
 * or a list of bytes is one of elements (build_array.c). The attribute is removed then. Anything
 * that does not fit together leaves the array as it is. Returns 0; -ENOMEM, -ERANGE. */
int zr_bytes_meaning(struct arena *a, struct zr_meta *m, struct err *e) NZ_MUST_USE;

/* zr_say - a message in the arena, printable; NULL when memory is short. */
const char *zr_say(struct arena *a, const char *fmt, ...) NZ_PRINTF(2, 3);
/* zr_missing - that nobody here has a codec of this name, and what can be done. */
const char *zr_missing(struct arena *a, const char *codec);

#endif
