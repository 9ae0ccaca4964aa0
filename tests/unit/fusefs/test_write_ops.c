/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that change files, from system calls through a real mount to a fake view: a flat
 * directory in memory that records its calls. */
#include "fusefs/app/fusefs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cmocka.h>

enum { FILES = 8, BYTES = 3 << 20 };

struct file {
	char name[64]; /* "": none */
	bool is_dir;
	size_t size;
	mode_t mode;
	struct timespec mtime;
	uint8_t *data; /* BYTES */
};

/* The recorded calls, and the results to return; the server has one thread. */
static struct {
	struct view view;
	struct file files[FILES];
	char said[4096];
	int fail; /* result of the next request of the kind below */
	const char *kind;
	size_t largest;   /* write */
	uint64_t handles; /* open ones */
} fake;

static void say(const char *fmt, ...)
{
	size_t n = strlen(fake.said);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(fake.said + n, sizeof(fake.said) - n, fmt, ap);
	va_end(ap);
}

/* told - check the calls since the last check; the server must be idle. */
static void told(const char *want)
{
	if (strcmp(fake.said, want) != 0)
		fail_msg("said '%s', not '%s'", fake.said, want);
	fake.said[0] = '\0';
}

static int fails(const char *kind, struct err *e)
{
	int rc = fake.kind && strcmp(fake.kind, kind) == 0 ? fake.fail : 0;

	if (rc)
		fake.kind = NULL;
	return rc ? err_set(e, rc, "%s: as told", kind) : 0;
}

static struct file *of(uint64_t id)
{
	return &fake.files[id - 2];
}

static struct file *named(const char *name, size_t len)
{
	for (size_t i = 0; i < FILES; i++)
		if (strlen(fake.files[i].name) == len &&
		    memcmp(fake.files[i].name, name, len) == 0)
			return len ? &fake.files[i] : NULL;
	return NULL;
}

static void attr_of(const struct file *f, struct view_attr *ret)
{
	*ret = (struct view_attr){.id = 2 + (uint64_t)(f - fake.files),
				  .size = f->size,
				  .nlink = f->is_dir ? 2 : 1,
				  .is_dir = f->is_dir,
				  .own = true,
				  .mode = f->mode,
				  .uid = geteuid(),
				  .gid = getegid(),
				  .mtime = f->mtime};
}

static int v_lookup(struct view *v, uint64_t dir, const char *name, size_t len,
		    struct view_attr *ret, struct err *e)
{
	const struct file *f = dir == VIEW_ROOT ? named(name, len) : NULL;

	(void)v;
	if (!f)
		return err_set(e, -ENOENT, "no such name");
	attr_of(f, ret);
	return 0;
}

static int v_getattr(struct view *v, uint64_t id, struct view_attr *ret, struct err *e)
{
	(void)v;
	(void)e;
	if (id == VIEW_ROOT)
		*ret = (struct view_attr){.id = id, .nlink = 2, .is_dir = true};
	else
		attr_of(of(id), ret);
	return 0;
}

static int v_list(struct view *v, uint64_t dir, uint64_t cookie, bool want_attr,
		  view_emit *emit, void *arg, struct err *e)
{
	(void)v;
	(void)want_attr;
	(void)e;
	for (uint64_t i = cookie; dir == VIEW_ROOT && i < FILES; i++)
		if (fake.files[i].name[0] &&
		    !emit(arg, fake.files[i].name, 2 + i, fake.files[i].is_dir, NULL, i + 1))
			break;
	return 0;
}

static uint64_t v_parent(struct view *v, uint64_t dir)
{
	(void)v;
	(void)dir;
	return VIEW_ROOT;
}

static void v_close(struct view *v)
{
	(void)v;
}

static int v_read(struct view *v, uint64_t id, uint64_t fh, uint64_t off, size_t len,
		  uint8_t *room, struct span *ret, struct err *e)
{
	const struct file *f = of(id);
	size_t n = off < f->size ? f->size - (size_t)off : 0;

	(void)v;
	(void)e;
	assert_true(fh >= 100);
	n = n < len ? n : len;
	memcpy(room, f->data + off, n);
	*ret = (struct span){.mem = room, .len = n};
	return 0;
}

