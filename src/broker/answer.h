/* Questions to nameservers and their answers, as bytes: the answers are hostile. Pure. (Fuzzed.) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESOLVE_TYPE_A 1
#define RESOLVE_TYPE_AAAA 28
/* Header, a name of 255 bytes, type and class. */
#define RESOLVE_QUESTION_MAX (12 + 255 + 4)

struct address {
    int family;
    uint8_t bytes[16];
};

/* Takes the addresses of the wanted family out of an answer, `capacity` at the most. *ttl, in seconds, is
 * lowered to the shortest of the records that lead there. */
size_t resolve_parse_answer(const uint8_t *bytes, size_t length, int family, struct address *out,
                            size_t capacity, uint32_t *ttl);
/* Writes a question for the addresses of a name (as host_name_normalise has it); 0 for one that no question
 * can have. */
size_t resolve_write_question(const char *name, uint16_t id, int family, uint8_t out[RESOLVE_QUESTION_MAX]);
/* Whether a message answers this question, whole: its id, and its name, letter for letter. */
bool resolve_is_answer(const uint8_t *bytes, size_t length, const uint8_t *question, size_t question_length);
