// Scores that are no matrix product, pair by pair: additive, and the Minkowski distances.
//
// A tile is G groups x R queries x K keys of C channels. Queries a[G,R,C] and keys b[G,K,C] come row by row with a
// stride a group; bt[G,C,P] holds the keys channel by channel, padded to P keys, so that the forward pass can run
// over keys in registers. Row r may see keys 0 ... first + r; the scores of the others are left alone.
// C is padded to a multiple of 16 and P to a multiple of 32: no loop has a tail.
//
// additive:  sum_c w_c tanh(a_c + b_c) = sum_c w_c - 2 sum_c w_c u_c,  u = 1 / (e^{2a} e^{2b} + 1).
//            The exponentials come ready in a and b, or, where they could overflow (safe), a and b come plain.
// distances: sum_c |a_c - b_c|^p. The caller takes the root and the sign.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int64_t KEYS = 32;      // keys held in registers by the forward pass
constexpr int64_t CHANNELS = 16;  // channels held in registers by the backward pass

enum Kind : int64_t { ADDITIVE = 0, ADDITIVE_SAFE = 1, MANHATTAN = 2, EUCLIDEAN = 3, MINKOWSKI = 4, CHEBYSHEV = 5 };

template <typename T> inline T magnitude(T x) { return x < 0 ? -x : x; }
template <typename T> inline T sign(T x) { return T(x > 0) - T(x < 0); }

// tanh is 1 to the last bit beyond this, so clamping changes nothing.
template <typename T> inline T saturate(T x) {
  constexpr T limit = sizeof(T) == 4 ? T(11) : T(20);
  return x > limit ? limit : x < -limit ? -limit : x;
}

// 1 / (e^{2(a+b)} + 1), of exponentials or, safely, of the sums themselves.
template <typename T, bool SAFE> inline T fermi(T a, T b) {
  if constexpr (SAFE) return T(1) / (std::exp(T(2) * saturate(a + b)) + T(1));
  return T(1) / (a * b + T(1));
}

// |x|^p for x >= 0; the floor keeps the logarithm finite and its power is 0 to the last bit.
template <typename T> inline T power(T x, T p) {
  constexpr T floor = sizeof(T) == 4 ? T(1e-37) : T(1e-300);
  return std::exp(p * std::log(x > floor ? x : floor));
}

template <typename T> struct Tile {
  int64_t G, R, K, C, P, first, stride_a, stride_b;
  const T *a, *b, *bt, *w;
  T* s;
  const T* ds;
  T *da, *db, *dw;

  int64_t visible(int64_t r) const {
    int64_t n = first + r + 1;
    return n < 0 ? 0 : n > K ? K : n;
  }
};

template <typename T, int64_t KIND> void forward_group(const Tile<T>& t, int64_t g) {
  const T* w = t.w + g * t.C;
  T offset = 0;
  if constexpr (KIND == ADDITIVE || KIND == ADDITIVE_SAFE)
    for (int64_t c = 0; c < t.C; c++) offset += w[c];
  for (int64_t r = 0; r < t.R; r++) {
    const T* a = t.a + g * t.stride_a + r * t.C;
    T* s = t.s + (g * t.R + r) * t.K;
    const int64_t n = t.visible(r);
    for (int64_t j = 0; j < n; j += KEYS) {
      T sum[KEYS] = {};
      for (int64_t c = 0; c < t.C; c++) {
        const T* b = t.bt + (g * t.C + c) * t.P + j;
        const T ac = a[c], wc = w[c];
        for (int64_t l = 0; l < KEYS; l++) {
          if constexpr (KIND == ADDITIVE) sum[l] += wc * fermi<T, false>(ac, b[l]);
          if constexpr (KIND == ADDITIVE_SAFE) sum[l] += wc * fermi<T, true>(ac, b[l]);
          const T x = magnitude(ac - b[l]);
          if constexpr (KIND == MANHATTAN) sum[l] += x;
          if constexpr (KIND == EUCLIDEAN) sum[l] += x * x;
          if constexpr (KIND == MINKOWSKI) sum[l] += power(x, w[0]);
          if constexpr (KIND == CHEBYSHEV) sum[l] = x > sum[l] ? x : sum[l];
        }
      }
      if constexpr (KIND == ADDITIVE || KIND == ADDITIVE_SAFE)
        for (int64_t l = 0; l < KEYS; l++) sum[l] = offset - T(2) * sum[l];
      std::memcpy(s + j, sum, sizeof(T) * (n - j < KEYS ? n - j : KEYS));
    }
  }
}

