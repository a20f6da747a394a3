/* What a program could notice of noise that comes by signals. Each part prints what it saw, which must be the same without. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void work(long ms)
{
    long end = now_ns() + ms * 1000000;
    while (now_ns() < end)
        continue;
}

static void wanted(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_flags = flags};
    action.sa_handler = handler;
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

/* Its own timer strikes as often as it is set to, and ends a sleep. */
static void alarms(void)
{
    wanted(SIGALRM, tick, 0);
    struct itimerval each = {{0, 10000}, {0, 10000}};
    setitimer(ITIMER_REAL, &each, NULL);
    while (ticks < 50)
        work(1);
    each = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &each, NULL);
    printf("alarms: %d or more ticks\n", ticks >= 50 ? 50 : ticks);
    struct itimerval half = {{0, 0}, {0, 500000}};
    setitimer(ITIMER_REAL, &half, NULL);
    unsigned left = sleep(5);
    printf("alarm ends sleep: %u left\n", left);
    alarm(1);
    int waited = poll(NULL, 0, 5000);
    printf("alarm ends poll: %d %s\n", waited, strerror(errno));
    alarm(1);
    waited = pause();
    printf("alarm ends pause: %d %s\n", waited, strerror(errno));
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec in = {{0, 0}, {0, 50000000}};
    int before = ticks;
    timer_settime(timer, 0, &in, NULL);
    while (ticks == before)
        work(1);
    timer_delete(timer);
    printf("a timer of its own: %d tick\n", ticks - before);
}

static void say(const char *call, int early, int odd)
{
    printf("%s: %d ended early, %d odd\n", call, early, odd);
}

#define MANY(call, count, ms, expression, expected)                                       \
    do {                                                                                  \
        int early = 0, odd = 0;                                                           \
        for (int i = 0; i < (count); i++) {                                               \
            errno = 0;                                                                    \
            long begun = now_ns();                                                        \
            long result = (long)(expression);                                             \
            if (now_ns() - begun < (ms) * 1000000L)                                       \
                early++;                                                                  \
            if (result != (expected) || errno == EINTR)                                   \
                odd++;                                                                    \
        }                                                                                 \
        say(call, early, odd);                                                            \
    } while (0)

/* Calls that signals end early whatever their flags. */
static void sleeps(void)
{
    struct timespec t = {0, 12000000};
    struct timeval tv;
    sigset_t none, some;
    sigemptyset(&none);
    sigfillset(&some);
    int epoll = epoll_create1(0);
    struct epoll_event event;
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf down = {0, -1, 0};
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    struct timeval limit = {0, 12000};
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char byte;
    siginfo_t info;

    MANY("nanosleep", 10, 12, nanosleep(&t, NULL), 0);
    MANY("clock_nanosleep", 10, 12, clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), 0);
    MANY("usleep", 10, 12, usleep(12000), 0);
    MANY("sleep", 1, 999, sleep(1), 0);
    MANY("thrd_sleep", 10, 12, thrd_sleep(&t, NULL), 0);
    MANY("poll", 10, 12, poll(NULL, 0, 12), 0);
    MANY("poll at once", 20000, 0, poll(NULL, 0, 0), 0);
    MANY("ppoll", 10, 12, ppoll(NULL, 0, &t, NULL), 0);
    MANY("ppoll with a mask", 10, 12, ppoll(NULL, 0, &t, &none), 0);
    MANY("select", 10, 12, (tv = (struct timeval){0, 12000}, select(0, NULL, NULL, NULL, &tv)), 0);
    MANY("pselect", 10, 12, pselect(0, NULL, NULL, NULL, &t, &none), 0);
    MANY("epoll_wait", 10, 12, epoll_wait(epoll, &event, 1, 12), 0);
    MANY("epoll_wait at once", 20000, 0, epoll_wait(epoll, &event, 1, 0), 0);
    MANY("epoll_pwait", 10, 12, epoll_pwait(epoll, &event, 1, 12, &none), 0);
    MANY("recv", 10, 8, recv(pair[0], &byte, 1, 0), -1);
    MANY("read", 10, 8, read(pair[0], &byte, 1), -1);
    MANY("semtimedop", 10, 12, semtimedop(set, &down, 1, &t), -1);
    MANY("sigtimedwait", 10, 12, sigtimedwait(&some, &info, &t), -1);
    struct timespec until;
    MANY("sem_timedwait", 10, 8,
         (clock_gettime(CLOCK_REALTIME, &until), until.tv_nsec += 12000000,
          until.tv_sec += until.tv_nsec / 1000000000, until.tv_nsec %= 1000000000,
          sem_timedwait(&semaphore, &until)),
         -1);
    MANY("msgrcv at once", 20000, 0, msgrcv(queue, &info, 0, 0, IPC_NOWAIT), -1);
    msgctl(queue, IPC_RMID, NULL);
    semctl(set, 0, IPC_RMID);
}

