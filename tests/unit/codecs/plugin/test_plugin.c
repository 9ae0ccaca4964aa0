/* SPDX-License-Identifier: BSD-3-Clause */
/* test_plugin.c - third-party filters: which are found and used, their results, and that a failure
 * costs at most one chunk. The plugins are those of tests/plugins. */
#include "codecs/plugin/plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <hdf5.h>

#include "base/process/child.h"
#include "codecs/plugin/plugin_table.h"

#include <cmocka.h>

enum { XOR = 40001, ROT, SAME, BAD };

#define BIG ((size_t)9 << 20)

static char g_tmp[PATH_MAX], g_built[PATH_MAX];

/* ---- a place for libraries ---- */

static const char *in_tmp(const char *name)
{
	static char path[2][PATH_MAX + 64];
	static unsigned turn;

	turn = !turn;
	(void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", g_tmp, name);
	return path[turn];
}

static void make_dir(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(in_tmp(name), 0700), 0);
	assert_int_equal(chmod(in_tmp(name), mode), 0);
}

static void write_file(const char *path, const void *p, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(close(fd), 0);
}

/* install - a built plugin, under another name. */
static void install(const char *plugin, const char *as, mode_t mode)
{
	static uint8_t data[4 << 20];
	char path[PATH_MAX + 64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/lib%s.so", g_built, plugin);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: make test-plugins", path);
	n = read(fd, data, sizeof(data));
	assert_true(n > 0 && n < (ssize_t)sizeof(data));
	assert_int_equal(close(fd), 0);
	write_file(in_tmp(as), data, (size_t)n, mode);
}

static void install_all(void)
{
	static const char *const good[] = {"bad", "defaults", "rot", "same", "xor"};
	char as[64];

	make_dir("a", 0755);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		(void)snprintf(as, sizeof(as), "a/lib%s.so.1", good[i]);
		install(good[i], as, 0644);
	}
	make_dir("hangs", 0755);
	for (int i = 1; i <= 8; i++) {
		char odd[16];

		(void)snprintf(odd, sizeof(odd), "odd%d", i);
		(void)snprintf(as, sizeof(as), "%s/lib%s.so", i == 7 ? "hangs" : "a", odd);
		install(odd, as, 0644);
	}
	assert_int_equal(symlink("libxor.so.1", in_tmp("a/libxor.so")), 0);
	assert_int_equal(symlink("nothing", in_tmp("a/libnothing.so")), 0);
	install("rot", "a/libworld.so", 0646);
	install("rot", "a/rot.so", 0644); /* no name of a plugin */
	write_file(in_tmp("a/libtext.so"), "INPUT(-lm)\n", 11, 0644);
	make_dir("b", 0755);
	install("xorcodec", "b/libxorcodec.so", 0644);
	install("rot", "b/libagain.so", 0644);
	make_dir("open", 0775);
	install("rot", "open/librot.so", 0644);
	make_dir("sticky", 01777);
	make_dir("sticky/mine", 0755);
	install("rot", "sticky/librot.so", 0644);
	install("rot", "sticky/mine/librot2.so", 0644);
	make_dir("deep", 0757);
	make_dir("deep/mine", 0755);
	install("rot", "deep/mine/librot.so", 0644);
}

/* ---- what may be used ---- */

static const char *why(const char *name)
{
	char *real = realpath(in_tmp(name), NULL);
	const char *text = plugin_distrust(real ? real : in_tmp(name));

	free(real);
	return text ? text : "";
}

/* SECURITY S60 */
static void test_trust(void **state)
{
	(void)state;
	assert_string_equal(why("a"), "");
	assert_string_equal(why("a/libxor.so"), "");
	assert_string_equal(why("a/libworld.so"), "it is writable by others");
	assert_string_equal(why("open"), "it is writable by others");
	assert_string_equal(why("open/librot.so"), "a parent directory is writable by others");
	assert_string_equal(why("sticky"), "it is writable by others");
	assert_string_equal(why("sticky/mine"), "");
	assert_string_equal(why("sticky/mine/librot2.so"), "");
	assert_string_equal(why("deep/mine"), "a parent directory is writable by others");
	assert_string_equal(why("none"), "it cannot be examined");
	if (geteuid() != 0)
		return;
	assert_int_equal(lchown(in_tmp("a/libtext.so"), 1, 1), 0);
	assert_string_equal(why("a/libtext.so"), "it belongs to another user");
	assert_int_equal(lchown(in_tmp("a/libtext.so"), 0, 0), 0);
	assert_int_equal(lchown(in_tmp("a"), 1, 1), 0);
	assert_string_equal(why("a/libtext.so"), "a parent directory belongs to another user");
	assert_int_equal(lchown(in_tmp("a"), 0, 0), 0);
}

