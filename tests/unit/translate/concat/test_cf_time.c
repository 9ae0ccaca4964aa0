/* SPDX-License-Identifier: BSD-3-Clause */
/* test_cf_time.c - units of time; figures are those of cftime 1.6.2 unless said. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "translate/concat/cf_time_int.h"

#include <cmocka.h>

static void test_figures(void **state)
{
	static const struct {
		const char *from, *calendar, *to;
		double x, want;
	} rows[] = {
		{"days since 1970-01-01", "standard", "days since 1900-01-01 00:00:00", 0,
		 25567},
		{"hours since 1900-01-01", "gregorian", "days since 1970-01-01", 613609,
		 0.041666666666666664},
		{"days since 1582-10-04", "standard", "days since 1582-10-15", 0, -1},
		{"days since 0001-01-01", "standard", "days since 2000-01-01", 0, -730121},
		{"days since 0001-01-01", "proleptic_gregorian", "days since 2000-01-01", 0,
		 -730119},
		{"days since -0044-03-15", "standard", "days since 2000-01-01", 0, -746119},
		{"days since -0044-03-15", "proleptic_gregorian", "days since 2000-01-01", 0,
		 -746482},
		{"days since 0001-01-01", "julian", "days since 2000-01-01", 0, -730134},
		{"days since 1850-01-01", "noleap", "days since 2000-03-01", 55000, 191},
		{"days since 1850-01-01", "365_DAY", "days since 2000-03-01", 55000, 191},
		{"days since 1850-01-01", "all_leap", "days since 2000-03-01", 55000, 40},
		{"days since 1850-01-01", "360_day", "days since 2000-02-30", 55000, 941},
		{"minutes since 2000-01-01T00:00:00Z", "standard",
		 "seconds since 1999-12-31 19:00:00 -05:00", 90, 5400},
		{"hours since 2000-02-01 +01:30", NULL, "hours since 2000-01-31", 0, 22.5},
		{"milliseconds since 2000-02-29", "standard", "microseconds since 2000-03-01",
		 86400001, 1000},
		{"hours since 1900-02-28", "julian", "hours since 1900-03-01", 0, -48},
		{"days since 2000-01-01", NULL, "hours since 2000-01-01", 0.5, 12},
		{"hours since 2000-01-01", NULL, "days since 2000-01-01", 1,
		 0.041666666666666664},
		/* by reckoning: cftime passes over an hour of one digit, has no weeks nor ns */
		{"hours since 1992-10-8 15:15:42.5 -6:00", NULL,
		 "hours since 1992-10-8 21:15:42.5", 0, 0},
		{"weeks since 2000-01-01", NULL, "days since 2000-01-01", -2, -14},
		{"ns since 2000-01-01 00:00:00.000000001000", NULL,
		 "\xc2\xb5s since 2000-01-01", 999, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cf_shift s;
		int64_t whole;

		assert_int_equal(cf_time_between(rows[i].from, rows[i].calendar, rows[i].to,
						 rows[i].calendar, &s, NULL),
				 0);
		if (cf_shift_f64(&s, rows[i].x) != rows[i].want)
			fail_msg("%s to %s: %.17g", rows[i].from, rows[i].to,
				 cf_shift_f64(&s, rows[i].x));
		if (rows[i].x != floor(rows[i].x))
			continue;
		if (rows[i].want == floor(rows[i].want)) {
			assert_int_equal(cf_shift_i64(&s, (int64_t)rows[i].x, &whole), 0);
			assert_int_equal(whole, (int64_t)rows[i].want);
		} else {
			assert_int_equal(cf_shift_i64(&s, (int64_t)rows[i].x, &whole), -EDOM);
		}
	}
}

