// Tested by json_test.cc.
#include "grader/report/json.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "grader/report/diagnostic_json.h"

namespace handoff::report {
namespace {

namespace fs = std::filesystem;
using harness::FoundDiagnostic;
using harness::Resources;
using harness::SharedMemoryUse;
using harness::TestOutcome;
using harness::Verdict;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;  // raised only where a field is removed or changes its meaning

Severity severity_from(const std::string& text) {
  if (text == "warning") return Severity::Warning;
  return text == "note" ? Severity::Note : Severity::Error;
}

Json test_json(const TestOutcome& t) {
  return {{"name", t.name},
          {"device", t.device},
          {"passed", t.state == TestOutcome::State::Passed},
          {"run", t.state != TestOutcome::State::NotRun},
          {"score", t.score},
          {"max_score", t.max_score},
          {"message", t.message}};
}

TestOutcome test_from(const Json& j) {
  TestOutcome t;
  t.name = j.at("name");
  t.device = j.at("device");
  t.state = !j.at("run").get<bool>()     ? TestOutcome::State::NotRun
            : j.at("passed").get<bool>() ? TestOutcome::State::Passed
                                         : TestOutcome::State::Failed;
  t.score = j.at("score");
  t.max_score = j.at("max_score");
  t.message = j.at("message");
  return t;
}

Json found_json(const FoundDiagnostic& f) {
  Json json = diagnostic_json(f.diagnostic);
  json.update({{"device", f.device}, {"schedule", f.schedule}, {"seed", f.seed}, {"input", f.input}});
  return json;
}

FoundDiagnostic diagnostic_from(const Json& j) {
  FoundDiagnostic f;
  f.diagnostic.id = j.at("id");
  f.diagnostic.severity = severity_from(j.at("severity"));
  f.diagnostic.message = j.at("message");
  f.diagnostic.hint = j.at("hint");
  f.diagnostic.place = {j.at("file"), j.at("line")};
  for (const Json& r : j.at("related")) f.diagnostic.related.push_back({{r.at("file"), r.at("line")}, r.at("role")});
  f.device = j.at("device");
  f.schedule = j.at("schedule");
  f.seed = j.at("seed");
  f.input = j.at("input");
  return f;
}

Json resources_json(const Resources& r) {
  return {{"registers", r.registers},       {"static_smem", r.static_smem}, {"dynamic_smem", r.dynamic_smem},
          {"spill_stores", r.spill_stores}, {"spill_loads", r.spill_loads}, {"stack", r.stack}};
}

Resources resources_from(const Json& j) {
  Resources r;
  r.registers = j.at("registers");
  r.static_smem = j.at("static_smem");
  r.dynamic_smem = j.at("dynamic_smem");
  r.spill_stores = j.at("spill_stores");
  r.spill_loads = j.at("spill_loads");
  r.stack = j.at("stack");
  return r;
}

Json shared_memory_json(const SharedMemoryUse& use) {
  Json conflicts = Json::array();
  for (const trace::SharedLine& line : use.conflicts) {
    conflicts.push_back({{"file", line.place.file},
                         {"line", line.place.line},
                         {"accesses", line.accesses},
                         {"wavefronts", line.wavefronts},
                         {"minimum", line.minimum},
                         {"ways", line.ways}});
  }
  return {{"accesses", use.accesses},
          {"wavefronts", use.wavefronts},
          {"minimum", use.minimum},
          {"distributed_accesses", use.distributed_accesses},
          {"conflicts", std::move(conflicts)}};
}

SharedMemoryUse shared_memory_from(const Json& j) {
  SharedMemoryUse use;
  use.accesses = j.at("accesses");
  use.wavefronts = j.at("wavefronts");
  use.minimum = j.at("minimum");
  use.distributed_accesses = j.at("distributed_accesses");
  for (const Json& c : j.at("conflicts")) {
    use.conflicts.push_back(
        {{c.at("file"), c.at("line")}, c.at("accesses"), c.at("wavefronts"), c.at("minimum"), c.at("ways")});
  }
  return use;
}

Json units_json(const harness::UnitUse& u) {
  return {{"cta_cycles", u.cta_cycles},
          {"load_busy", u.load_busy},
          {"store_busy", u.store_busy},
          {"mma_busy", u.mma_busy},
          {"port_busy", u.port_busy}};
}

harness::UnitUse units_from(const Json& j) {
  return {j.at("cta_cycles"), j.at("load_busy"), j.at("store_busy"), j.at("mma_busy"), j.at("port_busy")};
}

Json timeline_json(const trace::Timeline& t) {
  return {{"begin", t.begin},   {"end", t.end},         {"loads", t.loads},          {"mmas", t.mmas},
          {"stores", t.stores}, {"threads", t.threads}, {"operations", t.operations}};
}

trace::Timeline timeline_from(const Json& j) {
  return {j.at("begin"), j.at("end"), j.at("loads"), j.at("mmas"), j.at("stores"), j.at("threads"), j.at("operations")};
}

Json verdict_json(const Verdict& v) {
  Json tests = Json::array(), diagnostics = Json::array();
  for (const TestOutcome& t : v.tests) tests.push_back(test_json(t));
  for (const FoundDiagnostic& f : v.diagnostics) diagnostics.push_back(found_json(f));
  return {{"exercise", v.exercise},
          {"title", v.title},
          {"submission", v.submission},
          {"passed", v.passed()},
          {"score", v.score},
          {"max_score", v.max_score},
          {"graded", v.could_grade},
          {"problem", v.problem},
          {"problem_detail", v.problem_detail},
          {"tests", std::move(tests)},
          {"diagnostics", std::move(diagnostics)},
          {"modeled_cycles", v.modeled_cycles},
          {"shared_memory", shared_memory_json(v.shared_memory)},
          {"units", units_json(v.units)},
          {"timeline", timeline_json(v.timeline)},
          {"state", v.state},
          {"deadlock_schedule", v.deadlock_schedule},
          {"reproduce", v.reproduce},
          {"output", v.output},
          {"registers", v.resources.registers},
          {"shared_bytes", v.resources.static_smem},
          {"resources", resources_json(v.resources)},
          {"runs", v.runs},
          {"cases", v.cases},
          {"devices", v.devices},
          {"notes", v.notes},
          {"seconds", v.seconds},
          {"nvcc_seconds", v.nvcc_seconds}};
}

Verdict verdict_from(const Json& j) {
  Verdict v;
  v.exercise = j.at("exercise");
  v.title = j.at("title");
  v.submission = j.at("submission");
  v.score = j.at("score");
  v.max_score = j.at("max_score");
  v.could_grade = j.at("graded");
  v.problem = j.at("problem");
  v.problem_detail = j.at("problem_detail");
  for (const Json& t : j.at("tests")) v.tests.push_back(test_from(t));
  for (const Json& d : j.at("diagnostics")) v.diagnostics.push_back(diagnostic_from(d));
  v.modeled_cycles = j.at("modeled_cycles");
  v.shared_memory = shared_memory_from(j.at("shared_memory"));
  v.units = units_from(j.at("units"));
  v.timeline = timeline_from(j.at("timeline"));
  v.state = j.at("state").get<std::vector<std::string>>();
  v.deadlock_schedule = j.at("deadlock_schedule");
  v.reproduce = j.at("reproduce");
  v.output = j.at("output");
  v.resources = resources_from(j.at("resources"));
  v.runs = j.at("runs");
  v.cases = j.at("cases");
  v.devices = j.at("devices");
  v.notes = j.at("notes").get<std::vector<std::string>>();
  v.seconds = j.at("seconds");
  v.nvcc_seconds = j.at("nvcc_seconds");
  return v;
}

std::string cannot_write(const std::string& path, const std::string& reason) {
  return "cannot write " + path + ": " + reason;
}

// Writes and flushes everything; 0 or errno. The descriptor is closed either way. fsync's EINVAL means a device that
// has nothing to flush.
int write_and_close(int fd, const std::string& text) {
  int problem = 0;
  for (size_t sent = 0; sent < text.size() && problem == 0;) {
    const ssize_t n = write(fd, text.data() + sent, text.size() - sent);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      problem = errno;
    }
  }
  if (problem == 0 && fsync(fd) != 0 && errno != EINVAL && errno != EROFS) problem = errno;
  if (close(fd) != 0 && problem == 0) problem = errno;
  return problem;
}

// The file that a symbolic link leads to, so that the link itself is not replaced.
fs::path behind_links(const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::weakly_canonical(path, failed);
  return failed ? fs::path(path) : real;
}

bool exists_and_is_special(const fs::path& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  return fs::exists(status) && !fs::is_regular_file(status);
}

std::string temporary_beside(const fs::path& path) { return path.string() + ".XXXXXX"; }

}  // namespace

