/* SPDX-License-Identifier: BSD-3-Clause */
/* supervisor.c - the processes around the server.
 *
 * The server may die, as a library may crash on a damaged file. The supervisor detects that: before
 * the mount it reports it in one line, afterwards it makes sure that the mount is removed, so that
 * no program is left with "Transport endpoint is not connected". It does nothing that could crash.
 * The server ends with its supervisor. */
#include "base/core/str.h"
#include "fusefs/app/fusefs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/observe/log.h"
#include "base/process/sandbox.h"
#include "fusefs/daemon/mounter.h"
#include "fusefs/daemon/mountinfo.h"
#include "fusefs/daemon/sd_notify_int.h"
#include "fusefs/app/remote.h"

enum {
	KILL_MS = 10000, /* from the request to end until the server is killed */
	NEVER = -1,
};

/* child - a supervised process. */
struct child {
	pid_t pid;
	int signal_fd;   /* SIGCHLD and the signals that end this process */
	sigset_t before; /* signals that were blocked before */
	int report_fd;   /* pipe with its report; -1: at its end */
	/* pipe to the process that waits for this one; it closes it when it stops waiting. -1:
	 * none */
	int up_fd;
	char report[ERR_TEXT_MAX + 1];
	size_t n_report;
	bool ended;
	int status;     /* of waitpid */
	int signal;     /* that this process received */
	bool abandoned; /* the process that waited for this one has ended */
};

static void take_signal(struct child *c)
{
	struct signalfd_siginfo info;

	if (read(c->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo != SIGCHLD)
		c->signal = (int)info.ssi_signo;
	else if (waitpid(c->pid, &c->status, WNOHANG) == c->pid)
		c->ended = true;
}

static void take_report(struct child *c)
{
	ssize_t n = read(c->report_fd, c->report + c->n_report,
			 sizeof(c->report) - 1 - c->n_report);

	if (n > 0) {
		c->n_report += (size_t)n;
		return;
	}
	close_fd(&c->report_fd);
}

/* wait_child - wait until the child has ended and closed its report, a signal comes, or the time is
 * over. Returns false only for the last. ms: NEVER or milliseconds. */
static bool wait_child(struct child *c, int64_t ms)
{
	int64_t end = clock_ms() + ms, left;
	bool reporting = c->report_fd >= 0;

	while (!c->ended && !c->signal && !c->abandoned && (!reporting || c->report_fd >= 0)) {
		struct pollfd p[] = {{.fd = c->signal_fd, .events = POLLIN},
				     {.fd = c->report_fd, .events = POLLIN},
				     {.fd = reporting ? c->up_fd : -1}};

		left = ms == NEVER ? INT32_MAX : end - clock_ms();
		if (left <= 0)
			return false;
		if (poll(p, 3, (int)(left < INT32_MAX ? left : NEVER)) < 0 && errno != EINTR)
			return false;
		if (p[1].revents)
			take_report(c);
		if (p[0].revents)
			take_signal(c);
		if (p[2].revents) {
			c->abandoned = true;
			close_fd(&c->up_fd);
		}
	}
	while (c->ended && c->report_fd >= 0)
		take_report(c);
	return true;
}

static void kill_child(struct child *c)
{
	(void)kill(c->pid, SIGKILL);
	if (waitpid(c->pid, &c->status, 0) == c->pid)
		c->ended = true;
}

/* end_child - send SIGTERM, then SIGKILL after ms milliseconds or NEVER. */
static void end_child(struct child *c, int64_t ms)
{
	if (c->ended)
		return;
	(void)kill(c->pid, SIGTERM); /* fails only if it has ended */
	c->signal = 0;
	c->abandoned = false;
	while (!c->ended && wait_child(c, ms))
		c->signal = 0; /* a second signal, or the end of its report: it is ending */
	if (!c->ended)
		kill_child(c);
}

/* start_child - fork; fn runs in the child with the original signal mask, and gets SIGTERM when
 * this process ends. write_fd: the child's end of its report, or -1. */
static int start_child(struct child *c, int (*fn)(void *arg, int write_fd), void *arg,
		       int write_fd, struct err *e)
{
	pid_t self = getpid();
	sigset_t set;

	fs_end_signals(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, &c->before) < 0)
		return err_sys(e, errno, "block signals");
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signal_fd < 0)
		return err_sys(e, errno, "signalfd");
	c->pid = fork();
	if (c->pid < 0)
		return err_sys(e, errno, "start a process");
	if (c->pid == 0) {
		(void)close(c->signal_fd);
		close_fd(&c->report_fd);
		close_fd(&c->up_fd);
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* a valid signal: cannot fail */
		(void)sigprocmask(SIG_SETMASK, &c->before, NULL);
		exit(getppid() == self ? fn(arg, write_fd) : 1);
	}
	return 0;
}

