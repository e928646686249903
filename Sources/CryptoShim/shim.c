// SHA256_* are deprecated in favour of EVP, which shows nobody the state that two streams at once need.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "CryptoShim.h"

#include <openssl/sha.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct tarn_sha256 {
  SHA256_CTX context;
};

tarn_sha256 *tarn_sha256_new(void) {
  tarn_sha256 *stream = malloc(sizeof *stream);
  if (stream) SHA256_Init(&stream->context);
  return stream;
}

void tarn_sha256_free(tarn_sha256 *stream) { free(stream); }

void tarn_sha256_update(tarn_sha256 *stream, const void *bytes, size_t count) {
  SHA256_Update(&stream->context, bytes, count);
}

void tarn_sha256_finish(tarn_sha256 *stream, unsigned char *digest) {
  SHA256_Final(digest, &stream->context);
}

#if defined(__x86_64__)
#include <cpuid.h>

// As in crypto/sha/asm/sha256-mb-x86_64.pl of OpenSSL 1.0.2 and later: eight lanes by word, four of which are used.
typedef struct {
  uint32_t words[8][8];
} lanes;
typedef struct {
  const unsigned char *bytes;
  int blocks;
} lane_input;
void sha256_multi_block(lanes *state, const lane_input *input, int groups_of_four);

static void count_bytes(SHA256_CTX *context, size_t count) {
  uint64_t bits = ((uint64_t)context->Nh << 32 | context->Nl) + ((uint64_t)count << 3);
  context->Nl = (SHA_LONG)bits;
  context->Nh = (SHA_LONG)(bits >> 32);
}

// The bytes that a stream needs until it is between two blocks.
static size_t align(SHA256_CTX *context, const unsigned char *bytes, size_t count) {
  size_t missing = context->num == 0 ? 0 : SHA256_CBLOCK - context->num;
  size_t used = missing < count ? missing : count;
  SHA256_Update(context, bytes, used);
  return used;
}

void tarn_sha256_update_pair(tarn_sha256 *left, const void *left_bytes, tarn_sha256 *right,
                             const void *right_bytes, size_t count) {
  SHA256_CTX *contexts[2] = {&left->context, &right->context};
  const unsigned char *bytes[2] = {left_bytes, right_bytes};
  size_t rest[2];
  for (int lane = 0; lane < 2; lane++) {
    size_t used = align(contexts[lane], bytes[lane], count);
    bytes[lane] += used;
    rest[lane] = count - used;
  }
  size_t least = rest[0] < rest[1] ? rest[0] : rest[1];
  while (least >= SHA256_CBLOCK) {
    size_t blocks = least / SHA256_CBLOCK < 1 << 20 ? least / SHA256_CBLOCK : 1 << 20;
    lanes state = {0};
    lane_input input[4] = {{bytes[0], (int)blocks}, {bytes[1], (int)blocks}};
    for (int lane = 0; lane < 2; lane++)
      for (int word = 0; word < 8; word++) state.words[word][lane] = contexts[lane]->h[word];
    sha256_multi_block(&state, input, 1);
    size_t done = blocks * SHA256_CBLOCK;
    for (int lane = 0; lane < 2; lane++) {
      for (int word = 0; word < 8; word++) contexts[lane]->h[word] = state.words[word][lane];
      count_bytes(contexts[lane], done);
      bytes[lane] += done;
      rest[lane] -= done;
    }
    least -= done;
  }
  for (int lane = 0; lane < 2; lane++) SHA256_Update(contexts[lane], bytes[lane], rest[lane]);
}

// The function is not part of libcrypto's interface: what it gives is looked at before it is trusted.
static bool is_right(void) {
  unsigned char bytes[2][200], digests[4][SHA256_DIGEST_LENGTH];
  tarn_sha256 pair[2];
  for (int lane = 0; lane < 2; lane++) {
    for (size_t at = 0; at < sizeof bytes[lane]; at++) bytes[lane][at] = (unsigned char)(at * 7 + lane);
    SHA256_Init(&pair[lane].context);
    SHA256(bytes[lane], sizeof bytes[lane], digests[2 + lane]);
  }
  tarn_sha256_update_pair(&pair[0], bytes[0], &pair[1], bytes[1], sizeof bytes[0]);
  for (int lane = 0; lane < 2; lane++) SHA256_Final(digests[lane], &pair[lane].context);
  return memcmp(digests[0], digests[2], 2 * SHA256_DIGEST_LENGTH) == 0;
}

bool tarn_sha256_pairs(void) {
  unsigned int a, b, c, d;
  bool has_sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 29)) != 0;
  return has_sha && is_right();
}
#else
bool tarn_sha256_pairs(void) { return false; }

void tarn_sha256_update_pair(tarn_sha256 *left, const void *left_bytes, tarn_sha256 *right,
                             const void *right_bytes, size_t count) {
  SHA256_Update(&left->context, left_bytes, count);
  SHA256_Update(&right->context, right_bytes, count);
}
#endif
