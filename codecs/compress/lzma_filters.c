/* SPDX-License-Identifier: BSD-3-Clause */
/* lzma_filters.c - the filters of an LZMA stream: see lzma_filters_int.h.
 *
 * Parameters: the number of filters; for each its id (1 is LZMA1, whose id does not fit 32 bits)
 * and its options: eight of LZMA, one of the others. A preset is expanded to its options. */
#include "codecs/compress/lzma_filters_int.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "base/core/str.h"

#define ID_LZMA1 1
#define LZMA_OPTIONS 8

/* The options of LZMA by their names in Python, in liblzma's order. */
static const char *const names[LZMA_OPTIONS] = {"dict_size", "lc",       "lp", "pb",
						"mode",      "nice_len", "mf", "depth"};

static void to_words(const lzma_options_lzma *o, uint32_t *w)
{
	const uint32_t all[LZMA_OPTIONS] = {o->dict_size, o->lc,       o->lp, o->pb,
					    o->mode,      o->nice_len, o->mf, o->depth};

	memcpy(w, all, sizeof(all));
}

static void from_words(const uint32_t *w, lzma_options_lzma *o)
{
	memset(o, 0, sizeof(*o));
	o->dict_size = w[0];
	o->lc = w[1];
	o->lp = w[2];
	o->pb = w[3];
	o->mode = (lzma_mode)w[4];
	o->nice_len = w[5];
	o->mf = (lzma_match_finder)w[6];
	o->depth = w[7];
}

/* n_options - the number of options of a filter; 0: the filter is not known. */
static uint32_t n_options(uint32_t id)
{
	if (id == ID_LZMA1 || id == LZMA_FILTER_LZMA2)
		return LZMA_OPTIONS;
	return id >= LZMA_FILTER_DELTA && id <= LZMA_FILTER_SPARC ? 1 : 0;
}

/* ---- from a document ---- */

/* lzma_filters_integer - codec_conf.integer of a filter's object. */
static int lzma_filters_integer(void *arg, const char *member, int64_t *ret)
{
	const json_t *v = json_object_get(arg, member);
	const double real = json_is_real(v) ? json_real_value(v) : NAN;
	uint64_t n;

	if (!v || json_is_null(v))
		return -ENOENT;
	if (json_is_string(v)) {
		if (str_u64(json_string_value(v), json_string_length(v), INT64_MAX, &n))
			return -EINVAL;
		*ret = (int64_t)n;
	} else if (json_is_integer(v)) {
		*ret = json_integer_value(v);
	} else {
		if (!(fabs(real) <= 0x1p53) || real != trunc(real))
			return -EINVAL;
		*ret = (int64_t)real;
	}
	return 0;
}

/* word_of - a member as one parameter; `missing` when there is none. */
static int word_of(const struct codec_conf *conf, const char *member, uint32_t missing,
		   uint32_t *ret, struct err *e)
{
	int64_t v;
	int rc = codec_conf_int(conf, member, missing, &v, e);

	if (rc)
		return rc;
	if (v < 0 || v > UINT32_MAX)
		return err_set(e, -EBADMSG, "lzma: '%s' is out of range: %" PRId64, member, v);
	*ret = (uint32_t)v;
	return 0;
}

static int lzma_words(const struct codec_conf *conf, uint32_t *w, struct err *e)
{
	lzma_options_lzma o;
	uint32_t preset = 0;
	int rc = word_of(conf, "preset", LZMA_PRESET_DEFAULT, &preset, e);

	if (rc)
		return rc;
	if (lzma_lzma_preset(&o, preset))
		return err_set(e, -EOPNOTSUPP, "lzma: preset %" PRIu32 " is not supported",
			       preset);
	to_words(&o, w);
	for (size_t i = 0; !rc && i < LZMA_OPTIONS; i++)
		rc = word_of(conf, names[i], w[i], &w[i], e);
	return rc;
}

