/* SPDX-License-Identifier: BSD-3-Clause */
/* loops_left.h - what a round must not leave behind. */
#ifndef FAULTS_LOOPS_LEFT_H
#define FAULTS_LOOPS_LEFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct left {
	size_t memory;
	uint32_t fds, threads, children;
};

uint32_t count_fds(void);
uint32_t count_threads(void);
uint32_t count_children(void);
struct left look(void);
bool more_left(const struct left *a, const struct left *b);
struct left look_until(const struct left *base);
void say_leaks(void);

#endif
