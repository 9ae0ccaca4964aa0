/* SPDX-License-Identifier: BSD-3-Clause */
/* state.c - saves the progress of a check in a file, from which a later check continues.
 *
 * Lines of text: the kind of file, the state of the source (app/fingerprint.h), the position before
 * which all chunks were read, the damaged chunks, "end". The file is replaced as a whole, so that a
 * process that is killed leaves the previous one. */
#include "fusefs/cmd/check/check_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os/io.h"
#include "base/core/str.h"

#define FIRST "nczarrfs check 1\n"
#define STATE_MAX ((size_t)256 << 20)

void check_state_print(const struct check *c, struct check_at at, uint64_t taken, uint64_t same,
		       struct buf *out)
{
	buf_printf(out, FIRST "source %" PRIu64 "\nat %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
		   same, at.array, at.linear, taken);
	for (size_t i = 0; i < c->bad.n; i++) {
		const struct check_bad *b = &c->bad.v[i];
		const struct check_at place = {b->array,
					       b->linear == CHECK_ARRAY ? 0 : b->linear};

		if (check_at_cmp(place, at) >= 0)
			continue;
		buf_printf(out, "bad %" PRIu32 " %" PRIu64 " %d %d %" PRIu64 " %" PRIu64 "\t",
			   b->array, b->linear, b->placed, b->whole, b->off, b->len);
		/* a key may contain any byte but NUL; control characters are escaped for legibility
		 * only */
		for (const char *s = b->key ? b->key : ""; *s; s++)
			buf_putc(out, (unsigned char)*s < 0x20 ? '?' : *s);
		buf_printf(out, "\t%s\n", b->why);
	}
	buf_printf(out, "more %" PRIu64 "\nend\n", c->bad.more);
}

int check_state_save(struct check *c, const char *path, struct check_at at, uint64_t taken,
		     uint64_t same, struct err *e)
{
	auto_free char *tmp = NULL;
	auto_fd int fd = -1;
	auto_buf text = buf_of(STATE_MAX);
	int rc = 0;

	tmp = str_printf("%s.new", path);
	if (!tmp)
		return err_nomem(e);
	(void)pthread_mutex_lock(&c->lock);
	check_state_print(c, at, taken, same, &text);
	(void)pthread_mutex_unlock(&c->lock);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		rc = err_sys(e, errno, "'%s'", tmp);
	else if (!buf_ok(&text))
		rc = buf_full(&text, e, -ERANGE, "the state is too large");
	else
		rc = io_pwrite(fd, text.data, text.len, 0, e);
	if (rc == 0 && rename(tmp, path) < 0)
		rc = err_sys(e, errno, "'%s'", path);
	return rc;
}

/* ---- parsing ---- */

/* state_number - parse the decimal at *p up to a character of `ends`; *p moves past it. */
static bool state_number(char **p, const char *ends, uint64_t max, uint64_t *ret)
{
	size_t n = strcspn(*p, " \t\n");

	if (!strchr(ends, (*p)[n]) || !(*p)[n] || str_u64(*p, n, max, ret) < 0)
		return false;
	*p += n + 1;
	return true;
}

static bool state_word(char **p, const char *text)
{
	size_t n = strlen(text);

	if (strncmp(*p, text, n) != 0)
		return false;
	*p += n;
	return true;
}

/* field - the string at *p up to `end`, terminated with NUL; *p moves past it. */
static char *field(char **p, char end)
{
	char *from = *p, *to = strchr(from, end);

	if (!to || (end != '\n' && memchr(from, '\n', (size_t)(to - from))))
		return NULL;
	*to = '\0';
	*p = to + 1;
	return from;
}

/* state_bad - parse the rest of a line "bad ...". Returns 0; 1: malformed; -ENOMEM. */
static int state_bad(struct check *c, char **p, struct err *e)
{
	struct check_bad b = {0};
	uint64_t array, placed, whole;
	char *key, *why;
	int rc;

	if (!state_number(p, " ", UINT32_MAX, &array) ||
	    !state_number(p, " ", UINT64_MAX, &b.linear) || !state_number(p, " ", 1, &placed) ||
	    !state_number(p, " ", 1, &whole) || !state_number(p, " ", UINT64_MAX, &b.off) ||
	    !state_number(p, "\t", UINT64_MAX, &b.len))
		return 1;
	key = field(p, '\t');
	why = key ? field(p, '\n') : NULL;
	if (!why || array >= c->source->ds.n_arrays ||
	    (b.linear != CHECK_ARRAY && b.linear >= c->source->ds.arrays[array].n_chunks))
		return 1;
	b.array = (uint32_t)array;
	b.placed = placed != 0;
	b.whole = whole != 0;
	b.key = strdup(key);
	b.why = strdup(why);
	rc = b.key && b.why ? check_bad_add(&c->bad, &b, e) : err_nomem(e);
	if (rc < 0) {
		free(b.key);
		free(b.why);
	}
	return rc;
}

int check_state_parse(struct check *c, char *text, size_t n, uint64_t same, struct err *e)
{
	uint64_t was, array, linear, taken, more;
	char *p = text;
	int rc = 0;

	if (strlen(text) != n || !state_word(&p, FIRST) || !state_word(&p, "source ") ||
	    !state_number(&p, "\n", UINT64_MAX, &was))
		return 1;
	if (was != same)
		return 0;
	if (!state_word(&p, "at ") || !state_number(&p, " ", UINT32_MAX, &array) ||
	    !state_number(&p, " ", UINT64_MAX, &linear) ||
	    !state_number(&p, "\n", UINT64_MAX, &taken) || array > c->source->ds.n_arrays)
		return 1;
	while (rc == 0 && state_word(&p, "bad "))
		rc = state_bad(c, &p, e);
	if (rc)
		return rc;
	if (!state_word(&p, "more ") || !state_number(&p, "\n", UINT64_MAX, &more) ||
	    !state_word(&p, "end\n") || *p)
		return 1;
	c->next = (struct check_at){(uint32_t)array, linear};
	c->taken = taken;
	c->bad.more += more;
	return 2;
}

int check_state_load(struct check *c, const char *path, uint64_t same, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	auto_free char *text = NULL;
	struct stat st;
	int rc;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, errno, "'%s'", path);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "'%s'", path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > STATE_MAX)
		rc = 1;
	else {
		text = malloc((size_t)st.st_size + 1);
		rc = text ? io_pread(fd, text, (size_t)st.st_size, 0, e) : err_nomem(e);
		if (rc == 0) {
			text[st.st_size] = '\0';
			rc = check_state_parse(c, text, (size_t)st.st_size, same, e);
		}
	}
	if (rc == 1)
		return err_set(e, -EINVAL,
			       "--resume: '%s' exists and is not the state of a check: use "
			       "another file, or remove it",
			       path);
	return rc < 0 ? rc : rc == 2;
}
