/* SPDX-License-Identifier: BSD-3-Clause */
/* Configuration files: the origin of an option, and errors. SEMANTICS G1 */
#include <errno.h>
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

static char folder[] = "/tmp/nczarrfs-conf-XXXXXX";
static char user_file[64], system_file[64];
static const struct cfg_files both = {.system = system_file, .user = user_file};

#define ARGV(...) ((char *[]){(char[]){"nczarrfs"}, __VA_ARGS__, NULL})
#define A(s) ((char[]){s})

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	(void)snprintf(user_file, sizeof(user_file), "%s/user.conf", folder);
	(void)snprintf(system_file, sizeof(system_file), "%s/system.conf", folder);
	return setenv("HOME", "/h/of", 1);
}

static int drop(void **state)
{
	(void)state;
	(void)unlink(user_file);
	(void)unlink(system_file);
	return rmdir(folder);
}

static void put(const char *path, const void *text, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0600), 0);
}

/* files - write the two files; NULL: no such file. */
static void files(const char *user, const char *system)
{
	(void)unlink(user_file);
	(void)unlink(system_file);
	if (user)
		put(user_file, user, strlen(user));
	if (system)
		put(system_file, system, strlen(system));
}

static struct cfg parsed(char **argv)
{
	struct err e = ERR_INIT;
	struct cfg cfg;
	int n = 0;

	while (argv[n])
		n++;
	if (cfg_parse(n, argv, &both, &cfg, &e) < 0)
		fail_msg("%s", e.msg);
	return cfg;
}

static void refused_line(char **argv, const char *say)
{
	struct err e = ERR_INIT;
	struct cfg cfg;
	int n = 0;

	while (argv[n])
		n++;
	if (cfg_parse(n, argv, &both, &cfg, &e) == 0)
		fail_msg("taken, without '%s'", say);
	if (!strstr(e.msg, say))
		fail_msg("'%s' is not in: %s", say, e.msg);
}

/* refused - check the error for a user's file, which names the file and a line. */
static void refused(const char *text, const char *say)
{
	char name[sizeof(user_file) + 2];
	struct err e = ERR_INIT;
	struct cfg cfg;

	files(text, NULL);
	refused_line(ARGV(A("/x"), A("/m")), say);
	(void)snprintf(name, sizeof(name), "%s:", user_file);
	assert_true(cfg_parse(3, ARGV(A("/x"), A("/m")), &both, &cfg, &e) < 0);
	if (strncmp(e.msg, name, strlen(name)) != 0 || e.msg[strlen(name)] < '1' ||
	    e.msg[strlen(name)] > '9')
		fail_msg("no file and line: %s", e.msg);
}

static const char *from(const struct cfg *cfg, const char *name)
{
	const char *where = cfg_where(cfg, name), *slash = strrchr(where, '/');

	return slash ? slash + 1 : where;
}

/* only_root - the system's file is read if it belongs to root. */
static void only_root(void)
{
	if (geteuid() != 0)
		skip();
}

/* The word that an option takes in place of a path is not a relative path. */
static void test_word_for_path(void **state)
{
	struct cfg cfg;

	(void)state;
	files("[defaults]\nconcat_index = none\n", NULL);
	cfg = parsed(ARGV(A("-o"), A("concat=time"), A("/x/*.nc"), A("/m")));
	assert_string_equal(cfg.concat.index, "none");
	cfg_release(&cfg);
	files("[defaults]\nconcat_index = ~/index\n", NULL);
	cfg = parsed(ARGV(A("-o"), A("concat=time"), A("/x/*.nc"), A("/m")));
	assert_string_equal(cfg.concat.index, "/h/of/index");
	cfg_release(&cfg);
}

/* test_rechunk - of rechunk and rw the one with higher precedence applies. */
static void test_rechunk(void **state)
{
	struct cfg cfg;

	(void)state;
	files("[defaults]\nrw = yes\n[source /data/*]\nrechunk = time=all,lat=8\n", NULL);
	cfg = parsed(ARGV(A("/data/a"), A("/m")));
	assert_int_equal(cfg.rules.rechunk.n, 1);
	assert_string_equal(cfg.rules.rechunk.v[0], "time=all,lat=8");
	assert_false(cfg.write.rw);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("/data/a"), A("/m"), A("-ocreate")));
	assert_int_equal(cfg.rules.rechunk.n, 0);
	assert_true(cfg.write.rw && cfg.write.create);
	cfg_release(&cfg);
	/* references are those of the chunks of SOURCE */
	cfg = parsed(ARGV(A("refs"), A("/data/a")));
	assert_int_equal(cfg.rules.rechunk.n, 0);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("refs"), A("/data/a"), A("-orechunk=lat=8")));
	assert_int_equal(cfg.rules.rechunk.n, 1);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("/x"), A("/m"), A("-orechunk=time=1")));
	assert_int_equal(cfg.rules.rechunk.n, 1);
	assert_false(cfg.write.rw);
	cfg_release(&cfg);
}

