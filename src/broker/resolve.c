/* Names to addresses: the hosts file's entries first, then the engine's own name server, then the nameservers
 * through c-ares, whose sockets are in the loop. Only questions and their sockets are c-ares's: its reading
 * of answers needs getservbyname, which no static program may have. */
#include <ares.h>
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/memory.h"
#include "broker/engine_names.h"
#include "broker/parts.h"

#define TIMEOUT_MS 2000
#define TRIES 2
/* A name that has an IPv4 address does not wait longer for its IPv6 addresses (RFC 8305 section 3). */
#define IPV6_PATIENCE_MS 50
#define NAMESERVERS_MAX 3
/* An answer is good for as long as it says, but not longer than this: what a name leads to is to follow its
 * owner. */
#define REMEMBERED_MAX_MS 30000
#define REMEMBERED_NAMES 64
#define CLASS_IN 1

/* One of c-ares's sockets. */
struct ares_source {
    struct source source;
    struct resolver *resolver;
    struct ares_source *next;
};

/* What a name led to, for the next connection. Its addresses are judged anew each time. */
struct remembered {
    char *name; /* NULL: none */
    int64_t until_ms;
    struct address addresses[RESOLVE_ADDRESSES_MAX];
    size_t count;
};

/* The interface at which a link-local nameserver is. */
struct scope {
    struct in6_addr address;
    char interface[IFNAMSIZ]; /* its name, or its number */
};

struct resolver {
    struct broker *broker;
    struct scope scopes[NAMESERVERS_MAX];
    size_t scopes_count;
    struct remembered remembered[REMEMBERED_NAMES];
    ares_channel channel;
    bool has_servers;
    struct ares_source *sources;
    struct timer timer;
};

struct resolve_request {
    struct resolver *resolver;
    resolve_function done;
    void *data;
    unsigned owed; /* answers that c-ares will still give */
    bool over;     /* done was called, or cancelled: free when nothing is owed */
    struct timer patience;
    struct address addresses[RESOLVE_ADDRESSES_MAX];
    size_t count;
    int status;
    uint32_t ttl;
    char name[HOST_NAME_SIZE];
    bool asks_engine; /* then nothing is owed yet */
    struct engine_question engine;
};

/* What one question's callback gets. */
struct question {
    struct resolve_request *request;
    int family;
};

/* c-ares has this one beside its getnameinfo, which would come along with it, and with that glibc's
 * getservbyport and a warning that a static program cannot have it. (RFC 7686: .onion is never asked for.) */
int ares__is_onion_domain(const char *name);
int ares__is_onion_domain(const char *name) {
    return text_ends_with(name, ".onion") || text_ends_with(name, ".onion.");
}

/* -- c-ares in the loop -- */

static void set_timer(struct resolver *resolver);

static void source_ready(struct source *source, uint32_t events) {
    struct ares_source *ares = OWNER_OF(source, struct ares_source, source);
    struct resolver *resolver = ares->resolver;
    int fd = source->fd;
    ares_process_fd(resolver->channel, events & (EPOLLIN | EPOLLERR | EPOLLHUP) ? fd : ARES_SOCKET_BAD,
                    events & EPOLLOUT ? fd : ARES_SOCKET_BAD);
    set_timer(resolver);
}

static void timer_ring(struct timer *timer) {
    struct resolver *resolver = OWNER_OF(timer, struct resolver, timer);
    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    set_timer(resolver);
}

static void set_timer(struct resolver *resolver) {
    struct timeval room, *next = ares_timeout(resolver->channel, NULL, &room);
    if (next == NULL)
        timer_clear(resolver->broker->loop, &resolver->timer);
    else
        timer_set(resolver->broker->loop, &resolver->timer, next->tv_sec * 1000 + next->tv_usec / 1000 + 1,
                  timer_ring);
}

