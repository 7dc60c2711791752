#include "tests/plugins/pieces.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace phasor::test {

bool has_pieces() { return true; }

void train_pieces(const std::string& text, const std::string& model, int pieces) {
  const auto status = sentencepiece::SentencePieceTrainer::Train("--minloglevel=2 --hard_vocab_limit=false --model_type=bpe --num_threads=1 --input=" + text + " --model_prefix=" + model +
                                                                 " --vocab_size=" + std::to_string(pieces));
  if (!status.ok()) throw std::runtime_error(status.ToString());
  std::filesystem::rename(model + ".model", model);
}

std::vector<std::int32_t> piece_ids(const std::string& model, const std::string& text, char separator, std::int32_t boundary) {
  sentencepiece::SentencePieceProcessor processor;
  if (const auto status = processor.Load(model); !status.ok()) throw std::runtime_error(status.ToString());
  std::vector<std::int32_t> all = {boundary};
  std::istringstream documents(text);
  for (std::string document; std::getline(documents, document, separator);) {
    std::vector<int> ids;
    if (const auto status = processor.Encode(document, &ids); !status.ok()) throw std::runtime_error(status.ToString());
    all.insert(all.end(), ids.begin(), ids.end());
    all.push_back(boundary);
  }
  return all;
}

}  // namespace phasor::test
