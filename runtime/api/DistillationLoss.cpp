// SPDX-License-Identifier: Apache-2.0
//
// The distillation loss and its gradient: two launches, with sums by row
// between them in the workspace.
#include "runtime/api/Engine.h"
#include "runtime/api/ViewChecks.h"
#include "runtime/base/AlignedMemory.h"
#include "runtime/plan/DefaultTuning.h"

#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace spargejit::api {

namespace {

/// What a kernel's arguments are, by their names.
struct KernelCall {
  std::map<std::string, TensorView> tensors;
  float factor = 0;
};

bool isFloating(DataType type) {
  return type == DataType::Float32 || type == DataType::BFloat16 ||
         type == DataType::Float16;
}

void checkElements(Checks &checks, const char *name, const TensorView &view,
                   const TensorView &like) {
  checks.that(view.rank >= 1 && view.rank <= TensorView::kMaxRank,
              "{}.rank: expected 1 to {}, got {}", name, TensorView::kMaxRank,
              view.rank);
  if (checks.ok())
    checkView(checks, name, view, view.rank, "any", MemoryUse::Used);
  checks.that(isFloating(view.dtype),
              "{}.dtype: expected float32, bfloat16 or float16, got {}", name,
              view.dtype);
  if (!checks.ok())
    return;
  checkLastStride(checks, name, view);
  checks.that(view.rank == like.rank && view.sizes == like.sizes,
              "{}.sizes: expected [{}] as in student, got [{}]", name,
              fmt::join(sizesOf(like), ", "), fmt::join(sizesOf(view), ", "));
  checkDevice(checks, name, view, like.device, "student");
}

Status validate(const TensorView &loss, const TensorView *gradient,
                const TensorView &student, const TensorView &teacher,
                const DistillationConfig &config) {
  Checks checks;
  checkElements(checks, "student", student, student);
  if (checks.ok())
    checkElements(checks, "teacher", teacher, student);
  checks.that(teacher.dtype == student.dtype,
              "teacher.dtype: expected {} as in student, got {}", student.dtype,
              teacher.dtype);
  if (checks.ok() && gradient) {
    checkElements(checks, "gradient", *gradient, student);
  }
  if (checks.ok() && gradient) {
    checkDistinct(checks, "gradient", *gradient);
    checkApart(checks, "gradient", *gradient, "teacher", &teacher);
    const bool isInPlace = gradient->data == student.data &&
                           gradient->dtype == student.dtype &&
                           gradient->strides == student.strides;
    if (!isInPlace)
      checkApart(checks, "gradient", *gradient, "student", &student);
  }
  checks.that(loss.rank >= 0 && loss.rank <= TensorView::kMaxRank,
              "loss.rank: expected 0 to {}, got {}", TensorView::kMaxRank,
              loss.rank);
  if (checks.ok())
    checkView(checks, "loss", loss, loss.rank, "one element", MemoryUse::Used);
  if (checks.ok())
    checks.that(loss.dtype == DataType::Float32 && loss.elementCount() == 1,
                "loss: expected one float32, got {} elements of {}",
                loss.elementCount(), loss.dtype);
  checkDevice(checks, "loss", loss, student.device, "student");
  if (checks.ok()) {
    checkApart(checks, "loss", loss, "student", &student);
    checkApart(checks, "loss", loss, "teacher", &teacher);
    checkApart(checks, "loss", loss, "gradient", gradient);
  }
  checks.that(std::isfinite(static_cast<float>(config.lossScale)),
              "config.lossScale: expected a finite float32, got {}",
              config.lossScale);
  checkThreads(checks, config.threads);
  return std::move(checks).status();
}

bool isDense(const TensorView &view) {
  std::int64_t stride = 1;
  for (auto i = static_cast<std::size_t>(view.rank); i-- > 0;) {
    if (view.sizes[i] > 1 && view.strides[i] != stride)
      return false;
    stride *= view.sizes[i];
  }
  return true;
}

/// The elements as [1, 1, rows, columns] with so many columns, of a dense view.
TensorView asRows(const TensorView &view, std::int64_t columns) {
  TensorView rows = view;
  rows.rank = 4;
  rows.sizes = {1, 1, view.elementCount() / columns, columns};
  rows.strides = {view.elementCount(), view.elementCount(), columns, 1};
  return rows;
}

/// The view with dimensions of size 1 in front of its own.
TensorView asRank4(const TensorView &view) {
  TensorView four = view;
  four.rank = 4;
  const auto missing = static_cast<std::size_t>(4 - view.rank);
  four.sizes.fill(1);
  four.strides.fill(0);
  for (std::size_t i = missing; i < 4; ++i) {
    four.sizes[i] = view.sizes[i - missing];
    four.strides[i] = view.strides[i - missing];
  }
  four.strides[3] = 1;
  return four;
}

/// A length of rows that leaves many of them, whose sums are short: the largest
/// divisor of `elements` from 32 to 1024, or 0 for none.
std::int64_t rowLength(std::int64_t elements) {
  for (std::int64_t columns = 1024; columns >= 32; --columns)
    if (elements % columns == 0)
      return columns;
  return 0;
}

Result<std::shared_ptr<const DeviceKernel>>
loadKernel(CallDevice &device, const char *kernel,
           const std::map<std::string, ParameterValue> &known) {
  auto text = device.text(kernel);
  if (!text.ok())
    return text.status();
  KernelSpec spec;
  spec.kernel = kernel;
  spec.target = device.target();
  for (const compiler::KernelParameter &parameter : (*text)->parameters)
    if (auto it = known.find(parameter.name); it != known.end())
      spec.parameters.emplace(*it);
  return device.load(spec, **text);
}

Status runKernel(const DeviceKernel &kernel, const KernelCall &call,
                 const AttentionConfig &config, bool isNext) {
  const LaunchInfo &info = kernel.launch();
  std::vector<std::int64_t> slots(static_cast<std::size_t>(info.slotCount()));
  for (const KernelArgument &argument : info.arguments) {
    auto slot = slots.begin() + argument.firstSlot;
    if (argument.kind == KernelArgument::Kind::Float) {
      *slot = std::bit_cast<std::uint32_t>(call.factor);
      continue;
    }
    auto found = call.tensors.find(argument.name);
    if (found == call.tensors.end())
      continue; // absent: pointer 0
    *slot++ = std::bit_cast<std::int64_t>(found->second.data);
    const auto rank = static_cast<std::size_t>(argument.rank);
    for (std::size_t i = 0; i < rank; ++i)
      slot[static_cast<std::ptrdiff_t>(i)] = found->second.sizes[i];
    slot += argument.rank;
    for (std::size_t i = 0; i < rank; ++i)
      slot[static_cast<std::ptrdiff_t>(i)] = found->second.strides[i];
  }
  return kernel.run(slots.data(), config, isNext);
}

} // namespace

