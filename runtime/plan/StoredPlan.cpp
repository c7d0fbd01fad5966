// SPDX-License-Identifier: Apache-2.0
//
// Plans as JSON. Structured bindings see to it that no field is forgotten.
#include "runtime/plan/StoredPlan.h"

#include "kernels_ir/embed/EmbeddedTexts.h"
#include "runtime/cache/JsonFields.h"

#include <array>
#include <utility>

namespace spargejit::plan {

namespace {

using cache::JsonFields;
using Json = nlohmann::ordered_json;
using Kind = PlanValue::Kind;

constexpr std::array<std::pair<Kind, const char *>, 21> kKinds = {
    {{Kind::Query, "query"},
     {Kind::Key, "key"},
     {Kind::Value, "value"},
     {Kind::PooledQuery, "pooled_query"},
     {Kind::PooledKey, "pooled_key"},
     {Kind::Lists, "lists"},
     {Kind::CallerLists, "caller_lists"},
     {Kind::Output, "output"},
     {Kind::Lse, "lse"},
     {Kind::Scalar, "scalar"},
     {Kind::Constant, "constant"},
     {Kind::DOutput, "d_output"},
     {Kind::DLse, "d_lse"},
     {Kind::Delta, "delta"},
     {Kind::KeyLists, "key_lists"},
     {Kind::DQuery, "d_query"},
     {Kind::DKey, "d_key"},
     {Kind::DValue, "d_value"},
     {Kind::Places, "places"},
     {Kind::Unkept, "unkept"},
     {Kind::Kept, "kept"}}};

Json toJson(const PlanValue &value) {
  const auto &[kind, name, constant] = value;
  Json json;
  for (const auto &[known, text] : kKinds)
    if (known == kind)
      json["kind"] = text;
  json["name"] = name;
  json["constant"] = constant;
  return json;
}

Json toJson(const PlanLaunch &launch) {
  const auto &[kernel, arguments, parameters, sources] = launch;
  Json list = Json::array();
  for (const auto &[name, value] : arguments)
    list.push_back({{"name", name}, {"value", value}});
  Json settings = Json::array();
  for (const auto &[name, value] : parameters)
    settings.push_back({{"name", name}, {"value", value}});
  Json stages = Json::array();
  for (const auto &[function, text] : sources)
    stages.push_back({{"function", function}, {"text", text}});
  return {{"kernel", kernel},
          {"arguments", list},
          {"parameters", settings},
          {"sources", stages}};
}

PlanValue readValue(JsonFields &fields) {
  PlanValue value;
  std::string kind;
  fields.text("kind", kind);
  fields.text("name", value.name);
  fields.real("constant", value.constant);
  for (const auto &[known, text] : kKinds)
    if (kind == text) {
      value.kind = known;
      return value;
    }
  fields.fail("kind");
  return value;
}

PlanLaunch readLaunch(JsonFields &fields, std::size_t valueCount) {
  PlanLaunch launch;
  fields.text("kernel", launch.kernel);
  for (JsonFields &item : fields.objects("arguments")) {
    PlanArgument argument;
    item.text("name", argument.name);
    item.number("value", argument.value);
    if (argument.value < 0 ||
        static_cast<std::size_t>(argument.value) >= valueCount)
      item.fail("value");
    fields.also(item);
    launch.arguments.push_back(std::move(argument));
  }
  for (JsonFields &item : fields.objects("parameters")) {
    std::string name;
    std::int64_t value = 0;
    item.text("name", name);
    item.number("value", value);
    fields.also(item);
    launch.parameters[name] = value;
  }
  for (JsonFields &item : fields.objects("sources")) {
    PlanSource source;
    item.text("function", source.function);
    item.text("text", source.text);
    fields.also(item);
    launch.sources.push_back(std::move(source));
  }
  return launch;
}

} // namespace

cache::KernelKey planKey(const Digest &textDigest,
                         const std::string &generator) {
  // A plan says which kernels are launched with which of their parameters, so
  // that one of another version's kernels is none.
  return cache::KernelKey::ofFields(
      {{"key_version", "1"},
       {"plan_of", textDigest.hex()},
       {"kernel_texts", std::string(kernels_ir::contentHash())},
       {"generator", generator}});
}

cache::StoredEntry entryOf(const MethodPlan &plan) {
  const auto &[name, values, launches] = plan;
  Json valueList = Json::array();
  for (const PlanValue &value : values)
    valueList.push_back(toJson(value));
  Json launchList = Json::array();
  for (const PlanLaunch &launch : launches)
    launchList.push_back(toJson(launch));
  Json content = {
      {"method", name}, {"values", valueList}, {"launches", launchList}};
  return {kPlanKind,
          content.dump(-1, ' ', false, Json::error_handler_t::replace), "", ""};
}

Result<MethodPlan> planOf(const cache::StoredEntry &entry) {
  JsonFields content(entry.content);
  MethodPlan plan;
  content.text("method", plan.name);
  for (JsonFields &item : content.objects("values")) {
    plan.values.push_back(readValue(item));
    content.also(item);
  }
  for (JsonFields &item : content.objects("launches")) {
    plan.launches.push_back(readLaunch(item, plan.values.size()));
    content.also(item);
  }
  if (entry.kind != kPlanKind)
    content.fail("kind");
  if (!content.ok())
    return content.status("an entry of a method's plan");
  return plan;
}

} // namespace spargejit::plan
