/* SPDX-License-Identifier: BSD-3-Clause */
/* progress.c - a line that is redrawn in place: a bar, the share, amount, speed, and the remaining
 * time at the speed of this run. */
#include "fusefs/cmd/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/os/cancel.h"

#define BAR 24                     /* columns of the bar */
#define OFTEN ((int64_t)100000000) /* ns between two drawings */
#define SECOND ((int64_t)1000000000)
#define LONGEST ((uint64_t)100 * 3600) /* largest number of seconds that is shown */

static bool dumb(void)
{
	const char *term = getenv("TERM");

	return !term || strcmp(term, "dumb") == 0;
}

bool progress_colours(int fd)
{
	const char *no = getenv("NO_COLOR");

	return isatty(fd) && !dumb() && !(no && *no);
}

void progress_bytes(struct buf *out, uint64_t n)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
	double v = (double)n;
	int i = -1;

	if (n < 1024) {
		buf_printf(out, "%" PRIu64 " bytes", n);
		return;
	}
	while (v >= 1024 && i + 1 < (int)ARRAY_LEN(units)) {
		v /= 1024;
		i++;
	}
	buf_printf(out, "%.1f %s", v, units[i]);
}

static void put_time(struct buf *out, double seconds)
{
	uint64_t s;

	if (!(seconds >= 0) || seconds >= (double)LONGEST)
		return;
	s = (uint64_t)(seconds + 0.5);
	if (s >= 3600)
		buf_printf(out, ", %" PRIu64 ":%02" PRIu64 ":%02" PRIu64 " left", s / 3600,
			   s / 60 % 60, s % 60);
	else
		buf_printf(out, ", %" PRIu64 ":%02" PRIu64 " left", s / 60, s % 60);
}

void progress_line(struct buf *out, double share, double first, double seconds, uint64_t things,
		   const char *what, uint64_t bytes, unsigned width)
{
	const size_t from = out->len;
	int full;

	share = share < 0 ? 0 : share > 1 ? 1 : share;
	full = (int)(share * BAR);
	buf_putc(out, '[');
	for (int i = 0; i < BAR; i++)
		buf_putc(out, i < full ? '=' : i == full ? '>' : ' ');
	buf_printf(out, "] %3.0f %%  %" PRIu64 " %s, ", share * 100, things, what);
	progress_bytes(out, bytes);
	if (seconds >= 0.5) {
		buf_puts(out, ", ");
		progress_bytes(out, (uint64_t)((double)bytes / seconds));
		buf_puts(out, "/s");
		if (share > first)
			put_time(out, seconds * (1 - share) / (share - first));
	}
	if (out->len - from > width)
		out->len = from + width;
}

void progress_begin(struct progress *p)
{
	*p = (struct progress){
		.on = isatty(STDERR_FILENO) && !dumb(), .began = clock_ns(), .first = -1};
}

static void progress_put(const char *text, size_t n)
{
	if (write(STDERR_FILENO, text, n) < 0)
		return; /* the output is not visible */
}

void progress_show(struct progress *p, double share, uint64_t things, const char *what,
		   uint64_t bytes)
{
	int64_t now = clock_ns();
	struct winsize w = {0};
	auto_buf line = buf_of(1024);

	if (p->first < 0)
		p->first = share;
	if (!p->on || now - p->shown < OFTEN)
		return;
	p->shown = now;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col == 0)
		w.ws_col = 80;
	buf_putc(&line, '\r');
	progress_line(&line, share, p->first, (double)(now - p->began) / (double)SECOND, things,
		      what, bytes, w.ws_col - 1u);
	buf_puts(&line, "\033[K");
	if (buf_ok(&line))
		progress_put((const char *)line.data, line.len);
}

void progress_end(struct progress *p)
{
	if (p->on && p->shown)
		progress_put("\r\033[K", 4);
	p->shown = 0;
}
