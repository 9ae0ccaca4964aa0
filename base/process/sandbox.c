/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox.c - the sandbox of a process of child.h, except for its system calls.
 *
 * Landlock's constants are defined here: kernels know more than the headers that programs are built
 * with. Spec: Documentation/userspace-api/landlock.rst of Linux 6.18, ABI 1 to 7. */
#include "base/process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/process/sandbox_int.h"
#include "base/core/str.h"

#define CPU_GRACE 2 /* seconds between the signal that may end a process and SIGKILL */
#define FILES_MAX 256

bool sandbox_off(void)
{
	const char *preloaded = getenv("LD_PRELOAD"); /* set by valgrind */

	return SANDBOX_OFF || (preloaded && strstr(preloaded, "/vgpreload_"));
}

/* ---- Landlock ---- */

enum {
	LL_VERSION = 1, /* flag of create_ruleset */
	LL_PATH_BENEATH = 1,
};

/* Rights by bit, and the number of them that each ABI knows. */
#define LL_READ_FILE ((uint64_t)1 << 2)
#define LL_READ_DIR ((uint64_t)1 << 3)
#define LL_WRITE_FILE ((uint64_t)1 << 1)
#define LL_TRUNCATE ((uint64_t)1 << 14)
#define LL_IOCTL_DEV ((uint64_t)1 << 15)
#define LL_EXECUTE ((uint64_t)1 << 0)
#define LL_NET ((uint64_t)3)   /* bind, connect: ABI 4 */
#define LL_SCOPE ((uint64_t)3) /* abstract sockets, signals: ABI 6 */
/* Rights that apply to a file that is no directory. */
#define LL_OF_FILE (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV)

struct ll_ruleset {
	uint64_t fs, net, scope;
};

struct ll_path {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

#ifdef SYS_landlock_create_ruleset
#define LL_CREATE SYS_landlock_create_ruleset
#define LL_ADD SYS_landlock_add_rule
#define LL_RESTRICT SYS_landlock_restrict_self
#else /* the same number everywhere */
#define LL_CREATE 444
#define LL_ADD 445
#define LL_RESTRICT 446
#endif

/* The directories where the dynamic linker finds libraries. */
static const struct sandbox_path libraries[] = {
	{.path = "/usr", .fd = -1},
	{.path = "/lib", .fd = -1},
	{.path = "/lib64", .fd = -1},
	{.path = "/lib32", .fd = -1},
	{.path = "/etc/ld.so.cache", .fd = -1},
	{.path = "/opt", .fd = -1},
	{.path = "/nix/store", .fd = -1},
	{.path = "/gnu/store", .fd = -1},
	{.path = "/sys/devices/system/cpu", .fd = -1},
};

static int ll_abi(void)
{
	long n = sandbox_off() ? 0 : syscall(LL_CREATE, NULL, 0, LL_VERSION);

	return n > 0 ? (int)n : 0;
}

/* fs_rights - the rights that this ABI knows. */
static uint64_t fs_rights(int abi)
{
	unsigned bits = abi >= 5 ? 16 : abi >= 3 ? 15 : abi >= 2 ? 14 : 13;

	return ((uint64_t)1 << bits) - 1;
}

/* sandbox_place_of - open p. Returns a descriptor, or -1. */
static int sandbox_place_of(const struct sandbox_path *p)
{
	const char *slash = p->path && p->beside ? strrchr(p->path, '/') : NULL;
	char dir[PATH_MAX];

	if (!slash)
		return p->path ? open(p->path, O_PATH | O_CLOEXEC) : -1;
	if ((size_t)(slash - p->path) + 1 >= sizeof(dir))
		return -1;
	memcpy(dir, p->path, (size_t)(slash - p->path) + 1);
	dir[slash - p->path + 1] = '\0';
	return open(dir, O_PATH | O_CLOEXEC);
}

static int ll_add(int rules, const struct sandbox_path *p, uint64_t all)
{
	auto_fd int own = (errno = 0, sandbox_place_of(p));
	int fd = p->path ? own : p->fd;
	uint64_t allowed = LL_READ_FILE | LL_READ_DIR;
	struct ll_path rule;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) /* a missing file needs no rule */
		return errno == EIO || err_is_transient(-errno) ? -errno : 0;
	if (p->writable)
		allowed = all & ~LL_EXECUTE;
	if (!S_ISDIR(st.st_mode))
		allowed &= LL_OF_FILE;
	rule = (struct ll_path){.allowed = allowed & all, .parent = fd};
	if (syscall(LL_ADD, rules, LL_PATH_BENEATH, &rule, 0) == 0)
		return 0;
	/* a socket, or memory: not in a file system, and cannot be opened */
	return errno == EBADFD || errno == EBADF || errno == EINVAL ? 0 : -errno;
}

static int ll_enter(unsigned may, const struct sandbox_path *paths, size_t n, struct err *e)
{
	const int abi = ll_abi();
	const struct ll_ruleset set = {.fs = fs_rights(abi), .net = LL_NET, .scope = LL_SCOPE};
	const size_t size = sizeof(uint64_t) * (abi >= 6 ? 3 : abi >= 4 ? 2 : 1);
	auto_fd int rules = -1;
	int rc = 0;

	if (!abi)
		return 0;
	rules = (int)syscall(LL_CREATE, &set, size, 0);
	if (rules < 0)
		return err_sys(e, errno, "landlock_create_ruleset");
	for (size_t i = 0; rc == 0 && may && i < n; i++)
		rc = ll_add(rules, &paths[i], set.fs);
	for (size_t i = 0; rc == 0 && (may & SANDBOX_LOADS) && i < ARRAY_LEN(libraries); i++)
		rc = ll_add(rules, &libraries[i], set.fs);
	if (rc < 0)
		return err_sys(e, -rc, "landlock_add_rule");
	if (syscall(LL_RESTRICT, rules, 0) < 0)
		return err_sys(e, errno, "landlock_restrict_self");
	return 0;
}

