/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.c - counters in per-thread copies, so that threads rarely share a cache line. */
#include "base/observe/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "base/core/utf8.h"

#define PREFIX "nczarrfs_"

_Alignas(64) _Atomic uint64_t metrics_counts[METRICS_COPIES][(METRICS + 7) / 8 * 8];
_Thread_local unsigned metrics_copy;

/* Whether a copy is in use by a thread. */
static _Atomic bool taken[METRICS_SHARED];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key; /* written once, before its first use */

static struct {
	_Atomic int64_t value;
	int64_t (*fn)(void *arg); /* written before threads start */
	void *arg;
} gauges[GAUGES];

enum family {
#define FAMILY_ID(id, name, unit, label, help) FAMILY_##id,
	METRICS_FAMILIES(FAMILY_ID)
#undef FAMILY_ID
};

static const struct {
	const char *name, *unit, *label, *help;
} families[] = {
#define FAMILY_ROW(id, name, unit, label, help) [FAMILY_##id] = {name, unit, label, help},
	METRICS_FAMILIES(FAMILY_ROW)
#undef FAMILY_ROW
};

static const struct {
	enum family family;
	const char *value;
} counters[] = {
#define COUNTER_ROW(id, family, value) [M_##id] = {FAMILY_##family, value},
	METRICS_COUNTERS(COUNTER_ROW)
#undef COUNTER_ROW
};

static const struct {
	const char *name, *unit, *label, *value, *help;
} gauge_rows[] = {
#define GAUGE_ROW(id, name, unit, label, value, help)                                          \
	[G_##id] = {name, unit, label, value, help},
	METRICS_GAUGES(GAUGE_ROW)
#undef GAUGE_ROW
};

/* give_back - a thread ends: its counts stay, and the next thread continues with the copy. */
static void give_back(void *arg NZ_UNUSED)
{
	if (metrics_copy && metrics_copy - 1 < METRICS_SHARED)
		atomic_store_explicit(&taken[metrics_copy - 1], false, memory_order_release);
	metrics_copy = 0;
}

static void make_key(void)
{
	have_key = pthread_key_create(&key, give_back) == 0;
}

unsigned metrics_take_copy(void)
{
	(void)pthread_once(&once, make_key);
	metrics_copy = METRICS_SHARED + 1;
	for (unsigned i = 0; have_key && i < METRICS_SHARED; i++) {
		if (atomic_exchange_explicit(&taken[i], true, memory_order_acq_rel))
			continue;
		if (pthread_setspecific(key, taken) == 0)
			metrics_copy = i + 1;
		else
			atomic_store(&taken[i], false);
		break;
	}
	return metrics_copy;
}

uint64_t metrics_sum(enum metric id)
{
	uint64_t n = 0;

	for (size_t i = 0; i < METRICS_COPIES; i++)
		n += atomic_load_explicit(&metrics_counts[i][id], memory_order_relaxed);
	return n;
}

void metrics_error(int errnum)
{
	static const struct {
		int errnum;
		enum metric id;
	} known[] = {
		{EIO, M_ERR_EIO},       {ESTALE, M_ERR_ESTALE}, {ENOMEM, M_ERR_ENOMEM},
		{EINTR, M_ERR_EINTR},   {EROFS, M_ERR_EROFS},   {EPERM, M_ERR_EPERM},
		{EACCES, M_ERR_EACCES}, {EINVAL, M_ERR_EINVAL}, {ENOSPC, M_ERR_ENOSPC},
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (known[i].errnum == errnum) {
			metrics_count(known[i].id);
			return;
		}
	}
	metrics_count(M_ERR_OTHER);
}

void metrics_gauge_add(enum gauge id, int64_t delta)
{
	(void)atomic_fetch_add_explicit(&gauges[id].value, delta, memory_order_relaxed);
}

void metrics_gauge_set(enum gauge id, int64_t value)
{
	atomic_store_explicit(&gauges[id].value, value, memory_order_relaxed);
}

void metrics_gauge_from(enum gauge id, int64_t (*fn)(void *arg), void *arg)
{
	gauges[id].fn = fn;
	gauges[id].arg = arg;
}

int64_t metrics_gauge(enum gauge id)
{
	if (gauges[id].fn)
		return gauges[id].fn(gauges[id].arg);
	return atomic_load_explicit(&gauges[id].value, memory_order_relaxed);
}

void metrics_each(void (*fn)(void *arg, const struct metric_value *v), void *arg)
{
	for (size_t i = 0; i < METRICS; i++) {
		enum family f = counters[i].family;
		const struct metric_value v = {
			.family = families[f].name,
			.unit = families[f].unit,
			.label = families[f].label,
			.value = counters[i].value,
			.help = families[f].help,
			.counter = true,
			.first = i == 0 || counters[i - 1].family != f,
			.n = metrics_sum((enum metric)i),
		};

		fn(arg, &v);
	}
	for (size_t i = 0; i < GAUGES; i++) {
		const int64_t n = metrics_gauge((enum gauge)i);
		const struct metric_value v = {
			.family = gauge_rows[i].name,
			.unit = gauge_rows[i].unit,
			.label = gauge_rows[i].label,
			.value = gauge_rows[i].value,
			.help = gauge_rows[i].help,
			.first = i == 0 ||
				 strcmp(gauge_rows[i - 1].name, gauge_rows[i].name) != 0,
			.n = n > 0 ? (uint64_t)n : 0,
		};

		fn(arg, &v);
	}
}

/* ---- OpenMetrics ---- */

struct metrics_text_s {
	struct buf *out;
	const char *mount;
};

/* put_label - name="value", escaped. */
static void put_label(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%s=\"", name);
	for (const char *p = value; *p; p++) {
		if (*p == '\n')
			buf_puts(out, "\\n");
		else if (*p == '"' || *p == '\\')
			buf_printf(out, "\\%c", *p);
		else
			buf_putc(out, *p);
	}
	buf_putc(out, '"');
}

