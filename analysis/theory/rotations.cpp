#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "analysis/theory/theory.h"
#include "core/base/philox.h"

namespace phasor::analysis::theory {

namespace {

using Complex = std::complex<double>;
constexpr double pi = std::numbers::pi;

/// Small dense matrices, rows times columns; only what the statements need.
template <std::size_t N>
struct Matrix {
  std::array<std::array<double, N>, N> at{};
};

template <std::size_t N>
Matrix<N> operator*(const Matrix<N>& a, const Matrix<N>& b) {
  Matrix<N> c;
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < N; ++j)
      for (std::size_t k = 0; k < N; ++k) c.at[i][j] += a.at[i][k] * b.at[k][j];
  return c;
}

template <std::size_t N>
Matrix<N> transposed(const Matrix<N>& a) {
  Matrix<N> b;
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < N; ++j) b.at[i][j] = a.at[j][i];
  return b;
}

/// Square root of the sum of squared differences.
template <std::size_t N>
double distance(const Matrix<N>& a, const Matrix<N>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < N; ++j) sum += std::pow(a.at[i][j] - b.at[i][j], 2.0);
  return std::sqrt(sum);
}

Matrix<2> rotation(double angle) {
  return {{{{std::cos(angle), -std::sin(angle)}, {std::sin(angle), std::cos(angle)}}}};
}
Matrix<2> diagonal(double a, double b) { return {{{{a, 0.0}, {0.0, b}}}}; }

/// The largest singular value of a 2 x 2 matrix.
double spectral_norm(const Matrix<2>& a) {
  const Matrix<2> square = transposed(a) * a;
  const double half = (square.at[0][0] + square.at[1][1]) / 2.0,
               determinant = square.at[0][0] * square.at[1][1] - square.at[0][1] * square.at[1][0];
  return std::sqrt(half + std::sqrt(std::max(0.0, half * half - determinant)));
}

/// I - beta u u^T
template <std::size_t N>
Matrix<N> reflection(const std::array<double, N>& u, double beta) {
  Matrix<N> a;
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = 0; j < N; ++j) a.at[i][j] = (i == j ? 1.0 : 0.0) - beta * u[i] * u[j];
  return a;
}

/// Rotations in the planes (0, 1) and (2, 3).
Matrix<4> plane_rotations(double first, double second) {
  Matrix<4> a;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      a.at[i][j] = rotation(first).at[i][j];
      a.at[i + 2][j + 2] = rotation(second).at[i][j];
    }
  }
  return a;
}

/// Independent numbers from -1 to 1.
class Numbers {
 public:
  double next() {
    const PhiloxBlock block = philox(philox_key(1, Purpose::statistics), {count_++, 0, 0, 0});
    return 2.0 * to_unit53(std::uint64_t{block[0]} << 32 | block[1]) - 1.0;
  }
  template <std::size_t N>
  std::array<double, N> vector() {
    std::array<double, N> all;
    for (double& x : all) x = next();
    return all;
  }

 private:
  std::uint32_t count_ = 0;
};

constexpr std::size_t dim = 8;
using Vector = std::array<double, dim>;

double dot(const Vector& a, const Vector& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < dim; ++i) sum += a[i] * b[i];
  return sum;
}

Complex feature(const Vector& w, const Vector& x) { return std::exp(Complex(dot(x, x) / 2.0, dot(w, x))); }

/// Of one feature over 64 steps: its recurrence, with the factor of the norms, against the sum it stands for; and the
/// product of the increments against the rotation between the two ends.
std::array<double, 2> recurrence_errors() {
  constexpr std::size_t steps = 64;
  Numbers numbers;
  const Vector w = numbers.vector<dim>();
  std::array<Vector, steps> q, k;
  std::array<double, steps> v;
  for (std::size_t t = 0; t < steps; ++t)
    q[t] = numbers.vector<dim>(), k[t] = numbers.vector<dim>(), v[t] = numbers.next();
  Complex state = 0.0, turned = 1.0;
  double worst = 0.0;
  for (std::size_t t = 0; t < steps; ++t) {
    if (t > 0) {
      const Complex turn = std::polar(1.0, dot(w, q[t]) - dot(w, q[t - 1]));
      state *= std::exp((dot(q[t], q[t]) - dot(q[t - 1], q[t - 1])) / 2.0) * turn;
      turned *= turn;
    }
    state += feature(w, q[t]) * std::conj(feature(w, k[t])) * v[t];
    Complex direct = 0.0;
    for (std::size_t s = 0; s <= t; ++s) direct += feature(w, q[t]) * std::conj(feature(w, k[s])) * v[s];
    worst = std::max(worst, std::abs(state - direct) / std::abs(direct));
  }
  return {worst, std::abs(turned - std::polar(1.0, dot(w, q[steps - 1]) - dot(w, q[0])))};
}

/// cos(pi (i - j) / 2M) against the product of states that turn by pi / 2M per step.
double cosformer_error() {
  constexpr int longest = 64;
  const Complex turn = std::polar(1.0, pi / (2.0 * longest));
  double worst = 0.0;
  Complex query = 1.0;
  for (int i = 0; i < longest; ++i, query *= turn) {
    Complex key = 1.0;
    for (int j = 0; j <= i; ++j, key *= turn)
      worst = std::max(worst, std::fabs((query * std::conj(key)).real() - std::cos(pi * (i - j) / (2.0 * longest))));
  }
  return worst;
}

