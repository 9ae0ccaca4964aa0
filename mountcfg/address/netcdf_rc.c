/* SPDX-License-Identifier: BSD-3-Clause */
/* netcdf_rc.c - reads .ncrc, .daprc and .dodsrc as netCDF-C does: those of $HOME, then those of the
 * working directory; lines KEY=VALUE, or [URL]KEY=VALUE for addresses at or below a URL.
 *
 * It is stricter than netCDF-C in two points: files of other users are ignored, because /tmp may
 * contain some; a user and a password are accepted only in lines with a URL, so that they go to no
 * other server. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/os/io.h"
#include "base/core/str.h"
#include "mountcfg/address/address_int.h"
#include "mountcfg/options/option_table.h"

enum {
	FILE_MAX_BYTES = 1 << 20,
	TIMEOUT_MAX = 86400,
};

/* The supported keys; some have older names. */
enum netcdf_rc_key {
	KEY_PROFILE,
	KEY_REGION,
	KEY_ACCESS,
	KEY_SECRET,
	KEY_CONFIG,
	KEY_CA,
	KEY_VERIFY,
	KEY_TIMEOUT,
	KEY_NETRC,
	KEY_USER,
	KEY_PASSWORD,
	KEY_BOTH,
	N_KEYS,
};

static const struct {
	const char *name;
	enum netcdf_rc_key key;
} names[] = {
	{"AWS.PROFILE", KEY_PROFILE},
	{"AWS.REGION", KEY_REGION},
	{"AWS.ACCESS_KEY_ID", KEY_ACCESS},
	{"AWS.SECRET_ACCESS_KEY", KEY_SECRET},
	{"AWS.CONFIG_FILE", KEY_CONFIG},
	{"HTTP.SSL.CAINFO", KEY_CA},
	{"HTTP.SSL.VERIFYPEER", KEY_VERIFY},
	{"HTTP.SSL.VALIDATE", KEY_VERIFY},
	{"HTTP.TIMEOUT", KEY_TIMEOUT},
	{"HTTP.NETRC", KEY_NETRC},
	{"HTTP.CREDENTIALS.USERNAME", KEY_USER},
	{"HTTP.CREDENTIALS.USER", KEY_USER},
	{"HTTP.CREDENTIALS.PASSWORD", KEY_PASSWORD},
	{"HTTP.CREDENTIALS.USERPASSWORD", KEY_BOTH},
};

/* netcdf_rc_found - the present value of a key. */
struct netcdf_rc_found {
	char *value;   /* owned */
	size_t weight; /* length of its URL plus one: the most specific line applies */
};

struct rc {
	const struct cfg *cfg;
	const struct address *a;
	struct netcdf_rc_found found[N_KEYS];
};

/* netcdf_rc_below - true if `text` is at or below the URL of a line. */
static bool netcdf_rc_below(const struct url *of, const char *text)
{
	struct url u;
	size_t n = strlen(of->path);
	bool ok;

	if (url_parse(text, &u, NULL) < 0)
		return false;
	while (n > 0 && of->path[n - 1] == '/')
		n--;
	ok = url_origin_same(of, &u) && strncmp(of->path, u.path, n) == 0 &&
	     (u.path[n] == '/' || u.path[n] == '\0');
	url_release(&u);
	return ok;
}

/* is_for - true if a line with this URL applies to the address. A host alone has the address's
 * protocol. */
static bool is_for(const struct rc *rc, const char *text)
{
	const char *source = rc->cfg->source;
	auto_free char *full = NULL;
	struct url u;
	bool ok;

	full = str_printf("%.*s%s",
			  url_is(text) ? 0 : (int)(strstr(source, "://") + 3 - source), source,
			  text);
	if (!full || url_parse(full, &u, NULL) < 0)
		return false;
	ok = netcdf_rc_below(&u, source) || (rc->a->url && netcdf_rc_below(&u, rc->a->url));
	url_release(&u);
	return ok;
}

static int netcdf_rc_take(struct rc *rc, enum netcdf_rc_key key, size_t weight,
			  const char *value, struct err *e)
{
	struct netcdf_rc_found *f = &rc->found[key];

	if (weight < f->weight)
		return 0;
	str_wipe(f->value);
	*f = (struct netcdf_rc_found){strdup(value), weight};
	return f->value ? 0 : err_nomem(e);
}

static int read_line(struct rc *rc, char *line, struct err *e)
{
	char *url = NULL, *value;
	size_t weight = 1;

	line = str_trim(line);
	if (*line == '[') { /* an address may contain brackets itself: [http://[::1]/]KEY */
		for (value = line + 1; *value && !(value[0] == ']' && value[1] != ':' &&
						   value[1] != '/' && value[1] != ']');)
			value++;
		if (!*value)
			return 0;
		*value = '\0';
		url = str_trim(line + 1);
		line = str_trim(value + 1);
		weight += strlen(url);
	}
	if (!*line || *line == '#' || (url && !is_for(rc, url)))
		return 0;
	value = strchr(line, '=');
	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const enum netcdf_rc_key key = names[i].key;

		if (strcasecmp(str_trim(line), names[i].name) != 0)
			continue;
		if (!url && (key == KEY_USER || key == KEY_PASSWORD || key == KEY_BOTH))
			return 0;
		return netcdf_rc_take(rc, key, weight, value ? str_trim(value) : "1", e);
	}
	return 0;
}

/* mine - true if a file is trusted. */
static bool mine(const struct stat *st)
{
	return S_ISREG(st->st_mode) && (st->st_uid == geteuid() || st->st_uid == 0) &&
	       !(st->st_mode & S_IWOTH) && st->st_size > 0 && st->st_size <= FILE_MAX_BYTES;
}

