/* SPDX-License-Identifier: BSD-3-Clause */
/* sd_notify_int.h - reports the state of a mount in the foreground to a service manager: systemd's
 * protocol of sd_notify(3), a datagram to the socket that $NOTIFY_SOCKET names. */
#ifndef FUSEFS_DAEMON_SD_NOTIFY_INT_H
#define FUSEFS_DAEMON_SD_NOTIFY_INT_H

/* sd_notify_begin - save the socket's address and remove it from the environment, as it is for this
 * process only. Call it before the environment is wiped. */
void sd_notify_begin(void);
/* sd_notify_send - send a state such as "READY=1"; does nothing without a service manager. */
void sd_notify_send(const char *state);

#endif
