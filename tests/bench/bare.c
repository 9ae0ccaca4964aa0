/* SPDX-License-Identifier: BSD-3-Clause */
/* bare.c - the yardstick of `make bench`: a FUSE server that knows no format.
 *
 * It serves byte ranges of one file as the files 0, 1, 2 ... of one directory, with everything
 * that makes a read-only mount quick and nothing else: computed inode numbers, timeouts of a day,
 * no open or opendir (ENOSYS), one pread into a per-thread buffer. What nczarrfs needs beyond
 * this is the price of knowing the format. The other ways to answer (--reply, --open) are there
 * to be measured, not to be the yardstick. It runs in the foreground until unmounted. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fuse_lowlevel.h>

#define TIMEOUT 86400.0
#define INO_ZARRAY 2u
#define INO_FIRST 16u
#define MAX_COUNT (UINT64_C(1) << 40)

enum reply { REPLY_PREAD, REPLY_MAP, REPLY_SPLICE, REPLY_STORE };
enum open_kind { OPEN_NONE, OPEN_KEEP, OPEN_DIRECT };

struct range {
	uint64_t off;
	uint64_t len;
};

struct bare {
	int fd;
	uint64_t size;         /* of the file */
	const uint8_t *map;    /* the whole file, or NULL */
	struct range *list;    /* n ranges, or NULL: equal ranges of chunk bytes from offset */
	uint64_t n;
	uint64_t chunk;
	uint64_t offset;
	char *zarray;          /* text of the file .zarray, or NULL */
	size_t zarray_len;
	enum reply reply;
	enum open_kind open;
	struct stat st;        /* of the file: owner and times */
	struct fuse_session *se;
	pthread_key_t key;     /* each thread's read buffer */
	atomic_uint storing;   /* threads in notify_store: fewer than there may be threads */
	unsigned max_read;
	unsigned max_threads;
	unsigned idle_threads;
	int clone_fd;
	bool debug;
};

struct tbuf {
	size_t cap;
	uint8_t *p;
};

static void tbuf_free(void *v)
{
	struct tbuf *t = v;

	free(t->p);
	free(t);
}

static uint8_t *tbuf_get(struct bare *b, size_t n)
{
	struct tbuf *t = pthread_getspecific(b->key);

	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t || pthread_setspecific(b->key, t)) {
			free(t);
			return NULL;
		}
	}
	if (t->cap < n) {
		void *p = NULL;

		if (posix_memalign(&p, 4096, n))
			return NULL;
		free(t->p);
		t->p = p;
		t->cap = n;
	}
	return t->p;
}

static struct range range_of(const struct bare *b, uint64_t i)
{
	if (b->list)
		return b->list[i];
	return (struct range){b->offset + i * b->chunk, b->chunk};
}

/* Strict decimal, so that no file has two names. */
static bool parse_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*s || (*s == '0' && s[1]))
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || v > max / 10)
			return false;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	if (v > max)
		return false;
	*ret = v;
	return true;
}

