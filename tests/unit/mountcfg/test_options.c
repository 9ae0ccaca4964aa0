/* SPDX-License-Identifier: BSD-3-Clause */
/* Command line and -o options: accepted ones, rejected ones, and the messages for users. */
#include "mountcfg/options.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct cfg_files no_files;

static int parse(struct cfg *cfg, struct err *e, char *const *argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	*e = (struct err)ERR_INIT;
	return cfg_parse(argc, argv, &no_files, cfg, e);
}

#define ARGV(...) ((char *[]){(char[]){"nczarrfs"}, __VA_ARGS__, NULL})
#define A(s) ((char[]){s})

static void refused(char *const *argv, const char *part)
{
	struct cfg cfg;
	struct err e;

	assert_int_equal(parse(&cfg, &e, argv), -EINVAL);
	if (!strstr(e.msg, part))
		fail_msg("'%s' does not say '%s'", e.msg, part);
	assert_null(strchr(e.msg, '\n'));
}

static void test_defaults(void **state)
{
	struct cfg cfg;
	struct err e;

	(void)state;
	assert_int_equal(parse(&cfg, &e, ARGV(A("/a/x.nc"), A("/mnt"))), 0);
	assert_int_equal(cfg.command, CFG_MOUNT);
	assert_string_equal(cfg.source, "/a/x.nc");
	assert_string_equal(cfg.mountpoint, "/mnt");
	assert_int_equal(cfg.zarr.mode, CFG_MODE_ZARR);
	assert_int_equal(cfg.rules.filter, CFG_FILTER_PORTABLE);
	assert_int_equal(cfg.view, CFG_VIEW_AUTO);
	assert_false(cfg.hide_bad);
	assert_int_equal(cfg.limits.image_size, 256 << 20);
	assert_int_equal(cfg.limits.open_datasets, 64);
	assert_false(cfg.zarr.nested || cfg.zarr.strict_json || cfg.foreground || cfg.debug);
	assert_int_equal(cfg.limits.default_chunk_size, 4 << 20);
	assert_int_equal(cfg.limits.cache_size, 64 << 20);
	assert_int_equal(cfg.limits.index_size, 512 << 20);
	assert_int_equal(cfg.limits.meta_size, 1 << 30);
	assert_int_equal(cfg.limits.decode_threads, 0);
	assert_int_equal(cfg.limits.open_timeout, 120);
	assert_null(cfg.external_root);
	assert_int_equal(cfg.fuse_opts.n, 0);
	cfg_release(&cfg);
}

/* expect_texts - compare the strings of a list, one in a line. */
static void expect_texts(char *const *list, size_t n, const char *want)
{
	char text[512] = "";
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? "\n" : "",
					list[i]);
	assert_string_equal(text, want);
}

