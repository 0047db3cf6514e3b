// Tested by launch_control_test.cc.
//
// clusterlaunchcontrol (PTX §9.7.13.17, §9.7.13.18): a running CTA takes over the work of a cluster that has not
// started. try_cancel asks, like a copy: it writes 16 bytes of response into shared memory through the async proxy and
// tells an mbarrier; with .multicast::cluster::all the same response to every CTA of the cluster. What the machine does
// is in LaunchQueue (machine/launch.cc): which clusters still can be cancelled is decided when the request arrives
// there, at the time of the operation's read.
//
// The response is opaque to programs. Here its words are %ctaid of the cluster's first CTA and a mark that tells
// success and failure from memory in which no response has been written.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>

#include "grader/emulator/async/copy_engine.h"
#include "grader/emulator/machine/fault.h"

namespace handoff::async {
namespace {

using machine::AsyncOpInfo;
using machine::DecodeContext;
using machine::for_lanes;
using machine::lanes;
using machine::make_fault;
using machine::Region;
using ptx::Space;
using ptx::Type;

constexpr uint32_t kResponseBytes = 16;
using Response = std::array<uint32_t, 4>;
constexpr uint32_t kGranted = 0xc1c00001, kRefused = 0xc1c00000;

/// One request, whose response goes to one CTA or to several.
struct Request {
  std::optional<Response> response;
};

struct ResponseCopy : Copy {
  std::shared_ptr<Request> request;