/* test_read_only - an option that cannot be with rw or create is rejected with it, at whatever
 * places the two are; the message names both. */
static void test_read_only(void **state)
{
	struct cfg cfg;

	(void)state;
	files("[defaults]\nrw = yes\n[source /c/*]\nview = classic\n"
	      "[source /j/*]\nconcat = time\n",
	      NULL);
	refused_line(ARGV(A("/x"), A("/m"), A("-oview=classic")),
		     "-o view=classic is read-only: leave out rw of ");
	refused_line(ARGV(A("/x"), A("/m"), A("-oview=classic")), "user.conf:2 (-o rw=no), or");
	refused_line(ARGV(A("/x"), A("/m"), A("-oconcat=time")),
		     "-o concat: joined files are read-only: leave out rw of ");
	refused_line(ARGV(A("/c/a"), A("/m")), "user.conf:4: view=classic is read-only");
	refused_line(ARGV(A("/c/a"), A("/m"), A("-orw")),
		     "user.conf:4: view=classic is read-only: leave out rw, or");
	refused_line(ARGV(A("/j/a"), A("/m"), A("-ocreate")),
		     "user.conf:6: concat: joined files are read-only: leave out create, or");
	refused_line(ARGV(A("-orw,view=classic"), A("/x"), A("/m")), "leave out rw, or write");
	cfg = parsed(ARGV(A("/x"), A("/m"), A("-oview=classic,rw=no")));
	assert_false(cfg.write.rw);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("info"), A("/j/a"))); /* commands only read */
	assert_string_equal(cfg.concat.dim, "time");
	cfg_release(&cfg);
}

/* SEMANTICS G1 */
static void test_order(void **state)
{
	struct cfg cfg;

	(void)state;
	only_root();
	files("[defaults]\nmax_attempts = 3\ntimeout = 3\nmax_connections = 3\ncommit_delay=3\n"
	      "[source /data/*]\nmax_attempts = 4\ntimeout = 4\nmax_connections = 4\n"
	      "[source /data/a/*]\nmax_connections = 5\n"
	      "[mount one]\nsource = /data/a/x.nc\ntarget = ~/mnt\nmax_attempts = 6\ntimeout = 6\n",
	      "[defaults]\nmax_attempts = 2\ntimeout = 2\nopen_datasets = 2\ncommit_delay=2\n"
	      "[source /data/a/*]\nmax_connections = 7\n");
	cfg = parsed(ARGV(A("mount"), A("-o"), A("max_attempts=9"), A("one")));
	assert_int_equal(cfg.command, CFG_MOUNT);
	assert_string_equal(cfg.source, "/data/a/x.nc");
	assert_string_equal(cfg.mountpoint, "/h/of/mnt");
	assert_int_equal(cfg.remote.max_attempts, 9);
	assert_string_equal(from(&cfg, "max_attempts"), "command line");
	assert_int_equal(cfg.remote.timeout, 6);
	assert_string_equal(from(&cfg, "timeout"), "user.conf:16");
	/* as specific as the system's: the user's wins */
	assert_int_equal(cfg.remote.max_connections, 5);
	assert_string_equal(from(&cfg, "max_connections"), "user.conf:11");
	assert_int_equal(cfg.write.commit_delay, 3);
	assert_int_equal(cfg.limits.open_datasets, 2);
	assert_string_equal(from(&cfg, "open_datasets"), "system.conf:4");
	assert_string_equal(from(&cfg, "cache_size"), "built in");
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("/data/b"), A("/m"), A("-o"), A("rw")));
	assert_int_equal(cfg.remote.max_connections, 4);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("--no-config"), A("/data/b"), A("/m")));
	assert_int_equal(cfg.remote.max_connections, 16);
	assert_int_equal(cfg.config.read.n, 0);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("--config"), system_file, A("/data/b"), A("/m")));
	assert_int_equal(cfg.remote.max_connections, 16);
	assert_int_equal(cfg.remote.max_attempts, 2);
	cfg_release(&cfg);
}