static void test_writing(void **state)
{
	static const struct {
		const char *opts, *chunks, *unlimited, *fuse;
	} rules[] = {
		{"rw,chunks=time=24,lat=all", "time=24,lat=all", "", ""},
		{"rw,chunks=v&/g/w,time=24,x=1,noexec", "v&/g/w,time=24,x=1", "", "noexec"},
		{"chunks=time=24,chunks=lat=all,rw", "time=24\nlat=all", "", ""},
		/* an option's name, or a value that is no length, ends a rule; a backslash does
		 * not */
		{"rw,chunks=time=24,cache_size=4096", "time=24", "", ""},
		{"rw,chunks=time=24,cache_size=0,max_read=4096", "time=24", "",
		 "max_read=4096"},
		{"rw,chunks=time=24\\,view=3,lat=1", "time=24,view=3,lat=1", "", ""},
		{"chunks=time=24,rw", "time=24", "", ""},
		{"rw,unlimited=time,lat,noatime", "", "time\nlat", "noatime"},
		{"unlimited=time,rw,unlimited=x", "", "time\nx", ""},
		{"unlimited=time,chunks=x=1,y=2,rw", "x=1,y=2", "time", ""},
	};
	struct cfg cfg;
	struct err e;

	(void)state;
	assert_int_equal(parse(&cfg, &e, ARGV(A("a.nc"), A("/mnt"))), 0);
	assert_false(cfg.write.rw || cfg.write.create || cfg.write.new_as_is);
	assert_int_equal(cfg.zarr.consolidated, -1);
	assert_int_equal(cfg.write.stage_size, 256 << 20);
	assert_int_equal(cfg.limits.write_size, 64 << 20);
	assert_int_equal(cfg.write.commit_delay, 500);
	assert_null(cfg.write.state_dir);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e,
			       ARGV(A("a.nc"), A("/mnt"),
				    A("-ocreate,new_files=keep,consolidated=never,"
				      "state_dir=/s,stage_size=1M,commit_delay=0"))),
			 0);
	assert_true(cfg.write.rw && cfg.write.create && cfg.write.new_as_is);
	assert_int_equal(cfg.zarr.consolidated, 0);
	assert_int_equal(cfg.write.stage_size, 1 << 20);
	assert_int_equal(cfg.write.commit_delay, 0);
	assert_string_equal(cfg.write.state_dir, "/s");
	cfg_release(&cfg);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		char opts[128];

		(void)snprintf(opts, sizeof(opts), "%s", rules[i].opts);
		if (parse(&cfg, &e, ARGV(A("a"), A("m"), A("-o"), opts)) < 0)
			fail_msg("%s: %s", opts, e.msg);
		assert_true(cfg.write.rw);
		expect_texts(cfg.rules.chunks.v, cfg.rules.chunks.n, rules[i].chunks);
		expect_texts(cfg.unlimited.v, cfg.unlimited.n, rules[i].unlimited);
		expect_texts(cfg.fuse_opts.v, cfg.fuse_opts.n, rules[i].fuse);
		cfg_release(&cfg);
	}
	assert_int_equal(parse(&cfg, &e, ARGV(A("recover"), A("/a.nc"), A("/b"), A("/c"))), 0);
	assert_int_equal(cfg.command, CFG_RECOVER);
	assert_string_equal(cfg.source, "/a.nc");
	expect_texts(cfg.more.v, cfg.more.n, "/b\n/c");
	cfg_release(&cfg);
}

static void test_rechunk(void **state)
{
	static const struct {
		const char *opts, *rules, *chunks, *fuse;
	} rows[] = {
		{"rechunk=time=all,lat=64,noexec", "time=all,lat=64", "", "noexec"},
		{"rechunk=v&/g/w,time=24,x=all,cache_size=0", "v&/g/w,time=24,x=all", "", ""},
		{"rechunk=time=24,rechunk=v,lat=all", "time=24\nv,lat=all", "", ""},
		{"rechunk=time=24\\,view=3,view=nc", "time=24,view=3", "", ""},
	};
	struct cfg cfg;
	struct err e = ERR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char opts[128];

		(void)snprintf(opts, sizeof(opts), "%s", rows[i].opts);
		if (parse(&cfg, &e, ARGV(A("a"), A("m"), A("-o"), opts)) < 0)
			fail_msg("%s: %s", opts, e.msg);
		expect_texts(cfg.rules.rechunk.v, cfg.rules.rechunk.n, rows[i].rules);
		expect_texts(cfg.rules.chunks.v, cfg.rules.chunks.n, rows[i].chunks);
		expect_texts(cfg.fuse_opts.v, cfg.fuse_opts.n, rows[i].fuse);
		cfg_release(&cfg);
	}
	refused(ARGV(A("x"), A("m"), A("-o"), A("rechunk=")), "-o rechunk: needs a value");
	refused(ARGV(A("x"), A("m"), A("-o"), A("rw,rechunk=t=1")),
		"-o rechunk: chunks of other shapes are read-only: leave out rw, or rechunk");
	refused(ARGV(A("x"), A("m"), A("-o"), A("create,rechunk=t=1")),
		"leave out create, and use chunks= for the chunks of new variables");
}

