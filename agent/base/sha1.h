/*
 * SHA-1 (FIPS 180-4), for the WebSocket handshake alone, where the protocol asks for it.
 *
 * It is broken as a protection and protects nothing here. Pure function.
 */
#ifndef NK_BASE_SHA1_H
#define NK_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define NK_SHA1_SIZE 20

void nk_sha1(const void *data, size_t len, uint8_t out[NK_SHA1_SIZE]);

#endif
