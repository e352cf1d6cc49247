// Matrix products by the processor's tiles (AMX): c = start + op(a) op(b), factors rounded to bf16, sums in fp32.
//
// A tile is 16 rows of 64 bytes. Of a it holds 16 lines (rows of c) x 32 steps (of the sum), of b 16 pairs of steps
// x 16 lines (columns of c), each line's two steps side by side, and of c 16 x 16 sums. Four tiles of c are summed at
// once, from two of a and two of b. Factors are cut into blocks that the cache holds and packed into such tiles, two
// beside each other (a panel of 32 lines), filled up with zeros.
//
// Each sum belongs to one thread, and the blocks of steps depend on the number of steps alone: the same factors give
// the same bits, on any number of threads.

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr int64_t LINES = 16, STEPS = 32;  // of a tile of a or b
constexpr int64_t TILE = LINES * STEPS;    // its numbers
constexpr int64_t PANEL = 2 * LINES;

constexpr int64_t MOST_STEPS = 1024;          // of a block
constexpr int64_t RESIDENT = 3 << 17;         // numbers of a block that stays in the second cache: 768 KB
constexpr int64_t HEIGHT = 128, WIDTH = 256;  // lines of a block that passes by the other factor's
constexpr int64_t STRIP = 256;                // columns that are summed aside: tiles write c itself slowly
constexpr int64_t THREAD_WORK = 1 << 25;      // multiplications worth a thread

struct Factor {
  const void* data;
  int64_t stride;    // from line to line, or from step to step
  int64_t is_bf16;   // else fp32
  int64_t is_along;  // whether steps lie side by side, else lines do
  float* sums;       // takes the sum of each line, not rounded; null, or fp32 with lines side by side
};

struct Product {
  int64_t m, n, k;
  Factor a, b;
  float* c;
  int64_t stride;      // from row to row of c
  const float* bias;   // what every row of c starts from, or null
  int64_t accumulate;  // whether c starts from what it holds
  int64_t threads;
};

struct Range {
  int64_t start, stop;
  int64_t size() const { return stop - start; }
};

int64_t up(int64_t x, int64_t to) { return (x + to - 1) / to * to; }

inline uint32_t low_bits(int64_t count) { return count >= 32 ? ~0u : (1u << std::max<int64_t>(count, 0)) - 1; }

// Up to 32 steps of one line.
inline __m512i along(const float* from, int64_t count) {
  const uint32_t mask = low_bits(count);
  const __m512 low = _mm512_maskz_loadu_ps(mask & 0xffff, from), high = _mm512_maskz_loadu_ps(mask >> 16, from + 16);
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

inline __m512i along(const uint16_t* from, int64_t count) { return _mm512_maskz_loadu_epi16(low_bits(count), from); }

// Up to 16 lines of two steps, each line's two steps side by side; without a second step, beside 0.
inline __m512i across(const float* from, const float* next, uint16_t lines) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512 high = next ? _mm512_maskz_loadu_ps(lines, next) : _mm512_setzero_ps();
  return _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(high, _mm512_maskz_loadu_ps(lines, from)));
}

inline __m512i across(const uint16_t* from, const uint16_t* next, uint16_t lines) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lines, from));
  if (!next) return low;
  return _mm512_or_si512(low, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lines, next)), 16));
}

// Turns 16 x 16 numbers of 32 bits.
inline void turn(__m512i v[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; j++) {
      v[i + 2 * j] = _mm512_unpacklo_epi64(t[i + j], t[i + j + 2]);
      v[i + 2 * j + 1] = _mm512_unpackhi_epi64(t[i + j], t[i + j + 2]);
    }
  for (int i = 0; i < 16; i += i % 4 == 3 ? 5 : 1) {
    t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
  }
  for (int i = 0; i < 8; i++) {
    v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
  }
}

// Adds up to 32 steps of 16 lines to their sums; four at a time, since one addition waits for the one before.
inline void add_up(const float* from, int64_t stride, int64_t steps, uint16_t lines, float* sums) {
  __m512 part[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps()};
  for (int64_t i = 0; i < steps; i++)
    part[i % 4] = _mm512_add_ps(part[i % 4], _mm512_maskz_loadu_ps(lines, from + i * stride));
  const __m512 all = _mm512_add_ps(_mm512_add_ps(part[0], part[1]), _mm512_add_ps(part[2], part[3]));
  _mm512_mask_storeu_ps(sums, lines, _mm512_add_ps(all, _mm512_maskz_loadu_ps(lines, sums)));
}

inline void add_up(const uint16_t*, int64_t, int64_t, uint16_t, float*) {}

