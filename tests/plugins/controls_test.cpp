// The controls of an ablation: each option has the property that it is there for. Rotation without an input, gate and
// bias alone, convolutions that are held at a kernel, the sign of increments, one decay per plane.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "core/base/philox.h"
#include "core/graph/accumulate.h"
#include "tests/plugins/support.h"

namespace phasor {
namespace {

constexpr std::int64_t batch = 2, time_steps = 9;

void fill_random(const Tensor& t, std::uint64_t stream, double size = 1.0) {
  const RandomStream draws(7, Purpose::data, stream);
  for (std::int64_t i = 0; i < t.size(); ++i) t.as<double>()[i] = size * draws.normal(static_cast<std::uint64_t>(i));
}

double largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double worst = 0.0;
  for (std::int64_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a.as<double>()[i] - b.as<double>()[i]));
  return worst;
}

/// A mixer with its encoding, in double.
struct Layer {
  Layer(const std::string& backbone, const std::string& backbone_json, const std::string& encoding_name,
        const std::string& encoding_json, std::int64_t width = 8)
      : registry(test::load({test::shipped(backbone), test::shipped(encoding_name)})), dim(width) {
    const BackbonePlugin& mixing = *registry->find_backbone(backbone);
    const EncodingPlugin& position = *registry->find_encoding(encoding_name);
    const auto mixing_options = test::read_options(mixing, backbone_json);
    const auto position_options = test::read_options(position, encoding_json);
    EXPECT_EQ(mixing.refuses(*mixing_options, dim), std::nullopt);
    shape = mixing.shape(*mixing_options, dim);
    EXPECT_EQ(position.refuses(*position_options, shape), std::nullopt);
    mixer = mixing.make(*mixing_options, dim, 1e-6, ParameterScope(store, "attn", 0.5));
    encoding = position.make(*position_options, shape, ParameterScope(store, "encoding", 0.5));
    store.allocate(Dtype::f64);
    store.initialise(3);
    gradients = Tensor(arena, Dtype::f64, {store.flat_size()});
    x = Tensor(arena, Dtype::f64, {batch, time_steps, dim});
    fill_random(x, 0);
  }

  double* value(const std::string& name) {
    const ParameterEntry* entry = store.find(name);
    if (entry == nullptr) throw std::runtime_error("no parameter " + name);
    return store.flat().as<double>() + entry->offset;
  }
  Tensor forward() {
    Tape tape(arena, {Dtype::f64, nullptr}, false);
    return mixer->forward(tape, x, *encoding, {}, nullptr);
  }
  QueryKey rotate(const QueryKey& qk, State* state = nullptr) {
    Tape tape(arena, {Dtype::f64, nullptr}, false);
    return encoding->on_query_key(tape, qk, x, {}, state);
  }
  QueryKey vectors() {
    QueryKey qk{Tensor(arena, Dtype::f64, {batch, time_steps, shape.heads, shape.key_dim}),
                Tensor(arena, Dtype::f64, {batch, time_steps, shape.kv_heads, shape.key_dim})};
    fill_random(qk.q, 1);
    fill_random(qk.k, 2);
    return qk;
  }

  std::unique_ptr<Registry> registry;
  std::int64_t dim;
  MixerShape shape;
  ParameterStore store;
  Arena arena;
  Tensor gradients, x;
  std::unique_ptr<Mixer> mixer;
  std::unique_ptr<Encoding> encoding;
};

const std::string gla = R"({"heads": 2, "expand_k": 1.0})";

/// A layer of selective_rope; its parameters have random values, so that nothing is zero by its start.
struct Selective : Layer {
  explicit Selective(const std::string& json) : Layer("gla", gla, "selective_rope", json) {
    for (const ParameterEntry& entry : store.entries())
      if (entry.name.starts_with("encoding.") && !entry.frozen)
        fill_random(store.value(entry), 10 + static_cast<std::uint64_t>(entry.offset), 0.6);
  }
};

