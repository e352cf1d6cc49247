// Scores that are no matrix product, pair by pair: additive, and the Minkowski distances; and weights that are a
// function of a row of scores.
//
// A tile is G groups x R queries x K keys of C channels. Queries a[G,R,C] and keys b[G,K,C] come row by row with a
// stride a group, and so do their gradients; the forward pass turns the keys channel by channel first, so that it
// can run over keys in registers. Row r may see keys 0 ... first + r; the scores of the others are
// set to `fill`, and their ds is 0. C is padded to a multiple of 16: no inner loop has a tail. Rows are
// taken four at a time, so that a key is loaded once for four queries.
//
// additive:  sum_c w_c tanh(a_c + b_c) = sum_c w_c - 2 sum_c w_c u_c,  u = 1 / (e^{2a} e^{2b} + 1).
//            The exponentials come ready in a and b, or, where they could overflow (safe), a and b come plain.
// distances: -scale (sum_c |a_c - b_c|^p)^{1/p}, with p in w. The backward pass takes ds times the factor that all
//            channels share, and for minkowski the logarithm of the distance in s.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

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

// d where x > 0, -d where x < 0, 0 where x = 0.
template <typename T> inline Vector<T> signed_by(T d, Vector<T> x) {
  const Vector<T> zero = {};
  return x > 0 ? zero + d : x < 0 ? zero - d : zero;
}

// 1 / (e^{2(a+b)} + 1), of exponentials or, safely, of the sums themselves: beyond the limit tanh is 1 to the last
// bit, so clamping changes nothing.
template <typename T, int64_t KIND> inline Vector<T> fermi(Vector<T> a, Vector<T> b) {
  if constexpr (KIND != ADDITIVE_SAFE) return T(1) / (a * b + T(1));
  const Vector<T> limit = Vector<T>{} + (sizeof(T) == 4 ? T(11) : T(20));
  Vector<T> x = a + b;
  x = x > limit ? limit : x < -limit ? -limit : x;
  return T(1) / (exponential<T>(x * T(2)) + T(1));
}