static void explain_end(const struct child *c, const char *source, struct err *e)
{
	int sig = WIFSIGNALED(c->status) ? WTERMSIG(c->status) : 0;

	if (sig == SIGKILL)
		err_set(e, -EIO,
			"'%s': the process that reads it was killed (signal 9): if memory is "
			"short, lower -o memory",
			source);
	else if (sig == SIGTERM || sig == SIGINT || sig == SIGHUP)
		err_set(e, -EINTR, "'%s': interrupted (signal %d) before it was open", source,
			sig);
	else if (sig)
		err_set(e, -EIO,
			"'%s': reading it crashed (signal %d): it is damaged, or nczarrfs or one "
			"of its libraries has a bug",
			source, sig);
	else
		err_set(e, -EIO,
			"'%s': the process that reads it exited unexpectedly (status %d)",
			source, WEXITSTATUS(c->status));
}

static void explain_timeout(const char *source, uint32_t timeout, struct err *e)
{
	err_set(e, -ETIMEDOUT,
		"'%s': not open after %u seconds: it is damaged, or -o open_timeout is too "
		"short",
		source, timeout);
}

/* Unmounting for a dead server. */

/* supervisor_place - the mountpoint in a form that can be examined without a server. */
struct supervisor_place {
	char *dir;   /* resolved; NULL: it could not be resolved */
	uint64_t id; /* of the mount; 0: not known yet */
	struct mounter mounter;
};

/* clean_up - remove the mount of a server that died. A server that ended normally has unmounted, or
 * was unmounted, and a mount that is there now may be another one, even with the same id. The
 * mounter has done it before it ended, unless it was killed. */
static void clean_up(const struct child *c, struct supervisor_place *place)
{
	bool ended_well = WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0;
	uint64_t id;

	mounter_wait(&place->mounter);
	id = place->dir && !ended_well ? fs_mount_id(place->dir) : 0;
	if (!id || (place->id && id != place->id))
		return;
	if (!mounter_remove(place->dir, id))
		log_error("'%s': could not be unmounted: run nczarrfs umount '%s'",
			  place->dir, place->dir);
}

/* The supervisor. */

struct serve_args {
	const struct app *setup;
	int mounter;
};

static int supervisor_serve(void *arg, int write_fd)
{
	const struct serve_args *a = arg;

	return fs_serve(a->setup, write_fd, a->mounter);
}

void fs_report(int fd, char status, const char *text)
{
	char line[ERR_TEXT_MAX + 1];
	int n = snprintf(line, sizeof(line), "%c%s", status, text);

	if (n > 0 &&
	    write(fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1) < 0)
		log_debug("no process waits for the mount");
	(void)close(fd);
}

/* pass_on - report to the waiting process, or to the user if there is none. */
static void pass_on(struct child *c, char status, const char *text)
{
	if (c->up_fd >= 0)
		fs_report(c->up_fd, status, text);
	else if (status == 'f')
		log_error("%s", text);
	c->up_fd = -1;
}

/* until_mounted - returns true if the server reported that the mount is there. */
static bool until_mounted(struct child *c, const struct cfg *cfg,
			  struct supervisor_place *place)
{
	int64_t ms = cfg->limits.open_timeout ? (int64_t)cfg->limits.open_timeout * 1000 : NEVER;
	struct err e = ERR_INIT;

	if (!wait_child(c, ms)) {
		kill_child(c);
		explain_timeout(cfg->shown, cfg->limits.open_timeout, &e);
	} else if (c->report[0] == 's') {
		return true;
	} else if (c->report[0] == 'f') {
		err_set(&e, -EIO, "%s", c->report + 1);
	} else if (c->signal || c->abandoned) {
		err_set(&e, -EINTR, "'%s': interrupted before it was open", cfg->shown);
	} else {
		(void)wait_child(c, KILL_MS); /* the report ended, so the server ends too */
		if (!c->ended)
			kill_child(c);
		explain_end(c, cfg->shown, &e);
	}
	end_child(c, KILL_MS);
	clean_up(c, place);
	pass_on(c, 'f', e.msg);
	return false;
}

