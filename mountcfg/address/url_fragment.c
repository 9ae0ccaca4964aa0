/* SPDX-License-Identifier: BSD-3-Clause */
/* url_fragment.c - parses the part of an address after '#': netCDF-C's mode= and its keys, and the
 * modes that a word of mode= implies. */
#include <errno.h>

#include "base/core/str.h"
#include "mountcfg/address/address_int.h"

static const struct {
	const char *word;
	unsigned mode;
	bool bare; /* the word alone is a mode, too: #zarr */
} modes[] = {
	{"nczarr", MODE_NCZARR, true},
	{"zarr", MODE_ZARR, true},
	{"xarray", MODE_XARRAY, true},
	{"noxarray", MODE_NOXARRAY, true},
	{"file", MODE_FILE, true},
	{"zip", MODE_ZIP, true},
	{"s3", MODE_S3, true},
	{"gs3", MODE_GS3, true},
	{"bytes", MODE_BYTES, true},
	{"consolidated", MODE_CONSOLIDATED, true},
	{"netcdf-3", MODE_NETCDF, false},
	{"netcdf3", MODE_NETCDF, false},
	{"classic", MODE_NETCDF, false},
	{"netcdf-4", MODE_NETCDF, false},
	{"netcdf4", MODE_NETCDF, false},
	{"enhanced", MODE_NETCDF, false},
	{"dap2", MODE_OTHER, true},
	{"dap4", MODE_OTHER, true},
};

static int unknown_mode(const char *text, size_t n, struct err *e)
{
	const char *all[ARRAY_LEN(modes)], *near;
	auto_free char *word = strndup(text, n);

	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		all[i] = modes[i].word;
	near = word ? cfg_nearest(word, all, ARRAY_LEN(all)) : NULL;
	if (near)
		return err_set(e, -EINVAL, "mode=%.*s: unknown: did you mean '%s'?", (int)n,
			       text, near);
	return err_set(e, -EINVAL,
		       "mode=%.*s: unknown: use zarr, nczarr, noxarray, s3, gs3, zip or bytes",
		       (int)n, text);
}

static int add_mode(unsigned *mode, const char *text, size_t n, struct err *e)
{
	if (n == 4 && strncasecmp(text, "udf", 3) == 0 && text[3] >= '0' && text[3] <= '9')
		return err_set(
			e, -EOPNOTSUPP,
			"mode=%.*s: user-defined formats are not supported",
			(int)n, text);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		if (!str_is_nocase(modes[i].word, text, n))
			continue;
		if (modes[i].mode == MODE_OTHER)
			return err_set(
				e, -EOPNOTSUPP,
				"mode=%.*s: OPeNDAP is a protocol that nczarrfs does not "
				"speak: ask the server for the file itself",
				(int)n, text);
		*mode |= modes[i].mode;
		return 0;
	}
	return unknown_mode(text, n, e);
}

static int add_modes(unsigned *mode, const char *text, size_t n, struct err *e)
{
	const char *end = text + n;
	int rc = 0;

	for (size_t len; text < end && rc == 0; text += len + 1) {
		const char *comma = memchr(text, ',', (size_t)(end - text));

		len = (size_t)((comma ? comma : end) - text);
		if (len)
			rc = add_mode(mode, text, len, e);
	}
	return rc;
}

/* url_fragment_keep - store the decoded value of a key; a later one, also an empty one, replaces an
 * earlier one. */
static int url_fragment_keep(char **field, const char *value, size_t n, struct err *e)
{
	free(steal(field));
	return n ? address_decode(value, n, field, e) : 0;
}

static bool bare_mode(const char *text, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (modes[i].bare && str_is_nocase(modes[i].word, text, n))
			return true;
	return false;
}

/* url_fragment_add_key - "key=value" or "key". netCDF-C's keys that have no effect here (log, show,
 * fetch ...) and unknown ones are ignored, unless they resemble one that has an effect. */
static int url_fragment_add_key(struct address *a, unsigned *mode, const char *text, size_t n,
				struct err *e)
{
	static const char *const keys[] = {"mode", "aws.profile", "aws.region"};
	const char *eq = memchr(text, '=', n), *near, *value = eq ? eq + 1 : text;
	size_t len = eq ? (size_t)(eq - text) : n, n_value = eq ? n - len - 1 : 0;
	auto_free char *key = NULL;

	if (str_is_nocase("mode", text, len))
		return add_modes(mode, value, n_value, e);
	if (str_is_nocase("aws.profile", text, len))
		return url_fragment_keep(&a->profile, value, n_value, e);
	if (str_is_nocase("aws.region", text, len))
		return url_fragment_keep(&a->region, value, n_value, e);
	if (bare_mode(text, len))
		return add_mode(mode, text, len, e);
	key = strndup(text, len);
	near = key && eq && len < 16 ? cfg_nearest(key, keys, ARRAY_LEN(keys)) : NULL;
	if (near)
		return err_set(e, -EINVAL, "'#%s=': unknown: did you mean '#%s='?", key, near);
	return 0;
}

/* url_fragment_infer - add the modes that others imply. */
static unsigned url_fragment_infer(unsigned mode)
{
	if (mode & MODE_NOXARRAY)
		mode = (mode & ~(unsigned)MODE_XARRAY) | MODE_NCZARR | MODE_ZARR;
	if (mode & MODE_XARRAY)
		mode |= MODE_ZARR;
	if (mode & MODE_ZARR)
		mode |= MODE_NCZARR;
	if (mode & MODE_BYTES)
		mode &= ~(unsigned)(MODE_NCZARR | MODE_ZARR);
	return mode;
}

int fragment_parse(const char *text, struct address *a, unsigned *ret_mode, struct err *e)
{
	unsigned mode = 0;
	int rc = 0;

	while (text && *text && rc == 0) {
		size_t n = strcspn(text, "&;");

		rc = url_fragment_add_key(a, &mode, text, n, e);
		text += n + (text[n] != '\0');
	}
	if (rc == 0 && a->region && !s3_region_ok(a->region))
		rc = err_set(e, -EINVAL,
			     "aws.region: not the name of a region, such as us-east-1");
	*ret_mode = url_fragment_infer(mode);
	return rc;
}
