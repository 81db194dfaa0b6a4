/*
 * The main function of a kernel's program. $-words are filled in when it is written for a kernel.
 *
 * The launcher starts one process at a time. Each maps the shared memory, takes its first page faults, gives up every
 * system call that computing does not need, says that it is ready, waits for its command, and calls the kernel once for
 * every slot of the batch. Then it is killed: the next command finds a process in which the kernel never ran.
 *
 * A slot begins with a table of one 8-byte word per argument: the offset of an array in the memory, or the bits of
 * a scalar.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

$PROTOTYPE;

/* The kernel's struct sock_filter and sock_fprog, and what seccomp(2) wants to hear. */
struct instruction {
    uint16_t code;
    uint8_t yes, no;
    uint32_t k;
};
static struct instruction filter[] = {$FILTER};
static struct {
    unsigned short length;
    struct instruction *program;
} bound = {sizeof filter / sizeof filter[0], filter};
enum { SET_FILTER = 1, SPECULATION_ALLOWED = 4 };

enum { HEAP = 1 << 20, STACK = 1 << 17 };
enum { NO_MEMORY = 70, NO_HANDLER, NO_FILTER, NO_ANSWER, REFUSED, NO_PROCESS };

static int all(int fd, void *buffer, size_t size, int reads)
{
    char *at = (char *)buffer;
    while (size > 0) {
        ssize_t n = reads ? read(fd, at, size) : write(fd, at, size);
        if (n <= 0)
            return 0;
        at += n;
        size -= (size_t)n;
    }
    return 1;
}

static void refused(int signal, siginfo_t *about, void *context)
{
    char message[5] = {about->si_errno == $ABORTED ? 'a' : 'x'};
    int call = about->si_syscall;
    (void)signal;
    (void)context;
    memcpy(message + 1, &call, 4);
    all($REPLY, message, sizeof message, 0);
    _exit(REFUSED);
}

enum { POPULATE_READ = 22, POPULATE_WRITE = 23, MOST_CODE = 16 << 20, MOST_VARIABLES = 1 << 20 }; /* of madvise, since Linux 5.14 */

/* Brings code, constants and variables of the program or of a library into memory. */
static int populate(struct dl_phdr_info *about, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < about->dlpi_phnum; i++) {
        ElfW(Phdr) part = about->dlpi_phdr[i];
        uintptr_t page = (uintptr_t)getpagesize(), from = about->dlpi_addr + part.p_vaddr, start = from & ~(page - 1);
        size_t length = part.p_memsz;
        if (part.p_type != PT_LOAD)
            continue;
        if (!(part.p_flags & PF_W))
            madvise((void *)start, from - start + (length < MOST_CODE ? length : MOST_CODE), POPULATE_READ);
        else /* the loader has made some of it read-only, which fails alone */
            for (uintptr_t at = start; at < from + (length < MOST_VARIABLES ? length : MOST_VARIABLES); at += page)
                madvise((void *)at, page, POPULATE_WRITE);
    }
    return 0;
}

/* What a program that has run for a while has behind it: its stack and its heap are there. */
__attribute__((noinline)) static void settle(void)
{
    volatile char stack[STACK];
    char *heap = (char *)malloc(HEAP);
    for (size_t i = 0; i < STACK; i += 1024)
        stack[i] = 1;
    (void)stack[0];
    for (size_t i = 0; heap != NULL && i < HEAP; i += 1024)
        ((volatile char *)heap)[i] = 1; /* a compiler leaves out a memset of memory that is freed */
    free(heap);
}

static void call(char *memory, uint64_t slot)
{
    uint64_t word[$WORDS];
    memcpy(word, memory + slot, sizeof word);
    $CALL;
}

static int serve(void)
{
    struct stat about;
    struct sigaction action;
    uint64_t command[3]; /* first slot, distance between slots, number of slots */
    char ready = 'r', done = 'k', *memory;

    if (fstat($MEMORY, &about) != 0)
        return NO_MEMORY;
    memory = (char *)mmap(0, (size_t)about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, $MEMORY, 0);
    if (memory == MAP_FAILED)
        return NO_MEMORY;
    settle();
    dl_iterate_phdr(populate, NULL);
    memset(&action, 0, sizeof action);
    action.sa_sigaction = refused;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGSYS, &action, NULL) != 0)
        return NO_HANDLER;
    if (syscall(SYS_seccomp, SET_FILTER, SPECULATION_ALLOWED, &bound) != 0)
        return NO_FILTER;
#ifdef _OPENMP
    /* The threads of a program that has run for a while are there, and bound by the filter as well. */
#pragma omp parallel
    {
        __asm__ volatile("");
    }
#endif
    if (!all($REPLY, &ready, 1, 0))
        return NO_ANSWER;
    while (all($COMMAND, command, sizeof command, 1)) {
        for (uint64_t i = 0; i < command[2]; i++)
            call(memory, command[0] + i * command[1]);
        if (!all($REPLY, &done, 1, 0))
            return NO_ANSWER;
    }
    return 0;
}

int main(void)
{
#ifdef __GLIBC__
    /* Freed memory stays, as it does in a program that has allocated as much before. */
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_TOP_PAD, HEAP);
#endif
    for (;;) {
        int status = 0;
        /* Not fork, which tells the child its process id: the number of samples that its side had. */
        pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
            _exit(serve());
        if (pid < 0)
            return NO_PROCESS;
        while (waitpid(pid, &status, 0) < 0)
            if (errno != EINTR)
                return NO_PROCESS;
        if (WIFEXITED(status) && WEXITSTATUS(status) >= NO_MEMORY && WEXITSTATUS(status) < REFUSED)
            return WEXITSTATUS(status);
    }
}
