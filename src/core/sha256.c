/*
 * core/sha256.c - SHA-256 and HMAC in plain C: a few kilobytes per request are hashed.
 */
#include "core/sha256.h"
#include <stdint.h>
#include <string.h>

#define BLOCK 64

struct state {
    uint32_t words[8];
    unsigned char block[BLOCK];
    size_t used; /* of block */
    uint64_t bytes;
};

static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
    0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
    0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
    0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
    0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
    0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
    0xc67178f2};

static uint32_t rotate(uint32_t x, int bits)
{
    return x >> bits | x << (32 - bits);
}

static uint32_t load(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store(unsigned char *at, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(word >> (24 - 8 * i));
}

/* Names of the standard: s is its a..h, w its schedule. */
static void add_block(struct state *state)
{
    uint32_t w[64], s[8];

    for (int i = 0; i < 16; i++)
        w[i] = load(state->block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];

        w[i] = w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(s, state->words, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t one = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                       ((s[4] & s[5]) ^ (~s[4] & s[6])) + rounds[i] + w[i];
        uint32_t two = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                       ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

        memmove(s + 1, s, 7 * sizeof s[0]);
        s[4] += one;
        s[0] = one + two;
    }
    for (int i = 0; i < 8; i++)
        state->words[i] += s[i];
    state->used = 0;
}

static void begin(struct state *state)
{
    static const uint32_t words[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

    memcpy(state->words, words, sizeof words);
    state->used = 0;
    state->bytes = 0;
}

static void add(struct state *state, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    state->bytes += bytes;
    while (bytes > 0) {
        size_t room = BLOCK - state->used, use = bytes < room ? bytes : room;

        memcpy(state->block + state->used, at, use);
        state->used += use;
        at += use;
        bytes -= use;
        if (state->used == BLOCK)
            add_block(state);
    }
}

static void end(struct state *state, unsigned char hash[HR_SHA256_BYTES])
{
    uint64_t bits = state->bytes * 8;
    unsigned char length[8], pad = 0x80, zero = 0;

    add(state, &pad, 1);
    while (state->used != BLOCK - sizeof length)
        add(state, &zero, 1);
    store(length, (uint32_t)(bits >> 32));
    store(length + 4, (uint32_t)bits);
    add(state, length, sizeof length);
    for (int i = 0; i < 8; i++)
        store(hash + 4 * i, state->words[i]);
}

void hr__sha256(const void *data, size_t bytes, unsigned char ret_hash[HR_SHA256_BYTES])
{
    struct state state;

    begin(&state);
    add(&state, data, bytes);
    end(&state, ret_hash);
}

void hr__hmac_sha256(const void *key, size_t key_bytes, const void *data, size_t bytes,
                     unsigned char ret_hash[HR_SHA256_BYTES])
{
    unsigned char block[BLOCK] = {0};
    struct state state;

    if (key_bytes > BLOCK)
        hr__sha256(key, key_bytes, block);
    else if (key_bytes > 0)
        memcpy(block, key, key_bytes);
    for (int i = 0; i < BLOCK; i++)
        block[i] ^= 0x36;
    begin(&state);
    add(&state, block, BLOCK);
    add(&state, data, bytes);
    end(&state, ret_hash);
    for (int i = 0; i < BLOCK; i++)
        block[i] ^= 0x36 ^ 0x5c;
    begin(&state);
    add(&state, block, BLOCK);
    add(&state, ret_hash, HR_SHA256_BYTES);
    end(&state, ret_hash);
}

void hr__sha256_text(const unsigned char hash[HR_SHA256_BYTES],
                     char ret_text[HR_SHA256_TEXT_BYTES])
{
    for (int i = 0; i < HR_SHA256_BYTES; i++) {
        ret_text[2 * i] = "0123456789abcdef"[hash[i] >> 4];
        ret_text[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
    }
    ret_text[64] = '\0';
}
