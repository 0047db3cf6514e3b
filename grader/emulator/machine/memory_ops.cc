// Tested by memory_ops_test.cc.
//
// Loads, stores, atomics and address conversions of the generic proxy (PTX §9.7.9). Each access is checked for
// alignment and bounds before it happens: a fault names the first lane that breaks the rule. A generic address is
// resolved lane by lane; accesses that name their space skip that. Shared addresses bear the rank of their CTA in the
// upper byte (memory.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/matrix_ops.h"
#include "grader/emulator/machine/memory_access.h"
#include "grader/emulator/machine/program.h"
#include "grader/emulator/machine/timing.h"
#include "grader/emulator/machine/warp.h"

namespace handoff::machine {
namespace {

using ptx::Space;
using ptx::Type;

// Selector of the access kind in Inst::sub.
constexpr uint8_t kSpaceMask = 7;  // ptx space class, below
constexpr uint8_t kGenericSpace = 0, kGlobalSpace = 1, kSharedSpace = 2, kLocalSpace = 3, kClusterSpace = 4;
constexpr uint8_t kWideAddress = 8;

uint8_t space_class(Space s) {
  switch (s) {
    case Space::Global:
      return kGlobalSpace;
    case Space::Shared:
    case Space::SharedCta:
      return kSharedSpace;
    case Space::SharedCluster:
      return kClusterSpace;
    case Space::Local:
      return kLocalSpace;
    default:
      return kGenericSpace;
  }
}

// Inst::imm of accesses packs sem, scope, element bytes, element count and conversion.
struct AccessMode {
  Sem sem;
  Scope scope;
  uint8_t element;      // bytes of one element in memory
  uint8_t count;        // elements (vector length)
  uint8_t sign_extend;  // load: sign-extend into the register
  uint8_t op;           // atomics: AtomOp
  uint8_t type;         // atomics: ptx::Type
  uint8_t unobserved;   // parameters and constants: nobody can write them, so nobody needs to know
};
static_assert(sizeof(AccessMode) <= 8);
uint64_t pack(const AccessMode& m) {
  uint64_t v = 0;
  std::memcpy(&v, &m, sizeof m);
  return v;
}
AccessMode unpack(uint64_t v) {
  AccessMode m;
  std::memcpy(&m, &v, sizeof m);
  return m;
}

Sem sem_of(const ptx::Resolved& r) {
  if (r.has("volatile")) return Sem::Volatile;
  if (r.has("mmio")) return Sem::Relaxed;
  if (r.has("acq_rel")) return Sem::AcqRel;
  if (r.has("acquire")) return Sem::Acquire;
  if (r.has("release")) return Sem::Release;
  if (r.has("relaxed")) return Sem::Relaxed;
  return Sem::Weak;
}

struct Target {
  std::byte* host;
  Region region;
  Cta* owner;
  uint64_t address;  // as observers see it
};

const char* region_name(Region r) { return r == Region::Global ? "global" : r == Region::Shared ? "shared" : "local"; }

[[noreturn]] void fault_bounds(Warp& w, int lane, uint64_t address, Region region, uint32_t bytes, const char* verb) {
  const Launch& launch = *w.cta->launch;
  std::string where;
  if (region == Region::Global) {
    where = fmt::format("global address {:#x}, {}", address, launch.memory->describe(address));
  } else if (region == Region::Shared) {
    const Cta& cta = *w.cta;
    const auto end = static_cast<uint32_t>(cta.smem.size());
    const auto offset = static_cast<uint32_t>(address);
    where = offset >= end
                ? fmt::format("shared offset {:#x}, {} bytes past the end of the CTA's {} bytes of shared memory",
                              offset, offset - end, end - kSharedBase)
            : offset < kSharedBase
                ? fmt::format("shared offset {:#x}, below the CTA's shared memory, which starts at {:#x}", offset,
                              kSharedBase)
                : fmt::format(
                      "shared offset {:#x}, whose last byte lies past the end of the CTA's {} bytes of shared memory",
                      offset, end - kSharedBase);
    if (const SharedSymbol* s = launch.program->find_shared(offset); s != nullptr && !s->dynamic)
      where += fmt::format(" (`{}`+{})", s->name, offset - s->offset);
  } else {
    where = fmt::format("local offset {:#x}, outside the thread's {} bytes of local memory", address,
                        launch.program->local_bytes);
  }
  throw make_fault("out-of-bounds",
                   fmt::format("{} {} {} bytes at {}", describe_lanes(w, LaneMask{1} << lane), verb, bytes, where));
}

[[noreturn]] void fault_misaligned(Warp& w, int lane, uint64_t address, Region region, uint32_t bytes,
                                   const char* verb) {
  std::string where = region == Region::Shared ? w.cta->launch->program->describe_shared(static_cast<uint32_t>(address))
                                               : fmt::format("{} address {:#x}", region_name(region), address);
  throw make_fault("misaligned", fmt::format("{} {} {} bytes at {}, which is not a multiple of {}",
                                             describe_lanes(w, LaneMask{1} << lane), verb, bytes, where, bytes));
}

/// The system's part of shared memory is out of bounds, but not for a kernel that asks where it is, as
/// cooperative_groups does.
bool knows_reserved_region(const Program& program) {
  return std::any_of(program.specials.begin(), program.specials.end(),
                     [](const Program::Special& s) { return s.which == SpecialRegister::ReservedSmemBegin; });
}

Target resolve_shared(Warp& w, int lane, uint64_t address, bool own_only, uint32_t bytes, const char* verb) {
  const uint32_t offset = static_cast<uint32_t>(address) & kSharedOffsetMask;
  Cta* owner = shared_owner(w, static_cast<uint32_t>(address), own_only, [&] {
    return fmt::format("{} {} {} bytes at", describe_lanes(w, LaneMask{1} << lane), verb, bytes);
  });
  if ((offset & (bytes - 1)) != 0) fault_misaligned(w, lane, offset, Region::Shared, bytes, verb);
  if ((offset < kSharedBase && !knows_reserved_region(*w.cta->launch->program)) || offset + bytes > owner->smem.size())
    fault_bounds(w, lane, offset, Region::Shared, bytes, verb);
  return {owner->smem.data() + offset, Region::Shared, owner, offset};
}

Target resolve_global(Warp& w, int lane, uint64_t address, uint32_t bytes, bool write, const char* verb) {
  const Allocation* a = w.cta->launch->memory->find(address, bytes);
  if (a == nullptr) fault_bounds(w, lane, address, Region::Global, bytes, verb);
  if ((address & (bytes - 1)) != 0) fault_misaligned(w, lane, address, Region::Global, bytes, verb);
  if (write && !a->writable) {
    throw make_fault("out-of-bounds", fmt::format("{} {} {} bytes at {}, which is constant memory",
                                                  describe_lanes(w, LaneMask{1} << lane), verb, bytes,
                                                  w.cta->launch->memory->describe(address)));
  }
  return {a->host + (address - a->base), Region::Global, nullptr, address};
}

Target resolve_local(Warp& w, int lane, uint64_t address, uint32_t bytes, const char* verb) {
  const auto offset = static_cast<uint32_t>(address);
  if (uint64_t{offset} + bytes > w.cta->launch->program->local_bytes)
    fault_bounds(w, lane, offset, Region::Local, bytes, verb);
  if ((offset & (bytes - 1)) != 0) fault_misaligned(w, lane, offset, Region::Local, bytes, verb);
  return {w.local_of(lane) + offset, Region::Local, nullptr, offset};
}

Target resolve(Warp& w, const Inst& i, int lane, uint64_t address, uint32_t bytes, bool write, const char* verb) {
  switch (i.sub & kSpaceMask) {
    case kGlobalSpace:
      return resolve_global(w, lane, address, bytes, write, verb);
    case kSharedSpace:
      return resolve_shared(w, lane, address, true, bytes, verb);
    case kClusterSpace:
      return resolve_shared(w, lane, address, false, bytes, verb);
    case kLocalSpace:
      return resolve_local(w, lane, address, bytes, verb);
    default:
      break;
  }
  if (in_shared_window(address)) return resolve_shared(w, lane, address, false, bytes, verb);
  if (in_local_window(address)) return resolve_local(w, lane, address, bytes, verb);
  return resolve_global(w, lane, address, bytes, write, verb);
}

inline uint64_t lane_address(const Warp& w, const Inst& i, int lane) {
  const uint64_t base =
      (i.sub & kWideAddress) != 0 ? lanes<uint64_t>(w.regs, i.a)[lane] : lanes<uint32_t>(w.regs, i.a)[lane];
  const uint64_t a = base + static_cast<uint64_t>(i.offset);
  return (i.sub & kWideAddress) != 0 ? a : static_cast<uint32_t>(a);
}

/// Collects what an instruction touched, by region and owner, and tells the observer.
class Recorder {
 public:
  Recorder(Warp& w, const Inst& i, Access::Kind kind, Sem sem, Scope scope, uint32_t bytes, bool wanted = true,
           const uint32_t* stored = nullptr)
      : w_(w), on_(wanted && watches_accesses(*w.cta->launch)), access_{&w,    &i,    0,     kind,     Region::Global,
                                                                        sem,   scope, bytes, address_, nullptr,
                                                                        stored} {}
  ~Recorder() = default;
  void add(int lane, const Target& t) {
    if (!on_) return;
    lanes_ |= LaneMask{1} << lane;
    region_[lane] = t.region;
    owner_[lane] = t.owner;
    address_[lane] = t.address;
  }
  /// One access for each place: what lanes of one instruction do there is told together.
  void flush() {
    Observer* const o = watcher(*w_.cta->launch);
    if (o == nullptr) return;
    for (LaneMask rest = lanes_; rest != 0; rest &= ~access_.mask) {
      const int first = __builtin_ctz(rest);
      access_.region = region_[first];
      access_.owner = owner_[first];
      access_.mask = 0;
      for_lanes(rest, [&](int l) {
        if (region_[l] == access_.region && owner_[l] == access_.owner) access_.mask |= LaneMask{1} << l;
      });
      o->access(access_);
    }
    lanes_ = 0;
  }

