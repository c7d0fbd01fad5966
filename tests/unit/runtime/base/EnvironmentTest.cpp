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
                        {"PATH", "/bin:/usr/bin"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings->jit);
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
  auto log = read({{"SPARGEJIT_LOG", "loud"}});
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.status().message(), "SPARGEJIT_LOG: expected debug, info, "
                                    "warning or off, got \"loud\"");
}

} // namespace
} // namespace spargejit
