#include "grader/report/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "grader/harness/catalog.h"
#include "grader/report/figure_spec.h"
#include "grader/report/svg.h"

namespace handoff::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using trace::Event;
using Kind = trace::Event::Kind;

constexpr const char* kSpec = R"(title = "T"
kind = "fields"
source = "solutions/x/kernel.cu"
kernel = "k"
barriers = ["full"]

[launch]
block = 64
smem = 2048
arguments = [{ in = "f32", count = 4 }, { int = 7 },
             { map = "bf16", over = "in", dim = [64, 8], box = [64, 8], swizzle = "128B" }]

[names]
"warp 1" = "consumer"

[show]
to = 900
)";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kSpec;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::vector<std::string> errors_of(const std::string& text) {
  std::vector<std::string> errors;
  read_figure_spec(text, "f.toml", &errors);
  return errors;
}

TEST(FigureSpec, ReadsWhatIsThere) {
  std::vector<std::string> errors;
  const FigureSpec spec = read_figure_spec(kSpec, "f.toml", &errors);
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_EQ(spec.kind, "fields");
  EXPECT_EQ(spec.block, 64u);
  EXPECT_EQ(spec.grid, 1u);
  EXPECT_EQ(spec.to, 900u);
  ASSERT_EQ(spec.arguments.size(), 3u);
  EXPECT_EQ(spec.arguments[1].value, 7);
  EXPECT_EQ(spec.arguments[2].swizzle, "128B");
  EXPECT_EQ(spec.name_of("warp 1"), "consumer");
  EXPECT_EQ(spec.name_of("warp 2"), "warp 2");
}

TEST(FigureSpec, TellsWhatIsWrongAndWhere) {
  EXPECT_THAT(errors_of(with("kind = \"fields\"", "kind = \"pie\"")),
              ElementsAre("f.toml:2: kind must be fields, parity or timeline, got \"pie\""));
  EXPECT_THAT(errors_of(with("[\"full\"]", "[\"full\", \"empty\"]")),
              ElementsAre("f.toml:5: a figure of fields has one barrier"));
  EXPECT_THAT(errors_of(with("block = 64", "block = 0")),
              ElementsAre("f.toml:8: block must be a whole number from 1 to 1024"));
  EXPECT_THAT(errors_of(with("{ int = 7 }", "{ int = 7, out = \"f32\" }")),
              ElementsAre(HasSubstr("exactly one of in, out, int and map")));
  EXPECT_THAT(errors_of(with("box = [64, 8]", "box = [64]")), ElementsAre(HasSubstr("as many in box")));
  EXPECT_THAT(errors_of(with("to = 900", "until = 900")), ElementsAre("f.toml:17: unknown key until"));
  EXPECT_THAT(errors_of(with("kernel = \"k\"\n", "")), ElementsAre("f.toml:1: kernel is missing"));
  EXPECT_THAT(errors_of("title = "), ElementsAre(HasSubstr("f.toml:1: ")));
}

Event event(Kind kind, uint64_t cycle, int32_t warp, const std::string& object, uint64_t phase, uint32_t pending = 0,
            int64_t tx = 0) {
  Event e;
  e.kind = kind;
  e.cycle = cycle;
  e.warp = warp;
  e.mask = 1;
  e.object = object;
  e.phase = phase;
  e.pending = pending;
  e.tx = tx;
  e.line = 10;
  return e;
}

/// Warp 0 announces and copies 2048 bytes, warps 0 and 1 wait; the block starts in cycle 100.
trace::Trace one_copy() {
  trace::Trace trace;
  trace.first_cta.begin = 100;
  trace.first_cta.end = 1100;
  trace.first_cta.warps = {{{100, 200}}, {{100, 150}, {950, 1100}}};
  std::vector<Event>& e = trace.events;
  e.push_back(event(Kind::Init, 110, 0, "full", 0, 1));
  e.push_back(event(Kind::Arrive, 140, 0, "full", 0, 0, 2048));
  e.back().bytes = 2048;
  e.push_back(event(Kind::CopyIssued, 150, 0, "tile", 0));
  e.back().bytes = 2048;
  e.back().op = 5;
  e.back().busy_from = 150;
  e.back().busy_until = 180;
  e.push_back(event(Kind::WaitFalse, 160, 0, "full", 0, 0, 2048));
  e.push_back(event(Kind::WaitFalse, 160, 1, "full", 0, 0, 2048));
  e.push_back(event(Kind::CopyWritten, 900, -1, "tile", 0));
  e.back().op = 5;
  e.push_back(event(Kind::Complete, 900, -1, "full", 0, 0, 0));
  e.back().bytes = 2048;
  e.back().op = 5;
  e.push_back(event(Kind::PhaseComplete, 900, -1, "full", 0));
  e.push_back(event(Kind::WaitTrue, 950, 0, "full", 0, 1));
  e.push_back(event(Kind::WaitTrue, 950, 1, "full", 0, 1));
  return trace;
}

FigureSpec spec_of(const std::string& kind) {
  FigureSpec spec;
  spec.title = "A < B";
  spec.kind = kind;
  spec.source = "solutions/x/kernel.cu";
  spec.barriers = {"full"};
  return spec;
}