/* while_mounted - wait for the end. Returns the exit status. */
static int while_mounted(struct child *c, const struct cfg *cfg, struct supervisor_place *place)
{
	int sig;

	(void)wait_child(c, NEVER);
	if (!c->ended) {
		sd_notify_send("STOPPING=1");
		/* SIGKILL after KILL_MS, except for a writable mount, whose commit may take any
		 * time */
		end_child(c, cfg->write.rw ? NEVER : KILL_MS);
		clean_up(c, place);
		return WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 1;
	}
	sig = WIFSIGNALED(c->status) ? WTERMSIG(c->status) : 0;
	if (sig)
		log_error("'%s': the server of '%s' died (signal %d): unmounted",
			  cfg->mountpoint, cfg->shown, sig);
	clean_up(c, place);
	return sig ? 1 : WEXITSTATUS(c->status);
}

/* from_here - a path relative to the working directory if it is below it. */
static const char *from_here(const char *path)
{
	auto_free char *cwd = getcwd(NULL, 0);
	const size_t n = cwd ? strlen(cwd) : 0;

	return n > 1 && strncmp(path, cwd, n) == 0 && path[n] == '/' && path[n + 1]
		       ? path + n + 1
		       : path;
}

/* say_mounted - printed with -v. what: "(netCDF-4) as Zarr v2". */
static void say_mounted(const struct cfg *cfg, const char *what)
{
	const char *dir = from_here(cfg->mountpoint);
	const char *quote = strpbrk(dir, " \t'\"\\$&;()*?[]<>|`~#!") ? "'" : "";

	log_info("mounted '%s' %s on %s%s%s; unmount with: nczarrfs umount %s%s%s",
		 cfg->is_remote ? cfg->shown : from_here(cfg->shown), what, quote, dir, quote,
		 quote, dir, quote);
}

/* go_silent - a daemon's supervisor closes its output before the mount is reported. */
static void go_silent(struct child *c, const struct cfg *cfg)
{
	log_init(cfg->debug ? LOG_DEBUG : LOG_WARN, true);
	fs_null_stdio();
	fs_inherited_close(cfg);
	if (chdir("/") < 0)
		log_warn("the working directory stays in use: it could not be changed to '/'");
	pass_on(c, 's', c->report + 1);
}

/* supervise - up_fd: a pipe to the process that waits for the mount, or -1 in the foreground. made:
 * the mountpoint was created for this mount. */
static int supervise(const struct app *setup, bool made, int up_fd)
{
	const struct cfg *cfg = setup->cfg;
	struct serve_args args = {.setup = setup};
	struct child c = {.up_fd = up_fd, .report_fd = -1};
	struct supervisor_place place = {.dir = realpath(cfg->mountpoint, NULL)};
	struct err e = ERR_INIT;
	int fds[2], rc = 1;

	if (up_fd < 0)
		sd_notify_begin();
	if (mounter_start(&place.mounter, setup, place.dir, made, up_fd, &e) < 0) {
		if (made)
			(void)rmdir(cfg->mountpoint); /* no mounter removes it */
		goto out;
	}
	mounter_no_new_privs(); /* this process forks the one that reads the source */
	if (pipe2(fds, O_CLOEXEC) < 0) {
		(void)err_sys(&e, errno, "pipe");
		goto out;
	}
	c.report_fd = fds[0];
	args.mounter = place.mounter.sock;
	if (start_child(&c, supervisor_serve, &args, fds[1], &e) < 0)
		goto out;
	(void)close(fds[1]);
	mounter_close(&place.mounter);
	setup->forget(); /* the server has its own copy */
	sandbox_wipe_environment();
	if (!until_mounted(&c, cfg, &place))
		goto out;
	place.id = place.dir ? fs_mount_id(place.dir) : 0;
	if (up_fd >= 0)
		go_silent(&c, cfg);
	else
		say_mounted(cfg, c.report + 1);
	sd_notify_send("READY=1");
	rc = while_mounted(&c, cfg, &place);
out:
	if (e.code < 0)
		pass_on(&c, 'f', e.msg);
	mounter_wait(&place.mounter);
	free(place.dir);
	return rc;
}

/* The process that the user started. */

/* answers - check that the mount answers, by a name that the kernel cannot have cached. */
static int answers(const struct cfg *cfg, struct err *e)
{
	auto_free char *path = NULL;
	struct stat st;

	path = str_printf("%s/.zgroup", cfg->mountpoint);
	if (!path)
		return err_nomem(e);
	if (stat(cfg->mountpoint, &st) < 0 || (stat(path, &st) < 0 && errno != ENOENT))
		return err_sys(e, errno, "mountpoint '%s': mounted, but it does not answer",
			       cfg->mountpoint);
	return 0;
}

