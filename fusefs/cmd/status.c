/* SPDX-License-Identifier: BSD-3-Clause */
/* status.c - `nczarrfs status` and `nczarrfs log`: send requests to a mount.
 *
 * Whether a mount of ours exists is read from /proc first, so that no server that hangs or has died
 * is accessed. The request is made in a child with a time limit, because a request to a server that
 * hangs cannot be cancelled without killing its process. */
#include "fusefs/cmd/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/observe/log.h"
#include "base/observe/print.h"
#include "base/os/cancel.h"
#include "fusefs/daemon/child_query.h"
#include "fusefs/daemon/control_socket.h"
#include "fusefs/daemon/mountinfo.h"

enum {
	ANSWER_SECONDS = 5,
	TRIES = 5,
	TOTAL_MAX = 1 << 20,
};

/* find_mount - the mountpoint as the kernel names it, without access to the mount. *ret new. */
static int find_mount(const char *path, char **ret, struct err *e)
{
	auto_free char *dir = mounted_resolve(path);

	if (!dir || !fs_mount_id(dir))
		return err_set(e, -EINVAL,
			       "'%s': not an nczarrfs mountpoint (see nczarrfs list)", path);
	*ret = steal(&dir);
	return 0;
}

static int explain_open(const char *dir, int errnum, struct err *e)
{
	if (errnum == ENOTCONN || errnum == ECONNABORTED)
		return err_set(e, -errnum,
			       "'%s': its server has died: run nczarrfs umount '%s'", dir, dir);
	if (errnum == EACCES)
		return err_set(
			e, -errnum,
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

/* status_query - a request for child_query. */
struct status_query {
	const char *dir;
	enum status_what what;
	const char *text;
};

/* cmd_status_tell - in the child: '+' and the answer, or '-' and the error. */
static void cmd_status_tell(const void *arg, struct buf *answer)
{
	const struct status_query *q = arg;
	struct err e = ERR_INIT;
	auto_buf out = buf_of(TOTAL_MAX + 1);

	if (cmd_status_ask(q->dir, q->what, q->text, &out, &e) < 0) {
		buf_printf(answer, "-%s", e.msg);
	} else {
		buf_putc(answer, '+');
		buf_put(answer, out.data, out.len);
	}
}

/* cmd_status_judge - parse a child's reply into out. */
static int cmd_status_judge(const char *dir, const struct buf *reply, struct buf *out,
			    struct err *e)
{
	if (!buf_ok(reply) || reply->len == 0)
		return err_set(e, -EIO, "'%s': could not be queried: not enough memory", dir);
	if (reply->data[0] != '+')
		return err_set(e, -EIO, "%.*s", (int)reply->len - 1,
			       (const char *)reply->data + 1);
	buf_put(out, reply->data + 1, reply->len - 1);
	return buf_ok(out) ? 0 : err_nomem(e);
}

int status_fetch(const char *dir, enum status_what what, const char *text, struct buf *out,
		 struct err *e)
{
	const struct status_query q = {dir, what, text};
	auto_buf reply = buf_of(TOTAL_MAX + 2);
	int rc;

	rc = child_query(cmd_status_tell, &q, ANSWER_SECONDS * 1000, &reply, e);
	if (rc == -ETIMEDOUT)
		rc = err_set(
			e, rc,
			"'%s': no answer within %d seconds: all threads of its server are "
			"waiting, or the server is stopped (-o metrics= still answers)",
			dir, ANSWER_SECONDS);
	else if (rc == 0)
		rc = cmd_status_judge(dir, &reply, out, e);
	return rc;
}

static int cmd_status_run(const char *path, enum status_what what, const char *text)
{
	auto_free char *dir = NULL;
	struct err e = ERR_INIT;
	auto_buf out = buf_of(TOTAL_MAX + 2);

	if (find_mount(path, &dir, &e) < 0 || status_fetch(dir, what, text, &out, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	if (out.len == 0 || out.data[out.len - 1] != '\n')
		buf_putc(&out, '\n');
	return print_text(&out);
}

int status_command(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;

	return cmd_status_run(cfg->source, cfg->json ? STATUS_JSON : STATUS_TEXT, "");
}

int status_log_command(const struct app *setup)
{
	const char *levels = setup->cfg->out;

	return cmd_status_run(setup->cfg->source, STATUS_LEVELS, levels ? levels : "");
}
