// SPDX-License-Identifier: Apache-2.0
//
// Seeds, and the main function of the numerics programs, which prints them.
#include "tests/numerics/harness/TestSeed.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <random>

namespace spargejit::numerics {
namespace {

/// FNV-1a, 64 bits.
std::uint64_t hashOf(const std::string &text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

class SeedPrinter : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo &info) override {
    if (info.result()->Failed())
      std::printf("to repeat: SPARGEJIT_TEST_SEED=%llu --gtest_filter=%s.%s\n",
                  static_cast<unsigned long long>(testSeed()),
                  info.test_suite_name(), info.name());
  }
};

} // namespace

std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::uint64_t testSeed() {
  static const std::uint64_t kSeed = [] {
    const std::string given = environment("SPARGEJIT_TEST_SEED");
    if (!given.empty())
      return static_cast<std::uint64_t>(
          std::strtoull(given.c_str(), nullptr, 10));
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
  }();
  return kSeed;
}

reference::Random randomForTest(std::uint64_t draw) {
  const auto *info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::to_string(draw);
  if (info != nullptr)
    name += std::string(info->test_suite_name()) + "." + info->name();
  return reference::Random(testSeed() ^ hashOf(name));
}

bool isReduced() {
  static const bool kReduced = environment("SPARGEJIT_TEST_REDUCED") == "1";
  return kReduced;
}

std::int64_t repetitions(std::int64_t full, std::int64_t reduced) {
  return isReduced() ? reduced : full;
}

} // namespace spargejit::numerics

int main(int argc, char **argv) {
  // Tests count compilations, so that they begin with none on disk.
  setenv("SPARGEJIT_CACHE", "off", /*replace=*/0);
  testing::InitGoogleTest(&argc, argv);
  std::printf("seed %llu%s\n",
              static_cast<unsigned long long>(spargejit::numerics::testSeed()),
              spargejit::numerics::isReduced() ? ", reduced tables" : "");
  testing::UnitTest::GetInstance()->listeners().Append(
      new spargejit::numerics::SeedPrinter);
  return RUN_ALL_TESTS();
}