static void scan(const char *dirs, const char *last, struct plugin_libs *ret)
{
	assert_int_equal(plugin_scan(dirs, g_tmp, last, ret), 0);
}

/* SECURITY S60 */
static void test_scan(void **state)
{
	struct plugin_libs l;
	char text[PATH_MAX + 64];

	(void)state;
	scan("b::none:b", NULL, &l);
	assert_int_equal(l.n, 3);
	assert_string_equal(l.v[0].path, in_tmp("b/libagain.so"));
	assert_string_equal(l.v[1].path, in_tmp("b/libxorcodec.so"));
	assert_null(l.v[1].why);
	assert_string_equal(l.v[2].why, "no such directory");
	plugin_libs_release(&l);
	scan("open", in_tmp("sticky/mine"), &l);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0].path, in_tmp("open"));
	assert_string_equal(l.v[0].why, "it is writable by others");
	assert_null(l.v[1].why);
	plugin_libs_release(&l);
	scan("a/libxor.so", NULL, &l); /* no directory */
	assert_string_equal(l.v[0].why, "it cannot be listed");
	plugin_libs_release(&l);
	/* another user's link leads to a good directory, for now */
	assert_int_equal(symlink(in_tmp("b"), in_tmp("sticky/link")), 0);
	scan("sticky/link", NULL, &l);
	assert_null(l.v[0].why);
	plugin_libs_release(&l);
	if (geteuid() == 0) {
		assert_int_equal(lchown(in_tmp("sticky/link"), 1, 1), 0);
		scan("sticky/link", NULL, &l);
		assert_int_equal(l.n, 1);
		assert_string_equal(l.v[0].why, "it belongs to another user");
		plugin_libs_release(&l);
	}
	make_dir("led", 0755); /* links to plugins: what they lead to counts */
	assert_int_equal(symlink(in_tmp("open/librot.so"), in_tmp("led/libbad.so")), 0);
	assert_int_equal(symlink(in_tmp("b/libagain.so"), in_tmp("led/libgood.so")), 0);
	scan("led", NULL, &l);
	assert_int_equal(l.n, 2);
	assert_string_equal(l.v[0].path, in_tmp("open/librot.so"));
	assert_string_equal(l.v[0].why, "a parent directory is writable by others");
	assert_string_equal(l.v[1].path, in_tmp("b/libagain.so"));
	assert_null(l.v[1].why);
	plugin_libs_release(&l);
	memset(text, 'x', sizeof(text) - 1); /* no path */
	text[sizeof(text) - 1] = '\0';
	scan(text, NULL, &l);
	assert_int_equal(l.n, 0);
	plugin_libs_release(&l);
	scan(NULL, NULL, &l);
	assert_int_equal(l.n, 0);
	plugin_libs_release(&l);
}

static void expect_line(const char *report, const char *name, const char *text)
{
	char line[PATH_MAX + 200];

	(void)snprintf(line, sizeof(line), "%s: %s\n", in_tmp(name), text);
	if (!strstr(report, line))
		fail_msg("no line \"%s\" in\n%s", line, report);
}

