// SPDX-License-Identifier: Apache-2.0
//
// Npy.h. The header is a Python dictionary in text with exactly the keys
// 'descr', 'fortran_order' and 'shape'; a small scanner reads just that.
#include "runtime/tools/spargejit/files/Npy.h"

#include "runtime/tools/spargejit/files/FileAccess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace spargejit::files {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
/// Headers of arrays of rank 4 take some 130 bytes; anything near this is not
/// one of ours to read.
constexpr std::uint64_t kMaxHeaderBytes = 65536;

Status invalid(const std::string &path, const std::string &what) {
  return Status(ErrorCode::InvalidArgument,
                fmt::format("{}: not a valid npy file: {}", path, what));
}

struct Header {
  std::string descr;
  bool fortranOrder = false;
  std::vector<std::int64_t> shape;
};

/// Reads the dictionary from left to right; every method says whether it
/// found what it is named after.
class DictionaryScanner {
public:
  explicit DictionaryScanner(std::string_view text) : rest_(text) {}

  bool symbol(char wanted) {
    skipSpace();
    if (rest_.empty() || rest_.front() != wanted)
      return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool atEnd() {
    skipSpace();
    return rest_.empty();
  }
  bool quoted(std::string &into) {
    skipSpace();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"'))
      return false;
    std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos)
      return false;
    into = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool boolean(bool &into) {
    skipSpace();
    for (auto [word, value] :
         {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (rest_.substr(0, word.size()) == word) {
        rest_.remove_prefix(word.size());
        into = value;
        return true;
      }
    return false;
  }
  bool integer(std::int64_t &into) {
    skipSpace();
    auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), into);
    if (error != std::errc() || into < 0)
      return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool tuple(std::vector<std::int64_t> &into) {
    if (!symbol('('))
      return false;
    into.clear();
    while (!symbol(')')) {
      std::int64_t size = 0;
      if (!integer(size))
        return false;
      into.push_back(size);
      if (!symbol(',')) // "(3,)" ends with a comma, "(3, 4)" does not
        return symbol(')');
    }
    return true;
  }

private:
  void skipSpace() {
    std::size_t first = rest_.find_first_not_of(" \t\n");
    rest_.remove_prefix(std::min(first, rest_.size()));
  }
  std::string_view rest_;
};

std::optional<Header> scanHeader(std::string_view text) {
  DictionaryScanner scanner(text);
  Header header;
  bool seenDescr = false;
  bool seenOrder = false;
  bool seenShape = false;
  if (!scanner.symbol('{'))
    return std::nullopt;
  while (!scanner.symbol('}')) {
    std::string key;
    if (!scanner.quoted(key) || !scanner.symbol(':'))
      return std::nullopt;
    bool *seen = key == "descr"           ? &seenDescr
                 : key == "fortran_order" ? &seenOrder
                 : key == "shape"         ? &seenShape
                                          : nullptr;
    if (!seen || *seen)
      return std::nullopt;
    *seen = key == "descr"           ? scanner.quoted(header.descr)
            : key == "fortran_order" ? scanner.boolean(header.fortranOrder)
                                     : scanner.tuple(header.shape);
    if (!*seen)
      return std::nullopt;
    if (!scanner.symbol(',')) {
      if (!scanner.symbol('}'))
        return std::nullopt;
      break;
    }
  }
  if (!seenDescr || !seenOrder || !seenShape || !scanner.atEnd())
    return std::nullopt;
  return header;
}

std::optional<DataType> typeOfDescr(const std::string &descr) {
  if (descr == "<f4")
    return DataType::Float32;
  if (descr == "<f2")
    return DataType::Float16;
  if (descr == "|b1")
    return DataType::Bool;
  return std::nullopt;
}

/// The header text; sets `dataStart` to where the elements begin.
Result<std::string> readHeaderText(const InputFile &file,
                                   std::uint64_t &dataStart) {
  std::array<unsigned char, 12> start{};
  if (file.size() < start.size())
    return invalid(
        file.path(),
        fmt::format("expected at least 12 bytes, got {}", file.size()));
  if (Status status = file.readAt(0, start.data(), start.size()); !status)
    return status;
  if (std::memcmp(start.data(), kMagic.data(), kMagic.size()) != 0)
    return invalid(file.path(), "it does not start with \\x93NUMPY");
  unsigned major = start[6];
  if (major != 1 && major != 2)
    return invalid(file.path(),
                   fmt::format("expected version 1 or 2, got {}.{}", major,
                               unsigned{start[7]}));
  std::uint64_t length = start[8] | unsigned{start[9]} << 8;
  std::uint64_t headerStart = 10;
  if (major == 2) {
    length |= std::uint64_t{start[10]} << 16 | std::uint64_t{start[11]} << 24;
    headerStart = 12;
  }
  std::uint64_t most = std::min(kMaxHeaderBytes, file.size() - headerStart);
  if (length > most)
    return invalid(file.path(),
                   fmt::format("header length: expected at most {}, got {}",
                               most, length));
  dataStart = headerStart + length;
  std::string text(static_cast<std::size_t>(length), '\0');
  if (Status status = file.readAt(headerStart, text.data(), text.size());
      !status)
    return status;
  return text;
}

Status checkLength(const InputFile &file, const Header &header, DataType type,
                   std::uint64_t dataStart) {
  std::uint64_t available = file.size() - dataStart;
  std::uint64_t wanted = dataTypeSize(type);
  bool fits = true;
  for (std::int64_t size : header.shape) {
    std::uint64_t factor = static_cast<std::uint64_t>(size);
    fits = fits && (factor == 0 || wanted <= UINT64_MAX / factor);
    wanted *= factor;
  }
  if (fits && wanted == available)
    return Status();
  return invalid(
      file.path(),
      fmt::format("{}: expected {} bytes of data for shape ({}), got {}",
                  !fits || available < wanted ? "truncated" : "too long",
                  fits ? fmt::format("{}", wanted) : "more than 2^64",
                  fmt::join(header.shape, ", "), available));
}

} // namespace

Result<Tensor> readNpy(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file)
    return file.status();
  std::uint64_t dataStart = 0;
  Result<std::string> text = readHeaderText(*file, dataStart);
  if (!text)
    return text.status();
  std::optional<Header> header = scanHeader(*text);
  if (!header)
    return invalid(path, "expected a header {'descr': ..., 'fortran_order': "
                         "..., 'shape': (...)}");
  std::optional<DataType> type = typeOfDescr(header->descr);
  if (!type)
    return invalid(path, fmt::format("expected element type <f4, <f2 or |b1 "
                                     "(little-endian), got {}",
                                     header->descr));
  if (header->fortranOrder)
    return invalid(path, "expected C order, got Fortran order");
  if (header->shape.empty() || header->shape.size() > TensorView::kMaxRank)
    return invalid(path,
                   fmt::format("expected 1 to {} dimensions, got {}",
                               TensorView::kMaxRank, header->shape.size()));
  if (Status status = checkLength(*file, *header, *type, dataStart); !status)
    return status;

