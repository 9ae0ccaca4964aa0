/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line with remote sources: addresses and their secrets, the options, and the values of
 * .ncrc. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mountcfg/options.h"

static const struct cfg_files no_files;

static char g_home[64], g_cwd[64];

#define ARGV(...) ((char *[]){(char[]){"nczarrfs"}, __VA_ARGS__, NULL})
#define A(s) ((char[]){s})

static int parse(struct cfg *cfg, struct err *e, char *const *argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	*e = (struct err)ERR_INIT;
	return cfg_parse(argc, argv, &no_files, cfg, e);
}

static void good(struct cfg *cfg, char *const *argv)
{
	struct err e;

	if (parse(cfg, &e, argv) < 0)
		fail_msg("%s: %s", argv[1], e.msg);
}

static void refused(char *const *argv, const char *part)
{
	struct cfg cfg;
	struct err e;

	assert_int_equal(parse(&cfg, &e, argv), -EINVAL);
	if (!strstr(e.msg, part))
		fail_msg("'%s' does not say '%s'", e.msg, part);
	assert_null(strstr(e.msg, "secret"));
}

static void write_file(const char *folder, const char *name, const char *text, mode_t mode)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	(void)unlink(path);
	if (!text)
		return;
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void none(void)
{
	static const char *const names[] = {".ncrc", ".daprc", ".dodsrc"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		write_file(g_home, names[i], NULL, 0);
		write_file(g_cwd, names[i], NULL, 0);
	}
}

static void test_addresses(void **state)
{
	struct cfg cfg;
	char path[256];

	(void)state;
	none();
	good(&cfg, ARGV(A("s3://b/a.zarr#mode=zarr"), A("/mnt")));
	assert_true(cfg.is_remote);
	assert_string_equal(cfg.source, "s3://b/a.zarr#mode=zarr");
	assert_string_equal(cfg.shown, "s3://b/a.zarr");
	cfg_release(&cfg);
	good(&cfg, ARGV(A("file:///d/a%20b.zarr#mode=zarr"), A("/mnt")));
	assert_false(cfg.is_remote);
	assert_string_equal(cfg.source, "/d/a b.zarr");
	assert_string_equal(cfg.shown, cfg.source);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("file://x.zarr"), A("/mnt")));
	(void)snprintf(path, sizeof(path), "%s/x.zarr", g_cwd);
	assert_string_equal(cfg.source, path);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("x.zarr#mode=zarr"), A("/mnt")));
	(void)snprintf(path, sizeof(path), "%s/x.zarr#mode=zarr", g_cwd);
	assert_string_equal(cfg.source, path); /* a path has no fragment */
	cfg_release(&cfg);
	good(&cfg, ARGV(A("info"), A("https://h/x.nc")));
	assert_true(cfg.command == CFG_INFO && cfg.is_remote);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("recover"), A("s3://b/a"), A("x"), A("s3://b/c")));
	assert_int_equal(cfg.more.n, 2);
	assert_string_equal(cfg.more.v[1], "s3://b/c");
	cfg_release(&cfg);
	good(&cfg, ARGV(A("refs"), A("https://h/x.nc")));
	assert_string_equal(cfg.out, "-");
	cfg_release(&cfg);
	good(&cfg, ARGV(A("refs"), A("https://h/x.nc"), A("/o.json")));
	assert_string_equal(cfg.out, "/o.json");
	cfg_release(&cfg);
	good(&cfg, ARGV(A("s3://b/a#mode=nczarr,s3"), A("/m"), A("-ocreate")));
	assert_int_equal(cfg.zarr.mode, CFG_MODE_NCZARR);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("s3://b/a#noxarray"), A("/m"), A("-ocreate")));
	assert_int_equal(cfg.zarr.mode, CFG_MODE_NOXARRAY);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("s3://b/a#mode=nczarr,s3"), A("/m"), A("-ocreate,mode=zarr")));
	assert_int_equal(cfg.zarr.mode, CFG_MODE_ZARR);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("s3://b/a#mode=nczarr"), A("/m")));
	assert_int_equal(cfg.zarr.mode,
			 CFG_MODE_ZARR); /* the mode describes the source, not the view */
	cfg_release(&cfg);
	refused(ARGV(A("http://u:secret@h/x?token=secret"), A("/m"), A("-orw")), "web server");
	refused(ARGV(A("http://h/x"), A("/m"), A("-ocreate")), "web server");
	refused(ARGV(A("recover"), A("http://h/x?token=secret")), "no pending writes");
	refused(ARGV(A("recover"), A("/x"), A("http://h/x?token=secret")),
		"no pending writes");
	refused(ARGV(A("/x"), A("http://u:secret@h/x")), "MOUNTPOINT is a URL");
	refused(ARGV(A("refs"), A("/x"), A("http://u:secret@h/x")), "OUT is a URL");
	refused(ARGV(A("/x"), A("/y"), A("http://u:secret@h/x")), "too many arguments");
	refused(ARGV(A("/x"), A("/y"), A("http://u:secret@h:z/x")), "too many arguments");
	refused(ARGV(A("ftp://u:secret@h/x"), A("/y")), "unknown protocol");
}

