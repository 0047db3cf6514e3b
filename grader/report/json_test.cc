#include "grader/report/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace handoff::report {
namespace {

namespace fs = std::filesystem;
using harness::FoundDiagnostic;
using harness::TestOutcome;
using harness::Verdict;
using nlohmann::json;
using ::testing::HasSubstr;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Verdict full_verdict() {
  Verdict v;
  v.exercise = "04a";
  v.title = "two-copies-one-barrier";
  v.submission = "exercises/04a-two-copies-one-barrier/kernel.cu";
  v.score = 3;
  v.max_score = 10;
  v.tests = {{"result", "emulator", TestOutcome::State::Failed, 0, 3, "wrong \"quoted\"\n"},
             {"no-hazards", "cuda", TestOutcome::State::Passed, 3, 3, ""},
             {"every-schedule", "emulator", TestOutcome::State::NotRun, 0, 4, "nominal failed"}};
  FoundDiagnostic d;
  d.diagnostic = {"data-race", Severity::Warning, "a message",
                  "a hint",    {"kernel.cu", 31}, {{{"kernel.cu", 28}, "written here"}}};
  d.device = "emulator";
  d.schedule = "random";
  d.seed = 18446744073709551615ULL;
  d.input = "128 threads";
  v.diagnostics = {d};
  v.state = {"full phase 0"};
  v.deadlock_schedule = "nominal";
  v.reproduce = "--schedule random --seed 3";
  v.output = "printed";
  v.modeled_cycles = 1234567890123ULL;
  v.shared_memory = {64, 1088, 64, 5, {{{"kernel.cu", 31}, 32, 1024, 32, 32}, {{"kernel.cu", 40}, 16, 48, 16, 3}}};
  v.units = {1000, 940, 20, 530, 700};
  v.timeline = {10, 1010, {0, 100, 90}, {0, 50, 60}, {0, 0, 3}, {12, 1, 0}, 17};
  v.resources = {96, 4104, 16, 24, 32, 65536};
  v.runs = 8;
  v.cases = 3;
  v.devices = "emulator + NVIDIA H200";
  v.notes = {"a note"};
  v.seconds = 1.5;
  v.nvcc_seconds = 0.25;
  return v;
}

// The part of JSON Schema that docs/verdict.schema.json uses: type, const, enum, minimum, required, properties, items,
// $ref.
void validate(const json& schema, const json& root, const json& value, const std::string& where,
              std::vector<std::string>* problems) {
  if (schema.contains("$ref")) {
    const std::string reference = schema["$ref"];
    return validate(root.at(json::json_pointer(reference.substr(1))), root, value, where, problems);
  }
  const std::string type = schema.at("type");
  const bool fits = type == "object"    ? value.is_object()
                    : type == "array"   ? value.is_array()
                    : type == "string"  ? value.is_string()
                    : type == "boolean" ? value.is_boolean()
                    : type == "integer" ? value.is_number_integer()
                                        : type == "number" && value.is_number();
  if (!fits) return problems->push_back(where + " is no " + type);
  if (schema.contains("const") && schema["const"] != value) problems->push_back(where + " has another value");
  if (schema.contains("minimum") && value < schema["minimum"]) problems->push_back(where + " is too small");
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
    problems->push_back(where + " is none of the values");
  }
  if (type == "array") {
    for (const json& item : value) validate(schema.at("items"), root, item, where + "[]", problems);
  }
  if (type != "object") return;
  for (const json& key : schema.at("required")) {
    if (!value.contains(key.get<std::string>())) problems->push_back(where + " lacks " + key.get<std::string>());
  }
  for (const auto& [key, member] : value.items()) {
    if (schema.at("properties").contains(key)) {
      validate(schema["properties"][key], root, member, where + "." + key, problems);
    } else {
      problems->push_back(where + "." + key + " is not described");
    }
  }
}

std::vector<std::string> problems_of(const json& report) {
  const json schema = json::parse(read_file(fs::path(HANDOFF_SOURCE_DIR) / "docs" / "verdict.schema.json"));
  std::vector<std::string> problems;
  validate(schema, schema, report, "report", &problems);
  return problems;
}

TEST(Json, BringsEveryFieldBack) {
  const std::string text = to_json({full_verdict()});
  std::vector<Verdict> back;
  std::string error;
  ASSERT_TRUE(from_json(text, &back, &error)) << error;
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back[0].tests[2].state, TestOutcome::State::NotRun);
  EXPECT_EQ(back[0].diagnostics[0].seed, 18446744073709551615ULL);
  EXPECT_EQ(back[0].diagnostics[0].diagnostic.severity, Severity::Warning);
  EXPECT_EQ(back[0].diagnostics[0].diagnostic.related[0].role, "written here");
  EXPECT_EQ(back[0].modeled_cycles, 1234567890123ULL);
  EXPECT_EQ(back[0].units.bound(), 940U);
  EXPECT_EQ(back[0].timeline.mmas, (std::vector<uint8_t>{0, 50, 60}));
}

