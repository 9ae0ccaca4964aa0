/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox_seccomp.c - the system calls that a process may make.
 *
 * An allow list: the calls of glibc, libhdf5, libhdf4, compressors and plugins. All others fail
 * with EPERM, which libraries take for "not available" (a socket for the system log, a scheduler's
 * setting, an ioctl of a terminal). Calls that no library makes and that an attacker would make
 * kill the process (SIGSYS; the kernel's audit log has the number).
 *
 * libseccomp compiles the filter once; installing it takes microseconds. Process ids are not known
 * at that time: a placeholder for the own pid is replaced in the compiled program. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <seccomp.h>

#include "base/os/io.h"
#include "base/process/sandbox_int.h"

#define OWN_PID 0x6e7a7069 /* placeholder: no process id is above 2^22 */
#define PROGRAM_MAX ((size_t)64 << 10)

/* clang-format off */

/* Allowed in every process. */
static const char *const base_calls[] = {
	"read",
	"readv",
	"pread64",
	"preadv",
	"preadv2",
	"write",
	"writev",
	"lseek",
	"_llseek",
	"close",
	"dup",
	"dup2",
	"dup3",
	"fstat",
	"fstat64",
	"flock",
	"fadvise64",
	"readahead",
	/* memory; mapping of code has its own rules */
	"brk",
	"munmap",
	"mremap",
	"madvise",
	"mincore",
	"membarrier",
	/* waiting and time */
	"futex",
	"futex_time64",
	"futex_wait",
	"futex_wake",
	"futex_waitv",
	"poll",
	"ppoll",
	"ppoll_time64",
	"select",
	"pselect6",
	"nanosleep",
	"clock_nanosleep",
	"clock_nanosleep_time64",
	"clock_gettime",
	"clock_gettime64",
	"clock_getres",
	"gettimeofday",
	"time",
	"times",
	"getrusage",
	"sched_yield",
	"restart_syscall",
	"pause",
	/* on open descriptors */
	"recvfrom",
	"recvmsg",
	"sendto",
	/* identity of the process */
	"getpid",
	"gettid",
	"getppid",
	"getuid",
	"geteuid",
	"getgid",
	"getegid",
	"getresuid",
	"getresgid",
	"uname",
	"sysinfo",
	"getrandom",
	"getcpu",
	"sched_getaffinity",
	"getrlimit",
	"ugetrlimit",
	"set_robust_list",
	"rseq",
	"set_tid_address",
	"sigaltstack",
	"rt_sigreturn",
	"sigreturn",
	"exit",
	"exit_group",
};

/* SANDBOX_OPENS, in addition to opening files. */
static const char *const open_calls[] = {
	"openat2",    "stat",       "stat64",     "lstat",  "lstat64",
	"statx",      "readlink",   "readlinkat", "access", "faccessat",
	"faccessat2", "getdents64", "getdents",   "getcwd", "statfs",
	"statfs64",   "fstatfs",    "fstatfs64",  "chdir",  "fchdir",
};

/* SANDBOX_LOADS: libraries may start threads. */
static const char *const load_calls[] = {
	"mmap", "mmap2", "mprotect", "arch_prctl", "sched_getparam", "sched_getscheduler",
};

/* SANDBOX_WRITES: changes files, and starts processes that read others, in sandboxes. */
static const char *const write_calls[] = {
	"open",
	"openat",
	"creat",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"ftruncate",
	"ftruncate64",
	"truncate",
	"fallocate",
	"fsync",
	"fdatasync",
	"sync_file_range",
	"syncfs",
	"rename",
	"renameat",
	"renameat2",
	"link",
	"linkat",
	"symlink",
	"symlinkat",
	"unlink",
	"unlinkat",
	"mkdir",
	"mkdirat",
	"rmdir",
	"chmod",
	"fchmod",
	"fchmodat",
	"fchmodat2",
	"chown",
	"fchown",
	"fchownat",
	"lchown",
	"utimensat",
	"utimensat_time64",
	"futimesat",
	"utimes",
	"copy_file_range",
	"sendfile",
	"sendfile64",
	"splice",
	"fcntl",
	"fcntl64",
	"ioctl",
	"getxattr",
	"lgetxattr",
	"fgetxattr",
	"setxattr",
	"lsetxattr",
	"fsetxattr",
	"listxattr",
	"llistxattr",
	"flistxattr",
	"removexattr",
	"fremovexattr",
	"umask",
	"memfd_create",
	/* child processes */
	"fork",
	"vfork",
	"clone",
	"clone3",
	"wait4",
	"waitid",
	"waitpid",
	"kill",
	"tgkill",
	"pipe",
	"pipe2",
	"sendmsg",
	"shutdown",
	"getsockopt",
	"setsockopt",
	"signalfd",
	"signalfd4",
	"eventfd",
	"eventfd2",
	"timerfd_create",
	"timerfd_settime",
	"epoll_create",
	"epoll_create1",
	"epoll_ctl",
	"epoll_wait",
	"epoll_pwait",
	"inotify_init",
	"inotify_init1",
	"inotify_add_watch",
	"inotify_rm_watch",
	"rt_sigaction",
	"rt_sigprocmask",
	"rt_sigtimedwait",
	"rt_sigpending",
	"rt_sigsuspend",
	"prctl",
	"seccomp",
	"landlock_create_ruleset",
	"landlock_add_rule",
	"landlock_restrict_self",
	"prlimit64",
	"setrlimit",
	"close_range",
	"getpgid",
	"getpgrp",
	"getsid",
	"getgroups",
};

/* None of the libraries has a use for these: a process that makes them was taken over. */
static const char *const fatal_calls[] = {
	"execve",
	"execveat",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"pidfd_getfd",
	"kcmp",
	"mount",
	"umount",
	"umount2",
	"move_mount",
	"open_tree",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"mount_setattr",
	"pivot_root",
	"chroot",
	"unshare",
	"setns",
	"bpf",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"userfaultfd",
	"perf_event_open",
	"keyctl",
	"add_key",
	"request_key",
	"init_module",
	"finit_module",
	"delete_module",
	"kexec_load",
	"kexec_file_load",
	"reboot",
	"swapon",
	"swapoff",
	"open_by_handle_at",
	"quotactl",
	"acct",
	"setuid",
	"setgid",
	"setreuid",
	"setregid",
	"setresuid",
	"setresgid",
	"setfsuid",
	"setfsgid",
	"setgroups",
	"capset",
	"sethostname",
	"settimeofday",
	"clock_settime",
	"adjtimex",
	"iopl",
	"ioperm",
	"lookup_dcookie",
	"fanotify_init",
	"modify_ldt",
	"vhangup",
	"nfsservctl",
};

/* fcntl commands that neither send signals to other processes nor seal. */
static const int fcntls[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,     F_SETFD,    F_GETFL,
			     F_GETLK, F_SETLK,         F_OFD_GETLK, F_OFD_SETLK};

#define WRITES_FILE (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

/* Conditions of a rule: (may & mask) == value. A kind with SANDBOX_WRITES has its own rules. */
#define READS SANDBOX_WRITES, 0
#define READS_AND(bit) SANDBOX_WRITES | (bit), (bit)
#define READS_NOT(bit) SANDBOX_WRITES | (bit), 0
#define WRITES SANDBOX_WRITES, SANDBOX_WRITES

static const struct call_list {
	unsigned mask, value;
	uint32_t action;
	const char *const *names;
	size_t n;
} lists[] = {
	{0, 0, SCMP_ACT_KILL_PROCESS, fatal_calls, ARRAY_LEN(fatal_calls)},
	{0, 0, SCMP_ACT_ALLOW, base_calls, ARRAY_LEN(base_calls)},
	{READS_AND(SANDBOX_LOADS), SCMP_ACT_ALLOW, load_calls, ARRAY_LEN(load_calls)},
	{READS_AND(SANDBOX_OPENS), SCMP_ACT_ALLOW, open_calls, ARRAY_LEN(open_calls)},
	{WRITES, SCMP_ACT_ALLOW, open_calls, ARRAY_LEN(open_calls)},
	{WRITES, SCMP_ACT_ALLOW, load_calls, ARRAY_LEN(load_calls)},
	{WRITES, SCMP_ACT_ALLOW, write_calls, ARRAY_LEN(write_calls)},
};

#define EQUAL(i, v) {.arg = (i), .op = SCMP_CMP_EQ, .datum_a = (v)}
#define MASKED(i, bits, v)                                                                     \
	{.arg = (i), .op = SCMP_CMP_MASKED_EQ, .datum_a = (bits), .datum_b = (v)}

/* Calls whose arguments are checked. All conditions on arguments must hold; op 0: no condition. */
static const struct call_rule {
	unsigned mask, value;
	uint32_t action;
	const char *name;
	struct scmp_arg_cmp args[2];
} rules[] = {
	/* on the process itself: end by a signal, read limits, lower the limit of descriptors */
	{READS, SCMP_ACT_ALLOW, "tgkill", {EQUAL(0, OWN_PID)}},
	{READS, SCMP_ACT_ALLOW, "kill", {EQUAL(0, OWN_PID)}},
	{READS, SCMP_ACT_ALLOW, "prlimit64", {EQUAL(0, 0), EQUAL(1, RLIMIT_NOFILE)}},
	{READS, SCMP_ACT_ALLOW, "prlimit64", {EQUAL(0, 0), EQUAL(2, 0)}},
	{READS, SCMP_ACT_ALLOW, "setrlimit", {EQUAL(0, RLIMIT_NOFILE)}},
	/* threads, but no processes */
	{READS_AND(SANDBOX_LOADS), SCMP_ACT_ALLOW, "clone",
	 {MASKED(0, CLONE_THREAD, CLONE_THREAD)}},
	/* memory that is not executable */
	{READS_NOT(SANDBOX_LOADS), SCMP_ACT_ALLOW, "mmap", {MASKED(2, PROT_EXEC, 0)}},
	{READS_NOT(SANDBOX_LOADS), SCMP_ACT_ALLOW, "mmap2", {MASKED(2, PROT_EXEC, 0)}},
	{READS_NOT(SANDBOX_LOADS), SCMP_ACT_ALLOW, "mprotect", {MASKED(2, PROT_EXEC, 0)}},
	/* files for reading; a filter cannot read the flags of openat2, which is in open_calls, so
	 * that Landlock alone restricts it */
	{READS_AND(SANDBOX_OPENS), SCMP_ACT_ALLOW, "openat", {MASKED(2, WRITES_FILE, 0)}},
	{READS_AND(SANDBOX_OPENS), SCMP_ACT_ALLOW, "open", {MASKED(1, WRITES_FILE, 0)}},
	{READS_AND(SANDBOX_OPENS), SCMP_ACT_ALLOW, "newfstatat", {{0}}},
	/* glibc's fstat */
	{READS_NOT(SANDBOX_OPENS), SCMP_ACT_ALLOW, "newfstatat",
	 {MASKED(3, AT_EMPTY_PATH, AT_EMPTY_PATH)}},
	/* glibc tries it first and falls back to clone, whose flags a filter can read */
	{READS, SCMP_ACT_ERRNO(ENOSYS), "clone3", {{0}}},
	{WRITES, SCMP_ACT_ALLOW, "newfstatat", {{0}}},
	{WRITES, SCMP_ACT_ALLOW, "socketpair", {EQUAL(0, AF_UNIX)}},
};

/* clang-format on */

/* ---- compiling ---- */

static struct sock_fprog programs[SANDBOX_OPENS + SANDBOX_LOADS + SANDBOX_WRITES + 1];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int sandbox_seccomp_rule(scmp_filter_ctx c, uint32_t action, const char *name,
				unsigned n, const struct scmp_arg_cmp *args)
{
	int nr = seccomp_syscall_resolve_name(name), rc;

	if (nr == __NR_SCMP_ERROR)
		return 0; /* newer than libseccomp: denied like all without a rule */
	rc = seccomp_rule_add_array(c, action, nr, n, args);
	return rc == -EDOM ? 0 : rc; /* not of this architecture */
}

static int add_fcntls(scmp_filter_ctx c)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(fcntls); i++) {
		const struct scmp_arg_cmp cmp = EQUAL(1, (uint64_t)fcntls[i]);

		rc = sandbox_seccomp_rule(c, SCMP_ACT_ALLOW, "fcntl", 1, &cmp);
		rc = rc ? rc : sandbox_seccomp_rule(c, SCMP_ACT_ALLOW, "fcntl64", 1, &cmp);
	}
	return rc;
}

