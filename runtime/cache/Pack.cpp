// SPDX-License-Identifier: Apache-2.0
//
// Packs.
#include "runtime/cache/Pack.h"

#include "runtime/base/Log.h"
#include "runtime/cache/FileIo.h"
#include "runtime/cache/HostFeatures.h"
#include "runtime/cache/JsonFields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <unistd.h>

namespace spargejit::cache {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kPackVersion = 1;
constexpr std::int64_t kMostIndexBytes = std::int64_t{64} << 20;
constexpr std::array<std::string_view, 4> kUnaskedFields = {
    "generator", "cpu", "features", "assembler"};

std::optional<Digest> digestFrom(std::string_view hex) {
  Digest digest;
  constexpr std::size_t kHalf = 16;
  if (hex.size() != 2 * kHalf)
    return std::nullopt;
  for (auto [number, text] : {std::pair(&digest.high, hex.substr(0, kHalf)),
                              std::pair(&digest.low, hex.substr(kHalf))}) {
    auto [end, failure] =
        std::from_chars(text.data(), text.data() + text.size(), *number, 16);
    if (failure != std::errc() || end != text.data() + text.size())
      return std::nullopt;
  }
  return digest;
}

/// What an entry was compiled for on the host; empty for everything else.
std::string hostFeaturesOf(const StoredEntry &entry) {
  JsonFields content(entry.content);
  if (!content.has("target"))
    return "";
  std::string architecture;
  std::string features;
  JsonFields target = content.object("target");
  target.text("architecture", architecture);
  target.text("features", features);
  return architecture == "host" ? features : "";
}

Status ioError(const std::string &path, const std::string &what) {
  return Status(ErrorCode::IoError, path + ": " + what);
}

} // namespace

Digest requestOf(const KernelKey &key) {
  KeyFields asked;
  for (const auto &field : key.fields())
    if (std::find(kUnaskedFields.begin(), kUnaskedFields.end(), field.first) ==
        kUnaskedFields.end())
      asked.push_back(field);
  return KernelKey::ofFields(std::move(asked)).digest();
}

Result<Pack> Pack::open(const std::string &folder) {
  const std::string path = folder + "/" + kPackIndexName;
  FileBytes file = readFile(path, kMostIndexBytes);
  if (file.error != 0)
    return ioError(path, errorText(file.error));
  JsonFields index(file.bytes);
  std::int64_t packVersion = 0;
  index.number("pack_version", packVersion);
  if (!index.ok() || packVersion != kPackVersion)
    return ioError(path, fmt::format("expected the index of a pack of version "
                                     "{}",
                                     kPackVersion));
  Pack pack(folder);
  for (JsonFields &item : index.objects("entries")) {
    std::string name;
    std::string request;
    item.text("folder", name);
    item.text("request", request);
    auto digest = digestFrom(request);
    if (!item.ok() || !digest || name.find('/') != std::string::npos)
      return ioError(path, "an entry of the index is damaged");
    pack.entries_.emplace(*digest, std::move(name));
  }
  return pack;
}

std::optional<StoredEntry> Pack::find(const KernelKey &key) const {
  auto [first, last] = entries_.equal_range(requestOf(key));
  std::optional<StoredEntry> best;
  std::size_t bestFeatures = 0;
  for (auto it = first; it != last; ++it) {
    const std::string place = folder_ + "/" + it->second;
    ReadEntry read = readEntry(place);
    if (read.state == ReadEntry::State::Found &&
        requestOf(read.key) != it->first) {
      read.state = ReadEntry::State::Damaged;
      read.reason = "it is not what the index says";
    }
    if (read.state != ReadEntry::State::Found) {
      warnOnce(fmt::format("passed over an entry of the pack, {}: {}", place,
                           read.reason));
      continue;
    }
    const std::string features = hostFeaturesOf(read.entry);
    if (!missingHostFeatures(features).empty())
      continue;
    // The one that makes the most of this machine.
    auto used = static_cast<std::size_t>(
        std::count(features.begin(), features.end(), '+'));
    if (!best || used > bestFeatures) {
      best = std::move(read.entry);
      bestFeatures = used;
    }
  }
  return best;
}

Status writePackIndex(const std::string &folder) {
  int error = 0;
  Json entries = Json::array();
  for (const std::string &name : listFolder(folder, &error)) {
    const std::string place = folder + "/" + name;
    if (name == kPackIndexName ||
        stateOf(place + "/" + kManifestName).bytes < 0)
      continue;
    ReadEntry read = readEntry(place);
    if (read.state != ReadEntry::State::Found)
      return ioError(place, read.reason);
    entries.push_back({{"folder", name},
                       {"kind", read.entry.kind},
                       {"request", requestOf(read.key).hex()}});
  }
  if (error != 0)
    return ioError(folder, errorText(error));
  Json index = {{"pack_version", kPackVersion}, {"entries", entries}};
  // Beside it first: another process may be reading the old one.
  const std::string path = folder + "/" + kPackIndexName;
  const std::string next = fmt::format("{}/.{}-{}", folder, kPackIndexName,
                                       static_cast<long>(::getpid()));
  error = writeNewFile(next, index.dump(1) + "\n");
  if (error == 0 && std::rename(next.c_str(), path.c_str()) != 0)
    error = errno;
  if (error == 0)
    return Status();
  (void)::unlink(next.c_str());
  return ioError(path, errorText(error));
}

} // namespace spargejit::cache