TEST(Json, TellsTheResources) {
  const json report = json::parse(to_json({full_verdict()}));
  EXPECT_EQ(report["exercises"][0]["resources"],
            json::parse(R"({"registers": 96, "static_smem": 4104, "spill_stores": 16,
                                                   "spill_loads": 24, "stack": 32, "dynamic_smem": 65536})"));
  EXPECT_EQ(report["exercises"][0]["registers"], 96);
  EXPECT_EQ(report["exercises"][0]["shared_bytes"], 4104);
}

TEST(Json, TellsBankConflicts) {
  const json report = json::parse(to_json({full_verdict(), Verdict()}));
  EXPECT_EQ(report["exercises"][0]["shared_memory"], json::parse(R"({
    "accesses": 64, "wavefronts": 1088, "minimum": 64, "distributed_accesses": 5, "conflicts": [
      {"file": "kernel.cu", "line": 31, "accesses": 32, "wavefronts": 1024, "minimum": 32, "ways": 32},
      {"file": "kernel.cu", "line": 40, "accesses": 16, "wavefronts": 48, "minimum": 16, "ways": 3}]})"));
  EXPECT_EQ(report["exercises"][1]["shared_memory"]["conflicts"], json::array());
}

TEST(Json, TellsTheUnits) {
  const json report = json::parse(to_json({full_verdict()}));
  EXPECT_EQ(
      report["exercises"][0]["units"],
      json::parse(R"({"cta_cycles": 1000, "load_busy": 940, "store_busy": 20, "mma_busy": 530, "port_busy": 700})"));
  EXPECT_EQ(report["exercises"][0]["timeline"], json::parse(R"({
    "begin": 10, "end": 1010, "operations": 17,
    "loads": [0, 100, 90], "mmas": [0, 50, 60], "stores": [0, 0, 3], "threads": [12, 1, 0]})"));
}

TEST(Json, FollowsTheSchema) {
  EXPECT_THAT(problems_of(json::parse(to_json({full_verdict(), Verdict()}))), ::testing::IsEmpty());
  EXPECT_THAT(problems_of(json::parse(to_json({}))), ::testing::IsEmpty());
}

TEST(Json, TheSchemaCheckSeesFaults) {
  json report = json::parse(to_json({full_verdict()}));
  report["exercises"][0]["score"] = "3";
  report["exercises"][0]["tests"][0].erase("device");
  report["exercises"][0]["diagnostics"][0]["severity"] = "fatal";
  report["extra"] = 1;
  EXPECT_THAT(problems_of(report),
              ::testing::UnorderedElementsAre(
                  "report.exercises[].score is no integer", "report.exercises[].tests[] lacks device",
                  "report.exercises[].diagnostics[].severity is none of the values", "report.extra is not described"));
}

TEST(Json, AddsUpSeveralExercises) {
  Verdict full = full_verdict();
  full.score = full.max_score;
  const json report = json::parse(to_json({full, full_verdict()}));
  EXPECT_EQ(report["score"], 13);
  EXPECT_EQ(report["max_score"], 20);
  EXPECT_EQ(report["passed"], false);
  EXPECT_EQ(json::parse(to_json({full}))["passed"], true);
}

TEST(Json, TakesBytesThatAreNoText) {
  Verdict v = full_verdict();
  v.output = "\xff\xfe\x01";
  std::vector<Verdict> back;
  std::string error;
  EXPECT_TRUE(from_json(to_json({v}), &back, &error)) << error;
}

TEST(Json, RefusesWhatIsNoReport) {
  std::vector<Verdict> back;
  std::string error;
  for (const char* text :
       {"", "[]", "{", "{\"version\":1}", "{\"version\":2,\"exercises\":[]}", "{\"version\":1,\"exercises\":[{}]}"}) {
    error.clear();
    EXPECT_FALSE(from_json(text, &back, &error)) << text;
    EXPECT_FALSE(error.empty()) << text;
    EXPECT_TRUE(back.empty());
  }
}

class WriteWhole : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "handoff-json-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(WriteWhole, ReplacesAFileAndLeavesNothingElse) {
  const fs::path path = folder_ / "verdict.json";
  EXPECT_EQ(write_whole(path, "old"), "");
  EXPECT_EQ(write_whole(path, "new"), "");
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(WriteWhole, FollowsALink) {
  std::ofstream(folder_ / "real") << "old";
  fs::create_symlink("real", folder_ / "link");
  EXPECT_EQ(write_whole(folder_ / "link", "new"), "");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "real"), "new");
}

TEST_F(WriteWhole, SaysThatTheDiskIsFullAndKeepsTheDevice) {
  EXPECT_EQ(write_whole("/dev/full", "text"), "cannot write /dev/full: No space left on device");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_F(WriteWhole, SaysWhyItCannotWrite) {
  EXPECT_THAT(write_whole(folder_ / "no" / "file", "x"), HasSubstr("No such file or directory"));
  EXPECT_THAT(write_whole(folder_, "x"), HasSubstr("it is a folder"));
  EXPECT_EQ(why_not_writable(folder_ / "no" / "file"), write_whole(folder_ / "no" / "file", "x"));
  EXPECT_EQ(why_not_writable(folder_), write_whole(folder_, "x"));
}

TEST_F(WriteWhole, TheQuestionLeavesNoTrace) {
  EXPECT_EQ(why_not_writable(folder_ / "new"), "");
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace handoff::report
