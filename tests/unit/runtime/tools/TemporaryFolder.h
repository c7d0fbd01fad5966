// SPDX-License-Identifier: Apache-2.0
//
// A folder of a test's own, and whole files in it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace spargejit::files {

class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = testing::TempDir() + "/spargejit-XXXXXX";
    const char *made = mkdtemp(pattern.data());
    EXPECT_NE(made, nullptr);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string file(const std::string &name) const { return path_ + "/" + name; }
  /// Number of files in it, to find those left behind.
  std::size_t fileCount() const {
    std::filesystem::directory_iterator first(path_);
    return static_cast<std::size_t>(
        std::distance(first, std::filesystem::directory_iterator()));
  }

private:
  std::string path_;
};

inline std::string readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void writeBytes(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace spargejit::files
