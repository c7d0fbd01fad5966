// SPDX-License-Identifier: Apache-2.0
//
// Finds the text of a method: built in, by name, or a file of the user's.
#pragma once

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/base/Hash.h"
#include "spargejit/status.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace spargejit::plan {

/// Most bytes of a text that a user names, of a method, a kernel or a stage.
/// What is larger is some other file.
inline constexpr std::int64_t kMostTextBytes = 1 << 20;

/// A method's text and where it came from.
struct MethodText {
  /// The name it was asked for by.
  std::string name;
  /// File name for diagnostics.
  std::string fileName;
  std::string text;
  /// Digest of `text`.
  Digest digest;
};

/// Thread-safe.
class MethodLibrary {
public:
  /// Serves "methods/<name>.mlir" and "backward/<name>.mlir" of `texts`, which
  /// must outlive the library.
  explicit MethodLibrary(const std::vector<kernels_ir::EmbeddedText> &texts =
                             kernels_ir::embeddedTexts());

  /// The method called `name`: a built-in name, or a path that ends in
  /// ".mlir". A file is read again when it has changed.
  /// Errors: InvalidArgument for an unknown name (lists those that exist),
  /// IoError for a file that cannot be read (has the path and the reason).
  Result<std::shared_ptr<const MethodText>> find(const std::string &name);

  enum class Backward : std::uint8_t {
    Dense, ///< "backward/dense": of methods whose attention reads all keys
    BlockSparse, ///< "backward/block_sparse": of those that read listed blocks
    BlockSparseKept, ///< "backward/block_sparse_kept": the same, keeping score
                     ///< gradients from one kernel for another
  };
  /// A backward pass, which find() knows as well. Internal for texts without
  /// it.
  Result<std::shared_ptr<const MethodText>> findBackward(Backward pass) const;

  /// The names of built-in methods, sorted.
  const std::vector<std::string> &names() const { return names_; }

private:
  /// Which file it was and when it was last written.
  struct FileStamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t bytes = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const FileStamp &, const FileStamp &) = default;
  };
  struct FileEntry {
    FileStamp stamp;
    std::shared_ptr<const MethodText> method;
  };
  using Found = Result<std::shared_ptr<const MethodText>>;

  Found findFile(const std::string &path);

  std::unordered_map<std::string, std::shared_ptr<const MethodText>> builtIn_;
  std::vector<std::string> names_;
  std::mutex filesMutex_;
  std::unordered_map<std::string, FileEntry> files_;
};

} // namespace spargejit::plan