static const struct view_ops ops = {.name = "fake",
				    .close = v_close,
				    .lookup = v_lookup,
				    .getattr = v_getattr,
				    .list = v_list,
				    .read = v_read,
				    .parent = v_parent};

static int w_open(struct view *v, uint64_t id, int flags, struct view_handle *ret,
		  struct err *e)
{
	static uint64_t next = 100;
	int rc = fails("open", e);

	(void)v;
	say("open %s%s%s;",
	    (flags & O_ACCMODE) == O_RDONLY   ? "r"
	    : (flags & O_ACCMODE) == O_WRONLY ? "w"
					      : "rw",
	    flags & O_TRUNC ? " trunc" : "", flags & O_APPEND ? " append" : "");
	if (rc)
		return rc;
	if (flags & O_TRUNC)
		of(id)->size = 0;
	*ret = (struct view_handle){.fh = next++};
	fake.handles++;
	return 0;
}

static struct file *add(const char *name, bool is_dir, mode_t mode)
{
	for (size_t i = 0; i < FILES; i++) {
		struct file *f = &fake.files[i];

		if (f->name[0])
			continue;
		*f = (struct file){.is_dir = is_dir, .mode = mode, .data = f->data};
		(void)snprintf(f->name, sizeof(f->name), "%s", name);
		if (!f->data)
			f->data = alloc_array(BYTES, 1);
		return f;
	}
	return NULL;
}

static int w_create(struct view *v, uint64_t dir, const char *name, int flags,
		    mode_t mode, struct view_attr *ret_attr, struct view_handle *ret,
		    struct err *e)
{
	int rc = fails("create", e);
	struct file *f;

	(void)dir;
	say("create %s %o%s;", name, mode, flags & O_EXCL ? " excl" : "");
	if (rc)
		return rc;
	f = add(name, false, mode);
	attr_of(f, ret_attr);
	rc = w_open(v, ret_attr->id, flags & ~O_EXCL, ret, e);
	return rc;
}

static int w_write(struct view *v, uint64_t id, uint64_t fh, uint64_t off, const uint8_t *data,
		   size_t len, struct err *e)
{
	struct file *f = of(id);
	int rc = fails("write", e);

	(void)v;
	assert_true(fh >= 100);
	if (rc)
		return rc;
	assert_true(off + len <= BYTES);
	memcpy(f->data + off, data, len);
	f->size = off + len > f->size ? (size_t)off + len : f->size;
	fake.largest = len > fake.largest ? len : fake.largest;
	say("write;");
	return 0;
}

static int w_flush(struct view *v, uint64_t id, uint64_t fh, struct err *e)
{
	(void)v;
	(void)id;
	assert_true(fh >= 100);
	say("flush;");
	return fails("flush", e);
}

static int w_fsync(struct view *v, uint64_t id, uint64_t fh, bool data_only, struct err *e)
{
	(void)v;
	(void)id;
	(void)fh;
	say("fsync%s;", data_only ? " data" : "");
	return fails("fsync", e);
}

static int w_fsyncdir(struct view *v, uint64_t dir, struct err *e)
{
	(void)v;
	say("fsyncdir %d;", (int)dir);
	return fails("fsyncdir", e);
}

static void w_release(struct view *v, uint64_t id, uint64_t fh)
{
	(void)v;
	(void)id;
	(void)fh;
	__atomic_fetch_sub(&fake.handles, 1, __ATOMIC_SEQ_CST);
}

static int w_setattr(struct view *v, uint64_t id, uint64_t fh, const struct view_set *set,
		     struct view_attr *ret, struct err *e)
{
	struct file *f = of(id);

	(void)v;
	say("set%s%s%s%s;", set->size_set ? " size" : "", set->mode_set ? " mode" : "",
	    set->mtime_set ? " mtime" : "", fh ? " fh" : "");
	if (set->size_set && set->size > BYTES)
		return err_set(e, -EFBIG, "too big");
	if (set->size_set)
		f->size = (size_t)set->size;
	if (set->mode_set)
		f->mode = set->mode;
	if (set->mtime_set)
		f->mtime = set->mtime;
	attr_of(f, ret);
	return 0;
}

static int w_mkdir(struct view *v, uint64_t dir, const char *name, mode_t mode,
		   struct view_attr *ret, struct err *e)
{
	int rc = fails("mkdir", e);

