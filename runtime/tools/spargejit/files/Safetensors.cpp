// SPDX-License-Identifier: Apache-2.0
//
// Safetensors.h: header validation, then plain reads and writes.
#include "runtime/tools/spargejit/files/Safetensors.h"

#include "runtime/tools/spargejit/files/FileAccess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace spargejit::files {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLengthBytes = 8;
/// The format's own limit on the header.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

/// Headers have three levels: file, tensor, shape.
constexpr int kMaxDepth = 8;

struct DtypeName {
  const char *name;
  std::uint64_t bytes;
  std::optional<DataType> type;
};

constexpr std::array<DtypeName, 14> kDtypes = {{
    {"F32", 4, DataType::Float32},
    {"BF16", 2, DataType::BFloat16},
    {"F16", 2, DataType::Float16},
    {"I32", 4, DataType::Int32},
    {"BOOL", 1, DataType::Bool},
    {"F64", 8, std::nullopt},
    {"I64", 8, std::nullopt},
    {"I16", 2, std::nullopt},
    {"I8", 1, std::nullopt},
    {"U64", 8, std::nullopt},
    {"U32", 4, std::nullopt},
    {"U16", 2, std::nullopt},
    {"U8", 1, std::nullopt},
    {"F8_E4M3", 1, std::nullopt},
}};

const DtypeName *findDtype(const std::string &name) {
  auto it =
      std::find_if(kDtypes.begin(), kDtypes.end(),
                   [&](const DtypeName &dtype) { return name == dtype.name; });
  return it == kDtypes.end() ? nullptr : &*it;
}

const char *dtypeNameOf(DataType type) {
  for (const DtypeName &dtype : kDtypes)
    if (dtype.type == type)
      return dtype.name;
  return "";
}

Status invalid(const std::string &path, const std::string &what) {
  return Status(
      ErrorCode::InvalidArgument,
      fmt::format("{}: not a valid safetensors file: {}", path, what));
}

/// A JSON value as short text for a message.
std::string shown(const Json &value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

Result<std::string> readHeader(const InputFile &file) {
  if (file.size() < kLengthBytes)
    return invalid(file.path(), fmt::format("expected at least 8 bytes, got {}",
                                            file.size()));
  std::array<unsigned char, kLengthBytes> raw{};
  if (Status status = file.readAt(0, raw.data(), raw.size()); !status)
    return status;
  std::uint64_t length = 0;
  for (std::size_t i = raw.size(); i-- > 0;)
    length = length << 8 | raw[i];
  std::uint64_t most = std::min(kMaxHeaderBytes, file.size() - kLengthBytes);
  if (length > most)
    return invalid(
        file.path(),
        fmt::format(
            "header length: expected at most {}, got {} (file of {} bytes)",
            most, length, file.size()));
  std::string header(static_cast<std::size_t>(length), '\0');
  if (Status status = file.readAt(kLengthBytes, header.data(), header.size());
      !status)
    return status;
  if (header.empty() || header.front() != '{')
    return invalid(file.path(), "the header does not start with '{'");
  return header;
}

/// Parses the header without exceptions. Names that occur twice are an error,
/// because which of the two would count is not defined; so is deep nesting,
/// which no header needs and recursive code does not survive.
Result<Json> parseHeader(const InputFile &file, const std::string &header) {
  std::set<std::string> names;
  std::string twice;
  bool tooDeep = false;
  auto watch = [&](int depth, Json::parse_event_t event, Json &parsed) {
    if (event == Json::parse_event_t::key && depth == 1)
      if (!names.insert(parsed.get<std::string>()).second)
        twice = parsed.get<std::string>();
    tooDeep = tooDeep || depth > kMaxDepth;
    return depth <= kMaxDepth;
  };
  Json json = Json::parse(header, watch, false);
  if (tooDeep)
    return invalid(file.path(), "the header is nested too deeply");
  if (json.is_discarded() || !json.is_object())
    return invalid(file.path(), "the header is not a JSON object");
  if (!twice.empty())
    return invalid(file.path(), fmt::format("two tensors are named {}", twice));
  return json;
}

/// A JSON array of non-negative integers, or nothing.
std::optional<std::vector<std::uint64_t>> unsignedArray(const Json &value) {
  if (!value.is_array())
    return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const Json &element : value) {
    if (!element.is_number_unsigned())
      return std::nullopt;
    numbers.push_back(element.get<std::uint64_t>());
  }
  return numbers;
}

