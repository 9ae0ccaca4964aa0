/* SPDX-License-Identifier: BSD-3-Clause */
/* each.c - commands with several sources: runs a process for each.
 *
 * Each process parses its arguments again, because a configuration file may have options for one
 * source that do not apply to the others. */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/str.h"
#include "base/observe/log.h"
#include "base/observe/print.h"
#include "fusefs/cmd/commands.h"

/* each - one process. */
struct each {
	char **argv;
	int out; /* its standard output; -1: inherited */
};

static int each_exec(void *arg)
{
	const struct each *one = arg;

	if (one->out >= 0 && dup2(one->out, STDOUT_FILENO) < 0)
		return EXIT_USAGE;
	execv("/proc/self/exe", one->argv);
	log_error("/proc is not mounted: give one source at a time");
	return EXIT_USAGE;
}

/* each_document - append what a process wrote to fd; or an error document for a failed source. */
static void each_document(int fd, const char *shown, struct buf *text)
{
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *at = size > 0 ? buf_grow(text, (size_t)size) : NULL;

	if (at && pread(fd, at, (size_t)size, 0) == (ssize_t)size) {
		while (text->len && text->data[text->len - 1] == '\n')
			text->len--;
		return;
	}
	buf_putc(text, '{');
	str_put_member(text, "source", shown);
	str_put_member(text, "error", "could not be read: the message is on standard error");
	buf_putc(text, '}');
}

/* each_run - run the command for one source. Returns its exit status. */
static int each_run(const struct cfg *cfg, const char *command, size_t i, struct buf *text,
		    bool *ret_interrupted)
{
	auto_free char **argv = alloc_array(cfg->passed.n + 5, sizeof(*argv));
	auto_free char *shown = cfg_show(cfg->more.v[i]);
	auto_fd int fd = cfg->json ? memfd_create("nczarrfs", MFD_CLOEXEC) : -1;
	struct each one = {.argv = argv, .out = fd};
	size_t n = 0;
	int status;

	if (!argv || !shown || (cfg->json && fd < 0)) {
		log_error("not enough memory");
		return EXIT_USAGE;
	}
	argv[n++] = (char *)(uintptr_t)"nczarrfs";
	for (size_t k = 0; k < cfg->passed.n; k++)
		argv[n++] = cfg->passed.v[k];
	argv[n++] = (char *)(uintptr_t)command;
	argv[n++] = (char *)(uintptr_t)"--";
	argv[n++] = cfg->more.v[i];
	argv[n] = NULL;
	status = run_in_child_until(shown, 0, each_exec, &one, ret_interrupted);
	if (cfg->json && !*ret_interrupted)
		each_document(fd, shown, text);
	return status;
}

int each_source(const struct app *setup, const char *command)
{
	const struct cfg *cfg = setup->cfg;
	bool interrupted = false;
	auto_buf text = buf_of((size_t)1 << 30);
	int worst = 0;

	for (size_t i = 0; i < cfg->more.n && !interrupted; i++) {
		int status;

		if (cfg->json)
			buf_puts(&text, i ? ",\n" : "[");
		else if (i && cfg->command == CFG_INFO)
			/* its own run reports that */
			(void)(putchar('\n') == EOF || fflush(stdout) == EOF);
		status = each_run(cfg, command, i, &text, &interrupted);
		worst = status > worst ? status : worst;
	}
	if (cfg->json && !interrupted) {
		buf_puts(&text, "]\n");
		if (print_text(&text) != 0)
			worst = worst > 1 ? worst : 1;
	}
	return worst;
}
