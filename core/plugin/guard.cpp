#include "core/plugin/guard.h"

#include <utility>

#include "core/base/blame.h"

namespace phasor {

namespace {

/// `encoding "my_rope"`, shared by a plugin and all that it makes, since that may outlive the registry.
using Who = std::shared_ptr<const std::string>;

template <class Call>
auto blamed(const Who& who, const char* phase, const Call& call) {
  const BlameScope scope(who->c_str(), phase);
  try {
    return call();
  } catch (...) {
    rethrow_blamed();
  }
}

/// Pullbacks run later, in reverse order: a mark after what was recorded names its author, one before it goes back to
/// the author outside.
void mark(Tape& tape, const Blame& author) {
  if (tape.recording()) tape.record([author](Tape&) { blame() = author; });
}

template <class Call>
auto forward(Tape& tape, const Who& who, const Call& call) {
  const char* outer = blame().who;
  mark(tape, outer == nullptr ? Blame{} : Blame{outer, "backward"});
  auto result = blamed(who, "forward", call);
  mark(tape, {who->c_str(), "backward"});
  return result;
}

/// Owns a plugin's object; whose destructor it is stays known while it runs.
template <class T>
class Owned {
 public:
  Owned(Who who, std::unique_ptr<T> object) : who_(std::move(who)), object_(std::move(object)) {}
  ~Owned() {
    const BlameScope scope(who_->c_str(), "destructor");
    object_.reset();
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  const T* operator->() const { return object_.get(); }
  const Who& who() const { return who_; }

 private:
  Who who_;
  std::unique_ptr<T> object_;
};

// Every method of the interface is passed on here; one that is forgotten would be its default for all plugins.

class GuardedEncoding final : public Encoding {
 public:
  GuardedEncoding(Who who, std::unique_ptr<Encoding> encoding) : to_(std::move(who), std::move(encoding)) {}
  Hook hook() const override {
    return blamed(to_.who(), "hook", [&] { return to_->hook(); });
  }
  Tensor on_input(Tape& tape, const Tensor& x, const SequenceContext& context, State* state) const override {
    return forward(tape, to_.who(), [&] { return to_->on_input(tape, x, context, state); });
  }
  QueryKey on_query_key(Tape& tape, QueryKey qk, const Tensor& x, const SequenceContext& context,
                        State* state) const override {
    return forward(tape, to_.who(), [&] { return to_->on_query_key(tape, std::move(qk), x, context, state); });
  }
  ScoreBias score_bias(Tape& tape, const Tensor& x, const SequenceContext& context, State* state) const override {
    return forward(tape, to_.who(), [&] { return to_->score_bias(tape, x, context, state); });
  }
  Tensor on_embedding(Tape& tape, const Tensor& x, const SequenceContext& context, State* state) const override {
    return forward(tape, to_.who(), [&] { return to_->on_embedding(tape, x, context, state); });
  }
  bool rotates_before_norm() const override { return to_->rotates_before_norm(); }
  bool relative() const override { return to_->relative(); }

 private:
  Owned<Encoding> to_;
};

class GuardedMixer final : public Mixer {
 public:
  GuardedMixer(Who who, std::unique_ptr<Mixer> mixer) : to_(std::move(who), std::move(mixer)) {}
  Tensor forward(Tape& tape, const Tensor& x, const Encoding& encoding, const SequenceContext& context,
                 State* state) const override {
    return phasor::forward(tape, to_.who(), [&] { return to_->forward(tape, x, encoding, context, state); });
  }

 private:
  Owned<Mixer> to_;
};

class GuardedTask final : public Task {
 public:
  GuardedTask(Who who, std::unique_ptr<Task> task) : to_(std::move(who), std::move(task)) {}
  std::int64_t vocabulary() const override { return to_->vocabulary(); }
  std::int64_t streams() const override { return to_->streams(); }
  Classes classes() const override { return to_->classes(); }
  bool packs() const override { return to_->packs(); }
  Reading reading() const override { return to_->reading(); }
  std::vector<Slice> slices(Split split) const override {
    return blamed(to_.who(), "slices", [&] { return to_->slices(split); });
  }
  bool curriculum() const override { return to_->curriculum(); }
  std::int64_t tokens(const Slice& slice) const override { return to_->tokens(slice); }
  std::int64_t max_targets(const Slice& slice) const override { return to_->max_targets(slice); }
  void sample(const Slice& slice, std::uint64_t seed, std::int64_t index, Sample sample) const override {
    blamed(to_.who(), "sample", [&] { to_->sample(slice, seed, index, sample); });
  }
  std::int64_t prompt(const Slice& slice) const override { return to_->prompt(slice); }
  std::vector<Unit> units(const Slice& slice, const Sample& sample) const override {
    return blamed(to_.who(), "units", [&] { return to_->units(slice, sample); });
  }
  bool text() const override { return to_->text(); }
  std::int64_t text_bytes(const Slice& slice, std::int64_t index) const override {
    return blamed(to_.who(), "text_bytes", [&] { return to_->text_bytes(slice, index); });
  }
  std::vector<std::int64_t> position_ends(const Slice& slice) const override { return to_->position_ends(slice); }
  std::optional<std::string> missing() const override { return to_->missing(); }
  double chance() const override { return to_->chance(); }
  std::string label() const override { return to_->label(); }

