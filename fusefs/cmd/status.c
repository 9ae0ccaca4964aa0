/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c - `nczarrfs status` and `nczarrfs log`: send requests to a mount.
 *
 * Whether a mount of ours exists is read from /proc first, so that no server that hangs or has died
 * is accessed. The request is made in a child with a time limit, because a request to a server that
 * hangs cannot be cancelled without killing its process. */
#include "fusefs/daemon/status.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/core/clock.h"
#include "base/observe/log.h"
#include "base/os/cancel.h"
#include "fusefs/app/fusefs.h"
#include "fusefs/daemon/control_socket.h"
#include "fusefs/cmd/commands.h"

enum {
	ANSWER_SECONDS = 5,
	TRIES = 5,
	TOTAL_MAX = 1 << 20,
};

/* find_mount - the mountpoint as the kernel names it: path, or the target of its links, without
 * access to the mount. *ret new. */
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
		       "'%s': not an nczarrfs mountpoint (see nczarrfs list)",
		       path);
}

static int explain_open(const char *dir, int errnum, struct err *e)
{
	if (errnum == ENOTCONN || errnum == ECONNABORTED)
		return err_set(
			e, -errnum,
			"'%s': its server has died: run nczarrfs umount '%s'",
			dir, dir);
	if (errnum == EACCES)
		return err_set(e, -errnum,
			       "'%s': only the user who mounted it may query it (-o allow_other "
			       "allows all users)",
			       dir);
	return err_sys(e, errnum, "'%s'", dir);
}

static int explain_ioctl(const char *dir, int errnum, struct err *e)
{
	if (errnum == ENOTTY || errnum == ENOSYS || errnum == EINVAL)
		return err_set(e, -errnum,
			       "'%s': it is served by another version of nczarrfs, which does "
			       "not answer this query",
			       dir);
	return explain_open(dir, errnum, e);
}

/* ask_all - read all pages of one answer. -EAGAIN: the server dropped it meanwhile. */
static int ask_all(int fd, const char *dir, struct status_page *p, struct buf *out,
		   struct err *e)
{
	do {
		if (ioctl(fd, STATUS_IOCTL, p) < 0)
			return explain_ioctl(dir, errno, e);
		if (p->len > STATUS_DATA || p->total > TOTAL_MAX)
			return err_set(e, -EBADMSG, "'%s': the answer is not valid", dir);
		if (p->code == -ESTALE && p->id)
			return err_set(e, -EAGAIN, "'%s': too many queries at the same time: "
						   "try again", dir);
		if (p->code < 0)
			return err_set(e, -EINVAL, "'%s': %.*s", dir, (int)p->len, p->data);
		buf_put(out, p->data, p->len);
		p->off += p->len;
	} while (p->off < p->total && p->len > 0);
	return buf_ok(out) ? 0 : err_nomem(e);
}

static int cmd_status_ask(const char *dir, enum status_what what, const char *text,
			  struct buf *out, struct err *e)
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

static bool cmd_status_say(int fd, const uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t now = write(fd, p, n);

		if (now < 0 && errno != EINTR)
			return false;
		p += now > 0 ? now : 0;
		n -= now > 0 ? (size_t)now : 0;
	}
	return true;
}

/* cmd_status_tell - in the child: send the result, and the answer or the error. */
static int cmd_status_tell(int fd, const char *dir, enum status_what what, const char *text)
{
	struct err e = ERR_INIT;
	struct buf out;
	bool ok;

	buf_init(&out, TOTAL_MAX + 1);
	ok = cmd_status_ask(dir, what, text, &out, &e) == 0;
	if (!ok) {
		buf_clear(&out);
		buf_puts(&out, e.msg);
	}
	return cmd_status_say(fd, (const uint8_t *)(ok ? "+" : "-"), 1) &&
			       cmd_status_say(fd, out.data, out.len)
		       ? 0
		       : 1;
}

static int64_t cmd_status_now_ms(void)
{
	return clock_ns() / 1000000;
}

/* cmd_status_read_reply - read the child's reply to its end. -ETIMEDOUT: no reply in time. */
static int cmd_status_read_reply(int fd, struct buf *out)
{
	int64_t end = cmd_status_now_ms() + ANSWER_SECONDS * 1000, left;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char data[4096];
	ssize_t n;

	while ((left = end - cmd_status_now_ms()) > 0) {
		if (poll(&p, 1, (int)left) <= 0)
			continue;
		n = read(fd, data, sizeof(data));
		if (n == 0)
			return 0;
		if (n > 0)
			buf_put(out, data, (size_t)n);
	}
	return -ETIMEDOUT;
}

/* cmd_status_judge - parse a child's reply into out. */
static int cmd_status_judge(const char *dir, const struct buf *told, struct buf *out,
			    struct err *e)
{
	if (!buf_ok(told) || told->len == 0)
		return err_set(e, -EIO, "'%s': could not be queried: not enough memory", dir);
	if (told->data[0] != '+')
		return err_set(e, -EIO, "%.*s", (int)told->len - 1,
			       (const char *)told->data + 1);
	buf_put(out, told->data + 1, told->len - 1);
	return buf_ok(out) ? 0 : err_nomem(e);
}

int status_fetch(const char *dir, enum status_what what, const char *text, struct buf *out,
		 struct err *e)
{
	struct buf told;
	int fds[2], rc;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	pid = fork();
	if (pid < 0) {
		rc = err_sys(e, errno, "start a process");
		(void)close(fds[0]);
		(void)close(fds[1]);
		return rc;
	}
	if (pid == 0)
		_exit(cmd_status_tell(fds[1], dir, what, text));
	(void)close(fds[1]);
	buf_init(&told, TOTAL_MAX + 2);
	rc = cmd_status_read_reply(fds[0], &told);
	(void)close(fds[0]);
	(void)kill(pid, SIGKILL); /* it has replied, or never will */
	(void)waitpid(pid, NULL, rc < 0 ? WNOHANG : 0);
	if (rc < 0)
		rc = err_set(
			e, rc,
			"'%s': no answer within %d seconds: all threads of its server are "
			"waiting, or the server is stopped (-o metrics= still answers)",
			dir, ANSWER_SECONDS);
	else
		rc = cmd_status_judge(dir, &told, out, e);
	buf_release(&told);
	return rc;
}

static int cmd_status_run(const char *path, enum status_what what, const char *text)
{
	auto_free char *dir = NULL;
	struct err e = ERR_INIT;
	struct buf out;

	buf_init(&out, TOTAL_MAX + 2);
	if (find_mount(path, &dir, &e) < 0 || status_fetch(dir, what, text, &out, &e) < 0) {
		log_error("%s", e.msg);
		buf_release(&out);
		return 1;
	}
	if (out.len == 0 || out.data[out.len - 1] != '\n')
		buf_putc(&out, '\n');
	return print_text(&out);
}

int status_command(const struct cfg *cfg)
{
	return cmd_status_run(cfg->source, cfg->json ? STATUS_JSON : STATUS_TEXT, "");
}

int status_log_command(const struct cfg *cfg)
{
	return cmd_status_run(cfg->source, STATUS_LEVELS, cfg->out ? cfg->out : "");
}