/// Rotates by hand: plane i of head h at (b, t) by angle(b, t, h, i).
Tensor turned(Layer& layer, const Tensor& in,
              const std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>& angle) {
  const Tensor out(layer.arena, Dtype::f64, in.shape());
  const std::int64_t heads = in.size(2), width = in.size(3), planes = width / 2;
  for (std::int64_t b = 0; b < in.size(0); ++b)
    for (std::int64_t t = 0; t < in.size(1); ++t)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < planes; ++i) {
          const double* from = in.as<double>() + ((b * in.size(1) + t) * heads + h) * width;
          double* to = out.as<double>() + ((b * in.size(1) + t) * heads + h) * width;
          const double a = angle(b, t, h, i);
          to[i] = from[i] * std::cos(a) - from[i + planes] * std::sin(a);
          to[i + planes] = from[i] * std::sin(a) + from[i + planes] * std::cos(a);
        }
  return out;
}

/// x, every head's slice of length one (eps 1e-6): what phase and gate read.
std::vector<double> normed(const Layer& layer) {
  const std::int64_t slice = layer.dim / layer.shape.heads;
  std::vector<double> out(layer.x.as<double>(), layer.x.as<double>() + layer.x.size());
  for (std::size_t first = 0; first < out.size(); first += static_cast<std::size_t>(slice)) {
    double sum = 1e-6;
    for (std::int64_t i = 0; i < slice; ++i)
      sum += out[first + static_cast<std::size_t>(i)] * out[first + static_cast<std::size_t>(i)];
    for (std::int64_t i = 0; i < slice; ++i) out[first + static_cast<std::size_t>(i)] /= std::sqrt(sum);
  }
  return out;
}

TEST(Controls, BiasAloneIsRopeOnceItHoldsItsFrequencies) {
  Selective bias(R"({"projection": {"kind": "none"}, "bias": true, "temperature": {"theta": 1}})");
  Layer rope("gla", gla, "rope", R"({"theta": 500, "offset": 1})");  // the sum counts the token itself
  ASSERT_EQ(bias.store.find("encoding.phi_bias")->count(), 4);
  for (const char* absent : {"encoding.phi_proj.0.weight", "encoding.phi_conv1d.weight"})
    EXPECT_EQ(bias.store.find(absent), nullptr) << absent;
  const QueryKey in = bias.vectors();
  EXPECT_GT(largest_difference(bias.rotate(in).q, rope.rotate(in).q), 0.1);  // any other frequencies
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t i = 0; i < 2; ++i)
      bias.value("encoding.phi_bias")[h * 2 + i] = -static_cast<double>(i) / 2.0 * std::log(500.0);
  EXPECT_LT(largest_difference(bias.rotate(in).q, rope.rotate(in).q), 1e-12);
  EXPECT_LT(largest_difference(bias.rotate(in).k, rope.rotate(in).k), 1e-12);
  // It does not read x.
  fill_random(bias.x, 99);
  EXPECT_LT(largest_difference(bias.rotate(in).q, rope.rotate(in).q), 1e-12);
}

TEST(Controls, AFrozenBiasIsRopeAndNotTrained) {
  Selective frozen(
      R"({"projection": {"kind": "none"}, "bias": true, "bias_learned": false, "temperature": {"theta": 500}})");
  Layer rope("gla", gla, "rope", R"({"theta": 500, "offset": 1})");
  const QueryKey in = frozen.vectors();
  EXPECT_LT(largest_difference(frozen.rotate(in).q, rope.rotate(in).q), 1e-12);
  EXPECT_TRUE(frozen.store.find("encoding.phi_bias")->frozen);
  Layer nope("gla", gla, "nope", "{}");
  EXPECT_EQ(frozen.store.total(false), nope.store.total(false));
  EXPECT_EQ(frozen.store.total(true), nope.store.total(true) + 4 + 2);  // bias and temperatures
}

