#include "grader/runtime/launch_report.h"

#include <nlohmann/json.hpp>

namespace handoff::runtime {
namespace {

using Json = nlohmann::json;

Json place_json(const SourcePlace& place) { return {{"file", place.file}, {"line", place.line}}; }
SourcePlace place_from(const Json& json) {
  return {json.at("file").get<std::string>(), json.at("line").get<uint32_t>()};
}

Json diagnostic_json(const ReportedDiagnostic& reported) {
  const Diagnostic& d = reported.diagnostic;
  Json related = Json::array(), places = Json::array();
  for (const RelatedPlace& r : d.related) related.push_back({{"place", place_json(r.place)}, {"role", r.role}});
  for (const HostPlace& p : reported.places) places.push_back({{"frames", p.frames}, {"role", p.role}});
  return {{"id", d.id},
          {"severity", static_cast<int>(d.severity)},
          {"message", d.message},
          {"hint", d.hint},
          {"place", place_json(d.place)},
          {"related", std::move(related)},
          {"host", places}};
}

ReportedDiagnostic diagnostic_from(const Json& json) {
  ReportedDiagnostic reported;
  Diagnostic& d = reported.diagnostic;
  d.id = json.at("id").get<std::string>();
  d.severity = static_cast<Severity>(json.at("severity").get<int>());
  d.message = json.at("message").get<std::string>();
  d.hint = json.at("hint").get<std::string>();
  d.place = place_from(json.at("place"));
  for (const Json& r : json.at("related")) d.related.push_back({place_from(r.at("place")), r.at("role")});
  for (const Json& p : json.at("host")) reported.places.push_back({p.at("frames").get<HostFrames>(), p.at("role")});
  return reported;
}

}  // namespace

std::string to_line(const RunRecord& record) {
  Json json = {{"kind", static_cast<int>(record.kind)}};
  if (record.kind != RunRecord::Kind::Launch) {
    json["text"] = record.text;
    json["fatal"] = record.fatal;
  } else {
    Json diagnostics = Json::array();
    for (const ReportedDiagnostic& d : record.diagnostics) diagnostics.push_back(diagnostic_json(d));
    json.update({{"number", record.number},
                 {"kernel", record.kernel},
                 {"shape", record.shape},
                 {"status", record.status},
                 {"failure", record.failure},
                 {"schedule", record.schedule},
                 {"modeled_cycles", record.modeled_cycles},
                 {"state", record.state},
                 {"diagnostics", std::move(diagnostics)},
                 {"untold", record.untold}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool from_line(const std::string& line, RunRecord* record) {
  try {
    const Json json = Json::parse(line);
    RunRecord r;
    r.kind = static_cast<RunRecord::Kind>(json.at("kind").get<int>());
    if (r.kind != RunRecord::Kind::Launch) {
      r.text = json.at("text").get<std::string>();
      r.fatal = json.at("fatal").get<bool>();
    } else {
      r.number = json.at("number").get<uint64_t>();
      r.kernel = json.at("kernel").get<std::string>();
      r.shape = json.at("shape").get<std::string>();
      r.status = json.at("status").get<std::string>();
      r.failure = json.at("failure").get<std::string>();
      r.schedule = json.at("schedule").get<std::string>();
      r.modeled_cycles = json.at("modeled_cycles").get<uint64_t>();
      r.state = json.at("state").get<std::vector<std::string>>();
      for (const Json& d : json.at("diagnostics")) r.diagnostics.push_back(diagnostic_from(d));
      r.untold = json.at("untold").get<uint64_t>();
    }
    *record = std::move(r);
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace handoff::runtime
