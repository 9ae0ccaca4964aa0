/* SPDX-License-Identifier: BSD-3-Clause */
/* cf_time.c - units of time since a date (CF conventions 4.4), and one in terms of another. */
#include "base/core/str.h"
#include "translate/concat/cf_time_int.h"

#include <errno.h>
#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;

#define NS_SECOND 1000000000LL
#define NS_MINUTE (60 * NS_SECOND)
#define NS_HOUR (60 * NS_MINUTE)
#define NS_DAY (24 * NS_HOUR)
#define UNIT_MONTH 0 /* instead of a length */
#define UNIT_YEAR (-1)
#define YEAR_DIGITS 6
#define SPACES " \t\n\v\f\r"

enum calendar { STANDARD, PROLEPTIC, JULIAN, NOLEAP, ALL_LEAP, DAYS_360, UNKNOWN };

/* since - "UNIT since DATE" as it is written; whether a calendar has the date is not seen yet. */
struct since {
	int64_t unit; /* ns, or UNIT_MONTH, UNIT_YEAR */
	int64_t year;
	int month, day; /* from 1 */
	int64_t of_day; /* ns since midnight */
	int zone;       /* minutes east */
};

static const struct {
	int64_t ns;
	const char *names;
} units[] = {
	{7 * NS_DAY, "weeks week"},
	{NS_DAY, "days day d"},
	{NS_HOUR, "hours hour hrs hr h"},
	{NS_MINUTE, "minutes minute mins min"},
	{NS_SECOND, "seconds second secs sec s"},
	{1000000, "milliseconds millisecond millisecs millisec msecs msec ms"},
	{1000, "microseconds microsecond microsecs microsec us \xc2\xb5s"},
	{1, "nanoseconds nanosecond nanosecs nanosec ns"},
	{UNIT_MONTH, "months month"},
	{UNIT_YEAR, "years year common_years common_year"},
};

static const struct {
	const char *name;
	enum calendar calendar;
} calendars[] = {
	{"standard", STANDARD}, {"gregorian", STANDARD}, {"proleptic_gregorian", PROLEPTIC},
	{"julian", JULIAN},     {"noleap", NOLEAP},      {"365_day", NOLEAP},
	{"all_leap", ALL_LEAP}, {"366_day", ALL_LEAP},   {"360_day", DAYS_360},
};

/* take_word - the next word and the spaces before it; NULL: none. */
static const char *take_word(const char **p, size_t *ret_len)
{
	const char *start;

	*p += strspn(*p, SPACES);
	start = *p;
	*p += strcspn(*p, SPACES);
	*ret_len = (size_t)(*p - start);
	return *ret_len ? start : NULL;
}

/* cf_time_take_number - 1 to `most` digits, value in [least, last]. */
static bool cf_time_take_number(const char **p, int most, int least, int last, int *ret)
{
	int v = 0, n = 0;

	while (n < most && str_digit(**p)) {
		v = v * 10 + (*(*p)++ - '0');
		n++;
	}
	if (!n || str_digit(**p) || v < least || v > last)
		return false;
	*ret = v;
	return true;
}

static bool take_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

/* take_date - [-+]Y[-M[-D]]. */
static bool take_date(const char **p, struct since *s)
{
	bool before = **p == '-';
	int year;

	if (**p == '-' || **p == '+')
		(*p)++;
	if (!cf_time_take_number(p, YEAR_DIGITS, 0, 999999, &year))
		return false;
	s->year = before ? -year : year;
	s->month = s->day = 1;
	if (!take_char(p, '-'))
		return true;
	if (!cf_time_take_number(p, 2, 1, 12, &s->month))
		return false;
	return !take_char(p, '-') || cf_time_take_number(p, 2, 1, 31, &s->day);
}

/* take_fraction - digits after the point of a second, in ns; those below a nanosecond must be 0. */
static bool take_fraction(const char **p, int64_t *ret)
{
	int64_t ns = 0, place = NS_SECOND;

	if (!str_digit(**p))
		return false;
	for (; str_digit(**p); (*p)++) {
		place /= 10;
		if (!place && **p != '0')
			return false;
		ns += place * (**p - '0');
	}
	*ret = ns;
	return true;
}