static void test_report(void **state)
{
	struct buf b;
	const char *r;

	(void)state;
	buf_init(&b, 1 << 20);
	codec_plugins_report(&b);
	buf_putc(&b, '\0');
	assert_true(buf_ok(&b));
	r = (const char *)b.data;
	expect_line(r, "a/libbad.so.1", "bad (40004), codec 'bad' (40004)");
	expect_line(
		r, "a/libdefaults.so.1",
		"codec 'bz2' (307, not used: nczarrfs has it built in), codec 'other' (40002, "
		"not used: another library has it, too, and comes first), codec 'same' "
		"(40003), codec 'zlib' (40004, not used: another library has it, too, and "
		"comes first), codec 'none' (40009, not used: no library has the filter)");
	expect_line(r, "a/librot.so.1", "rot (40002), codec 'rot' (40002)");
	expect_line(r, "a/libsame.so.1", "same (40003)");
	expect_line(r, "a/libxor.so.1", "xorz (40001)");
	expect_line(r, "b/libxorcodec.so", "codec 'xorz' (40001)");
	expect_line(
		r, "b/libagain.so",
		"rot (40002, not used: another library has it, too, and comes first), codec "
		"'rot' (40002, not used: another library has it, too, and comes first)");
	expect_line(r, "a/libnothing.so", "skipped: it is a broken symbolic link");
	expect_line(r, "a/libodd1.so", "skipped: it is not a filter plugin (type 1)");
	expect_line(r, "a/libodd2.so",
		    "skipped: its filter has the structure version 7, 1 is needed");
	expect_line(r, "a/libodd3.so", "skipped: its filter has id 70000 or no function");
	expect_line(r, "a/libodd4.so", "skipped: it contains neither a filter nor a codec");
	expect_line(r, "a/libodd5.so", "skipped: it describes no filter");
	expect_line(r, "a/libodd6.so", "skipped: it crashed (signal 6)");
	expect_line(r, "hangs/libodd7.so", "skipped: it did not answer within 2 s");
	expect_line(r, "a/libodd8.so",
		    "skipped: its codec has the structure version 2 (1 is needed), or has no "
		    "name or filter");
	expect_line(r, "a/libworld.so", "skipped: it is writable by others");
	expect_line(r, "open", "skipped: it is writable by others");
	assert_non_null(strstr(r, "libtext.so: skipped: it cannot be loaded: "));
	assert_null(strstr(r, "a/rot.so"));
	assert_null(strstr(r, "libxor.so:"));
	buf_release(&b);
}

static const struct codec_ops *zarr2(const char *id)
{
	return codec_find_zarr2(id, strlen(id));
}

static void test_names(void **state)
{
	size_t i = 0, n = 0;

	(void)state;
	assert_int_equal(zarr2("xorz")->h5_id, XOR);
	assert_int_equal(zarr2("rot")->h5_id, ROT);
	assert_int_equal(zarr2("same")->h5_id, SAME);
	assert_int_equal(zarr2("bz2")->h5_id, CODEC_BZIP2);
	assert_null(zarr2("bz2")->origin);
	assert_null(zarr2("none"));
	assert_null(zarr2("other"));
	assert_int_equal(codec_find_zarr3("numcodecs.rot", 13)->h5_id, ROT);
	assert_null(codec_find_zarr3("rot", 3));
	assert_int_equal(codec_find_name("ROT", 3)->h5_id, ROT);
	assert_int_equal(codec_find_name("xorz", 4)->h5_id, XOR);
	assert_string_equal(codec_find(SAME)->name, "same");
	assert_null(codec_find(40009));
	assert_null(codec_find(CODEC_PRIVATE + 5000));
	assert_null(codec_find(0));
	assert_non_null(strstr(codec_find(ROT)->origin, "/a/librot.so.1"));
	assert_null(codec_find(SAME)->encode);
	assert_non_null(codec_find(SAME)->decode);
	assert_false(codec_find(ROT)->portable);
	for (; codec_at(i); i++)
		n += codec_at(i)->origin != NULL;
	assert_true(n >= 4);
	for (i = 0, n = 0; codec_plugins_id(i); i++)
		n += codec_plugins_id(i) == ROT;
	assert_int_equal(n, 1);
	assert_null(codec_plugins_class(ROT)); /* not here */
}

/* ---- calls ---- */

static struct codec_spec spec_of(uint32_t id, uint32_t n, const uint32_t *params)
{
	return (struct codec_spec){.h5_id = id, .n_params = n, .params = params, .name = ""};
}

static int decode(uint32_t id, const void *in, size_t n, void *out, size_t cap, size_t *len,
		  struct err *e)
{
	static const uint32_t param = 5;
	const struct codec_spec spec = spec_of(id, 1, &param);

	return codec_find(id)->decode(&(const struct codec_call){.spec = &spec,
								 .elem_size = 1,
								 .in = in,
								 .in_len = n,
								 .out = out,
								 .cap = cap,
								 .ret_len = len,
								 .e = e});
}

