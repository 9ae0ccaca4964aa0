/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - log lines, one per event, on standard error or in the system log.
 *
 * Library modules never print: they return errors. Lines are written by main, by the mount's reply
 * code, and by log_debug, which costs one load when debugging is off. Levels: error and warn are
 * always shown, info with -v, debug with -o debug; each component has its own level, which can be
 * changed at any time. In a server, similar errors and warnings are rate-limited
 * (base/observe/log_limit_int.h).
 *
 * A source file names the component of its lines before it includes this: #define LOG_COMPONENT
 * LOG_HTTP */
#ifndef BASE_OBSERVE_LOG_H
#define BASE_OBSERVE_LOG_H

#include <stdatomic.h>

#include "base/core/buf.h"
#include "base/core/err.h"

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG,
	LOG_LEVELS,
	LOG_NOTE = LOG_LEVELS, /* shown and counted as LOG_WARN, but nothing is wrong */
};

enum log_component {
	LOG_FUSE,    /* requests of the kernel, and the mount */
	LOG_SOURCE,  /* datasets that are read */
	LOG_CODEC,   /* filters and plugins */
	LOG_CACHE,   /* caches in memory and on disk */
	LOG_HTTP,    /* remote servers */
	LOG_WRITE,   /* writes and commits */
	LOG_ISOLATE, /* child processes */
	LOG_COMPONENTS,
};

#ifndef LOG_COMPONENT
#define LOG_COMPONENT LOG_FUSE
#endif

/* log_init - set the highest level shown, of all components, and the destination of lines. Before
 * threads start. */
void log_init(enum log_level max, bool to_syslog);

/* log_to_syslog - write to the system log from now on. */
void log_to_syslog(void);

/* log_configure - change levels: "COMPONENT=LEVEL[,...]", or with ':' as separator; "all" is every
 * component, as is a level alone. On error nothing changes. Any thread. Returns 0; -EINVAL with the
 * valid values. */
int log_configure(const char *spec, struct err *e) NZ_MUST_USE;
/* log_said_last - whether the last error that this process logged had this text: another thread may
 * already have logged the error that a call returns. */
bool log_said_last(const char *text);
/* log_check - whether log_configure would accept spec; changes nothing. */
int log_check(const char *spec, struct err *e) NZ_MUST_USE;
/* log_levels - append "fuse=warn,source=warn,...". */
void log_levels(struct buf *out);

/* log_limited - rate-limit lines from now on; a command logs everything. */
void log_limited(void);
/* log_flush - report the number of lines suppressed in minutes that are over; all: in all minutes.
 * Call it periodically. */
void log_flush(bool all);

extern _Atomic unsigned char log_max[LOG_COMPONENTS];

/* log_on - whether a line of this level would be shown. */
static inline bool log_on(enum log_component part, enum log_level level)
{
	return level <= atomic_load_explicit(&log_max[part], memory_order_relaxed);
}
#define log_enabled(level) log_on(LOG_COMPONENT, level)

/* log_put - write "nczarrfs: error: <text>\n" in one write ("warning", "note", "debug": by level,
 * and "note" for LOG_INFO too; the system log gets the text alone), with '?' for each control
 * character. Any thread. Returns false when the line was suppressed by the rate limit. */
bool log_put(enum log_component part, enum log_level level, const char *fmt, ...)
	NZ_PRINTF(3, 4);

#define log_line(level, ...) log_put(LOG_COMPONENT, level, __VA_ARGS__)
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_note(...) log_line(LOG_NOTE, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                           \
	do {                                                                                     \
		if (log_enabled(LOG_DEBUG))                                                      \
			log_line(LOG_DEBUG, __VA_ARGS__);                                        \
	} while (0)

#endif
