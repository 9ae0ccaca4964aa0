/* SPDX-License-Identifier: BSD-3-Clause */
/* server.c - the server process: open the source, mount, report, answer until unmounted.
 *
 * SIGTERM, SIGINT and SIGHUP are blocked in every thread and accepted by a dedicated thread,
 * because libfuse's handlers may run in a thread whose wait they do not interrupt. */
#include "fusefs/app/fusefs.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/core/clock.h"
#include "base/process/canary.h"
#include "base/process/child.h"
#include "base/observe/log.h"
#include "base/observe/metrics.h"
#include "base/os/cancel.h"
#include "base/os/lock.h"
#include "base/core/str.h"
#include "fusefs/app/concat.h"
#include "fusefs/mirror/view.h"
#include "fusefs/daemon/mounter.h"
#include "fusefs/app/remote.h"
#include "fusefs/daemon/status.h"

enum {
	/* The allocator's arenas. By default it makes eight for each processor; each keeps the
	 * maximum that its threads needed, so that every change of the source would increase the
	 * memory. */
	ARENAS = 4,
};

/* server - state of the server process. */
struct server {
	const struct app *setup;
	struct fs fs;
	struct fuse_loop_config *loop;
	char *mountpoint; /* resolved */
	struct status_socket *socket;
	pthread_t main_thread, signal_thread;
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	bool done;   /* lock: the loop ended */
	int mounter; /* socket of the mounter; owned by the process */
	bool parted; /* the server has given up the mount */
};

void fs_null_stdio(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < 3; i++)
		if (fd != i)
			(void)dup2(fd, i); /* keeps the old one if no descriptor is free */
	if (fd > 2)
		(void)close(fd);
}

static NZ_PRINTF(2, 0) void log_fuse(enum fuse_log_level level, const char *fmt, va_list ap)
{
	char text[512];
	size_t n;

	if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
		return;
	n = strlen(text);
	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	if (level <= FUSE_LOG_ERR)
		metrics_count(M_FAULT_FUSE);
	log_line(level <= FUSE_LOG_ERR       ? LOG_ERROR
		 : level <= FUSE_LOG_WARNING ? LOG_WARN
					     : LOG_DEBUG,
		 "%s", text);
}

/* loop_options - apply the options that libfuse's session does not accept. */
static void loop_options(struct server *s)
{
	struct fuse_loop_config *loop = s->loop;

	for (size_t i = 0; i < s->setup->cfg->fuse_opts.n; i++) {
		const char *opt = s->setup->cfg->fuse_opts.v[i], *value = strchr(opt, '=');
		uint64_t v = 0;

		if (value && str_u64(value + 1, strlen(value + 1), INT32_MAX, &v) < 0)
			v = 0; /* cfg_parse checked the numbers */
		if (strcmp(opt, "clone_fd") == 0)
			fuse_loop_cfg_set_clone_fd(loop, 1);
		else if (strncmp(opt, "max_threads=", 12) == 0)
			fuse_loop_cfg_set_max_threads(loop, (unsigned int)v);
		else if (strncmp(opt, "max_idle_threads=", 17) == 0)
			fuse_loop_cfg_set_idle_threads(loop, (unsigned int)v);
		else if (strncmp(opt, "max_read=", 9) == 0)
			s->fs.max_read = (uint32_t)v; /* the session needs it as well */
	}
}

/* take_session - create a session on a descriptor from the mounter. */
static int take_session(struct server *s, struct fuse_args *args, int fd, struct err *e)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/dev/fd/%d", fd); /* the form that libfuse requires */
	s->fs.se = fuse_session_new(args, fs_operations(s->fs.writes),
				    sizeof(struct fuse_lowlevel_ops), &s->fs);
	if (s->fs.se && fuse_session_mount(s->fs.se, path) == 0)
		return 0;
	if (s->fs.se)
		fuse_session_destroy(s->fs.se);
	s->fs.se = NULL;
	(void)close(fd);
	mounter_unmount(s->mounter, false);
	return err_set(e, -EIO, "mountpoint '%s': libfuse does not accept the mount",
		       s->mountpoint);
}

static int mount_by_mounter(struct server *s, struct err *e)
{
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	char text[MOUNTER_TEXT_MAX];
	int fd = -1, rc = mounter_args(s->setup->cfg, s->fs.writes, &args, e);

	if (rc == 0 && s->setup->cfg->debug && fuse_opt_add_arg(&args, "-d") < 0)
		rc = err_nomem(e);
	if (rc == 0) {
		rc = mounter_mount(s->mounter, s->fs.writes, &fd, text, e);
		if (rc < 0)
			rc = fs_explain_mount(s->setup->cfg, text, e);
	}
	rc = rc ? rc : take_session(s, &args, fd, e);
	fuse_opt_free_args(&args);
	return rc;
}