static void test_texts(void **state)
{
	static const char *const good[] = {
		"days since 2000-1-1",
		"Days Since 2000-01-01",
		"d since 2000",
		"s since 2000-06",
		" hours  since  1-1-1 ",
		"months since 2000-01-01",
		"years since 0000-01-01",
		"seconds since 1970-01-01T00:00:00Z",
		"seconds since 1970-01-01 00:00 UTC",
		"days since 1970-01-01 UTC",
		"min since 2000-01-01 0",
		"days since 2000-01-01T00Z",
		"days since 2000-01-01 +01:00",
		"days since 2000-01-01 -0130",
		"h since +2000-01-01 6:5 +1",
		"days since 2000-01-01 00:00:00.123456789000",
		"common_years since 1-1-1",
	};
	static const char *const bad[] = {
		"",
		" ",
		"days",
		"days since",
		"days since ",
		"since 2000-01-01",
		"m since 2000-1-1",
		"degrees since 2000-01-01",
		"days before 2000-01-01",
		"days since yesterday",
		"days since 2000-13-01",
		"days since 2000-00-01",
		"days since 2000-01-32",
		"days since 2000-01-00",
		"days since 2000-01-01 24:00",
		"days since 2000-01-01 6",
		"days since 2000-01-01T06",
		"days since 2000-01-01 00 +01:00",
		"days since 2000-01-01+01:00",
		"days since 2000-1-1 1:60",
		"days since 2000-01-01 1:1:60",
		"days since 2000-01-01 1:1:1.",
		"days since 2000-01-01 1:1:1.0000000001",
		"days since 2000-01-01x",
		"days since 2000-01-01T",
		"days since 2000-01-01 T1:00",
		"days since 1234567-01-01",
		"days since 2000-001-01",
		"days since 2000-01-01 +1",
		"days since 2000-1-1 1:00 +25",
		"days since 2000-1-1 1:00 +1060",
		"days since 2000-1-1 1:00 EST",
		"dayss since 2000",
		"days since 2000-01-01 UTC x",
		"days since 20000101T00",
		"days since -",
		"days since 99999999999999999999999999-01-01",
		"day s since 2000",
	};

	(void)state;
	assert_false(cf_is_time(NULL));
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (!cf_is_time(good[i]))
			fail_msg("'%s' is refused", good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct cf_shift s;

		if (cf_is_time(bad[i]))
			fail_msg("'%s' is taken", bad[i]);
		assert_int_equal(
			cf_time_between("days since 2000-01-01", NULL, bad[i], NULL, &s, NULL),
			-EINVAL);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *from, *a, *to, *b;
		int code;
		const char *said;
	} rows[] = {
		{"days since 2000-02-30", "360_day", "days since 2000-01-01", "360_day", 0,
		 NULL},
		{"days since 2000-02-30", NULL, "days since 2000-01-01", NULL, -EINVAL,
		 "does not exist in calendar 'standard'"},
		{"days since 2001-02-29", "all_leap", "days since 2000-01-01", "366_day", 0,
		 NULL},
		{"days since 2000-02-29", "noleap", "days since 2000-01-01", "365_day", -EINVAL,
		 "2000-02-29"},
		{"days since 2000-01-31", "360_day", "days since 2000-01-01", "360_day",
		 -EINVAL, "360_day"},
		{"days since 1900-02-29", "julian", "days since 2000-01-01", "julian", 0, NULL},
		{"days since 1900-02-29", NULL, "days since 2000-01-01", NULL, -EINVAL,
		 "1900-02"},
		{"days since 1500-02-29", NULL, "days since 2000-01-01", NULL, 0, NULL},
		{"days since 1500-02-29", "proleptic_gregorian", "days since 2000-01-01",
		 "proleptic_gregorian", -EINVAL, "1500"},
		{"days since 1582-10-05", NULL, "days since 2000-01-01", NULL, -EINVAL, "1582"},
		{"days since 1582-10-14", NULL, "days since 2000-01-01", NULL, -EINVAL, "1582"},
		{"days since 1582-10-05", "proleptic_gregorian", "days since 2000-01-01",
		 "proleptic_gregorian", 0, NULL},
		{"days since 0-1-1", NULL, "days since 1-1-1", "standard", -EINVAL, "0-1-1"},
		{"days since 0-1-1", "noleap", "days since 1-1-1", "noleap", 0, NULL},
		{"months since 2000-01-01", NULL, "months since 2000-02-01", NULL, -EDOM,
		 "months"},
		{"days since 2000-01-01", NULL, "years since 2000-01-01", NULL, -EDOM,
		 "months"},
		{"days since 2000-01-01", "noleap", "days since 2000-01-01", "standard", -EDOM,
		 "'noleap' and 'standard'"},
		{"days since 2000-01-01", "julian", "days since 2000-01-01", NULL, -EDOM,
		 "julian"},
		{"days since 2000-01-01", "mayan", "days since 2000-01-02", "mayan", -EDOM,
		 "mayan"},
		{"days since 2000-01-01", "mayan", "days since 2000-01-01", "none", -EDOM,
		 "mayan"},
		{"days since 2000-01-01", "", "days since 2000-01-02", NULL, -EDOM, "''"},
		{"ns since 1000-01-01", NULL, "ns since 2000-01-01", NULL, -ERANGE, "too far"},
		{"ns since 1-1-1", "standard", "days since 1999-01-01", "proleptic_gregorian",
		 -ERANGE, "1582"},
		{"days since -999999-01-01", NULL, "days since 999999-12-31", NULL, 0, NULL},
		{"metres", NULL, "days since 2000-01-01", NULL, -EINVAL, "'metres'"},
		{NULL, NULL, "days since 2000-01-01", NULL, -EINVAL, "not a unit"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = ERR_INIT;
		struct cf_shift s;
		int rc =
			cf_time_between(rows[i].from, rows[i].a, rows[i].to, rows[i].b, &s, &e);

		if (rc != rows[i].code || (rows[i].said && !strstr(e.msg, rows[i].said)))
			fail_msg("row %zu: %d '%s'", i, rc, e.msg);
	}
}

static void test_same(void **state)
{
	static const struct {
		const char *from, *a, *to, *b;
		bool same;
	} rows[] = {
		{"days since 2000-01-01", NULL, "day since 2000-1-1 00:00:0.0 UTC", "gregorian",
		 true},
		{"days since 2000-01-01 01:00 +1", NULL, "days since 2000-01-01", NULL, true},
		{"months since 2000-01-01", NULL, "month since 2000-01-01", NULL, true},
		{"days since 0-1-1", NULL, "days since 0000-01-01", NULL, true},
		{"days since 0-1-1", "none", "days since 0000-01-01", "none", true},
		{"days since 2000-01-01", NULL, "days since 2000-01-02", NULL, false},
		{"days since 2000-01-01", NULL, "hours since 2000-01-01", NULL, false},
		{"days since 2000-01-01", NULL, "days since 2000-01-01", "proleptic_gregorian",
		 false},
	};
	struct cf_shift s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(cf_time_between(rows[i].from, rows[i].a, rows[i].to, rows[i].b,
						 &s, NULL),
				 0);
		assert_int_equal(s.same, rows[i].same);
		if (!s.same)
			continue;
		assert_true(s.num == 1 && s.den == 1 && s.off_num == 0 && s.off_den == 1);
		assert_true(cf_shift_f64(&s, 0.1) == 0.1);
	}
}

