/* SPDX-License-Identifier: BSD-3-Clause */
/* umount_wait.c - waits until an unmounted mount has committed its writes and released its
 * source. */
#include "fusefs/daemon/umount_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/observe/log.h"
#include "base/core/str.h"
#include "fusefs/write/writable.h"
#include "fusefs/daemon/control_socket.h"

enum {
	SAY_MS = 500,   /* shorter waits are not reported */
	PASS_MS = 5000, /* limit for a process without pending writes */
	STATES_MAX = 1 << 20,
	/* field of /proc/PID/stat, counted after the name. Spec: proc(5), starttime */
	START_FIELD = 20,
};

/* started - start time of a process, which distinguishes it from a later process, or one of another
 * namespace, with its number. 0: unknown. */
static uint64_t started(int64_t pid)
{
	char path[40], text[1024], *word, *rest;
	uint64_t v = 0;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid); /* fits */
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	(void)close(fd);
	text[n > 0 ? n : 0] = '\0';
	rest = strrchr(text, ')');
	if (!rest)
		return 0;
	(void)strtok_r(rest, " ", &word);
	rest = NULL;
	for (int i = 0; i < START_FIELD; i++)
		rest = strtok_r(NULL, " ", &word);
	return rest && str_u64(rest, strlen(rest), UINT64_MAX, &v) == 0 ? v : 0;
}

void umount_wait_answer(struct buf *out)
{
	const pid_t pids[] = {getpid(), getppid()};

	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		buf_printf(out, "%d %" PRIu64, (int)pids[i], started(pids[i]));
		buf_putc(out, '\0');
	}
	fs_rw_states(out);
}

/* umount_wait_watch - a descriptor of the process that "PID START" names; -1: it has ended, or is
 * not visible. */
static int umount_wait_watch(const char *text)
{
	size_t n = strcspn(text, " ");
	uint64_t pid, start;
	int fd;

	if (!text[n] || str_u64(text, n, INT32_MAX, &pid) < 0 ||
	    str_u64(text + n + 1, strlen(text + n + 1), UINT64_MAX, &start) < 0 || pid == 0 ||
	    start == 0)
		return -1;
	fd = pidfd_open((pid_t)pid, 0);
	if (fd >= 0 && started((int64_t)pid) != start) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* take_answer - two processes, then state directories. */
static int take_answer(const struct buf *answer, struct umount_wait *en, struct err *e)
{
	const char *p = (const char *)answer->data;
	size_t left = answer->len, n;

	if (!left || p[left - 1] != '\0')
		return err_set(e, -EBADMSG, "'%s': the answer is not valid", en->dir);
	for (size_t i = 0; i < ARRAY_LEN(en->fds) && left; i++) {
		n = strlen(p) + 1;
		en->fds[i] = umount_wait_watch(p);
		p += n;
		left -= n;
	}
	buf_put(&en->states, p, left);
	if (!buf_ok(&en->states))
		return err_nomem(e);
	return en->fds[0] >= 0 ? 0
			       : err_set(e, -ESRCH,
					 "'%s': its process is not visible from here", en->dir);
}

int umount_wait_ask(const struct mounted *m, struct umount_wait *ret, struct err *e)
{
	struct umount_wait en = {.fds = {-1, -1}};
	auto_buf answer = buf_of(STATES_MAX);
	int rc;

	buf_init(&en.states, STATES_MAX);
	en.dir = strdup(m->dir);
	rc = en.dir ? status_fetch(m->dir, STATUS_ENDING, "", &answer, e) : err_nomem(e);
	rc = rc ? rc : take_answer(&answer, &en, e);
	if (rc < 0)
		umount_wait_free(&en);
	else
		*ret = en;
	return rc;
}

void umount_wait_free(struct umount_wait *en)
{
	for (size_t i = 0; i < ARRAY_LEN(en->fds); i++)
		close_fd(&en->fds[i]);
	buf_release(&en->states);
	free(en->dir);
}

/* umount_wait_ended - true if the process ends within ms milliseconds; -1: no limit. */
static bool umount_wait_ended(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int rc;

	do
		rc = poll(&p, 1, ms);
	while (rc < 0 && errno == EINTR);
	return rc != 0;
}

void umount_wait_pass(struct umount_wait *en)
{
	for (size_t i = 0; i < ARRAY_LEN(en->fds); i++)
		if (en->fds[i] >= 0 && !umount_wait_ended(en->fds[i], PASS_MS))
			break; /* the other one will not end either */
	umount_wait_free(en);
}

bool umount_wait_wait(struct umount_wait *en)
{
	bool said = false, all = true;

	for (size_t i = 0; i < ARRAY_LEN(en->fds); i++) {
		if (en->fds[i] < 0 || umount_wait_ended(en->fds[i], SAY_MS))
			continue;
		if (!said && isatty(STDERR_FILENO))
			log_warn("'%s': committing pending writes; Ctrl-C ends the wait, not "
				 "the commit",
				 en->dir);
		said = true;
		(void)umount_wait_ended(en->fds[i], -1);
	}
	for (size_t at = 0; at < en->states.len;
	     at += strlen((char *)en->states.data + at) + 1) {
		const char *state = (const char *)en->states.data + at;

		if (!fs_rw_left(state))
			continue;
		log_error("'%s': some writes are not in the dataset and are pending in '%s': "
			  "see the log for the reason, and run nczarrfs recover to try again",
			  en->dir, state);
		all = false;
	}
	umount_wait_free(en);
	return all;
}
