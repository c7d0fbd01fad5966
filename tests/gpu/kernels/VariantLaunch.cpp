// SPDX-License-Identifier: Apache-2.0
//
// Loading, launching and timing kernel variants.
#include "tests/gpu/kernels/VariantLaunch.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

namespace spargejit::gpu_trial {

namespace {

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// "NAME MEDIAN ms (least) RATE TFLOP/s (best)" of these launches.
std::string summarise(const char *name, std::vector<float> times,
                      double operations) {
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2], least = times.front();
  char text[160];
  std::snprintf(text, sizeof text,
                " %s %.4f ms (least %.4f) %.1f TFLOP/s (best %.1f)", name,
                median, least, operations / median * 1e-9,
                operations / least * 1e-9);
  return text;
}

[[noreturn]] void fail(const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

const Argument &find(const Arguments &arguments, const std::string &name) {
  auto found = arguments.tensors.find(name);
  if (found == arguments.tensors.end())
    fail("no argument '" + name + "'");
  return found->second;
}

TensorMapRequest mapRequest(const Argument &tensor, const nlohmann::json &map) {
  auto size = [&](std::size_t i) {
    return static_cast<std::uint64_t>(tensor.sizes[i]);
  };
  auto bytes = [&](std::size_t i) {
    return static_cast<std::uint64_t>(tensor.strides[i] * tensor.elementBytes);
  };
  TensorMapRequest request;
  request.data = tensor.data;
  request.isBytes = tensor.elementBytes == 1;
  request.sizes = {size(3), size(2), size(1), size(0)};
  request.strideBytes = {bytes(2), bytes(1), bytes(0)};
  request.box = {map["box_columns"].get<std::uint32_t>(),
                 map["box_rows"].get<std::uint32_t>(), 1, 1};
  request.swizzleBytes = map["swizzle_bytes"];
  return request;
}

} // namespace

Variant loadVariant(CudaDriver &driver, const std::string &folder,
                    const Settings &settings) {
  Variant variant;
  std::string name = settings.text("variant", "");
  variant.description =
      nlohmann::json::parse(readFile(folder + "/" + name + ".json"));
  for (auto &[key, value] : variant.description["parameters"].items())
    variant.parameters.words[key] =
        value.is_string() ? value.get<std::string>() : value.dump();
  std::string image =
      readFile(folder + "/" + name +
               (settings.text("image", "cubin") == "ptx" ? ".ptx" : ".cubin"));
  if (image.empty()) {
    std::fprintf(stderr, "no image of variant '%s'\n", name.c_str());
    std::exit(1);
  }
  variant.function =
      driver.load(image, variant.description["entry"],
                  variant.description["shared_bytes"], variant.log);
  return variant;
}

Argument describe(DevicePointer base, const HostTensor &tensor) {
  return {base + static_cast<DevicePointer>(tensor.first) * 2,
          {tensor.batch, tensor.heads, tensor.length, tensor.dim},
          {tensor.strideBatch, tensor.strideHead, tensor.strideRow, 1},
          /*elementBytes=*/2};
}

Argument describePacked(DevicePointer data, std::vector<std::int64_t> sizes,
                        int elementBytes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size() - 1; i > 0; --i)
    strides[i - 1] = strides[i] * sizes[i];
  return {data, std::move(sizes), std::move(strides), elementBytes};
}

void Launch::run(void *self) {
  auto *launch = static_cast<Launch *>(self);
  launch->driver->launch(launch->function, launch->ctas, launch->threads,
                         launch->sharedBytes, launch->parameters,
                         launch->isEarly);
  if (launch->next)
    run(launch->next);
}