// Packs lines x steps of a factor, line by line (a) or pair of steps by pair of steps (b).
template <typename T, bool ALONG, bool BY_LINE>
void pack(const Factor& f, Range lines, Range steps, float* sums, uint16_t* to) {
  const int64_t blocks = up(steps.size(), STEPS) / STEPS, groups = up(lines.size(), PANEL) / LINES, stride = f.stride;
  const T* from = static_cast<const T*>(f.data) + (ALONG ? lines.start * stride + steps.start
                                                         : steps.start * stride + lines.start);
  auto tile = [&](int64_t g, int64_t s, int64_t num_lines, int64_t num_steps) {
    __m512i v[16];
    const T* at = from + (ALONG ? g * LINES * stride + s * STEPS : s * STEPS * stride + g * LINES);
    const uint16_t mask = low_bits(num_lines);
#pragma GCC unroll 16
    for (int64_t i = 0; i < 16; i++) {
      const T *first = at + 2 * i * stride, *second = 2 * i + 1 < num_steps ? first + stride : nullptr;
      if (i < (ALONG ? num_lines : (num_steps + 1) / 2))
        v[i] = ALONG ? along(at + i * stride, num_steps) : across(first, second, mask);
      else v[i] = _mm512_setzero_si512();
    }
    if (!ALONG && sums) add_up(at, stride, num_steps, mask, sums + lines.start + g * LINES);
    if (ALONG != BY_LINE) turn(v);
    uint16_t* out = to + ((g / 2) * blocks + s) * 2 * TILE + (g % 2) * TILE;
    for (int64_t i = 0; i < 16; i++) _mm512_store_si512(out + i * STEPS, v[i]);
  };
  // Most tiles are whole, and for these the compiler leaves the masks out.
  auto any = [&](int64_t g, int64_t s) {
    const int64_t num_lines = std::min(lines.size() - g * LINES, LINES);
    const int64_t num_steps = std::min(steps.size() - s * STEPS, STEPS);
    if (num_lines == LINES && num_steps == STEPS) tile(g, s, LINES, STEPS);
    else tile(g, s, num_lines, num_steps);
  };
  // In the order in which memory lies.
  if (ALONG)
    for (int64_t g = 0; g < groups; g++)
      for (int64_t s = 0; s < blocks; s++) any(g, s);
  else
    for (int64_t s = 0; s < blocks; s++)
      for (int64_t g = 0; g < groups; g++) any(g, s);
}

template <bool BY_LINE> void pack_any(const Factor& f, Range lines, Range steps, bool is_first, uint16_t* to) {
  float* sums = is_first ? f.sums : nullptr;
  if (f.is_bf16 && f.is_along) pack<uint16_t, true, BY_LINE>(f, lines, steps, sums, to);
  else if (f.is_bf16) pack<uint16_t, false, BY_LINE>(f, lines, steps, sums, to);
  else if (f.is_along) pack<float, true, BY_LINE>(f, lines, steps, sums, to);
  else pack<float, false, BY_LINE>(f, lines, steps, sums, to);
}

// Sums two panels into 32 x 32 of a strip.
inline void multiply(const uint16_t* a, const uint16_t* b, int64_t blocks, float* strip) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t s = 0; s < blocks; s++, a += 2 * TILE, b += 2 * TILE) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, a, 64);
    _tile_loadd(7, b + TILE, 64);
    _tile_loadd(5, a + TILE, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  constexpr int64_t bytes = STRIP * sizeof(float);
  _tile_stored(0, strip, bytes);
  _tile_stored(1, strip + LINES, bytes);
  _tile_stored(2, strip + LINES * STRIP, bytes);
  _tile_stored(3, strip + LINES * STRIP + LINES, bytes);
}

// Puts a row of sums into c, added to what it starts from.
inline void put(const float* sums, const float* start, float* c, int64_t count) {
  auto some = [&](int64_t i, uint16_t mask) {
    __m512 x = _mm512_maskz_loadu_ps(mask, sums + i);
    if (start) x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, start + i));
    _mm512_mask_storeu_ps(c + i, mask, x);
  };
  int64_t i = std::min<int64_t>(count, -(reinterpret_cast<uintptr_t>(c) / sizeof(float)) & 15);
  if (i) some(0, low_bits(i));
  for (; i + 16 <= count; i += 16) some(i, 0xffff);
  if (i < count) some(i, low_bits(count - i));
}

// Memory for packed blocks, kept from one product to the next whichever thread computes it.
class Scratch {
 public:
  explicit Scratch(int64_t numbers) {
    {
      std::lock_guard<std::mutex> hold(lock());
      if (!shelf().empty()) {
        block = shelf().back();
        shelf().pop_back();
      }
    }
    if (block.numbers >= numbers) return;
    std::free(block.data);
    block = {static_cast<uint16_t*>(std::aligned_alloc(64, up(numbers * 2, 64))), numbers};
  }
  ~Scratch() {
    std::lock_guard<std::mutex> hold(lock());
    shelf().push_back(block);
  }
  uint16_t* data() const { return block.data; }

 private:
  struct Block {
    uint16_t* data = nullptr;
    int64_t numbers = 0;
  };
  Block block;
  // Never destroyed: a thread may still compute while the process ends.
  static std::mutex& lock() {
    static auto* kept = new std::mutex;
    return *kept;
  }
  static std::vector<Block>& shelf() {
    static auto* kept = new std::vector<Block>;
    return *kept;
  }
};