 private:
  Warp& w_;
  bool on_;
  LaneMask lanes_ = 0;  // that take part
  Region region_[kWarpSize];
  Cta* owner_[kWarpSize];
  uint64_t address_[kWarpSize];
  Access access_;
};

/// Do the bytes [lo, hi) of a CTA's shared memory include some of a live mbarrier?
bool hits_barrier(Cta& cta, uint64_t lo, uint64_t hi) {
  if (lo >= cta.guarded_hi || hi <= cta.guarded_lo) return false;
  const AsyncHooks* async = cta.launch->async;
  return async != nullptr && async->hits_barrier != nullptr &&
         async->hits_barrier(cta, static_cast<uint32_t>(lo), static_cast<uint32_t>(hi - lo));
}

/// Only mbarrier operations may touch a live barrier (PTX §9.7.13.15.3). `does`: "reads", "writes".
void guard_barrier(Warp& w, const Inst& i, int lane, const Target& t, uint32_t bytes, const char* does) {
  if (t.region != Region::Shared || !hits_barrier(*t.owner, t.address, t.address + bytes)) return;
  Launch& launch = *w.cta->launch;
  launch.report(i, "barrier-overwritten",
                fmt::format("{} {} {} bytes of the live mbarrier `{}`", describe_threads(w, LaneMask{1} << lane), does,
                            bytes, launch.program->describe_shared(static_cast<uint32_t>(t.address) & ~7u)),
                "A barrier's 8 bytes may be used for nothing else until mbarrier.inval; mbarrier.test_wait tells its "
                "phase, the token of an arrive its pending count.");
}

/// A write changed memory: wake what may watch it.
void after_write(Warp& w, const Target& t) {
  if (t.region == Region::Global) {
    touch_global(*w.cta->launch);
  } else if (t.region == Region::Shared) {
    touch_shared(*t.owner);
  }
}

void store_element(std::byte* host, const std::byte* reg, uint32_t bytes) {
  switch (bytes) {
    case 1:
      std::memcpy(host, reg, 1);
      break;
    case 2:
      std::memcpy(host, reg, 2);
      break;
    case 4:
      std::memcpy(host, reg, 4);
      break;
    case 8:
      std::memcpy(host, reg, 8);
      break;
    default:
      std::memcpy(host, reg, 16);
      break;
  }
}

template <class T>
T from_bytes(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

void load_element(std::byte* reg, SlotWidth slot, const std::byte* host, const AccessMode& m) {
  uint64_t v = 0;
  switch (m.element) {
    case 1: {
      uint8_t x;
      std::memcpy(&x, host, 1);
      v = m.sign_extend != 0 ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int8_t>(x))) : x;
      break;
    }
    case 2: {
      uint16_t x;
      std::memcpy(&x, host, 2);
      v = m.sign_extend != 0 ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(x))) : x;
      break;
    }
    case 4: {
      uint32_t x;
      std::memcpy(&x, host, 4);
      v = m.sign_extend != 0 ? static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(x))) : x;
      break;
    }
    case 8:
      std::memcpy(&v, host, 8);
      break;
    default:
      std::memcpy(reg, host, 16);
      return;
  }
  if (slot == 4) {
    const auto x = static_cast<uint32_t>(v);
    std::memcpy(reg, &x, 4);
  } else {
    std::memset(reg + 8, 0, slot - 8u);
    std::memcpy(reg, &v, 8);
  }
}

