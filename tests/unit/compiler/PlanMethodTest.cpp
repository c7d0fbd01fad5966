// SPDX-License-Identifier: Apache-2.0
//
// planMethod: the plans of the built-in methods, every kind of refusal with its
// position, and that no text makes it crash or print.
#include "compiler/Driver/PlanMethod.h"

#include "kernels_ir/embed/EmbeddedTexts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <regex>
#include <sstream>
#include <thread>

namespace spargejit::compiler {
namespace {

using Kind = PlanValue::Kind;

std::string builtIn(const std::string &name,
                    const std::string &folder = "methods/") {
  const kernels_ir::EmbeddedText *text =
      kernels_ir::findEmbeddedText(folder + name + ".mlir");
  EXPECT_NE(text, nullptr) << name;
  return text ? std::string(text->text) : std::string();
}

/// A method whose body is `body` with the parts that most tests do not care
/// about around it; the first line of `body` is line 2.
std::string method(const std::string &body) {
  return "sparge.method @m(%q: !sparge.tensor<query>, %k: !sparge.tensor<key>, "
         "%v: !sparge.tensor<value>) {\n" +
         body +
         "\n%o, %lse = sparge.attention %q, %k, %v : !sparge.tensor<query>, "
         "!sparge.tensor<key>, !sparge.tensor<value>\n"
         "sparge.return %o : !sparge.tensor<output>\n}\n";
}

/// A plan in one line a launch: kernel(name=value …) {parameter=number …},
/// where a value is its number and its kind's first letters.
std::string describe(const MethodPlan &plan) {
  static const char *const kNames[] = {
      "query",  "key", "value",  "pooled_q", "pooled_k", "lists",  "caller",
      "output", "lse", "scalar", "constant", "d_o",      "d_lse",  "delta",
      "keys",   "d_q", "d_k",    "d_v",      "places",   "unkept", "kept"};
  std::ostringstream out;
  for (const PlanLaunch &launch : plan.launches) {
    out << launch.kernel << "(";
    for (const PlanArgument &argument : launch.arguments) {
      const PlanValue &value =
          plan.values.at(static_cast<std::size_t>(argument.value));
      out << " " << argument.name << "="
          << kNames[static_cast<std::size_t>(value.kind)] << argument.value;
      if (value.kind == Kind::Scalar)
        out << ":" << value.name;
      if (value.kind == Kind::Constant)
        out << ":" << value.constant;
    }
    out << " ) {";
    for (const auto &[name, number] : launch.parameters)
      out << " " << name << "=" << number;
    out << " }\n";
  }
  return out.str();
}

std::string planOf(const std::string &text) {
  Result<MethodPlan> plan = planMethod(text, "m.mlir");
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan ? describe(*plan) : std::string();
}

void expectRefused(const std::string &text, ErrorCode code,
                   const std::string &message) {
  Result<MethodPlan> plan = planMethod(text, "m.mlir");
  ASSERT_FALSE(plan.ok()) << describe(*plan);
  EXPECT_EQ(plan.status().code(), code);
  EXPECT_EQ(plan.status().message(), message);
}

const char *const kSelectHead =
    "pool( q=query0 k=key1 pooled_q=pooled_q3 pooled_k=pooled_k4 ) { }\n";

TEST(PlanMethod, PlansEachBuiltInMethod) {
  EXPECT_EQ(planOf(builtIn("dense")),
            "attention_fwd( q=query0 k=key1 v=value2 o=output3 lse=lse4 ) "
            "{ has_lists=0 }\n");
  EXPECT_EQ(planOf(builtIn("block_sparse")),
            "attention_fwd( q=query0 k=key1 v=value2 indices=caller3 "
            "counts=caller3 o=output4 lse=lse5 ) { has_lists=1 }\n");
  EXPECT_EQ(planOf(builtIn("topk")),
            std::string(kSelectHead) +
                "select_blocks( pooled_q=pooled_q3 pooled_k=pooled_k4 "
                "k=scalar5:top_k indices=lists6 counts=lists6 ) "
                "{ keep_diagonal=0 keep_first=0 }\n"
                "attention_fwd( q=query0 k=key1 v=value2 indices=lists6 "
                "counts=lists6 o=output7 lse=lse8 ) { has_lists=1 }\n");
  EXPECT_EQ(planOf(builtIn("topp")),
            std::string(kSelectHead) +
                "select_blocks( pooled_q=pooled_q3 pooled_k=pooled_k4 "
                "p=scalar5:top_p indices=lists6 counts=lists6 ) "
                "{ keep_diagonal=0 keep_first=0 }\n"
                "attention_fwd( q=query0 k=key1 v=value2 indices=lists6 "
                "counts=lists6 o=output7 lse=lse8 ) { has_lists=1 }\n");
  EXPECT_EQ(planOf(builtIn("spargeattention2")),
            std::string(kSelectHead) +
                "select_blocks( pooled_q=pooled_q3 pooled_k=pooled_k4 "
                "k=scalar5:top_k p=scalar6:top_p indices=lists7 "
                "counts=lists7 ) { keep_diagonal=0 keep_first=0 }\n"
                "attention_fwd( q=query0 k=key1 v=value2 indices=lists7 "
                "counts=lists7 o=output8 lse=lse9 ) { has_lists=1 }\n");
}

TEST(PlanMethod, PlansBackwardPasses) {
  EXPECT_EQ(planOf(builtIn("dense", "backward/")),
            "attention_bwd_q( q=query0 k=key1 v=value2 d_o=d_o5 lse=lse4 "
            "o=output3 d_lse=d_lse6 d_q=d_q7 delta=delta8 ) "
            "{ forms_delta=1 has_lists=0 }\n"
            "attention_bwd_kv( q=query0 k=key1 v=value2 d_o=d_o5 lse=lse4 "
            "delta=delta8 d_k=d_k9 d_v=d_v10 ) { has_lists=0 }\n");
  EXPECT_EQ(planOf(builtIn("block_sparse", "backward/")),
            "invert_blocks( indices=caller7 counts=caller7 key_indices=keys8 "
            "key_counts=keys8 ) { }\n"
            "attention_bwd_q( q=query0 k=key1 v=value2 d_o=d_o5 lse=lse4 "
            "o=output3 d_lse=d_lse6 indices=caller7 counts=caller7 d_q=d_q9 "
            "delta=delta10 ) { forms_delta=1 has_lists=1 }\n"
            "attention_bwd_kv( q=query0 k=key1 v=value2 d_o=d_o5 lse=lse4 "
            "delta=delta10 key_indices=keys8 key_counts=keys8 d_k=d_k11 "
            "d_v=d_v12 ) { has_lists=1 }\n");
}

TEST(PlanMethod, PlansABackwardPassThatKeepsScoreGradients) {
  EXPECT_EQ(planOf(builtIn("block_sparse_kept", "backward/")),
            "invert_blocks( indices=caller7 counts=caller7 key_indices=keys8 "
            "key_counts=keys8 places=places9 row_places=places9 "
            "unkept=unkept10 ) { }\n"
            "attention_bwd_delta( o=output3 d_o=d_o5 d_lse=d_lse6 "
            "delta=delta11 ) { }\n"
            "attention_bwd_kv( q=query0 k=key1 v=value2 d_o=d_o5 lse=lse4 "
            "delta=delta11 key_indices=keys8 key_counts=keys8 places=places9 "
            "row_places=places9 d_k=d_k12 d_v=d_v13 kept=kept14 ) "
            "{ has_lists=1 }\n"
            "attention_bwd_q_kept( k=key1 indices=caller7 counts=caller7 "
            "places=places9 row_places=places9 kept=kept14 d_q=d_q15 ) { }\n"
            "attention_bwd_q( q=query0 k=key1 v=value2 d_o=d_o5 lse=lse4 "
            "delta=delta11 indices=caller7 counts=caller7 places=places9 "
            "row_places=places9 unkept=unkept10 d_q=d_q16 ) "
            "{ forms_delta=0 has_lists=1 }\n");
}

TEST(PlanMethod, NamesThePlanAfterTheMethod) {
  Result<MethodPlan> plan = planMethod(builtIn("topk"), "topk.mlir");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->name, "topk");
  EXPECT_TRUE(plan->selects());
  plan = planMethod(builtIn("block_sparse"), "block_sparse.mlir");
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->selects());
}

