// Tested by timing_test.cc.
#include "grader/timing/record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace handoff::timing {

using Json = nlohmann::ordered_json;

std::string to_json(const Record& record) {
  const Json about = {
      {"date", record.date}, {"driver", record.driver}, {"gpu", record.gpu}, {"toolkit", record.toolkit}};
  // nlohmann's indentation would spread a probe over five lines.
  std::string text = "{\n\"about\": " + about.dump() + ",\n\"probes\": {";
  const char* separator = "\n";
  for (const auto& [name, r] : record.probes) {
    const Json entry = {
        {"median", r.round.median}, {"least", r.round.least}, {"most", r.round.most}, {"kernel", r.fingerprint}};
    text += separator + Json(name).dump() + ": " + entry.dump();
    separator = ",\n";
  }
  return text + "\n}\n}\n";
}

std::string from_json(const std::string& text, Record* out) {
  *out = Record{};
  try {
    const Json json = Json::parse(text);
    const Json& about = json.at("about");
    out->gpu = about.at("gpu").get<std::string>();
    out->driver = about.at("driver").get<std::string>();
    out->date = about.at("date").get<std::string>();
    out->toolkit = about.at("toolkit").get<std::string>();
    for (const auto& [name, entry] : json.at("probes").items()) {
      Recorded& r = out->probes[name];
      r.round = {entry.at("median").get<double>(), entry.at("least").get<double>(), entry.at("most").get<double>()};
      r.fingerprint = entry.at("kernel").get<std::string>();
    }
  } catch (const nlohmann::json::exception& e) {
    return fmt::format("is no record of measurements: {}", e.what());
  }
  return "";
}

}  // namespace handoff::timing