// Registers of one access: pool entries are slot | width class in the low bits (slots are multiples of 64).
uint32_t tag(uint32_t slot, SlotWidth width, bool narrow) {
  return slot | (width == 4 ? 1u : width == 8 ? 2u : 3u) | (narrow ? 4u : 0u);
}
uint32_t slot_of(uint32_t tagged) { return tagged & ~63u; }
SlotWidth width_of(uint32_t tagged) {
  return static_cast<SlotWidth>((tagged & 3u) == 1 ? 4 : (tagged & 3u) == 2 ? 8 : 16);
}

/// Loads an element into a lane's part of a register of the pool; returns where that is.
std::byte* load_register(Warp& w, uint32_t tagged, int lane, const std::byte* host, const AccessMode& m) {
  const SlotWidth slot = width_of(tagged);
  std::byte* r = w.regs + slot_of(tagged) + static_cast<size_t>(lane) * slot;
  load_element(r, slot, host, m);
  if ((tagged & 4u) != 0) std::memset(r + 2, 0, 2);  // a 16-bit register: upper bits stay zero
  return r;
}

/// Where the lanes of a full warp access memory: at(lane). In a row: each lane's 4 bytes follow those of the lane
/// before; then only the offset of lane 0 is set.
struct Places {
  std::byte* host = nullptr;  ///< of address `origin`
  uint64_t origin = 0;
  uint64_t offset[kWarpSize];
  bool row = false;
  std::byte* at(int lane) const { return host + (offset[lane] - origin); }
};

/// What each lane of a row lies behind lane 0: an array and not a product, since GCC makes vectors of the loop below
/// only with the array.
template <class T>
constexpr std::array<T, kWarpSize> row_distances() {
  std::array<T, kWarpSize> d{};
  for (uint32_t l = 0; l < kWarpSize; l++) d[l] = T{4} * l;
  return d;
}

/// Does each lane's base address follow that of the lane before by 4?
template <class T>
bool in_a_row(const T* base) {
  static constexpr std::array<T, kWarpSize> kDistance = row_distances<T>();
  T stray = 0;
  for (size_t l = 0; l < kWarpSize; l++) stray |= (base[l] - base[0]) ^ kDistance[l];
  return stray == 0;
}

/// The common case made fast: full warp, global or shared memory, 4-byte elements of 32-bit slots, every lane in bounds
/// and aligned, no live mbarrier touched. Returns false if it does not apply; the slow path then finds out what is
/// wrong.
bool fast_places(const Warp& w, const Inst& i, LaneMask mask, const AccessMode& m, bool write, Places* out) {
  const Launch& launch = *w.cta->launch;
  if (mask != kFullMask || m.element != 4 || m.count != 1) return false;
  if (width_of(launch.program->operand_pool[i.list]) != 4) return false;
  // Most accesses are in a row, which needs neither the lanes' addresses nor a minimum and maximum. A row that wraps
  // around ends out of bounds.
  uint64_t* a = out->offset;
  const auto take = [&]<class T>(const T* base) {
    const auto offset = static_cast<T>(i.offset);
    out->row = in_a_row(base);
    a[0] = static_cast<T>(base[0] + offset);
    if (out->row) return;
    for (int l = 0; l < kWarpSize; l++) a[l] = static_cast<T>(base[l] + offset);
  };
  if ((i.sub & kWideAddress) != 0)
    take(lanes<uint64_t>(w.regs, i.a));
  else
    take(lanes<uint32_t>(w.regs, i.a));
  uint64_t lo = a[0], hi = a[0] + 4 * (kWarpSize - 1), bits = a[0];
  if (!out->row) {
    hi = lo;
    for (int l = 0; l < kWarpSize; l++) {
      lo = a[l] < lo ? a[l] : lo;
      hi = a[l] > hi ? a[l] : hi;
      bits |= a[l];
    }
  }
  if ((bits & 3) != 0 || hi < lo) return false;
  const uint8_t space = i.sub & kSpaceMask;
  if (space == kSharedSpace) {
    const uint64_t window = w.cta->window;
    if (lo < window + kSharedBase || hi > window + w.cta->smem.size() - 4) return false;
    if (hits_barrier(*w.cta, lo - window, hi - window + 4)) return false;
    out->host = w.cta->smem.data();
    out->origin = window;
    return true;
  }
  if (space != kGlobalSpace) return false;
  const Allocation* al = launch.memory->find(lo, hi - lo + 4);
  if (al == nullptr || (write && !al->writable)) return false;
  out->host = al->host;
  out->origin = al->base;
  return true;
}

/// Tells the observer of an access that fast_places() took. REQUIRES: it watches accesses.
[[maybe_unused]] void observe_fast(Warp& w, const Inst& i, const AccessMode& m, Access::Kind kind, Places& p) {
  if (m.unobserved != 0) return;
  if (p.row) {
    for (uint32_t l = 1; l < kWarpSize; l++) p.offset[l] = p.offset[0] + uint64_t{4} * l;
  }
  const bool shared = (i.sub & kSpaceMask) == kSharedSpace;
  if (shared && p.origin != 0) {
    for (uint64_t& offset : p.offset) offset -= p.origin;
  }
  const Region region = shared ? Region::Shared : Region::Global;
  const uint32_t* stored = kind == Access::Kind::Write ? &w.cta->launch->program->operand_pool[i.list] : nullptr;
  watcher(*w.cta->launch)
      ->access({&w, &i, kFullMask, kind, region, m.sem, m.scope, 4, p.offset, shared ? w.cta : nullptr, stored});
}

