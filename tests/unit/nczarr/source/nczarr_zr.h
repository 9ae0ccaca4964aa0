/* SPDX-License-Identifier: BSD-3-Clause */
/* nczarr_zr.h - a Zarr document's parts as tests write them: JSON with ' for ". */
#ifndef TESTS_UNIT_NCZARR_SOURCE_NCZARR_ZR_H
#define TESTS_UNIT_NCZARR_SOURCE_NCZARR_ZR_H

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "nczarr/source/source_int.h"

/* zr_json - new (json_decref). */
static inline json_t *zr_json(const char *text)
{
	size_t n = strlen(text);
	char *copy = test_malloc(n + 1);
	struct err e = ERR_INIT;
	json_t *v = NULL;

	for (size_t i = 0; i <= n; i++)
		copy[i] = text[i];
	for (char *s = copy; *s; s++)
		if (*s == '\'')
			*s = '"';
	if (json_read(copy, n, &v, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	test_free(copy);
	return v;
}

#endif