static bool attr_of(const struct bare *b, fuse_ino_t ino, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_ino = ino;
	st->st_uid = b->st.st_uid;
	st->st_gid = b->st.st_gid;
	st->st_mtim = st->st_atim = st->st_ctim = b->st.st_mtim;
	if (ino == FUSE_ROOT_ID) {
		st->st_mode = S_IFDIR | 0555;
		st->st_nlink = 2;
		return true;
	}
	st->st_mode = S_IFREG | 0444;
	st->st_nlink = 1;
	if (ino == INO_ZARRAY && b->zarray)
		st->st_size = (off_t)b->zarray_len;
	else if (ino >= INO_FIRST && ino - INO_FIRST < b->n)
		st->st_size = (off_t)range_of(b, ino - INO_FIRST).len;
	else
		return false;
	st->st_blocks = (st->st_size + 511) / 512;
	return true;
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	const struct bare *b = userdata;

	if (b->reply == REPLY_SPLICE) {
		conn->want |= conn->capable & (FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	} else {
		conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
	}
	conn->max_background = 64;
	conn->congestion_threshold = 48;
	if (b->max_read)
		conn->max_read = b->max_read;
	if (b->debug)
		fprintf(stderr, "max_readahead %u max_write %u\n", conn->max_readahead,
			conn->max_write);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	const struct bare *b = fuse_req_userdata(req);
	struct fuse_entry_param e = {.generation = 1, .attr_timeout = TIMEOUT,
				     .entry_timeout = TIMEOUT};
	uint64_t i;

	if (parent != FUSE_ROOT_ID) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	if (b->n && parse_u64(name, b->n - 1, &i))
		e.ino = INO_FIRST + i;
	else if (b->zarray && !strcmp(name, ".zarray"))
		e.ino = INO_ZARRAY;
	if (e.ino)
		(void)attr_of(b, e.ino, &e.attr); /* of an inode that exists */
	fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st;

	(void)fi;
	if (!attr_of(fuse_req_userdata(req), ino, &st))
		fuse_reply_err(req, ENOENT);
	else
		fuse_reply_attr(req, &st, TIMEOUT);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	const struct bare *b = fuse_req_userdata(req);

	(void)ino;
	if (b->open == OPEN_NONE) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->keep_cache = b->open == OPEN_KEEP;
	fi->direct_io = b->open == OPEN_DIRECT;
	fi->noflush = 1;
	fuse_reply_open(req, fi);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	fuse_reply_err(req, ENOSYS);
}

static void reply_splice(fuse_req_t req, struct bare *b, uint64_t pos, size_t n)
{
	struct fuse_bufvec v = FUSE_BUFVEC_INIT(n);

	v.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK | FUSE_BUF_FD_RETRY;
	v.buf[0].fd = b->fd;
	v.buf[0].pos = (off_t)pos;
	fuse_reply_data(req, &v, FUSE_BUF_SPLICE_MOVE);
}

/* On the first read of a file, put all that follows into the page cache before answering: the
 * reader's later requests never reach this process. A store may wait for a page that another
 * read holds until it is answered, so some threads always stay free to answer. */
static void store_rest(struct bare *b, fuse_ino_t ino, struct range r, uint64_t from)
{
	const uint64_t most = 1024 * 1024 - 4096;

	if (atomic_fetch_add(&b->storing, 1) >= 4)
		from = r.len;
	while (from < r.len) {
		uint64_t n = r.len - from < most ? r.len - from : most;
		struct fuse_bufvec v = FUSE_BUFVEC_INIT(n);

		v.buf[0].mem = (void *)(uintptr_t)(b->map + r.off + from);
		if (fuse_lowlevel_notify_store(b->se, ino, (off_t)from, &v, 0))
			break;
		from += n;
	}
	atomic_fetch_sub(&b->storing, 1);
}

static void reply_pread(fuse_req_t req, struct bare *b, uint64_t pos, size_t n)
{
	uint8_t *p = tbuf_get(b, n);
	ssize_t got;

	if (!p) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	got = pread(b->fd, p, n, (off_t)pos);
	if (got != (ssize_t)n)
		fuse_reply_err(req, EIO);
	else
		fuse_reply_buf(req, (const char *)p, n);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		    struct fuse_file_info *fi)
{
	struct bare *b = fuse_req_userdata(req);
	uint64_t from = (uint64_t)off;
	struct range r;
	uint64_t n;

	(void)fi;
	if (ino == INO_ZARRAY) {
		n = from < b->zarray_len ? b->zarray_len - from : 0;
		fuse_reply_buf(req, n ? b->zarray + from : NULL, n < size ? n : size);
		return;
	}
	if (ino < INO_FIRST || ino - INO_FIRST >= b->n) {
		fuse_reply_err(req, EIO);
		return;
	}
	r = range_of(b, ino - INO_FIRST);
	n = from < r.len ? r.len - from : 0;
	if (n > size)
		n = size;
	if (!n)
		fuse_reply_buf(req, NULL, 0);
	else if (b->reply == REPLY_SPLICE)
		reply_splice(req, b, r.off + from, n);
	else if (b->reply == REPLY_PREAD)
		reply_pread(req, b, r.off + from, n);
	else {
		if (b->reply == REPLY_STORE && from == 0 && n < r.len)
			store_rest(b, ino, r, n);
		fuse_reply_buf(req, (const char *)b->map + r.off + from, n);
	}
}

/* Cookies: 1 and 2 are the dots, 3 is .zarray, then the ranges. */
static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off,
		       struct fuse_file_info *fi)
{
	struct bare *b = fuse_req_userdata(req);
	char *p = (char *)tbuf_get(b, size);
	size_t used = 0;
	uint64_t c;

