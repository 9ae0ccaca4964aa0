/* SPDX-License-Identifier: BSD-3-Clause */
/* control_socket.h - the ioctl that status.c answers and cmd/status.c asks. */
#ifndef FUSEFS_DAEMON_CONTROL_SOCKET_H
#define FUSEFS_DAEMON_CONTROL_SOCKET_H

#include <sys/ioctl.h>

#include "fusefs/daemon/status.h"

#define STATUS_VERSION 1
#define STATUS_DATA 8192 /* an ioctl has 14 bits for its size */

enum status_what {
	STATUS_TEXT,   /* for people */
	STATUS_JSON,   /* for programs */
	STATUS_LEVELS, /* those of the log, after data, when it is not "", has changed them */
	STATUS_ENDING, /* whom to wait for after an unmount: fusefs/cmd/umount_wait.h */
};

/* status_page - both the question and the answer. An answer longer than a page is kept for a while,
 * and asked for again: id and off. */
struct status_page {
	uint32_t version, what;
	uint64_t id;     /* 0: a new answer; else the one that this had */
	uint64_t off;    /* of data in the whole answer */
	uint64_t total;  /* bytes of the whole */
	uint32_t len;    /* bytes of data */
	int32_t code;    /* of an answer: 0 or a negative errno; data says why */
	char data[STATUS_DATA];
};

#define STATUS_IOCTL _IOWR('z', 0x5a, struct status_page)

/* status_fetch - append an answer of the mount on dir, which is resolved, to out; asked in another
 * process and for a few seconds only, since a server that hangs never answers. */
int status_fetch(const char *dir, enum status_what what, const char *text, struct buf *out,
		 struct err *e) NZ_MUST_USE;

_Static_assert(sizeof(struct status_page) == 40 + STATUS_DATA, "no holes");
_Static_assert(sizeof(struct status_page) < 1 << 14, "fits an ioctl");

#endif
