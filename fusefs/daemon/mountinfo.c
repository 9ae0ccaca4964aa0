/* SPDX-License-Identifier: BSD-3-Clause */
/* mountinfo.c - our mounts in /proc/self/mountinfo. */
#include "fusefs/daemon/mountinfo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/core/str.h"
#include "fusefs/app/fusefs.h"
#include "fusefs/daemon/child_query.h"

enum { ASK_MS = 1000 };

/* mountinfo_unescape - decode octal escapes, such as \040 for a blank, in place. */
static void mountinfo_unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* mountinfo_word - the next word of a line, unescaped; NULL: no more words. */
static char *mountinfo_word(char **line)
{
	char *w = *line;

	if (!w || !*w)
		return NULL;
	*line = w + strcspn(w, " \n");
	if (**line)
		*(*line)++ = '\0';
	mountinfo_unescape(w);
	return w;
}

/* mountinfo_parse - parse a line of mountinfo. Spec: proc(5): id parent major:minor root mountpoint
 * options [tags] - type source super-options. Returns true for one of our mounts; *ret_dir is set
 * for any mount. Strings are borrowed from the line. */
static bool mountinfo_parse(char *line, struct mounted *m, char **ret_dir)
{
	char *tail = strstr(line, " - "), *id, *type, *source, *options, *user;
	uint64_t v;

	*ret_dir = NULL;
	if (!tail)
		return false;
	*tail = '\0';
	tail += 3;
	id = mountinfo_word(&line);
	for (int i = 0; i < 3; i++)
		(void)mountinfo_word(&line);
	*ret_dir = mountinfo_word(&line);
	options = mountinfo_word(&line);
	type = mountinfo_word(&tail);
	source = mountinfo_word(&tail);
	if (!id || !*ret_dir || !options || !type || !source ||
	    strcmp(type, "fuse.nczarrfs") != 0 ||
	    str_u64(id, strlen(id), UINT64_MAX, &m->id) < 0)
		return false;
	user = tail ? strstr(tail, "user_id=") : NULL;
	m->user = user && str_u64(user + 8, strspn(user + 8, "0123456789"), UINT32_MAX, &v) == 0
			  ? (uint32_t)v
			  : 0;
	m->writable = strncmp(options, "rw", 2) == 0;
	m->dir = *ret_dir;
	m->source = source;
	return true;
}

/* cover - mark mounts as hidden that a later mount on dir covers. */
static void cover(struct mounted *list, size_t n, const char *dir)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].dir && fs_below(list[i].dir, dir))
			list[i].hidden = true;
}

static int mountinfo_add(struct mounted **list, size_t *n, const struct mounted *m,
			 struct err *e)
{
	struct mounted *grown = realloc(*list, (*n + 1) * sizeof(*grown));

	if (!grown)
		return err_nomem(e);
	*list = grown;
	grown += (*n)++;
	*grown = *m;
	grown->dir = strdup(m->dir);
	grown->source = strdup(m->source);
	return grown->dir && grown->source ? 0 : err_nomem(e);
}

int mounted_list(struct mounted **ret, size_t *ret_n, struct err *e)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	struct mounted *list = NULL;
	auto_free char *line = NULL;
	size_t n = 0, cap = 0;
	int rc = 0;

	if (!f)
		return err_sys(e, errno, "/proc/self/mountinfo");
	while (rc == 0 && getline(&line, &cap, f) >= 0) {
		struct mounted m = {0};
		char *dir;
		bool ours = mountinfo_parse(line, &m, &dir);

		if (dir)
			cover(list, n, dir);
		if (ours)
			rc = mountinfo_add(&list, &n, &m, e);
	}
	(void)fclose(f); /* only read: no error to report */
	if (rc < 0) {
		mounted_free(list, n);
		return rc;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

uint64_t fs_mount_id(const char *dir)
{
	struct mounted *list = NULL;
	uint64_t found = 0;
	size_t n = 0;

	if (mounted_list(&list, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (!list[i].hidden && strcmp(list[i].dir, dir) == 0)
			found = list[i].id;
	mounted_free(list, n);
	return found;
}

void mounted_free(struct mounted *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].dir);
		free(list[i].source);
	}
	free(list);
}

