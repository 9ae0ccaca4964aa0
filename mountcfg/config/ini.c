/* SPDX-License-Identifier: BSD-3-Clause */
/* ini.c - reads a configuration file: sections of lines KEY = VALUE, or KEY: VALUE. A line that
 * begins with ';' or '#' is a comment, as is the rest of a line after a blank and ';'. */
#include "base/core/str.h"
#include "mountcfg/config/ini_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/util.h"
#include "base/os/io.h"

#define NO_VALUE                                                                               \
	"not a key with a value: write KEY = VALUE, or for an option without a value KEY = yes: " \
	"rw = yes"

/* feed - a file while it is read. */
struct feed {
	struct conf *conf;
	const char *path;
	bool user;
	size_t first;  /* its first section */
	uint32_t line; /* number of the last line that was read */
	struct err *e;
};

static int config_ini_bad(const struct feed *f, int rc, const char *what)
{
	return err_set(f->e, rc, "%s:%u: %s", f->path, f->line, what);
}

/* cut_comment - remove a comment, which begins with a ';' after a blank. */
static void cut_comment(char *text)
{
	char *p = strchr(text, ';');

	while (p && (p == text || !strchr(" \t", p[-1])))
		p = strchr(p + 1, ';');
	if (p)
		*p = '\0';
}

/* open_section - parse "[kind name]". */
static int open_section(struct feed *f, char *text)
{
	struct conf *c = f->conf;
	char *end = strrchr(text, ']'), *name;
	struct conf_section *grown, *s;

	if (!end || end[1])
		return config_ini_bad(f, -EINVAL, "a section must end with ']'");
	*end = '\0';
	text = str_trim(text + 1);
	name = text + strcspn(text, " \t");
	if (*name)
		*name++ = '\0';
	grown = realloc(c->sections, (c->n + 1) * sizeof(*grown));
	if (!grown)
		return err_nomem(f->e);
	c->sections = grown;
	s = &grown[c->n++];
	*s = (struct conf_section){.path = f->path, .line = f->line, .user = f->user};
	s->kind = strdup(text);
	s->name = strdup(str_trim(name));
	return s->kind && s->name ? 0 : err_nomem(f->e);
}

static int config_ini_add_key(struct feed *f, const char *name, const char *value)
{
	struct conf_section *s;
	struct conf_key *grown, *k;

	if (f->conf->n == f->first)
		return config_ini_bad(f, -EINVAL,
				      "a key outside of any section: write [defaults] above it");
	s = &f->conf->sections[f->conf->n - 1];
	grown = realloc(s->keys, (s->n_keys + 1) * sizeof(*grown));
	if (!grown)
		return err_nomem(f->e);
	s->keys = grown;
	k = &grown[s->n_keys++];
	*k = (struct conf_key){.name = strdup(name), .value = strdup(value), .line = f->line};
	return k->name && k->value ? 0 : err_nomem(f->e);
}

/* take_line - take one line, without its end. */
static int take_line(struct feed *f, char *line)
{
	char *is, *name;

	if (strlen(line) > CONF_LINE_MAX)
		return config_ini_bad(f, -EFBIG, "the line is too long");
	line = str_trim(line);
	if (!*line || *line == ';' || *line == '#')
		return 0;
	cut_comment(line);
	line = str_trim(line);
	if (*line == '[')
		return open_section(f, line);
	is = line + strcspn(line, "=:");
	if (!*is)
		return config_ini_bad(f, -EINVAL, NO_VALUE);
	*is = '\0';
	name = str_trim(line);
	return *name ? config_ini_add_key(f, name, str_trim(is + 1))
		     : config_ini_bad(f, -EINVAL, NO_VALUE);
}

/* check_bytes - check that the file is text without bytes that would affect a terminal. */
static int check_bytes(const char *path, const char *text, size_t n, struct err *e)
{
	uint32_t line = 1;

	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];

		/* a carriage return is part of a line end, or a way to hide text */
		const bool end =
			c == '\n' || (c == '\r' && (i + 1 == n || text[i + 1] == '\n'));

		if ((c < ' ' && c != '\t' && !end) || c == 0x7f)
			return err_set(e, -EINVAL, "%s:%u: byte 0x%02x: not a text file",
				       path, line, c);
		line += c == '\n';
	}
	return 0;
}

/* has_secret - true if other users must not read a value: a password or a signature in an
 * address. */
