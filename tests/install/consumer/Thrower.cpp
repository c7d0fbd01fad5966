// SPDX-License-Identifier: Apache-2.0
//
// A function that lets a failure of spargejit out as an exception.
#include <spargejit/spargejit.h>

__attribute__((visibility("default"))) void throwInvalidArgument() {
  (void)spargejit::Tensor::allocate(spargejit::DataType::Float32, {-1}).value();
}
