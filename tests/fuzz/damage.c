/* SPDX-License-Identifier: BSD-3-Clause */
/* damage.c - bytes, and the formats whose fields stand at places. damage_tree.c has trees. */
#include "tests/fuzz/damage.h"

#include <stdlib.h>
#include <string.h>

#include "hdf5view/format/hdf5_format.h"

/* ---- dice ---- */

struct dice dice_of(uint64_t seed, uint64_t round)
{
	struct dice d = {seed * 0x9e3779b97f4a7c15u + round * 0xbf58476d1ce4e5b9u + 1};

	if (d.state == 0)
		d.state = 1;
	for (int i = 0; i < 8; i++)
		(void)dice_below(&d, 2);
	return d;
}

uint64_t dice_below(struct dice *d, uint64_t n)
{
	d->state ^= d->state << 13;
	d->state ^= d->state >> 7;
	d->state ^= d->state << 17;
	return n ? (d->state * 0x2545f4914f6cdd1du >> 8) % n : 0;
}

/* ---- bytes ---- */

static uint64_t get(const uint8_t *p, size_t width, bool big)
{
	uint64_t v = 0;

	for (size_t i = 0; i < width; i++)
		v = v << 8 | p[big ? i : width - 1 - i];
	return v;
}

static void put(uint8_t *p, size_t width, bool big, uint64_t v)
{
	for (size_t i = 0; i < width; i++)
		p[big ? width - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

void damage_field(struct dice *d, uint8_t *p, size_t width, bool big)
{
	static const uint64_t edges[] = {0,
					 1,
					 2,
					 0x7f,
					 0x80,
					 0xff,
					 0x7fff,
					 0xffff,
					 0x7fffffff,
					 0x80000000,
					 0xffffffff,
					 0xfffffffe,
					 0x100000000,
					 INT64_MAX,
					 UINT64_MAX,
					 (uint64_t)INT64_MAX + 1,
					 UINT64_MAX - 1,
					 0x4000000000000000};
	uint64_t v = get(p, width, big);

	switch (dice_below(d, 8)) {
	case 0:
		v++;
		break;
	case 1:
		v--;
		break;
	case 2:
		v = dice_below(d, 300);
		break;
	case 3:
		v ^= (uint64_t)1 << dice_below(d, 8 * width);
		break;
	case 4:
		v = dice_below(d, 2) ? v * 2 : v / 2;
		break;
	default:
		v = edges[dice_below(d, sizeof(edges) / sizeof(edges[0]))];
	}
	put(p, width, big, v);
}

/* place - one that is not in a run of zeros, mostly. */
static size_t place(struct dice *d, const struct hurt *h)
{
	size_t at = 0;

	for (int i = 0; i < 20; i++) {
		at = (size_t)dice_below(d, h->n);
		if (h->p[at] || (at + 1 < h->n && h->p[at + 1]))
			break;
	}
	return at;
}

void damage_bytes(struct dice *d, struct hurt *h)
{
	size_t at, n;

	if (h->n == 0) {
		if (h->cap)
			h->p[h->n++] = (uint8_t)dice_below(d, 256);
		return;
	}
	at = place(d, h);
	switch (dice_below(d, 10)) {
	case 0:
		h->p[at] ^= (uint8_t)(1u << dice_below(d, 8));
		break;
	case 1:
		h->p[at] = (uint8_t)dice_below(d, 256);
		break;
	case 2: /* a piece of itself, elsewhere */
		n = (size_t)dice_below(d, dice_below(d, 2) ? 16 : h->n - at + 1);
		n = n < h->n - at ? n : h->n - at;
		memmove(h->p + dice_below(d, h->n - n + 1), h->p + at, n);
		break;
	case 3:
		if (dice_below(d, 4) == 0)
			h->n = dice_below(d, 2) ? at : h->n - 1; /* cut */
		else
			memset(h->p + at, 0,
			       (size_t)dice_below(d, h->n - at < 64 ? h->n - at : 64));
		break;
	default:
		n = (size_t)1 << dice_below(d, 4);
		while (n > h->n - at)
			n /= 2;
		damage_field(d, h->p + at, n, dice_below(d, 2));
	}
}

/* ---- HDF5 ---- */

#define SUM_MAX ((size_t)4096)

static const char *const signed_[] = {"OHDR", "OCHK", "FRHP", "FHDB", "FHIB",   "BTHD", "BTIN",
				      "BTLF", "FAHD", "FADB", "EAHD", "EAIB",   "EASB", "EADB",
				      "FSHD", "FSSE", "SMTB", "SMLI", "\211HDF"};
static const char *const unsigned_[] = {"TREE", "SNOD", "HEAP", "GCOL"};

static bool is_one(const uint8_t *p, const char *const *of, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(p, of[i], 4) == 0)
			return true;
	return false;
}

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)get(p, 4, false);
}

/* header1 - whether an object header of version 1 may begin at p, of 16 bytes. */
static bool header1(const uint8_t *p)
{
	return p[0] == 1 && p[1] == 0 && p[3] == 0 && get(p + 4, 4, false) == 1 &&
	       get(p + 8, 4, false) >= 16 && get(p + 8, 4, false) < 2000;
}

