// SPDX-License-Identifier: Apache-2.0
//
// Records as JSON.
#include "autotune/db/TuningRecord.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

namespace spargejit::autotune {

namespace {

using Json = nlohmann::ordered_json;

/// Takes known fields out of an object, and remembers the first that is
/// missing or of another kind.
class FieldTaker {
public:
  explicit FieldTaker(Json &object) : object_(object) {}

  void text(const char *name, std::string &value) {
    if (auto field = take(name, &Json::is_string))
      value = field->get<std::string>();
  }
  template <typename Number>
  void whole(const char *name, Number &value) {
    if (auto field = take(name, &Json::is_number_integer))
      value = field->get<Number>();
  }
  void real(const char *name, double &value) {
    if (auto field = take(name, &Json::is_number))
      value = field->get<double>();
  }
  void flag(const char *name, bool &value) {
    if (auto field = take(name, &Json::is_boolean))
      value = field->get<bool>();
  }
  Json object(const char *name) {
    auto field = take(name, &Json::is_object);
    return field ? *field : Json::object();
  }
  void fail(const std::string &name) {
    if (failed_.empty())
      failed_ = name;
  }
  const std::string &failed() const { return failed_; }

private:
  std::optional<Json> take(const char *name,
                           bool (Json::*isKind)() const noexcept) {
    auto it = object_.find(name);
    if (it == object_.end() || !((*it).*isKind)()) {
      fail(name);
      return std::nullopt;
    }
    Json value = std::move(*it);
    object_.erase(it);
    return value;
  }

  Json &object_;
  std::string failed_;
};

Json problemAsJson(const ProblemShape &problem) {
  const auto &[name, dtype, batch, qHeads, kvHeads, qLen, kvLen, headDim,
               maskBlockQ, maskBlockKv, causal, density] = problem;
  return {{"name", name},
          {"dtype", dataTypeName(dtype)},
          {"batch", batch},
          {"q_heads", qHeads},
          {"kv_heads", kvHeads},
          {"q_len", qLen},
          {"kv_len", kvLen},
          {"head_dim", headDim},
          {"mask_block_q", maskBlockQ},
          {"mask_block_kv", maskBlockKv},
          {"causal", causal},
          {"density", density}};
}

void readProblem(FieldTaker &fields, ProblemShape &problem) {
  std::string dtype;
  fields.text("name", problem.name);
  fields.text("dtype", dtype);
  fields.whole("batch", problem.batch);
  fields.whole("q_heads", problem.qHeads);
  fields.whole("kv_heads", problem.kvHeads);
  fields.whole("q_len", problem.qLen);
  fields.whole("kv_len", problem.kvLen);
  fields.whole("head_dim", problem.headDim);
  fields.whole("mask_block_q", problem.maskBlockQ);
  fields.whole("mask_block_kv", problem.maskBlockKv);
  fields.flag("causal", problem.causal);
  fields.real("density", problem.density);
  for (std::int64_t size : {problem.batch, problem.qHeads, problem.kvHeads,
                            problem.qLen, problem.kvLen, problem.headDim,
                            problem.maskBlockQ, problem.maskBlockKv})
    if (size < 1)
      fields.fail("problem");
  if (!(problem.density > 0 && problem.density <= 1))
    fields.fail("density");
  for (DataType type :
       {DataType::Float32, DataType::BFloat16, DataType::Float16})
    if (dtype == dataTypeName(type)) {
      problem.dtype = type;
      return;
    }
  fields.fail("dtype");
}

Json environmentAsJson(const TuningEnvironment &environment) {
  const auto &[target, device, driver, assembler, generator, kernelText] =
      environment;
  return {{"target", target},       {"device", device},
          {"driver", driver},       {"assembler", assembler},
          {"generator", generator}, {"kernel_text", kernelText}};
}

void readEnvironment(FieldTaker &fields, TuningEnvironment &environment) {
  fields.text("target", environment.target);
  fields.text("device", environment.device);
  fields.text("driver", environment.driver);
  fields.text("assembler", environment.assembler);
  fields.text("generator", environment.generator);
  fields.text("kernel_text", environment.kernelText);
}

void readMeasurement(FieldTaker &fields, TuningRecord &record) {
  fields.flag("is_default", record.isDefault);
  fields.flag("is_winner", record.isWinner);
  fields.real("median_us", record.medianUs);
  fields.real("spread_us", record.spreadUs);
  fields.whole("count", record.count);
  fields.whole("registers", record.registers);
  fields.whole("spill_bytes", record.spillBytes);
  fields.real("max_error", record.maxError);
  fields.text("date", record.date);
  fields.text("failure", record.failure);
  if (record.medianUs < 0 || record.spreadUs < 0 || record.count < 0)
    fields.fail("median_us");
}

} // namespace

bool isSameProblem(const ProblemShape &a, const ProblemShape &b) {
  auto parts = [](const ProblemShape &problem) {
    const auto &[name, dtype, batch, qHeads, kvHeads, qLen, kvLen, headDim,
                 maskBlockQ, maskBlockKv, causal, density] = problem;
    return std::tuple(dtype, batch, qHeads, kvHeads, qLen, kvLen, headDim,
                      maskBlockQ, maskBlockKv, causal, density);
  };
  return parts(a) == parts(b);
}

bool isSameTrial(const TuningRecord &a, const TuningRecord &b) {
  return a.kernel == b.kernel && a.config == b.config &&
         a.environment == b.environment && isSameProblem(a.problem, b.problem);
}

std::string describeConfig(const std::map<std::string, std::int64_t> &config) {
  std::string text;
  for (const auto &[name, value] : config)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  return text;
}

std::string recordLine(const TuningRecord &record) {
  Json line = {{"kernel", record.kernel},
               {"problem", problemAsJson(record.problem)},
               {"environment", environmentAsJson(record.environment)},
               {"config", record.config},
               {"is_default", record.isDefault},
               {"is_winner", record.isWinner},
               {"median_us", record.medianUs},
               {"spread_us", record.spreadUs},
               {"count", record.count},
               {"registers", record.registers},
               {"spill_bytes", record.spillBytes},
               {"max_error", record.maxError},
               {"date", record.date},
               {"failure", record.failure}};
  Json others = Json::parse(record.otherFields, nullptr, false);
  if (others.is_object())
    for (const auto &[name, value] : others.items())
      if (!line.contains(name))
        line[name] = value;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<TuningRecord> parseRecord(const std::string &line) {
  Json object = Json::parse(line, nullptr, false);
  if (!object.is_object())
    return Status(ErrorCode::InvalidArgument, "expected a JSON object");
  FieldTaker fields(object);
  TuningRecord record;
  fields.text("kernel", record.kernel);
  Json problem = fields.object("problem");
  FieldTaker problemFields(problem);
  readProblem(problemFields, record.problem);
  Json environment = fields.object("environment");
  FieldTaker environmentFields(environment);
  readEnvironment(environmentFields, record.environment);
  const Json config = fields.object("config");
  for (const auto &[name, value] : config.items()) {
    if (!value.is_number_integer())
      fields.fail("config." + name);
    else
      record.config[name] = value.get<std::int64_t>();
  }
  readMeasurement(fields, record);
  for (const FieldTaker *part : {&fields, &problemFields, &environmentFields})
    if (!part->failed().empty())
      return Status(ErrorCode::InvalidArgument,
                    fmt::format("field {} is missing or has a value that it "
                                "cannot have",
                                part->failed()));
  record.otherFields = object.dump();
  return record;
}

} // namespace spargejit::autotune
