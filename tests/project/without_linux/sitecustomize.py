"""Takes away from Python what macOS lacks. Python imports this file at its start."""

import mmap
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
import time

GONE = {
    os: (
        "sched_getaffinity sched_setaffinity sched_getscheduler sched_setscheduler sched_getparam "
        "sched_setparam sched_yield sched_rr_get_interval sched_param SCHED_BATCH SCHED_IDLE "
        "memfd_create MFD_CLOEXEC pidfd_open P_PIDFD eventfd eventfd_read eventfd_write splice "
        "posix_fadvise posix_fallocate copy_file_range getrandom pipe2 fdatasync getresuid "
        "getresgid setresuid setresgid getxattr setxattr listxattr removexattr unshare setns "
        "O_DIRECT O_TMPFILE O_PATH O_LARGEFILE O_RSYNC O_NOATIME"
    ),
    select: "epoll",
    signal: (
        "sigtimedwait sigwaitinfo pidfd_send_signal SIGRTMIN SIGRTMAX SIGPWR SIGPOLL SIGSTKFLT "
        "SIGCLD"
    ),
    time: "pthread_getcpuclockid CLOCK_BOOTTIME CLOCK_TAI",
    resource: "prlimit RUSAGE_THREAD",
    mmap: ("MAP_POPULATE MAP_STACK MADV_HUGEPAGE MADV_DONTFORK MADV_DOFORK MADV_REMOVE"),
    socket: "AF_NETLINK AF_PACKET AF_ALG AF_VSOCK SO_PEERCRED",
}
for module, names in GONE.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)


def refuse(path):
    if isinstance(path, (str, bytes)) and os.fsdecode(path).startswith(("/proc", "/sys/")):
        raise FileNotFoundError(2, "No such file or directory", path)


def hook(event, arguments):
    if event in ("open", "os.listdir", "os.scandir"):
        refuse(arguments[0])


def readlink(path, *, dir_fd=None):
    refuse(path)
    return _readlink(path, dir_fd=dir_fd)


sysconfig.get_config_vars()  # they are in a file that is named after the system
sys.addaudithook(hook)
_readlink, os.readlink = os.readlink, readlink
sys.platform = "darwin"
