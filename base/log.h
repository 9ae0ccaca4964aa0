/* log.h - one line an event, on standard error or in the system log.
 *
 * Library modules never print: they return errors. Lines are written by main, by the mount's
 * reply code, and by log_debug, which costs one load when debugging is off.
 * Levels: error and warn are always shown, info with -v, debug with -o debug. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/util.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* log_init - set the highest level shown and where lines go; call it before threads start. */
void log_init(enum log_level max, bool to_syslog);
/* log_enabled - whether a line of this level would be shown. */
bool log_enabled(enum log_level level);
/* log_line - "nczarrfs: <text>\n" in one write; control characters become '?'. Any thread. */
void log_line(enum log_level level, const char *fmt, ...) NZ_PRINTF(2, 3);

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)                                                                           \
	do {                                                                                     \
		if (log_enabled(LOG_DEBUG))                                                      \
			log_line(LOG_DEBUG, __VA_ARGS__);                                        \
	} while (0)

#endif
