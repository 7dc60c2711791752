#pragma once

#include <string>
#include <vector>

// Statements of "Selective Rotary Position Embedding" (ICLR 2026) and its neighbours that can be checked with numbers:
// each is computed here from its definition and compared with the value it should have. Where the paper's derivation
// needs a correction, the check says so in its note. No tensors and no plugins: double precision throughout, libm,
// nothing trained.

namespace phasor::analysis::theory {

/// One number of one statement.
struct Check {
  std::string statement;  // "Theorem 1"
  std::string quantity;   // what the number is
  double expected = 0.0;
  double found = 0.0;
  double tolerance = 0.0;  // half a unit of the last digit that is known, or what rounding explains
  std::string note = {};   // a correction to the paper, or what follows
  bool holds() const;      // |found - expected| <= tolerance; never for NaN
};

/// Random features exp(|x|^2 / 2 + i w.x), w ~ N(0, s^2 I): what they estimate, how well, and the best s^2 (Theorems 1,
/// 2).
std::vector<Check> random_features();
/// Recurrence of the features, the rotations that replace them, Householder products, cosFormer, gates around
/// rotations.
std::vector<Check> rotations();
/// The parity clock cos(pi sum b) in f64, f32 and bf16.
std::vector<Check> parity_clock();
/// A finite window leaks a frequency into others; what forgetting does to it (figure 3).
std::vector<Check> leakage();
/// Spectra of RoPE and of random features (figure 2).
std::vector<Check> temperatures();

/// All of them, in this order.
std::vector<Check> all_checks();

/// Temperatures base^(-i / count), i = 0 .. count-1 (Su et al. 2021), largest first.
std::vector<double> rope_temperatures(int count, double base);
/// tan(phi_j / 2), phi_j = j (1 - epsilon) pi / (count - 1), divided by the largest, largest first (paper, appendix
/// A.3.1).
std::vector<double> tangent_temperatures(int count, double epsilon);

/// A window over `count` samples, the newest last.
enum class Window { rectangular, hann, causal_exponential, two_sided_exponential };
/// `edge`: weight of the oldest sample (of both ends, when two-sided); unused by the first two.
std::vector<double> window(Window kind, int count, double edge = 1.0);
/// Energy per frequency of a sampled sine in a window, of all energy; frequencies k rate / (pad count), 0 to rate / 2.
struct Spectrum {
  std::vector<double> frequency, energy;
};
Spectrum spectrum(const std::vector<double>& window, double frequency, double rate, int pad = 1);

}  // namespace phasor::analysis::theory