/* SEMANTICS G1: repeatable options have one origin, and so have options that cancel each other */
static void test_whole(void **state)
{
	struct cfg cfg;

	(void)state;
	files("[defaults]\nfilter = v1,zstd\nfilter = v2,zstd\nallow_other = yes\nrw=yes\n"
	      "noexec = yes\nzarr_format = 3\nshards = yes\nchunk_key_encoding = v2\n",
	      NULL);
	cfg = parsed(ARGV(A("/x"), A("/m")));
	assert_int_equal(cfg.rules.filters.n, 2);
	assert_true(cfg.write.rw && cfg.zarr.zarr3 && cfg.zarr.shard_size == (uint64_t)64 << 20);
	assert_int_equal(cfg.fuse_opts.n, 3); /* and default_permissions */
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("/x"), A("/m"),
			  A("-ofilter=v3,zstd,allow_other=no,ro,exec,mode=nczarr")));
	assert_int_equal(cfg.rules.filters.n, 1);
	assert_string_equal(cfg.rules.filters.v[0], "v3,zstd");
	assert_false(cfg.write.rw || cfg.zarr.zarr3 || cfg.zarr.shard_size);
	assert_int_equal(cfg.fuse_opts.n, 2);
	assert_string_equal(cfg.fuse_opts.v[0], "ro");
	assert_string_equal(cfg.fuse_opts.v[1], "exec");
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("/x"), A("/m"), A("-orw=no,zarr_format=2")));
	assert_false(cfg.write.rw || cfg.zarr.zarr3 || cfg.zarr.shard_size);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("refs"), A("/x"))); /* a default does not conflict with it */
	assert_false(cfg.write.rw || cfg.zarr.zarr3);
	assert_int_equal(cfg.rules.filter, CFG_FILTER_KEEP);
	assert_int_equal(cfg.rules.filters.n, 0);
	cfg_release(&cfg);
	refused_line(ARGV(A("refs"), A("/x"), A("-orw")), "leave out rw");
	files("[mount a]\nsource=/x\ntarget=/m\nrw=yes\nnew_files=keep\n"
	      "[mount b]\nsource=/x\ntarget=/m\nnew_files=keep\n",
	      NULL);
	cfg = parsed(ARGV(A("mount"), A("a"), A("-oro")));
	assert_false(cfg.write.rw);
	cfg_release(&cfg);
	refused_line(ARGV(A("mount"), A("b")), "new_files: only with rw");
	refused_line(ARGV(A("mount"), A("a"), A("-oro,new_files=keep")), "new_files: only with rw");
}

static void test_forms(void **state)
{
	char text[16384], path[2048];
	struct cfg cfg;

	(void)state;
	/* blanks, comments, a byte order mark, CR, a long line, '#' in a value */
	memset(path, 'a', sizeof(path));
	memcpy(path, "/data/ ;b;c #d;", 15);
	path[6] = 'x';
	path[sizeof(path) - 1] = '\0';
	(void)snprintf(text, sizeof(text),
		       "\xef\xbb\xbf; first\r\n[defaults]\r\n   max_attempts : 3 ; three\r\n"
		       "\ttimeout=4\n# more\n[source %s]\nmax_connections = 8\n"
		       "[mount long]\nsource = %s\ntarget = /m\n"
		       "[source http://[::1]:8080/*]\nmax_attempts = 7\n",
		       "/data/x;b;c #d*", path);
	files(text, NULL);
	cfg = parsed(ARGV(A("mount"), A("long")));
	assert_string_equal(cfg.source, path);
	assert_int_equal(cfg.remote.max_attempts, 3);
	assert_int_equal(cfg.remote.timeout, 4);
	assert_int_equal(cfg.remote.max_connections, 8);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("http://[::1]:8080/a/b.nc"), A("/m")));
	assert_int_equal(cfg.remote.max_attempts, 7);
	cfg_release(&cfg);
}

