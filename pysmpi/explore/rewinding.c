/* The memory of a process, taken back to an earlier moment.

   `hold` keeps a copy of all private memory that can be written. `rewind` puts back what has changed
   since, and `hold` returns again, as often as wanted. A fork would do the same for one more time; it
   copies the tables of all pages, and each page at its first change.

   Which pages have changed is known from the kernel: a page that the process has in common with its
   parent is copied at the first write, and belongs to it alone from then on (bit 56 of
   /proc/self/pagemap). Such a page is put back at every return, so further writes cost nothing. A
   process that has had no page fault has changed no other page: then there is nothing to look up.
   New mappings are unmapped, and those that have gone are mapped again.

   The handlers of signals are put back, too. What else the kernel holds is compared (timers, limits,
   working directory, descriptors, threads, children, and more); if anything differs, `rewind` returns.
   The caller takes care of files.

   The code that puts pages back runs on a stack outside of them. */

#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)
#define MOST_RANGES 16384
#define MOST_PAGES ((size_t)1 << 17) /* of the private memory that can be written: 512 MiB */
#define MOST_KEPT ((size_t)1 << 16) /* pages of the copy: 256 MiB */
#define TEXT ((size_t)2 << 20)
#define STACK ((size_t)64 << 10)
#define ENTRIES 4096 /* of the page map, read at once */

#define PRESENT (1ull << 63)
#define SWAPPED (1ull << 62)
#define OF_FILE (1ull << 61)
#define ALONE (1ull << 56)

enum { READ = 1, WRITE = 2, EXECUTE = 4, PRIVATE = 8, NAMED = 16 };

typedef struct {
    uintptr_t begin, end;
    int kind;
    size_t first; /* number of its first page, if its pages are kept */
} Range;

typedef struct {
    uintptr_t address;
    uint32_t slot; /* in the copy, from 1; 0: the page was empty */
} Page;

/* What the kernel holds for the process. */
typedef struct {
    unsigned long actions[_NSIG][4]; /* as the system has them: those of the C library have gaps */
    unsigned long blocked;
    struct itimerval timers[3];
    struct rlimit limits[RLIM_NLIMITS];
    cpu_set_t processors;
    mode_t mask;
    int nice;
    pid_t group, session;
    uint64_t descriptors;
    nlink_t threads;
    char directory[4096];
} Kernel;

typedef struct {
    ucontext_t held, away;
    int armed; /* whether there is a moment to return to */
    unsigned long times;
    long faults;
    long size; /* of the address space */
    uintptr_t heap; /* end of the heap */
    size_t number, more, pages, changed, kept;
    char *copy;
    Kernel kernel, now;
    uint64_t entries[ENTRIES];
    Range ranges[MOST_RANGES], others[MOST_RANGES];
    uint32_t slots[MOST_PAGES];
    char marked[MOST_PAGES]; /* whether a page is among those that have changed */
    Page list[MOST_PAGES];
    char text[TEXT];
    char stack[STACK];
} Memory;

static Memory *memory; /* outside of what is put back */

static size_t read_file(const char *path, char *text, size_t most)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    size_t size = 0;
    ssize_t more;
    while (size < most && (more = read(file, text + size, most - size)) > 0)
        size += more;
    close(file);
    return size < most ? size : 0;
}

static long address_space(void)
{
    char text[128];
    size_t size = read_file("/proc/self/statm", text, sizeof text - 1);
    text[size] = 0;
    return strtol(text, NULL, 10);
}

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

