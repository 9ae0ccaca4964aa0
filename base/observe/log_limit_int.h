/* SPDX-License-Identifier: BSD-3-Clause */
/* log_limit_int.h - which lines of a log are said, when the same happens a thousand times.
 *
 * A kind of line is a component, a level and a text without its numbers: "chunk 0.3: ..." and
 * "chunk 0.4: ..." are one kind. The first line of a kind is said at once, and so are others, up to
 * LOG_SAME in a minute; the same text is said once a minute. The rest is counted, and when the
 * minute is over that number is said. A component says no more than LOG_LINES lines a minute.
 * Memory is bounded: what is known of a kind may be forgotten for another.
 *
 * Nothing here looks at a clock or takes a lock: the caller does. */
#ifndef BASE_OBSERVE_LOG_LIMIT_INT_H
#define BASE_OBSERVE_LOG_LIMIT_INT_H

#include "base/core/util.h"

enum {
	LOG_SAME = 20,       /* lines of one kind in a minute */
	LOG_LINES = 200,     /* lines of one component in a minute */
	LOG_KINDS = 64,      /* that are remembered */
	LOG_SAMPLE = 160,    /* bytes of a text that are repeated with its number */
	LOG_SECONDS = 60,
	LOG_COMPONENTS_MAX = 16,
};

struct log_kind {
	uint64_t hash;          /* 0: free */
	int64_t since;          /* seconds: the minute begins */
	uint32_t n_said, more;
	uint8_t component, level;
	uint64_t said[LOG_SAME]; /* hashes of texts */
	char sample[LOG_SAMPLE]; /* the first that was kept back */
};

struct log_limit {
	struct log_kind kinds[LOG_KINDS];
	struct {
		int64_t since;
		uint32_t lines, more;
	} parts[LOG_COMPONENTS_MAX];
	uint32_t waiting; /* kinds and components with more > 0 */
};

/* log_limit_say - what was kept back, as a line. */
typedef void log_limit_say(void *arg, uint8_t component, uint8_t level, const char *text);

/* log_limit_ask - whether a line is to be said now. First what its minute kept back is said, if
 * that is over. component < LOG_COMPONENTS_MAX; now: seconds of a clock that never goes back. */
bool log_limit_ask(struct log_limit *l, uint8_t component, uint8_t level, const char *text,
		   int64_t now, log_limit_say *say, void *arg);

/* log_limit_flush - say what was kept back in minutes that are over; all: in all. */
void log_limit_flush(struct log_limit *l, int64_t now, bool all, log_limit_say *say, void *arg);

#endif
