/* SPDX-License-Identifier: BSD-3-Clause */
/* sd_notify.c - sends to a service manager's socket. Errors are ignored: a mount does not depend on
 * its service manager. */
#include "fusefs/daemon/sd_notify_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/core/util.h"

static struct sockaddr_un place; /* set while there is one thread */
static socklen_t place_size;

void sd_notify_begin(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t n = path ? strlen(path) : 0;

	/* Spec: sd_notify(3): an absolute path, or '@' and an abstract name */
	if (n < 2 || n > sizeof(place.sun_path) || (path[0] != '/' && path[0] != '@'))
		return;
	place.sun_family = AF_UNIX;
	memcpy(place.sun_path, path, n);
	if (path[0] == '@')
		place.sun_path[0] = '\0';
	place_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	(void)unsetenv("NOTIFY_SOCKET"); /* fails only for invalid names */
}

void sd_notify_send(const char *state)
{
	auto_fd int fd = place_size ? socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

	if (fd >= 0)
		(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL,
			     (const struct sockaddr *)&place, place_size);
}