/* The mappings of the process, but for `memory` and its copy; 0 if there are too many. */
static size_t read_ranges(Range *ranges)
{
    size_t size = read_file("/proc/self/maps", memory->text, TEXT);
    uintptr_t hidden[2][2] = {
        {(uintptr_t)memory, (uintptr_t)memory + ((sizeof *memory + PAGE - 1) & ~(PAGE - 1))},
        {(uintptr_t)memory->copy, (uintptr_t)memory->copy + memory->kept * PAGE},
    };
    size_t number = 0;
    for (char *line = memory->text, *end = line + size; line < end;) {
        char *next = memchr(line, '\n', end - line);
        if (next == NULL)
            return 0;
        *next = 0;
        uintptr_t begin = strtoul(line, &line, 16), after = strtoul(line + 1, &line, 16);
        int kind = (line[1] == 'r') * READ | (line[2] == 'w') * WRITE | (line[3] == 'x') * EXECUTE |
                   (line[4] == 'p') * PRIVATE;
        for (int field = 0; field < 3; field++) /* offset, device, number of the file */
            line = strchr(line + 1, ' ');
        kind |= (line[1] != '0') * NAMED;
        line = next + 1;
        while (begin < after && !(begin >> 63)) { /* higher ones are the system's */
            uintptr_t until = after, further = after;
            for (int i = 0; i < 2; i++)
                if (hidden[i][0] < hidden[i][1] && hidden[i][0] < until && begin < hidden[i][1]) {
                    until = hidden[i][0] > begin ? hidden[i][0] : begin;
                    further = hidden[i][1];
                }
            if (until > begin) {
                Range *last = number ? &ranges[number - 1] : NULL;
                if (last && last->end == begin && last->kind == kind)
                    last->end = until;
                else if (number == MOST_RANGES)
                    return 0;
                else
                    ranges[number++] = (Range){begin, until, kind, 0};
            }
            begin = further < after ? further : after;
        }
    }
    return number;
}

static int kept_range(const Range *range)
{
    return (range->kind & (WRITE | PRIVATE)) == (WRITE | PRIVATE);
}

/* Call `look` for each page of a kept range, with its entry of the page map; 0 if that failed. */
static int scan(void (*look)(const Range *, size_t, uint64_t))
{
    int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    for (size_t i = 0; i < memory->number; i++) {
        Range *range = &memory->ranges[i];
        size_t pages = kept_range(range) ? (range->end - range->begin) / PAGE : 0;
        for (size_t done = 0; done < pages;) {
            size_t part = pages - done < ENTRIES ? pages - done : ENTRIES;
            off_t offset = (range->begin / PAGE + done) * sizeof(uint64_t);
            if (pread(file, memory->entries, part * 8, offset) != (ssize_t)part * 8) {
                close(file);
                return 0;
            }
            for (size_t j = 0; j < part; j++)
                look(range, done + j, memory->entries[j]);
            done += part;
        }
    }
    close(file);
    return 1;
}

/* A page that `hold` keeps: one with contents, or of a file. */
static void choose(const Range *range, size_t page, uint64_t entry)
{
    if (range->kind & NAMED || entry & (PRESENT | SWAPPED))
        memory->slots[range->first + page] = ++memory->kept;
}

/* A page that may have changed, or lost its contents: it is put back from now on. */
static void note(const Range *range, size_t page, uint64_t entry)
{
    size_t number = range->first + page;
    uint32_t slot = memory->slots[number];
    int own = (entry & (PRESENT | OF_FILE | ALONE)) == (PRESENT | ALONE) || entry & SWAPPED;
    int gone = slot && !(range->kind & NAMED) && !(entry & PRESENT);
    if (!memory->marked[number] && (own || gone)) {
        memory->marked[number] = 1;
        memory->list[memory->changed++] = (Page){range->begin + page * PAGE, slot};
    }
}

static uint64_t open_descriptors(void)
{
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t found = 0;
    long size;
    while ((size = syscall(SYS_getdents64, folder, memory->text, (size_t)65536)) > 0)
        for (char *entry = memory->text; entry < memory->text + size;) {
            /* struct linux_dirent64 */
            uint64_t number = strtoul(entry + 19, NULL, 10) + 1;
            found += number * number * 0x9E3779B97F4A7C15ull;
            entry += *(unsigned short *)(entry + 16);
        }
    close(folder);
    return found;
}

