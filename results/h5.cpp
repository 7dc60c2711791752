#include "results/h5.h"

#include <hdf5.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "results/h5_index.h"

namespace phasor::results::h5 {
namespace {

std::recursive_mutex& library_lock() {
  static std::recursive_mutex lock;
  return lock;
}

/// One HDF5 object. `what` says what was being opened, for the message.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t), const std::string& what) : id_(id), close_(close) {
    if (id_ < 0) throw Failure("damaged: cannot open " + what);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  hid_t id() const { return id_; }
  void finish() {
    if (close_(std::exchange(id_, -1)) < 0) throw Failure("cannot close a file in memory");
  }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

void check(herr_t result, const std::string& what) {
  if (result < 0) throw Failure("damaged: cannot access " + what);
}

Handle string_type(std::size_t size) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "a string type");
  check(H5Tset_size(type.id(), std::max<std::size_t>(size, 1)), "a string type");
  check(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "a string type");
  check(H5Tset_cset(type.id(), H5T_CSET_UTF8), "a string type");
  return type;
}

/// Where the memory of a file goes when the file is closed. H5Fget_file_image would be shorter, but it clears the mark
/// "open for writing" in the superblock without renewing the checksum: nobody can open the result.
struct LastImage {
  std::string bytes;
  std::size_t capacity = 0;

  static void* allocate(std::size_t size, H5FD_file_image_op_t, void* self) {
    static_cast<LastImage*>(self)->capacity = size;
    return std::malloc(size);
  }
  static void* copy(void* to, const void* from, std::size_t size, H5FD_file_image_op_t, void*) {
    return std::memcpy(to, from, size);
  }
  static void* resize(void* memory, std::size_t size, H5FD_file_image_op_t, void* self) {
    static_cast<LastImage*>(self)->capacity = size;
    return std::realloc(memory, size);
  }
  static herr_t release(void* memory, H5FD_file_image_op_t operation, void* self) {
    LastImage* last = static_cast<LastImage*>(self);
    if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE) last->bytes.assign(static_cast<char*>(memory), last->capacity);
    std::free(memory);
    return 0;
  }
  static void* same(void* self) { return self; }
  static herr_t keep(void*) { return 0; }

  void watch(hid_t access) {
    H5FD_file_image_callbacks_t calls{allocate, copy, resize, release, same, keep, this};
    check(H5Pset_file_image_callbacks(access, &calls), "memory");
  }
};

/// An in-memory file. Format bounds v1.8: readable by every HDF5 since 2008, metadata with checksums, no lock flags.
Handle memory_access() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures become our messages, never a printed stack
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "a property list");
  check(H5Pset_fapl_core(access.id(), std::size_t{1} << 16, false), "memory");
  check(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18), "memory");
  return access;
}

/// The library takes two files in memory of one name for the same file.
std::string fresh_name() {
  static std::atomic<std::uint64_t> number = 0;
  return "phasor " + std::to_string(++number);
}

Handle watched(LastImage& last) {
  Handle access = memory_access();
  last.watch(access.id());
  return access;
}

Handle untimed(hid_t kind) {
  Handle creation(H5Pcreate(kind), H5Pclose, "a property list");
  check(H5Pset_obj_track_times(creation.id(), false), "a property list");
  return creation;
}

void put_attribute(hid_t place, const std::string& name, hid_t type, const void* data) {
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose, name);
  const Handle attribute(H5Acreate2(place, name.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, name);
  check(H5Awrite(attribute.id(), type, data), name);
}

void put_column(hid_t file, const std::string& path, hid_t type, const void* data, std::size_t count, std::size_t size,
                const std::string& unit) {
  const hsize_t extent = count;
  const Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose, path);
  const Handle creation = untimed(H5P_DATASET_CREATE);
  const Handle set(H5Dcreate2(file, path.c_str(), type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Dclose,
                   path);
  if (count > 0) check(H5Dwrite(set.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), path);
  const std::uint64_t digest = digest_of({static_cast<const char*>(data), count * size});
  put_attribute(set.id(), "digest", H5T_STD_U64LE, &digest);
  if (!unit.empty()) put_attribute(set.id(), "unit", string_type(unit.size()).id(), unit.data());
}

}  // namespace

