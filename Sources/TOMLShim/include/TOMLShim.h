// A TOML document as a flat list of nodes with the place of each, over toml++ (C++, headers only).
//
// No exception leaves these functions, and no input ends the process: documents of more than 1 MiB, keys of more
// than TARN_TOML_PARTS parts and values nested deeper than toml++ is told to go are errors like any other, because
// toml++ takes a tree down by recursion.
#ifndef TARN_TOML_SHIM_H
#define TARN_TOML_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TARN_TOML_MAXIMUM = 1 << 20, TARN_TOML_PARTS = 16 };

enum tarn_toml_kind {
  TARN_TOML_TABLE,
  TARN_TOML_ARRAY,
  TARN_TOML_STRING,
  TARN_TOML_INTEGER,
  TARN_TOML_FLOAT,
  TARN_TOML_BOOLEAN,
  TARN_TOML_DATE,
  TARN_TOML_TIME,
  TARN_TOML_DATE_TIME,
};

/// Lines and columns count from 1; columns count code points. Texts are UTF-8, may hold NUL, are not terminated, and
/// live as long as the document.
struct tarn_toml_node {
  enum tarn_toml_kind kind;
  /// Of a table or an array: how many of the nodes after it lie below it, at any depth.
  uint32_t below;
  /// NULL for what stands in an array, and for the root.
  const char *key;
  size_t key_length;
  uint32_t key_line;
  uint32_t key_column;
  uint32_t line;
  uint32_t column;
  const char *text;
  size_t text_length;
  int64_t integer;
  double real;
};

/// What is wrong with a document: the first fault, at its place.
struct tarn_toml_fault {
  uint32_t line;
  uint32_t column;
  char text[512];
};

typedef struct tarn_toml_document tarn_toml_document;

/// Returns NULL and fills `fault` when the bytes are no document.
tarn_toml_document *tarn_toml_parse(const char *bytes, size_t length, struct tarn_toml_fault *fault);
/// The nodes from the root down, each before its children, which stand in the order of their keys' bytes.
const struct tarn_toml_node *tarn_toml_nodes(const tarn_toml_document *document, size_t *count);
void tarn_toml_free(tarn_toml_document *document);

#ifdef __cplusplus
}
#endif

#endif