static bool has_secret(const char *value)
{
	static const char *const words[] = {"sig",    "token", "key",       "passw",
					    "secret", "auth",  "credential"};
	const char *host, *query;
	size_t n;

	for (const char *p = strstr(value, "://"); p; p = strstr(p, "://")) {
		p += 3;
		host = p;
		n = strcspn(host, "/?#, \t");
		if (memchr(host, '@', n) &&
		    memchr(host, ':', (size_t)((const char *)memchr(host, '@', n) - host)))
			return true;
		query = host + strcspn(host, "?, \t");
		for (size_t i = 0; *query == '?' && i < ARRAY_LEN(words); i++)
			if (strcasestr(query, words[i]))
				return true;
	}
	return false;
}

/* check_readers - check the permissions of a file with passwords. */
static int check_readers(const struct feed *f, const struct stat *st)
{
	for (size_t i = f->first; st->st_mode & 077 && i < f->conf->n; i++) {
		const struct conf_section *s = &f->conf->sections[i];

		for (size_t k = 0; k < s->n_keys; k++)
			if (has_secret(s->keys[k].value))
				return err_set(
					f->e, -EACCES,
					"%s:%u: a password or a signature, in a file that others "
					"can read: run chmod 600 '%s'",
					f->path, s->keys[k].line, f->path);
	}
	return 0;
}

/* config_ini_distrust - true if the file must not be used, with the reason in e. */
static bool config_ini_distrust(const char *path, enum conf_whose whose, const struct stat *st,
				struct err *e)
{
	const bool mine = st->st_uid == geteuid();

	if (st->st_uid != 0 && (!mine || whose == CONF_SYSTEM))
		err_set(e, -EACCES, "%s: not read: it belongs to another user (%u)", path,
			(unsigned)st->st_uid);
	else if (st->st_mode & (S_IWGRP | S_IWOTH))
		err_set(e, -EACCES, "%s: not read: others may write to it: run chmod go-w '%s'",
			path, path);
	else if (!S_ISREG(st->st_mode))
		err_set(e, -EINVAL, "%s: not read: not a regular file", path);
	else
		return false;
	return true;
}

/* slurp - *ret: the contents with a NUL; the caller wipes and frees it. */
static int slurp(int fd, const char *path, const struct stat *st, char **ret, size_t *ret_n,
		 struct err *e)
{
	const size_t n = st->st_size > CONF_FILE_MAX ? 0 : (size_t)st->st_size;
	int rc;

	if (st->st_size > CONF_FILE_MAX)
		return err_set(e, -EFBIG, "%s: too large: a configuration file has at most %d "
					  "bytes",
			       path, CONF_FILE_MAX);
	*ret = malloc(n + 1);
	if (!*ret)
		return err_nomem(e);
	*ret_n = n;
	(*ret)[n] = '\0';
	rc = io_pread(fd, *ret, n, 0, e);
	return rc < 0 ? err_wrap(e, rc, "%s", path) : check_bytes(path, *ret, n, e);
}

/* config_ini_parse - modifies text. */
static int config_ini_parse(struct feed *f, char *text)
{
	int rc = 0;

	if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
		text += 3;
	for (char *line; rc == 0 && (line = strsep(&text, "\n"));) {
		f->line++;
		rc = take_line(f, line);
	}
	return rc;
}

static int cannot_open(const char *path, enum conf_whose whose, int errnum, struct err *e)
{
	/* EACCES: the system's file is for root only, or $HOME is another user's after su */
	if (whose != CONF_NAMED && (errnum == ENOENT || errnum == ENOTDIR || errnum == EACCES))
		return 1;
	return err_sys(e, errnum, "%s", path);
}

int conf_file_read(const char *path, enum conf_whose whose, struct conf *c, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct feed f = {.conf = c, .user = whose != CONF_SYSTEM, .first = c->n, .e = e};
	char *text = NULL;
	struct stat st;
	size_t n = 0;
	int rc;

	if (fd < 0)
		return cannot_open(path, whose, errno, e);
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "%s", path);
	if (config_ini_distrust(path, whose, &st, e))
		return whose == CONF_NAMED ? -EACCES : 1;
	f.path = c->paths[c->n_paths++] = strdup(path);
	if (!f.path)
		return err_nomem(e);
	rc = slurp(fd, path, &st, &text, &n, e);
	rc = rc ? rc : config_ini_parse(&f, text);
	rc = rc ? rc : check_readers(&f, &st);
	if (text)
		explicit_bzero(text, n);
	free(text);
	return rc;
}