static void note(struct sums *s, size_t at, size_t len)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 32;
		s->s = realloc(s->s, s->cap * sizeof(*s->s));
		if (!s->s)
			abort();
	}
	s->s[s->n].at = at;
	s->s[s->n++].len = len;
}

void sums_find(const uint8_t *p, size_t n, struct sums *ret)
{
	*ret = (struct sums){0};
	for (size_t at = 0; at + 16 <= n; at++) {
		if (is_one(p + at, unsigned_, sizeof(unsigned_) / sizeof(unsigned_[0])) ||
		    (at % 8 == 0 && header1(p + at)))
			note(ret, at, 0);
		if (!is_one(p + at, signed_, sizeof(signed_) / sizeof(signed_[0])))
			continue;
		for (size_t len = 8; len < SUM_MAX && at + len + 4 <= n; len++)
			if (h5_lookup3(p + at, len) == le32(p + at + len)) {
				note(ret, at, len);
				break;
			}
	}
}

void sums_release(struct sums *s)
{
	free(s->s);
	*s = (struct sums){0};
}

/* address - another place for what an address in a file of n bytes leads to. */
static uint64_t address(struct dice *d, const struct hurt *h, const struct sums *sums,
			size_t self)
{
	const uint64_t edges[] = {0,
				  h->n,
				  h->n - 1,
				  h->n - 8,
				  h->n - 16,
				  UINT64_MAX,
				  UINT64_MAX - 1,
				  UINT64_MAX - 8,
				  INT64_MAX,
				  (uint64_t)1 << 63,
				  (uint64_t)1 << 40,
				  96};

	if (sums->n && dice_below(d, 3))
		return sums->s[dice_below(d, sums->n)].at;
	if (dice_below(d, 2))
		return self;
	return edges[dice_below(d, sizeof(edges) / sizeof(edges[0]))];
}

/* damage_structure - len bytes at `at`, of a structure that begins at self. */
static void damage_structure(struct dice *d, struct hurt *h, const struct sums *sums,
			     size_t self, size_t len)
{
	size_t at = self + (size_t)dice_below(d, len), width;

	if (dice_below(d, 2)) { /* something that may be an address */
		for (size_t i = 0; i < len && at + 8 <= h->n; i++) {
			uint64_t v = get(h->p + at, 8, false);

			if ((v > 0 && v < h->n) || v == UINT64_MAX) {
				put(h->p + at, 8, false, address(d, h, sums, self));
				return;
			}
			at = self + (at - self + 1) % len;
		}
	}
	width = (size_t)1 << dice_below(d, 4);
	while (at + width > h->n)
		width /= 2;
	damage_field(d, h->p + at, width, false);
}

void damage_hdf5(struct dice *d, struct hurt *h, const struct sums *sums)
{
	size_t was = h->n;

	if (h->n < 100 || dice_below(d, 8) == 0) {
		damage_bytes(d, h);
	} else if (sums->n && dice_below(d, 4)) {
		size_t i = (size_t)dice_below(d, sums->n), at = sums->s[i].at,
		       len = sums->s[i].len ? sums->s[i].len : 24 + (size_t)dice_below(d, 400);

		if (at >= h->n)
			at = 0;
		damage_structure(d, h, sums, at, len < h->n - at ? len : h->n - at);
	} else {
		size_t at = place(d, h);

		damage_structure(d, h, sums, at, h->n - at < 16 ? h->n - at : 16);
	}
	if (h->n != was || dice_below(d, 10) == 0)
		return;
	for (size_t i = 0; i < sums->n; i++)
		if (sums->s[i].len)
			put(h->p + sums->s[i].at + sums->s[i].len, 4, false,
			    h5_lookup3(h->p + sums->s[i].at, sums->s[i].len));
}

/* ---- classic netCDF, HDF4: words at places ---- */

#define CDF_HEADER ((size_t)1600)

void damage_cdf(struct dice *d, struct hurt *h)
{
	size_t words = (h->n < CDF_HEADER ? h->n : CDF_HEADER) / 4, at, from;

	if (words < 4 || dice_below(d, 6) == 0) {
		damage_bytes(d, h);
		return;
	}
	at = 4 * (size_t)dice_below(d, dice_below(d, 4) ? words : 12 < words ? 12 : words);
	from = 4 * (size_t)dice_below(d, words);
	switch (dice_below(d, 4)) {
	case 0:
		memmove(h->p + at, h->p + from, 4); /* a count, a length, a tag of another */
		break;
	case 1:
		if (at + 8 <= h->n) {
			damage_field(d, h->p + at, 8, true); /* CDF-5, and long offsets */
			break;
		}
		/* fall through */
	default:
		damage_field(d, h->p + at, 4, true);
	}
}