static void test_secrets(void **state)
{
	char text[] = "https://me:secret@h/a.nc?token=secret&v=2#mode=bytes";
	char plain[] = "https://h/a.nc";
	size_t n = strlen(text);
	struct cfg cfg;

	(void)state;
	good(&cfg, ARGV(text, A("/mnt")));
	assert_string_equal(cfg.user, "me");
	assert_string_equal(cfg.password, "secret");
	assert_string_equal(cfg.source, "https://h/a.nc?token=secret&v=2#mode=bytes");
	assert_null(strstr(cfg.shown, "secret"));
	for (size_t i = 0; i + 6 <= n; i++) /* also after the end of the remaining text */
		assert_int_not_equal(memcmp(text + i, "secret", 6), 0);
	assert_int_equal(strncmp(text, "https://h/a.nc?", 15), 0);
	cfg_release(&cfg);
	good(&cfg, ARGV(plain, A("/mnt")));
	assert_string_equal(plain, "https://h/a.nc");
	assert_null(cfg.user);
	cfg_release(&cfg);
}

static void test_options(void **state)
{
	struct cfg cfg;
	char path[256];

	(void)state;
	none();
	good(&cfg, ARGV(A("s3://b/a"), A("/mnt")));
	assert_int_equal(cfg.remote.timeout, 60);
	assert_int_equal(cfg.remote.max_attempts, 6);
	assert_int_equal(cfg.remote.max_connections, 16);
	assert_true(cfg.remote.cache_size == 128 << 20 && cfg.remote.prefetch_size == 32 << 20);
	assert_true(cfg.remote.revalidate == 60 && !cfg.remote.cache_dir);
	assert_false(cfg.remote.anonymous || cfg.remote.insecure || cfg.remote.virtual_hosts ||
		     cfg.remote.private_redirects);
	cfg_release(&cfg);
	good(&cfg,
	     ARGV(A("s3://b/a"), A("/mnt"), A("-o"),
		  A("endpoint=http://127.0.0.1:9000/,profile=me,region=eu-west-1,anonymous,"
		    "requester_pays,s3_addressing=virtual,insecure,private_redirects,timeout=5,"
		    "max_attempts=2,max_connections=3,remote_cache_size=2M,prefetch_size=0,"
		    "revalidate=0,cache_dir=c,"
		    "ca_file=ca,bearer_file=/b,netrc_file=n")));
	assert_string_equal(cfg.remote.endpoint, "http://127.0.0.1:9000/");
	assert_true(cfg.remote.anonymous && cfg.remote.requester_pays);
	assert_true(cfg.remote.virtual_hosts && cfg.remote.insecure);
	assert_int_equal(cfg.remote.timeout, 5);
	assert_int_equal(cfg.remote.max_attempts, 2);
	assert_int_equal(cfg.remote.max_connections, 3);
	(void)snprintf(path, sizeof(path), "%s/c", g_cwd);
	assert_string_equal(cfg.remote.cache_dir, path);
	assert_string_equal(cfg.remote.bearer_file, "/b");
	(void)snprintf(path, sizeof(path), "%s/n", g_cwd);
	assert_string_equal(cfg.remote.netrc_file, path);
	assert_true(cfg.remote.disk_cache_size == (uint64_t)10 << 30);
	assert_true(cfg.limits.cache_size == 64 << 20);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("s3://b/a"), A("/mnt"), A("-ocache_dir=/c,disk_cache_size=3G")));
	assert_true(cfg.remote.disk_cache_size == (uint64_t)3 << 30);
	assert_true(cfg.limits.cache_size == 64 << 20);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("/a"), A("/mnt"), A("-ocache_size=3G")));
	assert_true(!cfg.remote.cache_dir && cfg.limits.cache_size == (uint64_t)3 << 30);
	cfg_release(&cfg);
	refused(ARGV(A("/x"), A("/y"), A("-oendpoint=http://u:secret@h")), "-o endpoint");
	refused(ARGV(A("/x"), A("/y"), A("-oendpoint=http://h/x")), "-o endpoint");
	refused(ARGV(A("/x"), A("/y"), A("-oendpoint=s3://h")), "-o endpoint");
	refused(ARGV(A("/x"), A("/y"), A("-oendpoint=h:80")), "-o endpoint");
	refused(ARGV(A("/x"), A("/y"), A("-oregion=a.b/")), "-o region");
	refused(ARGV(A("/x"), A("/y"), A("-omax_attempts=0")), "bad number");
	refused(ARGV(A("/x"), A("/y"), A("-oremote_cache_size=1")), "bad size");
}