/* test_zarr3 - defaults that depend on the format, and conflicts. */
static void test_zarr3(void **state)
{
	static const struct {
		const char *opts;
		bool zarr3, v2_keys, nested, strict;
		uint64_t shard;
	} good[] = {
		{"zarr_format=2", false, false, false, false, 0},
		{"zarr_format=3", true, false, true, true, 0},
		{"zarr_format=3,mode=noxarray", true, false, true, true, 0},
		{"zarr_format=3,chunk_key_encoding=v2", true, true, false, true, 0},
		{"chunk_key_encoding=v2,dimension_separator=/,zarr_format=3", true, true, true,
		 true, 0},
		{"dimension_separator=.,json_nan=literal,zarr_format=3", true, false, false, false,
		 0},
		{"shards", true, false, true, true, 64 << 20},
		{"filter=*\\,zstd,shards,json_nan=string", true, false, true, true, 64 << 20},
		{"shards=1M,zarr_format=3", true, false, true, true, 1 << 20},
	};
	struct cfg cfg;
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		char opts[80];

		(void)snprintf(opts, sizeof(opts), "%s", good[i].opts);
		assert_int_equal(parse(&cfg, &e, ARGV(A("x"), A("m"), A("-o"), opts)), 0);
		assert_int_equal(cfg.zarr.zarr3, good[i].zarr3);
		assert_int_equal(cfg.zarr.v2_keys, good[i].v2_keys);
		assert_int_equal(cfg.zarr.nested, good[i].nested);
		assert_int_equal(cfg.zarr.strict_json, good[i].strict);
		assert_int_equal(cfg.zarr.shard_size, good[i].shard);
		cfg_release(&cfg);
	}
	refused(ARGV(A("x"), A("m"), A("-o"), A("shards,zarr_format=2")),
		"leave out zarr_format=2");
	refused(ARGV(A("x"), A("m"), A("-o"), A("mode=nczarr,shards")), "use mode=zarr");
	refused(ARGV(A("x"), A("m"), A("-o"), A("chunk_key_encoding=v2")),
		"only with zarr_format=3");
	refused(ARGV(A("x"), A("m"), A("-o"), A("zarr_format=1")), "unknown value '1': use 2 or 3");
	assert_int_equal(parse(&cfg, &e, ARGV(A("x"), A("m"), A("-ozarr_format=4"))), -EINVAL);
	assert_null(strstr(e.msg, "did you mean"));
	refused(ARGV(A("x"), A("m"), A("-o"), A("zarr_format=v3")), "did you mean zarr_format=3?");
	refused(ARGV(A("x"), A("m"), A("-o"), A("shards=1")), "bad size");
}

static void test_all_options(void **state)
{
	struct cfg cfg;
	struct err e;

	(void)state;
	assert_int_equal(parse(&cfg, &e,
			       ARGV(A("-fv"), A("x.nc"), A("-o"),
				    A("mode=nczarr,filter=none,,json_nan=string"), A("m"),
				    A("-odimension_separator=/,default_chunk_size=64K,"
				      "cache_size=0"),
				    A("-o"), A("memory=4M,decode_threads=3"),
				    A("-o"), A("open_timeout=5,external_root=/a\\,b,debug"))),
			 0);
	assert_true(cfg.foreground && cfg.verbose && cfg.debug);
	assert_int_equal(cfg.zarr.mode, CFG_MODE_NCZARR);
	assert_int_equal(cfg.rules.filter, CFG_FILTER_NONE);
	assert_true(cfg.zarr.nested && cfg.zarr.strict_json);
	assert_int_equal(cfg.limits.default_chunk_size, 64 << 10);
	assert_int_equal(cfg.limits.cache_size, 0);
	assert_int_equal(cfg.limits.index_size, 1 << 20);
	assert_int_equal(cfg.limits.meta_size, 2 << 20);
	assert_int_equal(cfg.limits.decode_threads, 3);
	assert_int_equal(cfg.limits.open_timeout, 5);
	assert_string_equal(cfg.external_root, "/a,b");
	assert_int_equal(cfg.source[0], '/');
	assert_string_equal(strrchr(cfg.source, '/'), "/x.nc");
	assert_string_equal(strrchr(cfg.mountpoint, '/'), "/m");
	cfg_release(&cfg);
}