static void test_round_trip(void **state)
{
	static const uint32_t key[4] = {0x5a, 1, 2, 3}, by = 200;
	const struct codec_spec specs[] = {spec_of(ROT, 1, &by), spec_of(XOR, 4, key),
					   spec_of(CODEC_FLETCHER32, 0, NULL)};
	const struct codec_chain chain = {.n = ARRAY_LEN(specs), .specs = specs};
	static const size_t sizes[] = {1, 2, 4096, 100000, BIG, 5};
	struct codec_scratch *scratch = codec_scratch_new();
	uint8_t *in = malloc(BIG), *out = malloc(BIG);
	struct err e = ERR_INIT;
	struct buf b;

	(void)state;
	assert_true(codec_chain_decodable(&chain));
	assert_true(codec_chain_encodable(&chain));
	for (size_t i = 0; i < BIG; i++)
		in[i] = (uint8_t)(i * 7 + i / 4096);
	buf_init(&b, 3 * BIG);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		size_t n = sizes[i];

		buf_clear(&b);
		assert_int_equal(codec_chain_encode(&chain, 1, in, n, scratch, &b, &e), 0);
		assert_int_equal(b.len, n + 1 + 4);
		assert_int_equal(b.data[0], 0x58);
		assert_int_equal(b.data[1], (uint8_t)(in[0] + 200) ^ 0x5a);
		memset(out, 0, n);
		assert_int_equal(
			codec_chain_decode(&chain, 0, 1, b.data, b.len, out, n, scratch, &e),
			0);
		assert_memory_equal(in, out, n);
		assert_int_equal(codec_chain_decode(&chain, 0, 1, b.data, b.len, out, n - 1,
						    scratch, &e),
				 -EBADMSG);
	}
	buf_release(&b);
	free(in);
	free(out);
	codec_scratch_free(scratch);
}

static void test_limits(void **state)
{
	uint8_t out[64];
	struct err e = ERR_INIT;
	size_t len;

	(void)state;
	assert_int_equal(decode(XOR, "Xabc", 4, out, 3, &len, &e), 0);
	assert_int_equal(len, 3);
	assert_int_equal(decode(XOR, "Xabc", 4, out, 2, &len, &e), -ERANGE);
	assert_int_equal(decode(XOR, "Yabc", 4, out, 3, &len, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "plugin 'xorz' of '"));
	assert_non_null(strstr(e.msg, "/a/libxor.so.1': it cannot decode the chunk"));
	assert_int_equal(decode(XOR, NULL, 0, out, 3, &len, &e), -EBADMSG);
}

/* ---- parameters ---- */

static int prepare(uint32_t id, uint32_t n, const uint32_t *v, const struct codec_array *a,
		   uint32_t *params, uint32_t *ret_n, struct err *e)
{
	const struct codec_spec spec = spec_of(id, n, v);

	memset(params, 0, CODEC_PARAMS_MAX * sizeof(*params));
	return codec_find(id)->prepare(&spec, a, params, ret_n, e);
}

static void test_prepare(void **state)
{
	static const uint64_t chunk[] = {3, 4};
	static const uint8_t fill[8] = {1};
	struct codec_array a = {CODEC_FLOAT, 8, false, 2, chunk, fill};
	uint32_t v[CODEC_PARAMS_MAX] = {7, 8}, got[CODEC_PARAMS_MAX], n;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(prepare(XOR, 1, v, &a, got, &n, &e), 0);
	assert_int_equal(n, 4);
	assert_int_equal(got[0], 7);
	assert_int_equal(got[1], 8 | H5T_ORDER_LE << 8);
	assert_int_equal(got[2], 96);
	assert_int_equal(got[3], 1);
	a = (struct codec_array){CODEC_FLOAT, 2, true, 1, chunk, NULL};
	assert_int_equal(prepare(XOR, 1, v, &a, got, &n, &e), 0);
	assert_int_equal(got[1], 2 | H5T_ORDER_BE << 8);
	assert_int_equal(got[2], 6);
	assert_int_equal(got[3], 0);
	assert_int_equal(prepare(XOR, 2, v, &a, got, &n, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "it rejects the parameters"));
	a.class = CODEC_OTHER;
	assert_int_equal(prepare(XOR, 1, v, &a, got, &n, &e), -EOPNOTSUPP);
	a.class = CODEC_UINT;
	a.rank = 0;
	assert_int_equal(prepare(XOR, 1, v, &a, got, &n, &e), -EOPNOTSUPP);
	/* a codec that asks a netCDF library, here its own */
	a = (struct codec_array){CODEC_INT, 8, false, 2, chunk, NULL};
	assert_int_equal(prepare(ROT, 1, v, &a, got, &n, &e), 0);
	assert_int_equal(n, 6);
	assert_int_equal(got[0], 7);
	assert_int_equal(got[1], 21);
	assert_int_equal(got[2], 3);
	assert_int_equal(got[3], 10 | 1 << 8); /* NC_INT64, NC_ENDIAN_LITTLE */
	assert_int_equal(got[4], 2);
	assert_int_equal(got[5], 3);
	a.class = CODEC_OTHER; /* netCDF has no such type */
	assert_int_equal(prepare(ROT, 1, v, &a, got, &n, &e), 0);
	assert_int_equal(got[1], UINT32_MAX);
	/* one that would, and has none: the parameters stay */
	assert_int_equal(prepare(BAD, 1, v, &a, got, &n, &e), 0);
	assert_int_equal(n, 1);
	assert_int_equal(got[0], 7);
	assert_null(codec_find(SAME)->prepare);
}