std::string selecting(const std::string &before, const std::string &rules) {
  std::string text = builtIn("topk");
  auto replace = [&](const std::string &from, const std::string &to) {
    std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  replace("%top_k = sparge.parameter \"top_k\"", before);
  replace("top_k(%top_k)", rules);
  return text;
}

TEST(PlanMethod, KeepsConstantsAsFloat64) {
  // In float32, 0.9 · 10 is below 9, and one key block in ten would be lost.
  Result<MethodPlan> plan =
      planMethod(selecting("%r = arith.constant 0.9 : f64", "top_k(%r)"), "m");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const PlanValue &ratio = plan->values.at(5);
  EXPECT_EQ(ratio.kind, Kind::Constant);
  EXPECT_EQ(ratio.constant, 0.9);
}

TEST(PlanMethod, GivesARepeatedParameterOneValue) {
  std::string text = planOf(selecting("%a = sparge.parameter \"top_k\"\n"
                                      "%b = sparge.parameter \"top_k\"",
                                      "top_k(%a) top_p(%b)"));
  EXPECT_NE(text.find("k=scalar5:top_k p=scalar5:top_k"), std::string::npos)
      << text;
}

TEST(PlanMethod, PassesForcedBlocksAsParameters) {
  std::string text = planOf(selecting("%a = sparge.parameter \"top_p\"",
                                      "{keep_diagonal, keep_first = 4}"));
  EXPECT_NE(text.find("pooled_k=pooled_k4 indices=lists5"), std::string::npos)
      << text;
  EXPECT_NE(text.find("{ keep_diagonal=1 keep_first=4 }"), std::string::npos)
      << text;
}

// Lines that follow each other in the file share one #line.
TEST(PlanMethod, SaysWhereEachLineOfCodeStands) {
  std::string text = selecting("%a = sparge.parameter \"top_k\"", "top_k(%a)");
  const std::size_t begin = text.find("sparge.block_scores");
  const std::size_t end = text.find("%pooled_q, %pooled_k", begin) + 20;
  text.replace(begin, end - begin,
               "sparge.custom_scores %pooled_q, %pooled_k code<[\n"
               "\"one \\\"quoted\\\"\",\n\"two\",\n\n\"four\"]>");
  const auto line =
      1 +
      std::count(text.begin(),
                 text.begin() + static_cast<std::ptrdiff_t>(text.find("\"one")),
                 '\n');
  Result<MethodPlan> plan = planMethod(text, "a \"b\".mlir");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const PlanLaunch *custom = nullptr;
  for (const PlanLaunch &launch : plan->launches)
    if (launch.isCustom())
      custom = &launch;
  ASSERT_NE(custom, nullptr);
  EXPECT_EQ(custom->kernel, "custom_select");
  ASSERT_EQ(custom->sources.size(), 1u);
  EXPECT_EQ(custom->sources[0].function, "score");
  EXPECT_EQ(custom->sources[0].text,
            "#line " + std::to_string(line) +
                " \"a \\\"b\\\".mlir\"\none \"quoted\"\ntwo\n#line " +
                std::to_string(line + 3) + " \"a \\\"b\\\".mlir\"\nfour\n");
  EXPECT_FALSE(plan->takesCustomSource());
}

TEST(PlanMethod, LeavesTheCallsCodeEmpty) {
  std::string text =
      selecting("%a = sparge.parameter \"top_k\"", "code<config> top_k(%a)");
  const std::string from = "sparge.select_blocks";
  text.replace(text.find(from), from.size(), "sparge.custom_select");
  Result<MethodPlan> plan = planMethod(text, "m.mlir");
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(plan->takesCustomSource());
}

TEST(PlanMethod, GivesThePositionOfASyntaxError) {
  expectRefused(method("  %l = sparge.caller_list"), ErrorCode::CompileFailed,
                "m.mlir:2:8: custom op 'sparge.caller_list' is unknown");
}

TEST(PlanMethod, GivesThePositionOfABrokenConstraint) {
  expectRefused(method("  %r = sparge.parameter \"top_q\""),
                ErrorCode::CompileFailed,
                "m.mlir:2:8: 'sparge.parameter' op expects the name top_k or "
                "top_p, got \"top_q\"");
}

TEST(PlanMethod, ReportsAnOpWithoutAKernelAsUnsupported) {
  expectRefused(method("%p = sparge.parameter \"top_p\"\n"
                       "%s = arith.mulf %p, %p : f64"),
                ErrorCode::Unsupported,
                "m.mlir:3:6: no kernel implements 'arith.mulf'");
}

TEST(PlanMethod, AddsTheNotesOfAnError) {
  // A mistake beside something unsupported is a mistake.
  Result<MethodPlan> plan = planMethod(
      method(
          "%r = sparge.parameter \"top_k\"\n%r = sparge.parameter \"top_k\""),
      "m.mlir");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), ErrorCode::CompileFailed);
  EXPECT_EQ(plan.status().message(),
            "m.mlir:3:1: redefinition of SSA value '%r'\n"
            "m.mlir:2:1: note: previously defined here");
}