	(void)v;
	(void)dir;
	say("mkdir %s %o;", name, mode);
	if (rc == 0)
		attr_of(add(name, true, mode), ret);
	return rc;
}

static int w_unlink(struct view *v, uint64_t dir, const char *name, struct err *e)
{
	(void)v;
	(void)dir;
	(void)e;
	say("unlink %s;", name);
	named(name, strlen(name))->name[0] = '\0';
	return 0;
}

static int w_rmdir(struct view *v, uint64_t dir, const char *name, struct err *e)
{
	int rc = fails("rmdir", e);

	(void)v;
	(void)dir;
	say("rmdir %s;", name);
	if (rc == 0)
		named(name, strlen(name))->name[0] = '\0';
	return rc;
}

static int w_rename(struct view *v, uint64_t dir, const char *name, uint64_t to_dir,
		    const char *to_name, unsigned flags, struct err *e)
{
	(void)v;
	say("rename %s %s %u %d %d;", name, to_name, flags, (int)dir,
	    (int)to_dir);
	if (named(to_name, strlen(to_name))) {
		if (flags)
			return err_set(e, -EEXIST, "is there");
		named(to_name, strlen(to_name))->name[0] = '\0';
	}
	(void)snprintf(named(name, strlen(name))->name, 64, "%s", to_name);
	return 0;
}

static int w_link(struct view *v, uint64_t id, uint64_t to, const char *name,
		  struct view_attr *ret, struct err *e)
{
	struct file *f;

	(void)v;
	(void)to;
	say("link %s;", name);
	if (named(name, strlen(name)))
		return err_set(e, -EEXIST, "is there");
	f = add(name, false, of(id)->mode);
	f->size = of(id)->size;
	memcpy(f->data, of(id)->data, f->size);
	attr_of(f, ret);
	return 0;
}

static const struct view_write_ops writes = {
	.link = w_link,
	.open = w_open,
	.create = w_create,
	.write = w_write,
	.flush = w_flush,
	.fsync = w_fsync,
	.fsyncdir = w_fsyncdir,
	.release = w_release,
	.setattr = w_setattr,
	.mkdir = w_mkdir,
	.unlink = w_unlink,
	.rmdir = w_rmdir,
	.rename = w_rename,
};

/* ---- the mount ---- */

static struct fs fs;
static pthread_t server;
static char dir[] = "/tmp/ops_write.XXXXXX";

static int open_fake(void *arg, struct view **ret, struct err *e)
{
	(void)arg;
	(void)e;
	fake.view = (struct view){.ops = &ops, .write = &writes, .follows = true};
	*ret = &fake.view;
	return 0;
}

static void *serve(void *arg)
{
	(void)arg;
	(void)fuse_session_loop(fs.se);
	return NULL;
}

