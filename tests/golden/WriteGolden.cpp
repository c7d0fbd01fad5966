// SPDX-License-Identifier: Apache-2.0
//
// spargejit_write_golden FILE: computes "expected" of every case of FILE by the
// float64 reference and writes the file anew. To be run when a case is added;
// an old case that changes needs a reason in the commit.
#include "tests/golden/GoldenCase.h"

#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>

int main(int argc, char **argv) {
  using namespace spargejit::golden;
  if (argc != 2) {
    std::fprintf(stderr, "usage: spargejit_write_golden FILE\n");
    return 2;
  }
  try {
    // Ordered, so that a rewritten file differs only where values do.
    nlohmann::ordered_json written = nlohmann::ordered_json::array();
    for (const nlohmann::json &entry : readCases(argv[1])) {
      const auto which = entry.at("case").get<GoldenCase>();
      const GoldenInputs inputs(which);
      const nlohmann::json expected = computeByReference(which, inputs);
      written.push_back({{"case", entry.at("case")}, {"expected", expected}});
    }
    std::ofstream(argv[1]) << written.dump(2) << "\n";
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
