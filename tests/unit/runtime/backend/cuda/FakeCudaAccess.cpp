// SPDX-License-Identifier: Apache-2.0
//
// The tests' way to the fake driver's state: the library is the one that
// Driver::open() opens, so its state is shared.
#include "tests/unit/runtime/backend/cuda/FakeCuda.h"

#include <cstdlib>
#include <dlfcn.h>

namespace spargejit::unit {

namespace {

template <typename Function>
Function *symbolOf(const char *name) {
  void *library = dlopen(fakeCudaPath().c_str(), RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, name) : nullptr;
  if (!symbol)
    std::abort(); // the build did not make the library
  return reinterpret_cast<Function *>(symbol);
}

} // namespace

// The build defines both paths.
std::string fakeCudaPath() { return SPARGEJIT_FAKE_CUDA; }
std::string oldFakeCudaPath() { return SPARGEJIT_OLD_FAKE_CUDA; }

FakeCuda &fakeCuda() {
  static FakeCuda &theState = *symbolOf<FakeCuda *()>("fakeCudaState")();
  return theState;
}

cuda::ContextHandle primaryContext(int device) {
  return static_cast<cuda::ContextHandle>(
      symbolOf<void *(int)>("fakeCudaContext")(device));
}

cuda::ContextHandle foreignContext() { return primaryContext(3); }

} // namespace spargejit::unit
