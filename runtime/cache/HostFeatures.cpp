// SPDX-License-Identifier: Apache-2.0
//
// Processor features by the flags in /proc/cpuinfo, which say what the kernel
// lets programs use.
#include "runtime/cache/HostFeatures.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace spargejit::cache {

namespace {

/// LLVM's name and Linux's (arch/x86/include/asm/cpufeatures.h), where they
/// differ by more than '.' and '-' in place of '_'.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"64bit", "lm"},
    {"bmi", "bmi1"},
    {"crc32", "sse4_2"},
    {"lzcnt", "abm"},
    {"pclmul", "pclmulqdq"},
    {"prfchw", "3dnowprefetch"},
    {"rdrnd", "rdrand"},
    {"sahf", "lahf_lm"},
    {"sha", "sha_ni"},
    {"sse3", "pni"},
    {"x87", "fpu"},
    {"avx512vnni", "avx512_vnni"},
    {"avx512bf16", "avx512_bf16"},
    {"avx512vbmi2", "avx512_vbmi2"},
    {"avx512bitalg", "avx512_bitalg"},
    {"avx512vpopcntdq", "avx512_vpopcntdq"},
    {"avx512fp16", "avx512_fp16"},
    {"avx512vp2intersect", "avx512_vp2intersect"},
    {"avxvnni", "avx_vnni"},
    {"evex512", "avx512f"},
};

/// Instructions of systems, which no kernel of ours has in it. Linux shows some
/// of them only where it uses them itself.
constexpr std::string_view kUnused[] = {
    "cldemote", "clflushopt", "clwb",   "clzero",   "enqcmd",    "fsgsbase",
    "hreset",   "invpcid",    "kl",     "lwp",      "mwaitx",    "pku",
    "ptwrite",  "rdpid",      "rdpru",  "rtm",      "serialize", "sgx",
    "shstk",    "tsxldtrk",   "uintr",  "usermsr",  "waitpkg",   "wbnoinvd",
    "widekl",   "xsave",      "xsavec", "xsaveopt", "xsaves"};

bool isUnused(std::string_view feature) {
  return std::find(std::begin(kUnused), std::end(kUnused), feature) !=
         std::end(kUnused);
}

std::string linuxName(std::string_view feature) {
  for (const auto &[llvm, name] : kNames)
    if (llvm == feature)
      return std::string(name);
  std::string name(feature);
  for (char &letter : name)
    if (letter == '.' || letter == '-')
      letter = '_';
  return name;
}

const std::vector<std::string> &hostFlags() {
  static const std::vector<std::string> kFlags = [] {
    std::vector<std::string> flags;
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; flags.empty() && std::getline(file, line);) {
      if (!line.starts_with("flags") && !line.starts_with("Features"))
        continue;
      std::istringstream words(line.substr(line.find(':') + 1));
      for (std::string word; words >> word;)
        flags.push_back(word);
    }
    return flags;
  }();
  return kFlags;
}

} // namespace

std::vector<std::string>
missingFeatures(std::string_view features,
                const std::vector<std::string> &flags) {
  std::vector<std::string> missing;
  while (!features.empty()) {
    std::size_t comma = std::min(features.find(','), features.size());
    std::string_view feature = features.substr(0, comma);
    features.remove_prefix(std::min(comma + 1, features.size()));
    if (!feature.starts_with('+'))
      continue;
    feature.remove_prefix(1);
    if (!isUnused(feature) && std::find(flags.begin(), flags.end(),
                                        linuxName(feature)) == flags.end())
      missing.emplace_back(feature);
  }
  return missing;
}

std::vector<std::string> missingHostFeatures(std::string_view features) {
  return missingFeatures(features, hostFlags());
}

} // namespace spargejit::cache
