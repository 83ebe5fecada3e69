/* A load generator for anything that speaks size-prefixed frames, and the machine's own limits.
 *
 *   load client HOST PORT CONNECTIONS PIPELINED SECONDS REQUEST_FILE [ERROR_AT]
 *     Sends the frames in REQUEST_FILE (each with its 4-byte size) round and round, keeping
 *     PIPELINED of them in flight on every connection; the connections begin at evenly spaced
 *     frames. Bytes 8 to 11 of a frame are its correlation id: each frame sent gets the next
 *     number, each frame received must carry it, as in the Kafka protocol. The two bytes at
 *     ERROR_AT of every answer, counted behind its size, are an error code and must be 0.
 *     PIPELINED 0 sends as fast as the socket takes them and expects no answers (acks=0).
 *
 * The client prints one line of JSON: requests, seconds, requests per second, bytes sent and
 * received, and the quantiles of the latency in microseconds.
 *
 * The servers have one thread, epoll, and do the least work a server can do. PORT 0 takes a free
 * port; the port is printed. Every answer carries the correlation id of its request.
 *
 *   load server PORT RESPONSE_BYTES
 *     Answers each frame with a frame of RESPONSE_BYTES.
 *   load write-server PORT RESPONSE_BYTES FILE
 *     The same, and each frame is written to the end of FILE before it is answered.
 *   load send-server PORT SLICE_BYTES FILE
 *     Answers each frame with SLICE_BYTES out of FILE, by sendfile, going round it.
 *
 * Build: cc -O2 -o load load.c
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256
#define CLIENT_BUFFER (256 * 1024)
#define SERVER_BUFFER (1024 * 1024) /* holds the largest frame a server takes, and more */
#define MAX_PIPELINED 64
#define BUCKETS 2048 /* 32 per power of two: latencies are known to about 3 % */
#define DRAIN_NS 5000000000u

static int poller;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint32_t get32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put32(unsigned char *p, uint32_t v) {
    p[0] = (unsigned char)(v >> 24);
    p[1] = (unsigned char)(v >> 16);
    p[2] = (unsigned char)(v >> 8);
    p[3] = (unsigned char)v;
}

static void watch(int operation, int fd, uint32_t events, void *owner) {
    struct epoll_event e = {.events = events, .data.ptr = owner};
    if (epoll_ctl(poller, operation, fd, &e) != 0) fail("epoll_ctl");
}

/* ---- The client ---- */

struct frames {
    unsigned char *bytes;
    size_t size, count;
    size_t *starts; /* count + 1 of them: the last is the end */
};

struct connection {
    int fd;
    unsigned char *requests;      /* this connection's copy of the frames: the ids differ */
    size_t frame;                 /* which of them is being sent */
    size_t sent;                  /* of the frame being sent */
    int writing;                  /* whether EPOLLOUT is asked for */
    uint32_t next_correlation_id; /* of the frame being sent */
    uint32_t next_answer;
    int in_flight;
    uint64_t sent_at[MAX_PIPELINED];
    unsigned char head[8]; /* size and correlation id of the frame being received */
    size_t head_filled;
    uint64_t body_size, body_left; /* behind the head */
    uint32_t error;
};

static struct frames frames;
static long error_at = -1; /* in what follows the head of an answer */
static int pipelined;
static int stopping;
static uint64_t requests, bytes_sent, bytes_received;
static uint64_t latencies[BUCKETS];

