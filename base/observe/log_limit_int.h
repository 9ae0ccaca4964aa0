/* SPDX-License-Identifier: BSD-3-Clause */
/* log_limit_int.h - rate limit of log lines.
 *
 * A kind of line is a component, a level and a text without its numbers: "chunk 0.3: ..." and
 * "chunk 0.4: ..." are one kind. The first line of a kind is written at once, and so are others, up
 * to LOG_SAME in a minute; an identical text is written once a minute. Further lines are suppressed
 * and counted, and the count is written when the minute is over. A component writes at most
 * LOG_LINES lines a minute. Memory is bounded: the entry of a kind may be replaced by that of
 * another.
 *
 * No function here reads a clock or takes a lock: the caller does. */
#ifndef BASE_OBSERVE_LOG_LIMIT_INT_H
#define BASE_OBSERVE_LOG_LIMIT_INT_H

#include "base/core/util.h"

enum {
	LOG_SAME = 20,       /* lines of one kind in a minute */
	LOG_LINES = 200,     /* lines of one component in a minute */
	LOG_KINDS = 64,      /* kinds in memory */
	LOG_SAMPLE = 160,    /* bytes of a text that are repeated with the count */
	LOG_SECONDS = 60,
	LOG_COMPONENTS_MAX = 16,
};

struct log_kind {
	uint64_t hash;          /* 0: free */
	int64_t since;          /* seconds: the beginning of the minute */
	uint32_t n_said, more;
	uint8_t component, level;
	uint64_t said[LOG_SAME]; /* hashes of the texts written */
	char sample[LOG_SAMPLE]; /* the first suppressed text */
};

struct log_limit {
	struct log_kind kinds[LOG_KINDS];
	struct {
		int64_t since;
		uint32_t lines, more;
	} parts[LOG_COMPONENTS_MAX];
	uint32_t waiting; /* kinds and components with more > 0 */
};

/* log_limit_say - write a line about suppressed lines. */
typedef void log_limit_say(void *arg, uint8_t component, uint8_t level, const char *text);

/* log_limit_ask - whether to write a line now. If the minute of its kind is over, the count of
 * suppressed lines is written first. component < LOG_COMPONENTS_MAX; now: seconds of a monotonic
 * clock. */
bool log_limit_ask(struct log_limit *l, uint8_t component, uint8_t level, const char *text,
		   int64_t now, log_limit_say *say, void *arg);

/* log_limit_flush - write the counts of minutes that are over; all: of all minutes. */
void log_limit_flush(struct log_limit *l, int64_t now, bool all, log_limit_say *say, void *arg);

#endif
