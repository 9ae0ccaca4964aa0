/* codecs.c - what the codecs of both Zarr versions have in common: a codec's parameters out of
 * its JSON, chains in the arena, and the checked pieces that documents are made of. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "nczarr/json/writer.h"
#include "nczarr/source/array_v3.h"

#define CONF_TEXT_MAX ((size_t)64 << 10) /* of a codec that a plugin reads */

const char *zr_say(struct arena *a, const char *fmt, ...)
{
	char text[ERR_TEXT_MAX];
	bool utf8;
	va_list ap;

	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	utf8 = str_utf8_ok(text,
			   strlen(text)); /* a name may have been cut within a character */
	for (char *s = text; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f ||
		    (!utf8 && (unsigned char)*s > 0x7f))
			*s = '?';
	return arena_strdup(a, text);
}

const char *zr_missing(struct arena *a, const char *codec)
{
	const struct codec_spec spec = {.name = codec};
	const char *text;
	struct buf b;

	buf_init(&b, ERR_TEXT_MAX);
	codec_missing(&spec, &b);
	buf_putc(&b, '\0');
	text = zr_say(a, "%s", buf_ok(&b) ? (const char *)b.data : codec);
	buf_release(&b);
	return text;
}

int zr_named_of(const json_t *v, const char *what, struct zr_named *ret, struct err *e)
{
	const json_t *config = json_get(v, "configuration");
	struct ds_text name;

	if (!json_text_of(json_kind(v) == JSON_IS_OBJECT ? json_get(v, "name") : v, &name) ||
	    name.len == 0 || memchr(name.s, '\0', name.len))
		return err_set(e, -EBADMSG, "%s is neither a name nor an object with one",
			       what);
	if (config && json_kind(config) != JSON_IS_OBJECT && json_kind(config) != JSON_IS_NULL)
		return err_set(e, -EBADMSG, "%s '%.80s': its configuration is not an object",
			       what, name.s);
	*ret = (struct zr_named){.name = name.s, .config = config};
	return 0;
}

int zr_lengths(struct arena *a, const json_t *v, const char *what, uint32_t n, uint64_t least,
	       uint64_t **ret, struct err *e)
{
	uint64_t *len;

	if (json_kind(v) != JSON_IS_LIST)
		return err_set(e, -EBADMSG, "%s is not a list", what);
	if (json_array_size(v) != n)
		return err_set(e, -EBADMSG, "%s has %zu numbers, not %" PRIu32, what,
			       json_array_size(v), n);
	len = arena_alloc(a, n, sizeof(*len));
	if (!len)
		return zr_no_room(a, e);
	for (uint32_t i = 0; i < n; i++) {
		const json_t *one = json_array_get(v, i);
		const char *text = json_number_text(one);

		if (json_u64(one, &len[i]) < 0 || len[i] < least || len[i] > INT64_MAX)
			return err_set(
				e, -EBADMSG,
				"%s has '%.40s', not a whole number of at least %" PRIu64, what,
				text ? text : "what is no number", least);
	}
	*ret = len;
	return 0;
}

/* ---- codec_conf over JSON ---- */

static int get_integer(void *arg, const char *member, int64_t *ret)
{
	const json_t *v = json_get(arg, member);
	struct ds_text s;
	uint64_t u;
	bool minus;

	if (json_kind(v) == JSON_IS_NULL)
		return -ENOENT;
	if (!json_text_of(v, &s))
		return json_i64(v, ret);
	minus = s.len && s.s[0] == '-';
	if (str_u64(s.s + minus, s.len - minus, INT64_MAX, &u) < 0)
		return -EINVAL;
	*ret = minus ? -(int64_t)u : (int64_t)u;
	return 0;
}

static int get_real(void *arg, const char *member, double *ret)
{
	const json_t *v = json_get(arg, member);

	return json_kind(v) == JSON_IS_NULL ? -ENOENT : json_double(v, ret);
}

static int get_text(void *arg, const char *member, const char **ret)
{
	const json_t *v = json_get(arg, member);
	struct ds_text s;

	if (json_kind(v) == JSON_IS_NULL)
		return -ENOENT;
	if (!json_text_of(v, &s) || memchr(s.s, '\0', s.len))
		return -EINVAL;
	*ret = s.s;
	return 0;
}

static int get_boolean(void *arg, const char *member, bool *ret)
{
	const json_t *v = json_get(arg, member);

	if (json_kind(v) == JSON_IS_NULL)
		return -ENOENT;
	if (json_kind(v) != JSON_IS_BOOL)
		return -EINVAL;
	*ret = json_is_true(v);
	return 0;
}

/* ---- chains ---- */

