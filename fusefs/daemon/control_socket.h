/* SPDX-License-Identifier: BSD-3-Clause */
/* control_socket.h - the ioctl between status.c, which answers, and cmd/status.c, which sends
 * it. */
#ifndef FUSEFS_DAEMON_CONTROL_SOCKET_H
#define FUSEFS_DAEMON_CONTROL_SOCKET_H

#include <sys/ioctl.h>

#include "fusefs/daemon/status.h"

#define STATUS_VERSION 1
#define STATUS_DATA 8192 /* an ioctl encodes its size in 14 bits */

enum status_what {
	STATUS_TEXT,   /* for people */
	STATUS_JSON,   /* for programs */
	STATUS_LEVELS, /* the log's levels, after `data`, if not "", has changed them */
	STATUS_ENDING, /* the processes to wait for after an unmount: fusefs/daemon/umount_wait.h */
};

/* status_page - both request and answer. An answer longer than a page is kept for some time, and
 * its further pages are requested with id and off. */
struct status_page {
	uint32_t version, what;
	uint64_t id;     /* 0: a new answer; otherwise the id of a kept answer */
	uint64_t off;    /* offset of data in the whole answer */
	uint64_t total;  /* bytes of the whole answer */
	uint32_t len;    /* bytes of data */
	int32_t code;    /* of an answer: 0, or a negative errno with the reason in data */
	char data[STATUS_DATA];
};

#define STATUS_IOCTL _IOWR('z', 0x5a, struct status_page)

/* status_fetch - append an answer of the mount on dir (resolved) to out. The request is made in a
 * child process with a limit of a few seconds, because a server that hangs never answers. */
int status_fetch(const char *dir, enum status_what what, const char *text, struct buf *out,
		 struct err *e) NZ_MUST_USE;

_Static_assert(sizeof(struct status_page) == 40 + STATUS_DATA, "no holes");
_Static_assert(sizeof(struct status_page) < 1 << 14, "fits an ioctl");

#endif