	(void)fi;
	if (!p || ino != FUSE_ROOT_ID) {
		fuse_reply_err(req, p ? ENOTDIR : ENOMEM);
		return;
	}
	for (c = (uint64_t)off; c < b->n + 3; c++) {
		struct stat st = {.st_ino = FUSE_ROOT_ID, .st_mode = S_IFDIR};
		char name[24] = ".";
		size_t len;

		if (c == 1)
			snprintf(name, sizeof(name), "..");
		if (c == 2 && !b->zarray)
			continue;
		if (c >= 2) {
			st.st_mode = S_IFREG;
			st.st_ino = c == 2 ? INO_ZARRAY : INO_FIRST + c - 3;
			if (c == 2)
				snprintf(name, sizeof(name), ".zarray");
			else
				snprintf(name, sizeof(name), "%" PRIu64, c - 3);
		}
		len = fuse_add_direntry(req, p + used, size - used, name, &st, (off_t)c + 1);
		if (len > size - used)
			break;
		used += len;
	}
	fuse_reply_buf(req, p, used);
}

static const struct fuse_lowlevel_ops ops = {
	.init = op_init,
	.lookup = op_lookup,
	.getattr = op_getattr,
	.open = op_open,
	.opendir = op_opendir,
	.read = op_read,
	.readdir = op_readdir,
};

static int fail(const char *what, const char *name)
{
	fprintf(stderr, "bare: %s '%s': %s\n", what, name, strerror(errno));
	return -1;
}

static int read_list(struct bare *b, const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t cap = 0;
	struct range r;

	if (!f)
		return fail("list", path);
	b->n = 0;
	while (fscanf(f, "%" SCNu64 " %" SCNu64, &r.off, &r.len) == 2) {
		if (b->n == cap) {
			struct range *p;

			cap = cap ? cap * 2 : 1024;
			p = realloc(b->list, cap * sizeof(*p));
			if (!p)
				break;
			b->list = p;
		}
		b->list[b->n++] = r;
	}
	if (!feof(f) || !b->n) {
		errno = EINVAL;
		(void)fclose(f);
		return fail("list", path);
	}
	(void)fclose(f);
	return 0;
}

static int read_text(const char *path, char **ret, size_t *ret_len)
{
	FILE *f = fopen(path, "re");
	const size_t cap = 65536;
	char *p = f ? malloc(cap) : NULL;

	if (!p) {
		if (f)
			(void)fclose(f);
		return fail("read", path);
	}
	*ret_len = fread(p, 1, cap, f);
	*ret = p;
	(void)fclose(f);
	return 0;
}

static int open_source(struct bare *b, const char *path)
{
	uint64_t i;

	b->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (b->fd < 0 || fstat(b->fd, &b->st))
		return fail("open", path);
	b->size = (uint64_t)b->st.st_size;
	for (i = 0; i < b->n; i++) {
		struct range r = range_of(b, i);

		if (r.off > b->size || r.len > b->size - r.off) {
			errno = ERANGE;
			return fail("a range ends beyond", path);
		}
		if (!b->list && i < b->n - 2)
			i = b->n - 2; /* equal ranges: the last one tells */
	}
	if (b->reply == REPLY_MAP || b->reply == REPLY_STORE) {
		void *p = mmap(NULL, b->size, PROT_READ, MAP_SHARED | MAP_POPULATE, b->fd, 0);

		if (p == MAP_FAILED)
			return fail("map", path);
		b->map = p;
	}
	return 0;
}

static int pick(const char *word, const char *const *words, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(word, words[i]))
			return i;
	return -1;
}

static const char usage[] =
	"usage: bare [options] FILE MOUNTPOINT\n"
	"  --chunk BYTES --count N [--offset BYTES]   equal ranges\n"
	"  --list FILE        ranges, one 'offset length' a line\n"
	"  --zarray FILE      text to serve as .zarray\n"
	"  --reply pread|map|splice|store   how a read is answered (pread)\n"
	"  --open none|keep|direct          none: ENOSYS; the others answer each open (none)\n"
	"  --max-read BYTES --max-threads N --idle-threads N --clone-fd --debug\n";

