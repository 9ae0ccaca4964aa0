/* SPDX-License-Identifier: BSD-3-Clause */
/* objects.c - a program for tests: what is said on standard input is done with
 * a bucket of S3.
 *
 *   objects [-e ENDPOINT] [-r REGION] [-p PROFILE] [-anpv] [-t TRIES] [-m MS] BUCKET [KEY]
 *     -m of one request at most, -a anonymous, -n requester pays, -v bucket in the host's name,
 *     -g Google's
 *
 * Lines of words with tabs between them; FILE is written or read:
 *   head KEY [UNLESS]    all KEY MAX FILE    part KEY OFF LEN FILE [ETAG]    tail KEY LEN FILE
 *   list KEY    deep KEY    put KEY FILE [absent | ETAG]    remove KEY
 * Each is answered by a line: rc, size, etag, offset, bytes, message; a listing by a line for each
 * entry before it: "entry", name, "dir" or size, etag. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/str.h"
#include "nczarr/remote/services.h"

static void say(int rc, const struct object_info *i, uint64_t off, size_t len,
		const struct err *e)
{
	printf("%d\t%lld\t%s\t%llu\t%zu\t%s\n", rc, (long long)i->size, i->etag,
	       (unsigned long long)off, len, rc < 0 ? e->msg : "");
	fflush(stdout);
}

static uint64_t number(const char *text)
{
	uint64_t v = 0;

	return text && str_u64(text, strlen(text), UINT64_MAX, &v) == 0 ? v : 0;
}

static void get(struct object_service *o, const struct object_range *r, const char *file)
{
	struct object_got got;
	struct err e = ERR_INIT;
	int rc = object_get(o, r, &got, &e);
	FILE *f = file && rc == 0 ? fopen(file, "wb") : NULL;

	if (f) {
		if (got.len && fwrite(got.data, 1, got.len, f) != got.len)
			rc = -EIO;
		fclose(f);
	}
	say(rc, &got.info, got.off, got.len, &e);
	free(got.data);
}

static bool entry(void *arg, const char *name, bool is_dir, const struct object_info *info)
{
	(void)arg;
	if (is_dir)
		printf("entry\t%s\tdir\t\n", name);
	else
		printf("entry\t%s\t%llu\t%s\n", name, (unsigned long long)info->size,
		       info->etag);
	return true;
}

static void list(struct object_service *o, const char *key, bool deep)
{
	const struct object_info none = {.size = 0};
	struct err e = ERR_INIT;
	int rc = o->ops->list(o, key, deep, entry, NULL, &e);

	say(rc, &none, 0, 0, &e);
}

static void put(struct object_service *o, const char *key, const char *file, const char *cond)
{
	struct object_info info = {.size = 0};
	bool absent = cond && strcmp(cond, "absent") == 0;
	const struct put_condition c = {.absent = absent, .etag = absent ? NULL : cond};
	struct err e = ERR_INIT;
	int fd = open(file, O_RDONLY | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		rc = err_sys(&e, errno, "'%s'", file);
	else
		rc = o->ops->put(o, key, NULL, fd, 0, (uint64_t)st.st_size, cond ? &c : NULL,
				 &info, &e);
	if (fd >= 0)
		close(fd);
	say(rc, &info, 0, 0, &e);
}

static void run(struct object_service *o, char **w)
{
	struct object_range r = {.key = w[1] ? w[1] : ""};
	const struct object_info none = {.size = 0};
	struct err e = ERR_INIT;

	if (strcmp(w[0], "head") == 0) {
		r.what = OBJECT_HEAD;
		r.unless = w[2];
		get(o, &r, NULL);
	} else if (strcmp(w[0], "all") == 0) {
		r.what = OBJECT_ALL;
		r.len = number(w[2]);
		get(o, &r, w[3]);
	} else if (strcmp(w[0], "part") == 0) {
		r.what = OBJECT_PART;
		r.off = number(w[2]);
		r.len = w[2] ? number(w[3]) : 0;
		r.etag = w[2] && w[3] && w[4] ? w[5] : NULL;
		get(o, &r, w[4]);
	} else if (strcmp(w[0], "tail") == 0) {
		r.what = OBJECT_TAIL;
		r.len = number(w[2]);
		get(o, &r, w[3]);
	} else if (strcmp(w[0], "list") == 0 || strcmp(w[0], "deep") == 0) {
		list(o, r.key, w[0][0] == 'd');
	} else if (strcmp(w[0], "put") == 0) {
		put(o, r.key, w[2] ? w[2] : "", w[2] ? w[3] : NULL);
	} else if (strcmp(w[0], "remove") == 0) {
		say(o->ops->remove(o, r.key, &e), &none, 0, 0, &e);
	}
}

static void loop(struct object_service *o)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		char *w[9] = {NULL}, *rest = line;

		line[n - (line[n - 1] == '\n')] = '\0';
		for (size_t i = 0; i < 8 && rest; i++)
			w[i] = strsep(&rest, "\t");
		run(o, w);
	}
	free(line);
}

static int usage(void)
{
	fprintf(stderr,
		"objects [-e ENDPOINT] [-r REGION] [-p PROFILE] [-anvg] [-t TRIES] BUCKET "
		"[KEY]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct remote_options o = {.timeout_ms = 30000, .tries = 4, .connections = 8};
	struct remote_target t = {.kind = REMOTE_S3};
	struct http_client_options n = {
		.connect_ms = 10000, .stall_ms = 20000, .connections = 8};
	struct err e = ERR_INIT;
	struct object_service *obj;
	struct http_client *net;
	int c;

	while ((c = getopt(argc, argv, "e:r:p:t:m:anvg")) > 0)
		switch (c) {
		case 'e':
			o.endpoint = optarg;
			break;
		case 'r':
			o.region = optarg;
			break;
		case 'p':
			o.profile = optarg;
			break;
		case 't':
			o.tries = (uint32_t)number(optarg);
			break;
		case 'm':
			o.timeout_ms = (uint32_t)number(optarg);
			n.stall_ms = o.timeout_ms / 2;
			break;
		case 'a':
			o.anonymous = true;
			break;
		case 'n':
			o.requester_pays = true;
			break;
		case 'v':
			o.virtual_hosts = true;
			break;
		case 'g':
			t.kind = REMOTE_GS3;
			break;
		default:
			return usage();
		}
	if (optind >= argc)
		return usage();
	t.bucket = argv[optind];
	t.key = optind + 1 < argc ? argv[optind + 1] : "";
	t.shown = t.bucket;
	n.total_ms = o.timeout_ms;
	n.tries = o.tries;
	n.requests = 64;
	if (http_client_new(&n, &net, &e) < 0 || s3_service_open(net, &o, &t, &obj, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	loop(obj);
	objects_close(obj);
	http_client_free(net);
	return 0;
}