/* A mask that blocks all keeps its own signals away, and is read back as it was set. */
static void masks(void)
{
    sigset_t all, old, seen;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    work(100);
    sigprocmask(SIG_BLOCK, NULL, &seen);
    printf("masks: TERM %d before, %d then", sigismember(&old, SIGTERM), sigismember(&seen, SIGTERM));
    raise(SIGUSR1);
    int file = signalfd(-1, &all, 0), number = 0;
    struct signalfd_siginfo info;
    long size = read(file, &info, sizeof info);
    printf(", signalfd %ld bytes of %u", size, info.ssi_signo);
    raise(SIGUSR2);
    sigwait(&all, &number);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    printf(", sigwait %d\n", number);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
        struct sigaction before = {0};
        if (sigaction(s, NULL, &before) != 0 || before.sa_handler != SIG_DFL)
            printf("signal %d is in use\n", s);
        wanted(s, tick, 0);
        if (sigaction(s, NULL, &before) != 0 || before.sa_handler != tick)
            printf("signal %d does not take a handler\n", s);
    }
    int before = ticks;
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        raise(s);
    work(50);
    printf("realtime signals: %d of %d\n", ticks - before, SIGRTMAX - SIGRTMIN + 1);
}

static void *one(void *argument)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    work(30);
    return (char *)argument + 1;
}

static void *leaves(void *argument)
{
    work(10);
    pthread_exit((char *)argument + 2);
}

static void cleaned(void *count)
{
    ++*(int *)count;
}

static void *cancelled(void *count)
{
    pthread_cleanup_push(cleaned, count);
    for (;;)
        sleep(100);
    pthread_cleanup_pop(0);
    return NULL;
}

static int c11(void *argument)
{
    work(10);
    return *(int *)argument + 3;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long turn;

/* Two threads in turn. */
static void *plays(void *own)
{
    for (int i = 0; i < 500; i++) {
        pthread_mutex_lock(&lock);
        while (turn % 2 != (long)own)
            pthread_cond_wait(&turned, &lock);
        turn++;
        pthread_cond_signal(&turned);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void many_threads(void)
{
    pthread_t players[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&players[i], NULL, plays, (void *)i);
    for (long i = 0; i < 2; i++)
        pthread_join(players[i], NULL);
    printf("turns: %ld\n", turn);

    pthread_t threads[8];
    long sum = 0;
    int count = 0, code = 0, four = 4;
    void *result;
    for (int round = 0; round < 40; round++) {
        for (long i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, i % 2 && round ? leaves : one, (void *)(i * 10));
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], &result);
            sum += (long)result;
        }
        round += round > 2 ? 12 : 0;
    }
    pthread_create(&threads[0], NULL, cancelled, &count);
    usleep(50000);
    pthread_cancel(threads[0]);
    pthread_join(threads[0], &result);
    thrd_t other;
    thrd_create(&other, c11, &four);
    thrd_join(other, &code);
    printf("threads: sum %ld, cancelled %d, cleaned up %d, thrd %d\n", sum, result == PTHREAD_CANCELED, count, code);
}