/// A parameter or constant that every lane of a full warp reads at one address: found and read once, for all lanes.
/// Returns false if it is not so.
bool load_for_all(Warp& w, const Inst& i, LaneMask mask, const AccessMode& m) {
  if (mask != kFullMask || m.unobserved == 0) return false;
  const uint64_t address = lane_address(w, i, 0);
  for (int l = 1; l < kWarpSize; l++) {
    if (lane_address(w, i, l) != address) return false;
  }
  const Target t = resolve(w, i, 0, address, uint32_t{m.element} * m.count, false, "reads");
  if (t.region != Region::Global) return false;
  const uint32_t* regs = &w.cta->launch->program->operand_pool[i.list];
  for (uint32_t e = 0; e < m.count; e++) {
    if (regs[e] == kNoOperand) continue;
    const SlotWidth slot = width_of(regs[e]);
    const std::byte* r = load_register(w, regs[e], 0, t.host + e * m.element, m);
    if (slot == 4) {
      std::fill_n(lanes<uint32_t>(w.regs, slot_of(regs[e])), kWarpSize, from_bytes<uint32_t>(r));
    } else if (slot == 8) {
      std::fill_n(lanes<uint64_t>(w.regs, slot_of(regs[e])), kWarpSize, from_bytes<uint64_t>(r));
    } else {
      for (int l = 1; l < kWarpSize; l++) load_register(w, regs[e], l, t.host + e * m.element, m);
    }
  }
  return true;
}

/// `kWatched`: the launch has an observer of accesses. Two handlers, and not a question in one, so that a run that
/// nobody watches does not ask (Inst::watched_fn).
template <bool kWatched>
void load(Warp& w, const Inst& i, LaneMask mask) {
  const AccessMode m = unpack(i.imm);
  if (Places p; fast_places(w, i, mask, m, false, &p)) {
    auto* d = lanes<uint32_t>(w.regs, slot_of(w.cta->launch->program->operand_pool[i.list]));
    if (p.row) {
      std::memcpy(d, p.at(0), 4 * kWarpSize);
    } else {
      for (int l = 0; l < kWarpSize; l++) std::memcpy(&d[l], p.at(l), 4);
    }
    if constexpr (kHooks && kWatched) observe_fast(w, i, m, Access::Kind::Read, p);
    return;
  }
  if (load_for_all(w, i, mask, m)) return;
  const uint32_t bytes = uint32_t{m.element} * m.count;
  Recorder record(w, i, Access::Kind::Read, m.sem, m.scope, bytes, m.unobserved == 0);
  const uint32_t* regs = &w.cta->launch->program->operand_pool[i.list];
  // All addresses are read before any destination is written: a vector load may overwrite its own base.
  uint64_t address[kWarpSize];
  bool remote = false;
  for_lanes(mask, [&](int l) { address[l] = lane_address(w, i, l); });
  Target t{nullptr, Region::Local, nullptr, 0};
  for_lanes(mask, [&](int l) {
    // Neighbours that read one global address, as all do of a parameter, share what it resolves to.
    if (t.region != Region::Global || t.address != address[l]) t = resolve(w, i, l, address[l], bytes, false, "reads");
    remote = remote || (t.owner != nullptr && t.owner != w.cta);
    guard_barrier(w, i, l, t, bytes, "reads");
    for (uint32_t e = 0; e < m.count; e++) {
      if (regs[e] == kNoOperand) continue;
      load_register(w, regs[e], l, t.host + e * m.element, m);
    }
    record.add(l, t);
  });
  if (remote) w.time += timing_of(*w.cta->launch).remote_access;
  record.flush();
}

/// The register of a lane in slot `reg`, as the operand list of a store names it.
const std::byte* stored_register(const Warp& w, uint32_t reg, int lane) {
  return w.regs + slot_of(reg) + static_cast<size_t>(lane) * width_of(reg);
}

template <bool kWatched>  // as for load
void store(Warp& w, const Inst& i, LaneMask mask) {
  const AccessMode m = unpack(i.imm);
  note_effect(w);
  if (Places p; fast_places(w, i, mask, m, true, &p)) {
    const auto* v = lanes<uint32_t>(w.regs, slot_of(w.cta->launch->program->operand_pool[i.list]));
    if (p.row) {
      std::memcpy(p.at(0), v, 4 * kWarpSize);
    } else {
      for (int l = 0; l < kWarpSize; l++) std::memcpy(p.at(l), &v[l], 4);
    }
    if ((i.sub & kSpaceMask) == kSharedSpace)
      touch_shared(*w.cta);
    else
      touch_global(*w.cta->launch);
    if constexpr (kHooks && kWatched) observe_fast(w, i, m, Access::Kind::Write, p);
    return;
  }
  const uint32_t bytes = uint32_t{m.element} * m.count;
  const uint32_t* regs = &w.cta->launch->program->operand_pool[i.list];
  Recorder record(w, i, Access::Kind::Write, m.sem, m.scope, bytes, true, regs);
  for_lanes(mask, [&](int l) {
    const Target t = resolve(w, i, l, lane_address(w, i, l), bytes, true, "writes");
    for (uint32_t e = 0; e < m.count; e++) {
      store_element(t.host + e * m.element, stored_register(w, regs[e], l), m.element);
    }
    guard_barrier(w, i, l, t, bytes, "writes");
    after_write(w, t);
    record.add(l, t);
  });
  record.flush();
}

// --- atomics ---------------------------------------------------------------------------------------------------------

enum class AtomOp : uint8_t { And, Or, Xor, Cas, Exch, Add, Inc, Dec, Min, Max };

template <class T>
T atom_integer(AtomOp op, T old, T b, T c) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case AtomOp::And:
      return static_cast<T>(old & b);
    case AtomOp::Or:
      return static_cast<T>(old | b);
    case AtomOp::Xor:
      return static_cast<T>(old ^ b);
    case AtomOp::Cas:
      return old == b ? c : old;
    case AtomOp::Exch:
      return b;
    case AtomOp::Add:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
    case AtomOp::Inc:
      return static_cast<U>(old) >= static_cast<U>(b) ? T{0} : static_cast<T>(old + 1);
    case AtomOp::Dec:
      return old == 0 || static_cast<U>(old) > static_cast<U>(b) ? b : static_cast<T>(old - 1);
    case AtomOp::Min:
      return b < old ? b : old;
    case AtomOp::Max:
      return b > old ? b : old;
  }
  return old;
}