/* take_time - h:m[:s[.f]], or an hour of 0. Of another hour without minutes readers make what they
 * like: xarray takes midnight for "6", and that hour or midnight, by the calendar, for "06". */
static bool take_time(const char **p, struct since *s)
{
	int hour, minute = 0, second = 0;
	int64_t fraction = 0;

	if (!cf_time_take_number(p, 2, 0, 23, &hour))
		return false;
	if (take_char(p, ':')) {
		if (!cf_time_take_number(p, 2, 0, 59, &minute))
			return false;
		if (take_char(p, ':')) {
			if (!cf_time_take_number(p, 2, 0, 59, &second))
				return false;
			if (take_char(p, '.') && !take_fraction(p, &fraction))
				return false;
		}
	} else {
		const char *next = *p + strspn(*p, " \t");

		if (hour != 0 || *next == '+' || *next == '-')
			return false;
	}
	s->of_day = hour * NS_HOUR + minute * NS_MINUTE + second * NS_SECOND + fraction;
	return true;
}

/* take_zone - +h, +hh, +hh:mm, +hhmm, or a name of UTC. apart: it stands behind a date only, with
 * a space between, where +h is nothing that readers take for one. */
static bool take_zone(const char **p, bool timed, bool apart, struct since *s)
{
	const char sign = **p;
	size_t digits;
	int hour, minute = 0;
	const char *word;
	size_t n;

	if (sign != '+' && sign != '-') {
		word = take_word(p, &n);
		return word && (str_is_nocase("z", word, n) || str_is_nocase("utc", word, n) ||
				str_is_nocase("gmt", word, n));
	}
	(*p)++;
	digits = strspn(*p, "0123456789");
	if (!timed && (!apart || digits < 2))
		return false;
	if (digits == 4) {
		if (!cf_time_take_number(p, 4, 0, 2359, &hour))
			return false;
		minute = hour % 100;
		hour /= 100;
	} else if (!cf_time_take_number(p, 2, 0, 23, &hour) ||
		   (take_char(p, ':') && !cf_time_take_number(p, 2, 0, 59, &minute))) {
		return false;
	}
	if (minute > 59)
		return false;
	s->zone = (hour * 60 + minute) * (sign == '-' ? -1 : 1);
	return true;
}

/* take_clock - what may follow the date: [T][TIME] [ZONE], and nothing else. */
static bool take_clock(const char *p, struct since *s)
{
	const char *date_end = p;
	bool timed = false;

	if (*p == 't' || *p == 'T') {
		p++;
		if (!str_digit(*p))
			return false;
	}
	p += strspn(p, SPACES);
	if (str_digit(*p)) {
		if (!take_time(&p, s))
			return false;
		timed = true;
		p += strspn(p, SPACES);
	}
	if (*p && !take_zone(&p, timed, p > date_end, s))
		return false;
	p += strspn(p, SPACES);
	return *p == 0;
}

static bool parse_unit(const char *word, size_t n, int64_t *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		const char *names = units[i].names, *name;
		size_t len;

		while ((name = take_word(&names, &len)) != NULL) {
			if (len == n && strncasecmp(name, word, n) == 0) {
				*ret = units[i].ns;
				return true;
			}
		}
	}
	return false;
}

/* cf_time_parse - false: the text is no unit of time since a date. */
static bool cf_time_parse(const char *text, struct since *ret)
{
	const char *word;
	size_t n;

	*ret = (struct since){0};
	if (!text)
		return false;
	word = take_word(&text, &n);
	if (!word || !parse_unit(word, n, &ret->unit))
		return false;
	word = take_word(&text, &n);
	if (!word || !str_is_nocase("since", word, n))
		return false;
	text += strspn(text, SPACES);
	return take_date(&text, ret) && take_clock(text, ret);
}

bool cf_is_time(const char *text)
{
	struct since s;

	return cf_time_parse(text, &s);
}