static void look_at_kernel(Kernel *kernel)
{
    memset(kernel, 0, sizeof *kernel);
    for (int number = 1; number < _NSIG; number++)
        syscall(SYS_rt_sigaction, number, NULL, kernel->actions[number], sizeof(unsigned long));
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &kernel->blocked, sizeof(unsigned long));
    for (int i = 0; i < 3; i++) {
        getitimer(i, &kernel->timers[i]);
        struct timeval *left = &kernel->timers[i].it_value;
        left->tv_sec = left->tv_sec || left->tv_usec; /* whether it runs */
        left->tv_usec = 0;
    }
    for (int i = 0; i < RLIM_NLIMITS; i++)
        getrlimit(i, &kernel->limits[i]);
    sched_getaffinity(0, sizeof kernel->processors, &kernel->processors);
    kernel->mask = umask(0);
    umask(kernel->mask);
    kernel->nice = getpriority(PRIO_PROCESS, 0);
    kernel->group = getpgrp();
    kernel->session = getsid(0);
    kernel->descriptors = open_descriptors();
    struct stat tasks;
    if (!stat("/proc/self/task", &tasks))
        kernel->threads = tasks.st_nlink;
    if (!getcwd(kernel->directory, sizeof kernel->directory))
        kernel->directory[0] = 0;
}

static int same_kernel(void)
{
    siginfo_t information;
    if (!waitid(P_ALL, 0, &information, WEXITED | WNOHANG | WNOWAIT))
        return 0;
    look_at_kernel(&memory->now);
    for (int number = 1; number < _NSIG; number++) { /* the others are not so simple to put back */
        unsigned long *now = memory->now.actions[number], *before = memory->kernel.actions[number];
        if (memcmp(now, before, sizeof memory->now.actions[number])) {
            syscall(SYS_rt_sigaction, number, before, NULL, sizeof(unsigned long));
            memcpy(now, before, sizeof memory->now.actions[number]);
        }
    }
    return !memcmp(&memory->now, &memory->kernel, sizeof(Kernel));
}

/* Whether a range is mapped: the system looks at its mappings only. */
static int mapped(uintptr_t begin, uintptr_t end)
{
    return !msync((void *)begin, end - begin, MS_ASYNC);
}

/* Map what has gone of a range; 0 if that is not possible. */
static int map_again(const Range *range, uintptr_t begin, uintptr_t end)
{
    if (mapped(begin, end))
        return 1;
    if (end - begin > PAGE) {
        uintptr_t middle = begin + (end - begin) / PAGE / 2 * PAGE;
        return map_again(range, begin, middle) && map_again(range, middle, end);
    }
    if (!(range->kind & PRIVATE) || range->kind & NAMED)
        return 0;
    int kind = range->kind;
    int allowed = (kind & READ ? PROT_READ : 0) | (kind & WRITE ? PROT_WRITE : 0) |
                  (kind & EXECUTE ? PROT_EXEC : 0);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    if (mmap((void *)begin, end - begin, allowed, flags, -1, 0) == MAP_FAILED)
        return 0;
    for (uintptr_t at = begin; kept_range(range) && at < end; at += PAGE)
        note(range, (at - range->begin) / PAGE, 0);
    return 1;
}

/* Unmap what was not mapped; 0 if something else than that differs. */
static int unmap_new(void)
{
    size_t number = read_ranges(memory->others);
    if (!number)
        return 0;
    size_t i = 0;
    for (size_t j = 0; j < number; j++) {
        Range other = memory->others[j];
        uintptr_t at = other.begin;
        while (at < other.end) {
            while (i < memory->number && memory->ranges[i].end <= at)
                i++;
            const Range *range = i < memory->number ? &memory->ranges[i] : NULL;
            if (range && range->begin <= at) {
                if (range->kind != other.kind)
                    return 0;
                at = range->end;
                continue;
            }
            uintptr_t until = range && range->begin < other.end ? range->begin : other.end;
            if (munmap((void *)at, until - at))
                return 0;
            at = until;
        }
    }
    return 1;
}