static int set_up(void **state)
{
	char name[] = "nczarrfs", opt[] = "-o", list[] = "nosuid,nodev";
	char *argv[] = {name, opt, list, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct err e = ERR_INIT;

	(void)state;
	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return 0;
	(void)alarm(60); /* no test may hang */
	assert_non_null(mkdtemp(dir));
	assert_int_equal(fs_init(&fs, &e), 0);
	assert_int_equal(epochs_new("/tmp", open_fake, NULL, &fs.live, &e), 0);
	fs.path = "/tmp";
	fs.follows = fs.writes = true;
	fs.se = fuse_session_new(&args, fs_operations(true), sizeof(struct fuse_lowlevel_ops),
				 &fs);
	fuse_opt_free_args(&args);
	assert_non_null(fs.se);
	if (fuse_session_mount(fs.se, dir) != 0) {
		fuse_session_destroy(fs.se);
		fs.se = NULL;
		return 0;
	}
	assert_int_equal(pthread_create(&server, NULL, serve, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (!fs.live)
		return 0;
	if (fs.se) {
		fuse_session_exit(fs.se);
		fuse_session_unmount(fs.se);
		(void)pthread_join(server, NULL);
		fuse_session_destroy(fs.se);
	}
	epochs_free(fs.live);
	fs_release(&fs);
	(void)rmdir(dir);
	for (size_t i = 0; i < FILES; i++)
		free(fake.files[i].data);
	return 0;
}

static const char *at(const char *name)
{
	static char path[2][256];
	static int i;

	i = !i;
	(void)snprintf(path[i], sizeof(path[i]), "%s/%s", dir, name);
	return path[i];
}

static void need_mount(void)
{
	if (!fs.se)
		skip();
	fake.said[0] = '\0';
}

static void refused(int rc, int errnum)
{
	assert_int_equal(rc, -1);
	assert_int_equal(errno, errnum);
}

/* ---- tests ---- */

static void test_create_write_read(void **state)
{
	static uint8_t out[2 << 20], in[2 << 20];
	struct stat st;
	int fd;

	(void)state;
	need_mount();
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (uint8_t)(i * 7 + (i >> 12));
	(void)umask(022);
	fd = open(at("a"), O_RDWR | O_CREAT | O_EXCL, 0666);
	assert_true(fd >= 0);
	told("create a 644 excl;open rw;");
	assert_int_equal(pwrite(fd, out, sizeof(out), 0), sizeof(out));
	assert_int_equal(fake.largest, 1 << 20); /* bytes in one request */
	told("write;write;");
	assert_int_equal(pread(fd, in, sizeof(in), 0), sizeof(in));
	assert_memory_equal(in, out, sizeof(in));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, sizeof(out));
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(fsync(fd), 0);
	assert_int_equal(fdatasync(fd), 0);
	told("fsync;fsync data;");
	assert_int_equal(close(fd), 0);
	told("flush;");
	/* opened for writing and truncated: one request */
	fd = open(at("a"), O_WRONLY | O_TRUNC);
	assert_true(fd >= 0);
	told("open w trunc;");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(close(fd), 0);
	told("flush;");
	fd = open(at("a"), O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "ab", 2), 2);
	assert_int_equal(write(fd, "cd", 2), 2);
	assert_int_equal(close(fd), 0);
	told("open w append;write;write;flush;");
	assert_memory_equal(fake.files[0].data, "abcd", 4);
}

static void test_shared_mapping(void **state)
{
	int fd;
	char *p;

	(void)state;
	need_mount();
	fd = open(at("m"), O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	p[4096] = 'x';
	assert_int_equal(munmap(p, 8192), 0);
	assert_int_equal(close(fd), 0);
	/* the view has the data before close returns */
	told("create m 600;open rw;set size fh;write;flush;");
	assert_int_equal(named("m", 1)->data[4096], 'x');
	assert_int_equal(unlink(at("m")), 0);
}

static void test_attributes(void **state)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_OMIT},
					 {.tv_sec = 12345, .tv_nsec = 6}};
	struct statvfs vfs, below;
	struct stat st;
	int fd;

	(void)state;
	need_mount();
	fd = open(at("b"), O_RDWR | O_CREAT, 0600);
	assert_int_equal(close(fd), 0);
	fake.said[0] = '\0';
	assert_int_equal(chmod(at("b"), 0640), 0);
	assert_int_equal(utimensat(AT_FDCWD, at("b"), times, 0), 0);
	assert_int_equal(truncate(at("b"), 77), 0);
	told("set mode;set mtime;set size;");
	assert_int_equal(stat(at("b"), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0640);
	assert_int_equal(st.st_mtim.tv_sec, 12345);
	assert_int_equal(st.st_mtim.tv_nsec, 6);
	assert_int_equal(st.st_size, 77);
	refused(truncate(at("b"), (off_t)BYTES + 1), EFBIG);
	fake.said[0] = '\0';
	/* setting the same owner succeeds, another one fails */
	assert_int_equal(chown(at("b"), geteuid(), getegid()), 0);
	refused(chown(at("b"), geteuid() + 1, (gid_t)-1), EPERM);
	told("");
	/* the root has the attributes of the mounted source, with write permission */
	assert_int_equal(stat("/tmp", &st), 0);
	assert_int_equal(stat(dir, &st), 0);
	assert_true(S_ISDIR(st.st_mode) && (st.st_mode & 0300) == 0300);
	assert_int_equal(statvfs(dir, &vfs), 0);
	assert_int_equal(statvfs("/tmp", &below), 0);
	assert_int_equal(vfs.f_blocks, below.f_blocks);
	assert_true(vfs.f_bavail > 0);
	assert_int_equal(unlink(at("b")), 0);
}

