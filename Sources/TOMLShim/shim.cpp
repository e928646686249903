#include "TOMLShim.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

namespace {

// What toml++ holds for impossible.
struct broken_promise {};

[[noreturn]] void break_promise() { throw broken_promise(); }

}  // namespace

// toml++'s assertions do see input that is wrong; assert would end the process.
#define TOML_ASSERT(expression) (static_cast<bool>(expression) ? static_cast<void>(0) : break_promise())
// Faults as an answer, not as an exception: a broken document is an ordinary thing.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

struct tarn_toml_document {
  toml::table root;
  std::vector<tarn_toml_node> nodes;
};

namespace {

void set(tarn_toml_fault *fault, uint32_t line, uint32_t column, std::string_view text) {
  fault->line = line;
  fault->column = column;
  size_t length = std::min(text.size(), sizeof fault->text - 1);
  std::memcpy(fault->text, text.data(), length);
  fault->text[length] = 0;
}

// Finds keys of too many parts before toml++ makes a tree of them. It need not know what is valid, only where strings
// and comments end in what is: toml++ goes no further than the first fault.
class Scan {
 public:
  Scan(const char *bytes, size_t length) : at_(bytes), end_(bytes + length) {
    // toml++ counts no column for a byte order mark.
    if (length >= 3 && std::memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) at_ += 3;
  }

  bool has_long_key(tarn_toml_fault *fault) {
    size_t dots = 0;
    while (at_ < end_) {
      char byte = *at_;
      if (byte == '#') {
        while (at_ < end_ && *at_ != '\n') step();
      } else if (byte == '"' || byte == '\'') {
        skip_string(byte);
      } else {
        if (byte == '\n' || byte == '=' || byte == ',' || byte == '[' || byte == '{') dots = 0;
        if (byte == '.' && ++dots >= TARN_TOML_PARTS) {
          set(fault, line_, column_, "a key of too many parts");
          return true;
        }
        step();
      }
    }
    return false;
  }

 private:
  const char *at_;
  const char *end_;
  uint32_t line_ = 1;
  uint32_t column_ = 1;

  void step() {
    unsigned char byte = static_cast<unsigned char>(*at_++);
    if (byte == '\n') {
      line_++;
      column_ = 1;
    } else if ((byte & 0xC0) != 0x80) {
      column_++;
    }
  }

  bool has_three(char quote) const {
    return end_ - at_ >= 3 && at_[0] == quote && at_[1] == quote && at_[2] == quote;
  }

  void skip_string(char quote) {
    bool is_long = has_three(quote);
    for (int count = is_long ? 3 : 1; count > 0; count--) step();
    while (at_ < end_) {
      if (*at_ == '\\' && quote == '"') {
        step();
        if (at_ < end_) step();
      } else if (is_long ? has_three(quote) : *at_ == quote) {
        for (int count = is_long ? 3 : 1; count > 0; count--) step();
        // Two more may belong to the text.
        for (int count = is_long ? 2 : 0; count > 0 && at_ < end_ && *at_ == quote; count--) step();
        return;
      } else if (*at_ == '\n' && !is_long) {
        return;
      } else {
        step();
      }
    }
  }
};

class Flattener {
 public:
  explicit Flattener(std::vector<tarn_toml_node> &nodes) : nodes_(nodes) {}

  void add(const toml::node &node, const toml::key *key) {
    size_t index = nodes_.size();
    nodes_.push_back(describe(node, key));
    if (const auto *table = node.as_table()) {
      for (auto &&[name, value] : *table) add(value, &name);
    } else if (const auto *array = node.as_array()) {
      for (auto &&value : *array) add(value, nullptr);
    }
    nodes_[index].below = static_cast<uint32_t>(nodes_.size() - index - 1);
  }

 private:
  std::vector<tarn_toml_node> &nodes_;

  static tarn_toml_node describe(const toml::node &node, const toml::key *key) {
    tarn_toml_node result{};
    result.line = node.source().begin.line;
    result.column = node.source().begin.column;
    if (key) {
      result.key = key->data();
      result.key_length = key->length();
      result.key_line = key->source().begin.line;
      result.key_column = key->source().begin.column;
    }
    switch (node.type()) {
      case toml::node_type::array: result.kind = TARN_TOML_ARRAY; break;
      case toml::node_type::string: {
        const std::string &text = node.as_string()->get();
        result.kind = TARN_TOML_STRING;
        result.text = text.data();
        result.text_length = text.size();
        break;
      }
      case toml::node_type::integer:
        result.kind = TARN_TOML_INTEGER;
        result.integer = node.as_integer()->get();
        break;
      case toml::node_type::floating_point:
        result.kind = TARN_TOML_FLOAT;
        result.real = node.as_floating_point()->get();
        break;
      case toml::node_type::boolean:
        result.kind = TARN_TOML_BOOLEAN;
        result.integer = node.as_boolean()->get();
        break;
      case toml::node_type::date: result.kind = TARN_TOML_DATE; break;
      case toml::node_type::time: result.kind = TARN_TOML_TIME; break;
      case toml::node_type::date_time: result.kind = TARN_TOML_DATE_TIME; break;
      default: result.kind = TARN_TOML_TABLE; break;
    }
    return result;
  }
};

tarn_toml_document *parse(std::string_view text, tarn_toml_fault *fault) {
  toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error &error = parsed.error();
    set(fault, error.source().begin.line, error.source().begin.column, error.description());
    return nullptr;
  }
  auto document = std::make_unique<tarn_toml_document>();
  document->root = std::move(parsed).table();
  Flattener(document->nodes).add(document->root, nullptr);
  return document.release();
}

}  // namespace

tarn_toml_document *tarn_toml_parse(const char *bytes, size_t length, tarn_toml_fault *fault) {
  try {
    if (length > TARN_TOML_MAXIMUM) {
      set(fault, 1, 1, "the file is longer than 1 MiB");
      return nullptr;
    }
    if (Scan(bytes, length).has_long_key(fault)) return nullptr;
    std::string_view text(bytes, length);
    try {
      return parse(text, fault);
    } catch (const broken_promise &) {
      // It does not say where.
      set(fault, 0, 0, "something else is expected behind a bracket");
      return nullptr;
    }
  } catch (...) {
    set(fault, 1, 1, "no memory is left to read the file");
    return nullptr;
  }
}

const tarn_toml_node *tarn_toml_nodes(const tarn_toml_document *document, size_t *count) {
  *count = document->nodes.size();
  return document->nodes.data();
}

void tarn_toml_free(tarn_toml_document *document) { delete document; }
