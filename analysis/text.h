#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace phasor::analysis {

// Numbers as every form of a table writes them, so that the same digits stand everywhere.

/// Four decimals; more where those would turn a small number into 0; "nan", "inf" and "-inf".
std::string digits(double value);
std::string digits(const std::optional<double>& value);  // empty when there is none
/// As for people: ".9253" for "0.9253".
std::string short_digits(const std::string& digits);
/// "13,392"
std::string grouped(std::int64_t value);
/// One decimal, for milliseconds and ratios with `decimals` = 2.
std::string fixed(double value, int decimals);
/// "1 seed", "3 seeds"
std::string counted(std::int64_t count, const std::string& noun);

/// For LaTeX: the characters that it reads as commands, as themselves.
std::string latex_escaped(const std::string& text);

std::string join(const std::vector<std::string>& parts, const std::string& between);
/// Number of characters on a screen, for UTF-8 without combining or wide characters.
std::size_t width_of(const std::string& text);
/// `text` filled with spaces to `width` characters.
std::string padded(const std::string& text, std::size_t width);

}  // namespace phasor::analysis