std::string to_json(const std::vector<Verdict>& verdicts) {
  int score = 0, max_score = 0;
  bool passed = !verdicts.empty();
  Json exercises = Json::array();
  for (const Verdict& v : verdicts) {
    score += v.score;
    max_score += v.max_score;
    passed = passed && v.passed();
    exercises.push_back(verdict_json(v));
  }
  const Json report = {{"version", kVersion},
                       {"passed", passed},
                       {"score", score},
                       {"max_score", max_score},
                       {"exercises", std::move(exercises)}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool from_json(const std::string& text, std::vector<Verdict>* verdicts, std::string* error) {
  verdicts->clear();
  try {
    const Json report = Json::parse(text);
    if (report.at("version") != kVersion) {
      *error = "the report has another version than " + std::to_string(kVersion);
      return false;
    }
    for (const Json& j : report.at("exercises")) verdicts->push_back(verdict_from(j));
    return true;
  } catch (const Json::exception& e) {
    verdicts->clear();
    *error = e.what();
    return false;
  }
}

std::string why_not_writable(const std::string& path) {
  const fs::path target = behind_links(path);
  std::error_code failed;
  if (fs::is_directory(target, failed)) return cannot_write(path, "it is a folder");
  if (exists_and_is_special(target)) {
    return access(target.c_str(), W_OK) == 0 ? "" : cannot_write(path, std::strerror(errno));
  }
  std::string temporary = temporary_beside(target);
  const int fd = mkstemp(temporary.data());
  if (fd < 0) return cannot_write(path, std::strerror(errno));
  close(fd);
  unlink(temporary.c_str());
  return "";
}

std::string write_whole(const std::string& path, const std::string& text) {
  const fs::path target = behind_links(path);
  std::error_code failed;
  if (fs::is_directory(target, failed)) return cannot_write(path, "it is a folder");
  if (exists_and_is_special(target)) {
    const int fd = open(target.c_str(), O_WRONLY | O_CLOEXEC);
    const int problem = fd < 0 ? errno : write_and_close(fd, text);
    return problem == 0 ? "" : cannot_write(path, std::strerror(problem));
  }
  std::string temporary = temporary_beside(target);
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return cannot_write(path, std::strerror(errno));
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(fd, 0666 & ~mask);  // mkstemp's 0600 would keep a class's scripts from reading it
  int problem = write_and_close(fd, text);
  if (problem == 0 && rename(temporary.c_str(), target.c_str()) != 0) problem = errno;
  if (problem != 0) unlink(temporary.c_str());
  return problem == 0 ? "" : cannot_write(path, std::strerror(problem));
}

}  // namespace handoff::report
