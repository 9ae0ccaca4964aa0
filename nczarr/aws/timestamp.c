/* SPDX-License-Identifier: BSD-3-Clause */
/* timestamp.c - parses the timestamps of AWS. */
#include "nczarr/aws/aws.h"

#include <errno.h>
#include <string.h>
#include <time.h>

/* timestamp_number - parse n digits at text[*at], and advance *at. -1: not digits. */
static int timestamp_number(const char *text, size_t *at, size_t n)
{
	int v = 0;

	for (size_t i = 0; i < n; i++, ++*at) {
		if (text[*at] < '0' || text[*at] > '9')
			return -1;
		v = v * 10 + (text[*at] - '0');
	}
	return v;
}

int aws_time(const char *text, int64_t *ret, int64_t *ret_ns)
{
	static const char between[] = "--T::";
	static const size_t digits[] = {4, 2, 2, 2, 2, 2};
	int v[6];
	size_t at = 0;
	struct tm tm = {.tm_isdst = 0};
	int64_t ns = 0, unit = 100000000;

	for (size_t i = 0; i < ARRAY_LEN(v); i++) {
		v[i] = timestamp_number(text, &at, digits[i]);
		if (v[i] < 0 || (i + 1 < ARRAY_LEN(v) && text[at++] != between[i]))
			return -EINVAL;
	}
	if (text[at] == '.')
		for (++at; text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10)
			ns += unit * (text[at] - '0');
	if (strcmp(text + at, "Z") != 0 && strcmp(text + at, "+00:00") != 0 && text[at])
		return -EINVAL;
	if (v[0] < 1970 || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 31 || v[3] > 23 ||
	    v[4] > 59 || v[5] > 60)
		return -EINVAL;
	tm.tm_year = v[0] - 1900;
	tm.tm_mon = v[1] - 1;
	tm.tm_mday = v[2];
	tm.tm_hour = v[3];
	tm.tm_min = v[4];
	tm.tm_sec = v[5];
	*ret = (int64_t)timegm(&tm);
	if (ret_ns && ckd_mul(ret_ns, *ret, INT64_C(1000000000)))
		return -EINVAL;
	if (ret_ns)
		*ret_ns += ns;
	return 0;
}
