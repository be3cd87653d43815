/* packet_log_parse: bytes that a workload chooses, in messages that the kernel builds around them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "egress/address.h"
#include "egress/egress.h"

static void each(const struct denied_packet *packet, void *data) {
    unsigned *count = data;
    (*count)++;
    if (packet->family != AF_INET && packet->family != AF_INET6)
        abort();
    if (packet->held && packet->protocol != 6)
        abort();
    if (memchr(packet->name, '\0', sizeof packet->name) == NULL)
        abort();
    for (const char *byte = packet->name; *byte != '\0'; byte++)
        if (*byte <= ' ' || *byte >= 0x7f)
            abort();
    char text[ADDRESS_TEXT_SIZE];
    address_write(packet->family, packet->destination, packet->destination_port, text);
    (void)address_classify(packet->family, packet->destination);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    /* A copy of its own, unaligned and without a byte of slack, so that a read past the end is seen. */
    uint8_t *copy = malloc(length + 1);
    if (copy == NULL)
        return 0;
    memcpy(copy + 1, bytes, length);
    unsigned packets = 0, malformed = 0;
    packet_log_parse(copy + 1, length, each, &packets, &malformed);
    if (packets + malformed > length / 16 + 1) /* each takes a header */
        abort();
    free(copy);
    return 0;
}