TEST(Controls, GateAloneSlowsFixedFrequenciesDown) {
  Selective gate(R"({"projection": {"kind": "none"}, "bias": true, "bias_learned": false, "gate": {"kind": "standard"},
                     "temperature": {"theta": 500}})");
  const QueryKey in = gate.vectors();
  const std::vector<double> read = normed(gate);
  const double *weight = gate.value("encoding.phase_gate_proj.weight"),
               *shift = gate.value("encoding.phase_gate_proj.bias");
  const auto angle = [&](std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i) {
    double sum = 0.0;
    for (std::int64_t s = 0; s <= t; ++s) {
      double logit = shift[h];
      for (std::int64_t d = 0; d < 8; ++d)
        logit += weight[h * 8 + d] * read[static_cast<std::size_t>((b * time_steps + s) * 8 + d)];
      sum += 1.0 / (1.0 + std::exp(-logit));
    }
    return sum * std::pow(500.0, -static_cast<double>(i) / 2.0);
  };
  EXPECT_LT(largest_difference(gate.rotate(in).q, turned(gate, in.q, angle)), 1e-12);
}

/// Sets the taps of every channel.
void set_taps(Selective& layer, const std::array<double, 4>& taps) {
  for (std::int64_t i = 0; i < layer.store.find("encoding.phi_conv1d.weight")->count(); ++i)
    layer.value("encoding.phi_conv1d.weight")[i] = taps[static_cast<std::size_t>(i % 4)];
}

TEST(Controls, FrozenKernelsAreTheConvolutionAtTheirTaps) {
  const std::string rest = R"("projection": {"rank": 3}, "bias": true, "temperature": {"theta": 2})";
  Selective conv(R"({"time_mixing": {"kind": "conv"}, )" + rest + "}");
  Selective identity(R"({"time_mixing": {"kind": "identity"}, )" + rest + "}");
  Selective difference(R"({"time_mixing": {"kind": "difference"}, )" + rest + "}");
  const QueryKey in = conv.vectors();
  for (Selective* frozen : {&identity, &difference}) {
    EXPECT_EQ(frozen->store.find("encoding.phi_conv1d.weight"), nullptr);  // not trained, not counted
    EXPECT_EQ(conv.store.total(false) - frozen->store.total(false), 4 * 4);
    for (const char* name : {"encoding.phi_proj.0.weight", "encoding.phi_proj.1.weight", "encoding.phi_bias"})
      std::copy_n(conv.value(name), conv.store.find(name)->count(), frozen->value(name));
  }
  set_taps(conv, {0.0, 0.0, 0.0, 1.0});
  EXPECT_LT(largest_difference(conv.rotate(in).q, identity.rotate(in).q), 1e-12);
  EXPECT_GT(largest_difference(conv.rotate(in).q, difference.rotate(in).q), 0.01);
  set_taps(conv, {0.0, 0.0, -1.0, 1.0});
  EXPECT_LT(largest_difference(conv.rotate(in).q, difference.rotate(in).q), 1e-12);
}

TEST(Controls, TheDifferenceKernelTelescopes) {
  Selective layer(R"({"projection": {"rank": 3}, "time_mixing": {"kind": "difference"}, "temperature": {"theta": 2}})");
  const QueryKey in = layer.vectors();
  const double *down = layer.value("encoding.phi_proj.0.weight"), *up = layer.value("encoding.phi_proj.1.weight");
  const auto raw = [&](std::int64_t b, std::int64_t t, std::int64_t h, std::int64_t i) {
    const std::vector<double> read = normed(layer);
    double phase = 0.0;
    for (std::int64_t r = 0; r < 3; ++r) {
      double middle = 0.0;
      for (std::int64_t d = 0; d < 8; ++d)
        middle += down[r * 8 + d] * read[static_cast<std::size_t>((b * time_steps + t) * 8 + d)];
      phase += up[(h * 2 + i) * 3 + r] * middle;
    }
    return phase * std::pow(2.0, -static_cast<double>(i) / 2.0);
  };
  // The phase is the token's own, whatever stood before it.
  EXPECT_LT(largest_difference(layer.rotate(in).q, turned(layer, in.q, raw)), 1e-12);
  const Tensor before = layer.rotate(in).q;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 0; i < (time_steps - 1) * 8; ++i) layer.x.as<double>()[b * time_steps * 8 + i] += 0.3;
  const Tensor after = layer.rotate(in).q;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t last = (b * time_steps + time_steps - 1) * 8 + i;
      EXPECT_NEAR(after.as<double>()[last], before.as<double>()[last], 1e-12);
    }
}