static int bucket_of(uint64_t us) {
    if (us < 32) return (int)us;
    int log2 = 63 - __builtin_clzll(us);
    int bucket = (log2 - 4) * 32 + (int)((us >> (log2 - 5)) & 31);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static uint64_t bucket_value(int bucket) {
    if (bucket < 32) return (uint64_t)bucket;
    return (uint64_t)(32 + bucket % 32) << (bucket / 32 - 1);
}

static uint64_t quantile(double q, uint64_t total) {
    uint64_t wanted = (uint64_t)(q * (double)total), seen = 0;
    for (int i = 0; i < BUCKETS; i++) {
        seen += latencies[i];
        if (seen > wanted) return bucket_value(i);
    }
    return 0;
}

static void read_frames(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail(path);
    fseek(file, 0, SEEK_END);
    frames.size = (size_t)ftell(file);
    rewind(file);
    frames.bytes = malloc(frames.size);
    frames.starts = malloc((frames.size / 12 + 1) * sizeof *frames.starts);
    if (fread(frames.bytes, 1, frames.size, file) != frames.size) fail(path);
    fclose(file);
    size_t at = 0;
    while (frames.size - at >= 12 && frames.size - at - 4 >= get32(frames.bytes + at)) {
        frames.starts[frames.count++] = at;
        at += 4 + (size_t)get32(frames.bytes + at);
    }
    frames.starts[frames.count] = at;
    if (frames.count == 0 || at != frames.size) {
        fprintf(stderr, "%s is no sequence of frames\n", path);
        exit(2);
    }
}

static int connect_to(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    if (getaddrinfo(host, port, &hints, &found) != 0) fail("getaddrinfo");
    int fd = -1;
    for (struct addrinfo *a = found; a != NULL; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) break;
        if (fd >= 0) close(fd);
        fd = -1;
    }
    if (fd < 0) fail("connect");
    freeaddrinfo(found);
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
    return fd;
}

static void want_to_write(struct connection *c, int writing) {
    if (writing == c->writing) return;
    c->writing = writing;
    watch(EPOLL_CTL_MOD, c->fd, EPOLLIN | (writing ? EPOLLOUT : 0), c);
}

static void sent_one(struct connection *c) {
    c->sent = 0;
    c->frame = (c->frame + 1) % frames.count;
    if (pipelined == 0) {
        requests++;
    } else {
        c->sent_at[c->next_correlation_id % MAX_PIPELINED] = now_ns();
        c->in_flight++;
    }
    c->next_correlation_id++;
}

static void send_some(struct connection *c) {
    /* A frame once begun is finished also when stopping: the server must not see half of it. */
    while (c->sent > 0 || (!stopping && (pipelined == 0 || c->in_flight < pipelined))) {
        unsigned char *request = c->requests + frames.starts[c->frame];
        size_t size = frames.starts[c->frame + 1] - frames.starts[c->frame];
        if (c->sent == 0) put32(request + 8, c->next_correlation_id);
        ssize_t n = send(c->fd, request + c->sent, size - c->sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN) fail("send");
            want_to_write(c, 1);
            return;
        }
        bytes_sent += (uint64_t)n;
        c->sent += (size_t)n;
        if (c->sent == size) sent_one(c);
    }
    want_to_write(c, 0);
}

static void answered(struct connection *c) {
    uint32_t id = get32(c->head + 4);
    if (id != c->next_answer) {
        fprintf(stderr, "answer %u came where %u was due\n", id, c->next_answer);
        exit(1);
    }
    if (c->error != 0) {
        fprintf(stderr, "answer %u carries the error code %d\n", id, (int16_t)c->error);
        exit(1);
    }
    latencies[bucket_of((now_ns() - c->sent_at[id % MAX_PIPELINED]) / 1000)]++;
    c->next_answer++;
    c->in_flight--;
    c->head_filled = 0;
    requests++;
}

/* Picks the error code out of the next `size` bytes of an answer's body. */
static void look_for_error(struct connection *c, const unsigned char *bytes, uint64_t size) {
    uint64_t from = c->body_size - c->body_left;
    for (uint64_t at = (uint64_t)error_at; at < (uint64_t)error_at + 2; at++)
        if (at >= from && at < from + size) c->error = c->error << 8 | bytes[at - from];
}

static void receive_some(struct connection *c) {
    static unsigned char buffer[CLIENT_BUFFER];
    ssize_t n = recv(c->fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) fail("recv");
    if (n == 0) {
        fprintf(stderr, "the server closed a connection\n");
        exit(1);
    }
    bytes_received += (uint64_t)n;
    size_t at = 0, end = (size_t)n;
    while (at < end) {
        if (c->head_filled < 8) {
            c->head[c->head_filled++] = buffer[at++];
            if (c->head_filled < 8) continue;
            c->body_left = c->body_size = get32(c->head) - 4;
            c->error = 0;
        } else {
            uint64_t take = end - at < c->body_left ? end - at : c->body_left;
            if (error_at >= 0) look_for_error(c, buffer + at, take);
            c->body_left -= take;
            at += take;
        }
        if (c->head_filled == 8 && c->body_left == 0) answered(c);
    }
    send_some(c);
}