/* c-ares says what it waits for; it closes its sockets itself, after having said "nothing". */
static void socket_state(void *data, ares_socket_t fd, int readable, int writable) {
    struct resolver *resolver = data;
    struct loop *loop = resolver->broker->loop;
    struct ares_source **place = &resolver->sources;
    while (*place != NULL && (*place)->source.fd != fd)
        place = &(*place)->next;
    struct ares_source *ares = *place;
    uint32_t events = (readable ? (uint32_t)EPOLLIN : 0) | (writable ? (uint32_t)EPOLLOUT : 0);
    if (events == 0) {
        if (ares == NULL)
            return;
        *place = ares->next;
        loop_forget(loop, &ares->source);
        loop_free_later(loop, ares);
        return;
    }
    if (ares == NULL) {
        ares = memory_zeroed(sizeof *ares);
        *ares = (struct ares_source){
            .source = {.fd = fd, .ready = source_ready}, .resolver = resolver, .next = resolver->sources};
        resolver->sources = ares;
    }
    (void)loop_watch(loop, &ares->source, events); /* not watched: the question times out */
}

static int socket_made(ares_socket_t fd, int type, void *data) {
    const struct resolver *resolver = data;
    (void)type;
    uint32_t mark = resolver->broker->sockets.mark;
    if (resolver->broker->plan->uplink == BROKER_UPLINK_CONTAINER && mark != 0 &&
        setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof mark) < 0)
        return -1;
    return 0;
}

/* -- link-local nameservers: c-ares has no place for a scope, so the socket's address is given one -- */

static ares_socket_t scoped_socket(int family, int type, int protocol, void *data) {
    (void)data;
    return socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
}

static int scoped_close(ares_socket_t fd, void *data) {
    (void)data;
    return close(fd);
}

/* Looked up when it is asked: interfaces come after the broker. */
static uint32_t scope_find(const struct resolver *resolver, const struct in6_addr *address, int fd) {
    for (size_t i = 0; i < resolver->scopes_count; i++) {
        const struct scope *scope = &resolver->scopes[i];
        struct ifreq interface = {0};
        if (memcmp(&scope->address, address, sizeof *address) != 0)
            continue;
        memcpy(interface.ifr_name, scope->interface, sizeof scope->interface);
        return ioctl(fd, SIOCGIFINDEX, &interface) == 0 ? (uint32_t)interface.ifr_ifindex
                                                        : (uint32_t)strtoul(scope->interface, NULL, 10);
    }
    return 0;
}

static int scoped_connect(ares_socket_t fd, const struct sockaddr *address, ares_socklen_t length,
                          void *data) {
    struct sockaddr_in6 ipv6;
    if (address->sa_family != AF_INET6 || length < sizeof ipv6)
        return connect(fd, address, length);
    memcpy(&ipv6, address, sizeof ipv6);
    ipv6.sin6_scope_id = scope_find(data, &ipv6.sin6_addr, fd);
    return connect(fd, (struct sockaddr *)&ipv6, sizeof ipv6);
}

static ares_ssize_t scoped_receive(ares_socket_t fd, void *bytes, size_t size, int flags,
                                   struct sockaddr *from, ares_socklen_t *length, void *data) {
    (void)data;
    return recvfrom(fd, bytes, size, flags, from, length);
}

static ares_ssize_t scoped_send(ares_socket_t fd, const struct iovec *parts, int count, void *data) {
    (void)data;
    return writev(fd, parts, count);
}

static const struct ares_socket_functions scoped_functions = {.asocket = scoped_socket,
                                                              .aclose = scoped_close,
                                                              .aconnect = scoped_connect,
                                                              .arecvfrom = scoped_receive,
                                                              .asendv = scoped_send};

/* "fe80::1%eth0" */
static bool scope_read(const char *text, struct scope *out) {
    char address[INET6_ADDRSTRLEN];
    size_t length = strcspn(text, "%");
    *out = (struct scope){0};
    if (length >= sizeof address || text[length] == '\0' || text[length + 1] == '\0' ||
        strlen(text + length + 1) >= sizeof out->interface)
        return false;
    memcpy(address, text, length);
    address[length] = '\0';
    memcpy(out->interface, text + length + 1, strlen(text + length + 1));
    return inet_pton(AF_INET6, address, &out->address) == 1;
}

