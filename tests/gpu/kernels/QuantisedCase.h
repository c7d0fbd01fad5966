// SPDX-License-Identifier: Apache-2.0
//
// What check_quantised's two files share: a problem on the host and the device,
// and the cases of the kernel that quantises.
#pragma once

#include "tests/gpu/kernels/QuantisedTrial.h"
#include "tests/gpu/kernels/VariantLaunch.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace spargejit::gpu_trial {

struct DeviceBuffers {
  CudaDriver &driver;
  std::vector<DevicePointer> all;
  explicit DeviceBuffers(CudaDriver &d) : driver(d) {}
  ~DeviceBuffers() {
    for (DevicePointer pointer : all)
      driver.release(pointer);
  }
  template <typename T>
  DevicePointer upload(const std::vector<T> &values) {
    std::size_t bytes = values.size() * sizeof(T);
    all.push_back(driver.allocate(bytes));
    driver.toDevice(all.back(), values.data(), bytes);
    return all.back();
  }
};

/// Inputs that several variants in a row are tried on.
struct Problem {
  std::string key;
  Trial trial;
  QuantisedTrial quantised;
};

/// The larger one, or infinity for NaN.
inline double larger(double worst, double error) {
  return std::isnan(error) ? std::numeric_limits<double>::infinity()
                           : std::max(worst, error);
}

/// A variant of quantise: all three tensors in one launch, against the host,
/// and timed; means beside them with pooled=1. Prints a line.
bool runQuantising(CudaDriver &driver, const Variant &variant,
                   const Problem &problem, const Settings &settings,
                   const std::string &line);

} // namespace spargejit::gpu_trial