static int sandbox_seccomp_add_all(scmp_filter_ctx c, unsigned may)
{
	int rc = seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);

	(void)seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree, for speed */
	for (const struct call_list *l = lists; rc == 0 && l < lists + ARRAY_LEN(lists); l++)
		for (size_t i = 0; rc == 0 && (may & l->mask) == l->value && i < l->n; i++)
			rc = sandbox_seccomp_rule(c, l->action, l->names[i], 0, NULL);
	for (const struct call_rule *r = rules; rc == 0 && r < rules + ARRAY_LEN(rules); r++) {
		unsigned n = r->args[1].op ? 2 : r->args[0].op ? 1 : 0;

		if ((may & r->mask) == r->value)
			rc = sandbox_seccomp_rule(c, r->action, r->name, n, r->args);
	}
	return rc == 0 && !(may & SANDBOX_WRITES) ? add_fcntls(c) : rc;
}

/* program_of - export libseccomp's filter as BPF instructions. */
static bool program_of(scmp_filter_ctx c, struct sock_fprog *ret)
{
	auto_fd int fd = memfd_create("nczarrfs-filter", MFD_CLOEXEC);
	auto_free struct sock_filter *code = NULL;
	struct stat st;

	if (fd < 0 || seccomp_export_bpf(c, fd) < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 ||
	    (size_t)st.st_size > PROGRAM_MAX || (size_t)st.st_size % sizeof(*code))
		return false;
	code = malloc((size_t)st.st_size);
	if (!code || pread(fd, code, (size_t)st.st_size, 0) != st.st_size)
		return false;
	ret->len = (unsigned short)((size_t)st.st_size / sizeof(*code));
	ret->filter = steal(&code);
	return true;
}