static void exchange(uint64_t timeout_ns) {
    struct epoll_event events[EVENTS];
    int n = epoll_wait(poller, events, EVENTS, (int)(timeout_ns / 1000000) + 1);
    for (int i = 0; i < n; i++) {
        struct connection *c = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) send_some(c);
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive_some(c);
    }
}

static void print_result(double seconds) {
    printf("{\"requests\": %llu, \"seconds\": %.3f, \"requests_per_second\": %.0f, "
           "\"bytes_sent\": %llu, \"bytes_received\": %llu, \"p50_us\": %llu, \"p99_us\": %llu, "
           "\"p999_us\": %llu}\n",
           (unsigned long long)requests, seconds, (double)requests / seconds,
           (unsigned long long)bytes_sent, (unsigned long long)bytes_received,
           (unsigned long long)quantile(0.5, requests), (unsigned long long)quantile(0.99, requests),
           (unsigned long long)quantile(0.999, requests));
}

/* Waits for what is under way, so that a measurement does not run into the next one. */
static void drain(struct connection *connections, size_t count) {
    uint64_t deadline = now_ns() + DRAIN_NS, now;
    stopping = 1;
    for (size_t i = 0; i < count; i++)
        while ((connections[i].in_flight > 0 || connections[i].sent > 0) &&
               (now = now_ns()) < deadline)
            exchange(deadline - now);
}

static int run_client(char **args, int count_of_args) {
    size_t count = (size_t)atoi(args[2]);
    pipelined = atoi(args[3]);
    double seconds = atof(args[4]);
    if (count < 1 || pipelined < 0 || pipelined > MAX_PIPELINED) {
        fprintf(stderr, "at least 1 connection, 0 to %d pipelined\n", MAX_PIPELINED);
        return 2;
    }
    read_frames(args[5]);
    if (count_of_args > 6) error_at = atol(args[6]) - 4; /* the correlation id is in the head */

    struct connection *connections = calloc(count, sizeof *connections);
    for (size_t i = 0; i < count; i++) {
        struct connection *c = &connections[i];
        c->fd = connect_to(args[0], args[1]);
        c->requests = malloc(frames.size);
        memcpy(c->requests, frames.bytes, frames.size);
        c->frame = i * frames.count / count;
        watch(EPOLL_CTL_ADD, c->fd, EPOLLIN, c);
    }
    uint64_t start = now_ns(), deadline = start + (uint64_t)(seconds * 1e9), now;
    for (size_t i = 0; i < count; i++) send_some(&connections[i]);
    while ((now = now_ns()) < deadline) exchange(deadline - now);
    print_result((double)(now - start) / 1e9);
    drain(connections, count);
    return 0;
}

/* ---- The servers ---- */

struct peer {
    int fd;
    unsigned char *buffer;
    size_t filled;
    unsigned char head[8]; /* send-server: size and correlation id of the answer being sent */
    size_t head_left, body_left;
    off_t position; /* of the next slice */
    int writing;
};

enum kind { ANSWER, WRITE, SEND };

static enum kind kind;
static unsigned char *response;
static size_t response_size; /* SEND: of a slice */
static int file;
static off_t file_size;

static int listen_at(int port) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0) fail("bind");
    if (listen(listener, 1024) != 0) fail("listen");
    socklen_t length = sizeof address;
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void accept_one(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct peer *p = calloc(1, sizeof *p);
    p->fd = fd;
    p->buffer = malloc(SERVER_BUFFER);
    watch(EPOLL_CTL_ADD, fd, EPOLLIN, p);
}