static void test_views(void **state)
{
	struct cfg cfg;
	struct err e;

	(void)state;
	assert_int_equal(parse(&cfg, &e,
			       ARGV(A("x"), A("m"), A("-o"), A("view=nc,filter=keep"),
				    A("-ounsupported=skip,memory=512K"), A("-o"),
				    A("open_datasets=1"))),
			 0);
	assert_int_equal(cfg.view, CFG_VIEW_NC);
	assert_int_equal(cfg.rules.filter, CFG_FILTER_KEEP);
	assert_int_equal(cfg.zarr.mode, CFG_MODE_ZARR);
	assert_true(cfg.hide_bad);
	assert_int_equal(cfg.limits.image_size, 64 << 10);
	assert_int_equal(cfg.limits.open_datasets, 1);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("x"), A("m"), A("-oview=netcdf,show=netcdf"))), 0);
	assert_true(cfg.view == CFG_VIEW_NC && cfg.forms == CFG_FORMS_NC);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e,
			       ARGV(A("x"), A("m"), A("-oview=zarr,view=auto"),
				    A("-ounsupported=skip,unsupported=fail"))),
			 0);
	assert_int_equal(cfg.view, CFG_VIEW_AUTO);
	assert_false(cfg.hide_bad);
	cfg_release(&cfg);
	refused(ARGV(A("x"), A("m"), A("-oview=hdf5")), "use auto, zarr, nc or classic");
	assert_int_equal(parse(&cfg, &e,
			       ARGV(A("x"), A("m"), A("-oview=classic,classic_format=cdf2"))),
			 0);
	assert_true(cfg.view == CFG_VIEW_CLASSIC && cfg.classic_format == 2);
	cfg_release(&cfg);
	refused(ARGV(A("x"), A("m"), A("-oview=classic,rw")), "view=classic is read-only");
	refused(ARGV(A("x"), A("m"), A("-oclassic_format=cdf1")), "only with view=classic");
	refused(ARGV(A("x"), A("m"), A("-oview=classic,classic_format=2")),
		"use auto, cdf1, cdf2 or cdf5");
	refused(ARGV(A("x"), A("m"), A("-ounsupported=hide")), "use fail or skip");
	refused(ARGV(A("x"), A("m"), A("-omemory=1K")), "use 128K to");
	refused(ARGV(A("x"), A("m"), A("-oopen_datasets=0")), "use 1 to 65536");
}

/* expect_rules - the rules of -o LIST: strings separated by '/'. */
static void expect_rules(const char *list, enum cfg_filter filter, const char *rules,
			 const char *quant)
{
	char *argv[] = {A("nczarrfs"), A("x"), A("m"), A("-o"), strdup(list), NULL};
	char got[2][256] = {"", ""};
	struct cfg cfg;
	struct err e;

	if (parse(&cfg, &e, argv))
		fail_msg("'%s': %s", list, e.msg);
	for (size_t i = 0; i < cfg.rules.filters.n; i++)
		(void)snprintf(got[0] + strlen(got[0]), 256 - strlen(got[0]), "%s%s",
			       i ? "/" : "", cfg.rules.filters.v[i]);
	for (size_t i = 0; i < cfg.rules.quantize.n; i++)
		(void)snprintf(got[1] + strlen(got[1]), 256 - strlen(got[1]), "%s%s",
			       i ? "/" : "", cfg.rules.quantize.v[i]);
	assert_string_equal(got[0], rules);
	assert_string_equal(got[1], quant);
	assert_int_equal(cfg.rules.filter, filter);
	cfg_release(&cfg);
	free(argv[4]);
}

static void expect_count(char *list, size_t n)
{
	struct cfg cfg;
	struct err e;

	assert_int_equal(parse(&cfg, &e, ARGV(A("x"), A("m"), A("-o"), list)), 0);
	assert_int_equal(cfg.rules.filters.n, n);
	cfg_release(&cfg);
}

