#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phasor::state_tracking {

/// A finite group with numbered elements, 0 being the identity.
///   Zn  the cyclic group, numbered by exponent
///   Sn  all permutations of n points, numbered in lexicographic order of their one-line form
///   An  the even ones, in the same order
///   G_x_H (and longer)  pairs (i, j), numbered i |H| + j
/// The product of permutations a b applies b first: (a b)[k] = a[b[k]].
class Group {
 public:
  /// Elements of the largest group that is accepted, S7: each is a class of the loss and a row of the embedding.
  static constexpr std::int64_t max_order = 5040;

  /// Why a text names no usable group, or nothing.
  static std::optional<std::string> refuses(const std::string& name);
  /// Throws UserError with the reason.
  explicit Group(const std::string& name);

  const std::string& name() const { return name_; }
  std::int64_t order() const { return order_; }
  std::int64_t product(std::int64_t a, std::int64_t b) const;

 private:
  struct Factor {
    char family = 'Z';  // Z, S or A
    std::int64_t n = 0;
    std::int64_t order = 0;
    std::vector<std::vector<std::uint8_t>> permutations;  // of S and A: one-line forms, points from 0

    std::int64_t product(std::int64_t a, std::int64_t b) const;
  };
  struct Parsed {
    std::vector<Factor> factors;
    std::string problem;
  };
  static Parsed parse(const std::string& name);
  static std::string parse_factor(const std::string& text, Factor& factor);

  std::string name_;
  std::vector<Factor> factors_;
  std::int64_t order_ = 1;
};

}  // namespace phasor::state_tracking