/// add, min, max of the floating types; f16 and bf16 elements go through float, which holds their sums exactly enough
/// to round once.
template <class F>
F atom_float(AtomOp op, F old, F b) {
  switch (op) {
    case AtomOp::Add:
      return old + b;
    case AtomOp::Min:
      return __builtin_isnan(old) ? b : __builtin_isnan(b) ? old : b < old ? b : old;
    case AtomOp::Max:
      return __builtin_isnan(old) ? b : __builtin_isnan(b) ? old : b > old ? b : old;
    default:
      return b;
  }
}

template <class T>
void to_bytes(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

void atom_half(AtomOp op, std::byte* at, const std::byte* b, bool bf16) {
  const auto widen = [bf16](uint16_t h) { return bf16 ? bf16_to_float(h) : half_to_float(h); };
  const float r = atom_float(op, widen(from_bytes<uint16_t>(at)), widen(from_bytes<uint16_t>(b)));
  to_bytes<uint16_t>(at, bf16 ? float_to_bf16(r) : float_to_half(r));
}

/// atom.add.f32: on global memory subnormal inputs and results become zeros of their sign, on shared memory they stay
/// (PTX §9.7.13.5). A NaN is the canonical one.
float add_float(float old, float b, bool flush) {
  const auto flushed = [flush](float f) {
    return flush && std::fpclassify(f) == FP_SUBNORMAL ? std::copysign(0.0f, f) : f;
  };
  const float sum = flushed(flushed(old) + flushed(b));
  return std::isnan(sum) ? std::bit_cast<float>(0x7fffffffu) : sum;
}

/// Applies `op` to the element at `at` with operands b and c.
void apply_atom(AtomOp op, Type type, Region region, std::byte* at, const std::byte* b, const std::byte* c) {
  const bool plain = op == AtomOp::Exch || op == AtomOp::Cas;
  switch (type) {
    case Type::F16x2:
    case Type::BF16x2:
      if (!plain) {
        atom_half(op, at, b, type == Type::BF16x2);
        atom_half(op, at + 2, b + 2, type == Type::BF16x2);
        return;
      }
      break;
    case Type::F16:
    case Type::BF16:
      if (!plain) {
        atom_half(op, at, b, type == Type::BF16);
        return;
      }
      break;
    case Type::F32:
      if (op == AtomOp::Add) {
        to_bytes(at, add_float(from_bytes<float>(at), from_bytes<float>(b), region == Region::Global));
        return;
      }
      if (!plain) {
        to_bytes(at, atom_float(op, from_bytes<float>(at), from_bytes<float>(b)));
        return;
      }
      break;
    case Type::F64:
      if (!plain) {
        to_bytes(at, atom_float(op, from_bytes<double>(at), from_bytes<double>(b)));
        return;
      }
      break;
    case Type::S32:
      to_bytes(at, atom_integer(op, from_bytes<int32_t>(at), from_bytes<int32_t>(b), from_bytes<int32_t>(c)));
      return;
    case Type::S64:
      to_bytes(at, atom_integer(op, from_bytes<int64_t>(at), from_bytes<int64_t>(b), from_bytes<int64_t>(c)));
      return;
    default:
      break;
  }
  switch (ptx::size_of(type)) {
    case 2:
      to_bytes(at, atom_integer(op, from_bytes<uint16_t>(at), from_bytes<uint16_t>(b), from_bytes<uint16_t>(c)));
      break;
    case 4:
      to_bytes(at, atom_integer(op, from_bytes<uint32_t>(at), from_bytes<uint32_t>(b), from_bytes<uint32_t>(c)));
      break;
    case 8:
      to_bytes(at, atom_integer(op, from_bytes<uint64_t>(at), from_bytes<uint64_t>(b), from_bytes<uint64_t>(c)));
      break;
    default:
      if (op == AtomOp::Exch || std::memcmp(at, b, 16) == 0) std::memcpy(at, op == AtomOp::Exch ? b : c, 16);
  }
}

/// atom and red: list = destinations (atom only; count of them), then sources b, then c (cas).
void atomic(Warp& w, const Inst& i, LaneMask mask) {
  const AccessMode m = unpack(i.imm);
  const auto op = static_cast<AtomOp>(m.op);
  const auto type = static_cast<Type>(m.type);
  const uint32_t bytes = uint32_t{m.element} * m.count;
  const bool returns = i.width != 0;
  Recorder record(w, i, returns ? Access::Kind::Atomic : Access::Kind::Reduction, m.sem, m.scope, bytes);
  const uint32_t* regs = &w.cta->launch->program->operand_pool[i.list];
  const uint32_t* dst = regs;
  const uint32_t* b = regs + (returns ? m.count : 0);
  const uint32_t* c = b + m.count;
  bool changed = false;
  bool remote = false;
  uint64_t address[kWarpSize];
  for_lanes(mask, [&](int l) { address[l] = lane_address(w, i, l); });
  for_lanes(mask, [&](int l) {
    const Target t = resolve(w, i, l, address[l], bytes, true, "updates");
    remote = remote || (t.owner != nullptr && t.owner != w.cta);
    for (uint32_t e = 0; e < m.count; e++) {
      std::byte* at = t.host + e * m.element;
      std::byte old[16] = {};
      std::memcpy(old, at, m.element);
      const std::byte* rb = w.regs + slot_of(b[e]) + static_cast<size_t>(l) * width_of(b[e]);
      const std::byte* rc = op == AtomOp::Cas ? w.regs + slot_of(c[e]) + static_cast<size_t>(l) * width_of(c[e]) : rb;
      apply_atom(op, type, t.region, at, rb, rc);
      changed = changed || std::memcmp(old, at, m.element) != 0;
      if (returns && dst[e] != kNoOperand) {
        const SlotWidth slot = width_of(dst[e]);
        std::byte* r = w.regs + slot_of(dst[e]) + static_cast<size_t>(l) * slot;
        std::memset(r, 0, slot);
        std::memcpy(r, old, m.element);
      }
    }
    guard_barrier(w, i, l, t, bytes, "updates");
    if (changed) after_write(w, t);
    record.add(l, t);
  });
  // An atomic that changed nothing (a failed cas in a spin loop) is an observation, not an effect.
  if (changed) note_effect(w);
  if (remote && returns) w.time += timing_of(*w.cta->launch).remote_access;
  record.flush();
}

// --- addresses -------------------------------------------------------------------------------------------------------

/// cvta: adds (or with .to subtracts) a window base. imm = base, sub bit 0 = to.
void cvta(Warp& w, const Inst& i, LaneMask mask) {
  for_lanes(mask, [&](int l) {
    const uint64_t a = i.width == 8 ? lanes<uint64_t>(w.regs, i.a)[l] : lanes<uint32_t>(w.regs, i.a)[l];
    const uint64_t v = (i.sub & 1) != 0 ? a - i.imm : a + i.imm;
    if ((i.sub & 2) != 0) {
      lanes<uint64_t>(w.regs, i.d)[l] = v;
    } else {
      lanes<uint32_t>(w.regs, i.d)[l] = static_cast<uint32_t>(v);
    }
  });
}

/// isspacep (PTX §9.7.9.20). The window of the kernel's parameters lies in .global, the one of constants does not.
void isspacep(Warp& w, const Inst& i, LaneMask mask) {
  const Program& program = *w.cta->launch->program;
  const auto in_parameters = [&](uint64_t a) { return a - program.param_address < program.param_bytes; };
  const auto in_constants = [&](uint64_t a) {
    const Allocation* al = w.cta->launch->memory->find(a, 1);
    return al != nullptr && !al->writable && !in_parameters(a);
  };
  LaneMask result = 0;
  for_lanes(mask, [&](int l) {
    const uint64_t a = lanes<uint64_t>(w.regs, i.a)[l];
    bool in = false;
    switch (static_cast<Space>(i.sub)) {
      case Space::SharedCluster:
        in = in_shared_window(a);
        break;
      case Space::Shared:  // the same as ::cta
      case Space::SharedCta:
        in = in_shared_window(a) && static_cast<uint32_t>(a) >> kRankShift == w.cta->rank;
        break;
      case Space::Local:
        in = in_local_window(a);
        break;
      case Space::Param:
        in = in_parameters(a);
        break;
      case Space::Const:
        in = in_constants(a);
        break;
      default:
        in = !in_shared_window(a) && !in_local_window(a) && !in_constants(a);
        break;
    }
    if (in) result |= LaneMask{1} << l;
  });
  auto& d = *lanes<uint32_t>(w.regs, i.d);
  d = (d & ~mask) | result;
}

/// mapa: the same variable in the CTA of rank b (PTX §9.7.9.23). A rank outside the cluster makes an address that
/// faults where it is used.
void map_address(Warp& w, const Inst& i, LaneMask mask) {
  for_lanes(mask, [&](int l) {
    const uint64_t rank = lanes<uint32_t>(w.regs, i.b)[l] & 0xffu;
    const auto moved = [&](uint64_t a) { return (a & ~(uint64_t{0xff} << kRankShift)) | rank << kRankShift; };
    if (i.width == 8) {
      lanes<uint64_t>(w.regs, i.d)[l] = moved(lanes<uint64_t>(w.regs, i.a)[l]);
    } else {
      lanes<uint32_t>(w.regs, i.d)[l] = static_cast<uint32_t>(moved(lanes<uint32_t>(w.regs, i.a)[l]));
    }
  });
}

/// getctarank: whose shared memory an address names (PTX §9.7.9.24).
void get_rank(Warp& w, const Inst& i, LaneMask mask) {
  for_lanes(mask, [&](int l) {
    const auto a =
        i.width == 8 ? static_cast<uint32_t>(lanes<uint64_t>(w.regs, i.a)[l]) : lanes<uint32_t>(w.regs, i.a)[l];
    lanes<uint32_t>(w.regs, i.d)[l] = a >> kRankShift;
  });
}

void no_operation(Warp&, const Inst&, LaneMask) {}

/// createpolicy: a cache hint has no effect here; the value is only passed on.
void create_policy(Warp& w, const Inst& i, LaneMask mask) {
  for_lanes(mask, [&](int l) { lanes<uint64_t>(w.regs, i.d)[l] = 0x12f0000000000000ull; });
}

/// st.bulk: zeros imm-width bytes of shared memory (PTX §9.7.9.13). a = address, b = size.
void store_bulk(Warp& w, const Inst& i, LaneMask mask) {
  note_effect(w);
  for_lanes(mask, [&](int l) {
    const uint64_t size = i.width == 8 ? lanes<uint64_t>(w.regs, i.b)[l] : lanes<uint32_t>(w.regs, i.b)[l];
    const uint64_t a = lane_address(w, i, l);
    if (size % 8 != 0 || a % 8 != 0)
      throw make_fault("misaligned",
                       fmt::format("{}: st.bulk needs an address and a size that are multiples of 8, got {:#x} and {}",
                                   describe_lanes(w, LaneMask{1} << l), a, size));
    for (uint64_t k = 0; k < size; k += 8) {
      const Target t = resolve(w, i, l, a + k, 8, true, "writes");
      std::memset(t.host, 0, 8);
      guard_barrier(w, i, l, t, 8, "writes");
      after_write(w, t);
      Recorder record(w, i, Access::Kind::Write, Sem::Weak, Scope::None, 8);
      record.add(l, t);
      record.flush();
    }
  });
}

// --- decoders --------------------------------------------------------------------------------------------------------

void set_address(Inst* inst, const MemoryOperand& m) {
  inst->a = m.slot;
  inst->offset = m.offset;
  inst->sub = static_cast<uint8_t>(space_class(m.space) | (m.wide ? kWideAddress : 0));
}

std::vector<const ptx::Operand*> elements_of(const ptx::Operand& o) {
  if (o.kind != ptx::Operand::Kind::Vector) return {&o};
  std::vector<const ptx::Operand*> list;
  for (const ptx::Operand& e : o.elements) list.push_back(&e);
  return list;
}

uint16_t access_cost(const TimingModel& t, Space s, bool load, size_t bytes) {
  switch (space_class(s)) {
    case kSharedSpace:
    case kClusterSpace:
      return !load ? t.shared_store : bytes >= 16 ? t.shared_load_wide : t.shared_load;
    case kLocalSpace:
      return load ? t.local_load : t.shared_store;
    default:
      return load ? t.global_load : t.global_store;
  }
}

std::string decode_access(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst, bool is_load) {
  if (s.operands.size() < 2) return "expects a register and an address";
  const ptx::Operand& value = s.operands[is_load ? 0 : 1];
  const ptx::Operand& addr = s.operands[is_load ? 1 : 0];
  const Type type = r.type(0);
  const auto element = static_cast<uint8_t>(ptx::size_of(type));
  const auto list = elements_of(value);
  const size_t expected = r.has("v2") ? 2 : r.has("v4") ? 4 : r.has("v8") ? 8 : 1;
  if (list.size() != expected) return fmt::format("expects {} registers, got {}", expected, list.size());
  const MemoryOperand m = c.address(addr, r.space(0));
  set_address(inst, m);
  std::vector<uint32_t> slots;
  for (const ptx::Operand* o : list) {
    if (is_load && o->kind == ptx::Operand::Kind::Sink) {
      slots.push_back(kNoOperand);
      continue;
    }
    const SlotWidth width = c.width(*o, type);
    if (width == 0) return "predicate registers cannot be loaded or stored";
    if (width < element) return fmt::format("a register of {} bytes cannot hold .{}", width, to_string(type));
    const uint32_t slot = is_load ? c.destination(*o, width) : c.source(*o, type);
    slots.push_back(tag(slot, width, is_load && c.narrow(*o)));
  }
  AccessMode mode{};
  mode.sem = sem_of(r);
  mode.scope = scope_of(r);
  mode.element = element;
  mode.count = static_cast<uint8_t>(expected);
  mode.sign_extend = type == Type::S8 || type == Type::S16 || type == Type::S32 ? 1 : 0;
  mode.unobserved = r.space(0) == Space::Param || r.space(0) == Space::Const ? 1 : 0;
  inst->imm = pack(mode);
  inst->list = c.pool(slots);
  inst->list_size = static_cast<uint16_t>(slots.size());
  inst->fn = is_load ? load<false> : store<false>;
  inst->watched_fn = is_load ? load<true> : store<true>;
  // The parameter block and constant banks sit behind a cache of their own.
  inst->cost = r.space(0) == Space::Param || r.space(0) == Space::Const
                   ? c.timing().alu
                   : access_cost(c.timing(), m.space, is_load, element * expected);
  return {};
}

std::string decode_ld(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  return decode_access(c, r, s, inst, true);
}
std::string decode_st(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  return decode_access(c, r, s, inst, false);
}

std::string decode_atomic(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst, bool returns) {
  static constexpr struct {
    const char* name;
    AtomOp op;
  } kOps[] = {{"and", AtomOp::And},   {"or", AtomOp::Or},   {"xor", AtomOp::Xor}, {"cas", AtomOp::Cas},
              {"exch", AtomOp::Exch}, {"add", AtomOp::Add}, {"inc", AtomOp::Inc}, {"dec", AtomOp::Dec},
              {"min", AtomOp::Min},   {"max", AtomOp::Max}};
  const auto found = std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& k) { return r.has(k.name); });
  if (found == std::end(kOps)) return "no operation that is supported";
  const size_t first = returns ? 1 : 0;
  if (s.operands.size() < first + 2) return "expects an address and a source";
  const Type type = r.type(0);
  const auto sources = elements_of(s.operands[first + 1]);
  std::vector<uint32_t> slots;
  if (returns) {
    const auto dst = elements_of(s.operands[0]);
    if (dst.size() != sources.size()) return "destination and source differ in length";
    for (const ptx::Operand* o : dst) {
      if (o->kind == ptx::Operand::Kind::Sink) {
        slots.push_back(kNoOperand);
        continue;
      }
      const SlotWidth width = c.width(*o, type);
      slots.push_back(tag(c.destination(*o, width), width, false));
    }
  }
  for (const ptx::Operand* o : sources) slots.push_back(tag(c.source(*o, type), c.width(*o, type), false));
  if (found->op == AtomOp::Cas) {
    if (s.operands.size() < first + 3) return "cas expects two sources";
    for (const ptx::Operand* o : elements_of(s.operands[first + 2]))
      slots.push_back(tag(c.source(*o, type), c.width(*o, type), false));
  }
  const MemoryOperand m = c.address(s.operands[first], r.space(0));
  set_address(inst, m);
  AccessMode mode{};
  mode.sem = sem_of(r) == Sem::Weak ? Sem::Relaxed : sem_of(r);
  mode.scope = scope_of(r) == Scope::None ? Scope::Gpu : scope_of(r);
  mode.element = static_cast<uint8_t>(ptx::size_of(type));
  mode.count = static_cast<uint8_t>(sources.size());
  mode.op = static_cast<uint8_t>(found->op);
  mode.type = static_cast<uint8_t>(type);
  inst->imm = pack(mode);
  inst->list = c.pool(slots);
  inst->list_size = static_cast<uint16_t>(slots.size());
  inst->width = returns ? 1 : 0;
  inst->fn = atomic;
  const bool shared = space_class(m.space) == kSharedSpace || space_class(m.space) == kClusterSpace;
  inst->cost = returns ? (shared ? c.timing().atomic_shared : c.timing().atomic_global)
                       : (shared ? c.timing().reduce_shared : c.timing().global_store);
  return {};
}
std::string decode_atom(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  return decode_atomic(c, r, s, inst, true);
}
std::string decode_red(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  return decode_atomic(c, r, s, inst, false);
}