/* ---- limits ---- */

/* mapped - bytes of address space in use; 0 when that is not known. */
static uint64_t mapped(void)
{
	auto_fd int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	uint64_t pages = 0;
	size_t len = 0;

	while (n > 0 && len < (size_t)n && text[len] != ' ')
		len++;
	if (n <= 0 || str_u64(text, len, UINT64_MAX >> 20, &pages) < 0)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* soft - set a limit that the server can raise and this process cannot (prlimit64 is denied). */
static void soft(int which, uint64_t value)
{
	struct rlimit r;

	if (getrlimit(which, &r) < 0)
		return;
	if (r.rlim_max == RLIM_INFINITY || value < r.rlim_max)
		r.rlim_cur = (rlim_t)value;
	(void)setrlimit(which, &r); /* on failure it stays unchanged */
}

static void limit(unsigned may, const struct sandbox_limits *l)
{
	const struct rlimit none = {0, 0};
	struct rlimit files;
	uint64_t now = l->memory ? mapped() : 0;

	if (l->cpu_ms) {
		struct timespec used = {0};

		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
		soft(RLIMIT_CPU, (uint64_t)used.tv_sec + l->cpu_ms / 1000 + CPU_GRACE);
	}
	if (sandbox_off())
		return;
	if (!(may & SANDBOX_WRITES))
		(void)setrlimit(RLIMIT_FSIZE, &none);
	if (now && l->memory < UINT64_MAX / 2)
		soft(RLIMIT_AS, now + l->memory);
	/* open descriptors may have higher numbers */
	if (!(may & SANDBOX_WRITES) && getrlimit(RLIMIT_NOFILE, &files) == 0 &&
	    files.rlim_cur > FILES_MAX)
		soft(RLIMIT_NOFILE, FILES_MAX);
}

void sandbox_renew(int pid, uint64_t cpu_ms)
{
	struct rlimit r;
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) < 0 ||
	    prlimit(pid, RLIMIT_CPU, NULL, &r) < 0)
		return;
	r.rlim_cur = (rlim_t)used.tv_sec + cpu_ms / 1000 + CPU_GRACE;
	if (r.rlim_max == RLIM_INFINITY || r.rlim_cur < r.rlim_max)
		(void)prlimit(pid, RLIMIT_CPU, &r, NULL); /* on failure it ends early */
}

/* ---- environment ---- */

static bool harmless(const char *var)
{
	static const char *const kept[] = {"HDF5_",
					   "LC_",
					   "LANG=",
					   "TZ=",
					   "MALLOC_",
					   "GLIBC_TUNABLES=",
					   "LD_LIBRARY_PATH=",
					   "ASAN_OPTIONS=",
					   "UBSAN_OPTIONS=",
					   "TSAN_OPTIONS=",
					   "LSAN_OPTIONS=",
					   "OMP_",
					   "BLOSC_",
					   "PATH=",
					   "TMPDIR=",
					   "NCZARRFS_",
					   "LD_PRELOAD="};

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (strncmp(var, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

void sandbox_wipe_environment(void)
{
	char **to = environ;

	for (char **from = environ; from && *from; from++) {
		if (harmless(*from))
			*to++ = *from;
		else
			explicit_bzero(*from, strlen(*from));
	}
	if (to)
		*to = NULL;
}

/* ---- all of it ---- */

void sandbox_prepare(unsigned may)
{
	(void)calls_prepare(may);
}

int sandbox_enter(unsigned may, const struct sandbox_path *paths, size_t n,
		  const struct sandbox_limits *limits, struct err *e)
{
	int rc;

	limit(may, limits);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, errno, "PR_SET_NO_NEW_PRIVS");
	rc = ll_enter(may, paths, n, e);
	rc = rc ? rc : calls_enter(may);
	if (rc == -ENOSYS)
		return 0;
	return rc < 0 && (!e || !e->code) ? err_sys(e, -rc, "seccomp") : rc;
}

void sandbox_report(struct buf *out)
{
	const int abi = ll_abi();

	buf_puts(out, SANDBOX_OFF     ? "off in a build with sanitizers"
		      : calls_known() ? "seccomp"
				      : "no seccomp");
	if (abi)
		buf_printf(out, ", Landlock %d", abi);
	else if (!sandbox_off())
		buf_puts(out, ", no Landlock");
}

const char *sandbox_missing(void)
{
	const bool calls = !sandbox_off() && calls_known(), files = ll_abi() > 0;

	if (calls && files)
		return NULL;
	if (sandbox_off())
		return "parsers are not sandboxed: this is a build with sanitizers, or it runs "
		       "under valgrind";
	if (calls)
		return "this kernel has no Landlock: processes that parse untrusted files can "
		       "open every file that you can read";
	if (files)
		return "this kernel or container has no seccomp filters: processes that parse "
		       "untrusted files can make any system call";
	return "this kernel or container has neither seccomp filters nor Landlock: processes "
	       "that parse untrusted files are confined by resource limits only";
}