// da_rc = sum_j ds_rj d_rjc, db_jc = +-sum_r ds_rj d_rjc in one pass over the pairs, where d is a channel's
// derivative; dw_c = sum_rj ds_rj (what w_c or p is multiplied with).
template <typename T, int64_t KIND> void backward_group(const Tile<T>& t, int64_t g) {
  constexpr bool IS_ADDITIVE = KIND == ADDITIVE || KIND == ADDITIVE_SAFE;
  const T p = t.w[g * t.C];
  for (int64_t c0 = 0; c0 < t.C; c0 += CHANNELS) {
    T dw[CHANNELS] = {};
    for (int64_t r = 0; r < t.R; r++) {
      const T* a = t.a + g * t.stride_a + r * t.C + c0;
      const T* ds = t.ds + (g * t.R + r) * t.K;
      const int64_t n = t.visible(r);
      T da[CHANNELS] = {};
      for (int64_t j = 0; j < n; j++) {
        const T* b = t.b + g * t.stride_b + j * t.C + c0;
        T* db = t.db + (g * t.K + j) * t.C + c0;
        const T d = ds[j];
        for (int64_t l = 0; l < CHANNELS; l++) {
          T y, extra = 0;
          if constexpr (IS_ADDITIVE) {
            const T u = fermi<T, KIND == ADDITIVE_SAFE>(a[l], b[l]);
            extra = d * u;
            y = extra - u * extra;
          } else {
            const T x = a[l] - b[l];
            if constexpr (KIND == MANHATTAN) y = d * sign(x);
            if constexpr (KIND == EUCLIDEAN) y = d * x;
            if constexpr (KIND == MINKOWSKI) {
              constexpr T floor = sizeof(T) == 4 ? T(1e-37) : T(1e-300);
              const T m = magnitude(x), ln = std::log(m > floor ? m : floor);
              const T lower = std::exp((p - 1) * ln);
              y = d * lower * sign(x);
              extra = d * lower * m * ln;
            }
          }
          da[l] += y;
          dw[l] += extra;
          db[l] += IS_ADDITIVE ? y : -y;
        }
      }
      std::memcpy(t.da + (g * t.R + r) * t.C + c0, da, sizeof da);
    }
    std::memcpy(t.dw + g * t.C + c0, dw, sizeof dw);
  }
}

// The largest difference alone has a gradient; of equal ones the first.
template <typename T> void backward_chebyshev(const Tile<T>& t, int64_t g) {
  for (int64_t r = 0; r < t.R; r++) {
    const T* a = t.a + g * t.stride_a + r * t.C;
    const T* ds = t.ds + (g * t.R + r) * t.K;
    const int64_t n = t.visible(r);
    T* da = t.da + (g * t.R + r) * t.C;
    std::memset(da, 0, sizeof(T) * t.C);
    for (int64_t j = 0; j < n; j += KEYS) {
      T best[KEYS] = {};
      int32_t where[KEYS] = {};
      for (int64_t c = 0; c < t.C; c++) {
        const T* b = t.bt + (g * t.C + c) * t.P + j;
        for (int64_t l = 0; l < KEYS; l++) {
          const T x = magnitude(a[c] - b[l]);
          where[l] = x > best[l] ? int32_t(c) : where[l];
          best[l] = x > best[l] ? x : best[l];
        }
      }
      for (int64_t l = 0; l < KEYS && j + l < n; l++) {
        const int64_t c = where[l];
        const T y = ds[j + l] * sign(a[c] - t.bt[(g * t.C + c) * t.P + j + l]);
        da[c] += y;
        t.db[(g * t.K + j + l) * t.C + c] -= y;
      }
    }
  }
}

// Calls work(g) for every group, spread over threads.
template <typename F> void each_group(int64_t groups, int64_t threads, F work) {
  threads = threads < groups ? threads : groups;
  if (threads <= 1) {
    for (int64_t g = 0; g < groups; g++) work(g);
    return;
  }
  std::vector<std::thread> crew;
  for (int64_t i = 0; i < threads; i++)
    crew.emplace_back([=] { for (int64_t g = i; g < groups; g += threads) work(g); });
  for (auto& one : crew) one.join();
}

template <typename T> int forward(int64_t kind, int64_t threads, Tile<T> t) {
  auto run = [&](auto group) { each_group(t.G, threads, [=](int64_t g) { group(t, g); }); return 0; };
  switch (kind) {
    case ADDITIVE: return run(forward_group<T, ADDITIVE>);
    case ADDITIVE_SAFE: return run(forward_group<T, ADDITIVE_SAFE>);
    case MANHATTAN: return run(forward_group<T, MANHATTAN>);
    case EUCLIDEAN: return run(forward_group<T, EUCLIDEAN>);
    case MINKOWSKI: return run(forward_group<T, MINKOWSKI>);
    case CHEBYSHEV: return run(forward_group<T, CHEBYSHEV>);
  }
  return 1;
}

template <typename T> int backward(int64_t kind, int64_t threads, Tile<T> t) {
  auto run = [&](auto group) { each_group(t.G, threads, [=](int64_t g) { group(t, g); }); return 0; };
  switch (kind) {
    case ADDITIVE: return run(backward_group<T, ADDITIVE>);
    case ADDITIVE_SAFE: return run(backward_group<T, ADDITIVE_SAFE>);
    case MANHATTAN: return run(backward_group<T, MANHATTAN>);
    case EUCLIDEAN: return run(backward_group<T, EUCLIDEAN>);
    case MINKOWSKI: return run(backward_group<T, MINKOWSKI>);
    case CHEBYSHEV: return run(backward_chebyshev<T>);
  }
  return 1;
}

}  // namespace

extern "C" {
int forward_f32(int64_t kind, int64_t threads, const Tile<float>* t) { return forward(kind, threads, *t); }
int forward_f64(int64_t kind, int64_t threads, const Tile<double>* t) { return forward(kind, threads, *t); }
int backward_f32(int64_t kind, int64_t threads, const Tile<float>* t) { return backward(kind, threads, *t); }
int backward_f64(int64_t kind, int64_t threads, const Tile<double>* t) { return backward(kind, threads, *t); }
}