static void test_rules(void **state)
{
	(void)state;
	expect_rules("filter=*,zstd,5,quantize=bitgroom,3,allow_other", CFG_FILTER_PORTABLE,
		     "*,zstd,5", "bitgroom,3");
	expect_rules("filter=v1&/g/v2,shuffle|deflate,4,filter=zstd,ro", CFG_FILTER_PORTABLE,
		     "v1&/g/v2,shuffle|deflate,4/zstd", "");
	expect_rules("filter=keep,debug,filter=v,307,9,x-gvfs-hide", CFG_FILTER_KEEP, "v,307,9",
		     "");
	expect_rules("filter=*\\,zstd\\,5,mode=nczarr", CFG_FILTER_PORTABLE, "*,zstd,5", "");
	expect_rules("filter=zstd,5,,filter=none,,", CFG_FILTER_NONE, "zstd,5/none", "");
	expect_rules("filter=none,filter=v,zstd", CFG_FILTER_NONE, "v,zstd", "");
	expect_rules("filter=*,NONE", CFG_FILTER_NONE, "", "");
	expect_rules("filter=v,none", CFG_FILTER_PORTABLE, "v,none", "");
	expect_rules("filter=none,filter=portable", CFG_FILTER_PORTABLE, "", "");
	/* names of variables keep their backslashes; one before a comma belongs to the list */
	expect_rules("filter=a\\&b,1,5,rw\\,x", CFG_FILTER_PORTABLE, "a\\&b,1,5,rw,x", "");
	expect_rules("filter=a\\\\,b,zstd,fsname=c\\,d", CFG_FILTER_PORTABLE, "a\\,b,zstd", "");
	expect_rules("filter=a=b,zstd,5", CFG_FILTER_PORTABLE, "a=b,zstd,5", "");
	/* flags of the mount and of fstab end a rule, other words do not */
	expect_rules(
		"filter=v,1,noatime,filter=w,1,user,quantize=bitround,9,debug,quantize=x,y",
		CFG_FILTER_PORTABLE, "v,1/w,1", "bitround,9/x,y");
	refused(ARGV(A("x"), A("m"), A("-ofilter=")), "needs a value");
	refused(ARGV(A("x"), A("m"), A("-oquantize")), "needs a value");
	expect_rules("filter=*,zstd,rw,filter=v,create", CFG_FILTER_PORTABLE, "*,zstd/v", "");
	refused(ARGV(A("x"), A("m"), A("-ofilter=*,zstd,5,mdoe=zarr")), "did you mean 'mode'");
	refused(ARGV(A("x"), A("m"), A("-ofilter=keep,debgu")), "did you mean 'debug'");
}

static void test_many_rules(void **state)
{
	char list[8192] = "filter=v,1";

	(void)state;
	for (int i = 1; i < 256; i++)
		strcat(list, ",filter=v,1");
	expect_count(list, 256);
	strcat(list, ",filter=v,1");
	refused(ARGV(A("x"), A("m"), A("-o"), list), "too many");
}

static void test_mount_options(void **state)
{
	struct cfg cfg;
	struct err e;

	(void)state;
	assert_int_equal(parse(&cfg, &e,
			       ARGV(A("x"), A("m"), A("-o"),
				    A("ro,nosuid,dev,suid,x-systemd.automount,_netdev,noexec"),
				    A("-o"), A("allow_other,max_threads=4,clone_fd"))),
			 0);
	expect_texts(cfg.fuse_opts.v, cfg.fuse_opts.n,
		     "ro\nnoexec\nallow_other\nmax_threads=4\nclone_fd\n"
		     "default_permissions");
	cfg_release(&cfg);
}

static void test_commands(void **state)
{
	struct cfg cfg;
	struct err e;

	(void)state;
	assert_int_equal(parse(&cfg, &e, ARGV(A("info"), A("--json"), A("x"))), 0);
	assert_int_equal(cfg.command, CFG_INFO);
	assert_true(cfg.json);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("-v"), A("filters"), A("--json"))), 0);
	assert_int_equal(cfg.command, CFG_FILTERS);
	assert_true(cfg.json && cfg.verbose);
	assert_null(cfg.source);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("filters"), A("x"))), -EINVAL);
	assert_non_null(strstr(e.msg, "nczarrfs filters"));
	assert_int_equal(parse(&cfg, &e, ARGV(A("./filters"), A("m"))), 0);
	assert_int_equal(cfg.command, CFG_MOUNT);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("./info"), A("m"))), 0);
	assert_int_equal(cfg.command, CFG_MOUNT);
	assert_string_equal(strrchr(cfg.source, '/'), "/info");
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("--"), A("info"), A("-m"))), 0);
	assert_int_equal(cfg.command, CFG_MOUNT);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("--help"))), 0);
	assert_int_equal(cfg.command, CFG_HELP);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("-V"))), 0);
	assert_int_equal(cfg.command, CFG_VERSION);
	cfg_release(&cfg);
}