static const struct option longopts[] = {
	{"chunk", required_argument, NULL, 'c'},
	{"count", required_argument, NULL, 'n'},
	{"offset", required_argument, NULL, 'o'},
	{"list", required_argument, NULL, 'l'},
	{"zarray", required_argument, NULL, 'z'},
	{"reply", required_argument, NULL, 'r'},
	{"open", required_argument, NULL, 'p'},
	{"max-read", required_argument, NULL, 'm'},
	{"max-threads", required_argument, NULL, 't'},
	{"idle-threads", required_argument, NULL, 'i'},
	{"clone-fd", no_argument, NULL, 'C'},
	{"debug", no_argument, NULL, 'd'},
	{NULL, 0, NULL, 0},
};

static int set_option(struct bare *b, int c, const char *arg)
{
	static const char *const replies[] = {"pread", "map", "splice", "store"};
	static const char *const opens[] = {"none", "keep", "direct"};
	uint64_t v = 0;
	int i = 0;

	if (c == 'l')
		return read_list(b, arg);
	if (c == 'z')
		return read_text(arg, &b->zarray, &b->zarray_len);
	if (c == 'C')
		b->clone_fd = 1;
	else if (c == 'd')
		b->debug = true;
	else if (c == 'r')
		b->reply = (enum reply)(i = pick(arg, replies, 4));
	else if (c == 'p')
		b->open = (enum open_kind)(i = pick(arg, opens, 3));
	else if (c == '?' || !parse_u64(arg, c == 'm' || c == 't' || c == 'i' ? 1u << 30 :
					MAX_COUNT, &v))
		i = -1;
	else if (c == 'c')
		b->chunk = v;
	else if (c == 'n')
		b->n = v;
	else if (c == 'o')
		b->offset = v;
	else if (c == 'm')
		b->max_read = (unsigned)v;
	else if (c == 't')
		b->max_threads = (unsigned)v;
	else
		b->idle_threads = (unsigned)v;
	return i;
}

static int serve(struct bare *b, const char *mountpoint)
{
	char opts[128] = "ro,fsname=bare,subtype=bare,default_permissions";
	char *argv[] = {(char[]){"bare"}, (char[]){"-o"}, opts, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct fuse_loop_config *lc = fuse_loop_cfg_create();
	int rc = -1;

	if (b->max_read) {
		size_t n = strlen(opts);

		snprintf(opts + n, sizeof(opts) - n, ",max_read=%u", b->max_read);
	}
	if (b->max_threads)
		fuse_loop_cfg_set_max_threads(lc, b->max_threads);
	if (b->idle_threads)
		fuse_loop_cfg_set_idle_threads(lc, b->idle_threads);
	fuse_loop_cfg_set_clone_fd(lc, (unsigned)b->clone_fd);
	b->se = fuse_session_new(&args, &ops, sizeof(ops), b);
	if (b->se && !fuse_set_signal_handlers(b->se)) {
		if (!fuse_session_mount(b->se, mountpoint)) {
			rc = fuse_session_loop_mt(b->se, lc);
			fuse_session_unmount(b->se);
		}
		fuse_remove_signal_handlers(b->se);
	}
	if (b->se)
		fuse_session_destroy(b->se);
	fuse_loop_cfg_destroy(lc);
	fuse_opt_free_args(&args);
	return rc;
}

int main(int argc, char **argv)
{
	struct bare b = {.fd = -1};
	int rc = 2;
	int c;

	while ((c = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (set_option(&b, c, optarg) < 0) {
			fputs(usage, stderr);
			goto out;
		}
	}
	if (argc - optind != 2 || !b.n || (!b.list && !b.chunk) ||
	    (!b.list && b.n > MAX_COUNT / b.chunk)) {
		fputs(usage, stderr);
		goto out;
	}
	rc = 1;
	if (pthread_key_create(&b.key, tbuf_free) || open_source(&b, argv[optind]))
		goto out;
	rc = serve(&b, argv[optind + 1]) ? 1 : 0;
out:
	if (b.map)
		(void)munmap((void *)(uintptr_t)b.map, b.size);
	if (b.fd >= 0)
		(void)close(b.fd);
	free(b.list);
	free(b.zarray);
	return rc;
}
