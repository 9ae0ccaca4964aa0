/* SPDX-License-Identifier: BSD-3-Clause */
/* cf_time_int.h - coordinates of time as the CF conventions write them (4.4): numbers of a unit
 * since a date in a calendar, and how the numbers of two such units say the same instant.
 *
 * Units: "UNIT since DATE [TIME] [ZONE]" in the syntax of UDUNITS, in any case: weeks, days, hours,
 * minutes, seconds, milliseconds, microseconds, nanoseconds with their usual short forms, and
 * months and years, which are known but of no fixed length. DATE is [-]Y[-M[-D]] with at most six
 * digits of the year; TIME is h:m[:s[.f]] or an hour of 0, after spaces or a 'T', exact to a
 * nanosecond (readers disagree about other hours without minutes); ZONE is Z, UTC, GMT, +hh, +hh:mm
 * or +hhmm, and after a time +h.
 *
 * Calendars: standard (gregorian; Julian before 1582-10-15), proleptic_gregorian, julian, noleap
 * (365_day), all_leap (366_day), 360_day. There is no year 0 in standard and julian, as CF and
 * cftime have it. */
#ifndef TRANSLATE_CONCAT_CF_TIME_INT_H
#define TRANSLATE_CONCAT_CF_TIME_INT_H

#include "base/core/err.h"

/* cf_shift - x_to = x_from * num / den + off_num / off_den, exactly. Fractions are reduced, num,
 * den and off_den positive. */
struct cf_shift {
	int64_t num, den, off_num, off_den;
	bool same;       /* every number keeps its value and meaning */
	bool bounded;    /* numbers below `least` have no counterpart: they are before 1582-10-15,
	                  * where dates of standard and proleptic_gregorian differ */
	int64_t least;
};

/* cf_is_time - whether a string is a unit of time since a date, including months and years. NULL is
 * not. */
bool cf_is_time(const char *units);

/* cf_time_between - how to convert numbers of from_units to numbers of to_units. Calendars may be
 * NULL: standard. Units that are the same in the same calendar can be converted in any calendar and
 * of any length. Returns 0; -EINVAL one of them is no unit of time since a date, or the calendar
 * has no such date; -EDOM calendars without a common date for each instant, an unknown one, or
 * months or years; -ERANGE dates too far apart for 64 bits of the unit. */
int cf_time_between(const char *from_units, const char *from_calendar, const char *to_units,
		    const char *to_calendar, struct cf_shift *ret, struct err *e) NZ_MUST_USE;

/* cf_shift_i64 - convert one number. Returns 0; -ERANGE the result needs more than 64 bits; -EDOM
 * it is not an integer, or x is below `least`. */
int cf_shift_i64(const struct cf_shift *s, int64_t x, int64_t *ret) NZ_MUST_USE;

/* cf_shift_f64 - convert one number, exactly if the result is an integer that a double can hold,
 * else to within its last bit; NaN for x below `least`. NaN and infinities are unchanged. */
double cf_shift_f64(const struct cf_shift *s, double x);

#endif
