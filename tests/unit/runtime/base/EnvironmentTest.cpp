// SPDX-License-Identifier: Apache-2.0
//
// What environment variables mean.
#include "runtime/base/Environment.h"

#include <gtest/gtest.h>

#include <map>

namespace spargejit {
namespace {

Result<Environment> read(const std::map<std::string, std::string> &variables) {
  return readEnvironment([&](const char *name) -> const char * {
    auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

TEST(Environment, HasDefaultsWhereNothingIsSet) {
  auto settings = read({});
  ASSERT_TRUE(settings.ok());
  EXPECT_TRUE(settings->jit);
  EXPECT_EQ(settings->dumpFolder, "");
  EXPECT_EQ(settings->ptxas, "");
  EXPECT_EQ(settings->nvrtc, "");
  EXPECT_EQ(settings->searchPath, "");
  EXPECT_EQ(settings->cudaDriver, "libcuda.so.1");
  EXPECT_TRUE(settings->logs(LogLevel::Debug));
}

TEST(Environment, KeepsKernelsInTheUsersCacheFolder) {
  EXPECT_EQ(read({})->cacheFolder, "");
  EXPECT_EQ(read({{"HOME", "/h/a"}})->cacheFolder, "/h/a/.cache/spargejit");
  EXPECT_EQ(read({{"HOME", "/h/a"}, {"XDG_CACHE_HOME", "/c"}})->cacheFolder,
            "/c/spargejit");
  // The XDG specification has relative paths ignored.
  EXPECT_EQ(read({{"HOME", "/h/a"}, {"XDG_CACHE_HOME", "c"}})->cacheFolder,
            "/h/a/.cache/spargejit");
  EXPECT_EQ(read({{"HOME", "h"}})->cacheFolder, "");
  EXPECT_EQ(
      read({{"HOME", "/h/a"}, {"SPARGEJIT_CACHE_DIR", "/mine"}})->cacheFolder,
      "/mine");
  EXPECT_EQ(read({{"HOME", "/h/a"},
                  {"SPARGEJIT_CACHE_DIR", "/mine"},
                  {"SPARGEJIT_CACHE", "off"}})
                ->cacheFolder,
            "");
  EXPECT_EQ(read({})->cacheMaxMegabytes, 1024);
  EXPECT_EQ(read({{"SPARGEJIT_CACHE_MAX_MB", "7"}})->cacheMaxMegabytes, 7);
  EXPECT_EQ(read({{"SPARGEJIT_PACK", "/a::b/c"}})->packFolders,
            (std::vector<std::string>{"/a", "b/c"}));
  EXPECT_EQ(read({{"SPARGEJIT_RECORDS", "/a.jsonl:b"}})->recordFiles,
            (std::vector<std::string>{"/a.jsonl", "b"}));
  EXPECT_TRUE(read({})->usesRecords);
  EXPECT_FALSE(read({{"SPARGEJIT_RECORDS", "off"}})->usesRecords);
  EXPECT_TRUE(read({{"SPARGEJIT_RECORDS", "off"}})->recordFiles.empty());
}

TEST(Environment, TakesAnEmptyVariableForUnset) {
  auto settings = read({{"SPARGEJIT_JIT", ""},
                        {"SPARGEJIT_LOG", ""},
                        {"SPARGEJIT_DUMP", ""},
                        {"SPARGEJIT_LIBCUDA", ""}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->cudaDriver, "libcuda.so.1");
  EXPECT_TRUE(settings->jit);
  EXPECT_TRUE(settings->logs(LogLevel::Debug));
}

TEST(Environment, ReadsEachVariable) {
  auto settings = read({{"SPARGEJIT_JIT", "off"},
                        {"SPARGEJIT_LOG", "warning"},
                        {"SPARGEJIT_DUMP", "/some/where"},
                        {"SPARGEJIT_PTXAS", "/else/where/ptxas"},
                        {"SPARGEJIT_NVRTC", "/else/where/libnvrtc.so"},
                        {"SPARGEJIT_LIBCUDA", "/there/libcuda.so"},
                        {"SPARGEJIT_RACECHECK", "on"},
                        {"PATH", "/bin:/usr/bin"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->jit);
  EXPECT_TRUE(settings->racecheck);
  EXPECT_EQ(settings->dumpFolder, "/some/where");
  EXPECT_EQ(settings->ptxas, "/else/where/ptxas");
  EXPECT_EQ(settings->nvrtc, "/else/where/libnvrtc.so");
  EXPECT_EQ(settings->cudaDriver, "/there/libcuda.so");
  EXPECT_EQ(settings->searchPath, "/bin:/usr/bin");
  EXPECT_TRUE(settings->logs(LogLevel::Warning));
  EXPECT_FALSE(settings->logs(LogLevel::Info));
  EXPECT_FALSE(read({{"SPARGEJIT_LOG", "off"}})->logs(LogLevel::Warning));
  EXPECT_TRUE(read({{"SPARGEJIT_LOG", "info"}})->logs(LogLevel::Info));
  EXPECT_FALSE(read({{"SPARGEJIT_LOG", "info"}})->logs(LogLevel::Debug));
}

TEST(Environment, RefusesOtherValues) {
  auto jit = read({{"SPARGEJIT_JIT", "maybe"}});
  ASSERT_FALSE(jit.ok());
  EXPECT_EQ(jit.status().code(), ErrorCode::InvalidArgument);
  EXPECT_EQ(jit.status().message(),
            "SPARGEJIT_JIT: expected on or off, got \"maybe\"");
  EXPECT_EQ(read({{"SPARGEJIT_RACECHECK", "1"}}).status().message(),
            "SPARGEJIT_RACECHECK: expected on or off, got \"1\"");
  auto log = read({{"SPARGEJIT_LOG", "loud"}});
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(read({{"SPARGEJIT_CACHE", "yes"}}).status().message(),
            "SPARGEJIT_CACHE: expected on or off, got \"yes\"");
  EXPECT_EQ(read({{"SPARGEJIT_CACHE_DIR", "a/b"}}).status().message(),
            "SPARGEJIT_CACHE_DIR: expected the absolute path of a folder, got "
            "\"a/b\"");
  for (const char *number : {"0", "-3", "1.5", "many", "99999999999999999999"})
    EXPECT_EQ(read({{"SPARGEJIT_CACHE_MAX_MB", number}}).status().message(),
              std::string("SPARGEJIT_CACHE_MAX_MB: expected a whole number "
                          "from 1 to 1073741824, got \"") +
                  number + "\"");
  EXPECT_EQ(log.status().message(), "SPARGEJIT_LOG: expected debug, info, "
                                    "warning or off, got \"loud\"");
}

} // namespace
} // namespace spargejit
