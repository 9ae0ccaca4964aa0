/* log.c - the one place that writes log lines. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* <syslog.h> also defines LOG_INFO and LOG_DEBUG, as other numbers: declare what we use. */
extern void syslog(int priority, const char *fmt, ...) NZ_PRINTF(2, 3);
enum { SYSLOG_ERR = 3, SYSLOG_WARNING = 4, SYSLOG_INFO = 6, SYSLOG_DEBUG = 7 };

static enum log_level log_max = LOG_WARN; /* written before threads start */
static bool log_syslog;

void log_init(enum log_level max, bool to_syslog)
{
	log_max = max;
	log_syslog = to_syslog;
}

bool log_enabled(enum log_level level)
{
	return level <= log_max;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	static const int priority[] = {SYSLOG_ERR, SYSLOG_WARNING, SYSLOG_INFO, SYSLOG_DEBUG};
	static const char prefix[] = "nczarrfs: ";
	char line[1024];
	size_t n = sizeof(prefix) - 1;
	va_list ap;

	if (!log_enabled(level))
		return;
	memcpy(line, prefix, n);
	va_start(ap, fmt);
	if (vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap) < 0)
		line[n] = '\0';
	va_end(ap);
	for (char *p = line; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	if (log_syslog) {
		syslog(priority[level], "%s", line + n);
		return;
	}
	n = strlen(line);
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* nowhere left to say so */
}