struct Writer::Inside {
  std::lock_guard<std::recursive_mutex> lock{library_lock()};
  LastImage last;
  Handle creation = untimed(H5P_FILE_CREATE);
  Handle access = watched(last);
  Handle file{H5Fcreate(fresh_name().c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), H5Fclose, "memory"};
};

Writer::Writer() : inside_(std::make_unique<Inside>()) {}
Writer::~Writer() = default;

void Writer::group(const std::string& path) {
  const Handle creation = untimed(H5P_GROUP_CREATE);
  const Handle made(H5Gcreate2(inside_->file.id(), path.c_str(), H5P_DEFAULT, creation.id(), H5P_DEFAULT), H5Gclose,
                    path);
}

void Writer::column(const std::string& path, const std::vector<double>& values, const std::string& unit) {
  put_column(inside_->file.id(), path, H5T_IEEE_F64LE, values.data(), values.size(), sizeof(double), unit);
}

void Writer::column(const std::string& path, const std::vector<float>& values) {
  put_column(inside_->file.id(), path, H5T_IEEE_F32LE, values.data(), values.size(), sizeof(float), "");
}

void Writer::column(const std::string& path, const std::vector<std::int64_t>& values, const std::string& unit) {
  put_column(inside_->file.id(), path, H5T_STD_I64LE, values.data(), values.size(), sizeof(std::int64_t), unit);
}

void Writer::column(const std::string& path, const std::vector<std::uint8_t>& values) {
  put_column(inside_->file.id(), path, H5T_STD_U8LE, values.data(), values.size(), 1, "");
}

void Writer::column(const std::string& path, const std::vector<std::string>& values) {
  std::size_t size = 1;
  for (const std::string& value : values) size = std::max(size, value.size());
  std::string packed;
  for (const std::string& value : values) packed.append(value).append(size - value.size(), '\0');
  put_column(inside_->file.id(), path, string_type(size).id(), packed.data(), values.size(), size, "");
}

void Writer::attribute(const std::string& name, const std::string& value) {
  const std::string padded = value.empty() ? std::string(1, '\0') : value;
  put_attribute(inside_->file.id(), name, string_type(padded.size()).id(), padded.data());
}

void Writer::attribute(const std::string& name, std::int64_t value) {
  put_attribute(inside_->file.id(), name, H5T_STD_I64LE, &value);
}

std::string Writer::image() {
  inside_->file.finish();
  std::string bytes = std::move(inside_->last.bytes);
  inside_.reset();
  // The memory is larger than the file; the superblock (version 2: little-endian, at byte 28) says where the file ends.
  constexpr std::size_t end_at = 28;
  std::uint64_t end = 0;
  if (bytes.size() >= end_at + sizeof end) std::memcpy(&end, bytes.data() + end_at, sizeof end);
  if (end == 0 || end > bytes.size()) throw Failure("no image of the file in memory");
  bytes.resize(static_cast<std::size_t>(end));
  return bytes;
}

namespace {

Handle open_image(const Handle& access, std::string_view image) {
  const char* refused = "not a whole HDF5 file, it is cut off, damaged or something else";
  if (image.empty()) throw Failure(refused);  // the library takes no image of size 0
  std::string copy(image);  // the library copies it again, but takes it by a pointer that is not const
  check(H5Pset_file_image(access.id(), copy.data(), copy.size()), "memory");
  const hid_t file = H5Fopen(fresh_name().c_str(), H5F_ACC_RDONLY, access.id());
  if (file < 0) throw Failure(refused);
  return Handle(file, H5Fclose, "memory");
}

/// An image that the library has opened. Nobody else uses the library meanwhile.
struct Library {
  explicit Library(std::string_view image) : size(image.size()), file(open_image(access, image)) {}

  std::lock_guard<std::recursive_mutex> lock{library_lock()};
  std::size_t size;  // of the image: no column can be larger
  Handle access = memory_access();
  Handle file;