std::string decode_cvta(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  const Type type = r.type(0);
  inst->fn = cvta;
  inst->d = c.destination(s.operands[0], c.width(s.operands[0], type));
  inst->a = c.source(s.operands[1], type);
  inst->width = c.width(s.operands[1], type);
  inst->sub = static_cast<uint8_t>((r.has("to") ? 1 : 0) | (c.width(s.operands[0], type) == 8 ? 2 : 0));
  switch (r.space(0)) {
    case Space::Shared:
    case Space::SharedCta:
    case Space::SharedCluster:
      inst->imm = kSharedWindow;
      break;
    case Space::Local:
      inst->imm = kLocalWindow;
      break;
    default:
      inst->imm = 0;
      break;  // global, const and param addresses are generic addresses
  }
  return {};
}

std::string decode_isspacep(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  if (c.width(s.operands[1], Type::B64) != 8) return "expects a 64-bit address";
  inst->fn = isspacep;
  inst->d = c.destination(s.operands[0], 0);
  inst->a = c.source(s.operands[1], Type::B64);
  inst->sub = static_cast<uint8_t>(r.space(0));
  return {};
}

std::string decode_mapa(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = map_address;
  inst->width = c.width(s.operands[0], r.type(0));
  inst->d = c.destination(s.operands[0], inst->width);
  inst->a = c.source(s.operands[1], r.type(0));
  if (c.width(s.operands[1], r.type(0)) != inst->width) return "expects an address as wide as its type";
  inst->b = c.source(s.operands[2], Type::U32);
  return {};
}

