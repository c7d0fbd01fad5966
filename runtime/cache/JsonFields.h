// SPDX-License-Identifier: Apache-2.0
//
// Reads JSON objects without exceptions: fields of the expected kind or a note
// of the first that is not.
#pragma once

#include "spargejit/status.h"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace spargejit::cache {

/// A field that is absent or of another kind leaves its variable as it was.
class JsonFields {
public:
  using Json = nlohmann::ordered_json;

  explicit JsonFields(const std::string &text)
      : JsonFields(Json::parse(text, nullptr, false)) {}
  explicit JsonFields(Json object) : object_(std::move(object)) {
    if (!object_.is_object())
      fail("{}");
  }

  void text(const char *name, std::string &value) {
    if (const Json *field = find(name, &Json::is_string))
      value = field->get<std::string>();
  }
  template <typename Number>
  void number(const char *name, Number &value) {
    if (const Json *field = find(name, &Json::is_number_integer))
      value = field->get<Number>();
  }
  void real(const char *name, double &value) {
    if (const Json *field = find(name, &Json::is_number))
      value = field->get<double>();
  }
  void flag(const char *name, bool &value) {
    if (const Json *field = find(name, &Json::is_boolean))
      value = field->get<bool>();
  }
  /// The object in a field.
  JsonFields object(const char *name) {
    const Json *field = find(name, &Json::is_object);
    return JsonFields(field ? *field : Json::object());
  }
  /// The objects of an array in a field.
  std::vector<JsonFields> objects(const char *name) {
    std::vector<JsonFields> items;
    if (const Json *field = find(name, &Json::is_array))
      for (const Json &item : *field)
        items.emplace_back(item);
    return items;
  }
  bool has(const char *name) const {
    return object_.is_object() && object_.contains(name);
  }
  const Json &json() const { return object_; }

  void fail(const std::string &name) {
    if (failed_.empty())
      failed_ = name;
  }
  /// Takes over what went wrong in a part of this object.
  void also(const JsonFields &part) {
    if (!part.ok())
      fail(part.failed_);
  }
  bool ok() const { return failed_.empty(); }
  /// Internal: "<what>: field <name> is missing or of another kind".
  Status status(const std::string &what) const {
    return ok() ? Status()
                : Status(ErrorCode::Internal,
                         fmt::format("{}: field {} is missing or of another "
                                     "kind",
                                     what, failed_));
  }

private:
  const Json *find(const char *name, bool (Json::*isKind)() const noexcept) {
    if (object_.is_object())
      if (auto it = object_.find(name);
          it != object_.end() && ((*it).*isKind)())
        return &*it;
    fail(name);
    return nullptr;
  }

  Json object_;
  std::string failed_;
};

} // namespace spargejit::cache