  void read() override {
    if (!request->response.has_value()) {
      const auto first = domain->launch->queue->cancel(domain->now);
      request->response =
          first.has_value() ? Response{(*first)[0], (*first)[1], (*first)[2], kGranted} : Response{0, 0, 0, kRefused};
    }
    staging.resize(kResponseBytes);
    std::memcpy(staging.data(), request->response->data(), kResponseBytes);
  }
  void write(uint32_t from, uint32_t bytes) override {
    std::memcpy(info.destination_owner->shared(static_cast<uint32_t>(info.destination)) + from, staging.data() + from,
                bytes);
  }
};

// Inst::sub of try_cancel: the addresses are generic; the response goes to all CTAs of the cluster.
constexpr uint8_t kGeneric = 1, kMulticast = 2;

/// list: the two addresses.
void try_cancel(Warp& w, const Inst& i, LaneMask mask) {
  constexpr const char* kName = "clusterlaunchcontrol.try_cancel";
  machine::note_effect(w);
  const uint32_t* pool = &w.cta->launch->program->operand_pool[i.list];
  const SharedWindow window = (i.sub & kGeneric) != 0 ? SharedWindow::Generic : SharedWindow::Cta;
  for_lanes(mask, [&](int l) {
    const auto who = [&] { return machine::describe_lanes(w, LaneMask{1} << l); };  // for messages
    const SharedPlace to = shared_place(w, l, pooled_address(w, pool, l), window, kResponseBytes, kResponseBytes,
                                        "the response of clusterlaunchcontrol.try_cancel at");
    const SharedPlace b = shared_place(w, l, pooled_address(w, pool + kPooledAddress, l), window, 8, 8, "mbarrier");
    if (to.owner != w.cta || b.owner != w.cta) {
      throw make_fault("bad-copy",
                       fmt::format("{}: {} names shared memory of another CTA: both its addresses are of the executing "
                                   "CTA, also where the response goes to all of the cluster",
                                   who(), kName));
    }
    if (state(*w.cta).saw_launch_refused) {
      throw make_fault("bad-copy",
                       fmt::format("{}: {} after this CTA has seen a request fail, which is undefined", who(), kName),
                       "A request that failed means that no cluster is left: leave the loop.");
    }
    LoadForm form;
    form.multicast = (i.sub & kMulticast) != 0;
    form.mask = (1u << w.cta->domain->ctas.size()) - 1;
    auto first = std::make_shared<ResponseCopy>();
    first->request = std::make_shared<Request>();
    first->noun = kName;
    AsyncOpInfo& info = first->info;
    info.kind = AsyncOpInfo::Kind::LaunchCancel;
    info.bytes = info.shared_bytes = kResponseBytes;
    info.source_region = Region::Local;  // nothing is read
    info.destination_region = Region::Shared;
    info.destination = to.offset;
    info.mbarrier = b.offset;
    const std::vector<std::shared_ptr<Copy>> copies =
        one_for_each(first, deliveries(w, l, form, to, b, kName), [](ResponseCopy&) {});
    // No measurement is known to us; the request leaves the SM, as a load does.
    const uint64_t latency = timing_of(*w.cta->launch).tma_latency;
    for (const std::shared_ptr<Copy>& copy : copies) start_at(w, i, l, copy, w.time + latency / 2, w.time + latency);
  });
}

Response response_of(const Warp& w, const Inst& i, int lane) {
  Response r;
  std::memcpy(r.data(), w.regs + i.a + static_cast<size_t>(lane) * kResponseBytes, kResponseBytes);
  if (r[3] != kGranted && r[3] != kRefused) {
    throw make_fault("bad-copy",
                     fmt::format("{}: clusterlaunchcontrol.query_cancel of 16 bytes that are no response of try_cancel",
                                 machine::describe_lanes(w, LaneMask{1} << lane)),
                     "Wait for the mbarrier of the request, then load all 16 bytes.");
  }
  return r;
}

/// a = response, d = predicate.
void is_canceled(Warp& w, const Inst& i, LaneMask mask) {
  LaneMask yes = 0;
  for_lanes(mask, [&](int l) {
    if (response_of(w, i, l)[3] == kGranted) {
      yes |= LaneMask{1} << l;
    } else {
      state(*w.cta).saw_launch_refused = true;
    }
  });
  auto& d = *lanes<uint32_t>(w.regs, i.d);
  d = (d & ~mask) | yes;
}

/// a = response; list: the registers of x, y, z, of which some may be left out.
void get_first_ctaid(Warp& w, const Inst& i, LaneMask mask) {
  const uint32_t* slots = &w.cta->launch->program->operand_pool[i.list];
  for_lanes(mask, [&](int l) {
    const Response r = response_of(w, i, l);
    if (r[3] == kRefused) {
      throw make_fault("bad-copy",
                       fmt::format("{}: clusterlaunchcontrol.query_cancel.get_first_ctaid of a request that failed, "
                                   "which is undefined",
                                   machine::describe_lanes(w, LaneMask{1} << l)),
                       "Ask .is_canceled first.");
    }
    for (uint32_t e = 0; e < 3; e++) {
      if (slots[e] != machine::kNoOperand) lanes<uint32_t>(w.regs, slots[e])[l] = r[e];
    }
  });
}

std::string decode_try_cancel(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  const Space space = r.space(0) == Space::None ? Space::Generic : r.space(0);
  const machine::MemoryOperand to = c.address(s.operands[0], space), barrier = c.address(s.operands[1], space);
  std::vector<uint32_t> pool(2 * kPooledAddress, machine::kNoOperand);
  if (!pool_address(to, pool, 0) || !pool_address(barrier, pool, kPooledAddress))
    return "an address offset is out of range";
  if ((to.space == Space::Generic) != (barrier.space == Space::Generic))
    return "expects both addresses in the same form";
  if (to.space == Space::Generic) inst->sub |= kGeneric;
  if (r.has("multicast::cluster::all")) inst->sub |= kMulticast;
  inst->fn = try_cancel;
  inst->ends_slice = 1;
  inst->list = c.pool(pool);
  inst->list_size = static_cast<uint16_t>(pool.size());
  inst->cost = c.timing().shared_store;
  return {};
}

std::string decode_query_cancel(DecodeContext& c, const ptx::Resolved& r, const ptx::Statement& s, Inst* inst) {
  if (c.width(s.operands[1], Type::B128) != kResponseBytes) return "a response is 128 bits wide";
  inst->a = c.source(s.operands[1], Type::B128);
  inst->cost = c.timing().alu;
  const ptx::Operand& d = s.operands[0];
  if (r.has("is_canceled")) {
    if (c.width(d, Type::Pred) != 0) return "the destination is a predicate";
    inst->fn = is_canceled;
    inst->d = c.destination(d, 0);
    return {};
  }
  std::vector<uint32_t> slots(3, machine::kNoOperand);
  bool narrow = true;
  const auto put = [&](const ptx::Operand& o, uint32_t& slot) {
    if (o.kind == ptx::Operand::Kind::Sink) return;
    narrow = narrow && c.width(o, Type::B32) == 4;
    if (narrow) slot = c.destination(o, 4);
  };
  if (r.has("get_first_ctaid")) {
    if (d.kind != ptx::Operand::Kind::Vector || d.elements.size() != 4) return "expects four registers";
    for (uint32_t e = 0; e < 3; e++) put(d.elements[e], slots[e]);
  } else {
    put(d, slots[r.has("get_first_ctaid::x") ? 0 : r.has("get_first_ctaid::y") ? 1 : 2]);
  }
  if (!narrow) return "the coordinates are 32 bits wide";
  inst->fn = get_first_ctaid;
  inst->list = c.pool(slots);
  inst->list_size = static_cast<uint16_t>(slots.size());
  return {};
}

}  // namespace

void register_launch_control_decoders(machine::DecoderTable& table) {
  table[ptx::Op::LaunchTryCancel] = decode_try_cancel;
  table[ptx::Op::LaunchQueryCancel] = decode_query_cancel;
}

}  // namespace handoff::async
