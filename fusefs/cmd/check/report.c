/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - the report of a check, for people and for programs. */
#include "fusefs/cmd/check/check_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/observe/log.h"
#include "base/core/str.h"

#define CHECK_LOGGED 20 /* chunks that another command logs */

int check_bad_add(struct check_list *l, struct check_bad *b, struct err *e)
{
	if (l->n >= CHECK_LISTED) {
		l->more++;
		free(b->key);
		free(b->why);
		return 0;
	}
	if (grow_array(&l->v, &l->cap, l->n + 1, sizeof(*l->v)) < 0)
		return err_nomem(e);
	l->v[l->n++] = *b;
	return 0;
}

void check_bad_release(struct check_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].key);
		free(l->v[i].why);
	}
	free(l->v);
	*l = (struct check_list){0};
}

static int report_by_place(const void *p, const void *q)
{
	const struct check_bad *a = p, *b = q;

	return check_at_cmp((struct check_at){a->array, a->linear},
			    (struct check_at){b->array, b->linear});
}

static void put_coords(struct buf *out, const struct ds_array *a, uint64_t linear,
		       const char *between)
{
	uint64_t coords[DS_RANK_MAX] = {0};

	ds_chunk_coords(a, linear, coords);
	for (uint32_t i = 0; i < a->rank; i++)
		buf_printf(out, "%s%" PRIu64, i ? between : "", coords[i]);
}

static void report_put_path(struct buf *out, const struct dataset *ds, uint32_t array,
			    bool json)
{
	auto_buf path = buf_of((size_t)1 << 20);

	ds_array_path(ds, array, &path);
	if (json) {
		str_put_json(out, (const char *)path.data, path.len);
	} else {
		buf_putc(&path, '\0');
		if (buf_ok(&path))
			str_put_plain(out, (const char *)path.data);
	}
}

/* ---- text ---- */

static void text_bad(const struct check *c, const struct check_bad *b, bool red,
		     struct buf *out)
{
	const struct ds_array *a = &c->source->ds.arrays[b->array];

	buf_printf(out, "%sdamaged%s  ", red ? "\033[31m" : "", red ? "\033[0m" : "");
	report_put_path(out, &c->source->ds, b->array, false);
	if (b->linear != CHECK_ARRAY) {
		buf_puts(out, " chunk ");
		put_coords(out, a, b->linear, ".");
		if (!a->rank)
			buf_putc(out, '0');
	}
	if (b->placed) {
		buf_puts(out, ", ");
		if (*b->key) {
			buf_puts(out, "in ");
			str_put_plain(out, b->key);
		}
		if (!b->whole)
			buf_printf(out, "%sat byte %" PRIu64, *b->key ? " " : "", b->off);
		buf_printf(out, ", %" PRIu64 " bytes", b->len);
	}
	buf_puts(out, ": ");
	str_put_plain(out, b->why);
	buf_putc(out, '\n');
}

static void report_text_report(const struct check *c, bool done, bool resumed, struct buf *out)
{
	const struct dataset *ds = &c->source->ds;
	uint64_t bad = c->bad.n + c->bad.more + (c->rest != NULL);
	bool red = progress_colours(STDOUT_FILENO);

	if (c->rest) {
		buf_printf(out, "%sdamaged%s  ", red ? "\033[31m" : "", red ? "\033[0m" : "");
		str_put_plain(out, c->rest);
		buf_puts(out, "; the rest was checked\n");
	}
	for (size_t i = 0; i < c->bad.n && buf_ok(out); i++)
		text_bad(c, &c->bad.v[i], red, out);
	if (c->bad.more)
		buf_printf(out, "... and %" PRIu64 " more\n", c->bad.more);
	str_put_plain(out, c->setup->cfg->shown);
	buf_printf(out, ": %s, %" PRIu32 " variables, %" PRIu64 " chunks", ds->format,
		   ds->n_arrays, c->taken);
	if (c->setup->cfg->check.quick) {
		buf_puts(out, " in the indexes, none read");
	} else {
		buf_puts(out, ", ");
		progress_bytes(out, c->bytes);
		buf_puts(out, resumed ? " read in this run" : " read");
	}
	if (!done)
		buf_puts(out, ", incomplete");
	if (bad)
		buf_printf(out, ": %" PRIu64 " damaged%s\n", bad,
			   c->unfinished ? ", and there are pending writes" : "");
	else if (c->unfinished)
		buf_puts(out, ": none damaged, but there are pending writes: run nczarrfs "
			      "recover\n");
	else
		buf_puts(out, done ? ": all good\n" : ": none damaged so far\n");
}

