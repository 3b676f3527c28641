/*
 * ops/saved.c - the parts of a sequencer's state.
 */
#include "ops/saved.h"

#include <inttypes.h>
#include <string.h>

static const char digits[64] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void hr__saved_add(struct hr_str *out, uint64_t number)
{
    hr__str_addf(out, "%" PRIu64 " ", number);
}

void hr__saved_add_id(struct hr_str *out, const struct hr_record_id *id)
{
    hr__saved_add(out, id->position);
    hr__saved_add(out, id->index);
    hr__saved_add(out, id->draw_epoch);
    hr__saved_add(out, id->depth);
    for (uint32_t i = 0; i < id->depth; i++)
        hr__saved_add(out, id->child[i]);
}

void hr__saved_add_bytes(struct hr_str *out, const void *data, size_t bytes)
{
    const uint8_t *from = data;
    char text[4096];

    for (size_t at = 0; at < bytes;) {
        size_t length = 0;

        for (; at < bytes && length < sizeof text; at += 3) {
            uint32_t group = (uint32_t)from[at] << 16;

            group |= at + 1 < bytes ? (uint32_t)from[at + 1] << 8 : 0;
            group |= at + 2 < bytes ? from[at + 2] : 0;
            for (int shift = 18; shift >= 0; shift -= 6)
                text[length++] = digits[group >> shift & 63];
        }
        hr__str_add_bytes(out, text, length);
    }
    hr__str_add_bytes(out, " ", 1);
}

bool hr__saved_take(const char **at, uint64_t most, uint64_t *ret_number)
{
    const char *from = *at;
    uint64_t number = 0;

    for (; **at >= '0' && **at <= '9'; (*at)++) {
        uint64_t digit = (uint64_t)(**at - '0');

        if (number > most / 10 || 10 * number > most - digit || digit > most)
            return false;
        number = 10 * number + digit;
    }
    if (*at == from || *(*at)++ != ' ')
        return false;
    *ret_number = number;
    return true;
}

static bool take_32(const char **at, uint64_t most, uint32_t *ret_number)
{
    uint64_t number;

    if (!hr__saved_take(at, most, &number))
        return false;
    *ret_number = (uint32_t)number;
    return true;
}

bool hr__saved_take_id(const char **at, uint64_t seed, uint32_t epoch,
                       struct hr_record_id *ret_id)
{
    struct hr_record_id id = {.seed = seed, .epoch = epoch};

    if (!hr__saved_take(at, HR_INDEX_MAX - 1, &id.position) ||
        !hr__saved_take(at, HR_INDEX_MAX - 1, &id.index) ||
        !take_32(at, UINT32_MAX, &id.draw_epoch) ||
        !take_32(at, HR_CHILD_DEPTH_MAX - 1, &id.depth))
        return false;
    for (uint32_t i = 0; i < id.depth; i++)
        if (!take_32(at, UINT32_MAX, &id.child[i]))
            return false;
    *ret_id = id;
    return true;
}

/* The value of a digit, or 64. */
static uint32_t digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '-' ? 62 : c == '_' ? 63 : 64;
}

bool hr__saved_take_bytes(const char **at, void *data, size_t bytes)
{
    uint8_t *to = data;

    for (size_t i = 0; i < bytes; i += 3) {
        uint32_t group = 0;

        for (int k = 0; k < 4; k++) {
            uint32_t digit = digit_of(**at); /* 64 for the NUL at the end */

            if (digit == 64)
                return false;
            group = group << 6 | digit;
            (*at)++;
        }
        for (size_t k = 0; k < 3; k++) {
            uint8_t byte = (uint8_t)(group >> (16 - 8 * k));

            if (i + k < bytes)
                to[i + k] = byte;
            else if (byte != 0)
                return false;
        }
    }
    return *(*at)++ == ' ';
}