/* check_place - with a mount inside a Zarr store that is polled for changes, the server would send
 * requests to itself. */
static int check_place(const struct server *s, struct err *e)
{
	const struct cfg *cfg = s->setup->cfg;
	auto_free char *source = cfg->is_remote ? NULL : realpath(cfg->source, NULL);
	int rc;

	if (cfg->concat.dim && fs_concat_takes(cfg, s->mountpoint))
		return err_set(e, -EBUSY,
			       "mountpoint '%s' is a name that '%s' matches, or a directory that "
			       "it searches: use another directory",
			       s->mountpoint, cfg->source);
	if (!source || !fs_below(s->mountpoint, source))
		return 0;
	rc = mirror_wanted(s->setup, e);
	if (rc != 0)
		return rc < 0 ? rc : 0; /* a mirror hides its own mountpoint */
	return err_set(e, -EBUSY, "mountpoint '%s' is inside '%s': use another directory",
		       s->mountpoint, cfg->source);
}

static int mount_session(struct server *s, struct err *e)
{
	int rc;

	rc = check_place(s, e);
	if (rc < 0)
		return rc;
	/* fusermount3 opens the mount's directory to test whether the server has died. */
	s->fs.ask_opendir = fs_has_option(s->setup->cfg, "auto_unmount");
	s->fs.no_xattr = s->setup->cfg->no_xattr;
	s->fs.uncached = s->setup->cfg->rules.filter == CFG_FILTER_NONE &&
			 !s->setup->cfg->page_cache;
	s->loop = fuse_loop_cfg_create();
	if (!s->loop)
		return err_nomem(e);
	loop_options(s);
	return mount_by_mounter(s, e);
}

/* daemon_server_forget_names - the source changed; called by the watcher. */
static void daemon_server_forget_names(void *arg, const struct buf *names)
{
	struct fuse_session *se = arg;

	/* -ENOENT only means that the kernel had not cached the name. */
	for (const char *name = NULL; (name = buf_next(names, name));)
		(void)fuse_lowlevel_notify_inval_entry(se, EPOCHS_ROOT, name, strlen(name));
	(void)fuse_lowlevel_notify_inval_inode(se, EPOCHS_ROOT, 0, 0);
}

/* Signals. */

/* on_wake - only interrupts a wait. */
static void on_wake(int sig NZ_UNUSED)
{
}

/* wake_until_done - the loop checks its exit flag when its wait is interrupted. A signal that comes
 * just before the wait is lost, so it is sent repeatedly. */
static void wake_until_done(struct server *s)
{
	LOCK_SCOPE(&s->lock);

	while (!s->done) {
		const struct timespec until = clock_after(50 * 1000 * 1000);

		(void)pthread_kill(s->main_thread, SIGUSR2);
		(void)pthread_cond_timedwait(&s->done_cond, &s->lock, &until);
	}
}

/* unmounted - true if the kernel has unmounted us. Only threads that read requests notice that, and
 * while a remote server hangs there may be none: all of them wait for it. */
static bool unmounted(const struct server *s)
{
	struct pollfd p = {.fd = fuse_session_fd(s->fs.se)};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP));
}

/* daemon_server_await_signal - wait for a signal of set; if requests can be cancelled, also
 * for an unmount. */
static int daemon_server_await_signal(const struct server *s, const sigset_t *set)
{
	/* confirmed writes must still be sent; a local source without -o rechunk= seldom takes all
	 * threads */
	const bool looks = s->fs.cancels && !s->fs.writes &&
			   (s->fs.remote || s->setup->cfg->rules.rechunk.n > 0);
	const struct timespec often = {.tv_nsec = 200 * 1000 * 1000}, seldom = {.tv_sec = 10};
	int sig;

	while ((sig = sigtimedwait(set, NULL, looks ? &often : &seldom)) < 0) {
		log_flush(false);
		if (looks && errno == EAGAIN && unmounted(s))
			fs_remote_stop();
	}
	return sig;
}

/* next_signal - wait for a signal that ends the mount; 0: the loop ended by itself. */
static int next_signal(struct server *s)
{
	sigset_t set;
	int sig = 0;
	bool done;

	fs_end_signals(&set);
	(void)sigaddset(&set, SIGUSR1); /* sent by stop_signals */
	do {
		sig = daemon_server_await_signal(s, &set);
		(void)pthread_mutex_lock(&s->lock);
		done = s->done;
		(void)pthread_mutex_unlock(&s->lock);
	} while (sig == SIGUSR1 && !done);
	return done ? 0 : sig;
}