/* test_operands - operands of `mount` that are names, and those that are SOURCE and MOUNTPOINT. */
static void test_operands(void **state)
{
	char secret[] = "http://u:secret@h/a.zarr", place[] = "/m";
	const size_t n = strlen(secret);
	struct cfg cfg;

	(void)state;
	files("[mount a.nc]\nsource=/x\ntarget=/t\n[mount b]\nsource=/y\ntarget=/u\n", NULL);
	cfg = parsed(ARGV(A("mount"), A("a.nc")));
	assert_int_equal(cfg.command, CFG_MOUNT);
	assert_string_equal(cfg.mountpoint, "/t");
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("mount"), A("a.nc"), A("b")));
	assert_int_equal(cfg.command, CFG_MOUNT_NAMED);
	assert_int_equal(cfg.more.n, 2);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("mount"), A("-f"), A("./a.nc"), A("b")));
	assert_int_equal(cfg.command, CFG_MOUNT);
	assert_int_equal(cfg.more.n, 0);
	assert_string_equal(strrchr(cfg.source, '/'), "/a.nc");
	assert_string_equal(strrchr(cfg.mountpoint, '/'), "/b");
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("mount"), A("--create"), A("new"), A("m")));
	assert_int_equal(cfg.command, CFG_MOUNT);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("mount"), A("*.nc"), A("--concat=x"), A("m")));
	assert_string_equal(strrchr(cfg.source, '/'), "/*.nc");
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("mount"), secret, place));
	assert_string_equal(cfg.source, "http://h/a.zarr");
	assert_string_equal(cfg.password, "secret");
	for (size_t i = 0; i + 6 <= n; i++)
		assert_int_not_equal(memcmp(secret + i, "secret", 6), 0);
	cfg_release(&cfg);
	refused_line(ARGV(A("mount"), A("/etc/passwd")), "'/etc/passwd' is a file, not a named");
	refused_line(ARGV(A("mount"), A("http://u:secret@h/x")), "'http://h/x' is a URL, not");
	refused_line(ARGV(A("mount"), A("c"), A("b")), "'c': no mount has this name");
	refused_line(ARGV(A("mount"), A("nosuchfile"), A("b")),
		     "no mount has this name, and no such file exists: check the path");
	refused_line(ARGV(A("mount"), A("/x"), A("/y"), A("/z")), "too many arguments");
	refused_line(ARGV(A("mount"), A("-f"), A("a.nc"), A("b")), "-f: mount one NAME only");
}

/* SEMANTICS G2 */
static void test_refused(void **state)
{
	static char big[300 << 10], line[9000];

	(void)state;
	refused("[defaults]\n\ncache_sise = 1G\n",
		"user.conf:3: cache_sise: unknown option: did "
		"you mean 'cache_size'?");
	refused("[defaults]\nallow_ohter = yes\n", "did you mean 'allow_other'?");
	refused("[mount a]\nsource=/a\ntarget=/b\nsuorce=/c\n", "did you mean 'source'?");
	refused("[defaults]\nsource = /a\n", "source: unknown option");
	refused("[default]\n", "user.conf:1: unknown section [default]: did you mean "
			       "[defaults]?");
	refused("[mnt a]\n", "did you mean [mount NAME]?");
	refused("[what]\n", "there are [defaults]");
	refused("max_attempts = 3\n", "outside of any section");
	refused("[defaults]\ntries\n", "user.conf:2: not a key with a value");
	refused("[defaults]\ntries\ntimeout=3\n", "user.conf:2: not a key with a value");
	refused("[defaults]\n= 3\ntimeout=3\n", "user.conf:2: not a key with a value");
	refused("[defaults]\ntimeout=3\r4\n", "user.conf:2: byte 0x0d");
	refused("[defaults\n", "must end with ']'");
	refused("[defaults] max_attempts=3\n", "must end with ']'");
	refused("[defaults]\nmax_attempts = 0\n", "user.conf:2: max_attempts: bad number '0'");
	refused("[defaults]\nrw = maybe\n", "yes or no");
	refused("[defaults]\nallow_other = 1\n", "yes or no");
	refused("[defaults]\noptions = max_attempts=0\n", "user.conf:2: max_attempts: bad number");
	refused("[defaults]\nconfig = /x\n", "allowed only on the command line");
	refused("[defaults]\ncache_dir = x\n", "absolute path");
	refused("[defaults]\ncache_dir = none\n", "absolute path");
	refused("[defaults]\nconcat_index = x\n", "absolute path");
	refused("[mount a]\nsource=/a\n", "needs a line 'target = DIRECTORY'");
	refused("[mount a]\nsource=/a\ntarget=/b\n[mount a]\nsource=/a\ntarget=/b\n",
		"is defined twice: see line 1");
	refused("[mount a/b]\nsource=/a\ntarget=/b\n", "use a name");
	refused("[mount]\n", "use a name");
	refused("[source]\n", "needs a pattern");
	refused("[mount a]\nsource=/a\ntarget=/b\nauto=1\n", "use yes or no");
	files("[mount archive]\nsource=/a\ntarget=b\n", NULL);
	refused_line(ARGV(A("mount"), A("archive")), "must be an absolute path");
	files("[mount archive]\nsource=/a\ntarget=/b\n", NULL);
	refused_line(ARGV(A("mount"), A("archvie")), "did you mean 'archive'?");
	refused_line(ARGV(A("mount"), A("-a"), A("archive")), "in place of names");
	refused_line(ARGV(A("mount")), "NAME missing");
	refused_line(ARGV(A("-a"), A("/x"), A("/m")), "only mount and umount have it");
	refused_line(ARGV(A("--config"), A("/no/such"), A("/x"), A("/m")), "/no/such");
	/* bytes that are not text, and too many of them */
	put(user_file, "[defaults]\nmax_attempts = 3\0\n", 29);
	refused_line(ARGV(A("/x"), A("/m")), "user.conf:2: byte 0x00");
	put(user_file, "[defaults]\n\033[2J = 3\n", 19);
	refused_line(ARGV(A("/x"), A("/m")), "byte 0x1b");
	memset(big, '\n', sizeof(big));
	put(user_file, big, sizeof(big));
	refused_line(ARGV(A("/x"), A("/m")), "too large");
	memset(line, 'x', sizeof(line));
	put(user_file, line, sizeof(line));
	refused_line(ARGV(A("/x"), A("/m")), "user.conf:1: the line is too long");
}

