/* SPDX-License-Identifier: BSD-3-Clause */
/* list.c - which files a pattern names, in the order that people give names. */
#include "base/core/str.h"
#include "base/core/utf8.h"
#include "translate/concat/concat_int.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <string.h>

#define SHOWN 120 /* bytes of a path in a message: its end says most */

const char *concat_name(const char *path)
{
	return path + utf8_tail(path, strlen(path), SHOWN);
}

bool concat_is_pattern(const char *path)
{
	return strpbrk(path, "*?[") != NULL;
}

char *concat_folder(const char *pattern)
{
	char *dir = strdup(pattern), *wild = dir ? strpbrk(dir, "*?[") : NULL, *slash;

	if (!wild)
		return dir;
	*wild = '\0';
	slash = strrchr(dir, '/');
	if (!slash) {
		free(dir);
		return strdup(".");
	}
	slash[slash == dir] = '\0';
	return dir;
}

/* concat_list_number - behind the digits at *p; *ret_start: behind leading zeros. */
static size_t concat_list_number(const char **p, const char **ret_start)
{
	const char *s = *p;

	while (*s == '0' && str_digit(s[1]))
		s++;
	*ret_start = s;
	while (str_digit(*s))
		s++;
	*p = s;
	return (size_t)(s - *ret_start);
}

int concat_natural(const char *a, const char *b)
{
	const char *whole_a = a, *whole_b = b;

	while (*a && *b) {
		const char *x, *y;
		size_t n, m;
		int c;

		if (!str_digit(*a) || !str_digit(*b)) {
			if (*a != *b)
				return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
			a++;
			b++;
			continue;
		}
		n = concat_list_number(&a, &x);
		m = concat_list_number(&b, &y);
		c = n != m ? (n < m ? -1 : 1) : memcmp(x, y, n);
		if (c != 0)
			return c;
	}
	if (*a || *b)
		return *a ? 1 : -1;
	return strcmp(whole_a, whole_b);
}

int concat_by_name(const void *a, const void *b)
{
	const struct concat_member *x = a, *y = b;

	return concat_natural(x->path, y->path);
}

/* list - paths while they are collected. */
struct list {
	struct concat_member *v;
	size_t n, cap;
};

static int concat_list_add(struct list *l, const char *path, struct err *e)
{
	if (grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0)
		return err_nomem(e);
	l->v[l->n] = (struct concat_member){.path = strdup(path), .coord_form = CONCAT_NONE};
	if (!l->v[l->n].path)
		return err_nomem(e);
	l->n++;
	return 0;
}

static int list_pattern(const char *pattern, struct list *l, struct err *e)
{
	glob_t g = {.gl_pathc = 0};
	/* a folder that cannot be read is an error, not a folder without files */
	int rc, r = glob(pattern, GLOB_ERR | GLOB_NOSORT, NULL, &g);

	if (r == GLOB_NOMATCH)
		return err_set(e, -ENOENT, "'%s': no file matches this pattern: check the path",
			       concat_name(pattern));
	if (r == GLOB_NOSPACE)
		return err_nomem(e);
	if (r != 0) {
		rc = errno ? errno : EIO;
		globfree(&g);
		return err_sys(e, rc, "'%s'", concat_name(pattern));
	}
	rc = 0;
	for (size_t i = 0; i < g.gl_pathc && rc == 0; i++)
		rc = concat_list_add(l, g.gl_pathv[i], e);
	globfree(&g);
	return rc;
}

/* is_member - whether an entry of a directory is a dataset, or has the name of one: if such an
 * entry cannot be opened, that is an error, and the entry is not skipped silently. */
static int is_member(const struct concat *j, const char *path, const char *name, bool *ret,
		     struct err *e)
{
	const struct source_ops *of = NULL;
	struct stat st;
	int rc = source_bidder(j->formats, j->n_formats, path, &of);
	bool is_dir = stat(path, &st) == 0 && S_ISDIR(st.st_mode);

	*ret = of || (j->opts.named && j->opts.named(name, is_dir));
	return rc < 0 && !*ret ? err_sys(e, -rc, "'%s'", concat_name(path)) : 0;
}

/* concat_list_list_dir - all datasets in a directory; files whose name begins with '.' are
 * ignored. */