std::string decode_get_rank(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  inst->fn = get_rank;
  inst->d = c.destination(s.operands[0], 4);
  inst->a = c.source(s.operands[1], r.type(0));
  inst->width = c.width(s.operands[1], r.type(0));
  return {};
}

std::string decode_nothing(DecodeContext&, const ptx::Resolved&, const ptx::Statement&, Inst* inst) {
  inst->fn = no_operation;
  return {};
}
std::string decode_create_policy(DecodeContext& c, const ptx::Resolved&, const ptx::Statement& s, Inst* inst) {
  inst->fn = create_policy;
  inst->d = c.destination(s.operands[0], 8);
  return {};
}
std::string decode_store_bulk(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  set_address(inst, c.address(s.operands[0], r.space(0)));
  inst->b = c.source(s.operands[1], Type::U64);
  inst->width = c.width(s.operands[1], Type::U64);
  inst->fn = store_bulk;
  return {};
}

}  // namespace

Scope scope_of(const ptx::Resolved& r) {
  if (r.has("cta")) return Scope::Cta;
  if (r.has("cluster")) return Scope::Cluster;
  if (r.has("gpu")) return Scope::Gpu;
  if (r.has("sys")) return Scope::Sys;
  return Scope::None;
}

void fault_shared_owner(const Warp& w, uint32_t address, const std::string& subject) {
  const uint32_t rank = address >> kRankShift;
  const size_t size = w.cta->domain->ctas.size();
  const std::string place = w.cta->launch->program->describe_shared(address & kSharedOffsetMask);
  if (rank >= size) {
    throw make_fault("out-of-bounds",
                     fmt::format("{} {} of the CTA of rank {}, in a cluster of {}", subject, place, rank, size));
  }
  if (w.cta->domain->ctas[rank]->done) {
    throw make_fault(
        "remote-cta-gone", fmt::format("{} {} of the CTA of rank {}, which has ended", subject, place, rank),
        "A CTA whose shared memory others use must not end before they have finished: a cluster barrier of all "
        "threads before the end would do.");
  }
  throw make_fault(
      "out-of-bounds",
      fmt::format("{} {} of the CTA of rank {} in the cluster, but the instruction reaches only the executing "
                  "CTA's shared memory (rank {})",
                  subject, place, rank, w.cta->rank),
      "mapa makes addresses of .shared::cluster; the instruction must name that space or none.");
}