TEST(PlanMethod, WantsOneMethodAndNothingElse) {
  expectRefused("", ErrorCode::CompileFailed,
                "m.mlir:1:1: expects one sparge.method in a method file, got "
                "none");
  std::string two = builtIn("dense") + builtIn("topk");
  Result<MethodPlan> plan = planMethod(two, "m.mlir");
  ASSERT_FALSE(plan.ok());
  EXPECT_TRUE(std::regex_match(
      plan.status().message(),
      std::regex(R"(m\.mlir:\d+:1: expects one sparge\.method in a method )"
                 R"(file, got another after @dense)")))
      << plan.status().message();
  expectRefused(builtIn("dense") + "module {}", ErrorCode::CompileFailed,
                "m.mlir:15:1: expects nothing but one sparge.method in a "
                "method file, got 'builtin.module'");
}

TEST(PlanMethod, RefusesOtherDialects) {
  Result<MethodPlan> plan =
      planMethod(method("\"func.call\"() : () -> ()"), "m.mlir");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().code(), ErrorCode::CompileFailed);
}

TEST(PlanMethod, GivesTheSamePlanOnEveryThread) {
  const std::string expected = planOf(builtIn("spargeattention2"));
  const std::string text = builtIn("spargeattention2");
  std::vector<std::string> plans(8);
  std::vector<std::thread> threads;
  for (std::string &plan : plans)
    threads.emplace_back([&plan, &text] {
      for (int i = 0; i < 10; ++i) {
        Result<MethodPlan> result = planMethod(text, "m.mlir");
        plan = result ? describe(*result) : result.status().message();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &plan : plans)
    EXPECT_EQ(plan, expected);
}

/// `text` with some characters or words exchanged, removed or repeated.
std::string damaged(std::string text, std::mt19937 &random) {
  auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t edits = 1 + below(4); edits-- > 0;) {
    std::size_t at = below(text.size());
    std::size_t from = below(text.size());
    std::size_t length = 1 + below(12);
    switch (below(4)) {
    case 0:
      text[at] = static_cast<char>(1 + below(126));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(from, length));
      break;
    default:
      text.replace(at, length, text.substr(from, length));
    }
    if (text.empty())
      text = "%";
  }
  return text;
}

TEST(PlanMethod, AnswersAnyTextWithAPlanOrAMessage) {
  const char *given = std::getenv("SPARGEJIT_TEST_SEED");
  const unsigned seed =
      given ? static_cast<unsigned>(std::stoul(given)) : std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const char *const kMethods[] = {"dense", "block_sparse", "topk", "topp",
                                  "spargeattention2"};
  const std::regex positioned(R"(m\.mlir:\d+:\d+: [^]+)");
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  std::string silent;
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text = damaged(builtIn(kMethods[i % 5]), random);
    Result<MethodPlan> plan = planMethod(text, "m.mlir");
    refused += !plan.ok();
    if (!plan && !std::regex_match(plan.status().message(), positioned))
      silent += "---\n" + text + "\n-> " + plan.status().message() + "\n";
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(silent, "");
  EXPECT_GT(refused, 100);
}

} // namespace
} // namespace spargejit::compiler