static void *take_signals(void *arg)
{
	struct server *s = arg;
	int sig = next_signal(s);

	if (!sig)
		return NULL;
	log_info("signal %d: unmounting", sig);
	if (!s->fs.writes)
		fs_remote_stop(); /* confirmed writes must still be sent */
	/* The watcher may be in a notification of the kernel that waits for an answer of this
	 * server: stop it while requests are still answered. */
	epochs_stop(s->fs.live);
	fuse_session_exit(s->fs.se);
	wake_until_done(s);
	return NULL;
}

static int start_signals(struct server *s, struct err *e)
{
	struct sigaction wake = {.sa_handler = on_wake};
	int rc;

	(void)sigemptyset(&wake.sa_mask);
	if (sigaction(SIGUSR2, &wake, NULL) < 0)
		return err_sys(e, errno, "sigaction");
	s->main_thread = pthread_self();
	rc = pthread_create(&s->signal_thread, NULL, take_signals, s);
	return rc ? err_sys(e, rc, "start a thread") : 0;
}

static void stop_signals(struct server *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->done = true;
	(void)pthread_cond_signal(&s->done_cond);
	(void)pthread_mutex_unlock(&s->lock);
	(void)pthread_kill(s->signal_thread, SIGUSR1);
	(void)pthread_join(s->signal_thread, NULL);
}

/* Life cycle of the server. */

/* daemon_server_open_source - open the source before it is mounted. */
static int daemon_server_open_source(struct server *s, struct err *e)
{
	const struct cfg *cfg = s->setup->cfg;
	int rc = fs_open_served(&s->fs, s->setup, e);

	if (rc < 0)
		return rc;
	s->fs.revalidate = s->fs.remote ? cfg->remote.revalidate : 0;
	s->fs.writes = epochs_first(s->fs.live)->view->write != NULL;
	if (cfg->remote.unverified)
		log_warn("certificates are not verified: HTTP.SSL.VERIFYPEER=0 in a configuration "
			 "file of netCDF-C");
	fs_print_notes(epochs_first(s->fs.live));
	return 0;
}

/* can_be_asked - start the status ioctl and the metrics socket. */
static int can_be_asked(struct server *s, struct err *e)
{
	const struct epoch *ep = epochs_first(s->fs.live);
	const struct cfg *cfg = s->setup->cfg;
	int rc;

	s->mountpoint = realpath(cfg->mountpoint, NULL);
	if (!s->mountpoint)
		return err_sys(e, errno, "mountpoint '%s'", cfg->mountpoint);
	rc = status_new(cfg, s->mountpoint, ep->view->ops->name,
			ep->view->source ? ep->view->source->ds.format : "", &s->fs.status, e);
	if (rc == 0 && cfg->metrics)
		rc = status_socket_open(cfg->metrics, s->mountpoint, &s->socket, e);
	return rc;
}

/* daemon_server_prepare - everything up to a mount that does not answer requests yet. */
static int daemon_server_prepare(struct server *s, struct err *e)
{
	sigset_t set;
	int rc = daemon_server_open_source(s, e);

	if (rc < 0)
		return rc;
	fs_end_signals(&set);
	(void)sigaddset(&set, SIGUSR1);
	rc = pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (rc)
		return err_sys(e, rc, "block signals");
	rc = can_be_asked(s, e);
	rc = rc ? rc : mount_session(s, e);
	if (rc == 0 && !s->fs.follows)
		rc = epochs_watch(s->fs.live, daemon_server_forget_names, s->fs.se, e);
	return rc == 0 ? start_signals(s, e) : rc;
}

/* many_files - raise the limit: each dataset of a directory needs several descriptors. */
static void many_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_debug("the limit of open files could not be raised");
}

/* settle_down - release resources that a mounted server does not need. */
static void settle_down(struct server *s)
{
	const struct cfg *cfg = s->setup->cfg;
	struct err e = ERR_INIT;

	if (!cfg->foreground) {
		log_to_syslog();
		if (chdir("/") < 0)
			log_warn("the working directory stays in use: it could not be changed to "
				 "'/'");
		fs_null_stdio();
		fs_inherited_close(cfg);
	}
	if (s->fs.follows)
		many_files();
	if (s->socket && status_socket_serve(s->socket, s->fs.status, &e) < 0)
		log_warn("-o metrics: %s", e.msg);
}