/* Find what has changed; 0 if it cannot be taken back. */
static int find_changes(void)
{
    if (!same_kernel())
        return 0;
    int moved = (uintptr_t)syscall(SYS_brk, 0) != memory->heap;
    if (moved && (uintptr_t)syscall(SYS_brk, memory->heap) != memory->heap)
        return 0;
    int faulted = faults() != memory->faults;
    if (!faulted && !moved && address_space() == memory->size)
        return 1;
    for (size_t i = 0; i < memory->number; i++)
        if (!map_again(&memory->ranges[i], memory->ranges[i].begin, memory->ranges[i].end))
            return 0;
    if ((faulted || address_space() != memory->size) && !unmap_new())
        return 0;
    if (address_space() != memory->size)
        return 0;
    return !(faulted || moved) || scan(note);
}

/* Put the pages back; on a stack of its own. */
static void put_back(void)
{
    for (size_t i = 0; i < memory->changed; i++) {
        Page page = memory->list[i];
        if (page.slot)
            memcpy((void *)page.address, memory->copy + (page.slot - 1) * PAGE, PAGE);
        else
            memset((void *)page.address, 0, PAGE);
    }
    memory->times++;
    memory->faults = faults();
    setcontext(&memory->held);
}

static int keep(void)
{
    memory->number = read_ranges(memory->ranges);
    if (!memory->number)
        return 0;
    for (size_t i = 0; i < memory->number; i++) {
        Range *range = &memory->ranges[i];
        range->first = memory->pages;
        if (kept_range(range))
            memory->pages += (range->end - range->begin) / PAGE;
        if (memory->pages > MOST_PAGES)
            return 0;
    }
    if (!scan(choose) || memory->kept > MOST_KEPT)
        return 0;
    size_t size = memory->kept * PAGE;
    char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED)
        return 0;
    memory->copy = copy;
    madvise(copy, size, MADV_HUGEPAGE);
    memory->heap = (uintptr_t)syscall(SYS_brk, 0);
    look_at_kernel(&memory->kernel);
    for (size_t i = 0; i < memory->number; i++) {
        const Range *range = &memory->ranges[i];
        if (kept_range(range))
            for (uintptr_t at = range->begin; at < range->end; at += PAGE) {
                uint32_t slot = memory->slots[range->first + (at - range->begin) / PAGE];
                if (slot)
                    memcpy(copy + (slot - 1) * PAGE, (void *)at, PAGE);
            }
    }
    if (!scan(note))
        return 0;
    memory->size = address_space();
    memory->armed = 1;
    memory->faults = faults();
    return 1;
}

static PyObject *hold(PyObject *module, PyObject *unused)
{
    if (memory != NULL || sysconf(_SC_PAGESIZE) != (long)PAGE)
        Py_RETURN_NONE;
    void *found = mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED)
        Py_RETURN_NONE;
    memory = found;
    getcontext(&memory->held);
    if (!memory->armed && !keep())
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLong(memory->times);
}

static PyObject *go_back(PyObject *module, PyObject *unused)
{
    if (memory == NULL || !memory->armed || !find_changes())
        Py_RETURN_NONE;
    getcontext(&memory->away);
    memory->away.uc_stack.ss_sp = memory->stack;
    memory->away.uc_stack.ss_size = STACK;
    memory->away.uc_link = NULL;
    sigfillset(&memory->away.uc_sigmask);
    makecontext(&memory->away, put_back, 0);
    setcontext(&memory->away);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"hold", hold, METH_NOARGS, NULL},
    {"rewind", go_back, METH_NOARGS, NULL},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rewinding",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit_rewinding(void)
{
    return PyModule_Create(&definition);
}
