// Scores that are no matrix product, pair by pair: additive, and the Minkowski distances; weights that are a function
// of a row of scores; and the exponentials of a row of logits.
//
// A tile is G groups x R queries x K keys of C channels. Queries a[G,R,C] and keys b[G,K,C] come row by row with a
// stride a group, and so do their gradients; the forward pass turns the keys channel by channel first, so that it
// can run over keys in registers. Row r may see keys 0 ... first + r; the scores of the others are
// set to `fill`, and their ds is 0. C is a multiple of the numbers in a vector: no inner loop has a tail. Rows are
// taken four at a time, so that a key is loaded once for four queries.
//
// additive:  sum_c w_c tanh(a_c + b_c) = sum_c w_c - 2 sum_c w_c u_c,  u = 1 / (e^{2a} e^{2b} + 1).
//            The exponentials come ready in a and b, or, where they could overflow (safe), a and b come plain.
// distances: -scale (sum_c |a_c - b_c|^p)^{1/p}, with p in w. The backward pass takes ds times the factor that all
//            channels share, and for minkowski the logarithm of the distance in s.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

// torch's own threads, found in the process that has loaded torch: no threads of ours compete with them for cores, and
// after a fork they behave as they do for torch.
extern "C" __attribute__((weak)) void GOMP_parallel(void (*work)(void*), void* data, unsigned threads, unsigned flags);

