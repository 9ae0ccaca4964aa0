/* SPDX-License-Identifier: BSD-3-Clause */
/* mounter.c - a process with one socket: 'r' or 'w' mounts, 'u' unmounts, 'g' reports an unmount by
 * another program.
 *
 * The other end may be controlled by a hostile file. It can only get the mount that the user
 * requested, once, and its unmounting. */
#include "fusefs/daemon/mounter.h"
#include "fusefs/daemon/mountinfo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/core/str.h"
#include "base/observe/log.h"
#include "base/process/sandbox.h"
#include "fusefs/daemon/stderr_capture.h"

/* mounter_answer - the answer to every request; with a descriptor after a successful mount. */
struct mounter_answer {
	int32_t rc;
	char text[MOUNTER_TEXT_MAX];
};

/* mounter_job - state of the process. */
struct mounter_job {
	const struct cfg *cfg;
	const char *dir;
	bool made; /* dir was created for this mount */
	int sock;
	struct fuse_session *se; /* holds the socket of auto_unmount */
	bool asked, mounted;
	uint64_t id; /* of the mount; 0: unknown */
};

void mounter_no_new_privs(void)
{
	/* fails on an old kernel, which is harmless */
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* ---- options ---- */

/* mounter_loop_option - true for an option of libfuse's loop, which its session does not accept. */
static bool mounter_loop_option(const char *opt)
{
	return strcmp(opt, "clone_fd") == 0 || strncmp(opt, "max_threads=", 12) == 0 ||
	       strncmp(opt, "max_idle_threads=", 17) == 0;
}

int mounter_args(const struct cfg *cfg, bool writes, struct fuse_args *args, struct err *e)
{
	auto_free char *fsname = NULL;
	char *list = NULL;
	bool ok;

	fsname = str_printf("fsname=%s", cfg->shown);
	if (!fsname)
		return err_nomem(e);
	ok = fuse_opt_add_opt_escaped(&list, fsname) == 0;
	for (size_t i = 0; ok && i < cfg->fuse_opts.n; i++)
		if (!mounter_loop_option(cfg->fuse_opts.v[i]))
			ok = fuse_opt_add_opt_escaped(&list, cfg->fuse_opts.v[i]) == 0;
	ok = ok && fuse_opt_add_opt(&list, "subtype=nczarrfs,nosuid,nodev") == 0;
	ok = ok && (writes || fuse_opt_add_opt(&list, "ro") == 0);
	ok = ok && fuse_opt_add_arg(args, "nczarrfs") == 0 &&
	     fuse_opt_add_arg(args, "-o") == 0 && fuse_opt_add_arg(args, list) == 0;
	free(list);
	return ok ? 0 : err_nomem(e);
}

/* ---- unmounting ---- */

/* run_fusermount - lazy: unmount even if it is in use. */
static void run_fusermount(const char *dir, bool lazy)
{
	pid_t pid = fork();

	if (pid == 0) {
		fs_null_stdio();
		(void)execlp("fusermount3", "fusermount3", lazy ? "-uz" : "-u", "-q", "--", dir,
			     (char *)NULL);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		; /* the mountpoint is checked afterwards */
}

bool mounter_ask_fusermount(const char *dir, uint64_t id)
{
	run_fusermount(dir, false);
	return fs_mount_id(dir) != id;
}

/* is_another - true if a mount with the id of one whose server ended is another mount: the kernel
 * uses an id again. */
static bool is_another(const char *dir)
{
	const enum mounted_state state = mounted_ask(dir);

	return state == MOUNTED_LIVE || state == MOUNTED_FOREIGN;
}

bool mounter_remove(const char *dir, uint64_t id)
{
	if (id && (fs_mount_id(dir) != id || is_another(dir)))
		return true;
	if (umount2(dir, MNT_FORCE | MNT_DETACH) < 0 && geteuid() != 0)
		run_fusermount(dir, true);
	return !id || fs_mount_id(dir) != id;
}

/* ---- the process ---- */

static NZ_PRINTF(2, 0) void put_log(enum fuse_log_level level NZ_UNUSED, const char *fmt,
				    va_list ap)
{
	(void)vfprintf(stderr, fmt, ap); /* is captured */
}

/* no_operations - fuse_session_new requires a table; this process serves no requests. */
static const struct fuse_lowlevel_ops no_operations;

/* do_mount - returns the descriptor, or -errno with the message. */
static int do_mount(struct mounter_job *j, bool writes, struct mounter_answer *a)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct stderr_capture q;
	int rc = mounter_args(j->cfg, writes, &args, NULL);

	if (rc < 0) {
		fuse_opt_free_args(&args);
		return rc;
	}
	stderr_capture_begin(&q);
	j->se = fuse_session_new(&args, &no_operations, sizeof(no_operations), NULL);
	j->mounted = j->se && fuse_session_mount(j->se, j->dir) == 0;
	(void)fflush(stderr); /* cannot fail: it has no buffer */
	stderr_capture_end(&q, a->text, sizeof(a->text));
	fuse_opt_free_args(&args);
	if (!j->mounted)
		return -EIO;
	j->id = fs_mount_id(j->dir);
	return fuse_session_fd(j->se);
}

/* mounter_give - send an answer, with a descriptor if fd is not -1. */
static bool mounter_give(int sock, const struct mounter_answer *a, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)a, sizeof(*a)}; /* sendmsg does not modify it */
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (fd >= 0) {
		msg.msg_control = control.room;
		msg.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*a);
}

