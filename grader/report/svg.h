// The little of SVG that figures need: shapes by class, and a style for light and dark.
#pragma once

#include <cstdint>
#include <string>

namespace handoff::report {

/// A picture while it is drawn. Coordinates in px from the upper left corner; `look` is a class of the style sheet in
/// svg.cc.
class Svg {
 public:
  /// Where a text's position is.
  enum class Anchor : uint8_t { Start, Middle, End };
  /// Words on the baseline y.
  void text(double x, double y, const std::string& look, const std::string& words, Anchor anchor = Anchor::Start);
  /// A rectangle with its upper left corner at (x, y); `radius` rounds its corners.
  void rect(double x, double y, double width, double height, const std::string& look, double radius = 0);
  /// A line from (x1, y1) to (x2, y2).
  void line(double x1, double y1, double x2, double y2, const std::string& look);
  /// A mark of about 10 px around (x, y): "triangle", "diamond", "square" or "circle".
  void mark(double x, double y, const std::string& shape, const std::string& look);
  /// The file: background, a title and a description for those who do not see it, and what was drawn.
  std::string finish(double width, double height, const std::string& title, const std::string& description) const;

 private:
  std::string body_;
};

/// Width that `words` take at most in the figures' font, px. `size` is the font's, px.
double text_width(const std::string& words, double size);

}  // namespace handoff::report