  /// Fills `bytes` with the values of a dataset whose type is of `kind`, in `memory` type (0 = as stored); gives the
  /// number of values.
  std::size_t read(const std::string& path, H5T_class_t kind, hid_t memory, std::string& bytes) const;
  /// The same of any kind. The digest, where there is one, is compared.
  std::size_t read(const Handle& set, const std::string& path, hid_t type, std::string& bytes) const;
  Handle attribute(const std::string& name, H5T_class_t kind) const;
};

std::size_t Library::read(const std::string& path, H5T_class_t kind, hid_t memory, std::string& bytes) const {
  const Handle set(H5Dopen2(file.id(), path.c_str(), H5P_DEFAULT), H5Dclose, path);
  const Handle stored(H5Dget_type(set.id()), H5Tclose, path);
  if (H5Tget_class(stored.id()) != kind || (kind == H5T_STRING && H5Tis_variable_str(stored.id()) != 0)) {
    throw Failure(path + " has another type than the layout says");
  }
  return read(set, path, memory == 0 ? stored.id() : memory, bytes);
}

std::size_t Library::read(const Handle& set, const std::string& path, hid_t type, std::string& bytes) const {
  const Handle space(H5Dget_space(set.id()), H5Sclose, path);
  const std::size_t width = H5Tget_size(type);
  const hssize_t points = H5Sget_simple_extent_npoints(space.id());
  if (points < 0 || width == 0 || static_cast<std::size_t>(points) > size / width) {
    throw Failure("damaged: " + path + " is larger than its file");
  }
  const std::size_t count = static_cast<std::size_t>(points);
  bytes.assign(count * width, '\0');
  if (count > 0) check(H5Dread(set.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()), path);
  if (H5Aexists(set.id(), "digest") <= 0) return count;
  const Handle mark(H5Aopen(set.id(), "digest", H5P_DEFAULT), H5Aclose, path);
  std::uint64_t expected = 0;
  check(H5Aread(mark.id(), H5T_NATIVE_UINT64, &expected), path);
  if (digest_of(bytes) != expected) throw Failure("damaged: " + path + " does not match its digest");
  return count;
}

Handle Library::attribute(const std::string& name, H5T_class_t kind) const {
  Handle found(H5Aopen(file.id(), name.c_str(), H5P_DEFAULT), H5Aclose, "attribute " + name);
  const Handle type(H5Aget_type(found.id()), H5Tclose, name);
  const Handle space(H5Aget_space(found.id()), H5Sclose, name);
  if (H5Tget_class(type.id()) != kind || H5Sget_simple_extent_npoints(space.id()) != 1 ||
      (kind == H5T_STRING && H5Tis_variable_str(type.id()) != 0)) {
    throw Failure("attribute " + name + " has another type than the layout says");
  }
  return found;
}

}  // namespace

/// What the index finds comes from it; the library is asked, and opened, for the rest, and says what is wrong.
struct Reader::Inside {
  explicit Inside(std::string_view of) : image(of), index(Index::of(image)) {
    if (!index) opened.emplace(image);
  }

  std::string image;
  std::optional<Index> index;
  std::optional<Library> opened;

  const Library& library() {
    if (!opened) opened.emplace(image);
    return *opened;
  }
  const Index::Values* column(const std::string& path, Index::Type type) const {
    const Index::Values* found = index ? index->column(path) : nullptr;
    return found != nullptr && found->type == type ? found : nullptr;
  }
  const Index::Values* attribute(const std::string& name, Index::Type type) const {
    const Index::Values* found = index ? index->attribute(name) : nullptr;
    return found != nullptr && found->type == type ? found : nullptr;
  }
  /// A column of numbers. `memory` gives the library's type of them, which nobody may ask for before it is opened.
  template <class Value>
  std::vector<Value> numbers(const std::string& path, Index::Type type, H5T_class_t kind, hid_t (*memory)()) {
    const Index::Values* found = column(path, type);
    std::string read;
    if (found == nullptr) {
      const Library& opened_now = library();
      opened_now.read(path, kind, memory(), read);
    }
    const std::string_view bytes = found == nullptr ? read : found->bytes;
    std::vector<Value> values(bytes.size() / sizeof(Value));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
    return values;
  }
};

void Writer::copy(const Reader& from, const std::string& path) {
  check(H5Ocopy(from.inside_->library().file.id(), "/", inside_->file.id(), path.c_str(), H5P_DEFAULT, H5P_DEFAULT), path);
}

