/* zr_text.c - chunks that are a JSON list of texts, as numcodecs' json2 writes them: the texts,
 * then the dtype "|O", then the chunk's shape. Chunks of more axes are lists in lists.
 *
 * The shape is not needed: the array's metadata has it, and the number of texts has to fit that. */
#include "nczarr/zr_data_int.h"

#include <errno.h>
#include <inttypes.h>

#include "nczarr/json_read.h"

/* gather - what is found on the way down. */
struct gather {
	struct zr_item_bytes *ret;
	uint64_t n, want;
	struct err *e;
};

static int take_text(struct gather *g, const json_t *v)
{
	struct ds_text text = {.s = "", .len = 0};

	if (json_kind(v) != JSON_IS_NULL && !json_text_of(v, &text))
		return err_set(g->e, -EBADMSG, "element %" PRIu64 " of the list is not a text",
			       g->n);
	if (g->n >= g->want)
		return err_set(g->e, -EBADMSG, "more than %" PRIu64 " elements in the list",
			       g->want);
	g->ret[g->n++] = (struct zr_item_bytes){(const uint8_t *)text.s, text.len};
	return 0;
}

/* take_lists - members [0, end) of a list and all below, without recursion: the reader of JSON has
 * a limit for depth. */
static int take_lists(struct gather *g, const json_t *top, size_t end)
{
	const json_t *list[JSON_DEPTH_MAX + 1];
	size_t at[JSON_DEPTH_MAX + 1], depth = 0;
	int rc = 0;

	list[0] = top;
	at[0] = 0;
	while (!rc) {
		size_t stop = depth == 0 ? end : json_array_size(list[depth]);
		const json_t *v;

		if (at[depth] == stop) {
			if (depth-- == 0)
				return 0;
			continue;
		}
		v = json_array_get(list[depth], at[depth]++);
		if (json_kind(v) != JSON_IS_LIST) {
			rc = take_text(g, v);
		} else if (depth == JSON_DEPTH_MAX) {
			rc = err_set(g->e, -EBADMSG, "lists within lists");
		} else {
			list[++depth] = v;
			at[depth] = 0;
		}
	}
	return rc;
}

/* too_many - whether the list has more values than n texts in lists of any sensible depth need;
 * before each value takes memory of its own. */
static bool too_many(const uint8_t *p, size_t len, uint64_t n)
{
	uint64_t left;
	bool quoted = false;

	if (ckd_mul(&left, n, (uint64_t)8) || ckd_add(&left, left, (uint64_t)1024))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (quoted && p[i] == '\\')
			i++;
		else if (p[i] == '"')
			quoted = !quoted;
		else if (!quoted && (p[i] == ',' || p[i] == '[' || p[i] == '{') && left-- == 0)
			return true;
	}
	return false;
}

int zr_json_items(const uint8_t *body, size_t len, uint64_t n, struct zr_item_bytes *ret,
		  json_t **ret_doc, struct err *e)
{
	struct gather g = {.ret = ret, .want = n, .e = e};
	size_t size;
	int rc;

	if (len > ZR_DOC_MAX)
		return err_set(e, -ERANGE, "a list of %zu bytes exceeds %zu", len, ZR_DOC_MAX);
	if (too_many(body, len, n))
		return err_set(e, -EBADMSG, "a list of far more than %" PRIu64 " elements", n);
	rc = json_read(body, len, ret_doc, e);
	if (rc)
		return rc;
	size = json_array_size(*ret_doc); /* 0 for anything else */
	if (size < 2 || json_kind(json_array_get(*ret_doc, size - 1)) != JSON_IS_LIST ||
	    json_kind(json_array_get(*ret_doc, size - 2)) != JSON_IS_TEXT)
		return err_set(e, -EBADMSG, "the list does not end with a dtype and a shape");
	rc = take_lists(&g, *ret_doc, size - 2);
	if (!rc && g.n != n)
		rc = err_set(e, -EBADMSG, "%" PRIu64 " elements in a chunk of %" PRIu64, g.n,
			     n);
	return rc;
}
