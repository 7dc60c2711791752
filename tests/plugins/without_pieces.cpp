#include "tests/plugins/pieces.h"

namespace phasor::test {

bool has_pieces() { return false; }
void train_pieces(const std::string&, const std::string&, int) {}
std::vector<std::int32_t> piece_ids(const std::string&, const std::string&, char, std::int32_t) { return {}; }

}  // namespace phasor::test