/// Product of the shape and the element size; nothing on overflow of int64.
std::optional<std::uint64_t>
byteCountOf(const std::vector<std::uint64_t> &shape,
            std::uint64_t elementBytes) {
  constexpr std::uint64_t kMost = INT64_MAX;
  std::uint64_t total = elementBytes;
  bool empty = std::find(shape.begin(), shape.end(), 0U) != shape.end();
  for (std::uint64_t size : shape) {
    if (size > kMost || (!empty && total > kMost / size))
      return std::nullopt;
    total = empty ? 0 : total * size;
  }
  return total;
}

Result<SafetensorsEntry> readEntry(const InputFile &file,
                                   const std::string &name, const Json &value,
                                   std::uint64_t dataStart) {
  auto bad = [&](const std::string &what) {
    return invalid(file.path(), fmt::format("tensor {}: {}", name, what));
  };
  if (!value.is_object())
    return bad("expected an object, got " + shown(value));
  for (const char *key : {"dtype", "shape", "data_offsets"})
    if (!value.contains(key))
      return bad(fmt::format("'{}' is missing", key));

  const Json &dtypeJson = value["dtype"];
  const DtypeName *dtype =
      dtypeJson.is_string() ? findDtype(dtypeJson.get<std::string>()) : nullptr;
  if (!dtype)
    return bad("unknown dtype " + shown(dtypeJson));
  auto shape = unsignedArray(value["shape"]);
  if (!shape)
    return bad("shape: expected non-negative integers, got " +
               shown(value["shape"]));
  auto bytes = byteCountOf(*shape, dtype->bytes);
  if (!bytes)
    return bad("shape: too large: " + shown(value["shape"]));
  auto offsets = unsignedArray(value["data_offsets"]);
  if (!offsets || offsets->size() != 2 || (*offsets)[0] > (*offsets)[1])
    return bad("data_offsets: expected [begin, end], got " +
               shown(value["data_offsets"]));
  std::uint64_t begin = (*offsets)[0];
  std::uint64_t end = (*offsets)[1];
  if (end > file.size() - dataStart)
    return bad(fmt::format("the file is truncated: data ends at byte {}, "
                           "the file has {} bytes of data",
                           end, file.size() - dataStart));
  if (end - begin != *bytes)
    return bad(fmt::format("data_offsets: expected {} bytes for {} {}, got {}",
                           *bytes, dtype->name, shown(value["shape"]),
                           end - begin));

  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = dtype->name;
  entry.shape.assign(shape->begin(), shape->end());
  entry.firstByte = dataStart + begin;
  entry.byteCount = *bytes;
  return entry;
}

