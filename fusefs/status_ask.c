/* status_ask.c - `nczarrfs status` and `nczarrfs log`: ask a mount, from outside.
 *
 * Whether there is a mount of ours is read from /proc, so that a server that hangs, or is dead, is
 * not touched before that is known. The question is asked in a child with a time limit: a request
 * to a server that hangs cannot be given up, but by being killed. */
#include "fusefs/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "fusefs/fusefs.h"
#include "fusefs/status_int.h"

enum {
	ANSWER_SECONDS = 5,
	TRIES = 5,
	TOTAL_MAX = 1 << 20,
};

/* find_mount - the mountpoint as the kernel names it: path, or what it leads to without a look at
 * what is mounted there. *ret new. */
static int find_mount(const char *path, char **ret, struct err *e)
{
	auto_free char *dir = strdup(path), *up = NULL;
	char *base;
	size_t n;

	if (!dir)
		return err_nomem(e);
	for (n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
		dir[n - 1] = '\0';
	if (fs_mount_id(dir)) {
		*ret = steal(&dir);
		return 0;
	}
	base = strrchr(dir, '/');
	if (base && base[1] && strcmp(base, "/.") != 0 && strcmp(base, "/..") != 0) {
		*base = '\0';
		up = realpath(*dir ? dir : "/", NULL);
		*base = '/';
		if (up && asprintf(ret, "%s%s", strcmp(up, "/") == 0 ? "" : up, base) >= 0) {
			if (fs_mount_id(*ret))
				return 0;
			free(*ret);
		}
	}
	*ret = realpath(dir, NULL);
	if (*ret && fs_mount_id(*ret))
		return 0;
	free(*ret);
	*ret = NULL;
	return err_set(e, -EINVAL,
		       "'%s': nothing is mounted there by nczarrfs: name the mountpoint itself "
		       "(findmnt -t fuse.nczarrfs lists them)",
		       path);
}

static int explain_open(const char *dir, int errnum, struct err *e)
{
	if (errnum == ENOTCONN || errnum == ECONNABORTED)
		return err_set(
			e, -errnum,
			"'%s': its server has died: remove the mount with fusermount3 -u "
			"'%s'",
			dir, dir);
	if (errnum == EACCES)
		return err_set(e, -errnum,
			       "'%s': only who mounted it may ask (-o allow_other is for all)",
			       dir);
	return err_sys(e, errnum, "'%s'", dir);
}

static int explain_ioctl(const char *dir, int errnum, struct err *e)
{
	if (errnum == ENOTTY || errnum == ENOSYS || errnum == EINVAL)
		return err_set(e, -errnum,
			       "'%s': an nczarrfs of another version serves it, which cannot "
			       "be asked so",
			       dir);
	return explain_open(dir, errnum, e);
}

/* ask_all - all pages of one answer. -EAGAIN: it was forgotten meanwhile. */
static int ask_all(int fd, const char *dir, struct status_page *p, struct buf *out,
		   struct err *e)
{
	do {
		if (ioctl(fd, STATUS_IOCTL, p) < 0)
			return explain_ioctl(dir, errno, e);
		if (p->len > STATUS_DATA || p->total > TOTAL_MAX)
			return err_set(e, -EBADMSG, "'%s': no answer that makes sense", dir);
		if (p->code == -ESTALE && p->id)
			return err_set(e, -EAGAIN, "'%s': too many ask at once", dir);
		if (p->code < 0)
			return err_set(e, -EINVAL, "'%s': %.*s", dir, (int)p->len, p->data);
		buf_put(out, p->data, p->len);
		p->off += p->len;
	} while (p->off < p->total && p->len > 0);
	return buf_ok(out) ? 0 : err_nomem(e);
}

static int ask(const char *dir, enum status_what what, const char *text, struct buf *out,
	       struct err *e)
{
	auto_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct status_page p;
	size_t n = strlen(text);
	int rc = -EAGAIN;

	if (fd < 0)
		return explain_open(dir, errno, e);
	if (n > STATUS_DATA)
		return err_set(e, -EINVAL, "'%.40s...': too long", text);
	for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
		buf_clear(out);
		p = (struct status_page){.version = STATUS_VERSION, .what = (uint32_t)what};
		p.len = (uint32_t)n;
		memcpy(p.data, text, n);
		rc = ask_all(fd, dir, &p, out, e);
	}
	return rc;
}

/* ask_and_print - the child. */
static int ask_and_print(const char *dir, enum status_what what, const char *text)
{
	struct err e = ERR_INIT;
	struct buf out;
	bool ok;

	buf_init(&out, TOTAL_MAX + 2);
	ok = ask(dir, what, text, &out, &e) == 0;
	if (!ok)
		log_error("%s", e.msg);
	if (ok && (out.len == 0 || out.data[out.len - 1] != '\n'))
		buf_putc(&out, '\n');
	if (ok && (fwrite(out.data, 1, out.len, stdout) != out.len || fflush(stdout) != 0)) {
		log_error("standard output: could not be written");
		ok = false;
	}
	buf_release(&out);
	return ok ? 0 : 1;
}

static int run(const char *path, enum status_what what, const char *text)
{
	auto_free char *dir = NULL;
	struct err e = ERR_INIT;
	int status = 0;
	pid_t pid;

	if (find_mount(path, &dir, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	pid = fork();
	if (pid < 0) {
		(void)err_sys(&e, errno, "start a process");
		log_error("%s", e.msg);
		return 1;
	}
	if (pid == 0) {
		(void)signal(SIGALRM, SIG_DFL); /* a valid signal: cannot fail */
		(void)alarm(ANSWER_SECONDS);
		exit(ask_and_print(dir, what, text));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		log_error("'%s': no answer in %d seconds: all its threads wait for something, "
			  "or it is stopped (-o metrics= is answered all the same)",
			  dir, ANSWER_SECONDS);
	return 1;
}

int status_command(const struct cfg *cfg)
{
	return run(cfg->source, cfg->json ? STATUS_JSON : STATUS_TEXT, "");
}

int status_log_command(const struct cfg *cfg)
{
	return run(cfg->source, STATUS_LEVELS, cfg->out ? cfg->out : "");
}