static void metrics_head(struct buf *out, const char *name, const char *type, const char *unit,
			 const char *help)
{
	buf_printf(out, "# TYPE " PREFIX "%s %s\n", name, type);
	if (unit[0])
		buf_printf(out, "# UNIT " PREFIX "%s %s\n", name, unit);
	buf_printf(out, "# HELP " PREFIX "%s %s\n", name, help);
}

static void metrics_put_value(void *arg, const struct metric_value *v)
{
	const struct metrics_text_s *t = arg;

	if (v->first)
		metrics_head(t->out, v->family, v->counter ? "counter" : "gauge", v->unit,
			     v->help);
	buf_printf(t->out, PREFIX "%s%s{", v->family, v->counter ? "_total" : "");
	put_label(t->out, "mount", t->mount);
	if (v->label[0]) {
		buf_putc(t->out, ',');
		put_label(t->out, v->label, v->value);
	}
	buf_printf(t->out, "} %" PRIu64 "\n", v->n);
}

void metrics_text(const char *mount, const char *version, struct buf *out)
{
	auto_buf name = buf_of((size_t)1 << 16);
	struct metrics_text_s t = {.out = out};

	/* a path may have any bytes, the output is UTF-8 */
	(void)utf8_put_text(&name, mount, strlen(mount));
	buf_putc(&name, '\0');
	t.mount = buf_ok(&name) ? (const char *)name.data : "";
	metrics_head(out, "build", "info", "", "The program that serves the mount.");
	buf_puts(out, PREFIX "build_info{");
	put_label(out, "mount", t.mount);
	buf_putc(out, ',');
	put_label(out, "version", version);
	buf_puts(out, "} 1\n");
	metrics_each(metrics_put_value, &t);
	buf_puts(out, "# EOF\n");
}
