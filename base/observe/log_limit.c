/* SPDX-License-Identifier: BSD-3-Clause */
/* log_limit.c - counts log lines by kind. */
#include "base/core/hash.h"
#include "base/core/str.h"
#include "base/observe/log_limit_int.h"

#include <stdio.h>
#include <string.h>

/* log_limit_kind - hash a text; numbers: with its numbers, else each is the same. Never 0. */
static uint64_t log_limit_kind(const char *s, uint64_t h, bool numbers)
{
	for (; *s; s++) {
		char c = *s;

		if (!numbers && str_digit(c)) {
			while (str_digit(s[1]))
				s++;
			c = '0';
		}
		h = hash_bytes(h, &c, 1);
	}
	return h ? h : 1;
}

/* said_more - write the count of suppressed lines of a kind. */
static void said_more(struct log_limit *l, struct log_kind *k, int64_t now, log_limit_say *say,
		      void *arg)
{
	char line[LOG_SAMPLE + 96];
	const int64_t took = now - k->since;

	if (!k->more)
		return;
	if (k->more == 1) /* the line itself is as short */
		(void)snprintf(line, sizeof(line), "%s", k->sample);
	else if (took <= LOG_SECONDS + LOG_SECONDS / 2)
		(void)snprintf(line, sizeof(line), "%u more like this in the last minute: %s",
			       k->more, k->sample);
	else
		(void)snprintf(line, sizeof(line), "%u more like this in the last %lld min: %s",
			       k->more, (long long)(took / 60), k->sample);
	k->more = 0;
	l->waiting--;
	say(arg, k->component, k->level, line);
}

static void said_more_lines(struct log_limit *l, uint8_t part, uint8_t level,
			    log_limit_say *say, void *arg)
{
	char line[96];

	if (!l->parts[part].more)
		return;
	(void)snprintf(line, sizeof(line),
		       "log lines suppressed because there were too many in one minute: %u",
		       l->parts[part].more);
	l->parts[part].more = 0;
	l->waiting--;
	say(arg, part, level, line);
}

/* log_limit_kind_of - the entry of a hash: the existing one, else a free one, else the oldest,
 * which is replaced. */
static struct log_kind *log_limit_kind_of(struct log_limit *l, uint64_t hash, int64_t now,
					  log_limit_say *say, void *arg)
{
	struct log_kind *oldest = &l->kinds[0];

	for (size_t i = 0; i < LOG_KINDS; i++) {
		struct log_kind *k = &l->kinds[i];

		if (k->hash == hash)
			return k;
		if (oldest->hash && (!k->hash || k->since < oldest->since))
			oldest = k;
	}
	said_more(l, oldest, now, say, arg);
	*oldest = (struct log_kind){.hash = hash, .since = now};
	return oldest;
}

static bool was_said(const struct log_kind *k, uint64_t text)
{
	for (uint32_t i = 0; i < k->n_said; i++)
		if (k->said[i] == text)
			return true;
	return false;
}

/* part_full - whether a component has used up its lines of this minute. */
static bool part_full(struct log_limit *l, uint8_t part, uint8_t level, int64_t now,
		      log_limit_say *say, void *arg)
{
	if (now - l->parts[part].since >= LOG_SECONDS) {
		said_more_lines(l, part, level, say, arg);
		l->parts[part].since = now;
		l->parts[part].lines = 0;
	}
	if (l->parts[part].lines < LOG_LINES) {
		l->parts[part].lines++;
		return false;
	}
	l->waiting += l->parts[part].more++ == 0;
	return true;
}

bool log_limit_ask(struct log_limit *l, uint8_t component, uint8_t level, const char *text,
		   int64_t now, log_limit_say *say, void *arg)
{
	const uint64_t base = HASH_SEED ^ ((uint64_t)component << 8 | level);
	const uint64_t whole = log_limit_kind(text, HASH_SEED, true);
	struct log_kind *k = log_limit_kind_of(l, log_limit_kind(text, base, false), now, say, arg);

	k->component = component;
	k->level = level;
	if (now - k->since >= LOG_SECONDS) {
		said_more(l, k, now, say, arg);
		k->since = now;
		k->n_said = 0;
	}
	if (k->n_said == LOG_SAME || was_said(k, whole)) {
		if (k->more++ == 0) {
			l->waiting++;
			(void)snprintf(k->sample, sizeof(k->sample), "%s", text);
		}
		return false;
	}
	k->said[k->n_said++] = whole;
	return !part_full(l, component, level, now, say, arg);
}

void log_limit_flush(struct log_limit *l, int64_t now, bool all, log_limit_say *say, void *arg)
{
	for (size_t i = 0; i < LOG_KINDS && l->waiting > 0; i++)
		if (all || now - l->kinds[i].since >= LOG_SECONDS)
			said_more(l, &l->kinds[i], now, say, arg);
	for (uint8_t i = 0; i < LOG_COMPONENTS_MAX && l->waiting > 0; i++)
		if (all || now - l->parts[i].since >= LOG_SECONDS)
			said_more_lines(l, i, 0, say, arg);
}
