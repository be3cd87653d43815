/* Names of the engine's own network, as the engine's name server has them (Docker's, 127.0.0.11, in a user
 * network).
 *
 * It asks for names that it does not know whom it was told, and from the container's own namespace, where the
 * wall turns each question to the broker: so the broker's own question comes back to it, is answered as
 * anybody's is, with the address that stands for the name, and that comes back as the server's answer.
 * Nothing turns round: the broker's name service asks nobody. Such an answer is none, and the nameservers
 * that there were at `create` are asked. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "broker/parts.h"

struct engine_question;
/* `count` 0: it does not know the name, or did not answer in time. Addresses are of networks that the
 * container is in, and not judged. */
typedef void (*engine_function)(struct engine_question *question, const struct address *addresses,
                                size_t count);

/* A member of what it belongs to. */
struct engine_question {
    struct broker *broker;
    engine_function done;
    struct source source;
    struct timer patience;
    uint8_t bytes[2][RESOLVE_QUESTION_MAX]; /* for IPv6, for IPv4 */
    size_t lengths[2];                      /* 0: answered */
    struct address addresses[RESOLVE_ADDRESSES_MAX];
    size_t count;
};

/* Asks for both families. False when there is no such server, or it cannot be asked: nothing is to come then.
 * Otherwise calls back once, and not before it returns. */
bool engine_names_ask(struct engine_question *question, struct broker *broker, const char *name,
                      engine_function done);
/* It will not call back. */
void engine_names_cancel(struct engine_question *question);