/* Several sources stay as typed; an operand of info that is no file names a variable. */
static void test_several(void **state)
{
	char address[] = "http://me:secret@h/a.nc";
	struct err e = ERR_INIT;
	struct cfg cfg;

	(void)state;
	assert_int_equal(parse(&cfg, &e, ARGV(A("info"), A("a.nc"), address, A("/"))), 0);
	assert_null(cfg.source);
	expect_texts(cfg.more.v, cfg.more.n, "a.nc\nhttp://me:secret@h/a.nc\n/");
	assert_null(strstr(address, "secret"));
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("info"), A("/a.nc"), A("/no/such"))), 0);
	assert_string_equal(cfg.source, "/a.nc");
	assert_string_equal(cfg.info.variable, "/no/such");
	assert_int_equal(cfg.more.n, 0);
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("info"), A("/a"), A("/no/such"), A("/b"))), 0);
	assert_null(cfg.info.variable);
	expect_texts(cfg.more.v, cfg.more.n, "/a\n/no/such\n/b");
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("check"), A("/a"), A("/no/such"))), 0);
	expect_texts(cfg.more.v, cfg.more.n, "/a\n/no/such");
	cfg_release(&cfg);
}

static void test_refused(void **state)
{
	(void)state;
	refused(ARGV(A("x")), "MOUNTPOINT missing");
	refused(ARGV(A("x"), A("m"), A("n")), "too many arguments");
	refused(ARGV(A("chek"), A("m")), "did you mean nczarrfs check");
	refused(ARGV(A("filtres")), "did you mean nczarrfs filters");
	refused(ARGV(A("./chek")), "MOUNTPOINT missing");
	refused(ARGV(A("status"), A("x"), A("m")), "usage: nczarrfs status");
	refused(ARGV(A("info"), A("--variable=v"), A("x"), A("m")), "give one SOURCE only");
	refused(ARGV(A("check"), A("--resume=s"), A("x"), A("m")), "give one SOURCE only");
	refused(ARGV(A("x"), A("")), "empty");
	refused(ARGV(A("x"), A("m"), A("--json")), "info, filters");
	refused(ARGV(A("x"), A("m"), A("-q")), "unknown flag");
	refused(ARGV(A("x"), A("m"), A("--verbos")), "did you mean --verbose");
	refused(ARGV(A("x"), A("m"), A("-o")), "needs options");
	refused(ARGV(A("x"), A("m"), A("-o"), A("rw,ro")), "-o ro: conflicts with rw");
	refused(ARGV(A("x"), A("m"), A("-oro"), A("-ocreate")),
		"-o ro: conflicts with create");
	refused(ARGV(A("x"), A("m"), A("-o"), A("chunks=time=1")), "-o chunks: only with rw");
	refused(ARGV(A("x"), A("m"), A("-o"), A("rw,unlimited=")), "needs a value");
	refused(ARGV(A("x"), A("m"), A("-o"), A("rw,unlimited=,a")), "name is empty");
	refused(ARGV(A("x"), A("m"), A("-o"), A("rw,consolidated=allways")),
		"consolidated=always");
	refused(ARGV(A("recover")), "SOURCE missing");
	refused(ARGV(A("recover"), A("a"), A("")), "an argument is empty");
	refused(ARGV(A("log"), A("--json"), A("a")), "--json");
	refused(ARGV(A("x"), A("m"), A("-o"), A("mode=zar")), "zarr, nczarr or noxarray");
	refused(ARGV(A("x"), A("m"), A("-o"), A("mode=zar")), "did you mean mode=zarr");
	refused(ARGV(A("x"), A("m"), A("-o"), A("mode")), "needs a value");
	refused(ARGV(A("x"), A("m"), A("-o"), A("debug=1")), "takes no value");
	refused(ARGV(A("x"), A("m"), A("-o"), A("=1")), "without a name");
	refused(ARGV(A("x"), A("m"), A("-o"), A("default_chunk_size=1")), "use 4K to 1G");
	refused(ARGV(A("x"), A("m"), A("-o"), A("default_chunk_size=-1")), "bad size");
	refused(ARGV(A("x"), A("m"), A("-o"), A("decode_threads=1K")), "bad number");
	refused(ARGV(A("x"), A("m"), A("-o"), A("cach_size=1")), "did you mean 'cache_size'");
	refused(ARGV(A("x"), A("m"), A("-o"), A("allow_othr")), "did you mean 'allow_other'");
	refused(ARGV(A("x"), A("m"), A("-o"), A("allow_other=1")), "takes no value");
	refused(ARGV(A("x"), A("m"), A("-o"), A("max_threads=0")), "use 1 to");
	refused(ARGV(A("x"), A("m"), A("-o"), A("max_read=x")), "bad number");
	refused(ARGV(A("x"), A("m"), A("-o"), A("quite_something_else")),
		"see nczarrfs help options");
}

