/* SPDX-License-Identifier: BSD-3-Clause */
/* bad.c - filter 40004 does what the first byte of its input says: crash, hang, lie. Its codec does
 * what the JSON or the parameter says. */
#include "tests/plugins/common.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define ID 40004
#define FDS 64

/* say - to every socket that this process has: nonsense, or an answer with a length that cannot
 * be. */
static void say(const void *p, size_t n)
{
	for (int fd = 3; fd < FDS; fd++)
		(void)!send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static size_t filter(unsigned flags, size_t n_params, const unsigned *params, size_t n,
		     size_t *room, void **data)
{
	static const long long long_answer[2] = {0, 1LL << 40}, odd_answer[2] = {5, 0},
			       endless_text[2] = {-5, 1 << 20};
	static unsigned calls;
	unsigned char *p = *data;

	(void)flags;
	(void)n_params;
	(void)params;
	calls++;
	switch (n > 0 ? p[0] : 0) {
	case 'c':
		abort();
	case 'k':
		(void)raise(SIGKILL);
		return 0;
	case 's': /* only the second call of a process, and later ones, crash */
		if (calls > 1)
			abort();
		return n;
	case 'e':
		_exit(9);
	case 'h':
		for (;;)
			(void)pause();
	case 'z':
		return 0;
	case 'l': /* longer than what it gives */
		*room = n + (1 << 20);
		return n + (1 << 20);
	case 'H':
		*room = (size_t)1 << 62;
		return (size_t)1 << 62;
	case 'n':
		free(*data);
		*data = NULL;
		*room = 0;
		return n;
	case 'w': /* shorter than it should be */
		return n - 1;
	case 'g': { /* really that long */
		void *more = calloc(4, n);

		if (!more)
			return 0;
		free(*data);
		*data = more;
		*room = 4 * n;
		return 4 * n;
	}
	case 'a':
		say(long_answer, sizeof(long_answer));
		return n;
	case 'o':
		say(odd_answer, sizeof(odd_answer));
		return n;
	case 't':
		say(endless_text, sizeof(endless_text));
		return n;
	case 'f': /* the memory that it shares becomes shorter, if it lets itself */
		for (int fd = 3; fd < FDS; fd++)
			(void)!ftruncate(fd, 0);
		return n;
	default:
		return n;
	}
}

static const H5Z_class2_t class = {H5Z_CLASS_T_VERS, ID, 1, 1, "bad", NULL, NULL, filter};

H5PL_type_t H5PLget_plugin_type(void)
{
	return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
	return &class;
}

static int to_hdf5(const char *json, size_t *nparams, unsigned **params)
{
	long how = number_in(json, "how");

	switch (how) {
	case 100: /* more than it gives */
		*nparams = (size_t)1 << 40;
		*params = malloc(4);
		return 0;
	case 101:
		*nparams = 3;
		*params = NULL;
		return 0;
	case 102: /* more than anybody takes */
		*nparams = 1000;
		*params = calloc(1000, 4);
		return 0;
	case 103:
		abort();
	default:
		return one_param(how, nparams, params);
	}
}

static int to_codec(size_t nparams, const unsigned *params, char **json)
{
	static const char *const texts[] = {
		"{\"id\": \"bad\", \"how\": 0}",
		"not JSON",
		"{\"id\": \"other\", \"how\": 2}",
		"[1]",
		"{\"id\": \"bad\", \"how\": 4}, \"more\": 1}",
		"{\"id\": \"bad\", \"a\\\"b\": \"}\\u0000\", \"x\": NaN}",
		"{\"id\": \"bad\", \"a\\\"b\": \"}\\n\", \"x\": {\"y\": 1.50}}",
		"{\"id\": \"bad\", \"how\": 7, \"how\": 8}",
	};

	if (nparams < 1 || params[0] >= sizeof(texts) / sizeof(texts[0]))
		return -137;
	*json = strdup(texts[params[0]]);
	return 0;
}

static int modify(int ncid, int varid, size_t *vn, unsigned **v, size_t *wn, unsigned **w)
{
	(void)v;
	(void)w;
	(void)wn;
	return ncid < 0 && varid < 0 && *vn == 1 ? -33 : 0; /* without netCDF */
}

static const codec_t codec = {1, 1, "bad", ID, NULL, NULL, to_hdf5, to_codec, modify};

const void *NCZ_get_codec_info(void)
{
	return &codec;
}