TEST(Controls, IncrementsThatAreNotNegativeNeverTurnBack) {
  const auto falls = [](const std::string& increment) {
    Selective layer(R"({"projection": {"rank": 3}, "increment": ")" + increment + R"("})");
    const Tensor whole = layer.x;
    const QueryKey in = layer.vectors();
    State state;
    std::vector<double> phase(static_cast<std::size_t>(batch * 4), 0.0);
    int back = 0;
    for (std::int64_t t = 0; t < time_steps; ++t) {  // token by token, to see the running phase
      const auto piece = [&](const Tensor& all) {
        const Tensor out(layer.arena, Dtype::f64, all.shape().rank() == 3 ? Shape{batch, 1, 8} : Shape{batch, 1, 2, 4});
        for (std::int64_t b = 0; b < batch; ++b)
          std::copy_n(all.as<double>() + (b * time_steps + t) * 8, 8, out.as<double>() + b * 8);
        return out;
      };
      layer.x = piece(whole);
      layer.rotate({piece(in.q), piece(in.k)}, &state);
      const Tensor now = state.get("phase");
      EXPECT_EQ(now.size(), batch * 4);
      for (std::size_t i = 0; i < phase.size(); ++i) {
        back += now.as<double>()[i] < phase[i] ? 1 : 0;
        phase[i] = now.as<double>()[i];
      }
    }
    return back;
  };
  EXPECT_GT(falls("signed"), 10);
  EXPECT_EQ(falls("abs"), 0);
  EXPECT_EQ(falls("softplus"), 0);
}

/// Outputs of a GLA layer by its recurrence, with rotation as part of the transition: S_t = A_t S_{t-1} + k_t v_t^T,
/// A_t = diag(decay_t) R(angle of one step), q and k as projected; then the norm per head and the output matrix.
Tensor by_transition(Layer& layer, double base, bool per_plane) {
  const std::int64_t dim = layer.dim, heads = layer.shape.heads, width = layer.shape.key_dim, planes = width / 2;
  const Tensor out(layer.arena, Dtype::f64, {batch, time_steps, dim});
  const auto map = [&](const std::string& name, const std::vector<double>& in, std::int64_t rows) {
    const double* w = layer.value("attn." + name);
    std::vector<double> y(static_cast<std::size_t>(rows), 0.0);
    for (std::size_t r = 0; r < y.size(); ++r)
      for (std::size_t i = 0; i < in.size(); ++i) y[r] += w[r * in.size() + i] * in[i];
    return y;
  };
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<std::vector<double>> state(static_cast<std::size_t>(heads),
                                           std::vector<double>(static_cast<std::size_t>(width * width), 0.0));
    for (std::int64_t t = 0; t < time_steps; ++t) {
      const double* at = layer.x.as<double>() + (b * time_steps + t) * dim;
      const std::vector<double> x(at, at + dim);
      const auto q = map("q_proj.weight", x, dim), k = map("k_proj.weight", x, dim), v = map("v_proj.weight", x, dim);
      const std::int64_t gates = per_plane ? planes : width;
      const auto logits = map("gk_proj.1.weight", map("gk_proj.0.weight", x, 16), heads * gates);
      std::vector<double> mixed(static_cast<std::size_t>(dim));
      for (std::int64_t h = 0; h < heads; ++h) {
        auto& s = state[static_cast<std::size_t>(h)];
        const auto decay = [&](std::int64_t i) {
          const std::int64_t g = h * gates + i % gates;
          const double logit = logits[static_cast<std::size_t>(g)] + layer.value("attn.gk_proj.1.bias")[g];
          return std::exp(-std::log1p(std::exp(-logit)) / 2.0);
        };
        double sum = 0.0;
        for (std::int64_t j = 0; j < width; ++j) {
          double read = 0.0;
          for (std::int64_t i = 0; i < planes; ++i) {
            const double angle = std::pow(base, -static_cast<double>(i) / static_cast<double>(planes));
            double &first = s[static_cast<std::size_t>(i * width + j)],
                   &second = s[static_cast<std::size_t>((i + planes) * width + j)];
            // Keys turned by phi_s and queries by phi_t meet as the state turned back by phi_t - phi_s.
            const double a = first * std::cos(angle) + second * std::sin(angle),
                         c = second * std::cos(angle) - first * std::sin(angle);
            const auto of = [&](const std::vector<double>& all, std::int64_t channel) {
              return all[static_cast<std::size_t>(h * width + channel)];
            };
            first = decay(i) * a + of(k, i) * of(v, j);
            second = decay(i + planes) * c + of(k, i + planes) * of(v, j);
            read += of(q, i) * first + of(q, i + planes) * second;
          }
          mixed[static_cast<std::size_t>(h * width + j)] = read / std::sqrt(static_cast<double>(width));
          sum += mixed[static_cast<std::size_t>(h * width + j)] * mixed[static_cast<std::size_t>(h * width + j)];
        }
        for (std::int64_t j = 0; j < width; ++j)
          mixed[static_cast<std::size_t>(h * width + j)] /= std::sqrt(sum / static_cast<double>(width) + 1e-6);
      }
      const auto y = map("o_proj.weight", mixed, dim);
      std::copy(y.begin(), y.end(), out.as<double>() + (b * time_steps + t) * dim);
    }
  }
  return out;
}