static void sandbox_seccomp_make(unsigned may, struct sock_fprog *ret)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ERRNO(EPERM));

	if (c && sandbox_seccomp_add_all(c, may) == 0 && !program_of(c, ret))
		*ret = (struct sock_fprog){0};
	if (c)
		seccomp_release(c);
}

const struct sock_fprog *calls_prepare(unsigned may)
{
	struct sock_fprog *p;

	if (sandbox_off() || may >= ARRAY_LEN(programs) || !calls_known())
		return NULL;
	p = &programs[may];
	(void)pthread_mutex_lock(&lock);
	if (!p->len) /* failed before: memory may be available now */
		sandbox_seccomp_make(may, p);
	(void)pthread_mutex_unlock(&lock);
	return p->len ? p : NULL;
}

/* ---- entering ---- */

bool calls_known(void)
{
	const uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int calls_enter(unsigned may)
{
	const struct sock_fprog *made = calls_prepare(may);
	struct sock_fprog own;
	size_t bytes;

	if (!made) /* no process runs without a filter if the kernel has them */
		return sandbox_off() || !calls_known() ? -ENOSYS : -ENOMEM;
	bytes = made->len * sizeof(*made->filter);
	own = (struct sock_fprog){.len = made->len, .filter = malloc(bytes)};
	if (!own.filter)
		return -ENOMEM;
	memcpy(own.filter, made->filter, bytes);
	for (size_t i = 0; i < own.len; i++)
		if (own.filter[i].code == (BPF_JMP | BPF_JEQ | BPF_K) &&
		    own.filter[i].k == OWN_PID)
			own.filter[i].k = (uint32_t)getpid();
	/* the copy is not freed: freeing is of no use to a process that has just started */
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &own) == 0 ? 0 : -errno;
}