// Two at once: u = y / xy and v = x / xy share one division, where the product cannot overflow.
template <typename T, int64_t KIND>
inline void fermi_two(Vector<T> a, Vector<T> other, Vector<T> b, Vector<T>& u, Vector<T>& v) {
  if constexpr (KIND == ADDITIVE) {
    const Vector<T> x = a * b + T(1), y = other * b + T(1), r = T(1) / (x * y);
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
    fermi_two<T, KIND>(Vector<T>{} + one.a[c], Vector<T>{} + two.a[c], b, u, v);
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

template <typename T, int64_t KIND> void forward_group(const Tile<T>& t, int64_t g) {
  constexpr int64_t SIZE = Lanes<T>::SIZE;
  const Turned<T> turned(t, g);
  const T* w = t.w + g * t.C;
  T offset = 0;
  if constexpr (is_additive(KIND))
    for (int64_t c = 0; c < t.C; c++) offset += w[c];
  for (int64_t r = 0; r < t.R; r += ROWS) {
    const int64_t rows = t.R - r < ROWS ? t.R - r : ROWS;
    const int64_t n = t.visible(r + rows - 1);
    for (int64_t j = 0; j < n; j += SIZE) {
      auto begin = [&](int64_t i) {
        Sums<T> row{t.a + g * t.stride_a + (r + (i < rows ? i : 0)) * t.C, {}, {}};
        if constexpr (KIND == MINKOWSKI) {
          for (int64_t c = 0; c < t.C; c++)
            row.top = add<T, CHEBYSHEV>(row.top, row.a[c], load<T>(turned.at(c, j)), 0, row.top);
          row.top = logarithm<T>(row.top);
        }
        return row;
      };
      Sums<T> row0 = begin(0), row1 = begin(1), row2 = begin(2), row3 = begin(3);
      for (int64_t c = 0; c < t.C; c++) {
        const Vector<T> b = load<T>(turned.at(c, j));
        add_two<T, KIND>(row0, row1, c, b, w[c], w[0]);
        add_two<T, KIND>(row2, row3, c, b, w[c], w[0]);
      }
      const Sums<T>* all[ROWS] = {&row0, &row1, &row2, &row3};
      for (int64_t i = 0; i < rows; i++) {
        const Vector<T> s = finish<T, KIND>(*all[i], offset, T(t.scale), w[0]);
        store<T>(t.s + (g * t.R + r + i) * t.K + j, s, n - j < SIZE ? n - j : SIZE);
      }
    }
    for (int64_t i = 0; i < rows; i++) {
      T* s = t.s + (g * t.R + r + i) * t.K;
      const int64_t seen = t.visible(r + i);
      for (int64_t j = seen; j < t.K; j++) s[j] = T(t.fill);
    }
  }
}

template <typename T> struct Gradient {
  Vector<T> a, da, dw;
  const T *ds, *s;
};

// Adds one pair's part, in one block of channels, to the gradients of its query, its key and the parameter.
template <typename T, int64_t KIND>
inline void add_gradient(Gradient<T>& row, int64_t j, Vector<T> b, Vector<T>& db, T p) {
  const T d = row.ds[j];
  const Vector<T> x = row.a - b;
  Vector<T> y;
  if constexpr (KIND == EUCLIDEAN) y = d * x;
  if constexpr (KIND == MANHATTAN) y = signed_by<T>(d, x);
  if constexpr (KIND == MINKOWSKI) {
    // (|x| / distance)^{p-1}, which neither overflows nor vanishes however small the distance is.
    const Vector<T> m = magnitude<T>(x), ln = logarithm<T>(m) - row.s[j], lower = exponential<T>((p - 1) * ln);
    y = lower * signed_by<T>(d, x);
    row.dw += d * lower * m * ln;
  }
  row.da += y;
  db -= y;
}

// The same for two queries; w4 is 4 w, what additive's u - u^2 is multiplied with.
template <typename T, int64_t KIND>
inline void add_gradient_two(
    Gradient<T>& row, Gradient<T>& other, int64_t j, Vector<T> b, Vector<T>& db, T p, Vector<T> w4) {
  if constexpr (is_additive(KIND)) {
    Vector<T> u, v;
    fermi_two<T, KIND>(row.a, other.a, b, u, v);
    const Vector<T> du = row.ds[j] * u, dv = other.ds[j] * v;
    const Vector<T> y = du - u * du, z = dv - v * dv;
    row.dw += du;
    other.dw += dv;
    row.da += y;
    other.da += z;
    db += w4 * (y + z);
  } else {
    add_gradient<T, KIND>(row, j, b, db, p);
    add_gradient<T, KIND>(other, j, b, db, p);
  }
}

// da_rc = sum_j ds_rj d_rjc, db_jc += +-sum_r ds_rj d_rjc in one pass over the pairs, where d is a channel's
// derivative; dw_c += sum_rj ds_rj (what w_c or p is multiplied with).
template <typename T, int64_t KIND> void backward_group(const Tile<T>& t, int64_t g) {
  const T p = t.w[g * t.C];
  const std::vector<T> nothing(t.K, T(0));
  for (int64_t c = 0; c < t.C; c += Lanes<T>::SIZE) {
    Vector<T> dw = {};
    const Vector<T> w4 = load<T>(t.w + g * t.C + c) * T(4);
    for (int64_t r = 0; r < t.R; r += ROWS) {
      const int64_t rows = t.R - r < ROWS ? t.R - r : ROWS;
      const int64_t n = t.visible(r + rows - 1);
      auto begin = [&](int64_t i) {
        const T* a = t.a + g * t.stride_a + (r + (i < rows ? i : 0)) * t.C + c;
        const int64_t at = (g * t.R + r + i) * t.K;
        return Gradient<T>{load<T>(a), {}, {}, i < rows ? t.ds + at : nothing.data(),
                           KIND == MINKOWSKI && i < rows ? t.s + at : nothing.data()};
      };
      auto end = [&](const Gradient<T>& row, int64_t i) {
        dw += row.dw;
        if (i < rows) store<T>(t.da + g * t.stride_a + (r + i) * t.C + c, is_additive(KIND) ? row.da * w4 : row.da);
      };
      Gradient<T> row0 = begin(0), row1 = begin(1), row2 = begin(2), row3 = begin(3);
      for (int64_t j = 0; j < n; j++) {
        const Vector<T> b = load<T>(t.b + g * t.stride_b + j * t.C + c);
        T* to = t.db + g * t.stride_b + j * t.C + c;
        Vector<T> db = load<T>(to);
        add_gradient_two<T, KIND>(row0, row1, j, b, db, p, w4);
        add_gradient_two<T, KIND>(row2, row3, j, b, db, p, w4);
        store<T>(to, db);
      }
      end(row0, 0), end(row1, 1), end(row2, 2), end(row3, 3);
    }
    T* to = t.dw + g * t.C + c;
    store<T>(to, load<T>(to) + dw);
  }
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
      Vector<T> best = {}, where = {};
      for (int64_t c = 0; c < t.C; c++) {
        const Vector<T> x = magnitude<T>(a[c] - load<T>(turned.at(c, j)));
        where = x > best ? Vector<T>{} + T(c) : where;
        best = x > best ? x : best;
      }
      for (int64_t l = 0; l < SIZE && j + l < n; l++) {
        const int64_t c = int64_t(where[l]);
        const T x = a[c] - *turned.at(c, j + l);
        const T y = ds[j + l] * (T(x > 0) - T(x < 0));
        da[c] += y;
        t.db[g * t.stride_b + (j + l) * t.C + c] -= y;
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

enum Weights : int64_t { SOFTMAX = 0, SOFTMAX1 = 1, SPARSEMAX = 2, ENTMAX15 = 3 };

// Each row of scores becomes its weights over the keys it may see, and 0 elsewhere.
template <typename T> int normalise(int64_t kind, int64_t threads, Tile<T> t) {
  each_group(t.G, threads, [=](int64_t g) {
    for (int64_t r = 0; r < t.R; r++) {
      T* s = t.s + (g * t.R + r) * t.K;
      const int64_t seen = t.visible(r);
      for (int64_t j = seen; j < t.K; j++) s[j] = 0;
      if (!seen) continue;
      if (kind == SPARSEMAX) sparsemax(s, seen);
      else if (kind == ENTMAX15) entmax15(s, seen);
      else softmax(s, seen, kind == SOFTMAX1);
    }
  });
  return 0;
}

template <typename T> int forward(int64_t kind, int64_t threads, Tile<T> t) {
  auto run = [&](auto group) { each_group(t.G, threads, [=](int64_t g) { group(t, g); }); return 0; };
  switch (kind) {
    case ADDITIVE: return run(forward_group<T, ADDITIVE>);
    case ADDITIVE_SAFE: return run(forward_group<T, ADDITIVE_SAFE>);
    case ADDITIVE_WIDE: return run(forward_group<T, ADDITIVE_WIDE>);
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
    case ADDITIVE_WIDE: return run(backward_group<T, ADDITIVE_WIDE>);
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
int normalise_f32(int64_t kind, int64_t threads, const Tile<float>* t) { return normalise(kind, threads, *t); }
int normalise_f64(int64_t kind, int64_t threads, const Tile<double>* t) { return normalise(kind, threads, *t); }
int backward_f32(int64_t kind, int64_t threads, const Tile<float>* t) { return backward(kind, threads, *t); }
int backward_f64(int64_t kind, int64_t threads, const Tile<double>* t) { return backward(kind, threads, *t); }
}