static int from_json(const char *id, const char *json, const struct codec_array *a, uint32_t *v,
		     uint32_t *n, struct err *e)
{
	const struct codec_conf conf = {.version = 2, .json = json, .array = a, .elem_size = 1};

	*n = 99;
	return zarr2(id)->from_zarr(&conf, v, n, e);
}

static void test_from_zarr(void **state)
{
	static const uint64_t chunk[] = {3, 4};
	const struct codec_array a = {CODEC_UINT, 4, false, 2, chunk, NULL};
	uint32_t v[CODEC_PARAMS_MAX], n;
	struct err e = ERR_INIT;

	(void)state;
	assert_int_equal(from_json("xorz", "{\"id\":\"xorz\",\"key\":\"12\"}", NULL, v, &n, &e),
			 0);
	assert_int_equal(n, 1);
	assert_int_equal(v[0], 12);
	/* the filter's own parameters for the array */
	assert_int_equal(from_json("xorz", "{\"key\": 9, \"id\": \"xorz\"}", &a, v, &n, &e), 0);
	assert_int_equal(n, 4);
	assert_int_equal(v[0], 9);
	assert_int_equal(v[2], 48);
	assert_int_equal(from_json("rot", "{\"id\":\"rot\",\"by\": 3}", &a, v, &n, &e), 0);
	assert_int_equal(n, 6);
	assert_int_equal(v[3], 9 | 1 << 8); /* NC_UINT */
	assert_int_equal(from_json("same", "{\"id\":\"same\"}", &a, v, &n, &e), 0);
	assert_int_equal(n, 0);
	assert_int_equal(from_json("xorz", "{\"id\":\"xorz\"}", NULL, v, &n, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "error -137"));
	assert_int_equal(from_json("xorz", NULL, NULL, v, &n, &e), -EOPNOTSUPP);
	assert_int_equal(from_json("xorz", "{\"id\":\"xorz\",", NULL, v, &n, &e), -EBADMSG);
	assert_int_equal(from_json("xorz", "{\"id\":\"zlib\"}", NULL, v, &n, &e), -EBADMSG);
	assert_int_equal(from_json("xorz", "{}", NULL, v, &n, &e), -EBADMSG);
	assert_int_equal(from_json("bad", "{\"id\":\"bad\",\"how\":100}", NULL, v, &n, &e),
			 -EIO);
	assert_int_equal(from_json("bad", "{\"id\":\"bad\",\"how\":101}", NULL, v, &n, &e),
			 -EIO);
	assert_int_equal(from_json("bad", "{\"id\":\"bad\",\"how\":102}", NULL, v, &n, &e),
			 -EOPNOTSUPP);
	assert_int_equal(from_json("bad", "{\"id\":\"bad\",\"how\":103}", NULL, v, &n, &e),
			 -EIO);
	assert_int_equal(from_json("bad", "{\"id\":\"bad\",\"how\":4}", NULL, v, &n, &e), 0);
	assert_int_equal(v[0], 4);
}

/* json_of - members of the codec's JSON; "-": it cannot be named. */
static const char *json_of(uint32_t id, uint32_t param)
{
	static char text[200];
	const struct codec_spec spec = spec_of(id, 1, &param);
	struct buf b;

	buf_init(&b, 1 << 20);
	codec_find(id)->zarr2_params(&spec, 1, &b);
	(void)snprintf(text, sizeof(text), "%.*s", (int)b.len, b.len ? (char *)b.data : "");
	if (!buf_ok(&b))
		(void)snprintf(text, sizeof(text), "-");
	buf_release(&b);
	return text;
}