static enum calendar calendar_of(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (!name)
		return STANDARD;
	for (size_t i = 0; i < ARRAY_LEN(calendars); i++) {
		if (str_is_nocase(calendars[i].name, name, n))
			return calendars[i].calendar;
	}
	return UNKNOWN;
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* leap - year: astronomical, in which 0 is before 1. */
static bool leap(enum calendar c, int64_t year)
{
	if (c == NOLEAP || c == DAYS_360)
		return false;
	if (c == ALL_LEAP)
		return true;
	if (year % 4 != 0)
		return false;
	if (c == JULIAN || (c == STANDARD && year <= 1582))
		return true;
	return year % 100 != 0 || year % 400 == 0;
}

/* before_year - days from 1 January of year 1 to that of a year, if the leap years of the Gregorian
 * (or else the Julian) calendar held at all times. */
static int64_t before_year(int64_t year, bool gregorian)
{
	int64_t y = year - 1, days = 365 * y + floor_div(y, 4);

	/* 1 January 1 was two days earlier in the Julian calendar. */
	return gregorian ? days - floor_div(y, 100) + floor_div(y, 400) : days - 2;
}

/* day_number - days since 0001-01-01 (proleptic Gregorian for the calendars that share instants).
 * false: the calendar has no such day. */
static bool day_number(enum calendar c, const struct since *s, int64_t *ret)
{
	static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool numbered = c == STANDARD || c == JULIAN; /* 1 BC, 1 AD: no year 0 */
	int64_t year = numbered && s->year < 0 ? s->year + 1 : s->year;
	int64_t day = s->day - 1;
	bool old, gap;

	if (numbered && s->year == 0)
		return false;
	if (c == DAYS_360) {
		*ret = 360 * (year - 1) + 30 * (s->month - 1) + day;
		return s->day <= 30;
	}
	if (s->day > lengths[s->month - 1] + (s->month == 2 && leap(c, year)))
		return false;
	for (int m = 0; m < s->month - 1; m++)
		day += lengths[m] + (m == 1 && leap(c, year));
	if (c == NOLEAP || c == ALL_LEAP) {
		*ret = (c == NOLEAP ? 365 : 366) * (year - 1) + day;
		return true;
	}
	old = year < 1582 ||
	      (year == 1582 && (s->month < 10 || (s->month == 10 && s->day < 15)));
	gap = old && year == 1582 && s->month == 10 && s->day > 4;
	if (c == STANDARD && gap)
		return false;
	*ret = before_year(year, c == PROLEPTIC || (c == STANDARD && !old)) + day;
	return true;
}

/* instant_of - ns since 0001-01-01. */
static int instant_of(enum calendar c, const struct since *s, const char *text,
		      const char *calendar, wide *ret, struct err *e)
{
	int64_t days;

	if (!day_number(c, s, &days))
		return err_set(e, -EINVAL,
			       "the date of '%.100s' does not exist in calendar '%.40s'", text,
			       calendar ? calendar : "standard");
	*ret = (wide)days * NS_DAY + s->of_day - (wide)s->zone * NS_MINUTE;
	return 0;
}

static wide gcd(wide a, wide b)
{
	a = a < 0 ? -a : a;
	while (b) {
		wide r = a % b;

		a = b;
		b = r;
	}
	return a;
}

/* cf_time_bound - least number of `from` that is not before 1582-10-15. */
static int cf_time_bound(const struct since *from, wide epoch, struct cf_shift *s,
			 struct err *e)
{
	static const struct since start = {.year = 1582, .month = 10, .day = 15};
	wide least, left;
	int64_t day = 0;

	(void)day_number(PROLEPTIC, &start, &day);
	left = (wide)day * NS_DAY - epoch;
	least = left / from->unit + (left % from->unit > 0);
	if (least > INT64_MAX)
		return err_set(e, -ERANGE, "1582-10-15 is outside the range of 64 bits");
	s->bounded = true;
	s->least = least < INT64_MIN ? INT64_MIN : (int64_t)least;
	return 0;
}

/* reduce - the relation of two units and of what they count from. */
static int reduce(const struct since *from, wide from_at, const struct since *to, wide to_at,
		  struct cf_shift *s, struct err *e)
{
	wide apart = from_at - to_at, by = gcd(from->unit, to->unit);

	s->num = (int64_t)(from->unit / by);
	s->den = (int64_t)(to->unit / by);
	by = gcd(apart, to->unit);
	if (apart / by > INT64_MAX || apart / by < -INT64_MAX)
		return err_set(e, -ERANGE,
			       "the dates are too far apart for 64-bit values in their unit");
	s->off_num = (int64_t)(apart / by);
	s->off_den = (int64_t)(to->unit / by);
	s->same = !s->bounded && s->num == 1 && s->den == 1 && s->off_num == 0;
	return 0;
}

static bool cf_time_same_text(const struct since *a, const struct since *b)
{
	return a->unit == b->unit && a->year == b->year && a->month == b->month &&
	       a->day == b->day && a->of_day == b->of_day && a->zone == b->zone;
}

static bool same_calendar(enum calendar a, const char *a_name, enum calendar b,
			  const char *b_name)
{
	return a == b && (a != UNKNOWN || strcmp(a_name, b_name) == 0);
}

int cf_time_between(const char *from_units, const char *from_calendar, const char *to_units,
		    const char *to_calendar, struct cf_shift *ret, struct err *e)
{
	enum calendar a = calendar_of(from_calendar), b = calendar_of(to_calendar);
	bool alike = same_calendar(a, from_calendar, b, to_calendar);
	struct cf_shift s = {.num = 1, .den = 1, .off_num = 0, .off_den = 1, .same = true};
	struct since from, to;
	wide from_at, to_at;
	int rc;

	if (!cf_time_parse(from_units, &from) || !cf_time_parse(to_units, &to))
		return err_set(e, -EINVAL, "'%.100s' is not a unit of time since a date",
			       cf_time_parse(from_units, &from)
				       ? (to_units ? to_units : "")
				       : (from_units ? from_units : ""));
	if (alike && cf_time_same_text(&from, &to)) {
		*ret = s;
		return 0;
	}
	if (from.unit <= 0 || to.unit <= 0)
		return err_set(e, -EDOM,
			       "months and years have no fixed length: '%.100s' and "
			       "'%.100s' cannot be related",
			       from_units, to_units);
	if (a == UNKNOWN || b == UNKNOWN)
		return err_set(e, -EDOM, "calendar '%.40s' is not known",
			       a == UNKNOWN ? from_calendar : to_calendar);
	if (!alike && (a > PROLEPTIC || b > PROLEPTIC))
		return err_set(e, -EDOM, "calendars '%.40s' and '%.40s' have different dates",
			       from_calendar ? from_calendar : "standard",
			       to_calendar ? to_calendar : "standard");
	if ((rc = instant_of(a, &from, from_units, from_calendar, &from_at, e)) < 0 ||
	    (rc = instant_of(b, &to, to_units, to_calendar, &to_at, e)) < 0 ||
	    (!alike && (rc = cf_time_bound(&from, from_at, &s, e)) < 0) ||
	    (rc = reduce(&from, from_at, &to, to_at, &s, e)) < 0)
		return rc;
	*ret = s;
	return 0;
}

/* cf_time_exact - x shifted, as top / bottom; false: more than 128 bits. */
static bool cf_time_exact(const struct cf_shift *s, int64_t x, wide *ret_top, wide *ret_bottom)
{
	wide bottom = (wide)s->den / gcd(s->den, s->off_den) * s->off_den;
	wide scaled, offset;

	*ret_bottom = bottom;
	return !ckd_mul(&scaled, (wide)x * s->num, bottom / s->den) &&
	       !ckd_mul(&offset, (wide)s->off_num, bottom / s->off_den) &&
	       !ckd_add(ret_top, scaled, offset);
}

int cf_shift_i64(const struct cf_shift *s, int64_t x, int64_t *ret)
{
	wide top, bottom;

	if (s->bounded && x < s->least)
		return -EDOM;
	if (!cf_time_exact(s, x, &top, &bottom))
		return -ERANGE;
	if (top % bottom != 0)
		return -EDOM;
	top /= bottom;
	if (top > INT64_MAX || top < INT64_MIN)
		return -ERANGE;
	*ret = (int64_t)top;
	return 0;
}

double cf_shift_f64(const struct cf_shift *s, double x)
{
	wide top, bottom;

	if (s->same || !isfinite(x))
		return x;
	if (s->bounded && x < (double)s->least)
		return (double)NAN;
	if (x == floor(x) && fabs(x) < 0x1p63 && cf_time_exact(s, (int64_t)x, &top, &bottom))
		return (double)((long double)(top / bottom) +
				(long double)(top % bottom) / (long double)bottom);
	return (double)((long double)x * (long double)s->num / (long double)s->den +
			(long double)s->off_num / (long double)s->off_den);
}
