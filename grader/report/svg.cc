// Tested by figure_test.cc.
//
// Colours are those of Okabe and Ito (2008), which readers with any colour vision tell apart, and paler ones of the
// same hues for areas; nothing is told by colour alone. A browser shows an SVG in a page without the page's style, so
// the file brings a background of its own and follows the reader's choice of light or dark.
#include "grader/report/svg.h"

#include <fmt/format.h>

#include "grader/report/terminal.h"

namespace handoff::report {
namespace {

constexpr const char* kStyle = R"(
text { font-family: system-ui, -apple-system, "Segoe UI", "Liberation Sans", Arial, sans-serif; font-size: 12px; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .small { font-size: 11px } .dim { font-size: 11px; fill: #57606a }
.head { font-size: 11px; font-weight: 600; fill: #57606a } .strong { font-weight: 600 }
.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace }
.back { fill: #ffffff; stroke: #d0d7de } .grid { stroke: #d8dee4 } .rule { stroke: #afb8c1 }
.done { stroke: #57606a; stroke-dasharray: 3 3 }
.even { fill: #cbe3f4; stroke: #0072b2 } .odd { fill: #fbe0b0; stroke: #b87800 }
.wave { stroke: #1f2328; stroke-width: 2 }
.flight { fill: #c5e8dc; stroke: #009e73 } .moving { fill: #009e73 } .read { stroke: #00664a; stroke-width: 1.5 }
.queued { fill: #f0d9e6; stroke: #a8457f } .multiply { fill: #cc79a7 }
.running { fill: #8c959f } .waiting { fill: url(#hatch); stroke: #8c959f; stroke-dasharray: 2 2 }
.hatch { stroke: #b6bec7; stroke-width: 2 } .hatchback { fill: #f6f8fa } .plate { fill: #f6f8fa }
.arrive { fill: #0072b2 } .expect { fill: #d55e00 } .commit { fill: #a8457f } .other { fill: #1f2328; stroke: #ffffff }
.wait, .load { fill: #ffffff; stroke: #1f2328; stroke-width: 1.2 } .load { stroke: #a8457f }
.store { fill: #a8457f; stroke: #ffffff } .alloc { fill: #cc79a7; stroke: #1f2328 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim, .head { fill: #9da7b1 }
.back { fill: #0d1117; stroke: #30363d } .grid { stroke: #262c34 } .rule { stroke: #484f58 }
.done { stroke: #9da7b1 } .wave { stroke: #e6edf3 }
.even { fill: #123a57; stroke: #56b4e9 } .odd { fill: #55400f; stroke: #e69f00 }
.flight { fill: #0f3f33; stroke: #2bc49a } .moving { fill: #009e73 } .read { stroke: #7fe0c2 }
.queued { fill: #46263a; stroke: #cc79a7 } .multiply { fill: #a8457f }
.running { fill: #6e7681 } .waiting { stroke: #6e7681 }
.hatch { stroke: #3d444d } .hatchback, .plate { fill: #161b22 }
.arrive { fill: #56b4e9 } .expect { fill: #ff8a3d } .commit { fill: #cc79a7 } .other { fill: #e6edf3; stroke: #0d1117 }
.wait, .load { fill: #0d1117; stroke: #e6edf3 } .load { stroke: #cc79a7 }
.store { fill: #cc79a7; stroke: #0d1117 } .alloc { stroke: #e6edf3 }
}
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// A coordinate: tenths of a pixel are enough, and whole ones are written without them.
std::string at(double x) {
  const auto tenths = static_cast<long>(x * 10 + (x < 0 ? -0.5 : 0.5));
  return tenths % 10 == 0 ? fmt::format("{}", tenths / 10) : fmt::format("{:.1f}", static_cast<double>(tenths) / 10);
}

}  // namespace

void Svg::text(double x, double y, const std::string& look, const std::string& words, Anchor anchor) {
  const char* where = anchor == Anchor::Start    ? ""
                      : anchor == Anchor::Middle ? " text-anchor=\"middle\""
                                                 : " text-anchor=\"end\"";
  body_ += fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", at(x), at(y),
                       look.empty() ? "" : " class=\"" + look + "\"", where, escaped(words));
}

void Svg::rect(double x, double y, double width, double height, const std::string& look, double radius) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{} class=\"{}\"/>\n", at(x), at(y), at(width),
                       at(height), radius > 0 ? " rx=\"" + at(radius) + "\"" : "", look);
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& look) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", at(x1), at(y1), at(x2), at(y2),
                       look);
}

void Svg::mark(double x, double y, const std::string& shape, const std::string& look) {
  if (shape == "circle") {
    body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" class=\"{}\"/>\n", at(x), at(y), look);
    return;
  }
  const char* path = shape == "down"       ? "m-5 0 h10 l-5 9 z"
                     : shape == "triangle" ? "l5 9 h-10 z"
                     : shape == "diamond"  ? "l5.5 5.5 l-5.5 5.5 l-5.5 -5.5 z"
                                           : "h4 v8 h-8 v-8 z";
  const double top = shape == "square" ? y - 4 : shape == "diamond" ? y - 5.5 : y - 5;
  body_ += fmt::format("<path d=\"M{} {} {}\" class=\"{}\"/>\n", at(x), at(top), path, look);
}

std::string Svg::finish(double width, double height, const std::string& title, const std::string& description) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n"
      "<title>{2}</title>\n<desc>{3}</desc>\n<style>{4}</style>\n"
      "<defs><pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
      "patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" class=\"hatchback\"/>"
      "<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\" class=\"hatch\"/></pattern></defs>\n"
      "<rect x=\"0.5\" y=\"0.5\" width=\"{5}\" height=\"{6}\" rx=\"6\" class=\"back\"/>\n{7}</svg>\n",
      at(width), at(height), escaped(title), escaped(description), kStyle, at(width - 1), at(height - 1), body_);
}

double text_width(const std::string& words, double size) {
  // No glyph of the fonts named above that figures use is wider on average: digits, lower case, a few capitals.
  constexpr double kWidest = 0.58;
  return static_cast<double>(display_width(words)) * size * kWidest;
}

}  // namespace handoff::report
