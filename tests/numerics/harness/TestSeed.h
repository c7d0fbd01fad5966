// SPDX-License-Identifier: Apache-2.0
//
// Where the random numbers of a run come from, and how large its tables are.
#pragma once

#include "tests/reference/Random.h"

#include <cstdint>
#include <string>

namespace spargejit::numerics {

/// The seed of this run: SPARGEJIT_TEST_SEED, or drawn afresh. Printed once at
/// the start and with every failure.
std::uint64_t testSeed();

/// A generator for the running test: follows from the run's seed, the test's
/// full name and `draw` alone, so one test repeats without the others.
reference::Random randomForTest(std::uint64_t draw = 0);

/// True with SPARGEJIT_TEST_REDUCED=1: tables keep some of their rows, for
/// builds that run several times slower.
bool isReduced();

/// `full`, or `reduced` in a reduced run.
std::int64_t repetitions(std::int64_t full, std::int64_t reduced);

/// The value of an environment variable, or "".
std::string environment(const char *name);

} // namespace spargejit::numerics
