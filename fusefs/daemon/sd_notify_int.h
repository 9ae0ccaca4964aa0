/* SPDX-License-Identifier: BSD-3-Clause */
/* sd_notify_int.h - tells a service manager how a mount in the foreground is: systemd's protocol of
 * sd_notify(3), which is a datagram to the socket that $NOTIFY_SOCKET names. */
#ifndef FUSEFS_DAEMON_SD_NOTIFY_INT_H
#define FUSEFS_DAEMON_SD_NOTIFY_INT_H

/* sd_notify_begin - keep where to, and take it out of the environment: it is for this process only.
 * Before the environment is wiped. */
void sd_notify_begin(void);
/* sd_notify_send - "READY=1"; nothing when nobody wants to know. */
void sd_notify_send(const char *state);

#endif
