/* SPDX-License-Identifier: BSD-3-Clause */
/* spec_tool.c - codecs/spec/spec.h for tests: commands on standard input, an answer on each line.
 *
 *   parse TEXT                 the chain with ids: "307,9|4,32,32"
 *   prepare SIZE N,N,... TEXT  the chain that is stored for chunks of N x N ... elements
 *   rule TEXT                  add a rule: "ok"
 *   for PATH                   the rule for a variable: its chain, "none", or "-"
 *   forget                     all rules: "ok"
 *
 * What is wrong is answered as "! ERRNO MESSAGE". */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/str.h"
#include "codecs/spec/spec.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define RANK_MAX 8

static struct arena arena;
static struct codec_rules rules;

static void show(const struct codec_chain *chain)
{
	struct buf b;

	buf_init(&b, LINE_MAX_BYTES);
	codec_spec_print(chain, &b);
	printf("%.*s\n", (int)b.len, (const char *)b.data);
	buf_release(&b);
}

/* show_stored - with every parameter, also those of szip that are not shown to people. */
static void show_stored(const struct codec_chain *chain)
{
	for (uint32_t i = 0; i < chain->n; i++) {
		const struct codec_spec *s = &chain->specs[i];

		printf("%s%" PRIu32, i ? "|" : "", s->h5_id);
		for (uint32_t p = 0; p < s->n_params; p++)
			printf(",%" PRIu32, s->params[p]);
	}
	putchar('\n');
}

static void answer(int rc, const struct codec_chain *chain, const struct err *e)
{
	if (rc)
		printf("! %d %s\n", -rc, e->msg);
	else
		show(chain);
}

/* number - digits up to the next `end`; *p is then behind it. */
static uint64_t number(const char **p, char end)
{
	size_t n = strcspn(*p, (char[]){end, ' ', '\0'});
	uint64_t v = 0;

	if (str_u64(*p, n, UINT32_MAX, &v))
		v = 0;
	*p += n + ((*p)[n] == end);
	return v;
}

static void prepare(const char *p)
{
	struct codec_array a = {.class = CODEC_FLOAT};
	uint64_t chunk[RANK_MAX];
	struct codec_chain c;
	struct err e = ERR_INIT;
	int rc;

	a.elem_size = (uint32_t)number(&p, ' ');
	a.chunk = chunk;
	while (*p && *p != ' ' && a.rank < RANK_MAX)
		chunk[a.rank++] = number(&p, ',');
	p += *p == ' ';
	rc = codec_spec_parse(&arena, p, strlen(p), &c, &e);
	if (!rc)
		rc = codec_chain_for(&arena, CODEC_FORMAT_HDF5, &c, &c, &e);
	if (!rc)
		rc = codec_chain_prepare(&arena, &c, &a, &c, &e);
	if (rc)
		answer(rc, NULL, &e);
	else
		show_stored(&c);
}

static void rule_for(const char *path)
{
	const struct codec_rule *r = codec_rules_for(&rules, path);

	if (r && !r->none)
		show(&r->chain);
	else
		puts(r ? "none" : "-");
}

/* one - a line without its end. */
static void one(const char *line)
{
	struct codec_chain c;
	struct err e = ERR_INIT;
	int rc;

	if (strncmp(line, "parse ", 6) == 0) {
		rc = codec_spec_parse(&arena, line + 6, strlen(line + 6), &c, &e);
		answer(rc, &c, &e);
	} else if (strncmp(line, "prepare ", 8) == 0) {
		prepare(line + 8);
	} else if (strncmp(line, "rule ", 5) == 0) {
		rc = codec_rule_add(&arena, line + 5, &rules, &e);
		if (rc)
			answer(rc, NULL, &e);
		else
			puts("ok");
	} else if (strncmp(line, "for ", 4) == 0) {
		rule_for(line + 4);
	} else {
		arena_release(&arena);
		rules = (struct codec_rules){0};
		puts("ok");
	}
}

int main(void)
{
	auto_free char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	arena_init(&arena, (size_t)1 << 30);
	while ((n = getline(&line, &cap, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		one(line);
	}
	arena_release(&arena);
	return 0;
}
