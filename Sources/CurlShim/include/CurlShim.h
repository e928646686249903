/* What Swift cannot call of libcurl: variadic functions, and the union inside CURLMsg. Nothing is decided here. */
#ifndef TARN_CURL_SHIM_H
#define TARN_CURL_SHIM_H

#include <curl/curl.h>
#include <netinet/in.h>
#include <sys/socket.h>

static inline CURLcode tarn_curl_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

/* libcurl copies the text; NULL gives the option's default. */
static inline CURLcode tarn_curl_set_text(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

static inline CURLcode tarn_curl_set_headers(CURL *easy, struct curl_slist *list) {
  return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
}

/* The buffer must hold CURL_ERROR_SIZE bytes and outlive the transfer. */
static inline CURLcode tarn_curl_set_error_buffer(CURL *easy, char *buffer) {
  return curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, buffer);
}

/* Three callbacks get the same context. The one that closes sockets has its own: connections outlive their transfers. */
static inline CURLcode tarn_curl_set_callbacks(
    CURL *easy, curl_write_callback header, curl_write_callback body, curl_opensocket_callback socket,
    void *context, curl_closesocket_callback close, void *closing) {
  CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, socket);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close);
  if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, closing);
  return code;
}

static inline CURLcode tarn_curl_get_long(CURL *easy, CURLINFO info, long *value) {
  return curl_easy_getinfo(easy, info, value);
}

/* The shortest round trip that a connection has seen, in microseconds; -1 when nobody knows, or it is none that is established.
   The smoothed one has the time in it that a server thinks before it answers. tcp(7), TCP_INFO. */
long tarn_curl_round_trip(curl_socket_t number);

/* Bytes that the peer sent and that were read from the socket; -1 when nobody knows. tcp(7), TCP_INFO. */
long long tarn_curl_bytes_read(curl_socket_t number);

/* The kernel no longer chooses by itself. socket(7), SO_RCVBUF. */
static inline void tarn_curl_set_receive_buffer(curl_socket_t number, int bytes) {
  (void)setsockopt(number, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static inline CURLMcode tarn_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

/* The address, which is longer than its declared type for IPv6: it must not be copied through that type. */
static inline const struct sockaddr *tarn_curl_address(const struct curl_sockaddr *address) {
  return &address->addr;
}

/* The next transfer that is done, or NULL. */
static inline CURL *tarn_curl_multi_next_done(CURLM *multi, CURLcode *result) {
  int left = 0;
  CURLMsg *message;
  while ((message = curl_multi_info_read(multi, &left)) != NULL) {
    if (message->msg == CURLMSG_DONE) {
      *result = message->data.result;
      return message->easy_handle;
    }
  }
  return NULL;
}

#endif
