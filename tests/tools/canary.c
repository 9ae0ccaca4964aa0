/* SPDX-License-Identifier: BSD-3-Clause */
/* canary.c - a program with a fault: canary KIND [child]. With child it is in a process that
 * base/process/child.h began. Says so when it was not ended by it. */
#include <stdio.h>

#include "base/core/clock.h"
#include "base/process/canary.h"
#include "base/process/child.h"

static void in_child(const struct child_self *self)
{
	(void)canary_fault(self->data);
	child_say(self->sock, 0, NULL, 0);
}

static const struct child_kind kind = {.name = "canary", .who = "the canary", .run = in_child};

int main(int argc, char **argv)
{
	struct child_proc c;
	struct child_answer a;
	struct err e = ERR_INIT;

	if (argc < 2)
		return 2;
	if (argc == 2) {
		if (!canary_fault(argv[1]))
			return 2;
		return puts("no report") < 0;
	}
	if (child_prepare(NULL, &e) < 0 ||
	    child_start(&kind, NULL, argv[1], strlen(argv[1]) + 1, NULL, &c, &e) < 0) {
		(void)fprintf(stderr, "%s\n", e.msg); /* nobody else to tell */
		return 2;
	}
	if (child_take(c.sock, &a, sizeof(a), clock_ms() + 60000) != CHILD_TAKEN)
		(void)puts("the child has ended"); /* the report is what counts */
	(void)child_end(&c);
	return 0;
}