// Some virtual machines describe their tiles as empty to whoever asks, so they are not asked: eight of 16 x 64 bytes.
void configure() {
  struct alignas(64) {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } tiles = {};
  tiles.palette = 1;
  for (int i = 0; i < 8; i++) {
    tiles.bytes[i] = 64;
    tiles.rows[i] = LINES;
  }
  _tile_loadconfig(&tiles);
}

// Multiplies packed blocks: rows x columns of c, from `blocks` times 32 steps.
void sum_block(const Product& p, Range rows, Range columns, int64_t blocks, bool goes_on, const uint16_t* a,
               const uint16_t* b) {
  alignas(64) float strip[PANEL * STRIP];
  const int64_t panel = blocks * 2 * TILE;
  for (int64_t i = rows.start; i < rows.stop; i += PANEL, a += panel)
    for (int64_t j = columns.start; j < columns.stop; j += STRIP) {
      const int64_t count = std::min(STRIP, columns.stop - j);
      const uint16_t* beside = b + (j - columns.start) / PANEL * panel;
      for (int64_t l = 0; l < count; l += PANEL, beside += panel) multiply(a, beside, blocks, strip + l);
      for (int64_t r = 0; r < std::min(PANEL, rows.stop - i); r++) {
        float* c = p.c + (i + r) * p.stride + j;
        put(strip + r * STRIP, goes_on ? c : p.bias ? p.bias + j : nullptr, c, count);
      }
    }
}

// Computes rows x columns of c. One factor's block stays in the cache while the other's pass by.
void compute(const Product& p, Range rows, Range columns) {
  configure();
  const int64_t num_blocks = std::max<int64_t>(1, (p.k + MOST_STEPS - 1) / MOST_STEPS);
  const int64_t most = up(std::max<int64_t>(1, (p.k + num_blocks - 1) / num_blocks), STEPS);
  const int64_t all_rows = up(rows.size(), PANEL), all_columns = up(columns.size(), PANEL);
  const bool a_stays = all_rows * most <= RESIDENT && columns.size() > rows.size();
  const int64_t height = a_stays ? all_rows : std::min(all_rows, HEIGHT);
  const int64_t width = std::min(all_columns, a_stays ? WIDTH : std::max(PANEL, RESIDENT / most / PANEL * PANEL));
  Scratch scratch((height + width) * most);
  uint16_t *a = scratch.data(), *b = a + height * most;
  for (int64_t n = 0; n < num_blocks; n++) {
    const Range steps{n * most, std::min((n + 1) * most, p.k)};
    const int64_t blocks = up(steps.size(), STEPS) / STEPS;
    for (int64_t left = columns.start; left < columns.stop; left += width) {
      const Range beside{left, std::min(left + width, columns.stop)};
      pack_any<false>(p.b, beside, steps, rows.start == 0, b);
      for (int64_t top = rows.start; top < rows.stop; top += height) {
        const Range own{top, std::min(top + height, rows.stop)};
        if (!a_stays || left == columns.start) pack_any<true>(p.a, own, steps, left == 0, a);
        sum_block(p, own, beside, blocks, n > 0 || p.accumulate, a, b);
      }
    }
  }
  _tile_release();
}

}  // namespace

extern "C" {

// Asks the system for tiles; returns 0 where they may be used from now on.
int request_tiles() { return syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tiles */) ? 1 : 0; }

void multiply_bf16(const Product* p) {
  const bool by_rows = p->m >= p->n;
  const int64_t length = by_rows ? p->m : p->n, across = by_rows ? p->n : p->m;
  const int64_t worth = length * across * p->k / THREAD_WORK, panels = up(length, PANEL) / PANEL;
  const int64_t num = std::max<int64_t>(1, std::min({p->threads, panels, worth}));
  const int64_t part = up((panels + num - 1) / num * PANEL, PANEL);
  auto work = [=](int64_t i) {
    const Range own{std::min(i * part, length), std::min((i + 1) * part, length)}, whole{0, across};
    if (own.size() && across) by_rows ? compute(*p, own, whole) : compute(*p, whole, own);
  };
  std::vector<std::thread> crew;
  for (int64_t i = 1; i < num; i++) crew.emplace_back(work, i);
  work(0);
  for (auto& one : crew) one.join();
}

// Multiplies small whole numbers, whose sums are exact; returns 0 where they are right.
int try_tiles() {
  constexpr int64_t m = 37, n = 50, k = 70;
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (int64_t i = 0; i < m * k; i++) a[i] = static_cast<float>(i % 13 - 6);
  for (int64_t i = 0; i < k * n; i++) b[i] = static_cast<float>(i % 11 - 5);
  const Product p{m, n, k, {a.data(), k, 0, 1, nullptr}, {b.data(), n, 0, 0, nullptr}, c.data(), n, nullptr, 0, 1};
  multiply_bf16(&p);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      float sum = 0;
      for (int64_t l = 0; l < k; l++) sum += a[i * k + l] * b[l * n + j];
      if (sum != c[i * n + j]) return 1;
    }
  return 0;
}
}