static void test_rc(void **state)
{
	struct cfg cfg;

	(void)state;
	none();
	write_file(
		g_home, ".ncrc",
		"# comment\n\n  AWS.PROFILE = home \nAWS.REGION=eu-west-1\r\n"
		"aws.access_key_id=AK\nAWS.SECRET_ACCESS_KEY=SK\nHTTP.TIMEOUT=7\n"
		"[https://other/]HTTP.SSL.CAINFO=/no\n[https://h/d]HTTP.SSL.CAINFO=/yes\n"
		"[https://h/d]HTTP.CREDENTIALS.USERNAME=me\n[h]HTTP.CREDENTIALS.USERNAME=you\n"
		"[h]HTTP.CREDENTIALS.PASSWORD=pw\nHTTP.CREDENTIALS.USERPASSWORD=all:all\n"
		"[unfinished\nnonsense\n=\n[]\n[x]=\n[http://[::1]:80/]AWS.PROFILE=six\n",
		0644);
	write_file(g_cwd, ".dodsrc", "AWS.REGION=us-west-2\nHTTP.NETRC=/netrc\n", 0600);
	good(&cfg, ARGV(A("https://h/d/x.nc"), A("/mnt")));
	assert_string_equal(cfg.remote.profile, "home");
	assert_string_equal(cfg.remote.region, "us-west-2"); /* the later file */
	assert_string_equal(cfg.remote.access_key, "AK");
	assert_string_equal(cfg.remote.secret_key, "SK");
	assert_int_equal(cfg.remote.timeout, 7);
	assert_string_equal(cfg.remote.ca_file, "/yes");
	assert_string_equal(cfg.remote.netrc_file, "/netrc");
	assert_string_equal(cfg.user, "me"); /* the longer URL */
	assert_string_equal(cfg.password, "pw");
	assert_false(cfg.remote.insecure);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("https://h2/x.nc"), A("/mnt"), A("-otimeout=9,profile=mine")));
	assert_null(cfg.user); /* a password without a server is ignored */
	assert_null(cfg.remote.ca_file);
	assert_null(cfg.remote.access_key); /* a profile selects other keys */
	assert_string_equal(cfg.remote.profile, "mine");
	assert_int_equal(cfg.remote.timeout, 9);
	cfg_release(&cfg);
	good(&cfg, ARGV(A("http://h/d/x.nc"), A("/mnt")));
	assert_string_equal(cfg.user, "you"); /* not from the line for https */
	cfg_release(&cfg);
	good(&cfg, ARGV(A("https://h/dx/x.nc"), A("/mnt")));
	assert_null(cfg.remote.ca_file); /* /d is not above /dx */
	cfg_release(&cfg);
	good(&cfg, ARGV(A("http://[::1]/x.nc"), A("/mnt")));
	assert_string_equal(cfg.remote.profile, "six");
	cfg_release(&cfg);
	good(&cfg, ARGV(A("/x.nc"), A("/mnt")));
	assert_null(cfg.remote.profile); /* not for a local source */
	cfg_release(&cfg);
}

