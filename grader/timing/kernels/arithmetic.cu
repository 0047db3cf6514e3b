// Latency of arithmetic: chains in which every instruction needs the result of the one before; and one probe of
// instructions that do not need each other. One warp.
#include "probe.cuh"

/// Nothing between the two readings of the clock.
extern "C" __global__ void clock_alone(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure(
      samples, zero, threadIdx.x, [] { __syncwarp(); }, [](uint32_t&) {});
}

/// add.u32 and xor.b32 by turns, because ptxas would join two additions into one. 2 · kChain instructions.
extern "C" __global__ void add_xor(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [n](uint32_t& v) {
    asm volatile("add.u32 %0, %0, %1;\n\txor.b32 %0, %0, %1;" : "+r"(v) : "r"(n));
  });
}

extern "C" __global__ void mad_u32(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [n](uint32_t& v) {
    asm volatile("mad.lo.u32 %0, %0, %1, %1;" : "+r"(v) : "r"(n));
  });
}

extern "C" __global__ void fma_f32(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [n](uint32_t& v) {
    asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+r"(v) : "r"(n));
  });
}

/// fma.rn.f32 in four chains side by side: what one costs where nothing waits for it. 4 · kChain instructions.
extern "C" __global__ void fma_f32_independent(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  uint32_t a = n, b = n + 1, c = n + 2;
  measure(
      samples, zero, threadIdx.x, [] { __syncwarp(); },
      [&](uint32_t& v) {
#pragma unroll
        for (int k = 0; k < kChain; ++k) {
          asm volatile(
              "fma.rn.f32 %0, %0, %4, %4;\n\tfma.rn.f32 %1, %1, %4, %4;\n\tfma.rn.f32 %2, %2, %4, %4;\n\t"
              "fma.rn.f32 %3, %3, %4, %4;"
              : "+r"(v), "+r"(a), "+r"(b), "+r"(c)
              : "r"(n));
        }
        // No chain may be left behind.
        asm volatile("xor.b32 %0, %0, %1;\n\txor.b32 %0, %0, %2;\n\txor.b32 %0, %0, %3;"
                     : "+r"(v)
                     : "r"(a), "r"(b), "r"(c));
      });
}

/// setp and selp by turns. 2 · kChain instructions.
extern "C" __global__ void setp_selp(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [n](uint32_t& v) {
    asm volatile("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %0, %1;\n\tselp.b32 %0, %1, 7, p;\n\t}" : "+r"(v) : "r"(n));
  });
}

/// u32 to f32 and back. 2 · kChain instructions.
extern "C" __global__ void convert(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [](uint32_t& v) {
    asm volatile("cvt.rn.f32.u32 %0, %0;\n\tcvt.rzi.u32.f32 %0, %0;" : "+r"(v));
  });
}

extern "C" __global__ void rcp_f32(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, __float_as_uint(2.0f), [](uint32_t& v) {
    asm volatile("rcp.approx.ftz.f32 %0, %0;" : "+r"(v));
  });
}

extern "C" __global__ void ex2_f32(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, __float_as_uint(0.5f), [](uint32_t& v) {
    asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+r"(v));
  });
}

extern "C" __global__ void fma_f64(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  double x = 1.0;
  const double factor = n;
  measure(
      samples, zero, threadIdx.x, [] { __syncwarp(); },
      [&](uint32_t& v) {
        x += v;
#pragma unroll
        for (int k = 0; k < kChain; ++k) asm volatile("fma.rn.f64 %0, %0, %1, %1;" : "+d"(x) : "d"(factor));
        v = __double2loint(x);
      });
}

/// A loop of kChain iterations that the compiler does not unroll: add, add, setp, bra each.
extern "C" __global__ void loop(uint32_t* samples, unsigned char*, uint32_t n, uint32_t zero) {
  measure(
      samples, zero, threadIdx.x, [] { __syncwarp(); },
      [n](uint32_t& v) {
#pragma unroll 1
        for (int k = 0; k < kChain; ++k) asm volatile("add.u32 %0, %0, %1;" : "+r"(v) : "r"(n));
      });
}

extern "C" __global__ void shuffle(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [](uint32_t& v) {
    asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 0x1f, 0xffffffff;" : "+r"(v));
  });
}

/// vote.sync.ballot of the lowest bit of the last one's result: and, setp and vote each.
extern "C" __global__ void vote(uint32_t* samples, unsigned char*, uint32_t, uint32_t zero) {
  measure_chain(samples, zero, threadIdx.x, [](uint32_t& v) {
    asm volatile(
        "{\n\t.reg .pred p;\n\t.reg .b32 t;\n\tand.b32 t, %0, 1;\n\tsetp.ne.u32 p, t, 0;\n\t"
        "vote.sync.ballot.b32 %0, p, 0xffffffff;\n\t}"
        : "+r"(v));
  });
}
