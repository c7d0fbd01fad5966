// SPDX-License-Identifier: Apache-2.0
//
// What a C compiler makes of spargejit/c.h, for tests in C++.
#pragma once

#include "spargejit/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Structs as C lays them out: {sizeof, offset of the last field} of
/// SpargejitTensor, SpargejitLists, SpargejitConfig, SpargejitOutputs,
/// SpargejitSaved, SpargejitGradients, SpargejitTuning, SpargejitCounters.
extern const size_t kLayoutsInC[8][2];

/// A config filled by C, with initialisers by name: method "topk", topK 0.5,
/// mask blocks of 64 x 32, causal.
SpargejitConfig configFromC(void);

#ifdef __cplusplus
}
#endif
