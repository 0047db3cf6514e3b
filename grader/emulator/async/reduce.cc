#include "grader/emulator/async/reduce.h"

#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "grader/emulator/machine/memory_access.h"

namespace handoff::async {
namespace {

using ptx::Type;

template <class T>
T combine(ReduceOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      // −0 is less than +0, as an H200 says.
      case ReduceOp::Min:
        return a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b);
      case ReduceOp::Max:
        return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
      default:
        return a + b;  // of f32, too, subnormal numbers are kept: an H200 flushes neither operands nor sum
    }
  } else {
    using U = std::make_unsigned_t<T>;
    switch (op) {
      case ReduceOp::Add:
        return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
      case ReduceOp::Min:
        return b < a ? b : a;
      case ReduceOp::Max:
        return b > a ? b : a;
      case ReduceOp::Inc:
        return static_cast<U>(a) >= static_cast<U>(b) ? T{0} : static_cast<T>(a + 1);
      case ReduceOp::Dec:
        return a == 0 || static_cast<U>(a) > static_cast<U>(b) ? b : static_cast<T>(a - 1);
      case ReduceOp::And:
        return static_cast<T>(a & b);
      case ReduceOp::Or:
        return static_cast<T>(a | b);
      case ReduceOp::Xor:
        return static_cast<T>(a ^ b);
      case ReduceOp::None:
        break;
    }
    return a;
  }
}

float flushed(float v) { return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v; }
float combine_flushed(ReduceOp op, float a, float b) {
  return op == ReduceOp::Add ? flushed(flushed(a) + flushed(b)) : combine(op, a, b);
}

template <class T, T (*Combine)(ReduceOp, T, T) = combine<T>>
void each(ReduceOp op, std::byte* d, const std::byte* s, uint32_t bytes) {
  for (uint32_t k = 0; k < bytes; k += sizeof(T)) {
    T a, b;
    std::memcpy(&a, d + k, sizeof a);
    std::memcpy(&b, s + k, sizeof b);
    a = Combine(op, a, b);
    std::memcpy(d + k, &a, sizeof a);
  }
}

template <float (*Widen)(uint16_t), uint16_t (*Narrow)(float)>
void each_half(ReduceOp op, std::byte* d, const std::byte* s, uint32_t bytes) {
  for (uint32_t k = 0; k < bytes; k += 2) {
    uint16_t a, b;
    std::memcpy(&a, d + k, 2);
    std::memcpy(&b, s + k, 2);
    a = Narrow(combine(op, Widen(a), Widen(b)));
    std::memcpy(d + k, &a, 2);
  }
}

}  // namespace

ReduceOp reduce_op_from(const ptx::Resolved& r) {
  struct Name {
    const char* text;
    ReduceOp op;
  };
  static constexpr std::array<Name, 8> kNames = {{{"add", ReduceOp::Add},
                                                  {"min", ReduceOp::Min},
                                                  {"max", ReduceOp::Max},
                                                  {"inc", ReduceOp::Inc},
                                                  {"dec", ReduceOp::Dec},
                                                  {"and", ReduceOp::And},
                                                  {"or", ReduceOp::Or},
                                                  {"xor", ReduceOp::Xor}}};
  for (const Name& n : kNames) {
    if (r.has(n.text)) return n.op;
  }
  return ReduceOp::None;
}

void reduce_bytes(ReduceOp op, Type type, std::byte* d, const std::byte* s, uint32_t bytes, bool flush) {
  switch (type) {
    case Type::F16:
      each_half<machine::half_to_float, machine::float_to_half>(op, d, s, bytes);
      break;
    case Type::BF16:
      each_half<machine::bf16_to_float, machine::float_to_bf16>(op, d, s, bytes);
      break;
    case Type::F32:
      if (flush) {
        each<float, combine_flushed>(op, d, s, bytes);
      } else {
        each<float>(op, d, s, bytes);
      }
      break;
    case Type::F64:
      each<double>(op, d, s, bytes);
      break;
    case Type::S32:
      each<int32_t>(op, d, s, bytes);
      break;
    case Type::S64:
      each<int64_t>(op, d, s, bytes);
      break;
    case Type::U64:
    case Type::B64:
      each<uint64_t>(op, d, s, bytes);
      break;
    default:
      each<uint32_t>(op, d, s, bytes);
      break;
  }
}

}  // namespace handoff::async
