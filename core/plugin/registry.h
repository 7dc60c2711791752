#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/encoding.h"
#include "core/nn/mixer.h"
#include "core/nn/parameters.h"
#include "core/nn/task.h"
#include "core/spec/fields.h"

namespace phasor {

/// The options of one plugin, without their type.
class Options {
 public:
  virtual ~Options() = default;
  virtual void fields(FieldList&) = 0;
  /// Sets what was left open and follows from outside, such as the hash of a file: it becomes a part of the experiment.
  /// Of a task; called when its options were accepted.
  virtual void resolve() {}
};

/// What the host knows of everything a plugin registers.
struct PluginInfo {
  std::string name;     // as in the experiment file
  int revision = 1;     // of the numbers it makes: raised when results change
  std::string help;     // one line
  std::string library;  // file it came from; filled in by the loader
  std::vector<std::string> rivals = {};  // further files that bring the same name: it cannot be used then
};

class EncodingPlugin {
 public:
  virtual ~EncodingPlugin() = default;
  virtual std::unique_ptr<Options> options() const = 0;
  virtual std::optional<std::string> refuses(const Options&, const MixerShape&) const = 0;
  virtual std::unique_ptr<Encoding> make(const Options&, const MixerShape&, const ParameterScope&) const = 0;
  PluginInfo info;
};

class BackbonePlugin {
 public:
  virtual ~BackbonePlugin() = default;
  virtual std::unique_ptr<Options> options() const = 0;
  virtual std::optional<std::string> refuses(const Options&, std::int64_t dim) const = 0;
  virtual MixerShape shape(const Options&, std::int64_t dim) const = 0;
  virtual Hook offers(const Options&) const = 0;
  virtual std::unique_ptr<Mixer> make(const Options&, std::int64_t dim, double norm_eps,
                                      const ParameterScope&) const = 0;
  PluginInfo info;
};

class TaskPlugin {
 public:
  virtual ~TaskPlugin() = default;
  virtual std::unique_ptr<Options> options() const = 0;
  virtual std::optional<std::string> refuses(const Options&) const = 0;
  virtual std::unique_ptr<Task> make(const Options&) const = 0;
  PluginInfo info;
};

namespace detail {
template <class T>
struct TypedOptions final : Options {
  T value;
  void fields(FieldList& list) override { value.fields(list); }
  void resolve() override {
    if constexpr (requires { value.resolve(); }) value.resolve();
  }
};
template <class T>
const T& typed(const Options& options) {
  return dynamic_cast<const TypedOptions<T>&>(options).value;
}

template <class E>
struct EncodingOf final : EncodingPlugin {
  using O = typename E::Options;
  std::unique_ptr<Options> options() const override { return std::make_unique<TypedOptions<O>>(); }
  std::optional<std::string> refuses(const Options& o, const MixerShape& shape) const override {
    return E::refuses(typed<O>(o), shape);
  }
  std::unique_ptr<Encoding> make(const Options& o, const MixerShape& shape,
                                 const ParameterScope& scope) const override {
    return std::make_unique<E>(typed<O>(o), shape, scope);
  }
};

template <class M>
struct BackboneOf final : BackbonePlugin {
  using O = typename M::Options;
  std::unique_ptr<Options> options() const override { return std::make_unique<TypedOptions<O>>(); }
  std::optional<std::string> refuses(const Options& o, std::int64_t dim) const override {
    return M::refuses(typed<O>(o), dim);
  }
  MixerShape shape(const Options& o, std::int64_t dim) const override { return M::shape(typed<O>(o), dim); }
  Hook offers(const Options& o) const override { return M::offers(typed<O>(o)); }
  std::unique_ptr<Mixer> make(const Options& o, std::int64_t dim, double eps,
                              const ParameterScope& scope) const override {
    return std::make_unique<M>(typed<O>(o), dim, eps, scope);
  }
};

template <class K>
struct TaskOf final : TaskPlugin {
  using O = typename K::Options;
  std::unique_ptr<Options> options() const override { return std::make_unique<TypedOptions<O>>(); }
  std::optional<std::string> refuses(const Options& o) const override { return K::refuses(typed<O>(o)); }
  std::unique_ptr<Task> make(const Options& o) const override { return std::make_unique<K>(typed<O>(o)); }
};
}  // namespace detail

/// Everything plugins brought, by kind, in order of name. Filled once at start, then only read. What it makes may
/// outlive it: the code of a plugin stays until the process ends.
class Registry {
 public:
  template <class E>
  void encoding(std::string name, int revision, std::string help) {
    add(std::make_unique<detail::EncodingOf<E>>(), {std::move(name), revision, std::move(help), {}, {}});
  }
  template <class M>
  void backbone(std::string name, int revision, std::string help) {
    add(std::make_unique<detail::BackboneOf<M>>(), {std::move(name), revision, std::move(help), {}, {}});
  }
  template <class K>
  void task(std::string name, int revision, std::string help) {
    add(std::make_unique<detail::TaskOf<K>>(), {std::move(name), revision, std::move(help), {}, {}});
  }

  // What is called so, or nothing. UserError when several files bring the name: which one counts must not depend on the
  // order of loading.
  const EncodingPlugin* find_encoding(const std::string& name) const;
  const BackbonePlugin* find_backbone(const std::string& name) const;
  const TaskPlugin* find_task(const std::string& name) const;
  const std::vector<std::unique_ptr<EncodingPlugin>>& encodings() const { return encodings_; }
  const std::vector<std::unique_ptr<BackbonePlugin>>& backbones() const { return backbones_; }
  const std::vector<std::unique_ptr<TaskPlugin>>& tasks() const { return tasks_; }

  /// For every name that several files bring, a line that names them.
  std::vector<std::string> duplicates() const;

  /// Files that were loaded, in the order of loading.
  const std::vector<std::string>& libraries() const { return libraries_; }

  /// Loader only: the library whose register_all runs now; "" when it is done, then it is this program that registers.
  void from_library(std::string file);
  /// Loader only: forgets what the library registered (its register_all threw half-way).
  void forget(const std::string& library);

 private:
  void add(std::unique_ptr<EncodingPlugin>, PluginInfo);
  void add(std::unique_ptr<BackbonePlugin>, PluginInfo);
  void add(std::unique_ptr<TaskPlugin>, PluginInfo);

  std::vector<std::unique_ptr<EncodingPlugin>> encodings_;
  std::vector<std::unique_ptr<BackbonePlugin>> backbones_;
  std::vector<std::unique_ptr<TaskPlugin>> tasks_;
  std::vector<std::string> libraries_;
  std::string library_;
};

}  // namespace phasor