/* SEMANTICS G3 */
static void test_trust(void **state)
{
	static const char *const secrets[] = {
		"[mount a]\nsource = https://me:pass@host/x.nc\ntarget = /m\n",
		"[mount a]\nsource = https://h/x.nc?X-Amz-Signature=f00\ntarget = /m\n",
		"[defaults]\noptions = address=http://u:p@h/x\n"};
	struct cfg cfg;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		files(secrets[i], NULL);
		cfg = parsed(ARGV(A("list"))); /* 0600 */
		cfg_release(&cfg);
		assert_int_equal(chmod(user_file, 0640), 0);
		refused_line(ARGV(A("list")), "chmod 600");
	}
	files("[defaults]\nmax_attempts = 3\n", NULL);
	assert_int_equal(chmod(user_file, 0644), 0);
	cfg = parsed(ARGV(A("/x"), A("/m")));
	assert_int_equal(cfg.remote.max_attempts, 3);
	assert_null(cfg.config.note);
	cfg_release(&cfg);
	assert_int_equal(chmod(user_file, 0664), 0);
	cfg = parsed(ARGV(A("/x"), A("/m")));
	assert_int_equal(cfg.remote.max_attempts, 6);
	assert_non_null(strstr(cfg.config.note, "others may write to it"));
	cfg_release(&cfg);
	assert_int_equal(chmod(user_file, 0600), 0);
	if (geteuid() != 0)
		return; /* only root can change a file's owner */
	assert_int_equal(chown(user_file, 12345, 0), 0);
	cfg = parsed(ARGV(A("/x"), A("/m")));
	assert_int_equal(cfg.remote.max_attempts, 6);
	assert_non_null(strstr(cfg.config.note, "belongs to another user (12345)"));
	cfg_release(&cfg);
	refused_line(ARGV(A("--config"), user_file, A("/x"), A("/m")), "another user");
}

static void test_mounts(void **state)
{
	struct cfg cfg;

	(void)state;
	only_root();
	files("[mount a]\nsource = https://me:secret@host/x.nc\ntarget = /m/a\nauto = no\n",
	      "[mount a]\nsource = /other\ntarget = /m/o\n[mount b]\nsource=/b\ntarget=/m/b\n");
	cfg = parsed(ARGV(A("list")));
	assert_int_equal(cfg.config.n_mounts, 2);
	assert_string_equal(cfg.config.mounts[0].source, "https://host/x.nc");
	assert_string_equal(cfg.config.mounts[0].target, "/m/a");
	assert_false(cfg.config.mounts[0].automatic);
	assert_string_equal(cfg.config.mounts[1].name, "b");
	assert_true(cfg.config.mounts[1].automatic);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("mount"), A("-v"), A("-o"), A("ro"), A("a"), A("b")));
	assert_int_equal(cfg.command, CFG_MOUNT_NAMED);
	assert_int_equal(cfg.more.n, 2);
	assert_int_equal(cfg.passed.n, 3);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("mount"), A("a")));
	assert_string_equal(cfg.user, "me");
	assert_string_equal(cfg.shown, "https://host/x.nc");
	cfg_release(&cfg);
	files("nonsense", NULL); /* does not prevent unmounting */
	cfg = parsed(ARGV(A("umount"), A("/m")));
	assert_int_equal(cfg.command, CFG_UMOUNT);
	cfg_release(&cfg);
	cfg = parsed(ARGV(A("status"), A("/m")));
	cfg_release(&cfg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rechunk),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_order),         cmocka_unit_test(test_whole),
		cmocka_unit_test(test_word_for_path), cmocka_unit_test(test_forms),
		cmocka_unit_test(test_operands),      cmocka_unit_test(test_refused),
		cmocka_unit_test(test_trust),         cmocka_unit_test(test_mounts),
	};

	return cmocka_run_group_tests(tests, make, drop);
}