static bool has_zarr2(uint32_t id, uint32_t param)
{
	const struct codec_spec spec = spec_of(id, 1, &param);

	return codec_has_zarr2(&spec, 1);
}

static void test_to_zarr(void **state)
{
	(void)state;
	assert_string_equal(json_of(XOR, 12), ", \"key\": 12, \"t\": [1, 2]");
	assert_string_equal(json_of(ROT, 3), ", \"by\": \"3\"");
	assert_string_equal(json_of(SAME, 3), "");
	assert_string_equal(json_of(BAD, 0), ", \"how\": 0");
	for (uint32_t i = 1; i < 6; i++)
		assert_string_equal(json_of(BAD, i), "-");
	assert_string_equal(json_of(BAD, 6), ", \"a\\\"b\": \"}\\n\", \"x\": {\"y\": 1.5}");
	assert_string_equal(json_of(BAD, 7), "-");
	assert_string_equal(json_of(BAD, 8), "-");
	assert_true(has_zarr2(BAD, 0));
	assert_false(has_zarr2(BAD, 1));
	assert_true(has_zarr2(CODEC_DEFLATE, 1));
	assert_false(has_zarr2(40009, 1));
}

/* ---- plugins that are no good ---- */

/* Each costs its own chunk; the next one is decoded. */
static void test_bad(void **state)
{
	static const struct {
		char what;
		int rc;
		const char *text;
	} cases[] = {
		{'c', -EIO, "it crashed (signal 6)"},
		{'k', -EIO,
		 "its process was killed (signal 9): the system may be short of memory"},
		{'e', -EIO, "its process exited (status 9)"},
		{'z', -EBADMSG, "it cannot decode the chunk"},
		{'l', -EIO, "it claims 1048608 bytes but returns fewer"},
		{'H', -EIO, "it claims 4611686018427387904 bytes but returns fewer"},
		{'n', -EIO, "it claims 32 bytes but returns fewer"},
		{'g', -ERANGE, "its result of 128 bytes exceeds 40"},
		{'a', -EIO, "it gave an invalid answer"},
		{'o', -EIO, "it gave an invalid answer"},
		{'t', -EIO, "it gave an invalid answer"},
		{'h', -EIO, "it did not answer within 2 s"},
		{'f', 0, ""},
		{'c', -EIO, "it crashed (signal 6)"},
	};
	uint8_t in[32] = {0}, out[40];
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err e = ERR_INIT;

		in[0] = (uint8_t)cases[i].what;
		assert_int_equal(decode(BAD, in, sizeof(in), out, sizeof(out), &len, &e),
				 cases[i].rc);
		if (!strstr(e.msg, cases[i].text))
			fail_msg("'%c': %s", cases[i].what, e.msg);
		if (cases[i].rc)
			assert_non_null(strstr(e.msg, "/a/libbad.so.1"));
		in[0] = 'x';
		assert_int_equal(decode(BAD, in, sizeof(in), out, sizeof(out), &len, &e), 0);
		assert_int_equal(len, sizeof(in));
		assert_memory_equal(in, out, len);
	}
	in[0] = 'w'; /* it is for the chain to know better */
	assert_int_equal(decode(BAD, in, sizeof(in), out, sizeof(out), &len, NULL), 0);
	assert_int_equal(len, sizeof(in) - 1);
}

/* What a chunk before has broken is not held against this one. */
static void test_broken_before(void **state)
{
	uint8_t in[4] = {'s'}, out[4];
	size_t len;

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(decode(BAD, in, sizeof(in), out, sizeof(out), &len, NULL), 0);
}

static void *decoder(void *arg)
{
	const uint8_t *first = arg;
	uint8_t in[3000], out[3000];
	size_t len = 0;

	for (unsigned i = 0; i < 50; i++) {
		memset(in, *first + (int)i, sizeof(in));
		in[0] = 'X';
		if (decode(XOR, in, sizeof(in), out, sizeof(out), &len, NULL) < 0 ||
		    len != sizeof(in) - 1 || out[7] != (in[8] ^ 5))
			return NULL;
		in[0] = i == 25 ? 'c' : 'x';
		if ((decode(BAD, in, sizeof(in), out, sizeof(out), &len, NULL) < 0) !=
		    (i == 25))
			return NULL;
	}
	return arg;
}

