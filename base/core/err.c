/* SPDX-License-Identifier: BSD-3-Clause */
/* err.c - formats error messages. It must not allocate: it also reports -ENOMEM. */
#include "base/core/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void sanitise(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
}

NZ_PRINTF(3, 0)
static void format(char *out, size_t cap, const char *fmt, va_list ap)
{
	if (vsnprintf(out, cap, fmt, ap) < 0)
		out[0] = '\0';
	sanitise(out);
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	format(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return code;
}

/* core_err_join - head + ": " + tail into e->msg, truncating at its end. */
static void core_err_join(struct err *e, const char *head, const char *tail)
{
	size_t n = strnlen(head, ERR_TEXT_MAX - 1), left = ERR_TEXT_MAX - 1 - n, t;

	memmove(e->msg, head, n);
	if (left > 2) {
		e->msg[n++] = ':';
		e->msg[n++] = ' ';
		left -= 2;
		t = strnlen(tail, left);
		memcpy(e->msg + n, tail, t);
		n += t;
	}
	e->msg[n] = '\0';
}

int err_wrap(struct err *e, int code, const char *fmt, ...)
{
	char head[ERR_TEXT_MAX], tail[ERR_TEXT_MAX];
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	format(head, sizeof(head), fmt, ap);
	va_end(ap);
	memcpy(tail, e->msg, sizeof(tail));
	core_err_join(e, head, tail);
	return code;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
	char head[ERR_TEXT_MAX], text[128], low[128];
	va_list ap;

	if (!e)
		return -errnum;
	e->code = -errnum;
	va_start(ap, fmt);
	format(head, sizeof(head), fmt, ap);
	va_end(ap);
	(void)snprintf(low, sizeof(low), "%s", strerror_r(errnum, text, sizeof(text)));
	if (low[0] >= 'A' && low[0] <= 'Z' && low[1] >= 'a' && low[1] <= 'z')
		low[0] = (char)(low[0] - 'A' + 'a'); /* messages begin in lower case */
	core_err_join(e, head, low);
	return -errnum;
}

bool err_is_transient(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE || code == -EAGAIN ||
	       code == -EINTR;
}

int err_nomem(struct err *e)
{
	return err_set(e, -ENOMEM, "out of memory");
}