static int concat_list_list_dir(const struct concat *j, const char *dir, struct list *l,
				struct err *e)
{
	DIR *d = opendir(dir);
	struct dirent *ent;
	auto_buf path = buf_of((size_t)64 << 10);
	int rc = 0;

	if (!d)
		return err_sys(e, errno, "'%s'", concat_name(dir));
	while (rc == 0 && (errno = 0, ent = readdir(d)) != NULL) {
		bool member;

		if (ent->d_name[0] == '.')
			continue;
		buf_clear(&path);
		buf_printf(&path, "%s/%s%c", dir, ent->d_name, '\0');
		if (!buf_ok(&path)) {
			rc = buf_full(&path, e, -ENAMETOOLONG, "'%s': a path is too long", dir);
			break;
		}
		rc = is_member(j, (const char *)path.data, ent->d_name, &member, e);
		if (rc == 0 && member)
			rc = concat_list_add(l, (const char *)path.data, e);
	}
	if (rc == 0 && errno != 0)
		rc = err_sys(e, errno, "'%s'", concat_name(dir));
	(void)closedir(d);
	if (rc == 0 && l->n == 0)
		rc = err_set(e, -ENOENT, "'%s': this directory contains no datasets",
			     concat_name(dir));
	return rc;
}

/* identify - which version of its file each is. A link that leads nowhere is itself: it is seen
 * when it leads somewhere. */
static int identify(struct list *l, struct err *e)
{
	struct stat st;

	for (size_t i = 0; i < l->n; i++) {
		if (stat(l->v[i].path, &st) < 0 &&
		    (errno != ENOENT || lstat(l->v[i].path, &st) < 0))
			return err_sys(e, errno, "'%s'", concat_name(l->v[i].path));
		concat_id_of(&st, &l->v[i].id);
		l->v[i].rank = (uint32_t)i;
	}
	return 0;
}

int concat_list(const struct concat *j, struct concat_member **ret, size_t *ret_n,
		struct err *e)
{
	const char *pattern = j->pattern;
	struct list l = {.n = 0};
	struct stat st;
	int rc;

	if (concat_is_pattern(pattern) && stat(pattern, &st) < 0)
		rc = list_pattern(pattern, &l, e);
	else if (stat(pattern, &st) < 0)
		rc = err_sys(e, errno, "'%s'", concat_name(pattern));
	else if (!S_ISDIR(st.st_mode))
		rc = concat_list_add(&l, pattern, e);
	else
		rc = concat_list_list_dir(j, pattern, &l, e);
	if (rc == 0 && l.n > 1)
		qsort(l.v, l.n, sizeof(*l.v), concat_by_name);
	rc = rc ? rc : identify(&l, e);
	if (rc < 0) {
		concat_members_free(l.v, l.n);
		return rc;
	}
	*ret = l.v;
	*ret_n = l.n;
	return 0;
}

void concat_id_of(const struct stat *st, struct concat_id *ret)
{
	bool dir = S_ISDIR(st->st_mode);

	*ret = (struct concat_id){.v = {[ID_DEV] = st->st_dev,
					[ID_INO] = st->st_ino,
					[ID_SIZE] = dir ? 0 : (uint64_t)st->st_size,
					[ID_MTIME] = (uint64_t)st->st_mtim.tv_sec,
					[ID_MTIME_NS] = (uint64_t)st->st_mtim.tv_nsec,
					[ID_CTIME] = (uint64_t)st->st_ctim.tv_sec,
					[ID_CTIME_NS] = (uint64_t)st->st_ctim.tv_nsec},
				  .dir = dir};
}

bool concat_id_same(const struct concat_id *a, const struct concat_id *b)
{
	return memcmp(a->v, b->v, sizeof(a->v)) == 0 && a->dir == b->dir;
}

void concat_member_forget(struct concat_member *m)
{
	free(m->forms);
	free(m->coord);
	*m = (struct concat_member){
		.path = m->path, .id = m->id, .rank = m->rank, .coord_form = CONCAT_NONE};
}

void concat_members_free(struct concat_member *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		concat_member_forget(&v[i]);
		free(v[i].path);
	}
	free(v);
}