static void mounter_leave(struct mounter_job *j)
{
	if (j->mounted && !mounter_remove(j->dir, j->id))
		log_error("'%s': could not be unmounted: run nczarrfs umount '%s'",
			  j->dir, j->dir);
	j->mounted = false;
}

/* mounter_handle - one request. Returns false if no further request can follow. */
static bool mounter_handle(struct mounter_job *j, char what)
{
	struct mounter_answer a = {0};
	int fd = -1;
	bool heard;

	if (what == 'g')
		j->mounted = false;
	if (what == 'u')
		mounter_leave(j);
	if ((what == 'r' || what == 'w') && !j->asked) {
		j->asked = true; /* at most once */
		fd = j->dir ? do_mount(j, what == 'w', &a) : -ENOENT;
		a.rc = fd < 0 ? fd : 0;
	}
	heard = mounter_give(j->sock, &a, fd);
	close_fd(&fd); /* a dead server's mount fails only if no program has it open */
	return heard && j->mounted;
}

/* mounter_keep_only - close the caller's descriptors, above all the pipe that the caller reads to
 * its end. */
static void mounter_keep_only(int sock)
{
	const unsigned int s = (unsigned int)sock;

	if (s > 3)
		/* fails on an old kernel: the descriptors that stay open are harmless */
		(void)close_range(3, s - 1, 0);
	(void)close_range(s + 1, UINT_MAX, 0);
}

/* open_parent - open the parent directory of a mountpoint that was created. At the end an entry of
 * this directory is removed, even if the path was changed. -1: nothing is removed. */
static int open_parent(const struct mounter_job *j)
{
	auto_free char *parent = j->made && j->dir ? strdup(j->dir) : NULL;
	char *slash = parent ? strrchr(parent, '/') : NULL;

	if (!slash)
		return -1;
	slash[slash == parent] = '\0';
	return open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static _Noreturn void mounter_run(struct mounter_job *j)
{
	int parent;
	char what;
	ssize_t n;
	sigset_t ends;

	/* a terminal signals its whole process group; the server decides when to end */
	fs_end_signals(&ends);
	(void)sigaddset(&ends, SIGQUIT);
	(void)sigprocmask(SIG_BLOCK, &ends, NULL);
	(void)prctl(PR_SET_NAME, MOUNTER_NAME); /* for ps only */
	mounter_keep_only(j->sock);
	parent = open_parent(j);
	if (chdir("/") < 0)
		log_debug("the mounter keeps the working directory in use");
	log_init(LOG_WARN, true);
	fs_null_stdio();
	fuse_set_log_func(put_log);
	if (geteuid() == 0)
		mounter_no_new_privs(); /* mounts without a set-user-id program */
	do {
		n = recv(j->sock, &what, 1, 0);
	} while ((n < 0 && errno == EINTR) || (n == 1 && mounter_handle(j, what)));
	mounter_leave(j);
	if (parent >= 0) /* fails if it is not empty or is a mountpoint */
		(void)unlinkat(parent, strrchr(j->dir, '/') + 1, AT_REMOVEDIR);
	_exit(0);
}

/* ---- start ---- */

int mounter_start(struct mounter *m, const struct app *setup, const char *dir, bool made,
		  int also_close, struct err *e)
{
	struct mounter_job j = {.cfg = setup->cfg, .dir = dir, .made = made};
	int sock[2], errnum;

	*m = (struct mounter){.sock = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		return err_sys(e, errno, "socket of the mounting process");
	m->pid = fork();
	errnum = errno;
	if (m->pid == 0) {
		(void)close(sock[0]);
		close_fd(&also_close);
		setup->forget();
		sandbox_wipe_environment();
		j.sock = sock[1];
		mounter_run(&j);
	}
	(void)close(sock[1]);
	if (m->pid < 0) {
		(void)close(sock[0]);
		m->pid = 0;
		return err_sys(e, errnum, "start the mounting process");
	}
	m->sock = sock[0];
	return 0;
}

void mounter_close(struct mounter *m)
{
	close_fd(&m->sock);
}

void mounter_wait(struct mounter *m)
{
	mounter_close(m);
	while (m->pid > 0 && waitpid(m->pid, NULL, 0) < 0 && errno == EINTR)
		;
	m->pid = 0;
}

/* ---- the server ---- */

/* mounter_ask - returns 0 with an answer, -EPIPE if the process has ended. */
static int mounter_ask(int sock, char what, struct mounter_answer *a, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {a, sizeof(*a)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.room,
			     .msg_controllen = sizeof(control.room)};
	const struct cmsghdr *c;
	ssize_t n;

	if (send(sock, &what, 1, MSG_NOSIGNAL) != 1)
		return -EPIPE;
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(*a))
		return -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(*ret_fd));
	return 0;
}

int mounter_mount(int sock, bool writes, int *ret_fd, char text[MOUNTER_TEXT_MAX],
		  struct err *e)
{
	struct mounter_answer a;
	int fd = -1, rc = mounter_ask(sock, writes ? 'w' : 'r', &a, &fd);

	text[0] = '\0';
	if (rc < 0)
		return err_sys(e, -rc, "the mounting process");
	a.text[sizeof(a.text) - 1] = '\0';
	memcpy(text, a.text, sizeof(a.text));
	if (a.rc == 0 && fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	close_fd(&fd);
	return err_set(e, a.rc < 0 ? a.rc : -EIO, "mounting failed");
}

void mounter_unmount(int sock, bool gone)
{
	struct mounter_answer a;
	int fd = -1;

	if (mounter_ask(sock, gone ? 'g' : 'u', &a, &fd) < 0)
		log_debug("the unmounting process has exited");
	close_fd(&fd);
}
