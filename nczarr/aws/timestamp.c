/* SPDX-License-Identifier: BSD-3-Clause */
/* timestamp.c - parses the timestamps of AWS. */
#include "nczarr/aws/aws.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/core/str.h"

int aws_time(const char *text, int64_t *ret, int64_t *ret_ns)
{
	static const char form[] = "%Y-%m-%dT%H:%M:%S";
	struct tm tm = {.tm_isdst = 0};
	const char *end = strptime(text, form, &tm);
	int64_t ns = 0, unit = 100000000;
	char same[32];

	/* strptime also accepts blanks, signs and fewer digits */
	if (!end || strftime(same, sizeof(same), form, &tm) != (size_t)(end - text) ||
	    strncmp(text, same, (size_t)(end - text)) != 0 || tm.tm_year < 70 || tm.tm_sec > 60)
		return -EINVAL;
	if (*end == '.')
		for (++end; str_digit(*end); ++end, unit /= 10)
			ns += unit * (*end - '0');
	if (strcmp(end, "Z") != 0 && strcmp(end, "+00:00") != 0 && *end)
		return -EINVAL;
	*ret = (int64_t)timegm(&tm);
	if (ret_ns && ckd_mul(ret_ns, *ret, INT64_C(1000000000)))
		return -EINVAL;
	if (ret_ns)
		*ret_ns += ns;
	return 0;
}