struct error *resolver_set_servers(struct resolver *resolver, const struct string_list *addresses) {
    struct ares_addr_port_node servers[NAMESERVERS_MAX] = {0};
    struct scope scopes[NAMESERVERS_MAX];
    size_t count = 0, scopes_count = 0;
    for (size_t i = 0; i < addresses->count && count < NAMESERVERS_MAX; i++) {
        struct ares_addr_port_node *server = &servers[count];
        const char *address = addresses->items[i];
        if (inet_pton(AF_INET, address, &server->addr) == 1) {
            server->family = AF_INET;
        } else if (inet_pton(AF_INET6, address, &server->addr) == 1) {
            server->family = AF_INET6;
        } else if (scope_read(address, &scopes[scopes_count])) {
            server->family = AF_INET6;
            memcpy(&server->addr.addr6, &scopes[scopes_count++].address, sizeof server->addr.addr6);
        } else {
            continue;
        }
        if (count > 0)
            servers[count - 1].next = server;
        count++;
    }
    if (count > 0 && ares_set_servers_ports(resolver->channel, servers) != ARES_SUCCESS)
        return error_new(ERROR_UNAVAILABLE, "resolver: the nameservers cannot be set");
    resolver->has_servers = count > 0;
    resolver->scopes_count = scopes_count;
    memcpy(resolver->scopes, scopes, scopes_count * sizeof *scopes);
    ares_set_socket_functions(resolver->channel, scopes_count > 0 ? &scoped_functions : NULL, resolver);
    return NULL;
}

struct error *resolver_make(struct broker *broker, struct resolver **out) {
    struct resolver *resolver = memory_zeroed(sizeof *resolver);
    resolver->broker = broker;
    /* Everything that c-ares would otherwise look for in this machine's files. */
    char lookups[] = "b";
    struct ares_options options = {.flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
                                   .timeout = TIMEOUT_MS,
                                   .tries = TRIES,
                                   .ndots = 1,
                                   .lookups = lookups,
                                   .sock_state_cb = socket_state,
                                   .sock_state_cb_data = resolver};
    int status = ares_init_options(&resolver->channel, &options,
                                   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
                                       ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_DOMAINS);
    if (status != ARES_SUCCESS) {
        free(resolver);
        return error_new(ERROR_UNAVAILABLE, "resolver: %s", ares_strerror(status));
    }
    ares_set_socket_configure_callback(resolver->channel, socket_made, resolver);
    struct error *error = resolver_set_servers(resolver, &broker->plan->nameservers);
    if (error != NULL) {
        ares_destroy(resolver->channel);
        free(resolver);
        return error;
    }
    *out = resolver;
    return NULL;
}

/* -- requests -- */

static const char no_server[] = "there is no nameserver to ask";

/* The place of a name, or the one that is to be forgotten first. */
static struct remembered *remembered_place(struct resolver *resolver, const char *name) {
    struct remembered *place = &resolver->remembered[0];
    for (size_t i = 0; i < REMEMBERED_NAMES; i++) {
        struct remembered *other = &resolver->remembered[i];
        if (other->name != NULL && strcmp(other->name, name) == 0)
            return other;
        if (other->until_ms < place->until_ms)
            place = other;
    }
    return place;
}

static void remember(const struct resolve_request *request) {
    int64_t for_ms = (int64_t)request->ttl * 1000;
    if (request->count == 0 || for_ms == 0)
        return;
    struct remembered *place = remembered_place(request->resolver, request->name);
    memory_replace_string(&place->name, request->name);
    place->until_ms = loop_now_ms() + (for_ms < REMEMBERED_MAX_MS ? for_ms : REMEMBERED_MAX_MS);
    memcpy(place->addresses, request->addresses, sizeof place->addresses);
    place->count = request->count;
}

static void request_finish(struct resolve_request *request) {
    if (request->over)
        return;
    request->over = true;
    remember(request);
    timer_clear(request->resolver->broker->loop, &request->patience);
    const char *failure = request->resolver->has_servers ? ares_strerror(request->status) : no_server;
    request->done(request->data, request->addresses, request->count, request->count > 0 ? NULL : failure);
}

static void patience_ring(struct timer *timer) {
    request_finish(OWNER_OF(timer, struct resolve_request, patience));
}

