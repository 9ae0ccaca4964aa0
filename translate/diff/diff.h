/* SPDX-License-Identifier: BSD-3-Clause */
/* diff.h - brings a dataset from an old state to a new one: compares two models, object by object,
 * and calls a sink for the differences, and for nothing else.
 *
 * Chunks are stored as they are if their filters, order and grid are the target's; else they are
 * decoded and the sink encodes them. If the grid differs, each chunk of the target is assembled
 * from all chunks of `now` that overlap it. */
#ifndef TRANSLATE_DIFF_DIFF_H
#define TRANSLATE_DIFF_DIFF_H

#include "translate/plan/plan.h"
#include "translate/contract/sink.h"

/* diff_policy - how to store new arrays. Rules that name a variable take precedence over its
 * writer's choice; other rules are for variables that come without chunks or filters, or with
 * filters that stock readers do not know. */
struct diff_policy {
	const char *const *chunks;  /* n_chunks strings of -o chunks=:
				     * "[VARIABLE,]time=24,lat=all" */
	size_t n_chunks;
	uint64_t chunk_bytes;       /* target size where no rule applies; 0: leave in one piece */
	const struct codec_rules *filters;      /* -o filter=; NULL: none */
	const struct codec_quant_rules *quant;  /* -o quantize=; NULL: none */
	enum plan_filter keep;      /* chains of the writer that stock readers of the target do not
				     * know: PORTABLE stores shuffle and deflate instead; KEEP
				     * stores them */
	enum plan_format format;    /* of the target: determines the filters that have a name */
};

/* diff_observer - functions that are called before a change of the sink, with diff_job.arg. An
 * error ends the diff. Any may be NULL. */
struct diff_observer {
	int (*added)(void *arg, uint32_t array, const struct sink_new *how, struct err *e);
	/* put - for put and drop. */
	int (*put)(void *arg, uint32_t array, uint64_t linear, struct err *e);
	/* removed - an array of `was`; also one that is renamed. */
	int (*removed)(void *arg, uint32_t was, struct err *e);
	int (*resized)(void *arg, uint32_t array, struct err *e);
};

struct diff_job {
	struct source *was;         /* NULL: there was no dataset */
	struct source *now;
	struct sink *sink;          /* not begun */
	const struct diff_policy *policy;

	/* changed - the first chunk at or after `from` whose content may differ, or which may be
	 * gone, of an array of `now` that `was` has, too (was_array), with the same grid. Returns
	 * 0; -ENOENT none. NULL: any chunk may differ. */
	int (*changed)(void *arg, uint32_t array, uint32_t was_array, uint64_t from,
		       uint64_t *ret, struct err *e);
	/* ready - chunk `linear` of `now` is about to be read. NULL: no action is needed. */
	int (*ready)(void *arg, uint32_t array, uint64_t linear, struct err *e);
	/* moved_from - an array of `was` whose chunks this new array of `now` has, all of them,
	 * untouched; DS_NONE: none. NULL: not known. */
	uint32_t (*moved_from)(void *arg, uint32_t array);
	/* refused - chunk `linear` cannot be read or decoded, and so cannot be stored. Returns 0:
	 * leave it out and continue; else the diff fails with that error. NULL: it fails. */
	int (*refused)(void *arg, uint32_t array, uint64_t linear, const struct err *why);
	const struct diff_observer *observer; /* NULL: none */
	/* gate - for sink_ops.commit. May be NULL. */
	int (*gate)(void *arg, struct err *e);
	void *arg;
	uint64_t memory;            /* most bytes for chunks that are being assembled */
};

/* diff_report - numbers of changes, for messages and tests. */
struct diff_report {
	uint64_t groups, arrays, attrs;    /* added, removed or changed */
	uint64_t passed, encoded, dropped; /* chunks */
	uint64_t bytes;                    /* of chunks, as stored by the source or decoded */
};

/* push - apply all differences, with commit at the end, or none. A job without differences does not
 * commit, and reports zeros. Returns 0; -EOPNOTSUPP the target cannot hold an object, e says which;
 * errors of sources and sink. */
int push(const struct diff_job *job, struct diff_report *ret, struct err *e) NZ_MUST_USE;

#endif
