// Compares the loops of pairs.cpp with the same equations in double precision, one pair at a time, for every kind of
// score, forward and backward, on one thread and on two; exits with 1 if one is off. Runs without Python, so it also runs
// under an emulator.

#include "pairs.cpp"

#include <algorithm>
#include <cstdio>
#include <random>

namespace {

constexpr int64_t G = 3, R = 39, K = 61, C = 32, FIRST = 12;
constexpr double SCALE = 0.3, POWER = 1.7, BOUND = 2e-6;

using Values = std::vector<double>;

Values draw(int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Values values(size);
  for (double& value : values) value = normal(random);
  return values;
}

std::vector<float> narrow(const Values& values) { return {values.begin(), values.end()}; }

double largest_error(const std::vector<float>& result, const Values& expected) {
  double error = 0, top = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    error = std::max(error, std::fabs(result[i] - expected[i]));
    top = std::max(top, std::fabs(expected[i]));
  }
  return error / top;
}

// The score of one pair and its derivative with respect to the query, channel by channel.
double score(int64_t kind, const double* a, const double* b, const double* w, double* slope) {
  double sum = 0, top = 0;
  int64_t where = 0;
  for (int64_t c = 0; c < C; c++) {
    const double x = a[c] - b[c], sign = (x > 0) - (x < 0);
    slope[c] = 0;
    if (is_additive(kind)) {
      const double y = std::tanh(a[c] + b[c]);
      sum += w[c] * y;
      slope[c] = w[c] * (1 - y * y);
    } else if (kind == MANHATTAN) {
      sum += std::fabs(x);
      slope[c] = sign;
    } else if (kind == EUCLIDEAN) {
      sum += x * x;
      slope[c] = x;
    } else if (kind == MINKOWSKI) {
      sum += std::pow(std::fabs(x), POWER);
      slope[c] = sign * std::pow(std::fabs(x), POWER - 1);
    } else if (std::fabs(x) > top) {
      top = std::fabs(x);
      where = c;
    }
  }
  if (kind == EUCLIDEAN) sum = std::sqrt(sum);
  if (kind == MINKOWSKI) {
    sum = std::pow(sum, 1 / POWER);
    for (int64_t c = 0; c < C; c++) slope[c] /= std::pow(sum, POWER - 1);
  }
  if (kind == CHEBYSHEV) {
    sum = top;
    slope[where] = a[where] > b[where] ? 1 : -1;
  }
  return is_additive(kind) ? sum : -SCALE * sum;
}

bool check(int64_t kind, const char* name, int64_t threads) {
  const Values a = draw(G * R * C, 1), b = draw(G * K * C, 2), ds = draw(G * R * K, 3);
  Values w = draw(G * C, 4);
  if (!is_additive(kind)) w.assign(G * C, POWER);
  Values s(G * R * K, -1), da(G * R * C), db(G * K * C), distance(G * R * K), visible_ds(G * R * K);
  for (int64_t g = 0; g < G; g++)
    for (int64_t r = 0; r < R; r++)
      for (int64_t j = 0; j <= std::min(K - 1, FIRST + r); j++) {
        const int64_t at = (g * R + r) * K + j;
        double slope[C];
        s[at] = score(kind, &a[(g * R + r) * C], &b[(g * K + j) * C], &w[g * C], slope);
        distance[at] = std::log(-s[at] / SCALE);
        visible_ds[at] = ds[at];
        for (int64_t c = 0; c < C; c++) {
          da[(g * R + r) * C + c] += ds[at] * slope[c];
          db[(g * K + j) * C + c] += (is_additive(kind) ? 1 : -1) * ds[at] * slope[c];
        }
      }

  // Two of the additive loops take e^{2a} and e^{2b}.
  Values features_a = a, features_b = b;
  if (kind == ADDITIVE || kind == ADDITIVE_WIDE)
    for (Values* features : {&features_a, &features_b})
      for (double& value : *features) value = std::exp(2 * value);
  auto a32 = narrow(features_a), b32 = narrow(features_b), w32 = narrow(w), ds32 = narrow(visible_ds);
  std::vector<float> s32(G * R * K), da32(G * R * C), db32(G * K * C), dw32(G * C), distance32 = narrow(distance);
  Tile<float> tile{G, R, K, C, FIRST, R * C, K * C, a32.data(), b32.data(), w32.data(), s32.data(), ds32.data(),
                   da32.data(), db32.data(), dw32.data(), -1.0, SCALE};
  if (forward_f32(kind, threads, &tile)) return false;
  tile.s = distance32.data();
  if (backward_f32(kind, threads, &tile)) return false;
  const double errors[] = {largest_error(s32, s), largest_error(da32, da), largest_error(db32, db)};
  std::printf("%-14s scores %.1e  queries %.1e  keys %.1e\n", name, errors[0], errors[1], errors[2]);
  return std::all_of(std::begin(errors), std::end(errors), [](double error) { return error < BOUND; });
}

}  // namespace

// Exponentials of rows of logits, with shifts and totals that earlier logits left.
bool check_exponentials(int64_t threads) {
  const Values logits = draw(R * K, 7), shifts = draw(R, 8), totals = draw(R, 9);
  std::vector<float> s = narrow(logits), shift = narrow(shifts), total = narrow(totals);
  Tile<float> t{};
  t.G = 1, t.R = R, t.K = K, t.s = s.data(), t.da = shift.data(), t.db = total.data();
  exponentiate_f32(0, threads, &t);
  Values expected(R * K), sums(R);
  for (int64_t r = 0; r < R; r++) {
    double top = shifts[r];
    for (int64_t j = 0; j < K; j++) top = std::max(top, logits[r * K + j]);
    sums[r] = totals[r] * std::exp(shifts[r] - top);
    for (int64_t j = 0; j < K; j++) sums[r] += expected[r * K + j] = std::exp(logits[r * K + j] - top);
  }
  const double error = std::max(largest_error(s, expected), largest_error(total, sums));
  std::printf("exponentials, %ld threads: %.1e\n", long(threads), error);
  return error < BOUND;
}

int main() {
  const std::pair<int64_t, const char*> kinds[] = {
      {ADDITIVE, "additive"},   {ADDITIVE_SAFE, "additive_safe"}, {ADDITIVE_WIDE, "additive_wide"},
      {MANHATTAN, "manhattan"}, {EUCLIDEAN, "euclidean"},         {MINKOWSKI, "minkowski"},
      {CHEBYSHEV, "chebyshev"},
  };
  std::printf("vectors of %ld bytes\n", long(VECTOR_BYTES));
  bool is_right = true;
  for (const auto& [kind, name] : kinds)
    for (int64_t threads : {1, 2}) is_right = check(kind, name, threads) && is_right;
  for (int64_t threads : {1, 2}) is_right = check_exponentials(threads) && is_right;
  return is_right ? 0 : 1;
}
