// SPDX-License-Identifier: Apache-2.0
//
// One entry of the disk cache or of a pack: a folder with manifest.json and,
// for a kernel, its code. Published whole, verified when read.
#pragma once

#include "runtime/cache/KernelKey.h"

#include <string>

namespace spargejit::cache {

struct StoredEntry {
  /// "kernel", "parameters" (those that a kernel text declares) or "plan" (of a
  /// method).
  std::string kind;
  /// What the entry is, as a JSON object; what it holds depends on the kind.
  std::string content;
  /// Name of the file with the code: "kernel.o", "kernel.ptx", "kernel.cubin";
  /// empty for an entry without code.
  std::string codeFile;
  std::string code;
};

inline constexpr const char *kManifestName = "manifest.json";

struct ReadEntry {
  enum class State {
    Found,
    Absent,     ///< there is no such folder
    Unreadable, ///< the file system failed; what is there may be in order
    Damaged     ///< not what was written, or not by this version
  };
  State state = State::Absent;
  /// Why it is Unreadable or Damaged.
  std::string reason;
  KernelKey key;
  StoredEntry entry;
};

/// Reads an entry and verifies it: the manifest's version, that the key is the
/// digest of its fields, that code and content are those that were written.
/// Without `withCode`, the code is neither read nor verified.
ReadEntry readEntry(const std::string &folder, bool withCode = true);

/// Writes the entry of `key` under `parent` and publishes it as the folder
/// parent/name by one rename. Another process that was faster is success.
/// Nothing is forced to the disk: that takes 10 to 20 ms an entry (measured on
/// ext4), of a first call that takes half a second, and what is read is
/// verified, so that an entry that a power failure cut short is a miss. Returns
/// an error number; then there is nothing new under `parent`.
int publishEntry(const std::string &parent, const std::string &name,
                 const KernelKey &key, const StoredEntry &entry);

/// Takes an entry away: renamed first, so that nobody sees it in part. Returns
/// an error number.
int removeEntry(const std::string &parent, const std::string &name);

/// What names of folders begin with that are being written or taken away.
inline constexpr const char *kUnfinishedPrefix = ".unfinished-";

} // namespace spargejit::cache
