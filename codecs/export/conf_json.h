/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_json.h - a codec's configuration from JSON text, where there is no parsed document: strict,
 * and without another library, because our plugins run in third-party programs. */
#ifndef CODECS_EXPORT_CONF_JSON_H
#define CODECS_EXPORT_CONF_JSON_H

#include "base/core/arena.h"
#include "codecs/core/codec.h"

#define CODEC_JSON_MEMBERS 64
#define CODEC_JSON_MAX 65536 /* bytes of the JSON text */

enum codec_json_kind { CODEC_JSON_NULL, CODEC_JSON_NUMBER, CODEC_JSON_TEXT, CODEC_JSON_OTHER };

struct codec_json_member {
	const char *name, *value; /* value: the string, or the number's text */
	enum codec_json_kind kind;
};

/* codec_json - one parsed object. conf is for codec_ops.from_zarr; it points to this struct, which
 * must not be moved. */
struct codec_json {
	struct codec_conf conf;
	struct arena arena;
	size_t n;
	struct codec_json_member v[CODEC_JSON_MEMBERS];
};

/* codec_json_open - parse the n bytes of one JSON object of version 2. elem_size as in codec_conf.
 * Returns 0; -EBADMSG not a JSON object, or one with a duplicate member; -ERANGE too long; -ENOMEM.
 * ret must be closed in any case. Spec: RFC 8259, without NUL in strings. */
int codec_json_open(const char *text, size_t n, size_t elem_size,
		    struct codec_json *ret) NZ_MUST_USE;
void codec_json_close(struct codec_json *j);

#endif