/// Scores with phases that grow by one per token, counted from 1, against RoPE's, counted from 0 (base 5e5, 8 planes).
double constant_increments_error() {
  Numbers numbers;
  double worst = 0.0;
  for (int t = 0; t < 32; ++t) {
    for (int s = 0; s <= t; ++s) {
      double ours = 0.0, rope = 0.0;
      for (const double temperature : rope_temperatures(8, 5e5)) {
        const Complex q(numbers.next(), numbers.next()), k(numbers.next(), numbers.next());
        ours +=
            (q * std::polar(1.0, temperature * (t + 1)) * std::conj(k * std::polar(1.0, temperature * (s + 1)))).real();
        rope += (q * std::conj(k) * std::polar(1.0, temperature * (t - s))).real();
      }
      worst = std::max(worst, std::fabs(ours - rope));
    }
  }
  return worst;
}

void gates(std::vector<Check>& checks) {
  const Matrix<2> before = rotation(0.3), now = rotation(1.1), step = rotation(0.8);
  const auto effective = [&](const Matrix<2>& gate) { return transposed(before) * gate * now; };
  const Matrix<2> uneven = diagonal(0.9, 0.5), even = diagonal(0.7, 0.7);
  checks.push_back({"gates", "gate (0.9, 0.5), phases 0.3 to 1.1: distance from gate x rotation", 0.1672,
                    distance(effective(uneven), uneven * step), 5.1e-5,
                    "a gate per channel, as GLA has it, is not exactly a decayed rotation"});
  checks.push_back({"gates", "the same, spectral norm", 0.9, spectral_norm(effective(uneven)), 1e-12,
                    "but it decays as the gate does"});
  checks.push_back({"gates", "one gate per plane: distance", 0.0, distance(effective(even), even * step), 1e-15});
  Numbers numbers;
  std::array<double, 4> key = numbers.vector<4>();
  double length = 0.0;
  for (const double x : key) length += x * x;
  for (double& x : key) x /= std::sqrt(length);
  const Matrix<4> last = plane_rotations(0.3, -1.0), next = plane_rotations(1.1, 0.4);
  std::array<double, 4> turned{};
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) turned[i] += next.at[i][j] * key[j];
  const Matrix<4> found = transposed(last) * reflection(turned, 0.6) * next,
                  wanted = transposed(last) * next * reflection(key, 0.6);
  checks.push_back({"gates", "delta rule on rotated keys against R (I - beta k k^T): distance", 0.0,
                    distance(found, wanted), 2e-15});
}

}  // namespace

std::vector<Check> rotations() {
  const auto [recurrence, telescope] = recurrence_errors();
  std::vector<Check> checks = {
      {"recurrence", "with the factor of the norms, against the direct sum, relative", 0.0, recurrence, 1e-11},
      {"recurrence", "product of the increments against the ends", 0.0, telescope, 1e-13,
       "the rotation that features induce forgets its path and carries no position by itself"},
  };
  gates(checks);
  const Complex q(0.3, -1.2), k(0.8, 0.5);
  constexpr double omega = 1.3;
  const Matrix<2> turn = rotation(omega);
  const double block = k.real() * (turn.at[0][0] * q.real() + turn.at[0][1] * q.imag()) +
                       k.imag() * (turn.at[1][0] * q.real() + turn.at[1][1] * q.imag());
  const double size = std::abs(q) * std::abs(k);
  checks.insert(
      checks.end(),
      {
          {"RoPE trick", "Re(conj(k) e^(i w) q)", 0.973250, (std::conj(k) * std::polar(1.0, omega) * q).real(), 5.1e-7},
          {"RoPE trick", "k^T R(w) q", 0.973250, block, 5.1e-7},
          {"RoPE trick", "|q| |k| cos(w + arg q - arg k)", 0.973250, size * std::cos(omega + std::arg(q) - std::arg(k)),
           5.1e-7},
          {"RoPE trick", "equation 14 as printed, cos(w - arg q - arg k)", -0.555783,
           size * std::cos(omega - std::arg(q) - std::arg(k)), 5.1e-7, "the sign of arg q is wrong in the paper"},
          {"RoPE trick", "increments of one against RoPE, base 5e5", 0.0, constant_increments_error(), 1e-13},
      });
  constexpr double angle = 0.7;
  const Matrix<2> first = reflection<2>({1.0, 0.0}, 2.0),
                  second = reflection<2>({std::cos(angle / 2.0), std::sin(angle / 2.0)}, 2.0);
  checks.insert(
      checks.end(),
      {
          {"Householder", "(I - 2 e e^T)(I - 2 u u^T) against R(-0.7)", 0.0, distance(first * second, rotation(-angle)),
           1e-15, "needs d / 2 disjoint pairs, not d overlapping ones"},
          {"Householder", "the other order against R(0.7)", 0.0, distance(second * first, rotation(angle)), 1e-15},
          {"Householder", "its diagonal", 0.7648, (second * first).at[0][0], 5.1e-5},
          {"Householder", "its lower corner", 0.6442, (second * first).at[1][0], 5.1e-5},
          {"cosFormer", "as a state that turns by pi / 2M, 64 positions", 0.0, cosformer_error(), 1e-14},
      });
  return checks;
}

}  // namespace phasor::analysis::theory
