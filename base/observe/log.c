/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - the only file that writes log lines. */
#include "base/observe/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/core/hash.h"
#include "base/observe/log_limit_int.h"
#include "base/observe/metrics.h"

/* <syslog.h> also defines LOG_INFO and LOG_DEBUG, as other numbers: declare only this. */
extern void syslog(int priority, const char *fmt, ...) NZ_PRINTF(2, 3);
enum { SYSLOG_ERR = 3, SYSLOG_WARNING = 4, SYSLOG_INFO = 6, SYSLOG_DEBUG = 7 };

_Static_assert((int)LOG_COMPONENTS <= (int)LOG_COMPONENTS_MAX, "room for each");

_Atomic unsigned char log_max[LOG_COMPONENTS] = {LOG_WARN, LOG_WARN, LOG_WARN, LOG_WARN,
						 LOG_WARN, LOG_WARN, LOG_WARN};
static _Atomic bool log_syslog, limited;

static const char *const part_names[] = {
	[LOG_FUSE] = "fuse",     [LOG_SOURCE] = "source", [LOG_CODEC] = "codec",
	[LOG_CACHE] = "cache",   [LOG_HTTP] = "http",      [LOG_WRITE] = "write",
	[LOG_ISOLATE] = "isolate",
};
static const char *const level_names[] = {"error", "warn", "info", "debug"};

static struct {
	pthread_mutex_t lock;
	struct log_limit limit; /* guarded by lock */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

void log_init(enum log_level max, bool to_syslog)
{
	for (size_t i = 0; i < LOG_COMPONENTS; i++)
		atomic_store(&log_max[i], (unsigned char)max);
	atomic_store(&log_syslog, to_syslog);
}

void log_to_syslog(void)
{
	atomic_store(&log_syslog, true);
}

void log_limited(void)
{
	atomic_store(&limited, true);
}

/* ---- levels ---- */

#define BETWEEN ",:" /* ':' too, because commas separate options */

static int find_name(const char *const *names, size_t n, const char *text, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) == len && memcmp(names[i], text, len) == 0)
			return (int)i;
	return -1;
}

/* configure_one - parse "net=debug", or "debug". */
static int configure_one(const char *text, size_t n, unsigned char *levels, struct err *e)
{
	const char *eq = memchr(text, '=', n);
	const size_t name_len = eq ? (size_t)(eq - text) : 0;
	const char *value = eq ? eq + 1 : text;
	const int level = find_name(level_names, LOG_LEVELS, value, n - (size_t)(value - text));
	int part = find_name(part_names, LOG_COMPONENTS, text, name_len);

	if (level >= 0 && (!eq || (name_len == 3 && memcmp(text, "all", 3) == 0))) {
		memset(levels, level, LOG_COMPONENTS);
		return 0;
	}
	if (level < 0 || part < 0)
		return err_set(e, -EINVAL,
			       "'%.*s' is not a log level: write COMPONENT=LEVEL[,...] "
			       "(components: fuse, source, codec, cache, http, write, "
			       "isolate, all; levels: error, warn, info, debug)",
			       n < 40 ? (int)n : 40, text);
	levels[part] = (unsigned char)level;
	return 0;
}

/* configure - parse all items of spec. */
static int configure(const char *spec, unsigned char *levels, struct err *e)
{
	int rc = 0;

	for (const char *p = spec; rc == 0; p += strcspn(p, BETWEEN) + 1) {
		rc = configure_one(p, strcspn(p, BETWEEN), levels, e);
		if (!p[strcspn(p, BETWEEN)])
			break;
	}
	return rc;
}

int log_check(const char *spec, struct err *e)
{
	unsigned char levels[LOG_COMPONENTS];

	return configure(spec, levels, e);
}

int log_configure(const char *spec, struct err *e)
{
	unsigned char levels[LOG_COMPONENTS];
	int rc;

	for (size_t i = 0; i < LOG_COMPONENTS; i++)
		levels[i] = atomic_load(&log_max[i]);
	rc = configure(spec, levels, e);
	for (size_t i = 0; rc == 0 && i < LOG_COMPONENTS; i++)
		atomic_store(&log_max[i], levels[i]);
	return rc;
}

void log_levels(struct buf *out)
{
	for (size_t i = 0; i < LOG_COMPONENTS; i++)
		buf_printf(out, "%s%s=%s", i ? "," : "", part_names[i],
			   level_names[atomic_load(&log_max[i])]);
}

/* ---- lines ---- */

static _Atomic uint64_t last_error; /* hash of its text; 0: none yet */

static uint64_t observe_log_hash_of(const char *text)
{
	return hash_text(HASH_SEED, text) | 1;
}

bool log_said_last(const char *text)
{
	return atomic_load(&last_error) == observe_log_hash_of(text);
}

/* observe_log_put - write a line. text: room for one byte more, and for the prefix before it. */
static void observe_log_put(enum log_level level, const char *text)
{
	static const int priority[] = {SYSLOG_ERR, SYSLOG_WARNING, SYSLOG_INFO, SYSLOG_DEBUG,
				       SYSLOG_WARNING};
	static const char *const prefix[] = {"error", "warning", "note", "debug", "note"};
	static const enum metric counters[] = {M_LOG_ERRORS, M_LOG_WARNINGS, M_LOG_INFOS,
					       M_LOG_DEBUGS, M_LOG_WARNINGS};
	char line[1100];
	int n;

	metrics_count(counters[level]);
	if (level == LOG_ERROR)
		atomic_store(&last_error, observe_log_hash_of(text));
	if (atomic_load_explicit(&log_syslog, memory_order_relaxed)) {
		syslog(priority[level], "%s", text);
		return;
	}
	n = snprintf(line, sizeof(line), "nczarrfs: %s: %s\n", prefix[level], text);
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* stderr failed: no other place to report it */
}

static void put_kept(void *arg NZ_UNUSED, uint8_t part, uint8_t level, const char *text)
{
	char line[400];

	(void)snprintf(line, sizeof(line), "%s: %s", part_names[part], text);
	observe_log_put((enum log_level)level, line);
}

bool log_put(enum log_component part, enum log_level level, const char *fmt, ...)
{
	const enum log_level shown = level == LOG_NOTE ? LOG_WARN : level;
	char text[1010];
	bool say = true;
	va_list ap;

	if (!log_on(part, shown))
		return true;
	va_start(ap, fmt);
	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		text[0] = '\0';
	va_end(ap);
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	/* higher levels are shown on request only, and then completely */
	if (shown <= LOG_WARN && atomic_load_explicit(&limited, memory_order_relaxed)) {
		(void)pthread_mutex_lock(&kept.lock);
		say = log_limit_ask(&kept.limit, (uint8_t)part, (uint8_t)shown, text,
				    clock_ms() / 1000, put_kept, NULL);
		(void)pthread_mutex_unlock(&kept.lock);
	}
	if (say)
		observe_log_put(level, text);
	else
		metrics_count(M_LOG_KEPT_BACK);
	return say;
}

void log_flush(bool all)
{
	(void)pthread_mutex_lock(&kept.lock);
	log_limit_flush(&kept.limit, clock_ms() / 1000, all, put_kept, NULL);
	(void)pthread_mutex_unlock(&kept.lock);
}