Status Engine::distillationLoss(const TensorView &loss,
                                const TensorView *gradient,
                                const TensorView &student,
                                const TensorView &teacher,
                                const DistillationConfig &config) {
  if (Status status = validate(loss, gradient, student, teacher, config);
      !status)
    return status;
  auto entry = devices_.find(student.device);
  if (!entry.ok())
    return Status(entry.status()).withContext("student.device");
  CallDevice &device = *(*entry)->device;
  AttentionConfig call;
  call.threads = config.threads;
  call.stream = config.stream;

  const std::int64_t elements = student.elementCount();
  const bool isFlat =
      isDense(student) && isDense(teacher) && (!gradient || isDense(*gradient));
  const std::int64_t columns = isFlat ? rowLength(elements) : 0;
  auto shaped = [&](const TensorView &view) {
    return columns > 0 ? asRows(view, columns) : asRank4(view);
  };
  KernelCall squares;
  squares.tensors = {{"a", shaped(student)}, {"b", shaped(teacher)}};
  if (gradient)
    squares.tensors.emplace("gradient", shaped(*gradient));
  const double share = elements > 0 ? 1 / static_cast<double>(elements) : 0;
  squares.factor = static_cast<float>(2 * config.lossScale * share);

  std::map<std::string, ParameterValue> parameters = {
      {"elem", student.dtype},
      {"gradient_elem", gradient ? gradient->dtype : DataType::Float32}};
  const plan::ProblemClass kind{.dtype = student.dtype};
  for (const auto &[name, value] :
       plan::defaultTuning(kind, device.target(), /*hasLists=*/false))
    parameters.emplace(name, value);
  auto squaredError = loadKernel(device, "squared_error", parameters);
  if (!squaredError.ok())
    return squaredError.status();
  auto scaledTotal = loadKernel(device, "scaled_total", parameters);
  if (!scaledTotal.ok())
    return scaledTotal.status();

  const auto &sizes = squares.tensors.at("a").sizes;
  auto workspace =
      device.workspace(alignUp(sizes[0] * sizes[1] * sizes[2] *
                               static_cast<std::int64_t>(sizeof(float))),
                       call);
  if (!workspace.ok())
    return workspace.status();
  KernelCall total;
  total.factor = static_cast<float>(config.lossScale * share);
  auto partial = [&](const std::vector<std::int64_t> &shape) {
    return TensorView::contiguous(workspace->base, DataType::Float32, shape,
                                  student.device);
  };
  squares.tensors.emplace("partial", partial({sizes[0], sizes[1], sizes[2]}));
  total.tensors = {
      {"partial", partial({1, 1, sizes[0] * sizes[1] * sizes[2]})},
      {"total", TensorView::contiguous(loss.data, DataType::Float32, {1, 1, 1},
                                       loss.device)}};
  if (elements > 0)
    if (Status status = runKernel(**squaredError, squares, call, false);
        !status)
      return status;
  return runKernel(**scaledTotal, total, call, elements > 0);
}

} // namespace spargejit::api

namespace spargejit {

Status distillationLoss(const TensorView &loss, const TensorView *gradient,
                        const TensorView &student, const TensorView &teacher,
                        const DistillationConfig &config) {
  return api::withEngine([&](api::Engine &engine) {
    return engine.distillationLoss(loss, gradient, student, teacher, config);
  });
}

} // namespace spargejit