std::string draw(const FigureSpec& spec, const trace::Trace& trace, std::string* problem) {
  return draw_figure(spec, {&trace, "nvcc X"}, problem);
}

std::string drawn(const FigureSpec& spec, const trace::Trace& trace) {
  std::string problem;
  std::string svg = draw(spec, trace, &problem);
  EXPECT_EQ(problem, "");
  return svg;
}

/// The words of a figure, in the order drawn.
std::vector<std::string> words_of(const std::string& svg) {
  static const std::regex kText("<text [^>]*>([^<]*)</text>");
  std::vector<std::string> words;
  for (std::sregex_iterator i(svg.begin(), svg.end(), kText), end; i != end; ++i) words.push_back((*i)[1]);
  return words;
}

TEST(Figure, IsTheSameForTheSameRun) {
  for (const char* kind : {"fields", "parity", "timeline"}) {
    FigureSpec spec = spec_of(kind);
    spec.warps = {1};
    const std::string svg = drawn(spec, one_copy());
    EXPECT_EQ(svg, drawn(spec, one_copy()));
    EXPECT_THAT(svg, HasSubstr("A &lt; B"));
    EXPECT_THAT(svg, HasSubstr("PTX by nvcc X"));
  }
}

TEST(Figure, FieldsAreThoseAfterEachEvent) {
  const std::vector<std::string> words = words_of(drawn(spec_of("fields"), one_copy()));
  const auto has = [&](std::initializer_list<std::string> row) {
    return std::search(words.begin(), words.end(), row.begin(), row.end()) != words.end();
  };
  // cycle, who, event, line, pending, tx-count
  EXPECT_TRUE(has({"10", "warp 0", "init, count 1", "10", "1", "0"})) << ::testing::PrintToString(words);
  EXPECT_TRUE(has({"40", "warp 0", "arrive.expect_tx, 2,048 bytes", "10", "0", "2,048"}));
  EXPECT_TRUE(has({"50", "warp 0", "issues a copy to tile, 2,048 bytes", "10", "0", "2,048"}));
  EXPECT_TRUE(has({"60", "warps 0, 1", "wait, parity 0: not yet", "10", "0", "2,048"}));
  EXPECT_TRUE(has({"800", "copy engine", "complete_tx, 2,048 bytes", "0", "0"}));
  EXPECT_TRUE(has({"800", "", "phase 0 is complete", "1", "0"}));
  EXPECT_TRUE(has({"850", "warps 0, 1", "wait, parity 0: true", "10", "1", "0"}));
}

TEST(Figure, FieldsMakeOneRowOfTheLanesOfAnArrive) {
  trace::Trace trace;
  trace.events.push_back(event(Kind::Init, 1, 0, "full", 0, 64));
  for (int warp = 0; warp < 2; ++warp) {
    for (uint32_t lane = 0; lane < 32; ++lane) {
      trace.events.push_back(event(Kind::Arrive, 5, warp, "full", 0, 63 - lane - 32 * static_cast<uint32_t>(warp)));
      trace.events.back().mask = 1u << lane;
    }
  }
  const std::vector<std::string> words = words_of(drawn(spec_of("fields"), trace));
  EXPECT_EQ(std::count(words.begin(), words.end(), "arrive, 32 threads"), 2);
}

TEST(Figure, FieldsAskForEventsInOrderOfTime) {
  trace::Trace trace = one_copy();
  std::swap(trace.events[0].cycle, trace.events[1].cycle);
  std::string problem;
  draw(spec_of("fields"), trace, &problem);
  EXPECT_THAT(problem, HasSubstr("not in order of time"));
}

TEST(Figure, ParityShowsThePhaseBeforeTheFirst) {
  trace::Trace trace;
  trace.events.push_back(event(Kind::Init, 1, 0, "full", 0, 1));
  trace.events.push_back(event(Kind::WaitTrue, 5, 3, "full", UINT64_MAX, 1));
  trace.events.push_back(event(Kind::PhaseComplete, 9, -1, "full", 0));
  trace.events.push_back(event(Kind::WaitTrue, 12, 3, "full", 0, 1));
  FigureSpec spec = spec_of("parity");
  spec.warps = {3};
  spec.variable = "parity ^ 1";
  const std::vector<std::string> words = words_of(drawn(spec, trace));
  EXPECT_THAT(words,
              ElementsAre("wait", "0", "1", "full", "before 0", "phase 0", "parity ^ 1", "the parity passed", "1", "0",
                          "phase complete, cycle", "wait returns, cycle", "–", "5", "9", "12", "A &lt; B"));
  std::string problem;
  spec.warps = {4};
  draw(spec, trace, &problem);
  EXPECT_EQ(problem, "warp 4 waits for none of these barriers");
}

