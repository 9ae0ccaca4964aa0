/* SPDX-License-Identifier: BSD-3-Clause */
/* cf_tool.c - translate/concat/cf_time_int.h and translate/concat/cf_pack_int.h for tests: commands
 * on standard input, an answer on each line.
 *
 *   time FROM|CALENDAR|TO|CALENDAR|X    "INTEGER FLOAT": X as the other unit has it, - where it is
 *                                       no integer; an empty calendar is none
 *   pack TYPE NAME=TYPE:HEX ... HEX     "TYPE HEX": elements unpacked with these attributes
 *
 * TYPE: i2, u1, f8 ... as numpy has them, '>' behind it: big-endian; s: text. Attributes are in
 * host byte order. What is wrong is answered as "! ERRNO MESSAGE". */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "translate/concat/cf_pack_int.h"
#include "translate/concat/cf_time_int.h"

#define ATTRS_MAX 8

static void shift(char *line)
{
	char *field[5] = {line};
	struct cf_shift s;
	struct err e = ERR_INIT;
	double x;
	int64_t whole;
	int rc;

	for (int i = 1; i < 5; i++) {
		field[i] = field[i - 1] ? strchr(field[i - 1], '|') : NULL;
		if (field[i])
			*field[i]++ = '\0';
	}
	if (!field[4])
		exit(2);
	rc = cf_time_between(field[0], *field[1] ? field[1] : NULL, field[2],
			     *field[3] ? field[3] : NULL, &s, &e);
	if (rc) {
		printf("! %d %s\n", -rc, e.msg);
		return;
	}
	x = strtod(field[4], NULL);
	rc = x == (double)(int64_t)x ? cf_shift_i64(&s, (int64_t)x, &whole) : -EDOM;
	if (rc)
		printf("- %.17g\n", cf_shift_f64(&s, x));
	else
		printf("%" PRId64 " %.17g\n", whole, cf_shift_f64(&s, x));
}

static struct dtype type_of(const char *s)
{
	struct dtype t = {.kind = DT_FLOAT};

	if (*s == 's') {
		t.kind = DT_VSTRING;
		return t;
	}
	if (*s != 'f')
		t.kind = *s == 'i' ? DT_INT : DT_UINT;
	t.size = (uint32_t)(s[1] - '0');
	t.big_endian = s[2] == '>';
	return t;
}

/* unhex - in place; the number of bytes. */
static size_t unhex(char *s)
{
	size_t n = strlen(s) / 2;

	for (size_t i = 0; i < n; i++) {
		char two[3] = {s[2 * i], s[2 * i + 1]};

		s[i] = (char)strtoul(two, NULL, 16);
	}
	return n;
}

/* attr_of - NAME=TYPE:HEX. */
static void attr_of(char *word, struct ds_attr *a, struct ds_text *text)
{
	char *type = strchr(word, '='), *hex = strchr(word, ':');
	size_t n;

	if (!type || !hex)
		exit(2);
	*type++ = *hex++ = '\0';
	n = unhex(hex);
	*a = (struct ds_attr){.name = word, .type = type_of(type)};
	if (*type == 's') {
		*text = (struct ds_text){hex, n};
		a->strings = text;
		a->n = 1;
		return;
	}
	a->data = (const uint8_t *)hex;
	a->n = n / a->type.size;
}

static void unpack(char *line)
{
	struct ds_attr attrs[ATTRS_MAX];
	struct ds_text texts[ATTRS_MAX];
	uint32_t n_attrs = 0;
	struct dtype t = type_of(line);
	struct cf_pack p;
	struct err e = ERR_INIT;
	char *word = strchr(line, ' '), *next;
	auto_free uint8_t *out = NULL;
	size_t n;
	int rc;

	while (word && (next = strchr(++word, ' ')) && n_attrs < ATTRS_MAX) {
		*next = '\0';
		attr_of(word, &attrs[n_attrs], &texts[n_attrs]);
		n_attrs++;
		word = next;
	}
	if (!word)
		exit(2);
	rc = cf_pack_of(attrs, n_attrs, &t, &p, &e);
	if (rc) {
		printf("! %d %s\n", -rc, e.msg);
		return;
	}
	n = unhex(word) / t.size;
	out = alloc_array(n, p.to.size);
	if (!out)
		exit(2);
	cf_unpack(&p, (const uint8_t *)word, out, n);
	printf("%c%u ", p.to.kind == DT_FLOAT ? 'f' : p.to.kind == DT_INT ? 'i' : 'u', p.to.size);
	for (size_t i = 0; i < n * p.to.size; i++)
		printf("%02x", out[i]);
	putchar('\n');
}

int main(void)
{
	auto_free char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (strncmp(line, "time ", 5) == 0)
			shift(line + 5);
		else
			unpack(line + 5);
	}
	return 0;
}