/* each_option - call check for every option that `help options` shows, with _ for -. */
static void each_option(const char *help, void (*check)(const char *name, const char *text),
			const char *text)
{
	const char *fuse = strstr(help, "\nFUSE:\n");
	char name[64];

	assert_non_null(fuse);
	for (const char *p = help; (p = strstr(p, " --")); ) {
		const bool option = p > fuse || (p[-1] == ' ' && p[-2] == '\n');
		size_t n;

		p += 3;
		n = strcspn(p, "[= \n");
		if (!option)
			continue;
		assert_true(n > 0 && n < sizeof(name));
		for (size_t i = 0; i < n; i++)
			name[i] = p[i] == '-' ? '_' : p[i];
		name[n] = '\0';
		check(name, text);
	}
}

static void in_text(const char *name, const char *text)
{
	if (!strstr(text, name))
		fail_msg("option '%s' is not in docs/reference/nczarrfs.1", name);
}

/* help_of - the output of a command line, in b, with a NUL; lines have at most 80 columns. */
static void help_of(char *const *argv, struct buf *b)
{
	struct cfg cfg;
	struct err e;

	assert_int_equal(parse(&cfg, &e, argv), 0);
	assert_int_equal(cfg.command, CFG_HELP);
	buf_init(b, 1 << 16);
	cfg_help(&cfg, b);
	buf_putc(b, '\0');
	cfg_release(&cfg);
	assert_true(buf_ok(b));
	for (const char *p = (char *)b->data; *p; p++) {
		size_t len = strcspn(p, "\n");

		assert_true(len <= 83 && (!len || p[len - 1] != ' '));
		p += len;
	}
}

static void expect_help(char *const *argv, const char *begins, const char *has)
{
	struct buf b;

	help_of(argv, &b);
	if (strncmp((char *)b.data, begins, strlen(begins)) != 0 ||
	    !strstr((char *)b.data, has))
		fail_msg("'%s' and '%s' are not in:\n%s", begins, has, (char *)b.data);
	buf_release(&b);
}

static void test_help(void **state)
{
	static const char *const commands[] = {"mount",   "umount", "list",  "info",
					       "filters", "recover", "refs",  "check",
					       "convert", "serve",  "status", "log",
					       "help",    "version"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		char word[16], example[32];

		(void)snprintf(word, sizeof(word), "%s", commands[i]);
		(void)snprintf(example, sizeof(example), "\n  nczarrfs %s", commands[i]);
		expect_help(ARGV(word, A("--help")), "usage: nczarrfs ", example);
		expect_help(ARGV(A("-h"), word), "usage: nczarrfs ", example);
		expect_help(ARGV(A("help"), word), "usage: nczarrfs ", example);
	}
	expect_help(ARGV(A("convert"), A("a"), A("-h")), "usage: nczarrfs convert ", "--verify");
	expect_help(ARGV(A("unmount"), A("--help")), "usage: nczarrfs umount ", "--all");
	expect_help(ARGV(A("mount"), A("--help")), "usage: nczarrfs [mount] [OPTION...] SOURCE",
		    "nczarrfs mount [OPTION...] NAME");
	expect_help(ARGV(A("--help")), "usage: nczarrfs [OPTION...] SOURCE", "\n  convert ");
	expect_help(ARGV(A("help")), "usage: nczarrfs [OPTION...] SOURCE", "--zarr-format=2|3");
	expect_help(ARGV(A("a"), A("b"), A("--help")), "usage: nczarrfs [OPTION...]", "Commands");
	expect_help(ARGV(A("help"), A("options")), "Options of nczarrfs", "\nRemote:\n");
	expect_help((char *[]){A("nczarrfs"), NULL}, "usage: nczarrfs [OPTION...] SOURCE",
		    "Try 'nczarrfs --help'.\n");
	refused(ARGV(A("help"), A("convrt")), "did you mean nczarrfs help convert?");
	refused(ARGV(A("help"), A("quite-else")), "no command 'quite-else'");
}