TEST(Figure, TimelineShowsCopiesAndBlockedWaits) {
  FigureSpec spec = spec_of("timeline");
  spec.names["tile"] = "A";
  const std::string svg = drawn(spec, one_copy());
  const std::vector<std::string> words = words_of(svg);
  EXPECT_THAT(words, ::testing::Contains("A, 2,048 bytes"));
  EXPECT_THAT(words, ::testing::Contains("+2,048"));
  EXPECT_THAT(words, ::testing::Contains("waits for an mbarrier"));
  EXPECT_THAT(words, Not(::testing::Contains("a wait that returns at once")));
  EXPECT_THAT(words, ::testing::Contains("phase 0"));
  // 1000 cycles on 726 px from x = 136 on: the copy lies between cycles 50 and 800.
  EXPECT_THAT(svg, HasSubstr("<rect x=\"172.3\" "));
  EXPECT_THAT(svg, HasSubstr("width=\"544.5\" height=\"18\" rx=\"2\" class=\"flight\""));
}

TEST(Figure, TimelineMakesOneBarOfACopyOfTwoParts) {
  trace::Trace trace = one_copy();
  Event more = trace.events[2];
  more.op = 6;
  trace.events.insert(trace.events.begin() + 3, more);
  for (const Kind kind : {Kind::CopyWritten, Kind::Complete}) {
    trace.events.insert(trace.events.end() - 3, event(kind, 895, -1, kind == Kind::Complete ? "full" : "tile", 0));
    (trace.events.end() - 4)->op = 6;
  }
  FigureSpec spec = spec_of("timeline");
  spec.loads = "load";
  EXPECT_THAT(words_of(drawn(spec, trace)), ::testing::Contains("load"));
  spec.loads = "";
  const std::vector<std::string> words = words_of(drawn(spec, trace));
  EXPECT_EQ(std::count(words.begin(), words.end(), "tile, 2,048 bytes"), 2);
}

TEST(Figure, RefusesWhatIsNotThere) {
  FigureSpec spec = spec_of("timeline");
  spec.barriers = {"none"};
  std::string problem;
  EXPECT_EQ(draw(spec, one_copy(), &problem), "");
  EXPECT_EQ(problem, "the run has no mbarrier none");
}

TEST(Figure, ListsEventsOnALineEach) {
  const std::string list = list_events(spec_of("timeline"), one_copy());
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), 10);
  EXPECT_THAT(list, HasSubstr("complete_tx"));
}

// --- the figures that are kept --------------------------------------------------------------------------------------

struct Label {
  std::string words;
  double left, right, top, bottom;
};

/// Where the texts of a figure are, by an upper bound of their widths.
std::vector<Label> labels_of(const std::string& svg) {
  static const std::regex kText(
      "<text x=\"([-0-9.]+)\" y=\"([-0-9.]+)\"(?: class=\"([a-z ]*)\")?(?: text-anchor=\"([a-z]+)\")?>([^<]*)</text>");
  std::vector<Label> labels;
  for (std::sregex_iterator i(svg.begin(), svg.end(), kText), end; i != end; ++i) {
    const std::smatch& m = *i;
    const std::string look = m[3], anchor = m[4];
    const double size = look == "title" ? 15 : look == "small" || look == "dim" || look == "head" ? 11 : 12;
    const double x = std::stod(m[1]), y = std::stod(m[2]), width = text_width(m[5], size);
    const double left = anchor == "middle" ? x - width / 2 : anchor == "end" ? x - width : x;
    labels.push_back({m[5], left, left + width, y - size * 0.75, y + size * 0.2});
  }
  return labels;
}

TEST(KeptFigures, CanBeReadAndDoNotOverlap) {
  namespace fs = std::filesystem;
  const std::regex kFont("font-size: (\\d+)px"), kSize("width=\"(\\d+)\" height=\"([0-9.]+)\"");
  size_t seen = 0;
  for (const fs::directory_entry& chapter : fs::directory_iterator(harness::project_root() / "chapters")) {
    if (!fs::is_directory(chapter.path() / "figures")) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(chapter.path() / "figures")) {
      if (file.path().extension() != ".svg") continue;
      SCOPED_TRACE(file.path().filename().string());
      ++seen;
      std::ifstream in(file.path(), std::ios::binary);
      std::ostringstream text;
      text << in.rdbuf();
      const std::string svg = text.str();
      EXPECT_LT(svg.size(), 60'000u);
      std::smatch size;
      ASSERT_TRUE(std::regex_search(svg, size, kSize));
      const double width = std::stod(size[1]), height = std::stod(size[2]);
      EXPECT_LE(width, 900);
      for (std::sregex_iterator i(svg.begin(), svg.end(), kFont), end; i != end; ++i) EXPECT_GE(std::stoi((*i)[1]), 11);
      const std::vector<Label> labels = labels_of(svg);
      EXPECT_FALSE(labels.empty());
      for (size_t i = 0; i < labels.size(); ++i) {
        const Label& a = labels[i];
        EXPECT_TRUE(a.left >= 0 && a.right <= width && a.bottom <= height) << a.words;
        for (size_t k = i + 1; k < labels.size(); ++k) {
          const Label& b = labels[k];
          const bool apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
          EXPECT_TRUE(apart) << a.words << " and " << b.words;
        }
      }
    }
  }
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace handoff::report