/// The format demands that the tensors cover the data exactly once.
Status checkCoverage(const InputFile &file,
                     const std::vector<SafetensorsEntry> &entries,
                     std::uint64_t dataStart) {
  std::vector<const SafetensorsEntry *> order;
  for (const SafetensorsEntry &entry : entries)
    order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
    return std::pair(a->firstByte, a->byteCount) <
           std::pair(b->firstByte, b->byteCount);
  });
  std::uint64_t at = dataStart;
  const SafetensorsEntry *before = nullptr;
  for (const SafetensorsEntry *entry : order) {
    if (entry->firstByte < at)
      return invalid(file.path(), fmt::format("tensors {} and {} overlap",
                                              before->name, entry->name));
    if (entry->firstByte > at)
      return invalid(
          file.path(),
          fmt::format("{} bytes before tensor {} belong to no tensor",
                      entry->firstByte - at, entry->name));
    at = entry->firstByte + entry->byteCount;
    before = entry;
  }
  if (at != file.size())
    return invalid(file.path(),
                   fmt::format("{} bytes at the end belong to no tensor",
                               file.size() - at));
  return Status();
}

} // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return file.status();
  Result<std::string> header = readHeader(*file);
  if (!header)
    return header.status();
  Result<Json> json = parseHeader(*file, *header);
  if (!json)
    return json.status();

  SafetensorsFile result;
  result.path_ = path;
  std::uint64_t dataStart = kLengthBytes + header->size();
  for (const auto &[name, value] : json->items()) {
    if (name == "__metadata__")
      continue;
    Result<SafetensorsEntry> entry = readEntry(*file, name, value, dataStart);
    if (!entry)
      return entry.status();
    result.entries_.push_back(*std::move(entry));
  }
  if (Status status = checkCoverage(*file, result.entries_, dataStart); !status)
    return status;
  return result;
}

const SafetensorsEntry *SafetensorsFile::find(const std::string &name) const {
  for (const SafetensorsEntry &entry : entries_)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

Result<Tensor> SafetensorsFile::read(const std::string &name) const {
  auto bad = [&](const std::string &what) {
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("{}: tensor {}: {}", path_, name, what));
  };
  const SafetensorsEntry *entry = find(name);
  if (!entry) {
    std::vector<std::string> names;
    for (const SafetensorsEntry &other : entries_)
      names.push_back(other.name);
    return bad(fmt::format(
        "not found, the file has: {}",
        names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "))));
  }
  std::optional<DataType> type = findDtype(entry->dtype)->type;
  if (!type)
    return bad("expected dtype F32, BF16, F16, I32 or BOOL, got " +
               entry->dtype);
  if (entry->shape.empty() || entry->shape.size() > TensorView::kMaxRank)
    return bad(fmt::format("expected 1 to {} dimensions, got {}",
                           TensorView::kMaxRank, entry->shape.size()));

  Result<Tensor> tensor = Tensor::allocate(*type, entry->shape);
  if (!tensor)
    return Status(tensor.status()).withContext(path_ + ": tensor " + name);
  Result<InputFile> file = InputFile::open(path_);
  if (!file)
    return file.status();
  if (Status status = file->readAt(entry->firstByte, tensor->data<void>(),
                                   static_cast<std::size_t>(entry->byteCount));
      !status)
    return status;
  return tensor;
}

Status writeSafetensors(
    const std::string &path,
    const std::vector<std::pair<std::string, TensorView>> &tensors,
    const std::vector<std::pair<std::string, std::string>> &metadata) {
  Json header = Json::object();
  for (const auto &[key, value] : metadata)
    header["__metadata__"][key] = value;
  std::uint64_t offset = 0;
  std::vector<std::uint64_t> byteCounts;
  for (const auto &[name, view] : tensors) {
    std::uint64_t bytes = static_cast<std::uint64_t>(view.elementCount()) *
                          dataTypeSize(view.dtype);
    std::vector<std::int64_t> shape(view.sizes.begin(),
                                    view.sizes.begin() + view.rank);
    header[name] = {{"dtype", dtypeNameOf(view.dtype)},
                    {"shape", shape},
                    {"data_offsets", {offset, offset + bytes}}};
    byteCounts.push_back(bytes);
    offset += bytes;
  }
  // Spaces up to a multiple of 8 align the data, as the format suggests.
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  std::array<unsigned char, kLengthBytes> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<unsigned char>(text.size() >> (8 * i));

  Result<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.status();
  if (Status status = file->write(length.data(), length.size()); !status)
    return status;
  if (Status status = file->write(text); !status)
    return status;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (Status status = file->write(tensors[i].second.data,
                                    static_cast<std::size_t>(byteCounts[i]));
        !status)
      return status;
  return file->commit();
}

} // namespace spargejit::files