 private:
  Owned<Task> to_;
};

Who who_is(const char* kind, const PluginInfo& info) {
  return std::make_shared<const std::string>(std::string(kind) + " \"" + info.name + "\"");
}

class GuardedEncodingPlugin final : public EncodingPlugin {
 public:
  GuardedEncodingPlugin(std::unique_ptr<EncodingPlugin> to, const PluginInfo& its_info)
      : who_(who_is("encoding", its_info)), to_(std::move(to)) {
    info = its_info;
  }
  std::unique_ptr<Options> options() const override {
    return blamed(who_, "options", [&] { return to_->options(); });
  }
  std::optional<std::string> refuses(const Options& options, const MixerShape& shape) const override {
    return blamed(who_, "refuses", [&] { return to_->refuses(options, shape); });
  }
  std::unique_ptr<Encoding> make(const Options& options, const MixerShape& shape,
                                 const ParameterScope& scope) const override {
    return std::make_unique<GuardedEncoding>(
        who_, blamed(who_, "create", [&] { return to_->make(options, shape, scope); }));
  }

 private:
  Who who_;
  std::unique_ptr<EncodingPlugin> to_;
};

class GuardedBackbonePlugin final : public BackbonePlugin {
 public:
  GuardedBackbonePlugin(std::unique_ptr<BackbonePlugin> to, const PluginInfo& its_info)
      : who_(who_is("backbone", its_info)), to_(std::move(to)) {
    info = its_info;
  }
  std::unique_ptr<Options> options() const override {
    return blamed(who_, "options", [&] { return to_->options(); });
  }
  std::optional<std::string> refuses(const Options& options, std::int64_t dim) const override {
    return blamed(who_, "refuses", [&] { return to_->refuses(options, dim); });
  }
  MixerShape shape(const Options& options, std::int64_t dim) const override {
    return blamed(who_, "shape", [&] { return to_->shape(options, dim); });
  }
  Hook offers(const Options& options) const override {
    return blamed(who_, "offers", [&] { return to_->offers(options); });
  }
  std::unique_ptr<Mixer> make(const Options& options, std::int64_t dim, double norm_eps,
                              const ParameterScope& scope) const override {
    return std::make_unique<GuardedMixer>(
        who_, blamed(who_, "create", [&] { return to_->make(options, dim, norm_eps, scope); }));
  }

 private:
  Who who_;
  std::unique_ptr<BackbonePlugin> to_;
};

class GuardedTaskPlugin final : public TaskPlugin {
 public:
  GuardedTaskPlugin(std::unique_ptr<TaskPlugin> to, const PluginInfo& its_info)
      : who_(who_is("task", its_info)), to_(std::move(to)) {
    info = its_info;
  }
  std::unique_ptr<Options> options() const override {
    return blamed(who_, "options", [&] { return to_->options(); });
  }
  std::optional<std::string> refuses(const Options& options) const override {
    return blamed(who_, "refuses", [&] { return to_->refuses(options); });
  }
  std::unique_ptr<Task> make(const Options& options) const override {
    return std::make_unique<GuardedTask>(who_, blamed(who_, "create", [&] { return to_->make(options); }));
  }

 private:
  Who who_;
  std::unique_ptr<TaskPlugin> to_;
};

}  // namespace

std::unique_ptr<EncodingPlugin> guarded(std::unique_ptr<EncodingPlugin> plugin, const PluginInfo& info) {
  return std::make_unique<GuardedEncodingPlugin>(std::move(plugin), info);
}
std::unique_ptr<BackbonePlugin> guarded(std::unique_ptr<BackbonePlugin> plugin, const PluginInfo& info) {
  return std::make_unique<GuardedBackbonePlugin>(std::move(plugin), info);
}
std::unique_ptr<TaskPlugin> guarded(std::unique_ptr<TaskPlugin> plugin, const PluginInfo& info) {
  return std::make_unique<GuardedTaskPlugin>(std::move(plugin), info);
}

}  // namespace phasor