/* SECURITY S25 */
static void test_rc_files(void **state)
{
	struct cfg cfg;
	char path[128];

	(void)state;
	none();
	write_file(g_cwd, ".ncrc", "AWS.PROFILE=evil\n", 0666);
	good(&cfg, ARGV(A("s3://b/x"), A("/mnt")));
	assert_null(cfg.remote.profile); /* any user may have written that file */
	cfg_release(&cfg);
	if (geteuid() == 0) {
		char ncrc[PATH_MAX];

		(void)snprintf(ncrc, sizeof(ncrc), "%s/.ncrc", g_cwd);
		write_file(g_cwd, ".ncrc", "AWS.PROFILE=evil\n", 0600);
		assert_int_equal(chown(ncrc, 65534, 65534), 0);
		good(&cfg, ARGV(A("s3://b/x"), A("/mnt")));
		assert_null(cfg.remote.profile); /* another user owns it */
		cfg_release(&cfg);
		assert_int_equal(unlink(ncrc), 0);
	}
	write_file(g_cwd, ".ncrc", "HTTP.SSL.VERIFYPEER=0\nAWS.REGION=evil.example.org/\n",
		   0644);
	refused(ARGV(A("s3://b/x"), A("/mnt")), "region");
	assert_int_equal(setenv("NCRCENV_IGNORE", "1", 1), 0);
	good(&cfg, ARGV(A("s3://b/x"), A("/mnt")));
	assert_false(cfg.remote.insecure || cfg.remote.unverified);
	assert_null(cfg.remote.region);
	cfg_release(&cfg);
	assert_int_equal(unsetenv("NCRCENV_IGNORE"), 0);
	write_file(g_home, "own", "HTTP.SSL.VALIDATE=0\n", 0644);
	(void)snprintf(path, sizeof(path), "%s/own", g_home);
	assert_int_equal(setenv("NCRCENV_RC", path, 1), 0);
	good(&cfg, ARGV(A("s3://b/x"), A("/mnt")));
	assert_true(cfg.remote.unverified);
	/* netCDF-C's key does not allow passwords over http:// */
	assert_false(cfg.remote.insecure);
	assert_null(cfg.remote.region);
	cfg_release(&cfg);
	assert_int_equal(unsetenv("NCRCENV_RC"), 0);
	assert_int_equal(unlink(path), 0);
	none();
}

static int begin(void **state)
{
	(void)state;
	(void)snprintf(g_home, sizeof(g_home), "/tmp/rc-home-XXXXXX");
	(void)snprintf(g_cwd, sizeof(g_cwd), "/tmp/rc-cwd-XXXXXX");
	return mkdtemp(g_home) && mkdtemp(g_cwd) && chdir(g_cwd) == 0 &&
			       setenv("HOME", g_home, 1) == 0
		       ? 0
		       : -1;
}

static int end(void **state)
{
	(void)state;
	return chdir("/") == 0 && rmdir(g_home) == 0 && rmdir(g_cwd) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_secrets),
		cmocka_unit_test(test_options),   cmocka_unit_test(test_rc),
		cmocka_unit_test(test_rc_files),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
