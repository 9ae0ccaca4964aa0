/* codec_rules_check.c - whether rules can be followed at all. What a rule makes of one array is the
 * plan's business (translate/plan/plan.h); here is said what no array can make sense of. */
#include "fusefs/app/codec_rules_int.h"

#include <errno.h>

#define BYTES_MAX ((size_t)1 << 20) /* of prepared parameters */

/* known - whether somebody here has every filter of the chain. */
static int known(const struct codec_chain *chain, struct err *e)
{
	for (uint32_t i = 0; i < chain->n; i++) {
		struct buf text;

		if (codec_find(chain->specs[i].h5_id))
			continue;
		buf_init(&text, ERR_TEXT_MAX);
		codec_missing(&chain->specs[i], &text);
		(void)err_set(e, -EOPNOTSUPP, "%.*s", (int)text.len, (const char *)text.data);
		buf_release(&text);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* usable - whether a writer of some ordinary array could use the chain, in either format. */
static int usable(struct arena *a, const struct codec_chain *chain, struct err *e)
{
	static const uint64_t chunk[] = {64, 64};
	static const struct codec_array arrays[] = {
		{.class = CODEC_FLOAT, .elem_size = 4, .rank = 2, .chunk = chunk},
		{.class = CODEC_FLOAT, .elem_size = 8, .rank = 2, .chunk = chunk},
		{.class = CODEC_INT, .elem_size = 4, .rank = 2, .chunk = chunk},
		{.class = CODEC_UINT, .elem_size = 1, .rank = 2, .chunk = chunk},
	};
	static const enum codec_format formats[] = {CODEC_FORMAT_HDF5, CODEC_FORMAT_ZARR};
	struct err first = ERR_INIT;

	for (size_t i = 0; i < ARRAY_LEN(formats) * ARRAY_LEN(arrays); i++) {
		struct codec_chain framed, ready;
		struct err why = ERR_INIT;
		int rc = codec_chain_for(a, formats[i % 2], chain, &framed, &why);

		if (rc == 0)
			rc = codec_chain_prepare(a, &framed, &arrays[i / 2], &ready, &why);
		if (rc == 0)
			return 0;
		if (i == 0)
			first = why;
	}
	return err_set(e, first.code, "%s", first.msg);
}

int fs_rules_check(const struct fs_rules *r, const struct cfg *cfg, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; r && i < r->filters.n && rc == 0; i++) {
		const struct codec_rule *rule = &r->filters.v[i];
		struct arena a;

		if (rule->none)
			continue;
		arena_init(&a, BYTES_MAX);
		rc = known(&rule->chain, e);
		if (rc == 0)
			rc = usable(&a, &rule->chain, e);
		if (rc < 0)
			rc = err_wrap(e, rc, "-o filter=%.100s", cfg->filter_rules[i]);
		arena_release(&a);
	}
	return rc;
}