/* netcdf_rc_read_file - ignores a file that does not exist or is not trusted. */
static int netcdf_rc_read_file(struct rc *rc, const char *path, struct err *e)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	char *text, *rest, *line;
	int r = 0;

	if (fd < 0 && errno == EACCES)
		return err_set(
			e, -EACCES,
			"'%s': permission denied: make it readable, or set NCRCENV_IGNORE=1 to "
			"ignore it",
			path);
	if (fd < 0 || fstat(fd, &st) < 0 || !mine(&st))
		return 0;
	text = rest = calloc(1, (size_t)st.st_size + 1);
	if (!text)
		return err_nomem(e);
	if (io_pread(fd, text, (size_t)st.st_size, 0, NULL) == 0)
		while (r == 0 && (line = strsep(&rest, "\n")))
			r = read_line(rc, line, e);
	explicit_bzero(text, (size_t)st.st_size);
	free(text);
	return r;
}

static int read_folder(struct rc *rc, const char *folder, struct err *e)
{
	static const char *const files[] = {".ncrc", ".daprc", ".dodsrc"};
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(files) && r == 0; i++) {
		auto_free char *path = NULL;

		path = str_printf("%s/%s", folder, files[i]);
		if (!path)
			return err_nomem(e);
		r = netcdf_rc_read_file(rc, path, e);
	}
	return r;
}

static int netcdf_rc_read_all(struct rc *rc, struct err *e)
{
	const char *only = getenv("NCRCENV_RC"), *home = getenv("NCRCENV_HOME");
	auto_free char *cwd = getcwd(NULL, 0);
	int r = 0;

	if (getenv("NCRCENV_IGNORE"))
		return 0;
	if (only && *only)
		return netcdf_rc_read_file(rc, only, e);
	if (!home || !*home)
		home = getenv("HOME");
	if (home && *home)
		r = read_folder(rc, home, e);
	if (r == 0 && cwd && (!home || strcmp(home, cwd) != 0))
		r = read_folder(rc, cwd, e);
	return r;
}

/* Using the values. */

/* netcdf_rc_give - move the value to a field that is not set yet. */
static void netcdf_rc_give(struct netcdf_rc_found *f, char **field)
{
	if (!*field && f->value && *f->value)
		*field = steal(&f->value);
}

static bool off(const char *value)
{
	return strcmp(value, "0") == 0 || strcasecmp(value, "false") == 0 ||
	       strcasecmp(value, "no") == 0 || strcasecmp(value, "off") == 0;
}

/* give_password - for a web server without other credentials. */
static int give_password(struct cfg *cfg, const struct address *a, struct rc *rc, struct err *e)
{
	struct netcdf_rc_found *both = &rc->found[KEY_BOTH], *user = &rc->found[KEY_USER];
	struct netcdf_rc_found *password = &rc->found[KEY_PASSWORD];
	char *colon = both->value ? strchr(both->value, ':') : NULL;

	if (a->kind != ADDRESS_HTTP || cfg->user || cfg->remote.bearer_file)
		return 0;
	if (!user->value && colon) {
		*colon = '\0';
		if (netcdf_rc_take(rc, KEY_PASSWORD, SIZE_MAX, colon + 1, e) < 0 ||
		    netcdf_rc_take(rc, KEY_USER, SIZE_MAX, both->value, e) < 0)
			return -ENOMEM;
	}
	if (user->value && *user->value) {
		netcdf_rc_give(user, &cfg->user);
		netcdf_rc_give(password, &cfg->password);
	}
	return 0;
}

static int netcdf_rc_apply(struct cfg *cfg, const struct address *a, struct rc *rc,
			   struct err *e)
{
	struct netcdf_rc_found *f = rc->found;
	uint64_t seconds;

	if (!cfg->remote.profile && !a->profile) { /* the user's profile selects other keys */
		netcdf_rc_give(&f[KEY_ACCESS], &cfg->remote.access_key);
		netcdf_rc_give(&f[KEY_SECRET], &cfg->remote.secret_key);
	}
	netcdf_rc_give(&f[KEY_PROFILE], &cfg->remote.profile);
	netcdf_rc_give(&f[KEY_REGION], &cfg->remote.region);
	netcdf_rc_give(&f[KEY_CONFIG], &cfg->remote.aws_config);
	netcdf_rc_give(&f[KEY_CA], &cfg->remote.ca_file);
	if (f[KEY_NETRC].value && !off(f[KEY_NETRC].value) &&
	    strcmp(f[KEY_NETRC].value, "1") != 0)
		netcdf_rc_give(&f[KEY_NETRC], &cfg->remote.netrc_file);
	if (f[KEY_VERIFY].value && off(f[KEY_VERIFY].value))
		cfg->remote.unverified = true;
	if (f[KEY_TIMEOUT].value && !cfg_said(cfg, "timeout") &&
	    str_u64(f[KEY_TIMEOUT].value, strlen(f[KEY_TIMEOUT].value), TIMEOUT_MAX,
		    &seconds) == 0 &&
	    seconds > 0)
		cfg->remote.timeout = (uint32_t)seconds;
	return give_password(cfg, a, rc, e);
}

int cfg_rc(struct cfg *cfg, const struct address *a, struct err *e)
{
	struct rc rc = {.cfg = cfg, .a = a};
	int r = netcdf_rc_read_all(&rc, e);

	if (r == 0)
		r = netcdf_rc_apply(cfg, a, &rc, e);
	for (size_t i = 0; i < N_KEYS; i++)
		str_wipe(rc.found[i].value);
	return r;
}