/* test_bounded - standard and proleptic_gregorian have the same dates from 1582-10-15 on. */
static void test_bounded(void **state)
{
	struct cf_shift s;
	int64_t v;

	(void)state;
	assert_int_equal(cf_time_between("days since 1582-10-16", "standard",
					 "days since 1582-10-15", "proleptic_gregorian", &s,
					 NULL),
			 0);
	assert_true(s.bounded && s.least == -1);
	assert_int_equal(cf_shift_i64(&s, -1, &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(cf_shift_i64(&s, -2, &v), -EDOM);
	assert_true(isnan(cf_shift_f64(&s, -1.5)));
	assert_true(cf_shift_f64(&s, -0.5) == 0.5);
	assert_int_equal(cf_time_between("days since 1582-10-04", "standard",
					 "hours since 1582-10-14 12:00", "proleptic_gregorian",
					 &s, NULL),
			 0);
	assert_true(s.bounded && s.least == 1);
	assert_int_equal(cf_shift_i64(&s, 1, &v), 0);
	assert_int_equal(v, 12);
}

static void test_limits(void **state)
{
	struct cf_shift s;
	int64_t v;

	(void)state;
	assert_int_equal(cf_time_between("days since 2000-01-01", NULL,
					 "nanoseconds since 2000-01-01", NULL, &s, NULL),
			 0);
	assert_int_equal(cf_shift_i64(&s, 106751, &v), 0);
	assert_true(v == 106751LL * 86400 * 1000000000);
	assert_int_equal(cf_shift_i64(&s, 106752, &v), -ERANGE);
	assert_int_equal(cf_shift_i64(&s, INT64_MIN, &v), -ERANGE);
	assert_int_equal(cf_shift_i64(&s, INT64_MAX, &v), -ERANGE);
	assert_true(cf_shift_f64(&s, 0x1p70) == 0x1p70 * 86400e9);
	assert_true(isnan(cf_shift_f64(&s, (double)NAN)));
	assert_true(isinf(cf_shift_f64(&s, -(double)INFINITY)));
	assert_int_equal(cf_time_between("ns since 2000-01-01", NULL, "days since 2000-01-02",
					 NULL, &s, NULL),
			 0);
	assert_int_equal(cf_shift_i64(&s, INT64_MAX, &v), -EDOM);
	assert_int_equal(cf_shift_i64(&s, 3LL * 86400 * 1000000000, &v), 0);
	assert_int_equal(v, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures), cmocka_unit_test(test_texts),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_same),
		cmocka_unit_test(test_bounded), cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