bool fs_is_dead(const char *dir)
{
	struct statfs st;

	/* statfs is the only such request that the kernel never answers from its cache */
	return statfs(dir, &st) < 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

/* ask_here - runs in a process of its own. */
static void ask_here(const void *arg, struct buf *answer)
{
	const char *dir = arg;
	struct stat st;

	if (fs_is_dead(dir))
		buf_putc(answer, MOUNTED_DEAD);
	else if (stat(dir, &st) < 0)
		buf_putc(answer, errno == EACCES ? MOUNTED_FOREIGN : MOUNTED_DEAD);
	else
		buf_putc(answer, MOUNTED_LIVE);
}

/* ask_elsewhere - the byte that fn appends in another process; -1: none within a second. */
static int ask_elsewhere(void (*fn)(const void *arg, struct buf *answer), const void *arg)
{
	auto_buf out = buf_of(16);
	int said = -1;

	if (child_query(fn, arg, ASK_MS, &out, NULL) == 0 && buf_ok(&out) && out.len)
		said = out.data[0];
	return said;
}

enum mounted_state mounted_ask(const char *dir)
{
	int said = ask_elsewhere(ask_here, dir);

	return said < 0 ? MOUNTED_SILENT : (enum mounted_state)said;
}

/* ---- mounts of a source ---- */

#define SEVERAL ",*?[{" /* a source of -o concat that names several files contains one of these */

static bool mountinfo_is_address(const char *source)
{
	return strstr(source, "://") != NULL;
}

/* mountinfo_same_text - compare without slashes at the ends. */
static bool mountinfo_same_text(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	while (n > 1 && a[n - 1] == '/')
		n--;
	while (m > 1 && b[m - 1] == '/')
		m--;
	return n == m && memcmp(a, b, n) == 0;
}

/* two_files - runs in a process of its own: 1 if the two paths are different files that both
 * exist. */
static void two_files(const void *arg, struct buf *answer)
{
	const char *const *paths = arg;
	struct stat a, b;

	buf_putc(answer, stat(paths[0], &a) == 0 && stat(paths[1], &b) == 0 &&
				 (a.st_dev != b.st_dev || a.st_ino != b.st_ino));
}

bool mounted_differs(const struct mounted *m, const char *source)
{
	const char *const paths[] = {m->source, source};

	if (mountinfo_same_text(m->source, source))
		return false;
	/* different patterns may name the same files; a pattern is no path */
	if (mountinfo_is_address(m->source) || mountinfo_is_address(source))
		return !strpbrk(m->source, SEVERAL) && !strpbrk(source, SEVERAL);
	return ask_elsewhere(two_files, paths) == 1;
}

char *mounted_resolve(const char *dir)
{
	auto_free char *copy = strdup(dir), *parent = NULL, *full = NULL;
	size_t n = copy ? strlen(copy) : 0;
	char *name, *real;

	while (n > 1 && copy[n - 1] == '/')
		copy[--n] = '\0';
	if (copy && fs_mount_id(copy))
		return steal(&copy);
	name = copy ? strrchr(copy, '/') : NULL;
	if (!name || !name[1] || strcmp(name, "/.") == 0 || strcmp(name, "/..") == 0)
		return realpath(dir, NULL);
	*name++ = '\0';
	parent = realpath(*copy ? copy : "/", NULL);
	if (!parent)
		return NULL;
	full = str_printf("%s/%s", strcmp(parent, "/") == 0 ? "" : parent, name);
	/* it may be a symbolic link to a mountpoint */
	real = full && fs_mount_id(full) == 0 ? realpath(full, NULL) : NULL;
	return real ? real : steal(&full);
}
