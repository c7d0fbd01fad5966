// SPDX-License-Identifier: Apache-2.0
//
// Artifacts as JSON. Each struct is taken apart by a structured binding, so
// that a field that is added to one of them cannot be forgotten here.
#include "runtime/cache/ArtifactText.h"

#include "runtime/cache/JsonFields.h"

#include <array>
#include <utility>

namespace spargejit::cache {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<KernelArgument::Kind, const char *>, 3>
    kArgumentKinds = {{{KernelArgument::Kind::Tensor, "tensor"},
                       {KernelArgument::Kind::Index, "index"},
                       {KernelArgument::Kind::Float, "float"}}};

constexpr std::array kMapTypes = {DataType::BFloat16, DataType::Float16,
                                  DataType::Float32, DataType::Float8E4M3,
                                  DataType::Bool};

Json toJson(const KernelArgument &argument) {
  const auto &[name, kind, rank, firstSlot] = argument;
  const char *kindName = "";
  for (const auto &[value, text] : kArgumentKinds)
    if (value == kind)
      kindName = text;
  return {{"name", name},
          {"kind", kindName},
          {"rank", rank},
          {"first_slot", firstSlot}};
}

Json toJson(const DynamicScratch &scratch) {
  const auto &[bytesPerColumn, columnsMultiple, columnsSlot, shares] = scratch;
  return {{"bytes_per_column", bytesPerColumn},
          {"columns_multiple", columnsMultiple},
          {"columns_slot", columnsSlot},
          {"shares", shares}};
}

Json toJson(const TensorMap &map) {
  const auto &[argument, elementType, boxRows, boxColumns, swizzleBytes] = map;
  return {{"argument", argument},
          {"element_type", dataTypeName(elementType)},
          {"box_rows", boxRows},
          {"box_columns", boxColumns},
          {"swizzle_bytes", swizzleBytes}};
}

template <typename T>
Json toJson(const std::vector<T> &values) {
  Json array = Json::array();
  for (const T &value : values)
    array.push_back(toJson(value));
  return array;
}

Json toJson(const LaunchInfo &launch) {
  const auto &[entryName, arguments, gridArgument, gridTile, staticScratchBytes,
               dynamicScratch, threads, sharedBytes, persistent,
               ctasPerMultiprocessor, members, startsEarly, assemblerLevel,
               tensorMaps] = launch;
  return {{"entry", entryName},
          {"arguments", toJson(arguments)},
          {"grid_argument", gridArgument},
          {"grid_tile", gridTile},
          {"static_scratch_bytes", staticScratchBytes},
          {"dynamic_scratch", toJson(dynamicScratch)},
          {"threads", threads},
          {"shared_bytes", sharedBytes},
          {"persistent", persistent},
          {"ctas_per_multiprocessor", ctasPerMultiprocessor},
          {"members", members},
          {"starts_early", startsEarly},
          {"assembler_level", assemblerLevel},
          {"tensor_maps", toJson(tensorMaps)}};
}

void read(JsonFields &fields, KernelArgument &argument) {
  std::string kind;
  fields.text("name", argument.name);
  fields.text("kind", kind);
  fields.number("rank", argument.rank);
  fields.number("first_slot", argument.firstSlot);
  for (const auto &[value, text] : kArgumentKinds)
    if (kind == text) {
      argument.kind = value;
      return;
    }
  fields.fail("kind");
}

void read(JsonFields &fields, DynamicScratch &scratch) {
  fields.number("bytes_per_column", scratch.bytesPerColumn);
  fields.number("columns_multiple", scratch.columnsMultiple);
  fields.number("columns_slot", scratch.columnsSlot);
  fields.number("shares", scratch.shares);
}

void read(JsonFields &fields, TensorMap &map) {
  std::string type;
  fields.number("argument", map.argument);
  fields.text("element_type", type);
  fields.number("box_rows", map.boxRows);
  fields.number("box_columns", map.boxColumns);
  fields.number("swizzle_bytes", map.swizzleBytes);
  for (DataType value : kMapTypes)
    if (type == dataTypeName(value)) {
      map.elementType = value;
      return;
    }
  fields.fail("element_type");
}

template <typename T>
void readList(JsonFields &fields, const char *name, std::vector<T> &values) {
  for (JsonFields &item : fields.objects(name)) {
    T value;
    read(item, value);
    fields.also(item);
    values.push_back(std::move(value));
  }
}

void read(JsonFields &fields, LaunchInfo &launch) {
  fields.text("entry", launch.entryName);
  readList(fields, "arguments", launch.arguments);
  fields.number("grid_argument", launch.gridArgument);
  fields.number("grid_tile", launch.gridTile);
  fields.number("static_scratch_bytes", launch.staticScratchBytes);
  readList(fields, "dynamic_scratch", launch.dynamicScratch);
  fields.number("threads", launch.threads);
  fields.number("shared_bytes", launch.sharedBytes);
  fields.flag("persistent", launch.persistent);
  fields.number("ctas_per_multiprocessor", launch.ctasPerMultiprocessor);
  fields.number("members", launch.members);
  fields.flag("starts_early", launch.startsEarly);
  fields.number("assembler_level", launch.assemblerLevel);
  readList(fields, "tensor_maps", launch.tensorMaps);
}

const char *codeFileName(const KernelArtifact &artifact) {
  return artifact.target.isHost() ? "kernel.o"
         : isCubin(artifact)      ? "kernel.cubin"
                                  : "kernel.ptx";
}

} // namespace

bool isCubin(const KernelArtifact &artifact) {
  return artifact.code.starts_with("\x7f"
                                   "ELF");
}

StoredEntry entryOf(const KernelSpec &spec, const std::string &generator,
                    const KernelArtifact &artifact) {
  Json parameters = Json::object();
  for (const auto &[name, value] : spec.parameters)
    parameters[name] = parameterText(value);
  const auto &[target, launch, code] = artifact;
  const auto &[architecture, cpu, features] = target;
  Json content = {
      {"kernel", spec.kernel},
      {"code_generator", generator},
      {"target",
       {{"architecture", architecture}, {"cpu", cpu}, {"features", features}}},
      {"parameters", parameters},
      {"launch", toJson(launch)}};
  return {kKernelKind,
          content.dump(-1, ' ', false, Json::error_handler_t::replace),
          codeFileName(artifact), code};
}

Result<KernelArtifact> artifactOf(const StoredEntry &entry) {
  KernelArtifact artifact;
  JsonFields content(entry.content);
  JsonFields target = content.object("target");
  target.text("architecture", artifact.target.architecture);
  target.text("cpu", artifact.target.cpu);
  target.text("features", artifact.target.features);
  content.also(target);
  JsonFields launch = content.object("launch");
  read(launch, artifact.launch);
  content.also(launch);
  artifact.code = entry.code;
  if (entry.kind != kKernelKind)
    content.fail("kind");
  if (!content.ok())
    return content.status("a kernel's entry");
  return artifact;
}

} // namespace spargejit::cache
