/* SPDX-License-Identifier: BSD-3-Clause */
/* did_you_mean.c - "did you mean": the closest word of a list by edit distance. */
#include "mountcfg/options/option_table.h"

#include <string.h>

enum { WORD_MAX = 40 }; /* longer words are not compared */

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* did_you_mean_distance - insertions, deletions and replacements that turn a into b; lengths <=
 * WORD_MAX. */
static size_t did_you_mean_distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t row[WORD_MAX + 1], diagonal, above;

	for (size_t j = 0; j <= nb; j++)
		row[j] = j;
	for (size_t i = 1; i <= na; i++) {
		diagonal = row[0];
		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			above = row[j];
			row[j] = min3(above + 1, row[j - 1] + 1,
				      diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[nb];
}

const char *cfg_nearest(const char *word, const char *const *words, size_t n)
{
	return cfg_nearest_within(word, strlen(word) / 3 + 1, words, n);
}

const char *cfg_nearest_within(const char *word, size_t limit, const char *const *words,
			       size_t n)
{
	size_t len = strlen(word), best = SIZE_MAX;
	const char *found = NULL;

	if (len > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t cand = strcspn(words[i], "="), d;

		if (cand > WORD_MAX)
			continue;
		d = did_you_mean_distance(word, len, words[i], cand);
		if (d < best && d <= limit) {
			best = d;
			found = words[i];
		}
	}
	return found;
}
