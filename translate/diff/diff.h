/* SPDX-License-Identifier: BSD-3-Clause */
/* diff.h - brings a dataset from what it was to what it is to be: compares two models, object by
 * object, and tells a sink what is different, and nothing else.
 *
 * Chunks go as they are where their filters, order and grid are the target's; else they are decoded
 * and the sink encodes them; where the grid is another one, the chunks of the target are put
 * together from all of `now` that lies in them. */
#ifndef TRANSLATE_DIFF_DIFF_H
#define TRANSLATE_DIFF_DIFF_H

#include "translate/plan/plan.h"
#include "translate/contract/sink.h"

/* diff_policy - how arrays are stored that are new. Rules that name a variable win over what the
 * writer asked for; others are for variables that come without chunks or filters, or with filters
 * that stock readers do not know. */
struct diff_policy {
	const char *const *chunks;  /* n_chunks texts of -o chunks=: "[VARIABLE,]time=24,lat=all" */
	size_t n_chunks;
	uint64_t chunk_bytes;       /* to aim for where nothing is said; 0: leave in one piece */
	const struct codec_rules *filters;      /* -o filter=; NULL: none */
	const struct codec_quant_rules *quant;  /* -o quantize=; NULL: none */
	enum plan_filter keep;      /* chains of the writer that stock readers of the target do not
	                             * know: PORTABLE stores shuffle and deflate instead; KEEP
	                             * stores them */
	enum plan_format format;    /* of the target, for what can be named there */
};

/* diff_rule_unknown - the first dimension of a rule of -o chunks= that ds does not have, *ret_len
 * bytes; NULL: it has all of them, or none at all. */
const char *diff_rule_unknown(const char *rule, const struct dataset *ds, size_t *ret_len);

/* diff_rules_check - whether n texts of -o chunks= are rules; ds: and name dimensions that it
 * has, when it has any; NULL: nobody asks. Returns 0; -EINVAL with what is wrong. */
int diff_rules_check(const char *const *rules, size_t n, const struct dataset *ds,
		     struct err *e) NZ_MUST_USE;

struct diff_job {
	struct source *was;         /* NULL: nothing was there */
	struct source *now;
	struct sink *sink;          /* not begun */
	const struct diff_policy *policy;

	/* changed - the first chunk at or after `from`, of an array of `now` that `was` has as well
	 * (was_array) with the same grid, whose content may be another, or which may be gone.
	 * Returns 0; -ENOENT none. NULL: all may. */
	int (*changed)(void *arg, uint32_t array, uint32_t was_array, uint64_t from,
		       uint64_t *ret, struct err *e);
	/* ready - chunk `linear` of `now` is about to be read. NULL: nothing to be done. */
	int (*ready)(void *arg, uint32_t array, uint64_t linear, struct err *e);
	/* moved_from - an array of `was` whose chunks this new array of `now` has, all of them,
	 * untouched; DS_NONE: none. NULL: nobody knows. */
	uint32_t (*moved_from)(void *arg, uint32_t array);
	/* refused - chunk `linear` cannot be read or decoded, so that it cannot be stored. Returns
	 * 0: leave it out and go on; else the push fails so. NULL: it fails. */
	int (*refused)(void *arg, uint32_t array, uint64_t linear, const struct err *why);
	/* gate - for sink_ops.commit. May be NULL. */
	int (*gate)(void *arg, struct err *e);
	void *arg;
	uint64_t memory;            /* most bytes that chunks being put together may take */
};

/* diff_report - what was done, for people and tests. */
struct diff_report {
	uint64_t groups, arrays, attrs;    /* added, removed or changed */
	uint64_t passed, encoded, dropped; /* chunks */
	uint64_t bytes;                    /* of chunks, as stored by the source or decoded */
};

/* push - all of it, with commit at the end, or nothing. A job without differences does not commit,
 * and reports zeros. Returns 0; -EOPNOTSUPP the target cannot hold something, e says what; what
 * sources and sink gave. */
int push(const struct diff_job *job, struct diff_report *ret, struct err *e) NZ_MUST_USE;

#endif
