// SPDX-License-Identifier: Apache-2.0
//
// Artifact packs: folders of entries (EntryFolder.h) with an index, made by
// `spargejit compile` and only read here. A pack answers whatever code
// generator made it, so that a build without a compiler finds its kernels: an
// entry fits where kernel text, parameters and architecture are those wanted,
// and, for the host, this machine has the features it was compiled for.
#pragma once

#include "runtime/cache/EntryFolder.h"
#include "spargejit/status.h"

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace spargejit::cache {

inline constexpr const char *kPackIndexName = "pack.json";

/// Thread-safe.
class Pack {
public:
  /// Reads the index. IoError for a folder without one, or a damaged one.
  static Result<Pack> open(const std::string &folder);

  const std::string &folder() const { return folder_; }
  std::size_t size() const { return entries_.size(); }

  /// The entry that fits `key`; damaged ones are passed over with a warning.
  std::optional<StoredEntry> find(const KernelKey &key) const;

private:
  explicit Pack(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
  /// By requestOf(), folders' names.
  std::unordered_multimap<Digest, std::string, DigestHash> entries_;
};

/// What of a key a pack goes by: all but the code generator, the assembler and
/// the host's processor.
Digest requestOf(const KernelKey &key);

/// Writes the index of all entries in `folder`, in place of an earlier one.
/// IoError.
Status writePackIndex(const std::string &folder);

} // namespace spargejit::cache