// Paper notes 4.6: with one decay per plane rotated queries and keys are exactly a transition that decays and turns;
// with one per channel they are something else.
TEST(Controls, OneDecayPerPlaneCommutesWithTheRotation) {
  const auto gap = [](const std::string& per) {
    Layer layer(
        "gla",
        R"({"heads": 2, "expand_k": 1.0, "gate_divisor": 2, "output_gate": false, "gate_per": ")" + per + R"("})",
        "rope", R"({"theta": 3})");
    fill_random(layer.store.value(*layer.store.find("attn.gk_proj.1.bias")), 4);
    return largest_difference(layer.forward(), by_transition(layer, 3.0, per == "plane"));
  };
  EXPECT_LT(gap("plane"), 1e-12);
  EXPECT_GT(gap("channel"), 1e-3);
}

TEST(Controls, FewerGatesAreChannelsThatShareOne) {
  const auto layer = [](const std::string& per) {
    return std::make_unique<Layer>("gla", R"({"heads": 2, "expand_k": 1.0, "gate_per": ")" + per + R"("})", "nope",
                                   "{}");
  };
  const auto channel = layer("channel"), plane = layer("plane"), head = layer("head");
  EXPECT_EQ(channel->store.find("attn.gk_proj.1.weight")->shape, (Shape{8, 16}));
  EXPECT_EQ(plane->store.find("attn.gk_proj.1.weight")->shape, (Shape{4, 16}));
  EXPECT_EQ(head->store.find("attn.gk_proj.1.weight")->shape, (Shape{2, 16}));
  for (Layer* few : {plane.get(), head.get()}) {
    fill_random(few->store.value(*few->store.find("attn.gk_proj.1.bias")), 5);
    const std::int64_t gates = few->store.find("attn.gk_proj.1.bias")->count() / 2;  // per head
    EXPECT_GT(largest_difference(channel->forward(), few->forward()), 1e-3);
    for (std::int64_t c = 0; c < 8; ++c) {
      const std::int64_t from = c / 4 * gates + c % 4 % gates;
      channel->value("attn.gk_proj.1.bias")[c] = few->value("attn.gk_proj.1.bias")[from];
      std::copy_n(few->value("attn.gk_proj.1.weight") + from * 16, 16,
                  channel->value("attn.gk_proj.1.weight") + c * 16);
    }
    EXPECT_LT(largest_difference(channel->forward(), few->forward()), 1e-13);
  }
}