static void test_names(void **state)
{
	int fd;

	(void)state;
	need_mount();
	assert_int_equal(mkdir(at("d"), 0777), 0);
	assert_int_equal(mknod(at("n"), S_IFREG | 0600, 0), 0);
	told("mkdir d 755;create n 600 excl;open w;flush;");
	assert_int_equal(rename(at("n"), at("o")), 0);
	assert_int_equal(mknod(at("p"), S_IFREG | 0600, 0), 0);
	fake.said[0] = '\0';
	refused(renameat2(AT_FDCWD, at("o"), AT_FDCWD, at("p"), RENAME_NOREPLACE), EEXIST);
	refused(renameat2(AT_FDCWD, at("o"), AT_FDCWD, at("p"), RENAME_EXCHANGE), EINVAL);
	told("");
	assert_int_equal(rename(at("o"), at("p")), 0);
	refused(access(at("o"), F_OK), ENOENT);
	told("rename o p 0 1 1;");
	refused(symlink("x", at("s")), EPERM);
	assert_int_equal(link(at("p"), at("l")), 0);
	refused(link(at("p"), at("l")), EEXIST);
	assert_int_equal(unlink(at("l")), 0);
	told("link l;unlink l;"); /* the kernel had cached the name */
	refused(mkfifo(at("f"), 0600), EPERM);
	assert_int_equal(unlink(at("p")), 0);
	fake.kind = "rmdir";
	fake.fail = -ENOTEMPTY;
	refused(rmdir(at("d")), ENOTEMPTY);
	assert_int_equal(rmdir(at("d")), 0);
	told("unlink p;rmdir d;rmdir d;");
	/* syncing a directory reaches the view */
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_true(fd >= 0);
	assert_int_equal(fsync(fd), 0);
	told("fsyncdir 1;");
	fake.kind = "fsyncdir";
	fake.fail = -ENOSPC;
	refused(fsync(fd), ENOSPC);
	assert_int_equal(close(fd), 0);
}

/* test_errors - programs get the view's errors, except those that would mean absence. */
static void test_errors(void **state)
{
	static const struct {
		int says, hears;
	} errors[] = {{ENOSPC, ENOSPC}, {EDQUOT, EDQUOT}, {EFBIG, EFBIG},   {EROFS, EROFS},
		      {EPERM, EPERM},   {EINVAL, EINVAL}, {EIO, EIO},       {EBADMSG, EIO},
		      {ERANGE, EIO},    {ENOENT, EIO},    {ENOMEM, ENOMEM}, {EACCES, EACCES}};
	int fd;

	(void)state;
	need_mount();
	fd = open(at("e"), O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
		fake.fail = -errors[i].says;
		fake.kind = "write";
		refused((int)pwrite(fd, "x", 1, 0), errors[i].hears);
		fake.kind = "fsync";
		refused(fsync(fd), errors[i].hears);
	}
	fake.kind = "flush";
	fake.fail = -EDQUOT;
	refused(close(fd), EDQUOT);
	fake.kind = "open";
	fake.fail = -EACCES;
	refused(open(at("e"), O_RDONLY), EACCES);
	fake.kind = "create";
	fake.fail = -EOPNOTSUPP;
	refused(open(at("g"), O_WRONLY | O_CREAT, 0600), EOPNOTSUPP);
	fake.kind = "mkdir";
	fake.fail = -EROFS;
	refused(mkdir(at("g"), 0700), EROFS);
	assert_int_equal(unlink(at("e")), 0);
}

/* test_locks - the kernel handles locks of all programs on this machine. */
static void test_locks(void **state)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int a, b;

	(void)state;
	need_mount();
	a = open(at("k"), O_RDWR | O_CREAT, 0600);
	b = open(at("k"), O_RDWR);
	assert_true(a >= 0 && b >= 0);
	assert_int_equal(fcntl(a, F_OFD_SETLK, &lock), 0);
	refused(fcntl(b, F_OFD_SETLK, &lock), EAGAIN);
	assert_int_equal(close(a), 0);
	assert_int_equal(fcntl(b, F_OFD_SETLK, &lock), 0);
	assert_int_equal(close(b), 0);
	assert_int_equal(unlink(at("k")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_write_read),
		cmocka_unit_test(test_shared_mapping),
		cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_locks),
	};

#ifdef __SANITIZE_THREAD__
	/* the kernel orders the test's thread and the server's, which the sanitizer cannot see */
	(void)tests;
	return 0;
#endif
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