Reader::Reader(std::string_view image) : inside_(std::make_unique<Inside>(image)) {}
Reader::~Reader() = default;

bool Reader::asks_library() const { return inside_->opened.has_value(); }

bool Reader::has(const std::string& path) const {
  if (inside_->index) return inside_->index->has(path);
  const Library& file = inside_->library();
  for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
    if (H5Lexists(file.file.id(), path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return H5Lexists(file.file.id(), path.c_str(), H5P_DEFAULT) > 0;
}

std::vector<std::string> Reader::compare_digests() const {
  const Library& file = inside_->library();
  // The library calls this from C: nothing may be thrown through it.
  const auto note = [](hid_t, const char* name, const H5L_info_t*, void* names) -> herr_t {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
  };
  std::vector<std::string> paths, unguarded;
  check(H5Lvisit(file.file.id(), H5_INDEX_NAME, H5_ITER_INC, note, &paths), "the list of what it holds");
  for (const std::string& path : paths) {
    const Handle object(H5Oopen(file.file.id(), path.c_str(), H5P_DEFAULT), H5Oclose, path);
    if (H5Iget_type(object.id()) != H5I_DATASET) continue;
    if (H5Aexists(object.id(), "digest") <= 0) {
      unguarded.push_back(path);
      continue;
    }
    const Handle type(H5Dget_type(object.id()), H5Tclose, path);
    std::string bytes;
    file.read(object, path, type.id(), bytes);
  }
  return unguarded;
}

std::vector<double> Reader::doubles(const std::string& path) const {
  return inside_->numbers<double>(path, Index::Type::f64, H5T_FLOAT, [] { return H5T_NATIVE_DOUBLE; });
}

std::vector<float> Reader::floats(const std::string& path) const {
  return inside_->numbers<float>(path, Index::Type::f32, H5T_FLOAT, [] { return H5T_NATIVE_FLOAT; });
}

std::vector<std::int64_t> Reader::integers(const std::string& path) const {
  return inside_->numbers<std::int64_t>(path, Index::Type::i64, H5T_INTEGER, [] { return H5T_NATIVE_INT64; });
}

std::vector<std::uint8_t> Reader::flags(const std::string& path) const {
  return inside_->numbers<std::uint8_t>(path, Index::Type::u8, H5T_INTEGER, [] { return H5T_NATIVE_UINT8; });
}

namespace {

/// A text without the null bytes that fill it up.
std::string unpadded(std::string_view text) { return std::string(text.substr(0, text.find_last_not_of('\0') + 1)); }

}  // namespace

std::vector<std::string> Reader::strings(const std::string& path) const {
  const Index::Values* found = inside_->column(path, Index::Type::text);
  std::string read;
  const std::size_t count = found == nullptr ? inside_->library().read(path, H5T_STRING, 0, read) : found->count;
  const std::string_view bytes = found == nullptr ? read : found->bytes;
  const std::size_t width = count == 0 ? 0 : bytes.size() / count;
  std::vector<std::string> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) values.push_back(unpadded(bytes.substr(i * width, width)));
  return values;
}

bool Reader::has_attribute(const std::string& name) const {
  if (inside_->index) return inside_->index->has_attribute(name);
  return H5Aexists(inside_->library().file.id(), name.c_str()) > 0;
}

std::string Reader::text_attribute(const std::string& name) const {
  if (const Index::Values* known = inside_->attribute(name, Index::Type::text)) return unpadded(known->bytes);
  const Handle found = inside_->library().attribute(name, H5T_STRING);
  const Handle type(H5Aget_type(found.id()), H5Tclose, name);
  std::string value(H5Tget_size(type.id()), '\0');
  check(H5Aread(found.id(), type.id(), value.data()), name);
  return unpadded(value);
}

std::int64_t Reader::integer_attribute(const std::string& name) const {
  std::int64_t value = 0;
  if (const Index::Values* known = inside_->attribute(name, Index::Type::i64)) {
    std::copy(known->bytes.begin(), known->bytes.end(), reinterpret_cast<char*>(&value));
  } else {
    const Library& file = inside_->library();
    check(H5Aread(file.attribute(name, H5T_INTEGER).id(), H5T_NATIVE_INT64, &value), name);
  }
  return value;
}

}  // namespace phasor::results::h5