/// Gradients of sum(output * cotangent) with respect to every trained parameter and x, against central differences.
void check_gradients(Layer& layer) {
  const Tensor cotangent(layer.arena, Dtype::f64, layer.x.shape());
  fill_random(cotangent, 6);
  const auto loss = [&] {
    const Tensor out = layer.forward();
    double sum = 0.0;
    for (std::int64_t i = 0; i < out.size(); ++i) sum += out.as<double>()[i] * cotangent.as<double>()[i];
    return sum;
  };
  zero(layer.gradients);
  Tape tape(layer.arena, {Dtype::f64, nullptr}, true, layer.gradients);
  const Tensor x = tape.variable(layer.x);
  const Tensor out = layer.mixer->forward(tape, x, *layer.encoding, {}, nullptr);
  tape.backward(std::array{std::pair{out, cotangent}});
  const auto compare = [&](double* value, double gradient, const std::string& what) {
    constexpr double step = 1e-4;  // differences of fourth order: their error is of the size of step^4
    const double kept = *value;
    const auto at = [&](double steps) {
      *value = kept + steps * step;
      return loss();
    };
    const double slope = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
    *value = kept;
    EXPECT_NEAR(gradient, slope, 1e-8 * std::max(1.0, std::abs(gradient))) << what;
  };
  for (const ParameterEntry& entry : layer.store.entries()) {
    double size = 0.0;
    for (std::int64_t i = entry.offset; i < entry.offset + entry.count(); ++i) {
      const double gradient = layer.gradients.as<double>()[i];
      size = std::max(size, std::abs(gradient));
      if (!entry.frozen) compare(layer.store.flat().as<double>() + i, gradient, entry.name);
    }
    EXPECT_EQ(size > 0.0, !entry.frozen) << entry.name;
  }
  const Tensor dx = tape.leaf_gradient(x);
  for (std::int64_t i = 0; i < dx.size(); ++i) compare(layer.x.as<double>() + i, dx.as<double>()[i], "x");
}

TEST(Controls, GradientsOfTheNewOptions) {
  const std::string selective = R"({"projection": {"rank": 3}, "bias": true})";
  const std::string gate_alone =
      R"({"projection": {"kind": "none"}, "bias": true, "bias_learned": false, "gate": {"kind": "per_plane", "rank": 3}})";
  const std::string around = R"("expand_k": 1.0, "gate_divisor": 2, "gate_per": )";
  for (const auto& [backbone, encoding] :
       std::vector<std::pair<std::string, std::string>>{{R"({"heads": 2, )" + around + R"("plane"})", selective},
                                                        {R"({"heads": 2, )" + around + R"("head"})", selective},
                                                        {gla, gate_alone}}) {
    Layer layer("gla", backbone, "selective_rope", encoding);
    check_gradients(layer);
  }
  Layer grouped("gla", R"({"heads": 4, "kv_heads": 2, )" + around + R"("plane"})", "rope", R"({"theta": 3})");
  check_gradients(grouped);
}

TEST(Controls, WhatCannotBeIsRefused) {
  const auto registry = test::load({test::shipped("gla"), test::shipped("selective_rope")});
  const BackbonePlugin& mixing = *registry->find_backbone("gla");
  EXPECT_EQ(mixing.refuses(*test::read_options(mixing, R"({"heads": 2, "expand_k": 1.0, "gate_per": "plane"})"), 6),
            "gate_per plane needs an even width per key head, found 3");
  EXPECT_EQ(mixing.refuses(*test::read_options(mixing, R"({"heads": 2, "expand_k": 1.0, "gate_per": "head"})"), 6),
            std::nullopt);
  EXPECT_THROW(test::read_options(mixing, R"({"gate_per": "pair"})"), UserError);
  const EncodingPlugin& position = *registry->find_encoding("selective_rope");
  EXPECT_EQ(position.refuses(*test::read_options(position, R"({"bias_learned": false})"), {8, 2, 2, 4, 4}),
            "bias_learned false without a bias: there is nothing to freeze");
}

}  // namespace
}  // namespace phasor
