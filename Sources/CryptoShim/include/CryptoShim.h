// SHA-256 of two streams at once.
//
// One stream keeps a core's SHA instructions busy half of the time: each waits for the one before it. libcrypto has a function
// for several streams (sha256_multi_block, made for TLS), which its shared library does not export; its archive has it.
#ifndef TARN_CRYPTO_SHIM_H
#define TARN_CRYPTO_SHIM_H

#include <stdbool.h>
#include <stddef.h>

/// One running SHA-256 (FIPS 180-4). One thread at a time.
typedef struct tarn_sha256 tarn_sha256;

/// Whether two at once are faster here than one after the other: x86-64 with the SHA extensions. Any thread.
bool tarn_sha256_pairs(void);

/// Null without memory. Given back by `tarn_sha256_free`.
tarn_sha256 *tarn_sha256_new(void);
void tarn_sha256_free(tarn_sha256 *stream);

void tarn_sha256_update(tarn_sha256 *stream, const void *bytes, size_t count);

/// `count` bytes to each of two streams; the same as two updates. Only where `tarn_sha256_pairs`.
void tarn_sha256_update_pair(tarn_sha256 *left, const void *left_bytes, tarn_sha256 *right,
                             const void *right_bytes, size_t count);

/// Writes 32 bytes; call it once, last.
void tarn_sha256_finish(tarn_sha256 *stream, unsigned char *digest);

#endif