static void children(void)
{
    fflush(stdout);
    int status, good = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            work(5);
            struct timespec t = {0, 5000000};
            _exit(nanosleep(&t, NULL) == 0 ? i : 99);
        }
        good += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == i;
    }
    printf("fork: %d of 20\n", good);
    good = 0;
    char *arguments[] = {"sh", "-c", "exit 7", NULL};
    for (int i = 0; i < 20; i++) {
        pid_t child;
        posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
        good += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    printf("posix_spawn: %d of 20\n", good);
    good = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execv("/bin/sh", arguments);
            _exit(1);
        }
        good += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    printf("vfork and exec: %d of 20\n", good);
    good = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            work(i % 3);
            execv("/bin/sh", arguments);
        }
        good += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
    }
    printf("fork and exec: %d of 20\n", good);
    FILE *pipe = popen("head -c 3000000 /dev/zero | wc -c", "r");
    char line[32] = "";
    fgets(line, sizeof line, pipe);
    printf("popen: %d, %s", pclose(pipe), line);
    printf("system: %d\n", WEXITSTATUS(system("exit 3")));
}

/* A child of a fork goes on while its parent becomes another program, under the same number. */
static void becomes(const char *self)
{
    fflush(stdout);
    if (fork() == 0) {
        work(300);
        printf("the child is done\n");
        fflush(stdout);
        _exit(0);
    }
    execl(self, self, "waits", NULL);
}

/* After that: the child is still its own. */
static void waits(void)
{
    int status = -1;
    pid_t child = wait(&status);
    printf("the child %s: status %d\n", child > 0 ? "ended" : "is lost", status);
}

/* sigsuspend sees what it waits for, and nothing else. */
static void suspends(void)
{
    sigset_t block, old, none;
    sigemptyset(&block);
    sigaddset(&block, SIGALRM);
    sigprocmask(SIG_BLOCK, &block, &old);
    sigemptyset(&none);
    wanted(SIGALRM, tick, 0);
    int odd = 0, begun = ticks;
    for (int i = 0; i < 20; i++) {
        struct itimerval once = {{0, 0}, {0, 20000}};
        setitimer(ITIMER_REAL, &once, NULL);
        int before = ticks;
        int result = sigsuspend(&none);
        odd += result != -1 || errno != EINTR || ticks != before + 1;
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("sigsuspend: %d signals, %d odd\n", ticks - begun, odd);
}

static sigjmp_buf place;

static void jumps(int signal)
{
    (void)signal;
    siglongjmp(place, 1);
}

static void leaps(void)
{
    static char stack[65536];
    stack_t second = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&second, NULL);
    volatile int jumped = 0;
    for (int i = 0; i < 20; i++) {
        wanted(SIGALRM, jumps, i % 2 ? SA_ONSTACK : 0);
        struct itimerval once = {{0, 0}, {0, 15000}};
        if (sigsetjmp(place, 1) == 0) {
            setitimer(ITIMER_REAL, &once, NULL);
            if (i % 3)
                pause();
            for (;;)
                continue;
        }
        jumped++;
    }
    stack_t found;
    sigaltstack(NULL, &found);
    printf("jumps out of handlers: %d, second stack %s\n", jumped, found.ss_flags == 0 ? "kept" : "lost");
}

/* A long write to a pipe that is slowly read is one whole. */
static void writes(void)
{
    static char bytes[1 << 20];
    int ends[2], odd = 0, status;
    if (pipe(ends) != 0)
        return;
    fflush(stdout);
    pid_t reader = fork();
    if (reader == 0) {
        close(ends[1]);
        long sum = 0, got;
        while ((got = read(ends[0], bytes, 65536)) > 0) {
            sum += got;
            usleep(1000);
        }
        _exit(sum == 8 * (long)sizeof bytes ? 0 : 1);
    }
    close(ends[0]);
    for (int i = 0; i < 8; i++)
        odd += write(ends[1], bytes, sizeof bytes) != sizeof bytes;
    close(ends[1]);
    waitpid(reader, &status, 0);
    printf("writes: %d odd, reader %d\n", odd, WEXITSTATUS(status));
}

int main(int count, char **arguments)
{
    const char *part = count > 1 ? arguments[1] : "";
    struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"alarms", alarms},     {"sleeps", sleeps},     {"masks", masks}, {"threads", many_threads},
                 {"children", children}, {"suspends", suspends}, {"leaps", leaps}, {"writes", writes},
                 {"waits", waits}};
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(part, parts[i].name) == 0)
            parts[i].run();
    if (strcmp(part, "becomes") == 0)
        becomes(arguments[0]);
    fflush(stdout);
    if (strcmp(part, "aborts") == 0) {
        work(20);
        abort();
    }
    work(20);
    return strcmp(part, "fails") == 0 ? 42 : 0;
}