void prepareLaunch(Launch &launch, CudaDriver &driver, const Variant &variant,
                   const Arguments &arguments, const Settings &settings) {
  const nlohmann::json &info = variant.description;
  launch.driver = &driver;
  launch.function = variant.function;
  launch.threads = info["threads"];
  launch.keeps = variant.parameters.number("has_places", 0) != 0;
  launch.sharedBytes = info["shared_bytes"];
  std::vector<std::string> names = info["arguments"];
  for (const std::string &name : names) {
    if (auto scalar = arguments.scalars.find(name);
        scalar != arguments.scalars.end()) {
      std::int64_t slot = 0;
      std::memcpy(&slot, &scalar->second, 4);
      launch.slots.push_back(slot);
      continue;
    }
    if (auto index = arguments.indices.find(name);
        index != arguments.indices.end()) {
      launch.slots.push_back(index->second);
      continue;
    }
    const Argument &tensor = find(arguments, name);
    launch.slots.push_back(static_cast<std::int64_t>(tensor.data));
    for (const auto *part : {&tensor.sizes, &tensor.strides})
      launch.slots.insert(launch.slots.end(), part->begin(), part->end());
  }
  const Argument &grid =
      find(arguments, names[info["grid_argument"].get<std::size_t>()]);
  std::int64_t tile = info["grid_tile"];
  std::int64_t ctas =
      grid.sizes[0] * grid.sizes[1] * ((grid.sizes[2] + tile - 1) / tile);
  if (info["persistent"]) {
    std::int64_t resident = driver.residentCtas(launch.function, launch.threads,
                                                launch.sharedBytes);
    // A kernel of roles names no number.
    if (const std::int64_t most = info["ctas_per_multiprocessor"]; most > 0)
      resident = std::min(resident, most);
    ctas = std::min(
        settings.number("ctas", driver.multiprocessors() * resident), ctas);
  }
  launch.ctas = static_cast<unsigned>(ctas);
  if (info.contains("tensor_maps"))
    for (const auto &map : info["tensor_maps"]) {
      TensorMapRequest request = mapRequest(
          find(arguments, names[map["argument"].get<std::size_t>()]), map);
      request.isBfloat16 =
          variant.parameters.text("elem", "bfloat16") == "bfloat16";
      launch.maps.push_back(driver.encode(request));
    }
  launch.parameters = {launch.slots.data()};
  for (TensorMapData &map : launch.maps)
    launch.parameters.push_back(&map);
}

std::string timeLaunches(Launch &launch, double operations, int count,
                         int sustained) {
  auto time = [&](int launches) {
    return launch.driver->time(launches, Launch::run, &launch);
  };
  const float estimate = time(4).back();
  const int burst = std::clamp(static_cast<int>(4 / estimate), 4, 20);
  std::vector<float> times;
  while (static_cast<int>(times.size()) < count) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::vector<float> some = time(burst);
    times.insert(times.end(), some.begin(), some.end());
  }
  std::string text = summarise("bursts", times, operations);
  if (sustained == 0)
    return text;
  time(static_cast<int>(static_cast<float>(sustained) / estimate) + 1);
  return text + summarise("sustained", time(count), operations);
}

std::vector<std::string> timeInTurns(const std::vector<Launch *> &launches,
                                     double operations, int count,
                                     int sustained) {
  auto time = [](Launch *launch, int times) {
    return launch->driver->time(times, Launch::run, launch);
  };
  std::vector<float> estimates;
  for (Launch *launch : launches)
    estimates.push_back(time(launch, 4).back());
  std::vector<std::vector<float>> times(launches.size());
  while (static_cast<int>(times.back().size()) < count)
    for (std::size_t i = 0; i < launches.size(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const int burst = std::clamp(static_cast<int>(4 / estimates[i]), 4, 20);
      std::vector<float> some = time(launches[i], burst);
      times[i].insert(times[i].end(), some.begin(), some.end());
    }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    lines.push_back(summarise("bursts", times[i], operations));
    if (sustained == 0)
      continue;
    time(launches[i],
         static_cast<int>(static_cast<float>(sustained) / estimates[i]) + 1);
    lines.back() +=
        summarise("sustained", time(launches[i], count), operations);
  }
  return lines;
}

int runCases(const char *program, int argc, char **argv,
             bool (*runCase)(CudaDriver &driver, const std::string &folder,
                             const std::string &line, std::uint64_t seed)) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FOLDER CASE-LINE...\n", program);
    return 2;
  }
  CudaDriver driver;
  const char *given = std::getenv("SPARGEJIT_TEST_SEED");
  std::uint64_t seed =
      given ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::printf("# %s, %d multiprocessors, driver %d, seed %llu\n",
              driver.deviceName().c_str(), driver.multiprocessors(),
              driver.driverVersion(), static_cast<unsigned long long>(seed));
  bool allPassed = true;
  for (int i = 2; i < argc; ++i)
    allPassed &= runCase(driver, argv[1], argv[i], seed);
  return allPassed ? 0 : 1;
}

} // namespace spargejit::gpu_trial
