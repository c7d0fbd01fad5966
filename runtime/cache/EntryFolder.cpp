// SPDX-License-Identifier: Apache-2.0
//
// Entries on disk.
#include "runtime/cache/EntryFolder.h"

#include "runtime/cache/FileIo.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <unistd.h>

namespace spargejit::cache {

namespace {

using Json = nlohmann::ordered_json;

/// Raised with every change that an older reader would misunderstand.
constexpr std::int64_t kManifestVersion = 2;
/// Far above any kernel of ours, and small enough to be allocated.
constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;

/// Everything of the entry that a reader relies on.
Digest contentDigest(const KernelKey &key, const StoredEntry &entry) {
  return FieldHasher()
      .field(kManifestVersion)
      .field(key.hex())
      .field(entry.kind)
      .field(entry.content)
      .field(entry.codeFile)
      .field(entry.code)
      .digest();
}

std::string canonical(const Json &json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string manifestText(const KernelKey &key, const StoredEntry &entry) {
  Json fields = Json::object();
  for (const auto &[name, value] : key.fields())
    fields[name] = value;
  Json manifest = {{"manifest_version", kManifestVersion},
                   {"kind", entry.kind},
                   {"key", key.hex()},
                   {"key_fields", fields},
                   {"content", Json::parse(entry.content, nullptr, false)}};
  if (!entry.codeFile.empty()) {
    manifest["file"] = entry.codeFile;
    manifest["bytes"] = entry.code.size();
  }
  // The digest covers the content as it will be read back.
  StoredEntry asRead = entry;
  asRead.content = canonical(manifest["content"]);
  manifest["xxh3_128"] = contentDigest(key, asRead).hex();
  return manifest.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<std::string> textOf(const Json &object, const char *name) {
  auto it = object.find(name);
  if (it == object.end() || !it->is_string())
    return std::nullopt;
  return it->get<std::string>();
}

ReadEntry failed(ReadEntry::State state, std::string reason) {
  ReadEntry outcome;
  outcome.state = state;
  outcome.reason = std::move(reason);
  return outcome;
}

ReadEntry damaged(std::string reason) {
  return failed(ReadEntry::State::Damaged, std::move(reason));
}

ReadEntry notRead(const std::string &path, int error) {
  return failed(isAbsence(error) ? ReadEntry::State::Absent
                                 : ReadEntry::State::Unreadable,
                path + ": " + errorText(error));
}

/// The key that the manifest's fields make.
std::optional<KernelKey> keyIn(const Json &manifest) {
  auto fields = manifest.find("key_fields");
  if (fields == manifest.end() || !fields->is_object())
    return std::nullopt;
  KeyFields read;
  for (const auto &[name, value] : fields->items()) {
    if (!value.is_string())
      return std::nullopt;
    read.emplace_back(name, value.get<std::string>());
  }
  return KernelKey::ofFields(std::move(read));
}

/// A name that stays inside the entry's folder.
bool isFileName(const std::string &name) {
  return name.find('/') == std::string::npos && !name.starts_with('.');
}

/// Everything but the code, and the digest that all of it is to have.
ReadEntry parseManifest(const std::string &text, std::string &digest) {
  Json manifest = Json::parse(text, nullptr, false);
  if (!manifest.is_object())
    return damaged("the manifest is no JSON object");
  auto version = manifest.find("manifest_version");
  if (version == manifest.end() || !version->is_number_integer() ||
      *version != kManifestVersion)
    return damaged(
        fmt::format("expected a manifest of version {}", kManifestVersion));
  auto kind = textOf(manifest, "kind");
  auto key = textOf(manifest, "key");
  auto written = textOf(manifest, "xxh3_128");
  auto made = keyIn(manifest);
  auto content = manifest.find("content");
  if (!kind || !key || !written || !made || content == manifest.end() ||
      !content->is_object())
    return damaged("the manifest is incomplete");
  if (made->hex() != *key)
    return damaged("the manifest's key is not that of its fields");
  ReadEntry outcome;
  outcome.state = ReadEntry::State::Found;
  outcome.key = *std::move(made);
  outcome.entry.kind = *std::move(kind);
  outcome.entry.content = canonical(*content);
  outcome.entry.codeFile = textOf(manifest, "file").value_or("");
  if (!isFileName(outcome.entry.codeFile))
    return damaged("the manifest names a file elsewhere");
  digest = *std::move(written);
  return outcome;
}

} // namespace

ReadEntry readEntry(const std::string &folder, bool withCode) {
  const std::string manifestPath = folder + "/" + kManifestName;
  FileBytes manifest = readFile(manifestPath, kMostBytes);
  if (manifest.error != 0)
    return notRead(manifestPath, manifest.error);
  std::string digest;
  ReadEntry outcome = parseManifest(manifest.bytes, digest);
  if (outcome.state != ReadEntry::State::Found || !withCode)
    return outcome;
  if (!outcome.entry.codeFile.empty()) {
    const std::string codePath = folder + "/" + outcome.entry.codeFile;
    FileBytes code = readFile(codePath, kMostBytes);
    // An entry is published with its code; without it, it is being removed by
    // another process, or was damaged.
    if (code.error != 0)
      return isAbsence(code.error) ? damaged(outcome.entry.codeFile + " is "
                                                                      "missing")
                                   : notRead(codePath, code.error);
    outcome.entry.code = std::move(code.bytes);
  }
  if (contentDigest(outcome.key, outcome.entry).hex() != digest)
    return damaged("its bytes are not those that were written");
  return outcome;
}

int publishEntry(const std::string &parent, const std::string &name,
                 const KernelKey &key, const StoredEntry &entry) {
  std::string place = parent + "/" + kUnfinishedPrefix + "XXXXXX";
  if (!::mkdtemp(place.data()))
    return errno;
  int error = 0;
  if (!entry.codeFile.empty())
    error = writeNewFile(place + "/" + entry.codeFile, entry.code);
  if (error == 0)
    error = writeNewFile(place + "/" + kManifestName, manifestText(key, entry));
  if (error == 0) {
    if (::rename(place.c_str(), (parent + "/" + name).c_str()) == 0)
      return 0;
    error = errno;
  }
  removeFolder(place);
  // A folder with files in it cannot be renamed over: somebody was faster.
  return error == EEXIST || error == ENOTEMPTY ? 0 : error;
}

int removeEntry(const std::string &parent, const std::string &name) {
  std::string place = parent + "/" + kUnfinishedPrefix + "XXXXXX";
  if (!::mkdtemp(place.data()))
    return errno;
  // Over the empty folder that was just made, so that the name is ours.
  if (::rename((parent + "/" + name).c_str(), place.c_str()) != 0) {
    int error = errno;
    removeFolder(place);
    return error;
  }
  return removeFolder(place);
}

} // namespace spargejit::cache