namespace {

constexpr int64_t ROWS = 4;  // queries that are worked on at once

enum Kind : int64_t {
  ADDITIVE = 0,
  ADDITIVE_SAFE = 1,
  MANHATTAN = 2,
  EUCLIDEAN = 3,
  MINKOWSKI = 4,
  CHEBYSHEV = 5,
  ADDITIVE_WIDE = 6,
};

constexpr bool is_additive(int64_t kind) { return kind == ADDITIVE || kind == ADDITIVE_SAFE || kind == ADDITIVE_WIDE; }

// The width of one vector register. A wider vector is split into scalars by gcc, which is several times slower.
#if defined(__AVX512F__)
constexpr int64_t VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr int64_t VECTOR_BYTES = 32;
#else
constexpr int64_t VECTOR_BYTES = 16;  // SSE2, NEON
#endif

// Whether two queries share a division in the backward pass. On AVX2 the multiplications that this takes cost more
// than the division (measured on Zen 3 only).
constexpr bool BACKWARD_SHARES = VECTOR_BYTES == 16;

// One register of numbers: keys in the forward pass, channels in the backward pass.
template <typename T> struct Lanes {
  typedef T Vector __attribute__((vector_size(VECTOR_BYTES)));
  static constexpr int64_t SIZE = VECTOR_BYTES / sizeof(T);
};
template <typename T> using Vector = typename Lanes<T>::Vector;

template <typename T> inline Vector<T> load(const T* from) {
  Vector<T> x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

template <typename T> inline void store(T* to, Vector<T> x, int64_t count = Lanes<T>::SIZE) {
  std::memcpy(to, &x, sizeof(T) * count);
}

// Applied lane by lane; kept a loop, for which compilers know vector versions of exp and log.
template <typename T, typename F> inline Vector<T> each_lane(Vector<T> x, F f) {
  T y[Lanes<T>::SIZE];
  store<T>(y, x);
#pragma GCC unroll 1
  for (int64_t l = 0; l < Lanes<T>::SIZE; l++) y[l] = f(y[l]);
  return load<T>(y);
}

template <typename T> inline Vector<T> exponential(Vector<T> x) {
  return each_lane<T>(x, [](T y) { return std::exp(y); });
}

// The logarithm of a magnitude; the floor keeps it finite, and any power of it is 0 to the last bit.
template <typename T> inline Vector<T> logarithm(Vector<T> x) {
  constexpr T floor = sizeof(T) == 4 ? T(1e-37) : T(1e-300);
  return each_lane<T>(x, [](T y) { return std::log(y > floor ? y : floor); });
}

template <typename T> inline Vector<T> magnitude(Vector<T> x) { return x < 0 ? -x : x; }

// d where x > 0, -d where x < 0, 0 where x = 0: the sign bit of x, which costs less than two comparisons.
template <typename T> inline Vector<T> signed_by(Vector<T> d, Vector<T> x) {
  using Bits = decltype(x != x);
  using Bit = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  const Bits sign = (Bits)x & (Bits{} + std::numeric_limits<Bit>::min());
  return (Vector<T>)(((Bits)d ^ sign) & (x != 0));
}

// 1 / x. With -ffast-math gcc always takes the estimate and one Newton step. On AVX2 the division itself is faster
// (Zen 3, the additive loops: 0.36 ms instead of 0.39 forward, 0.55 instead of 0.58 backward, each at its best); on
// AVX-512, where this is not measured, the estimate of 14 bits needs one step to be right to the last bits.
template <typename T> inline Vector<T> reciprocal(Vector<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    Vector<T> estimate;
    asm("vrcp14ps %1, %0" : "=v"(estimate) : "v"(x));
    return estimate + estimate * (T(1) - x * estimate);
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    Vector<T> quotient = Vector<T>{} + T(1);
    asm("vdivps %1, %0, %0" : "+x"(quotient) : "x"(x));
    return quotient;
  }
#endif
  return T(1) / x;
}

// 1 / (e^{2(a+b)} + 1), of exponentials or, safely, of the sums themselves: beyond the limit tanh is 1 to the last
// bit, so clamping changes nothing.
template <typename T, int64_t KIND> inline Vector<T> fermi(Vector<T> a, Vector<T> b) {
  if constexpr (KIND != ADDITIVE_SAFE) return reciprocal<T>(a * b + T(1));
  const Vector<T> limit = Vector<T>{} + (sizeof(T) == 4 ? T(11) : T(20));
  Vector<T> x = a + b;
  x = x > limit ? limit : x < -limit ? -limit : x;
  return reciprocal<T>(exponential<T>(x * T(2)) + T(1));
}

// Two at once: u = y / xy and v = x / xy share one division, where the product cannot overflow.
template <typename T, int64_t KIND, bool SHARES>
inline void fermi_two(Vector<T> a, Vector<T> other, Vector<T> b, Vector<T>& u, Vector<T>& v) {
  if constexpr (KIND == ADDITIVE && SHARES) {
    const Vector<T> x = a * b + T(1), y = other * b + T(1), r = reciprocal<T>(x * y);
    u = y * r;
    v = x * r;
  } else {
    u = fermi<T, KIND>(a, b);
    v = fermi<T, KIND>(other, b);
  }
}

template <typename T> struct Tile {
  int64_t G, R, K, C, first, stride_a, stride_b;
  const T *a, *b, *w;
  T* s;
  const T* ds;
  T *da, *db, *dw;
  double fill, scale;

  int64_t visible(int64_t r) const {
    const int64_t n = first + r + 1;
    return n < 0 ? 0 : n > K ? K : n;
  }
};

// Adds one channel's part to the sum of a distance; minkowski's is relative to the largest, whose logarithm is `top`.
template <typename T, int64_t KIND> inline Vector<T> add(Vector<T> sum, T a, Vector<T> b, T p, Vector<T> top) {
  const Vector<T> x = magnitude<T>(a - b);
  if constexpr (KIND == EUCLIDEAN) return sum + x * x;
  if constexpr (KIND == MINKOWSKI) return sum + exponential<T>(p * (logarithm<T>(x) - top));
  if constexpr (KIND == CHEBYSHEV) return x > sum ? x : sum;
  return sum + x;
}

// The sums of one query, over channels, with a vector of keys.
template <typename T> struct Sums {
  const T* a;
  Vector<T> sum, top;
};

// Adds one channel's part to the sums of two queries.
template <typename T, int64_t KIND> inline void add_two(Sums<T>& one, Sums<T>& two, int64_t c, Vector<T> b, T w, T p) {
  if constexpr (is_additive(KIND)) {
    Vector<T> u, v;
    fermi_two<T, KIND, true>(Vector<T>{} + one.a[c], Vector<T>{} + two.a[c], b, u, v);
    one.sum += w * u;
    two.sum += w * v;
  } else {
    one.sum = add<T, KIND>(one.sum, one.a[c], b, p, one.top);
    two.sum = add<T, KIND>(two.sum, two.a[c], b, p, two.top);
  }
}

// The score of a pair from the sum over its channels.
template <typename T, int64_t KIND> inline Vector<T> finish(const Sums<T>& row, T offset, T scale, T p) {
  Vector<T> sum = row.sum;
  if constexpr (is_additive(KIND)) return offset - T(2) * sum;
  if constexpr (KIND == EUCLIDEAN) sum = each_lane<T>(sum, [](T x) { return std::sqrt(x); });
  if constexpr (KIND == MINKOWSKI) {
    // A difference of 0 has the logarithm of the floor, and stays 0.
    const Vector<T> none = logarithm<T>(Vector<T>{});
    sum = row.top > none ? exponential<T>(row.top + logarithm<T>(sum) / p) : Vector<T>{};
  }
  return sum * -scale;
}

template <typename T> inline T largest(const T* s, int64_t n) {
  T top = s[0];
  for (int64_t j = 1; j < n; j++) top = s[j] > top ? s[j] : top;
  return top;
}

// s_j becomes exp(s_j) / (rest + sum exp(s)), where rest is 0 (softmax) or 1 (softmax1).
template <typename T> void softmax(T* s, int64_t n, bool has_rest) {
  T top = largest(s, n), total = 0;
  if (has_rest) top = top > 0 ? top : 0;
  for (int64_t j = 0; j < n; j++) {
    s[j] = std::exp(s[j] - top);
    total += s[j];
  }
  const T inverse = T(1) / (has_rest ? total + std::exp(-top) : total);
  for (int64_t j = 0; j < n; j++) s[j] *= inverse;
}

// s_j becomes max(s_j - threshold, 0), which sum to 1. The threshold over all that lie above the last one rises until
// nothing more falls below it (Michelot 1986).
template <typename T> void sparsemax(T* s, int64_t n) {
  const T top = largest(s, n);
  T threshold = -1;
  for (int64_t before = -1, step = 0; step <= n; step++) {
    int64_t count = 0;
    T sum = 0;
    for (int64_t j = 0; j < n; j++) {
      const bool is_in = s[j] - top > threshold;
      sum += is_in ? s[j] - top : 0;
      count += is_in;
    }
    if (count == before) break;
    threshold = (sum - 1) / T(count);
    before = count;
  }
  for (int64_t j = 0; j < n; j++) {
    const T x = s[j] - top - threshold;
    s[j] = x > 0 ? x : 0;
  }
}

// s_j becomes max(s_j / 2 - threshold, 0)^2, which sum to 1. The sum is convex and falling in the threshold, so
// Newton's steps from the left never pass the root.
template <typename T> void entmax15(T* s, int64_t n) {
  const T top = largest(s, n);
  T threshold = -1;
  for (int64_t step = 0; step < 64; step++) {
    T square = 0, sum = 0;
    for (int64_t j = 0; j < n; j++) {
      const T x = (s[j] - top) / 2 - threshold, y = x > 0 ? x : 0;
      sum += y;
      square += y * y;
    }
    const T next = threshold + (square - 1) / (2 * sum);
    if (!(next > threshold)) break;
    threshold = next;
  }
  for (int64_t j = 0; j < n; j++) {
    const T x = (s[j] - top) / 2 - threshold;
    s[j] = x > 0 ? x * x : 0;
  }
}

// The keys of a group channel by channel, [C][keys], the keys padded with zeros to whole vectors.
template <typename T> struct Turned {
  int64_t keys;
  std::vector<T> values;

  Turned(const Tile<T>& t, int64_t g)
      : keys((t.K + Lanes<T>::SIZE - 1) / Lanes<T>::SIZE * Lanes<T>::SIZE), values(keys * t.C, T(0)) {
    for (int64_t j = 0; j < t.K; j++) {
      const T* b = t.b + g * t.stride_b + j * t.C;
      for (int64_t c = 0; c < t.C; c++) values[c * keys + j] = b[c];
    }
  }

  const T* at(int64_t c, int64_t j) const { return values.data() + c * keys + j; }
};

// The scores of rows start ... stop - 1.
template <typename T, int64_t KIND> void forward_rows(const Tile<T>& t, int64_t g, int64_t start, int64_t stop) {
  constexpr int64_t SIZE = Lanes<T>::SIZE;
  const Turned<T> turned(t, g);
  const T* w = t.w + g * t.C;
  T offset = 0;
  if constexpr (is_additive(KIND))
    for (int64_t c = 0; c < t.C; c++) offset += w[c];
  for (int64_t r = start; r < stop; r += ROWS) {
    const int64_t rows = stop - r < ROWS ? stop - r : ROWS;
    const int64_t n = t.visible(r + rows - 1);
    for (int64_t j = 0; j < n; j += SIZE) {
      auto begin = [&](Sums<T>& row, int64_t i) {
        row.a = t.a + g * t.stride_a + (r + (i < rows ? i : 0)) * t.C;
        row.sum = row.top = Vector<T>{};
        if constexpr (KIND == MINKOWSKI) {
          for (int64_t c = 0; c < t.C; c++)
            row.top = add<T, CHEBYSHEV>(row.top, row.a[c], load<T>(turned.at(c, j)), 0, row.top);
          row.top = logarithm<T>(row.top);
        }
      };
      Sums<T> row0, row1, row2, row3;
      begin(row0, 0), begin(row1, 1), begin(row2, 2), begin(row3, 3);
      for (int64_t c = 0; c < t.C; c++) {
        const Vector<T> b = load<T>(turned.at(c, j));
        add_two<T, KIND>(row0, row1, c, b, w[c], w[0]);
        add_two<T, KIND>(row2, row3, c, b, w[c], w[0]);
      }
      auto end = [&](const Sums<T>& row, int64_t i) {
        if (i >= rows) return;
        const Vector<T> s = finish<T, KIND>(row, offset, T(t.scale), w[0]);
        T* to = t.s + (g * t.R + r + i) * t.K + j;
        // What is written beyond the keys that a row may see is filled below; a whole register costs less than a part.
        if (j + SIZE <= t.K) store<T>(to, s);
        else store<T>(to, s, t.K - j);
      };
      end(row0, 0), end(row1, 1), end(row2, 2), end(row3, 3);
    }
    for (int64_t i = 0; i < rows; i++) {
      T* s = t.s + (g * t.R + r + i) * t.K;
      const int64_t seen = t.visible(r + i);
      for (int64_t j = seen; j < t.K; j++) s[j] = T(t.fill);
    }
  }
}

template <typename T> struct Gradient {
  Vector<T> a, da;
  const T *ds, *s;
};

// What the queries share: one key and its gradient, and the gradient of the parameter, in one block of channels.
template <typename T> struct Shared {
  Vector<T> b, db, dw;
};

// Adds one pair's part, in one block of channels, to the gradients of its query, its key and the parameter.
template <typename T, int64_t KIND> inline void add_gradient(Gradient<T>& row, Shared<T>& key, int64_t j, T p) {
  const T d = row.ds[j];
  const Vector<T> x = row.a - key.b;
  Vector<T> y;
  if constexpr (KIND == EUCLIDEAN) y = d * x;
  if constexpr (KIND == MANHATTAN) y = signed_by<T>(Vector<T>{} + d, x);
  if constexpr (KIND == MINKOWSKI) {
    // (|x| / distance)^{p-1}, which neither overflows nor vanishes however small the distance is.
    const Vector<T> m = magnitude<T>(x), ln = logarithm<T>(m) - row.s[j], lower = exponential<T>((p - 1) * ln);
    y = lower * signed_by<T>(Vector<T>{} + d, x);
    key.dw += d * lower * m * ln;
  }
  row.da += y;
  key.db -= y;
}

// The same for two queries; w4 is 4 w, what additive's u - u^2 is multiplied with.
template <typename T, int64_t KIND>
inline void add_gradient_two(
    Gradient<T>& row, Gradient<T>& other, Shared<T>& key, int64_t j, T p, Vector<T> w4) {
  if constexpr (is_additive(KIND)) {
    Vector<T> u, v;
    fermi_two<T, KIND, BACKWARD_SHARES>(row.a, other.a, key.b, u, v);
    const Vector<T> du = row.ds[j] * u, dv = other.ds[j] * v;
    const Vector<T> y = du - u * du, z = dv - v * dv;
    key.dw += du + dv;
    row.da += y;
    other.da += z;
    key.db += w4 * (y + z);
  } else {
    add_gradient<T, KIND>(row, key, j, p);
    add_gradient<T, KIND>(other, key, j, p);
  }
}

// da_rc = sum_j ds_rj d_rjc, db_jc += +-sum_r ds_rj d_rjc in one pass over the pairs, where d is a channel's
// derivative; dw_c += sum_rj ds_rj (what w_c or p is multiplied with). Of one register of channels, from c on.
template <typename T, int64_t KIND> void backward_channels(const Tile<T>& t, int64_t g, int64_t c) {
  const T p = t.w[g * t.C];
  const std::vector<T> nothing(t.K, T(0));
  Shared<T> key;
  key.dw = Vector<T>{};
  const Vector<T> w4 = load<T>(t.w + g * t.C + c) * T(4);
  for (int64_t r = 0; r < t.R; r += ROWS) {
    const int64_t rows = t.R - r < ROWS ? t.R - r : ROWS;
    const int64_t n = t.visible(r + rows - 1);
    auto begin = [&](Gradient<T>& row, int64_t i) {
      const int64_t at = (g * t.R + r + i) * t.K;
      row.a = load<T>(t.a + g * t.stride_a + (r + (i < rows ? i : 0)) * t.C + c);
      row.da = Vector<T>{};
      row.ds = i < rows ? t.ds + at : nothing.data();
      row.s = KIND == MINKOWSKI && i < rows ? t.s + at : nothing.data();
    };
    auto end = [&](const Gradient<T>& row, int64_t i) {
      if (i < rows) store<T>(t.da + g * t.stride_a + (r + i) * t.C + c, is_additive(KIND) ? row.da * w4 : row.da);
    };
    Gradient<T> row0, row1, row2, row3;
    begin(row0, 0), begin(row1, 1), begin(row2, 2), begin(row3, 3);
    for (int64_t j = 0; j < n; j++) {
      T* to = t.db + g * t.stride_b + j * t.C + c;
      key.b = load<T>(t.b + g * t.stride_b + j * t.C + c);
      key.db = load<T>(to);
      add_gradient_two<T, KIND>(row0, row1, key, j, p, w4);
      add_gradient_two<T, KIND>(row2, row3, key, j, p, w4);
      store<T>(to, key.db);
    }
    end(row0, 0), end(row1, 1), end(row2, 2), end(row3, 3);
  }
  T* to = t.dw + g * t.C + c;
  store<T>(to, load<T>(to) + key.dw);
}

// The largest difference alone has a gradient; of equal ones the first.
template <typename T> void backward_chebyshev(const Tile<T>& t, int64_t g) {
  constexpr int64_t SIZE = Lanes<T>::SIZE;
  const Turned<T> turned(t, g);
  for (int64_t r = 0; r < t.R; r++) {
    const T* a = t.a + g * t.stride_a + r * t.C;
    const T* ds = t.ds + (g * t.R + r) * t.K;
    const int64_t n = t.visible(r);
    T* da = t.da + g * t.stride_a + r * t.C;
    std::memset(da, 0, sizeof(T) * t.C);
    for (int64_t j = 0; j < n; j += SIZE) {
      Vector<T> best = {}, signed_best = {}, where = {};
      for (int64_t c = 0; c < t.C; c++) {
        const Vector<T> x = a[c] - load<T>(turned.at(c, j)), size = magnitude<T>(x);
        where = size > best ? Vector<T>{} + T(c) : where;
        signed_best = size > best ? x : signed_best;
        best = size > best ? size : best;
      }
      T y[SIZE], channels[SIZE];
      store<T>(y, signed_by<T>(Vector<T>{} + T(1), signed_best));
      store<T>(channels, where);
      for (int64_t l = 0; l < SIZE && j + l < n; l++) {
        const int64_t c = int64_t(channels[l]);
        const T d = ds[j + l] * y[l];
        da[c] += d;
        t.db[g * t.stride_b + (j + l) * t.C + c] -= d;
      }
    }
  }
}

// Calls work(i) for i = 0 ... count - 1, spread over threads.
template <typename F> void each(int64_t count, int64_t threads, F work) {
  threads = threads < count ? threads : count;
  if (threads <= 1) {
    for (int64_t i = 0; i < count; i++) work(i);
    return;
  }
  struct Job {
    F work;
    int64_t count;
    std::atomic<int64_t> next;
    void run() { for (int64_t i; (i = next++) < count;) work(i); }
  } job{work, count, {0}};
  if (GOMP_parallel) {
    GOMP_parallel([](void* data) { static_cast<Job*>(data)->run(); }, &job, unsigned(threads), 0);
  } else {  // torch has another kind of threads, as on macOS
    std::vector<std::thread> crew;
    for (int64_t i = 1; i < threads; i++) crew.emplace_back([&job] { job.run(); });
    job.run();
    for (auto& one : crew) one.join();
  }
}

enum Weights : int64_t { SOFTMAX = 0, SOFTMAX1 = 1, SPARSEMAX = 2, ENTMAX15 = 3 };

// e^x for x <= 0, right to the last bits; below the smallest normal number it is 0. x = n log 2 + r with |r| <= log(2)/2,
// and e^r is a polynomial (that of Cephes' expf). A compiler has a vector version of std::exp only with some libraries.
inline Vector<float> exponential_below_0(Vector<float> x) {
  using Bits = decltype(x != x);
  const Vector<float> lowest = Vector<float>{} - 87.0f, y = x > lowest ? x : lowest;
  const Bits n = __builtin_convertvector(y * 1.44269504f - 0.5f, Bits);  // cut towards 0: the nearest below 0
  const Vector<float> n_float = __builtin_convertvector(n, Vector<float>);
  const Vector<float> r = y - n_float * 0.693359375f + n_float * 2.12194440e-4f;
  Vector<float> sum = Vector<float>{} + 1.9875691500e-4f;
  for (float c : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    sum = sum * r + c;
  }
  const Bits scaled = (Bits)(sum * r * r + r + 1.0f) + (n << 23);  // times 2^n
  return (Vector<float>)(scaled & (x > lowest));
}

inline Vector<double> exponential_below_0(Vector<double> x) { return exponential<double>(x); }

// Whether a number is NaN or +infinity, by its bits: with -ffast-math a comparison may not tell.
template <typename T> inline bool is_too_large(T x) {
  using Bit = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bit sign = Bit(1) << (8 * sizeof(T) - 1), infinity = sizeof(T) == 4 ? 0x7f800000 : 0x7ff0000000000000;
  Bit bits;
  std::memcpy(&bits, &x, sizeof x);
  return (bits & ~sign) > infinity || bits == infinity;
}

// Logits s_j become e^{s_j - top}, where top is the largest of them and of the row's shift so far; their sum is added to
// the row's total, which is relative to its shift. A row with NaN or +infinity has the total NaN.
template <typename T> void exponentiate(T* s, int64_t n, T& shift, T& total) {
  constexpr int64_t SIZE = Lanes<T>::SIZE;
  using Bits = decltype(Vector<T>{} != Vector<T>{});
  using Bit = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  constexpr Bit infinity = sizeof(T) == 4 ? 0x7f800000 : 0x7ff0000000000000;
  Vector<T> tops = Vector<T>{} + shift;
  Bits sizes = {};
  const int64_t whole = n / SIZE * SIZE;
  for (int64_t j = 0; j < whole; j += SIZE) {
    const Vector<T> x = load<T>(s + j);
    const Bits size = (Bits)x & (Bits{} + std::numeric_limits<Bit>::max());
    tops = x > tops ? x : tops;
    sizes = size > sizes ? size : sizes;
  }
  T rest[SIZE];
  std::fill(rest, rest + SIZE, -std::numeric_limits<T>::max());
  std::copy(s + whole, s + n, rest);
  const Vector<T> last = load<T>(rest);
  tops = last > tops ? last : tops;
  T top = shift;
  bool is_finite = true;
  for (int64_t l = 0; l < SIZE; l++) {
    top = tops[l] > top ? tops[l] : top;
    is_finite = is_finite && sizes[l] < infinity;
  }
  if (!is_finite || whole < n) {  // -infinity is allowed
    bool is_bad = false;
    for (int64_t j = is_finite ? whole : 0; j < n; j++) is_bad = is_bad || is_too_large(s[j]);
    if (is_bad) {
      total = std::numeric_limits<T>::quiet_NaN();
      return;
    }
  }
  Vector<T> sums = {};
  for (int64_t j = 0; j < whole; j += SIZE) {
    const Vector<T> e = exponential_below_0(load<T>(s + j) - top);
    store<T>(s + j, e);
    sums += e;
  }
  const Vector<T> e = exponential_below_0(last - top);
  store<T>(rest, e);
  std::copy(rest, rest + (n - whole), s + whole);
  T sum = 0;
  for (int64_t l = 0; l < SIZE; l++) sum += sums[l] + (l < n - whole ? e[l] : T(0));
  total = total * std::exp(shift - top) + sum;
  shift = top;
}

// Calls work(row) for each row of the tile, some at a time: with a row for each call the counter that threads share
// would be the limit.
template <typename T, typename F> void each_row(int64_t threads, const Tile<T>& t, F work) {
  constexpr int64_t STEP = 16;
  each((t.G * t.R + STEP - 1) / STEP, threads, [&](int64_t i) {
    for (int64_t row = i * STEP; row < (i + 1) * STEP && row < t.G * t.R; row++) work(row);
  });
}

// The shifts are in da, the totals in db, a number for each row.
template <typename T> int exponentiate(int64_t, int64_t threads, Tile<T> t) {
  each_row(threads, t, [&](int64_t row) { exponentiate(t.s + row * t.K, t.K, t.da[row], t.db[row]); });
  return 0;
}

// Each row of scores becomes its weights over the keys it may see, and 0 elsewhere.
template <typename T> int normalise(int64_t kind, int64_t threads, Tile<T> t) {
  each_row(threads, t, [&](int64_t row) {
    T* s = t.s + row * t.K;
    const int64_t seen = t.visible(row % t.R);
    for (int64_t j = seen; j < t.K; j++) s[j] = 0;
    if (!seen) return;
    if (kind == SPARSEMAX) sparsemax(s, seen);
    else if (kind == ENTMAX15) entmax15(s, seen);
    else softmax(s, seen, kind == SOFTMAX1);
  });
  return 0;
}

template <typename T> int forward(int64_t kind, int64_t threads, Tile<T> t) {
  // Whole groups, whose keys are turned once, or parts of them if threads would be idle otherwise.
  int64_t rows = t.R;
  if (threads > 1 && t.G % threads) rows = std::max<int64_t>(32, (t.R / threads + ROWS - 1) / ROWS * ROWS);
  const int64_t parts = (t.R + rows - 1) / rows;
  auto run = [&](auto work) {
    each(t.G * parts, threads, [=](int64_t i) {
      const int64_t start = i % parts * rows;
      work(t, i / parts, start, std::min(t.R, start + rows));
    });
    return 0;
  };
  switch (kind) {
    case ADDITIVE: return run(forward_rows<T, ADDITIVE>);
    case ADDITIVE_SAFE: return run(forward_rows<T, ADDITIVE_SAFE>);
    case ADDITIVE_WIDE: return run(forward_rows<T, ADDITIVE_WIDE>);
    case MANHATTAN: return run(forward_rows<T, MANHATTAN>);
    case EUCLIDEAN: return run(forward_rows<T, EUCLIDEAN>);
    case MINKOWSKI: return run(forward_rows<T, MINKOWSKI>);
    case CHEBYSHEV: return run(forward_rows<T, CHEBYSHEV>);
  }
  return 1;
}

template <typename T> int backward(int64_t kind, int64_t threads, Tile<T> t) {
  constexpr int64_t SIZE = Lanes<T>::SIZE;
  auto run = [&](auto work) {
    const int64_t parts = t.C / SIZE;
    each(t.G * parts, threads, [=](int64_t i) { work(t, i / parts, i % parts * SIZE); });
    return 0;
  };
  switch (kind) {
    case ADDITIVE: return run(backward_channels<T, ADDITIVE>);
    case ADDITIVE_SAFE: return run(backward_channels<T, ADDITIVE_SAFE>);
    case ADDITIVE_WIDE: return run(backward_channels<T, ADDITIVE_WIDE>);
    case MANHATTAN: return run(backward_channels<T, MANHATTAN>);
    case EUCLIDEAN: return run(backward_channels<T, EUCLIDEAN>);
    case MINKOWSKI: return run(backward_channels<T, MINKOWSKI>);
    case CHEBYSHEV: each(t.G, threads, [=](int64_t g) { backward_chebyshev(t, g); }); return 0;
  }
  return 1;
}

}  // namespace

extern "C" {
int64_t vector_bytes() { return VECTOR_BYTES; }
int forward_f32(int64_t kind, int64_t threads, const Tile<float>* t) { return forward(kind, threads, *t); }
int forward_f64(int64_t kind, int64_t threads, const Tile<double>* t) { return forward(kind, threads, *t); }
int normalise_f32(int64_t kind, int64_t threads, const Tile<float>* t) { return normalise(kind, threads, *t); }
int normalise_f64(int64_t kind, int64_t threads, const Tile<double>* t) { return normalise(kind, threads, *t); }
int exponentiate_f32(int64_t kind, int64_t threads, const Tile<float>* t) { return exponentiate(kind, threads, *t); }
int exponentiate_f64(int64_t kind, int64_t threads, const Tile<double>* t) { return exponentiate(kind, threads, *t); }
int backward_f32(int64_t kind, int64_t threads, const Tile<float>* t) { return backward(kind, threads, *t); }
int backward_f64(int64_t kind, int64_t threads, const Tile<double>* t) { return backward(kind, threads, *t); }
}