uint64_t check_log_bad(struct check *c)
{
	const size_t n = c->bad.n < CHECK_LOGGED ? c->bad.n : CHECK_LOGGED;
	const uint64_t all = c->bad.n + c->bad.more;
	struct buf line;

	if (c->bad.n)
		qsort(c->bad.v, c->bad.n, sizeof(*c->bad.v), report_by_place);
	for (size_t i = 0; i < n; i++) {
		buf_init(&line, (size_t)1 << 20);
		text_bad(c, &c->bad.v[i], false, &line);
		if (buf_ok(&line))
			log_error("%.*s", (int)line.len - 1, (const char *)line.data);
		buf_release(&line);
	}
	if (all > n)
		log_error("... and %" PRIu64 " more: run nczarrfs check to list them", all - n);
	return all;
}

/* ---- JSON ---- */

static void json_bad(const struct check *c, const struct check_bad *b, struct buf *out)
{
	buf_puts(out, "{\"variable\": ");
	report_put_path(out, &c->source->ds, b->array, true);
	buf_puts(out, ", \"chunk\": ");
	if (b->linear == CHECK_ARRAY) {
		buf_puts(out, "null");
	} else {
		buf_putc(out, '[');
		put_coords(out, &c->source->ds.arrays[b->array], b->linear, ", ");
		buf_putc(out, ']');
	}
	buf_puts(out, ", \"where\": ");
	if (b->placed) {
		buf_puts(out, "{\"object\": ");
		if (*b->key)
			str_put_json(out, b->key, strlen(b->key));
		else
			buf_puts(out, "null");
		buf_printf(out, ", \"offset\": %" PRIu64 ", \"length\": %" PRIu64 "}",
			   b->whole ? 0 : b->off, b->len);
	} else {
		buf_puts(out, "null");
	}
	str_put_member(out, "why", b->why);
	buf_putc(out, '}');
}

static void report_json_report(const struct check *c, bool done, bool resumed, struct buf *out)
{
	const struct dataset *ds = &c->source->ds;
	const bool good =
		done && !c->bad.n && !c->bad.more && !c->rest && !c->unfinished;

	buf_putc(out, '{');
	str_put_member(out, "source", c->setup->cfg->shown);
	str_put_member(out, "format", ds->format);
	buf_printf(out,
		   ", \"complete\": %s, \"good\": %s, \"unfinished\": %s, "
		   "\"quick\": %s, \"resumed\": %s, "
		   "\"variables\": %" PRIu32 ", \"chunks\": %" PRIu64
		   ", \"bytes_read\": %" PRIu64 ", \"bytes_of_elements\": %" PRIu64 ",\n ",
		   done ? "true" : "false", good ? "true" : "false",
		   c->unfinished ? "true" : "false",
		   c->setup->cfg->check.quick ? "true" : "false", resumed ? "true" : "false",
		   ds->n_arrays, c->taken, c->bytes, c->elements);
	str_put_member(out, "left_out", c->rest);
	str_put_member(out, "error", c->stop.code ? c->stop.msg : NULL);
	buf_printf(out, ", \"unlisted\": %" PRIu64 ",\n \"damaged\": [", c->bad.more);
	for (size_t i = 0; i < c->bad.n && buf_ok(out); i++) {
		buf_puts(out, i ? ",\n  " : "\n  ");
		json_bad(c, &c->bad.v[i], out);
	}
	buf_puts(out, "]}\n");
}

void check_report(struct check *c, bool done, bool resumed, struct buf *out)
{
	if (c->bad.n)
		qsort(c->bad.v, c->bad.n, sizeof(*c->bad.v), report_by_place);
	if (c->setup->cfg->json)
		report_json_report(c, done, resumed, out);
	else
		report_text_report(c, done, resumed, out);
}