/* unmount - detach the mount from its mountpoint, after the last request. The descriptor is closed
 * first, because an unmount that waits for our answers would never end; its number stays in use,
 * because libfuse has stored it. */
static void unmount(struct server *s)
{
	bool gone = unmounted(s);
	int null;

	if (s->parted)
		return;
	s->parted = true;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		(void)dup3(null, fuse_session_fd(s->fs.se), O_CLOEXEC); /* both are open */
		(void)close(null);
	}
	mounter_unmount(s->mounter, gone);
}

static void daemon_server_tear_down(struct server *s)
{
	status_socket_close(s->socket);
	log_flush(true);
	if (s->fs.live)
		epochs_stop(s->fs.live);
	if (s->fs.se) {
		unmount(s);
		fuse_session_destroy(s->fs.se);
	}
	if (s->loop)
		fuse_loop_cfg_destroy(s->loop);
	epochs_free(s->fs.live);
	fs_remote_end();
	status_free(s->fs.status);
	fs_release(&s->fs);
	free(s->mountpoint);
	(void)pthread_cond_destroy(&s->done_cond);
	(void)pthread_mutex_destroy(&s->lock);
}

/* daemon_server_finish - commit confirmed writes to the dataset; no further writes can come.
 * Returns false if some could not be committed. */
static bool daemon_server_finish(struct server *s)
{
	struct err e = ERR_INIT;
	struct view *v;

	if (!s->fs.writes) /* without a view, a source that changed is being opened again */
		return true;
	/* a writable view follows changes, and is never opened again */
	v = epochs_first(s->fs.live)->view;
	unmount(s);
	if (v->write->finish(v, true, &e) == 0)
		return true;
	log_error("'%s': not all pending writes could be committed: %s", s->fs.path, e.msg);
	return false;
}

/* describe - describe the mount for the user: "(netCDF-4) as Zarr v2". */
static void describe(const struct server *s, char *out, size_t n)
{
	const struct view *v = epochs_first(s->fs.live)->view;
	const char *view = v->ops->name, *format = v->source ? v->source->ds.format : "";
	const char *as = v->format	       ? v->format
			 : strcmp(view, "netcdf") == 0 ? "a netCDF-4 file"
			 : strcmp(view, "mirror") == 0 ? "a directory in both formats"
			 : strcmp(view, "keys") == 0   ? "a Zarr store"
			 : s->setup->cfg->zarr.zarr3        ? "Zarr v3"
						       : "Zarr v2";

	(void)snprintf(out, n, "%s%s%sas %s%s", *format ? "(" : "", format, *format ? ") " : "",
		       as, s->fs.writes ? ", read-write," : ""); /* short strings */
}

int fs_serve(const struct app *setup, int report_fd, int mounter)
{
	struct server s = {.setup = setup, .mounter = mounter};
	struct err e = ERR_INIT;
	char what[128];
	int rc;

	if (!setup->cfg->foreground)
		child_background();
	(void)mallopt(M_ARENA_MAX, ARENAS); /* on failure there are more arenas */
	rc = fs_init(&s.fs, &e);
	if (rc < 0) {
		fs_report(report_fd, 'f', e.msg);
		return 1;
	}
	(void)pthread_mutex_init(&s.lock, NULL);
	cancel_cond_init(&s.done_cond);
	fuse_set_log_func(log_fuse);
	log_limited();
	rc = daemon_server_prepare(&s, &e);
	if (rc < 0) {
		fs_report(report_fd, 'f', e.msg);
		daemon_server_tear_down(&s);
		return 1;
	}
	settle_down(&s);
	if (!setup->cfg->foreground)
		log_info("'%s' is mounted on '%s'", setup->cfg->shown, s.mountpoint);
	if (sandbox_missing())
		log_info("%s", sandbox_missing());
	describe(&s, what, sizeof(what));
	fs_report(report_fd, 's', what);
	rc = fuse_session_loop_mt(s.fs.se, s.loop);
	canary_sing("server");
	stop_signals(&s);
	/* Another program unmounted it while it was busy: a normal end. */
	if (rc == -ECONNABORTED) {
		log_info("'%s': the kernel ended the connection", s.mountpoint);
		rc = 0;
	}
	/* A positive number is the signal that ended the loop of newer libfuse. */
	if (rc < 0)
		log_error("'%s': the mount ended with error %d", s.mountpoint, -rc);
	if (!s.fs.writes)
		fs_remote_stop();
	if (!daemon_server_finish(&s))
		rc = -EIO;
	fs_remote_stop();
	daemon_server_tear_down(&s);
	return rc < 0;
}