static void answer(struct peer *p, const unsigned char *frame, size_t size) {
    if (kind == SEND) {
        put32(p->head, (uint32_t)(4 + response_size));
        memcpy(p->head + 4, frame + 8, 4);
        p->head_left = sizeof p->head;
        p->body_left = response_size;
        if (p->position + (off_t)response_size > file_size) p->position = 0;
        return;
    }
    if (kind == WRITE && write(file, frame, size) != (ssize_t)size) fail("write");
    memcpy(response + 4, frame + 8, 4);
    /* An answer fits the socket buffer: the client waits for it before it sends much more. */
    if (send(p->fd, response, response_size, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
        errno != ECONNRESET)
        fail("send");
}

/* Sends what is left of a slice; whether all of it went out (or never will: the peer is gone). */
static int send_slice(struct peer *p) {
    while (p->head_left > 0) {
        ssize_t n = send(p->fd, p->head + sizeof p->head - p->head_left, p->head_left,
                         MSG_NOSIGNAL | MSG_MORE);
        if (n < 0) return errno != EAGAIN;
        p->head_left -= (size_t)n;
    }
    while (p->body_left > 0) {
        ssize_t n = sendfile(p->fd, file, &p->position, p->body_left);
        if (n < 0) return errno != EAGAIN;
        p->body_left -= (size_t)n;
    }
    return 1;
}

static void answer_all(struct peer *p) {
    size_t at = 0;
    int blocked = !send_slice(p);
    while (!blocked && p->filled - at >= 12) {
        size_t size = 4 + (size_t)get32(p->buffer + at);
        if (p->filled - at < size) break;
        answer(p, p->buffer + at, size);
        at += size;
        blocked = !send_slice(p);
    }
    if (at > 0) memmove(p->buffer, p->buffer + at, p->filled - at);
    p->filled -= at;
    if (blocked != p->writing) watch(EPOLL_CTL_MOD, p->fd, blocked ? EPOLLOUT : EPOLLIN, p);
    p->writing = blocked;
}

static void serve_peer(struct peer *p, uint32_t events) {
    if (events & EPOLLIN) {
        ssize_t n = recv(p->fd, p->buffer + p->filled, SERVER_BUFFER - p->filled, 0);
        if (n > 0) p->filled += (size_t)n;
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            close(p->fd);
            free(p->buffer);
            free(p);
            return;
        }
    } else if (!(events & EPOLLOUT)) {
        /* Only an error or a hang-up: reading will tell. */
        watch(EPOLL_CTL_MOD, p->fd, EPOLLIN, p);
        return;
    }
    answer_all(p);
}

static int run_server(char **args, enum kind which) {
    kind = which;
    response_size = (size_t)atol(args[1]);
    if (response_size < 8) response_size = 8;
    response = calloc(1, response_size);
    put32(response, (uint32_t)response_size - 4);
    if (kind == WRITE) file = open(args[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
    if (kind == SEND) file = open(args[2], O_RDONLY);
    struct stat status;
    if (kind != ANSWER && (file < 0 || fstat(file, &status) != 0)) fail(args[2]);
    file_size = kind == SEND ? status.st_size : 0;
    if (kind == SEND && file_size < (off_t)response_size) {
        fprintf(stderr, "%s has no %zu bytes\n", args[2], response_size);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* sendfile knows no MSG_NOSIGNAL */
    poller = epoll_create1(0);
    int listener = listen_at(atoi(args[0]));
    watch(EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
    struct epoll_event events[EVENTS];
    for (;;) {
        int n = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL)
                accept_one(listener);
            else
                serve_peer(events[i].data.ptr, events[i].events);
        }
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if ((argc == 8 || argc == 9) && strcmp(what, "client") == 0) {
        poller = epoll_create1(0);
        return run_client(argv + 2, argc - 2);
    }
    if (argc == 4 && strcmp(what, "server") == 0) return run_server(argv + 2, ANSWER);
    if (argc == 5 && strcmp(what, "write-server") == 0) return run_server(argv + 2, WRITE);
    if (argc == 5 && strcmp(what, "send-server") == 0) return run_server(argv + 2, SEND);
    fprintf(stderr,
            "usage: %s client HOST PORT CONNECTIONS PIPELINED SECONDS REQUEST_FILE [ERROR_AT]\n"
            "       %s server PORT RESPONSE_BYTES\n"
            "       %s write-server PORT RESPONSE_BYTES FILE\n"
            "       %s send-server PORT SLICE_BYTES FILE\n",
            argv[0], argv[0], argv[0], argv[0]);
    return 2;
}