  Result<Tensor> tensor = Tensor::allocate(*type, header->shape);
  if (!tensor)
    return Status(tensor.status()).withContext(path);
  if (Status status =
          file->readAt(dataStart, tensor->data<void>(),
                       static_cast<std::size_t>(file->size() - dataStart));
      !status)
    return status;
  return tensor;
}

Status writeNpy(const std::string &path, const TensorView &tensor) {
  const char *descr = tensor.dtype == DataType::Float32   ? "<f4"
                      : tensor.dtype == DataType::Float16 ? "<f2"
                      : tensor.dtype == DataType::Bool    ? "|b1"
                                                          : nullptr;
  if (!descr)
    return Status(ErrorCode::InvalidArgument,
                  fmt::format("{}: npy has no {}: use a .safetensors file",
                              path, dataTypeName(tensor.dtype)));
  std::string shape;
  for (int i = 0; i < tensor.rank; ++i)
    shape += fmt::format("{},{}", tensor.sizes[static_cast<std::size_t>(i)],
                         i + 1 < tensor.rank ? " " : "");
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                  descr, shape);
  // Data begins at a multiple of 64: magic, version and length take 10 bytes,
  // the line feed that ends the header takes one.
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';

  std::string start(kMagic);
  start += {'\x01', '\0', static_cast<char>(header.size() & 0xff),
            static_cast<char>(header.size() >> 8)};
  Result<OutputFile> file = OutputFile::create(path);
  if (!file)
    return file.status();
  for (const std::string &part : {start, header})
    if (Status status = file->write(part); !status)
      return status;
  if (Status status = file->write(
          tensor.data, static_cast<std::size_t>(tensor.elementCount()) *
                           dataTypeSize(tensor.dtype));
      !status)
    return status;
  return file->commit();
}

} // namespace spargejit::files
