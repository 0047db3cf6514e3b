// Tested by tensor_copy_test.cc.
//
// Kernels that edit tensor maps (PTX §9.7.9.28, §9.7.13.16). A kernel whose tensors move, or that finds out their
// shapes itself, copies a map to shared memory, changes fields of it with tensormap.replace, and publishes it with
// tensormap.cp_fenceproxy: a copy of the 128 bytes to global memory and the release half of a fence between the generic
// proxy, which wrote them, and the tensormap proxy, through which the copy engine reads maps. Who uses the map then
// needs the acquire half, fence.proxy.tensormap::generic.acquire (machine/control_ops.cc), for that address.
//
// Both instructions are accesses of the generic proxy: tensormap.replace is a weak one of all 128 bytes, whatever field
// it changes. What a field may hold is tensor_map.cc's business.
#include <fmt/format.h>

#include <cstring>

#include "grader/emulator/async/copy_engine.h"
#include "grader/emulator/async/tensor_map.h"
#include "grader/emulator/machine/fault.h"
#include "grader/emulator/machine/memory_access.h"

namespace handoff::async {
namespace {

using machine::Access;
using machine::DecodeContext;
using machine::FenceInfo;
using machine::for_lanes;
using machine::lanes;
using machine::make_fault;
using machine::MemoryOperand;
using machine::Region;
using machine::Scope;
using machine::Sem;
using ptx::Space;
using ptx::Type;

constexpr uint32_t kBytes = sizeof(TensorMapImage);

/// Operands in the pool: the address of a map; then the new value, or the address of the map that is copied.
enum PoolIndex : uint32_t { kMap, kValue = kMap + kPooledAddress, kFrom = kValue, kPoolSize = kFrom + kPooledAddress };

/// How an instruction names the memory of a map: Inst::width.
enum MapSpace : uint8_t { kGeneric, kShared, kGlobal };

/// The 128 bytes of a map in memory that the kernel can write.
struct MapPlace {
  std::byte* host;   ///< the bytes
  Region region;     ///< where they lie
  uint64_t address;  ///< shared: offset; global: device address
  Cta* owner;        ///< whose shared memory it is; nullptr for global
};

std::string who(const Warp& w, int lane) { return machine::describe_lanes(w, LaneMask{1} << lane); }

MapPlace find_map(Warp& w, int lane, uint64_t address, MapSpace space, const char* what) {
  if (space == kShared || (space == kGeneric && machine::in_shared_window(address))) {
    const SharedPlace p = shared_place(w, lane, address, SharedWindow::Cta, kBytes, kTensorMapAlignment, what);
    return {p.owner->shared(p.offset), Region::Shared, p.offset, p.owner};
  }
  if (address % kTensorMapAlignment != 0) {
    throw make_fault("misaligned", fmt::format("{}: the address {:#x} of {} is not a multiple of {} bytes",
                                               who(w, lane), address, what, kTensorMapAlignment));
  }
  const machine::GlobalMemory& memory = *w.cta->launch->memory;
  const machine::Allocation* a = memory.find(address, kBytes);
  if (a == nullptr || !a->writable) {
    throw make_fault("out-of-bounds",
                     fmt::format("{}: {} at {:#x}: {}", who(w, lane), what, address, memory.describe(address)),
                     "A map is edited in shared memory or in global memory that the kernel may write.");
  }
  return {a->host + (address - a->base), Region::Global, address, nullptr};
}

/// Tells the observer of an access to a map, in halves: so none crosses a 128-byte line.
void tell(Warp& w, const Inst& i, int lane, const MapPlace& p, Access::Kind kind) {
  if (!machine::watches_accesses(*w.cta->launch)) return;
  uint64_t address[machine::kWarpSize] = {};
  for (const uint32_t half : {0u, kBytes / 2}) {
    address[lane] = p.address + half;
    machine::watcher(*w.cta->launch)
        ->access({&w, &i, LaneMask{1} << lane, kind, p.region, Sem::Weak, Scope::None, kBytes / 2, address, p.owner});
  }
}

/// Writes a map.
void write(Warp& w, const Inst& i, int lane, const MapPlace& p, const TensorMapImage& image) {
  machine::note_effect(w);
  tell(w, i, lane, p, Access::Kind::Write);
  std::memcpy(p.host, image.data(), kBytes);
  if (p.owner == nullptr) {
    machine::touch_global(*w.cta->launch);
    return;
  }
  machine::touch_shared(*p.owner);
  const auto offset = static_cast<uint32_t>(p.address);
  if (!hooks().hits_barrier(*p.owner, offset, kBytes)) return;
  const std::string place = w.cta->launch->program->describe_shared(offset);
  w.cta->launch->report(
      i, "barrier-overwritten",
      fmt::format("{} writes a tensor map of {} bytes to `{}`, over a live mbarrier", who(w, lane), kBytes, place));
}

/// sub: the field, imm: the ordinal, width: the space.
void replace(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t* pool = &w.cta->launch->program->operand_pool[i.list];
  const auto field = static_cast<TensorMapField>(i.sub);
  const bool wide = field == TensorMapField::GlobalAddress || field == TensorMapField::GlobalStride;
  for_lanes(mask, [&](int l) {
    const uint64_t address = pooled_address(w, pool + kMap, l);
    const uint64_t value = wide ? lanes<uint64_t>(w.regs, pool[kValue])[l] : lanes<uint32_t>(w.regs, pool[kValue])[l];
    const MapPlace p = find_map(w, l, address, static_cast<MapSpace>(i.width), "the tensor map that is edited");
    TensorMapImage image;
    std::memcpy(image.data(), p.host, kBytes);
    const std::string problem = replace_field(&image, field, static_cast<uint32_t>(i.imm), value);
    if (!problem.empty()) {
      throw make_fault(
          "bad-tensor-map",
          fmt::format("{}: the tensor map at {:#x} cannot be edited: {}", who(w, l), address, problem),
          "tensormap.replace changes a field of a map that cuTensorMapEncodeTiled made, or of a copy of one.");
    }
    write(w, i, l, p, image);
  });
}

/// One copy for the whole warp, then the release half of the fence for every lane. imm: its scope.
void copy_and_fence(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t* pool = &w.cta->launch->program->operand_pool[i.list];
  const int first = __builtin_ctz(mask);
  const uint64_t destination = pooled_address(w, pool + kMap, first), source = pooled_address(w, pool + kFrom, first);
  for_lanes(mask, [&](int l) {
    if (pooled_address(w, pool + kMap, l) == destination && pooled_address(w, pool + kFrom, l) == source) return;
    throw make_fault("diverged-collective",
                     fmt::format("{}: the lanes pass different addresses to tensormap.cp_fenceproxy",
                                 machine::describe_lanes(w, mask)),
                     "A warp executes it as a whole, for one map.");
  });
  const MapPlace from = find_map(w, first, source, kShared, "the tensor map that is copied");
  const MapPlace to = find_map(w, first, destination, kGlobal, "the place that a tensor map is copied to");
  TensorMapImage image;
  std::memcpy(image.data(), from.host, kBytes);
  tell(w, i, first, from, Access::Kind::Read);
  write(w, i, first, to, image);
  if (machine::Observer* o = machine::watcher(*w.cta->launch); o != nullptr)
    o->fence(w, i, mask, {FenceInfo::Kind::ProxyTensormapRelease, Sem::Release, static_cast<Scope>(i.imm), to.address});
}

// --- decoders --------------------------------------------------------------------------------------------------------

void set_pool(DecodeContext& c, const std::vector<uint32_t>& pool, Inst* inst) {
  inst->list = c.pool(pool);
  inst->list_size = static_cast<uint16_t>(pool.size());
}

std::string decode_replace(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  static constexpr std::pair<const char*, TensorMapField> kFields[] = {
      {"global_address", TensorMapField::GlobalAddress},
      {"rank", TensorMapField::Rank},
      {"box_dim", TensorMapField::BoxDim},
      {"global_dim", TensorMapField::GlobalDim},
      {"global_stride", TensorMapField::GlobalStride},
      {"element_stride", TensorMapField::ElementStride},
      {"elemtype", TensorMapField::Elemtype},
      {"interleave_layout", TensorMapField::InterleaveLayout},
      {"swizzle_mode", TensorMapField::SwizzleMode},
      {"swizzle_atomicity", TensorMapField::SwizzleAtomicity},
      {"fill_mode", TensorMapField::FillMode}};
  for (const auto& [name, field] : kFields) {
    if (r.has(name)) inst->sub = static_cast<uint8_t>(field);
  }
  if (s.operands.size() == 3) {
    const ptx::Operand& ordinal = s.operands[1];
    const uint64_t dimensions = r.has("global_stride") ? 4 : 5;
    if (ordinal.kind != ptx::Operand::Kind::Integer || ordinal.bits >= dimensions)
      return fmt::format("the ordinal must be a constant, 0 to {}", dimensions - 1);
    inst->imm = ordinal.bits;
  }
  std::vector<uint32_t> pool(kValue + 1, machine::kNoOperand);
  const MemoryOperand map = c.address(s.operands[0], r.space(0));
  if (!pool_address(map, pool, kMap)) return "an address offset is out of range";
  inst->width = map.space == Space::Generic ? kGeneric : map.space == Space::Global ? kGlobal : kShared;
  const ptx::Operand& value = s.operands.back();
  if (c.width(value, r.type(0)) != (r.type(0) == Type::B64 ? 8 : 4)) return "the new value must be as wide as its type";
  pool[kValue] = c.source(value, r.type(0));
  set_pool(c, pool, inst);
  inst->fn = replace;
  inst->cost = c.timing().shared_load;
  return {};
}

std::string decode_copy(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  if (s.operands[2].kind != ptx::Operand::Kind::Integer || s.operands[2].bits != kBytes)
    return "the size must be the constant 128";
  std::vector<uint32_t> pool(kPoolSize, machine::kNoOperand);
  bool fits = pool_address(c.address(s.operands[0], Space::Global), pool, kMap);
  fits = pool_address(c.address(s.operands[1], Space::SharedCta), pool, kFrom) && fits;
  if (!fits) return "an address offset is out of range";
  set_pool(c, pool, inst);
  inst->imm = static_cast<uint64_t>(machine::scope_of(r));
  inst->fn = copy_and_fence;
  inst->sync = machine::kSyncAligned;
  inst->ends_slice = 1;
  inst->cost = c.timing().fence;
  return {};
}

}  // namespace

void register_tensor_map_decoders(machine::DecoderTable& table) {
  table[ptx::Op::TensormapReplace] = decode_replace;
  table[ptx::Op::TensormapCpFenceproxy] = decode_copy;
}

}  // namespace handoff::async