static enum codec_class class_of(const struct dtype *t)
{
	switch (t->kind) {
	case DT_BOOL:
	case DT_UINT:
		return CODEC_UINT;
	case DT_INT:
		return CODEC_INT;
	case DT_FLOAT:
		return CODEC_FLOAT;
	default:
		return CODEC_OTHER;
	}
}

bool zr_codec_array(const struct zr_meta *m, const uint64_t *chunk, struct codec_array *ret)
{
	*ret = (struct codec_array){.class = class_of(&m->dtype.type),
				    .elem_size = m->dtype.stored,
				    .big_endian = m->dtype.type.big_endian,
				    .rank = m->rank,
				    .chunk = chunk};
	return m->dtype.stored > 0;
}

/* conf_text - a codec as Zarr v2 writes it, for one that reads JSON by itself: version 3 has the
 * name elsewhere. */
static void conf_text(const struct codec_ops *ops, const json_t *conf, struct buf *out)
{
	const char *key;
	json_t *v;
	struct jw j;

	jw_init(&j, out, false);
	buf_printf(out, "{\"id\": \"%s\"", ops->zarr2_id);
	json_object_foreach((json_t *)(uintptr_t)conf, key, v)
	{ /* it only looks */
		if (strcmp(key, "id") == 0)
			continue;
		buf_puts(out, ", ");
		jw_text(&j, key, strlen(key));
		buf_puts(out, ": ");
		json_write_text(v, out);
	}
	buf_puts(out, "}");
	buf_putc(out, '\0');
}

/* ask_codec - parameters out of a document. What a plugin fails at is the array's fault or the
 * plugin's, and costs the array. */
static int ask_codec(const struct codec_ops *ops, struct codec_conf *c, const json_t *conf,
		     uint32_t *params, uint32_t *ret_n, struct err *e)
{
	struct buf text;
	int rc;

	if (!ops->from_zarr)
		return 0;
	if (!ops->origin && ops->h5_id != CODEC_LZMA) /* which has a list among its members */
		return ops->from_zarr(c, params, ret_n, e);
	buf_init(&text, CONF_TEXT_MAX);
	conf_text(ops, conf, &text);
	c->json = (const char *)text.data;
	rc = buf_ok(&text)
		     ? ops->from_zarr(c, params, ret_n, e)
		     : buf_full(&text, e, -EOPNOTSUPP,
				"codec '%.80s': its configuration is too long", ops->zarr2_id);
	buf_release(&text);
	return rc < 0 && rc != -ENOMEM && ops->origin ? -EOPNOTSUPP : rc;
}

int zr_spec_add(struct arena *a, struct zr_specs *s, const struct codec_ops *ops,
		const char *name, const json_t *conf, const struct codec_conf *of,
		const char **ret_why, struct err *e)
{
	struct codec_conf c = {.arg = (void *)(uintptr_t)conf, /* the getters only look */
			       .version = of->version,
			       .elem_size = of->elem_size,
			       .array = of->array,
			       .shape = of->shape,
			       .integer = get_integer,
			       .real = get_real,
			       .text = get_text,
			       .boolean = get_boolean};
	uint32_t params[CODEC_PARAMS_MAX] = {0}, n = 0;
	struct codec_spec *spec = &s->v[s->n];
	struct err inner = ERR_INIT;
	int rc;

	*ret_why = NULL;
	if (s->n == CODEC_CHAIN_MAX)
		return err_set(e, -ERANGE, "there are more than %d codecs", CODEC_CHAIN_MAX);
	rc = ask_codec(ops, &c, conf, params, &n, &inner);
	if (rc == -EOPNOTSUPP || !ops->decode) {
		*ret_why = rc < 0 ? zr_say(a, "%s", inner.msg)
				  : zr_say(a, "codec '%.80s' cannot be read", name);
		return *ret_why ? 0 : zr_no_room(a, e);
	}
	if (rc < 0)
		return err_set(e, rc, "codec '%.80s': %s", name, inner.msg);
	*spec = (struct codec_spec){.h5_id = ops->h5_id, .n_params = n};
	spec->name = arena_strdup(a, name);
	spec->params = arena_copy(a, params, n * sizeof(*params));
	if (!spec->name || !spec->params)
		return zr_no_room(a, e);
	s->n++;
	return 0;
}

int zr_specs_chain(struct arena *a, const struct zr_specs *s, struct codec_chain *ret,
		   struct err *e)
{
	*ret = (struct codec_chain){.n = s->n};
	if (s->n == 0)
		return 0;
	ret->specs = arena_copy(a, s->v, s->n * sizeof(*s->v));
	return ret->specs ? 0 : zr_no_room(a, e);
}
