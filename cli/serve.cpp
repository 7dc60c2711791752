#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands.h"
#include "cli/live_folder.h"
#include "cli/options.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "results/files.h"

namespace phasor::cli {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

/// The names under which a browser on this machine reaches it. A page of another name that was made to point here (DNS
/// rebinding) sends its own and gets nothing.
bool is_local(std::string host, unsigned short port) {
  if (const std::string suffix = ":" + std::to_string(port); host.ends_with(suffix))
    host.resize(host.size() - suffix.size());
  return host == "localhost" || host == "127.0.0.1";
}

class Answers {
 public:
  Answers(LiveFolder& folder, unsigned short port) : folder_(folder), port_(port) {}

  Response answer(const Request& request) {
    Response response = choose(request);
    response.version(11);
    response.set(http::field::cache_control, "no-store");
    response.set("X-Content-Type-Options", "nosniff");
    response.set("Referrer-Policy", "no-referrer");
    response.set("Cross-Origin-Resource-Policy", "same-origin");
    response.keep_alive(false);
    response.prepare_payload();
    return response;
  }

 private:
  static Response plain(http::status status, const std::string& text) {
    Response response(status, 11);
    response.set(http::field::content_type, "text/plain; charset=utf-8");
    response.body() = text;
    return response;
  }

  Response choose(const Request& request) {
    if (!is_local(std::string(request[http::field::host]), port_))
      return plain(http::status::forbidden, "this server answers to localhost and 127.0.0.1 only\n");
    if (request.method() != http::verb::get) {
      Response response = plain(http::status::method_not_allowed, "GET only\n");
      response.set(http::field::allow, "GET");
      return response;
    }
    const std::string target(request.target().substr(0, request.target().find('?')));
    try {
      if (target == "/") return page();
      if (target == "/data.json") return news(request);
      if (target.starts_with("/logs/")) return log(target.substr(6));
    } catch (const UserError& error) {
      return plain(http::status::internal_server_error, std::string(error.what()) + "\n");
    }
    return plain(http::status::not_found, "expected /, /data.json or /logs/ and the id of a trial\n");
  }

  Response page() {
    Response response(http::status::ok, 11);
    response.set(http::field::content_type, "text/html; charset=utf-8");
    response.body() = analysis::report_page(folder_.report(), true);
    return response;
  }

  Response news(const Request& request) {
    const analysis::Report& report = folder_.report();
    const bool same = request[http::field::if_none_match] == report.version;
    Response response(same ? http::status::not_modified : http::status::ok, 11);
    response.set(http::field::etag, report.version);
    response.set(http::field::content_type, "application/json");
    if (!same) response.body() = analysis::report_news(report);
    return response;
  }

  /// What comes from the request only ever names a trial, never a file.
  Response log(const std::string& id) {
    const std::optional<std::string> file = folder_.log_file(id);
    return file ? plain(http::status::ok, results::read_file(*file))
                : plain(http::status::not_found, "no log of such a trial\n");
  }

  LiveFolder& folder_;
  unsigned short port_;
};

/// One connection: one request, one answer. Gone after ten seconds without either.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Answers& answers) : stream_(std::move(socket)), answers_(answers) {
    parser_.header_limit(16 * 1024);
    parser_.body_limit(1024);
  }
  void start() {
    stream_.expires_after(std::chrono::seconds(10));
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](beast::error_code error, std::size_t) {
                              if (!error) self->write();
                            });
  }

 private:
  void write() {
    response_ = answers_.answer(parser_.get());
    stream_.expires_after(std::chrono::seconds(60));
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code, std::size_t) {
      beast::error_code error;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  Response response_;
  Answers& answers_;
};

void accept(tcp::acceptor& acceptor, Answers& answers) {
  acceptor.async_accept([&](beast::error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) std::make_shared<Connection>(std::move(socket), answers)->start();
    accept(acceptor, answers);
  });
}

tcp::acceptor listen(asio::io_context& context, unsigned short port) {
  try {
    return tcp::acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), port));
  } catch (const boost::system::system_error& error) {
    throw UserError(fmt::format("--port {}: cannot listen there, {}; name another, or 0 for any that is free", port,
                                error.code().message()));
  }
}

}  // namespace

int serve(const Arguments& arguments) {
  std::string folder;
  std::optional<std::int64_t> port;
  bool allow_mixed = false;
  Options options(
      "phasor serve DIR [--port N]",
      "The report of a sweep's folder in a browser on this machine, while the sweep runs: it follows the folder by\n"
      "itself. Reads only; listens on 127.0.0.1 only. Ctrl-C ends it.\n"
      "exit codes: 0 ended, 2 no folder of a sweep, or the port is taken");
  options.positional("folder of a sweep", folder, true);
  options.integer("port", port, 0, "port on 127.0.0.1 (default 8642; 0 = any that is free)");
  options.flag("allow-mixed", allow_mixed, "put trials of different builds, processors, devices side by side");
  if (!options.parse(arguments)) return exit_code::done;
  const std::int64_t wanted = port.value_or(8642);
  if (wanted > 65535) throw UserError(fmt::format("--port: found {}, expected at most 65535", wanted));

  LiveFolder live(folder, allow_mixed);
  asio::io_context context(1);
  tcp::acceptor acceptor = listen(context, static_cast<unsigned short>(wanted));
  const unsigned short bound = acceptor.local_endpoint().port();
  Answers answers(live, bound);
  accept(acceptor, answers);
  asio::signal_set ends(context, SIGINT, SIGTERM);
  ends.async_wait([&](beast::error_code, int) { context.stop(); });
  fmt::print("serving          http://127.0.0.1:{}/   {}   Ctrl-C ends it\n", bound, folder);
  std::fflush(stdout);
  context.run();
  return exit_code::done;
}

}  // namespace phasor::cli