/* More threads than children, some of which die. */
static void test_threads(void **state)
{
	pthread_t t[12];
	uint8_t first[ARRAY_LEN(t)];
	void *ret;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		first[i] = (uint8_t)i;
		assert_int_equal(pthread_create(&t[i], NULL, decoder, &first[i]), 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		assert_int_equal(pthread_join(t[i], &ret), 0);
		assert_ptr_equal(ret, &first[i]);
	}
}

/* ---- other processes ---- */

static void in_child(void (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CHECK(x)                                                                               \
	do {                                                                                   \
		if (!(x))                                                                      \
			_exit(1);                                                              \
	} while (0)

static void use_local(void)
{
	const struct H5Z_class2_t *class;
	uint8_t out[4];
	size_t len;

	codec_plugins_local();
	class = codec_plugins_class(ROT);
	CHECK(class && class->id == ROT);
	CHECK(!codec_plugins_class(40009));
	CHECK(H5Zregister(class) >= 0 && H5Zfilter_avail(ROT) > 0);
	CHECK(decode(XOR, "Xabc", 4, out, 4, &len, NULL) == 0 && len == 3 &&
	      out[0] == ('a' ^ 5));
	CHECK(decode(XOR, "Yabc", 4, out, 4, &len, NULL) == -EBADMSG);
	CHECK(decode(XOR, "Xabc", 4, out, 2, &len, NULL) == -ERANGE);
}

static void use_off(void)
{
	struct buf b;

	codec_plugins_off();
	CHECK(!codec_find(XOR) && codec_find(CODEC_DEFLATE) && !zarr2("xorz"));
	CHECK(!codec_find_name("xorz", 4) && codec_plugins_id(0) == 0);
	buf_init(&b, 4096);
	codec_plugins_report(&b);
	CHECK(b.len == 21 && memcmp(b.data, "plugins are disabled\n", 21) == 0);
}

/* use_alone - a program that has no process to fork others: it forks by itself. */
static void use_alone(void)
{
	uint8_t out[4];
	size_t len;

	CHECK(!child_prepared());
	CHECK(decode(XOR, "Xabc", 4, out, 4, &len, NULL) == 0 && len == 3);
	CHECK(decode(BAD, "c", 1, out, 4, &len, NULL) == -EIO);
	CHECK(decode(BAD, "x", 1, out, 4, &len, NULL) == 0);
}

static void test_local(void **state)
{
	(void)state;
	in_child(use_local);
}

static void test_off(void **state)
{
	(void)state;
	in_child(use_off);
}

static void test_alone(void **state)
{
	(void)state;
	in_child(use_alone);
}

/* ---- all of it ---- */

static int remove_all(void **state)
{
	char command[PATH_MAX + 16];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", g_tmp);
	return system(command) == 0 ? 0 : -1; /* NOLINT: a path of our own */
}

static void find_built(void)
{
	ssize_t n = readlink("/proc/self/exe", g_built, sizeof(g_built) - 16);

	assert_true(n > 0);
	g_built[n] = '\0';
	assert_non_null(strstr(g_built, "/unit/"));
	strcpy(strstr(g_built, "/unit/"), "/test-plugins");
}

/* set_up - tests without plugins come first, and those of a program without a forker. */
static int set_up(void **state)
{
	(void)state;
	(void)snprintf(g_tmp, sizeof(g_tmp), "/tmp/nczarrfs-plugins-XXXXXX");
	if (!mkdtemp(g_tmp))
		return -1;
	find_built();
	install_all();
	if (chdir(g_tmp) < 0)
		return -1;
	codec_plugins_begin();
	codec_plugins_time(2000);
	if (setenv("HDF5_PLUGIN_PATH", "a::b:open:none", 1) < 0)
		return -1;
	return chdir("/");
}

static int set_forker(void **state)
{
	struct err e = ERR_INIT;

	(void)state;
	if (setenv("HDF5_PLUGIN_PATH", "a::b:open:none:hangs", 1) < 0)
		return -1;
	return child_prepared() ? 0 : child_prepare(NULL, &e);
}

#define FORKED(fn) cmocka_unit_test_setup(fn, set_forker)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trust),
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_off),
		FORKED(test_report),
		FORKED(test_names),
		FORKED(test_round_trip),
		FORKED(test_limits),
		FORKED(test_prepare),
		FORKED(test_from_zarr),
		FORKED(test_to_zarr),
		FORKED(test_bad),
		FORKED(test_broken_before),
		FORKED(test_threads),
	};

	return cmocka_run_group_tests(tests, set_up, remove_all);
}