void damage_hdf4(struct dice *d, struct hurt *h)
{
	size_t block = 4, n, at, other;
	uint8_t *p;

	if (h->n < 40 || dice_below(d, 4) == 0) {
		damage_bytes(d, h);
		return;
	}
	for (int i = 0; i < 20 && dice_below(d, 2); i++) { /* one of the blocks */
		size_t next = (size_t)get(h->p + block + 2, 4, true);

		if (next < 4 || next > h->n - 18)
			break;
		block = next;
	}
	n = (size_t)get(h->p + block, 2, true);
	if (dice_below(d, 8) == 0) { /* how many, and where the next ones are */
		damage_field(d, h->p + block + (dice_below(d, 2) ? 0 : 2), 2, true);
		if (dice_below(d, 3) == 0)
			put(h->p + block + 2, 4, true, block);
		return;
	}
	if (n == 0 || block + 6 + 12 * n > h->n) {
		damage_bytes(d, h);
		return;
	}
	at = block + 6 + 12 * (size_t)dice_below(d, n);
	other = block + 6 + 12 * (size_t)dice_below(d, n);
	p = h->p + at;
	if (dice_below(d, 3) == 0) { /* in what it describes */
		uint64_t off = get(p + 4, 4, true), len = get(p + 8, 4, true);

		if (off + 8 < h->n && len > 0 && len < h->n) {
			off += dice_below(d, len < h->n - off - 8 ? len : h->n - off - 8);
			damage_field(d, h->p + off, (size_t)1 << dice_below(d, 3), true);
			return;
		}
	}
	switch (dice_below(d, 5)) {
	case 0:
		memmove(p, h->p + other, 4);
		break;
	case 1:
		memmove(p + 4, h->p + other + 4, 8);
		break;
	case 2:
		damage_field(d, p + (dice_below(d, 2) ? 0 : 2), 2, true);
		break;
	default:
		damage_field(d, p + (dice_below(d, 2) ? 4 : 8), 4, true);
	}
}

/* ---- zip ---- */

struct record {
	uint8_t id[4];
	size_t size;
	uint8_t fields[24][2]; /* offset, width; ends with width 0 */
};

static const struct record records[] = {
	{{'P', 'K', 1, 2},
	 46,
	 {{6, 2},
	  {8, 2},
	  {10, 2},
	  {16, 4},
	  {20, 4},
	  {24, 4},
	  {28, 2},
	  {30, 2},
	  {32, 2},
	  {34, 2},
	  {36, 2},
	  {38, 4},
	  {42, 4}}},
	{{'P', 'K', 3, 4},
	 30,
	 {{4, 2}, {6, 2}, {8, 2}, {14, 4}, {18, 4}, {22, 4}, {26, 2}, {28, 2}}},
	{{'P', 'K', 5, 6}, 22, {{4, 2}, {6, 2}, {8, 2}, {10, 2}, {12, 4}, {16, 4}, {20, 2}}},
	{{'P', 'K', 6, 6}, 56, {{4, 8}, {16, 4}, {20, 4}, {24, 8}, {32, 8}, {40, 8}, {48, 8}}},
	{{'P', 'K', 6, 7}, 20, {{4, 4}, {8, 8}, {16, 4}}},
};

/* record_at - one of the records of a kind, any; h->n: there is none. */
static size_t record_at(struct dice *d, const struct hurt *h, const struct record *r)
{
	size_t found = h->n, n = 0;

	for (size_t i = 0; i + r->size <= h->n; i++)
		if (memcmp(h->p + i, r->id, 4) == 0 && dice_below(d, ++n) == 0)
			found = i;
	return found;
}

static void damage_name(struct dice *d, uint8_t *p, size_t n)
{
	static const char *const names[] = {"../",     "/",       "..\\",     "\\", "C:\\",
					    "a//b",    "./",      "\xff\xfe", ".z", "..",
					    ".zgroup", ".zarray", "v/0"};
	const char *other = names[dice_below(d, sizeof(names) / sizeof(names[0]))];
	size_t len = strlen(other), at;

	if (n == 0)
		return;
	at = dice_below(d, 2) ? 0 : (size_t)dice_below(d, n);
	for (size_t i = 0; i < len && at + i < n; i++)
		p[at + i] = (uint8_t)other[i];
	if (dice_below(d, 6) == 0)
		p[at] = 0;
}

void damage_zip(struct dice *d, struct hurt *h)
{
	static const uint8_t often[] = {0, 0, 0, 0, 1, 1, 2, 2, 3, 4};
	const struct record *r = &records[often[dice_below(d, sizeof(often))]];
	size_t at = record_at(d, h, r), other = record_at(d, h, r), n = 0, k, name;

	if (at == h->n || dice_below(d, 8) == 0) {
		damage_bytes(d, h);
		return;
	}
	while (r->fields[n][1])
		n++;
	k = (size_t)dice_below(d, n + 1);
	if (k == n) {
		name = at + r->size;
		if (r->size == 46 && name < h->n)
			damage_name(d, h->p + name,
				    (size_t)get(h->p + at + 28, 2, false) % (h->n - name));
		else
			damage_bytes(d, h);
	} else if (other != at && dice_below(d, 2)) { /* overlapping, or the same twice */
		memcpy(h->p + at + r->fields[k][0], h->p + other + r->fields[k][0],
		       r->fields[k][1]);
	} else {
		damage_field(d, h->p + at + r->fields[k][0], r->fields[k][1], false);
	}
}