void set_matrix_address(Inst* inst, const MemoryOperand& operand) { set_address(inst, operand); }

void transfer_matrix_rows(Warp& w, const Inst& i, LaneMask mask, Access::Kind kind, MatrixRows* rows) {
  const bool write = kind == Access::Kind::Write;
  const char* verb = write ? "writes" : "reads";
  if (write) note_effect(w);
  Recorder record(w, i, kind, Sem::Weak, Scope::None, kMatrixRowBytes);
  for_lanes(mask, [&](int l) {
    const uint64_t address = lane_address(w, i, l);
    // Undefined behaviour: a generic address must point into shared memory.
    if ((i.sub & kSpaceMask) == kGenericSpace && !in_shared_window(address)) {
      throw make_fault("out-of-bounds",
                       fmt::format("{} {} a row of a matrix at address {:#x}, which is not in shared memory",
                                   describe_lanes(w, LaneMask{1} << l), verb, address));
    }
    const Target t = resolve(w, i, l, address, kMatrixRowBytes, write, verb);
    std::byte* row = (*rows)[static_cast<size_t>(l)].data();
    std::memcpy(write ? t.host : row, write ? row : t.host, kMatrixRowBytes);
    guard_barrier(w, i, l, t, kMatrixRowBytes, verb);
    if (write) after_write(w, t);
    record.add(l, t);
  });
  record.flush();
}

bool stores_alike(const Access& access, LaneMask lanes) {
  if (access.stored == nullptr) return false;
  const AccessMode m = unpack(access.inst->imm);
  const int first = __builtin_ctz(lanes);
  bool alike = true;
  for_lanes(lanes, [&](int l) {
    for (uint32_t e = 0; e < m.count; e++) {
      const uint32_t reg = access.stored[e];
      alike = alike && std::memcmp(stored_register(*access.warp, reg, l), stored_register(*access.warp, reg, first),
                                   m.element) == 0;
    }
  });
  return alike;
}

bool read_generic(Warp& w, int lane, uint64_t address, void* out, uint32_t bytes) {
  const std::byte* host = nullptr;
  if (in_shared_window(address)) {
    const uint32_t offset = static_cast<uint32_t>(address) & kSharedOffsetMask;
    const uint32_t rank = static_cast<uint32_t>(address) >> kRankShift;
    const auto& ctas = w.cta->domain->ctas;
    if (rank >= ctas.size() || offset < kSharedBase || offset + bytes > w.cta->smem.size()) return false;
    host = ctas[rank]->smem.data() + offset;
  } else if (in_local_window(address)) {
    const uint64_t offset = address - kLocalWindow;
    if (offset + bytes > w.cta->launch->program->local_bytes) return false;
    host = w.local_of(lane) + offset;
  } else {
    const Allocation* a = w.cta->launch->memory->find(address, bytes);
    if (a == nullptr) return false;
    host = a->host + (address - a->base);
  }
  std::memcpy(out, host, bytes);
  return true;
}

void register_memory_decoders(DecoderTable& table) {
  using ptx::Op;
  table[Op::Ld] = decode_ld;
  table[Op::LdParam] = decode_ld;
  table[Op::Ldu] = decode_ld;
  table[Op::St] = decode_st;
  table[Op::StParam] = decode_st;
  table[Op::StBulk] = decode_store_bulk;
  table[Op::Atom] = decode_atom;
  table[Op::Red] = decode_red;
  table[Op::Cvta] = decode_cvta;
  table[Op::Isspacep] = decode_isspacep;
  table[Op::Mapa] = decode_mapa;
  table[Op::Getctarank] = decode_get_rank;
  table[Op::Prefetch] = decode_nothing;
  table[Op::Discard] = decode_nothing;
  table[Op::Applypriority] = decode_nothing;
  table[Op::CreatePolicy] = decode_create_policy;
}

}  // namespace handoff::machine