static void test_long_options(void **state)
{
	struct cfg cfg;
	struct err e;

	(void)state;
	assert_int_equal(parse(&cfg, &e,
			       ARGV(A("convert"), A("--zarr-format"), A("3"), A("--shards"),
				    A("a.nc"), A("--filter=*,zstd,5"), A("b"),
				    A("--default-chunk-size=64K"), A("--max-threads"), A("4"),
				    A("--state-dir=/a,b"), A("--allow-other"),
				    A("--requester-pays"))),
			 0);
	assert_int_equal(cfg.command, CFG_CONVERT);
	assert_true(cfg.zarr.zarr3 && cfg.remote.requester_pays);
	assert_int_equal(cfg.zarr.shard_size, 64 << 20);
	assert_int_equal(cfg.limits.default_chunk_size, 64 << 10);
	expect_texts(cfg.rules.filters.v, cfg.rules.filters.n, "*,zstd,5");
	expect_texts(cfg.fuse_opts.v, cfg.fuse_opts.n,
		     "max_threads=4\nallow_other\ndefault_permissions");
	assert_string_equal(cfg.write.state_dir, "/a,b");
	assert_string_equal(strrchr(cfg.source, '/'), "/a.nc");
	assert_string_equal(strrchr(cfg.out, '/'), "/b");
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e,
			       ARGV(A("x"), A("m"), A("--rw"), A("--shards=1M"),
				    A("--chunks"), A("time=24,lat=all"), A("--unlimited=a,b"))),
			 0);
	assert_true(cfg.write.rw);
	assert_int_equal(cfg.zarr.shard_size, 1 << 20);
	expect_texts(cfg.rules.chunks.v, cfg.rules.chunks.n, "time=24,lat=all");
	expect_texts(cfg.unlimited.v, cfg.unlimited.n, "a\nb");
	cfg_release(&cfg);
	assert_int_equal(parse(&cfg, &e, ARGV(A("x"), A("m"), A("--rw=no"))), 0);
	assert_false(cfg.write.rw);
	cfg_release(&cfg);
	refused(ARGV(A("x"), A("m"), A("--zarr-format")), "--zarr-format: needs a value");
	refused(ARGV(A("x"), A("m"), A("--zarr-format=")), "--zarr-format: needs a value");
	refused(ARGV(A("x"), A("m"), A("--zarr-format=4")), "--zarr-format: unknown value '4'");
	refused(ARGV(A("x"), A("m"), A("--zarr-fromat=3")), "did you mean --zarr-format?");
	refused(ARGV(A("x"), A("m"), A("--allow-othr")), "did you mean --allow-other?");
	refused(ARGV(A("x"), A("m"), A("--tries=3")), "did you mean --max-attempts?");
	refused(ARGV(A("x"), A("m"), A("--jsn")), "did you mean --json?");
	refused(ARGV(A("x"), A("m"), A("--allow-other=1")), "--allow-other=1: takes no value");
	refused(ARGV(A("x"), A("m"), A("--quite-something")), "see nczarrfs help options");
	refused(ARGV(A("x"), A("m"), A("--metrics=")), "--metrics: needs a value");
}

static void test_docs_parity(void **state)
{
	static char man[65536];
	struct buf help;
	FILE *f = fopen("docs/reference/nczarrfs.1", "r");
	size_t n;

	(void)state;
	if (!f)
		skip(); /* the working directory is another one */
	n = fread(man, 1, sizeof(man) - 1, f);
	(void)fclose(f); /* only read: no error to report */
	man[n] = '\0';
	for (char *from = man, *to = man;; from++) { /* a man page writes - as \- */
		if (from[0] == '\\' && from[1] == '-')
			continue;
		*to++ = *from;
		if (!*from)
			break;
	}
	help_of(ARGV(A("help"), A("options")), &help);
	each_option((char *)help.data, in_text, man);
	buf_release(&help);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),      cmocka_unit_test(test_writing),
		cmocka_unit_test(test_all_options),   cmocka_unit_test(test_views),
		cmocka_unit_test(test_rules),         cmocka_unit_test(test_many_rules),
		cmocka_unit_test(test_mount_options), cmocka_unit_test(test_commands),
		cmocka_unit_test(test_refused),       cmocka_unit_test(test_several),
		cmocka_unit_test(test_rechunk),
		cmocka_unit_test(test_zarr3),
		cmocka_unit_test(test_help),          cmocka_unit_test(test_long_options),
		cmocka_unit_test(test_docs_parity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