/* await_mount - read the supervisor's report until its end. Returns the exit status. */
static int await_mount(const struct cfg *cfg, int fd, pid_t supervisor)
{
	struct err e = ERR_INIT;
	char line[ERR_TEXT_MAX + 1];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(line) - 1 && ((got = read(fd, line + n, sizeof(line) - 1 - n)) > 0 ||
					(got < 0 && errno == EINTR)))
		n += got > 0 ? (size_t)got : 0;
	line[n] = '\0';
	if (line[0] == 's' && answers(cfg, &e) == 0) {
		say_mounted(cfg, line + 1);
		return 0;
	}
	if (line[0] == 'f')
		err_set(&e, -EIO, "%s", line + 1);
	else if (line[0] != 's')
		err_set(&e, -EIO, "'%s': the supervisor process exited unexpectedly", cfg->shown);
	else
		(void)kill(supervisor, SIGTERM); /* it may have ended already */
	/* the supervisor has removed the mount before it ends */
	(void)waitpid(supervisor, NULL, 0);
	log_error("%s", e.msg);
	return 1;
}

/* no_mount - report an error before any process was started. Returns the exit status. */
static int no_mount(const struct cfg *cfg, bool made, const char *what, int errnum)
{
	struct err e = ERR_INIT;

	(void)err_sys(&e, errnum, "%s", what);
	log_error("%s", e.msg);
	if (made)
		(void)rmdir(cfg->mountpoint); /* fails if another program uses it */
	return 1;
}

int fs_mount(const struct app *setup)
{
	const struct cfg *cfg = setup->cfg;
	struct err e = ERR_INIT;
	bool made;
	pid_t pid;
	int fds[2];

	(void)signal(SIGPIPE, SIG_IGN); /* a valid signal: cannot fail */
	if (fs_check_mountpoint(cfg, &made, &e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	if (cfg->foreground)
		return supervise(setup, made, -1);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return no_mount(cfg, made, "pipe", errno);
	pid = fork();
	if (pid < 0)
		return no_mount(cfg, made, "start a process", errno);
	if (pid == 0) {
		(void)close(fds[0]);
		(void)setsid(); /* a new child leads no group: cannot fail */
		exit(supervise(setup, made, fds[1]));
	}
	mounter_no_new_privs();
	setup->forget();
	(void)close(fds[1]);
	return await_mount(cfg, fds[0], pid);
}

/* Commands that only read. */

struct guarded {
	int (*fn)(void *arg);
	void *arg;
};

static int run_guarded(void *arg, int write_fd NZ_UNUSED)
{
	const struct guarded *g = arg;
	int status = g->fn(g->arg);

	fs_remote_end(); /* its thread must not run during the process's exit */
	return status;
}

/* guard - wait for the child. Returns its exit status, or an error with the cause of its death. */
static int guard(struct child *c, const char *source, uint32_t timeout, struct err *e)
{
	if (!wait_child(c, timeout ? (int64_t)timeout * 1000 : NEVER)) {
		kill_child(c);
		explain_timeout(source, timeout, e);
	} else if (c->signal) {
		end_child(c, KILL_MS);
		(void)err_set(e, -EINTR, "'%s': interrupted", source);
	} else if (WIFEXITED(c->status)) {
		return WEXITSTATUS(c->status);
	} else if (WTERMSIG(c->status) == SIGPIPE) {
		return 1; /* the reader of its output closed the pipe */
	} else {
		explain_end(c, source, e);
	}
	return e->code;
}

int run_in_child_until(const char *source, uint32_t timeout, int (*fn)(void *arg), void *arg,
		       bool *ret_interrupted)
{
	struct guarded g = {.fn = fn, .arg = arg};
	struct child c = {.up_fd = -1, .report_fd = -1, .signal_fd = -1};
	struct err e = ERR_INIT;
	int rc = start_child(&c, run_guarded, &g, -1, &e);

	rc = rc ? rc : guard(&c, source, timeout, &e);
	*ret_interrupted = e.code == -EINTR;
	if (c.signal_fd >= 0) {
		(void)close(c.signal_fd);
		(void)sigprocmask(SIG_SETMASK, &c.before, NULL); /* cannot fail */
	}
	if (rc >= 0)
		return rc;
	log_error("%s", e.msg);
	return 1;
}

int run_in_child(const char *source, uint32_t timeout, int (*fn)(void *arg), void *arg)
{
	bool interrupted;

	return run_in_child_until(source, timeout, fn, arg, &interrupted);
}