static void answered(void *data, int status, int timeouts, unsigned char *bytes, int length) {
    memory_owned struct question *question = data;
    struct resolve_request *request = question->request;
    (void)timeouts;
    request->owed--;
    if (!request->over && status == ARES_SUCCESS && bytes != NULL && length > 0) {
        request->count +=
            resolve_parse_answer(bytes, (size_t)length, question->family, request->addresses + request->count,
                                 RESOLVE_ADDRESSES_MAX - request->count, &request->ttl);
        status = ARES_ENODATA;
    }
    if (request->status == ARES_SUCCESS || request->status == ARES_ENODATA)
        request->status = status;
    if (request->owed == 0)
        request_finish(request);
    else if (!request->over && request->count > 0)
        timer_set(request->resolver->broker->loop, &request->patience, IPV6_PATIENCE_MS, patience_ring);
    if (request->owed == 0)
        loop_free_later(request->resolver->broker->loop, request);
}

static size_t entries_find(const struct broker_plan *plan, const char *name, struct address *out,
                           size_t capacity) {
    size_t count = 0;
    for (size_t i = 0; i < plan->entries_count && count < capacity; i++) {
        const struct broker_hosts_entry *entry = &plan->entries[i];
        if (!string_list_contains(&entry->names, name))
            continue;
        if (inet_pton(AF_INET, entry->address, out[count].bytes) == 1)
            out[count++].family = AF_INET;
        else if (inet_pton(AF_INET6, entry->address, out[count].bytes) == 1)
            out[count++].family = AF_INET6;
    }
    return count;
}

static void ask(struct resolve_request *request, const char *name, int family) {
    struct question *question = memory_zeroed(sizeof *question);
    *question = (struct question){.request = request, .family = family};
    ares_query(request->resolver->channel, name, CLASS_IN,
               family == AF_INET ? RESOLVE_TYPE_A : RESOLVE_TYPE_AAAA, answered, question);
}

static void ask_nameservers(struct resolve_request *request) {
    if (!request->resolver->has_servers) {
        request_finish(request);
        loop_free_later(request->resolver->broker->loop, request);
        return;
    }
    request->owed = 2;
    ask(request, request->name, AF_INET6);
    ask(request, request->name, AF_INET);
    set_timer(request->resolver);
}

/* What the engine's server knows is asked for anew each time: containers come and go. */
static void engine_answered(struct engine_question *question, const struct address *addresses, size_t count) {
    struct resolve_request *request = OWNER_OF(question, struct resolve_request, engine);
    request->asks_engine = false;
    if (count == 0) {
        ask_nameservers(request);
        return;
    }
    memcpy(request->addresses, addresses, count * sizeof *addresses);
    request->count = count;
    request->ttl = 0;
    request_finish(request);
    loop_free_later(request->resolver->broker->loop, request);
}

void resolve_begin(struct resolver *resolver, const char *name, resolve_function done, void *data,
                   struct resolve_request **out) {
    *out = NULL;
    struct address known[RESOLVE_ADDRESSES_MAX] = {0};
    size_t count = entries_find(resolver->broker->plan, name, known, RESOLVE_ADDRESSES_MAX);
    if (count > 0) {
        done(data, known, count, NULL);
        return;
    }
    const struct remembered *before = remembered_place(resolver, name);
    if (before->name != NULL && strcmp(before->name, name) == 0 && before->until_ms > loop_now_ms()) {
        memcpy(known, before->addresses, sizeof known);
        done(data, known, before->count, NULL);
        return;
    }
    struct resolve_request *request = memory_zeroed(sizeof *request);
    *request = (struct resolve_request){.resolver = resolver, .done = done, .data = data, .ttl = UINT32_MAX};
    snprintf(request->name, sizeof request->name, "%s", name);
    *out = request; /* before an answer can come; whoever is called back forgets it */
    request->asks_engine = engine_names_ask(&request->engine, resolver->broker, name, engine_answered);
    if (!request->asks_engine)
        ask_nameservers(request);
}

void resolve_cancel(struct resolve_request *request) {
    request->over = true;
    timer_clear(request->resolver->broker->loop, &request->patience);
    if (request->asks_engine) {
        engine_names_cancel(&request->engine);
        loop_free_later(request->resolver->broker->loop, request);
    }
}