/* lzma_filters_one - the parameters of a filter's object. */
static int lzma_filters_one(json_t *filter, uint32_t *params, uint32_t *at, struct err *e)
{
	const struct codec_conf conf = {.arg = filter, .integer = lzma_filters_integer};
	uint32_t id = ID_LZMA1, *w = params + *at + 1;
	int64_t v;
	int rc = codec_conf_int(&conf, "id", 0, &v, e);

	if (!rc && (uint64_t)v != LZMA_FILTER_LZMA1)
		rc = word_of(&conf, "id", 0, &id, e);
	if (rc)
		return rc;
	if (n_options(id) == 0)
		return err_set(e, -EOPNOTSUPP, "lzma: filter %" PRIu32 " is not supported", id);
	if (*at + 1 + n_options(id) > LZMA_PARAMS_MAX)
		return err_set(e, -EOPNOTSUPP, "lzma: too many filters");
	params[*at] = id;
	*at += 1 + n_options(id);
	if (n_options(id) == LZMA_OPTIONS)
		return lzma_words(&conf, w, e);
	return word_of(&conf, id == LZMA_FILTER_DELTA ? "dist" : "start_offset",
		       id == LZMA_FILTER_DELTA, w, e);
}

static int lzma_filters_all_of(const json_t *list, uint32_t *params, uint32_t *ret_n,
			       struct err *e)
{
	uint32_t at = 1, n = 0;
	int rc = 0;

	if (list && !json_is_array(list) && !json_is_null(list))
		return err_set(e, -EBADMSG, "lzma: 'filters' is not a list");
	for (json_t *f; !rc && json_is_object(f = json_array_get(list, n)); n++)
		rc = n < LZMA_FILTERS_MAX
			     ? lzma_filters_one(f, params, &at, e)
			     : err_set(e, -EOPNOTSUPP, "lzma: more than %d filters",
				       LZMA_FILTERS_MAX);
	params[0] = n;
	*ret_n = n > 0 ? at : 0;
	return rc;
}

int lzma_filters_from(const struct codec_conf *conf, uint32_t *params, uint32_t *ret_n,
		      struct err *e)
{
	json_auto_t *v = NULL;
	json_error_t error;

	*ret_n = 0;
	if (!conf->json)
		return 0;
	v = json_loads(conf->json, JSON_REJECT_DUPLICATES, &error);
	return v ? lzma_filters_all_of(json_object_get(v, "filters"), params, ret_n, e)
		 : err_set(e, -EBADMSG, "lzma: its JSON is not valid: %s", error.text);
}

/* ---- to liblzma and to a document ---- */

bool lzma_filters_of(const struct codec_spec *spec, uint32_t at, struct lzma_chain *ret)
{
	uint32_t n = spec->n_params > at ? spec->params[at++] : 0;

	if (n == 0 || n > LZMA_FILTERS_MAX)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t *w = spec->params + at + 1;
		uint32_t id = spec->n_params > at ? spec->params[at] : 0;

		if (n_options(id) == 0 || spec->n_params - at <= n_options(id))
			return false;
		memset(&ret->options[i], 0, sizeof(ret->options[i]));
		if (n_options(id) == LZMA_OPTIONS)
			from_words(w, &ret->options[i].lzma);
		else if (id == LZMA_FILTER_DELTA)
			ret->options[i].delta.dist = w[0];
		else
			ret->options[i].bcj.start_offset = w[0];
		ret->f[i].id = id == ID_LZMA1 ? LZMA_FILTER_LZMA1 : id;
		ret->f[i].options = &ret->options[i];
		at += 1 + n_options(id);
	}
	ret->f[n] = (lzma_filter){.id = LZMA_VLI_UNKNOWN};
	return true;
}

void lzma_filters_put(const struct codec_spec *spec, uint32_t at, struct buf *json)
{
	struct lzma_chain chain;

	if (!lzma_filters_of(spec, at, &chain)) {
		buf_puts(json, "null");
		return;
	}
	for (size_t i = 0; chain.f[i].id != LZMA_VLI_UNKNOWN; i++) {
		const lzma_filter *f = &chain.f[i];
		uint32_t w[LZMA_OPTIONS];

		buf_printf(json, "%s{\"id\": %" PRIu64, i ? ", " : "[", f->id);
		if (f->id == LZMA_FILTER_DELTA) {
			buf_printf(json, ", \"dist\": %" PRIu32, chain.options[i].delta.dist);
		} else if (f->id != LZMA_FILTER_LZMA1 && f->id != LZMA_FILTER_LZMA2) {
			buf_printf(json, ", \"start_offset\": %" PRIu32,
				   chain.options[i].bcj.start_offset);
		} else {
			to_words(&chain.options[i].lzma, w);
			for (size_t k = 0; k < LZMA_OPTIONS; k++)
				buf_printf(json, ", \"%s\": %" PRIu32, names[k], w[k]);
		}
		buf_putc(json, '}');
	}
	buf_putc(json, ']');
}
