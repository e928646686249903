import CurlShim
import Glibc
import TarnCore

/// The meaning of libcurl's codes for an exchange: the one place where codes become failures.
enum FailureTable {
  struct Row {
    let code: DownloadFailure.Code
    let isTransient: Bool
    /// The words before the host and port: "connection refused by example.org:443".
    let words: String
  }

  /// Returns the row of a code. Codes that are not listed are `.protocolError` and transient. Among them is UNSUPPORTED_PROTOCOL,
  /// by which libcurl means an answer that is not HTTP (SourceURL has judged the URL before).
  static func row(_ code: CURLcode) -> Row {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST: Row(code: .resolve, isTransient: true, words: "no address found for")
    case CURLE_COULDNT_RESOLVE_PROXY:
      Row(code: .resolve, isTransient: true, words: "no address found for the proxy of")
    case CURLE_COULDNT_CONNECT: Row(code: .connect, isTransient: true, words: "no connection to")
    case CURLE_PROXY: Row(code: .connect, isTransient: true, words: "the proxy gave no connection to")
    case CURLE_OPERATION_TIMEDOUT: Row(code: .timeout, isTransient: true, words: "no answer in time from")
    case CURLE_PEER_FAILED_VERIFICATION: Row(code: .tls, isTransient: false, words: "certificate refused of")
    case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CRL_BADFILE,
      CURLE_SSL_CIPHER, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_INVALIDCERTSTATUS,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH:
      Row(code: .tls, isTransient: false, words: "no secure connection to")
    case CURLE_SSL_CONNECT_ERROR: Row(code: .tls, isTransient: true, words: "no secure connection to")
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_HTTP3,
      CURLE_QUIC_CONNECT_ERROR, CURLE_NO_CONNECTION_AVAILABLE:
      Row(code: .reset, isTransient: true, words: "connection lost to")
    case CURLE_PARTIAL_FILE:
      Row(code: .truncated, isTransient: true, words: "only a part of the file came from")
    case CURLE_FILESIZE_EXCEEDED:
      Row(code: .tooLarge, isTransient: false, words: "the body is too large from")
    case CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED:
      Row(code: .urlRefused, isTransient: false, words: "the URL was refused for")
    case CURLE_BAD_CONTENT_ENCODING:
      Row(code: .contentEncoding, isTransient: false, words: "an encoding that was not asked for came from")
    case CURLE_OUT_OF_MEMORY:
      Row(code: .outOfMemory, isTransient: true, words: "out of memory while talking to")
    case CURLE_ABORTED_BY_CALLBACK: Row(code: .cancelled, isTransient: false, words: "given up:")
    default: Row(code: .protocolError, isTransient: true, words: "a bad response from")
    }
  }

  /// Returns the status with which a proxy refused a tunnel; `nil` for any other failure.
  private static func statusOfProxy(_ detail: String) -> Int? {
    let words = "CONNECT tunnel failed, response "
    return detail.hasPrefix(words) ? Int(detail.dropFirst(words.count)) : nil
  }

  /// - Parameters:
  ///   - host: the host and port, not escaped.
  ///   - detail: libcurl's own message, not escaped; may be empty.
  ///   - errno: CURLINFO_OS_ERRNO, 0 for none.
  ///   - isProxied: true when a failed connection was one to the proxy.
  static func failure(
    _ code: CURLcode, host: String, detail: String, errno number: Int, isProxied: Bool = false
  ) -> DownloadFailure {
    let row = row(code)
    let host = Printable.escape(host)
    let place = isProxied && code == CURLE_COULDNT_CONNECT ? "the proxy on the way to \(host)" : host
    if let status = statusOfProxy(detail) {
      let wish = status == 407 ? ", and wants a name and password" : ""
      return DownloadFailure(
        .connect, "the proxy gave no connection to \(host): it answered with \(status)\(wish)",
        isTransient: HTTPStatus(status).isTransient)
    }
    // libcurl reports it with the code of a lost connection.
    if code == CURLE_RECV_ERROR, detail.contains("chunked-encoding") {
      return DownloadFailure(
        .protocolError, "a bad response from \(place): \(Printable.escape(detail))", isTransient: true)
    }
    if code == CURLE_OPERATION_TIMEDOUT, detail.hasPrefix("Operation too slow") {
      return DownloadFailure(.tooSlow, "too few bytes per second from \(place)", isTransient: true)
    }
    if code == CURLE_COULDNT_CONNECT, number == ECONNREFUSED {
      return DownloadFailure(.connect, "connection refused by \(place)", isTransient: true)
    }
    if code == CURLE_COULDNT_CONNECT, number == ETIMEDOUT {
      return DownloadFailure(.timeout, "no connection in time to \(place)", isTransient: true)
    }
    if code == CURLE_SSL_CONNECT_ERROR, detail.contains("wrong version number") {
      return DownloadFailure(
        row.code, "\(place) does not speak TLS: its addresses may begin with http://", isTransient: false)
    }
    if code == CURLE_SSL_CACERT_BADFILE {
      let file = authorities(detail).map { " from \(Printable.escape($0))" } ?? ""
      return DownloadFailure(
        row.code, "no authority's certificate could be read\(file), so \(place) cannot be trusted",
        isTransient: false)
    }
    return DownloadFailure(
      row.code, "\(row.words) \(place)\(cause(code, detail))", isTransient: row.isTransient)
  }

  /// Returns the file named in `error setting certificate file: FILE`.
  private static func authorities(_ detail: String) -> String? {
    detail.ranges(of: "certificate file: ").first.map { String(detail[$0.upperBound...]) }
  }

  /// Returns a cause such as `: self-signed certificate`, from libcurl's message or its text for the code.
  private static func cause(_ code: CURLcode, _ detail: String) -> String {
    // The words for these codes are complete; libcurl's text would only repeat the host.
    if [CURLE_COULDNT_RESOLVE_HOST, CURLE_OUT_OF_MEMORY, CURLE_PARTIAL_FILE].contains(code) { return "" }
    var text = detail.isEmpty ? curl_easy_strerror(code).map { String(cString: $0) } ?? "" : detail
    for prefix in ["SSL certificate problem: ", "SSL: "] where text.hasPrefix(prefix) {
      text.removeFirst(prefix.count)
    }
    // Such as `OpenSSL/3.0.22: error:0A000126:SSL routines::unexpected eof while reading`.
    if text.hasPrefix("OpenSSL/"), let last = text.split(separator: ":").last { text = String(last) }
    return text.isEmpty ? "" : ": \(Printable.escape(text))"
  }
}
